"""Every link of the documentation leads to a file and to a heading that exist."""

import functools
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/*.ipynb")])
CODE = re.compile(r"^(```+|~~~+).*?^\1\s*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
GENERATED = re.compile(r"(\.\./)?(api/|site/gradient\.svg)")
"""What the site adds; `make docs` checks these links."""
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


@functools.cache
def prose_of(path):
    """A page without its code; of a notebook the text between its cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return text


@functools.cache
def anchors_of(path):
    """The anchors of a page's headings, as repository hosts and the site make them."""
    anchors, prose = [], re.sub(r"^```.*?^```\s*$", "", prose_of(path), flags=re.M | re.S)
    for heading in HEADING.findall(prose):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower().replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        repeated = sum(
            one == slug or re.fullmatch(rf"{re.escape(slug)}-\d+", one) is not None
            for one in anchors
        )
        anchors.append(f"{slug}-{repeated}" if repeated else slug)
    return anchors


def broken(path):
    """The links of a page that lead nowhere."""
    for target in LINK.findall(CODE.sub("", prose_of(path))):
        if re.match(r"[a-z]+:", target) or (path.name == "index.md" and GENERATED.match(target)):
            continue
        name, _, anchor = target.partition("#")
        page = (path.parent / name).resolve() if name else path
        exists = page.exists() and ROOT in page.parents
        if not exists or (anchor and page.suffix == ".md" and anchor not in anchors_of(page)):
            yield target


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in PAGES}), ids=lambda path: path.name
)
def test_links_lead_somewhere(folder):
    pages = [path for path in PAGES if path.parent == folder]
    wrong = {str(path.relative_to(ROOT)): list(broken(path)) for path in pages}
    assert {path: links for path, links in wrong.items() if links} == {}


def test_the_site_shows_every_page():
    shown = set(
        re.findall(r"^ +- (?:.*: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    )
    pages = {
        str(path.relative_to(ROOT / "docs")) for path in PAGES if ROOT / "docs" in path.parents
    }
    written = {page for page in pages if not page.startswith("operators/")} - {"README.md"}
    assert written <= shown
    notebooks = {f"tutorials/{path.stem}.md" for path in ROOT.glob("notebooks/*.ipynb")}
    assert notebooks <= shown


def test_the_index_of_the_host_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text()
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/guides/*.md")]
    names = {str(path.relative_to(ROOT / "docs")) for path in pages} - {"README.md", "index.md"}
    assert {name for name in names if f"]({name})" not in index} == set()


def test_a_broken_link_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# A `b`: c\n\n## Twice\n\n## Twice\n\n```\n# code\n```\n")
    page = tmp_path / "page.md"
    right = "[a](other.md) [b](other.md#a-b-c) [c](other.md#twice-1) [d](https://x.y) `[e](no)`"
    page.write_text(f"{right} [f](absent.md) [g](other.md#twice-2) [h](#absent) [i](other.md#code)")
    assert list(broken(page)) == ["absent.md", "other.md#twice-2", "#absent", "other.md#code"]
