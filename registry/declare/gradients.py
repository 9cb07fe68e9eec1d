"""GradOpDescMaker: gradients as functions from an OpDesc to OpDescs."""

import abc
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from registry.desc import OpDesc
from registry.errors import ArgumentError, GradientError, nearest
from registry.naming import EMPTY, excluded, grad_name, matching
from registry.operator.attributes import from_plain
from registry.operator.operator import Operator
from registry.table import find


class GradOpDescMaker(abc.ABC):
    """Creates the gradient operators of a forward operator; a subclass defines ``__call__``.

    ``__call__`` returns one or many OpDescs that compute the variables ``input_grad(slot)`` from
    the forward inputs, the forward outputs and ``output_grad(slot)``. They may use any registered
    operators, and temporaries under new names.

    Attributes:
        op_desc: the forward operator.
        no_grad_set: names of variables, or of their gradients, for which no gradient is needed.
        grad_to_var: maps each requested gradient to its variable.
        operator: the operator of the forward OpDesc, or None if it is not registered.
    """

    def __init__(self, op_desc: OpDesc, no_grad_set: Iterable[str] = ()) -> None:
        """Creates a maker for the gradient of ``op_desc``."""
        self.op_desc = op_desc
        self.no_grad_set = frozenset(no_grad_set)
        self.grad_to_var: dict[str, str] = {}
        self.operator = find(op_desc.type)

    @abc.abstractmethod
    def __call__(self) -> "list[OpDesc] | OpDesc":
        """Returns the gradient operators."""

    @property
    def forward_op_type(self) -> str:
        """The forward operator's name."""
        return self.op_desc.type

    def input_names(self) -> list[str]:
        """Returns the input slots that the forward operator fills."""
        return list(self.op_desc.inputs)

    def output_names(self) -> list[str]:
        """Returns the outputs that the forward operator names."""
        return list(self.op_desc.outputs)

    def has_input(self, slot: str) -> bool:
        """Whether the forward operator fills ``slot``."""
        return bool(self.input(slot))

    def has_output(self, slot: str) -> bool:
        """Whether the forward operator names the output ``slot``."""
        return bool(self.output(slot))

    def input(self, slot: str) -> list[str]:
        """Returns the variables in an input slot; empty if it is omitted.

        Raises:
            ArgumentError: the operator has no such slot.
        """
        declared = () if self.operator is None else self.operator.slot_names
        return _names(self.forward_op_type, "slot", self.op_desc.inputs, declared, slot)

    def output(self, slot: str) -> list[str]:
        """Returns the variables in an output; empty if it is omitted.

        Raises:
            ArgumentError: the operator has no such output.
        """
        declared = () if self.operator is None else self.operator.outputs
        return _names(self.forward_op_type, "output", self.op_desc.outputs, declared, slot)

    def input_grad(self, slot: str, drop_empty: bool = True) -> list[str]:
        """Returns the gradients of the variables in ``slot``, with names that end in ``@GRAD``.

        Those that the no-grad set excludes are omitted if ``drop_empty``, and otherwise replaced by
        ``@EMPTY@``.

        Raises:
            GradientError: ``drop_empty`` is true for a slot of several variables, whose gradients
                could then not be matched.
        """
        names = self.input(slot)
        if drop_empty and (len(names) > 1 or self._is_duplicable(slot)):
            raise GradientError(
                f"{self.forward_op_type}: input_grad({slot!r}) must be called with "
                "drop_empty=False, because the slot holds several variables"
            )
        gradients = [EMPTY if excluded(n, self.no_grad_set) else grad_name(n) for n in names]
        self._note(names, gradients)
        return [one for one in gradients if one != EMPTY] if drop_empty else gradients

    def output_grad(self, slot: str) -> list[str]:
        """Returns the cotangents of the variables of an output; ``@EMPTY@`` for an unnamed one."""
        names = self.output(slot)
        gradients = [EMPTY if name == EMPTY else grad_name(name) for name in names]
        self._note(names, gradients)
        return gradients

    def _note(self, names: Iterable[str], gradients: Iterable[str]) -> None:
        pairs = zip(gradients, names, strict=True)
        self.grad_to_var.update((grad, name) for grad, name in pairs if grad != EMPTY)

    def _is_duplicable(self, slot: str) -> bool:
        if self.operator is None or not self.operator.variadic:
            return False
        names = self.operator.slot_names
        return matching(slot, names) == names[-1]

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes that the forward OpDesc sets."""
        return {name: from_plain(value) for name, value in self.op_desc.attrs.items()}

    def attr(self, name: str) -> Any:
        """Returns an attribute of the forward operator, or its default if the OpDesc omits it.

        Raises:
            ArgumentError: the operator has no such attribute.
        """
        if name in self.op_desc.attrs:
            return from_plain(self.op_desc.attrs[name])
        declared = () if self.operator is None else self.operator.attributes
        for one in declared:
            if one.name == name and not one.required:
                return one.default
        legal = [*self.op_desc.attrs, *(one.name for one in declared)]
        raise ArgumentError(
            f"{self.forward_op_type}: the attributes must be among {', '.join(legal) or 'none'}, "
            f"got {name!r}{nearest(name, legal)}"
        )


def _names(
    owner: str,
    what: str,
    variables: Mapping[str, list[str]],
    declared: tuple[str, ...],
    slot: str,
) -> list[str]:
    """Returns the names in ``variables`` under ``slot``; empty if it is declared but omitted."""
    key = matching(slot, list(variables))
    if key is not None:
        return list(variables[key])
    if matching(slot, declared) is not None:
        return []
    legal = list(dict.fromkeys([*variables, *declared]))
    raise ArgumentError(
        f"{owner}: the {what}s must be among {', '.join(legal) or 'none'}, got {slot!r}"
        f"{nearest(slot, legal)}"
    )


class SingleGradOpDescMaker(GradOpDescMaker):
    """A gradient that is one operator; a subclass defines ``apply``."""

    @abc.abstractmethod
    def apply(self) -> OpDesc:
        """Returns the gradient operator."""

    def __call__(self) -> list[OpDesc]:
        """Returns a list of the one gradient operator."""
        return [self.apply()]


class DefaultGradOpDescMaker(SingleGradOpDescMaker):
    """A gradient by one operator, named like the forward one with the suffix ``_grad``.

    Its inputs are all inputs, all outputs and all output gradients, its outputs all input
    gradients, and its attributes are those of the forward operator.
    """

    drop_empty: ClassVar[bool] = True
    """Whether unneeded gradients are omitted from slots that hold one variable."""

    def grad_op_type(self) -> str:
        """Returns the name of the gradient operator."""
        return self.forward_op_type + "_grad"

    def apply(self) -> OpDesc:
        """Returns the gradient operator."""
        inputs = {slot: self.input(slot) for slot in self.input_names()}
        inputs |= {slot: self.output(slot) for slot in self.output_names()}
        inputs |= {grad_name(slot): self.output_grad(slot) for slot in self.output_names()}
        outputs = {grad_name(slot): self._gradients(slot) for slot in self.input_names()}
        return OpDesc(self.grad_op_type(), inputs, outputs, dict(self.op_desc.attrs))

    def _gradients(self, slot: str) -> list[str]:
        several = len(self.input(slot)) > 1 or self._is_duplicable(slot)
        return self.input_grad(slot, drop_empty=self.drop_empty and not several)


class EmptyGradOpDescMaker(GradOpDescMaker):
    """Declares that an operator has no gradient by definition.

    Attributes:
        reason: the reason, for messages.
        zero: whether the derivative is zero wherever it exists (the sign of a number), rather than
            undefined (an index).
    """

    reason: ClassVar[str] = "it has no gradient by definition"
    zero: ClassVar[bool] = False

    def __call__(self) -> list[OpDesc]:
        """Returns no operators."""
        return []


def declare_empty(operator: Operator, maker: type[EmptyGradOpDescMaker]) -> None:
    """Declares by ``maker`` that an operator has no gradient."""
    declare = operator.zero_gradient if maker.zero else operator.no_gradient
    declare(maker.reason)
