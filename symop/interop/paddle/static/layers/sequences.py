"""Layers of ragged sequences."""

from typing import Any

from symop.interop.paddle.programs import Slots, Variable, code_of
from symop.interop.paddle.static.helper import Layer


def sequence_pool(
    input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0
) -> Variable:
    """Reduces each sequence: ``sum``, ``average``, ``sqrt``, ``max``, ``first`` or ``last``."""
    attrs = {"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": pad_value}
    found, indices = Layer("sequence_pool").calls(
        "sequence_pool", {"X": input}, "Out MaxIndex", attrs
    )
    indices.stop_gradient = True
    return found


def sequence_first_step(input: Variable) -> Variable:
    """Returns the first row of each sequence."""
    return sequence_pool(input, "first")


def sequence_last_step(input: Variable) -> Variable:
    """Returns the last row of each sequence."""
    return sequence_pool(input, "last")


def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """Returns probabilities within each sequence; ``use_cudnn`` has no effect."""
    del use_cudnn
    return Layer("sequence_softmax", name).call("sequence_softmax", {"X": input})


def sequence_conv(
    input: Variable,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: Any = None,
    param_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Convolves the rows of each sequence; rows outside of it are zero."""
    del padding
    layer = Layer("sequence_conv", name)
    weight = layer.weight(param_attr, [filter_size * input.shape[1], num_filters], input.dtype)
    attrs = {
        "contextStride": filter_stride,
        "contextStart": -(filter_size // 2) if padding_start is None else padding_start,
        "contextLength": filter_size,
    }
    found = layer.call("sequence_conv", {"X": input, "Filter": weight}, attrs=attrs)
    return layer.activated(layer.biased(found, bias_attr), act)


def sequence_concat(input: list[Variable], name: str | None = None) -> Variable:
    """Joins the sequences of several variables, each with its counterparts."""
    return Layer("sequence_concat", name).call("sequence_concat", {"X": list(input)})


def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """Reverses each sequence."""
    return Layer("sequence_reverse", name).call("sequence_reverse", {"X": x}, "Y")


def sequence_slice(
    input: Variable, offset: Variable, length: Variable, name: str | None = None
) -> Variable:
    """Returns a part of each sequence, by its first row and its number of rows."""
    inputs: Slots = {"X": input, "Offset": offset, "Length": length}
    return Layer("sequence_slice", name).call("sequence_slice", inputs)


def sequence_expand(
    x: Variable, y: Variable, ref_level: int = -1, name: str | None = None
) -> Variable:
    """Repeats sequences by the lengths of those of another variable."""
    attrs = {"ref_level": ref_level}
    return Layer("sequence_expand", name).call("sequence_expand", {"X": x, "Y": y}, attrs=attrs)


def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Repeats each row to the length of a sequence of another variable."""
    return Layer("sequence_expand_as", name).call("sequence_expand_as", {"X": x, "Y": y})


def sequence_pad(
    x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """Returns sequences of equal lengths, and the lengths that they had."""
    attrs = {"padded_length": -1 if maxlen is None else maxlen}
    inputs = {"X": x, "PadValue": pad_value}
    found, lengths = Layer("sequence_pad", name).calls("sequence_pad", inputs, "Out Length", attrs)
    lengths.stop_gradient = True
    return found, lengths


def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Variable:
    """Removes padding."""
    return Layer("sequence_unpad", name).call("sequence_unpad", {"X": x, "Length": length})


def sequence_mask(
    x: Variable, maxlen: int | None = None, dtype: Any = "int64", name: str | None = None
) -> Variable:
    """Returns ones up to each length, and zeros behind."""
    attrs = {"maxlen": -1 if maxlen is None else maxlen, "out_dtype": code_of(dtype)}
    return Layer("sequence_mask", name).call(
        "sequence_mask", {"X": x}, "Y", attrs, stop_gradient=True
    )


def dynamic_lstm(
    input: Variable,
    size: int,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    dtype: Any = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Runs an LSTM over each sequence; ``size`` is four times the number of units."""
    layer = Layer("lstm", name)
    units = size // 4
    weight = layer.weight(param_attr, [units, 4 * units], dtype)
    bias = layer.bias(bias_attr, [1, (7 if use_peepholes else 4) * units], dtype)
    attrs = {
        "use_peepholes": use_peepholes,
        "is_reverse": is_reverse,
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
    }
    inputs = {"Input": input, "Weight": weight, "Bias": bias, "H0": h_0, "C0": c_0}
    outputs = "Hidden Cell BatchGate BatchCellPreAct"
    hidden, cell, *_ = layer.calls("lstm", inputs, outputs, attrs)
    return hidden, cell


def dynamic_gru(
    input: Variable,
    size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    candidate_activation: str = "tanh",
    h_0: Variable | None = None,
    origin_mode: bool = False,
) -> Variable:
    """Runs a GRU over each sequence; ``size`` is the number of units."""
    layer = Layer("gru")
    weight = layer.weight(param_attr, [size, 3 * size], input.dtype)
    bias = layer.bias(bias_attr, [1, 3 * size], input.dtype)
    attrs = {
        "is_reverse": is_reverse,
        "gate_activation": gate_activation,
        "activation": candidate_activation,
        "origin_mode": origin_mode,
    }
    inputs = {"Input": input, "Weight": weight, "Bias": bias, "H0": h_0}
    outputs = "Hidden BatchGate BatchResetHiddenPrev BatchHidden"
    return layer.call("gru", inputs, outputs, attrs)


def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> tuple[Variable, ...]:
    """Returns the best continuations of the sentences of a step, and their scores.

    Args:
        pre_ids: the last word of each sentence.
        pre_scores: the score of each sentence.
        ids: candidates for the next word; all words if None.
        scores: the scores of the candidates.
        beam_size: how many sentences are kept for each source.
        end_id: the word that ends a sentence.
        level: the level of sequences that groups sentences by their source.
        is_accumulated: whether ``scores`` are those of whole sentences; otherwise they are
            probabilities of words.
        name: the name of the layer.
        return_parent_idx: whether the row of the sentence that each continues is returned, too.
    """
    inputs: Slots = {"pre_ids": pre_ids, "pre_scores": pre_scores, "ids": ids, "scores": scores}
    attrs = {
        "level": level,
        "beam_size": beam_size,
        "end_id": end_id,
        "is_accumulated": is_accumulated,
    }
    outputs = "selected_scores selected_ids parent_idx"
    best, words, rows = Layer("beam_search", name).calls("beam_search", inputs, outputs, attrs)
    return (words, best, rows) if return_parent_idx else (words, best)


def beam_search_decode(
    ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Variable, Variable]:
    """Returns whole sentences, and the scores of their words, of what each step kept.

    Args:
        ids: a tensor array of the words of each step.
        scores: a tensor array of their scores.
        beam_size: how many sentences were kept for each source.
        end_id: the word that ends a sentence.
        name: the name of the layer.
    """
    attrs = {"beam_size": beam_size, "end_id": end_id}
    outputs = "SentenceIds SentenceScores"
    layer = Layer("beam_search_decode", name)
    words, best = layer.calls("beam_search_decode", {"Ids": ids, "Scores": scores}, outputs, attrs)
    return words, best
