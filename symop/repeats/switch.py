"""Whether lowering turns repeated blocks into loops, for each thread."""

import contextlib
import threading
from collections.abc import Iterator


class _Local(threading.local):
    enabled = True


_local = _Local()


def is_rolling() -> bool:
    """Whether repeated blocks become loops in this thread."""
    return _local.enabled


@contextlib.contextmanager
def rolling(enabled: bool) -> Iterator[None]:  # with so.rolling(False): ...
    """Whether graphs that are lowered inside have their repeated blocks turned into loops.

    They do by default. A function, an executor or a program that was made outside stays as it is.

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
