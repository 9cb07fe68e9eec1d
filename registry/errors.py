"""Every error class: each derives from ``SymopError`` and from the standard class it refines."""

import difflib
from collections.abc import Iterable


class SymopError(Exception):
    """Base of every error that symop raises on purpose."""


class DeclarationError(SymopError, TypeError):
    """An operator's declaration contradicts itself, for example a rule names an unknown slot."""


class RegistrationError(SymopError, ValueError):
    """A name is registered twice, or the pieces of a registration do not fit together."""


class UnknownOperatorError(SymopError, LookupError):
    """No operator has that name."""


class ArgumentError(SymopError, TypeError):
    """A call passes the wrong number of inputs, or an attribute that the operator does not have."""


class AttributeValueError(SymopError, ValueError):
    """An attribute's value is outside what the operator allows."""


class AttributeTypeError(SymopError, TypeError):
    """An attribute's value has the wrong type."""


class ShapeError(SymopError, ValueError):
    """The shapes of an operator's inputs do not fit together."""


class DTypeError(SymopError, TypeError):
    """The dtypes of an operator's inputs are not what it takes."""


class KindError(SymopError, TypeError):
    """A value has a variable kind that the operator does not take."""


class UnknownTypeError(SymopError, ValueError):
    """The shape and dtype of a value are asked for but not known yet."""


class GradientError(SymopError, ValueError):
    """A gradient cannot be built."""


class DisconnectedError(GradientError):
    """A gradient is asked for with respect to something that the value does not depend on."""


class NotDifferentiableError(GradientError):
    """Every or some path of a gradient runs through an operator whose derivative is undefined."""


class NotLinearError(GradientError):
    """Forward mode is asked of an operator whose gradient is not linear in its cotangent."""


class NameConflictError(SymopError, ValueError):
    """Two different things in one graph have the same name."""


class FeedError(SymopError, ValueError):
    """A fed array is missing, superfluous, or has the wrong shape or dtype."""


class FormatError(SymopError, ValueError):
    """A file or text is not what its format says; the message tells where."""


class ProgramError(SymopError, ValueError):
    """A program contradicts itself, or one is asked for what it does not hold."""


class MissingExtraError(SymopError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


def nearest(name: str, legal: Iterable[str]) -> str:
    """``"; did you mean 'a' or 'b'?"`` for the names in ``legal`` close to ``name``, or ``""``."""
    close = difflib.get_close_matches(str(name), list(legal), n=3)
    return "; did you mean " + " or ".join(repr(c) for c in close) + "?" if close else ""


def missing_extra(feature: str, package: str, extra: str) -> MissingExtraError:
    """The error to raise when ``feature`` needs ``package``, which ``extra`` installs."""
    return MissingExtraError(
        f"{feature}: {package} must be installed; run  pip install 'symop[{extra}]'"
    )
