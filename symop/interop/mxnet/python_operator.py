"""Operators written in Python by the classes that MXNet had before ``CustomOp``."""

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.custom_operator import register
from symop.interop.mxnet.custom_props import Arrays, CustomOp, CustomOpProp
from symop.interop.mxnet.symbol_operators import called
from symop.interop.mxnet.symbols import Symbol

__all__ = ["NDArrayOp", "NumpyOp", "PythonOp"]
_numbers = itertools.count()


class PythonOp:
    """The base class of ``NumpyOp`` and ``NDArrayOp``; use ``CustomOp`` in new code."""

    def __init__(self, need_top_grad: bool = True) -> None:
        """``need_top_grad`` is False for a loss, which defines its own gradient."""
        warnings.warn(
            f"{type(self).__name__} has been deprecated. Please use CustomOp", stacklevel=2
        )
        self.need_top_grad_ = need_top_grad

    def __call__(self, *args: Any, **kwargs: Any) -> Symbol:
        """See ``get_symbol``."""
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Symbol:
        """The operator as a symbol of the given inputs."""
        name = f"_{type(self).__name__}_{next(_numbers)}"
        register(name)(_prop_of(self))
        result: Symbol = called("Custom")(*args, op_type=name, **kwargs)
        return result

    def run_forward(self, in_data: Arrays, out_data: Arrays) -> Sequence[Any]:
        """The outputs that ``forward`` writes, for arrays of ``mx.nd``."""
        self.forward(in_data=in_data, out_data=out_data)
        return out_data

    def run_backward(
        self, out_grad: Arrays, in_data: Arrays, out_data: Arrays, in_grad: Arrays
    ) -> Sequence[Any]:
        """The gradients that ``backward`` writes, for arrays of ``mx.nd``."""
        self.backward(out_grad=out_grad, in_data=in_data, out_data=out_data, in_grad=in_grad)
        return in_grad

    def forward(self, in_data: list[Any], out_data: list[Any]) -> None:
        """Writes the outputs; by default the first input."""
        out_data[0][:] = in_data[0]

    def backward(
        self, out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any]
    ) -> None:
        """Writes the gradients of the inputs; by default ones."""
        del out_grad, in_data, out_data
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Shapes of inputs and outputs; by default the first output is as the first input."""
        return in_shape, [in_shape[0]]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def need_top_grad(self) -> bool:
        """Whether ``backward`` reads the gradients of the outputs."""
        return self.need_top_grad_

    def declare_backward_dependency(
        self, out_grad: list[int], in_data: list[int], out_data: list[int]
    ) -> list[int]:
        """The numbers of the arrays that ``backward`` reads."""
        return [*(out_grad if self.need_top_grad() else []), *in_data, *out_data]


class NumpyOp(PythonOp):
    """An operator whose ``forward`` and ``backward`` read and write NumPy arrays.

    Example:
        >>> import warnings
        >>> import symop.interop.mxnet as mx
        >>> class Twice(NumpyOp):
        ...     def forward(self, in_data, out_data):
        ...         out_data[0][:] = 2 * in_data[0]
        ...     def backward(self, out_grad, in_data, out_data, in_grad):
        ...         in_grad[0][:] = 2 * out_grad[0]
        >>> with warnings.catch_warnings(action="ignore"):  # CustomOp came after it
        ...     twice = Twice()
        >>> executor = twice(mx.sym.var("x")).simple_bind(mx.cpu(), x=(2,))
        >>> executor.arg_dict["x"][:] = 3
        >>> executor.forward()[0].asnumpy().tolist()
        [6.0, 6.0]
    """

    def run_forward(self, in_data: Arrays, out_data: Arrays) -> Sequence[Any]:
        """The outputs that ``forward`` writes, for arrays of ``mx.nd``."""
        made = _writable(out_data)
        self.forward(in_data=_writable(in_data), out_data=made)
        return made

    def run_backward(
        self, out_grad: Arrays, in_data: Arrays, out_data: Arrays, in_grad: Arrays
    ) -> Sequence[Any]:
        """The gradients that ``backward`` writes, for arrays of ``mx.nd``."""
        made, given = _writable(in_grad), [out_grad, in_data, out_data]
        heads, inputs, outputs = map(_writable, given)
        self.backward(out_grad=heads, in_data=inputs, out_data=outputs, in_grad=made)
        return made


class NDArrayOp(PythonOp):
    """An operator whose ``forward`` and ``backward`` read and write ``mx.nd`` arrays."""


def _writable(arrays: Arrays) -> list[np.ndarray]:
    """Copies of arrays as NumPy arrays."""
    return [np.array(one.asnumpy()) for one in arrays]


class _Adapter(CustomOp):
    """Calls an operator of an older class."""

    def __init__(self, python: PythonOp) -> None:
        self._python = python

    def forward(
        self, is_train: bool, req: list[str], in_data: Arrays, out_data: Arrays, aux: Arrays
    ) -> None:
        made = self._python.run_forward(in_data, [_copy(one) for one in out_data])
        self._assign_all(out_data, req, made)

    def backward(
        self,
        req: list[str],
        out_grad: Arrays,
        in_data: Arrays,
        out_data: Arrays,
        in_grad: Arrays,
        aux: Arrays,
    ) -> None:
        own = [_copy(one) for one in in_grad]
        self._assign_all(in_grad, req, self._python.run_backward(out_grad, in_data, out_data, own))

    def _assign_all(self, places: Arrays, req: list[str], values: Sequence[Any]) -> None:
        for place, request, value in zip(places, req, values, strict=True):
            self.assign(place, request, array_of(value, place.dtype))


def _copy(array: NDArray) -> NDArray:
    return array_of(array.value)


def _prop_of(python: PythonOp) -> type[CustomOpProp]:
    """The properties of an operator of an older class."""

    class Prop(CustomOpProp):
        def list_arguments(self) -> list[str]:
            return python.list_arguments()

        def list_outputs(self) -> list[str]:
            return python.list_outputs()

        def infer_shape(self, in_shape: list[list[int]]) -> Any:
            inputs, outputs = python.infer_shape(in_shape)
            return inputs, outputs, []

        def declare_backward_dependency(
            self, out_grad: list[int], in_data: list[int], out_data: list[int]
        ) -> list[int]:
            return python.declare_backward_dependency(out_grad, in_data, out_data)

        def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> CustomOp:
            return _Adapter(python)

    return Prop
