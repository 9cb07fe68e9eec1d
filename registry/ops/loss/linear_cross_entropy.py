"""Cross-entropy of linear class scores, without storing the scores.

With the scores ``y = cap(x)`` of ``x = hidden @ weight^T + bias``, the softmax
``P = exp(y - logsumexp)``, ``H`` one-hot labels, and the tangents
``T = cap'(x) (a weight^T + hidden b^T + e)`` of the scores, all derivatives follow from

    sum(T * (of_softmax P - of_label H - of_all))

``linear_cross_entropy_gradient`` is its derivative with respect to the tangents ``a, b, e``,
``linear_cross_entropy_tangent`` that with respect to the three numbers of each example. So each
transposes the other. The derivatives with respect to the other inputs, which second derivatives
need, are compositions over whole matrices of scores.
"""

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import ArgumentError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import cast, single, unbroadcast
from registry.ops.core.comparison import not_equal
from registry.ops.core.elementwise import exp, tanh, where
from registry.ops.core.indexing import one_hot
from registry.ops.core.reductions import statistics_dtype
from registry.ops.core.reductions import sum as sum_over
from registry.ops.core.reshaping import reshape, swapped
from registry.ops.elementwise.powers import square
from registry.ops.loss.linear_chunks import (
    Scores,
    Shares,
    Tangents,
    pulled,
    pushed,
    summed,
    summed_and_pulled,
)
from registry.ops.loss.losses import ignores, require_classes
from registry.shapes import inexact, real
from registry.table import op
from registry.types import DType, Shape, VarType
from registry.var import Var

Cap = Annotated[float | None, Check("be positive", lambda cap: cap is None or cap > 0)]
Smoothing = Annotated[float, Check("lie in [0, 1]", lambda share: 0 <= share <= 1)]
_Grads = tuple[Array, Array, Array]


def _require_operands(hidden: Shape, weight: Shape, labels: Shape, bias: Shape | None) -> None:
    if not hidden or len(weight) != 2 or hidden[-1] != weight[1] or not weight[0]:
        raise ShapeError(
            "hidden must have shape (..., width), and weight (classes, width) with at least one "
            f"class, got {hidden} and {weight}"
        )
    if labels != hidden[:-1]:
        raise ShapeError(f"labels must have shape {hidden[:-1]}, got {labels}")
    if bias not in (None, weight[:1]):
        raise ShapeError(f"bias must have shape {weight[:1]}, got {bias}")


def _product_dtype(*types: VarType | None) -> DType:
    given = [one for one in types if one is not None]
    real(*given)
    return inexact(*given)[0]


def _loss_shape(
    hidden: Shape, weight: Shape, labels: Shape, bias: Shape | None
) -> tuple[Shape, Shape]:
    _require_operands(hidden, weight, labels, bias)
    return labels, labels


def _loss_dtype(
    hidden: VarType, weight: VarType, labels: VarType, bias: VarType | None
) -> list[DType]:
    dtype = _product_dtype(hidden, weight, bias)
    require_classes(labels)
    return [dtype, statistics_dtype(dtype)]


def _scores_reference(
    hidden: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, soft_cap: float | None
) -> np.ndarray:
    x = hidden @ weight.T
    x = x if bias is None else x + bias
    return x if soft_cap is None else np.asarray(soft_cap * np.tanh(x / soft_cap))


def _loss_reference(
    hidden: np.ndarray,
    weight: np.ndarray,
    labels: np.ndarray,
    bias: np.ndarray | None = None,
    *,
    smoothing: float,
    ignore_label: int | None,
    z_loss: float,
    soft_cap: float | None,
) -> np.ndarray:
    scores = _scores_reference(hidden, weight, bias, soft_cap)
    size = np.logaddexp.reduce(scores, -1)
    legal = (labels >= 0) & (labels < weight.shape[0])
    at = np.where(legal, labels, 0)[..., None]
    chosen = np.where(legal, np.take_along_axis(scores, at, -1)[..., 0], np.nan)
    loss = size - (1 - smoothing) * chosen - smoothing * scores.mean(-1) + z_loss * size**2
    return np.asarray(loss if ignore_label is None else np.where(labels == ignore_label, 0, loss))


_FEW: dict[str, Any] = {"hidden": (4, 3), "weight": (5, 3), "labels": integers(4, high=5)}


@op(
    shape=_loss_shape,
    dtype=_loss_dtype,
    reference=_loss_reference,
    outputs=("out", "logsumexp"),
    hidden=("logsumexp",),
    cases=[
        case(**_FEW, order=2),
        case(**_FEW, bias=(5,), smoothing=0.2, z_loss=0.1, soft_cap=2.0, order=1),
        case(
            hidden=(2, 3, 4),
            weight=(3, 4),
            labels=integers(2, 3, low=-1, high=3),
            ignore_label=-1,
            order=1,
        ),
        case(hidden=(3,), weight=(4, 3), labels=integers(high=4), order=1),
        case(hidden=(0, 3), weight=(4, 3), labels=integers(0, high=4), order=1),
        case(hidden=(2, 0), weight=(4, 0), labels=integers(2, high=4), order=1),
        case(hidden=(9, 2), weight=(3, 2), labels=integers(9, low=-2, high=5), order=0),
        workload(hidden=(1024, 256), weight=(4096, 256), labels=integers(1024, high=4096)),
        misuse(
            "hidden must have shape (..., width), and weight (classes, width)",
            **{**_FEW, "weight": (5, 2)},
        ),
        misuse("labels must have shape (4,), got (3,)", **{**_FEW, "labels": integers(3, high=5)}),
        misuse("bias must have shape (5,), got (4,)", **_FEW, bias=(4,)),
        misuse("labels of classes must be integers", **{**_FEW, "labels": (4,)}),
        misuse("attribute 'smoothing' must lie in [0, 1], got 1.5", **_FEW, smoothing=1.5),
        misuse("attribute 'soft_cap' must be positive, got 0.0", **_FEW, soft_cap=0.0),
        misuse("must be real, got complex64", **{**_FEW, "hidden": np.ones((4, 3), np.complex64)}),
    ],
    costly=True,
    sealed=True,  # JAX would keep all scores
)
def linear_cross_entropy(
    hidden: Array,
    weight: Array,
    labels: Array,
    bias: Array | None = None,
    *,
    smoothing: Smoothing = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: Cap = None,
) -> tuple[Array, Array]:
    """Softmax cross-entropy of the scores ``hidden @ weight^T + bias``, which are not stored.

    ``hidden`` has shape ``(..., width)``, ``weight`` ``(classes, width)``, ``labels`` one integer
    class for each example, and the result one loss for each. Where examples times classes are
    many, the scores are computed chunk by chunk, and again for the gradient; ``registry.tuning``
    has the size from which on. Second derivatives compute all scores.

    ``smoothing`` and ``ignore_label`` are those of ``softmax_cross_entropy``. ``z_loss`` is the
    factor of the square of the scores' logsumexp, which is added. ``soft_cap`` bounds the scores:
    ``soft_cap * tanh(scores / soft_cap)``. A class out of range gives NaN. The scores are computed
    in at least float32.

    Source: Wijmans et al., Cut Your Losses in Large-Vocabulary Language Models, 2024.

    Example:
        >>> import jax.numpy as jnp
        >>> linear_cross_entropy(jnp.ones((1, 2)), jnp.eye(2), jnp.asarray([0]))
        Array([0.6931472], dtype=float32)
    """
    hidden, labels = jnp.asarray(hidden), jnp.asarray(labels)
    flat = hidden.reshape(labels.size, hidden.shape[-1])
    by = _scores(flat, weight, labels.reshape(-1), bias, soft_cap)
    kept = _kept(labels.reshape(-1), ignore_label) if ignores(labels.dtype, ignore_label) else None
    if kept is not None:
        by = by._replace(hidden=jnp.where(kept[:, None], by.hidden, 0))
    sums = summed(by, of_all=bool(smoothing))
    loss = _loss(by, sums, kept, smoothing, z_loss)
    return loss.reshape(labels.shape), sums[0].reshape(labels.shape)


def _kept(labels: Array, ignore_label: int | None) -> Array:
    """Which examples are not ignored."""
    return jnp.not_equal(labels, jnp.asarray(ignore_label, labels.dtype))


def _scores(
    hidden: Array, weight: Array, labels: Array, bias: Array | None, soft_cap: float | None
) -> Scores:
    arrays = [one for one in (hidden, weight, bias) if one is not None]
    dtype = jnp.result_type(*arrays)
    hidden, weight = hidden.astype(dtype), weight.astype(dtype)
    bias = None if bias is None else bias.astype(dtype)
    if labels.dtype.itemsize > 4:  # no class out of range becomes a class when narrowed
        outside = weight.shape[0]
        labels = jnp.where(labels < 0, outside, jnp.minimum(labels, outside))
    return Scores(hidden, weight, bias, labels.astype(np.int32), soft_cap)


def _loss(by: Scores, sums: _Grads, kept: Array | None, smoothing: float, z_loss: float) -> Array:
    logsumexp, of_label, of_all = sums
    loss = logsumexp - (1 - smoothing) * of_label
    if smoothing:
        loss = loss - smoothing / by.shape[1] * of_all
    if z_loss:
        loss = loss + z_loss * jnp.square(logsumexp)
    loss = loss if kept is None else jnp.where(kept, loss, 0)
    return loss.astype(by.hidden.dtype)


@linear_cross_entropy.gradient
def _loss_maker(
    hidden: Var,
    weight: Var,
    labels: Var,
    bias: Var | None,
    logsumexp: Var,
    d_out: Var,
    d_logsumexp: Var | None,
    wanted: tuple[bool, ...],
    *,
    smoothing: float,
    ignore_label: int | None,
    z_loss: float,
    soft_cap: float | None,
) -> Grads:
    n, classes = labels.size, weight.shape[0]
    size, x = reshape(logsumexp, shape=(n,)), reshape(hidden, shape=(n, hidden.shape[-1]))
    d, classes_of = single(reshape(d_out, shape=(n,))), reshape(labels, shape=(n,))
    kept = None
    if ignores(labels.dtype, ignore_label):
        kept = not_equal(classes_of, ignore_label)
        d, column = where(kept, d, 0.0), reshape(kept, shape=(n, 1))
        x = where(column, x, 0.0)
    of_softmax = d if z_loss == 0 else d * (1.0 + 2.0 * z_loss * size)
    if d_logsumexp is not None:
        of_softmax = of_softmax + reshape(d_logsumexp, shape=(n,))
    of_bias = bias is not None and wanted[3]
    d_hidden, d_weight, *d_bias = linear_cross_entropy_gradient(
        *(x, weight, classes_of, size, of_softmax),
        d if smoothing == 0 else (1 - smoothing) * d,
        None if smoothing == 0 else (smoothing / classes) * d,
        bias,
        soft_cap=soft_cap,
        of_bias=of_bias,
    )
    d_hidden = d_hidden if kept is None else where(column, d_hidden, 0.0)
    return {
        "hidden": unbroadcast(reshape(d_hidden, shape=hidden.shape), hidden),
        "weight": unbroadcast(d_weight, weight),
        "labels": None,
        "bias": unbroadcast(d_bias[0], bias) if of_bias and bias is not None else None,
    }


# The gradient and the tangent ------------------------------------------------------------------


def _require_flat(
    hidden: Shape, weight: Shape, labels: Shape, bias: Shape | None, **numbers: Shape | None
) -> None:
    _require_operands(hidden, weight, labels, bias)
    if len(hidden) != 2:
        raise ShapeError(f"hidden must have two axes, got {hidden}")
    for name, one in numbers.items():
        if one not in (None, labels):
            raise ShapeError(f"{name} must have shape {labels}, got {one}")


def _gradient_shape(
    hidden: Shape,
    weight: Shape,
    labels: Shape,
    logsumexp: Shape,
    of_softmax: Shape,
    of_label: Shape,
    of_all: Shape | None,
    bias: Shape | None,
    *,
    of_bias: bool,
) -> list[Shape]:
    numbers = {"of_softmax": of_softmax, "of_label": of_label, "of_all": of_all}
    _require_flat(hidden, weight, labels, bias, logsumexp=logsumexp, **numbers)
    if not of_bias:
        return [hidden, weight]
    if bias is None:
        raise ArgumentError("of_bias must be false without a bias, got True")
    return [hidden, weight, bias]


def _gradient_dtype(
    hidden: VarType,
    weight: VarType,
    labels: VarType,
    logsumexp: VarType,
    of_softmax: VarType,
    of_label: VarType,
    of_all: VarType | None,
    bias: VarType | None,
    *,
    of_bias: bool,
) -> list[DType]:
    require_classes(labels)
    _product_dtype(logsumexp, of_softmax, of_label, of_all)
    return [_product_dtype(hidden, weight, bias)] * (3 if of_bias else 2)


def _shares_reference(
    scores: np.ndarray, labels: np.ndarray, logsumexp: np.ndarray, *numbers: np.ndarray | None
) -> np.ndarray:
    of_softmax, of_label, of_all = numbers
    hot = labels[:, None] == np.arange(scores.shape[1])
    assert of_softmax is not None
    assert of_label is not None
    slopes = of_softmax[:, None] * np.exp(scores - logsumexp[:, None]) - of_label[:, None] * hot
    return np.asarray(slopes if of_all is None else slopes - of_all[:, None])


def _gradient_reference(
    hidden: np.ndarray,
    weight: np.ndarray,
    labels: np.ndarray,
    logsumexp: np.ndarray,
    of_softmax: np.ndarray,
    of_label: np.ndarray,
    of_all: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    *,
    soft_cap: float | None,
    of_bias: bool,
) -> list[np.ndarray]:
    scores = _scores_reference(hidden, weight, bias, soft_cap)
    slopes = _shares_reference(scores, labels, logsumexp, of_softmax, of_label, of_all)
    slopes = slopes if soft_cap is None else slopes * (1 - (scores / soft_cap) ** 2)
    return [slopes @ weight, slopes.T @ hidden, *([slopes.sum(0)] if of_bias else [])]


_NUMBERS: dict[str, Any] = {**_FEW, "logsumexp": (4,)}
_SHARES: dict[str, Any] = {**_NUMBERS, "of_softmax": (4,), "of_label": (4,)}


@op(
    shape=_gradient_shape,
    dtype=_gradient_dtype,
    outputs=("*parts",),
    count=lambda *, of_bias: 2 + of_bias,
    reference=_gradient_reference,
    cases=[
        case(**_SHARES, order=1),
        case(**_SHARES, of_all=(4,), bias=(5,), soft_cap=2.0, of_bias=True, order=1),
        misuse("of_label must have shape (4,), got (3,)", **{**_SHARES, "of_label": (3,)}),
        misuse("of_bias must be false without a bias, got True", **_SHARES, of_bias=True),
        misuse(
            "hidden must have two axes",
            hidden=(3,),
            weight=(4, 3),
            labels=integers(high=4),
            logsumexp=(),
            of_softmax=(),
            of_label=(),
        ),
    ],
    costly=True,
    sealed=True,  # JAX would keep all scores
)
def linear_cross_entropy_gradient(
    hidden: Array,
    weight: Array,
    labels: Array,
    logsumexp: Array,
    of_softmax: Array,
    of_label: Array,
    of_all: Array | None = None,
    bias: Array | None = None,
    *,
    soft_cap: Cap = None,
    of_bias: bool = False,
) -> tuple[Array, ...]:
    """Gradients of functions of linear scores ``y`` with respect to hidden, weight and bias.

    The cotangent of an example's scores is
    ``of_softmax * exp(y - logsumexp) - of_label * one_hot(label) - of_all``. The scores are those
    of ``linear_cross_entropy``, and computed chunk by chunk if they are many.

    Example:
        >>> import jax.numpy as jnp
        >>> hidden, weight, label = jnp.ones((1, 1)), jnp.zeros((2, 1)), jnp.asarray([1])
        >>> one = jnp.ones(1)
        >>> linear_cross_entropy_gradient(hidden, weight, label, jnp.log(2 * one), one, one)[1]
        Array([[ 0.5],
               [-0.5]], dtype=float32)
    """
    by = _scores(hidden, weight, labels, bias, soft_cap)
    parts = pulled(by, logsumexp, _shares(of_softmax, of_label, of_all, by.wide))
    return _parts(parts, by, of_bias=of_bias)


def _shares(of_softmax: Array, of_label: Array, of_all: Array | None, wide: Any) -> Shares:
    every = jnp.zeros_like(of_label) if of_all is None else of_all
    return Shares(*(one.astype(wide) for one in (of_softmax, of_label, every)))


def _parts(parts: _Grads, by: Scores, *, of_bias: bool) -> tuple[Array, ...]:
    return tuple(one.astype(by.hidden.dtype) for one in parts[: 2 + of_bias])


@linear_cross_entropy_gradient.gradient
def _gradient_maker(
    hidden: Var,
    weight: Var,
    labels: Var,
    logsumexp: Var,
    of_softmax: Var,
    of_label: Var,
    of_all: Var | None,
    bias: Var | None,
    d_parts: tuple[Var | None, ...] | None,
    wanted: tuple[bool, ...],
    *,
    soft_cap: float | None,
    of_bias: bool,
) -> Grads:
    tangents = (*(d_parts or (None, None)), *(() if of_bias else (None,)))
    operands = (hidden, weight, labels, logsumexp)
    numbers = (of_softmax, of_label, of_all)
    grads: Grads = dict.fromkeys(("hidden", "weight", "labels", "logsumexp", *_SHARE_NAMES, "bias"))
    if any(wanted[4:7]):
        sums = linear_cross_entropy_tangent(*operands, *tangents, bias, soft_cap=soft_cap)
        for name, number, one, sign in zip(_SHARE_NAMES, numbers, sums, (1, -1, -1), strict=True):
            signed = one if sign == 1 else -one
            grads[name] = None if number is None else unbroadcast(signed, number)
    if any(wanted[i] for i in (0, 1, 3, 7)):
        grads |= _curved(operands, bias, tangents, numbers, soft_cap)
    return grads


_SHARE_NAMES = ("of_softmax", "of_label", "of_all")


def _tangent_shape(
    hidden: Shape,
    weight: Shape,
    labels: Shape,
    logsumexp: Shape,
    hidden_tangent: Shape | None,
    weight_tangent: Shape | None,
    bias_tangent: Shape | None,
    bias: Shape | None,
) -> tuple[Shape, Shape, Shape]:
    _require_flat(hidden, weight, labels, bias, logsumexp=logsumexp)
    for name, one, expected in (
        ("hidden_tangent", hidden_tangent, hidden),
        ("weight_tangent", weight_tangent, weight),
        ("bias_tangent", bias_tangent, bias),
    ):
        if one is not None and one != expected:
            raise ShapeError(f"{name} must have shape {expected}, got {one}")
    return labels, labels, labels


def _tangent_dtype(
    hidden: VarType,
    weight: VarType,
    labels: VarType,
    logsumexp: VarType,
    hidden_tangent: VarType | None,
    weight_tangent: VarType | None,
    bias_tangent: VarType | None,
    bias: VarType | None,
) -> list[DType]:
    require_classes(labels)
    _product_dtype(logsumexp, hidden_tangent, weight_tangent, bias_tangent)
    return [statistics_dtype(_product_dtype(hidden, weight, bias))] * 3


def _tangent_reference(
    hidden: np.ndarray,
    weight: np.ndarray,
    labels: np.ndarray,
    logsumexp: np.ndarray,
    hidden_tangent: np.ndarray | None = None,
    weight_tangent: np.ndarray | None = None,
    bias_tangent: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    *,
    soft_cap: float | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scores = _scores_reference(hidden, weight, bias, soft_cap)
    moved = np.zeros(scores.shape)
    moved += 0 if hidden_tangent is None else hidden_tangent @ weight.T
    moved += 0 if weight_tangent is None else hidden @ weight_tangent.T
    moved += 0 if bias_tangent is None else bias_tangent
    moved *= 1 if soft_cap is None else 1 - (scores / soft_cap) ** 2
    softmax = np.exp(scores - logsumexp[:, None])
    hot = labels[:, None] == np.arange(scores.shape[1])
    return (softmax * moved).sum(1), (hot * moved).sum(1), moved.sum(1)


@op(
    shape=_tangent_shape,
    dtype=_tangent_dtype,
    outputs=("of_softmax", "of_label", "of_all"),
    reference=_tangent_reference,
    cases=[
        case(**_NUMBERS, hidden_tangent=(4, 3), weight_tangent=(5, 3), order=1),
        case(**_NUMBERS, bias_tangent=(5,), bias=(5,), soft_cap=2.0, order=1),
        misuse(
            "weight_tangent must have shape (5, 3), got (4, 3)", **_NUMBERS, weight_tangent=(4, 3)
        ),
    ],
    costly=True,
    sealed=True,  # JAX would keep all scores
)
def linear_cross_entropy_tangent(
    hidden: Array,
    weight: Array,
    labels: Array,
    logsumexp: Array,
    hidden_tangent: Array | None = None,
    weight_tangent: Array | None = None,
    bias_tangent: Array | None = None,
    bias: Array | None = None,
    *,
    soft_cap: Cap = None,
) -> tuple[Array, Array, Array]:
    """Sums of the tangents of linear scores: the transpose of the gradient of cross-entropy.

    For each example: the sum weighted by ``exp(scores - logsumexp)``, the tangent of the label's
    score, and the sum over all classes. The scores are those of ``linear_cross_entropy``.

    Example:
        >>> import jax.numpy as jnp
        >>> hidden, weight, label = jnp.ones((1, 1)), jnp.ones((2, 1)), jnp.asarray([1])
        >>> sums = linear_cross_entropy_tangent(hidden, weight, label, jnp.ones(1), hidden)
        >>> [float(one[0]) for one in sums]
        [2.0, 1.0, 2.0]
    """
    by = _scores(hidden, weight, labels, bias, soft_cap)
    moved = (hidden_tangent, weight_tangent)
    tangents = [None if one is None else one.astype(by.hidden.dtype) for one in moved]
    return pushed(by, logsumexp, Tangents(tangents[0], tangents[1], bias_tangent))


@linear_cross_entropy_tangent.gradient
def _tangent_maker(
    hidden: Var,
    weight: Var,
    labels: Var,
    logsumexp: Var,
    hidden_tangent: Var | None,
    weight_tangent: Var | None,
    bias_tangent: Var | None,
    bias: Var | None,
    d_of_softmax: Var,
    d_of_label: Var,
    d_of_all: Var,
    wanted: tuple[bool, ...],
    *,
    soft_cap: float | None,
) -> Grads:
    operands, numbers = (hidden, weight, labels, logsumexp), (d_of_softmax, -d_of_label, -d_of_all)
    tangents = (hidden_tangent, weight_tangent, bias_tangent)
    names = ("hidden_tangent", "weight_tangent", "bias_tangent")
    grads: Grads = dict.fromkeys(("hidden", "weight", "labels", "logsumexp", *names, "bias"))
    if any(wanted[4:7]):
        of_bias = bias_tangent is not None and wanted[6]
        parts = linear_cross_entropy_gradient(
            *operands, *numbers, bias, soft_cap=soft_cap, of_bias=of_bias
        )
        for name, one, part in zip(names, tangents, parts, strict=False):
            grads[name] = None if one is None else unbroadcast(part, one)
    if any(wanted[i] for i in (0, 1, 3, 7)):
        grads |= _curved(operands, bias, tangents, numbers, soft_cap)
    return grads


# Value and gradient at once ----------------------------------------------------------------------


def _both_shape(
    hidden: Shape,
    weight: Shape,
    labels: Shape,
    of_softmax: Shape,
    of_label: Shape,
    of_all: Shape | None,
    bias: Shape | None,
    *,
    of_bias: bool,
) -> list[Shape]:
    numbers = (labels, of_softmax, of_label, of_all)
    parts = _gradient_shape(hidden, weight, labels, *numbers, bias, of_bias=of_bias)
    return [labels, labels, *parts]


def _both_dtype(
    hidden: VarType,
    weight: VarType,
    labels: VarType,
    of_softmax: VarType,
    of_label: VarType,
    of_all: VarType | None,
    bias: VarType | None,
    *,
    of_bias: bool,
) -> list[DType]:
    _product_dtype(of_softmax, of_label, of_all)
    dtypes = _loss_dtype(hidden, weight, labels, bias)
    return [*dtypes, *[dtypes[0]] * (3 if of_bias else 2)]


def _both_reference(
    hidden: np.ndarray,
    weight: np.ndarray,
    labels: np.ndarray,
    of_softmax: np.ndarray,
    of_label: np.ndarray,
    of_all: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    *,
    soft_cap: float | None,
    of_bias: bool,
    **how: Any,
) -> list[np.ndarray]:
    loss = _loss_reference(hidden, weight, labels, bias, soft_cap=soft_cap, **how)
    size = np.logaddexp.reduce(_scores_reference(hidden, weight, bias, soft_cap), -1)
    numbers = (size, of_softmax, of_label, of_all)
    how = {"soft_cap": soft_cap, "of_bias": of_bias}
    return [loss, size, *_gradient_reference(hidden, weight, labels, *numbers, bias, **how)]


_BOTH: dict[str, Any] = {**_FEW, "of_softmax": (4,), "of_label": (4,)}


@op(
    shape=_both_shape,
    dtype=_both_dtype,
    outputs=("out", "logsumexp", "*parts"),
    count=lambda *, of_bias: 2 + of_bias,
    reference=_both_reference,
    cases=[
        case(**_BOTH, order=1),
        case(
            **_BOTH,
            of_all=(4,),
            bias=(5,),
            of_bias=True,
            smoothing=0.2,
            z_loss=0.1,
            soft_cap=2.0,
            ignore_label=1,
            order=1,
        ),
        misuse("of_label must have shape (4,), got (3,)", **{**_BOTH, "of_label": (3,)}),
    ],
    costly=True,
    sealed=True,  # JAX would keep all scores
)
def linear_cross_entropy_and_gradient(
    hidden: Array,
    weight: Array,
    labels: Array,
    of_softmax: Array,
    of_label: Array,
    of_all: Array | None = None,
    bias: Array | None = None,
    *,
    smoothing: Smoothing = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: Cap = None,
    of_bias: bool = False,
) -> tuple[Array, ...]:
    """The results of ``linear_cross_entropy`` and of its gradient, with each score computed once.

    A graph that needs both is lowered to it if the numbers of the gradient do not depend on the
    loss. Apart from that the inputs and attributes are those of the two operators.

    Example:
        >>> import jax.numpy as jnp
        >>> hidden, weight, label = jnp.ones((1, 1)), jnp.zeros((2, 1)), jnp.asarray([1])
        >>> ones = jnp.ones(1)
        >>> results = linear_cross_entropy_and_gradient(hidden, weight, label, ones, ones)
        >>> results[0], results[3]
        (Array([0.6931472], dtype=float32), Array([[ 0.5],
               [-0.5]], dtype=float32))
    """
    by = _scores(hidden, weight, labels, bias, soft_cap)
    kept = _kept(labels.reshape(-1), ignore_label) if ignores(labels.dtype, ignore_label) else None
    shares = _shares(of_softmax, of_label, of_all, by.wide)
    sums, parts = summed_and_pulled(by, shares, of_all=bool(smoothing))
    loss = _loss(by, sums, kept, smoothing, z_loss)
    return loss, sums[0], *_parts(parts, by, of_bias=of_bias)


@linear_cross_entropy_and_gradient.gradient
def _both_maker(
    hidden: Var,
    weight: Var,
    labels: Var,
    of_softmax: Var,
    of_label: Var,
    of_all: Var | None,
    bias: Var | None,
    logsumexp: Var,
    d_out: Var,
    d_logsumexp: Var | None,
    d_parts: tuple[Var | None, ...] | None,
    *,
    of_bias: bool,
    soft_cap: float | None,
    **how: Any,
) -> Grads:
    all_wanted = (True,) * 8
    by_parts = _gradient_maker(
        hidden,
        weight,
        labels,
        logsumexp,
        of_softmax,
        of_label,
        of_all,
        bias,
        d_parts,
        all_wanted,
        soft_cap=soft_cap,
        of_bias=of_bias,
    )
    d_size = _total(d_logsumexp, by_parts.pop("logsumexp"))
    by_loss = _loss_maker(
        hidden, weight, labels, bias, logsumexp, d_out, d_size, all_wanted, soft_cap=soft_cap, **how
    )
    return {name: _total(one, by_loss.get(name)) for name, one in by_parts.items()}


# Second derivatives, by whole matrices ---------------------------------------------------------


def _curved(
    operands: tuple[Var, Var, Var, Var],
    bias: Var | None,
    tangents: tuple[Var | None, ...],
    numbers: tuple[Var, Var, Var | None],
    soft_cap: float | None,
) -> Grads:
    """The derivatives of the function at the top with respect to the operands and the bias."""
    # With M = of_softmax P - of_label H - of_all and T = F t, the cotangent of t is M F, that of F
    # is M t, and that of P is of_softmax T. P is exp(y - logsumexp), and for y = cap tanh(x / cap)
    # F = 1 - (y / cap)^2 = dy / dx, so dF / dx = -2 y / cap^2 F.
    hidden, weight, labels, logsumexp = operands
    a, b, e = tangents
    x = _linear(hidden, weight, bias)
    y = x if soft_cap is None else soft_cap * tanh(x / soft_cap)
    slope = None if soft_cap is None else 1.0 - square(y / soft_cap)
    softmax = exp(y - _column(logsumexp))
    of_softmax, of_label, of_all = (None if one is None else _column(one) for one in numbers)
    hot = one_hot(labels, num_classes=weight.shape[0], axis=1, dtype="bool")
    shares = of_softmax * softmax - where(hot, cast(of_label, dtype=softmax.dtype), 0.0)
    shares = shares if of_all is None else shares - of_all
    t = _total(None if a is None else a @ swapped(weight), e)
    t = _total(t, None if b is None else hidden @ swapped(b))
    if t is None:
        return {}
    moved, of_t = (t, shares) if slope is None else (slope * t, shares * slope)
    of_y = of_softmax * softmax * moved
    of_x = of_y
    if soft_cap is not None:
        of_x = slope * (of_y - (2.0 / soft_cap**2) * y * shares * t)
    by_hidden = _total(of_x @ weight, None if b is None else of_t @ b)
    by_weight = _total(swapped(of_x) @ hidden, None if a is None else swapped(of_t) @ a)
    return {
        "hidden": unbroadcast(by_hidden, hidden),
        "weight": unbroadcast(by_weight, weight),
        "logsumexp": unbroadcast(-sum_over(of_y, axis=1), logsumexp),
        "bias": None if bias is None else unbroadcast(of_x, bias),
    }


def _linear(hidden: Var, weight: Var, bias: Var | None) -> Any:
    x = hidden @ swapped(weight)
    return x if bias is None else x + bias


def _column(x: Var) -> Any:
    return reshape(x, shape=(*x.shape, 1))


def _total(x: Any, y: Any) -> Any:
    """The sum of the terms that are present; None without any."""
    if x is None or y is None:
        return y if x is None else x
    return x + y
