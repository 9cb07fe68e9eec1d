"""``symop ops``: lists the operators, or explains one."""

import argparse
import fnmatch
import inspect
from collections.abc import Sequence
from typing import Any

import msgspec

import registry
from registry.desc import AttrProto, OpProto, VarProto
from registry.errors import ArgumentError, UnknownOperatorError, nearest
from registry.operator.operator import Operator
from symop.commands.files import as_json

_PACKAGE = "registry.ops."


def run(options: argparse.Namespace) -> None:
    """Print the list, or the page of the operator ``options.name``."""
    if options.name is None or _is_pattern(options.name) or options.family:
        chosen = _chosen(options.name or "*", options.family)
        print(as_json([_record(one) for one in chosen]) if options.json else _list(chosen))
        return
    operator = registry.get(options.name)
    print(as_json(_record(operator)) if options.json else _page(operator))


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def _chosen(pattern: str, family: str | None) -> list[Operator]:
    """Returns the operators of a family whose name, or another one of theirs, fits a pattern."""
    everything = list(registry.operators())
    families = sorted(set(map(family_of, everything)))
    if family is not None and family not in families:
        raise ArgumentError(
            f"ops: the family must be one of {', '.join(families)}, got {family!r}"
            f"{nearest(family, families)}"
        )
    result = [
        one
        for one in everything
        if family in (None, family_of(one))
        and any(fnmatch.fnmatchcase(name, pattern) for name in (one.name, *one.aliases))
    ]
    if not result:
        raise UnknownOperatorError(f"ops: the name of an operator must fit {pattern!r}, none does")
    return result


def family_of(operator: Operator) -> str:
    """Returns the folder of the catalogue that declares an operator, or the module of a user's."""
    module = operator.__module__
    if not module.startswith(_PACKAGE):
        return module
    return module.removeprefix(_PACKAGE).partition(".")[0]


# Text --------------------------------------------------------------------------------------------


def _list(operators: Sequence[Operator]) -> str:
    return "\n".join(f"{one.name:<28} {_summary(one)}".rstrip() for one in operators)


def _summary(operator: Operator) -> str:
    return (operator.__doc__ or "").strip().partition("\n")[0]


def _page(operator: Operator) -> str:
    known, reason = operator.derivative.value, operator.reason
    return (
        f"{operator.signature()}\n\n{inspect.cleandoc(operator.__doc__ or '')}\n"
        f"{_slots(operator.proto)}\nderivative: {known}"
        + (f" ({reason})" if reason != known else "")
    )


def _slots(proto: OpProto) -> str:
    """The comments on inputs, attributes and outputs as text; empty if there are none."""
    everything: list[VarProto | AttrProto] = [*proto.inputs, *proto.attrs, *proto.outputs]
    if not any(one.comment for one in everything):
        return ""
    rows = {
        "inputs": [(one.name + "..." * one.duplicable, one.comment) for one in proto.inputs],
        "attributes": [(_attribute(one), one.comment) for one in proto.attrs],
        "outputs": [(one.name + "..." * one.duplicable, one.comment) for one in proto.outputs],
    }
    width = max(len(text) for each in rows.values() for text, _ in each)
    lines = [""]
    for title, each in rows.items():
        lines += [f"{title}:"] if each else []
        lines += [f"  {text:<{width}}  {comment}".rstrip() for text, comment in each]
    return "\n".join([*lines, ""])


def _attribute(proto: AttrProto) -> str:
    default = "" if proto.required else f" = {proto.default!r}"
    return f"{proto.name}: {proto.type}{default}"


# Records -----------------------------------------------------------------------------------------


def _record(operator: Operator) -> dict[str, Any]:
    proto = msgspec.to_builtins(operator.proto, enc_hook=str)
    return {
        "name": operator.name,
        "aliases": list(operator.aliases),
        "family": family_of(operator),
        "signature": operator.signature(),
        "summary": _summary(operator),
        "doc": inspect.cleandoc(operator.__doc__ or ""),
        "derivative": operator.derivative.name.lower(),
        "reason": operator.reason,
        "inputs": proto.get("inputs", []),
        "attributes": proto.get("attrs", []),
        "outputs": proto.get("outputs", []),
    }
