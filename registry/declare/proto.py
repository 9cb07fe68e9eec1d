"""OpProtoAndCheckerMaker: declares slots, outputs and checked attributes one by one."""

import abc
import dataclasses
import inspect
import keyword
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from registry.errors import DeclarationError
from registry.naming import COTANGENT, GRAD
from registry.operator.attributes import REQUIRED, Check, Comment, converter
from registry.operator.signature import Array, Optional

Count = str | Callable[..., int]


def slot_name(owner: str, text: str) -> str:
    """Returns the slot name for ``text`` in a declaration: ``Out@GRAD`` is ``d_Out``.

    Raises:
        DeclarationError: it is not a legal parameter name in Python.
    """
    name = COTANGENT + text.removesuffix(GRAD) if text.endswith(GRAD) else text
    if not name.isidentifier() or keyword.iskeyword(name):
        raise DeclarationError(f"{owner}: a slot's name must be a Python name, got {text!r}")
    return name


class VarBuilder:
    """A slot or output in declaration; each method returns the builder."""

    def __init__(self, owner: str, name: str, comment: str, *, is_input: bool) -> None:
        """Declares a slot, or with ``is_input`` false an output."""
        self.owner, self.comment, self.is_input = owner, comment, is_input
        self.name = slot_name(owner, name)
        self.duplicable = self.intermediate = self.dispensable = self.constant = False
        self.count: Count | None = None

    def as_duplicable(self, count: Count | None = None) -> "VarBuilder":
        """Makes it take any number of variables.

        Args:
            count: for an output, the number of its variables: the name of an int attribute, or a
                function of attributes (keyword-only) and of the duplicable input. By default, the
                number of variables of the duplicable input.
        """
        if count is not None and self.is_input:
            raise DeclarationError(
                f"{self.owner}: slot {self.name!r} must have no count=, a call fills it"
            )
        self.duplicable, self.count = True, count
        return self

    def as_intermediate(self) -> "VarBuilder":
        """Makes the output an intermediate, only for the gradient and hidden from callers."""
        if self.is_input:
            raise DeclarationError(
                f"{self.owner}: only an output can be intermediate, got slot {self.name!r}"
            )
        self.intermediate = True
        return self

    def without_gradient(self) -> "VarBuilder":
        """Declares that no gradient flows through the output, such as a random mask."""
        if self.is_input:
            raise DeclarationError(
                f"{self.owner}: only an output can be without_gradient, got slot {self.name!r}"
            )
        self.constant = True
        return self

    def as_dispensable(self) -> "VarBuilder":
        """Makes it optional: if omitted, the kernel receives None; OpDescs need not name it."""
        self.dispensable = True
        return self


class AttrBuilder:
    """An attribute in declaration; each method returns the builder."""

    def __init__(self, owner: str, name: str, type: Any, comment: str) -> None:
        """Declares an attribute of ``type``, required until it gets a default."""
        self.owner, self.name, self.type, self.comment = owner, name, type, comment
        self.default: Any = REQUIRED
        self.checks: list[Check] = []

    def set_default(self, value: Any) -> "AttrBuilder":
        """Sets the value for calls that omit the attribute."""
        if self.default is not REQUIRED:
            raise DeclarationError(
                f"{self.owner}: attribute {self.name!r} must have one default, got a second one"
            )
        self.default = value
        return self

    def in_enum(self, values: Sequence[Any]) -> "AttrBuilder":
        """Requires one of ``values``."""
        convert = converter(self.type)
        allowed = [convert(value) for value in values]
        return self._check(
            f"be one of {', '.join(map(repr, allowed))}", lambda value: value in allowed
        )

    def greater_than(self, bound: Any) -> "AttrBuilder":
        """Requires a value greater than ``bound``."""
        return self._check(f"be greater than {bound!r}", lambda value: value > bound)

    def equal_greater_than(self, bound: Any) -> "AttrBuilder":
        """Requires a value of at least ``bound``."""
        return self._check(f"be at least {bound!r}", lambda value: value >= bound)

    def add_custom_checker(self, checker: Callable[[Any], Any]) -> "AttrBuilder":
        """Requires that ``checker(value)`` neither raises nor returns false."""
        name = getattr(checker, "__name__", "the checker").strip("<>")
        return self._check(f"satisfy {name}", checker)

    def _check(self, text: str, holds: Callable[[Any], Any]) -> "AttrBuilder":
        self.checks.append(Check(text, holds))
        return self

    @property
    def parameter(self) -> inspect.Parameter:
        """The attribute as a parameter of a kernel."""
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if self.default is REQUIRED else self.default,
            annotation=Annotated[self.type, *self.checks, Comment(self.comment)],
        )


@dataclasses.dataclass(frozen=True)
class ProtoInterface:
    """The declarations of a proto maker, in the form that an operator takes.

    Attributes:
        parameters: slots, then attributes.
        outputs: names of the outputs; a star before a duplicable one.
        hidden: outputs that callers do not see.
        comment: the operator's page.
        output_comments: descriptions of the outputs.
        dispensable: the outputs that an OpDesc may omit.
        count: counts the values of the duplicable output.
        order: the slots in declared order, which is that of positional arguments.
        constant: outputs without gradients.
    """

    parameters: list[inspect.Parameter]
    outputs: list[str]
    hidden: list[str]
    comment: str
    output_comments: dict[str, str]
    dispensable: list[str]
    count: Callable[..., int] | None
    order: list[str] | None = None
    constant: Sequence[str] = ()


class OpProtoAndCheckerMaker(abc.ABC):
    """Declares the inputs, outputs and attributes of an operator; a subclass defines ``make``.

    Example:
        >>> from registry import OpProtoAndCheckerMaker
        >>> class ClipProto(OpProtoAndCheckerMaker):
        ...     def make(self):
        ...         self.add_input("X", "what to clip")
        ...         self.add_output("Out", "X within the bounds")
        ...         self.add_attr("bound", float, "largest size").set_default(1.0).greater_than(0)
        ...         self.add_comment("Clips each entry.")
        >>> ClipProto("clip").interface().outputs
        ['Out']
    """

    def __init__(self, owner: str = "proto") -> None:
        """Starts a declaration for the operator called ``owner``."""
        self.owner = owner
        self.inputs: list[VarBuilder] = []
        self.outputs: list[VarBuilder] = []
        self.attributes: list[AttrBuilder] = []
        self.comment = ""

    @abc.abstractmethod
    def make(self) -> None:
        """Declares slots, outputs, attributes and the comment."""

    def add_input(self, name: str, comment: str = "") -> VarBuilder:
        """Declares an input slot."""
        self.inputs.append(VarBuilder(self.owner, name, comment, is_input=True))
        return self.inputs[-1]

    def add_output(self, name: str, comment: str = "") -> VarBuilder:
        """Declares an output."""
        self.outputs.append(VarBuilder(self.owner, name, comment, is_input=False))
        return self.outputs[-1]

    def add_attr(self, name: str, type: Any, comment: str = "") -> AttrBuilder:
        """Declares an attribute of ``type``, written as an annotation: ``list[int]``, ``float``."""
        self.attributes.append(AttrBuilder(self.owner, name, type, comment))
        return self.attributes[-1]

    def add_comment(self, text: str) -> None:
        """Sets the description of the operator."""
        self.comment = inspect.cleandoc(text)

    def interface(self) -> ProtoInterface:
        """Returns the declarations of ``make``.

        Raises:
            DeclarationError: a name is declared twice, or several inputs or outputs are duplicable.
        """
        self.make()
        self._check_names()
        order = [one.name for one in self.inputs]
        self.inputs.sort(key=lambda one: one.duplicable)
        self.outputs.sort(key=lambda one: one.duplicable)
        several = [one for one in self.outputs if one.duplicable]
        return ProtoInterface(
            [*map(_slot, self.inputs), *(one.parameter for one in self.attributes)],
            [f"*{one.name}" if one.duplicable else one.name for one in self.outputs],
            [one.name for one in self.outputs if one.intermediate],
            self.comment,
            {one.name: one.comment for one in self.outputs},
            [one.name for one in self.outputs if one.dispensable],
            self._count(several[0]) if several else None,
            order,
            [one.name for one in self.outputs if one.constant],
        )

    def _check_names(self) -> None:
        names = [one.name for one in (*self.inputs, *self.outputs)]
        names += [one.name for one in self.attributes]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DeclarationError(
                f"{self.owner}: slots, outputs and attributes must have different names, got "
                f"{', '.join(map(repr, twice))} twice"
            )
        if not self.outputs:
            raise DeclarationError(f"{self.owner}: an output must be declared, got none")
        kinds: dict[str, list[VarBuilder]] = {"input": self.inputs, "output": self.outputs}
        for what, builders in kinds.items():
            several = [one.name for one in builders if one.duplicable]
            if len(several) > 1:
                raise DeclarationError(
                    f"{self.owner}: at most one {what} must be duplicable, got {several}"
                )

    def _count(self, output: VarBuilder) -> Callable[..., int]:
        """Returns the rule that counts the values of a duplicable output."""
        count = output.count
        if callable(count):
            return count
        if count is not None:
            return _counted_by(count, inspect.Parameter.KEYWORD_ONLY, int)
        several = [one.name for one in self.inputs if one.duplicable]
        if not several:
            raise DeclarationError(
                f"{self.owner}: as_duplicable(count=) must tell how many values output "
                f"{output.name!r} has, because no input is duplicable"
            )
        return _counted_by(several[0], inspect.Parameter.POSITIONAL_ONLY, len)


def _slot(builder: VarBuilder) -> inspect.Parameter:
    several = inspect.Parameter.VAR_POSITIONAL
    marks: list[Any] = [Comment(builder.comment)]
    if builder.dispensable:
        marks.append(Optional())
    return inspect.Parameter(
        builder.name,
        several if builder.duplicable else inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Annotated[Array, *marks],
    )


def _counted_by(name: str, kind: Any, number: Callable[[Any], int]) -> Callable[..., int]:
    """Returns a rule that receives the slot or attribute ``name`` and returns its ``number``."""

    def count(*slots: Any, **attributes: Any) -> int:
        return number(slots[0] if slots else attributes[name])

    count.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind)]
    )
    return count
