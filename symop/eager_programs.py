"""Programs of eager code: what a recorded segment computes, run by parts at first, then compiled.

A program is a graph over placeholders. The first time it runs operator by operator, each compiled
once for all programs; when it comes again it is compiled as a whole. What it keeps for a backward
pass are the values that its gradient makers name.
"""

import functools
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from registry.attributes import identity_key
from registry.errors import SymopError
from registry.operator import Operator
from registry.types import VarKind, VarType
from registry.var import Attributes
from symop.differentiate import carries_cotangent, ones, pullback
from symop.emission import substitute
from symop.graph import ARRAY, CONSTANT, SELECT, TRAINING, Node, placeholder, reaching, topological
from symop.lowering import Call, Schedule, bare, bare_kernel

_SMALL = 1
"""A program of so many operators is compiled at once: its parts are itself."""
_PACKED = 4096
"""Residuals of so many entries at most are kept together: each result of a call costs as much as
the operator that computes it."""
_MANY = 8
"""With so many residuals XLA's fusion would compute each of them from the inputs again."""
_FREE = (ARRAY, CONSTANT, TRAINING)
"""What costs nothing to have, and so is no residual."""
# XLA's older emitters, which a flag may ask for, compute wrong values of what is not fused.
_UNFUSED = {"xla_disable_hlo_passes": "fusion", "xla_cpu_use_fusion_emitters": True}
Values = list[Any]
Arranged = Callable[[Values], Values]


def _as_they_are(values: Values) -> Values:
    return values


class Program:
    """A graph from ``inputs`` to ``outputs``, run on JAX values.

    Attributes:
        inputs: placeholders, among them random keys.
        outputs: what is computed.
    """

    def __init__(
        self,
        inputs: Sequence[Node],
        outputs: Sequence[Node],
        training: bool,
        enter: Arranged | None = None,
        leave: Arranged | None = None,
    ) -> None:
        """The program of nodes; ``training`` is what the training flag says.

        Compiled as a whole, ``enter`` makes the values of the inputs from those that a call
        receives, and ``leave`` what the call returns from those of the outputs. A program with
        ``enter`` is compiled when it first runs.
        """
        self.inputs, self.outputs, self._training = list(inputs), list(outputs), training
        self._enter, self._leave = enter or _as_they_are, leave or _as_they_are
        order = topological(self.outputs, until=self.inputs)
        self.size = sum(isinstance(node.op, Operator) for node in order)
        self._order = order
        self.x64 = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
        self._by_parts: Schedule | None = None
        self._compiled: Call | None = None
        self._runs = 0 if enter is None else 1

    def __call__(self, values: Sequence[Any]) -> Values:
        """The outputs for the values of the inputs; keys are folded when the program runs."""
        if self._compiled is not None:
            return list(self._compiled(*values))
        self._runs += 1
        if self._runs > 1 or self.size <= _SMALL:
            self._compiled = self._compile()
            return list(self._compiled(*values))
        if self._by_parts is None:
            self._by_parts = self._scheduled(_part)
        return self._by_parts([_key_of(one) for one in values])[0]

    @property
    def compiled(self) -> bool:
        """Whether it was compiled as a whole, and so did run when it ran last."""
        return self._compiled is not None

    def _compile(self) -> Any:
        schedule = self._scheduled(bare)
        self._by_parts = None

        def run(*values: Any) -> Values:
            return self._leave(schedule(self._enter([_key_of(one) for one in values]))[0])

        names = [node.op.name for node in self._order if isinstance(node.op, Operator)]
        run.__name__ = "_".join(names[:3]) or "nothing"
        read = {one for node in self._order for one in node.operands}
        inner = sum(one in read for one in self.outputs)
        crowded = inner >= _MANY and jax.default_backend() == "cpu"
        return jax.jit(run, compiler_options=_UNFUSED if crowded else None)

    def _scheduled(self, how: Any) -> Schedule:
        return Schedule(
            self.outputs,
            self.inputs,
            how,
            training=self._training,
            order=self._order,
        )


def _key_of(value: Any) -> Any:
    """A value; of a draw, which is a root key and a number, its key."""
    return _fold(*value) if type(value) is tuple else value


_fold = jax.jit(jax.random.fold_in)


def _part(node: Node) -> Call:
    assert isinstance(node.op, Operator)
    return _compiled_part(node.op, identity_key(node.attributes), node.attributes)


@functools.lru_cache(maxsize=4096)
def _compiled_part(operator: Operator, _key: Any, attributes: Attributes) -> Call:
    call: Call = jax.jit(bare_kernel(operator, attributes), static_argnums=operator.training_index)
    return call


# Residuals -------------------------------------------------------------------------------------


class Packing:
    """Small arrays of one dtype laid end to end, the others as they are.

    Attributes:
        nodes: what is packed: the small ones first.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        """Group the values of ``nodes``."""
        groups: dict[Any, list[Node]] = {}
        for node in nodes:
            type_ = node.type
            small = type_.kind is VarKind.LOD_TENSOR and type_.size <= _PACKED
            groups.setdefault(type_.dtype if small else node, []).append(node)
        self._groups = list(groups.values())
        self.nodes = [node for group in self._groups for node in group]

    def __len__(self) -> int:
        return len(self._groups)

    def packed(self, values: Values) -> Values:
        """One array for each group."""
        supply = iter(values)
        rows = [[next(supply) for _ in group] for group in self._groups]
        return [_joined(row) if len(row) > 1 else row[0] for row in rows]

    def unpacked(self, packed: Values) -> Values:
        """The values of ``nodes`` again."""
        pairs = zip(self._groups, packed, strict=True)
        return [value for group, whole in pairs for value in _parted(group, whole)]


def _joined(row: Values) -> Any:
    return jnp.concatenate([one.reshape(-1) for one in row])


def _parted(group: list[Node], whole: Any) -> Values:
    if len(group) == 1:
        return [whole]
    ends = list(itertools.accumulate(node.type.size for node in group))
    parts = jnp.split(whole, ends[:-1])
    return [part.reshape(node.type.shape) for part, node in zip(parts, group, strict=True)]


# Backward --------------------------------------------------------------------------------------


class Recorded:
    """A program that a backward pass may follow: it also gives the residuals that this needs.

    Attributes:
        program: computes the wanted outputs, then the residuals among what it computes.
        wanted: the nodes that were asked for.
        residuals: the nodes whose values a backward pass reads, inputs among them.
        active: the inputs through which a derivative may flow.
        heads: the wanted values that it may reach.
    """

    def __init__(
        self,
        inputs: Sequence[Node],
        wanted: Sequence[Node],
        active: Sequence[Node],
        training: bool,
        cut: Collection[Node] = (),
    ) -> None:
        """Find the residuals of the graph from ``inputs`` to ``wanted``; none through ``cut``."""
        self.inputs, self.wanted, self.training = list(inputs), list(wanted), training
        order = topological(wanted, until=inputs)
        carrying = [node for node in order if carries_cotangent(node) and node not in cut]
        flowing = [*inputs, *carrying]
        reached = reaching(flowing, active)
        self.flowing = {node for node in flowing if node in reached}
        self.active = [node for node in active if node in self.flowing]
        self._forward = {*order, *inputs}
        self.heads = [node for node in wanted if self.flows(node)]
        self.residuals = self._closure()
        several = [one.operands[0] for one in self.residuals if one.op is SELECT]
        self._kept = {*self.residuals, *several}
        known = {*inputs, *wanted}
        self.plain = [node for node in self.residuals if node in known]
        self._packing = Packing([node for node in self.residuals if node not in known])
        outputs = [*wanted, *self._packing.nodes]
        self.program = Program(inputs, outputs, training, leave=self._left)
        self._unpack = jax.jit(self._packing.unpacked)
        self._pullbacks: dict[Any, Pulled] = {}
        self._behind: dict[Any, list[Node]] = {}
        self._using: dict[Any, frozenset[Node]] = {}

    def _closure(self) -> list[Node]:
        """What any backward pass reads, also one that differentiates by a residual."""
        heads = list(self.heads)
        while True:
            found = self._read_by(heads)
            new = [node for node in found if self.flows(node) and node not in heads]
            new = [node for node in new if node not in self.inputs]
            if not new:
                return found
            heads += new

    def flows(self, node: Node) -> bool:
        """Whether a derivative by an active input may flow through ``node``."""
        if node.op is SELECT and node not in self.flowing:
            return node.operands[0] in self.flowing and carries_cotangent(node)
        return node in self.flowing

    def links(self, node: Node) -> bool:
        """Whether a backward pass may start at ``node``: a constant has the gradient zero."""
        return self.flows(node) or (node.op is CONSTANT and node.type.differentiable)

    def _read_by(self, heads: Sequence[Node]) -> list[Node]:
        """The forward values that the gradients of ``heads`` read."""
        read: dict[Node, None] = {}
        seen: set[Node] = set()
        waiting = self._gradients(heads)
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if not self._is_forward(node):
                waiting += node.operands
            elif node.op not in _FREE:
                read[node] = None
        return sorted(read, key=lambda node: node.serial)

    def _is_forward(self, node: Node) -> bool:
        return node in self._forward or (node.op is SELECT and node.operands[0] in self._forward)

    def _gradients(self, heads: Sequence[Node]) -> list[Node]:
        """The gradients of ``heads``; a head that cannot be differentiated has none until asked."""
        if not heads or not self.active:
            return []
        seeds = [placeholder("head", node.type.strong()) for node in heads]
        try:
            found = pullback(heads, self.active, seeds)
        except SymopError:
            if len(heads) == 1:
                return []
            return [one for head in heads for one in self._gradients([head])]
        return [one for one in found if one is not None]

    @property
    def packs(self) -> int:
        """How many arrays are saved beside the plain ones."""
        return len(self._packing)

    def _left(self, values: Values) -> Values:
        count = len(self.wanted)
        return [*values[:count], *self._packing.packed(values[count:])]

    def run(self, given: Sequence[Any], call: Callable[..., Values]) -> tuple[Values, Values, bool]:
        """The wanted values, what is saved for a backward pass, and whether it is packed.

        ``call`` runs the program.
        """
        results = call(self.program, given)
        count = len(self.wanted)
        held = dict(zip(self.inputs, given, strict=True))
        held.update(zip(self.wanted, results, strict=False))
        saved = [*[held[node] for node in self.plain], *results[count:]]
        return results[:count], saved, self.program.compiled

    def unpacked(self, saved: Values) -> Values:
        """The values of ``residuals``, from what was saved packed."""
        count = len(self.plain)
        return self.ordered([*saved[:count], *self._packing.unpacked(saved[count:])])

    def ordered(self, saved: Values) -> Values:
        """The values of ``residuals``, from what was saved as it is."""
        held = dict(zip([*self.plain, *self._packing.nodes], saved, strict=True))
        return [held[node] for node in self.residuals]

    def arrays(self, saved: Values, packed: bool) -> Values:
        """The values of ``residuals`` as arrays of their own."""
        if not packed:
            return self.ordered(saved)
        count = len(self.plain)
        return self.ordered([*saved[:count], *self._unpack(saved[count:])])

    def behind(self, reached: tuple[Node, ...], by: tuple[Node, ...]) -> list[Node]:
        """The inputs among ``by`` of which the values ``reached`` are functions."""
        key = reached, by
        if key not in self._behind:
            order = set(topological(reached))
            self._behind[key] = [node for node in by if node in order]
        return self._behind[key]

    def using(self, heads: tuple[Node, ...]) -> frozenset[Node]:
        """The calls that ``heads`` are computed by and whose makers read values."""
        if heads not in self._using:
            order = topological(heads, until=self.inputs)
            self._using[heads] = frozenset(
                node for node in order if node in self.flowing and self._reads_residual(node)
            )
        return self._using[heads]

    def _reads_residual(self, node: Node) -> bool:
        """Whether the gradient maker of a call may read what is saved."""
        rule = node.op.gradient_rule if isinstance(node.op, Operator) else None
        if rule is None or not rule.reads_values:
            return False
        return not self._kept.isdisjoint((node, *node.operands))

    def pulled(
        self,
        heads: tuple[Node, ...],
        by: tuple[Node, ...],
        bare: tuple[Node, ...] = (),
        rows: tuple[Node, ...] = (),
    ) -> "Pulled":
        """The gradients by the inputs ``by`` for cotangents of ``heads``.

        They are ones for the ``bare``, and rows for ``rows``.
        """
        key = heads, by, bare, rows
        if key not in self._pullbacks:
            with jax.enable_x64(self.program.x64):
                self._pullbacks[key] = Pulled(self, heads, by, bare, rows)
        return self._pullbacks[key]


class Pulled:
    """The gradient of a recorded program, which is a program over residuals and cotangents.

    Attributes:
        read: places in the residuals whose values are read.
        by: the inputs that receive a gradient.
        nodes: the gradients.
    """

    def __init__(
        self,
        of: Recorded,
        heads: tuple[Node, ...],
        by: tuple[Node, ...],
        bare: tuple[Node, ...],
        rows: tuple[Node, ...] = (),
    ) -> None:
        """Ask the gradient makers."""
        types = {node: node.type.strong() for node in heads}
        types |= {n: VarType(n.type.shape, n.type.dtype, VarKind.SELECTED_ROWS) for n in rows}
        seeds = [ones(t) if n in bare else placeholder("head", t) for n, t in types.items()]
        self._seeds = [one for one, node in zip(seeds, heads, strict=True) if node not in bare]
        found = pullback(heads, by, seeds)
        arrived = [(x, one) for x, one in zip(by, found, strict=True) if one is not None]
        self.by = [x for x, _ in arrived]
        stand_ins = {node: placeholder("residual", node.type) for node in of.residuals}
        self.nodes = substitute([one for _, one in arrived], stand_ins)
        needed = set(topological(self.nodes))
        self.read = [i for i, node in enumerate(of.residuals) if stand_ins[node] in needed]
        self.inputs = [*[stand_ins[of.residuals[i]] for i in self.read], *self._seeds]
        self._of, self._training = of, of.training
        self._saved = len(of.plain) + of.packs
        self._of_packed = Program(self.inputs, self.nodes, of.training, enter=self._entered)
        self._of_arrays = Program(self.inputs, self.nodes, of.training)
        self._recorded: dict[Any, Recorded] = {}

    def _entered(self, values: Values) -> Values:
        """The values of ``inputs``, from those that are saved packed and the cotangents."""
        residuals = self._of.unpacked(values[: self._saved])
        return [*[residuals[i] for i in self.read], *values[self._saved :]]

    def run(
        self, saved: Values, packed: bool, cotangents: Values, call: Callable[..., Values]
    ) -> Values:
        """The gradients; ``call`` runs a program."""
        if packed:
            return call(self._of_packed, [*saved, *cotangents])
        return call(self._of_arrays, [*self.inputs_of(saved, packed), *cotangents])

    def inputs_of(self, saved: Values, packed: bool) -> Values:
        """The residuals that are read, each an array of its own."""
        residuals = self._of.arrays(saved, packed)
        return [residuals[i] for i in self.read]

    def recorded(self, active: tuple[int, ...]) -> Recorded:
        """The same program, to be differentiated by the inputs at ``active``."""
        if active not in self._recorded:
            chosen = [self.inputs[i] for i in active]
            with jax.enable_x64(self._of.program.x64):
                made = Recorded(self.inputs, self.nodes, chosen, self._training)
            self._recorded[active] = made
        return self._recorded[active]


class Lean:
    """A program in which gradients were taken already: it gives what is wanted, and saves nothing.

    Attributes:
        program: computes the wanted outputs.
        whole: the program that would save residuals as well.
        spent: the calls that the backward passes in it went through, and their heads.
        done: whether a backward pass would read values, but no more may follow.
    """

    def __init__(self, whole: Recorded, heads: Sequence[tuple[Node, ...]]) -> None:
        """``whole`` after backward passes from ``heads`` that did not keep the record."""
        self.whole = whole
        self.program = Program(whole.inputs, whole.wanted, whole.training)
        self.spent = frozenset[Node]().union(*[whole.using(one) | set(one) for one in heads])
        reading = whole.using(tuple(whole.heads))
        self.done = bool(reading) and self.spent >= reading
