"""Paddle's makers of gradient operators: from the record of a call to those of its gradient.

Most operators have a line in a table: what the gradient operator reads, and the inputs whose
gradients it gives. ``Out ^Out -> X`` reads the slot ``Out`` and the gradient of ``Out``, under the
name ``Out@GRAD``, and gives the gradient of ``X`` as ``X@GRAD``. ``DDX=^X@GRAD`` names the slot.
All others read every input, every output and the gradient of every output.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from registry.hooks import define
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import AttrType, OpDesc
from symop.interop.paddle.gradients import forward_type, order_of, suffix_of
from symop.interop.paddle.operators import EMPTY, GRAD, find

Head = Callable[[str], str | None]
"""Returns the name of the gradient of an output; None if it has none."""
Named = Callable[[str], str]
"""Returns the name of the gradient of an input."""

_LINES = {
    "relu tanh sigmoid exp sqrt rsqrt reciprocal softmax": "Out ^Out -> X",
    "leaky_relu relu6 hard_sigmoid": "Out ^Out -> X",
    "square log log1p cos sin tan acos asin atan cosh sinh abs": "X ^Out -> X",
    "erf gelu elu logsigmoid softplus": "X ^Out -> X",
    "softsign swish hard_swish stanh soft_relu brelu thresholded_relu hard_shrink": "X ^Out -> X",
    "softshrink tanh_shrink mean reduce_sum reduce_mean clip pad pad2d": "X ^Out -> X",
    "pow": "X FactorTensor ^Out -> X",
    "reduce_max reduce_min reduce_prod": "X Out ^Out -> X",
    "mul matmul matmul_v2 elementwise_add elementwise_sub elementwise_mul": "X Y ^Out -> X Y",
    "elementwise_max elementwise_min elementwise_pow": "X Y ^Out -> X Y",
    "elementwise_div": "X Y Out ^Out -> X Y",
    "reshape2 squeeze2 unsqueeze2 flatten2 transpose2": "XShape ^Out -> X",
    "lookup_table lookup_table_v2": "W Ids ^Out -> W",
    "conv2d depthwise_conv2d conv3d": "Input Filter Bias ^Output -> Input Filter Bias",
    "conv2d_transpose": "Input Filter ^Output -> Input Filter",
    "pool2d pool3d": "X Out ^Out -> X",
    "batch_norm": "X Scale Bias SavedMean SavedVariance ^Y -> X Scale Bias",
    "layer_norm": "X Mean Variance Scale Bias ^Y -> X Scale Bias",
    "dropout": "Mask ^Out -> X",
    "sigmoid_cross_entropy_with_logits": "X Label ^Out -> X",
    "softmax_with_cross_entropy": "Label Softmax ^Loss -> Logits",
    "cross_entropy": "X Label ^Y -> X",
    "cross_entropy2": "Label MatchX XShape ^Y -> X",
    "cos_sim": "X Y Out XNorm YNorm ^Out -> X Y",
    "sequence_pool": "X MaxIndex ^Out -> X",
    "sequence_conv": "X Filter ^Out -> X Filter",
    "sequence_softmax": "X Out ^Out -> X",
    "sequence_concat": "X ^Out -> X",
    "sequence_expand sequence_expand_as": "X Y ^Out -> X",
    "concat": "X AxisTensor ^Out -> X",
    "slice": "Input StartsTensor EndsTensor StartsTensorList EndsTensorList ^Out -> Input",
    "expand": "X ExpandTimes expand_times_tensor ^Out -> X",
    "gather": "X Index ^Out -> X",
    "top_k": "X Indices ^Out -> X",
    "square_grad elu_grad": "X DOut=Out@GRAD DDX=^X@GRAD -> DX=X DDOut=Out@GRAD",
    "sqrt_grad": "Out DX=X@GRAD DDX=^X@GRAD -> DOut=Out DDOut=Out@GRAD",
    "relu_grad leaky_relu_grad": "Out DDX=^X@GRAD -> DDOut=Out@GRAD",
    "mul_grad": "X Y DOut=Out@GRAD DDX=^X@GRAD DDY=^Y@GRAD -> DX=X DY=Y DDOut=Out@GRAD",
    "elementwise_mul_grad": "X Y DOut=Out@GRAD DDX=^X@GRAD DDY=^Y@GRAD -> X Y DDOut=Out@GRAD",
    "elementwise_div_grad": "Y Out DX=X@GRAD DDX=^X@GRAD DDY=^Y@GRAD -> Y DOut=Out DDOut=Out@GRAD",
    "elementwise_add_grad elementwise_sub_grad": "Y DOut=Out@GRAD DDX=^X@GRAD DDY=^Y@GRAD "
    "-> DDOut=Out@GRAD",
    "conv2d_grad": "Input Filter DOutput=Output@GRAD DDInput=^Input@GRAD DDFilter=^Filter@GRAD "
    "-> DInput=Input DFilter=Filter DDOutput=Output@GRAD",
    "rnn_memory_helper": "X Out ^Out -> X",
    "tensor_array_to_tensor": "X OutIndex ^Out -> X",
    "shrink_rnn_memory": "X ^Out -> X",
    "reorder_lod_tensor_by_rank": "RankTable ^Out -> X",
    "reshape2_grad": "DOut=Out@GRAD DDX=^X@GRAD -> DDOut=Out@GRAD",
}
"""What gradient operators read and give, where it is less than everything."""

_NONE = frozenset(
    {
        *("feed", "fetch", "fill_constant", "fill_constant_batch_size_like", "fill_zeros_like"),
        *("fill_any_like", "uniform_random", "gaussian_random", "truncated_gaussian_random"),
        *("uniform_random_batch_size_like", "gaussian_random_batch_size_like", "assign_value"),
        *("shape", "size", "rank", "range", "linspace", "eye", "one_hot", "one_hot_v2", "accuracy"),
        *(
            "auc",
            "arg_max",
            "arg_min",
            "argsort_ids",
            "equal",
            "not_equal",
            "less_than",
            "less_equal",
        ),
        *(
            "greater_than",
            "greater_equal",
            "logical_and",
            "logical_or",
            "logical_xor",
            "logical_not",
        ),
        *("isfinite", "is_empty", "reduce_all", "reduce_any", "unique", "where_index"),
        *("sequence_mask", "sequence_enumerate", "lod_reset_ids", "lod_array_length"),
        *("lod_rank_table", "max_sequence_len"),
        *("sgd", "momentum", "adam", "adamw", "adamax", "adagrad", "decayed_adagrad", "adadelta"),
        *("rmsprop", "ftrl", "lamb", "lars_momentum", "dgc_momentum", "top_k_v2_ids", "sign"),
    }
)
"""Operators without a gradient."""


class Maker(NamedTuple):
    """What a gradient operator reads and gives.

    Attributes:
        reads: its input slots, each with a slot of the call, ``^`` before it if its gradient.
        gives: its output slots, each with the input slot of the call whose gradient it is.
    """

    reads: tuple[tuple[str, str], ...]
    gives: tuple[tuple[str, str], ...]


def _parsed(line: str) -> Maker:
    reads, gives = (part.split() for part in line.split("->"))
    return Maker(
        tuple(_pair(one, one[1:] + GRAD if one[0] == "^" else one) for one in reads),
        tuple(_pair(one, one + GRAD) for one in gives),
    )


def _pair(token: str, slot: str) -> tuple[str, str]:
    name, equals, source = token.partition("=")
    return (name, source) if equals else (slot, token)


_MAKERS = {name: _parsed(line) for names, line in _LINES.items() for name in names.split()}


def has_gradient(name: str) -> bool:
    """Returns whether an operator has a gradient operator."""
    if name in _NONE:
        return False
    known = name in _MAKERS or name in _WRITTEN or find(name) is not None
    return known or bool(forward_type(name))


def gradient_type(name: str) -> str:
    """Returns the type of an operator's gradient: that of ``cross_entropy2`` is its own."""
    return "cross_entropy_grad2" if name == "cross_entropy2" else f"{name}_grad"


def gradient_ops(
    op: OpDesc, head: Head, named: Named, no_gradient: Collection[str]
) -> list[OpDesc]:
    """Returns the gradient operators of a call.

    Args:
        op: the call.
        head: names the gradients of outputs.
        named: names the gradients of inputs.
        no_gradient: variables whose gradients are not wanted.

    Raises:
        PaddleError: the call runs a block.
    """
    if not has_gradient(op.type):
        return []
    if op.blocks():
        raise PaddleError(
            f"{op.type}: its gradient operator must run a block of its own, which append_backward "
            "makes, got a call alone"
        )
    written = _WRITTEN.get(op.type)
    found = written(op, head, named) if written else [_made(op, head, named, no_gradient)]
    barred = {named(name) for name in op.input_arg_names if name in no_gradient}
    for one in found:
        _without(one, barred)
    return [one for one in found if any(name != EMPTY for name in one.output_arg_names)]


def gradient_reads(op: OpDesc) -> set[str]:
    """Returns the variables of a call that its gradient operators read.

    The gradient of a call that runs a block reads what the block itself keeps.
    """
    if op.blocks() or is_counter(op) or not has_gradient(op.type):
        return set()
    known = {*op.input_arg_names, *op.output_arg_names}
    made = gradient_ops(op, lambda name: name + GRAD, lambda name: name + GRAD, ())
    return {name for one in made for name in one.input_arg_names if name in known}


def _made(op: OpDesc, head: Head, named: Named, no_gradient: Collection[str]) -> OpDesc:
    maker = _MAKERS.get(op.type) or _default(op)
    if op.type == "sequence_pool" and op.attrs.get("pooltype") != "MAX":
        maker = Maker(tuple(one for one in maker.reads if one[0] != "MaxIndex"), maker.gives)
    inputs = {slot: _source(op, source, head) for slot, source in maker.reads}
    outputs = {
        slot: [EMPTY if one in no_gradient else named(one) for one in op.inputs[source]]
        for slot, source in maker.gives
        if op.inputs.get(source)
    }
    filled = {slot: names for slot, names in inputs.items() if names}
    return _record(gradient_type(op.type), filled, outputs, op)


def _source(op: OpDesc, source: str, head: Head) -> list[str]:
    if source[0] == "^":
        return [name for one in op.output(source[1:]) if (name := head(one)) is not None]
    return list(op.inputs.get(source) or op.outputs.get(source) or ())


def _default(op: OpDesc) -> Maker:
    """Returns the maker of an operator without a line: it reads everything."""
    if forward_type(op.type) and find(op.type) is None:
        return _default_of_gradient(op)
    definition = find(op.type)
    given = [slot for slot in op.inputs if definition is None or slot in definition.differentiable]
    values = [(slot, slot) for slot in (*op.inputs, *op.outputs)]
    heads = [(slot + GRAD, f"^{slot}") for slot in op.outputs]
    return Maker((*values, *heads), tuple((slot + GRAD, slot) for slot in given))


def _default_of_gradient(op: OpDesc) -> Maker:
    """Returns the maker of a gradient operator, with the names that Paddle gives to its slots.

    ``DOut`` stands for ``Out@GRAD``, ``DDX`` for the gradient of ``X@GRAD``. Paddle has no names
    for higher orders; ``DDX@GRAD3`` is the gradient by ``DDX`` of an operator of third order.
    """
    if order_of(op.type) > 1:
        return _default_of_higher(op)
    values = [(_short(slot), slot) for slot in op.inputs]
    heads = [(_double(slot), f"^{slot}") for slot in op.outputs]
    given = [(_double(slot) if slot.endswith(GRAD) else f"D{slot}", slot) for slot in op.inputs]
    return Maker((*values, *heads), tuple(given))


def _default_of_higher(op: OpDesc) -> Maker:
    suffix = suffix_of(order_of(op.type) + 1)
    values = [(slot, slot) for slot in op.inputs]
    heads = [(slot + suffix, f"^{slot}") for slot in op.outputs]
    return Maker((*values, *heads), tuple((slot + suffix, slot) for slot in op.inputs))


def complete(op: OpDesc, earlier: Sequence[OpDesc], order: int) -> None:
    """Adds inputs of the call that is differentiated to a gradient operator that lacks them.

    Paddle's gradient operators leave out what follows from other inputs: ``sqrt_grad`` reads the
    output alone. Their own gradients must have everything that they depend on.

    Args:
        op: a gradient operator.
        earlier: the calls before it.
        order: the order of the gradient that is made of it.
    """
    forward = forward_type(op.type) if find(op.type) is None else ""
    if not forward or (order_of(op.type) == 1 and order < 3 and op.type in (_MAKERS | _WRITTEN)):
        return
    later: set[str] = set()
    for one in reversed(earlier):
        if one.type == forward and _belongs(op, one):
            for slot, names in one.inputs.items():
                if not later.intersection(names):
                    op.inputs.setdefault(_slot_in(op, slot), list(names))
            return
        later.update(one.output_arg_names)


def _slot_in(op: OpDesc, slot: str) -> str:
    """Returns the slot of a gradient operator for an input slot of what it differentiates."""
    return _short(slot) if order_of(op.type) == 2 else slot


def _belongs(op: OpDesc, forward: OpDesc) -> bool:
    """Returns whether a gradient operator has the variables of a call in the slots of both."""
    slots = {**forward.outputs, **forward.inputs}
    return all(op.inputs.get(_slot_in(op, slot), names) == names for slot, names in slots.items())


def _short(slot: str) -> str:
    return "D" + slot.removesuffix(GRAD) if slot.endswith(GRAD) else slot


def _double(slot: str) -> str:
    return "DD" + slot.removesuffix(GRAD)


def _without(op: OpDesc, names: Collection[str]) -> None:
    """Leaves gradients out; a place among several stays, under the name that nothing reads."""
    for slot, found in op.outputs.items():
        kept = [EMPTY if one in names else one for one in found]
        op.outputs[slot] = [] if kept == [EMPTY] else kept


def _record(
    name: str, inputs: dict[str, list[str]], outputs: dict[str, list[str]], op: OpDesc
) -> OpDesc:
    attrs = {key: value for key, value in op.attrs.items() if key != "op_role_var"}
    kinds = {key: kind for key, kind in op.attr_types.items() if key in attrs}
    return OpDesc(name, dict(sorted(inputs.items())), dict(sorted(outputs.items())), attrs, kinds)


# Gradients that are calls of other operators -----------------------------------------------------


def _scale(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    inputs = {slot: list(names) for slot, names in op.inputs.items() if slot != "X"}
    return _through(op, "scale", head, named, inputs, bias=0.0)


def _cast(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    attrs = {"in_dtype": op.attrs["out_dtype"], "out_dtype": op.attrs["in_dtype"]}
    return _through(op, "cast", head, named, {}, **attrs)


def _assign(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    return _through(op, "assign", head, named, {})


def _through(
    op: OpDesc,
    name: str,
    head: Head,
    named: Named,
    inputs: dict[str, list[str]],
    **attrs: object,
) -> list[OpDesc]:
    """Returns a call that maps the gradient of ``Out`` to that of ``X``."""
    given = head(op.output("Out")[0])
    if given is None:
        return []
    found = _record(name, {**inputs, "X": [given]}, {"Out": [named(op.input("X")[0])]}, op)
    found.attrs.update(attrs)
    return [found]


def _sum(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    given = head(op.output("Out")[0])
    if given is None:
        return []
    attrs, kinds = {"scale": 1.0}, {"scale": AttrType.FLOAT}
    return [
        OpDesc("scale", {"X": [given]}, {"Out": [named(one)]}, dict(attrs), dict(kinds))
        for one in op.input("X")
    ]


def is_counter(op: OpDesc) -> bool:
    """Returns whether a call adds to a variable in place."""
    return op.type == "increment" and op.input("X") == op.output("Out")


def _increment(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    """Returns a call that counts back; the gradient of a counter passes under its name."""
    if not is_counter(op):
        return _renamed(op, "assign", ("X", "Out"), head, named)
    found = _record("increment", {"X": [*op.output("Out")]}, {"Out": [*op.input("X")]}, op)
    found.attrs["step"] = -float(op.attrs.get("step", 1.0))
    return [found]


def _print(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    found = _renamed(op, "print", ("In", "Out"), head, named)
    for one in found:
        one.attrs.update(op.attrs, is_forward=False)
    return found


def _select_input(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    return _renamed(op, "select_output", ("X", "Out"), head, named, "Mask")


def _select_output(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    return _renamed(op, "select_input", ("X", "Out"), head, named, "Mask")


def _write_to_array(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    found = _renamed(op, "read_from_array", ("X", "Out"), head, named, "I")
    for one in found:
        one.inputs["X_W"] = list(op.input("X"))
    return found


def _read_from_array(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    return _renamed(op, "write_to_array", ("X", "Out"), head, named, "I")


def _lod_tensor_to_array(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    return _renamed(op, "array_to_lod_tensor", ("X", "Out"), head, named, "RankTable")


def _array_to_lod_tensor(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    return _renamed(op, "lod_tensor_to_array", ("X", "Out"), head, named, "RankTable")


_PARTS = (("InTrue", "OutTrue"), ("InFalse", "OutFalse"))
"""Slots of rows where a condition holds and of the others, of merging and of splitting."""


def _split_lod_tensor(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    heads = {slot: head(op.output(given)[0]) for slot, given in _PARTS}
    inputs = {slot: [one] for slot, one in heads.items() if one is not None}
    inputs |= {slot: list(op.input(slot)) for slot in ("X", "Mask")}
    outputs = {"Out": [named(op.input("X")[0])]}
    return [_record("merge_lod_tensor", inputs, outputs, op)] if len(inputs) == 4 else []


def _merge_lod_tensor(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    given = head(op.output("Out")[0])
    outputs = {slot: [named(op.input(whole)[0])] for whole, slot in _PARTS}
    inputs = {"X": [given or ""], "Mask": list(op.input("Mask"))}
    return [_record("split_lod_tensor", inputs, outputs, op)] if given else []


def _renamed(
    op: OpDesc, name: str, slots: tuple[str, str], head: Head, named: Named, *kept: str
) -> list[OpDesc]:
    """Returns a call of another operator without attributes, from gradients to gradients.

    Args:
        op: the call that is differentiated.
        name: the other operator.
        slots: the input and the output slot of both.
        head: names the gradients of outputs.
        named: names the gradients of inputs.
        *kept: input slots that both have.
    """
    source, target = slots
    heads = [head(one) for one in op.output(target)]
    if not heads or any(one is None for one in heads):
        return []
    inputs = {slot: list(op.input(slot)) for slot in kept}
    inputs[source] = [one for one in heads if one]
    return [OpDesc(name, inputs, {target: [named(one) for one in op.input(source)]})]


def _split(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    inputs = {slot: list(names) for slot, names in op.inputs.items() if slot == "AxisTensor"}
    heads = [name for one in op.output("Out") if (name := head(one)) is not None]
    found = _record("concat", {**inputs, "X": heads}, {"Out": [named(op.input("X")[0])]}, op)
    # The lengths of the parts are none of the attributes of concat.
    for key in ("num", "sections"):
        found.attrs.pop(key, None)
        found.attr_types.pop(key, None)
    return [found]


def _sequence_reverse(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    given = head(op.output("Y")[0])
    outputs = {"Y": [named(op.input("X")[0])]}
    return [] if given is None else [_record("sequence_reverse", {"X": [given]}, outputs, op)]


def _again(op: OpDesc, head: Head, named: Named) -> list[OpDesc]:
    """Returns a linear operator itself: it maps the gradient of its gradient's result."""
    name = forward_type(op.type)
    slot = "Input" if "Input@GRAD" in op.outputs else "X"
    heads = [head(one) for one in op.output(slot + GRAD)]
    if any(one is None for one in heads):
        return []
    inputs = {key: list(one) for key, one in op.inputs.items() if key in _OF_LENGTHS}
    outputs = {"Out": [named(one) for one in op.input("Out" + GRAD)]}
    return [_record(name, {**inputs, slot: [one for one in heads if one]}, outputs, op)]


_OF_LENGTHS = frozenset(
    {
        *("ExpandTimes", "expand_times_tensor", "StartsTensor", "EndsTensor", "AxisTensor"),
        *("StartsTensorList", "EndsTensorList"),
    }
)
"""Slots of attributes that are values."""


_WRITTEN: dict[str, Callable[[OpDesc, Head, Named], list[OpDesc]]] = {
    "scale": _scale,
    "cast": _cast,
    "assign": _assign,
    "sum": _sum,
    "split": _split,
    "sequence_reverse": _sequence_reverse,
    "increment": _increment,
    "print": _print,
    "select_input": _select_input,
    "select_output": _select_output,
    "write_to_array": _write_to_array,
    "read_from_array": _read_from_array,
    "lod_tensor_to_array": _lod_tensor_to_array,
    "array_to_lod_tensor": _array_to_lod_tensor,
    "split_lod_tensor": _split_lod_tensor,
    "merge_lod_tensor": _merge_lod_tensor,
    "reduce_sum_grad": _again,
    "reduce_mean_grad": _again,
    "expand_grad": _again,
    "slice_grad": _again,
    "concat_grad": _again,
}


def _of_call(op: OpDesc, no_grad_set: Iterable[str] = ()) -> list[OpDesc]:
    """Returns the gradient operators of a call, under Paddle's names.

    Args:
        op: the call.
        no_grad_set: variables whose gradients are not wanted.
    """

    def named(name: str) -> str:
        return name + GRAD

    return gradient_ops(op, named, named, frozenset(no_grad_set))


define(OpDesc, gradient_ops=_of_call)
