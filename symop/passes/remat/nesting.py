"""Nested scans: a scan of n steps as a scan over scans that keeps only the carries between them."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from registry.operator.operator import Operator
from registry.operator.signature import Array, Key
from registry.ops.control_flow.loop_gradients import Layout
from registry.table import get
from registry.types import KEY_TYPE, VarKind, VarType
from symop.graph.nodes import Node, array, constant, placeholder
from symop.graph.policies import KEEP_ALL, KEEP_NONE
from symop.graph.rewriting import images, node_of
from symop.passes.remat.loop_calls import LoopCall, saving
from symop.regions.bodies import GraphBody, body_of

_INT = np.dtype(np.int32)
_FEWEST = 4
"""The number of steps below which a scan is unchanged."""


class ScanSplit(NamedTuple):
    """The split of a scan into inner scans.

    Attributes:
        outer: The number of inner scans.
        inner: The number of steps in each.
        rest: The number of steps left over after them.
    """

    outer: int
    inner: int
    rest: int


def cut_of(length: int, count: int | None) -> ScanSplit:
    """Returns a split into about ``count`` scans; by default one that keeps few carries and steps.

    Steps that are left over cost a copy of every series, so a divisor of the length is used if one
    is nearly as good: with ``k`` scans of a length ``n``, the cost ``k + n / k`` is least for
    ``sqrt(n)``, and a quarter more for half or twice as many scans.
    """
    wanted = max(1, min(length, round(math.sqrt(length)) if count is None else count))
    if count is None:
        near = [
            d for d in range(1, length + 1) if length % d == 0 and wanted / 2 <= d <= 2 * wanted
        ]
        if near:
            best = min(near, key=lambda d: (d + length // d, d))
            return ScanSplit(best, length // best, 0)
    inner = length // wanted
    return ScanSplit(wanted, inner, length - wanted * inner)


def in_segments(loop: LoopCall, count: int | None) -> list[Node]:
    """Returns the results of a scan that keeps only the carries between ``count`` parts of it."""
    length = loop.options["length"]
    if length < _FEWEST:
        return loop.results(saving(loop.layout, KEEP_ALL).body)
    loop = _numbered(loop) if loop.layout.body.draws else loop
    cut = cut_of(length, count)
    main = _nested(loop, cut)
    return main if cut.rest == 0 else _joined(loop, cut, main)


def _nested(loop: LoopCall, cut: ScanSplit) -> list[Node]:
    """Returns the results of the steps that form whole inner scans."""
    layout, body = loop.layout, _outer_body(loop, cut.inner)
    taken = cut.outer * cut.inner
    begin = cut.rest if loop.options["reverse"] else 0
    split = [_split(one, begin, (cut.outer, cut.inner)) for one in _series(loop)]
    outer = saving(Layout(body, layout.n_carry, layout.n_xs, layout.n_sums), KEEP_NONE)
    results = loop.over(_carries(loop), split).results(outer.body, length=cut.outer, use_key=False)
    fixed = layout.n_carry + layout.n_sums
    count = len(layout.body.outputs)
    return [*results[:fixed], *(_merged(one, taken) for one in results[fixed:count])]


def _outer_body(loop: LoopCall, steps: int) -> GraphBody:
    """Returns a body that runs ``steps`` steps and keeps what their gradients need."""
    layout = loop.layout
    inputs = layout.body.inputs
    types = [
        VarType((steps, *one.shape), one.dtype, one.kind) if i in layout.series else one
        for i, one in enumerate(inputs)
    ]
    slices = tuple(placeholder(f"x{i}", one) for i, one in enumerate(types))
    inner = loop._replace(operands=slices)
    results = inner.results(saving(layout, KEEP_ALL).body, length=steps, use_key=False)
    return body_of(slices, results[: len(layout.body.outputs)], ())


def _joined(loop: LoopCall, cut: ScanSplit, main: Sequence[Node]) -> list[Node]:
    """Returns the results of all steps: ``main`` and those of the steps that are left over."""
    layout, length = loop.layout, loop.options["length"]
    n_carry, fixed = layout.n_carry, layout.n_carry + layout.n_sums
    backwards = loop.options["reverse"]
    begin = 0 if backwards else length - cut.rest
    series = [_split(one, begin, (cut.rest,)) for one in _series(loop)]
    last = loop.over(main[:n_carry], series)
    results = last.results(saving(layout, KEEP_ALL).body, length=cut.rest, use_key=False)
    pairs = list(zip(main, results, strict=False))
    sums = [one + other for one, other in pairs[n_carry:fixed]]
    concat = get("concat")
    joined = [
        concat(*((other, one) if backwards else (one, other)), axis=0)
        for one, other in pairs[fixed:]
    ]
    return [*results[:n_carry], *sums, *joined]


def _carries(loop: LoopCall) -> tuple[Node, ...]:
    return loop.operands[: loop.layout.n_carry]


def _series(loop: LoopCall) -> tuple[Node, ...]:
    first = loop.layout.n_carry
    return loop.operands[first : first + loop.layout.n_xs]


def _split(series: Node, begin: int, lengths: tuple[int, ...]) -> Node:
    """Returns the part of a series from ``begin`` on, with ``lengths`` as leading axes."""
    end, shape = begin + math.prod(lengths), (*lengths, *series.type.shape[1:])
    if series.type.kind is VarKind.RANDOM_KEY:
        keys: Node = _ARRANGED(series, begin=begin, end=end, shape=shape)
        return keys
    part = series
    if (begin, end) != (0, series.type.shape[0]):
        part = get("slice_axis")(series, axis=0, begin=begin, end=end)
    return part if part.type.shape == shape else get("reshape")(part, shape=shape)


def _merged(series: Node, length: int) -> Node:
    result: Node = get("reshape")(series, shape=(length, *series.type.shape[2:]))
    return result


# Random keys -----------------------------------------------------------------------------------


def _fold_in(key: Key, number: Array) -> Any:
    """Returns the random key determined by ``key`` and a number."""
    return jax.random.fold_in(key, number)


def _arranged(keys: Array, *, begin: int, end: int, shape: tuple[int, ...]) -> Any:
    """Returns a slice of a series of random keys, in another shape."""
    return jnp.reshape(keys[begin:end], shape)


# These are not registered, because the graphs that users see have no keys among their values.
_ARRANGED = Operator(_arranged, name="arranged_keys", native=True)
_ARRANGED.types(lambda keys, *, shape: [VarType(shape, keys.dtype, VarKind.RANDOM_KEY)])
_ARRANGED.kind(lambda keys: VarKind.RANDOM_KEY)
_ARRANGED.no_gradient("random keys have no derivative")
_FOLD_IN = Operator(_fold_in, name="fold_in", native=True)
_FOLD_IN.types(lambda number: [KEY_TYPE])
_FOLD_IN.kind(lambda number: VarKind.RANDOM_KEY)
_FOLD_IN.no_gradient("a random key has no derivative")


def _numbered(loop: LoopCall) -> LoopCall:
    """Returns a scan whose steps receive their numbers and fold their random keys themselves.

    The steps draw the same numbers as before: a scan folds the step number into its key, and the
    body folds the number of each key into the result.
    """
    layout = loop.layout
    body, end = layout.body, layout.n_carry + layout.n_xs
    assert isinstance(body, GraphBody)
    assert loop.key is not None
    number, key = placeholder("number", VarType((), _INT)), placeholder("key", KEY_TYPE)
    own = _FOLD_IN(number, key=key)
    keys = {
        one: _FOLD_IN(constant(rank, VarType((), _INT)), key=own)
        for rank, one in enumerate(body.keys)
    }
    parameters = [*body.parameters[:end], number, *body.parameters[end:], key]
    copies = images(body.results, {**keys, **{one: one for one in body.parameters}})
    results = [node_of(copies[one]) for one in body.results]
    told = body_of(parameters, results, (), updating=body.updating)
    numbers = array(np.arange(loop.options["length"], dtype=_INT))
    operands = (*loop.operands[:end], numbers, *loop.operands[end:], loop.key)
    options = {**loop.options, "body": told, "n_xs": layout.n_xs + 1, "use_key": False}
    return loop._replace(operands=operands, options=options)
