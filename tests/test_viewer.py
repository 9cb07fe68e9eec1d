"""Interactive drawings: their model as data, the page as text, and the page in a browser."""

import ast
import json
import re
from pathlib import Path

import drawn_models as models
import pytest
from browser import Browser, installed

import symop as so
from symop.drawing import page as pages
from symop.drawing.boxes import boxes_of, is_operator
from symop.drawing.model import DEFAULTS, Spent, model_of

VIEWER = Path(pages.__file__).parent / "viewer"
needs_viewer = pytest.mark.skipif(
    not pages.has_viewer(), reason="the layout library is not there: make viewer"
)
needs_browser = pytest.mark.skipif(installed() is None, reason="no Chromium is installed")


# The model ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return so.draw(models.with_gradient(models.gpt())).model()


def test_the_model_is_data(model):
    assert json.loads(json.dumps(model)) == model
    assert [one.get("parent", -1) for one in model["blocks"]][:2] == [-1, 0]
    for i, block in enumerate(model["blocks"]):
        assert block.get("parent", -1) < i
        assert {"kind", "title", "lines", "paint", "about", "facts"} <= set(block)
    for source, _, target, over in model["edges"]:
        assert 0 <= source < len(model["blocks"])
        assert 0 <= target < len(model["blocks"])
        assert over == -1 or model["blocks"][over]["kind"] == "repeat"


def test_the_model_counts_what_the_graph_holds(model):
    blocks = model["blocks"]
    block = next(one for one in blocks if one["kind"] == "repeat")
    assert block["title"] == "block × 12"
    norm = next(one for one in blocks if one["title"] == "norm1: layer_norm")
    assert ["times", "12"] in norm["facts"]
    assert "block7_norm1" in dict(norm["facts"])["names"]
    assert re.fullmatch(r"drawn_models.py:\d+", dict(norm["facts"])["built at"])
    assert norm["cost"] == {
        "flops": None,
        "bytes": 12 * (2 * 4 * 8 + 2 * 2 * 4) * 4,
        "seconds": None,
    }


def test_gradients_know_their_block(model):
    blocks = model["blocks"]
    twins = [(one, blocks[one["twin"]]) for one in blocks if one.get("twin", -1) >= 0]
    assert len(twins) > 20
    for one, forward in twins:
        assert one["back"]
        assert not forward.get("back", False)


def test_bodies_count_once_for_each_step():
    made = so.draw(models.flow()).model()
    matmul = next(one for one in made["blocks"] if one["title"] == "matmul")
    assert matmul["cost"]["bytes"] == 10 * 3 * 4


def test_costs_are_those_of_all_that_a_box_represents():
    symbol = models.lstm(12)
    boxes, _ = boxes_of(symbol.nodes)
    costs = {box.node: Spent(2.0, 0.5) for box in boxes if is_operator(box.node)}
    made = model_of(symbol._subject(), costs=costs)
    known = [one["cost"] for one in made["blocks"] if one.get("cost")]
    assert sum(one["flops"] for one in known) == 2.0 * len(costs)
    assert sum(one["seconds"] for one in known) == 0.5 * len(costs)


def test_operators_have_a_page_and_a_gradient(model):
    softmax = model["operators"]["softmax"]
    assert softmax["signature"].startswith("softmax(x, *")
    assert softmax["page"].startswith("Softmax along")
    x, d_out = (so.var(name, (2, 2, 4, 4), "float32") for name in ("x", "d_out"))
    assert softmax["gradient"] == f"{so.grad(so.softmax(x), x, d_out)}\n"
    assert "no differentiable" in model["operators"]["less"]["gradient"]


def test_a_graph_without_types_has_a_model():
    made = so.draw(so.sin(so.var("x")) * so.var("y")).model()
    assert {one["title"] for one in made["blocks"]} >= {"sin", "x"}


def test_defaults_are_those_of_the_viewer():
    text = (VIEWER / "model.js").read_text()
    (found,) = re.findall(r"^const DEFAULTS = \{(.*)\};$", text, re.MULTILINE)
    quoted = re.sub(r"(\w+):", r'"\1":', found)
    words = {"false": "False", "null": "None"}
    python = re.sub("|".join(words), lambda match: words[match[0]], quoted)
    assert ast.literal_eval(f"{{{python}}}") == DEFAULTS


# The page ----------------------------------------------------------------------------------------


def hostile():
    names = [
        "</script><script>window.hacked=1</script>",
        "<img src=x onerror=hacked=1>",
        "%model%",
        "a&b'\"",
    ]
    return so.Group([so.sin(so.var(name, (2,)), name=f"{name}!") for name in names])


@needs_viewer
def test_the_page_contains_all_that_it_needs():
    text = so.draw(models.flow(), title="flow").to_html()
    assert not re.search(r"(src|href)\s*=\s*[\"']?http|@import|url\(|^import ", text, re.MULTILINE)
    assert "default-src 'none'" in text
    assert "<title>flow</title>" in text
    (data,) = re.findall(
        r'<script type="application/json" id="model">(.*?)</script>', text, re.DOTALL
    )
    assert json.loads(data) == so.draw(models.flow(), title="flow").model()


@needs_viewer
def test_hostile_names_are_escaped():
    text = so.draw(hostile(), title="</title><script>hacked=1</script>").to_html()
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert "<img" not in text
    framed = so.draw(hostile())._repr_html_()
    assert framed.count("<") == 2
    assert framed.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in framed


@needs_viewer
def test_drawings_are_saved_by_suffix(tmp_path):
    drawing = so.draw(models.flow())
    drawing.save(tmp_path / "a.html")
    drawing.save(tmp_path / "a.svg")
    assert (tmp_path / "a.html").read_text() == drawing.to_html()
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    with pytest.raises(so.SymopError, match=r"must end with .html or .svg, got '.png'"):
        drawing.save(tmp_path / "a.png")


def test_without_the_library_the_error_says_what_to_run(monkeypatch):
    pages._scripts.cache_clear()
    monkeypatch.setattr(pages, "has_viewer", lambda: False)
    monkeypatch.setattr("symop.symbol.drawings.has_viewer", lambda: False)
    with pytest.raises(so.SymopError, match="make viewer"):
        so.draw(models.flow()).to_html()
    assert "<svg" in so.draw(models.flow())._repr_html_()
    pages._scripts.cache_clear()


def test_what_cannot_be_drawn_is_refused():
    for value in (3, so.Symbol, "x"):
        with pytest.raises(so.SymopError, match="draw: its argument must be"):
            so.draw(value)


# In a browser ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    with Browser() as one:
        yield one


@pytest.fixture
def opened(browser, tmp_path):
    """Opens the drawing of a graph; afterwards the page must have had no error and no request."""

    def open_page(graph, **options):
        path = tmp_path / "page.html"
        so.draw(graph, **options).save(path)
        browser.problems.clear()
        browser.open(path)
        settle(browser)
        return browser

    yield open_page
    assert browser.problems == []


def settle(page):
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def count(page, selector):
    return page.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")


def middle(page, title):
    """The middle of the box with a title, on the screen."""
    return page.evaluate(
        f"""(() => {{
          const text = [...document.querySelectorAll('.box text.name')]
            .find(one => one.textContent === {json.dumps(title)});
          const area = text.closest('.box').querySelector('rect').getBoundingClientRect();
          return [area.x + area.width / 2, area.y + area.height / 2];
        }})()"""
    )


@needs_viewer
@needs_browser
class TestInABrowser:
    def test_opens_with_the_blocks_of_the_model(self, opened):
        page = opened(models.with_gradient(models.gpt()), title="GPT")
        assert page.evaluate("document.querySelector('h1').textContent") == "GPT"
        model = so.draw(models.with_gradient(models.gpt())).model()
        seen = page.evaluate("drawing.renderer.spots.size")
        assert seen == sum(one.get("parent") in (0, *model["open"]) for one in model["blocks"])
        page.evaluate("drawing.fit()")
        settle(page)
        assert count(page, ".box, .frame") == seen

    def test_unfolds_by_a_click_and_folds_again(self, opened):
        page = opened(models.with_gradient(models.gpt()))
        before = page.evaluate("drawing.renderer.spots.size")
        x, y = middle(page, "block × 12")
        page.click(x, y, 1)
        page.click(x, y, 2)
        settle(page)
        inside = page.evaluate("drawing.renderer.spots.size") - before
        block = next(
            i
            for i, one in enumerate(so.draw(models.with_gradient(models.gpt())).model()["blocks"])
            if one["title"] == "block × 12"
        )
        assert inside == page.evaluate(f"drawing.model.blocks[{block}].children.length") > 10
        page.evaluate(f"drawing.toggle({block})")
        assert page.evaluate("drawing.renderer.spots.size") == before

    def test_finds_and_shows_an_operator(self, opened):
        page = opened(models.with_gradient(models.gpt()))
        page.press("/")
        page.type("block7_norm2")
        settle(page)
        assert count(page, "#results li:not(.count)") >= 1
        page.press("Enter", 13)
        settle(page)
        assert page.evaluate("document.querySelector('#results').hidden")
        assert (
            page.evaluate("document.querySelector('#details h2').textContent")
            == "norm2: layer_norm"
        )
        assert "block7_norm2" in page.evaluate("document.getElementById('details').textContent")
        x, y = middle(page, "norm2: layer_norm")
        assert 0 < x < 1400
        assert 0 < y < 900
        assert count(page, ".mark") > 1
        assert "# gradient of layer_norm" in page.evaluate(
            "[...document.querySelectorAll('#details pre')].at(-1).textContent"
        )

    def test_hovering_tells_line_type_and_memory(self, opened):
        page = opened(models.flow())
        page.move(*middle(page, "matmul"))
        text = page.evaluate("document.getElementById('tip').textContent")
        assert re.search(r"built at = ?drawn_models.py:\d+|built at drawn_models.py:\d+", text)
        assert "float32[3]" in text
        assert "results: 120 B" in text

    def test_zooms_and_moves(self, opened):
        page = opened(models.flow())
        page.call(
            "Input.dispatchMouseEvent", type="mouseWheel", x=700, y=400, deltaX=0, deltaY=-400
        )
        settle(page)
        scale = page.evaluate("drawing.camera.scale")
        x = page.evaluate("drawing.camera.x")
        page.press("0")
        assert page.evaluate("drawing.camera.scale") < scale
        page.call(
            "Input.dispatchMouseEvent",
            type="mousePressed",
            x=200,
            y=300,
            button="left",
            clickCount=1,
        )
        page.call(
            "Input.dispatchMouseEvent", type="mouseMoved", x=260, y=340, button="left", buttons=1
        )
        page.call(
            "Input.dispatchMouseEvent",
            type="mouseReleased",
            x=260,
            y=340,
            button="left",
            clickCount=1,
        )
        assert page.evaluate("drawing.camera.x") != x
        assert page.evaluate("document.getElementById('side').hidden")

    def test_is_light_or_dark_as_preferred(self, opened, browser):
        ground = "getComputedStyle(document.body).backgroundColor"
        page = opened(models.flow())
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        browser.prefer("dark")
        settle(page)
        assert page.evaluate(ground) == "rgb(18, 22, 28)"
        page.evaluate("document.getElementById('theme').click()")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        browser.prefer("light")

    def test_colors_by_memory(self, opened):
        page = opened(models.with_gradient(models.resnet18()))
        rects = "[...document.querySelectorAll('.box > rect')]"
        fill = f"{rects}.filter(one => one.style.fill).length"
        assert page.evaluate(fill) == 0
        page.evaluate(
            "const one = document.getElementById('color'); one.value = 'bytes';"
            "one.dispatchEvent(new Event('change'))"
        )
        assert page.evaluate(fill) > 5

    def test_a_program_has_a_color_for_each_kind(self, opened):
        page = opened(models.program())
        page.evaluate("drawing.fit()")
        settle(page)
        kinds = ("forward", "gradient", "update", "argument", "parameter", "state")
        fills = [
            page.evaluate(f"getComputedStyle(document.querySelector('rect.{kind}')).fill")
            for kind in kinds
        ]
        assert len(set(fills)) == len(kinds)

    def test_a_notebook_shows_the_page_in_a_frame(self, browser, tmp_path):
        path = tmp_path / "notebook.html"
        path.write_text(f"<!doctype html>{so.draw(models.flow())._repr_html_()}")
        browser.problems.clear()
        browser.open(path)
        settle(browser)
        assert browser.problems == []
        area = browser.evaluate("document.querySelector('iframe').getBoundingClientRect().toJSON()")
        assert area["width"] > 1000
        assert area["height"] > 600

    def test_the_drawing_follows_the_size_of_the_window(self, opened, browser):
        page = opened(models.flow())
        before = page.evaluate("drawing.camera.x")
        browser.resize(900, 700)
        settle(page)
        assert page.evaluate("drawing.camera.x") < before - 100
        browser.resize(1400, 900)

    def test_hostile_names_stay_text(self, opened):
        page = opened(hostile())
        assert page.evaluate("window.hacked") is None
        texts = page.evaluate(
            "[...document.querySelectorAll('.box text')].map(one => one.textContent)"
        )
        assert any("</script>" in text for text in texts)
        page.evaluate("drawing.choose(drawing.search.found('script')[0])")
        settle(page)
        assert page.evaluate("window.hacked") is None
        assert count(page, "#details img, #details script") == 0

    def test_boxes_do_not_overlap_and_wires_end_at_boxes(self, opened):
        page = opened(models.with_gradient(models.resnet18()))
        page.evaluate("drawing.unfold()")
        overlaps = page.evaluate(
            """(() => {
              let overlaps = 0;
              const check = (panel) => {
                const spots = panel.children;
                for (const one of spots) for (const other of spots) if (one.id < other.id
                  && one.x < other.x + other.width && other.x < one.x + one.width
                  && one.y < other.y + other.height && other.y < one.y + one.height) overlaps++;
                for (const { points: [[x0, y0]] } of panel.wires) {
                  const inside = x0 >= -1 && x0 <= panel.width + 1;
                  if (!inside || y0 < -1 || y0 > panel.height + 1) overlaps++;
                }
                spots.filter(one => one.panel).forEach(one => check(one.panel));
              };
              check(drawing.panel);
              return overlaps;
            })()"""
        )
        assert overlaps == 0

    def test_ten_thousand_operators_stay_few_elements(self, opened):
        page = opened(models.tangle(10_000))
        assert page.evaluate("drawing.model.edges.length") > 10_000
        for _ in range(2):
            page.evaluate("drawing.unfold()")
            settle(page)
            assert count(page, "#levels *") < 4000
        assert page.evaluate("drawing.renderer.spots.size") > 500
        page.evaluate("drawing.fit()")
        settle(page)
        assert count(page, "#levels *") < 4000
