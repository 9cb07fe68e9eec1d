"""``mx.contrib``: old names of ``mx.nd.contrib``, ``mx.sym.contrib`` and ``mx.autograd``."""

from symop.interop.mxnet import contrib_autograd as autograd
from symop.interop.mxnet import ndarray as _nd
from symop.interop.mxnet import symbol as _sym

__all__ = ["autograd", "nd", "ndarray", "sym", "symbol"]

nd = ndarray = _nd.contrib
sym = symbol = _sym.contrib

_ABSENT = {
    "onnx": "convert the model with MXNet, or save it with symop convert mxnet",
    "quantization": "integers are not computed with here: load the model before it was quantized",
    "quant": "integers are not computed with here: load the model before it was quantized",
    "svrg_optimization": "write the full gradient's correction with mx.optimizer.register",
    "tensorboard": "write an mx.callback of your own",
    "text": "read the arrays and give them to mx.io.NDArrayIter",
}


def __getattr__(absent: str) -> None:
    hint = f"; {_ABSENT[absent]}" if absent in _ABSENT else ""
    raise AttributeError(f"mx.contrib has no {absent!r}{hint}")
