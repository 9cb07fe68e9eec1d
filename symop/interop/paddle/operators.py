"""Definitions of Paddle's operators as compositions of the catalogue.

A definition is a function whose signature is the operator's: positional parameters are input slots
under Paddle's names, keyword-only parameters are attributes with Paddle's defaults. Slots that a
call may omit have the default None, slots of several values are annotated ``Values``. A parameter
``X_GRAD`` stands for the slot ``X@GRAD``.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, TypeAlias, TypeVar

from symop.interop.paddle.errors import PaddleError

Values: TypeAlias = list[Any]
"""The values of a slot that takes several."""
F = TypeVar("F", bound=Callable[..., Any])

GRAD = "@GRAD"
"""The suffix of slots and variables that hold gradients."""
EMPTY = "@EMPTY@"
"""The name of an output that nothing reads."""

_ENGINE = frozenset(
    {
        *("op_role", "op_role_var", "op_namescope", "op_callstack", "op_device"),
        *("use_cudnn", "use_mkldnn", "use_quantizer", "mkldnn_data_type", "is_custom_mkldnn"),
        *("workspace_size_MB", "exhaustive_search", "force_fp32_output", "with_quant_attr"),
        *("x_data_format", "y_data_format", "data_layout_", "fuse_relu_before_depthwise_conv"),
        *("Scale_x", "Scale_y", "Scale_out", "scale_x", "scale_y", "scale_out", "use_addto"),
        *("@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@",),
        *(
            "grad_inplace",
            "op_name",
            "skip_eager_deletion_vars",
            "force_cpu",
            "is_test_",
            "use_global_device",
        ),
    }
)
"""Attributes that choose Paddle's engine; they do not change values."""


@dataclass(frozen=True, eq=False)
class Definition:
    """The meaning of one operator type.

    Attributes:
        type: Paddle's name.
        function: the composition.
        slots: for each input slot whether it takes several values.
        required: the input slots that a call must fill.
        outputs: the output slots, in the order of the function's results.
        several: output slots that hold several values.
        attributes: attributes with Paddle's defaults.
        ignored: attributes without effect here.
        needs_call: whether the function takes the call itself, for blocks and output names.
        ragged: whether the function takes and returns ``LoDTensor`` values itself; otherwise it
            gets their data, and its results have the offsets of the first input with as many rows.
        differentiable: the input slots with a gradient.
    """

    type: str
    function: Callable[..., Any]
    slots: Mapping[str, bool]
    required: frozenset[str]
    outputs: tuple[str, ...]
    several: frozenset[str]
    attributes: Mapping[str, Any]
    ignored: frozenset[str]
    needs_call: bool
    ragged: bool
    differentiable: frozenset[str]

    def values_of(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the attributes of a call, with defaults.

        Raises:
            PaddleError: an attribute is not known, so that ignoring it could change the result, or
                one without a default is missing.
        """
        values = dict(self.attributes)
        for name, value in attrs.items():
            if name in values:
                values[name] = value
            elif name not in _ENGINE and name not in self.ignored:
                raise PaddleError(
                    f"{self.type}: attributes must be among {', '.join(self.attributes) or 'none'}"
                    f", got {name!r}"
                )
        lacking = [name for name, value in values.items() if value is inspect.Parameter.empty]
        if lacking:
            raise PaddleError(f"{self.type}: the attribute {lacking[0]} must be given, got none")
        return values

    def __str__(self) -> str:
        """Returns the operator with its slots, attributes and defaults."""
        inputs = [
            f"{slot}*" if many else slot if slot in self.required else f"[{slot}]"
            for slot, many in self.slots.items()
        ]
        attributes = [
            name if value is inspect.Parameter.empty else f"{name}={_shown(value)}"
            for name, value in self.attributes.items()
        ]
        outputs = ", ".join(f"{one}*" if one in self.several else one for one in self.outputs)
        call = "; ".join(part for part in (", ".join(inputs), ", ".join(attributes)) if part)
        return f"{self.type}({call}) -> {outputs}"


def _shown(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else repr(value)


_TABLE: dict[str, Definition] = {}


def operator(
    *types: str,
    outputs: str = "Out",
    several: str = "",
    ignored: str = "",
    no_gradient: str = "",
    ragged: bool = False,
) -> Callable[[F], F]:
    """Defines operators of Paddle.

    Args:
        *types: names of the operators; by default the name of the function, without underscores
            at its end.
        outputs: output slots, separated by spaces, in the order of the results.
        several: those of the output slots that hold a list of values.
        ignored: attributes that have no effect here.
        no_gradient: input slots without a gradient.
        ragged: whether the function takes ``LoDTensor`` values itself.
    """

    def define(function: F) -> F:
        for one in types or (function.__name__.rstrip("_"),):
            _TABLE[one] = _definition(
                one,
                function,
                outputs.split(),
                several.split(),
                ignored.split(),
                no_gradient,
                ragged,
            )
        return function

    return define


def _definition(
    name: str,
    function: Callable[..., Any],
    outputs: list[str],
    several: list[str],
    ignored: list[str],
    no_gradient: str,
    ragged: bool,
) -> Definition:
    parameters = dict(inspect.signature(function).parameters)
    needs_call = parameters.pop("call", None) is not None
    inputs = {
        _slot(key): one for key, one in parameters.items() if one.kind is not one.KEYWORD_ONLY
    }
    return Definition(
        name,
        function,
        slots={key: one.annotation in (Values, Values | None) for key, one in inputs.items()},
        required=frozenset(key for key, one in inputs.items() if one.default is one.empty),
        outputs=tuple(outputs),
        several=frozenset(several),
        attributes={
            key.removesuffix("_"): one.default
            for key, one in parameters.items()
            if one.kind is one.KEYWORD_ONLY
        },
        ignored=frozenset(ignored),
        needs_call=needs_call,
        ragged=ragged,
        differentiable=frozenset(inputs) - frozenset(no_gradient.split()),
    )


def keywords_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns attributes under the names of parameters: ``lambda`` is ``lambda_`` in Python."""
    return {f"{key}_" if iskeyword(key) else key: one for key, one in attributes.items()}


def _slot(parameter: str) -> str:
    """Returns the slot that a parameter stands for: ``Out_GRAD`` is ``Out@GRAD``."""
    return parameter.removesuffix("_GRAD") + GRAD if parameter.endswith("_GRAD") else parameter


def parameter_of(slot: str) -> str:
    """Returns the parameter that stands for a slot."""
    return slot.replace(GRAD, "_GRAD")


_REFUSED: dict[str, str] = {}


def refuse(types: str, reason: str) -> None:
    """Notes why operators are not defined, and what to use; ``types`` are separated by spaces."""
    _REFUSED.update(dict.fromkeys(types.split(), reason))


def reason_without(name: str) -> str:
    """Returns why an operator is not defined, and what to use."""
    known = "symop.interop.paddle.names() lists those that are there"
    return _REFUSED.get(name, f"no operator of Paddle has this name here; {known}")


def find(name: str) -> Definition | None:
    """Returns the definition of an operator, or None."""
    return _TABLE.get(name)


def names() -> list[str]:
    """Returns the names of all operators that are defined, sorted."""
    return sorted(_TABLE)
