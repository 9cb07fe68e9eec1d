"""The symbol of an eager value: what the tape knows of it, as a graph over variables."""

from collections import defaultdict

from registry.errors import GradientError
from registry.types import KEY_TYPE
from symop.emission import substitute
from symop.entries import Custom, Entry, Link, Origin
from symop.graph import Node, fresh_key, topological, variable
from symop.symbol import Symbol


def symbol_of(link: Link) -> Symbol:
    """The graph that computes a recorded value; its variables are ``var0``, ``var1``, ...

    Raises:
        GradientError: a function of one's own lies on the way, which is no graph.
    """
    link = _computed(link)
    needed = _needed(link)
    built: dict[tuple[int, Node], Node] = {}
    variables: dict[object, Node] = {}
    for entry in sorted(needed, key=lambda one: one.serial):
        outputs = needed[entry]
        order = set(topological(outputs))
        inputs = {
            node: _stand_in(entry, node, origin, built, variables)
            for node, origin in zip(entry.recorded.inputs, entry.origins, strict=True)
            if node in order
        }
        found = substitute(outputs, inputs)
        built.update({(entry.serial, node): one for node, one in zip(outputs, found, strict=True)})
    return Symbol([built[link.entry.serial, link.node]])


def _computed(link: Link) -> Link:
    """Where a graph computes the value of ``link``."""
    found: Link | None = link
    while found is not None and isinstance(found.entry, Custom):
        found = found.entry.computed
    if found is None:
        raise GradientError(
            "get_symbol: the value must be made of operators, but an autograd.Function lies on "
            "the way"
        )
    return found


def _needed(link: Link) -> dict[Entry, list[Node]]:
    """The entries that a value is computed by, and which of their values it needs."""
    needed: dict[Entry, list[Node]] = defaultdict(list)
    waiting = [link]
    while waiting:
        entry, node = _computed(waiting.pop())
        assert isinstance(entry, Entry)
        if node in needed[entry]:
            continue
        needed[entry].append(node)
        waiting += [one for one in entry.origins if isinstance(one, Link)]
    return needed


def _stand_in(
    entry: Entry,
    node: Node,
    origin: Origin,
    built: dict[tuple[int, Node], Node],
    variables: dict[object, Node],
) -> Node:
    if isinstance(origin, Link):
        link = _computed(origin)
        return built[link.entry.serial, link.node]
    if node.type is KEY_TYPE:
        return fresh_key()
    key = (entry.serial, node) if origin is None else id(origin)
    if key not in variables:
        name = f"var{len(variables)}"
        variables[key] = variable(name, node.type.shape, node.type.dtype)
    return variables[key]
