"""``symop convert``: turns a model of another system into symop's files."""

import argparse
import sys

from symop.interop.converting import convert_mxnet

_TOLERANCE = 1e-5
"""The largest accepted difference of a converted model's output."""


def run(options: argparse.Namespace) -> int:
    """Convert the model; fails if an output changes by more than rounding."""
    made = convert_mxnet(options.prefix, options.epoch, options.output, dict(options.shape))
    print(f"wrote {made.graph} and {made.parameters}")
    print(f"largest difference of an output before and after: {made.difference:.3g}")
    if made.difference <= _TOLERANCE:
        return 0
    print("symop: the outputs differ by more than rounding", file=sys.stderr)
    return 1
