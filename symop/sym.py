"""``so.sym``: the operators under the name that MXNet users know; the functions of ``so.*``."""

from registry.operator import Operator
from registry.table import get, names
from symop.building import Group, var
from symop.symbol import Symbol

__all__ = ["Group", "Symbol", "Variable", "var"]

Variable = var


def __getattr__(name: str) -> Operator:
    """The operator called ``name``."""
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return get(name)
    except LookupError as error:
        raise AttributeError(f"sym: {error}", name=name) from None


def __dir__() -> list[str]:
    """Names of this module, operators included."""
    return sorted([*globals(), *names(aliases=True)])
