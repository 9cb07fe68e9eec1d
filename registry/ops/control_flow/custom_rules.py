"""A call of a body that may have its own derivative rule."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from registry.cases import case, misuse, workload
from registry.errors import ArgumentError, NotDifferentiableError
from registry.operator.bodies import Body, BodyAttribute, Places, Types, bodies_of, body, settled
from registry.operator.operator import Grads
from registry.operator.signature import Array, Training
from registry.ops.control_flow.loop_types import require_types
from registry.ops.control_flow.merging import merging
from registry.ops.control_flow.stepping import Operands, said
from registry.table import op
from registry.types import VarKind, VarType
from registry.var import Var, filled

_N_FIXED = 1
"""Number of slots before the operands: the training flag."""


def moving(types: Types) -> Places:
    """Returns the indices of the values that have tangents and cotangents."""
    return tuple(i for i, one in enumerate(types) if one.differentiable)


def _sine(x: Any, y: Any) -> Any:
    return x.sin() * y


def _sine_tangents(x: Any, y: Any, t_x: Any, t_y: Any) -> Any:
    return x.cos() * y * t_x + x.sin() * t_y


def _sine_gradients(x: Any, y: Any, d: Any) -> Any:
    return x.cos() * y * d, x.sin() * d


@op(
    outputs=("*parts",),
    count=lambda *, body: len(body.outputs),
    reference=lambda *operands, body, **_: said([np.asarray(one) for one in body.run(operands)]),
    native=False,
    # The rules of its cases are derivatives of their bodies.
    compared=True,
    cases=[
        case(operands=[(3,), (3,)], body=body(_sine, (3,), (3,))),
        case(operands=[(3,), (3,)], body=body(_sine, (3,), (3,)),
             jvp=body(_sine_tangents, (3,), (3,), (3,), (3,))),
        case(operands=[(3,), (3,)], body=body(_sine, (3,), (3,)),
             vjp=body(_sine_gradients, (3,), (3,), (3,))),
        case(operands=[(3,), (3,)], body=body(_sine, (3,), (3,)), value=body(_sine, (3,), (3,)),
             jvp=body(_sine_tangents, (3,), (3,), (3,), (3,))),
        case(operands=[(3,), (3,)], body=body(_sine, (3,), (3,)), value=body(_sine, (3,), (3,)),
             jvp=body(_sine_tangents, (3,), (3,), (3,), (3,)), differentiated=True),
        workload(operands=[(512, 512), (512, 512)], body=body(_sine, (512, 512), (512, 512)),
                 vjp=body(_sine_gradients, (512, 512), (512, 512), (512, 512))),
        misuse("operand 1 of the body must be", operands=[(3,), (2,)],
               body=body(_sine, (3,), (3,))),
        misuse("jvp must take the operands and their tangents", operands=[(3,), (3,)],
               body=body(_sine, (3,), (3,)), jvp=body(_sine, (3,), (3,))),
        misuse("value must take and return what the body does", operands=[(3,), (3,)],
               body=body(_sine, (3,), (3,)), value=body(_sine, (3,), ()),
               jvp=body(_sine_tangents, (3,), (3,), (3,), (3,))),
        misuse("value must be that of a rule", operands=[(3,), (3,)],
               body=body(_sine, (3,), (3,)), value=body(_sine, (3,), (3,))),
        misuse("there must be at most one rule", operands=[(3,), (3,)],
               body=body(_sine, (3,), (3,)), jvp=body(_sine_tangents, (3,), (3,), (3,), (3,)),
               vjp=body(_sine_gradients, (3,), (3,), (3,))),
    ],
)  # fmt: skip
def call(
    training: Training,
    *operands: Operands,
    body: BodyAttribute,
    jvp: BodyAttribute | None = None,
    vjp: BodyAttribute | None = None,
    value: BodyAttribute | None = None,
    differentiated: bool = False,
) -> tuple[Array, ...]:
    """Returns the outputs of ``body``, whose derivative is that of a rule if one is passed.

    Args:
        operands: the inputs of ``body``.
        body: the function.
        jvp: its forward rule: takes the operands and a tangent of each operand that is inexact, and
            returns a tangent of each output that is inexact. It must be linear in the tangents.
        vjp: its reverse rule: takes the operands and a cotangent of each output that is inexact,
            and returns a gradient of each operand that is inexact.
        value: the outputs as the rule computes them. A derivative reads them instead of those of
            ``body``, and the rule is the derivative of the first order alone: derivatives of higher
            orders are those of ``value`` and of the rule, as in JAX. Without it, the rule is the
            derivative at every order.
        differentiated: whether the call stands in a graph of which a derivative is being taken, and
            returns its ``value``.

    This corresponds to ``jax.custom_jvp`` and ``jax.custom_vjp``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> clipped = so.body(lambda x, d: so.clip(d, low=-1.0, high=1.0), ((), "float32"),
        ...     ((), "float32"))
        >>> square = so.body(lambda x: x * x, ((), "float32"))
        >>> (y,) = so.call(x, body=square, vjp=clipped)
        >>> float(y.eval(x=3.0)), float(so.grad(2.0 * y, x).eval(x=3.0))
        (9.0, 1.0)
    """
    exact = [settled(*pair) for pair in zip(operands, body.inputs, strict=True)]
    return tuple(body.run(exact, training=training))


@call.types
def call_types(
    operands: tuple[VarType, ...],
    *,
    body: Body,
    jvp: Body | None,
    vjp: Body | None,
    value: Body | None,
) -> tuple[VarType, ...]:
    """Returns the output types of the body; checks those of the rule."""
    require_types("the body", body, operands)
    if any(one.draws for one in bodies_of((body, jvp, vjp, value))):
        raise ArgumentError("a body must take the random keys that it uses as operands")
    if jvp is not None and vjp is not None:
        raise ArgumentError("there must be at most one rule, got jvp and vjp")
    if value is not None and (value.inputs, value.outputs) != (body.inputs, body.outputs):
        raise ArgumentError(
            f"value must take and return what the body does, {body!r}, got {value!r}"
        )
    if value is not None and jvp is None and vjp is None:
        raise ArgumentError("value must be that of a rule, got neither jvp nor vjp")
    ins = [body.inputs[i] for i in moving(body.inputs)]
    outs = [body.outputs[j] for j in moving(body.outputs)]
    if jvp is not None:
        _require_rule("jvp", "their tangents", jvp, (*body.inputs, *ins), outs)
    if vjp is not None:
        _require_rule("vjp", "cotangents", vjp, (*body.inputs, *outs), ins)
    return body.outputs


def _require_rule(
    name: str, what: str, rule: Body, inputs: Sequence[VarType], outputs: Sequence[VarType]
) -> None:
    if rule.inputs != tuple(inputs) or rule.outputs != tuple(outputs):
        raise ArgumentError(
            f"{name} must take the operands and {what}, {_listed(inputs)}, and return "
            f"{_listed(outputs)}, got {rule!r}"
        )


def _listed(types: Sequence[VarType]) -> str:
    return f"({', '.join(map(str, types))})"


@call.kind
def call_kinds(*, body: Body) -> tuple[VarKind, ...]:
    """Returns the output kinds of the body."""
    return tuple(one.kind for one in body.outputs)


@call.simplify
def _call_simplify(
    training: Var, operands: tuple[Var, ...], *, body: Body, jvp: Body | None, vjp: Body | None
) -> list[Var] | None:
    """Merges duplicates of a call without a rule, which takes them apart."""
    merged = None if jvp or vjp else merging(operands, body)
    if merged is None:
        return None
    kept = [operands[i] for i in merged.operands]
    return merged.every(call(*kept, training=training, body=merged.body(body)))


@call.derivation
def _call_derivation(
    *, body: Body, jvp: Body | None, vjp: Body | None, value: Body | None, differentiated: bool,
    taken: bool,
) -> dict[str, Any]:  # fmt: skip
    """The values and the derivative of the rule; the values alone once it is taken."""
    if taken and differentiated:
        return {"jvp": None, "vjp": None, "value": None, "differentiated": False}
    if taken or differentiated or value is None:
        return {}
    try:
        own = value.content
    except NotDifferentiableError:
        return {}  # the gradient maker reports it, where a derivative arrives
    return {} if own is None else {"body": own, "differentiated": True}


@call.gradient
def _call_gradient(
    training: Var,
    operands: tuple[Var, ...],
    parts: tuple[Var, ...],
    d_parts: tuple[Var | None, ...] | None,
    wanted: tuple[bool, ...],
    *,
    body: Body,
    jvp: Body | None,
    vjp: Body | None,
) -> Grads:
    """The reverse rule, the transpose of the forward rule, or the pullback of the body."""
    heads = d_parts or ()
    cotangents = {j: one for j, one in enumerate(heads) if one is not None}
    asked = tuple(i for i in moving(body.inputs) if wanted[i + _N_FIXED])
    gradients: list[Var | None] = [None] * len(operands)
    if not cotangents or not asked:
        return {"operands": gradients}
    if vjp is not None:
        values = [
            *operands,
            *(
                cotangents[j] if j in cotangents else filled(parts[j], 0)
                for j in moving(body.outputs)
            ),
        ]
        places = moving(body.inputs)
        vanishing = _vanishing(vjp, tuple(range(len(operands), len(values))))
        asked = tuple(i for i in asked if places.index(i) not in vanishing)
        if not asked:
            return {"operands": gradients}
        # What is not read must not be an operand: the rule is then linear in the cotangents where
        # it does not read them, as its own gradient by them is.
        rule, read = vjp.restricted(tuple(places.index(i) for i in asked))
        d_chosen = call(*[values[i] for i in read], training=training, body=rule)
        chosen = asked
    else:
        chosen, d_chosen = _pulled_back(training, operands, cotangents, asked, body, jvp)
    for i, gradient in zip(chosen, d_chosen, strict=True):
        gradients[i] = gradient
    return {"operands": gradients}


def _vanishing(rule: Body, heads: Places) -> set[int]:
    """Returns the outputs of a reverse rule that are zero for all cotangents ``heads``."""
    return set(range(len(rule.outputs))) - set(rule.moved(heads)) - set(rule.apart(heads))


def _pulled_back(
    training: Var,
    operands: Sequence[Var],
    heads: dict[int, Var],
    asked: Places,
    body: Body,
    jvp: Body | None,
) -> tuple[Places, Sequence[Var]]:
    """Returns the places of operands, and their gradients by the rule's or the body's pullback."""
    differentiated, values, inputs, outputs = body, list(operands), asked, dict(heads)
    if jvp is not None:
        # The rule is linear in the tangents, so its gradient is the same at any tangents.
        ins, outs = moving(body.inputs), moving(body.outputs)
        differentiated = jvp
        values += [filled(operands[i], 0) for i in ins]
        inputs = tuple(len(operands) + ins.index(i) for i in asked)
        outputs = {outs.index(j): one for j, one in heads.items()}
    chosen = differentiated.reached(tuple(outputs), inputs)
    if not chosen:
        return (), ()
    pulled = differentiated.pullback(tuple(outputs), chosen)
    gradients = call(
        *[outputs[one.place] if one.of == "head" else values[one.place] for one in pulled.sources],
        training=training,
        body=pulled.body,
    )
    return tuple(asked[inputs.index(i)] for i in chosen), gradients


@op(
    outputs=("*parts",),
    count=lambda *, body: len(body.outputs),
    reference=lambda *operands, body, **_: said([np.asarray(one) for one in body.run(operands)]),
    cases=[
        case(operands=[(3,), (3,)], body=body(_sine, (3,), (3,))),
        misuse("operand 1 of the body must be", operands=[(3,), (2,)],
               body=body(_sine, (3,), (3,))),
    ],
)  # fmt: skip
def nondifferentiable_call(
    training: Training, *operands: Operands, body: BodyAttribute
) -> tuple[Array, ...]:
    """Returns the outputs of ``body``, without a derivative.

    It stands for a ``call`` whose rule refuses to differentiate, and in a file for one whose rule
    only JAX can run, such as a rule that calls its own function without end.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> (y,) = so.nondifferentiable_call(x, body=so.body(lambda x: x * x, ((), "float32")))
        >>> float(y.eval(x=3.0))
        9.0
    """
    exact = [settled(*pair) for pair in zip(operands, body.inputs, strict=True)]
    return tuple(body.run(exact, training=training))


@nondifferentiable_call.types
def _nondifferentiable_types(operands: tuple[VarType, ...], *, body: Body) -> tuple[VarType, ...]:
    return call_types(operands, body=body, jvp=None, vjp=None, value=None)


nondifferentiable_call.kind(call_kinds)
nondifferentiable_call.no_gradient(
    "its rule refuses to differentiate, closes over a traced value (pass that as an argument), or "
    "could not be saved"
)
