"""Sites of declarations: whether a user's source declares an operator again by running again."""

import os
import re
import sys
from typing import Any

from registry.tracebacks import is_own_file

_CELL = re.compile(r"<(stdin|ipython-input-|python-input-)")


class Site:
    """The line of a user's source that declares an operator.

    Attributes:
        file: the file, or the temporary name of a cell.
        line: the line.
        superseded: whether the same source has declared the operator again since.
    """

    __slots__ = ("_globals", "_spec", "file", "line", "superseded")

    def __init__(self, file: str, line: int, names: dict[str, Any]) -> None:
        """Describes a line of the module whose global names are ``names``."""
        self.file, self.line, self.superseded = file, line, False
        self._globals, self._spec = names, names.get("__spec__")

    def repeats(self, other: "Site") -> bool:
        """Whether this declaration is made by the source of ``other``, running again.

        This holds for cells of one notebook or interpreter, where a name means what was executed
        last, and for a file that is executed a second time: a module that ``importlib.reload``
        loads has a new ``__spec__``, a script that runs again new global names. Two declarations in
        one execution of a file are two.
        """
        if self.is_cell and other.is_cell:
            return self._globals is other._globals
        again = self._globals is not other._globals or self._spec is not other._spec
        return again and self.file == other.file and not self.file.startswith("<")

    @property
    def is_cell(self) -> bool:
        """Whether the source is a cell of a notebook or a line of an interpreter."""
        folder = os.path.basename(os.path.dirname(self.file))
        in_cell = folder.startswith("ipykernel_") or _CELL.match(self.file) is not None
        return in_cell and self._globals.get("__name__") == "__main__"


def present_site() -> Site:
    """Returns the innermost line that is being executed outside symop and JAX."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
