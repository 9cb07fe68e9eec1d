"""Options and forms of compiled programs that avoid slow code of XLA's CPU backend.

All symptoms occur in jaxlib 0.10.2 and 0.12.0.
"""

import os
from collections.abc import Callable
from typing import Any

import jax
import jaxlib.version

from registry.primitives import CONVOLUTIONS, binds
from registry.tuning import present
from registry.xla.barrier import barrier

UNFUSED: dict[str, Any] = {"xla_disable_hlo_passes": "fusion"}
"""Compiles without fusion."""
if jaxlib.version.__version_info__ < (0, 12):
    # A flag may select XLA's older emitters, which are wrong without fusion. Later versions have
    # neither the emitters nor the option.
    UNFUSED["xla_cpu_use_fusion_emitters"] = True


def options_for(inner: int) -> dict[str, Any] | None:
    """Returns the compiler's options for a program that itself reads ``inner`` of its results.

    XLA fuses each of these results with everything that it depends on, which is then recomputed
    for each: with many results, the work grows as the square of their number.
    """
    crowded = inner >= present.tuning.crowded and jax.default_backend() == "cpu"
    return UNFUSED if crowded else None


def in_turn(value: Any) -> Any:
    """Returns ``value``; on few cores, its program does not run operators in parallel.

    XLA's CPU runtime runs independent operators in several threads, each distributing its work
    over all cores, unless one of them is a call. With few cores (``Tuning.few_cores``) the threads
    alternate. With more cores, XLA decides.
    """
    return barrier(value) if (os.cpu_count() or 1) <= present.tuning.few_cores else value


def transposes_slowly(body: Callable[[], Any]) -> bool:
    """Whether a loop is slow if JAX differentiates it; ``body`` returns the jaxpr of its body.

    JAX transposes convolutions to a layout other than that of ``canonical_layouts``. XLA has a fast
    kernel for it outside loops only.
    """
    return jax.default_backend() == "cpu" and binds(body(), CONVOLUTIONS)
