"""OpDesc, VarDesc, BlockDesc, ProgramDesc, OpProto: records, free of JAX and of behavior."""

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
    """``argument`` (fed), ``parameter`` (kept, trained), ``state`` (kept) or ``intermediate``."""
    stop_gradient: bool = False
    """Whether no gradient flows through it."""
    attrs: dict[str, str] = {}

    @property
    def persistable(self) -> bool:
        """Whether its value outlives a run."""
        return self.role in ("parameter", "state")


class BlockDesc(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Variables and the operators over them, in an order in which they can run."""

    vars: list[VarDesc] = []
    ops: list[OpDesc] = []
    parent: int = -1
    updates: dict[str, str] = {}
    """For a variable that outlives a run, the variable whose value it holds after the run."""
    fetch: Names = []
    """What a sub-block computes; that of the first block stands in the program."""

    def find_var(self, name: str) -> VarDesc | None:
        """The variable called ``name``, or None."""
        return next((one for one in self.vars if one.name == name), None)

    def var(self, name: str) -> VarDesc:
        """The variable called ``name``.

        Raises:
            KeyError: the block has none.
        """
        found = self.find_var(name)
        if found is None:
            raise KeyError(f"block: a variable must be declared in it, got {name!r}")
        return found


class ProgramDesc(msgspec.Struct, forbid_unknown_fields=True):
    """Blocks, the first of which is the program; ``fetch`` names what it computes."""

    format: str = "symop"
    version: int = FORMAT_VERSION
    blocks: list[BlockDesc] = []
    fetch: Names = []


class VarProto(msgspec.Struct, omit_defaults=True):
    """One slot or output in an operator's proto."""

    name: str
    comment: str = ""
    duplicable: bool = False
    """Whether it takes any number of variables."""
    intermediate: bool = False
    """Whether it is an output that only the gradient needs: callers do not see it."""
    dispensable: bool = False
    """Whether it may be left out."""


class AttrProto(msgspec.Struct, omit_defaults=True):
    """One attribute in an operator's proto."""

    name: str
    type: str
    comment: str = ""
    required: bool = False
    default: Any = None


class OpProto(msgspec.Struct, omit_defaults=True):
    """What an operator takes and gives: what a person or a program needs to write calls of it."""

    type: str
    inputs: list[VarProto] = []
    outputs: list[VarProto] = []
    attrs: list[AttrProto] = []
    comment: str = ""
