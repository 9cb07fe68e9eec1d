"""The collectives of a compiled module: their kinds, numbers, and the bytes of their results."""

import re
from collections import Counter
from collections.abc import Callable

_COLLECTIVE = re.compile(
    r" = (?P<types>\(.*?\)|\S+) "
    r"(?P<kind>all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)\("
)
_ARRAY = re.compile(r"(?P<kind>[a-z]+)(?P<bits>\d*)\[(?P<lengths>[\d,]*)\]")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?(?P<name>[\w.\-]+) .*\{$")
_LOOP = re.compile(r" while\(.*body=%?(?P<body>[\w.\-]+)")
_STEPS = re.compile(r'known_trip_count"?:\{"?n"?:"?(?P<count>\d+)')
_CALLED = re.compile(r"(?:calls|branch_computations)=\{?%?(?P<name>[\w.\-]+)")


def bytes_of(types: str) -> int:
    """The bytes of the arrays of an HLO type."""
    total = 0
    for found in _ARRAY.finditer(types):
        count = int(found["bits"] or 8) // 8
        for length in filter(None, found["lengths"].split(",")):
            count *= int(length)
        total += count
    return total


def collectives(text: str, measure: Callable[[str], int] = bytes_of) -> Counter[str]:
    """The bytes of the results of each kind of collective in a step, loops included.

    Args:
        text: the compiled module.
        measure: what to add up instead of bytes, from the type of a collective's result.
    """
    computations: dict[str, list[str]] = {}
    lines: list[str] = []
    entry = ""
    for line in text.splitlines():
        found = _COMPUTATION.match(line)
        if found:
            lines = computations[found["name"]] = []
            entry = found["name"] if line.startswith("ENTRY") else entry
        else:
            lines.append(line)

    def inside(name: str) -> Counter[str]:
        result: Counter[str] = Counter()
        for line in computations.get(name, ()):
            found = _COLLECTIVE.search(line)
            if found:
                result[found["kind"]] += measure(found["types"])
                continue
            loop = _LOOP.search(line)
            if loop:
                steps = _STEPS.search(line)
                assert steps is not None, line
                for kind, size in inside(loop["body"]).items():
                    result[kind] += size * int(steps["count"])
            for called in _CALLED.finditer(line):
                result += inside(called["name"])
        return result

    return inside(entry)


def calls(text: str) -> Counter[str]:
    """How often each kind of collective runs in a step."""
    return collectives(text, lambda _: 1)


def largest(text: str) -> int:
    """The bytes of the largest result of a collective."""
    return max(bytes_of(found["types"]) for found in _COLLECTIVE.finditer(text))
