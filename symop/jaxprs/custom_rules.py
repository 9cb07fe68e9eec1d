"""``jax.custom_jvp`` and ``jax.custom_vjp``: their rules become the derivatives of a call."""

import functools
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn
from jax.scipy import special

from registry.errors import NotDifferentiableError
from registry.ops.lax.functions import named_function
from registry.primitives import inner_jaxprs
from registry.shapes import default_float
from registry.table import get
from registry.types import VarType, is_floating, is_inexact
from symop.autodiff.differentiate import pullback, zeros
from symop.graph.nodes import Node, built_at, placeholder, topological
from symop.graph.origins import undisturbed
from symop.jaxprs.control_flow import read_equation
from symop.jaxprs.opaque import apply_equation, opaque
from symop.jaxprs.reading import (
    Reader,
    Values,
    avals_of,
    emit,
    emit_typed,
    is_key,
    origin_of_equation,
    struct,
    translates,
    type_of_aval,
)
from symop.lowering.steps import random_keys
from symop.regions.bodies import GraphBody, body_of
from symop.regions.lazy import LazyBody

_LIMIT = 3
"""The number of rules inside each other that become graphs.

A rule may call the function that it differentiates, whose rule is then inside it, and so on without
end. JAX runs the rules inside the last one, as it does those of any opaque operator; a saved
program is without them.
"""
_OWN: dict[str, tuple[Callable[..., Any], int]] = {
    "relu": (jax.nn.relu, 1),
    "relu6": (jax.nn.relu6, 1),
    "logaddexp": (jnp.logaddexp, 2),
    "logaddexp2": (jnp.logaddexp2, 2),
    "xlogy": (special.xlogy, 2),
    "xlog1py": (special.xlog1py, 2),
}
"""JAX's own functions with a rule, and the number of their arguments, by the operator alike."""


@translates("custom_jvp_call")
def _custom_jvp(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    operator = _operators().get(_sources(equation))
    if operator is not None and all(is_floating(one.type.dtype) for one in inputs):
        return [get(operator)(*inputs)]

    return _call(reader, _Jvp(equation, _moving_places(reader, inputs)), inputs)


def _sources(equation: JaxprEqn) -> tuple[str, str]:
    """Returns where the function of a ``custom_jvp`` and its rule are written."""
    function, rule = equation.params["call_jaxpr"].jaxpr, equation.params["jvp_jaxpr_fun"]
    return function.debug_info.func_src_info, rule.debug_info.func_src_info


@functools.cache
def _operators() -> dict[tuple[str, str], str]:
    """Returns the operators of ``_OWN`` by where JAX's functions are written."""
    result = {}
    for operator, (function, count) in _OWN.items():
        scalars = [struct((), jnp.float32)] * count
        (equation,) = _called_with_rule(jax.make_jaxpr(function)(*scalars).jaxpr)
        result[_sources(equation)] = operator
    return result


def _called_with_rule(jaxpr: Any) -> Iterator[JaxprEqn]:
    for equation in jaxpr.eqns:
        if equation.primitive.name == "custom_jvp_call":
            yield equation
        else:
            for inner in inner_jaxprs(equation):
                yield from _called_with_rule(inner)


@translates("custom_vjp_call")
def _custom_vjp(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    return _call(reader, _Vjp(equation, _moving_places(reader, inputs)), inputs)


@translates("call_hi_primitive")
def _hi_primitive(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    """Translates a ``HiPrim``, a primitive that expands to others and has its own derivative."""
    if not any(is_inexact(type_of_aval(one).dtype) for one in avals_of(equation.outvars)):
        return read_equation(reader, equation, inputs)
    return _custom_vjp(reader, equation, inputs)


def _moving_places(reader: Reader, inputs: Values) -> list[int]:
    """Returns the indices of the inputs that may have tangents."""
    return [i for i, one in enumerate(inputs) if reader.moves(one)]


@translates("custom_linear_solve")
def _linear_solve(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    lengths, jaxprs = equation.params["const_lengths"], equation.params["jaxprs"]
    if jaxprs.transpose_solve is None:
        return opaque(reader, equation, inputs)
    start = sum(lengths)
    right = [one.type.strong() for one in inputs[start:]]
    bodies = {}
    for name, jaxpr, first, end in zip(jaxprs._fields, jaxprs, *_spans(lengths), strict=True):
        types = [*(one.type.strong() for one in inputs[first:end]), *right]
        with reader.saving_by(None):
            bodies[name] = _body(types, functools.partial(reader.read, jaxpr))
    return emit("linear_solve", *inputs, training=False, lengths=tuple(lengths), **bodies)


def _spans(lengths: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns where the constants of each function start and end."""
    ends = list(itertools.accumulate(lengths))
    return [0, *ends[:-1]], ends


def _call(reader: Reader, rule: "_Rule", inputs: Values) -> Sequence[Node]:
    """Returns the outputs of a call with its own derivative rule."""
    equation, avals = rule.equation, rule.avals
    if not rule.places or any(map(is_key, avals)):
        return read_equation(reader, equation, inputs)

    def read(parameters: Values) -> Sequence[Node]:
        reader.hold(parameters, inputs)
        return read_equation(reader, equation, parameters)

    def make() -> GraphBody:
        with reader.saving_by(None):
            return _body(list(map(type_of_aval, avals)), read)

    # A function under jax.jit that is called again is the same equation again.
    body = reader.once(equation, ("body", *rule.places), make)
    reading = Reading(reader, rule, inputs)
    ins, outs = ([type_of_aval(one) for one in part] for part in (rule.arguments, rule.results))
    vectors, value = (
        LazyBody(ins, outs, reading.vectors),
        LazyBody(body.inputs, body.outputs, reading.value),
    )
    if not (reader.strict or reader.rules):
        return emit("call", *inputs, training=False, body=body, value=value, **{rule.name: vectors})
    if vectors.refuses:
        return emit("nondifferentiable_call", *inputs, training=False, body=body)
    rules = {rule.name: vectors.content, "value": value.content}
    return emit("call", *inputs, training=False, body=body, **rules)


@contextmanager
def _inside_rule(reader: Reader) -> Iterator[None]:
    reader.rules += 1
    try:
        yield
    finally:
        reader.rules -= 1


def _struct(aval: Any) -> Any:
    return struct(aval.shape, aval.dtype)


def _body(types: Sequence[VarType], read: Callable[[Values], Sequence[Node]]) -> GraphBody:
    parameters = [placeholder(f"x{i}", one) for i, one in enumerate(types)]
    return _closed(parameters, read(parameters))


# Reading of rules --------------------------------------------------------------------------------


class RuleBodies(NamedTuple):
    """A derivative rule as bodies.

    Attributes:
        vectors: maps operands and tangents, or cotangents, to tangents or gradients.
        value: maps operands to the outputs that the rule computes; None if it calls the function
            for them, so that the rule is the derivative at every order.
    """

    vectors: GraphBody
    value: GraphBody | None


_lock = threading.RLock()


class Reading:
    """The reading of a rule, once it is needed: JAX traces it then.

    A derivative asks for it, or a graph that is compiled, printed, saved or compared with another.
    """

    def __init__(self, reader: Reader, rule: "_Rule", inputs: Values) -> None:
        """Plans to read the rule of a call of ``inputs``."""
        self._reader, self._rule, self._inputs = reader, rule, inputs
        self._x64 = default_float() == np.float64

    def vectors(self) -> GraphBody:
        """Returns the body of the rule.

        Raises:
            NotDifferentiableError: the rule refuses to differentiate.
        """
        return self._bodies().vectors

    def value(self) -> GraphBody | None:
        """Returns the body of the values of the rule, as ``vectors`` does."""
        return self._bodies().value

    def _bodies(self) -> RuleBodies:
        result = self._result
        if isinstance(result, NotDifferentiableError):
            raise result.with_traceback(None)
        return result

    @functools.cached_property
    def _result(self) -> "RuleBodies | NotDifferentiableError":
        reader, rule = self._reader, self._rule
        if reader.strict or reader.rules:
            return _read(reader, rule)
        with _lock, undisturbed(), jax.enable_x64(self._x64):
            places = [i for i in rule.places if reader.moves(self._inputs[i], exactly=True)]
            exact = type(rule)(rule.equation, places or rule.places)
            known = len(reader.foreign)
            key = "rule", *exact.places
            result: RuleBodies | NotDifferentiableError = reader.once(
                rule.equation, key, lambda: _read(reader, exact)
            )
        reader.warn(reader.foreign[known:])
        return result


def _read(reader: Reader, rule: "_Rule") -> RuleBodies | NotDifferentiableError:
    """Returns the bodies of a rule, or the error of one that refuses to differentiate.

    A rule that closes over a traced value refuses, as it does under ``jax.jit``: the trace is over.
    """
    parts = rule.avals, rule.vectors
    types = list(map(type_of_aval, rule.arguments))
    if reader.rules == _LIMIT:
        return RuleBodies(_body(types, rule.by_jax), None)
    try:
        traced = jax.make_jaxpr(rule.run)(*(list(map(_struct, part)) for part in parts))
    except (
        Exception
    ) as error:  # of the user's: JAX raises it only where the function is differentiated
        return _refusal(rule, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    if any(isinstance(one, jax.core.Tracer) for one in traced.consts):
        return _refusal(rule, "it closes over a traced value, which must be an argument")
    n_outputs, n_operands = len(rule.equation.outvars), len(rule.avals)
    parameters = [placeholder(f"x{i}", one) for i, one in enumerate(types)]
    with _inside_rule(reader), reader.saving_by(None):
        if _calls_itself(traced.jaxpr, rule.equation):
            results = reader.read(_without(traced, n_outputs), parameters)
            return RuleBodies(_closed(parameters, results), None)
        results = reader.read(traced, parameters)
    value = _closed(parameters[:n_operands], results[:n_outputs])
    return RuleBodies(_closed(parameters, results[n_outputs:]), value)


def _refusal(rule: "_Rule", why: str) -> NotDifferentiableError:
    place = origin_of_equation(rule.equation)
    return NotDifferentiableError(
        f"call: its rule refuses to differentiate: {why}{built_at(place)}"
    )


def _calls_itself(jaxpr: Jaxpr, equation: JaxprEqn) -> bool:
    """Whether a rule calls the function that it differentiates for its values."""
    outputs, operands = jaxpr.outvars[: len(equation.outvars)], jaxpr.invars[: len(equation.invars)]
    makers = [one for one in jaxpr.eqns if one.primitive is equation.primitive]
    return any(
        one.outvars == outputs and one.invars == operands and _place(one) == _place(equation)
        for one in makers
    )


def _place(equation: JaxprEqn) -> str | None:
    """Returns where the function of a call is written."""
    if "call_jaxpr" not in equation.params:
        return None
    place: str | None = equation.params["call_jaxpr"].jaxpr.debug_info.func_src_info
    return place


def _without(traced: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """Returns a jaxpr without its first ``count`` outputs."""
    jaxpr = traced.jaxpr
    return ClosedJaxpr(jaxpr.replace(outvars=jaxpr.outvars[count:]), traced.consts)


def _closed(parameters: Sequence[Node], results: Sequence[Node]) -> GraphBody:
    return body_of(parameters, results, random_keys(topological(results)))


# The rules, as JAX runs them ----------------------------------------------------------------------


class _Rule(ABC):
    """The derivative rule of a call.

    Attributes:
        name: the attribute of ``call`` that holds it.
        equation: the call.
        places: the indices of the inputs that may have tangents.
    """

    name: str

    def __init__(self, equation: JaxprEqn, places: Sequence[int]) -> None:
        self.equation, self.places = equation, places

    @property
    def avals(self) -> list[Any]:
        """The types of the inputs of the call."""
        return avals_of(self.equation.invars)

    @property
    def arguments(self) -> list[Any]:
        """The types of its arguments."""
        return [*self.avals, *self.vectors]

    @property
    @abstractmethod
    def results(self) -> list[Any]:
        """The types of the tangents or gradients that it returns."""

    @property
    @abstractmethod
    def vectors(self) -> list[Any]:
        """The types of the tangents or cotangents that it takes."""

    @abstractmethod
    def run(self, values: list[Any], vectors: list[Any]) -> tuple[list[Any], list[Any]]:
        """Returns the outputs of the call, and tangents or gradients for its inputs."""

    @abstractmethod
    def by_jax(self, nodes: Values) -> Sequence[Node]:
        """Returns the tangents or gradients of ``run``, as opaque operators."""

    def _opaque(
        self, function: Callable[..., list[Any]], nodes: Values, avals: Sequence[Any]
    ) -> list[Node]:
        title = f"rule of {self.equation.primitive.name} at {origin_of_equation(self.equation)}"
        types = tuple(map(type_of_aval, avals))
        named = named_function(title, function, (tuple(one.type for one in nodes), types))
        return emit_typed("jax_function", nodes, types, function=named, n_out=len(types))

    def _outputs(self, values: Sequence[Any]) -> Callable[..., tuple[list[Any], list[Any]]]:
        """Returns the inexact outputs of the call, and all, as a function of some inputs."""

        def outputs(*moved: Any) -> tuple[list[Any], list[Any]]:
            inputs = list(values)
            for i, one in zip(self.places, moved, strict=True):
                inputs[i] = one
            every = apply_equation(self.equation, inputs)
            return _inexact(every), every

        return outputs


class _Jvp(_Rule):
    """A rule of ``jax.custom_jvp``: from tangents of inexact inputs to those of outputs."""

    name = "jvp"

    @property
    def vectors(self) -> list[Any]:
        return _inexact(self.avals)

    @property
    def results(self) -> list[Any]:
        return _inexact(avals_of(self.equation.outvars))

    def run(self, values: list[Any], vectors: list[Any]) -> tuple[list[Any], list[Any]]:
        along = dict(zip(_inexact_places(values), vectors, strict=True))
        moved = tuple(values[i] for i in self.places), tuple(along[i] for i in self.places)
        _, tangents, outputs = jax.jvp(self._outputs(values), *moved, has_aux=True)
        return outputs, tangents

    def by_jax(self, nodes: Values) -> Sequence[Node]:
        count = len(self.avals)

        def run(*arrays: Any) -> list[Any]:
            return self.run(list(arrays[:count]), list(arrays[count:]))[1]

        return self._opaque(run, nodes, self.results)


class _Vjp(_Rule):
    """A rule of ``jax.custom_vjp``: from cotangents of outputs to gradients of inexact inputs.

    The gradients of inputs that are not at ``places`` are zeros.
    """

    name = "vjp"

    @property
    def vectors(self) -> list[Any]:
        return _inexact(avals_of(self.equation.outvars))

    @property
    def results(self) -> list[Any]:
        return _inexact(self.avals)

    def run(self, values: list[Any], vectors: list[Any]) -> tuple[list[Any], list[Any]]:
        moved = [values[i] for i in self.places]
        _, pull, outputs = jax.vjp(self._outputs(values), *moved, has_aux=True)
        gradients = dict(zip(self.places, pull(vectors), strict=True))
        places = _inexact_places(values)
        pulled = [gradients[i] if i in gradients else jnp.zeros_like(values[i]) for i in places]
        return outputs, pulled

    def by_jax(self, nodes: Values) -> Sequence[Node]:
        values, heads = nodes[: len(self.avals)], nodes[len(self.avals) :]

        def run(*arrays: Any) -> list[Any]:
            return self._outputs(arrays)(*[arrays[i] for i in self.places])[0]

        # The gradient of an opaque operator is known to be linear in the cotangents.
        outputs = self._opaque(run, values, self.vectors)
        pulled = pullback(outputs, [values[i] for i in self.places], heads)
        gradients = dict(zip(self.places, pulled, strict=True))
        pairs = [(i, gradients.get(i)) for i in _inexact_places(self.avals)]
        return [zeros(values[i].type) if one is None else one for i, one in pairs]


def _inexact(values: Sequence[Any]) -> list[Any]:
    return [values[i] for i in _inexact_places(values)]


def _inexact_places(values: Sequence[Any]) -> list[int]:
    return [i for i, one in enumerate(values) if not is_key(one) and is_inexact(one.dtype)]
