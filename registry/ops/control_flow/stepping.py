"""Scans: a body applied step by step, and the reverse scan that is its gradient.

A step takes carries, one slice of each series and constants; it returns the next carries, terms
that are summed over all steps, and slices of the results. In the gradient, the carries are
cotangents of carries, and run backwards; each constant of the scan has a sum as its gradient, and
each series has a series of results. The gradient of a scan is therefore a scan.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive

from registry.cases import case, integers, misuse, workload
from registry.errors import ArgumentError, DTypeError, KindError, ShapeError
from registry.operator.attributes import Check
from registry.operator.bodies import Body, BodyAttribute, body, settled
from registry.operator.operator import Grads
from registry.operator.signature import Array, Key, Optional, Training
from registry.ops.control_flow.loop_gradients import Layout, Run, Values, loop_gradients
from registry.ops.control_flow.loop_types import (
    require_carries,
    require_key,
    require_types,
    stacked,
)
from registry.ops.control_flow.merging import count_within, distinct, merging
from registry.primitives import ENTRYWISE, REARRANGING
from registry.table import op
from registry.types import VarKind, VarType, is_integer
from registry.values import TensorArray
from registry.var import Var
from registry.xla import device_types
from registry.xla.canonical_layouts import looping
from registry.xla.unstack import is_transposing

Operands = Annotated[Array, Optional()]
"""Annotation of a variadic slot that may be empty."""
Count = Annotated[int, Check("not be negative", lambda count: count >= 0)]
_N_FIXED = 2
"""Number of slots before the operands: random key and training flag."""


# Types -----------------------------------------------------------------------------------------


def _slice_of(place: int, series: VarType, length: int) -> VarType:
    if series.kind not in (VarKind.LOD_TENSOR, VarKind.RANDOM_KEY):
        raise KindError(f"series {place} must be a dense array or random keys, got {series}")
    if not series.shape or series.shape[0] != length:
        raise ShapeError(
            f"series {place} must have a slice for each of {length} steps, got {series}"
        )
    return VarType(series.shape[1:], series.dtype, series.kind)


def _scan_types(
    operands: tuple[VarType, ...],
    *,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    length: int,
    use_key: bool,
) -> list[VarType]:
    end = n_carry + n_xs
    series = [_slice_of(i, one, length) for i, one in enumerate(operands[n_carry:end])]
    require_types("the body", body, [*operands[:n_carry], *series, *operands[end:]])
    require_carries(body, n_carry)
    require_key(body.draws, use_key)
    first = n_carry + n_sums
    if first > len(body.outputs):
        raise ArgumentError(
            f"the body must return {n_carry} carries and {n_sums} terms, got {len(body.outputs)} "
            "outputs"
        )
    return [*body.outputs[:first], *(stacked(one, length) for one in body.outputs[first:])]


def _scan_kinds(*, body: Body) -> tuple[VarKind, ...]:
    return tuple(one.kind for one in body.outputs)


def scan_count(*, body: Body) -> int:
    """Returns the number of outputs of the body."""
    return len(body.outputs)


# Kernels ---------------------------------------------------------------------------------------


class _Step(NamedTuple):
    """One step on JAX values.

    Attributes:
        body: the body of the step.
        n_carry: number of carries.
        n_sums: number of summed terms.
        consts: the constants.
        key: the key that each step's key is folded from, or None.
        training: the training flag.
    """

    body: Body
    n_carry: int
    n_sums: int
    consts: Values
    key: Any
    training: bool

    def __call__(self, number: Any, held: Values, xs: Values) -> tuple[list[Any], list[Any]]:
        """Returns carries and sums after step ``number``, and slices of the results."""
        key = jax.random.fold_in(self.key, number) if self.body.draws else None
        values = [*held[: self.n_carry], *xs, *self.consts]
        with looping():
            outputs = self.body.run(values, key=key, training=self.training)
        end = self.n_carry + self.n_sums
        sums = [
            total + term
            for total, term in zip(held[self.n_carry :], outputs[self.n_carry : end], strict=True)
        ]
        return [*outputs[: self.n_carry], *sums], outputs[end:]

    def start(self, carries: Values) -> list[Any]:
        """Returns carries and sums before the first step."""
        types = self.body.inputs[: self.n_carry]
        init = [settled(one, type) for one, type in zip(carries, types, strict=True)]
        terms = self.body.outputs[self.n_carry : self.n_carry + self.n_sums]
        return [*init, *map(zeros_of, terms)]


def zeros_of(type: VarType) -> Any:
    """Returns zeros of ``type`` as a JAX value."""
    if type.kind is VarKind.LOD_TENSOR_ARRAY:
        return TensorArray.filled(type, 0)
    return jnp.zeros(type.shape, type.dtype)


def _split(operands: Values, body: Body, n_carry: int, n_xs: int) -> tuple[Values, ...]:
    """Carries, series and constants, the latter cast to their exact types."""
    end = n_carry + n_xs
    types = body.inputs[end:]
    consts = [settled(one, type) for one, type in zip(operands[end:], types, strict=True)]
    return operands[:n_carry], [jnp.asarray(one) for one in operands[n_carry:end]], consts


def _scan_reference(
    *operands: Any,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    steps: Any = None,
    **_others: Any,
) -> Any:
    """A Python loop over NumPy arrays."""
    count = length if steps is None else int(np.clip(steps, 0, length))
    carries, end, first = list(operands[:n_carry]), n_carry + n_xs, n_carry + n_sums
    sums = [np.zeros(one.shape, one.dtype) for one in body.outputs[n_carry:first]]
    series = [np.zeros((length, *one.shape), one.dtype) for one in body.outputs[first:]]
    for number in range(count)[:: -1 if reverse else 1]:
        xs = [np.asarray(one)[number] for one in operands[n_carry:end]]
        outputs = [np.asarray(one) for one in body.run([*carries, *xs, *operands[end:]])]
        carries, terms = outputs[:n_carry], outputs[n_carry:first]
        sums = [total + term for total, term in zip(sums, terms, strict=True)]
        for whole, one in zip(series, outputs[first:], strict=True):
            whole[number] = one
    return said([*carries, *sums, *series])


def said(results: list[Any]) -> Any:
    """Returns results in the form of a reference: a single one without a tuple."""
    return results[0] if len(results) == 1 else tuple(results)


# scan ------------------------------------------------------------------------------------------


def _recurrence(h: Any, x: Any, w: Any) -> Any:
    state = (h * w + x).tanh()
    return state, state * x


def _powers(c: Any, w: Any) -> Any:
    return c * w


def _sums(x: Any) -> Any:
    return x * x, x + 1


def _growing(c: Any) -> Any:
    return c.concat(c)


@op(
    outputs=("*parts",),
    count=scan_count,
    reference=_scan_reference,
    cases=[
        case(operands=[(3,), (4, 3), (3,)], body=body(_recurrence, (3,), (3,), (3,)), n_carry=1,
             n_xs=1, length=4),
        case(operands=[(3,), (4, 3), (3,)], body=body(_recurrence, (3,), (3,), (3,)), n_carry=1,
             n_xs=1, length=4, reverse=True),
        case(operands=[(2,), ()], body=body(_powers, (2,), ()), n_carry=1, length=3),
        case(operands=[(4, 2)], body=body(_sums, (2,)), n_carry=0, n_xs=1, n_sums=1, length=4),
        case(operands=[(3,), (0, 3), (3,)], body=body(_recurrence, (3,), (3,), (3,)), n_carry=1,
             n_xs=1, length=0, order=1),
        workload(operands=[(64,), (256, 64), (64,)], body=body(_recurrence, (64,), (64,), (64,)),
                 n_carry=1, n_xs=1, length=256),
        misuse("series 0 must have a slice for each of 5 steps", operands=[(3,), (4, 3), (3,)],
               body=body(_recurrence, (3,), (3,), (3,)), n_carry=1, n_xs=1, length=5),
        misuse("operand 1 of the body must be", operands=[(2,), (3,)], body=body(_powers, (2,), ()),
               n_carry=1, length=3),
        misuse("carry 0 must keep its type: after a step it must be", operands=[(2,)],
               body=body(_growing, (2,)), n_carry=1, length=3),
    ],
)  # fmt: skip
def scan(
    key: Key,
    training: Training,
    *operands: Operands,
    body: BodyAttribute,
    n_carry: Count,
    n_xs: Count = 0,
    n_sums: Count = 0,
    length: Count,
    reverse: bool = False,
    use_key: bool = False,
) -> tuple[Array, ...]:
    """Applies ``body`` step by step, ``length`` times.

    The operands are ``n_carry`` carries, ``n_xs`` series with a slice for each step along their
    first axis, and constants. The body takes carries, slices and constants. It returns the next
    carries, which keep their types, ``n_sums`` terms, and further results. The scan returns the
    final carries, the sums of the terms over all steps, and the further results of each step,
    stacked along a new first axis. With ``reverse`` it runs from the last slice to the first; the
    results are still in the order of the slices.

    A body that draws random numbers gets a different key in each step, folded from ``key`` and the
    index of the slice. ``so.scan`` creates the body and sorts the operands.

    Example:
        >>> import symop as so
        >>> import jax.numpy as jnp
        >>> x = so.var("x", shape=(3,))
        >>> last, sums = so.scan(lambda c, x: (c + x, c + x), 0.0, x)
        >>> sums.eval(x=[1.0, 2.0, 3.0]).tolist()
        [1.0, 3.0, 6.0]
    """
    carries, xs, consts = _split(operands, body, n_carry, n_xs)
    step = _Step(body, n_carry, n_sums, consts, key, training)

    def run(held: Values, number_and_slices: tuple[Any, Values]) -> tuple[list[Any], list[Any]]:
        return step(number_and_slices[0], held, number_and_slices[1])

    numbers = jnp.arange(length) if body.draws else None
    start = step.start(carries)
    held, series = device_types.scan(
        _recomputing(run), start, (numbers, list(xs)), length=length, reverse=reverse
    )
    return (*held, *series)


def _recomputing(step: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a step whose transpose recomputes what is cheap from the slices that it reads.

    JAX would compute it before the transposed loop, in another loop that stores it for each step.
    """
    if not is_transposing():
        return step
    # Steps of a loop are not merged, so that no barrier has to keep them apart.
    recomputed: Callable[..., Any] = jax.checkpoint(step, policy=_is_costly, prevent_cse=False)
    return recomputed


def _is_costly(primitive: Primitive, *_avals: Any, **_params: Any) -> bool:
    return primitive not in ENTRYWISE | REARRANGING


scan.types(_scan_types)
scan.kind(_scan_kinds)


@scan.gradient
def _scan_gradient(
    key: Var | None,
    training: Var,
    operands: tuple[Var, ...],
    parts: tuple[Var, ...],
    d_parts: tuple[Var | None, ...] | None,
    wanted: tuple[bool, ...],
    *,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    **others: Any,
) -> Grads:
    """The reverse scan; see ``reversed_loop``."""
    layout = Layout(body, n_carry, n_xs, n_sums)

    def again(whole: Body) -> Values:
        return run_scan(operands, layout._replace(body=whole), key, training, **others)

    def backwards(values: Values, reverse: Layout) -> Values:
        direction = {**others, "reverse": not others["reverse"]}
        return run_scan(values, reverse, key, training, **direction)

    run = Run(again, backwards)
    gradients = loop_gradients(layout, operands, parts, d_parts or (), wanted[_N_FIXED:], run)
    return {"operands": gradients}


@scan.simplify
def _scan_simplify(
    key: Var | None, training: Var, operands: tuple[Var, ...], *, body: Body, n_carry: int,
    n_xs: int, n_sums: int, **others: Any,
) -> list[Var] | None:  # fmt: skip
    def run(values: Values, layout: Layout) -> Values:
        return run_scan(values, layout, key, training, **others)

    return merged_loop(operands, Layout(body, n_carry, n_xs, n_sums), run)


def merged_loop(
    operands: Values, layout: Layout, run: Callable[[Values, Layout], Values]
) -> list[Any] | None:
    """Returns the results of ``run`` on a loop without duplicates; None if it has none."""
    body, n_carry, n_xs, n_sums = layout
    end, first = n_carry + n_xs, n_carry + n_sums
    merged = merging(
        operands, body, n_carry=n_carry, input_groups=(n_carry, end), output_groups=(n_carry, first)
    )
    if merged is None:
        return None
    inputs, outputs = merged.operands, distinct(merged.results)
    smaller = Layout(
        merged.body(body),
        count_within(inputs, 0, n_carry),
        count_within(inputs, n_carry, end),
        count_within(outputs, n_carry, first),
    )
    return merged.every(run([operands[i] for i in inputs], smaller))


def run_scan(
    operands: Values, layout: Layout, key: Any, training: Any, *, use_key: bool, **others: Any
) -> Values:
    """Runs the scan described by ``layout``, which needs a key only if it draws."""
    draws = layout.body.draws
    keyed = {"key": key} if use_key and draws else {}
    results: Values = scan(
        *operands,
        **keyed,
        training=training,
        body=layout.body,
        n_carry=layout.n_carry,
        n_xs=layout.n_xs,
        n_sums=layout.n_sums,
        use_key=draws,
        **others,
    )
    return results


# scan_prefix -----------------------------------------------------------------------------------


@op(
    outputs=("*parts",),
    count=scan_count,
    reference=lambda steps, *operands, **others: _scan_reference(
        *operands, steps=steps, **others
    ),
    opaque=True,  # JAX has no reverse mode for a loop whose number of steps is not static
    cases=[
        case(steps=integers(high=4, low=2), operands=[(3,), (4, 3), (3,)],
             body=body(_recurrence, (3,), (3,), (3,)), n_carry=1, n_xs=1, length=4),
        case(steps=integers(high=3, low=2), operands=[(3,), (4, 3), (3,)],
             body=body(_recurrence, (3,), (3,), (3,)), n_carry=1, n_xs=1, length=4, reverse=True),
        case(steps=integers(high=1), operands=[(4, 2)], body=body(_sums, (2,)), n_carry=0, n_xs=1,
             n_sums=1, length=4, order=2),
        case(steps=integers(high=10, low=9), operands=[(2,), ()], body=body(_powers, (2,), ()),
             n_carry=1, length=3),
        misuse("steps must be an integer scalar", steps=(), operands=[(2,), ()],
               body=body(_powers, (2,), ()), n_carry=1, length=3),
    ],
)  # fmt: skip
def scan_prefix(
    key: Key,
    training: Training,
    steps: Array,
    *operands: Operands,
    body: BodyAttribute,
    n_carry: Count,
    n_xs: Count = 0,
    n_sums: Count = 0,
    length: Count,
    reverse: bool = False,
    use_key: bool = False,
) -> tuple[Array, ...]:
    """Applies ``body`` in the first ``steps`` of ``length`` steps; otherwise like ``scan``.

    The number of steps is determined at run time, and is at most ``length``. With ``reverse`` the
    first step is run last. Results of steps that are not taken are zeros. The gradient of a
    ``while_loop`` consists of this operator.

    Example:
        >>> import symop as so
        >>> n, x = so.var("n", shape=(), dtype="int32"), so.var("x", shape=(3,))
        >>> add = so.body(lambda c, x: (c + x, c + x), ((), "float32"), ((), "float32"))
        >>> last, sums = so.scan_prefix(n, 0.0, x, body=add, n_carry=1, n_xs=1, length=3)
        >>> sums.eval(n=2, x=[1.0, 2.0, 3.0]).tolist()
        [1.0, 3.0, 0.0]
    """
    carries, xs, consts = _split(operands, body, n_carry, n_xs)
    step = _Step(body, n_carry, n_sums, consts, key, training)
    count = jnp.clip(steps, 0, length).astype(np.int32)
    stacks = [zeros_of(stacked(one, length)) for one in body.outputs[n_carry + n_sums :]]

    def run(done: Any, state: tuple[Values, Values]) -> tuple[Values, Values]:
        number = count - 1 - done if reverse else done
        slices = [lax.dynamic_index_in_dim(one, number, keepdims=False) for one in xs]
        held, results = step(number, state[0], slices)
        return held, stored(state[1], results, number)

    held, series = device_types.fori_loop(0, count, run, (step.start(carries), stacks))
    return (*held, *series)


def stored(stacks: Values, results: Values, number: Any) -> list[Any]:
    """Returns ``stacks`` with the results of step ``number`` stored at their positions."""
    return [
        lax.dynamic_update_index_in_dim(whole, one, number, 0)
        for whole, one in zip(stacks, results, strict=True)
    ]


@scan_prefix.types
def scan_prefix_types(
    steps: VarType, operands: tuple[VarType, ...], *, body: Body, **others: Any
) -> list[VarType]:
    """Returns the types of ``scan``; ``steps`` must be an integer scalar."""
    if steps.shape != () or not is_integer(steps.dtype):
        raise DTypeError(f"steps must be an integer scalar, got {steps}")
    del others["reverse"]
    return _scan_types(operands, body=body, **others)


scan_prefix.kind(_scan_kinds)


@scan_prefix.gradient
def _scan_prefix_gradient(
    key: Var | None,
    training: Var,
    steps: Var,
    operands: tuple[Var, ...],
    parts: tuple[Var, ...],
    d_parts: tuple[Var | None, ...] | None,
    wanted: tuple[bool, ...],
    *,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    **others: Any,
) -> Grads:
    """The same steps in reverse order; see ``reversed_loop``."""
    layout = Layout(body, n_carry, n_xs, n_sums)

    def again(whole: Body) -> Values:
        return run_prefix(steps, operands, layout._replace(body=whole), key, training, **others)

    def backwards(values: Values, reverse: Layout) -> Values:
        direction = {**others, "reverse": not others["reverse"]}
        return run_prefix(steps, values, reverse, key, training, **direction)

    run = Run(again, backwards)
    gradients = loop_gradients(layout, operands, parts, d_parts or (), wanted[_N_FIXED + 1 :], run)
    return {"steps": None, "operands": gradients}


@scan_prefix.simplify
def _scan_prefix_simplify(
    key: Var | None, training: Var, steps: Var, operands: tuple[Var, ...], *, body: Body,
    n_carry: int, n_xs: int, n_sums: int, **others: Any,
) -> list[Var] | None:  # fmt: skip
    def run(values: Values, layout: Layout) -> Values:
        return run_prefix(steps, values, layout, key, training, **others)

    return merged_loop(operands, Layout(body, n_carry, n_xs, n_sums), run)


def run_prefix(
    steps: Any,
    operands: Values,
    layout: Layout,
    key: Any,
    training: Any,
    *,
    use_key: bool,
    **others: Any,
) -> Values:
    """Runs the prefix scan described by ``layout``, which needs a key only if it draws."""
    draws = layout.body.draws
    keyed = {"key": key} if use_key and draws else {}
    results: Values = scan_prefix(
        steps,
        *operands,
        **keyed,
        training=training,
        body=layout.body,
        n_carry=layout.n_carry,
        n_xs=layout.n_xs,
        n_sums=layout.n_sums,
        use_key=draws,
        **others,
    )
    return results
