"""``mx.sym``: every operator of MXNet, as a function that makes symbols."""

from collections.abc import Callable as _Callable
from typing import Any as _Any

from symop.interop.mxnet import symbol_contrib as _loops
from symop.interop.mxnet.contrib_updates import updates as _updates
from symop.interop.mxnet.errors import MXNetError as _MXNetError
from symop.interop.mxnet.namespaces import Namespace as _Namespace
from symop.interop.mxnet.operators import TABLE as _TABLE
from symop.interop.mxnet.operators import Operator as _Operator
from symop.interop.mxnet.operators import find as _find
from symop.interop.mxnet.samplers import samplers as _samplers
from symop.interop.mxnet.symbol_making import Group, Variable, var
from symop.interop.mxnet.symbol_making import call as _call
from symop.interop.mxnet.symbol_operators import binary as _binary
from symop.interop.mxnet.symbol_operators import called as _called
from symop.interop.mxnet.symbol_operators import split_v2
from symop.interop.mxnet.symbols import Symbol, load, load_json
from symop.interop.mxnet.zipfian import rand_zipfian_by as _rand_zipfian_by

__all__ = [
    "Group", "Symbol", "Variable", "arange", "contrib", "eye", "full", "histogram", "hypot",
    "image", "linalg", "linspace", "load", "load_json", "maximum", "minimum", "ones", "op", "pow",
    "power", "random", "sparse", "split_v2", "var", "zeros",
]  # fmt: skip
Shape = int | tuple[int, ...] | list[int]

# Creation --------------------------------------------------------------------------------------


def zeros(shape: Shape, dtype: _Any = None, **others: _Any) -> Symbol:
    """Zeros; float32 by default. A length of 0 is inferred."""
    result: Symbol = _called("_zeros")(shape=shape, dtype=dtype or "float32", **others)
    return result


def ones(shape: Shape, dtype: _Any = None, **others: _Any) -> Symbol:
    """Ones; float32 by default."""
    result: Symbol = _called("_ones")(shape=shape, dtype=dtype or "float32", **others)
    return result


def full(shape: Shape, val: float, dtype: _Any = None, **others: _Any) -> Symbol:
    """An array filled with a number."""
    options = {"dtype": dtype or "float32", **others}
    result: Symbol = _called("_full")(shape=shape, value=float(val), **options)
    return result


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: _Any = None,
) -> Symbol:
    """Evenly spaced numbers up to ``stop``, exclusive, each repeated ``repeat`` times."""
    options = {"repeat": repeat, "infer_range": infer_range, "dtype": dtype or "float32"}
    result: Symbol = _called("_arange")(start=start, stop=stop, step=step, name=name, **options)
    return result


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    name: str | None = None,
    dtype: _Any = None,
) -> Symbol:
    """``num`` evenly spaced numbers."""
    options = {"endpoint": endpoint, "name": name, "dtype": dtype or "float32"}
    result: Symbol = _called("_linspace")(start=start, stop=stop, num=num, **options)
    return result


def eye(
    N: int,  # MXNet's name
    M: int = 0,
    k: int = 0,
    dtype: _Any = None,
    **others: _Any,
) -> Symbol:
    """Ones on a diagonal, zeros elsewhere."""
    result: Symbol = _called("_eye")(N=N, M=M, k=k, dtype=dtype or "float32", **others)
    return result


def histogram(a: Symbol, bins: int | Symbol = 10, range: _Any = None, **others: _Any) -> Symbol:
    """The number of entries in each bin, and the bin bounds.

    Raises:
        ValueError: a number of bins is given without a range.
    """
    if isinstance(bins, Symbol):
        return _called("_histogram")(data=a, bins=bins, **others)  # type: ignore[no-any-return]
    if range is None:
        raise ValueError("histogram: range must be given with a number of bins, got none")
    result: Symbol = _called("_histogram")(data=a, bin_cnt=bins, range=range, **others)
    return result


pow = power = _binary("power")
maximum, minimum, hypot = _binary("maximum"), _binary("minimum"), _binary("hypot")

# Namespaces ------------------------------------------------------------------------------------


def _caller(operator: _Operator, called: str) -> _Callable[..., Symbol]:
    def function(*args: _Any, **kwargs: _Any) -> Symbol:
        return _call(operator, called, args, kwargs)

    function.__name__ = function.__qualname__ = called
    function.__doc__ = operator.function.__doc__
    return function


def _scale(given: _Any) -> Symbol:
    return given if isinstance(given, Symbol) else full((1,), given)


random = _Namespace("mx.sym.random", "_random_", _caller, _samplers(_called, least=None))
linalg = _Namespace("mx.sym.linalg", "_linalg_", _caller)
image = _Namespace("mx.sym.image", "_image_", _caller)
contrib = _Namespace(
    "mx.sym.contrib",
    "_contrib_",
    _caller,
    {
        **{one.__name__: one for one in (_loops.cond, _loops.foreach, _loops.while_loop)},
        "rand_zipfian": _rand_zipfian_by(_called),
        **_updates(_called, _scale),
    },
)
op = _internal = _Namespace("mx.sym.op", "", _caller)
sparse = _Namespace(
    "mx.sym.sparse",
    "",
    _caller,
    {
        "adagrad_update": _caller(_find("_sparse_adagrad_update"), "adagrad_update"),
        "retain": _caller(_find("_sparse_retain"), "retain"),
        "square_sum": _caller(_find("_square_sum"), "square_sum"),
    },
)


def __getattr__(name: str) -> _Callable[..., Symbol]:
    if name.startswith("__"):
        raise AttributeError(f"mx.sym has no operator {name!r}")
    try:
        function = _called(name)
    except _MXNetError as error:
        raise AttributeError(f"mx.sym: {error}") from None
    if name in _TABLE:  # not cached for user operators, which may be declared again
        globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({*__all__, *_TABLE})
