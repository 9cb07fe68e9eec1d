"""One step of training as a pure function: forward, backward, update and averages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from registry.values import SelectedRows
from symop.runtime.placement import Placement
from symop.training.accumulation import accumulated
from symop.training.loss_scaling import adapted
from symop.training.precision import Precision
from symop.training.protocol import applies, calling_optimizer, require_dense
from symop.training.state import Arrays, Parts, ScaleState

FACTOR = "loss_scale"
"""The name of the input that holds the factor on the loss."""
_ROUNDING = 0x72646E67
"""The number that is folded into the key of a step to get the key of rounding."""
Decay = float | Callable[[Any], Any]


class Options(NamedTuple):
    """Options of a step other than forward pass, backward pass and update.

    Attributes:
        accumulate: the number of parts of a batch that are computed one after the other.
        precision: the dtypes.
        decay: the decay of the moving averages of parameters, a number or a function of the number
            of previous steps; None for no averages.
        placement: the mesh; None without.
    """

    accumulate: int
    precision: Precision
    decay: Decay | None
    placement: Placement | None


class Step:
    """A step of training as a function of the parts of a state and a batch.

    Attributes:
        extra: the names of the extra arguments that the optimizer takes.
    """

    def __init__(
        self,
        outputs: Callable[..., Any],
        value: Callable[..., Any],
        optimizer: Any,
        *,
        extra: Sequence[str],
        metrics: Sequence[str],
        moving: Sequence[str],
        options: Options,
    ) -> None:
        """Describes the step.

        Args:
            outputs: returns the loss, the metrics, and the gradients of ``moving``; with loss
                scaling, first the scaled loss, which is differentiated.
            value: returns the loss alone.
            optimizer: the optimizer.
            extra: the names of the extra arguments that the optimizer takes.
            metrics: the names of the metrics.
            moving: the names of the parameters that the loss depends on.
            options: what else the step does.
        """
        self._outputs, self._value, self._optimizer = outputs, value, optimizer
        self._extra, self._names, self._moving = extra, ["loss", *metrics], moving
        self._options = options
        self._scaling = options.precision.loss_scale

    def __call__(self, state: Parts, batch: Arrays) -> tuple[Parts, Arrays]:
        """Returns the parts of the next state, and the loss and metrics before the update."""
        key = jax.random.fold_in(state.key, state.step)
        values, gradients, states = self._evaluated(state, state.params, batch, key)
        params, opt_state = self._updated(gradients, state, batch, key, values["loss"])
        params = self._options.precision.rounded(params, jax.random.fold_in(key, _ROUNDING))
        new = Parts(
            params,
            states,
            opt_state,
            state.key,
            state.step + 1,
            self._averaged(state, params),
            state.scale,
        )
        if self._scaling is not None:
            new = self._kept_if_infinite(state, new, gradients)
        return new, self._options.precision.reported(values)

    def _evaluated(
        self, state: Parts, params: Arrays, batch: Arrays, key: Any
    ) -> tuple[Arrays, Arrays, Arrays]:
        """Returns the loss and metrics, the gradients, and the new states."""
        factor = {} if state.scale is None else {FACTOR: state.scale.factor}
        outputs, states = self._run(self._outputs, state, params, {**batch, **factor}, key)
        outputs = outputs if state.scale is None else outputs[1:]
        count = len(self._names)
        values = dict(zip(self._names, outputs[:count], strict=True))
        return values, self._gradients(state, outputs[count:], params), states

    def _run(
        self, function: Any, state: Parts, params: Arrays, batch: Arrays, key: Any
    ) -> tuple[list[Any], Arrays]:
        """Returns the outputs of a function of a graph, and the new states."""
        params = self._options.precision.used(params)

        def evaluate(batch: Arrays, states: Arrays, key: Any) -> tuple[list[Any], Arrays]:
            result = function(**batch, **params, **states, key=key)
            outputs, updated = result if function.states else (result, {})
            return list(outputs) if isinstance(outputs, list) else [outputs], updated

        if self._options.accumulate > 1:
            return accumulated(evaluate, batch, state.states, key, self._options.accumulate)
        outputs, updated = evaluate(batch, state.states, key)
        return outputs, {**state.states, **updated}

    def _gradients(self, state: Parts, moving: Sequence[Any], params: Arrays) -> Arrays:
        """Returns the gradients of all parameters from those of the parameters that move."""
        # Arguments that the loss lists but does not depend on get zero gradients.
        gradients = {name: jnp.zeros_like(value) for name, value in params.items()}
        gradients.update(zip(self._moving, moving, strict=True))
        if state.scale is not None:
            factor = state.scale.factor
            gradients = {name: _divided(one, factor) for name, one in gradients.items()}
        gradients = self._options.precision.optimized(gradients)
        placement = self._options.placement
        if placement is None:
            return gradients
        return {name: placement.constrained(name, one) for name, one in gradients.items()}

    def _updated(
        self, gradients: Arrays, state: Parts, batch: Arrays, key: Any, value: Any
    ) -> tuple[Arrays, Any]:
        """Calls the optimizer; returns the new parameters and its new state.

        Raises:
            ArgumentError: the optimizer cannot be called with dicts of parameters and gradients, or
                with the extra arguments that it says it takes.
        """
        own = self._options.precision.optimized(state.params)
        if applies(self._optimizer):
            new: tuple[Arrays, Any] = self._optimizer.apply(gradients, state.opt_state, own)
            return new

        # optax's line searches pass the extra arguments that they do not name on to value_fn.
        def value_of(params: Arrays, *, obj_fn: Any = None, grad_fn: Any = None) -> Any:
            return self._run(self._value, state, params, batch, key)[0][0]

        def gradients_of(params: Arrays, *_: Any) -> Arrays:  # sam also passes its inner step
            return self._evaluated(state, params, batch, key)[1]

        more: Mapping[str, Any] = {
            **{"value": value, "grad": gradients},
            **{"value_fn": value_of, "obj_fn": value_of, "grad_fn": gradients_of},
        }
        extra = {name: more[name] for name in more if name in self._extra}
        accepted = "dicts of gradients and parameters, and the extra arguments "
        with calling_optimizer("step", accepted + (", ".join(extra) or "none")):
            try:
                updates, opt_state = self._optimizer.update(
                    gradients, state.opt_state, own, **extra
                )
            except (TypeError, ValueError):
                require_dense(gradients)
                raise
        require_dense(updates)
        return optax.apply_updates(own, updates), opt_state

    def _averaged(self, state: Parts, params: Arrays) -> Arrays | None:
        """Returns the next moving averages of the parameters; None without."""
        decay = self._options.decay
        if decay is None or state.average is None:
            return None
        kept = decay(state.step) if callable(decay) else decay
        return {
            name: (kept * one + (1 - kept) * params[name]).astype(one.dtype)
            for name, one in state.average.items()
        }

    def _kept_if_infinite(self, old: Parts, new: Parts, gradients: Arrays) -> Parts:
        """Returns the new parts, or the old ones if a gradient is not finite; adapts the factor."""
        assert self._scaling is not None
        assert old.scale is not None
        finite = jnp.stack([jnp.isfinite(one).all() for one in jax.tree.leaves(gradients)]).all()
        chosen = jax.tree.map(
            lambda after, before: jnp.where(finite, after, before),
            (new.params, new.states, new.opt_state, new.average),
            (old.params, old.states, old.opt_state, old.average),
        )
        params, states, opt_state, average = chosen
        scale = ScaleState(*adapted(self._scaling, *old.scale, finite))
        return Parts(params, states, opt_state, new.key, new.step, average, scale)


def _divided(gradient: Any, factor: Any) -> Any:
    if isinstance(gradient, SelectedRows):
        return SelectedRows(gradient.rows, gradient.values / factor, gradient.height)
    return gradient / factor


def initial_average(params: Arrays, decay: Decay | None) -> Arrays | None:
    """Returns the averages before the first step, in at least float32; None without."""
    if decay is None:
        return None
    return {
        name: one.astype(jnp.promote_types(one.dtype, jnp.float32))
        for name, one in params.items()
        if jnp.issubdtype(one.dtype, jnp.inexact)
    }


def initial_scale(precision: Precision) -> ScaleState | None:
    """Returns the state of loss scaling before the first step; None without."""
    how = precision.loss_scale
    return None if how is None else ScaleState(jnp.float32(how.initial), jnp.int32(0))
