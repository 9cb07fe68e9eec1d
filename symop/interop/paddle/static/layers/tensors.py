"""Variables that are fed, constants, casts and copies."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from symop.interop.paddle import unique_name
from symop.interop.paddle.guards import default_main_program
from symop.interop.paddle.programs import Variable, code_of, dtype_of
from symop.interop.paddle.static.helper import Layer


def data(
    name: str,
    shape: Sequence[int | None],
    dtype: Any = "float32",
    lod_level: int = 0,
) -> Variable:
    """Declares a variable that is fed.

    Args:
        name: its name.
        shape: its shape; None or -1 is a length that is known when the variable is fed.
        dtype: the dtype of its entries.
        lod_level: the number of levels of sequences that its rows belong to.
    """
    lengths = [-1 if one is None else one for one in shape]
    return (
        default_main_program()
        .global_block()
        .create_var(name, lengths, dtype, lod_level=lod_level, stop_gradient=True, is_data=True)
    )


def create_tensor(dtype: Any, name: str | None = None, persistable: bool = False) -> Variable:
    """Declares a variable of unknown shape."""
    label = name or unique_name.generate("create_tensor")
    block = default_main_program().current_block()
    return block.create_var(label, (), dtype, persistable=persistable)


def fill_constant(
    shape: Sequence[int] | Variable,
    dtype: Any,
    value: float,
    force_cpu: bool = False,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Returns a variable full of one value, or writes it to ``out``."""
    layer = Layer("fill_constant", name)
    tensors = {"ShapeTensor": shape} if isinstance(shape, Variable) else {}
    lengths = [-1] * shape.shape[0] if isinstance(shape, Variable) else list(shape)
    attrs = {"shape": lengths, "dtype": code_of(dtype), "value": value, "force_cpu": force_cpu}
    if out is None:
        return layer.call("fill_constant", tensors, attrs=attrs, stop_gradient=True)
    layer.block.append_op("fill_constant", tensors, {"Out": out}, attrs)
    out.stop_gradient = True
    return out


def zeros(shape: Sequence[int], dtype: Any, force_cpu: bool = False) -> Variable:
    """Returns zeros."""
    return fill_constant(shape, dtype, 0.0, force_cpu)


def ones(shape: Sequence[int], dtype: Any, force_cpu: bool = False) -> Variable:
    """Returns ones."""
    return fill_constant(shape, dtype, 1.0, force_cpu)


def zeros_like(x: Variable, out: Variable | None = None) -> Variable:
    """Returns zeros in the shape of a variable, or writes them to ``out``."""
    layer = Layer("zeros_like")
    if out is None:
        return layer.call("fill_zeros_like", {"X": x}, stop_gradient=True)
    layer.block.append_op("fill_zeros_like", {"X": x}, {"Out": out})
    return out


def fill_constant_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: Any,
    value: float,
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
) -> Variable:
    """Returns a variable full of one value, one axis of which is as long as one of ``input``."""
    attrs = {
        "shape": list(shape),
        "dtype": code_of(dtype),
        "value": value,
        "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx,
    }
    kind = "fill_constant_batch_size_like"
    return Layer(kind).call(kind, {"Input": input}, attrs=attrs, stop_gradient=True)


def cast(x: Variable, dtype: Any) -> Variable:
    """Returns the values in another dtype."""
    attrs = {"in_dtype": code_of(x.dtype), "out_dtype": code_of(dtype)}
    return Layer("cast").call("cast", {"X": x}, attrs=attrs)


def assign(input: Any, output: Variable | None = None) -> Variable:
    """Copies a variable or an array into a variable.

    Args:
        input: a variable or an array of NumPy.
        output: the variable that is written; a new one by default.
    """
    layer = Layer("assign")
    if isinstance(input, Variable):
        name, inputs, attrs = "assign", {"X": input}, {}
    else:
        name, inputs, attrs = "assign_value", {}, _values(np.asarray(input))
    if output is None:
        return layer.call(name, inputs, attrs=attrs)
    layer.block.append_op(name, inputs, {"Out": output}, attrs)
    return output


def _values(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    whole = np.issubdtype(array.dtype, np.integer)
    kept = array.astype(np.int32 if whole else np.float32)
    return {
        "shape": list(kept.shape),
        "dtype": code_of(kept.dtype),
        "int32_values" if whole else "fp32_values": kept.ravel().tolist(),
    }


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """Adds a number to a variable with one entry, in place by default."""
    layer = Layer("increment")
    if not in_place:
        return layer.call("increment", {"X": x}, attrs={"step": value})
    layer.block.append_op("increment", {"X": x}, {"Out": x}, {"step": value})
    return x


def range(start: float, end: float, step: float, dtype: Any) -> Variable:
    """Returns numbers from ``start`` to ``end``."""
    made = [
        one if isinstance(one, Variable) else fill_constant([1], dtype, one)
        for one in (start, end, step)
    ]
    inputs = dict(zip(("Start", "End", "Step"), made, strict=True))
    found = Layer("range").call("range", inputs, stop_gradient=True)
    found.desc.dtype = dtype_of(dtype)
    return found


def uniform_random(
    shape: Sequence[int], dtype: Any = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0
) -> Variable:
    """Returns random numbers between two bounds."""
    attrs = {"shape": list(shape), "dtype": code_of(dtype), "min": min, "max": max, "seed": seed}
    return Layer("uniform_random").call("uniform_random", {}, attrs=attrs, stop_gradient=True)


def gaussian_random(
    shape: Sequence[int],
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: Any = "float32",
) -> Variable:
    """Returns normal random numbers."""
    attrs = {"shape": list(shape), "dtype": code_of(dtype), "mean": mean, "std": std, "seed": seed}
    return Layer("gaussian_random").call("gaussian_random", {}, attrs=attrs, stop_gradient=True)


def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """Adds up repeated rows."""
    return Layer("merge_selected_rows", name).call("merge_selected_rows", {"X": x})


def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """Returns rows as a dense variable."""
    kind = "get_tensor_from_selected_rows"
    return Layer(kind, name).call(kind, {"X": x})
