"""Operators of MXNet as functions over the catalogue, with their attributes and shapes.

The positional parameters of such a function are the inputs, under MXNet's names; the keyword-only
parameters are the attributes, with MXNet's types and defaults. The function is called with values
of known shapes (symbols, arrays, variables of programs) and composes operators of the catalogue; it
contains no kernels and no gradients.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from registry.caches import memoized
from registry.errors import SymopError
from registry.operator.attributes import Attribute
from registry.operator.operator import Operator as Registered
from registry.operator.signature import Slot
from registry.table import find as registered
from symop.interop.mxnet import partial_dtypes
from symop.interop.mxnet.attributes import is_hidden, read, written
from symop.interop.mxnet.errors import MXNetError, near, require_known
from symop.interop.mxnet.partial_dtypes import Dtypes
from symop.interop.mxnet.partial_shapes import Shapes
from symop.interop.mxnet.unmapped import reason

Rule = Callable[..., Any]
ZERO, ONE = '["zero", {}]', '["one", {}]'
"""Initializers in MXNet's notation."""
CALL_ERRORS = (
    *(SymopError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    MemoryError,
)
"""The exceptions that a call may raise for invalid attributes or shapes."""
_MANY = 65_536
"""The maximal number of inputs or outputs of an operator."""
_MOST = {
    **dict.fromkeys(("num_args", "num_arrays", "num_outputs", "num_weights"), _MANY),
    **dict.fromkeys(("num_tensors", "num_out_data", "sections"), _MANY),
    "num_layers": 1024,
}
"""The largest values of attributes that count what a call consists of: a file must not create
millions of parts by a few bytes. A layer consists of several operators."""
_KNOWN = 1024
"""The maximal number of cached attribute settings of an operator."""


@dataclasses.dataclass(frozen=True)
class State:
    """Marks an input updated by training: an auxiliary state."""


Aux = Annotated[Any, State()]
"""The type of an input that is an auxiliary state."""


class StateName(str):
    """The name of an auxiliary state, returned by a ``present`` rule if states vary by call."""

    __slots__ = ()


class _States(frozenset[str]):
    """Names of auxiliary states if a rule determines them: such names are ``StateName``s."""

    def __bool__(self) -> bool:
        return True  # a call may have some

    def __contains__(self, name: object) -> bool:
        return isinstance(name, StateName) or super().__contains__(name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """The parts of an operator's declaration other than its function.

    A rule is a function of some of the attributes, by name.

    Attributes:
        present: returns the names of the inputs of a call; defaults to those without a default.
            For an operator with any number of inputs, it may return ``StateName``s.
        outputs: returns the names of the outputs; defaults to a single ``"output"``.
        visible: returns the number of visible outputs; defaults to all.
        shapes: completes in place two lists, its first parameters: the known shapes of inputs and
            of outputs, if some can be inferred from others before all inputs are known.
        dtypes: completes dtypes in the same way: a rule of ``partial_dtypes``, or ``"free"`` for
            the one of this name. By default the output has the dtype of an attribute ``dtype``,
            and without such an attribute all inputs and outputs have the same dtype.
        check: raises for calls that must be rejected although a file may contain them.
        bodies: the number of subgraphs of a call.
        initial: the initializers that MXNet attaches to variables used as inputs.
        ignored: attributes that do not affect results.
        note: the differences from MXNet, for the table of operators.
        calls_back: whether it runs user code on the host.
        at_once: whether a call on arrays is one compiled program, as operators of many steps want.
        direct: the equivalent operator of the catalogue for inputs of one shape and one floating
            dtype, used for the fast path of eager calls.
    """

    present: Rule | None = None
    outputs: Rule | None = None
    visible: Rule | None = None
    shapes: Rule | None = None
    dtypes: Rule | Literal["free"] | None = None
    check: Rule | None = None
    bodies: int = 0
    initial: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ignored: Sequence[str] = ()
    note: str = ""
    calls_back: bool = False
    at_once: bool = False
    direct: Registered | None = None


class Operator:
    """One operator of MXNet.

    Attributes:
        name: MXNet's name.
        function: computes the operator by calls of the catalogue.
        inputs: names of all inputs; the attributes determine those of a call.
        states: names of the inputs that are auxiliary states.
        attributes: the type and default of each attribute; no default if it is required.
        others: the name of the parameter ``**others``, if the function has one: any further
            attributes are accepted as strings.
        variadic: whether the number of inputs varies by call.
        note: the differences from MXNet, for the table of operators.
        calls_back: whether it runs user code on the host.
        at_once: see ``Rules``.
        direct: see ``Rules``.
    """

    def __init__(self, name: str, function: Callable[..., Any], rules: "Rules") -> None:
        """Reads the declaration; see ``operator``."""
        self.name, self.function, self.note = name, function, rules.note
        self.calls_back, self.direct = rules.calls_back, rules.direct
        self.at_once = rules.at_once
        parameters = inspect.signature(function).parameters.values()
        positional = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        self.variadic = any(one.kind is one.VAR_POSITIONAL for one in parameters)
        self.inputs = tuple(one.name for one in positional)
        self.optional = frozenset(one.name for one in positional if one.default is not one.empty)
        self.states = (_States if self.variadic and rules.present else frozenset)(
            one.name
            for one in positional
            if any(isinstance(mark, State) for mark in getattr(one.annotation, "__metadata__", ()))
        )
        self.attributes = {
            one.name: (one.annotation, one.default)
            for one in parameters
            if one.kind is one.KEYWORD_ONLY and one.name != "bodies"
        }
        self.others = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), None)
        self.ignored = frozenset(rules.ignored)
        self.initial, self.bodies = rules.initial, rules.bodies
        self._present, self._visible = self._rule(rules.present), self._rule(rules.visible)
        self._outputs, self._check = self._rule(rules.outputs), self._rule(rules.check)
        self._known: dict[Any, Mapping[str, Any]] = {}
        self._shape_rule = self._rule(rules.shapes, leading=2)
        dtypes = partial_dtypes.free if rules.dtypes == "free" else rules.dtypes
        default = partial_dtypes.told if "dtype" in self.attributes else partial_dtypes.same
        self._dtype_rule = self._rule(dtypes or default, leading=2)

    def _rule(self, rule: Rule | None, leading: int = 0) -> Any:
        """``rule`` as a function of its leading arguments and of all attributes."""
        if rule is None:
            return None
        names = list(inspect.signature(rule).parameters)[leading:]
        if not set(names) <= {*self.attributes, self.others, "count"}:
            raise TypeError(f"{self.name}: a rule must name attributes, got {names}")

        def call(*given: Any) -> Any:
            *lead, values = given
            return rule(*lead, **{name: values[name] for name in names})

        return call

    def __repr__(self) -> str:
        return f"<Operator {self.name}>"

    # Attributes

    def written(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Attributes of a call in the form used by files.

        None is omitted if it is not a value of the attribute but stands for its default. Further
        attributes are written by ``str``, as in MXNet.
        """
        own = given.keys() if self.others is None else {*self.attributes, *self.ignored}
        return {
            name: written(one) if name in own else str(one)
            for name, one in given.items()
            if one is not None or name not in own or self._takes_none(name)
        }

    def _takes_none(self, name: str) -> bool:
        kind, _ = self.attributes.get(name, (None, None))
        return types.NoneType in typing.get_args(kind)

    def read(self, attributes: Mapping[str, str], count: int = 0) -> Mapping[str, Any]:
        """Parses all attributes from strings, with a cache for equal strings.

        Args:
            attributes: as in a file; those between double underscores do not belong to the
                operator.
            count: the number of inputs of the call, for a variadic operator.

        Raises:
            MXNetError: an attribute is unknown, missing or malformed.
        """
        key = count, frozenset(attributes.items())
        result = self._known.get(key)
        if result is None:
            if len(self._known) > _KNOWN:
                self._known.clear()
            result = self._known[key] = types.MappingProxyType(self._read(attributes, count))
        return result

    def _read(self, attributes: Mapping[str, str], count: int) -> dict[str, Any]:
        given = {k: v for k, v in attributes.items() if not is_hidden(k) and k not in self.ignored}
        rest = {name: text for name, text in given.items() if name not in self.attributes}
        if self.others is None:
            require_known(f"{self.name}: attributes", rest, self.attributes)
        values: dict[str, Any] = {"count": count}
        if self.others is not None:
            values[self.others] = rest
        for name, (kind, default) in self.attributes.items():
            if name in given:
                values[name] = self._one(name, kind, given[name])
            elif default is not inspect.Parameter.empty:
                values[name] = default
            elif name == "num_args":
                values[name] = count
            else:
                raise MXNetError(f"{self.name}: {name} must be given, got none")
        for name, most in _MOST.items():
            if name in self.attributes and not 0 <= (values[name] or 0) <= most:
                raise MXNetError(
                    f"{self.name}: {name} must be between 0 and {most}, got {values[name]}"
                )
        return values

    def _one(self, name: str, kind: Any, text: str) -> Any:
        try:
            return read(kind, text)
        except ValueError as error:
            raise MXNetError(f"{self.name}: {name} must be {error}, got {text!r}") from None

    # Properties that depend on attributes

    def present(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of the inputs of a call with these attributes."""
        if self._present is not None:
            return tuple(self._present(values))
        if self.variadic:
            count = values.get("num_args", values["count"])
            return (*self.inputs, *[f"arg{i}" for i in range(count - len(self.inputs))])
        return tuple(name for name in self.inputs if name not in self.optional)

    def check(self, values: Mapping[str, Any]) -> None:
        """Rejects a call with these attributes if it must not be made."""
        if self._check is not None:
            self._check(values)

    def outputs(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of all outputs, hidden ones last."""
        return ("output",) if self._outputs is None else tuple(self._outputs(values))

    def visible(self, values: Mapping[str, Any]) -> int:
        """The number of visible outputs."""
        return len(self.outputs(values)) if self._visible is None else self._visible(values)

    def call(
        self,
        inputs: Sequence[Any],
        values: Mapping[str, Any],
        bodies: Sequence[Callable[..., Any]] = (),
    ) -> tuple[Any, ...]:
        """Computes the visible outputs from values of known shapes.

        Args:
            inputs: the present inputs.
            values: the attributes.
            bodies: the graphs called by control flow, as functions of a list.
        """
        return self.prepared(values, bodies)(inputs)

    def prepared(
        self, values: Mapping[str, Any], bodies: Sequence[Callable[..., Any]] = ()
    ) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        """``call`` with these attributes, as a function of the inputs."""
        attributes = {name: values[name] for name in self.attributes}
        if self.others is not None:
            attributes.update(values[self.others])
        if bodies:
            attributes["bodies"] = bodies
        names = None if self.variadic else self.present(values)
        compute, count = self.function, None if names is None else len(names)
        if names is not None and names != self.inputs[:count]:
            compute = _by_name(compute, names)

        def run(inputs: Sequence[Any]) -> tuple[Any, ...]:
            if count is not None and len(inputs) != count:
                raise MXNetError(f"{self.name}: {count} inputs must be given, got {len(inputs)}")
            try:
                found = compute(*inputs, **attributes)
            except MXNetError:
                raise
            except CALL_ERRORS as error:
                raise MXNetError(f"{self.name}: {said(error)}") from error
            return tuple(found) if isinstance(found, (tuple, list)) else (found,)

        return run

    def fill(self, given: Shapes, found: Shapes, values: Mapping[str, Any]) -> None:
        """Completes ``given`` and ``found`` by inference in both directions.

        Args:
            given: known shapes of the inputs.
            found: known shapes of the outputs.
            values: the attributes.
        """
        if self._shape_rule is not None:
            self._tell(self._shape_rule, given, found, values)

    def fill_dtypes(self, given: Dtypes, found: Dtypes, values: Mapping[str, Any]) -> None:
        """Completes dtypes as ``fill`` completes shapes."""
        self._tell(self._dtype_rule, given, found, values)

    def _tell(self, rule: Rule, *args: Any) -> None:
        try:
            rule(*args)
        except MXNetError:
            raise
        except CALL_ERRORS as error:
            raise MXNetError(f"{self.name}: {said(error)}") from error


TABLE: dict[str, Operator] = {}
"""All operators by name, including aliases."""


def operator(*names: str, **rules: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares an MXNet operator called ``names``, of which the first is its own name.

    Args:
        names: its name and its aliases.
        **rules: the fields of ``Rules``.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        made = Operator(names[0], function, Rules(**rules))
        for name in names:
            if name in TABLE:
                raise TypeError(f"{name}: an operator must be declared once, got another")
            TABLE[name] = made
        return function

    return declare


def find(name: str) -> Operator:
    """The operator that MXNet calls ``name``.

    Raises:
        MXNetError: it is not mapped.
    """
    result = TABLE.get(name)
    if result is not None:
        return result
    own = registered(name)
    if own is None or own.catalogued:
        told = reason(name) or near(name, TABLE)
        raise MXNetError(f"{name}: no such operator is mapped{told}")
    return _of_user(own)


@memoized(1024)
def _of_user(own: Registered) -> Operator:
    """Wraps an operator that a user declared for symop, for example by ``register_simple_op``."""
    kind = inspect.Parameter

    def positional(slot: Slot) -> inspect.Parameter:
        default = None if slot.optional else kind.empty
        annotation = Aux if slot.role == "state" else Any
        return kind(slot.name, kind.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)

    def keyword(one: Attribute) -> inspect.Parameter:
        default = kind.empty if one.required else one.default
        return kind(one.name, kind.KEYWORD_ONLY, default=default, annotation=one.annotation)

    def function(*args: Any, **given: Any) -> Any:
        return own(*args, **given)

    function.__doc__ = own.__doc__
    slots = [positional(one) for one in own.slots if not one.implicit]
    attributes = [keyword(one) for one in own.attributes]
    function.__signature__ = inspect.Signature([*slots, *attributes])  # type: ignore[attr-defined]
    names = [own.outputs[i] for i in own.visible]
    return Operator(own.name, function, Rules(outputs=lambda: names))


def _by_name(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """``function`` as a function of the inputs ``names``, in this order."""

    def call(*inputs: Any, **attributes: Any) -> Any:
        return function(**dict(zip(names, inputs, strict=True)), **attributes)

    return call


def said(error: Exception) -> str:
    """The message of an error, with the type of errors that are not symop's."""
    return str(error) if isinstance(error, SymopError) else f"{type(error).__name__}: {error}"
