"""JAX's calls, loops and branches as operators with bodies."""

from collections.abc import Sequence
from typing import Any

from jax.extend.core import ClosedJaxpr, JaxprEqn

from registry.table import get
from symop.graph.nodes import Node
from symop.interop.jax.reading import Reader, Values, translates
from symop.symbol import control_flow as symbol_flow
from symop.symbol.control_flow import nodes_of

_CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""The parameters that hold the jaxpr of a call, by primitive and version of JAX."""


def called(equation: JaxprEqn) -> Any:
    """Returns the jaxpr that an equation calls."""
    return next(equation.params[name] for name in _CALLED if name in equation.params)


def read_called(reader: Reader, jaxpr: Any, inputs: Values) -> list[Node]:
    """Returns the outputs of a jaxpr, closed or not."""
    if isinstance(jaxpr, ClosedJaxpr):
        return reader.read(jaxpr, inputs)
    return reader.read_open(jaxpr, [], inputs)


@translates("jit", "pjit", "closed_call", "core_call", "call", "core_closed_call", "eval_jaxpr")
def _call(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    return read_called(reader, called(equation), inputs)


@translates("scan")
def _scan(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    params = equation.params
    n_consts, n_carry = params["num_consts"], params["num_carry"]
    consts, carry = inputs[:n_consts], inputs[n_consts : n_consts + n_carry]

    def step(carries: Any, slices: Any) -> tuple[list[Node], list[Node]]:
        given = nodes_of([*carries, *slices])
        found = reader.read(params["jaxpr"], [*consts, *given])
        return found[:n_carry], found[n_carry:]

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

    def holds(*carry: Any) -> Node:
        return reader.read(params["cond_jaxpr"], [*cond_consts, *nodes_of(carry)])[0]

    def step(*carry: Any) -> list[Node]:
        return reader.read(params["body_jaxpr"], [*body_consts, *nodes_of(carry)])

    last = symbol_flow.while_loop(
        lambda carry: holds(*carry),
        lambda carry: step(*carry),
        list(inputs[n_cond + n_body :]),
        None,
    )
    return nodes_of(last)


@translates("cond")
def _cond(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    index, *operands = inputs
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
            at, *given = nodes_of([index, *values])
            return _switch(reader, get("subtract")(at, offset) if offset else at, part, given)

        return run

    found = symbol_flow.cond(
        later, branch(branches[half:], half), branch(branches[:half], 0), (index, *operands)
    )
    return nodes_of(found)


@translates("remat2", "checkpoint", "remat")
def _remat(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    return read_called(reader, called(equation), inputs)
