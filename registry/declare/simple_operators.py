"""Builds the operators of a SimpleOp, the function's and the gradient's, from its settings."""

import dataclasses
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from registry.declare.simple_kernels import (
    FAILURES,
    function_kernel,
    gradient_kernel,
    of_one_type,
)
from registry.declare.simple_parts import (
    INPLACE,
    KEY,
    OUT,
    OUT_GRAD,
    OUT_VALUE,
    Device,
    SimplePart,
    SimpleSettings,
    default_of,
    slot_parameter,
    with_signature,
)
from registry.errors import DeclarationError, ShapeError, SymopError, UnknownTypeError, nearest
from registry.jax_derivatives.gradients import differentiate_kernel
from registry.naming import COTANGENT
from registry.operator.operator import Operator
from registry.shapes import all_alike, listed
from registry.table import get
from registry.types import Shape

_RESERVED = (KEY, OUT, OUT_VALUE, OUT_GRAD, "name", "req")
_IN_DATA = ("in_data0", "in_data1")
_OPERANDS = ("lhs", "rhs")


class OperatorPair(NamedTuple):
    """The operators of one declaration; the second computes the gradient."""

    forward: Operator
    backward: Operator | None


def build(settings: SimpleSettings) -> OperatorPair | None:
    """Returns the operators that ``settings`` describe; None while no function is set.

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
        forward.gradient(_maker(settings, backward), reads=backward.slot_names)
    elif settings.derivative is not None:
        forward.declare_derivative(*settings.derivative)
    elif not settings.slots:
        forward.zero_gradient("it has no inputs")
    if _permits_inplace(settings.functions):
        forward.declare_inplace({settings.slots[0]: OUT})
    return OperatorPair(forward, backward)


# The function ----------------------------------------------------------------------------------


def _check_functions(settings: SimpleSettings) -> None:
    name, slots = settings.name, settings.slots
    if len(slots) > 2:
        raise DeclarationError(
            f"{name}: a simple operator must have two inputs at most, got {', '.join(slots)}; "
            "declare it with registry.op"
        )
    cotangents = [COTANGENT + one for one in (OUT, *slots)]
    reserved = [slot for slot in slots if slot in (*_RESERVED, *cotangents)]
    if reserved:
        raise DeclarationError(
            f"{name}: an input must not be called {reserved[0]!r}, which means something else"
        )
    taken = {*slots, KEY, OUT_GRAD, OUT_VALUE, COTANGENT + OUT}
    twice = [one.name for one in settings.attributes() if one.name in taken]
    if twice:
        raise DeclarationError(f"{name}: inputs and attributes must differ, got {twice[0]!r} twice")
    _require_arity(settings, "function", settings.functions)
    for device, part in settings.functions.items():
        if len(part.names) != len(slots):
            raise DeclarationError(
                f"{name}: the function for {device!r} must take the inputs ({', '.join(slots)}), "
                f"got ({', '.join(part.names)})"
            )


def _forward(settings: SimpleSettings) -> Operator:
    default = default_of(settings.functions)
    kernel = function_kernel(settings, settings.functions[default])
    operator = Operator(
        kernel,
        shape=_shape_rule(settings),
        cases=settings.cases,
        reference=settings.reference,
        leading=("scalar",) if settings.order == "scalar_array" else (),
        native=False if settings.differs else None,
    )
    for device, part in settings.functions.items():
        if device != default and device is not None:
            other = function_kernel(settings, part)
            operator.on(device)(of_one_type(settings, f"function for {device!r}", other, kernel))
    return operator


def _shape_rule(settings: SimpleSettings) -> Callable[..., Any] | None:
    """Returns the shape function as a rule; without one, inputs and output have one shape."""
    slots, part = settings.slots, settings.shape
    if part is not None:
        return _declared_shape_rule(settings, part)
    if not slots:
        return None

    def rule(*shapes: Shape) -> Shape:
        if any(shape != shapes[0] for shape in shapes[1:]):
            raise ShapeError(
                f"{listed(slots)} must have the same shape, got {listed(shapes)}; "
                "set_shape_function sets another rule"
            )
        return shapes[0]

    def completes(*shapes: Shape | None) -> dict[str, Shape | None]:
        return dict(zip(slots, all_alike(shapes[:-1], shapes[-1]), strict=True))

    with_signature(completes, [slot_parameter(name) for name in (*slots, OUT)])
    rule.completes = completes  # type: ignore[attr-defined]
    return with_signature(rule, [slot_parameter(name) for name in slots])


def _declared_shape_rule(settings: SimpleSettings, part: SimplePart) -> Callable[..., Any]:
    if len(part.names) != len(settings.slots):
        raise DeclarationError(
            f"{settings.name}: the shape function must take the shapes of "
            f"({', '.join(settings.slots)}), got ({', '.join(part.names)})"
        )
    # The caller of the rule prefixes error messages with the operator's name.
    unnamed = dataclasses.replace(settings, name="")

    def rule(*shapes: Shape, **attributes: Any) -> Any:
        text = listed(shapes) if shapes else "no shapes"
        try:
            said = part(shapes, unnamed.environment(attributes))
        except SymopError:
            raise
        except (ValueError, AssertionError) as error:  # the author's message comes first
            raise ShapeError(f"{str(error) or 'the shape function refuses'}, got {text}") from error
        except FAILURES as error:
            raise ShapeError(
                f"the shape function must take {text}, got {type(error).__name__}: {error}"
            ) from error
        if not _is_shape(said):
            raise ShapeError(f"the shape function must return a tuple of ints, got {said!r}")
        return tuple(said)

    slots = [slot_parameter(name) for name in settings.slots]
    return with_signature(rule, [*slots, *settings.attributes()])


def _is_shape(said: Any) -> bool:
    return isinstance(said, (tuple, list)) and all(
        isinstance(one, (int, np.integer)) and not isinstance(one, bool) and one >= 0
        for one in said
    )


# The gradient ----------------------------------------------------------------------------------


def _backward(settings: SimpleSettings) -> Operator | None:
    """Returns the gradient function as an operator whose slots are the function's parameters."""
    name = settings.name
    _require_arity(settings, "gradient", settings.gradients)
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
    title = backward_name(name)
    kernel = gradient_kernel(settings, title, settings.gradients[default], slots, slots)
    operator = Operator(kernel, outputs=[COTANGENT + slot for slot in settings.slots])
    for device, part in settings.gradients.items():
        if device != default and device is not None:
            other = gradient_kernel(settings, title, part, slots, sources[device])
            operator.on(device)(of_one_type(settings, f"gradient for {device!r}", other, kernel))
    if _permits_inplace(settings.gradients):
        operator.declare_inplace({COTANGENT + OUT: COTANGENT + settings.slots[0]})
    _own_backwards.add(operator)
    return differentiate_kernel(operator, linear=(COTANGENT + OUT,))


def _sources(settings: SimpleSettings, part: SimplePart) -> tuple[str, ...]:
    """Returns the slot of the gradient operator for each parameter of its function."""
    name, slots = settings.name, settings.slots
    if not slots:
        raise DeclarationError(f"{name}: a source has no input, so it must have no gradient")
    legal = {OUT_GRAD: COTANGENT + OUT, OUT_VALUE: OUT_VALUE}
    legal.update(zip(_IN_DATA, slots, strict=False))
    if len(slots) == 2:
        legal.update(zip(_OPERANDS, slots, strict=True))
    legal.update(zip(slots, slots, strict=True))  # the function's names take precedence
    for one in part.names:
        if one not in legal:
            raise DeclarationError(
                f"{name}: the gradient must name some of {', '.join(legal)} and env, got "
                f"{one!r}{nearest(one, legal)}"
            )
    sources = tuple(legal[one] for one in part.names)
    if COTANGENT + OUT not in sources or len(set(sources)) < len(sources):
        raise DeclarationError(
            f"{name}: the gradient must name out_grad, and nothing twice, got "
            f"({', '.join(part.names)})"
        )
    return sources


_own_backwards: "weakref.WeakSet[Operator]" = weakref.WeakSet()


def is_own_backward(operator: Operator) -> bool:
    """Whether the operator is the gradient of a SimpleOp, rather than another author's operator."""
    return operator in _own_backwards


def backward_name(name: str) -> str:
    """Returns the name of the operator that computes the gradient of operator ``name``."""
    return f"_backward_{name}"


def _maker(settings: SimpleSettings, backward: Operator) -> Callable[..., Any]:
    """Returns the gradient maker, which calls the gradient's operator on its residuals.

    It also takes the other inputs, only for their dtypes.
    """
    slots, read = settings.slots, backward.slot_names
    others = [slot for slot in slots if slot not in read]

    def maker(*values: Any, **attributes: Any) -> dict[str, Any]:
        filled = dict(zip([*read, *others], values, strict=True))
        implicit = {slot: filled[slot] for slot in read if slot == KEY}
        args = [filled[slot] for slot in read if slot != KEY]
        grads = backward(*args, **implicit, **attributes)
        each = zip(slots, grads if len(slots) > 1 else (grads,), strict=True)
        return {slot: _of_dtype(gradient, filled[slot]) for slot, gradient in each}

    maker.__name__ = f"{settings.name}_gradient"
    named = [OUT if slot == OUT_VALUE else slot for slot in (*read, *others)]
    return with_signature(maker, [*map(slot_parameter, named), *settings.attributes()])


def _of_dtype(gradient: Any, value: Any) -> Any:
    """Returns ``gradient`` cast to the dtype of its primal ``value``, if both are floating."""
    mine, wanted = _dtype_of(gradient), _dtype_of(value)
    floating = all(one is not None and jnp.issubdtype(one, jnp.floating) for one in (mine, wanted))
    return get("cast")(gradient, dtype=wanted) if floating and mine != wanted else gradient


def _dtype_of(value: Any) -> Any:
    """Returns the dtype, or None while it is unknown."""
    try:
        return value.dtype
    except (AttributeError, UnknownTypeError):
        return None


# In place --------------------------------------------------------------------------------------


def _require_arity(settings: SimpleSettings, what: str, parts: Mapping[Device, SimplePart]) -> None:
    """Requires that every in-place option matches the number of inputs.

    Raises:
        DeclarationError: one does not.
    """
    arity = len(settings.slots)
    for part in parts.values():
        if part.inplace != "none" and INPLACE[part.inplace].arity != arity:
            kind = {1: "unary", 2: "binary"}[INPLACE[part.inplace].arity]
            raise DeclarationError(
                f"{settings.name}: inplace={part.inplace!r} of the {what} belongs to a {kind} "
                f"operator, got one of {arity} inputs"
            )


def _permits_inplace(parts: Mapping[Device, SimplePart]) -> bool:
    """Whether every function permits its result to reuse the memory of its input."""
    return all(part.inplace != "none" for part in parts.values())
