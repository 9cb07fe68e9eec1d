"""Flips each sign of each gradient maker, one at a time: the proofs must see every one of them.

A mutant is a maker with one gradient negated, or with one ``+`` for ``-`` or one minus less in its
body or in a function of its module that it calls. It is killed where a proof fails. Where a maker
is not the derivative of its kernel (``native=False``) the proofs have nothing else to compare it
with: there the golden text of the gradient program and the tests of edges see the sign. Such
mutants are counted by themselves. One that nothing sees is listed; the exit status is then 1. Run
by ``make mutants``.

python tests/mutants.py                 all operators
python tests/mutants.py softmax norm    some of them
"""

import argparse
import ast
import copy
import dataclasses
import functools
import inspect
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FunctionType
from typing import Any

import jax
from tqdm import tqdm

import registry
from registry.operator import Derivative, Operator
from registry.rule import Rule
from symop import rules
from symop.testing import check_gradient, check_linearity, derived, trial

RESULT = Path(__file__).parents[1] / "docs" / "mutants.json"
ORDER = 2
"""A hidden output's cotangent is there from the second order on."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A maker with one sign flipped.

    Attributes:
        what: which sign, for a person.
        maker: the function in place of the maker.
    """

    what: str
    maker: Callable[..., Any]


# Signs of what a maker returns -----------------------------------------------------------------


def negated_gradients(operator: Operator) -> Iterator[Mutant]:
    """One mutant for each slot that the maker returns a gradient for."""
    maker = rule_of(operator).function
    for slot in operator.slot_names:
        if returns_for(operator, slot):
            yield Mutant(f"the gradient of {slot}", with_negated(maker, slot))


def with_negated(maker: Callable[..., Any], slot: str) -> Callable[..., Any]:
    """``maker`` with the gradient of ``slot`` negated."""

    @functools.wraps(maker)
    def mutated(*args: Any, **kwargs: Any) -> Any:
        grads = dict(maker(*args, **kwargs))
        if slot in grads:
            grads[slot] = negated(grads[slot])
        return grads

    return mutated


def negated(gradient: Any) -> Any:
    """The negative of one gradient, of several, or of one that is made when it is wanted."""
    if gradient is None:
        return None
    if isinstance(gradient, (list, tuple)):
        return [negated(one) for one in gradient]
    if inspect.isfunction(gradient):
        return lambda: negated(gradient())
    return -gradient


def returns_for(operator: Operator, slot: str) -> bool:
    """Whether a case differentiates by ``slot`` and the maker has something to say of it."""
    seen = False
    maker = rule_of(operator).function

    @functools.wraps(maker)
    def watching(*args: Any, **kwargs: Any) -> Any:
        nonlocal seen
        grads = maker(*args, **kwargs)
        seen = seen or grads.get(slot) is not None
        return grads

    with_maker(operator, watching, lambda: killed(operator, order=1))
    return seen


# Signs in the source ---------------------------------------------------------------------------


def flipped_signs(operator: Operator) -> Iterator[Mutant]:
    """One mutant for each sign in the maker and in the functions of its module that it calls."""
    maker = rule_of(operator).function
    maker = inspect.unwrap(maker)
    if not isinstance(maker, FunctionType) or maker.__name__ == "<lambda>":
        return
    for function in [maker, *called_by(maker)]:
        tree = tree_of(function)
        for index, what in enumerate(map(flipped_text, signs(tree))):
            yield Mutant(f"{function.__name__}: {what}", rebuilt(maker, function, index))


def called_by(maker: FunctionType) -> list[FunctionType]:
    """The functions of the maker's module that it calls, directly and through others."""
    found: dict[str, FunctionType] = {}
    waiting = [maker]
    while waiting:
        for node in ast.walk(tree_of(waiting.pop())):
            if not isinstance(node, ast.Name):
                continue
            one = maker.__globals__.get(node.id)
            private = isinstance(one, FunctionType) and one.__module__ == maker.__module__
            if private and one is not maker and node.id not in found:
                found[node.id] = one
                waiting.append(one)
    return list(found.values())


@functools.cache
def tree_of(function: FunctionType) -> ast.FunctionDef:
    """The definition of a function, without its decorators."""
    lines, _ = inspect.getsourcelines(function)
    definition = ast.parse(inspect.cleandoc("\n" + "".join(lines))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    return definition


def signs(tree: ast.AST) -> list[ast.AST]:
    """Sums, differences and minus signs; not those of axes and of errors."""
    found, waiting = [], list(getattr(tree, "body", []))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Raise):
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            found.append(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not whole(node):
            found.append(node)
        waiting += list(ast.iter_child_nodes(node))
    return found


def whole(node: ast.UnaryOp) -> bool:
    """Whether it is a negative whole number: an axis, a place."""
    return isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int)


def flipped_text(node: ast.AST) -> str:
    """The expression whose sign is flipped, as text."""
    return f"line {node.lineno}: {ast.unparse(node)}"


def rebuilt(maker: FunctionType, function: FunctionType, index: int) -> FunctionType:
    """``maker`` in a copy of its module's names in which one sign of ``function`` is flipped."""
    names = dict(maker.__globals__)
    for one in {maker, *called_by(maker)}:
        tree = copy.deepcopy(tree_of(one))
        if one is function:
            flip(signs(tree)[index], tree)
        module = ast.fix_missing_locations(ast.Module([tree], []))
        exec(compile(module, function.__code__.co_filename, "exec"), names)
    made = names[maker.__name__]
    assert isinstance(made, FunctionType)
    return made


def flip(node: ast.AST, tree: ast.AST) -> None:
    """Flip the sign that ``node`` is, in place."""
    if isinstance(node, ast.BinOp):
        node.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
    elif isinstance(node, ast.UnaryOp):
        replace(tree, node, node.operand)


def replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    """Put ``new`` where ``old`` stands in ``tree``."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list):
                setattr(parent, field, [new if one is old else one for one in value])


# Killing ---------------------------------------------------------------------------------------


def rule_of(operator: Operator) -> Rule:
    """The rule that calls the maker."""
    assert operator.gradient_rule is not None
    return operator.gradient_rule


def with_maker(operator: Operator, maker: Callable[..., Any], run: Callable[[], Any]) -> Any:
    """``run()`` while ``operator`` has another gradient maker."""
    rule = rule_of(operator)
    before, rule.function = rule.function, maker
    try:
        return run()
    finally:
        rule.function = before


def killed(operator: Operator, order: int = ORDER) -> bool:
    """Whether a proof of derivatives fails on a case."""
    for case in operator.cases:
        fresh = dataclasses.replace(case, order=min(order, case.order))
        forget()
        try:
            check_gradient(operator, fresh)
            if not operator.compared:
                check_linearity(operator, fresh)
        except Exception:
            return True
    return False


def forget() -> None:
    """What was made with another maker must not serve this one."""
    for module in (rules, trial, derived):
        for cached in vars(module).values():
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()


def printed(operator: Operator) -> list[str]:
    """The gradient programs of all cases, as the golden texts show those of the first."""
    forget()
    tried = [one for case in operator.cases for one in trial.trials(operator, case, "float32")]
    return [derived.derivatives(one).graph.program(1) for one in tried if one.differentiable]


def survivors(name: str) -> tuple[str, list[str], list[str]]:
    """What sees each mutant of an operator, and the mutants that nothing sees."""
    operator = registry.get(name)
    assert not killed(operator), f"{name}: it must hold before it is changed"
    program = printed(operator)
    seen, alive = [], []
    for mutant in itertools.chain(negated_gradients(operator), flipped_signs(operator)):
        if with_maker(operator, mutant.maker, functools.partial(killed, operator)):
            seen.append("proof")
        elif not operator.compared and program != with_maker(
            operator, mutant.maker, functools.partial(printed, operator)
        ):
            seen.append("text")
        else:
            alive.append(mutant.what)
    jax.clear_caches()  # compiled programs would fill the memory
    return name, seen, alive


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="operator")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    names = arguments.names or [
        one.name for one in registry.operators() if one.derivative is Derivative.MAKER and one.cases
    ]
    start, alive = time.perf_counter(), {}
    seen: Counter[str] = Counter()
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as processes:
        found = processes.map(survivors, names)
        for name, seen_by, living in tqdm(found, total=len(names), unit="operator"):
            seen.update(seen_by)
            if living:
                alive[name] = living
    for name, living in alive.items():
        for what in living:
            print(f"{name}: {what}")
    left = sum(map(len, alive.values()))
    seconds = time.perf_counter() - start
    count = seen.total() + left
    print(
        f"{count} mutants of {len(names)} makers: proofs see {seen['proof']}, only the printed "
        f"program shows {seen['text']}, {left} survive ({seconds:.0f} s)"
    )
    if not arguments.names:
        result = {"makers": len(names), "mutants": count, "seen by": seen, "survivors": alive}
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
