"""Operator: one declaration that defines calls, inference, gradients, tests and pages."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from registry import var
from registry.cases import Case, Misuse, Workload
from registry.desc import AttrProto, BlockDesc, OpDesc, OpProto, VarProto
from registry.errors import ArgumentError, DeclarationError, SymopError
from registry.naming import COTANGENT
from registry.operator import infer
from registry.operator.binding import NewVariable
from registry.operator.call_signature import CallSignature
from registry.operator.declared import Declared, Derivative, GradOpMaker, Grads
from registry.operator.gradient_descs import recorded_gradient
from registry.operator.kind_descs import infer_kinds
from registry.operator.packages import package_of
from registry.operator.rule import Rule
from registry.operator.signature import read_signature
from registry.sites import Site
from registry.tracebacks import hide_frames
from registry.types import VarType
from registry.var import Attributes, Inputs

__all__ = ["Derivative", "GradOpMaker", "Grads", "Operator"]


_SHOWN = ("__call__", "__doc__", "__module__", "__name__", "__qualname__", "__signature__")
OUTPUT_LIMIT = 1 << 16
"""Maximum number of outputs of a call, or its number of inputs if that is larger."""


def _resolve(own: bool | None, default: bool) -> bool:
    """Returns an operator's own declaration, or else that of its package."""
    return default if own is None else own


class Operator(Declared):
    """One operator: its kernel, slots, attributes, outputs and rules.

    Call it on JAX arrays, symbols or any other ``Var``; the result is of the same class.
    """

    def __init__(  # noqa: PLR0913  # the parts of a declaration
        self,
        kernel: Callable[..., Any],
        *,
        name: str | None = None,
        outputs: Sequence[str] = ("out",),
        hidden: Sequence[str] = (),
        updates: Mapping[str, str] | None = None,
        count: Callable[..., int] | None = None,
        shape: Callable[..., Any] | None = None,
        dtype: Callable[..., Any] | None = None,
        cases: Sequence[Case | Misuse] = (),
        reference: Callable[..., Any] | None = None,
        gradient_reference: Callable[..., Any] | None = None,
        infix: str | None = None,
        aliases: Sequence[str] = (),
        leading: Sequence[str] = (),
        order: Sequence[str] | None = None,
        commutative: bool = False,
        foldable: bool = False,
        rearranges: bool = False,
        native: bool | None = None,
        compared: bool | None = None,
        transposable: bool | None = None,
        takes_numbers: bool | None = None,
        opaque: bool = False,
        costly: bool = False,
        sealed: bool = False,
        keeps_inputs: bool = False,
        rows: Literal["entrywise", "linear"] | None = None,
    ) -> None:
        """Declares the operator that ``kernel`` computes; ``op`` documents the options."""
        super().__init__(kernel, name or kernel.__name__, *read_signature(kernel), leading, order)
        self.__name__ = self.__qualname__ = self.name
        self.__doc__ = kernel.__doc__
        self.__module__ = kernel.__module__
        self.output_comments: Mapping[str, str] = {}
        self.dispensable_outputs: frozenset[str] = frozenset()
        self._set_outputs(outputs, hidden, updates)
        self.count_rule = count and Rule(self.name, count, self.slots, self.attributes)
        self.cases = [c for c in cases if isinstance(c, Case) and not isinstance(c, Workload)]
        self.workloads = [c for c in cases if isinstance(c, Workload)]
        self.misuses = [c for c in cases if isinstance(c, Misuse)]
        self.reference, self.gradient_reference = reference, gradient_reference
        self.infix, self.aliases = infix, tuple(aliases)
        self.commutative, self.foldable = commutative, foldable
        self.rearranges = rearranges
        # native: JAX may differentiate the kernel instead of running the maker.
        # compared: the tests compare the two, unless the declaration says that they differ.
        package = package_of(kernel.__module__)
        self.catalogued = package.catalogue
        self.native = _resolve(native, package.native) and not opaque
        self.transposable = _resolve(transposable, package.transposable) and not opaque
        self.takes_numbers = _resolve(takes_numbers, package.takes_numbers)
        self.compared = native is not False if compared is None else compared
        self.opaque, self.sealed, self.keeps_inputs = opaque, sealed, keeps_inputs
        self.costly = costly
        self.linear_slots: tuple[str, ...] = ()
        self.derived: dict[str, Operator] = {}
        """JAX's derivatives of the kernel, as operators."""
        self.derived_from: Operator | None = None
        self.family: Operator | None = None
        self.site: Site | None = None
        """Where it was registered, unless that is the catalogue; copies share it."""
        self._members: dict[int, Operator] = {}
        self._revealed: Operator | None = None
        self._steady: Operator | None = None
        self.inference = infer.Inference(self, shape, dtype)
        self._check_outputs()
        self._prepare()
        if rows is not None:
            self._map_rows(linear=rows == "linear")

    # Outputs -----------------------------------------------------------------------------------

    def _set_outputs(
        self, outputs: Sequence[str], hidden: Sequence[str], updates: Mapping[str, str] | None
    ) -> None:
        outputs = [outputs] if isinstance(outputs, str) else outputs
        self.outputs = tuple(one.removeprefix("*") for one in outputs)
        self.variadic_output = bool(outputs) and outputs[-1].startswith("*")
        self.updates = dict(updates or {})
        self.hidden = frozenset([*hidden, *self.updates.values()])
        if not outputs or any(one.startswith("*") for one in outputs[:-1]):
            raise DeclarationError(
                f"{self.name}: there must be an output, and the variadic one must be the last, "
                f"got {list(outputs)}"
            )

    def _check_outputs(self) -> None:
        for state, output in self.updates.items():
            if state not in self.slot_names or output not in self.outputs:
                raise DeclarationError(
                    f"{self.name}: an update must name a slot and an output, got {state}: {output}"
                )
        unknown = self.hidden - set(self.outputs)
        if unknown:
            raise DeclarationError(f"{self.name}: hidden outputs {sorted(unknown)} do not exist")
        twice = len(set(self.outputs)) < len(self.outputs) or set(self.outputs) & set(
            self.slot_names
        )
        if twice:
            raise DeclarationError(
                f"{self.name}: slots and outputs must have different names, got slots "
                f"{list(self.slot_names)} and outputs {list(self.outputs)}"
            )
        for output in self.outputs:
            if COTANGENT + output in self.slot_index:
                raise DeclarationError(
                    f"{self.name}: the output {output!r} must be called otherwise (outputs=...), "
                    f"because its cotangent would be called like the slot {COTANGENT + output!r}"
                )
        if self.variadic_output != (self.count_rule is not None):
            raise DeclarationError(
                f"{self.name}: count= must tell the number of a variadic output's values, and of "
                "no other"
            )

    def _prepare(self) -> None:
        """Precomputes the properties of outputs that every call needs."""
        self.visible = tuple(i for i, o in enumerate(self.outputs) if o not in self.hidden)
        self.single = len(self.outputs) == 1 and not self.variadic_output
        self.stateful = bool(self.updates)
        self.update_indices = {
            self.slot_index[slot]: self.outputs.index(output)
            for slot, output in self.updates.items()
        }

    def resolved(self, inputs: Inputs, attributes: Attributes) -> "Operator":
        """Returns the operator with the number of outputs of a call; itself if that is fixed.

        Raises:
            ArgumentError: a call cannot have that many outputs.
        """
        if self.count_rule is None:
            return self
        count = self.count_rule(inputs, attributes)
        # Each output is a name, a type and a node: a large count must not exhaust memory.
        if isinstance(count, int) and count > max(OUTPUT_LIMIT, len(inputs)):
            raise ArgumentError(
                f"{self.name}: the number of values of {self.outputs[-1]!r} must be at most "
                f"{OUTPUT_LIMIT}, got {count:.4g}"
            )
        return self.member(count)

    def member(self, count: int) -> "Operator":
        """Returns the member of this family whose variadic output has ``count`` values.

        Raises:
            ArgumentError: a call cannot have that many outputs.
        """
        if self.count_rule is None:
            return self
        if not isinstance(count, int) or count < 1:
            raise ArgumentError(
                f"{self.name}: the number of values of {self.outputs[-1]!r} must be positive, "
                f"got {count!r}"
            )
        if count not in self._members:
            self._members[count] = self._make_member(count)
        return self._members[count]

    def _make_member(self, count: int) -> "Operator":
        member = self._copy()
        *fixed, stem = self.outputs
        member.family, member.count_rule, member.variadic_output = self, None, False
        member.outputs = (*fixed, *(f"{stem}{i}" for i in range(count)))
        if len(member.outputs) == 1:
            kernel = self.kernel
            member.kernel = lambda *inputs, **attributes: kernel(*inputs, **attributes)[0]
        member.inference = self.inference.of(member)  # of these outputs
        member._prepare()
        return member

    @property
    def revealed(self) -> "Operator":
        """The operator with all outputs visible except the new values of states."""
        if self.hidden <= set(self.updates.values()):
            return self
        if self._revealed is None:
            revealed = self._copy()
            revealed.hidden = frozenset(self.updates.values())
            revealed._prepare()
            self._revealed = revealed
        return self._revealed

    @property
    def steady(self) -> "Operator":
        """The operator with its states as ordinary inputs and their new values as outputs."""
        if not self.stateful:
            return self
        if self._steady is None:
            self._steady = self._copy()
            self._steady.updates = {}
            self._steady._prepare()
        return self._steady

    def _copy(self) -> "Operator":
        copy = Operator.__new__(Operator)
        copy.__dict__.update(self.__dict__)
        copy.derived, copy._members, copy._revealed, copy._steady = {}, {}, None, None
        copy.inference = self.inference.of(copy)
        return copy

    def _forget_copies(self) -> None:
        self._members.clear()
        self._revealed = self._steady = None

    def sized(self, count: int) -> "Operator":
        """Returns the operator for calls with ``count`` outputs in all; itself if that is fixed.

        Raises:
            ArgumentError: a call cannot have that many outputs.
        """
        return self.member(count - len(self.outputs) + 1) if self.variadic_output else self

    # Calls -------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Applies the operator: inputs by position or slot name, attributes by keyword.

        Attributes may also follow the inputs by position, in declared order. ``name=`` names the
        node if the inputs are symbols.

        Raises:
            ArgumentError: a slot is missing, inputs are too many, or an attribute is unknown.
            AttributeTypeError, AttributeValueError: an attribute's value is not allowed.
            ShapeError, DTypeError: the inputs are incompatible.
        """
        try:
            if not kwargs and len(args) == self.direct_count and self.count_rule is None:
                for value in args:
                    if value is None:
                        break  # refused below
                else:
                    return var.emitter_of(args).emit(self, args, self.defaults, None)
            return self._called(args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs, attributes, name = self.bind(args, kwargs)
        emitter = var.emitter_of(inputs)
        if self.creates:
            self._refuse_initials(emitter, inputs)
        if self.count_rule is None:
            return emitter.emit(self, inputs, attributes, name)
        member = self.resolved(inputs, attributes)
        result = emitter.emit(member, inputs, attributes, name)
        # The caller does not know the number of outputs: a single visible one is a tuple, too.
        return (result,) if len(member.visible) == 1 else result

    def _refuse_initials(self, emitter: var.Emitter, inputs: Inputs) -> None:
        """Rejects initializers in a call that creates no variables."""
        for i, value in enumerate(inputs):
            if type(value) is NewVariable and not getattr(emitter, "creates", False):
                slot = self.slot_of(i).name
                raise ArgumentError(
                    f"{self.name}: {slot}_initial is for a call on symbols, which creates a "
                    f"variable, got arrays; pass {slot!r}"
                )

    # Semantics ---------------------------------------------------------------------------------

    def run(self, inputs: Inputs, attributes: Attributes) -> Any:
        """Runs the kernel on arrays; returns a tuple if the operator has several outputs."""
        return self.kernel(*inputs, **self.attribute_dict(attributes))

    def infer(self, types: tuple[VarType | None, ...], attributes: Attributes) -> infer.Types:
        """Returns the types of the outputs for inputs of ``types``; None means an absent input.

        Raises:
            ShapeError, DTypeError, KindError: the inputs are incompatible.
        """
        return self.inference(types, attributes)

    @property
    def promotes(self) -> bool:
        """Whether the gradient maker receives its inputs promoted as the kernel promotes them.

        JAX promotes where it differentiates the kernel. An opaque kernel is not called to find out.
        """
        told = self.inference.told or not self.opaque
        return self.derivative is Derivative.MAKER and told and self._mixes_dtypes()

    def _mixes_dtypes(self) -> bool:
        """Whether more than one input may affect the dtype of an output."""
        read = self.inference.slots_of_dtype
        return read is None or len(read) > 1 or any(self.slots[i].variadic for i in read)

    @property
    def proto(self) -> OpProto:
        """The operator's inputs, outputs and attributes, as a record."""
        return OpProto(
            self.name,
            [VarProto(s.name, s.comment, s.variadic, False, s.optional) for s in self.slots],
            [self._output_proto(i, name) for i, name in enumerate(self.outputs)],
            [
                AttrProto(a.name, a.type_text, a.comment, a.required, a.plain_default)
                for a in self.attributes
            ],
            self.comment,
        )

    @property
    def comment(self) -> str:
        """The operator's page: its docstring, dedented."""
        return inspect.cleandoc(self.__doc__ or "")

    def _output_proto(self, index: int, name: str) -> VarProto:
        last = index + 1 == len(self.outputs)
        return VarProto(
            name,
            self.output_comments.get(name, ""),
            self.variadic_output and last,
            name in self.hidden,
            name in self.dispensable_outputs,
        )

    @property
    def grad_op_maker(self) -> GradOpMaker | None:
        """The gradient as OpDescs: ``grad_op_maker(op_desc, no_grad_set=(), block=None)``.

        It lists the operators that compute ``<input>@GRAD`` from the variables of ``op_desc`` and
        from ``<output>@GRAD``. The list is empty where the gradient is zero or undefined by
        definition; ``derivative`` distinguishes the two. A maker that reads shapes needs ``block``,
        whose variables have them. None if no gradient is implemented.

        A record of another system, whose class has a method ``gradient_ops(no_grad_set)``, yields
        that system's records.

        Example:
            >>> from registry import OpDesc, get
            >>> square = OpDesc("square", {"x": ["a"]}, {"out": ["b"]})
            >>> [one.type for one in get("square").grad_op_maker(square)]
            ['full', 'multiply', 'multiply']
        """
        if self.derivative is Derivative.MISSING:
            return None
        return _of_any_record(self._desc_maker or self._recorded)

    @property
    def derives_by_kernel(self) -> bool:
        """Whether JAX's derivative of the kernel equals the gradient that the maker composes.

        If so, it can replace a composition that depends on types where those are not known.
        """
        composed = self.derivative is Derivative.MAKER and self.native
        return composed and self.training_index is None and not self.updates

    def _recorded(
        self, op_desc: OpDesc, no_grad_set: Iterable[str] = (), block: BlockDesc | None = None
    ) -> list[OpDesc]:
        return recorded_gradient(self, op_desc, frozenset(no_grad_set), block)

    def infer_var_type(self, op_desc: OpDesc, block: BlockDesc) -> None:
        """Writes the kinds of the outputs of ``op_desc`` into ``block``: InferVarType.

        ``block`` declares the inputs; outputs that it does not declare are added. Kinds are
        inferred by the ``VarTypeInferer`` that the operator was registered with, which receives
        ``block`` itself, or by its kind rule; without either, outputs are dense.

        Raises:
            ArgumentError: the OpDesc does not fit the operator, or the block lacks an input.
            KindError: the operator does not accept the kind of an input.

        Example:
            >>> from registry import BlockDesc, OpDesc, VarDesc, get
            >>> block = BlockDesc([VarDesc("a", kind="selected_rows")])
            >>> doubled = OpDesc("scale", {"x": ["a"]}, {"out": ["b"]}, {"scale": 2.0})
            >>> get("scale").infer_var_type(doubled, block)
            >>> block.var("b").kind
            'selected_rows'
        """
        infer_kinds(self, self.var_type_inferer, op_desc, block)

    def require_values(self, inputs: Inputs, attributes: Attributes) -> None:
        """Rejects inputs whose values the operator does not accept, where they are known.

        Raises:
            SymopError: the condition declared by ``check`` is false; the message begins with the
                name.
        """
        if self.value_rule is None:
            return
        try:
            self.value_rule(inputs, attributes)
        except SymopError as error:
            raise type(error)(f"{self.name}: {error}") from None

    # Display -----------------------------------------------------------------------------------

    __signature__ = CallSignature()

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_") or name in _SHOWN]

    def __repr__(self) -> str:
        stale = self.site is not None and self.site.superseded
        return f"<operator {self.signature()}{', declared again since' if stale else ''}>"


def _of_any_record(maker: GradOpMaker) -> GradOpMaker:
    """Returns a maker that leaves records of other systems to their own makers."""

    @functools.wraps(maker)
    def grad_op_maker(
        op_desc: Any, no_grad_set: Iterable[str] = (), block: Any = None
    ) -> list[Any]:
        foreign = None if isinstance(op_desc, OpDesc) else getattr(op_desc, "gradient_ops", None)
        return maker(op_desc, no_grad_set, block) if foreign is None else foreign(no_grad_set)

    return grad_op_maker
