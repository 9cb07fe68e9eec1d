"""Encoding of sentences as numbers, and batches of sentences of similar length."""

import bisect
import logging
import random
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from symop.interop.mxnet.arrays import array_of
from symop.interop.mxnet.batches import DataBatch, DataDesc, DataIter
from symop.interop.mxnet.errors import MXNetError


def encode_sentences(
    sentences: Iterable[Sequence[Any]],
    vocab: dict[Any, int] | None = None,
    invalid_label: int = -1,
    invalid_key: str = "\n",
    start_label: int = 0,
    unknown_token: Any = None,
) -> tuple[list[list[int]], dict[Any, int]]:
    """Encodes words as numbers.

    Args:
        sentences: lists of words.
        vocab: numbers of words; by default words are numbered in order of appearance.
        invalid_label: a number not assigned to any word.
        invalid_key: the key of that number in a new vocabulary.
        start_label: the first number.
        unknown_token: replaces words missing in ``vocab``.

    Returns:
        The encoded sentences, and the vocabulary.

    Raises:
        MXNetError: ``vocab`` lacks a word, and there is no ``unknown_token``.

    Example:
        >>> encode_sentences([["a", "b"], ["b"]], start_label=1)
        ([[1, 2], [2]], {'\\n': -1, 'a': 1, 'b': 2})
    """
    grows = vocab is None or bool(unknown_token)
    known = {invalid_key: invalid_label} if vocab is None else vocab
    number, found = start_label, []
    for sentence in sentences:
        coded = []
        for one in sentence:
            word = one
            if word not in known:
                if not grows:
                    raise MXNetError(f"encode_sentences: words must be in vocab, got {word!r}")
                number += number == invalid_label
                word = unknown_token or word
                known[word] = number
                number += 1
            coded.append(known[word])
        found.append(coded)
    return found, known


class BucketSentenceIter(DataIter):
    """Iterates over batches of padded sentences of similar length; labels are the next words.

    Args:
        sentences: lists of numbers.
        batch_size: the number of sentences in a batch.
        buckets: bucket lengths; longer sentences are dropped. Defaults to the lengths with enough
            sentences for a batch.
        invalid_label: the padding value.
        data_name: the name of the data.
        label_name: the name of the labels.
        dtype: the dtype of both.
        layout: ``"NT"``, or ``"TN"`` for a leading time axis.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[int]],
        batch_size: int,
        buckets: Sequence[int] | None = None,
        invalid_label: int = -1,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: Any = "float32",
        layout: Literal["NT", "TN"] = "NT",
    ) -> None:
        """See the class.

        Raises:
                MXNetError: there is no bucket, or the layout is unknown.
        """
        super().__init__(batch_size)
        if layout not in ("NT", "TN"):
            raise MXNetError(f"BucketSentenceIter: layout must be NT or TN, got {layout!r}")
        counts = np.bincount([len(one) for one in sentences])
        lengths = sorted(buckets or np.flatnonzero(counts >= batch_size).tolist())
        self.invalid_label, self.dtype, self.layout = invalid_label, dtype, layout
        filled = self._filled(sentences, lengths)
        self.buckets = [one for one, rows in zip(lengths, filled, strict=True) if rows]
        if not self.buckets:
            raise MXNetError("BucketSentenceIter: a bucket must have sentences, got none")
        self.data = [np.stack(rows) for rows in filled if rows]
        self.data_name, self.label_name = data_name, label_name
        self.default_bucket_key = max(self.buckets)
        self.provide_data = [self._described(data_name, self.default_bucket_key)]
        self.provide_label = [self._described(label_name, self.default_bucket_key)]
        self.idx = [
            (bucket, start)
            for bucket, rows in enumerate(self.data)
            for start in range(0, len(rows) - batch_size + 1, batch_size)
        ]
        self.reset()

    def _filled(
        self, sentences: Sequence[Sequence[int]], lengths: Sequence[int]
    ) -> list[list[np.ndarray]]:
        """The sentences padded to the next of ``lengths``, grouped by length."""
        filled: list[list[np.ndarray]] = [[] for _ in lengths]
        for sentence in sentences:
            place = bisect.bisect_left(lengths, len(sentence))
            if place < len(lengths):
                row = np.full(lengths[place], self.invalid_label, self.dtype)
                row[: len(sentence)] = sentence
                filled[place].append(row)
        left_out = len(sentences) - sum(map(len, filled))
        if left_out:
            logging.warning("%d sentences are longer than the largest bucket", left_out)
        return filled

    def _described(self, name: str, length: int) -> DataDesc:
        shape = (self.batch_size, length)
        return DataDesc(name, shape if self.layout == "NT" else shape[::-1], layout=self.layout)

    def reset(self) -> None:
        """Starts over, in a new random order."""
        self.curr_idx = 0
        random.shuffle(self.idx)
        for rows in self.data:
            np.random.shuffle(rows)

    def next(self) -> DataBatch:
        """The next batch.

        Raises:
                StopIteration: there are no more batches.
        """
        if self.curr_idx == len(self.idx):
            raise StopIteration
        bucket, start = self.idx[self.curr_idx]
        self.curr_idx += 1
        data = self.data[bucket][start : start + self.batch_size]
        label = np.full_like(data, self.invalid_label)
        label[:, :-1] = data[:, 1:]
        if self.layout == "TN":
            data, label = data.T, label.T
        length = self.buckets[bucket]
        return DataBatch(
            [array_of(data)],
            [array_of(label)],
            pad=0,
            bucket_key=length,
            provide_data=[self._described(self.data_name, length)],
            provide_label=[self._described(self.label_name, length)],
        )
