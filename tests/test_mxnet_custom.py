"""Custom operators in Python: eager, bound, trained, compiled, in files, and how they fail."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so
import symop.interop.mxnet as mx
from registry.errors import NotDifferentiableError
from symop.interop.mxnet import MXNetError
from symop.interop.mxnet.custom_operator import (
    CustomOp,
    CustomOpProp,
    get_all_registered_operators,
    register,
)

pytestmark = pytest.mark.usefixtures("temporary_operators")


def normal(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape).astype(np.float32)


def close(array, expected, rtol=1e-5):
    value = array.asnumpy() if hasattr(array, "asnumpy") else array
    np.testing.assert_allclose(value, expected, rtol=rtol, atol=1e-6)
    return True


def softmax(x):
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


class Softmax(CustomOp):
    """The example of MXNet's: predictions, and the gradient of the cross-entropy."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.array(softmax(in_data[0].asnumpy())))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        labels = in_data[1].asnumpy().ravel().astype(int)
        slope = out_data[0].asnumpy()
        slope[np.arange(len(labels)), labels] -= 1.0
        self.assign(in_grad[0], req[0], mx.nd.array(slope))


class SoftmaxProp(CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def infer_type(self, in_type):
        return in_type, [in_type[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return Softmax()


class Mixed(CustomOp):
    """``a * b + c * total`` and ``sin(a)``; the state ``total`` adds the sums of ``a``."""

    def __init__(self, c):
        super().__init__()
        self.c = c

    def forward(self, is_train, req, in_data, out_data, aux):
        a, b = in_data
        if is_train:
            aux[0][:] = aux[0] + a.sum()
        self.assign(out_data[0], req[0], a * b + self.c * aux[0])
        out_data[1][:] = mx.nd.sin(a)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        (a, b), (first, second) = in_data, out_grad
        self.assign(in_grad[0], req[0], first * b + second * mx.nd.cos(a) + 0.0 * aux[0])
        self.assign(in_grad[1], req[1], first * a)


class MixedProp(CustomOpProp):
    def __init__(self, c="1.0"):
        super().__init__()
        self.c = float(c)

    def list_arguments(self):
        return ["a", "b"]

    def list_outputs(self):
        return ["first", "second"]

    def list_auxiliary_states(self):
        return ["total"]

    def infer_shape(self, in_shape):
        return [in_shape[0], in_shape[0]], [in_shape[0], in_shape[0]], [(1,)]

    def create_operator(self, ctx, shapes, dtypes):
        return Mixed(self.c)


@pytest.fixture(autouse=True)
def registered(temporary_operators):
    register("softmax")(SoftmaxProp)
    register("mixed")(MixedProp)


def simple(forward, backward=None, **own):
    """A class of properties, of an operator of one input by two functions."""

    class Operator(CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            forward(in_data[0], out_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            backward(out_grad[0], in_data[0], in_grad[0])

    create = {"create_operator": lambda self, ctx, shapes, dtypes: Operator()}
    return type("Prop", (CustomOpProp,), {**create, **own})


def square(x, out):
    out[:] = x * x


def square_slope(head, x, grad):
    grad[:] = 2 * x * head


# Eager


class TestEager:
    def test_a_loss_ignores_what_flows_back(self):
        x, label = mx.nd.array(normal(4, 3)), mx.nd.array([0, 1, 2, 1])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Custom(x, label, op_type="softmax")
            z = 7 * y
        z.backward()
        expected = softmax(x.asnumpy())
        assert close(y, expected)
        assert close(x.grad, expected - np.eye(3)[[0, 1, 2, 1]])

    def test_outputs_states_and_arguments(self):
        a, b, total = mx.nd.array([1, 2]), mx.nd.array([3, 4]), mx.nd.array([10])
        a.attach_grad()
        with mx.autograd.record():
            first, second = mx.nd.Custom(a, b, total, op_type="mixed", c=2)
            out = first * 3 + second
        out.backward()
        assert close(total, [13])
        assert close(first, np.array([3, 8]) + 2 * 13)
        assert close(second, np.sin([1, 2]))
        assert close(a.grad, 3 * np.array([3, 4]) + np.cos([1, 2]))

    def test_inputs_may_be_named(self):
        a, b, total = mx.nd.array([1, 2]), mx.nd.array([3, 4]), mx.nd.array([0])
        first, _ = mx.nd.Custom(b=b, a=a, total=total, op_type="mixed", name="m")
        assert close(first, [3, 8])
        assert close(total, [0])  # not in training

    def test_gradients_are_asked_for_where_there_is_room(self):
        asked = []

        class Pair(CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                asked.append((is_train, req))
                out_data[0][:] = in_data[0] + in_data[1]

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                asked.append(req)
                self.assign(in_grad[0], req[0], out_grad[0])
                self.assign(in_grad[1], req[1], 5)

        names = {"list_arguments": lambda self: ["a", "b"]}
        made = {"create_operator": lambda self, ctx, shapes, dtypes: Pair()}
        register("pair")(type("Pair", (CustomOpProp,), {**names, **made}))
        a, b = mx.nd.ones(2), mx.nd.ones(2)
        b.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Custom(a, b, op_type="pair")
        y.backward()
        assert asked == [(True, ["write"]), ["null", "write"]]
        assert close(b.grad, [5, 5])

    def test_one_object_serves_a_call(self):
        class Masked(CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.mask = in_data[0] > 0
                out_data[0][:] = in_data[0] * self.mask

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                in_grad[0][:] = self.mask * out_grad[0]

        made = {"create_operator": lambda self, ctx, shapes, dtypes: Masked()}
        register("masked")(type("Prop", (CustomOpProp,), made))
        x, y = mx.nd.array([1, -1]), mx.nd.array([-1, 1])
        x.attach_grad()
        y.attach_grad()
        with mx.autograd.record():
            z = mx.nd.Custom(x, op_type="masked") + mx.nd.Custom(y, op_type="masked")
        z.backward()
        assert close(x.grad, [1, 0])
        assert close(y.grad, [0, 1])

    def test_without_inputs(self):
        class Full(CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], np.full(out_data[0].shape, 3.0))

        class FullProp(CustomOpProp):
            def __init__(self, length, depth):
                super().__init__()
                self.shape = int(length), int(depth)

            def list_arguments(self):
                return []

            def infer_shape(self, in_shape):
                return [], [self.shape], []

            def infer_type(self, in_type):
                return [], [np.float32], []

            def create_operator(self, ctx, shapes, dtypes):
                return Full()

        register("full_of")(FullProp)
        how = {"length": 2, "depth": 5, "op_type": "full_of"}
        with mx.autograd.record():
            assert close(mx.nd.Custom(**how), np.full((2, 5), 3.0))
        net = 2 * mx.sym.Custom(**how)
        assert net.list_arguments() == []
        assert close(net.simple_bind().forward()[0], np.full((2, 5), 6.0))

    def test_code_may_record_itself(self):
        def slope(head, x, grad):
            x = x.copy()
            x.attach_grad()
            with mx.autograd.record():
                y = mx.nd.exp(x)
            y.backward(head)
            grad[:] = x.grad

        def exponential(x, out):
            out[:] = mx.nd.exp(x)

        register("recorded")(simple(exponential, slope))
        x = mx.nd.array([1, 2])
        x.attach_grad()
        with mx.autograd.record():
            y = 2 * mx.nd.Custom(x, op_type="recorded")
        y.backward()
        assert close(x.grad, 2 * np.exp([1, 2]))
        executor = mx.sym.Custom(mx.sym.var("x"), op_type="recorded").bind(None, [x], [x.grad])
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones(2))
        assert close(x.grad, np.exp([1, 2]))

    def test_a_dtype_is_the_users_to_say(self):
        def as_counts(self, in_type):
            assert in_type[0] in (np.float32, np.int32)
            return [np.int32], [np.int32], []

        seen = []

        def double(x, out):
            seen.append((x.dtype, out.dtype))
            out[:] = 2 * x

        register("counts")(simple(double, infer_type=as_counts))
        found = mx.nd.Custom(mx.nd.array([1.5, 2]), op_type="counts")
        assert seen == [(np.int32, np.int32)]
        assert found.dtype is np.int32
        assert close(found, [2, 4])


# Symbols


def network():
    data = mx.sym.var("data")
    hidden = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=16, name="fc1"), "relu")
    return mx.sym.FullyConnected(hidden, num_hidden=3, name="fc2")


def batch(count=60):
    data = normal(count, 5)
    return data, (data[:, 0] > 0) * 1.0 + (data[:, 1] > 0)


class TestSymbols:
    def test_names_and_shapes_are_the_users(self):
        net = mx.sym.Custom(data=network(), name="softmax", op_type="softmax")
        assert net.list_arguments()[-1] == "softmax_label"
        assert net.list_outputs() == ["softmax_output"]
        shapes, outputs, _ = net.infer_shape(data=(8, 5))
        assert (shapes[-1], outputs) == ((8,), [(8, 3)])
        net = mx.sym.Custom(mx.sym.var("a"), op_type="mixed", name="m", c=0.5)
        assert net.list_arguments() == ["a", "m_b"]
        assert net.list_auxiliary_states() == ["m_total"]
        assert net.list_outputs() == ["m_first", "m_second"]
        assert net.infer_shape(a=(2, 3)) == ([(2, 3)] * 2, [(2, 3)] * 2, [(1,)])
        assert net.infer_type(a="float32")[1] == [np.float32] * 2

    def test_attributes_are_handed_on_as_strings(self):
        given = {}

        class Prop(CustomOpProp):
            def __init__(self, **arguments):
                super().__init__()
                given.update(arguments)

        register("told")(Prop)
        with mx.AttrScope(ctx_group="one"):
            mx.sym.Custom(mx.sym.var("x"), op_type="told", sizes=[1, 2], none=None, on=True, by=0.5)
        assert given == {"sizes": "[1, 2]", "none": "None", "on": "True", "by": "0.5"}

    def test_an_executor_trains_as_with_the_operator_of_the_catalogue(self):
        data, labels = batch()
        found = []
        for head in (
            mx.sym.Custom(data=network(), op_type="softmax", name="softmax"),
            mx.sym.SoftmaxOutput(network(), name="softmax"),
        ):
            executor = head.simple_bind(mx.cpu(), data=data.shape)
            for one in executor.arg_dict.values():
                one[:] = normal(*one.shape) / 2
            for _ in range(20):
                executor.forward(is_train=True, data=data, softmax_label=labels)
                executor.backward()
                for name, one in executor.arg_dict.items():
                    if name.startswith("fc"):
                        one[:] = one - 0.01 * executor.grad_dict[name]
            found.append({name: one.asnumpy() for name, one in executor.arg_dict.items()})
        assert close(found[0]["fc1_weight"], found[1]["fc1_weight"], rtol=1e-4)
        assert close(found[0]["fc2_bias"], found[1]["fc2_bias"], rtol=1e-4)

    def test_module_fit(self):
        data, labels = batch(200)
        mx.random.seed(1)
        train = mx.io.NDArrayIter(data, labels, 20, label_name="softmax_label")
        module = mx.mod.Module(mx.sym.Custom(data=network(), op_type="softmax", name="softmax"))
        how = {"learning_rate": 0.1 / 20, "momentum": 0.9, "rescale_grad": 1.0}
        module.fit(train, optimizer="sgd", optimizer_params=how, num_epoch=10)
        assert module.score(train, "acc")[0][1] > 0.8

    def test_states_are_updated_in_training(self):
        net = mx.sym.Custom(mx.sym.var("a"), mx.sym.var("b"), op_type="mixed")
        executor = net.simple_bind(a=(2,))
        (state,) = executor.aux_dict.values()
        executor.forward(is_train=False, a=[1, 2], b=[3, 4])
        assert close(state, [0])
        for turn in (1, 2):
            first, second = executor.forward(is_train=True)
            assert close(state, [3 * turn])
            assert close(first, np.array([3, 8]) + 3 * turn)
        executor.backward([mx.nd.array([1, 2]), mx.nd.array([3, 4])])
        assert close(executor.grad_dict["a"], [3, 8] + np.array([3, 4]) * np.cos([1, 2]))
        assert close(executor.grad_dict["b"], [1, 4])
        assert close(second, np.sin([1, 2]))

    def test_a_state_is_updated_whichever_output_is_asked_for(self):
        net = mx.sym.Custom(mx.sym.var("a"), mx.sym.var("b"), op_type="mixed", name="m")[1]
        executor = net.simple_bind(a=(2,))
        executor.forward(is_train=True, a=[1, 2])
        executor.backward(mx.nd.ones(2))
        assert close(executor.aux_dict["m_total"], [3])
        assert close(executor.grad_dict["a"], np.cos([1, 2]))

    def test_gradients_are_added(self):
        register("square")(simple(square, square_slope))
        net = mx.sym.Custom(mx.sym.var("x"), op_type="square")
        executor = net.simple_bind(grad_req="add", x=(2,))
        for _ in range(3):
            executor.forward(is_train=True, x=[1, 2])
            executor.backward(mx.nd.ones(2))
        assert close(executor.grad_dict["x"], [6, 12])

    def test_each_node_has_an_object_for_good(self):
        class Counted(CustomOp):
            count = 0

            def forward(self, is_train, req, in_data, out_data, aux):
                self.count += 1
                self.kept = in_data[0].asnumpy()
                out_data[0][:] = in_data[0] * self.count

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                in_grad[0][:] = out_grad[0] * mx.nd.array(self.kept)

        made = {"create_operator": lambda self, ctx, shapes, dtypes: Counted()}
        register("counted")(type("Prop", (CustomOpProp,), made))
        x, y = mx.sym.var("x"), mx.sym.var("y")
        net = mx.sym.Custom(x, op_type="counted") + mx.sym.Custom(y, op_type="counted")
        first, second = net.simple_bind(x=(1,), y=(1,)), net.simple_bind(x=(1,), y=(1,))
        for turn in (1, 2):
            assert close(first.forward(is_train=True, x=[10], y=[20])[0], [30 * turn])
        assert close(second.forward(is_train=True, x=[1], y=[2])[0], [3])
        first.backward(mx.nd.ones(1))
        assert close(first.grad_dict["x"], [10])
        assert close(first.grad_dict["y"], [20])

    def test_in_a_loop(self):
        register("square")(simple(square, square_slope))

        def body(one, total):
            total = total + mx.sym.Custom(one, op_type="square")
            return total, total

        sums, last = mx.sym.contrib.foreach(body, mx.sym.var("x"), mx.sym.var("start"))
        executor = mx.sym.Group([sums, last]).simple_bind(x=(3, 2), start=(2,))
        executor.forward(is_train=True, x=[[1, 2], [3, 4], [5, 6]])
        assert close(executor.outputs[1], [35, 56])
        executor.backward([mx.nd.zeros((3, 2)), mx.nd.ones(2)])
        assert close(executor.grad_dict["x"], [[2, 4], [6, 8], [10, 12]])

    def test_many_passes_under_way_do_not_wait_for_each_other(self):
        def busy(x, out):
            out[:] = mx.nd.dot(mx.nd.tanh(mx.nd.dot(x, x)), x) * 0.001 + x

        def slope(head, x, grad):
            grad[:] = mx.nd.dot(head, x)

        register("busy")(simple(busy, slope))
        x = mx.sym.var("x")
        net = mx.sym.dot(mx.sym.Custom(x, op_type="busy"), x)
        executor = net.simple_bind(x=(200, 200))
        held = executor.arg_dict["x"]
        for _ in range(50):
            executor.forward(is_train=True)
            executor.backward(executor.outputs)
            held[:] = 0.5 * held + mx.nd.dot(executor.grad_dict["x"], held)  # not computed yet
        assert close(held, np.zeros((200, 200)))


# Types


@pytest.mark.usefixtures("x64")
def test_float64():
    register("square")(simple(square, square_slope))
    data = np.array([0.1, 0.2])
    x = mx.nd.array(data, dtype="float64")
    assert mx.nd.Custom(x, op_type="square").dtype is np.float64
    executor = mx.sym.Custom(mx.sym.var("x"), op_type="square").bind(None, [x], [x.copy()])
    found = executor.forward(is_train=True)[0]
    executor.backward(mx.nd.ones(2, dtype="float64"))
    np.testing.assert_allclose(found.asnumpy(), data**2, rtol=1e-15)
    np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), 2 * data, rtol=1e-15)
    net = mx.sym.Custom(mx.sym.var("data"), op_type="softmax", name="s")
    assert net.infer_type(data="float64")[0] == [np.float64] * 2


# JAX and the catalogue


class TestCompiled:
    def test_a_jitted_training_step(self):
        function = mx.sym.Custom(data=network(), op_type="softmax", name="softmax").to_jax()
        data, labels = batch()
        rest = {"data": data, "softmax_label": labels.astype(np.float32)}
        shapes = {"fc1_weight": (16, 5), "fc1_bias": (16,), "fc2_weight": (3, 16), "fc2_bias": (3,)}
        weights = {name: normal(*shape) / 3 for name, shape in shapes.items()}

        @jax.jit
        def step(weights):
            slopes = jax.grad(lambda w: function(**w, **rest).sum())(weights)
            return jax.tree.map(lambda w, d: w - 0.01 * d, weights, slopes)

        for _ in range(60):
            weights = jax.block_until_ready(step(weights))
        found = np.argmax(function(**weights, **rest), axis=1)
        assert np.mean(found == labels) > 0.8

    def test_vmap_and_states(self):
        function = mx.sym.Custom(
            mx.sym.var("a"), mx.sym.var("b"), op_type="mixed", name="m"
        ).to_jax(is_train=True)
        a = jnp.arange(6.0).reshape(3, 2)
        run = jax.jit(jax.vmap(lambda a: function(a=a, b=jnp.ones(2), m_total=jnp.zeros(1))))
        (first, second), states = run(a)
        assert close(first, a + a.sum(axis=1, keepdims=True))
        assert close(second, np.sin(a))
        assert close(states["m_total"], a.sum(axis=1, keepdims=True))

    def test_eager_arrays_inside_jit(self):
        register("square")(simple(square, square_slope))

        def function(x):
            return mx.nd.Custom(mx.nd.NDArray(so.NDArray(x)), op_type="square").inner.value

        assert close(jax.jit(function)(jnp.arange(3.0)), [0, 1, 4])

    def test_a_graph_is_saved_as_symops(self):
        graph = mx.sym.Custom(mx.sym.var("a"), op_type="mixed", name="m", c=3).to_graph(a=(2,))
        again = so.load_json(graph.tojson())
        given = {"a": [1.0, 2.0], "m_b": [1.0, 1.0], "m_total": [1.0]}
        assert close(again.eval(**given)[0], [4, 5])
        assert registry.get("mxnet_custom").opaque


# Second derivatives


class TestSecondDerivatives:
    def test_eager(self):
        register("square")(simple(square, square_slope))
        x = mx.nd.array([3])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Custom(x, op_type="square")
            (slope,) = mx.autograd.grad(y, [x], create_graph=True)
        assert close(slope, [6])
        with pytest.raises(MXNetError, match="square: a second derivative is asked for, but the"):
            slope.backward()

    def test_graph_and_jax(self):
        register("square")(simple(square, square_slope))
        net = mx.sym.Custom(mx.sym.var("x"), op_type="square")
        graph = net.to_graph(x=(2,))
        slope = so.grad(graph, "x")
        assert close(slope.eval(x=[1.0, 2.0]), [2, 4])
        with pytest.raises(NotDifferentiableError, match="custom operator is Python code"):
            so.grad(slope, "x")
        function = net.to_jax()
        first = jax.grad(lambda x: function(x=x).sum())
        assert close(first(jnp.ones(2)), [2, 2])
        with pytest.raises(NotDifferentiableError, match="custom operator is Python code"):
            jax.grad(lambda x: first(x).sum())(jnp.ones(2))


# Files


class TestFiles:
    def test_a_file_names_the_operator(self, tmp_path):
        net = mx.sym.Custom(network(), mx.sym.var("l"), op_type="softmax", name="softmax")
        net.save(tmp_path / "net.json")
        again = mx.sym.load(tmp_path / "net.json")
        assert again.tojson() == net.tojson()
        record = json.loads(net.tojson())["nodes"][-1]
        assert (record["op"], record["attrs"]) == ("Custom", {"op_type": "softmax"})
        found = again.eval(data=mx.nd.ones((2, 5)), l=mx.nd.zeros(2), **zeros_for(net))
        assert close(found[0], np.full((2, 3), 1 / 3))

    def test_it_may_be_registered_later(self):
        text = mx.sym.Custom(network(), op_type="softmax", name="s").tojson()
        net = mx.sym.load_json(text.replace('"softmax"', '"softmax_of_later"'))
        assert net.list_outputs() == ["s_output"]
        with pytest.raises(MXNetError, match=r"registered .*'softmax_of_later'.*\(node 's'\)"):
            net.simple_bind(data=(2, 5))
        register("softmax_of_later")(SoftmaxProp)
        assert close(net.simple_bind(data=(2, 5)).forward()[0], np.full((2, 3), 1 / 3))

    def test_of_several_outputs_any_may_be_used_before(self):
        net = mx.sym.Custom(mx.sym.var("a"), op_type="mixed", name="m")[1]
        net = mx.sym.load_json(net.tojson().replace('"mixed"', '"mixed_of_later"'))
        with pytest.raises(MXNetError, match=r"registered .*'mixed_of_later'.*\(node 'm'\)"):
            net.infer_shape(a=(2,))
        register("mixed_of_later")(MixedProp)
        assert net.list_outputs() == ["m_second"]
        assert net.list_auxiliary_states() == ["m_total"]
        assert net.infer_shape(a=(2,))[1] == [(2,)]

    def test_a_model_of_0_8_lacks_the_states(self):
        nodes = [
            {"op": "null", "param": {}, "name": name, "inputs": [], "backward_source_id": -1}
            for name in "ab"
        ]
        call = {"op": "Custom", "param": {"op_type": "mixed"}, "name": "m"}
        nodes.append({**call, "inputs": [[0, 0], [1, 0]], "backward_source_id": -1})
        net = mx.sym.load_json(
            json.dumps({"nodes": nodes, "arg_nodes": [0, 1], "heads": [[2, 0], [2, 1]]})
        )
        assert net.list_auxiliary_states() == ["m_total"]


def zeros_for(net):
    shapes, _, _ = net.infer_shape(data=(2, 5))
    named = dict(zip(net.list_arguments(), shapes, strict=True))
    return {name: mx.nd.zeros(shape) for name, shape in named.items() if name.startswith("fc")}


# What is refused


class TestRefused:
    def test_registration(self):
        with pytest.raises(MXNetError, match="subclass of CustomOpProp"):
            register("wrong")(Softmax)
        with pytest.raises(MXNetError, match="must be a str"):
            register(3)
        assert "Custom" in get_all_registered_operators()

    @pytest.mark.parametrize("call", [mx.nd.Custom, mx.sym.Custom], ids=["nd", "sym"])
    def test_calls(self, call):
        def value():
            return mx.nd.ones(2) if call is mx.nd.Custom else mx.sym.var("x")

        with pytest.raises(MXNetError, match=r"op_type must be registered .*'softmaxx'; did you"):
            call(data=value(), op_type="softmaxx")
        with pytest.raises(MXNetError, match="op_type must be given"):
            call(value())
        with pytest.raises(MXNetError, match="at most 2 inputs must be given, got 3"):
            call(value(), value(), value(), op_type="softmax")
        with pytest.raises(MXNetError, match=r"mixed: its property class failed: TypeError.*'d'"):
            call(value(), op_type="mixed", d=1)

    def test_errors_of_the_users_code_are_mxnets(self):
        def fail(x, out):
            raise ValueError("no such luck")

        register("failing")(simple(fail))
        with pytest.raises(MXNetError, match="failing: forward failed: ValueError: no such luck"):
            mx.nd.Custom(mx.nd.ones(2), op_type="failing")
        executor = mx.sym.Custom(mx.sym.var("x"), op_type="failing").simple_bind(x=(2,))
        with pytest.raises(MXNetError, match=r"^failing: forward failed: ValueError: no such"):
            executor.forward()
        register("failing")(simple(square, fail))
        executor = mx.sym.Custom(mx.sym.var("x"), op_type="failing").simple_bind(x=(2,))
        executor.forward(is_train=True)
        with pytest.raises(MXNetError, match="failing: backward failed: TypeError"):
            executor.backward(mx.nd.ones(2))

    def test_what_the_properties_tell_is_checked(self):
        register("few")(simple(square, infer_shape=lambda self, shapes: (shapes, [])))
        register("open")(simple(square, infer_shape=lambda self, shapes: (shapes, [()], [])))
        register("other")(simple(square, create_operator=lambda self, *rest: None))
        x, net = mx.nd.ones(2), mx.sym.var("x")
        with pytest.raises(MXNetError, match="few: infer_shape must return lists for 1 inputs, 1"):
            mx.nd.Custom(x, op_type="few")
        with pytest.raises(MXNetError, match=r"infer_shape must .* \(node 'n'\)"):
            mx.sym.Custom(net, op_type="few", name="n").simple_bind(x=(2,))
        with pytest.raises(MXNetError, match="open: infer_shape must tell the shape of 'output'"):
            mx.nd.Custom(x, op_type="open")
        with pytest.raises(MXNetError, match="other: create_operator must give a CustomOp"):
            mx.nd.Custom(x, op_type="other")

    def test_shapes_that_contradict_each_other(self):
        net = mx.sym.Custom(network(), mx.sym.var("l"), op_type="softmax", name="s")
        with pytest.raises(MXNetError, match=r"shapes must agree.* \(node 's'\)"):
            net.infer_shape(data=(2, 5), l=(3,))


def test_the_last_registration_counts():
    def shape(*lengths):
        return {"infer_shape": lambda self, shapes: (shapes, [lengths], [])}

    register("again")(simple(lambda x, out: None, **shape(2)))
    net = mx.sym.Custom(mx.sym.var("x"), op_type="again")
    graph = net.to_graph(x=(2,))
    assert net.infer_shape(x=(2,))[1] == [(2,)]
    register("again")(simple(lambda x, out: None, **shape(2, 3)))
    assert net.infer_shape(x=(2,))[1] == [(2, 3)]
    assert mx.nd.Custom(mx.nd.ones(2), op_type="again").shape == (2, 3)
    assert graph.eval(x=[1.0, 2.0]).shape == (2,)


def test_assign():
    out = mx.nd.ones(2)
    CustomOp().assign(out, "null", 5)
    assert close(out, [1, 1])
    CustomOp().assign(out, "add", mx.nd.array([1, 2]))
    assert close(out, [2, 3])
    CustomOp().assign(out, "inplace", np.array([7.0, 8.0]))
    assert close(out, [7, 8])
    with pytest.raises(MXNetError, match="req must be"):
        CustomOp().assign(out, "put", 5)


# Older classes


class Doubled(mx.operator.NumpyOp):
    def forward(self, in_data, out_data):
        out_data[0][:] = 2 * in_data[0] + in_data[1]

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = 2 * out_grad[0]
        in_grad[1][:] = out_grad[0]

    def list_arguments(self):
        return ["x", "y"]


class Exponential(mx.operator.NDArrayOp):
    def forward(self, in_data, out_data):
        out_data[0][:] = mx.nd.exp(in_data[0])

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = out_data[0] if not self.need_top_grad() else out_data[0] * out_grad[0]


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_operators_on_numpys_arrays():
    net = Doubled()(mx.sym.var("a"), mx.sym.var("b"), name="doubled")
    assert net.list_outputs() == ["doubled_output"]
    executor = net.simple_bind(mx.cpu(), a=(2,), b=(2,))
    executor.arg_dict["a"][:] = mx.nd.array([1, 2])
    executor.arg_dict["b"][:] = 10
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [12, 14]
    executor.backward(mx.nd.array([1, 3]))
    grads = {name: one.asnumpy().tolist() for name, one in executor.grad_dict.items()}
    assert grads == {"a": [2, 6], "b": [1, 3]}


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_operators_of_older_classes_have_defaults():
    net = mx.operator.NumpyOp().get_symbol(mx.sym.var("x"))
    executor = net.simple_bind(mx.cpu(), x=(2,))
    executor.arg_dict["x"][:] = 4
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [4, 4]
    executor.backward(mx.nd.array([5, 6]))
    assert executor.grad_dict["x"].asnumpy().tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_a_loss_on_arrays_needs_no_cotangent():
    executor = Exponential(need_top_grad=False)(mx.sym.var("x")).simple_bind(mx.cpu(), x=(1,))
    executor.arg_dict["x"][:] = 1
    (out,) = executor.forward(is_train=True)
    executor.backward()
    assert executor.grad_dict["x"].asscalar() == out.asscalar()


def test_older_classes_are_deprecated():
    with pytest.warns(UserWarning, match="Exponential has been deprecated"):
        Exponential()
