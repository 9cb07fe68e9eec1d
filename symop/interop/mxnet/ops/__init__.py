"""MXNet's operators over the catalogue, one file per family; importing it fills the table."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
