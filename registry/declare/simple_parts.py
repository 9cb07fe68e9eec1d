"""Settings of a SimpleOp, and its functions with their parameter names."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from registry.cases import Case, Misuse
from registry.declare.environment import EnvArguments, Request, resources
from registry.errors import ArgumentError, DeclarationError, nearest
from registry.operator.operator import Derivative
from registry.operator.signature import Array, Key

ENV, KEY, OUT, OUT_VALUE, OUT_GRAD = "env", "key", "out", "out_value", "out_grad"
Device = str | None
"""The platform of a function; None for every platform without a function."""
ORDERS = ("array_scalar", "scalar_array")


class InplaceOption(NamedTuple):
    """The function that an in-place option applies to, and the operator's number of inputs."""

    of: str
    arity: int


INPLACE = {
    "in_out": InplaceOption("function", 1),
    "lhs_out": InplaceOption("function", 2),
    "out_in": InplaceOption("gradient", 1),
    "out_lhs": InplaceOption("gradient", 2),
}
"""In-place options."""


class Use:
    """Records whether a declared operator was used."""

    began = False


class SimplePart(NamedTuple):
    """One function of an operator.

    Attributes:
        function: the function itself.
        parameters: names of its parameters, including ``env`` if it takes that.
        inplace: its in-place option.
    """

    function: Callable[..., Any]
    parameters: tuple[str, ...]
    inplace: str = "none"

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters other than ``env``."""
        return tuple(name for name in self.parameters if name != ENV)

    def __call__(self, values: Iterable[Any], env: EnvArguments) -> Any:
        """Calls the function with ``values`` and ``env``."""
        supply = iter(values)
        return self.function(*[env if name == ENV else next(supply) for name in self.parameters])


def default_of(parts: Mapping[Device, SimplePart]) -> Device:
    """Returns the device of the default function: None if it has one, else the first device."""
    return None if None in parts else next(iter(parts))


def read_part(
    owner: str, what: str, function: Callable[..., Any], inplace: str = "none"
) -> SimplePart:
    """Reads the names of the parameters of ``function``.

    Raises:
        DeclarationError: a parameter is not positional, or the in-place option is wrong.
    """
    _require_option(owner, what, inplace)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise DeclarationError(
            f"{owner}: the {what} must be a function whose parameters Python can tell, "
            f"got {function!r}"
        ) from error
    for one in parameters:
        by_position = one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        if not by_position or one.default is not one.empty:
            raise DeclarationError(
                f"{owner}: the {what} must have positional parameters without defaults only, "
                f"got {one}"
            )
    return SimplePart(function, tuple(one.name for one in parameters), inplace)


def _require_option(owner: str, what: str, inplace: str) -> None:
    legal = ["none", *(word for word, one in INPLACE.items() if one.of == what)]
    if inplace not in ("none", *INPLACE):
        raise ArgumentError(
            f"{owner}: inplace of the {what} must be one of {', '.join(legal)}, got "
            f"{inplace!r}{nearest(inplace, legal)}"
        )
    if inplace not in legal:
        raise DeclarationError(
            f"{owner}: inplace={inplace!r} belongs to the {INPLACE[inplace].of}; of the {what} it "
            f"must be one of {', '.join(legal)}"
        )


@dataclasses.dataclass(frozen=True)
class SimpleSettings:
    """The settings of an operator.

    Attributes:
        name: the operator's name.
        functions: functions of the operator, by device.
        gradients: functions of its gradient, by device.
        shape: the shape function.
        order: position of the scalar in a call, or None without a scalar.
        keywords: annotation and default of each keyword.
        requests: the requested resources.
        derivative: status of the derivative without a gradient, and the reason.
        differs: whether the gradient deliberately differs from that of the function.
        text: the description.
        cases: sample calls and misuses.
        reference: the same function in NumPy.
        use: whether the operator was used; shared by all versions of the settings.
    """

    name: str
    functions: Mapping[Device, SimplePart] = dataclasses.field(default_factory=dict)
    gradients: Mapping[Device, SimplePart] = dataclasses.field(default_factory=dict)
    shape: SimplePart | None = None
    order: str | None = None
    keywords: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    requests: tuple[Request, ...] = ()
    derivative: tuple[Derivative, str] | None = None
    differs: bool = False
    text: str | None = None
    cases: tuple[Case | Misuse, ...] = ()
    reference: Callable[..., Any] | None = None
    use: Use = dataclasses.field(default_factory=Use)

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.functions[default_of(self.functions)].names

    @property
    def keyed(self) -> bool:
        """Whether a call needs a random key."""
        return "random" in self.requests

    def attributes(self) -> list[inspect.Parameter]:
        """Returns the attributes as keyword-only parameters."""
        if self.order is not None:
            return [attribute_parameter("scalar", float)]
        return [attribute_parameter(name, *declared) for name, declared in self.keywords.items()]

    def environment(
        self, attributes: Mapping[str, Any], key: Any = None, dtype: Any = float
    ) -> EnvArguments:
        """Returns ``env`` for the functions; ``dtype`` is the default dtype of random draws."""
        return EnvArguments(
            scalar=None if self.order is None else attributes["scalar"],
            kwargs=attributes if self.keywords else None,
            resource=resources(self.name, self.requests, key, dtype),
            owner=self.name,
        )

    def inputs(self, names: Iterable[str]) -> list[inspect.Parameter]:
        """Returns slots called ``names``, and one for the random key if a call needs it."""
        slots = [slot_parameter(name, Array) for name in names]
        return [*slots, slot_parameter(KEY, Key)] if self.keyed else slots


# Signatures ------------------------------------------------------------------------------------


def slot_parameter(name: str, annotation: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Returns a parameter for a slot."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, annotation=annotation)


def attribute_parameter(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    """Returns a parameter for an attribute."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def with_signature(
    function: Callable[..., Any], parameters: Sequence[inspect.Parameter]
) -> Callable[..., Any]:
    """Sets the signature of ``function`` to ``parameters`` and returns the function."""
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function


def described(
    kernel: Callable[..., Any],
    name: str,
    inputs: Sequence[inspect.Parameter],
    settings: SimpleSettings,
    text: str,
    part: SimplePart,
) -> Callable[..., Any]:
    """Sets the name, docstring, module and signature of ``kernel`` and returns it."""
    kernel.__name__, kernel.__doc__ = name, text
    kernel.__module__ = getattr(part.function, "__module__", None) or __name__
    return with_signature(kernel, [*inputs, *settings.attributes()])
