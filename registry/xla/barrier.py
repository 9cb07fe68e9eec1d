"""A fusion barrier: an identity across which XLA does not fuse.

On most platforms this is ``jax.lax.optimization_barrier``. For the CPU, XLA removes those before
fusion, so there the barrier is a call to a function that must not be inlined; it copies nothing.
"""

from typing import Any

import jax
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

# Any: JAX declares no types for these.
barrier_p: Any = Primitive("symop_barrier")
_lax: Any = lax
_ad: Any = ad
_batching: Any = batching
_labeled: Any = set_xla_metadata


def barrier(value: Any) -> Any:
    """Returns the array ``value`` behind a barrier, which also applies to its derivatives."""
    return barrier_p.bind(value)


@jax.jit
def _same(value: Any) -> Any:
    return value


def _called(value: Any) -> Any:
    with _labeled(inlineable="false"):
        return _same(value)


def _barred(value: Any) -> Any:
    return _lax.optimization_barrier(value)


barrier_p.def_impl(lambda value: value)
barrier_p.def_abstract_eval(lambda type: type)
_ad.deflinear2(barrier_p, lambda cotangent, _: [barrier(cotangent)])
_batching.defvectorized(barrier_p)
mlir.register_lowering(barrier_p, mlir.lower_fun(_barred, multiple_results=False))
mlir.register_lowering(barrier_p, mlir.lower_fun(_called, multiple_results=False), platform="cpu")
