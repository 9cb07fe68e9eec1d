"""Iterators over batches of arrays in memory, and of rows of text files."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.batches import DataBatch, DataDesc, DataIter
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.sparse_arrays import CSRNDArray
from symop.interop.mxnet.sparse_creation import csr_matrix
from symop.io.files import PathLike

Last = Literal["pad", "discard", "roll_over"]


class NDArrayIter(DataIter):
    """Iterates over batches of arrays: one array, a list, or a dict, as data and as labels.

    Args:
        data: arrays whose first axis, or axis ``N`` in ``layout``, indexes the examples.
        label: labels, in the same form.
        batch_size: the number of examples in a batch.
        shuffle: whether each ``reset`` shuffles the examples, by ``np.random``.
        last_batch_handle: the treatment of examples that do not fill a batch: ``"pad"`` repeats the
            first examples, ``"discard"`` drops the rest, ``"roll_over"`` puts it before the next
            pass.
        data_name: the name of a single array; several are called ``_0_data`` and so on.
        label_name: the same for labels.
        layout: a letter for each axis; ``N`` is the batch axis.

    Example:
        >>> import numpy as np, symop.interop.mxnet as mx
        >>> batches = mx.io.NDArrayIter(np.arange(5.0), batch_size=2)
        >>> [(batch.data[0].asnumpy().tolist(), batch.pad) for batch in batches]
        [([0.0, 1.0], 0), ([2.0, 3.0], 0), ([4.0, 0.0], 1)]
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: Last = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
        layout: str = "NCHW",
    ) -> None:
        """See the class.

        Raises:
                MXNetError: there is no data, lengths differ, or an argument is invalid.
        """
        super().__init__(batch_size)
        self._data, self._label = _named(data, data_name), _named(label, label_name)
        self.layout, self._axis = layout, DataDesc.get_batch_axis(layout)
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise MXNetError(
                "NDArrayIter: last_batch_handle must be 'pad', 'discard' or 'roll_over', got "
                f"{last_batch_handle!r}"
            )
        if last_batch_handle != "discard" and any(map(_is_csr, (*self._data, *self._label))):
            raise CsrBatchError(
                "NDArrayIter: last_batch_handle must be 'discard' where data are csr, got "
                f"{last_batch_handle!r}"
            )
        self.num_data = self._length()
        self.last_batch_handle, self.shuffle = last_batch_handle, shuffle
        self.idx = np.arange(self.num_data)
        self._order: np.ndarray | None = None
        self._cached: list[list[Any]] | None = None
        self.cursor = -batch_size
        self.reset()

    def _length(self) -> int:
        lengths = {one.shape[self._axis] for _, one in (*self._data, *self._label)}
        if not self._data or len(lengths) != 1:
            raise MXNetError(f"NDArrayIter: arrays of one length must be given, got {lengths}")
        return int(lengths.pop())

    @property
    def data(self) -> list[tuple[str, NDArray]]:
        """Names and arrays of the data, in the current order of the examples."""
        return [(name, _as_array(self._taken(one, slice(None)))) for name, one in self._data]

    @property
    def label(self) -> list[tuple[str, NDArray]]:
        """Names and arrays of the labels."""
        return [(name, _as_array(self._taken(one, slice(None)))) for name, one in self._label]

    @property
    def provide_data(self) -> list[DataDesc]:
        """Descriptions of the data of a batch."""
        return [self._described(*pair) for pair in self._data]

    @property
    def provide_label(self) -> list[DataDesc]:
        """Descriptions of the labels of a batch."""
        return [self._described(*pair) for pair in self._label]

    def _described(self, name: str, array: np.ndarray) -> DataDesc:
        shape = list(array.shape)
        shape[self._axis] = self.batch_size
        return DataDesc(name, shape, np.dtype(array.dtype).type, self.layout)

    # Passes

    def hard_reset(self) -> None:
        """Starts over, without examples left from the last pass."""
        self._shuffle()
        self.cursor, self._cached = -self.batch_size, None

    def reset(self) -> None:
        """Starts the next pass."""
        self._shuffle()
        rest = self.num_data - self.batch_size < self.cursor < self.num_data
        if self.last_batch_handle == "roll_over" and rest:
            self.cursor -= self.num_data + self.batch_size
        else:
            self.cursor = -self.batch_size

    def _shuffle(self) -> None:
        if self.shuffle:
            np.random.shuffle(self.idx)  # scripts seed this generator
            self._order = self.idx.copy() if self._order is None else self._order[self.idx]

    def iter_next(self) -> bool:
        """Moves to the next batch; returns whether there is one."""
        self.cursor += self.batch_size
        return self.cursor < self.num_data

    def next(self) -> DataBatch:
        """The next batch.

        Raises:
                StopIteration: there are no more batches.
        """
        if not self.iter_next():
            raise StopIteration
        left_over = self.num_data - self.cursor < self.batch_size
        if left_over and self.last_batch_handle != "pad":
            if self.last_batch_handle == "roll_over":
                self._cached = [self._rows(part, self.cursor) for part in (self._data, self._label)]
            raise StopIteration
        made = self._made()
        if self.cursor < 0:
            self._cached = None
        return made

    def _made(self) -> DataBatch:
        return DataBatch(self.getdata(), self.getlabel(), self.getpad())

    def getdata(self) -> list[NDArray]:
        """The data of this batch."""
        return [_as_array(one) for one in self._batch(0)]

    def getlabel(self) -> list[NDArray]:
        """The labels of this batch."""
        return [_as_array(one) for one in self._batch(1)]

    def getpad(self) -> int:
        """The number of repeated examples in this batch."""
        end = self.cursor + self.batch_size
        if self.last_batch_handle == "pad" and end > self.num_data:
            return end - self.num_data
        return max(-self.cursor, 0) if self.last_batch_handle == "roll_over" else 0

    def _batch(self, part: int) -> list[Any]:
        source, start, end = (
            (self._data, self._label)[part],
            self.cursor,
            self.cursor + self.batch_size,
        )
        if start < 0:
            before = [] if self._cached is None else self._cached[part]
            return self._joined(before, self._rows(source, 0, end))
        if end <= self.num_data:
            return self._rows(source, start, end)
        places = np.arange(start, end) % self.num_data
        return [self._taken(one, places) for _, one in source]

    def _rows(
        self, source: Sequence[tuple[str, np.ndarray]], start: int, end: int | None = None
    ) -> list[np.ndarray]:
        return [self._taken(one, slice(start, end)) for _, one in source]

    def _joined(self, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
        pairs = zip(first, second, strict=True)
        return [np.concatenate(pair, axis=self._axis) for pair in pairs]

    def _taken(self, array: Any, places: Any) -> Any:
        where = places if self._order is None else self._order[places]
        if isinstance(array, CSRNDArray):
            return CSRNDArray(array.csr.rows_at(np.arange(self.num_data)[where]))
        return array[(slice(None),) * self._axis + (where,)]


def _named(given: Any, name: str) -> list[tuple[str, np.ndarray]]:
    """Names and arrays, sorted by name; numbers become float32 unless they are NDArrays."""
    if given is None:
        given = []
    if isinstance(given, (np.ndarray, NDArray)) or _is_one(given):
        given = [given]
    if isinstance(given, (list, tuple)):
        single = len(given) == 1
        given = {(name if single else f"_{i}_{name}"): one for i, one in enumerate(given)}
    if not isinstance(given, Mapping):
        raise MXNetError(f"NDArrayIter: arrays must be given, a list or a dict, got {type(given)}")
    return sorted((key, _plain(one)) for key, one in given.items())


def _is_one(given: Any) -> bool:
    """Whether an object is one array, perhaps of SciPy."""
    return hasattr(given, "__array__") or hasattr(given, "tocsr")


def _is_csr(pair: tuple[str, Any]) -> bool:
    return isinstance(pair[1], CSRNDArray)


class CsrBatchError(MXNetError, NotImplementedError):
    """A treatment of the last batch that csr arrays do not support.

    MXNet refuses the same ones with ``NotImplementedError``, which scripts catch.
    """


def _as_array(batch: Any) -> NDArray:
    return batch if isinstance(batch, NDArray) else array_of(batch)


def _plain(array: Any) -> Any:
    if isinstance(array, CSRNDArray):
        return array
    if hasattr(array, "tocsr"):
        return csr_matrix(array)
    if isinstance(array, NDArray):
        return array.asnumpy()
    return np.asarray(array, np.float32)


class CSVIter(NDArrayIter):
    """Iterates over batches of the rows of comma-separated files; pads the last batch.

    Args:
        data_csv: the file of the data.
        data_shape: the shape of one example.
        label_csv: the file of the labels; zeros if omitted.
        label_shape: the shape of one label.
        batch_size: the number of examples in a batch.
        round_batch: has no effect: the last batch is padded with the first examples.
        data_name: the name of the data.
        label_name: the name of the labels.
        dtype: the dtype of data and labels.
        **others: MXNet's options for tuning reads; they have no effect.
    """

    def __init__(
        self,
        data_csv: PathLike,
        data_shape: Sequence[int],
        label_csv: PathLike | None = None,
        label_shape: Sequence[int] = (1,),
        batch_size: int = 1,
        round_batch: bool = True,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: Any = "float32",
        **others: Any,
    ) -> None:
        """See the class."""
        del round_batch, others
        kind = np.dtype(dtype)
        data = np.loadtxt(data_csv, kind, delimiter=",", ndmin=2).reshape(-1, *data_shape)
        label = np.zeros((len(data), *label_shape), kind)
        if label_csv is not None:
            read = np.loadtxt(label_csv, kind, delimiter=",", ndmin=2)
            label = read.reshape(-1, *label_shape)
        super().__init__({data_name: array_of(data)}, {label_name: array_of(label)}, batch_size)

    def _made(self) -> DataBatch:
        return DataBatch(super().getdata(), super().getlabel(), self.getpad())

    def getdata(self) -> NDArray:  # type: ignore[override]  # a single array, as in MXNet
        """The data of this batch."""
        (found,) = super().getdata()
        return found

    def getlabel(self) -> NDArray:  # type: ignore[override]
        """The labels of this batch."""
        (found,) = super().getlabel()
        return found
