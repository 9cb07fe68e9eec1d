"""Draws of classes of which low numbers are likelier: ``contrib.rand_zipfian``."""

import math
from collections.abc import Callable
from typing import Any


def rand_zipfian_by(called: Callable[[str], Callable[..., Any]]) -> Callable[..., Any]:
    """The function, over operators that ``called`` gives by their names."""

    def rand_zipfian(
        true_classes: Any, num_sampled: int, range_max: int, ctx: Any = None
    ) -> tuple[Any, Any, Any]:
        """Classes of a distribution that favors low numbers, and how often each is expected.

        Args:
            true_classes: classes whose expectation is wanted.
            num_sampled: how many are drawn.
            range_max: how many classes there are.
            ctx: where to put arrays.

        Returns:
            The classes drawn, the expectations of ``true_classes``, and those of what was drawn.
        """
        log_range = math.log(range_max + 1)
        how = {"shape": (num_sampled,), "dtype": "float64"}
        draw = called("_random_uniform")(
            low=0, high=log_range, **how, **({} if ctx is None else {"ctx": ctx})
        )
        sampled = (draw.exp() - 1).astype("int64") % range_max

        def expected(classes: Any) -> Any:
            number = classes.astype("float64")
            chance = ((number + 2.0) / (number + 1.0)).log()
            return chance / log_range * num_sampled

        return sampled, expected(true_classes), expected(sampled)

    return rand_zipfian
