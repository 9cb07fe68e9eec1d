"""Attention and large-vocabulary losses: memory and time of value and gradients."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from measure import Figure, compare, counted

import symop as so

TITLE = "Long sequences and large vocabularies"
MEMORY, TIME, CAUSAL = 1 / 10, 1.1, 0.7
"""What symop may take of the memory and the time of JAX, and a causal call of a full one's time."""
TOKENS, HEADS, WIDTH = 8192, 8, 64
EXAMPLES, FEATURES, CLASSES = 4096, 768, 50_257
Arrays = dict[str, Any]
Loss = Callable[..., Any]


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of attention and of the losses."""
    repeats = 1 if quick else 5
    return [*of_attention(repeats), *of_loss(repeats)], {"remarks": REMARKS}


REMARKS = [
    f"attention: {TOKENS:,} tokens, {HEADS} heads of {WIDTH}, float32; "
    f"loss: {EXAMPLES:,} tokens of width {FEATURES}, {CLASSES:,} classes, float32",
    "memory: what XLA takes beside arguments and results, in bytes, as `memory_analysis` tells",
    "plain: softmax(q @ k^T / 8) @ v, and the cross-entropy of hidden @ weight^T, in jax.numpy",
    "by hand: the plain form written with symop's operators, which lowering replaces",
    "causal: the second column is symop's own call that is not causal",
]


# Programs --------------------------------------------------------------------------------------


def compiled(function: Loss, arrays: Arrays) -> Any:
    """The program of a function of named arrays."""
    return jax.jit(lambda given: function(**given)).lower(arrays).compile()


def by_symop(loss: so.Symbol, arrays: Arrays) -> Any:
    """The program of value and gradients of the floating arguments of a symbol."""
    floating = [name for name, one in arrays.items() if one.dtype == np.float32]
    return compiled(so.value_and_grad(loss, floating), arrays)


def by_jax(loss: Loss, arrays: Arrays) -> Any:
    """The same of a function in JAX."""
    floating = {name: one for name, one in arrays.items() if one.dtype == np.float32}
    rest = {name: one for name, one in arrays.items() if name not in floating}

    def both(**given: Any) -> Any:
        moving = {name: given[name] for name in floating}
        fixed = {name: given[name] for name in rest}
        return jax.value_and_grad(lambda moving: loss(**moving, **fixed))(moving)

    return compiled(both, arrays)


def peak(program: Any) -> int:
    """Temporary memory, apart from arguments and results."""
    taken: int = program.memory_analysis().temp_size_in_bytes
    return taken


def agreeing(ours: Any, theirs: Any, arrays: Arrays) -> tuple[Any, Any]:
    """One run of each side as a function, after checking that their results agree."""

    def run(program: Any) -> Any:
        return lambda: jax.block_until_ready(program(arrays))

    for mine, other in zip(
        jax.tree.leaves(run(ours)()), jax.tree.leaves(run(theirs)()), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=5e-3, atol=1e-4)
    return run(ours), run(theirs)


def compared(name: str, ours: Any, theirs: Any, arrays: Arrays, repeats: int) -> list[Figure]:
    """The memory and the time of two programs."""
    return [
        counted(f"{name}: memory", peak(ours), peak(theirs), target=MEMORY),
        compare(
            f"{name}: time",
            *agreeing(ours, theirs, arrays),
            repeats=repeats,
            target=TIME,
            warm_up=1,
        ),
    ]


# Attention -------------------------------------------------------------------------------------


def plain_attention(query: Any, keys: Any, values: Any) -> Any:
    """Attention with its matrix of weights."""
    scores = query @ jnp.swapaxes(keys, -1, -2) / np.sqrt(WIDTH)
    return jnp.sum((jax.nn.softmax(scores, -1) @ values) ** 2)


def jax_attention(query: Any, keys: Any, values: Any) -> Any:
    """JAX's own attention, whose axis of heads follows that of time."""
    turned = [jnp.swapaxes(one, 1, 2) for one in (query, keys, values)]
    return jnp.sum(jax.nn.dot_product_attention(*turned, implementation="xla") ** 2)


def of_attention(repeats: int) -> list[Figure]:
    """Attention against both, causal against full, and attention written by hand."""
    shape = (1, HEADS, TOKENS, WIDTH)
    query, keys, values = (so.var(name, shape=shape) for name in ("query", "keys", "values"))
    arrays = drawn({"query": shape, "keys": shape, "values": shape})
    full, causal = (
        by_symop(so.sum(so.square(so.scaled_dot_product_attention(
            query, keys, values, causal=hides))), arrays)
        for hides in (False, True)
    )  # fmt: skip
    scores = query @ so.swapaxes(keys, -1, -2) / float(np.sqrt(WIDTH))
    written = by_symop(so.sum(so.square(so.softmax(scores) @ values)), arrays)
    plain, theirs = by_jax(plain_attention, arrays), by_jax(jax_attention, arrays)
    runs = [lambda one=one: jax.block_until_ready(one(arrays)) for one in (causal, full)]
    return [
        *compared("attention against the plain form", full, plain, arrays, repeats),
        *compared("attention against jax.nn", full, theirs, arrays, repeats),
        counted("attention by hand: memory", peak(written), peak(plain), target=MEMORY),
        compare("causal attention: time", *runs, repeats=repeats, target=CAUSAL, warm_up=1),
    ]


# The loss --------------------------------------------------------------------------------------


def plain_loss(hidden: Any, weight: Any, labels: Any) -> Any:
    """The mean cross-entropy of scores that are stored."""
    scores = hidden @ weight.T
    chosen = jnp.take_along_axis(scores, labels[:, None], 1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(scores, -1) - chosen)


def of_loss(repeats: int) -> list[Figure]:
    """The loss against the plain form, and the same written by hand."""
    shapes = {"hidden": (EXAMPLES, FEATURES), "weight": (CLASSES, FEATURES)}
    arrays = {name: 0.05 * one for name, one in drawn(shapes).items()}
    labels = np.random.default_rng(1).integers(0, CLASSES, EXAMPLES).astype(np.int32)
    arrays["labels"] = jnp.asarray(labels)
    hidden, weight = (so.var(name, shape=shape) for name, shape in shapes.items())
    classes = so.var("labels", shape=labels.shape, dtype="int32")
    ours = by_symop(so.mean(so.linear_cross_entropy(hidden, weight, classes)), arrays)
    scores = hidden @ so.permute_dims(weight, axes=(1, 0))
    written = by_symop(so.mean(so.softmax_cross_entropy(scores, classes)), arrays)
    plain = by_jax(plain_loss, arrays)
    return [
        *compared("loss of 50,257 classes", ours, plain, arrays, repeats),
        counted("loss by hand: memory", peak(written), peak(plain), target=MEMORY),
    ]


def drawn(shapes: dict[str, tuple[int, ...]]) -> Arrays:
    """Normal draws of these shapes."""
    generator = np.random.default_rng(0)
    return {
        name: jnp.asarray(generator.standard_normal(shape), jnp.float32)
        for name, shape in shapes.items()
    }
