"""Every rewrite of a call: it is made, exact for any numbers, and keeps shape and dtype."""

import jax
import numpy as np
import pytest

import registry
import symop as so
from symop.graph.emission import deriving
from symop.graph.nodes import VARIABLE, origin_of
from symop.runtime.function import specialize
from symop.symbol.symbol import Symbol

HOSTILE = np.array([[np.nan, np.inf, -np.inf], [0.0, 3e38, -1e-40], [1.0, -2.5, 7.0]], np.float32)
# The sign of a zero is not kept by x + 0, neither by XLA: so no negative zero is among them.

CALLS = {
    "add": [lambda x, **o: so.add(x, 0.0, **o), lambda x, **o: so.add(0.0, x, **o)],
    "add_n": [
        so.add_n,
        lambda x, **o: so.add_n(x, x, **o),
        lambda x, **o: so.add_n(x, so.zeros_like(x), x, x, **o),
        lambda x, **o: so.add_n(so.zeros_like(x), so.zeros_like(x), so.zeros_like(x), **o),
    ],
    "broadcast_to": [lambda x, **o: so.broadcast_to(x, shape=(3, 3), **o)],
    "cast": [lambda x, **o: so.cast(x, dtype="float32", **o)],
    "concat": [lambda x, **o: so.concat(x, axis=0, **o)],
    "conj": [so.conj],
    "shard": [lambda x, **o: so.shard(so.shard(x, sharding=("d",)), sharding=("d",), **o)],
    "divide": [lambda x, **o: so.divide(x, 1.0, **o)],
    "einsum": [lambda x, **o: so.einsum(x, equation="ij->ji", **o)],
    "flip": [
        lambda x, **o: so.flip(so.flip(x, axis=(0, 1)), axis=(-1, -2), **o),
        lambda x, **o: so.flip(so.slice(x, begin=(0,), end=(1,)), axis=0, **o),
    ],
    "full_like": [lambda x, **o: so.full_like(x, fill_value=2.0, **o)],
    "identity": [so.identity],
    "khatri_rao": [so.khatri_rao],
    "logical_and": [
        lambda x, **o: so.logical_and(x > 1.0, True, **o),
        lambda x, **o: so.logical_and(False, x > 1.0, **o),
    ],
    "moveaxis": [
        lambda x, **o: so.moveaxis(x, source=1, destination=1, **o),
        lambda x, **o: so.moveaxis(
            so.moveaxis(x, source=0, destination=1), source=1, destination=0, **o
        ),
    ],
    "multiply": [lambda x, **o: so.multiply(x, 1.0, **o), lambda x, **o: so.multiply(1.0, x, **o)],
    "negative": [lambda x, **o: so.negative(so.negative(x), **o)],
    "ones_like": [so.ones_like],
    "pad": [lambda x, **o: so.pad(x, pad_width=((0, 0), (0, 0)), **o)],
    "permute_dims": [
        lambda x, **o: so.permute_dims(x, axes=(0, 1), **o),
        lambda x, **o: so.permute_dims(so.permute_dims(x, axes=(1, 0)), axes=(1, 0), **o),
    ],
    "power": [lambda x, **o: so.power(x, 1.0, **o)],
    "integer_power": [
        lambda x, **o: so.integer_power(x, exponent=1, **o),
        lambda x, **o: so.integer_power(x, exponent=0, **o),
    ],
    "prod": [lambda x, **o: so.prod(x, axis=(), **o)],
    "repeat": [lambda x, **o: so.repeat(x, repeats=1, axis=0, **o)],
    "reshape": [
        lambda x, **o: so.reshape(x, shape=(3, 3), **o),
        lambda x, **o: so.reshape(so.reshape(x, shape=(9,)), shape=(3, 3), **o),
    ],
    "roll": [lambda x, **o: so.roll(x, shift=0, axis=0, **o)],
    "scale": [
        lambda x, **o: so.scale(x, scale=1.0, **o),
        lambda x, **o: so.scale(so.scale(x, scale=-1.0), scale=-1.0, **o),
    ],
    "scale_paired_bins": [
        lambda x, **o: registry.get("scale_paired_bins")(x, n=5, factor=1.0, **o)
    ],
    "slice": [lambda x, **o: so.slice(x, begin=(0, 0), end=(3, 3), **o)],
    "slice_axis": [lambda x, **o: so.slice_axis(x, axis=1, begin=0, end=None, **o)],
    "subtract": [lambda x, **o: so.subtract(x, 0.0, **o)],
    "sum": [lambda x, **o: so.sum(x, axis=(), **o)],
    "sum_to": [lambda x, **o: so.sum_to(x, shape=(3, 3), **o)],
    "swapaxes": [
        lambda x, **o: so.swapaxes(x, axis1=1, axis2=-1, **o),
        lambda x, **o: so.swapaxes(so.swapaxes(x, axis1=0, axis2=1), axis1=1, axis2=0, **o),
    ],
    "tile": [lambda x, **o: so.tile(x, repetitions=(1, 1), **o)],
    "where": [lambda x, **o: so.where(True, x, -x, **o)],
    "zeros_like": [so.zeros_like],
}
WITH_FLAG = {"choose", "dropout"}
"""Those that a known training flag rewrites."""
VECTOR, SCALAR = ((3,), "float32"), ((), "float32")


def _twice(x, y):
    return x * y, y * x, x + y


def _step(c, d, x, y, w):
    return c * x, d * y, x + y, w * c, w * d


def _of_loop(name, function, *inputs, **more):
    """A call on five rows, the first two of which are equal, and the last two."""
    body = so.body(function, *inputs)

    def call(rows, **options):
        return registry.get(name)(*rows, body=body, **more, **options)

    return call


MERGED = {
    "call": ([0, 0], _of_loop("call", _twice, VECTOR, VECTOR)),
    "cond": (
        [0, 0],
        lambda rows, **o: registry.get("cond")(
            True, *rows, true_body=so.body(_twice, VECTOR, VECTOR),
            false_body=so.body(lambda x, y: (x + y, y + x, x), VECTOR, VECTOR), **o,
        ),
    ),
    "recompute": (
        [0, 0, 1],
        _of_loop("recompute", lambda x, y, z: (x * y * z, y * x * z, z), VECTOR, VECTOR, VECTOR,
                 saved=(1, 2), lasting=(1,), held=(0, 1), after=(2,)),
    ),
    "scan": ([0, 0, 1, 1, 2], _of_loop(
        "scan", _step, VECTOR, VECTOR, SCALAR, SCALAR, VECTOR, n_carry=2, n_xs=2, n_sums=1,
        length=3)),
    "scan_prefix": ([None, 0, 0, 1, 1, 2], _of_loop(
        "scan_prefix", _step, VECTOR, VECTOR, SCALAR, SCALAR, VECTOR, n_carry=2, n_xs=2, n_sums=1,
        length=3)),
    "vmap": ([0, 0, 1, 1], _of_loop(
        "vmap", lambda x, y, w, v: (x * w, y * v, w * y), SCALAR, SCALAR, VECTOR, VECTOR,
        n_mapped=2)),
    "while_loop": (
        [0, 0, 1, 1],
        lambda rows, **o: registry.get("while_loop")(
            *rows, condition=so.body(lambda c, d, x, y: so.sum(c + y) < 30.0, *[VECTOR] * 4),
            body=so.body(lambda c, d, x, y: (c + x, d + y, c - y, d - x), *[VECTOR] * 4),
            n_carry=2, max_steps=4, **o,
        ),
    ),
}  # fmt: skip
"""Operators that run bodies: the rows of a matrix that are their operands, and the call."""
EACH = [(name, i) for name, calls in CALLS.items() for i in range(len(calls))]


def test_every_rewrite_is_among_these():
    rewritten = {one for one in registry.names() if registry.get(one).simplify_rule is not None}
    assert rewritten == CALLS.keys() | WITH_FLAG | MERGED.keys()


def size(value, name):
    """How many calls of the operator ``name`` there are, and how many inputs they have."""
    calls = [op for op in value.to_desc().blocks[0].ops if op.type == name]
    return sum(1 + len(each) for op in calls for each in op.inputs.values())


@pytest.mark.usefixtures("optimized")  # it flushes subnormal numbers on both sides alike
@pytest.mark.parametrize(("name", "i"), EACH)
def test_a_rewrite_is_made_and_is_exact(name, i):
    x = so.var("x", (3, 3), "float32")
    with deriving(), origin_of(so.sin(x).node):  # only differentiation looks through calls
        simple, whole = (Symbol([CALLS[name][i](x.node, **o)]) for o in ({}, {"name": "kept"}))
    assert size(simple, name) < size(whole, name)
    assert simple.type == whole.type
    both = so.Group([simple, whole])
    found, expected = jax.jit(both.to_jax())(**dict.fromkeys(both.list_arguments(), HOSTILE))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", MERGED)
def test_equal_operands_and_results_of_bodies_are_merged(name):
    x = so.var("x", (3, 3), "float32")
    places, call = MERGED[name]
    rows = [x[i].node if i is not None else 2 for i in places]
    merged, whole = call(rows), call(rows, name="kept")
    values = [so.Group([Symbol([one]) for one in results]) for results in (merged, whole)]
    given = {one for one in merged[0].source.inputs if one is not None}
    assert len(merged[0].source.inputs) < len(whole[0].source.inputs)
    assert len(given & set(rows)) == len(set(rows) - {2})
    assert len(set(merged)) < len(set(whole))
    assert [one.type for one in merged] == [one.type for one in whole]
    value = np.arange(1.0, 10.0, dtype="float32").reshape(3, 3)
    for left, right in zip(*[one.eval(x=value) for one in values], strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("name", sorted(WITH_FLAG))
def test_a_known_flag_leaves_nothing_to_decide(name):
    x = so.var("x", (3, 3), "float32")
    value = {
        "choose": lambda: registry.get("choose")(x.node, so.sin(x).node),
        "dropout": lambda: so.dropout(x, rate=0.5).node,
    }[name]()
    ((left,), *_) = specialize([value], {"x": ((3, 3), x.dtype)}, training=False, rolling=False)
    assert left.op is (registry.get("sin") if name == "choose" else VARIABLE)
