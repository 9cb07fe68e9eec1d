"""``from_jax`` and ``transform``: functions of JAX as graphs."""

import functools
import inspect
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr, primitives

from registry.caches import memoized
from registry.errors import ArgumentError, DataDependentError, OpaqueWarning
from registry.shapes import default_float
from registry.xla.device_types import struct_of
from symop.graph.nodes import Node, topological, variable
from symop.jaxprs import arrays, control_flow, custom_rules
from symop.jaxprs.primitives import otherwise
from symop.jaxprs.reading import (
    Foreign,
    Reader,
    constant_of,
    is_key,
    is_user_file,
    key_impl,
    type_of_aval,
)
from symop.symbol.symbol import Symbol

__all__ = ["from_jax", "transform"]
_cast: Any = primitives.convert_element_type_p  # which has no types
_TABLES = (arrays, control_flow, custom_rules)
"""Modules that declare translations when they are imported."""


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
        ArgumentError: two variables would have one name, or the function returns no array.

    Example:
        >>> import jax, jax.numpy as jnp, symop as so
        >>> y = so.from_jax(lambda x: jnp.sin(x) * x, jax.ShapeDtypeStruct((), "float32"))
        >>> float(so.derivative(y, "x", order=2).eval(x=0.0))
        2.0
    """
    statics = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    statics = tuple(sorted(_static_places(statics, len(examples))))
    dynamic = [i for i in range(len(examples)) if i not in statics]
    titles = _titles(function, dynamic, names)
    traced = _trace(function, examples, statics)
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
    nodes, foreign = traced.read(inputs, strict=strict)
    if not nodes:
        raise ArgumentError("from_jax: the function must return at least one array, got none")
    if foreign:
        warnings.warn(_opaque_parts(foreign), OpaqueWarning, stacklevel=2)
    return Symbol(nodes, tuple(inputs))


def _opaque_parts(foreign: Sequence[Foreign]) -> str:
    names = ", ".join(map(str, dict.fromkeys(foreign)))
    return (
        f"from_jax: no operator expresses {names}. JAX evaluates and differentiates it as a whole, "
        "and no file can hold it. so.explain lists such parts, strict=True refuses them."
    )


def transform(
    function: Callable[..., Any], *, static_argnums: int | Sequence[int] = (), strict: bool = False
) -> Callable[..., Any]:
    """Returns a function with the values of ``function`` that runs as a graph of symop.

    It takes and returns the same nested arrays, under ``jax.jit``, ``jax.vmap`` and ``jax.grad``,
    too. Arguments may be passed by name. JAX differentiates it by the gradient makers of the
    operators. The graph is built for each combination of shapes, dtypes and static arguments, as
    ``jax.jit`` traces.

    Args:
        function: as in ``from_jax``.
        static_argnums: the positions of arguments that are not arrays; they must be hashable.
        strict: as in ``from_jax``.

    Example:
        >>> import jax, jax.numpy as jnp, symop as so
        >>> f = so.transform(lambda x: {"y": jnp.tanh(x)})
        >>> f(jnp.zeros(()))
        {'y': Array(0., dtype=float32)}
        >>> float(jax.grad(lambda x: f(x)["y"])(0.0))
        1.0
    """
    statics = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    def compile(tree: Any, avals: tuple[Any, ...], held: tuple[Any, ...]) -> _Compiled:
        structs = [_struct(one) for one in avals]
        dynamic, options = jax.tree_util.tree_unflatten(tree, structs)
        args = _merged(dynamic, held, statics)
        at = sorted(_static_places(statics, len(args)))
        if options:
            return _Compiled(_with_options(function), [*args, options], at, strict=strict)
        return _Compiled(function, args, at, strict=strict)

    @memoized(256)
    def compiled(key: tuple[Any, ...], kinds: Any) -> _Compiled | None:
        result = compile(*key)
        return None if result.closes_over_tracers else result

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        args, options = _by_position(function, args, options)
        at = _static_places(statics, len(args))
        dynamic = [a for i, a in enumerate(args) if i not in at]
        leaves, tree = jax.tree_util.tree_flatten((dynamic, options))
        key = tree, tuple(map(jax.typeof, leaves)), tuple(args[i] for i in sorted(at))
        _require_hashable(key[2])
        # 1, 1.0 and True are equal, and so are the types of arrays with and without x64.
        kinds = tuple(map(type, key[2])), default_float()
        return (compiled(key, kinds) or compile(*key))(leaves)

    return run


def _by_position(
    function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns arguments by position where the signature allows it, and the others by name."""
    if not options:
        return args, options
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a callable without a signature
        return args, options
    bound = signature.bind(*args, **options)
    return bound.args, bound.kwargs


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns ``function`` with its keyword arguments as a dictionary at the end."""

    def call(*args: Any) -> Any:
        return function(*args[:-1], **args[-1])

    return call


def _require_hashable(statics: Sequence[Any]) -> None:
    for one in statics:
        try:
            hash(one)
        except TypeError as error:
            raise ArgumentError(
                f"transform: a static argument must be hashable, got {one!r}"
            ) from error


def _static_places(statics: Sequence[int], count: int) -> set[int]:
    """Returns which of ``count`` arguments are static; those that were not passed are none."""
    return {i % count for i in statics if -count <= i < count}


def _merged(dynamic: Sequence[Any], held: Sequence[Any], statics: Sequence[int]) -> list[Any]:
    """Returns arguments of a function, the static ones ``held`` at the places ``statics``."""
    count = len(dynamic) + len(held)
    at = _static_places(statics, count)
    supply, static = iter(dynamic), iter(held)
    return [next(static) if i in at else next(supply) for i in range(count)]


def _struct(aval: Any) -> Any:
    return struct_of(aval, aval.shape, aval.sharding)


class _Compiled:
    """A function as a graph, for arguments of fixed types.

    Attributes:
        closes_over_tracers: whether it reads values of an outer transformation, as a loss does that
            is differentiated by the weights it closes over. It is then valid only inside.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        examples: Sequence[Any],
        statics: Sequence[int],
        *,
        strict: bool,
    ) -> None:
        graph = graph_of(function, examples, statics, strict=strict)
        self.closes_over_tracers = bool(graph.captured)
        self._graph = graph
        self._function = graph.symbol.to_jax() if graph.nodes else None

    def __call__(self, leaves: Sequence[Any]) -> Any:
        graph = self._graph
        if self._function is None:
            return jax.tree_util.tree_unflatten(graph.tree, [])
        arrays = dict(zip(graph.names, map(_numbers, leaves), strict=True))
        values = self._function(**arrays, **graph.captured)
        several = values if len(graph.avals) > 1 else (values,)
        results = [_as_aval(one, aval) for one, aval in zip(several, graph.avals, strict=True)]
        return jax.tree_util.tree_unflatten(graph.tree, results)


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
    traced = _trace(function, examples, statics)
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
            captured[consts[-1]] = _numbers(value)
        else:
            consts.append(constant_of(value))
    reader = Reader(otherwise, strict=strict)
    nodes = reader.read_open(traced.program.jaxpr, consts, inputs)
    read = {str(one.name): captured[one] for one in topological(nodes) if one in captured}
    return JaxGraph(nodes, inputs, read, traced.tree, traced.program.out_avals)


def _numbers(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if is_key(jax.typeof(leaf)) else leaf


def _as_aval(value: Any, aval: Any) -> Any:
    """Returns ``value`` as a random key, or with a weak type, where the function returned one."""
    if is_key(aval):
        return jax.random.wrap_key_data(value, impl=key_impl(aval.dtype))
    if aval.weak_type and not jax.typeof(value).weak_type:
        return _cast.bind(value, new_dtype=aval.dtype, weak_type=True, sharding=None)
    return value


# Tracing -----------------------------------------------------------------------------------------


class _Traced(NamedTuple):
    """A function traced by JAX.

    Attributes:
        program: its closed jaxpr.
        tree: the tree structure of its results.
    """

    program: ClosedJaxpr
    tree: Any

    def read(self, inputs: Sequence[Node], *, strict: bool) -> tuple[list[Node], list[Foreign]]:
        """Returns the outputs for ``inputs``, and the equations that are opaque."""
        reader = Reader(otherwise, strict=strict)
        return reader.read(self.program, inputs), reader.foreign


_NEEDS_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
"""JAX's errors for Python code that reads the value of a traced array."""


def _trace(
    function: Callable[..., Any], examples: Sequence[Any], statics: Sequence[int]
) -> _Traced:
    trace = jax.make_jaxpr(function, static_argnums=tuple(statics), return_shape=True)
    try:
        program, shapes = trace(*examples)
    except _NEEDS_VALUES as error:
        summary = str(error).partition("\n")[0]
        raise DataDependentError(
            "from_jax: a function must not read values of its arguments while it is traced, got "
            f"{_user_line(error)}: {summary} Use jnp.where to choose between arrays, lax.cond, "
            "lax.scan or lax.while_loop to branch and to loop; an argument that is no array can be "
            "static (static_argnums)."
        ) from error
    return _Traced(program, jax.tree_util.tree_structure(shapes))


def _user_line(error: Exception) -> str:
    """Returns the innermost line of the user in the traceback of ``error``."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [one for one in frames if is_user_file(one.filename)]
    return f"{lines[-1].filename}:{lines[-1].lineno}" if lines else "an unknown line"


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
    parameters = _positional(function)
    return [parameters[i] if i < len(parameters) else f"arg{i}" for i in dynamic]


def _positional(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a callable without a signature
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in parameters if one.kind in kinds]


def _path(path: Sequence[Any]) -> str:
    return "".join(f"/{jax.tree_util.keystr((one,), simple=True)}" for one in path)


def _require_distinct(names: Sequence[str]) -> None:
    twice = next((one for one, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ArgumentError(f"from_jax: each array must have its own name, got {twice!r} twice")
