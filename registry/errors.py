"""Error classes: each derives from ``SymopError`` and from the standard class that it refines."""

import difflib
from collections.abc import Callable, Iterable
from typing import Any


class SymopError(Exception):
    """Base class of every error that symop raises deliberately."""


class DeclarationError(SymopError, TypeError):
    """An operator's declaration contradicts itself, for example a rule names an unknown slot."""


class RegistrationError(SymopError, ValueError):
    """A name is registered twice, or the parts of a registration do not fit together."""


class UnknownOperatorError(SymopError, LookupError):
    """No operator has that name."""


class UnknownMemberError(SymopError, AttributeError):
    """A value has no attribute and no operator of that name."""

    def __init__(self, message: str, name: str = "", hint: Callable[[], str] = str) -> None:
        """Creates the error; ``hint`` completes the message where it is read.

        ``hasattr`` reads no message, and must not wait for a search among all names.
        """
        super().__init__(message, name=name)
        self._hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]}{self._hint()}"

    def __reduce__(self) -> tuple[Any, ...]:
        return UnknownMemberError, (str(self), self.name)


class ArgumentError(SymopError, TypeError):
    """A call passes the wrong number of inputs, or an attribute that the operator lacks."""


class NotComputedError(SymopError, RuntimeError):
    """A function of JAX is called on a value of a graph, which has no numbers before it runs.

    This is not a ``TypeError``, which JAX replaces by an error of its own.
    """


class AttributeValueError(SymopError, ValueError):
    """The operator does not allow an attribute's value."""


class AxisError(AttributeValueError, IndexError):
    """An axis does not exist in the value."""


class BoundsError(SymopError, IndexError):
    """An index lies outside its axis, or indices outnumber the axes."""


class InvalidIndexError(ArgumentError, IndexError):
    """An entry of an index is of an unsupported type, or an index has several ``...``."""


class AttributeTypeError(SymopError, TypeError):
    """An attribute's value has the wrong type."""


class ShapeError(SymopError, ValueError):
    """The shapes of an operator's inputs are incompatible."""


class DTypeError(SymopError, TypeError):
    """The operator does not accept the dtypes of its inputs."""


class KindError(SymopError, TypeError):
    """The operator does not accept a value of this variable kind."""


class UnknownTypeError(SymopError, ValueError):
    """The shape and dtype of a value are requested but not yet known."""


class GradientError(SymopError, ValueError):
    """A gradient cannot be built."""


class DisconnectedError(GradientError):
    """A gradient is requested with respect to a value that the result does not depend on."""


class NotDifferentiableError(GradientError):
    """A path of a gradient runs through an operator whose derivative is undefined."""


class NotLinearError(GradientError):
    """Forward mode is requested of an operator whose gradient is not linear in its cotangent."""


class NameConflictError(SymopError, ValueError):
    """Two different objects in one graph have the same name."""


class FeedError(SymopError, ValueError):
    """A fed array is missing, superfluous, or of the wrong shape or dtype."""


class FormatError(SymopError, ValueError):
    """A file or text does not follow its format; the message gives the position."""


class ProgramError(SymopError, ValueError):
    """A program contradicts itself, or lacks a requested part."""


class BusyError(SymopError, RuntimeError):
    """A signal handler or another thread uses an object in the middle of its change."""


class ProcessError(SymopError, RuntimeError):
    """The processes of a job cannot reach each other, or do not fit together."""


class MissingExtraError(SymopError, ImportError):
    """An optional dependency is not installed; the message names the extra that installs it."""


def nearest(name: str, legal: Iterable[str]) -> str:
    """Returns ``"; did you mean 'a' or 'b'?"`` for the close names in ``legal``, or ``""``."""
    close = difflib.get_close_matches(str(name), list(legal), n=3)
    return "; did you mean " + " or ".join(repr(c) for c in close) + "?" if close else ""


def missing_extra(feature: str, package: str, extra: str) -> MissingExtraError:
    """Returns the error to raise when ``feature`` needs ``package``, which ``extra`` installs."""
    return MissingExtraError(
        f"{feature}: {package} must be installed; run  pip install 'symop-jax[{extra}]'"
    )


class MissingViewerError(SymopError, RuntimeError):
    """The library that lays out interactive drawings is not part of an installation."""


class UnsupportedPrimitiveError(SymopError, NotImplementedError):
    """No operator expresses a primitive of a JAX function.

    It is a ``NotImplementedError``, too: JAX raises that for a primitive without a rule, and code
    that falls back to JAX catches it.
    """


class DataDependentError(SymopError, TypeError):
    """A function reads values of its arguments while it is traced, as ``if x > 0`` does."""


class SupersededWarning(UserWarning):
    """A graph runs an operator whose source has declared it again since the graph was built."""


class OpaqueWarning(UserWarning):
    """A part of a JAX function enters a graph as an operator that only JAX understands."""
