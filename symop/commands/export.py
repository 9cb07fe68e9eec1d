"""``symop export``: exports a graph for prediction, as StableHLO or as bytes of ``jax.export``."""

import argparse
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import jax
import numpy as np

from registry.errors import ArgumentError, SymopError, UnknownTypeError, missing_extra
from registry.types import VarType
from symop.commands.files import STREAM, read_symbol, write
from symop.commands.parser import Declared
from symop.graph.naming import require_known, variables_of
from symop.io.files import load_parameters
from symop.symbol.symbol import Symbol

_TEXT = (".stablehlo", ".mlir")
_BYTES = (".bin",)
_FRAMES = "jax_traceback_in_locations_limit"


def run(options: argparse.Namespace) -> None:
    """Write the exported function, and report its inputs and outputs."""
    as_text = _is_text(options.output)
    symbol = read_symbol(options.file, "export")
    arrays = load_parameters(options.parameters) if options.parameters else {}
    types = _types(symbol, arrays, options.shape)
    with _without_places():
        exported = _exported(symbol, arrays, types, options.platform)
        data = exported.mlir_module() if as_text else _serialized(exported, options.orders)
    write(options.output, data)
    if options.output != STREAM:
        _report(symbol, types, exported)


def _is_text(path: str) -> bool:
    suffix = PurePath(path).suffix
    if path != STREAM and suffix not in (*_TEXT, *_BYTES):
        raise ArgumentError(
            f"export: the file must end in {', '.join(_TEXT)} or {', '.join(_BYTES)}, got {path!r}"
        )
    return path == STREAM or suffix in _TEXT


# Types of inputs ---------------------------------------------------------------------------------


def _types(
    symbol: Symbol, arrays: Mapping[str, np.ndarray], declared: Sequence[Declared]
) -> dict[str, VarType]:
    """Returns the types of the inputs that remain, in the order of the function's arguments."""
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    require_known("export", arrays, names)
    require_known("export", [one.name for one in declared], names)
    scope = jax.export.SymbolicScope()
    known: dict[str, Any] = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    for one in declared:
        shape = _shape(one, scope)
        known[one.name] = shape if one.dtype is None else (shape, one.dtype)
    variables = variables_of(symbol.with_types(**known).roots)
    unknown = [name for name in names if variables[name].types is None]
    if unknown:
        raise UnknownTypeError(
            f"export: all shapes must be known, got none of {', '.join(unknown)}; pass for example "
            f"--shape {unknown[0]}=batch,3"
        )
    return {name: variables[name].type for name in names if name not in arrays}


def _shape(declared: Declared, scope: jax.export.SymbolicScope) -> tuple[Any, ...]:
    text = ",".join(map(str, declared.shape))
    try:
        return tuple(jax.export.symbolic_shape(text, scope=scope))
    except ValueError:
        raise ArgumentError(
            f"export: lengths must be numbers, names or expressions of them such as 2*batch, got "
            f"{declared.name}={text}"
        ) from None


# The function ------------------------------------------------------------------------------------


def _exported(
    symbol: Symbol,
    arrays: Mapping[str, np.ndarray],
    types: Mapping[str, VarType],
    platforms: Sequence[str] | None,
) -> Any:
    function = symbol.to_jax()

    def predict(*inputs: Any) -> Any:
        return function(**dict(zip(types, inputs, strict=True)), **arrays)

    structure: Any = jax.ShapeDtypeStruct  # JAX declares no types for it
    specs = [structure(type.shape, type.dtype) for type in types.values()]
    try:
        return jax.export.export(jax.jit(predict), platforms=platforms)(*specs)
    except SymopError:
        raise
    # What JAX raises: for values without a serialized form, for effects, for missing lowerings.
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ArgumentError(f"export: JAX cannot export the graph: {error}") from error


@contextlib.contextmanager
def _without_places() -> Iterator[None]:
    """Keeps the paths of source files out of what JAX lowers."""
    config: Any = jax.config  # JAX declares no types for it
    limit = getattr(config, _FRAMES)
    config.update(_FRAMES, 0)
    try:
        yield
    finally:
        config.update(_FRAMES, limit)


def _serialized(exported: Any, orders: int) -> bytes:
    try:
        return bytes(exported.serialize(vjp_order=orders))
    except ImportError:
        raise missing_extra("export", "flatbuffers", "export") from None


def _report(symbol: Symbol, types: Mapping[str, VarType], exported: Any) -> None:
    for name, type in types.items():
        print(f"input {name}: {type}")
    for name, aval in zip(symbol.list_outputs(), exported.out_avals, strict=True):
        print(f"output {name}: {aval.str_short()}")
