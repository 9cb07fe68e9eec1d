"""``jax.custom_jvp`` and ``jax.custom_vjp``: their rules become the derivatives of a call."""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import JaxprEqn

from registry.ops.control_flow.custom_rules import moving
from registry.types import VarType, is_inexact
from symop.graph.nodes import Node, placeholder, topological
from symop.jaxprs.control_flow import read_equation
from symop.jaxprs.opaque import apply_equation, opaque
from symop.jaxprs.reading import (
    Reader,
    Values,
    avals_of,
    emit,
    is_key,
    struct,
    translates,
    type_of_aval,
)
from symop.lowering.steps import random_keys
from symop.regions.bodies import GraphBody, body_of

_RuleFunction = Callable[[list[Any], list[Any]], list[Any]]
_LIMIT = 4
"""The number of rules inside each other that are kept.

A rule may call the function that it differentiates, whose rule is then inside it, and so on without
end. Derivatives of a higher order than this are an error, since the rule may be none of the
function's own derivative.
"""


@translates("custom_jvp_call")
def _custom_jvp(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    def rule(values: list[Any], tangents: list[Any]) -> list[Any]:
        return _pushed(equation, places, values, tangents)

    places = _moving_places(reader, inputs)
    return _call(reader, equation, inputs, "jvp", rule, avals_of(equation.invars))


@translates("custom_vjp_call")
def _custom_vjp(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    def rule(values: list[Any], cotangents: list[Any]) -> list[Any]:
        return _pulled(equation, places, values, cotangents)

    places = _moving_places(reader, inputs)
    return _call(reader, equation, inputs, "vjp", rule, avals_of(equation.outvars))


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


def _call(
    reader: Reader,
    equation: JaxprEqn,
    inputs: Values,
    name: str,
    rule: _RuleFunction,
    along: list[Any],
) -> Sequence[Node]:
    """Returns the outputs of ``call`` with a rule traced on values and vectors like ``along``."""
    avals = avals_of(equation.invars)
    types = tuple(map(type_of_aval, avals))
    if not any(map(reader.moves, inputs)) or any(map(is_key, avals)):
        return read_equation(reader, equation, inputs)
    vectors = [along[i] for i in moving(tuple(map(type_of_aval, along)))]

    def read(parameters: Values) -> Sequence[Node]:
        reader.hold(parameters, inputs)
        return read_equation(reader, equation, parameters)

    with reader.saving_by(None):
        body = _body(types, read)
    of_rule = _rule_body(reader, rule, avals, vectors)
    if of_rule is None:
        return emit("nondifferentiable_call", *inputs, training=False, body=body)
    return emit("call", *inputs, training=False, body=body, **{name: of_rule})


def _rule_body(
    reader: Reader, rule: _RuleFunction, avals: Sequence[Any], vectors: Sequence[Any]
) -> GraphBody | None:
    """Returns the body of a rule; None if it is inside too many others, or raises an error."""
    if reader.rules == _LIMIT:
        return None
    try:
        traced = jax.make_jaxpr(rule)(*(list(map(_struct, part)) for part in (avals, vectors)))
    except Exception:  # of the user's: JAX raises it only where the function is differentiated
        return None
    if any(isinstance(one, jax.core.Tracer) for one in traced.consts):
        return None  # the rule closes over a value of a finished trace
    with _inside_rule(reader), reader.saving_by(None):
        types = list(map(type_of_aval, (*avals, *vectors)))
        return _body(types, lambda nodes: reader.read(traced, nodes))


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


def _moving(values: Sequence[Any]) -> list[int]:
    return [i for i, one in enumerate(values) if is_inexact(one.dtype)]


def _pushed(
    equation: JaxprEqn, places: Sequence[int], values: list[Any], tangents: list[Any]
) -> list[Any]:
    """Returns tangents of the inexact outputs, where the values at ``places`` have tangents."""
    along = dict(zip(_moving(values), tangents, strict=True))
    outputs = _inexact_outputs(equation, places, values)
    moved = tuple(values[i] for i in places), tuple(along[i] for i in places)
    _, results = jax.jvp(outputs, *moved)
    return list(results)


def _pulled(
    equation: JaxprEqn, places: Sequence[int], values: list[Any], cotangents: list[Any]
) -> list[Any]:
    """Returns gradients of the inexact inputs, zeros of those that are not at ``places``."""
    outputs = _inexact_outputs(equation, places, values)
    _, pull = jax.vjp(outputs, *[values[i] for i in places])
    gradients = dict(zip(places, pull(cotangents), strict=True))
    return [gradients[i] if i in gradients else jnp.zeros_like(values[i]) for i in _moving(values)]


def _inexact_outputs(
    equation: JaxprEqn, places: Sequence[int], values: Sequence[Any]
) -> Callable[..., list[Any]]:
    """Returns the inexact outputs of an equation as a function of the values at ``places``."""

    def outputs(*moved: Any) -> list[Any]:
        given = list(values)
        for i, one in zip(places, moved, strict=True):
            given[i] = one
        results = apply_equation(equation, given)
        return [results[j] for j in _moving(results)]

    return outputs
