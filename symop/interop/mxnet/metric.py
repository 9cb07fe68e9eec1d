"""``mx.metric``: metrics reported by training."""

import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy

from symop.interop.mxnet.confusion_metrics import F1, MCC, PCC
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.eval_metric import (
    CompositeEvalMetric,
    CustomMetric,
    Declared,
    EvalMetric,
    Named,
    Names,
    alias,
    both,
    check_label_shapes,
    create,
    register,
    value_of,
)

__all__ = [
    "F1",
    "MAE",
    "MCC",
    "MSE",
    "PCC",
    "RMSE",
    "Accuracy",
    "Caffe",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "Loss",
    "NegativeLogLikelihood",
    "PearsonCorrelation",
    "Perplexity",
    "TopKAccuracy",
    "Torch",
    "alias",
    "check_label_shapes",
    "create",
    "np",
    "register",
]


@jax.jit
def _hits(label: Any, found: Any) -> Any:
    return jnp.sum(found.ravel().astype(jnp.int32) == label.ravel().astype(jnp.int32))


_best = jax.jit(jnp.argmax, static_argnums=1)


@register
@alias("acc")
class Accuracy(Declared):
    """The fraction of labels equal to the class with the largest output on ``axis`` (1)."""

    called, arguments = "accuracy", {"axis": 1}
    axis: int

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels, and outputs or classes."""
        for label, pred in both(labels, preds):
            found = pred if pred.shape == label.shape else _best(pred, self.axis)
            check_label_shapes(label.ravel(), found.ravel())
            self._add(int(_hits(label, found)), found.size)


@register
@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(Declared):
    """The fraction of labels among the ``top_k`` classes with the largest outputs."""

    called, arguments = "top_k_accuracy", {"top_k": 1}
    top_k: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """See the class."""
        super().__init__(*args, **kwargs)
        if self.top_k <= 1:
            raise MXNetError(f"TopKAccuracy: top_k must be more than 1, got {self.top_k}")
        self.name += f"_{self.top_k}"

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels and outputs of shape ``(batch, classes)``."""
        for label, pred in both(labels, preds):
            if pred.ndim != 2:
                raise MXNetError(f"TopKAccuracy: outputs must have 2 axes, got {pred.shape}")
            best = jax.lax.top_k(pred, min(self.top_k, pred.shape[1]))[1]
            hits = int(_hits(jnp.repeat(label.ravel(), best.shape[1]), best))
            self._add(hits, pred.shape[0])


# Probabilities ---------------------------------------------------------------------------------


@jax.jit
def _surprise(pred: Any, label: Any, eps: float) -> Any:
    chosen = jnp.take_along_axis(pred, label.ravel().astype(jnp.int32)[:, None], axis=-1)
    return jnp.sum(-jnp.log(chosen + eps))


@register
@alias("ce")
class CrossEntropy(Declared):
    """The mean of ``-log(probability of the label + eps)``."""

    called, arguments = "cross-entropy", {"eps": 1e-12}
    eps: float

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels and probabilities of shape ``(batch, classes)``."""
        for label, pred in both(labels, preds):
            check_label_shapes(label.ravel(), pred)
            self._add(float(_surprise(pred, label, self.eps)), label.size)


@register
@alias("nll_loss")
class NegativeLogLikelihood(CrossEntropy):
    """The mean of ``-log(probability of the label + eps)``."""

    called = "nll-loss"


@jax.jit
def _ignorant(pred: Any, label: Any, ignored: Any) -> tuple[Any, Any]:
    chosen = jnp.take_along_axis(pred, label.astype(jnp.int32)[:, None], -1, mode="clip")[:, 0]
    skipped = jnp.zeros(label.shape, bool) if ignored is None else label == ignored
    losses = jnp.where(skipped, 0.0, -jnp.log(jnp.maximum(chosen, 1e-10)))
    return jnp.sum(losses), jnp.sum(~skipped)


@register
class Perplexity(Declared):
    """The exponential of the mean of ``-log(probability of the label)``.

    Labels equal to ``ignore_label`` are ignored; ``axis`` (-1) is the class axis.
    """

    called, arguments = "perplexity", {"ignore_label": ..., "axis": -1}
    ignore_label: int | None
    axis: int

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels and probabilities."""
        for label, pred in both(labels, preds):
            classes = jnp.moveaxis(pred, self.axis, -1)
            flat = classes.reshape(-1, classes.shape[-1])
            check_label_shapes(label.ravel(), flat)
            total, count = _ignorant(flat, label.ravel(), self.ignore_label)
            self._add(float(total), int(count))

    def _mean(self, total: float, count: float) -> float:
        return math.exp(total / count) if count else math.nan


# Numbers ---------------------------------------------------------------------------------------


class _Distance(Declared):
    """A mean over batches of a distance between outputs and labels."""

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels and outputs of the same shape; vectors are columns."""
        for pair in both(labels, preds):
            wide = [numpy.asarray(one) for one in pair]
            label, pred = [one[:, None] if one.ndim == 1 else one for one in wide]
            self._add(float(self._distance(label - pred)))

    def _distance(self, difference: numpy.ndarray) -> Any:
        # Abstract: defined by the metrics of a distance.
        raise NotImplementedError


@register
class MAE(_Distance):
    """The mean absolute error."""

    called = "mae"

    def _distance(self, difference: numpy.ndarray) -> Any:
        return numpy.abs(difference).mean()


@register
class MSE(_Distance):
    """The mean squared error."""

    called = "mse"

    def _distance(self, difference: numpy.ndarray) -> Any:
        return numpy.square(difference).mean()


@register
class RMSE(_Distance):
    """The root of the mean squared error, averaged over batches."""

    called = "rmse"

    def _distance(self, difference: numpy.ndarray) -> Any:
        return numpy.sqrt(numpy.square(difference).mean())


@register
@alias("pearsonr")
class PearsonCorrelation(Declared):
    """The correlation of labels and outputs.

    ``average="macro"`` is the mean over batches, ``"micro"`` the correlation of all entries.
    """

    called = "pearsonr"

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
        self._seen: list[numpy.ndarray] = []
        super().reset()

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels and outputs of the same shape."""
        for label, pred in both(labels, preds):
            check_label_shapes(label, pred, shape=True)
            pair = numpy.stack([numpy.asarray(one, float).ravel() for one in (label, pred)])
            if self.average == "micro":
                self._seen.append(pair)
            self._add(_correlation(pair))

    def get(self) -> Named:
        """The name, and the correlation."""
        if self.average == "micro" and self._seen:
            return self.name, _correlation(numpy.concatenate(self._seen, axis=1))
        return super().get()

    def get_global(self) -> Named:
        """The name, and the correlation since the last reset."""
        return self.get() if self.average == "micro" else super().get_global()


def _correlation(pair: numpy.ndarray) -> float:
    return float(numpy.corrcoef(pair)[0, 1])


@register
class Loss(Declared):
    """The mean of the outputs, which are losses; labels are ignored."""

    called = "loss"

    def update(self, labels: Any, preds: Any) -> None:
        """Adds outputs."""
        for pred in [preds] if hasattr(preds, "shape") else preds:
            value = value_of(pred)
            self._add(float(jnp.sum(value)), value.size)


@register
class Torch(Loss):
    """An alias of ``Loss``."""

    called = "torch"


@register
class Caffe(Loss):
    """An alias of ``Loss``."""

    called = "caffe"


def np(
    numpy_feval: Callable[[numpy.ndarray, numpy.ndarray], Any],
    name: str | None = None,
    allow_extra_outputs: bool = False,
) -> CustomMetric:
    """A metric of a function of NumPy arrays; see ``CustomMetric``."""
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
