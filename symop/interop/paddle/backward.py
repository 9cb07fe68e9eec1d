"""``append_backward`` and ``gradients``: programs are extended by Paddle's gradient operators."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import AttrType, BlockDesc, OpDesc, VarDesc, VarKind
from symop.interop.paddle.gradients import forward_type
from symop.interop.paddle.makers import gradient_ops, has_gradient
from symop.interop.paddle.operators import EMPTY, GRAD
from symop.interop.paddle.programs import Block, Program, Variable, code_of, name_of
from symop.interop.paddle.roles import BACKWARD, LOSS, NAME, VARIABLES

_RENAMED = "@RENAME@"
_CONTROL = ("sub_block", "blocks")


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

    Raises:
        PaddleError: the loss has several entries, or an operator has no gradient here.
    """
    _reject_callbacks(callbacks)
    if np.prod(loss.shape, dtype=int) != 1:
        raise PaddleError(f"append_backward: the loss must have one entry, got {list(loss.shape)}")
    block = loss.block
    backward = _Backward(block, no_grad_set or ())
    _mark_loss(block, loss.name)
    path = backward.path([loss.name], ())
    seed = backward.seed(loss)
    block.ops.append(seed)
    backward.append(path, [loss.name])
    pairs = [(one, backward.gradient(one.name)) for one in _parameters(block, path, parameter_list)]
    found = [(one, block.var(name)) for one, name in pairs if name is not None]
    for one, gradient in found:
        _mark_gradient(block, one.name, gradient.name)
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
        PaddleError: a factor has another shape than its target, or an operator has no gradient.
    """
    ys, xs = _listed(targets), _listed(inputs)
    factors = _listed(target_gradients) if target_gradients is not None else [None] * len(ys)
    block = ys[0].block
    backward = _Backward(block, no_grad_set or ())
    for y, factor in zip(ys, factors, strict=True):
        backward.seed_target(y, factor)
    wanted = [one.name for one in xs]
    backward.append(backward.path([one.name for one in ys], wanted), [one.name for one in ys])
    names = [backward.gradient(one) for one in wanted]
    return [None if name is None else block.var(name) for name in names]


def _reject_callbacks(callbacks: Any) -> None:
    if callbacks:
        raise PaddleError("append_backward: callbacks must be None, got a list of functions")


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
            op.attrs[VARIABLES] = [*op.attrs.get(VARIABLES, ()), parameter, gradient]
            return


def _parameters(
    block: Block, path: Iterable[OpDesc], given: Sequence[Any] | None
) -> list[Variable]:
    """Returns the parameters that are asked for; a file of Paddle 1.8 does not say which they are."""
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
    return (
        variable is None or variable.dtype is None or not np.issubdtype(variable.dtype, np.integer)
    )


class _Backward:
    """One extension of a block by gradient operators.

    Attributes:
        block: the block.
    """

    def __init__(self, block: Block, no_grad_set: Collection[Any]) -> None:
        """Starts the extension; ``no_grad_set`` are constants."""
        self.block = block
        program = block.program
        program.gradient_times += 1
        self._desc: BlockDesc = block.desc
        self._times = program.gradient_times
        self._existing = set(self._desc.vars)
        self._owners: dict[str, str] = {}
        self._seeds: dict[str, str] = {}
        self._constants = _constants(program, self._desc) | {name_of(one) for one in no_grad_set}
        self._available: set[str] = set()

    # Names -------------------------------------------------------------------------------------

    def _named(self, name: str) -> str:
        """Returns the name of the gradient of a variable; a name that is taken gets a prefix."""
        found = name + GRAD
        if found in self._existing and self._times > 1:
            found = "grad/" * self._times + found
        self._owners[found] = name
        return found

    def _head(self, name: str) -> str | None:
        """Returns the name of the gradient of an output, None if it has none."""
        if not _is_floating(self._desc.vars.get(name)):
            return None
        return self._seeds.get(name) or self._named(name)

    def gradient(self, name: str) -> str | None:
        """Returns the name of the gradient of a variable, None if there is none."""
        found = self._named(name)
        return found if found in self._available and found in self._desc.vars else None

    # Seeds -------------------------------------------------------------------------------------

    def seed(self, loss: Variable) -> OpDesc:
        """Returns the call that makes the gradient of the loss: one."""
        name = self._seeds[loss.name] = self._named(loss.name)
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
            self._seeds[target.name] = factor.name
            return
        name = self._seeds[target.name] = self._named(target.name)
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

    def path(self, targets: Iterable[str], inputs: Sequence[str]) -> list[OpDesc]:
        """Returns the operators between inputs and targets.

        Args:
            targets: the ends.
            inputs: the beginnings; everything if empty.
        """
        ops = list(self._desc.ops)
        if inputs:
            ops = self._reached(ops, set(inputs))
        needed, found = set(targets), []
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

    # Operators ---------------------------------------------------------------------------------

    def append(self, path: Sequence[OpDesc], targets: Iterable[str]) -> None:
        """Appends the gradient operators of a path."""
        self._available = {self._seeds[one] for one in targets}
        found: list[OpDesc] = []
        for op in reversed(path):
            found.extend(self._of(op))
        found = _added_up(found, self.block.idx)
        for op in found:
            op.attrs[NAME] = BACKWARD
        self._declare(found)
        self.block.ops.extend(found)

    def _of(self, op: OpDesc) -> list[OpDesc]:
        """Returns the gradient operators of one call, those that fill in missing gradients first."""
        heads = {name: one for one in op.output_arg_names if (name := self._head(one)) is not None}
        if not self._available.intersection(heads):
            return []
        _require_no_block(op)
        undeclared = set(op.input_arg_names) - self._visible()
        made = gradient_ops(op, self._head, self._named, self._constants | undeclared)
        missing = [
            name
            for one in made
            for name in one.input_arg_names
            if name in heads and name not in self._available
        ]
        # A gradient operator reads a gradient that is missing as zero.
        zeros = [] if forward_type(op.type) else [_zeros(heads[name], name) for name in missing]
        found = [*zeros, *made] if made else []
        self._available.update(name for one in found for name in one.output_arg_names)
        return found

    def _visible(self) -> set[str]:
        """Returns the variables that the block sees."""
        block, found = self._desc, set(self._desc.vars)
        while block.parent_idx >= 0:
            block = self.block.program.desc.blocks[block.parent_idx]
            found.update(block.vars)
        return found

    def _declare(self, ops: Iterable[OpDesc]) -> None:
        """Declares the outputs: a gradient has the type of its variable."""
        for op in ops:
            sparse = self._is_sparse(op)
            for name in op.output_arg_names:
                if name == EMPTY:
                    continue
                found = self._desc.vars.get(name)
                if found is None:
                    owner = self._owners.get(name) or self._owners[name.rpartition(_RENAMED)[0]]
                    found = self._desc.vars[name] = _like(self.block.find_var(owner).desc, name)
                found.kind = VarKind.SELECTED_ROWS if sparse else VarKind.LOD_TENSOR

    def _is_sparse(self, op: OpDesc) -> bool:
        """Returns whether the results are rows of a table."""
        if op.type in ("lookup_table_grad", "lookup_table_v2_grad"):
            return bool(op.attrs.get("is_sparse"))
        if op.type not in ("sum", "scale"):
            return False
        kinds = [self.block.find_var(name).type for name in op.input("X")]
        return all(one is VarKind.SELECTED_ROWS for one in kinds)


def _constants(program: Program, block: BlockDesc) -> set[str]:
    """Returns the variables that gradients do not flow to."""
    found = {one.name for one in block.vars.values() if one.stop_gradient or not _is_floating(one)}
    return found | {name for name, one in program.training.items() if not one.trainable}


def _like(variable: VarDesc, name: str) -> VarDesc:
    return VarDesc(name, VarKind.LOD_TENSOR, variable.dtype, variable.shape, variable.lod_level)


def _zeros(variable: str, name: str) -> OpDesc:
    return OpDesc("fill_zeros_like", {"X": [variable]}, {"Out": [name]})


def _require_no_block(op: OpDesc) -> None:
    if op.blocks() or any(one in op.attrs for one in _CONTROL):
        raise PaddleError(
            f"{op.type}: append_backward must not meet control flow; differentiate the program as a "
            "whole, so.grad(program.to_symbol(...)), got a loss that depends on it"
        )


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
            if name == EMPTY or name in op.input_arg_names:
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
