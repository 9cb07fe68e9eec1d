"""OpDesc, VarDesc, BlockDesc and ProgramDesc: a program as records, free of JAX and of behavior."""

from typing import Any

import msgspec

FORMAT_VERSION = 1

Names = list[str]
"""The variables in one slot: one name, several for a variadic slot, none for an absent one."""


class OpDesc(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One call of an operator: which variables fill its slots, and its attributes.

    Example:
        >>> OpDesc("scale", {"x": ["a"]}, {"out": ["b"]}, {"scale": -1.0}).type
        'scale'
    """

    type: str
    inputs: dict[str, Names] = {}
    outputs: dict[str, Names] = {}
    attrs: dict[str, Any] = {}
    name: str | None = None
    """The name that the user gave the call; a call that a user named is never simplified away."""
    site: str | None = None
    """Where the user built it, as ``file:line``, the file without its folders."""
    gradient_of: str | None = None
    """In a gradient, the forward operator that it belongs to."""


class VarDesc(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One variable: its name and what is known of its value. Shape or dtype may be unknown."""

    name: str
    shape: list[int] | None = None
    dtype: str | None = None
    kind: str = "lod_tensor"
    role: str = "intermediate"
    """``argument``, ``state`` or ``intermediate``."""
    attrs: dict[str, str] = {}


class BlockDesc(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Variables and the operators over them, in an order in which they can run."""

    vars: list[VarDesc] = []
    ops: list[OpDesc] = []
    parent: int = -1


class ProgramDesc(msgspec.Struct, forbid_unknown_fields=True):
    """Blocks, the first of which is the program; ``fetch`` names what it computes."""

    format: str = "symop"
    version: int = FORMAT_VERSION
    blocks: list[BlockDesc] = []
    fetch: Names = []
