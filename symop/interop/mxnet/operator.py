"""``mx.operator``: operators written in Python by users."""

from symop.interop.mxnet.custom_operator import get_all_registered_operators, register
from symop.interop.mxnet.custom_props import CustomOp, CustomOpProp
from symop.interop.mxnet.operator_arguments import OperatorArguments, get_operator_arguments
from symop.interop.mxnet.python_operator import NDArrayOp, NumpyOp, PythonOp

__all__ = [
    "CustomOp",
    "CustomOpProp",
    "NDArrayOp",
    "NumpyOp",
    "OperatorArguments",
    "PythonOp",
    "get_all_registered_operators",
    "get_operator_arguments",
    "register",
]
