"""Equations that no operator expresses, such as callbacks and foreign calls."""

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import JaxprEqn

from registry.errors import UnsupportedPrimitiveError
from registry.ops.lax.functions import named_function
from registry.xla.device_types import type_axes, varied
from symop.graph.nodes import Node
from symop.jaxprs.reading import (
    Foreign,
    Reader,
    Values,
    avals_of,
    emit_typed,
    is_key,
    key_impl,
    origin_of_equation,
    spans_devices,
    type_of_aval,
)


class EquationFunction:
    """An equation of a jaxpr as a function of arrays, random keys as their numbers."""

    def __init__(self, equation: JaxprEqn) -> None:
        """Creates the function."""
        self._equation = equation
        self._impls = [
            key_impl(aval.dtype) if is_key(aval) else "" for aval in avals_of(equation.invars)
        ]

    def __call__(self, *arrays: Any) -> list[Any]:
        """Returns the outputs of the equation."""
        # Inside of jax.shard_map an equation takes values that vary along the axes of its types.
        avals = zip(arrays, avals_of(self._equation.invars), strict=True)
        pairs = zip([varied(one, type_axes(aval)) for one, aval in avals], self._impls, strict=True)
        values = [jax.random.wrap_key_data(one, impl=impl) if impl else one for one, impl in pairs]
        results = apply_equation(self._equation, values)
        typed = zip(results, avals_of(self._equation.outvars), strict=True)
        return [jax.random.key_data(one) if is_key(aval) else one for one, aval in typed]

    def __repr__(self) -> str:
        return f"<{self._equation.primitive.name}>"


def apply_equation(equation: JaxprEqn, values: Sequence[Any]) -> list[Any]:
    """Returns the outputs of an equation for JAX values of its inputs."""
    primitive: Any = equation.primitive  # whose methods have no types
    results = primitive.bind(*values, **primitive.get_bind_params(equation.params))
    return list(results) if primitive.multiple_results else [results]


def opaque(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    """Translates an equation as one operator that JAX evaluates and differentiates.

    Raises:
        UnsupportedPrimitiveError: the reader is strict.
    """
    place = str(origin_of_equation(equation))
    foreign = Foreign(equation.primitive.name, place, spans_devices(equation))
    if reader.strict:
        raise UnsupportedPrimitiveError(
            f"from_jax: each primitive must be an operator where strict=True, got {foreign}; "
            "strict=False makes it an opaque operator, which JAX differentiates"
        )
    reader.foreign.append(foreign)
    types = tuple([type_of_aval(one) for one in avals_of(equation.outvars)])
    operands = tuple([one.type for one in inputs])
    function = named_function(str(foreign), EquationFunction(equation), (operands, types))
    return emit_typed("jax_function", inputs, types, function=function, n_out=len(types))
