"""Control flow on symbols: functions run once on placeholders and become bodies of operators.

A value that a function uses but did not build is captured and becomes an operand. Calls made by the
function stay inside the body, so that a branch that is not taken is not computed.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax

from registry.errors import ArgumentError, SymopError
from registry.operator.operator import Operator
from registry.ops.control_flow.loop_gradients import Layout
from registry.table import get
from registry.types import VarType, is_exact
from registry.var import Var
from symop.graph import nodes as graph
from symop.graph.nodes import (
    ARRAY,
    CONSTANT,
    TRAINING,
    VARIABLE,
    Node,
    placeholder,
    residuals,
    topological,
)
from symop.graph.origins import noting_calls, outside_scopes
from symop.graph.rewriting import substitute
from symop.lowering.steps import random_keys
from symop.regions.bodies import GraphBody, body_of, require_shallow
from symop.symbol.symbol import Symbol, to_node

Function = Callable[..., Any]
Tree = Any
"""The tree structure of a pytree: tuples, lists, dictionaries and registered types."""


def is_value(one: Any) -> bool:
    """Whether ``one`` is a leaf that JAX must not flatten."""
    return isinstance(one, Var)


def flat(values: Any) -> tuple[list[Any], Tree]:
    """Returns the leaves of a pytree, and its tree structure."""
    return jax.tree_util.tree_flatten(values, is_leaf=is_value)


def places(values: Any) -> list[str]:
    """Returns the path of each leaf in Python syntax."""
    paths, _ = jax.tree_util.tree_flatten_with_path(values, is_leaf=is_value)
    return [jax.tree_util.keystr(path) for path, _ in paths]


def nodes_of(values: Sequence[Any]) -> list[Node]:
    """Returns the node of each value."""
    return [to_node(one) for one in values]


# Tracing ---------------------------------------------------------------------------------------


class Traced(NamedTuple):
    """The results of functions called on placeholders.

    Attributes:
        parameters: the placeholders.
        results: the nodes that each function returned.
        trees: the tree structures of these results.
        mark: a serial number above those of all nodes that existed before.
        inside: the calls made by the functions.
    """

    parameters: list[Node]
    results: list[list[Node]]
    trees: list[Tree]
    mark: int
    inside: set[Node]

    def closed(self) -> tuple[list[Node], list[GraphBody]]:
        """Returns the captured nodes, and bodies that take them after the parameters."""
        every = [node for each in self.results for node in each]
        own = set(self.parameters)
        outside = residuals(every, lambda one: one in own or self._is_outside(one))
        captured = [one for one in outside if one not in own]
        inside = [placeholder(f"captured{i}", _type_of(one)) for i, one in enumerate(captured)]
        images = substitute(every, dict(zip(captured, inside, strict=True)))
        keys = random_keys(topological(images))
        supply = iter(images)
        bodies = [
            body_of([*self.parameters, *inside], [next(supply) for _ in each], keys)
            for each in self.results
        ]
        require_shallow(bodies)
        return captured, bodies

    def _is_outside(self, node: Node) -> bool:
        """Whether ``node`` was not built inside, or cannot be part of a body.

        It is inside even if an equal call was made outside before.
        """
        node = node.source
        if node.op is CONSTANT or node.op is TRAINING:
            return False
        if isinstance(node.op, Operator):
            return node not in self.inside
        return node.serial < self.mark or node.op is VARIABLE or node.op is ARRAY


def _type_of(node: Node) -> VarType:
    return node.type.strong()


def trace_functions(functions: Sequence[Function], types: Sequence[VarType], tree: Tree) -> Traced:
    """Calls each of ``functions`` on placeholders of ``types``, nested as in ``tree``.

    Raises:
        ArgumentError: a function returns anything but symbols, arrays and numbers.
    """
    mark = graph.next_serial()
    parameters = [placeholder(f"x{i}", type) for i, type in enumerate(types)]
    results, trees = [], []
    with noting_calls() as inside:
        for function in functions:
            with outside_scopes():  # a scope around a loop applies to the loop, not to its steps
                symbols, nested = flat(function(*_nested(tree, parameters)))
            results.append(nodes_of(symbols))
            trees.append(nested)
    return Traced(parameters, results, trees, mark, inside)


def _nested(tree: Tree, nodes: Sequence[Node]) -> Any:
    return jax.tree_util.tree_unflatten(tree, [Symbol([one]) for one in nodes])


def _training(bodies: Iterable[GraphBody]) -> dict[str, Any]:
    """Returns the training flag if a body reads it, otherwise false."""
    reads = any(one.op is TRAINING for body in bodies for one in topological(body.results))
    return {"training": Symbol([graph.training_flag()]) if reads else False}


def _options(bodies: Sequence[GraphBody]) -> dict[str, Any]:
    return {**_training(bodies), "use_key": any(body.draws for body in bodies)}


def _symbols(nodes: Iterable[Node]) -> list[Symbol]:
    return [Symbol([node]) for node in nodes]


def _listed(values: Any) -> list[Symbol]:
    """Returns the results of an operator with a variable number of results, as a list."""
    symbols = values if isinstance(values, tuple) else (values,)
    return [Symbol([node], one.also) for one in symbols for node in one.nodes]


# Carries ---------------------------------------------------------------------------------------


def _carried(
    what: str, init: Any, trace: Callable[[Sequence[VarType]], tuple[Traced, Tree, list[Node]]]
) -> tuple[list[Node], Traced]:
    """Returns the carries and the traced step, whose carries have the same types.

    A Python number takes the type that its carry has after a step.

    Raises:
        ArgumentError: a step returns another tree structure of carries, or changes a type.
    """
    leaves, tree = flat(init)
    carries = nodes_of(leaves)
    found, after_tree, after = trace([_type_of(one) for one in carries])
    _require_nested(what, tree, after_tree)
    moved = [_promoted(one, later) for one, later in zip(carries, after, strict=True)]
    if any(one is not other for one, other in zip(moved, carries, strict=True)):
        found, _, after = trace([_type_of(one) for one in moved])
    names = places(init)
    for name, before, later in zip(names, moved, after, strict=True):
        if later.type.strong() is not before.type.strong():
            raise ArgumentError(
                f"{what}: carry{name} must keep its type, {before.type.strong()}, got "
                f"{later.type.strong()} after a step"
            )
    return moved, found


def _require_nested(what: str, before: Tree, after: Tree) -> None:
    if before != after:
        raise ArgumentError(
            f"{what}: a step must return carries that are nested as the first ones, {before}, got "
            f"{after}"
        )


def _promoted(carry: Node, after: Node) -> Node:
    """Returns ``carry``, cast to the dtype that it has after a step if it is a Python number."""
    before, wanted = carry.type, after.type
    if not before.weak or before.shape != wanted.shape or before.dtype == wanted.dtype:
        return carry
    if is_exact(wanted.dtype) and not is_exact(before.dtype):
        return carry
    cast: Node = get("cast")(carry, dtype=wanted.dtype)
    return cast


# The functions ---------------------------------------------------------------------------------


def body(function: Function, inputs: Sequence[VarType]) -> GraphBody:
    """Returns the body of a function of symbols.

    Raises:
        ArgumentError: the function captures a value from outside.
    """
    tree = jax.tree_util.tree_structure((0,) * len(inputs))
    captured, bodies = trace_functions([function], [one.strong() for one in inputs], tree).closed()
    if captured:
        raise ArgumentError(
            f"body: what the function uses must be among its inputs, got {captured[0].name or ''} "
            f"{captured[0].type} from outside".replace("  ", " ")
        )
    return bodies[0]


def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Sequence[Any]) -> Any:
    """Implements ``control_flow.cond`` on symbols."""
    leaves, tree = flat(tuple(operands))
    inputs = nodes_of(leaves)
    branches = trace_functions([true_fn, false_fn], [_type_of(one) for one in inputs], tree)
    _require_alike(branches.trees)
    captured, bodies = branches.closed()
    values = _symbols([*inputs, *captured])
    results = get("cond")(
        Symbol([to_node(pred)]),
        *values,
        true_body=bodies[0],
        false_body=bodies[1],
        **_options(bodies),
    )
    return jax.tree_util.tree_unflatten(branches.trees[0], _listed(results))


def _require_alike(trees: Sequence[Tree]) -> None:
    if trees[0] != trees[1]:
        raise ArgumentError(
            f"cond: both functions must nest what they return alike, got {trees[0]} and {trees[1]}"
        )


def while_loop(cond_fn: Function, body_fn: Function, init: Any, max_steps: int | None) -> Any:
    """Implements ``control_flow.while_loop`` on symbols."""
    leaves, tree = flat(init)
    nested = jax.tree_util.treedef_tuple([tree])

    def trace(types: Sequence[VarType]) -> tuple[Traced, Tree, list[Node]]:
        traced = trace_functions([cond_fn, body_fn], types, nested)
        return traced, traced.trees[1], traced.results[1]

    carries, traced = _carried("while_loop", init, trace)
    captured, bodies = traced.closed()
    condition, step = bodies
    layout = Layout(step, len(carries))
    if max_steps is not None:
        layout = _with_residuals(layout)
    values = _symbols([*carries, *captured])
    results = get("while_loop")(
        *values,
        condition=condition,
        body=layout.body,
        n_carry=len(carries),
        max_steps=max_steps,
        **_options(bodies),
    )
    return jax.tree_util.tree_unflatten(tree, _listed(results)[: len(leaves)])


def scan(f: Function, init: Any, xs: Any, length: int | None, reverse: bool) -> Any:
    """Implements ``control_flow.scan`` on symbols."""
    tree, (inputs, xs_tree) = jax.tree_util.tree_structure(init, is_leaf=is_value), flat(xs)
    series = nodes_of(inputs)
    count = steps_of([_type_of(one) for one in series], places(xs), length)
    slices = [VarType(one.type.shape[1:], one.type.dtype) for one in series]
    nested = jax.tree_util.treedef_tuple([tree, xs_tree])

    def trace(types: Sequence[VarType]) -> tuple[Traced, Tree, list[Node]]:
        bodies = trace_functions([f], [*types, *slices], nested)
        parts = bodies.trees[0].children()
        if bodies.trees[0].node_data() is None or len(parts) != 2:
            got = f"{len(parts)} values" if parts else "one value"
            raise ArgumentError(f"scan: a step must return a pair (carries, results), got {got}")
        return bodies, parts[0], bodies.results[0][: parts[0].num_leaves]

    carries, bodies = _carried("scan", init, trace)
    captured, (step,) = bodies.closed()
    layout = _with_residuals(Layout(step, len(carries), len(series)))
    results = get("scan")(
        *_symbols([*carries, *series, *captured]),
        body=layout.body,
        n_carry=len(carries),
        n_xs=len(series),
        length=count,
        reverse=reverse,
        **_options([step]),
    )
    values = _listed(results)[: len(step.outputs)]
    return jax.tree_util.tree_unflatten(bodies.trees[0], values)


def vmap(f: Function, args: Sequence[Any]) -> Any:
    """Implements ``vectorizing.vmap`` on symbols; maps all arguments over their first axis."""
    leaves, tree = flat(tuple(args))
    series = nodes_of(leaves)
    steps_of([_type_of(one) for one in series], places(tuple(args)), None, "vmap: argument")
    slices = [VarType(one.type.shape[1:], one.type.dtype) for one in series]
    bodies = trace_functions([f], slices, tree)
    captured, (body,) = bodies.closed()
    values = _symbols([*series, *captured])
    results = get("vmap")(*values, body=body, n_mapped=len(series), **_options([body]))
    return jax.tree_util.tree_unflatten(bodies.trees[0], _listed(results))


def steps_of(
    series: Sequence[VarType], names: Sequence[str], length: int | None, what: str = "scan: xs"
) -> int:
    """Returns the number of steps of a scan, or the number of slices.

    Raises:
        ArgumentError: neither ``series`` nor ``length`` gives this number, or they disagree.
    """
    for name, one in zip(names, series, strict=True):
        if not one.shape:
            raise ArgumentError(f"{what}{name} must have an axis of steps, got a scalar")
    short = what.partition(": ")[2]
    counts = {f"{short}{name}": one.shape[0] for name, one in zip(names, series, strict=True)}
    if length is not None:
        counts["length"] = length
    if not counts:
        raise ArgumentError("scan: length must be given where there are no xs, got none")
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name}: {count}" for name, count in counts.items())
        owner = what.partition(":")[0]
        raise ArgumentError(f"{owner}: all must give the same number of steps, got {told}")
    return next(iter(counts.values()))


def _with_residuals(layout: Layout) -> Layout:
    """Extends a loop with the residuals of its gradient; unchanged if it has no gradient."""
    if not any(one.differentiable for one in layout.body.outputs):
        return layout
    try:
        return layout.with_residuals()
    except SymopError:
        return layout
