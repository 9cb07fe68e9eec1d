"""``mx.base``: the error of this interface, and the types that MXNet's scripts test against."""

import numpy as np

from symop.interop.mxnet.errors import MXNetError

__all__ = ["MXNetError", "integer_types", "mx_real_t", "numeric_types", "py_str", "string_types"]

integer_types = (int, np.integer)
numeric_types = (float, int, np.generic)
string_types = (str,)
mx_real_t = np.float32
"""The dtype of what is made without one."""


def py_str(text: bytes | str) -> str:
    """``text`` as a str."""
    return text.decode() if isinstance(text, bytes) else text
