"""Types of values across devices, and JAX's loops and branches on values of such types.

The JAX type of a value includes the mesh axes along which it varies, within ``jax.shard_map``, and
the axes over which it is sharded, on a mesh with explicit axes. Most functions of JAX cast their
operands themselves. Loops do not: the carry must have the type that a step returns. Neither do
branches, whose results must be of one type. The functions here cast the initial values.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, sharding

# Any: JAX declares no types for the following names.
_Spec: Any = sharding.PartitionSpec
_Manual: Any = sharding.ManualAxisType
_Struct: Any = jax.ShapeDtypeStruct
_lax: Any = lax
_reshard: Any = sharding.reshard

Call = Callable[..., Any]
_AT_MOST = 8
"""Maximum number of rounds; each adds an axis to the carry, and meshes have fewer axes."""


def varying_axes(value: Any) -> frozenset[str]:
    """Returns the manual mesh axes along which ``value`` varies."""
    return type_axes(jax.typeof(value))


def type_axes(type: Any) -> frozenset[str]:
    """Returns the manual mesh axes along which values of ``type``, a JAX type, vary."""
    manual = getattr(type, "manual_axis_type", None)
    return frozenset() if manual is None else manual.varying


def varied(value: Any, axes: frozenset[str]) -> Any:
    """Returns ``value``, cast to vary along ``axes`` too."""
    missing = axes - varying_axes(value)
    return lax.pcast(value, tuple(sorted(missing)), to="varying") if missing else value


def varied_alike(values: Sequence[Any]) -> list[Any]:
    """Returns ``values``, each cast to vary along the union of their axes."""
    axes = axes_of(values)
    return [varied(one, axes) for one in values] if axes else list(values)


def axes_of(values: Any) -> frozenset[str]:
    """Returns the manual mesh axes along which any leaf of ``values``, a pytree, varies."""
    return frozenset[str]().union(*map(varying_axes, jax.tree.leaves(values)))


def is_explicit(type: Any) -> bool:
    """Whether ``type``, a JAX type, specifies the mesh axes over which values are sharded."""
    placement = getattr(type, "sharding", None)
    return placement is not None and sharding.AxisType.Explicit in (placement.mesh.axis_types or ())


def of_type(value: Any, type: Any) -> Any:
    """Returns ``value`` sharded like ``type``, a JAX type, and varying along its axes too."""
    value = varied(value, type_axes(type))
    if is_explicit(type) and jax.typeof(value).sharding != type.sharding:
        return _reshard(value, type.sharding)
    return value


def zeros_of(type: Any) -> Any:
    """Returns zeros of ``type``, a JAX type."""
    return of_type(jnp.zeros(type.shape, type.dtype), type)


def cotangent_of_type(value: Any, type: Any) -> Any:
    """Returns ``value``, a cotangent of a primal of ``type``, cast to the type JAX expects.

    Along axes where the cotangent varies but the primal does not, it is summed over devices.
    """
    extra = varying_axes(value) - type_axes(type)
    return of_type(_lax.psum(value, tuple(sorted(extra))) if extra else value, type)


def transposable(linear: Call, struct: Any, cotangent: Any) -> tuple[Any, Any]:
    """Casts ``struct``, the argument of ``linear``, and ``cotangent``, of its result.

    Both vary along the axes of the cotangent and of the values that ``linear`` closes over.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if not mesh.manual_axes:
        return struct, cotangent
    (out,) = jax.make_jaxpr(linear)(struct).out_avals
    axes = varying_axes(cotangent) | type_axes(out)
    whole = sharding.NamedSharding(mesh, _Spec(*[None] * len(struct.shape)))
    kind = _Manual(varying=axes)
    struct = _Struct(struct.shape, struct.dtype, sharding=whole, manual_axis_type=kind)
    return struct, varied(cotangent, axes)


# Control flow ------------------------------------------------------------------------------------


def scan(
    step: Callable[[Any, Any], Any],
    carry: Any,
    xs: Any,
    *,
    length: int | None = None,
    reverse: bool = False,
) -> Any:
    """Runs ``jax.lax.scan`` with the carry cast to the type that ``step`` returns."""
    if _is_spread((carry, xs)):
        first = jax.tree.map(_slice_type, xs)
        carry = _settled(lambda held, x: step(held, x)[0], carry, first)
        types = jax.tree.map(jax.typeof, carry)

        def typed(held: Any, x: Any) -> Any:
            held, y = step(held, x)
            return jax.tree.map(of_type, held, types), y

        return lax.scan(typed, carry, xs, length=length, reverse=reverse)
    return lax.scan(step, carry, xs, length=length, reverse=reverse)


def while_loop(goes_on: Callable[[Any], Any], step: Callable[[Any], Any], carry: Any) -> Any:
    """Runs ``jax.lax.while_loop`` with the carry cast to the type that ``step`` returns."""
    if _is_spread(carry):
        carry = _settled(step, carry)
        types = jax.tree.map(jax.typeof, carry)
        return lax.while_loop(goes_on, lambda held: jax.tree.map(of_type, step(held), types), carry)
    return lax.while_loop(goes_on, step, carry)


def fori_loop(first: int, count: Any, step: Callable[[Any, Any], Any], carry: Any) -> Any:
    """Runs ``jax.lax.fori_loop`` with the carry cast to the type that ``step`` returns."""
    if _is_spread(carry):
        number = jax.typeof(jnp.asarray(count))
        struct = _Struct(number.shape, number.dtype)
        carry = _settled(lambda held, at: step(at, held), carry, struct)
        types = jax.tree.map(jax.typeof, carry)
        return lax.fori_loop(
            first, count, lambda at, held: jax.tree.map(of_type, step(at, held), types), carry
        )
    return lax.fori_loop(first, count, step, carry)


def cond(pred: Any, when_true: Call, when_false: Call, *operands: Any) -> Any:
    """Runs ``jax.lax.cond`` with the results of both branches cast to one type."""
    if _is_spread((pred, operands)):
        branch_types = [types_of(branch, operands) for branch in (when_true, when_false)]

        def joined(branch: Call) -> Call:
            def run(*args: Any) -> Any:
                result = branch(*args)
                for types in branch_types:
                    result = jax.tree.map(_joined, result, types)
                return result

            return run

        return lax.cond(pred, joined(when_true), joined(when_false), *operands)
    return lax.cond(pred, when_true, when_false, *operands)


def _is_spread(values: Any) -> bool:
    """Whether values may have types across devices."""
    if not jax.sharding.get_abstract_mesh().empty:
        return True
    return any(is_explicit(jax.typeof(one)) for one in jax.tree.leaves(values))


def types_of(function: Call, args: Any) -> Any:
    """Returns the JAX types of the results of ``function``."""
    jaxpr, results = jax.make_jaxpr(function, return_shape=True)(*args)
    return jax.tree.unflatten(jax.tree.structure(results), jaxpr.out_avals)


def _settled(step: Call, carry: Any, *args: Any) -> Any:
    """Casts ``carry`` to the type that it has after some steps, a fixed point of ``step``."""
    for _ in range(_AT_MOST):
        types = jax.tree.map(jax.typeof, carry)
        carry = jax.tree.map(_joined, carry, types_of(step, (carry, *args)))
        if jax.tree.map(jax.typeof, carry) == types:
            break
    return carry


def _joined(value: Any, type: Any) -> Any:
    """Casts ``value`` to vary along the axes of ``type`` too, and to its sharding."""
    if is_explicit(type) and any(one is not None for one in type.sharding.spec):
        return of_type(value, type)
    return varied(value, type_axes(type))


def _slice_type(x: Any) -> Any:
    """Returns the type of one slice of ``x`` along the first axis, as an argument for tracing."""
    whole = jax.typeof(x)
    spec = _Spec(*whole.sharding.spec[1:])
    return struct_of(whole, whole.shape[1:], whole.sharding.update(spec=spec))


def struct_of(type: Any, shape: Any, spread: Any) -> Any:
    """Returns an abstract value like one of ``type``, a JAX type, of that shape and sharding."""
    return _Struct(
        shape,
        type.dtype,
        weak_type=type.weak_type,
        sharding=None if spread is None or spread.mesh.empty else spread,
        manual_axis_type=type.manual_axis_type,
    )
