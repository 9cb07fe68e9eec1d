"""Graphs saved and loaded: the same graph again, or an error that says where the file is wrong."""

import contextlib
import gc
import json
import os
import stat
import subprocess
import sys
import threading

import jax.numpy as jnp
import numpy as np
import pytest
from saved_graphs import (
    ATTRIBUTES,
    ATTRS,
    CONSTANTS,
    JOIN,
    NAMES,
    NOISE,
    array_nodes,
    arrays,
    constant_nodes,
    network,
    nodes_of,
    noisy,
    normed,
    probes,  # noqa: F401  # registers the operators of this module's graphs
    random_graph,
    registered,
    saved_sine,
)

import symop as so
from registry.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from registry.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    NameConflictError,
    ShapeError,
    UnknownOperatorError,
)
from registry.operator.attributes import identity_key
from registry.operator.operator import Operator
from registry.shapes import canonical
from registry.types import VarKind, VarType
from symop.autodiff.differentiate import ones, pullback
from symop.graph import nodes as graph
from symop.graph.emission import apply
from symop.graph.nodes import KEY, Origin, constant, leaves, topological, variable
from symop.io import definitions, files
from symop.io.files import load_parameters, save_parameters
from symop.io.records import describe
from symop.io.serialize import decode, dumps, encode, from_desc, loads, to_desc

DEPTH = 20_000
SEEDS = range(40)


def save(path, nodes):
    """Write ``nodes`` to a file through the public door."""
    so.Symbol(nodes).save(path)


def load(path, **options):
    """The nodes that a file holds."""
    return list(so.load(path, **options).nodes)


class TestRecords:
    def test_what_a_small_graph_becomes(self):
        x = variable("x", (3,), np.dtype("float32"), extra=(("lr_mult", "2"),))
        w = variable("w", None, None, "state")
        (y,) = nodes_of(so.Symbol([x]) * 2.0)
        desc = to_desc([JOIN(y, w, w, name="joined")])
        (block,) = desc.blocks
        assert block.vars == [
            VarDesc("x", [3], "float32", role="argument", attrs={"lr_mult": "2"}),
            VarDesc("w", role="state"),
        ]
        assert [(op.type, op.inputs, op.outputs, op.attrs, op.name) for op in block.ops] == [
            ("constant", {}, {"out": ["constant0"]}, {"value": 2.0}, None),
            ("multiply", {"x": ["x"], "y": ["constant0"]}, {"out": ["multiply0"]}, {}, None),
            (
                "saved_join",
                {"first": ["multiply0"], "rest": ["w", "w"]},
                {"out": ["joined"]},
                {},
                "joined",
            ),
        ]
        assert desc.fetch == ["joined"]

    def test_site_is_the_base_name_of_the_file(self):
        (y,) = nodes_of(so.sin(so.var("site_x")))
        site = to_desc([y]).blocks[0].ops[0].site
        assert site is not None
        assert site.startswith("test_serialize.py:")
        assert os.sep not in dumps([y])

    def test_windows_paths_lose_their_folders(self):
        desc = ProgramDesc(
            blocks=[
                BlockDesc(
                    [VarDesc("site_w", role="argument")],
                    [OpDesc("sin", {"x": ["site_w"]}, {"out": ["y"]}, site="C:\\a b\\model.py:7")],
                )
            ],
            fetch=["y"],
        )
        nodes = from_desc(desc)
        assert to_desc(nodes).blocks[0].ops[0].site == "model.py:7"

    def test_gradient_operators_name_their_forward_operator(self):
        # Names of its own: equal nodes are one, and an equal graph may belong to something else.
        x, w = (so.var(f"forward_{name}", shape=(4, 3)) for name in "xw")
        loss = so.mean(so.square(so.tanh(x * w, name="hidden") - 1.0))
        ops = to_desc(nodes_of(loss, *so.grad(loss, [x, w]))).blocks[0].ops
        forward = [op for op in ops if op.gradient_of is None]
        assert {op.gradient_of for op in ops} >= {None, "hidden", "square"}
        assert [op.type for op in forward if op.type == "tanh"] == ["tanh"]

    def test_all_attributes_are_recorded_defaults_too(self):
        (op,) = to_desc([ATTRS(variable("x", (2,)))]).blocks[0].ops
        assert list(op.attrs) == [a.name for a in ATTRS.attributes]

    def test_every_output_of_a_call_is_named(self):
        out, shifted = normed()
        (op,) = to_desc([shifted]).blocks[0].ops[1:]
        assert op.outputs == {
            "out": ["bn.out"],
            "shifted": ["bn.shifted"],
            "new_mean": ["bn.new_mean"],
        }
        assert op.inputs == {
            "x": ["x"],
            "gamma": ["gamma"],
            "mean": ["mean"],
            "training": ["training0"],
        }
        assert to_desc([out, shifted]).fetch == ["bn.out", "bn.shifted"]

    def test_an_output_never_shares_a_users_name(self):
        out, _ = normed(name=None)
        graph = [JOIN(out, variable("saved_norm0.out", (2, 3)))]
        desc = to_desc(graph)
        assert desc.blocks[0].ops[1].outputs["out"] == ["saved_norm0.out_"]
        assert to_desc(from_desc(desc)) == desc

    def test_several_outputs_at_once_are_refused(self):
        (source,) = normed()[0].operands
        with pytest.raises(
            ArgumentError, match="saved_norm: output 0 must be one value, got all 3"
        ):
            to_desc([source])

    def test_two_nodes_of_one_name_are_refused(self):
        x = variable("x", (2,))
        with pytest.raises(NameConflictError, match="same: two nodes"):
            to_desc([JOIN(x, x, name="same"), JOIN(x, 1.0, name="same")])

    def test_an_operator_named_like_a_leaf_is_refused(self):
        odd = Operator(saved_sine, name="constant")
        with registered(odd), pytest.raises(NameConflictError, match="cannot be saved"):
            to_desc([odd(variable("x", (2,)))])

    def test_describe_knows_types_and_leaves_out_large_arrays(self):
        graph = [
            JOIN(variable("x", (6,), np.dtype("float32")), np.arange(6, dtype=np.float32)),
            JOIN(variable("u"), 1.0),
        ]
        desc, types = describe(graph, array_limit=5)
        assert str(types["saved_join0"]) == "float32[6]"
        assert "saved_join1" not in types
        assert "data" not in desc.blocks[0].ops[0].attrs
        with pytest.raises(FormatError, match="entries were left out"):
            from_desc(desc)


class TestRoundTrip:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_random_graphs_are_the_same_nodes(self, seed):
        nodes = random_graph(seed)
        desc = to_desc(nodes)
        deferred = any(op.type == "deferred" for op in desc.blocks[0].ops)
        back = loads(dumps(nodes))
        assert to_desc(back) == desc
        assert deferred or back == nodes

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("seed", SEEDS)
    def test_random_graphs_are_made_anew_alike(self, seed):
        text = dumps(random_graph(seed))
        gc.collect()
        assert dumps(loads(text)) == text

    def test_gradients_are_the_same_nodes(self):
        nodes = nodes_of(*network())
        assert loads(dumps(nodes)) == nodes

    def test_loaded_graph_differentiates_again_to_the_same_node(self):
        nodes = nodes_of(*network())
        x = next(node for node in topological(nodes) if node.name == "x")
        again = loads(dumps(nodes))
        for original, loaded in zip(nodes, again, strict=True):
            heads = [ones(original.type)]
            assert pullback([original], [x], heads) == pullback([loaded], [x], heads)

    @pytest.mark.parametrize("given", ATTRIBUTES, ids=repr)
    def test_attributes(self, given):
        node = ATTRS(variable("x", (2,)), **given)
        (back,) = loads(dumps([node]))
        assert back is node
        assert identity_key(back.attributes) == identity_key(node.attributes)

    @pytest.mark.parametrize("value", CONSTANTS, ids=repr)
    @pytest.mark.parametrize(
        "of", [None, VarType((), np.dtype("float32")), VarType((2, 0), np.dtype(jnp.bfloat16))]
    )
    def test_constants(self, value, of):
        if of is not None and isinstance(value, complex):
            of = VarType(of.shape, np.dtype("complex64"))
        node = constant(value, of)
        assert loads(dumps([node])) == [node]

    def test_constants_of_a_kind(self):
        of = VarType((2,), np.dtype("float32"), VarKind.SELECTED_ROWS)
        node = constant(0.0, of)
        assert loads(dumps([node])) == [node]
        assert loads(dumps([constant(0.0, VarType((2,), np.dtype("float32")))])) != [node]

    def test_constants_in_calls(self):
        nodes = constant_nodes()
        assert loads(dumps(nodes)) == nodes

    def test_numpy_scalars_become_numbers(self):
        text = dumps([constant(np.float64(2.5))])
        assert '"value": 2.5' in text
        assert dumps(loads(text)) == text

    @pytest.mark.parametrize("name", NAMES, ids=ascii)
    def test_names(self, name):
        x = variable(name, (2,))
        node = JOIN(x, x, name=f"{name} too")
        assert loads(dumps([node, x])) == [node, x]

    def test_arrays(self):
        back = loads(dumps(array_nodes()))
        for given, node in zip(arrays(), back, strict=True):
            value = given.astype(canonical(given.dtype))
            held = node.attributes[0].value
            assert held.shape == value.shape
            assert held.dtype.name == value.dtype.name
            assert held.astype(held.dtype).tobytes() == value.astype(held.dtype).tobytes()

    def test_array_of_a_device(self):
        (node,) = loads(dumps([JOIN(variable("x", (3,)), jnp.arange(3.0))]))
        np.testing.assert_array_equal(node.operands[1].attributes[0].value, [0.0, 1.0, 2.0])

    def test_states_are_kept_apart(self):
        first, _ = normed("one")
        second, _ = normed("two")
        desc = to_desc([first, second])
        back = loads(dumps([first, second]))
        assert to_desc(back) == desc
        assert back[0].operands[0] is not first.operands[0]

    def test_keys_keep_their_order(self):
        late, early = noisy()
        back_late, back_early = loads(dumps([late, early]))
        serial = {n: n.operands[1].serial for n in (late, early, back_late, back_early)}
        assert serial[early] < serial[late]
        assert serial[back_early] < serial[back_late]
        assert dumps([back_late, back_early]) == dumps([late, early])

    def test_a_key_used_twice_is_one_key(self):
        x = variable("x", (2,))
        key = NOISE(x).operands[1]
        nodes = [NOISE(x, key=key), NOISE(x, key=key, rate=0.1)]
        assert len(leaves(topological(loads(dumps(nodes))), KEY)) == 1

    def test_empty_program_and_bare_variables(self):
        x = variable("x")
        assert loads(dumps([])) == []
        assert loads(dumps([x, x])) == [x, x]

    def test_a_named_call_is_not_simplified_away(self):
        x = so.var("x", shape=(2,))
        (kept,) = nodes_of(so.multiply(x, 1.0, name="kept"))
        assert loads(dumps([kept])) == [kept]
        assert kept.name == "kept"

    def test_origin_is_that_of_the_file(self):
        text = dumps(nodes_of(so.sin(so.var("origin_x"))))
        gc.collect()
        (node,) = loads(text)
        assert node.origin.file == "test_serialize.py"

    def test_origin_of_a_record_without_site(self):
        text = dumps(nodes_of(so.sin(so.var("origin_y"))))
        gc.collect()
        desc = decode(text)
        desc.blocks[0].ops[0].site = None
        (node,) = from_desc(desc)
        assert node.origin == Origin("<loaded>", 0)
        assert to_desc([node]) == desc

    def test_chain(self):
        x = variable("x", (3,))
        sin = so.sin(so.Symbol([x])).node.op
        node = x
        for _ in range(DEPTH):
            node = apply(sin, (node,), ())
        text = dumps([node])
        assert loads(text) == [node]
        del node
        gc.collect()
        assert dumps(loads(text)) == text


class TestDeferred:
    def graph(self):
        x, y = so.var("dx"), so.var("dy")
        loss = so.sum(so.sin(x) * y)
        return loss, x, so.grad(loss, [x, y])

    def test_round_trip(self):
        _, _, grads = self.graph()
        nodes = nodes_of(*grads)
        desc = to_desc(nodes)
        (op,) = [op for op in desc.blocks[0].ops if op.type == "deferred"]
        assert op.attrs["name"] == "grad"
        assert op.outputs == {"0": ["deferred0.0"], "1": ["deferred0.1"]}
        assert to_desc(loads(dumps(nodes))) == desc

    def test_only_outputs_in_use_are_recorded(self):
        _, _, (_, second) = self.graph()
        text = dumps(nodes_of(second))
        assert decode(text).blocks[0].ops[-1].outputs == {"1": ["deferred0.1"]}
        assert dumps(loads(text)) == text

    def test_jvp_and_gradient_of_a_gradient(self):
        loss, x, (first, _) = self.graph()
        moved = so.jvp(loss, x, so.var("t"))
        nodes = nodes_of(so.grad(so.sum(first), x), moved)
        assert to_desc(loads(dumps(nodes))) == to_desc(nodes)

    def test_expands_as_the_original(self):
        _, _, (first, _) = self.graph()
        values = {"dx": np.asarray([1.0, 2.0]), "dy": np.asarray([3.0, 4.0])}
        loaded = so.Symbol(loads(dumps(nodes_of(first))))
        np.testing.assert_array_equal(loaded.eval(**values), first.eval(**values))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"name": "grda"}, "no deferred value is called 'grda'; did you mean 'grad'"),
            ({"n_ys": "1"}, "grad: attribute 'n_ys' must be an int, got '1'"),
            ({"n_yy": 1}, "got 'n_yy'; did you mean 'n_ys'"),
            ({"n_ys": None}, "'n_ys' must be an int, got None"),
        ],
    )
    def test_wrong_attributes(self, change, message):
        desc = to_desc(nodes_of(self.graph()[2][0]))
        desc.blocks[0].ops[-1].attrs.update(change)
        with pytest.raises(FormatError, match=message):
            from_desc(desc)

    def test_levels_of_a_derivative_do_not_multiply_the_time_of_loading(self):
        x = so.var("dz")
        y = so.exp(so.sin(x)) * x
        for _ in range(17):
            y = so.grad(y, x)
        text = y.tojson().replace('"name": "dz"', '"name": "dz", "shape": [3], "dtype": "float32"')
        before = graph.next_serial()
        loaded = so.load_json(text)
        assert graph.next_serial() - before < 50_000
        assert loaded.infer_shape()[1] == [(3,)]

    def test_a_derivative_that_is_not_taken_when_it_is_loaded_is_taken_when_it_is_needed(
        self, monkeypatch
    ):
        x = so.var("dz")
        y = so.grad(so.grad(so.exp(so.sin(x)) * x, x), x)
        text = y.tojson().replace('"name": "dz"', '"name": "dz", "shape": [3], "dtype": "float32"')
        now = so.load_json(text)
        monkeypatch.setattr(definitions, "_ALLOWED", 0)
        late = so.load_json(text)
        assert [node.op.name for node in late.nodes] == ["select"]
        assert late.with_types().nodes == now.nodes
        values = np.asarray([0.1, 0.2, 0.3], np.float32)
        np.testing.assert_array_equal(late.eval(dz=values), now.eval(dz=values))
        third = [so.grad(one, "dz").eval(dz=values) for one in (late, now)]
        np.testing.assert_array_equal(*third)

    def test_missing_attribute_and_odd_output(self):
        desc = to_desc(nodes_of(self.graph()[2][0]))
        op = desc.blocks[0].ops[-1]
        attrs, op.attrs = op.attrs, {"name": "grad"}
        with pytest.raises(FormatError, match="'n_ys' must be given"):
            from_desc(desc)
        op.attrs, op.outputs = attrs, {"-1": ["y"]}
        with pytest.raises(FormatError, match="must be numbers"):
            from_desc(desc)


class TestLayout:
    def test_one_record_a_line(self):
        text = dumps(nodes_of(*network()))
        (block,) = json.loads(text)["blocks"]
        lines = [line.strip().rstrip(",") for line in text.splitlines()]
        for record in [*block["vars"], *block["ops"]]:
            assert json.dumps(record) in lines

    def test_is_versioned_json(self):
        parsed = json.loads(dumps(nodes_of(*network())))
        assert parsed["format"] == "symop"
        assert parsed["version"] == 1

    def test_encode_and_decode_keep_every_field(self):
        desc = to_desc(nodes_of(*network()))
        desc.blocks += to_desc(normed()).blocks
        desc.blocks.append(BlockDesc(parent=0))
        assert decode(encode(desc)) == desc

    def test_other_layouts_are_read_too(self):
        nodes = nodes_of(*network())
        assert loads(json.dumps(json.loads(dumps(nodes)))) == nodes
        assert loads(dumps(nodes).encode()) == nodes


GOOD = {
    "format": "symop",
    "version": 1,
    "blocks": [
        {
            "vars": [
                {"name": "x", "shape": [2, 3], "dtype": "float32", "role": "argument"},
                {"name": "y", "shape": [4], "role": "argument"},
            ],
            "ops": [
                {"type": "sin", "inputs": {"x": ["x"]}, "outputs": {"out": ["a"]}},
                {"type": "constant", "outputs": {"out": ["c"]}, "attrs": {"value": 1.0}},
                {
                    "type": "saved_attrs",
                    "inputs": {"x": ["a"], "other": ["c"]},
                    "outputs": {"out": ["b"]},
                    "attrs": {"count": 2},
                    "name": "b",
                },
                {
                    "type": "array",
                    "outputs": {"out": ["d"]},
                    "attrs": {"dtype": "bool", "shape": [2], "data": "AAE="},
                },
            ],
        }
    ],
    "fetch": ["b", "d"],
}


def deep(levels):
    value = 0
    for _ in range(levels):
        value = [value]
    return value


def joined(*names):
    return {"type": "saved_join", "inputs": {"first": ["x"], "rest": list(names)}}


# The path of what is replaced, what replaces it, and what the message says.
HOSTILE = [
    ("format", "other", "format: must be 'symop', got 'other'"),
    ("version", 2, "version: must be at most 1, got 2; the file was written by a newer symop"),
    ("version", 0, "version: must be at least 1, got 0"),
    ("version", "1", "version: Expected `int`, got `str`"),
    ("version", 1.5, "version: Expected `int`, got `float`"),
    ("blocks", [], "a graph must have a block, got none"),
    ("blocks", {}, "blocks: Expected `array`, got `object`"),
    ("fetch", ["zz"], "fetch[0]: 'zz' is not defined"),
    ("fetch", ["b", 1], "fetch[1]: Expected `str`, got `int`"),
    ("extra", 1, "unknown field `extra`"),
    ("vars.0.shape", [2, -3], "blocks[0].vars[0] (variable 'x'): the lengths of a shape"),
    ("vars.0.shape", [2**63], "the lengths of a shape must not be negative or huge"),
    ("vars.0.shape", [2.0], "blocks[0].vars[0].shape[0] (x): Expected `int`, got `float`"),
    ("vars.0.shape", [True], "Expected `int`, got `bool`"),
    ("vars.0.dtype", "flaot32", "no dtype is called 'flaot32'; did you mean 'float32'"),
    ("vars.0.dtype", "O", "no dtype is called 'O'"),
    ("vars.0.dtype", "f4,f4", "no dtype is called 'f4,f4'"),
    ("vars.0.dtype", "finfo", "no dtype is called 'finfo'"),
    ("vars.0.kind", "lod_tensr", "'lod_tensr' is no variable kind; did you mean 'lod_tensor'"),
    ("vars.0.kind", "random_key", "cannot be fed to a graph"),
    ("vars.0.name", "", "a name must not be empty"),
    ("vars.0.nmae", 1, "blocks[0].vars[0] (x): Object contains unknown field `nmae`"),
    ("vars.1.name", "x", "the name 'x' must be given once"),
    ("ops.0.type", "sinn", "blocks[0].ops[0] (sinn 'a'): sinn: no operator has this name"),
    ("ops.0.type", "sinn", "did you mean 'sin'"),
    ("ops.0.type", 3, "blocks[0].ops[0].type (3): Expected `str`, got `int`"),
    ("ops.2.type", 3, "blocks[0].ops[2].type (3 b): Expected `str`"),
    ("ops.0", {"inputs": {}}, "missing required field `type`"),
    ("ops.0.inputs", {"xx": ["x"]}, "the slots are x, got 'xx'; did you mean 'x'"),
    ("ops.0.inputs", {}, "sin: the inputs must be (x), got 0"),
    ("ops.0.inputs", {"x": []}, "sin: the inputs must be (x), got 0"),
    ("ops.0.inputs", {"x": ["x", "x"]}, "slot 'x' must hold one value, got 2"),
    ("ops.0.inputs", {"x": "x"}, "blocks[0].ops[0].inputs[...] (sin): Expected `array`"),
    ("ops.0.inputs", {"x": ["z"]}, "'z' is not defined"),
    ("ops.0.inputs", {"x": ["b"]}, "'b' must be defined before it is used, but blocks[0].ops[2]"),
    ("ops.0.inputs", {"x": ["a"]}, "'a' must be defined before it is used"),
    ("ops.0.outputs", {"out": ["x"]}, "'x' must be defined once, and is defined before"),
    ("ops.0.outputs", {"out": []}, "'a' is not defined"),
    ("ops.0.outputs", {"out": ["a", "e"]}, "output 'out' must have one name, got 2"),
    ("ops.0.outputs", {"uot": ["a"]}, "the outputs are out, got 'uot'; did you mean 'out'"),
    ("ops.0.outputs", {}, "at least one output must be named"),
    ("ops.0.attrs", {"axis": 1}, "the attributes are none, got 'axis'"),
    ("ops.0.attrs", {"x": 1}, "the attributes are none, got 'x'"),
    ("ops.0.attrs", {"name": "n"}, "the attributes are none, got 'name'"),
    ("ops.0.name", "b", "the name 'b' must be given once"),
    ("ops.0.name", "x", "the name 'x' must be given once"),
    ("ops.0.site", "nowhere", "the site must be file:line, got 'nowhere'"),
    ("ops.0.site", "a.py:-1", "the site must be file:line"),
    ("ops.0.site", 3, "Expected `str | null`, got `int`"),
    ("ops.1.attrs", {}, "blocks[0].ops[1] (constant 'c'): attrs: Object missing required field"),
    ("ops.1.attrs", {"value": "1"}, "the value of a constant must be a number, got '1'"),
    ("ops.1.attrs", {"value": None}, "must be a number, got None"),
    ("ops.1.attrs", {"value": [1]}, "must be a number, got [1]"),
    ("ops.1.attrs", {"value": {"float": "1"}}, "cannot read the attribute value"),
    ("ops.1.attrs", {"value": {"complex": [1.0]}}, "cannot read the attribute value"),
    ("ops.1.attrs", {"value": {"complex": [1.0, "a"]}}, "a part of a complex number must be"),
    ("ops.1.attrs", {"value": 1.0, "shape": [2]}, "must have a dtype, got none"),
    ("ops.1.attrs", {"value": 1, "dtype": "int"}, "no dtype is called 'int'"),
    ("ops.1.attrs", {"value": 1, "dtype": "int8", "kind": "x"}, "'x' is not a valid VarKind"),
    ("ops.1.attrs", {"value": 1, "dtype": "int8", "shape": [-1]}, "the lengths of a shape"),
    ("ops.1.attrs", {"value": 1, "valeu": 2}, "unknown field `valeu`"),
    ("ops.1.inputs", {"x": ["x"]}, "the slots are none, got 'x'"),
    ("ops.1.name", "constant9", "a name is given to calls of operators only"),
    ("ops.2.attrs", {"count": 1.5}, "'count' must be an int, got 1.5"),
    ("ops.2.attrs", {"conut": 1}, "got 'conut'; did you mean 'count'"),
    ("ops.2.attrs", {"ratio": "a"}, "saved_attrs: attribute 'ratio' must be a float, got 'a'"),
    ("ops.2.attrs", {"dtype": {"dtype": "O"}}, "no dtype is called 'O'"),
    ("ops.2.attrs", {"dtype": {"dtype": 3}}, "cannot read the attribute value {'dtype': 3}"),
    ("ops.2.attrs", {"count": {"__class__": "os"}}, "cannot read the attribute value"),
    ("ops.2.attrs", {"pads": deep(40)}, "must nest at most 32 deep"),
    ("ops.2.attrs", {"pads": deep(20)}, "'pads' must be"),
    ("ops.2.attrs", [1], "Expected `object`, got `array`"),
    ("ops.3.attrs.data", "AAA", "attrs: Invalid base64 encoded string"),
    ("ops.3.attrs.data", "AA==", "must be 2 bytes long, got 1"),
    ("ops.3.attrs.data", "AAI=", "the data of a bool array must be zeros and ones"),
    ("ops.3.attrs.data", None, "entries were left out"),
    ("ops.3.attrs.shape", [10**18, 10**18], "must be 1" + "0" * 36 + " bytes long, got 2"),
    ("ops.3.attrs.shape", [1] * 70 + [2], "blocks[0].ops[3] (array 'd'): "),
    ("ops.3.attrs.dtype", "object", "no dtype is called 'object'"),
    ("ops.3", {"type": "random_key", "outputs": {"out": ["d"]}}, "missing required field `rank`"),
    (
        "ops.3",
        {"type": "training", "outputs": {"out": ["d"]}, "attrs": {"a": 1}},
        "(training 'd'): attrs: Object contains unknown field `a`",
    ),
    (
        "ops.3",
        {**joined("y"), "outputs": {"out": ["d"]}, "site": "model.py:12"},
        "blocks[0].ops[3] (saved_join 'd'): saved_join: ",
    ),
    (
        "ops.3",
        {**joined("y"), "outputs": {"out": ["d"]}, "site": "model.py:12"},
        "built at model.py:12",
    ),
    (
        "ops.3",
        {"type": "saved_noise", "inputs": {"x": ["x"]}, "outputs": {"out": ["d"]}},
        "slot 'key' must be filled, got nothing",
    ),
    (
        "ops.3",
        {"type": "saved_norm", "inputs": {"x": ["x"]}, "outputs": {"out": ["d"]}},
        "slot 'gamma' must be filled, got nothing",
    ),
    ("ops.3", {**joined(), "outputs": {"out": ["d"]}}, "at least one input must be given"),
]


def replaced(path, value):
    """The text of the good program with one thing in it replaced."""
    program = json.loads(json.dumps(GOOD))
    *front, last = path.split(".")
    place = program["blocks"][0] if front or last in ("ops", "vars") else program
    for key in front:
        place = place[int(key) if key.isdecimal() else key]
    place[int(last) if last.isdecimal() else last] = value
    return json.dumps(program)


def nested_blocks(inner):
    """A program of branches, of which block ``i + 1`` calls block ``inner[i]``; the last none."""
    ops = [
        {"type": "constant", "outputs": {"out": ["p"]}, "attrs": {"value": True, "dtype": "bool"}},
        {"type": "constant", "outputs": {"out": ["t"]}, "attrs": {"value": False}},
    ]

    def block(number):
        call = {
            "type": "cond",
            "inputs": {"pred": ["p"], "training": ["t"], "operands": ["x"]},
            "outputs": {"parts0": ["o"]},
            "attrs": {"true_body": {"block": number}, "false_body": {"block": number}},
        }
        var = {"name": "x", "shape": [2], "dtype": "float32", "role": "argument"}
        return {"vars": [var], "ops": [*ops, call], "fetch": ["o"]}

    last = {**block(0), "ops": [{"type": "sin", "inputs": {"x": ["x"]}, "outputs": {"out": ["o"]}}]}
    first = {key: value for key, value in block(1).items() if key != "fetch"}
    blocks = [first, *map(block, inner), last]
    return json.dumps({"format": "symop", "version": 1, "blocks": blocks, "fetch": ["o"]})


def of_parts(type, shape, attrs, outputs):
    """A program of one call that gives a number of values."""
    var = {"name": "q", "shape": shape, "dtype": "float32", "role": "argument"}
    op = {"type": type, "inputs": {"x": ["q"]}, "outputs": outputs, "attrs": attrs}
    fetch = [outputs[key][0] for key in list(outputs)[:1]]
    return {
        "format": "symop",
        "version": 1,
        "blocks": [{"vars": [var], "ops": [op]}],
        "fetch": fetch,
    }


class TestHostile:
    def test_the_good_program_loads(self):
        assert len(loads(json.dumps(GOOD))) == 2

    @pytest.mark.parametrize(("path", "value", "message"), HOSTILE)
    def test_says_what_and_where(self, path, value, message):
        with pytest.raises(FormatError) as caught:
            loads(replaced(path, value))
        assert message in str(caught.value)

    def test_causes_are_kept(self):
        with pytest.raises(FormatError) as caught:
            loads(replaced("ops.0.type", "sinn"))
        assert isinstance(caught.value.__cause__, UnknownOperatorError)
        wrong = {"type": "add", "inputs": {"x": ["x"], "y": ["y"]}, "outputs": {"out": ["d"]}}
        with pytest.raises(FormatError, match=r"blocks\[0\].ops\[3\] \(add 'd'\)") as caught:
            loads(replaced("ops.3", wrong))
        assert isinstance(caught.value.__cause__, ShapeError)

    def test_a_rank_given_twice(self):
        program = json.loads(dumps(noisy()))
        for op in program["blocks"][0]["ops"]:
            if op["type"] == "random_key":
                op["attrs"]["rank"] = 5
        with pytest.raises(FormatError, match="rank 5 must be given once, got it twice"):
            loads(json.dumps(program))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "line 1, column 1: Input data was truncated"),
            ("   ", "truncated"),
            ("nonsense", "line 1, column 5: JSON is malformed"),
            ('{"format": "symop",\n "version": 1,\n oops}', "line 3, column 2: JSON is malformed"),
            ("[]", "the text: Expected `object`, got `array`"),
            ("{}", "format: must be 'symop', got ''"),
            ("null", "Expected `object`, got `null`"),
            ('{"format": "symop"}', "version: must be at least 1"),
            ('{"format": "symop", "version": 1} x', "trailing characters"),
            ('{"format": "symop", "version": 1, "version": NaN}', "malformed"),
            ("[" * 1_000_000, "Expected `object`"),
            ('{"a": ' + "[" * 1_000_000, "nests too deeply"),
            (b"\xff\xfe", "malformed"),
            (b'{"format": "\xff"}', "must be UTF-8 JSON"),
            ("\ud800", "must be UTF-8 JSON"),
            ('{"format": "symop", "version": 1' + "0" * 5000 + "}", "version"),
        ],
        ids=range(16),
    )
    def test_text_that_is_no_program(self, text, message):
        with pytest.raises(FormatError) as caught:
            loads(text)
        assert message in str(caught.value)

    def test_nested_in_an_attribute(self):
        nested = "[" * 100_000 + "]" * 100_000
        text = replaced("ops.2.attrs", {"pads": "HERE"}).replace('"HERE"', nested)
        with pytest.raises(FormatError, match="nests too deeply"):
            loads(text)

    def test_every_prefix_is_refused(self):
        text = json.dumps(GOOD, indent=1)
        for length in range(len(text)):
            with pytest.raises(FormatError):
                loads(text[:length])

    def test_every_changed_byte_is_refused_or_loads(self):
        data = json.dumps(GOOD).encode()
        rng = np.random.default_rng(0)
        for _ in range(1500):
            changed = bytearray(data)
            for _ in range(rng.integers(1, 4)):
                changed[rng.integers(len(data))] = rng.integers(256)
            with contextlib.suppress(FormatError):
                loads(bytes(changed))

    @pytest.mark.parametrize(
        ("type", "shape", "attrs"),
        [
            ("split", [4, 3], {"sections": 10**9, "axis": 0}),
            ("split", [0, 3], {"sections": 2**63 - 1, "axis": 0}),
            ("unstack", [10**9, 2], {"axis": 0}),
            ("unstack", [10**6, 2], {"axis": 0}),
        ],
    )
    def test_a_number_of_outputs_is_not_believed(self, type, shape, attrs):
        text = json.dumps(of_parts(type, shape, attrs, {"parts0": ["o"]}))
        with pytest.raises(FormatError, match=r"number of values of 'parts' must be at most 65536"):
            so.load_json(text)
        with pytest.raises(FormatError, match=r"must be at most 65536"):
            so.Program.from_desc(decode(text))

    def test_outputs_that_no_record_names_are_few(self):
        desc = of_parts("unstack", [30_000, 2], {"axis": 0}, {"parts7": ["o"]})
        with pytest.raises(FormatError, match="each output must be named, but 29999 are not"):
            so.load_json(json.dumps(desc))
        every = {f"parts{i}": [f"o{i}"] for i in range(30_000)}
        loaded = so.load_json(json.dumps({**of_parts("unstack", [30_000, 2], {}, every)}))
        assert loaded.shape == (2,)
        few = so.load_json(json.dumps(of_parts("unstack", [3000, 2], {}, {"parts7": ["o"]})))
        assert few.nodes[0].attributes == (7,)

    def test_blocks_that_contain_themselves_or_nest_deeply(self):
        assert so.load_json(nested_blocks(range(2, 7))).shape == (2,)
        assert so.load_json(nested_blocks(range(2, 201))).shape == (2,)
        with pytest.raises(FormatError, match="block 1 contains itself"):
            so.load_json(nested_blocks([2, 3, 1]))
        with pytest.raises(FormatError, match="block 1 contains itself"):
            so.load_json(nested_blocks([1]))
        with pytest.raises(FormatError, match="block 3 is not there, of 3"):
            so.load_json(nested_blocks([3]))
        limit = sys.getrecursionlimit()
        for inner in (range(2, 2001), [2, *range(1999, 0, -1)]):
            with pytest.raises(FormatError, match=r"must nest at most 256 deep|contains itself"):
                so.load_json(nested_blocks(inner))
        assert sys.getrecursionlimit() < max(limit, 15_000)

    def test_limit(self):
        text = json.dumps(GOOD)
        with pytest.raises(FormatError, match="at most 100 bytes long, got"):
            loads(text, limit=100)
        assert loads(text, limit=len(text))

    def test_records_made_by_hand_are_checked_too(self):
        with pytest.raises(FormatError, match="version: must be at most 1"):
            from_desc(ProgramDesc(version=9))


class TestFile:
    def test_save_and_load(self, tmp_path):
        nodes = nodes_of(*network())
        save(tmp_path / "model.json", nodes)
        assert load(tmp_path / "model.json") == nodes
        assert load(str(tmp_path / "model.json")) == nodes
        assert os.listdir(tmp_path) == ["model.json"]

    def test_errors_name_the_file(self, tmp_path):
        path = tmp_path / "broken.json"
        path.write_text(dumps(nodes_of(*network()))[:-20])
        with pytest.raises(FormatError, match=r"broken.json: line .*: Input data was truncated"):
            load(path)
        with pytest.raises(FormatError, match=r"broken.json: the file must be at most 10 bytes"):
            load(path, limit=10)
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "missing.json")

    def test_another_process_writes_the_same_file(self, tmp_path):
        first, second = tmp_path / "first.json", tmp_path / "second.json"
        save(first, nodes_of(*network()))
        script = "import sys, symop\nsymop.load(sys.argv[1]).save(sys.argv[2])"
        subprocess.run([sys.executable, "-c", script, first, second], check=True)
        assert second.read_bytes() == first.read_bytes()

    @pytest.mark.parametrize("failing", ["fsync", "replace", "write"])
    def test_failure_leaves_the_old_file(self, tmp_path, monkeypatch, failing):
        path = tmp_path / "model.json"
        save(path, nodes_of(*network()))
        before = path.read_bytes()

        def fail(*_args, **_kwargs):
            raise OSError("disk full")

        if failing == "write":
            opened = files.os.fdopen

            def open_failing(*args, **kwargs):
                file = opened(*args, **kwargs)
                file.write(b"half")
                file.flush()
                file.close()
                return fail()

            monkeypatch.setattr(files.os, "fdopen", open_failing)
        elif failing == "replace":
            monkeypatch.setattr(files.Path, "replace", fail)
        else:
            monkeypatch.setattr(files.os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            save(path, [variable("other")])
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["model.json"]

    def test_a_failing_graph_touches_no_file(self, tmp_path):
        x = variable("x", (2,))
        with pytest.raises(NameConflictError):
            save(tmp_path / "model.json", [JOIN(x, x, name="n"), JOIN(x, 1.0, name="n")])
        assert os.listdir(tmp_path) == []

    def test_a_link_stays_a_link(self, tmp_path):
        (tmp_path / "target").mkdir()
        link = tmp_path / "model.json"
        link.symlink_to(tmp_path / "target" / "real.json")
        save(link, [variable("x")])
        assert link.is_symlink()
        assert load(link) == [variable("x")]

    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o200, 0o4711])
    def test_a_file_keeps_its_mode_and_its_owner(self, tmp_path, mode):
        path = tmp_path / "model.json"
        save(path, [variable("x")])
        if os.geteuid() == 0:
            os.chown(path, 1234, 2345)
        path.chmod(mode)
        before = path.stat()
        save(path, [variable("y")])
        after = path.stat()
        assert stat.S_IMODE(after.st_mode) == mode
        assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)

    def test_a_new_file_has_the_mode_of_any_new_file(self, tmp_path):
        (tmp_path / "any").write_text("")
        save(tmp_path / "model.json", [variable("x")])
        assert (tmp_path / "model.json").stat().st_mode == (tmp_path / "any").stat().st_mode

    def test_nobody_reads_a_private_file_while_it_is_written(self, tmp_path, monkeypatch):
        path, modes = tmp_path / "model.json", []
        save(path, [variable("x")])
        path.chmod(0o600)
        taken = files._take_over

        def seen(descriptor, before):
            modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
            taken(descriptor, before)
            modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))

        monkeypatch.setattr(files, "_take_over", seen)
        save(path, [variable("y")])
        assert modes == [0o600, 0o600]

    def test_another_group_does_not_get_the_rights_of_the_old_one(self, tmp_path, monkeypatch):
        path = tmp_path / "model.json"
        save(path, [variable("x")])
        path.chmod(0o664)
        found = path.stat()
        before = os.stat_result([*found[:5], found.st_gid + 1, *found[6:]])

        def refuse(*_args):
            raise PermissionError

        monkeypatch.setattr(files.os, "fchown", refuse)
        with path.open("rb") as file:
            files._take_over(file.fileno(), before)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604

    def test_what_must_not_be_written_is_refused(self, tmp_path, monkeypatch):
        path = tmp_path / "model.json"
        save(path, [variable("x")])
        monkeypatch.setattr(files.os, "access", lambda *_args: False)
        with pytest.raises(PermissionError, match=r"the file must be writable: .*model\.json"):
            save(path, [variable("y")])
        monkeypatch.undo()

        def refuse(*_args):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(files.os, "open", refuse)
        with pytest.raises(PermissionError, match="the folder must be writable"):
            save(path, [variable("y")])
        monkeypatch.undo()
        assert load(path) == [variable("x")]
        with pytest.raises(IsADirectoryError):
            save(tmp_path, [variable("x")])

    def test_a_pipe_is_written_to(self, tmp_path, monkeypatch):
        path = tmp_path / "pipe"
        os.mkfifo(path)
        found = []
        reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
        reader.start()
        save(path, [variable("x")])
        reader.join()
        assert loads(found[0]) == [variable("x")]
        monkeypatch.setattr(files, "_PATIENCE", 0.05)
        with pytest.warns(UserWarning, match="no process reads this FIFO"):
            save(path, [variable("x")])
        assert os.listdir(tmp_path) == ["pipe"]
        assert stat.S_ISFIFO(path.stat().st_mode)

    def test_a_device_is_written_to(self, tmp_path):
        before = os.stat(os.devnull)
        save(os.devnull, [variable("x")])
        (tmp_path / "null").symlink_to(os.devnull)
        save(tmp_path / "null", [variable("x")])
        after = os.stat(os.devnull)
        assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)

    @pytest.mark.parametrize("name", ["漢" * 80, "é" * 125, "a" * 250, "😀" * 60])
    def test_every_legal_name_of_a_file_is_one(self, tmp_path, name):
        save(tmp_path / name, [variable("x")])
        assert os.listdir(tmp_path) == [name]
        assert load(tmp_path / name) == [variable("x")]


class TestParameters:
    def values(self):
        saved = [np.asarray([True, False]), np.asarray([], np.float32), np.asarray(3, np.int8)]
        saved += [np.ones((2, 0, 3), np.uint64), np.asarray([1 + 2j], np.complex64)]
        saved += [np.asarray(value, dtype) for value, dtype in [(1.5, jnp.bfloat16), (2, "f2")]]
        saved += [np.asarray([0.5], jnp.float8_e4m3fn), np.arange(6.0).reshape(2, 3).T]
        return {f"{i}.weight é": value for i, value in enumerate(saved)}

    def test_round_trip(self, tmp_path):
        values = self.values()
        save_parameters(tmp_path / "p", values)
        back = load_parameters(tmp_path / "p")
        assert set(back) == set(values)
        for name, value in values.items():
            assert back[name].shape == value.shape
            assert back[name].dtype == value.dtype
            np.testing.assert_array_equal(back[name], value)

    def test_jax_arrays_lists_and_byte_orders(self, tmp_path):
        given = {
            "a": jnp.arange(3, dtype=jnp.bfloat16),
            "b": [1, 2],
            "c": np.arange(3, dtype=">i4"),
        }
        save_parameters(tmp_path / "p", given)
        back = load_parameters(tmp_path / "p")
        assert [back[name].dtype.name for name in "abc"] == ["bfloat16", "int64", "int32"]
        assert [back[name].tolist() for name in "abc"] == [[0, 1, 2], [1, 2], [0, 1, 2]]

    def test_bytes_follow_from_the_content(self, tmp_path):
        values = self.values()
        save_parameters(tmp_path / "p", values)
        save_parameters(tmp_path / "q", dict(reversed(values.items())))
        assert (tmp_path / "p").read_bytes() == (tmp_path / "q").read_bytes()

    def test_empty(self, tmp_path):
        save_parameters(tmp_path / "p", {})
        assert load_parameters(tmp_path / "p") == {}

    def test_loaded_arrays_can_be_written(self, tmp_path):
        save_parameters(tmp_path / "p", {"a": np.zeros(2)})
        load_parameters(tmp_path / "p")["a"][0] = 1.0

    @pytest.mark.parametrize("value", [np.asarray([1j]), np.asarray(["a"]), np.asarray([None])])
    def test_dtypes_that_the_format_lacks(self, tmp_path, value):
        with pytest.raises(DTypeError, match="the dtype of 'v' must be one of bool"):
            save_parameters(tmp_path / "p", {"v": value})
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("name", ["__metadata__", 3])
    def test_names_that_the_format_lacks(self, tmp_path, name):
        with pytest.raises(ArgumentError, match="a name must be a str"):
            save_parameters(tmp_path / "p", {name: np.zeros(2)})

    def test_damaged_files(self, tmp_path):
        path = tmp_path / "p"
        save_parameters(path, {"a": np.arange(3.0), "b": np.asarray(1, np.int32)})
        data = path.read_bytes()
        for damaged in [*(data[:n] for n in range(len(data))), data + b"x", b"\xff" * 64]:
            path.write_bytes(damaged)
            with pytest.raises(FormatError, match="p: must be a safetensors file"):
                load_parameters(path)
        path.write_bytes(data.replace(b"F64", b"F99"))
        with pytest.raises(FormatError):
            load_parameters(path)

    def test_no_more_is_read_than_allowed(self, tmp_path):
        path = tmp_path / "p"
        save_parameters(path, {"a": np.arange(3.0)})
        length = path.stat().st_size
        assert load_parameters(path, limit=length)["a"].tolist() == [0, 1, 2]
        with pytest.raises(FormatError, match=r"p: the file must be at most .*; pass limit="):
            load_parameters(path, limit=length - 1)

    def test_sizes_are_not_believed(self, tmp_path):
        path = tmp_path / "p"
        huge = b'{"a": {"dtype": "U8", "shape": [%d], "data_offsets": [0, %d]}}'
        for count in (10**9, 10**15, 2**70):
            header = huge % (count, count)
            path.write_bytes(len(header).to_bytes(8, "little") + header)
            with pytest.raises(FormatError):
                load_parameters(path)
        header = huge % (10**13, 10**13)
        with path.open("wb") as file:  # sparse: it takes no room, and is as long as it says
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + 10**13)
        with pytest.raises(FormatError, match="at most 68719476736 bytes long"):
            load_parameters(path)
        with pytest.raises(FormatError, match="must fit into the memory"):
            load_parameters(path, limit=10**14)

    def test_an_endless_file_is_refused(self):
        with pytest.raises(FormatError, match="must be a safetensors file"):
            load_parameters("/dev/zero")
        with pytest.raises(FormatError, match="at most 1000 bytes"):
            load("/dev/zero", limit=1000)

    def test_parameters_come_through_a_pipe(self, tmp_path):
        path, pipe = tmp_path / "p", tmp_path / "pipe"
        save_parameters(path, {"a": np.arange(3.0)})
        os.mkfifo(pipe)
        writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
        writer.start()
        assert load_parameters(pipe)["a"].tolist() == [0, 1, 2]
        writer.join()

    def test_a_pickle_is_refused(self, tmp_path):
        np.save(tmp_path / "p.npy", np.asarray([{}]), allow_pickle=True)
        with pytest.raises(FormatError):
            load_parameters(tmp_path / "p.npy")

    def test_failure_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "p"
        save_parameters(path, {"a": np.zeros(2)})
        before = path.read_bytes()

        def fail(_descriptor):
            raise OSError("disk full")

        monkeypatch.setattr(files.os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            save_parameters(path, {"a": np.ones(2)})
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["p"]
