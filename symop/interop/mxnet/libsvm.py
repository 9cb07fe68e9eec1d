"""LibSVMIter: batches of csr matrices from text files of sparse examples."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from registry.errors import FormatError
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.batches import DataBatch, DataDesc, DataIter
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError
from symop.interop.mxnet.sparse_arrays import CSRNDArray
from symop.interop.mxnet.sparse_parts import csr_from
from symop.io.files import PathLike, read_bounded

LIMIT = 1 << 34
"""The maximal number of bytes of a file."""


class LibSVMIter(DataIter):
    """Iterates over batches of examples in LibSVM's format: ``label column:value ...`` per line.

    Data are csr matrices. Columns count from zero.

    Args:
        data_libsvm: the file of the data.
        data_shape: the number of columns, in a tuple.
        label_libsvm: a file of labels of the same format, whose first numbers are ignored; by
            default labels are the first numbers in the file of the data.
        label_shape: the number of columns of the labels, in a tuple.
        num_parts: the number of parts of the data, of which this iterator reads one.
        part_index: which part.
        batch_size: the number of examples in a batch.
        round_batch: whether the first examples fill the last batch; otherwise it is dropped.
        dtype: the dtype.
        data_name: the name of the data.
        label_name: the name of the labels.
        **others: MXNet's options for tuning reads; they have no effect.
    """

    def __init__(
        self,
        data_libsvm: PathLike,
        data_shape: Sequence[int] | int,
        label_libsvm: PathLike | None = None,
        label_shape: Sequence[int] | int = (1,),
        num_parts: int = 1,
        part_index: int = 0,
        batch_size: int = 1,
        round_batch: bool = True,
        dtype: Any = "float32",
        data_name: str = "data",
        label_name: str = "softmax_label",
        **others: Any,
    ) -> None:
        """See the class.

        Raises:
            MXNetFormatError: a line is damaged.
            MXNetError: the files do not have as many examples.
        """
        del others
        super().__init__(batch_size)
        kind = np.dtype(dtype or "float32")
        data, first = read_libsvm(data_libsvm, _width(data_shape), kind)
        label: Any = first
        if label_libsvm is not None:
            label = read_libsvm(label_libsvm, _width(label_shape), kind)[0]
        if label.shape[0] != data.shape[0]:
            raise MXNetError(
                f"LibSVMIter: there must be a label for each of {data.shape[0]} examples, got "
                f"{label.shape[0]}"
            )
        part = np.array_split(np.arange(data.shape[0]), num_parts)[part_index]
        self._data, self._label, self._rows = data, label, part
        self._round, self._at = round_batch, -batch_size
        width = () if label_libsvm is None else (label.shape[1],)
        self.provide_data = [DataDesc(data_name, (batch_size, data.shape[1]), kind.type)]
        self.provide_label = [DataDesc(label_name, (batch_size, *width), kind.type)]

    def reset(self) -> None:
        """Starts over."""
        self._at = -self.batch_size

    def iter_next(self) -> bool:
        """Moves to the next batch; returns whether there is one."""
        self._at += self.batch_size
        last = self._at if self._round else self._at + self.batch_size - 1
        return last < len(self._rows)

    def next(self) -> DataBatch:
        """The next batch.

        Raises:
            StopIteration: there are no more batches.
        """
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())

    def _chosen(self) -> np.ndarray:
        places = np.arange(self._at, self._at + self.batch_size) % max(len(self._rows), 1)
        chosen: np.ndarray = self._rows[places]
        return chosen

    def getdata(self) -> CSRNDArray:
        """The data of this batch."""
        return CSRNDArray(self._data.csr.rows_at(self._chosen()))

    def getlabel(self) -> NDArray:
        """The labels of this batch."""
        if isinstance(self._label, CSRNDArray):
            return CSRNDArray(self._label.csr.rows_at(self._chosen()))
        return array_of(self._label[self._chosen()])

    def getindex(self) -> np.ndarray:
        """The indices of the examples in this batch."""
        return self._chosen()

    def getpad(self) -> int:
        """The number of repeated examples in this batch."""
        return max(self._at + self.batch_size - len(self._rows), 0)


def _width(shape: Sequence[int] | int) -> int:
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    if len(lengths) != 1 or lengths[0] <= 0:
        raise MXNetError(f"LibSVMIter: a shape must be (columns,), got {shape}")
    return int(lengths[0])


def read_libsvm(path: PathLike, width: int, dtype: Any) -> tuple[CSRNDArray, np.ndarray]:
    """The examples of a file as a csr matrix, and the first number of each.

    Raises:
        MXNetFormatError: a line is damaged, or a column is not below ``width``.
        OSError: the file cannot be read.
    """
    try:
        text = read_bounded(path, LIMIT).decode()
    except (FormatError, UnicodeDecodeError) as error:
        raise MXNetFormatError(f"{path}: {error}") from None
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    counts = np.array([line.count(":") for line in lines], np.int64)
    sizes = np.array([len(line.replace(":", " ").split()) for line in lines], np.int64)
    wrong = np.flatnonzero(sizes != 2 * counts + 1)
    if len(wrong):
        raise MXNetFormatError(
            f"{path}: a line must be a number and pairs column:value, got {lines[wrong[0]]!r:.80}"
        )
    try:
        numbers = np.array(" ".join(lines).replace(":", " ").split(), np.float64)
    except ValueError as error:
        raise MXNetFormatError(f"{path}: {error}") from None
    ends = np.cumsum(sizes)
    first = np.zeros(len(numbers), bool)
    first[ends - sizes] = True
    pairs = numbers[~first].reshape(-1, 2)
    columns = pairs[:, 0].astype(np.int64)
    outside = (columns != pairs[:, 0]) | (columns < 0) | (columns >= width)
    if outside.any():
        raise MXNetFormatError(
            f"{path}: columns must be whole numbers below {width}, got {pairs[outside][0, 0]:g}"
        )
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = np.repeat(np.arange(len(lines)), counts)
    order = np.lexsort((columns, rows))
    matrix = csr_from(pairs[order, 1].astype(dtype), columns[order], starts, (len(lines), width))
    return CSRNDArray(matrix), numbers[first].astype(dtype)
