"""Methods of symbols that do not compute: debug text, in-place composition, backends.

XLA compiles a bound graph as a whole, so no part of it is left to another backend.
"""

from collections.abc import Callable
from typing import Any

from registry.hooks import define
from symop.interop.mxnet.describing import described
from symop.interop.mxnet.errors import MXNetError, NotImplementedForSymbol, near
from symop.interop.mxnet.symbols import ARRAYS_ONLY, Symbol

_BACKENDS = ("default", "default_v2", "MKLDNN", "MKLDNN_QUANTIZE", "ONEDNN", "TensorRT")
"""The backends of MXNet 1.x builds."""


def debug_str(self: Symbol) -> str:
    """The graph as text: outputs, then variables and calls, inputs before their readers.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> mx.sym.sin(mx.sym.var("a"), name="s").debug_str().splitlines()[2:5]
        ['Variable:a', '--------------------', 'Op:sin, Name=s']
    """
    return described(self.heads)


def _compose(self: Symbol, *args: Symbol, name: str | None = None, **kwargs: Symbol) -> None:
    """Replaces variables of this symbol in place; ``symbol(...)`` returns a new symbol."""
    self.heads = self(*args, name=name, **kwargs).heads


def gradient(self: Symbol, wrt: Any) -> Any:
    """Raises an error, as in MXNet, where operators do not have symbolic gradients.

    Raises:
        NotImplementedForSymbol: always; the message names the alternatives.
    """
    raise NotImplementedForSymbol(
        f"gradient: a symbol of MXNet has none by {wrt!r}; bind it and call backward, or take "
        "so.grad of what to_graph returns"
    )


def get_backend_symbol(self: Symbol, backend: str) -> Symbol:
    """A copy of the symbol: ``backend`` would not change results.

    Raises:
        MXNetError: MXNet has no backend of this name.
    """
    if backend not in _BACKENDS:
        raise MXNetError(
            f"get_backend_symbol: backend must be one of {', '.join(_BACKENDS)}, which leave the "
            f"graph to XLA, got {backend!r}{near(backend, _BACKENDS)}"
        )
    copy: Symbol = self.__copy__()
    return copy


def optimize_for(
    self: Symbol, backend: str, args: Any = None, aux: Any = None, ctx: Any = None, **others: Any
) -> Symbol:
    """Calls ``get_backend_symbol``; arguments for shapes and dtypes are not needed."""
    del args, aux, ctx, others
    return get_backend_symbol(self, backend)


def as_nd_ndarray(self: Symbol) -> Symbol:
    """The symbol itself, which belongs to MXNet's classic namespace."""
    return self


def as_np_ndarray(self: Symbol) -> Symbol:
    """Raises an error: there is no ``mx.sym.np``.

    Raises:
        NotImplementedForSymbol: always.
    """
    raise NotImplementedForSymbol(f"as_np_ndarray: mx.sym.np is not supported, got {self!r}")


def _refusal(name: str) -> Callable[..., Any]:
    def method(self: Symbol, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedForSymbol(
            f"{name}: it must be asked of an array, got {self!r}, which has no value; use bind"
        )

    return method


define(Symbol, **{name: _refusal(name) for name in ARRAYS_ONLY})
define(
    Symbol,
    _compose=_compose,
    as_nd_ndarray=as_nd_ndarray,
    as_np_ndarray=as_np_ndarray,
    debug_str=debug_str,
    get_backend_symbol=get_backend_symbol,
    gradient=gradient,
    optimize_for=optimize_for,
)
