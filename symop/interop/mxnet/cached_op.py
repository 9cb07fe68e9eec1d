"""``mx.nd.CachedOp``: a symbol as a function of arrays."""

from collections.abc import Sequence
from typing import Any

import symop as so
from symop.interop.mxnet.arrays import NDArray, raising
from symop.interop.mxnet.call_types import run_graph
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import topological


class CachedOp:
    """Calls the operators of a symbol on arrays, one for each of its inputs, in order.

    Calls are recorded as others are; calls that are recorded for training update auxiliary states.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> double = mx.nd.CachedOp(mx.sym.var("x") * 2)
        >>> double(mx.nd.array([1, 2])).asnumpy().tolist()
        [2.0, 4.0]
    """

    def __init__(self, sym: Any, flags: Sequence[tuple[str, Any]] = ()) -> None:
        """Takes a symbol; ``flags`` tune MXNet's memory, and have no effect."""
        del flags
        self._heads = sym.heads
        self._names = [one.name for one in topological(sym.heads) if one.is_variable]

    @raising
    def __call__(self, *args: NDArray, out: Any = None) -> Any:
        """The outputs: one array, or a list.

        Raises:
            MXNetError: the number of arrays is not that of the inputs.
        """
        if len(args) != len(self._names):
            raise MXNetError(
                f"CachedOp: arrays must be given for {', '.join(self._names)}, got {len(args)}"
            )
        found = run_graph(self._heads, [one.inner for one in args])
        inners = {id(one.inner) for one in args}
        made = [NDArray(so.nd.identity(one) if id(one) in inners else one) for one in found]
        if out is not None:
            places = out if isinstance(out, (list, tuple)) else [out]
            for place, one in zip(places, made, strict=True):
                place.become(one.inner)
            return out
        return made[0] if len(made) == 1 else made
