"""The table of operators: names and aliases, lookup and registration."""

import contextlib
import copyreg
import inspect
import keyword
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, overload

from registry import var
from registry.errors import DeclarationError, RegistrationError, UnknownOperatorError, nearest
from registry.foreign_names import known_elsewhere
from registry.hooks import define
from registry.jax_derivatives.gradients import derived_named
from registry.naming import TRANSPOSE, VJP
from registry.operator.operator import Operator
from registry.plugins import Plugins
from registry.sites import Site, present_site
from registry.tracebacks import api_boundary

_Change = Callable[[], None]
"""Undoes one registration."""

PREFIXES = (VJP, TRANSPOSE)
"""Prefixes of the names of derived operators."""
_table: dict[str, Operator] = {}
_aliases: dict[str, str] = {}
_lock = threading.RLock()


class _Journal(threading.local):
    """The registrations of this thread within a transaction."""

    changes: list[_Change] | None = None


_journal = _Journal()


_reserved: set[str] = set()


def reserve(names: Iterable[str]) -> None:
    """Reserves ``names`` for the functions that users find next to operators."""
    _reserved.update(names)


@api_boundary
def register(operator: Operator, *others: Operator, replace: bool = False) -> Operator:
    """Adds ``operator`` and its aliases to the table of names, together with ``others``.

    Graphs and programs built with an operator that is replaced keep that operator and keep working.
    An operator is replaced as well if its source runs again: a cell of a notebook, or a module that
    is loaded again.

    Raises:
        RegistrationError: a name is taken and ``replace`` is false, or it belongs to an operator of
            another name, or it is not a legal operator name. Then nothing is registered.
    """
    together = (operator, *others)
    site = None
    if not operator.catalogued:
        var.complete_symop()
        site = present_site()
    with _lock:
        _refuse_twice(together)
        for one in together:
            _refuse_name(one)
            _refuse_taken(one, replace or _repeats(site, one.name))
        for one in together:
            one.site = one.site or site
            _put(one.name, one)
    return operator


def is_declared_again(name: str) -> bool:
    """Whether the source that declared the operator called ``name`` is being executed again."""
    return _repeats(present_site(), name)


def _repeats(site: Site | None, name: str) -> bool:
    old = _table.get(name)
    before = None if old is None else old.site
    return site is not None and before is not None and site.repeats(before)


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


def _ignore(_name: str) -> None:
    """Does nothing, as long as nothing caches operators by name."""


class Changes:
    """Receives each name whose meaning changes, so that caches of operators by name can drop it."""

    HOOKS: ClassVar[frozenset[str]] = frozenset({"changed"})
    changed: ClassVar[Callable[[str], None]] = _ignore


def unregister(name: str) -> None:
    """Removes the operator called ``name`` and its aliases; does nothing if none has the name."""
    with _lock:
        if name in _table:
            _put(name, None)


def _refuse_taken(operator: Operator, replace: bool) -> None:
    for name in (operator.name, *operator.aliases):
        owner = _aliases.get(name) or (name if name in _table else None)
        if owner is not None and not (replace and owner == operator.name):
            raise RegistrationError(
                f"{name}: an operator must be registered once, got a second one"
                + _advice(operator.name, owner)
            )
    other = None if operator.infix is None else var.infix.get(operator.infix)
    if isinstance(other, Operator) and other.name != operator.name:
        raise RegistrationError(
            f"{operator.name}: an infix must belong to one operator, got {operator.infix!r}, which "
            f"belongs to {other.name}"
        )


def _advice(name: str, owner: str) -> str:
    """Returns what to do about a name that the operator ``owner`` has."""
    if owner != name:
        return f"; the name belongs to {owner}"
    if _table[owner].catalogued:
        return "; the catalogue has an operator of this name, choose another"
    return "; pass replace=True to replace it"


def _put(name: str, new: Operator | None) -> None:
    """Makes ``name`` mean ``new``; concurrent lookups find the old or the new operator."""
    old = _table.get(name)
    _note_replacement(old, new)
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
            Changes.changed(changed)
    if _journal.changes is not None:
        _journal.changes.append(lambda: _undo(name, old, new))


def _note_replacement(old: Operator | None, new: Operator | None) -> None:
    if new is None or new.site is None:
        return
    new.site.superseded = False
    if old is not None and old.site is not None:
        old.site.superseded = new.site.repeats(old.site)


def _undo(name: str, old: Operator | None, new: Operator | None) -> None:
    """Restores the old meaning of ``name``, unless it changed again since."""
    if _table.get(name) is new and (old is not None or new is not None):
        _put(name, old)


@contextlib.contextmanager
def _transaction() -> Iterator[None]:
    """Undoes the registrations of this thread if an error ends the block."""
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
"""The plug-ins of installed packages, loaded when a name is missing or the table is listed."""


def load_plugins() -> list[str]:
    """Loads the operators of installed packages now; returns the names of their entry points.

    Calling it is optional: plug-ins are loaded once, when the table is listed or lacks a requested
    name. An explicit call also finds packages that were installed since, and retries plug-ins that
    failed. A plug-in that fails is reported with a warning, and its registrations are undone.

    Example:
        >>> import registry
        >>> isinstance(registry.load_plugins(), list)
        True
    """
    return installed.load(again=True)


_OPTIONS = [one for one in inspect.signature(Operator).parameters if one != "kernel"]


@overload
def op(kernel: Callable[..., Any], *, replace: bool = False) -> Operator: ...


@overload
def op(
    *,
    replace: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], Operator]: ...


@api_boundary
def op(
    kernel: Callable[..., Any] | None = None,
    *,
    replace: bool = False,
    **options: Any,
) -> Operator | Callable[[Callable[..., Any]], Operator]:
    """Declares an operator by its kernel, a function on JAX arrays.

    Positional parameters are input slots, keyword-only ones are attributes, and the docstring is
    the operator's page.

    Args:
        kernel: the function, when the decorator is used without options.
        replace: whether to replace an operator of the same name.
        **options: ``name``; ``outputs`` (names, default ``("out",)``; a star before the last,
            ``"*parts"``, makes it variadic, with ``count`` values); ``count`` (a function of
            attributes and of the variadic slot); ``hidden`` (outputs that callers do not see);
            ``updates`` (maps a state slot to the output that holds its new value); ``shape`` and
            ``dtype`` (rules; without them the kernel is traced for its result's type); ``cases``;
            ``reference`` (the same function in NumPy or SciPy); ``gradient_reference`` (the
            gradient in NumPy or SciPy, from inputs, cotangents ``d_out`` and attributes to a
            dictionary like a maker's, where JAX's derivative of the kernel differs from it);
            ``infix`` (Python's operator); ``aliases``; ``leading`` (attributes that precede the
            inputs in a positional call); ``commutative``; ``foldable`` (may be computed on
            constants while a graph is built); ``rearranges`` (every entry of the result is an entry
            of an input, so a constant stays that constant); ``native`` (whether JAX's derivative of
            the kernel is the declared one, so that graphs that contain its gradient may run the
            bare kernel); ``compared`` (whether the proofs compare the declared derivative with
            JAX's on the cases; by default unless ``native`` is false); ``transposable`` (whether
            JAX has forward mode for the kernel, and its transpose where the kernel is linear, for
            all inputs: lowering does not try them then); ``takes_numbers`` (whether the kernel
            accepts Python numbers, which are converted to arrays otherwise); these three default to
            what the package declares by ``declare_package``, else to false; ``opaque`` (JAX can
            neither trace the kernel nor differentiate it: a callback, a foreign call); ``costly``
            (takes much more arithmetic than its result has entries, as a matrix product does: worth
            keeping for a gradient, where cheaper values are recomputed); ``sealed`` (where tangents
            run through a call, JAX must not trace into it, although it could: its interior is not
            kept as residuals); ``keeps_inputs`` (the same, but in bodies of control flow JAX may
            trace into it, so that a step need not repeat what it computes); ``rows`` (``entrywise``
            if each entry of the result is a function of the same entry of the first input, and zero
            for zero: the operator maps rows to rows; ``linear`` if it is also linear, so that rows
            that are named twice need not be merged).

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

    for one in options:
        if one not in _OPTIONS:
            raise DeclarationError(
                f"op: an option must be one of {', '.join(_OPTIONS)}, got {one!r}"
                f"{nearest(one, _OPTIONS)}"
            )

    @api_boundary
    def declare(function: Callable[..., Any]) -> Operator:
        return register(Operator(function, **options), replace=replace)

    return declare if kernel is None else declare(kernel)


def _nothing(_name: str) -> Operator | None:
    """Finds nothing, as long as no package that reads another system's programs is imported."""
    return None


class Elsewhere:
    """Finds what stands for operators of another system, for the gradients of its records."""

    HOOKS: ClassVar[frozenset[str]] = frozenset({"find"})
    find: ClassVar[Callable[[str], Operator | None]] = _nothing


@api_boundary
def get(name: str) -> Operator:
    """Returns the operator called ``name``, or the one that has ``name`` as an alias.

    Once ``symop.interop.paddle`` is imported, names of Paddle that mean nothing here are found,
    too. What they stand for is not called; its ``grad_op_maker`` takes Paddle's records.

    Raises:
        UnknownOperatorError: none has the name; the message says what other systems mean by it,
            or suggests the nearest names.
    """
    return find(name) or Elsewhere.find(name) or require(name)


@api_boundary
def require(name: str) -> Operator:
    """Returns the operator called ``name``, or the one that has ``name`` as an alias.

    Raises:
        UnknownOperatorError: none has the name, as ``get`` says.
    """
    operator = find(name)
    if operator is None:
        hint = known_elsewhere(name) or nearest(name, names(aliases=True))
        raise UnknownOperatorError(f"{name}: no operator has this name{hint}")
    return operator


def find(name: str) -> Operator | None:
    """Returns the operator called ``name``, or None."""
    operator = _known(name)
    if operator is None and installed.pending and not name.startswith("__"):
        installed.load()
        operator = _known(name)
    return operator


def _known(name: str) -> Operator | None:
    operator = _table.get(name) or _table.get(_aliases.get(name, ""))
    return operator or (derived_named(name, _known) if name.startswith("_") else None)


def names(*, aliases: bool = False) -> list[str]:
    """Returns every operator's name in alphabetical order, optionally with aliases."""
    if installed.pending:
        installed.load()
    with _lock:
        return sorted([*_table, *(_aliases if aliases else ())])


def operators() -> Iterable[Operator]:
    """Returns every operator in alphabetical order."""
    if installed.pending:
        installed.load()
    with _lock:
        return [_table[name] for name in sorted(_table)]


define(var.Operators, find=find, names=lambda: names(aliases=True))


def _pickled(operator: Operator) -> tuple[Any, ...]:
    """Pickles an operator by its name."""
    if operator.family is None:
        return get, (operator.name,)
    return _member, (operator.name, len(operator.outputs))


def _member(name: str, count: int) -> Operator:
    return get(name).sized(count)


copyreg.pickle(Operator, _pickled)
