"""Rules of update operators: row-sparse gradients update the rows that they store."""

from collections.abc import Mapping, Sequence
from typing import Any

from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.operators import find
from symop.interop.mxnet.row_steps import compiled, stepped
from symop.interop.mxnet.sparse_arrays import as_stored
from symop.interop.mxnet.storage import DEFAULT, ROW_SPARSE, Values, When, rule

_NONE: tuple[()] = ()


def _step(
    key: Any, groups: Sequence[Sequence[Any]], grads: Sequence[Any], numbers: Any
) -> list[list[Any]]:
    """The update operator ``key[0]`` with the attributes ``key[1]``, on JAX arrays."""
    del numbers
    name, attributes = key
    (tables,), (grad,) = groups, grads
    weight, *states = tables
    found = find(name).function(weight, grad, *states, **dict(attributes))
    listed = list(found) if isinstance(found, (tuple, list)) else [found]
    return [[new.astype(old.dtype) for new, old in zip(listed, tables, strict=True)]]


def _in_place(name: str, always_lazy: bool) -> Any:
    def update(weight: NDArray, grad: NDArray, *states: NDArray, **attributes: Any) -> None:
        """Updates weight and states."""
        lazy = always_lazy or bool(attributes.get("lazy_update"))
        lazy = lazy and all(one.stype == weight.stype for one in states)
        key = name, tuple(sorted(attributes.items()))
        tables = [weight, *states]
        stepped([tables], [grad], _NONE, compiled(_step, key, (len(tables),), (lazy,)))

    return update


def _updated(name: str, always_lazy: bool) -> Any:
    change = _in_place(name, always_lazy)

    def update(weight: NDArray, grad: NDArray, *states: NDArray, **attributes: Any) -> NDArray:
        """The new weight; states are updated in place."""
        new = as_stored(weight, weight.stype) if weight.is_sparse else weight.copy()
        change(new, grad, *states, **attributes)
        return new

    return update


def _declare(
    name: str,
    inputs: Mapping[str, Sequence[str]] | Sequence[Sequence[str]],
    always: bool,
    **how: Any,
) -> None:
    """Declares the rules of an update for the storage types of weight, gradient and states."""
    for stypes in inputs:
        rule(name, stypes, stypes[0], in_place=_in_place(name, always), **how)(
            _updated(name, always)
        )


def _alike(states: int) -> list[list[str]]:
    """A dense or row-sparse weight with states of the same storage type."""
    return [[one, ROW_SPARSE, *[one] * states] for one in (DEFAULT, ROW_SPARSE)]


def _standard(states: int) -> list[list[str]]:
    """A row-sparse weight with dense states: all rows are updated."""
    return [[ROW_SPARSE, ROW_SPARSE, *[DEFAULT] * states]]


def _no_decay(values: Values) -> bool:
    return not values["wd"]


_declare("sgd_update", _alike(0), False)
_declare("sgd_mom_update", [*_alike(1), *_standard(1)], False)
_declare("adam_update", [*_alike(2), *_standard(2)], False)
_declare("ftrl_update", _alike(2)[1:], True)
_declare("_sparse_adagrad_update", _alike(1), True, when=When("wd = 0", _no_decay))
_declare("_contrib_group_adagrad_update", _alike(1), True)
