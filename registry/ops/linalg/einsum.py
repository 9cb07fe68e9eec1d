"""einsum, and the cotangents of products summed over named axes."""

import functools
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from registry.cases import case, integers, misuse, workload
from registry.errors import AttributeValueError, ShapeError
from registry.operator.attributes import Check
from registry.operator.operator import Grads
from registry.operator.signature import Array
from registry.ops.core.broadcasting import broadcast_to, cast, unbroadcast
from registry.ops.core.reshaping import permute_dims, reshape
from registry.ops.shape.diagonals import diagonal, diagonal_cotangent, diagonal_of
from registry.shapes import strong
from registry.table import op
from registry.types import Shape
from registry.var import Var

_ELLIPSIS = "..."


# Equations -------------------------------------------------------------------------------------


class Labels(NamedTuple):
    """An equation with its ellipses expanded: each letter of a term names an axis.

    Attributes:
        terms: the axes of each operand.
        out: the axes of the result, each once.
        lengths: the lengths of the axes; an operand may have length 1 instead.
    """

    terms: tuple[str, ...]
    out: str
    lengths: dict[str, int]

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return tuple(self.lengths[label] for label in self.out)


def _is_equation(text: str) -> bool:
    """Whether there are only letters, commas, at most one arrow and one ellipsis per term."""
    terms, _, out = text.replace(" ", "").partition("->")
    parts = [*terms.split(","), out]
    left = [part.replace(_ELLIPSIS, "", 1) for part in parts]
    return all(not part or (part.isascii() and part.isalpha()) for part in left)


Equation = Annotated[
    str, Check("be letters for axes, like 'ij,jk->ik' or '...i->...'", _is_equation)
]


def labeled(equation: str, shapes: Sequence[Shape]) -> Labels:
    """The labels that ``equation`` assigns to operands of ``shapes``.

    Raises:
        AttributeValueError: the result has an axis that no operand has, or has an axis twice.
        ShapeError: the numbers of operands or axes, or the lengths of axes, do not match the
            equation.
    """
    operands, arrow, out = equation.replace(" ", "").partition("->")
    terms = operands.split(",")
    if len(terms) != len(shapes):
        raise ShapeError(f"{equation!r} must be of {len(shapes)} operands, got {len(terms)}")
    pairs = list(zip(terms, shapes, strict=True))
    longest = max([_stands_for(term, shape) for term, shape in pairs])
    free = [letter for letter in string.ascii_letters if letter not in equation][:longest]
    named = [_named(term, shape, free) for term, shape in pairs]
    out = (out if arrow else _implied(operands)).replace(_ELLIPSIS, "".join(free))
    _check_out(equation, out, named)
    return Labels(tuple(named), out, _lengths(equation, named, shapes))


def _implied(terms: str) -> str:
    """The implicit result: the axes that occur once, in alphabetical order."""
    counted = Counter(terms.replace(_ELLIPSIS, "").replace(",", ""))
    once = sorted(label for label, times in counted.items() if times == 1)
    return "".join([_ELLIPSIS if _ELLIPSIS in terms else "", *once])


def _stands_for(term: str, shape: Shape) -> int:
    """The number of axes that the ellipsis of ``term`` represents."""
    count = len(term.replace(_ELLIPSIS, ""))
    has_ellipsis = _ELLIPSIS in term
    if len(shape) < count or (len(shape) > count and not has_ellipsis):
        least = "at least " if has_ellipsis else ""
        raise ShapeError(f"an operand {term!r} must have {least}{count} axes, got shape {shape}")
    return len(shape) - count


def _named(term: str, shape: Shape, free: Sequence[str]) -> str:
    """``term`` with letters for the axes of its ellipsis, which are aligned at the end."""
    return term.replace(_ELLIPSIS, "".join(free[len(free) - _stands_for(term, shape) :]))


def _check_out(equation: str, out: str, terms: Sequence[str]) -> None:
    for label, times in Counter(out).items():
        if times > 1 or not any(label in term for term in terms):
            raise AttributeValueError(
                f"the result of {equation!r} must have each axis of some operand at most once, got "
                f"{label!r}"
            )


def _lengths(equation: str, terms: Sequence[str], shapes: Sequence[Shape]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, length in zip(term, shape, strict=True):
            known = lengths.setdefault(label, length)
            if 1 not in (known, length) and known != length:
                raise ShapeError(
                    f"axis {label!r} of {equation!r} must have one length, got {known} and {length}"
                )
            if known == 1:
                lengths[label] = length
        if any(term.count(label) > 1 for label in term):
            _check_square(term, shape)
    return lengths


def _check_square(term: str, shape: Shape) -> None:
    """Checks an axis that an operand has twice: it is a diagonal and is not broadcast."""
    for i, label in enumerate(term):
        if shape[term.index(label)] != shape[i]:
            raise ShapeError(f"the axes {label!r} of {term!r} must be equally long, got {shape}")


# Contractions of pairs -------------------------------------------------------------------------


class Step(NamedTuple):
    """A contraction of one or two values.

    Attributes:
        places: the indices of its values, which are the operands followed by the results of the
            steps.
        terms: the axes of these values.
        out: the axes of the result of the step.
    """

    places: tuple[int, ...]
    terms: tuple[str, ...]
    out: str

    @property
    def equation(self) -> str:
        """The equation of this step."""
        return equation_of(self.terms, self.out)


def equation_of(terms: Sequence[str], out: str) -> str:
    """The equation with these terms and this result."""
    return f"{','.join(terms)}->{out}"


@functools.lru_cache(maxsize=256)
def _steps(terms: tuple[str, ...], out: str, shapes: tuple[Shape, ...]) -> tuple[Step, ...]:
    """The contractions that compute the result, in the order of least work."""
    if len(terms) <= 2:
        return (Step(tuple(range(len(terms))), terms, out),)
    arrays = [np.broadcast_to(np.float32(0), shape) for shape in shapes]  # of no memory
    path, _ = jnp.einsum_path(equation_of(terms, out), *arrays, optimize="auto")
    left, steps = list(enumerate(terms)), list[Step]()
    for chosen in path:
        taken = [left[i] for i in sorted(chosen)]
        left = [one for one in left if one not in taken]
        result = _made([term for _, term in taken], left, out) if left else out
        places, used = zip(*taken, strict=True)
        steps.append(Step(places, used, result))
        left.append((len(terms) + len(steps) - 1, result))
    return tuple(steps)


def _made(taken: Sequence[str], left: Sequence[tuple[int, str]], out: str) -> str:
    """The axes of a product that are needed later, shared ones first to avoid a transpose."""
    needed = set(out).union(*[term for _, term in left])
    labels = [label for label in dict.fromkeys("".join(taken)) if label in needed]
    return "".join(sorted(labels, key=lambda label: not all(label in term for term in taken)))


def _contracted(step: Step, arrays: Sequence[Array]) -> Array:
    """The result of ``step`` for ``arrays``."""
    summed, terms = list[Array](), list[str]()
    for i, (array, term) in enumerate(zip(arrays, step.terms, strict=True)):
        others = "".join([*step.terms[:i], *step.terms[i + 1 :], step.out])
        shorter = "".join(label for label in term if label in others or array.dtype == np.bool_)
        summed.append(_sum_but(array, term, shorter))
        terms.append(shorter)
    result: Array = jnp.einsum(equation_of(terms, step.out), *summed)
    return result


def _sum_but(x: Array, term: str, kept: str) -> Array:
    """The sum over all axes but those kept; 16-bit dtypes use float32, unlike ``jnp.einsum``."""
    axes = tuple(i for i, label in enumerate(term) if label not in kept)
    return jnp.sum(x, axis=axes, dtype=x.dtype) if axes else x


def cotangent_of(k: int, operands: Sequence[Var], labels: Labels, d: Any) -> Any:
    """The cotangent of operand ``k`` of a product, given that of the result; None for integers.

    No axis may occur twice in a term.
    """
    # out is a sum of products, so the cotangent is the sum of d times the other factors over all
    # axes not in the operand. Along an axis that only this operand has, out was summed, so the
    # cotangent is repeated; along one that was broadcast from length 1, the cotangent is summed.
    x, term = operands[k], labels.terms[k]
    # jnp.einsum makes the last operand the left factor unless the first one may be it. As in JAX's
    # own derivative, d becomes it, which determines which arrays are transposed: d has a batch or
    # directions where the other factor, such as a matrix of weights, has none.
    factors = [*operands[:k], *operands[k + 1 :], d]
    terms = [*labels.terms[:k], *labels.terms[k + 1 :], labels.out]
    kept = "".join(
        label
        for label, length in zip(term, x.shape, strict=True)
        if length == labels.lengths[label] and any(label in one for one in terms)
    )
    if len(terms) == 2 and (set(terms[0]) <= set(terms[1]) or set(terms[1]) <= set(terms[0])):
        factors, terms = factors[::-1], terms[::-1]
    cotangent = einsum(*factors, equation=equation_of(terms, kept))
    lengths = dict(zip(kept, cotangent.shape, strict=True))
    cotangent = reshape(cotangent, shape=tuple(lengths.get(label, 1) for label in term))
    return unbroadcast(broadcast_to(cotangent, shape=x.shape), x)


# einsum ----------------------------------------------------------------------------------------


def _undoubled(x: Any, term: str, diagonal: Callable[..., Any]) -> list[tuple[Any, str]]:
    """``x`` and its successive diagonals, until each axis of the term occurs once."""
    stages = [(x, term)]
    while doubled := _doubled(term):
        first, second = doubled
        term = term[:first] + term[first + 1 : second] + term[second + 1 :] + term[first]
        stages.append((diagonal(stages[-1][0], axis1=first, axis2=second), term))
    return stages


def _doubled(term: str) -> tuple[int, int] | None:
    """The first two positions of a letter that occurs twice."""
    places = ((term.index(label), at) for at, label in enumerate(term))
    return next(((first, at) for first, at in places if first < at), None)


def _planned(
    stages: Sequence[Sequence[tuple[Any, str]]], out: str
) -> tuple[list[Any], tuple[Step, ...]]:
    """The last stage of each operand, and the steps that contract them."""
    values, terms = zip(*[each[-1] for each in stages], strict=True)
    return list(values), _steps(terms, out, tuple(value.shape for value in values))


def _einsum_shape(operands: Sequence[Shape], *, equation: str) -> Shape:
    return labeled(equation, operands).shape


@op(
    shape=_einsum_shape,
    dtype=strong,
    leading=["equation"],
    reference=lambda *operands, equation: np.einsum(equation, *operands),
    cases=[
        case(operands=[(2, 3), (3, 4)], equation="ij,jk->ik"),
        case(operands=[(2, 3), (3, 4), (4,)], equation="ij,jk,k"),
        case(operands=[(3, 3, 2)], equation="iij->j", order=2),
        case(operands=[(3, 2, 3), (3, 4)], equation="iai,ib->bi", order=2),
        case(operands=[(2, 3, 4), (5, 1, 4, 2)], equation="...ij, ...jk -> ...ik", order=1),
        case(operands=[(2, 3), (4, 1)], equation="ij,kj->k", order=2),
        case(operands=[(0, 3), (3,)], equation="ij,j->i", order=1),
        case(operands=[(2, 3), integers(3, high=9)], equation="ij,j->ji", order=1),
        workload(operands=[(256, 512), (512, 512), (512, 256)], equation="ij,jk,kl->il"),
        misuse("must be letters for axes", operands=[(2, 3)], equation="i1->i"),
        misuse("'ij,jk' must be of 1 operands, got 2", operands=[(2, 3)], equation="ij,jk"),
        misuse("'i' must have 1 axes, got shape (2, 3)", operands=[(2, 3)], equation="i->i"),
        misuse(
            "axis 'j' of 'ij,jk' must have one length, got 3 and 4",
            operands=[(2, 3), (4, 5)],
            equation="ij,jk",
        ),
        misuse(
            "must have each axis of some operand at most once, got 'k'",
            operands=[(2, 3)],
            equation="ij->ik",
        ),
        misuse("the axes 'i' of 'ii' must be equally long", operands=[(1, 3)], equation="ii"),
    ],
    costly=True,
)
def einsum(*operands: Array, equation: Equation) -> Array:
    """Einstein summation: sum of products over named axes, as in ``einsum("ij,jk->ik", x, y)``.

    Each letter names an axis; axes of the same name have the same length, or length 1, which is
    broadcast. The letters after the arrow are the axes of the result, and all others are summed.
    Without an arrow the result has the axes that occur once, in alphabetical order. A repeated
    letter in one operand selects the diagonal. ``...`` represents any further axes, which
    broadcast; they come first in an implicit result, and are summed if an explicit result omits
    them. Three or more operands are contracted in pairs, in the order that needs the fewest
    operations.

    Example:
        >>> import jax.numpy as jnp
        >>> einsum("ij,j->i", jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([1.0, -1.0]))
        Array([-1., -1.], dtype=float32)
        >>> einsum("ii", jnp.asarray([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    labels = labeled(equation, [jnp.shape(x) for x in operands])
    dtype = jnp.result_type(*operands)
    arrays = [jnp.asarray(x, dtype) for x in operands]
    tasks = zip(arrays, labels.terms, strict=True)
    values, steps = _planned([_undoubled(*one, diagonal_of) for one in tasks], labels.out)
    for step in steps:
        values.append(_contracted(step, [values[i] for i in step.places]))
    return jnp.asarray(values[-1], dtype)


@einsum.gradient
def _einsum_gradient(operands: Sequence[Var], d_out: Var, *, equation: str) -> Grads:
    # The result is computed in steps, each a product of two values. The gradient recomputes these
    # values, which costs nothing where a program holds them already, and passes d_out back through
    # the steps.
    labels = labeled(equation, [x.shape for x in operands])
    alike = [cast(x, dtype=d_out.dtype) for x in operands]
    stages = [_undoubled(*one, diagonal) for one in zip(alike, labels.terms, strict=True)]
    values, steps = _planned(stages, labels.out)
    for step in steps[:-1]:
        values.append(einsum(*[values[i] for i in step.places], equation=step.equation))
    users = {place: at for at, step in enumerate(steps) for place in step.places}

    @functools.cache
    def cotangent(place: int) -> Any:
        if place == len(operands) + len(steps) - 1:
            return d_out
        step = steps[users[place]]
        d = cotangent(len(operands) + users[place])
        taken = [values[i] for i in step.places]
        own = Labels(step.terms, step.out, labels.lengths)
        return cotangent_of(step.places.index(place), taken, own, d)

    def gradient(place: int) -> Any:
        d = cotangent(place)
        for before, term in reversed(stages[place][:-1]):
            d = diagonal_cotangent(d, before, 0, *(_doubled(term) or (0, 0)))
        return unbroadcast(d, operands[place])

    return {"operands": [functools.partial(gradient, place) for place in range(len(operands))]}


@einsum.simplify
def _einsum_simplify(operands: Sequence[Var], *, equation: str) -> Var | None:
    if len(operands) != 1:
        return None
    (x,) = operands
    labels = labeled(equation, [x.shape])
    (term,) = labels.terms
    if x.type.weak or sorted(term) != sorted(labels.out):
        return None
    order: Var = permute_dims(x, axes=tuple(term.index(label) for label in labels.out))
    return order
