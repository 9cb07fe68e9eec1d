"""The graph of a model of whole sequences, as a graph that computes a few positions at a time."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from registry.errors import ArgumentError, FeedError, ShapeError, SymopError
from registry.operator.operator import Operator
from registry.shapes import default_int
from registry.table import get
from registry.types import Shape, VarType
from symop.generating.positions import require_separate_positions
from symop.graph.emission import apply
from symop.graph.inference import infer_variables
from symop.graph.naming import variables_of
from symop.graph.nodes import (
    TRAINING,
    Node,
    built_at,
    by_age,
    constant,
    copied_origin,
    placeholder,
    topological,
    variable,
)
from symop.graph.rewriting import Images, substitute


class StepGraph(NamedTuple):
    """A graph of a few positions.

    Attributes:
        result: the values at these positions.
        before: the variable of the number of positions before them, one for each example.
        caches: the variables of what earlier positions have left.
        updated: the new values of the caches.
    """

    result: Node
    before: Node
    caches: list[Node]
    updated: list[Node]


def by_steps(root: Node, tokens: str, shape: tuple[int, int], length: int) -> StepGraph:
    """Returns the graph of ``root`` for some positions of each example.

    Calls whose operators declare a ``stepwise`` rule are replaced by it; all others must compute
    each position by itself.

    Args:
        root: the value of all positions, of shape ``(batch, positions, ...)``.
        tokens: the name of the variable of shape ``(batch, positions)``.
        shape: the numbers of examples and of positions at a time.
        length: the number of positions that caches hold.

    Raises:
        ArgumentError: a call combines positions otherwise.
        FeedError: no variable is called ``tokens``.
        ShapeError: the graph is not one of any number of positions.
    """
    # Generation predicts: what training alone computes, such as dropout, is left out.
    whole = _predicting(root)
    root = _retyped(whole, tokens, shape)
    steps = _Steps(shape[0], length, tokens)
    image = Images()
    for node in by_age(topological([root])):
        replaced = steps.replaced(node, image)
        if replaced is None:
            image.rebuild(node)
        else:
            image[node] = replaced
    require_separate_positions(_retyped(whole, tokens, (1, _SOME)), tokens, steps.is_stepwise)
    result = image.value(root)
    if result.type.shape[:2] != shape:
        raise _baked(tokens, shape, f"a result of shape {result.type.shape}")
    return StepGraph(result, steps.before, steps.caches, steps.updated)


_SOME = 6
"""A number of positions at which the dependence between positions is examined."""


def _predicting(root: Node) -> Node:
    """Returns the graph for prediction, without what only training needs, whatever its name."""
    image, off = Images(), constant(False)
    for node in by_age(topological([root])):
        if node.op is TRAINING:
            image[node] = off
        elif isinstance(node.op, Operator) and any(one.op is TRAINING for one in node.operands):
            with copied_origin(node.origin):
                image[node] = apply(node.op, image.inputs(node), node.attributes)
        else:
            image.rebuild(node)
    return image.value(root)


def _retyped(root: Node, tokens: str, shape: tuple[int, int]) -> Node:
    """Returns the graph for tokens of ``shape``, whatever it declares."""
    variables = variables_of([root])
    if tokens not in variables:
        raise FeedError(
            f"Generator: tokens= must name the variable of the tokens, one of "
            f"{', '.join(variables) or 'none'}, got {tokens!r}"
        )
    own = variables[tokens]
    _, dtype, role, extra = own.attributes
    free = variable(tokens, None, dtype, role, extra)
    try:
        (untyped,) = substitute([root], {own: free}) if own is not free else [root]
        (typed,) = infer_variables([untyped], {tokens: (shape, dtype)})
    except ShapeError as error:
        raise _baked(tokens, shape, str(error)) from error
    return typed


def _baked(tokens: str, shape: Shape, got: str) -> ShapeError:
    return ShapeError(
        f"Generator: the graph must compute any number of positions, and does not with {tokens!r} "
        f"of shape {shape}: {got}"
    )


class _Steps:
    """The calls that caches replace, and the caches."""

    def __init__(self, batch: int, length: int, tokens: str) -> None:
        self._batch, self._length, self._tokens = batch, length, tokens
        self.before = placeholder(f"{tokens}@before", VarType((batch,), default_int()))
        self.caches: list[Node] = []
        self.updated: list[Node] = []
        self._handled: set[tuple[Any, ...]] = set()

    def is_stepwise(self, node: Node) -> bool:
        """Whether a call of the same operator and attributes has been replaced."""
        return (node.op, node.attributes) in self._handled

    def replaced(self, node: Node, image: Images) -> Node | list[Node] | None:
        """Returns the values of a call with caches, or None if it is computed as it is."""
        rule = node.op.stepwise_rule if isinstance(node.op, Operator) else None
        if rule is None:
            return None
        assert isinstance(node.op, Operator)
        with copied_origin(node.origin):
            try:
                result = rule(image.inputs(node), node.attributes, (self.before, self._cached()))
            except SymopError as error:
                raise type(error)(f"{node.op.name}: {error}{built_at(node.origin)}") from error
        if result is None:
            return None
        self._handled.add((node.op, node.attributes))
        found: Node = result
        return found if node.op.single else [found]

    def _cached(self) -> Callable[[str, Node], Node]:
        """Returns a function that writes the values of a call into new caches."""

        def write(name: str, value: Node) -> Node:
            batch, *middle, _, width = value.type.shape
            if batch != self._batch:
                raise ShapeError(f"{name} must have an entry for each of {self._batch} examples, "
                                 f"got shape {value.type.shape}")  # fmt: skip
            type = VarType((batch, *middle, self._length, width), value.type.dtype)
            cache = placeholder(f"{self._tokens}@{name}{len(self.caches)}", type)
            updated: Any = get("write_steps")(cache, value, self.before)
            self.caches.append(cache)
            self.updated.append(updated)
            return self.updated[-1]

        return write


def require_result(root: Sequence[Node]) -> Node:
    """Returns the only value of a model.

    Raises:
        ArgumentError: there are several.
    """
    if len(root) != 1:
        raise ArgumentError(f"Generator: there must be one value, the logits, got {len(root)}")
    return root[0]
