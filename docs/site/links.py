"""Links of pages to files that the site shows elsewhere, or does not show."""

import posixpath
import re
from collections.abc import Callable

PAGES = {
    "README.md": "overview.md",
    "docs/README.md": "index.md",
    "docs": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
"""Pages outside of ``docs/``, and where the site shows them."""
_CODE = re.compile(r"^(?P<fence>```+).*?^(?P=fence)[ \t]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")


def place_of(path: str) -> str | None:
    """Returns where the site shows a file of the repository, or None."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("notebooks/"):
        name = path.removeprefix("notebooks/")
        return f"tutorials/{re.sub(r'[.]ipynb$', '.md', name)}"
    inside = path.removeprefix("docs/")
    return inside if inside != path and inside.endswith((".md", ".svg")) else None


def rewritten(markdown: str, source: str, page: str) -> str:
    """Returns a page with its links as the site needs them.

    Args:
        markdown: the page.
        source: its path in the repository.
        page: its path in the site.
    """

    def link(match: re.Match[str]) -> str:
        path, sign, anchor = match["target"].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return match[0]
        place = place_of(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        if place is None:
            return match["text"]
        target = posixpath.relpath(place, posixpath.dirname(page) or ".")
        return f"[{match['text']}]({target}{sign}{anchor})"

    return outside_of_code(markdown, lambda prose: _LINK.sub(link, prose))


def with_prompts(markdown: str) -> str:
    """Returns a page whose examples with prompts are highlighted as such."""
    return re.sub(r"^```python\n(?=>>>)", "```pycon\n", markdown, flags=re.MULTILINE)


def with_pipes(markdown: str) -> str:
    """Returns a page whose tables have plain ``|`` in code: Python-Markdown shows the backslash."""
    return re.sub(
        r"^\|.*\|$",
        lambda row: re.sub(r"`[^`\n]+`", lambda code: code[0].replace("\\|", "|"), row[0]),
        markdown,
        flags=re.MULTILINE,
    )


def without_search(markdown: str) -> str:
    """Returns the page of an operator with sections that the search leaves out."""
    return re.sub(r"^(## \w+)$", r"\1 { data-search-exclude }", markdown, flags=re.MULTILINE)


def outside_of_code(markdown: str, change: Callable[[str], str]) -> str:
    """Returns a page with its prose changed, and its code as it is."""
    # A link's text may hold code, so that code is put aside and back rather than skipped.
    kept: list[str] = []

    def aside(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    changed = change(_CODE.sub(aside, markdown))
    return re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], changed)
