"""The dictionary of operators: what each one means.

``op`` declares an operator, ``get`` finds one by name, ``names`` lists them, ``audit`` tells which
are differentiable to every order.
"""

from registry import ops as _ops  # the catalogue registers itself
from registry.audit import audit
from registry.cases import case, misuse
from registry.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from registry.errors import SymopError
from registry.kernel_gradients import differentiate_kernel
from registry.operator import Derivative, Grads, Operator
from registry.signature import Array, Key, Parameter, State, Training
from registry.table import get, names, op, operators
from registry.types import DType, OpReqType, Shape, VarKind, VarType
from registry.values import SelectedRows
from registry.var import Var

__all__ = [
    "Array",
    "BlockDesc",
    "DType",
    "Derivative",
    "Grads",
    "Key",
    "OpDesc",
    "OpReqType",
    "Operator",
    "Parameter",
    "ProgramDesc",
    "SelectedRows",
    "Shape",
    "State",
    "SymopError",
    "Training",
    "Var",
    "VarDesc",
    "VarKind",
    "VarType",
    "audit",
    "case",
    "differentiate_kernel",
    "get",
    "misuse",
    "names",
    "op",
    "operators",
]

del _ops
