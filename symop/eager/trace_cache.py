"""The trace cache: a tree of recorded steps of eager code, with the programs that they run."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax import lax

from registry.caches import Limits, hold, store, weight_of
from registry.operator.operator import Operator
from registry.types import VarType
from registry.var import Attributes
from symop.eager.programs import Lean, LinearizedProgram, SegmentProgram, kernel_of
from symop.eager.settings import JaxSettings
from symop.graph.nodes import Node
from symop.lowering.sharing import number_places
from symop.lowering.steps import bare_kernel, type_of

_KEPT = 0.5
"""The fraction of the limit to which the tree is pruned."""
PROGRAM = 100
"""The memory of a program, in steps."""


class InternedCall:
    """An operator with its attributes, interned so that it hashes and compares by identity.

    Attributes:
        operator: the operator, with a fixed number of outputs.
        attributes: their canonical values.
        make: the class of the results.
        shown: the indices of the outputs that a call returns.
        plain: whether it takes only arrays (no random keys or states) and returns one array.
        alone: the kernel, compiled once for each combination of input types; it raises an error for
            types that the operator rejects.
        used: the program store's time at the last call of ``alone``.
        once: whether it has not run, takes arrays only, and probably runs only once, since many
            calls were made that differ from it in numbers.
    """

    __slots__ = (
        "__weakref__", "_jitted", "alone", "attributes", "make", "once", "operator", "plain",
        "shown", "used",
    )  # fmt: skip

    def __init__(
        self, operator: Operator, attributes: Attributes, make: type[Any], once: bool = False
    ) -> None:
        """Creates a call of ``operator`` whose results are of class ``make``."""
        self.operator, self.attributes, self.make = operator, attributes, make
        explicit = all(slot.role in ("input", "parameter") for slot in operator.slots)
        self.once = once and operator.single and explicit
        self.shown = tuple(operator.visible)
        self.plain = operator.direct_count >= 0 and operator.single
        self.used = 0
        self._jitted: Any = None
        self.alone: Callable[..., Any] = self._first

    def _first(self, *values: Any) -> Any:
        """Chooses the kernel, with attributes as constants or numbers as operands, and runs it."""
        own = self.attributes != self.operator.defaults
        if own and number_places(self.operator, self.attributes):
            self.alone = self.with_numbers
        else:
            self.alone = self._jitted = jax.jit(self._checked)
            store.add(self)
        return self.alone(*values)

    def _checked(self, *values: Any) -> Any:
        (out,) = self.operator.infer(tuple(map(type_of, values)), self.attributes)
        result = bare_kernel(self.operator, self.attributes)(*values)
        return lax.convert_element_type(result, out.dtype) if _is_weaker(result, out) else result

    def with_numbers(self, *values: Any) -> Any:
        """Runs the kernel with numbers as operands; returns one array."""
        types = tuple([None if one is None else type_of(one) for one in values])
        (out,) = self.operator.infer(types, self.attributes)
        program, numbers = kernel_of(self.operator, self.attributes, types)
        result = program(*values, *numbers)
        return lax.convert_element_type(result, out.dtype) if _is_weaker(result, out) else result

    # Interface of the program store

    def count(self) -> int:
        """Returns the number of programs that ``alone`` has compiled."""
        return 0 if self._jitted is None else self._jitted._cache_size()

    def weight(self) -> int:
        """Returns the estimated size of these programs, in bytes."""
        return self.count() * weight_of(1)

    def forget(self) -> None:
        """Drops these programs."""
        self._jitted, self.alone = None, self._first


def _is_weaker(result: Any, out: VarType) -> bool:
    """Whether a result is weakly typed in JAX but not according to the operator's inference."""
    return isinstance(result, jax.Array) and bool(jax.typeof(result).weak_type) and not out.weak


# The tree --------------------------------------------------------------------------------------


class TraceNode:
    """A node of the trace cache: one call, leaf or gradient after those of its ancestors.

    Attributes:
        children: the known next steps, by key.
        added: the graph nodes of the values that this step adds to the segment.
        type: the type of the first of them.
        leaf: whether it adds an array from outside the segment, or a random key.
        active: whether it is a leaf with respect to which derivatives may be taken.
        cut: the values among ``added`` that carry no derivative.
        careful: whether all JAX settings must be compared with those of the segment.
        raises_rank: whether the call broadcasts arrays of different numbers of axes.
        by: for a step that takes gradients, the indices of the values with respect to which they
            are taken; empty if ``tape`` must compute them.
        formal: the heads of differentiable gradients, which are functions of all inputs of the
            heads, even of those that they do not read.
        programs: the programs of segments that end here, by the requested values and the heads of
            backward passes that did not retain the record.
        numbers: for each call, the count of different numbers among its inputs.
        leaves: the number of leaves up to and including this step.
        values: the number of values up to and including this step.
        used: the time at which a segment that ends here last ran.
    """

    __slots__ = (
        "active", "added", "by", "careful", "children", "cut", "formal", "leaf", "leaves",
        "numbers", "parent", "programs", "raises_rank", "type", "used", "values",
    )  # fmt: skip

    def __init__(
        self,
        parent: "TraceNode | None",
        added: tuple[Node, ...],
        leaf: bool = False,
        active: bool = False,
        cut: tuple[Node, ...] = (),
        careful: bool = False,
        raises_rank: bool = False,
    ) -> None:
        """Creates a step after ``parent``."""
        self.cut, self.careful, self.raises_rank = cut, careful, raises_rank
        self.parent, self.added, self.leaf, self.active = parent, added, leaf, active
        self.type = added[0].type if added else None
        self.leaves: int = (0 if parent is None else parent.leaves) + leaf
        self.values: int = (0 if parent is None else parent.values) + len(added)
        self.by: tuple[int, ...] = ()
        self.formal: tuple[Node, ...] = ()
        self.used = 0
        self.children: dict[Any, TraceNode] = {}
        self.programs: dict[Any, SegmentProgram | LinearizedProgram | Lean] = {}
        self.numbers: dict[InternedCall, int] = {}

    def path(self) -> list["TraceNode"]:
        """Returns the steps from the root to this one."""
        steps: list[TraceNode] = []
        at: TraceNode | None = self
        while at is not None:
            steps.append(at)
            at = at.parent
        return steps[::-1]


class Tree:
    """The trace cache: a root for each combination of recording, training and JAX settings.

    Attributes:
        roots: the first steps, by these modes and settings.
        count: the number of steps, where a program counts as ``PROGRAM`` steps.
        now: the number of segments run so far, used as the time.
    """

    def __init__(self) -> None:
        """Creates an empty tree."""
        self.roots: dict[Any, TraceNode] = {}
        self.count = self.now = 0
        hold(self)

    def root(self, taped: bool, training: bool, settings: JaxSettings) -> TraceNode:
        """Returns the step at which a segment starts under these modes and settings."""
        if self.count > store.limits.steps:
            self.cut()
        key = taped, training, settings
        entry = self.roots.get(key)
        return self.roots.setdefault(key, TraceNode(None, (), False)) if entry is None else entry

    def cut(self) -> None:
        """Prunes the branches with the least recently used programs."""
        ends = [step for step in self._steps() if step.programs]
        ends.sort(key=lambda step: step.used, reverse=True)
        kept: set[TraceNode] = set(self.roots.values())
        count = 0
        for step in ends:
            if count >= _KEPT * store.limits.steps:
                break
            path = [one for one in step.path() if one not in kept]
            kept.update(path)
            count += len(path) + PROGRAM * len(step.programs)
        for step in kept:
            # Copied, since another thread or a signal handler may add steps meanwhile.
            children = list(step.children.items())
            step.children = {key: one for key, one in children if one in kept}
        self.count = count

    def _steps(self) -> Iterator[TraceNode]:
        waiting = list(self.roots.values())
        while waiting:
            step = waiting.pop()
            yield step
            waiting += step.children.values()

    # Interface of the caches

    def bound(self, limits: Limits) -> None:
        """Prunes the tree if it exceeds ``limits``."""
        if self.count > limits.steps:
            self.cut()

    def clear(self) -> None:
        """Drops all steps."""
        self.roots, self.count = {}, 0

    def __len__(self) -> int:
        return self.count


tree = Tree()
