"""``symop draw``: draws a graph or a program as SVG."""

import argparse

from symop.commands.files import read, write


def run(options: argparse.Namespace) -> None:
    """Write the picture."""
    write(options.output, read(options.file).to_svg())
