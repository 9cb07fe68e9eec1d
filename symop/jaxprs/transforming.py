"""``transform``: a function of JAX that runs as a graph."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import jax
from jax.extend.core import primitives

from registry.caches import memoized
from registry.errors import ArgumentError
from registry.shapes import default_float
from registry.tracebacks import api_boundary
from registry.xla.device_types import struct_of
from symop.jaxprs.reading import is_key, key_impl
from symop.jaxprs.tracing import (
    graph_of,
    numbers,
    positional,
    static_places,
    static_positions,
)

_cast: Any = primitives.convert_element_type_p  # which has no types


_Function = Callable[..., Any]


@overload
def transform(
    function: _Function, *, static_argnums: int | Sequence[int] = ..., strict: bool = ...
) -> _Function: ...


@overload
def transform(
    *, static_argnums: int | Sequence[int] = ..., strict: bool = ...
) -> Callable[[_Function], _Function]: ...


@api_boundary
def transform(
    function: _Function | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    strict: bool = False,
) -> Any:
    """Returns a function with the values of ``function`` that runs as a graph of symop.

    It takes and returns the same nested arrays, under ``jax.jit``, ``jax.vmap`` and ``jax.grad``,
    too. Arguments may be passed by name. JAX differentiates it by the gradient makers of the
    operators. The graph is built for each combination of shapes, dtypes and static arguments, as
    ``jax.jit`` traces.

    Args:
        function: as in ``from_jax``. Without it, the result is a decorator.
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
    if function is None:
        return functools.partial(transform, static_argnums=static_argnums, strict=strict)
    statics, parameters = static_positions(function, static_argnums), positional(function)
    names = {parameters[i] for i in statics if 0 <= i < len(parameters)}

    def compile(tree: Any, avals: tuple[Any, ...], held: _Statics, by_name: _Statics) -> _Compiled:
        structs = [_struct(one) for one in avals]
        call = functools.partial(_called, function, dict(held), dict(by_name))
        return _Compiled(call, jax.tree_util.tree_unflatten(tree, structs), strict=strict)

    @memoized(256)
    def compiled(key: tuple[Any, ...], kinds: Any) -> _Compiled | None:
        result = compile(*key)
        return None if result.closes_over_tracers else result

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        at = static_places(statics, len(args))
        held = tuple((i, args[i]) for i in sorted(at))
        by_name = tuple((name, options.pop(name)) for name in sorted(names & options.keys()))
        dynamic = [one for i, one in enumerate(args) if i not in at]
        leaves, tree = jax.tree_util.tree_flatten((dynamic, options))
        _require_hashable(held + by_name)
        key = tree, tuple(map(jax.typeof, leaves)), held, by_name
        # 1, 1.0 and True are equal, and so are the types of arrays with and without x64.
        kinds = tuple(type(one) for _, one in held + by_name), default_float()
        return (compiled(key, kinds) or compile(*key))(leaves)

    return run


_Statics = tuple[tuple[Any, Any], ...]
"""Static arguments, by position or by name."""


def _called(
    function: Callable[..., Any],
    held: Mapping[int, Any],
    by_name: Mapping[str, Any],
    dynamic: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """Returns ``function`` of static and of other arguments."""
    supply = iter(dynamic)
    count = len(dynamic) + len(held)
    args = [held[i] if i in held else next(supply) for i in range(count)]
    return function(*args, **options, **by_name)


def _require_hashable(statics: _Statics) -> None:
    for _, one in statics:
        try:
            hash(one)
        except TypeError as error:
            raise ArgumentError(
                f"transform: a static argument must be hashable, got {one!r}"
            ) from error


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
        *,
        strict: bool,
    ) -> None:
        graph = graph_of(function, examples, strict=strict, caller="transform")
        self.closes_over_tracers = bool(graph.captured)
        self._graph = graph
        self._function = graph.symbol.to_jax() if graph.nodes else None

    def __call__(self, leaves: Sequence[Any]) -> Any:
        graph = self._graph
        if self._function is None:
            return jax.tree_util.tree_unflatten(graph.tree, [])
        arrays = dict(zip(graph.names, map(numbers, leaves), strict=True))
        values = self._function(**arrays, **graph.captured)
        several = values if len(graph.avals) > 1 else (values,)
        results = [_as_aval(one, aval) for one, aval in zip(several, graph.avals, strict=True)]
        return jax.tree_util.tree_unflatten(graph.tree, results)


def _as_aval(value: Any, aval: Any) -> Any:
    """Returns ``value`` as a random key, or with a weak type, where the function returned one."""
    if is_key(aval):
        return jax.random.wrap_key_data(value, impl=key_impl(aval.dtype))
    if aval.weak_type and not jax.typeof(value).weak_type:
        return _cast.bind(value, new_dtype=aval.dtype, weak_type=True, sharding=None)
    return value
