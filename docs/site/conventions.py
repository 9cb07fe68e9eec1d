"""An extension of Griffe: docstrings by its conventions, classes without their operators."""

import re
from collections.abc import Iterator
from typing import Any

import griffe


class Conventions(griffe.Extension):
    """Reads the section ``Example:`` as ``Examples:``, which Griffe shows as code."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rename the section in the docstring of ``obj``."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(
                r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE
            )

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Leave out the methods of symbols and arrays that are operators: each has its own page."""
        for module in _modules(pkg):
            if module.name == "method_types":
                for one in module.classes.values():
                    one.members.clear()


def _modules(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for inner in module.modules.values():
        if not inner.is_alias:
            yield from _modules(inner)
