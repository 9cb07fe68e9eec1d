"""The page of an operator in a drawing: its signature, its docstring and its gradient."""

import inspect

from registry.errors import SymopError
from registry.operator.operator import Operator
from symop.autodiff.gradients import typed_grad
from symop.graph.emission import intern_call
from symop.graph.nodes import ARRAY, VARIABLE, Node, placeholder, select
from symop.io.text import text


def page_of(call: Node) -> dict[str, str]:
    """Returns ``signature``, ``page`` and ``gradient`` of the operator that ``call`` applies.

    The gradient is the program of the cotangents of a call of the same types.
    """
    operator = call.op
    assert isinstance(operator, Operator)
    return {
        "signature": str(operator.signature()),
        "page": inspect.cleandoc(operator.__doc__ or ""),
        "gradient": _gradient(call, operator),
    }


def _gradient(call: Node, operator: Operator) -> str:
    if call.types is None or any(one.types is None for one in call.operands):
        return "known once the shapes of its inputs are"
    try:
        return _program(call, operator)
    except SymopError as error:
        return str(error).partition("\n")[0]


def _program(call: Node, operator: Operator) -> str:
    inputs = tuple(
        placeholder(_slot(operator, i), one.type) if one is not None and _is_array(one) else one
        for i, one in enumerate(call.inputs)
    )
    again = intern_call(operator, inputs, call.attributes, call.types, None)
    chosen = [0] if operator.single else list(operator.visible)
    outputs = [again if operator.single else select(again, i) for i in chosen]
    heads = [(y, f"d_{operator.outputs[i]}") for y, i in zip(outputs, chosen, strict=True)]
    heads = [(y, name) for y, name in heads if y.type.differentiable]
    xs = [
        one for one in inputs if one is not None and one.op is VARIABLE and one.type.differentiable
    ]
    if not heads or not xs:
        return "none: it has no differentiable " + ("inputs" if heads else "outputs")
    ys = [y for y, _ in heads]
    gradients = typed_grad(ys, xs, [placeholder(name, y.type) for y, name in heads], "none")
    reached = [one for one in gradients if one is not None]
    return text(reached) if reached else "zero"


def _is_array(node: Node) -> bool:
    """Whether a node is an array, not a number, a random key or the training flag."""
    return bool(node.inputs) or node.op in (VARIABLE, ARRAY)


def _slot(operator: Operator, i: int) -> str:
    slot = operator.slot_of(i)
    return f"{slot.name}{i}" if slot.variadic else slot.name
