"""The catalogue: importing it declares every operator; one folder for each family.

Operators are looked up by ``registry.table``, so nothing else is imported from here, except for
helpers that ``symop`` shares. This package imports ``registry.table`` and the modules below it.
"""

from registry.operator import packages

# The proofs establish this for each operator of the catalogue that does not declare otherwise.
packages.put(
    __name__,
    packages.Package(native=True, transposable=True, takes_numbers=True, catalogue=True),
)

from registry.ops import (
    control_flow,
    conv,
    core,
    elementwise,
    fourier,
    indexing,
    lax,
    linalg,
    loss,
    nn,
    optim,
    random,
    reduce,
    rnn,
    rows,
    sequence,
    shape,
    vision,
)

__all__ = [
    "control_flow",
    "conv",
    "core",
    "elementwise",
    "fourier",
    "indexing",
    "lax",
    "linalg",
    "loss",
    "nn",
    "optim",
    "random",
    "reduce",
    "rnn",
    "rows",
    "sequence",
    "shape",
    "vision",
]
