"""JAX's calls, loops and branches as operators with bodies."""

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, JaxprEqn

from registry.primitives import scan_parts
from registry.table import get
from symop.graph.nodes import Node, constant, placeholder, topological
from symop.jaxprs.reading import CALLS, Reader, Values, emit, translates, type_of_aval
from symop.lowering.steps import random_keys
from symop.regions.bodies import body_of
from symop.symbol import control_flow as symbol_flow
from symop.symbol.control_flow import nodes_of

_CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""The parameters that hold the jaxpr of a call, by primitive and version of JAX."""
_ALIASES = {"gpu": ("cuda", "rocm"), "cuda": ("gpu",), "rocm": ("gpu",)}
"""Other names of a platform."""


def called(equation: JaxprEqn) -> Any:
    """Returns the jaxpr that an equation calls."""
    if "_prim" in equation.params:
        return _expanded(equation.params["_prim"])
    return next(equation.params[name] for name in _CALLED if name in equation.params)


def _expanded(primitive: Any) -> ClosedJaxpr:
    """Returns the equations of a ``HiPrim``."""
    return jax.make_jaxpr(primitive.expand)(*primitive.in_avals)


def read_equation(reader: Reader, equation: JaxprEqn, inputs: Values) -> list[Node]:
    """Returns the outputs of an equation that calls a jaxpr."""
    return read_called(reader, called(equation), inputs)


def read_called(reader: Reader, jaxpr: Any, inputs: Values) -> list[Node]:
    """Returns the outputs of a jaxpr, closed or not."""
    if isinstance(jaxpr, ClosedJaxpr):
        return reader.read(jaxpr, inputs)
    return reader.read_open(jaxpr, [], inputs)


@translates(*CALLS)
def _call(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    return read_called(reader, called(equation), inputs)


@translates("scan")
def _scan(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    params = equation.params
    n_consts, n_carry = scan_parts(params)
    consts, carry = inputs[:n_consts], inputs[n_consts : n_consts + n_carry]

    def step(carries: Any, slices: Any) -> tuple[list[Node], list[Node]]:
        values = nodes_of([*carries, *slices])
        results = reader.read(params["jaxpr"], [*consts, *values])
        return results[:n_carry], results[n_carry:]

    with reader.saving_by(None):
        last, series = symbol_flow.scan(
            step,
            list(carry),
            list(inputs[n_consts + n_carry :]),
            params["length"],
            params["reverse"],
        )
    return nodes_of([*last, *series])


@translates("while")
def _while(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    params = equation.params
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond_consts, body_consts = inputs[:n_cond], inputs[n_cond : n_cond + n_body]

    def mask(carry: Any) -> Node:
        return reader.read(params["cond_jaxpr"], [*cond_consts, *nodes_of(carry)])[0]

    def holds(carry: Any) -> Node:
        goes_on = mask(carry)
        return goes_on if goes_on.type.shape == () else get("any")(goes_on)

    def step(carry: Any) -> list[Node]:
        before, goes_on = nodes_of(carry), mask(carry)
        after = reader.read(params["body_jaxpr"], [*body_consts, *before])
        if goes_on.type.shape == ():
            return after
        return [_select(goes_on, *pair) for pair in zip(after, before, strict=True)]

    with reader.saving_by(None):
        return nodes_of(symbol_flow.while_loop(holds, step, list(inputs[n_cond + n_body :]), None))


def _select(mask: Node, after: Node, before: Node) -> Node:
    """Returns ``after`` where a loop mapped by ``jax.vmap`` goes on, else ``before``."""
    shape = after.type.shape
    aligned = get("reshape")(mask, shape=(*mask.type.shape, *[1] * (len(shape) - mask.ndim)))
    chosen: Node = get("where")(get("broadcast_to")(aligned, shape=shape), after, before)
    return chosen


@translates("platform_index")
def _platform(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    """Chooses the branch of JAX's default backend; a graph holds no branch of another."""
    groups = equation.params["platforms"]
    names = {jax.default_backend(), *_ALIASES.get(jax.default_backend(), ())}
    chosen = [i for i, one in enumerate(groups) if one is not None and names & set(one)]
    index = chosen[0] if chosen else groups.index(None)
    return [constant(index, type_of_aval(equation.outvars[0].aval))]


@translates("cond")
def _cond(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    index, *operands = inputs
    if index.constant is not None:
        return reader.read(equation.params["branches"][int(index.constant.real)], operands)
    return _switch(reader, index, equation.params["branches"], operands)


def _switch(
    reader: Reader, index: Node, branches: Sequence[ClosedJaxpr], operands: Values
) -> list[Node]:
    """Returns the outputs of the branch at ``index``, which is clamped, by halving the branches."""
    if len(branches) == 1:
        return reader.read(branches[0], operands)
    half = len(branches) // 2
    later = index if half == 1 == len(branches) - 1 else get("greater_equal")(index, half)

    def branch(part: Sequence[ClosedJaxpr], offset: int) -> Any:
        def run(index: Any, *values: Any) -> list[Node]:
            at, *operands = nodes_of([index, *values])
            return _switch(reader, get("subtract")(at, offset) if offset else at, part, operands)

        return run

    parts = branch(branches[half:], half), branch(branches[:half], 0)
    with reader.saving_by(None):
        results = symbol_flow.cond(later, *parts, (index, *operands))
    return nodes_of(results)


@translates("remat2", "checkpoint", "remat")
def _remat(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    """Translates ``jax.checkpoint``; what its policy saves becomes a further output of the body."""
    parameters = [placeholder(f"x{i}", one.type.strong()) for i, one in enumerate(inputs)]
    with reader.saving_by(equation.params["policy"] or _saves_nothing) as saved:
        results = read_called(reader, called(equation), parameters)
    outputs = list(dict.fromkeys([*results, *(one for one in saved if one not in parameters)]))
    body = body_of(parameters, outputs, random_keys(topological(outputs)))
    kept = tuple(i for i, one in enumerate(outputs) if one in set(saved))
    values = emit("recompute", *inputs, training=False, body=body, saved=kept)
    return [values[outputs.index(one)] for one in results]


def _saves_nothing(*_: Any, **__: Any) -> bool:
    return False
