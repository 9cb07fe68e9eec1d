"""The metrics of the epochs of a training run, and their plot."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from registry.errors import ArgumentError, missing_extra, nearest

VALIDATION = "val_"
"""What the names of metrics of validation begin with."""


class History(list[dict[str, Any]]):
    """The metrics of each epoch: a list of dicts, which prints as a table.

    Example:
        >>> history = History([{"loss": 1.0, "val_loss": 1.5}, {"loss": 0.5, "val_loss": 0.75}])
        >>> print(history)
        epoch      loss  val_loss
            1         1       1.5
            2       0.5      0.75
        >>> history.curve("val_loss"), history[-1]["loss"]
        ([1.5, 0.75], 0.5)
    """

    @property
    def names(self) -> list[str]:
        """The names of all metrics."""
        return list(dict.fromkeys(name for one in self for name in one))

    def curve(self, name: str) -> list[Any]:
        """Returns a metric of all epochs; NaN where an epoch lacks it.

        Raises:
            ArgumentError: no epoch has it.
        """
        if name not in self.names:
            raise ArgumentError(
                f"history: the metric must be one of {', '.join(self.names) or 'none'}, got "
                f"{name!r}{nearest(name, self.names)}"
            )
        return [one.get(name, math.nan) for one in self]

    def plot(self, path: Any = None) -> Any:
        """Plots the metrics by ``plot_history``."""
        return plot_history(self, path)

    def __str__(self) -> str:
        names = self.names
        rows = [["epoch", *names]]
        for i, one in enumerate(self, start=1):
            rows.append([str(i), *[f"{one[n]:.4g}" if n in one else "" for n in names]])
        widths = [max(len(row[k]) for row in rows) for k in range(len(names) + 1)]
        widths = [widths[0], *[max(8, width) for width in widths[1:]]]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )


_register: Any = jax.tree_util.register_pytree_node
_register(History, lambda one: (tuple(one), None), lambda _, epochs: History(epochs))


def plot_history(history: Sequence[Mapping[str, float]], path: Any = None) -> Any:
    """Plots the metrics of each epoch: losses on the left axis, the others on the right.

    Those of validation are dashed lines of the color of their counterpart.

    Args:
        history: the metrics that ``Trainer.fit`` returned.
        path: the file to which the figure is saved; None to not save it.

    Returns:
        The matplotlib figure.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  # optional dependency
    except ImportError:
        raise missing_extra("plot_history", "matplotlib", "train") from None
    figure = Figure(figsize=(7, 4), layout="constrained")
    left = figure.add_subplot(xlabel="epoch", ylabel="loss")
    right = left.twinx()
    epochs = np.arange(1, len(history) + 1)
    names = History(map(dict, history)).names
    trained = [name.removeprefix(VALIDATION) for name in names]
    for name, own in zip(names, trained, strict=True):
        axes, color = left if "loss" in name else right, f"C{trained.index(own)}"
        style = "-" if name == own else "--"
        curve = [values.get(name, math.nan) for values in history]
        axes.plot(epochs, curve, color=color, linestyle=style, label=name)
    others = [name for name in names if "loss" not in name]
    right.set_ylabel(", ".join(others))
    right.set_visible(bool(others))
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure
