"""What layers have in common: names, calls, parameters, biases and activations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from symop.interop.paddle import unique_name
from symop.interop.paddle.guards import default_main_program
from symop.interop.paddle.programs import Block, Slots, Variable
from symop.interop.paddle.static.initializer import Constant, Initializer, Xavier
from symop.interop.paddle.static.parameters import ParamAttr, declare

F = TypeVar("F", bound=Callable[..., Any])


class Layer:
    """One use of a layer.

    Attributes:
        name: its name: ``fc_0`` for the first use of ``fc``, unless the user gives one.
    """

    def __init__(self, kind: str, name: str | None = None) -> None:
        """Starts a layer of a kind."""
        self.name = name or unique_name.generate(kind)

    @property
    def block(self) -> Block:
        """The block that calls are appended to."""
        return default_main_program().current_block()

    def calls(
        self,
        type: str,
        inputs: Slots,
        outputs: str = "Out",
        attrs: Mapping[str, Any] | None = None,
        *,
        stop_gradient: bool = False,
    ) -> list[Variable]:
        """Appends a call and returns its outputs.

        Args:
            type: the operator.
            inputs: variables by slot.
            outputs: output slots, separated by spaces, in the order of their names' numbers.
            attrs: attributes.
            stop_gradient: whether no gradient flows through the outputs.
        """
        names = {slot: unique_name.generate(f"{self.name}.tmp") for slot in outputs.split()}
        self.block.append_op(type, inputs, {slot: [one] for slot, one in names.items()}, attrs)
        found = [self.block.var(one) for one in names.values()]
        for one in found:
            one.stop_gradient = stop_gradient
        return found

    def call(
        self,
        type: str,
        inputs: Slots,
        outputs: str = "Out",
        attrs: Mapping[str, Any] | None = None,
        *,
        stop_gradient: bool = False,
    ) -> Variable:
        """Appends a call and returns its first output; see ``calls``."""
        return self.calls(type, inputs, outputs, attrs, stop_gradient=stop_gradient)[0]

    def several(
        self, type: str, inputs: Slots, count: int, output: str, attrs: Mapping[str, Any]
    ) -> list[Variable]:
        """Appends a call with an output slot of ``count`` variables and returns these."""
        names = [unique_name.generate(f"{self.name}.tmp") for _ in range(count)]
        self.block.append_op(type, inputs, {output: names}, attrs)
        return [self.block.var(one) for one in names]

    # Parameters --------------------------------------------------------------------------------

    def weight(
        self, attr: Any, shape: Sequence[int], dtype: Any, default: Initializer | None = None
    ) -> Variable:
        """Declares a weight and returns it."""
        known = ParamAttr.of(attr) or ParamAttr()
        return self._parameter(known, "w", shape, dtype, default or Xavier())

    def bias(self, attr: Any, shape: Sequence[int], dtype: Any) -> Variable | None:
        """Declares a bias and returns it; None if ``attr`` is False."""
        known = ParamAttr.of(attr)
        return None if known is None else self._parameter(known, "b", shape, dtype, Constant(0.0))

    def _parameter(
        self, attr: ParamAttr, suffix: str, shape: Sequence[int], dtype: Any, default: Initializer
    ) -> Variable:
        name = attr.name or unique_name.generate(f"{self.name}.{suffix}")
        return declare(attr, name, shape, dtype, default)

    # Endings -----------------------------------------------------------------------------------

    def biased(self, x: Variable, attr: Any, axis: int = 1, width: int | None = None) -> Variable:
        """Adds a bias.

        Args:
            x: the values.
            attr: attributes of the bias, False for none.
            axis: the first axis that the bias has.
            width: its length, if it has this axis alone.
        """
        shape = list(x.shape[axis:]) if width is None else [width]
        bias = self.bias(attr, shape, x.dtype)
        if bias is None:
            return x
        return self.call("elementwise_add", {"X": x, "Y": bias}, attrs={"axis": axis})

    def activated(self, x: Variable, act: str | None) -> Variable:
        """Applies an activation by its name."""
        return x if act is None else self.call(act, {"X": x})


def named(function: F, name: str, doc: str) -> F:
    """Returns one of several functions that differ in their names and what they append alone."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def unary(kind: str, x: Variable, name: str | None = None, **attrs: Any) -> Variable:
    """Returns the output ``Out`` of an operator of ``X``."""
    return Layer(kind, name).call(kind, {"X": x}, attrs=attrs)
