"""The audit: determines from the table alone which operators are differentiable to every order.

A gradient maker composes operators. If each operator that it composes has a derivative, and each
that their makers compose, and so on, no gradient of any order reaches an operator without one. The
audit runs the makers on probes: values that have a type and record the call that created them.
"""

import dataclasses
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from registry.audited import Audit, AuditEntry, Gap
from registry.cases import Case
from registry.errors import GradientError, SymopError
from registry.hooks import define
from registry.operator.attributes import identity_key
from registry.operator.binding import LEFT_OUT
from registry.operator.bodies import bodies_of
from registry.operator.bodies import drawn as attribute
from registry.operator.operator import Derivative, Operator
from registry.operator.recorder import gradient_value, type_of_value
from registry.symbolic import Symbolic
from registry.table import operators
from registry.types import KEY_TYPE, TRAINING_TYPE, VarType
from registry.var import Attributes, Inputs

_CALLS_LIMIT = 64
"""Maximum number of distinct calls of one operator to follow; makers hardly have more branches."""
_BODIES_LIMIT = 3
"""The same for an operator that runs bodies: its gradient calls it with ever larger ones."""
_WITHOUT = (Derivative.MISSING, Derivative.UNDEFINED)
_BY_JAX = Derivative.KERNEL
_MADE = (Derivative.MAKER, Derivative.KERNEL)


def audit() -> Audit:
    """Returns, for each operator, the operators in its gradients of all orders and any gap.

    Example:
        >>> import registry
        >>> print(registry.audit()["sin"])
        every order; broadcast_to, cos, multiply, negative, sin, sum_to
    """
    table = {operator.name: operator for operator in operators()}
    survey = _Survey()
    for operator in table.values():
        survey.look_at(operator, operator.cases)
    survey.follow()
    return Audit({name: survey.entry(operator) for name, operator in table.items()})


def entry_of(operator: Operator, cases: Sequence[Case] = ()) -> AuditEntry:
    """Returns the audit's entry for one operator, which need not be registered.

    Args:
        operator: the operator.
        cases: further cases on which to run its maker.

    Example:
        >>> from registry import get
        >>> entry_of(get("tanh")).every_order
        True
    """
    survey = _Survey()
    survey.look_at(operator, [*operator.cases, *cases])
    survey.follow()
    return survey.entry(operator)


# Probes ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class _Call:
    """One call made by a maker."""

    operator: Operator
    inputs: Inputs
    attributes: Attributes
    types: tuple[VarType | None, ...]

    @property
    def sources(self) -> list["_Probe"]:
        """The inputs through which a derivative can flow."""
        return [one for one in self.inputs if isinstance(one, _Probe) and one.type.differentiable]


class _Probe(Symbolic):
    """A value that has only a type."""

    __slots__ = ("_constant", "_type", "made_by")

    def __init__(
        self,
        type: VarType,
        call: _Call | None = None,
        constant: bool | int | float | complex | None = None,
    ) -> None:
        self._type, self.made_by, self._constant = type, call, constant

    @property
    def type(self) -> VarType:
        return self._type

    @property
    def constant(self) -> bool | int | float | complex | None:
        return self._constant


class _Prober:
    """The emitter of probes: calls return probes of the inferred types."""

    def emit(
        self, operator: Operator, inputs: Inputs, attributes: Attributes, name: str | None
    ) -> Any:
        del name
        values = tuple(_implicit(operator, i, one) for i, one in enumerate(inputs))
        types = tuple(map(type_of_value, values))
        call = _Call(operator, values, attributes, types)
        results = [_Probe(one, call) for one in operator.infer(types, attributes)]
        shown = [results[i] for i in operator.visible]
        return shown[0] if len(shown) == 1 else tuple(shown)

    def filled(self, value: bool | int | float | complex, type: VarType) -> _Probe:
        return _Probe(type, constant=value)


define(_Probe, emitter=_Prober())


def _implicit(operator: Operator, index: int, value: Any) -> Any:
    if value is not LEFT_OUT:
        return value
    return _Probe(KEY_TYPE if operator.slot_of(index).role == "key" else TRAINING_TYPE)


# The survey ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Question:
    """A call whose maker will be run: the operator, types and attributes."""

    operator: Operator
    types: tuple[VarType | None, ...]
    attributes: Attributes
    training: bool | None

    @property
    def key(self) -> Any:
        return self.types, identity_key(self.attributes), self.training


class _Survey:
    """Runs makers, and makers of the operators they call, until no new calls appear."""

    def __init__(self) -> None:
        self._met: dict[str, Operator] = {}
        self.edges: dict[str, dict[str, None]] = defaultdict(dict)
        self.faults: dict[str, str] = {}
        self._asked: dict[str, set[Any]] = defaultdict(set)
        self._open: deque[_Question] = deque()

    def look_at(self, operator: Operator, cases: Iterable[Case]) -> None:
        """Enqueues the maker of ``operator`` on each of ``cases``; a missing maker may be a gap."""
        self._met[operator.name] = operator
        flows = [self._try(operator, *_bound(operator, case)) for case in cases]
        if operator.derivative is Derivative.MISSING and any(flows or operator.slots):
            self.faults[operator.name] = operator.reason

    def _try(self, operator: Operator, inputs: Sequence[Any], attributes: Attributes) -> bool:
        """Enqueues the maker for one call; returns whether a derivative may flow through it."""
        if any(one is LEFT_OUT for one in inputs):
            return True
        called = operator.resolved(tuple(inputs), attributes)
        types = tuple(map(type_of_value, inputs))
        self._ask(called, types, attributes)
        return _may_flow(called, types, attributes)

    def _ask(
        self, operator: Operator, types: tuple[VarType | None, ...], attributes: Attributes
    ) -> None:
        if operator.derivative not in _MADE or _depth(operator) > 1:
            return
        flags = (None,) if operator.training_index is None else (False, True)
        for flag in flags:
            question = _Question(operator, types, attributes, flag)
            asked = self._asked[operator.name]
            limit = _BODIES_LIMIT if bodies_of(attributes) else _CALLS_LIMIT
            if question.key not in asked and len(asked) < limit:
                asked.add(question.key)
                self._open.append(question)

    def follow(self) -> None:
        """Runs the enqueued makers, and enqueues those of the operators they call."""
        while self._open:
            question = self._open.popleft()
            name = _declared(question.operator).name
            try:
                calls = list(_calls(question))
            except Exception as error:
                self.faults.setdefault(name, f"its maker fails: {_first_line(error)}")
                continue
            for call in calls:
                self._ask(call.operator, call.types, call.attributes)
                if call.operator.derived_from is not None:
                    continue
                self.edges[name][call.operator.name] = None
                self._met[call.operator.name] = call.operator
                if call.operator.derivative in _WITHOUT:
                    self.faults.setdefault(call.operator.name, call.operator.reason)

    def entry(self, operator: Operator) -> AuditEntry:
        """Returns the findings for ``operator``."""
        before = self._closure(operator.name)
        return AuditEntry(
            operator.name,
            operator.derivative,
            operator.reason,
            tuple(sorted(set(before) - {operator.name} | self._itself(operator.name))),
            tuple(sorted(one for one in before if self._met[one].derivative is _BY_JAX)),
            self._gap(operator, before),
        )

    def _itself(self, name: str) -> set[str]:
        """Contains ``name`` if its own gradient calls it again."""
        return {name} if any(name in self.edges[one] for one in self._closure(name)) else set()

    def _closure(self, name: str) -> dict[str, str | None]:
        """Returns every operator that ``name`` reaches, breadth first, mapped to its caller."""
        before: dict[str, str | None] = {name: None}
        waiting = deque([name])
        while waiting:
            one = waiting.popleft()
            for called in self.edges[one]:
                if called not in before:
                    before[called] = one
                    waiting.append(called)
        return before

    def _gap(self, operator: Operator, before: Mapping[str, str | None]) -> Gap | None:
        if operator.derivative in (Derivative.ZERO, Derivative.UNDEFINED):
            return None
        for name in before:
            if name in self.faults:
                return Gap(tuple(_path(name, before)), self.faults[name])
        if operator.derivative in _MADE and not self._asked[operator.name]:
            return Gap((operator.name,), "no case runs its maker")
        return None


def _may_flow(
    operator: Operator, types: tuple[VarType | None, ...], attributes: Attributes
) -> bool:
    """Whether an input and an output have an inexact dtype."""
    if not any(one is not None and one.differentiable for one in types):
        return False
    try:
        return any(one.differentiable for one in operator.infer(types, attributes))
    except SymopError:  # an invalid case, which the operator's own tests report
        return True


def _depth(operator: Operator) -> int:
    """Returns the number of times that JAX differentiated a kernel to produce ``operator``.

    One differentiation is tried: a kernel that JAX can differentiate twice has all derivatives.
    """
    return 0 if operator.derived_from is None else 1 + _depth(operator.derived_from)


def _declared(operator: Operator) -> Operator:
    """Returns the user-declared operator from which ``operator`` is derived."""
    return operator if operator.derived_from is None else _declared(operator.derived_from)


def _path(name: str | None, before: Mapping[str, str | None]) -> list[str]:
    path: list[str] = []
    while name is not None:
        path.append(name)
        name = before[name]
    return path[::-1]


def _bound(operator: Operator, case: Case) -> tuple[list[Any], Attributes]:
    """Returns the flat inputs and attributes of a case."""
    drawn = {
        name: case.draw(name, np.dtype(np.float32))
        if name in operator.slot_index
        else attribute(value, np.dtype(np.float32))
        for name, value in case.values.items()
        if name != "training"
    }
    inputs, attributes, _ = operator.bind((), drawn)
    filled = [
        _implicit(operator, i, one) if operator.slot_of(i).implicit else one
        for i, one in enumerate(inputs)
    ]
    return filled, attributes


def _calls(question: _Question) -> Iterator[_Call]:
    """Yields the calls of a maker through which a derivative can flow to its result."""
    operator = question.operator
    rule = operator.gradient_rule
    assert rule is not None
    inputs = tuple(
        None
        if one is None
        else _Probe(one, constant=question.training if one is TRAINING_TYPE else None)
        for one in question.types
    )
    # A maker that names an output differentiates through it: the operator reaches itself.
    itself = _Call(operator, inputs, question.attributes, question.types)
    types = operator.infer(question.types, question.attributes)
    outputs = tuple(_Probe(one, itself) for one in types)
    cotangents = tuple(
        _Probe(one.type.strong()) if one.type.differentiable else None for one in outputs
    )
    if not any(one is not None and one.type.differentiable for one in inputs):
        return
    if all(one is None for one in cotangents):
        return
    grads = rule(inputs, question.attributes, outputs, cotangents)
    _require_every_slot(question, grads)
    yield from _differentiated(_probes(grads.values()))


def _require_every_slot(question: _Question, grads: Mapping[str, Any]) -> None:
    """Requires explicit zeros; only states and non-differentiable slots may be left out."""
    for i, type in enumerate(question.types):
        slot = question.operator.slot_of(i)
        silent = type is None or not type.differentiable or slot.implicit or slot.role == "state"
        if not silent and slot.name not in grads:
            raise GradientError(
                f"it must give a gradient for slot {slot.name!r}: an array, None for zero, or as "
                f"an OpDesc one that defines {slot.name}@GRAD (zeros_like, for zero); got "
                f"{', '.join(sorted(grads)) or 'none'}"
            )


def _probes(gradients: Iterable[Any]) -> Iterator[_Probe]:
    for gradient in gradients:
        one = gradient_value(gradient)
        if isinstance(one, _Probe):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from _probes(one)


def _differentiated(results: Iterable[_Probe]) -> Iterator[_Call]:
    """Yields the calls that a derivative of ``results`` runs through."""
    waiting, seen = list(results), set[int]()
    while waiting:
        probe = waiting.pop()
        call = probe.made_by
        if call is None or not probe.type.differentiable or id(call) in seen:
            continue
        seen.add(id(call))
        if call.sources:
            yield call
        if call.operator.derivative is not Derivative.ZERO:
            waiting += call.sources


def _first_line(error: Exception) -> str:
    kind = "" if isinstance(error, SymopError) else f"{type(error).__name__}: "
    return kind + str(error).partition("\n")[0]
