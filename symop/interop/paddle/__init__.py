"""Paddle's saved programs: read, written, run, trained and differentiated.

``load_program`` and ``load_inference_model`` read files of Paddle 1.8 and 2; ``Executor`` runs
programs, and ``Program.to_symbol`` returns their variables as graphs of the catalogue. Scripts that
build programs import ``symop.interop.paddle.static``, or ``fluid`` for the names of Paddle 1.8.

The package imports the catalogue and programs; nothing of symop imports it but the command line.
"""

from symop.interop.paddle import ops as _ops
from symop.interop.paddle import registered as _registered
from symop.interop.paddle.backward import append_backward, gradients
from symop.interop.paddle.errors import PaddleError, PaddleFormatError
from symop.interop.paddle.executor import Executor, Scope, global_scope, scope_guard
from symop.interop.paddle.files import load_state, load_vars, read_program, save_vars, write_program
from symop.interop.paddle.operators import names
from symop.interop.paddle.programs import Program, Variable
from symop.interop.paddle.static.io import (
    load_inference_model,
    load_program,
    save_inference_model,
    save_program,
)

__all__ = [
    "Executor",
    "PaddleError",
    "PaddleFormatError",
    "Program",
    "Scope",
    "Variable",
    "append_backward",
    "global_scope",
    "gradients",
    "load_inference_model",
    "load_program",
    "load_state",
    "load_vars",
    "names",
    "read_program",
    "save_inference_model",
    "save_program",
    "save_vars",
    "scope_guard",
    "write_program",
]

del _ops, _registered  # they fill the table of operators, and tell the registry of it
