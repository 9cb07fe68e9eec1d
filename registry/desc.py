"""OpDesc, VarDesc, BlockDesc, ProgramDesc, OpProto: plain records, independent of JAX."""

from typing import Any

import msgspec

FORMAT_VERSION = 1
SUB_BLOCK = "block"
"""The key of an attribute value that refers to a body: a further block of the program, by index."""

Names = list[str]
"""The variables in one slot: one name, several for a variadic slot, none for an absent one."""


class OpDesc(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One call of an operator: the variables in its slots, and its attributes.

    Example:
        >>> OpDesc("scale", {"x": ["a"]}, {"out": ["b"]}, {"scale": -1.0}).type
        'scale'
    """

    type: str
    inputs: dict[str, Names] = {}
    outputs: dict[str, Names] = {}
    attrs: dict[str, Any] = {}
    name: str | None = None
    """The name that the user gave the call; a call named by the user is never simplified away."""
    site: str | None = None
    """Where the user built the call, as ``file:line``, the file without its directories."""
    gradient_of: str | None = None
    """In a gradient, the forward operator that the call belongs to."""


class VarDesc(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One variable: its name and the known properties of its value, whose type may be unknown."""

    name: str
    shape: list[int] | None = None
    dtype: str | None = None
    kind: str = "lod_tensor"
    role: str = "intermediate"
    """``argument`` (fed), ``parameter`` (kept, trained), ``state`` (kept) or ``intermediate``."""
    stop_gradient: bool = False
    """Whether gradients stop at the variable."""
    attrs: dict[str, str] = {}

    @property
    def persistable(self) -> bool:
        """Whether the value outlives a run."""
        return self.role in ("parameter", "state")


class BlockDesc(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Variables and the operators on them, in an executable order."""

    vars: list[VarDesc] = []
    ops: list[OpDesc] = []
    parent: int = -1
    updates: dict[str, str] = {}
    """Maps a variable that outlives a run to the variable whose value it holds afterwards."""
    fetch: Names = []
    """The results of a sub-block; the program holds those of the first block."""

    def find_var(self, name: str) -> VarDesc | None:
        """Returns the variable called ``name``, or None."""
        return next((one for one in self.vars if one.name == name), None)

    def var(self, name: str) -> VarDesc:
        """Returns the variable called ``name``.

        Raises:
            KeyError: the block has no such variable.
        """
        variable = self.find_var(name)
        if variable is None:
            raise KeyError(f"block: a variable must be declared in it, got {name!r}")
        return variable


class ProgramDesc(msgspec.Struct, forbid_unknown_fields=True):
    """Blocks, the first of which is the program; ``fetch`` names its results."""

    format: str = "symop"
    version: int = FORMAT_VERSION
    blocks: list[BlockDesc] = []
    fetch: Names = []


class VarProto(msgspec.Struct, omit_defaults=True):
    """One slot or output in an operator's proto."""

    name: str
    comment: str = ""
    duplicable: bool = False
    """Whether the slot takes any number of variables."""
    intermediate: bool = False
    """Whether this is an output that only the gradient needs, hidden from callers."""
    dispensable: bool = False
    """Whether the slot may be left out."""


class AttrProto(msgspec.Struct, omit_defaults=True):
    """One attribute in an operator's proto."""

    name: str
    type: str
    comment: str = ""
    required: bool = False
    default: Any = None


class OpProto(msgspec.Struct, omit_defaults=True):
    """Inputs, outputs and attributes of an operator: all that is needed to write calls of it."""

    type: str
    inputs: list[VarProto] = []
    outputs: list[VarProto] = []
    attrs: list[AttrProto] = []
    comment: str = ""
