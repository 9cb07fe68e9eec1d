"""Operators and their gradients against what Paddle 1.8.5 and 2.6.2 computed."""

import numpy as np
import pytest
from paddle_records import records

import symop as so
from symop.interop.paddle import ops
from symop.interop.paddle.executor import Executor, Scope
from symop.interop.paddle.framework import parse
from symop.interop.paddle.operators import names
from symop.interop.paddle.programs import Program

assert ops
RECORDS = records()
STRIDE = 12
"""Every so many cases are run by ``make test``, the others are thorough."""

PADDLE_DIFFERS = {
    "fake_quantize_moving_average_abs_max-0": "in prediction Paddle leaves the new scale unset",
    "fake_quantize_dequantize_moving_average_abs_max-0": "likewise",
}

PADDLE_IS_WRONG = {
    "pool2d-6": "the kernel of the largest entries ignores adaptive, except for the output's shape",
    "pool2d-7": "likewise",
    "spectral_norm-0": "the gradient multiplies entry by entry where a sum of products belongs",
}
"""Records whose values are not what the operators are to compute; docs/paddle.md lists them."""


def marks_of(index, name):
    marks = [] if index % STRIDE == 0 else [pytest.mark.thorough]
    if name in PADDLE_IS_WRONG:
        reason = PADDLE_IS_WRONG[name]
        marks.append(pytest.mark.xfail(raises=AssertionError, strict=True, reason=reason))
    return marks


def sampled():
    return [pytest.param(one, marks=marks_of(i, one)) for i, one in enumerate(RECORDS)]


def data_of(value):
    return np.asarray(value.data if isinstance(value, so.LoDTensor) else value)


def dense(value):
    return so.get_tensor_from_selected_rows(value) if hasattr(value, "rows") else value


def program_of(record):
    """The program, whose heads have the shapes of what is fed: Paddle does not declare them."""
    program = Program(parse(record.program))
    for variable in program.desc.blocks[0].vars.values():
        if variable.name.endswith("_head"):
            variable.shape = None
    return program


@pytest.mark.parametrize("name", sampled())
def test_operators_equal_paddle(name):
    record = RECORDS[name]
    wanted = {
        key: one
        for key, one in record.expected.items()
        if name not in PADDLE_DIFFERS or data_of(one).size
    }
    found = Executor().run(
        program_of(record), record.feed, list(wanted), scope=Scope(), return_numpy=False
    )
    for value, (key, truth) in zip(found, wanted.items(), strict=True):
        one, other = data_of(dense(value)), data_of(truth)
        assert one.shape == other.shape, key
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=key)
        if isinstance(truth, so.LoDTensor):
            for offsets, expected in zip(value.lod, truth.lod, strict=True):
                np.testing.assert_array_equal(offsets, expected)


def test_records_are_of_known_operators():
    kinds = {name.rpartition("-")[0] for name in RECORDS}
    assert len(RECORDS) > 150
    assert sorted(kinds - set(names())) == []
