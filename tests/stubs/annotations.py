"""Types and defaults of attributes, as source text of a stub."""

import ast
import types
import typing

import numpy as np

from registry.operator.attributes import ConvertedBy
from registry.operator.bodies import Body

SIMPLE = {
    bool: "bool", int: "int", float: "float", complex: "complex", str: "str",
    type(None): "None", np.dtype: "DTypeLike", Body: "Body",
}  # fmt: skip


def accepted(annotation):
    """The type of the values that an attribute accepts, which its converter makes canonical."""
    if annotation in SIMPLE:
        return SIMPLE[annotation]
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        own = any(isinstance(one, ConvertedBy) for one in members[1:])
        return converted(members[0]) if own else accepted(members[0])
    if origin in (typing.Union, types.UnionType):
        return joined(map(accepted, members))
    if origin is typing.Literal and all(isinstance(one, int) for one in members):
        return "int"  # a number is seldom known to a type checker
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, members))}]"
    if origin in (tuple, list):
        return f"Sequence[{joined(accepted(one) for one in members if one is not ...)}]"
    raise TypeError(f"no stub has the type {annotation!r}")


def converted(declared):
    """The type of the values that an attribute with a converter of its own accepts."""
    text = accepted(declared)
    return {"Body": "Body", "Sequence[int]": "int | Sequence[int]"}.get(text, "Any")


def joined(texts):
    """A union, without duplicates, None last."""
    names = dict.fromkeys(one for text in texts for one in split(text))
    return " | ".join(sorted(names, key=lambda one: one == "None"))


def split(text):
    """The members of a union."""
    tree = ast.parse(text, mode="eval").body
    members = []
    while isinstance(tree, ast.BinOp):
        members.append(ast.unparse(tree.right))
        tree = tree.left
    return [ast.unparse(tree), *reversed(members)]


def default(value):
    """The text of a default, ``...`` for one that is no literal."""
    try:
        return repr(value) if ast.literal_eval(repr(value)) == value else "..."
    except (ValueError, SyntaxError):
        return "..."
