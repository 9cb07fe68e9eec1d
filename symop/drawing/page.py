"""Interactive drawings: one HTML page that contains its model, its style and its scripts.

The scripts in ``viewer/`` are ES modules, so that editors and linters understand them. The page
holds them as one script, without their imports and exports. The layout is by dagre, which is not
part of this repository: ``build_viewer.py`` fetches it, for wheels and for ``make viewer``.
"""

import functools
import json
import re
from html import escape
from pathlib import Path
from typing import Any

from registry.errors import MissingViewerError

_FOLDER = Path(__file__).parent / "viewer"
_SCRIPTS = (
    *("text", "model", "links", "card", "layout", "camera", "render", "details", "search", "main"),
)
"""The modules, each after those that it imports."""
_MODULE_LINES = re.compile(r"^import .*\n|^export ", re.MULTILINE)
_FRAME = (
    'style="width:100%;height:{height}px;border:1px solid #8885;border-radius:6px" '
    'sandbox="allow-scripts"'
)


def has_viewer() -> bool:
    """Whether the library that lays out interactive drawings is installed."""
    return (_FOLDER / "dagre.js").exists()


def page(model: dict[str, Any]) -> str:
    """Returns the page that shows ``model``; it loads nothing from elsewhere.

    Raises:
        MissingViewerError: the layout library is not installed.
    """
    parts = {
        "title": escape(model["title"]),
        "style": (_FOLDER / "style.css").read_text(encoding="utf-8"),
        "model": embedded(model),
        "scripts": _scripts(),
    }
    template = (_FOLDER / "page.html").read_text(encoding="utf-8")
    return re.sub(r"%(\w+)%", lambda match: parts.get(match[1], match[0]), template)


def framed(model: dict[str, Any], height: int = 640) -> str:
    """Returns the page as an element for a notebook, apart from the scripts of the notebook."""
    return f'<iframe srcdoc="{escape(page(model))}" {_FRAME.format(height=height)}></iframe>'


def embedded(model: dict[str, Any]) -> str:
    """Returns ``model`` as JSON that cannot end the script element that contains it."""
    text = json.dumps(model, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@functools.cache
def _scripts() -> str:
    """Returns the layout library and the modules as one script."""
    if not has_viewer():
        raise MissingViewerError(
            "to_html: the layout library of interactive drawings must be installed, and is not in "
            "this checkout; run  make viewer  there, which needs npm, or install a wheel"
        )
    modules = [(_FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    own = "\n".join(_MODULE_LINES.sub("", text) for text in modules)
    library = (_FOLDER / "dagre.js").read_text(encoding="utf-8")
    return f'{library}\n"use strict";\n{{\n{own}\n}}'
