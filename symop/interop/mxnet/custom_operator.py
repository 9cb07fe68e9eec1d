"""Registration of operators written in Python by users, and ``Custom``, which calls them.

Example:
    >>> import symop.interop.mxnet as mx
    >>> class Square(CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * in_data[0])
    ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
    ...         self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])
    >>> @register("doc_square")
    ... class SquareProp(CustomOpProp):
    ...     def create_operator(self, ctx, shapes, dtypes):
    ...         return Square()
    >>> x = mx.nd.array([3])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.Custom(x, op_type="doc_square")
    >>> y.backward()
    >>> y.asscalar(), x.grad.asscalar()
    (np.float32(9.0), np.float32(6.0))
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

import symop as so
from registry.types import is_inexact
from registry.values import SelectedRows
from symop.interop.mxnet import call_types
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.custom_kernels import (
    FORWARD,
    NO_DERIVATIVE,
    UPDATE,
    context_for,
    declare,
    instances,
    run_backward,
    run_forward,
)
from symop.interop.mxnet.custom_props import (
    Arguments,
    CustomOp,
    CustomOpProp,
    Form,
    Prop,
    enter,
    form_of,
    version_of,
)
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import TABLE, StateName, operator
from symop.interop.mxnet.ops.values import made
from symop.interop.mxnet.partial_dtypes import Dtypes
from symop.interop.mxnet.partial_shapes import Shapes, is_known
from symop.interop.mxnet.partial_shapes import enter as enter_shape

__all__ = ["CustomOp", "CustomOpProp", "get_all_registered_operators", "register"]
_MOST = 64


def register(reg_name: str) -> Callable[[Prop], Prop]:
    """A decorator that registers a class as the operator ``reg_name``, replacing an earlier one.

    Raises:
        MXNetError: it is not a subclass of ``CustomOpProp``, or the name is not a str.
    """
    if not isinstance(reg_name, str) or not reg_name:
        raise MXNetError(f"register: the name must be a str, got {reg_name!r}")

    def entered(prop_cls: Prop) -> Prop:
        if not (isinstance(prop_cls, type) and issubclass(prop_cls, CustomOpProp)):
            raise MXNetError(
                f"register: {reg_name!r} must be a subclass of CustomOpProp, got {prop_cls!r}"
            )
        declare()
        enter(reg_name, prop_cls)
        call_types.forget_types()  # output types of the replaced class
        return prop_cls

    return entered


def get_all_registered_operators() -> list[str]:
    """Names of all available MXNet operators."""
    return sorted(TABLE)


# Eager calls -------------------------------------------------------------------------------------


class _Call(so.autograd.Function):
    """An eager call: inputs get gradients; states are held separately."""

    def __init__(self, form: Form, states: Sequence[so.NDArray]) -> None:
        super().__init__()
        self.form, self.is_train = form, so.autograd.is_training()
        self.states = [one.detach() for one in states]  # written in place
        self.wrt: tuple[int, ...] = ()

    def run(self, inputs: Sequence[so.NDArray]) -> list[so.NDArray]:
        """Outputs and new states."""
        self.wrt = tuple(
            i for i, one in enumerate(inputs) if one.source is not None and is_inexact(one.dtype)
        )
        return [*self(*inputs), *[one.detach() for one in self.states]]

    def forward(self, *inputs: so.NDArray) -> tuple[so.NDArray, ...]:
        given = [*inputs, *self.states]
        shapes, dtypes = [tuple(one.shape) for one in given], [one.dtype for one in given]
        ctx = context_for([NDArray(one) for one in given])
        self.op = self.form.create(ctx, shapes, dtypes)
        types = self.form.types(shapes, dtypes)
        found = run_forward(self.form, self.op, self.is_train, given, types)
        outs, self.states = tuple(found[: len(types.outputs)]), found[len(types.outputs) :]
        self.save_for_backward(*inputs, *outs)
        return outs

    def backward(self, *cotangents: so.NDArray) -> tuple[so.NDArray | None, ...]:
        heads = [cotangents[i] for i in self.form.heads]
        found = dict(zip(self.wrt, _Slope(self)(*heads, *self.saved_tensors), strict=True))
        return tuple(found.get(i) for i in range(len(self.form.arguments)))


class _Slope(so.autograd.Function):
    """The gradient of an eager call, which is not differentiable."""

    def __init__(self, of: _Call) -> None:
        super().__init__()
        self.of = of

    def forward(self, *arrays: so.NDArray) -> tuple[so.NDArray, ...]:
        of, count = self.of, len(self.of.form.heads)
        given = [*arrays[count:], *[one.detach() for one in of.states]]
        return tuple(run_backward(of.form, of.op, arrays[:count], given, of.wrt))

    def backward(self, *cotangents: so.NDArray) -> Any:
        raise MXNetError(
            f"{self.of.form.op_type}: a second derivative is asked for, but {NO_DERIVATIVE}"
        )


def _is_here(one: Any) -> bool:
    """Whether the value of an array is known."""
    if not isinstance(one, so.NDArray):
        return False
    if isinstance(one.value, SelectedRows):
        raise MXNetError("Custom: inputs must be dense, got one that is row_sparse")
    return not isinstance(one.value, jax.core.Tracer)


# In graphs ---------------------------------------------------------------------------------------


def _in_graph(form: Form, inputs: Sequence[Any], arguments: Arguments) -> list[Any]:
    """The outputs of a call on values that are not known yet."""
    how = {
        "op_type": form.op_type,
        "arguments": arguments,
        "version": version_of(form.op_type),
        "instance": next(instances),
    }
    count = len(form.outputs)
    if not inputs:
        found = made(FORWARD, **how)
        return list(found) if count > 1 else [found]
    found = list(FORWARD(*inputs, **how))
    outs, new = found[:count], found[count:]
    for state, value in zip(inputs[len(form.arguments) :], new, strict=True):
        updated = [UPDATE(one, state, value) for one in outs]
        outs = [one[0] if isinstance(one, tuple) else one for one in updated]
    return outs


# Custom ------------------------------------------------------------------------------------------


def _sorted(arguments: Mapping[str, str]) -> Arguments:
    return tuple(sorted(arguments.items()))


def _require_registered(op_type: str, arguments: Mapping[str, str]) -> None:
    form_of(op_type, _sorted(arguments))


def _inputs(op_type: str, arguments: Mapping[str, str], count: int) -> list[str]:
    """Names of inputs and states; numbered names until the operator is registered."""
    if version_of(op_type) is None:
        return [f"arg{i}" for i in range(count)]
    form = form_of(op_type, _sorted(arguments))
    return [*form.arguments, *map(StateName, form.states)]


def _outputs(op_type: str, arguments: Mapping[str, str]) -> Sequence[str]:
    """Names of the outputs; for an unregistered operator, the maximal number of them."""
    if version_of(op_type) is None:
        return ["output", *[f"output{i}" for i in range(1, _MOST)]]
    return form_of(op_type, _sorted(arguments)).outputs


def _visible(op_type: str, arguments: Mapping[str, str]) -> int:
    return 1 if version_of(op_type) is None else len(_outputs(op_type, arguments))


def _shapes(given: Shapes, found: Shapes, op_type: str, arguments: Mapping[str, str]) -> None:
    form = form_of(op_type, _sorted(arguments))
    _require_count(form, len(given))
    known = given[: len(form.arguments)]
    try:
        inputs, outputs, states = form.shapes([one or () for one in known])
    except MXNetError:
        if all(map(is_known, known)):
            raise
        return  # it may need shapes that are not known yet
    for shapes, told in ((given, [*inputs, *states]), (found, outputs)):
        for i, shape in enumerate(told):
            enter_shape(shapes, i, shape or None)


def _dtypes(given: Dtypes, found: Dtypes) -> None:
    del found  # infer_type determines them, once the shapes are known
    first = next((one for one in given if one is not None), None)
    given[:] = [first if one is None else one for one in given]


def _require_count(form: Form, count: int) -> None:
    names = [*form.arguments, *form.states]
    if count != len(names):
        raise MXNetError(
            f"{form.op_type}: {len(names)} inputs must be given ({', '.join(names)}), got {count}"
        )


@operator(
    "Custom",
    present=_inputs,
    outputs=_outputs,
    visible=_visible,
    shapes=_shapes,
    dtypes=_dtypes,
    check=_require_registered,
    calls_back=True,
    note="a second derivative is refused; the gradient is the user's code",
)
def custom(*data: Any, op_type: str, **arguments: str) -> Any:
    """Calls the operator registered as ``op_type``; other attributes are passed as strings."""
    form = form_of(op_type, _sorted(arguments))
    _require_count(form, len(data))
    types = form.types([tuple(one.shape) for one in data], [one.dtype for one in data])
    count = len(form.arguments)
    inputs = [
        one if one.dtype == dtype else so.cast(one, dtype=dtype)
        for one, dtype in zip(data[:count], types.inputs, strict=True)
    ]
    if data and all(map(_is_here, data)):
        return _Call(form, data[count:]).run(inputs)
    return _in_graph(form, [*inputs, *data[count:]], _sorted(arguments))
