"""Interoperability with other systems: loading their models, and running their scripts.

``so.interop.mxnet`` and ``so.interop.paddle`` import the module of that name when it is looked up.
"""

import importlib
from types import ModuleType

SYSTEMS = ("mxnet", "paddle")


def __getattr__(name: str) -> ModuleType:
    """Imports the module of a system."""
    if name not in SYSTEMS:
        raise AttributeError(f"interop: no system is called {name!r}", name=name)
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    """Returns the names of the systems, and of what else the module holds."""
    return sorted({*globals(), *SYSTEMS})
