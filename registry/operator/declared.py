"""Declared: an operator's gradients, rules and platform kernels, declared after its kernel."""

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from registry.desc import OpDesc
from registry.errors import DeclarationError
from registry.naming import TANGENT
from registry.operator import infer, platforms, row_kernels
from registry.operator.binding import Signature
from registry.operator.kind_descs import InferVarType
from registry.operator.rule import Rule
from registry.tracebacks import api_class

Grads = dict[str, Any]
"""The result of a gradient maker: by slot, the gradient, a list of them, or None for a zero."""
Function = TypeVar("Function", bound=Callable[..., Any])
GradOpMaker = Callable[..., list[OpDesc]]
"""``(op_desc, no_grad_set=(), block=None) -> [OpDesc]``."""


class Derivative(enum.Enum):
    """The status of an operator's derivative."""

    MAKER = "a gradient maker composes it"
    KERNEL = "JAX differentiates its kernel"
    ZERO = "zero by definition"
    UNDEFINED = "undefined by definition"
    MISSING = "not implemented"


@api_class
class Declared(Signature):
    """A signature and the declarations that may follow it.

    Attributes:
        outputs: names of the outputs.
        updates: maps a state's slot to the output that holds its new value.
        inference: infers the types of the outputs.
        kernel: computes the outputs on JAX arrays.
    """

    outputs: tuple[str, ...]
    updates: Mapping[str, str]
    variadic_output: bool
    inference: infer.Inference
    kernel: Callable[..., Any]
    piece_rule: Rule | None = None
    joined_rule: Callable[..., Any] | None = None

    def __init__(self, kernel: Callable[..., Any], *signature: Any) -> None:
        """Starts without further declarations."""
        super().__init__(*signature)
        self.kernel = self._default_kernel = kernel
        self.derivative = Derivative.MISSING
        self.reason = "no gradient maker is registered"
        self.gradient_rule: Rule | None = None
        self.tangent_rule: Rule | None = None
        self.simplify_rule: Rule | None = None
        self.value_rule: Rule | None = None
        self.derivation_rule: Callable[..., dict[str, Any]] | None = None
        self.parameters_rule: Rule | None = None
        self.stepwise_rule: Rule | None = None
        self.inplace: Mapping[str, str] = {}
        self._desc_maker: GradOpMaker | None = None
        self.var_type_inferer: InferVarType | None = None
        """Infers kinds from records, if such a component was declared."""
        self._slots_read: set[str] = set()
        self._overwrites = False
        self._platforms: dict[str, Callable[..., Any]] = {}
        self.row_slots: frozenset[str] = frozenset()
        """The slots that also accept row-sparse values."""
        self._rows_kernel: Callable[..., Any] | None = None

    def _forget_copies(self) -> None:
        """Drops derived copies of the operator, which are out of date."""

    def gradient(self, maker: Function, *, reads: Iterable[str] | None = None) -> Function:
        """Declares the gradient maker: from inputs, outputs and cotangents to input gradients.

        The maker returns a dict by slot and is linear in the cotangents ``d_<output>``. Instead of
        a gradient it may return a function without arguments, which is called only if the gradient
        is needed. ``reads`` lists the slots that the maker uses, if its parameters name more.

        Raises:
            DeclarationError: the operator already has a derivative, or a parameter is misnamed.
        """
        self.declare_derivative(Derivative.MAKER, Derivative.MAKER.value)
        rule = self.maker_rule(maker)
        self.gradient_rule = rule
        named = (self.slot_of(i).name for i in rule.input_indices)
        self._slots_read = set(named if reads is None else reads)
        self._refuse_overwritten(self.inplace)
        return maker

    def maker_rule(self, maker: Callable[..., Any]) -> Rule:
        """Returns ``maker`` as a rule that receives inputs, outputs and cotangents."""
        cotangents = [o for o in self.outputs if o not in self.updates.values()]
        return Rule(
            self.name,
            maker,
            self.slots,
            self.attributes,
            self.outputs,
            cotangents,
            variadic_output=self.variadic_output,
        )

    def tangents(self, maker: Function) -> Function:
        """Declares tangents for calls that have only forward mode, such as a loop without a bound.

        The maker names slots, attributes and the tangents of inputs, ``t_<slot>``, which are None
        for inputs without a tangent. It returns a tangent for each output, None for zero; or just
        None, and then the gradient maker is transposed, as without this rule.
        """
        moving = [TANGENT + name for name in self.slot_names]
        self.tangent_rule = Rule(
            self.name,
            maker,
            self.slots,
            self.attributes,
            moving,
            variadic_output=self.variadic,
        )
        self._forget_copies()
        return maker

    def derivation(self, rule: Function) -> Function:
        """Declares the attributes of a call while a derivative of it is taken, and afterwards.

        Without this rule, a derivative reads the outputs of the call itself. The rule receives the
        attributes as keywords, and ``taken``, which is false before the derivative is taken and
        true afterwards. It returns the attributes that change.
        """
        self.derivation_rule = rule
        self._forget_copies()
        return rule

    def types(self, rule: Function) -> Function:
        """Declares one rule for shapes, dtypes and kinds of the outputs together.

        The rule receives the types of inputs. A ``kind`` rule is needed too, for calls whose types
        are not known yet.
        """
        self.inference.types_rule = Rule(self.name, rule, self.slots, self.attributes)
        self._forget_copies()
        return rule

    def composed_by(self, maker: GradOpMaker) -> None:
        """Makes ``maker``, from which the gradient is derived, the result of ``grad_op_maker``."""
        self._desc_maker = maker

    def zero_gradient(self, reason: str) -> None:
        """Declares that the derivative is zero wherever it exists, and the reason."""
        self.declare_derivative(Derivative.ZERO, reason)

    def no_gradient(self, reason: str) -> None:
        """Declares that the operator has no derivative by its nature, and the reason."""
        self.declare_derivative(Derivative.UNDEFINED, reason)

    def declare_derivative(self, derivative: Derivative, reason: str) -> None:
        """Sets the status of the derivative, once.

        Raises:
            DeclarationError: it was set before.
        """
        if self.derivative is not Derivative.MISSING:
            raise DeclarationError(
                f"{self.name}: its derivative is declared twice; to change it, declare the "
                "operator again first"
            )
        self.derivative, self.reason = derivative, reason
        self._forget_copies()

    def declare_inplace(self, pairs: Mapping[str, str], *, update: bool = False) -> None:
        """Declares that an output may reuse the memory of an input: ``{slot: output}``.

        An ``update`` is a training step, whose gradient is seldom needed: that gradient may read
        what the output overwrites, and a program that does need it keeps a copy.

        Raises:
            DeclarationError: a slot or output does not exist, or the gradient needs the input.
        """
        self._overwrites = self._overwrites or update
        for slot, output in pairs.items():
            if slot not in self.slot_index or output not in self.outputs:
                raise DeclarationError(
                    f"{self.name}: in place must name a slot and an output, got {slot}: {output}"
                )
        self._refuse_overwritten(pairs)
        self.inplace = dict(pairs)
        self._forget_copies()

    def _refuse_overwritten(self, pairs: Mapping[str, str]) -> None:
        for slot, output in pairs.items():
            if slot in self._slots_read and not self._overwrites:
                raise DeclarationError(
                    f"{self.name}: {output!r} must not take the place of {slot!r}, which the "
                    "gradient needs"
                )

    def simplify(self, rule: Function) -> Function:
        """Declares a rewrite tried at each symbolic call: an equal value, or None for no change.

        For an operator with several outputs, the rule returns an equal value for each.
        """
        self.simplify_rule = Rule(self.name, rule, self.slots, self.attributes)
        self._forget_copies()
        return rule

    def piece(self, rule: Function) -> Function:
        """Declares that outputs are slices of the only input.

        The rule receives the input's shape and attributes, and returns a ``Piece``; or, if there
        are several outputs, a function from an output's index to its ``Piece``; or None if a call
        slices in another way.
        """
        self.piece_rule = Rule(self.name, rule, self.slots, self.attributes)
        self._forget_copies()
        return rule

    def joined(self, rule: Function) -> Function:
        """Declares the result for many inputs when some of them are stacked in one array.

        The rule takes a sequence of ``Part`` and the attributes as keywords.
        """
        self.joined_rule = rule
        self._forget_copies()
        return rule

    def complete(self, rule: Function) -> Function:
        """Declares how the shapes of some inputs follow from the others.

        The rule names slots and attributes (and outputs), receives their shapes or None where
        unknown, and returns the shapes that it can infer, by slot.
        """
        self.inference.complete_rule = Rule(
            self.name,
            rule,
            self.slots,
            self.attributes,
            self.outputs,
            variadic_output=self.variadic_output,
        )
        self._forget_copies()
        return rule

    def stepwise(self, rule: Function) -> Function:
        """Declares how a call computes a few positions of a sequence at a time, for generation.

        The rule names slots and attributes, and ``before``, the number of positions before the
        first one of each example, and ``cache``, a function from a name and a value of shape
        ``(batch, ..., positions, width)`` to that value of all positions so far, in a cache of
        fixed length. It returns the result of the first output, or None if the call has none that
        is computed so.
        """
        supplied = ("before", "cache")
        self.stepwise_rule = Rule(self.name, rule, self.slots, self.attributes, supplied)
        self._forget_copies()
        return rule

    def parameters(self, rule: Function) -> Function:
        """Declares the parameters that a symbolic call creates for a variadic slot.

        The rule names slots and attributes, receives shapes or None where unknown, and returns a
        ``NewParameter`` for each value of the slot.
        """
        self.parameters_rule = Rule(self.name, rule, self.slots, self.attributes)
        self._forget_copies()
        return rule

    def kind(self, rule: Function) -> Function:
        """Declares the variable kind of the outputs from the kinds of inputs and the attributes."""
        self.inference.kind_rule = Rule(self.name, rule, self.slots, self.attributes)
        self._forget_copies()
        return rule

    def on(self, platform: str) -> Callable[[Function], Function]:
        """Declares a kernel for one platform (``cpu``, ``gpu``, ``cuda``, ``rocm``, ``tpu``).

        It has the signature and the result of the declared kernel. The choice is made when a
        program is compiled for a device.

        Raises:
            DeclarationError: the platform is unknown, or already has a kernel.

        Example:
            >>> import jax.numpy as jnp
            >>> from registry import Array, op
            >>> @op
            ... def doc_twice(x: Array) -> Array:
            ...     "``2 x``."
            ...     return 2 * x
            >>> @doc_twice.on("gpu")
            ... def doc_twice_gpu(x: Array) -> Array:
            ...     return x + x
            >>> float(doc_twice(jnp.float32(3)))
            6.0
        """

        def declare(kernel: Function) -> Function:
            chosen = platforms.added(self.name, self._platforms, platform, kernel)
            self._platforms = chosen
            self._choose_kernels()
            return kernel

        return declare

    def _choose_kernels(self) -> None:
        """Selects the kernel by platform and by the kinds of a call's inputs."""
        dense = self._default_kernel
        if self._platforms:
            dense = platforms.dispatched(dense, self._platforms)
        rows = self._rows_kernel
        self.kernel = dense if rows is None else row_kernels.dispatched(dense, rows)
        self._forget_copies()

    def on_rows(self, *slots: str) -> Callable[[Function], Function]:
        """Declares the kernel for calls in which one of ``slots`` holds ``SelectedRows``.

        It has the signature and the result of the declared kernel; all other slots hold dense
        arrays. Results are dense unless ``kind`` declares otherwise; for dense inputs they are
        always dense.

        Raises:
            DeclarationError: a slot does not exist, or such a kernel exists already.

        Example:
            >>> import jax.numpy as jnp
            >>> from registry import Array, SelectedRows, op
            >>> @op
            ... def doc_total(x: Array) -> Array:
            ...     "Sum of all entries."
            ...     return jnp.sum(x)
            >>> @doc_total.on_rows("x")
            ... def doc_total_of_rows(x):
            ...     return jnp.sum(x.merged().values)
            >>> float(doc_total(SelectedRows(jnp.array([1, 1]), jnp.ones((2, 3)), height=9)))
            6.0
        """
        if not slots or not set(slots) <= set(self.slot_names) or self._rows_kernel is not None:
            raise DeclarationError(
                f"{self.name}: a kernel for rows must be declared once, for some of the slots "
                f"{', '.join(self.slot_names)}, got {', '.join(slots) or 'none'}"
            )

        def declare(kernel: Function) -> Function:
            self.row_slots, self._rows_kernel = frozenset(slots), kernel
            self._choose_kernels()
            return kernel

        return declare

    def _map_rows(self, *, linear: bool) -> None:
        """Maps row-sparse inputs entry by entry, since all other rows stay zero."""
        kernel = row_kernels.entrywise(self._default_kernel, linear=linear)
        self.on_rows(self.slot_names[0])(kernel)
        self.inference.kind_rule = row_kernels.kind_of_first

    def check(self, rule: Function) -> Function:
        """Declares a condition on the values of inputs, checked where they are known.

        They are known in eager calls, and where a number or an array enters a graph. The rule names
        slots and attributes like a shape rule, receives the inputs themselves before the
        computation, and raises an error if the condition is false; ``registry.values.known``
        returns the known entries.
        """
        self.value_rule = Rule(self.name, rule, self.slots, self.attributes)
        self._forget_copies()
        return rule
