"""The protocol of optimizers: which functions one has, what they take, and their errors."""

import contextlib
import inspect
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from registry.errors import ArgumentError, SymopError
from registry.values import SelectedRows


@contextlib.contextmanager
def calling_optimizer(owner: str, accepted: str) -> Iterator[None]:
    """Reports an error of the optimizer, which may name only the internals of a wrapper."""
    try:
        yield
    except SymopError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"{owner}: the optimizer must accept {accepted}, got {type(error).__name__}: {error}"
        ) from error


def applies(optimizer: Any) -> bool:
    """Whether an optimizer returns new parameters, as those of ``so.optim``, rather than updates.

    A row-sparse gradient then changes some rows of a table, and the others need no addition.
    """
    return all(callable(getattr(optimizer, name, None)) for name in ("init", "apply"))


def require_dense(values: Mapping[str, Any]) -> None:
    """Checks that the updates of an optimizer are dense.

    Raises:
        ArgumentError: one is row-sparse: an optimizer of optax has taken the numbers of rows for
            entries.
    """
    rows = [name for name, one in values.items() if isinstance(one, SelectedRows)]
    if rows:
        raise ArgumentError(
            "step: the optimizer must accept row-sparse gradients, as those of so.optim do "
            f"(so.optim.Adam(1e-3, lazy=True)), got one of optax and rows of {', '.join(rows)}"
        )


_EXTRA = ("value", "grad", "value_fn", "obj_fn", "grad_fn")
"""The extra arguments that an optimizer may take."""


def extra_arguments(optimizer: Any) -> Collection[str]:
    """Returns the names of the extra arguments that the optimizer takes.

    Its signature decides, not its class: ``optax.MultiSteps`` takes them and is not a
    ``GradientTransformationExtraArgs``; ``optax.contrib.sam`` is one and takes only ``grad_fn``.

    Raises:
        ArgumentError: the optimizer lacks one of the functions ``init`` and ``update``.
    """
    if applies(optimizer):
        return ()
    init, update = (getattr(optimizer, name, None) for name in ("init", "update"))
    if not (callable(init) and callable(update)):
        raise ArgumentError(
            "Trainer: the optimizer must have the functions init and update, as those of optax do, "
            f"got {optimizer!r}{'; call it, as optax.adam(1e-3)' if callable(optimizer) else ''}"
        )
    taken = list(inspect.signature(update).parameters.values())
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken):
        return _EXTRA
    return {one.name for one in taken[len(("updates", "state", "params")) :]}
