"""Initializer: what fills an array, by its name; and descriptions of initializers."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symop import random
from symop.interop.mxnet.classes import Classes
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.ndarray import NDArray


class InitDesc(str):
    """A parameter's name, with what its variable says about it.

    Attributes:
        attrs: attributes of the variable; ``__init__`` among them describes its initializer.
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
        made = super().__new__(cls, name)
        made.attrs, made.global_init = dict(attrs or {}), global_init
        return made


def filled(array: NDArray, value: Any) -> None:
    """Write ``value`` into the whole of ``array``, repeated and cast as needed."""
    array.hold(jnp.asarray(np.broadcast_to(np.asarray(value), array.shape), array.dtype))


def generator() -> np.random.Generator:
    """Random numbers for one array, from the seed that ``mx.random.seed`` sets.

    NumPy draws them: JAX would compile a program for each shape of a parameter.
    """
    return np.random.default_rng(np.asarray(jax.random.key_data(random.next_key("initializer"))))


_BY_ENDING = {
    "weight": "_init_weight",
    "bias": "_init_bias",
    "gamma": "_init_gamma",
    "beta": "_init_beta",
    "min": "_init_zero",
    "max": "_init_one",
    # What MXNet's operators say of these states in attributes of their variables.
    "moving_mean": "_init_zero",
    "moving_var": "_init_one",
    "running_mean": "_init_zero",
    "running_var": "_init_one",
    "moving_inv_var": "_init_zero",
    "moving_avg": "_init_zero",
}


class Initializer:
    """Fills arrays, depending on their names; a subclass says how weights are filled.

    A variable's own initializer comes first. Otherwise names ending in ``bias`` and ``beta`` start
    at zero, those in ``gamma`` at one, moving means at zero, moving variances at one.

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
        """``kwargs`` are what describes it."""
        self._kwargs = kwargs
        self._print: Callable[[NDArray], str] | None = None

    def set_verbosity(
        self, verbose: bool = False, print_func: Callable[[NDArray], str] | None = None
    ) -> "Initializer":
        """Log how each array is filled: its name and ``print_func`` of it."""
        self._print = (print_func or _size_of) if verbose else None
        return self

    def dumps(self) -> str:
        """Its description, which ``create`` reads."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = object.__hash__

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Fill ``arr``, called ``desc``.

        Raises:
            MXNetError: the name does not tell what it is.
        """
        own = ""
        if isinstance(desc, InitDesc):
            desc.global_init = desc.global_init or self
            own = desc.attrs.get("__init__", "")
        elif desc.startswith("upsampling"):  # a bare name says more, for old scripts
            own = '["bilinear", {}]'
        if own:
            create(own)._init_weight(desc, arr)
        else:
            ending = next((one for one in _BY_ENDING if desc.endswith(one)), None)
            getattr(self, "_init_default" if ending is None else _BY_ENDING[ending])(desc, arr)
        if self._print is not None:
            logging.info("Initialized %s as %s: %s", desc, own or self.dumps(), self._print(arr))

    # What a subclass may say

    def _init_weight(self, name: str, arr: NDArray) -> None:
        # Abstract, as in MXNet: a subclass defines it; the other kinds have defaults.
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
