"""The cost of one call: of a lowered symbol, of an eager operator, of an executor."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from measure import Figure, alone, brief, compare

import symop as so

TITLE = "Calls"
SIZE = 8


def run(*, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """All figures of calls."""
    repeats, calls = (20, 100) if quick else (300, 500)
    figures = [lowered(count, repeats, calls) for count in (2, 20)]
    figures.append(lowered_by_name(repeats, calls))
    figures += eager(repeats, calls)
    figures += bound(repeats, calls)
    return figures, {}


def arrays(count: int) -> list[Any]:
    """Small arrays, so that a call is all overhead."""
    generator = np.random.default_rng(0)
    return [jnp.asarray(generator.normal(size=SIZE), jnp.float32) for _ in range(count)]


def total(*values: Any) -> Any:
    """The sum of ``values``, symbols or arrays, from left to right."""
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def sum_symbol(count: int) -> so.Symbol:
    """The same sum over variables."""
    return total(*[so.var(f"x{i}", shape=(SIZE,)) for i in range(count)])


def repeated(function: Callable[..., Any], given: list[Any], calls: int) -> Callable[[], Any]:
    """Many calls in a row, of which only the last is waited for."""

    def program() -> None:
        for _ in range(calls):
            result = function(*given)
        jax.block_until_ready(result)

    return program


def lowered(count: int, repeats: int, calls: int) -> Figure:
    """A jitted lowered symbol against a handwritten jitted function."""
    given = arrays(count)
    ours, theirs = jax.jit(sum_symbol(count).to_jax()), jax.jit(total)
    np.testing.assert_array_equal(ours(*given), theirs(*given))
    return compare(
        f"lowered call, {count} arrays by position",
        repeated(ours, given, calls),
        repeated(theirs, given, calls),
        repeats=repeats,
        target=1.1,
        clock=brief,
        per=calls,
    )


def lowered_by_name(repeats: int, calls: int) -> Figure:
    """The same with arrays by name."""
    named = dict(zip([f"x{i}" for i in range(20)], arrays(20), strict=True))
    ours, theirs = (
        jax.jit(sum_symbol(20).to_jax()),
        jax.jit(lambda **values: total(*values.values())),
    )
    return compare(
        "lowered call, 20 arrays by name",
        repeated(lambda: ours(**named), [], calls),
        repeated(lambda: theirs(**named), [], calls),
        repeats=repeats,
        target=1.1,
        clock=brief,
        per=calls,
    )


def eager(repeats: int, calls: int) -> list[Figure]:
    """Operators called on arrays."""
    (x,) = arrays(1)
    ours = repeated(so.sin, [x], calls)
    return [
        compare(
            f"eager so.sin against {name}",
            ours,
            repeated(function, [x], calls),
            repeats=repeats,
            clock=brief,
            per=calls,
        )
        for name, function in (("jnp.sin", jnp.sin), ("jax.jit(jnp.sin)", jax.jit(jnp.sin)))
    ]


def bound(repeats: int, calls: int) -> list[Figure]:
    """Executors and ``Symbol.eval``, against jitted functions with the same result."""
    x, y = arrays(2)
    symbol = so.sin(so.var("x", shape=(SIZE,))) * so.var("y", shape=(SIZE,))

    def by_hand(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    executor = symbol.bind({"x": x, "y": y})

    def forward_backward() -> Any:
        executor.forward(is_train=True)
        executor.backward()
        return executor.grad_dict["x"]

    def pull(x: Any, y: Any) -> Any:
        result, back = jax.vjp(by_hand, x, y)
        return result, back(jnp.ones_like(result))

    pairs = [
        ("Symbol.eval against jax.jit", lambda: symbol.eval(x=x, y=y), jax.jit(by_hand)),
        ("Executor.forward against jax.jit", lambda: executor.forward()[0], jax.jit(by_hand)),
        ("Executor.forward and backward against a jitted vjp", forward_backward, jax.jit(pull)),
    ]
    return [
        compare(
            name,
            repeated(ours, [], calls),
            repeated(theirs, [x, y], calls),
            repeats=repeats // 3,
            clock=brief,
            per=calls,
        )
        for name, ours, theirs in pairs
    ] + [
        alone(
            "Executor.forward with a feed",
            repeated(lambda: executor.forward(x=x, y=y)[0], [], calls),
            repeats=repeats // 3,
            clock=brief,
            per=calls,
        )
    ]
