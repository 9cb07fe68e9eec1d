"""Precision policies: the dtypes of parameters, of products, and of losses."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, nearest
from registry.tracebacks import api_class
from registry.types import DType, is_floating
from symop.training.loss_scaling import LossScale

_FLOATS = ("bfloat16", "float16", "float32")


@api_class
@dataclasses.dataclass(frozen=True)
class Precision:
    """The dtypes in which a network is trained.

    Products, and what lies between two of them, are computed in ``compute``. The loss, statistics
    of normalizations and sums are computed in float32, as is everything before the first product
    and after the last one. Values of other dtypes than float32 stay as they are.

    Attributes:
        compute: the dtype of products.
        parameters: the dtype in which a state keeps the parameters, and in which an optimizer
            receives their gradients.
        output: the dtype of the loss and the metrics.
        loss_scale: the loss scaling; by default one for float16, whose range gradients leave, and
            none for other dtypes.

    Raises:
        ArgumentError: a dtype is not one of bfloat16, float16 and float32.

    Example:
        >>> Precision("float16").loss_scale.initial
        32768.0
    """

    compute: str = "bfloat16"
    parameters: str = "float32"
    output: str = "float32"
    loss_scale: LossScale | None = None

    def __post_init__(self) -> None:
        """Checks the dtypes."""
        for name in ("compute", "parameters", "output"):
            dtype = _name_of(getattr(self, name))
            if dtype not in _FLOATS:
                raise ArgumentError(
                    f"Precision: {name} must be one of {', '.join(_FLOATS)}, got {dtype!r}"
                    f"{nearest(dtype, _FLOATS)}"
                )
            object.__setattr__(self, name, dtype)
        if self.loss_scale is None and self.compute == "float16":
            object.__setattr__(self, "loss_scale", LossScale())

    @property
    def narrow(self) -> DType | None:
        """The dtype of products; None for float32."""
        return None if self.compute == "float32" else np.dtype(jnp.dtype(self.compute))

    def kept(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns parameters as a state keeps them."""
        return {name: self._cast(one, "float32", self.parameters) for name, one in params.items()}

    def used(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns kept parameters as the graph takes them."""
        return {name: self._cast(one, self.parameters, "float32") for name, one in params.items()}

    def reported(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the loss and the metrics in the dtype of outputs."""
        return {name: self._cast(one, "float32", self.output) for name, one in values.items()}

    def _cast(self, value: Any, before: str, after: str) -> Any:
        return value.astype(after) if before != after and value.dtype == before else value


def _name_of(dtype: Any) -> str:
    try:
        return str(jnp.dtype(dtype).name)
    except TypeError:
        return str(dtype)


def precision_of(value: Any) -> Precision:
    """Returns the policy that ``value`` describes: a policy, the dtype of products, or None.

    Raises:
        ArgumentError: it is neither.
    """
    if isinstance(value, Precision):
        return value
    return Precision("float32" if value is None else value)


def is_float(value: Any) -> bool:
    """Whether an array is of a real floating dtype."""
    return is_floating(np.dtype(value.dtype))
