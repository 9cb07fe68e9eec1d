"""Drawings: well-formed, free of overlaps, the same each time, and small for large graphs."""

import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

import symop as so
from symop.drawing.draw import MAX_NODES, draw, html
from symop.drawing.layout import arrange, spread
from symop.graph.nodes import VARIABLE, topological

SVG = "{http://www.w3.org/2000/svg}"
UNARY = ["sin", "cos", "tanh", "exp", "square"]


def nodes_of(*symbols):
    return [node for symbol in symbols for node in symbol.nodes]


def read(text):
    """The drawing as XML, its boxes (left, top, right, bottom) and its texts."""
    root = ET.fromstring(text)
    boxes = []
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("class") == "symop-box":
            x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            boxes.append((x, y, x + width, y + height))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    return root, boxes, texts


def hovers(root):
    return [element.text or "" for element in root.iter(f"{SVG}title")]


def mlp(layers=3, units=16):
    h = so.var("data", (8, 32))
    for i in range(layers):
        h = so.fully_connected(h, units=units, name=f"fc{i}")
        h = so.relu(h) if i + 1 < layers else h
    return so.mean(so.square(h))


def with_gradient(loss):
    weights = [
        so.Symbol([node])
        for node in topological(loss.nodes)
        if node.op is VARIABLE and node.name not in ("data", "label")
        if node.attributes[2] == "argument"
    ]
    return nodes_of(loss, *so.grad(loss, weights))


def chain(length, operators=("sin",), seed=0):
    generator = random.Random(seed)
    y = so.var("x", (4,))
    for _ in range(length):
        y = getattr(so, generator.choice(operators))(y)
    return y


def tangle(operators, seed=0):
    """A graph without structure."""
    generator = random.Random(seed)
    values = [so.var("a", (4,)), so.var("b", (4,))]
    for _ in range(operators):
        u, v = (values[-1 - min(int(generator.expovariate(0.3)), len(values) - 1)] for _ in "uv")
        one = getattr(so, generator.choice(UNARY))
        values.append(generator.choice([one(u), u * v, u + v]))
    return values[-1]


def recurrent(steps):
    wx, wh = so.var("wx", (3, 5)), so.var("wh", (5, 5))
    h = so.var("h0", (2, 5))
    for t in range(steps):
        h = so.tanh(so.matmul(so.var(f"x{t}", (2, 3)), wx) + so.matmul(h, wh))
    loss = so.sum(h)
    return nodes_of(loss, *so.grad(loss, [wx, wh]))


def convolutional():
    h = so.var("data", (4, 1, 8, 8))
    h = so.convolution(h, channels=4, kernel=(3, 3), padding=1, name="conv1")
    h = so.relu(so.batch_norm(h, name="bn1"))
    h = so.flatten(so.max_pooling(h, (2, 2)))
    h = so.dropout(so.fully_connected(h, units=10, name="fc1"))
    return so.mean(so.softmax_cross_entropy(h, so.var("label", (4,), "int32")))


GRAPHS = {
    "one variable": lambda: nodes_of(so.var("x")),
    "no types": lambda: nodes_of(so.sin(so.var("x")) * so.var("y")),
    "mlp": lambda: nodes_of(mlp()),
    "mlp with gradient": lambda: with_gradient(mlp()),
    "deep mlp with gradient": lambda: with_gradient(mlp(30)),
    "convolutional": lambda: with_gradient(convolutional()),
    "recurrent": lambda: recurrent(40),
    "chain": lambda: nodes_of(chain(300, UNARY)),
    "chain with gradient": lambda: nodes_of(so.grad(chain(150, UNARY), so.var("x", (4,)))),
    "tangle": lambda: nodes_of(tangle(40)),
    "large tangle": lambda: nodes_of(tangle(900)),
    "tangle with gradient": lambda: nodes_of(so.grad(tangle(300), so.var("a", (4,)))),
    "wide": lambda: nodes_of(so.add_n(*[so.var(f"v{i}", (i + 1, 1))[0] for i in range(90)])),
    "second order": lambda: nodes_of(
        so.grad(so.grad(so.sin(so.var("x", ())) ** 2.0, so.var("x", ())), so.var("x", ()))
    ),
    "outputs are inputs": lambda: nodes_of(so.var("x", (2,)), so.var("x", (2,))),
    "constant output": lambda: nodes_of(so.grad(so.var("x", ()), so.var("x", ()))),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("max_nodes", [5, 20, MAX_NODES])
def test_is_readable(graph, max_nodes):
    nodes = GRAPHS[graph]()
    text = draw(nodes, max_nodes=max_nodes)
    root, boxes, _ = read(text)
    assert 1 <= len(boxes) <= max_nodes
    assert len(text) < 1_000_000
    width, height = float(root.get("width")), float(root.get("height"))
    for one, other in combinations(boxes, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)
    for left, top, right, bottom in boxes:
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height


def test_contains_nothing_foreign():
    text = draw(with_gradient(mlp()))
    assert not re.search(r"<script|href|url\(|@import| id=|<style", text)
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]


def test_boxes_say_what_they_are():
    x = so.var("x", (4, 3))
    y = so.sum(so.maximum(so.sin(x) * 2.0, 0.5) / so.var("scale", (3,)), axis=1, name="total")
    _, _, texts = read(draw(y.nodes, names=["answer"]))
    assert "multiply 2.0" in texts
    assert "scale (3)" in texts
    assert "total: sum axis=1" in texts
    assert "float32[4]" in texts
    assert "→ answer" in texts
    assert "1.0 divide" not in texts


def test_constants_of_ordered_operators_name_their_slot():
    _, _, texts = read(draw((1.0 - so.sin(so.var("x", (2,)))).nodes))
    assert any(re.fullmatch(r"(minus|subtract) x=1.0", text) for text in texts)


def test_parameters_are_drawn_inside_their_layer():
    root, boxes, texts = read(draw(convolutional().nodes))
    assert "weight (4,1,3,3)" in texts
    assert "moving_mean (4)" in texts
    assert {"argument", "state", "operator"} <= set(texts)
    # data, nine operators, and nothing else.
    assert len(boxes) == 10
    assert any("reads weight: conv1_weight" in text for text in hovers(root))


def test_gradient_stands_beside_the_forward_part():
    root, _, _ = read(draw(with_gradient(mlp())))
    colors = {}
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("class") == "symop-box":
            middle = float(rect.get("x")) + float(rect.get("width")) / 2
            colors.setdefault(rect.get("fill"), []).append((middle, float(rect.get("y"))))
    assert len(colors) == 3
    forward, gradient = colors["#e7effc"], colors["#fdeedd"]
    assert max(x for x, _ in forward) < min(x for x, _ in gradient)
    overlap = min(max(y for _, y in forward), max(y for _, y in gradient))
    assert overlap > 0.7 * max(y for _, y in forward + gradient)


def test_forward_mode_is_drawn_downwards():
    y = chain(6)
    _, boxes, _ = read(draw(so.jvp(y, so.var("x", (4,)), so.var("t", (4,))).nodes))
    assert len(boxes) == 19


def test_hover_tells_where_a_node_was_built_and_no_directory():
    text = draw(with_gradient(mlp()))
    root, _, _ = read(text)
    about = hovers(root)
    assert any("built at test_draw.py:" in line for line in about)
    assert any("in the gradient of fc1" in line for line in about)
    assert str(Path(__file__).parent) not in text


def test_hostile_names_are_escaped():
    names = [
        "<script>alert(1)</script>",
        "a&b",
        "]]>",
        "\"'",
        "line\nbreak",
        "\x00\x1b\x7f",
        "語" * 60,
    ]
    values = [so.sin(so.var(name, (2,)), name=f"{name}!") for name in names]
    for text in (draw(nodes_of(*values), title="<b>", names=names), html(nodes_of(*values), names)):
        text.encode()
        assert "<script" not in text
        assert "\x00" not in text
        ET.fromstring(text)
    _, _, texts = read(draw(nodes_of(*values)))
    assert "<script>alert(1)</script>" in texts


def test_two_nodes_of_one_name_are_still_drawn():
    x = so.var("x", (2,))
    _, boxes, _ = read(draw((so.sin(x, name="same") + so.cos(x, name="same")).nodes))
    assert len(boxes) == 4


def test_same_graph_gives_the_same_bytes_in_another_process():
    program = (
        "import sys; sys.path.insert(0, 'tests'); import test_draw as t; "
        "nodes = t.with_gradient(t.mlp(30)) + t.nodes_of(t.tangle(200)); "
        "import hashlib; print(hashlib.sha256(t.draw(nodes).encode()).hexdigest())"
    )
    results = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "JAX_PLATFORMS": "cpu", "PYTHONPATH": "."},
            cwd=Path(__file__).parent.parent,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(results) == 1


def test_outputs_of_one_operator_are_told_apart():
    nodes = with_gradient(convolutional())
    _, boxes, texts = read(draw(nodes, max_nodes=500))
    assert "mean, variance" in texts or {"mean", "variance"} <= set(texts)
    assert len(boxes) > 40


def test_equal_blocks_are_drawn_once():
    _, boxes, texts = read(draw(with_gradient(mlp(200))))
    assert len(boxes) < 30
    assert {"fc × 199", "gradient of fc × 199", "fc*: fully_connected"} <= set(texts)
    assert any(re.fullmatch(r"→ \d+ gradients", text) for text in texts)


def test_a_recurrent_network_is_one_step():
    _, boxes, texts = read(draw(recurrent(60)))
    assert {"4 operators × 60", "gradient of 4 operators × 60", "tanh", "x*"} <= set(texts)
    assert {"→ gradient of wx", "→ gradient of wh"} <= set(texts)
    assert len(boxes) < 25


def test_numbers_and_parameter_shapes_tell_blocks_apart():
    y = so.var("x", (4,))
    for i in range(100):
        y = y * float(i + 2)
    _, _, texts = read(draw(y.nodes))
    assert not any("×" in text and text.startswith("multiply ") for text in texts if "," in text)
    assert any(text.endswith("operators") for text in texts)


def test_a_sequence_without_structure_is_cut():
    _, boxes, texts = read(draw(chain(100, UNARY).nodes, max_nodes=50))
    assert len(boxes) == 6
    assert texts.count("20 operators") == 5
    assert "100 operators folded into 5 boxes" in texts


def test_gradients_are_folded_by_layer():
    _, _, texts = read(draw(with_gradient(convolutional()), max_nodes=30))
    assert {"gradient of bn1", "gradient of batch_norm", "→ gradient of fc1_weight"} <= set(texts)


def test_small_graphs_are_not_folded():
    _, boxes, texts = read(draw(nodes_of(tangle(30))))
    assert not any("folded" in text for text in texts)
    assert len(boxes) > 5


@pytest.mark.parametrize(("length", "operators"), [(100_000, ("sin",)), (20_000, UNARY)])
@pytest.mark.sampled(2)
def test_a_long_chain_folds_quickly(length, operators):
    y = chain(length, operators)
    _, boxes, texts = read(draw(y.nodes))
    assert len(boxes) <= MAX_NODES
    assert f"{length:,} operators" in texts


def test_html_scrolls_and_lists_arguments():
    text = html(mlp().nodes, ["loss"])
    ET.fromstring(text)
    assert "overflow:auto" in text
    rest = text.partition("</svg>")[2]
    assert "7 operators; arguments: data float32[8,32]" in rest
    assert "→ loss" in text


def test_symbols_draw_themselves():
    assert "<svg" in mlp()._repr_html_()


# Layout ------------------------------------------------------------------------------------------


def test_a_chain_is_straight():
    layout = arrange([(40, 20), (90, 30), (60, 20)], [(0, 1), (1, 2)], [0, 0, 0])
    assert len({round(x, 6) for x, _ in layout.centers}) == 1
    for path in layout.paths:
        assert len({round(x, 6) for x, _ in path}) == 1


def test_edges_end_at_their_boxes_and_pass_none():
    generator = random.Random(1)
    sizes = [(generator.uniform(40, 160), generator.uniform(20, 60)) for _ in range(60)]
    pairs = {tuple(sorted(generator.sample(range(60), 2))) for _ in range(100)}
    edges = sorted(pairs)
    layout = arrange(sizes, edges, [0] * 60)
    for (source, target), path in zip(edges, layout.paths, strict=True):
        for box, (x, y) in ((source, path[0]), (target, path[-1])):
            center, (width, height) = layout.centers[box], sizes[box]
            assert abs(x - center[0]) <= width / 2
            assert abs(y - center[1]) == pytest.approx(height / 2)
        for box, (center, (width, height)) in enumerate(zip(layout.centers, sizes, strict=True)):
            for (x0, y0), (x1, y1) in pairwise(path):
                # Between two points the curve stays within their frame, and is straight in rows.
                if box not in (source, target) and abs(x0 - x1) < 1e-6:
                    beside = abs(x0 - center[0]) >= width / 2
                    above = max(y0, y1) <= center[1] - height / 2
                    below = min(y0, y1) >= center[1] + height / 2
                    assert beside or above or below


def test_cycles_can_be_laid_out():
    layout = arrange([(30, 20)] * 3, [(0, 1), (1, 2), (2, 0), (1, 0)], [0, 0, 0])
    assert len({y for _, y in layout.centers}) == 3


def test_spread_is_the_nearest_with_gaps():
    wanted = [(0.0, 1.0), (0.0, 1.0), (10.0, 1.0)]
    places = spread(wanted, [4.0, 4.0])
    np.testing.assert_allclose(places, [-2.0, 2.0, 10.0])


def test_nothing_can_be_laid_out():
    assert arrange([], [], []).centers == []


def test_only_what_a_layer_made_is_called_by_its_slot():
    images, labels = so.var("held_images", (3, 7)), so.var("held_labels", (3,), "int32")
    h = so.fully_connected(images, so.var("my_weight", (5, 7)), units=5, name="fc")
    picture = so.softmax_cross_entropy(h, labels)._repr_html_()
    assert ">held_labels (3)<" in picture
    assert "my_weight" in picture
    assert ">bias (5)<" in picture
