"""Discovery of the operators that a user's module declares, by importing it."""

import functools
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from registry.errors import ArgumentError, SymopError, nearest
from registry.operator.operator import Operator
from registry.table import find, load_plugins, names, operators


class ModuleFailedError(SymopError, ImportError):
    """An error raised while a module was imported; the text is its traceback."""

    def __init__(self, module: str, text: str) -> None:
        super().__init__(text)
        self.module = module


def declared_by(target: str) -> list[Operator]:
    """Returns the operators that ``target`` declares, in alphabetical order.

    Args:
        target: a path to a ``.py`` file, an operator's name, or a dotted module name, which is
            also looked up in the current directory.

    Raises:
        ArgumentError: ``target`` is none of these.
        ModuleFailedError: the import of the module raised an error.
    """
    if target.endswith(".py"):
        if not Path(target).is_file():
            raise ArgumentError(f"check: there must be a file of this name, got {target!r}")
        return _from(target, functools.partial(_import_file, Path(target)))
    operator = find(target)
    if operator is not None:
        return [operator]
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if target.startswith(".") or not _exists(target):
        raise ArgumentError(
            "check: there must be a module, a .py file or an operator of this name, got "
            f"{target!r}{nearest(target, names())}"
        )
    return _from(target, functools.partial(importlib.import_module, target))


def _from(target: str, load: Callable[[], ModuleType]) -> list[Operator]:
    """Returns the operators declared in a module or its package, or registered by its import."""
    load_plugins()  # so that operators registered by plugins are not attributed to the module
    before = {one.name: one for one in operators()}
    try:
        module = load().__name__
    except (Exception, SystemExit) as error:
        raise ModuleFailedError(target, _trace(error)) from error
    return [
        one
        for one in operators()
        if before.get(one.name) is not one
        or one.__module__ == module
        or (one.__module__ or "").startswith(f"{module}.")
    ]


def _exists(module: str) -> bool:
    """Whether a module of this name exists; its parent packages are imported to find out."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError as error:
        # If a different module is missing, this one exists, and its import reports the error.
        return not f"{module}.".startswith(f"{error.name}.")
    except ValueError:  # an invalid module name, or a module not loaded from a file
        return module in sys.modules
    except Exception:  # the module exists, and its import reports the error
        return True


def _import_file(path: Path) -> ModuleType:
    """Imports a file as Python runs it: with its folder first on the path."""
    path = path.resolve(strict=True)
    name = path.stem if path.stem not in sys.modules else f"checked_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _trace(error: BaseException) -> str:
    """Returns the traceback without frames of this file and of Python's import system."""
    report = traceback.TracebackException.from_exception(error)
    kept = [
        frame
        for frame in report.stack
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    report.stack = traceback.StackSummary.from_list(kept)
    return "".join(report.format())
