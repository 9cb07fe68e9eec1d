"""The one table of operators: names and aliases, and how they are found and registered."""

import contextlib
import copyreg
import keyword
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, overload

from registry import var
from registry.errors import RegistrationError, UnknownOperatorError, nearest
from registry.foreign_names import known_elsewhere
from registry.kernel_gradients import TRANSPOSE, VJP, derived_named
from registry.operator import Operator
from registry.plugins import Plugins

_Change = Callable[[], None]
"""Undoes one registration."""

PREFIXES = (VJP, TRANSPOSE)
"""How the names of derived operators begin."""
_table: dict[str, Operator] = {}
_aliases: dict[str, str] = {}
_lock = threading.RLock()


class _Journal(threading.local):
    """What this thread registers, while somebody may want it undone."""

    changes: list[_Change] | None = None


_journal = _Journal()


_reserved: set[str] = set()


def reserve(names: Iterable[str]) -> None:
    """Keep operators from taking ``names``: those of functions that users find beside them."""
    _reserved.update(names)


def register(operator: Operator, *others: Operator, replace: bool = False) -> Operator:
    """Enter ``operator`` and its aliases into the one table of names, ``others`` along with it.

    What was built with an operator that is replaced keeps that operator, and keeps working.

    Raises:
        RegistrationError: a name is taken and ``replace`` is false, or it is taken by an operator
            of another name, or it cannot be an operator's name. Then nothing is entered.
    """
    together = (operator, *others)
    with _lock:
        _refuse_twice(together)
        for one in together:
            _refuse_name(one)
            _refuse_taken(one, replace)
        for one in together:
            _put(one.name, one)
    return operator


def _refuse_twice(together: Iterable[Operator]) -> None:
    names = [name for one in together for name in (one.name, *one.aliases)]
    for name in names:
        if names.count(name) > 1:
            raise RegistrationError(f"{name}: two operators must have different names, got one")


def _refuse_name(operator: Operator) -> None:
    for name in (operator.name, *operator.aliases):
        usable = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
        if not usable:
            raise RegistrationError(f"{name!r}: an operator's name must be a Python name")
        if name.startswith(PREFIXES) or name in _reserved:
            raise RegistrationError(f"{name}: an operator must not have this name, it is reserved")


listeners: list[Callable[[str], None]] = []
"""Told of each name whose meaning changes: whoever keeps operators by name forgets it then."""


def unregister(name: str) -> None:
    """Forget the operator called ``name`` and its aliases; nothing happens if there is none."""
    with _lock:
        if name in _table:
            _put(name, None)


def _refuse_taken(operator: Operator, replace: bool) -> None:
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
    other = None if operator.infix is None else var.infix.get(operator.infix)
    if isinstance(other, Operator) and other.name != operator.name:
        raise RegistrationError(
            f"{operator.name}: an infix must belong to one operator, got {operator.infix!r}, which "
            f"belongs to {other.name}"
        )


def _put(name: str, new: Operator | None) -> None:
    """Let ``name`` mean ``new``: whoever looks it up meanwhile finds the old or the new one."""
    old = _table.get(name)
    if new is None:
        del _table[name]
    else:
        _table[name] = new
        _aliases.update(dict.fromkeys(new.aliases, name))
        if new.infix is not None:
            var.infix[new.infix] = new
    if old is not None:
        for alias in set(old.aliases).difference(() if new is None else new.aliases):
            _aliases.pop(alias, None)
        if old.infix is not None and var.infix.get(old.infix) is old:
            del var.infix[old.infix]
    for one in (old, new):
        for changed in () if one is None else (one.name, *one.aliases):
            for listener in listeners:
                listener(changed)
    if _journal.changes is not None:
        _journal.changes.append(lambda: _undo(name, old, new))


def _undo(name: str, old: Operator | None, new: Operator | None) -> None:
    """Give ``name`` its old meaning, unless somebody changed it since."""
    if _table.get(name) is new and (old is not None or new is not None):
        _put(name, old)


@contextlib.contextmanager
def _transaction() -> Iterator[None]:
    """What this thread registers is taken back when an error ends the block."""
    outer, mine = _journal.changes, list[_Change]()
    _journal.changes = mine
    try:
        yield
    except BaseException:
        _journal.changes = None
        with _lock:
            for undo in reversed(mine):
                undo()
        raise
    finally:
        _journal.changes = outer


installed = Plugins(_transaction)
"""Those of installed packages; loaded when a name is missing or the table is listed."""


def load_plugins() -> list[str]:
    """Load the operators of installed packages now, and tell the names of their entry points.

    It is not needed: they are loaded once, when the table is listed or lacks a name that it is
    asked for. Called by hand, it also finds packages that were installed since, and tries those
    again that failed. One that fails is reported with a warning, and leaves nothing behind.

    Example:
        >>> import registry
        >>> isinstance(registry.load_plugins(), list)
        True
    """
    return installed.load(again=True)


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
            ``reference`` (the same function in NumPy or SciPy); ``gradient_reference`` (the
            gradient in NumPy or SciPy, from inputs, cotangents ``d_out`` and attributes to a
            dictionary like a maker's, where JAX's derivative of the kernel is another one);
            ``infix`` (Python's operator);
            ``aliases``; ``leading`` (attributes that come before the inputs in a call by position);
            ``commutative``; ``foldable`` (may be computed on constants while a graph is built);
            ``rearranges`` (every entry of the result is an entry of an input, so a constant stays
            that constant); ``native`` (whether JAX's derivative of the kernel is the declared one,
            so that graphs which hold their gradient may run the bare kernel; only operators of the
            catalogue default to true); ``opaque`` (JAX cannot see into the kernel and has no
            derivative of it: a callback, a foreign call); ``costly`` (takes much more arithmetic
            than its result has entries, as a matrix product does: worth keeping for a gradient
            where cheaper values are computed again); ``sealed`` (where tangents run through a call,
            JAX must not look into it, although it could: what is inside is not kept); ``rows``
            (``entrywise`` where each entry of the result is a function of that entry of the first
            input, and zero for zero: the operator takes rows and makes rows of them; ``linear``
            where it is linear, too, so that rows which are named twice need not be merged).

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
        UnknownOperatorError: there is none; the message tells what other systems mean by that
            name, or suggests the nearest names.
    """
    found = find(name)
    if found is None:
        hint = known_elsewhere(name) or nearest(name, names(aliases=True))
        raise UnknownOperatorError(f"{name}: no operator has this name{hint}")
    return found


def find(name: str) -> Operator | None:
    """The operator called ``name``, or None."""
    found = _known(name)
    if found is None and installed.pending and not name.startswith("__"):
        installed.load()
        found = _known(name)
    return found


def _known(name: str) -> Operator | None:
    found = _table.get(name) or _table.get(_aliases.get(name, ""))
    return found or (derived_named(name, _known) if name.startswith("_") else None)


def names(*, aliases: bool = False) -> list[str]:
    """Every operator's name in alphabetical order, with aliases when asked for."""
    if installed.pending:
        installed.load()
    with _lock:
        return sorted([*_table, *(_aliases if aliases else ())])


def operators() -> Iterable[Operator]:
    """Every operator in alphabetical order."""
    if installed.pending:
        installed.load()
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
