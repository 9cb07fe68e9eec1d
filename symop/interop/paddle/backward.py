"""``append_backward`` and ``gradients``: programs are extended by Paddle's gradient operators."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import AttrType, BlockDesc, OpDesc, VarDesc, VarKind
from symop.interop.paddle.gradients import forward_type
from symop.interop.paddle.makers import complete, gradient_ops, has_gradient, is_counter
from symop.interop.paddle.operators import EMPTY, GRAD
from symop.interop.paddle.programs import Block, Program, Variable, code_of, name_of
from symop.interop.paddle.roles import BACKWARD, LOSS, NAME, VARIABLES, has_own_loss

_RENAMED = "@RENAME@"


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Any] | None = None,
    no_grad_set: Collection[Any] | None = None,
    callbacks: Any = None,
) -> list[tuple[Variable, Variable]]:
    """Appends the operators of the gradient of a loss by all parameters.

    Args:
        loss: a variable with one entry.
        parameter_list: parameters or their names; by default all those that are trained.
        no_grad_set: variables, or their names, that count as constants.
        callbacks: not supported.

    Returns:
        The parameters that the loss depends on, each with its gradient.

    In a branch, the operators are in a block of their own, which runs after the branch if this
    does.

    Raises:
        PaddleError: the loss has several entries, an operator has no gradient here, or layers
            append to a loop, to a branch in another block, or to one that has gradients already.
    """
    _reject_callbacks(callbacks)
    if np.prod(loss.shape, dtype=int) != 1:
        raise PaddleError(f"append_backward: the loss must have one entry, got {list(loss.shape)}")
    inside = loss.program.current_block()
    parts = (
        _parts_of_branch(inside, loss, no_grad_set or ())
        if inside.idx
        else [_part_of(loss.block, no_grad_set or ())]
    )
    target = parts[0].target
    _mark_loss(loss.block, loss.name)
    target.ops.append(parts[0].seed(loss))
    path = _append_all(parts, loss.name)
    pairs = [
        (one, parts[0].gradient(one.name)) for one in _parameters(target, path, parameter_list)
    ]
    found = [(one, target.var(name)) for one, name in pairs if name is not None]
    for one, gradient in found:
        _mark_gradient(target, one.name, gradient.name)
    return found


def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None,
    no_grad_set: Collection[Any] | None = None,
) -> list[Variable | None]:
    """Appends the operators of gradients of any variables by any others.

    Args:
        targets: the variables that are differentiated, and added up.
        inputs: those by which they are differentiated.
        target_gradients: a factor for each target, ones by default.
        no_grad_set: variables, or their names, that count as constants.

    Returns:
        The gradient by each of the inputs; None where no target depends on it.

    Raises:
        PaddleError: a factor has another shape than its target, an operator has no gradient, or
            layers append to a branch or a loop.
    """
    ys, xs = _listed(targets), _listed(inputs)
    inner = ys[0].block.idx or ys[0].program.current_block().idx
    if inner:
        raise PaddleError(
            f"gradients: it must be called outside of branches and loops, got block {inner}; "
            "append_backward may be called in branches"
        )
    factors = _listed(target_gradients) if target_gradients is not None else [None] * len(ys)
    block = ys[0].block
    backward = _part_of(block, no_grad_set or ())
    for y, factor in zip(ys, factors, strict=True):
        backward.seed_target(y, factor)
    wanted = [one.name for one in xs]
    backward.append(backward.path([one.name for one in ys], wanted), backward.seeds())
    names = [backward.gradient(one) for one in wanted]
    return [None if name is None else block.var(name) for name in names]


def _reject_callbacks(callbacks: Any) -> None:
    if callbacks:
        raise PaddleError("append_backward: callbacks must be None, got a list of functions")


def _part_of(block: Block, no_grad_set: Collection[Any]) -> "_Backward":
    """Starts an extension of the first block by its own gradient operators.

    Raises:
        PaddleError: the block is one that an operator runs.
    """
    if block.idx:
        raise PaddleError(
            "append_backward: it must be called in the block of the loss or inside of it, got "
            f"a loss of block {block.idx} outside"
        )
    block.program.gradient_times += 1
    _complete(block, block.program.gradient_times)
    extension = _Extension(block, block.program.gradient_times)
    return _Backward(block, _without_gradient(block, no_grad_set), extension)


def _parts_of_branch(
    block: Block, loss: Variable, no_grad_set: Collection[Any]
) -> list["_Backward"]:
    """Starts an extension of a branch, and of the block around it, by a block of gradients.

    Returns:
        The parts for the branch and for the block around it, in this order.

    Raises:
        PaddleError: the block is that of a loop, is in another branch, or has gradients already.
    """
    program = block.program
    if block.idx not in program.branches or block.parent_idx:
        raise PaddleError(
            "append_backward: it must be called outside of loops, and of branches in other blocks "
            f"than the first, got block {block.idx}; Paddle refuses the latter, and its loops run "
            "no updates"
        )
    if gradients_of_branch(block) is not None:
        raise PaddleError(
            "append_backward: it must be called once in a branch, got a second call in block "
            f"{block.idx}; Paddle runs the operators of the first one alone"
        )
    if loss.block.idx not in (block.idx, 0):
        raise PaddleError(
            "append_backward: it must be called in the block of the loss or inside of it, got "
            f"a loss of block {loss.block.idx} in block {block.idx}"
        )
    around, times = program.global_block(), program.gradient_times + 1
    _complete(around, times)
    extension = _Extension(program.gradient_block(block.idx, around.idx), times)
    return [
        _Backward(one, _without_gradient(one, no_grad_set), extension) for one in (block, around)
    ]


def _append_all(parts: Sequence["_Backward"], target: str) -> list[OpDesc]:
    """Appends the gradient operators of what a variable depends on.

    Args:
        parts: one for each block, from the innermost to the first.
        target: the variable.

    Returns:
        The operators that it depends on.
    """
    parts[0].extension.available.update(parts[0].seeds())
    path: list[OpDesc] = []
    made: list[OpDesc] = []
    for part in parts:
        ops = part.path(_read_first(path, [target]))
        if part is not parts[0]:
            _require_no_blocks(ops)
        made += part.made(ops)
        path = [*ops, *path]
    parts[0].extend(_added_up(made, parts[-1].block.idx))
    return path


def gradients_of_branch(block: Block) -> Block | None:
    """Returns the block of the gradients that a branch itself asks for; None if it does not."""
    for one in block.program.records.blocks:
        if one.forward_block_idx == block.idx and has_own_loss(one.ops):
            return block.program.block(one.idx)
    return None


def append_gradient_of_branch(block: Block, op: OpDesc, reads: Sequence[str]) -> None:
    """Appends the operator that runs the gradients which a branch itself asks for.

    Args:
        block: the block of these gradients.
        op: the call that runs the branch, the last one of the block around it.
        reads: the variables around it that the gradients read.
    """
    around = block.program.block(block.parent_idx)
    for name in reads:
        slope = name + GRAD
        block.desc.vars.setdefault(slope, _like(around.find_var(name).desc, slope))
    inputs = {slot: list(op.input(slot) or op.output(slot)) for slot in ("Cond", "Out", "Scope")}
    inputs |= {"Input": list(reads), "Out@GRAD": [one + GRAD for one in inputs["Out"]]}
    made = OpDesc(f"{op.type}_grad", inputs, {"Input@GRAD": [one + GRAD for one in reads]})
    made.attrs = {**op.attrs, "sub_block": block.idx, NAME: BACKWARD}
    made.attrs.pop(VARIABLES, None)
    made.attr_types = {key: one for key, one in op.attr_types.items() if key in made.attrs}
    around.ops.append(made)


def _complete(block: Block, times: int) -> None:
    if times > 1:
        for i, op in enumerate(block.ops):
            complete(op, block.ops[:i], times)


def _without_gradient(block: Block, no_grad_set: Collection[Any]) -> set[str]:
    names = {name_of(one) for one in no_grad_set}
    return _constants(block.desc) | _untrained(block.program) | names


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _mark_loss(block: Block, loss: str) -> None:
    for op in reversed(block.ops):
        if loss in op.output_arg_names:
            op.attrs[NAME] = op.attrs.get(NAME, 0) | LOSS
            return


def _mark_gradient(block: Block, parameter: str, gradient: str) -> None:
    for op in reversed(block.ops):
        if gradient in op.output_arg_names:
            op.attrs[VARIABLES] = [parameter, gradient, *op.attrs.get(VARIABLES, ())]
            return


def _parameters(
    block: Block, path: Iterable[OpDesc], given: Sequence[Any] | None
) -> list[Variable]:
    """Returns the parameters that are asked for; a file of Paddle 1.8 does not mark them."""
    root = block.program.global_block()
    if given is not None:
        return [root.var(name_of(one)) for one in given]
    marked = [one for one in root.all_parameters() if one.trainable]
    return marked or _trained(root, path)


def _trained(root: Block, path: Iterable[OpDesc]) -> list[Variable]:
    """Returns the persistable variables that a path reads and no operator of it writes."""
    ops = list(path)
    written = {name for op in ops for name in op.output_arg_names}
    read = {name for op in ops for name in op.input_arg_names} - written
    return [
        root.var(name)
        for name, one in root.desc.vars.items()
        if one.persistable and name in read and _is_floating(one)
    ]


def _is_floating(variable: VarDesc | None) -> bool:
    if variable is None or variable.dtype is None:
        return variable is None or variable.kind is not VarKind.STEP_SCOPES
    return bool(jnp.issubdtype(variable.dtype, np.inexact))


class _Extension:
    """What an extension by gradient operators has made.

    Attributes:
        target: the block that gets the operators.
        times: how often gradients were appended, with these.
        existing: names that were taken before.
        owners: the variables of gradients that were named.
        seeds: the gradients of targets, by target.
        available: the gradients that are there.
    """

    def __init__(self, target: Block, times: int) -> None:
        """Starts an extension that has made nothing."""
        self.target = target
        self.times = times
        self.existing: set[str] = set()
        self.owners: dict[str, str] = {}
        self.seeds: dict[str, str] = {}
        self.available: set[str] = set()


class _Backward:
    """The part of an extension for the operators of one block.

    Attributes:
        block: the block that is differentiated.
        extension: what this part and others make.
        target: the block that gets the gradient operators: the same, or one that an operator runs.
    """

    def __init__(self, block: Block, constants: Collection[str], extension: _Extension) -> None:
        """Starts the part; ``constants`` are variables that have no gradients."""
        self.block = block
        self.extension = extension
        self.target = extension.target
        self._desc: BlockDesc = block.desc
        self._constants = set(constants)
        extension.existing.update(self._desc.vars)
        if extension.times > 2:
            # A call may read a gradient that is missing; nothing may get its name later.
            extension.existing.update(one for op in self._desc.ops for one in op.input_arg_names)

    # Names -------------------------------------------------------------------------------------

    def named(self, name: str) -> str:
        """Returns the name of the gradient of a variable; a name that is taken gets a prefix."""
        found, times = name + GRAD, self.extension.times
        if found in self.extension.existing and times > 1:
            found = "grad/" * times + found
        self.extension.owners[found] = name
        return found

    def head(self, name: str) -> str | None:
        """Returns the name of the gradient of an output, None if it has none."""
        if not _is_floating(_find(self.block, name)):
            return None
        return self.extension.seeds.get(name) or self.named(name)

    def slope(self, name: str) -> str:
        """Returns the name of the gradient of an input, that of nothing if it has none."""
        has_none = name in self._constants or not _is_floating(_find(self.block, name))
        return EMPTY if has_none else self.named(name)

    def gradient(self, name: str) -> str | None:
        """Returns the name of the gradient of a variable, None if there is none."""
        found = self.named(name)
        return (
            found if found in self.extension.available and found in self.target.desc.vars else None
        )

    def reached(self, names: Iterable[str]) -> list[str]:
        """Returns those of some outputs whose gradients are there."""
        return [one for one in names if self.head(one) in self.extension.available]

    # Seeds -------------------------------------------------------------------------------------

    def seed(self, loss: Variable) -> OpDesc:
        """Returns the call that makes the gradient of the loss: one."""
        name = self.extension.seeds[loss.name] = self.named(loss.name)
        shape = list(loss.shape)
        attrs = {"shape": shape, "value": 1.0, "dtype": code_of(loss.dtype), "force_cpu": False}
        op = OpDesc("fill_constant", {}, {"Out": [name]}, {**attrs, NAME: BACKWARD | LOSS})
        op.attr_types["shape"] = AttrType.LONGS
        self._declare([op])
        return op

    def seed_target(self, target: Variable, factor: Variable | None) -> None:
        """Makes the gradient of a target: ``factor``, or ones.

        Raises:
            PaddleError: the factor has another shape.
        """
        if factor is not None:
            if factor.shape != target.shape:
                raise PaddleError(
                    f"gradients: the factor of {target.name} must have shape {list(target.shape)}, "
                    f"got {list(factor.shape)}"
                )
            self.extension.seeds[target.name] = factor.name
            return
        name = self.extension.seeds[target.name] = self.named(target.name)
        shape = f"{target.name}_shape"
        attrs = {"shape": list(target.shape), "value": 1.0, "dtype": code_of(target.dtype)}
        lengths = OpDesc("shape", {"Input": [target.name]}, {"Out": [shape]}, {NAME: BACKWARD})
        ones = OpDesc(
            "fill_constant", {"ShapeTensor": [shape]}, {"Out": [name]}, {**attrs, NAME: BACKWARD}
        )
        ones.attr_types["shape"] = AttrType.LONGS
        self._desc.vars[shape] = VarDesc(
            shape, dtype=np.dtype(np.int32), shape=(len(target.shape),)
        )
        self._declare([ones])
        self.block.ops.extend([lengths, ones])

    # The path ----------------------------------------------------------------------------------

    def path(self, targets: Iterable[str], inputs: Sequence[str] = ()) -> list[OpDesc]:
        """Returns the operators between inputs and targets.

        Args:
            targets: the ends.
            inputs: the beginnings; everything if empty.
        """
        ops = list(self._desc.ops)
        if inputs:
            ops = self._reached(ops, set(inputs))
        return self._with_counters(self._needed(ops, set(targets)), is_repeated=False)

    def cycle(self, targets: Iterable[str]) -> list[OpDesc]:
        """Returns the operators that targets depend on, if the block runs again and again."""
        needed, count = set(targets), -1
        while count < len(needed):
            count = len(needed)
            found = self._needed(self._desc.ops, needed)
        return self._with_counters(found, is_repeated=True)

    def _needed(self, ops: Sequence[OpDesc], needed: set[str]) -> list[OpDesc]:
        """Returns the operators that variables depend on, and adds to these what they read."""
        found = []
        for op in reversed(ops):
            if needed.intersection(op.output_arg_names) and has_gradient(op.type):
                needed.update(name for name in op.input_arg_names if name not in self._constants)
                found.append(op)
        return found[::-1]

    def _reached(self, ops: Sequence[OpDesc], reached: set[str]) -> list[OpDesc]:
        # An input is no constant, whatever is said of it elsewhere.
        self._constants -= reached
        found = []
        for op in ops:
            if reached.intersection(op.input_arg_names) and has_gradient(op.type):
                reached.update(name for name in op.output_arg_names if name not in self._constants)
                found.append(op)
        return found

    def _with_counters(self, path: Sequence[OpDesc], *, is_repeated: bool) -> list[OpDesc]:
        """Returns a path with the counters that its operators read before they are incremented.

        The gradients of these operators read the values from before, so a counter counts back.
        """
        chosen = {id(op) for op in path}
        read = {name for op in path for name in op.input_arg_names} if is_repeated else set[str]()
        found = []
        for op in self._desc.ops:
            if id(op) in chosen or (is_counter(op) and op.input("X")[0] in read):
                found.append(op)
            if id(op) in chosen:
                read.update(op.input_arg_names)
        return found

    # Operators ---------------------------------------------------------------------------------

    def append(self, path: Iterable[OpDesc], available: Iterable[str]) -> None:
        """Appends the gradient operators of a path.

        Args:
            path: the operators.
            available: names of the gradients that are there before.
        """
        self.extension.available.update(available)
        self.extend(_added_up(self.made(path), self.block.idx))

    def made(self, path: Iterable[OpDesc]) -> list[OpDesc]:
        """Returns the gradient operators of a path; several may contribute to one gradient."""
        return [one for op in reversed([*path]) for one in self._of(op)]

    def extend(self, made: Sequence[OpDesc]) -> None:
        """Appends gradient operators; each gradient has one maker."""
        for op in made:
            op.attrs[NAME] = BACKWARD
        self._declare(made)
        self.target.ops.extend(made)

    def seeds(self) -> list[str]:
        """Returns the names of the gradients of targets."""
        return list(self.extension.seeds.values())

    def _of(self, op: OpDesc) -> list[OpDesc]:
        """Returns the gradient operators of one call, after those of missing gradients."""
        if is_counter(op):
            return gradient_ops(op, self.head, self.named, ())
        heads = {name: one for one in op.output_arg_names if (name := self.head(one)) is not None}
        if not self.extension.available.intersection(heads):
            return []
        found = self._of_block(op) if op.blocks() else self._of_call(op, heads)
        self.extension.available.update(name for one in found for name in one.output_arg_names)
        return found

    def _of_call(self, op: OpDesc, heads: dict[str, str]) -> list[OpDesc]:
        undeclared = {one for one in op.input_arg_names if _find(self.block, one) is None}
        made = gradient_ops(op, self.head, self.named, self._constants | undeclared)
        missing = [
            name
            for one in made
            for name in one.input_arg_names
            if name in heads and name not in self.extension.available
        ]
        # A gradient operator reads a gradient that is missing as zero.
        zeros = [] if forward_type(op.type) else [_zeros(heads[name], name) for name in missing]
        return [*zeros, *made] if made else []

    def _of_block(self, op: OpDesc) -> list[OpDesc]:
        """Returns the gradient operator of one that runs a block, after making the one it runs.

        Raises:
            PaddleError: the operator has no gradient, or is one, or its block has gradients.
        """
        if op.type not in _OF_BLOCKS:
            raise PaddleError(
                f"{op.type}: the operator must have a gradient of records, as cond, while_loop and "
                "StaticRNN have to first order; differentiate the program as a whole, "
                "so.grad(program.to_symbol(...)), got a loss that depends on it"
            )
        program = self.block.program
        block = program.block(op.attrs["sub_block"])
        if gradients_of_branch(block) is not None:
            raise PaddleError(
                "append_backward: a loss must not depend on a branch that has gradients of its "
                f"own, got one that depends on block {block.idx}; Paddle fails to run it"
            )
        grads = program.gradient_block(block.idx, self.target.idx)
        extension = _Extension(grads, self.extension.times)
        inner = _Backward(block, _constants(block.desc), extension)
        found = _OF_BLOCKS[op.type](self, inner, op)
        found.attrs["sub_block"], found.attr_types["sub_block"] = grads.idx, AttrType.BLOCK
        return [found] if any(one != EMPTY for one in found.output_arg_names) else []

    def _declare(self, ops: Iterable[OpDesc]) -> None:
        """Declares the outputs: a gradient has the type of its variable."""
        for op in ops:
            sparse = self._is_sparse(op)
            for name in op.output_arg_names:
                if name == EMPTY or GRAD not in name:
                    continue
                owner = (
                    self.extension.owners.get(name)
                    or self.extension.owners[name.rpartition(_RENAMED)[0]]
                )
                like = self.block.find_var(owner).desc
                found = _find(self.target, name)
                if found is None:
                    found = self.target.desc.vars[name] = _like(like, name)
                if like.kind is not VarKind.LOD_TENSOR_ARRAY:
                    found.kind = VarKind.SELECTED_ROWS if sparse else VarKind.LOD_TENSOR

    def _is_sparse(self, op: OpDesc) -> bool:
        """Returns whether the results are rows of a table."""
        if op.type in ("lookup_table_grad", "lookup_table_v2_grad"):
            return bool(op.attrs.get("is_sparse"))
        if op.type not in ("sum", "scale"):
            return False
        found = [_find(self.target, name) for name in op.input("X")]
        return all(one is not None and one.kind is VarKind.SELECTED_ROWS for one in found)


def _require_no_blocks(ops: Iterable[OpDesc]) -> None:
    for op in ops:
        if op.blocks():
            raise PaddleError(
                "append_backward: in a branch, the loss must depend on no branch or loop around, "
                f"got one that depends on a call of {op.type}; Paddle refuses it"
            )


def _find(block: Block, name: str) -> VarDesc | None:
    return block.program.desc.find_var(block.desc, name)


def _constants(block: BlockDesc) -> set[str]:
    """Returns the variables of a block that gradients do not flow to."""
    return {one.name for one in block.vars.values() if one.stop_gradient or not _is_floating(one)}


def _untrained(program: Program) -> set[str]:
    return {name for name, one in program.training.items() if not one.trainable}


def _like(variable: VarDesc, name: str) -> VarDesc:
    return VarDesc(name, variable.kind, variable.dtype, variable.shape, variable.lod_level)


def _zeros(variable: str, name: str) -> OpDesc:
    return OpDesc("fill_zeros_like", {"X": [variable]}, {"Out": [name]})


# Operators that run a block ----------------------------------------------------------------------


def _of_branch(outer: _Backward, inner: _Backward, op: OpDesc) -> OpDesc:
    """Returns the gradient operator of a block that runs if a condition holds."""
    ends = outer.reached(op.output("Out"))
    inner.append(inner.path(ends), [inner.named(one) for one in ends])
    inputs = {slot: op.input(slot) for slot in ("Cond", "Input")}
    outputs = {slot + GRAD: [outer.slope(one) for one in names] for slot, names in inputs.items()}
    values = {**inputs, "Out": op.output("Out"), "Scope": op.output("Scope")}
    return _block_record(outer, op, {**values, "Out@GRAD": op.output("Out")}, outputs)


def _of_loop(outer: _Backward, inner: _Backward, op: OpDesc) -> OpDesc:
    """Returns the gradient operator of ``while``.

    What the variables of the loop depend on in one step, they depend on in the steps after it, so
    that the gradients of all of them are there when a step is differentiated.
    """
    ends, carried = outer.reached(op.output("Out")), op.output("Out")
    path = inner.cycle(ends)
    read = {name for one in path for name in one.input_arg_names}
    inner.append(path, [inner.named(one) for one in carried if one in read or one in ends])
    made = {name for one in inner.target.ops for name in one.output_arg_names}
    owners = {inner.named(one): one for one in carried}
    heads = {one: owners[one] for one in _read_first(inner.target.ops) if one in owners}
    # The gradient of a variable before the loop replaces that after it.
    slopes = [
        outer.slope(one) if one in ends or inner.named(one) in made else EMPTY
        for one in op.input("X")
    ]
    values = {"X": op.input("X"), "Out": carried, "StepScopes": op.output("StepScopes")}
    found = _block_record(outer, op, {**values, "Out@GRAD": [*heads.values()]}, {"X@GRAD": slopes})
    found.attrs["original_output_grad"] = [*heads]
    found.attr_types["original_output_grad"] = AttrType.STRINGS
    return found


def _read_first(ops: Iterable[OpDesc], after: Iterable[str] = ()) -> list[str]:
    """Returns the variables that operators read before they write them.

    Args:
        ops: the operators.
        after: what is read after all of them.
    """
    found, written = dict[str, None](), set[str]()
    for op in ops:
        found.update(dict.fromkeys(name for name in op.input_arg_names if name not in written))
        written.update(op.output_arg_names)
    return [*found, *(name for name in after if name not in written)]


def _of_steps(outer: _Backward, inner: _Backward, op: OpDesc) -> OpDesc:
    """Returns the gradient operator of ``recurrent``."""
    ends = [*outer.reached(op.output("outputs")), *op.attrs.get("states", ())]
    inner.append(inner.block.ops, [inner.named(one) for one in ends])
    inputs = {slot: op.input(slot) for slot in ("inputs", "initial_states", "parameters")}
    outputs = {slot + GRAD: [outer.slope(one) for one in names] for slot, names in inputs.items()}
    scopes = op.output("step_scopes")
    values = {**inputs, "outputs": op.output("outputs"), "step_scopes": scopes}
    found = _block_record(outer, op, {**values, "outputs@GRAD": op.output("outputs")}, outputs)
    found.inputs["step_scopes@GRAD"] = list(scopes)
    return found


def _block_record(
    outer: _Backward, op: OpDesc, inputs: dict[str, list[str]], outputs: dict[str, list[str]]
) -> OpDesc:
    """Returns a gradient operator; of a slot ``X@GRAD`` the names are those of its variables."""
    named = {
        slot: [outer.head(one) or one + GRAD for one in names] if slot.endswith(GRAD) else names
        for slot, names in inputs.items()
    }
    found = OpDesc(f"{op.type}_grad", {slot: list(one) for slot, one in named.items()}, outputs)
    found.attrs = {key: one for key, one in op.attrs.items() if key != VARIABLES}
    found.attr_types = {key: one for key, one in op.attr_types.items() if key in found.attrs}
    return found


_OF_BLOCKS: dict[str, Callable[[_Backward, _Backward, OpDesc], OpDesc]] = {
    "conditional_block": _of_branch,
    "while": _of_loop,
    "recurrent": _of_steps,
}


# Sums --------------------------------------------------------------------------------------------


def _added_up(ops: Sequence[OpDesc], block: int) -> list[OpDesc]:
    """Returns the operators with sums of gradients that several of them contribute to.

    The contributions are called ``X@GRAD@RENAME@block0@0``, 1, and so on; their sum stands before
    the first operator that reads it.
    """
    parts: dict[str, list[str]] = {}
    counts: dict[str, int] = defaultdict(int)
    first: dict[str, int] = {}
    found: list[OpDesc] = []
    for op in ops:
        for name in op.input_arg_names:
            if len(parts.get(name, ())) > 1:
                found.append(_sum(name, parts[name]))
                parts[name] = [name]
        earlier = [*found]
        found.append(op)
        places = [(names, i) for names in op.outputs.values() for i in range(len(names))]
        for at, (names, i) in enumerate(places):
            name = names[i]
            if GRAD not in name or name in op.input_arg_names:
                continue
            if name not in parts:
                parts[name], first[name] = [name], len(earlier)
                continue
            if len(parts[name]) == 1:
                parts[name] = [_part(name, block, counts)]
                _rename(earlier[first[name] :], name, parts[name][0])
                _rename_places(places[:at], name, parts[name][0])
            names[i] = _part(name, block, counts)
            parts[name].append(names[i])
    return found + [_sum(name, names) for name, names in parts.items() if len(names) > 1]


def _part(name: str, block: int, counts: dict[str, int]) -> str:
    counts[name] += 1
    return f"{name}{_RENAMED}block{block}@{counts[name] - 1}"


def _rename(ops: Iterable[OpDesc], old: str, new: str) -> None:
    for op in ops:
        for names in (*op.inputs.values(), *op.outputs.values()):
            names[:] = [new if one == old else one for one in names]


def _rename_places(places: Iterable[tuple[list[str], int]], old: str, new: str) -> None:
    for names, i in places:
        names[i] = new if names[i] == old else names[i]


def _sum(name: str, parts: Sequence[str]) -> OpDesc:
    return OpDesc("sum", {"X": list(parts)}, {"Out": [name]})
