"""The leaves of a state by name: of a pytree, or of a program with the random numbers."""

from collections.abc import Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from registry.errors import FormatError, SymopError
from registry.types import VarKind
from registry.values import SelectedRows
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop import random
from symop.checkpoint.arrays import sharding_of, struct, type_of
from symop.program.block import Variable
from symop.program.program import Program

Leaves = dict[str, Any]

_SCOPE, _RANDOM, _TREE = "scope/", "random/", "tree"
_PARTS = ("rows", "values")


class State(Protocol):
    """A state whose leaves have names."""

    def leaves(self) -> Leaves:
        """Returns the arrays and numbers to save."""

    def likes(self) -> Leaves:
        """Returns what a restored value must be like; None for an array of NumPy of any shape."""

    def types(self) -> dict[str, str]:
        """Returns the types of the leaves as text; a checkpoint must hold the same."""

    def replace(self, values: Mapping[str, Any]) -> Any:
        """Returns the state with other leaves; None for a program, whose values are replaced.

        Raises:
            FormatError: the values do not fit the program, which is unchanged.
        """


def state_of(value: Any) -> State:
    """Returns a program or a pytree as a state."""
    return ProgramState(value) if isinstance(value, Program) else TreeState(value)


class TreeState:
    """A pytree; its leaves are named by their paths."""

    def __init__(self, tree: Any) -> None:
        """Names the leaves of ``tree``."""
        leaves, self._structure = jax.tree_util.tree_flatten_with_path(tree)
        self._leaves = {_TREE + jax.tree_util.keystr(path): leaf for path, leaf in leaves}
        self._tree = tree

    def leaves(self) -> Leaves:
        """Returns the leaves."""
        return self._leaves

    def likes(self) -> Leaves:
        """Returns the leaves."""
        return self._leaves

    def types(self) -> dict[str, str]:
        """Returns the types of the leaves, and the heights of row-sparse values."""
        heights = _heights(self._tree)
        return {
            name: type_of(name, one) + heights.get(name, "") for name, one in self._leaves.items()
        }

    def replace(self, values: Mapping[str, Any]) -> Any:
        """Returns the tree with other leaves."""
        return jax.tree_util.tree_unflatten(self._structure, [values[n] for n in self._leaves])


def _heights(tree: Any) -> dict[str, str]:
    """Returns the heights of row-sparse values, which belong to the structure, by array of rows."""
    nodes, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_rows)
    return {
        f"{_TREE}{jax.tree_util.keystr(path)}.rows": f" of {one.height} rows"
        for path, one in nodes
        if _is_rows(one)
    }


def _is_rows(value: Any) -> bool:
    return isinstance(value, SelectedRows)


class ProgramState:
    """The parameters and states of a program, and the state of the process's random numbers."""

    def __init__(self, program: Program) -> None:
        """Names the arrays of ``program``."""
        self._program = program
        self._kept = [one for one in program.variables if one.persistable]

    def leaves(self) -> Leaves:
        """Returns the values, initializing those that have none."""
        arrays: Leaves = {}
        for name, value in self._program.values().items():
            if _is_rows(value):
                arrays |= {f"{_SCOPE}{name}/{part}": getattr(value, part) for part in _PARTS}
            else:
                arrays[_SCOPE + name] = value
        return arrays | _random_leaves()

    def likes(self) -> Leaves:
        """Returns the types of the variables, with the shardings of their values."""
        likes = {name: self._like(one) for one in self._kept for name in _names(one)}
        return likes | _random_leaves()

    def _like(self, variable: Variable) -> Any:
        # A row-sparse value may have another number of rows after each run.
        if variable.kind is VarKind.SELECTED_ROWS:
            return None
        type, scope = variable.type, self._program.scope
        sharding = sharding_of(scope[variable.name]) if variable.name in scope else None
        return struct(type.shape, type.dtype, sharding=sharding)

    def types(self) -> dict[str, str]:
        """Returns the types of the variables."""
        types = {name: str(one.type) for one in self._kept for name in _names(one)}
        return types | {name: type_of(name, one) for name, one in _random_leaves().items()}

    def replace(self, values: Mapping[str, Any]) -> None:
        """Replaces the values of the program, and the state of the random numbers."""
        arrays = {one.name: _value(one, values) for one in self._kept}
        state = {part: values[_RANDOM + part] for part in random.get_state()}
        self._program.scope.update(arrays)
        random.set_state(state)


def _random_leaves() -> Leaves:
    return {_RANDOM + name: one for name, one in random.get_state().items()}


def _names(variable: Variable) -> list[str]:
    """Returns the names of a variable's arrays."""
    name = _SCOPE + variable.name
    rows = variable.kind is VarKind.SELECTED_ROWS
    return [f"{name}/{part}" for part in _PARTS] if rows else [name]


def _value(variable: Variable, values: Mapping[str, Any]) -> Any:
    type, arrays = variable.type, [values[name] for name in _names(variable)]
    if type.kind is not VarKind.SELECTED_ROWS:
        return arrays[0]
    rows, held = map(jnp.asarray, arrays)
    result = SelectedRows(rows, held, type.shape[0])
    try:
        fits = result.type is type
    except SymopError:
        fits = False
    if not fits:
        raise FormatError(f"{variable.name}: rows of type {type} must be there, got other arrays")
    return result
