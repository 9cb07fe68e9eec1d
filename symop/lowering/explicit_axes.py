"""Operator calls on meshes with explicit axes, where shardings are part of JAX's array types."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from registry.xla.device_types import is_explicit, struct_of

Call = Callable[..., Any]
_Spec: Any = PartitionSpec  # JAX declares no types for it


def on_explicit_axes(values: Sequence[Any]) -> bool:
    """Whether some array in ``values`` is sharded over explicit mesh axes."""
    return any(is_explicit(jax.typeof(one)) for one in jax.tree.leaves(values) if _is_array(one))


def call_on_explicit_axes(call: Call, inputs: Sequence[Any]) -> Any:
    """Calls ``call(*inputs)``, even where JAX cannot infer the sharding of the result.

    JAX cannot if an axis that is contracted, reshaped or gathered from is sharded. An axis of the
    result that comes from an axis of the inputs is then sharded like it; contracted axes are summed
    over devices, as in JAX's own transpose of a contraction.

    Raises:
        Exception: Any error of the call that is not due to the sharding.
    """
    try:
        return call(*inputs)
    except Exception:
        split = _Split(inputs)
        shardings = None if split.mesh is None else _shardings_of_results(call, split)
        if shardings is None:
            raise
    run = jax.sharding.auto_axes(
        lambda *arrays: call(*split.inputs(arrays)),
        axes=split.mesh.explicit_axes,
        out_sharding=shardings,
    )
    return run(*split.arrays)


class _Split:
    """The inputs of a call, split into arrays and the rest.

    Attributes:
        arrays: The arrays.
        mesh: The abstract mesh of an array that is sharded over explicit axes, or None.
    """

    def __init__(self, inputs: Sequence[Any]) -> None:
        self._leaves, self._tree = jax.tree.flatten(list(inputs))
        self._places = [i for i, one in enumerate(self._leaves) if _is_array(one)]
        self.arrays = [self._leaves[i] for i in self._places]
        explicit = (one for one in map(jax.typeof, self.arrays) if is_explicit(one))
        first: Any = next(explicit, None)
        self.mesh: Any = None if first is None else first.sharding.mesh.abstract_mesh

    def inputs(self, arrays: Sequence[Any]) -> list[Any]:
        """Returns all inputs, with ``arrays`` in place of the arrays."""
        leaves = list(self._leaves)
        for i, one in zip(self._places, arrays, strict=True):
            leaves[i] = one
        inputs: list[Any] = jax.tree.unflatten(self._tree, leaves)
        return inputs


def _shardings_of_results(call: Call, split: _Split) -> Any:
    """Returns the shardings of a call's results; None if the call fails without sharding too.

    A mesh axis divides the result axis that becomes shorter when the inputs have the lengths they
    have on one of its devices, such as a batch axis. Contracted axes do not appear.
    """
    whole = _results(call, split, None)
    if whole is None:
        return None
    tree: Any
    leaves, tree = jax.tree.flatten(whole)
    divided: list[list[tuple[str, ...]]] = [[()] * len(one.shape) for one in leaves]
    for axis in split.mesh.explicit_axes:
        part = _results(call, split, axis)
        fits = part is not None and tree == jax.tree.structure(part)
        lesser = jax.tree.leaves(part) if fits else [None] * len(leaves)
        size = split.mesh.shape[axis]
        for entries, one, less in zip(divided, leaves, lesser, strict=True):
            place = _leading(split, axis, one) if less is None else _shorter(one, less, size)
            if place is not None:
                entries[place] = (*entries[place], axis)
    specs = [_Spec(*[one or None for one in entries]) for entries in divided]
    return jax.tree.unflatten(tree, [NamedSharding(split.mesh, one) for one in specs])


def _results(call: Call, split: _Split, axis: str | None) -> Any:
    """Returns the types of the results for the input lengths on one device of ``axis``.

    The result is None if the call fails. Without an axis, the inputs have their full lengths.
    """
    size = 1 if axis is None else split.mesh.shape[axis]
    structs = [_shortened(jax.typeof(one), axis, size, split.mesh) for one in split.arrays]
    try:
        return jax.eval_shape(lambda *arrays: call(*split.inputs(arrays)), *structs)
    except Exception:  # of any kind: the lengths do not fit
        return None


def _shortened(type: Any, axis: str | None, size: int, mesh: Any) -> Any:
    """Returns an unsharded stand-in for an array of ``type``, its lengths divided by ``axis``."""
    places = _places(type, axis)
    shape = [n // size if i in places else n for i, n in enumerate(type.shape)]
    if not type.manual_axis_type.varying:
        return struct_of(type, shape, None)
    return struct_of(type, shape, NamedSharding(mesh, _Spec(*[None] * len(shape))))


def _places(type: Any, axis: str | None) -> list[int]:
    """Returns the axes of an array of ``type`` that are sharded over the mesh axis ``axis``."""
    if not is_explicit(type):
        return []
    spec = enumerate(type.sharding.spec)
    return [i for i, one in spec if axis == one or (isinstance(one, tuple) and axis in one)]


def _shorter(whole: Any, part: Any, size: int) -> int | None:
    """Returns the first axis that is shorter by the factor ``size``, or None."""
    lengths = zip(whole.shape, part.shape, strict=True)
    return next((i for i, (n, m) in enumerate(lengths) if m < n == m * size), None)


def _leading(split: _Split, axis: str, result: Any) -> int | None:
    """Returns 0 if the result's first axis is as long as the inputs' axes sharded over ``axis``.

    Those must be the first axes of their inputs; otherwise the result is None.
    """
    spread = [one for one in map(jax.typeof, split.arrays) if _places(one, axis)]
    lengths = {one.shape[0] if _places(one, axis) == [0] else None for one in spread}
    return 0 if result.shape and lengths == {result.shape[0]} else None


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array)
