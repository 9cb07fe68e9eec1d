"""A fingerprint of all that an operator's meaning hangs on, and of what proves it.

Source code is read, not run: the top-level statements that declare the operator and those that
its derivatives are made of, and the statements that declare what these name, in their own package
and in the catalogue; so it is with the proofs. Comments, formats and docstrings do not count,
since no proof can depend on them; nor does what differentiates and runs operators.
"""

import ast
import copy
import functools
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path

from registry.audit import entry_of
from registry.operator import Operator
from registry.table import find

_LENGTH = 16
_CATALOGUE = ("registry.ops", "registry.shapes", "registry.row_kernels")
Place = tuple[str, str]
"""A module and a name that is declared at its top level."""


def fingerprint(operator: Operator) -> str:
    """Sixteen hexadecimal digits that change when a proof of the operator might.

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
    text = "\n".join([repr(start), _text(declared), _proofs()])
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def _place(operator: Operator) -> Place:
    return operator.kernel.__module__ or "", operator.kernel.__name__


def _text(places: Iterable[Place]) -> str:
    return "\n".join(f"{place}: {_module(place[0]).text(place[1])}" for place in sorted(places))


@functools.cache
def _proofs() -> str:
    """The text of the proofs themselves."""
    return _text(_closure([("symop.testing", "PROOFS")], ("symop.testing",)))


def _closure(starts: Iterable[Place], packages: tuple[str, ...]) -> set[Place]:
    """All that ``starts`` name within ``packages``, directly and through what they name."""
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
    """The top-level statements of a module by the names that they declare or extend."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.imported: dict[str, Place] = {}
        self.statements: dict[str, list[ast.stmt]] = {}
        self._texts: dict[str, str] = {}
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
        """The statements of ``name``, as what Python reads in them."""
        if name not in self._texts:
            found = self.statements.get(name, [])
            self._texts[name] = "\n".join(ast.dump(_without_docstring(one)) for one in found)
        return self._texts[name]

    def named_by(self, name: str) -> Iterator[Place]:
        """Where the names lie that the statements of ``name`` use."""
        for statement in self.statements.get(name, []):
            for node in ast.walk(statement):
                if not isinstance(node, ast.Name):
                    continue
                if node.id in self.statements:
                    yield self.name, node.id
                elif node.id in self.imported:
                    yield self.imported[node.id]


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
    """The names that a statement defines, and the operator that it says something of."""
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
    """``softmax`` of ``softmax.gradient`` and of ``softmax.zero_gradient(...)``."""
    inner = expression
    while isinstance(inner, (ast.Attribute, ast.Call)):
        inner = inner.value if isinstance(inner, ast.Attribute) else inner.func
    if isinstance(inner, ast.Name):
        yield inner.id


def _without_docstring(statement: ast.stmt) -> ast.stmt:
    if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return statement
    if ast.get_docstring(statement) is None:
        return statement
    bare = copy.copy(statement)
    bare.body = statement.body[1:] or [ast.Pass()]
    return bare
