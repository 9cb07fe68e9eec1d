"""Graphs as pure JAX functions, which check their inputs and plan once for each set of types."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, FeedError, SymopError
from registry.shardings import constrained
from registry.symbolic import Symbolic
from registry.types import (
    DType,
    Shape,
    VarKind,
    VarType,
    integer_limits,
    is_boolean,
    is_exact,
    is_integer,
)
from registry.values import SelectedRows
from registry.xla.device_types import cotangent_of_type, varied, varying_axes
from registry.xla.unstack import put_together
from symop import random
from symop.autodiff.gradients import known_gradients
from symop.graph.inference import infer_variables, with_shapes
from symop.graph.naming import require_known, variables_among
from symop.graph.nodes import (
    TRAINING,
    Node,
    built_at,
    by_age,
    constant,
    contains_gradient,
    leaves,
    topological,
)
from symop.graph.policies import Policy
from symop.graph.rewriting import images, settle
from symop.graph.shardings import shardings_of
from symop.graph.states import explicit
from symop.lowering.rules import bare_where_native, ruled
from symop.lowering.steps import Call, Schedule, random_keys, type_of
from symop.passes import remat as recomputing
from symop.passes.fusion import fuse_loops
from symop.passes.products import cheaper, is_rewriting, rewriting, with_cheap_masks
from symop.passes.replacements import Replacement
from symop.passes.roll_loops.loops import FORWARD, Aim
from symop.passes.roll_loops.rolling import Rolled, roll
from symop.passes.roll_loops.stacks import Stacked, Stacks, stack_variables
from symop.passes.roll_loops.switch import is_rolling
from symop.passes.streaming import is_streaming, join_losses, stream, streaming

Function = Callable[..., Any]


class Replaced(NamedTuple):
    """The replacements in a graph.

    Attributes:
        streams: patterns, by operators without large matrices.
        rewrites: products, by cheaper ones.
    """

    streams: list[Replacement]
    rewrites: list[Replacement]


class Specialized(NamedTuple):
    """A graph with all types known and the training flag fixed.

    Attributes:
        outputs: The values of the graph, with loops in place of repeated blocks.
        variables: The variables by name.
        keys: The random keys in the order in which they are numbered.
        updates: The new values of the variables that the graph updates.
        stacks: For the name of each stack, the names of the variables stacked in it.
    """

    outputs: list[Node]
    variables: dict[str, Node]
    keys: list[Node]
    updates: dict[Node, Node]
    stacks: Stacks


def specialize(
    outputs: Sequence[Node],
    types: Mapping[str, tuple[Shape, DType | None]],
    *,
    training: bool,
    rolling: bool,
    aim: Aim = FORWARD,
    log: list[Rolled] | None = None,
    prepare: Callable[[list[Node]], list[Node]] | None = None,
    replaced: Replaced | None = None,
) -> Specialized:
    """Infers the types of ``outputs`` from ``types`` and fixes the training flag.

    ``prepare`` rewrites the graph before that. Patterns with large matrices, and products that
    cost more than others with the same result, are replaced and reported in ``replaced``. If
    ``rolling``, repeated blocks become loops for the given ``aim``, which are reported in ``log``.

    Raises:
        UnknownTypeError, ShapeError, DTypeError: Types cannot be inferred, or contradict.
    """
    of_types = infer_variables(settle(outputs) if rolling else outputs, types)
    reached = topological(of_types)
    variables, order = variables_among(reached), by_age(reached)
    flags = dict.fromkeys(leaves(order, TRAINING), constant(training))
    fixed = order
    if flags:
        image = images(of_types, flags)
        fixed = [one for node in order if isinstance(one := image[node], Node)]
        of_types = [image.value(one) for one in of_types]
    outputs_typed = explicit(of_types, fixed)
    ends, by_time = [*outputs_typed.outputs, *outputs_typed.updates.values()], outputs_typed.order
    if prepare is not None and (prepared := prepare(ends)) is not ends:
        ends, by_time = prepared, by_age(topological(prepared))
    lean = stream(ends, log=None if replaced is None else replaced.streams)
    if lean:
        ends = [lean.value(one) for one in ends]
    before, ends = ends, list(cheaper(ends, None if replaced is None else replaced.rewrites))
    if lean or ends != before:
        by_time = by_age(topological(ends))
    if rolling:
        ends = fuse_loops(roll(ends, by_time, aim=aim, log=log))
    ends = list(with_cheap_masks(ends))
    count = len(outputs_typed.outputs)
    updates = dict(zip(outputs_typed.updates, ends[count:], strict=True))
    return Specialized(ends[:count], variables, random_keys(order), updates, {})


def over_stacks(
    settled: Callable[[frozenset[Node]], Specialized],
    allows: Callable[[tuple[str, ...]], bool] = bool,
) -> Specialized:
    """Returns a graph in which stacks replace the variables that only a loop reads.

    Variables that a loop reads one per step are replaced by a single variable that holds them all,
    if ``allows`` is true of their names.

    Args:
        settled: Returns the graph, given the variables that must not be stacked.
        allows: Whether variables of these names may be stacked.
    """
    apart: frozenset[Node] = frozenset()
    while True:
        settled_graph = settled(apart)
        stacks = stack_variables(
            settled_graph.outputs, settled_graph.updates, allows, apart, settled_graph.variables
        )
        if stacks.apart <= apart:
            return _renamed(settled_graph, stacks)
        apart |= stacks.apart  # loops that relied on their stacking may no longer be worthwhile


def _renamed(settled: Specialized, stacks: Stacked) -> Specialized:
    """Returns ``settled`` with the outputs of ``stacks``, with stacks in place of their members."""
    owner = {one: stack for stack, members in stacks.stacks.items() for one in members}
    variables: dict[str, Node] = {}
    for name, node in settled.variables.items():
        one = owner.get(node)
        variables[name if one is None else str(one.name)] = node if one is None else one
    names = {
        str(stack.name): tuple(str(one.name) for one in members)
        for stack, members in stacks.stacks.items()
    }
    return Specialized(stacks.outputs, variables, settled.keys, stacks.updates, names)


def rolls(remat: Policy | None) -> bool:
    """Whether repeated blocks become loops if gradients keep the values chosen by ``remat``."""
    return is_rolling() and (remat is None or remat.rolls)


def owners_of(stacks: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Returns the stack of each stacked variable."""
    return {one: stack for stack, members in stacks.items() for one in members}


def stack_arrays(stacks: Mapping[str, Sequence[str]], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arrays by the names of variables with those of each stack as one array.

    Raises:
        FeedError: Some, but not all, variables of a stack are given.
    """
    owners = owners_of(stacks)
    result = {name: one for name, one in arrays.items() if name not in owners}
    for stack, members in stacks.items():
        missing = [one for one in members if one not in arrays]
        if missing and len(missing) < len(members):
            raise FeedError(
                f"stack: of variables that lie in one array all must be given or none, got no "
                f"{', '.join(missing)}"
            )
        if not missing:
            result[stack] = put_together([arrays[one] for one in members])
    return result


def unstack_arrays(
    stacks: Mapping[str, Sequence[str]], arrays: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns arrays by the names of variables and stacks as arrays of single variables."""
    result: dict[str, Any] = {}
    for name, one in arrays.items():
        members = stacks.get(name)
        result.update({name: one} if members is None else zip(members, one, strict=True))
    return result


def remembering(settled: Specialized, remat: Policy | None) -> Specialized:
    """Returns the graph with loops whose steps keep the residuals that ``remat`` chooses."""
    return _over(settled, recomputing.chosen(_ends(settled), remat))


def _ends(settled: Specialized) -> list[Node]:
    return [*settled.outputs, *settled.updates.values()]


def _over(settled: Specialized, ends: Sequence[Node]) -> Specialized:
    count = len(settled.outputs)
    updates = dict(zip(settled.updates, ends[count:], strict=True))
    return settled._replace(outputs=list(ends[:count]), updates=updates)


class GraphFunction:
    """A graph as a function on JAX values, which can be traced under every JAX transformation.

    Attributes:
        arguments: The names of the variables, in the order of positional values.
        states: The names of the auxiliary states, which follow the arguments.
        stacks: For each stack among these, the names of the variables in it.
        wrt: The names of those whose gradients follow the outputs.
    """

    def __init__(
        self,
        outputs: Sequence[Node],
        also: Sequence[Node] = (),
        *,
        training: bool = False,
        rules: bool | None = None,
        wrt: Sequence[str] = (),
        inexact_only: bool = False,
        stacking: bool = False,
        remat: Policy | None = None,
    ) -> None:
        """Creates a function of the variables that ``outputs`` need and of those in ``also``.

        If ``rules`` is None, a graph that already contains its gradient gets bare kernels. The
        outputs are followed by the gradients of the first output with respect to the arguments in
        ``wrt``, or to the stacks that contain these; if ``inexact_only``, by None for values of an
        integer or boolean dtype, which otherwise are an error. Those gradients, or otherwise those
        that JAX computes, keep what ``remat`` says.

        If ``stacking``, variables that a loop reads one per step are replaced by stacks of them;
        the types of all variables must be known.

        Raises:
            ArgumentError: ``remat`` is given with ``rules=False``, where JAX would differentiate
                the kernels and choose the residuals.
        """
        self.outputs = tuple(outputs)
        self._roots = (*also, *outputs)
        self._training, self._stacking, self._remat = training, stacking, remat
        self._inexact_only = inexact_only
        self._rolling = rolls(remat)
        self._streaming, self._rewriting = is_streaming(), is_rewriting()
        self._open = frozenset[str]()
        if remat is not None and rules is False:
            raise ArgumentError("to_jax: remat must go with gradient makers, got rules=False")
        order = topological(self._roots)
        self._differentiates = bool(wrt)
        has_gradient = self._differentiates or contains_gradient(order)
        keeps = remat is not None and not wrt  # in gradients by JAX, which needs rules
        bare_kernels = has_gradient and not keeps if rules is None else not rules
        self._seals = not bare_kernels
        self._how = bare_where_native if bare_kernels else ruled
        self._stacked = over_stacks(partial(self._settled, {})) if stacking else None
        self.stacks = {} if self._stacked is None else self._stacked.stacks
        owners = owners_of(self.stacks)
        self.wrt = list(dict.fromkeys(owners.get(name, name) for name in wrt))
        variables = variables_among(order) if self._stacked is None else self._stacked.variables
        roles = {name: node.attributes[2] for name, node in variables.items()}
        self.arguments = [name for name in variables if roles[name] == "argument"]
        self.states = [name for name in variables if roles[name] == "state"]
        self.names = [*self.arguments, *self.states]
        self._nodes = [variables[name] for name in self.names]
        self._shardings = shardings_of(self._nodes)
        self._typed = all(node.types is not None for node in order)
        self._fixed = stacking or contains_gradient(order)
        self._schedules: dict[Any, Schedule] = {}

    def open(self, names: Collection[str]) -> None:
        """Lets variables take arrays of another length along the first axis than they declare.

        Batches have such lengths; types are then inferred again. Derivatives that a graph contains
        were built for the declared lengths, so such a graph, and one with stacks, takes no others.
        """
        self._open = frozenset[str]() if self._fixed else frozenset(names)

    def values(self, args: Sequence[Any], arrays: Mapping[str, Any]) -> list[Any]:
        """Returns one value for each variable, converted and checked.

        Raises:
            FeedError: A value is missing, unexpected, or of the wrong shape or dtype.
        """
        if len(args) > len(self.names):
            raise FeedError(
                f"symbol: at most {len(self.names)} arrays must be given "
                f"({', '.join(self.names)}), got {len(args)}"
            )
        if arrays:
            require_known("symbol", arrays, self.names)
        by_name = dict(zip(self.names, args, strict=False))
        twice = [name for name in arrays if name in by_name]
        if twice:
            raise FeedError(f"symbol: {twice[0]!r} must be given once, got it twice")
        by_name.update(arrays)
        missing = [name for name in self.names if name not in by_name]
        if missing:
            raise FeedError(
                f"symbol: {', '.join(self.names)} must be given, got no {', '.join(missing)}"
            )
        values = [
            as_fed(name, node, by_name[name], is_open=name in self._open)
            for name, node in zip(self.names, self._nodes, strict=True)
        ]
        return self._placed(values) if self._shardings else values

    def _placed(self, values: Sequence[Any]) -> list[Any]:
        """Returns values that are split over the current mesh as their variables declare."""
        known = self._shardings
        return [
            constrained(one, known[name], repr(name))
            if name in known and isinstance(one, (jax.Array, np.ndarray))
            else one
            for name, one in zip(self.names, values, strict=True)
        ]

    def schedule(self, values: Sequence[Any]) -> Schedule:
        """Returns the plan for values of these types, made once."""
        typed = self._typed and not (self._open and values and self._other_shapes(values))
        key = None if typed else tuple(type_of(value).strong() for value in values)
        result = self._schedules.get(key)
        if result is None:
            pairs = () if typed else zip(self.names, values, strict=True)
            types = {name: (tuple(jnp.shape(v)), type_of(v).dtype) for name, v in pairs}
            result = self._schedules[key] = self.plan(types)
        return result

    def _other_shapes(self, values: Sequence[Any]) -> bool:
        """Whether an open variable gets an array of another length than it declares."""
        return any(
            name in self._open and node.types is not None and tuple(value.shape) != node.type.shape
            for name, node, value in zip(self.names, self._nodes, values, strict=True)
        )

    def prepare(self, nodes: list[Node]) -> list[Node]:
        """Returns the graph to compute instead of ``nodes``, whose types are known."""
        return nodes

    def call_of(self, node: Node) -> Call:
        """Returns the function that computes ``node``."""
        return self._how(node)

    def plan(self, given: Mapping[str, tuple[Shape, DType | None]]) -> Schedule:
        """Returns the plan for variables of these types, where they are not declared.

        Raises:
            UnknownTypeError, ShapeError, DTypeError: Types cannot be inferred, or contradict.
            ArgumentError: Gradients of an output that is not a scalar are requested.
            DisconnectedError, NotDifferentiableError: A gradient does not exist.
        """
        with streaming(self._streaming), rewriting(self._rewriting):
            graph = self._stacked or self._settled(given)
            ends = [*graph.outputs, *self._gradients(graph), *graph.updates.values()]
            joined = join_losses(with_cheap_masks(cheaper(ends)) if self.wrt else ends)
        count = len(ends) - len(graph.updates)
        return Schedule(
            joined[:count],
            [graph.variables[name] for name in self.names],
            self.call_of,
            training=self._training,
            keys=graph.keys,
            updates=dict(zip(graph.updates, joined[count:], strict=True)),
        )

    def _settled(
        self,
        given: Mapping[str, tuple[Shape, DType | None]],
        apart: frozenset[Node] = frozenset(),
    ) -> Specialized:
        settled = specialize(
            self._reopened(given) if self._open and given else self._roots,
            given,
            training=self._training,
            rolling=self._rolling,
            aim=Aim(self._differentiates, self._how is ruled, self._stacking, apart),
            prepare=self.prepare,
        )
        settled = settled._replace(outputs=settled.outputs[len(self._roots) - len(self.outputs) :])
        if self._seals:
            return _over(settled, recomputing.seal(_ends(settled), self._remat))
        return remembering(settled, self._remat)

    def _reopened(self, given: Mapping[str, tuple[Shape, DType | None]]) -> Sequence[Node]:
        """Returns the graph for the lengths of open variables in ``given``.

        Raises:
            ShapeError, DTypeError: An operator does not take the lengths.
        """
        declared = {
            n: one.type.shape for n, one in zip(self.names, self._nodes, strict=True) if one.types
        }
        shapes = {n: given[n][0] for n in sorted(self._open) if n in given and n in declared}
        other = [f"{n} {one} for {declared[n]}" for n, one in shapes.items() if one != declared[n]]
        if not other:
            return self._roots
        try:
            return with_shapes(self._roots, shapes)
        except SymopError as error:
            raise type(error)(
                f"{error}\n  the lengths fed are others than declared ({', '.join(other)}); an "
                "attribute that holds a length must leave it open, as reshape(shape=(-1, 4)) does"
            ) from error.__cause__

    def _gradients(self, settled: Specialized) -> Sequence[Node]:
        if not self.wrt:
            return ()
        loss = settled.outputs[0]
        if loss.type.shape != ():
            raise ArgumentError(
                f"gradient: the loss must be of shape (), got {loss.type.shape}"
                f"{built_at(loss.origin)}"
            )
        # Arguments that the loss does not depend on have a gradient of zero.
        arguments = list(settled.variables.values())
        asked = [settled.variables[name] for name in self.wrt]
        xs = [x for x in asked if x.type.differentiable or not self._inexact_only]
        gradients = known_gradients([loss], xs, [None], "error", arguments, self._remat)
        return [one for one in gradients if one is not None]

    def __call__(self, /, *args: Any, key: Any = None, **arrays: Any) -> Any:
        """Returns the output or a list of outputs; in training, also the updated states by name.

        Raises:
            FeedError: A value does not fit, or a required random key is missing.
        """
        values = self.values(args, arrays)
        schedule = self.schedule(values)
        if schedule.needs_key and key is None:
            raise FeedError("symbol: the graph draws random numbers, so key= must be given")
        outputs, new = schedule(values, None if key is None else random.as_key(key))
        return self.result(self._of_devices(values, outputs), schedule, new)

    def _of_devices(self, values: Sequence[Any], outputs: list[Any]) -> list[Any]:
        """Returns ``outputs`` with gradients sharded over devices like their variables.

        Each device has a loss of its own where the loss varies, also if the gradient does not.
        """
        if not self.wrt:
            return outputs
        arrays, count = dict(zip(self.names, values, strict=True)), len(self.outputs)
        axes, gradients = varying_axes(outputs[0]), iter(outputs[count:])
        typed = [
            None
            if self._inexact_only and not type_of(arrays[name]).differentiable
            else _of_device(next(gradients), arrays[name], axes)
            for name in self.wrt
        ]
        return [*outputs[:count], *typed]

    def result(self, outputs: list[Any], schedule: Schedule, new: Sequence[Any]) -> Any:
        """Returns the result of a call from the outputs and the new values of updated states."""
        shown = outputs[0] if len(outputs) == 1 else outputs
        if not (self._training and self.states):
            return shown
        return shown, {self.names[i]: v for i, v in zip(schedule.updates, new, strict=True)}


def _of_device(gradient: Any, value: Any, axes: frozenset[str]) -> Any:
    if not isinstance(gradient, (jax.Array, np.ndarray)):
        return gradient
    return cotangent_of_type(varied(gradient, axes), jax.typeof(value))


def as_fed(name: str, node: Node, value: Any, *, is_open: bool = False) -> Any:
    """Returns ``value`` as variable ``node`` takes it, converting numbers and lists to arrays.

    If ``is_open``, the first axis may have another length than declared.

    Raises:
        FeedError: The shape or dtype is not the declared one.
    """
    declared: VarType | None = node.types[0] if node.types is not None else None
    if isinstance(value, (bool, int, float, complex, list, tuple)):
        value = _converted(name, declared.dtype if declared else node.attributes[1], value)
    elif isinstance(value, Symbolic) or not (hasattr(value, "shape") and hasattr(value, "dtype")):
        composes = "; replace() composes graphs" if isinstance(value, Symbolic) else ""
        raise FeedError(
            f"{name}: an array, a number or a list must be fed, got {type(value).__name__}"
            f"{composes}"
        )
    if declared is None:
        return value
    kind = VarKind.SELECTED_ROWS if isinstance(value, SelectedRows) else VarKind.LOD_TENSOR
    if kind is not declared.kind:
        rows = declared.kind is VarKind.SELECTED_ROWS
        form = value.type if isinstance(value, SelectedRows) else f"shape {tuple(value.shape)}"
        raise FeedError(f"{name}: {'rows' if rows else 'a dense array'} must be fed, got {form}")
    first = 1 if is_open and value.ndim == declared.ndim else 0
    if tuple(value.shape)[first:] != declared.shape[first:]:
        raise FeedError(
            f"{name}: an array of shape {declared.shape} must be fed, got {tuple(value.shape)}"
        )
    got = np.dtype(jax.dtypes.canonicalize_dtype(value.dtype))
    if got != declared.dtype:
        raise FeedError(
            f"{name}: an array of dtype {declared.dtype.name} must be fed, got {got.name}; "
            f"np.asarray(..., {declared.dtype.name!r}) converts"
        )
    return value


def _converted(name: str, dtype: DType | None, value: Any) -> Any:
    try:
        if dtype is not None:
            require_whole(name, dtype, np.asarray(value))
        return jnp.asarray(value, dtype)
    except FeedError:
        raise
    except jax.errors.TracerArrayConversionError:
        return jnp.asarray(value, dtype)
    except OverflowError as error:
        raise FeedError(f"{name}: numbers must fit the dtype, got {value!r}") from error
    except (TypeError, ValueError):
        raise FeedError(f"{name}: numbers must be fed, got {value!r}") from None


def require_whole(name: str, dtype: DType, value: np.ndarray) -> None:
    """Checks that an integer dtype can hold the numbers exactly.

    Raises:
        FeedError: The numbers are not integers, or are out of range.
    """
    if not is_integer(dtype) or not value.size or value.dtype == dtype:
        return
    least, most = integer_limits(dtype)
    if is_integer(value.dtype):
        # Read as unsigned, negative numbers are large, so one pass suffices in most cases.
        bits = value.view(f"u{value.dtype.itemsize}")
        if bits.item(bits.argmax()) <= most:
            return
    if not is_exact(value.dtype):
        raise FeedError(f"{name}: whole numbers must be fed, got {value.dtype.name}")
    if not is_boolean(value.dtype) and not least <= value.min() <= value.max() <= most:
        raise FeedError(
            f"{name}: numbers must fit {dtype.name}, got {value.min()} to {value.max()}"
        )


# Compiled functions of graphs ------------------------------------------------------------------


def evaluate(
    outputs: Sequence[Node], also: Sequence[Node], arrays: Mapping[str, Any], *, training: bool
) -> Any:
    """Runs a graph, compiled once for each structure and types, drawing from the global seed."""
    if any(isinstance(value, jax.core.Tracer) for value in arrays.values()):
        return GraphFunction(outputs, also, training=training)(**arrays)
    function, compiled = _compiled(tuple(outputs), tuple(also), training=training)
    values = function.values((), arrays)
    schedule = function.schedule(values)
    root, offset = random.draw(schedule.draws) if schedule.draws else (None, 0)
    result, new = compiled(values, root, offset)
    return function.result(result, schedule, new)


def _compiled(
    outputs: tuple[Node, ...], also: tuple[Node, ...], *, training: bool
) -> tuple[GraphFunction, Function]:
    """Returns the compiled function, cached on the newest output so that it dies with the graph.

    An older output may survive in other graphs and would keep every function compiled with it.
    """
    newest = max(outputs, key=lambda node: node.serial)
    if newest.memo is None:
        newest.memo = {}
    memo = newest.memo
    key = (outputs, also, training, is_rolling(), is_streaming(), is_rewriting())
    entry = memo.get(key)
    if entry is None:
        function = GraphFunction(outputs, also, training=training, rules=False)
        entry = memo[key] = (function, _jitted(function))
    pair: tuple[GraphFunction, Function] = entry
    return pair


def _jitted(function: GraphFunction) -> Function:
    def run(values: list[Any], root: Any, offset: Any) -> tuple[list[Any], list[Any]]:
        return function.schedule(values)(values, root, offset)

    compiled: Function = jax.jit(run)
    return compiled
