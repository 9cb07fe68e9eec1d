"""``so.remat``: what a gradient keeps of the forward pass, and what it computes again.

Keeping less takes less memory and more time. A policy is given where a graph is differentiated
(``remat=`` of ``bind``, ``Trainer``, ``value_and_grad``, ``to_jax``, ``append_backward``), or to a
scope around what is built.

Example:
    >>> import symop as so
    >>> x = so.var("x", shape=(8, 8))
    >>> y = x
    >>> for _ in range(100):
    ...     y = so.tanh(so.matmul(y, x))
    >>> slopes = so.value_and_grad(so.sum(y), remat=so.remat.segments())
"""

from registry.errors import ArgumentError
from symop.policies import KEEP_ALL, KEEP_COSTLY, KEEP_NONE, Policy, Predicate, Value, scope
from symop.recomputing.counting import Estimate
from symop.remat_report import Report, estimate, report

__all__ = [
    "Estimate",
    "Policy",
    "Report",
    "Value",
    "estimate",
    "keep",
    "keep_all",
    "keep_costly",
    "keep_none",
    "report",
    "scope",
    "segments",
]


def keep_all() -> Policy:
    """Everything that the gradient reads is kept, nothing is computed again: the default."""
    return KEEP_ALL


def keep_none() -> Policy:
    """Nothing is kept but what enters: for a scope, or for the steps of loops.

    A whole graph would be computed again at once, and need as much memory as before.
    """
    return KEEP_NONE


def keep_costly() -> Policy:
    """Results of operators that declare to be costly are kept, such as matrix products.

    All else is computed again, in segments. An operator says so by ``costly=True``.
    """
    return KEEP_COSTLY


def segments(n: int | None = None) -> Policy:
    """The graph is cut into ``n`` segments, and only what passes from one to the next is kept.

    Without ``n`` there are so many that this and what one segment holds are about the same: about
    the square root of the number of layers of a chain. A scan of many steps becomes a scan of
    scans.

    Source: Chen, Xu, Zhang, Guestrin, Training deep nets with sublinear memory cost, 2016.
    """
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 2):
        raise ArgumentError(f"remat.segments: n must be an integer of at least 2, got {n!r}")
    return Policy("segments" if n is None else f"segments({n})", cuts=n)


def keep(*values: str | Predicate) -> Policy:
    """Only certain values are kept: those of these names, and those for which a function holds.

    The graph is cut after each of them, and what else passes a cut is kept, too.

    Args:
        *values: names that were given by ``name=``, or functions of a ``Value``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(8, 8))
        >>> y = so.sin(so.tanh(so.matmul(x, x), name="hidden"))
        >>> slopes = so.value_and_grad(so.sum(y * y), remat=so.remat.keep("hidden"))
    """
    names = frozenset(one for one in values if isinstance(one, str))
    functions = [one for one in values if not isinstance(one, str)]
    if not values or not all(map(callable, functions)):
        raise ArgumentError(
            f"remat.keep: names or functions of a value must be given, got {values!r}"
        )

    def holds(value: Value) -> bool:
        return any(function(value) for function in functions)

    shown = ", ".join([*map(repr, sorted(names)), *["..."] * len(functions)])
    return Policy(f"keep({shown})", names=names, predicate=holds if functions else None)
