"""Reports of ``so.explain``: programs and trainers, XLA's analysis by name, and profiles."""

import gzip
import json

import drawn_models as models
import jax
import numpy as np
import optax
import pytest

import symop as so
from symop import train
from symop.lowering.labels import label_in
from symop.symbol.compiled import instructions_of, module_of, moved_by_label, size_of

TEXT = """HloModule jit_f, entry_computation_layout={(f32[8,4]{1,0})->f32[8,4]{1,0}}

%inside (p: f32[8,4]) -> f32[8,4] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %sine.9 = f32[8,4]{1,0} sine(%p), metadata={op_name="jit(f)/sin[m.py:3]/sin"}
}

%step (state: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %state = (s32[], f32[8,4]{1,0}) parameter(0)
  %value = f32[8,4]{1,0} get-tuple-element(%state), index=1
  %dot.2 = f32[8,4]{1,0} dot(%value, %value), metadata={op_name="jit(f)/while/body/matmul[m.py:7;a/b]"}
  %dot.3 = f32[8,4]{1,0} dot(%value, %value), metadata={op_name="jit(f)/while/matmul[m.py:7;ab]/x"}
  ROOT %next = (s32[], f32[8,4]{1,0}) tuple(%value, %dot.3)
}

%test (state.1: (s32[], f32[8,4])) -> pred[] {
  %state.1 = (s32[], f32[8,4]{1,0}) parameter(0)
  ROOT %less = pred[] constant(true)
}

ENTRY %main.5 (x: f32[8,4]) -> f32[8,4] {
  %x = f32[8,4]{1,0} parameter(0)
  %fused = f32[8,4]{1,0} fusion(%x), kind=kLoop, calls=%inside, metadata={op_name="jit(f)/sin[m.py:3]/sin"}
  %zero = s32[] constant(0)
  %start = (s32[], /*index=1*/f32[8,4]{1,0}) tuple(%zero, %fused)
  %while.1 = (s32[], /*index=1*/f32[8,4]{1,0}) while(%start), condition=%test, body=%step, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %copy.4 = bf16[8,4]{1,0} copy(%fused)
}
"""  # noqa: E501  # XLA does not break lines


def test_sizes_are_those_of_xla():
    assert size_of("f32[8,4]{1,0}") == 128
    assert size_of("(s32[], bf16[3,5]{1,0:T(8,128)}, pred[7])") == 4 + 30 + 7
    assert size_of("f8e4m3fn[10]") == 10
    assert size_of("token[]") == 0


def test_instructions_are_counted_as_often_as_they_run():
    made = instructions_of(TEXT)
    assert set(made) == {"fused", "while.1", "dot.2", "dot.3", "copy.4"}
    assert made["fused"].moved == 256
    assert made["dot.3"].moved == 5 * 3 * 128
    assert made["copy.4"].moved == 64 + 128
    assert made["while.1"].contains
    assert moved_by_label(made) == {
        "sin[m.py:3]": 256,
        None: 5 * 3 * 128 + 192,
        "matmul[m.py:7;ab]": 5 * 3 * 128,
    }
    assert module_of(TEXT) == "jit_f"


def test_the_innermost_label_counts():
    assert (
        label_in("jit(f)/transpose(jvp(scan[a.py:1]))/while/sin[b.py:2;y]/cos") == "sin[b.py:2;y]"
    )
    assert label_in("jit(f)/add") is None


def test_operators_are_named_in_compiled_programs():
    x = so.var("x", (4, 8))
    for graph, label in (
        (so.softmax(x), "softmax[test_costs.py:"),
        (so.grad(so.sum(so.sin(x)), x), ";sin]"),
    ):
        lowered = jax.jit(graph.to_jax()).lower(np.ones((4, 8), "f4"))
        assert label in lowered.compile().as_text()


# Compiled ----------------------------------------------------------------------------------------


def product():
    return so.matmul(so.var("x", (64, 32)), so.var("w", (32, 16)))


def test_a_product_costs_what_xla_counts():
    report = so.explain(product(), compiled=True)
    made = report.compiled
    assert made.flops == 2 * 64 * 32 * 16
    assert made.arguments == 4 * (64 * 32 + 32 * 16)
    assert made.outputs == 4 * 64 * 16
    (row,) = report.operators
    assert row.moved == 4 * (64 * 32 + 32 * 16 + 64 * 16) == made.bytes
    assert "compiled: 1 instructions, 65.5 k flops" in str(report)


def test_all_that_moves_belongs_to_a_row_or_to_the_rest():
    report = so.explain(models.lstm(12), compiled=True)
    for rows in (report.operators, report.lines, report.scopes):
        known = sum(one.moved for one in rows)
        assert known == pytest.approx(sum(one.moved for one in report.operators), abs=20)
    assert report.rest[0] > 0


def test_without_compilation_nothing_is_said_of_it():
    report = so.explain(product())
    assert report.compiled is None
    assert report.operators[0].moved is None
    assert "compiled" not in str(report)


def test_scopes_are_those_of_the_drawing():
    report = so.explain(models.with_gradient(models.gpt(4)))
    names = {one.name: one for one in report.scopes}
    assert {"block × 4", "gradient of block × 4", "final_norm: layer_norm"} <= set(names)
    assert sum(one.calls for one in report.scopes) == sum(one.calls for one in report.operators)
    assert sum(one.flops for one in report.scopes) == report.flops
    assert names["block × 4"].calls == 4 * 25


# Steps -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trainer():
    x, y = so.var("x", (16, 32)), so.var("y", (16, 1))
    h = x
    for i in range(5):
        h = so.tanh(so.fully_connected(h, units=32, name=f"dense{i}"))
    loss = so.mean(so.square(so.fully_connected(h, units=1, name="last") - y))
    return train.Trainer(loss, optax.adam(1e-3), inputs=["x", "y"])


def batch():
    return {"x": np.ones((16, 32), "f4"), "y": np.ones((16, 1), "f4")}


def test_a_step_is_explained_with_its_gradient(trainer):
    report = so.explain(trainer, compiled=True)
    names = {one.name for one in report.scopes}
    assert {"dense × 5", "gradient of dense × 5", "last"} <= names
    # Each product of the forward pass has two in the gradient, but for the first layer.
    forward = 2 * 16 * 32 * 32 * 5 + 2 * 16 * 32
    products = [one for one in report.operators if one.name in ("matmul", "fully_connected")]
    assert sum(one.flops for one in products) == pytest.approx(
        3 * forward - 2 * 16 * 32 * 32, rel=0.1
    )
    assert report.rest[0] > 4 * 3 * 5 * 32 * 32  # Adam reads and writes two moments


def test_a_profile_tells_the_time_of_a_step(trainer, tmp_path):
    state = trainer.init(0)
    state, _ = trainer.step(state, batch())
    with jax.profiler.trace(str(tmp_path)):
        for _ in range(3):
            state, values = trainer.step(state, batch())
        jax.block_until_ready(values)
    report = so.explain(trainer, profile=tmp_path)
    assert 0 < report.seconds < 10
    for rows in (report.operators, report.lines, report.scopes):
        total = sum(one.seconds for one in rows) + report.rest[1]
        assert total == pytest.approx(report.seconds)
    layers = sum(one.seconds for one in report.scopes if "dense" in one.name)
    assert layers > 0.1 * report.seconds
    assert "measured: " in str(report)
    model = so.draw(report).model()
    assert model["color"] == "seconds"
    known = [one["cost"]["seconds"] for one in model["blocks"] if one.get("cost")]
    assert sum(one or 0.0 for one in known) == pytest.approx(report.seconds - report.rest[1])
    with pytest.raises(so.SymopError, match="a run of the function, jit_"):
        so.explain(product(), profile=tmp_path)


def test_profiles_that_are_none_are_refused(trainer, tmp_path):
    with pytest.raises(so.SymopError, match=r"must contain \*.trace.json.gz, got none"):
        so.explain(product(), profile=tmp_path)
    (tmp_path / "a.trace.json.gz").write_bytes(b"no")
    with pytest.raises(so.SymopError, match="must be a profile of JAX"):
        so.explain(product(), profile=tmp_path)
    (tmp_path / "a.trace.json.gz").write_bytes(
        gzip.compress(json.dumps({"traceEvents": []}).encode())
    )
    with pytest.raises(so.SymopError, match="must contain a run"):
        so.explain(product(), profile=tmp_path / "a.trace.json.gz")


def test_a_program_is_explained_as_it_runs():
    report = so.explain(models.program(), compiled=True)
    names = {one.name: one for one in report.scopes}
    assert {"hidden", "gradient of hidden", "updates"} <= set(names)
    assert names["updates"].moved > 0
    assert report.compiled.arguments >= 4 * (3 * (16 * 4 + 16 + 16 + 1) + 8 * 4 + 8)


def test_what_cannot_be_explained_is_refused():
    for value in (3, train.Trainer, lambda x: x):
        with pytest.raises(so.SymopError, match="explain: its argument must be"):
            so.explain(value)


def test_trainers_are_drawn(trainer):
    drawing = so.draw(trainer)
    assert drawing.subject.title == "training step"
    assert "gradient of dense0_weight" in drawing.subject.names
    model = drawing.model()
    paints = {name for name, _ in model["legend"]}
    assert {"forward", "gradient", "parameter", "argument"} <= paints


def test_reports_are_drawn_by_operations():
    report = so.explain(models.with_gradient(models.gpt(2)))
    model = so.draw(report).model()
    assert model["color"] == "flops"
    known = [one["cost"]["flops"] for one in model["blocks"] if one.get("cost")]
    assert sum(one or 0 for one in known) == report.flops
