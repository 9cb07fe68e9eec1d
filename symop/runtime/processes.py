"""Agreement between the processes of a job: all of them pass parts of one batch."""

import functools
import json
import zlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax import sharding

from registry.errors import ArgumentError, FeedError

# Any: JAX declares no types for the following names.
_Mesh: Any = sharding.Mesh
_Spec: Any = sharding.PartitionSpec
_named: Any = sharding.NamedSharding
_set_mesh: Any = jax.set_mesh
_from_callback: Any = jax.make_array_from_callback

_NOTE = 1024
"""The number of bytes that a process tells the others."""


class Share(dict[str, Any]):
    """Whole arrays, the same in each process, which feeds its share of them.

    An array needs ``shape``, ``dtype`` and an index of slices.
    """


class Rows:
    """Some rows of an array, which are read when they are needed.

    Attributes:
        shape: the shape of the chosen rows.
        dtype: the dtype of the array.
    """

    def __init__(self, array: Any, chosen: Any) -> None:
        """Chooses the rows at the indices ``chosen`` of ``array``."""
        self._array, self._chosen = array, chosen
        self.shape, self.dtype = (len(chosen), *array.shape[1:]), array.dtype

    def __getitem__(self, index: Any) -> Any:
        first, *others = index if isinstance(index, tuple) else (index,)
        rows = self._array[self._chosen[... if first is Ellipsis else first]]
        return rows[(slice(None), *others)]


# Notes -------------------------------------------------------------------------------------------


def processes_of(mesh: Any) -> tuple[int, ...]:
    """Returns the indices of the processes that have devices of ``mesh``, in ascending order."""
    return tuple(sorted({one.process_index for one in mesh.devices.flat}))


def _passed_on(notes: Any) -> Any:
    return notes


@functools.lru_cache(maxsize=16)
def _exchange(mesh: Any) -> tuple[Any, Any]:
    """Returns the devices in a line, and the compiled function that copies to all of them."""
    line = _Mesh(mesh.devices.reshape(-1), ("device",))
    return line, jax.jit(_passed_on, out_shardings=_named(line, _Spec()))


def _sent(mesh: Any, note: bytes) -> Any:
    """Sends a note to all processes of ``mesh``; returns the notes of all devices, not waiting."""
    line, exchange = _exchange(mesh)
    row = np.frombuffer(note[:_NOTE].ljust(_NOTE, b"\0"), np.uint8)[None]
    shape = line.devices.size, _NOTE
    rows = _from_callback(shape, _named(line, _Spec("device")), lambda _: row)
    with _set_mesh(line):
        return exchange(rows)


def _received(mesh: Any, notes: Any) -> dict[int, bytes]:
    """Waits for the notes; returns them by process."""
    rows = np.asarray(notes.addressable_data(0))
    owners = [one.process_index for one in mesh.devices.flat]
    notes_of = {owner: row.tobytes() for owner, row in zip(owners, rows, strict=True)}
    return dict(sorted(notes_of.items()))


def told(mesh: Any, facts: Mapping[str, Any]) -> dict[str, dict[int, Any]]:
    """Tells facts, which JSON can express, to all processes; returns theirs, by process."""
    note = json.dumps(dict(facts)).encode()
    assert len(note) <= _NOTE
    notes = _received(mesh, _sent(mesh, note))
    facts_of = {one: json.loads(note.rstrip(b"\0")) for one, note in notes.items()}
    return {name: {one: own[name] for one, own in facts_of.items()} for name in facts}


def require_same(owner: str, mesh: Any, facts: Mapping[str, Any]) -> None:
    """Checks that all processes of ``mesh`` give the same facts, if there are several.

    Raises:
        ArgumentError: they differ; each process raises it.
    """
    if len(processes_of(mesh)) == 1:
        return
    texts = {name: json.dumps(one, default=str) for name, one in facts.items()}
    room = _NOTE // (2 * len(texts))
    short = {n: one if len(one) < room else _mark(one.encode()).hex() for n, one in texts.items()}
    for name, values in told(mesh, short).items():
        if len(set(values.values())) > 1:
            raise ArgumentError(
                f"{owner}: {name} must be the same in all processes, got {listed(values)}"
            )


def listed(values: Mapping[int, Any]) -> str:
    """Returns what each process gave, as text; of many equal values, the first."""
    first: dict[str, int] = {}
    for process, value in values.items():
        first.setdefault(str(value), process)
    return ", ".join(f"{value} in process {process}" for value, process in first.items())


# Batches -----------------------------------------------------------------------------------------


class Agreement:
    """Detects that processes feed parts that are not parts of one batch.

    Each process tells the others the types of what it feeds. It waits for the answers before the
    step if it has not fed such types before, for a step of other types is another program. A step
    of known types does not wait: answers that differ are an error before the next step.
    """

    def __init__(self, mesh: Any) -> None:
        """Creates the agreement of the processes of ``mesh``, which have fed nothing yet."""
        self._mesh = mesh
        self._known: set[str] = set()
        self._answers: Any = None

    def expect(
        self, what: str, arrays: Mapping[str, Any], own: Mapping[str, Any], placed: Any
    ) -> None:
        """Checks that all processes feed the same types, and the same values where they must.

        Args:
            what: the caller, for messages.
            arrays: the arrays of all processes together.
            own: what this process has given for them.
            placed: the places of the parts of this process.

        Raises:
            FeedError: they do not, in this call or the one before.
        """
        self._read(what)
        types = [(name, one.shape, str(one.dtype)) for name, one in sorted(arrays.items())]
        key = repr(types)
        is_new = key not in self._known
        marks = [_mark(key.encode())]
        marks += self._values(own, placed) if is_new else [b"\0" * 4] * 3
        parts = ", ".join(f"{name} {one.dtype!s}{list(one.shape)}" for name, one in own.items())
        self._answers = _sent(self._mesh, b"".join(marks) + parts.encode())
        if is_new:
            self._read(what)
            self._known.add(key)

    def _values(self, own: Mapping[str, Any], placed: Mapping[str, Any]) -> list[bytes]:
        """Returns marks of what is fed: of the places, of all of it, and of what all feed."""
        values = {name: np.asarray(one[...]).tobytes() for name, one in sorted(own.items())}
        shared = [values[name] for name in values if placed[name] is None]
        places = repr([(name, placed[name]) for name in values]).encode()
        return [_mark(places), _mark(*values.values()), _mark(*shared)]

    def explain(self, error: Exception) -> None:
        """Raises the reason why a step failed, if it is that a process has fed another type.

        That process ends before its part of the step, in which the others then fail.

        Raises:
            FeedError: The latest answers differ.
        """
        try:
            self._read("step")
        except FeedError as reason:
            raise reason from error
        except jax.errors.JaxRuntimeError:
            return  # the answers have not come

    def _read(self, what: str) -> None:
        answers, self._answers = self._answers, None
        if answers is None:
            return
        notes = _received(self._mesh, answers)
        marks = {one: [note[i : i + 4] for i in (0, 4, 8, 12)] for one, note in notes.items()}
        if len({types for types, *_ in marks.values()}) > 1:
            parts = {
                one: note[16:].rstrip(b"\0").decode(errors="replace") for one, note in notes.items()
            }
            raise FeedError(
                f"{what}: the processes must give parts of one batch, got {listed(parts)}"
            )
        whole = {places: values for _, places, values, _ in marks.values()}
        if any(
            whole[places] != values or common != next(iter(marks.values()))[3]
            for _, places, values, common in marks.values()
        ):
            raise FeedError(
                f"{what}: processes that hold the same part of a batch must give the same values, "
                "got different ones"
            )


def _mark(*contents: bytes) -> bytes:
    """Returns four bytes that differ, most likely, where the contents do."""
    value = 0
    for one in contents:
        value = zlib.crc32(one, value)
    return value.to_bytes(4, "big")
