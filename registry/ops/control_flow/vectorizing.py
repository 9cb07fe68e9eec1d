"""Vectorized application of a body to all slices along a first axis."""

import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import case, misuse, workload
from registry.errors import ShapeError
from registry.operator.attributes import Check
from registry.operator.bodies import Body, BodyAttribute, Source, Term, body, settled
from registry.operator.operator import Grads
from registry.operator.signature import Array, Key, Training
from registry.ops.control_flow.loop_types import require_key, require_types, stacked
from registry.ops.control_flow.merging import count_within, merging
from registry.ops.control_flow.stepping import Operands, said
from registry.ops.core.arithmetic import add, scale
from registry.ops.core.reductions import sum as sum_over
from registry.ops.linalg.einsum import einsum
from registry.table import op
from registry.types import VarType
from registry.var import Var

Mapped = Annotated[int, Check("be at least 1", lambda count: count >= 1)]


def _bent(x: Any, w: Any) -> Any:
    return x.sin() * w, x * x


def _scaled(x: Any, w: Any) -> Any:
    return x * w


def _layer(x: Any, w: Any) -> Any:
    return einsum(x, w, equation="a,ab->b").tanh()


def _reference(*operands: Any, body: Body, n_mapped: int, **_: Any) -> Any:
    series, consts = operands[:n_mapped], operands[n_mapped:]
    length = len(series[0])
    steps = [body.run([*(one[i] for one in series), *consts]) for i in range(length)]
    return said(
        [
            np.stack([np.asarray(one[j]) for one in steps])
            if steps
            else np.zeros((0, *type.shape), type.dtype)
            for j, type in enumerate(body.outputs)
        ]
    )


@op(
    outputs=("*parts",),
    count=lambda *, body: len(body.outputs),
    reference=_reference,
    cases=[
        case(operands=[(3, 2), (2,)], body=body(_bent, (2,), (2,)), n_mapped=1),
        case(operands=[(4, 2), (4,)], body=body(_scaled, (2,), ()), n_mapped=2),
        case(operands=[(3, 2), (2, 4)], body=body(_layer, (2,), (2, 4)), n_mapped=1),
        case(operands=[(0, 2), (2,)], body=body(_bent, (2,), (2,)), n_mapped=1),
        workload(operands=[(64, 4096), (4096,)], body=body(_bent, (4096,), (4096,)), n_mapped=1),
        misuse("all mapped operands must have slices of one number, got 3 and 4",
               operands=[(3, 2), (4,)], body=body(_scaled, (2,), ()), n_mapped=2),
        misuse("operand 0 must have an axis of slices, got float", operands=[(), ()],
               body=body(_scaled, (), ()), n_mapped=1),
    ],
)  # fmt: skip
def vmap(
    key: Key,
    training: Training,
    *operands: Operands,
    body: BodyAttribute,
    n_mapped: Mapped,
    use_key: bool = False,
) -> tuple[Array, ...]:
    """Applies ``body`` to each slice of the first ``n_mapped`` operands along their first axis.

    The other operands are constants, which are passed unchanged. The results are stacked along a
    new first axis. All slices are computed at once, by ``jax.vmap``. A body that draws random
    numbers gets a different key for each slice, folded from ``key`` and the index of the slice.
    ``so.vmap`` creates the body and sorts the operands.

    Example:
        >>> import symop as so
        >>> x, w = so.var("x", shape=(3,)), so.var("w", shape=())
        >>> y = so.vmap(lambda one: so.sin(one) * w)(x)
        >>> y.eval(x=[0.0, 0.0, 0.0], w=2.0).tolist()
        [0.0, 0.0, 0.0]
    """
    series = operands[:n_mapped]
    consts = operands[n_mapped:]

    def one(number: Any, *slices: Any) -> list[Any]:
        values = [settled(*pair) for pair in zip([*slices, *consts], body.inputs, strict=True)]
        own = jax.random.fold_in(key, number) if body.draws else None
        return body.run(values, key=own, training=training)

    return tuple(jax.vmap(one)(jnp.arange(series[0].shape[0]), *series))


@vmap.types
def vmap_types(
    operands: tuple[VarType, ...], *, body: Body, n_mapped: int, use_key: bool
) -> list[VarType]:
    """Returns the types of the body's results, stacked."""
    mapped = operands[:n_mapped]
    for i, one in enumerate(mapped):
        if not one.shape:
            raise ShapeError(f"operand {i} must have an axis of slices, got {one}")
    lengths = list(dict.fromkeys(one.shape[0] for one in mapped))
    if len(lengths) != 1:
        raise ShapeError(
            "all mapped operands must have slices of one number, got "
            f"{' and '.join(map(str, lengths))}"
        )
    slices = [VarType(one.shape[1:], one.dtype, one.kind) for one in mapped]
    require_types("the body", body, [*slices, *operands[n_mapped:]])
    require_key(body.draws, use_key)
    return [stacked(one, lengths[0]) for one in body.outputs]


@vmap.simplify
def _vmap_simplify(
    key: Var | None, training: Var, operands: tuple[Var, ...], *, body: Body, n_mapped: int,
    use_key: bool,
) -> list[Var] | None:  # fmt: skip
    merged = merging(operands, body, input_groups=(n_mapped,))
    if merged is None:
        return None
    results = vmap(
        *[operands[i] for i in merged.operands],
        **({"key": key} if use_key else {}),
        training=training,
        body=merged.body(body),
        n_mapped=count_within(merged.operands, 0, n_mapped),
        use_key=use_key,
    )
    return merged.every(results)


@vmap.gradient
def _vmap_gradient(
    key: Var | None,
    training: Var,
    operands: tuple[Var, ...],
    d_parts: tuple[Var | None, ...] | None,
    wanted: tuple[bool, ...],
    *,
    body: Body,
    n_mapped: int,
) -> Grads:
    """The gradients of the body for each slice; for constants, their sum.

    Of a product of two values, the sum over slices is contracted: that of ``x w`` by ``w`` is one
    product of two matrices, not a matrix for each slice.
    """
    cotangents = d_parts or ()
    heads = tuple(j for j, one in enumerate(cotangents) if one is not None)
    inputs = enumerate(body.inputs)
    asked = tuple(i for i, one in inputs if wanted[i + 2] and one.differentiable)
    chosen = body.reached(heads, asked)
    gradients: list[Var | None] = [None] * len(operands)
    if not chosen:
        return {"operands": gradients}
    pulled = body.pullback(heads, chosen)

    def is_mapped(source: Source) -> bool:
        return source.of == "head" or source.place < n_mapped

    sources = sorted(pulled.sources, key=lambda one: not is_mapped(one))
    # Without a mapped operand, the number of slices would be unknown.
    sliced = bool(sources) and is_mapped(sources[0])
    whole = sources if sliced else [Source("head", heads[0]), *sources]
    types = tuple((body.inputs if s.of == "input" else body.outputs)[s.place] for s in whole)
    rule = pulled.body.taking(types, tuple(whole.index(one) for one in pulled.sources))
    values = [cotangents[s.place] if s.of == "head" else operands[s.place] for s in whole]
    count = len([one for one in whole if is_mapped(one)])
    summed = tuple(k for k, i in enumerate(chosen) if i >= n_mapped)
    split = rule.summands(summed, tuple(range(count)))
    apart = split.without(tuple(k for k, one in enumerate(whole) if one.of == "head"))
    kept = tuple(k for k in range(len(split.body.outputs)) if k not in apart)
    results: dict[int, Var] = {}
    for places in filter(None, (kept, apart)):
        parts = _restricted(key, training, values, split.body, places, count)
        results.update(zip(places, parts, strict=True))
    slices, sums = iter(results[k] for k in range(len(results))), iter(split.sums)
    for i in chosen:
        gradients[i] = next(slices) if i < n_mapped else _total(results, next(sums))
    return {"operands": gradients}


def _restricted(
    key: Var | None,
    training: Var,
    operands: Sequence[Any],
    body: Body,
    places: Sequence[int],
    n_mapped: int,
) -> tuple[Var, ...]:
    """Returns the outputs ``places`` of a body for all slices."""
    part, read = body.restricted(tuple(places))
    if not any(i < n_mapped for i in read):  # the number of slices would be unknown
        part, read = part.taking(body.inputs, read), tuple(range(len(operands)))
    results = vmap(
        *[operands[i] for i in read],
        **({"key": key} if part.draws else {}),
        training=training,
        body=part,
        n_mapped=len([i for i in read if i < n_mapped]),
        use_key=part.draws,
    )
    return results if isinstance(results, tuple) else (results,)


def _total(stacked: Mapping[int, Var], terms: Sequence[Term]) -> Var:
    """Returns a sum over slices."""
    products = [_summed([stacked[i] for i in one.places], one) for one in terms]
    return functools.reduce(add, products)


def _summed(factors: Sequence[Var], term: Term) -> Var:
    if term.equation:
        total: Var = einsum(*factors, equation=term.equation)
    else:
        total = sum_over(factors[0], axis=0)
    return total if term.scale == 1 else scale(total, scale=term.scale)
