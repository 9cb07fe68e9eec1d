"""Every rule of storage types: what the table in docs/mxnet.md says, against dense arrays."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from symop.interop.mxnet import autograd, nd, storage
from symop.interop.mxnet.attributes import written
from symop.interop.mxnet.operators import TABLE
from symop.interop.mxnet.storage import RULES

STORED = np.array([[0, 0, 0], [0.5, -0.25, 0], [0, 0, 0], [0.75, 0.5, 0]], np.float32)
OTHER = np.array([[0, 0.5, 0], [0.5, 2, 1], [0, 0, 0], [0, 0, 0]], np.float32)
STORED_ROWS = OTHER.any(1)
DENSE = np.array([[2, 1, 3], [4, 2, 1], [1, 3, 2], [3, 1, 1]], np.float32) / 4
INDICES = np.array([3, 1, 3], np.float32)
LAZY = ("ftrl_update", "_sparse_adagrad_update", "_contrib_group_adagrad_update")
"""Updates of the rows alone that a gradient stores, with any attributes."""
SCATTERED = ("_scatter_elemwise_div", "_scatter_plus_scalar", "_scatter_minus_scalar")
"""Operators that MXNet defines on sparse arrays as other functions."""
STEP = {"lr": 0.5, "wd": 0.0, "epsilon": 0.1, "lazy_update": False, "momentum": 0.5}
ATTRIBUTES = {
    "clip": [{"a_min": -0.3, "a_max": 0.3}],
    "_contrib_quadratic": [{"a": 1, "b": 2, "c": 0}],
    "cast_storage": [{"stype": stype} for stype in storage.NUMBERS],
    "take": [{"mode": "clip"}],
    "Embedding": [{"input_dim": 4, "output_dim": 3, "sparse_grad": one} for one in (True, False)],
    "_contrib_SparseEmbedding": [{"input_dim": 4, "output_dim": 3}],
    "Concat": [{"dim": 0}],
    "slice": [{"begin": (1, None), "end": (3, 2)}],
    "sum": [{"axis": 0}, {"axis": 1}],
    "mean": [{"axis": 0}, {"axis": 1}],
    "norm": [{}, {"axis": 0}, {"axis": 1}],
    "_square_sum": [{"axis": 0}, {"axis": 1}, {"axis": 1, "keepdims": True}],
    "FullyConnected": [{"num_hidden": 4}, {"num_hidden": 4, "no_bias": True}],
    "dot": [
        {"transpose_a": a, "transpose_b": b, "forward_stype": stype}
        for a in (False, True)
        for b in (False, True)
        for stype in (None, "default", "row_sparse", "csr")
    ],
}


def attributes_of(name):
    """The attributes with which an operator is called."""
    known = TABLE[name].attributes
    if name in ATTRIBUTES:
        return ATTRIBUTES[name]
    if name.endswith("_update"):
        return [{key: one for key, one in STEP.items() if key in known}]
    if name == "_div_scalar":
        return [{"scalar": 2}]  # 0 / 0 at positions that are not stored stays 0, as in MXNet
    return [{"scalar": one} for one in (0, 2, -2)] if "scalar" in known else [{}]


def read(name, attributes, count):
    """The attributes as the operator reads them."""
    texts = {key: written(one) for key, one in attributes.items() if one is not None}
    return TABLE[name].read(texts, count)


def inputs_of(name, stypes, attributes):
    """Values of the inputs, on the host."""
    given = [DENSE if one == "default" else (STORED, OTHER)[i % 2] for i, one in enumerate(stypes)]
    if name in ("take", "_sparse_retain"):
        given[1] = INDICES
    if "Embedding" in name:
        given[0] = INDICES
    if name == "FullyConnected" and len(given) == 3:
        given[2] = given[2][:, :1].reshape(4) if stypes[2] == "default" else given[2][:, 0]
    if name == "dot" and attributes["transpose_a"] == attributes["transpose_b"]:
        given[1] = given[1].T.copy()
    if name.endswith("_update"):
        given[2:] = [np.abs(one) for one in given[2:]]
        if name == "_contrib_group_adagrad_update":
            given[2] = given[2][:, :1]
    return given


def is_refused(name, stypes, attributes):
    """Whether a call raises an error, whatever the storage types."""
    if name == "FullyConnected":
        return attributes.get("no_bias", False) != (len(stypes) == 2)
    if name == "cast_storage":  # a sparse array does not become one of the other sparse type
        return "default" not in (*stypes, attributes["stype"]) and stypes[0] != attributes["stype"]
    return False


def cases():
    """Every rule with storage types and attributes for which it is chosen."""
    for name, rules in sorted(RULES.items()):
        for i, rule in enumerate(rules):
            patterns = [one.rstrip("*").split("|") for one in rule.inputs]
            if rule.inputs[-1].endswith("*"):
                patterns.append(patterns[-1])
            for stypes in itertools.product(*patterns):
                for attributes in attributes_of(name):
                    if is_refused(name, stypes, attributes):
                        continue
                    values = read(name, attributes, len(stypes))
                    if storage.chosen(name, stypes, values) is rule:
                        label = "-".join([name, *stypes, *map(str, attributes.values())])
                        yield pytest.param(name, i, stypes, attributes, id=label)


def arrays_of(values, stypes):
    """Arrays of storage types, or dense ones."""
    return [nd.array(one).tostype(stype) for one, stype in zip(values, stypes, strict=True)]


CASES = list(cases())


def test_every_rule_has_a_case():
    found = {(one.values[0], one.values[1]) for one in CASES}
    assert found == {(name, i) for name, rules in RULES.items() for i in range(len(rules))}


@pytest.mark.parametrize(("name", "place", "stypes", "attributes"), CASES)
def test_a_rule(name, place, stypes, attributes):
    rule, given = RULES[name][place], inputs_of(name, stypes, attributes)
    values = read(name, attributes, len(stypes))
    function = getattr(nd.op, name)
    arrays, plain = arrays_of(given, stypes), arrays_of(given, ["default"] * len(given))
    storage.forget_warnings()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = function(*arrays, **attributes)
    assert found.stype == rule.stype(values)
    if name in SCATTERED:
        return
    dense = {key: one for key, one in attributes.items() if key != "forward_stype"}
    expected = function(*plain, **dense).asnumpy()
    if name in LAZY:
        expected[~STORED_ROWS] = given[0][~STORED_ROWS]
    assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    if not rule.traced or rule.in_place is not None:
        return
    moving = [i for i, one in enumerate(stypes) if one != "csr" and given[i] is not INDICES]
    for i in moving:
        told = rule.gradient(i)
        arrays[i].attach_grad(stype="row_sparse" if told == "row_sparse" else "default")
        plain[i].attach_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with autograd.record():
            found = function(*arrays, **attributes)
        if not found.stored.is_recorded:
            return
        found.backward()
    with autograd.record():
        expected = function(*plain, **dense)
    expected.backward()
    for i in moving:
        own, other = arrays[i].grad, plain[i].grad
        assert_allclose(own.asnumpy(), other.asnumpy(), rtol=1e-5, atol=1e-6)
        if rule.gradient(i) == "row_sparse":
            assert len(own.indices) < len(other)
