"""symop: operators and their gradients as data on JAX.

Every registered operator is a function of this module: ``so.sin(v)`` takes a symbol or an array
and returns a value of the same kind.

``import symop`` imports neither JAX nor the catalogue of operators. The first lookup of a name
imports ``symop.public``, which contains all names.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from symop import shadowing as _shadowing  # must precede every import of registry

if TYPE_CHECKING:
    from registry.operator.operator import Operator
    from symop.public import *  # noqa: F403  # these names are found by __getattr__

__version__ = "0.1.0"

del _shadowing


def __getattr__(name: str) -> "Operator":
    """Returns the public name, module or operator called ``name``."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"symop: no attribute {name!r}", name=name)
    # Python's import system fails in threads that import modules of a package while others import
    # the package. The package is therefore imported first, and all threads wait for it.
    importlib.import_module("registry")
    # A module of this package is imported alone: `from symop import random`, which other modules
    # contain, must not import all of them.
    alone = importlib.util.find_spec(f"{__name__}.{name}") is not None
    result: Operator = _module(name) if alone else getattr(_public(), name)
    return result


def __dir__() -> list[str]:
    """Returns the public names, including operators."""
    return dir(_public())


def _module(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}")


def _public() -> Any:
    """Loads the public names into this module; later lookups bypass its ``__getattr__``."""
    public = _module("public")
    names = {one: getattr(public, one) for one in ("__all__", *public.__all__)}
    globals().update(names, __getattr__=public.__getattr__, __dir__=public.__dir__)
    return public
