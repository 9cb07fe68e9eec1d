"""``so.nd``: operators on eager arrays, the arrays themselves, and the Python array API."""

# `make golden` writes this file from the registry.
# Of overloads, and of the methods of a class and its base, the first one that fits counts.
# mypy: disable-error-code="assignment,overload-overlap,override"
# pyright: reportIncompatibleMethodOverride=false, reportOverlappingOverload=false

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, overload

import jax
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from registry.operator.bodies import Body
from registry.values import ArrayInput, SelectedRows, TensorArray
from registry.var import Value, Var
import sys as _sys
from collections.abc import Callable as _Callable
from typing import Any as _Any
from registry.foreign_names import foreign as _foreign
from registry.hooks import define as _define
from registry.table import Changes as _Changes
from registry.table import find as _find
from registry.table import names as _names
from registry.table import require as _require
from registry.tracebacks import api_boundary as _api_boundary
from registry.types import OpReqType as OpReqType
from symop import control_flow as _flow
from symop.eager import array_api as _api
from symop.eager import array_methods as _methods
from symop.eager import array_operators as _operators
from symop.eager import linalg as linalg
from symop.eager.array_calls import array_function as _array_function
from symop.eager.control_flow import arrays_of as _arrays_of
from symop.eager.fourier import fft as fft
from symop.eager.ndarray import NDArray as NDArray
from symop.eager.recording import direct as direct
from symop.eager.recording import flush as _flush
from symop.eager.array_api import __array_api_version__ as __array_api_version__
from symop.eager.array_api import __array_namespace_info__ as __array_namespace_info__
from symop.eager.array_api import arange as arange
from symop.eager.array_api import asarray as asarray
from symop.eager.array_api import astype as astype
from symop.eager.array_api import broadcast_arrays as broadcast_arrays
from symop.eager.array_api import can_cast as can_cast
from symop.eager.array_api import clip as clip
from symop.eager.array_api import concat as concat
from symop.eager.array_api import cumulative_prod as cumulative_prod
from symop.eager.array_api import cumulative_sum as cumulative_sum
from symop.eager.array_api import diff as diff
from symop.eager.array_api import divmod as divmod
from symop.eager.array_api import e as e
from symop.eager.array_api import empty as empty
from symop.eager.array_api import empty_like as empty_like
from symop.eager.array_api import eye as eye
from symop.eager.array_api import finfo as finfo
from symop.eager.array_api import from_dlpack as from_dlpack
from symop.eager.array_api import full as full
from symop.eager.array_api import full_like as full_like
from symop.eager.array_api import iinfo as iinfo
from symop.eager.array_api import inf as inf
from symop.eager.array_api import isdtype as isdtype
from symop.eager.array_api import linspace as linspace
from symop.eager.array_api import matrix_transpose as matrix_transpose
from symop.eager.array_api import meshgrid as meshgrid
from symop.eager.array_api import nan as nan
from symop.eager.array_api import newaxis as newaxis
from symop.eager.array_api import nextafter as nextafter
from symop.eager.array_api import nonzero as nonzero
from symop.eager.array_api import ones as ones
from symop.eager.array_api import ones_like as ones_like
from symop.eager.array_api import pi as pi
from symop.eager.array_api import pow as pow
from symop.eager.array_api import prod as prod
from symop.eager.array_api import repeat as repeat
from symop.eager.array_api import reshape as reshape
from symop.eager.array_api import result_type as result_type
from symop.eager.array_api import searchsorted as searchsorted
from symop.eager.array_api import signbit as signbit
from symop.eager.array_api import stack as stack
from symop.eager.array_api import sum as sum
from symop.eager.array_api import unique_all as unique_all
from symop.eager.array_api import unique_counts as unique_counts
from symop.eager.array_api import unique_inverse as unique_inverse
from symop.eager.array_api import unique_values as unique_values
from symop.eager.array_api import unstack as unstack
from symop.eager.array_api import var as var
from symop.eager.array_api import zeros as zeros
from symop.eager.array_api import zeros_like as zeros_like

# The namespace has a dtype of this name.
from builtins import bool as _bool
from typing import TypeVar

_Out = TypeVar("_Out")
_Request = OpReqType | str | Sequence[OpReqType | str] | None

bool = np.bool
int8 = np.int8
int16 = np.int16
int32 = np.int32
int64 = np.int64
uint8 = np.uint8
uint16 = np.uint16
uint32 = np.uint32
uint64 = np.uint64
float32 = np.float32
float64 = np.float64
complex64 = np.complex64
complex128 = np.complex128
_Function = _Callable[..., _Any]
@_api_boundary
def array(data: _Any, dtype: _Any=None, ctx: _Any=None) -> NDArray:
    """Creates an eager array from numbers, nested lists, a NumPy array or a ``jax.Array``.

    Floats and lists of floats have JAX's default float dtype, float32 unless x64 is enabled. The
    array has its own memory, as in NumPy: a ``jax.Array`` is copied, so that it may be donated;
    ``asarray`` does not copy it. An eager array is copied, too, and the copy is recorded if the
    array is.

    Args:
        data: the entries.
        dtype: the dtype; by default that of the data.
        ctx: the device that holds the array, such as ``"cpu:0"``.

    Raises:
        GradientError: ``data`` is a list with recorded arrays, or a recorded array and ``ctx``
            would move it.

    Example:
        >>> array([[1, 2], [3, 4]], dtype="float32")
        NDArray([[1., 2.],
                 [3., 4.]], dtype=float32)
    """
def waitall() -> None:
    """Runs the recorded calls of this thread; JAX may still be computing their results."""
@_api_boundary
def cond(pred: _Any, true_fn: _Function, false_fn: _Function, *operands: _Any) -> _Any:
    """Calls ``so.cond`` on eager arrays; converts numbers to arrays.

    Example:
        >>> cond(array(1.0) > 0, lambda x: x * 2, lambda x: x, array([1.0, 2.0]))
        NDArray([2., 4.], dtype=float32)
    """
@_api_boundary
def while_loop(cond_fn: _Function, body_fn: _Function, init: _Any, max_steps: int | None=None) -> _Any:
    """Calls ``so.while_loop`` on eager arrays; converts numbers to arrays.

    Example:
        >>> while_loop(lambda x: x < 100, lambda x: x * x, array(3.0))
        NDArray(6561., dtype=float32)
    """
@_api_boundary
def scan(f: _Function, init: _Any, xs: _Any=None, length: int | None=None, reverse: _bool=False) -> tuple[_Any, _Any]:
    """Calls ``so.scan`` on eager arrays; converts numbers to arrays.

    Example:
        >>> scan(lambda c, x: (c + x, c), array(0.0), array([1.0, 2.0, 3.0]))[1]
        NDArray([0., 1., 3.], dtype=float32)
    """
@_api_boundary
def foreach(body: _Function, data: _Any, init_states: _Any) -> tuple[_Any, _Any]:
    """Calls ``so.foreach`` on eager arrays; converts numbers to arrays.

    Example:
        >>> foreach(lambda x, s: (x * s, s + x), array([1.0, 2.0, 3.0]), array(1.0))[0]
        NDArray([ 1.,  4., 12.], dtype=float32)
    """
@overload
def abs(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Absolute value, element-wise."""
@overload
def abs(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def abs(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
absolute = abs
@overload
def accumulate_rows(
    total: NDArray | ArrayInput,
    x: NDArray | ArrayInput,
    places: int,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """``total + x``, where rows are concatenated in a buffer of ``places`` times the rows of ``x``."""
@overload
def accumulate_rows(
    total: jax.Array | np.ndarray,
    x: jax.Array | np.ndarray | complex,
    places: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def accumulate_rows(
    total: NDArray | ArrayInput,
    x: NDArray | ArrayInput,
    places: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def acos(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Inverse cosine, element-wise: the angle in ``[0, pi]`` whose cosine is ``x``."""
@overload
def acos(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def acos(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
arccos = acos
@overload
def acosh(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Inverse hyperbolic cosine: the nonnegative number whose hyperbolic cosine is ``x``."""
@overload
def acosh(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def acosh(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
arccosh = acosh
@overload
def adadelta(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    mean_square: NDArray | ArrayInput,
    mean_square_step: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    rho: float = 0.9,
    eps: float = 1e-06,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of Adadelta, whose length is the root of the mean square of previous steps."""
@overload
def adadelta(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    mean_square: jax.Array | np.ndarray | complex,
    mean_square_step: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    rho: float = 0.9,
    eps: float = 1e-06,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def adadelta(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    mean_square: NDArray | ArrayInput,
    mean_square_step: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    rho: float = 0.9,
    eps: float = 1e-06,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def adagrad(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    moment: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    eps: float = 1e-07,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of Adagrad: each entry is scaled by the root of the sum of its past squares."""
@overload
def adagrad(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    moment: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    eps: float = 1e-07,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def adagrad(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    moment: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    eps: float = 1e-07,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def adam(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    moment1: NDArray | ArrayInput,
    moment2: NDArray | ArrayInput,
    step: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: _bool = False,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of Adam; ``step`` is the number of previous steps, zero at the first one."""
@overload
def adam(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    moment1: jax.Array | np.ndarray | complex,
    moment2: jax.Array | np.ndarray | complex,
    step: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: _bool = False,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def adam(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    moment1: NDArray | ArrayInput,
    moment2: NDArray | ArrayInput,
    step: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: _bool = False,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def adamax(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    moment: NDArray | ArrayInput,
    norm: NDArray | ArrayInput,
    step: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of Adamax; ``step`` is the number of previous steps."""
@overload
def adamax(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    moment: jax.Array | np.ndarray | complex,
    norm: jax.Array | np.ndarray | complex,
    step: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def adamax(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    moment: NDArray | ArrayInput,
    norm: NDArray | ArrayInput,
    step: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def adamw(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    moment1: NDArray | ArrayInput,
    moment2: NDArray | ArrayInput,
    step: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    weight_decay: float = 0.0001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: _bool = False,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of Adam with decoupled decay of the parameter by ``learning_rate * weight_decay``."""
@overload
def adamw(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    moment1: jax.Array | np.ndarray | complex,
    moment2: jax.Array | np.ndarray | complex,
    step: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    weight_decay: float = 0.0001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: _bool = False,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def adamw(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    moment1: NDArray | ArrayInput,
    moment2: NDArray | ArrayInput,
    step: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    weight_decay: float = 0.0001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: _bool = False,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def adaptive_average_pooling(
    data: NDArray | ArrayInput,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Average pooling to ``output_size`` windows over one to three spatial axes."""
@overload
def adaptive_average_pooling(
    data: jax.Array | np.ndarray,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def adaptive_average_pooling(
    data: NDArray | ArrayInput,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
AdaptiveAvgPooling2D = adaptive_average_pooling
@overload
def adaptive_average_pooling_gradient(
    cotangent: NDArray | ArrayInput,
    shape: Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adjoint of ``adaptive_average_pooling``: spreads each mean over its window in ``shape``."""
@overload
def adaptive_average_pooling_gradient(
    cotangent: jax.Array | np.ndarray,
    shape: Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def adaptive_average_pooling_gradient(
    cotangent: NDArray | ArrayInput,
    shape: Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def adaptive_max_pooling(
    data: NDArray | ArrayInput,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Max pooling to ``output_size`` windows over one to three spatial axes."""
@overload
def adaptive_max_pooling(
    data: jax.Array | np.ndarray,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def adaptive_max_pooling(
    data: NDArray | ArrayInput,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def adaptive_max_pooling_places(
    data: NDArray | ArrayInput,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Flat positions in ``data`` of the results of ``adaptive_max_pooling``."""
@overload
def adaptive_max_pooling_places(
    data: jax.Array | np.ndarray,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def adaptive_max_pooling_places(
    data: NDArray | ArrayInput,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def add(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise sum of two arrays: ``out = x + y``."""
@overload
def add(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def add(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
add_any = add
broadcast_add = add
broadcast_plus = add
elementwise_add = add
elemwise_add = add
@overload
def add_decayed_weights(
    grad: NDArray | ArrayInput,
    param: NDArray | ArrayInput,
    weight_decay: float,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """``grad + weight_decay * param``: the gradient with that of an L2 penalty added."""
@overload
def add_decayed_weights(
    grad: jax.Array | np.ndarray,
    param: jax.Array | np.ndarray | complex,
    weight_decay: float,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def add_decayed_weights(
    grad: NDArray | ArrayInput,
    param: NDArray | ArrayInput,
    weight_decay: float,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def add_n(*xs: NDArray | ArrayLike, out: _Out, req: _Request = None) -> _Out:
    """Sum of arrays of the same shape, added from left to right."""
@overload
def add_n(xs: Sequence[NDArray | ArrayLike], *, out: _Out, req: _Request = None) -> _Out: ...
@overload
def add_n(*xs: jax.Array | np.ndarray, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def add_n(
    xs: Sequence[jax.Array | np.ndarray],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def add_n(*xs: NDArray | ArrayLike, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def add_n(
    xs: Sequence[NDArray | ArrayLike],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
ElementWiseSum = add_n
accumulate = add_n
@overload
def add_rows(
    values: NDArray | ArrayInput,
    ids: NDArray | ArrayInput,
    height: int,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    sparse: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adds ``values`` to the rows ``ids`` of an array of zeros with ``height`` rows."""
@overload
def add_rows(
    values: jax.Array | np.ndarray,
    ids: jax.Array | np.ndarray | complex,
    height: int,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    sparse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def add_rows(
    values: NDArray | ArrayInput,
    ids: NDArray | ArrayInput,
    height: int,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    sparse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def alias(x: NDArray | ArrayInput, number: int = 0, *, out: _Out, req: _Request = None) -> _Out:
    """Returns ``x`` as a separate value: equal calls are one node unless ``number`` differs."""
@overload
def alias(
    x: jax.Array | np.ndarray,
    number: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def alias(
    x: NDArray | ArrayInput,
    number: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def all(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Whether all entries over ``axis`` are true (nonzero); true if there are none."""
@overload
def all(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def all(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
reduce_all = all
@overload
def any(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Whether any entry over ``axis`` is true (nonzero); false if there are none."""
@overload
def any(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def any(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
reduce_any = any
@overload
def argmax(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Index of the largest entry along ``axis``, the first in case of ties; NaN counts as largest."""
@overload
def argmax(
    x: jax.Array | np.ndarray,
    axis: int | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def argmax(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def argmax_mask(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    smallest: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A mask that is true at one entry for each result of ``max``: the first of the largest."""
@overload
def argmax_mask(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    smallest: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def argmax_mask(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    smallest: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def argmin(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Index of the smallest entry along ``axis``, the first in case of ties; NaN counts as least."""
@overload
def argmin(
    x: jax.Array | np.ndarray,
    axis: int | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def argmin(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def argsort(
    x: NDArray | ArrayInput,
    axis: int = -1,
    descending: _bool = False,
    stable: _bool = True,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Indices that sort the entries of ``x`` along ``axis`` in ascending or descending order."""
@overload
def argsort(
    x: jax.Array | np.ndarray,
    axis: int = -1,
    descending: _bool = False,
    stable: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def argsort(
    x: NDArray | ArrayInput,
    axis: int = -1,
    descending: _bool = False,
    stable: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def array_create(
    like: NDArray | ArrayInput | None = None,
    *,
    capacity: int,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Creates an empty tensor array with capacity for ``capacity`` elements, all zeros."""
@overload
def array_create(
    like: NDArray | ArrayInput | None = None,
    *,
    capacity: int,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
create_array = array_create
@overload
def array_length(array: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """The number of elements of ``array``: one more than the highest index that was written."""
@overload
def array_length(
    array: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def array_length(
    array: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
lod_array_length = array_length
@overload
def array_read(
    array: NDArray | ArrayInput,
    index: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Reads the element of ``array`` at ``index``; zeros if out of range or never written."""
@overload
def array_read(
    array: jax.Array | np.ndarray,
    index: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def array_read(
    array: NDArray | ArrayInput,
    index: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
read_from_array = array_read
@overload
def array_stack(array: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Stacks all elements of ``array``, up to its capacity; zeros where unwritten."""
@overload
def array_stack(
    array: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def array_stack(
    array: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def array_unstack(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Creates a full tensor array whose elements are the slices of ``x`` along the first axis."""
@overload
def array_unstack(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def array_unstack(
    x: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def array_write(
    array: NDArray | ArrayInput,
    x: NDArray | ArrayInput,
    index: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Writes ``x`` to ``array`` at ``index``; the length becomes at least ``index + 1``."""
@overload
def array_write(
    array: jax.Array | np.ndarray,
    x: jax.Array | np.ndarray | complex,
    index: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def array_write(
    array: NDArray | ArrayInput,
    x: NDArray | ArrayInput,
    index: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
write_to_array = array_write
@overload
def asin(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Inverse sine, element-wise: the angle in ``[-pi/2, pi/2]`` whose sine is ``x``."""
@overload
def asin(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def asin(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
arcsin = asin
@overload
def asinh(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Inverse hyperbolic sine, element-wise: the number whose hyperbolic sine is ``x``."""
@overload
def asinh(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def asinh(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
arcsinh = asinh
@overload
def atan(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Inverse tangent, element-wise: the angle in ``[-pi/2, pi/2]`` whose tangent is ``x``."""
@overload
def atan(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def atan(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
arctan = atan
@overload
def atan2(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Angle in ``[-pi, pi]`` of the point with first coordinate ``y`` and second coordinate ``x``."""
@overload
def atan2(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def atan2(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
arctan2 = atan2
@overload
def atanh(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Inverse hyperbolic tangent, element-wise: the number whose hyperbolic tangent is ``x``."""
@overload
def atanh(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def atanh(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
arctanh = atanh
@overload
def attention_factors(
    dropout_seed: NDArray | ArrayInput,
    shape: Sequence[int],
    dropout: float,
    dtype: DTypeLike = ...,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Factors of the weights of attention under dropout: zero, or ``1 / (1 - dropout)``."""
@overload
def attention_factors(
    dropout_seed: jax.Array | np.ndarray,
    shape: Sequence[int],
    dropout: float,
    dtype: DTypeLike = ...,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def attention_factors(
    dropout_seed: NDArray | ArrayInput,
    shape: Sequence[int],
    dropout: float,
    dtype: DTypeLike = ...,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def attention_gradient(
    query: NDArray | ArrayInput,
    keys: NDArray | ArrayInput,
    values: NDArray | ArrayInput,
    output: NDArray | ArrayInput,
    logsumexp: NDArray | ArrayInput,
    cotangent: NDArray | ArrayInput,
    logsumexp_cotangent: NDArray | ArrayInput | None = None,
    mask: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    query_lengths: NDArray | ArrayInput | None = None,
    key_lengths: NDArray | ArrayInput | None = None,
    dropout_seed: NDArray | ArrayInput | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    of_bias: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Gradients of attention with respect to query, keys, values and, if ``of_bias``, the bias."""
@overload
def attention_gradient(
    query: jax.Array | np.ndarray,
    keys: jax.Array | np.ndarray | complex,
    values: jax.Array | np.ndarray | complex,
    output: jax.Array | np.ndarray | complex,
    logsumexp: jax.Array | np.ndarray | complex,
    cotangent: jax.Array | np.ndarray | complex,
    logsumexp_cotangent: jax.Array | np.ndarray | complex | None = None,
    mask: jax.Array | np.ndarray | complex | None = None,
    bias: jax.Array | np.ndarray | complex | None = None,
    query_lengths: jax.Array | np.ndarray | complex | None = None,
    key_lengths: jax.Array | np.ndarray | complex | None = None,
    dropout_seed: jax.Array | np.ndarray | complex | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    of_bias: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def attention_gradient(
    query: NDArray | ArrayInput,
    keys: NDArray | ArrayInput,
    values: NDArray | ArrayInput,
    output: NDArray | ArrayInput,
    logsumexp: NDArray | ArrayInput,
    cotangent: NDArray | ArrayInput,
    logsumexp_cotangent: NDArray | ArrayInput | None = None,
    mask: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    query_lengths: NDArray | ArrayInput | None = None,
    key_lengths: NDArray | ArrayInput | None = None,
    dropout_seed: NDArray | ArrayInput | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    of_bias: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def attention_tangent(
    query: NDArray | ArrayInput,
    keys: NDArray | ArrayInput,
    values: NDArray | ArrayInput,
    output: NDArray | ArrayInput,
    logsumexp: NDArray | ArrayInput,
    query_tangent: NDArray | ArrayInput | None = None,
    keys_tangent: NDArray | ArrayInput | None = None,
    values_tangent: NDArray | ArrayInput | None = None,
    bias_tangent: NDArray | ArrayInput | None = None,
    mask: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    query_lengths: NDArray | ArrayInput | None = None,
    key_lengths: NDArray | ArrayInput | None = None,
    dropout_seed: NDArray | ArrayInput | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Tangents of attention and of its ``logsumexp``, linear in those of its inputs."""
@overload
def attention_tangent(
    query: jax.Array | np.ndarray,
    keys: jax.Array | np.ndarray | complex,
    values: jax.Array | np.ndarray | complex,
    output: jax.Array | np.ndarray | complex,
    logsumexp: jax.Array | np.ndarray | complex,
    query_tangent: jax.Array | np.ndarray | complex | None = None,
    keys_tangent: jax.Array | np.ndarray | complex | None = None,
    values_tangent: jax.Array | np.ndarray | complex | None = None,
    bias_tangent: jax.Array | np.ndarray | complex | None = None,
    mask: jax.Array | np.ndarray | complex | None = None,
    bias: jax.Array | np.ndarray | complex | None = None,
    query_lengths: jax.Array | np.ndarray | complex | None = None,
    key_lengths: jax.Array | np.ndarray | complex | None = None,
    dropout_seed: jax.Array | np.ndarray | complex | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def attention_tangent(
    query: NDArray | ArrayInput,
    keys: NDArray | ArrayInput,
    values: NDArray | ArrayInput,
    output: NDArray | ArrayInput,
    logsumexp: NDArray | ArrayInput,
    query_tangent: NDArray | ArrayInput | None = None,
    keys_tangent: NDArray | ArrayInput | None = None,
    values_tangent: NDArray | ArrayInput | None = None,
    bias_tangent: NDArray | ArrayInput | None = None,
    mask: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    query_lengths: NDArray | ArrayInput | None = None,
    key_lengths: NDArray | ArrayInput | None = None,
    dropout_seed: NDArray | ArrayInput | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def attention_weights(
    query: NDArray | ArrayInput,
    keys: NDArray | ArrayInput,
    logsumexp: NDArray | ArrayInput,
    mask: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    query_lengths: NDArray | ArrayInput | None = None,
    key_lengths: NDArray | ArrayInput | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Weights of attention, ``exp(scores - logsumexp)``: one for each query and key."""
@overload
def attention_weights(
    query: jax.Array | np.ndarray,
    keys: jax.Array | np.ndarray | complex,
    logsumexp: jax.Array | np.ndarray | complex,
    mask: jax.Array | np.ndarray | complex | None = None,
    bias: jax.Array | np.ndarray | complex | None = None,
    query_lengths: jax.Array | np.ndarray | complex | None = None,
    key_lengths: jax.Array | np.ndarray | complex | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def attention_weights(
    query: NDArray | ArrayInput,
    keys: NDArray | ArrayInput,
    logsumexp: NDArray | ArrayInput,
    mask: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    query_lengths: NDArray | ArrayInput | None = None,
    key_lengths: NDArray | ArrayInput | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def average_pooling(
    data: NDArray | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    count_include_pad: _bool = True,
    ceil_mode: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Average pooling: the mean of each window over one to three spatial axes."""
@overload
def average_pooling(
    data: jax.Array | np.ndarray,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    count_include_pad: _bool = True,
    ceil_mode: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def average_pooling(
    data: NDArray | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    count_include_pad: _bool = True,
    ceil_mode: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def average_pooling_gradient(
    cotangent: NDArray | ArrayInput,
    shape: Sequence[int],
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    count_include_pad: _bool = True,
    ceil_mode: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adjoint of ``average_pooling`` for data of ``shape``: spreads each mean over its window."""
@overload
def average_pooling_gradient(
    cotangent: jax.Array | np.ndarray,
    shape: Sequence[int],
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    count_include_pad: _bool = True,
    ceil_mode: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def average_pooling_gradient(
    cotangent: NDArray | ArrayInput,
    shape: Sequence[int],
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    count_include_pad: _bool = True,
    ceil_mode: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def band_part(
    x: NDArray | ArrayInput,
    lower: int | None = None,
    upper: int | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Keeps the entries of matrices within a band of diagonals and sets the others to zero."""
@overload
def band_part(
    x: jax.Array | np.ndarray,
    lower: int | None = None,
    upper: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def band_part(
    x: NDArray | ArrayInput,
    lower: int | None = None,
    upper: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def batch_dot(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    transpose_a: _bool = False,
    transpose_b: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Batched matrix product: ``out[n] = a[n] @ b[n]``."""
@overload
def batch_dot(
    a: jax.Array | np.ndarray,
    b: jax.Array | np.ndarray | complex,
    transpose_a: _bool = False,
    transpose_b: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def batch_dot(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    transpose_a: _bool = False,
    transpose_b: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
bmm = batch_dot
@overload
def batch_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput,
    beta: NDArray | ArrayInput,
    moving_mean: NDArray | ArrayInput,
    moving_var: NDArray | ArrayInput,
    axis: int = 1,
    eps: float = 1e-05,
    momentum: float = 0.9,
    *,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Batch normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per channel."""
@overload
def batch_norm(
    data: jax.Array | np.ndarray,
    gamma: jax.Array | np.ndarray | complex,
    beta: jax.Array | np.ndarray | complex,
    moving_mean: jax.Array | np.ndarray | complex,
    moving_var: jax.Array | np.ndarray | complex,
    axis: int = 1,
    eps: float = 1e-05,
    momentum: float = 0.9,
    *,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def batch_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput,
    beta: NDArray | ArrayInput,
    moving_mean: NDArray | ArrayInput,
    moving_var: NDArray | ArrayInput,
    axis: int = 1,
    eps: float = 1e-05,
    momentum: float = 0.9,
    *,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def bernoulli_log_density(
    x: NDArray | ArrayInput,
    logits: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of the Bernoulli distribution: ``x log(p) + (1 - x) log(1 - p)``."""
@overload
def bernoulli_log_density(
    x: jax.Array | np.ndarray,
    logits: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bernoulli_log_density(
    x: NDArray | ArrayInput,
    logits: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def bessel_i(x: NDArray | ArrayInput, n: int, *, out: _Out, req: _Request = None) -> _Out:
    """Modified Bessel function of the first kind and of integer order ``n``, ``I_n(x)``."""
@overload
def bessel_i(
    x: jax.Array | np.ndarray,
    n: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bessel_i(
    x: NDArray | ArrayInput,
    n: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def bessel_i0(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Modified Bessel function of the first kind of order 0, which grows like ``exp(|x|)``."""
@overload
def bessel_i0(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bessel_i0(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
i0 = bessel_i0
@overload
def bessel_i0e(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Exponentially scaled modified Bessel function of order 0: ``exp(-|x|) bessel_i0(x)``."""
@overload
def bessel_i0e(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bessel_i0e(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
i0e = bessel_i0e
@overload
def bessel_i1(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Modified Bessel function of the first kind of order 1: the derivative of ``bessel_i0``."""
@overload
def bessel_i1(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bessel_i1(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
i1 = bessel_i1
@overload
def bessel_i1e(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Exponentially scaled modified Bessel function of order 1: ``exp(-|x|) bessel_i1(x)``."""
@overload
def bessel_i1e(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bessel_i1e(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
i1e = bessel_i1e
@overload
def bessel_ie(x: NDArray | ArrayInput, n: int, *, out: _Out, req: _Request = None) -> _Out:
    """Exponentially scaled modified Bessel function, ``exp(-|x|) I_n(x)``; zero at infinity."""
@overload
def bessel_ie(
    x: jax.Array | np.ndarray,
    n: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bessel_ie(
    x: NDArray | ArrayInput,
    n: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def beta_log_density(
    x: NDArray | ArrayInput,
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of the beta distribution: ``(a - 1) log(x) + (b - 1) log(1 - x) - log B(a, b)``."""
@overload
def beta_log_density(
    x: jax.Array | np.ndarray,
    a: jax.Array | np.ndarray | complex,
    b: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def beta_log_density(
    x: NDArray | ArrayInput,
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def bilinear_sampler(
    data: NDArray | ArrayInput,
    grid: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Samples ``data`` at the points of ``grid`` by bilinear interpolation."""
@overload
def bilinear_sampler(
    data: jax.Array | np.ndarray,
    grid: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bilinear_sampler(
    data: NDArray | ArrayInput,
    grid: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
BilinearSampler = bilinear_sampler
@overload
def bitwise_and(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Bitwise and of two arrays; for booleans their logical and."""
@overload
def bitwise_and(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bitwise_and(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def bitwise_invert(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Inverts each bit of ``x``: ``-x - 1`` for signed integers, logical not for booleans."""
@overload
def bitwise_invert(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bitwise_invert(
    x: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
bitwise_not = bitwise_invert
invert = bitwise_invert
@overload
def bitwise_left_shift(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Shifts bits to the left: ``x 2^y``. Bits shifted out are lost; ``y`` must not be negative."""
@overload
def bitwise_left_shift(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bitwise_left_shift(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
left_shift = bitwise_left_shift
shift_left = bitwise_left_shift
@overload
def bitwise_or(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Bitwise or of two arrays; for booleans their logical or."""
@overload
def bitwise_or(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bitwise_or(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def bitwise_right_shift(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Shifts bits to the right: ``floor(x / 2^y)``. The sign is kept; ``y`` must not be negative."""
@overload
def bitwise_right_shift(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bitwise_right_shift(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
right_shift = bitwise_right_shift
@overload
def bitwise_xor(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Bitwise exclusive or of two arrays; for booleans whether they differ."""
@overload
def bitwise_xor(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def bitwise_xor(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def boolean_mask(
    x: NDArray | ArrayInput,
    mask: NDArray | ArrayInput,
    size: int,
    fill_value: float = 0.0,
    axis: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The entries of ``x`` along ``axis`` where ``mask`` is true, in order, ``size`` of them."""
@overload
def boolean_mask(
    x: jax.Array | np.ndarray,
    mask: jax.Array | np.ndarray | complex,
    size: int,
    fill_value: float = 0.0,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def boolean_mask(
    x: NDArray | ArrayInput,
    mask: NDArray | ArrayInput,
    size: int,
    fill_value: float = 0.0,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def broadcast_like(
    x: NDArray | ArrayInput,
    like: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Broadcasts ``x`` to the shape of ``like`` by NumPy's rules: axes are aligned at the end."""
@overload
def broadcast_like(
    x: jax.Array | np.ndarray,
    like: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def broadcast_like(
    x: NDArray | ArrayInput,
    like: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
expand_as = broadcast_like
@overload
def broadcast_to(
    x: NDArray | ArrayInput,
    shape: int | Sequence[int],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Broadcasts ``x`` to ``shape`` by NumPy's rules: axes are aligned at the end."""
@overload
def broadcast_to(
    x: jax.Array | np.ndarray,
    shape: int | Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def broadcast_to(
    x: NDArray | ArrayInput,
    shape: int | Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def call(
    *operands: NDArray | ArrayLike,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: _bool = False,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Returns the outputs of ``body``, whose derivative is that of a rule if one is passed."""
@overload
def call(
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: _bool = False,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def call(
    *operands: NDArray | ArrayLike,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: _bool = False,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def call(
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: _bool = False,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def cast(x: NDArray | ArrayInput, dtype: DTypeLike, *, out: _Out, req: _Request = None) -> _Out:
    """Converts the entries of ``x`` to ``dtype``."""
@overload
def cast(
    x: jax.Array | np.ndarray,
    dtype: DTypeLike,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cast(
    x: NDArray | ArrayInput,
    dtype: DTypeLike,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
Cast = cast
@overload
def cauchy_log_density(
    x: NDArray | ArrayInput,
    loc: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of the Cauchy distribution with median ``loc``."""
@overload
def cauchy_log_density(
    x: jax.Array | np.ndarray,
    loc: jax.Array | np.ndarray | complex,
    scale: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cauchy_log_density(
    x: NDArray | ArrayInput,
    loc: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cbrt(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Cube root, element-wise; negative for negative ``x``. The derivative at zero is infinite."""
@overload
def cbrt(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def cbrt(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def ceil(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Ceiling, element-wise: the least integer that is at least ``x``. Integers are unchanged."""
@overload
def ceil(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def ceil(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def celu(
    x: NDArray | ArrayInput,
    alpha: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Continuously differentiable exponential linear unit, element-wise."""
@overload
def celu(
    x: jax.Array | np.ndarray,
    alpha: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def celu(
    x: NDArray | ArrayInput,
    alpha: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def chain_sum(
    x: NDArray | ArrayLike,
    *weights: NDArray | ArrayLike,
    reverse: _bool = False,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Sums along chains of states: ``x`` plus weighted results of the step before."""
@overload
def chain_sum(
    x: NDArray | ArrayLike,
    weights: Sequence[NDArray | ArrayLike],
    *,
    reverse: _bool = False,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def chain_sum(
    x: jax.Array | np.ndarray,
    *weights: jax.Array | np.ndarray | complex,
    reverse: _bool = False,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def chain_sum(
    x: jax.Array | np.ndarray,
    weights: Sequence[jax.Array | np.ndarray | complex],
    *,
    reverse: _bool = False,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def chain_sum(
    x: NDArray | ArrayLike,
    *weights: NDArray | ArrayLike,
    reverse: _bool = False,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def chain_sum(
    x: NDArray | ArrayLike,
    weights: Sequence[NDArray | ArrayLike],
    *,
    reverse: _bool = False,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cholesky(
    a: NDArray | ArrayInput,
    upper: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Cholesky factor of a positive definite matrix: lower triangular with ``out @ out^H = a``."""
@overload
def cholesky(
    a: jax.Array | np.ndarray,
    upper: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cholesky(
    a: NDArray | ArrayInput,
    upper: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
linalg_potrf = cholesky
potrf = cholesky
@overload
def choose(
    when_training: NDArray | ArrayInput,
    otherwise: NDArray | ArrayInput,
    *,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Selects one value in training and another in prediction; only the selected one is computed."""
@overload
def choose(
    when_training: jax.Array | np.ndarray,
    otherwise: jax.Array | np.ndarray | complex,
    *,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def choose(
    when_training: NDArray | ArrayInput,
    otherwise: NDArray | ArrayInput,
    *,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def clip_by_value(
    x: NDArray | ArrayInput,
    min: NDArray | ArrayInput | None = None,
    max: NDArray | ArrayInput | None = None,
    low: float | None = None,
    high: float | None = None,
    ties: Literal['split', 'first', 'last'] = 'first',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Clips ``x`` to bounds: ``minimum(maximum(x, min), max)``; a bound of None has no effect."""
@overload
def clip_by_value(
    x: jax.Array | np.ndarray,
    min: jax.Array | np.ndarray | complex | None = None,
    max: jax.Array | np.ndarray | complex | None = None,
    low: float | None = None,
    high: float | None = None,
    ties: Literal['split', 'first', 'last'] = 'first',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def clip_by_value(
    x: NDArray | ArrayInput,
    min: NDArray | ArrayInput | None = None,
    max: NDArray | ArrayInput | None = None,
    low: float | None = None,
    high: float | None = None,
    ties: Literal['split', 'first', 'last'] = 'first',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def clip_by_global_norm(
    *xs: NDArray | ArrayLike,
    max_norm: float,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Scales all arrays together if their ``global_norm`` exceeds ``max_norm``."""
@overload
def clip_by_global_norm(
    xs: Sequence[NDArray | ArrayLike],
    *,
    max_norm: float,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def clip_by_global_norm(
    *xs: jax.Array | np.ndarray,
    max_norm: float,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def clip_by_global_norm(
    xs: Sequence[jax.Array | np.ndarray],
    *,
    max_norm: float,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def clip_by_global_norm(
    *xs: NDArray | ArrayLike,
    max_norm: float,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def clip_by_global_norm(
    xs: Sequence[NDArray | ArrayLike],
    *,
    max_norm: float,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def clip_by_norm(
    x: NDArray | ArrayInput,
    max_norm: float,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Scales ``x`` to norm ``max_norm`` if its norm is larger: ``x * max_norm / |x|``."""
@overload
def clip_by_norm(
    x: jax.Array | np.ndarray,
    max_norm: float,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def clip_by_norm(
    x: NDArray | ArrayInput,
    max_norm: float,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cofactor(
    a: NDArray | ArrayInput,
    factors: NDArray | ArrayInput,
    permutation: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Cofactors of a matrix: ``(-1)^(i + j)`` times the determinant without row i and column j."""
@overload
def cofactor(
    a: jax.Array | np.ndarray,
    factors: jax.Array | np.ndarray | complex,
    permutation: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cofactor(
    a: NDArray | ArrayInput,
    factors: NDArray | ArrayInput,
    permutation: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cofactor_change(
    a: NDArray | ArrayInput,
    factors: NDArray | ArrayInput,
    permutation: NDArray | ArrayInput,
    direction: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Directional derivative of the cofactors of ``a``."""
@overload
def cofactor_change(
    a: jax.Array | np.ndarray,
    factors: jax.Array | np.ndarray | complex,
    permutation: jax.Array | np.ndarray | complex,
    direction: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cofactor_change(
    a: NDArray | ArrayInput,
    factors: NDArray | ArrayInput,
    permutation: NDArray | ArrayInput,
    direction: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def col2im(
    x: NDArray | ArrayInput,
    output_size: Sequence[int],
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Folds columns into images by summing overlapping windows: the adjoint of ``im2col``."""
@overload
def col2im(
    x: jax.Array | np.ndarray,
    output_size: Sequence[int],
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def col2im(
    x: NDArray | ArrayInput,
    output_size: Sequence[int],
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def concatenate(
    *xs: NDArray | ArrayLike,
    axis: int = 0,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Concatenates arrays along an existing axis."""
@overload
def concatenate(
    xs: Sequence[NDArray | ArrayLike],
    *,
    axis: int = 0,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def concatenate(
    *xs: jax.Array | np.ndarray,
    axis: int = 0,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def concatenate(
    xs: Sequence[jax.Array | np.ndarray],
    *,
    axis: int = 0,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def concatenate(
    *xs: NDArray | ArrayLike,
    axis: int = 0,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def concatenate(
    xs: Sequence[NDArray | ArrayLike],
    *,
    axis: int = 0,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def conj(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Complex conjugate of ``x``; ``x`` itself if it is real."""
@overload
def conj(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def conj(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
conjugate = conj
@overload
def constant_schedule(
    step: NDArray | ArrayInput,
    value: float,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """``value`` at every step."""
@overload
def constant_schedule(
    step: jax.Array | np.ndarray,
    value: float,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def constant_schedule(
    step: NDArray | ArrayInput,
    value: float,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def convolution(
    data: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    bias: NDArray | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    use_bias: _bool = True,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Convolution (cross-correlation) of ``data`` with ``weight`` over spatial axes, plus ``bias``."""
@overload
def convolution(
    data: jax.Array | np.ndarray,
    weight: jax.Array | np.ndarray | complex,
    bias: jax.Array | np.ndarray | complex = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    use_bias: _bool = True,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def convolution(
    data: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    bias: NDArray | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    use_bias: _bool = True,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def convolution_data_gradient(
    cotangent: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adjoint of ``convolution`` with respect to data of ``shape``: a transposed convolution."""
@overload
def convolution_data_gradient(
    cotangent: jax.Array | np.ndarray,
    weight: jax.Array | np.ndarray | complex,
    shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def convolution_data_gradient(
    cotangent: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def convolution_weight_gradient(
    data: NDArray | ArrayInput,
    cotangent: NDArray | ArrayInput,
    shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adjoint of ``convolution`` with respect to a weight of ``shape``."""
@overload
def convolution_weight_gradient(
    data: jax.Array | np.ndarray,
    cotangent: jax.Array | np.ndarray | complex,
    shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def convolution_weight_gradient(
    data: NDArray | ArrayInput,
    cotangent: NDArray | ArrayInput,
    shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def copysign(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Absolute value of ``x`` with the sign of ``y``, element-wise; zeros of ``y`` have a sign too."""
@overload
def copysign(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def copysign(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def correlation(
    data1: NDArray | ArrayInput,
    data2: NDArray | ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: _bool = True,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Correlation between patches of one feature map and displaced patches of another."""
@overload
def correlation(
    data1: jax.Array | np.ndarray,
    data2: jax.Array | np.ndarray | complex,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def correlation(
    data1: NDArray | ArrayInput,
    data2: NDArray | ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
Correlation = correlation
@overload
def correlation_gradient(
    data1: NDArray | ArrayInput,
    data2: NDArray | ArrayInput,
    cotangent: NDArray | ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: _bool = True,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Gradient of ``correlation`` with respect to both maps, given the cotangent of its result."""
@overload
def correlation_gradient(
    data1: jax.Array | np.ndarray,
    data2: jax.Array | np.ndarray | complex,
    cotangent: jax.Array | np.ndarray | complex,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def correlation_gradient(
    data1: NDArray | ArrayInput,
    data2: NDArray | ArrayInput,
    cotangent: NDArray | ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def correlation_tangent(
    data1: NDArray | ArrayInput,
    data2: NDArray | ArrayInput,
    tangent1: NDArray | ArrayInput,
    tangent2: NDArray | ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: _bool = True,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Tangent of ``correlation`` for tangents of its maps: the adjoint of ``correlation_gradient``."""
@overload
def correlation_tangent(
    data1: jax.Array | np.ndarray,
    data2: jax.Array | np.ndarray | complex,
    tangent1: jax.Array | np.ndarray | complex,
    tangent2: jax.Array | np.ndarray | complex,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def correlation_tangent(
    data1: NDArray | ArrayInput,
    data2: NDArray | ArrayInput,
    tangent1: NDArray | ArrayInput,
    tangent2: NDArray | ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cos(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Cosine of an angle in radians, element-wise."""
@overload
def cos(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def cos(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def cosh(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Hyperbolic cosine, element-wise."""
@overload
def cosh(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def cosh(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def cosine_decay_schedule(
    step: NDArray | ArrayInput,
    init_value: float,
    decay_steps: float,
    alpha: float = 0.0,
    exponent: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Half a cosine wave from ``init_value`` down to ``alpha * init_value``."""
@overload
def cosine_decay_schedule(
    step: jax.Array | np.ndarray,
    init_value: float,
    decay_steps: float,
    alpha: float = 0.0,
    exponent: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cosine_decay_schedule(
    step: NDArray | ArrayInput,
    init_value: float,
    decay_steps: float,
    alpha: float = 0.0,
    exponent: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cosine_similarity(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    axis: int = -1,
    eps: float = 1e-08,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Cosine similarity: the cosine of the angle between ``x`` and ``y`` along ``axis``."""
@overload
def cosine_similarity(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    axis: int = -1,
    eps: float = 1e-08,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cosine_similarity(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    axis: int = -1,
    eps: float = 1e-08,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def count_nonzero(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Number of nonzero entries over ``axis``, in the default integer dtype."""
@overload
def count_nonzero(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def count_nonzero(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cross(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    axis: int = -1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Cross product of vectors of length 3 along an axis."""
@overload
def cross(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cross(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def ctc_lattice(
    labels: NDArray | ArrayInput,
    logit_lengths: NDArray | ArrayInput | None = None,
    label_lengths: NDArray | ArrayInput | None = None,
    *,
    frames: int,
    classes: int,
    blank: int = 0,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The lattice of states through which alignments of ``labels`` to frames run in ``ctc_loss``."""
@overload
def ctc_lattice(
    labels: jax.Array | np.ndarray,
    logit_lengths: jax.Array | np.ndarray | complex | None = None,
    label_lengths: jax.Array | np.ndarray | complex | None = None,
    *,
    frames: int,
    classes: int,
    blank: int = 0,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]: ...
@overload
def ctc_lattice(
    labels: NDArray | ArrayInput,
    logit_lengths: NDArray | ArrayInput | None = None,
    label_lengths: NDArray | ArrayInput | None = None,
    *,
    frames: int,
    classes: int,
    blank: int = 0,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray, NDArray]: ...
@overload
def ctc_loss(
    logits: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    logit_lengths: NDArray | ArrayInput | None = None,
    label_lengths: NDArray | ArrayInput | None = None,
    blank: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Connectionist temporal classification loss: ``-log`` of the probability of each sequence."""
@overload
def ctc_loss(
    logits: jax.Array | np.ndarray,
    labels: jax.Array | np.ndarray | complex,
    logit_lengths: jax.Array | np.ndarray | complex | None = None,
    label_lengths: jax.Array | np.ndarray | complex | None = None,
    blank: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def ctc_loss(
    logits: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    logit_lengths: NDArray | ArrayInput | None = None,
    label_lengths: NDArray | ArrayInput | None = None,
    blank: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cummax(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    ties: Literal['first', 'last'] = 'last',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Cumulative maximum along ``axis``, which may be omitted if there is only one."""
@overload
def cummax(
    x: jax.Array | np.ndarray,
    axis: int | None = None,
    reverse: _bool = False,
    ties: Literal['first', 'last'] = 'last',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cummax(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    ties: Literal['first', 'last'] = 'last',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cummin(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    ties: Literal['first', 'last'] = 'last',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Cumulative minimum along ``axis``, which may be omitted if there is only one."""
@overload
def cummin(
    x: jax.Array | np.ndarray,
    axis: int | None = None,
    reverse: _bool = False,
    ties: Literal['first', 'last'] = 'last',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cummin(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    ties: Literal['first', 'last'] = 'last',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cumprod(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Cumulative product along ``axis``: ``out[i] = x[0] ... x[i]``."""
@overload
def cumprod(
    x: jax.Array | np.ndarray,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cumprod(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cumprod_gradient(
    x: NDArray | ArrayLike,
    *along: NDArray | ArrayLike,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Gradient of ``cumprod``, where the first entry of ``along`` is the cotangent of the result."""
@overload
def cumprod_gradient(
    x: NDArray | ArrayLike,
    along: Sequence[NDArray | ArrayLike],
    *,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def cumprod_gradient(
    x: jax.Array | np.ndarray,
    *along: jax.Array | np.ndarray | complex,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cumprod_gradient(
    x: jax.Array | np.ndarray,
    along: Sequence[jax.Array | np.ndarray | complex],
    *,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cumprod_gradient(
    x: NDArray | ArrayLike,
    *along: NDArray | ArrayLike,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cumprod_gradient(
    x: NDArray | ArrayLike,
    along: Sequence[NDArray | ArrayLike],
    *,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cumprod_tangent(
    x: NDArray | ArrayLike,
    *along: NDArray | ArrayLike,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Mixed derivative of ``cumprod`` along all arrays in ``along``, which have the shape of ``x``."""
@overload
def cumprod_tangent(
    x: NDArray | ArrayLike,
    along: Sequence[NDArray | ArrayLike],
    *,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def cumprod_tangent(
    x: jax.Array | np.ndarray,
    *along: jax.Array | np.ndarray | complex,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cumprod_tangent(
    x: jax.Array | np.ndarray,
    along: Sequence[jax.Array | np.ndarray | complex],
    *,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cumprod_tangent(
    x: NDArray | ArrayLike,
    *along: NDArray | ArrayLike,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cumprod_tangent(
    x: NDArray | ArrayLike,
    along: Sequence[NDArray | ArrayLike],
    *,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def cumsum(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Cumulative sum along ``axis``: ``out[i] = x[0] + ... + x[i]``."""
@overload
def cumsum(
    x: jax.Array | np.ndarray,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def cumsum(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    exclusive: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def deformable_convolution(
    data: NDArray | ArrayInput,
    offset: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    bias: NDArray | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    use_bias: _bool = True,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Deformable convolution: ``convolution`` plus ``bias`` with taps displaced by ``offset``."""
@overload
def deformable_convolution(
    data: jax.Array | np.ndarray,
    offset: jax.Array | np.ndarray | complex,
    weight: jax.Array | np.ndarray | complex,
    bias: jax.Array | np.ndarray | complex = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    use_bias: _bool = True,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def deformable_convolution(
    data: NDArray | ArrayInput,
    offset: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    bias: NDArray | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    use_bias: _bool = True,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def degrees(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Converts angles from radians to degrees: ``out = 180 x / pi``."""
@overload
def degrees(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def degrees(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
rad2deg = degrees
@overload
def depth_to_space(
    x: NDArray | ArrayInput,
    block_size: int,
    layout: Literal['NCHW', 'NHWC'] = 'NCHW',
    mode: Literal['DCR', 'CRD'] = 'DCR',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Rearranges channels of images into blocks of ``block_size * block_size`` pixels."""
@overload
def depth_to_space(
    x: jax.Array | np.ndarray,
    block_size: int,
    layout: Literal['NCHW', 'NHWC'] = 'NCHW',
    mode: Literal['DCR', 'CRD'] = 'DCR',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def depth_to_space(
    x: NDArray | ArrayInput,
    block_size: int,
    layout: Literal['NCHW', 'NHWC'] = 'NCHW',
    mode: Literal['DCR', 'CRD'] = 'DCR',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def det(a: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Determinant of a square matrix, or of each matrix of a stack."""
@overload
def det(a: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def det(a: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
linalg_det = det
@overload
def diag(x: NDArray | ArrayInput, k: int = 0, *, out: _Out, req: _Request = None) -> _Out:
    """Builds a matrix with diagonal ``x``, or extracts the diagonal of the matrix ``x``."""
@overload
def diag(
    x: jax.Array | np.ndarray,
    k: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def diag(
    x: NDArray | ArrayInput,
    k: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def diag_embed(
    x: NDArray | ArrayInput,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    lengths: Sequence[int] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Builds matrices with a given diagonal, else zero: ``out[..., i, i + offset] = x[..., i]``."""
@overload
def diag_embed(
    x: jax.Array | np.ndarray,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    lengths: Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def diag_embed(
    x: NDArray | ArrayInput,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    lengths: Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
linalg_makediag = diag_embed
@overload
def diagonal(
    x: NDArray | ArrayInput,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Extracts diagonals of matrices: ``out[..., i] = x[..., i, i + offset]``."""
@overload
def diagonal(
    x: jax.Array | np.ndarray,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def diagonal(
    x: NDArray | ArrayInput,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
linalg_extractdiag = diagonal
@overload
def digamma(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Digamma function: the derivative of ``lgamma``."""
@overload
def digamma(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def digamma(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
psi = digamma
@overload
def dirichlet_log_density(
    x: NDArray | ArrayInput,
    a: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of the Dirichlet distribution along the last axis."""
@overload
def dirichlet_log_density(
    x: jax.Array | np.ndarray,
    a: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def dirichlet_log_density(
    x: NDArray | ArrayInput,
    a: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def divide(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise quotient of two arrays: ``out = x / y``. Integers become floating point."""
@overload
def divide(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def divide(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_div = divide
div = divide
elementwise_div = divide
elemwise_div = divide
true_divide = divide
@overload
def dot(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Dot product over the last axis of ``x`` and the second-to-last (or only) axis of ``y``."""
@overload
def dot(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def dot(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def dropout(
    data: NDArray | ArrayInput,
    rate: float = 0.5,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Dropout: in training each entry is zero with probability ``rate``, else scaled up."""
@overload
def dropout(
    data: jax.Array | np.ndarray,
    rate: float = 0.5,
    *,
    key: jax.Array | np.ndarray | jax.Array = ...,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def dropout(
    data: NDArray | ArrayInput,
    rate: float = 0.5,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def dynamic_slice(
    x: NDArray | ArrayInput,
    starts: NDArray | ArrayInput,
    sizes: Sequence[int],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Extracts a slice of ``x`` with lengths ``sizes`` that begins at ``starts``."""
@overload
def dynamic_slice(
    x: jax.Array | np.ndarray,
    starts: jax.Array | np.ndarray | complex,
    sizes: Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def dynamic_slice(
    x: NDArray | ArrayInput,
    starts: NDArray | ArrayInput,
    sizes: Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def dynamic_update_slice(
    x: NDArray | ArrayInput,
    update: NDArray | ArrayInput,
    starts: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Replaces the slice of ``x`` that begins at ``starts`` by ``update``."""
@overload
def dynamic_update_slice(
    x: jax.Array | np.ndarray,
    update: jax.Array | np.ndarray | complex,
    starts: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def dynamic_update_slice(
    x: NDArray | ArrayInput,
    update: NDArray | ArrayInput,
    starts: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def eigh(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Eigenvalues and eigenvectors of Hermitian matrices: ``x @ vectors = vectors * values``."""
@overload
def eigh(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def eigh(
    x: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def eigvalsh(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Eigenvalues of a Hermitian matrix, real and in ascending order."""
@overload
def eigvalsh(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def eigvalsh(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def einsum(
    equation: str,
    *operands: NDArray | ArrayLike,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Einstein summation: sum of products over named axes, as in ``einsum("ij,jk->ik", x, y)``."""
@overload
def einsum(
    equation: str,
    operands: Sequence[NDArray | ArrayLike],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def einsum(
    *operands: NDArray | ArrayLike,
    equation: str,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def einsum(
    equation: str,
    *operands: jax.Array | np.ndarray,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def einsum(
    equation: str,
    operands: Sequence[jax.Array | np.ndarray],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def einsum(
    *operands: jax.Array | np.ndarray,
    equation: str,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def einsum(
    equation: str,
    *operands: NDArray | ArrayLike,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def einsum(
    equation: str,
    operands: Sequence[NDArray | ArrayLike],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def einsum(
    *operands: NDArray | ArrayLike,
    equation: str,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def elu(
    x: NDArray | ArrayInput,
    alpha: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Exponential linear unit: ``x`` where positive, ``alpha (exp(x) - 1)`` elsewhere."""
@overload
def elu(
    x: jax.Array | np.ndarray,
    alpha: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def elu(
    x: NDArray | ArrayInput,
    alpha: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def entr(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Terms of an entropy: ``-x log(x)``, zero at zero, and minus infinity below zero."""
@overload
def entr(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def entr(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def equal(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise truth value of ``x == y``; NaN equals nothing."""
@overload
def equal(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def equal(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_equal = equal
eq = equal
@overload
def erf(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t^2)`` from 0 to ``x``."""
@overload
def erf(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def erf(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def erfc(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Complementary error function, element-wise: ``1 - erf(x)``, accurate where that is small."""
@overload
def erfc(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def erfc(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def erfinv(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Inverse error function: the number whose ``erf`` is ``x``; infinite at -1 and 1."""
@overload
def erfinv(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def erfinv(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
erf_inv = erfinv
@overload
def exp(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Exponential of ``x``, element-wise."""
@overload
def exp(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def exp(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def exp2(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Exponential with base 2, element-wise: ``2^x``."""
@overload
def exp2(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def exp2(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def expand_dims(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Inserts axes of length 1 into ``x``; ``axis`` refers to positions in the result."""
@overload
def expand_dims(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def expand_dims(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def expm1(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Element-wise ``exp(x) - 1``, accurate near zero."""
@overload
def expm1(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def expm1(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def exponential_decay(
    step: NDArray | ArrayInput,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    transition_begin: float = 0.0,
    staircase: _bool = False,
    end_value: float | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """``init_value * decay_rate ** (step / transition_steps)``, bounded by ``end_value``."""
@overload
def exponential_decay(
    step: jax.Array | np.ndarray,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    transition_begin: float = 0.0,
    staircase: _bool = False,
    end_value: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def exponential_decay(
    step: NDArray | ArrayInput,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    transition_begin: float = 0.0,
    staircase: _bool = False,
    end_value: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def exponential_log_density(
    x: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of the exponential distribution with mean ``scale``: ``-x / scale - log(scale)``."""
@overload
def exponential_log_density(
    x: jax.Array | np.ndarray,
    scale: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def exponential_log_density(
    x: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def factored_solve(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    factors: NDArray | ArrayInput,
    permutation: NDArray | ArrayInput,
    transpose: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Solution of ``a @ out = b`` or ``a^T @ out = b`` with the LU factors that ``solve`` keeps."""
@overload
def factored_solve(
    a: jax.Array | np.ndarray,
    b: jax.Array | np.ndarray | complex,
    factors: jax.Array | np.ndarray | complex,
    permutation: jax.Array | np.ndarray | complex,
    transpose: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def factored_solve(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    factors: NDArray | ArrayInput,
    permutation: NDArray | ArrayInput,
    transpose: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def fftfreq(
    n: int,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Frequencies of the bins of ``fft`` for ``n`` samples with spacing ``d``."""
@overload
def fftfreq(
    n: int,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def fftn(
    x: NDArray | ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Discrete Fourier transform over ``axes``, by default over all axes."""
@overload
def fftn(
    x: jax.Array | np.ndarray,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def fftn(
    x: NDArray | ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def fftshift(
    x: NDArray | ArrayInput,
    axes: int | Sequence[int] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Shifts the zero-frequency bin of ``x`` to the center, position ``n // 2``."""
@overload
def fftshift(
    x: jax.Array | np.ndarray,
    axes: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def fftshift(
    x: NDArray | ArrayInput,
    axes: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def fill_diagonal(
    x: NDArray | ArrayInput,
    value: float = 0.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Fills the diagonals of square matrices with one number: ``out[i, i] = value``."""
@overload
def fill_diagonal(
    x: jax.Array | np.ndarray,
    value: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def fill_diagonal(
    x: NDArray | ArrayInput,
    value: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def flatten(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Flattens all axes of ``x`` but the first into one: the result has one row per batch entry."""
@overload
def flatten(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def flatten(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
Flatten = flatten
@overload
def flip(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Reverses the order of the entries of ``x`` along ``axis``, by default along all axes."""
@overload
def flip(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def flip(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
reverse = flip
@overload
def float8_matmul(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    x_dtype: DTypeLike = ...,
    y_dtype: DTypeLike = ...,
    d_dtype: DTypeLike | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Product of two matrices whose entries are rounded to 8-bit floats; sums are in float32."""
@overload
def float8_matmul(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    x_dtype: DTypeLike = ...,
    y_dtype: DTypeLike = ...,
    d_dtype: DTypeLike | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def float8_matmul(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    x_dtype: DTypeLike = ...,
    y_dtype: DTypeLike = ...,
    d_dtype: DTypeLike | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def float8_restore(
    x: NDArray | ArrayInput,
    rounded: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Value of ``x`` after its rounding to 8 bits, ``rounded * scale``, with the gradient of ``x``."""
@overload
def float8_restore(
    x: jax.Array | np.ndarray,
    rounded: jax.Array | np.ndarray | complex,
    scale: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def float8_restore(
    x: NDArray | ArrayInput,
    rounded: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def floor(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Floor, element-wise: the greatest integer that is at most ``x``. Integers are unchanged."""
@overload
def floor(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def floor(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def floor_divide(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise quotient rounded down: ``out = x // y``. Integers stay integers."""
@overload
def floor_divide(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def floor_divide(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_floor_divide = floor_divide
@overload
def ftrl(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    squared: NDArray | ArrayInput,
    linear: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    l1: float = 0.0,
    l2: float = 0.0,
    beta: float = 0.0,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of FTRL-Proximal, whose L1 penalty makes parameters exactly zero."""
@overload
def ftrl(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    squared: jax.Array | np.ndarray | complex,
    linear: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    l1: float = 0.0,
    l2: float = 0.0,
    beta: float = 0.0,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def ftrl(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    squared: NDArray | ArrayInput,
    linear: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    l1: float = 0.0,
    l2: float = 0.0,
    beta: float = 0.0,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def fully_connected(
    data: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    bias: NDArray | ArrayInput = ...,
    *,
    units: int,
    use_bias: _bool = True,
    flatten: _bool = True,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Fully connected (dense) layer: ``out = data @ weight.T + bias``."""
@overload
def fully_connected(
    data: jax.Array | np.ndarray,
    weight: jax.Array | np.ndarray | complex,
    bias: jax.Array | np.ndarray | complex = ...,
    *,
    units: int,
    use_bias: _bool = True,
    flatten: _bool = True,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def fully_connected(
    data: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    bias: NDArray | ArrayInput = ...,
    *,
    units: int,
    use_bias: _bool = True,
    flatten: _bool = True,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def gamma(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Gamma function: ``gamma(n + 1) = n!``, and ``gamma(x + 1) = x gamma(x)`` for every ``x``."""
@overload
def gamma(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def gamma(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def gamma_density(
    a: NDArray | ArrayInput,
    x: NDArray | ArrayInput,
    n: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Density of the gamma distribution, ``x^(a - 1) exp(-x) / Gamma(a)``, for ``x >= 0``."""
@overload
def gamma_density(
    a: jax.Array | np.ndarray,
    x: jax.Array | np.ndarray | complex,
    n: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def gamma_density(
    a: NDArray | ArrayInput,
    x: NDArray | ArrayInput,
    n: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def gamma_draw_slope(
    a: NDArray | ArrayInput,
    z: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Derivative of a gamma draw by its parameter: ``dz/da = -P_a(a, z) / f(a, z)``."""
@overload
def gamma_draw_slope(
    a: jax.Array | np.ndarray,
    z: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def gamma_draw_slope(
    a: NDArray | ArrayInput,
    z: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def gamma_log_density(
    x: NDArray | ArrayInput,
    a: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of the gamma distribution with shape ``a``, for ``x >= 0``."""
@overload
def gamma_log_density(
    x: jax.Array | np.ndarray,
    a: jax.Array | np.ndarray | complex,
    scale: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def gamma_log_density(
    x: NDArray | ArrayInput,
    a: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def gather_nd(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    axis: int = -1,
    fill_value: float | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Gathers entries or slices of ``x`` by their leading coordinates, listed in ``indices``."""
@overload
def gather_nd(
    x: jax.Array | np.ndarray,
    indices: jax.Array | np.ndarray | complex,
    axis: int = -1,
    fill_value: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def gather_nd(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    axis: int = -1,
    fill_value: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def gaussian(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Gaussian, element-wise: ``exp(-x^2)``, zero at infinity together with all its derivatives."""
@overload
def gaussian(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def gaussian(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def gelu(
    x: NDArray | ArrayInput,
    approximate: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Gaussian error linear unit: ``x Phi(x)`` with the normal distribution function ``Phi``."""
@overload
def gelu(
    x: jax.Array | np.ndarray,
    approximate: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def gelu(
    x: NDArray | ArrayInput,
    approximate: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def gemm(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    c: NDArray | ArrayInput,
    transpose_a: _bool = False,
    transpose_b: _bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Scaled matrix product plus a scaled matrix: ``alpha * op(a) @ op(b) + beta * c``."""
@overload
def gemm(
    a: jax.Array | np.ndarray,
    b: jax.Array | np.ndarray | complex,
    c: jax.Array | np.ndarray | complex,
    transpose_a: _bool = False,
    transpose_b: _bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def gemm(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    c: NDArray | ArrayInput,
    transpose_a: _bool = False,
    transpose_b: _bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
linalg_gemm = gemm
@overload
def gemm2(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    transpose_a: _bool = False,
    transpose_b: _bool = False,
    alpha: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Scaled product of two matrices, either optionally transposed: ``alpha * op(a) @ op(b)``."""
@overload
def gemm2(
    a: jax.Array | np.ndarray,
    b: jax.Array | np.ndarray | complex,
    transpose_a: _bool = False,
    transpose_b: _bool = False,
    alpha: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def gemm2(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    transpose_a: _bool = False,
    transpose_b: _bool = False,
    alpha: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
linalg_gemm2 = gemm2
@overload
def get_tensor_from_selected_rows(
    x: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The dense array whose rows ``x`` names, with zeros elsewhere; dense arrays are unchanged."""
@overload
def get_tensor_from_selected_rows(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def get_tensor_from_selected_rows(
    x: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def global_norm(*xs: NDArray | ArrayLike, out: _Out, req: _Request = None) -> _Out:
    """The Euclidean norm of all entries of all arrays: the root of the sum of their squares."""
@overload
def global_norm(xs: Sequence[NDArray | ArrayLike], *, out: _Out, req: _Request = None) -> _Out: ...
@overload
def global_norm(
    *xs: jax.Array | np.ndarray,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def global_norm(
    xs: Sequence[jax.Array | np.ndarray],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def global_norm(*xs: NDArray | ArrayLike, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def global_norm(
    xs: Sequence[NDArray | ArrayLike],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def gradient_multiplier(
    x: NDArray | ArrayInput,
    factor: float,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Returns ``x`` and multiplies its gradient by ``factor``."""
@overload
def gradient_multiplier(
    x: jax.Array | np.ndarray,
    factor: float,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def gradient_multiplier(
    x: NDArray | ArrayInput,
    factor: float,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def gradient_reversal(
    x: NDArray | ArrayInput,
    scale: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Returns ``x`` and multiplies its gradient by ``-scale``."""
@overload
def gradient_reversal(
    x: jax.Array | np.ndarray,
    scale: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def gradient_reversal(
    x: NDArray | ArrayInput,
    scale: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def greater(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise truth value of ``x > y``."""
@overload
def greater(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def greater(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_greater = greater
greater_than = greater
gt = greater
@overload
def greater_equal(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise truth value of ``x >= y``."""
@overload
def greater_equal(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def greater_equal(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_greater_equal = greater_equal
ge = greater_equal
@overload
def grid_generator(
    data: NDArray | ArrayInput,
    transform_type: Literal['affine', 'warp'] = 'affine',
    target_shape: Sequence[int] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Generates a sampling grid for ``bilinear_sampler`` from an affine map or a flow."""
@overload
def grid_generator(
    data: jax.Array | np.ndarray,
    transform_type: Literal['affine', 'warp'] = 'affine',
    target_shape: Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def grid_generator(
    data: NDArray | ArrayInput,
    transform_type: Literal['affine', 'warp'] = 'affine',
    target_shape: Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
GridGenerator = grid_generator
@overload
def group_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    beta: NDArray | ArrayInput = ...,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: _bool = True,
    use_beta: _bool = True,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Group normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per group."""
@overload
def group_norm(
    data: jax.Array | np.ndarray,
    gamma: jax.Array | np.ndarray | complex = ...,
    beta: jax.Array | np.ndarray | complex = ...,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: _bool = True,
    use_beta: _bool = True,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def group_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    beta: NDArray | ArrayInput = ...,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: _bool = True,
    use_beta: _bool = True,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def gru(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *weights: NDArray | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Gated recurrent unit (GRU) layers over whole sequences."""
@overload
def gru(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *,
    weights: Sequence[NDArray | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def gru(
    data: jax.Array | np.ndarray,
    hidden: jax.Array | np.ndarray | complex | None = None,
    lengths: jax.Array | np.ndarray | complex | None = None,
    *weights: jax.Array | np.ndarray | complex,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def gru(
    data: jax.Array | np.ndarray,
    hidden: jax.Array | np.ndarray | complex | None = None,
    lengths: jax.Array | np.ndarray | complex | None = None,
    *,
    weights: Sequence[jax.Array | np.ndarray | complex],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def gru(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *weights: NDArray | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def gru(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *,
    weights: Sequence[NDArray | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def hard_sigmoid(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Piecewise linear sigmoid, element-wise: ``min(max(x / 6 + 1/2, 0), 1)``."""
@overload
def hard_sigmoid(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def hard_sigmoid(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
hardsigmoid = hard_sigmoid
@overload
def hard_swish(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Piecewise quadratic approximation of ``silu``, element-wise: ``x hard_sigmoid(x)``."""
@overload
def hard_swish(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def hard_swish(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
hard_silu = hard_swish
hardswish = hard_swish
@overload
def hard_tanh(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Piecewise linear tanh: ``min(max(x, -1), 1)``. Its derivative at -1 and 1 is zero."""
@overload
def hard_tanh(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def hard_tanh(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
hardtanh = hard_tanh
@overload
def hfft(
    x: NDArray | ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Discrete Fourier transform of Hermitian-symmetric input, ``x[-j] = conj(x[j])``: it is real."""
@overload
def hfft(
    x: jax.Array | np.ndarray,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def hfft(
    x: NDArray | ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def hinge(
    predictions: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    margin: float = 1.0,
    p: int = 1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Hinge loss for labels -1 and 1, element-wise: ``max(0, margin - labels * predictions)^p``."""
@overload
def hinge(
    predictions: jax.Array | np.ndarray,
    labels: jax.Array | np.ndarray | complex,
    margin: float = 1.0,
    p: int = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def hinge(
    predictions: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    margin: float = 1.0,
    p: int = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def hot_labels(
    label: NDArray | ArrayInput,
    num_classes: int,
    axis: int = -1,
    *,
    dtype: DTypeLike,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """One-hot encoding of labels along the new ``axis``, with labels truncated to integers."""
@overload
def hot_labels(
    label: NDArray | ArrayInput,
    num_classes: int,
    axis: int,
    dtype: DTypeLike,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def hot_labels(
    label: jax.Array | np.ndarray,
    num_classes: int,
    axis: int = -1,
    *,
    dtype: DTypeLike,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def hot_labels(
    label: jax.Array | np.ndarray,
    num_classes: int,
    axis: int,
    dtype: DTypeLike,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def hot_labels(
    label: NDArray | ArrayInput,
    num_classes: int,
    axis: int = -1,
    *,
    dtype: DTypeLike,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def hot_labels(
    label: NDArray | ArrayInput,
    num_classes: int,
    axis: int,
    dtype: DTypeLike,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def huber(
    predictions: NDArray | ArrayInput,
    targets: NDArray | ArrayInput,
    delta: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Huber loss, element-wise: squared error near zero and absolute error far away."""
@overload
def huber(
    predictions: jax.Array | np.ndarray,
    targets: jax.Array | np.ndarray | complex,
    delta: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def huber(
    predictions: NDArray | ArrayInput,
    targets: NDArray | ArrayInput,
    delta: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
huber_loss = huber
@overload
def hypot(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Length of the hypotenuse, element-wise: ``sqrt(x^2 + y^2)``, computed without overflow."""
@overload
def hypot(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def hypot(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_hypot = hypot
@overload
def identity(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Identity: ``out = x``."""
@overload
def identity(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def identity(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
assign = identity
clone = identity
positive = identity
@overload
def ifft(
    x: NDArray | ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Inverse of ``fft`` along ``axis``: ``out[j] = sum(x[k] * exp(2 pi i j k / n)) / n``."""
@overload
def ifft(
    x: jax.Array | np.ndarray,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def ifft(
    x: NDArray | ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def ifftn(
    x: NDArray | ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Inverse of ``fftn``: over one axis ``out[j] = sum(x[k] * exp(2 pi i j k / n)) / n``."""
@overload
def ifftn(
    x: jax.Array | np.ndarray,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def ifftn(
    x: NDArray | ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def ifftshift(
    x: NDArray | ArrayInput,
    axes: int | Sequence[int] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Inverse of ``fftshift``: shifts the center entry to the front."""
@overload
def ifftshift(
    x: jax.Array | np.ndarray,
    axes: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def ifftshift(
    x: NDArray | ArrayInput,
    axes: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def ihfft(
    x: NDArray | ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Inverse of ``hfft``: the first ``n // 2 + 1`` numbers of the inverse transform of ``x``."""
@overload
def ihfft(
    x: jax.Array | np.ndarray,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def ihfft(
    x: NDArray | ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def im2col(
    x: NDArray | ArrayInput,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Unfolds images into columns: the entries of a sliding window at each of its positions."""
@overload
def im2col(
    x: jax.Array | np.ndarray,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def im2col(
    x: NDArray | ArrayInput,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def imag(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Imaginary part of ``x``; zero if ``x`` is real."""
@overload
def imag(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def imag(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def incomplete_gamma(
    a: NDArray | ArrayInput,
    x: NDArray | ArrayInput,
    n: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Regularized lower incomplete gamma function ``P(a, x)``, or its ``n``-th derivative by ``a``."""
@overload
def incomplete_gamma(
    a: jax.Array | np.ndarray,
    x: jax.Array | np.ndarray | complex,
    n: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def incomplete_gamma(
    a: NDArray | ArrayInput,
    x: NDArray | ArrayInput,
    n: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
gammainc = incomplete_gamma
igamma = incomplete_gamma
@overload
def incomplete_gamma_ratio(
    a: NDArray | ArrayInput,
    log_x: NDArray | ArrayInput,
    n: int = 1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Ratio ``P_n(a, x) / (x f(a, x))`` of the ``n``-th derivative by ``a`` to that by ``log x``."""
@overload
def incomplete_gamma_ratio(
    a: jax.Array | np.ndarray,
    log_x: jax.Array | np.ndarray | complex,
    n: int = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def incomplete_gamma_ratio(
    a: NDArray | ArrayInput,
    log_x: NDArray | ArrayInput,
    n: int = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def index_add(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    updates: NDArray | ArrayInput,
    axis: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adds ``updates`` to the entries ``indices`` of ``x`` along ``axis``."""
@overload
def index_add(
    x: jax.Array | np.ndarray,
    indices: jax.Array | np.ndarray | complex,
    updates: jax.Array | np.ndarray | complex,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def index_add(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    updates: NDArray | ArrayInput,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def index_update(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    updates: NDArray | ArrayInput,
    axis: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Replaces the entries ``indices`` of ``x`` along ``axis`` by ``updates``."""
@overload
def index_update(
    x: jax.Array | np.ndarray,
    indices: jax.Array | np.ndarray | complex,
    updates: jax.Array | np.ndarray | complex,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def index_update(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    updates: NDArray | ArrayInput,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def instance_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    beta: NDArray | ArrayInput = ...,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: _bool = True,
    use_beta: _bool = True,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Instance normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per channel."""
@overload
def instance_norm(
    data: jax.Array | np.ndarray,
    gamma: jax.Array | np.ndarray | complex = ...,
    beta: jax.Array | np.ndarray | complex = ...,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: _bool = True,
    use_beta: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def instance_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    beta: NDArray | ArrayInput = ...,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: _bool = True,
    use_beta: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def integer_power(
    x: NDArray | ArrayInput,
    exponent: int,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Power with a fixed integer exponent, element-wise, by repeated multiplication."""
@overload
def integer_power(
    x: jax.Array | np.ndarray,
    exponent: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def integer_power(
    x: NDArray | ArrayInput,
    exponent: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def inv(a: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Inverse of a square matrix, or of each matrix of a stack: ``a @ out`` is the identity."""
@overload
def inv(a: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def inv(a: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
inverse = inv
linalg_inverse = inv
@overload
def inverse_time_decay(
    step: NDArray | ArrayInput,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """``init_value / (1 + decay_rate * step / transition_steps)``."""
@overload
def inverse_time_decay(
    step: jax.Array | np.ndarray,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def inverse_time_decay(
    step: NDArray | ArrayInput,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def irfft(
    x: NDArray | ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Inverse of ``rfft``: the ``n`` real numbers whose first bins are ``x``."""
@overload
def irfft(
    x: jax.Array | np.ndarray,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def irfft(
    x: NDArray | ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def irfftn(
    x: NDArray | ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Inverse of ``rfftn``: the real numbers whose first bins are ``x``."""
@overload
def irfftn(
    x: jax.Array | np.ndarray,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def irfftn(
    x: NDArray | ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def isfinite(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Tests whether each entry is finite: neither infinite nor NaN."""
@overload
def isfinite(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def isfinite(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
is_finite = isfinite
@overload
def isinf(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Tests each entry for positive or negative infinity."""
@overload
def isinf(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def isinf(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def isnan(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Tests each entry for NaN."""
@overload
def isnan(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def isnan(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def jax_function(
    *operands: NDArray | ArrayLike,
    function: Any,
    n_out: int = 1,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Applies a function of JAX as a whole; JAX differentiates it."""
@overload
def jax_function(
    operands: Sequence[NDArray | ArrayLike],
    *,
    function: Any,
    n_out: int = 1,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def jax_function(
    *operands: NDArray | ArrayLike,
    function: Any,
    n_out: int = 1,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def jax_function(
    operands: Sequence[NDArray | ArrayLike],
    *,
    function: Any,
    n_out: int = 1,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def join_selected_rows(*xs: NDArray | ArrayLike, out: _Out, req: _Request = None) -> _Out:
    """Concatenates ``xs`` along the first axis; the result is row-sparse if all of them are."""
@overload
def join_selected_rows(
    xs: Sequence[NDArray | ArrayLike],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def join_selected_rows(
    *xs: jax.Array | np.ndarray,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def join_selected_rows(
    xs: Sequence[jax.Array | np.ndarray],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def join_selected_rows(
    *xs: NDArray | ArrayLike,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def join_selected_rows(
    xs: Sequence[NDArray | ArrayLike],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def keep(
    x: NDArray | ArrayLike,
    *others: NDArray | ArrayLike,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Returns ``x`` and keeps ``others`` reachable in the graph."""
@overload
def keep(
    x: NDArray | ArrayLike,
    others: Sequence[NDArray | ArrayLike],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def keep(
    x: jax.Array | np.ndarray,
    *others: jax.Array | np.ndarray | complex,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def keep(
    x: jax.Array | np.ndarray,
    others: Sequence[jax.Array | np.ndarray | complex],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def keep(
    x: NDArray | ArrayLike,
    *others: NDArray | ArrayLike,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def keep(
    x: NDArray | ArrayLike,
    others: Sequence[NDArray | ArrayLike],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def khatri_rao(*xs: NDArray | ArrayLike, out: _Out, req: _Request = None) -> _Out:
    """Column-wise Kronecker product: ``out[:, j] = kron(x0[:, j], x1[:, j], ...)``."""
@overload
def khatri_rao(xs: Sequence[NDArray | ArrayLike], *, out: _Out, req: _Request = None) -> _Out: ...
@overload
def khatri_rao(
    *xs: jax.Array | np.ndarray,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def khatri_rao(
    xs: Sequence[jax.Array | np.ndarray],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def khatri_rao(*xs: NDArray | ArrayLike, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def khatri_rao(
    xs: Sequence[NDArray | ArrayLike],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def kl_divergence(
    log_predictions: NDArray | ArrayInput,
    targets: NDArray | ArrayInput,
    axis: int = -1,
    log_target: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Kullback-Leibler divergence for each example: ``sum(p * (log(p) - log_predictions))``."""
@overload
def kl_divergence(
    log_predictions: jax.Array | np.ndarray,
    targets: jax.Array | np.ndarray | complex,
    axis: int = -1,
    log_target: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def kl_divergence(
    log_predictions: NDArray | ArrayInput,
    targets: NDArray | ArrayInput,
    axis: int = -1,
    log_target: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def kron(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Kronecker product: each entry of ``x`` times all of ``y``, arranged in blocks."""
@overload
def kron(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def kron(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def l1_loss(
    predictions: NDArray | ArrayInput,
    targets: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Absolute error, element-wise: ``abs(predictions - targets)``; its derivative at zero is zero."""
@overload
def l1_loss(
    predictions: jax.Array | np.ndarray,
    targets: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def l1_loss(
    predictions: NDArray | ArrayInput,
    targets: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
l1 = l1_loss
@overload
def l2_normalize(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-10,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Normalizes vectors along ``axis`` to length one: ``x / sqrt(sum(|x|^2) + eps)``."""
@overload
def l2_normalize(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-10,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def l2_normalize(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-10,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def lamb(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    moment1: NDArray | ArrayInput,
    moment2: NDArray | ArrayInput,
    step: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    weight_decay: float = 0.0,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-06,
    eps_root: float = 0.0,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of LAMB: an AdamW step scaled by the norm of the parameter."""
@overload
def lamb(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    moment1: jax.Array | np.ndarray | complex,
    moment2: jax.Array | np.ndarray | complex,
    step: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    weight_decay: float = 0.0,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-06,
    eps_root: float = 0.0,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def lamb(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    moment1: NDArray | ArrayInput,
    moment2: NDArray | ArrayInput,
    step: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    weight_decay: float = 0.0,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-06,
    eps_root: float = 0.0,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def laplace_log_density(
    x: NDArray | ArrayInput,
    loc: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of the Laplace distribution: ``-|x - loc| / scale - log(2 scale)``."""
@overload
def laplace_log_density(
    x: jax.Array | np.ndarray,
    loc: jax.Array | np.ndarray | complex,
    scale: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def laplace_log_density(
    x: NDArray | ArrayInput,
    loc: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def lax_primitive(
    *operands: NDArray | ArrayLike,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Applies the primitive of JAX called ``primitive``; JAX differentiates it."""
@overload
def lax_primitive(
    operands: Sequence[NDArray | ArrayLike],
    *,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def lax_primitive(
    *operands: NDArray | ArrayLike,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def lax_primitive(
    operands: Sequence[NDArray | ArrayLike],
    *,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def layer_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    beta: NDArray | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-05,
    use_gamma: _bool = True,
    use_beta: _bool = True,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Layer normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` over ``axis``."""
@overload
def layer_norm(
    data: jax.Array | np.ndarray,
    gamma: jax.Array | np.ndarray | complex = ...,
    beta: jax.Array | np.ndarray | complex = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-05,
    use_gamma: _bool = True,
    use_beta: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def layer_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    beta: NDArray | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-05,
    use_gamma: _bool = True,
    use_beta: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
LayerNorm = layer_norm
@overload
def leaky_relu(
    x: NDArray | ArrayInput,
    slope: float = 0.01,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Leaky rectified linear unit: ``x`` where positive, ``slope x`` elsewhere."""
@overload
def leaky_relu(
    x: jax.Array | np.ndarray,
    slope: float = 0.01,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def leaky_relu(
    x: NDArray | ArrayInput,
    slope: float = 0.01,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def length_mask(
    length: NDArray | ArrayInput,
    size: int,
    axis: int = -1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A mask of positions before each end: a new ``axis`` of ``size`` entries, one row per length."""
@overload
def length_mask(
    length: jax.Array | np.ndarray,
    size: int,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def length_mask(
    length: NDArray | ArrayInput,
    size: int,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def lerp(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Linear interpolation from ``x`` to ``y``: ``x + weight (y - x)``."""
@overload
def lerp(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    weight: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def lerp(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def less(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise truth value of ``x < y``."""
@overload
def less(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def less(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_lesser = less
less_than = less
lt = less
@overload
def less_equal(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise truth value of ``x <= y``."""
@overload
def less_equal(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def less_equal(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_lesser_equal = less_equal
le = less_equal
@overload
def let_through(
    x: NDArray | ArrayInput,
    condition: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """``x`` if ``condition`` holds, else zeros; for rows, an array that names no rows."""
@overload
def let_through(
    x: jax.Array | np.ndarray,
    condition: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def let_through(
    x: NDArray | ArrayInput,
    condition: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def lgamma(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ..."""
@overload
def lgamma(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def lgamma(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
gammaln = lgamma
@overload
def linear_cross_entropy(
    hidden: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    bias: NDArray | ArrayInput | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Softmax cross-entropy of the scores ``hidden @ weight^T + bias``, which are not stored."""
@overload
def linear_cross_entropy(
    hidden: jax.Array | np.ndarray,
    weight: jax.Array | np.ndarray | complex,
    labels: jax.Array | np.ndarray | complex,
    bias: jax.Array | np.ndarray | complex | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def linear_cross_entropy(
    hidden: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    bias: NDArray | ArrayInput | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def linear_cross_entropy_and_gradient(
    hidden: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    of_softmax: NDArray | ArrayInput,
    of_label: NDArray | ArrayInput,
    of_all: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    of_bias: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The results of ``linear_cross_entropy`` and of its gradient, with each score computed once."""
@overload
def linear_cross_entropy_and_gradient(
    hidden: jax.Array | np.ndarray,
    weight: jax.Array | np.ndarray | complex,
    labels: jax.Array | np.ndarray | complex,
    of_softmax: jax.Array | np.ndarray | complex,
    of_label: jax.Array | np.ndarray | complex,
    of_all: jax.Array | np.ndarray | complex | None = None,
    bias: jax.Array | np.ndarray | complex | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    of_bias: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def linear_cross_entropy_and_gradient(
    hidden: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    of_softmax: NDArray | ArrayInput,
    of_label: NDArray | ArrayInput,
    of_all: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    of_bias: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def linear_cross_entropy_gradient(
    hidden: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    logsumexp: NDArray | ArrayInput,
    of_softmax: NDArray | ArrayInput,
    of_label: NDArray | ArrayInput,
    of_all: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    soft_cap: float | None = None,
    of_bias: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Gradients of functions of linear scores ``y`` with respect to hidden, weight and bias."""
@overload
def linear_cross_entropy_gradient(
    hidden: jax.Array | np.ndarray,
    weight: jax.Array | np.ndarray | complex,
    labels: jax.Array | np.ndarray | complex,
    logsumexp: jax.Array | np.ndarray | complex,
    of_softmax: jax.Array | np.ndarray | complex,
    of_label: jax.Array | np.ndarray | complex,
    of_all: jax.Array | np.ndarray | complex | None = None,
    bias: jax.Array | np.ndarray | complex | None = None,
    soft_cap: float | None = None,
    of_bias: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def linear_cross_entropy_gradient(
    hidden: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    logsumexp: NDArray | ArrayInput,
    of_softmax: NDArray | ArrayInput,
    of_label: NDArray | ArrayInput,
    of_all: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    soft_cap: float | None = None,
    of_bias: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def linear_cross_entropy_tangent(
    hidden: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    logsumexp: NDArray | ArrayInput,
    hidden_tangent: NDArray | ArrayInput | None = None,
    weight_tangent: NDArray | ArrayInput | None = None,
    bias_tangent: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    soft_cap: float | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Sums of the tangents of linear scores: the transpose of the gradient of cross-entropy."""
@overload
def linear_cross_entropy_tangent(
    hidden: jax.Array | np.ndarray,
    weight: jax.Array | np.ndarray | complex,
    labels: jax.Array | np.ndarray | complex,
    logsumexp: jax.Array | np.ndarray | complex,
    hidden_tangent: jax.Array | np.ndarray | complex | None = None,
    weight_tangent: jax.Array | np.ndarray | complex | None = None,
    bias_tangent: jax.Array | np.ndarray | complex | None = None,
    bias: jax.Array | np.ndarray | complex | None = None,
    soft_cap: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def linear_cross_entropy_tangent(
    hidden: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    logsumexp: NDArray | ArrayInput,
    hidden_tangent: NDArray | ArrayInput | None = None,
    weight_tangent: NDArray | ArrayInput | None = None,
    bias_tangent: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    soft_cap: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def linear_recurrence(
    weight: NDArray | ArrayInput,
    slopes: NDArray | ArrayInput,
    decay: NDArray | ArrayInput | None = None,
    carry: NDArray | ArrayInput | None = None,
    projection: NDArray | ArrayInput | None = None,
    to_gates: NDArray | ArrayInput | None = None,
    to_cell: NDArray | ArrayInput | None = None,
    to_out: NDArray | ArrayInput | None = None,
    reverse: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Linear recurrence over time that is the tangent of a recurrent layer."""
@overload
def linear_recurrence(
    weight: jax.Array | np.ndarray,
    slopes: jax.Array | np.ndarray | complex,
    decay: jax.Array | np.ndarray | complex | None = None,
    carry: jax.Array | np.ndarray | complex | None = None,
    projection: jax.Array | np.ndarray | complex | None = None,
    to_gates: jax.Array | np.ndarray | complex | None = None,
    to_cell: jax.Array | np.ndarray | complex | None = None,
    to_out: jax.Array | np.ndarray | complex | None = None,
    reverse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def linear_recurrence(
    weight: NDArray | ArrayInput,
    slopes: NDArray | ArrayInput,
    decay: NDArray | ArrayInput | None = None,
    carry: NDArray | ArrayInput | None = None,
    projection: NDArray | ArrayInput | None = None,
    to_gates: NDArray | ArrayInput | None = None,
    to_cell: NDArray | ArrayInput | None = None,
    to_out: NDArray | ArrayInput | None = None,
    reverse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def linear_recurrence_adjoint(
    weight: NDArray | ArrayInput,
    slopes: NDArray | ArrayInput,
    decay: NDArray | ArrayInput | None = None,
    carry: NDArray | ArrayInput | None = None,
    projection: NDArray | ArrayInput | None = None,
    to_gates: NDArray | ArrayInput | None = None,
    to_cell: NDArray | ArrayInput | None = None,
    to_out: NDArray | ArrayInput | None = None,
    reverse: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adjoint of ``linear_recurrence``: the transposed steps from the last one to the first."""
@overload
def linear_recurrence_adjoint(
    weight: jax.Array | np.ndarray,
    slopes: jax.Array | np.ndarray | complex,
    decay: jax.Array | np.ndarray | complex | None = None,
    carry: jax.Array | np.ndarray | complex | None = None,
    projection: jax.Array | np.ndarray | complex | None = None,
    to_gates: jax.Array | np.ndarray | complex | None = None,
    to_cell: jax.Array | np.ndarray | complex | None = None,
    to_out: jax.Array | np.ndarray | complex | None = None,
    reverse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def linear_recurrence_adjoint(
    weight: NDArray | ArrayInput,
    slopes: NDArray | ArrayInput,
    decay: NDArray | ArrayInput | None = None,
    carry: NDArray | ArrayInput | None = None,
    projection: NDArray | ArrayInput | None = None,
    to_gates: NDArray | ArrayInput | None = None,
    to_cell: NDArray | ArrayInput | None = None,
    to_out: NDArray | ArrayInput | None = None,
    reverse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def linear_regression_output(
    data: NDArray | ArrayInput,
    label: NDArray | ArrayInput,
    grad_scale: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Returns ``data``; its gradient is that of a squared error."""
@overload
def linear_regression_output(
    data: jax.Array | np.ndarray,
    label: jax.Array | np.ndarray | complex,
    grad_scale: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def linear_regression_output(
    data: NDArray | ArrayInput,
    label: NDArray | ArrayInput,
    grad_scale: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
LinearRegressionOutput = linear_regression_output
@overload
def linear_scan(
    x: NDArray | ArrayInput,
    decay: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """First-order linear recurrence along ``axis``: ``out[i] = decay[i] out[i - 1] + x[i]``."""
@overload
def linear_scan(
    x: jax.Array | np.ndarray,
    decay: jax.Array | np.ndarray | complex,
    axis: int | None = None,
    reverse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def linear_scan(
    x: NDArray | ArrayInput,
    decay: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def linear_solve(
    *operands: NDArray | ArrayLike,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Solves ``matvec(c, x) = b`` for ``x`` by ``solve``, whatever its steps are."""
@overload
def linear_solve(
    operands: Sequence[NDArray | ArrayLike],
    *,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def linear_solve(
    *operands: NDArray | ArrayLike,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def linear_solve(
    operands: Sequence[NDArray | ArrayLike],
    *,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def linear_warmup(
    learning_rate: NDArray | ArrayInput,
    step: NDArray | ArrayInput,
    warmup_steps: float,
    start_value: float,
    end_value: float,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Linear warmup from ``start_value`` to ``end_value`` before any schedule."""
@overload
def linear_warmup(
    learning_rate: jax.Array | np.ndarray,
    step: jax.Array | np.ndarray | complex,
    warmup_steps: float,
    start_value: float,
    end_value: float,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def linear_warmup(
    learning_rate: NDArray | ArrayInput,
    step: NDArray | ArrayInput,
    warmup_steps: float,
    start_value: float,
    end_value: float,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def local_response_norm(
    data: NDArray | ArrayInput,
    nsize: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    knorm: float = 2.0,
    axis: int = 1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Local response normalization: ``data / (knorm + alpha / nsize * s)^beta``."""
@overload
def local_response_norm(
    data: jax.Array | np.ndarray,
    nsize: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    knorm: float = 2.0,
    axis: int = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def local_response_norm(
    data: NDArray | ArrayInput,
    nsize: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    knorm: float = 2.0,
    axis: int = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
LRN = local_response_norm
@overload
def log(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Natural logarithm, element-wise; minus infinity at zero, NaN for negative numbers."""
@overload
def log(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def log(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def log10(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Base-10 logarithm, element-wise; minus infinity at zero, NaN for negative numbers."""
@overload
def log10(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def log10(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def log1p(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Element-wise ``log(1 + x)``, accurate near zero."""
@overload
def log1p(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def log1p(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def log2(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Base-2 logarithm, element-wise; minus infinity at zero, NaN for negative numbers."""
@overload
def log2(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def log2(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def log_ndtr(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Logarithm of ``ndtr``, computed without underflow: about ``-x^2 / 2`` far below zero."""
@overload
def log_ndtr(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def log_ndtr(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def log_sigmoid(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Logarithm of the sigmoid, element-wise: ``log(sigmoid(x))``, computed without underflow."""
@overload
def log_sigmoid(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def log_sigmoid(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
logsigmoid = log_sigmoid
@overload
def log_softmax(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log-softmax: ``log(softmax(x / temperature))`` along ``axis``, without underflow."""
@overload
def log_softmax(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def log_softmax(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def log_softmax_with_length(
    x: NDArray | ArrayInput,
    length: NDArray | ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Logarithm of ``softmax_with_length(x, length)``, accurate where that underflows."""
@overload
def log_softmax_with_length(
    x: jax.Array | np.ndarray,
    length: jax.Array | np.ndarray | complex,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def log_softmax_with_length(
    x: NDArray | ArrayInput,
    length: NDArray | ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def logaddexp(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Logarithm of the sum of exponentials: ``log(exp(x) + exp(y))``, computed without overflow."""
@overload
def logaddexp(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def logaddexp(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def logaddexp2(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Base-2 logarithm of a sum of powers: ``log2(2^x + 2^y)``, computed without overflow."""
@overload
def logaddexp2(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def logaddexp2(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def logcumsumexp(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Cumulative log-sum-exp along ``axis``: ``log(exp(x[0]) + ... + exp(x[i]))``. No overflow."""
@overload
def logcumsumexp(
    x: jax.Array | np.ndarray,
    axis: int | None = None,
    reverse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def logcumsumexp(
    x: NDArray | ArrayInput,
    axis: int | None = None,
    reverse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
cumlogsumexp = logcumsumexp
@overload
def logical_and(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise logical and of ``x`` and ``y``; any nonzero number counts as true."""
@overload
def logical_and(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def logical_and(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_logical_and = logical_and
@overload
def logical_not(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Element-wise logical not of ``x``; any nonzero number counts as true."""
@overload
def logical_not(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def logical_not(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def logical_or(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise logical or of ``x`` and ``y``; any nonzero number counts as true."""
@overload
def logical_or(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def logical_or(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_logical_or = logical_or
@overload
def logical_xor(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise logical exclusive or of ``x`` and ``y``; any nonzero number counts as true."""
@overload
def logical_xor(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def logical_xor(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_logical_xor = logical_xor
@overload
def logistic_regression_output(
    data: NDArray | ArrayInput,
    label: NDArray | ArrayInput,
    grad_scale: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Sigmoid of ``data`` with the gradient of the cross-entropy."""
@overload
def logistic_regression_output(
    data: jax.Array | np.ndarray,
    label: jax.Array | np.ndarray | complex,
    grad_scale: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def logistic_regression_output(
    data: NDArray | ArrayInput,
    label: NDArray | ArrayInput,
    grad_scale: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
LogisticRegressionOutput = logistic_regression_output
@overload
def logit(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Log-odds, the inverse of ``sigmoid``: ``log(x / (1 - x))``, infinite at 0 and 1."""
@overload
def logit(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def logit(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def logsumexp(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Logarithm of the sum of exponentials over ``axis``, by default over all axes."""
@overload
def logsumexp(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def logsumexp(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def lookup_table(
    table: NDArray | ArrayInput,
    ids: NDArray | ArrayInput,
    padding_idx: int | None = None,
    sparse: _bool = False,
    rows: int | None = None,
    width: int | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Rows ``ids`` of ``table``: the embedding of each id."""
@overload
def lookup_table(
    table: jax.Array | np.ndarray,
    ids: jax.Array | np.ndarray | complex,
    padding_idx: int | None = None,
    sparse: _bool = False,
    rows: int | None = None,
    width: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def lookup_table(
    table: NDArray | ArrayInput,
    ids: NDArray | ArrayInput,
    padding_idx: int | None = None,
    sparse: _bool = False,
    rows: int | None = None,
    width: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
embedding = lookup_table
@overload
def lp_pooling(
    data: NDArray | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    p_value: float = 2.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Power-average pooling: ``sum(|x|^p)^(1/p)`` of each window, with ``p = p_value``."""
@overload
def lp_pooling(
    data: jax.Array | np.ndarray,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    p_value: float = 2.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def lp_pooling(
    data: NDArray | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    p_value: float = 2.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def lq(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """LQ decomposition ``x = lower @ q`` with ``q @ q^H`` the identity and ``lower`` triangular."""
@overload
def lq(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def lq(
    x: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
gelqf = lq
linalg_gelqf = lq
@overload
def lstm(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    cell: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *weights: NDArray | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Long short-term memory (LSTM) layers over whole sequences."""
@overload
def lstm(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    cell: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *,
    weights: Sequence[NDArray | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def lstm(
    data: jax.Array | np.ndarray,
    hidden: jax.Array | np.ndarray | complex | None = None,
    cell: jax.Array | np.ndarray | complex | None = None,
    lengths: jax.Array | np.ndarray | complex | None = None,
    *weights: jax.Array | np.ndarray | complex,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def lstm(
    data: jax.Array | np.ndarray,
    hidden: jax.Array | np.ndarray | complex | None = None,
    cell: jax.Array | np.ndarray | complex | None = None,
    lengths: jax.Array | np.ndarray | complex | None = None,
    *,
    weights: Sequence[jax.Array | np.ndarray | complex],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def lstm(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    cell: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *weights: NDArray | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def lstm(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    cell: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *,
    weights: Sequence[NDArray | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def mae_regression_output(
    data: NDArray | ArrayInput,
    label: NDArray | ArrayInput,
    grad_scale: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Returns ``data``; its gradient is that of an absolute error."""
@overload
def mae_regression_output(
    data: jax.Array | np.ndarray,
    label: jax.Array | np.ndarray | complex,
    grad_scale: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def mae_regression_output(
    data: NDArray | ArrayInput,
    label: NDArray | ArrayInput,
    grad_scale: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
MAERegressionOutput = mae_regression_output
@overload
def make_loss(
    data: NDArray | ArrayInput,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Literal['null', 'batch', 'valid'] = 'null',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Returns ``data`` as a loss: its gradient is ``grad_scale``, whatever the cotangent is."""
@overload
def make_loss(
    data: jax.Array | np.ndarray,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Literal['null', 'batch', 'valid'] = 'null',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def make_loss(
    data: NDArray | ArrayInput,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Literal['null', 'batch', 'valid'] = 'null',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
MakeLoss = make_loss
@overload
def masked_log_softmax(
    x: NDArray | ArrayInput,
    mask: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Logarithm of ``masked_softmax(x, mask)``, accurate where that underflows."""
@overload
def masked_log_softmax(
    x: jax.Array | np.ndarray,
    mask: jax.Array | np.ndarray | complex,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def masked_log_softmax(
    x: NDArray | ArrayInput,
    mask: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def masked_softmax(
    x: NDArray | ArrayInput,
    mask: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Softmax of ``x / temperature`` over the entries along ``axis`` where ``mask`` is true."""
@overload
def masked_softmax(
    x: jax.Array | np.ndarray,
    mask: jax.Array | np.ndarray | complex,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def masked_softmax(
    x: NDArray | ArrayInput,
    mask: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def masked_softmin(
    x: NDArray | ArrayInput,
    mask: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Softmin over the entries where ``mask`` is true: ``masked_softmax(-x, mask)``."""
@overload
def masked_softmin(
    x: jax.Array | np.ndarray,
    mask: jax.Array | np.ndarray | complex,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def masked_softmin(
    x: NDArray | ArrayInput,
    mask: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def matmul(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Matrix product: ``out[..., i, j] = sum over k of x[..., i, k] * y[..., k, j]``."""
@overload
def matmul(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def matmul(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
batch_matmul = matmul
mm = matmul
mv = matmul
@overload
def matrix_power(a: NDArray | ArrayInput, n: int, *, out: _Out, req: _Request = None) -> _Out:
    """Integer power of a square matrix: ``out = a @ a @ ... @ a`` with ``n`` factors."""
@overload
def matrix_power(
    a: jax.Array | np.ndarray,
    n: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def matrix_power(
    a: NDArray | ArrayInput,
    n: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def max(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    ties: Literal['split', 'all', 'first'] = 'split',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Maximum of the entries over ``axis``, by default over all axes."""
@overload
def max(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    ties: Literal['split', 'all', 'first'] = 'split',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def max(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    ties: Literal['split', 'all', 'first'] = 'split',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
amax = max
max_axis = max
reduce_max = max
@overload
def max_pooling(
    data: NDArray | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    drops_infinite: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Max pooling: the largest entry of each window over one to three spatial axes."""
@overload
def max_pooling(
    data: jax.Array | np.ndarray,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    drops_infinite: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def max_pooling(
    data: NDArray | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    drops_infinite: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def max_pooling_gradient(
    data: NDArray | ArrayInput,
    cotangent: NDArray | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    drops_infinite: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adds ``cotangent`` at the position of the largest entry of each window of ``max_pooling``."""
@overload
def max_pooling_gradient(
    data: jax.Array | np.ndarray,
    cotangent: jax.Array | np.ndarray | complex,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    drops_infinite: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def max_pooling_gradient(
    data: NDArray | ArrayInput,
    cotangent: NDArray | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    drops_infinite: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def max_pooling_select(
    data: NDArray | ArrayInput,
    tangent: NDArray | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    drops_infinite: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Selects the entry of ``tangent`` where ``max_pooling`` of ``data`` has its maximum."""
@overload
def max_pooling_select(
    data: jax.Array | np.ndarray,
    tangent: jax.Array | np.ndarray | complex,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    drops_infinite: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def max_pooling_select(
    data: NDArray | ArrayInput,
    tangent: NDArray | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: _bool = False,
    ceil_mode: _bool = False,
    drops_infinite: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def maximum(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    ties: Literal['split', 'first', 'last'] = 'split',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise maximum of two arrays; NaN if either entry is NaN."""
@overload
def maximum(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    ties: Literal['split', 'first', 'last'] = 'split',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def maximum(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    ties: Literal['split', 'first', 'last'] = 'split',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_maximum = maximum
elementwise_max = maximum
@overload
def mean(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Arithmetic mean over ``axis``, by default over all axes; NaN if there are no entries."""
@overload
def mean(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def mean(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
reduce_mean = mean
@overload
def mean_squared_error(
    predictions: NDArray | ArrayInput,
    targets: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Mean squared error ``mean((predictions - targets)^2)`` over ``axis``, by default all axes."""
@overload
def mean_squared_error(
    predictions: jax.Array | np.ndarray,
    targets: jax.Array | np.ndarray | complex,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def mean_squared_error(
    predictions: NDArray | ArrayInput,
    targets: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
mse_loss = mean_squared_error
@overload
def merge_heads(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Joins the features of attention heads; the inverse of ``split_heads``."""
@overload
def merge_heads(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def merge_heads(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def merge_selected_rows(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """The same array with each row named once, in ascending order; dense arrays are unchanged."""
@overload
def merge_selected_rows(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def merge_selected_rows(
    x: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def min(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    ties: Literal['split', 'all', 'first'] = 'split',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Minimum of the entries over ``axis``, by default over all axes."""
@overload
def min(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    ties: Literal['split', 'all', 'first'] = 'split',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def min(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    ties: Literal['split', 'all', 'first'] = 'split',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
amin = min
min_axis = min
reduce_min = min
@overload
def minimum(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    ties: Literal['split', 'first', 'last'] = 'split',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise minimum of two arrays; NaN if either entry is NaN."""
@overload
def minimum(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    ties: Literal['split', 'first', 'last'] = 'split',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def minimum(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    ties: Literal['split', 'first', 'last'] = 'split',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_minimum = minimum
elementwise_min = minimum
@overload
def minus(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise difference of two arrays of the same shape: ``out = x - y``."""
@overload
def minus(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def minus(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def mish(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Mish, element-wise: ``x tanh(softplus(x))``."""
@overload
def mish(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def mish(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def momentum(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    velocity: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    mu: float = 0.9,
    nesterov: _bool = False,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of gradient descent with momentum (Polyak 1964) or Nesterov momentum."""
@overload
def momentum(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    velocity: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    mu: float = 0.9,
    nesterov: _bool = False,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def momentum(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    velocity: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    mu: float = 0.9,
    nesterov: _bool = False,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def moveaxis(
    x: NDArray | ArrayInput,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Moves the axes ``source`` of ``x`` to the positions ``destination``; the others keep order."""
@overload
def moveaxis(
    x: jax.Array | np.ndarray,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def moveaxis(
    x: NDArray | ArrayInput,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
movedim = moveaxis
@overload
def multiply(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise product of two arrays: ``out = x * y``."""
@overload
def multiply(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def multiply(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_mul = multiply
elementwise_mul = multiply
elemwise_mul = multiply
@overload
def nanprod(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Product over ``axis`` that ignores NaNs: a NaN counts as one."""
@overload
def nanprod(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def nanprod(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def nansum(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Sum over ``axis`` that ignores NaNs: a NaN counts as zero."""
@overload
def nansum(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def nansum(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def natural_exp_decay(
    step: NDArray | ArrayInput,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """``init_value * exp(-decay_rate * step / transition_steps)``."""
@overload
def natural_exp_decay(
    step: jax.Array | np.ndarray,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def natural_exp_decay(
    step: NDArray | ArrayInput,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def ndtr(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Distribution function of the normal distribution, accurate where it is small."""
@overload
def ndtr(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def ndtr(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def ndtri(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Quantile of the normal distribution: the number whose ``ndtr`` is ``x``."""
@overload
def ndtri(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def ndtri(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def negative(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Negation, element-wise: ``out = -x``."""
@overload
def negative(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def negative(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
neg = negative
@overload
def nll(
    log_probabilities: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    class_weights: NDArray | ArrayInput | None = None,
    axis: int = -1,
    ignore_label: int | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Negative log likelihood ``-w[c] * log_probabilities[c]`` of each example's class ``c``."""
@overload
def nll(
    log_probabilities: jax.Array | np.ndarray,
    labels: jax.Array | np.ndarray | complex,
    class_weights: jax.Array | np.ndarray | complex | None = None,
    axis: int = -1,
    ignore_label: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def nll(
    log_probabilities: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    class_weights: NDArray | ArrayInput | None = None,
    axis: int = -1,
    ignore_label: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def noam_decay(
    step: NDArray | ArrayInput,
    d_model: float,
    warmup_steps: float,
    learning_rate: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Linear warmup, then decay with the root of the steps: the schedule of the Transformer."""
@overload
def noam_decay(
    step: jax.Array | np.ndarray,
    d_model: float,
    warmup_steps: float,
    learning_rate: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def noam_decay(
    step: NDArray | ArrayInput,
    d_model: float,
    warmup_steps: float,
    learning_rate: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def nondifferentiable_call(
    *operands: NDArray | ArrayLike,
    body: Body,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Returns the outputs of ``body``, without a derivative."""
@overload
def nondifferentiable_call(
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def nondifferentiable_call(
    *operands: NDArray | ArrayLike,
    body: Body,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def nondifferentiable_call(
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def norm(
    x: NDArray | ArrayInput,
    ord: float = 2.0,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Vector norm ``sum(|x|^ord)^(1 / ord)`` of the entries over ``axis``, by default of all."""
@overload
def norm(
    x: jax.Array | np.ndarray,
    ord: float = 2.0,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def norm(
    x: NDArray | ArrayInput,
    ord: float = 2.0,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
vector_norm = norm
@overload
def normal_log_density(
    x: NDArray | ArrayInput,
    loc: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of the normal distribution with mean ``loc`` and standard deviation ``scale``."""
@overload
def normal_log_density(
    x: jax.Array | np.ndarray,
    loc: jax.Array | np.ndarray | complex,
    scale: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def normal_log_density(
    x: NDArray | ArrayInput,
    loc: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def not_equal(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise truth value of ``x != y``."""
@overload
def not_equal(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def not_equal(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_not_equal = not_equal
ne = not_equal
@overload
def one_hot(
    ids: NDArray | ArrayInput,
    num_classes: int,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """One-hot encoding: one at the position of each id along the new ``axis``, zero elsewhere."""
@overload
def one_hot(
    ids: jax.Array | np.ndarray,
    num_classes: int,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def one_hot(
    ids: NDArray | ArrayInput,
    num_classes: int,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def outer(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Outer product of two vectors: ``out[i, j] = x[i] * y[j]``."""
@overload
def outer(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def outer(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
ger = outer
@overload
def pad(
    x: NDArray | ArrayInput,
    pad_width: int | Sequence[Sequence[int]],
    mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap'] = 'constant',
    constant_value: int | float = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Pads ``x`` with ``pad_width[i] = (before, after)`` entries at the ends of axis ``i``."""
@overload
def pad(
    x: jax.Array | np.ndarray,
    pad_width: int | Sequence[Sequence[int]],
    mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap'] = 'constant',
    constant_value: int | float = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def pad(
    x: NDArray | ArrayInput,
    pad_width: int | Sequence[Sequence[int]],
    mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap'] = 'constant',
    constant_value: int | float = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def pad_slice(
    x: NDArray | ArrayInput,
    shape: Sequence[int],
    begin: Sequence[int],
    step: Sequence[int],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Writes ``x`` into zeros of ``shape``, starting at ``begin`` with strides ``step``."""
@overload
def pad_slice(
    x: jax.Array | np.ndarray,
    shape: Sequence[int],
    begin: Sequence[int],
    step: Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def pad_slice(
    x: NDArray | ArrayInput,
    shape: Sequence[int],
    begin: Sequence[int],
    step: Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def permute_dims(
    x: NDArray | ArrayInput,
    axes: Sequence[int] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Permutes the axes of ``x``, by default reversing them: axis ``axes[i]`` becomes axis ``i``."""
@overload
def permute_dims(
    x: jax.Array | np.ndarray,
    axes: Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def permute_dims(
    x: NDArray | ArrayInput,
    axes: Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
transpose = permute_dims
@overload
def pick(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    axis: int = -1,
    keepdims: _bool = False,
    mode: Literal['clip', 'wrap'] = 'clip',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Selects one entry of ``x`` along ``axis`` at each position of the other axes."""
@overload
def pick(
    x: jax.Array | np.ndarray,
    indices: jax.Array | np.ndarray | complex,
    axis: int = -1,
    keepdims: _bool = False,
    mode: Literal['clip', 'wrap'] = 'clip',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def pick(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    axis: int = -1,
    keepdims: _bool = False,
    mode: Literal['clip', 'wrap'] = 'clip',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def piecewise_decay(
    step: NDArray | ArrayInput,
    boundaries: Sequence[int],
    values: Sequence[float],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step function: ``values[i]`` from step ``boundaries[i - 1]`` to before ``boundaries[i]``."""
@overload
def piecewise_decay(
    step: jax.Array | np.ndarray,
    boundaries: Sequence[int],
    values: Sequence[float],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def piecewise_decay(
    step: NDArray | ArrayInput,
    boundaries: Sequence[int],
    values: Sequence[float],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def pinv(
    x: NDArray | ArrayInput,
    rcond: float | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Moore-Penrose pseudoinverse: the matrix of least norm with ``x @ out @ x = x``."""
@overload
def pinv(
    x: jax.Array | np.ndarray,
    rcond: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def pinv(
    x: NDArray | ArrayInput,
    rcond: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
pinverse = pinv
pseudo_inverse = pinv
@overload
def poisson_log_density(
    x: NDArray | ArrayInput,
    rate: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of the Poisson distribution: ``x log(rate) - rate - log(x!)``."""
@overload
def poisson_log_density(
    x: jax.Array | np.ndarray,
    rate: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def poisson_log_density(
    x: NDArray | ArrayInput,
    rate: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def polygamma(x: NDArray | ArrayInput, n: int, *, out: _Out, req: _Request = None) -> _Out:
    """Polygamma function: the ``n``-th derivative of ``digamma``, for ``n >= 1``."""
@overload
def polygamma(
    x: jax.Array | np.ndarray,
    n: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def polygamma(
    x: NDArray | ArrayInput,
    n: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def polynomial_schedule(
    step: NDArray | ArrayInput,
    init_value: float,
    end_value: float,
    transition_steps: float,
    power: float = 1.0,
    transition_begin: float = 0.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """From ``init_value`` to ``end_value`` in ``transition_steps``, linearly or by a power law."""
@overload
def polynomial_schedule(
    step: jax.Array | np.ndarray,
    init_value: float,
    end_value: float,
    transition_steps: float,
    power: float = 1.0,
    transition_begin: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def polynomial_schedule(
    step: NDArray | ArrayInput,
    init_value: float,
    end_value: float,
    transition_steps: float,
    power: float = 1.0,
    transition_begin: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
linear_schedule = polynomial_schedule
@overload
def position_ids(
    x: NDArray | ArrayInput,
    start: NDArray | ArrayInput | None = None,
    axis: int = 1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The number of each position of ``x`` along an axis: ``0, 1, ...``, of shape ``(length,)``."""
@overload
def position_ids(
    x: jax.Array | np.ndarray,
    start: jax.Array | np.ndarray | complex | None = None,
    axis: int = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def position_ids(
    x: NDArray | ArrayInput,
    start: NDArray | ArrayInput | None = None,
    axis: int = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def potri(
    a: NDArray | ArrayInput,
    lower: _bool = True,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Inverse of a matrix from its Cholesky factor ``a``: ``out = (a @ a^H)^-1``."""
@overload
def potri(
    a: jax.Array | np.ndarray,
    lower: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def potri(
    a: NDArray | ArrayInput,
    lower: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
linalg_potri = potri
@overload
def power(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Power, element-wise: ``out = x ** y``; NaN for a negative ``x`` and a non-integer ``y``."""
@overload
def power(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def power(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_power = power
elementwise_pow = power
integer_pow = power
@overload
def prelu(
    x: NDArray | ArrayInput,
    slope: NDArray | ArrayInput,
    axis: int = 1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Parametric ReLU: ``x`` where positive, else ``slope x``, with one slope or one per channel."""
@overload
def prelu(
    x: jax.Array | np.ndarray,
    slope: jax.Array | np.ndarray | complex,
    axis: int = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def prelu(
    x: NDArray | ArrayInput,
    slope: NDArray | ArrayInput,
    axis: int = 1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def reduce_prod(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Product over ``axis``, by default over all axes; ``keepdims`` keeps the axes with length 1."""
@overload
def reduce_prod(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def reduce_prod(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def product_of_others(
    x: NDArray | ArrayInput,
    axis: int = -1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Product of all other entries along ``axis``: ``out[i] = prod(x[j] for j != i)``."""
@overload
def product_of_others(
    x: jax.Array | np.ndarray,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def product_of_others(
    x: NDArray | ArrayInput,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def product_of_others_tangent(
    x: NDArray | ArrayLike,
    *along: NDArray | ArrayLike,
    axis: int = -1,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Mixed derivative of ``product_of_others`` along all arrays in ``along``."""
@overload
def product_of_others_tangent(
    x: NDArray | ArrayLike,
    along: Sequence[NDArray | ArrayLike],
    *,
    axis: int = -1,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def product_of_others_tangent(
    x: jax.Array | np.ndarray,
    *along: jax.Array | np.ndarray | complex,
    axis: int = -1,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def product_of_others_tangent(
    x: jax.Array | np.ndarray,
    along: Sequence[jax.Array | np.ndarray | complex],
    *,
    axis: int = -1,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def product_of_others_tangent(
    x: NDArray | ArrayLike,
    *along: NDArray | ArrayLike,
    axis: int = -1,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def product_of_others_tangent(
    x: NDArray | ArrayLike,
    along: Sequence[NDArray | ArrayLike],
    *,
    axis: int = -1,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def qr(
    x: NDArray | ArrayInput,
    mode: Literal['reduced', 'complete'] = 'reduced',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """QR decomposition ``x = q @ r`` with ``q^H @ q`` the identity and ``r`` upper triangular."""
@overload
def qr(
    x: jax.Array | np.ndarray,
    mode: Literal['reduced', 'complete'] = 'reduced',
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def qr(
    x: NDArray | ArrayInput,
    mode: Literal['reduced', 'complete'] = 'reduced',
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def radians(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Converts angles from degrees to radians: ``out = pi x / 180``."""
@overload
def radians(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def radians(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
deg2rad = radians
@overload
def random_bernoulli(
    p: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Bernoulli draws: true with probability ``p``, which defaults to 1/2."""
@overload
def random_bernoulli(
    p: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
bernoulli = random_bernoulli
@overload
def random_beta(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Beta draws: numbers between 0 and 1 with density ``x^(a - 1) (1 - x)^(b - 1) / B(a, b)``."""
@overload
def random_beta(
    a: jax.Array | np.ndarray,
    b: jax.Array | np.ndarray | complex,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array | np.ndarray | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def random_beta(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def random_categorical(
    logits: NDArray | ArrayInput,
    axis: int = -1,
    shape: int | Sequence[int] | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Categorical draws: class indices with probabilities ``softmax(logits)`` along ``axis``."""
@overload
def random_categorical(
    logits: jax.Array | np.ndarray,
    axis: int = -1,
    shape: int | Sequence[int] | None = None,
    *,
    key: jax.Array | np.ndarray | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def random_categorical(
    logits: NDArray | ArrayInput,
    axis: int = -1,
    shape: int | Sequence[int] | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
categorical = random_categorical
@overload
def random_exponential(
    scale: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Exponential draws with mean ``scale``, which defaults to 1: ``-scale log(1 - u)``."""
@overload
def random_exponential(
    scale: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def random_gamma(
    a: NDArray | ArrayInput,
    scale: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Gamma draws: ``scale z``, where ``z`` has the density ``z^(a - 1) exp(-z) / Gamma(a)``."""
@overload
def random_gamma(
    a: jax.Array | np.ndarray,
    scale: jax.Array | np.ndarray | complex | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array | np.ndarray | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def random_gamma(
    a: NDArray | ArrayInput,
    scale: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def random_integers(
    low: int,
    high: int,
    shape: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Uniform integer draws from ``low`` (inclusive) to ``high`` (exclusive)."""
@overload
def random_integers(
    low: int,
    high: int,
    shape: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
random_randint = random_integers
@overload
def random_normal(
    loc: NDArray | ArrayInput | None = None,
    scale: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Normal draws: ``loc + scale z`` with ``z`` of mean 0 and standard deviation 1."""
@overload
def random_normal(
    loc: NDArray | ArrayInput | None = None,
    scale: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
normal = random_normal
@overload
def random_permutation(
    x: NDArray | ArrayInput,
    axis: int = 0,
    inverse: _bool = False,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Permutes the slices of ``x`` along ``axis`` randomly; ``inverse`` undoes it for the same key."""
@overload
def random_permutation(
    x: jax.Array | np.ndarray,
    axis: int = 0,
    inverse: _bool = False,
    *,
    key: jax.Array | np.ndarray | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def random_permutation(
    x: NDArray | ArrayInput,
    axis: int = 0,
    inverse: _bool = False,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
permutation = random_permutation
shuffle = random_permutation
@overload
def random_poisson(
    rate: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Poisson draws: numbers of events with mean ``rate``, which defaults to 1."""
@overload
def random_poisson(
    rate: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
poisson = random_poisson
@overload
def random_truncated_normal(
    loc: NDArray | ArrayInput | None = None,
    scale: NDArray | ArrayInput | None = None,
    low: float = -2.0,
    high: float = 2.0,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Truncated normal draws: ``loc + scale z`` with ``low <= z <= high``."""
@overload
def random_truncated_normal(
    loc: NDArray | ArrayInput | None = None,
    scale: NDArray | ArrayInput | None = None,
    low: float = -2.0,
    high: float = 2.0,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
truncated_normal = random_truncated_normal
@overload
def random_uniform(
    low: NDArray | ArrayInput | None = None,
    high: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Uniform draws: ``low + (high - low) u`` with ``u`` uniform in [0, 1)."""
@overload
def random_uniform(
    low: NDArray | ArrayInput | None = None,
    high: NDArray | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
uniform = random_uniform
@overload
def rcbrt(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Reciprocal cube root, element-wise: ``1 / cbrt(x)``; infinite at zero."""
@overload
def rcbrt(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def rcbrt(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def real(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Real part of ``x``; ``x`` itself if it is real."""
@overload
def real(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def real(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def reciprocal(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Reciprocal, element-wise: ``out = 1 / x``."""
@overload
def reciprocal(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def reciprocal(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def recompute(
    *operands: NDArray | ArrayLike,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Returns the outputs of ``body``, whose gradient recomputes its residuals."""
@overload
def recompute(
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def recompute(
    *operands: NDArray | ArrayLike,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def recompute(
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def rel_entr(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Terms of a relative entropy: ``x log(x / y)`` for positive numbers."""
@overload
def rel_entr(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def rel_entr(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def relu(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Rectified linear unit, element-wise: ``max(x, 0)``. Its derivative at zero is zero."""
@overload
def relu(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def relu(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def relu6(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Rectified linear unit capped at 6: ``min(max(x, 0), 6)``. Its derivative at 0 and 6 is zero."""
@overload
def relu6(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def relu6(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def remainder(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise remainder of floor division: ``out = x % y``, with the sign of ``y``."""
@overload
def remainder(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def remainder(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_mod = remainder
elementwise_mod = remainder
floor_mod = remainder
mod = remainder
@overload
def repeat_interleave(
    x: NDArray | ArrayInput,
    repeats: int | Sequence[int],
    axis: int | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Repeats each entry of ``x`` along ``axis``; the copies of an entry are adjacent."""
@overload
def repeat_interleave(
    x: jax.Array | np.ndarray,
    repeats: int | Sequence[int],
    axis: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def repeat_interleave(
    x: NDArray | ArrayInput,
    repeats: int | Sequence[int],
    axis: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def reshape_like(
    x: NDArray | ArrayInput,
    like: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Reshapes ``x`` in row-major order to the shape of ``like``."""
@overload
def reshape_like(
    x: jax.Array | np.ndarray,
    like: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def reshape_like(
    x: NDArray | ArrayInput,
    like: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
view_as = reshape_like
@overload
def resize(
    data: NDArray | ArrayInput,
    size: int | Sequence[int],
    method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
    align_corners: _bool = False,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Resizes one to three spatial axes of ``data`` by interpolation."""
@overload
def resize(
    data: jax.Array | np.ndarray,
    size: int | Sequence[int],
    method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
    align_corners: _bool = False,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def resize(
    data: NDArray | ArrayInput,
    size: int | Sequence[int],
    method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
    align_corners: _bool = False,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def resize_gradient(
    cotangent: NDArray | ArrayInput,
    shape: Sequence[int],
    method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
    align_corners: _bool = False,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adjoint of ``resize`` for data of ``shape``: spreads each entry to those it depends on."""
@overload
def resize_gradient(
    cotangent: jax.Array | np.ndarray,
    shape: Sequence[int],
    method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
    align_corners: _bool = False,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def resize_gradient(
    cotangent: NDArray | ArrayInput,
    shape: Sequence[int],
    method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
    align_corners: _bool = False,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def rfft(
    x: NDArray | ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Discrete Fourier transform of real numbers, without the redundant conjugate bins."""
@overload
def rfft(
    x: jax.Array | np.ndarray,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def rfft(
    x: NDArray | ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def rfftfreq(
    n: int,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Frequencies of the bins of ``rfft`` for ``n`` samples with spacing ``d``."""
@overload
def rfftfreq(
    n: int,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def rfftn(
    x: NDArray | ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Discrete Fourier transform of real numbers over ``axes``, without redundant conjugate bins."""
@overload
def rfftn(
    x: jax.Array | np.ndarray,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def rfftn(
    x: NDArray | ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def rms_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-06,
    use_gamma: _bool = True,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Root mean square normalization: ``gamma * data / sqrt(mean(data^2) + eps)`` over ``axis``."""
@overload
def rms_norm(
    data: jax.Array | np.ndarray,
    gamma: jax.Array | np.ndarray | complex = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-06,
    use_gamma: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def rms_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-06,
    use_gamma: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def rmsprop(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    mean_square: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: _bool = True,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of RMSProp: each entry is scaled by the root of the moving average of its squares."""
@overload
def rmsprop(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    mean_square: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: _bool = True,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def rmsprop(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    mean_square: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: _bool = True,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def rmsprop_centered(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    mean_square: NDArray | ArrayInput,
    mean_grad: NDArray | ArrayInput,
    velocity: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    mu: float = 0.0,
    nesterov: _bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: _bool = True,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of RMSProp scaled by the standard deviation (Graves 2013), with momentum."""
@overload
def rmsprop_centered(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    mean_square: jax.Array | np.ndarray | complex,
    mean_grad: jax.Array | np.ndarray | complex,
    velocity: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    mu: float = 0.0,
    nesterov: _bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: _bool = True,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]: ...
@overload
def rmsprop_centered(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    mean_square: NDArray | ArrayInput,
    mean_grad: NDArray | ArrayInput,
    velocity: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    mu: float = 0.0,
    nesterov: _bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: _bool = True,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray, NDArray]: ...
@overload
def rmsprop_momentum(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    mean_square: NDArray | ArrayInput,
    velocity: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    mu: float = 0.9,
    nesterov: _bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: _bool = True,
    lazy: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of RMSProp with momentum: the scaled gradient of ``rmsprop`` drives a velocity."""
@overload
def rmsprop_momentum(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    mean_square: jax.Array | np.ndarray | complex,
    velocity: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    mu: float = 0.9,
    nesterov: _bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: _bool = True,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def rmsprop_momentum(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    mean_square: NDArray | ArrayInput,
    velocity: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    mu: float = 0.9,
    nesterov: _bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: _bool = True,
    lazy: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def rnn(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *weights: NDArray | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Elman recurrent layers over whole sequences."""
@overload
def rnn(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *,
    weights: Sequence[NDArray | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def rnn(
    data: jax.Array | np.ndarray,
    hidden: jax.Array | np.ndarray | complex | None = None,
    lengths: jax.Array | np.ndarray | complex | None = None,
    *weights: jax.Array | np.ndarray | complex,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def rnn(
    data: jax.Array | np.ndarray,
    hidden: jax.Array | np.ndarray | complex | None = None,
    lengths: jax.Array | np.ndarray | complex | None = None,
    *,
    weights: Sequence[jax.Array | np.ndarray | complex],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def rnn(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *weights: NDArray | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def rnn(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *,
    weights: Sequence[NDArray | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: _bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def roi_align(
    data: NDArray | ArrayInput,
    rois: NDArray | ArrayInput,
    pooled_size: Sequence[int],
    spatial_scale: float = 1.0,
    sample_ratio: int = 2,
    position_sensitive: _bool = False,
    aligned: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Region of interest alignment: the mean of bilinear samples in each bin of each region."""
@overload
def roi_align(
    data: jax.Array | np.ndarray,
    rois: jax.Array | np.ndarray | complex,
    pooled_size: Sequence[int],
    spatial_scale: float = 1.0,
    sample_ratio: int = 2,
    position_sensitive: _bool = False,
    aligned: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def roi_align(
    data: NDArray | ArrayInput,
    rois: NDArray | ArrayInput,
    pooled_size: Sequence[int],
    spatial_scale: float = 1.0,
    sample_ratio: int = 2,
    position_sensitive: _bool = False,
    aligned: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def roi_pooling(
    data: NDArray | ArrayInput,
    rois: NDArray | ArrayInput,
    pooled_size: Sequence[int],
    spatial_scale: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Region of interest pooling: the largest entry of each bin of each region."""
@overload
def roi_pooling(
    data: jax.Array | np.ndarray,
    rois: jax.Array | np.ndarray | complex,
    pooled_size: Sequence[int],
    spatial_scale: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def roi_pooling(
    data: NDArray | ArrayInput,
    rois: NDArray | ArrayInput,
    pooled_size: Sequence[int],
    spatial_scale: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
ROIPooling = roi_pooling
@overload
def roll(
    x: NDArray | ArrayInput,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Rolls ``x`` by ``shift`` places; entries that leave at one end reappear at the other."""
@overload
def roll(
    x: jax.Array | np.ndarray,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def roll(
    x: NDArray | ArrayInput,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def rotary_embedding(
    x: NDArray | ArrayInput,
    start: NDArray | ArrayInput | None = None,
    base: float = 10000.0,
    inverse: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Rotates pairs of features by angles that grow with the position."""
@overload
def rotary_embedding(
    x: jax.Array | np.ndarray,
    start: jax.Array | np.ndarray | complex | None = None,
    base: float = 10000.0,
    inverse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def rotary_embedding(
    x: NDArray | ArrayInput,
    start: NDArray | ArrayInput | None = None,
    base: float = 10000.0,
    inverse: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def round(
    x: NDArray | ArrayInput,
    decimals: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Rounds to the given number of ``decimals``, with halves to even."""
@overload
def round(
    x: jax.Array | np.ndarray,
    decimals: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def round(
    x: NDArray | ArrayInput,
    decimals: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
around = round
rint = round
@overload
def round_straight_through(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Rounds to the nearest integer, halves to even, with the gradient of the identity."""
@overload
def round_straight_through(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def round_straight_through(
    x: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
round_ste = round_straight_through
@overload
def rsqrt(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Reciprocal square root: ``1 / sqrt(x)``; infinite at zero, NaN for negative numbers."""
@overload
def rsqrt(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def rsqrt(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def scale(x: NDArray | ArrayInput, scale: float, *, out: _Out, req: _Request = None) -> _Out:
    """Product with a constant number: ``out = scale * x``."""
@overload
def scale(
    x: jax.Array | np.ndarray,
    scale: float,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def scale(
    x: NDArray | ArrayInput,
    scale: float,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def scale_paired_bins(
    x: NDArray | ArrayInput,
    n: int,
    factor: float,
    axis: int = -1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Multiplies by ``factor`` the bins of ``rfft`` that represent two bins of ``fft``."""
@overload
def scale_paired_bins(
    x: jax.Array | np.ndarray,
    n: int,
    factor: float,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def scale_paired_bins(
    x: NDArray | ArrayInput,
    n: int,
    factor: float,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def scaled_dot_product_attention(
    query: NDArray | ArrayInput,
    keys: NDArray | ArrayInput,
    values: NDArray | ArrayInput,
    mask: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    query_lengths: NDArray | ArrayInput | None = None,
    key_lengths: NDArray | ArrayInput | None = None,
    dropout_seed: NDArray | ArrayInput | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Scaled dot-product attention per head: ``softmax(scale * query @ keys^T + bias) @ values``."""
@overload
def scaled_dot_product_attention(
    query: jax.Array | np.ndarray,
    keys: jax.Array | np.ndarray | complex,
    values: jax.Array | np.ndarray | complex,
    mask: jax.Array | np.ndarray | complex | None = None,
    bias: jax.Array | np.ndarray | complex | None = None,
    query_lengths: jax.Array | np.ndarray | complex | None = None,
    key_lengths: jax.Array | np.ndarray | complex | None = None,
    dropout_seed: jax.Array | np.ndarray | complex | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def scaled_dot_product_attention(
    query: NDArray | ArrayInput,
    keys: NDArray | ArrayInput,
    values: NDArray | ArrayInput,
    mask: NDArray | ArrayInput | None = None,
    bias: NDArray | ArrayInput | None = None,
    query_lengths: NDArray | ArrayInput | None = None,
    key_lengths: NDArray | ArrayInput | None = None,
    dropout_seed: NDArray | ArrayInput | None = None,
    scale: float | None = None,
    causal: _bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def scan_prefix(
    steps: NDArray | ArrayLike,
    *operands: NDArray | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: _bool = False,
    use_key: _bool = False,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Applies ``body`` in the first ``steps`` of ``length`` steps; otherwise like ``scan``."""
@overload
def scan_prefix(
    steps: NDArray | ArrayLike,
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: _bool = False,
    use_key: _bool = False,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def scan_prefix(
    steps: NDArray | ArrayLike,
    operands: NDArray | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    length: int,
    reverse: _bool = False,
    use_key: _bool = False,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def scan_prefix(
    steps: jax.Array | np.ndarray,
    *operands: jax.Array | np.ndarray | complex,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: _bool = False,
    use_key: _bool = False,
    key: jax.Array | np.ndarray | jax.Array = ...,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def scan_prefix(
    steps: jax.Array | np.ndarray,
    operands: Sequence[jax.Array | np.ndarray | complex],
    *,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: _bool = False,
    use_key: _bool = False,
    key: jax.Array | np.ndarray | jax.Array = ...,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def scan_prefix(
    steps: jax.Array | np.ndarray,
    operands: jax.Array | np.ndarray | complex,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    length: int,
    reverse: _bool = False,
    use_key: _bool = False,
    *,
    key: jax.Array | np.ndarray | jax.Array = ...,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def scan_prefix(
    steps: NDArray | ArrayLike,
    *operands: NDArray | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: _bool = False,
    use_key: _bool = False,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def scan_prefix(
    steps: NDArray | ArrayLike,
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: _bool = False,
    use_key: _bool = False,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def scan_prefix(
    steps: NDArray | ArrayLike,
    operands: NDArray | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    length: int,
    reverse: _bool = False,
    use_key: _bool = False,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def scatter_add(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    updates: NDArray | ArrayInput,
    axis: int = -1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adds ``updates`` to the entries ``indices`` of ``x`` along ``axis``."""
@overload
def scatter_add(
    x: jax.Array | np.ndarray,
    indices: jax.Array | np.ndarray | complex,
    updates: jax.Array | np.ndarray | complex,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def scatter_add(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    updates: NDArray | ArrayInput,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def scatter_nd(
    updates: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    shape: int | Sequence[int],
    axis: int = -1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Adds ``updates`` to an array of zeros of ``shape`` at the coordinates ``indices``."""
@overload
def scatter_nd(
    updates: jax.Array | np.ndarray,
    indices: jax.Array | np.ndarray | complex,
    shape: int | Sequence[int],
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def scatter_nd(
    updates: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    shape: int | Sequence[int],
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def selu(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Scaled exponential linear unit, element-wise: ``1.0507 elu(x, alpha=1.67326)``."""
@overload
def selu(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def selu(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def sequence_argmax(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The step of ``x`` with the first of the largest entries of each sequence."""
@overload
def sequence_argmax(
    x: jax.Array | np.ndarray,
    offsets: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_argmax(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_concat(
    xs: Sequence[NDArray | ArrayLike],
    offsets: NDArray | ArrayLike,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Concatenates the sequences of several arrays sequence by sequence, and returns their offsets."""
@overload
def sequence_concat(
    xs: Sequence[jax.Array | np.ndarray],
    offsets: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def sequence_concat(
    xs: Sequence[NDArray | ArrayLike],
    offsets: NDArray | ArrayLike,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def sequence_context(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    context_length: int,
    context_start: int | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The context window of each step in its sequence, along a new second axis."""
@overload
def sequence_context(
    x: jax.Array | np.ndarray,
    offsets: jax.Array | np.ndarray | complex,
    context_length: int,
    context_start: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_context(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    context_length: int,
    context_start: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_context_adjoint(
    contexts: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    context_start: int,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The adjoint of ``sequence_context``: for each step, the sum of its copies in ``contexts``."""
@overload
def sequence_context_adjoint(
    contexts: jax.Array | np.ndarray,
    offsets: jax.Array | np.ndarray | complex,
    context_start: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_context_adjoint(
    contexts: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    context_start: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_conv(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    channels: int,
    context_length: int = 3,
    context_start: int | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Convolution over the steps of each sequence: ``out = context @ weight``."""
@overload
def sequence_conv(
    x: jax.Array | np.ndarray,
    offsets: jax.Array | np.ndarray | complex,
    weight: jax.Array | np.ndarray | complex,
    channels: int,
    context_length: int = 3,
    context_start: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_conv(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    channels: int,
    context_length: int = 3,
    context_start: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_expand(
    x: NDArray | ArrayInput,
    x_offsets: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    total_length: int,
    n_sequences: int,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Repeats each sequence of ``x`` as many times as ``offsets`` has steps for it."""
@overload
def sequence_expand(
    x: jax.Array | np.ndarray,
    x_offsets: jax.Array | np.ndarray | complex,
    offsets: jax.Array | np.ndarray | complex,
    total_length: int,
    n_sequences: int,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def sequence_expand(
    x: NDArray | ArrayInput,
    x_offsets: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    total_length: int,
    n_sequences: int,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def sequence_expand_as(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    total_length: int,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Repeats each row of ``x`` for every step of its sequence."""
@overload
def sequence_expand_as(
    x: jax.Array | np.ndarray,
    offsets: jax.Array | np.ndarray | complex,
    total_length: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_expand_as(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    total_length: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_ids(
    offsets: NDArray | ArrayInput,
    total_length: int,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The index of the sequence that each of ``total_length`` steps belongs to."""
@overload
def sequence_ids(
    offsets: jax.Array | np.ndarray,
    total_length: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_ids(
    offsets: NDArray | ArrayInput,
    total_length: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_last(
    data: NDArray | ArrayInput,
    sequence_length: NDArray | ArrayInput | None = None,
    axis: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The last step of each sequence in ``data``."""
@overload
def sequence_last(
    data: jax.Array | np.ndarray,
    sequence_length: jax.Array | np.ndarray | complex | None = None,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_last(
    data: NDArray | ArrayInput,
    sequence_length: NDArray | ArrayInput | None = None,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_lengths(offsets: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """The length of each sequence: ``offsets[s + 1] - offsets[s]``, of dtype int32."""
@overload
def sequence_lengths(
    offsets: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_lengths(
    offsets: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_mask(
    data: NDArray | ArrayInput,
    sequence_length: NDArray | ArrayInput | None = None,
    value: float = 0.0,
    axis: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Replaces the entries of ``data`` after the end of each sequence by ``value``."""
@overload
def sequence_mask(
    data: jax.Array | np.ndarray,
    sequence_length: jax.Array | np.ndarray | complex | None = None,
    value: float = 0.0,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_mask(
    data: NDArray | ArrayInput,
    sequence_length: NDArray | ArrayInput | None = None,
    value: float = 0.0,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_offsets(length: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """The offsets of consecutive sequences of the given lengths."""
@overload
def sequence_offsets(
    length: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_offsets(
    length: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_pad(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    padded_length: int,
    pad_value: float = 0.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Pads each sequence to a row of ``padded_length`` steps, and returns the lengths."""
@overload
def sequence_pad(
    x: jax.Array | np.ndarray,
    offsets: jax.Array | np.ndarray | complex,
    padded_length: int,
    pad_value: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def sequence_pad(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    padded_length: int,
    pad_value: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def sequence_pool(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    pool: Literal['sum', 'mean', 'sqrt', 'max', 'first', 'last'] = 'sum',
    pad_value: float = 0.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Reduces the steps of each sequence to one row by ``pool``; ``pad_value`` for empty sequences."""
@overload
def sequence_pool(
    x: jax.Array | np.ndarray,
    offsets: jax.Array | np.ndarray | complex,
    pool: Literal['sum', 'mean', 'sqrt', 'max', 'first', 'last'] = 'sum',
    pad_value: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_pool(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    pool: Literal['sum', 'mean', 'sqrt', 'max', 'first', 'last'] = 'sum',
    pad_value: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_reverse(
    data: NDArray | ArrayInput,
    sequence_length: NDArray | ArrayInput | None = None,
    offsets: NDArray | ArrayInput | None = None,
    axis: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Reverses the steps of each sequence of ``data``; entries after its end are unchanged."""
@overload
def sequence_reverse(
    data: jax.Array | np.ndarray,
    sequence_length: jax.Array | np.ndarray | complex | None = None,
    offsets: jax.Array | np.ndarray | complex | None = None,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_reverse(
    data: NDArray | ArrayInput,
    sequence_length: NDArray | ArrayInput | None = None,
    offsets: NDArray | ArrayInput | None = None,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_slice(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    begin: NDArray | ArrayInput,
    length: NDArray | ArrayInput,
    total_length: int | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Selects ``length`` steps of each sequence from step ``begin`` on, and returns the offsets."""
@overload
def sequence_slice(
    x: jax.Array | np.ndarray,
    offsets: jax.Array | np.ndarray | complex,
    begin: jax.Array | np.ndarray | complex,
    length: jax.Array | np.ndarray | complex,
    total_length: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def sequence_slice(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    begin: NDArray | ArrayInput,
    length: NDArray | ArrayInput,
    total_length: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def sequence_softmax(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The softmax over the steps of each sequence, separately for each entry of a step."""
@overload
def sequence_softmax(
    x: jax.Array | np.ndarray,
    offsets: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sequence_softmax(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sequence_unpad(
    x: NDArray | ArrayInput,
    length: NDArray | ArrayInput,
    total_length: int | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Concatenates the first ``length`` steps of each row, and returns the offsets of the rows."""
@overload
def sequence_unpad(
    x: jax.Array | np.ndarray,
    length: jax.Array | np.ndarray | complex,
    total_length: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def sequence_unpad(
    x: NDArray | ArrayInput,
    length: NDArray | ArrayInput,
    total_length: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
@overload
def sgd(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """A step of gradient descent: ``new_param = param - learning_rate * grad``."""
@overload
def sgd(
    param: jax.Array | np.ndarray,
    grad: jax.Array | np.ndarray | complex,
    learning_rate: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sgd(
    param: NDArray | ArrayInput,
    grad: NDArray | ArrayInput,
    learning_rate: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def shard(x: NDArray | ArrayInput, sharding: Any, *, out: _Out, req: _Request = None) -> _Out:
    """Returns ``x``, split over the devices of the current mesh."""
@overload
def shard(
    x: jax.Array | np.ndarray,
    sharding: Any,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def shard(
    x: NDArray | ArrayInput,
    sharding: Any,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sigmoid(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Logistic sigmoid, element-wise: ``1 / (1 + exp(-x))``, computed without overflow."""
@overload
def sigmoid(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def sigmoid(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
expit = sigmoid
logistic = sigmoid
@overload
def sigmoid_cross_entropy(
    logits: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Sigmoid cross-entropy ``-p log(sigmoid(x)) - (1 - p) log(1 - sigmoid(x))``, element-wise."""
@overload
def sigmoid_cross_entropy(
    logits: jax.Array | np.ndarray,
    labels: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sigmoid_cross_entropy(
    logits: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
sigmoid_binary_cross_entropy = sigmoid_cross_entropy
sigmoid_cross_entropy_with_logits = sigmoid_cross_entropy
@overload
def sign(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Sign of each entry: -1, 0 or 1 for real numbers, ``x / |x|`` or 0 for complex numbers."""
@overload
def sign(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def sign(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
sgn = sign
@overload
def sign_straight_through(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Sign of each entry, -1, 0 or 1, with the gradient of the identity."""
@overload
def sign_straight_through(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sign_straight_through(
    x: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
sign_ste = sign_straight_through
@overload
def silu(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Sigmoid-weighted linear unit, element-wise: ``x sigmoid(x)``."""
@overload
def silu(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def silu(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
swish = silu
@overload
def sin(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Sine of an angle in radians, element-wise."""
@overload
def sin(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def sin(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def sinc(x: NDArray | ArrayInput, n: int = 0, *, out: _Out, req: _Request = None) -> _Out:
    """Normalized sinc function ``sin(pi x) / (pi x)``, one at zero, or its ``n``-th derivative."""
@overload
def sinc(
    x: jax.Array | np.ndarray,
    n: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sinc(
    x: NDArray | ArrayInput,
    n: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sinh(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Hyperbolic sine, element-wise."""
@overload
def sinh(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def sinh(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def slice(
    x: NDArray | ArrayInput,
    begin: Sequence[int | None],
    end: Sequence[int | None],
    step: Sequence[int | None] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Slices ``x`` as ``x[begin[0]:end[0]:step[0], ...]`` by Python's rules, for positive steps."""
@overload
def slice(
    x: jax.Array | np.ndarray,
    begin: Sequence[int | None],
    end: Sequence[int | None],
    step: Sequence[int | None] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def slice(
    x: NDArray | ArrayInput,
    begin: Sequence[int | None],
    end: Sequence[int | None],
    step: Sequence[int | None] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def slice_axis(
    x: NDArray | ArrayInput,
    axis: int,
    begin: int,
    end: int | None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Slices ``x`` along one axis, ``x[..., begin:end, ...]``, by Python's rules; None is the end."""
@overload
def slice_axis(
    x: jax.Array | np.ndarray,
    axis: int,
    begin: int,
    end: int | None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def slice_axis(
    x: NDArray | ArrayInput,
    axis: int,
    begin: int,
    end: int | None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def slice_like(
    x: NDArray | ArrayInput,
    like: NDArray | ArrayInput,
    axes: Sequence[int] = (),
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Slices ``x`` to the lengths that ``like`` has along ``axes``, by default along all axes."""
@overload
def slice_like(
    x: jax.Array | np.ndarray,
    like: jax.Array | np.ndarray | complex,
    axes: Sequence[int] = (),
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def slice_like(
    x: NDArray | ArrayInput,
    like: NDArray | ArrayInput,
    axes: Sequence[int] = (),
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def slogdet(a: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Sign and log-absolute value of the determinant: ``det(a) = sign * exp(logabsdet)``."""
@overload
def slogdet(
    a: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def slogdet(
    a: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
linalg_slogdet = slogdet
@overload
def smooth_l1(
    data: NDArray | ArrayInput,
    scalar: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Smooth L1 loss, element-wise: the absolute value with a rounded corner at zero."""
@overload
def smooth_l1(
    data: jax.Array | np.ndarray,
    scalar: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def smooth_l1(
    data: NDArray | ArrayInput,
    scalar: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def softmax(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Softmax along ``axis``: ``exp(x / T) / sum(exp(x / T))``, positive numbers that sum to one."""
@overload
def softmax(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def softmax(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def softmax_cross_entropy(
    logits: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    class_weights: NDArray | ArrayInput | None = None,
    axis: int = -1,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Softmax cross-entropy for each example: ``-sum(w * p * log_softmax(logits))`` along ``axis``."""
@overload
def softmax_cross_entropy(
    logits: jax.Array | np.ndarray,
    labels: jax.Array | np.ndarray | complex,
    class_weights: jax.Array | np.ndarray | complex | None = None,
    axis: int = -1,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def softmax_cross_entropy(
    logits: NDArray | ArrayInput,
    labels: NDArray | ArrayInput,
    class_weights: NDArray | ArrayInput | None = None,
    axis: int = -1,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
softmax_cross_entropy_with_integer_labels = softmax_cross_entropy
@overload
def softmax_output(
    data: NDArray | ArrayInput,
    label: NDArray | ArrayInput,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: _bool = False,
    use_ignore: _bool = False,
    preserve_shape: _bool = False,
    normalization: Literal['null', 'batch', 'valid'] = 'null',
    out_grad: _bool = False,
    smooth_alpha: float = 0.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Softmax along the classes, with the gradient of the cross-entropy: ``softmax(data) - p``."""
@overload
def softmax_output(
    data: jax.Array | np.ndarray,
    label: jax.Array | np.ndarray | complex,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: _bool = False,
    use_ignore: _bool = False,
    preserve_shape: _bool = False,
    normalization: Literal['null', 'batch', 'valid'] = 'null',
    out_grad: _bool = False,
    smooth_alpha: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def softmax_output(
    data: NDArray | ArrayInput,
    label: NDArray | ArrayInput,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: _bool = False,
    use_ignore: _bool = False,
    preserve_shape: _bool = False,
    normalization: Literal['null', 'batch', 'valid'] = 'null',
    out_grad: _bool = False,
    smooth_alpha: float = 0.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
SoftmaxOutput = softmax_output
@overload
def softmax_with_length(
    x: NDArray | ArrayInput,
    length: NDArray | ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Softmax of ``x / temperature`` over the first ``length`` entries along ``axis``."""
@overload
def softmax_with_length(
    x: jax.Array | np.ndarray,
    length: jax.Array | np.ndarray | complex,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def softmax_with_length(
    x: NDArray | ArrayInput,
    length: NDArray | ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def softmin(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """``softmax(-x / temperature)`` along ``axis``: the smallest entry has the largest share."""
@overload
def softmin(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def softmin(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def softmin_with_length(
    x: NDArray | ArrayInput,
    length: NDArray | ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Softmin over the first ``length`` entries: ``softmax_with_length(-x, length)``."""
@overload
def softmin_with_length(
    x: jax.Array | np.ndarray,
    length: jax.Array | np.ndarray | complex,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def softmin_with_length(
    x: NDArray | ArrayInput,
    length: NDArray | ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def softplus(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Softplus, element-wise: ``log(1 + exp(x))``, computed without overflow."""
@overload
def softplus(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def softplus(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def softsign(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Softsign, element-wise: ``x / (1 + |x|)``."""
@overload
def softsign(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def softsign(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
soft_sign = softsign
@overload
def solve(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Solution of a linear system: ``a @ out = b``."""
@overload
def solve(
    a: jax.Array | np.ndarray,
    b: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def solve(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sort(
    x: NDArray | ArrayInput,
    axis: int = -1,
    descending: _bool = False,
    stable: _bool = True,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Sorts the entries of ``x`` along ``axis`` in ascending or descending order."""
@overload
def sort(
    x: jax.Array | np.ndarray,
    axis: int = -1,
    descending: _bool = False,
    stable: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sort(
    x: NDArray | ArrayInput,
    axis: int = -1,
    descending: _bool = False,
    stable: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def space_to_depth(
    x: NDArray | ArrayInput,
    block_size: int,
    layout: Literal['NCHW', 'NHWC'] = 'NCHW',
    mode: Literal['DCR', 'CRD'] = 'DCR',
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Rearranges blocks of ``block_size * block_size`` pixels of images into channels."""
@overload
def space_to_depth(
    x: jax.Array | np.ndarray,
    block_size: int,
    layout: Literal['NCHW', 'NHWC'] = 'NCHW',
    mode: Literal['DCR', 'CRD'] = 'DCR',
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def space_to_depth(
    x: NDArray | ArrayInput,
    block_size: int,
    layout: Literal['NCHW', 'NHWC'] = 'NCHW',
    mode: Literal['DCR', 'CRD'] = 'DCR',
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def spatial_transformer(
    data: NDArray | ArrayInput,
    loc: NDArray | ArrayInput,
    target_shape: Sequence[int],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Samples ``data`` on a grid of ``target_shape`` transformed by the affine maps ``loc``."""
@overload
def spatial_transformer(
    data: jax.Array | np.ndarray,
    loc: jax.Array | np.ndarray | complex,
    target_shape: Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def spatial_transformer(
    data: NDArray | ArrayInput,
    loc: NDArray | ArrayInput,
    target_shape: Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def split(
    x: NDArray | ArrayInput,
    sections: int | Sequence[int],
    axis: int = 0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Splits ``x`` along ``axis`` into ``sections`` equal parts or at the given positions."""
@overload
def split(
    x: jax.Array | np.ndarray,
    sections: int | Sequence[int],
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def split(
    x: NDArray | ArrayInput,
    sections: int | Sequence[int],
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def split_heads(
    x: NDArray | ArrayInput,
    heads: int,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Splits the features of each position into attention heads."""
@overload
def split_heads(
    x: jax.Array | np.ndarray,
    heads: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def split_heads(
    x: NDArray | ArrayInput,
    heads: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def split_selected_rows(
    x: NDArray | ArrayInput,
    height_sections: Sequence[int],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Consecutive parts of ``x`` of the given heights, as for tables stored in several places."""
@overload
def split_selected_rows(
    x: jax.Array | np.ndarray,
    height_sections: Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def split_selected_rows(
    x: NDArray | ArrayInput,
    height_sections: Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def sqrt(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Square root, element-wise; NaN for negative numbers. The derivative at zero is infinite."""
@overload
def sqrt(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def sqrt(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def square(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Square, element-wise: ``out = x * x``."""
@overload
def square(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def square(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def squared_difference(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Squared difference of two arrays, element-wise: ``(x - y)^2``."""
@overload
def squared_difference(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def squared_difference(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
square_error_cost = squared_difference
@overload
def squeeze(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Removes axes of length 1 from ``x``: those named, or all of them."""
@overload
def squeeze(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def squeeze(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def std(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    correction: float = 0.0,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Standard deviation ``sqrt(sum(|x - mean(x)|^2) / (n - correction))`` over ``axis``."""
@overload
def std(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    correction: float = 0.0,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def std(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    correction: float = 0.0,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def stochastic_round(
    x: NDArray | ArrayInput,
    dtype: DTypeLike = ...,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Rounds to one of the two neighbors in ``dtype``, at random, so that the expectation is ``x``."""
@overload
def stochastic_round(
    x: jax.Array | np.ndarray,
    dtype: DTypeLike = ...,
    *,
    key: jax.Array | np.ndarray | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def stochastic_round(
    x: NDArray | ArrayInput,
    dtype: DTypeLike = ...,
    *,
    key: NDArray | ArrayInput | jax.Array = ...,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def stop_gradient(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Returns ``x`` and stops its gradient: nothing flows back through it."""
@overload
def stop_gradient(
    x: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def stop_gradient(
    x: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
BlockGrad = stop_gradient
block_grad = stop_gradient
detach = stop_gradient
@overload
def student_t_log_density(
    x: NDArray | ArrayInput,
    df: NDArray | ArrayInput,
    loc: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of Student's t distribution with ``df`` degrees of freedom."""
@overload
def student_t_log_density(
    x: jax.Array | np.ndarray,
    df: jax.Array | np.ndarray | complex,
    loc: jax.Array | np.ndarray | complex,
    scale: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def student_t_log_density(
    x: NDArray | ArrayInput,
    df: NDArray | ArrayInput,
    loc: NDArray | ArrayInput,
    scale: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def subtract(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise difference of two arrays: ``out = x - y``."""
@overload
def subtract(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def subtract(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
broadcast_minus = subtract
broadcast_sub = subtract
elementwise_sub = subtract
elemwise_sub = subtract
sub = subtract
@overload
def reduce_sum(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Sum over ``axis``, by default over all axes; ``keepdims`` keeps the axes with length 1."""
@overload
def reduce_sum(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def reduce_sum(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
sum_along = reduce_sum
sum_axis = reduce_sum
@overload
def sum_to(
    x: NDArray | ArrayInput,
    shape: int | Sequence[int],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Sums ``x`` over the axes that broadcasting from ``shape`` adds or stretches."""
@overload
def sum_to(
    x: jax.Array | np.ndarray,
    shape: int | Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sum_to(
    x: NDArray | ArrayInput,
    shape: int | Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def sumlogdiag(a: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Sum of the logarithms of the diagonal: half the ``log det`` of a matrix with factor ``a``."""
@overload
def sumlogdiag(
    a: jax.Array | np.ndarray,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def sumlogdiag(a: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
linalg_sumlogdiag = sumlogdiag
@overload
def svd(
    x: NDArray | ArrayInput,
    full_matrices: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Singular value decomposition ``x = (u * s) @ vh``, reduced by default."""
@overload
def svd(
    x: jax.Array | np.ndarray,
    full_matrices: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
@overload
def svd(
    x: NDArray | ArrayInput,
    full_matrices: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def svdvals(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Singular values of a matrix, in descending order."""
@overload
def svdvals(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def svdvals(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def svm_output(
    data: NDArray | ArrayInput,
    label: NDArray | ArrayInput,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Returns ``data``; its gradient is that of a multi-class hinge loss."""
@overload
def svm_output(
    data: jax.Array | np.ndarray,
    label: jax.Array | np.ndarray | complex,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def svm_output(
    data: NDArray | ArrayInput,
    label: NDArray | ArrayInput,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
SVMOutput = svm_output
@overload
def swapaxes(
    x: NDArray | ArrayInput,
    axis1: int,
    axis2: int,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Interchanges the axes ``axis1`` and ``axis2`` of ``x``."""
@overload
def swapaxes(
    x: jax.Array | np.ndarray,
    axis1: int,
    axis2: int,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def swapaxes(
    x: NDArray | ArrayInput,
    axis1: int,
    axis2: int,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def syrk(
    a: NDArray | ArrayInput,
    transpose: _bool = False,
    alpha: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Symmetric rank-k product: ``alpha * a @ a^T``, or ``alpha * a^T @ a`` with ``transpose``."""
@overload
def syrk(
    a: jax.Array | np.ndarray,
    transpose: _bool = False,
    alpha: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def syrk(
    a: NDArray | ArrayInput,
    transpose: _bool = False,
    alpha: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
linalg_syrk = syrk
@overload
def take(
    x: NDArray | ArrayInput,
    ids: NDArray | ArrayInput,
    axis: int = 0,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    fill_value: float | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Selects the entries ``ids`` of ``x`` along ``axis``; the axes of ``ids`` replace that axis."""
@overload
def take(
    x: jax.Array | np.ndarray,
    ids: jax.Array | np.ndarray | complex,
    axis: int = 0,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    fill_value: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def take(
    x: NDArray | ArrayInput,
    ids: NDArray | ArrayInput,
    axis: int = 0,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    fill_value: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
gather = take
@overload
def take_along_axis(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    axis: int = -1,
    fill_value: float | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Selects entries of ``x`` along ``axis`` by an array of indices with the same axes."""
@overload
def take_along_axis(
    x: jax.Array | np.ndarray,
    indices: jax.Array | np.ndarray | complex,
    axis: int = -1,
    fill_value: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def take_along_axis(
    x: NDArray | ArrayInput,
    indices: NDArray | ArrayInput,
    axis: int = -1,
    fill_value: float | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
index_sample = take_along_axis
@overload
def tan(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Tangent of an angle in radians, element-wise."""
@overload
def tan(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def tan(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def tanh(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Hyperbolic tangent, element-wise."""
@overload
def tanh(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def tanh(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
@overload
def tensordot(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    axes: int | Sequence[int | Sequence[int]] = 2,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Tensor contraction: the sum of products over given axes of both arrays."""
@overload
def tensordot(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    axes: int | Sequence[int | Sequence[int]] = 2,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def tensordot(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    axes: int | Sequence[int | Sequence[int]] = 2,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def tile(
    x: NDArray | ArrayInput,
    repetitions: int | Sequence[int],
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Tiles ``x``, repeating it ``repetitions[i]`` times along axis ``i``."""
@overload
def tile(
    x: jax.Array | np.ndarray,
    repetitions: int | Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def tile(
    x: NDArray | ArrayInput,
    repetitions: int | Sequence[int],
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def topk(
    x: NDArray | ArrayInput,
    k: int,
    axis: int = -1,
    largest: _bool = True,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """The ``k`` largest entries of ``x`` along ``axis`` in descending order, and their indices."""
@overload
def topk(
    x: jax.Array | np.ndarray,
    k: int,
    axis: int = -1,
    largest: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def topk(
    x: NDArray | ArrayInput,
    k: int,
    axis: int = -1,
    largest: _bool = True,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, NDArray]: ...
top_k = topk
@overload
def trace(
    x: NDArray | ArrayInput,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Sums of the diagonals of matrices: ``out[...] = sum over i of x[..., i, i + offset]``."""
@overload
def trace(
    x: jax.Array | np.ndarray,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def trace(
    x: NDArray | ArrayInput,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def transposed_convolution(
    data: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    bias: NDArray | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    use_bias: _bool = True,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Transposed convolution: the adjoint of ``convolution`` with respect to data, plus ``bias``."""
@overload
def transposed_convolution(
    data: jax.Array | np.ndarray,
    weight: jax.Array | np.ndarray | complex,
    bias: jax.Array | np.ndarray | complex = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    use_bias: _bool = True,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def transposed_convolution(
    data: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    bias: NDArray | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    use_bias: _bool = True,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def triangular_solve(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    transpose: _bool = False,
    rightside: _bool = False,
    lower: _bool = True,
    alpha: float = 1.0,
    unit_diagonal: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Solution of a triangular system: ``op(a) @ out = alpha * b``."""
@overload
def triangular_solve(
    a: jax.Array | np.ndarray,
    b: jax.Array | np.ndarray | complex,
    transpose: _bool = False,
    rightside: _bool = False,
    lower: _bool = True,
    alpha: float = 1.0,
    unit_diagonal: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def triangular_solve(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    transpose: _bool = False,
    rightside: _bool = False,
    lower: _bool = True,
    alpha: float = 1.0,
    unit_diagonal: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
linalg_trsm = triangular_solve
@overload
def tril(x: NDArray | ArrayInput, k: int = 0, *, out: _Out, req: _Request = None) -> _Out:
    """Lower triangles of matrices: ``out[..., i, j] = x[..., i, j]`` if ``j - i <= k``, else 0."""
@overload
def tril(
    x: jax.Array | np.ndarray,
    k: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def tril(
    x: NDArray | ArrayInput,
    k: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def triu(x: NDArray | ArrayInput, k: int = 0, *, out: _Out, req: _Request = None) -> _Out:
    """Upper triangles of matrices: ``out[..., i, j] = x[..., i, j]`` if ``j - i >= k``, else 0."""
@overload
def triu(
    x: jax.Array | np.ndarray,
    k: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def triu(
    x: NDArray | ArrayInput,
    k: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def trmm(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    transpose: _bool = False,
    rightside: _bool = False,
    lower: _bool = True,
    alpha: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Triangular matrix product: ``alpha * op(a) @ b``, or ``alpha * b @ op(a)`` on the right."""
@overload
def trmm(
    a: jax.Array | np.ndarray,
    b: jax.Array | np.ndarray | complex,
    transpose: _bool = False,
    rightside: _bool = False,
    lower: _bool = True,
    alpha: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def trmm(
    a: NDArray | ArrayInput,
    b: NDArray | ArrayInput,
    transpose: _bool = False,
    rightside: _bool = False,
    lower: _bool = True,
    alpha: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
linalg_trmm = trmm
@overload
def trunc(x: NDArray | ArrayInput, *, out: _Out, req: _Request = None) -> _Out:
    """Truncates ``x`` towards zero, element-wise. Integers are unchanged."""
@overload
def trunc(x: jax.Array | np.ndarray, *, out: None = None, req: _Request = None) -> jax.Array: ...
@overload
def trunc(x: NDArray | ArrayInput, *, out: None = None, req: _Request = None) -> NDArray: ...
fix = trunc
@overload
def uniform_log_density(
    x: NDArray | ArrayInput,
    low: NDArray | ArrayInput,
    high: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Log density of the uniform distribution: ``-log(high - low)`` for ``low <= x <= high``."""
@overload
def uniform_log_density(
    x: jax.Array | np.ndarray,
    low: jax.Array | np.ndarray | complex,
    high: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def uniform_log_density(
    x: NDArray | ArrayInput,
    low: NDArray | ArrayInput,
    high: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def unbind(x: NDArray | ArrayInput, axis: int = 0, *, out: _Out, req: _Request = None) -> _Out:
    """Splits ``x`` along ``axis`` into arrays without that axis: the inverse of ``stack``."""
@overload
def unbind(
    x: jax.Array | np.ndarray,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[jax.Array, ...]: ...
@overload
def unbind(
    x: NDArray | ArrayInput,
    axis: int = 0,
    *,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def variance(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    correction: float = 0.0,
    keepdims: _bool = False,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Variance ``sum(|x - mean(x)|^2) / (n - correction)`` of ``n`` entries over ``axis``."""
@overload
def variance(
    x: jax.Array | np.ndarray,
    axis: int | Sequence[int] | None = None,
    correction: float = 0.0,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def variance(
    x: NDArray | ArrayInput,
    axis: int | Sequence[int] | None = None,
    correction: float = 0.0,
    keepdims: _bool = False,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def vecdot(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    axis: int = -1,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Inner product of vectors along an axis: ``out = sum over axis of conj(x) * y``."""
@overload
def vecdot(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def vecdot(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    axis: int = -1,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def vmap(
    *operands: NDArray | ArrayLike,
    body: Body,
    n_mapped: int,
    use_key: _bool = False,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Applies ``body`` to each slice of the first ``n_mapped`` operands along their first axis."""
@overload
def vmap(
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    n_mapped: int,
    use_key: _bool = False,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: _Out,
    req: _Request = None,
) -> _Out: ...
@overload
def vmap(
    *operands: NDArray | ArrayLike,
    body: Body,
    n_mapped: int,
    use_key: _bool = False,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def vmap(
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    n_mapped: int,
    use_key: _bool = False,
    key: NDArray | ArrayInput | jax.Array = ...,
    training: _bool = ...,
    out: None = None,
    req: _Request = None,
) -> tuple[NDArray, ...]: ...
@overload
def warmup_cosine_decay_schedule(
    step: NDArray | ArrayInput,
    init_value: float,
    peak_value: float,
    warmup_steps: float,
    decay_steps: float,
    end_value: float = 0.0,
    exponent: float = 1.0,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Linear warmup to ``peak_value``, then ``cosine_decay_schedule`` down to ``end_value``."""
@overload
def warmup_cosine_decay_schedule(
    step: jax.Array | np.ndarray,
    init_value: float,
    peak_value: float,
    warmup_steps: float,
    decay_steps: float,
    end_value: float = 0.0,
    exponent: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def warmup_cosine_decay_schedule(
    step: NDArray | ArrayInput,
    init_value: float,
    peak_value: float,
    warmup_steps: float,
    decay_steps: float,
    end_value: float = 0.0,
    exponent: float = 1.0,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def where(
    condition: NDArray | ArrayInput,
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Selects ``x`` where ``condition`` is true (or a nonzero number) and ``y`` elsewhere."""
@overload
def where(
    condition: jax.Array | np.ndarray,
    x: jax.Array | np.ndarray | complex,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def where(
    condition: NDArray | ArrayInput,
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def write_steps(
    cache: NDArray | ArrayInput,
    steps: NDArray | ArrayInput,
    start: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Writes consecutive steps into a cache, for each example at its own place."""
@overload
def write_steps(
    cache: jax.Array | np.ndarray,
    steps: jax.Array | np.ndarray | complex,
    start: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def write_steps(
    cache: NDArray | ArrayInput,
    steps: NDArray | ArrayInput,
    start: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def xlog1py(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise ``x log(1 + y)``; zero where ``x`` is zero, even at ``y = -1``."""
@overload
def xlog1py(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def xlog1py(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def xlogy(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """Element-wise ``x log(y)``; zero where ``x`` is zero, even at ``y = 0``."""
@overload
def xlogy(
    x: jax.Array | np.ndarray,
    y: jax.Array | np.ndarray | complex,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def xlogy(
    x: NDArray | ArrayInput,
    y: NDArray | ArrayInput,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
@overload
def fill_zeros_like(
    x: NDArray | ArrayInput,
    dtype: DTypeLike | None = None,
    *,
    out: _Out,
    req: _Request = None,
) -> _Out:
    """An array of zeros with the shape of ``x`` and, without ``dtype``, its dtype."""
@overload
def fill_zeros_like(
    x: jax.Array | np.ndarray,
    dtype: DTypeLike | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> jax.Array: ...
@overload
def fill_zeros_like(
    x: NDArray | ArrayInput,
    dtype: DTypeLike | None = None,
    *,
    out: None = None,
    req: _Request = None,
) -> NDArray: ...
