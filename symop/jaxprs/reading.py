"""Jaxprs as graphs: one node, or a few, for each equation."""

import functools
import os
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from registry.caches import memoized
from registry.errors import UnsupportedPrimitiveError
from registry.operator.bodies import bodies_of
from registry.primitives import inner_jaxprs, reduces_over_devices
from registry.shapes import canonical
from registry.table import get
from registry.tracebacks import is_own_file
from registry.types import VarType, is_extended_float
from symop.graph.emission import intern_call
from symop.graph.nodes import VARIABLE, Node, array, constant, select
from symop.graph.origins import (
    Origin,
    ambient,
    copied_origin,
    current_scope,
    user_origin,
)
from symop.regions.lazy import LazyBody

Values = Sequence[Node]
Policy = Callable[..., Any]
"""A policy of ``jax.checkpoint``: from a primitive, its inputs and parameters to a decision."""
CALLS = ("jit", "pjit", "closed_call", "core_call", "call", "core_closed_call", "eval_jaxpr")
"""The primitives that call a jaxpr, whose equations are read as if they stood outside."""
Warn = Callable[["Sequence[Foreign]"], None]
"""Warns of equations that are opaque."""
Translation = Callable[["Reader", JaxprEqn, Values], Sequence[Node]]
"""Builds the outputs of an equation from its inputs."""


class Foreign(NamedTuple):
    """An equation that entered a graph as an opaque operator.

    Attributes:
        primitive: the name of JAX's primitive.
        place: the user's file and line.
        spans_devices: whether it combines or tells apart what devices hold, so that it is opaque by
            nature.
    """

    primitive: str
    place: str
    spans_devices: bool = False

    def __str__(self) -> str:
        return f"{self.primitive} at {self.place}"


_STILL = ("stop_gradient", "nondifferentiable_call")
"""Operators whose results have no tangent."""
TRANSLATIONS: dict[str, Translation] = {}
"""How each primitive is translated, by its name."""


def translates(*primitives: str) -> Callable[[Translation], Translation]:
    """Declares how ``primitives`` are translated."""

    def declare(translation: Translation) -> Translation:
        TRANSLATIONS.update(dict.fromkeys(primitives, translation))
        return translation

    return declare


class Reader:
    """Reads the equations of one function.

    Attributes:
        strict: whether an equation that would be opaque is an error.
        foreign: the equations that are opaque.
        rules: the number of derivative rules that are being read, each inside the one before.
    """

    def __init__(self, otherwise: Translation, *, strict: bool, warn: Warn) -> None:
        """Creates a reader that uses ``otherwise`` for primitives without a translation.

        It calls ``warn`` with the opaque equations of a rule that is read later.
        """
        self.strict = strict
        self.warn = warn
        self.foreign: list[Foreign] = []
        self.rules = 0
        self._policy: Policy | None = None
        self._saved: list[Node] = []
        self._otherwise = otherwise
        self._moves: dict[Node, bool] = {}
        self._exactly: dict[Node, bool] = {}
        self._stands: dict[Node, Node] = {}
        self._once: dict[Any, tuple[JaxprEqn, Any]] = {}

    def read(self, program: ClosedJaxpr, inputs: Values) -> list[Node]:
        """Returns the outputs of ``program`` for ``inputs``."""
        return self.read_open(program.jaxpr, [constant_of(one) for one in program.consts], inputs)

    def read_open(self, jaxpr: Jaxpr, consts: Values, inputs: Values) -> list[Node]:
        """Returns the outputs of ``jaxpr`` for constants and inputs."""
        values: dict[Any, Node] = {}
        values.update(zip(jaxpr.constvars, consts, strict=True))
        values.update(zip(jaxpr.invars, inputs, strict=True))

        def value_of(atom: Any) -> Node:
            return constant_of(atom.val) if isinstance(atom, Literal) else values[atom]

        for equation in _needed(jaxpr):
            results = self._apply(equation, [value_of(one) for one in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
        return [value_of(one) for one in jaxpr.outvars]

    def moves(self, value: Node, *, exactly: bool = False) -> bool:
        """Whether ``value`` may have a tangent: it depends on an inexact variable.

        JAX asks the rule of a function only for derivatives by such arguments, and some rules
        refuse all others. If ``exactly``, the rules of the calls on the way are read, since a call
        whose rule refuses to differentiate has no tangent.
        """
        known = self._exactly if exactly else self._moves
        waiting = [value]
        while waiting:
            node = waiting[-1]
            ahead = [one for one in self._sources(node) if one not in known]
            if ahead:
                waiting += ahead
            else:
                moving = any(known[one] for one in self._sources(node))
                known[waiting.pop()] = self._may_move(node, moving, exactly)
        return known[value]

    def _sources(self, node: Node) -> Values:
        return (self._stands[node],) if node in self._stands else node.operands

    def _may_move(self, node: Node, moving: bool, exactly: bool) -> bool:
        if node.op.name in _STILL or not any(one.differentiable for one in node.types or ()):
            return False
        is_free = node.op is VARIABLE and node not in self._stands
        return is_free or (moving and not (exactly and _refuses(node)))

    def hold(self, parameters: Values, arguments: Values) -> None:
        """Notes for which arguments the parameters of a body stand."""
        self._stands.update(zip(parameters, arguments, strict=True))

    def once(self, equation: JaxprEqn, key: Any, make: Callable[[], Any]) -> Any:
        """Returns what ``make`` returned for this equation and key inside as many rules."""
        place = id(equation), key, self.rules
        if place not in self._once:
            self._once[place] = equation, make()  # while it is held, no other has its id
        return self._once[place][1]

    def _apply(self, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
        translation = TRANSLATIONS.get(equation.primitive.name, self._otherwise)
        if equation.primitive.name not in CALLS and _combines_devices(equation):
            translation = self._otherwise
        with located(equation):
            results = translation(self, equation, inputs)
        if self._policy is not None and equation.primitive.name not in CALLS:
            avals = avals_of(equation.invars)
            if _saves(self._policy(equation.primitive, *avals, **equation.params)):
                self._saved += results
        return results

    @contextmanager
    def saving_by(self, policy: "Policy | None") -> Iterator[list[Node]]:
        """Collects the values of equations inside that a policy of ``jax.checkpoint`` saves."""
        before = self._policy, self._saved
        self._policy, self._saved = policy, []
        try:
            yield self._saved
        finally:
            self._policy, self._saved = before


def _refuses(node: Node) -> bool:
    """Whether ``node`` is a call with a rule that refuses to differentiate."""
    return any(isinstance(one, LazyBody) and one.refuses for one in bodies_of(node.attributes))


def _combines_devices(equation: JaxprEqn) -> bool:
    """Whether a body combines what devices hold, which no type of symop tells."""
    return any(map(reduces_over_devices, inner_jaxprs(equation)))


def spans_devices(equation: JaxprEqn) -> bool:
    """Whether an equation or its bodies combine or tell apart what devices hold."""
    named = any(type(one).__name__ == "NamedAxisEffect" for one in equation.effects)
    named = named or "axis_name" in equation.params
    return named or equation.primitive.name == "shard_map" or _combines_devices(equation)


def _saves(decision: Any) -> bool:
    """Whether a policy saves a value, on the device or elsewhere."""
    return decision is True or type(decision).__name__ in ("Saveable", "Offloadable")


def _needed(jaxpr: Jaxpr) -> list[JaxprEqn]:
    """Returns the equations on which the outputs depend.

    Raises:
        UnsupportedPrimitiveError: an equation is there for its side effect, or reads or writes a
            mutable reference.
    """
    used = {one for one in jaxpr.outvars if not isinstance(one, Literal)}
    needed = []
    for equation in reversed(jaxpr.eqns):
        is_used = not used.isdisjoint(equation.outvars)
        _require_pure(equation, is_used=is_used)
        if is_used:
            needed.append(equation)
            used.update(one for one in equation.invars if not isinstance(one, Literal))
    return needed[::-1]


def _require_pure(equation: JaxprEqn, *, is_used: bool) -> None:
    """Raises an error for an equation whose effect a graph would lose."""
    avals = [one.aval for one in (*equation.invars, *equation.outvars)]
    refers = any(hasattr(one, "inner_aval") for one in avals)  # to a mutable reference
    acts = not is_used and any(type(one).__name__ != "NamedAxisEffect" for one in equation.effects)
    if refers or acts:
        foreign = Foreign(equation.primitive.name, str(origin_of_equation(equation)))
        raise UnsupportedPrimitiveError(
            f"from_jax: a function must have no side effects, got {foreign}; return what it writes "
            "or prints as a result"
        )


def emit_typed(
    operator: str, inputs: Values, types: Sequence[VarType], **attributes: Any
) -> list[Node]:
    """Returns the outputs of a call whose types JAX has inferred already."""
    family = get(operator)
    values, canonical, _ = family.bind(tuple(inputs), attributes)
    member = family.resolved(values, canonical)
    node = intern_call(member, tuple(inputs), canonical, tuple(types), None)
    if ambient.inside is not None:
        ambient.inside.add(node)
    return [node] if member.single else [select(node, i) for i in member.visible]


def emit(operator: str, *inputs: Node, **attributes: Any) -> list[Node]:
    """Returns the outputs of a call, on nodes even where there is no input."""
    family = get(operator)
    values, canonical, _ = family.bind(inputs, attributes)
    outputs = Node.emitter.emit(family.resolved(values, canonical), values, canonical, None)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


# Values ------------------------------------------------------------------------------------------


struct: Any = jax.ShapeDtypeStruct  # which has no types


def is_key(aval: Any) -> bool:
    """Whether values of ``aval`` are JAX's typed random keys."""
    return bool(jnp.issubdtype(aval.dtype, jax.dtypes.prng_key))


@memoized(64)
def key_impl(dtype: Any) -> str:
    """Returns the name of the implementation of random numbers whose keys have ``dtype``."""
    names: list[str] = []

    def numbers(key: Any) -> Any:
        names.append(str(jax.random.key_impl(key)))
        return jax.random.key_data(key)

    jax.eval_shape(numbers, struct((), dtype))
    return names[0]


def avals_of(atoms: Sequence[Any]) -> list[Any]:
    """Returns JAX's abstract values of variables and literals."""
    return [one.aval for one in atoms]


def type_of_aval(aval: Any) -> VarType:
    """Returns the type of a value; a random key is represented by its numbers."""
    if is_key(aval):
        numbers = jax.eval_shape(jax.random.key_data, struct(aval.shape, aval.dtype))
        return VarType(tuple(numbers.shape), np.dtype(numbers.dtype))
    return VarType(tuple(aval.shape), canonical(np.dtype(aval.dtype)))


def constant_of(value: Any) -> Node:
    """Returns the node of an array or a number inside a jaxpr."""
    if is_key(jax.typeof(value)):
        with jax.ensure_compile_time_eval():  # the caller may be traced by JAX
            value = jax.random.key_data(value)
    type = type_of_aval(jax.typeof(value))
    held = np.asarray(value)
    if held.ndim == 0 and not is_extended_float(type.dtype):
        return constant(held.item(), type)
    return array(held)


# Places ------------------------------------------------------------------------------------------


def located(equation: JaxprEqn) -> AbstractContextManager[None]:
    """Gives the nodes built inside the context the user's line of ``equation``."""
    return copied_origin(origin_of_equation(equation))


def origin_of_equation(equation: JaxprEqn) -> Origin:
    """Returns the user's line of an equation; the line of the call where JAX recorded none.

    A line of an installed package, such as one with layers, is none of the user's unless there is
    no other.
    """
    traceback = equation.source_info.traceback
    frames: Sequence[Any] = () if traceback is None else traceback.frames
    outside = [one for one in frames if not is_own_file(one.file_name)]
    for frame in (*(one for one in outside if is_user_file(one.file_name)), *outside):
        return Origin(frame.file_name, frame.line_num, None, current_scope())
    return user_origin()


def is_user_file(file: str) -> bool:
    """Whether ``file`` belongs neither to symop, JAX or Python nor to an installed package."""
    return not is_own_file(file) and not file.startswith(_installed_folders())


@functools.cache
def _installed_folders() -> tuple[str, ...]:
    """Returns the folders of Python's own modules and of installed packages."""
    places = sysconfig.get_paths()
    return tuple(os.path.join(places[one], "") for one in ("stdlib", "purelib", "platlib"))
