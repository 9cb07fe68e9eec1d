"""Samples of functions of one array, entry by entry."""

import numpy as np
from scipy import special

from mxnet_samples.sample import Sample

draw = np.random.default_rng(0)
ANY = draw.normal(size=(3, 4)) * 2
INSIDE = draw.uniform(-0.9, 0.9, size=(3, 4))
POSITIVE = draw.uniform(0.3, 3.0, size=(3, 4))
OFF_POLES = np.array([[-2.6, -1.5, -0.4], [0.3, 1.7, 3.2]])
HALVES = np.array([-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 0.49999999, 3.2, -3.7])
WHOLE = np.array([-3, -1, 0, 4], np.int32)
COUNTS = np.array([1, 2, 5, 7, 3], np.int32)
PI = float(np.float32(np.pi))


def rounded(data):
    """The nearest whole number, of two that which is farther from zero."""
    whole = np.trunc(data)
    return whole + np.where(np.abs(data - whole) >= 0.5, np.sign(data), 0).astype(whole.dtype)


def rounded_down(data):
    """The nearest whole number, the lower one of two."""
    low, high = np.floor(data), np.ceil(data)
    return np.where(data - low <= high - data, low, high)


def is_zero(data):
    """One where an entry is zero."""
    return (data == 0).astype(data.dtype)


def nothing(data):
    """A gradient of zero."""
    return {"data": np.zeros(data.shape)}


def all_of_it(data):
    """A gradient of one."""
    return {"data": np.ones(data.shape)}


def same(data):
    """The array itself."""
    return data


# Functions without attributes: what of, by what formula.
SMOOTH = {
    "square": (ANY, np.square),
    "negative": (ANY, np.negative),
    "abs": (ANY, np.abs),
    "relu": (ANY, lambda x: np.maximum(x, 0)),
    "identity": (ANY, same),
    "_copyto": (ANY, same),
    "sqrt": (POSITIVE, np.sqrt),
    "rsqrt": (POSITIVE, lambda x: x**-0.5),
    "cbrt": (ANY, np.cbrt),
    "rcbrt": (ANY, lambda x: 1 / np.cbrt(x)),
    "exp": (ANY, np.exp),
    "expm1": (ANY, np.expm1),
    "log": (POSITIVE, np.log),
    "log10": (POSITIVE, np.log10),
    "log2": (POSITIVE, np.log2),
    "log1p": (INSIDE, np.log1p),
    "gamma": (OFF_POLES, special.gamma),
    "gammaln": (OFF_POLES, special.gammaln),
    "digamma": (OFF_POLES, special.digamma),
    "sin": (ANY, np.sin),
    "cos": (ANY, np.cos),
    "tan": (INSIDE, np.tan),
    "arcsin": (INSIDE, np.arcsin),
    "arccos": (INSIDE, np.arccos),
    "arctan": (ANY, np.arctan),
    "degrees": (ANY, lambda x: x * float(np.float32(180 / PI))),
    "radians": (ANY, lambda x: x * float(np.float32(PI / 180))),
    "sinh": (ANY, np.sinh),
    "cosh": (ANY, np.cosh),
    "tanh": (ANY, np.tanh),
    "arcsinh": (ANY, np.arcsinh),
    "arccosh": (POSITIVE + 1.1, np.arccosh),
    "arctanh": (INSIDE, np.arctanh),
    "sigmoid": (ANY, special.expit),
    "log_sigmoid": (ANY, lambda x: -np.logaddexp(0, -x)),
    "mish": (ANY, lambda x: x * np.tanh(np.logaddexp(0, x))),
    "softsign": (ANY, lambda x: x / (1 + np.abs(x))),
    "erf": (ANY, special.erf),
    "erfinv": (INSIDE, special.erfinv),
    "reciprocal": (POSITIVE, lambda x: 1 / x),
    "_contrib_div_sqrt_dim": (ANY, lambda x: x / np.sqrt(x.shape[-1])),
}
# Here the values do not say what the gradient is.
STEPS = {
    "sign": (np.sign, nothing),
    "round": (rounded, nothing),
    "rint": (rounded_down, nothing),
    "ceil": (np.ceil, nothing),
    "floor": (np.floor, nothing),
    "trunc": (np.trunc, nothing),
    "fix": (np.trunc, nothing),
    "logical_not": (is_zero, nothing),
    "zeros_like": (np.zeros_like, nothing),
    "ones_like": (np.ones_like, nothing),
    "BlockGrad": (same, nothing),
    "make_loss": (same, all_of_it),
    "_contrib_round_ste": (rounded, all_of_it),
    "_contrib_sign_ste": (np.sign, all_of_it),
}
# At zero some have no derivative.
AT_ZERO = {
    "abs": (np.abs, [-1.0, 0.0, 1.0]),
    "relu": (lambda x: np.maximum(x, 0), [0.0, 0.0, 1.0]),
    "softsign": (lambda x: x / (1 + np.abs(x)), [1 / 9, 1.0, 1 / 9]),
}
# Of integers the result is one, too.
EXACT = {
    "abs": np.abs,
    "sign": np.sign,
    "round": same,
    "rint": same,
    "fix": same,
    "square": np.square,
    "negative": np.negative,
    "relu": lambda x: np.maximum(x, 0),
    "logical_not": is_zero,
}
CUT = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log2": np.log2,
    "reciprocal": lambda x: 1 / x,
    "sigmoid": special.expit,
    "degrees": np.degrees,
    "_contrib_div_sqrt_dim": lambda x: x / np.sqrt(5),
}
NO_SLOPE = "integers have no gradient"


def cut(function):
    """``function`` rounded toward zero."""
    return lambda data: np.trunc(function(data)).astype(data.dtype)


SAMPLES = [
    *[Sample(op, {"data": at}, {}, function) for op, (at, function) in SMOOTH.items()],
    *[
        Sample(op, {"data": HALVES}, {}, function, "declared", slopes)
        for op, (function, slopes) in STEPS.items()
    ],
    *[
        Sample(
            op,
            {"data": np.array([-2.0, 0.0, 2.0])},
            {},
            function,
            "declared",
            lambda data, slopes=slopes: {"data": np.array(slopes)},
        )
        for op, (function, slopes) in AT_ZERO.items()
    ],
    *[
        Sample(op, {"data": WHOLE}, {}, function, "zero", why=NO_SLOPE)
        for op, function in EXACT.items()
    ],
    *[
        Sample(op, {"data": COUNTS}, {}, cut(function), "zero", why=NO_SLOPE)
        for op, function in CUT.items()
    ],
]

# Functions with attributes ---------------------------------------------------------------------


def f(number):
    """A number that is stored in float32."""
    return float(np.float32(number))


def clipped(low, high):
    """The array between two bounds."""
    return lambda data: np.clip(data, low, high).astype(data.dtype)


def hard_sigmoid(alpha, beta):
    """A line between zero and one."""
    return lambda data: np.clip(f(alpha) * data + f(beta), 0, 1)


def smooth_l1(scale):
    """The absolute value, with a parabola at zero."""

    def call(data):
        size = np.abs(data)
        return np.where(size > scale**-2, size - 0.5 / scale**2, 0.5 * (scale * data) ** 2)

    return call


def quadratic(a=0.0, b=0.0, c=0.0):
    """``a x^2 + b x + c``."""
    return lambda data: f(a) * data**2 + f(b) * data + f(c)


QUADRATICS = [{}, {"a": 0.3, "b": 1.2, "c": -2.5}, {"a": 2.0}]
BOUNDS = np.array([-3.0, -1.0, 0.5, 1.0, 2.0])
LINE = np.array([-4.0, -1.1, 0.2, 1.3, 4.0])

SAMPLES += [
    Sample("clip", {"data": ANY}, {"a_min": -0.7, "a_max": 0.7}, clipped(f(-0.7), f(0.7))),
    Sample(
        "clip",
        {"data": BOUNDS},
        {"a_min": -1.0, "a_max": 1.0},
        clipped(-1, 1),
        "declared",
        lambda data: {"data": np.array([0.0, 1, 1, 1, 0])},
    ),
    Sample(
        "clip", {"data": WHOLE}, {"a_min": -2, "a_max": 2}, clipped(-2, 2), "zero", why=NO_SLOPE
    ),
    Sample("hard_sigmoid", {"data": LINE}, {}, hard_sigmoid(0.2, 0.5)),
    Sample("hard_sigmoid", {"data": LINE}, {"alpha": 0.3, "beta": 0.1}, hard_sigmoid(0.3, 0.1)),
    Sample(
        "hard_sigmoid",
        {"data": np.array([-2.0, 0.0, 2.0])},
        {"alpha": 0.25, "beta": 0.5},
        hard_sigmoid(0.25, 0.5),
        "declared",
        lambda data: {"data": np.array([0.0, 0.25, 0.0])},
    ),
    *[
        Sample("smooth_l1", {"data": ANY}, {"scalar": scale}, smooth_l1(scale))
        for scale in (1.0, 2.0, 0.7)
    ],
    *[
        Sample("_contrib_quadratic", {"data": ANY}, how, quadratic(**how), rtol=1e-7)
        for how in QUADRATICS
    ],
    *[
        Sample(
            "_contrib_gradientmultiplier",
            {"data": ANY},
            {"scalar": scale},
            same,
            "declared",
            lambda data, scale=scale: {"data": np.full(data.shape, scale)},
        )
        for scale in (1.0, -0.5)
    ],
    Sample(
        "_identity_with_attr_like_rhs", {"lhs": (2, 3), "rhs": (2, 3)}, {}, lambda lhs, rhs: lhs
    ),
]

# Casts -----------------------------------------------------------------------------------------

FEW = np.array([1.5, 0.0, 3.25])


def cast(dtype):
    """The array in another dtype."""
    return lambda data: data.astype(dtype)


SAMPLES += [
    Sample("Cast", {"data": ANY}, {"dtype": "float64"}, same),
    *[
        Sample("Cast", {"data": FEW}, {"dtype": dtype}, cast(dtype), "zero", why=NO_SLOPE)
        for dtype in ("int32", "uint8", "int8", "int64", "bool")
    ],
    Sample("Cast", {"data": WHOLE}, {"dtype": "float32"}, cast("float32"), "zero", why=NO_SLOPE),
    Sample(
        "Cast",
        {"data": FEW},
        {"dtype": "float16"},
        cast("float16"),
        "declared",
        all_of_it,
    ),
    Sample("amp_cast", {"data": FEW}, {"dtype": "float16"}, same),
    Sample("amp_cast", {"data": WHOLE}, {"dtype": "float16"}, same, "zero", why=NO_SLOPE),
    *[
        Sample(
            "amp_multicast",
            {"arg0": (2, 3), "arg1": (4,)},
            {"num_outputs": 2, "cast_narrow": narrow},
            lambda *args: list(args),
        )
        for narrow in (False, True)
    ],
    Sample(
        "amp_multicast",
        {"arg0": FEW, "arg1": WHOLE},
        {"num_outputs": 2},
        lambda *args: list(args),
        by=["arg0"],
    ),
]
