"""The solution of a linear system whose matrix is a function."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from registry.cases import case, misuse, workload
from registry.errors import ArgumentError
from registry.operator.bodies import Body, BodyAttribute, Places, body, settled
from registry.operator.operator import Grads
from registry.operator.signature import Array, Training
from registry.ops.control_flow.custom_rules import call
from registry.ops.control_flow.loop_types import require_types
from registry.ops.control_flow.stepping import Operands, said
from registry.table import op
from registry.types import VarKind, VarType
from registry.var import Var, filled

_N_FIXED = 1
"""Number of slots before the operands: the training flag."""
Lengths = tuple[int, int, int, int]


class _Parts(NamedTuple):
    """The operands of a call: constants of the four bodies, and the right-hand side."""

    matvec: Sequence[Any]
    vecmat: Sequence[Any]
    solve: Sequence[Any]
    transpose_solve: Sequence[Any]
    right: Sequence[Any]


def _parts(operands: Sequence[Any], lengths: Sequence[int]) -> _Parts:
    ends = [0, *accumulate(lengths), len(operands)]
    return _Parts(*(operands[start:end] for start, end in pairwise(ends)))


def _product(x: Any) -> Any:
    return 3.0 * x + x.flip(axis=0)


def _solution(x: Any) -> Any:
    return (3.0 * x - x.flip(axis=0)) / 8.0  # (3 + F) (3 - F) = 9 - F^2 = 8


def _scaled(c: Any, x: Any) -> Any:
    return c * x


def _symmetric(*shape: int) -> dict[str, Any]:
    product, solution = body(_product, shape), body(_solution, shape)
    return {
        "lengths": (0, 0, 0, 0),
        "matvec": product,
        "vecmat": product,
        "solve": solution,
        "transpose_solve": solution,
    }


_SCALED = dict.fromkeys(("matvec", "vecmat", "solve", "transpose_solve"), body(_scaled, (3,), (3,)))


def _reference(*operands: Any, lengths: Lengths, solve: Body, **_: Any) -> Any:
    parts = _parts(operands, lengths)
    return said([np.asarray(one) for one in solve.run([*parts.solve, *parts.right])])


@op(
    outputs=("*parts",),
    count=lambda *, solve: len(solve.outputs),
    reference=_reference,
    native=False,
    # In its case, the solver is exact, so JAX's derivative of its steps is that of the solution.
    compared=True,
    cases=[
        # Constants of the product move the matrix alone, and not the solver: they are compared
        # with JAX in tests, in systems that are solved.
        case(operands=[(3,)], **_symmetric(3)),
        workload(operands=[(4096,)], **_symmetric(4096)),
        misuse("operand 0 of the solver must be", operands=[(3,), (3,), (2,), (3,), (3,)],
               lengths=(1, 1, 1, 1), **_SCALED),
        misuse("lengths must leave a right-hand side", operands=[(3,), (3,)],
               lengths=(1, 1, 1, 1), **_SCALED),
    ],
)  # fmt: skip
def linear_solve(
    training: Training,
    *operands: Operands,
    lengths: tuple[int, int, int, int],
    matvec: BodyAttribute,
    vecmat: BodyAttribute,
    solve: BodyAttribute,
    transpose_solve: BodyAttribute,
) -> tuple[Array, ...]:
    """Solves ``matvec(c, x) = b`` for ``x`` by ``solve``, whatever its steps are.

    The derivative is that of the solution: another system, which ``transpose_solve`` solves for the
    transposed matrix. The constants of ``solve``, such as factors of the matrix, have none.

    Args:
        operands: the constants of the four functions, then ``b``. Each function takes its constants
            and a vector like ``b``, which may be several arrays, and returns such a vector.
        lengths: the numbers of constants.
        matvec: the product with the matrix, linear in the vector.
        vecmat: the product with the transposed matrix.
        solve: the solution for the matrix.
        transpose_solve: the solution for the transposed matrix.

    This corresponds to ``jax.lax.custom_linear_solve``.

    Example:
        >>> import symop as so
        >>> c, b = so.var("c", shape=()), so.var("b", shape=())
        >>> product = so.body(lambda c, x: c * x, ((), "float32"), ((), "float32"))
        >>> quotient = so.body(lambda c, x: x / c, ((), "float32"), ((), "float32"))
        >>> (x,) = so.linear_solve(c, c, c, c, b, lengths=(1, 1, 1, 1), matvec=product,
        ...     vecmat=product, solve=quotient, transpose_solve=quotient)
        >>> float(so.grad(x, c).eval(c=2.0, b=3.0))
        -0.75
    """
    parts = _parts(operands, lengths)
    values = zip([*parts.solve, *parts.right], solve.inputs, strict=True)
    return tuple(solve.run([settled(*one) for one in values], training=training))


@linear_solve.types
def linear_solve_types(
    operands: tuple[VarType, ...],
    *,
    lengths: Lengths,
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
) -> tuple[VarType, ...]:
    """Returns the types of the right-hand side."""
    if sum(lengths) >= len(operands) or min(lengths) < 0:
        raise ArgumentError(
            f"lengths must leave a right-hand side of {len(operands)} operands, got {lengths}"
        )
    parts = _parts(operands, lengths)
    named = {
        "the product": (matvec, parts.matvec),
        "the transposed product": (vecmat, parts.vecmat),
        "the solver": (solve, parts.solve),
        "the transposed solver": (transpose_solve, parts.transpose_solve),
    }
    right = tuple(one.strong() for one in parts.right)
    for name, (one, constants) in named.items():
        require_types(name, one, [*constants, *right])
        if one.draws or one.outputs != right:
            raise ArgumentError(f"{name} must return values like the right-hand side, got {one!r}")
    return solve.outputs


@linear_solve.kind
def linear_solve_kinds(*, solve: Body) -> tuple[VarKind, ...]:
    """Returns the output kinds of the solver."""
    return tuple(one.kind for one in solve.outputs)


@linear_solve.gradient
def _linear_solve_gradient(
    training: Var,
    operands: tuple[Var, ...],
    parts: tuple[Var, ...],
    d_parts: tuple[Var | None, ...] | None,
    wanted: tuple[bool, ...],
    *,
    lengths: Lengths,
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
) -> Grads:
    """The transposed solution ``w`` of the cotangents, and the pullback of the product from ``-w``.

    Derivation: from ``A x = b``, ``dx = A^-1 (db - dA x)``. The cotangent of ``b`` is therefore
    ``w = A^-T dx``, and that of ``A``, applied to ``x``, is ``-w``.
    """
    heads = d_parts or ()
    gradients: list[Var | None] = [None] * len(operands)
    if all(one is None for one in heads):
        return {"operands": gradients}
    consts = _parts(operands, lengths)
    cotangents = [
        filled(part, 0) if head is None else head for head, part in zip(heads, parts, strict=True)
    ]
    solution = linear_solve(
        *consts.vecmat, *consts.matvec, *consts.transpose_solve, *consts.solve, *cotangents,
        training=training,
        lengths=(lengths[1], lengths[0], lengths[3], lengths[2]),
        matvec=vecmat, vecmat=matvec, solve=transpose_solve, transpose_solve=solve,
    )  # fmt: skip
    start = sum(lengths)
    for i, one in enumerate(solution):
        gradients[start + i] = one if wanted[start + i + _N_FIXED] else None
    asked = tuple(
        i for i in range(lengths[0]) if wanted[i + _N_FIXED] and matvec.inputs[i].differentiable
    )
    for i, gradient in _of_constants(training, consts.matvec, parts, solution, matvec, asked):
        gradients[i] = gradient
    return {"operands": gradients}


def _of_constants(
    training: Var,
    constants: Sequence[Var],
    x: Sequence[Var],
    solution: Sequence[Var],
    matvec: Body,
    asked: Places,
) -> list[tuple[int, Var]]:
    """Returns the gradients of the constants of the product at ``asked``."""
    outputs = tuple(range(len(matvec.outputs)))
    chosen = matvec.reached(outputs, asked)
    if not chosen:
        return []
    pulled = matvec.pullback(outputs, chosen)
    values = [*constants, *x]
    heads = [-one for one in solution]
    sources = [heads[s.place] if s.of == "head" else values[s.place] for s in pulled.sources]
    results = call(*sources, training=training, body=pulled.body)
    return list(zip(chosen, results, strict=True))
