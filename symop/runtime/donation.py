"""Compiled steps that donate their state and replace it in one operation of the interpreter.

JAX deletes arguments donated to a compiled function when the function starts. An exception could
then occur before the new state has replaced the old one, and both would be lost:

- A signal handler, such as that of Ctrl-C, may raise between any two bytecodes of the main thread.
  A single C call therefore computes and stores the new state: the built-in function that stores it
  (slice assignment, ``dict.update``, ``deque``) consumes an iterator that calls the compiled
  function. Python checks for signals only after that call.
- If JAX has no executable for a call, it runs Python code of its own after the execution. Before
  that, it looks the function up in its trace cache, by its hash, which ``_Hooked`` detects: it
  traces and compiles, and then defers signals until the new state is stored.
- ``jax_debug_nans`` and ``jax_debug_infs`` inspect the results after the state was donated, and a
  host callback may fail halfway. In both cases nothing is donated.
- A step that needs more memory than is available fails before anything is donated to it.

A handler that returns may have run the same step. Before the call that donates, this empties the
arguments of the step that it interrupts (``ChangedError``), or they are found deleted: that step
then runs again from the new state.

Signal handlers run in the main thread alone, so other threads need no protection. Exceptions that
another thread raises by ``PyThreadState_SetAsyncExc`` in the middle of JAX's Python code are not
supported.
"""

import contextlib
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, repeat, starmap
from types import FrameType
from typing import Any, TypeVar

import jax
import numpy as np

from registry.errors import BusyError
from registry.primitives import binds, callback_primitives
from symop.runtime.jax_messages import DONATED, IN_ITSELF

R = TypeVar("R")
Store = Callable[[Iterator[Any]], R]
"""Consumes an iterator of one item, the function's result, in the C call that stores it."""
_FIRST = (0,)
_BUSY = "step: it must not be called by a handler while it is compiled for the same arguments"
_debugs_nans, _debugs_infs = jax.debug_nans, jax.debug_infs
Handler = Callable[[int, FrameType | None], Any]


class _Hooked:
    """A function that detects when JAX looks up its trace because it has no executable.

    Attributes:
        function: The function.
        step: The step whose function it is.
    """

    __slots__ = ("__name__", "__qualname__", "__weakref__", "function", "step")

    def __init__(self, function: Callable[..., Any], step: "DonatingStep") -> None:
        self.function, self.step = function, step
        self.__name__ = self.__qualname__ = getattr(function, "__name__", "step")

    def __call__(self, *given: Any) -> Any:
        return self.function(*given)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        self.step.notice(_operands_of(self.step))
        return object.__hash__(self)


class KeepsError(Exception):
    """Raised if a step must not donate: it calls functions on the host or inspects its results."""


class ChangedError(Exception):
    """The state changed before the step ran; nothing was donated and nothing was stored."""


class TracedError(Exception):
    """Raised if JAX traces a step as part of another function: nothing must be stored."""


class Cell:
    """Holds the result of the last of several steps, which replace it and donate its arrays.

    Attributes:
        last: A deque that is empty, or holds one result, a list that begins with the new state. Its
            length is one, so ``extend`` replaces the result.
        given: The arguments of the step in progress. Any change of the state before the step runs
            empties them.
        lock: Held by a step that donates, and by a change of the state. A signal handler of the
            same thread acquires it, too.
    """

    __slots__ = ("given", "last", "lock")

    def __init__(self, *results: list[Any]) -> None:
        """Creates a cell with at most one result."""
        self.last: deque[list[Any]] = deque(results, maxlen=1)
        self.given: list[Any] = []
        self.lock = threading.RLock()

    def start(self, operands: list[Any]) -> None:
        """Registers the arguments of a step that starts; the caller holds the lock.

        A signal handler may start it in the middle of another step, which still reads its result
        from ``last``. That step keeps the deque, and this one gets a copy of it.
        """
        if self.given:
            self.given.clear()
            self.last = self.last.copy()
        self.given = operands

    def clear(self) -> None:
        """Removes the result."""
        self.last = deque(maxlen=1)


class DonatingStep:
    """A compiled function whose first argument, the state, is donated.

    Attributes:
        jaxpr: The jaxpr of the last program that was compiled; None before the first.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        """Compiles ``function(state, *rest)``, which returns lists, tuples and dicts of arrays.

        It must return other pytrees as ``symop.runtime.packing.pack`` does.

        Args:
            function: The function to compile.
            **options: Options of ``jax.jit``.
        """
        self._function, self._options = function, options
        self._keeping: Any = jax.jit(function, **options)
        self._fails = False
        self.jaxpr: Any = None
        self._noticed: dict[int, bool] = {}
        self._compile()

    def _compile(self) -> None:
        hooked = _Hooked(self._function, self)
        self._donating: Any = jax.jit(hooked, donate_argnums=0, **self._options)

    def into(self, store: Store[R], operands: Sequence[Any]) -> R:
        """Runs the step once and stores its result in the same operation of the interpreter.

        If anything is raised, either the state is unchanged or the new state is stored.

        Args:
            store: Consumes an iterator of one item, the function's result.
            operands: The state, which is donated, and the other arguments of the function.

        Returns:
            The result of ``store``.

        Raises:
            TracedError: The call is being traced by JAX; use ``inline``.
        """
        try:
            return self.donate(store, operands)
        except KeepsError:
            return self.keeping(store, operands)

    def donate(self, store: Store[R], operands: Sequence[Any]) -> R:
        """Runs the step like ``into``, but does nothing if the step must not donate.

        Raises:
            KeepsError: The step must not donate; use ``keeping``.
        """
        if self._fails or _debugs_nans.value or _debugs_infs.value:
            raise KeepsError
        try:
            return store(starmap(self._donating, filter(None, (operands,))))
        except BaseException as error:
            self._look_at(error, operands)
            raise
        finally:
            if self._noticed:
                self._end(operands)

    def replace(self, home: "deque[Any]", operands: list[Any]) -> Any:
        """Runs the step once; the same operation stores its result as the only item of ``home``.

        Args:
            home: A deque of length one, which nothing else extends until this returns.
            operands: As for ``into``. Any change of ``home`` before the step runs must empty it.

        Returns:
            The new item of ``home``.

        Raises:
            ChangedError: ``operands`` was emptied, or its arrays were donated.
            KeepsError: The step must not donate; use ``replace_keeping``.
            TracedError: As for ``into``.
        """
        before = home[0] if home else None
        self.donate(home.extend, operands)
        if not home or home[0] is before:
            raise ChangedError
        return home[0]

    def replace_keeping(self, home: "deque[Any]", operands: list[Any]) -> Any:
        """Acts like ``replace``, but donates nothing, and others may extend ``home`` meanwhile."""
        got: dict[int, Any] = {}
        self.keeping(lambda results: home.extend(map(got.setdefault, _FIRST, results)), operands)
        if not got:
            raise ChangedError
        return got[0]

    def notice(self, operands: Sequence[Any] | None) -> None:
        """Prepares once for a call for which JAX has no executable."""
        if operands is not None and id(operands) not in self._noticed:
            self._noticed[id(operands)] = False
            self._noticed[id(operands)] = self.prepare(operands)
            if not operands:
                raise ChangedError

    def _end(self, operands: Sequence[Any]) -> None:
        """Handles the signals that were deferred during a call."""
        if self._noticed.pop(id(operands), False):
            _deferral.end()

    def _look_at(self, error: BaseException, operands: Sequence[Any]) -> None:
        """Restores the step after an exception, and raises a more specific one if possible.

        Raises:
            BusyError: The call was made while the same call was compiled.
            ChangedError: A signal handler in the middle of the call donated its arguments.
        """
        if not operands and DONATED.is_in(error):
            raise ChangedError from error
        if id(operands) in self._noticed and not isinstance(error, (KeepsError, TracedError)):
            # JAX runs a call in Python forever after it failed to compile.
            self._compile()
        if IN_ITSELF.is_in(error):
            raise BusyError(_BUSY) from error

    def keeping(self, store: Store[R], operands: Sequence[Any]) -> R:
        """Runs the step like ``into``, but donates nothing and waits for the results."""
        result = self._keeping(*operands)
        jax.block_until_ready(result)  # type: ignore[no-untyped-call]  # of JAX
        return store(compress((result,), (operands,)))

    def inline(self, operands: Sequence[Any]) -> Any:
        """Returns the function's result as part of an enclosing trace."""
        return self._keeping(*operands)

    def lower(self, *given: Any) -> Any:
        """Lowers the step for ``given``, like ``jax.jit(...).lower``."""
        return self.trace(*given).lower()

    def _cache_size(self) -> int:
        return sum(one._cache_size() for one in (self._donating, self._keeping))

    def trace(self, *given: Any) -> Any:
        """Traces the step for ``given``, like ``jax.jit(...).trace``."""
        return self._donating.trace(*given)

    def prepare(self, operands: Sequence[Any]) -> bool:
        """Traces and compiles for ``operands``; returns whether signals are deferred since."""
        if not operands:
            raise ChangedError
        if _is_traced(operands):
            raise TracedError
        traced = self.trace(*operands)
        if binds(traced.jaxpr, callback_primitives()):
            self._fails = True
            raise KeepsError
        _require_room(traced.lower().compile())
        self.jaxpr = traced.jaxpr
        return _deferral.begin()


def _operands_of(step: DonatingStep) -> Sequence[Any] | None:
    """Returns the arguments of the innermost call of ``step`` in this thread.

    They are read from the stack, so a call costs nothing extra.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is _CALL and frame.f_locals[_STEP] is step:
            result: Sequence[Any] = frame.f_locals[_OPERANDS]
            return result
        frame = frame.f_back
    return None


_CALL = DonatingStep.donate.__code__
_STEP, _, _OPERANDS = _CALL.co_varnames[: _CALL.co_argcount]


def set_together(objects: Iterable[Any], attribute: str, values: Iterable[Any]) -> None:
    """Sets ``attribute`` of all ``objects`` in one operation of the interpreter.

    The attribute must be a slot or a plain entry of the instance dict.
    """
    deque(map(setattr, objects, repeat(attribute), values), 0)


def _is_traced(operands: Sequence[Any]) -> bool:
    """Whether JAX is tracing the call, so that nothing is executed or donated."""
    tracer = jax.core.Tracer
    if isinstance(jax.lax.neg(np.float32(0)), tracer):
        return True
    return any(isinstance(one, tracer) for one in jax.tree_util.tree_leaves(operands))


# Failures during a step --------------------------------------------------------------------------


def _require_room(executable: Any) -> None:
    """Raises an error if a program's results and temporaries cannot be allocated.

    Raises:
        JaxRuntimeError: Memory is insufficient; JAX would raise this after the state was donated.
    """
    analysis = executable.memory_analysis()
    if analysis is None:
        return
    results = analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    sizes = [max(results, 0), analysis.temp_size_in_bytes]
    free = _free(jax.local_devices()[0])
    if not _allocates(sizes) if free is None else sum(sizes) > free:
        raise jax.errors.JaxRuntimeError(
            f"RESOURCE_EXHAUSTED: Out of memory: the step needs {sum(sizes)} bytes in "
            "addition to its arguments; nothing was changed"
        )


def _free(device: Any) -> int | None:
    """Returns the number of bytes a device can still allocate, or None if it does not report it."""
    told = device.memory_stats()
    if not told or "bytes_limit" not in told:
        return None
    return int(told["bytes_limit"] - told["bytes_in_use"])


def _allocates(sizes: Sequence[int]) -> bool:
    """Whether the host can allocate memory of these sizes; none of it is touched."""
    try:
        return bool([np.empty(size, np.uint8) for size in sizes])
    except MemoryError:
        return False


# Signals -----------------------------------------------------------------------------------------


class _Deferral:
    """A replacement for all signal handlers of the main thread that defers them until its end.

    While inactive, it calls the original handler immediately, so it is harmless if it could not be
    removed.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._waiting: list[tuple[int, FrameType | None]] = []
        self._depth = 0

    def begin(self) -> bool:
        """Starts to defer signals; returns False outside the main thread, which gets no signals."""
        if threading.current_thread() is not threading.main_thread():
            return False
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            if callable(handler) and handler is not self:
                self._handlers[number] = handler
                signal.signal(number, self)
        self._depth += 1
        return True

    def end(self) -> None:
        """Runs the handlers of deferred signals at the end of the outermost nested call."""
        self._depth -= 1
        if self._depth:
            return
        try:
            for number, handler in list(self._handlers.items()):
                if signal.getsignal(number) is self:
                    signal.signal(number, handler)
        finally:
            self._run_waiting()

    def _run_waiting(self) -> None:
        """Calls all deferred handlers, even if one raises.

        It does not use ``signal.raise_signal``, which would wake an event loop a second time: the
        signal woke it when it came.
        """
        while self._waiting:
            try:
                number, frame = self._waiting.pop(0)
                self._handlers[number](number, frame)
            finally:
                self._run_waiting()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._depth:
            self._waiting.append((number, frame))
        else:
            self._handlers[number](number, frame)


_deferral = _Deferral()


@contextlib.contextmanager
def deferring_signals() -> Iterator[None]:
    """Defers signals during work that cannot be a single operation; entering it is slow."""
    begun = _deferral.begin()
    try:
        yield
    finally:
        if begun:
            _deferral.end()
