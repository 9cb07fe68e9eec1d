"""Values and gradients that ignore what flows into them, in the bodies that operators run."""

from collections.abc import Sequence

from registry.bodies import Body, bodies_of
from registry.operator import Operator
from symop.graph import SELECT, Node


def body_loses(application: Node, moving: set[Node]) -> bool:
    """Whether a body that ``application`` runs loses a cotangent, of inputs that are ``moving``."""
    operator = application.op
    assert isinstance(operator, Operator)
    bodies = bodies_of(application.attributes)
    if not bodies:
        return False
    given = application.inputs[operator.n_fixed :]
    active = {i for i, one in enumerate(given) if one in moving}
    carries = operator.attribute_dict(application.attributes).get("n_carry", 0)
    return any(one.loses(_moving_carries(one, active, carries)) for one in bodies)


def adds_constants(order: Sequence[Node], dependent: set[Node]) -> bool:
    """Whether a body gives a value that is not zero and ignores what ``dependent`` tells to vary.

    What an operator that runs bodies takes in its variadic slot are their inputs.
    """
    return any(_ignores(node, dependent) for node in order)


def _ignores(value: Node, dependent: set[Node]) -> bool:
    is_one = value.op is not SELECT
    source = value if is_one else value.operands[0]
    operator = source.op
    if source not in dependent or not isinstance(operator, Operator):
        return False
    if is_one and not operator.single:
        return False  # its outputs are looked at one by one
    given = source.inputs[operator.n_fixed :]
    moving = {i for i, one in enumerate(given) if one in dependent}
    for body in bodies_of(source.attributes):
        place = 0 if is_one else value.attributes[0]
        output = place - (len(source.types or ()) - len(body.outputs))
        carries = operator.attribute_dict(source.attributes).get("n_carry", 0)
        if output in body.apart(_moving_carries(body, moving, carries)):
            return True
    return False


def _moving_carries(body: Body, moving: set[int], n_carry: int) -> tuple[int, ...]:
    """``moving`` with the carries that move after some steps."""
    while True:
        moved = body.moved(tuple(sorted(moving)))
        more = {j for j in moved if j < n_carry} - moving
        if not more:
            return tuple(sorted(moving))
        moving = moving | more
