"""Clipping of gradients before an optimizer takes them."""

import dataclasses
from collections.abc import Callable, Sequence

from registry.table import get
from symop.program_block import Variable


@dataclasses.dataclass(frozen=True)
class ClipByValue:
    """Each entry of each gradient is brought into ``[-bound, bound]``."""

    bound: float

    def __call__(self, gradients: Sequence[Variable]) -> list[Variable]:
        """The clipped gradients."""
        return [get("clip")(one, low=-self.bound, high=self.bound) for one in gradients]


@dataclasses.dataclass(frozen=True)
class ClipByNorm:
    """Each gradient is made shorter where its norm exceeds ``max_norm``."""

    max_norm: float

    def __call__(self, gradients: Sequence[Variable]) -> list[Variable]:
        """The clipped gradients."""
        return [get("clip_by_norm")(one, max_norm=self.max_norm) for one in gradients]


@dataclasses.dataclass(frozen=True)
class ClipByGlobalNorm:
    """All gradients together are made shorter where their norm exceeds ``max_norm``."""

    max_norm: float

    def __call__(self, gradients: Sequence[Variable]) -> list[Variable]:
        """The clipped gradients."""
        found = get("clip_by_global_norm")(*gradients, max_norm=self.max_norm)
        return list(found) if isinstance(found, tuple) else [found]


Clip = Callable[[Sequence[Variable]], list[Variable]]
