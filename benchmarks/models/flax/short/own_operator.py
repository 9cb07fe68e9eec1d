"""A function with a derivative rule of one's own, and tests of both.

``symlog`` compresses targets of very different sizes.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from jax.test_util import check_grads


@jax.custom_jvp
def symlog(x: jax.Array) -> jax.Array:
    """Compresses large numbers of both signs: ``sign(x) log(1 + |x|)``."""
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


@symlog.defjvp
def symlog_jvp(primals: Any, tangents: Any) -> Any:
    """The derivative is ``1 / (1 + |x|)``."""
    (x,), (t,) = primals, tangents
    return symlog(x), t / (1.0 + jnp.abs(x))


def check() -> None:
    """Compares values with NumPy's and derivatives with finite differences."""
    for shape in ((3, 4), ()):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        np.testing.assert_allclose(symlog(x), np.sign(x) * np.log1p(np.abs(x)), rtol=1e-6)
        check_grads(symlog, (x,), order=2)


class Line(nn.Module):
    """A line through zero."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Rows to numbers."""
        return nn.Dense(1, use_bias=False)(x)[:, 0]


def run(steps: int = 300) -> float:
    """Fits a line to targets of very different sizes; returns the loss."""
    inputs = np.random.default_rng(0).normal(size=(128, 4)).astype(np.float32)
    targets = np.sinh(inputs @ np.float32([3, -2, 1, 0]))
    line, optimizer = Line(), optax.adam(0.05)
    params = line.init(jax.random.key(0), inputs)
    opt_state = optimizer.init(params)

    @jax.jit
    def step(params: Any, opt_state: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            return jnp.mean(jnp.square(symlog(jnp.sinh(line.apply(params, x))) - symlog(y)))

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    for _ in range(steps):
        params, opt_state, value = step(params, opt_state, inputs, targets)
    return float(value)


if __name__ == "__main__":
    check()
    print(f"loss {run():.1e}")
