"""Generation of sequences, token by token, by the graph that was trained.

Example:
    >>> import numpy as np, symop as so
    >>> tokens = so.var("tokens", dtype="int32")
    >>> h = so.lookup_table(tokens, rows=5, width=8, name="embedding")
    >>> h = h + so.multi_head_attention(h, heads=2, width=8, causal=True, rotary=True, name="mix")
    >>> logits = so.fully_connected(h, units=5, flatten=False, name="out")
    >>> from symop import train
    >>> import jax
    >>> weights = train.initialize(logits, jax.random.key(0), tokens=(1, 4))
    >>> generate = so.Generator(logits, length=16)
    >>> [len(one) for one in generate(weights, [[1, 2, 3], [4]], 6)]
    [6, 6]
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from registry.errors import ArgumentError, FeedError
from registry.shapes import default_int
from registry.tracebacks import api_boundary, api_class
from registry.types import is_integer
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.generating.by_steps import StepGraph, by_steps, require_result
from symop.runtime.function import GraphFunction
from symop.symbol.symbol import Symbol

__all__ = ["Generator"]

Arrays = dict[str, Any]
_SHORTEST = 8
"""Prompts are padded to this number of tokens times a power of two: few lengths are compiled."""


_COLDEST = 1e-6
"""The lowest temperature to divide by; at zero the quotient is not used."""


class _State(NamedTuple):
    """The state of a loop over tokens.

    Attributes:
        count: the number of tokens generated so far.
        last: the last token of each example.
        tokens: all of them, ``(batch, length)``.
        lengths: the number of tokens of each example before it stopped.
        stopped: whether each example has stopped.
        caches: what earlier positions have left.
    """

    count: Any
    last: Any
    tokens: Any
    lengths: Any
    stopped: Any
    caches: Any


@api_class
class Generator:
    """Generates sequences by a model of the next token, with caches of keys and values.

    The graph is the one that is trained. For generation it is rewritten to compute a few positions
    at a time: causal attention reads the keys and values of earlier positions from caches of fixed
    length, and positions count from there. All tokens after a prompt take one compiled loop, each
    at the same cost. The logits are those of the whole sequence, up to rounding.
    """

    @api_boundary
    def __init__(self, logits: Symbol, *, length: int, tokens: str = "tokens") -> None:
        """Prepares to generate; graphs are built when they are first needed.

        Args:
            logits: a symbol of shape ``(batch, positions, vocabulary)``, each position of which
                scores the token that follows. Positions depend on each other only through causal
                attention (``so.multi_head_attention`` or ``so.scaled_dot_product_attention`` with
                ``causal=True``), and positions are ``so.position_ids`` or rotary.
            length: the largest number of tokens of a prompt and its continuation.
            tokens: the name of the variable of tokens.

        Raises:
            ArgumentError: positions depend on each other otherwise; the message names the call.
        """
        if length < 1:
            raise ArgumentError(f"Generator: length must be positive, got {length}")
        self.logits, self.length, self.tokens = logits, length, tokens
        self._root = require_result(logits.nodes)
        self._graphs: dict[tuple[int, int], tuple[StepGraph, GraphFunction]] = {}
        self._graph(1, 1)
        self._run = jax.jit(self._generate, static_argnames=("top_k",))

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Generator, length=self.length, tokens=self.tokens), (self.logits,)

    def __call__(
        self,
        weights: Mapping[str, Any],
        prompts: Any,
        count: int,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        stop: int | None = None,
        seed: int = 0,
    ) -> list[np.ndarray]:
        """Returns the tokens that follow each prompt.

        Args:
            weights: the parameters and states of the model by name; others are not read.
            prompts: lists of tokens, of any lengths but zero, or an array.
            count: the number of tokens to generate.
            temperature: zero to take the likeliest token; otherwise tokens are drawn from the
                softmax of the logits divided by it.
            top_k: if given, only that many likeliest tokens are drawn.
            stop: the token at which an example ends; it is not returned.
            seed: the seed of the draws.

        Raises:
            ArgumentError: a prompt is empty, or too long together with ``count``, or an option is
                out of range.
            FeedError: a weight is missing.
        """
        padded, lengths = self._padded(prompts)
        self._require_options(count, int(lengths.max()), temperature, top_k)
        fed = self._weights(weights)
        for positions in (padded.shape[1], 1):  # built before they are traced
            self._graph(len(padded), positions)
        tokens, totals = self._run(
            fed,
            padded,
            lengths,
            jnp.asarray(count, default_int()),
            jnp.float32(temperature),
            jnp.asarray(-1 if stop is None else stop, default_int()),
            jax.random.key(seed),
            top_k=top_k,
        )
        pairs = zip(np.asarray(tokens), np.asarray(totals), strict=True)
        return [row[:n] for row, n in pairs]

    def _padded(self, prompts: Any) -> tuple[np.ndarray, np.ndarray]:
        rows = [np.asarray(one).ravel() for one in prompts]
        if not rows or any(not len(row) or not is_integer(row.dtype) for row in rows):
            raise ArgumentError(
                "Generator: prompts must be lists of whole numbers, each of one token at least, "
                f"got {prompts!r:.200}"
            )
        lengths = np.asarray([len(row) for row in rows], default_int())
        whole = _SHORTEST
        while whole < lengths.max():
            whole *= 2
        padded = np.zeros((len(rows), min(whole, max(self.length, lengths.max()))), default_int())
        for i, row in enumerate(rows):
            padded[i, : len(row)] = row
        return padded, lengths

    def _require_options(
        self, count: int, longest: int, temperature: float, top_k: int | None
    ) -> None:
        if count < 1 or longest + count > self.length:
            raise ArgumentError(
                f"Generator: count must be positive, and with the longest prompt ({longest}) at "
                f"most length ({self.length}), got {count}"
            )
        vocabulary = self._graph(1, 1)[0].result.type.shape[-1]
        if not temperature >= 0 or not (top_k is None or 1 <= top_k <= vocabulary):
            raise ArgumentError(
                "Generator: temperature must not be negative and top_k must be among "
                f"1, ..., {vocabulary}, got {temperature} and {top_k}"
            )

    def _weights(self, weights: Mapping[str, Any]) -> Arrays:
        graph, function = self._graph(1, 1)
        own = {self.tokens, *(one.name for one in (graph.before, *graph.caches))}
        needed = [name for name in function.names if name not in own]
        missing = [name for name in needed if name not in weights]
        if missing:
            raise FeedError(f"Generator: weights must hold {', '.join(missing)}, got none")
        return {name: weights[name] for name in needed}

    # Graphs

    def _graph(self, batch: int, count: int) -> tuple[StepGraph, GraphFunction]:
        """Returns the graph of ``count`` positions of ``batch`` examples, and its function."""
        known = self._graphs.get((batch, count))
        if known is None:
            graph = by_steps(self._root, self.tokens, (batch, count), self.length)
            function = GraphFunction([graph.result, *graph.updated])
            known = self._graphs[batch, count] = (graph, function)
        return known

    def _step(self, weights: Arrays, caches: Any, tokens: Any, before: Any) -> tuple[Any, Any]:
        """Returns the logits of some positions, and the new caches."""
        graph, function = self._graph(*tokens.shape)
        supplied = {str(one.name): value for one, value in zip(graph.caches, caches, strict=True)}
        supplied |= {self.tokens: tokens, str(graph.before.name): before}
        fed = {name: one for name, one in supplied.items() if name in function.names}
        results = function(**weights, **fed)
        logits, *new = results if graph.updated else (results,)
        return logits, new

    def _generate(
        self,
        weights: Arrays,
        prompt: Any,
        lengths: Any,
        count: Any,
        temperature: Any,
        stop: Any,
        key: Any,
        *,
        top_k: int | None,
    ) -> tuple[Any, Any]:
        """Returns the tokens, ``(batch, length)``, and their number for each example."""

        def drawn(logits: Any, i: Any) -> Any:
            own = jax.random.fold_in(key, i)
            return sample(logits, own, temperature, top_k).astype(prompt.dtype)

        def advanced(state: _State, logits: Any, caches: Any) -> _State:
            token = drawn(logits, state.count)
            stopped = state.stopped | (token == stop)
            tokens = lax.dynamic_update_slice(state.tokens, token[:, None], (0, state.count))
            totals = state.lengths + ~stopped
            return _State(state.count + 1, token, tokens, totals, stopped, caches)

        def step(state: _State) -> _State:
            before = lengths + state.count - 1
            logits, caches = self._step(weights, state.caches, state.last[:, None], before)
            return advanced(state, logits[:, 0], caches)

        start, logits = self._start(weights, prompt, lengths, count)
        end = lax.while_loop(
            lambda state: (state.count < count) & ~jnp.all(state.stopped),
            step,
            advanced(start, logits, start.caches),
        )
        return end.tokens, end.lengths

    def _start(self, weights: Arrays, prompt: Any, lengths: Any, count: Any) -> tuple[_State, Any]:
        """Returns the state before the first token, and the logits at the ends of the prompts."""
        batch = len(lengths)
        types = [one.type for one in self._graph(batch, 1)[0].caches]
        caches = [jnp.zeros(one.shape, one.dtype) for one in types]
        logits, caches = self._step(weights, caches, prompt, jnp.zeros_like(lengths))
        start = _State(
            jnp.zeros_like(count),
            prompt[:, 0],
            jnp.zeros((batch, self.length), prompt.dtype),
            jnp.zeros_like(lengths),
            jnp.zeros(batch, bool),
            caches,
        )
        last = jnp.take_along_axis(logits, (lengths - 1)[:, None, None], axis=1)[:, 0]
        return start, last


def sample(logits: Any, key: Any, temperature: Any, top_k: int | None) -> Any:
    """Returns a token for each row of logits; at temperature zero the likeliest one."""
    best = jnp.argmax(logits, axis=-1)

    def drawn() -> Any:
        kept = logits
        if top_k is not None:
            least = lax.top_k(logits, top_k)[0][..., -1:]
            kept = jnp.where(logits >= least, logits, -jnp.inf)
        scaled = kept / jnp.maximum(temperature, _COLDEST).astype(logits.dtype)
        return jax.random.categorical(key, scaled).astype(best.dtype)

    return lax.cond(temperature > 0, drawn, lambda: best)
