"""Guards: operators that pass no tangent on, because it is zero or because it is refused."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from registry.errors import NotDifferentiableError
from registry.operator import Derivative, Operator
from registry.types import TRAINING_TYPE, VarType
from registry.var import Attributes
from symop.lowering import Call, bare_kernel, type_of


class Flagged(NamedTuple):
    """Puts the training flag back among the other inputs."""

    operator: Operator
    training: bool | None

    def inputs(self, rest: Sequence[Any]) -> tuple[Any, ...]:
        """``rest`` with the flag in its slot."""
        if self.training is None:
            return tuple(rest)
        supply = iter(rest)
        flagged = [
            self.training if slot.role == "training" else next(supply)
            for slot in self.operator.slots[: self.operator.n_fixed]
        ]
        return (*flagged, *supply)


@functools.lru_cache(maxsize=4096)
def without_maker(operator: Operator, _key: Any, attributes: Attributes) -> Call:
    """The kernel, guarded where a derivative could flow through it."""
    flag = operator.training_index
    kernel = bare_kernel(operator, attributes)
    refusal = None
    if operator.derivative is not Derivative.ZERO:
        refusal = (
            f"{operator.name}: a derivative is asked for, but it is "
            f"{operator.derivative.value} ({operator.reason})"
        )

    def call(*inputs: Any) -> Any:
        types = [None if one is None else type_of(one) for one in inputs]
        if not any(one is not None and one.differentiable for one in types):
            return kernel(*inputs)
        if flag is not None:
            types[flag] = TRAINING_TYPE
        if not any(one.differentiable for one in operator.infer(tuple(types), attributes)):
            return kernel(*inputs)
        training = None if flag is None else bool(inputs[flag])
        rest = [one for i, one in enumerate(inputs) if i != flag]
        return guarded(operator, _key, attributes, training, refusal)(*rest)

    return call


@functools.lru_cache(maxsize=4096)
def guarded(
    operator: Operator,
    _key: Any,
    attributes: Attributes,
    training: bool | None,
    refusal: str | None,
) -> Call:
    """The kernel with tangents of zero, or the refusal to make any."""
    kernel = bare_kernel(operator, attributes)
    flagged = Flagged(operator, training)

    def primal(*rest: Any) -> Any:
        result = kernel(*flagged.inputs(rest))
        return result if operator.single else tuple(result)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if refusal is not None and any(moves(one) for one in tangents):
            raise NotDifferentiableError(refusal)
        result = wrapped(*primals)
        return result, jax.tree.map(lambda one: no_tangent(type_of(one)), result)

    primal.__name__ = operator.name
    wrapped: Any = jax.custom_jvp(primal)
    wrapped.defjvp(rule, symbolic_zeros=True)
    call: Call = wrapped
    return call


def moves(tangent: Any) -> bool:
    """Whether there is a tangent, zeros that JAX knows of left out."""
    still = tangent is None or isinstance(tangent, (bool, SymbolicZero))
    return not still and getattr(tangent, "dtype", None) != jax.dtypes.float0


def no_tangent(type: VarType) -> Any:
    """The tangent of a value of ``type`` that does not move."""
    if type.differentiable:
        return jnp.zeros(type.shape, type.dtype)
    return np.zeros(type.shape, jax.dtypes.float0)


def listed(operator: Operator, result: Any) -> list[Any]:
    """What a call of ``operator`` returned, as a list of its outputs."""
    return [result] if operator.single else list(result)
