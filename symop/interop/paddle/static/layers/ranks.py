"""Layers whose batches change: rows by a condition, and sequences of different lengths by step."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from symop.interop.paddle import unique_name
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import VarKind
from symop.interop.paddle.programs import Block, Variable, code_of, dtype_of
from symop.interop.paddle.static.helper import Layer
from symop.interop.paddle.static.layers.control_flow import (
    ConditionalBlock,
    While,
    array_read,
    array_write,
)
from symop.interop.paddle.static.layers.elementwise import less_than
from symop.interop.paddle.static.layers.tensors import assign, fill_constant, increment

Scope = contextlib.AbstractContextManager[Block]


def _appended(
    block: Block, type: str, inputs: dict[str, Any], label: str, **attrs: Any
) -> Variable:
    """Appends a call with one output to a block and returns the output."""
    return block.call(type, inputs, attrs, name=label)


class IfElse:
    """Two blocks: one for the rows of a batch where a condition holds, one for the others.

    Example:
        >>> branches = fluid.layers.IfElse(fluid.layers.less_than(x, zero))  # doctest: +SKIP
        >>> with branches.true_block():  # doctest: +SKIP
        ...     branches.output(fluid.layers.square(branches.input(x)))
        >>> with branches.false_block():  # doctest: +SKIP
        ...     branches.output(branches.input(x))
        >>> (y,) = branches()  # doctest: +SKIP

    Attributes:
        cond: the condition, a boolean for each row.
    """

    def __init__(self, cond: Variable, name: str | None = None) -> None:
        """Starts both blocks."""
        self.cond = cond
        self._layer = Layer("ifelse", name)
        self._blocks = {holds: ConditionalBlock([cond]) for holds in (True, False)}
        self._rows: dict[str, dict[bool, Variable]] = {}
        self._outputs: dict[bool, list[Variable]] = {True: [], False: []}
        self._open: tuple[bool, Block] | None = None

    def true_block(self) -> Scope:
        """Returns a context in which layers append to the block for rows where it holds."""
        return self._block(holds=True)

    def false_block(self) -> Scope:
        """Returns a context in which layers append to the block for the other rows."""
        return self._block(holds=False)

    @contextlib.contextmanager
    def _block(self, *, holds: bool) -> Iterator[Block]:
        if self._open is not None:
            raise PaddleError("IfElse: a block must be outside of the other one, got it inside")
        with self._blocks[holds].block() as block:
            self._open = holds, block.program.block(block.parent_idx)
            try:
                yield block
            finally:
                self._open = None
            if not self._outputs[holds]:
                raise PaddleError("IfElse: a block must have outputs, got none")

    def _inside(self, method: str) -> tuple[bool, Block]:
        """Returns which block is being built, and the block around it.

        Raises:
            PaddleError: none is.
        """
        if self._open is None:
            raise PaddleError(f"IfElse.{method}: it must be called inside of a block, got outside")
        return self._open

    def input(self, x: Variable) -> Variable:
        """Returns the rows of a variable that belong to the block."""
        holds, outer = self._inside("input")
        if x.name not in self._rows:
            labels = [unique_name.generate(f"ifelse_input{self._layer.name}") for _ in "01"]
            outputs = dict(zip(("OutTrue", "OutFalse"), labels, strict=True))
            outer.append_op("split_lod_tensor", {"X": x, "Mask": self.cond}, outputs, {"level": 0})
            self._rows[x.name] = dict(zip((True, False), map(outer.var, labels), strict=True))
        return self._rows[x.name][holds]

    def output(self, *outs: Variable) -> None:
        """Makes variables the results for the rows of the block."""
        holds, outer = self._inside("output")
        for one in outs:
            label = unique_name.generate(f"{self._layer.name}_output")
            outside = outer.create_var(label, one.shape, one.dtype)
            self._outputs[holds].append(outside)
            assign(one, outside)

    def __call__(self) -> list[Variable]:
        """Returns the results, whose rows are in the order of the condition.

        Raises:
            PaddleError: no block has outputs, or the blocks have different numbers of them.
        """
        yes, no = self._outputs[True], self._outputs[False]
        if self._open is not None or not (yes or no):
            raise PaddleError("IfElse: results must be asked for after a block, got none")
        if not (yes and no):
            return yes or no
        if len(yes) != len(no):
            raise PaddleError(
                f"IfElse: both blocks must have as many outputs, got {len(yes)} and {len(no)}"
            )
        return [self._merged(one, other) for one, other in zip(yes, no, strict=True)]

    def _merged(self, yes: Variable, no: Variable) -> Variable:
        inputs: dict[str, Any] = {"X": self.cond, "Mask": self.cond, "InTrue": yes, "InFalse": no}
        return Layer("merge_lod_tensor").call("merge_lod_tensor", inputs, attrs={"level": 0})


class DynamicRNN:
    """A block that runs for each step of ragged sequences.

    A step has one row for each sequence that is long enough, the longest sequence first.

    Example:
        >>> rnn = fluid.layers.DynamicRNN()  # doctest: +SKIP
        >>> with rnn.block():  # doctest: +SKIP
        ...     word = rnn.step_input(words)
        ...     before = rnn.memory(shape=[8])
        ...     state = fluid.layers.fc([word, before], 8, act="tanh")
        ...     rnn.update_memory(before, state)
        ...     rnn.output(state)
        >>> states = rnn()  # doctest: +SKIP
    """

    def __init__(self, name: str | None = None) -> None:
        """Starts the loop."""
        self._layer = Layer("dynamic_rnn", name)
        label = unique_name.generate(f"{self._layer.name}.tmp")
        self._cond = self._layer.block.create_var(label, [1], "bool")
        self._loop = While(self._cond)
        self._outer: Block | None = None
        self._table: Variable | None = None
        self._arrays: list[Variable] = []
        self._memories: dict[str, Variable] = {}
        self._updates: list[tuple[Variable, Variable]] = []
        self._written: list[Variable] = []
        self._outputs: list[Variable] = []

    def block(self) -> Scope:
        """Returns a context in which layers append to the block of one step."""
        return self._steps()

    @contextlib.contextmanager
    def _steps(self) -> Iterator[Block]:
        if self._outputs or self._outer is not None:
            raise PaddleError("DynamicRNN.block: it must be called once, got it again")
        self._step = fill_constant([1], "int64", 0)
        self._zero: Variable | None = None
        with self._loop.block() as block:
            self._outer = block.program.block(block.parent_idx)
            yield block
            self._require_sequence("block")
            increment(self._step, 1.0)
            for value, array in self._updates:
                array_write(value, self._step, array)
            less_than(self._step, self._longest, cond=self._cond)
            self._outer = None
        self._outputs = [self._sequences(one) for one in self._written]

    def _around(self, method: str) -> Block:
        """Returns the block around that of a step.

        Raises:
            PaddleError: that of a step is not being built.
        """
        if self._outer is None:
            raise PaddleError(f"DynamicRNN.{method}: it must be called inside of block()")
        return self._outer

    def _require_sequence(self, method: str) -> Variable:
        """Returns the ranks of the sequences.

        Raises:
            PaddleError: there are no sequences yet.
        """
        if self._table is None:
            raise PaddleError(f"DynamicRNN.{method}: step_input must be called before")
        return self._table

    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """Returns a step of sequences; ``level`` is that of their lengths."""
        outer = self._around("step_input")
        table = self._table or self._ranked(outer, x, level)
        label = "dynamic_rnn_input_array"
        array = _appended(outer, "lod_tensor_to_array", {"X": x, "RankTable": table}, label)
        self._arrays.append(array)
        return array_read(array, self._step)

    def _ranked(self, outer: Block, x: Variable, level: int) -> Variable:
        """Ranks the sequences by their lengths, and counts the steps of the longest one."""
        label = unique_name.generate("lod_rank_table")
        table = outer.create_var(label, dtype=None, type=VarKind.LOD_RANK_TABLE, stop_gradient=True)
        outer.append_op("lod_rank_table", {"X": x}, {"Out": table}, {"level": level})
        label = "dynamic_rnn_max_seq_len"
        self._longest = _appended(outer, "max_sequence_len", {"RankTable": table}, label)
        lengths = {"X": self._step, "Y": self._longest}
        outer.append_op("less_than", lengths, {"Out": self._cond}, {"force_cpu": True})
        self._table = table
        return table

    def static_input(self, x: Variable) -> Variable:
        """Returns the rows, or sequences, of a variable for the sequences that have the step."""
        table = self._require_sequence("static_input")
        return self._shrunk(self._reordered(self._around("static_input"), x, table), table)

    def _reordered(self, outer: Block, x: Variable, table: Variable) -> Variable:
        inputs = {"X": x, "RankTable": table}
        return _appended(outer, "reorder_lod_tensor_by_rank", inputs, "dynamic_rnn_reordered")

    def _shrunk(self, x: Variable, table: Variable) -> Variable:
        inputs = {"X": x, "I": self._step, "RankTable": table}
        return Layer("shrink_memory").call("shrink_rnn_memory", inputs)

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        value: float = 0.0,
        need_reorder: bool = False,
        dtype: Any = "float32",
    ) -> Variable:
        """Returns a variable that holds its value from the previous step.

        Args:
            init: the value before the first step, with a row for each sequence; by default it is
                filled with ``value``.
            shape: the shape of a row of the default.
            value: the entries of the default.
            need_reorder: whether the rows of ``init`` are in the order of the sequences, not of
                their lengths.
            dtype: the dtype of the default.
        """
        outer, table = self._around("memory"), self._require_sequence("memory")
        if self._zero is None:
            attrs = {"shape": [1], "dtype": code_of("int64"), "value": 0.0}
            self._zero = _appended(outer, "fill_constant", {}, "zero_idx", **attrs)
        if init is None:
            init = self._full(outer, [-1, *(shape or ())], value, dtype)
        elif need_reorder:
            init = self._reordered(outer, init, table)
        label = unique_name.generate("dynamic_rnn_mem_array")
        array = outer.create_var(label, (), init.dtype, type=VarKind.LOD_TENSOR_ARRAY)
        outer.append_op("write_to_array", {"X": init, "I": self._zero}, {"Out": array})
        found = self._shrunk(array_read(array, self._step), table)
        self._memories[found.name] = array
        return found

    def _full(self, outer: Block, shape: list[int], value: float, dtype: Any) -> Variable:
        inputs = {"X": self._arrays[0], "I": self._zero}
        like = _appended(outer, "read_from_array", inputs, "in0")
        attrs = {"shape": shape, "value": float(value), "dtype": code_of(dtype_of(dtype))}
        kind = "fill_constant_batch_size_like"
        return _appended(outer, kind, {"Input": like}, "mem_init", **attrs)

    def update_memory(self, ex_mem: Variable, new_mem: Variable) -> None:
        """Makes ``new_mem`` the value that ``ex_mem`` has in the next step.

        Raises:
            PaddleError: ``ex_mem`` is not a memory of this loop.
        """
        self._around("update_memory")
        array = self._memories.get(ex_mem.name)
        if array is None:
            raise PaddleError(
                f"DynamicRNN.update_memory: ex_mem must be a memory, got {ex_mem.name!r}"
            )
        self._updates.append((new_mem, array))

    def output(self, *outputs: Variable) -> None:
        """Makes variables outputs: the values of all steps, as sequences."""
        outer = self._around("output")
        for one in outputs:
            label = unique_name.generate(f"{self._layer.name}_output_array_{one.name}")
            array = outer.create_var(label, (), one.dtype, type=VarKind.LOD_TENSOR_ARRAY)
            self._written.append(array_write(one, self._step, array))

    def _sequences(self, array: Variable) -> Variable:
        inputs = {"X": array, "RankTable": self._require_sequence("output")}
        return Layer("array_to_lod_tensor").call("array_to_lod_tensor", inputs)

    def __call__(self) -> Any:
        """Returns the output, or a list of several.

        Raises:
            PaddleError: the block is not complete, or there is no output.
        """
        if not self._outputs:
            raise PaddleError("DynamicRNN: there must be an output after block(), got none")
        return self._outputs[0] if len(self._outputs) == 1 else list(self._outputs)
