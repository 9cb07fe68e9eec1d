"""Gradient makers that return OpDescs, as gradient makers of the operator that they belong to.

The maker gets an OpDesc that names each input after its slot, and what it returns is interpreted:
each OpDesc is a call of its operator on the values that its names stand for. So the one function
serves graphs, programs and JAX, like any other gradient maker.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from registry.attributes import to_plain
from registry.declare.scope import Missing, Scope
from registry.desc import BlockDesc, OpDesc
from registry.errors import GradientError
from registry.naming import COTANGENT, EMPTY, grad_name
from registry.operator import GradOpMaker, Operator
from registry.recorder import checked_call
from registry.table import get
from registry.var import Var

OpDescs = list[OpDesc] | OpDesc
DescMaker = Callable[[OpDesc, Iterable[str]], OpDescs]
"""From an OpDesc and a no-grad set to OpDescs."""


def declare_composition(
    operator: Operator,
    make: DescMaker,
    known: Iterable[Operator] = (),
    constant: Iterable[str] = (),
) -> None:
    """Declare ``make`` as the gradient maker of ``operator``.

    Args:
        operator: an operator without a derivative so far.
        make: the maker.
        known: operators that it calls and that may not be registered yet.
        constant: outputs that carry no gradient.

    Raises:
        DeclarationError: the operator has a derivative already.
    """
    bindings = Bindings([operator, *known])
    maker = _interpreting(operator, make, bindings, frozenset(constant))
    operator.gradient(maker, reads=_slots_read(operator, make, bindings))
    operator.composed_by(_grad_op_maker(operator, make))


class Bindings:
    """The operators that a maker calls by name: each name means the same operator for good.

    Otherwise an operator that replaces another one would change the gradients of what was built
    before.
    """

    def __init__(self, operators: Iterable[Operator]) -> None:
        """Begin with ``operators``; others are looked up once, when they are first called."""
        self._bound = {one.name: one for one in operators}

    def __call__(self, name: str) -> Operator:
        """The operator that ``name`` means."""
        if name not in self._bound:
            self._bound.setdefault(name, get(name))
        return self._bound[name]


def _slots_read(operator: Operator, make: DescMaker, bindings: Bindings) -> set[str]:
    """The input slots that a maker uses; all, where it does not tell without a real call.

    The operators that it calls are bound, where they are registered already.
    """
    desc = synthetic_desc(operator)
    try:
        made = listed(operator.name, make(desc, ()))
        for one in made:
            bindings(one.type)
    except Exception:  # it wants to know more of the call than its names, or calls what is to come
        return set(operator.slot_names)
    read = {name for one in made for names in one.inputs.values() for name in names}
    return {slot for slot, names in desc.inputs.items() if read.intersection(names)}


def synthetic_desc(operator: Operator) -> OpDesc:
    """An OpDesc of a call that fills every slot, attributes that have a default given."""
    defaults = {one.name: one.default for one in operator.attributes if not one.required}
    groups = {slot.name: [slot.name] for slot in operator.slots}
    return forward_desc(operator, groups, {name: [name] for name in operator.outputs}, defaults)


# From records to records -----------------------------------------------------------------------


def _grad_op_maker(operator: Operator, make: DescMaker) -> GradOpMaker:
    def grad_op_maker(
        op_desc: OpDesc, no_grad_set: Iterable[str] = (), block: BlockDesc | None = None
    ) -> list[OpDesc]:
        del block  # such a maker asks for names, never for types
        checked_call(operator, op_desc)
        return _summed(listed(operator.name, make(op_desc, no_grad_set)))

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


def _summed(descs: list[OpDesc]) -> list[OpDesc]:
    """``descs``, in which a variable that fills several slots gets the sum of their gradients."""
    defined = Counter(n for one in descs for names in one.outputs.values() for n in names)
    repeated = {name: list[str]() for name, count in defined.items() if count > 1 and name != EMPTY}
    if not repeated:
        return descs

    def renamed(name: str) -> str:
        if name not in repeated:
            return name
        repeated[name].append(f"{name}@RENAME_{len(repeated[name])}")
        return repeated[name][-1]

    apart = [
        OpDesc(
            one.type,
            one.inputs,
            {key: [renamed(name) for name in names] for key, names in one.outputs.items()},
            one.attrs,
            one.name,
        )
        for one in descs
    ]
    sums = [OpDesc("add_n", {"xs": parts}, {"out": [name]}) for name, parts in repeated.items()]
    return [*apart, *sums]


# From values to values -------------------------------------------------------------------------


def forward_desc(
    operator: Operator,
    groups: Mapping[str, Sequence[Any]],
    outputs: Mapping[str, list[str]],
    attributes: Mapping[str, Any],
) -> OpDesc:
    """An OpDesc of a call whose variables are called like the slots that they fill."""
    return OpDesc(
        operator.name,
        {slot: _numbered(operator, slot, values) for slot, values in groups.items() if values},
        dict(outputs),
        {name: to_plain(value) for name, value in attributes.items()},
    )


def _numbered(operator: Operator, slot: str, values: Sequence[Any]) -> list[str]:
    if operator.slots[operator.slot_index[slot]].variadic:
        return [f"{slot}.{i}" for i in range(len(values))]
    return [slot]


def _interpreting(
    operator: Operator, make: DescMaker, bindings: Bindings, constant: frozenset[str]
) -> Callable[..., Any]:
    """``make`` as a function from inputs, outputs and cotangents to gradients by slot."""

    def gradient(*values: Any, **attributes: Any) -> dict[str, Any]:
        call = _ForwardCall(operator, values)
        desc = forward_desc(operator, call.groups, call.names, attributes)
        scope = Scope(operator.name, call.values(desc), bindings)
        for one in listed(operator.name, make(desc, ())):
            scope.run(one)
        for name in call.considered():
            arrives = name in call.arrived and name not in operator.hidden
            dropped = (arrives or scope.was_read(name)) and not scope.was_read(grad_name(name))
            if dropped and name not in constant:
                # If it uses the output, a gradient arrives there when this one is differentiated.
                raise GradientError(
                    f"{operator.name}: its gradient maker must use the gradient of the output "
                    f"{name!r}, unless that is declared without_gradient()"
                )
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
    """What the parameters of a maker hold, told apart.

    Attributes:
        groups: the inputs by slot.
        names: names of the outputs' variables, by output.
    """

    def __init__(self, operator: Operator, values: Sequence[Any]) -> None:
        n_slots, n_outputs = len(operator.slots), len(operator.outputs)
        self.groups = dict(zip(operator.slot_names, map(_listed, values[:n_slots]), strict=True))
        given = values[n_slots : n_slots + n_outputs]
        outputs = dict(zip(operator.outputs, given, strict=True))
        cotangents = dict(
            zip(_differentiated(operator), values[n_slots + n_outputs :], strict=True)
        )
        self.names = {name: [name] for name in operator.outputs}
        if operator.variadic_output:
            stem = operator.outputs[-1]
            self.names[stem] = [f"{stem}{i}" for i in range(len(outputs[stem]))]
        self._outputs = self._by_name(outputs)
        self._cotangents = self._by_name(cotangents)

    def _by_name(self, values: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for output, value in values.items():
            names = self.names[output]
            several = value if names != [output] else [value]
            found.update(zip(names, several, strict=True))
        return found

    def values(self, desc: OpDesc) -> dict[str, Any]:
        """Values by name; a gradient that does not arrive is made zero when it is read."""
        known = {
            name: value
            for slot, names in desc.inputs.items()
            for name, value in zip(names, self.groups[slot], strict=True)
        }
        known |= self._outputs
        for name, cotangent in self._cotangents.items():
            missing = Missing(self._outputs[name])
            known[grad_name(name)] = missing if cotangent is None else cotangent
        return known

    @property
    def arrived(self) -> set[str]:
        """The outputs at which a gradient arrives."""
        return {name for name, cotangent in self._cotangents.items() if cotangent is not None}

    def considered(self) -> list[str]:
        """The outputs that can have a gradient."""
        return [name for name in self._cotangents if self._outputs[name].type.differentiable]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return list(value)
    return [] if value is None else [value]
