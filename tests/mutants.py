"""Flips each sign of each gradient maker, one at a time: the proofs must see every one of them.

A mutant is a maker with one gradient negated, or with one ``+`` for ``-`` or one minus less in its
body or in a function of the catalogue that it calls. It is killed where a proof fails; a sign in a
function that several makers call, where a proof of one of them does. A mutant that no proof sees
is listed, and so is a maker on which a proof fails as it is, since such a proof tells nothing; the
exit status is then 1. Run by ``make mutants``.

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
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from xla_flags import with_quick_compilation

os.environ["XLA_FLAGS"] = with_quick_compilation(os.environ.get("XLA_FLAGS", ""))

import jax  # the flags above are read when JAX is imported
from tqdm import tqdm

import registry
from registry.operator.operator import Derivative, Operator
from registry.operator.rule import Rule
from registry.ops.core.entrywise import gradient_maker
from symop.lowering import rules
from symop.testing import PROOFS, check_gradient, derived, trial

RESULT = Path(__file__).parents[1] / "docs" / "mutants.json"
ORDERS = (1, 2)
"""A hidden output's cotangent is there from the second order on; most mutants die at the first."""


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
        if slot in returned(operator):
            yield Mutant(f"the gradient of {slot}", with_negated(maker, slot))


def says_something(gradient: Any) -> bool:
    """Whether there is a gradient, of one of several inputs at least."""
    if isinstance(gradient, (list, tuple)):
        return any(map(says_something, gradient))
    return gradient is not None


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


class UnprovedError(Exception):
    """The proofs fail on a maker as it is: they would seem to see every mutant of it."""


@functools.cache
def returned(operator: Operator) -> frozenset[str]:
    """The slots of which the maker has something to say in a case.

    Raises:
        UnprovedError: a proof fails on the maker as it is.
    """
    seen: set[str] = set()
    maker = rule_of(operator).function

    @functools.wraps(maker)
    def watching(*args: Any, **kwargs: Any) -> Any:
        grads = maker(*args, **kwargs)
        seen.update(slot for slot, one in grads.items() if says_something(one))
        return grads

    failure = with_maker(operator, watching, lambda: failure_of(operator))
    if failure is not None:
        raise UnprovedError(
            f"{operator.name}: the proofs must hold on the maker as it is, got {failure}"
        )
    return frozenset(seen)


# Signs in the source ---------------------------------------------------------------------------


def flipped_signs(operator: Operator, functions: Iterable[FunctionType]) -> Iterator[Mutant]:
    """One mutant for each sign in ``functions``, which are the maker or are called by it."""
    maker = function_of(operator)
    assert maker is not None
    for function in functions:
        for index, what in enumerate(map(flipped_text, signs(tree_of(function)))):
            name = tree_of(function).name
            yield Mutant(f"{name}: {what}", rebuilt(maker, function, index))


def function_of(operator: Operator) -> FunctionType | None:
    """The maker as a function that has a source, or None."""
    maker = inspect.unwrap(rule_of(operator).function)
    named = isinstance(maker, FunctionType) and maker.__name__ != "<lambda>"
    return maker if named else None


def parts_of(maker: FunctionType) -> list[FunctionType]:
    """The functions that a maker consists of: itself, or the rules for each slot."""
    rules = getattr(maker, "rules", None)
    return [maker] if rules is None else [one for one in rules.values() if one is not None]


@functools.cache
def called_by(maker: FunctionType) -> list[FunctionType]:
    """The functions of the catalogue that a maker calls, directly and through others."""
    found: dict[FunctionType, None] = {}
    waiting = parts_of(maker)
    while waiting:
        caller = waiting.pop()
        for node in ast.walk(tree_of(caller)):
            if not isinstance(node, ast.Name):
                continue
            one = caller.__globals__.get(node.id)
            if is_helper(one) and one not in (maker, *found):
                found[one] = None
                waiting.append(one)
    return list(found)


def is_helper(value: Any) -> bool:
    """Whether ``value`` is a function of the catalogue."""
    return isinstance(value, FunctionType) and value.__module__.startswith("registry.ops.")


def callers(operators: Iterable[Operator]) -> dict[FunctionType, list[Operator]]:
    """The functions that makers call, and the operators whose makers do."""
    found: dict[FunctionType, list[Operator]] = defaultdict(list)
    for operator in operators:
        maker = function_of(operator)
        for function in called_by(maker) if maker else []:
            found[function].append(operator)
    return found


@functools.cache
def tree_of(function: FunctionType) -> ast.FunctionDef:
    """The definition of a function, without its decorators."""
    if function.__name__ == "<lambda>":
        return definition_of(function)
    lines, _ = inspect.getsourcelines(function)
    definition = ast.parse(inspect.cleandoc("\n" + "".join(lines))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    return definition


def definition_of(function: FunctionType) -> ast.FunctionDef:
    """A lambda expression as a definition; it is found by its line and its parameters."""
    code = function.__code__
    names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    for node in ast.walk(ast.parse(Path(code.co_filename).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            arguments = node.args
            if [one.arg for one in (*arguments.args, *arguments.kwonlyargs)] == names:
                body = [ast.copy_location(ast.Return(node.body), node)]
                return ast.copy_location(ast.FunctionDef("rule", arguments, body, []), node)
    raise LookupError(f"no lambda with parameters {names} in line {code.co_firstlineno}")


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
    """``maker`` in copies of its modules' names in which one sign of ``function`` is flipped."""
    members = [*parts_of(maker), *called_by(maker)]
    worlds = {one.__module__: dict(one.__globals__) for one in members}
    made: dict[FunctionType, FunctionType] = {}
    for one in members:
        tree = copy.deepcopy(tree_of(one))
        if one is function:
            flip(signs(tree)[index], tree)
        module = ast.fix_missing_locations(ast.Module([tree], []))
        names = worlds[one.__module__]
        exec(compile(module, function.__code__.co_filename, "exec"), names)
        made[one] = names[tree.name]
    for names in worlds.values():
        names.update({name: made[one] for name, one in names.items() if is_in(one, made)})
    if maker in made:
        return made[maker]
    slots = list(maker.rules)
    rules = {slot: made.get(rule) for slot, rule in maker.rules.items()}
    return gradient_maker(maker.__name__, slots, rules)


def is_in(value: Any, functions: Mapping[FunctionType, Any]) -> bool:
    """Whether ``value`` is one of ``functions``."""
    return isinstance(value, FunctionType) and value in functions


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


def failure_of(operator: Operator, orders: Sequence[int] = ORDERS) -> str | None:
    """Why a proof of derivatives fails on a case; None if none does.

    That with complex numbers comes last: most mutants are seen without it.
    """
    tried = [(check_gradient, order, case) for order in orders for case in operator.cases]
    tried += [(PROOFS["complex"], orders[0], case) for case in operator.cases]
    for proof, order, case in tried:
        fresh = dataclasses.replace(case, order=min(order, case.order))
        forget()
        try:
            proof(operator, fresh)
        except Exception as error:  # a mutant that crashes is seen, too
            return f"{type(error).__name__}: {error}"
    return None


def forget() -> None:
    """What was made with another maker must not serve this one."""
    for module in (rules, trial, derived):
        for cached in vars(module).values():
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()


def seen_by(operator: Operator, mutant: Mutant) -> Callable[[], bool]:
    """Tells whether a proof of ``operator`` sees ``mutant``, and sees nothing without it."""

    def seen() -> bool:
        returned(operator)
        run = functools.partial(failure_of, operator)
        return with_maker(operator, mutant.maker, run) is not None

    return seen


Work = tuple[str, str | None, list[str]]
"""What is mutated: an operator's maker, or in a module a function that operators' makers call."""


def all_work(operators: Sequence[Operator]) -> Iterator[Work]:
    """The makers, then what they call."""
    for operator in operators:
        yield operator.name, None, [operator.name]
    for function, users in callers(operators).items():
        if signs(tree_of(function)):
            yield function.__name__, function.__module__, [one.name for one in users]


class Outcome(NamedTuple):
    """What came of one piece of work.

    Attributes:
        name: of the function.
        count: how many mutants there are.
        survivors: those that no proof sees.
        unproved: why the proofs tell nothing of them, or None.
    """

    name: str
    count: int
    survivors: list[str]
    unproved: str | None = None


def outcome_of(work: Work) -> Outcome:
    """How many mutants there are, and those that no proof sees."""
    told: dict[str, bool] = {}
    try:
        for what, run in mutants_of(work):
            told[what] = told.get(what, False) or run()
    except UnprovedError as error:
        return Outcome(work[0], 0, [], str(error))
    jax.clear_caches()  # compiled programs would fill the memory
    return Outcome(work[0], len(told), [what for what, seen in told.items() if not seen])


def outcomes(work: Iterable[Work], workers: int) -> Iterator[Outcome]:
    """What came of each piece of work, which several processes share."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as processes:
        yield from processes.map(outcome_of, work)


def mutants_of(work: Work) -> list[tuple[str, Callable[[], bool]]]:
    """The mutants by what they flip, and whether a proof sees each."""
    name, module, users = work
    operators = [registry.get(one) for one in users]
    if module is None:
        return of_maker(operators[0])
    function = getattr(sys.modules[module], name)
    return [
        (mutant.what, seen_by(one, mutant))
        for one in operators
        for mutant in flipped_signs(one, [function])
    ]


def of_maker(operator: Operator) -> list[tuple[str, Callable[[], bool]]]:
    """The mutants of a maker by what they flip, and whether a proof sees each."""
    maker = function_of(operator)
    own = flipped_signs(operator, parts_of(maker) if maker else [])
    return [
        (one.what, seen_by(operator, one))
        for one in itertools.chain(negated_gradients(operator), own)
    ]


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="operator")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    operators = [
        one
        for one in registry.operators()
        if one.derivative is Derivative.MAKER and one.cases
        if not arguments.names or one.name in arguments.names
    ]
    start, count, alive, unproved = time.perf_counter(), 0, dict[str, list[str]](), set[str]()
    work = list(all_work(operators))
    for found in tqdm(outcomes(work, arguments.workers), total=len(work), unit="function"):
        count += found.count
        if found.unproved is not None:
            unproved.add(found.unproved)
            print(found.unproved, flush=True)
        for what in found.survivors:
            alive.setdefault(found.name, []).append(what)
            print(f"{found.name}: {what}", flush=True)
    left, seconds = sum(map(len, alive.values())), time.perf_counter() - start
    print(
        f"{count} mutants of {len(operators)} makers, {left} survive, {len(unproved)} makers are "
        f"not proved as they are ({seconds:.0f} s)"
    )
    if not arguments.names and not unproved:
        result = {"makers": len(operators), "mutants": count, "survivors": alive}
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 1 if left or unproved else 0


if __name__ == "__main__":
    sys.exit(main())
