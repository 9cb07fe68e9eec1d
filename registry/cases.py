"""case() and misuse(): the sample calls beside an operator that drive its tests and its page."""

import dataclasses
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
        dtypes: dtypes in which the floating inputs are drawn.
        order: highest derivative that finite differences check on this case.
        seed: what makes the draws differ between cases of one operator.
    """

    values: Mapping[str, Any]
    rtol: float = 64.0
    dtypes: tuple[str, ...] = ("float32", "float64")
    order: int = 3
    seed: int = 0

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
    **values: Any,
) -> Case:
    """A legal call of the operator it stands beside.

    A tuple of ints fills a slot with normal draws of that shape; a ``Sample`` such as
    ``positive(3, 4)`` with its draws; a list of tuples fills a variadic slot.

    Example:
        >>> str(case(x=(3, 4), axis=1))
        'x=(3, 4), axis=1'
    """
    return Case(values, rtol, dtypes, order, seed)


def workload(*, seed: int = 0, **values: Any) -> Workload:
    """A legal call of realistic size: the gradient's speed is measured on it.

    Entrywise operators need none: theirs is their first case with a million entries.
    """
    return Workload(values, seed=seed)


def misuse(message: str, **values: Any) -> Misuse:
    """A call that must raise an error containing ``message``."""
    return Misuse(message, values)


def draw(value: Any, generator: np.random.Generator, dtype: np.dtype) -> Any:
    """The array that ``value`` stands for in a case; values that are no sample stay as they are."""
    if isinstance(value, tuple) and all(isinstance(length, int) for length in value):
        return generator.standard_normal(value).astype(dtype)
    if isinstance(value, list):
        return [draw(one, generator, dtype) for one in value]
    if callable(value):
        return value(generator, dtype)
    return value


@dataclasses.dataclass(frozen=True)
class _Sample:
    """A named draw, so that cases print as they are written."""

    text: str
    function: Sample

    def __call__(self, generator: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        return self.function(generator, dtype)

    def __repr__(self) -> str:
        return self.text


def uniform(*shape: int, low: float, high: float) -> Sample:
    """Floating draws between ``low`` and ``high``."""
    return _Sample(
        f"uniform({_arguments(shape, low=low, high=high)})",
        lambda generator, dtype: generator.uniform(low, high, shape).astype(dtype),
    )


def positive(*shape: int) -> Sample:
    """Floating draws between 1/2 and 2."""
    return _Sample(
        f"positive({_arguments(shape)})",
        lambda generator, dtype: generator.uniform(0.5, 2.0, shape).astype(dtype),
    )


def nonzero(*shape: int) -> Sample:
    """Floating draws of either sign whose magnitude lies between 1/2 and 2."""
    return _Sample(
        f"nonzero({_arguments(shape)})",
        lambda generator, dtype: (
            generator.uniform(0.5, 2.0, shape) * generator.choice([-1.0, 1.0], shape)
        ).astype(dtype),
    )


def distinct(*shape: int) -> Sample:
    """Floating draws of which no two are near each other: maxima without ties."""
    return _Sample(
        f"distinct({_arguments(shape)})",
        lambda generator, dtype: (
            (
                (generator.permutation(int(np.prod(shape))) - np.prod(shape) / 2.0 + 0.25)
                .reshape(shape)
                .astype(dtype)
            )
            / 4
        ),
    )


def invertible(*shape: int) -> Sample:
    """Square matrices far from singular, whose singular values are distinct."""
    return _Sample(
        f"invertible({_arguments(shape)})",
        lambda generator, dtype: _of_singular_values(generator, shape).astype(dtype),
    )


def definite(*shape: int) -> Sample:
    """Symmetric positive definite matrices far from singular, with distinct eigenvalues."""

    def drawn(generator: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        rows = _of_singular_values(generator, shape)
        return np.asarray(rows @ rows.swapaxes(-1, -2), dtype)

    return _Sample(f"definite({_arguments(shape)})", drawn)


def _of_singular_values(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Square matrices with singular values evenly spread from 1 to 2, turned at random."""
    left, right = (np.linalg.qr(generator.standard_normal(shape))[0] for _ in range(2))
    return np.asarray(left * np.linspace(1.0, 2.0, shape[-1]) @ right)


def fixed(text: str, made: Callable[[np.dtype], np.ndarray]) -> Sample:
    """An array that is always the same, printed as ``text``; ``made`` receives the dtype."""
    return _Sample(text, lambda _, dtype: made(dtype))


def integers(*shape: int, high: int, low: int = 0, dtype: str = "int32") -> Sample:
    """Draws of ``dtype`` from ``low`` up to and without ``high``."""
    kind = {} if dtype == "int32" else {"dtype": dtype}
    return _Sample(
        f"integers({_arguments(shape, low=low, high=high, **kind)})",
        lambda generator, _: generator.integers(low, high, shape).astype(dtype),
    )


def booleans(*shape: int) -> Sample:
    """Draws of true and false."""
    return _Sample(
        f"booleans({_arguments(shape)})",
        lambda generator, _: generator.integers(0, 2, shape).astype(np.bool_),
    )


def _arguments(shape: tuple[int, ...], **keywords: float | str) -> str:
    """The arguments of a sample as they are written."""
    return ", ".join([*map(str, shape), *(f"{name}={value!r}" for name, value in keywords.items())])


def _show(value: Any) -> str:
    return f"array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
