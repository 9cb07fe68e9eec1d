"""Whether lowering turns repeated blocks into loops, for each thread."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import jax


class _Local(threading.local):
    enabled = True


_local = _Local()
_config: Any = jax.config  # whose options JAX declares no types for


def is_rolling() -> bool:
    """Whether repeated blocks become loops in this thread."""
    return _local.enabled and not (_config.jax_debug_nans or _config.jax_debug_infs)


@contextlib.contextmanager
def rolling(enabled: bool) -> Iterator[None]:  # with so.rolling(False): ...
    """Whether graphs that are lowered inside have their repeated blocks turned into loops.

    They do by default, but not while JAX looks for NaNs or infinities (``jax_debug_nans``), so that
    it finds the operator. A function or an executor that was made outside stays as it is; a program
    and a trainer look at it when they compile, at their first run or step.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> y = x
        >>> for _ in range(100):
        ...     y = so.sin(y)
        >>> with so.rolling(False):
        ...     unrolled = y.to_jax()
        >>> import jax
        >>> len(jax.make_jaxpr(unrolled)(1.0).eqns) > len(jax.make_jaxpr(y.to_jax())(1.0).eqns)
        True
    """
    before, _local.enabled = _local.enabled, enabled
    try:
        yield
    finally:
        _local.enabled = before
