"""Checkpoint files of models, and the arguments of callbacks: part of ``mx.model``."""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from registry.values import SelectedRows
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.parameters import load_params as read_params
from symop.interop.mxnet.parameters import save_params as write_params
from symop.interop.mxnet.parameters import split_params
from symop.interop.mxnet.sparse import CSRArray
from symop.interop.mxnet.sparse_arrays import BaseSparseNDArray
from symop.interop.mxnet.sparse_creation import csr_of, row_sparse_of
from symop.interop.mxnet.symbols import Symbol, load

Params = dict[str, NDArray]


class BatchEndParam(NamedTuple):
    """The argument of a callback after a batch.

    Attributes:
        epoch: the number of the epoch.
        nbatch: the number of the batch in the epoch.
        eval_metric: the metric, or None.
        locals: the local variables of the calling loop.
    """

    epoch: int
    nbatch: int
    eval_metric: Any
    locals: Any


def save_arrays(path: str, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]) -> None:
    """Writes parameters and auxiliary states to a ``.params`` file."""
    named = {f"arg:{name}": one for name, one in arg_params.items()}
    named |= {f"aux:{name}": one for name, one in aux_params.items()}
    write_params(path, {name: _plain(one) for name, one in named.items()})


def _plain(one: Any) -> Any:
    """The components of a sparse array, or the value of a dense one."""
    if isinstance(one, BaseSparseNDArray):
        return one.parts()
    return one.value if isinstance(one, NDArray) else one


def load_arrays(path: str) -> tuple[Params, Params]:
    """Reads a file written by ``save_arrays``; skips arrays that were never filled.

    Raises:
        MXNetError: a name lacks the prefix ``arg:`` or ``aux:``.
        MXNetFormatError: the file is damaged.
        OSError: the file cannot be read.
    """
    arg_params, aux_params = split_params(read_params(path))
    return _held(arg_params), _held(aux_params)


def _held(params: Mapping[str, Any]) -> Params:
    return {name: _array(one) for name, one in params.items() if one is not None}


def _array(value: Any) -> NDArray:
    if isinstance(value, SelectedRows):
        return row_sparse_of(value)
    return csr_of(value) if isinstance(value, CSRArray) else array_of(value)


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Symbol | None,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    remove_amp_cast: bool = True,
) -> None:
    """Writes ``prefix-symbol.json`` and ``prefix-0001.params``, which MXNet reads.

    Args:
        prefix: the common prefix of the file names.
        epoch: the number in the name of the second file.
        symbol: the graph; if None, the first file is not written.
        arg_params: parameters by name.
        aux_params: auxiliary states by name.
        remove_amp_cast: as in ``Symbol.save``.
    """
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast)
    path = f"{prefix}-{epoch:04d}.params"
    save_arrays(path, arg_params, aux_params)
    logging.info('Saved checkpoint to "%s"', path)


def load_params(prefix: str, epoch: int) -> tuple[Params, Params]:
    """Parameters and auxiliary states of a checkpoint, by name."""
    return load_arrays(f"{prefix}-{epoch:04d}.params")


def load_checkpoint(prefix: str, epoch: int) -> tuple[Symbol, Params, Params]:
    """The symbol, the parameters and the auxiliary states of a checkpoint.

    Raises:
        MXNetError: a file is damaged, or has an operator that is not mapped.
        OSError: a file cannot be read.

    Example:
        >>> import tempfile, symop.interop.mxnet as mx
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
        >>> params = {"fc_weight": mx.nd.ones((1, 2)), "fc_bias": mx.nd.zeros((1,))}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mx.model.save_checkpoint(f"{folder}/fc", 3, net, params, {})
        ...     symbol, arg_params, aux_params = mx.model.load_checkpoint(f"{folder}/fc", 3)
        >>> symbol.list_arguments(), arg_params["fc_weight"].asnumpy().tolist()
        (['data', 'fc_weight', 'fc_bias'], [[1.0, 1.0]])
    """
    return (load(f"{prefix}-symbol.json"), *load_params(prefix, epoch))
