"""An operator of one's own: a kernel, its gradient and cases, from which symop proves it.

``symlog`` compresses targets of very different sizes; ``symop check own_operator.py`` proves it.
"""

import jax.numpy as jnp
import numpy as np
import optax

import symop as so
from registry import Array, Grads, Var, case, op
from symop import train


def _reference(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.sign(x) * np.log1p(np.abs(x)))


@op(cases=[case(x=(3, 4)), case(x=())], reference=_reference)
def symlog(x: Array) -> Array:
    """Compresses large numbers of both signs: ``sign(x) log(1 + |x|)``."""
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


@symlog.gradient
def symlog_gradient(x: Var, d_out: Var) -> Grads:
    """The derivative is ``1 / (1 + |x|)``."""
    return {"x": d_out / (1.0 + so.abs(x))}


def run(steps: int = 300) -> float:
    """Fits a line to targets of very different sizes; returns the loss."""
    inputs = np.random.default_rng(0).normal(size=(128, 4)).astype(np.float32)
    targets = np.sinh(inputs @ np.float32([3, -2, 1, 0]))
    x, y = so.var("x", shape=(128, 4)), so.var("y", shape=(128,))
    w = so.var("w", shape=(4,))
    loss = so.mean(so.square(symlog(so.sinh(x @ w)) - symlog(y)))
    trainer = train.Trainer(loss, optax.adam(0.05), inputs=["x", "y"])
    state = trainer.init(0)
    for _ in range(steps):
        state, metrics = trainer.step(state, {"x": inputs, "y": targets})
    return float(metrics["loss"])


if __name__ == "__main__":
    print(f"loss {run():.1e}")
    print(so.grad(so.sum(symlog(so.var("x", shape=(3,)))), "x"))
