"""Samples of products of matrices, also of those that attention is made of."""

import numpy as np
import scipy.linalg

from mxnet_samples.sample import Sample

DOTS = [  # lengths of lhs and of rhs, attributes, the axes that are summed over
    ((2, 3), (3, 4), {}, (-1, 0)),
    ((2, 3, 4), (4, 3), {}, (-1, 0)),
    ((2, 3), (3, 2, 2), {}, (-1, 0)),
    ((2, 3, 4), (4,), {}, (-1, 0)),
    ((3,), (3,), {}, (-1, 0)),
    ((3, 2), (3, 4), {"transpose_a": True}, (0, 0)),
    ((2, 3, 2), (2, 3), {"transpose_a": True}, (0, 0)),
    ((2, 3), (4, 3), {"transpose_b": True}, (-1, -1)),
    ((3, 2), (4, 2, 3), {"transpose_a": True, "transpose_b": True}, (0, -1)),
]

BATCH_DOTS = [  # lengths of lhs and of rhs, attributes, the sum
    ((2, 3, 4), (2, 4, 2), {}, "...ij,...jk->...ik"),
    ((2, 4, 3), (2, 4, 2), {"transpose_a": True}, "...ji,...jk->...ik"),
    ((2, 3, 4), (2, 2, 4), {"transpose_b": True}, "...ij,...kj->...ik"),
    ((2, 1, 4, 3), (2, 1, 2, 4), {"transpose_a": True, "transpose_b": True}, "...ji,...kj->...ik"),
]

STEPS, KEYS, BATCH, HEADS, WIDTH = 3, 2, 2, 2, 2
BOTH = BATCH * HEADS


def heads(projected, parts):
    """Each of the ``parts``, head by head: ``(batch * heads, steps, width)``."""
    apart = projected.reshape(len(projected), BATCH, HEADS, parts, WIDTH)
    return np.moveaxis(apart, 0, 2).transpose(3, 0, 1, 2, 4).reshape(parts, BOTH, -1, WIDTH)


def scores(queries, keys):
    """Scaled products."""
    return queries @ keys.swapaxes(1, 2) / np.sqrt(WIDTH)


def beside(attention, values):
    """What the heads see, one beside the other."""
    seen = (attention @ values).reshape(BATCH, HEADS, -1, WIDTH)
    return seen.transpose(2, 0, 1, 3).reshape(-1, BATCH, HEADS * WIDTH)


SELF = (STEPS, BATCH, HEADS * 3 * WIDTH)
QUERIES, OTHERS = (STEPS, BATCH, HEADS * WIDTH), (KEYS, BATCH, HEADS * 2 * WIDTH)

ATTENTION = {  # part of a name: the inputs, the definition
    "selfatt_qk": ({"queries_keys_values": SELF}, lambda all_: scores(*heads(all_, 3)[:2])),
    "selfatt_valatt": (
        {"queries_keys_values": SELF, "attention": (BOTH, STEPS, STEPS)},
        lambda all_, attention: beside(attention, heads(all_, 3)[2]),
    ),
    "encdec_qk": (
        {"queries": QUERIES, "keys_values": OTHERS},
        lambda queries, others: scores(heads(queries, 1)[0], heads(others, 2)[0]),
    ),
    "encdec_valatt": (
        {"keys_values": OTHERS, "attention": (BOTH, STEPS, KEYS)},
        lambda others, attention: beside(attention, heads(others, 2)[1]),
    ),
}


SAMPLES = [
    *[
        Sample(
            "dot",
            {"lhs": lhs, "rhs": rhs},
            attributes,
            lambda one, other, axes=axes: np.atleast_1d(np.tensordot(one, other, axes)),
        )
        for lhs, rhs, attributes, axes in DOTS
    ],
    *[
        Sample(
            "batch_dot",
            {"lhs": lhs, "rhs": rhs},
            attributes,
            lambda one, other, rule=rule: np.einsum(rule, one, other),
        )
        for lhs, rhs, attributes, rule in BATCH_DOTS
    ],
    Sample("khatri_rao", {"arg0": (2, 3), "arg1": (3, 3)}, {}, scipy.linalg.khatri_rao),
    Sample(
        "khatri_rao",
        {"arg0": (2, 2), "arg1": (3, 2), "arg2": (2, 2)},
        {},
        lambda a, b, c: scipy.linalg.khatri_rao(scipy.linalg.khatri_rao(a, b), c),
    ),
    *[
        Sample(f"_contrib_interleaved_matmul_{name}", inputs, {"heads": HEADS}, definition)
        for name, (inputs, definition) in ATTENTION.items()
    ],
]
