"""Cheaper calls: chains of products in another order, lookups for one-hot matrices, masks."""

import contextlib
from collections.abc import Iterator, Sequence

from symop.graph.nodes import Node
from symop.graph.scoping import Scopes
from symop.passes.chains import reordered
from symop.passes.lookups import looked_up
from symop.passes.replacements import Replacement
from symop.passes.thresholds import compared_before

_switches = Scopes("rewriting", True)


def is_rewriting() -> bool:
    """Whether products are currently replaced by cheaper ones."""
    return _switches.current()


@contextlib.contextmanager
def rewriting(enabled: bool) -> Iterator[None]:  # with so.rewriting(False): ...
    """Sets whether lowering replaces products by cheaper ones.

    It does by default. Chains of matrix products are computed in the order with the fewest
    multiplications, if these are far fewer; the result may differ by rounding. Products with
    ``one_hot`` become lookups. ``so.explain`` lists both. A product that has a
    name or is an output is computed as it is written. On the CPU, ``relu(x) > 0`` outside of loops
    becomes ``x > 0``, which is the same. A function made outside is not affected.

    Example:
        >>> import symop as so
        >>> a, b = so.var("a", shape=(512, 512)), so.var("b", shape=(512, 512))
        >>> y = a @ b @ so.var("x", shape=(512,))
        >>> [str(one).partition(" at ")[0] for one in so.explain(y).rewritten]
        ['2 matrix products of 1.34e+08 multiplications became others of 5.24e+05']
        >>> with so.rewriting(False):
        ...     so.explain(y).rewritten
        ()
    """
    with _switches.entered(enabled):
        yield


def cheaper(roots: Sequence[Node], log: list[Replacement] | None = None) -> Sequence[Node]:
    """Returns ``roots``, whose types are known, with cheaper products.

    ``log`` is a list to which the replaced products are added.
    """
    if not is_rewriting():
        return roots
    return reordered(looked_up(roots, log), log)


def with_cheap_masks(roots: Sequence[Node]) -> Sequence[Node]:
    """Returns ``roots``, whose types are known and whose blocks are rolled, with cheaper masks.

    Rolling comes first: a loop would keep what a mask reads beside what the next operator reads.
    """
    return compared_before(roots) if is_rewriting() else roots
