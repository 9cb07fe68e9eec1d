"""Graphs while a derivative of them is taken, and afterwards.

The derivative rule of a call may compute values of its own, as ``jax.custom_jvp`` rules do. JAX then
reads those values instead of the call's, and differentiates them from the second order on: the rule
is the derivative of the first order alone. A call with such a rule declares a ``derivation``: while
a derivative is taken, it returns the values of the rule and has its derivative, and afterwards it
returns these values as any other function of the operands.

A derivative is taken of the graph that ``entering_derivative`` returns, and its result is what
``leaving_derivative`` returns. In between, gradients of loops read the values of the rule from the
loop that is run again, whatever bodies these gradients need.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from registry.operator.bodies import Body, bodies_of
from registry.operator.operator import Operator
from registry.var import Attributes
from symop.autodiff.ignoring import moving_carries
from symop.graph.emission import intern_call
from symop.graph.nodes import Node, by_age, copied_origin, reaching, topological
from symop.graph.rewriting import Images


def entering_derivative(ys: Sequence[Node], xs: Iterable[Node]) -> Images:
    """Returns the images of ``ys`` in the graph of which a derivative by ``xs`` is taken."""
    order = topological(ys)
    if not any(map(derives, order)):
        return Images()
    flowing = [one for one in order if any(type.differentiable for type in one.types or ())]
    active = reaching(flowing, [one for one in xs if one.type.differentiable])
    moving = [one for one in order if one in active and derives(one)]
    return _changed(order, {one: _entered(one, active) for one in moving})


def leaving_derivative(results: Sequence[Node]) -> list[Node]:
    """Returns ``results`` after the derivative has been taken."""
    order = topological(results)
    image = _changed(order, {one: _left(one) for one in order if derives(one)})
    return [image.value(one) for one in results]


def derives(node: Node) -> bool:
    """Whether a derivative of ``node`` does not read what ``node`` computes, or a body inside."""
    if not isinstance(node.op, Operator):
        return False
    inside = any(one.derives for one in bodies_of(node.attributes))
    own = (_declared(node.op, node.attributes, taken) for taken in (False, True))
    return inside or any(one is not None for one in own)


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


def _changed(order: Sequence[Node], changes: Mapping[Node, Attributes]) -> Images:
    """Returns the images of the nodes in ``order`` where some calls have other attributes."""
    image = Images()
    changes = {node: new for node, new in changes.items() if new != node.attributes}
    if not changes:
        return image
    for node in by_age(order):
        if node not in changes:
            image.rebuild(node)
            continue
        assert isinstance(node.op, Operator)
        with copied_origin(node.origin):
            inputs = image.inputs(node)
            image[node] = intern_call(node.op, inputs, changes[node], node.types, node.name)
    return image
