"""A barrier: an identity across which XLA does not fuse what is computed before and after it.

On most platforms that is ``jax.lax.optimization_barrier``. XLA takes those out before it fuses for
the CPU, so there the barrier is a call of a function that must not be inlined; it copies nothing.
"""

import os
from typing import Any

import jax
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

# Any: JAX declares no types for what follows.
_barrier: Any = Primitive("symop_barrier")
_lax: Any = lax
_ad: Any = ad
_batching: Any = batching
_labeled: Any = set_xla_metadata

FEW_CORES = 2
"""With so many cores XLA loses more than it gains by starting operators at the same time."""


def barrier(value: Any) -> Any:
    """``value``, an array; cotangents and tangents meet a barrier at the same place."""
    return _barrier.bind(value)


def in_turn(value: Any) -> Any:
    """``value``; where cores are few, its program does not start operators at the same time.

    XLA's runtime for the CPU hands operators that do not wait for each other to several threads,
    each of which shares out its work among all cores, unless a call is among them. On two cores
    the threads then take turns: training steps of perceptrons of 256 to 1024 units took 3 to 16
    percent longer without this call, others the same time. With more cores the choice is XLA's.
    """
    return barrier(value) if (os.cpu_count() or 1) <= FEW_CORES else value


@jax.jit
def _same(value: Any) -> Any:
    return value


def _called(value: Any) -> Any:
    with _labeled(inlineable="false"):
        return _same(value)


def _barred(value: Any) -> Any:
    return _lax.optimization_barrier(value)


_barrier.def_impl(lambda value: value)
_barrier.def_abstract_eval(lambda type: type)
_ad.deflinear2(_barrier, lambda cotangent, _: [barrier(cotangent)])
_batching.defvectorized(_barrier)
mlir.register_lowering(_barrier, mlir.lower_fun(_barred, multiple_results=False))
mlir.register_lowering(_barrier, mlir.lower_fun(_called, multiple_results=False), platform="cpu")
