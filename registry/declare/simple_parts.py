"""The parts of a SimpleOp: its functions, what they name, and the operators that they make."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from registry.cases import Case, Misuse
from registry.declare.environment import EnvArguments, Request, resources
from registry.errors import ArgumentError, DeclarationError, ShapeError, SymopError, nearest
from registry.kernel_gradients import differentiate_kernel
from registry.naming import COTANGENT
from registry.operator import Derivative, Operator
from registry.shapes import all_alike, listed
from registry.signature import Array, Key
from registry.types import Shape

ENV, KEY, OUT, OUT_VALUE, OUT_GRAD = "env", "key", "out", "out_value", "out_grad"
_RESERVED = (KEY, OUT, OUT_VALUE, OUT_GRAD)
_IN_DATA = ("in_data0", "in_data1")
_OPERANDS = ("lhs", "rhs")
Device = str | None
"""For which platform a function is; None for every one that has no function of its own."""
ORDERS = ("array_scalar", "scalar_array")

_INPLACE = {"in_out": ("function", 1), "lhs_out": ("function", 2)}
_INPLACE_GRADIENT = {"out_in": ("gradient", 1), "out_lhs": ("gradient", 2)}
_WORDS = {**_INPLACE, **_INPLACE_GRADIENT}
"""In-place options: to which function each belongs, and of how many inputs."""


class Part(NamedTuple):
    """One function of an operator.

    Attributes:
        function: the function itself.
        parameters: names of its parameters, ``env`` among them if it takes that.
        inplace: the in-place option given with it.
    """

    function: Callable[..., Any]
    parameters: tuple[str, ...]
    inplace: str = "none"

    @property
    def names(self) -> tuple[str, ...]:
        """What it takes beside ``env``."""
        return tuple(name for name in self.parameters if name != ENV)

    def __call__(self, values: Iterable[Any], env: EnvArguments) -> Any:
        """The function of ``values``, with ``env`` in its place."""
        supply = iter(values)
        return self.function(*[env if name == ENV else next(supply) for name in self.parameters])


def read_part(owner: str, what: str, function: Callable[..., Any], inplace: str = "none") -> Part:
    """``function`` with the names of its parameters.

    Raises:
        DeclarationError: a parameter cannot be filled by position, or the in-place option is wrong.
    """
    _require_option(owner, what, inplace)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise DeclarationError(
            f"{owner}: the {what} must be a function whose parameters Python can tell, "
            f"got {function!r}"
        ) from error
    for one in parameters:
        if one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            raise DeclarationError(
                f"{owner}: the {what} must have positional parameters only, got {one}"
            )
    return Part(function, tuple(one.name for one in parameters), inplace)


def _require_option(owner: str, what: str, inplace: str) -> None:
    legal = ["none", *(word for word, (of, _) in _WORDS.items() if of == what)]
    if inplace not in ("none", *_WORDS):
        raise ArgumentError(
            f"{owner}: inplace of the {what} must be one of {', '.join(legal)}, got "
            f"{inplace!r}{nearest(inplace, legal)}"
        )
    if inplace not in legal:
        raise DeclarationError(
            f"{owner}: inplace={inplace!r} belongs to the {_WORDS[inplace][0]}; of the {what} it "
            f"must be one of {', '.join(legal)}"
        )


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that was said of an operator.

    Attributes:
        name: the operator's name.
        functions: what computes it, by device.
        gradients: what computes its gradient, by device.
        shape: the shape function.
        order: where the scalar stands in a call, or None without one.
        keywords: annotation and default of each keyword.
        requests: the requested resources.
        derivative: what is known of the derivative when there is no gradient, and why.
        differs: the gradient is not that of the function, on purpose.
        text: the description.
        cases: sample calls and misuses.
        reference: the same function in NumPy.
    """

    name: str
    functions: Mapping[Device, Part] = dataclasses.field(default_factory=dict)
    gradients: Mapping[Device, Part] = dataclasses.field(default_factory=dict)
    shape: Part | None = None
    order: str | None = None
    keywords: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    requests: tuple[Request, ...] = ()
    derivative: tuple[Derivative, str] | None = None
    differs: bool = False
    text: str | None = None
    cases: tuple[Case | Misuse, ...] = ()
    reference: Callable[..., Any] | None = None

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.functions[None].names

    @property
    def keyed(self) -> bool:
        """Whether a call needs a random key."""
        return "random" in self.requests

    def attributes(self) -> list[inspect.Parameter]:
        """The attributes as keyword-only parameters."""
        if self.order is not None:
            return [_keyword("scalar", float)]
        return [_keyword(name, *declared) for name, declared in self.keywords.items()]

    def environment(self, attributes: Mapping[str, Any], key: Any = None) -> EnvArguments:
        """What the functions find in ``env``."""
        return EnvArguments(
            scalar=None if self.order is None else attributes["scalar"],
            kwargs=attributes if self.keywords else None,
            resource=resources(self.name, self.requests, key),
            owner=self.name,
        )

    def inputs(self, names: Iterable[str]) -> list[inspect.Parameter]:
        """Slots called ``names``, and one for the random key where a call needs it."""
        slots = [_positional(name, Array) for name in names]
        return [*slots, _positional(KEY, Key)] if self.keyed else slots


class Made(NamedTuple):
    """The operators that follow from the settings; the second computes the gradient."""

    forward: Operator
    backward: Operator | None


def build(settings: Settings) -> Made | None:
    """The operators that ``settings`` describe; None as long as no function is set.

    Raises:
        SymopError: the settings contradict each other.
    """
    if settings.derivative is not None and settings.gradients:
        raise DeclarationError(f"{settings.name}: its derivative is declared twice")
    if None not in settings.functions:
        return None
    _check_functions(settings)
    forward = _forward(settings)
    backward = _backward(settings)
    if backward is not None:
        forward.gradient(_maker(settings, backward))
    elif settings.derivative is not None:
        forward.declare_derivative(*settings.derivative)
    slot = _overwritten(settings.name, "function", settings.functions, len(settings.slots))
    if slot:
        forward.declare_inplace({settings.slots[0]: OUT})
    return Made(forward, backward)


# The function ----------------------------------------------------------------------------------


def _check_functions(settings: Settings) -> None:
    name, slots = settings.name, settings.slots
    if len(slots) > 2:
        raise DeclarationError(
            f"{name}: a simple operator must have two inputs at most, got {', '.join(slots)}; "
            "declare it with registry.op"
        )
    reserved = [slot for slot in slots if slot in _RESERVED]
    if reserved:
        raise DeclarationError(
            f"{name}: an input must not be called {reserved[0]!r}, which means something else"
        )
    for device, part in settings.functions.items():
        if len(part.names) != len(slots):
            raise DeclarationError(
                f"{name}: the function for {device!r} must take the inputs ({', '.join(slots)}), "
                f"got ({', '.join(part.names)})"
            )


def _forward(settings: Settings) -> Operator:
    default = settings.functions[None]
    operator = Operator(
        _kernel(settings, default),
        shape=_shape_rule(settings),
        cases=settings.cases,
        reference=settings.reference,
        leading=("scalar",) if settings.order == "scalar_array" else (),
        native=False if settings.differs else None,
    )
    for device, part in settings.functions.items():
        if device is not None:
            operator.on(device)(_kernel(settings, part))
    return operator


def _kernel(settings: Settings, part: Part) -> Callable[..., Any]:
    arity = len(settings.slots)

    def kernel(*inputs: Any, **attributes: Any) -> Any:
        env = settings.environment(attributes, inputs[arity] if settings.keyed else None)
        return part(map(jnp.asarray, inputs[:arity]), env)

    text = settings.text or inspect.getdoc(part.function) or ""
    return _signed(kernel, settings.name, settings.inputs(settings.slots), settings, text, part)


def _shape_rule(settings: Settings) -> Callable[..., Any] | None:
    """The shape function as a rule; without one inputs and output have one shape."""
    slots, part = settings.slots, settings.shape
    if part is not None:
        return _given_shape_rule(settings, part)
    if not slots:
        return None

    def rule(*shapes: Shape) -> Shape:
        if any(shape != shapes[0] for shape in shapes[1:]):
            raise ShapeError(
                f"{listed(slots)} must have the same shape, got {listed(shapes)}; "
                "set_shape_function tells otherwise"
            )
        return shapes[0]

    def completes(*shapes: Shape | None) -> dict[str, Shape | None]:
        return dict(zip(slots, all_alike(shapes[:-1], shapes[-1]), strict=True))

    _sign(completes, [_positional(name) for name in (*slots, OUT)])
    rule.completes = completes  # type: ignore[attr-defined]
    return _sign(rule, [_positional(name) for name in slots])


def _given_shape_rule(settings: Settings, part: Part) -> Callable[..., Any]:
    if len(part.names) != len(settings.slots):
        raise DeclarationError(
            f"{settings.name}: the shape function must take the shapes of "
            f"({', '.join(settings.slots)}), got ({', '.join(part.names)})"
        )
    # The rule's caller puts the operator's name in front of what is wrong.
    unnamed = dataclasses.replace(settings, name="")

    def rule(*shapes: Shape, **attributes: Any) -> Any:
        try:
            return part(shapes, unnamed.environment(attributes))
        except SymopError:
            raise
        except (TypeError, ValueError, IndexError, AssertionError) as error:
            raise ShapeError(
                f"the shape function must take {listed(shapes) if shapes else 'no shapes'}, got "
                f"{type(error).__name__}: {error}"
            ) from error

    slots = [_positional(name) for name in settings.slots]
    return _sign(rule, [*slots, *settings.attributes()])


# The gradient ----------------------------------------------------------------------------------


def _backward(settings: Settings) -> Operator | None:
    """The gradient function as an operator; its slots are what the function names."""
    name = settings.name
    sources = {device: _sources(settings, part) for device, part in settings.gradients.items()}
    if None not in sources:
        return None
    slots = sources[None]
    for device, own in sources.items():
        if set(own) != set(slots):
            raise DeclarationError(
                f"{name}: the gradient for {device!r} must name what the others name "
                f"({', '.join(slots)}), got ({', '.join(own)})"
            )
    operator = Operator(
        _gradient_kernel(settings, settings.gradients[None], slots, slots),
        outputs=[COTANGENT + slot for slot in settings.slots],
    )
    for device, part in settings.gradients.items():
        if device is not None:
            operator.on(device)(_gradient_kernel(settings, part, slots, sources[device]))
    if _overwritten(name, "gradient", settings.gradients, len(settings.slots)):
        operator.declare_inplace({COTANGENT + OUT: COTANGENT + settings.slots[0]})
    return differentiate_kernel(operator, linear=(COTANGENT + OUT,))


def _sources(settings: Settings, part: Part) -> tuple[str, ...]:
    """The slot of the gradient operator that fills each parameter of its function."""
    name, slots = settings.name, settings.slots
    if not slots:
        raise DeclarationError(f"{name}: a source has no input, so it must have no gradient")
    legal = {OUT_GRAD: COTANGENT + OUT, OUT_VALUE: OUT_VALUE}
    legal.update(zip(_IN_DATA, slots, strict=False))
    if len(slots) == 2:
        legal.update(zip(_OPERANDS, slots, strict=True))
    legal.update(zip(slots, slots, strict=True))  # own names win
    for one in part.names:
        if one not in legal:
            raise DeclarationError(
                f"{name}: the gradient must name some of {', '.join(legal)} and env, got "
                f"{one!r}{nearest(one, legal)}"
            )
    found = tuple(legal[one] for one in part.names)
    if COTANGENT + OUT not in found or len(set(found)) < len(found):
        raise DeclarationError(
            f"{name}: the gradient must name out_grad, and nothing twice, got "
            f"({', '.join(part.names)})"
        )
    return found


def _gradient_kernel(
    settings: Settings, part: Part, slots: Sequence[str], sources: Sequence[str]
) -> Callable[..., Any]:
    order = [slots.index(source) for source in sources]

    def kernel(*inputs: Any, **attributes: Any) -> Any:
        env = settings.environment(attributes, inputs[len(slots)] if settings.keyed else None)
        return part([jnp.asarray(inputs[i]) for i in order], env)

    name = backward_name(settings.name)
    text = f"Gradient of ``{settings.name}``."
    return _signed(kernel, name, settings.inputs(slots), settings, text, part)


def backward_name(name: str) -> str:
    """The name of the operator that computes the gradient of the one called ``name``."""
    return f"_backward_{name}"


def _maker(settings: Settings, backward: Operator) -> Callable[..., Any]:
    """The gradient maker: it names what the gradient function names, and calls its operator."""
    slots = settings.slots

    def maker(*values: Any, **attributes: Any) -> dict[str, Any]:
        found = backward(**dict(zip(backward.slot_names, values, strict=True)), **attributes)
        return dict(zip(slots, found if len(slots) > 1 else (found,), strict=True))

    maker.__name__ = f"{settings.name}_gradient"
    named = [OUT if slot == OUT_VALUE else slot for slot in backward.slot_names]
    return _sign(maker, [*map(_positional, named), *settings.attributes()])


def _overwritten(owner: str, what: str, parts: Mapping[Device, Part], arity: int) -> bool:
    """Whether every function permits its result to take the place of what it reads.

    Raises:
        DeclarationError: an option does not belong to an operator of so many inputs.
    """
    for part in parts.values():
        if part.inplace != "none" and _WORDS[part.inplace][1] != arity:
            kind = {1: "unary", 2: "binary"}[_WORDS[part.inplace][1]]
            raise DeclarationError(
                f"{owner}: inplace={part.inplace!r} of the {what} belongs to a {kind} operator, "
                f"got one of {arity} inputs"
            )
    return all(part.inplace != "none" for part in parts.values())


# Signatures ------------------------------------------------------------------------------------


def _positional(name: str, annotation: Any = inspect.Parameter.empty) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, annotation=annotation)


def _keyword(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _sign(
    function: Callable[..., Any], parameters: Sequence[inspect.Parameter]
) -> Callable[..., Any]:
    """``function``, which from now on says that it has ``parameters``."""
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function


def _signed(  # noqa: PLR0913  # all that a kernel tells of itself
    kernel: Callable[..., Any],
    name: str,
    inputs: Sequence[inspect.Parameter],
    settings: Settings,
    text: str,
    part: Part,
) -> Callable[..., Any]:
    kernel.__name__, kernel.__doc__ = name, text
    kernel.__module__ = getattr(part.function, "__module__", None) or __name__
    return _sign(kernel, [*inputs, *settings.attributes()])
