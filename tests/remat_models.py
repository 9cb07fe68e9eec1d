"""Models of tests of rematerialization, written as a user's loop writes them."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

import symop as so
from symop.graph.naming import variables_of

Scope = Callable[[], Any]


def chain(layers: int, rows: int = 4, width: int = 3, scope: Scope | None = None) -> Any:
    """``h = tanh(h w)`` with weights of their own; each value has a name."""
    h = so.var("x", shape=(rows, width))
    for i in range(layers):
        with entered(scope):
            w = so.var(f"w{i}", shape=(width, width))
            h = so.tanh(so.matmul(h, w), name=f"h{i}")
    return so.mean(h * h)


def transformer(layers: int, scope: Scope | None = None, rate: float = 0.2) -> Any:
    """Encoder blocks: layer norm, attention of two heads, and dropout."""
    rows, steps, width, heads = 2, 5, 8, 2
    h = so.var("x", shape=(rows, steps, width))
    for i in range(layers):
        with entered(scope), so.name_scope(f"layer{i}_"):
            a = so.layer_norm(h, so.var("gain1", width), so.var("bias1", width))
            q, k, v = (_heads(so.matmul(a, _square(n, width)), heads) for n in "qkv")
            scores = so.matmul(q, so.transpose(k, axes=(0, 1, 3, 2))) * width**-0.5
            weights = so.dropout(so.softmax(scores), rate=rate)
            mixed = so.transpose(so.matmul(weights, v), axes=(0, 2, 1, 3))
            mixed = so.reshape(mixed, shape=(rows, steps, width))
            h = h + so.dropout(so.matmul(mixed, _square("o", width)), rate=rate)
            a = so.layer_norm(h, so.var("gain2", width), so.var("bias2", width))
            up = so.gelu(so.matmul(a, so.var("up", shape=(width, 2 * width))))
            h = h + so.matmul(up, so.var("down", shape=(2 * width, width)))
    return so.mean(h * h)


def _square(name: str, width: int) -> Any:
    return so.var(name, shape=(width, width))


def _heads(x: Any, heads: int) -> Any:
    rows, steps, width = x.shape
    split = so.reshape(x, shape=(rows, steps, heads, width // heads))
    return so.transpose(split, axes=(0, 2, 1, 3))


def resnet(blocks: int, scope: Scope | None = None) -> Any:
    """Residual blocks of convolution and ``batch_norm``."""
    h = so.var("x", shape=(2, 3, 6, 6))
    for i in range(blocks):
        with entered(scope), so.name_scope(f"block{i}_"):
            a = so.relu(_normalized(_convolved(h, "first"), "first"))
            h = so.relu(h + _normalized(_convolved(a, "second"), "second"))
    return so.mean(h * h)


def _convolved(x: Any, name: str) -> Any:
    w, b = so.var(f"{name}_w", shape=(3, 3, 3, 3)), so.var(f"{name}_b", shape=(3,))
    return so.convolution(x, w, b, channels=3, kernel=(3, 3), padding=1)


def _normalized(x: Any, name: str) -> Any:
    gain, bias = so.var(f"{name}_gain", shape=(3,)), so.var(f"{name}_bias", shape=(3,))
    mean = so.var(f"{name}_mean", shape=(3,), state=True)
    variance = so.var(f"{name}_variance", shape=(3,), state=True)
    return so.batch_norm(x, gain, bias, mean, variance)


def entered(scope: Scope | None) -> Any:
    """The scope, or none."""
    return contextlib.nullcontext() if scope is None else scope()


def values(loss: Any, seed: int = 0) -> dict[str, np.ndarray]:
    """An array for each variable; gains and variances are near one."""
    draw = np.random.default_rng(seed).standard_normal
    found = {}
    for name, node in variables_of(loss.roots).items():
        shape, dtype = node.type.shape, node.type.dtype
        drawn = np.asarray(draw(shape) * 0.5)
        near_one = name.rstrip("12").endswith(("gain", "variance"))
        found[name] = (1 + 0.1 * drawn**2 if near_one else drawn).astype(dtype)
    return found
