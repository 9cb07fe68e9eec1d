"""Operators that Paddle ran: programs with one operator and its gradient, and what they gave.

``tests/data/paddle/operators.npz`` was computed by the released packages of Paddle 1.8.5 and 2.6.2
on random inputs. ``index`` lists the keys, dtypes and shapes of the arrays that ``data`` holds one
after the other, both compressed by LZMA. A key is ``case|version|part|variable``; offsets follow
``/lod/``.
"""

import json
import lzma
import math
import pathlib
from typing import Any, NamedTuple

import numpy as np

import symop as so

PATH = pathlib.Path(__file__).parent / "data" / "paddle" / "operators.npz"


class Record(NamedTuple):
    """A program, what is fed, and what Paddle computed."""

    version: str
    program: bytes
    feed: dict[str, Any]
    expected: dict[str, Any]


def _arrays() -> dict[str, np.ndarray]:
    with np.load(PATH) as file:
        index = json.loads(lzma.decompress(file["index"].tobytes()))
        data = lzma.decompress(file["data"].tobytes())
    arrays, at = {}, 0
    for key, dtype, shape in index:
        kind = np.dtype(dtype)
        count = math.prod(shape)
        arrays[key] = np.frombuffer(data, kind, count, at).reshape(shape)
        at += count * kind.itemsize
    return arrays


def _ragged(arrays: dict[str, np.ndarray], key: str) -> Any:
    """Returns an array, or a ``LoDTensor`` if it has offsets."""
    lod = [arrays[f"{key}/lod/{i}"] for i in range(4) if f"{key}/lod/{i}" in arrays]
    return so.LoDTensor(arrays[key], lod) if lod else arrays[key]


def records() -> dict[str, Record]:
    """Returns all records by case: the operator, a hyphen, and a number."""
    arrays = _arrays()
    result: dict[str, Record] = {}
    for key in arrays:
        case, version, part, *rest = key.split("|")
        if part == "pb":
            result[case] = Record(version, arrays[key].tobytes(), {}, {})
        elif "/lod/" not in key:
            values = result[case].feed if part == "feed" else result[case].expected
            values[rest[0]] = _ragged(arrays, key)
    return result
