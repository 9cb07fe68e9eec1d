"""Branches, loops and tensor arrays: layers whose operators run blocks of their own."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from symop.interop.paddle import unique_name
from symop.interop.paddle.backward import append_gradient_of_branch, gradients_of_branch
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import VarKind
from symop.interop.paddle.guards import default_main_program
from symop.interop.paddle.makers import gradient_reads
from symop.interop.paddle.programs import Block, Slots, Variable, code_of, dtype_of
from symop.interop.paddle.static.helper import Layer
from symop.interop.paddle.static.layers.elementwise import equal, logical_and, logical_not
from symop.interop.paddle.static.layers.tensors import assign, cast, fill_constant

Function = Callable[..., Any]
Cases = Sequence[tuple[Variable, Function]]

# Blocks ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _sub_block(complete: Callable[[Block], None]) -> Iterator[Block]:
    """Lets layers append to a new block; ``complete`` appends the operator that runs it."""
    program = default_main_program()
    block = program.create_block()
    try:
        yield block
        complete(block)
    finally:
        program.rollback()


def _parent(block: Block) -> Block:
    return block.program.block(block.parent_idx)


def _finds(block: Block, name: str) -> bool:
    return block.program.desc.find_var(block.desc, name) is not None


def _reads_and_writes(block: Block, written: Iterable[str] = ()) -> tuple[list[str], list[str]]:
    """Returns the variables around a block that it reads first, and those that it writes.

    Args:
        block: the block.
        written: variables that it may read without being listed.
    """
    outer = _parent(block)
    reads, writes = dict[str, None](), dict.fromkeys(written)
    for op in block.ops:
        reads.update({name: None for name in op.input_arg_names if name not in writes})
        writes.update(dict.fromkeys(op.output_arg_names))
    return [one for one in reads if _finds(outer, one)], [
        one for one in writes if _finds(outer, one)
    ]


def _scopes(block: Block) -> Variable:
    """Declares the variable for what a sub-block leaves for its gradients."""
    return block.create_var(dtype=None, type=VarKind.STEP_SCOPES)


def _structure(value: Any) -> str:
    """Returns a text of the lists and dictionaries that variables are in."""
    return str(jax.tree.structure(value))


def _require_condition(what: str, condition: Any) -> None:
    known = isinstance(condition, Variable) and condition.dtype == np.bool_
    if not known or np.prod(condition.shape, dtype=int) != 1:
        raise PaddleError(
            f"{what}: the condition must be a boolean with one entry, got {condition}"
        )


# Branches ----------------------------------------------------------------------------------------


class ConditionalBlock:
    """A block that runs if a condition holds.

    Variables around it that it writes keep their values otherwise.

    Attributes:
        inputs: the condition.
        is_scalar_condition: whether it is one boolean; otherwise the block runs unless an input is
            empty.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        is_scalar_condition: bool = False,
        name: str | None = None,
    ) -> None:
        """Starts the operator."""
        self.inputs = list(inputs)
        self.is_scalar_condition = is_scalar_condition
        Layer("conditional_block", name)

    def block(self) -> contextlib.AbstractContextManager[Block]:
        """Returns a context in which layers append to the block."""
        return self._branch()

    @contextlib.contextmanager
    def _branch(self) -> Iterator[Block]:
        with _sub_block(self._complete) as block:
            block.program.branches.add(block.idx)
            yield block

    def _complete(self, block: Block) -> None:
        outer = _parent(block)
        reads, writes = _reads_and_writes(block)
        made = outer.append_op(
            "conditional_block",
            {"Cond": self.inputs, "Input": reads},
            {"Out": writes, "Scope": _scopes(outer)},
            {"sub_block": block.idx, "is_scalar_condition": self.is_scalar_condition},
        )
        gradients = gradients_of_branch(block)
        if gradients is not None:
            append_gradient_of_branch(gradients, made, _reads_and_writes(gradients)[0])


def cond(
    pred: Variable,
    true_fn: Function | None = None,
    false_fn: Function | None = None,
    name: str | None = None,
    return_names: Any = None,
) -> Any:
    """Returns what one of two functions returns.

    The operators of both are in the program; those of the other do not run.

    Args:
        pred: a boolean with one entry.
        true_fn: called for the branch that runs if it is true.
        false_fn: called for the branch that runs if it is false.
        name: the name of the layer.
        return_names: accepted as in Paddle.

    Raises:
        PaddleError: the condition is something else, or what the functions return differs in
            structure.
    """
    del return_names
    _require_condition("cond", pred)
    Layer("cond", name)
    taken = None if true_fn is None else _branch(pred, true_fn)
    other = None if false_fn is None else _branch(logical_not(pred), false_fn)
    if taken is None and other is None:
        return None
    structures = [_structure(one) for one in (taken, other)]
    if structures[0] != structures[1]:
        raise PaddleError(
            "cond: both functions must return the same structure of variables, got "
            f"{structures[0]} and {structures[1]}"
        )
    mask = cast(pred, "int32")
    return jax.tree.map(partial(_merged, mask), other, taken)


def _branch(pred: Variable, function: Function) -> Any:
    """Returns what a function returns, as variables around its block."""
    with ConditionalBlock([pred], is_scalar_condition=True).block() as block:
        return jax.tree.map(partial(_copied_out, block), function())


def _copied_out(block: Block, value: Any) -> Any:
    outer = _parent(block)
    if not isinstance(value, Variable):
        return value
    is_array = value.type is VarKind.LOD_TENSOR_ARRAY
    if is_array and _finds(outer, value.name):
        return value
    copy = outer.create_var(None, value.shape, value.dtype, type=value.type)
    return assign(value, copy)


def _merged(mask: Variable, no: Any, yes: Any) -> Any:
    """Returns the value of the branch that ran; numbers that differ become variables."""
    if not isinstance(no, Variable) and not isinstance(yes, Variable) and no == yes:
        return no
    both = [one if isinstance(one, Variable) else assign(np.asarray(one)) for one in (no, yes)]
    return select_input(both, mask)


def select_input(inputs: Sequence[Variable], mask: Variable) -> Variable:
    """Returns the input with the number ``mask``."""
    block = Layer("select_input").block
    shape = inputs[0].shape
    if len(shape) == len(inputs[1].shape):
        shape = tuple(a if a == b else -1 for a, b in zip(shape, inputs[1].shape, strict=True))
    out = block.create_var(None, shape, inputs[0].dtype, type=inputs[0].type)
    block.append_op("select_input", {"X": list(inputs), "Mask": mask}, {"Out": out})
    return out


def case(pred_fn_pairs: Cases, default: Function | None = None, name: str | None = None) -> Any:
    """Returns what the first function returns whose condition holds.

    Args:
        pred_fn_pairs: pairs of a condition and a function.
        default: called if none holds; by default the last function.
        name: the name of the layer.

    Raises:
        PaddleError: there is no pair, or one is not a condition and a function.
    """
    Layer("case", name)
    pairs = list(pred_fn_pairs)
    if not pairs or not all(len(one) == 2 and callable(one[1]) for one in pairs):
        raise PaddleError("case: there must be pairs of a condition and a function, got others")
    function = default
    if function is None:
        function = pairs.pop()[1]
    for pred, one in reversed(pairs):
        function = partial(cond, pred, one, function)
    return function()


def switch_case(
    branch_index: Variable,
    branch_fns: Mapping[int, Function] | Sequence[Any],
    default: Function | None = None,
    name: str | None = None,
) -> Any:
    """Returns what the function with a number returns.

    Args:
        branch_index: the number, an integer with one entry.
        branch_fns: functions by number; pairs of a number and a function; or functions, whose
            numbers are their places.
        default: called for other numbers; by default the function with the largest number.
        name: the name of the layer.

    Raises:
        PaddleError: there is no function, or two have the same number.
    """
    Layer("switch_case", name)
    pairs = _numbered(branch_fns)
    if default is None:
        default = pairs.pop()[1]
    index = cast(branch_index, "int64") if branch_index.dtype != np.int64 else branch_index
    made = [
        (equal(index, fill_constant([1], "int64", number)), function) for number, function in pairs
    ]
    function = default
    for pred, one in reversed(made):
        function = partial(cond, pred, one, function)
    return function()


def _numbered(given: Mapping[int, Function] | Sequence[Any]) -> list[tuple[int, Function]]:
    if isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        pairs = [(i, one) if callable(one) else tuple(one) for i, one in enumerate(given)]
    numbers = [number for number, _ in pairs]
    if not pairs or len(set(numbers)) < len(numbers):
        raise PaddleError(f"switch_case: functions must have different numbers, got {numbers}")
    return sorted(pairs, key=lambda pair: pair[0])


class Switch:
    """A chain of blocks; the first whose condition holds runs.

    Example:
        >>> with fluid.layers.Switch() as switch:  # doctest: +SKIP
        ...     with switch.case(step < 100):
        ...         fluid.layers.assign(small, rate)
        ...     with switch.default():
        ...         fluid.layers.assign(large, rate)
    """

    def __init__(self, name: str | None = None) -> None:
        """Starts the chain."""
        Layer("switch", name)
        self._none_before: Variable | None = None

    def __enter__(self) -> "Switch":
        """Returns the chain."""
        return self

    def __exit__(self, *error: object) -> None:
        """Ends the chain."""

    def case(self, condition: Variable) -> contextlib.AbstractContextManager[Block]:
        """Returns a context for the block that runs if a condition holds and none before does."""
        _require_condition("Switch.case", condition)
        before = self._none_before
        if before is None:
            chosen = ConditionalBlock([condition], is_scalar_condition=True)
            self._none_before = logical_not(condition)
        else:
            self._none_before = logical_and(before, logical_not(condition))
            both = logical_and(before, condition)
            chosen = ConditionalBlock([both], is_scalar_condition=True)
        return chosen.block()

    def default(self) -> contextlib.AbstractContextManager[Block]:
        """Returns a context for the block that runs if no condition holds.

        Raises:
            PaddleError: there is no case before.
        """
        if self._none_before is None:
            raise PaddleError("Switch.default: a case must come before it, got none")
        return ConditionalBlock([self._none_before], is_scalar_condition=True).block()


# Loops -------------------------------------------------------------------------------------------


class While:
    """A block that runs while a condition holds; it writes the condition.

    Example:
        >>> loop = fluid.layers.While(cond=cond)  # doctest: +SKIP
        >>> with loop.block():  # doctest: +SKIP
        ...     fluid.layers.increment(i)
        ...     fluid.layers.less_than(i, n, cond=cond)

    Attributes:
        cond_var: the condition.
        is_test: whether no gradients will be needed.
    """

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        """Starts the loop.

        Raises:
            PaddleError: the condition is not a boolean with one entry.
        """
        _require_condition("While", cond)
        self.cond_var = cond
        self.is_test = is_test
        Layer("while", name)

    def block(self) -> contextlib.AbstractContextManager[Block]:
        """Returns a context in which layers append to the body."""
        return _sub_block(self._complete)

    def _complete(self, block: Block) -> None:
        outer, condition = _parent(block), self.cond_var.name
        reads, writes = _reads_and_writes(block, [condition])
        inputs = [one for one in dict.fromkeys([*reads, *writes]) if one != condition]
        outer.append_op(
            "while",
            {"X": inputs, "Condition": self.cond_var},
            {"Out": writes, "StepScopes": _scopes(outer)},
            {"sub_block": block.idx, "is_test": self.is_test},
        )


def while_loop(
    cond: Function,
    body: Function,
    loop_vars: Sequence[Any],
    is_test: bool = False,
    name: str | None = None,
) -> Any:
    """Calls ``body`` on variables while ``cond`` of them holds, and returns the variables.

    Args:
        cond: returns a boolean with one entry; it gets as many arguments as there are variables.
        body: returns new values of the variables, in the same structure.
        loop_vars: the variables; lists, tuples and dictionaries of them are allowed.
        is_test: whether no gradients will be needed.
        name: the name of the layer.

    Raises:
        PaddleError: ``loop_vars`` is empty, or ``body`` returns another structure.
    """
    Layer("while_loop", name)
    if not loop_vars:
        raise PaddleError("while_loop: loop_vars must not be empty, got none")
    loop_vars = jax.tree.map(_not_read_later, loop_vars)
    before = cond(*loop_vars)
    _require_condition("while_loop", before)
    with While(before, is_test).block():
        found = body(*loop_vars)
        after = list(found) if isinstance(found, (list, tuple)) else [found]
        structures = [_structure(one) for one in (after, list(loop_vars))]
        if structures[0] != structures[1]:
            raise PaddleError(
                "while_loop: body must return variables in the structure of loop_vars, "
                f"{structures[1]}, got {structures[0]}"
            )
        now = cond(*after)
        _carry(jax.tree.leaves(after), jax.tree.leaves(list(loop_vars)))
        assign(now, before)
    return loop_vars


def _not_read_later(variable: Any) -> Any:
    """Returns a variable that a loop may overwrite.

    It is a copy if the gradient of an operator before the loop reads the variable, since that
    would be wrong after the loop.
    """
    if not isinstance(variable, Variable) or variable.type is not VarKind.LOD_TENSOR:
        return variable
    ops = default_main_program().current_block().ops
    is_read = any(variable.name in gradient_reads(op) for op in ops)
    return assign(variable) if is_read else variable


def _carry(values: Sequence[Any], variables: Sequence[Variable]) -> None:
    """Assigns values to the variables of a loop, as if all at once."""
    moved = {id(one) for one in variables}
    kept = [
        assign(value) if id(value) in moved and value is not variable else value
        for value, variable in zip(values, variables, strict=True)
    ]
    for value, variable in zip(kept, variables, strict=True):
        if value is variable:
            continue
        is_array = variable.type is VarKind.LOD_TENSOR_ARRAY
        if not is_array or (isinstance(value, Variable) and value.name != variable.name):
            assign(value if isinstance(value, Variable) else np.asarray(value), variable)


class StaticRNN:
    """A block that runs for each slice of sequences along their first axis.

    Example:
        >>> rnn = fluid.layers.StaticRNN()  # doctest: +SKIP
        >>> with rnn.step():  # doctest: +SKIP
        ...     word = rnn.step_input(words)
        ...     before = rnn.memory(shape=[-1, 8], batch_ref=word)
        ...     state = fluid.layers.fc([word, before], 8, act="tanh")
        ...     rnn.update_memory(before, state)
        ...     rnn.step_output(state)
        >>> states = rnn()  # doctest: +SKIP
    """

    def __init__(self, name: str | None = None) -> None:
        """Starts the loop."""
        self._layer = Layer("static_rnn", name)
        self._inputs: list[Variable] = []
        self._outputs: list[Variable] = []
        self._memories: dict[str, tuple[Variable, Variable | None]] = {}
        self._length: int | None = None
        self._block: Block | None = None
        self._is_complete = False

    def step(self) -> contextlib.AbstractContextManager[Block]:
        """Returns a context in which layers append to the block of one step."""
        return self._steps()

    @contextlib.contextmanager
    def _steps(self) -> Iterator[Block]:
        with _sub_block(self._complete) as block:
            self._block = block
            yield block
        self._is_complete = True

    def _open(self, method: str) -> Block:
        """Returns the block of a step.

        Raises:
            PaddleError: it is not being built.
        """
        if self._block is None or self._is_complete:
            raise PaddleError(
                f"StaticRNN.{method}: it must be called inside of step(), got outside"
            )
        return self._block

    def step_input(self, x: Variable) -> Variable:
        """Returns the slice of a sequence, whose first axis is time.

        Raises:
            PaddleError: another sequence has another length.
        """
        block = self._open("step_input")
        if self._length is None:
            self._length = x.shape[0]
        elif x.shape[0] not in (-1, self._length):
            raise PaddleError(
                f"StaticRNN.step_input: sequences must have {self._length} steps, got {x.shape[0]}"
            )
        slice_ = block.create_var(x.name, x.shape[1:], x.dtype, type=x.type)
        self._inputs.append(slice_)
        return slice_

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        batch_ref: Variable | None = None,
        init_value: float = 0.0,
        init_batch_dim_idx: int = 0,
        ref_batch_dim_idx: int = 1,
    ) -> Variable:
        """Returns the value that a variable had after the step before.

        Args:
            init: the value before the first step; otherwise it is full of ``init_value``.
            shape: the shape of such a value.
            batch_ref: a variable; one axis of the value is as long as one of it.
            init_value: what such a value is full of.
            init_batch_dim_idx: this axis of the value.
            ref_batch_dim_idx: this axis of ``batch_ref``; for the slice of a sequence that of the
                sequence, whose first axis is time.

        Raises:
            PaddleError: neither ``init`` nor both of ``shape`` and ``batch_ref`` are given.
        """
        block = self._open("memory")
        if init is None:
            if shape is None or batch_ref is None:
                raise PaddleError("StaticRNN.memory: init must be given, or shape and batch_ref")
            lengths = (list(shape), init_batch_dim_idx, ref_batch_dim_idx)
            init = self._boot(_parent(block), batch_ref, init_value, *lengths)
        label = unique_name.generate(f"{self._layer.name}@mem")
        before = block.create_var(label, init.shape, init.dtype)
        self._memories[before.name] = (init, None)
        return before

    def _boot(
        self,
        outer: Block,
        like: Variable,
        value: float,
        shape: list[int],
        axis: int,
        axis_of_like: int,
    ) -> Variable:
        label = unique_name.generate(f"{self._layer.name}@memory_boot")
        made = outer.create_var(label, shape, like.dtype)
        attrs = {
            "value": value,
            "shape": shape,
            "dtype": code_of(like.dtype),
            "input_dim_idx": axis_of_like,
            "output_dim_idx": axis,
        }
        kind = "fill_constant_batch_size_like"
        outer.append_op(kind, {"Input": like.name}, {"Out": made}, attrs)
        return made

    def update_memory(self, mem: Variable, var: Variable) -> None:
        """Makes ``var`` the value that ``mem`` has in the next step.

        Raises:
            PaddleError: ``mem`` is no memory of this loop.
        """
        self._open("update_memory")
        if mem.name not in self._memories:
            raise PaddleError(f"StaticRNN.update_memory: it must be a memory, got {mem.name!r}")
        self._memories[mem.name] = (self._memories[mem.name][0], var)

    def step_output(self, o: Variable) -> None:
        """Makes a variable an output: the values of all steps, stacked along a first axis."""
        block = self._open("step_output")
        part = self._passed_on(o)
        shape = [-1 if self._length is None else self._length, *part.shape]
        self._outputs.append(_parent(block).create_var(part.name, shape, part.dtype))

    def output(self, *outputs: Variable) -> None:
        """Makes variables outputs; see ``step_output``."""
        for one in outputs:
            self.step_output(one)

    def _passed_on(self, variable: Variable) -> Variable:
        attrs = {"dtype": code_of(variable.dtype)}
        return self._layer.call("rnn_memory_helper", {"X": variable}, attrs=attrs)

    def _complete(self, block: Block) -> None:
        lacking = [name for name, (_, after) in self._memories.items() if after is None]
        if lacking:
            raise PaddleError(f"StaticRNN: memories must be updated, got none for {lacking[0]!r}")
        states = [
            self._passed_on(after).name for _, after in self._memories.values() if after is not None
        ]
        outer = _parent(block)
        own = {*self._memories, *(one.name for one in self._inputs)}
        outer.append_op(
            "recurrent",
            {
                "inputs": [one.name for one in self._inputs],
                "initial_states": [first for first, _ in self._memories.values()],
                "parameters": [one for one in _reads_and_writes(block)[0] if one not in own],
            },
            {"outputs": self._outputs, "step_scopes": _scopes(outer)},
            {
                "has_states": bool(states),
                "ex_states": list(self._memories),
                "states": states,
                "sub_block": block.idx,
            },
        )

    def __call__(self) -> Any:
        """Returns the output, or a list of several.

        Raises:
            PaddleError: the block is not complete, or there is no output.
        """
        if not self._is_complete or not self._outputs:
            raise PaddleError("StaticRNN: there must be an output after step(), got none")
        return self._outputs[0] if len(self._outputs) == 1 else list(self._outputs)


# Tensor arrays -----------------------------------------------------------------------------------


def create_array(dtype: Any, initialized_list: Sequence[Variable] | None = None) -> Variable:
    """Declares a tensor array.

    Args:
        dtype: the dtype of its elements.
        initialized_list: its first elements.
    """
    layer = Layer("array")
    label = f"{layer.name}.out"
    array = layer.block.create_var(label, (), dtype_of(dtype), type=VarKind.LOD_TENSOR_ARRAY)
    for i, one in enumerate(initialized_list or ()):
        array_write(one, fill_constant([1], "int64", i), array)
    return array


def _require_array(what: str, array: Any) -> None:
    if getattr(array, "type", None) is not VarKind.LOD_TENSOR_ARRAY:
        raise PaddleError(f"{what}: array must be a tensor array, got {array!r}")


def array_write(x: Variable, i: Variable, array: Variable | None = None) -> Variable:
    """Writes an element of a tensor array, which becomes as long as needed, and returns the array.

    Args:
        x: the element.
        i: its position, an integer with one entry.
        array: the array; a new one by default.
    """
    layer = Layer("array_write")
    if array is None:
        label = f"{layer.name}.out"
        array = layer.block.create_var(label, (), x.dtype, type=VarKind.LOD_TENSOR_ARRAY)
    _require_array("array_write", array)
    layer.block.append_op("write_to_array", {"X": x, "I": i}, {"Out": array})
    return array


def array_read(array: Variable, i: Variable) -> Variable:
    """Returns an element of a tensor array."""
    _require_array("array_read", array)
    return Layer("array_read").call("read_from_array", {"X": array, "I": i})


def array_length(array: Variable) -> Variable:
    """Returns the number of elements of a tensor array."""
    _require_array("array_length", array)
    return Layer("array_length").call("lod_array_length", {"X": array}, stop_gradient=True)


def tensor_array_to_tensor(
    input: Variable, axis: int = 1, name: str | None = None, use_stack: bool = False
) -> tuple[Variable, Variable]:
    """Joins the elements of a tensor array, or stacks them; also returns their lengths."""
    _require_array("tensor_array_to_tensor", input)
    attrs = {"axis": axis, "use_stack": use_stack}
    layer = Layer("tensor_array_to_tensor", name)
    out, index = layer.calls("tensor_array_to_tensor", {"X": input}, "Out OutIndex", attrs)
    return out, index


# Checks ------------------------------------------------------------------------------------------


def is_empty(x: Variable, name: str | None = None) -> Variable:
    """Returns whether a variable has no entries."""
    return Layer("is_empty", name).call("is_empty", {"X": x}, stop_gradient=True)


def Print(  # noqa: N802
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_layout: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """Returns a copy of a variable. Paddle prints it; here its value is seen by fetching it."""
    attrs = {
        "first_n": first_n,
        "summarize": summarize,
        "message": message or "",
        "print_tensor_name": print_tensor_name,
        "print_tensor_type": print_tensor_type,
        "print_tensor_shape": print_tensor_shape,
        "print_tensor_layout": print_tensor_layout,
        "print_tensor_lod": print_tensor_lod,
        "print_phase": print_phase.upper(),
    }
    return Layer(f"print_{input.name}").call("print", {"In": input}, attrs=attrs)


def Assert(  # noqa: N802
    cond: Variable,
    data: Sequence[Variable] | None = None,
    summarize: int = 20,
    name: str | None = None,
) -> None:
    """Checks a condition, as far as it is known when the program is compiled."""
    inputs: Slots = {"Cond": cond, "Data": None if data is None else list(data)}
    Layer("assert", name).block.append_op("assert", inputs, {}, {"summarize": summarize})
