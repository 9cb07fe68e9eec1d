"""Entrywise functions of an array and a number."""

from collections.abc import Callable, Mapping
from typing import Any

import symop as so
from registry.types import is_integer
from symop.interop.mxnet import partial_dtypes
from symop.interop.mxnet.operators import operator
from symop.interop.mxnet.ops.binary import ARITHMETIC, LOGIC, power, quotient, remainder
from symop.interop.mxnet.ops.values import is_whole, number_for
from symop.interop.mxnet.partial_dtypes import Dtypes
from symop.interop.mxnet.partial_shapes import same

Function = Callable[[Any, Any], Any]


def _swapped(function: Function) -> Function:
    return lambda data, number: function(number, data)


_FUNCTIONS: Mapping[str, Function] = {
    "_plus_scalar": so.add,
    "_minus_scalar": so.subtract,
    "_rminus_scalar": _swapped(so.subtract),
    "_mul_scalar": so.multiply,
    "_div_scalar": quotient,
    "_rdiv_scalar": _swapped(quotient),
    "_rmod_scalar": _swapped(remainder),
    "_rpower_scalar": _swapped(power),
    "_scatter_plus_scalar": so.add,
    "_scatter_minus_scalar": so.subtract,
    **{f"_{name}_scalar": function for name, function in {**ARITHMETIC, **LOGIC}.items()},
}


def _other_name(name: str) -> str:
    """``_RMinusScalar`` for ``_rminus_scalar``."""
    reverse, rest = ("R", name[2:]) if name.startswith("_r") else ("", name[1:])
    return f"_{reverse}{rest.title().replace('_', '')}"


def _promoted(data: Any, is_int: bool) -> Any:
    """``data`` promoted for a number that is not an integer; booleans become numbers."""
    if data.dtype.name == "bool":
        return so.cast(data, dtype="int64" if is_int else "float64")
    return so.cast(data, dtype="float64") if is_whole(data) and not is_int else data


def _dtypes(given: Dtypes, found: Dtypes, is_int: bool) -> None:
    dtype = given[0]
    if dtype is None or (dtype.name != "bool" and (is_int or not is_integer(dtype))):
        partial_dtypes.same(given, found)


def _declare(name: str, function: Function) -> None:
    names = (name,) if name.startswith("_scatter") else (name, _other_name(name))

    @operator(*names, shapes=same, dtypes=_dtypes)
    def call(data: Any, *, scalar: float = 1.0, is_int: bool = True) -> Any:
        x = _promoted(data, is_int)
        return function(x, number_for(x, scalar))


for _name, _function in _FUNCTIONS.items():
    _declare(_name, _function)
