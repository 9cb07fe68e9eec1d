"""Components of a registration: classes that each define one aspect of an operator."""

import abc
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from registry.desc import BlockDesc, OpDesc, VarDesc
from registry.errors import ArgumentError, DeclarationError, KindError, nearest
from registry.naming import COTANGENT, matching
from registry.operator.attributes import to_plain
from registry.operator.operator import Operator
from registry.types import VarKind


class _WithAttributes:
    """The attributes of the call that a component processes."""

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        """Creates a component for a call with attributes ``attrs``."""
        self.attrs: dict[str, Any] = dict(attrs)

    def attr(self, name: str) -> Any:
        """Returns an attribute of the call.

        Raises:
            ArgumentError: the operator has no such attribute.
        """
        if name not in self.attrs:
            raise ArgumentError(
                f"{type(self).__name__}: the attributes must be among "
                f"{', '.join(self.attrs) or 'none'}, got {name!r}{nearest(name, self.attrs)}"
            )
        return self.attrs[name]


class OperatorBase(_WithAttributes):
    """The computation of an operator; a subclass defines ``kernel``.

    ``kernel(self, X, Y, *, scale)`` receives the inputs that its parameters name as JAX arrays (a
    list for a duplicable slot, None for an omitted one) and the attributes that its keyword-only
    parameters name; ``self.attr(name)`` returns any attribute. It returns the output, or several as
    a tuple or as a dict by name. If no proto maker declares slots and attributes, its parameters
    do, as those of an ``@op`` kernel.

    A subclass may define ``infer_shape`` with the same parameters: shapes in, shape out. Without
    it, or where it returns None, the shape is that of the kernel's result.

    Attributes:
        outputs: names of the outputs, if no proto maker declares them.
    """

    outputs: ClassVar[Sequence[str]] = ("Out",)

    kernel: Callable[..., Any]


class ShapeInferer(_WithAttributes, abc.ABC):
    """Infers the shapes of outputs; a subclass defines ``__call__``.

    ``__call__(self, X, Y, *, axis)`` receives the shapes of the inputs that its parameters name,
    and returns the shape of the output, several as a tuple or as a dict by name, or None to leave
    it to the kernel.
    """

    @abc.abstractmethod
    def __call__(self, *shapes: Any, **attrs: Any) -> Any:
        """Returns the shape of the output."""


class InplaceHint(abc.ABC):
    """Declares which outputs may reuse the memory of inputs; a subclass defines ``__call__``."""

    @abc.abstractmethod
    def __call__(self, op_desc: OpDesc) -> dict[str, str]:
        """Maps input slots to the outputs that may reuse their memory."""


class VarTypeInferer:
    """Infers the kinds of output variables when a program is built; dense by default.

    A subclass defines ``__call__``: it reads kinds with ``input_kinds`` (or from ``block`` itself)
    and sets them with ``set_output_kind``.
    """

    def __call__(self, op_desc: OpDesc, block: BlockDesc) -> None:
        """Sets the kinds of the outputs of ``op_desc`` in ``block``."""
        for output in op_desc.outputs:
            self.set_output_kind(op_desc, block, output, VarKind.LOD_TENSOR)

    def input_kinds(self, op_desc: OpDesc, block: BlockDesc, slot: str) -> list[VarKind]:
        """Returns the kinds of the variables in an input slot; empty if it is omitted."""
        key = matching(slot, list(op_desc.inputs))
        return [VarKind(block.var(n).kind) for n in op_desc.inputs.get(key or "", [])]

    def set_output_kind(
        self, op_desc: OpDesc, block: BlockDesc, output: str, kind: VarKind
    ) -> None:
        """Sets the kind of the variables of an output.

        Raises:
            KindError: the operator has no such output.
        """
        key = matching(output, list(op_desc.outputs))
        if key is None:
            legal = ", ".join(op_desc.outputs)
            raise KindError(f"the outputs must be among {legal}, got {output!r}")
        for name in op_desc.outputs[key]:
            block.var(name).kind = VarKind(kind)


# Adapters --------------------------------------------------------------------------------------


def parameters_of(method: Callable[..., Any]) -> list[inspect.Parameter]:
    """Returns the parameters of a method without ``self``."""
    return list(inspect.signature(method, eval_str=True).parameters.values())[1:]


class MethodCall:
    """A component's method as a function that an operator calls.

    Its signature has the method's parameters, so that a rule passes only those; attributes are
    passed to the component's constructor.
    """

    def __init__(
        self,
        owner: str,
        component: type[Any],
        method: str,
        slots: Sequence[inspect.Parameter],
        attributes: Sequence[inspect.Parameter],
    ) -> None:
        """Adapts ``component.method``.

        Raises:
            DeclarationError: a parameter of the method is neither a slot nor an attribute.
        """
        self.owner, self.component, self.method = owner, component, method
        parameters = parameters_of(getattr(component, method))
        by_slot = {one.name: one for one in slots}
        self.keywords = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
        named = [one for one in parameters if one.kind is not one.KEYWORD_ONLY]
        names = [one.name for one in named]
        self._refuse_unknown("slot", names, list(by_slot))
        self._refuse_unknown("attribute", self.keywords, [one.name for one in attributes])
        self.slots = [one for one in slots if one.name in names]
        self.order = names
        self.spread = {one.name for one in named if one.kind is one.VAR_POSITIONAL}
        self.attributes = list(attributes)

    def _refuse_unknown(self, what: str, names: Sequence[str], legal: Sequence[str]) -> None:
        for name in names:
            if name not in legal:
                raise DeclarationError(
                    f"{self.owner}: {self.component.__name__}.{self.method} must name {what}s of "
                    f"the operator ({', '.join(legal) or 'none'}), got {name!r}"
                    f"{nearest(name, legal)}"
                )

    @property
    def signature(self) -> inspect.Signature:
        """The parameters of the method, and all attributes."""
        return inspect.Signature([*self.slots, *self.attributes])

    def __call__(self, by_slot: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
        """Calls the method of a new component."""
        positional: list[Any] = []
        for name in self.order:
            if name in self.spread:
                positional += by_slot[name]
            else:
                positional.append(by_slot[name])
        keywords = {name: attributes[name] for name in self.keywords}
        return getattr(self.component(attributes), self.method)(*positional, **keywords)


def by_slot(slots: Sequence[inspect.Parameter], values: Sequence[Any]) -> dict[str, Any]:
    """Maps slots to values; the duplicable slot to the list of remaining ones."""
    result: dict[str, Any] = {}
    for i, slot in enumerate(slots):
        result[slot.name] = list(values[i:]) if slot.kind is slot.VAR_POSITIONAL else values[i]
    return result


def in_order(owner: str, outputs: Sequence[str], result: Any) -> Any:
    """Converts the result of a kernel or shape rule to one value or a flat tuple.

    Raises:
        DeclarationError: the keys of a dict are not the outputs.
    """
    names = [name.removeprefix("*") for name in outputs]
    if isinstance(result, Mapping):
        by_name = {matching(key, names): value for key, value in result.items()}
        if set(by_name) != set(names):
            hint = " (X@GRAD is d_X; outputs = (...) lists fewer)"
            raise DeclarationError(
                f"{owner}: the outputs {', '.join(names)} must be returned, got "
                f"{', '.join(map(str, result)) or 'none'}"
                + (hint if names[0].startswith(COTANGENT) else "")
            )
        result = tuple(by_name[name] for name in names)
        result = result if len(names) > 1 else result[0]
    if not outputs[-1].startswith("*"):
        return result
    listed = [*result] if len(names) > 1 else [result]
    return (*listed[:-1], *listed[-1])


def kinds_by(
    operator: Operator, inferer: type[VarTypeInferer]
) -> Callable[..., tuple[VarKind, ...]]:
    """Adapts a variable-type inferer to a kind rule of ``operator``."""

    def kinds(*slot_kinds: Any, **attributes: Any) -> tuple[VarKind, ...]:
        values = dict(zip(operator.slot_names, slot_kinds, strict=True))
        called = operator.resolved(_flat(slots, slot_kinds), tuple(attributes.values()))
        inputs = {name: _names(name, kind) for name, kind in values.items() if kind is not None}
        outputs = {name: [name] for name in operator.outputs}
        if operator.variadic_output:
            outputs[operator.outputs[-1]] = list(called.outputs[len(operator.outputs) - 1 :])
        desc = OpDesc(
            operator.name,
            {name: list(names) for name, names in inputs.items()},
            outputs,
            {name: to_plain(value) for name, value in attributes.items()},
        )
        block = BlockDesc(
            [
                *(VarDesc(n, kind=k) for names in inputs.values() for n, k in names.items()),
                *(VarDesc(name) for name in called.outputs),
            ]
        )
        try:
            inferer()(desc, block)
            return tuple(VarKind(block.var(name).kind) for name in called.outputs)
        except (KeyError, ValueError) as error:
            reason = error.args[0] if error.args else error
            raise KindError(f"{inferer.__name__} must set a VarKind ({reason})") from error

    several = inspect.Parameter.VAR_POSITIONAL
    slots = [
        inspect.Parameter(
            one.name, several if one.variadic else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        for one in operator.slots
    ]
    keywords = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY) for one in operator.attributes
    ]
    kinds.__signature__ = inspect.Signature([*slots, *keywords])  # type: ignore[attr-defined]
    return kinds


def _flat(slots: Sequence[inspect.Parameter], values: Sequence[Any]) -> tuple[Any, ...]:
    if slots and slots[-1].kind is inspect.Parameter.VAR_POSITIONAL:
        return (*values[:-1], *values[-1])
    return tuple(values)


def _names(slot: str, kind: Any) -> dict[str, VarKind]:
    """Returns the names of the variables in a slot, with their kinds."""
    if isinstance(kind, VarKind):
        return {slot: kind}
    return {f"{slot}.{i}": one for i, one in enumerate(kind)}
