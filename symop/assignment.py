"""Assignment to parts of an array: ``x[index] = value``, compiled once for each kind of index."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.errors import ShapeError

_INPUT = "input"


def assigned(x: Any, index: tuple[Any, ...], value: Any) -> Any:
    """``x`` with ``value`` in the places of ``index``; the dtype stays.

    Integers and arrays among the index are inputs of what is compiled, slices are not.

    Raises:
        ShapeError: ``value`` does not fit.
    """
    index = _movable(index, x.shape)
    form = tuple(_INPUT if _is_input(one) else one for one in index)
    given = [_as_index(one) for one in index if _is_input(one)]
    if isinstance(x, jax.core.Tracer):
        return x.at[index].set(jnp.asarray(value).astype(x.dtype))
    try:
        return _compiled(_hashed(form))(x, given, jnp.asarray(value))
    except (ValueError, IndexError) as error:
        raise ShapeError(f"x[...] = value: {error}") from None


def _movable(index: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The only slice that does not take its whole axis as an array of places, which is an input.

    Beside integers or arrays it stays: the result would have its axes in another order.
    """
    partial = [
        i
        for i, one in enumerate(index)
        if isinstance(one, slice) and i < len(shape) and one.indices(shape[i]) != (0, shape[i], 1)
    ]
    if len(partial) != 1 or len(index) != len(shape) or any(map(_is_input, index)):
        return index
    (at,) = partial
    places = np.arange(shape[at], dtype=np.int32)[index[at]]
    return (*index[:at], places, *index[at + 1 :])


def _is_input(entry: Any) -> bool:
    return entry is not None and entry is not Ellipsis and not isinstance(entry, slice)


def _as_index(entry: Any) -> Any:
    return np.asarray(entry) if isinstance(entry, (int, list, np.generic)) else entry


def _hashed(form: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((one.start, one.stop, one.step) if isinstance(one, slice) else one for one in form)


@functools.lru_cache(maxsize=1024)
def _compiled(form: tuple[Any, ...]) -> Any:
    def run(x: Any, given: list[Any], value: Any) -> Any:
        supply = iter(given)
        index = tuple(
            slice(*one) if isinstance(one, tuple) else next(supply) if one is _INPUT else one
            for one in form
        )
        return x.at[index].set(value.astype(x.dtype))

    return jax.jit(run)
