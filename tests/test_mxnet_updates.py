"""Update operators in symbols, whose states they write, and optimizers in modules."""

import numpy as np
import pytest

import symop.interop.mxnet as mx
from symop.interop.mxnet.operators import TABLE

SHAPE = (2, 3)
ATTRIBUTES = {
    "sgd_mom_update": {"lr": 0.1, "momentum": 0.9},
    "mp_sgd_update": {"lr": 0.1},
    "mp_sgd_mom_update": {"lr": 0.1, "momentum": 0.9},
    "nag_mom_update": {"lr": 0.1, "momentum": 0.9},
    "mp_nag_mom_update": {"lr": 0.1, "momentum": 0.9},
    "signum_update": {"lr": 0.1, "momentum": 0.9},
    "adam_update": {"lr": 0.1},
    "rmsprop_update": {"lr": 0.1},
    "rmspropalex_update": {"lr": 0.1},
    "ftrl_update": {"lr": 0.1},
    "ftml_update": {"lr": 0.1, "t": 2},
    "_sparse_adagrad_update": {"lr": 0.1},
    "_contrib_group_adagrad_update": {"lr": 0.1},
    "_adamw_update": {"lr": 0.1, "eta": 0.5},
    "_mp_adamw_update": {"lr": 0.1, "eta": 0.5},
    "lamb_update_phase1": {"t": 2, "wd": 0.1},
    "mp_lamb_update_phase1": {"t": 2, "wd": 0.1},
    "mp_lamb_update_phase2": {"lr": 0.1},
    "multi_sgd_mom_update": {"lrs": (0.1,), "wds": (0.0,), "momentum": 0.9},
    "multi_mp_sgd_update": {"lrs": (0.1,), "wds": (0.0,)},
    "multi_mp_sgd_mom_update": {"lrs": (0.1,), "wds": (0.0,), "momentum": 0.9},
    "preloaded_multi_sgd_mom_update": {"momentum": 0.9},
    "preloaded_multi_mp_sgd_update": {},
    "preloaded_multi_mp_sgd_mom_update": {"momentum": 0.9},
    "_multi_adamw_update": {"lrs": (0.1,), "wds": (0.0,), "etas": (1.0,)},
    "_multi_mp_adamw_update": {"lrs": (0.1,), "wds": (0.0,), "etas": (1.0,)},
    "_multi_lamb_update": {"learning_rates": (0.1,), "wds": (0.0,), "step_count": (1,)},
    "_multi_mp_lamb_update": {"learning_rates": (0.1,), "wds": (0.0,), "step_count": (1,)},
}
ONES = ("lrs", "wds", "rescale_grad", "r1", "r2")


def test_every_operator_with_states_is_here():
    updates = [name for name in TABLE if "update" in name and not name.startswith("_slice")]
    plain = {"sgd_update", "signsgd_update", "multi_sgd_update", "preloaded_multi_sgd_update"}
    assert set(updates) - plain - {"lamb_update_phase2"} == set(ATTRIBUTES)


def arrays_for(name):
    """Positive arrays for the inputs of an operator, by name, and which of them are states."""
    operator = TABLE[name]
    given = {key: str(one) for key, one in ATTRIBUTES[name].items()}
    names = operator.present(operator.read(given, 0))
    draw, found = np.random.default_rng(3), {}
    for one in names:
        shape = (1,) if one in ONES else (2, 1) if one == "history" and "group" in name else SHAPE
        bounds = (0.1, 0.5) if one == "g" else (0.5, 1)  # a mean, whose square is below that of n
        found[one] = draw.uniform(*bounds, shape).astype(np.float32)
    return found, [one for one in names if one in operator.states]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_train", [False, True])
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_states_are_written_in_symbols_as_on_arrays(name, is_train):
    arrays, states = arrays_for(name)
    eager = {key: mx.nd.array(one) for key, one in arrays.items()}
    symbol = getattr(mx.sym, name)(*map(mx.sym.var, arrays), **ATTRIBUTES[name])
    assert symbol.list_auxiliary_states() == states
    held = {key: mx.nd.array(one) for key, one in arrays.items()}
    executor = symbol.bind(
        mx.cpu(),
        {key: one for key, one in held.items() if key not in states},
        aux_states={key: held[key] for key in states},
    )
    for _ in range(2):
        expected = getattr(mx.nd, name)(*eager.values(), **ATTRIBUTES[name])
        found = executor.forward(is_train=is_train)[0]
        np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=2e-5)
    for key in arrays:
        np.testing.assert_allclose(held[key].asnumpy(), eager[key].asnumpy(), rtol=2e-5)
    for key in states:
        assert held[key] is executor.aux_dict[key]
        assert not np.allclose(held[key].asnumpy(), arrays[key])


def test_momentum_in_a_symbol_is_that_of_the_definition():
    weight, grad, mom = map(mx.sym.var, ("weight", "grad", "mom"))
    moved = mx.sym.sgd_mom_update(weight, grad, mom, lr=0.1, momentum=0.5)
    executor = moved.simple_bind(mx.cpu(), weight=(1,))
    executor.arg_dict["grad"][:] = 1.0
    found = []
    for _ in range(3):
        step = executor.forward()[0]
        found.append((step.asscalar(), executor.aux_dict["mom"].asscalar()))
    np.testing.assert_allclose(found, [(-0.1, -0.1), (-0.15, -0.15), (-0.175, -0.175)], rtol=1e-6)
    assert executor.arg_dict["weight"].asscalar() == 0.0


def test_states_of_all_weights_are_written_whichever_output_is_asked_for():
    names = [f"x{i}" for i in range(6)]
    how = {"lrs": (0.1, 0.2), "wds": (0.0, 0.0), "momentum": 0.9, "num_weights": 2}
    moved = mx.sym.multi_sgd_mom_update(*map(mx.sym.var, names), **how)
    for one in (moved, moved[0], moved[1]):
        executor = one.simple_bind(mx.cpu(), x0=(2,), x3=(3,))
        executor.arg_dict["x1"][:] = executor.arg_dict["x4"][:] = 1.0
        executor.forward()
        held = {key: one.asnumpy().tolist() for key, one in executor.aux_dict.items()}
        np.testing.assert_allclose(held["x2"], [-0.1] * 2, rtol=1e-6)
        np.testing.assert_allclose(held["x5"], [-0.2] * 3, rtol=1e-6)


def test_a_state_that_is_computed_is_kept_nowhere():
    weight, grad, mom = map(mx.sym.var, ("weight", "grad", "mom"))
    moved = mx.sym.sgd_mom_update(weight, grad, mom * 1.0, lr=0.1, momentum=0.5)
    assert moved.list_auxiliary_states() == []
    executor = moved.simple_bind(mx.cpu(), weight=(1,), grad=(1,), mom=(1,))
    executor.arg_dict["mom"][:] = 1.0
    assert executor.forward()[0].asscalar() == 0.5
    assert executor.arg_dict["mom"].asscalar() == 1.0


def test_a_training_step_of_a_function_gives_the_states():
    weight, grad, mom = map(mx.sym.var, ("weight", "grad", "mom"))
    moved = mx.sym.sgd_mom_update(weight, grad, mom, lr=0.1, momentum=0.5)
    one = np.ones(1, np.float32)
    _, states = moved.to_jax(is_train=True)(weight=one, grad=one, mom=one)
    np.testing.assert_allclose(states["mom"], [0.4], rtol=1e-6)


def test_lists_must_be_as_long_as_there_are_weights():
    one = mx.nd.ones((1,))
    for how in ({"lrs": (0.1,), "wds": (0, 0)}, {"lrs": (0.1, 0.1), "wds": ()}):
        with pytest.raises(mx.MXNetError, match="one for each weight"):
            mx.nd.multi_sgd_update(one, one, one, one, num_weights=2, **how)
    with pytest.raises(mx.MXNetError, match="one for each weight"):
        mx.nd.preloaded_multi_sgd_update(one, one, mx.nd.ones((2,)), one, num_weights=1)


# The functions of mx.nd.contrib ---------------------------------------------------------------


def test_updates_of_contrib_take_a_number_for_the_scale():
    arrays = [mx.nd.ones((2,)) for _ in range(4)]
    found = mx.nd.contrib.adamw_update(*arrays, rescale_grad=0.5, lr=0.1, eta=1.0, out=arrays[0])
    mean, var = 0.9 + 0.1 * 0.5, 0.999 + 0.001 * 0.25
    np.testing.assert_allclose(arrays[2].asnumpy(), [mean] * 2, rtol=1e-6)
    np.testing.assert_allclose(found.asnumpy(), [1 - 0.1 * mean / np.sqrt(var)] * 2, rtol=1e-6)


@pytest.mark.parametrize("is_mixed", [False, True])
def test_several_updates_of_contrib(is_mixed):
    shapes = ((2,), (3, 1))
    draw = np.random.default_rng(0)
    lists = [[mx.nd.array(draw.uniform(0.5, 1, s)) for s in shapes] for _ in range(4)]
    copies = [one.copy() for one in lists[0]]
    more = [copies] if is_mixed else []
    prefix = "multi_mp_" if is_mixed else "multi_"
    single = [[one.copy() for one in part] for part in lists]
    how = {"lrs": [0.1, 0.2], "wds": [0.0, 0.1]}
    function = getattr(mx.nd.contrib, f"{prefix}adamw_update")
    function(*lists, *more, mx.nd.array([0.5]), etas=[1.0, 0.5], out=lists[0], **how)
    for i in range(2):
        own = {"lr": how["lrs"][i], "wd": how["wds"][i], "eta": [1.0, 0.5][i]}
        given = [part[i] for part in single]
        mx.nd.contrib.adamw_update(*given, rescale_grad=0.5, out=given[0], **own)
        for k in range(4):
            np.testing.assert_allclose(lists[k][i].asnumpy(), single[k][i].asnumpy(), rtol=1e-6)
    function = getattr(mx.nd.contrib, f"{prefix}lamb_update")
    before = [one.asnumpy() for one in lists[0]]
    function(*lists, *more, step_count=[1, 2], out=lists[0], **how)
    assert all((a != b.asnumpy()).all() for a, b in zip(before, lists[0], strict=True))


def test_arrays_are_reset():
    arrays = [mx.nd.ones((2,)), mx.nd.ones((1, 3))]
    mx.nd.reset_arrays(*arrays, num_arrays=2)
    assert [one.asnumpy().sum() for one in arrays] == [0.0, 0.0]


# In modules -------------------------------------------------------------------------------


def module_and_batch(name, options):
    """A module with an optimizer, and a batch."""
    data = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(data, name="softmax"))
    module.bind([("data", (4, 5))], [("softmax_label", (4,))])
    mx.random.seed(0)
    np.random.seed(0)
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer=name, optimizer_params=options)
    draw = np.random.default_rng(0)
    label = mx.nd.array([0, 1, 2, 0])
    return module, mx.io.DataBatch([mx.nd.array(draw.normal(size=(4, 5)))], [label])


CASES = [
    ("dcasgd", {"momentum": 0.5}),
    ("dcasgd", {}),
    ("lars", {"momentum": 0.5, "eta": 0.1}),
    ("lbsgd", {"momentum": 0.5, "batch_scale": 2}),
    ("sgld", {}),
    ("ftml", {}),
    ("lamb", {}),
    ("signum", {"wd_lh": 0.1}),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_module_updates_as_an_updater_does(name, options):
    options = {"learning_rate": 0.1, "wd": 0.01, **options}
    module, batch = module_and_batch(name, options)
    other, _ = module_and_batch(name, options)
    index = other._updater.optimizer.idx2name
    mx.random.seed(7)
    for _ in range(3):
        module.forward_backward(batch)
        module.update()
    mx.random.seed(7)
    for _ in range(3):
        other.forward(batch, is_train=True)
        other.backward()
        held = other._executor
        for i, one in index.items():
            other._updater(i, held.grad_dict[one], held.arg_dict[one])
    for key, one in module.get_params()[0].items():
        np.testing.assert_allclose(
            one.asnumpy(), held.arg_dict[key].asnumpy(), rtol=1e-5, atol=1e-6
        )
