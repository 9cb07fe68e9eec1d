"""Cells whose weights are convolutions, for sequences of images."""

from collections.abc import Sequence
from typing import Any

from symop.interop.mxnet import symbol as sym
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.rnn.cells import BaseRNNCell, RNNParams, States
from symop.interop.mxnet.rnn_parameters import GATES
from symop.interop.mxnet.symbols import Symbol

Pair = tuple[int, int]


def _leaky(inputs: Symbol, **options: Any) -> Symbol:
    result: Symbol = sym.LeakyReLU(inputs, act_type="leaky", slope=0.2, **options)
    return result


class BaseConvRNNCell(BaseRNNCell):
    """A cell with a convolution of its input and one of its state.

    Args:
        input_shape: the shape of the input of a step, with a batch axis.
        num_hidden: the number of channels of the state.
        h2h_kernel: the kernel for the state, of odd lengths.
        h2h_dilate: its dilation.
        i2h_kernel: the kernel for the input.
        i2h_stride: its stride.
        i2h_pad: its padding.
        i2h_dilate: its dilation.
        i2h_weight_initializer: the initializer of the weights for the input.
        h2h_weight_initializer: that of the weights for the state.
        i2h_bias_initializer: that of the bias of the input.
        h2h_bias_initializer: that of the bias of the state.
        activation: the name of a function, or a function of a symbol.
        prefix: see ``BaseRNNCell``; the name of the cell by default.
        params: see ``BaseRNNCell``.
        conv_layout: a letter for each axis; ``C`` is the axis of channels.
    """

    count = 1
    """The number of states."""

    def __init__(
        self,
        input_shape: Sequence[int],
        num_hidden: int,
        h2h_kernel: Pair = (3, 3),
        h2h_dilate: Pair = (1, 1),
        i2h_kernel: Pair = (3, 3),
        i2h_stride: Pair = (1, 1),
        i2h_pad: Pair = (1, 1),
        i2h_dilate: Pair = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        activation: Any = _leaky,
        prefix: str | None = None,
        params: RNNParams | None = None,
        conv_layout: str = "NCHW",
    ) -> None:
        """See the class.

        Raises:
            MXNetError: a length of the state's kernel is even.
        """
        name = type(self).__name__.removesuffix("Cell")
        super().__init__(f"{name}_" if prefix is None else prefix, params)
        if not all(length % 2 for length in h2h_kernel):
            raise MXNetError(f"{name}: h2h_kernel must be of odd lengths, got {h2h_kernel}")
        pad = tuple(d * (k - 1) // 2 for d, k in zip(h2h_dilate, h2h_kernel, strict=True))
        self._num_hidden, self._activation, self._conv_layout = num_hidden, activation, conv_layout
        self._by_state = {"kernel": h2h_kernel, "dilate": h2h_dilate, "pad": pad, "stride": (1, 1)}
        self._by_input = {
            **{"kernel": i2h_kernel, "dilate": i2h_dilate},
            **{"pad": i2h_pad, "stride": i2h_stride},
        }
        self._state_shape = self._inferred(tuple(input_shape))
        self._iW = self.params.get("i2h_weight", init=i2h_weight_initializer)
        self._hW = self.params.get("h2h_weight", init=h2h_weight_initializer)
        self._iB = self.params.get("i2h_bias", init=i2h_bias_initializer)
        self._hB = self.params.get("h2h_bias", init=h2h_bias_initializer)

    def _inferred(self, input_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the state, with an unknown number of examples."""
        net = self._convolved(sym.var("data"), num_filter=self._num_hidden, **self._by_input)
        _, outputs, _ = net.infer_shape(data=input_shape)
        assert outputs is not None
        at = self._conv_layout.find("N")
        return tuple(0 if i == at else one for i, one in enumerate(outputs[0]))

    def _convolved(self, *inputs: Symbol, **options: Any) -> Any:
        return sym.Convolution(*inputs, layout=self._conv_layout, **options)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        one = {"shape": self._state_shape, "__layout__": self._conv_layout}
        return [dict(one) for _ in range(self.count)]

    def _sums(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Any, Any]:
        """The contributions of input and state to all gates."""
        filters = {"num_filter": self._num_hidden * len(self._gate_names)}
        given = {**filters, **self._by_input, "name": f"{name}i2h"}
        i2h = self._convolved(inputs, self._iW, self._iB, **given)
        given = {**filters, **self._by_state, "name": f"{name}h2h"}
        return i2h, self._convolved(state, self._hW, self._hB, **given)

    def _split(self, gates: Symbol, name: str) -> Any:
        axis = self._conv_layout.find("C")
        return sym.SliceChannel(gates, num_outputs=len(self._gate_names), axis=axis, name=name)


class ConvRNNCell(BaseConvRNNCell):
    """``h' = act(W * x + b + U * h + c)``; see ``BaseConvRNNCell`` for the arguments."""

    gates = GATES["rnn_tanh"]

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step."""
        name = self.step_name()
        i2h, h2h = self._sums(inputs, states[0], name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class ConvLSTMCell(BaseConvRNNCell):
    """Long short-term memory of images; see ``BaseConvRNNCell`` for the arguments."""

    gates = GATES["lstm"]
    count = 2

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step."""
        name = self.step_name()
        i2h, h2h = self._sums(inputs, states[0], name)
        parts = self._split(i2h + h2h, f"{name}slice")
        kinds = ["sigmoid", "sigmoid", self._activation, "sigmoid"]
        taken, kept, new, shown = [
            self._get_activation(part, kind, name=name + gate)
            for part, kind, gate in zip(parts, kinds, "ifco", strict=True)
        ]
        memory = sym.elemwise_add(kept * states[1], taken * new, name=f"{name}state")
        active = self._get_activation(memory, self._activation)
        output = sym.elemwise_mul(shown, active, name=f"{name}out")
        return output, [output, memory]


class ConvGRUCell(BaseConvRNNCell):
    """Gated recurrent unit of images; see ``BaseConvRNNCell`` for the arguments."""

    gates = GATES["gru"]

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step."""
        name = self.step_name()
        before: Any = states[0]
        i2h, h2h = self._sums(inputs, before, name)
        i2h_r, i2h_z, i2h = self._split(i2h, f"{name}_i2h_slice")
        h2h_r, h2h_z, h2h = self._split(h2h, f"{name}_h2h_slice")
        reset = sym.Activation(i2h_r + h2h_r, act_type="sigmoid", name=f"{name}_r_act")
        update: Any = sym.Activation(i2h_z + h2h_z, act_type="sigmoid", name=f"{name}_z_act")
        new = self._get_activation(i2h + reset * h2h, self._activation, name=f"{name}_h_act")
        output = sym.elemwise_add((1.0 - update) * new, update * before, name=f"{name}out")
        return output, [output]
