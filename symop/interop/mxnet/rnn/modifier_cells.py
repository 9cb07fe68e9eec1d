"""Dropout cells, and cells that modify another cell."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symop.interop.mxnet import symbol as sym
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.rnn.cells import (
    BaseRNNCell,
    Params,
    RNNParams,
    Sequenced,
    States,
    as_steps,
    merged,
)
from symop.interop.mxnet.symbols import Symbol


class DropoutCell(BaseRNNCell):
    """Drops entries of the input in training; it has no state.

    Args:
        dropout: the dropout rate.
        prefix: see ``BaseRNNCell``.
        params: see ``BaseRNNCell``.
    """

    def __init__(
        self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None
    ) -> None:
        """See the class."""
        super().__init__(prefix, params)
        self.dropout = float(dropout)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """An empty list: there are no states."""
        return []

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step."""
        return (sym.Dropout(inputs, p=self.dropout) if self.dropout > 0 else inputs), states

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: States | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, States]:
        """See ``BaseRNNCell.unroll``; dropout is applied to the whole sequence at once."""
        self.reset()
        if merge_outputs is not None:
            inputs = merged(inputs, layout) if merge_outputs else as_steps(length, inputs, layout)
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state, layout, merge_outputs)


class ModifierCell(BaseRNNCell):
    """A cell that modifies another cell, and has its parameters and states.

    Args:
        base_cell: the modified cell, which can no longer be called itself.
    """

    def __init__(self, base_cell: BaseRNNCell) -> None:
        """See the class."""
        self.base_cell = base_cell
        super().__init__()
        base_cell._modified = True

    def children(self) -> Sequence[BaseRNNCell]:
        """The modified cell."""
        return [self.base_cell]

    @property
    def params(self) -> RNNParams:
        """The parameters of the modified cell."""
        self._own_params = False
        return self.base_cell.params

    def begin_state(
        self, func: Callable[..., Symbol] | None = None, init_sym: Any = None, **kwargs: Any
    ) -> States:
        """The initial states; see ``BaseRNNCell.begin_state``."""
        self._require_unmodified()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=func or init_sym or sym.zeros, **kwargs)
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: Mapping[str, NDArray]) -> Params:
        """See ``BaseRNNCell.unpack_weights``."""
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> Params:
        """See ``BaseRNNCell.pack_weights``."""
        return self.base_cell.pack_weights(args)


class ZoneoutCell(ModifierCell):
    """Keeps the previous values of random entries in training (Krueger et al., 2017).

    Args:
        base_cell: the modified cell.
        zoneout_outputs: the rate for outputs.
        zoneout_states: the rate for states.
    """

    def __init__(
        self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0
    ) -> None:
        """See the class.

        Raises:
            MXNetError: ``base_cell`` cannot be stepped.
        """
        if type(base_cell).__call__ is BaseRNNCell.__call__:
            raise MXNetError(
                f"ZoneoutCell: the cell must be one that steps, got {type(base_cell).__name__}; "
                "unfuse it, or put ZoneoutCells into it"
            )
        self.prev_output: Symbol | None = None
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states

    def reset(self) -> None:
        """Resets the step counters."""
        super().reset()
        self.prev_output = None

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step."""
        output, after = self.base_cell(inputs, states)
        before = sym.zeros((0, 0)) if self.prev_output is None else self.prev_output
        output = _mixed(self.zoneout_outputs, output, before)
        pairs = zip(after, states, strict=True)
        after = [_mixed(self.zoneout_states, new, old) for new, old in pairs]
        self.prev_output = output
        return output, after


def _mixed(often: float, new: Symbol, old: Symbol) -> Symbol:
    """``new`` with random entries replaced by those of ``old``."""
    if not often:
        return new
    return sym.where(sym.Dropout(sym.ones_like(new), p=often), new, old)


class ResidualCell(ModifierCell):
    """Adds the input to the output.

    Args:
            base_cell: the modified cell.
    """

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step."""
        output, after = self.base_cell(inputs, states)
        return _added(output, inputs), after

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: States | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, States]:
        """See ``BaseRNNCell.unroll``."""
        self.reset()
        self.base_cell._modified = False
        outputs, states = self.base_cell.unroll(length, inputs, begin_state, layout, merge_outputs)
        self.base_cell._modified = True
        if isinstance(outputs, Symbol):
            return _added(outputs, merged(inputs, layout)), states
        pairs = zip(outputs, as_steps(length, inputs, layout), strict=True)
        return [_added(*pair) for pair in pairs], states


def _added(output: Symbol, inputs: Symbol) -> Symbol:
    result: Symbol = sym.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")
    return result
