"""A sequential reader of binary files that trusts no length in them."""

import math
import struct
from typing import ClassVar

import numpy as np

from registry.errors import FormatError
from registry.types import DType, Shape, is_boolean

MAX_RANK = 32
"""The maximal rank of an array, supported by every version of NumPy."""
_MAX_BYTES = 2**63 - 1


class Reader:
    """A sequential reader of a file's content.

    All lengths are checked against the remaining bytes before anything is allocated.

    Attributes:
        error_class: the class of its errors.
        data: the content.
        name: the name of the file in messages.
        at: the offset of the next byte.
        part: the part being read, for messages.
    """

    error_class: ClassVar[type[FormatError]] = FormatError

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name, self.at, self.part = data, name, 0, ""

    @property
    def left(self) -> int:
        """The number of unread bytes."""
        return len(self.data) - self.at

    def error(self, must: str, got: object, at: int) -> FormatError:
        """The error for a violated requirement ``must`` at byte ``at``."""
        return self.error_class(f"{self.name}: {self.part}{must} at byte {at}, got {got}")

    def take(self, length: int, what: str) -> int:
        """Skips the next ``length`` bytes and returns their offset.

        Raises:
            FormatError: fewer bytes are left.
        """
        at = self.at
        if length > self.left:
            raise self.error(f"{what} must be {length} bytes", f"{self.left} until the end", at)
        self.at += length
        return at

    def numbers(self, code: str, count: int, what: str) -> tuple[int, ...]:
        """Reads ``count`` numbers of the ``struct`` type ``code``."""
        at = self.take(count * struct.calcsize(f"<{code}"), what)
        return struct.unpack_from(f"<{count}{code}", self.data, at)

    def number(self, code: str, what: str) -> int:
        """Reads one number."""
        return self.numbers(code, 1, what)[0]

    def one_of(self, allowed: tuple[int, ...], what: str, code: str = "i") -> int:
        """Reads a number that must be one of ``allowed``."""
        at = self.at
        result = self.number(code, what)
        if result not in allowed:
            raise self.error(f"{what} must be one of {', '.join(map(str, allowed))}", result, at)
        return result

    def entries(self, dtype: DType, shape: Shape, what: str) -> np.ndarray:
        """Reads the next bytes as the entries of a new array."""
        if math.prod([max(length, 1) for length in shape]) * dtype.itemsize > _MAX_BYTES:
            raise self.error(f"{what} must be fewer than 2**63 bytes", f"shape {shape}", self.at)
        length = math.prod(shape) * dtype.itemsize
        start = self.take(length, what)
        array = np.empty(shape, dtype)
        if length:
            raw = np.frombuffer(self.data, np.uint8, length, start)
            if is_boolean(dtype) and raw.max() > 1:
                at = int((raw > 1).argmax())
                raise self.error(f"{what} must be 0 or 1", raw[at], start + at)
            array.reshape(-1).view(np.uint8)[:] = raw
        return array

    def finish(self) -> None:
        """Requires that nothing is left."""
        if self.left:
            self.part = ""
            raise self.error("the file must end", f"{self.left} more bytes", self.at)
