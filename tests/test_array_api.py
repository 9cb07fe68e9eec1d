"""The list in docs/array-api.md: JAX differs from the standard there, and ``so.nd`` as JAX does."""

import math
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symop import nd
from symop.eager.array_api import DTYPES

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| `(\w+)\((.+)\)` \| `(.+)` \| `(.+)` \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs/array-api.md").read_text())
NAMES = {"complex": complex, "inf": math.inf, "nan": math.nan, "pi": math.pi}
ALIASES = {"floordiv": "floor_divide", "ifloordiv": "floor_divide", "mod": "remainder"}
ALIASES["imod"] = "remainder"


def read(text):
    """The numbers that a cell of the table lists."""
    return eval(f"({text},)", {"__builtins__": {}}, NAMES)


def same(one, other):
    """Whether two numbers are equal, signs of zeros and nan in each part included."""
    pairs = [(one.real, other.real), (one.imag, other.imag)]
    return all(
        (math.isnan(a) and math.isnan(b))
        or (math.isclose(a, b) and math.copysign(1, a) == math.copysign(1, b))
        for a, b in pairs
    )


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(("name", "given", "standard", "ours"), ROWS)
def test_jax_differs_where_the_list_says(name, given, standard, ours, x64):
    (expected,), (found,) = read(standard), read(ours)
    with jax.enable_x64(x64):
        of_jax = getattr(jnp, name)(*map(jnp.asarray, read(given))).item()
        of_nd = getattr(nd, name)(*map(nd.array, read(given))).item()
    tolerant = np.float32 if isinstance(found, float) else np.complex64
    found, of_jax, of_nd = (tolerant(one).item() for one in (found, of_jax, of_nd))
    assert same(of_jax, found)
    assert same(of_nd, found)
    assert not same(of_jax, expected)


def test_the_list_has_what_is_expected_to_fail():
    text = (ROOT / "tests/array_api_xfails.txt").read_text()
    failing = re.findall(r"^array_api_tests/test_special_cases.*?\[(\w+?)\(", text, re.MULTILINE)
    names = {one.strip("_") for one in failing}
    assert {ALIASES.get(one, one) for one in names} == {row[0] for row in ROWS}
    assert len(ROWS) > 40


def test_every_expected_failure_has_a_reason():
    for group in (ROOT / "tests/array_api_xfails.txt").read_text().split("\n\n"):
        lines = group.strip().splitlines()
        assert lines[0].startswith("# ")
        for line in lines:
            assert re.match(r"(# |array_api_tests/test_\w+\.py::test_\w+(\[.+\])?$|#$)", line)


@pytest.mark.usefixtures("x64")
def test_dtypes_do_not_equal_none():
    for name in DTYPES:
        dtype = getattr(nd, name)
        assert dtype != None  # noqa: E711  # ``np.dtype("float64") == None`` holds
        assert nd.zeros(2, dtype=dtype).dtype == jnp.zeros(2, dtype).dtype
        assert np.dtype(dtype) == dtype
        assert not nd.can_cast(nd.complex64, nd.float64)
    assert nd.ones(2, dtype=nd.float32).dtype == nd.float32
    assert nd.result_type(nd.float32, nd.int32) == nd.float32


def test_an_axis_that_does_not_exist_is_an_index_error():
    x = nd.ones((2, 3))
    for call in (
        lambda: nd.expand_dims(x, axis=5),
        lambda: nd.expand_dims(x, axis=-4),
        lambda: nd.sum(x, axis=2),
        lambda: nd.stack([x], axis=4),
        lambda: nd.take(x, nd.array([0]), axis=2),
    ):
        with pytest.raises(IndexError, match="axis must be in"):
            call()
