"""Checks of values: references, ways of calling, JAX's transformations, and rejected calls."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import Case, Misuse
from registry.errors import SymopError
from registry.operator.binding import LEFT_OUT
from registry.operator.operator import Operator
from registry.values import SelectedRows
from symop import random
from symop.lowering.steps import type_of
from symop.symbol.building import var
from symop.symbol.calls import load_json
from symop.symbol.symbol import Symbol
from symop.testing.compare import eps, expect_close
from symop.testing.references import reference_outputs
from symop.testing.trial import SEED, Trial, compiled, drawn_arguments, trials
from symop.testing.verdict import nothing_of

_BATCHED_RTOL = 1e-9
_DOORS_RTOL = 16
"""The tolerance between two ways of calling a kernel, in units of the dtype's epsilon."""


# The reference ---------------------------------------------------------------------------------


def check_reference(operator: Operator, case: Case) -> str | None:
    """Checks that the kernel computes the reference's values, with the inferred types.

    Returns:
        The reason why nothing was compared, or None.

    Raises:
        AssertionError: it does not.
    """
    for dtype in case.dtypes:
        with jax.enable_x64(dtype == "float64"):
            for trial in trials(operator, case, dtype):
                check_values(trial)
    return None if operator.reference is not None else "no reference= is declared"


def check_values(trial: Trial) -> None:
    """Checks the types of the kernel's results, and their values against the reference.

    Raises:
        AssertionError: types or values differ.
    """
    operator = trial.operator
    places = [i for i, value in enumerate(trial.inputs) if isinstance(value, jax.Array)]
    arrays = [trial.inputs[i] for i in places]
    results = compiled(trial.function("kernel", places), *arrays)(*arrays)
    for one, inferred in zip(results, trial.outputs, strict=True):
        real = type_of(one)
        if (real.shape, real.dtype) != (inferred.shape, inferred.dtype):
            raise AssertionError(f"{trial}: inferred is {inferred}, but the result is {real}")
    if operator.reference is None:
        return
    for i, expected in reference_outputs(trial).items():
        where = f"{trial}: output {operator.outputs[i]} against the reference"
        expect_close(results[i], expected, trial.case.rtol * eps(results[i].dtype), where)


# Ways of calling and transformations -----------------------------------------------------------


def check_doors(operator: Operator, case: Case) -> str | None:
    """Checks that eager call, symbol, lowered function, ``jit`` and a saved graph agree.

    Returns:
        The reason why nothing was compared, or None.

    Raises:
        AssertionError: two results differ.
    """
    dtype = case.dtypes[0]
    with jax.enable_x64(dtype == "float64"):
        return nothing_of(map(_check_front_doors, trials(operator, case, dtype)))


def check_vmap(operator: Operator, case: Case) -> str | None:
    """Checks ``vmap`` of value and gradient against each entry of the batch.

    Returns:
        The reason why nothing was compared, or None.

    Raises:
        AssertionError: they differ.
    """
    with jax.enable_x64(True):
        return nothing_of([_check_batched(one) for one in trials(operator, case)])


def _check_front_doors(trial: Trial) -> str | None:
    if any(isinstance(one, SelectedRows) for one in trial.inputs):
        return "rows are computed in a graph, and not fed"
    expected = _eager(trial)
    symbol, arrays = symbol_of(trial)
    rtol = _DOORS_RTOL * eps(trial.dtype) if trial.carrying else 0.0
    for name, run in _doors(trial, symbol).items():
        random.seed(SEED)
        for mine, other in zip(_leaves(run(**arrays)), expected, strict=True):
            where = f"{trial}: {name} against the eager call"
            expect_close(mine, other, rtol, where, lambda: f"\n{symbol}")
    return None


def _doors(trial: Trial, symbol: Symbol) -> dict[str, Callable[..., Any]]:
    """Returns the ways to run ``symbol`` on arrays, by name."""
    flag, key = bool(trial.training), jax.random.key(SEED)
    doors: dict[str, Callable[..., Any]] = {
        "Symbol.eval": functools.partial(symbol.eval, is_train=flag),
        "jit of to_jax()": _jitted(symbol.to_jax(is_train=flag), key),
        "jit of to_jax(rules=False)": _jitted(symbol.to_jax(is_train=flag, rules=False), key),
    }
    loaded = load_json(symbol.tojson())
    if not loaded.same_as(symbol):
        doors["a symbol saved and loaded"] = functools.partial(loaded.eval, is_train=flag)
    return doors


def _jitted(function: Callable[..., Any], key: Any) -> Callable[..., Any]:
    def run(**arrays: Any) -> Any:
        return compiled(lambda given: function(key=key, **given), arrays)(arrays)

    return run


def _leaves(result: Any) -> list[Any]:
    """Returns the outputs, then the new states."""
    if isinstance(result, tuple):
        outputs, states = result
        return [*_leaves(outputs), *states.values()]
    return list(result) if isinstance(result, list) else [result]


def _eager(trial: Trial) -> list[Any]:
    """Returns the results of the eager call, without new states that no graph would return."""
    operator = trial.operator
    keywords = operator.attribute_dict(trial.attributes)
    for slot, values in operator.input_groups(trial.inputs):
        if slot.role == "training":
            keywords[slot.name] = bool(trial.training)
        elif slot.variadic:
            keywords[slot.name] = values
        elif values and slot.role != "key":
            keywords[slot.name] = values[0]
    random.seed(SEED)
    result = operator(**keywords)
    results = list(result) if isinstance(result, tuple) else [result]
    return results if trial.training else results[: len(operator.visible)]


def symbol_of(trial: Trial) -> tuple[Symbol, dict[str, Any]]:
    """Returns the operator on variables, and the arrays of those in the graph."""
    operator = trial.operator
    arrays: dict[str, Any] = {}
    inputs: list[Any] = []
    for i, value in enumerate(trial.inputs):
        slot = operator.slot_of(i)
        if slot.implicit:
            inputs.append(None if value is None else LEFT_OUT)
        elif isinstance(value, jax.Array):
            name = f"{slot.name}{i}"
            arrays[name] = value
            inputs.append(_variable(name, value, state=slot.role == "state"))
        else:
            inputs.append(value)
    symbol: Symbol = Symbol.emitter.emit(operator, tuple(inputs), trial.attributes, None)
    needed = symbol.list_inputs()
    return symbol, {name: value for name, value in arrays.items() if name in needed}


def _variable(name: str, like: Any, *, state: bool = False) -> Symbol:
    made: Symbol = var(name, like.shape, like.dtype, state=state)
    return made


def _check_batched(trial: Trial) -> str | None:
    """Checks the lowered function and its gradient over a batch against each entry."""
    again = dataclasses.replace(trial.case, seed=trial.case.seed + 1000)
    other = Trial(trial.operator, again, trial.dtype, trial.training)
    places = [i for i, v in enumerate(trial.inputs) if i in trial.active or _is_integral(v)]
    if not places:
        return "no input is an array that a batch could be made of"
    if trial.types != other.types:
        return "another draw has other types"
    run = _with_gradients(trial, places)
    rtol = max(_BATCHED_RTOL, *(_DOORS_RTOL * eps(one.dtype) for one in trial.outputs))
    rows = [[one.inputs[i] for i in places] for one in (trial, other)]
    stacked = [jnp.stack(column) for column in zip(*rows, strict=True)]
    single = compiled(run, *rows[0])
    batched = compiled(jax.vmap(run), *stacked)(*stacked)
    for n, row in enumerate(rows):
        for mine, one in zip(batched, single(*row), strict=True):
            expect_close(mine[n], one, rtol, f"{trial}: vmap against entry {n} alone")
    return None


def _is_integral(value: Any) -> bool:
    return isinstance(value, jax.Array) and type_of(value).dtype.kind in "bi"


def _with_gradients(trial: Trial, places: Sequence[int]) -> Callable[..., list[Any]]:
    """Returns a function from the inputs at ``places`` to all outputs and any gradients."""
    outputs = trial.function("rules", places)

    def run(*values: Any) -> list[Any]:
        if not trial.differentiable:
            return outputs(*values)
        results, pull = jax.vjp(lambda *v: [outputs(*v)[i] for i in trial.carrying], *values)
        grads = pull([_weights(one) for one in results])
        return [*results, *[g for g in grads if g.dtype != jax.dtypes.float0]]

    return run


def _weights(like: Any) -> Any:
    """Returns distinct cotangents for ``like``."""
    return jnp.cos(jnp.arange(like.size, dtype=like.dtype)).reshape(like.shape)


# Misuse ----------------------------------------------------------------------------------------


def check_misuse(operator: Operator, misuse: Misuse) -> None:
    """Checks that the call is rejected, on arrays and on symbols, with the expected message.

    Raises:
        AssertionError: the call succeeds, or its message differs.
    """
    arguments = drawn_arguments(operator, misuse, np.dtype(np.float32))
    _expect_refused(operator, misuse, arguments, "")
    symbols = {
        name: _as_symbols(name, value) if name in operator.slot_index else value
        for name, value in arguments.items()
    }
    try:
        operator.bind((), dict(symbols))
        place = "built at"
    except SymopError:  # no node is built: only the traceback shows the call
        place = ""
    _expect_refused(operator, misuse, symbols, place)


def _as_symbols(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_as_symbols(f"{name}{i}", one) for i, one in enumerate(value)]
    return _variable(name, value) if isinstance(value, (np.ndarray, np.generic)) else value


def _expect_refused(
    operator: Operator, misuse: Misuse, arguments: Mapping[str, Any], place: str
) -> None:
    try:
        operator(**arguments)
    except SymopError as error:
        said = str(error)
    else:
        raise AssertionError(f"{operator.name}({misuse}): must be refused: {misuse.message}")
    for piece in (operator.name, misuse.message, place):
        if piece not in said:
            raise AssertionError(
                f"{operator.name}({misuse}): the message must contain {piece!r}, got {said!r}"
            )
