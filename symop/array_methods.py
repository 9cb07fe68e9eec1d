"""Methods of eager arrays that are functions of the array API rather than bare operators.

Every operator is a method of every value. Where ``so.nd`` has a function of its own that takes an
array first, be there an operator of its name or not, ``x.name(...)`` is ``nd.name(x, ...)``; a
symbol keeps the operator. Two take shapes and axes one by one, too, as NumPy's methods do.
"""

from typing import Any, SupportsIndex

from registry.table import get
from symop import array_api
from symop.ndarray import NDArray

METHODS = (
    "clip concat cumulative_prod cumulative_sum diff divmod full_like matrix_transpose meshgrid "
    "nextafter nonzero ones_like pow prod repeat searchsorted signbit stack sum unique_all "
    "unique_counts unique_inverse unique_values unstack var zeros_like"
)
"""The functions that take an array first; ``astype`` is a method with a text of its own."""


def reshape(x: NDArray, /, *shape: Any, **options: Any) -> Any:
    """The entries in another shape, given as a tuple or length by length; one may be -1."""
    if not shape:
        return array_api.reshape(x, **options)
    return array_api.reshape(x, shape=shape[0] if len(shape) == 1 else shape, **options)


def transpose(x: NDArray, /, *axes: Any, **options: Any) -> Any:
    """The axes in another order, given as a tuple or one by one; reversed without one."""
    if not axes:
        return get("permute_dims")(x, **options)
    single = len(axes) == 1 and not isinstance(axes[0], SupportsIndex)
    return get("permute_dims")(x, axes=axes[0] if single else axes, **options)


for _name in METHODS.split():
    setattr(NDArray, _name, getattr(array_api, _name))
for _method in (reshape, transpose):
    setattr(NDArray, _method.__name__, _method)
