"""The base class of initializers, which fill arrays by name, and descriptions of initializers."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symop import random
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.classes import Classes
from symop.interop.mxnet.errors import MXNetError


class InitDesc(str):
    """A parameter's name, with the attributes of its variable.

    Attributes:
        attrs: attributes of the variable; ``__init__`` describes its initializer.
        global_init: the initializer of the whole model.
    """

    __slots__ = ("attrs", "global_init")
    attrs: dict[str, str]
    global_init: "Initializer | None"

    def __new__(
        cls,
        name: str,
        attrs: Mapping[str, str] | None = None,
        global_init: "Initializer | None" = None,
    ) -> "InitDesc":
        """The description of the parameter ``name``."""
        result = super().__new__(cls, name)
        result.attrs, result.global_init = dict(attrs or {}), global_init
        return result


def filled(array: NDArray, value: Any) -> None:
    """Fills ``array`` with ``value``, broadcast and cast as needed."""
    array.hold(jnp.asarray(np.broadcast_to(np.asarray(value), array.shape), array.dtype))


def generator() -> np.random.Generator:
    """A generator of random numbers for one array, from the seed set by ``mx.random.seed``.

    It is NumPy's: JAX would compile a program for each parameter shape.
    """
    return np.random.default_rng(np.asarray(jax.random.key_data(random.next_key("initializer"))))


_BY_ENDING = {
    "weight": "_init_weight",
    "bias": "_init_bias",
    "gamma": "_init_gamma",
    "beta": "_init_beta",
    "min": "_init_zero",
    "max": "_init_one",
    # MXNet's operators set these as attributes of their state variables.
    "moving_mean": "_init_zero",
    "moving_var": "_init_one",
    "running_mean": "_init_zero",
    "running_var": "_init_one",
    "moving_inv_var": "_init_zero",
    "moving_avg": "_init_zero",
}


class Initializer:
    """Fills arrays according to their names; subclasses define how weights are filled.

    A variable's own initializer takes precedence. Otherwise arrays whose names end in ``bias`` or
    ``beta`` start at zero, in ``gamma`` at one, moving means at zero, moving variances at one.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> gamma, weight = mx.nd.zeros((2,)), mx.nd.zeros((2, 2))
        >>> init = mx.init.Constant(0.5)
        >>> init(mx.init.InitDesc("bn_gamma"), gamma), init(mx.init.InitDesc("fc_weight"), weight)
        (None, None)
        >>> gamma.asnumpy().tolist(), weight.asnumpy().tolist()
        ([1.0, 1.0], [[0.5, 0.5], [0.5, 0.5]])
    """

    def __init__(self, **kwargs: Any) -> None:
        """``kwargs`` are the arguments written by ``dumps``."""
        self._kwargs = kwargs
        self._print: Callable[[NDArray], str] | None = None

    def set_verbosity(
        self, verbose: bool = False, print_func: Callable[[NDArray], str] | None = None
    ) -> "Initializer":
        """Logs for each filled array its name and the result of ``print_func``."""
        self._print = (print_func or _size_of) if verbose else None
        return self

    def dumps(self) -> str:
        """The description of this initializer, which ``create`` reads."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = object.__hash__

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Fills ``arr``, called ``desc``.

        Raises:
            MXNetError: the name does not determine the kind of the array.
        """
        own = ""
        if isinstance(desc, InitDesc):
            desc.global_init = desc.global_init or self
            own = desc.attrs.get("__init__", "")
        elif desc.startswith("upsampling"):  # for old scripts, which pass bare names
            own = '["bilinear", {}]'
        if own:
            create(own)._init_weight(desc, arr)
        else:
            ending = next((one for one in _BY_ENDING if desc.endswith(one)), None)
            getattr(self, "_init_default" if ending is None else _BY_ENDING[ending])(desc, arr)
        if self._print is not None:
            logging.info("Initialized %s as %s: %s", desc, own or self.dumps(), self._print(arr))

    # Methods for subclasses

    def _init_weight(self, name: str, arr: NDArray) -> None:
        # Abstract, as in MXNet: defined by subclasses; other kinds of arrays have defaults.
        raise NotImplementedError(f"{type(self).__name__} must say how weights are filled")

    def _init_bias(self, name: str, arr: NDArray) -> None:
        filled(arr, 0.0)

    def _init_gamma(self, name: str, arr: NDArray) -> None:
        filled(arr, 1.0)

    def _init_beta(self, name: str, arr: NDArray) -> None:
        filled(arr, 0.0)

    def _init_zero(self, name: str, arr: NDArray) -> None:
        filled(arr, 0.0)

    def _init_one(self, name: str, arr: NDArray) -> None:
        filled(arr, 1.0)

    def _init_default(self, name: str, arr: NDArray) -> None:
        raise MXNetError(
            f"init: {name!r} must end in weight, bias, gamma or beta, or its variable have an "
            "initializer: mx.sym.Variable(name, init=mx.init.Zero())"
        )


def _size_of(array: NDArray) -> str:
    return str(np.sqrt(np.mean(np.square(array.asnumpy()))))


_classes: Classes[Initializer] = Classes("initializer", Initializer)
register, alias, create = _classes.register, _classes.alias, _classes.create
