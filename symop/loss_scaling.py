"""Loss scaling: gradients of half precision kept from vanishing by a factor on the loss."""

import dataclasses
from collections.abc import Sequence

from registry.errors import ArgumentError
from registry.table import get
from symop.program_block import Block, Variable


@dataclasses.dataclass(frozen=True)
class LossScale:
    """A factor on the loss that keeps gradients of half precision from vanishing.

    Gradients are divided by it again. A step whose gradients are not finite is left out, and the
    factor is divided by ``change``; after ``interval`` good steps it is multiplied (Micikevicius et
    al., "Mixed Precision Training", 2018). A ``change`` of 1 keeps it.

    Attributes:
        initial: the first factor.
        interval: how many good steps come before it grows.
        change: how much it grows and shrinks.
        lowest: it shrinks no further.
        highest: it grows no further.
    """

    initial: float = 2.0**15
    interval: int = 2000
    change: float = 2.0
    lowest: float = 1.0
    highest: float = 2.0**24

    def __post_init__(self) -> None:
        """Refuse what would never move, or become infinite.

        Raises:
            ArgumentError: the first factor is not between the bounds.
        """
        if not 0 < self.lowest <= self.initial <= self.highest < float("inf"):
            raise ArgumentError(
                f"loss_scale: it must be 0 < lowest <= initial <= highest < inf, got {self}"
            )


class Scaling:
    """The factor on the loss, and what becomes of it."""

    def __init__(self, block: Block, how: LossScale) -> None:
        self.how, self.block = how, block
        self.factor = block.declare(
            "state", block.free("loss_scale"), (), "float32", initial=how.initial, stops=True
        )
        self.good = block.declare(
            "state", block.free("loss_scale.good"), (), "int32", initial=0, stops=True
        )

    def unscaled(self, gradients: Sequence[Variable]) -> tuple[list[Variable], Variable]:
        """Gradients of the loss itself, and whether all of them are finite; then none is zero."""
        inverse = 1.0 / self.factor
        found = [_single(one) * inverse for one in gradients]
        # Zero times what is not finite is NaN; the squares of what is finite may not be.
        finite: Variable = get("isfinite")(get("global_norm")(*[one * 0.0 for one in found]))
        self._adapt(finite)
        return [get("let_through")(one, finite) for one in found], finite

    def _adapt(self, finite: Variable) -> None:
        where, how = get("where"), self.how
        more = self.good + 1
        grows = get("greater_equal")(more, how.interval)
        good = where(finite, where(grows, 0, more), 0)
        grown = where(grows, self.factor * how.change, self.factor)
        moved = where(finite, grown, self.factor / how.change)
        factor = get("clip")(moved, low=how.lowest, high=how.highest)
        self.block.set_update(self.good.name, good.name)
        self.block.set_update(self.factor.name, factor.name)


def _single(gradient: Variable) -> Variable:
    """In single precision at least: in half, what scaling has saved would vanish again."""
    small = gradient.dtype.itemsize < 4
    return get("cast")(gradient, dtype="float32") if small else gradient
