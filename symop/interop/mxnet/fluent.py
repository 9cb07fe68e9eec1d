"""Names shared by arrays and symbols: operators as methods, and Python's operators."""

from collections.abc import Callable
from typing import Any, NamedTuple

Find = Callable[[str], Callable[..., Any]]
METHODS = (
    "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax",
    "argmax_channel", "argmin", "argsort", "broadcast_axes", "broadcast_like", "broadcast_to",
    "cbrt", "ceil", "clip", "cos", "cosh", "degrees", "depth_to_space", "diag", "exp", "expm1",
    "fix", "flip", "floor", "log", "log10", "log1p", "log2", "log_softmax", "max", "mean", "min",
    "nanprod", "nansum", "norm", "one_hot", "ones_like", "pad", "pick", "prod", "radians",
    "rcbrt", "reciprocal", "relu", "repeat", "reshape_like", "rint", "round", "rsqrt",
    "shape_array", "sigmoid", "sign", "sin", "sinh", "size_array", "slice", "slice_axis",
    "slice_like", "softmax", "softmin", "sort", "space_to_depth", "split", "sqrt", "square",
    "sum", "swapaxes", "take", "tan", "tanh", "tile", "topk", "trunc", "zeros_like",
)  # fmt: skip
"""Operators that are methods; the array or symbol is their first input."""


def fluent_methods(kind: type, find: Find) -> dict[str, Callable[..., Any]]:
    """Returns the methods shared by arrays and symbols, by name.

    Args:
        kind: the class that they are for.
        find: returns the function that calls an operator.
    """

    def fluent(name: str) -> Callable[..., Any]:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return find(name)(self, *args, **kwargs)

        return method

    def transpose(self: Any, *axes: Any, **kwargs: Any) -> Any:
        if axes and axes[0] is not None:
            kwargs["axes"] = axes if isinstance(axes[0], int) else axes[0]
        return find("transpose")(self, **kwargs)

    # Symbols ignore ``inplace``; arrays define these three themselves.
    def flatten(self: Any, inplace: bool = False, **kwargs: Any) -> Any:
        return find("Flatten")(self, **kwargs)

    def expand_dims(self: Any, axis: int, inplace: bool = False, **kwargs: Any) -> Any:
        return find("expand_dims")(self, axis=axis, **kwargs)

    def squeeze(self: Any, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Any:
        return find("squeeze")(self, axis=axis, **kwargs)

    result = {name: fluent(name) for name in METHODS}
    for method in (transpose, flatten, expand_dims, squeeze):
        result[method.__name__] = method
    for name, method in result.items():
        method.__name__, method.__qualname__ = name, f"{kind.__name__}.{name}"
        method.__doc__ = f"The operator ``{name}`` on this {kind.__name__}."
    return result


class Binary(NamedTuple):
    """A binary function, by the names of its operators.

    Attributes:
        arrays: for two arrays, which are broadcast.
        number: for an array and a number.
        swapped: for a number and an array, with the array first; None if the function commutes.
        method: the stem of Python's method names, if there are any.
        symbols: for two symbols of the same shape.
        symbol_number: for a symbol and a number.
        symbol_swapped: for a number and a symbol, with the symbol first.
    """

    arrays: str
    number: str
    swapped: str | None
    method: str | None
    symbols: str
    symbol_number: str
    symbol_swapped: str | None


def _arithmetic(name: str, swapped: str | None, method: str | None, title: str) -> Binary:
    """A function whose operators on symbols have separate names."""
    reflected = None if swapped is None else f"_R{title}Scalar"
    scalar = {"add": "plus", "sub": "minus"}.get(name, name)
    return Binary(
        f"broadcast_{name}",
        f"_{scalar}_scalar",
        swapped,
        method,
        f"_{title}",
        f"_{title}Scalar",
        reflected,
    )


def _question(name: str, swapped: str | None = None, method: str | None = None) -> Binary:
    """A comparison; with a number on the left it is the reversed comparison."""
    array, number = f"_{name}", f"_{name}_scalar"
    return Binary(f"broadcast_{name}", number, swapped, method, array, number, swapped)


BINARY = {
    "add": _arithmetic("add", None, "add", "Plus"),
    "subtract": _arithmetic("sub", "_rminus_scalar", "sub", "Minus"),
    "multiply": _arithmetic("mul", None, "mul", "Mul"),
    "divide": _arithmetic("div", "_rdiv_scalar", "truediv", "Div"),
    "modulo": _arithmetic("mod", "_rmod_scalar", "mod", "Mod"),
    "power": _arithmetic("power", "_rpower_scalar", "pow", "Power")._replace(
        symbol_swapped="_rpower_scalar"
    ),
    "maximum": _arithmetic("maximum", None, None, "Maximum"),
    "minimum": _arithmetic("minimum", None, None, "Minimum"),
    "hypot": _arithmetic("hypot", None, None, "Hypot"),
    "equal": _question("equal", None, "eq"),
    "not_equal": _question("not_equal", None, "ne"),
    "greater": _question("greater", "_lesser_scalar", "gt"),
    "greater_equal": _question("greater_equal", "_lesser_equal_scalar", "ge"),
    "lesser": _question("lesser", "_greater_scalar", "lt"),
    "lesser_equal": _question("lesser_equal", "_greater_equal_scalar", "le"),
    "logical_and": _question("logical_and"),
    "logical_or": _question("logical_or"),
    "logical_xor": _question("logical_xor"),
}
"""Binary functions of arrays, symbols and numbers, by their names in ``mx.nd``."""
COMPARISONS = ("eq", "ne", "gt", "ge", "lt", "le")
_STEMS = [one.method for one in BINARY.values() if one.method is not None]
IN_PLACE = frozenset(f"__i{one}__" for one in _STEMS if one not in COMPARISONS)
"""Python's in-place operators."""
HOOKS = frozenset(METHODS).union(
    ("transpose", "flatten", "expand_dims", "squeeze", "reshape", "split_v2"),
    ("__neg__", "__abs__"),
    (f"__{one}__" for one in _STEMS),
    (f"__r{one}__" for one in _STEMS if one not in COMPARISONS),
)
"""The methods of arrays and symbols that call operators."""
NUMBERS_ONLY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "modulo": lambda x, y: x % y,
    "power": lambda x, y: x**y,
    "maximum": max,
    "minimum": min,
    "hypot": lambda x, y: (x * x + y * y) ** 0.5,
    "equal": lambda x, y: int(x == y),
    "not_equal": lambda x, y: int(x != y),
    "greater": lambda x, y: int(x > y),
    "greater_equal": lambda x, y: int(x >= y),
    "lesser": lambda x, y: int(x < y),
    "lesser_equal": lambda x, y: int(x <= y),
    "logical_and": lambda x, y: int(bool(x and y)),
    "logical_or": lambda x, y: int(bool(x or y)),
    "logical_xor": lambda x, y: int(bool(x) != bool(y)),
}
"""The same functions of two numbers."""


def split_parts(parts: int | tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The attributes ``indices`` and ``sections`` of a split.

    Args:
        parts: the number of parts, or the start of each part but the first.
    """
    return ((), parts) if isinstance(parts, int) else ((0, *parts), 0)


def moved_axes(
    count: int, source: int | tuple[int, ...], destination: int | tuple[int, ...]
) -> tuple[int, ...]:
    """The order of ``count`` axes after moving some of them.

    Raises:
        ValueError: an axis is invalid, or the numbers of sources and destinations differ.
    """

    def axes(given: int | tuple[int, ...]) -> list[int]:
        listed = [given] if isinstance(given, int) else list(given)
        if not all(-count <= one < count for one in listed):
            raise ValueError(f"moveaxis: axes must be in [{-count}, {count}), got {listed}")
        return [one % count for one in listed]

    taken, places = axes(source), axes(destination)
    if not len(set(taken)) == len(taken) == len(places) == len(set(places)):
        raise ValueError(f"moveaxis: as many places as axes must be given, got {places}")
    order = [axis for axis in range(count) if axis not in taken]
    for place, axis in sorted(zip(places, taken, strict=True)):
        order.insert(place, axis)
    return tuple(order)
