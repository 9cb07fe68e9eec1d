"""Scripts for MXNet run here: the classic ones, and what their users do next."""

import importlib.util
import logging
from pathlib import Path

import numpy as np
import pytest

import symop.interop.mxnet as mx

EXAMPLES = Path(__file__).parents[1] / "examples" / "mxnet"


def script(name):
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(f"mxnet_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The classic scripts ---------------------------------------------------------------------------


def test_mlp(tmp_path, capsys):
    prefix = str(tmp_path / "mlp")
    figures = script("mlp").main(epochs=3, model_prefix=prefix)
    assert figures["accuracy"] > 0.85
    assert figures["top_k_accuracy_3"] > 0.97
    assert figures["accuracy by hand"] == pytest.approx(figures["accuracy"], abs=0.01)
    assert figures["change"] == 0
    written = {f"mlp-000{epoch}.params" for epoch in (1, 2, 3)} | {"mlp-symbol.json"}
    assert {path.name for path in tmp_path.iterdir()} == written
    further = script("mlp").main(epochs=6, model_prefix=prefix, load_epoch=3)
    assert further["accuracy"] > 0.93
    assert (tmp_path / "mlp-0006.params").exists()
    assert "validation: {'accuracy': 0.9" in capsys.readouterr().out


def test_scripts_are_deterministic(tmp_path):
    first, second = [
        script("mlp").main(epochs=1, model_prefix=str(tmp_path / name)) for name in "ab"
    ]
    assert first == second
    assert (tmp_path / "a-0001.params").read_bytes() == (tmp_path / "b-0001.params").read_bytes()


@pytest.mark.thorough
def test_lenet(caplog, capsys):
    with caplog.at_level(logging.INFO):
        figures = script("lenet").main(epochs=3, lr_step_epochs="1,2")
    assert figures["accuracy"] > 0.93
    assert figures["cross-entropy"] < 0.25
    assert caplog.text.count("Change learning rate to") == 2
    assert "Validation-top_k_accuracy_3" in caplog.text
    assert "Total params: 33388" in capsys.readouterr().out


@pytest.mark.parametrize("fused", [False, True])
def test_lstm_bucketing(fused):
    module = script("lstm_bucketing")
    module.BUCKETS = [8, 16] if fused else [7, 10]  # what is unrolled takes long to compile
    figures = module.main(
        epochs=2, sentences=1500, num_layers=1, num_hidden=24, lr=0.03, fused=fused
    )
    assert figures["words"] == 29
    assert figures["before"] == pytest.approx(29, rel=0.05)
    assert figures["after"] < 6.5


def test_matrix_factorization():
    figures = script("matrix_factorization").main(epochs=6)
    assert figures["of the noise"] < figures["rmse"] < 0.4 * figures["of the mean"]


def test_sparse_linear():
    figures = script("sparse_linear").main(epochs=4, examples=1500, columns=3000, entries=15)
    assert figures["before"] < 0.6
    assert figures["after"] > 0.7


@pytest.mark.thorough
def test_factorization_machine():
    figures = script("factorization_machine").main()
    assert figures["right"] > 0.9


@pytest.mark.usefixtures("temporary_operators")
def test_custom_loss():
    figures = script("custom_loss").main(epochs=15)
    assert figures["least squares"] > 2
    assert figures["layer of one's own"] < 0.2
    assert figures["MakeLoss"] < 0.2


def test_autograd_net():
    figures = script("autograd_net").main(epochs=15)
    for name in ("plain", "smooth"):
        assert figures[f"{name}: last loss"] < 0.8 * figures[f"{name}: first loss"]
        assert figures[f"{name}: accuracy"] > 0.8
    assert figures["smooth: slope"] < 0.6 * figures["plain: slope"]


# What their users do next ----------------------------------------------------------------------


CLASSES = 4
CENTERS = np.random.default_rng(7).normal(scale=2, size=(CLASSES, 6))


def blobs(count, seed=0, classes=CLASSES):
    draw = np.random.default_rng(seed)
    labels = draw.integers(classes, size=count)
    return CENTERS[labels] + draw.normal(size=(count, 6)), labels


def batches(count=256, seed=0, batch_size=32, classes=CLASSES, **others):
    return mx.io.NDArrayIter(*blobs(count, seed, classes), batch_size, **others)


def network(classes=CLASSES):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=16, name="fc1")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn"), act_type="relu", name="relu1")
    net = mx.sym.FullyConnected(net, num_hidden=classes, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def fitted(module, epochs=3, **others):
    mx.random.seed(0)
    settings = {"optimizer_params": {"learning_rate": 0.2, "momentum": 0.9}, "initializer": XAVIER}
    module.fit(batches(), num_epoch=epochs, **{**settings, **others})
    return module


def plain(params):
    return {name: one.asnumpy() for name, one in params.items()}


def accuracy(module, **others):
    return module.score(batches(seed=1, **others), "acc")[0][1]


XAVIER = mx.init.Xavier()


@pytest.fixture
def trained():
    return fitted(mx.mod.Module(network()))


def test_checkpoints_with_optimizer_states_go_on_as_if_nothing_had_been(tmp_path):
    prefix = str(tmp_path / "net")
    module = mx.mod.Module(network())
    keep = mx.callback.module_checkpoint(module, prefix, save_optimizer_states=True)
    fitted(module, 4, epoch_end_callback=keep)
    again = mx.mod.Module.load(prefix, 2, load_optimizer_states=True)
    fitted(again, 4, begin_epoch=2)
    for before, after in zip(module.get_params(), again.get_params(), strict=True):
        for name, value in plain(before).items():
            np.testing.assert_allclose(after[name].asnumpy(), value, rtol=1e-5, atol=1e-6)
    without = fitted(mx.mod.Module.load(prefix, 2), 4, begin_epoch=2)
    weights = [one.get_params()[0]["fc1_weight"].asnumpy() for one in (module, without)]
    assert np.abs(weights[0] - weights[1]).max() > 1e-3


def test_optimizer_states_are_saved_by_themselves(trained, tmp_path):
    trained.save_optimizer_states(str(tmp_path / "net.states"))
    trained.save_params(str(tmp_path / "net.params"))
    batch = next(batches())
    trained.forward_backward(batch)
    trained.update()
    other = mx.mod.Module(network())
    other.bind(batches().provide_data, batches().provide_label)
    other.load_params(str(tmp_path / "net.params"))
    other.init_optimizer(optimizer_params={"learning_rate": 0.2, "momentum": 0.9})
    other.load_optimizer_states(str(tmp_path / "net.states"))
    other.forward_backward(batch)
    other.update()
    expected = plain(trained.get_params()[0])
    for name, value in plain(other.get_params()[0]).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6)


def test_a_new_last_layer_is_fine_tuned(trained, tmp_path):
    trained.save_checkpoint(str(tmp_path / "net"), 1)
    sym, arg_params, aux_params = mx.model.load_checkpoint(str(tmp_path / "net"), 1)
    body = sym.get_internals()["relu1_output"]
    net = mx.symbol.FullyConnected(data=body, num_hidden=2, name="new_fc")
    net = mx.symbol.SoftmaxOutput(data=net, name="softmax")
    old = {name: one for name, one in arg_params.items() if "fc2" not in name}
    fixed = [name for name in old if name in net.list_arguments()]
    module = mx.mod.Module(net, fixed_param_names=fixed)
    mx.random.seed(1)
    module.fit(
        batches(classes=2),
        eval_data=batches(seed=1, classes=2),
        arg_params=old,
        aux_params=aux_params,
        allow_missing=True,
        initializer=XAVIER,
        optimizer_params={"learning_rate": 0.1},
        num_epoch=3,
    )
    assert accuracy(module, classes=2) > 0.9
    tuned = plain(module.get_params()[0])
    for name in fixed:
        np.testing.assert_array_equal(tuned[name], arg_params[name].asnumpy())
    assert np.abs(tuned["new_fc_bias"]).max() > 0


def test_features_are_extracted(trained):
    features = trained.symbol.get_internals()["relu1_output"]
    module = mx.mod.Module(features, label_names=None)
    module.bind(for_training=False, data_shapes=[("data", (1, 6))])
    module.set_params(*trained.get_params(), allow_extra=True)
    one = module.predict(batches(3, batch_size=1)).asnumpy()
    assert one.shape == (3, 16)
    assert (one >= 0).all()
    module.reshape([("data", (3, 6))])
    module.forward(mx.io.DataBatch([mx.nd.array(blobs(3)[0])]))
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), one, rtol=1e-5, atol=1e-6)
    both = mx.sym.Group([trained.symbol, features])
    module = mx.mod.Module(both)
    module.bind(batches().provide_data, batches().provide_label, for_training=False)
    module.set_params(*trained.get_params())
    found = module.predict(batches(50))
    assert [value.shape for value in found] == [(50, CLASSES), (50, 16)]


def test_parameters_may_miss(trained):
    module = mx.mod.Module(network())
    module.bind(batches().provide_data, batches().provide_label)
    some = {"fc1_weight": trained.get_params()[0]["fc1_weight"]}
    with pytest.raises(mx.MXNetError, match="must be among the parameters"):
        module.set_params(some, {})
    module.init_params(mx.init.One())
    module.set_params(some, {}, allow_missing=True)
    found = plain(module.get_params()[0])
    np.testing.assert_array_equal(found["fc1_weight"], some["fc1_weight"].asnumpy())
    assert (found["fc2_weight"] == 1).all()
    with pytest.raises(mx.MXNetError, match="superfluous"):
        module.set_params({**some, "superfluous": mx.nd.ones(1)}, {}, allow_missing=True)


def test_the_rest_of_a_batch_is_predicted_once(trained):
    whole = trained.predict(batches(64)).asnumpy()
    rest = trained.predict(batches(50))
    assert rest.shape == (50, CLASSES)
    np.testing.assert_allclose(rest.asnumpy(), trained.predict(batches(50)).asnumpy())
    points, labels = blobs(50)
    assert (rest.asnumpy().argmax(1) == labels).mean() > 0.9
    parts = trained.predict(batches(50), merge_batches=False)
    assert [part[0].shape for part in parts] == [(32, CLASSES), (18, CLASSES)]
    sizes = [outputs[0].shape[0] for outputs, _, _ in trained.iter_predict(batches(50))]
    assert sizes == [32, 18]
    assert whole.shape == (64, CLASSES)
    again = trained.predict(mx.nd.array(points[:32])).asnumpy()
    np.testing.assert_allclose(again, rest.asnumpy()[:32], rtol=1e-5)


def test_several_metrics_one_of_them_ones_own():
    class Confidence(mx.metric.EvalMetric):
        def __init__(self):
            super().__init__("confidence")

        def update(self, labels, preds):
            self.sum_metric += preds[0].max(axis=1).sum().asscalar()
            self.num_inst += len(preds[0])

    def wrong(label, pred):
        return (pred.argmax(axis=1) != label).mean()

    metrics = mx.metric.create(["acc", "ce", Confidence(), wrong])
    module = fitted(mx.mod.Module(network()), eval_metric=metrics)
    found = dict(module.score(batches(seed=1), metrics))
    assert list(found) == ["accuracy", "cross-entropy", "confidence", "wrong"]
    assert found["accuracy"] + found["wrong"] == pytest.approx(1)
    assert found["accuracy"] > 0.9
    assert 0.5 < found["confidence"] < 1


def test_an_initializer_of_ones_own():
    @mx.init.register
    class Alternating(mx.init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = np.where(np.indices(arr.shape).sum(axis=0) % 2, 0.5, -0.5)

    module = mx.mod.Module(network())
    module.bind(batches().provide_data, batches().provide_label)
    module.init_params(mx.init.Mixed(["fc2_weight", ".*"], [mx.init.Zero(), Alternating()]))
    found = plain(module.get_params()[0])
    assert found["fc1_weight"][0].tolist() == [-0.5, 0.5] * 3
    assert not found["fc2_weight"].any()
    assert (found["bn_gamma"] == 1).all()
    module.init_params(initializer=mx.init.create("alternating"), force_init=True)
    assert np.abs(module.get_params()[0]["fc2_weight"].asnumpy()).min() == 0.5


def test_a_monitor_sees_outputs_weights_and_gradients():
    seen = []
    monitor = mx.mon.Monitor(2, lambda array: mx.nd.norm(array) / array.size**0.5, ".*fc1.*")
    monitor.toc_print = lambda: seen.append(monitor.toc())
    watched = fitted(mx.mod.Module(network()), 1, monitor=monitor)
    names = {name for found in seen for _, name, _ in found}
    assert {"fc1_output", "fc1_weight", "fc1_bias"} <= names
    assert not [name for name in names if "fc2" in name]
    assert [bool(found) for found in seen] == [True, False] * 4
    assert all(np.isfinite(float(text)) for found in seen for _, _, text in found)
    alone = fitted(mx.mod.Module(network()), 1)
    expected = plain(alone.get_params()[0])
    for name, value in plain(watched.get_params()[0]).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5)


def test_a_learning_rate_is_scheduled_and_gradients_are_clipped():
    rates = []
    schedule = mx.lr_scheduler.MultiFactorScheduler([8, 16], factor=0.1, base_lr=0.5)
    optimizer = mx.optimizer.SGD(
        learning_rate=0.5, lr_scheduler=schedule, clip_gradient=1e-4, rescale_grad=1 / 32
    )
    module = mx.mod.Module(network())
    module.bind(batches().provide_data, batches().provide_label)
    module.init_params(XAVIER)
    before = plain(module.get_params()[0])
    fitted(
        module,
        3,
        optimizer=optimizer,
        batch_end_callback=lambda param: rates.append(optimizer.learning_rate),
    )
    np.testing.assert_allclose(np.unique(rates), [0.005, 0.05, 0.5])
    after = plain(module.get_params()[0])
    bound = 1e-4 * 8 * (0.5 + 0.05 + 0.005) + 1e-6
    for name in ("fc1_weight", "bn_beta", "fc2_weight", "fc2_bias"):
        assert 0 < np.abs(after[name] - before[name]).max() <= bound


def test_a_loop_of_ones_own_clips_the_norm_of_all_gradients():
    module, data = mx.mod.Module(network()), batches()
    module.bind(data_shapes=data.provide_data, label_shapes=data.provide_label)
    module.init_params(XAVIER)
    module.init_optimizer(optimizer="adam", optimizer_params=(("learning_rate", 0.01),))
    metric, reached = mx.metric.create("acc"), []
    for _ in range(8):
        data.reset()
        metric.reset()
        for batch in data:
            module.forward(batch, is_train=True)
            module.update_metric(metric, batch.label)
            module.backward()
            grads = [one for (one,) in module._exec_group.grad_arrays if one is not None]
            norm = mx.nd.add_n(*[mx.nd.sum(one**2) for one in grads]).asscalar() ** 0.5
            for one in grads:
                one[:] = one * min(1.0, 10.0 / norm)
            module.update()
        reached.append(metric.get()[1])
    assert reached[-1] > 0.9 > reached[0]


def test_inputs_are_changed_against_the_model():
    data = batches()
    module = mx.mod.Module(network())
    module.bind(data.provide_data, data.provide_label, inputs_need_grad=True)
    fitted(module)
    batch = next(data)
    metric = mx.metric.create("ce")
    losses = []
    for step in (0.0, 0.3):
        module.forward(batch, is_train=True)
        module.backward()
        (slope,) = module.get_input_grads()
        worse = mx.io.DataBatch([batch.data[0] + step * mx.nd.sign(slope)], batch.label)
        module.forward(worse, is_train=True)
        metric.reset()
        module.update_metric(metric, batch.label)
        losses.append(metric.get()[1])
    assert losses[1] > 1.5 * losses[0]


@pytest.mark.thorough
def test_two_modules_play_against_each_other():
    noise, real = mx.sym.Variable("noise"), mx.sym.Variable("data")
    made = mx.sym.FullyConnected(noise, num_hidden=2, name="made")
    judged = mx.sym.Activation(
        mx.sym.FullyConnected(real, num_hidden=16, name="j1"), act_type="tanh"
    )
    judged = mx.sym.FullyConnected(judged, num_hidden=1, name="j2")
    judged = mx.sym.LogisticRegressionOutput(judged, mx.sym.Variable("label"), name="judged")
    maker = mx.mod.Module(made, data_names=["noise"], label_names=None)
    maker.bind([("noise", (64, 2))])
    judge = mx.mod.Module(judged, label_names=["label"])
    judge.bind([("data", (64, 2))], [("label", (64, 1))], inputs_need_grad=True)
    mx.random.seed(2)
    for module in (maker, judge):
        module.init_params(mx.init.Normal(0.2))
        module.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.02})
    label, far = mx.nd.zeros((64, 1)), []
    for _ in range(200):
        fed = mx.io.DataBatch([mx.nd.random.normal(shape=(64, 2))], [])
        maker.forward(fed, is_train=True)
        outputs = maker.get_outputs()
        far.append(np.abs(outputs[0].asnumpy().mean(axis=0) - 3).max())
        label[:] = 0
        judge.forward(mx.io.DataBatch(outputs, [label]), is_train=True)
        judge.backward()
        kept = [[one.copyto(one.context) for one in each] for each in judge._exec_group.grad_arrays]
        label[:] = 1
        data = mx.nd.random.normal(loc=3.0, shape=(64, 2))
        judge.forward(mx.io.DataBatch([data], [label]), is_train=True)
        judge.backward()
        for each, before in zip(judge._exec_group.grad_arrays, kept, strict=True):
            for one, other in zip(each, before, strict=True):
                one[:] += other
        judge.update()
        judge.forward(mx.io.DataBatch(outputs, [label]), is_train=True)
        judge.backward()
        maker.backward(judge.get_input_grads())
        maker.update()
    assert far[0] > 2.5
    assert min(far[-50:]) < 1.0


def test_a_trained_module_is_bound_anew_to_serve(trained):
    points, _ = blobs(32)
    expected = trained.predict(mx.nd.array(points)).asnumpy()
    trained.bind([("data", (1, 6))], for_training=False, force_rebind=True)
    for count in (1, 5, 32):
        trained.forward(mx.io.DataBatch([mx.nd.array(points[:count])]))
        found = trained.get_outputs()[0].asnumpy()
        np.testing.assert_allclose(found, expected[:count], rtol=1e-4, atol=1e-6)


def test_gradients_add_up_over_batches():
    module = mx.mod.Module(network())
    module.bind(batches().provide_data, batches().provide_label, grad_req="add")
    module.init_params(XAVIER)
    batch = next(batches())
    module.forward_backward(batch)
    once = module._exec_group.execs[0].grad_dict["fc2_weight"].asnumpy()
    module.forward_backward(batch)
    twice = module._exec_group.execs[0].grad_dict["fc2_weight"].asnumpy()
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-4, atol=1e-5)


def test_multipliers_of_a_variable_hold_it_still():
    weight = mx.sym.Variable("still_weight", lr_mult=0.0, wd_mult=0.0)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), weight, num_hidden=8, name="fc1")
    with mx.AttrScope(lr_mult="0.5"):
        net = mx.sym.FullyConnected(net, num_hidden=CLASSES, name="fc2")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    module.bind(batches().provide_data, batches().provide_label)
    mx.random.seed(0)
    module.init_params(XAVIER)
    before = plain(module.get_params()[0])
    fitted(module, 1)
    after = plain(module.get_params()[0])
    np.testing.assert_array_equal(after["still_weight"], before["still_weight"])
    assert np.abs(after["fc2_weight"] - before["fc2_weight"]).max() > 1e-3


def test_two_inputs_and_two_losses():
    both = mx.sym.Concat(mx.sym.Variable("left"), mx.sym.Variable("right"), dim=1)
    kind = mx.sym.FullyConnected(both, num_hidden=CLASSES)
    kind = mx.sym.SoftmaxOutput(kind, mx.sym.Variable("kind"), name="kinds")
    size = mx.sym.FullyConnected(both, num_hidden=1)
    size = mx.sym.LinearRegressionOutput(size, mx.sym.Variable("size"), 0.1, name="sizes")
    points, labels = blobs(256)
    data = mx.io.NDArrayIter(
        {"left": points[:, :3], "right": points[:, 3:]},
        {"kind": labels, "size": points.sum(axis=1, keepdims=True)},
        batch_size=32,
    )
    metrics = mx.metric.CompositeEvalMetric()
    metrics.add(mx.metric.Accuracy(output_names=["kinds_output"], label_names=["kind"]))
    metrics.add(mx.metric.MSE(output_names=["sizes_output"], label_names=["size"]))
    heads = mx.sym.Group([kind, size])
    module = mx.mod.Module(heads, data_names=["left", "right"], label_names=["kind", "size"])
    assert module.output_names == ["kinds_output", "sizes_output"]
    module.fit(data, eval_metric=metrics, num_epoch=10, optimizer_params={"learning_rate": 0.1})
    found = dict(module.score(data, metrics))
    assert found["accuracy"] > 0.9
    assert found["mse"] < 0.5


def test_pictures_and_tables(capsys):
    mx.viz.print_summary(network(), shape={"data": (1, 6)}, line_length=80)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == "Total params: 212"
    assert [line.split("(")[0] for line in lines if "(" in line][1:] == [
        *("data", "fc1", "bn", "relu1", "fc2", "softmax")
    ]
    drawing = mx.viz.plot_network(network(), shape={"data": (1, 6)}, save_format="svg")
    source = drawing.source
    assert source.startswith("<svg")
    for text in ("fc1", "FullyConnected", "num_hidden=16", "act_type=relu", "softmax"):
        assert text in source
    assert "fc1_weight" not in source
    assert "fc1_weight" in mx.viz.plot_network(network(), hide_weights=False).source
