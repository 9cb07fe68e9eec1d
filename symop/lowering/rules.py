"""Operators as JAX functions whose derivatives are their gradient makers.

The JVP rule of an operator is its pushforward, a graph over placeholders. The nodes of that graph
that depend on tangents run as bare kernels, which JAX can transpose; the others keep their own
rules, so makers are honored to every order and no rule calls itself. A maker that is not linear in
its cotangent has no pushforward: its operator gets tangents that can be transposed but not
computed. A kernel that is opaque to JAX is never left to JAX: where tangents flow through it, it is
transposed by its maker.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from registry.caches import memoized
from registry.errors import NotDifferentiableError, NotLinearError, SymopError
from registry.operator.attributes import identity_key, typed_key
from registry.operator.bodies import bodies_of
from registry.operator.operator import Derivative, Operator
from registry.primitives import reduces_over_devices
from registry.types import VarKind, VarType
from registry.values import TensorArray
from registry.var import Attributes
from registry.xla.device_types import (
    axes_of,
    type_axes,
    types_of,
    varied,
    varying_axes,
    zeros_of,
)
from registry.xla.unstack import transposing
from symop.autodiff.differentiate import (
    Pushforward,
    pushforward_of,
)
from symop.graph.nodes import Node, reaching, topological
from symop.lowering.guarding import (
    Flagged,
    guard,
    in_forward,
    list_outputs,
    moved_by_jax,
    moves,
    on_arrays,
    traces,
    with_jvp,
    without_maker,
)
from symop.lowering.reverse import Pullback
from symop.lowering.steps import Call, Schedule, bare, bare_kernel, is_native, type_of
from symop.lowering.transposition import Active, Linear, Values

Types = tuple[VarType | None, ...]


def with_rule(operator: Operator, attributes: Attributes) -> Call:
    """Returns the kernel of ``operator``, differentiated by JAX as the operator declares."""
    if operator.derivative is Derivative.KERNEL:
        return _by_kernel(operator, attributes)
    if operator.gradient_rule is not None:
        return _with_rule(operator, attributes)
    if operator.derivative is Derivative.ZERO and operator.native:
        return bare_kernel(operator, attributes)
    return without_maker(operator, attributes)


def ruled(node: Node) -> Call:
    """Returns the function of ``node`` that JAX differentiates as the operator declares."""
    assert isinstance(node.op, Operator)
    return with_rule(node.op, node.attributes)


def bare_where_native(node: Node) -> Call:
    """Returns the bare kernel, unless JAX's derivative of it differs from the declared one."""
    return bare(node) if is_native(node) else ruled(node)


@memoized(4096, key=identity_key)
def _with_rule(operator: Operator, attributes: Attributes) -> Call:
    flag = operator.training_index

    def call(*inputs: Any) -> Any:
        training = None if flag is None else bool(inputs[flag])
        types = tuple(None if one is None else type_of(one) for one in inputs)
        if _meets_rows(operator, types, attributes):
            return on_arrays(operator, attributes)(*inputs)
        rest = [one for i, one in enumerate(inputs) if i != flag]
        obstacle = _obstacle(operator, attributes, types, training)
        if obstacle is None:
            return _by_jvp(operator, attributes, training)(*rest)
        return _in_reverse(operator, attributes, types, training)(*rest)

    return call


def _meets_rows(operator: Operator, types: Types, attributes: Attributes) -> bool:
    """Whether rows go in or come out, which JAX differentiates by their values, as a pytree.

    A maker may return a cotangent of rows that is dense or has other rows; JAX requires the same
    rows.
    """
    kinds = tuple(None if one is None else one.kind for one in types)
    if VarKind.SELECTED_ROWS in kinds:
        return True
    if operator.inference.kind_rule is None:
        return False
    return VarKind.SELECTED_ROWS in operator.inference.kinds(kinds, attributes)


@memoized(4096, key=typed_key)
def _obstacle(
    operator: Operator,
    attributes: Attributes,
    types: Types,
    training: bool | None,
) -> SymopError | None:
    """Returns why forward mode does not exist, or None; reverse mode by the maker still may."""
    active = tuple(i for i, one in enumerate(types) if one is not None and one.differentiable)
    try:
        pushforward_of(operator, attributes, types, active, training)
    except (NotLinearError, NotDifferentiableError) as error:
        return error.with_traceback(None)
    except Exception:
        # A maker that fails must not prevent evaluation; differentiation reports the error.
        return None
    return None


# JAX's own derivatives ---------------------------------------------------------------------------


@memoized(4096, key=identity_key)
def _by_kernel(operator: Operator, attributes: Attributes) -> Call:
    """Returns the kernel, differentiated by JAX as far as JAX can, which is found by trying."""
    if operator.transposable:
        return bare_kernel(operator, attributes)
    kernel = on_arrays(operator, attributes)

    def call(*inputs: Any) -> Any:
        types = tuple(None if one is None else type_of(one) for one in inputs)
        refusal = _refusal(operator, attributes, types)
        if moved_by_jax(operator, typed_key(attributes), attributes, types):
            function = kernel if refusal is None else in_forward(operator, attributes, refusal)
        elif refusal is None:
            function = _with_rule(operator, attributes)
        else:
            function = guard(operator, attributes, None, refusal)
        return function(*inputs)

    return call


@memoized(4096, key=typed_key)
def _refusal(operator: Operator, attributes: Attributes, types: Types) -> str | None:
    """Returns why a call has no derivative in reverse mode, or None if it has one."""
    try:
        Pullback(operator, attributes, types, None, _without_rules)
    except NotDifferentiableError as error:
        return str(error).partition("\n")[0]
    return None


# Linear makers: custom_jvp ---------------------------------------------------------------------


@memoized(4096, key=identity_key)
def _by_jvp(
    operator: Operator,
    attributes: Attributes,
    training: bool | None,
) -> Call:
    flagged = Flagged(operator, training)

    def kernel(*inputs: Any) -> Any:
        return _spread(operator, attributes, flagged, inputs)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        inputs = flagged.inputs(primals)
        moving = flagged.inputs(tangents) if training is not None else tuple(tangents)
        active = tuple(i for i, tangent in enumerate(moving) if moves(tangent))
        types = tuple(None if one is None else type_of(one) for one in inputs)
        push = pushforward_of(operator, attributes, types, active, training)
        return _run(push, operator, inputs, [moving[i] for i in active])

    return with_jvp(operator, kernel, flagged, rule)


def _spread(
    operator: Operator, attributes: Attributes, flagged: Flagged, inputs: Sequence[Any]
) -> Any:
    """Runs the kernel, with results that vary across devices as their tangents do.

    JAX requires this of a JVP rule. A kernel need not read all that its derivative reads, and
    ``jnp.where`` reads nothing if its result is empty. Where the kernel itself combines what the
    devices hold, its results keep their types.
    """
    kernel = on_arrays(operator, attributes)
    result = kernel(*inputs)
    axes = axes_of(inputs)
    if all(axes <= varying_axes(one) for one in jax.tree.leaves(result)):
        return result
    outputs = list_outputs(operator, result)
    needed = _tangent_axes(operator, attributes, flagged.training, inputs, result)
    pairs = list(zip(outputs, needed, strict=True))
    if all(extra <= axes_of(one) for one, extra in pairs) or _reduces(kernel, inputs):
        return result
    spread = [jax.tree.map(functools.partial(varied, axes=extra), one) for one, extra in pairs]
    return spread[0] if operator.single else tuple(spread)


def _reduces(kernel: Call, inputs: Sequence[Any]) -> bool:
    """Whether ``kernel`` combines what the devices hold."""
    arrays = {i: one for i, one in enumerate(inputs) if not isinstance(one, bool)}

    def run(given: dict[int, Any]) -> Any:
        return kernel(*[given.get(i, one) for i, one in enumerate(inputs)])

    return reduces_over_devices(jax.make_jaxpr(run)(arrays))


def _tangent_axes(
    operator: Operator,
    attributes: Attributes,
    training: bool | None,
    inputs: Sequence[Any],
    result: Any,
) -> list[frozenset[str]]:
    """Returns the mesh axes along which the tangent of each output varies."""
    types = tuple(None if one is None else type_of(one) for one in inputs)
    active = tuple(i for i, one in enumerate(types) if one is not None and one.differentiable)
    try:
        push = pushforward_of(operator, attributes, types, active, training)
    except Exception:
        # A maker that fails must not prevent evaluation; differentiation reports the error.
        return [frozenset()] * len(list_outputs(operator, result))
    values = [value for _, value in _paired(push, inputs)]
    ways = [inputs[i] for i in active]
    moved = iter(types_of(lambda *given: _tangents_of(push)(given)[0], (*values, result, *ways)))
    return [
        frozenset()
        if one is None
        else frozenset().union(*map(type_axes, jax.tree.leaves(next(moved))))
        for one in push.results
    ]


@memoized(4096)
def _tangents_of(push: Pushforward) -> Schedule:
    """Returns the plan of the tangents alone, which takes the operator's result as a value.

    What they read varies as far as it may, rather than as its own tangents do: an operator's
    tangents may read others without end.
    """
    outputs = [node for node in push.results if node is not None]
    order = topological(outputs)
    linear = reaching(order, push.tangents)
    of_linear = _without_rules(linear)

    def how(node: Node) -> Call:
        assert isinstance(node.op, Operator)
        return of_linear(node) if node in linear else _spread_wide(node.op, node.attributes)

    variables = [node for node, _ in _paired(push, push.inputs)]
    return Schedule(outputs, [*variables, push.application, *push.tangents], how, order=order)


def _spread_wide(operator: Operator, attributes: Attributes) -> Call:
    """Returns the kernel, with results that vary along the axes of all inputs."""
    kernel = on_arrays(operator, attributes)

    def call(*inputs: Any) -> Any:
        wide = functools.partial(varied, axes=axes_of(inputs))
        return jax.tree.map(wide, kernel(*inputs))

    return call


def _run(
    push: Pushforward, operator: Operator, inputs: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    schedule = _schedule_of(push)
    present = [value for node, value in _paired(push, inputs)]
    results, _ = schedule([*present, *tangents])
    supply = iter(results[1:])
    moved = tuple(None if node is None else next(supply) for node in push.results)
    return results[0], moved[0] if operator.single else moved


def _paired(push: Pushforward, inputs: Sequence[Any]) -> list[tuple[Node, Any]]:
    return [
        (node, value)
        for node, value in zip(push.inputs, inputs, strict=True)
        if node is not None and node.constant is None
    ]


@memoized(4096)
def _schedule_of(push: Pushforward) -> Schedule:
    outputs = [push.application, *[node for node in push.results if node is not None]]
    order = topological(outputs)
    linear = reaching(order, push.tangents)
    variables = [node for node, _ in _paired(push, push.inputs)]
    return Schedule(outputs, [*variables, *push.tangents], _without_rules(linear), order=order)


def _without_rules(linear: set[Node]) -> Any:
    """Runs nodes in ``linear`` as kernels that JAX can transpose, others with their rules."""

    def how(node: Node) -> Call:
        if node not in linear:
            return ruled(node)
        assert isinstance(node.op, Operator)
        kept = node.op.keeps_inputs or _is_closed(node.op, node.attributes)
        if node.op.transposable and not kept:
            return _to_transpose(bare_kernel(node.op, node.attributes))
        places = tuple(i for i, one in enumerate(node.inputs) if one in linear)
        return _transposable(node.op, node.attributes, places)

    return how


def _to_transpose(kernel: Call) -> Call:
    def call(*inputs: Any) -> Any:
        with transposing():
            return kernel(*inputs)

    return call


# Makers that are not linear or have no derivative: reverse mode only -----------------------------


@memoized(4096, key=typed_key)
def _in_reverse(
    operator: Operator,
    attributes: Attributes,
    types: Types,
    training: bool | None,
) -> Call:
    """Returns the kernel with tangents that its maker transposes, but that cannot be computed."""
    kernel = on_arrays(operator, attributes)
    flagged = Flagged(operator, training)

    @functools.cache
    def pulled() -> Pullback:
        # Built only when a derivative is requested, since there may be none.
        return Pullback(operator, attributes, types, training, _without_rules)

    obstacle = _obstacle(operator, attributes, types, training)
    assert obstacle is not None
    refusal = type(obstacle)(str(obstacle))

    def refuse(*_values: Any) -> Any:
        raise refusal

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        inputs, back = flagged.inputs(primals), pulled()
        result = with_rule(operator, back.attributes)(*inputs)
        outputs = list_outputs(operator, result)
        residuals = [*[inputs[i] for i in back.kept], *[outputs[i] for i in back.kept_outputs]]
        moving = [i for i, one in enumerate(tangents) if moves(one)]
        types_of = [jax.typeof(_dense(outputs[i])) for i in back.taken]

        def run(_residuals: Values, _linear: Values) -> list[Any]:
            return [zeros_of(one) for one in types_of]

        def transposed(given: Values, cotangents: Values) -> list[Any]:
            kept, kept_outputs = given[: len(back.kept)], given[len(back.kept) :]
            # A maker that is not linear is run for the cotangents that it was built for.
            heads = {
                i: zeros_of(type) if one is None else one
                for i, type, one in zip(back.taken, types_of, cotangents, strict=True)
            }
            gradients = back.run(kept, kept_outputs, heads)
            return [gradients[i] for i in moving]

        linear = Linear(run, refuse, transposed, refusal)
        results = dict(
            zip(back.taken, linear(residuals, [tangents[i] for i in moving]), strict=True)
        )
        moved = [results.get(i) for i in range(len(outputs))]
        return result, moved[0] if operator.single else tuple(moved)

    return with_jvp(operator, kernel, flagged, rule)


# Kernels on the path of tangents that JAX cannot transpose ---------------------------------------


@memoized(4096, key=identity_key)
def _transposable(operator: Operator, attributes: Attributes, places: Active) -> Call:
    """Returns the kernel, linear in ``places``, transposed by the maker where JAX cannot do it."""
    kernel = on_arrays(operator, attributes)

    def call(*inputs: Any) -> Any:
        flag = operator.training_index
        training = None if flag is None else bool(inputs[flag])
        types = tuple(None if one is None else type_of(one) for one in inputs)
        present = [i for i, one in enumerate(inputs) if one is not None and i != flag]
        residual = tuple(i for i in present if i not in places)
        by_type = operator, attributes, types, training, residual, places
        closed = operator.opaque or operator.keeps_inputs or _is_closed(operator, attributes)
        if not closed and _transposed_by_jax(*by_type):
            return kernel(*inputs)
        through = _TransposableCall(*by_type)
        linear = Linear(through.run, through.moved, through.transposed)
        held = [part for i in residual for part in _parts(inputs[i])]
        results = through.arrays(linear(held, [_dense(inputs[i]) for i in places]))
        return results[0] if operator.single else tuple(results)

    return call


def _is_closed(operator: Operator, attributes: Attributes) -> bool:
    """Whether JAX must not split the kernel into what is known and what is linear.

    In a body it would drop the rules of calls, also where everything they read is known, and to
    JAX a sealed operator is not linear.
    """
    bodies = bodies_of(attributes)
    return operator.sealed or any(one.sealed or not one.native for one in bodies)


@memoized(4096, key=typed_key)
def _transposed_by_jax(
    operator: Operator,
    attributes: Attributes,
    types: Types,
    training: bool | None,
    residual: Active,
    places: Active,
) -> bool:
    """Whether JAX can transpose the kernel with respect to its inputs at ``places``."""
    through = _TransposableCall(operator, attributes, types, training, residual, places)

    def transpose(*values: Any) -> Any:
        held = [part for value in values[: len(residual)] for part in _parts(value)]

        def outputs(*linear: Any) -> list[Any]:
            return [one for one in through.run(held, linear) if type_of(one).differentiable]

        linear = [_dense(value) for value in values[len(residual) :]]
        return jax.linear_transpose(outputs, *linear)(outputs(*linear))

    return traces(transpose, [one for i in (*residual, *places) if (one := types[i]) is not None])


def _parts(value: Any) -> list[Any]:
    """Returns the arrays of a value: for a tensor array, its elements and its length."""
    return [value.values, value.length] if isinstance(value, TensorArray) else [value]


def _dense(value: Any) -> Any:
    """Returns the part of a value that has a tangent."""
    return value.values if isinstance(value, TensorArray) else value


@memoized(4096, key=typed_key)
def _pullback(
    operator: Operator,
    attributes: Attributes,
    types: Types,
    training: bool | None,
    places: Active,
    absent: Active,
) -> Pullback:
    return Pullback(operator, attributes, types, training, _without_rules, places, absent)


class _TransposableCall(NamedTuple):
    """A call of an operator that is linear in its inputs at ``places``.

    Its functions take and return dense arrays. A tensor array is represented by its elements,
    followed by its length if it is a residual.
    """

    operator: Operator
    attributes: Attributes
    types: Types
    training: bool | None
    residual: Active
    places: Active

    def _inputs(self, values: Values) -> list[Any]:
        inputs: list[Any] = [None] * len(self.types)
        if self.operator.training_index is not None:
            inputs[self.operator.training_index] = self.training
        supply = iter(values)
        for i in self.residual:
            value = next(supply)
            inputs[i] = TensorArray(value, next(supply)) if self._is_array(i) else value
        for i in self.places:
            inputs[i] = _like(self.types[i], next(supply))
        return inputs

    def _is_array(self, place: int) -> bool:
        type = self.types[place]
        return type is not None and type.kind is VarKind.LOD_TENSOR_ARRAY

    def _positions(self) -> list[int]:
        """Returns the input to which each of the values belongs."""
        doubled = [i for i in self.residual for _ in range(1 + self._is_array(i))]
        return [*doubled, *self.places]

    def arrays(self, results: Values) -> list[Any]:
        """Returns ``results`` as the operator returns them."""
        outputs = self.operator.infer(self.types, self.attributes)
        return [_like(type, one) for type, one in zip(outputs, results, strict=True)]

    def run(self, residuals: Values, linear: Values) -> list[Any]:
        """Runs the kernel."""
        kernel = on_arrays(self.operator, self.attributes)
        results = list_outputs(self.operator, kernel(*self._inputs([*residuals, *linear])))
        return [_dense(one) for one in results]

    def moved(
        self, active: Active, values: Values, tangents: Values
    ) -> tuple[list[Any], list[Any]]:
        """Computes the kernel and its tangents, by the maker."""
        positions = self._positions()
        moving = [positions[i] for i in active]
        ways = [_like(self.types[i], one) for i, one in zip(moving, tangents, strict=True)]
        by_place = dict(zip(moving, ways, strict=True))
        push = pushforward_of(
            self.operator, self.attributes, self.types, tuple(sorted(moving)), self.training
        )
        ordered = [by_place[i] for i in sorted(moving)]
        result, moved = _run(push, self.operator, self._inputs(values), ordered)
        both = list_outputs(self.operator, result), list_outputs(self.operator, moved)
        return [_dense(one) for one in both[0]], [_dense(one) for one in both[1]]

    def transposed(self, residuals: Values, cotangents: Values) -> list[Any]:
        """Computes the gradients of the linear inputs, by the maker."""
        absent = tuple(i for i, one in enumerate(cotangents) if one is None)
        back = _pullback(
            self.operator, self.attributes, self.types, self.training, self.places, absent
        )
        if back.kept_outputs or not set(back.kept) <= set(self.residual):
            raise NotLinearError(
                f"{self.operator.name}: it is used linearly in "
                f"{', '.join(self.operator.slot_of(i).name for i in self.places)}, whose gradient "
                "must not need their values nor the outputs"
            )
        inputs = self._inputs([*residuals, *[None] * len(self.places)])
        gradients = back.run([inputs[i] for i in back.kept], [], self.arrays(cotangents))
        flag = self.operator.training_index
        places = [i for i in range(len(self.types)) if i != flag]
        by_place = dict(zip(places, gradients, strict=True))
        return [_dense(by_place[i]) for i in self.places]


def _like(type: VarType | None, value: Any) -> Any:
    """Returns a dense array as a value of ``type``; the length of a tangent is never read."""
    if type is None or type.kind is not VarKind.LOD_TENSOR_ARRAY or value is None:
        return value
    return TensorArray(value, jax.numpy.zeros((), np.int32))
