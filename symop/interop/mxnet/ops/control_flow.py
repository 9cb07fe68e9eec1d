"""Control flow: loops over slices, conditional loops, and branches."""

from collections.abc import Callable, Sequence
from typing import Any

import symop as so
from symop.interop.mxnet.operators import operator

Places = tuple[int, ...]
Body = Callable[[Sequence[Any]], list[Any]]
"""A graph as a function of its variables in order."""


def _numbered(num_outputs: int) -> list[str]:
    return [f"output{i}" for i in range(num_outputs)]


def _placed(count: int, *groups: tuple[Places, Sequence[Any]]) -> list[Any]:
    """The inputs of a graph: each group of values at its positions."""
    result: list[Any] = [None] * count
    for places, values in groups:
        for place, value in zip(places, values, strict=True):
            result[place] = value
    return result


def _is_true(value: Any) -> Any:
    return so.reshape(value, shape=()) != 0


@operator("_foreach", bodies=1, outputs=_numbered, dtypes="free", ignored=("num_args",))
def foreach(
    *inputs: Any,
    bodies: Sequence[Body],
    num_outputs: int,
    num_out_data: int,
    in_state_locs: Places,
    in_data_locs: Places,
    remain_locs: Places = (),
) -> list[Any]:
    """Applies the body to each slice of the data, carrying states; stacks the results."""
    (body,) = bodies
    first, second = len(in_data_locs), len(in_data_locs) + len(in_state_locs)
    data, states, rest = inputs[:first], inputs[first:second], inputs[second:]

    def step(carried: Any, slices: Any) -> Any:
        groups = (in_data_locs, slices), (in_state_locs, carried), (remain_locs, rest)
        found = body(_placed(len(inputs), *groups))
        return found[num_out_data:num_outputs], found[:num_out_data]

    last, stacked = so.scan(step, list(states), list(data))
    return [*stacked, *last]


@operator("_while_loop", bodies=2, outputs=_numbered, dtypes="free", ignored=("num_args",))
def while_loop(
    *inputs: Any,
    bodies: Sequence[Body],
    num_outputs: int,
    num_out_data: int,
    max_iterations: int,
    cond_input_locs: Places,
    func_input_locs: Places,
    func_var_locs: Places,
) -> list[Any]:
    """Repeats the body while the condition holds; stacks the results, padded with zeros.

    There are always ``max_iterations`` steps, which gives gradients of every order.
    """
    del num_outputs
    holds, body = bodies
    places = [func_input_locs[at] for at in func_var_locs]

    def with_variables(variables: Sequence[Any]) -> list[Any]:
        result = list(inputs)
        for place, one in zip(places, variables, strict=True):
            result[place] = one
        return result

    def go_on(variables: Sequence[Any]) -> Any:
        given = with_variables(variables)
        return _is_true(holds([given[at] for at in cond_input_locs])[0])

    def run(variables: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        given = with_variables(variables)
        found = body([given[at] for at in func_input_locs])
        return found[num_out_data:], found[:num_out_data]

    start = [inputs[place] for place in places]
    rows = [so.zeros_like(one) for one in run(start)[1]]  # only for types, not computed

    def step(carried: Any, _: Any) -> Any:
        return so.cond(go_on(carried), lambda: run(carried), lambda: (list(carried), rows))

    last, stacked = so.scan(step, start, None, length=max_iterations)
    return [*stacked, *last]


@operator("_cond", bodies=3, outputs=_numbered, dtypes="free", ignored=("num_args",))
def cond(
    *inputs: Any,
    bodies: Sequence[Body],
    num_outputs: int,
    cond_input_locs: Places,
    then_input_locs: Places,
    else_input_locs: Places,
) -> list[Any]:
    """Evaluates one of two graphs, selected by a third."""
    del num_outputs
    question, then, otherwise = bodies

    def of(places: Places) -> list[Any]:
        return [inputs[at] for at in places]

    found = so.cond(
        _is_true(question(of(cond_input_locs))[0]),
        lambda: then(of(then_input_locs)),
        lambda: otherwise(of(else_input_locs)),
    )
    return list(found)
