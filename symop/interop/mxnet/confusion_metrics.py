"""Metrics computed from confusion matrices: F1 and correlation coefficients."""

import math
from typing import Any, ClassVar, Literal

import numpy

from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.eval_metric import Declared, Named, Names, both, register


class _Binary(Declared):
    """A score computed from the confusion matrix of two classes.

    ``average="macro"`` is the mean of the scores of the batches, ``"micro"`` the score of all
    examples together.
    """

    arguments: ClassVar[dict[str, Any]] = {}
    average: str

    def __init__(
        self,
        name: str | None = None,
        output_names: Names = None,
        label_names: Names = None,
        average: Literal["macro", "micro"] = "macro",
    ) -> None:
        """See the class."""
        self.average = average
        super().__init__(name, output_names, label_names)

    def reset(self) -> None:
        """Resets the metric."""
        self._all = numpy.zeros((2, 2), int)
        super().reset()

    def reset_local(self) -> None:
        """Resets the counts since the last local reset."""
        self._recent = numpy.zeros((2, 2), int)
        super().reset_local()

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels, zeros and ones, and outputs of shape ``(batch, 2)``."""
        counts = numpy.zeros((2, 2), int)
        for label, pred in both(labels, preds):
            given = numpy.asarray(label).astype(int).ravel()
            if len(numpy.unique(given)) > 2:
                raise MXNetError(f"{type(self).__name__}: there must be two labels, got more")
            found = numpy.argmax(numpy.asarray(pred), axis=1)
            numpy.add.at(counts, ((given == 1).astype(int), (found == 1).astype(int)), 1)
        if self.average == "macro":
            self._add(self._score(counts))
            return
        self._recent += counts
        self._all += counts
        self.num_inst, self.global_num_inst = int(self._recent.sum()), int(self._all.sum())
        self.sum_metric = self._score(self._recent) * self.num_inst
        self.global_sum_metric = self._score(self._all) * self.global_num_inst

    def _score(self, counts: numpy.ndarray) -> float:
        """The score of the matrix ``counts[label, prediction]``."""
        # Abstract: defined by the subclasses below; this class only counts.
        raise NotImplementedError


@register
class F1(_Binary):
    """The harmonic mean of precision and recall of class 1."""

    called = "f1"

    def _score(self, counts: numpy.ndarray) -> float:
        wrong = counts[0, 1] + counts[1, 0]
        return float(2 * counts[1, 1] / (2 * counts[1, 1] + wrong)) if counts[1, 1] else 0.0


@register
class MCC(_Binary):
    """The Matthews correlation coefficient of labels and predictions."""

    called = "mcc"

    def _score(self, counts: numpy.ndarray) -> float:
        sums = [int(one) for one in (*counts.sum(0), *counts.sum(1)) if one]
        determinant = int(counts[0, 0]) * int(counts[1, 1]) - int(counts[0, 1]) * int(counts[1, 0])
        return determinant / math.sqrt(math.prod(sums))


@register
class PCC(Declared):
    """The correlation of labels and predictions of any number of classes; ``MCC`` for two."""

    called = "pcc"

    def reset(self) -> None:
        """Resets the metric."""
        self._all = numpy.zeros((2, 2))
        super().reset()

    def reset_local(self) -> None:
        """Resets the counts since the last local reset."""
        self._recent = numpy.zeros((2, 2))
        super().reset_local()

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels, and outputs of shape ``(batch, classes)`` or predicted classes."""
        for label, pred in both(labels, preds):
            wide, given = numpy.asarray(pred), numpy.asarray(label).astype(int).ravel()
            found = wide if wide.shape == label.shape else numpy.argmax(wide, axis=1)
            pair = found.astype(int).ravel(), given
            size = max(len(self._all), 1 + max(one.max(initial=0) for one in pair))
            self._recent, self._all = (_grown(one, size) for one in (self._recent, self._all))
            for counts in (self._recent, self._all):
                numpy.add.at(counts, pair, 1)
        self.num_inst += 1
        self.global_num_inst += 1

    def get(self) -> Named:
        """The name, and the correlation since the last local reset."""
        return self.name, _correlation(self._recent)

    def get_global(self) -> Named:
        """The name, and the correlation since the last reset."""
        return self.name, _correlation(self._all)


def _grown(counts: numpy.ndarray, size: int) -> numpy.ndarray:
    return numpy.pad(counts, (0, size - len(counts)))


def _correlation(counts: numpy.ndarray) -> float:
    """The correlation of one-hot labels and predictions, from their confusion matrix."""
    total, found, given = counts.sum(), counts.sum(1), counts.sum(0)
    spreads = [float(numpy.sum(one * (total - one))) for one in (found, given)]
    if 0.0 in spreads:
        return math.nan
    together = numpy.sum(counts.diagonal() * total - found * given)
    return float(together / math.sqrt(math.prod(spreads)))
