"""The layers of ``paddle.fluid.layers``: functions that append calls to the default program."""

from typing import Any

from symop.interop.paddle.programs import Variable
from symop.interop.paddle.static.layers.activations import *
from symop.interop.paddle.static.layers.elementwise import *
from symop.interop.paddle.static.layers.losses import *
from symop.interop.paddle.static.layers.networks import *
from symop.interop.paddle.static.layers.schedules import *
from symop.interop.paddle.static.layers.sequences import *
from symop.interop.paddle.static.layers.shapes import *
from symop.interop.paddle.static.layers.tensors import *
from symop.interop.paddle.static.missing import raise_missing
from symop.interop.paddle.static.parameters import create_global_var, create_parameter

__all__ = [  # noqa: PLE0604
    "Variable",
    "create_global_var",
    "create_parameter",
]


def __getattr__(name: str) -> Any:
    raise_missing(__name__, name)
