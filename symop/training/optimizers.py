"""Optimizers of ``train.Trainer`` by name, and their learning rates."""

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np
import optax
import optax.contrib

from registry.errors import ArgumentError, nearest
from registry.foreign_names import keyword_elsewhere
from registry.tracebacks import api_boundary

_RATES = {
    **dict.fromkeys(("adam", "adamw", "nadam", "nadamw", "radam", "amsgrad", "adabelief"), 1e-3),
    **dict.fromkeys(("adamax", "adamaxw", "lamb", "rmsprop", "yogi", "novograd"), 1e-3),
    **dict.fromkeys(("sgd", "momentum", "nesterov", "adagrad"), 1e-2),
    **{"lion": 1e-4, "adadelta": 1.0},
}
"""The learning rates of optimizers that are called by name alone, as Keras chooses them."""
_VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "momentum": ("sgd", {"momentum": 0.9}),
    "nesterov": ("sgd", {"momentum": 0.9, "nesterov": True}),
}


@api_boundary
def optimizer(
    name: str,
    learning_rate: float | Callable[[Any], Any] | None = None,
    *,
    clip: float | None = None,
    accumulate: int = 1,
    **options: Any,
) -> Any:
    """Returns an optimizer of optax by its name.

    The learning rate is part of its state, so that logs and the history of ``Trainer.fit`` show it.

    Args:
        name: the name of a function of optax or of ``optax.contrib`` that takes a learning rate,
            such as ``"adamw"``; or ``"momentum"`` or ``"nesterov"``, which stand for ``"sgd"`` with
            a momentum of 0.9.
        learning_rate: a number, or a schedule, such as ``optax.cosine_decay_schedule(...)``; the
            usual one by default.
        clip: the global norm to which gradients are clipped first.
        accumulate: the number of steps whose gradients are averaged for one update
            (``optax.MultiSteps``).
        **options: further arguments of the function.

    Raises:
        ArgumentError: there is no such optimizer or option, or it has no usual learning rate.

    Example:
        >>> import jax.numpy as jnp
        >>> adam = optimizer("adamw", learning_rate=3e-4, weight_decay=0.01, clip=1.0)
        >>> float(learning_rate_of(adam.init({"w": jnp.zeros(3)})))
        0.0003...
    """
    stem, preset = _VARIANTS.get(name, (name, {}))
    legal = _optimizers()
    if stem not in legal:
        raise ArgumentError(
            f"optimizer: the name must be that of an optimizer of optax, got {name!r}"
            f"{nearest(name, [*legal, *_VARIANTS])}"
        )
    function, options = legal[stem], {**preset, **options}
    known = inspect.signature(function).parameters
    for option in options:
        if option not in known:
            raise ArgumentError(
                f"optimizer: an option of {name!r} must be among {', '.join(known)}, got "
                f"{option!r}{keyword_elsewhere(option, known) or nearest(option, known)}"
            )
    result = _built(name, function, learning_rate, options)
    result = result if clip is None else optax.chain(optax.clip_by_global_norm(clip), result)
    if accumulate == 1:
        return result
    return optax.MultiSteps(result, accumulate).gradient_transformation()


def _built(name: str, function: Any, rate: Any, options: Mapping[str, Any]) -> Any:
    rate = _RATES.get(name) if rate is None else rate
    parameter = inspect.signature(function).parameters["learning_rate"]
    if rate is None:
        if parameter.default is inspect.Parameter.empty:
            raise ArgumentError(f"optimizer: learning_rate must be given for {name!r}, got none")
        return function(**options)
    fixed = [one for one in inspect.signature(function).parameters if one != "learning_rate"]
    return optax.inject_hyperparams(function, static_args=fixed)(learning_rate=rate, **options)


@functools.cache
def _optimizers() -> dict[str, Any]:
    """Returns the functions of optax that take a learning rate, by name."""
    return {
        name: one
        for place in (optax.contrib, optax)
        for name, one in vars(place).items()
        if isinstance(one, (FunctionType, functools.partial))
        and not name.startswith(("_", "scale_by_"))
        and "learning_rate" in inspect.signature(one).parameters
    }


def learning_rate_of(opt_state: Any) -> Any:
    """Returns the learning rate that the state of an optimizer contains, or None.

    ``optimizer`` and ``optax.inject_hyperparams`` put it there.
    """
    rates = optax.tree_utils.tree_get_all_with_path(opt_state, "learning_rate")
    return next((one for _, one in rates if np.ndim(one) == 0), None)
