"""Fingerprints of everything that defines an operator's meaning, and of its proofs.

Source code is read, not run: the top-level statements that declare the operator and the operators
in its derivatives, and the statements that declare the names these use, in their own package and in
the catalogue. The proofs are treated alike. Comments, formatting, docstrings, module names and the
names of local variables do not count, since no proof can depend on them. The code that
differentiates and runs operators does not count either.
"""

import ast
import copy
import functools
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path

from registry.audit import entry_of
from registry.operator.operator import Operator
from registry.table import find

_LENGTH = 16
_CATALOGUE = ("registry.ops", "registry.shapes", "registry.operator.row_kernels")
Place = tuple[str, str]
"""A module and a name declared at its top level."""


def fingerprint(operator: Operator) -> str:
    """Returns sixteen hexadecimal digits that change when the result of a proof might.

    Example:
        >>> import registry
        >>> fingerprint(registry.get("sin")) == fingerprint(registry.get("relu"))
        False
    """
    start = _place(operator)
    own = start[0].partition(".")[0]
    packages = _CATALOGUE if own == "registry" else (*_CATALOGUE, own)
    reached = [found for name in entry_of(operator).reaches if (found := find(name))]
    declared = _closure([start, *map(_place, reached)], packages)
    text = "\n".join([start[1], _text(declared), _proofs()])
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def _place(operator: Operator) -> Place:
    return operator.kernel.__module__ or "", operator.kernel.__name__


def _text(places: Iterable[Place]) -> str:
    return "\n".join(sorted(f"{name}: {_module(module).text(name)}" for module, name in places))


@functools.cache
def _proofs() -> str:
    """Returns the source text of the proofs."""
    return _text(_closure([("symop.testing", "PROOFS")], ("symop.testing",)))


def _closure(starts: Iterable[Place], packages: tuple[str, ...]) -> set[Place]:
    """Returns all names within ``packages`` used by ``starts``, directly or indirectly."""
    seen: set[Place] = set()
    waiting = list(starts)
    while waiting:
        place = waiting.pop()
        module, name = place
        if place in seen or not f"{module}.".startswith(tuple(f"{one}." for one in packages)):
            continue
        seen.add(place)
        waiting += _module(module).named_by(name)
    return seen


class _Module:
    """The top-level statements of a module, by the names that they declare or extend."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.imported: dict[str, Place] = {}
        self.statements: dict[str, list[ast.stmt]] = {}
        self._texts: dict[str, str] = {}
        self._named: dict[str, tuple[Place, ...]] = {}
        for statement in _parsed(name).body:
            if isinstance(statement, ast.ImportFrom):
                origin = _origin(statement, name)
                self.imported |= {
                    one.asname or one.name: (origin, one.name) for one in statement.names
                }
            for declared in dict.fromkeys(_declared(statement)):
                if declared in self.imported:  # ``op`` of ``@op(...)``
                    continue
                self.statements.setdefault(declared, []).append(statement)

    def text(self, name: str) -> str:
        """Returns the syntax trees of the statements of ``name`` as text."""
        if name not in self._texts:
            found = self.statements.get(name, [])
            self._texts[name] = "\n".join(_dump(_numbered(one)) for one in found)
        return self._texts[name]

    def named_by(self, name: str) -> tuple[Place, ...]:
        """Returns the places of the names used by the statements of ``name``."""
        if name not in self._named:
            statements = self.statements.get(name, [])
            names = [
                node.id
                for one in statements
                for node in ast.walk(one)
                if isinstance(node, ast.Name)
            ]
            self._named[name] = tuple(filter(None, map(self._place, dict.fromkeys(names))))
        return self._named[name]

    def _place(self, name: str) -> Place | None:
        return (self.name, name) if name in self.statements else self.imported.get(name)


def _origin(statement: ast.ImportFrom, module: str) -> str:
    relative = "." * statement.level + (statement.module or "")
    return importlib.util.resolve_name(relative, module.rpartition(".")[0] or module)


@functools.cache
def _module(name: str) -> _Module:
    return _Module(name)


def _parsed(module: str) -> ast.Module:
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return ast.Module([], [])
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))


def _declared(statement: ast.stmt) -> Iterator[str]:
    """Yields the names that a statement defines, and the operator to which it adds something."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
        for decorator in statement.decorator_list:
            yield from _root(decorator)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))
    elif isinstance(statement, ast.AnnAssign):
        yield from _root(statement.target)
    elif isinstance(statement, ast.Expr):
        yield from _root(statement.value)
    elif isinstance(statement, (ast.For, ast.If, ast.With, ast.Try)):
        for inner in ast.walk(statement):
            if inner is not statement and isinstance(inner, ast.stmt):
                yield from _declared(inner)


def _root(expression: ast.expr) -> Iterator[str]:
    """Yields the first name: ``softmax`` in ``softmax.gradient`` and ``softmax.on_rows(...)``."""
    inner = expression
    while isinstance(inner, (ast.Attribute, ast.Call)):
        inner = inner.value if isinstance(inner, ast.Attribute) else inner.func
    if isinstance(inner, ast.Name):
        yield inner.id


def _dump(part: object) -> str:
    """Returns a syntax tree without docstrings as text, equal in all versions of Python.

    Their empty fields differ.
    """
    if isinstance(part, list):
        return f"[{', '.join(map(_dump, part))}]"
    if not isinstance(part, ast.AST):
        return repr(part)
    fields = [f"{name}={_dump(one)}" for name, one in _fields(part) if one not in (None, [])]
    return f"{type(part).__name__}({', '.join(fields)})"


def _fields(part: ast.AST) -> Iterator[tuple[str, object]]:
    """Yields the fields of a node; bodies of definitions are without texts, if not without all."""
    for name, value in ast.iter_fields(part):
        if name == "body" and isinstance(part, (ast.FunctionDef, ast.ClassDef)):
            yield name, [one for one in part.body if not _is_text(one)] or [ast.Pass()]
        else:
            yield name, value


def _numbered(statement: ast.stmt) -> ast.stmt:
    """Returns ``statement`` with numbers as the names of local variables."""
    result = copy.deepcopy(statement)
    for function in _outermost_functions(result):
        _number_locals(function)
    return result


def _outermost_functions(node: ast.AST) -> Iterator[ast.FunctionDef]:
    if isinstance(node, ast.FunctionDef):
        yield node
    else:
        for inner in ast.iter_child_nodes(node):
            yield from _outermost_functions(inner)


def _number_locals(function: ast.FunctionDef) -> None:
    """Renames the variables of a function and of those inside; different names stay different."""
    names = [one for one in ast.walk(function) if isinstance(one, ast.Name)]
    kept = set(_lasting_names(function))
    numbers: dict[str, str] = {}
    for one in names:
        if isinstance(one.ctx, ast.Store) and one.id not in kept:
            numbers.setdefault(one.id, f"${len(numbers)}")  # a name that no code has
    for one in names:
        one.id = numbers.get(one.id, one.id)


def _lasting_names(function: ast.FunctionDef) -> Iterator[str]:
    """Yields the names with a meaning elsewhere: of parameters, globals, and parts of classes."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif isinstance(node, ast.ClassDef):
            yield from (one.id for one in ast.walk(node) if isinstance(one, ast.Name))


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
