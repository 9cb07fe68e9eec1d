"""Beam search. How many candidates remain depends on their scores, so that programs with these
operators are interpreted.
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import symop as so
from symop.interop.paddle.arrays import stacked
from symop.interop.paddle.operators import operator
from symop.interop.paddle.values import known


class Candidate(NamedTuple):
    """A continuation of a prefix: the row of the prefix, a word, and the score."""

    row: int
    word: int
    score: float


def _offsets(name: str, value: Any) -> list[np.ndarray]:
    return [
        known(f"{name}: offsets", jnp.asarray(one) if isinstance(one, np.ndarray) else one)
        for one in value.lod
    ]


@operator(outputs="selected_ids selected_scores parent_idx", ragged=True)
def beam_search(
    pre_ids: Any,
    pre_scores: Any,
    ids: Any = None,
    scores: Any = None,
    *,
    level: int,
    beam_size: int,
    end_id: int,
    is_accumulated: bool = True,
) -> Any:
    """Returns the best continuations of each source sentence, by prefix."""
    ends = known("beam_search: pre_ids", pre_ids).ravel()
    before = known("beam_search: pre_scores", pre_scores).ravel()
    found = known("beam_search: scores", scores)
    words = np.broadcast_to(np.arange(found.shape[1]), found.shape)
    words = words if ids is None else known("beam_search: ids", ids)
    totals = found if is_accumulated else before[:, None] + np.log(found)
    bounds = _absolute(_offsets("beam_search", scores))[level]
    chosen: dict[int, list[Candidate]] = {}
    for start, stop in itertools.pairwise(bounds):
        every = _continuations(range(start, stop), ends, before, words, totals, end_id)
        # Of equal scores the later prefix comes first, as in Paddle's ordering.
        best = sorted(every, key=lambda one: (-one.score, -one.row))[:beam_size]
        if not all(one.word == end_id and ends[one.row] == end_id for one in best):
            for one in best:
                chosen.setdefault(one.row, []).append(one)
    kept = [one for row in range(int(bounds[-1])) for one in chosen.get(row, ())]
    counts = [len(chosen.get(row, ())) for row in range(int(bounds[-1]))]
    lod = [jnp.asarray(bounds, jnp.int32), _bounds(counts)]
    column = (-1, 1)
    selected = np.asarray([one.word for one in kept], np.int32).reshape(column)
    best_scores = np.asarray([one.score for one in kept], found.dtype).reshape(column)
    parents = np.asarray([one.row for one in kept], np.int32)
    first, second = (so.LoDTensor(jnp.asarray(one), lod) for one in (selected, best_scores))
    return first, second, jnp.asarray(parents)


def _continuations(
    rows: range, ends: Any, before: Any, words: Any, totals: Any, end_id: int
) -> Iterator[Candidate]:
    for row in rows:
        if ends[row] == end_id:
            yield Candidate(row, end_id, float(before[row]))
            continue
        for word, score in zip(words[row], totals[row], strict=True):
            yield Candidate(row, int(word), float(score))


def _absolute(lod: list[np.ndarray]) -> list[np.ndarray]:
    """Returns offsets of rows for each level."""
    result = [lod[-1]]
    for upper in reversed(lod[:-1]):
        result.insert(0, result[0][upper])
    return result


def _bounds(counts: Any) -> Any:
    return jnp.asarray(np.concatenate([[0], np.cumsum(counts)]), jnp.int32)


@operator(outputs="SentenceIds SentenceScores", ragged=True)
def beam_search_decode(Ids: Any, Scores: Any, *, beam_size: int, end_id: int) -> Any:
    """Returns the sentences that the selected candidates of all steps form, the best first."""
    steps = [
        (
            known("beam_search_decode: Ids", one).ravel(),
            _offsets("beam_search_decode", one),
            known("beam_search_decode: Scores", score).ravel(),
        )
        for one, score in zip(_elements(Ids), _elements(Scores), strict=True)
    ]
    count = len(steps[0][1][0]) - 1
    groups = [_sentences(steps, source, end_id) for source in range(count)]
    sentences = [one for group in groups for one in group]
    lod = [_bounds([len(group) for group in groups]), _bounds([len(one) for one in sentences])]
    flat = [pair for one in sentences for pair in one]
    words = np.asarray([word for word, _ in flat], np.int32)
    scores = np.asarray([score for _, score in flat], steps[0][2].dtype)
    return tuple(so.LoDTensor(jnp.asarray(one), lod) for one in (words, scores))


def _elements(array: Any) -> list[Any]:
    if isinstance(array, so.Symbol):
        return stacked(array)
    return [one for one in array if one is not None]


def _sentences(steps: Any, source: int, end_id: int) -> list[list[tuple[int, float]]]:
    """Returns the sentences of a source: words with scores, traced back from the last step."""
    places: list[int] = []
    traced: list[list[tuple[int, float]]] = []
    for words, (sources, prefixes), scores in reversed(steps):
        begin, stop = int(sources[source]), int(sources[source + 1])
        if not places:
            for prefix in range(begin, stop):
                for at in range(int(prefixes[prefix]), int(prefixes[prefix + 1])):
                    places.append(prefix)
                    traced.append([(int(words[at]), float(scores[at]))])
            continue
        for i, at in enumerate(places):
            if words[at] != end_id or not traced[i]:
                traced[i].append((int(words[at]), float(scores[at])))
            places[i] = int(np.searchsorted(prefixes, at, side="right")) - 1
    ordered = sorted(traced, key=lambda one: -one[0][1])
    return [one[::-1] for one in ordered]


@operator(no_gradient="Ids Parents")
def gather_tree(Ids: Any, Parents: Any) -> Any:
    """Returns whole sequences: words of each step, by the beams that they continue."""
    beams = so.broadcast_to(jnp.arange(Ids.shape[2], dtype=jnp.int32), shape=Ids.shape[1:])

    def step(at: Any, row: Any) -> tuple[Any, Any]:
        words, parents = row
        before = so.take_along_axis(so.cast(parents, dtype="int32"), at, axis=1)
        return before, so.take_along_axis(words, at, axis=1)

    _, found = so.sym.scan(step, beams, (Ids, Parents), reverse=True)
    return found
