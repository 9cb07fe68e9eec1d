"""Interactive drawings of 10,000 operators: making the page, and frames in headless Chromium."""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from measure import Figure, alone

import symop as so

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from browser import Browser, installed
from drawn_models import gpt, tangle, with_gradient

TITLE = "Drawings"
OPERATORS = 10_000
FRAME, OPEN = 1 / 30, 2.0
REMARKS = [
    f"The first graph has {OPERATORS:,} operators without structure; GPT has 130 blocks and its "
    "gradient, more than 10,000 operators. Both pages are opened in headless Chromium without a "
    "GPU, in a window of 1,400 by 900 pixels.",
    "A frame is the median time from one of 60 frames to the next while the drawing moves or is "
    "zoomed; the browser shows at most 60 in a second, 16.7 ms.",
]
FRAMES = """(async () => {
  const times = [];
  let last = await new Promise(requestAnimationFrame);
  for (let i = 0; i < 60; i++) {
    %s;
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
  }
  return times.sort((a, b) => a - b)[30] / 1000;
})()"""
MOVES = {
    "a frame while it moves": "drawing.camera.move(i < 30 ? -9 : 9, i < 30 ? -23 : 23)",
    "a frame while it is zoomed": "drawing.camera.zoomCenter(i < 30 ? 0.93 : 1 / 0.93)",
}


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of drawings; those in a browser where one is installed."""
    deep = 13 if quick else 130
    graphs = {
        "without structure": tangle(OPERATORS // 10 if quick else OPERATORS),
        f"GPT of {deep} blocks": with_gradient(gpt(deep)),
    }
    figures = list[Figure]()
    with tempfile.TemporaryDirectory() as folder:
        for name, graph in graphs.items():
            path = Path(folder) / "page.html"
            made = alone(f"{name}: making the page", partial(saved, graph, path), repeats=1)
            figures.append(made)
            if installed() is not None:
                with Browser() as browser:
                    figures += in_browser(name, browser, path)
    return figures, {"remarks": REMARKS}


def saved(graph: Any, path: Path) -> None:
    """Draws a graph into a page."""
    so.draw(graph).save(path)


def in_browser(name: str, browser: Any, path: Path) -> list[Figure]:
    """The figures of a page in a browser, as it opens and with all that a click unfolds."""
    start = time.perf_counter()
    browser.open(path)
    browser.evaluate(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    figures = [bounded(f"{name}: opening it", time.perf_counter() - start, OPEN)]
    for state in ("folded", "unfolded"):
        for title, move in MOVES.items():
            taken = browser.evaluate(FRAMES % move)
            figures.append(bounded(f"{name}, {state}: {title}", taken, FRAME))
        browser.evaluate("(drawing.unfold(), drawing.unfold(), drawing.fit())")
    return figures


def bounded(name: str, taken: float, most: float) -> Figure:
    """A time against the most that it may be."""
    return Figure(name, taken, most, taken / most, target=1.0)
