"""JAX's derivatives of a kernel as operators: the gradient maker of kernels without one.

An operator ``f`` whose derivative is JAX's has two derived operators. ``_vjp_f`` maps the inputs of
``f`` and cotangents to gradients. ``_transpose_f`` exists if ``f`` is linear in some slots: it maps
the other inputs and cotangents to the gradients of those slots, without their values. Both are
again operators whose derivative is JAX's:

- both are linear in the cotangents, so they have a transpose;
- the transpose of ``_transpose_f`` is ``f``.

The chain thus continues to every order. Since the gradient of a linear slot does not refer to the
slot, the transpose of such a maker (which is forward mode) has no cotangents left over.

A derived operator takes its values in one variadic slot. Its attributes describe them: ``of`` are
the attributes of ``f``, ``arity`` the number of its inputs, ``given`` the position of each value
(positions from ``arity`` on are cotangents), ``wrt`` the inputs whose gradients are its outputs.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

from registry import var
from registry.caches import memoized
from registry.errors import ArgumentError, DeclarationError, NotDifferentiableError, nearest
from registry.jax_derivatives.calculus import Types, is_linear, vjp
from registry.naming import COTANGENT, TRANSPOSE, VJP
from registry.operator.attributes import ConvertedBy, identity_key
from registry.operator.operator import Derivative, Operator
from registry.operator.recorder import Recorded, type_of_value
from registry.operator.rule import WANTED
from registry.operator.signature import Array
from registry.types import VarKind
from registry.var import Attributes, Inputs, Var

_NAME_LIMIT = 1000
"""Maximum length of a name that is looked up; each prefix in it is looked up separately."""
Places = tuple[int, ...]
Like = tuple[tuple[tuple[int, ...], np.dtype], ...]
Thunk = Callable[[], Any]


def differentiate_kernel(operator: Operator, linear: Sequence[str] = ()) -> Operator:
    """Declares that JAX differentiates the kernel of ``operator``, in both modes at every order.

    JAX must have reverse mode for the kernel. If it does not, as for ``jax.lax.while_loop``, graphs
    have no derivative, and JAX functions have only forward mode.

    Args:
        operator: an operator without a derivative so far.
        linear: slots in which the kernel is jointly linear. The linearity is verified when the
            operator is differentiated.

    Raises:
        DeclarationError: a slot does not exist, or the operator already has a derivative.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import Array, differentiate_kernel, op
        >>> @op
        ... def doc_hill(x: Array) -> Array:
        ...     "``x / (1 + x)``."
        ...     return x / (1 + x)
        >>> differentiate_kernel(doc_hill).derivative.value
        'JAX differentiates its kernel'
    """
    if linear and operator.hidden:
        raise DeclarationError(
            f"{operator.name}: a kernel that is linear in {', '.join(linear)} must have no hidden "
            f"output, got {', '.join(sorted(operator.hidden))}"
        )
    if operator.training_index is not None:
        raise DeclarationError(
            f"{operator.name}: the kernel must not depend on whether it runs for training when JAX "
            "differentiates it; write a gradient maker"
        )
    places = tuple(_place(operator, name) for name in linear)
    _declare(operator, _maker(operator, places))
    operator.linear_slots = tuple(linear)
    return operator


def _place(operator: Operator, name: str) -> int:
    if name not in operator.slot_index:
        raise DeclarationError(
            f"{operator.name}: linear= must name slots of the operator "
            f"({', '.join(operator.slot_names) or 'none'}), got {name!r}"
            f"{nearest(name, operator.slot_names)}"
        )
    return operator.slot_index[name]


def _declare(operator: Operator, maker: Callable[..., Any]) -> None:
    operator.declare_derivative(Derivative.KERNEL, Derivative.KERNEL.value)
    operator.native = not operator.opaque
    operator.gradient_rule = operator.maker_rule(maker)


def _maker(operator: Operator, linear: Places) -> Callable[..., Any]:
    """Returns the gradient maker of a user-declared operator."""
    slots = operator.slot_names
    cotangents = [o for o in operator.outputs if o not in operator.updates.values()]

    def maker(*given: Any, **attributes: Any) -> dict[str, Any]:
        if operator.opaque:
            raise NotDifferentiableError(
                f"{operator.name}: JAX must be able to differentiate its kernel, got an opaque one"
            )
        *values, asked = given
        flat, heads = _flattened(operator, values)
        canonical = tuple(attributes[a.name] for a in operator.attributes)
        flat_grads = _gradients(
            operator,
            flat,
            canonical,
            heads,
            asked,
            _linear_places(operator, flat, canonical, linear),
        )
        grads: dict[str, Any] = dict(zip(slots, flat_grads[: operator.n_fixed], strict=False))
        if operator.variadic:
            grads[slots[-1]] = flat_grads[operator.n_fixed :]
        return grads

    positional = inspect.Parameter.POSITIONAL_ONLY
    parameters = [inspect.Parameter(name, positional) for name in slots]
    for name in cotangents:
        many = operator.variadic_output and name == operator.outputs[-1]
        note = Var if many else Var | None
        parameters.append(inspect.Parameter(COTANGENT + name, positional, annotation=note))
    parameters.append(inspect.Parameter(WANTED, positional))
    parameters += [
        inspect.Parameter(a.name, inspect.Parameter.KEYWORD_ONLY) for a in operator.attributes
    ]
    maker.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return maker


def _flattened(operator: Operator, values: Sequence[Any]) -> tuple[Inputs, list[Any]]:
    """Returns flat inputs, and a cotangent or None for each output, from a maker's arguments."""
    taken, cotangents = values[: len(operator.slots)], iter(values[len(operator.slots) :])
    flat = (*taken[:-1], *taken[-1]) if operator.variadic else taken
    updated = operator.updates.values()
    heads: list[Any] = [None if name in updated else next(cotangents) for name in operator.outputs]
    if operator.variadic_output:
        heads[-1:] = heads[-1]
    return tuple(flat), heads


# Building gradients ----------------------------------------------------------------------------


def _gradients(
    operator: Operator,
    flat: Inputs,
    attributes: Attributes,
    heads: Sequence[Any],
    asked: Sequence[bool],
    linear: Places,
    transpose: Callable[[], Mapping[int, Any]] | None = None,
) -> list[Thunk]:
    """Returns a function for each flat input that returns its gradient: only needed ones are built.

    JAX may have no derivative by an input that is not ``asked`` for: that of ``betainc(a, b, x)``
    is by ``x`` alone.

    Those of the inputs at ``linear`` come from ``transpose``, or else from the derived operator.
    """
    arity = len(flat)
    bent = tuple(
        i
        for i, one in enumerate(flat)
        if asked[i] and i not in linear and _has_gradient(operator, i, one)
    )
    operands = [(i, one) for i, one in enumerate(flat) if one is not None]
    operands += [(arity + i, one) for i, one in enumerate(heads) if one is not None]

    @functools.cache
    def by_vjp() -> Mapping[int, Any]:
        return _derived_call(vjp_of(operator), operands, (attributes, arity), bent)

    @functools.cache
    def by_transpose() -> Mapping[int, Any]:
        if transpose is not None:
            return transpose()
        like = tuple((tuple(flat[i].shape), flat[i].dtype) for i in linear)
        others = [(i, one) for i, one in operands if i not in linear]
        return _derived_call(transpose_of(operator), others, (attributes, arity), linear, like)

    def make(index: int) -> Any:
        if index in linear:
            return by_transpose()[index]
        return by_vjp()[index] if index in bent else None

    return [functools.partial(make, i) for i in range(arity)]


def _has_gradient(operator: Operator, index: int, value: Any) -> bool:
    """Whether the input may have a gradient; a variable of unknown type may."""
    if value is None or operator.slot_of(index).implicit:
        return False
    type = value.known_type if isinstance(value, Recorded) else type_of_value(value)
    return type is None or type.differentiable


def _linear_places(
    operator: Operator, flat: Inputs, attributes: Attributes, linear: Places
) -> Places:
    """Returns the inputs in which the kernel is verified to be linear."""
    present = tuple(i for i in linear if flat[i] is not None)
    if not present:
        return ()
    types = tuple(map(type_of_value, flat))
    return present if _reads_linear(operator, types, attributes, present) else ()


@memoized(4096, key=identity_key)
def _reads_linear(operator: Operator, types: Types, attributes: Attributes, places: Places) -> bool:
    return is_linear(operator, types, attributes, places)


def _derived_call(
    derived: Operator,
    operands: Sequence[tuple[int, Any]],
    of: tuple[Attributes, int],
    wrt: Places,
    *like: Like,
) -> dict[int, Any]:
    """Returns the outputs of a derived operator, keyed by the inputs whose gradients they are."""
    attributes = (*of, tuple(i for i, _ in operands), wrt, *like)
    inputs = tuple(one for _, one in operands)
    return dict(zip(wrt, _emitted(derived.member(len(wrt)), inputs, attributes), strict=True))


def _emitted(operator: Operator, inputs: Inputs, attributes: Attributes) -> tuple[Any, ...]:
    result = var.emitter_of(inputs).emit(operator, inputs, attributes, None)
    return result if isinstance(result, tuple) else (result,)


# Derived operators -----------------------------------------------------------------------------


def derived_named(name: str, find: Callable[[str], Operator | None]) -> Operator | None:
    """Returns the derived operator called ``name``, or None; ``find`` looks up its base."""
    prefix = VJP if name.startswith(VJP) else TRANSPOSE
    if len(name) > _NAME_LIMIT:
        return None
    base = find(name.removeprefix(prefix)) if name.startswith(prefix) else None
    if base is None:
        return None
    if base.derivative is not Derivative.KERNEL:
        return vjp_of(base) if prefix == VJP and base.derives_by_kernel else None
    return vjp_of(base) if prefix == VJP else transpose_of(base)


def vjp_of(operator: Operator) -> Operator:
    """Returns the operator that computes gradients of the inputs of ``operator``."""
    family = operator.family or operator
    if VJP not in family.derived:
        family.derived.setdefault(VJP, _derived_operator(family, VJP))
    return family.derived[VJP]


def transpose_of(operator: Operator) -> Operator:
    """Returns the operator that computes gradients of the linear inputs of ``operator``."""
    family = operator.family or operator
    if TRANSPOSE not in family.derived:
        family.derived.setdefault(TRANSPOSE, _derived_operator(family, TRANSPOSE))
    return family.derived[TRANSPOSE]


def _derived_operator(base: Operator, prefix: str) -> Operator:
    """Returns the operator derived from ``base``."""

    def convert(value: Any) -> Attributes:
        if not isinstance(value, tuple) or len(value) != len(base.attributes):
            raise ArgumentError(
                f"{prefix}{base.name}: of= must hold the {len(base.attributes)} attributes of "
                f"{base.name}, got {value!r}"
            )
        return tuple(
            a.canonical(one, base.name) for a, one in zip(base.attributes, value, strict=True)
        )

    def kernel(*values: Any, **attributes: Any) -> tuple[Any, ...]:
        return _run(base, values, **attributes)

    kernel.__name__ = prefix + base.name
    kernel.__doc__ = f"JAX's derivative of the kernel of ``{base.name}``."
    kernel.__module__ = base.__module__
    kernel.__signature__ = _signature(convert, prefix)  # type: ignore[attr-defined]
    operator = Operator(
        kernel,
        outputs=("*grads",),
        count=_count,
        transposable=base.transposable,
        takes_numbers=base.takes_numbers,
    )
    operator.kind(_dense)
    operator.derived_from = base
    _declare(operator, _maker_of_vjp(base) if prefix == VJP else _maker_of_transpose(base))
    return operator


def _dense() -> VarKind:
    """Returns the kind of gradients: dense, even if a random key is among the values."""
    return VarKind.LOD_TENSOR


def _count(*, wrt: Places) -> int:
    return len(wrt)


def _signature(convert: Callable[[Any], Attributes], prefix: str) -> inspect.Signature:
    parameters = [inspect.Parameter("values", inspect.Parameter.VAR_POSITIONAL, annotation=Array)]
    attributes: dict[str, Any] = {
        "of": Annotated[tuple[Any, ...], ConvertedBy(convert)],
        "arity": int,
        "given": Places,
        "wrt": Places,
    }
    if prefix == TRANSPOSE:
        attributes["like"] = Like
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
        for name, annotation in attributes.items()
    ]
    return inspect.Signature(parameters)


def _run(
    base: Operator,
    values: Inputs,
    *,
    of: Attributes,
    arity: int,
    given: Places,
    wrt: Places,
    like: Like = (),
) -> tuple[Any, ...]:
    """Runs the kernel of a derived operator."""
    flat, heads = _sorted(values, arity, given)
    for i, (shape, dtype) in zip(wrt, like, strict=False):
        flat[i] = jnp.zeros(shape, dtype)  # a linear kernel has the same derivative everywhere
    return tuple(vjp(base, flat, of, wrt, heads))


def _sorted(values: Inputs, arity: int, places: Places) -> tuple[list[Any], dict[int, Any]]:
    """Returns the inputs, and the cotangents by output, from the values of a derived operator."""
    flat: list[Any] = [None] * arity
    heads: dict[int, Any] = {}
    for place, value in zip(places, values, strict=True):
        if place < arity:
            flat[place] = value
        else:
            heads[place - arity] = value
    return flat, heads


# Gradient makers of derived operators ----------------------------------------------------------


def _maker_of_vjp(base: Operator) -> Callable[..., Any]:
    def maker(
        values: tuple[Var, ...],
        d_grads: tuple[Var, ...],
        wanted: tuple[bool, ...],
        *,
        of: Attributes,
        arity: int,
        given: Places,
        wrt: Places,
    ) -> dict[str, Any]:
        operator, attributes = vjp_of(base), (of, arity, given, wrt)
        linear = tuple(k for k, place in enumerate(given) if place >= arity)
        return {"values": _gradients(operator, values, attributes, d_grads, wanted, linear)}

    return maker


def _maker_of_transpose(base: Operator) -> Callable[..., Any]:
    def maker(
        values: tuple[Var, ...],
        d_grads: tuple[Var, ...],
        wanted: tuple[bool, ...],
        *,
        of: Attributes,
        arity: int,
        given: Places,
        wrt: Places,
        like: Like,
    ) -> dict[str, Any]:
        operator, attributes = transpose_of(base), (of, arity, given, wrt, like)
        linear = tuple(k for k, place in enumerate(given) if place >= arity)

        def transpose() -> dict[int, Any]:
            flat, _ = _sorted(values, arity, given)
            for place, head in zip(wrt, d_grads, strict=True):
                flat[place] = head
            results = _emitted(base.resolved(tuple(flat), of), tuple(flat), of)
            return {k: results[given[k] - arity] for k in linear}

        return {
            "values": _gradients(operator, values, attributes, d_grads, wanted, linear, transpose)
        }

    return maker
