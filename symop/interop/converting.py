"""Conversion of saved models of MXNet and Paddle into symop's files, verified by running both."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import topological
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.model import load_checkpoint
from symop.interop.mxnet.visualization import print_summary
from symop.interop.paddle import Executor, PaddleError, Program, Scope, scope_guard
from symop.interop.paddle import load_inference_model as load_paddle
from symop.interop.paddle.files import persistables

GRAPH, PARAMETERS = "symbol.json", "parameters.safetensors"


class Converted(NamedTuple):
    """The result of a conversion.

    Attributes:
        graph: the file of the graph, for ``so.load``.
        parameters: the file of arguments and auxiliary states, for ``so.load_parameters``.
        difference: the largest difference between the outputs of both models, on random inputs.
    """

    graph: Path
    parameters: Path
    difference: float


def convert_mxnet(
    prefix: str | Path,
    epoch: int,
    output: str | Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Converted:
    """Converts the model ``prefix-symbol.json``, ``prefix-0000.params`` to JSON and safetensors.

    Prints a table of its layers, loads the written files, and compares the outputs of both models
    on random inputs.

    Args:
        prefix: path and name of the model, as in MXNet.
        epoch: the number in the name of the parameter file.
        output: a folder, created if needed.
        shapes: shapes of the inputs, since shapes of symop graphs are known.

    Raises:
        MXNetError: a shape or a parameter is missing, or an operator is not mapped.
        OSError: a file cannot be read or written.
    """
    symbol, arguments, states = load_checkpoint(str(prefix), epoch)
    held = {name: one.value for name, one in {**arguments, **states}.items()}
    names = symbol.list_inputs()
    arrays = {name: one for name, one in held.items() if name in names}
    _require_parameters(symbol, arrays)
    types = _types(symbol, arrays, shapes or {})
    inputs = [name for name in names if name not in arrays]
    print_summary(symbol, shape={name: shape for name, (shape, _) in types.items()})
    print(f"inputs: {', '.join(inputs) or 'none'}")
    if len(arrays) < len(held):
        print(f"left out, for the graph has no such variables: {', '.join(held.keys() - arrays)}")
    graph = symbol.to_graph(
        {name: dtype for name, (_, dtype) in types.items()},
        **{name: shape for name, (shape, _) in types.items()},
    )
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    graph.save(folder / GRAPH)
    so.save_parameters(folder / PARAMETERS, arrays)
    given = {name: _drawn(i, *types[name]) for i, name in enumerate(inputs)}
    key, order = jax.random.key(0), [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    before = symbol.to_jax()(*[{**arrays, **given}[name] for name in order], random_key=key)
    kept = {**so.load_parameters(folder / PARAMETERS), **given}
    after = so.load(folder / GRAPH).to_jax()(*[kept[name] for name in order], key=key)
    return Converted(folder / GRAPH, folder / PARAMETERS, _largest_difference(before, after))


def convert_paddle(
    folder: str | Path,
    output: str | Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    model: str | None = None,
    parameters: str | None = None,
) -> Converted:
    """Converts an inference model of Paddle to JSON and safetensors.

    Loads the written files, and compares the outputs of both models on random inputs.

    Args:
        folder: the folder of ``__model__``, or the beginning of the names of ``.pdmodel`` and
            ``.pdiparams``.
        output: a folder, created if needed.
        shapes: shapes of the inputs whose lengths the file leaves open.
        model: the name of the program's file, if it is another one.
        parameters: the name of the one file of parameters; None for one file each.

    Raises:
        PaddleError: a shape is missing, an input is ragged, or an operator is not defined.
        OSError: a file cannot be read or written.
    """
    with scope_guard(Scope()) as scope:
        program, feeds, fetches = load_paddle(folder, None, model, parameters)
        given = {
            name: _drawn(i, *_type_of_feed(program, name, shapes or {}))
            for i, name in enumerate(feeds)
        }
        arrays = {name: jnp.asarray(scope[name]) for name in persistables(program.desc)}
        print(f"inputs: {', '.join(feeds) or 'none'}")
        before = Executor().run(program, given, fetches, scope=scope)
    types = {name: (one.shape, one.dtype) for name, one in {**arrays, **given}.items()}
    graph = program.to_symbol(fetches, types)
    target = Path(output)
    target.mkdir(parents=True, exist_ok=True)
    graph.save(target / GRAPH)
    so.save_parameters(target / PARAMETERS, arrays)
    loaded = so.load(target / GRAPH)
    kept = {**so.load_parameters(target / PARAMETERS), **given}
    after = loaded.to_jax()(
        *[kept[name] for name in loaded.list_arguments()], key=jax.random.key(0)
    )
    return Converted(target / GRAPH, target / PARAMETERS, _largest_difference(before, after))


def _type_of_feed(program: Program, name: str, shapes: Mapping[str, Sequence[int]]) -> Any:
    """Shape and dtype of an input; those that the file leaves open are given.

    Raises:
        PaddleError: a length is not known, or the input is ragged.
    """
    variable = program.desc.blocks[0].vars[name]
    if variable.lod_level:
        raise PaddleError(
            f"convert: inputs must not be ragged, got {name!r} with {variable.lod_level} levels; "
            "Executor.run takes a LoDTensor for it"
        )
    shape = tuple(shapes.get(name, variable.shape or ()))
    if -1 in shape:
        raise PaddleError(
            f"convert: the shape of {name!r} must be given, --shape {name}="
            f"{','.join(str(8 if one == -1 else one) for one in shape)}, since the file leaves it "
            f"open: {list(shape)}"
        )
    return shape, jax.dtypes.canonicalize_dtype(variable.dtype)


_TRAINED = ("weight", "bias", "gamma", "beta", "parameters")
"""Inputs of layers that a parameter file contains."""


def _require_parameters(symbol: Any, arrays: Mapping[str, Any]) -> None:
    """Rejects a file without a layer's parameter, which would be mistaken for an input.

    Raises:
        MXNetError: a parameter is missing.
    """
    for node in topological(symbol.heads):
        if node.operator is None:
            continue
        names = node.operator.present(node.values)
        for slot, (below, _) in zip(names, node.inputs, strict=True):
            kept = slot in _TRAINED or slot in node.operator.states
            if kept and below.is_variable and below.name not in arrays:
                raise MXNetError(
                    f"convert: the parameters must have {below.name}, the {slot} of "
                    f"{node.name!r}, got {', '.join(arrays) or 'none'}"
                )


def _types(symbol: Any, arrays: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]) -> Any:
    """Shape and dtype of each variable."""
    for name in shapes:
        if name not in symbol.list_inputs():
            raise MXNetError(f"convert: no variable is called {name!r}")
    told = {**{name: one.shape for name, one in arrays.items()}, **shapes}
    types = Inference(
        symbol.heads,
        {name: tuple(shape) for name, shape in told.items()},
        {name: one.dtype for name, one in arrays.items()},
    )
    try:
        return {node.name: types.type(node) for node in types.variables()}
    except MXNetError as error:
        raise MXNetError(f"{error}; pass the inputs' shapes, --shape data=1,3,224,224") from None


def _drawn(seed: int, shape: Sequence[int], dtype: Any) -> Any:
    """Random numbers between 0 and 1; for labels or ids, the class or row 0."""
    values = np.random.default_rng(seed).uniform(size=shape)
    return jnp.asarray(values).astype(dtype)


def _largest_difference(before: Any, after: Any) -> float:
    """The largest difference over all outputs; equal infinities and NaNs do not differ."""
    result = 0.0
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        first, second = np.asarray(one, np.float64), np.asarray(other, np.float64)
        alike = (first == second) | (np.isnan(first) & np.isnan(second))
        rest = np.abs(first - second)[~alike]
        result = max(result, float(np.max(np.where(np.isnan(rest), np.inf, rest), initial=0.0)))
    return result
