"""MXNet's NDArray, over an eager array of symop."""

import contextlib
import functools
import math
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
from registry.errors import BoundsError, SymopError
from registry.types import OpReqType
from registry.values import SelectedRows
from symop.eager.array_protocols import answers_for
from symop.eager.segments import has_devices
from symop.interop.mxnet.array_indices import assigned, entries_of
from symop.interop.mxnet.binary import decoded, encoded
from symop.interop.mxnet.context import Context, as_context, context_of
from symop.interop.mxnet.errors import MXNetError, MXNetIndexError
from symop.interop.mxnet.fluent import HOOKS, IN_PLACE
from symop.interop.mxnet.origins import Origin, Variable
from symop.interop.mxnet.storage import warn_if_dense
from symop.interop.mxnet.views import Index, Viewed, is_contiguous
from symop.interop.mxnet.whole_gradients import (
    attach,
    differentiable,
    follow,
    gradient_of,
    is_whole,
    twin_of,
    write_given,
)
from symop.runtime.donation import deferring_signals, set_together
from symop.xla.compiling import thread_settings

_P = ParamSpec("_P")
_R = TypeVar("_R")
_SMALL = 1 << 16
"""The number of entries up to which an array is filled on the host."""
_EVERYTHING = (slice(None), Ellipsis, ())


def raising(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """``function`` with its errors converted to MXNet's; small programs are compiled quickly."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        before, thread_settings.quick = thread_settings.quick, True
        try:
            return function(*args, **kwargs)
        except MXNetError:
            raise
        except BoundsError as error:
            raise MXNetIndexError(str(error)) from error
        except (SymopError, jax.errors.JaxRuntimeError) as error:
            raise MXNetError(str(error)) from error
        finally:
            thread_settings.quick = before

    return call


class NDArray(Viewed):
    """An array that can be changed in place and recorded, like MXNet's.

    It has at least one axis, even for a single number. Contiguous slices and results of ``reshape``
    share its memory, unless they are taken while calls are recorded. Operators are also methods.

    Attributes:
        inner: symop's eager array that holds the value.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> x = mx.nd.array([[1, 2], [3, 4]])
        >>> x[0][:] = 5
        >>> (x + 1).asnumpy().tolist(), x.sum().shape
        ([[6.0, 6.0], [4.0, 5.0]], (1,))
    """

    __slots__ = ("_columns", "_gradient", "_origin", "_twin", "_used")
    _columns: tuple[Any, Any]
    """The value, and the positions of the csr matrix of which it is the columns; often not set."""
    _origin: Origin | None
    _twin: so.NDArray | None
    _used: "weakref.ref[Any] | None"
    HOOKS = HOOKS.union(
        IN_PLACE,
        {"T", "broadcast_to", "broadcast_like", "slice_assign", "slice_assign_scalar", "tostype"},
        {"gradient_like"},
    )
    is_sparse: ClassVar[bool] = False
    _gradient: "NDArray"
    __array_priority__ = 1000.0
    __hash__ = object.__hash__
    if TYPE_CHECKING:  # operators attached by array_operators and array_methods

        def __getattr__(self, name: str) -> Any: ...

        gradient_like: Callable[[str], "NDArray"]
        expose: Callable[[], None]

        def __neg__(self) -> "NDArray": ...
        def __abs__(self) -> "NDArray": ...
        def __add__(self, other: Any) -> "NDArray": ...

        __radd__ = __iadd__ = __sub__ = __rsub__ = __isub__ = __mul__ = __rmul__ = __add__
        __imul__ = __truediv__ = __rtruediv__ = __itruediv__ = __mod__ = __rmod__ = __add__
        __imod__ = __pow__ = __rpow__ = __ipow__ = __gt__ = __ge__ = __lt__ = __le__ = __add__

    # Value

    @property
    def value(self) -> Any:
        """The JAX array that it currently holds."""
        return self.inner.value

    def dense(self) -> so.NDArray:
        """The dense eager array, recorded if this one is."""
        return self.inner

    def hold(self, value: jax.Array) -> None:
        """Replaces the value, on the device of the old one; shape and dtype must not change."""
        own = self.value.sharding
        if value.sharding.device_set != own.device_set:
            value = jax.device_put(value, own)
        self.inner.take_over(so.NDArray(value))
        self.tell()

    def require_changeable(self) -> None:
        """Raises if the array is recorded and thus cannot be changed in place."""
        self.inner._require_changeable("out=")

    @raising
    def become(self, found: so.NDArray) -> None:
        """Takes over the unshared value of ``found``, as in ``out=`` and ``x += y``.

        Raises:
            MXNetError: the shape differs, or this array is recorded.
        """
        if found.dtype != self.inner.dtype:
            found = found.astype(self.inner.dtype)
        self._origin = None
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

    # Properties

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self.inner.shape)

    @property
    def dtype(self) -> type[np.generic]:
        """The dtype, as a NumPy class."""
        return self.inner.dtype.type

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.inner.size

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.inner.ndim

    @property
    def stype(self) -> str:
        """The storage type: ``"default"``, ``"row_sparse"`` or ``"csr"``."""
        return "default"

    @property
    def stored(self) -> so.NDArray:
        """The eager array that stands for this one on the tape."""
        return self.inner

    def content(self) -> so.NDArray:
        """The eager array of the entries, in the storage in which a backward pass takes them."""
        return self.stored

    @property
    def context(self) -> Context:
        """The device of the array."""
        return context_of(self.value.device)

    @property
    def ctx(self) -> Context:
        """The device of the array."""
        return self.context

    # Conversion

    @raising
    def asnumpy(self) -> np.ndarray:
        """A copy as a NumPy array."""
        return self.inner.asnumpy()

    def asscalar(self) -> Any:
        """The only entry.

        Raises:
            ValueError: the array has several entries.
        """
        if self.size != 1:
            raise ValueError(f"asscalar: the array must have one entry, got shape {self.shape}")
        return self.asnumpy().reshape(())[()]

    @raising
    def wait_to_read(self) -> None:
        """Waits until the value is computed."""
        self.inner.wait_to_read()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.inner.__array__(dtype, copy)

    def __jax_array__(self) -> Any:
        """The JAX array; see ``answers_for`` for operators with a JAX array on the left."""
        lost = self.inner.is_recorded_now  # and this class's operators reject JAX arrays
        return self if lost and answers_for(self, recorded=True) else self.value

    def __dlpack__(self, **how: Any) -> Any:
        return self.value.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self.value.__dlpack_device__()

    def to_dlpack_for_read(self) -> Any:
        """The value as a JAX array, which other libraries' ``from_dlpack`` accept."""
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
        return operator.index(self.asscalar())

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator["NDArray"]:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return array_of, (self.asnumpy(),)

    def __getstate__(self) -> dict[str, Any]:
        return {"handle": encoded(self.asnumpy())}

    def __setstate__(self, state: Any) -> None:
        """Takes the value that ``__getstate__`` of MXNet's arrays gives; any device is ignored."""
        if state.get("handle") is not None:
            self.inner, self._base, self._pieces = so.NDArray(decoded(state["handle"])), None, None

    # Copies

    @raising
    def astype(self, dtype: Any, copy: bool = True) -> "NDArray":
        """The array cast to another dtype."""
        if not copy and np.dtype(dtype) == self.inner.dtype:
            return self
        return NDArray(so.nd.cast(self.inner, dtype=np.dtype(dtype)))

    @raising
    def copy(self) -> "NDArray":
        """A copy of the array."""
        return NDArray(so.nd.identity(self.inner))

    def __copy__(self) -> "NDArray":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "NDArray":
        return self.copy()

    @raising
    def copyto(self, other: "NDArray | Context") -> "NDArray":
        """Writes the entries to ``other``, or copies the array to a context.

        Raises:
            MXNetError: the shapes differ, or the device does not exist.
            TypeError: ``other`` is neither an array nor a context.
        """
        if isinstance(other, NDArray):
            if other is not self:
                other.become(so.nd.identity(on_device_of(other, self).inner))
            return other
        if not isinstance(other, Context):
            raise TypeError(f"copyto: it must be an array or a context, got {other!r}")
        if other == self.context:
            return self.copy()
        return NDArray(self.inner.to_device(other.device))

    def as_in_context(self, context: Any) -> "NDArray":
        """The array on the device ``context``; itself if it is already there.

        Raises:
            MXNetError: the device does not exist.
        """
        chosen = as_context(context)
        return self if chosen.device in self.value.devices() else self.copyto(chosen)

    def as_nd_ndarray(self) -> "NDArray":
        """The array itself."""
        return self

    # Parts

    @raising
    def __getitem__(self, index: Any) -> "NDArray":
        if any(index is one or index == one for one in _EVERYTHING if type(index) is type(one)):
            return self
        entries = entries_of(index)
        found = self.inner[entries]
        result = NDArray(found if found.shape else found.reshape((1,)))
        if not so.autograd.is_recording() and is_contiguous(entries, self.shape):
            self.adopt(result, entries)
        elif twin_of(self) is not None and so.autograd.is_recording():
            follow([result], [self], lambda inputs: [_at(inputs[0], entries)])
        return result

    @raising
    def __setitem__(self, index: Any, value: Any) -> None:
        entries = entries_of(index)
        if isinstance(value, NDArray):
            value = on_device_of(self, value).dense()
        self._put(entries, value)
        self.tell()

    def _put(self, entries: Index, value: Any) -> None:
        recorded = isinstance(value, so.NDArray) and so.autograd.is_recording()
        if recorded and value.is_recorded:
            self._require_unrecorded()
            self.inner = assigned(self.inner, entries, value)
        elif len(entries) == 1 and isinstance(entries[0], slice) and entries[0] == slice(None):
            self.inner[...] = value  # does not require the old value to be computed
        else:
            self.inner[entries] = value

    def receive(self, piece: Viewed, index: Index | None) -> None:
        """Writes the contents of a view back."""
        if index is None:
            self._put((...,), so.nd.reshape(piece.inner, self.shape))
        else:
            self._put(index, piece.inner)

    # Gradients

    @raising
    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Attaches a gradient with the request ``"write"``, ``"add"`` or ``"null"``.

        Args:
            grad_req: the request.
            stype: the storage type of the gradient; defaults to that of the array.

        Raises:
            MXNetError: request or storage type is unknown, or the gradient of integers is sparse.
        """
        kind = self.stype if stype is None else stype
        held = None if kind == "default" else self.gradient_like(kind)
        if is_whole(self) and held is None and not self.is_sparse:
            attach(self, grad_req)
        else:
            self.stored.attach_grad(grad_req)
        self.keep_gradient(held)
        self.forget()

    def keep_gradient(self, held: "NDArray | None") -> None:
        """Makes ``held``, a sparse array, the place of the gradient; None for a dense one."""
        if held is None or self.stored.grad_req is OpReqType.NULL:
            if hasattr(self, "_gradient"):
                del self._gradient
            return
        self._gradient = held
        if self.stored.grad_req is OpReqType.ADD:
            held.expose()
        self.stored.grad = held.stored

    @property
    def grad_stype(self) -> str:
        """The storage type of the gradient; ``"default"`` without one."""
        return self._gradient.stype if hasattr(self, "_gradient") else "default"

    @property
    def grad(self) -> "NDArray | None":
        """The gradient from the last backward pass; None without ``attach_grad()``."""
        if twin_of(self) is not None:
            whole: NDArray | None = gradient_of(self)
            return whole
        untold = self._written_gradient is None
        found = self.stored.grad
        if found is None:
            return None
        if untold:  # zeros, which no backward pass wrote
            self._fresh_grad = False
        if hasattr(self, "_gradient") and self._gradient.stored is found:
            warn_if_dense(found, self._gradient.stype)
            return self._gradient
        if isinstance(found.value, SelectedRows):  # a sparse gradient of a dense request
            fresh = self._fresh_grad
            found.take_over(found.to_dense())
            self._fresh_grad = fresh
        return NDArray(found)

    def forget(self) -> None:
        """Makes the array a variable of the calls that follow, with a gradient not yet computed."""
        self._origin, self._fresh_grad = None, False

    @property
    def origin(self) -> Origin:
        """How the array was computed by recorded calls."""
        found = getattr(self, "_origin", None)
        if found is None:
            found = self._origin = Variable()
        return found

    @property
    def _written_gradient(self) -> so.NDArray | None:
        kept = differentiable(self)._grad
        return None if kept is None else kept.value

    @property
    def _fresh_grad(self) -> bool:
        """Whether a backward pass wrote the gradient since False was assigned."""
        gradient, used = self._written_gradient, getattr(self, "_used", None)
        return gradient is not None and (used is None or used() is not gradient.value)

    @_fresh_grad.setter
    def _fresh_grad(self, fresh: bool) -> None:
        gradient = self._written_gradient
        self._used = None if fresh or gradient is None else weakref.ref(gradient.value)

    def detach(self) -> "NDArray":
        """The same value without its recorded history."""
        return NDArray(self.inner.detach())

    @raising
    def backward(
        self, out_grad: "NDArray | None" = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """Calls ``mx.autograd.backward`` on this array."""
        head = differentiable(self)
        given = None if out_grad is None else out_grad.dense().astype(head.dtype, copy=False)
        head.backward(given, retain_graph, train_mode)
        write_given()


def _at(x: so.NDArray, entries: Index) -> so.NDArray:
    found: so.NDArray = x[entries]
    return found if found.shape else found.reshape((1,))


def array_of(value: Any, dtype: Any = None) -> NDArray:
    """An array of ``value``; shares the memory of a JAX array, which is immutable."""
    if isinstance(value, NDArray):
        value = value.value
    if isinstance(value, so.NDArray):
        value = value.value
    if dtype is None and isinstance(value, jax.Array) and not value.weak_type:
        return NDArray(so.NDArray(value))
    if isinstance(value, np.ndarray):  # nothing is compiled for a copy
        return NDArray(so.NDArray(jax.device_put(np.array(value, dtype))))
    return NDArray(so.NDArray(jnp.asarray(value, dtype)))


def array_named(name: str, value: Any) -> NDArray:
    """``value`` if it is an array, otherwise an array made from it.

    Raises:
        MXNetError: ``value`` does not consist of numbers.
    """
    if isinstance(value, NDArray):
        return value
    try:
        if not isinstance(value, (str, bytes)):
            return array_of(value)
    except (TypeError, ValueError):
        pass
    raise MXNetError(f"{name} must be an array, got {value!r:.80}")


def filled(shape: tuple[int, ...], value: Any, dtype: Any, device: Any = None) -> jax.Array:
    """A JAX array filled with a number; for small ones nothing is compiled."""
    if not is_small(shape):
        return jnp.full(shape, value, dtype, device=device)
    made: jax.Array = jax.device_put(np.full(shape, value, dtype), device)
    return made


def is_small(shape: Sequence[int]) -> bool:
    """Whether an array of a valid shape is filled on the host."""
    return min(shape, default=0) >= 0 and math.prod(shape) <= _SMALL


def zeros_of(
    shape: Sequence[int], dtype: Any, name: str = "zeros", ctx: Context | None = None
) -> NDArray:
    """Zeros on the device ``ctx``, by default on JAX's default device.

    Raises:
        MXNetError: they exceed the memory.
    """
    try:
        return NDArray(so.NDArray(filled(tuple(shape), 0, dtype, ctx and ctx.device)))
    except jax.errors.JaxRuntimeError as error:
        raise MXNetError(f"{name}: {error}") from error


def on_device_of(place: NDArray, source: NDArray) -> NDArray:
    """``source`` on the device of ``place``; a recorded array stays, so that it has a gradient."""
    if not has_devices():
        return source  # to ask for the device of an array would compute it
    recorded = so.autograd.is_recording() and source.stored.is_recorded
    return source if recorded else source.as_in_context(place.context)


def hold_together(arrays: Sequence[NDArray], values: Iterable[Any]) -> None:
    """Replaces the values of ``arrays``; shapes and dtypes must not change.

    A single interpreter operation consumes and stores the values, so that an interrupt occurs
    before or after it. Values that are not computed yet must be computed before the call.
    """
    shared = [one for one in arrays if one.is_shared]
    for one in shared:
        one.value  # noqa: B018  # a recorded call must not write to it later
    with deferring_signals() if shared else contextlib.nullcontext():
        inners = [one.inner for one in arrays]
        set_together(inners, "_value", values)
        for inner in inners:
            inner._link = None
        for one in shared:
            one.tell()
