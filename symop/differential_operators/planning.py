"""Which derivatives along which directions add up to the terms of one order of an operator.

A *monomial* is a sorted tuple of coordinates: ``(0, 0, 2)`` is the derivative twice by coordinate 0
and once by coordinate 2. A *push* is a sum of derivatives of one kind along directions, which one
pass through a graph computes. There are four exact ways:

- *Multilinear*: a derivative along several basis vectors, each in a slot of its own. A slot that is
  used once takes a combination: ``sum_j a[j] d_i d_j u`` is the derivative along ``e_i`` and
  ``a``. No digits cancel.
- *By rows*: for order two, ``sum_ij a[i, j] d_i d_j u`` is the sum over ``i`` of the derivatives
  along ``e_i`` and row ``i`` of ``a``. Tangents along the rows are combinations of those along the
  basis vectors, which alone are carried.
- *By eigenvectors*: for order two and numbers, ``sum_ij a[i, j] d_i d_j u`` is the sum of the
  second derivatives along the eigenvectors of ``a``, weighted by the eigenvalues.
- *Polarized*: a mixed derivative is a combination of derivatives along one direction each, such as
  ``d_i d_j = ((e_i + e_j)^2 - (e_i - e_j)^2) / 4``.

A push of order ``n`` along ``k`` slots, which are used ``n_1`` to ``n_k`` times, carries the value,
the sum of the highest coefficients, and ``(n_1 + 1) ... (n_k + 1) - 2`` coefficients for each row
of directions: the fewest in total are chosen. Along one slot, first derivatives are combinations of
those along the basis vectors. They alone are multiplied by derivatives of order ``n - 1``, of which
only a sum for each basis vector is needed. If rows outnumber these vectors, both are carried for
the vectors alone.

Source: Kan, From moments of sum to moments of product, Journal of Multivariate Analysis, 2008, for
the polarization with the fewest directions. Griewank, Utke, Walther, Evaluating higher derivative
tensors by forward propagation of univariate Taylor series, Mathematics of Computation, 2000, is the
interpolation of all derivatives of one order.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Monomial = tuple[int, ...]
Way = Mapping[int, Any]
"""A direction: the entry of each coordinate, others are zero; a number or a symbol."""
Terms = Mapping[Monomial, Any]
"""The coefficient of each monomial: a number or a symbol."""


class Push(NamedTuple):
    """A sum over rows of derivatives along one direction in each slot.

    Attributes:
        orders: how often it is differentiated along each slot.
        ways: for each slot the direction in each row.
        coefficients: numbers or symbols; empty if they are entries of the directions.
        mixing: the weight of each row as a combination of the coefficients; None if these are the
            weights.
        by_rows: whether the directions of the last of two slots are combinations of all those of
            the first, the distinct vectors of a basis.
        spans: whether values that are linear in the direction of the only slot may be computed for
            the vectors of a basis alone.
    """

    orders: tuple[int, ...]
    ways: tuple[tuple[Way, ...], ...]
    coefficients: tuple[Any, ...] = ()
    mixing: np.ndarray | None = None
    by_rows: bool = False
    spans: bool = False

    @property
    def basis(self) -> list[int]:
        """The coordinates along which linear values are computed; none if they are for each row."""
        used = sorted({i for row in self.ways[0] for i in row})
        return used if self.spans and self.orders[0] > 2 and len(used) < len(self.ways[0]) else []

    @property
    def cost(self) -> float:
        """The number of coefficients that are carried for the rows together."""
        rows = len(self.ways[0])
        if self.basis:
            return 2 * len(self.basis) + (self.orders[0] - 3 + COMBINATION) * rows
        return rows * (1 if self.by_rows else _carried(self.orders))


COMBINATION = 0.3
"""What a row of combinations costs, in entrywise operators and in memory, without matrix products.

Measured for operators of order 3 in 3 to 10 dimensions of a network with layers of 256.
"""


def pushes_of(terms: Terms, *, spans: bool = True) -> list[Push]:
    """Returns the pushes whose sum is that of ``terms``, which are of one order of at least two.

    ``spans`` is whether linear values may be computed for a basis alone: not inside of a loop.
    """
    choices = [multilinear(terms)]
    if any(len(powers(one)) > 1 for one in terms):
        choices.append([polarized(terms)._replace(spans=spans)])
        if all(len(one) == 2 for one in terms):
            numbers = all(map(is_number, terms.values()))
            choices += [[by_eigenvectors(terms)]] if numbers else []
            choices.append([by_rows(terms)])
    return min(choices, key=lambda pushes: sum(one.cost for one in pushes))


def is_number(value: Any) -> bool:
    """Whether a coefficient is a number, which is known before the graph runs."""
    return isinstance(value, (int, float))


def _carried(orders: Sequence[int]) -> int:
    return math.prod(one + 1 for one in orders) - 2


def powers(monomial: Monomial) -> list[tuple[int, int]]:
    """Returns the coordinates of a monomial with their exponents, the largest first."""
    counts = [(one, len(list(same))) for one, same in itertools.groupby(monomial)]
    return sorted(counts, key=lambda pair: -pair[1])


# Several slots -----------------------------------------------------------------------------------


def multilinear(terms: Terms) -> list[Push]:
    """Returns pushes along basis vectors, with a slot for each coordinate of a monomial.

    Terms that differ in one coordinate are one row, whose last slot combines them.
    """
    rest = dict(terms)
    rows: list[tuple[Monomial, Way]] = []
    for base, factors in _stars(terms):
        rows.append((base, {_quotient(one, base): rest.pop(one) for one in factors}))
    for one in [one for one in rest if powers(one)[-1][1] == 1 and len(one) > 1]:
        last = powers(one)[-1][0]
        rows.append((_without(one, last), {last: rest.pop(one)}))
    return [*_along_rows(rows), *along_each(rest)]


def _stars(terms: Terms) -> Iterator[tuple[Monomial, list[Monomial]]]:
    """Yields bases, and monomials that are the product of the base and one more coordinate.

    Only those that are cheaper together; the greatest saving comes first.
    """
    covers: dict[Monomial, dict[Monomial, int]] = defaultdict(dict)
    for one in terms:
        for i in dict.fromkeys(one):
            covers[_without(one, i)][one] = _carried([n for _, n in powers(one)])

    def saving(base: Monomial) -> int:
        alone = sum(covers[base].values())
        return alone - _carried([*(n for _, n in powers(base)), 1])

    while covers and saving(base := max(covers, key=saving)) > 0:
        factors = list(covers.pop(base))
        yield base, factors
        for one in factors:
            for i in dict.fromkeys(one):
                covers.get(_without(one, i), {}).pop(one, None)


def _without(monomial: Monomial, coordinate: int) -> Monomial:
    at = monomial.index(coordinate)
    return monomial[:at] + monomial[at + 1 :]


def _quotient(monomial: Monomial, base: Monomial) -> int:
    return next(one for one in monomial if monomial.count(one) > base.count(one))


def _along_rows(rows: Sequence[tuple[Monomial, Way]]) -> list[Push]:
    """Returns a push for the rows whose bases have the same exponents."""
    kinds: dict[tuple[int, ...], list[tuple[Monomial, Way]]] = defaultdict(list)
    for base, last in rows:
        kinds[tuple(n for _, n in powers(base))].append((base, last))
    return [
        Push((*orders, 1), (*_slots([base for base, _ in own]), tuple(last for _, last in own)))
        for orders, own in kinds.items()
    ]


def along_each(terms: Terms) -> list[Push]:
    """Returns a push for the terms whose monomials have the same exponents, a row for each."""
    kinds: dict[tuple[int, ...], list[Monomial]] = defaultdict(list)
    for one in terms:
        kinds[tuple(n for _, n in powers(one))].append(one)
    return [
        Push(orders, _slots(own), tuple(terms[one] for one in own)) for orders, own in kinds.items()
    ]


def _slots(monomials: Sequence[Monomial]) -> tuple[tuple[Way, ...], ...]:
    rows = [[{one: 1.0} for one, _ in powers(monomial)] for monomial in monomials]
    return tuple(zip(*rows, strict=True))


def by_rows(terms: Terms) -> Push:
    """Returns derivatives along each basis vector and a row of the form of second order."""
    used = sorted({i for one in terms for i in one})
    rows: dict[int, dict[int, Any]] = {i: {} for i in used}
    for (i, j), value in terms.items():
        rows[i][j] = value
    return Push((1, 1), (tuple({i: 1.0} for i in used), tuple(rows.values())), by_rows=True)


# One slot ----------------------------------------------------------------------------------------

NEGLIGIBLE = 1e-14
"""The size of an eigenvalue that is a rounding error, relative to the largest of its block."""


def by_eigenvectors(terms: Terms) -> Push:
    """Returns second derivatives along the eigenvectors of a form of numbers.

    Coordinates that no term links are in blocks of their own, so that a small coefficient does not
    drown in the rounding errors of a large one.
    """
    pairs = [pair for block in _blocks(terms) for pair in _eigenpairs(block)]
    pairs = pairs or [(0.0, {next(iter(terms))[0]: 1.0})]
    return Push((2,), (tuple(way for _, way in pairs),), tuple(value for value, _ in pairs))


def _blocks(terms: Terms) -> list[Terms]:
    """Returns the terms apart whose coordinates are linked."""
    blocks: list[tuple[set[int], dict[Monomial, Any]]] = []
    for one, value in terms.items():
        linked = [block for block in blocks if not block[0].isdisjoint(one)]
        blocks = [block for block in blocks if block not in linked]
        coordinates = set(one).union(*(known for known, _ in linked))
        joined = {key: own for _, part in linked for key, own in part.items()}
        blocks.append((coordinates, {**joined, one: value}))
    return [part for _, part in blocks]


def _eigenpairs(terms: Terms) -> list[tuple[float, Way]]:
    """Returns the eigenvalues of a form that are not zero, with their eigenvectors."""
    used = sorted({i for one in terms for i in one})
    place = {one: i for i, one in enumerate(used)}
    form = np.zeros((len(used), len(used)))
    for (i, j), value in terms.items():
        form[place[i], place[j]] += value / 2
        form[place[j], place[i]] += value / 2
    values, vectors = np.linalg.eigh(form)
    least = NEGLIGIBLE * np.abs(values).max()
    return [
        (float(value), dict(zip(used, map(float, vector), strict=True)))
        for value, vector in zip(values, vectors.T, strict=True)
        if abs(value) > least
    ]


def polarized(terms: Terms) -> Push:
    """Returns derivatives along one direction in each row.

    The derivative by ``x_i`` of orders ``n_i``, of order ``n`` together, is the sum over all
    ``k_i <= n_i`` of ``(-1)^(k_1 + k_2 + ...) binomial(n_i, k_i) ... / n!`` times the ``n``th
    derivative along ``h_i = n_i / 2 - k_i``. Opposite directions give the same term.
    """
    weights: dict[tuple[tuple[int, int], ...], dict[int, float]] = defaultdict(dict)
    for column, one in enumerate(terms):
        for way, weight in _polarization(one):
            row = weights[way]
            row[column] = row.get(column, 0.0) + weight
    mixing = np.zeros((len(weights), len(terms)))
    for i, row in enumerate(weights.values()):
        mixing[i, list(row)] = list(row.values())
    ways = tuple({one: float(entry) for one, entry in way} for way in weights)
    order = len(next(iter(terms)))
    return Push((order,), (ways,), tuple(terms.values()), mixing)


def _polarization(monomial: Monomial) -> Iterator[tuple[tuple[tuple[int, int], ...], float]]:
    """Yields directions, of whole numbers without a common divisor, and their weights."""
    pairs, order = sorted(powers(monomial)), len(monomial)
    for ks in itertools.product(*(range(n + 1) for _, n in pairs)):
        doubled = [n - 2 * k for k, (_, n) in zip(ks, pairs, strict=True)]
        if next((entry for entry in doubled if entry), 0) <= 0:
            continue  # zero, or the opposite of another direction
        divisor = math.gcd(*doubled)
        ways = math.prod(math.comb(n, k) for k, (_, n) in zip(ks, pairs, strict=True))
        weight = 2 * (-1) ** sum(ks) * ways / math.factorial(order) * (divisor / 2) ** order
        yield (
            tuple((i, n // divisor) for (i, _), n in zip(pairs, doubled, strict=True) if n),
            weight,
        )
