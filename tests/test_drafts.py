"""Drafts: programs of new shapes are compiled in a fraction of the time at first."""

import functools
import itertools
import sys
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
from symop.interop.mxnet.module.training_step import TrainingStep
from symop.runtime import executor
from symop.xla import drafts
from symop.xla.compiling import thread_settings
from symop.xla.draft_runs import draft_runs
from symop.xla.drafts import DRAFT, Drafted


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """A function after which no graph was bound; the constants are restored after the test."""

    def run():
        monkeypatch.setattr(drafts, "keeps_programs", lambda: False)  # tests keep them
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
    assert (first.is_drafted, second.is_drafted, other.is_drafted) == (False, True, False)


def test_the_first_shapes_are_never_drafted(quick):
    drafted = [bound(n).is_drafted for n in (11, 12)]
    executor._modes.clear()
    executor._recent.clear()
    assert drafted + [bound(n).is_drafted for n in (11, 12)] == [False, True, False, True]


def test_equal_shapes_share_a_program(quick):
    bound(3)
    first, second = bound(4), bound(4)
    assert first._modes[True] is second._modes[True]


def test_only_what_is_compiled_quickly_is_drafted(monkeypatch):
    assert not any(bound(4, i).is_drafted for i in range(1, 3))
    monkeypatch.setattr(thread_settings, "quick", True)
    assert [bound(4, i).is_drafted for i in range(1, 3)] == [False, True]
    monkeypatch.setattr(thread_settings, "quick", False)
    assert not bound(4, 2).is_drafted


@pytest.mark.skipif(len(jax.devices()) < 2, reason="needs two devices")
def test_meshes_are_not_drafted(quick):
    mesh = jax.make_mesh((2,), ("data",))
    executors = [so.sin(so.var("x", shape=(n, 2))).simple_bind(mesh=mesh) for n in (2, 4)]
    assert not any(one.is_drafted for one in executors)


def test_other_devices_are_not_drafted(quick, monkeypatch):
    assert drafts.may_draft()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert not drafts.may_draft()


def test_kept_programs_are_not_drafted(quick, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(thread_settings, "quick", True)
    before = jax.config.jax_compilation_cache_dir
    try:
        for folder, drafted in (("anywhere", False), (None, True)):
            jax.config.update("jax_compilation_cache_dir", folder)
            assert drafts.may_draft() == drafted
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_dtypes_that_the_older_emitters_do_not_know_are_not_drafted(quick):
    assert not any(bound(5, i, dtype="bfloat16").is_drafted for i in range(1, 3))
    assert runs_of(lambda x: jnp.sin(x.astype(jnp.bfloat16)), (2,)) == 0
    assert runs_of(lambda x: jax.random.uniform(jax.random.key(0), x.shape), (2,)) == 64


def runs_of(function, *shapes):
    return draft_runs(jax.make_jaxpr(function)(*[jnp.zeros(one) for one in shapes]))


def test_runs_are_as_many_as_pay():
    assert [runs_of(jnp.negative, (n,)) for n in (0, 15_625, 250_000, 250_001)] == [64, 64, 4, 0]
    tune(draft_loss=100, draft_runs=20)
    assert [runs_of(jnp.negative, (n,)) for n in (2, 10, 25, 26)] == [20, 10, 4, 0]
    tune(draft_runs=3)
    assert runs_of(jnp.negative, (2,)) == 0


def test_entries_of_loops_count_in_each_step():
    def scanned(x):
        return jax.lax.scan(lambda c, _: (-c, None), x, length=10)[0]

    def conditional(x):
        return jax.lax.cond(x[0] > 0, jnp.negative, jnp.abs, x)

    tune(draft_loss=1000)
    assert runs_of(scanned, (10,)) == 10
    assert runs_of(lambda x: jax.lax.while_loop(lambda c: c[0] > 0, jnp.sin, x), (2,)) == 0
    assert runs_of(jax.jit(jnp.negative), (100,)) == 10
    assert runs_of(conditional, (100,)) == 29  # six equations, 204 entries


def test_libraries_take_as_long_in_a_draft():
    assert runs_of(jnp.matmul, (500, 500), (500, 500)) == 64
    kernel = (16, 16, 3, 3)
    assert runs_of(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"), (8, 16, 32, 32), kernel) == 64

    def transposed(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), [(1, 1)] * 2, lhs_dilation=(2, 2))

    assert runs_of(transposed, (8, 16, 32, 32), kernel) == 0


@pytest.mark.parametrize(
    ("net", "shapes"),
    [
        (lambda x: mx.sym.contrib.box_nms(x, topk=-1), {"x": (2, 2000, 6)}),
        (
            lambda x: mx.sym.Pooling(x, kernel=(7, 7), pad=(3, 3), pool_type="max"),
            {"x": (8, 16, 32, 32)},
        ),
        (
            lambda x: mx.sym.ROIPooling(x, mx.sym.var("r"), pooled_size=(7, 7), spatial_scale=1),
            {"x": (1, 64, 32, 32), "r": (64, 5)},
        ),
    ],
)
def test_what_computes_much_for_each_entry_is_not_drafted(net, shapes):
    executor = net(mx.sym.var("x")).simple_bind(mx.cpu(), **shapes)
    arrays = {name: jnp.zeros(shape) for name, shape in shapes.items()}
    function = executor.graph.to_jax()
    assert draft_runs(jax.make_jaxpr(lambda given: function(**given))(arrays)) == 0


def test_a_draft_ends_after_its_runs(monkeypatch):
    given, jit = [], jax.jit

    def spy(function, **options):
        given.append(options["compiler_options"])
        return jit(function, **options)

    monkeypatch.setattr(jax, "jit", spy)
    tune(draft_runs=4)
    drafted, seen = Drafted(lambda x: x + 1, None), []
    for i in range(6):
        assert float(drafted(jnp.float32(i))) == i + 1
        seen.append(list(given))
    assert seen == [[DRAFT]] * 4 + [[DRAFT, None]] * 2
    assert drafted._draft._cache_size() == 0  # its memory is free


def interrupted(function, codes, number):
    """Calls a function, interrupted before one opcode of some code; whether it was."""
    count = iter(range(number))

    def trace(frame, event, _):
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if frame.f_code not in codes:
            return None
        if event == "opcode" and next(count, None) is None:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_a_draft_ends_after_an_interrupt_at_any_opcode():
    tune(draft_runs=4)
    x = jnp.float32(1)
    for number in itertools.count():
        drafted = Drafted(lambda x: x + 1, None)
        for _ in range(4):
            drafted(x)
        done = not interrupted(functools.partial(drafted, x), {Drafted.__call__.__code__}, number)
        for _ in range(2):
            assert float(drafted(x)) == 2
        assert drafted._optimized is not None
        if done:
            break
    assert number > 20


@pytest.mark.thorough
def test_the_draft_of_a_step_ends_after_an_interrupt_at_any_opcode():
    tune(draft_runs=4)
    codes = {TrainingStep._step_for.__code__, TrainingStep._has_ended.__code__}
    module, _ = trained(0, 8)
    for number in itertools.count():
        data, label = np.ones((9 + number, 5)), np.ones(9 + number)
        batch = mx.io.DataBatch([mx.nd.array(data)], [mx.nd.array(label)])

        def step(batch=batch):
            module.forward_backward(batch)
            module.update()

        for _ in range(4):
            step()
        (*_, made) = module._steps.values()
        assert made._is_draft
        done = not interrupted(step, codes, number)
        step()
        assert not made._is_draft
        assert options_of(module)[-1] is None
        if done:
            break
    assert number > 20


@pytest.mark.usefixtures("optimized")
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
    drafted = {9: module._curr_module._executor.is_drafted}
    for count in (7, 5):
        module.switch_bucket(count, [("data", (2, count, 3))])
        drafted[count] = module._curr_module._executor.is_drafted
    assert drafted == {9: False, 7: True, 5: True}


def test_reshaped_executors_are_drafted_and_compute_the_same():
    large = perceptron().simple_bind(mx.cpu(), data=(8, 5), softmax_label=(8,))
    for one in large.arg_arrays:
        one[:] = mx.nd.random.normal(shape=one.shape)
    large.arg_dict["softmax_label"][:] = np.arange(8) % 3
    smaller = large.reshape(data=(6, 5), softmax_label=(6,))
    assert (large.is_drafted, smaller.is_drafted) == (False, True)
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
