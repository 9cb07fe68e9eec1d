"""The command ``symop``: look at saved graphs and at the catalogue from a shell."""

import argparse
import inspect
import os
import sys
from pathlib import Path

import registry
from registry.errors import SymopError
from symop.building import load


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status is 0 when it succeeded, 1 when it refused."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has seen enough; what is left goes nowhere, also when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (SymopError, OSError) as error:
        print(f"symop: {error}", file=sys.stderr)
        return 1
    return 0


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
    audit = commands.add_parser("audit", help="which operators are differentiable to every order")
    audit.set_defaults(run=_audit)
    return parser


def _show(options: argparse.Namespace) -> None:
    print(load(options.file))


def _draw(options: argparse.Namespace) -> None:
    options.output.write_text(load(options.file).to_svg(), encoding="utf-8")
    print(f"wrote {options.output}")


def _ops(options: argparse.Namespace) -> None:
    if options.name is None:
        for operator in registry.operators():
            print(f"{operator.name:<28} {(operator.__doc__ or '').strip().splitlines()[0]}")
        return
    operator = registry.get(options.name)
    known, reason = operator.derivative.value, operator.reason
    print(f"{operator.signature()}\n\n{inspect.cleandoc(operator.__doc__ or '')}")
    print(f"\nderivative: {known}" + (f" ({reason})" if reason != known else ""))


def _audit(options: argparse.Namespace) -> None:
    del options
    print(registry.audit())


if __name__ == "__main__":
    sys.exit(main())
