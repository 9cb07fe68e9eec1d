"""Rule: a function that receives exactly what its parameters name, checked at declaration."""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from registry.errors import DeclarationError, nearest
from registry.naming import COTANGENT
from registry.operator.attributes import Attribute
from registry.operator.signature import Slot
from registry.var import Attributes, Inputs

_INPUT, _INPUTS, _OUTPUT, _OUTPUTS, _COTANGENT, _COTANGENTS, _WANTED = range(7)
_MANY = (_INPUTS, _OUTPUTS, _COTANGENTS, _WANTED)
WANTED = "wanted"


class Rule:
    """One rule of an operator: its gradient maker, shape rule, simplification, ...

    A parameter named like a slot receives the slot's value, one named like an output the output,
    one named ``d_<output>`` the cotangent of that output; a parameter ``wanted`` of a gradient
    maker holds for each input whether its gradient is requested. Keyword-only parameters receive
    attributes, and ``**others`` those that no parameter names. The parameter list is thus the list
    of what the rule needs: a maker's residuals.
    """

    def __init__(
        self,
        owner: str,
        function: Callable[..., Any],
        slots: Sequence[Slot],
        attributes: Sequence[Attribute],
        outputs: Sequence[str] = (),
        cotangents: Sequence[str] = (),
        *,
        variadic_output: bool = False,
    ) -> None:
        """Binds ``function``'s parameters to slots, attributes, outputs and cotangents.

        Raises:
            DeclarationError: a parameter names nothing that the rule can receive.
        """
        self.owner = owner
        self.function = function
        sources = dict(_sources(slots, outputs, cotangents, variadic_output))
        indices = {attribute.name: i for i, attribute in enumerate(attributes)}
        self._positional: list[tuple[int, int]] = []
        self._attributes: list[tuple[str, int]] = []
        self._zero_filled: list[tuple[int, int]] = []
        self._cotangents: set[int] = set()
        self._many: int | None = None
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY:
                index = self._find(parameter.name, indices, "attribute")
                self._attributes.append((parameter.name, index))
                continue
            if parameter.kind is parameter.VAR_KEYWORD:  # the last one
                named = dict(self._attributes)
                self._attributes += [one for one in indices.items() if one[0] not in named]
                continue
            source = self._find(parameter.name, sources, "slot, output or cotangent")
            self._positional.append(source)
            if source[0] == _COTANGENT:
                self._cotangents.add(source[1])
            elif source[0] == _COTANGENTS:
                self._many = source[1]
            if source[0] in (_COTANGENT, _COTANGENTS) and not _allows_none(parameter.annotation):
                self._zero_filled.append(source)

        in_order = [(_INPUT, i) for i in range(len(slots))]
        self._takes_inputs = self._positional == in_order and not self._attributes

    def _find(self, name: str, among: dict[str, Any], what: str) -> Any:
        if name not in among:
            legal = ", ".join(sorted(one for one in among if one != WANTED)) or "none"
            raise DeclarationError(
                f"{self.owner}: the rule {self.function.__name__!r} must name a {what} of the "
                f"operator ({legal}), got {name!r}{nearest(name, among)}"
            )
        return among[name]

    def __call__(
        self,
        inputs: Inputs,
        attributes: Attributes,
        outputs: Inputs = (),
        cotangents: Inputs = (),
        wanted: tuple[bool, ...] | None = None,
    ) -> Any:
        """Calls the function with the values that its parameters name."""
        if self._takes_inputs:
            return self.function(*inputs)
        asked = (True,) * len(inputs) if wanted is None else wanted
        values = (inputs, inputs, outputs, outputs, cotangents, cotangents, asked)
        positional = [
            values[source][index:] if source in _MANY else values[source][index]
            for source, index in self._positional
        ]
        if not self._attributes:
            return self.function(*positional)
        return self.function(*positional, **{n: attributes[i] for n, i in self._attributes})

    def reads_cotangent(self, index: int) -> bool:
        """Whether the rule names the cotangent of the output at ``index``."""
        return index in self._cotangents or (self._many is not None and index >= self._many)

    @property
    def reads_values(self) -> bool:
        """Whether the rule names an input or an output, rather than only cotangents."""
        return any(source not in (_COTANGENT, _COTANGENTS) for source, _ in self._positional)

    def zero_filled(self, count: int) -> set[int]:
        """Returns indices of the outputs, among ``count``, whose absent cotangents become zeros."""
        return {
            i
            for source, index in self._zero_filled
            for i in (range(index, count) if source == _COTANGENTS else [index])
        }

    @functools.cached_property
    def input_indices(self) -> set[int]:
        """Indices of the inputs that the rule reads."""
        return {i for source, i in self._positional if source in (_INPUT, _INPUTS)}

    @functools.cached_property
    def output_indices(self) -> set[int]:
        """Indices of the outputs that the rule reads."""
        return {i for source, i in self._positional if source in (_OUTPUT, _OUTPUTS)}


def _sources(
    slots: Sequence[Slot],
    outputs: Sequence[str],
    cotangents: Sequence[str],
    variadic_output: bool,
) -> Iterator[tuple[str, tuple[int, int]]]:
    if cotangents:
        yield WANTED, (_WANTED, 0)  # unless a slot or an output has this name
    for i, slot in enumerate(slots):
        yield slot.name, (_INPUTS if slot.variadic else _INPUT, i)
    for i, output in enumerate(outputs):
        many = variadic_output and i + 1 == len(outputs)
        yield output, (_OUTPUTS if many else _OUTPUT, i)
        if output in cotangents:
            yield COTANGENT + output, (_COTANGENTS if many else _COTANGENT, i)


def _allows_none(annotation: Any) -> bool:
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return is_union and type(None) in typing.get_args(annotation)
