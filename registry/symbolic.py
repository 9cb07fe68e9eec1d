"""Symbolic: values without numbers, whose conversion to numbers and arrays is an error."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Self, SupportsIndex

import numpy as np

from registry.errors import ArgumentError, InvalidIndexError, NotComputedError, UnknownTypeError
from registry.jax_operators import reflected_operators
from registry.tracebacks import api_boundary, api_class
from registry.types import is_boolean
from registry.var import Operators, Var, infix


@api_class
class Symbolic(Var):
    """A value that is known by its computation alone: a node of a graph, a symbol, a variable.

    Python, NumPy and JAX convert what they do not know. These conversions raise an error that says
    what to call instead.
    """

    __slots__ = ()

    def _remedy(self) -> str:
        """Returns what to do where numbers are needed, or an empty text."""
        return ""

    def _refuse(self, wanted: str, instead: str = "") -> NoReturn:
        """Raises the error for a use that needs the numbers of this value."""
        raise ArgumentError(self._refusal(wanted, instead))

    def _refusal(self, wanted: str, instead: str) -> str:
        advice = ", or ".join(one for one in (instead, self._remedy()) if one)
        reason = f"a {type(self).__name__} has no numbers before it runs"
        return f"{wanted}: {reason}; {advice}" if advice else f"{wanted}: {reason}"

    @api_boundary
    def __float__(self) -> float:
        self._refuse("float(x)")

    @api_boundary
    def __int__(self) -> int:
        self._refuse("int(x)")

    @api_boundary
    def __complex__(self) -> complex:
        self._refuse("complex(x)")

    @api_boundary
    def __round__(self, digits: int | None = None) -> Any:
        if digits is None:
            self._refuse("round(x)")
        return self.round(decimals=digits)

    @api_boundary
    def __bool__(self) -> bool:
        advice = filter(None, ["so.where(x, a, b) and so.cond choose by it", self._remedy()])
        raise ArgumentError(
            "bool(x): the truth of a value that is not computed yet is unknown, got a "
            f"{type(self).__name__}; {', or '.join(advice)}"
        )

    @api_boundary
    def __format__(self, spec: str) -> str:
        if spec:
            self._refuse(f"format(x, {spec!r})")
        return str(self)

    def item(self, *index: int) -> NoReturn:
        """Raises an ``ArgumentError``: only arrays have entries."""
        self._refuse("x.item()")

    def tolist(self) -> NoReturn:
        """Raises an ``ArgumentError``: only arrays have entries."""
        self._refuse("x.tolist()")

    @api_boundary
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self._refuse("np.asarray(x)")

    @property
    @api_boundary
    def __jax_array__(self) -> NoReturn:
        """Raises an error wherever JAX looks for it, which it does before it calls it.

        The exception are JAX's own operators: without the attribute, Python calls the reflected
        operator.
        """
        if sys._getframe(2).f_code in reflected_operators():
            raise AttributeError("__jax_array__")
        advice = "call symop's operators, as so.sin(x) for jnp.sin(x)"
        raise NotComputedError(self._refusal("jax", advice))

    @api_boundary
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Answers NumPy's questions about the type; refuses NumPy's other functions."""
        if function in _OF_TYPES:
            return _OF_TYPES[function](self)
        self._refuse(*_by_operator(function.__name__))

    @api_boundary
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Computes ``array + x`` and the like; refuses NumPy's other functions."""
        sign = _SIGNS.get(ufunc)
        if sign is None or method != "__call__" or options:
            self._refuse(*_by_operator(ufunc.__name__))
        return infix[sign](*inputs)

    def _refuse_masks(self, index: Any) -> None:
        """Refuses masks in an index, where their dtype is known: only numbers tell their shapes."""
        for entry in index if isinstance(index, tuple) else (index,):
            if isinstance(entry, Symbolic) and _holds_truth(entry):
                raise InvalidIndexError(
                    f"x[...]: a mask must not be in the index of a {type(self).__name__}; use "
                    "where(mask, x, other), or boolean_mask"
                )

    # NumPy's methods

    def reshape(self, *shape: int | Sequence[int], **options: Any) -> Self:
        """Returns the value with another shape: a tuple, or separate lengths; one may be -1.

        Example:
            >>> import symop as so
            >>> x = so.var("x", shape=(3, 4))
            >>> x.reshape(2, -1).shape, x.reshape((12,)).shape
            ((2, 6), (12,))
        """
        result: Self = _find("reshape")(self, **_together("shape", shape), **options)
        return result

    def transpose(self, *axes: int | Sequence[int], **options: Any) -> Self:
        """Returns the value with its axes permuted: a tuple or separate axes; by default reversed.

        Example:
            >>> import symop as so
            >>> so.var("x", shape=(3, 4, 5)).transpose(1, 0, 2).shape
            (4, 3, 5)
        """
        result: Self = _find("permute_dims")(self, **_together("axes", axes), **options)
        return result

    @property
    def T(self) -> Self:  # noqa: N802  # NumPy's name
        """The value with its axes reversed."""
        return self.transpose()

    @property
    def mT(self) -> Self:  # noqa: N802  # the array API's name
        """The value with its last two axes swapped."""
        result: Self = _find("swapaxes")(self, axis1=-1, axis2=-2)
        return result

    @property
    def at(self) -> Any:
        """Changed copies, as of a JAX array: ``x.at[index].set(value)``, ``.add(value)`` and so on.

        The methods are ``set``, ``add``, ``subtract``, ``multiply``, ``divide``, ``power``,
        ``min``, ``max``, ``apply`` and ``get``.

        Example:
            >>> import symop as so
            >>> x = so.var("x", shape=(3,))
            >>> x.at[1].set(5.0).eval(x=[1.0, 2.0, 3.0]).tolist()
            [1.0, 5.0, 3.0]
        """
        return infix["at"](self)

    @api_boundary
    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise ArgumentError(
            f"x[...] = value: a {type(self).__name__} cannot be changed; use "
            "x = x.at[...].set(value), which returns a new value"
        )


_SIGNS = {
    np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/", np.floor_divide: "//",
    np.remainder: "%", np.power: "**", np.matmul: "@", np.bitwise_and: "&", np.bitwise_or: "|",
    np.bitwise_xor: "^", np.left_shift: "<<", np.right_shift: ">>", np.less: "<",
    np.less_equal: "<=", np.greater: ">", np.greater_equal: ">=", np.equal: "==",
    np.not_equal: "!=",
}  # fmt: skip
"""The ufuncs that NumPy calls for the operators of an array on the left."""


def _holds_truth(value: Var) -> bool:
    try:
        return is_boolean(value.dtype)
    except UnknownTypeError:
        return False


_OF_TYPES = {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
}


def _find(name: str) -> Callable[..., Any]:
    operator = Operators.find(name)
    assert operator is not None  # the catalogue declares it
    return operator


def _together(name: str, values: tuple[Any, ...]) -> dict[str, Any]:
    """Returns the attribute of values that a call passes together or separately."""
    if not values:
        return {}
    single = len(values) == 1 and not isinstance(values[0], SupportsIndex)
    return {name: values[0] if single else values}


def _by_operator(name: str) -> tuple[str, str]:
    """Returns the function ``name`` of NumPy, and as advice the operator of that name."""
    return f"np.{name}", "" if Operators.find(name) is None else f"call so.{name}(x)"
