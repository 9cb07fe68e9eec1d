"""Operator: one declaration from which calls, inference, gradients, tests and pages follow."""

import enum
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, overload

from registry import infer, var
from registry.attributes import REQUIRED
from registry.cases import Case, Misuse
from registry.errors import (
    ArgumentError,
    DeclarationError,
    RegistrationError,
    UnknownOperatorError,
    nearest,
)
from registry.rule import Rule
from registry.signature import Slot, read_signature
from registry.types import VarType
from registry.var import Attributes, Inputs, Var

Grads = dict[str, Any]
"""What a gradient maker returns: by slot, the gradient, a list of them, or None for a zero."""
Function = TypeVar("Function", bound=Callable[..., Any])


class _Left:
    """Stands in an input slot that a call left out, until the emitter fills it."""

    def __repr__(self) -> str:
        return "LEFT_OUT"


LEFT_OUT = _Left()


class Derivative(enum.Enum):
    """What is known of an operator's derivative."""

    MAKER = "a gradient maker composes it"
    ZERO = "zero by definition"
    UNDEFINED = "undefined by definition"
    MISSING = "not implemented"


class Operator:
    """One operator: its kernel, slots, attributes, outputs and rules.

    Call it on JAX arrays, symbols or any other ``Var``; the result is of the same kind.
    """

    def __init__(  # noqa: PLR0913  # a declaration has as many parts as it has
        self,
        kernel: Callable[..., Any],
        *,
        name: str | None = None,
        outputs: Sequence[str] = ("out",),
        hidden: Sequence[str] = (),
        updates: Mapping[str, str] | None = None,
        shape: Callable[..., Any] | None = None,
        dtype: Callable[..., Any] | None = None,
        cases: Sequence[Case | Misuse] = (),
        reference: Callable[..., Any] | None = None,
        infix: str | None = None,
        aliases: Sequence[str] = (),
        commutative: bool = False,
        foldable: bool = False,
        rearranges: bool = False,
        native: bool | None = None,
    ) -> None:
        """Declare the operator that ``kernel`` computes; ``op`` documents the options."""
        self.name = name or kernel.__name__
        self.kernel = kernel
        self.__doc__ = kernel.__doc__
        self.__module__ = kernel.__module__
        self.slots, self.attributes = read_signature(kernel)
        self.outputs = tuple(outputs)
        self.updates = dict(updates or {})
        self.hidden = frozenset([*hidden, *self.updates.values()])
        self.cases = [c for c in cases if isinstance(c, Case)]
        self.misuses = [c for c in cases if isinstance(c, Misuse)]
        self.reference = reference
        self.infix, self.aliases = infix, tuple(aliases)
        self.commutative, self.foldable = commutative, foldable
        self.rearranges = rearranges
        # native: JAX may differentiate the kernel where the maker would serve. That is known of the
        # catalogue, whose proofs compare the two; of other operators only if they say so.
        # compared: the proofs compare the two, unless the declaration says that they differ.
        catalogued = (kernel.__module__ or "").startswith("registry.ops.")
        self.native = catalogued if native is None else native
        self.compared = native is not False
        self.derivative = Derivative.MISSING
        self.reason = "no gradient maker is registered"
        self.gradient_rule: Rule | None = None
        self.simplify_rule: Rule | None = None
        self.inference = infer.Inference(self, shape, dtype)
        self._check()
        self._prepare()

    def _check(self) -> None:
        slots = [slot.name for slot in self.slots]
        for state, output in self.updates.items():
            if state not in slots or output not in self.outputs:
                raise DeclarationError(
                    f"{self.name}: an update must name a slot and an output, got {state}: {output}"
                )
        for i, slot in enumerate(self.slots):
            if slot.variadic and i + 1 < len(self.slots):
                raise DeclarationError(f"{self.name}: the variadic slot must be the last one")
        unknown = self.hidden - set(self.outputs)
        if unknown:
            raise DeclarationError(f"{self.name}: hidden outputs {sorted(unknown)} do not exist")

    def _prepare(self) -> None:
        """Compute once what every call needs."""
        self.slot_names = tuple(slot.name for slot in self.slots)
        self.slot_index = {name: i for i, name in enumerate(self.slot_names)}
        self.attribute_index = {a.name: i for i, a in enumerate(self.attributes)}
        self.variadic = bool(self.slots) and self.slots[-1].variadic
        self.n_fixed = len(self.slots) - self.variadic
        self.positional = tuple(slot for slot in self.slots if not slot.implicit)
        self.visible = tuple(i for i, o in enumerate(self.outputs) if o not in self.hidden)
        self.single = len(self.outputs) == 1
        self.stateful = bool(self.updates)
        self.update_indices = {
            self.slot_index[slot]: self.outputs.index(output)
            for slot, output in self.updates.items()
        }
        self.use_flags = {
            self.slot_index[slot.name]: self.attribute_index[f"use_{slot.name}"]
            for slot in self.slots
            if f"use_{slot.name}" in self.attribute_index
        }
        roles = [slot.role for slot in self.slots]
        self.training_index = roles.index("training") if "training" in roles else None
        self.creates = any(slot.created for slot in self.slots)
        self.fillable = self.creates or any(slot.implicit for slot in self.slots)
        plain = all(s.role == "input" and not (s.optional or s.variadic) for s in self.slots)
        defaults = tuple(attribute.default for attribute in self.attributes)
        self._direct_count = len(self.slots) if plain and REQUIRED not in defaults else -1
        self._defaults = defaults

    # Calls -------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the operator; inputs by position or by slot name, attributes by keyword.

        Attributes may follow the inputs by position too, in declared order. ``name=`` names the
        node when the inputs are symbols.

        Raises:
            ArgumentError: a slot is missing or one too many is filled, or an attribute is unknown.
            AttributeTypeError, AttributeValueError: an attribute's value is not allowed.
            ShapeError, DTypeError: the inputs do not fit together.
        """
        if not kwargs and len(args) == self._direct_count:
            for value in args:
                if value is None:
                    break  # refused below
            else:
                return var.emitter_of(args).emit(self, args, self._defaults, None)
        inputs, attributes, name = self.bind(args, kwargs)
        return var.emitter_of(inputs).emit(self, inputs, attributes, name)

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Inputs, Attributes, str | None]:
        """Sort a call's arguments into inputs (flat, ``LEFT_OUT`` where none), attributes, name."""
        filled: dict[str, Any] = {}
        rest: tuple[Any, ...] = ()
        fixed = [slot for slot in self.positional if not slot.variadic]
        for slot, value in zip(fixed, args, strict=False):
            filled[slot.name] = value
        beyond = args[len(fixed) :]
        given: dict[str, Any] = {}
        if self.variadic:
            rest, beyond = _spread(beyond)
        for attribute, value in zip(self.attributes, beyond, strict=False):
            given[attribute.name] = value
        if len(beyond) > len(self.attributes):
            raise ArgumentError(self._count_message(len(args)))
        name = kwargs.pop("name", None) if "name" not in self.attribute_index else None
        for key, value in kwargs.items():
            rest = self._keyword(key, value, filled, given, rest)
        attributes = self._canonical(given)
        fixed_values = self._fixed(filled, attributes)
        if self.variadic and not rest:
            raise ArgumentError(f"{self.name}: at least one input must be given, got none")
        if any(value is None for value in rest):
            raise ArgumentError(f"{self.name}: every input must be filled, got None")
        return (*fixed_values, *rest), attributes, name

    def _keyword(
        self,
        key: str,
        value: Any,
        filled: dict[str, Any],
        given: dict[str, Any],
        rest: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        """Put one keyword argument where it belongs; returns the variadic inputs."""
        if key in self.slot_index:
            if key in filled or (rest and self.slots[self.slot_index[key]].variadic):
                raise ArgumentError(f"{self.name}: slot {key!r} must be filled once, got it twice")
            if self.slots[self.slot_index[key]].variadic:
                return tuple(value)
            filled[key] = value
        elif key in self.attribute_index:
            if key in given:
                raise ArgumentError(f"{self.name}: attribute {key!r} must be given once")
            given[key] = value
        else:
            legal = [*self.slot_names, *self.attribute_index]
            raise ArgumentError(
                f"{self.name}: attributes must be among "
                f"{', '.join(self.attribute_index) or 'none'}, got {key!r}{nearest(key, legal)}"
            )
        return rest

    def _canonical(self, given: Mapping[str, Any]) -> Attributes:
        values = []
        for attribute in self.attributes:
            if attribute.name in given:
                values.append(attribute.canonical(given[attribute.name], self.name))
            elif attribute.default is REQUIRED:
                raise ArgumentError(
                    f"{self.name}: attribute {attribute.name!r} must be given, got none"
                )
            else:
                values.append(attribute.default)
        return tuple(values)

    def _fixed(self, filled: Mapping[str, Any], attributes: Attributes) -> list[Any]:
        """The values of the slots before the variadic one; what the call left out is marked."""
        values: list[Any] = []
        for i, slot in enumerate(self.slots[: self.n_fixed]):
            value = filled.get(slot.name, LEFT_OUT)
            flag = self.use_flags.get(i)
            if flag is not None and not attributes[flag]:
                if value is not LEFT_OUT and value is not None:
                    raise ArgumentError(
                        f"{self.name}: slot {slot.name!r} must be left out when "
                        f"use_{slot.name}=False, got it"
                    )
                value = None
            elif flag is None and slot.optional and value is LEFT_OUT:
                value = None
            elif value is LEFT_OUT and not (slot.created or slot.implicit):
                raise ArgumentError(self._count_message(len(filled)))
            elif value is None and (flag is not None or not slot.optional):
                hint = f"; pass use_{slot.name}=False to do without" if flag is not None else ""
                raise ArgumentError(
                    f"{self.name}: slot {slot.name!r} must be filled, got None{hint}"
                )
            values.append(value)
        return values

    def _count_message(self, count: int) -> str:
        names = ", ".join(
            f"*{s.name}" if s.variadic else f"{s.name}?" if s.optional or s.created else s.name
            for s in self.positional
        )
        return f"{self.name}: the inputs must be ({names}), got {count}"

    # Meaning -----------------------------------------------------------------------------------

    def run(self, inputs: Inputs, attributes: Attributes) -> Any:
        """The kernel on arrays; a tuple when the operator has several outputs."""
        return self.kernel(*inputs, **self.attribute_dict(attributes))

    def attribute_dict(self, attributes: Attributes) -> dict[str, Any]:
        """Attributes by name."""
        return {a.name: value for a, value in zip(self.attributes, attributes, strict=True)}

    def infer(self, types: tuple[VarType | None, ...], attributes: Attributes) -> infer.Types:
        """Types of the outputs for inputs of ``types``; None stands for an absent input.

        Raises:
            ShapeError, DTypeError, KindError: the inputs do not fit together.
        """
        return self.inference(types, attributes)

    def slot_of(self, index: int) -> Slot:
        """The slot that the input at ``index`` of the flat inputs fills."""
        return self.slots[min(index, len(self.slots) - 1)]

    def input_groups(self, inputs: Sequence[Any]) -> list[tuple[Slot, list[Any]]]:
        """The inputs by slot: one each, all the rest for a variadic slot, none where absent."""
        groups = [(s, [v]) for s, v in zip(self.slots, inputs[: self.n_fixed], strict=False)]
        if self.variadic:
            groups.append((self.slots[-1], list(inputs[self.n_fixed :])))
        return [(slot, [v for v in values if v is not None]) for slot, values in groups]

    # Declarations ------------------------------------------------------------------------------

    def gradient(self, maker: Function) -> Function:
        """Declare the gradient maker: from inputs, outputs and cotangents to input gradients.

        The maker returns a dict by slot and is linear in the cotangents ``d_<output>``.

        Raises:
            DeclarationError: the operator has a derivative already, or a parameter is misnamed.
        """
        self._once(Derivative.MAKER, "a gradient maker composes it")
        cotangents = [o for o in self.outputs if o not in self.updates.values()]
        self.gradient_rule = Rule(
            self.name, maker, self.slots, self.attributes, self.outputs, cotangents
        )
        return maker

    def zero_gradient(self, reason: str) -> None:
        """Declare that the derivative is zero wherever it exists, and why."""
        self._once(Derivative.ZERO, reason)

    def no_gradient(self, reason: str) -> None:
        """Declare that the operator has no derivative by its nature, and why."""
        self._once(Derivative.UNDEFINED, reason)

    def _once(self, derivative: Derivative, reason: str) -> None:
        if self.derivative is not Derivative.MISSING:
            raise DeclarationError(f"{self.name}: its derivative is declared twice")
        self.derivative, self.reason = derivative, reason

    def simplify(self, rule: Function) -> Function:
        """Declare a rewrite tried at each symbolic call: an equal value, or None for no change."""
        self.simplify_rule = Rule(self.name, rule, self.slots, self.attributes)
        return rule

    def complete(self, rule: Function) -> Function:
        """Declare how the shapes of some inputs follow from the others.

        The rule names slots and attributes (and outputs), receives their shapes or None where
        unknown, and returns the shapes that it can tell, by slot.
        """
        self.inference.complete_rule = Rule(
            self.name, rule, self.slots, self.attributes, self.outputs
        )
        return rule

    def kind(self, rule: Function) -> Function:
        """Declare the variable kind of the outputs from the kinds of inputs and the attributes."""
        self.inference.kind_rule = Rule(self.name, rule, self.slots, self.attributes)
        return rule

    # Looks -------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<operator {self.signature()}>"

    def signature(self) -> str:
        """The call as text: ``softmax(x, *, axis=-1)``."""
        slots = [f"*{s.name}" if s.variadic else s.name for s in self.positional]
        attributes = [
            a.name if a.default is REQUIRED else f"{a.name}={a.default!r}" for a in self.attributes
        ]
        star = ["*"] if attributes and not self.variadic else []
        return f"{self.name}({', '.join([*slots, *star, *attributes])})"

    def __reduce__(self) -> tuple[Any, ...]:
        return get, (self.name,)


def _spread(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Split positional values into those of a variadic slot and those after them."""
    if values and isinstance(values[0], (list, tuple)):
        return tuple(values[0]), values[1:]
    return values, ()


# The table -------------------------------------------------------------------------------------

_table: dict[str, Operator] = {}
_aliases: dict[str, str] = {}
_lock = threading.Lock()


def register(operator: Operator, *, replace: bool = False) -> Operator:
    """Enter ``operator`` and its aliases into the one table of names.

    Raises:
        RegistrationError: a name is taken and ``replace`` is false.
    """
    with _lock:
        for name in (operator.name, *operator.aliases):
            taken = name in _table or name in _aliases
            if taken and not (replace and name == operator.name):
                raise RegistrationError(
                    f"{name}: an operator must be registered once, got a second one; "
                    "pass replace=True to replace it"
                )
        _table[operator.name] = operator
        _aliases.update(dict.fromkeys(operator.aliases, operator.name))
        if operator.infix is not None:
            var.infix[operator.infix] = operator
    return operator


@overload
def op(kernel: Callable[..., Any], *, replace: bool = False) -> Operator: ...


@overload
def op(
    *,
    replace: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], Operator]: ...


def op(
    kernel: Callable[..., Any] | None = None,
    *,
    replace: bool = False,
    **options: Any,
) -> Operator | Callable[[Callable[..., Any]], Operator]:
    """Declare an operator by its kernel, a function on JAX arrays.

    Positional parameters are input slots, keyword-only ones attributes, the docstring is its page.

    Args:
        kernel: the function, when the decorator is used without options.
        replace: replace an operator of the same name on purpose.
        **options: ``name``; ``outputs`` (names, default ``("out",)``); ``hidden`` (outputs that a
            caller does not see); ``updates`` (state slot -> output that holds its new value);
            ``shape`` and ``dtype`` (rules; without them the kernel is traced for its result's
            type); ``cases``; ``reference`` (the same function in NumPy or SciPy); ``infix``
            (Python's operator); ``aliases``; ``commutative``; ``foldable`` (may be computed on
            constants while a graph is built); ``rearranges`` (every entry of the result is an entry
            of an input, so a constant stays that constant); ``native`` (whether JAX's derivative of
            the kernel is the declared one, so that graphs which hold their gradient may run the
            bare kernel; only operators of the catalogue default to true).

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import Array, case, op
        >>> @op(name="doc_cube", cases=[case(x=(3,))])
        ... def cube(x: Array) -> Array:
        ...     "Cube of each entry."
        ...     return x * x * x
        >>> @cube.gradient
        ... def cube_gradient(x, d_out):
        ...     return {"x": 3.0 * x * x * d_out}
        >>> float(cube(jnp.asarray(2.0)))
        8.0
    """
    if kernel is not None:
        return register(Operator(kernel), replace=replace)
    return lambda function: register(Operator(function, **options), replace=replace)


def get(name: str) -> Operator:
    """The operator called ``name``, or of which ``name`` is an alias.

    Raises:
        UnknownOperatorError: there is none; the message suggests the nearest names.
    """
    found = find(name)
    if found is None:
        raise UnknownOperatorError(
            f"{name}: no operator has this name{nearest(name, [*_table, *_aliases])}"
        )
    return found


def find(name: str) -> Operator | None:
    """The operator called ``name``, or None."""
    return _table.get(name) or _table.get(_aliases.get(name, ""))


def names(*, aliases: bool = False) -> list[str]:
    """Every operator's name in alphabetical order, with aliases when asked for."""
    return sorted([*_table, *(_aliases if aliases else ())])


def operators() -> Iterable[Operator]:
    """Every operator in alphabetical order."""
    return [_table[name] for name in sorted(_table)]


var.methods = find


def is_symbolic(values: Inputs) -> bool:
    """Whether any of ``values`` is a ``Var``."""
    return any(isinstance(value, Var) for value in values)
