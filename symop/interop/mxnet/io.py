"""Data in batches: ``mx.io``."""

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

__all__ = [
    "CSVIter",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "MNISTIter",
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
]


def MNISTIter(*args: Any, **kwargs: Any) -> NoReturn:  # noqa: N802  # MXNet's name
    """MXNet's reader of the files of MNIST, which is not here.

    Raises:
        MXNetError: always; the message says what to use.
    """
    raise MXNetError(
        "MNISTIter: files of MNIST are not read here; read the arrays and give them to "
        "mx.io.NDArrayIter(images, labels, batch_size)"
    )
