"""Executors: graphs bound to arrays, with forward and backward passes.

Binding builds the gradient graph once and splits it where the cotangents enter: the forward half
returns the outputs and the residuals that the backward half reads. Each half is compiled.
"""

import functools
import weakref
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp

from registry.errors import ArgumentError, BusyError, FeedError, GradientError
from registry.operator.operator import Operator
from registry.tracebacks import api_class
from registry.types import KEY_TYPE, DType, OpReqType, VarKind, VarType
from symop import random
from symop.autodiff.gradients import typed_grad
from symop.graph.naming import names_of, output_name, require_known, variables_of
from symop.graph.nodes import (
    CONSTANT,
    VARIABLE,
    Node,
    placeholder,
    reaching,
    residuals,
    topological,
)
from symop.graph.policies import Policy
from symop.lowering.rules import bare_where_native
from symop.lowering.steps import Call, Schedule
from symop.passes.roll_loops.loops import Aim
from symop.runtime.array_store import Held, Seen, arrays_of, held_by, replace, whole
from symop.runtime.donation import DonatingStep
from symop.runtime.function import (
    Specialized,
    as_fed,
    over_stacks,
    remembering,
    rolls,
    specialize,
)
from symop.runtime.memory import is_alive, memory_of
from symop.runtime.placement import Placement, constrained_by, current
from symop.xla.compiling import quick_options, thread_settings
from symop.xla.draft_runs import has_known_dtype
from symop.xla.drafts import has_new_types, jitted, may_draft

GradReq = Literal["null", "write", "write_inplace", "add"] | OpReqType
"""The action of ``backward`` on a gradient: none, replace the old one, or add to it.

In-place writing reuses the memory of the old gradient, which is donated and must not be used again.
"""
_REQUESTS = tuple(one.value for one in OpReqType)


class _Forward(NamedTuple):
    """The state that a forward pass for training leaves for the backward pass, and nothing else."""

    variables: list[Any]
    residuals: list[Any]


class _Pass(NamedTuple):
    """A pass for prediction, so that it can be repeated with residuals."""

    values: list[Any]
    root: Any
    offset: Any


class Settings(NamedTuple):
    """How an executor computes and holds its arrays.

    Attributes:
        remat: The residuals that a forward pass keeps; None for all that ``backward`` reads.
        stacked: Whether arrays that a loop reads one per step are held as one array.
        placement: The mesh that holds the arrays; None for one device.
    """

    remat: Policy | None = None
    stacked: bool = False
    placement: Placement | None = None


_DEFAULT = Settings()


@api_class
class Executor:
    """A symbol bound to arrays.

    Attributes:
        arg_dict: The arrays of the arguments, by name.
        grad_dict: The gradients computed by ``backward``, by name; zeros before.
        aux_dict: The arrays of the auxiliary states, by name.
        outputs: The outputs of the last ``forward``.

    A pickle contains all of these; after unpickling, ``backward`` needs a new forward pass.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> executor = so.sin(x).bind({"x": [0.0, 0.0]})
        >>> executor.forward(is_train=True)[0].tolist()
        [0.0, 0.0]
        >>> executor.backward()
        >>> executor.grad_dict["x"].tolist()
        [1.0, 1.0]
    """

    def __init__(
        self,
        outputs: Sequence[Node],
        also: Sequence[Node],
        arguments: Mapping[str, Any],
        states: Mapping[str, Any],
        grad_req: "GradReq | Mapping[str, GradReq] | Sequence[GradReq]" = "write",
        gradients: Mapping[str, Any] | None = None,
        settings: Settings = _DEFAULT,
    ) -> None:
        """Binds ``outputs`` to arrays; users call ``Symbol.bind`` or ``Symbol.simple_bind``."""
        names = names_of(topological(outputs))
        self.output_names = [output_name(node, names) for node in outputs]
        variables = variables_of([*also, *outputs])
        self._placement = settings.placement
        placed = self._placed(_arrays(variables, "argument", arguments))
        known = self._placed(_arrays(variables, "state", states))
        self.outputs: list[Any] = []
        types = {
            name: (tuple(array.shape), array.dtype) for name, array in {**placed, **known}.items()
        }
        self._requests = _requests(variables, grad_req, types)
        asked = {name: self._requests[name] for name in placed}
        self.bound = bound = _Bound(outputs, also, types, asked, *settings)
        stacking = self._may_stack if settings.stacked else _never
        trained = _mode(bound, training=True, stacking=stacking)
        stacks = trained.settled.stacks
        if settings.placement is not None:
            settings.placement.include(stacks)
        as_trained = set(stacks.values()).__contains__ if stacks else _never
        predicted = _mode(bound, training=False, stacking=as_trained)
        self._modes = {True: trained, False: predicted}
        self._variables = trained.variables
        self._requests.update(
            (name, self._requests.get(one[0], "null")) for name, one in stacks.items()
        )
        self.arg_dict: Held = held_by(placed, stacks)
        self.aux_dict: Held = held_by(known, stacks)
        gradients = self._placed(self._initial_gradients(gradients))
        self.grad_dict: Held = held_by(gradients, stacks)
        self._seen = Seen()
        for own in (self.arg_dict, self.aux_dict):
            self._seen.trust(own, own)
        self._kept: _Forward | None = None
        self._trained = False
        self._predicted: _Pass | None = None
        self._mode = trained

    def _placed(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Returns arrays on the devices of the mesh, if there is one."""
        if self._placement is None:
            return dict(arrays)
        return self._placement.put_all(arrays)

    def _may_stack(self, names: tuple[str, ...]) -> bool:
        """Whether all gradients of a stack have the same request."""
        return len({self._requests.get(name) for name in names}) == 1

    def _initial_gradients(self, arrays: Mapping[str, Any] | None) -> dict[str, Any]:
        wanted = [name for name in self.arg_dict if self._requests[name] != "null"]
        require_known("bind", arrays or {}, list(self._requests))
        gradients = {}
        for name in wanted:
            argument, start = self.arg_dict[name], (arrays or {}).get(name)
            if start is None:
                gradients[name] = jnp.zeros_like(argument)
                continue
            array = jnp.asarray(start)
            if array.shape != argument.shape:
                raise FeedError(
                    f"bind: the gradient of {name!r} must be of shape {argument.shape}, "
                    f"got {array.shape}"
                )
            gradients[name] = array.astype(argument.dtype)
        return gradients

    def forward(self, is_train: bool = False, **arrays: Any) -> list[Any]:
        """Computes the outputs, after replacing arguments with ``arrays``.

        With ``is_train``, operators behave as in training, most of those with auxiliary states
        update them, and ``backward`` may follow.

        Raises:
            FeedError: An array has no variable, or not the shape and dtype it was bound with.
        """
        self._feed(arrays)
        mode = self._modes[bool(is_train)]
        root, offset = random.draw(mode.draws) if mode.draws else (None, 0)
        values = self._values(mode)
        if is_train and self._wanted():
            half = mode.half(self._wanted())
            with current(self._placement):
                outputs, residuals, new = half.forward(values, root, offset)
            kept = _Forward([values[i] for i in half.kept], residuals)
        else:
            with current(self._placement):
                outputs, new = mode.run(values, root, offset)
            kept = None
        self._predicted = None if is_train else _Pass(values, root, offset)
        if self._placement is not None:
            self._placement.finished(outputs)
        self._update(dict(zip(mode.updated, new, strict=True)))
        self.outputs, self._kept, self._trained = outputs, kept, bool(is_train)
        self._mode = mode
        return self.outputs

    def repeat_with_residuals(self) -> None:
        """Lets ``backward`` follow a forward pass without ``is_train``, whose gradients it gives.

        The last pass is repeated with the values and the random numbers that it had. There is no
        effect after a pass for training.

        Raises:
            GradientError: No forward pass precedes.
        """
        if self._predicted is None:
            if not self._trained:
                raise GradientError("backward: forward must come first, got none")
            return
        if self._kept is None and self._wanted():
            half, residuals = self._mode.half(self._wanted()), []
            if half.carried:
                with current(self._placement):
                    _, residuals, _ = half.forward(*self._predicted)
            self._kept = _Forward([self._predicted.values[i] for i in half.kept], residuals)
        self._trained = True

    def residual_types(self) -> list[VarType]:
        """Returns the types of the values that a pass for training keeps for ``backward``."""
        wanted = self._wanted()
        return [node.type for node in self._modes[True].half(wanted).carried] if wanted else []

    @property
    def is_drafted(self) -> bool:
        """Whether the first passes for training run programs that are compiled as drafts."""
        return self._modes[True].is_drafted

    def read_cotangents(self) -> list[bool]:
        """Returns for each output whether its cotangent changes a gradient.

        Those of loss layers do not.
        """
        mode, wanted = self._mode, self._wanted()
        if not wanted:
            return [False] * len(mode.settled.outputs)
        read = dict(zip(mode.differentiable, mode.half(wanted).read, strict=True))
        return [read.get(i, False) for i in range(len(mode.settled.outputs))]

    def backward(self, out_grads: Any = None) -> None:
        """Computes gradients into ``grad_dict``, according to each argument's request.

        Args:
            out_grads: The cotangents of the outputs: one array for a single output, or a list. By
                default all are ones, which gives the gradients of the sum of all outputs.

        Raises:
            GradientError: No forward pass for training precedes.
            FeedError: A cotangent has the wrong shape or is missing.
        """
        if not self._trained:
            raise GradientError("backward: forward(is_train=True) must come first, got none")
        if self._kept is None:
            return
        with current(self._placement):
            self._backward(out_grads)
        if self._placement is not None:
            self._placement.finished(arrays_of(self.grad_dict))

    def _backward(self, out_grads: Any) -> None:
        assert self._kept is not None
        mode = self._mode
        wanted = self._wanted()
        heads = self._heads(out_grads, mode)
        half, spent = mode.half(wanted), self._spent(heads)
        sums = self._placed(
            {name: whole(self.grad_dict, name) for name in wanted if self._requests[name] == "add"}
        )
        old = [sums.get(name) for name in wanted]
        if spent is None:
            gradients = half.backward(*self._kept, heads)
            pairs = zip(old, gradients, strict=True)
            new = [one if before is None else before + one for before, one in pairs]
            replace(self.grad_dict, wanted, new)
            return

        def store(results: Iterator[Any]) -> None:
            replace(self.grad_dict, wanted, chain.from_iterable(results))

        try:
            half.backward_over(store, spent, old, *self._kept, heads)
        except Exception as error:
            if all(map(is_alive, spent)):
                raise
            raise BusyError(
                "backward: the gradients must not change during the call, got a change by "
                "a signal handler or another thread"
            ) from error

    def _wanted(self) -> tuple[str, ...]:
        names = self._modes[True].names
        return tuple(name for name in names if self._requests.get(name, "null") != "null")

    def _spent(self, heads: Sequence[Any]) -> list[Any] | None:
        """Returns the old gradients whose memory is reused, or None if no request asks for that.

        Gradients that are also held elsewhere, or whose memory cannot be reused, are left out,
        since users may have put any array there.
        """
        names = [name for name, one in self._requests.items() if one == OpReqType.WRITE_INPLACE]
        if not names:
            return None
        kept = self._kept or _Forward([], [])
        held = [*kept.variables, *kept.residuals, *heads, *self.outputs]
        for one in (self.arg_dict, self.aux_dict, self.grad_dict):
            held += arrays_of(one)
        uses = Counter(memory_of(one) for one in held if is_alive(one))
        trained = self._modes[True]
        there = {*self.grad_dict, *trained.settled.stacks}
        wanted = [name for name in names if name in trained.names and name in there]
        old = [(whole(self.grad_dict, name), whole(self.arg_dict, name)) for name in wanted]
        return [one for one, like in old if _serves(one, like) and uses[memory_of(one)] == 1]

    def _heads(self, cotangents: Any, mode: "_Mode") -> list[Any]:
        if cotangents is None:
            return mode.ones
        types = [mode.settled.outputs[i].type for i in mode.differentiable]
        listed = list(cotangents) if isinstance(cotangents, (list, tuple)) else [cotangents]
        if len(listed) == len(mode.settled.outputs):
            listed = [listed[i] for i in mode.differentiable]
        if len(listed) != len(types):
            raise FeedError(
                f"backward: out_grads must be one for each output ({len(types)}), got {len(listed)}"
            )
        heads = [
            _head(i, type, one) for i, (type, one) in enumerate(zip(types, listed, strict=True))
        ]
        if self._placement is None:
            return heads
        outputs = [self.outputs[i] for i in mode.differentiable]
        return [
            self._placement.moved(one, output.sharding)
            for one, output in zip(heads, outputs, strict=True)
        ]

    def _feed(self, arrays: Mapping[str, Any]) -> None:
        require_known("forward", arrays, list(self._variables))
        checked = {name: as_fed(name, self._variables[name], one) for name, one in arrays.items()}
        if self._placement is None:
            self._update({name: _array(one) for name, one in checked.items()})
        else:
            self._update(self._placed(checked))

    def _update(self, arrays: Mapping[str, Any]) -> None:
        """Stores arrays of the declared types, by the names of variables or stacks."""
        for own, mine in ((self.arg_dict, True), (self.aux_dict, False)):
            names = [name for name in arrays if (name in self.arg_dict) == mine]
            if names:
                replace(own, names, [arrays[name] for name in names])
                self._seen.trust(own, [name for name in names if name in own])

    def _values(self, mode: "_Mode") -> list[Any]:
        """Returns the stored arrays in the order of the variables, checking those set by users.

        Raises:
            FeedError: An array is missing, unexpected, or not of the bound shape and dtype.
        """
        held = {*self.arg_dict, *self.aux_dict}
        if held != self._variables.keys():
            require_known("forward", held, list(self._variables))
            missing = [name for name in self._variables if name not in held]
            raise FeedError(f"forward: an array must be held for each of {', '.join(missing)}")
        for own in (self.arg_dict, self.aux_dict):
            self._feed({name: own[name] for name in self._seen.new(own)})
        count = mode.n_arguments
        names = mode.names
        if self._placement is not None:
            self._place_stacks(self._placement, names[:count])
        return [
            *[whole(self.arg_dict, name) for name in names[:count]],
            *[whole(self.aux_dict, name) for name in names[count:]],
        ]

    def _place_stacks(self, placement: Placement, arguments: Collection[str]) -> None:
        """Puts stacks on the mesh: where XLA puts a new one follows from no declaration."""
        for name in self._modes[True].settled.stacks:
            own = self.arg_dict if name in arguments else self.aux_dict
            array = whole(own, name)
            if not placement.has(name, array):
                replace(own, [name], [placement.put(repr(name), name, array)])

    @property
    def output_dict(self) -> dict[str, Any]:
        """The outputs of the last ``forward``, by name."""
        return dict(zip(self.output_names, self.outputs, strict=False))

    def copy_params_from(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any] | None = None,
        *,
        allow_extra_params: bool = False,
    ) -> None:
        """Replaces arguments and auxiliary states by name.

        Raises:
            FeedError: A name is unknown (unless ``allow_extra_params``) or a shape does not fit.
        """
        params = {**arg_params, **(aux_params or {})}
        if allow_extra_params:
            params = {name: one for name, one in params.items() if name in self._variables}
        self._feed(params)


class _Bound(NamedTuple):
    """The arguments of a binding: the graph, its variables' types, and the policy of gradients."""

    outputs: Sequence[Node]
    also: Sequence[Node]
    types: Mapping[str, Any]
    requests: Mapping[str, GradReq]
    remat: Policy | None
    stacked: bool
    placement: Placement | None


def _never(names: tuple[str, ...]) -> bool:
    """Returns False: nothing is stacked."""
    return not names


class _Mode:
    """The graph for training or for prediction, compiled on first use."""

    def __init__(
        self, bound: _Bound, *, training: bool, stacking: Callable[[tuple[str, ...]], bool]
    ) -> None:
        aim = Aim(residuals=training, stacking=stacking is not _never)
        self.training, self.remat, self.placement = training, bound.remat, bound.placement
        self.variables: dict[str, Node] = {}
        self.settled = over_stacks(
            lambda apart: self._settled(bound, aim._replace(apart=apart)), stacking
        )
        variables = self.settled.variables
        roles = {name: node.attributes[2] for name, node in variables.items()}
        self.names = [n for n in variables if roles[n] == "argument"]
        self.n_arguments = len(self.names)
        self.names += [n for n in variables if roles[n] == "state"]
        self.order = [variables[name] for name in self.names]
        self.draws = len(self.settled.keys)
        self.differentiable = [
            i for i, node in enumerate(self.settled.outputs) if node.type.differentiable
        ]
        self._plan = self.plan(self.settled.outputs, self.order, updating=True)
        self.updated = [self.names[i] for i in self._plan.updates]
        self.quick, self.is_drafted = thread_settings.quick, self._is_drafted(bound)
        self._halves: dict[tuple[str, ...], _Halves] = {}

    def _is_drafted(self, bound: _Bound) -> bool:
        """Whether the first runs of its programs are those of drafts."""
        if self.placement is not None or not may_draft():
            return False
        nodes = [*self.order, *topological(self.settled.outputs, until=self.order)]
        if not all(has_known_dtype(one) for node in nodes for one in node.types or ()):
            return False
        graph, types = topological([*bound.also, *bound.outputs]), frozenset(bound.types.items())
        return has_new_types(graph, types, training=self.training)

    def _settled(self, bound: _Bound, aim: Aim) -> Specialized:
        settled = specialize(
            [*bound.also, *bound.outputs],
            bound.types,
            training=self.training,
            rolling=rolls(bound.remat),
            aim=aim,
        )
        self.variables = settled.variables
        settled = settled._replace(outputs=settled.outputs[len(bound.also) :])
        return remembering(settled, bound.remat)

    @functools.cached_property
    def run(self) -> Call:
        """Computes the outputs and the new values of states, compiled."""
        return self.compiled(self.placing(self._plan), self.settled.outputs, self.order)

    def plan(
        self, outputs: Sequence[Node], variables: Sequence[Node], *, updating: bool
    ) -> Schedule:
        """Plans values of this graph and, if ``updating``, the new values of its states."""
        return Schedule(
            outputs,
            variables,
            bare_where_native,
            training=self.training,
            keys=self.settled.keys,
            updates=self.settled.updates if updating else None,
        )

    def compiled(self, function: Call, outputs: Sequence[Node], variables: Sequence[Node]) -> Call:
        """Returns a function that computes ``outputs`` from ``variables``, compiled.

        It is compiled quickly if it is small, and as a draft at first if its shapes are new.
        """
        quick = self.quick and self.placement is None
        options = self._quick_options(outputs, variables) if quick else None
        return jitted(function, options, draft=self.is_drafted)

    def _quick_options(
        self, outputs: Sequence[Node], variables: Sequence[Node]
    ) -> dict[str, Any] | None:
        ends = [*outputs, *self.settled.updates.values()]
        nodes = [*variables, *topological(ends, until=variables)]
        types = [one for node in nodes for one in node.types or ()]
        return quick_options(sum(isinstance(node.op, Operator) for node in nodes), types)

    def placing(self, schedule: Schedule) -> Call:
        """Returns the function of ``schedule``, whose new states are split as declared."""
        names = [self.names[i] for i in schedule.updates]

        def run(*args: Any) -> Any:
            results, new = schedule(*args)
            return results, constrained_by(self.placement, names, new)

        return run if self.placement is not None else schedule.__call__

    @functools.cached_property
    def ones(self) -> list[Any]:
        """The default cotangents, which give the gradients of the sum of all outputs."""
        types = [self.settled.outputs[i].type for i in self.differentiable]
        return [jnp.ones(type.shape, type.dtype) for type in types]

    def half(self, wanted: tuple[str, ...]) -> "_Halves":
        """Returns the two halves of the gradient graph with respect to ``wanted``."""
        result = self._halves.get(wanted)
        if result is None:
            result = self._halves[wanted] = _Halves(self, wanted)
        return result


_modes: "weakref.WeakValueDictionary[Any, _Mode]" = weakref.WeakValueDictionary()
"""Modes by what determines them: executors of equal graphs and types share what is compiled."""
_recent: deque[_Mode] = deque(maxlen=16)
"""The last modes that an executor was bound to, kept for a next executor of the same graph."""


def _mode(bound: _Bound, *, training: bool, stacking: Callable[[tuple[str, ...]], bool]) -> _Mode:
    """Returns a mode, if possible that of another executor."""
    if stacking is not _never or bound.placement is not None or bound.remat is not None:
        return _Mode(bound, training=training, stacking=stacking)
    types = frozenset(bound.types.items())
    key = tuple(bound.outputs), tuple(bound.also), types, training, thread_settings.quick
    found = _modes.get(key)
    if found is None:
        found = _modes[key] = _Mode(bound, training=training, stacking=stacking)
    _recent.append(found)
    return found


class _Halves:
    """The two halves of a gradient graph: forward with residuals, and backward from residuals."""

    def __init__(self, mode: _Mode, wanted: tuple[str, ...]) -> None:
        settled = mode.settled
        ys = [settled.outputs[i] for i in mode.differentiable]
        if not ys:
            raise GradientError("backward: an output must be of a floating dtype, got none")
        heads = [placeholder("head", y.type) for y in ys]
        xs = [settled.variables[name] for name in wanted]
        gradients = [
            n for n in typed_grad(ys, xs, heads, "zero", (), mode.remat, last=True) if n is not None
        ]
        cut = _cut(gradients, heads)
        self._gradients, self._heads = gradients, heads
        self.count = len(settled.outputs)
        crossing = set(cut)
        self.kept = [i for i, node in enumerate(mode.order) if node in crossing]
        self.carried = carried = [node for node in cut if node.op is not VARIABLE]
        first = mode.placing(mode.plan([*settled.outputs, *carried], mode.order, updating=True))
        known = [*(mode.order[i] for i in self.kept), *carried, *heads]
        second = mode.plan(gradients, known, updating=False)
        self._known, self._second = known, second

        def forward(values: list[Any], root: Any, offset: Any) -> Any:
            results, new = first(values, root, offset)
            return results[: self.count], results[self.count :], new

        def backward(
            variables: list[Any],
            residuals: list[Any],
            cotangents: list[Any],
        ) -> list[Any]:
            derivatives = second([*variables, *residuals, *cotangents])[0]
            return constrained_by(mode.placement, wanted, derivatives)

        def over(spent: list[Any], old: list[Any], *given: list[Any]) -> list[Any]:
            del spent
            pairs = zip(old, backward(*given), strict=True)
            # Without a copy, a gradient could be one of the arguments, which are donated next time.
            return [jnp.copy(one) if before is None else before + one for before, one in pairs]

        self.forward = mode.compiled(forward, [*settled.outputs, *carried], mode.order)
        self._backward = mode.compiled(backward, gradients, known)
        self._backward_over = DonatingStep(over, keep_unused=True)

    @functools.cached_property
    def read(self) -> list[bool]:
        """Whether each cotangent is read by the gradients, or by a kernel that they call."""
        below = set(topological(self._gradients))
        if not any(head in below for head in self._heads):
            return [False] * len(self._heads)
        types = [_traced_type(one.type) for one in self._known]
        traced = jax.make_jaxpr(lambda values: self._second(values)[0])(types).jaxpr
        used = {id(one) for call in traced.eqns for one in call.invars}
        used |= {id(one) for one in traced.outvars}
        return [id(one) in used for one in traced.invars[len(traced.invars) - len(self._heads) :]]

    def backward(self, *values: list[Any]) -> list[Any]:
        """Returns gradients from variables and residuals of the forward pass, and cotangents."""
        result: list[Any] = self._backward(*values)
        return result

    def backward_over(
        self,
        store: Callable[[Iterator[Any]], None],
        spent: list[Any],
        old: Sequence[Any],
        *values: list[Any],
    ) -> None:
        """Runs ``backward`` in the memory of ``spent``, and adds the gradients in ``old``."""
        self._backward_over.into(store, (spent, old, *values))


def _traced_type(type: VarType) -> Any:
    if type == KEY_TYPE:
        return jax.eval_shape(lambda: jax.random.key(0))
    return jax.ShapeDtypeStruct(type.shape, type.dtype)  # type: ignore[no-untyped-call]  # of JAX


def _serves(old: Any, argument: Any) -> TypeGuard[jax.Array]:
    """Whether the new gradient of ``argument`` can reuse the memory of ``old``."""
    return (
        is_alive(old)
        and is_alive(argument)
        and (old.shape, old.dtype) == (argument.shape, argument.dtype)
        and old.sharding == argument.sharding
    )


def _cut(gradients: Sequence[Node], heads: Sequence[Node]) -> list[Node]:
    """Returns the values independent of ``heads`` that the dependent part of ``gradients`` reads.

    Constants are excluded, since both halves contain them.
    """
    backward = reaching(topological(gradients), heads)
    read = residuals(gradients, lambda node: node not in backward)
    return [node for node in read if node.op is not CONSTANT]


def _is_strong(value: Any, dtype: DType) -> bool:
    """Whether a value is a JAX array of a dtype that no other operand changes."""
    return isinstance(value, jax.Array) and value.dtype == dtype and not value.weak_type


def _array(value: Any) -> jax.Array:
    return value if isinstance(value, jax.Array) else jnp.asarray(value)


def _head(index: int, type: VarType, head: Any) -> Any:
    if head is None:
        raise FeedError(f"backward: cotangent {index} must be an array, got None")
    cotangent = head if _is_strong(head, type.dtype) else jnp.asarray(head, type.dtype)
    if cotangent.shape != type.shape:
        raise FeedError(
            f"backward: cotangent {index} must be of shape {type.shape}, got {cotangent.shape}"
        )
    return cotangent


def _arrays(variables: Mapping[str, Node], role: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns one array for each variable of ``role``, in the order of the variables."""
    named = {name: node for name, node in variables.items() if node.attributes[2] == role}
    what = "auxiliary states" if role == "state" else "arguments"
    for name, node in named.items():
        if node.types is not None and node.type.kind is not VarKind.LOD_TENSOR:
            raise FeedError(
                f"bind: {name!r} must be dense, got {node.type}; eval, to_jax and programs take it"
            )
    require_known(f"bind: {what}", values, named)
    missing = [name for name in named if name not in values]
    if missing:
        raise FeedError(f"bind: {what} must be given, got no {', '.join(missing)}")
    return {name: jnp.asarray(as_fed(name, node, values[name])) for name, node in named.items()}


def _requests(
    variables: Mapping[str, Node],
    requests: "GradReq | Mapping[str, GradReq] | Sequence[GradReq]",
    types: Mapping[str, Any],
) -> dict[str, GradReq]:
    """Returns the request for each argument.

    A single request for all excludes arguments that cannot have a gradient. As in MXNet, arguments
    that a dict does not name get the request ``"null"``.
    """
    names = [name for name, node in variables.items() if node.attributes[2] == "argument"]
    if isinstance(requests, str):  # an OpReqType is a string too
        asked: dict[str, Any] = dict.fromkeys(names, requests)
    elif isinstance(requests, Mapping):
        require_known("grad_req", requests, names)
        asked = {name: requests.get(name, "null") for name in names}
    elif not isinstance(requests, Sequence):
        raise ArgumentError(
            f"grad_req: must be one of {', '.join(_REQUESTS)}, or a dict or a list of them, "
            f"got {requests!r}"
        )
    else:
        if len(requests) != len(names):
            raise ArgumentError(
                f"grad_req: one must be given for each of {', '.join(names)}, got {len(requests)}"
            )
        asked = dict(zip(names, requests, strict=True))
    for name, request in asked.items():
        if not isinstance(request, str) or request not in _REQUESTS:
            raise ArgumentError(
                f"grad_req: must be one of {', '.join(_REQUESTS)}, got {request!r} for {name!r}"
            )
        floating = jnp.issubdtype(types[name][1], jnp.inexact)
        if request != "null" and not floating:
            if not isinstance(requests, str):
                raise GradientError(
                    f"grad_req: {name!r} must be of a floating dtype to have a gradient, got "
                    f"{types[name][1]}"
                )
            asked[name] = "null"
    return asked
