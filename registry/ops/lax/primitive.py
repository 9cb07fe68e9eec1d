"""One operator for those of JAX's primitives that have no operator of their own."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive, primitives

from registry.cases import case, integers, misuse, workload
from registry.jax_derivatives.gradients import differentiate_kernel
from registry.operator.attributes import Check
from registry.operator.signature import Array, Optional
from registry.ops.lax.params import from_text, to_text
from registry.table import op

Binding = Callable[..., Any]

_BY_FUNCTION: dict[str, Binding] = {
    "ragged_dot_general": lax.ragged_dot_general,
    "scatter": lax.scatter,
    "scatter-add": lax.scatter_add,
    "scatter-max": lax.scatter_max,
    "scatter-min": lax.scatter_min,
    "scatter-mul": lax.scatter_mul,
    "scatter-sub": lax.scatter_sub,
}
"""The primitives that are not public themselves.

Some have a parameter that their public functions derive from the others.
"""
_DERIVED_PARAMS = ("update_consts", "update_jaxpr")
_NAMES = frozenset((
    "approx_top_k", "argmax", "argmin", "bitcast_convert_type", "broadcast_in_dim", "cbrt",
    "cholesky", "cholesky_update", "clamp", "clz", "complex", "concatenate",
    "conv_general_dilated", "convert_element_type", "copy", "cos", "cumlogsumexp", "cummax",
    "cummin", "cumprod", "cumsum", "div", "dot_general", "dynamic_slice",
    "dynamic_update_slice", "eig", "eigh", "eq_to", "exp", "exp2", "expm1", "fft", "gather",
    "hessenberg", "householder_product", "igamma", "igamma_grad_a", "igammac",
    "integer_pow", "iota", "le_to", "log", "log1p", "log2", "logistic", "lt_to", "lu",
    "lu_pivots_to_permutation", "mulhi", "nextafter", "one_minus_square",
    "optimization_barrier", "ormqr", "pad", "polygamma", "polynomial", "population_count",
    "pow", "qr", "random_bits", "random_fold_in", "random_gamma",
    "random_seed", "random_split", "reduce_and", "reduce_max", "reduce_min", "reduce_or",
    "reduce_precision", "reduce_prod", "reduce_sum", "reduce_window_max",
    "reduce_window_min", "reduce_window_sum", "reduce_xor", "regularized_incomplete_beta",
    "rem", "reshape", "rev", "rng_bit_generator", "rng_uniform", "round", "rsqrt", "schur",
    "select_and_gather_add", "select_and_scatter_add", "select_n", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sin", "slice", "sort", "split",
    "sqrt", "squeeze", "stack", "svd", "symmetric_product", "tan", "tanh", "threefry2x32",
    "tile", "top_k", "transpose", "triangular_solve", "tridiagonal", "tridiagonal_solve",
    "unstack", "zeta",
))  # fmt: skip


def _bindings() -> dict[str, Binding]:
    """Returns a function for each primitive that this version of JAX has."""
    places = (primitives, lax, lax.linalg)
    every = [one for place in places for one in vars(place).values() if isinstance(one, Primitive)]
    return {one.name: one.bind for one in every if one.name in _NAMES} | _BY_FUNCTION


BINDINGS = _bindings()
"""A function from values and parameters to results, by the name of a primitive."""
PrimitiveName = Annotated[
    str, Check("be a primitive that this version of JAX has", BINDINGS.__contains__)
]
Params = Annotated[
    str, Check("be the text of parameters", lambda text: from_text(text) is not None)
]


def params_of(name: str, params: dict[str, Any]) -> str:
    """Returns the text of an equation's parameters for ``lax_primitive``.

    Raises:
        AttributeValueError: a parameter has no text.
    """
    derived = _DERIVED_PARAMS if name in _BY_FUNCTION else ()
    return to_text({key: one for key, one in params.items() if key not in derived})


def _sample(name: str, **params: Any) -> dict[str, Any]:
    return {"primitive": name, "params": to_text(params)}


_ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
_ADDED = lax.ScatterDimensionNumbers((1,), (0,), (0,))


@op(
    outputs=("*parts",),
    count=lambda *, n_out: n_out,
    cases=[
        case(operands=[(4, 3)], **_sample("cumsum", axis=0, reverse=True)),
        case(operands=[(4, 3), integers(2, 1, high=4)],
             **_sample("gather", dimension_numbers=_ROWS, mode=lax.GatherScatterMode.CLIP,
                       slice_sizes=(1, 3), indices_are_sorted=False, unique_indices=False,
                       fill_value=None)),
        case(operands=[(4, 3), integers(2, 1, high=4), (2, 3)],
             **_sample("scatter-add", dimension_numbers=_ADDED, mode=lax.GatherScatterMode.CLIP,
                       indices_are_sorted=False, unique_indices=False)),
        case(operands=[integers(2, high=99, dtype="uint32")], keys=("threefry2x32",),
             **_sample("random_bits", bit_width=32, shape=(3,))),
        case(operands=[(2, 6)], n_out=2, **_sample("split", sizes=(2, 4), axis=1)),
        workload(operands=[(512, 512)], **_sample("cumsum", axis=0, reverse=True)),
        misuse("must be a primitive that this version of JAX has, got 'pure_callback'",
               operands=[(2,)], primitive="pure_callback", params="{}"),
        misuse("must be the text of parameters", operands=[(2,)], primitive="cumsum",
               params="axis=0"),
    ],
)  # fmt: skip
def lax_primitive(
    *operands: Annotated[Array, Optional()],
    primitive: PrimitiveName,
    params: Params,
    n_out: int = 1,
    keys: tuple[str, ...] = (),
) -> tuple[Array, ...]:
    """Applies the primitive of JAX called ``primitive``; JAX differentiates it.

    ``so.from_jax`` makes such calls for what no other operator computes.

    Args:
        operands: the operands of the primitive, random keys as their numbers.
        primitive: its name.
        params: its parameters, as ``registry.ops.lax.params.to_text`` writes them.
        n_out: the number of its results.
        keys: for each operand the implementation whose random keys it holds, else an empty string;
            operands beyond are arrays.

    Example:
        >>> import jax.numpy as jnp
        >>> lax_primitive(jnp.asarray([1, 2]), primitive="rev", params='{"dimensions": [0]}')
        (Array([2, 1], dtype=int32),)
    """
    values = [*map(_as_key, operands, keys), *map(jnp.asarray, operands[len(keys) :])]
    results = BINDINGS[primitive](*values, **from_text(params))
    return tuple(map(_numbers, results if isinstance(results, Sequence) else (results,)))


def _as_key(value: Any, impl: str) -> Any:
    return jax.random.wrap_key_data(value, impl=impl) if impl else jnp.asarray(value)


def _numbers(value: Any) -> Any:
    is_key = jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(value) if is_key else value


differentiate_kernel(lax_primitive)
