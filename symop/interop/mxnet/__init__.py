"""MXNet's models and scripts on symop: ``import symop.interop.mxnet as mx``.

A thin layer of MXNet's names over the catalogue. Symbols, parameters and arrays are read and
written in MXNet's formats; operators are compositions of the catalogue's, with its gradients of
every order; what runs is compiled by XLA.

Example:
    >>> import symop.interop.mxnet as mx
    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    >>> net.list_arguments()
    ['data', 'fc_weight', 'fc_bias']
"""

from symop.interop.mxnet import (
    autograd,
    base,
    callback,
    context,
    initializer,
    io,
    kvstore,
    lr_scheduler,
    metric,
    model,
    module,
    monitor,
    name,
    nd,
    optimizer,
    random,
    rnn,
    sym,
    test_utils,
    visualization,
)
from symop.interop.mxnet import custom_operator as operator
from symop.interop.mxnet import initializer as init
from symop.interop.mxnet import kvstore as kv
from symop.interop.mxnet import module as mod
from symop.interop.mxnet import monitor as mon
from symop.interop.mxnet import nd as ndarray
from symop.interop.mxnet import ops as _ops  # noqa: F401  # importing it fills the table
from symop.interop.mxnet import random as rnd
from symop.interop.mxnet import scopes as attribute
from symop.interop.mxnet import sym as symbol
from symop.interop.mxnet import visualization as viz
from symop.interop.mxnet.context import (
    Context,
    cpu,
    cpu_pinned,
    current_context,
    gpu,
    gpu_memory_info,
    num_gpus,
)
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError
from symop.interop.mxnet.model import load_checkpoint, save_checkpoint
from symop.interop.mxnet.monitor import Monitor
from symop.interop.mxnet.parameters import load_params, save_params, split_params
from symop.interop.mxnet.scopes import AttrScope
from symop.interop.mxnet.symbol import load as load_symbol
from symop.interop.mxnet.symbol import save as save_symbol

__version__ = "1.9.1"
"""The version of MXNet whose names and semantics these are."""

__all__ = [
    "AttrScope",
    "Context",
    "MXNetError",
    "MXNetFormatError",
    "Monitor",
    "attribute",
    "autograd",
    "base",
    "callback",
    "context",
    "cpu",
    "cpu_pinned",
    "current_context",
    "gpu",
    "gpu_memory_info",
    "init",
    "initializer",
    "io",
    "kv",
    "kvstore",
    "load_checkpoint",
    "load_params",
    "load_symbol",
    "lr_scheduler",
    "metric",
    "mod",
    "model",
    "module",
    "mon",
    "monitor",
    "name",
    "nd",
    "ndarray",
    "num_gpus",
    "operator",
    "optimizer",
    "random",
    "rnd",
    "rnn",
    "save_checkpoint",
    "save_params",
    "save_symbol",
    "split_params",
    "sym",
    "symbol",
    "test_utils",
    "visualization",
    "viz",
]

_ABSENT = {
    "gluon": "export the network there and load its two files with mx.load_checkpoint",
    "image": "feed arrays with mx.io.NDArrayIter",
    "img": "feed arrays with mx.io.NDArrayIter",
    "recordio": "feed arrays with mx.io.NDArrayIter",
    "profiler": "use jax.profiler",
    "np": "use symop.nd, a namespace of the Python array API",
    "npx": "use symop.nd, a namespace of the Python array API",
    "rtc": "declare an operator, see docs/operators-guide.md",
}


def __getattr__(absent: str) -> None:
    hint = f"; {_ABSENT[absent]}" if absent in _ABSENT else ""
    raise AttributeError(f"mx has no {absent!r}{hint}")
