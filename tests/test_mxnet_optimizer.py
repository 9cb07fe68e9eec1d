"""MXNet's optimizers and learning rates against its formulas, written in NumPy."""

import math
import pickle
from contextlib import nullcontext

import jax.numpy as jnp
import numpy as np
import pytest

from symop.interop.mxnet import lr_scheduler, optimizer
from symop.interop.mxnet import updater as updater_module
from symop.interop.mxnet.arrays import array_of
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError
from symop.interop.mxnet.kvstore import create as create_store
from symop.interop.mxnet.storage import StorageFallbackWarning, forget_warnings

RATE, DECAY, SCALE, CLIP = 0.1, 0.05, 0.5, 0.4


def clipped(g, clip):
    return g if clip is None else np.clip(g, -clip, clip)


class Reference:
    """An optimizer of one array, as MXNet 1.9.1 computes it."""

    def __init__(self, formula, wd=0.0, clip=None, **options):
        self.formula, self.wd, self.clip, self.options = formula, wd, clip, options
        self.state, self.t = {}, 0

    def kept(self, *names):
        return [self.state.get(name, 0.0) for name in names]

    def __call__(self, w, g, rate):
        self.t += 1
        return self.formula(self, w, g * SCALE, rate, **self.options)


def sgd(r, w, g, rate, momentum=0.0):
    g = clipped(g, r.clip) + r.wd * w
    (m,) = r.kept("m")
    r.state["m"] = momentum * m - rate * g
    return w + r.state["m"]


def nag(r, w, g, rate, momentum):
    g = clipped(g, r.clip) + r.wd * w
    m = momentum * r.kept("m")[0]
    r.state["m"] = m - rate * g
    return w - m + (momentum + 1) * (m - rate * g)


def signum(r, w, g, rate, momentum, wd_lh=0.0):
    if not momentum:
        return (1 - rate * r.wd) * w - rate * np.sign(g)
    (m,) = r.kept("m")
    m = r.state["m"] = momentum * m - (1 - momentum) * (r.wd * w + clipped(g, r.clip))
    return (1 - rate * wd_lh) * w + rate * np.sign(m)


def adam(r, w, g, rate, b1=0.9, b2=0.999, eps=1e-8):
    g = clipped(g + r.wd * w, r.clip)
    m, v = r.kept("m", "v")
    m = r.state["m"] = b1 * m + (1 - b1) * g
    v = r.state["v"] = b2 * v + (1 - b2) * g**2
    rate *= math.sqrt(1 - b2**r.t) / (1 - b1**r.t)
    return w - rate * m / (np.sqrt(v) + eps)


def adamax(r, w, g, rate, b1=0.9, b2=0.999):
    g = clipped(g + r.wd * w, r.clip)
    m, u = r.kept("m", "u")
    m = r.state["m"] = b1 * m + (1 - b1) * g
    u = r.state["u"] = np.maximum(b2 * u, np.abs(g))
    return w - rate / (1 - b1**r.t) * m / u


def nadam(r, w, g, rate, *, b1=0.9, b2=0.999, eps=1e-8, schedule_decay=0.004):
    g = clipped(g + r.wd * w, r.clip)
    now, then = [b1 * (1 - 0.5 * 0.96 ** (t * schedule_decay)) for t in (r.t, r.t + 1)]
    product = r.state["p"] = r.state.get("p", 1.0) * now
    m, v = r.kept("m", "v")
    m = r.state["m"] = b1 * m + (1 - b1) * g
    v = r.state["v"] = b2 * v + (1 - b2) * g**2
    bar = (1 - now) * g / (1 - product) + then * m / (1 - product * then)
    return w - rate * bar / (np.sqrt(v / (1 - b2**r.t)) + eps)


def lamb(r, w, g, rate, *, b1=0.9, b2=0.999, eps=1e-6, low=None, high=None, correct=True):
    g = clipped(g, r.clip)
    m, v = r.kept("m", "v")
    m = r.state["m"] = b1 * m + (1 - b1) * g
    v = r.state["v"] = b2 * v + (1 - b2) * g**2
    if correct:
        m, v = m / (1 - b1**r.t), v / (1 - b2**r.t)
    step = m / (np.sqrt(v) + eps) + r.wd * w
    length, reach = np.linalg.norm(w), np.linalg.norm(step)
    length = max(length, low) if low else length
    length = min(length, high) if high else length
    return w - rate * (length / reach if length and reach else 1.0) * step


def ftml(r, w, g, rate, b1=0.6, b2=0.999, eps=1e-8):
    g = clipped(g + r.wd * w, r.clip)
    d, v, z = r.kept("d", "v", "z")
    v = r.state["v"] = b2 * v + (1 - b2) * g**2
    new = (1 - b1**r.t) / rate * (np.sqrt(v / (1 - b2**r.t)) + eps)
    z = r.state["z"] = b1 * z + (1 - b1) * g - (new - b1 * d) * w
    r.state["d"] = new
    return -z / new


def ftrl(r, w, g, rate, lamda1=0.01, beta=1.0):
    g = clipped(g, r.clip)
    z, n = r.kept("z", "n")
    z = r.state["z"] = z + g - (np.sqrt(n + g**2) - np.sqrt(n)) * w / rate
    n = r.state["n"] = n + g**2
    far = np.abs(z) > lamda1
    return (np.sign(z) * lamda1 - z) / ((beta + np.sqrt(n)) / rate + r.wd) * far


def adagrad(r, w, g, rate, eps=1e-7):
    g = clipped(g, r.clip)
    h = r.state["h"] = r.kept("h")[0] + g**2
    return w - rate * (g / np.sqrt(h + eps) + r.wd * w)


def rmsprop(r, w, g, rate, gamma=0.9, eps=1e-8, bound=None):
    g = clipped(g + r.wd * w, r.clip)
    n = r.state["n"] = (1 - gamma) * g**2 + gamma * r.kept("n")[0]
    return clipped(w - rate * g / np.sqrt(n + eps), bound)


def graves(r, w, g, rate, *, gamma=0.9, gamma2=0.9, eps=1e-8, bound=None):
    g = clipped(g + r.wd * w, r.clip)
    n, a, d = r.kept("n", "a", "d")
    n = r.state["n"] = (1 - gamma) * g**2 + gamma * n
    a = r.state["a"] = (1 - gamma) * g + gamma * a
    d = r.state["d"] = gamma2 * d - rate * g / np.sqrt(n - a**2 + eps)
    return clipped(w + d, bound)


def adadelta(r, w, g, rate, rho=0.9, eps=1e-5):
    g = clipped(g, r.clip)
    n, s = r.kept("n", "s")
    n = r.state["n"] = rho * n + (1 - rho) * g**2
    step = np.sqrt(s + eps) / np.sqrt(n + eps) * g
    r.state["s"] = rho * s + (1 - rho) * step**2
    return w - step - r.wd * w


def lars(r, w, g, rate, momentum=0.0, eta=0.001, eps=0.0):
    length, slope = np.linalg.norm(w), np.linalg.norm(g)
    if length and slope:
        rate = rate * eta * length / (slope + r.wd * length + eps)
    return sgd(r, w, g, rate, momentum)


def lbsgd(r, w, g, rate, *, scale=1, momentum=0.0, last=160, warmth=None, first=0):
    total = r.state["sum"] = r.state.get("sum", 0.0) + g / SCALE
    count = first + r.t
    if count % scale:
        return w
    r.state["sum"] = 0.0
    mean = total / scale
    if warmth is not None:
        factor = scale if count >= last else 1 + (scale - 1) * warmth(count / last)
    else:
        factor = np.sqrt(np.sum(w**2) / (np.sum(mean**2) + r.wd * np.sum(w**2) + 1e-18))
        factor = np.clip(factor, 0.01, 100)
    return sgd(r, w, mean * SCALE, rate * factor, momentum)


def dcasgd(r, w, g, rate, momentum=0.0, lamda=0.04):
    g, before = clipped(g, r.clip), r.state.get("before", w)
    m = r.state["m"] = momentum * r.kept("m")[0] - rate * (
        g + r.wd * w + lamda * g * g * (w - before)
    )
    r.state["before"] = w
    return w + m


def test(r, w, g, rate):
    return w + g


test.__test__ = False

CASES = [
    ("sgd", {}, sgd, {}),
    ("sgd", {"momentum": 0.9}, sgd, {"momentum": 0.9}),
    ("ccSGD", {"momentum": 0.5}, sgd, {"momentum": 0.5}),
    ("nag", {"momentum": 0.9}, nag, {"momentum": 0.9}),
    ("nag", {}, sgd, {}),
    ("signum", {}, signum, {"momentum": 0.9}),
    ("signum", {"momentum": 0.0}, signum, {"momentum": 0.0}),
    ("signum", {"momentum": 0.5, "wd_lh": 0.1}, signum, {"momentum": 0.5, "wd_lh": 0.1}),
    ("adam", {}, adam, {}),
    ("adam", {"beta1": 0.5, "epsilon": 1e-2}, adam, {"b1": 0.5, "eps": 1e-2}),
    ("adamax", {"beta1": 0.8}, adamax, {"b1": 0.8}),
    ("nadam", {"schedule_decay": 0.01}, nadam, {"schedule_decay": 0.01}),
    ("lamb", {}, lamb, {}),
    ("lamb", {"bias_correction": False}, lamb, {"correct": False}),
    ("lamb", {"lower_bound": 9.0}, lamb, {"low": 9.0}),
    ("lamb", {"upper_bound": 0.5, "bias_correction": False}, lamb, {"high": 0.5, "correct": False}),
    ("ftml", {}, ftml, {}),
    ("ftrl", {"lamda1": 0.1, "beta": 2.0}, ftrl, {"lamda1": 0.1, "beta": 2.0}),
    ("adagrad", {"eps": 1e-3}, adagrad, {"eps": 1e-3}),
    ("rmsprop", {"gamma1": 0.8}, rmsprop, {"gamma": 0.8}),
    ("rmsprop", {"clip_weights": 0.3}, rmsprop, {"bound": 0.3}),
    ("rmsprop", {"centered": True, "gamma2": 0.5}, graves, {"gamma2": 0.5}),
    ("rmsprop", {"centered": True, "clip_weights": 0.3}, graves, {"bound": 0.3}),
    ("adadelta", {"rho": 0.8}, adadelta, {"rho": 0.8}),
    ("lars", {}, lars, {}),
    (
        "lars",
        {"momentum": 0.9, "eta": 0.5, "eps": 0.1},
        lars,
        {"momentum": 0.9, "eta": 0.5, "eps": 0.1},
    ),
    ("dcasgd", {}, dcasgd, {}),
    ("dcasgd", {"momentum": 0.9, "lamda": 0.5}, dcasgd, {"momentum": 0.9, "lamda": 0.5}),
    ("lbsgd", {}, lbsgd, {"warmth": lambda part: part}),
    (
        "lbsgd",
        {"momentum": 0.9, "batch_scale": 2, "warmup_epochs": 1, "updates_per_epoch": 5},
        lbsgd,
        {"momentum": 0.9, "scale": 2, "last": 5, "warmth": lambda part: part},
    ),
    (
        "lbsgd",
        {"batch_scale": 3, "warmup_strategy": "power2", "begin_epoch": 1},
        lbsgd,
        {"scale": 3, "first": 32, "warmth": lambda part: part**2},
    ),
    (
        "lbsgd",
        {"batch_scale": 2, "warmup_strategy": "sqrt"},
        lbsgd,
        {"scale": 2, "warmth": math.sqrt},
    ),
    ("lbsgd", {"batch_scale": 2, "warmup_strategy": "lars"}, lbsgd, {"scale": 2, "momentum": 0.0}),
    ("test", {}, test, {}),
]


def arrays(seed=0, count=6, shape=(3, 4)):
    generator = np.random.default_rng(seed)
    return generator.normal(size=shape), list(generator.normal(size=(count, *shape)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wd", [0.0, DECAY])
@pytest.mark.parametrize("clip", [None, CLIP])
@pytest.mark.parametrize(("name", "options", "formula", "own"), CASES)
def test_steps_are_those_of_the_formula(name, options, formula, own, wd, clip):
    weight, grads = arrays()
    reference = Reference(formula, wd, clip, **own)
    made = (
        optimizer.create(
            name, learning_rate=RATE, wd=wd, rescale_grad=SCALE, clip_gradient=clip, **options
        )
        if name != "test"
        else optimizer.create(name, rescale_grad=SCALE)
    )
    updater = optimizer.get_updater(made)
    array = array_of(weight, np.float32)
    expected = array.asnumpy().astype(np.float64)
    for grad in grads:
        updater(0, array_of(grad, np.float32), array)
        expected = reference(expected, grad, RATE)
        np.testing.assert_allclose(array.asnumpy(), expected, rtol=2e-5, atol=2e-6)
    assert array.dtype is np.float32


@pytest.mark.parametrize("name", ["sgd", "nag"])
def test_velocity_is_mxnets(name):
    weight, grads = arrays(1, 2)
    made = optimizer.create(name, learning_rate=RATE, momentum=0.9, rescale_grad=SCALE)
    array = array_of(weight, np.float32)
    state = made.create_state(0, array)
    for grad in grads:
        made.update(0, array, array_of(grad, np.float32), state)
    velocity = 0.9 * (-RATE * SCALE * grads[0]) - RATE * SCALE * grads[1]
    np.testing.assert_allclose(state.asnumpy(), velocity, rtol=1e-5)


def test_adamax_leaves_what_saw_no_gradient():
    array = array_of(np.ones(2), np.float32)
    optimizer.get_updater(optimizer.Adamax())(0, array_of(np.zeros(2), np.float32), array)
    assert array.asnumpy().tolist() == [1.0, 1.0]


# Rates, decays, counts -------------------------------------------------------------------------


def test_decay_is_for_weights_and_gammas():
    names = dict(enumerate(["fc_weight", "fc_bias", "bn_gamma", "bn_beta", "other"]))
    made = optimizer.SGD(wd=0.5, param_idx2name=names)
    assert made._get_wds(list(names)) == [0.5, 0.0, 0.5, 0.0, 0.0]
    made.set_wd_mult({"fc_bias": 2.0})
    assert made._get_wds(list(names)) == [0.5, 1.0, 0.5, 0.0, 0.0]


def test_factors_of_rates_by_name_and_index():
    made = optimizer.SGD(learning_rate=0.5, param_idx2name={0: "a_weight", 1: "b_weight"})
    made.set_lr_mult({"a_weight": 2.0})
    assert made._get_lrs([0, 1, 7]) == [1.0, 0.5, 0.5]
    made.set_lr_mult({1: 0.0})
    assert made._get_lrs([0, 1]) == [0.5, 0.0]


def test_variables_say_their_own_factors():
    class Net:
        def attr_dict(self):
            return {"a_weight": {"__lr_mult__": "3", "__wd_mult__": "0.5"}}

        def list_arguments(self):
            return ["data", "a_weight"]

    made = optimizer.SGD(learning_rate=1.0, wd=1.0, param_idx2name={0: "a_weight"}, sym=Net())
    assert (made._get_lr(0), made._get_wd(0)) == (3.0, 0.5)


def test_scheduler_says_the_rate_of_each_update():
    made = optimizer.SGD(lr_scheduler=lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0))
    updater, array = optimizer.get_updater(made), array_of(np.zeros(1), np.float32)
    for expected in (-1.0, -1.5, -1.75):
        updater(0, array_of(np.ones(1), np.float32), array)
        assert array.asnumpy().tolist() == [expected]
    assert made.num_update == 3
    assert made.learning_rate == 0.25
    with pytest.raises(UserWarning, match="lr_scheduler") as raised:
        made.set_learning_rate(1.0)
    assert isinstance(raised.value, MXNetError)


@pytest.mark.parametrize("name", ["sgd", "nag", "adam", "adagrad"])
@pytest.mark.parametrize("stype", ["csr", "default", "row_sparse"])
def test_parameters_of_csr_arrays_are_updated(name, stype):
    """All entries, as in MXNet, where only dense operators update such a parameter."""
    forget_warnings()
    numbers = np.array([[0, 1, 0], [2.0, 0, -3]], np.float32)
    slopes = np.array([[0, 0, 0], [0.5, 0, -1]], np.float32)
    dense = [array_of(one, np.float32) for one in (numbers, slopes)]
    stored = [dense[0].tostype("csr"), dense[1].tostype(stype)]
    updates = [
        optimizer.get_updater(optimizer.create(name, learning_rate=0.1, wd=0.2)) for _ in "12"
    ]
    for told in (pytest.warns(StorageFallbackWarning, match="update"), nullcontext()):
        updates[0](0, dense[1], dense[0])
        with told:
            updates[1](0, stored[1], stored[0])
    assert stored[0].stype == "csr"
    np.testing.assert_allclose(stored[0].asnumpy(), dense[0].asnumpy(), rtol=1e-6)


def test_learning_rate_takes_the_place_of_the_schedulers():
    schedule = lr_scheduler.PolyScheduler(10, base_lr=0.5)
    made = optimizer.Adam(learning_rate=0.25, lr_scheduler=schedule)
    assert schedule.base_lr == 0.25
    assert made.begin_num_update == 0


def test_a_new_rate_compiles_nothing():
    made = optimizer.SGD(learning_rate=1.0)
    updater, array = optimizer.get_updater(made), array_of(np.zeros(1), np.float32)
    for rate in (1.0, 0.5):
        made.lr = made.rescale_grad = rate
        updater(0, array_of(np.ones(1), np.float32), array)
    assert array.asnumpy().tolist() == [-1.25]
    assert len(made._known) == 1
    assert next(iter(made._known.values()))._cache_size() == 1


def test_settings_may_change():
    made = optimizer.SGD(learning_rate=1.0, wd=0.0)
    updater, array = optimizer.get_updater(made), array_of(np.ones(1), np.float32)
    made.wd = 0.5
    updater(0, array_of(np.zeros(1), np.float32), array)
    assert array.asnumpy().tolist() == [0.5]


# Several parameters, half precision ------------------------------------------------------------


def test_several_parameters_at_once():
    weights, grads = [np.ones(2), np.ones(3)], [np.ones(2), 2 * np.ones(3)]
    held = [array_of(one, np.float32) for one in weights]
    given = [array_of(one, np.float32) for one in grads]
    updater = optimizer.get_updater(optimizer.Nadam(learning_rate=0.1))
    single = optimizer.get_updater(optimizer.Nadam(learning_rate=0.1))
    alone = [array_of(one, np.float32) for one in weights]
    for _ in range(3):
        updater([0, 1], given, held)
        for i in range(2):
            single(i, given[i], alone[i])
    for one, other in zip(held, alone, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6)


MOVING = ("sgd", "nag", "lars", "lbsgd", "dcasgd")


@pytest.mark.parametrize("name", [*MOVING, "adam", "lamb", "ftml"])
def test_half_precision_beside_single(name):
    options = {"momentum": 0.9} if name in MOVING else {}
    made = optimizer.create(name, learning_rate=1e-4, multi_precision=True, **options)
    wide = optimizer.create(name, learning_rate=1e-4, **options)
    half, single = array_of(np.ones(3), np.float16), array_of(np.ones(3), np.float32)
    updater, other = optimizer.get_updater(made), optimizer.get_updater(wide)
    for _ in range(20):
        updater(0, array_of(np.ones(3), np.float16), half)
        other(0, array_of(np.ones(3), np.float32), single)
    master = updater.states[0][1 if name in ("sgd", "nag", "lars") else 0]
    assert half.dtype is np.float16
    assert master.dtype is np.float32
    np.testing.assert_allclose(master.asnumpy(), single.asnumpy(), rtol=1e-6)
    assert half.asnumpy().tolist() == single.asnumpy().astype(np.float16).tolist()


# Optimizers of users ---------------------------------------------------------------------------


@optimizer.register
class Halving(optimizer.Optimizer):
    def create_state(self, index, weight):
        return array_of(jnp.zeros(weight.shape))

    def update(self, index, weight, grad, state):
        self._update_count(index)
        state.hold(state.value + 1)
        weight.hold(weight.value - self._get_lr(index) * grad.value / 2)


def test_optimizers_of_users():
    updater = optimizer.get_updater(optimizer.create("halving", learning_rate=1.0))
    array = array_of(np.zeros(1), np.float32)
    updater([3], [array_of(np.ones(1), np.float32)], [array])
    assert array.asnumpy().tolist() == [-0.5]
    assert updater.states[3].asnumpy().tolist() == [1.0]
    assert updater.optimizer.num_update == 1


def test_a_subclass_may_say_another_update():
    class Still(optimizer.SGD):
        def update(self, index, weight, grad, state):
            self._update_count(index)

    array = array_of(np.ones(1), np.float32)
    optimizer.get_updater(Still())(0, array_of(np.ones(1), np.float32), array)
    assert array.asnumpy().tolist() == [1.0]


def test_unknown_optimizer():
    assert type(optimizer.Optimizer.create_optimizer("SGD")) is optimizer.SGD
    with pytest.raises(MXNetError, match="sgd"):
        optimizer.create("sdg")


# States ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sgd", "adam", "rmsprop", "ftml", "dcasgd", "lars"])
def test_states_go_on_where_they_were(name):
    weight, grads = arrays(2)
    options = {"momentum": 0.9} if name in MOVING else {}
    updaters = [optimizer.get_updater(optimizer.create(name, **options)) for _ in range(2)]
    held = [array_of(weight, np.float32) for _ in range(2)]
    for grad in grads[:3]:
        updaters[0](0, array_of(grad, np.float32), held[0])
    updaters[1].set_states(updaters[0].get_states(dump_optimizer=True))
    held[1].hold(held[0].value)
    for grad in grads[3:]:
        for updater, array in zip(updaters, held, strict=True):
            updater(0, array_of(grad, np.float32), array)
    assert held[0].asnumpy().tolist() == held[1].asnumpy().tolist()
    assert updaters[1].optimizer.num_update == len(grads)


def test_nothing_in_states_is_executed():
    updater = optimizer.get_updater(optimizer.Adam())
    empty = updater.get_states()
    updater(0, array_of(np.ones(1), np.float32), array_of(np.ones(1), np.float32))
    whole, before = updater.get_states(), updater.states
    strange = [empty.replace(b"\x90", b"\x91\x92\x00" + b"\x91" * n + b"\xc0") for n in (40, 5000)]
    strange += [whole.replace(b"\xa7float32", b"\xa7" + one) for one in (b"9999999", b"objects")]
    strange += [whole.replace(b"\xa5shape\x91\x01", b"\xa5shape\x91\xff")]  # -1
    assert whole not in strange
    for damaged in (b"", b"\x80", pickle.dumps({0: 1}), whole[:-1], *strange):
        with pytest.raises(MXNetFormatError):
            updater.set_states(damaged)
    assert updater.states is before


def test_states_in_a_file_are_read_up_to_a_limit(monkeypatch):
    updater = optimizer.get_updater(optimizer.Adam())
    monkeypatch.setattr(updater_module, "LIMIT", 1000)
    with pytest.raises(MXNetFormatError, match="at most 1000 bytes"):
        updater.load_states("/dev/zero")


def test_an_optimizer_can_be_pickled():
    made = optimizer.Adam(learning_rate=0.5)
    array = array_of(np.ones(1), np.float32)
    optimizer.get_updater(made)(0, array_of(np.ones(1), np.float32), array)
    again = pickle.loads(pickle.dumps(made))
    assert (again.lr, again.num_update) == (0.5, 1)
    optimizer.get_updater(again)(0, array_of(np.ones(1), np.float32), array)


def test_store_updates_what_it_holds():
    store, out = create_store("local"), array_of(np.zeros(2), np.float32)
    store.init("w", array_of(np.ones(2), np.float32))
    store.set_optimizer(optimizer.SGD(learning_rate=0.5))
    store.push("w", [array_of(np.ones(2), np.float32)] * 2)
    store.pull("w", out)
    assert out.asnumpy().tolist() == [0.0, 0.0]
    with pytest.raises(MXNetError, match="new"):
        store.init("w", out)
    with pytest.raises(MXNetError, match="several machines"):
        create_store("dist_sync")
