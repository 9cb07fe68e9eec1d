"""Control flow: a branch between two bodies, and a loop with a condition."""

from collections.abc import Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import booleans, case, misuse, uniform, workload
from registry.errors import ArgumentError, NotDifferentiableError, ShapeError
from registry.operator.attributes import Check
from registry.operator.bodies import Body, BodyAttribute, Places, Pulled, Source, body, settled
from registry.operator.operator import Grads
from registry.operator.signature import Array, Key, Training
from registry.ops.control_flow.loop_gradients import Layout, Run, Values, loop_gradients
from registry.ops.control_flow.loop_types import (
    require_carries,
    require_key,
    require_type,
    require_types,
    stacked,
)
from registry.ops.control_flow.merging import count_within, merging
from registry.ops.control_flow.stepping import (
    Count,
    Operands,
    run_prefix,
    said,
    scan_count,
    stored,
    zeros_of,
)
from registry.table import op
from registry.types import VarKind, VarType
from registry.var import Var
from registry.xla import device_types
from registry.xla.canonical_layouts import looping

# cond ------------------------------------------------------------------------------------------


def _require_scalar(what: str, type: VarType) -> None:
    if type.kind is not VarKind.LOD_TENSOR or type.shape != ():
        raise ShapeError(f"{what} must be a scalar, got {type}")


def _sine(x: Any, y: Any) -> Any:
    return x.sin() * y, x


def _product(x: Any, y: Any) -> Any:
    return x * x * y, y.exp()


def _both(x: Any, y: Any) -> Any:
    return x + y


def _cond_reference(pred: Any, *operands: Any, true_body: Body, false_body: Body, **_: Any) -> Any:
    chosen = true_body if pred else false_body
    return said([np.asarray(one) for one in chosen.run(operands)])


@op(
    outputs=("*parts",),
    count=lambda *, true_body: len(true_body.outputs),
    reference=_cond_reference,
    cases=[
        case(pred=booleans(), operands=[(3,), (3,)], true_body=body(_sine, (3,), (3,)),
             false_body=body(_product, (3,), (3,))),
        case(pred=booleans(), operands=[(3,), (3,)], true_body=body(_sine, (3,), (3,)),
             false_body=body(_product, (3,), (3,)), seed=1),
        case(pred=uniform(low=1.0, high=2.0), operands=[(), ()], true_body=body(_both, (), ()),
             false_body=body(_both, (), ())),
        workload(pred=booleans(), operands=[(512, 512), (512, 512)],
                 true_body=body(_sine, (512, 512), (512, 512)),
                 false_body=body(_product, (512, 512), (512, 512))),
        misuse("the predicate must be a scalar", pred=booleans(2), operands=[(3,), (3,)],
               true_body=body(_sine, (3,), (3,)), false_body=body(_product, (3,), (3,))),
        misuse("output 0 of the false body must be float", pred=booleans(), operands=[(3,), ()],
               true_body=body(_both, (3,), ()), false_body=body(lambda x, y: y, (3,), ())),
        misuse("the false body must return 2 values as the true body does, got 1",
               pred=booleans(), operands=[(3,), (3,)], true_body=body(_sine, (3,), (3,)),
               false_body=body(_both, (3,), (3,))),
    ],
)  # fmt: skip
def cond(
    pred: Array,
    key: Key,
    training: Training,
    *operands: Operands,
    true_body: BodyAttribute,
    false_body: BodyAttribute,
    use_key: bool = False,
) -> tuple[Array, ...]:
    """Returns the outputs of ``true_body`` if ``pred`` is true or nonzero, else of ``false_body``.

    Only the chosen body is computed. Both take all operands, and return values of the same types.
    ``so.cond`` creates the bodies. Under ``jax.vmap`` with a batched predicate, both bodies are
    computed, and the entries are selected.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> y = so.cond(x > 0, lambda x: x * x, lambda x: -x, x)
        >>> [float(y.eval(x=one)) for one in (3.0, -3.0)]
        [9.0, 3.0]
    """

    def branch(chosen: Body) -> Any:
        def run(values: Values) -> list[Any]:
            inputs = [settled(*one) for one in zip(values, chosen.inputs, strict=True)]
            return chosen.run(inputs, key=key if chosen.draws else None, training=training)

        return run

    condition = jnp.asarray(pred)
    holds = condition if condition.dtype == np.bool_ else condition != 0
    return tuple(device_types.cond(holds, branch(true_body), branch(false_body), operands))


@cond.types
def cond_types(
    pred: VarType,
    operands: tuple[VarType, ...],
    *,
    true_body: Body,
    false_body: Body,
    use_key: bool,
) -> tuple[VarType, ...]:
    """Returns the output types of the bodies, which must be equal."""
    _require_scalar("the predicate", pred)
    require_types("the true body", true_body, operands)
    require_types("the false body", false_body, operands)
    if len(true_body.outputs) != len(false_body.outputs):
        raise ArgumentError(
            f"the false body must return {len(true_body.outputs)} values as the true body does, "
            f"got {len(false_body.outputs)}"
        )
    pairs = zip(true_body.outputs, false_body.outputs, strict=True)
    for i, (wanted, got) in enumerate(pairs):
        require_type(f"output {i} of the false body", got, wanted)
    require_key(true_body.draws or false_body.draws, use_key)
    return true_body.outputs


@cond.kind
def cond_kinds(*, true_body: Body) -> tuple[VarKind, ...]:
    """Returns the output kinds of the bodies."""
    return tuple(one.kind for one in true_body.outputs)


@cond.simplify
def _cond_simplify(
    key: Var | None, training: Var, pred: Var, operands: tuple[Var, ...], *, true_body: Body,
    false_body: Body, use_key: bool,
) -> list[Var] | None:  # fmt: skip
    merged = merging(operands, true_body, false_body)
    if merged is None:
        return None
    results = cond(
        pred,
        *[operands[i] for i in merged.operands],
        **({"key": key} if use_key else {}),
        training=training,
        true_body=merged.body(true_body),
        false_body=merged.body(false_body),
        use_key=use_key,
    )
    return merged.every(results)


@cond.gradient
def _cond_gradient(
    pred: Var,
    key: Var | None,
    training: Var,
    operands: tuple[Var, ...],
    d_parts: tuple[Var | None, ...] | None,
    wanted: tuple[bool, ...],
    *,
    true_body: Body,
    false_body: Body,
) -> Grads:
    """The conditional of the bodies' gradients, which recompute their residuals."""
    bodies, cotangents = (true_body, false_body), d_parts or ()
    heads = tuple(j for j, one in enumerate(cotangents) if one is not None)
    inputs = enumerate(true_body.inputs)
    asked = tuple(i for i, one in inputs if wanted[i + 3] and one.differentiable)
    reached = {i for one in bodies for i in one.reached(heads, asked)}
    chosen = tuple(i for i in asked if i in reached)
    gradients: list[Var | None] = [None] * len(operands)
    if not chosen:
        return {"pred": None, "operands": gradients}
    pulled = [one.pullback(heads, chosen) for one in bodies]
    sources, (when_true, when_false) = _of_same_inputs(true_body, pulled)
    values = [cotangents[one.place] if one.of == "head" else operands[one.place] for one in sources]
    draws = when_true.draws or when_false.draws
    d_chosen = cond(
        pred,
        *values,
        **({"key": key} if draws else {}),
        training=training,
        true_body=when_true,
        false_body=when_false,
        use_key=draws,
    )
    for i, gradient in zip(chosen, d_chosen, strict=True):
        gradients[i] = gradient
    return {"pred": None, "operands": gradients}


def _of_same_inputs(
    forward: Body, pulled: Sequence[Pulled]
) -> tuple[list[Source], tuple[Body, ...]]:
    """Bodies with one common list of inputs, and the sources of these inputs."""
    sources = list(dict.fromkeys(one for each in pulled for one in each.sources))
    types = tuple(
        (forward.inputs if one.of == "input" else forward.outputs)[one.place] for one in sources
    )
    places = [tuple(sources.index(one) for one in each.sources) for each in pulled]
    bodies = tuple(
        each.body.taking(types, place) for each, place in zip(pulled, places, strict=True)
    )
    return sources, bodies


# while_loop ------------------------------------------------------------------------------------


def _below(c: Any, w: Any) -> Any:
    return c.sum() < 5.0 * w


def _doubled(c: Any, w: Any) -> Any:
    return c * c + w


def _first(c: Any, w: Any) -> Any:
    return c.sum() < w.sum()


def _of_two(c: Any, w: Any) -> Any:
    return c < w


def _while_reference(
    *operands: Any, condition: Body, body: Body, n_carry: int, max_steps: int | None, **_: Any
) -> Any:
    carries, consts, steps = list(operands[:n_carry]), operands[n_carry:], 0
    bound = np.inf if max_steps is None else max_steps
    results = [np.zeros((max_steps or 0, *one.shape), one.dtype) for one in body.outputs[n_carry:]]
    while steps < bound and condition.run([*carries, *consts])[0]:
        outputs = [np.asarray(one) for one in body.run([*carries, *consts])]
        carries = outputs[:n_carry]
        for whole, one in zip(results, outputs[n_carry:], strict=True):
            whole[steps] = one
        steps += 1
    return (np.int32(steps), *carries, *results)


_State = tuple[Any, list[Any], list[Any]]
"""Step number, carries, and stacked results."""
MaxSteps = Annotated[
    int | None, Check("be None or not negative", lambda count: count is None or count >= 0)
]


@op(
    outputs=("steps", "*parts"),
    hidden=["steps"],
    count=scan_count,
    reference=_while_reference,
    opaque=True,  # JAX has no reverse mode for a loop whose number of steps is not static
    cases=[
        case(operands=[uniform(2, low=0.5, high=1.0), uniform(low=0.5, high=1.0)],
             condition=body(_below, (2,), ()), body=body(_doubled, (2,), ()), n_carry=1,
             max_steps=6),
        case(operands=[uniform(2, low=0.5, high=1.0), uniform(low=0.5, high=1.0)],
             condition=body(_below, (2,), ()), body=body(_doubled, (2,), ()), n_carry=1,
             max_steps=2),
        case(operands=[uniform(2, low=9.5, high=10.0), uniform(low=0.5, high=1.0)],
             condition=body(_below, (2,), ()), body=body(_doubled, (2,), ()), n_carry=1,
             max_steps=2),
        misuse("the condition must be a scalar", operands=[(2,), (2,)],
               condition=body(_of_two, (2,), (2,)), body=body(_doubled, (2,), (2,)), n_carry=1),
        misuse("carry 0 must keep its type: after a step it must be", operands=[(1,), (2,)],
               condition=body(_first, (1,), (2,)), body=body(_doubled, (1,), (2,)), n_carry=1),
    ],
)  # fmt: skip
def while_loop(
    key: Key,
    training: Training,
    *operands: Operands,
    condition: BodyAttribute,
    body: BodyAttribute,
    n_carry: Count,
    max_steps: MaxSteps = None,
    use_key: bool = False,
) -> tuple[Array, ...]:
    """Applies ``body`` to the carries while ``condition`` holds, at most ``max_steps`` times.

    The operands are ``n_carry`` carries, which keep their types, and constants; both bodies take
    all of them. The results are the final carries. With ``max_steps`` the body may return further
    results, which are stacked along a new first axis of length ``max_steps``, with zeros after the
    last step. ``so.while_loop`` creates the bodies.

    Reverse mode requires ``max_steps``, because it stores the residuals of each step. Forward mode
    does not.

    Raises:
        NotDifferentiableError: reverse mode is requested of a loop without a bound.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> y = so.while_loop(lambda c: c < 100.0, lambda c: c * c, x, max_steps=10)
        >>> float(y.eval(x=3.0)), float(so.grad(y, x).eval(x=3.0))
        (6561.0, 17496.0)
    """
    values = [settled(*one) for one in zip(operands, body.inputs, strict=True)]
    consts = values[n_carry:]
    stacks = [zeros_of(stacked(one, max_steps or 0)) for one in body.outputs[n_carry:]]

    def drawn(chosen: Body, number: Any) -> Any:
        return jax.random.fold_in(key, number) if chosen.draws else None

    def goes_on(state: _State) -> Any:
        number, carries, _ = state
        (holds,) = condition.run(
            [*carries, *consts], key=drawn(condition, number), training=training
        )
        holds = holds if holds.dtype == np.bool_ else holds != 0
        return holds if max_steps is None else (number < max_steps) & holds

    def step(state: _State) -> _State:
        number, carries, series = state
        with looping():
            outputs = body.run([*carries, *consts], key=drawn(body, number), training=training)
        return number + 1, outputs[:n_carry], stored(series, outputs[n_carry:], number)

    first = (jnp.zeros((), np.int32), values[:n_carry], stacks)
    steps, carries, series = device_types.while_loop(goes_on, step, first)
    return (steps, *carries, *series)


@while_loop.types
def while_types(
    operands: tuple[VarType, ...],
    *,
    condition: Body,
    body: Body,
    n_carry: int,
    max_steps: int | None,
    use_key: bool,
) -> list[VarType]:
    """Returns the types of the carries, and those of the results, stacked."""
    require_types("the condition", condition, operands)
    require_types("the body", body, operands)
    if len(condition.outputs) != 1:
        raise ArgumentError(f"the condition must return one value, got {len(condition.outputs)}")
    _require_scalar("the condition", condition.outputs[0])
    require_carries(body, n_carry)
    require_key(condition.draws or body.draws, use_key)
    results = body.outputs[n_carry:]
    if results and max_steps is None:
        raise ArgumentError(
            f"the body must return {n_carry} carries alone where there is no max_steps, got "
            f"{len(results)} more"
        )
    steps = VarType((), np.dtype(np.int32))
    return [steps, *body.outputs[:n_carry], *(stacked(one, max_steps or 0) for one in results)]


@while_loop.kind
def while_kinds(*, body: Body) -> tuple[VarKind, ...]:
    """Returns the output kinds of the body."""
    return (VarKind.LOD_TENSOR, *(one.kind for one in body.outputs))


@while_loop.simplify
def _while_simplify(
    key: Var | None, training: Var, operands: tuple[Var, ...], *, condition: Body, body: Body,
    n_carry: int, max_steps: int | None, use_key: bool,
) -> list[Var] | None:  # fmt: skip
    merged = merging(
        operands, body, n_carry=n_carry, input_groups=(n_carry,), output_groups=(n_carry,)
    )
    if merged is None:
        return None
    steps, *results = while_loop.revealed(
        *[operands[i] for i in merged.operands],
        **({"key": key} if use_key else {}),
        training=training,
        condition=condition.identified(merged.same, (0,)),
        body=merged.body(body),
        n_carry=count_within(merged.operands, 0, n_carry),
        max_steps=max_steps,
        use_key=use_key,
    )
    return [steps, *merged.every(results)]


@while_loop.gradient
def _while_gradient(
    key: Var | None,
    training: Var,
    operands: tuple[Var, ...],
    steps: Var,
    parts: tuple[Var, ...],
    d_parts: tuple[Var | None, ...] | None,
    wanted: tuple[bool, ...],
    *,
    condition: Body,
    body: Body,
    n_carry: int,
    max_steps: int | None,
    use_key: bool,
) -> Grads:
    """The same steps in reverse order."""
    if max_steps is None:
        raise NotDifferentiableError(
            "while_loop: reverse mode stores what each step needs, so the number of steps must be "
            "bounded; pass max_steps=, or use forward mode"
        )
    if max_steps == 0:
        kept = (d_parts or ())[:n_carry]
        return {"operands": [*kept, *[None] * (len(operands) - len(kept))]}
    layout = Layout(body, n_carry)

    def again(whole: Body) -> Values:
        outputs = while_loop.revealed(
            *operands,
            **({"key": key} if use_key else {}),
            training=training,
            condition=condition,
            body=whole,
            n_carry=n_carry,
            max_steps=max_steps,
            use_key=use_key,
        )
        return list(outputs[1:])

    def backwards(values: Values, reverse: Layout) -> Values:
        return run_prefix(
            steps, values, reverse, key, training, use_key=use_key, length=max_steps, reverse=True
        )

    run = Run(again, backwards)
    return {"operands": loop_gradients(layout, operands, parts, d_parts or (), wanted[2:], run)}


@while_loop.tangents
def _while_tangents(
    key: Var | None,
    training: Var,
    operands: tuple[Var, ...],
    t_operands: tuple[Var | None, ...],
    *,
    condition: Body,
    body: Body,
    n_carry: int,
    max_steps: int | None,
    use_key: bool,
) -> list[Var | None] | None:
    """Without a bound, a loop over the carries and their tangents.

    With a bound, the gradient is transposed instead.
    """
    if max_steps is not None:
        return None
    carried, consts = _moving(body, n_carry, t_operands)
    if not carried:
        return [None] * (n_carry + 1)
    n_inputs = len(operands)
    pushed = body.pushforward((*carried, *consts), carried)
    # The inputs of the new loop: carries, their tangents, constants, their tangents.
    middle = n_carry + len(carried)
    own = (*range(n_carry), *range(middle, middle + n_inputs - n_carry))
    ways = (*range(n_carry, middle), *range(n_inputs + len(carried), len(pushed.inputs)))
    types = list(pushed.inputs)
    for place, type in zip((*own, *ways), pushed.inputs, strict=True):
        types[place] = type
    values = [
        *operands[:n_carry],
        *(_zeros(operands[i]) if t_operands[i] is None else t_operands[i] for i in carried),
        *operands[n_carry:],
        *(t_operands[i] for i in consts),
    ]
    outputs = while_loop(
        *values,
        **({"key": key} if use_key else {}),
        training=training,
        condition=condition.taking(tuple(types), own),
        body=pushed.taking(tuple(types), (*own, *ways)),
        n_carry=middle,
        use_key=use_key,
    )
    moved = dict(zip(carried, outputs[n_carry:], strict=True))
    return [None, *(moved.get(i) for i in range(n_carry))]


def _moving(body: Body, n_carry: int, tangents: Sequence[Var | None]) -> tuple[Places, Places]:
    """The carries with tangents in any step, and the constants with tangents."""
    moving = {i for i, one in enumerate(tangents) if one is not None}
    while True:
        more = {i for i in body.moved(tuple(sorted(moving))) if i < n_carry} - moving
        if not more:
            break
        moving |= more
    ordered = sorted(moving)
    return tuple(i for i in ordered if i < n_carry), tuple(i for i in ordered if i >= n_carry)


def _zeros(like: Var) -> Any:
    return like.emitter.filled(0.0, like.type.strong())
