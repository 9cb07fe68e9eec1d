"""Loss scaling: a factor on the loss that keeps half-precision gradients from underflowing."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from registry.errors import ArgumentError
from registry.table import get
from registry.tracebacks import api_class
from symop.program.block import Block, Variable


@api_class
@dataclasses.dataclass(frozen=True)
class LossScale:
    """A factor on the loss that keeps half-precision gradients from underflowing.

    Gradients are divided by the factor afterwards. A step with non-finite gradients is skipped
    and the factor is divided by ``change``; after ``interval`` consecutive finite steps it is
    multiplied by ``change`` (Micikevicius et al., "Mixed Precision Training", 2018). A ``change``
    of 1 keeps it constant.

    Attributes:
        initial: the initial factor.
        interval: the number of finite steps before the factor grows.
        change: the ratio by which the factor grows and shrinks.
        lowest: the lower bound of the factor.
        highest: the upper bound of the factor.
    """

    initial: float = 2.0**15
    interval: int = 2000
    change: float = 2.0
    lowest: float = 1.0
    highest: float = 2.0**24

    def __post_init__(self) -> None:
        """Rejects bounds that would allow no change or an infinite factor.

        Raises:
            ArgumentError: the bounds are not positive and finite, or exclude the first factor.
        """
        if not 0 < self.lowest <= self.initial <= self.highest < float("inf"):
            raise ArgumentError(
                f"loss_scale: it must be 0 < lowest <= initial <= highest < inf, got {self}"
            )


class Scaling:
    """The factor on the loss as a state of the program, and its update."""

    def __init__(self, block: Block, how: LossScale) -> None:
        self.how, self.block = how, block
        self.factor = block.declare(
            "state", block.free("loss_scale"), (), "float32", initial=how.initial, stops=True
        )
        self.good = block.declare(
            "state", block.free("loss_scale.good"), (), "int32", initial=0, stops=True
        )

    def unscaled(self, gradients: Sequence[Variable]) -> tuple[list[Variable], Variable]:
        """Returns the unscaled gradients, zero if any is not finite, and whether all are finite."""
        inverse = 1.0 / self.factor
        singles = [_single(one) * inverse for one in gradients]
        # Zero times a non-finite value is NaN; the squares of finite values may overflow.
        finite: Variable = get("isfinite")(get("global_norm")(*[one * 0.0 for one in singles]))
        self._adapt(finite)
        return [get("let_through")(one, finite) for one in singles], finite

    def _adapt(self, finite: Variable) -> None:
        factor, good = adapted(self.how, self.factor, self.good, finite)
        self.block.set_update(self.good.name, good.name)
        self.block.set_update(self.factor.name, factor.name)


def adapted(how: LossScale, factor: Any, good: Any, finite: Any) -> tuple[Any, Any]:
    """Returns the factor of the next step, and the number of finite steps since it changed.

    Args:
        how: the loss scaling.
        factor: the factor of this step.
        good: the number of finite steps before this one.
        finite: whether all gradients of this step are finite.
    """
    where = get("where")
    more = good + 1
    grows = get("greater_equal")(more, how.interval)
    counted = where(finite, where(grows, 0, more), 0)
    grown = where(grows, factor * how.change, factor)
    moved = where(finite, grown, factor / how.change)
    return get("clip")(moved, low=how.lowest, high=how.highest), counted


def _single(gradient: Variable) -> Variable:
    """Casts half precision to single, so that ``gradient`` does not underflow again."""
    small = gradient.dtype.itemsize < 4
    return get("cast")(gradient, dtype="float32") if small else gradient
