"""Scopes and the executor: programs run on arrays, compiled once for each combination of types."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

import symop as so
from registry.errors import FeedError
from symop.interop.paddle.arrays import Elements
from symop.interop.paddle.compiling import Type, fed, persistables, translate, types_of
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.framework import ProgramDesc
from symop.interop.paddle.guards import default_main_program
from symop.interop.paddle.programs import Program, name_of
from symop.interop.paddle.specializing import Specialized
from symop.program import scope as scopes


class Scope(scopes.Scope):
    """The values of variables by name, which ``find_var`` returns as Paddle does.

    Example:
        >>> scope = Scope()
        >>> scope["w"] = np.ones(2, np.float32)
        >>> np.asarray(scope.find_var("w").get_tensor())
        array([1., 1.], dtype=float32)
    """

    def find_var(self, name: str) -> "Held | None":
        """Returns a variable, or None if it has no value."""
        return Held(self, name) if name in self else None

    def var(self, name: str) -> "Held":
        """Returns a variable, which may have no value yet."""
        return Held(self, name)


class Held:
    """A variable of a scope.

    Attributes:
        scope: the scope.
        name: the variable's name.
    """

    def __init__(self, scope: scopes.Scope, name: str) -> None:
        """Makes a view of a variable."""
        self.scope = scope
        self.name = name

    def get_tensor(self) -> "Held":
        """Returns itself; ``numpy.asarray`` makes an array of it."""
        return self

    def set(self, value: Any, place: Any = None) -> None:
        """Gives the variable a value; ``place`` is accepted as in Paddle."""
        del place
        self.scope[self.name] = np.asarray(value)

    def shape(self) -> list[int]:
        """Returns the lengths of the value."""
        return list(np.shape(self.scope[self.name]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Returns the value as an array of NumPy."""
        del copy
        return np.asarray(self.scope[self.name], dtype)


_scopes: list[scopes.Scope] = [Scope()]


def global_scope() -> Any:
    """Returns the scope in which programs keep their variables: a mapping from names to arrays."""
    return _scopes[-1]


@contextlib.contextmanager
def scope_guard(scope: scopes.Scope) -> Iterator[scopes.Scope]:
    """Makes ``scope`` the global scope inside of a ``with`` statement."""
    _scopes.append(scope)
    try:
        yield scope
    finally:
        _scopes.pop()


class Executor:
    """Runs programs, as ``paddle.static.Executor`` does.

    A program is compiled once for each combination of shapes, dtypes and fetched variables, and of
    those offsets, lengths and other integers among the feeds that shapes depend on.

    Example:
        >>> from symop.interop import paddle
        >>> program, feeds, fetches = paddle.load_inference_model(folder)  # doctest: +SKIP
        >>> paddle.Executor().run(program, {feeds[0]: x}, fetches)  # doctest: +SKIP
    """

    def __init__(self, place: Any = None) -> None:
        """Creates an executor. ``place`` is accepted as in Paddle; JAX chooses the device."""
        self.place = place
        self._compiled: dict[Any, Specialized] = {}
        self._known: WeakKeyDictionary[Program, dict[Any, _Last]] = WeakKeyDictionary()

    def run(
        self,
        program: Any = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Any] | None = None,
        *,
        scope: scopes.Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool | None = None,
    ) -> list[Any]:
        """Runs a program once, updates included, and returns the fetched values.

        Args:
            program: the program, by default that which layers append to.
            feed: arrays by name; ragged sequences are ``LoDTensor`` values or pairs of an array
                and lists of lengths.
            fetch_list: variables or their names.
            scope: the values of persistable variables, by default the global scope.
            return_numpy: whether arrays are NumPy's, and ragged values their data alone.
            use_program_cache: whether the program is the same as in the last run with equal types
                of feeds. By default, it is looked for changes if its records were asked for since,
                by ``program.desc``, ``block.ops``, or a layer; False always looks for them.

        Raises:
            PaddleError: a variable is missing or unknown, or an operator is not defined.
            FeedError: an integer does not fit into the integers of JAX.
        """
        chosen = _program_of(program)
        arrays = fed(feed or {})
        names = [name_of(one) for one in fetch_list or ()]
        home = global_scope() if scope is None else scope
        known = self._known.setdefault(chosen, {})
        key = (id(home), tuple(names), chosen.max_steps, tuple(map(_type_of, arrays.items())))
        last = known.get(key)
        if last is None or not last.holds(chosen, home, use_program_cache):
            specialized = self._of(chosen, arrays, names, home)
            last = known[key] = _Last(home, chosen.accesses, chosen.draws, specialized)
        with _seeded(chosen.random_seed) if last.draws else _AS_IS:
            try:
                results = last.specialized.of(arrays)(arrays)
            except FeedError:  # a variable in the scope has another type than in the last run
                specialized = self._of(chosen, arrays, names, home)
                if specialized is last.specialized:
                    raise
                known[key] = last._replace(specialized=specialized)
                results = specialized.of(arrays)(arrays)
        return [_plain(one) for one in results] if return_numpy else results

    def close(self) -> None:
        """Forgets the compiled programs."""
        self._compiled.clear()
        self._known.clear()

    def _of(
        self, program: Program, arrays: Mapping[str, Any], names: Sequence[str], scope: scopes.Scope
    ) -> Specialized:
        kept = _kept(program.records, scope, arrays)
        feed = types_of(arrays, _counts(arrays))
        key = (
            id(scope),
            program.fingerprint(),
            tuple(sorted(feed.items())),
            tuple(kept.items()),
            tuple(names),
            program.max_steps,
        )
        if key not in self._compiled:
            _require_declared(program.records, feed)
            translation = partial(translate, program.records, feed, kept, names, program.max_steps)
            self._compiled[key] = Specialized(translation, scope, [*kept])
        return self._compiled[key]


class _Last(NamedTuple):
    """What the last run with some types of feeds used.

    Attributes:
        scope: the scope.
        accesses: how often the program's records had been asked for.
        draws: whether operators draw random numbers.
        specialized: the compiled programs for these types.
    """

    scope: scopes.Scope
    accesses: int
    draws: bool
    specialized: Specialized

    def holds(self, program: Program, scope: scopes.Scope, told: bool | None) -> bool:
        """Returns whether a run may use it; ``told`` is what the user says of the program."""
        unchanged = self.accesses == program.accesses if told is None else told
        return self.scope is scope and unchanged


def _type_of(item: tuple[str, Any]) -> tuple[Any, ...]:
    name, array = item
    return name, array.shape, array.dtype


def _program_of(given: Any) -> Program:
    """Returns a program, that of a ``CompiledProgram``, or the default one."""
    if given is None:
        return default_main_program()
    found = getattr(given, "program", given)
    if not isinstance(found, Program):
        raise PaddleError(f"run: program must be a Program, got {type(given).__name__}")
    return found


_AS_IS = contextlib.nullcontext()


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Lets random operators draw the same numbers in every run, if a program has a seed."""
    if not seed:
        yield
        return
    state = so.random.get_state()
    so.random.seed(seed)
    try:
        yield
    finally:
        so.random.set_state(state)


def _kept(desc: ProgramDesc, scope: scopes.Scope, arrays: Mapping[str, Any]) -> dict[str, Type]:
    """Returns the types of the persistable variables that have values."""
    names = [one.name for one in persistables(desc) if one.name not in arrays]
    return {
        name: Type(tuple(np.shape(scope[name])), np.dtype(scope[name].dtype))
        for name in names
        if name in scope
    }


def _counts(arrays: Mapping[str, Any]) -> dict[str, list[int]]:
    """Returns the number of sequences of each level of ragged values."""
    counts: dict[str, list[int]] = {}
    for name, one in arrays.items():
        owner, at, _ = name.partition("@LOD")
        if at:
            counts.setdefault(owner, []).append(len(one) - 1)
    return counts


def _require_declared(desc: ProgramDesc, feed: Mapping[str, Type]) -> None:
    """Rejects feeds that the program does not declare, or whose shapes differ.

    Raises:
        PaddleError: the first of them.
    """
    for name, type_ in feed.items():
        variable = desc.blocks[0].vars.get(name)
        if variable is None:
            raise PaddleError(f"feed: names must be those of variables, got {name!r}")
        shape = variable.shape
        if shape is not None and not _fits(type_.shape, shape):
            raise PaddleError(
                f"feed: {name} must have shape {list(shape)}, got {list(type_.shape)}"
            )


def _fits(shape: Sequence[int], declared: Sequence[int]) -> bool:
    return len(shape) == len(declared) and all(
        one < 0 or one == length for one, length in zip(declared, shape, strict=True)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, so.LoDTensor):
        return np.asarray(value.data)
    if hasattr(value, "__array__"):
        return np.asarray(value)
    return [_plain(one) for one in value] if isinstance(value, Elements) else value
