"""NDArray: MXNet's eager array, over an eager array of symop."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
from registry.errors import SymopError
from registry.values import SelectedRows
from symop.interop.mxnet.array_indices import assigned, entries_of
from symop.interop.mxnet.context import Context, as_context, context_of
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.views import Index, Viewed, is_contiguous

_P = ParamSpec("_P")
_R = TypeVar("_R")
_EVERYTHING = (slice(None), Ellipsis, ())


def raising(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """``function``, whose errors are MXNet's."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except MXNetError:
            raise
        except (SymopError, jax.errors.JaxRuntimeError) as error:
            raise MXNetError(str(error)) from error

    return call


class NDArray(Viewed):
    """An array that can be changed in place and recorded, as MXNet's.

    It has one axis at least, where a number stands alone. A piece of it that lies in one stretch of
    memory, and what ``reshape`` returns, share its entries, unless they are taken while calls are
    recorded. Operators are methods, too.

    Attributes:
        inner: the eager array of symop that holds the value.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> x = mx.nd.array([[1, 2], [3, 4]])
        >>> x[0][:] = 5
        >>> (x + 1).asnumpy().tolist(), x.sum().shape
        ([[6.0, 6.0], [4.0, 5.0]], (1,))
    """

    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = object.__hash__
    if TYPE_CHECKING:  # operators, which array_operators and array_methods attach

        def __getattr__(self, name: str) -> Any: ...
        def __neg__(self) -> "NDArray": ...
        def __abs__(self) -> "NDArray": ...
        def __add__(self, other: Any) -> "NDArray": ...

        __radd__ = __iadd__ = __sub__ = __rsub__ = __isub__ = __mul__ = __rmul__ = __add__
        __imul__ = __truediv__ = __rtruediv__ = __itruediv__ = __mod__ = __rmod__ = __add__
        __imod__ = __pow__ = __rpow__ = __ipow__ = __gt__ = __ge__ = __lt__ = __le__ = __add__

    # Its value

    @property
    def value(self) -> Any:
        """The array of JAX that it holds now."""
        return self.inner.value

    def hold(self, value: jax.Array | SelectedRows) -> None:
        """Hold ``value`` from now on; its shape and dtype are those held before."""
        self.inner.take_over(so.NDArray(value))
        self.tell()

    @raising
    def become(self, found: so.NDArray) -> None:
        """Hold the value of ``found``, which nobody else holds, as ``out=`` and ``x += y`` do.

        Raises:
            MXNetError: the shape differs, or this array is being recorded.
        """
        if found.dtype != self.inner.dtype:
            found = found.astype(self.inner.dtype)
        if so.autograd.is_recording() and found.is_recorded:
            self._require_unrecorded()
            if found.shape != self.inner.shape:
                raise MXNetError(f"out: the shape must be {self.shape}, got {tuple(found.shape)}")
            self.inner = found
        else:
            self.inner.take_over(found)
        self.tell()

    def _require_unrecorded(self) -> None:
        if self.inner.is_recorded:
            raise MXNetError(
                "NDArray: an array that is being recorded must not be changed in place, since its "
                "gradient would be lost; use x = x + y"
            )

    # What it is

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self.inner.shape)

    @property
    def dtype(self) -> type[np.generic]:
        """Its dtype, as a class of NumPy."""
        return self.inner.dtype.type

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.inner.size

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.inner.ndim

    @property
    def stype(self) -> str:
        """How it is stored: ``"default"``, ``"row_sparse"`` or ``"csr"``."""
        return "row_sparse" if isinstance(self.value, SelectedRows) else "default"

    @property
    def context(self) -> Context:
        """Where it lies."""
        value = self.value
        return context_of((value.values if isinstance(value, SelectedRows) else value).device)

    @property
    def ctx(self) -> Context:
        """Where it lies."""
        return self.context

    # As numbers, and as text

    @raising
    def asnumpy(self) -> np.ndarray:
        """A copy as an array of NumPy."""
        return self.inner.asnumpy()

    def asscalar(self) -> Any:
        """The only entry.

        Raises:
            ValueError: there are several.
        """
        if self.size != 1:
            raise ValueError(f"asscalar: the array must have one entry, got shape {self.shape}")
        return self.asnumpy().reshape(())[()]

    @raising
    def wait_to_read(self) -> None:
        """Return when the value is computed."""
        self.inner.wait_to_read()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.inner.__array__(dtype, copy)

    def __jax_array__(self) -> Any:
        return self.value

    def __dlpack__(self, **how: Any) -> Any:
        return self.value.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self.value.__dlpack_device__()

    def to_dlpack_for_read(self) -> Any:
        """The value as an array of JAX, which other libraries' ``from_dlpack`` take."""
        return self.value

    to_dlpack_for_write = to_dlpack_for_read

    def __repr__(self) -> str:
        lengths = "x".join(map(str, self.shape))
        return f"\n{self.asnumpy()}\n<{type(self).__name__} {lengths} @{self.context}>"

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(f"bool: the array must have one entry, got shape {self.shape}")
        return self.size == 1 and bool(self.asscalar())

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __index__(self) -> int:
        index: int = self.asscalar().__index__()
        return index

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator["NDArray"]:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return array_of, (self.asnumpy(),)

    # Copies

    @raising
    def astype(self, dtype: Any, copy: bool = True) -> "NDArray":
        """The entries in another dtype."""
        if not copy and np.dtype(dtype) == self.inner.dtype:
            return self
        return NDArray(so.nd.cast(self.inner, dtype=np.dtype(dtype)))

    @raising
    def copy(self) -> "NDArray":
        """An array of its own with the same entries."""
        return NDArray(so.nd.identity(self.inner))

    def __copy__(self) -> "NDArray":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "NDArray":
        return self.copy()

    @raising
    def copyto(self, other: "NDArray | Context") -> "NDArray":
        """Write the entries into ``other``, or make a copy in a context.

        Raises:
            MXNetError: the shapes differ, or there is no such device.
            TypeError: ``other`` is neither.
        """
        if isinstance(other, NDArray):
            if other is not self:
                other.become(so.nd.identity(self.inner))
            return other
        if not isinstance(other, Context):
            raise TypeError(f"copyto: it must be an array or a context, got {other!r}")
        if other == self.context:
            return self.copy()
        return NDArray(self.inner.to_device(other.device))

    def as_in_context(self, context: Any) -> "NDArray":
        """The array in a context; itself where it lies there.

        Raises:
            MXNetError: there is no such device.
        """
        chosen = as_context(context)
        return self if chosen.device in self.value.devices() else self.copyto(chosen)

    def as_nd_ndarray(self) -> "NDArray":
        """Itself."""
        return self

    # Parts

    @raising
    def __getitem__(self, index: Any) -> "NDArray":
        if any(index is one or index == one for one in _EVERYTHING if type(index) is type(one)):
            return self
        entries = entries_of(index)
        found = self.inner[entries]
        made = NDArray(found if found.shape else found.reshape((1,)))
        if not so.autograd.is_recording() and is_contiguous(entries, self.shape):
            self.adopt(made, entries)
        return made

    @raising
    def __setitem__(self, index: Any, value: Any) -> None:
        entries = entries_of(index)
        if isinstance(value, NDArray):
            value = value.inner
        self._put(entries, value)
        self.tell()

    def _put(self, entries: Index, value: Any) -> None:
        recorded = isinstance(value, so.NDArray) and so.autograd.is_recording()
        if recorded and value.is_recorded:
            self._require_unrecorded()
            self.inner = assigned(self.inner, entries, value)
        elif len(entries) == 1 and isinstance(entries[0], slice) and entries[0] == slice(None):
            self.inner[...] = value  # which need not be computed for that
        else:
            self.inner[entries] = value

    def receive(self, piece: Viewed, index: Index | None) -> None:
        """Write what a piece holds."""
        if index is None:
            self._put((...,), so.nd.reshape(piece.inner, self.shape))
        else:
            self._put(index, piece.inner)

    # Gradients

    @raising
    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make room for a gradient: ``"write"``, ``"add"`` or ``"null"``; it is dense.

        Raises:
            MXNetError: the dtype has no derivatives, or there is no such request.
        """
        del stype
        self.inner.attach_grad(grad_req)

    @property
    def grad(self) -> "NDArray | None":
        """The gradient that the last backward pass left; None without ``attach_grad()``."""
        found = self.inner.grad
        return None if found is None else NDArray(found)

    def detach(self) -> "NDArray":
        """The same value, of which no record knows how it was computed."""
        return NDArray(self.inner.detach())

    @raising
    def backward(
        self, out_grad: "NDArray | None" = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """``mx.autograd.backward`` of this array."""
        given = None if out_grad is None else out_grad.inner.astype(self.inner.dtype, copy=False)
        self.inner.backward(given, retain_graph, train_mode)


def array_of(value: Any, dtype: Any = None) -> NDArray:
    """An array of ``value``, shared if it is one of JAX, which never changes."""
    if isinstance(value, NDArray):
        value = value.value
    if isinstance(value, so.NDArray):
        value = value.value
    return NDArray(so.NDArray(jnp.asarray(value, dtype)))


def array_named(name: str, value: Any) -> NDArray:
    """``value`` itself if it is an array, else an array of it.

    Raises:
        MXNetError: it holds no numbers.
    """
    if isinstance(value, NDArray):
        return value
    try:
        if not isinstance(value, (str, bytes)):
            return array_of(value)
    except (TypeError, ValueError):
        pass
    raise MXNetError(f"{name} must be an array, got {value!r:.80}")


def zeros_of(shape: Sequence[int], dtype: Any, name: str = "zeros") -> NDArray:
    """Zeros, on JAX's default device.

    Raises:
        MXNetError: they do not fit into memory.
    """
    try:
        return array_of(jnp.zeros(tuple(shape), dtype))
    except jax.errors.JaxRuntimeError as error:
        raise MXNetError(f"{name}: {error}") from error
