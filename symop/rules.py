"""Rules: operators as JAX functions whose derivatives are their gradient makers.

The rule of an operator is its pushforward, a graph over placeholders. What the tangents reach in
that graph runs as bare kernels, which JAX can transpose; everything else keeps its own rules, so
makers are honored at every order and no rule calls itself. A maker that is not linear in its
cotangent has no pushforward: its operator gets tangents that can be transposed but not computed. A
kernel into which JAX cannot see is never left to JAX: where tangents run through it, it is
transposed by its maker.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from registry.apart import transposing
from registry.attributes import identity_key
from registry.bodies import bodies_of
from registry.errors import NotDifferentiableError, NotLinearError, SymopError
from registry.operator import Derivative, Operator
from registry.shapes import default_float
from registry.types import VarKind, VarType
from registry.values import TensorArray
from registry.var import Attributes
from symop.differentiate import (
    Pushforward,
    pushforward_of,
)
from symop.graph import Node, reaching, topological
from symop.guarding import (
    Flagged,
    guarded,
    in_forward,
    listed,
    moved_by_jax,
    moves,
    no_tangent,
    on_arrays,
    traces,
    with_jvp,
    without_maker,
)
from symop.lowering import Call, Schedule, bare_kernel, is_native, type_of
from symop.reverse import Pullback
from symop.transposition import Active, Linear, Values

Types = tuple[VarType | None, ...]


def with_rule(operator: Operator, attributes: Attributes) -> Call:
    """The kernel of ``operator``, differentiated by JAX as the operator declares."""
    if operator.derivative is Derivative.KERNEL:
        return _by_kernel(operator, identity_key(attributes), attributes)
    if operator.gradient_rule is not None:
        return _with_rule(operator, identity_key(attributes), attributes)
    if operator.derivative is Derivative.ZERO and operator.native:
        return bare_kernel(operator, attributes)
    return without_maker(operator, identity_key(attributes), attributes)


@functools.lru_cache(maxsize=4096)
def _with_rule(operator: Operator, _key: Any, attributes: Attributes) -> Call:
    flag = operator.training_index

    def call(*inputs: Any) -> Any:
        training = None if flag is None else bool(inputs[flag])
        types = tuple(None if one is None else type_of(one) for one in inputs)
        if _meets_rows(operator, types, attributes):
            return on_arrays(operator, attributes)(*inputs)
        rest = [one for i, one in enumerate(inputs) if i != flag]
        obstacle = _obstacle(operator, identity_key(attributes), attributes, types, training)
        if obstacle is None:
            return _by_jvp(operator, _key, attributes, training)(*rest)
        # JAX's default float tells its x64 flag, on which types inside may depend.
        key = _key, default_float()
        return _in_reverse(operator, key, attributes, types, training)(*rest)

    return call


def _meets_rows(operator: Operator, types: Types, attributes: Attributes) -> bool:
    """Whether rows go in or come out: JAX differentiates by their values, as by any pytree.

    The cotangent of rows is dense or other rows where a maker makes it; JAX wants those of the
    same rows.
    """
    kinds = tuple(None if one is None else one.kind for one in types)
    if VarKind.SELECTED_ROWS in kinds:
        return True
    if operator.inference.kind_rule is None:
        return False
    return VarKind.SELECTED_ROWS in operator.inference.kinds(kinds, attributes)


@functools.lru_cache(maxsize=4096)
def _obstacle(
    operator: Operator,
    _key: Any,
    attributes: Attributes,
    types: Types,
    training: bool | None,
) -> SymopError | None:
    """Why there is no forward mode, or None; there may still be the maker itself, for reverse."""
    active = tuple(i for i, one in enumerate(types) if one is not None and one.differentiable)
    try:
        pushforward_of(operator, attributes, types, active, training)
    except (NotLinearError, NotDifferentiableError) as error:
        return error.with_traceback(None)
    except Exception:
        # A maker that fails is no reason to refuse the value: differentiating it tells what failed.
        return None
    return None


# JAX's own derivative ----------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _by_kernel(operator: Operator, key: Any, attributes: Attributes) -> Call:
    """The kernel, left to JAX as far as JAX can differentiate it, which is found out by trying."""
    if operator.catalogued:
        return bare_kernel(operator, attributes)
    kernel = on_arrays(operator, attributes)

    def call(*inputs: Any) -> Any:
        types = tuple(None if one is None else type_of(one) for one in inputs)
        by_type = (key, default_float()), attributes, types
        refusal = _refusal(operator, *by_type)
        if moved_by_jax(operator, *by_type):
            made = kernel if refusal is None else in_forward(operator, key, attributes, refusal)
        elif refusal is None:
            made = _with_rule(operator, key, attributes)
        else:
            made = guarded(operator, key, attributes, None, refusal)
        return made(*inputs)

    return call


@functools.lru_cache(maxsize=4096)
def _refusal(operator: Operator, _key: Any, attributes: Attributes, types: Types) -> str | None:
    """Why there is no derivative of a call in reverse mode, or None when there is one."""
    try:
        Pullback(operator, attributes, types, None, _rules_off)
    except NotDifferentiableError as error:
        return str(error).partition("\n")[0]
    return None


# Linear makers: custom_jvp ---------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _by_jvp(
    operator: Operator,
    _key: Any,
    attributes: Attributes,
    training: bool | None,
) -> Call:
    kernel = on_arrays(operator, attributes)
    flagged = Flagged(operator, training)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        inputs = flagged.inputs(primals)
        moving = flagged.inputs(tangents) if training is not None else tuple(tangents)
        active = tuple(i for i, tangent in enumerate(moving) if moves(tangent))
        types = tuple(None if one is None else type_of(one) for one in inputs)
        push = pushforward_of(operator, attributes, types, active, training)
        return _run(push, operator, inputs, [moving[i] for i in active])

    return with_jvp(operator, kernel, flagged, rule)


def _run(
    push: Pushforward, operator: Operator, inputs: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    schedule = _schedule_of(push)
    present = [value for node, value in _paired(push, inputs)]
    results, _ = schedule([*present, *tangents])
    supply = iter(results[1:])
    types = push.application.types or ()
    moved = tuple(
        no_tangent(type) if node is None else next(supply)
        for node, type in zip(push.results, types, strict=True)
    )
    return results[0], moved[0] if operator.single else moved


def _paired(push: Pushforward, inputs: Sequence[Any]) -> list[tuple[Node, Any]]:
    return [
        (node, value)
        for node, value in zip(push.inputs, inputs, strict=True)
        if node is not None and node.constant is None
    ]


@functools.lru_cache(maxsize=4096)
def _schedule_of(push: Pushforward) -> Schedule:
    outputs = [push.application, *[node for node in push.results if node is not None]]
    order = topological(outputs)
    linear = reaching(order, push.tangents)
    variables = [node for node, _ in _paired(push, push.inputs)]
    return Schedule(outputs, [*variables, *push.tangents], _rules_off(linear), order=order)


def _rules_off(linear: set[Node]) -> Any:
    """Nodes in ``linear`` run as kernels that JAX can transpose, the others with their rules."""

    def how(node: Node) -> Call:
        assert isinstance(node.op, Operator)
        if node not in linear:
            return with_rule(node.op, node.attributes)
        by_jax = is_native(node) or not bodies_of(node.attributes)
        if node.op.catalogued and by_jax and not node.op.sealed:
            return _to_transpose(bare_kernel(node.op, node.attributes))
        places = tuple(i for i, one in enumerate(node.inputs) if one in linear)
        return _transposable(node.op, identity_key(node.attributes), node.attributes, places)

    return how


def _to_transpose(kernel: Call) -> Call:
    def call(*inputs: Any) -> Any:
        with transposing():
            return kernel(*inputs)

    return call


# Makers that are not linear, or have no derivative: reverse mode alone ---------------------------


@functools.lru_cache(maxsize=4096)
def _in_reverse(
    operator: Operator,
    key: Any,
    attributes: Attributes,
    types: Types,
    training: bool | None,
) -> Call:
    """The kernel with tangents that can be transposed, by the maker, but not computed."""
    kernel = on_arrays(operator, attributes)
    flagged = Flagged(operator, training)

    @functools.cache
    def pulled() -> Pullback:
        # Only where a derivative is asked for: there may be none.
        return Pullback(operator, attributes, types, training, _rules_off)

    rules = with_rule(operator, attributes)
    obstacle = _obstacle(operator, identity_key(attributes), attributes, types, training)
    assert obstacle is not None
    refusal = type(obstacle)(str(obstacle))

    def refuse(*_values: Any) -> Any:
        raise refusal

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        inputs, back = flagged.inputs(primals), pulled()
        result = rules(*inputs)
        outputs = listed(operator, result)
        residuals = [*[inputs[i] for i in back.kept], *[outputs[i] for i in back.kept_outputs]]
        moving = [i for i, one in enumerate(tangents) if moves(one)]

        def run(_residuals: Values, _linear: Values) -> list[Any]:
            return [no_tangent(type_of(outputs[i])) for i in back.taken]

        def transposed(given: Values, cotangents: Values) -> list[Any]:
            kept, kept_outputs = given[: len(back.kept)], given[len(back.kept) :]
            heads = dict(zip(back.taken, cotangents, strict=True))
            gradients = back.run(kept, kept_outputs, heads)
            return [gradients[i] for i in moving]

        linear = Linear(run, refuse, transposed, refusal)
        found = dict(zip(back.taken, linear(residuals, [tangents[i] for i in moving]), strict=True))
        moved = [
            found[i] if i in found else no_tangent(type_of(one)) for i, one in enumerate(outputs)
        ]
        return result, moved[0] if operator.single else tuple(moved)

    return with_jvp(operator, kernel, flagged, rule)


# Kernels on the way of tangents that JAX cannot transpose ----------------------------------------


@functools.lru_cache(maxsize=4096)
def _transposable(operator: Operator, key: Any, attributes: Attributes, places: Active) -> Call:
    """The kernel, linear in its inputs at ``places``: where JAX cannot transpose it, the maker."""
    kernel = on_arrays(operator, attributes)

    def call(*inputs: Any) -> Any:
        flag = operator.training_index
        training = None if flag is None else bool(inputs[flag])
        types = tuple(None if one is None else type_of(one) for one in inputs)
        present = [i for i, one in enumerate(inputs) if one is not None and i != flag]
        residual = tuple(i for i in present if i not in places)
        by_type = (key, default_float()), attributes, types, training, residual, places
        closed = operator.opaque or operator.sealed
        if not closed and _transposed_by_jax(operator, *by_type):
            return kernel(*inputs)
        through = _Through(operator, *by_type[1:])
        linear = Linear(through.run, through.moved, through.transposed)
        held = [part for i in residual for part in _parts(inputs[i])]
        results = through.arrays(linear(held, [_dense(inputs[i]) for i in places]))
        return results[0] if operator.single else tuple(results)

    return call


@functools.lru_cache(maxsize=4096)
def _transposed_by_jax(
    operator: Operator,
    _key: Any,
    attributes: Attributes,
    types: Types,
    training: bool | None,
    residual: Active,
    places: Active,
) -> bool:
    """Whether JAX can transpose the kernel with respect to its inputs at ``places``."""
    through = _Through(operator, attributes, types, training, residual, places)

    def transpose(*values: Any) -> Any:
        held = [part for value in values[: len(residual)] for part in _parts(value)]

        def outputs(*linear: Any) -> list[Any]:
            return [one for one in through.run(held, linear) if type_of(one).differentiable]

        linear = [_dense(value) for value in values[len(residual) :]]
        return jax.linear_transpose(outputs, *linear)(outputs(*linear))

    return traces(transpose, [one for i in (*residual, *places) if (one := types[i]) is not None])


def _parts(value: Any) -> list[Any]:
    """The arrays of a value: of a tensor array its elements and its length."""
    return [value.values, value.length] if isinstance(value, TensorArray) else [value]


def _dense(value: Any) -> Any:
    """The part of a value that has a tangent."""
    return value.values if isinstance(value, TensorArray) else value


class _Through(NamedTuple):
    """One call of an operator that is linear in its inputs at ``places``.

    Its functions take and return dense arrays: of a tensor array the elements, and behind those of
    a residual one its length.
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
        """The input to which each of the values belongs."""
        doubled = [i for i in self.residual for _ in range(1 + self._is_array(i))]
        return [*doubled, *self.places]

    def arrays(self, results: Values) -> list[Any]:
        """``results`` as the operator gives them."""
        outputs = self.operator.infer(self.types, self.attributes)
        return [_like(type, one) for type, one in zip(outputs, results, strict=True)]

    def run(self, residuals: Values, linear: Values) -> list[Any]:
        """The kernel."""
        kernel = on_arrays(self.operator, self.attributes)
        found = listed(self.operator, kernel(*self._inputs([*residuals, *linear])))
        return [_dense(one) for one in found]

    def moved(
        self, active: Active, values: Values, tangents: Values
    ) -> tuple[list[Any], list[Any]]:
        """The kernel and its tangents, by the maker."""
        positions = self._positions()
        moving = [positions[i] for i in active]
        ways = [_like(self.types[i], one) for i, one in zip(moving, tangents, strict=True)]
        by_place = dict(zip(moving, ways, strict=True))
        push = pushforward_of(
            self.operator, self.attributes, self.types, tuple(sorted(moving)), self.training
        )
        ordered = [by_place[i] for i in sorted(moving)]
        result, moved = _run(push, self.operator, self._inputs(values), ordered)
        both = listed(self.operator, result), listed(self.operator, moved)
        return [_dense(one) for one in both[0]], [_dense(one) for one in both[1]]

    def transposed(self, residuals: Values, cotangents: Values) -> list[Any]:
        """Gradients of the linear inputs, by the maker."""
        back = Pullback(
            self.operator, self.attributes, self.types, self.training, _rules_off, self.places
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
        given = [i for i in range(len(self.types)) if i != flag]
        found = dict(zip(given, gradients, strict=True))
        return [_dense(found[i]) for i in self.places]


def _like(type: VarType | None, value: Any) -> Any:
    """A dense array as a value of ``type``; nobody asks for the length of a tangent."""
    if type is None or type.kind is not VarKind.LOD_TENSOR_ARRAY or value is None:
        return value
    return TensorArray(value, jax.numpy.zeros((), np.int32))
