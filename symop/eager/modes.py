"""Modes of eager code: whether calls are recorded, and whether they run in training mode.

A context variable holds the modes, so interleaved tasks have separate modes.
"""

import functools
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

from symop.eager.segments import Modes, State, activate, active, local

Function = TypeVar("Function", bound=Callable[..., Any])


def is_recording() -> bool:
    """Whether calls of this task or thread are recorded for a backward pass."""
    return local.state.taped


def is_training() -> bool:
    """Whether operators with a training flag run in training mode."""
    return local.state.training


def set_recording(is_record: bool) -> bool:
    """Switches recording on or off, within the innermost scope; returns the previous mode."""
    before = local.state
    _set(before, bool(is_record), before.training)
    return before.taped


def set_training(train_mode: bool) -> bool:
    """Switches training mode on or off, within the innermost scope; returns the previous mode."""
    before = local.state
    _set(before, before.taped, bool(train_mode))
    return before.training


def _set(before: State, taped: bool, training: bool) -> None:
    """Sets the modes of the innermost scope, which remain if a pending computation fails."""
    if (taped, training) != (before.taped, before.training):
        *outer, (scope, _, _) = before.scopes
        _go_on(before, State(before.shared, (*outer, (scope, taped, training))))


def _go_on(before: State, state: State) -> None:
    """Activates ``state``, which takes over the pending segments of ``before``.

    Activation comes first, so that the modes are right even if a segment fails.
    """
    activate(state)
    state.inherit(before)


class mode:  # noqa: N801  # called like a function
    """A scope that sets recording and training mode; None leaves a mode unchanged.

    Scopes may end in any order, as those of generators do: a scope that ends removes itself and no
    other. A scope also ends when it is garbage collected, because an interrupt between two opcodes
    of ``with`` or of ``__exit__`` drops it without ending it.

    If an exception ends the scope, the error of a deferred call does not replace it, and is raised
    again when the value is read.
    """

    _entered: tuple[Any, ...] = ()
    """The function that ends the scope, the weak reference that calls it when this object is
    collected, and the same pair for the scope that this object entered before."""

    def __init__(self, taped: bool | None = None, training: bool | None = None) -> None:
        """Creates the scope, which begins on entry."""
        self._taped, self._training = taped, training

    def __call__(self, function: Function) -> Function:
        """Wraps ``function`` so that each call enters its own scope."""

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with mode(self._taped, self._training):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]  # of the same signature

    def __enter__(self) -> None:
        before, scope = local.state, object()
        inner = State(before.shared, (*before.scopes, (scope, self._taped, self._training)))
        leave = functools.partial(_leave, before, inner, scope)
        self._entered = leave, weakref.ref(self, leave), self._entered
        try:
            activate(inner)
            inner.inherit(before)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, kind: Any = None, error: Any = None, traceback: Any = None) -> None:
        leave, _, outer = self._entered
        try:
            leave()
        except Exception:
            if error is None:
                raise
        finally:
            self._entered = outer


def _leave(before: State, inner: State, scope: object, _forgotten: Any = None) -> None:
    """Ends a scope; does nothing if it has ended, or in a context that has not entered it.

    This is the callback of a weak reference rather than ``__del__``, which Python would run at the
    end of every scope, and which would swallow an interrupt.
    """
    present = active()
    if present is inner:
        activate(before)
    else:
        before = _without(scope, present, before)
    if present is not before and present.ident == get_ident():
        before.inherit(present)


def _without(scope: object, present: State, before: State) -> State:
    """Activates and returns the state without a scope.

    In a context that has not entered the scope, this is ``present`` itself.
    """
    rest: Modes = tuple([one for one in present.scopes if one[0] is not scope])
    if len(rest) == len(present.scopes):
        return present
    state = before if before.scopes == rest else State(present.shared, rest)
    activate(state)
    return state


def record(train_mode: bool = True) -> Any:
    """Returns a scope in which calls are recorded, by default in training mode.

    Example:
        >>> from symop import autograd
        >>> with autograd.record():
        ...     autograd.is_recording(), autograd.is_training()
        (True, True)
    """
    return mode(True, train_mode)


def pause(train_mode: bool = False) -> Any:
    """Returns a scope in which calls are not recorded, by default in prediction mode."""
    return mode(False, train_mode)


def train_mode() -> Any:
    """Returns a scope in training mode; recording is unchanged."""
    return mode(training=True)


def predict_mode() -> Any:
    """Returns a scope in prediction mode; recording is unchanged."""
    return mode(training=False)
