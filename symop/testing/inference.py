"""Checks of types: inferred types are those that the kernels compute."""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import Case
from registry.errors import SymopError
from registry.operator import infer
from registry.operator.operator import Operator
from registry.types import KEY_TYPE, TRAINING_TYPE, DType, VarType, as_dtype
from registry.values import SelectedRows, TensorArray
from symop.graph.nodes import SELECT, topological
from symop.io.text import text
from symop.lowering.steps import Schedule, bare, type_of
from symop.testing.derived import derivatives, flat
from symop.testing.trial import Trial, trials

Types = tuple[VarType | None, ...]

_DTYPES = {False: ("float32", "bfloat16"), True: ("float64", "float16")}
"""The dtypes of the trials without and with JAX's x64 flag."""
_ALL_DTYPES = (
    *("bool", "int8", "uint8", "int32", "int64"),
    *("bfloat16", "float16", "float32", "complex64"),
)
_SCALARS = (True, 2, 0.5)
_LEVELS = 3
"""Level 0 and the gradients of two orders; higher orders repeat the same operators."""


def check_inference(operator: Operator, case: Case) -> None:
    """Checks inferred types against the kernel's results, in each dtype, with x64 on and off.

    Also checks every node of the gradient graph, mixed dtypes, and Python numbers in place of
    arrays.

    Raises:
        AssertionError: an inferred type differs from the computed one.
    """
    for x64, dtypes in _DTYPES.items():
        with jax.enable_x64(x64):
            for dtype in dtypes:
                for trial in trials(operator, case, dtype):
                    _check_types(trial, trial.types)
                    if trial.differentiable:
                        _check_gradient(trial)
    with jax.enable_x64(True):
        trial = trials(operator, case, "float32")[0]
        for types in _variations(trial.types):
            _check_types(trial, types)


def _variations(types: Types) -> Iterator[Types]:
    """Yields types of the same shapes: other dtypes, mixed dtypes, numbers in place of arrays."""
    arrays = [i for i, one in enumerate(types) if one not in (None, KEY_TYPE, TRAINING_TYPE)]
    for name in _ALL_DTYPES:
        dtype = as_dtype(name)
        if len(arrays) > 1:
            yield functools.reduce(lambda all, i: _with_dtype(all, i, dtype), arrays, types)
        for i in arrays:
            yield _with_dtype(types, i, dtype)
    for i in arrays:
        for number in _SCALARS:
            yield _with(types, i, type_of(number))
            yield _with(types, i, _weak(types[i], number))
    if len(arrays) == 2:
        for one, other in itertools.product(_SCALARS, repeat=2):
            yield _with(_with(types, arrays[0], type_of(one)), arrays[1], type_of(other))


def _with(types: Types, index: int, type: VarType) -> Types:
    return (*types[:index], type, *types[index + 1 :])


def _with_dtype(types: Types, index: int, dtype: DType) -> Types:
    before = types[index]
    assert before is not None
    return _with(types, index, VarType(before.shape, dtype))


def _weak(type: VarType | None, number: bool | float) -> VarType:
    """Returns the type of an array of this shape that was converted from a Python number."""
    assert type is not None
    return VarType(type.shape, type_of(number).dtype, weak=True)


def _check_types(trial: Trial, types: Types) -> None:
    """Checks the types inferred for ``types``, unless rejected, against the traced kernel."""
    try:
        said = list(trial.operator.infer(types, trial.attributes))
    except SymopError:
        return
    given = _shown([one for one in types if one is not None])
    try:
        real = _traced(trial, types)
    except Exception as error:
        raise AssertionError(
            f"{trial}: inference takes ({given}), but the kernel refuses it: {error}"
        ) from error
    if list(map(_significant, said)) != list(map(_significant, real)):
        raise AssertionError(
            f"{trial}: for ({given}) the inferred types must be those of the kernel's result, "
            f"{_shown(real)}, got {_shown(said)}"
        )


def _traced(trial: Trial, types: Types) -> list[VarType]:
    places = [i for i, one in enumerate(types) if one is not None and one is not TRAINING_TYPE]
    stand_ins = [infer.abstract(one) for i in places if (one := types[i]) is not None]
    results = jax.eval_shape(trial.function("kernel", places, as_they_are=True), *stand_ins)
    return [type_of_abstract(one) for one in results]


def type_of_abstract(value: Any) -> VarType:
    """Returns the type of a result of ``jax.eval_shape``."""
    if isinstance(value, (SelectedRows, TensorArray)):
        return value.type
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return KEY_TYPE
    return VarType(tuple(value.shape), np.dtype(value.dtype), weak=bool(value.weak_type))


def _significant(type: VarType) -> VarType:
    """Returns ``type`` without a boolean's weakness, which does not affect promotion."""
    return type.strong() if type.dtype == np.bool_ else type


def _shown(types: Sequence[VarType]) -> str:
    return ", ".join(f"weak {one}" if one.weak else str(one) for one in types)


def _check_gradient(trial: Trial) -> None:
    """Checks the type of every node of the gradient graphs of two orders."""
    levels = derivatives(trial).graph.levels[:_LEVELS]
    values = [
        node
        for node in topological(flat(levels))
        if node.types is not None and (node.op is SELECT or len(node.types) == 1)
    ]
    values = [node for node in values if node.constant is None]
    fed = [node for node in values if not node.inputs]
    schedule = Schedule(values, fed, bare)
    stand_ins = [infer.abstract(node.type) for node in fed]
    results = jax.eval_shape(lambda *arrays: schedule(arrays)[0], *stand_ins)
    for node, result in zip(values, results, strict=True):
        real = type_of_abstract(result)
        if _significant(node.type) != _significant(real):
            raise AssertionError(
                f"{trial}: in the gradient program {node.op.name} is inferred to be "
                f"{_shown([node.type])}, but computes {_shown([real])}\n{text([node])}"
            )
