"""The switch that enables loops in place of repeated blocks, for each task or thread."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax

from symop.graph.scoping import Scopes

_switches = Scopes("rolling", True)
_config: Any = jax.config  # JAX declares no types for its options


def is_rolling() -> bool:
    """Whether repeated blocks currently become loops."""
    return _switches.current() and not (_config.jax_debug_nans or _config.jax_debug_infs)


@contextlib.contextmanager
def rolling(enabled: bool) -> Iterator[None]:  # with so.rolling(False): ...
    """Sets whether graphs lowered inside have their repeated blocks turned into loops.

    Loops that read step by step what others write are then fused, too. Both is the default, except
    while JAX checks for NaNs or infinities (``jax_debug_nans``), so that it can identify the
    operator. A function or executor made outside is not affected; a program or trainer reads the
    setting when it compiles, at its first run or step.

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
    with _switches.entered(enabled):
        yield
