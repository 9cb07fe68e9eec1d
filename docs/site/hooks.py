"""Events of MkDocs: pages that are generated, and links that the site needs otherwise."""

import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import api  # noqa: E402  # found by the path above
import links  # noqa: E402
import operators  # noqa: E402
import picture  # noqa: E402
import tutorials  # noqa: E402

_LISTS = (
    "operators.md",
    "names.md",
    "speed.md",
    "benchmarks.md",
    "project/changelog.md",
)
"""Pages that mention almost everything."""
_sources: dict[str, str] = {}
"""The path in the repository of each page that is made of a file outside of ``docs/``."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the generated pages to the navigation."""
    _section(config, "Operators").extend(operators.navigation())
    _section(config, "Reference").insert(1, {"API": api.navigation()})
    return config


def _section(config: MkDocsConfig, title: str) -> list[Any]:
    entries: list[Any] = next(one[title] for one in config.nav or [] if title in one)
    return entries


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, the notebooks and the pages of the repository's root."""

    def add(path: str, content: str | bytes) -> None:
        files.append(File.generated(config, path, content=content))

    for path, text in {**api.pages(), **operators.pages()}.items():
        add(path, text)
    for name, path in links.PAGES.items():
        if "/" not in name and name != "docs":
            _sources[path] = name
            add(path, (ROOT / name).read_text(encoding="utf-8"))
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        text, pictures = tutorials.page_of(notebook, ROOT)
        _sources[f"tutorials/{notebook.stem}.md"] = f"notebooks/{notebook.name}"
        add(f"tutorials/{notebook.stem}.md", text)
        for name, data in pictures.items():
            add(f"tutorials/{name}", data)
    add("site/gradient.svg", picture.svg())
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to what lies elsewhere, and mark examples with prompts."""
    del config, files
    path = page.file.src_uri
    page.meta.setdefault("search", {"boost": _boost(path)})
    if path.startswith("api/"):
        return markdown
    if path.startswith("operators/"):
        markdown = links.without_search(markdown)
    if not path.startswith("families/"):
        markdown = links.rewritten(markdown, _sources.get(path, f"docs/{path}"), path)
    return links.with_pipes(links.with_prompts(markdown))


def _boost(path: str) -> float:
    """Returns how much the search prefers a page: what a name means before what mentions it."""
    if path.startswith("operators/"):
        # Of operators whose names have a word in common, the shortest name is meant.
        return 6.0 / (1 + Path(path).stem.count("_"))
    if path in _LISTS:
        return 0.5
    page = api.PAGES.get(Path(path).stem) if path.startswith("api/") else None
    if page is None or page.module == "registry":
        return 1.0
    return 8.0 if page.module == "symop" else 4.0


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave source code out of the search."""
    del page, config, files
    return html.replace(
        '<details class="mkdocstrings-source"',
        '<details data-search-exclude class="mkdocstrings-source"',
    )
