"""Losses and output layers.

Classification, regression, CTC, and the output layers of MXNet.
"""

from registry.ops.loss import (
    class_output_layers,
    classification_losses,
    ctc,
    linear_cross_entropy,
    losses,
    output_layers,
    regression_losses,
)

__all__ = [
    "class_output_layers",
    "classification_losses",
    "ctc",
    "linear_cross_entropy",
    "losses",
    "output_layers",
    "regression_losses",
]
