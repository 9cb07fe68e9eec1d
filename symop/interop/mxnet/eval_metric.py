"""EvalMetric, the base class of metrics; creation of metrics by name, and composite metrics."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.classes import Classes
from symop.interop.mxnet.errors import MXNetError

Names = Sequence[str] | None
Arrays = Sequence[Any] | NDArray
Named = tuple[str | list[str], Any]


class EvalMetric:
    """A mean over all updates since ``reset``; subclasses define the averaged quantity.

    Attributes:
        name: the name of the metric.
        num_inst: the number of values since the last local reset.
        sum_metric: their sum.
        global_num_inst: the number of values since the last reset.
        global_sum_metric: their sum.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> metric = mx.metric.create("acc")
        >>> metric.update([mx.nd.array([1, 0])], [mx.nd.array([[0.1, 0.9], [0.2, 0.8]])])
        >>> metric.get()
        ('accuracy', 0.5)
    """

    def __init__(
        self, name: str, output_names: Names = None, label_names: Names = None, **kwargs: Any
    ) -> None:
        """Creates a metric of the named outputs and labels; of all by default.

        Args:
            name: the name of the metric.
            output_names: names of its outputs.
            label_names: names of its labels.
            **kwargs: further arguments, kept for ``get_config``.
        """
        self.name, self.output_names, self.label_names = str(name), output_names, label_names
        kwargs.pop("has_global_stats", None)
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """The description from which ``create`` makes it."""
        return {
            **self._kwargs,
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Adds labels and outputs by name."""
        self.update(_chosen(label, self.label_names), _chosen(pred, self.output_names))

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels and outputs, one or a list of each."""
        # Abstract, as in MXNet: defined by every metric.
        raise NotImplementedError(f"{type(self).__name__} must say how it is updated")

    def _add(self, total: float, count: int = 1) -> None:
        self.sum_metric += total
        self.num_inst += count
        self.global_sum_metric += total
        self.global_num_inst += count

    def reset(self) -> None:
        """Resets the metric."""
        self.global_num_inst, self.global_sum_metric = 0, 0.0
        self.reset_local()

    def reset_local(self) -> None:
        """Resets the values since the last local reset."""
        self.num_inst, self.sum_metric = 0, 0.0

    def _mean(self, total: float, count: float) -> float:
        return total / count if count else math.nan

    def get(self) -> Named:
        """The name, and the mean since the last local reset."""
        return self.name, self._mean(self.sum_metric, self.num_inst)

    def get_global(self) -> Named:
        """The name, and the mean since the last reset."""
        return self.name, self._mean(self.global_sum_metric, self.global_num_inst)

    def get_name_value(self) -> list[tuple[str, Any]]:
        """``get`` as a list of pairs."""
        return _pairs(self.get())

    def get_global_name_value(self) -> list[tuple[str, Any]]:
        """``get_global`` as a list of pairs."""
        return _pairs(self.get_global())


class Declared(EvalMetric):
    """A metric whose own arguments precede the names, with defaults."""

    called: ClassVar[str]
    arguments: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        slots = [*self.arguments, "name", "output_names", "label_names"]
        given = {**dict(zip(slots, args, strict=False)), **kwargs}
        unknown = [key for key in given if key not in slots]
        if unknown or len(args) > len(slots):
            raise MXNetError(f"{type(self).__name__}: arguments are {slots}, got {args}, {kwargs}")
        names = [given.pop(key, None) for key in slots[-3:]]
        own = {**self.arguments, **given}
        missing = [key for key, value in own.items() if value is ...]
        if missing:
            raise MXNetError(f"{type(self).__name__}: {missing[0]} must be given")
        vars(self).update(own)
        super().__init__(names[0] or self.called, names[1], names[2], **own)


def _pairs(named: Named) -> list[tuple[str, Any]]:
    name, value = named
    return [(name, value)] if isinstance(name, str) else list(zip(name, value, strict=True))


def _chosen(given: Mapping[str, Any], names: Names) -> list[Any]:
    return list(given.values()) if names is None else [given[name] for name in names]


def check_label_shapes(
    labels: Any, preds: Any, wrap: bool = False, shape: bool = False
) -> tuple[Any, Any]:
    """Raises if labels and outputs differ in number, or in ``shape``.

    Args:
        labels: the labels.
        preds: the outputs.
        wrap: whether to wrap single arrays in lists.
        shape: whether to compare shapes instead of numbers.

    Raises:
        MXNetError: they differ.
    """
    found = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if found[0] != found[1]:
        raise MXNetError(f"metric: labels and outputs must fit, got {found[0]} and {found[1]}")
    if not wrap:
        return labels, preds
    return tuple([one] if hasattr(one, "shape") else one for one in (labels, preds))  # type: ignore[return-value]


def both(labels: Any, preds: Any) -> list[tuple[Any, Any]]:
    """Pairs of labels and outputs as JAX arrays."""
    labels, preds = check_label_shapes(labels, preds, True)
    return [(value_of(a), value_of(b)) for a, b in zip(labels, preds, strict=True)]


def value_of(array: Any) -> Any:
    """The value as a JAX array."""
    return array.value if isinstance(array, NDArray) else jnp.asarray(array)


_classes: Classes[EvalMetric] = Classes("metric", EvalMetric)
register, alias = _classes.register, _classes.alias


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Creates a metric from its name, a function of labels and outputs, or a list of these."""
    if isinstance(metric, list):
        return CompositeEvalMetric([create(one, *args, **kwargs) for one in metric])
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    return _classes.create(metric, *args, **kwargs)


@register
@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics as one."""

    def __init__(
        self,
        metrics: Sequence[Any] | None = None,
        name: str = "composite",
        output_names: Names = None,
        label_names: Names = None,
    ) -> None:
        """See ``EvalMetric``; each of ``metrics`` is passed to ``create``."""
        self.metrics = [create(one) for one in metrics or ()]
        super().__init__(name, output_names, label_names)

    def add(self, metric: Any) -> None:
        """Adds a metric, or what ``create`` makes of ``metric``."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """The metric at ``index``."""
        return self.metrics[index]

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Adds labels and outputs by name."""
        labels, preds = dict(label), dict(pred)
        if self.label_names is not None:
            labels = {name: one for name, one in label.items() if name in self.label_names}
        if self.output_names is not None:
            preds = {name: one for name, one in pred.items() if name in self.output_names}
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels and outputs."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        """Resets the metrics."""
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        """Resets the values since the last local reset."""
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> Named:
        """Names and means since the last local reset."""
        return _unzipped([pair for one in self.metrics for pair in one.get_name_value()])

    def get_global(self) -> Named:
        """Names and means since the last reset."""
        return _unzipped([pair for one in self.metrics for pair in one.get_global_name_value()])

    def get_config(self) -> dict[str, Any]:
        """The description from which ``create`` makes it."""
        return {**super().get_config(), "metrics": [one.get_config() for one in self.metrics]}


def _unzipped(pairs: Sequence[tuple[str, Any]]) -> Named:
    return [name for name, _ in pairs], [value for _, value in pairs]


@register
class CustomMetric(EvalMetric):
    """A mean of the values of a function of label and output, which are NumPy arrays.

    Args:
        feval: the function; it returns a number, or a sum and the number of its summands.
        name: the name; defaults to that of the function.
        allow_extra_outputs: whether there may be more outputs than labels.
        output_names: names of its outputs.
        label_names: names of its labels.
    """

    def __init__(
        self,
        feval: Callable[[np.ndarray, np.ndarray], Any],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: Names = None,
        label_names: Names = None,
    ) -> None:
        """See the class."""
        own = getattr(feval, "__name__", type(feval).__name__)
        super().__init__(
            name or (f"custom({own})" if "<" in own else own), output_names, label_names
        )
        self._feval, self._allow_extra_outputs = feval, allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels and outputs."""
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            found = self._feval(np.array(value_of(label)), np.array(value_of(pred)))
            total, count = found if isinstance(found, tuple) else (found, 1)
            self._add(float(total), int(count))

    def get_config(self) -> dict[str, Any]:
        """Raises an error: a function cannot be described.

        Raises:
            MXNetError: always.
        """
        raise MXNetError("get_config: a metric of a function cannot be described")
