"""Recording of eager calls: each becomes a step of a segment, or runs on its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import Any

from registry.errors import ArgumentError
from symop.eager.alone import CannotJoinError, at_once, new
from symop.eager.segments import Segment, State, active, belonging, local
from symop.eager.settings import INFS, NANS
from symop.eager.trace_cache import InternedCall


def one_result(call: InternedCall, inputs: Sequence[Any], state: State | None = None) -> Any:
    """Returns the result of a call that returns one array; ``state`` is this thread's, if known.

    Equivalent to ``results`` but optimized: loops of eager code spend their time here.
    """
    if state is None:
        state = active()
        if state.ident != get_ident():
            state = belonging(state)
    segment = state.segment
    if segment is None:
        rest = state.rest
        if rest and call.plain and not state.taped:
            state.rest = rest - (rest > 0)
            result = at_once(call, inputs)
            return results(call, inputs)[0] if result is None else result
        segment = state.open_segment()
    elif NANS.value is not segment.nans or INFS.value is not segment.infs:
        segment = state.renew(segment)
    make = call.make
    try:
        state.segment, segment.busy = None, True
        if len(inputs) == 2:  # most calls
            x, y = inputs
            own = x.__class__ is make and x._segment is segment
            first = x._index if own else segment.place(call, 0, x)
            own = y.__class__ is make and y._segment is segment
            key: tuple[Any, ...] = (call, first, y._index if own else segment.place(call, 1, y))
        else:
            key = (
                call,
                *[
                    x._index
                    if x.__class__ is make and x._segment is segment
                    else segment.place(call, i, x)
                    for i, x in enumerate(inputs)
                ],
            )
        step = segment.step.children.get(key)
        if step is None or step.careful or segment.stray:
            step = segment.admit(call, key, step)
        outputs = segment.outputs
        out = new(make)
        out._value = out._link = out._grad = None
        out._segment, out._type = segment, step.type
        out._index = place = len(outputs)
        outputs.append(out)
        segment.step = step
    except CannotJoinError:
        return _run_alone(call, inputs, segment)[0]
    except BaseException:
        state.give_back(segment)
        raise
    if state.segment is not None:
        state.run_nested()
    segment.busy, state.segment = False, segment
    if place >= segment.room:
        segment.run()
    return out


def results(call: InternedCall, inputs: Sequence[Any]) -> list[Any]:
    """Records a call; returns all values that it adds to its segment."""
    state = local.state
    segment = state.segment
    if segment is None:
        segment = state.open_segment()
    try:
        state.segment, segment.busy = None, True
        result = _added(call, inputs, segment)
    except CannotJoinError:
        return _run_alone(call, inputs, segment)
    except BaseException:
        state.give_back(segment)
        raise
    if state.segment is not None:
        state.run_nested()
    segment.busy, state.segment = False, segment
    if len(segment.outputs) > segment.room:
        segment.run()
    return result


def _run_alone(call: InternedCall, inputs: Sequence[Any], segment: Segment) -> list[Any]:
    """Runs ``segment``, then a call that cannot join it; returns the results of the call.

    Raises:
        ArgumentError: the inputs of the call are on different devices.
    """
    segment.mend()
    segment.busy = False
    segment.run()
    try:
        return _by_itself(call, inputs, Segment(local.state))
    except CannotJoinError:
        places = [getattr(getattr(one, "value", one), "sharding", None) for one in inputs]
        raise ArgumentError(
            f"{call.operator.name}: the inputs must lie on the same devices, got "
            f"{' and '.join(str(one) for one in places if one is not None)}; use to_device"
        ) from None


def _added(call: InternedCall, inputs: Sequence[Any], segment: Segment) -> list[Any]:
    """Adds a call to ``segment``, which is busy with it; returns the values that it adds."""
    key = (call, *[segment.place(call, i, one) for i, one in enumerate(inputs)])
    step = segment.admit(call, key, segment.step.children.get(key))
    return segment.take(step, call.make)


def _by_itself(call: InternedCall, inputs: Sequence[Any], segment: Segment) -> list[Any]:
    """Runs a call as the only one of ``segment``, which is new; returns its results."""
    segment.room = 0
    result = _added(call, inputs, segment)
    segment.owner.shared.waiting[segment] = None
    segment.busy = False
    segment.run()
    return result


@contextmanager
def leaving(leave: Callable[[], None]) -> Iterator[None]:
    """Returns a scope that calls ``leave`` when it ends.

    An error that ``leave`` raises is that of a deferred call. It does not replace an exception that
    ends the scope, and is raised again when the value is requested.
    """
    try:
        yield
    except BaseException:
        with suppress(Exception):
            leave()
        raise
    leave()


@contextmanager
def direct() -> Iterator[None]:
    """Returns a scope in which each call runs on its own, for debugging.

    Values, errors and random numbers are the same; only the speed differs.

    Example:
        >>> from symop import nd
        >>> with nd.direct():
        ...     nd.array([1.0]) + 1
        NDArray([2.], dtype=float32)
    """
    flush()
    before = local.state
    inner = State(before.shared, before.scopes)
    inner.inherit(before)
    inner.rest = -1
    local.state = inner
    with leaving(flush):
        try:
            yield
        finally:
            local.state = _in_mode_of(local.state, before)


def _in_mode_of(present: State, before: State) -> State:
    """Returns ``before``, or a successor in the modes of ``present`` if these were switched."""
    if present.scopes == before.scopes:
        return before
    result = State(before.shared, present.scopes)
    result.inherit(before)
    return result


def on_tracers(call: InternedCall, inputs: Sequence[Any]) -> list[Any]:
    """Returns the results of a recorded call on values that JAX traces.

    The call runs on its own; in a segment with other calls, it might outlive the trace.
    """
    flush()
    segment = Segment(local.state)
    segment.traced = True
    return _by_itself(call, inputs, segment)


def flush() -> None:
    """Runs all recorded segments of this thread, in all of its tasks.

    Raises:
        Exception: the first error of a segment, after all have run.
    """
    error = None
    for segment in list(local.state.shared.waiting):
        try:
            segment.run()
        except Exception as one:
            error = error or one
    if error is not None:
        raise error
