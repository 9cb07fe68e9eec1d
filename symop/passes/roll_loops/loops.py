"""Loop construction: the steps of a run as one ``scan``, or ``vmap`` if nothing is carried."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from registry.errors import KindError, SymopError
from registry.operator.infer import abstract
from registry.operator.operator import Operator
from registry.ops.control_flow.loop_gradients import Layout
from registry.table import get
from registry.tuning import present as tuned
from registry.types import VarKind, VarType
from symop.graph.emission import apply
from symop.graph.nodes import (
    CONSTANT,
    TRAINING,
    VARIABLE,
    Node,
    Origin,
    copied_origin,
    placeholder,
    select,
    topological,
    training_flag,
)
from symop.graph.policies import (
    KEEP_ALL,
    KEEP_NONE,
    RematScope,
    around_both,
    scope_of,
    within,
)
from symop.passes.remat.loop_calls import saving
from symop.passes.roll_loops.costs import (
    FEW_BYTES,
    Cost,
    copies_too_much,
    cost_of,
    saves_compiling,
)
from symop.passes.roll_loops.series import Series, series_of
from symop.passes.roll_loops.steps import EndsDifferError, Place, Read, RefusedError, Steps
from symop.regions.bodies import GraphBody, body_of
from symop.xla.compiling import transposes_slowly

Image = Callable[[Node], Node]
"""Returns the image of a node, which is the node itself if it did not change."""
Within = Callable[[Sequence[Node], Sequence[Node], Sequence[Node]], list[Node]]
"""Rolls repetitions within a step: ``(results, order, parameters)``."""
FEW = 2
"""The number of results up to which a loop's results are sliced; more are unstacked."""
_LIGHT = 4
"""All steps are computed at once if their values take at most this multiple of the results."""


class Aim(NamedTuple):
    """The purpose of loops.

    Attributes:
        residuals: Their gradients are built as graphs, so they store the residuals.
        by_jax: JAX may differentiate them.
        stacking: Variables that they read in separate steps are stacked, so nothing is copied.
        apart: Variables that are not stacked.
    """

    residuals: bool = False
    by_jax: bool = False
    stacking: bool = False
    apart: frozenset[Node] = frozenset()

    def stacks(self, values: Sequence[Node]) -> bool:
        """Whether ``values``, one for each step of a loop, become one variable."""
        return self.stacking and all(v.op is VARIABLE and v not in self.apart for v in values)

    def require_stacks(self, values: Sequence[Node]) -> None:
        """Checks that no variables at the ends prevent the others from being stacked.

        Raises:
            EndsDifferError: Some do.
        """
        own = [i for i, v in enumerate(values) if v not in self.apart]
        if not self.stacking or not own or any(v.op is not VARIABLE for v in values):
            return
        first, last = own[0], len(values) - 1 - own[-1]
        if (first or last) and len(own) == len(values) - first - last:
            raise EndsDifferError("variables of the outer steps are read elsewhere", first, last)


FORWARD = Aim()
"""Loops that are only run, not differentiated."""


class RolledLoop(NamedTuple):
    """A loop in place of steps.

    Attributes:
        node: The operator that runs it.
        images: The images of the values of the steps.
        terms: For nodes that sum values of all steps, the places summed and the sums.
        backwards: Whether the last slice of its series is the first step's.
        counts: The numbers of carries, series and constants, and of series that had to be copied
            together.
    """

    node: Node
    images: dict[Node, Node]
    terms: dict[Node, list[tuple[Place, Node]]]
    backwards: bool
    counts: dict[str, int]


class _Operands:
    """The parameters of a body, and the values from outside that they represent."""

    def __init__(self, steps: Steps, image: Image) -> None:
        self.steps, self.image = steps, image
        self.carries: dict[tuple[Place, Node], Node] = {}
        self.series: dict[tuple[Node, ...], Node] = {}
        self.consts: dict[Node, Node] = {}

    def carry(self, place: Place, first: Node) -> Node:
        types = self.steps.node(1, place[0]).types
        assert types is not None
        type = types[place[1]]
        if first.type.strong() is not type:
            raise EndsDifferError(f"the first step starts from {first.type}, the others {type}", 1)
        if type.kind is not VarKind.LOD_TENSOR:
            raise RefusedError("a carried value is not a dense array")
        return self._parameter(self.carries, (place, self.image(first)), "carried", type)

    def outside(self, values: tuple[Node, ...]) -> Node:
        now = tuple(map(self.image, values))
        first = now[0]
        if all(one is first for one in now) and first.type.kind is not VarKind.RANDOM_KEY:
            if first.op in (CONSTANT, TRAINING):
                return first
            return self._parameter(self.consts, first, "shared", first.type.strong())
        return self._parameter(self.series, now, "each", first.type.strong())

    @staticmethod
    def _parameter(known: dict[Any, Node], key: Any, name: str, type: VarType) -> Node:
        result = known.get(key)
        if result is None:
            result = known[key] = placeholder(f"{name}{len(known)}", type)
        return result

    @property
    def parameters(self) -> list[Node]:
        return [*self.carries.values(), *self.series.values(), *self.consts.values()]


class _Builder:
    """Builds the body of a run's steps, and the loop over it."""

    def __init__(self, steps: Steps, image: Image, within: Within, aim: Aim) -> None:
        self.steps, self.within, self.aim = steps, within, aim
        self.operands = _Operands(steps, image)
        self.made: dict[int, Node] = {}
        self.scope = self._scope()

    def _scope(self) -> RematScope | None:
        """Returns the scope that contains all steps; scopes of single steps are inside the body."""
        last = self.steps.run.times - 1
        result = scope_of(self.steps.node(0, 0))
        for k in range(self.steps.run.period):
            for step in (0, 1, last):
                result = around_both(result, scope_of(self.steps.node(step, k)))
        return result

    def _placed(self, node: Node, scope: RematScope | None) -> Origin | None:
        return None if node.origin is None else node.origin._replace(scope=scope)

    def loop(self) -> RolledLoop:
        """Builds the loop.

        Raises:
            RefusedError: The steps cannot be a loop.
        """
        for k in range(self.steps.run.period):
            if k not in self.steps.varying:
                self.made[k] = self._operator(k)
        sums = sorted({place for each in self.steps.terms.values() for place in each})
        last, collected = self._results()
        carries = [self.value(place) for place, _ in self.operands.carries]
        results = [*carries, *map(self.value, sums), *map(self.value, collected)]
        outputs, backwards, copied = self._called(results, len(sums))
        images = self._last(last, outputs)
        first = len(carries) + len(sums)
        for place, whole in zip(collected, outputs[first:], strict=True):
            images.update(self._taken(place, whole, backwards=backwards))
        by_place = dict(zip(sums, outputs[len(carries) : first], strict=True))
        terms = {
            reader: [(place, by_place[place]) for place in sorted(places)]
            for reader, places in self.steps.terms.items()
        }
        operands = self.operands
        counts = {
            "carried": len(operands.carries),
            "series": len(operands.series),
            "shared": len(operands.consts),
            "copied": copied,
        }
        return RolledLoop(outputs[0].source, images, terms, backwards, counts)

    def value(self, place: Place) -> Node:
        """Returns a value of the body."""
        array = self.made[place[0]]
        assert isinstance(array.op, Operator)
        original = self.steps.node(1, place[0]).op
        assert isinstance(original, Operator)
        return array if original.single else select(array, place[1])

    def _operator(self, k: int) -> Node:
        node = self.steps.node(1, k)
        inputs = tuple([self._input(read) for read in self.steps.reads(k)])
        assert isinstance(node.op, Operator)
        with copied_origin(self._placed(node, within(scope_of(node), self.scope))):
            result = apply(node.op, inputs, node.attributes)
        if result.types != node.types:
            raise RefusedError(f"{node.op.name} gives another type for numbers that differ by step")
        return result

    def _input(self, read: Read | None) -> Node | None:
        if read is None:
            return None
        if read.inner is not None:
            return self.value(read.inner)
        if read.carried is not None:
            return self.operands.carry(read.carried, read.values[0])
        return self.operands.outside(read.values)

    def _results(self) -> tuple[list[Place], list[Place]]:
        """Returns the carried values requested of the last step only, and those of each step."""
        carried = {place for place, _ in self.operands.carries}
        final = {self.steps.run.times - 1}
        uses = sorted(self.steps.uses.items())
        last = [place for place, steps in uses if steps == final and place in carried]
        return last, [place for place, _ in uses if place not in last]

    def _called(self, results: Sequence[Node], n_sums: int) -> tuple[list[Node], bool, int]:
        """Returns the loop's results, its direction, and how many of its series were copied."""
        own = self.operands
        for values in own.series:
            self.aim.require_stacks(values)
        arrays = [_required(series_of(values)) for values in own.series]
        self._require_little_copied(arrays, carries=bool(own.carries) or n_sums > 0)
        backwards = _direction(arrays)
        self._require_many_steps(backwards=backwards)
        series = [
            _turned(one, values, backwards=backwards)
            for one, values in zip(arrays, own.series, strict=True)
        ]
        order = [self.made[k] for k in sorted(self.made)]
        inner = self.within(results, order, own.parameters)
        body = body_of(own.parameters, inner, (), updating=True)
        _require_dense_gradients(body)
        if self.aim.by_jax and transposes_slowly(lambda: _traced(body)):
            raise RefusedError(
                "JAX would transpose convolutions, which XLA makes slow in CPU loops"
            )
        layout = Layout(body, len(own.carries), len(series), n_sums)
        firsts = [first for _, first in own.carries]
        operands = [*firsts, *series, *own.consts]
        with copied_origin(self._placed(self.steps.node(0, 0), self.scope)):
            outputs = self._operator_of(layout, operands, backwards=backwards)
        return outputs[: len(results)], backwards, sum(one.copied for one in arrays)

    def _cost(self) -> Cost | None:
        """Returns the cost of a step."""
        return cost_of(self.steps.node(1, k) for k in range(self.steps.run.period))

    def _require_many_steps(self, *, backwards: bool) -> None:
        """Refuses loops of few steps with convolutions.

        Raises:
            RefusedError: The steps run faster outside of a loop.
        """
        # A gradient, which runs backwards, may have one step less than what it is of.
        least = tuned.tuning.convolving_steps - (1 if backwards else 0)
        if self.aim.stacking or self.steps.run.times >= least or jax.default_backend() != "cpu":
            return
        cost = self._cost()
        if cost is not None and cost.convolutions:
            raise RefusedError(
                "few steps with convolutions run faster outside of a loop, where XLA computes "
                "several at once; with stacked=True they are a loop"
            )

    def _require_little_copied(self, series: Sequence[Series], *, carries: bool) -> None:
        """Refuses loops whose copies in each run take longer than compilation saves.

        If nothing is carried, any copy is refused, unless variables are stacked too: a loop that
        updates those saves copying them.

        Raises:
            RefusedError: The loop copies too much.
        """
        pairs = list(zip(series, self.operands.series, strict=True))
        stay = [one for one, values in pairs if one.copied and self.aim.stacks(values)]
        copies = [one for one in series if one.copied and one not in stay]
        if copies and not (carries or stay):
            raise RefusedError("nothing is carried, and what the steps read would be copied")
        copied = sum(one.node.type.nbytes for one in copies)
        if copied > tuned.tuning.most_copied:
            raise RefusedError(
                f"the arrays that are read one per step, {copied >> 20} MB, would be copied in "
                "each run; with stacked=True they are one array"
            )
        weights = [one for one, values in pairs if one in copies and _are_variables(values)]
        if not self.aim.stacking:
            self._require_worthwhile_copies([one.node.type.nbytes for one in weights])

    def _require_worthwhile_copies(self, sizes: Sequence[int]) -> None:
        """Refuses loops that are compiled or run more slowly than their steps, due to stacking.

        Raises:
            RefusedError: Copies of these sizes in each run cost more than the loop saves.
        """
        if sum(sizes) < FEW_BYTES:
            return
        run, cost = self.steps.run, self._cost()
        if cost is None:
            return
        if copies_too_much(cost, sum(sizes) / run.times):
            raise RefusedError(
                "the arrays that are read one per step would be copied in each run, which takes "
                "longer than a tenth of the steps; with stacked=True they are one array"
            )
        if not saves_compiling(cost, run.times, len(sizes)):
            raise RefusedError(
                "stacking the arrays that are read one per step takes longer to compile than the "
                "loop saves; with stacked=True they are one array"
            )

    def _operator_of(self, layout: Layout, operands: list[Node], *, backwards: bool) -> list[Node]:
        body = layout.body
        assert isinstance(body, GraphBody)
        reads = any(one.op is TRAINING for one in topological(body.results))
        training: Any = training_flag() if reads else False
        if not layout.n_carry and not layout.n_sums and self._is_light(body):
            return list(get("vmap")(*operands, training=training, body=body, n_mapped=layout.n_xs))
        if self.aim.residuals:
            layout = saving(layout, KEEP_NONE if self.steps.recomputes else KEEP_ALL)
        results = get("scan")(
            *operands,
            training=training,
            body=layout.body,
            n_carry=layout.n_carry,
            n_xs=layout.n_xs,
            n_sums=layout.n_sums,
            length=self.steps.run.times,
            reverse=backwards,
        )
        return list(results)

    def _is_light(self, body: GraphBody) -> bool:
        """Whether all steps may be computed at once."""
        if any(one.kind is not VarKind.LOD_TENSOR for one in body.inputs):
            return False
        room = sum(one.nbytes for node in self.made.values() for one in node.types or ())
        return room <= _LIGHT * sum(one.nbytes for one in body.outputs)

    def _last(self, places: Sequence[Place], outputs: Sequence[Node]) -> dict[Node, Node]:
        carried = [place for place, _ in self.operands.carries]
        images = {}
        for place in places:
            value = self.steps.value(self.steps.run.times - 1, place)
            images[value] = outputs[carried.index(place)]
        return images

    def _taken(self, place: Place, whole: Node, *, backwards: bool) -> dict[Node, Node]:
        """Returns the images of a place's values: slices of the results of all steps."""
        count, steps = self.steps.run.times, sorted(self.steps.uses[place])
        at = {step: count - 1 - step if backwards else step for step in steps}
        if len(steps) <= FEW:
            return {self.steps.value(step, place): slice_of(whole, i) for step, i in at.items()}
        # Not ``resolved``: the limit of outputs is for counts that a user or a file gives.
        parts = get("unstack").member(count)(whole)
        return {self.steps.value(step, place): parts[i] for step, i in at.items()}


def loop_of(steps: Steps, image: Image, within: Within, aim: Aim) -> RolledLoop:
    """Returns the loop that computes ``steps``.

    Raises:
        RefusedError: The steps cannot be a loop.
    """
    try:
        return _Builder(steps, image, within, aim).loop()
    except SymopError as error:
        raise RefusedError(str(error).partition("\n")[0]) from error


def _are_variables(values: Sequence[Node]) -> bool:
    return all(one.op is VARIABLE for one in values)


def _required(series: Series | None) -> Series:
    if series is None:
        raise RefusedError("what the steps read from outside is of different types")
    return series


def _direction(series: Sequence[Series]) -> bool:
    """Whether to run backwards, so that most bytes of uncopied series need no reversal."""
    sizes = [0, 0]
    for one in series:
        if not one.copied and one.node.type.kind is VarKind.LOD_TENSOR:
            sizes[one.backwards] += one.node.type.nbytes
    return sizes[1] > sizes[0]


def _turned(series: Series, values: Sequence[Node], *, backwards: bool) -> Node:
    """Returns the series with the slice first that a loop in that direction reads first."""
    if series.backwards == backwards:
        return series.node
    if series.copied or series.node.type.kind is VarKind.RANDOM_KEY:
        turned = series_of(values[::-1])
        assert turned is not None
        return turned.node
    flipped: Node = get("flip")(series.node, axis=0)
    return flipped


def slice_of(series: Node, number: int) -> Node:
    """Returns the result of one step."""
    one = get("slice")(series, begin=(number,), end=(number + 1,))
    squeezed: Node = get("squeeze")(one, axis=0)
    return squeezed


def _traced(body: GraphBody) -> Any:
    """Returns the jaxpr of ``body``."""
    values = list(map(abstract, body.inputs))
    return jax.make_jaxpr(lambda *given: body.run(given))(*values)


def _require_dense_gradients(body: GraphBody) -> None:
    """Refuses a body with a row-sparse gradient, which could not leave it.

    Raises:
        RefusedError: A gradient is row-sparse.
    """
    heads, wanted = (
        tuple(i for i, one in enumerate(types) if one.differentiable)
        for types in (body.outputs, body.inputs)
    )
    try:
        body.pullback(heads, wanted)
    except KindError:
        raise RefusedError("a gradient of what the steps share is rows") from None
    except SymopError:
        pass  # differentiating it reports the error
