"""Rematerialization: a body whose gradient recomputes its values instead of storing them."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.cases import case, misuse, workload
from registry.errors import ArgumentError
from registry.operator.bodies import Body, BodyAttribute, Places, Source, body, settled
from registry.operator.operator import Grads
from registry.operator.signature import Array, Training
from registry.ops.control_flow.loop_gradients import Values
from registry.ops.control_flow.loop_types import require_types
from registry.ops.control_flow.merging import distinct, merging
from registry.ops.control_flow.stepping import Operands, said
from registry.table import op
from registry.types import VarKind, VarType
from registry.var import Var

_N_FIXED = 1
"""Number of slots before the operands: the training flag."""


# Fusion barriers -------------------------------------------------------------------------------


def held_back(values: Sequence[Any], held: Places, after: Places) -> list[Any]:
    """Returns ``values``, where XLA cannot use those at ``held`` before those at ``after``.

    Computations from them are then neither merged with earlier equal ones nor scheduled early.
    ``lax.optimization_barrier`` has this purpose too, but XLA's CPU backend removes it before it
    merges equal values. No backend can infer that the selection made here always has the same
    result.
    """
    flags = [flag for i in after if (flag := _never(values[i])) is not None]
    if not flags:
        return list(values)
    flag = flags[0]
    for other in flags[1:]:
        flag = flag | other
    return [_zeros_if(flag, one) if i in held else one for i, one in enumerate(values)]


def _never(value: Any) -> Any:
    """False, computed from ``value``; None if ``value`` has no entry to compute it from.

    Derivation: a square is 0, 1 or 4 modulo 8, and never 3.
    """
    if not hasattr(value, "dtype") or jnp.size(value) == 0 or _is_key(value):
        return None
    first = value[(0,) * jnp.ndim(value)]
    if jnp.iscomplexobj(first):
        first = lax.real(first)
    if first.dtype == np.bool_:
        first = first.astype(np.uint8)
    unsigned = np.dtype(f"uint{8 * first.dtype.itemsize}")
    bits = lax.bitcast_convert_type(first, unsigned)
    return (bits * bits & np.asarray(7, unsigned)) == np.asarray(3, unsigned)


def _is_key(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jax.dtypes.prng_key))


def _zeros_if(flag: Any, value: Any) -> Any:
    if _is_key(value):
        numbers = _zeros_if(flag, jax.random.key_data(value))
        return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(value))
    array = jnp.asarray(value)
    return lax.select(flag, jnp.zeros_like(array), array)


# recompute -------------------------------------------------------------------------------------


def _layer(x: Any, w: Any) -> Any:
    hidden = (x * w).tanh()
    return hidden.sin() * hidden, hidden


def _layers(x: Any, w: Any) -> Any:
    for _ in range(4):
        x = (x @ w).tanh()
    return x


def _one(x: Any) -> Any:
    return x.exp()


@op(
    outputs=("*parts",),
    count=lambda *, body: len(body.outputs),
    reference=lambda *operands, body, **_: said([np.asarray(one) for one in body.run(operands)]),
    sealed=True,
    cases=[
        case(operands=[(3,), (3,)], body=body(_layer, (3,), (3,))),
        case(operands=[(3,), (3,)], body=body(_layer, (3,), (3,)), saved=(1,), lasting=(1,)),
        case(operands=[(3,), (3,)], body=body(_layer, (3,), (3,)), held=(0,), after=(1,), order=2),
        case(operands=[(0, 2)], body=body(_one, (0, 2)), saved=(0,), order=1),
        workload(operands=[(256, 256), (256, 256)], body=body(_layers, (256, 256), (256, 256)),
                 lasting=(1,)),
        misuse("operand 1 of the body must be", operands=[(3,), (2,)],
               body=body(_layer, (3,), (3,))),
        misuse("saved must hold places of outputs, of which there are 2, got (2,)",
               operands=[(3,), (3,)], body=body(_layer, (3,), (3,)), saved=(2,)),
        misuse("held must hold places of operands, of which there are 2, got (-1,)",
               operands=[(3,), (3,)], body=body(_layer, (3,), (3,)), held=(-1,)),
    ],
)  # fmt: skip
def recompute(
    training: Training,
    *operands: Operands,
    body: BodyAttribute,
    saved: tuple[int, ...] = (),
    lasting: tuple[int, ...] = (),
    held: tuple[int, ...] = (),
    after: tuple[int, ...] = (),
) -> tuple[Array, ...]:
    """Returns the outputs of ``body``, whose gradient recomputes its residuals.

    A gradient stores only the operands and the outputs at the indices ``saved``, and recomputes the
    rest of the body. Operands at ``lasting`` are stored in any case, as parameters are.

    Operands at ``held`` are not used before those at ``after`` are available. A gradient delays its
    operands until its cotangents are available: otherwise XLA would merge the recomputation with
    the original computation, and store its values. ``so.remat`` creates such calls.

    Source: Chen, Xu, Zhang, Guestrin, Training deep nets with sublinear memory cost, 2016; it
    corresponds to ``jax.checkpoint`` of JAX, and ``recompute`` of Paddle.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> sines = so.body(lambda x: so.sin(so.sin(x)), ((), "float32"))
        >>> (y,) = so.recompute(x, body=sines)
        >>> round(float(so.grad(y, x).eval(x=0.0)), 3)
        1.0
    """
    inputs = held_back(operands, held, after)
    exact = [settled(*pair) for pair in zip(inputs, body.inputs, strict=True)]
    return tuple(body.run(exact, training=training))


@recompute.types
def recompute_types(
    operands: tuple[VarType, ...],
    *,
    body: Body,
    saved: Places,
    lasting: Places,
    held: Places,
    after: Places,
) -> tuple[VarType, ...]:
    """Returns the output types of the body."""
    require_types("the body", body, operands)
    if body.draws:
        raise ArgumentError("the body must take the random keys that it uses as operands")
    _require_places("saved", "outputs", saved, len(body.outputs))
    for name, places in (("lasting", lasting), ("held", held), ("after", after)):
        _require_places(name, "operands", places, len(operands))
    return body.outputs


def _require_places(name: str, what: str, places: Places, count: int) -> None:
    if not all(0 <= one < count for one in places):
        raise ArgumentError(
            f"{name} must hold places of {what}, of which there are {count}, got {places}"
        )


@recompute.kind
def recompute_kinds(*, body: Body) -> tuple[VarKind, ...]:
    """Returns the output kinds of the body."""
    return tuple(one.kind for one in body.outputs)


@recompute.simplify
def _recompute_simplify(
    training: Var, operands: tuple[Var, ...], *, body: Body, saved: Places, lasting: Places,
    held: Places, after: Places,
) -> list[Var] | None:  # fmt: skip
    merged = merging(operands, body)
    if merged is None:
        return None
    results = distinct(merged.results)
    late = merged.places(after)
    values = recompute(
        *[operands[i] for i in merged.operands],
        training=training,
        body=merged.body(body),
        saved=tuple(dict.fromkeys(results.index(merged.results[j]) for j in saved)),
        lasting=merged.places(lasting),
        # An operand that is waited for is not used before it is available.
        held=tuple(i for i in merged.places(held) if i not in late),
        after=late,
    )
    return merged.every(values)


@recompute.gradient
def _recompute_gradient(
    training: Var,
    operands: tuple[Var, ...],
    parts: tuple[Var, ...],
    d_parts: tuple[Var | None, ...] | None,
    wanted: tuple[bool, ...],
    *,
    body: Body,
    saved: Places,
    lasting: Places,
) -> Grads:
    """The pullback of the body on stored values, delayed until a cotangent is available."""
    cotangents = d_parts or ()
    heads = tuple(j for j, one in enumerate(cotangents) if one is not None)
    inputs = enumerate(body.inputs)
    asked = tuple(i for i, one in inputs if wanted[i + _N_FIXED] and one.differentiable)
    chosen = body.reached(heads, asked)
    gradients: list[Var | None] = [None] * len(operands)
    if not chosen:
        return {"operands": gradients}
    pulled = body.pullback(heads, chosen, saved=saved)
    after = _places(pulled.sources, "head")
    lasts = tuple(i for i in _places(pulled.sources, "input") if pulled.sources[i].place in lasting)
    d_chosen = recompute(
        *[_value(one, operands, parts, cotangents) for one in pulled.sources],
        training=training,
        body=pulled.body,
        lasting=lasts,
        held=pulled.body.leading(after, lasts),
        after=after,
    )
    for i, gradient in zip(chosen, d_chosen, strict=True):
        gradients[i] = gradient
    return {"operands": gradients}


def _places(sources: Sequence[Source], of: str) -> Places:
    return tuple(i for i, one in enumerate(sources) if one.of == of)


def _value(source: Source, operands: Values, parts: Values, heads: Values) -> Any:
    return {"input": operands, "output": parts, "head": heads}[source.of][source.place]


@recompute.tangents
def _recompute_tangents(
    training: Var,
    operands: tuple[Var, ...],
    t_operands: tuple[Var | None, ...],
    *,
    body: Body,
    saved: Places,
    lasting: Places,
    held: Places,
    after: Places,
) -> list[Var | None]:
    """The pushforward of the body on stored values, run as a whole and therefore transposable."""
    moving = tuple(i for i, one in enumerate(t_operands) if one is not None)
    chosen = body.moved(moving)
    tangents: list[Var | None] = [None] * len(body.outputs)
    if not chosen:
        return tangents
    pushed = body.pushed(moving, chosen, saved)
    places = {one.place: i for i, one in enumerate(pushed.sources) if one.of == "input"}
    same = {"body": body, "saved": saved, "lasting": lasting, "held": held, "after": after}
    reads_parts = any(one.of == "output" for one in pushed.sources)
    parts = recompute(*operands, training=training, **same) if reads_parts else ()
    ways = [one for one in t_operands if one is not None]
    t_chosen = recompute(
        *[_value(one, operands, parts, ways) for one in pushed.sources],
        training=training,
        body=pushed.body,
        lasting=tuple(places[i] for i in lasting if i in places),
        held=tuple(places[i] for i in held if i in places),
        after=tuple(places[i] for i in after if i in places),
    )
    for j, tangent in zip(chosen, t_chosen, strict=True):
        tangents[j] = tangent
    return tangents
