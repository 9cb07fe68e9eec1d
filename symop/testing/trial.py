"""Trials: cases with drawn arrays, ready to be run."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from registry.cases import Case, Misuse
from registry.operator.binding import LEFT_OUT
from registry.operator.bodies import drawn as attribute
from registry.operator.operator import Derivative, Operator
from registry.types import KEY_TYPE, TRAINING_TYPE, DType, VarKind, VarType, as_dtype
from registry.values import SelectedRows
from symop.lowering.rules import with_rule
from symop.lowering.steps import bare_kernel, type_of
from symop.testing.compare import dense

Arrays = list[jax.Array]
Source = Literal["graph", "kernel", "rules"]
"""Sources of derivatives: the gradient graph, JAX on the bare kernel, JAX on the rules."""

SEED = 7
_FAST_COMPILE: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": True,
}
"""Proofs run once on a few numbers, so that compilation dominates their cost."""


class Trial:
    """One case with drawn arrays.

    Attributes:
        inputs: a value for each flat input: an array, a number, None, a key or the training flag.
        types: their types.
        outputs: types of the outputs, as dense arrays.
        active: indices of the differentiated inputs: inexact arrays other than states.
        carrying: indices of the outputs that have cotangents.
    """

    def __init__(
        self, operator: Operator, case: Case, dtype: str = "float64", training: bool | None = None
    ) -> None:
        """Draws ``case`` in ``dtype``, under the current x64 flag of JAX."""
        self.operator, self.case, self.dtype = operator, case, dtype
        self.training = training
        drawn = drawn_arguments(operator, case, as_dtype(dtype))
        inputs, self.attributes, _ = operator.bind((), drawn)
        self.inputs = tuple(self._filled(i, value) for i, value in enumerate(inputs))
        self.operator = operator = operator.resolved(self.inputs, self.attributes)
        self.types = tuple(self._type(i, value) for i, value in enumerate(self.inputs))
        self.outputs = tuple(map(dense_type, operator.infer(self.types, self.attributes)))
        self.active = [i for i in range(len(inputs)) if self._is_active(i)]
        updated = set(operator.updates.values())
        self.carrying = [
            i
            for i, (name, type) in enumerate(zip(operator.outputs, self.outputs, strict=True))
            if type.differentiable and name not in updated
        ]

    def _filled(self, index: int, value: Any) -> Any:
        role = self.operator.slot_of(index).role
        if role == "training":
            return bool(self.training)
        if role == "key":
            return jax.random.key(SEED)
        assert value is not LEFT_OUT, f"{self}: slot {self.operator.slot_of(index).name} is empty"
        if isinstance(value, SelectedRows):
            return jax.tree.map(jnp.asarray, value)
        return jnp.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else value

    def _type(self, index: int, value: Any) -> VarType | None:
        if self.operator.slot_of(index).role == "training":
            return TRAINING_TYPE
        return None if value is None else type_of(value)

    def _is_active(self, index: int) -> bool:
        type = self.types[index]
        array = isinstance(self.inputs[index], jax.Array)
        inexact = type is not None and type is not KEY_TYPE and type.differentiable
        return array and inexact and self.operator.slot_of(index).role != "state"

    def __str__(self) -> str:
        told_apart = self.training is not None and "training" not in self.case.values
        training = f", training={self.training}" if told_apart else ""
        return f"{self.operator.name}({self.case}{training}) in {self.dtype}"

    @property
    def primals(self) -> Arrays:
        """The arrays that are differentiated."""
        return [self.inputs[i] for i in self.active]

    @property
    def differentiable(self) -> bool:
        """Whether the operator has a gradient maker and this case has a gradient."""
        made = self.operator.derivative in (Derivative.MAKER, Derivative.KERNEL)
        return made and bool(self.active) and bool(self.carrying)

    @property
    def order(self) -> int:
        """The highest derivative that is compared."""
        return max(1, self.case.order)

    def replaced(self, places: Sequence[int], values: Sequence[Any]) -> tuple[Any, ...]:
        """Returns all inputs, with ``values`` at ``places``."""
        inputs = list(self.inputs)
        for i, value in zip(places, values, strict=True):
            inputs[i] = value
        return tuple(inputs)

    def function(
        self, source: Source, places: Sequence[int], *, as_they_are: bool = False
    ) -> Callable[..., list[Any]]:
        """Returns a function from values for the inputs at ``places`` to a list of all outputs.

        Rows are made dense unless ``as_they_are`` is set.
        """
        chosen = bare_kernel if source == "kernel" else with_rule
        call = chosen(self.operator, self.attributes)

        def run(*values: Any) -> list[Any]:
            result = call(*self.replaced(places, values))
            results = [result] if self.operator.single else list(result)
            return results if as_they_are else list(map(dense, results))

        return run


def dense_type(type: VarType) -> VarType:
    """Returns the type of ``dense(value)`` for a value of ``type``."""
    is_array = type.kind is VarKind.LOD_TENSOR_ARRAY
    return VarType(type.shape, type.dtype) if is_array else type


def drawn_arguments(operator: Operator, case: Case | Misuse, dtype: DType) -> dict[str, Any]:
    """Returns the arguments of a case by keyword, with the contents of slots drawn in ``dtype``."""
    of_case = case if isinstance(case, Case) else Case(case.values)
    return {
        name: of_case.draw(name, dtype) if name in operator.slot_index else attribute(value, dtype)
        for name, value in case.values.items()
        if name != "training"
    }


def trials(operator: Operator, case: Case, dtype: str = "float64") -> list[Trial]:
    """Returns the trials of a case: with and without training, if the operator distinguishes them.

    The most recent ones are cached, so that the proofs of one case share compiled functions.
    """
    x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # set by jax at run time
    return _trials(operator, case, dtype, x64)


@functools.lru_cache(maxsize=8)
def _trials(operator: Operator, case: Case, dtype: str, _x64: bool) -> list[Trial]:
    return [Trial(operator, case, dtype, flag) for flag in _training_flags(operator, case)]


def _training_flags(operator: Operator, case: Case) -> list[bool | None]:
    if operator.training_index is None:
        return [None]
    given = case.values.get("training")
    return [False, True] if given is None else [bool(given)]


def compiled(function: Callable[..., Any], *arguments: Any) -> Any:
    """Compiles ``function`` for ``arguments`` in the least time."""
    return jax.jit(function).lower(*arguments).compile(compiler_options=_FAST_COMPILE)
