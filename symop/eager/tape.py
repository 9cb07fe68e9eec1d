"""The tape: backward passes over recorded calls, node by node, in compiled programs."""

import functools
import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import DisconnectedError, GradientError, KindError
from registry.table import get
from registry.types import VarKind, VarType
from registry.values import SelectedRows
from symop.eager.ndarray import NDArray, array_of
from symop.eager.programs import PullbackProgram
from symop.eager.segments import local, run_program
from symop.eager.tape_nodes import (
    AnyEntry,
    Custom,
    DerivedTapeNode,
    Link,
    Origins,
    Source,
    TapeNode,
    origin_of,
)
from symop.graph.nodes import Node, placeholder
from symop.lowering.steps import type_of

_WIDE = ("float64", "complex128")
Contributions = dict[Node, list[Any]]


class _Ones:
    """The default cotangent of a head: ones, which are not materialized."""

    def __repr__(self) -> str:
        return "ones"


ONES = _Ones()
Cotangent = NDArray | _Ones


def pull(
    heads: Sequence[tuple[Source, Cotangent]],
    targets: Sequence[Link | NDArray] | None,
    *,
    create_graph: bool,
) -> "Walk":
    """Runs a backward pass from ``heads``, each with its cotangent.

    Args:
        heads: the sources of the heads, and their cotangents.
        targets: the sources whose gradients are requested; None for all marked arrays.
        create_graph: whether the gradients are recorded.

    Returns:
        The backward pass, which holds the gradients. Its ``free()`` frees the residuals.
    """
    walk = Walk(targets, create_graph)
    for source, cotangent in heads:
        walk.begin(source)
        walk.arrive(source, cotangent)
    walk.run()
    return walk


class Walk:
    """A backward pass from the heads to the arrays."""

    def __init__(self, targets: Sequence[Link | NDArray] | None, create_graph: bool) -> None:
        self.create_graph = create_graph
        self.entries: dict[int, AnyEntry] = {}
        self._visited: list[tuple[TapeNode, tuple[Node, ...]]] = []
        self._called: list[Custom] = []
        self._first: dict[int, frozenset[Node]] = defaultdict(frozenset)
        self._waiting: list[int] = []
        self._cotangents: dict[int, Contributions] = {}
        self._arrays: dict[int, list[Cotangent]] = defaultdict(list)
        self._kept: dict[int, NDArray] = {}
        self._targets = targets
        self._useful: dict[int, bool] = {}
        self._wanted_arrays = {id(one) for one in targets or () if isinstance(one, NDArray)}
        self._wanted_values: dict[int, list[Node]] = defaultdict(list)
        for one in targets or ():
            if isinstance(one, Link):
                self._wanted_values[one.entry.serial].append(one.node)
        self._of_values: dict[tuple[int, Node], NDArray | None] = {}
        self._heads: list[Source] = []

    def begin(self, source: Source) -> None:
        """Adds ``source`` to the heads."""
        self._heads.append(source)
        if isinstance(source, Link):
            self._first[source.entry.serial] |= {source.node}

    def arrive(self, source: Source, cotangent: Cotangent | None) -> None:
        """Adds a cotangent to those of ``source``; None stands for zero."""
        cotangents = [] if cotangent is None else [cotangent]
        if isinstance(source, NDArray):
            self._arrays[id(source)] += cotangents
            self._kept[id(source)] = source
        if not isinstance(source, Link):
            return
        serial = source.entry.serial
        if serial not in self._cotangents:
            self._cotangents[serial] = defaultdict(list)
            self.entries[serial] = source.entry
            heapq.heappush(self._waiting, -serial)
        self._cotangents[serial][source.node] += cotangents

    def run(self) -> None:
        """Visits the tape nodes, latest first, so that all cotangents of a node have arrived."""
        while self._waiting:
            serial = -heapq.heappop(self._waiting)
            entry, arrived = self.entries[serial], self._cotangents.pop(serial)
            cotangents = {node: _sum(some, node.type) for node, some in arrived.items() if some}
            self._visit(entry, tuple(arrived), cotangents)

    def free(self) -> None:
        """Frees the residuals that the backward pass has read."""
        for entry, reached in self._visited:
            entry.spend(reached, self._first[entry.serial])
        for function in self._called:
            function.spend()

    def _visit(
        self, entry: AnyEntry, reached: tuple[Node, ...], cotangents: dict[Node, Cotangent]
    ) -> None:
        inner = self._wanted_values.get(entry.serial, [])
        if not inner and not any(map(self.is_useful, entry.sources)):
            return
        if isinstance(entry, Custom):
            if entry.spent:
                raise _freed()
            self._called.append(entry)
            for node, one in cotangents.items():
                if not (entry.takes_rows or isinstance(entry, DerivedTapeNode)):
                    _require_dense(node, one)
            seeds = {node: _array(one, node.type) for node, one in cotangents.items()}
            self._of_values |= {(entry.serial, node): seeds.get(node) for node in inner}
            gradients = entry.gradients(seeds)
            for source, one in zip(entry.sources, gradients, strict=True):
                if source is not None:
                    self.arrive(source, one)
            return
        inputs = dict(zip(entry.recorded.inputs, entry.sources, strict=True))
        useful = [node for node in entry.recorded.active if self.is_useful(inputs[node])]
        by = (*useful, *[node for node in inner if node not in inputs])
        arrived = dict[Node, NDArray]()
        if cotangents and by:
            entry.open()
            heads = tuple(sorted(cotangents, key=lambda node: node.serial))
            if entry.is_spent(heads, self._first[entry.serial]):
                raise _freed()
            self._visited.append((entry, heads))
            bare = tuple(node for node in heads if cotangents[node] is ONES)
            rows = tuple(node for node in heads if _is_rows(cotangents[node]))
            pulled = entry.recorded.pulled(heads, by, bare, rows)
            arrays = [one for node in heads if isinstance(one := cotangents[node], NDArray)]
            moved = self._record_pulled(entry, pulled, arrays, inputs)
            arrived = dict(zip(pulled.by, moved, strict=True))
        for node in entry.recorded.behind(reached, by):
            if node in inputs:
                self.arrive(inputs[node], arrived.get(node))
            else:
                self._of_values[entry.serial, node] = arrived.get(node)

    def _record_pulled(
        self,
        entry: TapeNode,
        pulled: PullbackProgram,
        heads: list[NDArray],
        inputs: dict[Node, Source],
    ) -> list[NDArray]:
        saved, packed = entry.saved, entry.packed
        if saved is None:  # freed residuals are not read: is_spent() raises otherwise
            saved, packed = entry.recorded.nothing_saved(), False
        values = [one.value for one in heads]
        if not self.create_graph:
            return [array_of(one) for one in pulled.run(saved, packed, values, run_program)]
        nodes = [entry.recorded.residuals[i] for i in pulled.read]
        sources: list[Source] = [_source_of(entry, node, inputs) for node in nodes]
        sources += [one.source for one in heads]
        constants = [origin_of(one.source, one.value) for one in heads]
        origins = functools.partial(_origins_of, entry, nodes, constants)
        active = tuple(i for i, one in enumerate(sources) if one is not None)
        recorded = pulled.recorded(active)
        if active:
            operands = [*pulled.inputs_of(saved, packed), *values]
            results, kept, is_packed = recorded.run(operands, run_program)
        else:  # nothing to differentiate: no residuals
            results, kept, is_packed = pulled.run(saved, packed, values, run_program), [], False
        derived = TapeNode(recorded, sources, kept, is_packed, origins)
        around = [*entry.sources, *sources]
        return [
            array_of(value, link) if recorded.flows(node) else _constant(value, around, link)
            for node, value in zip(recorded.wanted, results, strict=True)
            for link in (Link(derived, node),)
        ]

    def is_useful(self, source: Source) -> bool:
        """Whether a cotangent of ``source`` may reach a target."""
        if source is None or self._targets is None:
            return source is not None
        if isinstance(source, Link):
            return self._is_wanted(source) or self._leads_on(source.entry)
        return id(source) in self._wanted_arrays

    def _is_wanted(self, link: Link) -> bool:
        """Whether a target is among the values of the tape node."""
        return link.entry.serial in self._wanted_values

    def _leads_on(self, entry: AnyEntry) -> bool:
        """Whether a tape node depends on a target; not recursive, since tapes are long."""
        waiting = [entry]
        while waiting:
            at = waiting[-1]
            if at.serial in self._useful:
                waiting.pop()
                continue
            behind = [s.entry for s in at.sources if isinstance(s, Link)]
            open_ = [one for one in behind if one.serial not in self._useful]
            if open_:
                waiting += open_
                continue
            self._useful[at.serial] = any(
                self._useful[s.entry.serial] or self._is_wanted(s)
                if isinstance(s, Link)
                else id(s) in self._wanted_arrays
                for s in at.sources
            )
        return self._useful[entry.serial]

    @property
    def arrays(self) -> Iterable[NDArray]:
        """The marked arrays that the backward pass reached."""
        return self._kept.values()

    def gradient(self, source: Link | NDArray) -> NDArray | None:
        """Returns the gradient of a marked array or recorded value; None if no path leads there."""
        if isinstance(source, NDArray):
            if id(source) not in self._kept:
                return None
            some = self._arrays[id(source)]
            total = _sum(some, source.type) if some else None
            return self._handed_over(source, None if total is None else _array(total, source.type))
        key = source.entry.serial, source.node
        return self._handed_over(source, self._of_values[key]) if key in self._of_values else None

    def _handed_over(self, source: Link | NDArray, gradient: NDArray | None) -> NDArray:
        """Returns the gradient of ``source`` in a new array; zeros if no cotangent arrived.

        With ``create_graph``, it is recorded as a function of ``source`` and of the heads.
        """
        type = (source.node if isinstance(source, Link) else source).type.strong()
        value = _zeros(source, type) if gradient is None else gradient.value
        computed = None if gradient is None else gradient.source
        if not self.create_graph:
            return array_of(value, computed)
        formal = [source, *self._heads]
        entry = DerivedTapeNode(computed, formal, type, is_zero=gradient is None)
        return array_of(value, Link(entry, entry.nodes[0]))


def _zeros(source: Link | NDArray, type: VarType) -> Any:
    """Returns the zero gradient: no rows for a row-sparse array, or where rows are kept."""
    kept = None if isinstance(source, Link) or source._grad is None else source._grad.value
    kinds = type.kind, None if kept is None else kept.type.kind
    if VarKind.SELECTED_ROWS not in kinds:
        return jnp.zeros(type.shape, type.dtype)
    values = jnp.zeros((0, *type.shape[1:]), type.dtype)
    return SelectedRows(np.zeros(0, np.int32), values, type.shape[0])


def _source_of(entry: TapeNode, node: Node, inputs: dict[Node, Source]) -> Source:
    if node in inputs:
        return inputs[node]
    return Link(entry, node) if entry.recorded.flows(node) else None


def _origins_of(entry: TapeNode, nodes: Sequence[Node], heads: Origins) -> Origins:
    """Returns the origins of a gradient's inputs: values of the tape node, then cotangents."""
    return [*[Link(entry, node) for node in nodes], *heads]


def _constant(value: Any, sources: Sequence[Source], computed: Link) -> NDArray:
    """Returns a gradient that is a function of the sources, with the derivative zero."""
    behind = [one for one in sources if one is not None]
    node = placeholder("constant", type_of(value).strong())
    entry = Custom(behind, [node], lambda _: [None] * len(behind), computed)
    return array_of(value, Link(entry, node))


def _sum(some: list[Any], type: VarType) -> Any:
    if len(some) == 1:
        return some[0]
    added = None if local.state.taped else _added_by_row(some)
    if added is not None:
        return added
    # Values recorded with 64-bit dtypes keep them even if x64 has been disabled since.
    wide = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]  # set at run time
    with jax.enable_x64(wide or type.dtype.name in _WIDE):
        total: NDArray = get("add_n")(*[_array(one, type) for one in some])
    return total


def _added_by_row(some: list[Any]) -> NDArray | None:
    """Returns the sum of cotangents that name the same rows, on the host; None for others."""
    parts = [one._value for one in some if _is_rows(one)]
    if len(parts) < len(some) or not all(_same_rows(parts[0], one) for one in parts):
        return None
    total: NDArray = get("add_n")(*[array_of(one.values) for one in parts])
    return array_of(SelectedRows(parts[0].rows, total.value, parts[0].height))


def _same_rows(one: SelectedRows, other: SelectedRows) -> bool:
    rows = one.rows, other.rows
    if not all(isinstance(each, np.ndarray) for each in rows) or one.dtype != other.dtype:
        return False
    return one.shape == other.shape and (rows[0] is rows[1] or np.array_equal(*rows))


def _is_rows(cotangent: Cotangent) -> bool:
    return isinstance(cotangent, NDArray) and isinstance(cotangent._value, SelectedRows)


def _require_dense(node: Node, cotangent: Cotangent) -> None:
    """Rejects a row-sparse cotangent of a dense value that a user's ``Function`` computed.

    Raises:
        KindError: the cotangent is row-sparse, and ``backward`` is written for dense ones.
    """
    if _is_rows(cotangent) and node.type.kind is not VarKind.SELECTED_ROWS:
        raise KindError(
            "backward: the gradient of a value that a Function computed must be dense, got "
            f"{cotangent!r}; let get_tensor_from_selected_rows make it dense"
        )


def _array(cotangent: Any, type: VarType) -> NDArray:
    if isinstance(cotangent, NDArray):
        return cotangent
    return NDArray(jnp.ones(type.shape, type.dtype))


def _freed() -> GradientError:
    return GradientError(
        "backward: the record must still be there, but an earlier backward pass freed it; pass "
        "retain_graph=True to that one"
    )


def disconnected_error(what: str) -> DisconnectedError:
    """Returns the error for a head that does not depend on a variable."""
    return DisconnectedError(
        f"{what}: the value must be recorded as a function of the variable, but no path connects "
        "them; compute it inside autograd.record()"
    )
