"""append_backward: the gradients of a program's loss, written into the program as further calls."""

import dataclasses
import itertools
from collections.abc import Collection, Sequence
from typing import Any

from registry.errors import ArgumentError, GradientError, ProgramError, nearest
from registry.naming import excluded, grad_name
from registry.table import get
from registry.types import VarKind
from symop.definitions import Definitions
from symop.emission import apply
from symop.gradients import known_gradients
from symop.graph import VARIABLE, Node, as_node, make, placeholder
from symop.policies import Policy, require_policy
from symop.program_block import Block, Variable, place_of
from symop.transcript import write

Pairs = list[tuple[Variable, Variable]]


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Variable | str] | None = None,
    no_grad_set: Collection[Variable | str] | None = None,
    head_grads: Any = None,
    remat: Policy | None = None,
) -> Pairs:
    """Append the gradients of ``loss`` to its program, composed by the gradient makers.

    Only what the wanted gradients need is appended. Where several gradients reach one value they
    are summed just before the first use of the sum. A gradient is a variable like any other, so
    ``append_backward`` of what is computed from it differentiates again.

    Args:
        loss: a floating value of shape ``()``, or of any shape if there are ``head_grads``.
        parameter_list: variables whose gradients are wanted, parameters or not; without it, all
            parameters on which the loss depends.
        no_grad_set: variables through which no gradient flows, beside those that say so themselves
            (``stop_gradient``).
        head_grads: the cotangent of ``loss``: a variable, an array or a number; one without it.
        remat: what the gradients keep of the calls before (``so.remat``); what they compute again
            is written into the program. Everything is kept without it.

    Returns:
        Pairs of a variable and its gradient, which is called ``<variable>@GRAD`` unless something
        is called so already.

    Raises:
        GradientError: the loss is not a scalar, or not floating.
        DisconnectedError: the loss does not depend on a variable in ``parameter_list``.
        NotDifferentiableError: the derivative by such a variable is undefined.

    Example:
        >>> import symop as so
        >>> program = so.Program()
        >>> x, w = program.data("x", (4, 2)), program.parameter("w", (2,))
        >>> loss = so.mean(so.square(so.matmul(x, w)))
        >>> [(parameter.name, gradient.name) for parameter, gradient in so.append_backward(loss)]
        [('w', 'w@GRAD')]
    """
    if not isinstance(loss, Variable):
        raise ArgumentError(
            f"append_backward: the loss must be a variable of a program, got {type(loss).__name__}"
        )
    if head_grads is None and loss.shape != ():
        raise GradientError(
            f"append_backward: the loss must be of shape () unless head_grads are given, got "
            f"{loss.type}"
        )
    policy = require_policy("append_backward", remat)
    return gradients([loss], parameter_list, no_grad_set, [head_grads], policy)


def gradients(
    ys: Sequence[Variable],
    xs: Sequence[Variable | str] | None,
    no_grad_set: Collection[Variable | str] | None,
    head_grads: Sequence[Any],
    remat: Policy | None = None,
) -> Pairs:
    """``append_backward`` of several values at once."""
    block = ys[0].block
    named = None if xs is None else [_name(block, one) for one in _listed(xs)]
    barred = [] if no_grad_set is None else _listed(no_grad_set)
    stops = _stops(block, {_name(block, one) for one in barred}, named)
    wanted = _trainable(block, stops) if named is None else named
    replay = _Replay(block, stops, wanted, explicit=named is not None)
    heads = [None if one is None else replay.cotangent(one) for one in head_grads]
    found = known_gradients(
        [replay.values[y.name] for y in ys],
        [replay.inner[name] for name in wanted],
        heads,
        "none" if named is None else "error",
        (),
        None if remat is None else replay.resolved(remat),
    )
    made = {name: node for name, node in zip(wanted, found, strict=True) if node is not None}
    written = write(block, {grad_name(name): one for name, one in made.items()}, replay.labels)
    return [(block.variable(name), written[grad_name(name)]) for name in made]


def _listed(given: Any) -> list[Any]:
    """Variables or their names; of one, a list of it."""
    return [given] if isinstance(given, (Variable, str)) else list(given)


def _name(block: Block, one: Variable | str) -> str:
    name = one.name if isinstance(one, Variable) else one
    if isinstance(one, Variable) and one.block is not block:
        raise ProgramError(f"append_backward: {name!r} must be of the loss's program, and is not")
    if name not in block.variables:
        raise ProgramError(
            f"append_backward: a variable of the program must be named, got {name!r}"
            f"{nearest(name, block.variables)}"
        )
    return name


def _stops(block: Block, no_grad: set[str], wanted: Sequence[str] | None) -> set[str]:
    """The variables through which no gradient flows."""
    declared = {name for name, var in block.variables.items() if var.stop_gradient}
    declared -= set(wanted or ())
    twice = [name for name in wanted or () if excluded(name, no_grad)]
    if twice:
        raise GradientError(
            f"append_backward: {twice[0]!r} must not be both in parameter_list and in no_grad_set"
        )
    return declared | no_grad


def _trainable(block: Block, stops: set[str]) -> list[str]:
    return [
        name
        for name, var in block.variables.items()
        if var.role == "parameter" and name not in stops and block.values[name].type.differentiable
    ]


class _Replay(Definitions):
    """The block's calls once more, with ends where no gradient flows.

    Two variables may be one node of the graph. What a gradient is taken by, or ends at, gets a node
    of its own here, so that the gradient is that of the one variable.

    Attributes:
        inner: the values before those ends.
        labels: the names of nodes.
    """

    def __init__(
        self, block: Block, stops: set[str], wanted: Collection[str], *, explicit: bool
    ) -> None:
        super().__init__(block.desc, block.place, block.body)
        self._block, self._stops = block, stops
        self._wanted, self._explicit = set(wanted), explicit
        self._numbers = itertools.count()
        self.keys = block.key_nodes
        self.inner: dict[str, Node] = {}
        self.labels: dict[Node, dict[int, str]] = {}
        self.load()

    def variable(self, *declaration: Any) -> Node:
        """A variable that nothing else reads.

        So all that is made of it is new, and records come in the order in which it was made,
        whatever other graphs there are.
        """
        like = super().variable(*declaration)
        return make(VARIABLE, (), like.attributes, like.types, like.name)

    def define(self, name: str, node: Node) -> None:
        if self._is_apart(name, node):
            node = apply(get("alias"), (node,), (next(self._numbers),))
        self._in_scope(name, node)
        self._label(name, node)
        self.inner[name] = node
        if name in self._stops and node.type.differentiable:
            node = self._ended(name, node)
            self._label(name, node)
        super().define(name, node)

    def _is_apart(self, name: str, node: Node) -> bool:
        """Whether ``name`` needs a node of its own: a gradient is by it, or it is no first name."""
        var = self._block.variables.get(name)
        if var is None or var.role != "intermediate" or not node.type.differentiable:
            return False
        source, index = place_of(node)
        named = index in self.labels.get(source, {})
        return node.type.kind is VarKind.LOD_TENSOR and (named or name in self._wanted)

    def _ended(self, name: str, node: Node) -> Node:
        """A node through which nothing flows: zeros, for variables that are asked for by name."""
        if self._explicit:
            return apply(get("stop_gradient"), (node,), ())
        return placeholder(name, node.type)

    def _label(self, name: str, node: Node) -> None:
        source, index = place_of(node)
        self.labels.setdefault(source, {}).setdefault(index, name)

    def _in_scope(self, name: str, node: Node) -> None:
        """Put a node that was made anew into the scope that the user's call was in."""
        before = self._block.values[name].origin if name in self._block.values else None
        if before is not None and before.scope is not None and node.origin is not None:
            node.origin = node.origin._replace(scope=before.scope)

    def resolved(self, remat: Policy) -> Policy:
        """``remat`` with the nodes that its names mean: those of variables.

        Raises:
            ProgramError: no variable has one of the names.
        """
        for name in remat.names:
            _name(self._block, name)
        nodes = frozenset(self.inner[name] for name in remat.names)
        return dataclasses.replace(remat, names=frozenset(), nodes=nodes)

    def cotangent(self, head: Any) -> Node:
        """A cotangent: a variable of the program, an array or a number."""
        if isinstance(head, Variable):
            return self.values[_name(self._block, head)]
        return as_node(head)
