"""Parameters of layers: their attributes, and their declaration in both programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symop.interop.paddle import unique_name
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.guards import default_main_program, default_startup_program
from symop.interop.paddle.programs import Training, Variable, dtype_of
from symop.interop.paddle.static.initializer import Constant, Initializer, Xavier
from symop.interop.paddle.static.regularizer import Regularizer


@dataclass
class ParamAttr:
    """Attributes of a parameter.

    Attributes:
        name: its name; two layers whose parameters have the same name share it.
        initializer: gives its initial value.
        learning_rate: a factor of the optimizer's.
        regularizer: adds to its gradient, in place of the optimizer's.
        trainable: whether it is trained.
        do_model_average: accepted as in Paddle.
        need_clip: whether clipping changes its gradient.
    """

    name: str | None = None
    initializer: Initializer | None = None
    learning_rate: float = 1.0
    regularizer: Regularizer | None = None
    trainable: bool = True
    do_model_average: bool = True
    need_clip: bool = True

    @staticmethod
    def of(given: Any) -> "ParamAttr | None":
        """Returns attributes that are given as themselves, as a name, or as an initializer.

        Args:
            given: False leaves the parameter out.

        Raises:
            PaddleError: it is something else.
        """
        if given is None or given is True:
            return ParamAttr()
        if given is False:
            return None
        if isinstance(given, str):
            return ParamAttr(name=given)
        if isinstance(given, Initializer):
            return ParamAttr(initializer=given)
        if isinstance(given, Regularizer):
            return ParamAttr(regularizer=given)
        if not isinstance(given, ParamAttr):
            raise PaddleError(
                f"ParamAttr: it must be a ParamAttr, a name or an initializer, got {given!r}"
            )
        return given


def declare(
    attr: ParamAttr, name: str, shape: Sequence[int], dtype: Any, default: Initializer
) -> Variable:
    """Declares a parameter in both default programs and returns it.

    Args:
        attr: its attributes.
        name: its name, unless ``attr`` has one.
        shape: its shape.
        dtype: the dtype of its entries.
        default: its initializer, unless ``attr`` has one.

    Raises:
        PaddleError: a parameter of this name has another shape.
    """
    label = attr.name or name
    block = default_main_program().global_block()
    if block.has_var(label):
        found = block.var(label)
        if found.shape != tuple(shape):
            raise PaddleError(
                f"{label}: a parameter that is shared must have shape {list(found.shape)}, "
                f"got {list(shape)}"
            )
        return found
    rates = {"learning_rate": attr.learning_rate}
    known = Training(attr.trainable, rates, attr.regularizer, attr.need_clip)
    made = block.create_parameter(label, shape, dtype, training=known)
    initialize(made, attr.initializer or default)
    return made


def initialize(variable: Variable, initializer: Initializer) -> None:
    """Lets the startup program give a variable its initial value, unless it does so already."""
    block = default_startup_program().global_block()
    if any(variable.name in op.output_arg_names for op in block.ops):
        return
    copy = block.create_var(variable.name, variable.shape, variable.dtype, persistable=True)
    copy.desc.is_parameter = variable.desc.is_parameter
    initializer(copy, block)


def create_parameter(
    shape: Sequence[int],
    dtype: Any = "float32",
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Variable:
    """Declares a parameter and returns it.

    Args:
        shape: its shape.
        dtype: the dtype of its entries.
        name: its name.
        attr: its attributes, a ``ParamAttr``.
        is_bias: whether it starts at zero unless an initializer is given.
        default_initializer: its initializer, unless ``attr`` has one.
    """
    known = ParamAttr.of(attr) or ParamAttr()
    default = default_initializer or (Constant(0.0) if is_bias else Xavier())
    label = name or unique_name.generate("create_parameter_0.w")
    return declare(known, label, shape, dtype, default)


def create_global_var(
    shape: Sequence[int],
    value: float,
    dtype: Any = "float32",
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Variable:
    """Declares a variable that the startup program fills with a value, and returns it.

    Args:
        shape: its shape.
        value: its initial value.
        dtype: the dtype of its entries.
        persistable: whether it outlives a run.
        force_cpu: accepted as in Paddle.
        name: its name.
    """
    label = name or unique_name.generate("global_var_0.tmp")
    block = default_main_program().global_block()
    found = block.create_var(
        label, shape, dtype_of(dtype), persistable=persistable, stop_gradient=True
    )
    initialize(found, Constant(value, force_cpu))
    return found
