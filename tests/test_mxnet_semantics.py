"""Behavior of MXNet's arrays, shapes, modules, stores, cells and scopes that scripts rely on."""

import pickle
import threading
import warnings

import numpy as np
import pytest

import symop.interop.mxnet as mx
from symop.interop.mxnet import MXNetError, nd

# Arrays


def test_reshapes_in_place_share_memory():
    x = nd.arange(6).reshape((1, 2, 3))
    pairs = [
        (x.flatten(inplace=one), x.squeeze(axis=0, inplace=one), x.expand_dims(0, inplace=one))
        for one in (True, False)
    ]
    x[0, 0] = 9
    for shared, copied in zip(*pairs, strict=True):
        assert shared.asnumpy().reshape(-1)[:3].tolist() == [9, 9, 9]
        assert copied.asnumpy().reshape(-1)[:3].tolist() == [0, 1, 2]
    pairs[0][1][1] = 7
    assert x.asnumpy()[0, 1].tolist() == [7, 7, 7]
    with pytest.raises(ValueError, match="entries"):
        x.reshape((2, 2))


def test_scalars_have_no_axes():
    assert nd.array(np.ones(())).shape == ()
    assert nd.array(3).asnumpy() == 3


def test_arrays_share_the_memory_of_numpy():
    given = np.arange(4.0, dtype="float32").reshape(2, 2)
    one, other = nd.from_numpy(given), nd.from_numpy(given)
    with pytest.raises(ValueError, match="read-only"):
        given[0, 0] = 1
    one[1, 1] = 100
    one[:1] *= 2
    assert given.tolist() == other.asnumpy().tolist() == [[0, 2], [2, 100]]
    del one, other
    given[0, 0] = 5
    assert nd.from_numpy(given, zero_copy=False).asnumpy()[0, 0] == 5
    with pytest.raises(ValueError, match="contiguous"):
        nd.from_numpy(given.T)


def test_states_of_arrays_are_mxnets():
    held = nd.array([[1, 2]], dtype="int32").__getstate__()["handle"]
    assert held[:4] == (0xF993FAC9).to_bytes(4, "little")
    other = nd.zeros(1)
    other.__setstate__({"handle": bytearray(held)})
    assert other.dtype is np.int32
    assert other.asnumpy().tolist() == [[1, 2]]
    assert pickle.loads(pickle.dumps(other)).asnumpy().tolist() == [[1, 2]]
    with pytest.raises(MXNetError, match="__setstate__"):
        other.__setstate__({"handle": b"abc"})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("normal", (0, -1)),
        ("uniform", (1, 0)),
        ("gamma", (1, -1)),
        ("exponential", (-1,)),
        ("poisson", (-1,)),
    ],
)
def test_parameters_of_draws_are_checked(name, wrong):
    for namespace in (nd.random, mx.sym.random):
        with pytest.raises(MXNetError, match="random: "):
            getattr(namespace, name)(*wrong, shape=(2,))


def test_calls_that_mxnet_refuses():
    image = nd.ones((1, 4, 2, 2))
    for wrong in (
        lambda: nd.diag(nd.ones((2, 3)), k=4),
        lambda: nd.depth_to_space(image, 0),
        lambda: nd.depth_to_space(image, 3),
        lambda: nd.space_to_depth(image, 0),
        lambda: nd.zeros(()),
    ):
        with pytest.raises(MXNetError):
            wrong()
    data = nd.array([[0, 1, 2], [3, 4, 5]])
    assert nd.gather_nd(data, nd.array([[-1, 0], [-1, -3]])).asnumpy().tolist() == [5, 0]
    for last in (3, -4):
        with pytest.raises(IndexError, match="axis 1"):
            nd.gather_nd(data, nd.array([[0], [last]]))


def test_arrays_are_checked_where_symbols_are_not():
    x = nd.array([[1, 2], [3, 4]])
    for wrong in (
        lambda: nd.take(x, nd.array([2]), mode="raise"),
        lambda: x.take(nd.array([-1]), axis=1, mode="raise"),
    ):
        with pytest.raises(IndexError, match="take"):
            wrong()
    assert x.take(nd.array([1]), axis=-1, mode="raise").asnumpy().tolist() == [[2], [4]]
    assert x.take(nd.array([9])).asnumpy().tolist() == [[3, 4]]
    assert nd.linalg.potrf(nd.array([[4]])).asscalar() == 2
    with pytest.raises(MXNetError, match="positive definite"):
        nd.linalg.potrf(nd.zeros((2, 2)))


@pytest.mark.parametrize("reduce", [nd.max, nd.min])
def test_nan_is_the_extremum_of_what_holds_it(reduce):
    given = np.random.default_rng(0).random((7, 6, 5, 6, 7), np.float32)
    given.ravel()[[5, 100, 3000]] = np.nan
    assert np.isnan(reduce(nd.array(given)).asscalar())
    found = reduce(nd.array(given), axis=(1, 3, 4)).asnumpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(given.max((1, 3, 4))))
    assert reduce(nd.array([2, 2], dtype="int32")).asscalar() == 2


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_reductions_of_infinities_are_those_of_numpy(name, value):
    given = np.random.default_rng(0).random((3, 4, 5), np.float32) + 1
    given[1, 2, 3] = value
    for axis in (None, 1, (0, 2)):
        expected = getattr(np, name)(given, axis=axis)
        how = {} if axis is None else {"axis": axis}
        found = getattr(nd, name)(nd.array(given), **how).asnumpy()
        np.testing.assert_allclose(found, np.reshape(expected, found.shape), rtol=1e-5)


def test_dropout_of_everything():
    executor = mx.sym.Dropout(mx.sym.var("x"), p=1.0).simple_bind(mx.cpu(), x=(3,))
    executor.arg_dict["x"][:] = 2
    assert executor.forward()[0].asnumpy().tolist() == [2, 2, 2]
    assert np.isnan(executor.forward(is_train=True)[0].asnumpy()).all()
    with pytest.raises(MXNetError, match=r"\[0, 1\]"):
        nd.Dropout(nd.ones(3), p=1.5)


def test_filled_arrays_have_the_dtype_and_device_asked_for():
    for made, number in ((nd.zeros, 0), (nd.ones, 1)):
        for dtype in (None, "int32", np.float16, "uint8"):
            found = made((2, 3), dtype=dtype)
            assert (found.dtype, found.context) == (np.dtype(dtype or "float32").type, mx.cpu(0))
            assert (found.asnumpy() == number).all()
    assert nd.zeros(np.int64(3)).shape == nd.ones([3]).shape == (3,)


def test_shapes_may_be_arrays_of_numpy():
    shape = np.array([2, 1])
    assert nd.zeros(shape).shape == (2, 1)
    for given in (shape, str(shape), "(2, 1)"):
        assert mx.sym.zeros(shape=given).infer_shape()[1] == [(2, 1)]
    assert nd.ones((1, 1)).broadcast_to(shape).shape == (2, 1)


def test_what_was_recorded_leads_on_after_a_backward_pass():
    x, weight, bias = nd.ones((1, 2)), nd.ones((3, 2)), nd.ones(3)
    weight.attach_grad()
    bias.attach_grad()
    slope, moved = bias.grad, bias
    for _ in range(2):
        with mx.autograd.record():
            moved = moved + 1
            out = nd.FullyConnected(x, weight, moved, num_hidden=3) * 2
            out.backward()
        assert slope.asnumpy().tolist() == [2, 2, 2]


def test_a_cached_operator_is_recorded():
    net = mx.nd.CachedOp(mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=1, no_bias=True))
    x, weight, out = nd.ones((1, 2)), nd.array([[3, 4]]), nd.zeros((1, 1))
    weight.attach_grad()
    with mx.autograd.record():
        (net(x, weight) * 2).backward()
    assert weight.grad.asnumpy().tolist() == [[2, 2]]
    net(x, weight, out=out)
    assert out.asscalar() == 7
    with pytest.raises(MXNetError, match="CachedOp"):
        net(x)


# Symbols


def test_partial_shapes():
    def result(net, **shapes):
        return net.infer_shape_partial(**shapes)[1]

    x, y, z = (mx.sym.var(name) for name in "xyz")
    assert result(mx.sym.dot(x, y), x=(0, 3, 4), y=(4, 5)) == [(0, 3, 5)]
    assert result(mx.sym.batch_dot(x, y), x=(0, 3, 4), y=(0, 4, 5)) == [(0, 3, 5)]
    assert result(mx.sym.batch_dot(x, y), x=(0, 3, 4), y=(0, 0, 5)) == [()]
    assert result(mx.sym.where(x, y, z), x=(0, 2), y=(0, 2), z=(0, 2)) == [()]
    assert result(mx.sym.where(x, y, z), x=(2,), y=(2, 0), z=(2, 3)) == [(2, 3)]
    cut = mx.sym.slice(x, begin=(None, 3), end=(5, 10), step=(None, 2))
    assert result(cut, x=(0, 20)) == [(0, 4)]
    assert result(mx.sym.slice_axis(x, axis=1, begin=0, end=5), x=(10, 0)) == [(10, 0)]
    net = mx.sym.FullyConnected(x, num_hidden=4, name="fc")
    assert net.infer_shape_partial()[0] == [(), (), ()]


def test_a_given_shape_wins_over_that_of_the_variable():
    net = mx.sym.var("a", shape=(2, 3)) + mx.sym.var("b")
    assert net.infer_shape()[0] == [(2, 3)] * 2
    assert net.infer_shape(a=(5, 6))[0] == [(5, 6)] * 2


def test_unknown_lengths_may_be_minus_one():
    net = mx.sym.ones([2, -1]) + mx.sym.transpose(mx.sym.ones([3, -1]))
    assert net.bind(mx.cpu(), {}).forward()[0].shape == (2, 3)


def test_arguments_of_operators_are_told():
    told = mx.operator.get_operator_arguments("Activation")
    assert told.names == ["data", "act_type"]
    assert told.narg == 2
    assert told.types[0] == "NDArray-or-Symbol"
    assert told.types[1].endswith(", required")
    assert "'relu'" in told.types[1]


# Modules, stores, iterators


def network():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def bound(**options):
    module = mx.mod.Module(network(), **options)
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params()
    return module


def test_parameters_that_are_missing_or_unknown():
    module = bound()
    weight = {"fc_weight": nd.ones((2, 3))}
    extra = {**weight, "fc_bias": nd.zeros(2), "other": nd.zeros(2)}
    with pytest.raises(RuntimeError, match="fc_bias"):
        module.set_params(weight, {})
    module.set_params(weight, {}, allow_missing=True)
    with pytest.raises(ValueError, match="other"):
        module.set_params(extra, {})
    module.set_params(extra, {}, allow_extra=True)
    with pytest.raises(TypeError):
        mx.mod.Module(network()).bind([("data", nd.array([10.0, 10.0]))])


def test_results_of_several_contexts_are_in_parts():
    data = mx.sym.Activation(mx.sym.var("data"), act_type="relu", __layout__="TNC")
    module = mx.mod.Module(data, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    module.bind([mx.io.DataDesc("data", (3, 8, 7), layout="TNC")])
    module.init_params()
    module.forward(mx.io.DataBatch([nd.ones((3, 8, 7))]))
    assert module.get_outputs()[0].shape == (3, 8, 7)
    assert [one.shape for one in module.get_outputs(False)[0]] == [(3, 4, 7)] * 2


def test_outputs_of_several_contexts_are_copies():
    for contexts, kept in ([mx.cpu(0)], False), ([mx.cpu(0), mx.cpu(1)], True):
        module = mx.mod.Module(mx.sym.var("data") * 1, label_names=None, context=contexts)
        module.bind([("data", (2, 1))], for_training=False)
        module.init_params()
        module.forward(mx.io.DataBatch([nd.ones((2, 1))]))
        (first,) = module.get_outputs()
        module.forward(mx.io.DataBatch([nd.zeros((2, 1))]))
        assert (first.asnumpy().max() == 1) == kept


def test_keys_of_a_store_are_numbers_or_text():
    store = mx.kv.create()
    store.init(3, nd.ones(2))
    with pytest.raises(MXNetError, match="numbers or all text"):
        store.init("w", nd.ones(2))


def numbers_in(arrays):
    """The only number in each array, in lists as the arrays are."""
    if isinstance(arrays, list):
        return [numbers_in(one) for one in arrays]
    (number,) = np.unique(arrays.asnumpy())
    return number


def filled(number, stype="default", ctx=None):
    return nd.full((2, 2), number, ctx=ctx).tostype(stype)


KEYS = ([5, 7, 11], ["b", "c", "d"])
PLACES = [mx.cpu(0), mx.cpu(1)]


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("keys", KEYS)
def test_a_store_takes_lists_of_keys(keys, stype):
    store, outs = mx.kv.create(), [filled(0) for _ in keys]
    store.init(keys, [filled(i, stype) for i in (1, 2, 3)])
    store.pull(keys, out=outs)
    assert numbers_in(outs) == [1, 2, 3]
    store.push(keys[1:], [filled(i, stype) for i in (4, 5)])
    store.pull(keys, out=outs)
    assert numbers_in(outs) == [1, 4, 5]
    with pytest.raises(MXNetError, match="new"):
        store.init(keys[:1], [filled(9)])


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("keys", KEYS)
def test_a_store_takes_lists_of_arrays_for_each_key(keys, stype):
    store = mx.kv.create()
    store.init(keys, [filled(0, stype) for _ in keys])
    store.push(keys, [[filled(i + j, stype, PLACES[j]) for j in (0, 1)] for i in (1, 2, 3)])
    outs = [[filled(0, ctx=one) for one in PLACES] for _ in keys]
    store.pull(keys, out=outs)
    assert numbers_in(outs) == [[3, 3], [5, 5], [7, 7]]
    assert [[one.context for one in each] for each in outs] == [PLACES] * 3
    store.pull(keys[2], out=outs[0])
    assert numbers_in(outs[0]) == [7, 7]


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("keys", KEYS)
def test_a_store_leaves_sparse_arrays_alone_unless_it_is_told_otherwise(keys, stype):
    store, outs = mx.kv.create(), [[filled(2, "row_sparse") for _ in "12"] for _ in "123"]
    store.init(keys, [filled(i, stype) for i in (4, 5, 6)])
    store.pull(keys, out=outs)
    store.pull(keys[0], out=outs[0][0])
    assert numbers_in(outs) == [[2, 2]] * 3
    store.pull(keys, out=outs, ignore_sparse=False)
    assert numbers_in(outs) == [[4, 4], [5, 5], [6, 6]]
    store.pull(keys[0], out=outs[1], ignore_sparse=False)
    assert numbers_in(outs[1]) == [4, 4]
    assert {one.stype for each in outs for one in each} == {"row_sparse"}


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("keys", KEYS)
def test_a_store_calls_its_updater_with_each_key_and_sum(keys, stype):
    store, outs, told = mx.kv.create(), [filled(0) for _ in keys], []

    def update(key, pushed, stored):
        told.append((key, numbers_in(pushed), pushed.stype, stored.stype))
        stored += 10 * pushed

    store._set_updater(update)
    store.init(keys, [filled(1, stype) for _ in keys])
    for _ in range(2):
        store.push(keys, [[filled(i, stype, one) for one in PLACES] for i in (1, 2, 3)])
    store.pull(keys, out=outs)
    expected = list(zip(keys, (2, 4, 6), [stype] * 3, [stype] * 3, strict=True))
    assert told == 2 * expected
    assert numbers_in(outs) == [41, 81, 121]


@pytest.mark.parametrize("keys", KEYS)
def test_a_store_broadcasts_and_sums_in_one_call(keys):
    store, outs = mx.kv.create("device"), [[filled(0, ctx=one) for one in PLACES] for _ in "123"]
    store.broadcast(keys, [filled(i) for i in (1, 2, 3)], out=outs)
    assert numbers_in(outs) == [[1, 1], [2, 2], [3, 3]]
    values = [[filled(i, ctx=one) for one in PLACES] for i in (4, 5, 6)]
    store.pushpull(keys, values, out=outs)
    assert numbers_in(outs) == [[8, 8], [10, 10], [12, 12]]
    assert numbers_in(values) == [[4, 4], [5, 5], [6, 6]]
    store.pushpull(keys, values)
    assert numbers_in(values) == numbers_in(outs)
    store.pushpull(keys[0], values[0])
    assert numbers_in(values) == [[16, 16], [10, 10], [12, 12]]
    assert [[one.context for one in each] for each in values + outs] == [PLACES] * 6
    with pytest.raises(MXNetError, match="new"):
        store.broadcast(keys[0], filled(1), out=filled(0))


@pytest.mark.parametrize(("held", "other"), [(3, "a"), ("a", 3)])
def test_a_store_does_not_know_keys_of_the_other_kind(held, other):
    store, array = mx.kv.create(), filled(1, "row_sparse")
    store.init(held, array)
    for call in (
        lambda key: store.init(key, filled(1)),
        lambda key: store.push(key, filled(1)),
        lambda key: store.pull(key, out=filled(1)),
        lambda key: store.row_sparse_pull(key, out=array, row_ids=nd.array([1])),
    ):
        with pytest.raises(MXNetError, match=r"all numbers or all text|init must come first"):
            call(other)
    store.push(held, filled(5))
    store.pull(held, out=array, ignore_sparse=False)
    assert numbers_in(array) == 5


@pytest.mark.parametrize(
    ("held", "pushed", "order"), [([3, 10, 2], [10, 3, 2], [2, 3, 10]), ("cab", "bac", "cab")]
)
def test_a_push_calls_the_updater_in_mxnets_order(held, pushed, order):
    store, called = mx.kv.create(), []
    store._set_updater(lambda key, pushed, stored: called.append(key))
    store.init(list(held), [mx.nd.ones(2)] * 3)
    store.push(list(pushed), [mx.nd.ones(2)] * 3)
    assert called == list(order)
    with pytest.raises(MXNetError, match="init must come first"):
        store.push([*held, held[0] * 2], [mx.nd.ones(2)] * 4)
    assert called == list(order)


def test_a_key_that_is_named_twice():
    """Its arrays are summed before one update; ``init`` refuses it."""
    store, calls = mx.kv.create("local"), []
    with pytest.raises(MXNetError, match="new, got 'a'"):
        store.init(["a", "a"], [nd.zeros(2), nd.ones(2)])
    store.init("a", nd.zeros(2))
    store.push(["a", "a"], [nd.ones(2), nd.ones(2) * 5])
    out = nd.zeros(2)
    store.pull("a", out=out)
    assert out.asnumpy().tolist() == [6, 6]
    store._set_updater(lambda key, pushed, stored: calls.append((key, pushed.asnumpy().tolist())))
    store.push(["a", "a"], [nd.ones(2), nd.ones(2) * 5])
    assert calls == [("a", [6, 6])]
    with pytest.raises(MXNetError, match="got csr"):
        store.push("a", nd.ones((1, 2)).tostype("csr"))
    with pytest.raises(ValueError, match="'optimizer', got 'x'"):
        store.is_capable("x")


class Updating(mx.kv.TestStore):
    """A user's store that updates parameters, by twice the gradient."""

    optimizer = None

    def set_optimizer(self, optimizer):
        self.optimizer = optimizer

    def pushpull(self, key, value, out=None, priority=0):
        for grad, weight in zip(value, out, strict=True):
            weight[:] = weight - 2 * self.optimizer.lr * grad

    @staticmethod
    def is_capable(capability):
        return capability == "optimizer"


def test_a_store_of_the_users_updates_a_module_if_it_is_capable():
    module = mx.mod.Module(network())
    module.bind([("data", (2, 3))], [("softmax_label", (2,))])
    module.init_params(mx.init.Zero())
    store = Updating()
    module.init_optimizer(kvstore=store, optimizer_params={"learning_rate": 0.5})
    batch = mx.io.DataBatch([nd.ones((2, 3))], [nd.array([0, 1])])
    module.forward_backward(batch)
    grads = {n: one[0].asnumpy() for n, one in zip(*names_and_grads(module), strict=True)}
    module.update()
    assert store.optimizer.lr == 0.5
    for name, one in module.get_params()[0].items():
        np.testing.assert_allclose(one.asnumpy(), -grads[name], rtol=1e-6)


def names_and_grads(module):
    group = module._exec_group
    return group.param_names, group.grad_arrays


def test_an_array_that_is_assigned_from_another_device_stays():
    near, far = nd.zeros((2, 2)), nd.zeros((2, 2), ctx=mx.cpu(1))
    near[:], far[:] = nd.ones((2, 2), ctx=mx.cpu(1)), nd.ones((2, 2)) * 2
    far[0] = nd.array([3, 4])
    near += 1
    far += 1
    assert (near.context, far.context) == (mx.cpu(0), mx.cpu(1))
    assert (near.asnumpy().tolist(), far.asnumpy().tolist()) == ([[2, 2], [2, 2]], [[4, 5], [3, 3]])


def test_copies_on_several_devices_are_computed_there():
    """Though lazy calls of arrays that JAX may move are compiled together."""
    source, copies = nd.array([1, -1, 2]), [nd.zeros(3, ctx=one) for one in PLACES]
    for one in copies:
        source.copyto(one)
    doubled = [one * 2 for one in copies]
    assert [one.context for one in (*copies, *doubled)] == [*PLACES, *PLACES]


def test_the_store_for_tests():
    store, outs = mx.kv.create("teststore"), [filled(0) for _ in "12"]
    assert store.type == "teststore"
    store.broadcast("w", filled(3), out=outs)
    assert numbers_in(outs) == [3, 3]
    values = [filled(1), filled(2)]
    store.pushpull("w", values, out=outs)
    assert numbers_in([values, outs]) == [[1, 2], [3, 3]]
    store.pushpull("w", values)
    assert numbers_in(values) == [3, 3]
    for call in (store.set_optimizer, store.save_optimizer_states, store.load_optimizer_states):
        with pytest.raises(NotImplementedError, match="must be defined"):
            call("x")


class Doubling(mx.kv.KVStoreBase):
    """A user's store: gradients become twice their sum."""

    type = "doubling"

    def broadcast(self, key, value, out, priority=0):
        for one in out if isinstance(out, list) else [out]:
            value.copyto(one)

    def pushpull(self, key, value, out=None, priority=0):
        values = value if isinstance(value, list) else [value]
        total = sum(one.as_in_context(values[0].context) for one in values)
        self.broadcast(key, 2 * total, values if out is None else out)

    @staticmethod
    def is_capable(capability):
        return False


@pytest.fixture
def _doubling(monkeypatch):
    monkeypatch.setattr(mx.kv.KVStoreBase, "kv_registry", {})
    assert mx.kv.KVStoreBase.register(Doubling) is Doubling


@pytest.mark.usefixtures("_doubling")
def test_copies_of_a_parameter_are_trained_with_a_store_of_the_users():
    store, update = mx.kv.create("doubling"), mx.optimizer.SGD(learning_rate=0.25).update
    inputs = np.array([[1, 2, 0], [0, 1, 4]], np.float32)
    copies = [nd.zeros(3, ctx=one) for one in PLACES]
    store.broadcast("w", nd.array([1, -1, 2]), out=copies)
    expected = np.array([1, -1, 2], np.float32)
    for one in copies:
        one.attach_grad()
    for _ in range(2):
        for one, x, place in zip(copies, inputs, PLACES, strict=True):
            with mx.autograd.record():
                loss = (one * one * nd.array(x, ctx=place)).sum()
            loss.backward()
        store.pushpull("w", [one.grad for one in copies])
        for one in copies:
            update(0, one, one.grad, None)
        expected = expected - 0.25 * 2 * (2 * expected * inputs).sum(0)
    for one, place in zip(copies, PLACES, strict=True):
        assert one.context == place
        np.testing.assert_allclose(one.asnumpy(), expected, rtol=1e-6)


@pytest.mark.usefixtures("_doubling")
@pytest.mark.parametrize(("count", "by_name"), [(1, False), (2, False), (2, True)])
def test_gradients_of_a_module_pass_through_a_store_of_the_users(count, by_name):
    module = mx.mod.Module(network(), context=PLACES[:count])
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params(mx.init.Zero())
    store = "doubling" if by_name else Doubling()
    module.init_optimizer(kvstore=store, optimizer_params={"learning_rate": 0.5})
    x, labels = np.arange(12.0).reshape(4, 3) / 8, np.array([0, 1, 0, 0])
    module.forward_backward(mx.io.DataBatch([nd.array(x)], [nd.array(labels)]))
    module.update()
    slope = 0.5 - np.eye(2)[labels]  # at weights of zero, both classes are as probable
    found = module.get_params()[0]
    expected = {"fc_weight": slope.T @ x, "fc_bias": slope.sum(0)}
    for name, grad in expected.items():
        np.testing.assert_allclose(found[name].asnumpy(), -0.5 * 2 * grad / 4, rtol=1e-5)


def test_a_shape_may_be_a_number():
    assert mx.sym.var("x", shape=3).infer_shape()[0] == [(3,)]


def test_stores_of_users():
    class Counting(mx.kv.TestStore):
        sums = 0

        def pushpull(self, key, value, out=None, priority=0):
            Counting.sums += 1
            super().pushpull(key, value, out, priority)

    mx.kv.KVStoreBase.register(Counting)
    module = bound()
    module.init_optimizer(kvstore="counting")
    module.forward_backward(mx.io.DataBatch([nd.ones((4, 3))], [nd.array([0, 1, 0, 1])]))
    module.update()
    assert Counting.sums == 2
    store = mx.kv.create("teststore")
    values = [nd.ones(2), nd.ones(2)]
    store.pushpull(1, values)
    assert values[1].asnumpy().tolist() == [2, 2]
    assert not store.is_capable("optimizer")
    assert mx.kv.create("local").is_capable("optimizer")
    with pytest.raises(NotImplementedError, match="set_optimizer"):
        store.set_optimizer(None)


def test_rows_of_files_have_a_dtype(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("200000001,2\n3,4\n")
    batches = mx.io.CSVIter(path, (2,), batch_size=2, dtype="int32")
    (batch,) = list(batches)
    assert batch.data[0].dtype is np.int32
    batches.reset()
    assert batches.iter_next()
    assert batches.getdata().asnumpy().tolist() == [[200000001, 2], [3, 4]]


# Cells, drawings, scopes


@pytest.mark.parametrize("kind", [mx.rnn.ConvRNNCell, mx.rnn.ConvLSTMCell, mx.rnn.ConvGRUCell])
def test_cells_of_images(kind):
    cell = kind(input_shape=(1, 3, 6, 5), num_hidden=4, prefix="rnn_")
    inputs = [mx.sym.var(f"x{i}") for i in range(2)]
    outputs, states = cell.unroll(2, inputs)
    group = mx.sym.Group(outputs)
    assert group.list_outputs() == ["rnn_t0_out_output", "rnn_t1_out_output"]
    assert group.infer_shape(x0=(1, 3, 6, 5), x1=(1, 3, 6, 5))[1] == [(1, 4, 6, 5)] * 2
    assert len(states) == len(cell.state_info) == (2 if kind is mx.rnn.ConvLSTMCell else 1)
    with pytest.raises(MXNetError, match="odd"):
        kind(input_shape=(1, 3, 6, 5), num_hidden=4, h2h_kernel=(2, 3))


def test_sentences_under_their_older_path():
    coded, words = mx.rnn.io.encode_sentences(
        [["a", "c"]], vocab={"a": 1}, start_label=0, unknown_token="UNK"
    )
    assert (coded, words) == ([[1, 0]], {"a": 1, "UNK": 0})


def test_equal_names_in_a_drawing_are_warned_of():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    net = mx.sym.FullyConnected(net, num_hidden=2, name="fc")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mx.viz.plot_network(net)
    assert len(told) == 1
    assert "fc_weight" in str(told[0].message)


def test_scopes_belong_to_threads():
    def enter():
        mx.AttrScope.current = mx.AttrScope(x="inner")
        mx.Context.default_ctx = mx.cpu(3)
        seen.append((mx.AttrScope.current._attr, mx.Context.default_ctx))

    seen = []
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [({"x": "inner"}, mx.cpu(3))]
    assert mx.AttrScope.current._attr == {}
    for given in ({"y": "hi"}, {}):
        mx.AttrScope.current = mx.AttrScope(**given)
        assert mx.AttrScope.current._attr == given
    assert mx.Context.default_ctx != mx.cpu(3)
    assert mx.Context.devtype2str[mx.cpu().device_typeid] == "cpu"
    with mx.name.NameManager() as names:
        assert mx.name.NameManager.current is names


def test_features_and_folders(monkeypatch):
    assert not mx.runtime.Features().is_enabled("opencv")
    assert {one.name for one in mx.runtime.feature_list()} == set(mx.runtime.Features())
    with pytest.raises(RuntimeError, match="NOTHING"):
        mx.runtime.Features().is_enabled("nothing")
    monkeypatch.setenv("MXNET_HOME", "/data")
    assert mx.base.data_dir() == "/data"


def off_by(wrong, right):
    """The largest error, as a share of the largest entry."""
    return np.abs(wrong - right).max() / np.abs(right).max()


def gradient_of(function, x, head):
    given = nd.array(x, dtype=x.dtype)
    given.attach_grad()
    with mx.autograd.record():
        out = function(given)
    out.backward(nd.array(head, dtype=head.dtype))
    return given.grad.asnumpy()


@pytest.mark.usefixtures("x64")
class TestFiguresOfThePage:
    """What the page on MXNet says of gradients that MXNet computes wrongly."""

    X, HEAD = np.random.default_rng(0).normal(size=(2, 2, 3, 4))

    def test_the_gradient_of_a_softmax_is_along_its_axis(self):
        p = np.exp(self.X) / np.exp(self.X).sum(-1, keepdims=True)
        right = p * (self.HEAD - (self.HEAD * p).sum(-1, keepdims=True))
        found = gradient_of(lambda x: nd.SoftmaxActivation(x, mode="instance"), self.X, self.HEAD)
        assert off_by(found, right) < 1e-10
        along_the_second = p * (self.HEAD - (self.HEAD * p).sum(1, keepdims=True))
        assert off_by(along_the_second, right) == pytest.approx(0.62, abs=0.005)

    def test_the_gradient_of_prelu_is_chosen_by_the_sign_of_its_input(self):
        slopes = np.array([0.25, -0.5, -1.5])
        by_axis = slopes[:, None]
        right = self.HEAD * np.where(self.X > 0, 1, by_axis)
        given = nd.array(slopes, dtype="float64")
        found = gradient_of(lambda x: nd.LeakyReLU(x, given, act_type="prelu"), self.X, self.HEAD)
        assert off_by(found, right) < 1e-10
        out = np.where(self.X > 0, self.X, by_axis * self.X)
        by_result = self.HEAD * np.where(out > 0, 1, by_axis)
        assert off_by(by_result, right) == pytest.approx(1.67, abs=0.005)

    def test_the_gradient_of_batch_normalization_is_that_of_its_formula(self):
        """Of the mean and the variance, too, which depend on each entry."""
        gamma, eps, axes = np.array([0.5, -2.0, 3.0]), 1e-3, (0, 2)
        mean, var = self.X.mean(axes, keepdims=True), self.X.var(axes, keepdims=True)
        normal = (self.X - mean) / np.sqrt(var + eps)
        along = self.HEAD * gamma[:, None]
        centred = along - along.mean(axes, keepdims=True)
        right = centred - normal * (along * normal).mean(axes, keepdims=True)
        found = gradient_of(
            lambda x: nd.BatchNorm(
                x,
                *(nd.array(one, dtype="float64") for one in (gamma, 0 * gamma)),
                *(nd.array(one, dtype="float64") for one in (0 * gamma, gamma)),
                eps=eps,
                fix_gamma=False,
            ),
            self.X,
            self.HEAD,
        )
        assert off_by(found, right / np.sqrt(var + eps)) < 1e-10
