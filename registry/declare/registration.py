"""register_operator: an operator assembled from components."""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from registry.cases import Case, Misuse
from registry.declare.components import (
    InplaceHint,
    MethodCall,
    OperatorBase,
    ShapeInferer,
    VarTypeInferer,
    by_slot,
    in_order,
    kinds_by,
    parameters_of,
)
from registry.declare.composing import DescMaker, declare_composition, synthetic_desc
from registry.declare.gradients import (
    EmptyGradOpDescMaker,
    GradOpDescMaker,
    declare_empty,
)
from registry.declare.proto import OpProtoAndCheckerMaker, ProtoInterface, slot_name
from registry.desc import OpDesc
from registry.errors import DeclarationError, RegistrationError
from registry.operator.operator import Operator
from registry.table import register

_BASES: dict[type[Any], str] = {
    OperatorBase: "operator",
    OpProtoAndCheckerMaker: "proto and checker maker",
    GradOpDescMaker: "gradient maker",
    VarTypeInferer: "variable-type inferer",
    ShapeInferer: "shape inferer",
    InplaceHint: "in-place hint",
}
Component = type[Any] | Callable[[OpDesc], "list[OpDesc] | OpDesc"]


def register_operator(
    name: str,
    *components: Component,
    cases: Sequence[Case | Misuse] = (),
    reference: Callable[..., Any] | None = None,
    aliases: Sequence[str] = (),
    native: bool | None = None,
    opaque: bool = False,
    replace: bool = False,
) -> Operator:
    """Registers an operator that is described by components, in any order.

    Args:
        name: the operator's name.
        *components: classes, each recognized by its base: ``OperatorBase`` (required),
            ``OpProtoAndCheckerMaker``, ``GradOpDescMaker``, ``VarTypeInferer``, ``ShapeInferer``,
            ``InplaceHint``. A function from an OpDesc to OpDescs is a gradient maker.
        cases: sample calls for tests, see ``registry.case``.
        reference: the same function in NumPy or SciPy.
        aliases: other names.
        native: whether JAX's derivative of the kernel is the declared one.
        opaque: whether JAX has no derivative of the kernel.
        replace: whether to replace an operator of the same name.

    Raises:
        RegistrationError: the name is taken, or two components are of one kind.
        DeclarationError: the components are inconsistent.

    Example:
        >>> from registry import GradOpDescMaker, OpDesc, OperatorBase, register_operator
        >>> class Twice(OperatorBase):
        ...     def kernel(self, X):
        ...         return 2 * X
        >>> def twice_grad(op_desc):
        ...     return OpDesc("scale", {"X": ["Out@GRAD"]}, {"Out": ["X@GRAD"]}, {"scale": 2.0})
        >>> float(register_operator("doc_twice", Twice, twice_grad)(1.5))
        3.0
    """
    operator = make_operator(
        name,
        components,
        {
            "cases": cases,
            "reference": reference,
            "aliases": aliases,
            "native": native,
            "opaque": opaque,
        },
    )
    return register(operator, replace=replace)


def make_operator(name: str, components: Iterable[Any], options: dict[str, Any]) -> Operator:
    """Returns the operator that ``components`` describe, unregistered."""
    parts = sorted_parts(name, components)
    base = parts.get(OperatorBase)
    if base is None:
        raise RegistrationError(
            f"{name}: one component must be an operator (a subclass of OperatorBase), got none"
        )
    interface = _interface(name, base, parts.get(OpProtoAndCheckerMaker))
    return assembled(name, parts, interface, options)


def assembled(
    name: str, parts: dict[type[Any], Any], interface: ProtoInterface, options: dict[str, Any]
) -> Operator:
    """Returns the operator of sorted components, with the slots and outputs of ``interface``."""
    operator = _built(name, parts, interface, options)
    if VarTypeInferer in parts:
        operator.kind(kinds_by(operator, parts[VarTypeInferer]))
        operator.var_type_inferer = parts[VarTypeInferer]()
    if GradOpDescMaker in parts:
        declare_gradient(operator, parts[GradOpDescMaker], constant=interface.constant)
    if InplaceHint in parts:
        operator.declare_inplace(dict(parts[InplaceHint]()(synthetic_desc(operator))))
    return operator


def sorted_parts(name: str, components: Iterable[Any]) -> dict[type[Any], Any]:
    """Sorts the components by their base class."""
    parts: dict[type[Any], Any] = {}
    for one in components:
        kind = kind_of(name, one)
        if kind in parts:
            raise RegistrationError(
                f"{name}: one {_BASES[kind]} must be given, got {_called(parts[kind])} and "
                f"{_called(one)}"
            )
        parts[kind] = one
    return parts


def kind_of(name: str, component: Any) -> type[Any]:
    """Returns the base class that identifies ``component``; ``GradOpDescMaker`` for a function.

    Raises:
        RegistrationError: it is not a component.
    """
    if inspect.isclass(component):
        bases = [base for base in _BASES if issubclass(component, base)]
        if len(bases) > 1:
            raise RegistrationError(
                f"{name}: {_called(component)} must derive from one of "
                f"{' and '.join(base.__name__ for base in bases)}, got both"
            )
        if bases:
            _require_defined(name, component)
            return bases[0]
    elif callable(component) and not isinstance(component, tuple(_BASES)):
        return GradOpDescMaker
    raise RegistrationError(
        f"{name}: a component must be a class derived from "
        f"{', '.join(base.__name__ for base in _BASES)}, or a function from an OpDesc to OpDescs, "
        f"got {_called(component)}"
    )


def _require_defined(name: str, component: type[Any]) -> None:
    missing = sorted(getattr(component, "__abstractmethods__", ()))
    if missing:
        raise DeclarationError(
            f"{name}: {component.__name__} must define {' and '.join(f'{m}()' for m in missing)}"
        )


def _called(component: Any) -> str:
    return str(getattr(component, "__name__", repr(component)))


# The operator itself ---------------------------------------------------------------------------


def _interface(name: str, base: type[OperatorBase], proto: Any) -> ProtoInterface:
    if "kernel" not in dir(base):
        raise DeclarationError(f"{name}: {base.__name__} must define kernel(self, ...)")
    _require_method(name, base, "kernel")
    if proto is not None:
        interface: ProtoInterface = proto(name).interface()
        return interface
    declared = [base.outputs] if isinstance(base.outputs, str) else base.outputs
    outputs = [slot_name(name, one) for one in declared]
    doc = inspect.getdoc(base) if base.__doc__ else None
    return ProtoInterface(parameters_of(base.kernel), outputs, [], doc or "", {}, [], None)


def _require_method(name: str, component: type[Any], method: str) -> None:
    """Requires a method with ``self``: otherwise its first input would be taken for ``self``."""
    member = inspect.getattr_static(component, method)
    parameters = (
        [] if not inspect.isfunction(member) else list(inspect.signature(member).parameters)
    )
    if parameters[:1] != ["self"]:
        raise DeclarationError(
            f"{name}: {component.__name__}.{method} must be a method ({method}(self, ...)), got "
            f"{type(member).__name__} ({', '.join(parameters)})"
        )


class _Parameters(NamedTuple):
    """Parameters of an operator, split into slots and attributes."""

    slots: list[inspect.Parameter]
    attributes: list[inspect.Parameter]


def apart(parameters: Iterable[inspect.Parameter]) -> _Parameters:
    """Splits the parameters of a kernel into slots and attributes."""
    both = list(parameters)
    return _Parameters(
        [one for one in both if one.kind is not one.KEYWORD_ONLY],
        [one for one in both if one.kind is one.KEYWORD_ONLY],
    )


def _built(
    name: str, parts: dict[type[Any], Any], interface: ProtoInterface, options: dict[str, Any]
) -> Operator:
    """Returns the operator that its class computes, without gradient and kinds."""
    base: type[OperatorBase] = parts[OperatorBase]
    parameters = apart(interface.parameters)
    call = MethodCall(name, base, "kernel", parameters.slots, parameters.attributes)

    def kernel(*inputs: Any, **attributes: Any) -> Any:
        result = call(by_slot(parameters.slots, inputs), attributes)
        return in_order(name, interface.outputs, result)

    kernel.__name__, kernel.__doc__ = name, interface.comment
    kernel.__module__ = base.__module__
    kernel.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        interface.parameters
    )
    operator = Operator(
        kernel,
        name=name,
        outputs=interface.outputs,
        hidden=interface.hidden,
        count=interface.count,
        order=interface.order,
        shape=_shape_rule(name, parts, interface),
        **options,
    )
    operator.output_comments = interface.output_comments
    operator.dispensable_outputs = frozenset(interface.dispensable)
    return operator


def _shape_rule(
    name: str, parts: dict[type[Any], Any], interface: ProtoInterface
) -> Callable[..., Any] | None:
    """Returns the shape rule of the operator class, or of the separate component."""
    base, inferer = parts[OperatorBase], parts.get(ShapeInferer)
    own = "infer_shape" in dir(base)
    if inferer is not None and own:
        raise RegistrationError(
            f"{name}: one shape inferer must be given, got {base.__name__}.infer_shape and "
            f"{inferer.__name__}"
        )
    if inferer is None and not own:
        return None
    component: type[Any] = base if inferer is None else inferer
    method = "infer_shape" if inferer is None else "__call__"
    _require_method(name, component, method)
    parameters = apart(interface.parameters)
    call = MethodCall(name, component, method, parameters.slots, parameters.attributes)

    def shape(*shapes: Any, **attributes: Any) -> Any:
        values = dict(zip((one.name for one in call.slots), shapes, strict=True))
        result = call(values, attributes)
        # The caller of the rule prefixes error messages with the operator's name.
        return None if result is None else in_order("infer_shape", interface.outputs, result)

    shape.__signature__ = call.signature  # type: ignore[attr-defined]
    return shape


# Gradients -------------------------------------------------------------------------------------


def declare_gradient(
    operator: Operator,
    maker: Any,
    known: Iterable[Operator] = (),
    constant: Iterable[str] = (),
) -> None:
    """Declares the gradient of ``operator`` by a gradient maker, a class or a function.

    ``known`` are operators that the maker calls and that may be unregistered, ``constant`` outputs
    without gradients.

    Raises:
        RegistrationError: a function does not take an OpDesc.
    """
    if inspect.isclass(maker) and issubclass(maker, EmptyGradOpDescMaker):
        declare_empty(operator, maker)
    elif inspect.isclass(maker):
        of_calls: Any = maker
        declare_composition(operator, _maker_from(operator, of_calls), known, constant)
    else:
        declare_composition(operator, _called_with(operator, maker), known, constant)


def _maker_from(operator: Operator, maker: type[GradOpDescMaker]) -> DescMaker:
    def make(op_desc: OpDesc, no_grad_set: Iterable[str]) -> Any:
        instance = maker(op_desc, no_grad_set)
        instance.operator = operator  # even if another operator has its name by now
        return instance()

    return make


def _called_with(operator: Operator, maker: Callable[..., Any]) -> DescMaker:
    """Adapts a function of an OpDesc and, if it takes a second argument, the no-grad set."""
    signature = inspect.signature(maker)
    for arguments in ((None, None), (None,)):
        with contextlib.suppress(TypeError):
            signature.bind(*arguments)
            return lambda op_desc, no_grad_set: maker(*(op_desc, no_grad_set)[: len(arguments)])
    raise RegistrationError(
        f"{operator.name}: a gradient maker must take an OpDesc, got {_called(maker)}{signature}"
    )
