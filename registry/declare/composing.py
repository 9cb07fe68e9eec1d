"""Gradient makers that return OpDescs, as gradient makers of the operator that they belong to.

The maker gets an OpDesc that names each input after its slot, and what it returns is interpreted:
each OpDesc is a call of its operator on the values that its names stand for. So the one function
serves graphs, programs and JAX, like any other gradient maker.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from registry.attributes import to_plain
from registry.desc import BlockDesc, OpDesc
from registry.errors import ArgumentError, GradientError, nearest
from registry.naming import COTANGENT, EMPTY, GRAD, grad_name
from registry.operator import GradOpMaker, Operator
from registry.recorder import arguments_of, attributes_of, outputs_of, slots_of
from registry.table import get
from registry.var import Var, filled

OpDescs = list[OpDesc] | OpDesc
DescMaker = Callable[[OpDesc, Iterable[str]], OpDescs]
"""From an OpDesc and a no-grad set to OpDescs."""


def declare_composition(operator: Operator, make: DescMaker) -> None:
    """Declare ``make`` as the gradient maker of ``operator``.

    Raises:
        DeclarationError: the operator has a derivative already.
    """
    operator.gradient(_interpreting(operator, make), reads=_slots_read(operator, make))
    operator.composed_by(_grad_op_maker(operator.name, make))


def _slots_read(operator: Operator, make: DescMaker) -> set[str]:
    """The input slots that a maker uses; all, where it does not tell without a real call."""
    desc = synthetic_desc(operator)
    try:
        made = listed(operator.name, make(desc, ()))
    except Exception:  # it wants to know more of the call than its names
        return set(operator.slot_names)
    read = {name for one in made for names in one.inputs.values() for name in names}
    return {slot for slot, names in desc.inputs.items() if read.intersection(names)}


def synthetic_desc(operator: Operator) -> OpDesc:
    """An OpDesc of a call that fills every slot, attributes that have a default given."""
    defaults = {one.name: one.default for one in operator.attributes if not one.required}
    groups = {slot.name: [slot.name] for slot in operator.slots}
    return forward_desc(operator, groups, operator.outputs, defaults)


def _grad_op_maker(owner: str, make: DescMaker) -> GradOpMaker:
    def grad_op_maker(
        op_desc: OpDesc, no_grad_set: Iterable[str] = (), block: BlockDesc | None = None
    ) -> list[OpDesc]:
        del block  # such a maker asks for names, never for types
        return listed(owner, make(op_desc, no_grad_set))

    return grad_op_maker


def listed(owner: str, made: Any) -> list[OpDesc]:
    """What a maker returned, as a list.

    Raises:
        GradientError: it is something else than OpDescs.
    """
    descs = [made] if isinstance(made, OpDesc) else made
    if not isinstance(descs, (list, tuple)) or not all(isinstance(d, OpDesc) for d in descs):
        raise GradientError(f"{owner}: its gradient maker must return OpDescs, got {made!r:.200}")
    return list(descs)


def forward_desc(
    operator: Operator,
    groups: Mapping[str, Sequence[Any]],
    outputs: Sequence[str],
    attributes: Mapping[str, Any],
) -> OpDesc:
    """An OpDesc of a call whose variables are called like the slots that they fill."""
    return OpDesc(
        operator.name,
        {slot: _numbered(operator, slot, values) for slot, values in groups.items() if values},
        {name: [name] for name in outputs},
        {name: to_plain(value) for name, value in attributes.items()},
    )


def _numbered(operator: Operator, slot: str, values: Sequence[Any]) -> list[str]:
    if operator.slots[operator.slot_index[slot]].variadic:
        return [f"{slot}.{i}" for i in range(len(values))]
    return [slot]


def _interpreting(operator: Operator, make: DescMaker) -> Callable[..., Any]:
    """``make`` as a function from inputs, outputs and cotangents to gradients by slot."""

    def gradient(*values: Any, **attributes: Any) -> dict[str, Any]:
        call = _ForwardCall(operator, values)
        desc = forward_desc(operator, call.groups, list(call.outputs), attributes)
        scope = _Scope(operator.name, call.values(desc))
        for one in listed(operator.name, make(desc, ())):
            scope.run(one)
        return {
            slot.name: scope.gradients(desc.inputs[slot.name], several=slot.variadic)
            for slot in operator.slots
            if scope.has_gradient(desc.inputs.get(slot.name, []))
        }

    gradient.__signature__ = _signature(operator)  # type: ignore[attr-defined]
    return gradient


def _signature(operator: Operator) -> inspect.Signature:
    """Everything that a maker can name: slots, outputs, cotangents, attributes."""
    positional, keyword = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
    cotangents = [COTANGENT + name for name in _differentiated(operator)]
    return inspect.Signature(
        [
            *(inspect.Parameter(n, positional) for n in (*operator.slot_names, *operator.outputs)),
            *(inspect.Parameter(n, positional, annotation=Var | None) for n in cotangents),
            *(inspect.Parameter(one.name, keyword) for one in operator.attributes),
        ]
    )


def _differentiated(operator: Operator) -> list[str]:
    return [name for name in operator.outputs if name not in operator.updates.values()]


class _ForwardCall:
    """What the parameters of a maker hold, told apart."""

    def __init__(self, operator: Operator, values: Sequence[Any]) -> None:
        n_slots, n_outputs = len(operator.slots), len(operator.outputs)
        self.groups = dict(zip(operator.slot_names, map(_listed, values[:n_slots]), strict=True))
        outputs = values[n_slots : n_slots + n_outputs]
        self.outputs = _by_output(operator, operator.outputs, outputs)
        cotangents = values[n_slots + n_outputs :]
        self.cotangents = _by_output(operator, _differentiated(operator), cotangents)

    def values(self, desc: OpDesc) -> dict[str, Any]:
        """Values by name; a gradient that does not arrive is made zero when it is read."""
        known = {
            name: value
            for slot, names in desc.inputs.items()
            for name, value in zip(names, self.groups[slot], strict=True)
        }
        known |= self.outputs
        for name, cotangent in self.cotangents.items():
            known[grad_name(name)] = (
                _Missing(self.outputs[name]) if cotangent is None else cotangent
            )
        return known


def _listed(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return list(value)
    return [] if value is None else [value]


def _by_output(operator: Operator, names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Values by the name of the output; those of a variadic output are numbered."""
    found: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        if operator.variadic_output and name == operator.outputs[-1]:
            found |= {f"{name}{i}": one for i, one in enumerate(value)}
        else:
            found[name] = value
    return found


class _Missing:
    """A cotangent that does not arrive."""

    def __init__(self, like: Any) -> None:
        self.like = like


class _Scope:
    """The values that names stand for while OpDescs are interpreted."""

    def __init__(self, owner: str, values: dict[str, Any]) -> None:
        self._owner, self._values = owner, values
        self._given = set(values)

    def run(self, desc: OpDesc) -> None:
        """Call the operator that ``desc`` describes.

        Raises:
            UnknownOperatorError, ArgumentError: it does not describe a call of an operator.
            GradientError: it uses a name that nothing defines, or defines one anew.
        """
        operator = get(desc.type)
        slots = slots_of(operator, desc)
        values = {n: self._read(n) for names in slots.values() for n in names if n != EMPTY}
        result = operator(**arguments_of(operator, slots, values), **attributes_of(desc))
        results = result if isinstance(result, tuple) else (result,)
        called = operator.sized(len(results) + len(operator.hidden))
        by_output = dict(zip((called.outputs[i] for i in called.visible), results, strict=True))
        for key, names in outputs_of(operator, desc).items():
            for name, value in self._pairs(operator, key, names, by_output):
                self._define(name, value)

    def _pairs(
        self, operator: Operator, key: str, names: Sequence[str], results: Mapping[str, Any]
    ) -> list[tuple[str, Any]]:
        if operator.variadic_output and key == operator.outputs[-1]:
            several = [value for name, value in results.items() if name not in operator.outputs]
            if len(several) != len(names):
                raise ArgumentError(
                    f"{operator.name}: output {key!r} must name {len(several)} variables, got "
                    f"{len(names)}"
                )
            return list(zip(names, several, strict=True))
        if key not in results:
            raise ArgumentError(
                f"{operator.name}: output {key!r} must be visible to be used, but it is hidden"
            )
        if len(names) != 1:
            raise ArgumentError(
                f"{operator.name}: output {key!r} must name one variable, got {len(names)}"
            )
        return [(names[0], results[key])]

    def _read(self, name: str) -> Any:
        if name not in self._values:
            raise GradientError(
                f"{self._owner}: its gradient maker must use variables of the forward operator or "
                f"temporaries that it defines before, got {name!r}{nearest(name, self._values)}"
            )
        value = self._values[name]
        if isinstance(value, _Missing):
            zero = 0j if value.like.dtype.kind == "c" else 0.0
            value = self._values[name] = filled(value.like, zero)
        return value

    def _define(self, name: str, value: Any) -> None:
        if name == EMPTY:
            return
        if name in self._values:
            raise GradientError(
                f"{self._owner}: its gradient maker must define {name!r} once, and nothing that "
                "the forward operator defines"
            )
        belongs = name.removesuffix(GRAD)
        if name.endswith(GRAD) and belongs not in self._given:
            raise GradientError(
                f"{self._owner}: its gradient maker must give gradients of inputs, got {name!r}"
                f"{nearest(name, map(grad_name, self._given))}"
            )
        self._values[name] = value

    def has_gradient(self, names: Sequence[str]) -> bool:
        """Whether a gradient of one of the variables is defined."""
        return any(grad_name(name) in self._values for name in names)

    def gradients(self, names: Sequence[str], *, several: bool) -> Any:
        """The gradients of the variables in one slot; None for a zero."""
        found = [self._values.get(grad_name(name)) for name in names]
        return found if several else found[0]
