"""Programs of inference: what some variables depend on, with operators that feed and fetch."""

from collections.abc import Sequence

from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import AttrType, BlockDesc, OpDesc, VarDesc, VarKind
from symop.interop.paddle.programs import Program


def pruned(program: Program, feeds: Sequence[str], targets: Sequence[str]) -> Program:
    """Returns a copy for inference that computes some variables from others alone.

    Args:
        program: the program.
        feeds: names of variables that are fed.
        targets: names of variables that are fetched.

    Raises:
        PaddleError: a target depends on a variable that is neither fed nor kept.
    """
    found = program.clone(for_test=True)
    block = found.desc.blocks[0]
    block.ops = _needed(block, feeds, targets)
    _keep(found, {0} | {one.idx for one in _reached(found, block)})
    used = {name for one in _reached(found, block) for name in _names(one)}
    for one in found.desc.blocks:
        one.vars = {name: var for name, var in one.vars.items() if name in used or name in feeds}
    _require_fed(found, feeds)
    return found


def _needed(block: BlockDesc, feeds: Sequence[str], targets: Sequence[str]) -> list[OpDesc]:
    wanted, found = set(targets), []
    for op in reversed(block.ops):
        outputs = set(op.output_arg_names) - set(feeds)
        if wanted & outputs and op.type not in ("feed", "fetch"):
            found.append(op)
            wanted.update(op.input_arg_names)
    return found[::-1]


def _reached(program: Program, block: BlockDesc) -> list[BlockDesc]:
    """Returns a block and those that its operators run."""
    inner = [program.desc.blocks[i] for op in block.ops for i in op.blocks()]
    return [block, *(each for one in inner for each in _reached(program, one))]


def _keep(program: Program, indices: set[int]) -> None:
    """Leaves other blocks out, and numbers those that stay anew."""
    numbers = {old: new for new, old in enumerate(sorted(indices))}
    program.desc.blocks = [program.desc.blocks[old] for old in numbers]
    for new, block in enumerate(program.desc.blocks):
        block.idx, block.parent_idx = new, numbers.get(block.parent_idx, -1)
        block.forward_block_idx = numbers.get(block.forward_block_idx, -1)
        for op in block.ops:
            for name, kind in op.attr_types.items():
                if kind is AttrType.BLOCK:
                    op.attrs[name] = numbers[op.attrs[name]]
                elif kind is AttrType.BLOCKS:
                    op.attrs[name] = [numbers[one] for one in op.attrs[name]]


def _names(block: BlockDesc) -> set[str]:
    return {name for op in block.ops for name in (*op.input_arg_names, *op.output_arg_names)}


def _require_fed(program: Program, feeds: Sequence[str]) -> None:
    block = program.desc.blocks[0]
    known = {*feeds, *(one.name for one in block.vars.values() if one.persistable)}
    for op in block.ops:
        lacking = [one for one in op.input_arg_names if one in block.vars and one not in known]
        if lacking:
            raise PaddleError(
                f"save_inference_model: the targets must depend on what is fed, got {lacking[0]!r}"
            )
        known.update(op.output_arg_names)


def with_feeds(program: Program, feeds: Sequence[str], targets: Sequence[str]) -> Program:
    """Returns a program with the operators ``feed`` and ``fetch``, as files of inference have."""
    block = program.desc.blocks[0]
    block.vars["feed"] = VarDesc("feed", VarKind.FEED_MINIBATCH, persistable=True)
    block.vars["fetch"] = VarDesc("fetch", VarKind.FETCH_LIST, persistable=True)
    before = [_column("feed", "feed", name, i) for i, name in enumerate(feeds)]
    after = [_column("fetch", name, "fetch", i) for i, name in enumerate(targets)]
    block.ops = [*before, *block.ops, *after]
    return program


def _column(name: str, source: str, target: str, column: int) -> OpDesc:
    kinds = {"col": AttrType.INT}
    return OpDesc(name, {"X": [source]}, {"Out": [target]}, {"col": column}, kinds)


def feeds_of(program: Program) -> list[str]:
    """Returns the names of the variables that a program of inference is fed."""
    return [op.output("Out")[0] for op in _columns(program, "feed")]


def targets_of(program: Program) -> list[str]:
    """Returns the names of the variables that a program of inference computes."""
    return [op.input("X")[0] for op in _columns(program, "fetch")]


def _columns(program: Program, name: str) -> list[OpDesc]:
    found = [op for op in program.desc.blocks[0].ops if op.type == name]
    return sorted(found, key=lambda op: op.attrs.get("col", 0))
