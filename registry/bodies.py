"""Body: a function as an attribute of an operator, such as a branch or the step of a loop."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.attributes import ConvertedBy
from registry.errors import ArgumentError, AttributeValueError
from registry.shapes import canonical
from registry.types import DType, VarKind, VarType
from registry.values import SelectedRows

Places = tuple[int, ...]
"""Positions among the inputs or the outputs of a body."""
Types = tuple[VarType, ...]


class Source(NamedTuple):
    """Where an input of a derived body comes from.

    Attributes:
        of: ``input`` or ``output`` of the body, or ``head``, the cotangent of an output.
        place: which one.
    """

    of: Literal["input", "output", "head"]
    place: int


class Pulled(NamedTuple):
    """The gradients of a body, as a body.

    Attributes:
        body: from what it reads to a gradient for each wanted input.
        sources: where its inputs come from, none twice.
        whole: the body whose outputs it reads: the one that was pulled back, or one that has
            further outputs behind those.
    """

    body: "Body"
    sources: tuple[Source, ...]
    whole: "Body"


class Body(ABC):
    """A closed function of explicit inputs.

    An operator that runs bodies takes their inputs in its variadic slot, and gives their outputs in
    its variadic output. Bodies are immutable. Two of equal content are one object, so ``is`` and
    ``hash`` compare content, and equal calls of an operator are one node of a graph.

    Attributes:
        inputs: types of the inputs, none of them weak.
        outputs: types of the outputs, none of them weak; there is at least one.
        draws: whether it draws random numbers, from the key that ``run`` receives.
        native: whether JAX's derivative of what ``run`` does is the declared one, so that JAX may
            differentiate and transpose it.
        costly: whether it applies an operator that declares so.
    """

    inputs: Types
    outputs: Types
    draws: bool
    native: bool
    costly: bool

    @abstractmethod
    def run(self, values: Sequence[Any], *, key: Any = None, training: bool = False) -> list[Any]:
        """The outputs for JAX values, of exactly the types ``outputs``."""

    @abstractmethod
    def moved(self, active: Places) -> Places:
        """The outputs to which a derivative may flow from the inputs in ``active``."""

    @abstractmethod
    def apart(self, active: Places) -> Places:
        """The outputs that depend on none of the inputs in ``active``, zeros left out."""

    @abstractmethod
    def loses(self, active: Places) -> bool:
        """Whether a gradient on the ways from the inputs in ``active`` ignores its cotangent.

        As that of a loss layer does: such a body has no forward mode.
        """

    @abstractmethod
    def reached(self, heads: Places, wanted: Places) -> Places:
        """Those of the inputs in ``wanted`` at which cotangents of the outputs ``heads`` arrive.

        Raises:
            NotDifferentiableError: an operator on the way has no derivative.
        """

    @abstractmethod
    def pullback(
        self, heads: Places, wanted: Places, *, saved: Places = (), lost: Places = ()
    ) -> Pulled:
        """The gradients of the inputs ``wanted`` from cotangents of the outputs ``heads``.

        They are computed from inputs, from the outputs in ``saved`` and from cotangents; what else
        they need of the body is computed again. The inputs in ``lost`` must not be read: where one
        is needed, ``whole`` has it as a further output.
        """

    @abstractmethod
    def saving(self, lost: Places, varying: Places) -> "Body":
        """The same function whose further outputs are what its gradients would compute again.

        Of that, only what depends on the inputs in ``varying``. Inputs are there afterwards, and no
        outputs, but for those in ``lost``.
        """

    @abstractmethod
    def pushforward(self, moving: Places, chosen: Places) -> "Body":
        """The body with tangents of the inputs ``moving`` behind its inputs.

        Behind its outputs it has the tangents of the outputs in ``chosen``.
        """

    @abstractmethod
    def pushed(self, moving: Places, chosen: Places, saved: Places) -> Pulled:
        """The tangents of the outputs ``chosen`` where the inputs ``moving`` move, in this order.

        They are computed from inputs, from the outputs in ``saved`` and from the tangents of the
        inputs, of which a source with ``of="head"`` is one, by its place in ``moving``.
        """

    @abstractmethod
    def leading(self, late: Places, lasting: Places) -> Places:
        """Inputs without which nothing is computed but what follows from those at ``late``.

        Of those at ``lasting`` only such as are needed, and those least in size.
        """

    @abstractmethod
    def keeping(self, places: Places) -> "Body":
        """The same function whose further outputs are its inputs at ``places``."""

    @abstractmethod
    def taking(self, inputs: Types, places: Places) -> "Body":
        """The same function of ``inputs``, of which it reads those at ``places``, in that order."""


def _body(value: Any) -> Body:
    if isinstance(value, Body):
        return value
    raise AttributeValueError(f"must be a body, made by so.body for example, got {value!r}")


BodyAttribute = Annotated[Body, ConvertedBy(_body)]
"""Annotation of an attribute that holds a body."""


def bodies_of(attributes: Sequence[Any]) -> list[Body]:
    """The bodies among the values of attributes."""
    return [one for one in attributes if isinstance(one, Body)]


# Values ----------------------------------------------------------------------------------------


def settled(value: Any, type: VarType) -> Any:
    """``value`` as an array of exactly ``type``: what is row-sparse becomes dense."""
    if type.kind is not VarKind.LOD_TENSOR:
        return value
    if isinstance(value, SelectedRows):
        value = value.to_dense()
    if isinstance(value, jax.Array) and value.dtype == type.dtype and not value.weak_type:
        return value
    return lax.convert_element_type(jnp.asarray(value), type.dtype)


# Bodies of sample calls ------------------------------------------------------------------------


Trace = Callable[[Callable[..., Any], Types], Body]
"""Makes the body of a function that is written with operators, for inputs of given types."""
_installed: list[Trace] = []


def install(trace: Trace) -> None:
    """Let ``trace`` make the bodies of sample calls."""
    _installed[:] = [trace]


class BodySample(NamedTuple):
    """What fills an attribute that holds a body in a case.

    Attributes:
        function: written with operators.
        inputs: the shape of each input, behind the name of a dtype where it is not the case's.
    """

    function: Callable[..., Any]
    inputs: tuple[tuple[Any, ...], ...]

    def at(self, dtype: DType) -> Body:
        """The body, its floating inputs in ``dtype``.

        Raises:
            ArgumentError: nothing that makes bodies is installed.
        """
        if not _installed:
            raise ArgumentError("body: a package that makes bodies must be imported, such as symop")
        return _installed[0](self.function, tuple(_input(one, dtype) for one in self.inputs))

    def __repr__(self) -> str:
        shapes = ", ".join(map(repr, self.inputs))
        return f"body({self.function.__name__.lstrip('_')}, {shapes})"


def _input(given: tuple[Any, ...], dtype: DType) -> VarType:
    if given and isinstance(given[0], str):
        return VarType(given[1:], canonical(np.dtype(given[0])))
    return VarType(given, canonical(dtype))


def body(function: Callable[..., Any], *inputs: tuple[Any, ...]) -> BodySample:
    """The body of ``function`` in a case: for inputs of these shapes.

    Example:
        >>> def step(c, x):
        ...     return c * x
        >>> body(step, (2,), ("int32", 2))
        body(step, (2,), ('int32', 2))
    """
    return BodySample(function, inputs)


def drawn(value: Any, dtype: DType) -> Any:
    """What ``value`` stands for among the attributes of a case."""
    return value.at(dtype) if isinstance(value, BodySample) else value
