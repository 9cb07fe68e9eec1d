"""Executor: a graph bound to arrays, run forwards and backwards.

Binding builds the gradient graph once and cuts it where the cotangents enter: the forward half
returns the outputs and the residuals that the backward half reads, and each half is compiled.
"""

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp

from registry.errors import ArgumentError, FeedError, GradientError
from registry.types import OpReqType, VarType
from symop import random
from symop.function import (
    Settled,
    bare_where_native,
    fed,
    over_stacks,
    remembering,
    rolls,
    settle,
)
from symop.gradients import typed_grad
from symop.graph import CONSTANT, VARIABLE, Node, placeholder, reaching, topological
from symop.holdings import Held, Seen, arrays_of, held_by, replace, whole
from symop.lowering import Call, Schedule
from symop.memory import is_alive, memory_of
from symop.naming import names_of, output_name, require_known, variables_of
from symop.policies import Policy
from symop.repeats.loops import Aim

GradReq = Literal["null", "write", "write_inplace", "add"] | OpReqType
"""What ``backward`` does with a gradient: nothing, replace the old one, or add to it.

In place it takes the memory of the old one, which is donated and must not be used any more.
"""
_REQUESTS = tuple(one.value for one in OpReqType)


class _Forward(NamedTuple):
    """What a forward pass for training leaves behind: what the backward pass reads, no more."""

    variables: list[Any]
    residuals: list[Any]


class Executor:
    """A symbol bound to arrays.

    Attributes:
        arg_dict: arrays of the arguments, by name.
        grad_dict: gradients that ``backward`` computed, by name; zeros before.
        aux_dict: arrays of the auxiliary states, by name.
        outputs: what ``forward`` computed last.

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
        remat: Policy | None = None,
        *,
        stacked: bool = False,
    ) -> None:
        """Bind ``outputs`` to arrays; users call ``Symbol.bind`` or ``Symbol.simple_bind``."""
        names = names_of(topological(outputs))
        self.output_names = [output_name(node, names) for node in outputs]
        variables = variables_of([*also, *outputs])
        given = _arrays(variables, "argument", arguments)
        known = _arrays(variables, "state", states)
        self.outputs: list[Any] = []
        types = {
            name: (tuple(array.shape), array.dtype) for name, array in {**given, **known}.items()
        }
        self._requests = _requests(variables, grad_req, types)
        bound = _Bound(outputs, also, types, remat)
        trained = _Mode(bound, training=True, stacking=self._may_stack if stacked else _never)
        stacks = trained.settled.stacks
        predicted = _Mode(bound, training=False, stacking=set(stacks.values()).__contains__)
        self._modes = {True: trained, False: predicted}
        self._variables = trained.variables
        self._requests.update(
            (name, self._requests.get(one[0], "null")) for name, one in stacks.items()
        )
        self.arg_dict: Held = held_by(given, stacks)
        self.aux_dict: Held = held_by(known, stacks)
        self.grad_dict: Held = held_by(self._initial_gradients(gradients), stacks)
        self._seen = Seen()
        for own in (self.arg_dict, self.aux_dict):
            self._seen.trust(own, own)
        self._kept: _Forward | None = None
        self._trained = False

    def _may_stack(self, names: tuple[str, ...]) -> bool:
        """Whether the same is asked of all gradients of a stack."""
        return len({self._requests.get(name) for name in names}) == 1

    def _initial_gradients(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        wanted = [name for name in self.arg_dict if self._requests[name] != "null"]
        require_known("bind", given or {}, wanted)
        gradients = {name: jnp.zeros_like(self.arg_dict[name]) for name in wanted}
        for name, start in (given or {}).items():
            array = jnp.asarray(start)
            if array.shape != gradients[name].shape:
                raise FeedError(
                    f"bind: the gradient of {name!r} must be of shape {gradients[name].shape}, "
                    f"got {array.shape}"
                )
            gradients[name] = array.astype(gradients[name].dtype)
        return gradients

    def forward(self, is_train: bool = False, **arrays: Any) -> list[Any]:
        """Compute the outputs; ``arrays`` replace arguments first.

        With ``is_train`` operators behave as in training, most of those that update auxiliary
        states do so, and ``backward`` may follow.

        Raises:
            FeedError: an array has no variable, or not the shape and dtype it was bound with.
        """
        self._feed(arrays)
        mode = self._modes[bool(is_train)]
        root, offset = random.draw(mode.draws) if mode.draws else (None, 0)
        values = self._values(mode)
        if is_train and self._wanted():
            half = mode.half(self._wanted())
            self.outputs, residuals, new = half.forward(values, root, offset)
            self._kept = _Forward([values[i] for i in half.kept], residuals)
        else:
            self.outputs, new = mode.run(values, root, offset)
            self._kept = None
        self._trained = bool(is_train)
        for name, array in zip(mode.updated, new, strict=True):
            own = self.arg_dict if name in self.arg_dict else self.aux_dict
            replace(own, name, array)
            if name in own:
                self._seen.trust(own, [name])
        return self.outputs

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients into ``grad_dict``, as each argument's request says.

        Args:
            out_grads: cotangents of the outputs (one array for one output, or a list); all are
                ones when left out, so the gradients are those of the sum of all outputs.

        Raises:
            GradientError: no forward pass for training came before.
            FeedError: a cotangent has the wrong shape, or there are too few.
        """
        if not self._trained:
            raise GradientError("backward: forward(is_train=True) must come first, got none")
        if self._kept is None:
            return
        mode = self._modes[True]
        wanted = self._wanted()
        heads = self._heads(out_grads, mode)
        half = mode.half(wanted)
        found = half.backward(*self._kept, heads, self._spent(heads))
        for name, gradient in zip(wanted, found, strict=True):
            add = self._requests[name] == "add"
            total = whole(self.grad_dict, name) + gradient if add else gradient
            replace(self.grad_dict, name, total)

    def _wanted(self) -> tuple[str, ...]:
        names = self._modes[True].names
        return tuple(name for name in names if self._requests.get(name, "null") != "null")

    def _spent(self, heads: Sequence[Any]) -> list[Any] | None:
        """The old gradients whose memory the new ones take; None when no request says so.

        Left out are those that something else holds, and those whose memory does not serve: users
        may have put anything there.
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

    def _heads(self, given: Any, mode: "_Mode") -> list[Any]:
        if given is None:
            return mode.ones
        types = [mode.settled.outputs[i].type for i in mode.differentiable]
        listed = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(listed) == len(mode.settled.outputs):
            listed = [listed[i] for i in mode.differentiable]
        if len(listed) != len(types):
            raise FeedError(
                f"backward: out_grads must be one for each output ({len(types)}), got {len(listed)}"
            )
        return [
            _head(i, type, one) for i, (type, one) in enumerate(zip(types, listed, strict=True))
        ]

    def _feed(self, arrays: Mapping[str, Any]) -> None:
        require_known("forward", arrays, list(self._variables))
        checked = {name: fed(name, self._variables[name], one) for name, one in arrays.items()}
        for name, array in checked.items():
            own = self.arg_dict if name in self.arg_dict else self.aux_dict
            replace(own, name, jnp.asarray(array))
            self._seen.trust(own, [name])

    def _values(self, mode: "_Mode") -> list[Any]:
        """The arrays held, in the order of the variables; those that users put there are checked.

        Raises:
            FeedError: one is missing, superfluous, or not of the bound shape and dtype.
        """
        held = {*self.arg_dict, *self.aux_dict}
        if held != self._variables.keys():
            require_known("forward", held, list(self._variables))
            missing = [name for name in self._variables if name not in held]
            raise FeedError(f"forward: an array must be held for each of {', '.join(missing)}")
        for own in (self.arg_dict, self.aux_dict):
            self._feed({name: own[name] for name in self._seen.new(own)})
        count = mode.n_arguments
        return [
            *[whole(self.arg_dict, name) for name in mode.names[:count]],
            *[whole(self.aux_dict, name) for name in mode.names[count:]],
        ]

    @property
    def output_dict(self) -> dict[str, Any]:
        """What ``forward`` computed last, by name."""
        return dict(zip(self.output_names, self.outputs, strict=False))

    def copy_params_from(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any] | None = None,
        *,
        allow_extra_params: bool = False,
    ) -> None:
        """Replace arguments and auxiliary states by name.

        Raises:
            FeedError: a name is unknown (unless ``allow_extra_params``) or a shape does not fit.
        """
        given = {**arg_params, **(aux_params or {})}
        if allow_extra_params:
            given = {name: one for name, one in given.items() if name in self._variables}
        self._feed(given)


class _Bound(NamedTuple):
    """What is bound: a graph, the types of its variables, and what is kept for its gradient."""

    outputs: Sequence[Node]
    also: Sequence[Node]
    types: Mapping[str, Any]
    remat: Policy | None


def _never(names: tuple[str, ...]) -> bool:
    """Nothing is stacked."""
    return not names


class _Mode:
    """The graph for training or for prediction, compiled when first run."""

    def __init__(
        self, bound: _Bound, *, training: bool, stacking: Callable[[tuple[str, ...]], bool]
    ) -> None:
        aim = Aim(residuals=training, stacking=stacking is not _never)
        self.training, self.remat = training, bound.remat
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
        self.run: Call = jax.jit(self._plan.__call__)
        self._halves: dict[tuple[str, ...], _Halves] = {}

    def _settled(self, bound: _Bound, aim: Aim) -> Settled:
        found = settle(
            [*bound.also, *bound.outputs],
            bound.types,
            training=self.training,
            rolling=rolls(bound.remat),
            aim=aim,
        )
        self.variables = found.variables
        found = found._replace(outputs=found.outputs[len(bound.also) :])
        return remembering(found, bound.remat)

    def plan(
        self, outputs: Sequence[Node], variables: Sequence[Node], *, updating: bool
    ) -> Schedule:
        """A plan of values of this graph, and if ``updating`` of the new values of its states."""
        return Schedule(
            outputs,
            variables,
            bare_where_native,
            training=self.training,
            keys=self.settled.keys,
            updates=self.settled.updates if updating else None,
        )

    @functools.cached_property
    def ones(self) -> list[Any]:
        """The cotangents of the sum of all outputs."""
        types = [self.settled.outputs[i].type for i in self.differentiable]
        return [jnp.ones(type.shape, type.dtype) for type in types]

    def half(self, wanted: tuple[str, ...]) -> "_Halves":
        """The gradient graph with respect to ``wanted``, cut in two."""
        found = self._halves.get(wanted)
        if found is None:
            found = self._halves[wanted] = _Halves(self, wanted)
        return found


class _Halves:
    """Forward with residuals, and backward from residuals: one gradient graph, cut in two."""

    def __init__(self, mode: _Mode, wanted: tuple[str, ...]) -> None:
        settled = mode.settled
        ys = [settled.outputs[i] for i in mode.differentiable]
        if not ys:
            raise GradientError("backward: an output must be of a floating dtype, got none")
        heads = [placeholder("head", y.type) for y in ys]
        xs = [settled.variables[name] for name in wanted]
        gradients = [n for n in typed_grad(ys, xs, heads, "zero", (), mode.remat) if n is not None]
        cut = _cut(gradients, heads)
        self.count = len(settled.outputs)
        crossing = set(cut)
        self.kept = [i for i, node in enumerate(mode.order) if node in crossing]
        carried = [node for node in cut if node.op is not VARIABLE]
        first = mode.plan([*settled.outputs, *carried], mode.order, updating=True)
        known = [*(mode.order[i] for i in self.kept), *carried, *heads]
        second = mode.plan(gradients, known, updating=False)

        def forward(values: list[Any], root: Any, offset: Any) -> Any:
            results, new = first(values, root, offset)
            return results[: self.count], results[self.count :], new

        def backward(
            variables: list[Any],
            residuals: list[Any],
            cotangents: list[Any],
        ) -> list[Any]:
            return second([*variables, *residuals, *cotangents])[0]

        def over(spent: list[Any], *given: list[Any]) -> list[Any]:
            del spent
            # Without a copy a gradient could be an array that was given, and be donated next.
            return [jnp.copy(one) for one in backward(*given)]

        self.forward: Call = jax.jit(forward)
        self._backward: Call = jax.jit(backward)
        self._backward_over: Call = jax.jit(over, donate_argnums=0, keep_unused=True)

    def backward(
        self,
        variables: list[Any],
        residuals: list[Any],
        heads: list[Any],
        spent: list[Any] | None = None,
    ) -> list[Any]:
        """Gradients from what the forward pass left, and cotangents; ``spent`` gives its memory."""
        given = (variables, residuals, heads)
        found: list[Any] = (
            self._backward(*given) if spent is None else self._backward_over(spent, *given)
        )
        return found


def _serves(old: Any, argument: Any) -> TypeGuard[jax.Array]:
    """Whether the new gradient of ``argument`` can take the memory of ``old``."""
    return (
        is_alive(old)
        and is_alive(argument)
        and (old.shape, old.dtype) == (argument.shape, argument.dtype)
        and old.sharding == argument.sharding
    )


def _cut(gradients: Sequence[Node], heads: Sequence[Node]) -> list[Node]:
    """What the part of ``gradients`` that depends on ``heads`` reads from the part that does not.

    Constants are left out: both halves have them.
    """
    order = topological(gradients)
    backward = reaching(order, heads)
    read = {
        child: None
        for node in order
        if node in backward
        for child in node.operands
        if child not in backward
    }
    read.update({node: None for node in gradients if node not in backward})
    return [node for node in read if node.op is not CONSTANT]


def _head(index: int, type: VarType, given: Any) -> Any:
    if given is None:
        raise FeedError(f"backward: cotangent {index} must be an array, got None")
    cotangent = jnp.asarray(given, type.dtype)
    if cotangent.shape != type.shape:
        raise FeedError(
            f"backward: cotangent {index} must be of shape {type.shape}, got {cotangent.shape}"
        )
    return cotangent


def _arrays(variables: Mapping[str, Node], role: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """One array for each variable of ``role``, in their order."""
    named = {name: node for name, node in variables.items() if node.attributes[2] == role}
    what = "auxiliary states" if role == "state" else "arguments"
    require_known(f"bind: {what}", given, named)
    missing = [name for name in named if name not in given]
    if missing:
        raise FeedError(f"bind: {what} must be given, got no {', '.join(missing)}")
    return {name: jnp.asarray(fed(name, node, given[name])) for name, node in named.items()}


def _requests(
    variables: Mapping[str, Node],
    given: "GradReq | Mapping[str, GradReq] | Sequence[GradReq]",
    types: Mapping[str, Any],
) -> dict[str, GradReq]:
    """The request for each argument; one for all leaves out those that can have no gradient."""
    names = [name for name, node in variables.items() if node.attributes[2] == "argument"]
    if isinstance(given, str):  # an OpReqType is a string too
        asked: dict[str, Any] = dict.fromkeys(names, given)
    elif isinstance(given, Mapping):
        require_known("grad_req", given, names)
        asked = {name: given.get(name, "null") for name in names}
    elif not isinstance(given, Sequence):
        raise ArgumentError(
            f"grad_req: must be one of {', '.join(_REQUESTS)}, or a dict or a list of them, "
            f"got {given!r}"
        )
    else:
        if len(given) != len(names):
            raise ArgumentError(
                f"grad_req: one must be given for each of {', '.join(names)}, got {len(given)}"
            )
        asked = dict(zip(names, given, strict=True))
    for name, request in asked.items():
        if not isinstance(request, str) or request not in _REQUESTS:
            raise ArgumentError(
                f"grad_req: must be one of {', '.join(_REQUESTS)}, got {request!r} for {name!r}"
            )
        floating = jnp.issubdtype(types[name][1], jnp.inexact)
        if request != "null" and not floating:
            if not isinstance(given, str):
                raise GradientError(
                    f"grad_req: {name!r} must be of a floating dtype to have a gradient, got "
                    f"{types[name][1]}"
                )
            asked[name] = "null"
    return asked
