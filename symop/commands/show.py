"""``symop show``: prints a graph or a program as text."""

import argparse

from symop.commands.files import read


def run(options: argparse.Namespace) -> None:
    """Print it."""
    print(read(options.file))
