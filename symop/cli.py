"""The command ``symop``: inspect saved graphs and the catalogue of operators from a shell."""

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns the exit status: 0 on success, 1 on failure."""
    options = _parser().parse_args(arguments)
    # Commands import JAX and the catalogue; help and argument errors do not need them.
    errors = importlib.import_module("registry.errors")
    command = importlib.import_module(f"symop.commands.{options.command}")
    try:
        status: int = command.run(options) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe. Discard the rest, including what Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (errors.SymopError, OSError) as error:
        print(f"symop: {error}", file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="symop", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    show = commands.add_parser("show", help="print a saved symbol as a program")
    show.add_argument("file", type=Path)
    picture = commands.add_parser("draw", help="draw a saved symbol as SVG")
    picture.add_argument("file", type=Path)
    picture.add_argument("-o", "--output", type=Path, required=True)
    ops = commands.add_parser("ops", help="list the operators, or explain one")
    ops.add_argument("name", nargs="?")
    check = commands.add_parser("check", help="prove the operators that a module declares")
    check.add_argument("module", help="a module, a path to a .py file, or an operator's name")
    check.add_argument(
        "--sheets",
        type=Path,
        metavar="FOLDER",
        help="prove what changed since, and write a table and a page for each operator there",
    )
    check.add_argument("--workers", type=int, default=1, help="processes that prove for --sheets")
    _add_convert(commands)
    commands.add_parser("audit", help="which operators are differentiable to every order")
    return parser


def _add_convert(commands: Any) -> None:
    convert = commands.add_parser(
        "convert", help="turn a model of another system into symop's files"
    )
    convert.add_argument("system", choices=["mxnet"])
    convert.add_argument("prefix", help="path and name of the model, as before -symbol.json")
    convert.add_argument("epoch", type=int, help="the number in PREFIX-0000.params")
    convert.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    convert.add_argument(
        "--shape",
        action="append",
        default=[],
        type=_shape,
        metavar="NAME=1,3,224,224",
        help="the shape of an input; once for each",
    )


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, lengths = text.partition("=")
    return name, tuple(int(one) for one in lengths.split(","))


if __name__ == "__main__":
    sys.exit(main())
