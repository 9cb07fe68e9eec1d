"""Structural differences of two graphs: what they compute, whatever their values are called.

Calls are matched in three steps: those that compute the same from variables of the same names;
then, from the results down, those that stand at the same place of matched calls; then calls of the
same operator, in the order of both graphs. The calls that are left were removed or added.
"""

import difflib
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from registry.desc import SUB_BLOCK, OpDesc, ProgramDesc
from registry.types import VarType
from symop.graph.nodes import ARRAY, CONSTANT, KEY, TRAINING
from symop.io.text import Printer, value_text, variable_text

_ALIGNED = 2000
"""The number of unmatched calls up to which they are aligned at any cost in time."""
_WIDTH = 100
_INLINE = (CONSTANT.name, TRAINING.name)
"""The records that are written where they are read."""


class Difference(NamedTuple):
    """One difference of two graphs.

    Attributes:
        sign: ``-`` for what the old graph alone has, ``+`` for the new one, ``~`` for a change.
        part: ``variable``, ``call``, ``output`` or ``update``.
        text: what it is.
    """

    sign: str
    part: str
    text: str

    def __str__(self) -> str:
        text = self.text if len(self.text) <= _WIDTH else f"{self.text[: _WIDTH - 3]}..."
        return f"{self.sign} {self.part} {text}"


def compare(
    old: ProgramDesc,
    new: ProgramDesc,
    old_types: Mapping[str, VarType],
    new_types: Mapping[str, VarType],
) -> list[Difference]:
    """Returns the differences of two graphs or programs; none if they compute the same.

    Args:
        old: the records of the one.
        new: the records of the other.
        old_types: the known types of its values, by name.
        new_types: those of the other.
    """
    keys: dict[Any, int] = {}
    pair = _Pair(_Half(old, 0, old_types, keys), _Half(new, 0, new_types, keys))
    return list(pair.differences())


class _Half:
    """A block of one of the graphs, with an index of its calls."""

    def __init__(
        self, desc: ProgramDesc, block: int, types: Mapping[str, VarType], keys: dict[Any, int]
    ) -> None:
        self.desc, self.types = desc, types
        self.block = desc.blocks[block]
        self.results = self.block.fetch if block else desc.fetch
        self.keys = _keys(desc, block, keys)
        self.all_keys = keys
        self.printer = Printer(self.block, types)
        for op in self.block.ops:
            if op.type in _INLINE:
                self.printer.keep_inline(op)
        self.calls = [op for op in self.block.ops if op.type not in _INLINE]
        self.place = {
            name: (i, output)
            for i, op in enumerate(self.calls)
            for output, names in op.outputs.items()
            for name in names
        }
        self.stopped = {var.name for var in self.block.vars if var.stop_gradient}
        self.variables = {var.name: var for var in self.block.vars if var.role != "intermediate"}

    def key(self, call: int) -> int:
        """Returns a number that equal computations share, in both graphs."""
        return self.keys[_first(self.calls[call])]

    def shown(self, name: str) -> str:
        return self.printer.operand(name)

    def type_text(self, name: str) -> str:
        known = self.types.get(name)
        return ("?" if known is None else str(known)) + " stop_gradient" * (name in self.stopped)

    def body(self, index: int) -> "_Half":
        return _Half(self.desc, index, {}, self.all_keys)


def _first(op: OpDesc) -> str:
    return next(name for names in op.outputs.values() for name in names)


# Equal computations ------------------------------------------------------------------------------


def _keys(desc: ProgramDesc, index: int, table: dict[Any, int]) -> dict[str, int]:
    """Returns for each value a number that equal computations of both graphs share."""
    block = desc.blocks[index]
    keys: dict[str, int] = {}

    def number(key: Any) -> int:
        return table.setdefault(key, len(table))

    for var in block.vars:
        keys[var.name] = number(("variable", var.name))
    for op in block.ops:
        inputs = tuple((slot, tuple(keys[n] for n in names)) for slot, names in op.inputs.items())
        for output, names in op.outputs.items():
            for name in names:
                keys[name] = number((op.type, _attributes_key(desc, op, table), inputs, output))
    return keys


def _attributes_key(desc: ProgramDesc, op: OpDesc, table: dict[Any, int]) -> Any:
    # The rank of a random key tells keys of one graph apart; it changes with each key before.
    if op.type == KEY.name:
        return ()
    return tuple(
        (name, _body_key(desc, value[SUB_BLOCK], table) if _is_body(value) else _encoded(value))
        for name, value in sorted(op.attrs.items())
    )


def _body_key(desc: ProgramDesc, index: int, table: dict[Any, int]) -> Any:
    keys = _keys(desc, index, table)
    block = desc.blocks[index]
    declared = tuple(variable_text(var) for var in block.vars)
    return "body", declared, tuple(keys[name] for name in block.fetch)


def _is_body(value: Any) -> bool:
    return isinstance(value, dict) and SUB_BLOCK in value


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


# Matching ----------------------------------------------------------------------------------------


class _Pair:
    """Two blocks whose calls are matched."""

    def __init__(self, old: _Half, new: _Half) -> None:
        self.old, self.new = old, new
        self.partner: dict[int, int] = {}
        self.taken: set[int] = set()
        self._match_equal()
        self._match_down(self._results())
        self._match_in_order()

    def _results(self) -> Iterator[tuple[str, str]]:
        yield from zip(self.old.results, self.new.results, strict=False)
        updates = self.new.block.updates
        for name, value in self.old.block.updates.items():
            if name in updates:
                yield value, updates[name]

    def _take(self, i: int, j: int) -> None:
        self.partner[i] = j
        self.taken.add(j)

    def _match_equal(self) -> None:
        waiting: dict[int, deque[int]] = defaultdict(deque)
        for j in range(len(self.new.calls)):
            waiting[self.new.key(j)].append(j)
        for i in range(len(self.old.calls)):
            if waiting.get(self.old.key(i)):
                self._take(i, waiting[self.old.key(i)].popleft())

    def _match_down(self, results: Iterator[tuple[str, str]]) -> None:
        """Matches values at the same place, then what they are computed from."""
        waiting = deque(results)
        while waiting:
            before, after = waiting.popleft()
            i, output = self.old.place.get(before, (-1, ""))
            j, other = self.new.place.get(after, (-1, ""))
            if min(i, j) >= 0 and output == other and self._fits(i, j):
                self._take(i, j)
                waiting.extend(self._operands(i, j))

    def _fits(self, i: int, j: int) -> bool:
        free = i not in self.partner and j not in self.taken
        return free and self.old.calls[i].type == self.new.calls[j].type

    def _operands(self, i: int, j: int) -> Iterator[tuple[str, str]]:
        after = self.new.calls[j].inputs
        for slot, names in self.old.calls[i].inputs.items():
            yield from zip(names, after.get(slot, []), strict=False)

    def _match_in_order(self) -> None:
        before = [i for i in range(len(self.old.calls)) if i not in self.partner]
        after = [j for j in range(len(self.new.calls)) if j not in self.taken]
        matcher = difflib.SequenceMatcher(
            None,
            [self.old.calls[i].type for i in before],
            [self.new.calls[j].type for j in after],
            autojunk=len(before) + len(after) > _ALIGNED,
        )
        for block in matcher.get_matching_blocks():
            for k in range(block.size):
                self._take(before[block.a + k], after[block.b + k])

    def same(self, before: str, after: str) -> bool:
        """Whether a value of the old graph is matched with that of the new one."""
        if before not in self.old.place or after not in self.new.place:
            return self.old.keys[before] == self.new.keys[after]
        (i, output), (j, other) = self.old.place[before], self.new.place[after]
        return self.partner.get(i) == j and output == other

    # Differences

    def differences(self) -> Iterator[Difference]:
        """Yields the differences, those of the old graph first where both have one."""
        yield from self._variables()
        yield from self._calls()
        yield from self._outputs()
        yield from self._updates()

    def _variables(self) -> Iterator[Difference]:
        old, new = self.old.variables, self.new.variables
        for name, var in old.items():
            if name not in new:
                yield Difference("-", "variable", variable_text(var))
            elif variable_text(var) != variable_text(new[name]):
                declared = variable_text(new[name]).removeprefix(f"{name}: ")
                yield Difference("~", "variable", f"{variable_text(var)} -> {declared}")
        for name, var in new.items():
            if name not in old:
                yield Difference("+", "variable", variable_text(var))

    def _calls(self) -> Iterator[Difference]:
        added = deque(j for j in range(len(self.new.calls)) if j not in self.taken)
        for i, op in enumerate(self.old.calls):
            j = self.partner.get(i)
            if j is None:
                yield Difference("-", "call", self.old.printer.statement(op))
                continue
            while added and added[0] < j:
                yield self._added(added.popleft())
            yield from self._changes(op, self.new.calls[j])
        yield from map(self._added, added)

    def _added(self, j: int) -> Difference:
        return Difference("+", "call", self.new.printer.statement(self.new.calls[j]))

    def _changes(self, old: OpDesc, new: OpDesc) -> Iterator[Difference]:
        name = f"{self.old.shown(_first(old))} = {old.type}"
        changes = [*self._operand_changes(old, new), *_attribute_changes(old, new)]
        changes += self._type_changes(old, new)
        if changes:
            yield Difference("~", "call", f"{name}: {'; '.join(changes)}")
        for key in sorted(set(old.attrs) & set(new.attrs)):
            yield from self._body_changes(f"{key} of {_first(old)}", old.attrs[key], new.attrs[key])

    def _operand_changes(self, old: OpDesc, new: OpDesc) -> Iterator[str]:
        for slot in dict.fromkeys([*old.inputs, *new.inputs]):
            before, after = old.inputs.get(slot, []), new.inputs.get(slot, [])
            alike = len(before) == len(after) and all(map(self.same, before, after))
            if not alike:
                yield f"{slot} {_listed(self.old, before)} -> {_listed(self.new, after)}"

    def _type_changes(self, old: OpDesc, new: OpDesc) -> Iterator[str]:
        for output in dict.fromkeys([*old.outputs, *new.outputs]):
            before = [self.old.type_text(name) for name in old.outputs.get(output, [])]
            after = [self.new.type_text(name) for name in new.outputs.get(output, [])]
            if before != after:
                yield f"{', '.join(before) or 'unused'} -> {', '.join(after) or 'unused'}"

    def _body_changes(self, title: str, old: Any, new: Any) -> Iterator[Difference]:
        if _is_body(old) and _is_body(new):
            pair = _Pair(self.old.body(old[SUB_BLOCK]), self.new.body(new[SUB_BLOCK]))
            for sign, part, text in pair.differences():
                yield Difference(sign, part, f"{text} (in {title})")

    def _outputs(self) -> Iterator[Difference]:
        old, new = self.old.results, self.new.results
        for i, (before, after) in enumerate(zip(old, new, strict=False)):
            if not self.same(before, after):
                change = f"{i}: {self.old.shown(before)} -> {self.new.shown(after)}"
                yield Difference("~", "output", change)
        for i, name in enumerate(old[len(new) :], len(new)):
            yield Difference("-", "output", f"{i}: {self.old.shown(name)}")
        for i, name in enumerate(new[len(old) :], len(old)):
            yield Difference("+", "output", f"{i}: {self.new.shown(name)}")

    def _updates(self) -> Iterator[Difference]:
        old, new = self.old.block.updates, self.new.block.updates
        for name in dict.fromkeys([*old, *new]):
            before, after = old.get(name), new.get(name)
            if after is None:
                yield Difference("-", "update", f"{name} := {self.old.shown(old[name])}")
            elif before is None:
                yield Difference("+", "update", f"{name} := {self.new.shown(after)}")
            elif not self.same(before, after):
                change = f"{name} := {self.old.shown(before)} -> {self.new.shown(after)}"
                yield Difference("~", "update", change)


def _listed(half: _Half, names: Sequence[str]) -> str:
    return ", ".join(half.shown(name) for name in names) or "none"


def _attribute_changes(old: OpDesc, new: OpDesc) -> Iterator[str]:
    if old.type == KEY.name:
        return
    for name in dict.fromkeys([*old.attrs, *new.attrs]):
        before, after = old.attrs.get(name), new.attrs.get(name)
        if _is_body(before) and _is_body(after):
            continue
        if old.type == ARRAY.name and name == "data" and before != after:
            yield "other entries"
        elif before != after:
            yield f"{name} {value_text(before)} -> {value_text(after)}"
