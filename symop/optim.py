"""Optimizers for programs: ``so.optim.Adam(1e-3).minimize(loss)`` appends backward and update.

Each optimizer applies an operator of the registry in place, as an update of the program. One
compiled step then contains the forward pass, the backward pass and the update. A trainer takes
these optimizers, too: ``train.Trainer(loss, so.optim.Adam(1e-3, lazy=True), ...)``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

import jax.numpy as jnp

from registry.errors import ArgumentError, ProgramError, nearest
from registry.operator.operator import Operator
from registry.table import get
from registry.tracebacks import api_boundary, api_class
from registry.types import VarKind
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.program.backward import Pairs, append_backward
from symop.program.block import Block, Variable
from symop.training.clipping import Clip, ClipByGlobalNorm, ClipByNorm, ClipByValue
from symop.training.loss_scaling import LossScale, Scaling

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ClipByGlobalNorm",
    "ClipByNorm",
    "ClipByValue",
    "Ftrl",
    "Lamb",
    "LossScale",
    "Momentum",
    "Optimizer",
    "RMSProp",
]

Schedule = Callable[[Variable], Variable]
"""A learning rate as a function of the number of previous steps."""


@api_class
class Optimizer:
    """Base class of optimizers, which update parameters with an operator of the registry.

    A row-sparse gradient updates only its rows if the operator is exact on rows (``sgd``,
    ``adagrad``) or with ``lazy=True``, which leaves the moments of the other rows unchanged.
    Otherwise the step is that of the dense gradient, over the whole table.

    Attributes:
        operator: the operator's name.
        initial: the values of its states before the first step, if not zero.
    """

    operator: ClassVar[str]
    initial: Mapping[str, float]
    _initial: ClassVar[Mapping[str, float]] = {}

    @api_boundary
    def __init__(
        self,
        learning_rate: float | Schedule,
        *,
        weight_decay: float | None = None,
        clip: Clip | None = None,
        accumulate: int = 1,
        loss_scale: LossScale | None = None,
        initial: Mapping[str, float] | None = None,
        **attributes: Any,
    ) -> None:
        """Configures the optimizer.

        Args:
            learning_rate: a number, or a function of the number of previous steps (a variable),
                such as ``lambda step: so.exponential_decay(step, init_value=0.1, ...)``.
            weight_decay: for an operator with this attribute (``adamw``, ``lamb``), its value, by
                default the operator's. For other operators, coupled weight decay, by default zero:
                ``weight_decay`` times the parameter is added to the gradient.
            clip: applied to all gradients first, such as ``ClipByGlobalNorm(1.0)``.
            accumulate: the number of runs whose gradients are averaged for each step.
            loss_scale: the loss scaling, for forward passes in half precision.
            initial: the initial values of states, by name.
            **attributes: attributes of the operator, such as ``b1`` or ``nesterov``; and ``lazy``,
                which leaves rows that are not in a row-sparse gradient unchanged, also by coupled
                decay.

        Raises:
            ArgumentError: the operator has no such attribute or state; or ``accumulate`` is less
                than 1.
        """
        if isinstance(learning_rate, (str, bool)) or learning_rate is None:
            raise ArgumentError(
                "learning_rate: it must be a number, or a function of the number of steps, got "
                f"{learning_rate!r}"
            )
        if accumulate < 1:
            raise ArgumentError(f"accumulate: it must be at least 1, got {accumulate}")
        self.learning_rate, self.clip = learning_rate, clip
        self.accumulate, self.loss_scale = accumulate, loss_scale
        operator = self._chosen()
        self.lazy = bool(attributes.get("lazy", False))
        if "lazy" not in operator.attribute_index:
            attributes.pop("lazy", None)
        self.attributes = attributes
        own = "weight_decay" in operator.attribute_index
        if own and weight_decay is not None:
            self.attributes = {"weight_decay": weight_decay, **attributes}
        self.coupled_decay = 0.0 if own else weight_decay or 0.0
        self.initial = {**self._initial, **(initial or {})}
        _require_among(operator, "attribute", self.attributes, list(operator.attribute_index))
        _require_among(operator, "state", self.initial, _state_slots(operator))

    def _chosen(self) -> Operator:
        return get(self.operator)

    def minimize(
        self,
        loss: Variable,
        parameter_list: Sequence[Variable | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> Pairs:
        """Appends the backward pass and the update to the program of ``loss``.

        Args:
            loss: a scalar.
            parameter_list: the parameters to train; by default all that the loss depends on.
            no_grad_set: variables through which no gradient flows.

        Returns:
            Pairs of a parameter and its gradient before clipping. With a ``loss_scale`` the
            gradients are those of the scaled loss.

        Raises:
            GradientError: see ``append_backward``.
            ProgramError: a parameter already has an optimizer.
        """
        if not isinstance(loss, Variable):
            raise ArgumentError(
                "minimize: the loss must be a variable of a program, got a "
                f"{type(loss).__name__}; train.Trainer minimizes symbols"
            )
        with loss.block.atomically():
            scaling = None if self.loss_scale is None else Scaling(loss.block, self.loss_scale)
            head = None if scaling is None else get("cast")(scaling.factor, dtype=loss.dtype)
            pairs = append_backward(loss, parameter_list, no_grad_set, head)
            self._apply(pairs, scaling)
        return pairs

    def apply_gradients(self, pairs: Pairs) -> None:
        """Appends the update of parameters by gradients that the program computes.

        Args:
            pairs: parameters, each with its dense or row-sparse gradient; a parameter whose
                gradient is None is not updated.

        Raises:
            ArgumentError: ``pairs`` is empty; or the optimizer has a ``loss_scale``, whose factor
                only ``minimize`` can apply to the loss.
            ProgramError: a parameter already has an optimizer.
        """
        _require_some(pairs)
        if self.loss_scale is not None:
            raise ArgumentError(
                "apply_gradients: there must be no loss_scale, whose factor minimize puts on the "
                "loss, got one"
            )
        with pairs[0][0].block.atomically():
            self._apply(pairs, None)

    def _apply(self, pairs: Pairs, scaling: "Scaling | None") -> None:
        _require_some(pairs)
        block = pairs[0][0].block
        moving = [(one, gradient) for one, gradient in pairs if gradient is not None]
        for parameter, _ in moving:
            if parameter.name in block.desc.updates:
                raise ProgramError(
                    f"minimize: a parameter must have one optimizer, but {parameter.name!r} is "
                    "updated already"
                )
        gradients = [gradient for _, gradient in moving]
        gate: Variable | None = None
        if scaling is not None:
            gradients, gate = scaling.unscaled(gradients)
        if self.accumulate > 1:
            gradients, gate = self._accumulated(block, gradients, gate)
        if self.clip is not None:
            gradients = self.clip(gradients)
        step = _Counter(block, self.operator, gate)
        rate = self.learning_rate(step.count) if callable(self.learning_rate) else None
        for (parameter, _), gradient in zip(moving, gradients, strict=True):
            self._update(parameter, gradient, step.count, rate, gate)

    def _accumulated(
        self, block: Block, gradients: Sequence[Variable], finite: Variable | None
    ) -> tuple[list[Variable], Variable]:
        """Returns gradients averaged over ``accumulate`` runs, and whether this is the last run."""
        place = _Cycle(block, self.operator, self.accumulate, finite)
        sums = []
        for one in gradients:
            total = _kept(block, f"{one.name}.total", one)
            whole = get("accumulate_rows")(total, one, places=self.accumulate)
            block.set_update(total.name, get("let_through")(whole, place.goes_on).name)
            mean = get("scale")(whole, scale=1.0 / self.accumulate)
            sums.append(get("let_through")(mean, place.ends))
        return sums, place.ends

    def _update(
        self,
        parameter: Variable,
        gradient: Variable,
        step: Variable,
        rate: Variable | None,
        gate: Variable | None,
    ) -> None:
        operator, block = self._chosen(), parameter.block
        states = {
            slot: _kept(block, f"{parameter.name}.{slot}", parameter, self.initial.get(slot, 0.0))
            for slot in _state_slots(operator)
        }
        after = self._stepped(parameter, gradient, states, step, rate)
        # A row-sparse update without rows does nothing; a gate would cost the whole table.
        gated = gate is not None and not (
            gradient.kind is VarKind.SELECTED_ROWS and self._by_rows()
        )
        for slot, before in {"param": parameter, **states}.items():
            new = get("where")(gate, after[slot], before) if gated else after[slot]
            block.set_update(before.name, new.name)

    def _stepped(
        self, parameter: Any, gradient: Any, states: Mapping[str, Any], step: Any, rate: Any
    ) -> dict[str, Any]:
        """Returns the new parameter and states by slot, for values of any kind."""
        operator = self._chosen()
        if self.coupled_decay:
            gradient = get("add_decayed_weights")(
                gradient, parameter, weight_decay=self.coupled_decay, lazy=self.lazy
            )
        slots = {"param": parameter, "grad": gradient, **states}
        slots["learning_rate"] = self.learning_rate if rate is None else rate
        if "step" in operator.slot_index:
            slots["step"] = step
        result = operator(**slots, **self.attributes)
        values = result if isinstance(result, tuple) else (result,)
        by_output = dict(zip(operator.outputs, values, strict=True))
        return {slot: by_output[output] for slot, output in operator.inplace.items()}

    # Arrays

    def init(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the state of the optimizer before the first step, for ``train.Trainer``.

        Raises:
            ArgumentError: the optimizer accumulates gradients or scales the loss, which a trainer
                does itself.
        """
        if self.accumulate > 1 or self.loss_scale is not None:
            raise ArgumentError(
                f"{type(self).__name__}: in a trainer, accumulate and loss_scale must be those of "
                "Trainer(accumulate=..., precision=...), got an optimizer with its own"
            )
        slots = {slot: self.initial.get(slot, 0.0) for slot in _state_slots(self._chosen())}
        states = {
            name: {slot: jnp.full_like(one, value) for slot, value in slots.items()}
            for name, one in params.items()
        }
        return {"step": jnp.int32(0), "states": states}

    def apply(
        self, gradients: Mapping[str, Any], state: Mapping[str, Any], params: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the parameters and the state after a step, for ``train.Trainer``.

        Args:
            gradients: dense or row-sparse arrays, by name of parameter.
            state: the state before, as ``init`` or ``apply`` returns it.
            params: the parameters before.
        """
        names, step = list(params), state["step"]
        slopes: Sequence[Any] = [gradients[name] for name in names]
        slopes = slopes if self.clip is None else self.clip(slopes)
        rate = self.learning_rate(step) if callable(self.learning_rate) else None
        after = {
            name: self._stepped(params[name], slope, state["states"][name], step, rate)
            for name, slope in zip(names, slopes, strict=True)
        }
        new = {name: one.pop("param") for name, one in after.items()}
        return new, {"step": step + 1, "states": after}

    def _by_rows(self) -> bool:
        """Whether a row-sparse gradient updates only its rows: exactly, or lazily on request."""
        return self.lazy or "lazy" not in self._chosen().attribute_index


def _require_some(pairs: Pairs) -> None:
    if not pairs:
        raise ArgumentError("minimize: the loss must depend on a parameter, got none")


def _state_slots(operator: Operator) -> list[str]:
    return [slot for slot in operator.inplace if slot != "param"]


def _require_among(
    operator: Operator, what: str, names: Mapping[str, Any], legal: Sequence[str]
) -> None:
    for name in names:
        if name not in legal:
            raise ArgumentError(
                f"{operator.name}: the {what}s must be among {', '.join(legal) or 'none'}, got "
                f"{name!r}{nearest(name, legal)}"
            )


def _kept(block: Block, name: str, like: Variable, initial: float = 0.0) -> Variable:
    """Declares a state of the type of ``like``."""
    free, type = block.free(name), like.type
    return block.declare(
        "state", free, type.shape, type.dtype, initial=initial, stops=True, kind=type.kind.value
    )


class _Counter:
    """A counter of previous steps; runs in which ``gate`` is false do not count."""

    def __init__(self, block: Block, owner: str, gate: Variable | None) -> None:
        self.count = block.declare(
            "state", block.free(f"{owner}.step"), (), "int32", initial=0, stops=True
        )
        more = (
            get("add")(self.count, 1)
            if gate is None
            else self.count + get("cast")(gate, dtype="int32")
        )
        block.set_update(self.count.name, more.name)


class _Cycle:
    """The position of a run among those whose gradients are accumulated."""

    def __init__(self, block: Block, owner: str, length: int, finite: Variable | None) -> None:
        """Declares the counter; runs whose gradients are not finite do not count."""
        self.count = block.declare(
            "state", block.free(f"{owner}.place"), (), "int32", initial=0, stops=True
        )
        where, last = get("where"), get("equal")(self.count, length - 1)
        self.ends: Variable = last if finite is None else get("logical_and")(last, finite)
        self.goes_on: Variable = get("logical_not")(self.ends)
        after = self.count + 1 if finite is None else where(finite, self.count + 1, self.count)
        block.set_update(self.count.name, where(self.ends, 0, after).name)


class SGD(Optimizer):
    """Gradient descent: the operator ``sgd``.

    Example:
        >>> import symop as so
        >>> with so.program_guard(so.Program()) as program:
        ...     w = so.parameter("w", (2,), initial=1.0)
        ...     loss = so.sum(w * w)
        >>> pairs = so.optim.SGD(0.25).minimize(loss)
        >>> [float(program.run(fetch=loss)) for _ in range(3)]
        [2.0, 0.5, 0.125]
    """

    operator = "sgd"


class Momentum(Optimizer):
    """Gradient descent with momentum, or Nesterov's: the operator ``momentum``."""

    operator = "momentum"


class Adagrad(Optimizer):
    """The operator ``adagrad``; the accumulated squares start at 0.1 by default."""

    operator = "adagrad"
    _initial: ClassVar[Mapping[str, float]] = {"moment": 0.1}


class RMSProp(Optimizer):
    """The operator ``rmsprop``; with ``mu`` or ``nesterov``, ``rmsprop_momentum``."""

    operator = "rmsprop"

    def __init__(
        self, learning_rate: float | Schedule, *, centered: bool = False, **others: Any
    ) -> None:
        """Configures the optimizer.

        With ``centered``, gradients are divided by their standard deviation rather than their root
        mean square (``rmsprop_centered``).
        """
        self.centered = centered
        self.with_momentum = "mu" in others or "nesterov" in others
        super().__init__(learning_rate, **others)

    def _chosen(self) -> Operator:
        if self.centered:
            return get("rmsprop_centered")
        return get("rmsprop_momentum" if self.with_momentum else "rmsprop")


class Adam(Optimizer):
    """The operator ``adam``."""

    operator = "adam"


class AdamW(Optimizer):
    """Adam with decoupled weight decay: the operator ``adamw``."""

    operator = "adamw"


class Adamax(Optimizer):
    """The operator ``adamax``."""

    operator = "adamax"


class Adadelta(Optimizer):
    """The operator ``adadelta``."""

    operator = "adadelta"


class Lamb(Optimizer):
    """The operator ``lamb``, for large batches."""

    operator = "lamb"


class Ftrl(Optimizer):
    """Follow the regularized leader: the operator ``ftrl``; squares start at 0.1 by default."""

    operator = "ftrl"
    _initial: ClassVar[Mapping[str, float]] = {"squared": 0.1}
