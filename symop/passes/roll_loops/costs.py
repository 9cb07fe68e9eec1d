"""Estimates of the cost of a loop and of its unrolled steps, from the jaxprs of the kernels.

XLA compiles equal kernels once. Unrolled steps therefore cost the time of XLA's passes, in
proportion to their number. A loop costs kernels of its own, and kernels that stack the separate
arrays that its steps read and unstack their gradients. The latter also take time in each run.

The constants were measured on two cores of a server, with JAX 0.10.2: dense, residual and
transformer layers, 4 to 100 of them, value and gradients. Times are in seconds of processor time.
"""

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jax.lax import dot_general_p

from registry.caches import memoized
from registry.jax_derivatives.calculus import program_of
from registry.operator.bodies import bodies_of
from registry.operator.operator import Operator
from registry.primitives import CONVOLUTIONS, ENTRYWISE, REARRANGING, inner_jaxprs, primitives_named
from registry.types import VarType
from symop.graph.nodes import Node
from symop.passes.linearity import types_of
from symop.xla.chain_barriers import is_fused

EQUATION = 0.003
"""Seconds to compile an equation of a kernel and its gradient, in each step."""
LOOP, SERIES, SLICE = 0.4, 0.1, 0.005
"""Seconds to compile a loop and its gradient, the stack of a series, and one of its slices."""
FLOPS_PER_BYTE = 5
"""The operations that a processor computes in the time that a byte of memory takes."""
COPIES = 4
"""How often a byte is read or written if it is stacked, and its gradient is unstacked."""
SHARE = 0.1
"""The share of the time of the steps that copies may take in addition."""
FEW_BYTES = 1 << 18
"""The bytes that a loop may always copy, which takes tens of microseconds."""
_CACHED = 1 << 16
"""The bytes of carried values above which they do not fit the fastest cache."""
WIDEST = 16
"""The largest number of operators in a body of several steps.

Chains of 300 cheap operators on 100,000 numbers took 0.75 times as long as unrolled ones with 15
operators in a body, 1.8 times with 30 and 1.6 times with 3; with gradients 0.78, 2.6 and 4 times.
"""
_EXPENSIVE = 16
"""The number of operations of an exponential, a sine and the like."""
_CHEAP = primitives_named(
    *("abs", "add", "and", "ceil", "convert_element_type", "copy", "div", "eq", "floor", "ge"),
    *("gt", "le", "lt", "max", "min", "mul", "ne", "neg", "not", "or", "select_n", "sign"),
    *("square", "sub", "xor"),
)
"""The entrywise primitives that take about one operation of the processor."""


class Cost(NamedTuple):
    """The cost of calls.

    Attributes:
        equations: the equations of their kernels.
        flops: floating-point operations.
        nbytes: the bytes that products and reductions read and write; XLA fuses the rest.
        convolutions: the number of convolutions.
    """

    equations: int
    flops: int
    nbytes: int
    convolutions: int = 0

    def plus(self, other: "Cost") -> "Cost":
        """Returns the cost of both."""
        return Cost(*map(operator.add, self, other))


def cost_of(nodes: Iterable[Node]) -> Cost | None:
    """Returns the cost of the calls among ``nodes``; None if it is not known."""
    total = Cost(0, 0, 0)
    for node in nodes:
        one = _cost(node) if isinstance(node.op, Operator) else Cost(0, 0, 0)
        if one is None:
            return None
        total = total.plus(one)
    return total


def _cost(node: Node) -> Cost | None:
    assert isinstance(node.op, Operator)
    if node.op.opaque or bodies_of(node.attributes):
        return None
    return _cost_of_types(node.op, types_of(node), node.attributes)


@memoized(4096)
def _cost_of_types(
    op: Operator, types: tuple[VarType | None, ...], attributes: tuple[Any, ...]
) -> Cost | None:
    try:
        program = program_of(op, types, attributes)
    except Exception:  # a kernel that needs values, or a mesh
        return None
    return _cost_of_program(program.jaxpr)


def _cost_of_program(jaxpr: Any) -> Cost:
    total = Cost(0, 0, 0)
    for equation in jaxpr.eqns:
        inner = list(inner_jaxprs(equation))
        parts = [_cost_of_program(getattr(one, "jaxpr", one)) for one in inner]
        for part in parts or [_cost_of_equation(equation)]:
            total = total.plus(part)
    return total


def _cost_of_equation(equation: Any) -> Cost:
    out = sum(map(_size, equation.outvars))
    primitive = equation.primitive
    if primitive in REARRANGING:
        return Cost(1, 0, 0)
    if primitive in ENTRYWISE:
        return Cost(1, out * (1 if primitive in _CHEAP else _EXPENSIVE), 0)
    touched = sum(_nbytes(one) for one in (*equation.invars, *equation.outvars))
    terms = _terms(equation)
    flops = max([out * terms, *map(_size, equation.invars)])
    return Cost(1, flops, touched, int(primitive in CONVOLUTIONS))


def _terms(equation: Any) -> int:
    """Returns the operations for one entry of a product or convolution; 1 for other equations."""
    numbers = equation.params.get("dimension_numbers")
    if equation.primitive is dot_general_p:
        shape = equation.invars[0].aval.shape
        return 2 * int(math.prod(shape[axis] for axis in numbers[0][0]))
    if equation.primitive in CONVOLUTIONS:
        kernel = equation.invars[1]
        return 2 * _size(kernel) // max(int(kernel.aval.shape[numbers.rhs_spec[0]]), 1)
    return 1


def _size(value: Any) -> int:
    return int(math.prod(getattr(value.aval, "shape", ())))


def _nbytes(value: Any) -> int:
    dtype = getattr(value.aval, "dtype", None)
    return _size(value) * getattr(dtype, "itemsize", 0)


def saves_compiling(cost: Cost, times: int, series: int) -> bool:
    """Whether a loop is compiled faster than its steps, if ``series`` must be stacked."""
    return times * EQUATION * cost.equations > LOOP + series * (SERIES + times * SLICE)


def waits_for_memory(nodes: Sequence[Node], nbytes: int) -> bool:
    """Whether steps read and write what they carry, ``nbytes``, for longer than they compute.

    They consist of operators that XLA fuses, and what they carry does not fit the fastest cache.
    """
    if nbytes < _CACHED or not all(map(is_fused, nodes)):
        return False
    cost = cost_of(nodes)
    return cost is not None and cost.flops < nbytes


def steps_together(period: int, times: int, fewest: int) -> int:
    """Returns how many of ``times`` steps of ``period`` operators one body computes.

    A divisor of ``times``, which leaves no steps over, is preferred if it is at least half as large
    as the maximum.
    """
    most = min(WIDEST // period, times // fewest)
    divisors = [one for one in range(most, 1, -1) if times % one == 0 and 2 * one >= most]
    return max([*divisors[:1], 1 if divisors else most, 1])


def copies_too_much(cost: Cost, nbytes: float) -> bool:
    """Whether copies of ``nbytes`` in each step take too long compared with the step itself."""
    return COPIES * nbytes > SHARE * (cost.flops / FLOPS_PER_BYTE + cost.nbytes)
