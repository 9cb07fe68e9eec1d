"""MXNet's schedules of learning rates against their formulas."""

import math

import numpy as np
import pytest

from symop.interop.mxnet import lr_scheduler
from symop.interop.mxnet.errors import MXNetError


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (lr_scheduler.FactorScheduler(2, 0.1, base_lr=1.0), [1, 1, 1, 0.1, 0.1, 0.01]),
        (
            lr_scheduler.FactorScheduler(1, 0.1, stop_factor_lr=0.05, base_lr=1.0),
            [1, 1, 0.1, 0.05, 0.05, 0.05],
        ),
        (lr_scheduler.MultiFactorScheduler([2, 4], 0.5, base_lr=1.0), [1, 1, 1, 0.5, 0.5, 0.25]),
        (
            lr_scheduler.PolyScheduler(4, base_lr=1.0, pwr=1, final_lr=0.2),
            [1, 0.8, 0.6, 0.4, 0.2, 0.2],
        ),
        (
            lr_scheduler.CosineScheduler(4, base_lr=1.0),
            [1, (1 + math.sqrt(0.5)) / 2, 0.5, (1 - math.sqrt(0.5)) / 2, 0, 0],
        ),
        (
            lr_scheduler.PolyScheduler(4, base_lr=1.0, pwr=1, warmup_steps=2, warmup_begin_lr=0.5),
            [0.5, 0.75, 1, 0.5, 0, 0],
        ),
        (
            lr_scheduler.CosineScheduler(
                4, base_lr=1.0, warmup_steps=2, warmup_begin_lr=0.5, warmup_mode="constant"
            ),
            [0.5, 0.5, 1, 0.5, 0, 0],
        ),
    ],
)
def test_schedules(schedule, expected):
    np.testing.assert_allclose([schedule(i) for i in range(6)], expected, atol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lr_scheduler.FactorScheduler(0),
        lambda: lr_scheduler.FactorScheduler(1, 2.0),
        lambda: lr_scheduler.MultiFactorScheduler([3, 2]),
        lambda: lr_scheduler.PolyScheduler(0),
        lambda: lr_scheduler.CosineScheduler(3, base_lr=0.1, warmup_begin_lr=0.2),
        lambda: lr_scheduler.CosineScheduler(3, warmup_mode="square"),
    ],
)
def test_schedules_of_no_sense(make):
    with pytest.raises(MXNetError):
        make()
