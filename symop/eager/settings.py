"""The JAX settings that affect the result of a call.

A recorded call runs later, when its value is needed. It then runs under the settings in effect when
it was made, such as those of a scope ``jax.debug_nans(True)``.
"""

import contextlib
from typing import Any, NamedTuple

import jax

_states: Any = jax
NANS, INFS = _states.debug_nans, _states.debug_infs
_X64, _PRECISION = _states.enable_x64, _states.default_matmul_precision
_PROMOTION, _DEVICE = _states.numpy_dtype_promotion, _states.default_device
_RANKS, _THREEFRY = _states.numpy_rank_promotion, _states.threefry_partitionable


def default_device() -> jax.Device:
    """The device of new arrays."""
    chosen: Any = jax.config.jax_default_device  # type: ignore[attr-defined]  # of JAX
    if isinstance(chosen, str):
        return jax.devices(chosen)[0]
    return chosen or jax.devices()[0]


class JaxSettings(NamedTuple):
    """Values of JAX's settings."""

    x64: bool
    nans: bool
    infs: bool
    precision: Any
    promotion: Any
    device: Any
    ranks: str
    threefry: bool
    plain: bool

    @property
    def watches(self) -> bool:
        """Whether results are checked for NaN or infinity; calls should then run immediately."""
        return self.nans or self.infs

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns a scope in which JAX has these settings."""
        present = present_settings()
        if present == self:
            return contextlib.nullcontext()
        scopes = contextlib.ExitStack()
        for set_to, wanted, current in zip(_SCOPES, self, present, strict=True):
            if wanted != current:
                scopes.enter_context(set_to(wanted))
        return scopes


_SCOPES = (
    _X64, NANS, INFS, _PRECISION, _PROMOTION, _DEVICE, _RANKS, _THREEFRY, jax.disable_jit,
)  # fmt: skip


def present_settings() -> JaxSettings:
    """Returns the current settings of this thread."""
    config: Any = jax.config
    return JaxSettings(
        _X64.value,
        NANS.value,
        INFS.value,
        _PRECISION.value,
        _PROMOTION.value,
        _DEVICE.value,
        _RANKS.value,
        _THREEFRY.value,
        config.jax_disable_jit,
    )
