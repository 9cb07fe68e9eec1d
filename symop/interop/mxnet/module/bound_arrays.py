"""The array store of a module, and its executors by input shapes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.batches import DataDesc
from symop.interop.mxnet.binding import places_of, zeros_at
from symop.interop.mxnet.call_types import Type
from symop.interop.mxnet.context import named
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.graph import state_ids
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.storage_inference import StorageTypes
from symop.interop.mxnet.stored_executor import executor_of
from symop.interop.mxnet.symbols import Symbol

Arrays = dict[str, NDArray]


class Store(NamedTuple):
    """Arrays by name, which modules may share.

    Attributes:
        params: parameters.
        states: auxiliary states.
        gradients: requested gradients of parameters.
    """

    params: Arrays
    states: Arrays
    gradients: Arrays


class BoundArrays:
    """Executors of one symbol over one array store, created for each combination of input shapes.

    Attributes:
        store: the arrays.
        requests: the gradient request of each argument.
    """

    def __init__(
        self,
        symbol: Symbol,
        params: Sequence[str],
        requests: Mapping[str, str],
        shared: "BoundArrays | None" = None,
        ctx: Any = None,
        groups: Mapping[str, Any] | None = None,
    ) -> None:
        """Starts without executors.

        Args:
            symbol: the graph.
            params: names of the arguments that are parameters.
            requests: see the class.
            shared: an object whose arrays are shared.
            ctx: the device of new arrays.
            groups: the devices of groups of arrays, by their names.
        """
        self._ctx, self._groups = named(ctx), groups
        self._symbol, self._params, self.requests = symbol, list(params), dict(requests)
        self._given = shared is not None
        self.store: Store = Store({}, {}, {}) if shared is None else shared.store
        self._executors: dict[Any, Executor] = {}

    def executor(self, inputs: Sequence[DataDesc]) -> Executor:
        """The executor for inputs of these shapes.

        Raises:
            MXNetError: a shape cannot be inferred, or that of a parameter would change.
        """
        key = tuple((one.name, one.shape, np.dtype(one.dtype)) for one in inputs)
        if key not in self._executors:
            self._executors[key] = self._bound(inputs)
        return self._executors[key]

    def _bound(self, inputs: Sequence[DataDesc]) -> Executor:
        held = {**self.store.params, **self.store.states}
        dtypes = {name: one.dtype for name, one in held.items()}
        types = Inference(
            self._symbol.heads,
            {one.name: one.shape for one in inputs},
            dtypes | {one.name: one.dtype for one in inputs},
        )
        variables = types.variables()
        places = places_of(variables, self._ctx, self._groups)
        stypes = StorageTypes(self._symbol.heads, {})
        kinds = stypes.gradients()
        states, arguments = state_ids(types.nodes), {}
        auxiliary, gradients = {}, dict[str, NDArray | None]()
        for node in variables:
            type, place = types.type(node), places[node.name]
            stype = stypes.of((node, 0))
            made = partial(zeros_at, type=type, name=node.name, place=place)
            if id(node) in states:
                auxiliary[node.name] = self._kept(self.store.states, node.name, type, made, stype)
                continue
            name, wanted = node.name, self.requests.get(node.name, "null") != "null"
            is_param = name in self._params
            arguments[name] = (
                self._kept(self.store.params, name, type, made, stype) if is_param else made(stype)
            )
            grads = self.store.gradients if is_param else {}
            if wanted and name not in grads:
                grads[name] = made(kinds[name])
            gradients[name] = grads[name] if wanted else None
        given = arguments, gradients, self.requests, auxiliary
        return executor_of(self._symbol.heads, *given, self._ctx)

    def _kept(
        self, own: Arrays, name: str, type: Type, made: Callable[[str], NDArray], stype: str
    ) -> NDArray:
        if name not in own:
            if self._given:
                raise MXNetError(
                    f"bind: {name!r} must be among the parameters of the shared module "
                    f"({', '.join(own)})"
                )
            own[name] = made(stype)
        if own[name].shape != type[0]:
            raise MXNetError(
                f"bind: {name!r} is of shape {own[name].shape}, but the data need {type[0]}"
            )
        return own[name]


class ExecutorGroup:
    """A module's executor and arrays for inspection by scripts, in lists of one device.

    Attributes:
        execs: the executor for the current shapes.
        param_names: names of the parameters.
        aux_names: names of the auxiliary states.
        batch_size: the number of examples in a batch.
    """

    def __init__(
        self, executor: Executor, param_names: Sequence[str], inputs: Sequence[str], batch_size: int
    ) -> None:
        """See the class; ``inputs`` are names of data and labels."""
        self.execs, self.batch_size = [executor], batch_size
        self.param_names, self.aux_names = list(param_names), list(executor.aux_dict)
        self.arg_names, self._inputs = list(executor.arg_dict), list(inputs)

    @property
    def param_arrays(self) -> list[list[NDArray]]:
        """The parameters."""
        return [[self.execs[0].arg_dict[name]] for name in self.param_names]

    @property
    def grad_arrays(self) -> list[list[NDArray | None]]:
        """The gradients of the parameters."""
        return [[self.execs[0].grad_dict[name]] for name in self.param_names]

    @property
    def aux_arrays(self) -> list[list[NDArray]]:
        """The auxiliary states."""
        return [[one] for one in self.execs[0].aux_arrays]

    @property
    def data_arrays(self) -> list[list[tuple[slice, NDArray]]]:
        """Data and labels, each with the slice of the batch on the device."""
        part, held = slice(0, self.batch_size), self.execs[0].arg_dict
        return [[(part, held[name])] for name in self._inputs]

    @property
    def input_grad_arrays(self) -> list[list[NDArray | None]]:
        """The gradients of the data."""
        found = self.execs[0].grad_dict
        return [[found[name]] for name in self._inputs if found.get(name) is not None]
