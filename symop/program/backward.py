"""append_backward: appends the gradients of a program's loss as further calls."""

import dataclasses
import itertools
from collections.abc import Collection, Sequence
from typing import Any, get_args

from registry.errors import ArgumentError, GradientError, ProgramError, nearest
from registry.naming import excluded, grad_name
from registry.table import get
from registry.tracebacks import api_boundary
from registry.types import VarKind
from symop.autodiff.gradients import Unreachable, known_gradients
from symop.graph.emission import apply
from symop.graph.nodes import VARIABLE, Node, as_node, make, placeholder
from symop.graph.policies import Policy, require_policy
from symop.io.definitions import Definitions
from symop.program.block import Block, Variable
from symop.program.transcript import write

Pairs = list[tuple[Variable, Variable | None]]
"""Variables with their gradients; None where ``unreachable="none"`` allows a missing gradient."""


@api_boundary
def append_backward(
    loss: Variable,
    parameter_list: Sequence[Variable | str] | None = None,
    no_grad_set: Collection[Variable | str] | None = None,
    head_grads: Any = None,
    remat: Policy | None = None,
    *,
    unreachable: Unreachable = "error",
) -> Pairs:
    """Appends the gradients of ``loss`` to its program, composed by the gradient makers.

    Only calls needed for the requested gradients are appended. Where several gradients reach one
    value, they are summed just before the first use of the sum. A gradient is an ordinary variable,
    so applying ``append_backward`` to a value computed from it differentiates again.

    Args:
        loss: a floating value of shape ``()``, or of any shape if ``head_grads`` is given.
        parameter_list: variables whose gradients are requested, parameters or not; defaults to all
            parameters on which the loss depends.
        no_grad_set: variables through which no gradient flows, in addition to those with
            ``stop_gradient`` set.
        head_grads: the cotangent of ``loss``: a variable, an array or a number; defaults to one.
        remat: the rematerialization policy for the preceding calls (``so.remat``); recomputed
            values are written into the program. By default everything is kept.
        unreachable: the action if the loss does not depend on a variable in ``parameter_list``:
            raise an error, append zeros, or return None in place of the gradient. With ``"zero"``
            and no list, every parameter has a gradient. A derivative that is zero by definition is
            always zeros, as are further derivatives of a gradient.

    Returns:
        Pairs of a variable and its gradient, named ``<variable>@GRAD`` unless that name is taken.

    Raises:
        ArgumentError: ``unreachable`` is not one of the three words.
        GradientError: the loss is not a scalar, or not floating.
        DisconnectedError: the loss does not depend on a variable in ``parameter_list``.
        NotDifferentiableError: the derivative with respect to such a variable is undefined.

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
    _require_word(unreachable)
    return gradients([loss], parameter_list, no_grad_set, [head_grads], policy, unreachable)


def _require_word(unreachable: str) -> None:
    legal = get_args(Unreachable)
    if unreachable not in legal:
        raise ArgumentError(
            f"append_backward: unreachable must be one of {', '.join(legal)}, got {unreachable!r}"
            f"{nearest(str(unreachable), legal)}"
        )


def gradients(
    ys: Sequence[Variable],
    xs: Sequence[Variable | str] | None,
    no_grad_set: Collection[Variable | str] | None,
    head_grads: Sequence[Any],
    remat: Policy | None = None,
    unreachable: Unreachable = "error",
) -> Pairs:
    """Appends gradients as ``append_backward`` does, for several values at once."""
    block = ys[0].block
    named = None if xs is None else [_name(block, one) for one in _listed(xs)]
    barred = [] if no_grad_set is None else _listed(no_grad_set)
    stops = _stops(block, {_name(block, one) for one in barred}, named)
    wanted = _trainable(block, stops) if named is None else named
    replay = _Replay(block, stops, wanted, explicit=named is not None)
    heads = [None if one is None else replay.cotangent(one) for one in head_grads]
    if named is None and unreachable == "error":
        unreachable = "none"
    inner = [replay.inner[name] for name in wanted]
    derived_by = block.derived_by([y.name for y in ys])
    arguments = [
        node
        for name, node in zip(wanted, inner, strict=True)
        if derived_by is not None and (named is not None or name in derived_by)
    ]
    nodes = known_gradients(
        [replay.values[y.name] for y in ys],
        inner,
        heads,
        unreachable,
        arguments,
        None if remat is None else replay.resolved(remat),
    )
    by_name = {name: node for name, node in zip(wanted, nodes, strict=True) if node is not None}
    written = write(block, {grad_name(name): one for name, one in by_name.items()}, replay.labels)
    pairs: Pairs = [(block.variable(name), written.get(grad_name(name))) for name in wanted]
    return [one for one in pairs if one[1] is not None or named is not None]


def _listed(values: Any) -> list[Any]:
    """Returns variables or their names as a list."""
    return [values] if isinstance(values, (Variable, str)) else list(values)


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
    """Returns the variables through which no gradient flows."""
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
    """Rebuilds the block's calls, with barriers where no gradient flows.

    Two variables may share one node of the graph. A variable with respect to which a gradient is
    taken, or at which gradients stop, gets its own node here, so that the gradient belongs to this
    variable alone.

    Attributes:
        inner: the values before those barriers.
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
        """Returns a variable that no other graph reads.

        Everything computed from it is therefore new, and records come in order of creation,
        regardless of other graphs.
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
        """Whether ``name`` needs its own node: it is requested, or shares its node with another."""
        var = self._block.variables.get(name)
        if var is None or var.role != "intermediate" or not node.type.differentiable:
            return False
        source, index = node.source, node.index
        named = index in self.labels.get(source, {})
        return node.type.kind is VarKind.LOD_TENSOR and (named or name in self._wanted)

    def _ended(self, name: str, node: Node) -> Node:
        """Returns a node that blocks gradients, which are zeros if requested explicitly."""
        if self._explicit:
            return apply(get("stop_gradient"), (node,), ())
        return placeholder(name, node.type)

    def _label(self, name: str, node: Node) -> None:
        source, index = node.source, node.index
        self.labels.setdefault(source, {}).setdefault(index, name)

    def _in_scope(self, name: str, node: Node) -> None:
        """Puts a rebuilt node into the scope of the user's call."""
        before = self._block.values[name].origin if name in self._block.values else None
        if before is not None and before.scope is not None and node.origin is not None:
            node.origin = node.origin._replace(scope=before.scope)

    def resolved(self, remat: Policy) -> Policy:
        """Returns ``remat`` with its names resolved to the nodes of variables.

        Raises:
            ProgramError: no variable has one of the names.
        """
        for name in remat.names:
            _name(self._block, name)
        nodes = frozenset(self.inner[name] for name in remat.names)
        return dataclasses.replace(remat, names=frozenset(), nodes=nodes)

    def cotangent(self, head: Any) -> Node:
        """Returns the node of a cotangent: a variable of the program, an array or a number."""
        if isinstance(head, Variable):
            return self.values[_name(self._block, head)]
        return as_node(head)
