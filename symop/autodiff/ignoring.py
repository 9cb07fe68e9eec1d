"""Outputs and gradients of control-flow bodies that ignore their inputs."""

from collections.abc import Sequence

from registry.operator.bodies import Body, bodies_of
from registry.operator.operator import Operator
from symop.graph.nodes import Node


def body_loses(application: Node, moving: set[Node]) -> bool:
    """Whether a body of ``application`` loses a cotangent with respect to inputs in ``moving``."""
    operator = application.op
    assert isinstance(operator, Operator)
    operands = application.inputs[operator.n_fixed :]
    bodies = _run_on(application, len(operands))
    if not bodies:
        return False
    active = {i for i, one in enumerate(operands) if one in moving}
    carries = operator.attribute_dict(application.attributes).get("n_carry", 0)
    return any(one.loses(moving_carries(one, active, carries)) for one in bodies)


def _run_on(node: Node, count: int) -> list[Body]:
    """Returns the bodies that run on the ``count`` operands of a call.

    The derivative rule of a ``call`` takes tangents or cotangents, too, and does not run. Nor do
    the values of that rule.
    """
    operator = node.op
    assert isinstance(operator, Operator)
    named = operator.attribute_dict(node.attributes)
    bodies = bodies_of([one for name, one in named.items() if name != "value"])
    return [one for one in bodies if len(one.inputs) == count]


def adds_constants(order: Sequence[Node], dependent: set[Node]) -> bool:
    """Whether a body returns a nonzero value that ignores the varying inputs in ``dependent``.

    The inputs of an operator's bodies are those in its variadic slot.
    """
    return any(_ignores(node, dependent) for node in order)


def _ignores(value: Node, dependent: set[Node]) -> bool:
    source, operator = value.source, value.source.op
    if source not in dependent or not isinstance(operator, Operator):
        return False
    if not (value.is_selection or operator.single):
        return False  # each of its outputs is examined separately
    operands = source.inputs[operator.n_fixed :]
    moving = {i for i, one in enumerate(operands) if one in dependent}
    for body in _run_on(source, len(operands)):
        output = value.index - (len(source.types or ()) - len(body.outputs))
        carries = operator.attribute_dict(source.attributes).get("n_carry", 0)
        if output in body.apart(moving_carries(body, moving, carries)):
            return True
    return False


def moving_carries(body: Body, moving: set[int], n_carry: int) -> tuple[int, ...]:
    """Returns ``moving`` and the carries that start to move in later steps."""
    while True:
        moved = body.moved(tuple(sorted(moving)))
        more = {j for j in moved if j < n_carry} - moving
        if not more:
            return tuple(sorted(moving))
        moving = moving | more
