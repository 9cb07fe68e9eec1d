"""Names in OpDescs: those of gradients, and of slots as other systems write them."""

from collections.abc import Iterable, Sequence

GRAD = "@GRAD"
"""Ends the name of a variable's gradient."""
EMPTY = "@EMPTY@"
"""Stands for a gradient that nobody wants."""
COTANGENT = "d_"
"""Begins the name of the slot that holds an output's cotangent, or an input's gradient."""
TANGENT = "t_"
"""Begins the name by which a rule asks for the tangent of an input."""


def grad_name(name: str) -> str:
    """The name of the gradient of the variable called ``name``."""
    return name + GRAD


def excluded(name: str, no_grad_set: Iterable[str]) -> bool:
    """Whether ``no_grad_set`` names the variable ``name`` or its gradient."""
    return name in no_grad_set or grad_name(name) in no_grad_set


def matching(given: str, legal: Sequence[str]) -> str | None:
    """The slot among ``legal`` that an OpDesc means by ``given``, or None.

    ``Out@GRAD`` is another name of ``d_Out``; where no slot has exactly the name, upper and lower
    case are one (``X`` is ``x``).

    Example:
        >>> matching("X", ["x", "y"]), matching("Out@GRAD", ["x", "d_out"])
        ('x', 'd_out')
    """
    name = COTANGENT + given.removesuffix(GRAD) if given.endswith(GRAD) else given
    if name in legal:
        return name
    folded = [one for one in legal if one.casefold() == name.casefold()]
    return folded[0] if len(folded) == 1 else None
