"""Samples of linear algebra."""

import itertools

import numpy as np

from mxnet_samples.sample import Sample

NEAR_ONE = np.asarray(
    [
        [[2.0, 0.3, -0.4], [0.1, 1.7, 0.5], [0.2, -0.6, 2.4]],
        [[1.6, -0.2, 0.3], [0.4, 2.2, -0.1], [-0.5, 0.7, 1.9]],
    ]
)
"""Square matrices with large diagonals."""
TURNED = np.asarray([[0.5, 2.0, -0.4], [1.5, -0.3, 0.8], [0.2, 0.6, 1.1]])
"""One whose determinant is negative."""
DEFINITE = NEAR_ONE @ NEAR_ONE.swapaxes(1, 2)
FACTORS = np.linalg.cholesky(DEFINITE)
WIDE = np.asarray([[[1.0, 0.4, -0.7, 0.2], [0.3, -1.2, 0.5, 0.9]]])
NUMBERS = np.arange(1.0, 10.0).reshape(3, 3)


def t(matrices):
    """Transposed."""
    return matrices.swapaxes(-1, -2)


def triangle(matrices, lower, transpose=False):
    """One triangle."""
    half = np.tril(matrices) if lower else np.triu(matrices)
    return t(half) if transpose else half


def gelqf(matrices):
    """Orthonormal rows and a lower triangle."""
    q, r = np.linalg.qr(t(matrices))
    return t(q), t(r)


def syevd(matrices):
    """Eigenvectors as rows, the largest entry of each positive."""
    values, vectors = np.linalg.eigh(matrices)
    rows = t(vectors)
    largest = np.take_along_axis(rows, np.abs(rows).argmax(-1)[..., None], -1)
    return rows * np.sign(largest), values


def makediag(offset):
    """Matrices with the entries on a diagonal."""

    def reference(array):
        rows = array.reshape(-1, array.shape[-1])
        made = np.stack([np.diag(row, offset) for row in rows])
        return made.reshape(*array.shape[:-1], *made.shape[1:])

    return reference


def corner(rows, offset, lower):
    """Rows and columns of the entries of a triangle, in the order that MXNet gives them.

    It is that of the lower triangle, row by row; an upper one is read as its transpose.
    """
    row, column = np.tril_indices(rows - abs(offset))
    row = row + abs(offset)
    upper = offset > 0 or (offset == 0 and not lower)
    return (column, row) if upper else (row, column)


def extracttrian(offset, lower):
    """The entries of a triangle."""
    return lambda a: a[(..., *corner(a.shape[-1], offset, lower))]


def maketrian(offset, lower):
    """Zeros with a triangle."""

    def reference(a):
        rows = round((np.sqrt(8 * a.shape[-1] + 1) - 1) / 2) + abs(offset)
        made = np.zeros((*a.shape[:-1], rows, rows))
        made[(..., *corner(rows, offset, lower))] = a
        return made

    return reference


def products():
    """Samples of the operators that multiply."""
    for one, other in itertools.product((False, True), repeat=2):
        inputs = {
            "A": (2, 3, 2) if one else (2, 2, 3),
            "B": (2, 2, 3) if other else (2, 3, 2),
        }
        told = {"transpose_a": one, "transpose_b": other, "alpha": 1.5}

        def gemm2(a, b, one=one, other=other):
            return 1.5 * (t(a) if one else a) @ (t(b) if other else b)

        yield Sample("_linalg_gemm2", inputs, told, gemm2)
        if one != other:
            continue
        yield Sample(
            "_linalg_gemm",
            {**inputs, "C": (2, 2, 2)},
            {**told, "beta": 0.5},
            lambda a, b, c, gemm2=gemm2: gemm2(a, b) + 0.5 * c,
        )
    yield Sample(
        "_linalg_gemm",
        {"A": (2, 2, 3), "B": (3, 2, 2), "C": (2, 2, 2)},
        {"axis": 0},
        lambda a, b, c: np.einsum("ibk,kbj->ibj", a, b) + c,
    )
    yield Sample(
        "_linalg_gemm2",
        {"A": (2, 2, 3), "B": (2, 2, 3)},
        {"axis": -3, "transpose_b": True},
        lambda a, b: np.einsum("ibk,jbk->ibj", a, b),
    )
    yield Sample("_linalg_syrk", {"A": (2, 2, 3)}, {"alpha": 2.0}, lambda a: 2 * a @ t(a))
    yield Sample("_linalg_syrk", {"A": (2, 3)}, {"transpose": True}, lambda a: t(a) @ a)


def triangular():
    """Samples of products with triangular matrices, and of solutions."""
    for transpose, rightside, lower in itertools.product((False, True), repeat=3):
        told = {"transpose": transpose, "rightside": rightside, "lower": lower, "alpha": 1.5}
        inputs = {"A": NEAR_ONE, "B": (2, 2, 3) if rightside else (2, 3, 2)}

        def trmm(a, b, lower=lower, transpose=transpose, rightside=rightside):
            half = triangle(a, lower, transpose)
            return 1.5 * (b @ half if rightside else half @ b)

        def trsm(a, b, lower=lower, transpose=transpose, rightside=rightside):
            inverse = np.linalg.inv(triangle(a, lower, transpose))
            return 1.5 * (b @ inverse if rightside else inverse @ b)

        yield Sample("_linalg_trmm", inputs, told, trmm)
        yield Sample("_linalg_trsm", inputs, told, trsm)


def triangles():
    """Samples of what takes triangles out and puts them in."""
    for offset, lower in ((0, True), (0, False), (1, True), (-1, False), (2, False)):
        told = {"offset": offset, "lower": lower}
        reference = extracttrian(offset, lower)
        yield Sample("_linalg_extracttrian", {"A": NUMBERS}, told, reference)
        yield Sample("_linalg_maketrian", {"A": (2, 3)}, told, maketrian(offset, lower))
    yield Sample("_linalg_extracttrian", {"A": NEAR_ONE}, {"offset": -1}, extracttrian(-1, True))
    yield Sample("_linalg_maketrian", {"A": (6,)}, {}, maketrian(0, True))
    for offset in (0, 1, -2):
        told = {"offset": offset}
        yield Sample(
            "_linalg_extractdiag",
            {"A": (2, 3, 4)},
            told,
            lambda a, offset=offset: np.diagonal(a, offset, -2, -1),
        )
        yield Sample("_linalg_makediag", {"A": (2, 2)}, told, makediag(offset))


SAMPLES = [
    *products(),
    *triangular(),
    *triangles(),
    Sample("_linalg_potrf", {"A": DEFINITE}, {}, np.linalg.cholesky),
    Sample(
        "_linalg_potrf", {"A": DEFINITE[0]}, {"lower": False}, lambda a: np.linalg.cholesky(a).T
    ),
    Sample("_linalg_potri", {"A": FACTORS}, {}, lambda a: np.linalg.inv(a @ t(a))),
    Sample("_linalg_potri", {"A": t(FACTORS)}, {"lower": False}, lambda a: np.linalg.inv(t(a) @ a)),
    Sample("_linalg_gelqf", {"A": WIDE}, {}, gelqf),
    Sample("_linalg_gelqf", {"A": NEAR_ONE}, {}, gelqf),
    Sample("_linalg_syevd", {"A": DEFINITE}, {}, syevd),
    Sample("_linalg_syevd", {"A": DEFINITE[1]}, {}, syevd),
    Sample(
        "_linalg_sumlogdiag",
        {"A": NEAR_ONE},
        {},
        lambda a: np.log(np.diagonal(a, 0, 1, 2)).sum(-1),
    ),
    Sample(
        "_linalg_sumlogdiag",
        {"A": NEAR_ONE[0]},
        {},
        lambda a: np.log(np.diag(a)).sum(keepdims=True),
    ),
    Sample("_linalg_det", {"A": NEAR_ONE}, {}, np.linalg.det),
    Sample("_linalg_det", {"A": TURNED}, {}, lambda a: np.linalg.det(a[None])),
    Sample("_linalg_slogdet", {"A": NEAR_ONE}, {}, lambda a: list(np.linalg.slogdet(a))),
    Sample("_linalg_slogdet", {"A": TURNED}, {}, lambda a: list(np.linalg.slogdet(a[None]))),
    Sample("_linalg_inverse", {"A": NEAR_ONE}, {}, np.linalg.inv),
]
