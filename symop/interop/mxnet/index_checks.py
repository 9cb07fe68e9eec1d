"""Checks of indices that must be in bounds: ``take(mode="raise")`` of arrays and executors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.errors import MXNetIndexError
from symop.interop.mxnet.graph import Entry, Node, topological
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.translating import as_function

Check = Callable[[Mapping[str, Any]], None]
"""A function of the values of variables by name, which raises if an index is out of bounds."""


def require_within(what: str, axis: int, places: np.ndarray, bounds: tuple[int, int]) -> None:
    """Raises if indices of ``axis`` are not within ``bounds``, of which the second is excluded.

    Raises:
        MXNetIndexError: an index is out of bounds.
    """
    wrong = places[(places < bounds[0]) | (places >= bounds[1])]
    if wrong.size:
        raise MXNetIndexError(
            f"{what}: indices of axis {axis} must be in [{bounds[0]}, {bounds[1]}), got "
            f"{int(wrong.flat[0])}"
        )


def check_of(heads: Sequence[Entry], arrays: Mapping[str, NDArray]) -> Check | None:
    """The check of a graph's indices; None if no call asks for one.

    It computes the indices once more, and waits for them. Indices that are drawn are drawn anew.

    Args:
        heads: outputs of the graph.
        arrays: the arrays of its variables.
    """
    calls = [one for one in topological(heads) if _raises(one)]
    if not calls:
        return None
    shapes = {name: one.shape for name, one in arrays.items()}
    types = Inference(heads, shapes, {name: one.dtype for name, one in arrays.items()})
    indices = [one.inputs[1] for one in calls]
    names = [one.name for one in topological(indices) if one.is_variable]
    compute = jax.jit(as_function(indices, names, is_train=False))

    def check(held: Mapping[str, Any]) -> None:
        key = jax.random.key(0)
        found = compute(**{name: held[name] for name in names}, random_key=key)
        for node, places in zip(calls, jax.tree.leaves(found), strict=True):
            axis, shape = node.values["axis"], types.shape(node.inputs[0])
            assert shape is not None
            what = f"take (node {node.name!r})"
            require_within(what, axis, np.asarray(places), (0, shape[axis]))

    return check


def _raises(node: Node) -> bool:
    """Whether a call refuses indices out of bounds."""
    return (
        node.operator is not None
        and node.operator.name == "take"
        and node.values["mode"] == "raise"
    )
