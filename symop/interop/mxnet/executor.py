"""MXNet's Executor, over arrays that it reads and writes in place."""

import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from registry.types import is_inexact
from symop.eager.segments import has_devices
from symop.interop.mxnet.array_memory import resized
from symop.interop.mxnet.arrays import (
    NDArray,
    array_named,
    array_of,
    filled,
    hold_together,
    raising,
    zeros_of,
)
from symop.interop.mxnet.attributes import Shape
from symop.interop.mxnet.calling_back import awaited, calls_back
from symop.interop.mxnet.calls import as_shape
from symop.interop.mxnet.context import Context, current_context, existing
from symop.interop.mxnet.describing import described
from symop.interop.mxnet.errors import MXNetError, require_known
from symop.interop.mxnet.graph import Entry
from symop.interop.mxnet.index_checks import check_of
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.sparse_arrays import assign, zeros_stored
from symop.interop.mxnet.translating import translated
from symop.interop.mxnet.watching import Monitor, Values, watch_gradients, watched_values
from symop.interop.mxnet.writing import written
from symop.symbol.symbol import Symbol as Graph


def merges_calls() -> bool:
    """Whether the environment lets ``get_optimized_symbol`` make equal calls one."""
    return os.environ.get("MXNET_ELIMINATE_COMMON_EXPR") != "0"


class Executor:
    """A symbol bound to arrays.

    Attributes:
        arg_dict: arrays of the arguments by name; assign with ``array[:] = value``.
        grad_dict: arrays to which ``backward`` writes gradients, None for those not requested.
        aux_dict: arrays of the auxiliary states, which a forward pass for training updates.
            Arrays that operators such as ``sgd_mom_update`` change in place are updated by every
            forward pass.
        outputs: the results of the last ``forward``, which each pass overwrites; zeros before the
            first.
        graph: the symbol of the catalogue that it runs.
        calls_back: whether the graph calls user code, in which case passes are synchronous.
        merges_calls: whether ``get_optimized_symbol`` makes equal calls one.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> x = mx.sym.var("x")
        >>> executor = mx.sym.square(x).simple_bind(mx.cpu(), x=(2,))
        >>> executor.arg_dict["x"][:] = 3.0
        >>> executor.forward(is_train=True)[0].asnumpy().tolist()
        [9.0, 9.0]
        >>> executor.backward(mx.nd.ones((2,)))
        >>> executor.grad_dict["x"].asnumpy().tolist()
        [6.0, 6.0]
    """

    HOOKS = frozenset({"get_optimized_symbol"})
    get_optimized_symbol: Callable[[], Any]

    def __init__(
        self,
        heads: Sequence[Entry],
        arguments: Mapping[str, NDArray],
        gradients: Mapping[str, NDArray | None],
        requests: Mapping[str, str],
        states: Mapping[str, NDArray],
        ctx: Context | None = None,
    ) -> None:
        """Binds the outputs ``heads``; users call ``Symbol.bind`` or ``Symbol.simple_bind``."""
        self.arg_dict, self.aux_dict = dict(arguments), dict(states)
        self.grad_dict = dict(gradients)
        self._outputs: list[NDArray] | None = None
        self._heads, self._requests = list(heads), dict(requests)
        self.merges_calls = merges_calls()
        self._ctx = current_context() if ctx is None else ctx
        self._places = places([*arguments.values(), *states.values()], ctx)
        self.graph, self.calls_back = self._translated(heads), calls_back(heads)
        self._written = written(self.graph)
        self._check = check_of(heads, {**self.arg_dict, **self.aux_dict})
        self._moving = self._differentiable()
        self._inner = raising(self.graph.bind)(
            self._values(self.arg_dict),
            {name: self._here(self._gradient(name).value) for name in self._moving},
            {n: one if n in self._moving else "null" for n, one in self._requests.items()},
            self._values(self.aux_dict),
        )
        passes = self._inner.forward, self._gradients
        if self.calls_back:
            passes = awaited(passes[0]), awaited(passes[1])
        self._forward, self._backward = raising(passes[0]), raising(passes[1])
        self._names = [node.output_name(index) for node, index in heads]
        self._monitor: Monitor | None = None
        self._monitors_inputs = self._passed = False
        self._watched: tuple[Values, bool] | None = None

    def _here(self, value: Any) -> Any:
        """``value`` on the device that computes, where arrays are on several devices."""
        return value if self._places is None else jax.device_put(value, self._places)

    def _near(self, head: Any) -> Any:
        """A head gradient on the device that computes."""
        if self._places is not None or not has_devices() or not self.arg_dict:
            return self._here(head)
        own = next(iter(self.arg_dict.values())).value.sharding
        return head if head.sharding.device_set == own.device_set else jax.device_put(head, own)

    def _values(self, arrays: Mapping[str, NDArray]) -> dict[str, Any]:
        """The values of arrays by name, on the device that computes."""
        return {name: self._here(one.value) for name, one in arrays.items()}

    def _hold(self, arrays: Sequence[NDArray], values: Sequence[Any]) -> None:
        """Replaces the values of arrays, each on its own device."""
        if self._places is not None:
            devices = [one.context.device for one in arrays]
            values = [jax.device_put(*pair) for pair in zip(values, devices, strict=True)]
        hold_together(arrays, values)

    @functools.cached_property
    def is_scattered(self) -> bool:
        """Whether its arrays are on several devices."""
        return len(devices_of([*self.arg_dict.values(), *self.aux_dict.values()])) > 1

    def _translated(self, heads: Sequence[Entry]) -> Graph:
        every = {**self.arg_dict, **self.aux_dict}
        return translated(
            heads,
            {name: one.shape for name, one in every.items()},
            {name: one.dtype for name, one in every.items()},
        )

    def _differentiable(self) -> list[str]:
        """The arguments with a gradient that need not be zero."""
        if not any(one.type.differentiable for one in self.graph.nodes):
            return []
        return [
            name
            for name, request in self._requests.items()
            if request != "null" and is_inexact(np.dtype(self.arg_dict[name].dtype))
        ]

    def _gradient(self, name: str) -> NDArray:
        result = self.grad_dict[name]
        assert result is not None
        return result

    # Parts as lists

    @property
    def arg_arrays(self) -> list[NDArray]:
        """Arrays of the arguments, in order."""
        return list(self.arg_dict.values())

    @property
    def grad_arrays(self) -> list[NDArray | None]:
        """Arrays of the gradients, in the order of the arguments."""
        return [self.grad_dict.get(name) for name in self.arg_dict]

    @property
    def outputs(self) -> list[NDArray]:
        """See the class."""
        if self._outputs is None:
            place = existing(self._ctx)
            self._outputs = [
                zeros_of(one.type.shape, one.type.dtype, ctx=place) for one in self.graph.nodes
            ]
        return self._outputs

    def hold_outputs(self, values: Sequence[Any]) -> list[NDArray]:
        """Writes JAX arrays to the outputs, and returns these."""
        if self._outputs is None:
            self._outputs = [array_of(one) for one in values]
        else:
            hold_together(self._outputs, iter(values))
        return self._outputs

    def share_outputs(self, arrays: list[NDArray]) -> None:
        """Makes ``arrays``, of the right types, those to which ``forward`` writes."""
        self._outputs = arrays

    @property
    def aux_arrays(self) -> list[NDArray]:
        """Arrays of the auxiliary states."""
        return list(self.aux_dict.values())

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the outputs."""
        return [node.type.shape for node in self.graph.nodes]

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """The results of the last ``forward``, by name."""
        return dict(zip(self._names, self.outputs, strict=False))

    # Running

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Computes the outputs, after writing the named arrays to the arguments.

        Raises:
            MXNetError: an argument does not exist, or a shape does not fit.
            MXNetIndexError: an index of ``take(mode="raise")`` is out of bounds.
        """
        require_known("forward: names", kwargs, self.arg_dict)
        for name, one in kwargs.items():
            write_named(name, self.arg_dict[name], one)
        inner = self._inner
        inner.arg_dict.update(self._values(self.arg_dict))
        inner.aux_dict.update(self._values(self.aux_dict))
        if self._check is not None:
            self._check({**inner.arg_dict, **inner.aux_dict})
        outputs = self.hold_outputs(self._forward(is_train))
        self._passed = True
        written = list(self.aux_dict if is_train else self._written)
        self._hold(
            [self.aux_dict[name] for name in written], [inner.aux_dict[name] for name in written]
        )
        if self._monitor is not None:
            self._watch(is_train)
        return list(outputs)

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Writes the gradients of the last forward pass, in the mode of that pass.

        Without a forward pass, those of the arrays as they are.

        Args:
            out_grads: cotangents of the outputs: one, a list, or a dict by the names of outputs.
                Only loss layers, which ignore them, can do without.
            is_train: has no effect: the forward pass determines the mode.

        Raises:
            MXNetError: a cotangent is missing or does not fit.
        """
        del is_train
        wanted = self._moving
        for name in wanted:
            self._inner.grad_dict[name] = self._here(self._gradient(name).value)
        heads = [None if one is None else self._near(one) for one in self._cotangents(out_grads)]
        found = self._backward(heads)
        self._hold([self._gradient(name) for name in wanted], [found[name] for name in wanted])
        if self._monitor is not None and self._watched is not None:
            values, mode = self._watched
            completed = self._completed(heads)
            watch_gradients(self._heads, completed, values, self._monitor, is_train=mode)
        for name, request in self._requests.items():
            if name not in wanted and request.startswith("write"):
                self._gradient(name)[:] = 0

    def _cotangents(self, given: Any) -> list[Any]:
        """The given cotangents as JAX arrays, one for each output; None where there is none."""
        if isinstance(given, Mapping):
            given = [given.get(name) for name in self._names]
        listed = list(given) if isinstance(given, (list, tuple)) else [given]
        found = [
            None if one is None else array_named(f"backward: cotangent {i}", one).value
            for i, one in enumerate(listed)
        ]
        missing = len(self._names) - len(found)
        return [*found[: len(self._names)], *[None] * missing]

    def _gradients(self, heads: Sequence[Any]) -> Mapping[str, Any]:
        inner = self._inner
        if not self._passed:
            inner.forward()
        inner.repeat_with_residuals()
        if self._moving:
            inner.backward(self._completed(heads))
        return inner.grad_dict

    @property
    def is_drafted(self) -> bool:
        """Whether the first passes for training run programs that are compiled as drafts."""
        return self._inner.is_drafted

    def require_losses(self) -> None:
        """Raises if ``backward`` needs the cotangent of an output."""
        self._completed([None] * len(self._names))

    def _completed(self, heads: Sequence[Any]) -> list[Any]:
        """The cotangents of the outputs, with zeros for loss layers, which ignore them.

        Raises:
            MXNetError: another one is missing.
        """
        types = self._output_types()
        given = [
            one is not None and one.shape == shape
            for one, (shape, _) in zip(heads, types, strict=True)
        ]
        if all(given):
            return list(heads)
        completed = list(heads)
        for i, (type, read) in enumerate(zip(types, self._read_cotangents(), strict=True)):
            if heads[i] is None and read:
                raise MXNetError(
                    f"backward: out_grads must be given for {self._names[i]!r}, which is not a "
                    "loss, got none; mx.sym.make_loss makes one"
                )
            if not read:  # that of a loss layer may have any shape
                completed[i] = _zeros(type[0], np.dtype(type[1]))
        return completed

    def _output_types(self) -> list[tuple[Shape, Any]]:
        return [(node.type.shape, node.type.dtype) for node in self.graph.nodes]

    def _read_cotangents(self) -> list[bool]:
        """Whether a gradient depends on the cotangent of each output."""
        return self._inner.read_cotangents()

    # Parameters and shapes

    def copy_params_from(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Writes parameters and auxiliary states by name.

        Raises:
            MXNetError: a name is unknown, unless ``allow_extra_params``, or a shape does not fit.
        """
        for own, given in ((self.arg_dict, arg_params), (self.aux_dict, aux_params or {})):
            if not allow_extra_params:
                require_known("copy_params_from: names", given, own)
            for name, one in given.items():
                if name in own:
                    write_named(name, own[name], one)

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any
    ) -> "Executor":
        """Creates an executor for inputs of other shapes, over the same memory.

        An array that becomes smaller shares the first entries of the old one; one that becomes
        larger is new.

        Args:
            partial_shaping: whether unnamed arrays may change their shape.
            allow_up_sizing: whether an array may become larger.
            **kwargs: shapes by name.

        Raises:
            MXNetError: an array would change without permission.
        """
        require_known("reshape: names", kwargs, [*self.arg_dict, *self.aux_dict])
        kept = {name: as_shape(name, shape) for name, shape in kwargs.items()}
        shapes = self._shapes_with(kept)

        def like(name: str, old: NDArray) -> NDArray:
            new = shapes[name]
            if old.shape == new:
                return old
            if name not in kwargs and not partial_shaping:
                raise MXNetError(
                    f"reshape: {name} must keep its shape {old.shape} without partial_shaping, got "
                    f"{new}"
                )
            if math.prod(new) > math.prod(old.shape) and not allow_up_sizing:
                raise MXNetError(
                    f"reshape: {name} must not grow from {old.shape} without allow_up_sizing, got "
                    f"{new}"
                )
            return _resized(name, old, new)

        result = type(self)(
            self._heads,
            {name: like(name, one) for name, one in self.arg_dict.items()},
            {n: None if one is None else like(n, one) for n, one in self.grad_dict.items()},
            self._requests,
            {name: like(name, one) for name, one in self.aux_dict.items()},
            self._ctx,
        )
        result.copy_monitor(self)
        result._outputs = [
            _resized(name, old, shape)
            for name, old, shape in zip(
                self._names, self.outputs, result.output_shapes, strict=True
            )
        ]
        return result

    def _shapes_with(self, given: Mapping[str, Shape]) -> dict[str, Shape]:
        """The shapes of all arrays, inferred from given ones."""
        types = Inference(self._heads, given, {n: a.dtype for n, a in self.arg_dict.items()})
        return {node.name: types.type(node)[0] for node in types.variables()}

    @property
    def heads(self) -> list[Entry]:
        """The outputs, as entries of the bound graph."""
        return list(self._heads)

    def debug_str(self) -> str:
        """The graph as text, and the memory of outputs and of values kept for ``backward``."""
        kept = [node.type for node in self.graph.nodes] + self._inner.residual_types()
        total = sum(math.prod(one.shape) * np.dtype(one.dtype).itemsize for one in kept)
        return f"{described(self._heads)}Total {total >> 20} MB allocated\n"

    def set_monitor_callback(self, callback: Monitor | None, monitor_all: bool = False) -> None:
        """Sets a function called after each pass with the name and value of every node's outputs.

        After ``backward`` it is called with the gradients of every node's inputs. Random operators
        draw new numbers for it.

        Args:
            callback: the function; None removes it.
            monitor_all: whether it is called with the inputs of nodes, too.
        """
        self._monitor, self._monitors_inputs = callback, monitor_all
        self._watched = None

    def copy_monitor(self, other: "Executor") -> None:
        """Monitors passes by the function of ``other``; monitors installed there move here."""
        self.set_monitor_callback(other._monitor, other._monitors_inputs)
        moving, other.installed[:] = list(other.installed), []
        for one in moving:
            one.move(other, self)

    @functools.cached_property
    def installed(self) -> list[Any]:
        """The monitors that watch its passes."""
        return []

    def _watch(self, is_train: bool) -> None:
        assert self._monitor is not None
        held = {**self._inner.arg_dict, **self._inner.aux_dict}
        values = watched_values(
            self._heads, held, self._monitor, is_train=is_train, inputs=self._monitors_inputs
        )
        self._watched = values, is_train


@functools.lru_cache(maxsize=64)
def _zeros(shape: Shape, dtype: Any) -> jax.Array:
    """Zeros that only loss layers are given, which do not read them."""
    with jax.ensure_compile_time_eval():
        return filled(shape, 0, dtype)


def devices_of(arrays: Sequence[NDArray]) -> list[jax.Device]:
    """The devices of arrays, each once."""
    return list(dict.fromkeys(one.context.device for one in arrays))


def places(arrays: Sequence[NDArray], ctx: Context | None) -> jax.Device | None:
    """The device that computes, unless all arrays are where JAX computes by default.

    Args:
        arrays: the arguments and states.
        ctx: the device that the user named, where the outputs are.
    """
    devices = devices_of(arrays)
    if not devices:
        return None
    chosen = devices[0]
    if ctx is not None or len(devices) > 1:
        chosen = (current_context() if ctx is None else ctx).device
    return None if devices == [chosen] == jax.devices()[:1] else chosen


def _resized(name: str, old: NDArray, shape: Shape) -> NDArray:
    """``old`` in another shape: its first entries, or zeros if it is too small or sparse."""
    if old.shape == shape:
        return old
    if old.is_sparse:
        return zeros_stored(old.stype, shape, old.dtype, old.context)
    if math.prod(shape) > old.size:
        return zeros_of(shape, old.dtype, name, old.context)
    return resized(old, shape)


def write_named(name: str, own: NDArray, value: Any) -> None:
    """Writes ``value`` to ``own``, cast to its dtype and storage type, and on its device.

    Raises:
        MXNetError: ``value`` is not an array, or has another shape.
    """
    given = array_named(name, value)
    if given.shape != own.shape:
        raise MXNetError(f"{name}: the shape must be {own.shape}, got {given.shape}")
    if own.is_sparse or given.is_sparse:
        assign(own, given)
    else:
        own.hold(given.value.astype(own.dtype))
