"""Binding: executors over given arrays, or over zeros of inferred shapes."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from symop.interop.mxnet.arrays import NDArray, array_named, zeros_of
from symop.interop.mxnet.calls import as_shape
from symop.interop.mxnet.context import Context, existing, named
from symop.interop.mxnet.errors import MXNetError, near
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.graph import Entry, Node, argument_names, state_names
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.sparse_arrays import zeros_stored
from symop.interop.mxnet.storage import DEFAULT
from symop.interop.mxnet.storage_inference import StorageTypes
from symop.interop.mxnet.stored_executor import executor_of

_REQUESTS = ("null", "write", "write_inplace", "add")


Groups = Mapping[str, Any] | None
"""Contexts by the names of groups (``AttrScope(ctx_group=...)``)."""


def bind(
    heads: Sequence[Entry],
    args: Any,
    args_grad: Any,
    grad_req: Any,
    aux_states: Any,
    ctx: Any = None,
) -> Executor:
    """Creates an executor over given arrays; see ``Symbol.bind``.

    Raises:
        MXNetError: an array is missing or invalid.
    """
    names, states = argument_names(heads), state_names(heads)
    arguments = _by_name("args", args, names)
    requests = _requests(grad_req, names)
    gradients: dict[str, NDArray] = {}
    if args_grad is not None:
        gradients = _by_name("args_grad", args_grad, names, partial=True)
        requests = {n: one if n in gradients else "null" for n, one in requests.items()}
    elif args is not None and grad_req != "null":
        requests = dict.fromkeys(names, "null")
    for name, one in gradients.items():
        _require_like(name, one, arguments[name])
    return executor_of(
        heads,
        arguments,
        {name: gradients.get(name) for name in names},
        requests,
        _by_name("aux_states", aux_states, states),
        named(ctx),
    )


def places_of(nodes: Iterable[Node], ctx: Any, groups: Groups) -> dict[str, Context | None]:
    """The contexts of variables by name: those of their groups, or else ``ctx``."""
    main = existing(ctx)
    told = {name: existing(one) for name, one in (groups or {}).items()}
    return {one.name: told.get(one.attributes.get("__ctx_group__", ""), main) for one in nodes}


def simple_bind(
    heads: Sequence[Entry],
    grad_req: Any,
    type_dict: Mapping[str, Any] | None,
    shapes: Mapping[str, Sequence[int]],
    ctx: Any = None,
    groups: Groups = None,
    stype_dict: Mapping[str, str] | None = None,
) -> Executor:
    """Creates an executor over zeros; see ``Symbol.simple_bind``.

    Raises:
        MXNetError: a shape cannot be inferred from the given ones.
    """
    names = {*argument_names(heads), *state_names(heads)}
    # MXNet takes no notice of other keyword arguments that are not shapes.
    shapes = {n: one for n, one in shapes.items() if n in names or isinstance(one, (tuple, list))}
    given = {name: as_shape(name, shape) for name, shape in shapes.items()}
    types = Inference(heads, given, type_dict)
    variables = {node.name: node for node in types.variables()}
    told = [*given, *(type_dict or {})]
    _require_shapes(types, [name for name in told if name not in variables])
    _warn_unknown("simple_bind: shapes and dtypes", told, list(variables), 4)
    places = places_of(variables.values(), ctx, groups)
    stypes = StorageTypes(heads, stype_dict or {})
    arrays = {
        name: zeros_at(stypes.of((node, 0)), types.type(node), name, places[name])
        for name, node in variables.items()
    }
    arguments = {name: arrays[name] for name in argument_names(heads)}
    requests, kinds = _requests(grad_req, list(arguments)), stypes.gradients()
    gradients = {
        name: None
        if requests[name] == "null"
        else zeros_at(kinds[name], (one.shape, one.dtype), name, places[name])
        for name, one in arguments.items()
    }
    states = {name: arrays[name] for name in state_names(heads)}
    return executor_of(heads, arguments, gradients, requests, states, named(ctx))


def zeros_at(stype: str, type: tuple[Any, Any], name: str, place: Context | None) -> NDArray:
    """Zeros of a storage type, and of shape and dtype ``type``, on the device ``place``."""
    if stype == DEFAULT:
        return zeros_of(*type, name, place)
    shape, dtype = type
    return zeros_stored(stype, tuple(shape), dtype, place)


def evaluated(heads: Sequence[Entry], given: Mapping[str, Any]) -> list[NDArray]:
    """The outputs for given arrays, by name; see ``Symbol.eval``."""
    names = [*argument_names(heads), *state_names(heads)]
    bound = bind(heads, given, None, "null", given)
    _warn_unknown("eval: arrays", given, names, 4)
    return bound.forward()


def _warn_unknown(what: str, given: Iterable[str], names: Sequence[str], level: int) -> None:
    """Warns of names that no variable has, which MXNet ignores."""
    for name in given:
        if name not in names:
            warnings.warn(
                f"{what} must be those of {', '.join(names)}, got {name!r}{near(name, names)}",
                stacklevel=level,
            )


def _require_shapes(types: Inference, unknown: Sequence[str]) -> None:
    """Raises if shapes of variables cannot be inferred; lists unused names that were given."""
    names = [node.name for node in types.variables()]
    for node in types.variables():
        try:
            types.type(node)
        except MXNetError as error:
            vain = [f"; there is no {one!r}{near(one, names)}" for one in unknown]
            raise MXNetError(f"{error}{''.join(vain)}") from None


def _by_name(
    what: str, given: Any, names: Sequence[str], *, partial: bool = False
) -> dict[str, NDArray]:
    """Arrays by name, from a dict or from a list in the order of ``names``."""
    if isinstance(given, (list, tuple)):
        if len(given) > len(names):
            raise MXNetError(f"bind: {what} must be at most {len(names)}, got {len(given)}")
        given = dict(zip(names, given, strict=False))
    if given is not None and not isinstance(given, Mapping):
        raise MXNetError(f"bind: {what} must be a list or a dict, got {type(given).__name__}")
    held = {name: one for name, one in (given or {}).items() if one is not None}
    missing = [name for name in names if name not in held]
    if missing and not partial:
        meant = near(missing[0], [name for name in held if name not in names])
        raise MXNetError(
            f"bind: {what} must be given for all, got none for {', '.join(missing)}{meant}"
        )
    return {name: array_named(f"bind: {name}", held[name]) for name in names if name in held}


def _require_like(name: str, gradient: NDArray, argument: NDArray) -> None:
    """Raises if the array of a gradient is not of its argument's type."""
    if (gradient.shape, gradient.dtype) != (argument.shape, argument.dtype):
        raise MXNetError(
            f"bind: the gradient of {name!r} must be of shape {argument.shape} and dtype "
            f"{argument.dtype.__name__}, got {gradient.shape} and {gradient.dtype.__name__}"
        )


def _requests(given: Any, names: Sequence[str]) -> dict[str, str]:
    """The gradient request of each argument."""
    if isinstance(given, str):
        result = dict.fromkeys(names, given)
    elif isinstance(given, Mapping):
        result = {name: given.get(name, "null") for name in names}
        _warn_unknown("bind: grad_req", given, names, 5)
    elif not isinstance(given, (list, tuple)):
        raise MXNetError(f"bind: grad_req must be a str, a list or a dict, got {given!r}")
    elif len(given) != len(names):
        raise MXNetError(f"bind: grad_req must be one for each of {len(names)}, got {len(given)}")
    else:
        result = dict(zip(names, given, strict=True))
    for name, one in result.items():
        if one not in _REQUESTS:
            listed = ", ".join(_REQUESTS)
            raise MXNetError(f"bind: grad_req must be one of {listed}, got {one!r} for {name!r}")
    return result
