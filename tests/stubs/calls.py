"""The calls of an operator: an overload for each kind of value."""

import dataclasses
import inspect
from inspect import Parameter
from typing import Any

import jax

from registry.operator.call_signature import call_signature, with_keywords
from registry.values import TensorArray
from stubs.annotations import accepted, default


@dataclasses.dataclass(frozen=True)
class Kind:
    """Values of one kind.

    Attributes:
        value: the type of an input.
        result: the type of an output, empty if the operator declares it.
        beside: the type of other values that a call may have next to such values.
        omits: whether a call may leave out parameters, which become variables.
        single: whether several outputs are one value.
        leads: whether the first input must be such a value.
    """

    value: str
    result: str
    beside: str = "ArrayInput"
    omits: bool = False
    single: bool = False
    leads: bool = False

    def input(self, *, alone):
        """The type of an input, which is the only one of a call if it is ``alone``."""
        return self.value if alone or not self.beside else f"{self.value} | {self.beside}"


ARRAYS = Kind("ArrayInput", "", beside="")
ROWS = Kind("SelectedRows", "Any")
SPARSE = Kind("TensorArray | SelectedRows", "")
ANY = Kind("Value", "Value")
VAR = Kind("Var", "Var")
EAGER = Kind("NDArray", "NDArray")
SYMBOL = Kind("Symbol", "Symbol", omits=True, single=True)
VARIABLE = Kind("Variable", "Variable", omits=True)


def kinds(operator):
    """The kinds of values that the overloads of an operator distinguish, in order."""
    if not operator.positional:
        return [ARRAYS]
    by_kind = operator.inference.kind_rule is not None
    first = [ARRAYS, *([ROWS] if operator.row_slots else [SPARSE] if by_kind else [])]
    if operator.variadic:  # a checker infers no type variable from a list of different values
        return [*first, EAGER, SYMBOL, VARIABLE, VAR]
    if operator.creates:
        return [*first, EAGER, SYMBOL, VARIABLE, ANY]
    return [*first, ANY] if count(operator) == 1 else [*first, SYMBOL, ANY]


def count(operator):
    """The number of results, None if it varies."""
    return None if operator.variadic_output else len(operator.visible)


def result(operator, kind):
    """The type of a call's result."""
    if kind is ROWS or (kind is SPARSE and operator.variadic_output):
        return "Any"
    one, number = kind.result, count(operator)
    if not one:  # the new values of states are results
        one, number = of_arrays(operator), number and number + len(operator.updates)
    return one if kind.single or number == 1 else several(one, number)


def several(one, number):
    """The type of several results."""
    return f"tuple[{one}, ...]" if number is None else f"tuple[{', '.join([one] * number)}]"


def of_arrays(operator):
    """The type of one result of a call on arrays, which the kernel's annotation says."""
    kernel = operator._default_kernel
    declared = inspect.signature(kernel, eval_str=True).return_annotation
    if declared is TensorArray:
        return "TensorArray"
    return "jax.Array" if declared is jax.Array or hasattr(declared, "__origin__") else "Any"


def overloads(operator, own_kinds=None):
    """The parameters and the result of each overload."""
    for kind in own_kinds or kinds(operator):
        call = call_signature(operator, eager=not kind.omits)
        parameters = [*call.parameters.values(), *name_of_call(call, kind)]
        for form in forms(operator, parameters):
            yield [Shown.of(operator, one, kind) for one in form], result(operator, kind)


def name_of_call(call, kind):
    """The keyword ``name``, if some values of the kind are graphs."""
    if kind not in (ANY, VAR) or "name" in call.parameters:
        return []
    return [Parameter("name", Parameter.KEYWORD_ONLY, default=None, annotation=str | None)]


def forms(operator, parameters):
    """The ways to write a call: with separate values for a variadic slot or with a list."""
    yield parameters
    if f"{parameters[0].name}_initial" in [one.name for one in parameters]:
        yield parameters[1:]  # the first slot is that of a parameter, which the call creates
    if operator.variadic and operator.spreads:
        yield with_keywords(map(as_list, parameters))
    if operator.leading:
        yield by_keyword(operator, parameters)
    if in_order := by_position(parameters):
        yield in_order


def as_list(parameter):
    """A variadic slot that is filled with a list."""
    if parameter.kind is not Parameter.VAR_POSITIONAL:
        return parameter
    return parameter.replace(kind=Parameter.POSITIONAL_OR_KEYWORD, annotation=list)


def by_keyword(operator, parameters):
    """The call in which the attributes that may precede the inputs are keywords."""
    leading = [one for one in parameters if one.name in operator.leading]
    rest = [one for one in parameters if one not in leading]
    keywords = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in leading]
    return [*(one for one in rest if one.kind is not Parameter.KEYWORD_ONLY), *keywords,
            *(one for one in rest if one.kind is Parameter.KEYWORD_ONLY)]  # fmt: skip


def by_position(parameters):
    """The call by position, if an attribute with a default precedes one that must be given."""
    needed = [i for i, one in enumerate(parameters) if one.default is Parameter.empty]
    last = needed[-1] if needed else 0
    lone = [one for one in parameters[:last] if one.default is not Parameter.empty]
    if not lone or any(one.annotation is Parameter.empty for one in lone):
        return None  # slots with a default are inputs that a call may leave out
    how = Parameter.POSITIONAL_OR_KEYWORD
    first = [one.replace(kind=how, default=Parameter.empty) for one in parameters[: last + 1]]
    named = ("name", "key", "training")
    rest = [one if one.name in named else one.replace(kind=how) for one in parameters[last + 1 :]]
    return [*first, *rest]


@dataclasses.dataclass(frozen=True)
class Shown:
    """A parameter of a stub: its kind, and its text."""

    kind: inspect._ParameterKind
    text: str

    @classmethod
    def of(cls, operator, parameter, kind):
        """The parameter of a call on values of ``kind``."""
        name, place = parameter.name, operator.slot_index.get(parameter.name)
        if place is not None:
            shown = slot_type(operator, operator.slots[place], parameter, kind)
        elif name in operator.attribute_index:
            shown = accepted(operator.attributes[operator.attribute_index[name]].annotation)
        else:
            shown = "Any" if parameter.annotation is Any else "str | None"
        absent = parameter.default is Parameter.empty
        return cls(
            parameter.kind, f"{name}: {shown}{'' if absent else f' = {default(parameter.default)}'}"
        )

    @property
    def starred(self):
        """The text with the star of a variadic slot."""
        return f"*{self.text}" if self.kind is Parameter.VAR_POSITIONAL else self.text


def slot_type(operator, slot, parameter, kind):
    """The type of what fills a slot in a call on values of ``kind``."""
    if slot.role == "training":
        return "bool"
    if slot.role == "key":
        return "jax.Array" if kind is ARRAYS else f"{kind.value} | jax.Array"
    alone = len(operator.positional) == 1 and not (slot.optional or slot.variadic)
    leads = kind.leads and slot is operator.positional[0]
    shown = kind.input(alone=alone or leads)
    if operator.variadic:  # a list is the whole of a variadic slot
        shown = shown.replace("ArrayInput", "ArrayLike")
    if parameter.annotation is list or (slot.variadic and not operator.spreads):
        return f"Sequence[{shown}]"
    return f"{shown} | None" if parameter.default is None else shown
