"""Pages of the API reference: every public name, with its signature and its docstring."""

import importlib
import inspect
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from registry.operator.operator import Operator


class Page(NamedTuple):
    """A page of the reference.

    Attributes:
        title: its heading.
        module: the module whose names it shows.
        prefix: how users write the module.
        names: the names, or None for all public ones.
    """

    title: str
    module: str
    prefix: str
    names: tuple[str, ...] | None = None


def _of_symop(title: str, *names: str) -> Page:
    return Page(title, "symop", "so", names)


PAGES = {
    "graphs": _of_symop(
        "Graphs", "Symbol", "var", "Group", "name_scope", "load", "load_json", "from_desc",
        "load_parameters", "save_parameters", "Executor", "SymopError",
    ),
    "derivatives": _of_symop(
        "Derivatives", "grad", "jvp", "value_and_grad", "derivative", "jacobian", "hessian", "hvp",
        "taylor", "laplacian", "biharmonic", "divergence", "curl", "linear_operator", "partial",
        "random_directions",
    ),
    "programs": _of_symop(
        "Programs", "Program", "Variable", "program_guard", "data", "parameter", "append_backward",
        "LoDTensor",
    ),
    "layers": _of_symop("Layers and generation", "multi_head_attention", "Generator"),
    "control-flow": _of_symop(
        "Control flow and vectorization", "cond", "while_loop", "scan", "foreach", "body", "vmap",
    ),
    "jax": _of_symop("Functions of JAX", "from_jax", "transform"),
    "reports": _of_symop(
        "Reports and drawings", "explain", "draw", "loops", "rolling", "streaming", "rewriting",
    ),
    "devices": _of_symop("Many devices", "plan", "propose_rules", "pipeline"),
    "remat": Page("Rematerialization", "symop.remat", "so.remat"),
    "ndarray": _of_symop("The class NDArray", "NDArray"),
    "nd": Page("Eager arrays", "symop.nd", "so.nd"),
    "nd-linalg": Page("Linear algebra on eager arrays", "symop.nd.linalg", "so.nd.linalg"),
    "autograd": Page("Recorded gradients", "symop.autograd", "so.autograd"),
    "sym": Page("Symbols by MXNet's names", "symop.sym", "so.sym"),
    "random": Page("Random numbers", "symop.random", "so.random"),
    "optim": Page("Optimizers", "symop.optim", "so.optim"),
    "train": Page("Training", "symop.train", "so.train"),
    "checkpoint": Page("Checkpoints", "symop.checkpoint", "so.checkpoint"),
    "testing": Page("Proofs", "symop.testing", "so.testing"),
    "caches": Page("Caches", "registry.caches", "so.caches"),
    "registry": Page("Declaring operators", "registry", "registry"),
}  # fmt: skip
"""The pages by name. Those of ``symop`` must show each of its public names."""


def shown() -> Iterator[tuple[Page, str, str, Any]]:
    """Yields page, name as users write it, name of the module that defines it, and the object."""
    for page in PAGES.values():
        module = _module(page.module)
        for name in page.names or public_names(module):
            yield page, f"{page.prefix}.{name}", f"{page.module}.{name}", getattr(module, name)


def public_names(module: ModuleType) -> Sequence[str]:
    """Returns the names that a module declares or, without a declaration, defines."""
    declared: Sequence[str] | None = vars(module).get("__all__")
    if declared is not None:
        return [name for name in declared if not inspect.ismodule(getattr(module, name))]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def pages() -> dict[str, str]:
    """Returns the text of each page, by its path."""
    texts: dict[Page, list[str]] = {}
    first: dict[str, tuple[Page, str]] = {}
    for page, name, place, value in shown():
        lines = texts.setdefault(page, [f"# {page.title}", "", _about(page), ""])
        operator = getattr(value, "operator", None)
        if isinstance(operator, Operator):
            of = operator.name
            lines += [
                f"### `{name}`",
                "",
                f"The operator [`{of}`](../operators/{of}.md) on arrays.",
            ]
            lines.append("")
            continue
        path = _path(place, value)
        if path in first:
            owner, other = first[path]
            lines += [f"### `{name}`", "", f"Another name of [`{other}`]({_file(owner)}).", ""]
            continue
        first[path] = page, name
        lines += [f"::: {path}", "    options:", f'      heading: "{name}"']
        lines += [f'      toc_label: "{name.rpartition(".")[2]}"', ""]
    result = {f"api/{_file(page)}": "\n".join(lines) for page, lines in texts.items()}
    return {"api/index.md": _index(), **result}


def navigation() -> list[str]:
    """Returns the paths of the pages, in order."""
    return [f"api/{name}.md" for name in PAGES]


def _file(page: Page) -> str:
    return next(f"{name}.md" for name, one in PAGES.items() if one == page)


def _path(place: str, value: Any) -> str:
    """Returns where an object is defined; a constant is defined where it is found."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    ours = isinstance(module, str) and module.partition(".")[0] in ("registry", "symop")
    return f"{module}.{name}" if ours and isinstance(name, str) else place


def _about(page: Page) -> str:
    """Returns the first paragraphs of a module's docstring."""
    if page.names is not None:
        return "`import symop as so`"
    said = inspect.getdoc(_module(page.module)) or ""
    return said.partition("\n\n    ")[0].partition("\nExample:")[0].strip()


def _index() -> str:
    lines = ["# API reference", "", "Every public name, with its signature and what it does.", ""]
    lines += ["| page | names |", "|---|---|"]
    rows: dict[Page, list[str]] = {}
    for page, name, place, value in shown():
        is_operator = isinstance(getattr(value, "operator", None), Operator)
        link = f"`{name}`" if is_operator else f"[`{name}`][{_path(place, value)}]"
        rows.setdefault(page, []).append(link)
    lines += [f"| [{page.title}]({_file(page)}) | {', '.join(row)} |" for page, row in rows.items()]
    return "\n".join(
        [
            *lines,
            "",
            "The operators of the catalogue, such as `so.softmax`, are public names, too: "
            "[a page for each](../operators.md). `symop.interop.mxnet` has "
            "[MXNet's names](../mxnet.md).",
            "",
        ]
    )


def _module(name: str) -> ModuleType:
    """Returns a module by the name that users know, which may be an attribute of another one."""
    module = importlib.import_module("symop" if name.startswith("symop") else "registry")
    for attribute in name.split(".")[1:]:
        module = getattr(module, attribute)
    return module
