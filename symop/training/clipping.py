"""Gradient clipping, applied before the optimizer."""

import dataclasses
from collections.abc import Callable, Sequence

from registry.table import get
from registry.tracebacks import api_class
from symop.program.block import Variable


@api_class
@dataclasses.dataclass(frozen=True)
class ClipByValue:
    """Clips each entry of each gradient to ``[-bound, bound]``."""

    bound: float

    def __call__(self, gradients: Sequence[Variable]) -> list[Variable]:
        """Returns the clipped gradients."""
        return [get("clip")(one, low=-self.bound, high=self.bound) for one in gradients]


@api_class
@dataclasses.dataclass(frozen=True)
class ClipByNorm:
    """Scales each gradient down to norm ``max_norm`` where its norm exceeds ``max_norm``."""

    max_norm: float

    def __call__(self, gradients: Sequence[Variable]) -> list[Variable]:
        """Returns the clipped gradients."""
        return [get("clip_by_norm")(one, max_norm=self.max_norm) for one in gradients]


@api_class
@dataclasses.dataclass(frozen=True)
class ClipByGlobalNorm:
    """Scales all gradients down jointly where their global norm exceeds ``max_norm``."""

    max_norm: float

    def __call__(self, gradients: Sequence[Variable]) -> list[Variable]:
        """Returns the clipped gradients."""
        clipped = get("clip_by_global_norm")(*gradients, max_norm=self.max_norm)
        return list(clipped) if isinstance(clipped, tuple) else [clipped]


Clip = Callable[[Sequence[Variable]], list[Variable]]
