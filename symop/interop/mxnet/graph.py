"""The graph of an MXNet symbol: nodes with string attributes, as in MXNet's files and scripts.

Such a graph has no shapes. Once the shapes of its variables are known, it can be translated to a
graph of the catalogue (``translating``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import Operator

Entry = tuple["Node", int]
"""One output of a node."""


class Node:
    """A variable, or a call of an operator.

    Attributes:
        operator: the operator, or None for a variable.
        name: the name, unique within a graph if its author made it so.
        attributes: strings by name: the operator's, and the user's between double underscores.
        inputs: the inputs of the call.
        subgraphs: heads of the graphs called by control flow.
    """

    __slots__ = ("attributes", "inputs", "name", "operator", "subgraphs")

    def __init__(
        self,
        operator: Operator | None,
        name: str,
        attributes: Mapping[str, str] | None = None,
        inputs: Sequence[Entry] = (),
        subgraphs: Sequence[Sequence[Entry]] = (),
    ) -> None:
        """Creates a node, checking attributes and inputs.

        Raises:
            MXNetError: an attribute is unknown, missing or malformed, or the number of inputs is
                wrong.
        """
        self.operator, self.name = operator, name
        self.attributes, self.inputs = dict(attributes or {}), list(inputs)
        self.subgraphs = [list(one) for one in subgraphs]
        if operator is not None:
            self._require_inputs(operator)

    def _require_inputs(self, operator: Operator) -> None:
        try:
            names = operator.present(self.values)
        except MXNetError as error:
            raise MXNetError(f"{error} (node {self.name!r})") from None
        if len(names) != len(self.inputs):
            raise MXNetError(
                f"{operator.name}: {len(names)} inputs must be given ({', '.join(names)}), got "
                f"{len(self.inputs)} (node {self.name!r})"
            )

    def __repr__(self) -> str:
        return f"<{self.operator.name if self.operator else 'variable'} {self.name}>"

    @property
    def is_variable(self) -> bool:
        """Whether the node is a variable, which is fed or kept."""
        return self.operator is None

    @property
    def values(self) -> Mapping[str, Any]:
        """The operator's attributes, parsed."""
        assert self.operator is not None
        return self.operator.read(self.attributes, len(self.inputs))

    @property
    def visible(self) -> int:
        """The number of visible outputs."""
        return 1 if self.operator is None else self.operator.visible(self.values)

    @property
    def total(self) -> int:
        """The number of all outputs, including hidden ones."""
        return 1 if self.operator is None else len(self.operator.outputs(self.values))

    def output_name(self, index: int) -> str:
        """The name of an output; that of a variable is the variable's name."""
        if self.operator is None:
            return self.name
        return f"{self.name}_{self.operator.outputs(self.values)[index]}"

    def states(self) -> Iterator["Node"]:
        """The variables that this call updates in training."""
        if self.operator is None or not self.operator.states:
            return
        names = self.operator.present(self.values)
        for name, (node, _) in zip(names, self.inputs, strict=True):
            if name in self.operator.states and node.is_variable:
                yield node


def describe_initial(operator: Operator, names: Sequence[str], inputs: Sequence[Entry]) -> None:
    """Attaches to variables the initializers that ``operator`` requires for its inputs."""
    for name, (node, _) in zip(names, inputs, strict=False):
        if node.is_variable and name in operator.initial:
            node.attributes.setdefault("__init__", operator.initial[name])


def topological(heads: Iterable[Entry]) -> list[Node]:
    """All nodes below ``heads``, inputs before their readers, in MXNet's depth-first order."""
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, int]] = [(node, 0) for node, _ in reversed(list(heads))]
    while stack:
        node, at = stack.pop()
        if at == 0:
            if id(node) in seen:
                continue
            seen.add(id(node))
        if at < len(node.inputs):
            stack.append((node, at + 1))
            below = node.inputs[at][0]
            if id(below) not in seen:
                stack.append((below, 0))
        else:
            order.append(node)
    return order


def state_ids(nodes: Iterable[Node]) -> set[int]:
    """The ids of the variables that are auxiliary states of a call."""
    return {id(one) for node in nodes for one in node.states()}


def copied(heads: Sequence[Entry], replaced: Mapping[int, Entry] | None = None) -> list[Entry]:
    """Copies a graph, replacing some variables by other entries.

    Args:
        heads: the heads of the graph.
        replaced: replacements of variables, by the variable's id.
    """
    taken, made = replaced or {}, dict[int, Node]()

    def entry(node: Node, index: int) -> Entry:
        return taken[id(node)] if id(node) in taken else (made[id(node)], index)

    for node in topological(heads):
        copy = made[id(node)] = Node(None, node.name, node.attributes)
        copy.operator, copy.subgraphs = node.operator, node.subgraphs
        copy.inputs = [entry(*one) for one in node.inputs]
    return [entry(*one) for one in heads]


def without_casts(heads: Sequence[Entry]) -> list[Entry]:
    """The graph without the casts inserted by automatic mixed precision, as saved by MXNet."""
    casts = ("amp_cast", "amp_multicast")
    nodes = topological(heads)
    if not any(node.operator is not None and node.operator.name in casts for node in nodes):
        return list(heads)
    made: dict[int, Node] = {}

    def entry(node: Node, index: int) -> Entry:
        while node.operator is not None and node.operator.name in casts:
            node, index = node.inputs[index]
        return made[id(node)], index

    for node in nodes:
        if node.operator is None or node.operator.name not in casts:
            copy = made[id(node)] = Node(None, node.name, node.attributes)
            copy.operator, copy.subgraphs = node.operator, node.subgraphs
            copy.inputs = [entry(*one) for one in node.inputs]
    return [entry(*one) for one in heads]


def argument_names(heads: Iterable[Entry]) -> list[str]:
    """Names of the variables that are not auxiliary states."""
    nodes = topological(heads)
    states = state_ids(nodes)
    return [node.name for node in nodes if node.is_variable and id(node) not in states]


def state_names(heads: Iterable[Entry]) -> list[str]:
    """Names of the variables that training updates without gradients."""
    nodes = topological(heads)
    states = state_ids(nodes)
    return [node.name for node in nodes if id(node) in states]
