"""``jax.custom_jvp`` and ``jax.custom_vjp``: their rules become the derivatives of a call."""

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import JaxprEqn
from jax.scipy import special

from registry.ops.lax.functions import named_function
from registry.primitives import inner_jaxprs
from registry.table import get
from registry.types import VarType, is_floating, is_inexact
from symop.autodiff.differentiate import pullback, zeros
from symop.graph.nodes import Node, placeholder, topological
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

class _RuleBodies(NamedTuple):
    """A derivative rule as bodies.

    Attributes:
        vectors: maps operands and tangents, or cotangents, to tangents or gradients.
        value: maps operands to the outputs that the rule computes; None if it calls the function
            for them, so that the rule is the derivative at every order.
    """

    vectors: GraphBody
    value: GraphBody | None


_Bodies = tuple[GraphBody, _RuleBodies | None]
"""The body of a call and its rule; None where the rule refuses to differentiate."""
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

    def bodies() -> _Bodies:
        with reader.saving_by(None):
            body = _body(list(map(type_of_aval, avals)), read)
            return body, _rule_bodies(reader, rule, body)

    # A function under jax.jit that is called again is the same equation again.
    body, of_rule = reader.once(equation, tuple(rule.places), bodies)
    if of_rule is None:
        return emit("nondifferentiable_call", *inputs, training=False, body=body)
    rules = {rule.name: of_rule.vectors, "value": of_rule.value}
    return emit("call", *inputs, training=False, body=body, **rules)


def _rule_bodies(reader: Reader, rule: "_Rule", body: GraphBody) -> _RuleBodies | None:
    """Returns the bodies of a rule; None if the rule refuses to differentiate.

    A rule that closes over a traced value refuses, as it does under ``jax.jit``: the trace is over.
    """
    parts = rule.avals, rule.vectors
    types = [type_of_aval(one) for part in parts for one in part]
    if reader.rules == _LIMIT:
        return _RuleBodies(_body(types, rule.by_jax), None)
    try:
        traced = jax.make_jaxpr(rule.run)(*(list(map(_struct, part)) for part in parts))
    except Exception:  # of the user's: JAX raises it only where the function is differentiated
        return None
    if any(isinstance(one, jax.core.Tracer) for one in traced.consts):
        return None
    parameters = [placeholder(f"x{i}", one) for i, one in enumerate(types)]
    with _inside_rule(reader), reader.saving_by(None):
        results = reader.read(traced, parameters)
    count = len(body.outputs)
    operands = parameters[: len(body.inputs)]
    value = None if _is_call_of(body, operands, results[:count]) else results[:count]
    vectors = body_of(parameters, results[count:], random_keys(topological(results)))
    return _RuleBodies(vectors, value and body_of(operands, value, random_keys(topological(value))))


def _is_call_of(body: GraphBody, operands: Values, results: Values) -> bool:
    """Whether ``results`` are the outputs of a call of ``body`` with a rule."""
    source = results[0].source
    if [(one.source, one.index) for one in results] != [(source, j) for j in range(len(results))]:
        return False
    same = source.op.name.startswith("call") and source.inputs[-len(operands) :] == tuple(operands)
    return same and source.attributes[0] is body


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
    results = read(parameters)
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
        """Returns the inexact outputs of the call, and all, as a function of those at ``places``."""

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

    def run(self, values: list[Any], vectors: list[Any]) -> tuple[list[Any], list[Any]]:
        along = dict(zip(_inexact_places(values), vectors, strict=True))
        moved = tuple(values[i] for i in self.places), tuple(along[i] for i in self.places)
        _, tangents, outputs = jax.jvp(self._outputs(values), *moved, has_aux=True)
        return outputs, tangents

    def by_jax(self, nodes: Values) -> Sequence[Node]:
        count = len(self.avals)

        def run(*arrays: Any) -> list[Any]:
            return self.run(list(arrays[:count]), list(arrays[count:]))[1]

        return self._opaque(run, nodes, _inexact(avals_of(self.equation.outvars)))


class _Vjp(_Rule):
    """A rule of ``jax.custom_vjp``: from cotangents of outputs to gradients of inexact inputs.

    The gradients of inputs that are not at ``places`` are zeros.
    """

    name = "vjp"

    @property
    def vectors(self) -> list[Any]:
        return _inexact(avals_of(self.equation.outvars))

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
