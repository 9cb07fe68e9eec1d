"""Entrywise functions of one variable."""

from collections.abc import Callable

from symop.interop.paddle.programs import Variable
from symop.interop.paddle.static.helper import Layer, named, unary


def _named(kind: str) -> Callable[..., Variable]:
    def layer(x: Variable, name: str | None = None) -> Variable:
        return unary(kind, x, name)

    return named(layer, kind, f"Returns ``{kind}`` of every entry.")


abs = _named("abs")
acos = _named("acos")
asin = _named("asin")
atan = _named("atan")
ceil = _named("ceil")
cos = _named("cos")
cosh = _named("cosh")
erf = _named("erf")
exp = _named("exp")
floor = _named("floor")
log = _named("log")
log1p = _named("log1p")
logsigmoid = _named("logsigmoid")
reciprocal = _named("reciprocal")
relu = _named("relu")
round = _named("round")
rsqrt = _named("rsqrt")
sigmoid = _named("sigmoid")
sign = _named("sign")
sin = _named("sin")
sinh = _named("sinh")
softplus = _named("softplus")
softsign = _named("softsign")
sqrt = _named("sqrt")
square = _named("square")
tan = _named("tan")
tanh = _named("tanh")
tanh_shrink = _named("tanh_shrink")


def pow(x: Variable, factor: float | Variable = 1.0, name: str | None = None) -> Variable:
    """Returns powers with an exponent, which may be a variable with one entry."""
    if isinstance(factor, Variable):
        return Layer("pow", name).call("pow", {"X": x, "FactorTensor": factor})
    return unary("pow", x, name, factor=factor)


def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """Returns the exponential linear unit."""
    return unary("elu", x, name, alpha=alpha)


def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """Returns the rectifier with slope ``alpha`` for negative entries."""
    return unary("leaky_relu", x, name, alpha=alpha)


def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """Returns the rectifier, clipped at ``threshold``."""
    return unary("relu6", x, name, threshold=threshold)


def hard_sigmoid(
    x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None
) -> Variable:
    """Returns the sigmoid function in three linear pieces."""
    return unary("hard_sigmoid", x, name, slope=slope, offset=offset)


def hard_swish(
    x: Variable,
    threshold: float = 6.0,
    scale: float = 6.0,
    offset: float = 3.0,
    name: str | None = None,
) -> Variable:
    """Returns the swish function in linear pieces."""
    return unary("hard_swish", x, name, threshold=threshold, scale=scale, offset=offset)


def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """Returns ``x * sigmoid(beta * x)``."""
    return unary("swish", x, name, beta=beta)


def gelu(x: Variable, approximate: bool = False) -> Variable:
    """Returns the Gaussian error linear unit."""
    return unary("gelu", x, approximate=approximate)


def brelu(
    x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None
) -> Variable:
    """Returns the entries, clipped to an interval."""
    return unary("brelu", x, name, t_min=t_min, t_max=t_max)


def stanh(
    x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None
) -> Variable:
    """Returns ``scale_b * tanh(scale_a * x)``."""
    return unary("stanh", x, name, scale_a=scale_a, scale_b=scale_b)


def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """Returns the entries, clipped to an interval."""
    return unary("clip", x, name, min=min, max=max)


def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """Returns the entries, scaled so that their norm is at most ``max_norm``."""
    return unary("clip_by_norm", x, name, max_norm=max_norm)


def softmax(
    input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1
) -> Variable:
    """Returns probabilities along an axis; ``use_cudnn`` has no effect."""
    del use_cudnn
    return unary("softmax", input, name, axis=axis)


def log_softmax(input: Variable, axis: int | None = None, name: str | None = None) -> Variable:
    """Returns logarithms of probabilities along an axis, by default the last one."""
    return unary("log_softmax", input, name, axis=-1 if axis is None else axis)


def scale(
    x: Variable,
    scale: float | Variable = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Returns ``scale * x + bias``, or ``scale * (x + bias)``."""
    layer = Layer("scale", name)
    attrs = {"bias": bias, "bias_after_scale": bias_after_scale}
    if isinstance(scale, Variable):
        return layer.activated(
            layer.call("scale", {"X": x, "ScaleTensor": scale}, attrs=attrs), act
        )
    return layer.activated(layer.call("scale", {"X": x}, attrs={**attrs, "scale": scale}), act)


def dropout(
    x: Variable,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Variable:
    """Drops entries at random in training.

    Args:
        x: the values.
        dropout_prob: the probability of an entry to be dropped.
        is_test: whether nothing is dropped.
        seed: makes what is dropped the same in every run.
        name: the name of the layer.
        dropout_implementation: ``upscale_in_train`` divides what is kept by its probability in
            training, ``downgrade_in_infer`` multiplies everything by it in inference.
    """
    attrs = {
        "dropout_prob": dropout_prob,
        "is_test": is_test,
        "fix_seed": seed is not None,
        "seed": seed or 0,
        "dropout_implementation": dropout_implementation,
    }
    return Layer("dropout", name).call("dropout", {"X": x}, "Out Mask", attrs)
