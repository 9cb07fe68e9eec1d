"""``mx.random``: the seed, and random draws as in ``mx.nd.random``."""

from typing import Any

import symop as so
from symop.interop.mxnet import ndarray as nd


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Seeds the random numbers; they differ from MXNet's for the same seed.

    Args:
        seed_state: an integer.
        ctx: has no effect: a draw is the same on every device.

    Raises:
        ValueError: ``seed_state`` is not an integer.
    """
    del ctx
    try:
        number = seed_state.__index__()
    except AttributeError:
        raise ValueError(f"seed: it must be a whole number, got {seed_state!r}") from None
    so.random.seed(number)


def __getattr__(name: str) -> Any:
    return getattr(nd.random, name)


def __dir__() -> list[str]:
    return sorted({"seed", *dir(nd.random)})
