"""Random graphs over the catalogue's cases, run in every way that symop has, against plain JAX.

A recipe is a graph as data: inputs with their arrays, and calls of operators. Plain JAX runs the
kernels one after another and differentiates them by itself; each road runs the same recipe through
a part of symop (graph gradients, rules, files, programs, eager arrays, loops, rematerialization,
vmap). A road fails if it raises, or if a value, a first or a second derivative differs. What fails
is shrunk and printed as a script. Run by ``make fuzz``.

python tests/fuzz_graphs.py --seconds 300 --seed 0
python tests/fuzz_graphs.py --only 17            one graph
"""

import argparse
import ast
import contextlib
import dataclasses
import functools
import itertools
import multiprocessing
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # the platform above is read when JAX is imported
import jax.numpy as jnp
import numpy as np

import registry
import symop as so
from registry.cases import Case, reshaped
from registry.errors import SymopError
from registry.operator.operator import Derivative, Operator
from symop import autograd, nd
from symop.io.serialize import decode

Reference = str | list[str]
"""The name of a value, or of the values of a variadic slot."""


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of an operator.

    Attributes:
        operator: its name.
        inputs: the name of the value in each slot.
        attributes: literals; a dtype is its name.
        results: names of the visible outputs.
    """

    operator: str
    inputs: dict[str, Reference]
    attributes: dict[str, Any]
    results: tuple[str, ...]

    def names(self) -> list[str]:
        """Names of the values that the call reads."""
        return [*flattened(self.inputs.values())]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A graph as data.

    Attributes:
        inputs: arrays by name; the floating ones are differentiated.
        calls: in the order in which they run.
        terms: the loss is the sum of these values' entries, each times a fixed weight.
    """

    inputs: dict[str, np.ndarray]
    calls: tuple[Call, ...]
    terms: tuple[str, ...]

    @property
    def wrt(self) -> list[str]:
        """Names of the inputs that are differentiated."""
        return [name for name, value in self.inputs.items() if is_floating(value)]

    def __str__(self) -> str:
        arrays = [f"        {name!r}: {written(value)}," for name, value in self.inputs.items()]
        calls = [f"        {call}," for call in self.calls]
        rows = ["Recipe(", "    inputs={", *arrays, "    },", "    calls=(", *calls, "    ),"]
        return "\n".join([*rows, f"    terms={self.terms!r},", ")"])


def flattened(references: Any) -> Iterator[str]:
    """The names in ``references``, variadic slots spread."""
    for one in references:
        yield from [one] if isinstance(one, str) else one


def written(value: np.ndarray) -> str:
    """An array as Python."""
    return f"np.array({value.tolist()!r}, {str(value.dtype)!r}).reshape({value.shape!r})"


def is_floating(value: Any) -> bool:
    """Whether an array has a floating dtype, those of ``ml_dtypes`` among them."""
    return bool(jnp.issubdtype(value.dtype, jnp.floating))


# Running a recipe ------------------------------------------------------------------------------


def run(recipe: Recipe, feed: Mapping[str, Any], apply: Callable[..., Any]) -> dict[str, Any]:
    """All values by name; ``apply(operator, inputs, attributes)`` returns the visible outputs."""
    values = dict(feed)
    for call in recipe.calls:
        inputs = {
            slot: values[one] if isinstance(one, str) else [values[name] for name in one]
            for slot, one in call.inputs.items()
        }
        results = apply(registry.get(call.operator), inputs, call.attributes)
        values.update(zip(call.results, results, strict=True))
    return values


def by_call(operator: Operator, inputs: Any, attributes: Any) -> tuple[Any, ...]:
    """A call as a user writes it, on values of any kind."""
    result = operator(**inputs, **attributes)
    several = isinstance(result, so.Symbol) and len(result.list_outputs()) > 1
    return tuple(result) if several or isinstance(result, tuple) else (result,)


def by_kernel(operator: Operator, inputs: Any, attributes: Any) -> tuple[Any, ...]:
    """The kernel alone on JAX arrays: nothing of symop's graphs and rules."""
    flat, attributes, _ = operator.bind((), {**inputs, **attributes})
    operator = operator.resolved(flat, attributes)
    result = operator.kernel(*flat, **operator.attribute_dict(attributes))
    results = (result,) if operator.single else tuple(result)
    return tuple(results[i] for i in operator.visible)


def weight(shape: tuple[int, ...]) -> np.ndarray:
    """What an entry of a term or of a gradient is multiplied by: no two alike."""
    return np.cos(np.arange(np.prod(shape, dtype=int)) + 0.5).reshape(shape)


def total(values: Sequence[Any], add: Callable[..., Any]) -> Any:
    """The sum of the weighted entries; ``add`` sums those of an array."""
    weighted = [add(one * weight(tuple(one.shape))) for one in values]
    return functools.reduce(lambda one, other: one + other, weighted)


Levels = tuple[list[Any], list[Any], list[Any]]
"""The terms and the loss, the gradients, and the gradients of their weighted sum."""


def plain(recipe: Recipe) -> Callable[[dict[str, Any]], Levels]:
    """The recipe and its derivatives by JAX alone."""

    def loss(active: dict[str, Any], rest: dict[str, Any]) -> Any:
        values = run(recipe, {**active, **rest}, by_kernel)
        terms = [values[name] for name in recipe.terms]
        return total(terms, jnp.sum), terms

    def slope(active: dict[str, Any], rest: dict[str, Any]) -> Any:
        gradients, (terms) = jax.grad(loss, has_aux=True)(active, rest)
        found = [gradients[name] for name in recipe.wrt]
        return total(found, jnp.sum), (terms, found)

    def levels(feed: dict[str, Any]) -> Levels:
        active = {name: feed[name] for name in recipe.wrt}
        rest = {name: value for name, value in feed.items() if name not in active}
        second, (terms, found) = jax.grad(slope, has_aux=True)(active, rest)
        value, _ = loss(active, rest)
        return [*terms, value], found, [second[name] for name in recipe.wrt]

    return levels


# Roads -----------------------------------------------------------------------------------------


def symbols(recipe: Recipe) -> tuple[dict[str, so.Symbol], list[so.Symbol], so.Symbol]:
    """The variables, the terms and the loss as symbols."""
    feed = {name: so.var(name, one.shape, one.dtype) for name, one in recipe.inputs.items()}
    values = run(recipe, feed, by_call)
    terms = [values[name] for name in recipe.terms]
    return feed, terms, total(terms, so.sum)


def symbolic(recipe: Recipe) -> list[so.Symbol]:
    """Terms, loss, gradients and second derivatives: all of them symbols."""
    feed, terms, loss = symbols(recipe)
    wrt = [feed[name] for name in recipe.wrt]
    first = so.grad(loss, wrt, unreachable="zero")
    second = so.grad(total(first, so.sum), wrt, unreachable="zero")
    return [*terms, loss, *first, *second]


def levels_of(recipe: Recipe, flat: Sequence[Any]) -> Levels:
    """A flat list of results by level."""
    count, wrt = len(recipe.terms) + 1, len(recipe.wrt)
    return list(flat[:count]), list(flat[count : count + wrt]), list(flat[count + wrt :])


def called(recipe: Recipe, function: Callable[..., Any], symbol: so.Symbol) -> Any:
    """A lowered function on the arrays of the variables that the symbol still reads."""
    results = jax.jit(function)(**{name: recipe.inputs[name] for name in symbol.list_arguments()})
    return results if isinstance(results, (list, tuple)) else [results]


def along_graph(recipe: Recipe) -> Levels:
    """Gradients as graphs, lowered at once."""
    group = so.Group(symbolic(recipe))
    return levels_of(recipe, called(recipe, group.to_jax(), group))


def along_rules(recipe: Recipe) -> Levels:
    """JAX differentiates the lowered function, by the makers."""
    _, terms, loss = symbols(recipe)
    group = so.Group([*terms, loss])
    function, read = group.to_jax(), group.list_arguments()
    wrt = [name for name in recipe.wrt if name in read]

    def levels(feed: dict[str, Any]) -> tuple[Any, Any, Any]:
        active = {name: feed[name] for name in wrt}
        rest = {name: value for name, value in feed.items() if name not in active}
        first = jax.grad(lambda one: function(**one, **rest)[-1])
        second = jax.grad(lambda one: total([*first(one).values()], jnp.sum))
        return function(**feed), first(active), second(active)

    values, first, second = jax.jit(levels)({name: recipe.inputs[name] for name in read})
    zeros = {name: np.zeros_like(recipe.inputs[name]) for name in recipe.wrt}
    return list(values), [*(zeros | first).values()], [*(zeros | second).values()]


def along_files(recipe: Recipe) -> Levels:
    """The graph is saved as JSON, loaded, and saved again."""
    group = so.Group(symbolic(recipe))
    text = group.tojson()
    loaded = so.load_json(text)
    assert loaded.tojson() == text, "what is loaded is another graph"
    return levels_of(recipe, called(recipe, loaded.to_jax(), loaded))


def along_program(recipe: Recipe) -> Levels:
    """The graph is recorded as a program, written and parsed, and run."""
    program = so.Program()
    feed = {name: program.data(name, v.shape, v.dtype) for name, v in recipe.inputs.items()}
    values = run(recipe, feed, by_call)
    terms = [values[name] for name in recipe.terms]
    loss = total(terms, so.sum)
    wrt = [feed[name] for name in recipe.wrt]
    first = so.grad(loss, wrt, unreachable="zero")
    second = so.grad(total(first, so.sum), wrt, unreachable="zero")
    fetch = [*terms, loss, *first, *second]
    assert so.Program.parse(str(program)) == program, "what is parsed is another program"
    assert so.Program.from_desc(decode(program.tojson())) == program, "what is loaded is another"
    return levels_of(recipe, program.run(recipe.inputs, fetch))


def along_eager(recipe: Recipe) -> Levels:
    """Eager arrays and the tape."""
    feed = {name: nd.array(value, dtype=value.dtype) for name, value in recipe.inputs.items()}
    wrt = [feed[name] for name in recipe.wrt]
    for one in wrt:
        one.attach_grad()
    with autograd.record():
        values = run(recipe, feed, by_call)
        terms = [values[name] for name in recipe.terms]
        loss = total(terms, nd.sum)
        anchor = loss + total(wrt, nd.sum) * 0.0  # every input is reached
        first = autograd.grad(anchor, wrt, create_graph=True)
        slope = total(first, nd.sum) + total(wrt, nd.sum) * 0.0
    second = autograd.grad(slope, wrt)
    flat = [*terms, loss, *first, *second]
    return levels_of(recipe, [one.asnumpy() for one in flat])


def along_remat(recipe: Recipe) -> Levels:
    """The gradient computes again what it does not keep."""
    _, terms, loss = symbols(recipe)
    policies = [so.remat.segments(2), so.remat.keep_costly(), so.remat.segments()]
    policy = policies[len(recipe.calls) % len(policies)]
    wrt = [name for name in recipe.wrt if name in loss.list_arguments()]
    function = so.value_and_grad(loss, wrt, remat=policy)
    read = {name: recipe.inputs[name] for name in loss.list_arguments()}
    value, slopes = jax.jit(function)(**read)
    zeros = {name: np.zeros_like(recipe.inputs[name]) for name in recipe.wrt}
    group = so.Group(terms)
    return [*called(recipe, group.to_jax(), group), value], [*(zeros | slopes).values()], []


def along_vmap(recipe: Recipe) -> Levels:
    """A batch of two equal rows through ``jax.vmap`` of the lowered function."""
    group = so.Group(symbolic(recipe)[: len(recipe.terms) + 1 + len(recipe.wrt)])
    read = {name: recipe.inputs[name] for name in group.list_arguments()}
    batch = {name: np.stack([value, value]) for name, value in read.items()}
    both = jax.jit(jax.vmap(lambda feed: group.to_jax()(**feed)))(batch)
    return levels_of(recipe, [one[1] for one in both])


ROADS: dict[str, Callable[[Recipe], Levels]] = {
    "graph": along_graph,
    "rules": along_rules,
    "files": along_files,
    "program": along_program,
    "eager": along_eager,
    "remat": along_remat,
    "vmap": along_vmap,
}


# Comparing -------------------------------------------------------------------------------------

_MOVED = 2
"""How often the inputs are moved to see how far rounding may carry."""
_JUMP = 1e-2
"""A relative change that rounding does not make: the point lies on a jump."""


class DifferenceError(AssertionError):
    """A road's result differs from plain JAX's."""


class Truth:
    """What plain JAX computes, and how far each result moves when the inputs are rounded."""

    def __init__(self, recipe: Recipe) -> None:
        """Compile and run the recipe by JAX alone; ``seconds`` is what that takes."""
        started = time.perf_counter()
        function = jax.jit(plain(recipe))
        self.levels = [list(map(np.asarray, level)) for level in function(recipe.inputs)]
        self.seconds = time.perf_counter() - started
        self.eps = max(epsilon(one) for one in self._floating(recipe))
        moved = [function(self._moved(recipe, i)) for i in range(_MOVED)]
        self.noise = [
            [max(distance(row[k][i], one) for row in moved) for i, one in enumerate(level)]
            for k, level in enumerate(self.levels)
        ]

    def _floating(self, recipe: Recipe) -> Iterator[Any]:
        """Arrays of every floating dtype that is there."""
        yield from (recipe.inputs[name] for name in recipe.wrt)
        values = jax.eval_shape(lambda feed: run(recipe, feed, by_kernel), recipe.inputs)
        yield from (one for one in values.values() if is_floating(one))

    def _moved(self, recipe: Recipe, index: int) -> dict[str, np.ndarray]:
        generator = np.random.default_rng(index)
        moved = dict(recipe.inputs)
        for name in recipe.wrt:
            value = moved[name]
            factor = 1.0 + 4 * self.eps * generator.choice([-1.0, 1.0], value.shape)
            moved[name] = np.asarray(value * factor).astype(value.dtype)
        return moved

    def compare(self, levels: Levels) -> None:
        """Refuse ``levels`` where they differ by more than rounding explains."""
        names = ("value", "gradient", "second derivative")
        for name, mine, other, noise in zip(names, levels, self.levels, self.noise, strict=True):
            for i, (one, truth, moves) in enumerate(zip(mine, other, noise, strict=False)):
                self._compare(f"{name} {i}", np.asarray(one), truth, moves)

    def _compare(self, where: str, one: np.ndarray, truth: np.ndarray, moves: float) -> None:
        if (one.shape, one.dtype) != (truth.shape, truth.dtype):
            raise DifferenceError(
                f"{where}: the type must be {truth.dtype}{list(truth.shape)}, "
                f"got {one.dtype}{list(one.shape)}"
            )
        if not np.all(np.isfinite(as_double(truth))):
            return
        largest = float(np.max(np.abs(as_double(truth)), initial=0.0))
        if not moves <= _JUMP * largest + 1e3 * self.eps:
            return
        allowed = 1e3 * moves + max(1e-9, 1e3 * self.eps) * max(largest, 1e-3)
        if not distance(one, truth) <= allowed:
            raise DifferenceError(f"{where}: must be within {allowed:.1e} of\n{truth}\ngot\n{one}")


def epsilon(value: Any) -> float:
    """The rounding of a floating dtype."""
    return float(jnp.finfo(value.dtype).eps)


def as_double(value: Any) -> np.ndarray:
    """Entries as doubles; booleans and integers are numbers, too."""
    return np.asarray(value).astype("float64")


def distance(one: Any, other: Any) -> float:
    """The largest difference of two arrays' entries."""
    return float(np.max(np.abs(as_double(one) - as_double(other)), initial=0.0))


# Drawing a recipe ------------------------------------------------------------------------------


@functools.cache
def candidates() -> list[tuple[Operator, Case]]:
    """Calls of the catalogue that JAX can differentiate by itself and that a script can hold."""
    return [(one, case) for one in registry.operators() if is_plain(one) for case in legal(one)]


def is_plain(operator: Operator) -> bool:
    """Whether the kernel alone tells the value and the derivative."""
    declared = (Derivative.MAKER, Derivative.KERNEL, Derivative.ZERO)
    roles = {slot.role for slot in operator.slots}
    known = operator.catalogued and operator.derivative in declared
    takes_arrays = bool(roles) and roles <= {"input", "parameter"}
    return known and operator.native and not operator.opaque and takes_arrays


def legal(operator: Operator) -> Iterator[Case]:
    """Cases whose attributes are literals and whose inputs are small arrays."""
    for case in operator.cases:
        attributes = [v for name, v in case.values.items() if name not in operator.slot_index]
        if all(map(is_literal, attributes)) and "training" not in case.values:
            yield case


def is_literal(value: Any) -> bool:
    """Whether a script can hold ``value`` as it prints."""
    if isinstance(value, np.dtype):
        return True
    with contextlib.suppress(ValueError, SyntaxError):
        return bool(ast.literal_eval(repr(value)) == value)
    return False


DTYPES = ("float64", "float64", "float64", "float32", "mixed")
MIXED = ("float64", "float32", "bfloat16")
LARGEST = 30.0
"""Values beyond this are not read again: what follows would be all rounding."""
_ENTRIES = 600


class Drawer:
    """Draws a recipe, call by call, and runs each call so that the next one may read it."""

    def __init__(self, seed: int | Sequence[int], calls: int) -> None:
        """A recipe of about ``calls`` calls."""
        self.rng = np.random.default_rng(seed)
        self.dtype = str(self.rng.choice(DTYPES))
        self.inputs: dict[str, np.ndarray] = {}
        self.calls: list[Call] = []
        self.values: dict[str, Any] = {}
        self.read: set[str] = set()
        while len(self.calls) < calls:
            self._call()

    def recipe(self) -> Recipe:
        """What was drawn; the terms of the loss are the values that nothing else reads."""
        made = [name for call in self.calls for name in call.results]
        terms = [name for name in made if name not in self.read and self._is_usable(name)]
        return pruned(Recipe(self.inputs, tuple(self.calls), tuple(terms) or tuple(made[-1:])))

    def _call(self) -> None:
        pool = candidates()
        operator, case = pool[self.rng.integers(len(pool))]
        before = dict(self.inputs), list(self.calls), dict(self.values), set(self.read)
        try:
            inputs = {
                slot.name: self._slot(operator, case, slot.name)
                for slot in operator.slots
                if case.values.get(slot.name) is not None
            }
            attributes = {
                name: str(value) if isinstance(value, np.dtype) else value
                for name, value in case.values.items()
                if name not in operator.slot_index
            }
            self._add(operator, inputs, attributes)
        except (SymopError, UnfitError):  # what was wired does not fit this operator
            self.inputs, self.calls, self.values, self.read = before

    def _add(self, operator: Operator, inputs: Any, attributes: Any) -> tuple[str, ...]:
        """Append a call and run it."""
        arrays = {
            slot: self._value(one) if isinstance(one, str) else [self._value(n) for n in one]
            for slot, one in inputs.items()
        }
        by_call(operator, jax.tree.map(_variable, arrays), attributes)  # refuses what does not fit
        results = jax.jit(lambda feed: by_kernel(operator, feed, attributes))(arrays)
        if not all(isinstance(one, jax.Array) for one in results):
            raise UnfitError
        names = tuple(f"v{len(self.calls)}_{i}" for i in range(len(results)))
        self.calls.append(Call(operator.name, inputs, attributes, names))
        self.values.update(zip(names, results, strict=True))
        self.read.update(flattened(inputs.values()))
        return names

    def _slot(self, operator: Operator, case: Case, name: str) -> Reference:
        sample = case.values[name]
        if isinstance(sample, list):
            drawn = case.draw(name, np.dtype(self._dtype()))
            return [
                self._filled(array, plain=isinstance(one, tuple))
                for one, array in zip(sample, drawn, strict=True)
            ]
        entrywise = operator.infix is not None or len(operator.slots) == 1
        if entrywise and self.rng.random() < 0.05:
            shape = [(), (0,), (0, 3), (2, 1, 3)][self.rng.integers(4)]
            sample = reshaped(sample, shape) or sample
            case = dataclasses.replace(case, values={**case.values, name: sample})
        try:
            drawn = case.draw(name, np.dtype(self._dtype()))
        except (ValueError, np.linalg.LinAlgError) as error:  # matrices of another shape
            raise UnfitError from error
        return self._filled(drawn, plain=isinstance(sample, tuple))

    def _dtype(self) -> Any:
        name = str(self.rng.choice(MIXED)) if self.dtype == "mixed" else self.dtype
        return jnp.dtype(name)

    def _filled(self, drawn: Any, *, plain: bool) -> str:
        """The name of a value for a slot in which a case draws ``drawn``."""
        drawn = np.asarray(drawn)
        if drawn.size > _ENTRIES or drawn.dtype.kind in "cOUS":
            raise UnfitError
        if not is_floating(drawn):
            return self._input(drawn)
        same = [n for n in self._usable() if self._value(n).shape == drawn.shape]
        if plain and same and self.rng.random() < 0.7:
            return str(self.rng.choice(same))
        others = [n for n in self._usable() if n in self.values and self._value(n).size]
        fresh = self._input(drawn)
        if others and self.rng.random() < 0.7:
            return self._moved(fresh, str(self.rng.choice(others)))
        return fresh

    def _moved(self, fresh: str, other: str) -> str:
        """``fresh`` with a little of ``other`` added: it stays where the case needs it."""
        (mean,) = self._add(registry.get("mean"), {"x": other}, {})
        (bounded,) = self._add(registry.get("tanh"), {"x": mean}, {})
        (scaled,) = self._add(registry.get("scale"), {"x": bounded}, {"scale": 0.05})
        (moved,) = self._add(registry.get("add"), {"x": fresh, "y": scaled}, {})
        return moved

    def _input(self, drawn: np.ndarray) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = drawn
        return name

    def _value(self, name: str) -> Any:
        return self.values[name] if name in self.values else jnp.asarray(self.inputs[name])

    def _usable(self) -> list[str]:
        return [name for name in [*self.inputs, *self.values] if self._is_usable(name)]

    def _is_usable(self, name: str) -> bool:
        value = self._value(name)
        if not is_floating(value) or value.size > _ENTRIES:
            return False
        return bool(np.all(np.abs(as_double(value)) < LARGEST))  # False of NaN


class UnfitError(Exception):
    """What was drawn is no call that a script can hold."""


def _variable(array: Any) -> so.Symbol:
    return so.var("x", array.shape, array.dtype)


def pruned(recipe: Recipe) -> Recipe:
    """The recipe without the calls and inputs that no term needs."""
    needed, kept = set(recipe.terms), []
    for call in reversed(recipe.calls):
        if needed & set(call.results):
            needed.update(call.names())
            kept.append(call)
    inputs = {name: value for name, value in recipe.inputs.items() if name in needed}
    return Recipe(inputs, tuple(reversed(kept)), recipe.terms)


STEPS = 12
"""How often a block is repeated: often enough for lowering to make it a loop."""


def repeated(recipe: Recipe, *, shared: bool) -> Recipe:
    """``recipe`` again and again, each time a little of what it computes added to one input.

    The other inputs are the same in all steps if ``shared``; each step has its own if not.
    """
    carried, term = recipe.wrt[0], recipe.terms[0]
    inputs, calls, carry = {carried: recipe.inputs[carried]}, [], carried
    for step in range(STEPS):
        own = {name: name if shared else f"{name}_{step}" for name in recipe.inputs}
        inputs.update({own[n]: v for n, v in recipe.inputs.items() if n != carried})
        names = {**own, carried: carry}
        for call in recipe.calls:
            results = tuple(f"{name}_{step}" for name in call.results)
            calls.append(dataclasses.replace(renamed(call, names), results=results))
            names.update(zip(call.results, results, strict=True))
        stem = f"c{step}"
        calls.append(Call("mean", {"x": names[term]}, {}, (f"{stem}_mean",)))
        calls.append(Call("tanh", {"x": f"{stem}_mean"}, {}, (f"{stem}_tanh",)))
        calls.append(Call("scale", {"x": f"{stem}_tanh"}, {"scale": 0.05}, (f"{stem}_scaled",)))
        calls.append(Call("add", {"x": carry, "y": f"{stem}_scaled"}, {}, (stem,)))
        carry = stem
    return pruned(Recipe(inputs, tuple(calls), (carry,)))


def renamed(call: Call, names: Mapping[str, str]) -> Call:
    """``call`` on the values that have other names now."""
    inputs: dict[str, Reference] = {
        slot: names[one] if isinstance(one, str) else [names[name] for name in one]
        for slot, one in call.inputs.items()
    }
    return dataclasses.replace(call, inputs=inputs)


def drawn(seed: int, calls: int | None = None) -> Recipe:
    """The recipe of a seed: 5 to 60 calls, most recipes small, or a small one many times."""
    rng = np.random.default_rng([seed, 1])
    deep = rng.random() < 0.2
    count = calls or (3 if deep else int(5 + 55 * rng.random() ** 3))
    with jax.enable_x64(True):
        recipes = (Drawer([seed, again], count).recipe() for again in itertools.count())
        recipe = next(one for one in recipes if one.wrt)  # not of integers alone
    if not deep or not is_connected(recipe):
        return recipe
    return repeated(recipe, shared=bool(rng.integers(2)))


def is_connected(recipe: Recipe) -> bool:
    """Whether the first term has entries, so that a step may carry their mean."""
    with jax.enable_x64(True):
        values = run(recipe, recipe.inputs, by_kernel)
    return bool(values[recipe.terms[0]].size) and is_floating(values[recipe.terms[0]])


# Checking and shrinking ------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Failure:
    """A road on which a recipe fails."""

    road: str
    recipe: Recipe
    kind: str
    text: str


def check(recipe: Recipe, roads: Sequence[str] = tuple(ROADS)) -> list[Failure]:
    """The roads on which ``recipe`` fails."""
    failures = []
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        truth = Truth(recipe)
        for road in roads:
            try:
                truth.compare(ROADS[road](recipe))
            except Exception as error:
                text = "".join(traceback.format_exception(error)[-4:])
                failures.append(Failure(road, recipe, type(error).__name__, text))
    return failures


def shrunk(failure: Failure, seconds: float = 120.0) -> Failure:
    """The smallest recipe found in ``seconds`` that fails on the same road in the same way."""
    until = time.monotonic() + seconds
    best, size = failure, max(1, len(failure.recipe.calls) // 2)
    while time.monotonic() < until:
        smaller = next(
            (
                found
                for one in itertools.chain(fewer_terms(best.recipe), cut(best.recipe, size))
                if time.monotonic() < until and (found := _same_failure(one, failure))
            ),
            None,
        )
        if smaller is not None:
            best = smaller
        elif size == 1:
            break
        else:
            size //= 2
    return best


def _same_failure(recipe: Recipe, like: Failure) -> Failure | None:
    try:
        found = check(recipe, [like.road])
    except Exception:  # plain JAX does not take it, so nothing is told
        return None
    return next((one for one in found if one.kind == like.kind), None)


def fewer_terms(recipe: Recipe) -> Iterator[Recipe]:
    """The recipe with one half of its terms."""
    middle = len(recipe.terms) // 2
    if middle:
        yield pruned(dataclasses.replace(recipe, terms=recipe.terms[:middle]))
        yield pruned(dataclasses.replace(recipe, terms=recipe.terms[middle:]))


def cut(recipe: Recipe, size: int) -> Iterator[Recipe]:
    """The recipe without ``size`` calls in a row, whose results become inputs."""
    with jax.enable_x64(True):
        values = run(recipe, recipe.inputs, by_kernel)
    for start in range(0, len(recipe.calls), size):
        gone = recipe.calls[start : start + size]
        names = [name for call in gone for name in call.results]
        made = {name: np.asarray(values[name]) for name in names}
        calls = (*recipe.calls[:start], *recipe.calls[start + size :])
        terms = tuple(name for name in recipe.terms if name not in made)
        if terms:
            yield pruned(Recipe({**recipe.inputs, **made}, calls, terms))


def script(failure: Failure) -> str:
    """A Python program that shows the failure, to be run at the root of the repository."""
    return (
        "import sys\n\nsys.path.insert(0, 'tests')\nimport numpy as np\n"
        "from fuzz_graphs import Call, Recipe, check\n\n"
        f"recipe = {failure.recipe}\n"
        f"for one in check(recipe, [{failure.road!r}]):\n    print(one.text)\n"
    )


# The campaign ----------------------------------------------------------------------------------

LIMIT = 240.0
"""Seconds after which a graph's process is ended, and the graph told as one that hangs."""
SLOW = 8.0
"""A graph is slow if symop takes this many times what plain JAX takes to trace and compile it."""
GRAPHS_A_PROCESS = 25
"""Then a new process starts, so that memory stays bounded."""


@dataclasses.dataclass(frozen=True)
class Report:
    """What became of one seed.

    Attributes:
        calls: of its recipe.
        plain: seconds that plain JAX took to trace, compile and run it.
        ours: seconds that its graph took along with its gradients.
        failures: shrunk.
    """

    calls: int
    plain: float
    ours: float
    failures: tuple[Failure, ...]

    @property
    def slow(self) -> bool:
        """Whether compiling took too long."""
        return self.ours > 10.0 and self.ours > SLOW * self.plain


def roads_of(seed: int) -> list[str]:
    """The graph, and three more roads."""
    others = [road for road in ROADS if road != "graph"]
    chosen = np.random.default_rng([seed, 2]).permutation(len(others))[:3]
    return ["graph", *(others[i] for i in chosen)]


def report(seed: int) -> Report:
    """Draw, check and shrink one seed."""
    recipe = drawn(seed)
    with jax.enable_x64(True):
        plain = Truth(recipe).seconds
        started = time.perf_counter()
        with contextlib.suppress(Exception):  # told below
            along_graph(recipe)
        ours = time.perf_counter() - started
    failures = tuple(map(shrunk, check(recipe, roads_of(seed))))
    jax.clear_caches()
    return Report(len(recipe.calls), plain, ours, failures)


def _serve(connection: Any) -> None:
    """Answer seeds with reports, in a process of its own."""
    while (seed := connection.recv()) is not None:
        connection.send(report(seed))


class Worker:
    """A process that checks seeds, and can be ended when it hangs."""

    def __init__(self) -> None:
        """Start it."""
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()  # the end of the process is the end of the pipe
        self.served = 0

    def report(self, seed: int) -> Report | None:
        """What became of ``seed``; None if it hangs or its process dies."""
        self.served += 1
        self.connection.send(seed)
        with contextlib.suppress(EOFError):
            if self.connection.poll(LIMIT):
                received: Report = self.connection.recv()
                return received
        return None

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join()


def campaign(seeds: Iterator[int], seconds: float) -> int:
    """Check seeds until ``seconds`` have gone by; the number of them that fail."""
    until, failed, checked, worker = time.monotonic() + seconds, 0, 0, Worker()
    for seed in seeds:
        if time.monotonic() > until:
            break
        found = worker.report(seed)
        checked += 1
        failed += tell(seed, found)
        if found is None or worker.served >= GRAPHS_A_PROCESS:
            worker.end()
            worker = Worker()
    worker.end()
    print(f"{checked} graphs, {failed} of them fail")
    return failed


def tell(seed: int, found: Report | None) -> bool:
    """Print what became of a seed; whether it failed."""
    if found is None:
        print(f"seed {seed}: no answer in {LIMIT:.0f} s, or no process any more", flush=True)
        return True
    timing = f"{found.calls} calls, {found.ours:.1f} s, plain JAX {found.plain:.1f} s"
    verdict = ", ".join(one.road for one in found.failures) or ("slow" if found.slow else "holds")
    print(f"seed {seed}: {verdict} ({timing})", flush=True)
    for one in found.failures:
        print(f"\n{one.text}\n{script(one)}", flush=True)
    return bool(found.failures) or found.slow


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign that the command line asks for; 1 if a graph fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", type=int, nargs="+", help="these seeds alone")
    options = parser.parse_args(arguments)
    seeds = options.only or itertools.count(options.seed)
    return int(campaign(iter(seeds), float("inf") if options.only else options.seconds) > 0)


if __name__ == "__main__":
    sys.exit(main())
