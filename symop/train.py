"""Training: one compiled step of forward, backward and update, and the training loop.

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
import functools
import inspect
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from registry.errors import ArgumentError, BusyError, FeedError, SymopError, missing_extra
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.graph.inference import infer_variables
from symop.graph.naming import require_known, variables_of
from symop.graph.nodes import Node
from symop.graph.policies import Policy, require_policy
from symop.graph.shardings import Rules, undeclared, with_shardings
from symop.planning.activations import BatchFunction, batch_splits
from symop.runtime.donation import (
    Cell,
    ChangedError,
    DonatingStep,
    KeepsError,
    Packed,
    TracedError,
    pack,
    unpack,
)
from symop.runtime.function import GraphFunction
from symop.runtime.initial import initial_value
from symop.runtime.placement import MeshRecord, Placement, placement_of
from symop.runtime.processes import Share, require_same
from symop.symbol.building import Group
from symop.symbol.symbol import Symbol
from symop.training.feeding import Feeding, common_length, feeding
from symop.training.joining import Job, distributed
from symop.training.placing import on_automatic_axes, shardings_of_state

__all__ = [
    "Job",
    "TrainState",
    "Trainer",
    "batches",
    "distributed",
    "initialize",
    "plot_history",
    "share",
]

_TIMES = 100
Arrays = dict[str, Any]
Batch = Mapping[str, Any]


class _Parts(NamedTuple):
    """The parts of a training state."""

    params: Arrays
    states: Arrays
    opt_state: Any
    key: Any
    step: Any


class TrainState:
    """The state of training, which a step reads and replaces; a pytree.

    A step donates the arrays of the state and replaces them in one operation: after any exception,
    Ctrl-C included, it contains the state either before or after the step.

    Args:
        params: the trained arguments, by name.
        states: the auxiliary states, by name.
        opt_state: the state of the optimizer.
        key: the random key of the next step.
        step: the number of steps taken.
    """

    __slots__ = ("__weakref__", "_cell")
    _fields = _Parts._fields

    def __init__(self, params: Arrays, states: Arrays, opt_state: Any, key: Any, step: Any) -> None:
        """Creates a state from its parts."""
        # A step leaves the parts packed, and the first access unpacks them.
        self._cell = Cell([_Parts(params, states, opt_state, key, step)])

    def _parts(self) -> _Parts:
        # A signal handler may take a step meanwhile, so the item is changed, not replaced.
        held = self._cell.last[0]
        parts: Any = held[0]
        if parts.__class__ is Packed:
            parts = held[0] = parts()
        assert isinstance(parts, _Parts)
        return parts

    @property
    def params(self) -> Arrays:
        """The trained arguments, by name."""
        return self._parts().params

    @property
    def states(self) -> Arrays:
        """The auxiliary states, by name."""
        return self._parts().states

    @property
    def opt_state(self) -> Any:
        """The state of the optimizer."""
        return self._parts().opt_state

    @property
    def key(self) -> Any:
        """The random key of the next step."""
        return self._parts().key

    @property
    def step(self) -> Any:
        """The number of steps taken."""
        return self._parts().step

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts())

    def __len__(self) -> int:
        return len(self._fields)

    def __getitem__(self, index: Any) -> Any:
        return self._parts()[index]

    def _asdict(self) -> dict[str, Any]:
        return self._parts()._asdict()

    def _replace(self, **parts: Any) -> "TrainState":
        return TrainState(*self._parts()._replace(**parts))

    def __repr__(self) -> str:
        return repr(self._parts()).replace("_Parts", "TrainState", 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return TrainState, tuple(self)

    def _given(self) -> Packed:
        """Returns the parts, packed as a step takes them."""
        parts = self._cell.last[0][0]
        return parts if parts.__class__ is Packed else pack(parts)


_register: Any = jax.tree_util.register_pytree_with_keys
_register(
    TrainState,
    lambda state: (
        [(jax.tree_util.GetAttrKey(n), one) for n, one in state._asdict().items()],
        None,
    ),
    lambda _, parts: TrainState(*parts),
    lambda state: (tuple(state), None),
)


class Trainer:
    """Trains the parameters of a loss: every argument of the symbol that is not an input.

    The step is compiled once: one program of forward, backward and update, which donates the old
    state to the new one. A trainer can be pickled if its optimizer can; optax's optimizers are
    closures, which the package ``cloudpickle`` supports and ``pickle`` does not.
    """

    def __init__(
        self,
        loss: Symbol,
        optimizer: optax.GradientTransformation,
        *,
        inputs: Sequence[str],
        metrics: Mapping[str, Symbol] | None = None,
        remat: Policy | None = None,
        mesh: Any = None,
        rules: Rules | None = None,
    ) -> None:
        """Prepares to minimize ``loss``.

        Args:
            loss: a symbol of shape ``()``.
            optimizer: an optax gradient transformation, or another object with its functions
                ``init`` and ``update``. Of the following, ``update`` receives the extra arguments
                that it takes: ``value`` and ``grad``, the loss and its gradients; ``value_fn`` (or
                ``obj_fn``) and ``grad_fn``, the loss and its gradients as functions of the
                parameters, on the batch of the step. The first step raises an ``ArgumentError``
                if ``update`` cannot be called so: ``optax.lookahead`` and ``optax.contrib.dpsgd``
                need other parameters or gradients, and ``optax.contrib.sam`` fails inside
                ``optax.chain`` and other wrappers, whose extra arguments it does not take.
            inputs: the names of the arguments that a batch feeds.
            metrics: further values to compute in each step, from arguments and states of the loss.
            remat: the rematerialization policy (``so.remat``); by default all residuals are kept.
            mesh: the devices to train on, a ``jax.sharding.Mesh``. Parameters are whole on each
                device and inputs split by examples, over the mesh axis ``"data"`` or the only one,
                except where ``rules`` or ``so.var(..., sharding=...)`` say otherwise. The state of
                the optimizer is split like the parameters.
            rules: shardings by name of parameter, state or input, or by pattern, such as
                ``{"*_weight": (None, "model")}``; the first that matches counts.

        Raises:
            ArgumentError: an argument is invalid: the message says what must hold.
        """
        require_known("Trainer", inputs, loss.list_arguments())
        self.loss, self.optimizer = loss, optimizer
        self._extra = _extra_arguments(optimizer)
        self.inputs = list(inputs)
        self.remat = require_policy("Trainer", remat)
        self.metrics = dict(metrics or {})
        _check_metrics(loss, self.metrics)
        self.placement = self._placed(mesh, rules)
        loss = self.loss
        self.parameters = [n for n in loss.list_arguments() if n not in inputs]
        needed = variables_of([loss.node])
        self._moving = [name for name in self.parameters if name in needed]
        outputs = Group([loss, *self.metrics.values()])
        self._function = BatchFunction(
            outputs.nodes, outputs.also, training=True, wrt=self._moving, remat=self.remat
        )
        if self.placement is not None:
            self._function.split(*batch_splits(self.placement, variables_of(outputs.roots), inputs))
        # The loss alone, for optimizers that evaluate it at other parameters.
        self._value = GraphFunction([loss.node], loss.also, training=True, remat=self.remat)
        self._step = DonatingStep(self._run)

    def __reduce__(self) -> tuple[Any, ...]:
        where = MeshRecord.of(self.placement)
        how = self.loss, self.optimizer, self.inputs, self.metrics, self.remat, where
        return _trainer_of, how

    def _placed(self, mesh: Any, rules: Rules | None) -> Placement | None:
        """Declares the shardings that the mesh and the rules give to the variables."""
        everything = Group([self.loss, *self.metrics.values()])
        placement = placement_of("Trainer", everything.roots, mesh, rules, self.inputs)
        if placement is None:
            return None
        # Together, so that they keep their variables in common.
        symbols = (self.loss, *self.metrics.values())
        roots = [root for one in symbols for root in one.roots]
        placed = iter(with_shardings(roots, undeclared(roots, placement.shardings)))
        self.loss, *metrics = [
            one._with_roots(list(islice(placed, len(one.roots)))) for one in symbols
        ]
        self.metrics = dict(zip(self.metrics, metrics, strict=True))
        return placement

    def init(self, seed: int = 0, **shapes: Sequence[int]) -> TrainState:
        """Returns the state before the first step: random parameters, zero moments.

        Args:
            seed: the seed of the parameters and of the random numbers in steps.
            **shapes: the shapes of inputs that the graph does not declare.

        Raises:
            ArgumentError: the optimizer does not accept the parameters, or arguments differ between
                processes.
        """
        if self.placement is None:
            return TrainState(*self._initial(jax.random.key(seed), shapes))
        facts = {"the seed": seed, "shapes": {name: list(one) for name, one in shapes.items()}}
        require_same("init", self.placement.mesh, facts)
        where = jax.tree.map(lambda one: one.sharding, self.struct(**shapes))
        start = jax.jit(
            lambda: TrainState(*self._initial(jax.random.key(seed), shapes)), out_shardings=where
        )
        with self.placement.current():
            state: TrainState = start()
        return state

    def struct(self, **shapes: Sequence[int]) -> TrainState:
        """Returns the shapes, dtypes and shardings of a state, as ``jax.ShapeDtypeStruct``s.

        A checkpoint is restored like it. ``shapes`` are as for ``init``.
        """
        parts = jax.eval_shape(lambda: self._initial(jax.random.key(0), shapes))
        if self.placement is None:
            return TrainState(*parts)
        where = shardings_of_state(self.placement, parts)
        struct: Any = jax.ShapeDtypeStruct
        made = jax.tree.map(lambda one, at: struct(one.shape, one.dtype, sharding=at), parts, where)
        return TrainState(*made)

    def _initial(self, key: Any, shapes: Mapping[str, Sequence[int]]) -> _Parts:
        own, steps = jax.random.split(key)
        given = initialize(self.loss, own, **shapes)
        params = {name: given[name] for name in self.parameters}
        states = {name: given[name] for name in self.loss.list_auxiliary_states()}
        with _calling_optimizer("init", "a dict of parameters"):
            opt_state = self.optimizer.init(params)
        return _Parts(params, states, opt_state, steps, jnp.int32(0))

    def step(self, state: TrainState, batch: Batch) -> tuple[TrainState, Arrays]:
        """Takes one step; returns the new state, and the loss and metrics before the update.

        The returned state is ``state`` itself (a new one under a JAX transformation); its old
        arrays are donated and must not be used afterwards. After an exception, Ctrl-C included, it
        contains the state either before or after the step.

        Of several processes, each gives the part of the batch that its devices hold, or
        ``share(batch)``.

        Raises:
            FeedError: ``batch`` lacks an input, or contains something else, or the processes do
                not give parts of one batch.
        """
        require_known("step", batch, self.inputs)
        missing = [name for name in self.inputs if name not in batch]
        if missing:
            raise FeedError(
                f"step: the batch must hold {', '.join(self.inputs)}, got no {', '.join(missing)}"
            )
        if self.placement is None:
            return self._stepped(state, dict(batch))
        placed = self.placement.put_feed("step", batch)
        with self.placement.current():
            new, values = self._stepped(state, placed)
        return new, self.placement.finished(values)

    def _stepped(self, state: TrainState, batch: Arrays) -> tuple[TrainState, Arrays]:
        for _ in range(_TIMES):
            try:
                return state, self._replaced(state, batch)
            except ChangedError:
                pass
            except TracedError:
                new, values = self._step.inline((state._given(), batch))
                return TrainState(*new()), values
        raise BusyError(
            f"step: the state must not change during the step, got {_TIMES} steps of it by "
            "a callback, a signal handler or another thread"
        )

    def _replaced(self, state: TrainState, batch: Arrays) -> Any:
        """Takes a step, which replaces the content of ``state``; returns the loss and metrics."""
        cell = state._cell
        given: list[Any] = [None, batch]
        try:
            with cell.lock:
                cell.start(given)
                last = cell.last
                try:
                    given[0] = state._given()
                except IndexError:  # a signal handler has emptied it
                    raise ChangedError from None
                return self._step.replace(last, given).pop()
        except KeepsError:
            # A host callback may use the state, so the lock is not held while one runs.
            return self._step.replace_keeping(last, given).pop()
        finally:
            given.clear()

    def _run(self, state: Any, batch: Arrays) -> list[Any]:
        parts, advance = unpack(state), self._advanced
        if self.placement is not None:
            values = dict.fromkeys(["loss", *self.metrics], self.placement.whole)
            results = shardings_of_state(self.placement, parts), values
            advance = on_automatic_axes(self.placement, advance, results)
        new, values = advance(parts, batch)
        return [pack(new), values]

    def _advanced(self, state: Any, batch: Arrays) -> tuple[_Parts, Arrays]:
        function = self._function
        key = jax.random.fold_in(state.key, state.step)

        def evaluated(params: Arrays) -> Any:
            result = function(**batch, **params, **state.states, key=key)
            return result if function.states else (result, {})

        # optax's line searches pass the extra arguments that they do not name on to value_fn.
        def value_of(params: Arrays, *, obj_fn: Any = None, grad_fn: Any = None) -> Any:
            found = self._value(**batch, **params, **state.states, key=key)
            return found[0] if self._value.states else found

        def gradients_of(params: Arrays, *_: Any) -> Arrays:  # sam also passes its inner step
            return self._gradients(evaluated(params)[0], params)

        outputs, updated = evaluated(state.params)
        count = len(self.metrics) + 1
        values = dict(zip(["loss", *self.metrics], outputs[:count], strict=True))
        gradients = self._gradients(outputs, state.params)
        more = {
            **{"value": values["loss"], "grad": gradients},
            **{"value_fn": value_of, "obj_fn": value_of, "grad_fn": gradients_of},
        }
        updates, opt_state = self._updates(gradients, state, more)
        params = optax.apply_updates(state.params, updates)
        states = {**state.states, **updated}
        return _Parts(params, states, opt_state, state.key, state.step + 1), values

    def _gradients(self, outputs: Sequence[Any], params: Arrays) -> Arrays:
        """Returns the gradients of all parameters from the outputs of the step's function."""
        # Arguments that the loss lists but does not depend on get zero gradients.
        gradients = {name: jnp.zeros_like(value) for name, value in params.items()}
        gradients.update(zip(self._moving, outputs[len(self.metrics) + 1 :], strict=True))
        if self.placement is None:
            return gradients
        return {name: self.placement.constrained(name, one) for name, one in gradients.items()}

    def _updates(self, gradients: Arrays, state: Any, more: Arrays) -> Any:
        """Calls the optimizer; returns the updates and its new state.

        Raises:
            ArgumentError: the optimizer cannot be called with dicts of parameters and gradients, or
                with the extra arguments that it says it takes.
        """
        extra = {name: more[name] for name in more if name in self._extra}
        accepted = "dicts of gradients and parameters, and the extra arguments "
        with _calling_optimizer("step", accepted + (", ".join(extra) or "none")):
            return self.optimizer.update(gradients, state.opt_state, state.params, **extra)

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
        """Trains for some epochs over shuffled batches.

        Args:
            state: the initial state. Each step replaces it, so that after an exception, Ctrl-C
                included, it contains the state after the last step.
            data: an array for each input; the lengths of their first axes are equal. Of several
                processes, each gives the examples that it feeds, or ``share(data)``.
            epochs: the number of passes over the data.
            batch_size: the number of examples in a step, of all processes together; a smaller last
                batch is dropped. The process with the fewest examples determines the number of
                steps.
            seed: the seed of the shuffling. Each process shuffles its own examples, or, if they are
                shared, all of them as a single process would.
            progress: whether to show a progress bar; of several processes, the first one does.
                Without the package tqdm there is none, and one line of the log says so.
            after_epoch: called with the epoch, the state and the epoch's mean metrics; the metrics
                that it returns are added to these.

        Returns:
            The final state, and the metrics of each epoch, which are those of all processes.

        Raises:
            ArgumentError: there are fewer examples than a batch has, or arguments differ between
                processes.
        """
        facts = {"epochs": epochs, "seed": seed}
        plan = feeding(self.placement, data, self.inputs, batch_size, facts)
        generator = np.random.default_rng(seed)
        history: list[Arrays] = []
        shows = progress and jax.process_index() == 0
        with _bar(epochs * plan.steps, enabled=shows) as bar:
            for epoch in range(epochs):
                seen = []
                for batch in plan.batches(generator):
                    state, values = self.step(state, batch)
                    seen.append(values)
                    bar.update(1)
                means = {n: float(np.mean([float(v[n]) for v in seen])) for n in seen[0]}
                means.update((after_epoch(epoch, state, means) if after_epoch else None) or {})
                history.append(means)
                bar.set_postfix({name: f"{value:.4f}" for name, value in means.items()})
        return state, history


def _trainer_of(
    loss: Symbol, optimizer: Any, inputs: Any, metrics: Any, remat: Any, where: Any
) -> Trainer:
    """Rebuilds a trainer from a pickle; the symbols declare their shardings."""
    mesh = None if where is None else where.mesh()
    return Trainer(loss, optimizer, inputs=inputs, metrics=metrics, remat=remat, mesh=mesh)


@contextlib.contextmanager
def _calling_optimizer(owner: str, accepted: str) -> Iterator[None]:
    """Reports an error of the optimizer, which may name only the internals of a wrapper."""
    try:
        yield
    except SymopError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"{owner}: the optimizer must accept {accepted}, got {type(error).__name__}: {error}"
        ) from error


_EXTRA = ("value", "grad", "value_fn", "obj_fn", "grad_fn")
"""The extra arguments that an optimizer may take."""


def _extra_arguments(optimizer: Any) -> Collection[str]:
    """Returns the names of the extra arguments that the optimizer takes.

    Its signature decides, not its class: ``optax.MultiSteps`` takes them and is not a
    ``GradientTransformationExtraArgs``; ``optax.contrib.sam`` is one and takes only ``grad_fn``.

    Raises:
        ArgumentError: the optimizer lacks one of the functions ``init`` and ``update``.
    """
    init, update = (getattr(optimizer, name, None) for name in ("init", "update"))
    if not (callable(init) and callable(update)):
        raise ArgumentError(
            "Trainer: the optimizer must have the functions init and update, as those of optax do, "
            f"got {optimizer!r}"
        )
    taken = list(inspect.signature(update).parameters.values())
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken):
        return _EXTRA
    return {one.name for one in taken[len(("updates", "state", "params")) :]}


def _check_metrics(loss: Symbol, metrics: Mapping[str, Symbol]) -> None:
    """Rejects metrics that are not one value each, computed from the inputs of the loss."""
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
) -> Iterator[dict[str, Any]]:
    """Yields the examples of ``data`` in a new random order, in full batches."""
    length = common_length(data, list(data))
    return Feeding(None, data, length, batch_size, length // batch_size).batches(generator)


def share(data: Mapping[str, Any]) -> Share:
    """Says that each process has the whole of ``data``, of which it is to feed its share.

    ``Trainer.fit``, ``Trainer.step`` and ``Program.run`` take the result in place of the part of a
    process. Which examples a process feeds follows from the mesh: those that its devices hold, of
    the batch that a single process would have fed. The examples of a batch are read by the
    processes that feed them, so that the arrays may be larger than the memory (``np.load(path,
    mmap_mode="r")``). With one process the result is like ``data``.
    """
    return Share(data)


class _NoBar:
    """A progress bar that shows nothing, and does not need tqdm."""

    def update(self, count: int) -> None:
        """Does nothing."""

    def set_postfix(self, values: Mapping[str, str]) -> None:
        """Does nothing."""


def _bar(total: int, *, enabled: bool) -> Any:
    if not enabled:
        return contextlib.nullcontext(_NoBar())
    try:
        from tqdm import tqdm  # noqa: PLC0415  # optional dependency
    except ImportError:
        _say_that_no_bar_is_shown()
        return contextlib.nullcontext(_NoBar())
    return tqdm(total=total, unit="step")


@functools.cache
def _say_that_no_bar_is_shown() -> None:
    """Logs, once in a process, that the progress bar needs a package."""
    missing = missing_extra("progress bar of fit", "tqdm", "train")
    logging.getLogger(__name__).warning("%s; fit goes on without it", missing)


def initialize(symbol: Symbol, key: Any, **shapes: Sequence[int]) -> Arrays:
    """Returns initial arrays for every variable of ``symbol``.

    A variable with the attribute ``initial`` starts at that number or distribution. Others are
    normal with variance 2 / fan-in, where fan-in is the product of all axes but the first
    (He et al., "Delving Deep into Rectifiers", 2015); integer variables start at zero.
    """
    require_known("init", shapes, symbol.list_inputs())
    nodes = infer_variables(
        symbol.roots, {name: (tuple(shape), None) for name, shape in shapes.items()}
    )
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
    """Plots the metrics of each epoch: losses on the left axis, the others on the right.

    Args:
        history: the metrics that ``Trainer.fit`` returned.
        path: the file to which the figure is saved; None to not save it.

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
