"""Operators of symop that run custom MXNet operators through host callbacks.

``mxnet_custom`` maps inputs and states to outputs and new states; ``mxnet_custom_gradient`` is its
gradient, ``mxnet_custom_state`` updates a state. The attribute ``instance`` distinguishes calls:
each has its own object of the user's class, which may keep data from ``forward`` to ``backward``
and between runs.
"""

import collections
import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
from registry.operator.operator import Grads, Operator
from registry.operator.signature import Array, Optional, State, Training
from registry.table import find, register
from registry.var import Var
from symop.eager.segments import State as Recording
from symop.eager.segments import local
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.context import Context, cpu, placed
from symop.interop.mxnet.custom_props import Arguments, CustomOp, Form, Types, called, form_of

Places = tuple[int, ...]
_like: Any = jax.ShapeDtypeStruct
Some = Annotated[jax.Array, Optional()]
instances = itertools.count()
"""A counter that numbers calls."""
NO_DERIVATIVE = "the backward of a custom operator is Python code, of which none is known"
_LIMIT = 4096
"""The maximal number of cached objects of calls."""
_live: "collections.OrderedDict[Any, CustomOp]" = collections.OrderedDict()
_lock = threading.Lock()


# User code on arrays -----------------------------------------------------------------------------


def context_for(inputs: Sequence[NDArray]) -> Context:
    """The device of an operator with these inputs."""
    return inputs[0].context if inputs else cpu()


def _zeros(shape: Sequence[int], dtype: Any, ctx: Context) -> NDArray:
    return NDArray(so.NDArray(placed(jnp.zeros(shape, dtype), ctx)))


def run_forward(
    form: Form, op: CustomOp, is_train: bool, given: Sequence[so.NDArray], types: Types
) -> list[so.NDArray]:
    """Outputs and new states for inputs and states, which are left unchanged."""
    count, arrays = len(form.arguments), [NDArray(one) for one in given]
    ctx = context_for(arrays)
    outs = [_zeros(shape, dtype, ctx) for shape, dtype in types.outputs]
    with called(form.op_type, "forward"), ctx:
        op.forward(
            is_train=is_train,
            req=["write"] * len(outs),
            in_data=arrays[:count],
            out_data=outs,
            aux=arrays[count:],
        )
    return [one.inner for one in (*outs, *arrays[count:])]


def run_backward(
    form: Form, op: CustomOp, heads: Sequence[so.NDArray], given: Sequence[so.NDArray], wrt: Places
) -> list[so.NDArray]:
    """Gradients of the inputs ``wrt``.

    Args:
        form: the form of the operator.
        op: the operator.
        heads: the required gradients of outputs.
        given: inputs, outputs, and states as left by the forward pass.
        wrt: indices of inputs.
    """
    count, end = len(form.arguments), len(form.arguments) + len(form.outputs)
    arrays = [NDArray(one) for one in given]
    ctx = context_for(arrays)
    by_output = dict(zip(form.heads, heads, strict=True))
    out_grads = [
        NDArray(by_output[i]) if i in by_output else _zeros(one.shape, one.dtype, ctx)
        for i, one in enumerate(arrays[count:end])
    ]
    grads = [_zeros(one.shape, one.dtype, ctx) for one in arrays[:count]]
    with called(form.op_type, "backward"), ctx:
        op.backward(
            req=["write" if i in wrt else "null" for i in range(count)],
            out_grad=out_grads,
            in_data=arrays[:count],
            out_data=arrays[count:end],
            in_grad=grads,
            aux=arrays[end:],
        )
    return [grads[i].inner for i in wrt]


# Callbacks ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """Isolates a callback from the recording of the thread it interrupts."""
    before, local.state = local.state, Recording()
    try:
        yield
    finally:
        local.state = before


def _called_back(
    run: Callable[[list[so.NDArray]], Sequence[so.NDArray]], like: Sequence[Any], given: Any
) -> tuple[Any, ...]:
    """The results of ``run`` on the host for ``given``; arrays as described by ``like``."""
    has_x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # set by jax at run time

    def call(*values: Any) -> list[np.ndarray]:
        with jax.enable_x64(has_x64), _apart():
            return [one.asnumpy() for one in run([so.NDArray(one) for one in values])]

    return tuple(jax.pure_callback(call, list(like), *given, vmap_method="sequential"))


def _instance(form: Form, key: Any, given: Sequence[so.NDArray]) -> CustomOp:
    """The object of a call with these inputs and states, created on first use."""
    types = tuple((tuple(one.shape), one.dtype) for one in given)
    with _lock:
        result = _live.get((key, types))
    if result is None:
        ctx = context_for([NDArray(one) for one in given])
        result = form.create(ctx, [shape for shape, _ in types], [dtype for _, dtype in types])
        with _lock:
            _live[key, types] = result
            if len(_live) > _LIMIT:
                _live.popitem(last=False)
    return result


def _forward(
    training: Training,
    *inputs: Some,
    op_type: str,
    arguments: Arguments,
    version: int,
    instance: int,
) -> tuple[Array, ...]:
    """Outputs and new states of the operator registered as ``op_type``.

    The inputs are the operator's inputs and states.
    """
    form, key = form_of(op_type, arguments, version), (op_type, arguments, version, instance)
    types = form.types([one.shape for one in inputs], [one.dtype for one in inputs])
    states = [(one.shape, one.dtype) for one in inputs[len(form.arguments) :]]

    def run(given: list[so.NDArray]) -> list[so.NDArray]:
        return run_forward(form, _instance(form, key, given), training, given, types)

    like = [_like(*one) for one in (*types.outputs, *states)]
    return _called_back(run, like, inputs)


def _backward(
    *values: Array,
    op_type: str,
    arguments: Arguments,
    version: int,
    instance: int,
    wrt: Places,
) -> tuple[Array, ...]:
    """Gradients of the inputs ``wrt`` from cotangents, inputs, outputs and new states."""
    form, key = form_of(op_type, arguments, version), (op_type, arguments, version, instance)
    count, end = len(form.arguments), len(form.arguments) + len(form.outputs)

    def run(given: list[so.NDArray]) -> list[so.NDArray]:
        heads, rest = given[: len(form.heads)], given[len(form.heads) :]
        op = _instance(form, key, [*rest[:count], *rest[end:]])
        return run_backward(form, op, heads, rest, wrt)

    inputs = values[len(form.heads) :]
    return _called_back(run, [_like(inputs[i].shape, inputs[i].dtype) for i in wrt], values)


def _update(data: Array, state: State, new: Array, training: Training) -> tuple[Array, Array]:
    """Passes ``data`` through, and sets a state to ``new`` in training."""
    return data, new if training else state


# As operators of symop ---------------------------------------------------------------------------


def _count(*, op_type: str, arguments: Arguments, version: int) -> int:
    form = form_of(op_type, arguments, version)
    return len(form.outputs) + len(form.states)


def _wrt_count(*, wrt: Places) -> int:
    return len(wrt)


FORWARD = Operator(_forward, name="mxnet_custom", outputs=("*outs",), count=_count, opaque=True)
BACKWARD = Operator(
    _backward, name="mxnet_custom_gradient", outputs=("*grads",), count=_wrt_count, opaque=True
)
UPDATE = Operator(
    _update,
    name="mxnet_custom_state",
    outputs=("out", "new_state"),
    updates={"state": "new_state"},
)
BACKWARD.no_gradient(NO_DERIVATIVE)


@FORWARD.gradient
def _gradient(
    inputs: tuple[Var, ...],
    outs: tuple[Var, ...],
    d_outs: tuple[Var, ...],
    wanted: tuple[bool, ...],
    *,
    op_type: str,
    arguments: Arguments,
    version: int,
    instance: int,
) -> Grads:
    form = form_of(op_type, arguments, version)
    asked = wanted[1:]  # after the training flag
    wrt = tuple(i for i in range(len(form.arguments)) if asked[i])
    grads: list[Any] = [None] * len(inputs)
    if wrt:
        found = BACKWARD(
            *[d_outs[i] for i in form.heads],
            *inputs[: len(form.arguments)],
            *outs,
            op_type=op_type,
            arguments=arguments,
            version=version,
            instance=instance,
            wrt=wrt,
        )
        for i, one in zip(wrt, found, strict=True):
            grads[i] = one
    return {"inputs": grads}


@UPDATE.gradient
def _update_gradient(d_out: Var) -> Grads:
    return {"data": d_out, "new": None}


def declare() -> None:
    """Registers the operators if they are not registered: graphs are saved by names."""
    if find(FORWARD.name) is None:
        register(FORWARD, BACKWARD, UPDATE)
