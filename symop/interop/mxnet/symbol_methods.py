"""Methods of symbols beside those that compute: text for debugging, composition in place, backends.

XLA compiles a bound graph as a whole, so no part of it is left for a backend to take over.
"""

from collections.abc import Iterator
from typing import Any

from symop.interop.mxnet.errors import MXNetError, near
from symop.interop.mxnet.graph import Node, topological
from symop.interop.mxnet.symbol import Symbol

_BACKENDS = ("default", "default_v2", "MKLDNN", "MKLDNN_QUANTIZE", "ONEDNN", "TensorRT")
"""Those that come with builds of MXNet 1.x."""
_RULE = "-" * 20


class NotImplementedForSymbol(MXNetError, NotImplementedError):  # noqa: N818  # MXNet's name
    """What arrays can do and symbols cannot."""


def debug_str(self: Symbol) -> str:
    """The graph as text: outputs, then variables and calls, inputs before what reads them.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> mx.sym.sin(mx.sym.var("a"), name="s").debug_str().splitlines()[2:5]
        ['Variable:a', '--------------------', 'Op:sin, Name=s']
    """
    lines = ["Symbol Outputs:"]
    lines += [f"\toutput[{i}]={node.name}({at})" for i, (node, at) in enumerate(self.heads)]
    for node in topological(self.heads):
        lines += [f"Variable:{node.name}"] if node.is_variable else _call_lines(node)
    return "\n".join(lines) + "\n"


def _call_lines(node: Node) -> Iterator[str]:
    assert node.operator is not None
    yield from (_RULE, f"Op:{node.operator.name}, Name={node.name}", "Inputs:")
    states = {id(one) for one in node.states()}
    for i, (below, at) in enumerate(node.inputs):
        version = f" version={int(id(below) in states)}" if below.is_variable else ""
        yield f"\targ[{i}]={below.name}({at}){version}"
    if node.attributes:
        yield "Attrs:"
        yield from (f"\t{key}={one}" for key, one in sorted(node.attributes.items()))


def _compose(self: Symbol, *args: Symbol, name: str | None = None, **kwargs: Symbol) -> None:
    """Put other symbols in place of variables of this one; ``symbol(...)`` makes a new one."""
    self.heads = self(*args, name=name, **kwargs).heads


def gradient(self: Symbol, wrt: Any) -> Any:
    """Refuse, as MXNet does: its operators cannot write a gradient.

    Raises:
        NotImplementedForSymbol: the message tells what has gradients.
    """
    raise NotImplementedForSymbol(
        f"gradient: a symbol of MXNet has none by {wrt!r}; bind it and call backward, or take "
        "so.grad of what to_graph returns"
    )


def get_backend_symbol(self: Symbol, backend: str) -> Symbol:
    """A copy: ``backend`` would change no result.

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
    """As ``get_backend_symbol``; what tells shapes and dtypes is not needed."""
    del args, aux, ctx, others
    return get_backend_symbol(self, backend)


def as_nd_ndarray(self: Symbol) -> Symbol:
    """The symbol itself, which is of MXNet's classic namespace."""
    return self


def as_np_ndarray(self: Symbol) -> Symbol:
    """Refuse: there is no ``mx.sym.np``.

    Raises:
        NotImplementedForSymbol: always.
    """
    raise NotImplementedForSymbol(f"as_np_ndarray: mx.sym.np is not supported, got {self!r}")


METHODS = (
    debug_str, _compose, gradient, get_backend_symbol, optimize_for, as_nd_ndarray, as_np_ndarray
)  # fmt: skip
