"""``so.remat``: rematerialization policies, which choose the forward values a gradient keeps.

Keeping fewer values takes less memory and more time. A policy is given where a graph is
differentiated (``remat=`` of ``bind``, ``Trainer``, ``value_and_grad``, ``to_jax``,
``append_backward``), or to a scope around the code that builds a part of it.

Example:
    >>> import symop as so
    >>> x = so.var("x", shape=(8, 8))
    >>> y = x
    >>> for _ in range(100):
    ...     y = so.tanh(so.matmul(y, x))
    >>> slopes = so.value_and_grad(so.sum(y), remat=so.remat.segments())
"""

from registry.errors import ArgumentError
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.graph.policies import KEEP_ALL, KEEP_COSTLY, KEEP_NONE, Policy, Predicate, Value, scope
from symop.passes.remat.counting import Estimate
from symop.symbol.remat_report import Report, estimate, report

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
    """Returns the default policy: keep everything that the gradient reads, recompute nothing."""
    return KEEP_ALL


def keep_none() -> Policy:
    """Returns the policy to keep only the inputs, for a scope or for the steps of loops.

    A whole graph would be recomputed at once, which saves no memory.
    """
    return KEEP_NONE


def keep_costly() -> Policy:
    """Returns the policy to keep the results of costly operators, such as matrix products.

    All other values are recomputed, in segments. Costly operators are declared with
    ``costly=True``.
    """
    return KEEP_COSTLY


def segments(n: int | None = None) -> Policy:
    """Returns the policy to cut the graph into ``n`` segments and keep the values between them.

    Without ``n``, the number is chosen such that these values and those within one segment take
    about the same memory: for a chain, about the square root of the number of layers. A scan of
    many steps becomes a scan of scans.

    Source: Chen, Xu, Zhang, Guestrin, Training deep nets with sublinear memory cost, 2016.
    """
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 2):
        raise ArgumentError(f"remat.segments: n must be an integer of at least 2, got {n!r}")
    return Policy("segments" if n is None else f"segments({n})", cuts=n)


def keep(*values: str | Predicate) -> Policy:
    """Returns the policy to keep values with given names, and values that a predicate accepts.

    The graph is cut after each of them; other values that pass a cut are kept, too.

    Args:
        *values: names that were given by ``name=``, or predicates of a ``Value``.

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
