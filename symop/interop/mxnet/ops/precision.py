"""Attributes of single precision: what MXNet's layers make of a number that a user wrote."""

from typing import Any

import numpy as np


def single(number: float, like: Any) -> float:
    """``number`` as MXNet keeps it, in float32, where ``like`` is so precise that it shows."""
    return float(np.float32(number)) if like.dtype == np.float64 else number
