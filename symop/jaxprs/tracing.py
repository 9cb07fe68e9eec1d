"""Functions of JAX as jaxprs, and these as graphs."""

import functools
import inspect
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr

from registry.errors import ArgumentError, DataDependentError, OpaqueWarning
from symop.graph.nodes import Node, topological, variable
from symop.graph.origins import user_origin
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

    def read(self, inputs: Sequence[Node], *, strict: bool) -> list[Node]:
        """Returns the outputs for ``inputs``; warns of equations that are opaque.

        Raises:
            ArgumentError: the function closes over a value of an outer transformation.
        """
        if any(isinstance(one, jax.core.Tracer) for one in self.program.consts):
            raise ArgumentError(
                "from_jax: a function must not close over a value that JAX traces; pass it as an "
                "argument, or use so.transform"
            )
        warn = functools.partial(warn_of, caller="from_jax")
        reader = Reader(otherwise, strict=strict, warn=warn)
        nodes = reader.read(self.program, inputs)
        warn(reader.foreign)
        return nodes


_NEEDS_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
"""JAX's errors for Python code that reads the value of a traced array."""
_TRACED = re.compile("Tracer|concrete values|static integers|reps was not hashable")
"""What the messages of other errors say if a value that was needed is traced."""


def trace(
    function: Callable[..., Any],
    examples: Sequence[Any],
    statics: Sequence[int],
    caller: str = "from_jax",
) -> Traced:
    """Traces a function with JAX.

    Raises:
        DataDependentError: it reads values of its arguments.
    """
    tracer = jax.make_jaxpr(function, static_argnums=tuple(statics), return_shape=True)
    try:
        program, shapes = tracer(*examples)
    except (*_NEEDS_VALUES, TypeError, ValueError, IndexError) as error:
        if not _is_of_tracer(error):
            raise
        summary = str(error).partition("\n")[0].rstrip(".")
        raise DataDependentError(
            f"{caller}: a function must not read values of its arguments while it is traced, got "
            f"{_user_line(error)}: {summary}. Use jnp.where to choose between arrays, lax.cond, "
            "lax.scan or lax.while_loop to branch and to loop; an argument that is no array can be "
            "static (static_argnums)."
        ) from error
    return Traced(program, jax.tree_util.tree_structure(shapes))


def _is_of_tracer(error: BaseException | None) -> bool:
    """Whether an error, or one that caused it, is for a traced value where another is needed."""
    if error is None or isinstance(error, _NEEDS_VALUES):
        return error is not None
    says_so = isinstance(error, (TypeError, IndexError)) and _TRACED.search(str(error)) is not None
    return says_so or _is_of_tracer(error.__cause__ or error.__context__)


def _user_line(error: Exception) -> str:
    """Returns the innermost line of the user in the traceback of ``error``."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [one for one in frames if is_user_file(one.filename)]
    return f"{lines[-1].filename}:{lines[-1].lineno}" if lines else "an unknown line"


def positional(function: Callable[..., Any]) -> list[str]:
    """Returns the names of the parameters that take arguments by position."""
    return [one.name for one in _parameters(function) if one.kind in _BY_POSITION]


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a callable without a signature
        return []


def static_positions(function: Callable[..., Any], statics: int | Sequence[int]) -> list[int]:
    """Returns ``static_argnums``, those below zero counted from the end of the signature.

    Raises:
        ArgumentError: the function has no such argument.
    """
    numbers = [statics] if isinstance(statics, int) else list(statics)
    parameters = _parameters(function)
    if not parameters or any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters):
        return numbers
    count = len(positional(function))
    for one in numbers:
        if not -count <= one < count:
            raise ArgumentError(
                f"static_argnums must hold positions of {count} arguments, got {one}"
            )
    return [one % count for one in numbers]


def static_places(statics: Sequence[int], count: int) -> set[int]:
    """Returns which of ``count`` arguments are static; those that were not passed are none."""
    return {i % count for i in statics if -count <= i < count}


def warn_of(foreign: Sequence[Foreign], caller: str) -> None:
    """Warns of equations that are opaque, at the line of the user."""
    if not foreign:
        return
    names = ", ".join(map(str, dict.fromkeys(foreign)))
    origin = user_origin()
    warnings.warn_explicit(
        f"{caller}: no operator expresses {names}. JAX evaluates and differentiates it as a whole, "
        "and no file can hold it. so.explain lists such parts, strict=True refuses them.",
        OpaqueWarning,
        origin.file,
        origin.line,
    )


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
    caller: str = "from_jax",
) -> JaxGraph:
    """Converts a function as ``from_jax`` does, where it may close over tracers."""
    traced = trace(function, examples, statics, caller)
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

    def warn(foreign: Sequence[Foreign]) -> None:
        warn_of([one for one in foreign if not one.spans_devices], caller)

    reader = Reader(otherwise, strict=strict, warn=warn)
    nodes = reader.read_open(traced.program.jaxpr, consts, inputs)
    warn(reader.foreign)
    read = {str(one.name): captured[one] for one in topological(nodes) if one in captured}
    return JaxGraph(nodes, inputs, read, traced.tree, traced.program.out_avals)


def numbers(leaf: Any) -> Any:
    """Returns an array; a random key as its numbers."""
    return jax.random.key_data(leaf) if is_key(jax.typeof(leaf)) else leaf
