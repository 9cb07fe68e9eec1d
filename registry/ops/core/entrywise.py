"""entrywise: declares an operator whose entries are functions of the same entries of its inputs."""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from registry.cases import Case, Misuse, Sample, case, integers, misuse, nonzero, positive, uniform
from registry.errors import DeclarationError, DTypeError
from registry.naming import COTANGENT
from registry.operator.operator import Grads, Operator
from registry.ops.core.broadcasting import unbroadcast
from registry.shapes import broadcast, floating, same
from registry.table import op
from registry.types import Shape, VarType, is_inexact
from registry.var import Var

Draw = tuple[float, float] | Callable[..., Sample] | None
"""Where samples are drawn: between two bounds, by a function of the shape, or normal draws."""
CotangentRule = Callable[..., Any] | None
"""The cotangent of an input from inputs, outputs, attributes and ``d_out``; None for zero."""


def entrywise(
    reference: Callable[..., Any],
    *,
    samples: Draw | Mapping[str, Any] = None,
    dtype: Callable[..., Any] = floating,
    rtol: float = 64.0,
    cases: Sequence[Case | Misuse] = (),
    zero_gradient: str | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Operator]:
    """Declares an operator that maps the kernel over entries, with broadcasting of several inputs.

    ``d_<slot>`` is the gradient rule of one input: a function of the values that its parameters
    name, as those of a gradient maker, and linear in ``d_out``. Sums over broadcast axes follow by
    themselves. An operator without such rules declares its derivative as ``op`` describes.

    Cases and misuses follow from the slots, the samples and the dtype rule: matrices, scalars,
    empty arrays, integers where they are accepted, and for several inputs shapes that broadcast.

    Args:
        reference: the same function in NumPy or SciPy.
        samples: where the inputs of cases are drawn, for all inputs or by slot; a required
            attribute has its value for the derived cases there, too.
        dtype: the dtype rule.
        rtol: the relative tolerance of the derived cases.
        cases: cases and misuses in addition to the derived ones.
        zero_gradient: the reason for which the derivative is zero wherever it exists.
        **options: ``d_<slot>``, and the options of ``op``.

    Raises:
        DeclarationError: some inputs have a gradient rule and others have none.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> from registry import Array
        >>> @entrywise(np.square, d_x=lambda x, d_out: d_out * (2.0 * x))
        ... def doc_square(x: Array) -> Array:
        ...     "Square, element-wise: ``x * x``."
        ...     return x * x
        >>> float(doc_square(jnp.asarray(3.0)))
        9.0
    """
    rules: dict[str, CotangentRule] = {
        name.removeprefix(COTANGENT): options.pop(name)
        for name in list(options)
        if name.startswith(COTANGENT)
    }

    def declare(kernel: Callable[..., Any]) -> Operator:
        slots = _slots(kernel)
        entries = dict(samples) if isinstance(samples, Mapping) else dict.fromkeys(slots, samples)
        draws = {one: entries.pop(one, None) for one in slots}
        derived = [case(rtol=rtol, **one, **entries) for one in _inputs(draws, dtype)]
        refused = [misuse(text, **one, **entries) for text, one in _refused(slots, dtype)]
        declared = op(
            dtype=dtype,
            reference=reference,
            cases=[*derived, *cases, *refused],
            **{"shape": broadcast if len(slots) > 1 else same, **options},
        )(kernel)
        if rules:
            declared.gradient(gradient_maker(declared.name, slots, rules))
        elif zero_gradient is not None:
            declared.zero_gradient(zero_gradient)
        return declared

    return declare


def _slots(kernel: Callable[..., Any]) -> tuple[str, ...]:
    """The positional parameters of ``kernel``."""
    code = kernel.__code__
    return code.co_varnames[: code.co_argcount]


# Gradients -------------------------------------------------------------------------------------


def gradient_maker(
    name: str, slots: Sequence[str], rules: Mapping[str, CotangentRule]
) -> Callable[..., Grads]:
    """The gradient maker of the operator ``name`` that applies a rule for each slot.

    Raises:
        DeclarationError: the rules are not those of the slots.
    """
    if set(rules) != set(slots):
        raise DeclarationError(
            f"{name}: a gradient rule must be given for each of {', '.join(slots)}, or for none, "
            f"got {', '.join(rules)}"
        )
    named = {one: _parameters(rule) for one, rule in rules.items() if rule is not None}
    union = {one.name: one for parameters in named.values() for one in parameters}
    if len(slots) > 1:  # a cotangent takes the shape and the dtype of its input
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        union |= {one: inspect.Parameter(one, kind) for one in slots}
    parameters = sorted(union.values(), key=lambda one: one.kind)
    positional = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]

    def cotangent(slot: str, known: Mapping[str, Any]) -> Any:
        rule = rules[slot]
        if rule is None:
            return None
        if len(slots) == 1:
            return _applied(rule, named[slot], known)
        return lambda: _summed(known[slot], _applied, rule, named[slot], known)

    def maker(*values: Any, **attributes: Any) -> Grads:
        known = dict(zip(positional, values, strict=True)) | attributes
        return {slot: cotangent(slot, known) for slot in slots}

    maker.__name__ = f"_{name}_gradient"
    maker.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    maker.rules = rules  # type: ignore[attr-defined]
    return maker


def _parameters(rule: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(rule, eval_str=True).parameters.values())


def _applied(
    rule: Callable[..., Any], parameters: Sequence[inspect.Parameter], known: Mapping[str, Any]
) -> Any:
    """The result of ``rule`` for the values that its parameters name."""
    values = [known[one.name] for one in parameters if one.kind is not one.KEYWORD_ONLY]
    named = {one.name: known[one.name] for one in parameters if one.kind is one.KEYWORD_ONLY}
    return rule(*values, **named)


def _summed(like: Var, cotangent: Callable[..., Var], *given: Any) -> Var | None:
    """The result of ``cotangent`` in the shape and the dtype of ``like``."""
    return unbroadcast(cotangent(*given), like) if is_inexact(like.dtype) else None


# Cases and misuses -----------------------------------------------------------------------------

_OTHERS: dict[str, Any] = {
    "int32": integers(3, high=4),
    "complex64": np.ones(2, np.complex64),
    "bool": np.zeros(3, np.bool_),
}
"""Inputs that are not floating, which many dtype rules refuse."""


def _refusal(dtype: Callable[..., Any], name: str) -> str | None:
    """The message with which a dtype rule refuses inputs of a dtype; None if it accepts them."""
    count = max(dtype.__code__.co_argcount, 1)
    try:
        dtype(*[VarType((), np.dtype(name))] * count)
    except DTypeError as error:
        return str(error)
    return None


def _inputs(draws: Mapping[str, Draw], dtype: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """The inputs of the derived cases."""
    stretched = [((3, 1), (4,))] if len(draws) > 1 else []
    for shapes in (((3, 4),), *stretched, ((),), ((0, 2), ())):
        yield {
            name: _drawn(draw, shapes[i % len(shapes)])
            for i, (name, draw) in enumerate(draws.items())
        }
    ranges = [_whole(draw) for draw in draws.values()]
    if None not in ranges and _refusal(dtype, "int32") is None:
        low_high = zip(draws, filter(None, ranges), strict=True)
        yield {name: integers(3, low=low, high=high) for name, (low, high) in low_high}


def _drawn(draw: Draw, shape: Shape) -> Any:
    if draw is None:
        return shape
    return uniform(*shape, low=draw[0], high=draw[1]) if isinstance(draw, tuple) else draw(*shape)


def _whole(draw: Draw) -> tuple[int, int] | None:
    """The range of integers among the samples; None if these are fewer than two."""
    if isinstance(draw, tuple):
        low, high = math.ceil(draw[0]), math.floor(draw[1]) + 1
        return (low, high) if high - low > 1 else None
    return {None: (0, 4), nonzero: (1, 4), positive: (1, 4)}.get(draw)


def _refused(slots: Sequence[str], dtype: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Messages, and the inputs that are refused with them."""
    refusals = {name: _refusal(dtype, name) for name in _OTHERS}
    for name, text in refusals.items():
        if text is not None:
            yield text, dict.fromkeys(slots, _OTHERS[name])
    if len(slots) > 1:
        apart = {name: (3 + i % 2,) for i, name in enumerate(slots)}
        yield "must broadcast together, got (3,)", apart
    elif not any(refusals.values()):
        yield "got 'axis'", {slots[0]: (3,), "axis": 0}
