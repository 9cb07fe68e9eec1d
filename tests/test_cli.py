"""The command line: what it prints, where, and its exit status."""

import pathlib
import re
import subprocess
import sys
from typing import Annotated

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

    @pytest.mark.parametrize("command", [["show"], ["draw", "-o", "graph.svg"]])
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

    def test_no_place_to_draw_to(self, capsys, saved, tmp_path):
        target = tmp_path / "absent" / "graph.svg"
        assert str(target) in self.refused(capsys, "draw", saved, "-o", target)


def test_as_a_process(saved, tmp_path):
    command = [sys.executable, "-m", "symop.cli", "show"]
    shown = subprocess.run([*command, str(saved)], capture_output=True, text=True, check=True)
    assert shown.stdout == f"{so.load(saved)}\n"
    absent = [*command, str(tmp_path / "absent.json")]
    refused = subprocess.run(absent, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("symop: ")
