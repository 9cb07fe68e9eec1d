"""Attributes of single precision: what MXNet's layers make of a number that a user wrote."""

from typing import Any

import numpy as np


def single(number: Any, like: Any) -> Any:
    """``number`` as MXNet keeps it, in float32, where ``like`` is so precise that it shows.

    An array in its place, such as a rate that a compiled step takes, is left as it is.
    """
    is_attribute = isinstance(number, (int, float))
    return float(np.float32(number)) if is_attribute and like.dtype == np.float64 else number
