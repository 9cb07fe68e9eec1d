"""The command ``symop``: look at saved graphs and at the catalogue from a shell."""

import argparse
import functools
import inspect
import os
import sys
from pathlib import Path
from typing import Any

import registry
from registry.desc import AttrProto, OpProto, VarProto
from registry.errors import SymopError
from registry.operator import Operator
from symop.building import load
from symop.discovery import ModuleFailedError, declared_by
from symop.interop.converting import convert_mxnet
from symop.testing import check_operator, record, sheets

_TOLERANCE = 1e-5
"""So much may an output of a converted model differ."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status is 0 when it succeeded, 1 when it refused."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has seen enough; what is left goes nowhere, also when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ModuleFailedError as error:
        print(f"{error}symop: {error.module} failed while it was imported", file=sys.stderr)
        return 1
    except (SymopError, OSError) as error:
        print(f"symop: {error}", file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="symop", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    show = commands.add_parser("show", help="print a saved symbol as a program")
    show.add_argument("file", type=Path)
    show.set_defaults(run=_show)
    picture = commands.add_parser("draw", help="draw a saved symbol as SVG")
    picture.add_argument("file", type=Path)
    picture.add_argument("-o", "--output", type=Path, required=True)
    picture.set_defaults(run=_draw)
    ops = commands.add_parser("ops", help="list the operators, or explain one")
    ops.add_argument("name", nargs="?")
    ops.set_defaults(run=_ops)
    check = commands.add_parser("check", help="prove the operators that a module declares")
    check.add_argument("module", help="a module, a path to a .py file, or an operator's name")
    check.add_argument(
        "--sheets",
        type=Path,
        metavar="FOLDER",
        help="prove what changed since, and write a table and a page for each operator there",
    )
    check.add_argument("--workers", type=int, default=1, help="processes that prove for --sheets")
    check.set_defaults(run=_check)
    _add_convert(commands)
    audit = commands.add_parser("audit", help="which operators are differentiable to every order")
    audit.set_defaults(run=_audit)
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
    convert.set_defaults(run=_convert)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, lengths = text.partition("=")
    return name, tuple(int(one) for one in lengths.split(","))


def _convert(options: argparse.Namespace) -> int:
    made = convert_mxnet(options.prefix, options.epoch, options.output, dict(options.shape))
    print(f"wrote {made.graph} and {made.parameters}")
    print(f"largest difference of an output before and after: {made.difference:.3g}")
    if made.difference <= _TOLERANCE:
        return 0
    print("symop: the outputs differ by more than rounding", file=sys.stderr)
    return 1


def _show(options: argparse.Namespace) -> None:
    print(load(options.file))


def _draw(options: argparse.Namespace) -> None:
    options.output.write_text(load(options.file).to_svg(), encoding="utf-8")
    print(f"wrote {options.output}")


def _ops(options: argparse.Namespace) -> None:
    if options.name is None:
        for operator in registry.operators():
            said = (operator.__doc__ or "").strip().partition("\n")[0]
            print(f"{operator.name:<28} {said}".rstrip())
        return
    operator = registry.get(options.name)
    known, reason = operator.derivative.value, operator.reason
    print(f"{operator.signature()}\n\n{inspect.cleandoc(operator.__doc__ or '')}")
    print(_slots(operator.proto), end="")
    print(f"\nderivative: {known}" + (f" ({reason})" if reason != known else ""))


def _slots(proto: OpProto) -> str:
    """What is said of slots, attributes and outputs; nothing where nobody commented on them."""
    everything: list[VarProto | AttrProto] = [*proto.inputs, *proto.attrs, *proto.outputs]
    if not any(one.comment for one in everything):
        return ""
    rows = {
        "inputs": [(one.name + "..." * one.duplicable, one.comment) for one in proto.inputs],
        "attributes": [(_attribute(one), one.comment) for one in proto.attrs],
        "outputs": [(one.name + "..." * one.duplicable, one.comment) for one in proto.outputs],
    }
    width = max(len(text) for each in rows.values() for text, _ in each)
    lines = [""]
    for title, each in rows.items():
        lines += [f"{title}:"] if each else []
        lines += [f"  {text:<{width}}  {comment}".rstrip() for text, comment in each]
    return "\n".join([*lines, ""])


def _attribute(proto: AttrProto) -> str:
    default = "" if proto.required else f" = {proto.default!r}"
    return f"{proto.name}: {proto.type}{default}"


def _check(options: argparse.Namespace) -> int:
    """Prove each operator, telling its name before, for it may take a while."""
    chosen = declared_by(options.module)
    if not chosen:
        print(f"symop: {options.module} declares no operator to check", file=sys.stderr)
        return 1
    failed = (_checked if options.sheets is None else _recorded)(chosen, options)
    held = len(chosen) - len(failed)
    print(f"{held} of {len(chosen)} operators hold" + "".join(f"; {n} FAILS" for n in failed))
    return 1 if failed else 0


def _checked(chosen: list[Operator], _options: argparse.Namespace) -> list[str]:
    failed = []
    for i, operator in enumerate(chosen, 1):
        print(f"[{i}/{len(chosen)}] {operator.name}", flush=True)
        if not check_operator(operator).ok:
            failed.append(operator.name)
        print(flush=True)
    return failed


def _recorded(chosen: list[Operator], options: argparse.Namespace) -> list[str]:
    folder: Path = options.sheets
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / sheets.RECORDS
    prepare = functools.partial(declared_by, options.module)
    failed = record.update(path, chosen, options.workers, prepare)
    sheets.write(folder, chosen, record.load(path))
    return failed


def _audit(options: argparse.Namespace) -> None:
    del options
    print(registry.audit())


if __name__ == "__main__":
    sys.exit(main())
