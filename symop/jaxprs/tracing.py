"""Functions of JAX as jaxprs, and these as graphs."""

import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr

from registry.errors import ArgumentError, DataDependentError
from symop.graph.nodes import Node, topological, variable
from symop.jaxprs import arrays, control_flow, custom_rules
from symop.jaxprs.primitives import otherwise
from symop.jaxprs.reading import Foreign, Reader, constant_of, is_key, is_user_file, type_of_aval
from symop.symbol.symbol import Symbol

_TABLES = (arrays, control_flow, custom_rules)
"""Modules that declare translations when they are imported."""


class Traced(NamedTuple):
    """A function traced by JAX.

    Attributes:
        program: its closed jaxpr.
        tree: the tree structure of its results.
    """

    program: ClosedJaxpr
    tree: Any

    def read(self, inputs: Sequence[Node], *, strict: bool) -> tuple[list[Node], list[Foreign]]:
        """Returns the outputs for ``inputs``, and the equations that are opaque.

        Raises:
            ArgumentError: the function closes over a value of an outer transformation.
        """
        if any(isinstance(one, jax.core.Tracer) for one in self.program.consts):
            raise ArgumentError(
                "from_jax: a function must not close over a value that JAX traces; pass it as an "
                "argument, or use so.transform"
            )
        reader = Reader(otherwise, strict=strict)
        return reader.read(self.program, inputs), reader.foreign


_NEEDS_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
"""JAX's errors for Python code that reads the value of a traced array."""


def trace(function: Callable[..., Any], examples: Sequence[Any], statics: Sequence[int]) -> Traced:
    """Traces a function with JAX.

    Raises:
        DataDependentError: it reads values of its arguments.
    """
    tracer = jax.make_jaxpr(function, static_argnums=tuple(statics), return_shape=True)
    try:
        program, shapes = tracer(*examples)
    except _NEEDS_VALUES as error:
        summary = str(error).partition("\n")[0]
        raise DataDependentError(
            "from_jax: a function must not read values of its arguments while it is traced, got "
            f"{_user_line(error)}: {summary} Use jnp.where to choose between arrays, lax.cond, "
            "lax.scan or lax.while_loop to branch and to loop; an argument that is no array can be "
            "static (static_argnums)."
        ) from error
    return Traced(program, jax.tree_util.tree_structure(shapes))


def _user_line(error: Exception) -> str:
    """Returns the innermost line of the user in the traceback of ``error``."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [one for one in frames if is_user_file(one.filename)]
    return f"{lines[-1].filename}:{lines[-1].lineno}" if lines else "an unknown line"


def static_places(statics: Sequence[int], count: int) -> set[int]:
    """Returns which of ``count`` arguments are static; those that were not passed are none."""
    return {i % count for i in statics if -count <= i < count}


# Graphs ------------------------------------------------------------------------------------------


class JaxGraph(NamedTuple):
    """A function of JAX as a graph over variables ``x0``, ``x1`` and so on.

    Attributes:
        nodes: the outputs.
        inputs: the variables of the arguments.
        captured: the tracers over which the function closes and that the outputs read, by the names
            of their variables.
        tree: the tree structure of the results.
        avals: the types of the results in JAX.
    """

    nodes: list[Node]
    inputs: list[Node]
    captured: dict[str, Any]
    tree: Any
    avals: Sequence[Any]

    @property
    def names(self) -> list[str]:
        """The names of the variables of the arguments."""
        return [str(one.name) for one in self.inputs]

    @property
    def symbol(self) -> Symbol:
        """The outputs as a symbol with all arguments."""
        return Symbol(self.nodes, tuple(self.inputs))


def graph_of(
    function: Callable[..., Any],
    examples: Sequence[Any],
    statics: Sequence[int] = (),
    *,
    strict: bool = False,
) -> JaxGraph:
    """Converts a function as ``from_jax`` does, where it may close over tracers."""
    traced = trace(function, examples, statics)
    inputs = [
        variable(f"x{i}", type.shape, type.dtype)
        for i, type in enumerate(map(type_of_aval, traced.program.in_avals))
    ]
    captured: dict[Node, Any] = {}
    consts = []
    for value in traced.program.consts:
        if isinstance(value, jax.core.Tracer):
            type = type_of_aval(jax.typeof(value))
            consts.append(variable(f"captured{len(captured)}", type.shape, type.dtype))
            captured[consts[-1]] = numbers(value)
        else:
            consts.append(constant_of(value))
    reader = Reader(otherwise, strict=strict)
    nodes = reader.read_open(traced.program.jaxpr, consts, inputs)
    read = {str(one.name): captured[one] for one in topological(nodes) if one in captured}
    return JaxGraph(nodes, inputs, read, traced.tree, traced.program.out_avals)


def numbers(leaf: Any) -> Any:
    """Returns an array; a random key as its numbers."""
    return jax.random.key_data(leaf) if is_key(jax.typeof(leaf)) else leaf
