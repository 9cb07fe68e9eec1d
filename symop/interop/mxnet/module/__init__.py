"""``mx.mod``: modules, which combine a symbol, its parameters, an optimizer and training loops."""

from symop.interop.mxnet.module.base_module import BaseModule
from symop.interop.mxnet.module.bucketing_module import BucketingModule
from symop.interop.mxnet.module.module import Module
from symop.interop.mxnet.module.python_module import PythonLossModule, PythonModule
from symop.interop.mxnet.module.sequential_module import SequentialModule

__all__ = [
    "BaseModule",
    "BucketingModule",
    "Module",
    "PythonLossModule",
    "PythonModule",
    "SequentialModule",
]
