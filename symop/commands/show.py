"""``symop show``: prints a saved symbol as a program."""

import argparse

from symop.symbol.building import load


def run(options: argparse.Namespace) -> None:
    """Print the symbol."""
    print(load(options.file))
