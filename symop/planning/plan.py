"""``so.plan``: what training a loss on a mesh costs, told before anything is compiled."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import sharding
from jax.extend.core import Var

from registry.errors import ArgumentError
from registry.shardings import Sharding, on_mesh, require_divisible, sharding_text
from registry.tracebacks import api_boundary
from registry.types import VarType
from symop.graph.inference import infer_variables
from symop.graph.naming import require_known, variables_of
from symop.graph.nodes import Node
from symop.graph.shardings import Rules
from symop.lowering.steps import Call
from symop.passes.remat.counting import shown
from symop.planning.activations import BatchFunction
from symop.planning.operations import most_held
from symop.planning.propagation import (
    Collective,
    Sizes,
    bytes_on_device,
    exchange,
    followed,
    sent,
)
from symop.planning.updating import Update
from symop.runtime.placement import batch_shardings, declarations, stated_shardings
from symop.symbol.symbol import Symbol

# Any: JAX declares no types for the following names.
_Mesh: Any = sharding.Mesh
_AbstractMesh: Any = sharding.AbstractMesh
_Auto: Any = sharding.AxisType.Auto
_use_mesh: Any = sharding.use_abstract_mesh
_struct: Any = jax.ShapeDtypeStruct

_SHOWN = 20
"""The maximal number of rows of a table that are printed."""


_Seen = list[tuple[str, Collective]]
"""Who asked for a collective, and the collective."""


class Held(NamedTuple):
    """A parameter, state or input, and what a device holds of it.

    Attributes:
        name: its name.
        type: its shape and dtype.
        sharding: the mesh axes that its axes are split over.
        bytes: the size of the part of one device.
    """

    name: str
    type: VarType
    sharding: Sharding
    bytes: int


class Exchange(NamedTuple):
    """The exchange between devices in a step that one call requires.

    Attributes:
        kind: ``all-reduce``, ``all-gather``, ``all-to-all`` or ``collective-permute``.
        axes: the mesh axes over which they exchange it.
        times: how often in a step.
        bytes: the size of all results on each device.
        moved: the bytes that each device sends, by ring algorithms (Patarasuk and Yuan,
            "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).
        asked_by: the operator and the user's line that need it, or the parameter whose gradient
            it is.
    """

    kind: str
    axes: tuple[str, ...]
    times: int
    bytes: int
    moved: int
    asked_by: str


class Plan(NamedTuple):
    """The cost of a training step on a mesh; prints as tables.

    Attributes:
        sizes: the sizes of the mesh axes.
        parameters: what is trained, the largest first.
        others: states and inputs.
        exchanges: what devices exchange, the most bytes first.
        optimizer: the bytes of the optimizer's state on each device.
        values: an estimate of the bytes of all values of a step that are held at once.
    """

    sizes: Mapping[str, int]
    parameters: tuple[Held, ...]
    others: tuple[Held, ...]
    exchanges: tuple[Exchange, ...]
    optimizer: int
    values: int

    @property
    def memory(self) -> int:
        """The bytes that each device holds: parameters, states, inputs, optimizer and values."""
        held = sum(one.bytes for one in (*self.parameters, *self.others))
        return held + self.optimizer + self.values

    @property
    def bytes(self) -> int:
        """The size of the results of all collectives of a step on each device."""
        return sum(one.bytes for one in self.exchanges)

    @property
    def moved(self) -> int:
        """The bytes that each device sends in a step."""
        return sum(one.moved for one in self.exchanges)

    def __str__(self) -> str:
        mesh = ", ".join(f"{name} {size}" for name, size in self.sizes.items())
        parameters = sum(one.bytes for one in self.parameters)
        lines = [
            f"{math.prod(self.sizes.values())} devices ({mesh}); each holds {shown(self.memory)}: "
            f"parameters {shown(parameters)}, optimizer {shown(self.optimizer)}, states and inputs "
            f"{shown(sum(one.bytes for one in self.others))}, values {shown(self.values)}",
            f"in each step, each device sends {shown(self.moved)}",
            "",
            *_table(
                ("parameter", "type", "split over", "on a device"),
                [
                    (one.name, str(one.type), sharding_text(one.sharding) or "nothing",
                     shown(one.bytes))
                    for one in self.parameters
                ],
            ),
            "",
            *_table(
                ("collective", "over", "times", "result", "sent", "asked by"),
                [
                    (one.kind, "+".join(one.axes), f"{one.times:,}", shown(one.bytes),
                     shown(one.moved), one.asked_by)
                    for one in self.exchanges
                ],
            ),
        ]  # fmt: skip
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@api_boundary
def plan(
    loss: Symbol,
    mesh: Any,
    rules: Rules | None = None,
    *,
    inputs: Sequence[str],
    optimizer: Any = None,
    **shapes: Sequence[int],
) -> Plan:
    """Returns what a step of ``train.Trainer`` with these arguments costs, without compiling it.

    Shardings are followed through the graph and its gradients as XLA's partitioner does:
    what is summed over a split axis is reduced over devices; where operands disagree, the smaller
    one is gathered; a product is split as what reads it entry by entry. XLA may do otherwise;
    ``docs/scale.md`` compares. Of a ``while_loop`` one step is counted, of a ``cond`` the branch
    that exchanges the most. What an optimizer exchanges is counted as well: norms, and at least a
    part of what products of its matrices need; where it evaluates the loss in a loop, one
    evaluation.

    Args:
        loss: a symbol of shape ``()``.
        mesh: a ``jax.sharding.Mesh``, or an ``AbstractMesh`` of any number of devices.
        rules: shardings by name or pattern, as for the trainer.
        inputs: the names of the arguments that a batch feeds.
        optimizer: an optax gradient transformation; without one, its state is not counted.
        **shapes: the shapes of inputs that the graph does not declare.

    Raises:
        ArgumentError: a rule is invalid, or an array cannot be split evenly.
        UnknownTypeError: a shape is not known.

    Example:
        >>> import jax, symop as so
        >>> x = so.var("x", (64, 8))
        >>> loss = so.mean(so.square(so.fully_connected(x, units=4, name="layer")))
        >>> plan = so.plan(loss, jax.sharding.AbstractMesh((8,), ("data",)), inputs=["x"])
        >>> [(one.kind, one.axes, one.bytes) for one in plan.exchanges][0]
        ('all-reduce', ('data',), 128)
    """
    step = TracedStep("plan", loss, inputs, optimizer, shapes)
    return step.plan(mesh, rules or {}, constrained=True)


class TracedStep:
    """A training step as a jaxpr, whose cost is found for any mesh and rules."""

    def __init__(
        self,
        owner: str,
        loss: Symbol,
        inputs: Sequence[str],
        optimizer: Any,
        shapes: Mapping[str, Sequence[int]],
    ) -> None:
        """Traces the loss and its gradients; the arguments are those of ``plan``."""
        if not isinstance(loss, Symbol):
            raise ArgumentError(f"{owner}: the loss must be a symbol, got {type(loss).__name__}")
        require_known(owner, inputs, loss.list_arguments())
        if optimizer is not None and not callable(getattr(optimizer, "init", None)):
            raise ArgumentError(
                f"{owner}: the optimizer must be an optax gradient transformation, "
                f"got {optimizer!r}"
            )
        self._owner, self._inputs, self._optimizer = owner, inputs, optimizer
        self._loss = _typed(loss, shapes)
        self.types = {name: one.type for name, one in variables_of(self._loss.roots).items()}
        self.parameters = [n for n in self._loss.list_arguments() if n not in inputs]
        needed = variables_of([self._loss.node])
        self._moving = [name for name in self.parameters if name in needed]
        self._function = self._build()
        self._traced: dict[Any, tuple[Any, Any]] = {}

    def _build(self) -> "_Labelled":
        return _Labelled(self._loss.nodes, self._loss.also, training=True, wrt=self._moving)

    def plan(self, mesh: Any, rules: Rules, *, constrained: bool = False) -> Plan:
        """Returns what the step costs on ``mesh``.

        Args:
            mesh: the mesh.
            rules: the rules.
            constrained: whether to trace the step with the constraints that the trainer adds.
                They change which values are held at once, by up to a tenth, and hardly what is
                exchanged.
        """
        if not isinstance(mesh, (_Mesh, _AbstractMesh)):
            raise ArgumentError(
                f"{self._owner}: mesh must be a jax.sharding.Mesh or AbstractMesh, got {mesh!r}"
            )
        sizes = dict(mesh.shape)
        declared = declarations(self._loss.roots)
        stated = stated_shardings(self._owner, declared, mesh, rules)
        inputs = [name for name in self._inputs if name not in stated]
        shardings = stated | batch_shardings(self._owner, declared, mesh, inputs)
        held = {
            name: _held(self._owner, name, type, on_mesh(shardings.get(name, ()), mesh), mesh)
            for name, type in self.types.items()
        }
        function = self._function
        if constrained:
            function = self._build()
            shardings = {name: one.sharding for name, one in held.items()}
            function.split(shardings, self._inputs, sizes)
        seen, values = self._followed(function, held, sizes)
        moments = 0
        if self._optimizer is not None:
            update = self._update({name: one.sharding for name, one in held.items()}, sizes)
            moments = update.bytes()
            seen += [("optimizer", one) for one in update.exchanges(self._evaluated)]
        own = [held[name] for name in self.parameters]
        return Plan(
            sizes,
            tuple(sorted(own, key=lambda one: -one.bytes)),
            tuple(one for name, one in held.items() if name not in self.parameters),
            _grouped(seen, sizes),
            moments,
            values,
        )

    def _update(self, shardings: Mapping[str, Sharding], sizes: Sizes) -> Update:
        structs = {name: _struct(type.shape, type.dtype) for name, type in self.types.items()}
        parameters = {name: structs.pop(name) for name in self.parameters}
        return Update(self._optimizer, parameters, structs, shardings, sizes)

    def _evaluated(self, variables: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Returns the loss and its gradients, where an optimizer asks for them."""
        results = self._function(**variables, key=jax.random.key(0))
        value, *slopes = results[0] if self._function.states else results
        gradients = {name: jnp.zeros_like(variables[name]) for name in self.parameters}
        gradients.update(zip(self._moving, slopes, strict=True))
        return value, gradients

    def _jaxpr(self, function: "_Labelled", sizes: Sizes) -> tuple[Any, Any]:
        """Returns the jaxpr of the step on a mesh of these sizes, and the tree of its results."""
        key = function, tuple(sizes.items())
        if key not in self._traced:
            names = function.names
            structs = {n: _struct(self.types[n].shape, self.types[n].dtype) for n in names}
            seed = jax.random.key(0)
            kinds = (_Auto,) * len(sizes)
            with _use_mesh(_AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=kinds)):
                traced, shapes = jax.make_jaxpr(
                    lambda arrays: function(**arrays, key=seed), return_shape=True
                )(structs)
            self._traced[key] = traced.jaxpr, jax.tree.structure(shapes)
        return self._traced[key]

    def _followed(
        self, function: "_Labelled", held: Mapping[str, Held], sizes: Sizes
    ) -> tuple[_Seen, int]:
        """Returns the collectives of a step, and the bytes of its values."""
        jaxpr, tree = self._jaxpr(function, sizes)
        order = sorted(function.names)
        inputs = [held[name].sharding for name in order]
        flags = [name in self._inputs for name in order]
        seen: _Seen = []

        def gradients(leaves: Sequence[Any]) -> Sequence[Any]:
            results: Any = jax.tree.unflatten(tree, leaves)
            outputs: Sequence[Any] = results[0] if function.states else results
            return outputs[1:]

        wanted = {
            value: held[name].sharding
            for name, value in zip(self._moving, gradients(jaxpr.outvars), strict=True)
            if isinstance(value, Var)
        }
        walk = followed(jaxpr, inputs, sizes, lambda *one: seen.append(one), flags, wanted)
        shardings = list(map(walk.of, jaxpr.outvars))
        for name, split in zip(self._moving, gradients(shardings), strict=True):
            if isinstance(split, tuple):  # not of rows
                _onto(held[name], split, sizes, seen)
        return seen, most_held(walk, jaxpr)


def _typed(loss: Symbol, shapes: Mapping[str, Sequence[int]]) -> Symbol:
    types = {name: (tuple(shape), None) for name, shape in shapes.items()}
    nodes = infer_variables(loss.roots, types)
    count = len(loss.also)
    return Symbol(nodes[count:], tuple(nodes[:count]))


def _held(owner: str, name: str, type: VarType, sharding: Sharding, mesh: Any) -> Held:
    require_divisible(f"{owner}: {name!r}", type.shape, sharding, mesh)
    return Held(name, type, sharding, bytes_on_device(type, sharding, dict(mesh.shape)))


# A step ------------------------------------------------------------------------------------------


class _Labelled(BatchFunction):
    """A graph as a function, whose equations tell the operator and the user's line."""

    def call_of(self, node: Node) -> Call:
        """Returns the function that computes ``node``, in a scope that names it."""
        call = super().call_of(node)
        place = "" if node.origin is None else f" at {node.origin.file}:{node.origin.line}"
        label = f"{node.op.name}{place}"

        def run(*inputs: Any) -> Any:
            with jax.named_scope(label):
                return call(*inputs)

        return run


def _onto(one: Held, sharding: Sharding, sizes: Sizes, seen: _Seen) -> None:
    """Reports what splits a gradient like its parameter."""

    def report(collective: Collective) -> None:
        seen.append((f"gradient of {one.name}", collective))

    exchange(one.type, sharding, one.sharding, sizes, report)


def _grouped(seen: _Seen, sizes: Sizes) -> tuple[Exchange, ...]:
    """Returns a row for each kind of collective that a call asks for."""
    groups: dict[tuple[str, tuple[str, ...], str], list[Collective]] = {}
    for who, one in seen:
        if all(sizes[axis] == 1 for axis in one.axes):
            continue
        groups.setdefault((one.kind, one.axes, who), []).append(one)
    rows = [
        Exchange(
            kind,
            axes,
            sum(one.times for one in each),
            sum(one.bytes * one.times for one in each),
            sum(sent(one, sizes) * one.times for one in each),
            who,
        )
        for (kind, axes, who), each in groups.items()
    ]
    return tuple(sorted(rows, key=lambda one: -one.bytes))


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [titles, *rows[:_SHOWN]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(titles))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    left = len(rows) - _SHOWN
    return [*lines, f"and {left} more"] if left > 0 else lines
