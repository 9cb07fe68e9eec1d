"""Shardings of variables: strings attached to them, as initial values are."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

from registry.errors import ArgumentError, AttributeValueError, nearest
from registry.shardings import Sharding, as_sharding, parse_sharding, sharding_text
from symop.graph.naming import variables_of
from symop.graph.nodes import Node, variable
from symop.graph.origins import copied_origin
from symop.graph.rewriting import substitute

ATTRIBUTE = "sharding"
"""The key of the string."""
Rules = Mapping[str, Any]
"""Shardings by name of variable, or by pattern such as ``*_weight``; the first match counts."""


def sharding_attribute(what: str, sharding: Any, ndim: int | None = None) -> dict[str, str]:
    """Returns the string that attaches ``sharding`` to a variable; nothing for None.

    Raises:
        ArgumentError: ``sharding`` is not one, or not one of an array of ``ndim`` axes.
    """
    if sharding is None:
        return {}
    return {ATTRIBUTE: sharding_text(_checked(what, sharding, ndim))}


def _checked(what: str, sharding: Any, ndim: int | None) -> Sharding:
    try:
        result = as_sharding(sharding)
    except AttributeValueError as error:
        raise ArgumentError(f"{what}: the sharding {error}") from None
    if ndim is not None and len(result) > ndim:
        raise ArgumentError(
            f"{what}: the sharding must have at most {ndim} entries, the number of axes, "
            f"got {result}"
        )
    return result


def declared_sharding(attributes: Mapping[str, str]) -> Sharding | None:
    """Returns the sharding among the strings of a variable, or None.

    Raises:
        AttributeValueError: the string is not a sharding.
    """
    text = attributes.get(ATTRIBUTE)
    return None if text is None else parse_sharding(text)


def sharding_of(node: Node) -> Sharding | None:
    """Returns the sharding of a variable, or None if none is declared."""
    return declared_sharding(dict(node.attributes[3]))


def shardings_of(outputs: Sequence[Node]) -> dict[str, Sharding]:
    """Returns the declared shardings of the variables of a graph."""
    declared = {name: sharding_of(node) for name, node in variables_of(outputs).items()}
    return {name: one for name, one in declared.items() if one is not None}


def ndims_of(outputs: Sequence[Node]) -> dict[str, int | None]:
    """Returns the number of axes of each variable of a graph, None where it is not known."""
    return {name: ndim_of(node) for name, node in variables_of(outputs).items()}


def ndim_of(variable: Node) -> int | None:
    """Returns the number of axes of a variable, None where it is not known."""
    return None if variable.types is None else len(variable.types[0].shape)


def resolve(what: str, rules: Rules, ndims: Mapping[str, int | None]) -> dict[str, Sharding]:
    """Returns the sharding of each variable that a rule matches.

    Args:
        what: the caller, for messages.
        rules: the rules.
        ndims: the number of axes of each variable, None where it is not known.

    Raises:
        ArgumentError: ``rules`` are no mapping, one matches no variable, or its sharding is
            invalid.
    """
    if not isinstance(rules, Mapping) or not all(isinstance(one, str) for one in rules):
        raise ArgumentError(f"{what}: rules must map names or patterns to shardings, got {rules!r}")
    result: dict[str, Sharding] = {}
    for pattern, sharding in rules.items():
        matched = [pattern] if pattern in ndims else fnmatch.filter(ndims, pattern)
        if not matched:
            raise ArgumentError(
                f"{what}: a rule must match a variable, got {pattern!r}{nearest(pattern, ndims)}"
            )
        for name in matched:
            if name not in result:
                result[name] = _checked(
                    f"{what}: the rule {pattern!r} for {name!r}", sharding, ndims[name]
                )
    return result


def undeclared(outputs: Sequence[Node], shardings: Mapping[str, Sharding]) -> dict[str, Sharding]:
    """Returns those of ``shardings`` whose variables declare none."""
    declared = shardings_of(outputs)
    return {name: one for name, one in shardings.items() if name not in declared}


def with_shardings(outputs: Sequence[Node], shardings: Mapping[str, Sharding]) -> list[Node]:
    """Rebuilds ``outputs`` over variables with these shardings."""
    changed: dict[Node, Node] = {}
    for name, node in variables_of(outputs).items():
        if name in shardings and sharding_of(node) != shardings[name]:
            with copied_origin(node.origin):
                changed[node] = _resharded(node, shardings[name])
    return substitute(outputs, changed) if changed else list(outputs)


def _resharded(node: Node, sharding: Sharding) -> Node:
    shape, dtype, role, extra = node.attributes
    strings = tuple(sorted({**dict(extra), ATTRIBUTE: sharding_text(sharding)}.items()))
    kind = node.types[0].kind if node.types is not None else None
    assert node.name is not None
    return variable(node.name, shape, dtype, role, strings, *([] if kind is None else [kind]))
