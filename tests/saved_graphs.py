"""Graphs that the tests of files and of printed programs share, and operators they are made of."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from registry import table
from registry.operator.operator import Operator
from registry.operator.signature import Array, Key, Parameter, State, Training
from symop.graph.nodes import array, constant, variable


def saved_norm(
    x: Array,
    gamma: Parameter,
    beta: Parameter | None,
    mean: State,
    training: Training,
    *,
    momentum: float = 0.9,
    use_beta: bool = True,
) -> tuple[Array, Array, Array]:
    """Has three outputs, a slot that may be empty, and state."""
    del training, use_beta
    out = x * gamma if beta is None else x * gamma + beta
    return out, out + 1.0, mean * momentum


def saved_noise(x: Array, key: Key, training: Training, *, rate: float = 0.5) -> Array:
    """Draws random numbers."""
    del training
    return x + rate * jax.random.normal(key, x.shape, x.dtype)


def saved_attrs(
    x: Array,
    other: Array | None = None,
    last: Array | None = None,
    *,
    count: int = 1,
    ratio: float = 1.0,
    flag: bool = False,
    word: str = "a",
    number: complex | float | int | bool = 1,
    axes: tuple[int, ...] | None = None,
    pads: tuple[tuple[int, int], ...] = (),
    dtype: np.dtype | None = None,
) -> Array:
    """Has an attribute of each type, and slots that may be empty."""
    del other, last, count, ratio, flag, word, number, axes, pads, dtype
    return x


def saved_join(first: Array, *rest: Array) -> Array:
    """Has a variadic slot behind another."""
    return sum(rest, first)


def saved_sine(x: Array) -> Array:
    """Takes one input."""
    return jnp.sin(x)


NORM = Operator(saved_norm, outputs=("out", "shifted", "new_mean"), updates={"mean": "new_mean"})
NOISE, ATTRS, JOIN = Operator(saved_noise), Operator(saved_attrs), Operator(saved_join)
ODD = Operator(saved_sine, name="odd op!")
PROBES = [NORM, NOISE, ATTRS, JOIN]


@contextlib.contextmanager
def registered(*operators):
    """The table of operators with some more; other tests go through the whole table."""
    with pytest.MonkeyPatch.context() as patch:
        for one in operators:
            patch.setitem(table._table, one.name, one)
        yield


@pytest.fixture(scope="module", autouse=True)
def probes():
    with registered(*PROBES):
        yield


def network():
    """A net with two parameters, a loss, and the loss's gradient with respect to both."""
    x = so.var("x", shape=(4, 3), dtype="float32")
    w = so.var("w", shape=(4, 3))
    hidden = so.tanh(x * w, name="hidden")
    loss = so.mean(so.square(hidden - 1.0) * 2.0)
    return [loss, *so.grad(loss, [x, w])]


def nodes_of(*symbols):
    return [node for symbol in symbols for node in symbol.nodes]


def normed(name="bn"):
    """All outputs of a call that has three, one of them hidden."""
    x = variable("x", (2, 3))
    gamma, mean = variable("gamma", (3,)), variable("mean", (3,), role="state")
    out, shifted = NORM(x, gamma, None, mean=mean, use_beta=False, name=name)
    return [out, shifted]


def noisy():
    """Two keys, of which the later comes first in the order of the graph."""
    x = variable("x", (2,))
    early, late = NOISE(x), NOISE(x, rate=0.25)
    return [late, early]


CONSTANTS = [
    True,
    False,
    0,
    -7,
    10**30,
    1.0,
    -0.0,
    1e-300,
    float("inf"),
    float("-inf"),
    float("nan"),
    2 + 3j,
    complex(float("nan"), -0.0),
]
ATTRIBUTES = [
    {},
    {"count": -3},
    {"count": 2**80},
    {"ratio": 0.1},
    {"ratio": -0.0},
    {"ratio": float("nan")},
    {"ratio": float("-inf")},
    {"flag": True},
    {"word": ""},
    {"word": 'quote " backslash \\ line\nend \x7f \u2028 \U0001f600 é'},
    {"number": 1.0},
    {"number": True},
    {"number": 1 - 2j},
    {"axes": ()},
    {"axes": (1,)},
    {"axes": (1, 2)},
    {"pads": ((1, 2), (3, 4))},
    {"dtype": np.dtype("float32")},
    {"dtype": np.dtype(jnp.bfloat16)},
    {"count": 2, "ratio": 3.0, "word": "both"},
]
NAMES = [
    "plain",
    "α",
    "dotted.name.0",
    "with space",
    'quo"te',
    "back\\slash",
    "line\nbreak",
    "1leading",
    "True",
    "None",
    "nan",
    "inf",
    "training",
    "complex",
    "float32",
    "selected_rows",
    "_",
    "array",
    "state",
    "# gradient of x",
    "sin0",
    "x->y",
    "\u202e",
    "a..b",
    "-",
    "saved_norm0.out",
]


def random_graph(seed):
    """Outputs of a graph over a few variables, some without a shape, with gradients among them."""
    rng = np.random.default_rng(seed)
    known = bool(rng.integers(2))
    values = [so.var(f"v{i}", shape=(2, 3) if known or i else None) for i in range(3)]
    for i in range(rng.integers(1, 25)):
        values.append(_random_call(rng, values, f"named{seed}_{i}"))
    outputs = [values[i] for i in rng.integers(len(values), size=3)]
    return nodes_of(*outputs, *_random_gradient(values))


def _random_call(rng, values, name):
    first, second = (values[i] for i in rng.integers(len(values), size=2))
    number = [0.0, 1.0, -1.0, 2.0, 3, 0.1][rng.integers(6)]
    named = {"name": name} if rng.integers(5) == 0 else {}
    choices = [
        lambda: so.sin(first, **named),
        lambda: so.multiply(first, second, **named),
        lambda: so.multiply(number, first),
        lambda: first + second,
        lambda: first - number,
        lambda: so.negative(first),
        lambda: first / (second + 2.0),
        lambda: so.maximum(first, second),
        lambda: so.where(first > second, first, number),
        lambda: so.scale(first, scale=float(number)),
        lambda: so.sum(first, axis=0, keepdims=True) + second,
        lambda: so.add_n(first, second, first),
    ]
    return choices[rng.integers(len(choices))]()


def _random_gradient(values):
    depends = so.sum(values[-1] * values[0])
    gradient = so.grad(depends, values[0])
    second = so.grad(so.sum(gradient * gradient), values[0], unreachable="zero")
    return [gradient, second]


def arrays():
    """Array constants, and what a program may fill them with."""
    return [
        np.zeros((0, 3), np.float32),
        np.asarray(1.5, np.float64),
        np.asarray([True, False]),
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.asarray([0.1, -0.0, np.nan, np.inf, 1e-45], np.float32),
        np.asarray([0.1, -3.0], jnp.bfloat16),
        np.asarray([0.1, 2.0], jnp.float8_e4m3fn),
        np.asarray([0.1 + 2j, complex(1, np.inf)], np.complex64),
        np.arange(4, dtype=">f4"),
        np.asarray([-8, 7], jnp.int4),
        np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3)),
    ]


def array_nodes():
    return [array(value) for value in arrays()]


def constant_nodes():
    x = variable("x", (3,))
    fits = [v for v in CONSTANTS if not isinstance(v, complex) and v != 10**30]
    weak = [JOIN(x, value) for value in fits]
    bare = [constant(value) for value in CONSTANTS]
    typed = [constant(2.0, node.type.strong()) for node in [x, *weak[:2]]]
    return [*weak, *bare, *typed]
