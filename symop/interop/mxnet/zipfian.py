"""``contrib.rand_zipfian``: draws of classes that favor low numbers."""

import math
from collections.abc import Callable
from typing import Any


def rand_zipfian_by(called: Callable[[str], Callable[..., Any]]) -> Callable[..., Any]:
    """The function ``rand_zipfian``; ``called`` returns operators by name."""

    def rand_zipfian(
        true_classes: Any, num_sampled: int, range_max: int, ctx: Any = None
    ) -> tuple[Any, Any, Any]:
        """Draws classes from a distribution that favors low numbers, with expected counts.

        Args:
            true_classes: classes whose expected counts are returned.
            num_sampled: the number of draws.
            range_max: the number of classes.
            ctx: the device.

        Returns:
            The drawn classes, the expected counts of ``true_classes``, and those of the draws.
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
