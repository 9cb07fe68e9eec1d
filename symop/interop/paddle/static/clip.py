"""Clipping of gradients."""

from collections.abc import Sequence
from typing import TypeAlias

from symop.interop.paddle.framework import VarKind
from symop.interop.paddle.guards import role_guard
from symop.interop.paddle.programs import Block, Variable
from symop.interop.paddle.roles import OPTIMIZE

Pairs: TypeAlias = Sequence[tuple[Variable, Variable]]
"""Parameters, each with its gradient."""


class Clip:
    """Appends calls that make gradients smaller."""

    def __call__(self, params_grads: Pairs) -> list[tuple[Variable, Variable]]:
        """Appends the calls and returns the parameters with their new gradients."""
        pairs = list(params_grads)
        clipped = [one for one, _ in pairs if one.training.need_clip]
        chosen = {one.name for one in clipped}
        if not chosen:
            return pairs
        block = clipped[0].block
        with role_guard(block.program, OPTIMIZE):
            grads = self._clipped([each for one, each in pairs if one.name in chosen], block)
        found = iter(grads)
        return [(one, next(found) if one.name in chosen else each) for one, each in pairs]

    def _clipped(self, gradients: Sequence[Variable], block: Block) -> list[Variable]:
        # Abstract: defined by the three kinds of clipping below.
        raise NotImplementedError


class GradientClipByValue(Clip):
    """Clips entries to an interval."""

    def __init__(self, max: float, min: float | None = None) -> None:
        """Takes the bounds; ``min`` is ``-max`` unless it is given."""
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def _clipped(self, gradients: Sequence[Variable], block: Block) -> list[Variable]:
        attrs = {"min": self.min, "max": self.max}
        return [block.call("clip", {"X": one}, attrs, name="clip_0.tmp") for one in gradients]


class GradientClipByNorm(Clip):
    """Scales each gradient whose norm exceeds a bound."""

    def __init__(self, clip_norm: float) -> None:
        """Takes the bound."""
        self.clip_norm = float(clip_norm)

    def _clipped(self, gradients: Sequence[Variable], block: Block) -> list[Variable]:
        attrs = {"max_norm": self.clip_norm}
        return [
            block.call("clip_by_norm", {"X": one}, attrs, name="clip_by_norm_0.tmp")
            for one in gradients
        ]


class GradientClipByGlobalNorm(Clip):
    """Scales all gradients if their common norm exceeds a bound."""

    def __init__(self, clip_norm: float, group_name: str = "default_group") -> None:
        """Takes the bound; ``group_name`` is accepted as in Paddle."""
        self.clip_norm = float(clip_norm)
        self.group_name = group_name

    def _clipped(self, gradients: Sequence[Variable], block: Block) -> list[Variable]:
        squares = [_squared_norm(one, block) for one in gradients]
        norm = block.call("sqrt", {"X": block.call("sum", {"X": squares})})
        bound = block.call("fill_constant", {}, {"shape": [1], "dtype": 5, "value": self.clip_norm})
        larger = block.call("elementwise_max", {"X": bound, "Y": norm})
        factor = block.call("elementwise_div", {"X": bound, "Y": larger})
        return [block.call("elementwise_mul", {"X": one, "Y": factor}) for one in gradients]


def _squared_norm(gradient: Variable, block: Block) -> Variable:
    dense = gradient
    if gradient.type is VarKind.SELECTED_ROWS:
        merged = block.call("merge_selected_rows", {"X": gradient})
        dense = block.call("get_tensor_from_selected_rows", {"X": merged})
    square = block.call("square", {"X": dense})
    return block.call("reduce_sum", {"X": square}, {"dim": [0], "reduce_all": True})


ClipGradByValue = GradientClipByValue
ClipGradByNorm = GradientClipByNorm
ClipGradByGlobalNorm = GradientClipByGlobalNorm
