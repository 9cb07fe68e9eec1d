"""symop: operators and their gradients as data on JAX.

Every registered operator is a function of this module: ``so.sin(v)`` works on symbols and on
arrays and returns the same kind.
"""

import registry
from registry.errors import SymopError, UnknownOperatorError
from registry.lod import LoDTensor
from registry.operator import Operator
from registry.table import find, get
from symop import autograd, checkpoint, nd, optim, random, remat, sym
from symop import eager as _eager  # calls on plain arrays honor gradient makers from here on
from symop.backward import append_backward
from symop.building import Group, load, value_and_grad, var
from symop.control_flow import body, cond, foreach, scan, while_loop
from symop.current_program import data, parameter, program_guard
from symop.depth import loops
from symop.derivatives import grad, jvp
from symop.executor import Executor
from symop.files import load_parameters, save_parameters
from symop.naming import name_scope
from symop.ndarray import NDArray
from symop.orders import derivative, hessian, hvp, jacobian
from symop.program import Program
from symop.program_block import Variable
from symop.repeats.switch import rolling
from symop.symbol import Symbol
from symop.symbol_calls import from_desc, load_json
from symop.vectorizing import vmap

__version__ = "0.1.0"

__all__ = [
    "Executor",
    "Group",
    "LoDTensor",
    "NDArray",
    "Program",
    "Symbol",
    "SymopError",
    "Variable",
    "append_backward",
    "autograd",
    "body",
    "checkpoint",
    "cond",
    "data",
    "derivative",
    "foreach",
    "from_desc",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "load",
    "load_json",
    "load_parameters",
    "loops",
    "name_scope",
    "nd",
    "optim",
    "parameter",
    "program_guard",
    "random",
    "remat",
    "rolling",
    "save_parameters",
    "scan",
    "sym",
    "value_and_grad",
    "var",
    "vmap",
    "while_loop",
]

registry.table.reserve(__all__)
del _eager


def __getattr__(name: str) -> Operator:
    """The operator called ``name``."""
    operator = None if name.startswith("_") else find(name)
    if operator is not None:
        return operator
    try:
        return get(name)
    except UnknownOperatorError as error:
        raise AttributeError(f"symop: {error}", name=name) from None


def __dir__() -> list[str]:
    """Names of this module, operators included."""
    return sorted([*globals(), *registry.names(aliases=True)])
