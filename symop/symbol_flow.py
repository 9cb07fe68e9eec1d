"""Control flow on symbols: functions run once, on placeholders, and become bodies of operators.

What existed before a function ran is a captured value and becomes an operand; what the function
builds stays inside of the body, so that a branch that is not taken is not computed.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax

from registry.errors import ArgumentError, SymopError
from registry.ops.loop_gradients import Layout
from registry.table import get
from registry.types import VarType
from registry.var import Var
from symop import graph
from symop.bodies import GraphBody, body_of
from symop.emission import substitute
from symop.graph import ARRAY, CONSTANT, SELECT, TRAINING, VARIABLE, Node, placeholder, topological
from symop.lowering import random_keys
from symop.origins import outside_scopes
from symop.symbol import Symbol, to_node

Function = Callable[..., Any]
Tree = Any
"""How JAX nests values: tuples, lists, dictionaries and what else it knows."""


def is_value(one: Any) -> bool:
    """Whether JAX must not look into ``one``."""
    return isinstance(one, Var)


def flat(values: Any) -> tuple[list[Any], Tree]:
    """The leaves of nested values, and how they are nested."""
    return jax.tree_util.tree_flatten(values, is_leaf=is_value)


def places(values: Any) -> list[str]:
    """Where each leaf is, as Python writes it."""
    paths, _ = jax.tree_util.tree_flatten_with_path(values, is_leaf=is_value)
    return [jax.tree_util.keystr(path) for path, _ in paths]


def nodes_of(values: Sequence[Any]) -> list[Node]:
    """One node for each value."""
    return [to_node(one) for one in values]


# Tracing ---------------------------------------------------------------------------------------


class Traced(NamedTuple):
    """What functions returned on placeholders.

    Attributes:
        parameters: the placeholders.
        results: for each function the nodes that it returned.
        trees: how these are nested.
        mark: what existed before has a lower serial number.
    """

    parameters: list[Node]
    results: list[list[Node]]
    trees: list[Tree]
    mark: int

    def closed(self) -> tuple[list[Node], list[GraphBody]]:
        """The captured nodes, and bodies that take them behind the parameters."""
        every = [node for each in self.results for node in each]
        captured = list(_captured(every, self.parameters, self.mark))
        inside = [placeholder(f"captured{i}", _type_of(one)) for i, one in enumerate(captured)]
        made = substitute(every, dict(zip(captured, inside, strict=True)))
        keys = random_keys(topological(made))
        supply = iter(made)
        bodies = [
            body_of([*self.parameters, *inside], [next(supply) for _ in each], keys)
            for each in self.results
        ]
        return captured, bodies


def _type_of(node: Node) -> VarType:
    return node.type.strong()


def traced(functions: Sequence[Function], types: Sequence[VarType], tree: Tree) -> Traced:
    """Run each of ``functions`` on placeholders of ``types``, nested as ``tree`` tells.

    Raises:
        ArgumentError: a function returns something else than symbols, arrays and numbers.
    """
    mark = graph.next_serial()
    parameters = [placeholder(f"x{i}", type) for i, type in enumerate(types)]
    results, trees = [], []
    for function in functions:
        with outside_scopes():  # a scope around a loop is one of the loop, not of its steps
            found, nested = flat(function(*_nested(tree, parameters)))
        results.append(nodes_of(found))
        trees.append(nested)
    return Traced(parameters, results, trees, mark)


def _nested(tree: Tree, nodes: Sequence[Node]) -> Any:
    return jax.tree_util.tree_unflatten(tree, [Symbol([one]) for one in nodes])


def _captured(results: Iterable[Node], parameters: Sequence[Node], mark: int) -> Iterable[Node]:
    """What ``results`` use from outside, in the order in which they reach it."""
    seen = set(parameters)
    for result in results:
        waiting = [result]
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if _is_outside(node, mark):
                yield node
            elif node.op not in (CONSTANT, TRAINING):
                waiting += reversed(node.operands)


def _is_outside(node: Node, mark: int) -> bool:
    """Whether ``node`` existed before, or is an array or a variable, which have no place inside."""
    if node.op is CONSTANT or node.op is TRAINING:
        return False
    if node.op is SELECT:
        return min(node.serial, node.operands[0].serial) < mark
    return node.serial < mark or node.op is VARIABLE or node.op is ARRAY


def _training(bodies: Iterable[GraphBody]) -> dict[str, Any]:
    """The training flag where a body reads it, else false."""
    reads = any(one.op is TRAINING for body in bodies for one in topological(body.results))
    return {"training": Symbol([graph.training_flag()]) if reads else False}


def _options(bodies: Sequence[GraphBody]) -> dict[str, Any]:
    return {**_training(bodies), "use_key": any(body.draws for body in bodies)}


def _symbols(nodes: Iterable[Node]) -> list[Symbol]:
    return [Symbol([node]) for node in nodes]


def _listed(found: Any) -> list[Symbol]:
    """What an operator with a varying number of results returned: a tuple where it is one."""
    symbols = found if isinstance(found, tuple) else (found,)
    return [Symbol([node], one.also) for one in symbols for node in one.nodes]


# Carries ---------------------------------------------------------------------------------------


def _carried(
    what: str, init: Any, trace: Callable[[Sequence[VarType]], tuple[Traced, Tree, list[Node]]]
) -> tuple[list[Node], Traced]:
    """The carries and the traced step, whose carries have the types of those.

    The type of a Python number follows that of the carry after a step.

    Raises:
        ArgumentError: a step nests the carries differently, or changes the type of one.
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
    """A Python number in the dtype that the carry has after a step."""
    given, wanted = carry.type, after.type
    if not given.weak or given.shape != wanted.shape or given.dtype == wanted.dtype:
        return carry
    if wanted.dtype.kind in "iub" and given.dtype.kind not in "iub":
        return carry
    cast: Node = get("cast")(carry, dtype=wanted.dtype)
    return cast


# The functions ---------------------------------------------------------------------------------


def body(function: Function, inputs: Sequence[VarType]) -> GraphBody:
    """The body of a function of symbols.

    Raises:
        ArgumentError: it uses something from outside.
    """
    tree = jax.tree_util.tree_structure((0,) * len(inputs))
    captured, bodies = traced([function], [one.strong() for one in inputs], tree).closed()
    if captured:
        raise ArgumentError(
            f"body: what the function uses must be among its inputs, got {captured[0].name or ''} "
            f"{captured[0].type} from outside".replace("  ", " ")
        )
    return bodies[0]


def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Sequence[Any]) -> Any:
    """``control_flow.cond`` on symbols."""
    leaves, tree = flat(tuple(operands))
    given = nodes_of(leaves)
    found = traced([true_fn, false_fn], [_type_of(one) for one in given], tree)
    _require_alike(found.trees)
    captured, bodies = found.closed()
    values = _symbols([*given, *captured])
    made = get("cond")(
        Symbol([to_node(pred)]),
        *values,
        true_body=bodies[0],
        false_body=bodies[1],
        **_options(bodies),
    )
    return jax.tree_util.tree_unflatten(found.trees[0], _listed(made))


def _require_alike(trees: Sequence[Tree]) -> None:
    if trees[0] != trees[1]:
        raise ArgumentError(
            f"cond: both functions must nest what they return alike, got {trees[0]} and {trees[1]}"
        )


def while_loop(cond_fn: Function, body_fn: Function, init: Any, max_steps: int | None) -> Any:
    """``control_flow.while_loop`` on symbols."""
    leaves, tree = flat(init)
    nested = jax.tree_util.treedef_tuple([tree])

    def trace(types: Sequence[VarType]) -> tuple[Traced, Tree, list[Node]]:
        found = traced([cond_fn, body_fn], types, nested)
        return found, found.trees[1], found.results[1]

    carries, found = _carried("while_loop", init, trace)
    captured, bodies = found.closed()
    condition, step = bodies
    layout = Layout(step, len(carries))
    if max_steps is not None:
        layout = _with_residuals(layout)
    values = _symbols([*carries, *captured])
    made = get("while_loop")(
        *values,
        condition=condition,
        body=layout.body,
        n_carry=len(carries),
        max_steps=max_steps,
        **_options(bodies),
    )
    return jax.tree_util.tree_unflatten(tree, _listed(made)[: len(leaves)])


def scan(f: Function, init: Any, xs: Any, length: int | None, reverse: bool) -> Any:
    """``control_flow.scan`` on symbols."""
    tree, (given, xs_tree) = jax.tree_util.tree_structure(init, is_leaf=is_value), flat(xs)
    series = nodes_of(given)
    count = steps_of([_type_of(one) for one in series], places(xs), length)
    slices = [VarType(one.type.shape[1:], one.type.dtype) for one in series]
    nested = jax.tree_util.treedef_tuple([tree, xs_tree])

    def trace(types: Sequence[VarType]) -> tuple[Traced, Tree, list[Node]]:
        found = traced([f], [*types, *slices], nested)
        parts = found.trees[0].children()
        if found.trees[0].node_data() is None or len(parts) != 2:
            raise ArgumentError(
                f"scan: a step must return a pair of carries and results, got {found.trees[0]}"
            )
        return found, parts[0], found.results[0][: parts[0].num_leaves]

    carries, found = _carried("scan", init, trace)
    captured, (step,) = found.closed()
    layout = _with_residuals(Layout(step, len(carries), len(series)))
    made = get("scan")(
        *_symbols([*carries, *series, *captured]),
        body=layout.body,
        n_carry=len(carries),
        n_xs=len(series),
        length=count,
        reverse=reverse,
        **_options([step]),
    )
    values = _listed(made)[: len(step.outputs)]
    return jax.tree_util.tree_unflatten(found.trees[0], values)


def vmap(f: Function, args: Sequence[Any]) -> Any:
    """``vectorizing.vmap`` on symbols, all of whose arguments are sliced along their first axis."""
    leaves, tree = flat(tuple(args))
    series = nodes_of(leaves)
    steps_of([_type_of(one) for one in series], places(tuple(args)), None, "vmap: argument")
    slices = [VarType(one.type.shape[1:], one.type.dtype) for one in series]
    found = traced([f], slices, tree)
    captured, (body,) = found.closed()
    values = _symbols([*series, *captured])
    made = get("vmap")(*values, body=body, n_mapped=len(series), **_options([body]))
    return jax.tree_util.tree_unflatten(found.trees[0], _listed(made))


def steps_of(
    series: Sequence[VarType], names: Sequence[str], length: int | None, what: str = "scan: xs"
) -> int:
    """How many steps a scan takes, or how many slices there are.

    Raises:
        ArgumentError: that is told neither by a series nor by ``length``, or differently.
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
        raise ArgumentError(f"{owner}: all must tell the same number of steps, got {told}")
    return next(iter(counts.values()))


def _with_residuals(layout: Layout) -> Layout:
    """The loop that keeps what its gradient reads; as it is where it has no gradient."""
    if not any(one.differentiable for one in layout.body.outputs):
        return layout
    try:
        return layout.with_residuals()
    except SymopError:
        return layout
