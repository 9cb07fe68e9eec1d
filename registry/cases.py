"""case() and misuse(): the sample calls beside an operator that drive its tests and its page."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Sample = Callable[[np.random.Generator, np.dtype], np.ndarray]
"""Draws one input: ``sample(generator, dtype)``."""


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One legal call: inputs by slot (a shape, an array or a ``Sample``) and attributes.

    Attributes:
        values: what fills each slot and attribute.
        rtol: relative tolerance against the reference, in units of the dtype's epsilon.
        half_rtol: the same of results in half precision against single precision.
        dtypes: dtypes in which the floating inputs are drawn.
        order: highest derivative that finite differences check on this case.
        seed: what makes the draws differ between cases of one operator.
    """

    values: Mapping[str, Any]
    rtol: float = 64.0
    dtypes: tuple[str, ...] = ("float32", "float64")
    order: int = 3
    seed: int = 0
    half_rtol: float = 8.0

    def draw(self, name: str, dtype: np.dtype) -> Any:
        """The value for slot ``name``: floating arrays are drawn in ``dtype``."""
        generator = np.random.default_rng([self.seed, *name.encode()])
        return draw(self.values[name], generator, dtype)

    def __str__(self) -> str:
        return ", ".join(f"{name}={_show(value)}" for name, value in self.values.items())


@dataclasses.dataclass(frozen=True, eq=False)
class Workload(Case):
    """A call of realistic size, on which gradients are timed; no proof runs it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Misuse:
    """One call that must be refused, and a piece of the message that refuses it."""

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
    """A legal call of the operator it stands beside.

    A tuple of ints fills a slot with normal draws of that shape; a ``Sample`` such as
    ``positive(3, 4)`` with its draws; a list of tuples fills a variadic slot.

    Example:
        >>> str(case(x=(3, 4), axis=1))
        'x=(3, 4), axis=1'
    """
    return Case(values, rtol, dtypes, order, seed, half_rtol)


def workload(*, seed: int = 0, **values: Any) -> Workload:
    """A legal call of realistic size: the gradient's speed is measured on it.

    Entrywise operators need none: theirs is their first case with a million entries.
    """
    return Workload(values, seed=seed)


def misuse(message: str, **values: Any) -> Misuse:
    """A call that must raise an error containing ``message``."""
    return Misuse(message, values)


def draw(value: Any, generator: np.random.Generator, dtype: np.dtype) -> Any:
    """The array that ``value`` stands for in a case; values that are no sample stay as they are.

    Of a complex dtype, a sample of real numbers is drawn twice, for the real and imaginary parts.
    """
    if isinstance(value, tuple) and all(isinstance(length, int) for length in value):
        return _drawn(lambda g, t: g.standard_normal(value).astype(t), generator, dtype)
    if isinstance(value, list):
        return [draw(one, generator, dtype) for one in value]
    return _drawn(value, generator, dtype) if callable(value) else value


def _drawn(sample: Sample, generator: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    drawn = sample(generator, dtype)
    if not isinstance(drawn, np.ndarray) or drawn.dtype.kind != "c" or np.any(drawn.imag):
        return drawn
    return (drawn + 0.5j * sample(generator, dtype)).astype(dtype)


Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
"""Draws an array of a shape."""


@dataclasses.dataclass(frozen=True)
class _Sample:
    """A named draw, so that cases print as they are written.

    Attributes:
        name: of the function that makes it.
        shape: of what is drawn.
        keywords: how it is drawn, as they are written.
        draw: draws it.
        dtype: of what is drawn; None for that of the case.
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
    """What fills a slot in a case, drawn in another shape; None if it is neither shape nor draw."""
    if isinstance(value, tuple):
        return shape
    return dataclasses.replace(value, shape=shape) if isinstance(value, _Sample) else None


def uniform(*shape: int, low: float, high: float) -> Sample:
    """Floating draws between ``low`` and ``high``."""
    keywords = {"low": low, "high": high}
    return _Sample("uniform", shape, keywords, lambda g, s: g.uniform(low, high, s))


def positive(*shape: int) -> Sample:
    """Floating draws between 1/2 and 2."""
    return _Sample("positive", shape, {}, lambda g, s: g.uniform(0.5, 2.0, s))


def nonzero(*shape: int) -> Sample:
    """Floating draws of either sign whose magnitude lies between 1/2 and 2."""
    return _Sample(
        "nonzero", shape, {}, lambda g, s: g.uniform(0.5, 2.0, s) * g.choice([-1.0, 1.0], s)
    )


def distinct(*shape: int) -> Sample:
    """Floating draws of which no two are near each other: maxima without ties."""
    return _Sample("distinct", shape, {}, _spaced)


def _spaced(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    count = math.prod(shape)
    spaced = (generator.permutation(count) - count / 2.0 + 0.25) / 4
    return np.asarray(spaced.reshape(shape))


def invertible(*shape: int) -> Sample:
    """Square matrices far from singular, whose singular values are distinct."""
    return _Sample("invertible", shape, {}, _of_singular_values)


def definite(*shape: int) -> Sample:
    """Symmetric positive definite matrices far from singular, with distinct eigenvalues."""

    def drawn(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        rows = _of_singular_values(generator, shape)
        return np.asarray(rows @ rows.swapaxes(-1, -2))

    return _Sample("definite", shape, {}, drawn)


def _of_singular_values(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Square matrices with singular values evenly spread from 1 to 2, turned at random."""
    left, right = (np.linalg.qr(generator.standard_normal(shape))[0] for _ in range(2))
    return np.asarray(left * np.linspace(1.0, 2.0, shape[-1]) @ right)


@dataclasses.dataclass(frozen=True)
class _Fixed:
    """An array that is always the same."""

    text: str
    made: Callable[[np.dtype], np.ndarray]

    def __call__(self, generator: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        del generator
        return self.made(dtype)

    def __repr__(self) -> str:
        return self.text


def fixed(text: str, made: Callable[[np.dtype], np.ndarray]) -> Sample:
    """An array that is always the same, printed as ``text``; ``made`` receives the dtype."""
    return _Fixed(text, made)


def integers(*shape: int, high: int, low: int = 0, dtype: str = "int32") -> Sample:
    """Draws of ``dtype`` from ``low`` up to and without ``high``."""
    kind = {} if dtype == "int32" else {"dtype": dtype}
    keywords: dict[str, float | str] = {"low": low, "high": high, **kind}
    return _Sample("integers", shape, keywords, lambda g, s: g.integers(low, high, s), dtype)


def booleans(*shape: int) -> Sample:
    """Draws of true and false."""
    return _Sample("booleans", shape, {}, lambda g, s: g.integers(0, 2, s), "bool")


def _arguments(shape: tuple[int, ...], keywords: Mapping[str, float | str]) -> str:
    """The arguments of a sample as they are written."""
    return ", ".join([*map(str, shape), *(f"{name}={value!r}" for name, value in keywords.items())])


def _show(value: Any) -> str:
    return f"array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
