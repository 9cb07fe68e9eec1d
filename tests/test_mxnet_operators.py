"""Operators of MXNet against values, gradients and second derivatives that MXNet 1.9.1 computed."""

import functools
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from symop.interop.mxnet.graph import state_names
from symop.interop.mxnet.operators import TABLE
from symop.interop.mxnet.symbol_json import decode
from symop.interop.mxnet.translating import translated

DATA = pathlib.Path(__file__).parent / "data" / "mxnet"
CASES = {one["id"]: one for one in json.loads((DATA / "operator_cases.json").read_text())}
RTOL = {"float32": 1e-5, "float64": 1e-9}
# The second derivatives are central differences, whose absolute accuracy is about 1e-7.
DIFFERENCES = 1e-6
LOOSE = {
    ("LeakyReLU:gelu", "float64"): "MXNet computes it with constants of float32",
    ("_random_pdf_gamma", "float64"): "MXNet's digamma is accurate to 2e-8",
}
RANDOM = {"Dropout:always"}
# Where differences of MXNet's first derivatives are not the second ones.
NO_SECOND = {
    "LeakyReLU:gelu": "differences of values of float32 accuracy",
    "_random_pdf_gamma": "differences of a digamma that is accurate to 2e-8",
    "_linalg_syevd": "MXNet reads one triangle, so that an entry moves its mirror image or nothing",
    "RNN:rnn_tanh": "a change of the input between two calls does not reach MXNet's kept states",
}


@functools.cache
def recorded():
    with np.load(DATA / "operator_cases.npz") as file:
        return dict(file)


def arrays(name, dtype, kind):
    start = f"{name}|{dtype}|{kind}|"
    return {key[len(start) :]: one for key, one in recorded().items() if key.startswith(start)}


class Case:
    """One operator on recorded arrays of one dtype."""

    def __init__(self, name, dtype):
        self.case, self.name, self.dtype = CASES[name], name, dtype
        heads = decode(self.case["symbol_json"])
        self.given = {one: jnp.asarray(a) for one, a in arrays(name, dtype, "in").items()}
        shapes = {one: a.shape for one, a in self.given.items()}
        dtypes = {one: a.dtype for one, a in self.given.items()}
        self.symbol = translated(heads, shapes, dtypes)
        self.states = state_names(heads)

    def values(self, symbol, **more):
        function = jax.jit(symbol.to_jax(is_train=self.case["is_train"]))
        given = {**self.given, **more}
        names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
        found = function(**{one: given[one] for one in names}, key=jax.random.key(0))
        return found[0] if isinstance(found, tuple) else found

    @functools.cached_property
    def outputs(self):
        found = self.values(self.symbol)
        return found if isinstance(found, list) else [found]

    def heads(self):
        """Cotangents of the outputs: zeros where MXNet had none."""
        told = arrays(self.name, self.dtype, "h0")
        return [
            told.get(str(i), np.zeros(one.shape, one.dtype)) for i, one in enumerate(self.outputs)
        ]

    def gradient(self, x):
        heads = [so.var(f"head{i}", one.shape, one.dtype) for i, one in enumerate(self.heads())]
        return so.grad(self.symbol, self.variable(x), heads, unreachable="zero")

    def variable(self, name):
        return self.symbol.get_internals()[name]

    def head_values(self):
        return {f"head{i}": one for i, one in enumerate(self.heads())}

    def close(self, found, expected, rtol=None):
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.shape == expected.shape
        loose = 2e-7 if (self.name, self.dtype) in LOOSE else 0.0
        scale = max(1.0, float(np.max(np.abs(np.nan_to_num(expected)), initial=0.0)))
        rtol = max(rtol or RTOL[self.dtype], loose)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * scale)


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


EACH = [(name, dtype) for name, case in CASES.items() for dtype in case["dtypes"]]
EACH = [one for one in EACH if arrays(*one, "in") or not CASES[one[0]]["inputs"]]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "dtype"), EACH)
def test_values_and_gradients_are_those_of_mxnet(name, dtype):
    case = Case(name, dtype)
    outputs = case.outputs
    told = case.case["dtypes"][dtype]
    assert [str(one.dtype) for one in outputs] == told["out_dtypes"]
    assert [list(one.shape) for one in outputs] == told["out_shapes"]
    if name in RANDOM:
        return
    for index, expected in arrays(name, dtype, "out").items():
        case.close(outputs[int(index)], expected)
    for x, expected in arrays(name, dtype, "g1").items():
        case.close(case.values(case.gradient(x), **case.head_values()), expected)


SECOND = [
    (name, *key.split(","))
    for name, dtype in EACH
    if dtype == "float64" and name not in NO_SECOND and name not in RANDOM
    for key in arrays(name, dtype, "g2fd")
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "x", "y"), SECOND)
def test_second_derivatives_are_differences_of_first_ones(name, x, y):
    case = Case(name, "float64")
    outer = jnp.asarray(arrays(name, "float64", "h1")[x])
    head = so.var("outer", outer.shape, outer.dtype)
    second = so.grad(case.gradient(x), case.variable(y), head, unreachable="zero")
    found = case.values(second, outer=outer, **case.head_values())
    case.close(found, arrays(name, "float64", "g2fd")[f"{x},{y}"], DIFFERENCES)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "x"), [(name, x) for name in sorted(NO_SECOND) for x in CASES[name]["grad_inputs"]]
)
def test_second_derivatives_that_mxnet_has_not_are_ours(name, x):
    case = Case(name, "float64")
    gradient, given = case.gradient(x), case.given[x]
    rng = np.random.default_rng(0)
    way, outer = (jnp.asarray(rng.normal(size=given.shape)) for _ in range(2))
    second = so.grad(so.sum(gradient * outer), case.variable(x), unreachable="zero")
    if name == "_linalg_syevd":  # a function of symmetric matrices
        way = (way + way.T) / 2

    def slope(step):
        moved = case.values(gradient, **{x: given + step * way}, **case.head_values())
        return jnp.sum(moved * outer)

    expected = (slope(1e-6) - slope(-1e-6)) / 2e-6
    found = jnp.sum(case.values(second, **case.head_values()) * way)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_random_cases_draw_and_scale():
    case = Case("Dropout:always", "float64")
    (found,), data = case.outputs, np.asarray(case.given["data"])
    assert set(np.unique(np.asarray(found) / data)) == {0.0, 2.0}


def test_every_operator_of_the_list_is_mapped():
    names = (DATA / "operators.txt").read_text().split()
    assert not [name for name in names if name not in TABLE]
