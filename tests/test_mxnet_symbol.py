"""Symbols of MXNet: composed, named, inferred in both directions, read from files of every age."""

import copy
import json
import pickle
import threading

import numpy as np
import pytest

import symop as so
import symop.interop.mxnet as mx
from symop.interop.mxnet import MXNetError, MXNetFormatError, translating
from symop.interop.mxnet.translating import translated


@pytest.fixture
def net():
    with mx.name.NameManager():
        data = mx.sym.Variable("data")
        hidden = mx.sym.FullyConnected(data, num_hidden=4, name="fc1")
        hidden = mx.sym.Activation(hidden, act_type="relu")
        out = mx.sym.FullyConnected(hidden, num_hidden=3, name="fc2")
        return mx.sym.SoftmaxOutput(out, name="softmax")


# Names and parts --------------------------------------------------------------------------------


def test_missing_inputs_become_variables(net):
    assert net.list_arguments() == [
        "data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias", "softmax_label",
    ]  # fmt: skip
    assert net.list_outputs() == ["softmax_output"]
    assert net.name == "softmax"
    assert net.list_auxiliary_states() == []


def test_states_are_no_arguments():
    net = mx.sym.BatchNorm(mx.sym.var("data"), name="bn")
    assert net.list_arguments() == ["data", "bn_gamma", "bn_beta"]
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert net.list_inputs() == [*net.list_arguments(), *net.list_auxiliary_states()]


def test_internals_by_name_and_number(net):
    internals = net.get_internals()
    assert "activation0_output" in internals.list_outputs()
    part = internals["fc1_output"]
    assert part.list_arguments() == ["data", "fc1_weight", "fc1_bias"]
    assert internals[0].name == "data"
    assert len(internals[:2]) == 2
    with pytest.raises(ValueError, match="must be called 'nothing'"):
        internals["nothing"]


def test_children(net):
    assert net.get_children().list_outputs() == ["fc2_output", "softmax_label"]
    assert mx.sym.var("x").get_children() is None


def test_groups_and_several_outputs():
    x = mx.sym.var("x")
    parts = mx.sym.SliceChannel(x, num_outputs=3, name="cut")
    assert parts.list_outputs() == ["cut_output0", "cut_output1", "cut_output2"]
    assert [one.list_outputs() for one in parts] == [[f"cut_output{i}"] for i in range(3)]
    group = mx.sym.Group([x, parts[1]])
    assert group.list_outputs() == ["x", "cut_output1"]
    assert group.name is None
    with pytest.raises(MXNetError, match="Group: symbols must be given"):
        mx.sym.Group([1])


def test_automatic_names_and_prefixes():
    x = mx.sym.var("x")
    with mx.name.NameManager():
        assert [mx.sym.exp(x).name, mx.sym.exp(x).name] == ["exp0", "exp1"]
        assert (x + x).name == "_plus0"
        assert (x * 2).name == "_mulscalar0"
    with mx.name.Prefix("mine_"):
        assert mx.sym.FullyConnected(x, num_hidden=2, name="fc").list_arguments() == [
            "x", "mine_fc_weight", "mine_fc_bias",
        ]  # fmt: skip


def test_names_of_another_thread_are_its_own():
    found = []
    with mx.name.Prefix("outer_"):
        thread = threading.Thread(target=lambda: found.append(mx.sym.exp(mx.sym.var("x")).name))
        thread.start()
        thread.join()
    assert not found[0].startswith("outer_")


def test_scopes_of_two_threads_are_open_at_once():
    both, seen = threading.Barrier(2, timeout=60), {}

    def enter(mood, number):
        with mx.AttrScope(mood=mood), mx.cpu(number):
            both.wait()
            seen[mood] = mx.sym.var("x").attr("mood"), mx.current_context()
            both.wait()
        both.wait()
        seen[mood] += mx.sym.var("x").attr("mood"), mx.current_context()

    threads = [threading.Thread(target=enter, args=one) for one in (("calm", 1), ("gay", 2))]
    with mx.AttrScope(mood="glad"), mx.cpu(3):
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert seen == {
        mood: (mood, mx.cpu(number), None, mx.cpu(0)) for mood, number in (("calm", 1), ("gay", 2))
    }


# Attributes -------------------------------------------------------------------------------------


def test_attributes_of_scopes_calls_and_variables():
    with mx.AttrScope(ctx_group="first", __mood__="calm"):
        with mx.AttrScope(__mood__="gay"):
            x = mx.sym.var("x", shape=(2, 0), lr_mult=0.5, dtype="float16")
        y = mx.sym.exp(x, name="y", attr={"__more__": "1"})
    assert x.attr("__mood__") == "gay"
    assert x.attr("ctx_group") == x.attr("__ctx_group__") == "first"
    assert x.list_attr()["__shape__"] == "(2, 0)"
    assert x.list_attr()["__dtype__"] == "2"
    found = y.attr_dict()
    assert found["y"]["__more__"] == "1"
    assert found["x"]["lr_mult"] == found["x"]["__lr_mult__"] == "0.5"
    y._set_attr(mood="glad", lr_mult=2)
    assert y.attr("mood") == "glad"
    assert y.attr("lr_mult") == "2"


def test_attributes_are_checked():
    x = mx.sym.var("x")
    with pytest.raises(MXNetError, match=r"FullyConnected: num_hidden must be given"):
        mx.sym.FullyConnected(x)
    with pytest.raises(MXNetError, match=r"FullyConnected: attributes must be among .*'hidden'"):
        mx.sym.FullyConnected(x, num_hidden=1, hidden=2)
    with pytest.raises(MXNetError, match=r"num_hidden must be a whole number, got '1.5'"):
        mx.sym.FullyConnected(x, num_hidden=1.5)
    with pytest.raises(MXNetError, match=r"act_type must be one of 'relu'"):
        mx.sym.Activation(x, act_type="rely")
    with pytest.raises(MXNetError, match=r"var: attributes must be called __mood__"):
        mx.sym.var("x", mood="calm")


# Composition ------------------------------------------------------------------------------------


def test_composition_leaves_the_parts_alone(net):
    top = mx.sym.FullyConnected(mx.sym.var("data2"), num_hidden=2, name="top")
    joined = top(data2=net, name="joined")
    assert joined.list_outputs() == ["joined_output"]
    assert joined.list_arguments()[:6] == net.list_arguments()
    assert top.list_arguments() == ["data2", "top_weight", "top_bias"]
    assert top(net).list_arguments() == joined.list_arguments()
    with pytest.raises(MXNetError, match="compose: names must be among"):
        top(nothing=net)


def test_out_of_a_call_is_ignored():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    for function in (mx.sym.elemwise_add, mx.sym.sparse.elemwise_sub):
        assert function(x, y, out=x).list_arguments() == ["x", "y"]


def test_copies_are_apart(net):
    for made in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        made._set_attr(__mood__="new")
        assert made.list_arguments() == net.list_arguments()
        assert net.attr("__mood__") is None


# Types ------------------------------------------------------------------------------------------


def test_weights_follow_from_data(net):
    arguments, outputs, states = net.infer_shape(data=(5, 2))
    assert arguments == [(5, 2), (4, 2), (4,), (3, 4), (3,), (5,)]
    assert outputs == [(5, 3)]
    assert states == []


def test_data_follow_from_outputs():
    begin = mx.sym.zeros(shape=(0, 6))
    hidden = mx.sym.FullyConnected(begin, num_hidden=6, name="h")
    x = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=6, name="i")
    both = hidden + x
    assert both.infer_shape(x=(7, 3))[1] == [(7, 6)]
    assert both.simple_bind(None, x=(7, 3)).forward()[0].shape == (7, 6)


def test_a_length_of_zero_is_unknown():
    x, y = mx.sym.var("x", shape=(0, 3)), mx.sym.var("y", shape=(4, 0))
    assert (x + y).infer_shape() == ([(4, 3), (4, 3)], [(4, 3)], [])


@pytest.mark.parametrize(
    ("own", "given", "expected"),
    [
        ((2, 3), {}, (2, 3)),
        ((0, 3), {"y": (2, 0)}, (2, 3)),
        ((0, 3), {"x": (2, 3)}, (2, 3)),
        ((0, 3), {"x": (2, 4)}, (2, 4)),
        ((2, 3), {"x": ()}, (2, 3)),
        ((2, 3), {"x": (5, 6), "y": (5, 6)}, (5, 6)),
    ],
)
def test_a_shape_of_a_variable_is_completed_or_replaced(own, given, expected):
    net = mx.sym.var("x", shape=own) + mx.sym.var("y")
    assert net.infer_shape(**given) == ([expected] * 2, [expected], [])
    bound = net.simple_bind(mx.cpu(), **given)
    assert [one.shape for one in bound.arg_arrays] == [expected] * 2


@pytest.mark.parametrize(
    ("own", "given"),
    [((2, 3), (2, 4)), ((2, 3), (2, 3, 4)), ((0, 3), (2, 4)), ((0, 3), (3,))],
)
def test_a_shape_of_a_variable_contradicts_those_of_others(own, given):
    x, y = mx.sym.var("x", shape=own), mx.sym.var("y")
    for ask in (
        lambda: mx.sym.elemwise_add(x, y, name="sum").infer_shape(y=given),
        lambda: mx.sym.elemwise_add(x, y, name="sum").infer_shape_partial(y=given),
        lambda: mx.sym.elemwise_add(x, y, name="sum").simple_bind(mx.cpu(), y=given),
        lambda: mx.sym.elemwise_add(x, mx.sym.var("y", shape=given), name="sum").infer_shape(),
    ):
        with pytest.raises(MXNetError, match=r"elemwise_add: .*\(node 'sum'\)"):
            ask()


def test_a_weight_with_a_shape_of_its_own_must_fit():
    def dense(shape):
        weight = mx.sym.var("w", shape=shape)
        return mx.sym.FullyConnected(mx.sym.var("x"), weight, num_hidden=4, name="fc")

    for shape in ((4, 5), (0, 5), (0, 0)):
        assert dense(shape).infer_shape(x=(2, 5))[0] == [(2, 5), (4, 5), (4,)]
    with pytest.raises(MXNetError, match=r"\(4, 6\).*\(node 'fc'\)"):
        dense((4, 6)).infer_shape(x=(2, 5))


@pytest.mark.parametrize(
    "shapes",
    [{"c": (0,)}, {"c": (0, 2)}, {"c": (2, 0)}, {}],
    ids=["a line", "rows", "columns", "nothing"],
)
def test_a_choice_has_no_shape_without_that_of_its_condition(shapes):
    net = mx.sym.where(*(mx.sym.var(name) for name in "cxy"))
    found = net.infer_shape_partial(x=(2, 2), y=(2, 2), **shapes)
    assert found == ([shapes.get("c", ()), (2, 2), (2, 2)], [()], [])
    with pytest.warns(UserWarning, match="more shapes must be given"):
        assert net.infer_shape(x=(2, 2), y=(2, 2), **shapes) == (None, None, None)
    with mx.np_shape():
        unknown = {name: tuple(n or -1 for n in one) for name, one in shapes.items()}
        assert net.infer_shape_partial(x=(2, 2), y=(2, 2), **unknown)[1] == [None]


def test_a_choice_has_the_shape_of_what_it_chooses_from():
    net = mx.sym.where(*(mx.sym.var(name) for name in "cxy"))
    assert net.infer_shape(c=(2,), y=(2, 3)) == ([(2,), (2, 3), (2, 3)], [(2, 3)], [])
    assert net.infer_shape(c=(2, 3), x=(2, 0)) == ([(2, 3)] * 3, [(2, 3)], [])
    for shapes in ({"c": (3,), "x": (2, 2)}, {"c": (2, 2), "x": (2, 3)}):
        with pytest.raises(MXNetError, match="where: "):
            net.infer_shape(**shapes)


@pytest.mark.parametrize(
    ("told", "x", "expected"),
    [
        ({"begin": (0, 1), "end": (2, 3)}, (0, 5), (0, 2)),
        ({"begin": (1,), "end": (None,)}, (0, 5), (0, 5)),
        ({"begin": (None, 4), "end": (None, 0), "step": (None, -2)}, (0, 5), (0, 2)),
        ({"begin": (None, -2), "end": (None, None)}, (3, 0), (3, 0)),
        ({"begin": (1, 1), "end": (2, 2)}, (), ()),
    ],
)
def test_a_part_of_a_length_that_is_unknown_is_unknown(told, x, expected):
    net = mx.sym.slice(mx.sym.var("x"), **told)
    assert net.infer_shape_partial(x=x) == ([x], [expected], [])
    with mx.np_shape():
        given = {"x": tuple(n or -1 for n in x)} if x else {}
        found = tuple(n or -1 for n in expected) if x else None
        assert net.infer_shape_partial(**given)[1] == [found]


def test_what_follows_a_part_has_a_shape_as_far_as_it_is_known():
    x = mx.sym.var("x")
    part = mx.sym.slice(x, begin=(0, 0), end=(None, 3))
    net = mx.sym.FullyConnected(part, num_hidden=4, name="fc")
    assert net.infer_shape_partial(x=(0, 5)) == ([(0, 5), (4, 3), (4,)], [(0, 4)], [])
    net = mx.sym.slice_axis(x, axis=-1, begin=1, end=3) + mx.sym.var("y")
    assert net.infer_shape_partial(x=(0, 5), y=(2, 0)) == ([(0, 5), (2, 2)], [(2, 2)], [])
    with pytest.raises(MXNetError, match="shapes must agree"):
        net.infer_shape_partial(x=(0, 5), y=(2, 3))


def test_what_stays_open(net):
    with pytest.warns(
        UserWarning, match="more shapes must be given to tell those of data, fc1_weight"
    ):
        assert net.infer_shape() == (None, None, None)
    arguments, _, _ = net.infer_shape_partial()
    assert arguments[2] == ()  # as in MXNet, no shape follows without that of the data
    with pytest.raises(MXNetError, match=r"\(node '_plus0'\)|\(node '"):
        (mx.sym.var("x") + mx.sym.var("y")).infer_shape(x=(2, 3), y=(2, 4))
    with pytest.raises(MXNetError, match="got 'nothing'"):
        net.infer_shape(nothing=(1,))


DEBUG = """Symbol Outputs:
	output[0]=bn(0)
Variable:a
--------------------
Op:_mul_scalar, Name=twice
Inputs:
	arg[0]=a(0) version=0
Attrs:
	scalar=2
Variable:bn_gamma
Variable:bn_beta
Variable:bn_moving_mean
Variable:bn_moving_var
--------------------
Op:BatchNorm, Name=bn
Inputs:
	arg[0]=twice(0)
	arg[1]=bn_gamma(0) version=0
	arg[2]=bn_beta(0) version=0
	arg[3]=bn_moving_mean(0) version=1
	arg[4]=bn_moving_var(0) version=1
"""


def test_text_for_debugging():
    twice = mx.sym._mul_scalar(mx.sym.var("a"), scalar=2, name="twice")
    assert mx.sym.BatchNorm(twice, name="bn").debug_str() == DEBUG


def test_composition_in_place(net):
    below = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="below")
    net._compose(data=below, name="all")
    assert net.list_arguments()[:3] == ["x", "below_weight", "below_bias"]
    assert net.list_outputs() == ["all_output"]


def test_what_backends_would_do_changes_nothing(net):
    for made in (net.optimize_for("MKLDNN", skip_infer=True), net.get_backend_symbol("TensorRT")):
        assert made.tojson() == net.tojson()
        assert made is not net
    with pytest.raises(MXNetError, match="got 'MKLDN'; did you mean 'MKLDNN'"):
        net.optimize_for("MKLDN")


def test_what_a_symbol_cannot_do_says_what_can(net):
    with pytest.raises(NotImplementedError, match=r"so\.grad of what to_graph returns"):
        net.gradient(["fc1_weight"])
    assert net.as_nd_ndarray() is net
    with pytest.raises(NotImplementedError, match=r"mx\.sym\.np is not supported"):
        net.as_np_ndarray()
    with pytest.raises(MXNetError, match="use attr_dict"):
        net.list_attr(recursive=True)


# Files ------------------------------------------------------------------------------------------


def test_a_saved_symbol_comes_back(net, tmp_path):
    net.save(tmp_path / "net.json")
    again = mx.sym.load(tmp_path / "net.json")
    assert again.tojson() == net.tojson()
    assert mx.sym.load_json(net.tojson()).list_arguments() == net.list_arguments()


OLD = {
    "nodes": [
        {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1},
        {"op": "null", "param": {}, "name": "w", "inputs": [], "backward_source_id": -1},
        {
            "op": "FullyConnected",
            "param": {"no_bias": "True", "num_hidden": "3"},
            "name": "fc",
            "inputs": [[0, 0], [1, 0]],
            "backward_source_id": -1,
            "attr": {"ctx_group": "stage1", "weight_lr_mult": "1.2", "__mood__": "old"},
        },
        {"op": "BatchNorm", "param": {"eps": "0.001"}, "name": "bn", "inputs": [[2, 0]]},
        {"op": "argmax", "param": {"axis": "-1"}, "name": "most", "inputs": [[3, 0]]},
    ],
    "arg_nodes": [0, 1],
    "heads": [[3, 0], [4, 0]],
}


def test_files_of_0_8():
    symbol = mx.sym.load_json(json.dumps(OLD))
    assert symbol.list_arguments() == ["data", "w", "bn_gamma", "bn_beta"]
    assert symbol.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    attributes = symbol.attr_dict()
    assert attributes["w"]["__lr_mult__"] == "1.2"
    assert attributes["fc"]["__ctx_group__"] == "stage1"
    assert attributes["fc"]["__mood__"] == "old"
    assert "axis" not in attributes.get("most", {})
    assert symbol.infer_shape(data=(2, 5))[1] == [(2, 3), (1,)]


def test_files_of_0_9():
    old = {**OLD, "attrs": {"mxnet_version": ["int", 905]}}
    nodes = [dict(one) for one in OLD["nodes"]]
    for node in nodes:
        node["attr"] = {**node.pop("param"), **node.get("attr", {})}
    nodes[3]["inputs"] = [[2, 0, 0]]
    old["nodes"] = [*nodes[:3], nodes[4] | {"inputs": [[2, 0, 0]]}]
    old["heads"] = [[3, 0, 0]]
    symbol = mx.sym.load_json(json.dumps(old))
    assert symbol.attr_dict()["most"]["axis"] == "-1"
    assert symbol.infer_shape(data=(2, 5))[1] == [(2,)]


def broken(**changes):
    good = json.loads(mx.sym.exp(mx.sym.var("x"), name="y").tojson())
    good.update(changes)
    return json.dumps(good)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "MXNet's JSON must be given"),
        ("{", "MXNet's JSON must be given"),
        ("[1, 2]", "MXNet's JSON must be given"),
        ("[" * 100_000, "MXNet's JSON must be given"),
        (broken(nodes=3), r"Expected `array`, got `int` - at `\$.nodes`"),
        (broken(heads=[]), "heads must name at least one output"),
        (broken(heads=[[7, 0, 0]]), r"the head must be .* got \[7, 0, 0\]"),
        (broken(heads=[[1, 5, 0]]), "must be one of 1 outputs of 'y', got 5"),
        (broken(heads=[[-1, 0, 0]]), "the head must be"),
        (broken(heads=[[1]]), "the head must be"),
        (broken(attrs={"mxnet_version": "1.9"}), "mxnet_version must be"),
        (
            broken(nodes=[{"op": "exp", "name": "y", "inputs": [[0, 0, 0]]}], heads=[[0, 0, 0]]),
            "the input of 'y' must be",
        ),
    ],
)
def test_damaged_files_are_refused(text, message):
    with pytest.raises(MXNetFormatError, match=message):
        mx.sym.load_json(text)


def test_what_cannot_be_mapped_is_named():
    nodes = [{"op": "_contrib_unheard_of", "name": "strange", "inputs": []}]
    with pytest.raises(MXNetError, match=r"_contrib_unheard_of: no such operator.*'strange'"):
        mx.sym.load_json(broken(nodes=nodes, heads=[[0, 0, 0]]))
    nodes = [{"op": "exp", "name": "short", "inputs": []}]
    with pytest.raises(MXNetError, match=r"exp: 1 inputs must be given \(data\), got 0.*'short'"):
        mx.sym.load_json(broken(nodes=nodes, heads=[[0, 0, 0]]))


def test_a_deep_graph():
    x = mx.sym.var("x")
    for _ in range(3000):
        x = mx.sym.elemwise_add(x, mx.sym.var("x0") if x.name == "x" else x)
        x = mx.sym.BlockGrad(x)
    again = mx.sym.load_json(x.tojson())
    assert len(again.get_internals().list_outputs()) == 6002


# Execution --------------------------------------------------------------------------------------


def test_an_executor_reads_and_writes_in_place():
    x, w = mx.sym.var("x"), mx.sym.var("w")
    args = {"x": mx.nd.array([1.0, 2.0]), "w": mx.nd.array([3.0, 4.0])}
    grads = {"w": mx.nd.zeros((2,))}
    executor = (x * w).bind(mx.cpu(), args, args_grad=grads, grad_req={"w": "add", "x": "null"})
    for count in (1, 2):
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones((2,)))
        assert grads["w"].asnumpy().tolist() == [count * 1.0, count * 2.0]
    args["x"][:] = 5.0
    assert executor.forward()[0].asnumpy().tolist() == [15.0, 20.0]
    assert executor.outputs[0].asnumpy().tolist() == [15.0, 20.0]
    assert executor.output_dict.keys() == {(x * w).list_outputs()[0]} or executor.output_dict
    with pytest.raises(MXNetError, match="forward: names must be among x, w, got 'z'"):
        executor.forward(z=1)
    with pytest.raises(MXNetError, match=r"x: the shape must be \(2,\), got \(3,\)"):
        executor.forward(x=np.ones(3))


@pytest.mark.parametrize("requests", [{"w": "null"}, {"w": "null", "x": "write"}, {"x": "write"}])
def test_arguments_that_a_dict_of_requests_does_not_name_are_null(requests):
    args = {"x": mx.nd.array([1.0, 2.0]), "w": mx.nd.array([3.0, 4.0])}
    grads = {name: mx.nd.ones((2,)) * 7 for name in args}
    product = mx.sym.var("x") * mx.sym.var("w")
    executor = product.bind(mx.cpu(), args, args_grad=grads, grad_req=requests)
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2,)))
    assert grads["w"].asnumpy().tolist() == [7.0, 7.0]
    assert grads["x"].asnumpy().tolist() == ([3.0, 4.0] if "x" in requests else [7.0, 7.0])


def test_an_executor_for_other_shapes_shares_parameters(net):
    executor = net.simple_bind(mx.cpu(), data=(5, 2))
    with pytest.raises(MXNetError, match="reshape: softmax_label must keep its shape"):
        executor.reshape(data=(3, 2))
    with pytest.raises(MXNetError, match="reshape: data must not grow"):
        executor.reshape(data=(9, 2), softmax_label=(9,))
    other = executor.reshape(partial_shaping=True, data=(3, 2))
    assert [one.shape for one in other.outputs] == [(3, 3)]
    assert other.forward()[0].shape == (3, 3)
    assert other.arg_dict["fc1_weight"] is executor.arg_dict["fc1_weight"]


def test_a_monitor_sees_all_values(net):
    executor, seen = net.simple_bind(mx.cpu(), data=(5, 2)), []
    executor.set_monitor_callback(lambda name, value: seen.append((name, value.shape)))
    executor.forward()
    assert ("softmax_output", (5, 3)) in seen or len(seen) >= len(net.list_inputs())


def test_binding_says_what_is_missing(net):
    with pytest.raises(MXNetError, match="args must be given for all, got none for data"):
        net.bind(mx.cpu(), {})
    with pytest.raises(MXNetError, match="the shape of 'data' must be known"):
        net.simple_bind(mx.cpu())
    x = mx.sym.Group([mx.sym.var("x"), mx.sym.var("x")])
    with pytest.raises(MXNetError, match="names of variables must differ, got two of 'x'"):
        x.simple_bind(mx.cpu(), x=(2,))


def test_evaluation():
    x = mx.sym.var("x")
    (found,) = (x * x).eval(mx.cpu(), x=mx.nd.array([3.0]))
    assert found.asnumpy().tolist() == [9.0]


# Of every order ---------------------------------------------------------------------------------


def test_third_derivatives_of_a_mapped_graph():
    x = mx.sym.var("x")
    graph = mx.sym.sum(mx.sym.tanh(x) * x).to_graph(x=(3,))
    (value,) = graph
    at = graph.get_internals()["x"]
    third = so.derivative(so.reshape(value, shape=()), at, 3, direction=np.ones(3, np.float32))
    given = np.array([0.3, -0.2, 1.0], np.float32)
    t = np.tanh(given.astype(float))
    s = 1 - t * t
    expected = np.sum(3 * (-2 * t * s) + given * (-2 * s * s + 4 * t * t * s))
    np.testing.assert_allclose(third.eval(x=given), expected, rtol=1e-5)


# Control flow -----------------------------------------------------------------------------------


def variable(name):
    return {"op": "null", "name": name, "inputs": []}


FOREACH = {
    "nodes": [
        variable("data"),
        variable("start"),
        variable("w"),
        {
            "op": "_foreach",
            "name": "loop",
            "attrs": {
                "num_args": "4", "num_outputs": "2", "num_out_data": "1",
                "in_state_locs": "(1,)", "in_data_locs": "(0,)", "remain_locs": "(2,)",
            },
            "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]],
            "subgraphs": [
                {
                    "nodes": [
                        variable("d"),
                        variable("s"),
                        variable("w"),
                        {"op": "elemwise_add", "name": "a", "inputs": [[0, 0, 0], [1, 0, 0]]},
                        {"op": "elemwise_mul", "name": "m", "inputs": [[3, 0, 0], [2, 0, 0]]},
                        {"op": "_copy", "name": "c", "inputs": [[4, 0, 0]]},
                    ],
                    "arg_nodes": [0, 1, 2],
                    "heads": [[4, 0, 0], [5, 0, 0]],
                }
            ],
        },
    ],
    "arg_nodes": [0, 1, 2],
    "heads": [[3, 0, 0], [3, 1, 0]],
    "attrs": {"mxnet_version": ["int", 10901]},
}  # fmt: skip


def test_a_loop_over_slices():
    symbol = mx.sym.load_json(json.dumps(FOREACH))
    assert symbol.list_outputs() == ["loop_output0", "loop_output1"]
    executor = symbol.simple_bind(mx.cpu(), data=(3, 2), start=(2,), w=(2,))
    given = {"data": np.ones((3, 2)), "start": np.zeros(2), "w": np.full(2, 2.0)}
    stacked, last = executor.forward(is_train=True, **given)
    assert stacked.asnumpy()[:, 0].tolist() == [2.0, 6.0, 14.0]
    assert last.asnumpy().tolist() == [14.0, 14.0]
    executor.backward([mx.nd.zeros((3, 2)), mx.nd.ones((2,))])
    assert executor.grad_dict["data"].asnumpy()[:, 0].tolist() == [8.0, 4.0, 2.0]
    assert mx.sym.load_json(symbol.tojson()).tojson() == symbol.tojson()


WHILE = {
    "nodes": [
        variable("i"),
        variable("x"),
        {
            "op": "_while_loop",
            "name": "loop",
            "attrs": {
                "num_args": "4", "num_outputs": "3", "num_out_data": "1", "max_iterations": "5",
                "cond_input_locs": "(0,)", "func_input_locs": "(1, 0)", "func_var_locs": "(1, 0)",
            },
            "inputs": [[0, 0, 0], [1, 0, 0]],
            "subgraphs": [
                {
                    "nodes": [
                        variable("i"),
                        {
                            "op": "_lesser_scalar", "name": "less",
                            "attrs": {"scalar": "3"}, "inputs": [[0, 0, 0]],
                        },
                    ],
                    "arg_nodes": [0],
                    "heads": [[1, 0, 0]],
                },
                {
                    "nodes": [
                        variable("x"),
                        {"op": "elemwise_mul", "name": "sq", "inputs": [[0, 0, 0], [0, 0, 0]]},
                        variable("i"),
                        {
                            "op": "_plus_scalar", "name": "next",
                            "attrs": {"scalar": "1"}, "inputs": [[2, 0, 0]],
                        },
                    ],
                    "arg_nodes": [0, 2],
                    "heads": [[1, 0, 0], [3, 0, 0], [1, 0, 0]],
                },
            ],
        },
    ],
    "arg_nodes": [0, 1],
    "heads": [[2, 0, 0], [2, 1, 0], [2, 2, 0]],
    "attrs": {"mxnet_version": ["int", 10901]},
}  # fmt: skip


def test_a_loop_while_something_holds():
    symbol = mx.sym.load_json(json.dumps(WHILE))
    executor = symbol.simple_bind(mx.cpu(), i=(1,), x=(2,))
    given = {"i": np.zeros(1), "x": np.array([1.5, 0.5])}
    stacked, i, x = executor.forward(is_train=True, **given)
    assert i.asnumpy().tolist() == [3.0]
    np.testing.assert_allclose(x.asnumpy(), [1.5**8, 0.5**8])
    assert stacked.shape == (5, 2)
    np.testing.assert_allclose(stacked.asnumpy()[2], x.asnumpy())
    executor.backward([mx.nd.zeros((5, 2)), mx.nd.zeros((1,)), mx.nd.ones((2,))])
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), [8 * 1.5**7, 8 * 0.5**7])


COND = {
    "nodes": [
        variable("x"),
        {
            "op": "_cond",
            "name": "choice",
            "attrs": {
                "num_args": "4", "num_outputs": "1", "cond_input_locs": "(0,)",
                "then_input_locs": "(0,)", "else_input_locs": "(0,)",
            },
            "inputs": [[0, 0, 0]],
            "subgraphs": [
                {
                    "nodes": [
                        variable("x"),
                        {"op": op, "name": "y", "attrs": attrs, "inputs": [[0, 0, 0]]},
                    ],
                    "arg_nodes": [0],
                    "heads": [[1, 0, 0]],
                }
                for op, attrs in (
                    ("_greater_scalar", {"scalar": "0"}), ("square", {}), ("negative", {})
                )
            ],
        },
    ],
    "arg_nodes": [0],
    "heads": [[1, 0, 0]],
    "attrs": {"mxnet_version": ["int", 10901]},
}  # fmt: skip


@pytest.mark.parametrize(("x", "value", "slope"), [(3.0, 9.0, 6.0), (-3.0, 3.0, -1.0)])
def test_a_choice(x, value, slope):
    executor = mx.sym.load_json(json.dumps(COND)).simple_bind(mx.cpu(), x=(1,))
    (found,) = executor.forward(is_train=True, x=np.array([x]))
    assert found.asscalar() == value
    executor.backward(mx.nd.ones(1))
    assert executor.grad_dict["x"].asscalar() == slope


def test_what_initializes_a_state_is_told(tmp_path):
    net = mx.sym.BatchNorm(
        mx.sym.LeakyReLU(mx.sym.var("x"), act_type="prelu", name="act"), name="bn"
    )
    told = {name: one.get("__init__") for name, one in net.attr_dict().items()}
    assert told["bn_moving_mean"] == '["zero", {}]'
    assert told["bn_moving_var"] == '["one", {}]'
    assert told["act_gamma"] == '["Constant", {"value": 0.25}]'
    assert "bn_gamma" not in told
    module = mx.mod.Module(net, data_names=["x"], label_names=[])
    module.bind([("x", (2, 3))], for_training=False)
    module.init_params(mx.init.Uniform(0.1))
    arguments, _ = module.get_params()
    assert (arguments["act_gamma"].asnumpy() == 0.25).all()


# What used to go wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "attributes", "count"),
    [
        ("Concat", {"num_args": "30000000"}, 1),
        ("SliceChannel", {"num_outputs": "30000000"}, 1),
        ("SliceChannel", {"num_outputs": "-4"}, 1),
        ("_split_v2", {"indices": "(1,)", "sections": "1000000000"}, 1),
        ("RNN", {"state_size": "2", "num_layers": "1000000000", "mode": "lstm"}, 4),
    ],
)
def test_counts_are_bounded(op, attributes, count):
    inputs = [[0, 0, 0]] * count
    nodes = [variable("x"), {"op": op, "name": "many", "attrs": attributes, "inputs": inputs}]
    text = json.dumps({**FOREACH, "nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]})
    most = 1024 if op == "RNN" else 65536
    with pytest.raises(MXNetError, match=rf"must be between 0 and {most},.*\(node 'many'\)"):
        mx.sym.load_json(text)


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (lambda x: mx.sym.Convolution(x, kernel=(3, 3), stride=(0, 0), num_filter=2, name="n"), 4),
        (lambda x: mx.sym.Convolution(x, kernel=(3, 3), num_group=0, num_filter=2, name="n"), 4),
        (lambda x: mx.sym.Pooling(x, kernel=(2, 2), stride=(0, 0), name="n"), 4),
        (lambda x: mx.sym.SliceChannel(x, num_outputs=2, axis=9, name="n"), 2),
        (lambda x: mx.sym.FullyConnected(x, num_hidden=-3, name="n"), 2),
    ],
)
def test_senseless_attributes_name_operator_and_node(make, shapes):
    with pytest.raises(MXNetError, match=r"(?s)^[A-Z]\w+: .*\(node 'n'\)"):
        make(mx.sym.var("x")).infer_shape(x=(2, 4, 6, 8)[:shapes])


@pytest.mark.parametrize("text", ["9" * 400, "(1, 2", "i4,(", "999999999999999999999f4"])
def test_what_is_no_dtype_is_refused(text):
    shaped = {"__shape__": "(2,)"}
    nodes = [
        {"op": "null", "name": "x", "attrs": {**shaped, "__dtype__": text}, "inputs": []},
        {"op": "Cast", "name": "y", "attrs": {"dtype": "float32"}, "inputs": [[0, 0, 0]]},
    ]
    graph = json.loads(broken(nodes=nodes, heads=[[1, 0, 0]]))
    with pytest.raises(MXNetError, match="x: __dtype__ must be a dtype, got"):
        mx.sym.load_json(json.dumps(graph)).infer_type()
    nodes[0]["attrs"], nodes[1]["attrs"] = shaped, {"dtype": text}
    with pytest.raises(MXNetError):
        mx.sym.load_json(json.dumps(graph | {"nodes": nodes})).to_graph()


@pytest.mark.parametrize("how", [{"pad": 10**9}, {"stride": 2**25}, {"dilate": 2**40}])
def test_places_that_single_precision_does_not_tell_apart_are_refused(how):
    options = {"kernel": (1, 1), "num_filter": 2, **{key: (one, one) for key, one in how.items()}}
    net = mx.sym.contrib.DeformableConvolution(mx.sym.var("data"), mx.sym.var("offset"), **options)
    with pytest.raises(MXNetError, match="DeformableConvolution: places must be at most 16777216"):
        net.to_graph(data=(1, 2, 4, 4))


def test_the_number_of_displacements_is_computed():
    net = mx.sym.Correlation(
        mx.sym.var("a"), mx.sym.var("b"), max_displacement=40_000, pad_size=40_000, stride2=2
    )
    assert net.infer_shape(a=(1, 2, 5, 5), b=(1, 2, 5, 5))[1] == [(1, 40_001**2, 5, 5)]


def test_more_layers_than_a_network_has_are_refused():
    with pytest.raises(MXNetError, match="num_layers must be between 0 and 1024, got 1025"):
        mx.sym.RNN(*map(mx.sym.var, "abcd"), state_size=4, num_layers=1025, mode="lstm")


def test_more_coordinates_than_axes_are_refused():
    net = mx.sym.scatter_nd(mx.sym.var("x"), mx.sym.var("at"), shape=(4, 3, 2))
    with pytest.raises(MXNetError, match=r"coordinates must be at most 3.*\(1000000000, 3\)"):
        net.to_graph(x=(2, 3), at=(10**9, 3))


@pytest.mark.parametrize(
    ("name", "attributes", "shapes"),
    [
        ("_contrib_box_nms", {}, [(2, 10**9, 6)]),
        ("_contrib_bipartite_matching", {"threshold": "0.5"}, [(10**9, 2)]),
        ("_contrib_MultiBoxPrior", {}, [(1, 3, 10**5, 10**4)]),
        ("_linalg_maketrian", {}, [(1, 8001 * 4001)]),
    ],
)
def test_constants_of_a_graph_are_not_as_large_as_a_file_says(name, attributes, shapes):
    nodes = [
        {"op": "null", "name": f"x{i}", "attrs": {"__shape__": str(shape)}, "inputs": []}
        for i, shape in enumerate(shapes)
    ]
    inputs = [[i, 0, 0] for i in range(len(shapes))]
    nodes.append({"op": name, "name": "n", "attrs": attributes, "inputs": inputs})
    net = mx.sym.load_json(broken(nodes=nodes, heads=[[len(shapes), 0, 0]]))
    with pytest.raises(MXNetError, match=r"a constant of a graph must have at most.*\(node 'n'\)"):
        net.to_graph()


def test_a_variable_without_a_name_is_refused():
    nodes = [
        {"op": "null", "name": "", "attrs": {"__shape__": "(2,)"}, "inputs": []},
        {"op": "exp", "name": "y", "inputs": [[0, 0, 0]]},
    ]
    with pytest.raises(MXNetError, match="a variable must have a name"):
        mx.sym.load_json(broken(nodes=nodes, heads=[[1, 0, 0]])).to_graph()


def test_a_file_that_is_too_large_is_refused():
    with pytest.raises(MXNetFormatError, match="at most 1000 bytes"):
        mx.sym.load("/dev/zero", limit=1000)


def test_a_weight_of_the_wrong_shape_names_its_layer():
    net = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="lay17")
    arrays = {
        "x": mx.nd.ones((2, 4)),
        "lay17_weight": mx.nd.ones((3, 5)),
        "lay17_bias": mx.nd.ones(3),
    }
    with pytest.raises(MXNetError, match=r"(?s)FullyConnected: .*\(node 'lay17'\)"):
        net.bind(mx.cpu(), arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subgraphs": []}, "_foreach: 1 subgraphs must be given, got 0"),
        ({"attrs": {**FOREACH["nodes"][3]["attrs"], "in_data_locs": "(7,)"}}, "_foreach: .*loop"),
        ({"op": "relu", "attrs": {}}, "relu: .*subgraphs|relu: 0 subgraphs|relu: 1 inputs"),
    ],
)
def test_broken_control_flow_is_refused(changes, message):
    node = {**FOREACH["nodes"][3], **changes}
    text = json.dumps({**FOREACH, "nodes": [*FOREACH["nodes"][:3], node], "heads": [[3, 0, 0]]})
    with pytest.raises(MXNetError, match=message):
        mx.sym.load_json(text).simple_bind(mx.cpu(), data=(3, 2), start=(2,), w=(2,))


def test_remarks_may_be_given_to_operators():
    net = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc", lr_mult=2, wd_mult=0.5)
    assert net.list_attr()["lr_mult"] == net.list_attr()["__lr_mult__"] == "2"
    assert net.attr_dict()["fc_weight"]["__wd_mult__"] == "0.5"


def test_arguments_are_not_dropped():
    x = mx.sym.var("x")
    net = mx.sym.exp(x)
    for wrong in (
        lambda: net(x, x),
        lambda: net(mx.sym.var("y"), x=x),
        lambda: net.infer_shape((1,), (2,)),
        lambda: net.bind(mx.cpu(), [mx.nd.ones(1), mx.nd.ones(1)]),
        lambda: net.simple_bind(mx.cpu(), ["write", "write"], x=(1,)),
    ):
        with pytest.raises(MXNetError, match="must be"):
            wrong()


def test_cotangents_by_name_and_errors_of_an_executor():
    x = mx.sym.var("x")
    executor = mx.sym.square(x, name="sq").simple_bind(mx.cpu(), x=(2,))
    assert [one.shape for one in executor.outputs] == [(2,)]
    with pytest.raises(MXNetError, match="out_grads must be given for 'sq_output'"):
        executor.backward()
    executor.forward(is_train=True, x=mx.nd.array([1.0, 2.0]))
    executor.backward({"sq_output": mx.nd.array([1.0, 10.0])})
    assert executor.grad_dict["x"].asnumpy().tolist() == [2.0, 40.0]
    with pytest.raises(MXNetError, match="must be of shape"):
        executor.backward(mx.nd.ones(3))


def test_arrays_and_any_names_go_into_functions():
    net = mx.sym.var("key") * mx.sym.var("dtypes")
    given = {"key": mx.nd.array([2.0]), "dtypes": mx.nd.array([3.0])}
    assert net.to_jax()(**given).tolist() == [6.0]
    assert net.to_graph(key=(1,), dtypes=(1,)).list_arguments() == ["key", "dtypes"]


def test_functions_forget_types_that_were_not_used_for_long(monkeypatch):
    made = []

    def counted(heads, shapes, dtypes):
        made.append(shapes["x"])
        return translated(heads, shapes, dtypes)

    monkeypatch.setattr(translating, "_TYPES", 2)
    monkeypatch.setattr(translating, "translated", counted)
    function = mx.sym.square(mx.sym.var("x")).to_jax()
    for length in (1, 2, 1, 3, 1, 2):
        assert function(np.ones(length, "f4")).shape == (length,)
    assert made == [(1,), (2,), (3,), (2,)]


def test_arrays_of_one_shape_are_wanted():
    with pytest.raises(MXNetError, match=r"elemwise_add: lhs and rhs must be of one shape"):
        mx.nd.elemwise_add(mx.nd.ones((2, 1)), mx.nd.ones((1, 3)))


def test_casts_of_mixed_precision_are_not_saved(tmp_path):
    x, y = mx.sym.var("x"), mx.sym.var("y")
    both = mx.sym.amp_multicast(mx.sym.amp_cast(x, dtype="float16"), y, num_outputs=2)
    net = mx.sym.elemwise_add(both[0], both[1], name="sum")
    assert "amp_cast" in net.tojson(remove_amp_cast=False)
    net.save(tmp_path / "net.json")
    again = mx.sym.load(tmp_path / "net.json")
    assert again.get_internals().list_outputs() == ["x", "y", "sum_output"]
