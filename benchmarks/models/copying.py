"""Parameters of a symop model in the same model in flax, and in PyTorch."""

import re
from collections import Counter, defaultdict
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


# PyTorch ---------------------------------------------------------------------------------------

_LAYERS = {
    "Linear": "fully_connected",
    "Conv2d": "convolution",
    "LayerNorm": "layer_norm",
    "GroupNorm": "group_norm",
    "BatchNorm2d": "batch_norm",
    "Embedding": "lookup_table",
    "LSTM": "",
}
"""The classes of PyTorch's layers, and the names of symop's."""
_ENDS = {
    "weight": ("_weight", "_gamma", "_table", ""),
    "bias": ("_bias", "_beta"),
    "running_mean": ("_moving_mean",),
    "running_var": ("_moving_var",),
}
"""The names of PyTorch's arrays, and the ends of symop's."""
_CELL = {"weight_ih_l": "input", "weight_hh_l": "recurrent", "bias_ih_l": "bias"}
"""The same of an LSTM, without the number of the layer."""


def to_torch(arrays: Arrays, network: Any) -> dict[str, np.ndarray]:
    """Returns the values of symop's arrays by the names of a module of PyTorch.

    Layers of one kind correspond in the order in which the module creates them. Projections of
    attention are called ``qkv`` and ``out``.

    Args:
        arrays: parameters and states by name.
        network: a module.
    """
    found, used, counts = dict[str, np.ndarray](), set[str](), Counter[str]()
    for path, module in network.named_modules():
        stems = _stems(path.rpartition(".")[2], type(module).__name__, counts)
        for leaf in module._parameters | module._buffers if stems else ():
            names = [name for stem in stems for name in _candidates(stem, leaf) if name in arrays]
            if names:
                values = [_transposed(np.asarray(arrays[name])) for name in names]
                found[f"{path}.{leaf}"] = np.concatenate(values)
                used.update(names)
    assert used == set(arrays), set(arrays) - used
    return found


def _stems(name: str, layer: str, counts: Counter[str]) -> list[str]:
    """Returns the starts of the names that symop gives to a layer of PyTorch."""
    if name == "table":
        return [name]
    kind = name if name in ("qkv", "out") else layer
    number = counts[kind]
    counts[kind] += 1
    if kind == "qkv":
        return [f"attention{number}_{part}" for part in ("query", "key", "value")]
    if kind == "out":
        return [f"attention{number}_out"]
    return [f"{_LAYERS[layer]}{number}" if layer != "LSTM" else ""] if layer in _LAYERS else []


def _candidates(stem: str, leaf: str) -> list[str]:
    """Returns the names that symop may give to an array of a layer."""
    if not stem:
        part, number = leaf[:-1], leaf[-1]
        return [f"{_CELL[part]}{number}"] if part in _CELL else []
    return [stem + end for end in _ENDS.get(leaf, ())]


def _transposed(value: np.ndarray) -> np.ndarray:
    """Returns an array with PyTorch's axes: the channels of a kernel come first."""
    return value.transpose(3, 2, 0, 1) if value.ndim == 4 else value


# Flax ------------------------------------------------------------------------------------------


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
