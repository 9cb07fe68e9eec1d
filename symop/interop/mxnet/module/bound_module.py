"""BoundModule: the parameters of a symbol, and its executor for the current input shapes."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.batches import DataDesc
from symop.interop.mxnet.errors import MXNetAssertionError, MXNetError, MXNetValueError
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.initializer import InitDesc
from symop.interop.mxnet.module.base_module import BaseModule
from symop.interop.mxnet.module.bound_arrays import BoundArrays
from symop.interop.mxnet.module.module_interface import (
    INITIALIZER,
    Descs,
    Held,
    ModuleInterface,
    Params,
    described,
)
from symop.interop.mxnet.sparse_arrays import assign
from symop.interop.mxnet.symbols import Symbol

InputType = tuple[str, tuple[int, ...], Any]
"""Name, shape and dtype of data or of a label."""
_PARAMETERS = ("_weight", "_bias", "_gamma", "_beta")


class BoundModule(BaseModule):
    """The part of a module that binds shapes and keeps parameters."""

    def __init__(
        self,
        symbol: Symbol,
        data_names: Sequence[str] | None,
        label_names: Sequence[str] | None,
        fixed_param_names: Sequence[str] | None,
        state_names: Sequence[str] | None,
        logger: Any,
        context: Any = None,
        group2ctxs: Any = None,
    ) -> None:
        """Creates an unbound module.

        Args:
            symbol: the graph.
            data_names: names of its data.
            label_names: names of its labels.
            fixed_param_names: names of parameters that are not updated.
            state_names: names of arguments kept between passes.
            logger: the logger of loops.
            context: a device or several; all arrays are on the first.
            group2ctxs: devices of groups of arrays, by the value of their attribute ``ctx_group``.

        Raises:
            MXNetError: a name is not that of an argument.
        """
        super().__init__(logger)
        self._symbol = symbol
        self._contexts = [context] if not isinstance(context, (list, tuple)) else list(context)
        self._groups = _first_groups(group2ctxs)
        self._grad_req: Any = "write"
        self.data_names, self.label_names = list(data_names or ()), list(label_names or ())
        self._state_names = list(state_names or ())
        self._fixed_param_names = list(fixed_param_names or ())
        self.output_names = symbol.list_outputs()
        arguments = symbol.list_arguments()
        _require_names("data", self.data_names, arguments)
        _require_names("state", self._state_names, arguments)
        _require_names("fixed_param", self._fixed_param_names, arguments)
        _require_names("label", self.label_names, arguments, warn=True)
        inputs = {*self.data_names, *self.label_names, *self._state_names}
        self._param_names = [name for name in arguments if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._loaded: Held = ({}, {})
        self._reset_bind()

    def _reset_bind(self) -> None:
        self.binded = False
        self._bound: BoundArrays | None = None
        self._executor: Executor | None = None
        self._data_shapes: list[DataDesc] = []
        self._label_shapes: list[DataDesc] = []
        self._types: list[list[InputType]] = [[], []]
        self._shapes: list[tuple[int, ...]] = []

    def _settle(self) -> None:
        """Runs pending computations, before arrays are inspected or changed."""

    # Shapes

    @property
    def data_shapes(self) -> list[DataDesc]:
        """Descriptions of the data."""
        self.require("data_shapes", params=False)
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """Descriptions of the labels."""
        self.require("label_shapes", params=False)
        return self._label_shapes or None

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes of the outputs."""
        shapes = self._own_executor("output_shapes").output_shapes
        return list(zip(self.output_names, shapes, strict=True))

    def bind(
        self,
        data_shapes: Descs,
        label_shapes: Descs | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: ModuleInterface | None = None,
        grad_req: Any = "write",
    ) -> None:
        """Binds the module to shapes of data and labels.

        Args:
            data_shapes: pairs of name and shape, or ``DataDesc``.
            label_shapes: descriptions of labels, in the same form.
            for_training: whether to compute gradients.
            inputs_need_grad: whether to compute gradients of the data, too.
            force_rebind: whether to discard an earlier binding.
            shared_module: a module whose parameters are shared.
            grad_req: ``"write"``, ``"add"`` or ``"null"``, for all, in order or by name.

        Raises:
            MXNetError: a shape cannot be inferred, or names differ from those of the module, or
                gradients are wanted without training; parameters remain for a later call.
        """
        if inputs_need_grad and not for_training and (force_rebind or not self.binded):
            raise MXNetAssertionError(
                "bind: inputs_need_grad=True must come with for_training=True"
            )
        if force_rebind and self.binded:
            self._loaded = self.get_params() if self.params_initialized else self._loaded
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        shared = None
        if shared_module is not None:
            if not isinstance(shared_module, BoundModule) or shared_module._bound is None:
                raise MXNetError("bind: shared_module must be a Module that is bound")
            shared = shared_module._bound
        data, labels = described(data_shapes), described(label_shapes)
        requests = self._requests(grad_req, [one.name for one in data])
        self._bound = BoundArrays(
            *(self._symbol, self._param_names, requests, shared),
            ctx=self._contexts[0],
            groups=self._groups,
        )
        self._grad_req = grad_req
        self._shape(data, labels)
        if shared_module is not None:
            self.params_initialized = shared_module.params_initialized
        elif self.params_initialized:
            self._write(*self._loaded)
        self.binded = True

    def _requests(self, given: Any, data: Sequence[str]) -> dict[str, str]:
        names = self._symbol.list_arguments()
        if not self.for_training:
            return dict.fromkeys(names, "null")
        if isinstance(given, (list, tuple)):
            return dict(zip(names, given, strict=True))
        usual = given if isinstance(given, str) else "write"
        wanted = set(self._param_names) - set(self._fixed_param_names)
        wanted |= set(data) if self.inputs_need_grad else set()
        found = {name: usual if name in wanted else "null" for name in names}
        if isinstance(given, str):
            return found
        # Names of other symbols, such as those of another cell, are ignored as in MXNet.
        return {**found, **{name: one for name, one in given.items() if name in found}}

    def _shape(self, data: list[DataDesc], labels: list[DataDesc]) -> None:
        """Switches to the executor for these shapes."""
        assert self._bound is not None
        if sorted(one.name for one in data) != sorted(self.data_names):
            raise MXNetError(f"bind: data must be called {self.data_names}, got {data}")
        names = set(self._symbol.list_arguments())
        known = [one for one in labels if one.name in names]
        before, self._executor = self._executor, self._bound.executor([*data, *known])
        if before is not None and before is not self._executor:
            self._executor.copy_monitor(before)
        self._data_shapes, self._label_shapes = data, known
        held = self._executor.arg_dict
        self._types = [
            [(one.name, held[one.name].shape, held[one.name].stored.dtype) for one in part]
            for part in (data, known)
        ]
        self._shapes = [shape for _, shape, _ in self._types[0]]

    def reshape(self, data_shapes: Descs, label_shapes: Descs | None = None) -> None:
        """Switches to other shapes of data and labels."""
        self.require("reshape", params=False)
        self._settle()
        self._shape(described(data_shapes), described(label_shapes))

    def _own_executor(self, what: str) -> Executor:
        self.require(what, params=False)
        assert self._executor is not None
        return self._executor

    @property
    def _batch_size(self) -> int:
        found = [(DataDesc.get_batch_axis(one.layout), one) for one in self._data_shapes]
        return next((one.shape[axis] for axis, one in found if axis >= 0), 1)

    # Parameters

    def init_params(
        self,
        initializer: Any = INITIALIZER,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initializes the parameters, unless they are initialized.

        Args:
            initializer: initializes parameters that are not given.
            arg_params: parameters by name; if None, ``initializer`` is used for all.
            aux_params: auxiliary states by name, in the same way.
            allow_missing: whether missing parameters are left to ``initializer``.
            force_init: whether to initialize again.
            allow_extra: has no effect: unknown names are ignored.

        Raises:
            MXNetError: it is not bound, or a parameter is missing or of another shape.
        """
        self.require("init_params", params=False)
        if self.params_initialized and not force_init:
            if arg_params or aux_params:
                warnings.warn("init_params: parameters stay, without force_init", stacklevel=2)
            return
        self._settle()
        executor, attributes = self._own_executor("init_params"), self._symbol.attr_dict()
        own = {name: executor.arg_dict[name] for name in self._param_names}
        for arrays, given in ((own, arg_params), (executor.aux_dict, aux_params)):
            for name, array in sorted(arrays.items()):
                if given is not None and name in given:
                    _copy(name, given[name], array)
                elif given is not None and not allow_missing:
                    raise MXNetError(f"init_params: {name!r} must be among the parameters")
                elif initializer is not None:
                    initializer(InitDesc(name, attributes.get(name)), array)
        self.params_initialized = True

    def set_params(
        self,
        arg_params: Params,
        aux_params: Params,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Writes parameters and auxiliary states.

        Raises:
            MXNetError: a name is missing without permission, or a shape differs.
            ValueError: a name is unknown without permission; the error is an MXNetError, too.
        """
        known, given = {*self._param_names, *self._aux_names}, {**arg_params, **aux_params}
        missing = [name for name in sorted(known) if name not in given]
        if missing and not allow_missing:
            raise MXNetError(f"set_params: {missing[0]!r} must be among the parameters")
        extra = [name for name in given if name not in known]
        if extra and not allow_extra:
            raise MXNetValueError(
                f"set_params: names must be among the parameters, got {extra[0]!r}"
            )
        super().set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)

    def _write(self, arg_params: Params, aux_params: Params) -> None:
        executor = self._executor
        assert executor is not None
        for own, given in ((executor.arg_dict, arg_params), (executor.aux_dict, aux_params)):
            for name, value in given.items():
                if name in own:
                    _copy(name, value, own[name])

    def get_params(self) -> Held:
        """Copies of parameters and auxiliary states, by name."""
        if not self.params_initialized:
            raise MXNetError("get_params: init_params must come first")
        if not self.binded:
            return self._loaded
        self._settle()
        executor = self._own_executor("get_params")
        own = {name: executor.arg_dict[name] for name in self._param_names}
        return _copied(own), _copied(executor.aux_dict)

    @property
    def _arg_params(self) -> dict[str, NDArray]:
        return self.get_params()[0]

    @property
    def _aux_params(self) -> dict[str, NDArray]:
        return self.get_params()[1]

    @property
    def _total_exec_bytes(self) -> int:
        """The number of bytes of its arrays."""
        executor = self._own_executor("_total_exec_bytes")
        held = [*executor.arg_arrays, *executor.grad_arrays, *executor.aux_arrays]
        return sum(one.size * one.stored.dtype.itemsize for one in held if one is not None)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Arrays of the arguments kept between passes, each in a list of one device."""
        del merge_multi_context
        held = self._own_executor("get_states").arg_dict
        return [[held[name]] for name in self._state_names]

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Writes the arguments kept between passes: arrays, or one number for all entries."""
        self._settle()
        for i, (own,) in enumerate(self.get_states()):
            given = value if states is None else states[i]
            if isinstance(given, (list, tuple)):  # a part for each device
                plain: Any = jnp.concatenate(arrays_of(given))
            else:
                plain = given.value if isinstance(given, NDArray) else given
            own.hold(jnp.broadcast_to(jnp.asarray(plain, own.dtype), own.shape))


def _first_groups(given: Any) -> dict[str, Any] | None:
    """The devices of groups on the first of several contexts."""
    if isinstance(given, (list, tuple)):
        given = given[0] if given else None
    if given is None:
        return None
    return {n: one[0] if isinstance(one, (list, tuple)) else one for n, one in given.items()}


def _require_names(
    what: str, names: Sequence[str], arguments: Sequence[str], *, warn: bool = False
) -> None:
    missing = [name for name in names if name not in arguments]
    if not missing:
        return
    likely = [name for name in arguments if not name.endswith(_PARAMETERS)]
    text = f"{what}_names: must be among {', '.join(likely)}, got {missing[0]!r}"
    if not warn:
        raise MXNetError(f"Module: {text}")
    warnings.warn(f"Module: {text}", stacklevel=3)


def arrays_of(arrays: Sequence[Any]) -> list[Any]:
    """The arrays as JAX arrays; sparse arrays as they are."""
    return [_value_of(one) for one in arrays]


def _value_of(one: Any) -> Any:
    if not isinstance(one, NDArray):
        return jnp.asarray(one)
    return one if one.is_sparse else one.inner.value


def fitting(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """``value``, a JAX array or a sparse one, cast to ``dtype``.

    Raises:
        MXNetError: its shape differs.
    """
    if value.shape != shape:
        raise MXNetError(f"{name}: the shape must be {shape}, got {value.shape}")
    return value if value.dtype == dtype else value.astype(dtype)


def _copy(name: str, value: Any, own: NDArray) -> None:
    if value is not own:
        (array,) = arrays_of([value])
        write_into(own, fitting(name, array, own.shape, own.stored.dtype))


def write_into(own: NDArray, value: Any) -> None:
    """Writes a JAX array, or a sparse array, to ``own``, on its device."""
    if isinstance(value, NDArray):
        assign(own, value)
    else:
        own.hold(value)


def _copied(arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
    return {
        name: one.copy() if one.is_sparse else array_of(one.value) for name, one in arrays.items()
    }
