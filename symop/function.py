"""A graph as a pure JAX function: what is fed is checked, and plans are made once for its types."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, FeedError
from registry.operator import Operator
from registry.types import DType, Shape, VarType
from registry.values import SelectedRows
from symop import random, recomputing
from symop.emission import image_of, images
from symop.gradients import known_gradients
from symop.graph import (
    TRAINING,
    Node,
    built_at,
    by_age,
    constant,
    contains_gradient,
    leaves,
    topological,
)
from symop.inference import typed
from symop.lowering import Call, Schedule, bare, is_native, random_keys, type_of
from symop.naming import require_known, variables_among
from symop.policies import Policy
from symop.repeats.loops import FORWARD, Aim
from symop.repeats.rolling import Rolled, rolled
from symop.repeats.stacks import Stacked, Stacks, stacked
from symop.repeats.switch import is_rolling
from symop.rules import with_rule
from symop.states import explicit

Function = Callable[..., Any]


class Settled(NamedTuple):
    """A graph with all types known and the training flag fixed.

    Attributes:
        outputs: its values, over loops where it repeats itself.
        variables: its variables by name.
        keys: its random keys in the order in which they are numbered.
        updates: the new values of the variables that it updates.
        stacks: names of the variables that are stacked in another one, by its name.
    """

    outputs: list[Node]
    variables: dict[str, Node]
    keys: list[Node]
    updates: dict[Node, Node]
    stacks: Stacks


def settle(
    outputs: Sequence[Node],
    given: Mapping[str, tuple[Shape, DType | None]],
    *,
    training: bool,
    rolling: bool,
    aim: Aim = FORWARD,
    log: list[Rolled] | None = None,
) -> Settled:
    """``outputs`` with types filled in from ``given`` and the training flag fixed.

    If ``rolling``, repeated blocks become loops for that ``aim``; ``log`` is told of them.

    Raises:
        UnknownTypeError, ShapeError, DTypeError: the types do not follow, or contradict.
    """
    of_types = typed(outputs, given)
    reached = topological(of_types)
    variables, order = variables_among(reached), by_age(reached)
    flags = dict.fromkeys(leaves(order, TRAINING), constant(training))
    fixed = order
    if flags:
        image = images(of_types, flags)
        fixed = [one for node in order if isinstance(one := image[node], Node)]
        of_types = [image_of(image, one) for one in of_types]
    found = explicit(of_types, fixed)
    ends = [*found.outputs, *found.updates.values()]
    if rolling:
        ends = rolled(ends, found.order, aim=aim, log=log)
    count = len(found.outputs)
    updates = dict(zip(found.updates, ends[count:], strict=True))
    return Settled(ends[:count], variables, random_keys(order), updates, {})


def over_stacks(
    settled: Callable[[frozenset[Node]], Settled],
    allows: Callable[[tuple[str, ...]], bool] = bool,
) -> Settled:
    """A graph over one variable for each stack of variables that nothing else reads.

    Variables of which a loop reads one in each step give way to a variable that holds them all, if
    ``allows`` says so of their names.

    Args:
        settled: the graph, of whose variables some are not to be stacked.
        allows: whether variables of these names may be.
    """
    apart: frozenset[Node] = frozenset()
    while True:
        found = settled(apart)
        made = stacked(found.outputs, found.updates, allows, apart, found.variables)
        if made.apart <= apart:
            return _renamed(found, made)
        apart |= made.apart  # loops that counted on their being stacked may not be worth it


def _renamed(settled: Settled, made: Stacked) -> Settled:
    """``settled`` with the outputs of ``made``, and stacks in the place of what lies in them."""
    owner = {one: stack for stack, members in made.stacks.items() for one in members}
    variables: dict[str, Node] = {}
    for name, node in settled.variables.items():
        one = owner.get(node)
        variables[name if one is None else str(one.name)] = node if one is None else one
    names = {
        str(stack.name): tuple(str(one.name) for one in members)
        for stack, members in made.stacks.items()
    }
    return Settled(made.outputs, variables, settled.keys, made.updates, names)


def rolls(remat: Policy | None) -> bool:
    """Whether repeated blocks become loops where gradients keep what ``remat`` says."""
    return is_rolling() and (remat is None or remat.rolls)


def owners_of(stacks: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The stack of each variable that lies in one."""
    return {one: stack for stack, members in stacks.items() for one in members}


def remembering(settled: Settled, remat: Policy | None) -> Settled:
    """The same graph, each step of whose loops keeps for a gradient what ``remat`` says."""
    return _over(settled, recomputing.chosen(_ends(settled), remat))


def _ends(settled: Settled) -> list[Node]:
    return [*settled.outputs, *settled.updates.values()]


def _over(settled: Settled, ends: Sequence[Node]) -> Settled:
    count = len(settled.outputs)
    updates = dict(zip(settled.updates, ends[count:], strict=True))
    return settled._replace(outputs=list(ends[:count]), updates=updates)


def _with_rules(node: Node) -> Call:
    assert isinstance(node.op, Operator)
    return with_rule(node.op, node.attributes)


def bare_where_native(node: Node) -> Call:
    """The bare kernel, unless JAX's derivative of it is not the one that the operator declares."""
    assert isinstance(node.op, Operator)
    return bare(node) if is_native(node) else with_rule(node.op, node.attributes)


class GraphFunction:
    """The function that a graph is, on JAX values; it traces under every JAX transformation.

    Attributes:
        arguments: names of the variables, in the order of positional values.
        states: names of the auxiliary states, which follow them.
        stacks: for each of these that is a stack the names of the variables in it.
        wrt: names of those whose gradients follow the outputs.
    """

    def __init__(
        self,
        outputs: Sequence[Node],
        also: Sequence[Node] = (),
        *,
        training: bool = False,
        rules: bool | None = None,
        wrt: Sequence[str] = (),
        stacking: bool = False,
        remat: Policy | None = None,
    ) -> None:
        """A function of the variables that ``outputs`` need and of those in ``also``.

        With ``rules`` None, a graph that contains its gradient already gets bare kernels. Behind
        the outputs come the gradients of the first one by the arguments that ``wrt`` names, or
        by the stacks in which these lie. They, or else those that JAX takes, keep what ``remat``
        says.

        If ``stacking``, variables of which a loop reads one in each step give way to stacks of
        them; the types of all variables must be known.

        Raises:
            ArgumentError: JAX would differentiate the kernels, and keep what it likes.
        """
        self.outputs = tuple(outputs)
        self._roots = (*also, *outputs)
        self._training, self._stacking, self._remat = training, stacking, remat
        self._rolling = rolls(remat)
        if remat is not None and rules is False:
            raise ArgumentError("to_jax: remat must go with gradient makers, got rules=False")
        order = topological(self._roots)
        self._differentiates = bool(wrt)
        has_gradient = self._differentiates or contains_gradient(order)
        keeps = remat is not None and not wrt  # for JAX, which needs rules
        bare_kernels = has_gradient and not keeps if rules is None else not rules
        self._seals = not bare_kernels
        self._how = bare_where_native if bare_kernels else _with_rules
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
        self._typed = all(node.types is not None for node in order)
        self._schedules: dict[Any, Schedule] = {}

    def values(self, args: Sequence[Any], arrays: Mapping[str, Any]) -> list[Any]:
        """One value for each variable, converted and checked.

        Raises:
            FeedError: one is missing, superfluous, or of the wrong shape or dtype.
        """
        if len(args) > len(self.names):
            raise FeedError(
                f"symbol: at most {len(self.names)} arrays must be given "
                f"({', '.join(self.names)}), got {len(args)}"
            )
        if arrays:
            require_known("symbol", arrays, self.names)
        given = dict(zip(self.names, args, strict=False))
        twice = [name for name in arrays if name in given]
        if twice:
            raise FeedError(f"symbol: {twice[0]!r} must be given once, got it twice")
        given.update(arrays)
        missing = [name for name in self.names if name not in given]
        if missing:
            raise FeedError(
                f"symbol: {', '.join(self.names)} must be given, got no {', '.join(missing)}"
            )
        return [
            fed(name, node, given[name]) for name, node in zip(self.names, self._nodes, strict=True)
        ]

    def schedule(self, values: Sequence[Any]) -> Schedule:
        """The plan for values of these types, made once."""
        key = None if self._typed else tuple(type_of(value).strong() for value in values)
        found = self._schedules.get(key)
        if found is None:
            pairs = () if self._typed else zip(self.names, values, strict=True)
            types = {name: (tuple(jnp.shape(v)), type_of(v).dtype) for name, v in pairs}
            found = self._schedules[key] = self.plan(types)
        return found

    def plan(self, given: Mapping[str, tuple[Shape, DType | None]]) -> Schedule:
        """The plan for variables of these types, where they are not declared.

        Raises:
            UnknownTypeError, ShapeError, DTypeError: the types do not follow, or contradict.
            ArgumentError: gradients are wanted of what is no scalar.
            DisconnectedError, NotDifferentiableError: there is no gradient.
        """
        found = self._stacked or self._settled(given)
        return Schedule(
            [*found.outputs, *self._gradients(found)],
            [found.variables[name] for name in self.names],
            self._how,
            training=self._training,
            keys=found.keys,
            updates=found.updates,
        )

    def _settled(
        self,
        given: Mapping[str, tuple[Shape, DType | None]],
        apart: frozenset[Node] = frozenset(),
    ) -> Settled:
        found = settle(
            self._roots,
            given,
            training=self._training,
            rolling=self._rolling,
            aim=Aim(self._differentiates, self._how is _with_rules, self._stacking, apart),
        )
        found = found._replace(outputs=found.outputs[len(self._roots) - len(self.outputs) :])
        if self._seals:
            return _over(found, recomputing.sealed(_ends(found), self._remat))
        return remembering(found, self._remat)

    def _gradients(self, found: Settled) -> Sequence[Node]:
        if not self.wrt:
            return ()
        loss = found.outputs[0]
        if loss.type.shape != ():
            raise ArgumentError(
                f"gradient: the loss must be of shape (), got {loss.type.shape}"
                f"{built_at(loss.origin)}"
            )
        # What the loss lists among its arguments, but does not need, has a gradient of zero.
        arguments = list(found.variables.values())
        xs = [found.variables[name] for name in self.wrt]
        gradients = known_gradients([loss], xs, [None], "error", arguments, self._remat)
        return [one for one in gradients if one is not None]

    def __call__(self, *args: Any, key: Any = None, **arrays: Any) -> Any:
        """The outputs: one value, or a list; when training updates states, also their values.

        Raises:
            FeedError: what is fed does not fit, or a random key is needed and missing.
        """
        values = self.values(args, arrays)
        schedule = self.schedule(values)
        if schedule.needs_key and key is None:
            raise FeedError("symbol: the graph draws random numbers, so key= must be given")
        outputs, new = schedule(values, None if key is None else random.as_key(key))
        return self.result(outputs, schedule, new)

    def result(self, outputs: list[Any], schedule: Schedule, new: Sequence[Any]) -> Any:
        """What a call returns for the outputs and the new values of updated states."""
        shown = outputs[0] if len(outputs) == 1 else outputs
        if not (self._training and self.states):
            return shown
        return shown, {self.names[i]: v for i, v in zip(schedule.updates, new, strict=True)}


def fed(name: str, node: Node, value: Any) -> Any:
    """``value`` as variable ``node`` takes it: numbers and lists become arrays of its dtype.

    Raises:
        FeedError: the shape or dtype is not the declared one.
    """
    declared: VarType | None = node.types[0] if node.types is not None else None
    if isinstance(value, (bool, int, float, complex, list, tuple)):
        value = _converted(name, declared.dtype if declared else node.attributes[1], value)
    elif not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise FeedError(
            f"{name}: an array, a number or a list must be fed, got {type(value).__name__}"
        )
    if declared is None:
        return value
    if isinstance(value, SelectedRows):
        raise FeedError(f"{name}: a dense array must be fed, got {value.type}")
    if tuple(value.shape) != declared.shape:
        raise FeedError(
            f"{name}: an array of shape {declared.shape} must be fed, got {tuple(value.shape)}"
        )
    got = np.dtype(jax.dtypes.canonicalize_dtype(value.dtype))
    if got != declared.dtype:
        raise FeedError(
            f"{name}: an array of dtype {declared.dtype.name} must be fed, got {got.name}"
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
    except (TypeError, ValueError) as error:
        raise FeedError(f"{name}: numbers must be fed, got {value!r}") from error


def require_whole(name: str, dtype: DType, value: np.ndarray) -> None:
    """Refuse numbers that an integer dtype would cut off.

    Raises:
        FeedError: they are fractions, or too large.
    """
    if dtype.kind not in "iu" or not value.size or value.dtype == dtype:
        return
    if value.dtype.kind not in "biu":
        raise FeedError(f"{name}: whole numbers must be fed, got {value.dtype.name}")
    bounds = np.iinfo(dtype)
    if value.dtype.kind != "b" and not bounds.min <= value.min() <= value.max() <= bounds.max:
        raise FeedError(
            f"{name}: numbers must fit {dtype.name}, got {value.min()} to {value.max()}"
        )


# One function for each graph -------------------------------------------------------------------


def evaluate(
    outputs: Sequence[Node], also: Sequence[Node], arrays: Mapping[str, Any], *, training: bool
) -> Any:
    """Run a graph, compiled once for each structure and types, drawing from the global seed."""
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
    """The compiled function, kept by the newest output: it is gone when the graph is gone.

    An older output may live on in other graphs, and would keep all that was compiled with it.
    """
    newest = max(outputs, key=lambda node: node.serial)
    if newest.memo is None:
        newest.memo = {}
    memo = newest.memo
    key = (outputs, also, training, is_rolling())
    found = memo.get(key)
    if found is None:
        function = GraphFunction(outputs, also, training=training, rules=False)
        found = memo[key] = (function, _jitted(function))
    pair: tuple[GraphFunction, Function] = found
    return pair


def _jitted(function: GraphFunction) -> Function:
    def run(values: list[Any], root: Any, offset: Any) -> tuple[list[Any], list[Any]]:
        return function.schedule(values)(values, root, offset)

    compiled: Function = jax.jit(run)
    return compiled
