"""``so.from_jax`` and ``so.transform`` compute what JAX computes, and its derivatives."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from tests.jax_calls import CALLS, JaxCall

NAMES = [one.name for one in CALLS]


def _numbers(value: Any) -> np.ndarray:
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value, np.float32 if value.dtype == jnp.bfloat16 else None)


def _require_equal(got: Any, wanted: Any, rtol: float, atol: float) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        left, right = map(_numbers, (one, other))
        np.testing.assert_allclose(left, right, rtol, atol)


def test_the_table_is_large() -> None:
    assert len(CALLS) >= 300


@pytest.mark.parametrize("call", CALLS, ids=NAMES)
def test_values(call: JaxCall) -> None:
    wanted = jax.jit(call.function)(*call.args)
    got = jax.jit(so.transform(call.function, strict=True))(*call.args)
    _require_equal(got, wanted, 2e-6, 2e-6)


def _total(function: Any, args: Any, places: list[int]) -> Any:
    """Returns a scalar function of the floating arguments that weighs every output."""

    def total(*moved: Any) -> Any:
        given = list(args)
        for i, one in zip(places, moved, strict=True):
            given[i] = one
        outputs = [
            y for y in jax.tree.leaves(function(*given)) if jnp.issubdtype(y.dtype, jnp.inexact)
        ]
        return sum(jnp.sum(jnp.cos(jnp.abs(y).astype(jnp.float32) + 0.3)) for y in outputs)

    return total


@pytest.mark.parametrize(
    "call", [one for one in CALLS if one.differentiable],
    ids=[one.name for one in CALLS if one.differentiable],
)  # fmt: skip
def test_gradients(call: JaxCall) -> None:
    places = [i for i, one in enumerate(call.args) if one.dtype == jnp.float32]
    moved = [call.args[i] for i in places]
    grads = [
        jax.jit(jax.grad(_total(one, call.args, places), tuple(range(len(places)))))(*moved)
        for one in (call.function, so.transform(call.function))
    ]
    _require_equal(grads[1], grads[0], 2e-4, 2e-5)
