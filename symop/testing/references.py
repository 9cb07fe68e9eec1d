"""References of a trial: its outputs and gradients computed by NumPy or SciPy."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from registry.types import is_extended_float
from symop.testing.compare import dense
from symop.testing.trial import Trial


def reference_outputs(trial: Trial) -> dict[int, Any]:
    """Returns the results of ``reference``, by output index.

    It returns the visible outputs, or all outputs: a single output alone, several as a tuple.

    Raises:
        AssertionError: it returns another number of outputs.
    """
    operator = trial.operator
    assert operator.reference is not None
    result = reference_call(trial, operator.reference, {})
    several = isinstance(result, (tuple, list)) and not operator.single
    results = list(result) if several else [result]
    if len(results) == len(operator.visible):
        return dict(zip(operator.visible, results, strict=True))
    if len(results) == len(operator.outputs):
        return dict(enumerate(results))
    raise AssertionError(
        f"{trial}: the reference must return the {len(operator.visible)} visible outputs, or all "
        f"{len(operator.outputs)}, got {len(results)}"
    )


def reference_call(trial: Trial, function: Callable[..., Any], heads: Mapping[str, Any]) -> Any:
    """Calls ``function`` on the trial's inputs, converted to NumPy.

    Implicit slots and ``heads`` are passed by name if they are parameters of the function.
    """
    operator, wanted = trial.operator, _parameters(function)
    implicit = {
        slot.name: trial.inputs[i] for i, slot in enumerate(operator.slots) if slot.implicit
    }
    named = {name: value for name, value in {**implicit, **heads}.items() if name in wanted}
    attributes = operator.attribute_dict(trial.attributes)
    return function(*_arguments(trial), **named, **attributes)


def _arguments(trial: Trial) -> list[Any]:
    """Returns the inputs as positional arguments."""
    operator = trial.operator
    arguments: list[Any] = []
    for slot in operator.positional:
        i = operator.slot_index[slot.name]
        given = trial.inputs[i:] if slot.variadic else trial.inputs[i : i + 1]
        values = [_as_numpy(value) for value in given]
        arguments += [values] if slot.variadic and not operator.spreads else values
    return arguments


def _as_numpy(value: Any) -> Any:
    value = dense(value)
    if not isinstance(value, jax.Array):
        return value
    array = np.asarray(value)
    return array.astype(np.float32) if is_extended_float(array.dtype) else array


def _parameters(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return inspect.signature(function).parameters
    except ValueError:  # some NumPy functions have no signature
        return {}
