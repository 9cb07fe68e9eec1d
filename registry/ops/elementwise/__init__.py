"""Element-wise functions.

Powers, roots, rounding, extrema, trigonometric and special functions, activations, bit operations.
"""

from registry.ops.elementwise import (
    activations,
    bessel,
    binary,
    bitwise,
    extrema,
    gamma_integrals,
    powers,
    roots,
    rounding,
    special,
    stirling,
    straight_through,
    trigonometry,
    zero_products,
)

__all__ = [
    "activations",
    "bessel",
    "binary",
    "bitwise",
    "extrema",
    "gamma_integrals",
    "powers",
    "roots",
    "rounding",
    "special",
    "stirling",
    "straight_through",
    "trigonometry",
    "zero_products",
]
