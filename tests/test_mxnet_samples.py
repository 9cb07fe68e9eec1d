"""Every operator of MXNet against its definition: values, gradients, second derivatives."""

import collections
import pathlib

import jax
import numpy as np
import pytest
from mxnet_samples import SAMPLES
from mxnet_samples.sample import outputs
from mxnet_samples.table import NAMES, table

import symop as so
from registry.errors import NotDifferentiableError
from symop.interop.mxnet.operators import TABLE

COMPARED = [one for one in SAMPLES if one.reference is not None]
DIFFERENCES = [one for one in SAMPLES if one.gradient == "differences"]
DECLARED = [one for one in SAMPLES if one.gradient == "declared"]


PAGE = pathlib.Path(__file__).parents[1] / "docs" / "mxnet.md"
MARK = "<!-- The rest is written by `make golden`. -->"


def each(samples):
    """Samples under names that differ; all but the first of each operator are slow."""
    seen, marked = collections.Counter(), []
    for one in samples:
        seen.update([one.name, TABLE[one.op]])
        marks = [pytest.mark.slow] * (seen[TABLE[one.op]] > 1)
        marked.append(pytest.param(one, id=f"{one.name}#{seen[one.name]}", marks=marks))
    return marked


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


def close(found, expected, rtol):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert np.isfinite(other).all() == np.isfinite(one).all()
        scale = max(1.0, float(np.max(np.abs(other[np.isfinite(other)]), initial=0.0)))
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * scale)


def test_every_operator_has_a_sample():
    sampled = {TABLE[one.op].name for one in SAMPLES}
    assert not [name for name in NAMES if TABLE[name].name not in sampled]


@pytest.mark.golden
def test_the_page_tells_what_was_compared(golden):
    golden(PAGE, f"{PAGE.read_text().partition(MARK)[0]}{MARK}\n\n{table()}\n")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sample", each(COMPARED))
def test_values_are_those_of_the_definition(sample):
    arrays = sample.arrays("float64")
    if "float64" in sample.dtypes:
        found = sample.values(sample.graph(arrays), arrays)
        close(found, sample.expected(arrays), sample.rtol)
    arrays = sample.arrays("float32")
    close(sample.eager(arrays), sample.expected(arrays), max(sample.rtol, 2e-5))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sample", each([one for one in SAMPLES if one.draws]))
def test_draws_agree_on_shapes(sample):
    arrays = sample.arrays("float32")
    graph = sample.graph(arrays)
    found, eager = sample.values(graph, arrays), sample.eager(arrays)
    assert [one.shape for one in found] == [one.shape for one in eager]
    assert [one.dtype for one in found] == [one.dtype for one in eager]


@pytest.mark.parametrize("sample", each(DECLARED))
def test_declared_gradients_are_those_of_mxnet(sample):
    arrays = sample.arrays("float64")
    graph = sample.graph(arrays)
    slopes = sample.slopes(*arrays.values())
    xs = [graph.get_internals()[name] for name in slopes]
    ys = [one for one in outputs(graph) if one.dtype.kind == "f"]
    found = [sample.values(one, arrays)[0] for one in so.grad(ys, xs, unreachable="zero")]
    close(found, [np.asarray(one) for one in slopes.values()], sample.rtol)


# What is not tried in float64 is not tried in graphs.
GRAPHS = [one for one in SAMPLES if "float64" in one.dtypes]
ZERO = [one for one in GRAPHS if one.gradient == "zero" and one.wrt()]


@pytest.mark.slow
@pytest.mark.parametrize("sample", each(ZERO))
def test_what_has_no_gradient_has_zeros_or_says_so(sample):
    graph = sample.graph(sample.arrays())
    if not any(one.dtype.kind == "f" for one in outputs(graph)):
        return
    xs = [graph.get_internals()[name] for name in sample.wrt()]
    try:
        found = so.grad(sample.differentiable(graph), xs, unreachable="zero")
    except NotDifferentiableError:
        return
    for one in found:
        assert not np.any(sample.values(one, sample.arrays())[0])


@pytest.mark.slow
@pytest.mark.parametrize("sample", each(DIFFERENCES))
def test_gradients_are_differences_of_values(sample):
    graph = sample.graph(sample.arrays())
    scalar = sample.differentiable(graph)
    found = float(sample.values(sample.slope(graph, scalar), sample.arrays())[0])
    expected = sample.difference(scalar)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("sample", each([one for one in DIFFERENCES if one.second]))
def test_second_derivatives_are_differences_of_gradients(sample):
    graph = sample.graph(sample.arrays())
    first = sample.slope(graph, sample.differentiable(graph))
    found = float(sample.values(sample.slope(graph, first), sample.arrays())[0])
    expected = sample.difference(first)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
