"""Training: one compiled step with forward, backward and update, and the loop around it.

Example:
    >>> import numpy as np, optax, symop as so
    >>> from symop import train
    >>> x, y = so.var("x", shape=(8, 2)), so.var("y", shape=(8,))
    >>> w = so.var("w", shape=(2,))
    >>> loss = so.mean(so.square(so.matmul(x, w) - y))
    >>> trainer = train.Trainer(loss, optax.sgd(0.1), inputs=["x", "y"])
    >>> state = trainer.init(seed=0)
    >>> points = np.random.default_rng(0).normal(size=(8, 2)).astype("float32")
    >>> batch = {"x": points, "y": points @ np.array([1.0, -1.0], "float32")}
    >>> for _ in range(200):
    ...     state, metrics = trainer.step(state, batch)
    >>> np.round(state.params["w"], 2).tolist()
    [1.0, -1.0]
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from registry.errors import ArgumentError, FeedError, missing_extra
from symop.building import Group
from symop.function import GraphFunction
from symop.graph import Node
from symop.inference import typed
from symop.initial import initial_value
from symop.naming import require_known, variables_of
from symop.policies import Policy, require_policy
from symop.symbol import Symbol

Arrays = dict[str, Any]
Batch = Mapping[str, Any]


class TrainState(NamedTuple):
    """Everything that a training step reads and replaces; a pytree.

    Attributes:
        params: the trained arguments, by name.
        states: the auxiliary states, by name.
        opt_state: the optimizer's own state.
        key: the random key of the next step.
        step: how many steps were taken.
    """

    params: Arrays
    states: Arrays
    opt_state: Any
    key: Any
    step: Any


class Trainer:
    """Trains the parameters of a loss: every argument of the symbol that is not an input.

    The step is compiled once: forward, backward and update in one program, the old state donated
    to the new one.
    """

    def __init__(
        self,
        loss: Symbol,
        optimizer: optax.GradientTransformation,
        *,
        inputs: Sequence[str],
        metrics: Mapping[str, Symbol] | None = None,
        remat: Policy | None = None,
    ) -> None:
        """Prepare to minimize ``loss``.

        Args:
            loss: a symbol of shape ``()``.
            optimizer: any optax gradient transformation.
            inputs: names of the arguments that a batch feeds.
            metrics: further values to compute in each step, from what the loss depends on.
            remat: what the step keeps of the forward pass (``so.remat``); everything without it.
        """
        require_known("Trainer", inputs, loss.list_arguments())
        self.loss, self.optimizer = loss, optimizer
        self.inputs = list(inputs)
        self.remat = require_policy("Trainer", remat)
        self.metrics = dict(metrics or {})
        _check_metrics(loss, self.metrics)
        self.parameters = [n for n in loss.list_arguments() if n not in inputs]
        needed = variables_of([loss.node])
        self._moving = [name for name in self.parameters if name in needed]
        outputs = Group([loss, *self.metrics.values()])
        self._function = GraphFunction(
            outputs.nodes, outputs.also, training=True, wrt=self._moving, remat=self.remat
        )
        self._step: Callable[..., Any] = jax.jit(self._run, donate_argnums=0)

    def init(self, seed: int = 0, **shapes: Sequence[int]) -> TrainState:
        """The state before the first step: random parameters, zero moments.

        Args:
            seed: of the parameters and of what the steps draw.
            **shapes: of the inputs, where the graph does not declare them.
        """
        key = jax.random.key(seed)
        own, steps = jax.random.split(key)
        given = initialize(self.loss, own, **shapes)
        params = {name: given[name] for name in self.parameters}
        states = {name: given[name] for name in self.loss.list_auxiliary_states()}
        return TrainState(params, states, self.optimizer.init(params), steps, jnp.int32(0))

    def step(self, state: TrainState, batch: Batch) -> tuple[TrainState, Arrays]:
        """One update; returns the new state, and the loss and metrics before it.

        ``state`` is donated: its arrays must not be used afterwards.

        Raises:
            FeedError: ``batch`` does not hold an array for each input, and nothing else.
        """
        require_known("step", batch, self.inputs)
        missing = [name for name in self.inputs if name not in batch]
        if missing:
            raise FeedError(
                f"step: the batch must hold {', '.join(self.inputs)}, got no {', '.join(missing)}"
            )
        result: tuple[TrainState, Arrays] = self._step(state, dict(batch))
        return result

    def _run(self, state: TrainState, batch: Arrays) -> tuple[TrainState, Arrays]:
        function = self._function
        key = jax.random.fold_in(state.key, state.step)
        result = function(**batch, **state.params, **state.states, key=key)
        outputs, updated = result if function.states else (result, {})
        count = len(self.metrics) + 1
        values = dict(zip(["loss", *self.metrics], outputs[:count], strict=True))
        # What the loss lists among its arguments but does not need stays as it is.
        gradients = {name: jnp.zeros_like(value) for name, value in state.params.items()}
        gradients.update(zip(self._moving, outputs[count:], strict=True))
        updates, opt_state = self.optimizer.update(gradients, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        states = {**state.states, **updated}
        return TrainState(params, states, opt_state, state.key, state.step + 1), values

    def fit(
        self,
        state: TrainState,
        data: Mapping[str, np.ndarray],
        *,
        epochs: int,
        batch_size: int,
        seed: int = 0,
        progress: bool = True,
        after_epoch: Callable[[int, TrainState, Arrays], Arrays | None] | None = None,
    ) -> tuple[TrainState, list[Arrays]]:
        """Train for some epochs over shuffled batches.

        Args:
            state: where to start; donated.
            data: an array for each input, of equal first lengths.
            epochs: passes over the data.
            batch_size: examples in a step; a last smaller batch is left out.
            seed: of the shuffling.
            progress: whether to show a progress bar.
            after_epoch: called with the epoch, the state and the epoch's mean metrics; what it
                returns is added to them.

        Returns:
            The last state, and the metrics of each epoch.
        """
        length = _common_length(data, self.inputs)
        generator = np.random.default_rng(seed)
        history: list[Arrays] = []
        steps = length // batch_size
        if steps == 0:
            raise ArgumentError(
                f"fit: the batch size must be at most {length}, the number of examples, "
                f"got {batch_size}"
            )
        with _bar(epochs * steps, enabled=progress) as bar:
            for epoch in range(epochs):
                seen = []
                for batch in batches(data, batch_size, generator):
                    state, values = self.step(state, batch)
                    seen.append(values)
                    bar.update(1)
                means = {n: float(np.mean([float(v[n]) for v in seen])) for n in seen[0]}
                means.update((after_epoch(epoch, state, means) if after_epoch else None) or {})
                history.append(means)
                bar.set_postfix({name: f"{value:.4f}" for name, value in means.items()})
        return state, history


def _check_metrics(loss: Symbol, metrics: Mapping[str, Symbol]) -> None:
    """Refuse metrics that a step cannot compute: each is one value of what the loss depends on."""
    if "loss" in metrics:
        raise ArgumentError("Trainer: a metric must not be called 'loss', the loss itself is")
    known = set(loss.list_inputs())
    for name, metric in metrics.items():
        if len(metric.nodes) != 1:
            raise ArgumentError(
                f"Trainer: the metric {name!r} must be one value, got {len(metric.nodes)}"
            )
        own = [one for one in metric.list_inputs() if one not in known]
        if own:
            raise ArgumentError(
                f"Trainer: the metric {name!r} must depend on arguments and states of the loss "
                f"only, got {', '.join(own)}"
            )


def batches(
    data: Mapping[str, np.ndarray], batch_size: int, generator: np.random.Generator
) -> Iterator[dict[str, np.ndarray]]:
    """The examples of ``data`` in a new random order, in full batches."""
    length = _common_length(data, list(data))
    order = generator.permutation(length)
    for start in range(0, length - batch_size + 1, batch_size):
        chosen = order[start : start + batch_size]
        yield {name: array[chosen] for name, array in data.items()}


def _common_length(data: Mapping[str, np.ndarray], inputs: Sequence[str]) -> int:
    require_known("fit", data, inputs)
    lengths = {name: len(data[name]) for name in inputs if name in data}
    if len(lengths) < len(inputs) or len(set(lengths.values())) != 1:
        raise ArgumentError(
            f"fit: data must hold arrays of one length for {', '.join(inputs)}, got {lengths}"
        )
    return next(iter(lengths.values()))


class _NoBar:
    """Stands in for a progress bar that nobody looks at; tqdm need not be there."""

    def update(self, count: int) -> None:
        """Count nothing."""

    def set_postfix(self, values: Mapping[str, str]) -> None:
        """Show nothing."""


def _bar(total: int, *, enabled: bool) -> Any:
    if not enabled:
        return contextlib.nullcontext(_NoBar())
    try:
        from tqdm import tqdm  # noqa: PLC0415  # optional dependency
    except ImportError:
        raise missing_extra("fit", "tqdm", "train") from None
    return tqdm(total=total, unit="step")


def initialize(symbol: Symbol, key: Any, **shapes: Sequence[int]) -> Arrays:
    """Arrays for every variable of ``symbol``: what each declares, or random numbers.

    A variable with the attribute ``initial`` starts at that number or distribution. Any other is
    drawn normally with variance 2 / fan-in, where fan-in is the product of all axes but the first
    (He et al., "Delving Deep into Rectifiers", 2015); integer variables start at zero.
    """
    require_known("init", shapes, symbol.list_inputs())
    nodes = typed(symbol.roots, {name: (tuple(shape), None) for name, shape in shapes.items()})
    variables = variables_of(nodes)
    keys = jax.random.split(key, max(len(variables), 1))
    return {
        name: _initial(node, own)
        for (name, node), own in zip(variables.items(), keys, strict=False)
    }


def _initial(node: Node, key: Any) -> Any:
    declared = dict(node.attributes[3]).get("initial")
    return initial_value(declared, node.type, key)


def plot_history(history: Sequence[Mapping[str, float]], path: Any = None) -> Any:
    """The metrics of each epoch as curves: losses on the left axis, the others on the right.

    Args:
        history: what ``Trainer.fit`` returned.
        path: where to write a picture, if anywhere.

    Returns:
        The matplotlib figure.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  # optional dependency
    except ImportError:
        raise missing_extra("plot_history", "matplotlib", "train") from None
    figure = Figure(figsize=(7, 4), layout="constrained")
    left = figure.add_subplot(xlabel="epoch", ylabel="loss")
    right = left.twinx()
    epochs = np.arange(1, len(history) + 1)
    for i, name in enumerate(history[0] if history else ()):
        axes = left if "loss" in name else right
        axes.plot(epochs, [values[name] for values in history], color=f"C{i}", label=name)
    others = [name for name in (history[0] if history else ()) if "loss" not in name]
    right.set_ylabel(", ".join(others))
    right.set_visible(bool(others))
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure
