"""InferVarType: infers the kinds of an operator's outputs and writes them into records."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from registry.desc import BlockDesc, OpDesc, VarDesc
from registry.errors import ArgumentError, KindError, nearest
from registry.naming import EMPTY
from registry.operator.leaf_descs import leaf_named, type_of_leaf
from registry.operator.recorder import Called, arguments_of, attributes_of, outputs_of, slots_of
from registry.types import VarKind

InferVarType = Callable[[OpDesc, BlockDesc], None]
"""Writes the kinds of the outputs of an OpDesc into the block that holds its variables."""


class Inferring(Called, Protocol):
    """The part of an operator's interface that kind inference uses."""

    def resolved(self, inputs: Any, attributes: Any) -> Any:
        """Returns the operator with the number of outputs of a call."""


def infer_kinds(
    operator: Inferring, own: InferVarType | None, op_desc: OpDesc, block: BlockDesc
) -> None:
    """Writes the kinds of the outputs of ``op_desc`` into ``block``, which declares its inputs.

    The operator's ``own`` function receives both unchanged. Without one, the kind rule infers the
    kinds; without either, outputs are dense.

    Raises:
        ArgumentError: the OpDesc does not fit the operator, or ``block`` lacks an input.
        KindError: the operator does not accept the kind of an input.
    """
    slots, outputs = slots_of(operator, op_desc), outputs_of(operator, op_desc)
    read = [name for names in slots.values() for name in names if name != EMPTY]
    kinds = {name: _kind_of(operator.name, name, block) for name in read}
    names = {name: name for name in read}
    attributes = attributes_of(op_desc)
    inputs, values, _ = operator.bind((), {**arguments_of(operator, slots, names), **attributes})
    written = [name for names in outputs.values() for name in names if name != EMPTY]
    for name in written:
        if block.find_var(name) is None:
            block.vars.append(VarDesc(name))
    if own is not None:
        _infer_by(own, operator.name, op_desc, block)
        return
    member = operator.resolved(inputs, values)
    input_kinds = tuple([kinds.get(one) if isinstance(one, str) else None for one in inputs])
    output_kinds = dict(
        zip(member.outputs, member.inference.kinds(input_kinds, values), strict=True)
    )
    for name, kind in _by_name(operator, outputs, output_kinds).items():
        block.var(name).kind = kind.value


def _infer_by(own: InferVarType, owner: str, op_desc: OpDesc, block: BlockDesc) -> None:
    """Calls ``own``, which must set valid kinds."""
    try:
        own(op_desc, block)
        for names in op_desc.outputs.values():
            for var in filter(None, map(block.find_var, names)):
                var.kind = VarKind(var.kind).value
    except (KeyError, ValueError) as error:
        reason = error.args[0] if error.args else error
        name = getattr(own, "__name__", type(own).__name__)
        raise KindError(f"{owner}: {name} must set a VarKind ({reason})") from error


def _by_name(
    operator: Inferring, outputs: Mapping[str, list[str]], kinds: Mapping[str, VarKind]
) -> dict[str, VarKind]:
    """Maps names of variables to kinds; those of a variadic output may be listed together."""
    several = list(kinds.values())[len(operator.outputs) - 1 :]
    result: dict[str, VarKind] = {}
    for key, names in outputs.items():
        each = [kinds[key]] if key in kinds else several
        result.update(pair for pair in zip(names, each, strict=False) if pair[0] != EMPTY)
    return result


def _kind_of(owner: str, name: str, block: BlockDesc) -> VarKind:
    var = block.find_var(name)
    if var is not None:
        return VarKind(var.kind)
    leaf = leaf_named(name, block)
    if leaf is None:
        hint = nearest(name, [one.name for one in block.vars])
        raise ArgumentError(f"{owner}: the block must declare the variable {name!r}{hint}")
    return type_of_leaf(leaf).kind
