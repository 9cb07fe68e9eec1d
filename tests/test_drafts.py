"""Drafts: programs of new shapes are compiled in a fraction of the time at first."""

import weakref
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
import symop.interop.mxnet as mx
from registry.caches import Memo
from registry.tuning import present, tune
from symop.runtime import executor
from symop.xla import drafts
from symop.xla.compiling import thread_settings
from symop.xla.drafts import DRAFT, Drafted


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """A function after which no graph was bound; the constants are restored after the test."""

    def run():
        monkeypatch.setattr(drafts, "_first", Memo(64))
        monkeypatch.setattr(executor, "_modes", weakref.WeakValueDictionary())
        monkeypatch.setattr(executor, "_recent", deque(maxlen=16))

    run()
    before = present.tuning
    yield run
    present.tuning = before


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(thread_settings, "quick", True)


def bound(*shape, function=so.sin, dtype="float32"):
    """An executor of ``function``, of which no other executor of these shapes is alive."""
    return function(so.var("x", shape=shape, dtype=dtype)).simple_bind()


def test_new_shapes_are_drafted(quick):
    first, second, other = bound(3, 1), bound(3, 2), bound(3, 2, function=so.cos)
    assert (first.draft_runs, second.draft_runs, other.draft_runs) == (0, 64, 0)


def test_equal_shapes_share_a_program(quick):
    first, second = bound(3, 3), bound(3, 3)
    assert first.draft_runs == second.draft_runs == 0


def test_the_first_shapes_are_never_drafted(quick):
    runs = [bound(n).draft_runs for n in (11, 12)]
    executor._modes.clear()
    executor._recent.clear()
    assert runs + [bound(n).draft_runs for n in (11, 12)] == [0, 64, 0, 64]


def test_only_what_is_compiled_quickly_is_drafted():
    assert [bound(4, i).draft_runs for i in range(1, 3)] == [0, 0]


def test_dtypes_that_the_older_emitters_do_not_know_are_not_drafted(quick):
    assert [bound(5, i, dtype="bfloat16").draft_runs for i in range(1, 3)] == [0, 0]


def test_runs_are_as_many_as_pay(quick):
    tune(draft_entries=1000)
    bound(1)  # two arrays of one call
    assert [bound(n).draft_runs for n in (2, 50, 125, 126)] == [64, 10, 4, 0]
    tune(draft_runs=3)
    assert bound(7).draft_runs == 0


def test_a_draft_ends_after_its_runs(monkeypatch):
    given, jit = [], jax.jit

    def spy(function, **options):
        given.append(options["compiler_options"])
        return jit(function, **options)

    monkeypatch.setattr(jax, "jit", spy)
    drafted, seen = Drafted(lambda x: x + 1, 2, None), []
    for i in range(4):
        assert float(drafted(jnp.float32(i))) == i + 1
        seen.append(list(given))
    assert seen == [[DRAFT], [DRAFT], [DRAFT, None], [DRAFT, None]]


@pytest.mark.parametrize("function", [jnp.tanh, jnp.exp, lambda x: x @ x, jnp.sort, jnp.cumsum])
def test_drafts_compute_the_same(function):
    x = np.random.default_rng(0).random((32, 32), np.float32)
    results = [jax.jit(function, compiler_options=one)(x) for one in (None, DRAFT)]
    np.testing.assert_allclose(*map(np.asarray, results), rtol=1e-6)


def perceptron():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
    net = mx.sym.Activation(net, act_type="tanh")
    return mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(net, num_hidden=3, name="out"), name="softmax"
    )


def trained(steps, size):
    """A module that was trained for some steps, on batches of ``size`` after one of 8."""
    module = mx.mod.Module(perceptron())
    module.bind([("data", (8, 5))], [("softmax_label", (8,))])
    module.init_params(mx.init.One())
    module.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    generator = np.random.default_rng(0)
    for n in [8, *[size] * steps]:
        data, label = generator.normal(size=(n, 5)), generator.integers(0, 3, n)
        module.forward_backward(mx.io.DataBatch([mx.nd.array(data)], [mx.nd.array(label)]))
        module.update()
    return module, {name: one.asnumpy() for name, one in module.get_params()[0].items()}


def options_of(module):
    """The compiler's options of the fused steps of a module, in the order of its shapes."""
    steps = module._steps.values()
    return [step._options["compiler_options"] for one in steps for step in one._compiled.values()]


def test_training_steps_of_new_shapes_are_drafted(forget):
    tune(draft_runs=5)
    module, _ = trained(4, 6)
    assert options_of(module) == [None, DRAFT]
    module, drafted = trained(9, 7)
    assert options_of(module) == [None, None]
    forget()
    tune(draft_runs=1)
    module, whole = trained(9, 7)
    assert options_of(module) == [None, None]
    for name, one in whole.items():
        np.testing.assert_allclose(drafted[name], one, rtol=1e-5, atol=1e-7)


def test_buckets_are_drafted():
    cell = mx.rnn.LSTMCell(4, prefix="cell_")

    def symbol(count):
        cell.reset()
        found, _ = cell.unroll(count, mx.sym.var("data"), layout="NTC", merge_outputs=True)
        return mx.sym.make_loss(mx.sym.square(found)), ("data",), None

    module = mx.mod.BucketingModule(symbol, default_bucket_key=9)
    module.bind([("data", (2, 9, 3))])
    module.init_params()
    drafted = {9: module._curr_module._executor.draft_runs}
    for count in (7, 5):
        module.switch_bucket(count, [("data", (2, count, 3))])
        drafted[count] = module._curr_module._executor.draft_runs
    assert drafted == {9: 0, 7: 64, 5: 64}


def test_reshaped_executors_are_drafted_and_compute_the_same():
    large = perceptron().simple_bind(mx.cpu(), data=(8, 5), softmax_label=(8,))
    for one in large.arg_arrays:
        one[:] = mx.nd.random.normal(shape=one.shape)
    large.arg_dict["softmax_label"][:] = np.arange(8) % 3
    smaller = large.reshape(data=(6, 5), softmax_label=(6,))
    assert (large.draft_runs, smaller.draft_runs) == (0, 64)
    smaller.forward(is_train=True)
    smaller.backward()
    slopes = {name: one.asnumpy() for name, one in smaller.grad_dict.items()}
    x, label = (large.arg_dict[name][:6].value for name in ("data", "softmax_label"))
    names = ("fc_weight", "fc_bias", "out_weight", "out_bias")
    params = {name: large.arg_dict[name].value for name in names}

    def loss(params):
        h = jnp.tanh(x @ params["fc_weight"].T + params["fc_bias"])
        scores = jax.nn.log_softmax(h @ params["out_weight"].T + params["out_bias"])
        return -jnp.sum(jnp.take_along_axis(scores, label.astype(int)[:, None], 1))

    for name, one in jax.grad(loss)(params).items():
        np.testing.assert_allclose(slopes[name], one, rtol=1e-4, atol=1e-5)
