"""Rounding of attributes to single precision, as in MXNet's layers."""

from typing import Any

import numpy as np


def single(number: Any, like: Any) -> Any:
    """``number`` rounded to float32 as in MXNet, if ``like`` is in float64, where this matters.

    An array, such as the rate argument of a compiled step, is returned unchanged.
    """
    is_attribute = isinstance(number, (int, float))
    return float(np.float32(number)) if is_attribute and like.dtype == np.float64 else number
