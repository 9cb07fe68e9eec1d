"""The command line: what it prints, where, and its exit status."""

import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Annotated

import jax
import numpy as np
import pytest

import registry
import symop as so
import symop.interop.mxnet as mx
from registry.operator.attributes import Comment
from symop import cli


@pytest.fixture
def saved(tmp_path):
    """A file with a saved graph."""
    x = so.var("x", shape=(2, 3))
    path = tmp_path / "graph.json"
    so.softmax(so.fully_connected(x, units=4, name="fc")).save(path)
    return path


def test_show_prints_the_program(saved, capsys):
    assert cli.main(["show", str(saved)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{so.load(saved)}\n"
    assert printed.err == ""


def test_draw_writes_a_picture(saved, tmp_path, capsys):
    target = tmp_path / "graph.svg"
    assert cli.main(["draw", str(saved), "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"wrote {target}\n"
    assert without_lines(target.read_text()) == without_lines(so.load(saved).to_svg())


def without_lines(svg):
    """A picture without its tooltips, which tell at which line each operator was made."""
    return re.sub(r"<title>.*?</title>", "", svg, flags=re.DOTALL)


def test_draw_needs_to_know_where(saved, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["draw", str(saved)])
    assert stopped.value.code == 2
    assert "-o" in capsys.readouterr().err


def test_ops_lists_every_operator(capsys):
    assert cli.main(["ops"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == registry.names()
    assert all(len(line.split()) > 1 for line in lines)


@pytest.mark.usefixtures("temporary_operators")
def test_ops_lists_an_operator_without_a_docstring(capsys):
    registry.op(name="silent")(lambda x: x)
    assert cli.main(["ops"]) == 0
    assert "silent" in capsys.readouterr().out.splitlines()
    assert cli.main(["ops", "silent"]) == 0


def test_ops_explains_one(capsys):
    assert cli.main(["ops", "softmax"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("softmax(x, *, axis=-1, temperature=1.0)\n\n")
    assert "sum to one" in printed
    assert "\n\nExample:\n    >>> " in printed
    assert printed.endswith("\n\nderivative: a gradient maker composes it\n")


def test_ops_says_why_there_is_no_derivative(capsys):
    assert cli.main(["ops", "argmax"]) == 0
    end = "derivative: undefined by definition (its result is an integer)\n"
    assert capsys.readouterr().out.endswith(end)


@pytest.mark.usefixtures("temporary_operators")
def test_ops_shows_comments(capsys):
    @registry.op(name="commented")
    def kernel(
        x: Annotated[registry.Array, Comment("What is scaled.")],
        *others: registry.Array,
        factor: Annotated[float, Comment("By how much.")] = 2.0,
        mode: str,
    ) -> registry.Array:
        """``factor * x``."""
        return factor * x

    assert cli.main(["ops", "commented"]) == 0
    page = """
inputs:
  x                    What is scaled.
  others...
attributes:
  factor: float = 2.0  By how much.
  mode: str
outputs:
  out

derivative: """
    assert page in capsys.readouterr().out


def test_ops_knows_aliases(capsys):
    assert cli.main(["ops", "elemwise_add"]) == 0
    assert capsys.readouterr().out.startswith("add(x, y)\n")


# Every form of a graph ----------------------------------------------------------------------------


@pytest.fixture
def trained(tmp_path):
    """A program with parameters, gradients and updates, and its file."""
    with so.program_guard(so.Program()) as program:
        x, w = so.data("x", (4, 3)), so.parameter("w", (3,), initial=1.0)
        loss = so.mean(so.square(so.matmul(x, w)))
    so.optim.SGD(0.1).minimize(loss)
    program.outputs = [loss]
    program.save(tmp_path / "program.json")
    return program, tmp_path / "program.json"


def typed(monkeypatch, data):
    """Makes ``data`` the standard input."""
    data = data if isinstance(data, bytes) else data.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_show_prints_a_program(trained, capsys):
    program, path = trained
    assert cli.main(["show", str(path)]) == 0
    assert capsys.readouterr().out == f"{program}\n"


@pytest.mark.parametrize("form", ["symbol", "symbol as text", "program", "program as text"])
def test_show_reads_every_form_from_standard_input(saved, trained, monkeypatch, capsys, form):
    graph = so.load(saved) if form.startswith("symbol") else trained[0]
    typed(monkeypatch, str(graph) if form.endswith("text") else graph.tojson())
    assert cli.main(["show", "-"]) == 0
    assert capsys.readouterr().out == f"{graph}\n"


def test_a_text_declares_also_what_no_output_needs(monkeypatch, capsys):
    slope = so.grad(so.sum(so.sin(so.var("x", shape=()) + so.var("y", shape=()))), "x")
    constant = so.grad(so.sum(so.var("x", shape=()) * 2.0), "x")
    for graph in (slope, constant):
        typed(monkeypatch, str(graph))
        assert cli.main(["grad", "-", "--wrt", "x", "--unreachable", "zero"]) == 0
        assert "x" in so.load_json(capsys.readouterr().out).list_arguments()


def test_draw_draws_a_program(trained, tmp_path, capsys):
    _, path = trained
    assert cli.main(["draw", str(path), "-o", "-"]) == 0
    printed = capsys.readouterr().out
    assert without_lines(printed) == without_lines(so.Program.load(path).to_svg())
    assert "square" in printed


# What is computed from a graph -------------------------------------------------------------------


def test_cost_is_the_report_of_explain(saved, capsys):
    assert cli.main(["cost", str(saved)]) == 0
    assert capsys.readouterr().out == f"{so.explain(so.load(saved))}\n"


def test_cost_as_json(tmp_path, capsys):
    so.matmul(so.var("x"), so.var("w")).save(tmp_path / "graph.json")
    shapes = ["--shape", "x=8,3", "--shape", "w=3,5:float16"]
    assert cli.main(["cost", str(tmp_path / "graph.json"), "--json", *shapes]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in report["operators"]] == ["matmul"]
    assert report["operators"][0]["bytes"] == 8 * 5 * 4
    assert report["operators"][0]["flops"] >= 2 * 8 * 5 * 2


def test_cost_of_a_program_counts_its_updates(trained, capsys):
    assert cli.main(["cost", str(trained[1]), "--json"]) == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)["operators"]]
    assert {"matmul", "square", "sgd"} <= set(names)


def test_grad_writes_the_gradient(tmp_path, capsys):
    x, y = so.var("x", shape=(3,)), so.var("y", shape=(3,))
    so.sum(so.sin(x) * y).save(tmp_path / "loss.json")
    command = ["grad", str(tmp_path / "loss.json")]
    assert cli.main([*command, "--wrt", "x", "-o", str(tmp_path / "slope.json")]) == 0
    fed = {"x": np.array([0.1, 0.2, 0.3], "f4"), "y": np.array([1.0, 2.0, 3.0], "f4")}
    slope = so.load(tmp_path / "slope.json").eval(**fed)
    np.testing.assert_allclose(slope, np.cos(fed["x"]) * fed["y"], rtol=1e-6)
    capsys.readouterr()
    assert cli.main([*command, "--value"]) == 0
    value, by_x, by_y = so.load_json(capsys.readouterr().out).eval(**fed)
    np.testing.assert_allclose(value, np.sum(np.sin(fed["x"]) * fed["y"]), rtol=1e-6)
    np.testing.assert_allclose(by_x, slope, rtol=1e-6)
    np.testing.assert_allclose(by_y, np.sin(fed["x"]), rtol=1e-6)


def test_grad_leaves_out_integers_and_sums_outputs(tmp_path, capsys):
    table, ids = so.var("table", shape=(4, 2)), so.var("ids", shape=(3,), dtype="int32")
    rows = so.lookup_table(table, ids)
    so.Group([rows, rows * 2.0]).save(tmp_path / "rows.json")
    assert cli.main(["grad", str(tmp_path / "rows.json")]) == 0
    slope = so.load_json(capsys.readouterr().out)
    counts = slope.eval(table=np.zeros((4, 2), "f4"), ids=np.array([1, 1, 3], "i4"))
    np.testing.assert_array_equal(counts, 3.0 * np.array([[0, 0], [2, 2], [0, 0], [1, 1]]))


class TestExport:
    def exported(self, path):
        return jax.export.deserialize(bytearray(path.read_bytes()))

    def test_with_parameters_and_an_open_batch(self, tmp_path, capsys):
        net = so.softmax(so.fully_connected(so.var("x"), units=4, name="fc"))
        net.save(tmp_path / "net.json")
        rng = np.random.default_rng(0)
        arrays = {"fc_weight": rng.normal(size=(4, 3)).astype("f4"), "fc_bias": np.ones(4, "f4")}
        so.save_parameters(tmp_path / "net.safetensors", arrays)
        command = ["export", str(tmp_path / "net.json"), "-o", str(tmp_path / "net.bin")]
        parameters = ["--parameters", str(tmp_path / "net.safetensors")]
        assert cli.main([*command, *parameters, "--shape", "x=batch,3", "--orders", "1"]) == 0
        report = capsys.readouterr().out.splitlines()[1:]
        assert report == ["input x: float32[batch,3]", "output softmax0_output: float32[batch,4]"]
        function = self.exported(tmp_path / "net.bin").call
        for size in (1, 5):
            x = rng.normal(size=(size, 3)).astype("f4")
            expected = net.eval(x=x, **arrays)
            np.testing.assert_allclose(function(x), expected, rtol=1e-5)
            slope = jax.grad(lambda x: jax.numpy.sum(function(x)[:, 0]))(x)
            other = jax.grad(lambda x: jax.numpy.sum(net.to_jax()(x=x, **arrays)[:, 0]))(x)
            np.testing.assert_allclose(slope, other, rtol=1e-4, atol=1e-6)

    def test_what_is_left_are_arguments_in_order(self, saved, tmp_path, capsys):
        command = ["export", str(saved), "-o", str(tmp_path / "net.bin")]
        assert cli.main([*command, "--platform", "cpu", "--platform", "tpu"]) == 0
        names = re.findall("^input (.*):", capsys.readouterr().out, re.MULTILINE)
        assert names == so.load(saved).list_arguments()
        exported = self.exported(tmp_path / "net.bin")
        assert exported.platforms == ("cpu", "tpu")
        assert [one.shape for one in exported.in_avals] == [(2, 3), (4, 3), (4,)]

    @pytest.mark.parametrize("suffix", ["bin", "mlir"])
    def test_the_file_names_no_place_of_this_machine(self, saved, tmp_path, suffix):
        path = tmp_path / f"net.{suffix}"
        before = jax.config.jax_traceback_in_locations_limit
        assert cli.main(["export", str(saved), "-o", str(path), *["--orders", "1"]]) == 0
        assert os.fsencode(pathlib.Path(so.__file__).parent) not in path.read_bytes()
        assert jax.config.jax_traceback_in_locations_limit == before

    def test_stablehlo_on_standard_output(self, saved, capsys):
        assert cli.main(["export", str(saved), "-o", "-"]) == 0
        assert "stablehlo.dot_general" in capsys.readouterr().out


class TestDiff:
    def lines(self, capsys, tmp_path, old, new):
        """The exit status and the lines that differ, of two graphs."""
        for name, graph in (("old", old), ("new", new)):
            graph.save(tmp_path / f"{name}.json")
        status = cli.main(["diff", str(tmp_path / "old.json"), str(tmp_path / "new.json")])
        return status, capsys.readouterr().out.splitlines()[2:]

    def test_equal_graphs_however_numbered(self, tmp_path, capsys):
        x = so.var("x", shape=(3,))
        old = so.sin(x) + so.dropout(x)
        other = so.dropout(so.sin(so.dropout(x)))  # takes numbers
        new = so.sin(x) + so.dropout(x)
        assert self.lines(capsys, tmp_path, old, new) == (0, [])
        assert self.lines(capsys, tmp_path, old, other)[0] == 1

    def test_attributes_shapes_and_parameters(self, tmp_path, capsys):
        x = so.var("x", shape=(2, 3))
        old, new = (so.relu(so.fully_connected(x, units=n, name="fc")) for n in (4, 5))
        status, lines = self.lines(capsys, tmp_path, old, new)
        assert status == 1
        assert lines == [
            "~ variable fc_weight: float32[4,3] -> float32[5,3]",
            '~ variable fc_bias: float32[4] {initial="0.0"} -> float32[5] {initial="0.0"}',
            "~ call fc = fully_connected: units 4 -> 5; float32[2,4] -> float32[2,5]",
            "~ call relu0 = relu: float32[2,4] -> float32[2,5]",
        ]

    def test_only_the_first_change_of_a_chain_is_reported(self, tmp_path, capsys):
        x = so.var("x", shape=(3,))
        old = so.exp(so.tanh(so.sin(x))) * 2.0
        new = so.exp(so.tanh(so.sin(so.cos(x)))) * 2.0
        status, lines = self.lines(capsys, tmp_path, old, new)
        assert (status, len(lines)) == (1, 2)
        assert lines == ["+ call cos0: float32[3] = cos(x)", "~ call sin0 = sin: x x -> cos0"]

    def test_numbers_and_outputs(self, tmp_path, capsys):
        x = so.var("x", shape=(3,))
        y = so.sin(x)
        status, lines = self.lines(capsys, tmp_path, so.Group([y * 2.0, x]), so.Group([y * 3.0]))
        assert status == 1
        assert lines == ["~ call multiply0 = multiply: y 2.0 -> 3.0", "- output 1: x"]

    def test_bodies_of_control_flow(self, tmp_path, capsys):
        def total(function):
            return so.scan(lambda c, x: (c + function(x), c), 0.0, so.var("xs", shape=(5,)))[0]

        status, lines = self.lines(capsys, tmp_path, total(so.sin), total(so.cos))
        assert status == 1
        assert [line for line in lines if "sin(" in line and "body of scan" in line]
        assert [line for line in lines if "cos(" in line and line.startswith("+")]
        assert self.lines(capsys, tmp_path, total(so.sin), total(so.sin)) == (0, [])

    def test_programs(self, tmp_path, capsys):
        def step(rate):
            with so.program_guard(so.Program()) as program:
                loss = so.sum(so.square(so.parameter("w", (3,))))
            so.optim.SGD(rate).minimize(loss)
            return program

        status, lines = self.lines(capsys, tmp_path, step(0.1), step(0.2))
        assert status == 1
        assert lines == ["~ call sgd0 = sgd: learning_rate 0.1 -> 0.2"]
        assert self.lines(capsys, tmp_path, step(0.1), step(0.1)) == (0, [])

    def test_quiet(self, saved, tmp_path, capsys):
        so.var("x").save(tmp_path / "x.json")
        assert cli.main(["diff", "-q", str(saved), str(tmp_path / "x.json")]) == 1
        assert cli.main(["diff", str(saved), str(saved)]) == 0
        assert capsys.readouterr().out == ""

    def test_failure_is_two(self, saved, tmp_path, capsys):
        assert cli.main(["diff", str(saved), str(tmp_path / "absent.json")]) == 2
        assert cli.main(["diff", "-", "-"]) == 2
        assert capsys.readouterr().err.count("symop: ") == 2


# The catalogue -----------------------------------------------------------------------------------


def test_ops_filters_by_pattern_and_family(capsys):
    assert cli.main(["ops", "conv*", "--family", "conv"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert "convolution" in names
    assert all(name.startswith("conv") for name in names)
    assert cli.main(["ops", "--family", "rnn"]) == 0
    assert "\nlstm " in capsys.readouterr().out


def test_ops_as_json(capsys):
    assert cli.main(["ops", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in records] == registry.names()
    assert cli.main(["ops", "softmax", "--json"]) == 0
    softmax = json.loads(capsys.readouterr().out)
    assert softmax in records
    assert (softmax["family"], softmax["derivative"]) == ("nn", "maker")
    assert softmax["attributes"][1] == {"name": "temperature", "type": "float", "default": 1.0}


def test_audit_of_some_operators(capsys):
    assert cli.main(["audit", "sin", "elemwise_add"]) == 0
    sin, add = capsys.readouterr().out.splitlines()
    assert sin == "sin  every order; broadcast_to, cos, multiply, negative, sin, sum_to"
    assert add.startswith("add  every order; ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_commands_and_operators(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("export", "softmax", "platform"):
        assert word in script
    if shutil.which(shell):
        checked = subprocess.run(
            [shell, "-n"], input=script, text=True, capture_output=True, check=True
        )
        assert checked.stderr == ""


def test_bash_completes(capsys):
    assert cli.main(["completion", "bash"]) == 0
    function = "_shtab_symop"
    ask = f"COMP_WORDS=(symop ops soft); COMP_CWORD=2; {function}; echo ${{COMPREPLY[@]}}"
    script = f"{capsys.readouterr().out}\n{ask}"
    answer = subprocess.run(["bash"], input=script, text=True, capture_output=True, check=True)
    assert "softmax" in answer.stdout.split()


# Models of other systems -------------------------------------------------------------------------

MODELS = pathlib.Path(__file__).parent / "data" / "mxnet"


def test_convert_writes_a_model_of_mxnet(tmp_path, capsys):
    options = ["-o", str(tmp_path / "made"), "--shape", "data=4,1,28,28"]
    assert cli.main(["convert", "mxnet", str(MODELS / "lenet"), "0", *options]) == 0
    said = capsys.readouterr().out
    assert "conv1" in said
    assert "largest difference of an output before and after: 0\n" in said
    graph = so.load(tmp_path / "made" / "symbol.json")
    arrays = so.load_parameters(tmp_path / "made" / "parameters.safetensors")
    with np.load(MODELS / "lenet-io.npz") as recorded:
        given = {name: recorded[f"in|{name}"] for name in ("data", "softmax_label")}
        found = graph.eval(**given, **arrays)
        np.testing.assert_allclose(found, recorded["out|0"], rtol=1e-4, atol=1e-6)


def saved_attention(folder, **more):
    query, key, value = (mx.sym.var(name) for name in ("query", "key", "value"))
    scores = mx.sym.softmax(mx.sym.batch_dot(query, key, transpose_b=True))
    net = mx.sym.FullyConnected(mx.sym.batch_dot(scores, value), num_hidden=2, name="fc")
    arrays = {"key": mx.nd.ones((1, 3, 4)), "fc_weight": mx.nd.ones((2, 8)), **more}
    mx.model.save_checkpoint(str(folder / "net"), 0, net, arrays, {})
    shapes = ["--shape", "query=1,2,4", "--shape", "value=1,3,4"]
    return ["convert", "mxnet", str(folder / "net"), "0", "-o", str(folder), *shapes]


def test_convert_takes_any_name_and_leaves_out_what_is_too_much(tmp_path, capsys):
    command = saved_attention(tmp_path, fc_bias=mx.nd.ones((2,)), other=mx.nd.ones((2,)))
    assert cli.main(command) == 0
    said = capsys.readouterr().out
    assert "left out, for the graph has no such variables: other" in said
    assert "inputs: query, value" in said


def test_convert_refuses_a_missing_parameter(tmp_path, capsys):
    assert cli.main(saved_attention(tmp_path)) == 1
    assert "the parameters must have fc_bias, the bias of 'fc'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "pass the inputs' shapes, --shape data=1,3,224,224"),
        (["--shape", "nothing=1"], "no variable is called 'nothing'"),
    ],
)
def test_convert_needs_the_shapes_of_inputs(tmp_path, capsys, options, message):
    command = ["convert", "mxnet", str(MODELS / "lenet"), "0", "-o", str(tmp_path), *options]
    assert cli.main(command) == 1
    assert message in capsys.readouterr().err


def test_audit_names_every_operator(capsys):
    assert cli.main(["audit"]) == 0
    printed = capsys.readouterr().out
    assert [name for name in registry.names() if name not in printed] == []


class TestRefusals:
    def refused(self, capsys, *arguments):
        """What a refused command says on stderr; it says nothing on stdout."""
        assert cli.main([str(one) for one in arguments]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("symop: ")
        assert "Traceback" not in printed.err
        return printed.err

    @pytest.mark.parametrize(
        "command",
        [["show"], ["draw", "-o", "graph.svg"], ["cost"], ["grad"], ["export", "-o", "graph.bin"]],
        ids=lambda command: command[0],
    )
    def test_no_such_file(self, capsys, tmp_path, command):
        path = tmp_path / "absent.json"
        assert str(path) in self.refused(capsys, *command, path)

    def test_a_truncated_file(self, capsys, saved):
        saved.write_text(saved.read_text()[:100])
        assert str(saved) in self.refused(capsys, "show", saved)

    def test_a_file_that_is_no_graph(self, capsys, tmp_path):
        path = tmp_path / "other.json"
        path.write_text('{"a": 1}')
        assert str(path) in self.refused(capsys, "show", path)

    def test_an_unknown_operator(self, capsys):
        assert "did you mean 'softmax'" in self.refused(capsys, "ops", "sofmax")

    def test_a_family_that_there_is_not(self, capsys):
        assert "did you mean 'reduce'" in self.refused(capsys, "ops", "--family", "reduction")

    def test_a_pattern_that_fits_nothing(self, capsys):
        assert "must fit 'zzz*', none does" in self.refused(capsys, "ops", "zzz*")

    def test_a_message_of_several_lines_becomes_one(self, capsys, tmp_path):
        (tmp_path / "p.txt").write_text("(x: float32[2]) {\n  y = sin(z)\n} -> y\n")
        assert self.refused(capsys, "show", tmp_path / "p.txt").count("\n") == 1

    def test_parameters_are_no_graph(self, capsys, tmp_path):
        so.save_parameters(tmp_path / "w.safetensors", {"w": np.full(4, 255, "u1")})
        refusal = self.refused(capsys, "show", tmp_path / "w.safetensors")
        assert "must be a symbol or a program" in refusal

    def test_types_that_are_not_known(self, capsys, tmp_path):
        so.matmul(so.var("x"), so.var("w")).save(tmp_path / "graph.json")
        command = ["export", tmp_path / "graph.json", "-o", tmp_path / "graph.mlir"]
        assert "--shape x=batch,3" in self.refused(capsys, *command)
        assert "--shape" in self.refused(capsys, "cost", tmp_path / "graph.json")
        assert "numbers, names" in self.refused(capsys, *command, "--shape", "x=b+,3")
        typed = ["cost", tmp_path / "graph.json", "--shape", "x=b,3"]
        assert "got x=b,3" in self.refused(capsys, *typed)
        assert not (tmp_path / "graph.mlir").exists()

    def test_export_to_a_form_that_there_is_not(self, capsys, saved):
        assert "must end in .stablehlo" in self.refused(capsys, "export", saved, "-o", "net.onnx")

    def test_shapes_that_jax_cannot_leave_open(self, capsys, tmp_path):
        x = so.var("x", shape=None)
        so.reshape(x, shape=(2, 3)).save(tmp_path / "graph.json")
        command = ["export", tmp_path / "graph.json", "-o", tmp_path / "g.mlir"]
        refusal = self.refused(capsys, *command, "--shape", "x=batch,3")
        assert "got (batch, 3)" in refusal

    def test_unknown_parameters(self, capsys, saved, tmp_path):
        so.save_parameters(tmp_path / "w.safetensors", {"w": np.ones(1, "f4")})
        options = ["-o", tmp_path / "g.mlir", "--parameters", tmp_path / "w.safetensors"]
        assert "got 'w'" in self.refused(capsys, "export", saved, *options)

    @pytest.mark.parametrize(
        ("package", "command"),
        [("flatbuffers", ["export"]), ("shtab", ["completion", "bash"])],
    )
    def test_a_missing_extra(self, capsys, saved, tmp_path, monkeypatch, package, command):
        monkeypatch.setitem(sys.modules, package, None)
        for name in [one for one in sys.modules if one.startswith("jax._src.export.serial")]:
            monkeypatch.delitem(sys.modules, name)
        more = [saved, "-o", tmp_path / "g.bin"] if command == ["export"] else []
        refusal = self.refused(capsys, *command, *more)
        assert f"pip install 'symop-jax[{command[0]}]'" in refusal

    def test_a_program_without_outputs(self, capsys, trained, tmp_path):
        program, path = trained
        program.outputs = []
        program.save(path)
        assert "must have outputs" in self.refused(capsys, "grad", path)

    def test_no_place_to_draw_to(self, capsys, saved, tmp_path):
        target = tmp_path / "absent" / "graph.svg"
        refusal = self.refused(capsys, "draw", saved, "-o", target)
        assert refusal == f"symop: {target.parent}: the folder must exist\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cost", "x.json", "--shape", "x8"], "NAME=8,3"),
        (["cost", "x.json", "--shape", "x=8,,3"], "each axis must have a length"),
        (["export", "x.json", "-o", "x.bin", "--orders", "-1"], "a number from 0 up"),
        (["completion", "csh"], "invalid choice"),
        ([], "required"),
    ],
)
def test_invalid_arguments(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"symop {so.__version__}\n"


def test_an_interrupt_is_no_traceback(monkeypatch, capsys):
    def interrupt(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("symop.commands.audit.run", interrupt)
    assert cli.main(["audit"]) == 130
    assert capsys.readouterr().err == "symop: interrupted\n"


def test_help_imports_neither_jax_nor_the_catalogue():
    code = "import sys; from symop.commands.parser import parser; parser(); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(shown.stdout.split())
    assert not {one for one in loaded if one.partition(".")[0] in ("jax", "numpy", "registry")}


def test_as_a_process(saved, tmp_path):
    command = [sys.executable, "-m", "symop.cli", "show"]
    shown = subprocess.run([*command, str(saved)], capture_output=True, text=True, check=True)
    assert shown.stdout == f"{so.load(saved)}\n"
    absent = [*command, str(tmp_path / "absent.json")]
    refused = subprocess.run(absent, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("symop: ")
