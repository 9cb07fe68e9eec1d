"""register_op: an operator together with its hand-written gradient operator."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from registry.cases import Case, Misuse
from registry.declare.components import OperatorBase, parameters_of
from registry.declare.gradients import DefaultGradOpDescMaker, GradOpDescMaker
from registry.declare.proto import OpProtoAndCheckerMaker, ProtoInterface, slot_name
from registry.declare.registration import (
    Component,
    apart,
    assembled,
    declare_gradient,
    make_operator,
    sorted_parts,
)
from registry.desc import OpDesc
from registry.errors import DeclarationError
from registry.jax_derivatives.gradients import differentiate_kernel
from registry.naming import COTANGENT
from registry.operator.operator import Operator
from registry.operator.signature import Array
from registry.table import register


def register_op(  # noqa: PLR0913  # the parts of two operators
    name: str,
    op: type[OperatorBase],
    proto: type[OpProtoAndCheckerMaker] | None,
    grad_name: str,
    grad_op: type[OperatorBase],
    *components: Component,
    grad_components: Sequence[Component] = (),
    cases: Sequence[Case | Misuse] = (),
    grad_cases: Sequence[Case | Misuse] = (),
    reference: Callable[..., Any] | None = None,
    aliases: Sequence[str] = (),
    native: bool | None = None,
    opaque: bool = False,
    replace: bool = False,
) -> Operator:
    """Registers an operator and its hand-written gradient operator, and generates the maker.

    The kernel of ``grad_op`` names its residuals: inputs and outputs of the forward operator, and
    ``d_Out`` for the gradient of ``Out``. It returns the gradients of all inputs, or of those that
    its ``outputs`` list (``outputs = ("X@GRAD",)``). It receives the attributes of the forward
    operator. If ``grad_components`` contain no gradient maker for it, JAX differentiates its
    kernel.

    Raises:
        RegistrationError: a name is taken, or two components are of one kind; then nothing is
            registered.
        DeclarationError: the components are inconsistent.

    Example:
        >>> from registry import OperatorBase, OpProtoAndCheckerMaker, register_op
        >>> class Cube(OperatorBase):
        ...     def kernel(self, X):
        ...         return X * X * X
        >>> class CubeProto(OpProtoAndCheckerMaker):
        ...     def make(self):
        ...         self.add_input("X", "any array")
        ...         self.add_output("Out", "its cube")
        >>> class CubeGrad(OperatorBase):
        ...     def kernel(self, X, d_Out):
        ...         return 3 * X * X * d_Out
        >>> cube = register_op("doc_cubed", Cube, CubeProto, "doc_cubed_grad", CubeGrad)
        >>> import jax
        >>> float(jax.grad(jax.grad(cube))(2.0))
        12.0
    """
    options = {
        "cases": cases,
        "reference": reference,
        "aliases": aliases,
        "native": native,
        "opaque": opaque,
    }
    parts = [one for one in (op, proto, *components) if one is not None]
    forward = make_operator(name, parts, options)
    backward = _grad_operator(forward, grad_name, [grad_op, *grad_components], grad_cases)
    declare_gradient(forward, _generated_maker(forward, backward), known=[backward])
    return register(forward, backward, replace=replace)


def _grad_operator(
    forward: Operator,
    name: str,
    components: Sequence[Component],
    cases: Sequence[Case | Misuse],
) -> Operator:
    parts = sorted_parts(name, components)
    if OpProtoAndCheckerMaker in parts:
        return make_operator(name, components, {"cases": cases})
    interface = _grad_interface(forward, name, parts[OperatorBase])
    operator = assembled(name, parts, interface, {"cases": cases})
    if GradOpDescMaker not in parts:
        cotangents = [s.name for s in operator.slots if s.name.startswith(COTANGENT)]
        differentiate_kernel(operator, cotangents)
    return operator


def _grad_interface(forward: Operator, name: str, grad_op: type[OperatorBase]) -> ProtoInterface:
    """Returns the kernel's slots, the inputs' gradients as outputs, and the forward attributes."""
    own = "outputs" in vars(grad_op)
    listed = [grad_op.outputs] if isinstance(grad_op.outputs, str) else grad_op.outputs
    wanted = [slot_name(name, one) for one in listed] if own else None
    gradients = {COTANGENT + slot.name: slot for slot in forward.slots if not slot.implicit}
    unknown = [one for one in wanted or () if one not in gradients]
    if unknown:
        raise DeclarationError(
            f"{name}: the outputs must be gradients of inputs of {forward.name}, got {unknown}"
        )
    chosen = list(gradients) if wanted is None else wanted
    named = {one.name for one in apart(parameters_of(grad_op.kernel)).slots}
    several = [one for one in chosen if gradients[one].variadic]
    named |= {gradients[one].name for one in several}  # they determine the number of gradients
    slots = [one for one in _possible_slots(forward) if one.name in named]
    variadic = [one.name for one in slots if one.kind is one.VAR_POSITIONAL]
    if len(variadic) > 1:
        raise DeclarationError(
            f"{name}: at most one slot must hold several variables, got {' and '.join(variadic)}; "
            f"give {forward.name} a gradient maker that returns OpDescs"
        )
    slots.sort(key=lambda one: one.kind is one.VAR_POSITIONAL)
    chosen.sort(key=lambda one: gradients[one].variadic)
    keywords = apart(inspect.signature(forward.kernel).parameters.values()).attributes
    comment = f"The gradient of ``{forward.name}``."
    count = _counting(gradients[several[0]].name) if several else None
    outputs = [f"*{one}" if gradients[one].variadic else one for one in chosen]
    return ProtoInterface([*slots, *keywords], outputs, [], comment, {}, [], count)


def _possible_slots(forward: Operator) -> list[inspect.Parameter]:
    """Returns all slots that a gradient operator can name."""
    fixed, several = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
    slots = list(apart(inspect.signature(forward.kernel).parameters.values()).slots)
    for prefix in ("", COTANGENT):
        for output in forward.outputs:
            many = forward.variadic_output and output == forward.outputs[-1]
            kind = several if many else fixed
            slots.append(inspect.Parameter(prefix + output, kind, annotation=Array))
    return slots


def _counting(slot: str) -> Callable[..., int]:
    def count(*values: Any) -> int:
        return len(values[0])

    count.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(slot, inspect.Parameter.POSITIONAL_ONLY)]
    )
    return count


def _generated_maker(forward: Operator, backward: Operator) -> type[GradOpDescMaker]:
    """Returns a maker that passes to the gradient operator the variables that it has slots for."""

    class GeneratedGradMaker(DefaultGradOpDescMaker):
        def grad_op_type(self) -> str:
            return backward.name

        def apply(self) -> OpDesc:
            every = super().apply()
            inputs = {s: n for s, n in every.inputs.items() if _slot(s) in backward.slot_index}
            outputs = {s: n for s, n in every.outputs.items() if _slot(s) in backward.outputs}
            attrs = {k: v for k, v in every.attrs.items() if k in backward.attribute_index}
            return OpDesc(every.type, inputs, outputs, attrs)

    GeneratedGradMaker.__name__ = f"{forward.name}_grad_maker"
    return GeneratedGradMaker


def _slot(text: str) -> str:
    return slot_name("gradient", text)
