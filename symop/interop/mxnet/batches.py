"""Batches, their descriptions, and base classes of their iterators."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symop.interop.mxnet.errors import MXNetError

Shape = tuple[int, ...]


class DataDesc(tuple[str, Shape]):
    """A pair of name and shape, with a dtype and a layout.

    Attributes:
        dtype: the dtype, as a NumPy class.
        layout: a letter for each axis; ``N`` is the batch axis.

    Example:
        >>> data = DataDesc("data", (32, 3, 8, 8))
        >>> data.name, data[1], DataDesc.get_batch_axis(data.layout)
        ('data', (32, 3, 8, 8), 0)
    """

    dtype: Any
    layout: str | None

    def __new__(
        cls, name: str, shape: Sequence[int], dtype: Any = np.float32, layout: str | None = "NCHW"
    ) -> "DataDesc":
        """Creates the description of the array ``name``."""
        result = super().__new__(cls, (name, tuple(shape)))
        result.dtype, result.layout = dtype, layout
        return result

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.name, self.shape, self.dtype, self.layout

    @property
    def name(self) -> str:
        """The name."""
        return self[0]

    @property
    def shape(self) -> Shape:
        """The shape."""
        return self[1]

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """The batch axis, -1 if there is none."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(
        shapes: Sequence[tuple[str, Shape]], types: Sequence[tuple[str, Any]] | None
    ) -> list["DataDesc"]:
        """Descriptions from pairs of names and shapes, and pairs of names and dtypes."""
        dtypes = dict(types or ())
        return [DataDesc(name, shape, dtypes.get(name, np.float32)) for name, shape in shapes]


class DataBatch:
    """A batch of examples.

    Attributes:
        data: arrays.
        label: arrays, or None.
        pad: the number of padding examples at the end.
        index: indices of the examples, or None.
        bucket_key: the key of its bucket.
        provide_data: descriptions of ``data``, if they differ from the iterator's.
        provide_label: the same for ``label``.
    """

    def __init__(
        self,
        data: Sequence[Any],
        label: Sequence[Any] | None = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: Sequence[Any] | None = None,
        provide_label: Sequence[Any] | None = None,
    ) -> None:
        """See the class.

        Raises:
                MXNetError: ``data`` or ``label`` is not a list.
        """
        for name, given in (("data", data), ("label", label)):
            if not isinstance(given, (list, tuple, type(None))):
                raise MXNetError(f"DataBatch: {name} must be a list of arrays, got {type(given)}")
        self.data, self.label, self.pad, self.index = data, label, pad, index
        self.bucket_key = bucket_key
        self.provide_data, self.provide_label = provide_data, provide_label

    def __str__(self) -> str:
        labels = [one.shape for one in self.label] if self.label else None
        shapes = [one.shape for one in self.data]
        return f"{type(self).__name__}: data shapes: {shapes} label shapes: {labels}"


class DataIter:
    """Yields batches until ``reset``; subclasses define ``next`` or the parts of a batch.

    Attributes:
        batch_size: the number of examples in a batch.
        provide_data: descriptions of the data.
        provide_label: descriptions of the labels.
    """

    provide_data: Any
    provide_label: Any

    def __init__(self, batch_size: int = 0) -> None:
        """See the class."""
        self.batch_size = batch_size

    def __iter__(self) -> "Iterator[DataBatch]":
        return self

    def reset(self) -> None:
        """Starts over."""

    def next(self) -> DataBatch:
        """The next batch.

        Raises:
                StopIteration: there are no more batches.
        """
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def __next__(self) -> DataBatch:
        return self.next()

    def iter_next(self) -> bool:
        """Moves to the next batch; returns whether there is one."""
        return False

    def getdata(self) -> Any:
        """The data of this batch."""

    def getlabel(self) -> Any:
        """The labels of this batch."""

    def getindex(self) -> Any:
        """The indices of the examples of this batch."""
        return None

    def getpad(self) -> int | None:
        """The number of padding examples at the end of this batch."""
        return 0


class ResizeIter(DataIter):
    """Yields ``size`` batches of another iterator per pass, whatever its own number of batches."""

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True) -> None:
        """See the class; ``reset_internal`` resets the other iterator with each pass."""
        super().__init__(data_iter.batch_size)
        self.data_iter, self.size, self.reset_internal = data_iter, size, reset_internal
        self.cur, self.current_batch = 0, None
        self.provide_data, self.provide_label = data_iter.provide_data, data_iter.provide_label
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    def reset(self) -> None:
        """Starts the next pass."""
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def next(self) -> DataBatch:
        """The next batch.

        Raises:
                StopIteration: there are no more batches.
        """
        if self.cur == self.size:
            raise StopIteration
        self.cur += 1
        try:
            return self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            return self.data_iter.next()


class PrefetchingIter(DataIter):
    """Combines several iterators; each batch contains the arrays of all of them.

    Nothing is prefetched: a step runs asynchronously while the next batch is made.
    """

    def __init__(
        self,
        iters: Any,
        rename_data: Sequence[Mapping[str, str]] | None = None,
        rename_label: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """See the class.

        Args:
            iters: an iterator or a list of them.
                rename_data: for each iterator, new names of its data.
                rename_label: for each iterator, new names of its labels.
        """
        self.iters: list[DataIter] = iters if isinstance(iters, list) else [iters]
        self.rename_data, self.rename_label = rename_data, rename_label
        super().__init__(self.provide_data[0][1][0])

    @property
    def provide_data(self) -> list[Any]:
        """Descriptions of the data."""
        return self._described(lambda one: one.provide_data, self.rename_data)

    @property
    def provide_label(self) -> list[Any]:
        """Descriptions of the labels."""
        return self._described(lambda one: one.provide_label, self.rename_label)

    def _described(
        self, of: Callable[[DataIter], Any], names: Sequence[Mapping[str, str]] | None
    ) -> list[Any]:
        renamed = names or [{}] * len(self.iters)
        pairs = [(own, one) for own, it in zip(renamed, self.iters, strict=True) for one in of(it)]
        described = [
            (own, one if isinstance(one, DataDesc) else DataDesc(*one)) for own, one in pairs
        ]
        return [
            DataDesc(own.get(one.name, one.name), one.shape, one.dtype, one.layout)
            for own, one in described
        ]

    def reset(self) -> None:
        """Starts the next pass."""
        for one in self.iters:
            one.reset()

    def next(self) -> DataBatch:
        """The next batch.

        Raises:
                StopIteration: there are no more batches.
        """
        batches = [one.next() for one in self.iters]
        return DataBatch(
            [array for one in batches for array in one.data],
            [array for one in batches for array in one.label or ()],
            batches[0].pad,
            batches[0].index,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )
