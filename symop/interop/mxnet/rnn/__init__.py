"""``mx.rnn``: recurrent cells as symbols, and batches of sentences."""

from symop.interop.mxnet.rnn import cells as rnn_cell
from symop.interop.mxnet.rnn import sentences as io
from symop.interop.mxnet.rnn.cells import BaseRNNCell, GRUCell, LSTMCell, RNNCell, RNNParams
from symop.interop.mxnet.rnn.checkpoints import (
    do_rnn_checkpoint,
    load_rnn_checkpoint,
    save_rnn_checkpoint,
)
from symop.interop.mxnet.rnn.combined_cells import (
    BidirectionalCell,
    FusedRNNCell,
    SequentialRNNCell,
)
from symop.interop.mxnet.rnn.convolution_cells import ConvGRUCell, ConvLSTMCell, ConvRNNCell
from symop.interop.mxnet.rnn.modifier_cells import (
    DropoutCell,
    ModifierCell,
    ResidualCell,
    ZoneoutCell,
)
from symop.interop.mxnet.rnn.sentences import BucketSentenceIter, encode_sentences

__all__ = [
    "BaseRNNCell",
    "BidirectionalCell",
    "BucketSentenceIter",
    "ConvGRUCell",
    "ConvLSTMCell",
    "ConvRNNCell",
    "DropoutCell",
    "FusedRNNCell",
    "GRUCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RNNParams",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
    "do_rnn_checkpoint",
    "encode_sentences",
    "io",
    "load_rnn_checkpoint",
    "rnn_cell",
    "save_rnn_checkpoint",
]
