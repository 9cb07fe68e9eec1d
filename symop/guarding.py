"""Guards: operators that pass no tangent on, because it is zero or because it is refused."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from registry.errors import NotDifferentiableError
from registry.infer import abstract
from registry.operator import Derivative, Operator
from registry.types import TRAINING_TYPE, VarKind, VarType
from registry.values import TensorArray
from registry.var import Attributes
from symop.lowering import Call, bare_kernel, type_of
from symop.transposition import Active, Linear, Values

Types = tuple[VarType | None, ...]


def on_arrays(operator: Operator, attributes: Attributes) -> Call:
    """The kernel of ``operator``, called with arrays where JAX's rules hold bare numbers.

    The kernels of the catalogue take numbers as they are.
    """
    kernel = bare_kernel(operator, attributes)
    if operator.catalogued:
        return kernel

    def call(*inputs: Any) -> Any:
        return kernel(*[_as_array(one) for one in inputs])

    return call


def _as_array(value: Any) -> Any:
    """Numbers as arrays, which keeps them weak; flags stay."""
    number = isinstance(value, (int, float, complex, np.ndarray, np.generic))
    return jnp.asarray(value) if number and not isinstance(value, bool) else value


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
    kernel = on_arrays(operator, attributes)
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


def with_jvp(operator: Operator, kernel: Call, flagged: Flagged, moved: Call) -> Call:
    """``kernel`` without its training flag, with ``moved`` for its tangents.

    It gets primals and tangents; tangents that do not move are symbolic zeros.
    """

    def primal(*rest: Any) -> Any:
        result = kernel(*flagged.inputs(rest))
        return result if operator.single else tuple(result)

    primal.__name__ = operator.name

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        pairs = zip(primals, tangents, strict=True)
        result, ways = moved(primals, [_arrays_tangent(*pair) for pair in pairs])
        return result, _tangents(ways)

    wrapped: Any = jax.custom_jvp(primal)
    wrapped.defjvp(rule, symbolic_zeros=True)
    call: Call = wrapped
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
    kernel = on_arrays(operator, attributes)
    flagged = Flagged(operator, training)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if refusal is not None and any(moves(one) for one in tangents):
            raise NotDifferentiableError(refusal)
        result = wrapped(*primals)
        return result, jax.tree.map(lambda one: no_tangent(type_of(one)), result)

    wrapped = with_jvp(operator, kernel, flagged, rule)
    return wrapped


# Kernels for which JAX has forward mode alone -----------------------------------------------------


@functools.lru_cache(maxsize=4096)
def moved_by_jax(operator: Operator, _key: Any, attributes: Attributes, types: Types) -> bool:
    """Whether JAX has forward mode for the kernel: not where it has a ``custom_vjp`` inside."""
    if operator.opaque:
        return False
    kernel = bare_kernel(operator, attributes)
    given = [(i, one) for i, one in enumerate(types) if one is not None]
    moving = [i for i, one in given if one.differentiable]
    if not moving:
        return True

    def tangents(*values: Any) -> Any:
        inputs: list[Any] = [None] * len(types)
        for (i, _), value in zip(given, values, strict=True):
            inputs[i] = value
        primals = [inputs[i] for i in moving]
        return jax.jvp(_of(kernel, inputs, moving), primals, primals)

    try:
        found = jax.make_jaxpr(tangents)(*[abstract(one) for _, one in given])
    except Exception:  # whatever a kernel does that JAX cannot differentiate
        return False
    return not _refuses_tangents(found.jaxpr)


def _refuses_tangents(program: Any) -> bool:
    """Whether tangents are there to be transposed alone, which JAX tells only when it runs them."""
    if isinstance(program, (tuple, list)):
        return any(map(_refuses_tangents, program))
    program = getattr(program, "jaxpr", program)
    return any(
        one.primitive.name == "custom_lin" or any(map(_refuses_tangents, one.params.values()))
        for one in getattr(program, "eqns", ())
    )


def _of(kernel: Call, inputs: Sequence[Any], places: Sequence[int]) -> Call:
    """``kernel`` as a function of the inputs at ``places``."""

    def run(*values: Any) -> Any:
        filled = list(inputs)
        for i, value in zip(places, values, strict=True):
            filled[i] = value
        return kernel(*filled)

    return run


def traces(function: Call, types: Sequence[VarType]) -> bool:
    """Whether JAX can trace ``function`` for inputs of ``types``."""
    try:
        jax.eval_shape(function, *map(abstract, types))
    except Exception:  # whatever a kernel does that JAX cannot differentiate
        return False
    return True


@functools.lru_cache(maxsize=4096)
def in_forward(operator: Operator, _key: Any, attributes: Attributes, refusal: str) -> Call:
    """The kernel with JAX's tangents, which must not be transposed: it has a loop inside, say."""
    kernel = on_arrays(operator, attributes)

    def refuse(*_values: Any) -> Any:
        raise NotDifferentiableError(refusal)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        result = wrapped(*primals)
        types = [type_of(one) for one in listed(operator, result)]
        along = _Along(
            functools.partial(_listing, operator, kernel),
            len(primals),
            tuple(i for i, one in enumerate(primals) if one is not None),
            tuple(i for i, one in enumerate(tangents) if moves(one)),
            tuple(i for i, one in enumerate(types) if one.differentiable),
        )
        ways = [tangents[i] for i in along.moving]
        supply = iter(
            Linear(along.run, along.moved, refuse)([primals[i] for i in along.given], ways)
        )
        moved = [next(supply) if one.differentiable else no_tangent(one) for one in types]
        return result, moved[0] if operator.single else tuple(moved)

    wrapped = with_jvp(operator, kernel, Flagged(operator, None), rule)
    return wrapped


def _listing(operator: Operator, kernel: Call, *inputs: Any) -> list[Any]:
    return listed(operator, kernel(*inputs))


class _Along(NamedTuple):
    """JAX's tangents of one call, as a function of its inputs and of their tangents.

    Attributes:
        kernel: from all inputs to a list of outputs.
        arity: how many inputs there are.
        given: those that are present.
        moving: those that have tangents.
        places: the outputs that have tangents.
    """

    kernel: Call
    arity: int
    given: Active
    moving: Active
    places: Active

    def run(self, residuals: Values, linear: Values) -> list[Any]:
        """The tangents of the outputs."""
        inputs: list[Any] = [None] * self.arity
        for i, value in zip(self.given, residuals, strict=True):
            inputs[i] = value
        primals = [inputs[i] for i in self.moving]
        moved = jax.jvp(_of(self.kernel, inputs, self.moving), primals, list(linear))[1]
        return [moved[i] for i in self.places]

    def moved(
        self, active: Active, values: Values, tangents: Values
    ) -> tuple[list[Any], list[Any]]:
        """The tangents of the outputs, and theirs."""

        def run(*every: Any) -> list[Any]:
            return self.run(every[: len(self.given)], every[len(self.given) :])

        primals = [values[i] for i in active]
        return jax.jvp(_of(run, values, active), primals, list(tangents))


# Tangents ----------------------------------------------------------------------------------------


def moves(tangent: Any) -> bool:
    """Whether there is a tangent, zeros that JAX knows of left out."""
    still = tangent is None or isinstance(tangent, (bool, SymbolicZero))
    return not still and getattr(tangent, "dtype", None) != jax.dtypes.float0


def _arrays_tangent(primal: Any, tangent: Any) -> Any:
    """The tangent of a tensor array as one that operators take: of the same length."""
    if not isinstance(tangent, TensorArray):
        return tangent
    still = not moves(tangent.values)
    return tangent.values if still else TensorArray(tangent.values, primal.length)


def _tangents(moved: Any) -> Any:
    """Tangents as JAX takes them: the length of a tensor array has none."""
    if isinstance(moved, tuple):
        return tuple(map(_tangents, moved))
    if isinstance(moved, TensorArray):
        return TensorArray(moved.values, np.zeros((), jax.dtypes.float0))
    return moved


def no_tangent(type: VarType) -> Any:
    """The tangent of a value of ``type`` that does not move."""
    if type.kind is VarKind.LOD_TENSOR_ARRAY:
        dense = VarType(type.shape, type.dtype)
        return TensorArray(no_tangent(dense), np.zeros((), jax.dtypes.float0))
    if type.differentiable:
        return jnp.zeros(type.shape, type.dtype)
    return np.zeros(type.shape, jax.dtypes.float0)


def listed(operator: Operator, result: Any) -> list[Any]:
    """What a call of ``operator`` returned, as a list of its outputs."""
    return [result] if operator.single else list(result)
