"""JAX's primitives as compositions of operators.

``ALIKE`` lists the primitives that one operator computes with the same kernel. The functions below
translate those that have parameters. Everything else, if its parameters can be written as text,
becomes ``lax_primitive``, and is opaque otherwise.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import JaxprEqn

from registry.errors import AttributeValueError
from registry.ops.lax.primitive import BINDINGS, params_of
from registry.table import get
from registry.types import is_floating, is_inexact, is_integer
from symop.graph.nodes import Node
from symop.jaxprs.opaque import opaque
from symop.jaxprs.reading import (
    Reader,
    Values,
    avals_of,
    emit_typed,
    is_key,
    key_impl,
    translates,
    type_of_aval,
)

ALIKE = {
    **dict.fromkeys(("add", "add_any"), "add"),
    **{name: name for name in (
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "conj",
        "cos", "cosh", "digamma", "erf", "erfc", "exp", "exp2", "expm1", "floor", "imag", "log",
        "log1p", "log2", "lgamma", "real", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "tan",
        "tanh",
    )},
    "sub": "subtract", "mul": "multiply", "neg": "negative", "max": "maximum", "min": "minimum",
    "logistic": "sigmoid", "erf_inv": "erfinv", "is_finite": "isfinite",
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "bessel_i0e": "bessel_i0e", "bessel_i1e": "bessel_i1e",
    "stop_gradient": "stop_gradient",
}  # fmt: skip
"""The operator with the same kernel as a primitive, for operands of one dtype."""
FLOATING = {"div": "divide", "pow": "power"}
"""Like ``ALIKE``, for floating and complex operands."""
REDUCTIONS = {"reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod"}
BITWISE = {
    "and": ("logical_and", "bitwise_and"),
    "or": ("logical_or", "bitwise_or"),
    "xor": ("logical_xor", "bitwise_xor"),
    "not": ("logical_not", "bitwise_invert"),
}
"""The operators for booleans and for integers."""


def otherwise(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    """Translates a primitive that has no entry in a table."""
    name = equation.primitive.name
    if name not in BINDINGS:
        return opaque(reader, equation, inputs)
    try:
        params = params_of(name, equation.params)
    except AttributeValueError:
        return opaque(reader, equation, inputs)
    keys = [key_impl(one.dtype) if is_key(one) else "" for one in avals_of(equation.invars)]
    return emit_typed(
        "lax_primitive",
        inputs,
        [type_of_aval(one) for one in avals_of(equation.outvars)],
        primitive=name,
        params=params,
        n_out=len(equation.outvars),
        keys=tuple(keys) if any(keys) else (),
    )


def _named(operator: str) -> Any:
    def translate(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
        if any(is_key(one.aval) for one in equation.invars) or equation.params.get("accuracy"):
            return otherwise(reader, equation, inputs)
        return [get(operator)(*inputs)]

    return translate


for _primitive, _operator in ALIKE.items():
    translates(_primitive)(_named(_operator))


@translates(*FLOATING)
def _floating(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    dtypes = {one.type.dtype for one in inputs}
    if len(dtypes) > 1 or not all(map(is_inexact, dtypes)):
        return otherwise(reader, equation, inputs)
    return [get(FLOATING[equation.primitive.name])(*inputs)]


@translates(*BITWISE)
def _bitwise(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    of_booleans, of_integers = BITWISE[equation.primitive.name]
    return [get(of_booleans if inputs[0].type.dtype == np.bool_ else of_integers)(*inputs)]


@translates("integer_pow")
def _integer_power(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    (x,) = inputs
    return (
        [get("integer_power")(x, exponent=equation.params["y"])]
        if is_floating(x.type.dtype)
        else otherwise(reader, equation, inputs)
    )


@translates("convert_element_type")
def _cast(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    (x,) = inputs
    dtype = type_of_aval(equation.outvars[0].aval).dtype
    return [x] if x.type.dtype == dtype else [get("cast")(x, dtype=dtype)]


@translates(
    "copy",
    "copy_p",
    "name",
    "pvary",
    "reduced_vary_cast_p",
    "random_clone",
    "random_unwrap",
    "random_wrap",
)
def _same(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    return inputs


@translates("device_put")
def _device_put(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    """Keeps values that are moved to no particular device."""
    if any(one is not None for one in equation.params["devices"]):
        return otherwise(reader, equation, inputs)
    return inputs


# Shapes ------------------------------------------------------------------------------------------


def _has_keys(equation: JaxprEqn) -> bool:
    return any(is_key(one.aval) for one in (*equation.invars, *equation.outvars))


@translates("broadcast_in_dim")
def _broadcast(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    if _has_keys(equation) or len(inputs) > 1:
        return otherwise(reader, equation, inputs)
    (x,) = inputs
    shape = tuple(equation.params["shape"])
    places = equation.params["broadcast_dimensions"]
    aligned = [1] * len(shape)
    for place, length in zip(places, x.type.shape, strict=True):
        aligned[place] = length
    kept = [one for one in aligned if one != 1] == [one for one in x.type.shape if one != 1]
    leading = len(shape) - len(x.type.shape)
    if not kept or tuple(places) != tuple(range(leading, len(shape))):
        x = get("reshape")(x, shape=tuple(aligned))
    return [x] if x.type.shape == shape else [get("broadcast_to")(x, shape=shape)]


@translates("reshape", "squeeze")
def _reshape(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    if _has_keys(equation) or (
        equation.params.get("dimensions") and (equation.primitive.name == "reshape")
    ):
        return otherwise(reader, equation, inputs)
    return [get("reshape")(inputs[0], shape=tuple(avals_of(equation.outvars)[0].shape))]


@translates("transpose")
def _transpose(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    if _has_keys(equation):
        return otherwise(reader, equation, inputs)
    return [get("permute_dims")(inputs[0], axes=tuple(equation.params["permutation"]))]


@translates("slice")
def _slice(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    if _has_keys(equation):
        return otherwise(reader, equation, inputs)
    params = equation.params
    steps = params["strides"]
    cut = get("slice")(
        inputs[0],
        begin=tuple(params["start_indices"]),
        end=tuple(params["limit_indices"]),
        step=None if steps is None else tuple(steps),
    )
    return [cut]


@translates("concatenate")
def _concatenate(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    if _has_keys(equation):
        return otherwise(reader, equation, inputs)
    return [get("concat")(*inputs, axis=equation.params["dimension"])]


@translates("rev")
def _reverse(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    if _has_keys(equation):
        return otherwise(reader, equation, inputs)
    return [get("flip")(inputs[0], axis=tuple(equation.params["dimensions"]))]


@translates("select_n")
def _select(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    which, *choices = inputs
    plain = which.type.dtype == np.bool_ and len(choices) == 2 and not _has_keys(equation)
    if not plain:
        return otherwise(reader, equation, inputs)
    return [get("where")(which, choices[1], choices[0])]


# Reductions and products -------------------------------------------------------------------------


@translates(*REDUCTIONS)
def _reduce(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    (x,) = inputs
    axes = tuple(equation.params["axes"])
    if is_integer(x.type.dtype) or x.type.dtype == np.bool_ or not axes:
        return otherwise(reader, equation, inputs)
    return [get(REDUCTIONS[equation.primitive.name])(x, axis=axes)]


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@translates("dot_general")
def _product(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    params = equation.params
    x, y = inputs
    dtype = type_of_aval(equation.outvars[0].aval).dtype
    exact = params.get("precision") is None and x.type.dtype == y.type.dtype == dtype
    if not exact or not is_inexact(dtype) or params.get("out_sharding") is not None:
        return otherwise(reader, equation, inputs)
    n_x, n_y = len(x.type.shape), len(y.type.shape)
    return [
        get("einsum")(x, y, equation=equation_of_product(params["dimension_numbers"], n_x, n_y))
    ]


def equation_of_product(numbers: Any, n_x: int, n_y: int) -> str:
    """Returns the equation of ``einsum(x, y)`` for the dimension numbers of x and y."""
    (x_sum, y_sum), (x_batch, y_batch) = numbers
    left = list(_LETTERS[:n_x])
    right = list(_LETTERS[n_x : n_x + n_y])
    for i, j in zip((*x_sum, *x_batch), (*y_sum, *y_batch), strict=True):
        right[j] = left[i]
    batch = [left[i] for i in x_batch]
    free = [left[i] for i in range(n_x) if i not in (*x_sum, *x_batch)]
    free += [right[j] for j in range(n_y) if j not in (*y_sum, *y_batch)]
    return f"{''.join(left)},{''.join(right)}->{''.join([*batch, *free])}"
