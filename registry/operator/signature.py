"""Signatures of kernels: positional parameters are input slots, keyword-only ones attributes."""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import jax

from registry.errors import DeclarationError
from registry.operator.attributes import REQUIRED, Attribute, Comment, make_attribute
from registry.types import Shape

Array = jax.Array


@dataclasses.dataclass(frozen=True)
class Role:
    """The kind of value that fills a slot when a symbolic call leaves it out."""

    name: str


@dataclasses.dataclass(frozen=True)
class Initial:
    """The initial value of a new variable for a slot, or the name of its initializer."""

    value: float | str


@dataclasses.dataclass(frozen=True)
class Optional:
    """The slot may be absent, as if its default were None; slots after it need no default."""


class Omitted:
    """An omitted argument: the type of no value, which the slots below accept nevertheless.

    So a type checker tells the slots that a call must fill from those that it may omit.
    """


if TYPE_CHECKING:
    Parameter = jax.Array | Any
    Bias = jax.Array | Any
    Gain = jax.Array | Any
    State = jax.Array | Any
    GainState = jax.Array | Any
    Key = jax.Array | Any
    Training = bool | Any
else:
    Parameter = Annotated[jax.Array, Role("parameter")]
    """A slot that a symbolic call fills with a new variable, named after the call."""
    Bias = Annotated[jax.Array, Role("parameter"), Initial(0.0)]
    """A parameter that starts at zero."""
    Gain = Annotated[jax.Array, Role("parameter"), Initial(1.0)]
    """A parameter that starts at one."""
    State = Annotated[jax.Array, Role("state"), Initial(0.0)]
    """A parameter that a training step updates and no gradient reaches: running statistics."""
    GainState = Annotated[jax.Array, Role("state"), Initial(1.0)]
    """A state that starts at one: a running variance."""
    Key = Annotated[jax.Array, Role("key")]
    """A random key, supplied by the executor: a fresh one for each call."""
    Training = Annotated[bool, Role("training")]
    """Whether the operator runs for training; static, supplied by the executor."""


@dataclasses.dataclass(frozen=True)
class Slot:
    """One input slot of an operator.

    Attributes:
        name: the parameter's name.
        role: ``input``, ``parameter``, ``state``, ``key`` or ``training``.
        optional: the slot may be absent; the kernel then sees None.
        variadic: the slot takes any number of values; it is the last.
        initial: initial value of a new variable for the slot, or the name of its initializer; None
            for the default.
        comment: description of the slot.
    """

    name: str
    role: str = "input"
    optional: bool = False
    variadic: bool = False
    initial: float | str | None = None
    comment: str = ""

    @property
    def implicit(self) -> bool:
        """Whether the executor fills the slot (random key, training flag)."""
        return self.role in ("key", "training")

    @property
    def initial_text(self) -> str | None:
        """The initializer as text, as a variable declares it."""
        one = self.initial
        return one if one is None or isinstance(one, str) else repr(one)

    @property
    def created(self) -> bool:
        """Whether a symbolic call that leaves the slot out creates a new variable for it."""
        return self.role in ("parameter", "state")


class NewParameter(NamedTuple):
    """A parameter that a call creates for a variadic slot.

    Attributes:
        name: its name after that of the call.
        shape: its shape, or None where it does not follow yet.
        initial: its initializer, or None for the default.
    """

    name: str
    shape: Shape | None
    initial: str | None = None


def read_signature(kernel: Callable[..., Any]) -> tuple[tuple[Slot, ...], tuple[Attribute, ...]]:
    """Returns the input slots and attributes that ``kernel`` declares.

    Raises:
        DeclarationError: a parameter has a form that neither slots nor attributes allow.
    """
    slots: list[Slot] = []
    attributes: list[Attribute] = []
    for parameter in inspect.signature(kernel, eval_str=True).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            attributes.append(_attribute(kernel, parameter))
        elif parameter.kind is parameter.VAR_KEYWORD:
            raise DeclarationError(
                f"{kernel.__name__}: attributes must be named, got **{parameter.name}"
            )
        else:
            slots.append(_slot(kernel, parameter))
    return tuple(slots), tuple(attributes)


def _slot(kernel: Callable[..., Any], parameter: inspect.Parameter) -> Slot:
    if parameter.default not in (parameter.empty, None):
        raise DeclarationError(
            f"{kernel.__name__}: the default of slot {parameter.name!r} must be None, "
            f"got {parameter.default!r}"
        )
    marks = _marks(parameter.annotation)
    return Slot(
        parameter.name,
        next((mark.name for mark in marks if isinstance(mark, Role)), "input"),
        optional=parameter.default is None or any(isinstance(mark, Optional) for mark in marks),
        variadic=parameter.kind is parameter.VAR_POSITIONAL,
        initial=next((mark.value for mark in marks if isinstance(mark, Initial)), None),
        comment=next((mark.text for mark in marks if isinstance(mark, Comment)), ""),
    )


def _marks(annotation: Any) -> list[Any]:
    """Returns the metadata of ``Annotated`` for a slot; for ``X | None``, that of ``X``."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [mark for arg in typing.get_args(annotation) for mark in _marks(arg)]
    return list(getattr(annotation, "__metadata__", ()))


def _attribute(kernel: Callable[..., Any], parameter: inspect.Parameter) -> Attribute:
    default = REQUIRED if parameter.default is parameter.empty else parameter.default
    try:
        return make_attribute(parameter.name, parameter.annotation, default)
    except Exception as error:
        raise DeclarationError(
            f"{kernel.__name__}: attribute {parameter.name!r}: {error}"
        ) from error
