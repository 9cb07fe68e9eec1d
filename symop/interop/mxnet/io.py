"""``mx.io``: iterators over batches of data."""

from typing import Any, NoReturn

from symop.interop.mxnet.array_batches import CSVIter, NDArrayIter
from symop.interop.mxnet.batches import (
    DataBatch,
    DataDesc,
    DataIter,
    PrefetchingIter,
    ResizeIter,
)
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.libsvm import LibSVMIter

__all__ = [
    "CSVIter",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "LibSVMIter",
    "MNISTIter",
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
]


def MNISTIter(*args: Any, **kwargs: Any) -> NoReturn:  # noqa: N802  # MXNet's name
    """MXNet's reader of MNIST files, which is not supported.

    Raises:
        MXNetError: always; the message names the alternative.
    """
    raise MXNetError(
        "MNISTIter: files of MNIST are not read here; read the arrays and give them to "
        "mx.io.NDArrayIter(images, labels, batch_size)"
    )
