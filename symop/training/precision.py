"""Precision policies: the dtypes of parameters, of products, and of losses."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, nearest
from registry.table import get
from registry.tracebacks import api_class
from registry.types import DType, is_floating
from symop.training.loss_scaling import LossScale

_FLOATS = ("bfloat16", "float16", "float32")
_EIGHT_BITS = "float8"
_ROUNDINGS = ("nearest", "stochastic")


@api_class
@dataclasses.dataclass(frozen=True)
class Precision:
    """The dtypes in which a network is trained.

    Products, and what lies between two of them, are computed in ``compute``. The loss, statistics
    of normalizations and sums are computed in float32, as is everything before the first product
    and after the last one. Values of other dtypes than float32 stay as they are.

    With ``"float8"``, products by a matrix, such as the weights of a layer, are computed in 8 bits,
    with one scale for each operand (``float8_matmul``); right operands with leading axes, as in
    attention, do not count. Other products, and values between products, are computed in
    bfloat16. The gradient keeps the operands in 8 bits. Devices without 8-bit products convert
    them.

    Attributes:
        compute: the dtype of products.
        parameters: the dtype in which a state keeps the parameters. An optimizer receives the
            parameters and their gradients in it, or in float32 if rounding is stochastic.
        rounding: how a new parameter is rounded to a dtype narrower than float32: ``"nearest"``, or
            ``"stochastic"``, which preserves the expectation of updates that are small relative
            to their parameter (``stochastic_round``).
        output: the dtype of the loss and the metrics.
        loss_scale: the loss scaling; by default one for float16, whose range gradients leave, and
            none for other dtypes.

    Raises:
        ArgumentError: a dtype is not one of bfloat16, float16 and float32, or float8 for
            ``compute``, or ``rounding`` is neither of the two.

    Example:
        >>> Precision("float16").loss_scale.initial
        32768.0
    """

    compute: str = "bfloat16"
    parameters: str = "float32"
    output: str = "float32"
    loss_scale: LossScale | None = None
    rounding: str = "nearest"

    def __post_init__(self) -> None:
        """Checks the dtypes."""
        for name in ("compute", "parameters", "output"):
            dtype = _name_of(getattr(self, name))
            _require_one_of(name, dtype, (_EIGHT_BITS, *_FLOATS) if name == "compute" else _FLOATS)
            object.__setattr__(self, name, dtype)
        _require_one_of("rounding", self.rounding, _ROUNDINGS)
        if self.loss_scale is None and self.compute == "float16":
            object.__setattr__(self, "loss_scale", LossScale())

    @property
    def narrow(self) -> DType | None:
        """The dtype of products, or of what lies between those in 8 bits; None for float32."""
        dtype = "bfloat16" if self.eight_bits else self.compute
        return None if dtype == "float32" else np.dtype(jnp.dtype(dtype))

    @property
    def eight_bits(self) -> bool:
        """Whether products by a matrix are computed in 8 bits."""
        return self.compute == _EIGHT_BITS

    def kept(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns parameters as a state keeps them."""
        return {name: self._cast(one, "float32", self.parameters) for name, one in params.items()}

    def used(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns kept parameters as the graph takes them."""
        return {name: self._cast(one, self.parameters, "float32") for name, one in params.items()}

    def optimized(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns kept parameters, or their gradients, as an optimizer takes them."""
        return self.used(params) if self.rounding == "stochastic" else self.kept(params)

    def rounded(self, params: Mapping[str, Any], key: Any) -> dict[str, Any]:
        """Returns the new parameters of an optimizer as a state keeps them."""
        if self.rounding == "nearest":
            return dict(params)
        to = np.dtype(jnp.dtype(self.parameters))
        return {
            name: _rounded(one, jax.random.fold_in(key, i), to) if _is_float32(one) else one
            for i, (name, one) in enumerate(sorted(params.items()))
        }

    def reported(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the loss and the metrics in the dtype of outputs."""
        return {name: self._cast(one, "float32", self.output) for name, one in values.items()}

    def _cast(self, value: Any, before: str, after: str) -> Any:
        return value.astype(after) if before != after and value.dtype == before else value


def _rounded(value: Any, key: Any, to: DType) -> Any:
    return value if to == value.dtype else get("stochastic_round")(value, key=key, dtype=to)


def _is_float32(value: Any) -> bool:
    return bool(value.dtype == np.float32)


def _require_one_of(name: str, value: str, legal: tuple[str, ...]) -> None:
    if value not in legal:
        raise ArgumentError(
            f"Precision: {name} must be one of {', '.join(legal)}, got {value!r}"
            f"{nearest(value, legal)}"
        )


def _name_of(dtype: Any) -> str:
    if isinstance(dtype, str) and dtype == _EIGHT_BITS:
        return dtype
    try:
        return str(jnp.dtype(dtype).name)
    except TypeError:
        return str(dtype)


def precision_of(value: Any) -> Precision:
    """Returns the policy that ``value`` describes: a policy, the dtype of products, or None.

    Raises:
        ArgumentError: it is none of these.
    """
    if isinstance(value, Precision):
        return value
    return Precision("float32" if value is None else value)


def is_float(value: Any) -> bool:
    """Whether an array is of a real floating dtype."""
    return is_floating(np.dtype(value.dtype))
