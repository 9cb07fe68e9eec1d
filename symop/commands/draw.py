"""``symop draw``: draws a graph or a program, as SVG or as an interactive page."""

import argparse
from pathlib import Path

from symop.commands.files import STREAM, read, write
from symop.symbol.drawings import draw


def run(options: argparse.Namespace) -> None:
    """Write the drawing; the end of the file's name tells the format."""
    suffix = ".svg" if options.output == STREAM else Path(options.output).suffix
    write(options.output, draw(read(options.file)).in_format(suffix))
