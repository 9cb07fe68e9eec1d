"""Noise contrastive estimation: a classifier that is trained against sampled classes."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.operators import operator

_REMOTE = "seed remote_prefetch trainer_id height_sections epmap table_names is_test"
_TABLES = "CustomDistProbs CustomDistAlias CustomDistAliasProbs"


@operator(
    outputs="Cost SampleLogits SampleLabels",
    no_gradient=f"Label SampleWeight {_TABLES}",
    ignored=_REMOTE,
)
def nce(
    Input: Any,
    Label: Any,
    Weight: Any,
    Bias: Any = None,
    SampleWeight: Any = None,
    CustomDistProbs: Any = None,
    CustomDistAlias: Any = None,
    CustomDistAliasProbs: Any = None,
    *,
    num_total_classes: int,
    num_neg_samples: int = 10,
    sampler: int = 0,
    is_sparse: bool = False,
    custom_neg_classes: Sequence[int] = (),
) -> Any:
    """Returns the cost of each example, and the probabilities of its true and sampled classes."""
    label = so.cast(so.reshape(Label, shape=(Input.shape[0], -1)), dtype="int32")
    shape = (Input.shape[0], num_neg_samples)
    if custom_neg_classes:
        chosen = so.broadcast_to(jnp.asarray(custom_neg_classes, jnp.int32), shape=shape)
    else:
        chosen = _drawn(sampler, shape, num_total_classes, CustomDistProbs)
    classes = so.concat(label, chosen, axis=1)
    weights = so.lookup_table(Weight, classes, sparse=is_sparse)
    sums = so.squeeze(so.matmul(weights, so.expand_dims(Input, axis=2)), axis=2)
    if Bias is not None:
        sums = sums + so.take(so.reshape(Bias, shape=(-1,)), classes)
    sure = so.sigmoid(sums)
    noise = _noise(sampler, classes, num_total_classes, CustomDistProbs) * num_neg_samples
    true = label.shape[1]
    is_true = np.arange(classes.shape[1]) < true
    costs = so.where(is_true, -so.log(sure / (sure + noise)), -so.log(noise / (sure + noise)))
    total = so.sum(costs, axis=1, keepdims=True)
    if SampleWeight is not None:
        total = total * so.reshape(SampleWeight, shape=(-1, 1))
    return total, sure, classes


def _drawn(sampler: int, shape: tuple[int, ...], count: int, probabilities: Any) -> Any:
    """Returns sampled classes: uniform, log-uniform, or by given probabilities."""
    if sampler == 0:
        return so.sym.random_integers(low=0, high=count, shape=shape, dtype="int32")
    share = so.sym.random_uniform(shape=shape)
    if sampler == 1:
        drawn = so.cast(so.exp(share * math.log(count)), dtype="int32") - 1
        return so.mod(drawn, count)
    if probabilities is None:
        raise PaddleError("nce: CustomDistProbs must be given for the sampler 2, got nothing")
    sums = so.cumsum(so.reshape(probabilities, shape=(-1,)), axis=0)
    below = so.less(sums, so.expand_dims(share, axis=2))
    return so.minimum(so.sum(so.cast(below, dtype="int32"), axis=2), count - 1)


def _noise(sampler: int, classes: Any, count: int, probabilities: Any) -> Any:
    """Returns the probability with which a class is sampled."""
    if sampler == 0:
        return 1 / count
    if sampler == 1:
        value = so.cast(classes, dtype="float32")
        return so.log((value + 2) / (value + 1)) / math.log(count)
    return so.take(so.reshape(probabilities, shape=(-1,)), classes)


@operator(
    "nce_grad",
    outputs="Input@GRAD Weight@GRAD Bias@GRAD",
    ignored=f"{_REMOTE} custom_neg_classes",
)
def nce_gradient(
    Input: Any,
    Label: Any,
    Weight: Any,
    SampleLogits: Any,
    SampleLabels: Any,
    Cost_GRAD: Any,
    Bias: Any = None,
    SampleWeight: Any = None,
    CustomDistProbs: Any = None,
    CustomDistAlias: Any = None,
    CustomDistAliasProbs: Any = None,
    *,
    num_total_classes: int,
    num_neg_samples: int = 10,
    sampler: int = 0,
    is_sparse: bool = False,
) -> Any:
    """Returns the gradients for the classes that were sampled."""
    classes, sure = SampleLabels, SampleLogits
    noise = _noise(sampler, classes, num_total_classes, CustomDistProbs) * num_neg_samples
    true = classes.shape[1] - num_neg_samples
    share = (1 - sure) / (sure + noise)
    slopes = so.where(np.arange(classes.shape[1]) < true, -share * noise, share * sure)
    slopes = slopes * so.reshape(Cost_GRAD, shape=(-1, 1))
    if SampleWeight is not None:
        slopes = slopes * so.reshape(SampleWeight, shape=(-1, 1))
    weights = so.lookup_table(Weight, classes)
    to_input = so.squeeze(so.matmul(so.expand_dims(slopes, axis=1), weights), axis=1)
    rows = so.expand_dims(slopes, axis=2) * so.expand_dims(Input, axis=1)
    flat = so.reshape(classes, shape=(-1,))
    values = so.reshape(rows, shape=(-1, Input.shape[1]))
    to_weight = so.add_rows(values, flat, height=Weight.shape[0], sparse=is_sparse)
    to_bias = None
    if Bias is not None:
        column = so.reshape(slopes, shape=(-1, 1))
        found = so.add_rows(column, flat, height=Weight.shape[0], sparse=is_sparse)
        to_bias = found if is_sparse else so.reshape(found, shape=Bias.shape)
    return to_input, to_weight, to_bias
