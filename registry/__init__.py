"""The dictionary of operators: declaration, lookup and audit.

``op`` declares an operator, ``get`` finds one by name, ``names`` lists them, and ``audit`` reports
which are differentiable to every order.
"""

import sys as _sys

try:
    from registry import ops as _ops  # the catalogue registers itself
except BaseException:
    # Python keeps the modules that were complete, and with them a table that is half filled.
    for _name in [name for name in _sys.modules if name.startswith("registry.")]:
        del _sys.modules[_name]
    raise

from registry.audit import audit
from registry.cases import case, misuse, workload
from registry.declare.components import InplaceHint, OperatorBase, ShapeInferer, VarTypeInferer
from registry.declare.creation import create
from registry.declare.elementwise import elementwise
from registry.declare.environment import EnvArguments
from registry.declare.gradients import (
    DefaultGradOpDescMaker,
    EmptyGradOpDescMaker,
    GradOpDescMaker,
    SingleGradOpDescMaker,
)
from registry.declare.pairs import register_op
from registry.declare.proto import OpProtoAndCheckerMaker
from registry.declare.registration import register_operator
from registry.declare.simple import SimpleOp, register_simple_op
from registry.declare.typed import op
from registry.desc import BlockDesc, OpDesc, OpProto, ProgramDesc, VarDesc
from registry.errors import SymopError
from registry.jax_derivatives.gradients import differentiate_kernel
from registry.leaves import get
from registry.lod import LoDTensor
from registry.operator.attributes import Check
from registry.operator.bodies import Body
from registry.operator.operator import Derivative, Grads, Operator
from registry.operator.packages import declare_package
from registry.operator.signature import Array, Key, Parameter, State, Training
from registry.table import installed as _installed
from registry.table import load_plugins, names, operators
from registry.types import DType, OpReqType, Shape, VarKind, VarType
from registry.values import SelectedRows, TensorArray
from registry.var import Var

__all__ = [
    "Array",
    "BlockDesc",
    "Body",
    "Check",
    "DType",
    "DefaultGradOpDescMaker",
    "Derivative",
    "EmptyGradOpDescMaker",
    "EnvArguments",
    "GradOpDescMaker",
    "Grads",
    "InplaceHint",
    "Key",
    "LoDTensor",
    "OpDesc",
    "OpProto",
    "OpProtoAndCheckerMaker",
    "OpReqType",
    "Operator",
    "OperatorBase",
    "Parameter",
    "ProgramDesc",
    "SelectedRows",
    "Shape",
    "ShapeInferer",
    "SimpleOp",
    "SingleGradOpDescMaker",
    "State",
    "SymopError",
    "TensorArray",
    "Training",
    "Var",
    "VarDesc",
    "VarKind",
    "VarType",
    "VarTypeInferer",
    "audit",
    "case",
    "create",
    "declare_package",
    "differentiate_kernel",
    "elementwise",
    "get",
    "load_plugins",
    "misuse",
    "names",
    "op",
    "operators",
    "register_op",
    "register_operator",
    "register_simple_op",
    "workload",
]

_installed.open()  # a plug-in may import this package: it is complete now
del _ops, _installed, _sys
