"""Names in OpDescs: names of gradients, and slot names as other systems write them."""

from collections.abc import Iterable, Sequence

GRAD = "@GRAD"
"""The suffix of the name of a variable's gradient."""
EMPTY = "@EMPTY@"
"""Stands for a gradient that is not needed."""
COTANGENT = "d_"
"""The prefix of the slot that holds an output's cotangent or an input's gradient."""
VJP, TRANSPOSE = "_vjp_", "_transpose_"
"""Prefixes of the names of operators that JAX derives from a kernel."""
TANGENT = "t_"
"""The prefix by which a rule names the tangent of an input."""


def grad_name(name: str) -> str:
    """Returns the name of the gradient of the variable called ``name``."""
    return name + GRAD


def differentiated(name: str) -> str:
    """Returns the name of the variable whose gradient, of any order and number, is ``name``.

    Example:
        >>> differentiated("w@GRAD"), differentiated("w@GRAD0"), differentiated("w")
        ('w', 'w', 'w')
    """
    return name.partition(GRAD)[0]


def excluded(name: str, no_grad_set: Iterable[str]) -> bool:
    """Whether ``no_grad_set`` names the variable ``name`` or its gradient."""
    return name in no_grad_set or grad_name(name) in no_grad_set


def matching(key: str, legal: Sequence[str]) -> str | None:
    """Returns the slot among ``legal`` that an OpDesc means by ``key``, or None.

    ``Out@GRAD`` is another name of ``d_Out``. Where no slot has exactly the name, case is ignored
    (``X`` is ``x``).

    Example:
        >>> matching("X", ["x", "y"]), matching("Out@GRAD", ["x", "d_out"])
        ('x', 'd_out')
    """
    name = COTANGENT + key.removesuffix(GRAD) if key.endswith(GRAD) else key
    if name in legal:
        return name
    folded = [one for one in legal if one.casefold() == name.casefold()]
    return folded[0] if len(folded) == 1 else None
