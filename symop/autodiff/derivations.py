"""Graphs while a derivative of them is taken, and afterwards.

The derivative rule of a call may compute values of its own, as rules of ``jax.custom_jvp`` do. JAX
then reads those values instead of the call's, and differentiates them from the second order on: the
rule is the derivative of the first order alone. A call with such a rule declares a ``derivation``:
while a derivative is taken, it returns the values of the rule and has its derivative; afterwards,
it returns these values as any other function of the operands.

A derivative is taken of the graph that ``entering_derivative`` returns, and is what
``leaving_derivative`` makes of the result. In between, the gradient of a loop reads the values of
the rule from that loop, in which they are marked.
"""

from collections.abc import Callable, Iterable, Sequence

from registry.operator.bodies import Body, bodies_of
from registry.operator.operator import Operator
from registry.var import Attributes
from symop.autodiff.ignoring import moving_carries
from symop.graph.nodes import Node, reaching, topological
from symop.graph.rewriting import Images, with_attributes


def entering_derivative(ys: Sequence[Node], xs: Iterable[Node]) -> Images:
    """Returns the images of ``ys`` in the graph of which a derivative by ``xs`` is taken."""
    order = topological(ys)
    if not any(map(derives, order)):
        return Images()
    flowing = [one for one in order if any(type.differentiable for type in one.types or ())]
    active = reaching(flowing, [one for one in xs if one.type.differentiable])
    moving = [one for one in order if one in active and derives(one)]
    return with_attributes(order, {one: _entered(one, active) for one in moving})


def leaving_derivative(results: Sequence[Node]) -> list[Node]:
    """Returns ``results`` after the derivative has been taken."""
    order = topological(results)
    image = with_attributes(order, {one: _left(one) for one in order if derives(one)})
    return [image.value(one) for one in results]


def derives(node: Node) -> bool:
    """Whether a derivative may not read what ``node`` computes, or a call in its bodies."""
    if not isinstance(node.op, Operator):
        return False
    declared = node.op.derivation_rule is not None
    return declared or any(one.derives for one in bodies_of(node.attributes))


def _declared(operator: Operator, attributes: Attributes, taken: bool) -> Attributes | None:
    """Returns the attributes that a ``derivation`` declares; None if it changes nothing."""
    if operator.derivation_rule is None:
        return None
    named = operator.attribute_dict(attributes)
    changes = operator.derivation_rule(taken=taken, **named)
    return tuple({**named, **changes}.values()) if changes else None


def _entered(node: Node, active: set[Node]) -> Attributes:
    operator = node.op
    assert isinstance(operator, Operator)
    own = _declared(operator, node.attributes, taken=False)
    if own is not None:
        return own
    operands = node.inputs[operator.n_fixed :]
    moving = {i for i, one in enumerate(operands) if one in active}
    carries = operator.attribute_dict(node.attributes).get("n_carry", 0)

    def entered(body: Body) -> Body:
        if not body.derives or len(body.inputs) != len(operands):
            return body
        return body.entering(moving_carries(body, moving, carries))

    return _mapped(entered, node.attributes)


def _left(node: Node) -> Attributes:
    assert isinstance(node.op, Operator)
    own = _declared(node.op, node.attributes, taken=True)
    return _mapped(lambda body: body.leaving(), node.attributes if own is None else own)


def _mapped(change: Callable[[Body], Body], attributes: Attributes) -> Attributes:
    return tuple(
        change(one) if isinstance(one, Body) and one.derives else one for one in attributes
    )
