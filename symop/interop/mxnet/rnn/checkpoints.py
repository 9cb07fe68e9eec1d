"""Checkpoints of recurrent networks, with weights split by gate."""

from collections.abc import Mapping, Sequence
from typing import Any

from symop.interop.mxnet.callback import AfterEpoch, every
from symop.interop.mxnet.model_files import Params, load_checkpoint, save_checkpoint
from symop.interop.mxnet.rnn.cells import BaseRNNCell
from symop.interop.mxnet.symbols import Symbol

Cells = BaseRNNCell | Sequence[BaseRNNCell]


def _listed(cells: Cells) -> Sequence[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else cells


def save_rnn_checkpoint(
    cells: Cells,
    prefix: str,
    epoch: int,
    symbol: Symbol,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
) -> None:
    """Writes a checkpoint in which the weights of ``cells``, fused or not, are split by gate.

    See ``mx.model.save_checkpoint``.
    """
    args: Mapping[str, Any] = arg_params
    for cell in _listed(cells):
        args = cell.unpack_weights(args)
    save_checkpoint(prefix, epoch, symbol, args, aux_params)


def load_rnn_checkpoint(cells: Cells, prefix: str, epoch: int) -> tuple[Symbol, Params, Params]:
    """Loads such a checkpoint for ``cells``, fused or not; see ``mx.model.load_checkpoint``."""
    symbol, args, states = load_checkpoint(prefix, epoch)
    for cell in _listed(cells):
        args = cell.pack_weights(args)
    return symbol, args, states


def do_rnn_checkpoint(cells: Cells, prefix: str, period: int = 1) -> AfterEpoch:
    """Writes such a checkpoint after every ``period`` epochs."""
    return every(period, lambda epoch, *held: save_rnn_checkpoint(cells, prefix, epoch, *held))
