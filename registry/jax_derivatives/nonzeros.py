"""Determines from a kernel's jaxpr that a result is not zero where some inputs are.

An input that may have any entries is not zero in general, and neither is a result that rearranges
its entries, adds zeros to them, or chooses them by a condition that may have any entries.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from jax.extend import core

from registry.primitives import called_by, primitives_named

State = Literal["zero", "any"] | None
"""The entries of a value: zeros, any entries, or unknown."""

_SAME = primitives_named(
    *("broadcast_in_dim", "convert_element_type", "copy", "neg", "reshape", "rev", "squeeze"),
    "transpose",
)
_SUMS = primitives_named("add", "sub")
_PRODUCTS = primitives_named("mul", "dot_general")
_CHOICE = primitives_named("select_n")
_JITTED = primitives_named("jit")


def some_is_nonzero(program: Any, zero: Sequence[bool]) -> bool:
    """Whether some result of ``program``, a ``Jaxpr``, is known not to be zero in general.

    Args:
        program: the jaxpr.
        zero: which of its inputs are zero; the others may have any entries.
    """
    states = _followed(program, ["zero" if flag else "any" for flag in zero])
    return any(
        state == "any" and one.aval.size > 0
        for state, one in zip(states, program.outvars, strict=True)
    )


def _followed(jaxpr: Any, states: Sequence[State]) -> list[State]:
    known: dict[Any, State] = dict(zip(jaxpr.invars, states, strict=True))

    def state_of(atom: Any) -> State:
        if isinstance(atom, core.Literal):
            return None if np.any(atom.val) else "zero"
        return known.get(atom)

    for equation in jaxpr.eqns:
        operands = [state_of(one) for one in equation.invars]
        known.update(zip(equation.outvars, _step(equation, operands), strict=False))
    return [state_of(one) for one in jaxpr.outvars]


def _step(equation: Any, states: list[State]) -> list[State]:
    """Returns the states of the results of an equation, as far as they are known."""
    primitive = equation.primitive
    if primitive in _JITTED:
        return _followed(called_by(equation), states)
    if primitive in _SAME:
        return states[:1]
    if primitive in _SUMS and "zero" in states:
        return [states[1] if states[0] == "zero" else states[0]]
    if primitive in _CHOICE:
        return _chosen(states[0], states[1:])
    return ["zero"] if primitive in _PRODUCTS and "zero" in states else []


def _chosen(condition: State, cases: list[State]) -> list[State]:
    """Returns the state of the entries that a condition chooses among ``cases``."""
    if all(one == "zero" for one in cases):
        return ["zero"]
    return ["any"] if condition == "any" and "any" in cases else []
