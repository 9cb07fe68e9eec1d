"""Cells: a step of a recurrent network as symbols, and unrolled sequences of steps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from symop.interop.mxnet import symbol as sym
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.initializer import LSTMBias
from symop.interop.mxnet.rnn_parameters import GATES
from symop.interop.mxnet.symbols import Symbol

Params = dict[str, NDArray]
States = list[Symbol]
Sequenced = Symbol | list[Symbol]


class RNNParams:
    """Variables by name, created on first use, so that cells can share them."""

    def __init__(self, prefix: str = "") -> None:
        """``prefix`` is prepended to every name."""
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """The variable called ``name``; a new one is created by ``mx.sym.var`` with ``kwargs``."""
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = sym.var(name, **kwargs)
        return self._params[name]

    def update(self, other: "RNNParams") -> None:
        """Adds the variables of ``other``."""
        self._params.update(other._params)


class BaseRNNCell:
    """A cell: ``output, states = cell(input, states)``, or ``unroll`` for a whole sequence.

    Args:
        prefix: prepended to the names of parameters and outputs.
        params: the parameters, if they are shared.
    """

    gates: Sequence[str] = ()
    """Name suffixes of the gates, whose weights are concatenated."""
    _num_hidden: int

    def __init__(self, prefix: str = "", params: RNNParams | None = None) -> None:
        """See the class."""
        self._prefix = prefix
        self._own_params = params is None
        self._params = RNNParams(prefix) if params is None else params
        self._modified = False
        self.reset()

    def children(self) -> Sequence["BaseRNNCell"]:
        """The cells that it consists of."""
        return ()

    def reset(self) -> None:
        """Resets the step counters, for the next sequence."""
        self._init_counter = self._counter = -1
        for cell in self.children():
            cell.reset()

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step: returns the output, and the new states."""
        # As in MXNet: fused and bidirectional cells need whole sequences; other cells define it.
        raise NotImplementedError(f"{type(self).__name__} cannot be stepped, use unroll")

    @property
    def params(self) -> RNNParams:
        """Its parameters, which other cells may share from now on."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state; the length of the batch axis is 0, unknown."""
        return [info for cell in self.children() for info in cell.state_info]

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """Shapes of the states."""
        return [info["shape"] for info in self.state_info]

    @property
    def _gate_names(self) -> Sequence[str]:
        return self.gates

    def _require_unmodified(self) -> None:
        if self._modified:
            raise MXNetError("begin_state: the cell that modifies this one must be called instead")

    def begin_state(self, func: Callable[..., Symbol] = sym.zeros, **kwargs: Any) -> States:
        """The initial states.

        Args:
            func: creates a state by name and shape: ``mx.sym.zeros``, or ``mx.sym.var`` to feed it.
            **kwargs: passed to ``func``.

        Raises:
            MXNetError: a modifier cell owns this cell.
        """
        self._require_unmodified()
        if self.children():
            return [one for c in self.children() for one in c.begin_state(func=func, **kwargs)]
        states = []
        for info in self.state_info:
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(func(name=name, **{**kwargs, **info}))
        return states

    def step_name(self) -> str:
        """The name prefix of the next step."""
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    def _get_activation(self, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        """``inputs`` activated by the name of a function, or by a function of symbols."""
        if isinstance(activation, str):
            return sym.Activation(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)

    # Weights of gates

    def unpack_weights(self, args: Mapping[str, NDArray]) -> Params:
        """Parameters, with those of this cell split by gate."""
        args = dict(args)
        for cell in self.children():
            args = cell.unpack_weights(args)
        for group, kind in self._groups():
            whole = args.pop(f"{self._prefix}{group}_{kind}").value
            parts = jnp.split(whole, len(self._gate_names))
            for gate, part in zip(self._gate_names, parts, strict=True):
                args[f"{self._prefix}{group}{gate}_{kind}"] = array_of(part)
        return args

    def pack_weights(self, args: Mapping[str, NDArray]) -> Params:
        """Parameters, with those split by ``unpack_weights`` concatenated."""
        args = dict(args)
        for cell in self.children():
            args = cell.pack_weights(args)
        for group, kind in self._groups():
            names = [f"{self._prefix}{group}{gate}_{kind}" for gate in self._gate_names]
            whole = jnp.concatenate([args.pop(name).value for name in names])
            args[f"{self._prefix}{group}_{kind}"] = array_of(whole)
        return args

    def _groups(self) -> Iterable[tuple[str, str]]:
        groups = ("i2h", "h2h") if self._gate_names else ()
        return [(group, kind) for group in groups for kind in ("weight", "bias")]

    # Sequences

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: States | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, States]:
        """The outputs of all steps, and the final states.

        Args:
            length: the number of steps.
            inputs: a symbol with a time axis, or one for each step.
            begin_state: the initial states; zeros by default.
            layout: a letter for each axis; ``T`` is the time axis.
            merge_outputs: whether to merge the outputs into one symbol with a time axis; None keeps
                their form.

        Example:
            >>> import symop.interop.mxnet as mx
            >>> cell = mx.rnn.LSTMCell(4, prefix="lstm_")
            >>> outputs, _ = cell.unroll(3, mx.sym.var("x"), merge_outputs=True)
            >>> outputs.infer_shape(x=(2, 3, 5))[1]
            [(2, 3, 4)]
        """
        self.reset()
        steps = as_steps(length, inputs, layout)
        states = self.begin_state() if begin_state is None else begin_state
        outputs: list[Symbol] = []
        for one in steps:
            output, states = self(one, states)
            outputs.append(output)
        return (merged(outputs, layout) if merge_outputs else outputs), states


def time_axis(layout: str) -> int:
    """The time axis."""
    return layout.find("T")


def as_steps(length: int, inputs: Sequenced, layout: str) -> list[Symbol]:
    """A symbol for each step.

    Raises:
        MXNetError: the number of symbols is not ``length``.
    """
    if not isinstance(inputs, Symbol):
        if len(inputs) != length:
            raise MXNetError(f"unroll: {length} inputs must be given, got {len(inputs)}")
        return list(inputs)
    if len(inputs) != 1:
        raise MXNetError(
            "unroll: inputs must be one symbol or a list, got a group; use list(group)"
        )
    parts = sym.split(inputs, axis=time_axis(layout), num_outputs=length, squeeze_axis=1)
    return list(parts)


def merged(inputs: Sequenced, layout: str) -> Symbol:
    """One symbol with a time axis."""
    if isinstance(inputs, Symbol):
        return inputs
    axis = time_axis(layout)
    wide = [sym.expand_dims(one, axis=axis) for one in inputs]
    return sym.Concat(*wide, dim=axis)


class _GatedCell(BaseRNNCell):
    """A cell with weights and biases for its input and for its state."""

    def __init__(
        self, num_hidden: int, prefix: str, params: RNNParams | None = None, **i2h_bias: Any
    ) -> None:
        super().__init__(prefix, params)
        self._num_hidden = num_hidden
        self._iW = self.params.get("i2h_weight")
        self._hW = self.params.get("h2h_weight")
        self._iB = self.params.get("i2h_bias", **i2h_bias)
        self._hB = self.params.get("h2h_bias")

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of the state."""
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    def _sums(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Any, Any]:
        """The contributions of input and state to all gates."""
        count = self._num_hidden * len(self._gate_names)
        i2h = sym.FullyConnected(inputs, self._iW, self._iB, num_hidden=count, name=f"{name}i2h")
        h2h = sym.FullyConnected(state, self._hW, self._hB, num_hidden=count, name=f"{name}h2h")
        return i2h, h2h


class RNNCell(_GatedCell):
    """``h' = tanh(W x + b + U h + c)``.

    Args:
        num_hidden: the number of units.
        activation: replaces ``tanh``: its name, or a function of a symbol and a name.
        prefix: see ``BaseRNNCell``.
        params: see ``BaseRNNCell``.
    """

    gates = GATES["rnn_tanh"]

    def __init__(
        self,
        num_hidden: int,
        activation: Any = "tanh",
        prefix: str = "rnn_",
        params: RNNParams | None = None,
    ) -> None:
        """See the class."""
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step."""
        name = self.step_name()
        i2h, h2h = self._sums(inputs, states[0], name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class LSTMCell(_GatedCell):
    """Long short-term memory; its states are the output and the memory.

    Args:
        num_hidden: the number of units.
        prefix: see ``BaseRNNCell``.
        params: see ``BaseRNNCell``.
        forget_bias: the initial bias of the forget gate.
    """

    gates = GATES["lstm"]

    def __init__(
        self,
        num_hidden: int,
        prefix: str = "lstm_",
        params: RNNParams | None = None,
        forget_bias: float = 1.0,
    ) -> None:
        """See the class."""
        super().__init__(num_hidden, prefix, params, init=LSTMBias(forget_bias))

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shapes and layouts of output and memory."""
        return super().state_info * 2

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step."""
        name = self.step_name()
        i2h, h2h = self._sums(inputs, states[0], name)
        parts = sym.SliceChannel(i2h + h2h, num_outputs=4, name=f"{name}slice")
        taken: Any
        kept: Any
        taken, kept, new, shown = [
            sym.Activation(part, act_type="tanh" if gate == "c" else "sigmoid", name=name + gate)
            for part, gate in zip(parts, "ifco", strict=True)
        ]
        memory = sym.elemwise_add(kept * states[1], taken * new, name=f"{name}state")
        output = sym.elemwise_mul(shown, sym.Activation(memory, act_type="tanh"), name=f"{name}out")
        return output, [output, memory]


class GRUCell(_GatedCell):
    """Gated recurrent unit, whose reset gate is applied after the weights.

    Args:
        num_hidden: the number of units.
        prefix: see ``BaseRNNCell``.
        params: see ``BaseRNNCell``.
    """

    gates = GATES["gru"]

    def __init__(
        self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None
    ) -> None:
        """See the class."""
        super().__init__(num_hidden, prefix, params)

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """Runs one step."""
        name = self.step_name()
        before: Any = states[0]
        i2h, h2h = self._sums(inputs, before, f"{name}_")
        by_input: Any = sym.SliceChannel(i2h, num_outputs=3, name=f"{name}_i2h_slice")
        by_state: Any = sym.SliceChannel(h2h, num_outputs=3, name=f"{name}_h2h_slice")
        (i2h_r, i2h_z, i2h), (h2h_r, h2h_z, h2h) = by_input, by_state
        reset = sym.Activation(i2h_r + h2h_r, act_type="sigmoid", name=f"{name}_r_act")
        update: Any = sym.Activation(i2h_z + h2h_z, act_type="sigmoid", name=f"{name}_z_act")
        new = sym.Activation(i2h + reset * h2h, act_type="tanh", name=f"{name}_h_act")
        output = sym.elemwise_add((1.0 - update) * new, update * before, name=f"{name}out")
        return output, [output]
