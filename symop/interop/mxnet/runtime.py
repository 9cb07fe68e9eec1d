"""``mx.runtime``: what this build can do, as far as MXNet's scripts ask for it."""

from typing import NamedTuple

import jax

from symop.interop.mxnet.context import num_gpus

__all__ = ["Feature", "Features", "feature_list"]


class Feature(NamedTuple):
    """A feature by name.

    Attributes:
        name: MXNet's name.
        enabled: whether it is there.
    """

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


def feature_list() -> list[Feature]:
    """The features that depend on JAX, and those that MXNet has and this interface lacks."""
    has_gpu, has_x64 = num_gpus() > 0, bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
    return [
        *[Feature(name, has_gpu) for name in ("CUDA", "CUDNN", "NCCL")],
        *[Feature(name, True) for name in ("F16C", "LAPACK")],
        Feature("INT64_TENSOR_SIZE", has_x64),
        *[Feature(name, False) for name in ("MKLDNN", "OPENCV", "TENSORRT", "DIST_KVSTORE")],
    ]


class Features(dict[str, Feature]):
    """The features by name.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> mx.runtime.Features().is_enabled("opencv")
        False
    """

    def __init__(self) -> None:
        """Asks JAX."""
        super().__init__((one.name, one) for one in feature_list())

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.values()))}]"

    def is_enabled(self, feature_name: str) -> bool:
        """Whether a feature is there.

        Raises:
            RuntimeError: there is no feature of this name.
        """
        name = feature_name.upper()
        if name not in self:
            raise RuntimeError(f"is_enabled: it must be one of {', '.join(self)}, got {name!r}")
        return self[name].enabled
