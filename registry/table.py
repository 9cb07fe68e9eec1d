"""The one table of operators: names and aliases, and how they are found and registered."""

import copyreg
import threading
from collections.abc import Callable, Iterable
from typing import Any, overload

from registry import var
from registry.errors import RegistrationError, UnknownOperatorError, nearest
from registry.kernel_gradients import derived_named
from registry.operator import Operator

_table: dict[str, Operator] = {}
_aliases: dict[str, str] = {}
_lock = threading.RLock()


def register(operator: Operator, *, replace: bool = False) -> Operator:
    """Enter ``operator`` and its aliases into the one table of names.

    What was built with an operator that is replaced keeps that operator, and keeps working.

    Raises:
        RegistrationError: a name is taken and ``replace`` is false, or it is taken by an operator
            of another name.
    """
    with _lock:
        for name in (operator.name, *operator.aliases):
            owner = _aliases.get(name) or (name if name in _table else None)
            if owner is not None and not (replace and owner == operator.name):
                raise RegistrationError(
                    f"{name}: an operator must be registered once, got a second one"
                    + (
                        "; pass replace=True to replace it"
                        if owner == operator.name
                        else f"; the name belongs to {owner}"
                    )
                )
        unregister(operator.name)
        _table[operator.name] = operator
        _aliases.update(dict.fromkeys(operator.aliases, operator.name))
        if operator.infix is not None:
            var.infix[operator.infix] = operator
    return operator


def unregister(name: str) -> None:
    """Forget the operator called ``name`` and its aliases; nothing happens if there is none."""
    with _lock:
        old = _table.pop(name, None)
        if old is None:
            return
        for alias in old.aliases:
            _aliases.pop(alias, None)
        if old.infix is not None and var.infix.get(old.infix) is old:
            del var.infix[old.infix]


@overload
def op(kernel: Callable[..., Any], *, replace: bool = False) -> Operator: ...


@overload
def op(
    *,
    replace: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], Operator]: ...


def op(
    kernel: Callable[..., Any] | None = None,
    *,
    replace: bool = False,
    **options: Any,
) -> Operator | Callable[[Callable[..., Any]], Operator]:
    """Declare an operator by its kernel, a function on JAX arrays.

    Positional parameters are input slots, keyword-only ones attributes, the docstring is its page.

    Args:
        kernel: the function, when the decorator is used without options.
        replace: replace an operator of the same name on purpose.
        **options: ``name``; ``outputs`` (names, default ``("out",)``; with a star before the last,
            ``"*parts"``, that one has as many values as ``count`` says); ``count`` (a function of
            attributes and of the variadic slot); ``hidden`` (outputs that a caller does not see);
            ``updates`` (state slot -> output that holds its new value); ``shape`` and ``dtype``
            (rules; without them the kernel is traced for its result's type); ``cases``;
            ``reference`` (the same function in NumPy or SciPy); ``infix`` (Python's operator);
            ``aliases``; ``leading`` (attributes that come before the inputs in a call by position);
            ``commutative``; ``foldable`` (may be computed on constants while a graph is built);
            ``rearranges`` (every entry of the result is an entry of an input, so a constant stays
            that constant); ``native`` (whether JAX's derivative of the kernel is the declared one,
            so that graphs which hold their gradient may run the bare kernel; only operators of the
            catalogue default to true); ``opaque`` (JAX cannot see into the kernel and has no
            derivative of it: a callback, a foreign call).

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import Array, case, op
        >>> @op(name="doc_cube", cases=[case(x=(3,))])
        ... def cube(x: Array) -> Array:
        ...     "Cube of each entry."
        ...     return x * x * x
        >>> @cube.gradient
        ... def cube_gradient(x, d_out):
        ...     return {"x": 3.0 * x * x * d_out}
        >>> float(cube(jnp.asarray(2.0)))
        8.0
    """
    if kernel is not None:
        return register(Operator(kernel), replace=replace)
    return lambda function: register(Operator(function, **options), replace=replace)


def get(name: str) -> Operator:
    """The operator called ``name``, or of which ``name`` is an alias.

    Raises:
        UnknownOperatorError: there is none; the message suggests the nearest names.
    """
    found = find(name)
    if found is None:
        raise UnknownOperatorError(
            f"{name}: no operator has this name{nearest(name, names(aliases=True))}"
        )
    return found


def find(name: str) -> Operator | None:
    """The operator called ``name``, or None."""
    found = _table.get(name) or _table.get(_aliases.get(name, ""))
    return found or (derived_named(name, find) if name.startswith("_") else None)


def names(*, aliases: bool = False) -> list[str]:
    """Every operator's name in alphabetical order, with aliases when asked for."""
    with _lock:
        return sorted([*_table, *(_aliases if aliases else ())])


def operators() -> Iterable[Operator]:
    """Every operator in alphabetical order."""
    with _lock:
        return [_table[name] for name in sorted(_table)]


var.methods = find


def _pickled(operator: Operator) -> tuple[Any, ...]:
    """An operator is pickled by its name."""
    if operator.family is None:
        return get, (operator.name,)
    return _member, (operator.name, len(operator.outputs))


def _member(name: str, count: int) -> Operator:
    return get(name).sized(count)


copyreg.pickle(Operator, _pickled)
