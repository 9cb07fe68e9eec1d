"""Body: a function as an operator's attribute, such as a branch or the step of a loop."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.errors import ArgumentError, AttributeValueError
from registry.operator.attributes import ConvertedBy
from registry.shapes import canonical
from registry.types import DType, VarKind, VarType
from registry.values import SelectedRows
from registry.var import complete_symop

Places = tuple[int, ...]
"""Positions among the inputs or the outputs of a body."""
Types = tuple[VarType, ...]


class Source(NamedTuple):
    """The origin of an input of a derived body.

    Attributes:
        of: ``input`` or ``output`` of the body, or ``head``, the cotangent of an output.
        place: its index.
    """

    of: Literal["input", "output", "head"]
    place: int


class Pulled(NamedTuple):
    """The gradients of a body, as a body.

    Attributes:
        body: maps the values that it reads to a gradient for each wanted input.
        sources: the origins of its inputs, without duplicates.
        whole: the body whose outputs it reads: the original body, or one with further outputs after
            the original ones.
    """

    body: "Body"
    sources: tuple[Source, ...]
    whole: "Body"


class Term(NamedTuple):
    """A term of a sum over slices: a number times one or two outputs of a body.

    Attributes:
        scale: the number.
        places: the outputs.
        equation: how ``einsum`` contracts two stacked outputs; empty for one.
    """

    scale: float
    places: Places
    equation: str


class Summands(NamedTuple):
    """A body whose outputs are kept for each slice, or summed over slices.

    Attributes:
        body: returns the kept outputs, and further ones.
        sums: for each output that is summed, the terms of its sum.
    """

    body: "Body"
    sums: tuple[tuple[Term, ...], ...]

    def without(self, heads: Places) -> Places:
        """Returns the factors of products that do not depend on the inputs ``heads``.

        Computed next to the others, they would seem to, and a product of two outputs that depend
        on a cotangent would not be linear in it.
        """
        moved = set(self.body.moved(heads))
        pairs = [one.places for terms in self.sums for one in terms if len(one.places) > 1]
        return tuple(sorted({place for pair in pairs for place in pair} - moved))


class Body(ABC):
    """A closed function of explicit inputs.

    An operator that runs bodies takes their inputs in its variadic slot, and returns their outputs
    in its variadic output. Bodies are immutable and interned: equal bodies are one object, so
    ``is`` and ``hash`` compare content, and equal calls of an operator are one node of a graph.

    Attributes:
        inputs: types of the inputs, none of them weak.
        outputs: types of the outputs, at least one, none of them weak.
        draws: whether it draws random numbers, from the key passed to ``run``.
        native: whether JAX's derivative of ``run`` is the declared one, so that JAX may
            differentiate and transpose it.
        costly: whether it applies an operator that is declared costly.
        sealed: whether it applies an operator that is declared sealed.
        derives: whether it applies an operator that declares a ``derivation``.
        lazy: whether it, or a body inside, is read when something inside of it is needed.
        depth: nesting depth of bodies, this one included.
    """

    inputs: Types
    outputs: Types
    draws: bool
    native: bool
    costly: bool
    sealed: bool
    derives: bool
    lazy: bool
    depth: int

    @property
    @abstractmethod
    def content(self) -> "Body | None":
        """The body that equal bodies share, of which nothing is lazy; None if it is absent.

        Raises:
            NotDifferentiableError: it is a derivative rule that refuses to be read.
        """

    @abstractmethod
    def run(self, values: Sequence[Any], *, key: Any = None, training: bool = False) -> list[Any]:
        """Returns the outputs for JAX values, of exactly the types ``outputs``."""

    @abstractmethod
    def moved(self, active: Places) -> Places:
        """Returns the outputs to which a derivative may flow from the inputs in ``active``."""

    @abstractmethod
    def apart(self, active: Places) -> Places:
        """Returns the outputs that depend on none of the inputs in ``active``, except zeros."""

    @abstractmethod
    def loses(self, active: Places) -> bool:
        """Whether a gradient on the paths from the inputs in ``active`` ignores its cotangent.

        The gradient of a loss layer does: such a body has no forward mode.
        """

    @abstractmethod
    def reached(self, heads: Places, wanted: Places) -> Places:
        """Returns the inputs in ``wanted`` that receive cotangents from the outputs ``heads``.

        Raises:
            NotDifferentiableError: an operator on the way has no derivative.
        """

    @abstractmethod
    def pullback(
        self, heads: Places, wanted: Places, *, saved: Places = (), lost: Places = ()
    ) -> Pulled:
        """Returns the gradients of the inputs ``wanted`` from cotangents of the outputs ``heads``.

        They are computed from inputs, from the outputs in ``saved`` and from cotangents; all other
        residuals are recomputed. The inputs in ``lost`` must not be read: if one is needed,
        ``whole`` returns it as a further output.
        """

    @abstractmethod
    def saving(self, lost: Places, varying: Places) -> "Body":
        """Returns the same function with its residuals as further outputs.

        These are the values that its gradients would recompute, restricted to those that depend on
        the inputs in ``varying``. Inputs remain available afterwards, except for those in ``lost``;
        outputs do not.
        """

    @abstractmethod
    def pushforward(self, moving: Places, chosen: Places) -> "Body":
        """Returns the body with tangents of the inputs ``moving`` as further inputs.

        The tangents of the outputs in ``chosen`` are further outputs.
        """

    @abstractmethod
    def pushed(self, moving: Places, chosen: Places, saved: Places) -> Pulled:
        """Returns the tangents of the outputs ``chosen``, given tangents of the inputs ``moving``.

        They are returned in this order, and computed from inputs, from the outputs in ``saved`` and
        from the tangents of the inputs; a source with ``of="head"`` is such a tangent, by its index
        in ``moving``.
        """

    @abstractmethod
    def entering(self, active: Places) -> "Body":
        """Returns the body of which a derivative by the inputs in ``active`` is taken."""

    @abstractmethod
    def leaving(self) -> "Body":
        """Returns the body after a derivative has been taken."""

    @abstractmethod
    def leading(self, late: Places, lasting: Places) -> Places:
        """Returns inputs on which every computation depends that is independent of ``late``.

        A barrier on these inputs thus delays all computations that do not depend on the inputs at
        ``late``. Of the inputs at ``lasting``, only needed ones are included, the smallest first.
        """

    @abstractmethod
    def keeping(self, places: Places) -> "Body":
        """Returns the same function with its inputs at ``places`` as further outputs."""

    @abstractmethod
    def summands(self, summed: Places, mapped: Places) -> Summands:
        """Returns the terms of the sums over slices of the outputs in ``summed``.

        The inputs in ``mapped`` differ from slice to slice. The outputs that are not summed come
        first in the returned body, in their order.
        """

    @abstractmethod
    def restricted(self, chosen: Places) -> tuple["Body", Places]:
        """Returns the function that computes the outputs ``chosen``, and the inputs it reads."""

    @abstractmethod
    def equal_values(self, same: Places, n_carry: int = 0) -> tuple[Places, Places]:
        """Returns for each input, and for each output, the first one that is always equal to it.

        For each input, ``same`` is the index of the first input with the same operand. The first
        ``n_carry`` inputs and outputs are carries of a loop: two are equal if their operands are,
        and if equal carries have equal values after a step.
        """

    @abstractmethod
    def identified(self, same: Places, chosen: Places) -> "Body":
        """Returns the outputs ``chosen`` as a function of the inputs ``i`` with ``same[i] == i``.

        Every other input ``i`` takes the value of the input ``same[i]``.
        """

    @abstractmethod
    def taking(self, inputs: Types, places: Places) -> "Body":
        """Returns the same function of ``inputs``, reading only those at ``places``."""


def _body(value: Any) -> Body:
    if isinstance(value, Body):
        return value
    raise AttributeValueError(f"must be a body, made by so.body for example, got {value!r}")


BodyAttribute = Annotated[Body, ConvertedBy(_body)]
"""Annotation of an attribute that holds a body."""


def bodies_of(attributes: Sequence[Any]) -> list[Body]:
    """Returns the bodies among the values of attributes."""
    return [one for one in attributes if isinstance(one, Body)]


def firsts(values: Sequence[Any], groups: Places = ()) -> Places:
    """Returns for each value the index of the first equal one of its group.

    Groups begin at the indices ``groups``.
    """
    seen: dict[Any, int] = {}
    return tuple(seen.setdefault((bisect_right(groups, i), one), i) for i, one in enumerate(values))


# Values ----------------------------------------------------------------------------------------


def settled(value: Any, type: VarType) -> Any:
    """Returns ``value`` as an array of exactly ``type``; row-sparse values become dense."""
    if type.kind is not VarKind.LOD_TENSOR:
        return value
    if isinstance(value, SelectedRows):
        value = value.to_dense()
    if isinstance(value, jax.Array) and value.dtype == type.dtype and not value.weak_type:
        return value
    return lax.convert_element_type(jnp.asarray(value), type.dtype)


# Bodies of sample calls ------------------------------------------------------------------------


Trace = Callable[[Callable[..., Any], Types], Body]
"""Creates the body of a function written with operators, for inputs of given types."""


class Bodies:
    """Creates the bodies of sample calls."""

    HOOKS: ClassVar[frozenset[str]] = frozenset({"trace"})
    trace: ClassVar[Trace | None] = None


class BodySample(NamedTuple):
    """The value of a body attribute in a case.

    Attributes:
        function: a function written with operators.
        inputs: the shape of each input, preceded by the name of a dtype if it is not the case's.
    """

    function: Callable[..., Any]
    inputs: tuple[tuple[Any, ...], ...]

    def at(self, dtype: DType) -> Body:
        """Returns the body with its floating inputs in ``dtype``.

        Raises:
            ArgumentError: no function that creates bodies is installed.
        """
        if Bodies.trace is None:
            complete_symop()
        if Bodies.trace is None:
            raise ArgumentError("body: a package that makes bodies must be imported, such as symop")
        return Bodies.trace(self.function, tuple(_input(one, dtype) for one in self.inputs))

    def __repr__(self) -> str:
        shapes = ", ".join(map(repr, self.inputs))
        return f"body({self.function.__name__.lstrip('_')}, {shapes})"


def _input(spec: tuple[Any, ...], dtype: DType) -> VarType:
    if spec and isinstance(spec[0], str):
        return VarType(spec[1:], canonical(np.dtype(spec[0])))
    return VarType(spec, canonical(dtype))


def body(function: Callable[..., Any], *inputs: tuple[Any, ...]) -> BodySample:
    """Returns the body of ``function`` in a case, for inputs of the given shapes.

    Example:
        >>> def step(c, x):
        ...     return c * x
        >>> body(step, (2,), ("int32", 2))
        body(step, (2,), ('int32', 2))
    """
    return BodySample(function, inputs)


def drawn(value: Any, dtype: DType) -> Any:
    """Returns the value that ``value`` represents among the attributes of a case."""
    return value.at(dtype) if isinstance(value, BodySample) else value
