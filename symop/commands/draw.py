"""``symop draw``: draws a saved symbol as SVG."""

import argparse

from symop.symbol.building import load


def run(options: argparse.Namespace) -> None:
    """Write the picture."""
    options.output.write_text(load(options.file).to_svg(), encoding="utf-8")
    print(f"wrote {options.output}")
