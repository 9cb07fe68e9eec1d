"""Initial values of variables: numbers, arrays, and the initializers of ``jax.nn``.

An initializer is text, such as ``"normal(0.01)"``, which records and files contain. Initializers
whose scale follows from fan-in and fan-out take these from the use of the variable in its graph.
"""

import ast
import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from registry.desc import ProgramDesc
from registry.errors import ArgumentError, FormatError, SymopError, nearest
from registry.types import DType, Shape, VarKind, VarType, is_complex, is_exact, is_inexact
from registry.values import SelectedRows
from symop.graph.nodes import Node
from symop.passes.uses import Use, Uses

Drawn = Callable[[Any, Shape, DType, Use | None], Any]
"""An initializer: key, shape, dtype and use to array."""
_FACTORIES: dict[str, Callable[..., Any]] = {
    name: getattr(jax.nn.initializers, name)
    for name in dir(jax.nn.initializers)
    if name.islower() and not name.startswith("_")
}
_MOST_ENTRIES = 4096
"""The largest array that is written as text; a larger one belongs to a file of parameters."""


class HeldInitial(str):
    """An initializer that is a function: the text that shows it, and the function itself.

    Attributes:
        function: from key, shape and dtype to an array.
    """

    __slots__ = ("function",)
    function: Callable[[Any, Shape, DType], Any]

    def __new__(cls, function: Callable[..., Any]) -> "HeldInitial":
        """Returns text that differs for each function that is alive."""
        name = getattr(function, "__qualname__", type(function).__name__)
        result = super().__new__(cls, f"<{name} at {id(function):#x}>")
        result.function = function
        return result


def require_named_initials(desc: ProgramDesc) -> None:
    """Raises an error if a variable has a function as its initializer.

    Raises:
        FormatError: the message names the first such variable.
    """
    for var in (one for block in desc.blocks for one in block.vars):
        if isinstance(var.attrs.get("initial"), HeldInitial):
            raise FormatError(
                f"save: the initializer of {var.name!r} must be a number, a small array or a name, "
                f"such as 'glorot_uniform', got {var.attrs['initial']}, which a file cannot hold"
            )


def initial_attribute(
    owner: str, initial: Any, shape: Shape | None = None, dtype: DType | None = None
) -> dict[str, str]:
    """Returns the attribute that records the initializer of a variable; empty for None.

    Args:
        owner: the start of error messages.
        initial: a number, an array, text, or a function from key, shape and dtype to an array.
        shape: the shape of the variable, if known.
        dtype: the dtype of the variable, if known.

    Raises:
        ArgumentError: there is no such initializer, or it does not fit the variable.
    """
    if initial is None:
        return {}
    spec = _as_text(owner, initial)
    try:
        drawn = require_initial(spec, dtype)
        if shape is not None and isinstance(drawn, _Entries):
            drawn.require(shape)
    except ArgumentError as error:
        raise ArgumentError(f"{owner}: {error}") from None
    return {"initial": spec}


def _as_text(owner: str, initial: Any) -> str:
    if isinstance(initial, str):
        return initial
    if callable(initial):
        named = [name for name, one in _FACTORIES.items() if one is initial]
        return named[0] if named else HeldInitial(initial)
    try:
        entries = np.asarray(initial)
    except (TypeError, ValueError):
        entries = np.asarray(None)
    if not _are_numbers(entries):
        raise ArgumentError(
            f"{owner}: initial must be a number, an array, the name of an initializer or a "
            f"function, got {initial!r}"
        )
    if entries.size > _MOST_ENTRIES or (entries.ndim and not np.all(np.isfinite(entries))):
        return HeldInitial(_Entries(entries))
    return repr(entries.tolist())


@dataclasses.dataclass(frozen=True, eq=False)
class _Entries:
    """An array as an initializer."""

    entries: np.ndarray

    def require(self, shape: Shape) -> None:
        """Raises an error unless the array broadcasts to ``shape``."""
        own = self.entries.shape
        if len(own) > len(shape) or not _fit(own, shape):
            raise ArgumentError(f"initial: the array must broadcast to {shape}, got shape {own}")

    def __call__(self, key: Any, shape: Shape, dtype: DType, use: Use | None = None) -> Any:
        """Returns the array, broadcast to ``shape``."""
        del key, use
        self.require(shape)
        return jnp.broadcast_to(jnp.asarray(self.entries, dtype), shape)


def _fit(own: Shape, shape: Shape) -> bool:
    return all(n in (1, m) for n, m in zip(own[::-1], shape[::-1], strict=False))


# Values ------------------------------------------------------------------------------------------


def initial_value(spec: str | None, type: VarType, key: Any, use: Use | None = None) -> Any:
    """Returns the initial value that ``spec`` describes.

    Args:
        spec: A number, an array or an initializer, as in ``require_initial``; or None, which means
            zero for integers and for what is only added to data, one for what only scales data, and
            ``he_normal`` otherwise.
        type: The type of the value; a row-sparse value starts without rows.
        key: A random key.
        use: How the variable is used.

    Raises:
        ArgumentError: The initializer does not exist, or does not fit the type.
    """
    if type.kind is VarKind.SELECTED_ROWS:
        values = jnp.zeros((0, *type.shape[1:]), type.dtype)
        return SelectedRows(jnp.zeros(0, np.int32), values, type.shape[0])
    if spec is None:
        spec = _usual(type, use)
    return require_initial(spec, type.dtype)(key, type.shape, type.dtype, use)


def _usual(type: VarType, use: Use | None) -> str:
    if not is_inexact(type.dtype) or (use is not None and use.role == "bias"):
        return "0"
    return "1" if use is not None and use.role == "scale" else "he_normal"


def initial_values(
    variables: Mapping[str, Node],
    roots: Sequence[Node],
    keys: Iterable[Any],
    specs: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """Returns initial arrays of ``variables`` of the graph of ``roots``, whose types are known.

    Args:
        variables: variables by name.
        roots: the graph whose use of the variables counts.
        keys: random keys, one for each variable.
        specs: the initializers by name, instead of those that the variables declare.

    Raises:
        ArgumentError: an initializer does not exist, or does not fit; the message names the
            variable.
    """
    uses = Uses(roots)
    result = {}
    for (name, node), key in zip(variables.items(), keys, strict=False):
        spec = specs.get(name) if specs is not None else declared_initial(node)
        result[name] = variable_value(name, node, spec, key, uses=uses)
    return result


def declared_initial(node: Node) -> str | None:
    """Returns the initializer that a variable declares."""
    return dict(node.attributes[3]).get("initial")


def variable_value(name: str, node: Node, spec: str | None, key: Any, *, uses: Uses) -> Any:
    """Returns the initial array of one variable; see ``initial_values``."""
    use = uses.of(node) if _reads_use(spec) and is_inexact(node.type.dtype) else None
    try:
        return initial_value(spec, node.type, key, use)
    except (SymopError, TypeError, ValueError) as error:
        shown = "the default initializer" if spec is None else spec
        reason = str(error).removeprefix("initial: ")
        raise ArgumentError(
            f"initial: {shown} must fit {name!r} ({node.type}): {reason}"
        ) from error


def _reads_use(spec: str | None) -> bool:
    if spec is None:
        return True
    name = spec.partition("(")[0].strip()
    return bool({"in_axis", "column_axis"} & _parameters(name).keys())


# Initializers ------------------------------------------------------------------------------------


def require_initial(spec: str, dtype: DType | None = None) -> Drawn:
    """Returns the initializer that ``spec`` describes.

    It is a number; nested lists of numbers, which are broadcast; or the name of an initializer of
    ``jax.nn.initializers`` with its arguments, as in ``normal(0.01)``, ``he_uniform``,
    ``orthogonal(scale=1.4)`` or ``variance_scaling(2.0, fan_in, normal)``. In addition to JAX's
    ``uniform(scale)`` there is ``uniform(low, high)``. Axes that are not given follow from the use.

    Raises:
        ArgumentError: The initializer does not exist, its arguments are wrong, or it does not give
            values of ``dtype``.
    """
    if isinstance(spec, HeldInitial):
        return _held(spec.function)
    entries = _entries(spec)
    if dtype is not None and is_exact(dtype) and not _is_whole(entries):
        raise ArgumentError(f"initial: of {dtype.name} it must be a whole number, got {spec!r}")
    if entries is not None:
        return _Entries(entries)
    name, args, kwargs = _call(spec)
    if name == "uniform" and len(args) == 2 and not kwargs:
        low, high = args
        return lambda key, shape, dtype, use: jax.random.uniform(key, shape, dtype, low, high)
    factory = _FACTORIES.get(name)
    if factory is None:
        legal = ["uniform(low, high)", *_FACTORIES]
        raise ArgumentError(
            f"initial: it must be a number, an array or one of {', '.join(legal)}, got {spec!r}"
            f"{nearest(name, legal)}"
        )
    return _drawn(spec, name, factory, args, kwargs)


def _held(function: Callable[..., Any]) -> Drawn:
    if isinstance(function, _Entries):
        return function

    def drawn(key: Any, shape: Shape, dtype: DType, use: Use | None) -> Any:
        del use
        value = jnp.asarray(function(key, shape, dtype), dtype)
        if value.shape != shape:
            raise ArgumentError(
                f"initial: the function must return shape {shape}, got {value.shape}"
            )
        return value

    return drawn


def _entries(spec: str) -> np.ndarray | None:
    """Returns the numbers that ``spec`` lists; None if it is not a list of numbers."""
    try:
        return np.asarray(float(spec))
    except ValueError:
        pass
    try:
        entries = np.asarray(ast.literal_eval(spec.strip()))
    except (SyntaxError, TypeError, ValueError, MemoryError, RecursionError):
        return None
    return entries if _are_numbers(entries) else None


def _are_numbers(entries: np.ndarray) -> bool:
    return is_exact(entries.dtype) or is_inexact(entries.dtype)


def _is_whole(entries: np.ndarray | None) -> bool:
    if entries is None or is_complex(entries.dtype):
        return False
    return bool(np.all(entries == np.round(entries))) and bool(np.all(np.isfinite(entries)))


def _call(spec: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Returns the name and the arguments of ``spec``; words among the arguments are strings."""
    try:
        tree = ast.parse(spec.strip(), mode="eval").body
        if isinstance(tree, ast.Name):
            return tree.id, [], {}
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            named = {str(one.arg): _argument(one.value) for one in tree.keywords}
            return tree.func.id, list(map(_argument, tree.args)), named
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        pass
    return spec, [], {}


def _argument(tree: ast.expr) -> Any:
    return tree.id if isinstance(tree, ast.Name) else ast.literal_eval(tree)


@functools.cache
def _parameters(name: str) -> Mapping[str, inspect.Parameter]:
    """Returns the parameters of an initializer that text can give."""
    if name not in _FACTORIES:
        return {}
    parameters = dict(inspect.signature(_FACTORIES[name]).parameters)
    return {} if "key" in parameters else {n: p for n, p in parameters.items() if n != "dtype"}


def _drawn(
    spec: str, name: str, factory: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> Drawn:
    """Returns JAX's initializer with the arguments of ``spec``.

    Raises:
        ArgumentError: it does not take them.
    """
    parameters = _parameters(name)
    settings = {**dict(zip(parameters, args, strict=False)), **kwargs}
    required = [n for n, p in parameters.items() if p.default is p.empty]
    wrong = len(args) > len(parameters) or set(settings) - set(parameters)
    if wrong or set(required) - set(settings) or len(settings) < len(args) + len(kwargs):
        listed = ", ".join(parameters) or "nothing"
        raise ArgumentError(f"initial: {name} takes ({listed}), got {spec!r}")

    def drawn(key: Any, shape: Shape, dtype: DType, use: Use | None) -> Any:
        if 0 in shape:
            return jnp.zeros(shape, dtype)
        if not parameters:
            return factory(key, shape, dtype)
        if "column_axis" in parameters and "column_axis" not in settings:
            return _by_columns(factory(**settings), key, shape, dtype, use)
        if "in_axis" in parameters and not {"in_axis", "out_axis"} & set(settings):
            return _by_fans(functools.partial(factory, **settings), key, shape, dtype, use)
        return factory(**settings)(key, shape, dtype)

    return drawn


class _Layout(NamedTuple):
    """The axes of an array by their role, all of them."""

    batch: tuple[int, ...]
    window: tuple[int, ...]
    inward: tuple[int, ...]
    outward: tuple[int, ...]


def _layout(ndim: int, use: Use | None) -> _Layout:
    """Returns the roles of axes; without a product, the order of ``jax.nn.initializers``."""
    if use is not None and use.role == "product":
        told = (*use.inward, *use.outward, *use.window)
        batch = tuple(i for i in range(ndim) if i not in told)
        return _Layout(batch, use.window, use.inward, use.outward)
    places = tuple(range(ndim))
    return _Layout((), places[:-2], places[-2:-1] or places[-1:], places[-1:] if ndim > 1 else ())


def _by_fans(factory: Callable[..., Any], key: Any, shape: Shape, dtype: DType, use: Any) -> Any:
    """Draws from an initializer that takes the axes over which a product sums."""
    layout = _layout(len(shape), use)
    axes = {"in_axis": layout.inward, "out_axis": layout.outward, "batch_axis": layout.batch}
    return factory(**axes)(key, shape, dtype)


def _by_columns(draw: Callable[..., Any], key: Any, shape: Shape, dtype: DType, use: Any) -> Any:
    """Draws from an initializer whose last axes are those of the inputs and of the outputs.

    Along batch axes the draws are independent.
    """
    layout = _layout(len(shape), use)
    order = [i for axes in layout for i in axes]
    batch, window, ins, outs = ([shape[i] for i in axes] for axes in layout)
    matrix = (*window, math.prod(ins), math.prod(outs))
    if not batch:
        value = draw(key, matrix, dtype)
    else:
        keys = jax.random.split(key, math.prod(batch))
        value = jax.vmap(lambda own: draw(own, matrix, dtype))(keys)
    value = value.reshape(*batch, *window, *ins, *outs)
    return jnp.transpose(value, [order.index(i) for i in range(len(order))])
