"""JAX's primitives that arrange entries, accumulate along an axis, or slide a window.

Each is translated where an operator has the same kernel for its parameters: the operator's gradient
maker then makes derivatives of every order, and the graph prints what is computed.
"""

from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
from jax.extend.core import JaxprEqn

from registry.ops.conv.windows import WeightLayout
from registry.table import get
from symop.graph.nodes import Node
from symop.jaxprs.primitives import otherwise
from symop.jaxprs.reading import (
    Reader,
    Translation,
    Values,
    avals_of,
    emit,
    is_key,
    translates,
    type_of_aval,
)

_PRECISE = (np.dtype(np.float32), np.dtype(np.float64))
"""The dtypes in which the operators below compute as the primitives do; others they widen."""
_TRANSFORMS = {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}
_MOST_COEFFICIENTS = 32
_Alike = Callable[[JaxprEqn, Values], Sequence[Node] | None]
"""Returns the outputs of an equation, or None if no operator has the same kernel."""


def _translates(*primitives: str) -> Callable[[_Alike], Translation]:
    """Declares an exact translation of primitives, besides ``lax_primitive``."""

    def declare(translation: _Alike) -> Translation:
        @translates(*primitives)
        def translate(reader: Reader, equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
            has_keys = any(map(is_key, avals_of(equation.invars)))
            results = None if has_keys else translation(equation, inputs)
            return otherwise(reader, equation, inputs) if results is None else results

        return translate

    return declare


# Arrangements ------------------------------------------------------------------------------------


@_translates("stack")
def _stack(equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    return [get("stack")(*inputs, axis=equation.params["axis"])]


@_translates("unstack")
def _unstack(equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    return emit("unstack", *inputs, axis=equation.params["axis"])


@_translates("tile")
def _tile(equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    return [get("tile")(*inputs, repetitions=tuple(map(int, equation.params["reps"])))]


@_translates("split")
def _split(equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    ends = np.cumsum(equation.params["sizes"])
    sections = tuple(int(one) for one in ends[:-1])
    return emit("split", *inputs, sections=sections, axis=equation.params["axis"])


@_translates("pad")
def _pad(equation: JaxprEqn, inputs: Values) -> Sequence[Node] | None:
    x, filling = inputs
    widths = equation.params["padding_config"]
    pairs = _pairs([ends for *ends, _ in widths])
    if filling.constant is None or _is_negative(pairs) or any(inner for *_, inner in widths):
        return None
    return [get("pad")(x, pad_width=pairs, constant_value=filling.constant)]


@_translates("dynamic_slice")
def _dynamic_slice(equation: JaxprEqn, inputs: Values) -> Sequence[Node] | None:
    x, *starts = inputs
    if not starts or len({one.type.dtype for one in starts}) > 1:
        return None
    sizes = tuple(map(int, equation.params["slice_sizes"]))
    return [get("dynamic_slice")(x, get("stack")(*starts), sizes=sizes)]


@_translates("dynamic_update_slice")
def _dynamic_update_slice(equation: JaxprEqn, inputs: Values) -> Sequence[Node] | None:
    x, update, *starts = inputs
    if not starts or len({one.type.dtype for one in starts}) > 1:
        return None
    return [get("dynamic_update_slice")(x, update, get("stack")(*starts))]


# Along an axis -----------------------------------------------------------------------------------


@_translates("cumsum")
def _cumulate(equation: JaxprEqn, inputs: Values) -> Sequence[Node] | None:
    if inputs[0].type.dtype not in _PRECISE:
        return None
    return [
        get("cumsum")(*inputs, axis=equation.params["axis"], reverse=equation.params["reverse"])
    ]


@_translates("fft")
def _transform(equation: JaxprEqn, inputs: Values) -> Sequence[Node]:
    lengths = tuple(map(int, equation.params["fft_lengths"]))
    axes = tuple(range(-len(lengths), 0))
    transform = get(_TRANSFORMS[equation.params["fft_type"].name])
    return [transform(*inputs, s=lengths, axes=axes)]


# Entry by entry ----------------------------------------------------------------------------------


@_translates("polynomial")
def _polynomial(equation: JaxprEqn, inputs: Values) -> Sequence[Node] | None:
    """Evaluates a polynomial by Horner's rule, as JAX does."""
    x, *coefficients = inputs
    shape = type_of_aval(equation.outvars[0].aval).shape
    if len(coefficients) > _MOST_COEFFICIENTS or x.type.shape != shape:
        return None
    result = coefficients[-1]
    for one in coefficients[-2::-1]:
        result = get("add")(get("multiply")(result, x), one)
    return [result if result.type.shape == shape else get("broadcast_to")(result, shape=shape)]


# Windows -----------------------------------------------------------------------------------------


@_translates("conv_general_dilated")
def _convolve(equation: JaxprEqn, inputs: Values) -> Sequence[Node] | None:
    params = equation.params
    data, weight = inputs
    numbers, dtype = params["dimension_numbers"], data.type.dtype
    layout = _layout(numbers.lhs_spec)
    plain = params["batch_group_count"] == 1 and set(params["lhs_dilation"]) <= {1}
    plain = plain and params["precision"] is None and params.get("out_sharding") is None
    same = params["preferred_element_type"] in (None, dtype) and weight.type.dtype == dtype
    if not plain or not same or dtype not in _PRECISE or layout is None:
        return None
    if numbers.out_spec != numbers.lhs_spec or _is_negative(params["padding"]):
        return None
    shape = tuple(weight.type.shape[i] for i in numbers.rhs_spec)
    weight_layout = _weight_layout(numbers.rhs_spec)
    if weight_layout is None:
        weight = get("permute_dims")(weight, axes=tuple(numbers.rhs_spec))
    convolved = get("convolution")(
        data,
        weight,
        channels=shape[0],
        kernel=shape[2:],
        stride=tuple(params["window_strides"]),
        padding=_pairs(params["padding"]),
        dilation=tuple(params["rhs_dilation"]),
        groups=params["feature_group_count"],
        layout=layout,
        weight_layout=weight_layout,
        use_bias=False,
    )
    return [convolved]


@_translates("reduce_window_max")
def _pool(equation: JaxprEqn, inputs: Values) -> Sequence[Node] | None:
    (x,) = inputs
    params = equation.params
    lengths, strides = params["window_dimensions"], params["window_strides"]
    dilated = {*params["base_dilation"], *params["window_dilation"]} != {1}
    if (
        dilated
        or _is_negative(params["padding"])
        or x.type.dtype not in _PRECISE
        or not 3 <= len(lengths) <= 5
    ):
        return None
    space = "DHW"[5 - len(lengths) :]
    for layout in (f"N{space}C", f"NC{space}"):
        along = [i for i, letter in enumerate(layout) if letter in space]
        rest = [i for i in range(len(lengths)) if i not in along]
        pads = _pairs([params["padding"][i] for i in along])
        alone = all((lengths[i], strides[i], *params["padding"][i]) == (1, 1, 0, 0) for i in rest)
        if alone and all(max(pads[k]) < lengths[i] for k, i in enumerate(along)):
            kernel, stride = (tuple(int(one[i]) for i in along) for one in (lengths, strides))
            how = {"kernel": kernel, "stride": stride, "padding": pads, "layout": layout}
            return [get("max_pooling")(x, **how, drops_infinite=True)]
    return None


def _layout(places: Sequence[int]) -> str | None:
    """Returns the name of a layout, from the axes of the batch, the channels and the space."""
    rank = len(places)
    if not 3 <= rank <= 5 or places[0] != 0 or tuple(places[2:]) != tuple(sorted(places[2:])):
        return None
    space = "DHW"[5 - rank :]
    return {1: f"NC{space}", rank - 1: f"N{space}C"}.get(places[1])


def _weight_layout(places: Sequence[int]) -> WeightLayout | None:
    """Returns the name of a weight's layout, from the axes of both channels and the space."""
    letters = dict(zip(places, f"OI{'DHW'[5 - len(places) :]}", strict=True))
    name = "".join(letters[axis] for axis in range(len(places)))
    return next((one for one in get_args(WeightLayout) if one == name), None)


def _pairs(padding: Any) -> tuple[tuple[int, int], ...]:
    return tuple((int(before), int(after)) for before, after in padding)


def _is_negative(padding: Any) -> bool:
    return any(one < 0 for pair in padding for one in pair)
