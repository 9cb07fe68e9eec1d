"""Operator: one name of MXNet as a function over the catalogue, with its attributes and shapes.

The function's positional parameters are the inputs, under MXNet's names, its keyword-only ones the
attributes, whose types say how they are read and whose defaults are MXNet's. It is called with
values whose shapes are known (symbols, arrays, variables of programs) and composes them by calls of
the catalogue: no kernel and no gradient stands here.
"""

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from registry.attributes import Attribute
from registry.errors import SymopError
from registry.operator import Operator as Registered
from registry.signature import Slot
from registry.table import find as registered
from symop.interop.mxnet import partial_dtypes
from symop.interop.mxnet.attributes import is_hidden, read, written
from symop.interop.mxnet.errors import MXNetError, near, require_known
from symop.interop.mxnet.partial_dtypes import Dtypes
from symop.interop.mxnet.partial_shapes import Shapes
from symop.interop.mxnet.unmapped import reason

Rule = Callable[..., Any]
ZERO, ONE = '["zero", {}]', '["one", {}]'
"""Initializers as MXNet writes them."""
CALL_ERRORS = (SymopError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
"""What a call may raise whose attributes or shapes make no sense."""
_COUNTS = ("num_args", "num_arrays", "num_outputs", "num_weights", "num_tensors", "num_out_data")
_MANY = 65_536
"""An operator has no more inputs or outputs."""
_KNOWN = 1024
"""So many settings of the attributes of an operator are remembered."""


@dataclasses.dataclass(frozen=True)
class State:
    """Marks an input that training updates: an auxiliary state."""


Aux = Annotated[Any, State()]
"""The type of an input that is an auxiliary state."""


class StateName(str):
    """The name of an auxiliary state, as a ``present`` rule gives it where calls differ in them."""

    __slots__ = ()


class _States(frozenset[str]):
    """Names of auxiliary states, where a rule gives some: these tell it themselves."""

    def __bool__(self) -> bool:
        return True  # a call may have some

    def __contains__(self, name: object) -> bool:
        return isinstance(name, StateName) or super().__contains__(name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """What a declaration says beside its function.

    A rule is a function of some of the attributes, by name.

    Attributes:
        present: gives the names of the inputs of a call; without it, those without a default. Of
            an operator that takes any number it may give ``StateName``.
        outputs: gives the names of the outputs; without it, there is one, ``"output"``.
        visible: gives the number of outputs that users see; without it, all.
        shapes: completes in place two lists, its first parameters: what is known of the shapes of
            inputs and of outputs, where one tells the other before all inputs are known.
        dtypes: completes dtypes likewise, a rule of ``partial_dtypes``, or ``"free"`` for the one
            of this name. Without it, the output has that of an attribute ``dtype``, and where
            there is none, all inputs and outputs are of one dtype.
        check: raises where a call must not be made, which a file may hold nevertheless.
        bodies: how many subgraphs a call has.
        initial: for variables that become some input, the initializer that MXNet attaches.
        ignored: attributes that change no result.
        note: in what it differs from MXNet, for the table of operators.
        calls_back: whether it runs code of the user's on the host.
        direct: the operator of the catalogue that it is, where all inputs are of one shape and one
            floating dtype; what eager calls of it take the short way by.
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
    direct: Registered | None = None


class Operator:
    """One operator of MXNet.

    Attributes:
        name: MXNet's name.
        function: what it computes, by calls of the catalogue.
        inputs: names of all inputs; those that a call has follow from its attributes.
        states: names of the inputs that are auxiliary states.
        attributes: for each attribute its type and its default; no default, no entry to leave out.
        others: where the function has ``**others``, that name: it takes any further attributes, as
            the strings that they are.
        variadic: whether the number of inputs is that of the call.
        note: in what it differs from MXNet, for the table of operators.
        calls_back: whether it runs code of the user's on the host.
        direct: see ``Rules``.
    """

    def __init__(self, name: str, function: Callable[..., Any], rules: "Rules") -> None:
        """Read the declaration; see ``operator``."""
        self.name, self.function, self.note = name, function, rules.note
        self.calls_back, self.direct = rules.calls_back, rules.direct
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
        """``rule`` as a function of what leads and of all attributes, of which it takes some."""
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
        """Attributes of a call as a file has them.

        None is left out where it is no value of the attribute, but a word for its default. Those
        that it takes beside its own are written as ``str`` does, as MXNet hands them on.
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
        """Values of all attributes, from strings; those of equal ones are read once.

        Args:
            attributes: as in a file; those between double underscores are none of the operator's.
            count: how many inputs the call has, for an operator that takes any number.

        Raises:
            MXNetError: one is unknown, missing or written wrong.
        """
        key = count, frozenset(attributes.items())
        found = self._known.get(key)
        if found is None:
            if len(self._known) > _KNOWN:
                self._known.clear()
            found = self._known[key] = types.MappingProxyType(self._read(attributes, count))
        return found

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
        for name in _COUNTS:
            if name in self.attributes and not 0 <= (values[name] or 0) <= _MANY:
                raise MXNetError(
                    f"{self.name}: {name} must be between 0 and {_MANY}, got {values[name]}"
                )
        return values

    def _one(self, name: str, kind: Any, text: str) -> Any:
        try:
            return read(kind, text)
        except ValueError as error:
            raise MXNetError(f"{self.name}: {name} must be {error}, got {text!r}") from None

    # What follows from them

    def present(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of the inputs that a call with these attributes has."""
        if self._present is not None:
            return tuple(self._present(values))
        if self.variadic:
            count = values.get("num_args", values["count"])
            return (*self.inputs, *[f"arg{i}" for i in range(count - len(self.inputs))])
        return tuple(name for name in self.inputs if name not in self.optional)

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse a call with these attributes, if that is known before it runs."""
        if self._check is not None:
            self._check(values)

    def outputs(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of all outputs, hidden ones at the end."""
        return ("output",) if self._outputs is None else tuple(self._outputs(values))

    def visible(self, values: Mapping[str, Any]) -> int:
        """How many outputs users see."""
        return len(self.outputs(values)) if self._visible is None else self._visible(values)

    def call(
        self,
        inputs: Sequence[Any],
        values: Mapping[str, Any],
        bodies: Sequence[Callable[..., Any]] = (),
    ) -> tuple[Any, ...]:
        """The visible outputs, of values whose shapes are known.

        Args:
            inputs: those that are present.
            values: the attributes.
            bodies: the graphs that control flow calls, as functions of a list.
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
        """Enter into ``given`` and ``found`` what each tells of the other.

        Args:
            given: shapes of the inputs as far as they are known.
            found: shapes of the outputs as far as they are known.
            values: the attributes.
        """
        if self._shape_rule is not None:
            self._tell(self._shape_rule, given, found, values)

    def fill_dtypes(self, given: Dtypes, found: Dtypes, values: Mapping[str, Any]) -> None:
        """The same of dtypes."""
        self._tell(self._dtype_rule, given, found, values)

    def _tell(self, rule: Rule, *args: Any) -> None:
        try:
            rule(*args)
        except MXNetError:
            raise
        except CALL_ERRORS as error:
            raise MXNetError(f"{self.name}: {said(error)}") from error


TABLE: dict[str, Operator] = {}
"""All operators by name, other names of theirs among them."""


def operator(*names: str, **rules: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare what MXNet calls ``names``, the first one being its own name.

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
        MXNetError: there is none here.
    """
    found = TABLE.get(name)
    if found is not None:
        return found
    own = registered(name)
    if own is None or own.catalogued:
        told = reason(name) or near(name, TABLE)
        raise MXNetError(f"{name}: no such operator is mapped{told}")
    return _of_user(own)


@functools.lru_cache(maxsize=1024)
def _of_user(own: Registered) -> Operator:
    """An operator that a user declared for symop, such as a ``register_simple_op``, as one here."""
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
    """``function`` of some of its inputs, in the order of ``names``."""

    def call(*inputs: Any, **attributes: Any) -> Any:
        return function(**dict(zip(names, inputs, strict=True)), **attributes)

    return call


def said(error: Exception) -> str:
    """What an error says; an error of Python's own is named."""
    return str(error) if isinstance(error, SymopError) else f"{type(error).__name__}: {error}"
