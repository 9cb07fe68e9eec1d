"""One form of hook: a class lists what a higher layer defines."""

import ast
import functools
import re
from pathlib import Path

import pytest

import symop as so
from registry import Array, Operator
from registry.errors import DeclarationError
from registry.hooks import define
from registry.operator.bodies import Bodies
from registry.table import Changes
from registry.var import Arrays, Var
from symop.autodiff.gradients import Gradients
from symop.eager.recorded_symbol import _root
from symop.graph.nodes import topological
from symop.passes.remat.loops import is_loop

ROOT = Path(__file__).parents[1]
CACHED = {"symop/nd.py"}
"""Modules whose ``__getattr__`` stores what it found, as PEP 562 has it."""


@functools.cache
def modules():
    return list(parsed())


def parsed():
    for package in ("registry", "symop"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith("symop/interop/") and name not in CACHED:
                yield name, ast.parse(path.read_text())


def assigned(tree):
    """The names that a module assigns."""
    targets = [one for node in tree.body if isinstance(node, ast.Assign) for one in node.targets]
    annotated = [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    return {one.id for one in (*targets, *annotated) if isinstance(one, ast.Name)}


def patched(tree):
    """The objects of other modules, or classes, whose attributes a module sets on import."""
    for statement in tree.body:
        blocks = isinstance(statement, (ast.For, ast.If, ast.With, ast.Try))
        for node in ast.walk(statement) if blocks else [statement]:
            if isinstance(node, ast.Assign):
                yield from (one.value for one in node.targets if isinstance(one, ast.Attribute))
            elif isinstance(node, ast.Expr) and ast.unparse(node).startswith("setattr("):
                yield node.value.args[0]


def test_no_module_patches_another():
    found = {
        f"{name}: {ast.unparse(one)}"
        for name, tree in modules()
        for one in patched(tree)
        if ast.unparse(one) not in assigned(tree)
    }
    assert found == set()


def test_no_module_writes_its_names_as_text():
    found = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and not isinstance(node.ctx, ast.Load)
        and ast.unparse(node.value) == "globals()"
    }
    assert found == set()


def test_each_hook_is_defined():
    so.nd.ones(1)
    for owner in (so.NDArray, so.Symbol, so.Variable, Arrays, Bodies, Changes, Gradients):
        for name in set().union(*(vars(one).get("HOOKS", ()) for one in owner.__mro__)):
            assert getattr(owner, name, None) is not None, (owner, name)


def test_a_hook_is_declared():
    class Kind(Var):
        HOOKS = frozenset({"more"})

    define(Kind, more=1, emitter=None)
    assert Kind.more == 1
    with pytest.raises(DeclarationError, match="must be one of emitter, more, got 'less'"):
        define(Kind, more=2, less=1)
    assert Kind.more == 1


# Operators are known by what they are, not by their names -----------------------------------------


def test_an_operator_is_not_a_loop_for_its_name():
    def kernel(x: Array, *, body: int = 3) -> Array:
        """``x``."""
        return x

    node = Operator(kernel, name="scan")(so.var("x", (3,))).nodes[0]
    assert not is_loop(node)
    _, ys = so.scan(lambda c, x: (c + x, c), so.var("c", ()), so.var("xs", (3,)))
    assert any(map(is_loop, topological(ys.nodes)))
    found = so.while_loop(lambda c: c < 3, lambda c: c + 1, so.var("c", ()))
    assert any(map(is_loop, topological(found.nodes)))


def test_an_operator_does_not_stop_a_gradient_for_its_name():
    def kernel(x: Array) -> Array:
        """``x`` twice."""
        return x * 2

    x = so.var("x", (3,))
    doubled = Operator(kernel, name="stop_gradient")(x).nodes[0]
    assert _root(doubled) is doubled


def names_compared(tree):
    """Comparisons of an operator's name with text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            said = ast.unparse(node)
            if re.search(r"\b(op|operator)\.name\b", said) and not isinstance(node.ops[0], ast.Is):
                yield said


def test_no_engine_code_compares_names_of_operators():
    """Records, which hold operators by name, and lookups of names in the table may."""
    lower = ("graph", "autodiff", "lowering", "regions", "passes", "runtime", "eager", "symbol")
    found = {
        f"{name}: {said}"
        for name, tree in modules()
        if name.startswith(tuple(f"symop/{one}/" for one in lower))
        for said in names_compared(tree)
    }
    assert found == set()
