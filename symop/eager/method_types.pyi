"""The types of the methods of eager arrays that take NumPy's arguments."""

# Other values have the operators of these names.
# mypy: disable-error-code="override"
# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from typing import Any, Literal, Self

from jax.typing import DTypeLike

from registry.values import ArrayInput
from registry.var import Var

_Axis = int | Sequence[int] | None

class ArrayMethods(Var):
    """Methods that ``array_methods`` and ``array_operators`` define."""

    # Reductions

    def sum(
        self,
        axis: _Axis = None,
        *,
        dtype: DTypeLike | None = None,
        out: Any = None,
        keepdims: bool = False,
        where: Any = None,
        initial: Any = None,
    ) -> Self:
        """Returns the sum over ``axis``, by default all axes."""
    def prod(
        self,
        axis: _Axis = None,
        *,
        dtype: DTypeLike | None = None,
        out: Any = None,
        keepdims: bool = False,
        where: Any = None,
        initial: Any = None,
    ) -> Self:
        """Returns the product over ``axis``, by default all axes."""
    def mean(
        self,
        axis: _Axis = None,
        keepdims: bool = False,
        *,
        dtype: DTypeLike | None = None,
        out: Any = None,
        where: Any = None,
    ) -> Self:
        """Returns the mean over ``axis``, by default all axes."""
    def std(
        self,
        axis: _Axis = None,
        correction: float = 0.0,
        keepdims: bool = False,
        *,
        ddof: float = 0.0,
        dtype: DTypeLike | None = None,
        out: Any = None,
        where: Any = None,
        mean: Any = None,
    ) -> Self:
        """Returns the standard deviation over ``axis``, for the divisor ``n - correction``."""
    def var(
        self,
        axis: _Axis = None,
        *,
        correction: float = 0.0,
        keepdims: bool = False,
        ddof: float = 0.0,
        dtype: DTypeLike | None = None,
        out: Any = None,
        where: Any = None,
        mean: Any = None,
    ) -> Self:
        """Returns the variance over ``axis``, for the divisor ``n - correction``."""
    def max(
        self,
        axis: _Axis = None,
        keepdims: bool = False,
        ties: Literal["split", "all", "first"] = "split",
        *,
        dtype: DTypeLike | None = None,
        out: Any = None,
        where: Any = None,
        initial: Any = None,
    ) -> Self:
        """Returns the maximum over ``axis``, by default all axes."""
    def min(
        self,
        axis: _Axis = None,
        keepdims: bool = False,
        ties: Literal["split", "all", "first"] = "split",
        *,
        dtype: DTypeLike | None = None,
        out: Any = None,
        where: Any = None,
        initial: Any = None,
    ) -> Self:
        """Returns the minimum over ``axis``, by default all axes."""
    def any(
        self, axis: _Axis = None, keepdims: bool = False, *, out: Any = None, where: Any = None
    ) -> Self:
        """Whether any entry along ``axis`` is true, by default of all axes."""
    def all(
        self, axis: _Axis = None, keepdims: bool = False, *, out: Any = None, where: Any = None
    ) -> Self:
        """Whether all entries along ``axis`` are true, by default of all axes."""
    def cumulative_sum(
        self,
        axis: int | None = None,
        *,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Self:
        """Returns cumulative sums along ``axis``."""
    def cumulative_prod(
        self,
        axis: int | None = None,
        *,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Self:
        """Returns cumulative products along ``axis``."""

    # Shapes

    def reshape(self, *shape: int | Sequence[int], **options: Any) -> Self:
        """Reshapes the array; the shape is a tuple or separate lengths, and one may be -1."""
    def transpose(self, *axes: int | Sequence[int] | None, **options: Any) -> Self:
        """Permutes the axes; the order is a tuple or separate axes, and reversed by default."""
    def matrix_transpose(self) -> Self:
        """Swaps the last two axes."""
    def concat(self, *arrays: Any, axis: int | None = 0, **options: Any) -> Self:
        """Concatenates this array and others along ``axis``."""
    def stack(self, *arrays: Any, axis: int = 0, **options: Any) -> Self:
        """Stacks this array and others along a new ``axis``."""
    def unstack(self, axis: int = 0) -> tuple[Self, ...]:
        """Returns the slices along ``axis``, as separate arrays."""
    def repeat(self, repeats: Any, axis: int | None = None, **options: Any) -> Self:
        """Repeats each entry along ``axis``; if it is None, each entry of the flattened array."""
    def meshgrid(self, *arrays: Any, indexing: Literal["xy", "ij"] = "xy") -> list[Self]:
        """Returns the coordinate arrays of the grid that this array and others span."""
    def diff(
        self,
        *,
        axis: int = -1,
        n: int = 1,
        prepend: Self | None = None,
        append: Self | None = None,
    ) -> Self:
        """Returns the ``n``-th differences of adjacent entries along ``axis``."""

    # Entries

    def clip(self, min: ArrayInput | Var | None = None, max: Any = None, **options: Any) -> Self:
        """Clips the entries to bounds, which are numbers, arrays or None."""
    def pow(self, x2: ArrayInput | Var, /, **options: Any) -> Self:
        """Returns the array to the power of ``x2``."""
    def divmod(self, x2: ArrayInput | Var, /) -> tuple[Self, Self]:
        """Returns ``x // x2`` and ``x % x2``."""
    def nextafter(self, x2: ArrayInput | Var, /) -> Self:
        """Returns the next representable numbers towards ``x2``."""
    def nonzero(self) -> tuple[Self, ...]:
        """Returns the indices of entries that are not zero."""
    def signbit(self) -> Self:
        """Whether each entry is negative, or a negative zero."""
    def searchsorted(
        self, x2: Any, /, *, side: Literal["left", "right"] = "left", sorter: Self | None = None
    ) -> Self:
        """Returns the indices at which to insert entries of ``x2`` into this sorted vector."""
    def unique_all(self) -> Any:
        """Returns the distinct entries, their first indices, the inverse and their counts."""
    def unique_counts(self) -> Any:
        """Returns the distinct entries and their counts."""
    def unique_inverse(self) -> Any:
        """Returns the distinct entries, and for each entry the index of the equal one."""
    def unique_values(self) -> Self:
        """Returns the distinct entries."""
    def stop_gradient(self) -> Self:
        """Returns the same entries, to which no gradient flows."""

    # Arrays like this one

    def zeros_like(self, *, dtype: DTypeLike | None = None, device: Any = None) -> Self:
        """Returns an array of zeros with this array's shape and dtype."""
    def ones_like(self, *, dtype: DTypeLike | None = None, device: Any = None) -> Self:
        """Returns an array of ones with this array's shape and dtype."""
    def full_like(
        self, fill_value: Any, *, dtype: DTypeLike | None = None, device: Any = None
    ) -> Self:
        """Returns an array filled with one number, with this array's shape and dtype."""

    # Python's operators

    def __divmod__(self, other: Any) -> tuple[Self, Self]: ...
    def __rdivmod__(self, other: Any) -> tuple[Self, Self]: ...
