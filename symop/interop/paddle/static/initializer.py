"""Initializers: each puts a call into the startup program that fills a parameter."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symop.interop.paddle.programs import Block, Variable, code_of


class Initializer:
    """Gives a parameter its initial value."""

    def __call__(self, variable: Variable, block: Block) -> None:
        """Puts the call that fills ``variable`` before all others of ``block``.

        Args:
            variable: the parameter.
            block: a block of the startup program.
        """
        name, attrs = self.operator(variable, block.program.random_seed)
        block.prepend_op(name, {}, {"Out": [variable]}, attrs)

    def operator(self, variable: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        """Returns the operator and its attributes.

        Args:
            variable: the parameter.
            seed: the seed of the program, for an initializer without its own.
        """
        # Abstract: defined by the initializers below.
        raise NotImplementedError


def _typed(variable: Variable, **attrs: Any) -> dict[str, Any]:
    return {"shape": list(variable.shape), "dtype": code_of(variable.dtype), **attrs}


class Constant(Initializer):
    """Fills with one value."""

    def __init__(self, value: float = 0.0, force_cpu: bool = False) -> None:
        """Fills with ``value``; ``force_cpu`` is accepted as in Paddle."""
        self.value = value
        self.force_cpu = force_cpu

    def operator(self, variable: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        """See ``Initializer.operator``."""
        del seed
        return "fill_constant", _typed(variable, value=float(self.value), force_cpu=self.force_cpu)


class Uniform(Initializer):
    """Fills with numbers between two bounds."""

    def __init__(self, low: float = -1.0, high: float = 1.0, seed: int = 0) -> None:
        """Fills with numbers from ``low`` to ``high``; seed 0 is the program's."""
        self.low, self.high, self.seed = low, high, seed

    def operator(self, variable: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        """See ``Initializer.operator``."""
        return _uniform(variable, self.low, self.high, self.seed or seed)


class Normal(Initializer):
    """Fills with normal numbers."""

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        """Fills with numbers of mean ``loc`` and deviation ``scale``; seed 0 is the program's."""
        self.loc, self.scale, self.seed = loc, scale, seed

    def operator(self, variable: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        """See ``Initializer.operator``."""
        return _normal(variable, self.loc, self.scale, self.seed or seed)


class TruncatedNormal(Normal):
    """Fills with normal numbers within two deviations."""

    def operator(self, variable: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        """See ``Initializer.operator``."""
        _, attrs = super().operator(variable, seed)
        return "truncated_gaussian_random", attrs


class Xavier(Initializer):
    """Fills with numbers whose variance is 2 divided by the sum of the fans."""

    def __init__(
        self,
        uniform: bool = True,
        fan_in: float | None = None,
        fan_out: float | None = None,
        seed: int = 0,
    ) -> None:
        """Takes the fans from the shape unless they are given; seed 0 is the program's."""
        self.uniform, self.fan_in, self.fan_out, self.seed = uniform, fan_in, fan_out, seed

    def operator(self, variable: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        """See ``Initializer.operator``."""
        fan_in, fan_out = _fans(variable.shape)
        total = (self.fan_in or fan_in) + (self.fan_out or fan_out)
        return _random(variable, self.uniform, 2.0 / total, self.seed or seed)


class MSRA(Initializer):
    """Fills with numbers whose variance is 2 divided by the number of inputs."""

    def __init__(self, uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> None:
        """Takes ``fan_in`` from the shape unless it is given; seed 0 is the program's."""
        self.uniform, self.fan_in, self.seed = uniform, fan_in, seed

    def operator(self, variable: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        """See ``Initializer.operator``."""
        fan_in = self.fan_in or _fans(variable.shape)[0]
        return _random(variable, self.uniform, 2.0 / fan_in, self.seed or seed)


class NumpyArrayInitializer(Initializer):
    """Fills with an array."""

    def __init__(self, value: Any) -> None:
        """Fills with ``value``."""
        self.value = np.asarray(value)

    def operator(self, variable: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        """See ``Initializer.operator``."""
        del seed
        values = self.value.astype(variable.dtype).ravel().tolist()
        key = "int32_values" if np.issubdtype(variable.dtype, np.integer) else "fp32_values"
        return "assign_value", _typed(variable, **{key: values})


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """Returns the numbers of inputs and outputs of a unit, as Paddle counts them."""
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    if len(shape) == 2:
        return shape[0], shape[1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def _random(
    variable: Variable, uniform: bool, variance: float, seed: int
) -> tuple[str, dict[str, Any]]:
    if uniform:
        limit = math.sqrt(3.0 * variance)
        return _uniform(variable, -limit, limit, seed)
    return _normal(variable, 0.0, math.sqrt(variance), seed)


def _uniform(variable: Variable, low: float, high: float, seed: int) -> tuple[str, dict[str, Any]]:
    return "uniform_random", _typed(variable, min=float(low), max=float(high), seed=seed)


def _normal(
    variable: Variable, mean: float, deviation: float, seed: int
) -> tuple[str, dict[str, Any]]:
    attrs = {"mean": float(mean), "std": float(deviation), "seed": seed}
    return "gaussian_random", _typed(variable, **attrs)


ConstantInitializer = Constant
UniformInitializer = Uniform
NormalInitializer = Normal
TruncatedNormalInitializer = TruncatedNormal
XavierInitializer = Xavier
MSRAInitializer = MSRA
Assign = NumpyArrayInitializer
