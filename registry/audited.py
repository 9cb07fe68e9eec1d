"""Results of the audit: an entry for each operator, and gaps in the chain of derivatives."""

import dataclasses
from collections.abc import Mapping

from registry.operator.operator import Derivative

_MADE = (Derivative.MAKER, Derivative.KERNEL)
_DEFINED = (*_MADE, Derivative.ZERO)


@dataclasses.dataclass(frozen=True)
class Gap:
    """The reason why an operator is not differentiable to every order.

    Attributes:
        path: from the operator to the one at fault; the maker of each composes the next.
        reason: the error there.
    """

    path: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{' -> '.join(self.path)}: {self.reason}"


@dataclasses.dataclass(frozen=True)
class AuditEntry:
    """The audit's result for one operator.

    Attributes:
        name: the operator's name.
        derivative: whether it has a maker, is zero or undefined by definition, or is missing.
        reason: the reason, as its declaration states it.
        reaches: the operators in its gradients of all orders.
        by_jax: those of them, itself included, whose kernel JAX differentiates.
        gap: the break in the chain, or None.
    """

    name: str
    derivative: Derivative
    reason: str
    reaches: tuple[str, ...]
    by_jax: tuple[str, ...]
    gap: Gap | None

    @property
    def every_order(self) -> bool:
        """Whether it is differentiable to every order."""
        return self.gap is None and self.derivative in _DEFINED

    def __str__(self) -> str:
        if self.gap is not None:
            return f"GAP {self.gap}"
        if self.derivative in _MADE:
            made_of = f"every order; {', '.join(self.reaches) or 'needs no other operator'}"
            kernels = f"; JAX differentiates the kernel of {', '.join(self.by_jax)}"
            return made_of + (kernels if self.by_jax else "")
        return f"{self.derivative.value}: {self.reason}"


@dataclasses.dataclass(frozen=True)
class Audit:
    """The audit's results for all operators, by name.

    ``print`` shows them as a table.
    """

    entries: Mapping[str, AuditEntry]

    @property
    def gaps(self) -> dict[str, Gap]:
        """The operators that should be differentiable to every order but are not."""
        return {name: one.gap for name, one in self.entries.items() if one.gap is not None}

    def __getitem__(self, name: str) -> AuditEntry:
        return self.entries[name]

    def __str__(self) -> str:
        width = max(map(len, self.entries), default=0)
        lines = [f"{name:<{width}}  {entry}" for name, entry in self.entries.items()]
        every = sum(entry.every_order for entry in self.entries.values())
        return "\n".join(
            [
                *lines,
                "",
                f"{len(self.entries)} operators, {every} differentiable to every order, "
                f"{len(self.gaps)} with a gap",
            ]
        )
