"""Optimizers: gradients, regularization, clipping and Paddle's operators of updates."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from symop.interop.paddle import unique_name
from symop.interop.paddle.backward import append_backward
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import OpDesc, VarKind
from symop.interop.paddle.guards import (
    default_startup_program,
    program_guard,
    role_guard,
)
from symop.interop.paddle.programs import Block, Program, Slots, Variable
from symop.interop.paddle.roles import OPTIMIZE, SCHEDULE
from symop.interop.paddle.static.clip import Clip
from symop.interop.paddle.static.initializer import Constant
from symop.interop.paddle.static.parameters import create_global_var, initialize
from symop.interop.paddle.static.regularizer import L2Decay, Regularizer

Pairs = list[tuple[Variable, Variable]]
"""Parameters, each with its gradient."""


class State(NamedTuple):
    """A variable that an optimizer keeps for each parameter.

    Attributes:
        name: follows the parameter's name.
        slot: the input slot; the output slot ends in ``Out``.
        output: the output slot, if its name is another.
        value: the initial value.
        scalar: whether it has one entry, not the shape of the parameter.
        written: whether the operator writes it.
    """

    name: str
    slot: str
    output: str = ""
    value: float = 0.0
    scalar: bool = False
    written: bool = True


class Optimizer:
    """Appends updates of parameters to a program.

    Attributes:
        type: the operator of the update.
        states: the variables that it keeps for each parameter.
        takes_rate: whether the operator reads a learning rate.
    """

    type = ""
    states: tuple[State, ...] = ()
    takes_rate = True

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        parameter_list: Sequence[Any] | None = None,
        regularization: Regularizer | float | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
        *,
        parameters: Sequence[Any] | None = None,
        weight_decay: Regularizer | float | None = None,
    ) -> None:
        """Takes what all optimizers have in common.

        Args:
            learning_rate: the rate, or a variable that a schedule computes.
            parameter_list: what is trained, by default all parameters.
            regularization: adds a term to gradients; a number is the factor of ``L2Decay``.
            grad_clip: clips gradients.
            name: accepted as in Paddle.
            parameters: the name of ``parameter_list`` in Paddle 2.
            weight_decay: the name of ``regularization`` in Paddle 2.
        """
        decay = regularization if weight_decay is None else weight_decay
        self.learning_rate = learning_rate
        self.parameter_list = parameter_list if parameters is None else parameters
        self.regularization = L2Decay(decay) if isinstance(decay, (int, float)) else decay
        self.grad_clip = grad_clip
        self.name = name
        self._rates: dict[int, Variable] = {}
        self._attrs: dict[str, Any] = {}

    def attributes(self, parameter: Variable) -> Mapping[str, Any]:
        """Returns the attributes of the update of a parameter."""
        del parameter
        return self._attrs

    # Steps of Paddle's interface -----------------------------------------------------------------

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Any] | None = None,
        no_grad_set: Any = None,
    ) -> tuple[list[OpDesc], Pairs]:
        """Appends gradients and updates to the program of a loss.

        Args:
            loss: a variable with one entry.
            startup_program: gives the optimizer's variables their initial values.
            parameter_list: what is trained, by default all parameters.
            no_grad_set: variables that count as constants.

        Returns:
            The updates, and the parameters with their gradients.
        """
        startup = startup_program or default_startup_program()
        with program_guard(loss.program, startup):
            pairs = self.backward(loss, startup, parameter_list, no_grad_set)
            return self.apply_gradients(pairs), pairs

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Any] | None = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> Pairs:
        """Appends gradients alone; see ``append_backward``."""
        del startup_program
        chosen = parameter_list if parameter_list is not None else self.parameter_list
        return append_backward(loss, chosen, no_grad_set, callbacks)

    def apply_gradients(self, params_grads: Pairs) -> list[OpDesc]:
        """Appends updates by gradients and returns them.

        Raises:
            PaddleError: there is no parameter, or the gradients are those of a branch that is
                complete, or are to be clipped there.
        """
        if not params_grads:
            raise PaddleError("minimize: the loss must depend on parameters, got none")
        pairs = sorted(params_grads, key=lambda one: one[0].name)
        block = pairs[0][1].block
        self._require_place(block)
        with program_guard(block.program, default_startup_program()):
            if self.grad_clip is not None:
                pairs = self.grad_clip(pairs)
            pairs = [self._regularized(one, grad, block) for one, grad in pairs]
            root = block.program.global_block()
            kept = [self._states_of(one, root) for one, _ in pairs]
            rate = self._rate(block.program)
            updates = [
                self._update(one, grad, states, rate, block)
                for (one, grad), states in zip(pairs, kept, strict=True)
            ]
            for (one, grad), states in zip(pairs, kept, strict=True):
                with role_guard(block.program, OPTIMIZE, (one.name, grad.name)):
                    self._finish(states, block)
            return updates

    def apply_optimize(
        self, loss: Variable, startup_program: Program, params_grads: Pairs
    ) -> list[OpDesc]:
        """Appends updates by gradients; see ``apply_gradients``."""
        with program_guard(loss.program, startup_program):
            return self.apply_gradients(params_grads)

    def _require_place(self, block: Block) -> None:
        """Raises an error where updates cannot be appended to the block of gradients."""
        inside = block.program.current_block().idx
        if inside not in (block.idx, block.desc.forward_block_idx):
            raise PaddleError(
                "apply_gradients: it must be called in the branch that the gradients are made in, "
                f"got it in block {inside}"
            )
        if block.idx and self.grad_clip is not None:
            raise PaddleError(
                "minimize: gradients in a branch must not be clipped, got grad_clip; Paddle "
                "refuses it"
            )

    # Parts ---------------------------------------------------------------------------------------

    def _regularized(
        self, parameter: Variable, gradient: Variable, block: Block
    ) -> tuple[Variable, Variable]:
        rule = parameter.training.regularizer or self.regularization
        if rule is None:
            return parameter, gradient
        with role_guard(block.program, OPTIMIZE, (parameter.name, gradient.name)):
            term = rule(parameter, block)
            total = gradient
            if gradient.type is VarKind.SELECTED_ROWS:
                name = f"{gradient.name}@NEWGRAD@"
                total = block.create_var(name, parameter.shape, parameter.dtype)
            block.append_op("sum", {"X": [gradient, term]}, {"Out": total})
        return parameter, total

    def _rate(self, program: Program) -> Variable:
        """Returns the learning rate of a program, a variable that the startup program fills."""
        if isinstance(self.learning_rate, Variable):
            return self.learning_rate
        if id(program) not in self._rates:
            name = unique_name.generate("learning_rate")
            rate = float(self.learning_rate)
            self._rates[id(program)] = create_global_var([1], rate, persistable=True, name=name)
        return self._rates[id(program)]

    def _rate_of(self, parameter: Variable, rate: Variable) -> Variable:
        """Returns the learning rate of a parameter, which may have a factor or one of its own."""
        factor = parameter.training.optimize_attr["learning_rate"]
        if isinstance(factor, Variable):
            return factor
        if factor == 1.0:
            return rate
        with role_guard(rate.program, SCHEDULE | OPTIMIZE):
            return rate * factor

    def _state(self, parameter: Variable, state: State, block: Block) -> Variable:
        name = unique_name.generate(f"{parameter.name}_{state.name}")
        shape = [1] if state.scalar else parameter.shape
        made = block.create_var(name, shape, parameter.dtype, persistable=True, stop_gradient=True)
        initialize(made, Constant(state.value))
        return made

    def _states_of(self, parameter: Variable, block: Block) -> dict[str, Variable]:
        return {one.slot: self._state(parameter, one, block) for one in self.states}

    def _update(
        self,
        parameter: Variable,
        gradient: Variable,
        kept: Mapping[str, Variable],
        rate: Variable,
        block: Block,
    ) -> OpDesc:
        with role_guard(block.program, OPTIMIZE, (parameter.name, gradient.name)):
            inputs: dict[str, Any] = {"Param": parameter, "Grad": gradient, **kept}
            if self.takes_rate:
                inputs["LearningRate"] = self._rate_of(parameter, rate)
            outputs: Slots = {
                "ParamOut": parameter,
                **{
                    one.output or f"{one.slot}Out": kept[one.slot]
                    for one in self.states
                    if one.written
                },
            }
            return block.append_op(self.type, inputs, outputs, self.attributes(parameter))

    def _finish(self, kept: Mapping[str, Variable], block: Block) -> None:
        """Appends what follows all updates, for the variables that are kept of one parameter."""


class SGD(Optimizer):
    """Subtracts the gradient times the rate."""

    type = "sgd"


class Momentum(Optimizer):
    """Subtracts a velocity, to which gradients are added."""

    type = "momentum"
    states = (State("velocity", "Velocity"),)

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        momentum: float = 0.9,
        parameter_list: Sequence[Any] | None = None,
        use_nesterov: bool = False,
        regularization: Regularizer | float | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
        **known: Any,
    ) -> None:
        """Takes the factor of the velocity; see ``Optimizer``."""
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name, **known)
        self._attrs = {"mu": momentum, "use_nesterov": use_nesterov}


class LarsMomentum(Optimizer):
    """Momentum with a rate that follows the norms of parameter and gradient."""

    type = "lars_momentum"
    states = (State("velocity", "Velocity"),)

    def __init__(
        self,
        learning_rate: float | Variable,
        momentum: float,
        lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        **known: Any,
    ) -> None:
        """Takes the coefficients; see ``Optimizer``."""
        super().__init__(learning_rate, **known)
        self._attrs = {
            "mu": momentum,
            "lars_coeff": lars_coeff,
            "lars_weight_decay": lars_weight_decay,
        }


class Adam(Optimizer):
    """Divides a running mean of gradients by the root of that of their squares."""

    type = "adam"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameter_list: Sequence[Any] | None = None,
        regularization: Regularizer | float | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
        lazy_mode: bool = False,
        **known: Any,
    ) -> None:
        """Takes the factors of the means; see ``Optimizer``.

        With ``lazy_mode``, rows of tables that were not read keep their state.
        """
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name, **known)
        self._attrs = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "lazy_mode": lazy_mode}
        self.states = (
            State("moment1", "Moment1"),
            State("moment2", "Moment2"),
            State("beta1_pow_acc", "Beta1Pow", value=beta1, scalar=True),
            State("beta2_pow_acc", "Beta2Pow", value=beta2, scalar=True),
        )


class AdamW(Adam):
    """Adam that subtracts a share of the parameter itself."""

    type = "adamw"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Sequence[Any] | None = None,
        weight_decay: float = 0.01,
        apply_decay_param_fun: Any = None,
        grad_clip: Clip | None = None,
        lazy_mode: bool = False,
        name: str | None = None,
    ) -> None:
        """Takes the share; ``apply_decay_param_fun`` says by name which parameters decay."""
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameters, None, grad_clip, name, lazy_mode
        )
        self.coeff, self.decays = weight_decay, apply_decay_param_fun

    def attributes(self, parameter: Variable) -> Mapping[str, Any]:
        """See ``Optimizer.attributes``."""
        decays = self.decays is None or bool(self.decays(parameter.name))
        return {**self._attrs, "coeff": self.coeff, "with_decay": decays}


class Adamax(Optimizer):
    """Adam with the largest gradient in place of the mean of squares."""

    type = "adamax"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **known: Any,
    ) -> None:
        """Takes the factors of the means; see ``Optimizer``."""
        super().__init__(learning_rate, **known)
        self._attrs = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        power = State("beta1_pow_acc", "Beta1Pow", value=beta1, scalar=True, written=False)
        self.states = (State("moment", "Moment"), State("inf_norm", "InfNorm"), power)

    def _finish(self, kept: Mapping[str, Variable], block: Block) -> None:
        power = kept["Beta1Pow"]
        block.append_op("scale", {"X": power}, {"Out": power}, {"scale": self._attrs["beta1"]})


class Adagrad(Optimizer):
    """Divides gradients by the root of the sum of their squares."""

    type = "adagrad"

    def __init__(
        self,
        learning_rate: float | Variable,
        epsilon: float = 1e-6,
        parameter_list: Sequence[Any] | None = None,
        regularization: Regularizer | float | None = None,
        grad_clip: Clip | None = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
        **known: Any,
    ) -> None:
        """Takes a number that is added to the root; see ``Optimizer``."""
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name, **known)
        self._attrs = {"epsilon": epsilon}
        self.states = (State("moment", "Moment", value=initial_accumulator_value),)


class DecayedAdagrad(Optimizer):
    """Divides gradients by the root of a running mean of their squares."""

    type = "decayed_adagrad"
    states = (State("moment", "Moment"),)

    def __init__(
        self,
        learning_rate: float | Variable,
        decay: float = 0.95,
        epsilon: float = 1e-6,
        **known: Any,
    ) -> None:
        """Takes the factor of the mean; see ``Optimizer``."""
        super().__init__(learning_rate, **known)
        self._attrs = {"decay": decay, "epsilon": epsilon}


class Adadelta(Optimizer):
    """Adagrad whose rate follows earlier updates."""

    type = "adadelta"
    takes_rate = False
    states = (
        State("_avg_squared_grad", "AvgSquaredGrad"),
        State("_avg_squared_update", "AvgSquaredUpdate"),
    )

    def __init__(
        self,
        learning_rate: float | Variable,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        **known: Any,
    ) -> None:
        """Takes the factor of the means; see ``Optimizer``."""
        super().__init__(learning_rate, **known)
        self._attrs = {"epsilon": epsilon, "rho": rho}


class RMSProp(Optimizer):
    """Divides gradients by the root of a running mean of their squares, with momentum."""

    type = "rmsprop"
    states = (
        State("momentum", "Moment"),
        State("mean_square", "MeanSquare"),
        State("mean_grad", "MeanGrad"),
    )

    def __init__(
        self,
        learning_rate: float | Variable,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        **known: Any,
    ) -> None:
        """Takes the factors of the means; see ``Optimizer``."""
        super().__init__(learning_rate, **known)
        self._attrs = {
            "decay": rho,
            "epsilon": epsilon,
            "momentum": momentum,
            "centered": centered,
        }


class Ftrl(Optimizer):
    """Follows the regularized leader."""

    type = "ftrl"
    states = (
        State("squared", "SquaredAccumulator", "SquaredAccumOut"),
        State("linear", "LinearAccumulator", "LinearAccumOut"),
    )

    def __init__(
        self,
        learning_rate: float | Variable,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        **known: Any,
    ) -> None:
        """Takes the factors of both norms; see ``Optimizer``."""
        super().__init__(learning_rate, **known)
        self._attrs = {"l1": l1, "l2": l2, "lr_power": lr_power}


class Lamb(Adam):
    """Adam with a rate that follows the norms of parameter and update."""

    type = "lamb"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        parameter_list: Sequence[Any] | None = None,
        regularization: Regularizer | float | None = None,
        grad_clip: Clip | None = None,
        exclude_from_weight_decay_fn: Any = None,
        name: str | None = None,
    ) -> None:
        """Takes the share of the parameter; see ``Adam``."""
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameter_list, regularization, grad_clip, name
        )
        del self._attrs["lazy_mode"]
        # Paddle 1.8 does not count steps: the powers keep their first values.
        self.states = tuple(one._replace(written=not one.scalar) for one in self.states)
        self.decay, self.excluded = lamb_weight_decay, exclude_from_weight_decay_fn

    def attributes(self, parameter: Variable) -> Mapping[str, Any]:
        """See ``Optimizer.attributes``."""
        decays = self.excluded is None or not self.excluded(parameter)
        return {**self._attrs, "weight_decay": self.decay if decays else 0.0}


SGDOptimizer = SGD
MomentumOptimizer = Momentum
LarsMomentumOptimizer = LarsMomentum
AdamOptimizer = Adam
AdamaxOptimizer = Adamax
AdagradOptimizer = Adagrad
DecayedAdagradOptimizer = DecayedAdagrad
AdadeltaOptimizer = Adadelta
RMSPropOptimizer = RMSProp
FtrlOptimizer = Ftrl
LambOptimizer = Lamb
