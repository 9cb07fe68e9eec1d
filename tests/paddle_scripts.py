"""Surroundings in which tests build programs as scripts of Paddle do."""

import contextlib
from collections.abc import Iterator
from typing import Any

from symop.interop.paddle import fluid


@contextlib.contextmanager
def new_script(seed: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Provides new main and startup programs, names and a scope, with ``seed`` if it is given."""
    main, startup = fluid.Program(), fluid.Program()
    if seed is not None:
        main.random_seed = startup.random_seed = seed
    with (
        fluid.program_guard(main, startup),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        yield main, startup
