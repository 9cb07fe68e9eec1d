"""The dictionary of operators: what each one means.

``op`` declares an operator, ``get`` finds one by name, ``names`` lists them, ``audit`` tells which
are differentiable to every order.
"""

from registry import ops as _ops  # the catalogue registers itself
from registry.attributes import Check
from registry.audit import audit
from registry.bodies import Body
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
from registry.desc import BlockDesc, OpDesc, OpProto, ProgramDesc, VarDesc
from registry.errors import SymopError
from registry.kernel_gradients import differentiate_kernel
from registry.lod import LoDTensor
from registry.operator import Derivative, Grads, Operator
from registry.signature import Array, Key, Parameter, State, Training
from registry.table import get, load_plugins, names, op, operators
from registry.table import installed as _installed
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
del _ops, _installed
