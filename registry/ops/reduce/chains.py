"""Weighted sums along chains of states, step by step."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, uniform, workload
from registry.errors import ShapeError
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast
from registry.ops.core.slicing import pad_slice, slice_
from registry.shapes import at_least_single, inexact, listed, strong
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var
from registry.xla import device_types


def _chain_sum_shape(x: Shape, weights: Sequence[Shape]) -> Shape:
    if len(x) != 3 or any(one != x for one in weights):
        raise ShapeError(
            "x and weights must have one shape (steps, chains, states), got "
            f"{listed([x, *weights])}"
        )
    if x[0] == 0:
        raise ShapeError(f"there must be a step, got shape {x}")
    return x


def _chain_sum_dtype(x: VarType, weights: Sequence[VarType]) -> DType:
    inexact(x, *weights)
    return strong(x, *weights)


def _chain_sum_reference(x: np.ndarray, *weights: np.ndarray, reverse: bool = False) -> np.ndarray:
    out = np.array(x)
    steps, _, states = x.shape
    for t in range(steps - 1, 0, -1) if reverse else range(1, steps):
        for k, weight in enumerate(weights):
            for s in range(k, states):
                if reverse:
                    out[t - 1, :, s - k] += weight[t, :, s] * out[t, :, s]
                else:
                    out[t, :, s] += weight[t, :, s] * out[t - 1, :, s - k]
    return out


def _later(x: Array, k: int) -> Array:
    """``x`` shifted forward by ``k`` states and filled with zeros."""
    return jnp.pad(x[:, : max(x.shape[1] - k, 0)], ((0, 0), (min(k, x.shape[1]), 0)))


def _earlier(x: Array, k: int) -> Array:
    """``x`` shifted backward by ``k`` states and filled with zeros."""
    return jnp.pad(x[:, k:], ((0, 0), (0, min(k, x.shape[1]))))


@op(
    shape=_chain_sum_shape,
    dtype=_chain_sum_dtype,
    reference=_chain_sum_reference,
    cases=[
        case(x=(3, 2, 4), weights=[(3, 2, 4), (3, 2, 4)]),
        case(x=(3, 2, 4), weights=[(3, 2, 4), (3, 2, 4), (3, 2, 4)], reverse=True, order=2),
        case(x=(2, 1, 1), weights=[(2, 1, 1), (2, 1, 1), (2, 1, 1)], order=2),
        case(x=(2, 0, 3), weights=[(2, 0, 3)], order=1),
        workload(x=(64, 32, 101), weights=[uniform(64, 32, 101, low=0.0, high=0.3)] * 3),
        misuse(
            "must have one shape (steps, chains, states), got (3, 2, 4) and (3, 2, 3)",
            x=(3, 2, 4),
            weights=[(3, 2, 3)],
        ),
        misuse("there must be a step, got shape (0, 2, 4)", x=(0, 2, 4), weights=[(0, 2, 4)]),
        misuse(
            "must be floating", x=integers(1, 1, 1, high=2), weights=[integers(1, 1, 1, high=2)]
        ),
    ],
)
def chain_sum(x: Array, *weights: Array, reverse: bool = False) -> Array:
    """Sums along chains of states: ``x`` plus weighted results of the step before.

    ``out[t, n, s] = x[t, n, s] + sum over k of weights[k][t, n, s] * out[t - 1, n, s - k]``: the
    k-th weights lead from a state to the k-th state after it. With ``reverse`` the sum runs against
    the arrows: ``out[t, n, s] = x[t, n, s] + sum over k of weights[k][t + 1, n, s + k] * out[t + 1,
    n, s + k]``. Each direction is the adjoint of the other in ``x``. Half precision is computed in
    float32.

    Example:
        >>> import jax.numpy as jnp
        >>> chain_sum(jnp.asarray([[[1.0, 0.0]], [[0.0, 0.0]]]), jnp.ones((2, 1, 2)) / 2)
        Array([[[1. , 0. ]],
        <BLANKLINE>
               [[0.5, 0. ]]], dtype=float32)
    """
    dtype = jnp.result_type(x, *weights)
    wide = at_least_single(dtype)
    x, *parts = (jnp.asarray(one).astype(wide) for one in (x, *weights))

    def forward(before: Array, here: tuple[Array, list[Array]]) -> tuple[Array, Array]:
        own, arrows = here
        out = own + sum(w * _later(before, k) for k, w in enumerate(arrows))
        return out, out

    def backward(arriving: Array, here: tuple[Array, list[Array]]) -> tuple[Array, Array]:
        own, arrows = here
        out = own + arriving
        return sum((_earlier(w * out, k) for k, w in enumerate(arrows)), jnp.zeros_like(out)), out

    step = backward if reverse else forward
    start = jnp.zeros_like(x[0])
    out: Array = device_types.scan(step, start, (x, parts), reverse=reverse)[1].astype(dtype)
    return out


@chain_sum.gradient
def _chain_sum_gradient(
    x: Var, weights: Sequence[Var], out: Var, d_out: Var, *, reverse: bool
) -> Grads:
    # The cotangent propagates by the same recurrence: d_x is the chain sum of d_out against the
    # arrows. The cotangent of a weight is the result at the tail of its arrow times the d_x at its
    # head.
    back = chain_sum(d_out, *weights, reverse=not reverse)
    heads, tails = (out, back) if reverse else (back, out)
    slopes = [heads * _delayed(tails, k) for k in range(len(weights))]
    return {
        "x": cast(back, dtype=x.dtype),
        "weights": [cast(d, dtype=w.dtype) for d, w in zip(slopes, weights, strict=True)],
    }


def _delayed(x: Var, k: int) -> Var:
    """``x[t - 1, n, s - k]`` at ``[t, n, s]``, zero where that does not exist."""
    steps, chains, states = x.shape
    k = min(k, states)
    kept = slice_(x, begin=(0, 0, 0), end=(steps - 1, chains, states - k))
    moved: Var = pad_slice(kept, shape=x.shape, begin=(1, 0, k), step=(1, 1, 1))
    return moved
