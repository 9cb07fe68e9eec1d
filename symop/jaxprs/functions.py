"""``from_jax``: a function of JAX as a symbol."""

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax

from registry.errors import ArgumentError
from registry.tracebacks import api_boundary
from symop.graph.nodes import variable
from symop.jaxprs.reading import type_of_aval
from symop.jaxprs.tracing import positional, static_places, static_positions, trace
from symop.symbol.symbol import Symbol


@api_boundary
def from_jax(
    function: Callable[..., Any],
    *examples: Any,
    static_argnums: int | Sequence[int] = (),
    names: Sequence[str] | None = None,
    strict: bool = False,
) -> Symbol:
    """Converts a function of JAX to a symbol with the same values and derivatives.

    The function is traced once, as by ``jax.make_jaxpr``. Each array among the arguments becomes a
    variable, named after the argument and its path in it: the array ``params["dense"]["kernel"]``
    is ``params/dense/kernel``. ``jax.custom_jvp`` and ``jax.custom_vjp`` keep their rules.

    Args:
        function: a function of arrays, in nested tuples, lists, dictionaries and registered types.
        examples: its arguments: arrays, ``jax.ShapeDtypeStruct``\\ s, or nested ones.
        static_argnums: the positions of arguments that are not arrays, as for ``jax.jit``.
        names: a name for each argument that is not static; by default the names of the parameters.
        strict: whether a primitive that no operator expresses, such as a callback, is an error.
            Otherwise it becomes an opaque operator, which JAX evaluates and differentiates, and an
            ``OpaqueWarning`` names it.

    Returns:
        A symbol with the outputs of ``function`` in the order in which JAX flattens them.

    Raises:
        UnsupportedPrimitiveError: ``strict`` is set, and some primitive would be opaque; or the
            function has side effects.
        DataDependentError: the function reads values of its arguments, as ``if x > 0`` does.
        ArgumentError: two variables would have one name, the function returns no array, or it
            closes over a value that JAX traces.

    Example:
        >>> import jax, jax.numpy as jnp, symop as so
        >>> y = so.from_jax(lambda x: jnp.sin(x) * x, jax.ShapeDtypeStruct((), "float32"))
        >>> float(so.derivative(y, "x", order=2).eval(x=0.0))
        2.0
    """
    _require_callable(function, examples)
    statics = sorted(static_places(static_positions(function, static_argnums), len(examples)))
    dynamic = [i for i in range(len(examples)) if i not in statics]
    titles = _titles(function, dynamic, names)
    traced = trace(function, examples, statics)
    leaves = [
        (title + _path(path), leaf)
        for title, i in zip(titles, dynamic, strict=True)
        for path, leaf in jax.tree_util.tree_flatten_with_path(examples[i])[0]
    ]
    _require_distinct([name for name, _ in leaves])
    types = map(type_of_aval, traced.program.in_avals)
    inputs = [
        variable(name, type.shape, type.dtype)
        for (name, _), type in zip(leaves, types, strict=True)
    ]
    nodes = traced.read(inputs, strict=strict)
    if not nodes:
        raise ArgumentError("from_jax: the function must return at least one array, got none")
    return Symbol(nodes, tuple(inputs))


# Names -------------------------------------------------------------------------------------------


def _titles(
    function: Callable[..., Any], dynamic: Sequence[int], names: Sequence[str] | None
) -> list[str]:
    """Returns the name of each argument that is not static."""
    if names is not None:
        if len(names) != len(dynamic):
            raise ArgumentError(
                f"from_jax: names must hold one for each of {len(dynamic)} arguments, got {names}"
            )
        return list(names)
    parameters = positional(function)
    return [parameters[i] if i < len(parameters) else f"arg{i}" for i in dynamic]


def _path(path: Sequence[Any]) -> str:
    return "".join(f"/{jax.tree_util.keystr((one,), simple=True)}" for one in path)


def _require_callable(function: Any, examples: Sequence[Any]) -> None:
    """Raises an error unless ``function`` can be called with ``examples``."""
    if not callable(function):
        raise ArgumentError(f"from_jax: a function must be given, got a {type(function).__name__}")
    try:
        inspect.signature(function).bind(*examples)
    except TypeError as error:
        raise ArgumentError(
            "from_jax: examples must be given for the arguments of the function, as "
            f"from_jax(function, x), got {len(examples)}: {error}"
        ) from None
    except ValueError:  # it has no signature
        return


def _require_distinct(names: Sequence[str]) -> None:
    twice = next((one for one, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ArgumentError(f"from_jax: each array must have its own name, got {twice!r} twice")
