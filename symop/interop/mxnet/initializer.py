"""``mx.init``: initializers of parameters by name."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.base_initializer import (
    InitDesc,
    Initializer,
    alias,
    create,
    filled,
    generator,
    register,
)
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.parameters import load_params
from symop.interop.mxnet.rnn_parameters import parts_of

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "alias",
    "create",
    "register",
]


@register
@alias("zeros")
class Zero(Initializer):
    """Fills arrays with zeros."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        filled(arr, 0.0)


@register
@alias("ones")
class One(Initializer):
    """Fills arrays with ones."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        filled(arr, 1.0)


@register
class Constant(Initializer):
    """Fills arrays with a number, or an array of the parameter's shape."""

    def __init__(self, value: Any) -> None:
        """``value`` is the number or array."""
        array = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
        super().__init__(value=array.tolist())
        self.value = value

    def _init_weight(self, name: str, arr: NDArray) -> None:
        filled(arr, self._kwargs["value"])


@register
class Uniform(Initializer):
    """Draws from the uniform distribution on ``[-scale, scale)``."""

    def __init__(self, scale: float = 0.07) -> None:
        """See the class."""
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: NDArray) -> None:
        filled(arr, generator().uniform(-self.scale, self.scale, arr.shape))


@register
class Normal(Initializer):
    """Draws from the normal distribution with mean zero and standard deviation ``sigma``."""

    def __init__(self, sigma: float = 0.01) -> None:
        """See the class."""
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: NDArray) -> None:
        filled(arr, generator().normal(0.0, self.sigma, arr.shape))


@register
class Orthogonal(Initializer):
    """``scale`` times a matrix whose rows, or columns, are orthonormal (Saxe et al., 2014)."""

    def __init__(
        self, scale: float = 1.414, rand_type: Literal["uniform", "normal"] = "uniform"
    ) -> None:
        """``rand_type`` is the distribution of the matrix that is orthogonalized."""
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale, self.rand_type = scale, rand_type

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = (arr.shape[0], int(np.prod(arr.shape[1:])))
        own = generator()
        uniform = self.rand_type == "uniform"
        drawn = own.uniform(-1, 1, shape) if uniform else own.normal(size=shape)
        left, _, right = np.linalg.svd(drawn, full_matrices=False)
        filled(arr, self.scale * (left if left.shape == shape else right).reshape(arr.shape))


@register
class Xavier(Initializer):
    """Draws numbers of variance ``magnitude / fan`` (Glorot and Bengio, 2010).

    The fan is that of inputs, of outputs, or their average. Uniform draws have a third of this
    variance.
    """

    def __init__(
        self,
        rnd_type: Literal["uniform", "gaussian"] = "uniform",
        factor_type: Literal["avg", "in", "out"] = "avg",
        magnitude: float = 3,
    ) -> None:
        """See the class.

        Raises:
                MXNetError: an argument is invalid.
        """
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        if rnd_type not in ("uniform", "gaussian") or factor_type not in ("avg", "in", "out"):
            raise MXNetError(
                "Xavier: rnd_type must be 'uniform' or 'gaussian' and factor_type 'avg', 'in' or "
                f"'out', got {rnd_type!r} and {factor_type!r}"
            )
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, float(magnitude)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        if len(arr.shape) < 2:
            raise MXNetError(f"Xavier: {name!r} must have at least 2 axes, got {arr.shape}")
        spatial = np.prod(arr.shape[2:])
        inputs, outputs = arr.shape[1] * spatial, arr.shape[0] * spatial
        fan = {"avg": (inputs + outputs) / 2, "in": inputs, "out": outputs}[self.factor_type]
        scale = np.sqrt(self.magnitude / fan)
        own = generator()
        uniform = self.rnd_type == "uniform"
        filled(arr, (own.uniform if uniform else own.normal)(-scale * uniform, scale, arr.shape))


@register
class MSRAPrelu(Xavier):
    """Draws normal numbers of variance ``2 / ((1 + slope^2) fan)`` (He et al., 2015)."""

    def __init__(
        self, factor_type: Literal["avg", "in", "out"] = "avg", slope: float = 0.25
    ) -> None:
        """``slope`` is the slope of the PReLU."""
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Initializer):
    """Fills weights such that a transposed convolution interpolates bilinearly."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        width, height = arr.shape[3], arr.shape[2]
        half = np.ceil(width / 2.0)
        center = (2 * half - 1 - half % 2) / (2.0 * half)
        rows, columns = np.arange(height)[:, None], np.arange(width)
        filled(arr, (1 - abs(rows / half - center)) * (1 - abs(columns / half - center)))


@register
class LSTMBias(Initializer):
    """Fills biases with zeros, except for the forget gate, the second quarter."""

    def __init__(self, forget_bias: float = 1.0) -> None:
        """See the class."""
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        quarter = arr.shape[0] // 4
        filled(arr, np.repeat([0.0, self.forget_bias, 0.0, 0.0], quarter))


@register
class FusedRNN(Initializer):
    """Fills the parameters of the operator ``RNN`` like those of unfused cells.

    Args:
        init: the initializer of weights; defaults to that of the whole model.
        num_hidden: the number of units of a layer.
        num_layers: the number of layers.
        mode: ``"lstm"``, ``"gru"``, ``"rnn_relu"`` or ``"rnn_tanh"``.
        bidirectional: whether layers are bidirectional.
        forget_bias: the bias of an LSTM's forget gate.
    """

    def __init__(
        self,
        init: "Initializer | str | None",
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        """See the class."""
        self._init = None if init is None else create(init)
        self._sizes = num_hidden, num_layers, mode, bidirectional
        self._forget_bias = forget_bias
        super().__init__(
            init=None if self._init is None else self._init.dumps(),
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )

    def _init_weight(self, name: str, arr: NDArray) -> None:
        flat = np.zeros(arr.shape, arr.dtype)
        for part in parts_of(arr.shape[0], *self._sizes):
            own = array_of(np.zeros(part.shape, arr.dtype))
            if self._sizes[2] == "lstm" and part.name.endswith("_f_bias"):
                filled(own, self._forget_bias)
            else:
                whole = getattr(name, "global_init", None)
                (self._init or whole or self)(InitDesc(part.name, global_init=whole), own)
            flat[part.place] = own.asnumpy().ravel()
        filled(arr, flat)


class Load:
    """Fills arrays from a file or a dict, and others by ``default_init``."""

    def __init__(
        self, param: Any, default_init: Callable[..., Any] | None = None, verbose: bool = False
    ) -> None:
        """``param`` contains arrays by name, with or without the prefixes ``arg:`` and ``aux:``."""
        loaded = param if isinstance(param, Mapping) else load_params(param)
        if not isinstance(loaded, Mapping):
            raise MXNetError("Load: the arrays must have names, got a list")
        self.param = {re.sub("^(arg|aux):", "", key): one for key, one in loaded.items()}
        self.default_init, self.verbose = default_init, verbose

    def __call__(self, name: str, arr: NDArray) -> None:
        """Fills ``arr``, called ``name``.

        Raises:
            MXNetError: there is neither an array nor a default, or the shape differs.
        """
        entry = self.param.get(str(name))
        if entry is not None and tuple(entry.shape) != arr.shape:
            raise MXNetError(f"Load: {name!r} must be of shape {arr.shape}, got {entry.shape}")
        if entry is None and self.default_init is None:
            raise MXNetError(f"Load: {name!r} must be among the arrays or default_init be given")
        if entry is not None:
            filled(arr, entry.asnumpy() if isinstance(entry, NDArray) else entry)
        elif self.default_init is not None:
            self.default_init(name, arr)
        if self.verbose:
            logging.info("Initialized %s by %s", name, "default" if entry is None else "loading")


class Mixed:
    """Fills each array by the first initializer whose pattern matches the start of its name."""

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Callable[..., Any]]) -> None:
        """``patterns`` are regular expressions, one for each of ``initializers``."""
        if len(patterns) != len(initializers):
            raise MXNetError(
                f"Mixed: there must be a pattern for each initializer, got {len(patterns)} and "
                f"{len(initializers)}"
            )
        self.map = list(zip(map(re.compile, patterns), initializers, strict=True))

    def __call__(self, name: str, arr: NDArray) -> None:
        """Fills ``arr``, called ``name``.

        Raises:
            MXNetError: no pattern matches.
        """
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise MXNetError(f"Mixed: a pattern must match {name!r}; add '.*' as the last one")
