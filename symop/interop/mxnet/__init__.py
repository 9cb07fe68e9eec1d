"""MXNet's models and scripts on symop: ``import symop.interop.mxnet as mx``.

A thin layer of MXNet's names over the catalogue. Symbols, parameters and arrays are read and
written in MXNet's formats; operators are compositions of the catalogue's, with its gradients of
every order; what runs is compiled by XLA.
"""

from symop.interop.mxnet import ops as _ops  # noqa: F401  # importing it fills the table
from symop.interop.mxnet import autograd, base, context, model, name, nd, random, sym
from symop.interop.mxnet import nd as ndarray
from symop.interop.mxnet import sym as symbol
from symop.interop.mxnet.context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError
from symop.interop.mxnet.model import load_checkpoint, save_checkpoint
from symop.interop.mxnet.parameters import load_params, save_params
from symop.interop.mxnet.scopes import AttrScope
from symop.interop.mxnet.symbol import load as load_symbol

__all__ = [
    "AttrScope", "Context", "MXNetError", "MXNetFormatError", "autograd", "base", "context", "cpu",
    "cpu_pinned", "current_context", "gpu", "load_checkpoint", "load_params", "load_symbol",
    "model", "name", "nd", "ndarray", "num_gpus", "random", "save_checkpoint", "save_params",
    "sym", "symbol",
]  # fmt: skip
