"""The arguments of all commands; this module imports neither JAX nor the catalogue."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import symop

_FILES = {
    "bash": "_shtab_compgen_files",
    "zsh": "_files",
    "fish": "(__fish_complete_path (commandline -ct))",
}
"""``shtab.FILE``: what completes names of files in the scripts that shtab writes."""
_GRAPH = "a saved symbol or program, as JSON or as printed text; - for standard input"
_SHELLS = ("bash", "zsh", "fish")


class Declared(NamedTuple):
    """The type of a variable, as an argument declares it.

    Attributes:
        name: the name of the variable.
        shape: the length of each axis; a name or an expression for one that stays open.
        dtype: the name of the dtype, or None.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str | None


def parser(operators: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Returns the parser of the command line.

    Args:
        operators: the names of operators that a script for a shell offers.
    """
    result = argparse.ArgumentParser(
        prog="symop",
        description="Work with saved graphs and the catalogue of operators from a shell.",
        epilog="A command's own options: symop COMMAND --help",
    )
    result.add_argument("--version", action="version", version=f"symop {symop.__version__}")
    commands = result.add_subparsers(dest="command", required=True, metavar="command")
    _add_show(commands)
    _add_draw(commands)
    _add_cost(commands)
    _add_diff(commands)
    _add_grad(commands)
    _add_export(commands)
    _add_convert(commands)
    _add_ops(commands, operators)
    _add_audit(commands, operators)
    _add_check(commands)
    _add_completion(commands)
    return result


# Commands on graphs ------------------------------------------------------------------------------


def _add_show(commands: Any) -> None:
    show = commands.add_parser("show", help="print a graph or a program as text")
    _file(show, "file", help=_GRAPH)


def _add_draw(commands: Any) -> None:
    draw = commands.add_parser("draw", help="draw a graph or a program")
    _file(draw, "file", help=_GRAPH)
    _file(
        draw,
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="a picture, FILE.svg, or an interactive page, FILE.html; - for SVG on standard output",
    )


def _add_cost(commands: Any) -> None:
    cost = commands.add_parser("cost", help="report where a graph spends time and memory")
    _file(cost, "file", help=_GRAPH)
    _shapes(cost)
    cost.add_argument(
        "--training", action="store_true", help="as in training, where dropout drops entries"
    )
    cost.add_argument("--json", action="store_true", help="print the report as JSON")
    cost.add_argument(
        "--compiled", action="store_true", help="compile the function, and add what XLA says of it"
    )
    cost.add_argument(
        "--profile",
        metavar="FOLDER",
        help="add the times of a profile, which jax.profiler.trace wrote to FOLDER",
    )
    _file(
        cost,
        "-o",
        "--output",
        metavar="FILE",
        help="write a drawing colored by cost, FILE.html, instead of the report",
    )


def _add_diff(commands: Any) -> None:
    diff = commands.add_parser(
        "diff",
        help="compare the structure of two graphs",
        description="Compare the variables, operators, attributes, shapes and outputs of two "
        "graphs, whatever their values are called. The exit status is 0 if they are equal, 1 if "
        "they differ, 2 on failure.",
    )
    _file(diff, "old", help=_GRAPH)
    _file(diff, "new", help=_GRAPH)
    diff.add_argument("-q", "--quiet", action="store_true", help="print nothing")


def _add_grad(commands: Any) -> None:
    grad = commands.add_parser("grad", help="build the gradient of a graph")
    _file(grad, "file", help=_GRAPH)
    grad.add_argument(
        "--wrt",
        action="append",
        metavar="NAME",
        help="a variable to differentiate by; once for each (default: all real or complex ones)",
    )
    grad.add_argument(
        "--value", action="store_true", help="the outputs of the graph before its gradients"
    )
    grad.add_argument(
        "--unreachable",
        choices=["error", "zero"],
        default="error",
        help="what the gradient by a variable is that the graph does not depend on",
    )
    _shapes(grad)
    _file(
        grad,
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help="the gradient as JSON (default: standard output)",
    )


def _add_export(commands: Any) -> None:
    export = commands.add_parser(
        "export",
        help="export a graph as StableHLO or as bytes of jax.export",
        description="Export a graph for prediction. FILE.stablehlo and FILE.mlir are the text of "
        "the StableHLO module, FILE.bin is what jax.export.deserialize reads.",
    )
    _file(export, "file", help=_GRAPH)
    _file(
        export,
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="the exported file; - for StableHLO on standard output",
    )
    _file(
        export,
        "--parameters",
        metavar="FILE",
        help="arrays to make part of the function, as safetensors",
    )
    _shapes(export, "NAME=LENGTHS", "the shape of a variable, such as x=batch,3; batch stays open")
    export.add_argument(
        "--platform",
        action="append",
        choices=["cpu", "cuda", "rocm", "tpu"],
        help="a platform to export for; once for each (default: this machine's)",
    )
    export.add_argument(
        "--orders",
        type=_count,
        default=0,
        metavar="N",
        help="the order to which the exported function can be differentiated (default: 0)",
    )


def _add_convert(commands: Any) -> None:
    convert = commands.add_parser(
        "convert", help="turn a model of another system into symop's files"
    )
    systems = convert.add_subparsers(dest="system", required=True, metavar="SYSTEM")
    mxnet = systems.add_parser("mxnet", help="convert PREFIX-symbol.json and PREFIX-0000.params")
    mxnet.add_argument("prefix", help="path and name of the model, as before -symbol.json")
    mxnet.add_argument("epoch", type=int, help="the number in PREFIX-0000.params")
    paddle = systems.add_parser("paddle", help="convert an inference model of Paddle")
    paddle.add_argument(
        "folder", help="the folder of __model__, or the path before .pdmodel and .pdiparams"
    )
    paddle.add_argument("--model", metavar="FILE", help="the program's file, if not __model__")
    paddle.add_argument("--parameters", metavar="FILE", help="the one file of all parameters")
    for system in (mxnet, paddle):
        system.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
        _shapes(system)


# Commands on the catalogue -----------------------------------------------------------------------


def _add_ops(commands: Any, operators: Sequence[str] | None) -> None:
    ops = commands.add_parser("ops", help="list the operators, or explain one")
    ops.add_argument(
        "name",
        nargs="?",
        choices=operators,
        help="an operator to explain, or a pattern such as 'conv*' to list",
    )
    ops.add_argument("--family", help="list the operators of a family, such as reduce")
    ops.add_argument("--json", action="store_true", help="print records instead of text")


def _add_audit(commands: Any, operators: Sequence[str] | None) -> None:
    audit = commands.add_parser(
        "audit", help="report which operators are differentiable to every order"
    )
    audit.add_argument(
        "name",
        nargs="*",
        choices=operators,
        help="operators whose gradients of all orders are listed (default: all)",
    )


def _add_check(commands: Any) -> None:
    check = commands.add_parser("check", help="prove the operators that a module declares")
    check.add_argument("module", help="a module, a path to a .py file, or an operator's name")
    check.add_argument(
        "--sheets",
        type=Path,
        metavar="FOLDER",
        help="prove what changed since, and write a table and a page for each operator there",
    )
    check.add_argument("--workers", type=int, default=1, help="processes that prove for --sheets")


def _add_completion(commands: Any) -> None:
    completion = commands.add_parser(
        "completion", help="print a script that completes symop's arguments in a shell"
    )
    completion.add_argument("shell", choices=_SHELLS)


# Kinds of arguments ------------------------------------------------------------------------------


def _file(command: argparse.ArgumentParser, *flags: str, **more: Any) -> None:
    command.add_argument(*flags, **more).complete = _FILES  # type: ignore[attr-defined]


def _shapes(
    command: argparse.ArgumentParser,
    form: str = "NAME=LENGTHS",
    help: str = "the shape of a variable, such as x=8,3, or with its dtype, ids=8:int32",
) -> None:
    command.add_argument(
        "--shape",
        action="append",
        default=[],
        type=_declared,
        metavar=form,
        help=f"{help}; once for each",
    )


def _declared(text: str) -> Declared:
    name, sign, rest = text.rpartition("=")
    lengths, _, dtype = rest.partition(":")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"must be of the form NAME=8,3 or NAME=8:int32: {text!r}")
    axes = [one.strip() for one in lengths.split(",")] if lengths.strip() else []
    if not all(axes):
        raise argparse.ArgumentTypeError(f"each axis must have a length: {text!r}")
    shape = tuple(int(one) if one.isdecimal() else one for one in axes)
    return Declared(name, shape, dtype.strip() or None)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number from 0 up: {text!r}")
    return int(text)
