"""Pages of the families of operators, and their part of the navigation."""

import importlib
import inspect
from collections.abc import Iterable
from typing import Any

import registry
from registry.operator.operator import Operator
from symop.commands.ops import family_of

_TITLES = {
    "control_flow": "Control flow",
    "conv": "Convolution and pooling",
    "core": "Core",
    "elementwise": "Elementwise",
    "fourier": "Fourier transforms",
    "indexing": "Indexing",
    "lax": "JAX's primitives",
    "linalg": "Linear algebra",
    "loss": "Losses",
    "nn": "Neural networks",
    "optim": "Optimizers",
    "random": "Random numbers",
    "reduce": "Reductions and scans",
    "rnn": "Recurrent layers",
    "rows": "Row-sparse values",
    "sequence": "Ragged sequences",
    "shape": "Shapes",
    "vision": "Vision",
}


def families() -> dict[str, list[Operator]]:
    """Returns the operators of the catalogue by family, in the order of the families' titles."""
    result: dict[str, list[Operator]] = {}
    for operator in registry.operators():
        if operator.__module__.startswith("registry."):
            result.setdefault(family_of(operator), []).append(operator)
    return dict(sorted(result.items(), key=lambda pair: _title(pair[0])))


def pages() -> dict[str, str]:
    """Returns a page for each family, by its path."""
    return {_path(family): _page(family, members) for family, members in families().items()}


def navigation() -> list[Any]:
    """Returns the entries of the families, each with the pages of its operators."""
    return [
        {_title(family): [_path(family), *(f"operators/{one.name}.md" for one in members)]}
        for family, members in families().items()
    ]


def _title(family: str) -> str:
    return _TITLES.get(family, family)


def _path(family: str) -> str:
    return f"families/{family}.md"


def _page(family: str, members: Iterable[Operator]) -> str:
    rows = [
        f"| [`{one.name}`](../operators/{one.name}.md) | {_summary(one)} | {one.derivative.value} |"
        for one in members
    ]
    return "\n".join(
        [
            f"# {_title(family)}",
            "",
            _about(family),
            "",
            "| operator | what it is | derivative |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _about(family: str) -> str:
    """Returns what the package of a family says that it holds."""
    said = inspect.getdoc(importlib.import_module(f"registry.ops.{family}")) or ""
    return said.partition("\n\n")[0].replace("``", "`").replace("\n", " ")


def _summary(operator: Operator) -> str:
    first = (inspect.cleandoc(operator.__doc__ or "")).partition("\n\n")[0]
    return first.replace("\n", " ").replace("``", "`").replace("|", "\\|")
