"""Calls of operators on sparse arrays: by the rule for their storage types, or on dense arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import symop as so
from symop.interop.mxnet import sparse_ops as _rules  # noqa: F401  # importing it fills the table
from symop.interop.mxnet.arrays import NDArray, raising
from symop.interop.mxnet.calls import bound
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import Operator
from symop.interop.mxnet.ops.values import sources_are
from symop.interop.mxnet.origins import remember
from symop.interop.mxnet.sparse_arrays import as_stored, assign, wrapped
from symop.interop.mxnet.storage import (
    CSR,
    DEFAULT,
    Rule,
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
    if so.autograd.is_recording():
        remember(found, operator, given.attributes, arrays)
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
def computed(
    operator: Operator, arrays: Sequence[NDArray], values: Values, bodies: Sequence[Any] = ()
) -> list[NDArray]:
    """The visible outputs of a call, in the storage types that the table says."""
    stypes = [_stype(operator.name, one) for one in arrays]
    rule = chosen(operator.name, stypes, values)
    wanted = output_stype(operator.name, stypes, values)
    if rule is None or _is_lost(arrays, rule):
        if any(one != DEFAULT for one in (*stypes, wanted)):
            what = operator.name if rule is None else f"the gradient of {operator.name}"
            warn_fallback(what, stypes, wanted, level=6)
        return _on_dense(operator, arrays, values, wanted, bodies)
    if rule.of_csr and _moves_csr(arrays):
        what = f"the gradient of {operator.name} with respect to a csr array"
        warn_fallback(what, stypes, DEFAULT, level=6)
    found = rule.compute(*arrays, **_attributes(operator, values))
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _attributes(operator: Operator, values: Values) -> dict[str, Any]:
    return {name: values[name] for name in operator.attributes}


LOOKUPS = frozenset(("Embedding", "take"))
"""Operators that look rows up: their gradient is sparse, too, if a dense table asks for that."""


def _stype(name: str, array: NDArray) -> str:
    """The storage type by which a rule is chosen."""
    asks = name in LOOKUPS and so.autograd.is_recording()
    return array.grad_stype if asks and not array.is_sparse else array.stype


def _moves_csr(arrays: Sequence[NDArray]) -> bool:
    """Whether a gradient flows to a csr array."""
    moving = [one for one in arrays if one.stype == CSR and one.stored.is_recorded]
    return bool(moving) and so.autograd.is_recording()


def _is_lost(arrays: Sequence[NDArray], rule: Rule) -> bool:
    """Whether a gradient may flow to an input to which a rule does not carry it."""
    if not so.autograd.is_recording():
        return False
    lost = [one for one in arrays if not rule.traced or (one.stype == CSR and not rule.of_csr)]
    return any(one.stored.is_recorded for one in lost)


@raising
def sources(operator: Operator, values: Values) -> list[NDArray]:
    """The outputs of a call without inputs."""
    with sources_are(so.NDArray):
        found = operator.prepared(values)(())
    return [NDArray(one if isinstance(one, so.NDArray) else so.NDArray(one)) for one in found]


def _on_dense(
    operator: Operator,
    arrays: Sequence[NDArray],
    values: Values,
    wanted: str,
    bodies: Sequence[Any] = (),
) -> list[NDArray]:
    """The visible outputs of a call on dense arrays; states are written."""
    dense = [one.dense() for one in arrays]
    made = operator.prepared(values, bodies)(dense)
    visible = operator.visible(values)
    _write_back(operator, arrays, values, dense)
    if len(made) > visible:
        names = operator.present(values)
        states = [one for one, name in zip(arrays, names, strict=True) if name in operator.states]
        for place, one in zip(states, made[visible:], strict=True):
            assign(place, NDArray(one))
    outputs = [wrapped(_own(one, dense)) for one in made[:visible]]
    return [one if wanted == DEFAULT else as_stored(one, wanted) for one in outputs]


def _write_back(
    operator: Operator, arrays: Sequence[NDArray], values: Values, dense: Sequence[so.NDArray]
) -> None:
    """Writes states that the call changed in their dense forms back to sparse arrays."""
    if operator.states:
        names = operator.present(values)
        for name, one, changed in zip(names, arrays, dense, strict=True):
            if name in operator.states and one.is_sparse:
                assign(one, NDArray(changed))


def _own(made: Any, arrays: Sequence[so.NDArray]) -> so.NDArray:
    """``made`` as an array that can be changed independently of ``arrays``."""
    array = made if isinstance(made, so.NDArray) else so.NDArray(made)
    return so.nd.identity(array) if any(array is one for one in arrays) else array
