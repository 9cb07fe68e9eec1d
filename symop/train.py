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

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ArgumentError, BusyError, FeedError, UnknownTypeError
from registry.tracebacks import api_boundary, api_class
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.drawing.subject import Subject
from symop.graph.inference import infer_variables
from symop.graph.naming import require_known, variables_of
from symop.graph.nodes import Node, topological
from symop.graph.policies import Policy, require_policy
from symop.graph.shardings import Rules, undeclared, with_shardings
from symop.passes.mixed_precision import narrow
from symop.passes.roll_loops.stacks import Stacks
from symop.planning.activations import BatchFunction, shardings_on
from symop.random import as_key
from symop.runtime.donation import (
    ChangedError,
    DonatingStep,
    KeepsError,
    TracedError,
)
from symop.runtime.function import (
    Replaced,
    owners_of,
    specialize,
    stack_arrays,
    unstack_arrays,
)
from symop.runtime.initial import initial_values
from symop.runtime.packing import Packed, pack, unpack
from symop.runtime.placement import MeshRecord, Placement, current, placement_of
from symop.runtime.processes import Share, require_same
from symop.symbol.building import Group, grad, var
from symop.symbol.explaining import Computation, struct_of
from symop.symbol.symbol import Symbol
from symop.training.callbacks import Callback, EarlyStopping, Fit
from symop.training.evaluation import batches_of, pieces_of, weighted_means
from symop.training.feeding import Feeding, Shuffled, common_length, feeding, require_joined
from symop.training.history import History, plot_history
from symop.training.joining import Job, distributed
from symop.training.logs import JsonLines, TensorBoard
from symop.training.loop import Checkpoints, Loop, checkpoints_of
from symop.training.loss_scaling import LossScale
from symop.training.optimizers import optimizer
from symop.training.placing import StatePlacement, on_automatic_axes, shardings_of_state
from symop.training.precision import Precision, precision_of
from symop.training.progress import progress_bar
from symop.training.protocol import calling_optimizer, extra_arguments
from symop.training.state import Arrays, Parts, ScaleState, TrainState
from symop.training.step import (
    FACTOR,
    Decay,
    Options,
    Step,
    initial_average,
    initial_scale,
)
from symop.training.streams import Stream, prefetched

__all__ = [
    "Callback",
    "Checkpoints",
    "EarlyStopping",
    "Fit",
    "History",
    "Job",
    "JsonLines",
    "LossScale",
    "Precision",
    "ScaleState",
    "TensorBoard",
    "TrainState",
    "Trainer",
    "batches",
    "distributed",
    "initialize",
    "optimizer",
    "plot_history",
    "share",
]

_TIMES = 100
Batch = Mapping[str, Any]
_named_optimizer = optimizer


class _Function(BatchFunction):
    """A graph as a function, whose products are computed in a dtype of their own.

    Attributes:
        precision: the dtypes of products and of what lies between them.
    """

    def __init__(self, *given: Any, precision: Precision, **how: Any) -> None:
        """Creates the function as ``GraphFunction`` does."""
        self.precision = precision  # ``prepare`` reads it when the stacks are chosen
        super().__init__(*given, **how)

    def prepare(self, nodes: list[Node]) -> list[Node]:
        """Returns the graph with its casts and constraints."""
        dtype = self.precision.narrow
        if dtype is not None:
            nodes = narrow(nodes, dtype, eight_bits=self.precision.eight_bits)
        return super().prepare(nodes)


class _Unstacking:
    """A function that takes stacks, and calls another one with their single parameters.

    Attributes:
        states: the names of the auxiliary states of the function.
    """

    def __init__(self, function: _Function, stacks: Stacks) -> None:
        self._function, self._stacks = function, stacks
        self.states = function.states

    def __call__(self, *, key: Any, **arrays: Any) -> Any:
        return self._function(**unstack_arrays(self._stacks, arrays), key=key)


@api_class
class Trainer:
    """Trains the parameters of a loss: every argument of the symbol that is not an input.

    The step is compiled once: one program of forward, backward and update, which donates the old
    state to the new one. Batches may have other lengths than the inputs declare; the step is
    compiled for each. A trainer can be pickled if its optimizer can; optax's optimizers are
    closures, which the package ``cloudpickle`` supports and ``pickle`` does not.

    Attributes:
        parameters: the names of the parameters in a state.
        stacks: for each parameter that is a stack, the names of the variables in it.
    """

    @api_boundary
    def __init__(
        self,
        loss: Symbol,
        optimizer: Any,
        *,
        inputs: Sequence[str],
        metrics: Mapping[str, Symbol] | None = None,
        accumulate: int = 1,
        precision: Precision | str | None = None,
        ema: Decay | None = None,
        remat: Policy | None = None,
        stacked: bool = False,
        mesh: Any = None,
        rules: Rules | None = None,
    ) -> None:
        """Prepares to minimize ``loss``.

        Args:
            loss: a symbol of shape ``()``.
            optimizer: the name of an optimizer of optax (see ``optimizer``); an optimizer of
                ``so.optim``, which row-sparse gradients need; or an optax gradient transformation,
                or another object with its functions ``init`` and ``update``. Of the following,
                ``update`` receives the extra arguments that it takes: ``value`` and ``grad``, the
                loss and its gradients; ``value_fn`` (or ``obj_fn``) and ``grad_fn``, the loss and
                its gradients as functions of the parameters, on the batch of the step. The first
                step raises an ``ArgumentError`` if ``update`` cannot be called so:
                ``optax.lookahead`` and ``optax.contrib.dpsgd`` need other parameters or gradients,
                and ``optax.contrib.sam`` fails inside ``optax.chain`` and other wrappers, whose
                extra arguments it does not take.
            inputs: the names of the arguments that a batch feeds.
            metrics: further values to compute in each step, from arguments and states of the loss.
            accumulate: the number of parts of a batch that a step computes one after the other,
                to save memory. Loss, metrics and gradients are the means over the parts, which for
                a loss that is a mean over examples are those of the whole batch. States see
                one part after the other.
            precision: the dtype of matrix products and convolutions, such as ``"bfloat16"``, or a
                ``Precision``. Parameters, losses and statistics are of float32 unless it says
                otherwise.
            ema: the decay of exponential moving averages of the parameters, which start at the
                initial parameters: a number such as 0.999, or a function of the number of previous
                steps. They are part of the state, ``TrainState.average``.
            remat: the rematerialization policy (``so.remat``); by default all residuals are kept.
            stacked: whether parameters that a loop of repeated blocks reads one per step, such as
                the weights of its layers, are one array in the state, as with
                ``so.value_and_grad(..., stacked=True)``: ``stacks`` names them, ``stack`` and
                ``unstack`` convert. The optimizer updates that array as one parameter. All shapes
                must be declared, batches have no other lengths, and there is no mesh.
            mesh: the devices to train on, a ``jax.sharding.Mesh``. Parameters are whole on each
                device and inputs split by examples, over the mesh axis ``"data"`` or the only one,
                except where ``rules`` or ``so.var(..., sharding=...)`` say otherwise. The state of
                the optimizer is split like the parameters.
            rules: shardings by name of parameter, state or input, or by pattern, such as
                ``{"*_weight": (None, "model")}``; the first that matches counts.

        Raises:
            ArgumentError: an argument is invalid: the message says what must hold.
        """
        _check_arguments(loss, inputs)
        self.loss = loss
        self.optimizer = _named_optimizer(optimizer) if isinstance(optimizer, str) else optimizer
        extra = extra_arguments(self.optimizer)
        self.inputs = list(inputs)
        self.remat = require_policy("Trainer", remat)
        self.precision = precision_of(precision)
        self.accumulate, self.ema = accumulate, ema
        _check_numbers(accumulate, ema)
        self.metrics = _by_name(metrics or {})
        _check_metrics(loss, self.metrics)
        self.placement = self._placed(mesh, rules)
        self._trained = [n for n in self.loss.list_arguments() if n not in inputs]
        scaling = self.precision.loss_scale is not None
        scaled = [self.loss * var(FACTOR, (), "float32")] if scaling else []
        outputs, moving = [*scaled, self.loss, *self.metrics.values()], self._moving(self.loss)
        _check_stacked(stacked, self.placement, Group(outputs))
        self._stacked = stacked
        self._function = self._compiled(outputs, wrt=moving, stacking=stacked)
        self.stacks = _stacks_without(self.inputs, self._function.stacks)
        owners = owners_of(self.stacks)
        self.parameters = list(dict.fromkeys(owners.get(name, name) for name in self._trained))
        # The loss alone is for optimizers that evaluate it at other parameters.
        self._advance = Step(
            self._function,
            _Unstacking(self._compiled([self.loss]), self.stacks),
            self.optimizer,
            extra=list(extra),
            metrics=list(self.metrics),
            moving=self._function.wrt,
            options=Options(accumulate, self.precision, ema, self.placement),
        )
        self._fed = frozenset(self.inputs)
        self._step = DonatingStep(self._run)
        self._donate = self._step.donate
        self._places = None if self.placement is None else StatePlacement(self.placement)

    def __reduce__(self) -> tuple[Any, ...]:
        options = {
            **{"inputs": self.inputs, "metrics": self.metrics, "accumulate": self.accumulate},
            **{"precision": self.precision, "ema": self.ema, "remat": self.remat},
            **{"stacked": self._stacked},
        }
        return _trainer_of, (self.loss, self.optimizer, options, MeshRecord.of(self.placement))

    def _moving(self, loss: Symbol) -> list[str]:
        """Returns the parameters that a step updates: those that the loss reads."""
        read = variables_of([loss.node])
        return [name for name in self._trained if name in read]

    def _compiled(
        self,
        outputs: Sequence[Symbol],
        *,
        training: bool = True,
        wrt: Sequence[str] = (),
        stacking: bool = False,
    ) -> _Function:
        """Returns the function of some outputs, and of their gradients."""
        group = Group(outputs)
        function = _Function(
            group.nodes,
            group.also,
            training=training,
            wrt=wrt,
            remat=self.remat if training else None,
            stacking=stacking,
            precision=self.precision,
        )
        function.open(self.inputs)
        if self.placement is not None:
            variables = variables_of(group.roots)
            function.split(*shardings_on(self.placement, variables, self.inputs))
        return function

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

    def init(self, seed: Any = 0, **shapes: Any) -> TrainState:
        """Returns the state before the first step: random parameters, zero moments.

        Args:
            seed: the seed of the parameters and of the random numbers in steps, or a key of
                ``jax.random``.
            **shapes: the shapes of inputs that the graph does not declare, or arrays of that shape,
                such as a batch. If all inputs are declared, it may be of another length.

        Raises:
            ArgumentError: the optimizer does not accept the parameters, or arguments differ between
                processes.
        """
        key, shapes = _key_of(seed), _shapes_of(shapes)
        if self.placement is None:
            return TrainState(*self._initial(key, shapes))
        facts = {
            "the seed": seed if isinstance(seed, int) else jax.random.key_data(key).tolist(),
            "shapes": {name: list(one) for name, one in shapes.items()},
        }
        require_same("init", self.placement.mesh, facts)
        where = jax.tree.map(lambda one: one.sharding, self.struct(**shapes))
        start = jax.jit(lambda: TrainState(*self._initial(key, shapes)), out_shardings=where)
        with self.placement.current():
            state: TrainState = start()
        return state

    def struct(self, **shapes: Any) -> TrainState:
        """Returns the shapes, dtypes and shardings of a state, as ``jax.ShapeDtypeStruct``s.

        A checkpoint is restored like it. ``shapes`` are as for ``init``.
        """
        sizes = _shapes_of(shapes)
        parts = jax.eval_shape(lambda: self._initial(jax.random.key(0), sizes))
        if self.placement is None:
            return TrainState(*parts)
        where = shardings_of_state(self.placement, parts)
        struct: Any = jax.ShapeDtypeStruct
        structs = jax.tree.map(
            lambda one, at: struct(one.shape, one.dtype, sharding=at), parts, where
        )
        return TrainState(*structs)

    def _initial(self, key: Any, shapes: Mapping[str, Sequence[int]]) -> Parts:
        own, steps = jax.random.split(key)
        variables = variables_of(self.loss.roots)
        declared = {n for n in self.inputs if _declares(variables.get(n), shapes.get(n))}
        needed = {name: one for name, one in shapes.items() if name not in declared}
        arrays = _drawn(self.loss, own, needed, without=self.inputs)
        initial = self.stack({name: arrays[name] for name in self._trained})
        params = self.precision.kept(initial)
        states = self.stack({name: arrays[name] for name in self.loss.list_auxiliary_states()})
        with calling_optimizer("init", "a dict of parameters"):
            opt_state = self.optimizer.init(self.precision.optimized(params))
        average, scale = initial_average(initial, self.ema), initial_scale(self.precision)
        return Parts(params, states, opt_state, steps, jnp.int32(0), average, scale)

    def stack(self, arrays: Mapping[str, Any]) -> Arrays:
        """Converts arrays by variable name to those that a state holds, some of which are stacks.

        Raises:
            FeedError: some, but not all, variables of a stack are given.
        """
        return stack_arrays(self.stacks, arrays)

    def unstack(self, arrays: Mapping[str, Any]) -> Arrays:
        """Converts parameters or states of a state to arrays by variable name."""
        return unstack_arrays(self.stacks, arrays)

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
        # The usual case is handled here, since each further call lengthens the step of a small
        # model. The same, with all others, is in ``_replaced`` and ``Cell.start``.
        if (
            state.__class__ is TrainState
            and batch.__class__ is dict
            and batch.keys() == self._fed
            and self.placement is None
        ):
            cell = state._cell
            operands: list[Any] = []
            try:
                with cell.lock:
                    before = cell.last[0]
                    packed = before[0]
                    operands += packed, dict(batch)
                    if cell.given:
                        raise ChangedError  # a signal handler interrupts another step
                    cell.given = operands
                    last = cell.last  # any other step from here on empties ``operands``
                    if packed.__class__ is Packed and last[0] is before:
                        self._donate(last.extend, operands)
                        if last[0] is not before:
                            return state, last[0].pop()
            except (ChangedError, KeepsError, TracedError):
                pass
            finally:
                operands.clear()
        return self._general_step(state, batch)

    def _general_step(self, state: Any, batch: Batch) -> tuple[TrainState, Arrays]:
        """Takes a step in all other cases, or raises an error that tells what is wrong."""
        if not isinstance(state, TrainState):
            raise ArgumentError(
                "step: the state must come from init(...), and the batch follow it, as "
                f"step(state, batch), got a {type(state).__name__}"
            )
        _require_fed("step", batch, self.inputs)
        if self.placement is None:
            return self._stepped(state, dict(batch))
        placed = self.placement.put_feed("step", batch)
        with self.placement.around_call():
            new, values = self._stepped(state, placed)
        return new, self.placement.finished(values)

    def _stepped(self, state: TrainState, batch: Arrays) -> tuple[TrainState, Arrays]:
        """Takes a step, again if the state has changed meanwhile."""
        for _ in range(_TIMES):
            try:
                return state, self._replaced(state, batch)
            except ChangedError:
                pass
            except TracedError:
                state.prepare(self._places)
                new, values = self._step.inline((pack(state._parts()), batch))
                return TrainState(*new()), values
        raise BusyError(
            f"step: the state must not change during the step, got {_TIMES} steps of it by "
            "a callback, a signal handler or another thread"
        )

    def _replaced(self, state: TrainState, batch: Arrays) -> Any:
        """Takes a step, which replaces the content of ``state``; returns the loss and metrics."""
        cell = state._cell
        operands: list[Any] = [None, batch]
        try:
            with cell.lock:
                cell.start(operands)
                last = cell.last
                packed = state.packed(self._places)
                try:
                    operands[0] = packed
                except IndexError:  # a signal handler has emptied it
                    raise ChangedError from None
                return self._step.replace(last, operands).pop()
        except KeepsError:
            # A host callback may use the state, so the lock is not held while one runs.
            return self._step.replace_keeping(last, operands).pop()
        finally:
            operands.clear()

    def _run(self, state: Packed | TrainState, batch: Arrays) -> list[Any]:
        parts, advance = unpack(state), self._advance
        if self.placement is not None:
            values = dict.fromkeys(["loss", *self.metrics], self.placement.whole)
            results = shardings_of_state(self.placement, parts), values
            advance = on_automatic_axes(self.placement, advance, results)
        with current(self.placement):
            new, values = advance(parts, batch)
        joins = isinstance(state, Packed) and self.placement is None and state
        return [pack(new, joins=joins), values]

    # Evaluation

    def _computation(self, types: Mapping[str, Any], is_train: bool) -> Computation:
        """Returns what ``so.explain`` examines: a step."""
        del is_train
        subject = self._subject(types)
        log = Replaced([], [])
        settled = specialize(subject.outputs, {}, training=True, rolling=False, replaced=log)
        known = subject._replace(outputs=tuple(settled.outputs))
        return Computation(known, lambda: self._lowered(types), *map(tuple, log))

    def _lowered(self, types: Mapping[str, Any]) -> Any:
        """Lowers a step for a batch of ``types``, or of those that the inputs declare."""
        if self.placement is not None:
            raise ArgumentError(
                "explain: only a step on one device can be compiled here, got one on a mesh; "
                "so.plan tells its costs"
            )
        everything = Group([self._typed(self.loss, types), *self.metrics.values()])
        variables = variables_of(everything.roots)
        batch = {name: struct_of(variables[name].type) for name in self.inputs}
        shapes = {name: one.shape for name, one in batch.items()}
        state = jax.eval_shape(lambda: pack(self._initial(jax.random.key(0), shapes), joins=True))
        return self._step.lower(state, batch)

    def _typed(self, loss: Symbol, types: Mapping[str, Any]) -> Symbol:
        return loss.with_types(**types) if types else loss

    def _subject(self, types: Mapping[str, Any] = MappingProxyType({})) -> Subject:
        """Returns what drawings show: the loss, the metrics, and the gradients of a step."""
        loss = self._typed(self.loss, types)
        moving = self._moving(loss)
        whole = Group([loss, *self.metrics.values(), *(grad(loss, moving) if moving else [])])
        names = ["loss", *self.metrics, *(f"gradient of {name}" for name in moving)]
        roles = dict.fromkeys(self._trained, "parameter")
        return Subject(whole.nodes, tuple(names), roles, title="training step")

    def evaluate(
        self,
        state: TrainState,
        data: Any,
        *,
        batch_size: int | None = None,
        averaged: bool = False,
    ) -> dict[str, float]:
        """Returns the means of the loss and the metrics over all examples of ``data``.

        Operators behave as in prediction: dropout keeps all entries, and batch normalization uses
        its running statistics. A last, smaller batch counts by its number of examples.

        Args:
            state: the state, which stays as it is.
            data: as for ``fit``; of several processes, each gives ``share(data)``.
            batch_size: the number of examples to compute at once, of a dict of arrays; by default
                all of them.
            averaged: whether to use the moving averages of the parameters.

        Raises:
            ArgumentError: ``data`` has no examples, or there are no averages.
        """
        state.prepare(self._places)
        params, states = self._chosen(state, averaged=averaged), state.states
        key = jax.random.fold_in(jax.random.fold_in(state.key, state.step), 0)

        def evaluated(batch: Arrays) -> Arrays:
            _require_fed("evaluate", batch, self.inputs)
            if self.placement is None:
                return dict(self._evaluation(params, states, batch, key))
            placed = self.placement.put_feed("evaluate", batch)
            with self.placement.current():
                return self.placement.finished(self._evaluation(params, states, placed, key))

        pieces = pieces_of(self.placement, self.inputs)
        return weighted_means(evaluated, batches_of(data, self.inputs, batch_size, pieces))

    def _chosen(self, state: TrainState, *, averaged: bool) -> Arrays:
        """Returns the parameters, or their averages.

        Raises:
            ArgumentError: there are no averages.
        """
        if not averaged:
            return state.params
        if state.average is None:
            raise ArgumentError(
                "evaluate: with averaged=True, the trainer must keep averages (ema=0.999), got none"
            )
        return {**state.params, **state.average}

    @cached_property
    def _evaluation(self) -> Any:
        """The compiled loss and metrics in prediction, by name."""
        names = ["loss", *self.metrics]
        function = self._compiled([self.loss, *self.metrics.values()], training=False)

        def evaluated(params: Arrays, states: Arrays, batch: Arrays, key: Any) -> Arrays:
            arrays = self.unstack({**self.precision.used(params), **states})
            returned = function(**batch, **arrays, key=key)
            outputs = returned if isinstance(returned, list) else [returned]
            return self.precision.reported(dict(zip(names, outputs, strict=True)))

        if self.placement is not None:
            results = dict.fromkeys(names, self.placement.whole)
            return jax.jit(on_automatic_axes(self.placement, evaluated, results))
        return jax.jit(evaluated)

    # The loop

    def fit(
        self,
        state: TrainState,
        data: Any,
        *,
        epochs: int,
        batch_size: int | None = None,
        steps: int | None = None,
        seed: int = 0,
        validation: Any = None,
        averaged: bool = False,
        callbacks: Sequence[Any] = (),
        checkpoints: Any = None,
        progress: bool = True,
        prefetch: int = 2,
        after_epoch: Callable[[int, TrainState, Arrays], Arrays | None] | None = None,
    ) -> tuple[TrainState, History]:
        """Trains for some epochs.

        Args:
            state: the initial state. Each step replaces it, so that after an exception, Ctrl-C
                included, it contains the state after the last step.
            data: an array for each input, whose first axes have the same length, and of which
                each epoch takes the examples in a new random order; or an iterable of batches, such
                as a list, a loader of PyTorch or grain; or a function that returns an iterable,
                without arguments or of the number of the epoch. A batch is a dict, or a tuple in
                the order of ``inputs``. Of several processes, each gives the examples that it
                feeds, or ``share(data)``.
            epochs: the number of passes over the data.
            batch_size: the number of examples in a step, of all processes together, if ``data``
                holds arrays; a smaller last
                batch is dropped. The process with the fewest examples determines the number of
                steps.
            steps: the number of steps of an epoch, if ``data`` does not end or is an iterator.
            seed: the seed of the shuffling. Each process shuffles its own examples, or, if they are
                shared, all of them as a single process would.
            validation: the data for ``evaluate`` after each epoch, whose metrics are called
                ``val_loss`` and so on.
            averaged: whether validation uses the moving averages of the parameters.
            callbacks: functions of a ``Fit``, called after each epoch; or objects with some of the
                methods of ``Callback``, such as ``EarlyStopping``, ``JsonLines``, ``TensorBoard``.
            checkpoints: a ``so.checkpoint.Folder``, or ``Checkpoints``, which say how often it
                saves. If the folder holds a checkpoint, training goes on from the latest one, also
                in the middle of an epoch, and ends as it would have without the interruption, to
                the bit; an iterable is then asked for the batches of the epoch again.
            progress: whether to show a progress bar; of several processes, the first one does.
                Without the package tqdm there is none, and one line of the log says so.
            prefetch: the number of batches that are copied to an accelerator in advance.
            after_epoch: called with the epoch, the state and the epoch's metrics; the metrics
                that it returns are added to these.

        Returns:
            The final state, and the metrics of each epoch, which are those of all processes.

        Raises:
            ArgumentError: there are fewer examples than a batch has, an argument is invalid, or
                arguments differ between processes.
        """
        facts = {"epochs": epochs, "seed": seed}
        source = self._source(data, batch_size, steps, seed, facts, prefetch)
        shows = progress and jax.process_index() == 0
        total = None if source.steps is None else epochs * source.steps

        def validate(state: TrainState) -> dict[str, float]:
            return self.evaluate(state, validation, batch_size=batch_size, averaged=averaged)

        loop = Loop(
            self.step,
            source,
            callbacks=list(callbacks),
            checkpoints=checkpoints_of(checkpoints),
            validate=None if validation is None else validate,
            after_epoch=after_epoch,
        )
        run = Fit(state, epochs, source.steps, step=int(state.step))
        loop.run(
            run,
            lambda run: progress_bar(
                total, run.epoch * (source.steps or 0) + run.position, enabled=shows
            ),
        )
        return run.state, run.history

    def _source(
        self,
        data: Any,
        batch_size: int | None,
        steps: int | None,
        seed: int,
        facts: Mapping[str, Any],
        prefetch: int,
    ) -> "_Prefetching":
        """Returns the batches of each epoch."""
        if isinstance(data, Mapping):
            if batch_size is None:
                raise ArgumentError("fit: batch_size must be given with a dict of arrays, got none")
            plan = feeding(self.placement, data, self.inputs, batch_size, facts)
            if steps is not None:
                plan = plan._replace(steps=min(steps, plan.steps))
            return _Prefetching(Shuffled(plan, seed), prefetch, self.placement)
        require_joined(self.placement)
        return _Prefetching(Stream("fit", data, self.inputs, steps), prefetch, self.placement)


class _Prefetching:
    """The batches of each epoch, copied to the devices in advance.

    Attributes:
        steps: the number of steps of an epoch; None if only the data knows it.
    """

    def __init__(self, source: Shuffled | Stream, count: int, placement: Placement | None) -> None:
        self._source, self._count, self._placement = source, count, placement
        self.steps = source.steps

    def batches(self, epoch: int, skip: int = 0) -> Iterator[dict[str, Any]]:
        """Yields the batches of an epoch, without the first ``skip`` of them."""
        return prefetched(self._source.batches(epoch, skip), self._count, self._placement)


def _trainer_of(loss: Symbol, optimizer: Any, options: Mapping[str, Any], where: Any) -> Trainer:
    """Rebuilds a trainer from a pickle; the symbols declare their shardings."""
    return Trainer(loss, optimizer, **options, mesh=None if where is None else where.mesh())


def _shapes_of(shapes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of inputs, of which arrays may be given."""
    return {name: tuple(getattr(one, "shape", one)) for name, one in shapes.items()}


def _declares(variable: Node | None, shape: Sequence[int] | None) -> bool:
    """Whether a variable declares this shape, up to the number of examples."""
    if variable is None or variable.types is None or shape is None:
        return False
    known = variable.type.shape
    return len(known) == len(shape) and known[1:] == tuple(shape)[1:]


def _key_of(seed: Any, *, owner: str = "init") -> Any:
    """Returns the random key of a seed, or the key that is given in place of one."""
    try:
        return jax.random.key(operator.index(seed))
    except TypeError:  # it is no integer
        pass
    try:
        return as_key(seed)
    except FeedError:
        raise ArgumentError(
            f"{owner}: seed must be an integer or a random key (jax.random.key(0)), got {seed!r}"
        ) from None


def _check_numbers(accumulate: Any, ema: Any) -> None:
    if not isinstance(accumulate, int) or accumulate < 1:
        raise ArgumentError(f"Trainer: accumulate must be an integer from 1 on, got {accumulate!r}")
    if ema is not None and not callable(ema) and not 0 <= ema < 1:
        raise ArgumentError(f"Trainer: ema must be at least 0 and less than 1, got {ema!r}")


def _check_stacked(stacked: bool, placement: Placement | None, outputs: Symbol) -> None:
    """Checks that stacks are possible: all shapes are known, and there is no mesh.

    Raises:
        ArgumentError: there is a mesh.
        UnknownTypeError: a shape is not declared.
    """
    if not stacked:
        return
    if placement is not None:
        raise ArgumentError("Trainer: with stacked=True there must be no mesh, got one")
    if any(node.types is None for node in topological(outputs.roots)):
        raise UnknownTypeError(
            "Trainer: with stacked=True all shapes must be declared, or given by "
            "loss.with_types(...), since the parameters of a state follow from them"
        )


def _stacks_without(inputs: Collection[str], stacks: Stacks) -> Stacks:
    """Returns ``stacks``, after a check that they hold no input.

    Raises:
        ArgumentError: one does.
    """
    for members in stacks.values():
        fed = [one for one in members if one in inputs]
        if fed:
            raise ArgumentError(
                f"Trainer: with stacked=True inputs must not be read by a loop, one in each step, "
                f"got {', '.join(fed)}"
            )
    return stacks


def _check_arguments(loss: Any, inputs: Any) -> None:
    """Rejects a loss that is not one number, and inputs that are not names of its arguments."""
    if not isinstance(loss, Symbol):
        raise ArgumentError(
            f"Trainer: the loss must be a symbol, got a {type(loss).__name__}; so.from_jax makes "
            "functions of JAX symbols, and so.optim trains programs"
        )
    if isinstance(inputs, str) or not all(isinstance(one, str) for one in inputs):
        raise ArgumentError(f"Trainer: inputs must be a list of names, got {inputs!r}")
    require_known("Trainer", inputs, loss.list_arguments())
    if len(loss.nodes) == 1 and loss.node.types is not None and loss.shape != ():
        raise ArgumentError(
            f"Trainer: the loss must be of shape (), got {loss.shape}; so.mean(loss) is a number"
        )


def _by_name(metrics: Any) -> dict[str, Symbol]:
    """Returns a copy of the metrics.

    Raises:
        ArgumentError: they are not symbols by name.
    """
    if not isinstance(metrics, Mapping):
        raise ArgumentError(
            "Trainer: metrics must be a dict of symbols by name, such as {'accuracy': ...}, got "
            f"a {type(metrics).__name__}"
        )
    for name, metric in metrics.items():
        if not isinstance(metric, Symbol):
            raise ArgumentError(
                f"Trainer: the metric {name!r} must be a symbol, got a {type(metric).__name__}"
            )
    return dict(metrics)


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


def _require_fed(owner: str, batch: Batch, inputs: Sequence[str]) -> None:
    """Checks that a batch holds the inputs, and nothing else.

    Raises:
        ArgumentError: it is not a dict.
        FeedError: it does not.
    """
    if isinstance(batch, (list, tuple)):
        raise ArgumentError(
            f"{owner}: the batch must be a dict of arrays by name ({', '.join(inputs)}), got a "
            f"{type(batch).__name__}"
        )
    require_known(owner, batch, inputs)
    missing = [name for name in inputs if name not in batch]
    if missing:
        raise FeedError(
            f"{owner}: the batch must hold {', '.join(inputs)}, got no {', '.join(missing)}"
        )


@api_boundary
def batches(
    data: Mapping[str, np.ndarray], batch_size: int, generator: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Yields the examples of ``data`` in a new random order, in full batches."""
    length = common_length(data, list(data))
    feeding = Feeding(None, data, length, batch_size, length // batch_size)
    return feeding.batches(generator.permutation(length))


@api_boundary
def share(data: Mapping[str, Any]) -> Share:
    """Says that each process has the whole of ``data``, of which it is to feed its share.

    ``Trainer.fit``, ``Trainer.step`` and ``Program.run`` take the result in place of the part of a
    process. Which examples a process feeds follows from the mesh: those that its devices hold, of
    the batch that a single process would have fed. The examples of a batch are read by the
    processes that feed them, so that the arrays may be larger than the memory (``np.load(path,
    mmap_mode="r")``). With one process the result is like ``data``.
    """
    return Share(data)


@api_boundary
def initialize(symbol: Symbol, key: Any, **shapes: Sequence[int]) -> Arrays:
    """Returns initial arrays for every variable of ``symbol``.

    Args:
        symbol: the symbol.
        key: an integer, or a random key (``jax.random.key(0)``).
        **shapes: shapes of variables by name, where the symbol does not know them.

    A variable starts at its ``initial``, which ``so.var`` and layers take; by default, what is only
    added to data starts at zero, what only scales data at one, integers at zero, and others are
    normal with variance 2 / fan-in (He et al., "Delving Deep into Rectifiers", 2015). The fan-in
    follows from the use of the variable in the graph: it is the number of terms in a sum of the
    product that it is a factor of.

    Raises:
        ArgumentError: an initializer does not fit its variable; the message names both.
    """
    return _drawn(symbol, _key_of(key, owner="initialize"), shapes)


def _drawn(
    symbol: Symbol, key: Any, shapes: Mapping[str, Sequence[int]], without: Collection[str] = ()
) -> Arrays:
    """Returns initial arrays for the variables of ``symbol`` that are not in ``without``."""
    require_known("init", shapes, symbol.list_inputs())
    nodes = infer_variables(
        symbol.roots, {name: (tuple(shape), None) for name, shape in shapes.items()}
    )
    variables = variables_of(nodes)
    keys = jax.random.split(key, max(len(variables), 1))
    wanted = [(name, i) for i, name in enumerate(variables) if name not in without]
    return initial_values(
        {name: variables[name] for name, _ in wanted}, nodes, [keys[i] for _, i in wanted]
    )
