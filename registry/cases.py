"""case() and misuse(): sample calls of an operator, the source of its tests and of its page."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from registry.types import is_complex

Sample = Callable[[np.random.Generator, np.dtype], np.ndarray]
"""Draws one input: ``sample(generator, dtype)``."""


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One legal call: inputs by slot (a shape, an array or a ``Sample``) and attributes.

    Attributes:
        values: the values of slots and attributes.
        rtol: relative tolerance against the reference, in units of the dtype's epsilon.
        half_rtol: the same for results in half precision, compared with single precision.
        dtypes: dtypes in which the floating inputs are drawn.
        order: the highest derivative that finite differences check on this case.
        seed: distinguishes the draws of different cases of one operator.
    """

    values: Mapping[str, Any]
    rtol: float = 64.0
    dtypes: tuple[str, ...] = ("float32", "float64")
    order: int = 3
    seed: int = 0
    half_rtol: float = 8.0

    def draw(self, name: str, dtype: np.dtype) -> Any:
        """Returns the value for slot ``name``; floating arrays are drawn in ``dtype``."""
        generator = np.random.default_rng([self.seed, *name.encode()])
        return draw(self.values[name], generator, dtype)

    def __str__(self) -> str:
        return ", ".join(f"{name}={_show(value)}" for name, value in self.values.items())


@dataclasses.dataclass(frozen=True, eq=False)
class Workload(Case):
    """A call of realistic size for timing gradients; the tests do not run it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Misuse:
    """One call that must raise an error, and a part of the error's message."""

    message: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        return ", ".join(f"{name}={_show(value)}" for name, value in self.values.items())


def case(
    *,
    rtol: float = 64.0,
    dtypes: tuple[str, ...] = ("float32", "float64"),
    order: int = 3,
    seed: int = 0,
    half_rtol: float = 8.0,
    **values: Any,
) -> Case:
    """Returns a legal call of the operator that declares it.

    A tuple of ints fills a slot with normal draws of that shape; a ``Sample`` such as
    ``positive(3, 4)`` fills it with its draws; a list of tuples fills a variadic slot.

    Example:
        >>> str(case(x=(3, 4), axis=1))
        'x=(3, 4), axis=1'
    """
    return Case(values, rtol, dtypes, order, seed, half_rtol)


def workload(*, seed: int = 0, **values: Any) -> Workload:
    """Returns a legal call of realistic size, on which the gradient's speed is measured.

    Entrywise operators need none: their first case is used, with a million entries.
    """
    return Workload(values, seed=seed)


def misuse(message: str, **values: Any) -> Misuse:
    """Returns a call that must raise an error containing ``message``."""
    return Misuse(message, values)


def draw(value: Any, generator: np.random.Generator, dtype: np.dtype) -> Any:
    """Returns the array that ``value`` denotes in a case; other values are returned unchanged.

    For a complex dtype, a sample of real numbers is drawn twice, for the real and imaginary parts.
    """
    if isinstance(value, tuple) and all(isinstance(length, int) for length in value):
        return _drawn(lambda g, t: g.standard_normal(value).astype(t), generator, dtype)
    if isinstance(value, list):
        return [draw(one, generator, dtype) for one in value]
    return _drawn(value, generator, dtype) if callable(value) else value


def _drawn(sample: Sample, generator: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    drawn = sample(generator, dtype)
    if not isinstance(drawn, np.ndarray) or not is_complex(drawn.dtype) or np.any(drawn.imag):
        return drawn
    return (drawn + 0.5j * sample(generator, dtype)).astype(dtype)


Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
"""Draws an array of a given shape."""


@dataclasses.dataclass(frozen=True)
class _Sample:
    """A named draw, so that cases print as they are written.

    Attributes:
        name: name of the function that creates the sample.
        shape: shape of the array.
        keywords: parameters of the distribution, as they are written.
        draw: draws the array.
        dtype: dtype of the array; None for that of the case.
    """

    name: str
    shape: tuple[int, ...]
    keywords: Mapping[str, float | str]
    draw: Draw
    dtype: str | None = None

    def __call__(self, generator: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        return self.draw(generator, self.shape).astype(self.dtype or dtype)

    def __repr__(self) -> str:
        return f"{self.name}({_arguments(self.shape, self.keywords)})"


def reshaped(value: Any, shape: tuple[int, ...]) -> Any:
    """Returns the value of a slot in another shape; None if it is neither a shape nor a draw."""
    if isinstance(value, tuple):
        return shape
    return dataclasses.replace(value, shape=shape) if isinstance(value, _Sample) else None


def uniform(*shape: int, low: float, high: float) -> Sample:
    """Returns a sample of floats between ``low`` and ``high``."""
    keywords = {"low": low, "high": high}
    return _Sample("uniform", shape, keywords, lambda g, s: g.uniform(low, high, s))


def positive(*shape: int) -> Sample:
    """Returns a sample of floats between 1/2 and 2."""
    return _Sample("positive", shape, {}, lambda g, s: g.uniform(0.5, 2.0, s))


def nonzero(*shape: int) -> Sample:
    """Returns a sample of floats of either sign with magnitudes between 1/2 and 2."""
    return _Sample(
        "nonzero", shape, {}, lambda g, s: g.uniform(0.5, 2.0, s) * g.choice([-1.0, 1.0], s)
    )


def distinct(*shape: int) -> Sample:
    """Returns a sample of well separated floats, so that maxima have no ties."""
    return _Sample("distinct", shape, {}, _spaced)


def _spaced(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    count = math.prod(shape)
    spaced = (generator.permutation(count) - count / 2.0 + 0.25) / 4
    return np.asarray(spaced.reshape(shape))


def invertible(*shape: int) -> Sample:
    """Returns a sample of well-conditioned square matrices with distinct singular values."""
    return _Sample("invertible", shape, {}, _of_singular_values)


def definite(*shape: int) -> Sample:
    """Returns a sample of well-conditioned symmetric positive definite matrices.

    Their eigenvalues are distinct.
    """

    def drawn(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        rows = _of_singular_values(generator, shape)
        return np.asarray(rows @ rows.swapaxes(-1, -2))

    return _Sample("definite", shape, {}, drawn)


def _of_singular_values(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draws square matrices with singular values evenly spaced from 1 to 2, randomly rotated."""
    left, right = (np.linalg.qr(generator.standard_normal(shape))[0] for _ in range(2))
    return np.asarray(left * np.linspace(1.0, 2.0, shape[-1]) @ right)


@dataclasses.dataclass(frozen=True)
class _Fixed:
    """A constant array."""

    text: str
    function: Callable[[np.dtype], np.ndarray]

    def __call__(self, generator: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        del generator
        return self.function(dtype)

    def __repr__(self) -> str:
        return self.text


def fixed(text: str, function: Callable[[np.dtype], np.ndarray]) -> Sample:
    """Returns a constant sample, printed as ``text``; ``function`` receives the dtype."""
    return _Fixed(text, function)


def integers(*shape: int, high: int, low: int = 0, dtype: str = "int32") -> Sample:
    """Returns a sample of ``dtype`` with draws from ``low`` (inclusive) to ``high`` (exclusive)."""
    kind = {} if dtype == "int32" else {"dtype": dtype}
    keywords: dict[str, float | str] = {"low": low, "high": high, **kind}
    return _Sample("integers", shape, keywords, lambda g, s: g.integers(low, high, s), dtype)


def booleans(*shape: int) -> Sample:
    """Returns a sample of booleans."""
    return _Sample("booleans", shape, {}, lambda g, s: g.integers(0, 2, s), "bool")


def _arguments(shape: tuple[int, ...], keywords: Mapping[str, float | str]) -> str:
    """Returns the arguments of a sample as they are written."""
    return ", ".join([*map(str, shape), *(f"{name}={value!r}" for name, value in keywords.items())])


def _show(value: Any) -> str:
    return f"array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
