"""Promotion: a gradient maker sees its inputs as the kernel promotes them.

JAX differentiates after promotion. An input whose dtype affects that of an output is therefore cast
to the promoted dtype of all such inputs before a maker sees it, and its gradient is cast back.
Other inputs, such as indices and masks, are unchanged. So are inputs of one common dtype, and
Python numbers, which take the dtype of the other operands.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import jax

from registry import var
from registry.caches import memoized
from registry.errors import GradientError
from registry.operator.attributes import typed_key
from registry.operator.binding import LEFT_OUT
from registry.operator.recorder import Called, Recorded, gradient_value, type_of_value
from registry.shapes import at_least_single
from registry.types import (
    KEY_TYPE,
    TRAINING_TYPE,
    DType,
    VarKind,
    VarType,
    as_dtype,
    is_inexact,
    promoted,
)
from registry.var import Attributes, Inputs

Types = tuple[VarType | None, ...]
Dtypes = tuple[DType | None, ...]
_NARROW, _WIDE = as_dtype("float32"), as_dtype("float64")


def gradients(
    operator: Called,
    inputs: Inputs,
    attributes: Attributes,
    outputs: Inputs,
    cotangents: Inputs,
    wanted: tuple[bool, ...] | None = None,
) -> dict[str, Any]:
    """Calls the gradient maker of ``operator`` with promoted inputs."""
    rule = operator.gradient_rule
    assert rule is not None
    dtypes = _dtypes_of(operator, inputs, attributes)
    if not any(dtypes):
        return _required(operator, rule(inputs, attributes, outputs, cotangents, wanted))
    wide = tuple(
        one if dtype is None else one.cast(dtype=dtype)
        for one, dtype in zip(inputs, dtypes, strict=True)
    )
    seen = _unrounded(operator, wide, attributes, outputs, dtypes)
    grads = _required(operator, rule(wide, attributes, seen, cotangents, wanted))
    return {name: _returned(operator, name, one, inputs, dtypes) for name, one in grads.items()}


def _required(operator: Called, grads: Any) -> dict[str, Any]:
    """Returns ``grads``, the result of a gradient maker, which must be a dict."""
    if not isinstance(grads, dict):
        slots = ", ".join(f"{slot.name!r}: ..." for slot in operator.slots)
        raise GradientError(
            f"{operator.name}: its gradient maker must return gradients by slot, {{{slots}}}, "
            f"got a {type(grads).__name__}"
        )
    return grads


def _unrounded(
    operator: Called, wide: Inputs, attributes: Attributes, outputs: Inputs, dtypes: Dtypes
) -> Inputs:
    """Returns the outputs, recomputed if one that the maker reads was rounded and another was not.

    An example is the new state of an optimizer, which keeps the dtype of the old one.
    """
    rule, dtype = operator.gradient_rule, next(one for one in dtypes if one is not None)
    assert rule is not None
    shown = set(operator.visible)
    read = [outputs[i].dtype for i in rule.output_indices & shown]
    rounded = any(is_inexact(one) and one != dtype for one in read)
    if not rounded or len(shown) < len(outputs) or dtype not in [one.dtype for one in outputs]:
        return outputs
    results: Inputs = var.emitter_of(wide).emit(operator, wide, attributes, None)
    return results


# Gradients in the dtypes of the inputs ---------------------------------------------------------


def _returned(operator: Called, name: str, gradient: Any, inputs: Inputs, dtypes: Dtypes) -> Any:
    """Returns the gradient of a slot, or those of a variadic slot, in the dtypes of the inputs."""
    places = [i for i in range(len(inputs)) if operator.slot_of(i).name == name]
    if not any(dtypes[i] for i in places):
        return gradient
    if not operator.slot_of(places[0]).variadic:
        return _narrowed(gradient, inputs[places[0]])
    grads = gradient_value(gradient)
    if grads is None:
        return None
    return [
        one if dtypes[i] is None else _narrowed(one, inputs[i])
        for i, one in zip(places, grads, strict=True)
    ]


def _narrowed(gradient: Any, like: Any) -> Callable[[], Any]:
    """Returns a function that casts the gradient to the dtype of ``like``; None if it is exact."""

    def make() -> Any:
        value = gradient_value(gradient) if like.type.differentiable else None
        return value if value is None or value.dtype == like.dtype else value.cast(dtype=like.dtype)

    return make


# Dtypes of the promoted inputs -----------------------------------------------------------------


def _dtypes_of(operator: Called, inputs: Inputs, attributes: Attributes) -> Dtypes:
    """Returns the promoted dtype of each input, or None; empty while a type is unknown."""
    if len(inputs) < 2 or not operator.promotes:
        return ()
    if any(isinstance(one, Recorded) and one.known_type is None for one in inputs):
        return ()
    types = tuple(_type(operator.slot_of(i).role, one) for i, one in enumerate(inputs))
    if len({one.dtype for one in types if _is_dense(one) and not one.weak}) < 2:
        return ()
    return _promoted_dtypes(operator, attributes, types)


@memoized(4096, key=typed_key)
def _promoted_dtypes(operator: Called, attributes: Attributes, types: Types) -> Dtypes:
    places = _promoted_places(operator, attributes, types)
    operand_types = [one for i in places if (one := types[i]) is not None]
    if not any(one.differentiable for one in operand_types):
        return ()
    dtype = promoted(*operand_types)[0]
    if not all(one.differentiable for one in operand_types):
        dtype = at_least_single(dtype)  # half precision cannot represent the integers
    return tuple(
        dtype if i in places and one is not None and not one.weak and one.dtype != dtype else None
        for i, one in enumerate(types)
    )


def _promoted_places(operator: Called, attributes: Attributes, types: Types) -> frozenset[int]:
    """Returns the inputs whose dtype affects that of an output."""
    read = operator.inference.slots_of_dtype
    by_slot = [
        [i for i, one in enumerate(types) if _is_dense(one) and operator.slot_of(i) is slot]
        for k, slot in enumerate(operator.slots)
        if read is None or k in read
    ]
    inexact = [i for i, one in enumerate(types) if one is not None and is_inexact(one.dtype)]
    return frozenset(
        i
        for places in by_slot
        if places and _moves_dtype(operator, attributes, types, places, inexact)
        for i in places
    )


def _type(role: str, value: Any) -> VarType | None:
    """Returns the type of an input; keys and the training flag may be absent."""
    if role == "training":
        return TRAINING_TYPE
    return KEY_TYPE if value is LEFT_OUT else type_of_value(value)


def _is_dense(type: VarType | None) -> TypeGuard[VarType]:
    return type is not None and type.kind is VarKind.LOD_TENSOR


def _moves_dtype(
    operator: Called,
    attributes: Attributes,
    types: Types,
    places: Sequence[int],
    inexact: Sequence[int],
) -> bool:
    """Whether an output becomes wider if the inputs at ``places`` do and the others stay narrow.

    A kernel may turn half precision into single precision anyway, so double precision is tested.
    """
    narrow = _replaced(operator, types, [*inexact, *places], _NARROW)
    wide = _replaced(operator, narrow, places, _WIDE)
    try:
        with jax.enable_x64(True):
            before, after = (operator.inference(one, attributes) for one in (narrow, wide))
    except Exception:  # the operator, or a user's kernel, does not accept such a dtype
        return False
    return any(a.dtype != b.dtype for a, b in zip(before, after, strict=True))


def _replaced(operator: Called, types: Types, places: Sequence[int], dtype: DType) -> Types:
    chosen = set(places)
    return tuple(
        VarType(one.shape, dtype, one.kind) if i in chosen and one is not None else one
        for i, one in enumerate(types)
    )
