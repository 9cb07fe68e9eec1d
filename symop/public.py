"""The public names of ``symop``, which imports this module on the first lookup of a name."""

import importlib
from types import ModuleType

import registry
from registry import caches
from registry.errors import SymopError, UnknownMemberError, nearest
from registry.foreign_names import known_elsewhere
from registry.lod import LoDTensor
from registry.operator.operator import Operator
from registry.table import find, names, reserve
from registry.tracebacks import api_boundary
from symop import autograd, checkpoint, nd, optim, random, remat, sym
from symop.control_flow import body, cond, foreach, scan, while_loop
from symop.derivatives import grad, jvp
from symop.differential_operators.linear import linear_operator, partial
from symop.differential_operators.sampling import random_directions
from symop.differential_operators.sums import biharmonic, curl, divergence, laplacian
from symop.differential_operators.taylor import taylor
from symop.eager.ndarray import NDArray
from symop.generation import Generator
from symop.graph.naming import name_scope
from symop.io.files import load_parameters, save_parameters
from symop.jaxprs.functions import from_jax
from symop.jaxprs.transforming import transform
from symop.layers import multi_head_attention
from symop.orders import derivative, hessian, hvp, jacobian
from symop.passes.products import rewriting
from symop.passes.roll_loops.switch import rolling
from symop.passes.streaming import streaming
from symop.pipelining import pipeline
from symop.planning.plan import plan
from symop.planning.proposing import propose_rules
from symop.program.backward import append_backward
from symop.program.block import Variable
from symop.program.current import data, parameter, program_guard
from symop.program.program import Program
from symop.runtime.executor import Executor
from symop.symbol.building import Group, load, value_and_grad, var
from symop.symbol.calls import from_desc, load_json
from symop.symbol.drawings import draw
from symop.symbol.explaining import explain
from symop.symbol.loop_report import loops
from symop.symbol.symbol import Symbol
from symop.vectorizing import vmap

__all__ = [
    "Executor",
    "Generator",
    "Group",
    "LoDTensor",
    "NDArray",
    "Program",
    "Symbol",
    "SymopError",
    "Variable",
    "append_backward",
    "autograd",
    "biharmonic",
    "body",
    "caches",
    "checkpoint",
    "cond",
    "curl",
    "data",
    "derivative",
    "divergence",
    "draw",
    "explain",
    "foreach",
    "from_desc",
    "from_jax",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "laplacian",
    "linear_operator",
    "load",
    "load_json",
    "load_parameters",
    "loops",
    "multi_head_attention",
    "name_scope",
    "nd",
    "optim",
    "parameter",
    "partial",
    "pipeline",
    "plan",
    "program_guard",
    "propose_rules",
    "random",
    "random_directions",
    "registry",
    "remat",
    "rewriting",
    "rolling",
    "save_parameters",
    "scan",
    "streaming",
    "sym",
    "taylor",
    "transform",
    "value_and_grad",
    "var",
    "vmap",
    "while_loop",
]

MODULES = frozenset({"interop", "testing", "train"})
"""Modules that are attributes of ``symop``, too, and are imported when they are asked for."""

reserve(__all__)
reserve(MODULES)


@api_boundary
def __getattr__(name: str) -> Operator | ModuleType:
    """Returns the operator or the module called ``name``."""
    operator = None if name.startswith("_") else find(name)
    if operator is not None:
        return operator
    if name in MODULES:
        return importlib.import_module(f"symop.{name}")
    hint = known_elsewhere(name) or nearest(name, __dir__())
    raise UnknownMemberError(f"symop: {name}: no operator has this name{hint}", name)


def __dir__() -> list[str]:
    """Returns the public names, including modules and operators."""
    return sorted({"__version__", *__all__, *MODULES, *names(aliases=True)})
