"""Rules of layers: MXNet computes dense outputs from some sparse inputs of these."""

from typing import Any

from symop.interop.mxnet.ndarray import NDArray
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.sparse_ops.pairs import whole
from symop.interop.mxnet.storage import CSR, DEFAULT, ROW_SPARSE, rule

_ROWS = f"{DEFAULT}|{ROW_SPARSE}"


@rule("FullyConnected", [DEFAULT, _ROWS, _ROWS], DEFAULT)
@rule("FullyConnected", [DEFAULT, ROW_SPARSE], DEFAULT)
def _fully_connected(*arrays: NDArray, **attributes: Any) -> NDArray:
    """A dense layer whose parameters are row-sparse."""
    return NDArray(find("FullyConnected").function(*map(whole, arrays), **attributes))


@rule("LinearRegressionOutput", [DEFAULT, CSR], DEFAULT)
def _linear(*arrays: NDArray, **attributes: Any) -> NDArray:
    """Regression on csr labels."""
    return NDArray(find("LinearRegressionOutput").function(*map(whole, arrays), **attributes))


@rule("LogisticRegressionOutput", [DEFAULT, CSR], DEFAULT)
def _logistic(*arrays: NDArray, **attributes: Any) -> NDArray:
    """Logistic regression on csr labels."""
    return NDArray(find("LogisticRegressionOutput").function(*map(whole, arrays), **attributes))
