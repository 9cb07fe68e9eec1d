"""The tree of steps that eager code has taken, and the programs that were run from each."""

from typing import Any

import jax
from jax import lax

from registry.operator import Operator
from registry.types import VarType
from registry.var import Attributes
from symop.eager_programs import Lean, Program, Recorded
from symop.graph import Node
from symop.lowering import bare_kernel, type_of

_STEPS = 100_000
"""When the tree has so many steps it is planted anew."""
PROGRAM = 100
"""A program takes as much memory as so many steps."""


class Call:
    """An operator with its attributes; one object for all equal ones, so that it is a quick key.

    Attributes:
        operator: the operator, of a fixed number of outputs.
        attributes: canonical values.
        make: the class of the results.
        shown: the outputs that a call returns.
        plain: whether it takes arrays alone, neither random keys nor states, and returns one.
        alone: the kernel, compiled once for the types of its inputs, which it refuses if they do
            not fit.
    """

    __slots__ = ("alone", "attributes", "make", "operator", "plain", "shown")

    def __init__(self, operator: Operator, attributes: Attributes, make: type[Any]) -> None:
        """A call of ``operator`` whose results are of class ``make``."""
        self.operator, self.attributes, self.make = operator, attributes, make
        self.shown = tuple(operator.visible)
        self.plain = operator.direct_count >= 0 and operator.single
        self.alone = jax.jit(self._checked)

    def _checked(self, *values: Any) -> Any:
        (out,) = self.operator.infer(tuple(map(type_of, values)), self.attributes)
        result = bare_kernel(self.operator, self.attributes)(*values)
        return lax.convert_element_type(result, out.dtype) if _is_weaker(result, out) else result


def _is_weaker(result: Any, out: VarType) -> bool:
    """Whether JAX takes a result for a Python number's where the operator's types do not."""
    return isinstance(result, jax.Array) and bool(jax.typeof(result).weak_type) and not out.weak


# The tree --------------------------------------------------------------------------------------


class Step:
    """A place in the tree: what was called so far.

    Attributes:
        children: the steps that may follow.
        added: the values that this step adds to those of the segment.
        type: the type of the first of them.
        leaf: whether it is an array from outside, or a random key.
        active: whether a derivative by it may be asked for.
        cut: those of its values that are no functions of what is differentiated.
        by: of a step that takes gradients, the places by which; none where it could not.
        programs: what was run from here, by the values that were wanted and the heads of backward
            passes that did not keep the record.
        numbers: for each call, how many different numbers were among its inputs.
    """

    __slots__ = (
        "active", "added", "by", "children", "cut", "leaf", "numbers", "parent", "programs", "type",
    )  # fmt: skip

    def __init__(
        self,
        parent: "Step | None",
        added: tuple[Node, ...],
        leaf: bool = False,
        active: bool = False,
        cut: tuple[Node, ...] = (),
    ) -> None:
        """The step after ``parent``."""
        self.cut = cut
        self.parent, self.added, self.leaf, self.active = parent, added, leaf, active
        self.type = added[0].type if added else None
        self.by: tuple[int, ...] = ()
        self.children: dict[Any, Step] = {}
        self.programs: dict[Any, Program | Recorded | Lean] = {}
        self.numbers: dict[Call, int] = {}

    def path(self) -> list["Step"]:
        """The steps from the first one to this one."""
        steps: list[Step] = []
        at: Step | None = self
        while at is not None:
            steps.append(at)
            at = at.parent
        return steps[::-1]


class Tree:
    """The roots, by what the meaning of calls depends on beside their inputs."""

    def __init__(self) -> None:
        self.roots: dict[Any, Step] = {}
        self.count = 0

    def root(self, taped: bool, training: bool) -> Step:
        """Where a segment starts, in the present mode of JAX."""
        if self.count > _STEPS:
            self.roots, self.count = {}, 0
        key = taped, training, jax.config.jax_enable_x64  # type: ignore[attr-defined]
        found = self.roots.get(key)
        return self.roots.setdefault(key, Step(None, (), False)) if found is None else found


tree = Tree()
