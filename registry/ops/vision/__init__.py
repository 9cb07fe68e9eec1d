"""Images.

Resizing, warping, regions of interest and deformable convolution.
"""

from registry.ops.vision import (
    bilinear,
    deformable,
    region_alignment,
    regions,
    resizing,
    warping,
)

__all__ = [
    "bilinear",
    "deformable",
    "region_alignment",
    "regions",
    "resizing",
    "warping",
]
