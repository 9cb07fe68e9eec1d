"""Options and forms of compiled programs that avoid slow code and slow compilation on XLA's CPU.

All symptoms occur in jaxlib 0.10.2 and 0.12.0.
"""

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jaxlib.version
import numpy as np

from registry.primitives import CONVOLUTIONS, binds
from registry.tuning import exceeds, present
from registry.types import VarType
from registry.xla.barrier import barrier

UNFUSED: dict[str, Any] = {"xla_disable_hlo_passes": "fusion"}
"""Compiles without fusion."""
QUICK: dict[str, Any] | None = None
"""Compiles small programs in less than half the time, by XLA's older emitters."""
if jaxlib.version.__version_info__ < (0, 12):
    # A flag may select XLA's older emitters, which are wrong without fusion. Later versions have
    # neither the emitters nor the option.
    UNFUSED["xla_cpu_use_fusion_emitters"] = True
    QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}


def options_for(inner: int) -> dict[str, Any] | None:
    """Returns the compiler's options for a program that itself reads ``inner`` of its results.

    XLA fuses each of these results with everything that it depends on, which is then recomputed
    for each: with many results, the work grows as the square of their number.
    """
    crowded = inner >= present.tuning.crowded and jax.default_backend() == "cpu"
    return UNFUSED if crowded else None


class _Settings(threading.local):
    """Whether this thread compiles small programs quickly, and those of new shapes as drafts."""

    quick = False


thread_settings = _Settings()


def quick_options(operators: int, types: Iterable[VarType | None]) -> dict[str, Any] | None:
    """Returns the compiler's options for a program of ``operators`` on values of ``types``.

    A program of few operators on small arrays (``Tuning.quick_operators``, ``quick_entries``) takes
    longer to compile than to run thousands of times. XLA's older emitters compile it, if they know
    the dtypes. Callers use these options where ``thread_settings.quick`` is set.
    """
    if operators > present.tuning.quick_operators:
        return None
    known = jax.default_backend() == "cpu" and all(map(_is_small, types))
    return QUICK if known else None


def _is_small(type_: VarType | None) -> bool:
    """Whether arrays of this type are small, and of a dtype of the older emitters."""
    if type_ is None:
        return True
    return is_plain(type_.dtype) and not exceeds(type_.size, present.tuning.quick_entries)


def is_plain(dtype: Any) -> bool:
    """Whether a dtype is one of NumPy's own, which XLA's older emitters know."""
    return isinstance(dtype, np.dtype) and dtype.isbuiltin == 1


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
