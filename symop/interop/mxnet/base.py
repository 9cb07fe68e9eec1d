"""``mx.base``: the error of this interface, and types that MXNet's scripts check against."""

import os

import numpy as np

from symop.interop.mxnet.errors import MXNetError, NotImplementedForSymbol

__all__ = [
    "MXNetError", "NotImplementedForSymbol", "data_dir", "integer_types", "mx_real_t",
    "numeric_types", "py_str", "string_types",
]  # fmt: skip

integer_types = (int, np.integer)
numeric_types = (float, int, np.generic)
string_types = (str,)
mx_real_t = np.float32
"""The default dtype of new arrays."""


def data_dir() -> str:
    """The folder of data sets: that of the variable ``MXNET_HOME``, or one in the home folder."""
    return os.environ.get("MXNET_HOME") or os.path.join(os.path.expanduser("~"), ".mxnet")


def py_str(text: bytes | str) -> str:
    """``text`` as a str."""
    return text.decode() if isinstance(text, bytes) else text
