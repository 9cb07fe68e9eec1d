"""Calls of operators on sparse arrays: by the rule for their storage types, or on dense arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import symop as so
from symop.interop.mxnet.calls import bound
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.ndarray import NDArray, raising
from symop.interop.mxnet.operators import Operator
from symop.interop.mxnet.sparse_arrays import BaseSparseNDArray, as_stored, assign, wrapped
from symop.interop.mxnet import sparse_ops as _rules  # noqa: F401  # importing it fills the table
from symop.interop.mxnet.storage import (
    CSR,
    DEFAULT,
    Values,
    chosen,
    output_stype,
    warn_fallback,
)


def called(
    operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any = None
) -> Any:
    """Calls ``operator`` on arrays of any storage types, as ``mx.nd`` does.

    Raises:
        MXNetError: an input is missing, or an argument is unknown.
    """
    given = bound(operator, args, kwargs, lambda one: isinstance(one, NDArray))
    missing = [name for name in given.names if name not in given.inputs]
    if missing:
        raise MXNetError(f"{operator.name}: {', '.join(missing)} must be arrays, got none")
    values = operator.read(given.attributes, len(given.names))
    arrays = [given.inputs[name] for name in given.names]
    rule = chosen(operator.name, [one.stype for one in arrays], values)
    if rule is not None and rule.in_place is not None and out is arrays[0]:
        raising(rule.in_place)(*arrays, **_attributes(operator, values))
        return out
    found = computed(operator, arrays, values)
    if out is None:
        return found[0] if len(found) == 1 else found
    places = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(places) != len(found):
        raise MXNetError(
            f"{operator.name}: out must hold {len(found)} arrays, got {len(places)} of them"
        )
    for place, one in zip(places, found, strict=True):
        if place is not one:
            assign(place, one)
    return out


@raising
def computed(operator: Operator, arrays: Sequence[NDArray], values: Values) -> list[NDArray]:
    """The visible outputs of a call, in the storage types that the table says."""
    stypes = [one.stype for one in arrays]
    rule = chosen(operator.name, stypes, values)
    wanted = output_stype(operator.name, stypes, values)
    if rule is None or _is_lost(arrays, rule.traced):
        if any(one != DEFAULT for one in (*stypes, wanted)):
            what = operator.name if rule is None else f"the gradient of {operator.name}"
            warn_fallback(what, stypes, wanted, level=6)
        return _on_dense(operator, arrays, values, wanted)
    found = rule.compute(*arrays, **_attributes(operator, values))
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _attributes(operator: Operator, values: Values) -> dict[str, Any]:
    return {name: values[name] for name in operator.attributes}


def _is_lost(arrays: Sequence[NDArray], traced: bool) -> bool:
    """Whether a gradient may flow to an input to which a rule does not carry it."""
    if not so.autograd.is_recording():
        return False
    lost = [one for one in arrays if not traced or one.stype == CSR]
    return any(one.stored.is_recorded for one in lost)


def _on_dense(
    operator: Operator, arrays: Sequence[NDArray], values: Values, wanted: str
) -> list[NDArray]:
    """The visible outputs of a call on dense arrays; states are written."""
    dense = [one.dense() if isinstance(one, BaseSparseNDArray) else one.inner for one in arrays]
    made = operator.prepared(values)(dense)
    visible = operator.visible(values)
    if len(made) > visible:
        names = operator.present(values)
        states = [one for one, name in zip(arrays, names, strict=True) if name in operator.states]
        for place, one in zip(states, made[visible:], strict=True):
            assign(place, NDArray(one))
    outputs = [wrapped(_own(one, dense)) for one in made[:visible]]
    return [one if wanted == DEFAULT else as_stored(one, wanted) for one in outputs]


def _own(made: Any, arrays: Sequence[so.NDArray]) -> so.NDArray:
    """``made`` as an array that can be changed independently of ``arrays``."""
    array = made if isinstance(made, so.NDArray) else so.NDArray(made)
    return so.nd.identity(array) if any(array is one for one in arrays) else array
