"""Every operator of Paddle's table against its definition in NumPy."""

import itertools
import pathlib

import numpy as np
import pytest
import scipy.special
from paddle_records import records

import symop as so
from symop.interop.paddle import ops
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import BlockDesc, OpDesc, ProgramDesc
from symop.interop.paddle.operators import find, names
from symop.interop.paddle.translating import Translation

assert ops
OLD, NEW = 1008005, 2006002


def run(kind, inputs, outputs=("Out",), version=NEW, known=(), **attrs):
    """The outputs of one call, in NumPy; ``known`` inputs are constants."""
    environment, feed, slots = {}, {}, {}
    for slot, given in inputs.items():
        several = given if isinstance(given, list) else [given]
        slots[slot] = [f"{slot}{i}" for i in range(len(several))]
        for name, value in zip(slots[slot], several, strict=True):
            environment[name] = variable(name, value, feed, slot in known)
    counts = {slot: 1 if slot.endswith("@GRAD") else 4 for slot in outputs}
    produced = {slot: [f"out_{slot}{i}" for i in range(n)] for slot, n in counts.items()}
    op = OpDesc(kind, slots, produced, attrs, {})
    Translation(ProgramDesc([BlockDesc(0, -1, {}, [op])], version)).run(0, environment)
    return evaluated([environment.get(f"out_{slot}0") for slot in outputs], feed)


def variable(name, value, feed, known):
    data = np.asarray(getattr(value, "data", value))
    if known:
        return so.nd.array(data).value
    feed[name] = data
    symbol = so.var(name, data.shape, data.dtype)
    if not isinstance(value, so.LoDTensor):
        return symbol
    feed |= {f"{name}@LOD{i}": np.asarray(one) for i, one in enumerate(value.lod)}
    offsets = [so.var(f"{name}@LOD{i}", one.shape, "int32") for i, one in enumerate(value.lod)]
    return so.LoDTensor(symbol, offsets)


def evaluated(values, feed):
    """Values in NumPy, all from one run."""
    data = [one.data if isinstance(one, so.LoDTensor) else one for one in values]
    symbols = [one for one in data if isinstance(one, so.Symbol)]
    if symbols:
        group = so.Group(symbols)
        results = group.eval({name: feed[name] for name in group.list_inputs()})
        computed = iter(results if isinstance(results, (list, tuple)) else [results])
        data = [next(computed) if isinstance(one, so.Symbol) else one for one in data]
    return [None if one is None else np.asarray(one) for one in data]


RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def ids(high, *shape):
    return RNG.integers(high, size=shape).astype(np.int32)


def logistic(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


X = normal(3, 4)
P = np.abs(normal(3, 4)) + 0.5
U = np.tanh(normal(3, 4)) * 0.9
Y = normal(3, 4)

ENTRYWISE = {
    "abs": (X, np.abs),
    "acos": (U, np.arccos),
    "acosh": (P + 1, np.arccosh),
    "asin": (U, np.arcsin),
    "asinh": (X, np.arcsinh),
    "atan": (X, np.arctan),
    "atanh": (U, np.arctanh),
    "ceil": (X, np.ceil),
    "cos": (X, np.cos),
    "cosh": (X, np.cosh),
    "digamma": (P, scipy.special.digamma),
    "erf": (X, scipy.special.erf),
    "erfinv": (U, scipy.special.erfinv),
    "exp": (X, np.exp),
    "expm1": (X, np.expm1),
    "floor": (X, np.floor),
    "lgamma": (P, scipy.special.gammaln),
    "log": (P, np.log),
    "log10": (P, np.log10),
    "log1p": (P, np.log1p),
    "log2": (P, np.log2),
    "logsigmoid": (X, lambda x: np.log(logistic(x))),
    "reciprocal": (P, lambda x: 1 / x),
    "relu": (X, lambda x: np.maximum(x, 0)),
    "round": (X, np.round),
    "rsqrt": (P, lambda x: 1 / np.sqrt(x)),
    "sigmoid": (X, logistic),
    "sign": (X, np.sign),
    "silu": (X, lambda x: x * logistic(x)),
    "sin": (X, np.sin),
    "sinh": (X, np.sinh),
    "softsign": (X, lambda x: x / (1 + np.abs(x))),
    "sqrt": (P, np.sqrt),
    "square": (X, np.square),
    "tan": (U, np.tan),
    "tanh": (X, np.tanh),
    "tanh_shrink": (X, lambda x: x - np.tanh(x)),
    "trunc": (X, np.trunc),
    "assign": (X, lambda x: x),
    "fill_zeros_like": (X, np.zeros_like),
    "fill_zeros_like2": (X, np.zeros_like),
    "zeros_like": (X, np.zeros_like),
    "elu": (X, lambda x: np.where(x > 0, x, np.expm1(x))),
    "leaky_relu": (X, lambda x: np.where(x > 0, x, 0.02 * x)),
    "relu6": (3 * X, lambda x: np.clip(x, 0, 6)),
    "hard_sigmoid": (3 * X, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    "hard_swish": (3 * X, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "gelu": (X, lambda x: x * 0.5 * (1 + scipy.special.erf(x / np.sqrt(2)))),
    "swish": (X, lambda x: x * logistic(x)),
    "mish": (X, lambda x: x * np.tanh(softplus(x))),
    "softplus": (X, softplus),
    "soft_relu": (X, softplus),
    "selu": (
        X,
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    ),
    "celu": (X, lambda x: np.where(x > 0, x, np.expm1(x))),
    "thresholded_relu": (X, lambda x: np.where(x > 1, x, 0)),
    "hard_shrink": (X, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    "softshrink": (X, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    "soft_shrink": (X, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    "brelu": (X, lambda x: np.clip(x, 0, 24)),
    "stanh": (X, lambda x: 1.7159 * np.tanh(0.67 * x)),
    "logit": (logistic(X), lambda x: np.log(x / (1 - x))),
    "softmax": (X, lambda x: scipy.special.softmax(x, -1)),
    "log_softmax": (X, lambda x: scipy.special.log_softmax(x, -1)),
    "scale": (X, lambda x: x),
    "pow": (X, lambda x: x),
    "increment": (X[:1, :1], lambda x: x + 1),
    "isfinite_v2": (np.float32([1, np.inf, np.nan]), np.isfinite),
    "isinf_v2": (X, np.isinf),
    "isnan_v2": (X, np.isnan),
    "isfinite": (X, lambda x: np.array([True])),
    "isinf": (X, lambda x: np.array([False])),
    "isnan": (X, lambda x: np.array([False])),
    "logical_not": (X > 0, np.logical_not),
    "bitwise_not": (ids(9, 3), np.invert),
}

BINARY = {
    "elementwise_add": (X, Y, np.add),
    "elementwise_sub": (X, Y, np.subtract),
    "elementwise_mul": (X, Y, np.multiply),
    "elementwise_div": (X, P, np.divide),
    "elementwise_max": (X, Y, np.maximum),
    "elementwise_min": (X, Y, np.minimum),
    "elementwise_pow": (P, Y, np.power),
    "elementwise_mod": (ids(9, 3, 4), ids(4, 3, 4) + 1, np.mod),
    "elementwise_floordiv": (ids(9, 3, 4), ids(4, 3, 4) + 1, np.floor_divide),
    "elementwise_fmax": (X, Y, np.fmax),
    "elementwise_fmin": (X, Y, np.fmin),
    "fmax": (X, Y, np.fmax),
    "fmin": (X, Y, np.fmin),
    "minus": (X, Y, np.subtract),
    "equal": (ids(3, 9), ids(3, 9), np.equal),
    "not_equal": (ids(3, 9), ids(3, 9), np.not_equal),
    "less_than": (X, Y, np.less),
    "less_equal": (X, Y, np.less_equal),
    "greater_than": (X, Y, np.greater),
    "greater_equal": (X, Y, np.greater_equal),
    "logical_and": (X > 0, Y > 0, np.logical_and),
    "logical_or": (X > 0, Y > 0, np.logical_or),
    "logical_xor": (X > 0, Y > 0, np.logical_xor),
    "bitwise_and": (ids(9, 5), ids(9, 5), np.bitwise_and),
    "bitwise_or": (ids(9, 5), ids(9, 5), np.bitwise_or),
    "bitwise_xor": (ids(9, 5), ids(9, 5), np.bitwise_xor),
    "kron": (X, Y[:2, :2], np.kron),
    "bmm": (normal(2, 3, 4), normal(2, 4, 5), np.matmul),
    "mul": (X, Y.T, np.matmul),
    "matmul": (X, Y.T, np.matmul),
    "matmul_v2": (X, Y.T, np.matmul),
    "cross": (normal(4, 3), normal(4, 3), np.cross),
}


def check(found, expected):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kind", ENTRYWISE)
def test_entrywise(kind):
    value, truth = ENTRYWISE[kind]
    check(run(kind, {"X": value})[0], truth(value))


@pytest.mark.parametrize("kind", BINARY)
def test_binary(kind):
    one, other, truth = BINARY[kind]
    check(run(kind, {"X": one, "Y": other})[0], truth(one, other))


REDUCTIONS = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_amax": np.max,
    "reduce_amin": np.min,
    "reduce_prod": np.prod,
    "reduce_all": np.all,
    "reduce_any": np.any,
    "frobenius_norm": lambda x, **axes: np.sqrt(np.sum(x * x, **axes)),
}


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions(kind):
    truth = REDUCTIONS[kind]
    value = X > 0 if kind in ("reduce_all", "reduce_any") else X
    check(run(kind, {"X": value}, dim=[-1], keep_dim=True)[0], truth(value, axis=-1, keepdims=True))
    check(run(kind, {"X": value}, reduce_all=True)[0], truth(value))
    check(run(kind, {"X": value}, reduce_all=True, version=OLD)[0], np.reshape(truth(value), 1))


CASES = []


def case(kind, inputs, expected, **settings):
    """Adds a case: the expected value of ``Out``, or those of slots by name."""
    slots = expected if isinstance(expected, dict) else {"Out": expected}
    CASES.append(pytest.param(kind, inputs, slots, settings, id=f"{kind}-{len(CASES)}"))


RAGGED = so.LoDTensor(normal(6, 4), [[0, 2, 3, 6]])
ROWS = np.asarray(RAGGED.data)
PARTS = [ROWS[0:2], ROWS[2:3], ROWS[3:6]]
ONE = np.array([0.1], np.float32)
L = ids(4, 3, 1)
IMAGE = normal(2, 3, 6, 6)


def picked(x, label):
    return np.take_along_axis(x, label, axis=-1)


def pooled(reduce):
    return np.stack([reduce(one) for one in PARTS])


def norm_of(x, axes, eps=1e-5):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps)


def along(x, ndim=4):
    return x.reshape(1, -1, *(1,) * (ndim - 2))


def windows(x, k, stride, pad, fill):
    """Windows of images, along a new last axis."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=fill)
    count = (x.shape[2] - k) // stride + 1
    return np.stack(
        [
            x[
                :,
                :,
                i : i + stride * (count - 1) + 1 : stride,
                j : j + stride * (count - 1) + 1 : stride,
            ]
            for i in range(k)
            for j in range(k)
        ],
        -1,
    )


# Losses and measures
S = scipy.special.softmax(X, -1)
case("mean", {"X": X}, X.mean())
case("mean", {"X": X}, [X.mean()], version=OLD)
case("cross_entropy", {"X": S, "Label": L}, {"Y": -np.log(picked(S, L))})
case(
    "cross_entropy",
    {"X": S, "Label": S},
    {"Y": -(S * np.log(S)).sum(-1, keepdims=True)},
    soft_label=True,
)
case("cross_entropy2", {"X": S, "Label": L}, {"Y": -np.log(picked(S, L)), "MatchX": picked(S, L)})
case(
    "softmax_with_cross_entropy",
    {"Logits": X, "Label": L},
    {"Loss": -np.log(picked(S, L)), "Softmax": S},
)
case("sigmoid_cross_entropy_with_logits", {"X": X, "Label": S}, softplus(X) - X * S)
case("bce_loss", {"X": S, "Label": U > 0}, -np.where(U > 0, np.log(S), np.log(1 - S)))
D = Y - X
case(
    "huber_loss",
    {"X": X, "Y": Y},
    {"Out": np.where(abs(D) <= 0.5, D * D / 2, 0.5 * (abs(D) - 0.25)), "Residual": D},
    delta=0.5,
)
case(
    "smooth_l1_loss",
    {"X": X, "Y": Y},
    np.where(abs(D) < 1, D * D / 2, abs(D) - 0.5).sum(1, keepdims=True),
)
case(
    "log_loss",
    {"Predicted": S, "Labels": P},
    {"Loss": -P * np.log(S + 1e-4) - (1 - P) * np.log(1 - S + 1e-4)},
    epsilon=1e-4,
)
case("kldiv_loss", {"X": X, "Target": S}, {"Loss": (S * (np.log(S) - X)).mean()})
case(
    "kldiv_loss",
    {"X": X, "Target": S},
    {"Loss": [(S * (np.log(S) - X)).sum() / 3]},
    reduction="batchmean",
    version=OLD,
)
case("nll_loss", {"X": X, "Label": L[:, 0]}, {"Out": -picked(X, L).mean(), "Total_weight": 3.0})
case(
    "margin_rank_loss",
    {"X1": X, "X2": Y, "Label": np.sign(P)},
    np.maximum(-(X - Y) + 0.1, 0),
    margin=0.1,
)
case("rank_loss", {"Label": S, "Left": X, "Right": Y}, softplus(X - Y) - S * (X - Y))
case(
    "hinge_loss",
    {"Logits": X, "Labels": np.float32(U > 0)},
    {"Loss": np.maximum(1 - X * np.where(U > 0, 1, -1), 0)},
)
Z = X * np.where(U > 0, 1, -1)
case(
    "modified_huber_loss",
    {"X": X, "Y": np.float32(U > 0)},
    {"Out": np.where(Z < -1, -4 * Z, np.maximum(1 - Z, 0) ** 2)},
)
case(
    "bpr_loss",
    {"X": X, "Label": L},
    {"Y": (softplus(X - picked(X, L)).sum(1, keepdims=True) - np.log(2)) / 3},
)
case(
    "squared_l2_distance",
    {"X": X, "Y": Y},
    {"Out": (D * D).sum(1, keepdims=True), "sub_result": -D},
)
case("squared_l2_norm", {"X": X}, [(X * X).sum()])
case("l1_norm", {"X": X}, abs(X).sum())
case(
    "teacher_student_sigmoid_loss",
    {"X": X, "Label": np.full((3, 4), -2.0, np.float32)},
    {"Y": softplus(X)},
)
case("label_smooth", {"X": S}, 0.9 * S + 0.1 / 4, epsilon=0.1)
case(
    "cos_sim",
    {"X": X, "Y": Y},
    (X * Y).sum(1, keepdims=True)
    / np.linalg.norm(X, axis=1, keepdims=True)
    / np.linalg.norm(Y, axis=1, keepdims=True),
)
TOP = np.argsort(-X, axis=1)[:, :2]
case(
    "accuracy",
    {"Out": picked(X, TOP), "Indices": TOP.astype(np.int32), "Label": L},
    {"Accuracy": (TOP == L).any(1).mean(), "Correct": (TOP == L).any(1).sum(), "Total": 3},
)
case("top_k", {"X": X}, {"Out": picked(X, TOP), "Indices": TOP}, k=2)
case(
    "top_k_v2",
    {"X": X},
    {"Out": np.sort(X, axis=0)[:1], "Indices": X.argmin(0)[None]},
    k=1,
    axis=0,
    largest=False,
)
case("arg_max", {"X": X}, X.argmax(-1))
case("arg_min", {"X": X}, X.argmin(0)[None], axis=0, keepdims=True)
case("argsort", {"X": X}, {"Out": np.sort(X, -1), "Indices": np.argsort(X, -1)})
case(
    "mean_iou",
    {"Predictions": np.array([0, 1, 1], np.int32), "Labels": np.array([0, 1, 0], np.int32)},
    {"OutMeanIou": [0.5]},
    num_classes=2,
)

# Norms, sums
case("norm", {"X": X}, X / np.sqrt((X * X).sum(1, keepdims=True) + 1e-10), axis=1)
case("p_norm", {"X": X}, np.linalg.norm(X, 3, axis=1), porder=3.0)
case("logsumexp", {"X": X}, scipy.special.logsumexp(X, axis=1), axis=[1])
case("cumsum", {"X": X}, X.cumsum(1))
case("cumsum", {"X": X}, X[:, ::-1].cumsum(1)[:, ::-1] - X, exclusive=True, reverse=True)
case("cumprod", {"X": X}, X.cumprod(1), dim=1)
case("logcumsumexp", {"X": X}, np.logaddexp.accumulate(X, axis=1))
case("clip", {"X": X}, np.clip(X, -0.5, 0.5), min=-0.5, max=0.5)
case("clip_by_norm", {"X": X}, X / np.linalg.norm(X), max_norm=1.0)
case("dist", {"X": X, "Y": Y}, np.linalg.norm(X - Y))
case("dot", {"X": X, "Y": Y}, (X * Y).sum(1))
case("dot", {"X": X, "Y": Y}, (X * Y).sum(1, keepdims=True), version=OLD)
case("addmm", {"Input": X @ Y.T, "X": X, "Y": Y.T}, 5 * X @ Y.T, Alpha=2.0, Beta=3.0)
case("mv", {"X": X, "Vec": Y[0]}, X @ Y[0])
case("trace", {"Input": X}, np.trace(X))
SPD = X @ X.T + np.eye(3, dtype=np.float32)
case("inverse", {"Input": SPD}, {"Output": np.linalg.inv(SPD)})
case("cholesky", {"X": SPD}, np.linalg.cholesky(SPD).T, upper=True)
W3 = normal(5, 4, 4)
case(
    "bilinear_tensor_product", {"X": X, "Y": Y, "Weight": W3}, np.einsum("bi,kij,bj->bk", X, W3, Y)
)
case("atan2", {"X1": X, "X2": Y}, np.arctan2(X, Y))
case("lerp", {"X": X, "Y": Y, "Weight": ONE}, X + 0.1 * (Y - X))
case("equal_all", {"X": X, "Y": X}, True)
case("allclose", {"Input": X, "Other": X + 1}, False)
case("sum", {"X": [X, Y, P]}, X + Y + P)
case("cast", {"X": X}, X.astype(np.int32), in_dtype=5, out_dtype=2)
case("prelu", {"X": X, "Alpha": ONE}, np.where(X > 0, X, 0.1 * X))
case(
    "prelu",
    {"X": IMAGE, "Alpha": np.float32([1, 2, 3])},
    np.where(IMAGE > 0, IMAGE, IMAGE * along(np.float32([1, 2, 3]))),
    mode="channel",
)
case("maxout", {"X": X.reshape(1, 12, 1, 1)}, X.reshape(1, 6, 2, 1, 1).max(2), groups=2)

# Shapes
case("reshape2", {"X": X}, X.reshape(2, 6), shape=[2, -1])
case("reshape", {"X": X}, X.reshape(3, 2, 2), shape=[0, 2, -1])
case("transpose2", {"X": X}, X.T, axis=[1, 0])
case("transpose", {"X": X}, X.T, axis=[1, 0])
case("flatten2", {"X": IMAGE}, IMAGE.reshape(6, 36), axis=2)
case("flatten", {"X": IMAGE}, IMAGE.reshape(2, -1))
case("flatten_contiguous_range", {"X": IMAGE}, IMAGE.reshape(2, 18, 6), start_axis=1, stop_axis=2)
case("squeeze2", {"X": X[:, None]}, X, axes=[1])
case("squeeze", {"X": X[None, :, None]}, X)
case("unsqueeze", {"X": X}, X[None], axes=[0])
case("unsqueeze2", {"X": X}, X[None, :, None], axes=[0, 2])
case("concat", {"X": [X, Y]}, np.concatenate([X, Y], 1), axis=1)
case("split", {"X": X}, X[:, :2], num=2, axis=1)
case("split", {"X": X}, X[:, :1], sections=[1, -1], axis=1)
case("slice", {"Input": X}, X[0, 1:3], axes=[0, 1], starts=[0, 1], ends=[1, -1], decrease_axis=[0])
case("expand", {"X": X}, np.tile(X, (2, 1)), expand_times=[2, 1])
case("shape", {"Input": X}, [3, 4])
case("size", {"Input": X}, 12)
case("tile", {"X": X}, np.tile(X, (2, 1, 3)), repeat_times=[2, 1, 3])
case("expand_v2", {"X": X[:1]}, np.tile(X[:1], (2, 5, 1)), shape=[2, 5, -1])
case("expand_as_v2", {"X": X[:1], "Y": Y}, np.tile(X[:1], (3, 1)))
case("expand_as", {"X": X[:1], "target_tensor": Y}, np.tile(X[:1], (3, 1)))
case("stack", {"X": [X, Y]}, {"Y": np.stack([X, Y], 1)}, axis=1)
case("unstack", {"X": X}, {"Y": X[:, 0]}, axis=1)
case("unbind", {"X": X}, X[0], axis=0)
case("flip", {"X": X}, X[:, ::-1], axis=[1])
case("reverse", {"X": X}, X[::-1], axis=[0])
case("roll", {"X": X}, np.roll(X, 1, 1), shifts=[1], axis=[1])
case("strided_slice", {"Input": X}, X[:, 3:0:-2], axes=[1], starts=[3], ends=[0], strides=[-2])
case("crop", {"X": X}, X[1:3, :2], offsets=[1, 0], shape=[2, 2])
case("crop_tensor", {"X": X}, X[1:, 1:3], offsets=[1, 1], shape=[-1, 2])
case(
    "pad",
    {"X": X},
    np.pad(X, ((1, 0), (0, 2)), constant_values=5),
    paddings=[1, 0, 0, 2],
    pad_value=5.0,
)
case(
    "pad2d",
    {"X": IMAGE},
    np.pad(IMAGE, ((0, 0), (0, 0), (1, 2), (3, 0)), "reflect"),
    paddings=[1, 2, 3, 0],
    mode="reflect",
)
case(
    "pad3d",
    {"X": IMAGE[:, :, None]},
    np.pad(IMAGE[:, :, None], ((0, 0), (0, 0), (1, 0), (0, 2), (3, 0)), "edge"),
    paddings=[3, 0, 0, 2, 1, 0],
    mode="replicate",
)
case(
    "pad_constant_like",
    {"X": IMAGE, "Y": IMAGE[:, :, :4]},
    np.pad(IMAGE[:, :, :4], ((0, 0), (0, 0), (0, 2), (0, 0))),
)
case(
    "shard_index",
    {"X": np.array([[1], [12]], np.int32)},
    [[1], [-1]],
    index_num=20,
    nshards=2,
    shard_id=0,
)
case("tril_triu", {"X": X}, np.tril(X, -1), diagonal=-1, lower=True)
case("diag", {"Diagonal": X[0]}, np.diag(X[0]))
case(
    "diag_v2", {"X": X[0]}, np.diag(X[0], 1) + 2 * (1 - np.eye(5, k=1)), offset=1, padding_value=2.0
)
case("meshgrid", {"X": [X[0], Y[:, 0]]}, np.meshgrid(X[0], Y[:, 0], indexing="ij")[0])

# Indices
case("gather", {"X": X, "Index": np.array([2, 0], np.int32)}, X[[2, 0]])
case("gather_nd", {"X": X, "Index": np.array([[2, 1], [0, 3]], np.int32)}, X[[2, 0], [1, 3]])
case("index_select", {"X": X, "Index": np.array([2, 0], np.int32)}, X[:, [2, 0]], dim=1)
case("index_sample", {"X": X, "Index": L}, picked(X, L))
case("take_along_axis", {"Input": X, "Index": L}, {"Result": picked(X, L)}, Axis=1)
case(
    "scatter",
    {"X": X, "Ids": np.array([2, 0], np.int32), "Updates": Y[:2]},
    np.stack([Y[1], X[1], Y[0]]),
)
case(
    "scatter",
    {"X": X, "Ids": np.array([1, 1], np.int32), "Updates": Y[:2]},
    np.stack([X[0], Y[0] + Y[1], X[2]]),
    overwrite=False,
)
case(
    "scatter_nd_add",
    {"X": X, "Index": np.array([[1], [1]], np.int32), "Updates": Y[:2]},
    np.stack([X[0], X[1] + Y[0] + Y[1], X[2]]),
)
case("where", {"Condition": X > 0, "X": X, "Y": Y}, np.where(X > 0, X, Y))
case(
    "multiplex",
    {"X": [X, Y], "Ids": np.array([[1], [0], [1]], np.int32)},
    np.stack([Y[0], X[1], Y[2]]),
)
case("one_hot", {"X": L}, np.eye(4)[L[:, 0]], depth=4)
case("one_hot_v2", {"X": L}, np.eye(4)[L], depth=4)
case("lookup_table", {"W": X, "Ids": L % 3}, X[L[:, 0] % 3])
case("lookup_table_v2", {"W": X, "Ids": L % 3}, X[L % 3] * (L % 3 != 1)[..., None], padding_idx=1)

# Creation
case("fill_constant", {}, np.full((2, 3), 1.5), shape=[2, 3], value=1.5)
case(
    "fill_constant",
    {"ShapeTensor": np.array([2, 2], np.int32)},
    np.full((2, 2), 7),
    str_value="7",
    dtype=3,
    known=("ShapeTensor",),
)
case("fill_constant_batch_size_like", {"Input": X}, np.full((3, 2), 0.5), shape=[-1, 2], value=0.5)
case("fill_any_like", {"X": X}, np.full((3, 4), 2), value=2.0)
case("assign_value", {}, [[1, 2]], shape=[1, 2], dtype=2, int32_values=[1, 2])
case(
    "range",
    {"Start": np.int32([1]), "End": np.int32([9]), "Step": np.int32([3])},
    [1, 4, 7],
    known=("Start", "End", "Step"),
)
case(
    "linspace",
    {"Start": ONE, "Stop": 10 * ONE, "Num": np.int32([4])},
    np.linspace(0.1, 1, 4),
    known=("Num",),
)
case("eye", {}, np.eye(2, 3), num_rows=2, num_columns=3)

# Images
F = normal(4, 3, 3, 3)


def convolved(x, w, stride, pad):
    columns = windows(x, w.shape[2], stride, pad, 0)
    return np.einsum("nchwk,ock->nohw", columns, w.reshape(*w.shape[:2], -1))


case("conv2d", {"Input": IMAGE, "Filter": F}, {"Output": convolved(IMAGE, F, 1, 0)})
case(
    "conv2d",
    {"Input": IMAGE, "Filter": F},
    {"Output": convolved(IMAGE, F, 2, 1)},
    strides=[2, 2],
    paddings=[1, 1],
)
case(
    "conv2d",
    {"Input": IMAGE, "Filter": F},
    {"Output": convolved(IMAGE, F, 1, 1)},
    padding_algorithm="SAME",
    dilations=[2, 2],
)
DW = normal(3, 1, 3, 3)
case(
    "depthwise_conv2d",
    {"Input": IMAGE, "Filter": DW},
    {"Output": np.einsum("nchwk,ck->nchw", windows(IMAGE, 3, 1, 1, 0), DW.reshape(3, 9))},
    paddings=[1, 1],
    groups=3,
)
case(
    "conv3d",
    {"Input": IMAGE[:, :, None], "Filter": F[:, :, None]},
    {"Output": convolved(IMAGE, F, 1, 0)[:, :, None]},
    strides=[1, 1, 1],
    paddings=[0, 0, 0],
    dilations=[1, 1, 1],
    data_format="NCDHW",
)
T1 = normal(3, 2, 1, 1)
UP = np.zeros((2, 2, 11, 11), np.float32)
UP[:, :, ::2, ::2] = np.einsum("nchw,co->nohw", IMAGE, T1[..., 0, 0])
case("conv2d_transpose", {"Input": IMAGE, "Filter": T1}, {"Output": UP}, strides=[2, 2])
case(
    "conv2d_transpose",
    {"Input": IMAGE, "Filter": T1},
    {"Output": np.pad(UP, ((0, 0), (0, 0), (0, 1), (0, 1)))},
    strides=[2, 2],
    output_size=[12, 12],
)
case(
    "depthwise_conv2d_transpose",
    {"Input": IMAGE, "Filter": normal(3, 1, 1, 1) * 0 + 2},
    {"Output": 2 * IMAGE},
    groups=3,
)
case(
    "conv3d_transpose",
    {"Input": IMAGE[:, :, None], "Filter": T1[:, :, None]},
    {"Output": UP[:, :, None]},
    strides=[1, 2, 2],
    paddings=[0, 0, 0],
    dilations=[1, 1, 1],
    data_format="NCDHW",
)
case(
    "pool2d",
    {"X": IMAGE},
    windows(IMAGE, 3, 2, 1, -np.inf).max(-1),
    ksize=[3, 3],
    strides=[2, 2],
    paddings=[1, 1],
)
INSIDE = windows(np.ones_like(IMAGE), 3, 2, 1, 0).sum(-1)
case(
    "pool2d",
    {"X": IMAGE},
    windows(IMAGE, 3, 2, 1, 0).sum(-1) / INSIDE,
    ksize=[3, 3],
    strides=[2, 2],
    paddings=[1, 1],
    pooling_type="avg",
)
case(
    "pool2d",
    {"X": IMAGE},
    windows(IMAGE, 3, 2, 1, 0).mean(-1),
    ksize=[3, 3],
    strides=[2, 2],
    paddings=[1, 1],
    pooling_type="avg",
    exclusive=False,
)
case(
    "pool2d",
    {"X": IMAGE[..., :5, :5]},
    windows(
        np.pad(IMAGE[..., :5, :5], ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=-np.inf),
        2,
        2,
        0,
        0,
    ).max(-1),
    ksize=[2, 2],
    strides=[2, 2],
    ceil_mode=True,
)
CUT = np.pad(IMAGE[..., :5, :5], ((0, 0), (0, 0), (0, 1), (0, 1)))
LAST = windows(np.pad(np.ones((2, 3, 5, 5)), ((0, 0), (0, 0), (0, 1), (0, 1))), 2, 2, 0, 0).sum(-1)
case(
    "pool2d",
    {"X": IMAGE[..., :5, :5]},
    windows(CUT, 2, 2, 0, 0).sum(-1) / LAST,
    ksize=[2, 2],
    strides=[2, 2],
    ceil_mode=True,
    pooling_type="avg",
)
case(
    "pool2d",
    {"X": IMAGE[..., :5, :5]},
    windows(CUT, 2, 2, 0, 0).mean(-1),
    ksize=[2, 2],
    strides=[2, 2],
    ceil_mode=True,
    pooling_type="avg",
    exclusive=False,
    version=OLD,
)
case(
    "pool2d",
    {"X": IMAGE},
    IMAGE.mean((2, 3), keepdims=True),
    ksize=[1, 1],
    pooling_type="avg",
    adaptive=True,
)
case(
    "pool2d",
    {"X": IMAGE},
    windows(IMAGE, 3, 3, 0, 0).max(-1),
    ksize=[2, 2],
    adaptive=True,
)
case("pool2d", {"X": IMAGE}, IMAGE.max((2, 3), keepdims=True), ksize=[2, 2], global_pooling=True)
case(
    "pool2d",
    {"X": IMAGE},
    windows(IMAGE, 3, 3, 0, 0).mean(-1),
    ksize=[2, 2],
    pooling_type="avg",
    adaptive=True,
)
case(
    "pool3d",
    {"X": IMAGE[:, :, None]},
    windows(IMAGE, 2, 2, 0, 0).max(-1)[:, :, None],
    ksize=[1, 2, 2],
    strides=[1, 2, 2],
    paddings=[0, 0, 0],
    data_format="NCDHW",
)
PLACES = windows(np.broadcast_to(np.arange(36.0).reshape(6, 6), IMAGE.shape), 2, 2, 0, 0)
BEST = windows(IMAGE, 2, 2, 0, 0).argmax(-1)[..., None]
case(
    "max_pool2d_with_index",
    {"X": IMAGE},
    {
        "Out": windows(IMAGE, 2, 2, 0, 0).max(-1),
        "Mask": np.take_along_axis(PLACES, BEST, -1)[..., 0],
    },
    ksize=[2, 2],
    strides=[2, 2],
)
case(
    "max_pool3d_with_index",
    {"X": IMAGE[:, :, None]},
    windows(IMAGE, 2, 2, 0, 0).max(-1)[:, :, None],
    ksize=[1, 2, 2],
    strides=[1, 2, 2],
    paddings=[0, 0, 0],
)
ADAPTED = [
    [IMAGE[:, :, r : r + 3, c : c + 2].reshape(*IMAGE.shape[:2], -1) for c in (0, 2, 4)]
    for r in (0, 3)
]
INDICES = np.arange(36.0).reshape(6, 6)
ADAPTED_PLACES = [
    [
        INDICES[r : r + 3, c : c + 2].ravel()[ADAPTED[i][j].argmax(-1)]
        for j, c in enumerate((0, 2, 4))
    ]
    for i, r in enumerate((0, 3))
]
case(
    "max_pool2d_with_index",
    {"X": IMAGE},
    {
        "Out": np.moveaxis(np.array([[w.max(-1) for w in row] for row in ADAPTED]), (2, 3), (0, 1)),
        "Mask": np.moveaxis(np.array(ADAPTED_PLACES), (2, 3), (0, 1)),
    },
    ksize=[2, 3],
    adaptive=True,
)
G, B = np.float32([1, 2, 3]), np.float32([0.5, 0, -1])
CENTER = {"X": IMAGE, "Scale": G, "Bias": B, "Mean": B, "Variance": G}
BATCH = IMAGE.mean((0, 2, 3)), IMAGE.var((0, 2, 3))
NORMED = norm_of(IMAGE, (0, 2, 3)) * along(G) + along(B)
TRAINED = {
    "Y": NORMED,
    "MeanOut": 0.9 * B + 0.1 * BATCH[0],
    "VarianceOut": 0.9 * G + 0.1 * BATCH[1],
    "SavedMean": BATCH[0],
    "SavedVariance": 1 / np.sqrt(BATCH[1] + 1e-5),
}
case("batch_norm", CENTER, TRAINED)
case("sync_batch_norm", CENTER, TRAINED)
FIXED = (IMAGE - along(B)) / np.sqrt(along(G) + 1e-5) * along(G) + along(B)
case("batch_norm", CENTER, {"Y": FIXED, "MeanOut": B}, is_test=True)
case("batch_norm", CENTER, {"Y": FIXED, "VarianceOut": G}, use_global_stats=True)
case(
    "layer_norm",
    {"X": IMAGE},
    {
        "Y": norm_of(IMAGE, (1, 2, 3)),
        "Mean": IMAGE.mean((1, 2, 3)),
        "Variance": IMAGE.var((1, 2, 3)),
    },
)
case("layer_norm", {"X": X, "Scale": Y[0], "Bias": Y[1]}, {"Y": norm_of(X, 1) * Y[0] + Y[1]})
GROUPED = norm_of(IMAGE[:, :2].reshape(2, 2, 1, 6, 6), (2, 3, 4)).reshape(2, 2, 6, 6)
case("group_norm", {"X": IMAGE[:, :2]}, {"Y": GROUPED}, groups=2)
case(
    "instance_norm",
    {"X": IMAGE, "Scale": G, "Bias": B},
    {"Y": norm_of(IMAGE, (2, 3)) * along(G) + along(B)},
)
case(
    "data_norm",
    {"X": X, "BatchSize": P[0], "BatchSum": X[0], "BatchSquareSum": P[1]},
    {"Y": (X - X[0] / P[0]) * np.sqrt(P[0] / P[1])},
)
SQUARES = np.pad(IMAGE**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
case(
    "lrn",
    {"X": IMAGE},
    IMAGE * (2 + 1e-4 * (SQUARES[:, :-2] + SQUARES[:, 1:-1] + SQUARES[:, 2:])) ** -0.75,
    n=3,
)
case(
    "spectral_norm",
    {"Weight": X, "U": normal(3), "V": normal(4)},
    X / np.linalg.svd(X)[1][0],
    power_iters=200,
)
case("affine_channel", {"X": IMAGE, "Scale": G, "Bias": B}, IMAGE * along(G) + along(B))
case("nearest_interp", {"X": IMAGE}, IMAGE[:, :, ::2, ::2], out_h=3, out_w=3, align_corners=False)
case(
    "nearest_interp_v2",
    {"X": IMAGE},
    IMAGE.repeat(2, 2).repeat(2, 3),
    scale=[2.0],
    align_corners=False,
)
AT = np.linspace(0, 5, 11)


def lines(x, places, axis):
    low = np.minimum(places.astype(int), x.shape[axis] - 2)
    share = (places - low).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return np.take(x, low, axis) * (1 - share) + np.take(x, low + 1, axis) * share


BOTH = lines(lines(IMAGE, AT, 2), AT, 3)
case("bilinear_interp", {"X": IMAGE}, BOTH, out_h=11, out_w=11)
case("bilinear_interp_v2", {"X": IMAGE}, BOTH, out_h=11, out_w=11)
HALF = np.clip((np.arange(3) + 0.5) * 2 - 0.5, 0, 5)
case(
    "bilinear_interp_v2",
    {"X": IMAGE},
    lines(lines(IMAGE, HALF, 2), HALF, 3),
    out_h=3,
    out_w=3,
    align_corners=False,
    align_mode=0,
)
for _kind in ("linear_interp", "linear_interp_v2"):
    case(_kind, {"X": IMAGE[:, :, 0]}, lines(IMAGE[:, :, 0], AT, 2), out_w=11, data_layout="NCW")
for _kind in ("trilinear_interp", "trilinear_interp_v2"):
    case(
        _kind,
        {"X": IMAGE[:, None]},
        lines(lines(IMAGE[:, None], AT, 3), AT, 4),
        out_d=3,
        out_h=11,
        out_w=11,
        data_layout="NCDHW",
    )
case(
    "pixel_shuffle",
    {"X": np.arange(4.0, dtype=np.float32).reshape(1, 4, 1, 1)},
    [[[[0, 1], [2, 3]]]],
    upscale_factor=2,
)
case(
    "shuffle_channel",
    {"X": np.arange(4.0, dtype=np.float32).reshape(1, 4, 1, 1)},
    np.float32([0, 2, 1, 3]).reshape(1, 4, 1, 1),
    group=2,
)
SHIFTED = np.zeros((2, 4, 1, 1), np.float32)
FRAMES = normal(2, 4, 1, 1)
SHIFTED[1, 0], SHIFTED[0, 1], SHIFTED[:, 2:] = FRAMES[0, 0], FRAMES[1, 1], FRAMES[:, 2:]
case("temporal_shift", {"X": FRAMES}, SHIFTED, seg_num=2)
case(
    "unfold",
    {"X": IMAGE},
    {"Y": windows(IMAGE, 2, 2, 0, 0).transpose(0, 1, 4, 2, 3).reshape(2, 12, 9)},
    kernel_sizes=[2, 2],
    strides=[2, 2],
    paddings=[0, 0, 0, 0],
    dilations=[1, 1],
)
GRID = (
    np.stack(np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-1, 1, 6)), -1)[None]
    .repeat(2, 0)
    .astype(np.float32)
)
case(
    "affine_grid",
    {"Theta": np.eye(2, 3, dtype=np.float32)[None].repeat(2, 0)},
    {"Output": GRID},
    output_shape=[2, 3, 6, 6],
)
case("grid_sampler", {"X": IMAGE, "Grid": GRID}, {"Output": IMAGE})
case(
    "grid_sampler",
    {"X": IMAGE, "Grid": GRID + 2},
    {"Output": IMAGE[..., -1:, -1:].repeat(6, 2).repeat(6, 3)},
    padding_mode="border",
)
case("fsp", {"X": IMAGE, "Y": IMAGE}, np.einsum("nahw,nbhw->nab", IMAGE, IMAGE) / 36)
ANGLES = np.arange(3)[:, None] / 10000.0 ** np.arange(2)
case(
    "add_position_encoding",
    {"X": X[None]},
    X[None] + np.concatenate([np.sin(ANGLES), np.cos(ANGLES)], 1),
)

# Ragged sequences
for _name, _reduce in (
    ("SUM", lambda x: x.sum(0)),
    ("AVERAGE", lambda x: x.mean(0)),
    ("SQRT", lambda x: x.sum(0) / np.sqrt(len(x))),
    ("MAX", lambda x: x.max(0)),
    ("FIRST", lambda x: x[0]),
    ("LAST", lambda x: x[-1]),
):
    case("sequence_pool", {"X": RAGGED}, pooled(_reduce), pooltype=_name)
COLUMN = so.LoDTensor(ROWS[:, :1], RAGGED.lod)
case(
    "sequence_softmax",
    {"X": COLUMN},
    np.concatenate([scipy.special.softmax(one[:, :1], 0) for one in PARTS]),
)
case("sequence_reverse", {"X": RAGGED}, {"Y": np.concatenate([one[::-1] for one in PARTS])})
case(
    "sequence_concat",
    {"X": [RAGGED, RAGGED]},
    np.concatenate([np.concatenate([one, one]) for one in PARTS]),
)
case(
    "sequence_slice",
    {"X": RAGGED, "Offset": np.int32([[1], [0], [0]]), "Length": np.int32([[1], [1], [2]])},
    ROWS[[1, 2, 3, 4]],
    known=("Length",),
)
CONTEXT = np.concatenate(
    [np.concatenate([np.pad(one, ((1, 0), (0, 0)))[:-1], one], 1) for one in PARTS]
)
W2 = normal(8, 3)
case("sequence_conv", {"X": RAGGED, "Filter": W2}, CONTEXT @ W2, contextLength=2, contextStart=-1)
PAD = normal(1, 4)
FILLED = np.concatenate(
    [np.concatenate([np.concatenate([PAD, one])[:-1], one], 1) for one in PARTS]
)
case(
    "sequence_conv",
    {"X": RAGGED, "Filter": W2, "PaddingData": PAD},
    FILLED @ W2,
    contextLength=2,
    contextStart=-1,
    paddingTrainable=True,
)
case("sequence_expand", {"X": X, "Y": RAGGED}, X[[0, 0, 1, 2, 2, 2]])
case("sequence_expand_as", {"X": X, "Y": RAGGED}, X[[0, 0, 1, 2, 2, 2]])
PADDED = np.full((3, 4, 4), 9, np.float32)
for _i, _part in enumerate(PARTS):
    PADDED[_i, : len(_part)] = _part
case(
    "sequence_pad",
    {"X": RAGGED, "PadValue": np.float32([9])},
    {"Out": PADDED, "Length": [2, 1, 3]},
    padded_length=4,
)
case("sequence_unpad", {"X": PADDED, "Length": np.int32([2, 1, 3])}, ROWS, known=("Length",))
case("lod_reset", {"X": X}, X, target_lod=[0, 1, 3])
case("sequence_reshape", {"X": RAGGED}, ROWS.reshape(12, 2), new_dim=2)
TOKENS = so.LoDTensor(np.int32([1, 2, 3]), [[0, 2, 3]])
case("sequence_enumerate", {"X": TOKENS}, [[1, 2], [2, 0], [3, 0]], win_size=2)
ADDED = X.copy()
ADDED[0, 1] += 1
ADDED[0, 2] += 2
ADDED[1, 3] += 3
case(
    "sequence_scatter",
    {"X": X, "Ids": TOKENS, "Updates": so.LoDTensor(np.float32([1, 2, 3]), TOKENS.lod)},
    ADDED,
)
case("sequence_mask", {"X": np.int32([1, 3])}, {"Y": [[1, 0, 0], [1, 1, 1]]}, maxlen=3)
AHEAD = np.concatenate([one * Y[0] + np.pad(one, ((0, 1), (0, 0)))[1:] * Y[1] for one in PARTS])
case("row_conv", {"X": RAGGED, "Filter": Y[:2]}, AHEAD)
case(
    "im2sequence",
    {"X": IMAGE},
    windows(IMAGE, 2, 2, 0, 0).transpose(0, 2, 3, 1, 4).reshape(18, 12),
    kernels=[2, 2],
    strides=[2, 2],
)

# Updates
RATE, SLOPE = ONE, Y
case("sgd", {"Param": X, "Grad": SLOPE, "LearningRate": RATE}, {"ParamOut": X - 0.1 * Y})
V = 0.9 * P + Y
STATE = {"Param": X, "Grad": SLOPE, "LearningRate": RATE}
case("momentum", {**STATE, "Velocity": P}, {"ParamOut": X - 0.1 * V, "VelocityOut": V}, mu=0.9)
case(
    "momentum",
    {**STATE, "Velocity": P},
    {"ParamOut": X - 0.1 * (Y + 0.9 * V)},
    mu=0.9,
    use_nesterov=True,
)
VD = 0.9 * P + Y + 0.5 * X
case(
    "momentum",
    {**STATE, "Velocity": P},
    {"ParamOut": X - 0.1 * VD},
    mu=0.9,
    regularization_method="l2_decay",
    regularization_coeff=0.5,
)
LOCAL = 0.1 * 0.001 * np.linalg.norm(X) / (np.linalg.norm(Y) + 0.0005 * np.linalg.norm(X))
VL = 0.9 * P + LOCAL * (Y + 0.0005 * X)
case("lars_momentum", {**STATE, "Velocity": P}, {"ParamOut": X - VL, "VelocityOut": VL}, mu=0.9)
M1, M2 = 0.9 * X + 0.1 * Y, 0.999 * P + 0.001 * Y * Y
POWERS = {"Beta1Pow": np.float32([0.81]), "Beta2Pow": np.float32([0.9])}
MOMENTS = {**STATE, "Moment1": X, "Moment2": P, **POWERS}
ROOT = np.sqrt(0.1)
STEP = 0.1 * ROOT / 0.19 * M1
case(
    "adam",
    MOMENTS,
    {
        "ParamOut": X - STEP / (np.sqrt(M2) + 0.5 * ROOT),
        "Moment1Out": M1,
        "Moment2Out": M2,
        "Beta1PowOut": [0.729],
        "Beta2PowOut": [0.8991],
    },
    epsilon=0.5,
)
case("adam", MOMENTS, {"ParamOut": X - STEP / (np.sqrt(M2) + 0.5)}, epsilon=0.5, version=OLD)
case(
    "adamw",
    MOMENTS,
    {"ParamOut": X * (1 - 0.1 * 0.2) - STEP / np.sqrt(M2)},
    coeff=0.2,
    with_decay=True,
)
INF = np.maximum(abs(Y), 0.999 * P + 1e-8)
case(
    "adamax",
    {**STATE, "Moment": X, "InfNorm": P, "Beta1Pow": np.float32([0.81])},
    {"ParamOut": X - 0.1 / 0.19 * M1 / INF, "InfNormOut": INF},
)
case(
    "adagrad",
    {**STATE, "Moment": P},
    {"ParamOut": X - 0.1 * Y / (np.sqrt(P + Y * Y) + 1e-6), "MomentOut": P + Y * Y},
)
MD = 0.95 * P + 0.05 * Y * Y
case(
    "decayed_adagrad",
    {**STATE, "Moment": P},
    {"ParamOut": X - 0.1 * Y / (np.sqrt(MD) + 1e-6), "MomentOut": MD},
)
DU = np.sqrt((P + 1e-6) / (MD + 1e-6)) * Y
case(
    "adadelta",
    {"Param": X, "Grad": Y, "AvgSquaredGrad": P, "AvgSquaredUpdate": P},
    {"ParamOut": X - DU, "AvgSquaredUpdateOut": 0.95 * P + 0.05 * DU * DU},
)
MS, MG = 0.9 * P + 0.1 * Y * Y, 0.9 * U * 0.1 + 0.1 * Y
MOVE = 0.5 * X + 0.1 * Y / np.sqrt(MS - MG**2 + 1e-10)
case(
    "rmsprop",
    {**STATE, "MeanSquare": P, "Moment": X, "MeanGrad": 0.1 * U},
    {"MomentOut": MOVE, "ParamOut": X - MOVE},
    momentum=0.5,
    centered=True,
)
NS = P + Y * Y
LIN = X + Y - (np.sqrt(NS) - np.sqrt(P)) / 0.1 * X
case(
    "ftrl",
    {**STATE, "SquaredAccumulator": P, "LinearAccumulator": X},
    {
        "ParamOut": np.where(
            abs(LIN) > 0.5, (np.sign(LIN) * 0.5 - LIN) / (np.sqrt(NS) / 0.1 + 0.4), 0
        ),
        "LinearAccumOut": LIN,
    },
    l1=0.5,
    l2=0.2,
)
TRUST = M1 / 0.19 / (np.sqrt(M2 / 0.1) + 1e-6) + 0.01 * X
case(
    "lamb",
    MOMENTS,
    {"ParamOut": X - 0.1 * np.linalg.norm(X) / np.linalg.norm(TRUST) * TRUST},
    weight_decay=0.01,
)
GD = X - 0.1 * Y
case(
    "proximal_gd",
    STATE,
    {"ParamOut": np.sign(GD) * np.maximum(abs(GD) - 0.05, 0) / 1.02},
    l1=0.5,
    l2=0.2,
)
GA = X - 0.1 * Y / np.sqrt(NS)
case("proximal_adagrad", {**STATE, "Moment": P}, {"ParamOut": GA / 1.02, "MomentOut": NS}, l2=0.2)

# Recurrent layers
GATES, OLD_CELL = normal(3, 8), normal(3, 2)
GI, GF, GO, GG = np.split(GATES, 4, 1)
NEW_CELL = OLD_CELL * logistic(GF + 1) + logistic(GI) * np.tanh(GG)
case(
    "lstm_unit",
    {"X": GATES, "C_prev": OLD_CELL},
    {"C": NEW_CELL, "H": logistic(GO) * np.tanh(NEW_CELL)},
    forget_bias=1.0,
)


def lstm_rows(x, weight, bias, starts, reverse):
    out, width = np.zeros((len(x), weight.shape[0])), weight.shape[0]
    i_c, f_c, o_c = np.split(bias[4 * width :], 3)
    for start, stop in itertools.pairwise(starts):
        h, c = np.zeros(width), np.zeros(width)
        for t in reversed(range(start, stop)) if reverse else range(start, stop):
            g, i, f, o = np.split(x[t] + bias[: 4 * width] + h @ weight, 4)
            c = np.tanh(g) * logistic(i + i_c * c) + c * logistic(f + f_c * c)
            h = logistic(o + o_c * c) * np.tanh(c)
            out[t] = h
    return out


SUMS = so.LoDTensor(normal(6, 8), RAGGED.lod)
LW, LB = normal(2, 8), normal(1, 14)
for _back in (False, True):
    case(
        "lstm",
        {"Input": SUMS, "Weight": LW, "Bias": LB},
        {"Hidden": lstm_rows(SUMS.data, LW, LB[0], [0, 2, 3, 6], _back)},
        is_reverse=_back,
    )
case(
    "lstmp",
    {"Input": SUMS, "Weight": LW, "ProjWeight": np.eye(2, dtype=np.float32), "Bias": LB},
    {"Projection": lstm_rows(SUMS.data, LW, LB[0], [0, 2, 3, 6], False)},
    proj_activation="identity",
)


def gru_step(x, h, weight):
    width = h.shape[-1]
    gates = weight.ravel()[: 2 * width * width].reshape(width, 2 * width)
    last = weight.ravel()[2 * width * width :].reshape(width, width)
    u, r = np.split(logistic(x[..., : 2 * width] + h @ gates), 2, -1)
    return (1 - u) * h + u * np.tanh(x[..., 2 * width :] + (r * h) @ last)


def gru_rows(x, weight, starts):
    out = np.zeros((len(x), weight.shape[0]))
    for start, stop in itertools.pairwise(starts):
        h = np.zeros(weight.shape[0])
        for t in range(start, stop):
            h = out[t] = gru_step(x[t], h, weight)
    return out


GX, GW = so.LoDTensor(normal(6, 6), RAGGED.lod), normal(2, 6)
case("gru", {"Input": GX, "Weight": GW}, {"Hidden": gru_rows(GX.data, GW, [0, 2, 3, 6])})
case(
    "gru_unit",
    {"Input": GX.data[:3], "HiddenPrev": OLD_CELL, "Weight": GW},
    {"Hidden": gru_step(GX.data[:3], OLD_CELL, GW)},
)


def rnn_steps(x, w, r, b, c):
    h, out = np.zeros((x.shape[1], r.shape[1])), []
    for one in x:
        h = np.tanh(one @ w.T + b + h @ r.T + c)
        out.append(h)
    return np.stack(out)


RX, RW, RR, RB, RC = normal(4, 2, 3), normal(2, 3), normal(2, 2), normal(2), normal(2)
TWICE = rnn_steps(rnn_steps(RX, RW, RR, RB, RC), RR, RR, RB, RC)
case(
    "rnn",
    {
        "Input": RX,
        "PreState": [np.zeros((2, 2, 2), np.float32)],
        "WeightList": [RW, RR, RR, RR, RB, RC, RB, RC],
    },
    {"Out": TWICE},
    hidden_size=2,
    num_layers=2,
)

# Trees
HX, HW, HL = normal(6, 3), normal(5, 3), np.arange(6, dtype=np.int32)[:, None]


def path_losses(x, w, classes):
    out = []
    for row, leaf in zip(x, range(classes), strict=True):
        code, total = leaf + classes, 0.0
        length = code.bit_length() - 1
        for bit in range(length):
            value = row @ w[(code >> (bit + 1)) - 1]
            total += softplus(value) - (code >> bit & 1) * value
        out.append([total + (3 - length) * np.log(2)])
    return out


for _kind in ("hierarchical_sigmoid", "hsigmoid_loss"):
    case(_kind, {"X": HX, "W": HW, "Label": HL}, path_losses(HX, HW, 6), num_classes=6)


# Tensors of Paddle 2, fused layers and quantization that the records leave out ------------------

M3, M4 = normal(3, 4), normal(4, 3)
SYMMETRIC = M4.T @ M4 + np.eye(3, dtype=np.float32)
COMPLEX = (normal(2, 3) + 1j * normal(2, 3)).astype("complex64")

_lower = np.tril(SYMMETRIC)
case(
    "cholesky_solve",
    {"X": M4[:3], "Y": _lower},
    np.linalg.solve(_lower @ _lower.T, M4[:3]),
)
case("seed", {}, np.array([5]), seed=5)
_scaling = {"incr_every_n_steps": 2, "decr_every_n_nan_or_inf": 1, "incr_ratio": 2.0}
for _found, _scale in ((False, 16.0), (True, 4.0)):
    case(
        "update_loss_scaling",
        {
            "X": [M3],
            "FoundInfinite": np.array([_found]),
            "PrevLossScaling": np.array([8.0], np.float32),
            "InGoodSteps": np.array([1], np.int32),
            "InBadSteps": np.array([0], np.int32),
        },
        {
            "Out": M3 * (not _found),
            "LossScaling": [_scale],
            "OutGoodSteps": [0],
            "OutBadSteps": [0],
        },
        decr_ratio=0.5,
        **_scaling,
    )
for _kind in ("share_data", "memcpy", "memcpy_h2d", "memcpy_d2h", "fetch_v2"):
    case(_kind, {"X": M3}, M3)
case("stright_throuth_estimator_grad", {"Out@GRAD": M3}, {"X@GRAD": M3})
case(
    "coalesce_tensor",
    {"Input": [M3, M4]},
    {"Output": M3, "FusedOutput": np.r_[M3.ravel(), M4.ravel()]},
)
case("empty", {}, np.zeros((2, 3)), shape=[2, 3])
case("fill", {}, np.array([[1.0, 2.0]]), value=[1.0, 2.0], shape=[1, 2])
case(
    "logspace",
    {"Start": ONE * 0, "Stop": ONE * 20, "Num": np.array([3]), "Base": ONE * 20},
    np.array([1.0, 2.0, 4.0]),
    dtype=5,
    known=("Num",),
)
_replaced = M3.copy()
_replaced[::-1][:2, 1] = 7.0
case(
    "set_value", {"Input": M3}, _replaced, axes=[0, 1], starts=[2, 1], ends=[0, 2], steps=[-1, 1],
    decrease_axes=[1], values=[7.0], shape=[1],
)  # fmt: skip
_replaced = M3.copy()
_replaced[1:3] = M4.T[1:3, :1]
case(
    "set_value",
    {"Input": M3, "ValueTensor": M4.T[1:3, :1]},
    _replaced,
    axes=[0],
    starts=[1],
    ends=[3],
    steps=[1],
)
case("svd", {"X": M3}, {"S": np.linalg.svd(M3)[1]})
case("eigh", {"X": np.tril(SYMMETRIC)}, {"Eigenvalues": np.linalg.eigvalsh(SYMMETRIC)})
case("eigh", {"X": np.triu(SYMMETRIC)}, {"Eigenvalues": np.linalg.eigvalsh(SYMMETRIC)}, UPLO="U")
for _kind in ("real", "imag", "conj", "angle"):
    case(_kind, {"X": COMPLEX}, getattr(np, _kind)(COMPLEX))
for _kind in ("i0e", "i1", "i1e"):
    case(_kind, {"x": M3}, {"out": getattr(scipy.special, _kind)(M3)})
case("identity_loss", {"X": M3}, M3.sum(), reduction=0)
case("identity_loss", {"X": M3}, M3.mean(), reduction=1)
case("identity_loss", {"X": M3}, M3, reduction=2)


def normed(x, scale, bias, eps=1e-5):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * scale + bias


_x, _y, _scale, _bias = normal(2, 3, 4), normal(2, 3, 4), normal(4), normal(4)
case(
    "skip_layernorm", {"X": _x, "Y": _y, "Scale": _scale, "Bias": _bias},
    normed(_x + _y, _scale, _bias), epsilon=1e-5, begin_norm_axis=2,
)  # fmt: skip
_ids, _tables = [ids(5, 2, 3, 1), ids(6, 2, 3, 1)], [normal(5, 4), normal(6, 4)]
case(
    "fused_embedding_eltwise_layernorm",
    {"Ids": _ids, "Embs": _tables, "Scale": _scale, "Bias": _bias},
    normed(sum(t[i[..., 0]] for t, i in zip(_tables, _ids, strict=True)), _scale, _bias),
)
_w = normal(4, 4)
case(
    "fused_fc_elementwise_layernorm",
    {"X": _x[0], "W": _w, "Y": _y[0], "Bias0": _bias, "Scale": _scale, "Bias1": _bias},
    normed(_x[0] @ _w + _bias + _y[0], _scale, _bias),
)
_qkv, _bqkv, _mask = normal(4, 3, 2, 2), normal(3, 2, 2), normal(2, 1, 3, 3)


def attention(x, weights, bias, mask, alpha):
    q, k, v = np.einsum("bsw,wpnh->pbnsh", x, weights) + bias[:, None, :, None]
    scores = scipy.special.softmax(alpha * q @ np.swapaxes(k, -1, -2) + mask, axis=-1)
    return np.swapaxes(scores @ v, 1, 2).reshape(2, 3, 4)


case(
    "multihead_matmul", {"Input": _x, "W": _qkv, "Bias": _bqkv, "BiasQK": _mask},
    attention(_x, _qkv, _bqkv, _mask, 0.5), alpha=0.5, head_number=2,
)  # fmt: skip
_filter, _residual = normal(4, 3, 3, 3), normal(2, 4, 4, 4)
_sums = convolved(IMAGE, _filter, 1, 0) + _residual
for _kind in ("conv2d_fusion", "fused_conv2d_add_act"):
    case(
        _kind,
        {"Input": IMAGE, "Filter": _filter, "ResidualData": _residual},
        {"Output": np.maximum(_sums, 0)},
    )
case(
    "fused_elemwise_add_activation",
    {"X": M3, "Y": M3},
    np.maximum(2 * M3, 0),
    functor_list=["relu", "elementwise_add"],
)
_table, _tokens = normal(7, 4), ids(7, 6, 1)
case(
    "fused_embedding_seq_pool",
    {"W": _table, "Ids": so.LoDTensor(_tokens, RAGGED.lod)},
    [_table[part[:, 0]].sum(0) for part in np.split(_tokens, [2, 3])],
)
case(
    "moving_average_abs_max_scale",
    {"X": M3, "InAccum": ONE, "InState": ONE},
    {"Out": M3, "OutScale": (0.09 + np.abs(M3).max(keepdims=True)[0]) / 1.09},
)


def adam_step(param, grad, power):
    m, v = 0.1 * grad, 0.001 * grad**2
    rate = 0.1 * np.sqrt(1 - power) / (1 - power)
    return param - rate * m / (np.sqrt(v) + 1e-8 * np.sqrt(1 - power))


_zero = np.zeros_like(M3)
case(
    "merged_adam",
    {"Param": [M3], "Grad": [M3 + 1], "LearningRate": [ONE], "Moment1": [_zero],
     "Moment2": [_zero], "Beta1Pow": [ONE * 9], "Beta2Pow": [ONE * 9]},
    {"ParamOut": adam_step(M3, M3 + 1, 0.9)},
)  # fmt: skip
case(
    "merged_momentum",
    {"Param": [M3], "Grad": [M3], "Velocity": [M3 + 1], "LearningRate": [ONE]},
    {"ParamOut": M3 - 0.1 * (0.9 * (M3 + 1) + M3), "VelocityOut": 0.9 * (M3 + 1) + M3},
    mu=0.9,
)
case(
    "data_norm_grad",
    {"X": M3, "Means": M3[0], "Scales": M3[1], "Y@GRAD": M3},
    {
        "X@GRAD": M3 * M3[1],
        "BatchSize@GRAD": np.full(4, 3.0),
        "BatchSum@GRAD": M3.sum(0),
        "BatchSquareSum@GRAD": ((M3 - M3[0]) ** 2).sum(0) + 3e-4,
    },
)
case(
    "split_lod_tensor",
    {"X": M3, "Mask": np.array([[1], [0], [1]], bool)},
    {"OutTrue": M3[[0, 2]], "OutFalse": M3[[1]]},
    known=("Mask",),
)
for _kind in ("merge_lod_tensor", "merge_lod_tensor_infer"):
    case(
        _kind,
        {
            "X": M3,
            "Mask": np.array([[1], [0], [1]], bool),
            "InTrue": M3[[0, 2]],
            "InFalse": M3[[1]],
        },
        M3,
        known=("Mask",),
    )


HALVES = np.float32([[0.5, 1.5, 2.5, -0.5], [-1.5, 126.5, 127.0, -126.5]])
AWAY = np.float32([[1, 2, 3, -1], [-2, 127, 127, -127]])
EVEN = np.float32([[0, 2, 2, 0], [-2, 126, 127, -126]])
case("fake_quantize_abs_max", {"X": HALVES}, AWAY)
case("fake_quantize_abs_max", {"X": HALVES}, EVEN, round_type=0)
case("fake_quantize_dequantize_abs_max", {"X": HALVES}, EVEN, round_type=0)
OUTSIDE = {"X": np.float32([300, -300, 2.5, -0.5]), "InScale": np.float32([127])}
for name in ("fake_quantize_range_abs_max", "fake_quantize_moving_average_abs_max"):
    case(name, OUTSIDE, np.float32([127, -127, 3, -1]), is_test=True)
    case(name, OUTSIDE, np.float32([127, -128, 2, 0]), is_test=True, round_type=0)


def spectral_slope(weight, u, v, head):
    """The gradient of the weight over its norm, where the singular vectors are constants."""
    v = weight.T @ u / np.linalg.norm(weight.T @ u)
    u = weight @ v / np.linalg.norm(weight @ v)
    size = u @ weight @ v
    return (head - np.outer(u, v) * np.sum(head * weight) / size) / size


STARTS = {"Weight": X, "U": normal(3), "V": normal(4)}
case(
    "spectral_norm_grad",
    {**STARTS, "Out@GRAD": Y},
    {"Weight@GRAD": spectral_slope(*STARTS.values(), Y)},
)


@pytest.mark.parametrize(("kind", "inputs", "expected", "settings"), CASES)
def test_operators(kind, inputs, expected, settings):
    found = run(kind, inputs, tuple(expected), **settings)
    for one, truth in zip(found, expected.values(), strict=True):
        check(one, truth)


# Random tensors and dropout ----------------------------------------------------------------------


RANDOM = {
    "uniform_random": ({}, {"shape": [4000], "min": 1.0, "max": 3.0}, 2.0, 1 / 3),
    "gaussian_random": ({}, {"shape": [4000], "mean": 1.0, "std": 2.0}, 1.0, 4.0),
    "truncated_gaussian_random": ({}, {"shape": [4000]}, 0.0, 0.774),
    "uniform_random_batch_size_like": ({"Input": normal(4000, 1)}, {"shape": [-1, 1]}, 0.0, 1 / 3),
    "gaussian_random_batch_size_like": ({"Input": normal(4000, 1)}, {"shape": [-1, 1]}, 0.0, 1.0),
    "randint": ({}, {"shape": [4000], "low": 0, "high": 3}, 1.0, 2 / 3),
    "bernoulli": ({"X": np.full(4000, 0.25, np.float32)}, {}, 0.25, 0.1875),
    "sampling_id": ({"X": np.full((4000, 2), 0.5, np.float32)}, {}, 0.5, 0.25),
}


@pytest.mark.parametrize("kind", RANDOM)
def test_random_tensors(kind):
    inputs, attrs, mean, variance = RANDOM[kind]
    found = run(kind, inputs, **attrs)
    assert found[0].shape[0] == 4000
    assert abs(found[0].mean() - mean) < 0.15
    assert abs(found[0].var() - variance) < 0.15 * max(variance, 1)


def test_permutations():
    assert sorted(run("randperm", {}, n=9)[0]) == list(range(9))


def test_noisy_update():
    found = run("dpsgd", {"Param": X, "Grad": Y, "LearningRate": ONE}, ("ParamOut",), sigma=0.0)
    check(found[0], X - 0.1 * Y)


@pytest.mark.parametrize("kind", ["dropout", "dropout_nd"])
def test_dropout(kind):
    ones = np.ones((100, 40), np.float32)
    found = run(kind, {"X": ones}, ("Out", "Mask"), dropout_prob=0.25)
    np.testing.assert_array_equal(found[0], found[1])
    assert found[1].dtype == np.uint8
    assert abs(found[1].mean() - 0.75) < 0.05
    up = {"dropout_implementation": "upscale_in_train", "dropout_prob": 0.25}
    found = run(kind, {"X": ones}, ("Out", "Mask"), **up)
    np.testing.assert_allclose(found[0], found[1] / 0.75, rtol=1e-6)
    check(run(kind, {"X": X}, is_test=True, **up)[0], X)
    check(run(kind, {"X": X}, is_test=True, dropout_prob=0.25)[0], 0.75 * X)
    mask = np.uint8(X > 0)
    slope = run(f"{kind}_grad", {"Mask": mask, "Out@GRAD": Y}, ("X@GRAD",), **up)
    check(slope[0], Y * mask / 0.75)


# Values that shapes depend on ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("where_index", {"Condition": X > 0}),
        ("masked_select", {"X": X, "Mask": X > 0}),
        ("unique", {"X": L}),
        ("sequence_erase", {"X": TOKENS}),
        ("range", {"Start": ONE, "End": ONE, "Step": ONE}),
        ("sequence_pad", {"X": RAGGED, "PadValue": ONE}),
    ],
)
def test_unknown_shapes_are_errors(kind, inputs):
    with pytest.raises(PaddleError, match=rf"{kind}.*compiled"):
        run(kind, inputs)


def test_rows_are_merged():
    rows = so.sym.add_rows(
        so.var("v", (2, 4), "float32"), so.nd.array([1, 1]).value, 3, sparse=True
    )
    for kind in ("merge_selected_rows", "get_tensor_from_selected_rows"):
        environment = {"x": rows}
        op = OpDesc(kind, {"X": ["x"]}, {"Out": ["out"]}, {}, {})
        Translation(ProgramDesc([BlockDesc(0, -1, {}, [op])], NEW)).run(0, environment)
        dense = so.get_tensor_from_selected_rows(environment["out"])
        check(evaluated([dense], {"v": X[:2]})[0], np.stack([0 * X[0], X[0] + X[1], 0 * X[0]]))


PAGE = pathlib.Path(__file__).parents[1] / "docs" / "paddle.md"
MARK = "<!-- The rest is written by `make golden`. -->"


@pytest.mark.golden
def test_the_page_lists_every_operator(golden):
    """The table is that of the definitions."""
    rows = "\n".join(str(find(one)) for one in names())
    golden(PAGE, f"{PAGE.read_text().partition(MARK)[0]}{MARK}\n\n```text\n{rows}\n```\n")


def test_gradients_of_no_output_are_errors():
    with pytest.raises(PaddleError, match=r"meshgrid_grad: .* among Out@GRAD, got 'Z@GRAD'"):
        run("meshgrid_grad", {"X": [X[0], Y[0]], "Z@GRAD": normal(4, 4)}, ("X@GRAD",))


def test_attributes_without_a_default_must_be_given():
    with pytest.raises(PaddleError, match="transpose2: the attribute axis must be given"):
        find("transpose2").values_of({})


def test_every_operator_has_a_case():
    others = {one.values[0] for one in CASES} | set(ENTRYWISE) | set(BINARY) | set(REDUCTIONS)
    others |= set(RANDOM) | {"randperm", "dpsgd", "dropout", "dropout_nd", "dropout_grad"}
    others |= {"dropout_nd_grad", "where_index", "masked_select", "unique", "sequence_erase"}
    others |= {"merge_selected_rows", "get_tensor_from_selected_rows"}
    others |= {name.rpartition("-")[0] for name in records()}
    others |= {"nce_grad", "delete_var", "multinomial"}
    # Those have tests of whole programs.
    modules = ("control_flow", "ranks", "beams")
    flow = {one for one in names() if find(one).function.__module__.endswith(modules)}
    assert sorted(set(names()) - others - flow) == []
