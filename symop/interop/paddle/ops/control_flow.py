"""Loops, branches, tensor arrays and counters.

An operator with a sub-block interprets it inside of the bodies of ``so.while_loop``, ``so.scan`` or
``so.cond``. A loop whose number of steps follows from constants becomes a ``so.scan``; so it has
gradients of every order, and its counters are constants after it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import symop as so
from registry.errors import SymopError
from symop.interop.paddle.arrays import (
    Elements,
    combined,
    first,
    fitted,
    is_packed,
    is_tensor_array,
    joined,
    leaves,
    length,
    read,
    rebuilt,
    stacked,
    to_capacity,
    written,
)
from symop.interop.paddle.control import (
    Bodies,
    Count,
    Counter,
    bodies,
    entered,
    gradient,
    merged,
    operators_in,
    persistables_written,
    scalar,
    written_by,
    zeros_like,
)
from symop.interop.paddle.errors import PaddleError, UnknownValueError
from symop.interop.paddle.framework import OpDesc, ProgramDesc
from symop.interop.paddle.gradients import Slots
from symop.interop.paddle.operators import GRAD, Values, operator
from symop.interop.paddle.roles import has_own_loss
from symop.interop.paddle.translating import Call
from symop.interop.paddle.values import data_of, is_array, is_constant, known, symbolic

MAX_UNROLLED = 256
"""The largest number of steps of a loop that is unrolled because its body needs known counters."""


class Scopes:
    """What stands for the scopes of a sub-block; gradient operators find their call by it."""


# Branches --------------------------------------------------------------------------------------


@operator(
    "conditional_block", "conditional_block_infer", outputs="Out Scope", several="Out", ragged=True
)
def conditional_block(
    Cond: Values,
    Input: Values = None,  # type: ignore[assignment]
    *,
    sub_block: int,
    is_scalar_condition: bool = False,
    call: Call,
) -> Any:
    """Runs the block if the condition holds. Otherwise variables keep their values; new ones are 0.

    Without ``is_scalar_condition``, it runs if no input is empty.
    """
    environment = entered(call, "Cond", "Input", results="Out")
    condition = environment[call.op.input("Cond")[0]]
    holds: Any = scalar(condition) if is_scalar_condition else _are_filled(Input or Cond)
    branch = _Branch(call, sub_block, environment)
    results = branch.run_if(holds)
    return [results.get(name) for name in call.op.output("Out")], Scopes()


def _are_filled(values: Sequence[Any]) -> bool:
    return all(data_of(one).size for one in values if is_array(one))


class _Branch:
    """A branch under translation, with the gradients and updates that it asks for itself.

    An optimizer that a branch calls puts these into a block which runs after the branch and reads
    what the branch computed. Both blocks are one branch of the graph; the updates wait in the call
    for ``conditional_block_grad``.
    """

    def __init__(self, call: Call, block: int, environment: Bodies) -> None:
        """Finds the variables that the blocks write."""
        program = call.translation.program
        self._call = call
        self._block = block
        self._environment = environment
        self._gradients = _own_gradients(program, call.op)
        inside = written_by(program, block)
        self._written = [name for name in call.op.output("Out") if name in inside]
        self._updated = (
            [] if self._gradients is None else persistables_written(program, self._gradients)
        )

    def run_if(self, holds: Any) -> Mapping[str, Any]:
        """Returns the variables after the branch, which runs if a condition holds."""
        if holds is False:
            return self._environment
        values = self._values() if holds is True else self._chosen(holds)
        count = len(self._written)
        self._call.updates = dict(zip(self._updated, values[count:], strict=True))
        return self._environment.child(dict(zip(self._written, values[:count], strict=True)))

    def _values(self) -> list[Any]:
        """Returns the variables that the blocks write, after a run.

        Gradients that the branch asks for itself find their calls by the values around it.
        """
        is_own = self._gradients is not None
        inside = bodies(self._call.environment if is_own else self._environment)
        self._call.translation.run(self._block, inside)
        values = [inside[name] for name in self._written]
        if self._gradients is not None:
            self._call.translation.run(self._gradients, inside)
        return values + [inside[name] for name in self._updated]

    def _chosen(self, holds: Any) -> list[Any]:
        """Returns these variables if a condition holds that is not known yet."""
        names = [*self._written, *self._updated]
        forms: list[list[Any]] = []

        def taken() -> list[Any]:
            before = map(self._environment.get, names)
            forms[:] = map(merged, zip(self._values(), before, strict=True))
            return [symbolic(leaf) for after, _ in forms for leaf in leaves(after)]

        def left() -> list[Any]:
            return [symbolic(leaf) for _, before in forms for leaf in leaves(before)]

        supply = iter(so.cond(holds, taken, left) if names else ())
        return [rebuilt(after, [next(supply) for _ in leaves(after)]) for after, _ in forms]


def _own_gradients(program: ProgramDesc, branch: OpDesc) -> int | None:
    """Returns the block of the gradients that a branch asks for itself; None if it does not."""
    scopes = branch.output("Scope")
    for op in (op for block in program.blocks for op in block.ops):
        is_gradient = op.type == "conditional_block_grad" and op.input("Scope") == scopes
        if scopes and is_gradient and _are_own(program, op.attrs["sub_block"]):
            return int(op.attrs["sub_block"])
    return None


def _are_own(program: ProgramDesc, gradients: int) -> bool:
    """Returns whether a block of gradients begins with those of a loss, or has updates."""
    ops = program.blocks[gradients].ops
    return has_own_loss(ops) or any("ParamOut" in op.outputs for op in ops)


@operator(
    "conditional_block_grad",
    outputs="Input@GRAD Cond@GRAD",
    several="Input@GRAD Cond@GRAD",
    ragged=True,
)
def conditional_block_gradient(
    Cond: Values,
    Scope: Any,
    Input: Values = None,  # type: ignore[assignment]
    Out: Values = None,  # type: ignore[assignment]
    Out_GRAD: Values = None,  # type: ignore[assignment]
    *,
    sub_block: int,
    is_scalar_condition: bool = False,
    call: Call,
) -> Slots:
    """Returns the gradients of ``conditional_block``, derived from its composition.

    Where the branch itself asks for gradients, variables around it get their new values, and
    nothing reads the gradients of the operator.
    """
    if not _are_own(call.translation.program, sub_block):
        return gradient(call, "conditional_block", "Scope", "Out")
    before = call.translation.forward_call("conditional_block", {"Scope": [Scope]})
    if before is None:
        raise PaddleError(
            "conditional_block_grad: the program must contain the call of conditional_block, got "
            "none"
        )
    call.environment.update(before.updates)
    return {}


@operator(ragged=True)
def select_input(X: Values, Mask: Any) -> Any:
    """Returns the input with the number ``Mask``; booleans count as 0 and 1."""
    if all(one is None for one in X):
        return None
    if is_constant(Mask):
        chosen = X[int(known("select_input: Mask", Mask).ravel()[0])]
        return merged([chosen, *X])[0]
    number = so.cast(so.reshape(data_of(Mask), shape=()), dtype="int32")
    return _selected(merged(X), number)


def _selected(values: Sequence[Any], number: Any) -> Any:
    if is_tensor_array(values[0]):
        return combined(lambda elements: _selected(elements, number), values)
    result = [symbolic(one) for one in leaves(values[0])]
    for i, value in enumerate(values[1:], 1):
        is_this = so.equal(number, i)
        result = [
            so.where(is_this, one, other) for one, other in zip(leaves(value), result, strict=True)
        ]
    return rebuilt(values[0], result)


@operator(several="Out", ragged=True)
def select_output(X: Any, Mask: Any, *, call: Call) -> Any:
    """Returns ``X`` as the output with the number ``Mask``; the others are zeros."""
    number = data_of(Mask)
    if not is_constant(Mask):
        number = so.cast(so.reshape(number, shape=()), dtype="int32")
    return [_routed(X, number, i) for i in range(len(call.op.output("Out")))]


def _routed(value: Any, number: Any, i: int) -> Any:
    if is_constant(number):
        return value if int(np.asarray(number).ravel()[0]) == i else zeros_like(value)
    if is_tensor_array(value):
        return combined(lambda elements: _routed(elements[0], number, i), [value])
    data = data_of(value)
    return rebuilt(
        value, [so.where(so.equal(number, i), data, so.zeros_like(data)), *leaves(value)[1:]]
    )


# Loops -----------------------------------------------------------------------------------------


@operator(
    "while", outputs="Out StepScopes", several="Out", ragged=True, ignored="used_for_inference"
)
def while_(
    Condition: Any,
    X: Values = None,  # type: ignore[assignment]
    *,
    sub_block: int,
    is_test: bool = False,
    call: Call,
) -> Any:
    """Runs the block while the condition holds.

    Variables that the block writes have zeros before the first step if they have no value.
    """
    environment = entered(call, "X", "Condition", results="Out")
    loop = _Loop(call, sub_block, environment)
    try:
        results = loop.run()
    except SymopError as error:
        results = loop.unrolled(error)
    return [results.get(name) for name in call.op.output("Out")], Scopes()


class _Loop:
    """A ``while`` that is translated."""

    def __init__(self, call: Call, block: int, environment: Bodies) -> None:
        """Counts the steps of a loop, as far as constants tell."""
        self._call = call
        self._block = block
        self._environment = environment
        (self._condition,) = call.op.input("Condition")
        counter = Counter(call, block, self._condition, environment)
        self._count: Count | None = counter.run(call.translation.max_steps)

    def run(self) -> Mapping[str, Any]:
        """Returns the variables after the loop, as those of ``so.scan`` or ``so.while_loop``."""
        count = self._count
        if count is not None and count.is_exact and count.steps == 0:
            return self._environment
        first = self._first()
        around = self._environment.child({**self._series(first), **first})
        flat = {name: [symbolic(one) for one in leaves(value)] for name, value in first.items()}

        def step(carry: dict[str, list[Any]]) -> dict[str, list[Any]]:
            child = around.child(
                {name: rebuilt(first[name], arrays) for name, arrays in carry.items()}
            )
            self._call.translation.run(self._block, child)
            return {name: _kept(name, first[name], child[name]) for name in first}

        if count is not None and count.is_exact:
            last = so.scan(lambda carry, _: (step(carry), []), flat, None, length=count.steps)[0]
        else:
            last = so.while_loop(
                lambda carry: scalar(carry[self._condition][0]),
                step,
                flat,
                max_steps=None if count is None else count.steps,
            )
        results = {name: rebuilt(first[name], arrays) for name, arrays in last.items()}
        return {**self._environment, **results, **(count.known if count is not None else {})}

    def unrolled(self, error: SymopError) -> Mapping[str, Any]:
        """Returns the variables after steps that are translated one by one.

        Raises:
            UnknownValueError: whether there is another step depends on what is fed.
            SymopError: there are too many steps; it is ``error``.
        """
        try:
            return self._steps(self._environment.child({}), error)
        except UnknownValueError:
            return self._steps(self._environment.child(self._plain()), error)

    def _plain(self) -> dict[str, Any]:
        """Returns the lists of values as they are, constants among them, without gradients."""
        given = zip(self._call.op.input("X"), self._call.inputs.get("X", ()), strict=True)
        return {name: value for name, value in given if isinstance(value, Elements)}

    def _steps(self, result: Bodies, error: SymopError) -> Mapping[str, Any]:
        for _ in range(MAX_UNROLLED):
            condition = result[self._condition]
            if not is_constant(condition) and not isinstance(error, UnknownValueError):
                raise error
            if not known("while: Condition", condition).ravel()[0]:
                return result
            self._call.translation.run(self._block, result)
        raise error

    def _first(self) -> dict[str, Any]:
        """Returns the values before the first step of the variables that the block writes."""
        given = self._environment
        names = written_by(self._call.translation.program, self._block)
        carried = {name: given.get(name) for name in names}
        if any(one is None or isinstance(one, Elements) for one in carried.values()):
            after = given.child({})
            self._call.translation.run(self._block, after)
            carried = {name: self._started(name, one, after[name]) for name, one in carried.items()}
        return carried

    def _started(self, name: str, before: Any, after: Any) -> Any:
        if isinstance(before, Elements) or (before is None and is_tensor_array(after)):
            if is_packed(after):
                return to_capacity(before, after.shape[0], so.array_read(after, 0))
            return to_capacity(
                before, self._capacity(name, 0 if before is None else len(before)), first(after)
            )
        return zeros_like(after) if before is None else before

    def _capacity(self, name: str, held: int) -> int:
        largest = -1 if self._count is None else self._count.largest.get(name, -1)
        if largest < 0:
            raise PaddleError(
                f"while: the largest index of the tensor array {name} must be known, or the "
                "program must have max_steps, got an index that depends on what is fed"
            )
        return max(held, largest + 1)

    def _series(self, carried: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the lists that the block reads alone, as tensor arrays."""
        reads = operators_in(self._call.translation.program, self._block)
        names = {op.input("X")[0] for op in reads if op.type == "read_from_array"}
        lists = {name: self._environment.get(name) for name in names - carried.keys()}
        return {
            name: joined(one)
            for name, one in lists.items()
            if isinstance(one, Elements) and _is_uniform(one)
        }


def _is_uniform(array: Elements) -> bool:
    types = {(data_of(one).shape, data_of(one).dtype) for one in array if one is not None}
    return len(types) == 1 and not any(isinstance(one, so.LoDTensor) for one in array)


def _kept(name: str, before: Any, after: Any) -> list[Any]:
    """Returns the arrays of a variable after a step, in the form that they have before it.

    Raises:
        PaddleError: the type of the variable changes.
    """
    arrays, others = leaves(before), leaves(after)
    if is_packed(before):
        return [to_capacity(after, before.shape[0], so.array_read(before, 0))]
    if len(arrays) != len(others):
        raise PaddleError(f"while: {name} must stay as ragged as it is before the loop")
    try:
        return [fitted(new, old.shape, old.dtype) for old, new in zip(arrays, others, strict=True)]
    except PaddleError as error:
        raise PaddleError(f"while: {name}: {error}") from None


@operator("while_grad", outputs="X@GRAD", several="X@GRAD", ragged=True)
def while_gradient(
    StepScopes: Any,
    X: Values = None,  # type: ignore[assignment]
    Out: Values = None,  # type: ignore[assignment]
    Out_GRAD: Values = None,  # type: ignore[assignment]
    *,
    sub_block: int,
    is_test: bool = False,
    original_output_grad: Sequence[str] = (),
    call: Call,
) -> Slots:
    """Returns the gradients of ``while``, derived from its composition."""
    return gradient(call, "while", "StepScopes", "Out")


@operator(outputs="outputs step_scopes", several="outputs", ignored="is_train")
def recurrent(
    inputs: Values,
    initial_states: Values = None,  # type: ignore[assignment]
    parameters: Values = None,  # type: ignore[assignment]
    *,
    sub_block: int,
    has_states: bool = False,
    ex_states: Sequence[str] = (),
    states: Sequence[str] = (),
    reverse: bool = False,
    call: Call,
) -> Any:
    """Runs the block for each slice of the inputs.

    ``states`` of a step become ``ex_states`` of the next one. With ``reverse``, the last slice
    comes first; the outputs keep the order of the inputs.
    """
    environment = entered(call, "inputs", "initial_states", "parameters")
    slices, results = call.op.input("inputs"), call.op.output("outputs")
    first = [environment[name] for name in call.op.input("initial_states")] if has_states else []

    def step(carry: Sequence[Any], series: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        given = {
            **dict(zip(slices, series, strict=True)),
            **dict(zip(ex_states, carry, strict=True)),
        }
        child = environment.child(given)
        call.translation.run(sub_block, child)
        after = [
            fitted(child[name], before.shape, before.dtype)
            for name, before in zip(states if has_states else (), carry, strict=True)
        ]
        return after, [symbolic(data_of(child[name])) for name in results]

    series = [symbolic(data_of(environment[name])) for name in slices]
    start = [symbolic(data_of(one)) for one in first]
    _, stacks = so.scan(step, start, series, reverse=reverse)
    return list(stacks), Scopes()


@operator(
    "recurrent_grad",
    outputs="inputs@GRAD initial_states@GRAD parameters@GRAD",
    several="inputs@GRAD initial_states@GRAD parameters@GRAD",
    ignored="is_train",
)
def recurrent_gradient(
    inputs: Values,
    step_scopes: Any,
    initial_states: Values = None,  # type: ignore[assignment]
    parameters: Values = None,  # type: ignore[assignment]
    outputs: Values = None,  # type: ignore[assignment]
    outputs_GRAD: Values = None,  # type: ignore[assignment]
    step_scopes_GRAD: Any = None,
    *,
    sub_block: int,
    has_states: bool = False,
    ex_states: Sequence[str] = (),
    states: Sequence[str] = (),
    reverse: bool = False,
    call: Call,
) -> Slots:
    """Returns the gradients of ``recurrent``, derived from its composition."""
    return gradient(call, "recurrent", "step_scopes", "outputs")


@operator(ignored="dtype")
def rnn_memory_helper(X: Any) -> Any:
    """Returns its input, under the name that the next step or the outputs of the loop read."""
    return so.identity(X)


# Tensor arrays ---------------------------------------------------------------------------------


@operator(ragged=True, no_gradient="I")
def write_to_array(X: Any, I: Any, *, call: Call) -> Any:  # noqa: E741
    """Writes ``X`` to the array at ``I``; it becomes as long as needed.

    An array that begins at a computed index ends at ``max_steps``. The operator is also the
    gradient of ``read_from_array``; then it is as long as the array itself.
    """
    if X is None:
        return None
    (name,) = call.op.output("Out")
    return written(call.environment.get(name), X, I, _capacity(call, name))


def _capacity(call: Call, name: str) -> int | None:
    """Returns the capacity of an array that begins at a computed index, if it is known."""
    owner, is_gradient, _ = name.partition(GRAD)
    whole = call.environment.get(owner) if is_gradient else None
    if whole is not None:
        return int(whole.shape[0]) if is_packed(whole) else len(whole)
    steps = call.translation.max_steps
    return None if steps is None else steps + 1


@operator(ragged=True, no_gradient="I")
def read_from_array(X: Any, I: Any, X_W: Any = None, *, call: Call) -> Any:  # noqa: E741
    """Reads the element of an array at ``I``.

    It is also the gradient of ``write_to_array``, and then zero where the array has no element.
    """
    value = None if X is None else read(X, I)
    if value is not None:
        return value
    (name,) = call.op.output("Out")
    owner, is_gradient, _ = name.partition(GRAD)
    if is_gradient and call.environment.get(owner) is not None:
        return zeros_like(call.environment[owner])
    if is_gradient and X is None:
        return None
    raise PaddleError(f"read_from_array: an element must have been written, got none at {I}")


@operator(ragged=True)
def lod_array_length(X: Any) -> Any:
    """Returns the number of elements of a tensor array, with shape (1,)."""
    return length(X)


@operator(outputs="Out OutIndex", ragged=True)
def tensor_array_to_tensor(X: Any, *, axis: int = 0, use_stack: bool = False) -> Any:
    """Joins the elements of an array along ``axis``, or stacks them along a new one."""
    values = stacked(X)
    if use_stack:
        return so.stack(*values, axis=axis), jnp.ones(len(values), np.int32)
    lengths = jnp.asarray([one.shape[axis] for one in values], np.int32)
    return so.concat(*values, axis=axis), lengths


@operator("tensor_array_to_tensor_grad", outputs="X@GRAD", ragged=True)
def tensor_array_to_tensor_gradient(
    X: Any, Out_GRAD: Any, OutIndex: Any = None, *, axis: int = 0, use_stack: bool = False
) -> Any:
    """Splits a gradient into those of the elements."""
    lengths = [1] * len(stacked(X)) if use_stack else [one.shape[axis] for one in stacked(X)]
    parts, start = [], 0
    for count in lengths:
        part = so.slice_axis(data_of(Out_GRAD), axis=axis, begin=start, end=start + count)
        parts.append(so.squeeze(part, axis=axis) if use_stack else part)
        start += count
    return Elements(parts)


# Counters and checks ---------------------------------------------------------------------------


@operator()
def increment(X: Any, *, step: float = 1.0) -> Any:
    """Adds a number; it is converted to the dtype of ``X`` first, so that integers stay exact."""
    return so.add(X, np.asarray(step).astype(X.dtype))


@operator()
def is_empty(X: Any, *, call: Call) -> Any:
    """Returns whether there are no entries, with shape (1,) in versions before 2.5."""
    is_new = call.translation.program.version >= 2_005_000
    return jnp.full(() if is_new else (1,), X.size == 0)


@operator(
    "print",
    ragged=True,
    ignored="first_n message summarize print_tensor_name print_tensor_type print_tensor_shape "
    "print_tensor_layout print_tensor_lod print_phase is_forward",
)
def print_(In: Any) -> Any:
    """Returns its input. Nothing is printed; fetch a variable to see its value."""
    return rebuilt(In, [so.identity(one) for one in leaves(In)])


@operator("assert", outputs="", ignored="summarize")
def assert_(Cond: Any, Data: Values = None) -> Any:  # type: ignore[assignment]
    """Checks a condition that is known when the program is compiled; others are not checked.

    Raises:
        PaddleError: the condition is false.
    """
    if is_constant(Cond) and not np.asarray(Cond).all():
        raise PaddleError("assert: the condition must hold, got one that is false")
    return {}
