"""Calls that test_typing.py checks and runs: a comment tells the type, or that it is an error."""

from typing import reveal_type

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
from registry import Array, Key, Parameter, Training, Var, op
from symop import nd, sym

s, v = so.var("s", shape=(2, 2)), so.Program().data("v", (2, 2))
n, a, p = nd.array([[1.0, 2.0], [3.0, 4.0]]), jnp.ones((2, 2)), np.ones((2, 2), np.float32)

# Operators return values of the kind that they are given.
reveal_type(so.softmax(s))  # Symbol
reveal_type(so.softmax(n, axis=0))  # NDArray
reveal_type(so.softmax(v, axis=(0,)))  # Variable
reveal_type(so.softmax(a))  # Array
reveal_type(so.softmax(p))  # Array
reveal_type(so.sin([1.0, 2.0]))  # Array
reveal_type(so.add(1.0, s))  # Symbol
reveal_type(so.add(a, n))  # NDArray
reveal_type(so.add(a, 1))  # Array
reveal_type(so.cast(s, dtype="float16"))  # Symbol
reveal_type(so.where(n > 0, n, 0.0))  # NDArray
reveal_type(so.zeros((2, 3)))  # Array
reveal_type(so.array_read(so.array_unstack(a), 0))  # Array
reveal_type(so.full((2,), 1.0, name="filled"))  # error
so.softmaxx(s)  # error
so.softmax(s, axes=-1)  # error
so.softmax(s, axis="last")  # error
so.add(s)  # error
print(so.jax)  # error

# Layers make the parameters that a graph omits.
reveal_type(so.fully_connected(s, units=10))  # Symbol
reveal_type(so.fully_connected(s, use_bias=False, units=10, name="layer"))  # Symbol
reveal_type(so.fully_connected(a, a, a[0], units=2))  # Array
reveal_type(so.dropout(s, rate=0.1))  # Symbol
so.fully_connected(n, units=10)  # error
so.fully_connected(s)  # error

# Several inputs, and several outputs.
reveal_type(so.concat(s, s, axis=0))  # Symbol
reveal_type(so.concat([s, a]))  # Symbol
reveal_type(so.concat(n, n, axis=0))  # NDArray
reveal_type(so.concat([a, p]))  # Array
reveal_type(so.einsum("ij,ij", n, n))  # NDArray
reveal_type(so.qr(s))  # Symbol
reveal_type(so.qr(n))  # tuple[NDArray, NDArray]
reveal_type(so.qr(v))  # tuple[Variable, Variable]
reveal_type(so.svd(a))  # tuple[Array, Array, Array]
reveal_type(so.split(n, 2))  # tuple[NDArray, ...]

# Methods, and Python's operators.
reveal_type(s.softmax(axis=0))  # Symbol
reveal_type(n.softmax())  # NDArray
reveal_type(v.softmax())  # Variable
reveal_type(s.qr())  # Symbol
reveal_type(n.qr())  # tuple[NDArray, NDArray]
reveal_type(n.sum(axis=0, dtype="float32"))  # NDArray
reveal_type(n.reshape(1, 4).T)  # NDArray
reveal_type(1.0 - s)  # Symbol
reveal_type(n @ n)  # NDArray
reveal_type(-v)  # Variable
reveal_type(s[0])  # Symbol
s.sumx()  # error
n.sumx()  # error
s.softmax(axes=0)  # error

# Derivatives.
loss = so.sum(so.square(s))
reveal_type(so.grad(loss, s))  # Symbol
reveal_type(so.grad(loss, "s"))  # Symbol
reveal_type(so.grad(loss, [s])[0])  # Symbol
reveal_type(so.grad(so.sum(v), v))  # Variable
reveal_type(so.grad(lambda x: x * x, 3.0))  # NDArray
reveal_type(so.grad(lambda x: x * x)(3.0))  # NDArray
reveal_type(so.jvp(loss, s, s))  # Symbol
reveal_type(so.derivative(so.sin(s), s, 2))  # Symbol
so.grad(loss, wrt=s)  # error

# Namespaces.
reveal_type(sym.softmax(s))  # Symbol
reveal_type(sym.zeros((2,)))  # Symbol
reveal_type(nd.softmax(n))  # NDArray
reveal_type(nd.softmax(a))  # Array
reveal_type(nd.square(n, out=n))  # NDArray
reveal_type(nd.random_normal(shape=(2,)))  # NDArray
reveal_type(nd.sum(n))  # NDArray
reveal_type(nd.sin(1.0))  # NDArray
reveal_type(nd.add(n, p))  # NDArray
print(nd.sinn)  # error
sym.sinn(s)  # error


# Operators of users.
@op
def bell(x: Array, *, width: float = 1.0) -> Array:
    """A bell."""
    return jnp.exp(-((x / width) ** 2))


@bell.gradient
def _bell_gradient(x: Var, out: Var, d_out: Var, *, width: float) -> dict[str, Var]:
    return {"x": d_out * out * x * (-2.0 / width**2)}


@op(name="typed_mixture")
def mixture(x: Array, y: Array, *, share: float) -> Array:
    """A weighted sum."""
    return share * x + (1.0 - share) * y


@op(name="typed_layer")
def layer(x: Array, weight: Parameter, *, units: int) -> Array:
    """A layer."""
    weight = jnp.asarray(weight)
    return x @ weight[:units].T


@op(name="typed_noise")
def noise(x: Array, key: Key, training: Training, *, scale: float = 1.0) -> Array:
    """Noise."""
    return x + scale * jax.random.normal(key, x.shape) if training else x


reveal_type(bell(s, width=2.0))  # Symbol
reveal_type(bell(s, name="bell"))  # Symbol
reveal_type(bell(n))  # NDArray
reveal_type(bell(a, width=2.0))  # Array
reveal_type(bell(p))  # Array
reveal_type(bell.name)  # str
reveal_type(mixture(s, s, share=0.5))  # Symbol
reveal_type(mixture(s, 1.0, share=0.5))  # Symbol
reveal_type(mixture(a, n, share=0.5))  # NDArray
reveal_type(mixture(a, a, share=0.5))  # Array
reveal_type(layer(s, units=2))  # Symbol
reveal_type(layer(a, a, units=2))  # Array
reveal_type(noise(s, scale=2.0))  # Symbol
reveal_type(noise(a))  # Array
bell(s, widht=2.0)  # error
bell(a, widht=2.0)  # error
bell(s, width="wide")  # error
