"""The names of ``paddle.fluid`` of Paddle 1.8; see ``symop.interop.paddle.static``."""

from typing import Any

from symop.interop.paddle import backward, executor, unique_name
from symop.interop.paddle import framework as core
from symop.interop.paddle.backward import append_backward, gradients
from symop.interop.paddle.executor import Executor, Scope, global_scope, scope_guard
from symop.interop.paddle.guards import (
    default_main_program,
    default_startup_program,
    name_scope,
    program_guard,
)
from symop.interop.paddle.programs import Program, Variable
from symop.interop.paddle.static import clip, initializer, io, layers, optimizer, regularizer
from symop.interop.paddle.static.io import load, save
from symop.interop.paddle.static.layers.losses import one_hot_v2 as one_hot
from symop.interop.paddle.static.layers.networks import embedding_v2 as embedding
from symop.interop.paddle.static.layers.tensors import data
from symop.interop.paddle.static.missing import raise_missing
from symop.interop.paddle.static.parameters import ParamAttr
from symop.interop.paddle.static.places import (
    CompiledProgram,
    CPUPlace,
    CUDAPlace,
    cpu_places,
    cuda_places,
    is_compiled_with_cuda,
)

__all__ = [
    "CPUPlace",
    "CUDAPlace",
    "CompiledProgram",
    "Executor",
    "ParamAttr",
    "Program",
    "Scope",
    "Variable",
    "append_backward",
    "backward",
    "clip",
    "core",
    "cpu_places",
    "cuda_places",
    "data",
    "default_main_program",
    "default_startup_program",
    "embedding",
    "executor",
    "global_scope",
    "gradients",
    "initializer",
    "io",
    "is_compiled_with_cuda",
    "layers",
    "load",
    "name_scope",
    "one_hot",
    "optimizer",
    "program_guard",
    "regularizer",
    "save",
    "scope_guard",
    "unique_name",
]


def __getattr__(name: str) -> Any:
    raise_missing(__name__, name)
