"""A Paddle program, for feeds of given types, as a ``so.Program`` that keeps its variables."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

import symop as so
from symop.interop.paddle.arrays import is_packed, leaves, rebuilt
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.facts import OFFSETS, Facts
from symop.interop.paddle.framework import ProgramDesc, VarDesc, VarKind
from symop.interop.paddle.translating import Translation
from symop.interop.paddle.values import data_of
from symop.symbol.symbol import Symbol


class Type(NamedTuple):
    """The type of a value that is fed or kept.

    Attributes:
        shape: its shape.
        dtype: its dtype.
        counts: for ragged sequences the number of sequences of each level.
    """

    shape: tuple[int, ...]
    dtype: Any
    counts: tuple[int, ...] = ()


class Translated(NamedTuple):
    """A program as a graph.

    Attributes:
        fetched: the values that were asked for; ragged ones are ``LoDTensor`` values.
        updates: the values of persistable variables after the run, where they change.
        variables: the persistable variables that the graph reads.
    """

    fetched: list[Any]
    updates: dict[str, Any]
    variables: list[str]


_KEPT = (VarKind.LOD_TENSOR, VarKind.SELECTED_ROWS)


def persistables(desc: ProgramDesc) -> list[VarDesc]:
    """Returns the variables whose values outlive a run."""
    variables = desc.blocks[0].vars.values()
    return [one for one in variables if one.persistable and one.kind in _KEPT]


def translate(
    desc: ProgramDesc,
    feed: Mapping[str, Type],
    kept: Mapping[str, Type],
    fetch: Sequence[str],
    max_steps: int | None = None,
    facts: Facts | None = None,
) -> Translated:
    """Translates a program for feeds of given types.

    Args:
        desc: the program.
        feed: the types of the values that are fed.
        kept: the types of the persistable variables that have values.
        fetch: names of variables whose values are wanted.
        max_steps: the largest number of steps of loops whose number of steps is not known.
        facts: what is known of these values besides their types.

    Raises:
        UnknownValueError: a shape depends on a value that is not known.
        PaddleError: a call cannot be translated, or a fetched variable has no value.
    """
    known = facts or Facts()
    before = {name: _value(name, one, known.values) for name, one in {**kept, **feed}.items()}
    environment: dict[str, Any] = dict(before)
    Translation(desc, max_steps, known).run(0, environment)
    lacking = [name for name in fetch if environment.get(name) is None]
    if lacking:
        raise PaddleError(f"fetch_list: variables must have values, got none for {lacking[0]!r}")
    updates = {
        one.name: data_of(environment[one.name])
        for one in persistables(desc)
        if one.name not in feed
        and environment.get(one.name) is not None
        and environment[one.name] is not before.get(one.name)
    }
    return Translated([environment[name] for name in fetch], updates, [*kept])


def _value(name: str, type_: Type, known: Mapping[str, Any]) -> Any:
    """Returns a variable, or the array that is known of it; the offsets likewise."""
    data = known[name] if name in known else so.var(name, type_.shape, type_.dtype)
    if not type_.counts:
        return data
    labels = [f"{name}{OFFSETS}{i}" for i in range(len(type_.counts))]
    offsets = [
        known[label] if label in known else so.var(label, (n + 1,), "int32")
        for label, n in zip(labels, type_.counts, strict=True)
    ]
    return so.LoDTensor(data, offsets)


class Compiled:
    """A program that runs for feeds of given types.

    Attributes:
        program: the program, which keeps the persistable variables that it reads.
    """

    def __init__(self, translated: Translated, scope: Any) -> None:
        """Makes a program of a graph; its values are those of ``scope``."""
        self._forms = [_fetched(one) for one in translated.fetched]
        self._is_plain = all(isinstance(one, Symbol) for one in self._forms)
        fetched = [leaf for one in self._forms for leaf in leaves(one)]
        self._fixed = {i: one for i, one in enumerate(fetched) if not isinstance(one, Symbol)}
        self._constants = {
            name: one for name, one in translated.updates.items() if not isinstance(one, Symbol)
        }
        symbols = [one for one in fetched if isinstance(one, Symbol)]
        updates = {name: one for name, one in translated.updates.items() if isinstance(one, Symbol)}
        self._created: list[str] = []
        self._fed: set[str] = set()
        self.program = self._of(symbols, updates, translated.variables, scope)
        self._scope = scope

    def _of(
        self,
        fetched: list[Symbol],
        updates: Mapping[str, Symbol],
        variables: Sequence[str],
        scope: Any,
    ) -> Any:
        """Returns a program of what is not constant, or None if everything is."""
        if not fetched and not updates:
            return None
        group = so.Group([*fetched, *updates.values()])
        read = set(group.list_inputs())
        program = group.to_program([name for name in variables if name in read])
        outputs = program.outputs
        kept = list(outputs[: len(fetched)])
        for name, output in zip(updates, outputs[len(fetched) :], strict=True):
            if name in read:
                program.update(name, output)
            else:
                self._created.append(name)
                kept.append(output)
        program.outputs = kept
        program.scope = scope
        self._fed = {one.name for one in program.inputs}
        return program

    def __call__(self, feed: Mapping[str, Any]) -> list[Any]:
        """Runs the program and returns the fetched values."""
        given = feed if feed.keys() == self._fed else {name: feed[name] for name in self._fed}
        results = self.program.run(given) if self.program is not None else []
        for name, value in self._constants.items():
            self._scope[name] = value
        if self._created:
            first = len(results) - len(self._created)
            self._scope.update(zip(self._created, results[first:], strict=True))
            del results[first:]
        return results if self._is_plain else self._formed(results)

    def _formed(self, results: Sequence[Any]) -> list[Any]:
        """Returns the fetched values, given the computed ones among their arrays."""
        computed = iter(results)
        count = sum(len(leaves(one)) for one in self._forms)
        supply = iter(
            [self._fixed[i] if i in self._fixed else next(computed) for i in range(count)]
        )
        return [rebuilt(one, [next(supply) for _ in leaves(one)]) for one in self._forms]


def _fetched(value: Any) -> Any:
    """Returns what is fetched: of a tensor array that a loop wrote, all elements stacked."""
    return so.array_stack(value) if is_packed(value) else value


def fed(feed: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arrays of what is fed: values, and the offsets of their sequences.

    Arrays of JAX stay as they are, and other values become arrays of NumPy. The program narrows
    wide integers when it runs, and rejects those that do not fit.

    Args:
        feed: by variable an array, a ``LoDTensor``, or an array and a list of lengths for each
            level.
    """
    found: dict[str, Any] = {}
    for name, value in feed.items():
        if value.__class__ is np.ndarray or isinstance(value, jax.Array):
            found[name] = value
            continue
        given = so.LoDTensor.from_lengths(*value) if isinstance(value, tuple) else value
        if isinstance(given, so.LoDTensor):
            for level, offsets in enumerate(given.lod):
                found[f"{name}{OFFSETS}{level}"] = np.asarray(offsets, np.int32)
            given = given.data
        found[name] = given if isinstance(given, jax.Array) else np.asarray(given)
    return found


def types_of(arrays: Mapping[str, Any], ragged: Mapping[str, Sequence[int]]) -> dict[str, Type]:
    """Returns the types of fed arrays, without those of offsets."""
    return {
        name: Type(
            tuple(one.shape),
            np.dtype(jax.dtypes.canonicalize_dtype(one.dtype)),
            tuple(ragged.get(name, ())),
        )
        for name, one in arrays.items()
        if OFFSETS not in name
    }
