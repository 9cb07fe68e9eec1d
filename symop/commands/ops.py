"""``symop ops``: lists the operators, or explains one."""

import argparse
import inspect

import registry
from registry.desc import AttrProto, OpProto, VarProto


def run(options: argparse.Namespace) -> None:
    """Print the list, or the page of the operator ``options.name``."""
    if options.name is None:
        for operator in registry.operators():
            said = (operator.__doc__ or "").strip().partition("\n")[0]
            print(f"{operator.name:<28} {said}".rstrip())
        return
    operator = registry.get(options.name)
    known, reason = operator.derivative.value, operator.reason
    print(f"{operator.signature()}\n\n{inspect.cleandoc(operator.__doc__ or '')}")
    print(_slots(operator.proto), end="")
    print(f"\nderivative: {known}" + (f" ({reason})" if reason != known else ""))


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
