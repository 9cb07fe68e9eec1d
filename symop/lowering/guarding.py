"""Guards: operators without tangents, because these are zero or because they are refused."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from registry.caches import memoized
from registry.errors import NotDifferentiableError
from registry.operator.attributes import identity_key
from registry.operator.infer import abstract
from registry.operator.operator import Derivative, Operator
from registry.primitives import REVERSE_ONLY, binds
from registry.types import TRAINING_TYPE, VarType
from registry.values import TensorArray
from registry.var import Attributes
from registry.xla.device_types import of_type
from symop.lowering.steps import Call, bare_kernel, type_of
from symop.lowering.transposition import Active, Linear, Values

Types = tuple[VarType | None, ...]


def on_arrays(operator: Operator, attributes: Attributes) -> Call:
    """Returns the kernel of ``operator``, with Python numbers converted to arrays.

    JAX's rules may pass bare numbers. They are unchanged if the operator declares that its kernel
    ``takes_numbers``.
    """
    kernel = bare_kernel(operator, attributes)
    if operator.takes_numbers:
        return kernel

    def call(*inputs: Any, **others: Any) -> Any:
        return kernel(*[_as_array(one) for one in inputs], **others)

    return call


def _as_array(value: Any) -> Any:
    """Converts numbers to arrays, which keeps them weakly typed; flags are unchanged."""
    number = isinstance(value, (int, float, complex, np.ndarray, np.generic))
    return jnp.asarray(value) if number and not isinstance(value, bool) else value


class Flagged(NamedTuple):
    """Inserts the training flag among the other inputs."""

    operator: Operator
    training: bool | None

    def inputs(self, rest: Sequence[Any]) -> tuple[Any, ...]:
        """Returns ``rest`` with the flag in its slot."""
        if self.training is None:
            return tuple(rest)
        supply = iter(rest)
        flagged = [
            self.training if slot.role == "training" else next(supply)
            for slot in self.operator.slots[: self.operator.n_fixed]
        ]
        return (*flagged, *supply)


@memoized(4096, key=identity_key)
def without_maker(operator: Operator, attributes: Attributes) -> Call:
    """Returns the kernel, guarded if a derivative could flow through it."""
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
        return guard(operator, attributes, training, refusal)(*rest)

    return call


def with_jvp(operator: Operator, kernel: Call, flagged: Flagged, moved: Call) -> Call:
    """Returns ``kernel`` without its training flag, with ``moved`` as its JVP rule.

    ``moved`` receives primals and tangents, where tangents that do not move are symbolic zeros. It
    returns results and tangents, with None for tangents that do not move.
    """

    def primal(*rest: Any) -> Any:
        result = kernel(*flagged.inputs(rest))
        return result if operator.single else tuple(result)

    primal.__name__ = operator.name

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        pairs = zip(primals, tangents, strict=True)
        result, ways = moved(primals, [_arrays_tangent(*pair) for pair in pairs])
        return result, _tangents(result, ways)

    wrapped: Any = jax.custom_jvp(primal)
    wrapped.defjvp(rule, symbolic_zeros=True)
    call: Call = wrapped
    return call


@memoized(4096, key=identity_key)
def guard(
    operator: Operator,
    attributes: Attributes,
    training: bool | None,
    refusal: str | None,
) -> Call:
    """Returns the kernel with zero tangents, or with tangents that raise ``refusal``."""
    kernel = on_arrays(operator, attributes)
    flagged = Flagged(operator, training)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if refusal is not None and any(moves(one) for one in tangents):
            raise NotDifferentiableError(refusal)
        result = wrapped(*primals)
        return result, None if operator.single else (None,) * len(result)

    wrapped = with_jvp(operator, kernel, flagged, rule)
    return wrapped


# Kernels for which JAX has forward mode only ------------------------------------------------------


@memoized(4096)
def moved_by_jax(operator: Operator, _key: Any, attributes: Attributes, types: Types) -> bool:
    """Whether JAX has forward mode for the kernel: not if it contains a ``custom_vjp``."""
    if operator.opaque:
        return False
    kernel = bare_kernel(operator, attributes)
    present = [(i, one) for i, one in enumerate(types) if one is not None]
    moving = [i for i, one in present if one.differentiable]
    if not moving:
        return True

    def tangents(*values: Any) -> Any:
        inputs: list[Any] = [None] * len(types)
        for (i, _), value in zip(present, values, strict=True):
            inputs[i] = value
        primals = [inputs[i] for i in moving]
        return jax.jvp(_of(kernel, inputs, moving), primals, primals)

    try:
        jaxpr = jax.make_jaxpr(tangents)(*[abstract(one) for _, one in present])
    except Exception:  # of any kind: JAX cannot differentiate the kernel
        return False
    # JAX reports tangents that can only be transposed when it evaluates them.
    return not binds(jaxpr, REVERSE_ONLY)


def _of(kernel: Call, inputs: Sequence[Any], places: Sequence[int]) -> Call:
    """Returns ``kernel`` as a function of the inputs at ``places``."""

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
    except Exception:  # of any kind: JAX cannot trace the function
        return False
    return True


@memoized(4096, key=identity_key)
def in_forward(operator: Operator, attributes: Attributes, refusal: str) -> Call:
    """Returns the kernel with JAX's tangents, which must not be transposed, as those of a loop."""
    kernel = on_arrays(operator, attributes)

    def refuse(*_values: Any) -> Any:
        raise NotDifferentiableError(refusal)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        result = wrapped(*primals)
        types = [type_of(one) for one in list_outputs(operator, result)]
        along = _ForwardOnlyCall(
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
        moved = [next(supply) if one.differentiable else None for one in types]
        return result, moved[0] if operator.single else tuple(moved)

    wrapped = with_jvp(operator, kernel, Flagged(operator, None), rule)
    return wrapped


def _listing(operator: Operator, kernel: Call, *inputs: Any) -> list[Any]:
    return list_outputs(operator, kernel(*inputs))


class _ForwardOnlyCall(NamedTuple):
    """JAX's tangents of one call, as a function of its inputs and their tangents.

    Attributes:
        kernel: Maps all inputs to a list of outputs.
        arity: The number of inputs.
        given: The inputs that are present.
        moving: The inputs that have tangents.
        places: The outputs that have tangents.
    """

    kernel: Call
    arity: int
    given: Active
    moving: Active
    places: Active

    def run(self, residuals: Values, linear: Values) -> list[Any]:
        """Returns the tangents of the outputs."""
        inputs: list[Any] = [None] * self.arity
        for i, value in zip(self.given, residuals, strict=True):
            inputs[i] = value
        primals = [inputs[i] for i in self.moving]
        moved = jax.jvp(_of(self.kernel, inputs, self.moving), primals, list(linear))[1]
        return [moved[i] for i in self.places]

    def moved(
        self, active: Active, values: Values, tangents: Values
    ) -> tuple[list[Any], list[Any]]:
        """Returns the tangents of the outputs and the tangents of these."""

        def run(*every: Any) -> list[Any]:
            return self.run(every[: len(self.given)], every[len(self.given) :])

        primals = [values[i] for i in active]
        return jax.jvp(_of(run, values, active), primals, list(tangents))


# Tangents ----------------------------------------------------------------------------------------


def moves(tangent: Any) -> bool:
    """Whether ``tangent`` is present and not a symbolic zero."""
    still = tangent is None or isinstance(tangent, (bool, SymbolicZero))
    return not still and getattr(tangent, "dtype", None) != jax.dtypes.float0


def _arrays_tangent(primal: Any, tangent: Any) -> Any:
    """Returns a tensor array's tangent as operators take it, with the length of the primal."""
    if not isinstance(tangent, TensorArray):
        return tangent
    still = not moves(tangent.values)
    return tangent.values if still else TensorArray(tangent.values, primal.length)


def _tangents(result: Any, moved: Any) -> Any:
    """Returns tangents as JAX takes them: typed like the results, none for an array's length."""
    if isinstance(result, tuple):
        return tuple(map(_tangents, result, moved))
    if isinstance(result, TensorArray):
        values = None if moved is None else moved.values
        return TensorArray(_tangents(result.values, values), no_tangent(result.length))
    return no_tangent(result) if moved is None else of_type(moved, jax.typeof(result))


def no_tangent(value: Any) -> Any:
    """Returns the tangent of a ``value`` that does not move: a symbolic zero."""
    zero: Any = SymbolicZero
    return zero(jax.typeof(value).to_tangent_aval())


def list_outputs(operator: Operator, result: Any) -> list[Any]:
    """Returns the result of a call of ``operator`` as a list of its outputs."""
    return [result] if operator.single else list(result)
