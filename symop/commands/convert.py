"""``symop convert``: turns a model of another system into symop's files."""

import argparse
import sys
from typing import Any

from registry.errors import ArgumentError
from symop.commands.files import types_of
from symop.interop.converting import Converted, convert_mxnet, convert_paddle

_TOLERANCE = 1e-5
"""The largest accepted difference of a converted model's output."""


def run(options: argparse.Namespace) -> int:
    """Convert the model; fails if an output changes by more than rounding."""
    typed = [one.name for one in options.shape if one.dtype is not None]
    if typed:
        raise ArgumentError(f"convert: --shape must hold shapes alone, got the dtype of {typed[0]}")
    shapes = types_of("convert", options.shape)
    model = _converted(options, shapes)
    print(f"wrote {model.graph} and {model.parameters}")
    print(f"largest difference of an output before and after: {model.difference:.3g}")
    if model.difference <= _TOLERANCE:
        return 0
    print("symop: the outputs differ by more than rounding", file=sys.stderr)
    return 1


def _converted(options: argparse.Namespace, shapes: Any) -> Converted:
    if options.system == "mxnet":
        return convert_mxnet(options.prefix, options.epoch, options.output, shapes)
    return convert_paddle(
        options.folder,
        options.output,
        shapes,
        model=options.model,
        parameters=options.parameters,
    )
