"""A front door for scripts of PaddlePaddle that build programs of operators.

``import symop.interop.paddle.static as static`` has the names of ``paddle.static``, and
``import symop.interop.paddle.fluid as fluid`` those of Paddle 1.8. Layers append Paddle's own
records to a program; it runs, trains, is saved and loaded as a program from a file.
"""

from typing import Any

from symop.interop.paddle import ops as _ops
from symop.interop.paddle import unique_name
from symop.interop.paddle.backward import append_backward, gradients
from symop.interop.paddle.executor import Executor, Scope, global_scope, scope_guard
from symop.interop.paddle.guards import (
    default_main_program,
    default_startup_program,
    name_scope,
    program_guard,
)
from symop.interop.paddle.programs import Block, Program, Variable
from symop.interop.paddle.static import (
    clip,
    initializer,
    io,
    layers,
    nn,
    optimizer,
    regularizer,
)
from symop.interop.paddle.static.io import (
    load,
    load_inference_model,
    save,
    save_inference_model,
)
from symop.interop.paddle.static.layers.control_flow import Print
from symop.interop.paddle.static.layers.tensors import data
from symop.interop.paddle.static.missing import raise_missing
from symop.interop.paddle.static.parameters import (
    ParamAttr,
    create_global_var,
    create_parameter,
)
from symop.interop.paddle.static.places import (
    CompiledProgram,
    CPUPlace,
    CUDAPlace,
    cpu_places,
    cuda_places,
)

__all__ = [
    "Block",
    "CPUPlace",
    "CUDAPlace",
    "CompiledProgram",
    "Executor",
    "ParamAttr",
    "Print",
    "Program",
    "Scope",
    "Variable",
    "append_backward",
    "clip",
    "cpu_places",
    "create_global_var",
    "create_parameter",
    "cuda_places",
    "data",
    "default_main_program",
    "default_startup_program",
    "global_scope",
    "gradients",
    "initializer",
    "io",
    "layers",
    "load",
    "load_inference_model",
    "name_scope",
    "nn",
    "optimizer",
    "program_guard",
    "regularizer",
    "save",
    "save_inference_model",
    "scope_guard",
    "unique_name",
]

del _ops


def __getattr__(name: str) -> Any:
    raise_missing(__name__, name)
