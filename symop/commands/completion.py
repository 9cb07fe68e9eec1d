"""``symop completion``: prints a script that completes the arguments of ``symop`` in a shell."""

import argparse
from types import ModuleType

import registry
from registry.errors import missing_extra
from symop.commands.parser import parser


def run(options: argparse.Namespace) -> None:
    """Print the script. It holds the names of the operators, so that completing starts nothing."""
    print(_shtab().complete(parser(operators=registry.names(aliases=True)), shell=options.shell))


def _shtab() -> ModuleType:
    try:
        import shtab  # noqa: PLC0415
    except ImportError:
        raise missing_extra("completion", "shtab", "completion") from None
    module: ModuleType = shtab
    return module
