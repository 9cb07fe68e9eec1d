"""Bodies that are read when something inside of them is needed."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from registry.errors import NotDifferentiableError
from registry.operator.bodies import Body
from registry.types import VarType
from symop.regions.bodies import GraphBody


class LazyBody(GraphBody):
    """A body of known types whose graph is built when it is first needed.

    It is equal to no other body; its ``content`` is.
    """

    def __init__(
        self,
        inputs: Sequence[VarType],
        outputs: Sequence[VarType],
        read: Callable[[], GraphBody | None],
    ) -> None:
        """Creates a body that ``read`` returns, or whose absence it reports by None."""
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.updating = self.draws = self.native = self.costly = self.sealed = False
        self.derives, self.lazy, self.depth = False, True, 1
        self._read = functools.cache(read)

    def __getattr__(self, name: str) -> Any:
        if name not in ("parameters", "results", "keys", "_memo"):
            raise AttributeError(name)
        return getattr(self._read(), name)

    @property
    def refuses(self) -> bool:
        """Whether it is a derivative rule that refuses to be read."""
        try:
            self._read()
        except NotDifferentiableError:
            return True
        return False

    @property
    def content(self) -> Body | None:
        """The body that was read; None if it is absent."""
        return self._read()
