"""What the audit says: an entry for each operator, a gap where the chain of derivatives breaks."""

import dataclasses
from collections.abc import Mapping

from registry.operator import Derivative

_MADE = (Derivative.MAKER, Derivative.KERNEL)
_DEFINED = (*_MADE, Derivative.ZERO)


@dataclasses.dataclass(frozen=True)
class Gap:
    """Why an operator is not differentiable to every order.

    Attributes:
        path: from the operator to the one at fault, each composed by the maker of the one before.
        reason: what is wrong there.
    """

    path: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{' -> '.join(self.path)}: {self.reason}"


@dataclasses.dataclass(frozen=True)
class Entry:
    """What the audit says of one operator.

    Attributes:
        name: the operator's name.
        derivative: whether it has a maker, is zero or undefined by definition, or is missing.
        reason: why, in the words of its declaration.
        reaches: the operators that its gradients of all orders are made of.
        by_jax: those of them, itself included, whose kernel JAX differentiates.
        gap: what breaks the chain, or None.
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
    """What the audit says of every operator, by name.

    ``print`` it to read a table.
    """

    entries: Mapping[str, Entry]

    @property
    def gaps(self) -> dict[str, Gap]:
        """The operators that are not differentiable to every order although they should be."""
        return {name: one.gap for name, one in self.entries.items() if one.gap is not None}

    def __getitem__(self, name: str) -> Entry:
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
