"""Cells that combine cells: stacks, bidirectional cells, and networks in one operator."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from symop.interop.mxnet import symbol as sym
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.initializer import FusedRNN
from symop.interop.mxnet.rnn.cells import (
    BaseRNNCell,
    GRUCell,
    LSTMCell,
    Params,
    RNNCell,
    RNNParams,
    Sequenced,
    States,
    as_steps,
    merged,
    time_axis,
)
from symop.interop.mxnet.rnn.modifier_cells import DropoutCell
from symop.interop.mxnet.rnn_parameters import gates_of, parts_of, size_of
from symop.interop.mxnet.symbols import Symbol


class SequentialRNNCell(BaseRNNCell):
    """A stack of cells.

    Args:
        params: parameters shared by all cells.
    """

    def __init__(self, params: RNNParams | None = None) -> None:
        """See the class."""
        self._cells: list[BaseRNNCell] = []
        super().__init__("", params)
        self._override_cell_params = params is not None

    def children(self) -> Sequence[BaseRNNCell]:
        """The cells, from bottom to top."""
        return self._cells

    def add(self, cell: BaseRNNCell) -> None:
        """Adds a cell on top.

        Raises:
            MXNetError: both the cell and the stack have shared parameters.
        """
        if self._override_cell_params:
            _require_own(cell)
            cell.params.update(self.params)
        self._cells.append(cell)
        self.params.update(cell.params)

    def _split(self, states: States) -> list[States]:
        """The states of each cell."""
        rest = iter(states)
        return [[next(rest) for _ in cell.state_info] for cell in self._cells]

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step."""
        self._counter += 1
        after: States = []
        for cell, own in zip(self._cells, self._split(states), strict=True):
            inputs, own_after = cell(inputs, own)
            after += own_after
        return inputs, after

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: States | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, States]:
        """See ``BaseRNNCell.unroll``; each cell is unrolled by its own method."""
        self.reset()
        states = self._split(self.begin_state() if begin_state is None else begin_state)
        after: States = []
        for i, (cell, own) in enumerate(zip(self._cells, states, strict=True)):
            last = i == len(self._cells) - 1
            inputs, own_after = cell.unroll(
                length, inputs, own, layout, merge_outputs if last else None
            )
            after += own_after
        return inputs, after


def _require_own(*cells: BaseRNNCell) -> None:
    if not all(cell._own_params for cell in cells):
        raise MXNetError("params: they must be given to the cells or to what holds them, not both")


class BidirectionalCell(BaseRNNCell):
    """A forward and a backward cell, whose outputs are concatenated.

    Args:
        l_cell: the forward cell.
        r_cell: the backward cell.
        params: parameters shared by both.
        output_prefix: prepended to the names of the outputs.
    """

    def __init__(
        self,
        l_cell: BaseRNNCell,
        r_cell: BaseRNNCell,
        params: RNNParams | None = None,
        output_prefix: str = "bi_",
    ) -> None:
        """See the class."""
        self._cells = [l_cell, r_cell]
        super().__init__("", params)
        self._output_prefix = output_prefix
        for cell in self._cells:
            if params is not None:
                _require_own(cell)
                cell.params.update(self.params)
            self.params.update(cell.params)

    def children(self) -> Sequence[BaseRNNCell]:
        """Both cells."""
        return self._cells

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: States | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, States]:
        """See ``BaseRNNCell.unroll``; the states are a list for each direction."""
        self.reset()
        steps = as_steps(length, inputs, layout)
        states = self.begin_state() if begin_state is None else begin_state
        left, right = self._cells
        count = len(left.state_info)
        there, l_states = left.unroll(length, steps, states[:count], layout, merge_outputs)
        back, r_states = right.unroll(length, steps[::-1], states[count:], layout, merge_outputs)
        after: Any = [l_states, r_states]
        if isinstance(there, Symbol) and isinstance(back, Symbol) and merge_outputs is not False:
            turned, name = sym.reverse(back, axis=time_axis(layout)), f"{self._output_prefix}out"
            return sym.Concat(there, turned, dim=2, name=name), after
        outputs = self._by_step(as_steps(length, there, layout), as_steps(length, back, layout))
        return (merged(outputs, layout) if merge_outputs else outputs), after

    def _by_step(self, there: Sequence[Any], back: Sequence[Any]) -> list[Symbol]:
        """The concatenated outputs of both cells at each step."""
        pairs = enumerate(zip(there, reversed(back), strict=True))
        name = f"{self._output_prefix}t"
        return [sym.Concat(one, other, dim=1, name=f"{name}{i}") for i, (one, other) in pairs]


class FusedRNNCell(BaseRNNCell):
    """A whole network as one operator, ``RNN``; it supports only ``unroll``.

    Args:
        num_hidden: the number of units of a layer.
        num_layers: the number of layers.
        mode: ``"lstm"``, ``"gru"``, ``"rnn_relu"`` or ``"rnn_tanh"``.
        bidirectional: whether layers are bidirectional.
        dropout: the dropout rate between layers in training.
        get_next_state: whether ``unroll`` returns the final states.
        forget_bias: the bias of an LSTM's forget gate.
        prefix: see ``BaseRNNCell``; defaults to the mode.
        params: see ``BaseRNNCell``.
    """

    def __init__(
        self,
        num_hidden: int,
        num_layers: int = 1,
        mode: str = "lstm",
        bidirectional: bool = False,
        dropout: float = 0.0,
        get_next_state: bool = False,
        forget_bias: float = 1.0,
        prefix: str | None = None,
        params: RNNParams | None = None,
    ) -> None:
        """See the class."""
        super().__init__(f"{mode}_" if prefix is None else prefix, params)
        self.gates = gates_of(mode)
        self._num_hidden, self._num_layers, self._mode = num_hidden, num_layers, mode
        self._bidirectional, self._dropout = bidirectional, dropout
        self._get_next_state = get_next_state
        init = FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self.params.get("parameters", init=init)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shapes and layouts of the states of all layers."""
        rows = (1 + self._bidirectional) * self._num_layers
        info = {"shape": (rows, 0, self._num_hidden), "__layout__": "LNC"}
        return [info] * (2 if self._mode == "lstm" else 1)

    @property
    def _sizes(self) -> tuple[int, int, str, bool]:
        return self._num_hidden, self._num_layers, self._mode, self._bidirectional

    def unpack_weights(self, args: Mapping[str, NDArray]) -> Params:
        """Parameters, with the flat ones split by gate, as for the cells of ``unfuse``."""
        args = dict(args)
        flat = args.pop(str(self._parameter.name)).value
        for part in parts_of(flat.size, *self._sizes):
            args[self._prefix + part.name] = array_of(flat[part.place].reshape(part.shape))
        return args

    def pack_weights(self, args: Mapping[str, NDArray]) -> Params:
        """Parameters, with those split by ``unpack_weights`` concatenated."""
        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{self.gates[0]}_weight"]
        size = size_of(first.shape[1], *self._sizes)
        names = [self._prefix + part.name for part in parts_of(size, *self._sizes)]
        flat = jnp.concatenate([args.pop(name).value.ravel() for name in names])
        return {**args, str(self._parameter.name): array_of(flat)}

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: States | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, States]:
        """See ``BaseRNNCell.unroll``; the states are empty unless ``get_next_state``.

        Raises:
            MXNetError: the time axis is neither the first nor the second.
        """
        self.reset()
        data, axis = merged(inputs, layout), time_axis(layout)
        if axis not in (0, 1):
            raise MXNetError(f"unroll: layout must be NTC or TNC, got {layout!r}")
        if axis == 1:
            warnings.warn(
                "NTC layout detected. Use TNC for FusedRNNCell to be faster", stacklevel=2
            )
            data = sym.swapaxes(data, dim1=0, dim2=1)
        states = self.begin_state() if begin_state is None else begin_state
        found = sym.RNN(
            data=data,
            parameters=self._parameter,
            state_size=self._num_hidden,
            num_layers=self._num_layers,
            bidirectional=self._bidirectional,
            p=self._dropout,
            state_outputs=self._get_next_state,
            mode=self._mode,
            name=f"{self._prefix}rnn",
            **dict(zip(("state", "state_cell"), states, strict=False)),
        )
        outputs, after = found[0] if self._get_next_state else found, []
        if self._get_next_state:
            after = [found[i] for i in range(1, len(found))]
            for one in after:
                one._set_attr(__layout__="LNC")
        if axis == 1:
            outputs = sym.swapaxes(outputs, dim1=0, dim2=1)
        return (as_steps(length, outputs, layout) if merge_outputs is False else outputs), after

    def unfuse(self) -> SequentialRNNCell:
        """The same network as a stack of cells, for the parameters from ``unpack_weights``."""
        stack = SequentialRNNCell()
        for i in range(self._num_layers):
            left = self._single(f"{self._prefix}l{i}_")
            if self._bidirectional:
                right = self._single(f"{self._prefix}r{i}_")
                stack.add(BidirectionalCell(left, right, output_prefix=f"{self._prefix}bi_l{i}_"))
            else:
                stack.add(left)
            if self._dropout > 0 and i != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{i}_"))
        return stack

    def _single(self, prefix: str) -> BaseRNNCell:
        makers: dict[str, Callable[[], BaseRNNCell]] = {
            "rnn_relu": lambda: RNNCell(self._num_hidden, "relu", prefix),
            "rnn_tanh": lambda: RNNCell(self._num_hidden, "tanh", prefix),
            "lstm": lambda: LSTMCell(self._num_hidden, prefix),
            "gru": lambda: GRUCell(self._num_hidden, prefix),
        }
        return makers[self._mode]()
