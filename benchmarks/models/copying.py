"""Parameters of a symop model in the tree of the same model in flax."""

import re
from collections import defaultdict
from typing import Any

import jax
import numpy as np

Arrays = dict[str, Any]
_MODULES = {
    "Dense": "fully_connected",
    "Conv": "convolution",
    "LayerNorm": "layer_norm",
    "GroupNorm": "group_norm",
    "BatchNorm": "batch_norm",
    "MultiHeadDotProductAttention": "attention",
    "Embed": "lookup_table",
    "table": "table",
    "OptimizedLSTMCell": "",
}
"""The names of flax's modules, and those of symop's layers."""
_LEAVES = {
    "kernel": "_weight",
    "bias": "_bias|_beta",
    "scale": "_gamma",
    "embedding": "(?:_table)?",
    "mean": "_moving_mean",
    "var": "_moving_var",
}
"""The names of flax's arrays, and the ends of symop's."""
_GATES = "ifgo"
"""The order of the gates of an LSTM in symop's weights, and the names of their parts in flax."""


def to_flax(arrays: Arrays, variables: Any) -> Any:
    """Returns ``variables``, a tree of flax, with the values of symop's arrays.

    Layers of one kind correspond in the order of their numbers.

    Args:
        arrays: parameters and states by name.
        variables: a tree of arrays that have the right shapes.
    """
    leaves, tree = jax.tree_util.tree_flatten_with_path(variables)
    groups: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for i, (path, _) in enumerate(leaves):
        kind, number = _kind("/".join(str(key.key) for key in path[1:]))
        groups[kind].append((number, i))
    found: list[Any] = [None] * len(leaves)
    for kind, members in groups.items():
        names = _named(kind, arrays)
        assert len(names) == len(members), (kind, names)
        for name, (_, i) in zip(names, sorted(members), strict=True):
            found[i] = _converted(kind, np.asarray(arrays[name]), leaves[i][1].shape)
    return jax.tree_util.tree_unflatten(tree, found)


def _kind(path: str) -> tuple[str, int]:
    """Returns ``path`` without the number of its module, and that number."""
    number = re.search(r"_(\d+)(?=/)", path)
    return re.sub(r"_\d+(?=/)", "", path), int(number[1]) if number else 0


def _named(kind: str, arrays: Arrays) -> list[str]:
    """Returns the names of symop's arrays of one kind, in the order of their numbers."""
    module, *parts, leaf = kind.split("/")
    if module == "OptimizedLSTMCell":
        gate = parts[0]
        stem = "bias" if leaf == "bias" else "input" if gate[0] == "i" else "recurrent"
        pattern = rf"{stem}(\d+)"
    else:
        middle = "".join(f"_{part}" for part in parts)
        pattern = rf"(?:{_MODULES[module]})(\d*){middle}(?:{_LEAVES[leaf]})"
    matches = [one for name in arrays if (one := re.fullmatch(pattern, name))]
    return [one[0] for one in sorted(matches, key=lambda one: int(one[1] or 0))]


def _converted(kind: str, value: np.ndarray, shape: tuple[int, ...]) -> jax.Array:
    """Returns an array with the axes that flax gives it: inputs before outputs."""
    module, *parts, leaf = kind.split("/")
    if module == "OptimizedLSTMCell":
        gate = _GATES.index(parts[0][1])
        value = np.split(value, len(_GATES))[gate]
    if leaf == "kernel" and module != "Conv":
        value = value.T
    return jax.numpy.asarray(value.reshape(shape))
