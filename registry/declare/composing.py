"""Gradient makers that return OpDescs, adapted to gradient makers of an operator.

The maker receives an OpDesc that names each input after its slot, and its result is interpreted:
each OpDesc is a call of its operator on the values of its names. One function thus serves graphs,
programs and JAX, like any other gradient maker.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from registry.declare.scope import AbsentCotangent, Namespace, not_of_an_input, undefined
from registry.desc import BlockDesc, OpDesc
from registry.errors import ArgumentError, GradientError
from registry.naming import COTANGENT, EMPTY, GRAD, excluded, grad_name
from registry.operator.attributes import to_plain
from registry.operator.gradient_descs import first_output, renamed, require_output, unnamed
from registry.operator.leaf_descs import leaf_names
from registry.operator.operator import GradOpMaker, Operator
from registry.operator.recorder import checked_call, outputs_of, slots_of, type_of_value
from registry.operator.rule import WANTED
from registry.table import find, get
from registry.var import Var

OpDescs = list[OpDesc] | OpDesc
DescMaker = Callable[[OpDesc, Iterable[str]], OpDescs]
"""Maps an OpDesc and a no-grad set to OpDescs."""


def declare_composition(
    operator: Operator,
    make: DescMaker,
    known: Iterable[Operator] = (),
    constant: Iterable[str] = (),
) -> None:
    """Declares ``make`` as the gradient maker of ``operator``.

    Args:
        operator: an operator without a derivative so far.
        make: the maker.
        known: operators that it calls and that may be unregistered.
        constant: outputs without gradients.

    Raises:
        DeclarationError: the operator already has a derivative.
    """
    bindings = Bindings([operator, *known])
    maker = _interpreting(operator, make, bindings, frozenset(constant))
    operator.gradient(maker, reads=_slots_read(operator, make, bindings))
    operator.composed_by(_grad_op_maker(operator, make))


class Bindings:
    """The operators that a maker calls by name: each name is bound permanently.

    Otherwise, replacing an operator would change the gradients of existing graphs and programs.
    """

    def __init__(self, operators: Iterable[Operator]) -> None:
        """Starts with ``operators``; others are looked up once, at their first call."""
        self._bound = {one.name: one for one in operators}

    def __call__(self, name: str) -> Operator:
        """Returns the operator bound to ``name``."""
        if name not in self._bound:
            self._bound.setdefault(name, get(name))
        return self._bound[name]


def _slots_read(operator: Operator, make: DescMaker, bindings: Bindings) -> set[str]:
    """Returns the input slots that a maker reads; all of them if only a real call can tell.

    The operators that it calls are bound, if they are already registered.
    """
    desc = synthetic_desc(operator)
    try:
        descs = listed(operator.name, make(desc, ()))
        for one in descs:
            bindings(one.type)
    except Exception:  # it reads more than names, or calls unregistered operators
        return set(operator.slot_names)
    read = {name for one in descs for names in one.inputs.values() for name in names}
    return {slot for slot, names in desc.inputs.items() if read.intersection(names)}


def synthetic_desc(operator: Operator) -> OpDesc:
    """Returns an OpDesc of a call that fills every slot, with the default attributes."""
    defaults = {one.name: one.default for one in operator.attributes if not one.required}
    groups = {slot.name: [slot.name] for slot in operator.slots}
    return forward_desc(operator, groups, {name: [name] for name in operator.outputs}, defaults)


# From records to records -----------------------------------------------------------------------


def _grad_op_maker(operator: Operator, make: DescMaker) -> GradOpMaker:
    def grad_op_maker(
        op_desc: OpDesc, no_grad_set: Iterable[str] = (), block: BlockDesc | None = None
    ) -> list[OpDesc]:
        checked_call(operator, op_desc)
        require_output(operator, op_desc)
        # Such a maker reads names, never types.
        barred = frozenset(no_grad_set) | leaf_names(op_desc, block)
        call = _NamedCall(operator, op_desc, barred)
        descs = listed(operator.name, make(call.desc, call.no_grad_set))
        if call.defines_variables(descs):
            call.name_by_slot()
            descs = listed(operator.name, make(call.desc, call.no_grad_set))
        call.require_named(descs)
        call.require_known(descs)
        return call.renamed(descs)

    return grad_op_maker


class _NamedCall:
    """A call as its maker sees it, and the mapping back from the names that the maker uses.

    A maker may read names from the OpDesc, or name slots (``Out@GRAD``), as it does when it runs on
    values. A slot's name therefore represents its variable. Where the two are ambiguous (a variable
    has the name of another slot, or fills several slots), the maker sees an OpDesc whose variables
    have the names of their slots. Temporaries get names that are unique to this call.

    Attributes:
        desc: the OpDesc that the maker receives.
        no_grad_set: the variables, as named in ``desc``, whose gradients are not needed.
    """

    _told: set[str]
    """The variables of the call that the maker sees by their own names."""

    def __init__(self, operator: Operator, op_desc: OpDesc, no_grad_set: frozenset[str]) -> None:
        self._operator = operator
        inputs, outputs = slots_of(operator, op_desc), outputs_of(operator, op_desc)
        stem = operator.outputs[-1] if operator.variadic_output else None
        by_slot = {slot: _numbered(operator, slot, names) for slot, names in inputs.items()}
        by_output = {
            key: [f"{key}{i}" for i in range(len(names))] if key == stem else [key] * len(names)
            for key, names in outputs.items()
        }
        groups = [*inputs.items(), *outputs.items()]
        slots = {**by_slot, **by_output}
        pairs = [pair for key, names in groups for pair in zip(slots[key], names, strict=True)]
        self._variables = {own: name for own, name in pairs if name != EMPTY}
        self._inputs = {own for names in by_slot.values() for own in names} & {*self._variables}
        self._missing = _unnamed_outputs(operator, outputs)
        self._owner = grad_name(first_output(op_desc))
        self.desc, self.no_grad_set = op_desc, no_grad_set
        self._barred, self._by_slot = no_grad_set, (by_slot, by_output)
        self._told = set(self._variables.values())
        if _are_ambiguous(pairs, [*operator.slot_names, *operator.outputs]):
            self.name_by_slot()

    def name_by_slot(self) -> None:
        """Gives the maker an OpDesc whose variables are named after their slots."""
        inputs, outputs = self._by_slot
        self.desc = msgspec.structs.replace(self.desc, inputs=inputs, outputs=outputs)
        self._told = set()
        self.no_grad_set = frozenset(
            own for own in self._inputs if excluded(self._variables[own], self._barred)
        )

    def defines_variables(self, descs: Sequence[OpDesc]) -> bool:
        """Whether a temporary of the maker has the name of a variable of the call."""
        defined = _names_in([one.outputs for one in descs])
        return not defined.isdisjoint(self._told - {*self._variables})

    def require_known(self, descs: Sequence[OpDesc]) -> None:
        """Rejects names that nothing defines, and gradients of values that are not inputs.

        Raises:
            GradientError: a maker's OpDesc reads or writes such a name.
        """
        owner, variables = self._operator.name, {*self._variables, *self._told}
        inputs = {*self._inputs, *self._told.intersection(map(self._variables.get, self._inputs))}
        known = {*variables, *map(grad_name, variables), EMPTY}
        for one in descs:
            for name in _names_in([one.inputs]):
                if name not in known:
                    raise undefined(owner, name, known)
            for name in _names_in([one.outputs]):
                if name.endswith(GRAD) and name.removesuffix(GRAD) not in inputs:
                    raise not_of_an_input(owner, name, inputs)
                known.add(name)

    def require_named(self, descs: Sequence[OpDesc]) -> None:
        """Rejects reads of an output, or of its gradient, that the call does not name.

        Raises:
            ArgumentError: a maker's OpDesc reads it by name, or has an empty slot in its place.
        """
        read = _names_in([one.inputs for one in descs])
        for output in self._missing:
            if output in read or grad_name(output) in read:
                raise unnamed(self._operator.name, output)
        for one in descs if self._missing else ():
            operator = find(one.type)
            if operator is not None and _lacks_a_slot(operator, one):
                raise unnamed(self._operator.name, self._missing[0])

    def renamed(self, descs: Sequence[OpDesc]) -> list[OpDesc]:
        """Returns ``descs`` with the names of the call.

        A variable that fills several slots receives the sum of their gradients.
        """
        defined, read = (_names_in([getattr(d, at) for d in descs]) for at in ("outputs", "inputs"))
        names = self._names(defined, read)
        known = {*self._told, *map(grad_name, self._told), EMPTY}
        names |= {n: f"{self._owner}@{n}" for n in sorted(defined) if n not in names.keys() | known}
        sums = []
        for target, own in self._parts(defined, names).items():
            each = [f"{target}@RENAME_{i}" for i in range(len(own))]
            names |= dict(zip(own, each, strict=True))
            sums.append(OpDesc("add_n", {"xs": each}, {"out": [target]}))
        return [*(renamed(one, names) for one in descs), *sums]

    def _names(self, defined: set[str], read: set[str]) -> dict[str, str]:
        """Maps the names of slots and of their gradients to those of the call's variables."""
        names = {grad_name(own): grad_name(name) for own, name in self._variables.items()}
        names |= self._variables
        for own in self._inputs:
            target = grad_name(own)
            if target in defined and excluded(self._variables[own], self._barred):
                names[target] = f"{self._owner}@{target}" if target in read else EMPTY
        return names

    def _parts(self, defined: set[str], names: Mapping[str, str]) -> dict[str, list[str]]:
        """Maps the gradient of a variable in several slots to the gradients of these slots."""
        parts: dict[str, list[str]] = {}
        for own in map(grad_name, self._variables):
            if own in defined and names[own] != EMPTY:
                parts.setdefault(names[own], []).append(own)
        return {target: own for target, own in parts.items() if len(own) > 1}


def _unnamed_outputs(operator: Operator, outputs: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the outputs that a call does not name."""
    filled = [key for key, names in outputs.items() if any(one != EMPTY for one in names)]
    if operator.variadic_output:
        stem = operator.outputs[-1]
        filled += [stem for key in filled if key.removeprefix(stem).isdigit()]
    return [one for one in operator.outputs if one not in filled]


def _are_ambiguous(pairs: Sequence[tuple[str, str]], keys: Sequence[str]) -> bool:
    """Whether a variable fills several slots, or has the name of a slot that it does not fill."""
    names = [name for _, name in pairs if name != EMPTY]
    taken = {*keys, *map(grad_name, keys), *(own for own, _ in pairs)}
    taken |= {grad_name(own) for own, _ in pairs}
    return len(set(names)) < len(names) or any(
        name != own and name in taken for own, name in pairs if name != EMPTY
    )


def _names_in(groups: Iterable[Mapping[str, list[str]]]) -> set[str]:
    return {name for filled in groups for names in filled.values() for name in names}


def _lacks_a_slot(operator: Operator, one: OpDesc) -> bool:
    try:
        checked_call(operator, one)
    except ArgumentError:
        return True
    return False


def listed(owner: str, result: Any) -> list[OpDesc]:
    """Returns a maker's result as a list.

    Raises:
        GradientError: it contains other objects than OpDescs.
    """
    descs = [result] if isinstance(result, OpDesc) else result
    if not isinstance(descs, (list, tuple)) or not all(isinstance(d, OpDesc) for d in descs):
        raise GradientError(f"{owner}: its gradient maker must return OpDescs, got {result!r:.200}")
    return list(descs)


# From values to values -------------------------------------------------------------------------


def forward_desc(
    operator: Operator,
    groups: Mapping[str, Sequence[Any]],
    outputs: Mapping[str, list[str]],
    attributes: Mapping[str, Any],
) -> OpDesc:
    """Returns an OpDesc of a call whose variables have the names of their slots."""
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
    """Returns ``make`` as a function from inputs, outputs and cotangents to gradients by slot."""

    tells = WANTED not in (*operator.slot_names, *operator.outputs)

    def gradient(*values: Any, **attributes: Any) -> dict[str, Any]:
        call = _ForwardCall(operator, values[: len(values) - tells])
        desc = forward_desc(operator, call.groups, call.names, attributes)
        scope = Namespace(operator.name, call.values(desc), bindings)
        barred = _unwanted(operator, call, values[-1]) if tells else frozenset[str]()
        for one in listed(operator.name, make(desc, barred)):
            scope.run(one)
        for name in () if barred else call.considered():
            arrives = name in call.arrived and name not in operator.hidden
            dropped = (arrives or scope.was_read(name)) and not scope.was_read(grad_name(name))
            if dropped and name not in constant:
                # If it reads the output, that output has a gradient in the second derivative.
                raise GradientError(
                    f"{operator.name}: its gradient maker must use the gradient of the output "
                    f"{name!r}, unless that is declared without_gradient()"
                )
        return {
            slot.name: scope.gradients(desc.inputs[slot.name], several=slot.variadic)
            for slot in operator.slots
            if scope.has_gradient(desc.inputs.get(slot.name, []))
        }

    gradient.__signature__ = _signature(operator, tells=tells)  # type: ignore[attr-defined]
    return gradient


def _unwanted(operator: Operator, call: "_ForwardCall", wanted: Sequence[bool]) -> frozenset[str]:
    """Returns the no-grad set of a call: differentiable inputs without a requested gradient."""
    barred = set()
    for i, slot in enumerate(operator.slots):
        values = call.groups[slot.name]
        places = range(i, i + len(values)) if slot.variadic else [i] * len(values)
        names = _numbered(operator, slot.name, values)
        for place, name, value in zip(places, names, values, strict=True):
            type = type_of_value(value)
            if not wanted[place] and type is not None and type.differentiable:
                barred.add(name)
    return frozenset(barred)


def _signature(operator: Operator, *, tells: bool) -> inspect.Signature:
    """Returns all that a maker can name: slots, outputs, cotangents, ``wanted``, attributes."""
    positional, keyword = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
    cotangents = [COTANGENT + name for name in _differentiated(operator)]
    return inspect.Signature(
        [
            *(inspect.Parameter(n, positional) for n in (*operator.slot_names, *operator.outputs)),
            *(inspect.Parameter(n, positional, annotation=Var | None) for n in cotangents),
            *([inspect.Parameter(WANTED, positional)] if tells else []),
            *(inspect.Parameter(one.name, keyword) for one in operator.attributes),
        ]
    )


def _differentiated(operator: Operator) -> list[str]:
    return [name for name in operator.outputs if name not in operator.updates.values()]


class _ForwardCall:
    """The arguments of a maker, sorted.

    Attributes:
        groups: the inputs by slot.
        names: names of the outputs' variables, by output.
    """

    def __init__(self, operator: Operator, values: Sequence[Any]) -> None:
        n_slots, n_outputs = len(operator.slots), len(operator.outputs)
        self.groups = dict(zip(operator.slot_names, map(_listed, values[:n_slots]), strict=True))
        results = values[n_slots : n_slots + n_outputs]
        outputs = dict(zip(operator.outputs, results, strict=True))
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
        named: dict[str, Any] = {}
        for output, value in values.items():
            names = self.names[output]
            several = value if names != [output] else [value]
            named.update(zip(names, several, strict=True))
        return named

    def values(self, desc: OpDesc) -> dict[str, Any]:
        """Returns values by name; an absent cotangent becomes zero when it is read."""
        known = {
            name: value
            for slot, names in desc.inputs.items()
            for name, value in zip(names, self.groups[slot], strict=True)
        }
        known |= self._outputs
        for name, cotangent in self._cotangents.items():
            missing = AbsentCotangent(self._outputs[name])
            known[grad_name(name)] = missing if cotangent is None else cotangent
        return known

    @property
    def arrived(self) -> set[str]:
        """The outputs that have a cotangent."""
        return {name for name, cotangent in self._cotangents.items() if cotangent is not None}

    def considered(self) -> list[str]:
        """Returns the outputs that can have a gradient."""
        return [name for name in self._cotangents if self._outputs[name].type.differentiable]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return list(value)
    return [] if value is None else [value]
