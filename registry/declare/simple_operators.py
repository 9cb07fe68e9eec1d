"""From what was said of a SimpleOp to its operators: the function's, and the gradient's."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from registry.declare.simple_parts import (
    INPLACE,
    KEY,
    OUT,
    OUT_GRAD,
    OUT_VALUE,
    Device,
    Part,
    Settings,
    default_of,
    positional,
    sign,
    signed,
)
from registry.errors import DeclarationError, ShapeError, SymopError, nearest
from registry.kernel_gradients import differentiate_kernel
from registry.naming import COTANGENT
from registry.operator import Operator
from registry.shapes import all_alike, listed
from registry.types import Shape

_RESERVED = (KEY, OUT, OUT_VALUE, OUT_GRAD, "name", "req")
_IN_DATA = ("in_data0", "in_data1")
_OPERANDS = ("lhs", "rhs")


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
    if not settings.functions:
        return None
    _check_functions(settings)
    forward = _forward(settings)
    backward = _backward(settings)
    if backward is not None:
        forward.gradient(_maker(settings, backward))
    elif settings.derivative is not None:
        forward.declare_derivative(*settings.derivative)
    if _may_overwrite(settings.name, "function", settings.functions, len(settings.slots)):
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
    taken = {*slots, KEY, OUT_GRAD, OUT_VALUE, COTANGENT + OUT}
    twice = [one.name for one in settings.attributes() if one.name in taken]
    if twice:
        raise DeclarationError(f"{name}: inputs and attributes must differ, got {twice[0]!r} twice")
    for device, part in settings.functions.items():
        if len(part.names) != len(slots):
            raise DeclarationError(
                f"{name}: the function for {device!r} must take the inputs ({', '.join(slots)}), "
                f"got ({', '.join(part.names)})"
            )


def _forward(settings: Settings) -> Operator:
    default = default_of(settings.functions)
    operator = Operator(
        _kernel(settings, settings.functions[default]),
        shape=_shape_rule(settings),
        cases=settings.cases,
        reference=settings.reference,
        leading=("scalar",) if settings.order == "scalar_array" else (),
        native=False if settings.differs else None,
    )
    for device, part in settings.functions.items():
        if device != default and device is not None:
            operator.on(device)(_kernel(settings, part))
    return operator


def _kernel(settings: Settings, part: Part) -> Callable[..., Any]:
    arity = len(settings.slots)

    def kernel(*inputs: Any, **attributes: Any) -> Any:
        env = settings.environment(attributes, inputs[arity] if settings.keyed else None)
        return part(map(jnp.asarray, inputs[:arity]), env)

    text = settings.text or inspect.getdoc(part.function) or ""
    return signed(kernel, settings.name, settings.inputs(settings.slots), settings, text, part)


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

    sign(completes, [positional(name) for name in (*slots, OUT)])
    rule.completes = completes  # type: ignore[attr-defined]
    return sign(rule, [positional(name) for name in slots])


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

    slots = [positional(name) for name in settings.slots]
    return sign(rule, [*slots, *settings.attributes()])


# The gradient ----------------------------------------------------------------------------------


def _backward(settings: Settings) -> Operator | None:
    """The gradient function as an operator; its slots are what the function names."""
    name = settings.name
    sources = {device: _sources(settings, part) for device, part in settings.gradients.items()}
    if not sources:
        return None
    default = default_of(settings.gradients)
    slots = sources[default]
    for device, own in sources.items():
        if set(own) != set(slots):
            raise DeclarationError(
                f"{name}: the gradient for {device!r} must name what the others name "
                f"({', '.join(slots)}), got ({', '.join(own)})"
            )
    operator = Operator(
        _gradient_kernel(settings, settings.gradients[default], slots, slots),
        outputs=[COTANGENT + slot for slot in settings.slots],
    )
    for device, part in settings.gradients.items():
        if device != default and device is not None:
            operator.on(device)(_gradient_kernel(settings, part, slots, sources[device]))
    if _may_overwrite(name, "gradient", settings.gradients, len(settings.slots)):
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
    return signed(kernel, name, settings.inputs(slots), settings, text, part)


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
    return sign(maker, [*map(positional, named), *settings.attributes()])


def _may_overwrite(owner: str, what: str, parts: Mapping[Device, Part], arity: int) -> bool:
    """Whether every function permits its result to take the place of what it reads.

    Raises:
        DeclarationError: an option does not belong to an operator of so many inputs.
    """
    for part in parts.values():
        if part.inplace != "none" and INPLACE[part.inplace][1] != arity:
            kind = {1: "unary", 2: "binary"}[INPLACE[part.inplace][1]]
            raise DeclarationError(
                f"{owner}: inplace={part.inplace!r} of the {what} belongs to a {kind} operator, "
                f"got one of {arity} inputs"
            )
    return all(part.inplace != "none" for part in parts.values())
