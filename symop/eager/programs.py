"""Programs of recorded segments, with their residuals and pullbacks.

A program is a graph over placeholders. The first run executes its operators one by one, with
kernels that are compiled once for all programs; the second run compiles it as a whole. It saves the
values that its gradient makers read in a backward pass.
"""

import functools
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from registry.caches import Jitted, Memo, store
from registry.errors import SymopError
from registry.operator.operator import Operator
from registry.tuning import present as tuned
from registry.types import VarKind, VarType
from registry.var import Attributes
from symop.autodiff.differentiate import carries_cotangent, ones, pullback
from symop.graph.nodes import (
    ARRAY,
    CONSTANT,
    TRAINING,
    Node,
    placeholder,
    reaching,
    residuals,
    topological,
)
from symop.graph.rewriting import substitute
from symop.lowering.sharing import (
    ALL_CONSTANT,
    Choice,
    Family,
    Numbers,
    Places,
    choosing,
    form_of,
    number_places,
    reading_of,
    without_numbers,
)
from symop.lowering.steps import Call, Schedule, bare, bare_kernel
from symop.xla.compiling import options_for, quick_options, thread_settings

_SMALL = 1
"""A program of at most this many operators has no smaller parts: its first run compiles it."""
_FREE = (ARRAY, CONSTANT, TRAINING)
"""Nodes that cost nothing to provide and are therefore not residuals."""
_SHARE = 4
"""A program is compiled in its first run if more than ``1 / _SHARE`` of its parts are new."""
Values = list[Any]
Arranged = Callable[[Values], Values]


def _as_they_are(values: Values) -> Values:
    return values


class SegmentProgram:
    """A graph from ``inputs`` to ``outputs``, which runs on JAX values.

    Attributes:
        inputs: placeholders, including those of random keys.
        outputs: the nodes to compute.
        is_new: whether no program of the same structure, regardless of types and attributes, ran
            before.
    """

    def __init__(
        self,
        inputs: Sequence[Node],
        outputs: Sequence[Node],
        training: bool,
        enter: Arranged | None = None,
        leave: Arranged | None = None,
        arrangement: Any = None,
    ) -> None:
        """Creates a program; ``training`` is the value of the training flag.

        If the program is compiled as a whole, ``enter`` converts the arguments of a call to values
        of the inputs, and ``leave`` converts values of the outputs to the results of the call;
        ``arrangement`` identifies both in cache keys. A program with ``enter`` is compiled in its
        first run.
        """
        self.inputs, self.outputs, self._training = list(inputs), list(outputs), training
        self._enter, self._leave = enter or _as_they_are, leave or _as_they_are
        order = topological(self.outputs, until=self.inputs)
        self.size = sum(isinstance(node.op, Operator) for node in order)
        self._order = order
        self.x64 = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
        self._by_parts: Schedule | None = None
        self._compiled: Jitted | None = None
        self._numbers: Numbers = ()
        self._form = form_of(order, self.inputs, self.outputs)
        key = self._form.structure, training, self.x64, arrangement, thread_settings.quick
        self._family = _families.get(key) or _families.put(key, Family())
        self.is_new = _skeletons.get(self._form.skeleton) is None
        self._whole = enter is not None or self.size <= _SMALL or self._is_cheaper_whole()

    def __call__(self, values: Sequence[Any]) -> Values:
        """Computes the outputs from values of the inputs; folds draws into random keys."""
        compiled = self._compiled
        if compiled is not None:
            compiled.used = store.now
            call, numbers = compiled.call or compiled.create(), self._numbers
            results: Values = call(*values, *numbers) if numbers else call(*values)
            return results
        _skeletons.put(self._form.skeleton, True)
        if self._whole:
            self._compiled, self._numbers = self._family.chosen(
                self._form.numbers, self._compile, self._choice
            )
            self._by_parts = None
            whole: Values = self._compiled(*values, *self._numbers)
            return whole
        self._whole = True
        if self._by_parts is None:
            self._by_parts = self._scheduled(_part)
        return self._by_parts([_key_of(one) for one in values])[0]

    def _is_cheaper_whole(self) -> bool:
        """Whether the program has a known structure, but many parts that are not compiled yet."""
        if self.is_new:
            return False
        new = {key for key in map(_part_key, self._calls()) if _parts.get(key) is None}
        return len(new) * _SHARE > self.size

    def _calls(self) -> list[Node]:
        return [node for node in self._order if isinstance(node.op, Operator)]

    @property
    def compiled(self) -> bool:
        """Whether the program is compiled as a whole and last ran that way."""
        return self._compiled is not None

    def _choice(self, places: Places) -> Choice:
        """Returns which of the numbers at ``places`` become operands, and how."""
        by_node: dict[Node, dict[int, int]] = {}
        for index in places:
            node, place = self._form.places[index]
            by_node.setdefault(node, {})[place] = index
        choices = [_choice_of(node, indices) for node, indices in by_node.items()]
        return Choice(
            tuple(sorted([i for one in choices for i in one.places])),
            tuple([reading for one in choices for reading in one.readings]),
            tuple([number for one in choices for number in one.operands]),
        )

    def _compile(self, choice: Choice) -> Jitted:
        keywords: dict[Node, dict[str, Any]] = {}
        readings = [(self._form.places[index][0], reading) for index, reading in choice.readings]
        constants = [node for node, reading in readings if reading is None]
        schedule = self._scheduled(functools.partial(_bare_with, keywords), constants)
        taken = len(choice.operands)

        def run(*values: Any) -> Values:
            own, rest = values[: len(values) - taken], iter(values[len(values) - taken :])
            filled = []
            for node, reading in readings:
                if reading is None:
                    filled.append(_full(node, next(rest)))
                else:
                    operands = list(itertools.islice(rest, len(reading)))
                    keywords[node] = reading.arguments(node.attributes, operands)
            entered = self._enter([_key_of(one) for one in own])
            try:
                return self._leave(schedule([*entered, *filled])[0])
            finally:
                keywords.clear()

        names = [str(node.op.name) for node in self._calls()]
        run.__name__ = "_".join(names[:3]) or "nothing"
        read = {one for node in self._order for one in node.operands}
        inner = sum(one in read for one in self.outputs)
        types = [node.type for node in (*self.inputs, *self.outputs)]
        options = options_for(inner)
        if options is None and thread_settings.quick:
            options = quick_options(self.size, types)
        return Jitted(run, self.size, compiler_options=options)

    def _scheduled(self, how: Any, constants: Sequence[Node] = ()) -> Schedule:
        return Schedule(
            self.outputs,
            [*self.inputs, *constants],
            how,
            training=self._training,
            order=self._order,
        )


def _key_of(value: Any) -> Any:
    """Returns ``value``, or the random key of a draw, which is a root key and a number."""
    return _fold(*value) if type(value) is tuple else value


_fold = jax.jit(jax.random.fold_in)


_families: Memo[Any, Family] = Memo(2048)
"""Compiled programs by structure, which excludes numbers."""
_skeletons: Memo[Any, bool] = Memo(2048)
"""The structures of programs that ran, regardless of types and attributes."""
_parts: Memo[Any, bool] = Memo()
"""The operators that ran as parts of programs, with the types of their inputs."""
_part_families: Memo[Any, Family] = Memo(4096)


def _bare_with(keywords: Mapping[Node, Mapping[str, Any]], node: Node) -> Call:
    """Returns the kernel of ``node``, which looks up attributes in ``keywords`` when it runs."""
    kernel = bare(node)
    return lambda *inputs: kernel(*inputs, **keywords.get(node, {}))


def _choice_of(node: Node, indices: Mapping[int, int]) -> Choice:
    """Returns which numbers in a node become operands.

    ``indices`` maps attributes to the indices of their numbers. The readings are pairs of the index
    of a number in the node and what its kernel reads, which is None for a constant.
    """
    if not isinstance(node.op, Operator):
        (index,) = indices.values()
        return Choice((index,), ((index, None),), (node.attributes[0],))
    types = tuple([None if one is None else one.type for one in node.inputs])
    reading, operands = reading_of(node.op, tuple(indices), node.attributes, types)
    if not reading.places:
        return ALL_CONSTANT
    places = tuple([indices[i] for i in reading.places])
    return Choice(places, ((places[0], reading),), operands)


def _full(node: Node, number: Any) -> Any:
    """Returns the value of a constant node whose number is the tracer ``number``."""
    _, dtype, shape = node.attributes
    return number if dtype is None else jnp.full(shape, number, dtype)


def _part_key(node: Node) -> Any:
    assert isinstance(node.op, Operator)
    places = number_places(node.op, node.attributes)
    types = tuple([None if one is None else one.type for one in node.inputs])
    return node.op, without_numbers(node.attributes, places), types


def _part(node: Node) -> Call:
    """Returns the kernel of ``node``, compiled once for all programs."""
    operator, attributes = node.op, node.attributes
    assert isinstance(operator, Operator)
    key = _part_key(node)
    _parts.put(key, True)
    types = key[2]
    program, numbers = kernel_of(operator, attributes, types)
    return functools.partial(_with_operands, program, numbers) if numbers else program


def _with_operands(program: Call, numbers: Numbers, *values: Any) -> Any:
    return program(*values, *numbers)


def kernel_of(
    operator: Operator, attributes: Attributes, types: tuple[VarType | None, ...]
) -> tuple[Jitted, Numbers]:
    """Returns the compiled kernel of a call, and the attributes that it takes after the inputs."""
    places = number_places(operator, attributes)
    quick = quick_options(1, types) if thread_settings.quick else None
    key = operator, without_numbers(attributes, places), quick is None
    family = _part_families.get(key) or _part_families.put(key, Family())

    def make(choice: Choice) -> Jitted:
        kernel, (reading,) = bare_kernel(operator, attributes), choice.readings or (None,)

        def run(*values: Any) -> Any:
            if reading is None:
                return kernel(*values)
            rest = len(values) - len(reading)
            return kernel(*values[:rest], **reading.arguments(attributes, values[rest:]))

        run.__name__ = operator.name
        static = operator.training_index
        return Jitted(run, static_argnums=static, compiler_options=quick)

    numbers = tuple([attributes[i] for i in places])
    return family.chosen(numbers, make, choosing(operator, attributes, places, lambda: types))


# Residuals -------------------------------------------------------------------------------------


class Packing:
    """A layout of residuals in which small arrays of one dtype are concatenated as a group.

    Attributes:
        nodes: the residuals, in the order of the groups.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        """Groups the values of ``nodes``."""
        groups: dict[Any, list[Node]] = {}
        for node in nodes:
            type_ = node.type
            small = type_.kind is VarKind.LOD_TENSOR and type_.size <= tuned.tuning.packed
            groups.setdefault(type_.dtype if small else node, []).append(node)
        self._groups = list(groups.values())
        self.nodes = [node for group in self._groups for node in group]

    def __len__(self) -> int:
        return len(self._groups)

    def packed(self, values: Values) -> Values:
        """Packs values of ``nodes`` into one array for each group."""
        supply = iter(values)
        rows = [[next(supply) for _ in group] for group in self._groups]
        return [_joined(row) if len(row) > 1 else row[0] for row in rows]

    def unpacked(self, packed: Values) -> Values:
        """Unpacks the values of ``nodes``."""
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


Formal = Mapping[Node, tuple[Node, ...]]
"""The heads of each differentiable gradient, which is a function of all inputs of its heads."""
_NO_NODES: Formal = {}


def functions_of(ends: Sequence[Node], formal: Formal) -> set[Node]:
    """Returns the nodes that ``ends`` are functions of, even if a gradient does not read them."""
    result: set[Node] = set()
    waiting = list(ends)
    while waiting:
        new = [node for node in topological(waiting) if node not in result]
        result.update(new)
        waiting = [head for node in new for head in formal.get(node, ())]
    return result


class LinearizedProgram:
    """A program that also returns the residuals for a backward pass.

    Attributes:
        program: computes the requested outputs, then the residuals that are neither inputs nor
            outputs.
        wanted: the requested outputs.
        residuals: the nodes whose values a backward pass reads, including inputs.
        active: the inputs through which a derivative may flow.
        heads: the requested outputs through which a derivative may flow.
    """

    def __init__(
        self,
        inputs: Sequence[Node],
        wanted: Sequence[Node],
        active: Sequence[Node],
        training: bool,
        cut: Collection[Node] = (),
        formal: Formal = _NO_NODES,
    ) -> None:
        """Finds the residuals of the graph from ``inputs`` to ``wanted``.

        No derivative flows through nodes in ``cut``. ``formal`` contains the heads of the
        differentiable gradients in the graph.
        """
        self._formal = formal
        self.inputs, self.wanted, self.training = list(inputs), list(wanted), training
        order = topological(wanted, until=inputs)
        carrying = [node for node in order if carries_cotangent(node) and node not in cut]
        flowing = [*inputs, *carrying]
        reached = reaching(flowing, active)
        self.flowing = {node for node in flowing if node in reached}
        self.active = [node for node in active if node in self.flowing]
        self._order, self._forward = order, {*order, *inputs}
        self.heads = [node for node in wanted if self.flows(node)]
        self.residuals = self._closure()
        self._kept = {*self.residuals, *[one.source for one in self.residuals]}
        known = {*inputs, *wanted}
        self.plain = [node for node in self.residuals if node in known]
        self._packing = Packing([node for node in self.residuals if node not in known])
        outputs = [*wanted, *self._packing.nodes]
        self.program = SegmentProgram(
            inputs, outputs, training, leave=self._left, arrangement=("packed", len(self.wanted))
        )
        self._unpack = Jitted(self._packing.unpacked)
        self._pullbacks: dict[Any, PullbackProgram] = {}
        self._behind: dict[Any, list[Node]] = {}
        self._using: dict[Any, frozenset[Node]] = {}

    def _closure(self) -> list[Node]:
        """Returns the nodes that any backward pass reads, even one that begins at a residual."""
        heads = list(self.heads)
        while True:
            result = self._read_by(heads)
            new = [node for node in result if self.flows(node) and node not in heads]
            new = [node for node in new if node not in self.inputs]
            if not new:
                return result
            heads += new

    def flows(self, node: Node) -> bool:
        """Whether a derivative with respect to an active input may flow through ``node``."""
        return node in self.flowing or (node.source in self.flowing and carries_cotangent(node))

    def links(self, node: Node) -> bool:
        """Whether a backward pass may start at ``node``; the gradients of a constant are zero."""
        return self.flows(node) or (node.op is CONSTANT and node.type.differentiable)

    def _read_by(self, heads: Sequence[Node]) -> list[Node]:
        """Returns the forward values that the gradients of ``heads`` read."""
        read = residuals(self._gradients(heads), self._is_forward)
        return sorted([one for one in read if one.op not in _FREE], key=lambda one: one.serial)

    def _is_forward(self, node: Node) -> bool:
        return node in self._forward or node.source in self._forward

    def _gradients(self, heads: Sequence[Node]) -> list[Node]:
        """Returns the gradients of ``heads``, except heads that cannot be differentiated.

        The error of such a head is raised when a backward pass begins there.
        """
        if not heads or not self.active:
            return []
        seeds = [placeholder("head", node.type.strong()) for node in heads]
        try:
            gradients = self.pullback(heads, self.active, seeds)
        except SymopError:
            if len(heads) == 1:
                return []
            return [one for head in heads for one in self._gradients([head])]
        return [one for one in gradients if one is not None]

    def pullback(
        self, heads: Sequence[Node], by: Sequence[Node], seeds: Sequence[Node]
    ) -> list[Node | None]:
        """Returns the gradients of some heads, which read the same residuals as those of all."""
        return pullback(heads, by, seeds, within=self._order)

    @property
    def is_new(self) -> bool:
        """Whether no program of the same structure ran before."""
        return self.program.is_new

    @property
    def packs(self) -> int:
        """The number of arrays that are saved in addition to the plain residuals."""
        return len(self._packing)

    @property
    def arrangement(self) -> tuple[Any, ...]:
        """The layout of the residuals in the saved arrays, as a cache key."""
        saved = [*self.plain, *self._packing.nodes]
        index = {node: i for i, node in enumerate(saved)}
        order = tuple([index[node] for node in self.residuals])
        return len(self.plain), tuple([node.type for node in saved]), order

    def _left(self, values: Values) -> Values:
        count = len(self.wanted)
        return [*values[:count], *self._packing.packed(values[count:])]

    def run(
        self, values: Sequence[Any], call: Callable[..., Values]
    ) -> tuple[Values, Values, bool]:
        """Runs the program with ``call``.

        Returns the values of ``wanted``, the saved residuals, and whether these are packed.
        """
        results = call(self.program, values)
        count = len(self.wanted)
        held = dict(zip(self.inputs, values, strict=True))
        held.update(zip(self.wanted, results, strict=False))
        saved = [*[held[node] for node in self.plain], *results[count:]]
        return results[:count], saved, self.program.compiled

    def unpacked(self, saved: Values) -> Values:
        """Returns the values of ``residuals`` from packed arrays."""
        count = len(self.plain)
        return self.ordered([*saved[:count], *self._packing.unpacked(saved[count:])])

    def ordered(self, saved: Values) -> Values:
        """Returns the values of ``residuals`` from arrays that are not packed."""
        held = dict(zip([*self.plain, *self._packing.nodes], saved, strict=True))
        return [held[node] for node in self.residuals]

    def arrays(self, saved: Values, packed: bool) -> Values:
        """Returns the values of ``residuals`` as separate arrays."""
        if not packed:
            return self.ordered(saved)
        count = len(self.plain)
        return self.ordered([*saved[:count], *self._unpack(saved[count:])])

    def nothing_saved(self) -> Values:
        """Returns what takes the place of freed residuals, for gradients that read none."""
        return [None] * (len(self.plain) + len(self._packing.nodes))

    def behind(self, reached: tuple[Node, ...], by: tuple[Node, ...]) -> list[Node]:
        """Returns the nodes among ``by`` that the values ``reached`` are functions of."""
        key = reached, by
        if key not in self._behind:
            order = functions_of(reached, self._formal)
            self._behind[key] = [node for node in by if node in order]
        return self._behind[key]

    def using(self, heads: tuple[Node, ...]) -> frozenset[Node]:
        """Returns the calls that compute ``heads`` and whose gradient makers read residuals."""
        if heads not in self._using:
            order = topological(heads, until=self.inputs)
            self._using[heads] = frozenset(
                node for node in order if node in self.flowing and self._reads_residual(node)
            )
        return self._using[heads]

    def _reads_residual(self, node: Node) -> bool:
        """Whether the gradient maker of a call may read a residual."""
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
    ) -> "PullbackProgram":
        """Returns the pullback from cotangents of ``heads`` to the gradients of ``by``.

        The cotangents of ``bare`` are ones, and those of ``rows`` are row-sparse.
        """
        key = heads, by, bare, rows
        if key not in self._pullbacks:
            with jax.enable_x64(self.program.x64):
                self._pullbacks[key] = PullbackProgram(self, heads, by, bare, rows)
        return self._pullbacks[key]


class PullbackProgram:
    """The pullback of a recorded program: a program that takes residuals and cotangents.

    Attributes:
        read: the indices of the residuals that are read.
        by: the nodes that receive a gradient.
        nodes: the gradients.
    """

    def __init__(
        self,
        of: LinearizedProgram,
        heads: tuple[Node, ...],
        by: tuple[Node, ...],
        bare: tuple[Node, ...],
        rows: tuple[Node, ...] = (),
    ) -> None:
        """Builds the pullback with the gradient makers."""
        types = {node: node.type.strong() for node in heads}
        types |= {n: VarType(n.type.shape, n.type.dtype, VarKind.SELECTED_ROWS) for n in rows}
        seeds = [ones(t) if n in bare else placeholder("head", t) for n, t in types.items()]
        self._seeds = [one for one, node in zip(seeds, heads, strict=True) if node not in bare]
        gradients = of.pullback(heads, by, seeds)
        arrived = [(x, one) for x, one in zip(by, gradients, strict=True) if one is not None]
        self.by = [x for x, _ in arrived]
        stand_ins = {node: placeholder("residual", node.type) for node in of.residuals}
        self.nodes = substitute([one for _, one in arrived], stand_ins)
        needed = set(topological(self.nodes))
        self.read = [i for i, node in enumerate(of.residuals) if stand_ins[node] in needed]
        self.inputs = [*[stand_ins[of.residuals[i]] for i in self.read], *self._seeds]
        self._of, self._training = of, of.training
        self._saved = len(of.plain) + of.packs
        self._of_packed = SegmentProgram(
            self.inputs,
            self.nodes,
            of.training,
            enter=self._entered,
            arrangement=(*of.arrangement, tuple(self.read)),
        )
        self._of_arrays = SegmentProgram(self.inputs, self.nodes, of.training)
        self._recorded: dict[Any, LinearizedProgram] = {}

    def _entered(self, values: Values) -> Values:
        """Returns the values of ``inputs`` from packed residuals followed by the cotangents."""
        residuals = self._of.unpacked(values[: self._saved])
        return [*[residuals[i] for i in self.read], *values[self._saved :]]

    def run(
        self, saved: Values, packed: bool, cotangents: Values, call: Callable[..., Values]
    ) -> Values:
        """Computes the gradients; ``call`` runs a program."""
        if packed:
            return call(self._of_packed, [*saved, *cotangents])
        return call(self._of_arrays, [*self.inputs_of(saved, packed), *cotangents])

    def inputs_of(self, saved: Values, packed: bool) -> Values:
        """Returns the residuals that are read, as separate arrays."""
        residuals = self._of.arrays(saved, packed)
        return [residuals[i] for i in self.read]

    def recorded(self, active: tuple[int, ...]) -> LinearizedProgram:
        """Returns the pullback as a recorded program, for derivatives by inputs at ``active``."""
        if active not in self._recorded:
            chosen = [self.inputs[i] for i in active]
            with jax.enable_x64(self._of.program.x64):
                program = LinearizedProgram(self.inputs, self.nodes, chosen, self._training)
            self._recorded[active] = program
        return self._recorded[active]


class Lean:
    """A program that contains its own backward passes and saves no residuals.

    Attributes:
        program: computes the requested outputs.
        whole: the program that saves residuals as well.
        spent: the calls that its backward passes used, and the heads of these passes.
        done: whether calls read residuals, and the backward passes used all of these calls.
    """

    def __init__(self, whole: LinearizedProgram, heads: Sequence[tuple[Node, ...]]) -> None:
        """Creates the program for ``whole`` after backward passes that did not retain the record.

        ``heads`` contains the heads of each pass.
        """
        self.whole = whole
        self.program = SegmentProgram(whole.inputs, whole.wanted, whole.training)
        self.spent = frozenset[Node]().union(*[whole.using(one) | set(one) for one in heads])
        reading = whole.using(tuple(whole.heads))
        self.done = bool(reading) and self.spent >= reading

    @property
    def is_new(self) -> bool:
        """Whether no program of the same structure ran before."""
        return self.program.is_new
