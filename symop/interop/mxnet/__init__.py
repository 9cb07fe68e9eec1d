"""MXNet's models and scripts on symop: ``import symop.interop.mxnet as mx``.

A thin layer of MXNet's names over the catalogue. Symbols, parameters and arrays are read and
written in MXNet's formats. Operators are compositions of the catalogue's operators, with gradients
of every order, and are compiled by XLA.

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
    contrib,
    engine,
    initializer,
    io,
    kvstore,
    log,
    lr_scheduler,
    metric,
    model,
    module,
    monitor,
    name,
    ndarray,
    operator,
    optimizer,
    profiler,
    random,
    rnn,
    runtime,
    symbol,
    test_utils,
    util,
    visualization,
)
from symop.interop.mxnet import common_expressions as _merging  # noqa: F401  # it defines a method
from symop.interop.mxnet import initializer as init
from symop.interop.mxnet import kvstore as kv
from symop.interop.mxnet import module as mod
from symop.interop.mxnet import monitor as mon
from symop.interop.mxnet import ndarray as nd
from symop.interop.mxnet import ops as _ops  # noqa: F401  # importing it fills the table
from symop.interop.mxnet import random as rnd
from symop.interop.mxnet import scopes as attribute
from symop.interop.mxnet import symbol as sym
from symop.interop.mxnet import symbol_methods as _methods  # noqa: F401  # it defines methods
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
from symop.interop.mxnet.model_files import load_checkpoint, save_checkpoint
from symop.interop.mxnet.monitor import Monitor
from symop.interop.mxnet.parameters import load_params, save_params, split_params
from symop.interop.mxnet.scopes import AttrScope
from symop.interop.mxnet.symbols import load as load_symbol
from symop.interop.mxnet.symbols import save as save_symbol
from symop.interop.mxnet.util import (
    is_np_array,
    is_np_shape,
    np_array,
    np_shape,
    set_np_shape,
    use_np,
    use_np_array,
    use_np_shape,
)

__version__ = "1.9.1"
"""The version of MXNet whose names and semantics are followed."""

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
    "contrib",
    "cpu",
    "cpu_pinned",
    "current_context",
    "engine",
    "gpu",
    "gpu_memory_info",
    "init",
    "initializer",
    "io",
    "is_np_array",
    "is_np_shape",
    "kv",
    "kvstore",
    "load_checkpoint",
    "load_params",
    "load_symbol",
    "log",
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
    "np_array",
    "np_shape",
    "num_gpus",
    "operator",
    "optimizer",
    "profiler",
    "random",
    "rnd",
    "rnn",
    "runtime",
    "save_checkpoint",
    "save_params",
    "save_symbol",
    "set_np_shape",
    "split_params",
    "sym",
    "symbol",
    "test_utils",
    "use_np",
    "use_np_array",
    "use_np_shape",
    "util",
    "visualization",
    "viz",
]

_ABSENT = {
    "gluon": "export the network there and load its two files with mx.load_checkpoint",
    "image": "feed arrays with mx.io.NDArrayIter",
    "img": "feed arrays with mx.io.NDArrayIter",
    "recordio": "feed arrays with mx.io.NDArrayIter",
    "np": "use symop.nd, a namespace of the Python array API",
    "npx": "use symop.nd, a namespace of the Python array API",
    "torch": "declare an operator, see docs/operators-guide.md",
    "th": "declare an operator, see docs/operators-guide.md",
    "rtc": "declare an operator, see docs/operators-guide.md",
}


def __getattr__(absent: str) -> None:
    hint = f"; {_ABSENT[absent]}" if absent in _ABSENT else ""
    raise AttributeError(f"mx has no {absent!r}{hint}")
