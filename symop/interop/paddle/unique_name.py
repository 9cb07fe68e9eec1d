"""Names of variables that no other has: ``fc_0``, ``fc_0.w_0``, ``fc_0.tmp_0``."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator

_generators: list[tuple[str, defaultdict[str, int]]] = [("", defaultdict(int))]


def generate(key: str) -> str:
    """Returns ``key`` with a number that it has not had: ``fc_0``, then ``fc_1``."""
    prefix, counts = _generators[-1]
    counts[key] += 1
    return f"{prefix}{key}_{counts[key] - 1}"


@contextlib.contextmanager
def guard(new_generator: str | None = None) -> Iterator[None]:
    """Starts the numbers at zero inside of a ``with`` statement.

    Two programs that are built inside of two guards have equal names, as those for training and for
    inference must.

    Args:
        new_generator: a prefix of the names.
    """
    _generators.append((new_generator or "", defaultdict(int)))
    try:
        yield
    finally:
        _generators.pop()


def switch() -> None:
    """Starts the numbers at zero."""
    _generators[-1][1].clear()
