"""Outlines of graphs: blocks by scope, by repeat and by layer, and gradients as counterparts."""

import xml.etree.ElementTree as ET
from collections import Counter

import drawn_models as models
import pytest

import symop as so
from symop.drawing.boxes import boxes_of, is_operator
from symop.drawing.draw import draw_subject
from symop.drawing.outline import outline_of
from symop.drawing.view import links_of, open_blocks


def outline(symbol, **options):
    return outline_of(symbol.nodes, **options)


def tops(made, *, backward=False):
    """The outermost blocks, as kind, name and times."""
    return [
        (one.kind, one.name, one.times)
        for one in made.root.children
        if one.backward == backward and (one.box is None or is_operator(one.box.node))
    ]


GRAPHS = {
    "resnet": lambda: models.with_gradient(models.resnet18()),
    "gpt": lambda: models.with_gradient(models.gpt(4)),
    "lstm": lambda: models.lstm(12),
    "tangle": models.tangle,
    "tangle with gradient": lambda: models.with_gradient(models.tangle(150)),
    "flow": models.flow,
    "second order": lambda: so.grad(
        so.sum(so.grad(models.tangle(20), so.var("a", (4,)))), so.var("b", (4,))
    ),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("rolled", [True, False])
def test_every_node_is_in_one_box(graph, rolled):
    symbol = GRAPHS[graph]()
    boxes, _ = boxes_of(symbol.nodes)
    wanted = Counter(box.node for box in boxes)
    made = outline(symbol, rolled=rolled)
    bodies = {inner for one in made.root.walk() if one.kind == "body" for inner in one.walk()}
    held = [one for one in made.root.walk() if one.box is not None and one not in bodies]
    assert Counter(node for one in held for node in one.box.nodes) == wanted
    assert rolled or all(one.box.times == 1 for one in held)
    assert sorted(i for one in held for i in one.box.outputs) == list(range(len(symbol.nodes)))


@pytest.mark.parametrize("graph", GRAPHS)
def test_edges_are_the_inputs_of_the_boxes(graph):
    symbol = GRAPHS[graph]()
    boxes, _ = boxes_of(symbol.nodes)
    made = outline(symbol)
    home = {node: one for one in made.root.walk() if one.box is not None for node in one.box.nodes}
    wanted = {
        (home[boxes[source].node], output, home[box.node])
        for box in boxes
        for source, output in box.sources
    }
    drawn = {(edge.source, edge.output, edge.target) for edge in made.edges}
    # An operator of a body may have the node of one outside, so the edges of bodies are apart.
    assert {one for one in wanted if one[0] is not one[2]} <= drawn


def test_a_residual_network_is_its_stages():
    made = outline(models.with_gradient(models.resnet18()))
    stages = [("scope", f"stage{i}", 1) for i in range(1, 5)]
    assert tops(made) == [("scope", "stem", 1), *stages, ("layer", "head", 1)]
    assert tops(made, backward=True) == tops(made)[::-1]
    stage = next(one for one in made.root.children if one.name == "stage2")
    assert [one.name for one in stage.children] == ["unit1", "unit2"]
    assert [one.name for one in stage.children[0].children if one.kind != "box"] == [
        "first", "second", "short",
    ]  # fmt: skip


def test_a_gradient_is_the_counterpart_of_its_block():
    made = outline(models.with_gradient(models.resnet18()))
    for block in made.root.walk():
        if block.backward and block.twin is not None and block.kind != "box":
            inner = {one.twin for one in block.children}
            around = {block.twin, *block.twin.children}
            assert inner <= {*around, None}
    known = [one for one in made.root.children if one.backward]
    assert all(one.twin in made.root.children for one in known)


def test_equal_transformer_blocks_are_drawn_once():
    made = outline(models.with_gradient(models.gpt()))
    assert ("repeat", "block", 12) in tops(made)
    assert ("repeat", "block", 12) in tops(made, backward=True)
    block = next(one for one in made.root.children if one.kind == "repeat" and not one.backward)
    assert block.names == [f"block{i}" for i in range(12)]
    assert all(one.times == 12 for one in block.boxes())
    carried = [edge for edge in made.edges if edge.over is block]
    assert {edge.source.box.node.op.name for edge in carried} == {"add"}


def test_what_follows_the_last_block_is_no_part_of_it():
    h = so.var("x", (2, 4))
    for i in range(6):
        h = so.relu(so.fully_connected(h, units=4, name=f"dense{i}"))
    made = outline(so.mean(so.square(h)))
    assert tops(made) == [("repeat", "dense", 6), ("box", "", 1), ("box", "", 1)]


def test_an_unrolled_lstm_is_one_step():
    made = outline(models.lstm(30))
    step, gradient = [one for one in made.root.children if one.kind == "repeat"]
    assert (step.times, gradient.times) == (30, 30)
    assert gradient.twin is step
    assert {one.box.times for one in step.children if one.box is not None} == {30}
    assert "x" in {one.box.node.name[0] for one in step.children if not one.box.node.inputs}
    # The hidden state and the cell go from step to step.
    assert {edge.source for edge in made.edges if edge.over is step} == {
        one for one in step.children if one.box.node.op.name in ("add", "multiply")
        if any(edge.over is step and edge.source is one for edge in made.edges)
    }  # fmt: skip
    assert sum(edge.over is step for edge in made.edges) == 2


def test_different_variables_of_one_step_are_apart():
    h = so.var("x", (2,))
    for i in range(20):
        h = so.add_n(h, *(so.var(f"v{i}_{j}", (2,)) for j in range(4)))
    made = outline(h)
    leaves = [box for box in made.root.boxes() if not box.node.inputs]
    assert leaves[0].nodes[0].name == "x"
    assert all(box.times == 1 for box in leaves)


def test_name_scopes_hold_operators_without_names():
    x, y = so.var("x", (4,)), so.var("y", (4,))
    with so.name_scope("encoder"):
        h = so.exp(so.sin(x))
    with so.name_scope("loss"):
        with so.name_scope("distance"):
            d = so.square(h - y)
        loss = so.sum(d) + 1.0
    made = outline(so.Group([loss, so.grad(loss, x)]))
    assert tops(made) == [("scope", "encoder", 1), ("scope", "loss", 1)]
    assert tops(made, backward=True) == [("scope", "loss", 1), ("scope", "encoder", 1)]
    (block,) = [one for one in made.root.children if one.name == "loss" and not one.backward]
    assert [one.name for one in block.children] == ["distance", "", ""]


def test_an_irregular_graph_is_cut_into_parts():
    made = outline(models.tangle())
    assert 4 <= len(tops(made)) <= 30
    for block in made.root.walk():
        assert len(block.children) <= 30


def test_without_rolling_every_step_is_drawn():
    made = outline(models.gpt(), rolled=False)
    assert [one for one in tops(made) if one[1].startswith("block")] == [
        ("scope", f"block{i}", 1) for i in range(12)
    ]


def test_interleaved_names_are_no_scopes():
    h = so.var("data", (2, 4))
    for i in range(3):
        h = so.fully_connected(h, units=4, name=f"dense_{i}")
        h = so.layer_norm(h, name=f"norm_{i}")
    assert all(kind == "box" for kind, _, _ in tops(outline(h, rolled=False)))


def test_bodies_are_blocks_of_their_call():
    made = outline(models.flow())
    calls = {one.box.node.op.name: one for one in made.root.walk() if one.kind == "call"}
    assert {name: [body.name for body in one.children] for name, one in calls.items()} == {
        "scan": ["body"],
        "cond": ["true_body", "false_body"],
        "while_loop": ["condition", "body"],
    }
    inside = {box.node.op.name for box in calls["scan"].children[0].boxes()}
    assert {"matmul", "add", "tanh"} <= inside


def test_a_program_tells_its_values_apart():
    subject = models.program()._subject()
    assert {subject.roles[name] for name in ("hidden_weight", "out_bias")} == {"parameter"}
    assert subject.roles["adam.step"] == "state"
    assert "new hidden_weight" in subject.names
    assert {node.op.name for node in subject.updates if is_operator(node)} == {"adam", "add"}
    text = draw_subject(subject)
    for legend in ("operator of a gradient", "update of parameters and states", "parameter"):
        assert f">{legend}</text>" in text


def test_gradients_are_named_by_their_variable():
    names = models.with_gradient(models.gpt(1))._subject().names
    assert "gradient of block0_norm1_gamma" in names
    x = so.var("x", (2,))
    assert (
        so.Group([so.sin(x), so.grad(so.sum(so.sin(x)), x)])._subject().names[1] == "gradient of x"
    )


def test_gradients_that_wait_for_shapes_are_named_too():
    x = so.var("x")
    typed = so.grad(so.sum(so.sin(x) * x), x).with_types(x=(3,))
    assert typed._subject().names == ("gradient of x",)


# Views -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("limit", [4, 20, 60, 1000])
def test_open_blocks_stay_within_the_limit(graph, limit):
    made = outline(GRAPHS[graph](), room=max(1, min(30, (limit - 1) // 2)), variables=1)
    opened = open_blocks(made, limit)
    seen = [
        one
        for one in made.root.walk()
        if one not in opened and all(up in opened for up in made.ancestors(one)[:-1])
    ]
    assert len(seen) <= limit


@pytest.mark.parametrize("graph", GRAPHS)
def test_links_connect_neighbors(graph):
    made = outline(GRAPHS[graph]())
    opened = open_blocks(made, 100)
    for block, links in links_of(made, opened).items():
        for link in links:
            for end in link[:2]:
                assert end.block is None or end.block in block.children
            assert link.source != link.target


@pytest.mark.parametrize("graph", GRAPHS)
def test_folded_graphs_are_readable(graph):
    root = ET.fromstring(draw_subject(GRAPHS[graph]()._subject(), max_nodes=40))
    frames, boxes = [], []
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        kinds = {"symop-frame": frames, "symop-box": boxes}
        if rect.get("class") in kinds:
            kinds[rect.get("class")].append((x, y, x + width, y + height))
    assert 1 <= len(boxes) <= 40
    for one in [*frames, *boxes]:
        for other in frames:
            apart = (
                one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            )
            inside = _within(one, other) or _within(other, one)
            assert apart or inside


def _within(inner, outer):
    slack = 0.2
    return (
        inner[0] >= outer[0] - slack
        and inner[1] >= outer[1] - slack
        and inner[2] <= outer[2] + slack
        and inner[3] <= outer[3] + slack
    )


def unnamed_resnet(units):
    """Residual blocks without names, of which every second one has a projection; no two alike."""
    h = so.relu(so.convolution(so.var("data", (2, 3, 8, 8)), channels=4, kernel=(1, 1)))
    for i in range(units):
        inner = so.relu(so.convolution(h, channels=5 + i, kernel=(1, 1)))
        inner = so.batch_norm(so.convolution(inner, channels=5 + i, kernel=(1, 1)))
        h = so.relu(inner + so.convolution(h, channels=5 + i, kernel=(1, 1)))
    return so.sum(so.tanh(so.fully_connected(h, units=3)))


def test_parts_are_residual_blocks():
    made = outline(models.with_gradient(unnamed_resnet(9)))
    parts = [one for one in made.root.children if one.kind == "part" and not one.backward]
    kinds = [Counter(box.node.op.name for box in part.boxes()) for part in parts]
    unit = {"convolution": 3, "relu": 2, "batch_norm": 1, "add": 1}
    assert [one for one in kinds if one == unit] == [unit] * 9
    assert len(parts) <= 11  # the stem and the head may be parts, too
