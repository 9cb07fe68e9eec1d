"""Which axes of the operands of a primitive are which axes of its results.

An axis consists of factors, the slowest first: one for most axes, several where a reshape joins or
splits axes. An axis of an operand and an axis of a result that have a factor in common are split
alike. A factor that no result has is summed over. This is how XLA's partitioner sees operations,
too (Shardy's sharding rules: openxla.org/shardy/overview).
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jax.extend.core import JaxprEqn

from registry.primitives import ENTRYWISE, REDUCTION_NAMES

Factors = tuple[int, ...]
Axes = tuple[Factors, ...]
"""The factors of each axis of an array."""


class Rule(NamedTuple):
    """The factors of an operation.

    Attributes:
        operands: those of the axes of each operand.
        results: those of the axes of each result.
        sizes: the lengths of the factors, by number.
        whole: the factors that cannot be split, because an entry depends on others along them.
        mixed: other factors along which an entry may depend on entries at other places.
    """

    operands: list[Axes]
    results: list[Axes]
    sizes: dict[int, int]
    whole: frozenset[int]
    mixed: frozenset[int] = frozenset()


class _Maker:
    """Counts factors while a rule is made."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.whole: set[int] = set()
        self.mixed: set[int] = set()

    def new(self, size: int, *, whole: bool = False) -> int:
        """Returns a new factor."""
        number = len(self.sizes)
        self.sizes[number] = size
        if whole:
            self.whole.add(number)
        return number

    def axes(self, shape: Sequence[int], *, whole: Sequence[int] = ()) -> Axes:
        """Returns a factor for each axis; those at the places ``whole`` cannot be split."""
        return tuple((self.new(n, whole=i in whole),) for i, n in enumerate(shape))

    def rule(self, operands: Sequence[Axes], results: Sequence[Axes]) -> Rule:
        """Returns the rule of these factors."""
        whole, mixed = frozenset(self.whole), frozenset(self.mixed)
        return Rule(list(operands), list(results), self.sizes, whole, mixed)


def rule_of(equation: JaxprEqn) -> Rule:
    """Returns the factors of an equation that has no jaxpr inside.

    A primitive without an entry in the table is taken as entrywise if the shapes allow it;
    otherwise no axis of it can be split.
    """
    make = _TABLE.get(equation.primitive.name)
    return _entrywise(equation) if make is None else make(_Maker(), equation)


def _shapes(variables: Sequence[Any]) -> list[tuple[int, ...]]:
    return [tuple(getattr(one.aval, "shape", ())) for one in variables]


def _entrywise(equation: JaxprEqn) -> Rule:
    maker = _Maker()
    inputs, outputs = _shapes(equation.invars), _shapes(equation.outvars)
    shape = max([*inputs, *outputs], key=lambda one: (len(one), math.prod(one)))
    if all(map(functools.partial(_fits, shape), (*inputs, *outputs))):
        axes = maker.axes(shape)
        if equation.primitive not in ENTRYWISE:
            maker.mixed.update(maker.sizes)
        one = maker.new(1, whole=True)

        def of(own: tuple[int, ...]) -> Axes:
            pairs = zip(own, shape, axes, strict=False)
            return tuple(each if n == m else (one,) for n, m, each in pairs)

        return maker.rule(list(map(of, inputs)), list(map(of, outputs)))
    every = [maker.axes(one, whole=range(len(one))) for one in (*inputs, *outputs)]
    return maker.rule(every[: len(inputs)], every[len(inputs) :])


def _fits(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether an array is a number, or has the axes of ``shape``, some of length 1."""
    if len(other) != len(shape):
        return not other
    return all(n in (m, 1) for n, m in zip(other, shape, strict=True))


# Shapes ------------------------------------------------------------------------------------------


def _broadcast(maker: _Maker, equation: JaxprEqn) -> Rule:
    (shape, *rest), (out,) = _shapes(equation.invars), _shapes(equation.outvars)
    results = list(maker.axes(out))
    operand = []
    for i, place in enumerate(equation.params["broadcast_dimensions"]):
        one = shape[i] != out[place]
        operand.append((maker.new(shape[i], whole=True),) if one else results[place])
    return maker.rule([tuple(operand), *(() for _ in rest)], [tuple(results)])


def _transpose(maker: _Maker, equation: JaxprEqn) -> Rule:
    (shape,) = _shapes(equation.invars)
    axes = maker.axes(shape)
    return maker.rule([axes], [tuple(axes[i] for i in equation.params["permutation"])])


def _reshape(maker: _Maker, equation: JaxprEqn) -> Rule:
    (after,) = _shapes(equation.outvars)
    shape = _shapes(equation.invars)[0]
    order = equation.params.get("dimensions") or range(len(shape))  # transposed first
    before = [shape[i] for i in order]
    operand: list[Factors] = [() for _ in before]
    result: list[Factors] = [() for _ in after]
    for left, right in _groups(before, after):
        for i, j, size in _common([before[i] for i in left], [after[j] for j in right]):
            if size == 1:  # of an axis of length 1, which cannot be split
                continue
            number = maker.new(size)
            operand[order[left[i]]] += (number,)
            result[right[j]] += (number,)
    return maker.rule([tuple(operand)], [tuple(result)])


def _groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Returns the smallest runs of axes of both shapes that hold as many entries."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        left, right = ([i], [j]) if i < len(before) and j < len(after) else ([], [])
        if not left:
            break  # axes of length 1
        i, j = i + 1, j + 1
        while (n := math.prod(before[k] for k in left)) != (
            m := math.prod(after[k] for k in right)
        ):
            if n < m and i < len(before):
                left.append(i)
                i += 1
            elif j < len(after):
                right.append(j)
                j += 1
            else:
                return groups
        groups.append((left, right))
    return groups


def _common(left: list[int], right: list[int]) -> list[tuple[int, int, int]]:
    """Returns common factors of two lists of lengths: their places and sizes."""
    factors, i, j = [], 0, 0
    left, right = list(left), list(right)
    while i < len(left) and j < len(right):
        size = math.gcd(left[i], right[j])
        if size == 1 and left[i] != 1 and right[j] != 1:
            break
        factors.append((i, j, size))
        left[i] //= size
        right[j] //= size
        i, j = i + (left[i] == 1), j + (right[j] == 1)
    return factors


def _squeeze(maker: _Maker, equation: JaxprEqn) -> Rule:
    (shape,) = _shapes(equation.invars)
    axes = maker.axes(shape)
    gone = {i % len(shape) for i in equation.params["dimensions"]}
    return maker.rule([axes], [tuple(one for i, one in enumerate(axes) if i not in gone)])


def _reduce(maker: _Maker, equation: JaxprEqn) -> Rule:
    inputs, outputs = _shapes(equation.invars), _shapes(equation.outvars)
    axes = maker.axes(inputs[0])
    left = tuple(one for i, one in enumerate(axes) if i not in equation.params["axes"])
    return maker.rule([axes if one else () for one in inputs], [left] * len(outputs))


def _along(maker: _Maker, equation: JaxprEqn) -> Rule:
    """Of an operation along one axis, whose entries depend on each other."""
    inputs, outputs = _shapes(equation.invars), _shapes(equation.outvars)
    axis = _axis_of(equation)
    axes = maker.axes(inputs[0], whole=(axis,))
    return maker.rule([axes] * len(inputs), [axes] * len(outputs))


def _axis_of(equation: JaxprEqn) -> int:
    params = equation.params
    axis: int = params["dimension"] if "dimension" in params else params["axis"]
    return axis


def _resized(maker: _Maker, equation: JaxprEqn) -> Rule:
    """Of a slice, a padding, or a window: axes that keep their length may be split."""
    inputs, outputs = _shapes(equation.invars), _shapes(equation.outvars)
    first, out = inputs[0], outputs[0]
    axes = tuple(
        (maker.new(n),) if n == m else (maker.new(n, whole=True),)
        for n, m in zip(first, out, strict=True)
    )
    maker.mixed.update(factor for i in _moved_along(equation) for factor in axes[i])
    return maker.rule(
        [axes if len(one) == len(first) else () for one in inputs], [axes] * len(outputs)
    )


def _moved_along(equation: JaxprEqn) -> list[int]:
    """Returns the axes along which a padding, a window or a reversal moves entries."""
    params = equation.params
    if "padding_config" in params:
        return [i for i, one in enumerate(params["padding_config"]) if any(one)]
    if "window_dimensions" in params:
        return [i for i, n in enumerate(params["window_dimensions"]) if n > 1]
    return list(params.get("dimensions", ()))


def _slice(maker: _Maker, equation: JaxprEqn) -> Rule:
    """A part is taken on the devices that hold it, and summed over devices."""
    (shape,), (out,) = _shapes(equation.invars), _shapes(equation.outvars)
    axes = maker.axes(shape)
    left = tuple(
        one if n == m else (maker.new(m, whole=True),)
        for one, n, m in zip(axes, shape, out, strict=True)
    )
    return maker.rule([axes], [left])


def _concatenate(maker: _Maker, equation: JaxprEqn) -> Rule:
    inputs, outputs = _shapes(equation.invars), _shapes(equation.outvars)
    axis = _axis_of(equation)
    axes = maker.axes(max(*inputs, *outputs, key=lambda one: one[axis]), whole=(axis,))
    return maker.rule([axes] * len(inputs), [axes] * len(outputs))


def _stack(maker: _Maker, equation: JaxprEqn) -> Rule:
    inputs, (out,) = _shapes(equation.invars), _shapes(equation.outvars)
    axes = maker.axes(out, whole=(0,))
    return maker.rule([axes[1:]] * len(inputs), [axes])


def _unstack(maker: _Maker, equation: JaxprEqn) -> Rule:
    (shape,), outputs = _shapes(equation.invars), _shapes(equation.outvars)
    axes = maker.axes(shape, whole=(0,))
    return maker.rule([axes], [axes[1:]] * len(outputs))


def _dynamic(maker: _Maker, equation: JaxprEqn) -> Rule:
    """Of a slice at a traced place, or of its update."""
    inputs, (out,) = _shapes(equation.invars), _shapes(equation.outvars)
    part = inputs[1] if equation.primitive.name == "dynamic_update_slice" else out
    changed = [i for i, (n, m) in enumerate(zip(inputs[0], part, strict=True)) if n != m]
    axes = maker.axes(inputs[0], whole=changed)
    few = len(inputs[0])
    return maker.rule([axes if len(one) == few and few else () for one in inputs], [axes])


# Products ----------------------------------------------------------------------------------------


def _dot(maker: _Maker, equation: JaxprEqn) -> Rule:
    (left, right), _ = _shapes(equation.invars), None
    (summed_left, summed_right), (batch_left, batch_right) = equation.params["dimension_numbers"]
    first = list(maker.axes(left))
    second = [() if i in (*summed_right, *batch_right) else (maker.new(n),)
              for i, n in enumerate(right)]  # fmt: skip
    for i, j in itertools.chain(
        zip(summed_left, summed_right, strict=True), zip(batch_left, batch_right, strict=True)
    ):
        second[j] = first[i]
    result = [first[i] for i in batch_left]
    result += [one for i, one in enumerate(first) if i not in (*summed_left, *batch_left)]
    result += [one for i, one in enumerate(second) if i not in (*summed_right, *batch_right)]
    return maker.rule([tuple(first), tuple(second)], [tuple(result)])


def _convolution(maker: _Maker, equation: JaxprEqn) -> Rule:
    numbers = equation.params["dimension_numbers"]
    (left, right), (out,) = _shapes(equation.invars), _shapes(equation.outvars)
    grouped = equation.params["feature_group_count"] * equation.params["batch_group_count"] > 1
    axes = [list(maker.axes(one, whole=range(len(one)))) for one in (left, right, out)]
    batch, features = maker.new(left[numbers.lhs_spec[0]]), maker.new(right[numbers.rhs_spec[0]])
    if not grouped:
        summed = maker.new(left[numbers.lhs_spec[1]])
        axes[0][numbers.lhs_spec[1]] = axes[1][numbers.rhs_spec[1]] = (summed,)
        axes[0][numbers.lhs_spec[0]] = axes[2][numbers.out_spec[0]] = (batch,)
        axes[1][numbers.rhs_spec[0]] = axes[2][numbers.out_spec[1]] = (features,)
    return maker.rule([tuple(axes[0]), tuple(axes[1])], [tuple(axes[2])])


def _gather(maker: _Maker, equation: JaxprEqn) -> Rule:
    """Rows are looked up on the device that holds them, and summed over devices."""
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    (operand, indices), (out,) = _shapes(equation.invars), _shapes(equation.outvars)
    axes = tuple((maker.new(n, whole=sizes[i] not in (1, n)),) for i, n in enumerate(operand))
    places = [*maker.axes(indices[:-1]), (maker.new(indices[-1], whole=True),)]
    window = [
        axes[i] if sizes[i] == operand[i] else (maker.new(sizes[i], whole=True),)
        for i in range(len(operand))
        if i not in (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    ]
    for i, j in zip(
        numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
    ):
        places[j] = axes[i]
    inside, around = iter(window), iter(places)
    result = tuple(next(inside if i in numbers.offset_dims else around) for i in range(len(out)))
    return maker.rule([axes, tuple(places)], [result])


def _scatter(maker: _Maker, equation: JaxprEqn) -> Rule:
    """Rows that devices add are summed over devices, unless they hold different rows."""
    numbers = equation.params["dimension_numbers"]
    operand, indices, updates = _shapes(equation.invars)
    axes = maker.axes(operand)
    maker.mixed.update(factor for i in numbers.inserted_window_dims for factor in axes[i])
    places = [*maker.axes(indices[:-1]), (maker.new(indices[-1], whole=True),)]
    for i, j in zip(
        numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True
    ):
        places[j] = axes[i]
    kept = [
        i
        for i in range(len(operand))
        if i not in (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    ]
    window, around = iter(kept), iter(places)
    update = []
    for i, n in enumerate(updates):
        if i in numbers.update_window_dims:
            place = next(window)
            update.append(axes[place] if operand[place] == n else (maker.new(n, whole=True),))
        else:
            update.append(next(around))
    return maker.rule([axes, tuple(places), tuple(update)], [axes])


def _nothing(maker: _Maker, equation: JaxprEqn) -> Rule:
    """Of what is made from nothing: each device makes its part."""
    inputs, outputs = _shapes(equation.invars), _shapes(equation.outvars)
    return maker.rule(
        [maker.axes(one, whole=range(len(one))) for one in inputs],
        [maker.axes(one) for one in outputs],
    )


_Make = Callable[[_Maker, JaxprEqn], Rule]
_TABLE: dict[str, _Make] = {
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "reshape": _reshape,
    "squeeze": _squeeze,
    **dict.fromkeys(REDUCTION_NAMES, _reduce),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "sort"), _along),
    **dict.fromkeys(
        ("pad", "reduce_window", "reduce_window_sum", "reduce_window_max",
         "reduce_window_min", "select_and_scatter_add", "rev"),
        _resized,
    ),
    **dict.fromkeys(("concatenate", "split"), _concatenate),
    "slice": _slice,
    "stack": _stack,
    "unstack": _unstack,
    "dynamic_slice": _dynamic,
    "dynamic_update_slice": _dynamic,
    "dot_general": _dot,
    "conv_general_dilated": _convolution,
    "gather": _gather,
    **dict.fromkeys(("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max"),
                    _scatter),
    **dict.fromkeys(("iota", "random_bits", "random_wrap", "random_unwrap", "random_seed",
                     "random_fold_in", "random_split"), _nothing),
}  # fmt: skip
"""How the factors of a primitive follow from its parameters."""
