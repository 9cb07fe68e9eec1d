"""Recording of eager code: a call becomes a step of a segment, or runs by itself."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from registry.errors import ArgumentError
from symop.alone import ApartError, at_once, new
from symop.segments import Segment, State, local
from symop.steps import Call


def one_result(call: Call, inputs: Sequence[Any], state: State | None = None) -> Any:
    """The result of a call that returns one array; ``state`` is this thread's, where it is known.

    The same as ``results`` for one: this is where a loop of eager code spends its time.
    """
    if state is None:
        state = local.state
    segment = state.segment
    if segment is None:
        rest = state.rest
        if rest and call.plain and not state.taped:
            if rest > 0:
                state.rest = rest - 1
            found = at_once(call, inputs)
            return results(call, inputs)[0] if found is None else found
        segment = state.opened()
    make = call.make
    try:
        if len(inputs) == 1:
            x = inputs[0]
            pending = x.__class__ is make and x._segment is segment
            key: tuple[Any, ...] = (call, x._index if pending else segment.place(call, 0, x))
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
    except ApartError:
        return _apart(call, inputs, segment)[0]
    step = segment.step.children.get(key)
    if step is None:
        step = segment.extended(call, key)
        if step is None:
            segment.run()
            return one_result(call, inputs)
    segment.step = step
    outputs = segment.outputs
    out = new(make)
    out._value = out._link = out._grad = None
    out._segment, out._type = segment, step.type
    out._index = place = len(outputs)
    outputs.append(out)
    if place >= segment.room:
        segment.run()
    return out


def results(call: Call, inputs: Sequence[Any]) -> list[Any]:
    """All values that a call adds to its segment."""
    segment = local.state.segment or local.state.opened()
    try:
        return _added(call, inputs, segment)
    except ApartError:
        return _apart(call, inputs, segment)


def _apart(call: Call, inputs: Sequence[Any], segment: Segment) -> list[Any]:
    """The results of a call that cannot run together with what was recorded before.

    Raises:
        ArgumentError: nor can its inputs with each other.
    """
    segment.run()
    alone = local.state.opened()
    alone.room = 0
    try:
        return _added(call, inputs, alone)
    except ApartError:
        local.state.segment = None
        places = [getattr(getattr(one, "value", one), "sharding", None) for one in inputs]
        raise ArgumentError(
            f"{call.operator.name}: the inputs must lie on the same devices, got "
            f"{' and '.join(str(one) for one in places if one is not None)}; use to_device"
        ) from None


def _added(call: Call, inputs: Sequence[Any], segment: Segment) -> list[Any]:
    """What a call adds to ``segment``, which runs if it is full then."""
    key = (call, *[segment.place(call, i, one) for i, one in enumerate(inputs)])
    step = segment.step.children.get(key) or segment.extended(call, key)
    if step is None:
        segment.run()
        return results(call, inputs)
    made = segment.take(step, call.make)
    if len(segment.outputs) > segment.room:
        segment.run()
    return made


@contextmanager
def direct() -> Iterator[None]:
    """A scope in which each call runs by itself, for debugging.

    Values, errors and random numbers are the same; only the time differs.

    Example:
        >>> from symop import nd
        >>> with nd.direct():
        ...     nd.array([1.0]) + 1
        NDArray([2.], dtype=float32)
    """
    before = local.state.rest
    settle()
    local.state.rest = -1
    try:
        yield
    finally:
        settle()
        local.state.rest = before


def on_tracers(call: Call, inputs: Sequence[Any]) -> list[Any]:
    """The results of a recorded call on values that JAX traces.

    It runs by itself: together with others it might outlive the trace.
    """
    settle()
    segment = local.state.segment = Segment(local.state)
    segment.traced, segment.room = True, 0
    try:
        return results(call, inputs)
    finally:
        local.state.segment = None


def park() -> None:
    """Begin anew. What was recorded for a backward pass waits for that, or until it is needed."""
    segment = local.state.segment
    if segment is None:
        return
    if not (segment.taped and segment.closed):
        segment.run()
        return
    before, local.state.parked, local.state.segment = local.state.parked, segment, None
    if before is not None:
        before.run()


def settle() -> None:
    """Run what this thread has recorded."""
    parked, segment = local.state.parked, local.state.segment
    try:
        if parked is not None:
            parked.run()
    finally:
        if segment is not None:
            segment.run()
