"""symop: operators and their gradients as data on JAX.

Every registered operator is a function of this module: ``so.sin(v)`` takes a symbol or an array
and returns a value of the same kind.

``import symop`` imports neither JAX nor the catalogue of operators. The first lookup of a name
imports ``symop.public``, which contains all names.
"""

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
import registry as registry
from registry import caches as caches
from registry.errors import SymopError as SymopError
from registry.lod import LoDTensor as LoDTensor
from symop import autograd as autograd
from symop import checkpoint as checkpoint
from symop import nd as nd
from symop import optim as optim
from symop import random as random
from symop import remat as remat
from symop import sym as sym
from symop.control_flow import body as body
from symop.control_flow import cond as cond
from symop.control_flow import foreach as foreach
from symop.control_flow import scan as scan
from symop.control_flow import while_loop as while_loop
from symop.derivatives import grad as grad
from symop.derivatives import jvp as jvp
from symop.differential_operators.linear import linear_operator as linear_operator
from symop.differential_operators.linear import partial as partial
from symop.differential_operators.sampling import random_directions as random_directions
from symop.differential_operators.sums import biharmonic as biharmonic
from symop.differential_operators.sums import curl as curl
from symop.differential_operators.sums import divergence as divergence
from symop.differential_operators.sums import laplacian as laplacian
from symop.differential_operators.taylor import taylor as taylor
from symop.eager.ndarray import NDArray as NDArray
from symop.generation import Generator as Generator
from symop.graph.naming import name_scope as name_scope
from symop.io.files import load_parameters as load_parameters
from symop.io.files import save_parameters as save_parameters
from symop.jaxprs.functions import from_jax as from_jax
from symop.jaxprs.transforming import transform as transform
from symop.layers import multi_head_attention as multi_head_attention
from symop.orders import derivative as derivative
from symop.orders import hessian as hessian
from symop.orders import hvp as hvp
from symop.orders import jacobian as jacobian
from symop.passes.products import rewriting as rewriting
from symop.passes.roll_loops.switch import rolling as rolling
from symop.passes.streaming import streaming as streaming
from symop.pipelining import pipeline as pipeline
from symop.planning.plan import plan as plan
from symop.planning.proposing import propose_rules as propose_rules
from symop.program.backward import append_backward as append_backward
from symop.program.block import Variable as Variable
from symop.program.current import data as data
from symop.program.current import parameter as parameter
from symop.program.current import program_guard as program_guard
from symop.program.program import Program as Program
from symop.runtime.executor import Executor as Executor
from symop.symbol.building import Group as Group
from symop.symbol.building import load as load
from symop.symbol.building import value_and_grad as value_and_grad
from symop.symbol.building import var as var
from symop.symbol.calls import from_desc as from_desc
from symop.symbol.calls import load_json as load_json
from symop.symbol.drawings import draw as draw
from symop.symbol.explaining import explain as explain
from symop.symbol.loop_report import loops as loops
from symop.symbol.symbol import Symbol as Symbol
from symop.vectorizing import vmap as vmap
from symop import interop as interop
from symop import testing as testing
from symop import train as train

__version__: str

@overload
def abs(x: ArrayInput) -> jax.Array:
    """Absolute value, element-wise.

    The derivative at zero is one for real numbers, as in JAX, and zero for complex numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> abs(jnp.asarray([1.0, -2.0]))
        Array([1., 2.], dtype=float32)
    """
@overload
def abs(x: SelectedRows) -> Any: ...
@overload
def abs(x: Value, *, name: str | None = None) -> Value: ...
absolute = abs
@overload
def accumulate_rows(total: ArrayInput, x: ArrayInput, places: int) -> jax.Array:
    """``total + x``, where rows are concatenated in a buffer of ``places`` times the rows of ``x``.

    Concatenated ``SelectedRows`` grow, but shapes must be constant from step to step: the total has
    its full capacity from the first step on, which starts from a total without rows. The rows of
    ``x`` are placed after the last row that the total names. Dense arrays are added.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> none = SelectedRows(jnp.zeros(0, int), jnp.zeros((0, 1)), height=4)
        >>> one = SelectedRows(jnp.array([2]), jnp.ones((1, 1)), height=4)
        >>> accumulate_rows(none, one, places=2).rows
        Array([2, 4], dtype=int32)
    """
@overload
def accumulate_rows(
    total: SelectedRows | ArrayInput,
    x: SelectedRows | ArrayInput,
    places: int,
) -> Any: ...
@overload
def accumulate_rows(
    total: Value | ArrayInput,
    x: Value | ArrayInput,
    places: int,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def acos(x: ArrayInput) -> jax.Array:
    """Inverse cosine, element-wise: the angle in ``[0, pi]`` whose cosine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> acos(jnp.asarray([1.0, 0.0]))
        Array([0.       , 1.5707964], dtype=float32)
    """
@overload
def acos(x: Value, *, name: str | None = None) -> Value: ...
arccos = acos
@overload
def acosh(x: ArrayInput) -> jax.Array:
    """Inverse hyperbolic cosine: the nonnegative number whose hyperbolic cosine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> acosh(jnp.asarray([1.0, jnp.inf]))
        Array([ 0., inf], dtype=float32)
    """
@overload
def acosh(x: Value, *, name: str | None = None) -> Value: ...
arccosh = acosh
@overload
def adadelta(
    param: ArrayInput,
    grad: ArrayInput,
    mean_square: ArrayInput,
    mean_square_step: ArrayInput,
    learning_rate: ArrayInput,
    rho: float = 0.9,
    eps: float = 1e-06,
    lazy: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A step of Adadelta, whose length is the root of the mean square of previous steps.

    ``new_mean_square = rho * mean_square + (1 - rho) * grad^2``, ``step = sqrt(mean_square_step +
    eps) / sqrt(new_mean_square + eps) * grad``, ``new_mean_square_step`` the corresponding average
    of ``step^2``, and ``new_param = param - learning_rate * step`` (Zeiler, "ADADELTA: an adaptive
    learning rate method", 2012, where ``learning_rate`` is 1).

    If ``grad`` is ``SelectedRows``, ``lazy`` updates only the rows that it names; by default the
    step equals that of the dense gradient, in which every average decays.

    Example:
        >>> import jax.numpy as jnp
        >>> one, four = jnp.asarray(1.0), jnp.asarray(4.0)
        >>> adadelta(one, 2 * one, four, one, 1.0, eps=0.0)[:2]
        (Array(0., dtype=float32), Array(4., dtype=float32))
    """
@overload
def adadelta(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    mean_square: SelectedRows | ArrayInput,
    mean_square_step: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    rho: float = 0.9,
    eps: float = 1e-06,
    lazy: bool = False,
) -> Any: ...
@overload
def adadelta(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    mean_square: Symbol | ArrayInput,
    mean_square_step: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    rho: float = 0.9,
    eps: float = 1e-06,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def adadelta(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    mean_square: Value | ArrayInput,
    mean_square_step: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    rho: float = 0.9,
    eps: float = 1e-06,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def adagrad(
    param: ArrayInput,
    grad: ArrayInput,
    moment: ArrayInput,
    learning_rate: ArrayInput,
    eps: float = 1e-07,
) -> tuple[jax.Array, jax.Array]:
    """A step of Adagrad: each entry is scaled by the root of the sum of its past squares.

    ``new_moment = moment + grad^2`` and ``new_param = param - learning_rate * grad /
    sqrt(new_moment + eps)``; an entry without any gradient so far is unchanged (Duchi et al.,
    "Adaptive subgradient methods for online learning and stochastic optimization", 2011).

    ``grad`` may be ``SelectedRows``; the step is exact, and only updates the named rows.

    Example:
        >>> import jax.numpy as jnp
        >>> adagrad(jnp.asarray(1.0), jnp.asarray(3.0), jnp.asarray(16.0), 0.5)
        (Array(0.7, dtype=float32), Array(25., dtype=float32))
    """
@overload
def adagrad(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    moment: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    eps: float = 1e-07,
) -> Any: ...
@overload
def adagrad(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    moment: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    eps: float = 1e-07,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def adagrad(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    moment: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    eps: float = 1e-07,
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
@overload
def adam(
    param: ArrayInput,
    grad: ArrayInput,
    moment1: ArrayInput,
    moment2: ArrayInput,
    step: ArrayInput,
    learning_rate: ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: bool = False,
    lazy: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A step of Adam; ``step`` is the number of previous steps, zero at the first one.

    ``new_moment1 = b1 * moment1 + (1 - b1) * grad``, ``new_moment2 = b2 * moment2 + (1 - b2) *
    grad^2``, and with ``t = step + 1`` and the averages ``a = new_moment1 / (1 - b1^t)`` and ``w =
    new_moment2 / (1 - b2^t)``: ``new_param = param - learning_rate * a / (sqrt(w + eps_root) +
    eps)`` (Kingma and Ba, "Adam: a method for stochastic optimization", 2015). With ``nesterov``
    ``a`` is ``b1 * new_moment1 / (1 - b1^(t+1)) + (1 - b1) * grad / (1 - b1^t)`` (Dozat,
    "Incorporating Nesterov momentum into Adam", 2016).

    If ``grad`` is ``SelectedRows``, ``lazy`` updates parameter and moments only in the rows that it
    names, with the bias correction of ``step``, and leaves the other rows unchanged. By default the
    step equals that of the dense gradient, in which every moment decays and every row moves: its
    cost is that of the whole table.

    Example:
        >>> import jax.numpy as jnp
        >>> zero = jnp.asarray(0.0)
        >>> round(float(adam(jnp.asarray(1.0), jnp.asarray(5.0), zero, zero, 0, 0.25)[0]), 3)
        0.75
    """
@overload
def adam(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    moment1: SelectedRows | ArrayInput,
    moment2: SelectedRows | ArrayInput,
    step: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: bool = False,
    lazy: bool = False,
) -> Any: ...
@overload
def adam(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    moment1: Symbol | ArrayInput,
    moment2: Symbol | ArrayInput,
    step: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: bool = False,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def adam(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    moment1: Value | ArrayInput,
    moment2: Value | ArrayInput,
    step: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: bool = False,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def adamax(
    param: ArrayInput,
    grad: ArrayInput,
    moment: ArrayInput,
    norm: ArrayInput,
    step: ArrayInput,
    learning_rate: ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    lazy: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A step of Adamax; ``step`` is the number of previous steps.

    ``new_moment = b1 * moment + (1 - b1) * grad``, ``new_norm = max(b2 * norm, |grad| + eps)`` and
    ``new_param = param - learning_rate / (1 - b1^(step+1)) * new_moment / new_norm`` (Kingma and
    Ba, "Adam: a method for stochastic optimization", 2015, section 7.1).

    If ``grad`` is ``SelectedRows``, ``lazy`` updates only the rows that it names; by default the
    step equals that of the dense gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> zero = jnp.asarray(0.0)
        >>> round(float(adamax(jnp.asarray(1.0), jnp.asarray(5.0), zero, zero, 0, 0.25)[0]), 3)
        0.75
    """
@overload
def adamax(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    moment: SelectedRows | ArrayInput,
    norm: SelectedRows | ArrayInput,
    step: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    lazy: bool = False,
) -> Any: ...
@overload
def adamax(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    moment: Symbol | ArrayInput,
    norm: Symbol | ArrayInput,
    step: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def adamax(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    moment: Value | ArrayInput,
    norm: Value | ArrayInput,
    step: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def adamw(
    param: ArrayInput,
    grad: ArrayInput,
    moment1: ArrayInput,
    moment2: ArrayInput,
    step: ArrayInput,
    learning_rate: ArrayInput,
    weight_decay: float = 0.0001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: bool = False,
    lazy: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A step of Adam with decoupled decay of the parameter by ``learning_rate * weight_decay``.

    ``new_param`` is that of ``adam`` minus ``learning_rate * weight_decay * param``; the decay is
    not scaled as a gradient would be (Loshchilov and Hutter, "Decoupled weight decay
    regularization", 2019). With ``lazy`` only the rows that ``grad`` names decay. Everything else
    is as in ``adam``.

    Example:
        >>> import jax.numpy as jnp
        >>> one, zero = jnp.asarray(1.0), jnp.asarray(0.0)
        >>> round(float(adamw(one, 5 * one, zero, zero, 0, 0.25, weight_decay=1.0)[0]), 3)
        0.5
    """
@overload
def adamw(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    moment1: SelectedRows | ArrayInput,
    moment2: SelectedRows | ArrayInput,
    step: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    weight_decay: float = 0.0001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: bool = False,
    lazy: bool = False,
) -> Any: ...
@overload
def adamw(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    moment1: Symbol | ArrayInput,
    moment2: Symbol | ArrayInput,
    step: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    weight_decay: float = 0.0001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: bool = False,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def adamw(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    moment1: Value | ArrayInput,
    moment2: Value | ArrayInput,
    step: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    weight_decay: float = 0.0001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    eps_root: float = 0.0,
    nesterov: bool = False,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def adaptive_average_pooling(
    data: ArrayInput,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
) -> jax.Array:
    """Average pooling to ``output_size`` windows over one to three spatial axes.

    Along an axis of length ``n`` the i-th of ``m`` windows begins at ``floor(i n / m)`` and ends
    before ``ceil((i + 1) n / m)``, as in PyTorch and MXNet.

    Example:
        >>> import jax.numpy as jnp
        >>> adaptive_average_pooling(jnp.asarray([[[1.0, 2.0, 6.0]]]), output_size=2)
        Array([[[1.5, 4. ]]], dtype=float32)
    """
@overload
def adaptive_average_pooling(
    data: Value,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
AdaptiveAvgPooling2D = adaptive_average_pooling
@overload
def adaptive_average_pooling_gradient(
    cotangent: ArrayInput,
    shape: Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
) -> jax.Array:
    """Adjoint of ``adaptive_average_pooling``: spreads each mean over its window in ``shape``.

    Example:
        >>> import jax.numpy as jnp
        >>> adaptive_average_pooling_gradient(jnp.asarray([[[2.0, 4.0]]]), shape=(1, 1, 3))
        Array([[[1., 3., 2.]]], dtype=float32)
    """
@overload
def adaptive_average_pooling_gradient(
    cotangent: Value,
    shape: Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def adaptive_max_pooling(
    data: ArrayInput,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
) -> jax.Array:
    """Max pooling to ``output_size`` windows over one to three spatial axes.

    The windows are those of ``adaptive_average_pooling``. The first of several equal entries of a
    window receives the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> adaptive_max_pooling(jnp.asarray([[[1.0, 6.0, 2.0]]]), output_size=2)
        Array([[[6., 6.]]], dtype=float32)
    """
@overload
def adaptive_max_pooling(
    data: Value,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def adaptive_max_pooling_places(
    data: ArrayInput,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
) -> jax.Array:
    """Flat positions in ``data`` of the results of ``adaptive_max_pooling``.

    In case of ties it is the position of the first entry of the window.

    Example:
        >>> import jax.numpy as jnp
        >>> adaptive_max_pooling_places(jnp.asarray([[[6.0, 1.0, 2.0]]]), output_size=2)
        Array([[[0, 2]]], dtype=int32)
    """
@overload
def adaptive_max_pooling_places(
    data: Value,
    output_size: int | Sequence[int],
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def add(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise sum of two arrays: ``out = x + y``.

    Example:
        >>> import jax.numpy as jnp
        >>> add(jnp.asarray([1.0, 2.0]), jnp.asarray(3.0))
        Array([4., 5.], dtype=float32)
    """
@overload
def add(x: SelectedRows | ArrayInput, y: SelectedRows | ArrayInput) -> Any: ...
@overload
def add(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
add_any = add
broadcast_add = add
broadcast_plus = add
elementwise_add = add
elemwise_add = add
@overload
def add_decayed_weights(
    grad: ArrayInput,
    param: ArrayInput,
    weight_decay: float,
    lazy: bool = False,
) -> jax.Array:
    """``grad + weight_decay * param``: the gradient with that of an L2 penalty added.

    The penalty is ``weight_decay / 2 * |param|^2``. Applied before an optimizer, this is coupled
    weight decay; ``adamw`` and ``lamb`` have decoupled decay. If ``grad`` is ``SelectedRows``,
    ``lazy`` decays only the rows that it names, once each, and the result is row-sparse; by default
    all rows decay, and the result is dense.

    Example:
        >>> import jax.numpy as jnp
        >>> add_decayed_weights(jnp.asarray([1.0]), jnp.asarray([2.0]), weight_decay=0.5)
        Array([2.], dtype=float32)
    """
@overload
def add_decayed_weights(
    grad: SelectedRows | ArrayInput,
    param: SelectedRows | ArrayInput,
    weight_decay: float,
    lazy: bool = False,
) -> Any: ...
@overload
def add_decayed_weights(
    grad: Value | ArrayInput,
    param: Value | ArrayInput,
    weight_decay: float,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def add_n(*xs: ArrayLike) -> jax.Array:
    """Sum of arrays of the same shape, added from left to right.

    Example:
        >>> import jax.numpy as jnp
        >>> add_n(jnp.asarray(1.0), jnp.asarray(2.0), jnp.asarray(3.0))
        Array(6., dtype=float32, weak_type=True)
    """
@overload
def add_n(xs: Sequence[ArrayLike]) -> jax.Array: ...
@overload
def add_n(*xs: SelectedRows | ArrayLike) -> Any: ...
@overload
def add_n(xs: Sequence[SelectedRows | ArrayLike]) -> Any: ...
@overload
def add_n(*xs: NDArray | ArrayLike) -> NDArray: ...
@overload
def add_n(xs: Sequence[NDArray | ArrayLike]) -> NDArray: ...
@overload
def add_n(*xs: Symbol | ArrayLike, name: str | None = None) -> Symbol: ...
@overload
def add_n(xs: Sequence[Symbol | ArrayLike], *, name: str | None = None) -> Symbol: ...
@overload
def add_n(*xs: Variable | ArrayLike, name: str | None = None) -> Variable: ...
@overload
def add_n(xs: Sequence[Variable | ArrayLike], *, name: str | None = None) -> Variable: ...
@overload
def add_n(*xs: Var | ArrayLike, name: str | None = None) -> Var: ...
@overload
def add_n(xs: Sequence[Var | ArrayLike], *, name: str | None = None) -> Var: ...
ElementWiseSum = add_n
accumulate = add_n
@overload
def add_rows(
    values: ArrayInput,
    ids: ArrayInput,
    height: int,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    sparse: bool = False,
) -> Any:
    """Adds ``values`` to the rows ``ids`` of an array of zeros with ``height`` rows.

    This is the adjoint of ``take`` along the first axis: a row that is named twice receives the
    sum. ``mode`` is as in ``take``; with ``fill``, values for rows outside ``range(height)`` are
    dropped. With ``sparse`` the result is a ``SelectedRows``: the same array, of which only the
    named rows are stored.

    Example:
        >>> import jax.numpy as jnp
        >>> add_rows(jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray([0, 2, 0]), height=3)
        Array([4., 0., 2.], dtype=float32)
    """
@overload
def add_rows(
    values: TensorArray | SelectedRows | ArrayInput,
    ids: TensorArray | SelectedRows | ArrayInput,
    height: int,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    sparse: bool = False,
) -> Any: ...
@overload
def add_rows(
    values: Value | ArrayInput,
    ids: Value | ArrayInput,
    height: int,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    sparse: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def alias(x: ArrayInput, number: int = 0) -> jax.Array:
    """Returns ``x`` as a separate value: equal calls are one node unless ``number`` differs.

    Recorded eager code identifies arrays by their nodes; a separate node keeps the gradient with
    respect to one of two equal values from being the gradient with respect to both.

    Example:
        >>> import jax.numpy as jnp
        >>> alias(jnp.asarray([1.0, 2.0]), number=1)
        Array([1., 2.], dtype=float32)
    """
@overload
def alias(x: Value, number: int = 0, *, name: str | None = None) -> Value: ...
@overload
def all(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Whether all entries over ``axis`` are true (nonzero); true if there are none.

    Example:
        >>> import jax.numpy as jnp
        >>> all(jnp.asarray([[True, False], [True, True]]), axis=1)
        Array([False,  True], dtype=bool)
    """
@overload
def all(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
reduce_all = all
@overload
def any(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Whether any entry over ``axis`` is true (nonzero); false if there are none.

    Example:
        >>> import jax.numpy as jnp
        >>> any(jnp.asarray([[True, False], [False, False]]), axis=1)
        Array([ True, False], dtype=bool)
    """
@overload
def any(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
reduce_any = any
def arange(
    start: int | float,
    stop: int | float | None = None,
    step: int | float = 1,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Evenly spaced numbers ``start + step * i`` for ``i = 0, 1, ...``, excluding ``stop``.

    With one number, ``arange(stop)``, it begins at zero. Without ``dtype`` the result has the
    default integer dtype if all numbers are integers, otherwise the default floating dtype.

    Source: Python array API standard 2024.12, ``arange``.

    Example:
        >>> arange(5), arange(1, 8, 3)
        (Array([0, 1, 2, 3, 4], dtype=int32), Array([1, 4, 7], dtype=int32))
    """
@overload
def argmax(x: ArrayInput, axis: int | None = None, keepdims: bool = False) -> jax.Array:
    """Index of the largest entry along ``axis``, the first in case of ties; NaN counts as largest.

    Without ``axis`` it is the index among all entries in row-major order.

    Example:
        >>> import jax.numpy as jnp
        >>> argmax(jnp.asarray([[1.0, 3.0], [4.0, 2.0]]), axis=1)
        Array([1, 0], dtype=int32)
    """
@overload
def argmax(
    x: Value,
    axis: int | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def argmax_mask(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    smallest: bool = False,
) -> jax.Array:
    """A mask that is true at one entry for each result of ``max``: the first of the largest.

    "First" refers to the row-major order of the reduced axes. NaN counts as largest. With
    ``smallest`` the mask selects the first smallest entry, and NaN counts as smallest.

    Example:
        >>> import jax.numpy as jnp
        >>> argmax_mask(jnp.asarray([1, 3, 3]))
        Array([False,  True, False], dtype=bool)
    """
@overload
def argmax_mask(
    x: Value,
    axis: int | Sequence[int] | None = None,
    smallest: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def argmin(x: ArrayInput, axis: int | None = None, keepdims: bool = False) -> jax.Array:
    """Index of the smallest entry along ``axis``, the first in case of ties; NaN counts as least.

    Without ``axis`` it is the index among all entries in row-major order.

    Example:
        >>> import jax.numpy as jnp
        >>> argmin(jnp.asarray([[1.0, 3.0], [4.0, 2.0]]), axis=1)
        Array([0, 1], dtype=int32)
    """
@overload
def argmin(
    x: Value,
    axis: int | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def argsort(
    x: ArrayInput,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
) -> jax.Array:
    """Indices that sort the entries of ``x`` along ``axis`` in ascending or descending order.

    ``take_along_axis(x, argsort(x, axis=axis), axis=axis)`` is ``sort(x, axis=axis)``, with the
    same conventions. The result has the default integer dtype.

    Source: Python array API standard 2024.12, ``argsort``.

    Example:
        >>> import jax.numpy as jnp
        >>> argsort(jnp.asarray([3.0, 1.0, 2.0]))
        Array([1, 2, 0], dtype=int32)
    """
@overload
def argsort(
    x: Value,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def array_create(
    like: ArrayInput | None = None,
    *,
    capacity: int,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> TensorArray:
    """Creates an empty tensor array with capacity for ``capacity`` elements, all zeros.

    Elements have the shape and dtype of ``like``, unless ``shape`` and ``dtype`` override them.
    Without ``like``, call ``so.sym.array_create`` for a symbol.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> print(so.array_create(x, capacity=4).type)
        lod_tensor_array float32[4,2]
    """
@overload
def array_create(
    like: TensorArray | SelectedRows | ArrayInput | None = None,
    *,
    capacity: int,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> TensorArray: ...
@overload
def array_create(
    like: Value | ArrayInput | None = None,
    *,
    capacity: int,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Value: ...
create_array = array_create
@overload
def array_length(array: ArrayInput) -> jax.Array:
    """The number of elements of ``array``: one more than the highest index that was written.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> int(so.array_length(so.array_write(so.array_create(x, capacity=9), x, 3)).eval(x=1.0))
        4
    """
@overload
def array_length(array: TensorArray | SelectedRows) -> jax.Array: ...
@overload
def array_length(array: Value, *, name: str | None = None) -> Value: ...
lod_array_length = array_length
@overload
def array_read(array: ArrayInput, index: ArrayInput) -> jax.Array:
    """Reads the element of ``array`` at ``index``; zeros if out of range or never written.

    Example:
        >>> import jax.numpy as jnp
        >>> array_read(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), 1)
        Array([3., 4.], dtype=float32)
    """
@overload
def array_read(
    array: TensorArray | SelectedRows | ArrayInput,
    index: TensorArray | SelectedRows | ArrayInput,
) -> jax.Array: ...
@overload
def array_read(
    array: Value | ArrayInput,
    index: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
read_from_array = array_read
@overload
def array_stack(array: ArrayInput) -> jax.Array:
    """Stacks all elements of ``array``, up to its capacity; zeros where unwritten.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> written = so.array_write(so.array_create(x, capacity=3), x, 1)
        >>> so.array_stack(written).eval(x=5.0).tolist()
        [0.0, 5.0, 0.0]
    """
@overload
def array_stack(array: TensorArray | SelectedRows) -> jax.Array: ...
@overload
def array_stack(array: Value, *, name: str | None = None) -> Value: ...
@overload
def array_unstack(x: ArrayInput) -> TensorArray:
    """Creates a full tensor array whose elements are the slices of ``x`` along the first axis.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(3, 2))
        >>> so.array_read(so.array_unstack(x), 1).eval(x=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        Array([3., 4.], dtype=float32)
    """
@overload
def array_unstack(x: TensorArray | SelectedRows) -> TensorArray: ...
@overload
def array_unstack(x: Value, *, name: str | None = None) -> Value: ...
@overload
def array_write(array: ArrayInput, x: ArrayInput, index: ArrayInput) -> Any:
    """Writes ``x`` to ``array`` at ``index``; the length becomes at least ``index + 1``.

    Writes at negative indices or beyond the capacity are dropped. If ``array`` is dense, so is the
    result.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> written = so.array_write(so.array_create(x, capacity=3), x, 1)
        >>> so.array_stack(written).eval(x=[1.0, 2.0]).tolist()
        [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
    """
@overload
def array_write(
    array: TensorArray | SelectedRows | ArrayInput,
    x: TensorArray | SelectedRows | ArrayInput,
    index: TensorArray | SelectedRows | ArrayInput,
) -> Any: ...
@overload
def array_write(
    array: Value | ArrayInput,
    x: Value | ArrayInput,
    index: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
write_to_array = array_write
@overload
def asin(x: ArrayInput) -> jax.Array:
    """Inverse sine, element-wise: the angle in ``[-pi/2, pi/2]`` whose sine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> asin(jnp.asarray([0.0, 1.0]))
        Array([0.       , 1.5707964], dtype=float32)
    """
@overload
def asin(x: SelectedRows) -> Any: ...
@overload
def asin(x: Value, *, name: str | None = None) -> Value: ...
arcsin = asin
@overload
def asinh(x: ArrayInput) -> jax.Array:
    """Inverse hyperbolic sine, element-wise: the number whose hyperbolic sine is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> asinh(jnp.asarray([0.0, jnp.inf]))
        Array([ 0., inf], dtype=float32)
    """
@overload
def asinh(x: SelectedRows) -> Any: ...
@overload
def asinh(x: Value, *, name: str | None = None) -> Value: ...
arcsinh = asinh
@overload
def atan(x: ArrayInput) -> jax.Array:
    """Inverse tangent, element-wise: the angle in ``[-pi/2, pi/2]`` whose tangent is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> atan(jnp.asarray([0.0, jnp.inf]))
        Array([0.       , 1.5707964], dtype=float32)
    """
@overload
def atan(x: SelectedRows) -> Any: ...
@overload
def atan(x: Value, *, name: str | None = None) -> Value: ...
arctan = atan
@overload
def atan2(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Angle in ``[-pi, pi]`` of the point with first coordinate ``y`` and second coordinate ``x``.

    All derivatives at the origin, where they do not exist, are taken as zero, as in ``hypot``.

    Example:
        >>> import jax.numpy as jnp
        >>> atan2(jnp.asarray([0.0, 1.0]), jnp.asarray([1.0, 0.0]))
        Array([0.       , 1.5707964], dtype=float32)
    """
@overload
def atan2(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
arctan2 = atan2
@overload
def atanh(x: ArrayInput) -> jax.Array:
    """Inverse hyperbolic tangent, element-wise: the number whose hyperbolic tangent is ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> atanh(jnp.asarray([0.0, 1.0]))
        Array([ 0., inf], dtype=float32)
    """
@overload
def atanh(x: SelectedRows) -> Any: ...
@overload
def atanh(x: Value, *, name: str | None = None) -> Value: ...
arctanh = atanh
@overload
def attention_factors(
    dropout_seed: ArrayInput,
    shape: Sequence[int],
    dropout: float,
    dtype: DTypeLike = ...,
) -> jax.Array:
    """Factors of the weights of attention under dropout: zero, or ``1 / (1 - dropout)``.

    ``shape`` is that of the weights. ``scaled_dot_product_attention`` uses the same factors for the
    same ``dropout_seed``.

    Example:
        >>> import jax.numpy as jnp
        >>> attention_factors(jnp.asarray([1, 2]), shape=(2, 3), dropout=0.5).shape
        (2, 3)
    """
@overload
def attention_factors(
    dropout_seed: Value,
    shape: Sequence[int],
    dropout: float,
    dtype: DTypeLike = ...,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def attention_gradient(
    query: ArrayInput,
    keys: ArrayInput,
    values: ArrayInput,
    output: ArrayInput,
    logsumexp: ArrayInput,
    cotangent: ArrayInput,
    logsumexp_cotangent: ArrayInput | None = None,
    mask: ArrayInput | None = None,
    bias: ArrayInput | None = None,
    query_lengths: ArrayInput | None = None,
    key_lengths: ArrayInput | None = None,
    dropout_seed: ArrayInput | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    of_bias: bool = False,
) -> tuple[jax.Array, ...]:
    """Gradients of attention with respect to query, keys, values and, if ``of_bias``, the bias.

    ``output`` and ``logsumexp`` are the results of ``scaled_dot_product_attention`` for the other
    inputs and attributes, ``cotangent`` and ``logsumexp_cotangent`` their cotangents. With the
    weights ``P = exp(scores - logsumexp)``, the cotangent of the scores is
    ``P * (cotangent @ values^T - delta)``, where ``delta`` is the sum of ``output * cotangent`` for
    each query, less ``logsumexp_cotangent``. A GPU may compute ``output`` and ``logsumexp`` anew
    instead of reading them.

    Example:
        >>> import jax.numpy as jnp
        >>> one = jnp.ones((1, 1))
        >>> parts = attention_gradient(one, one, one, 0 * one, jnp.ones(1), 2 * one)
        >>> [float(part[0, 0]) for part in parts]
        [2.0, 2.0, 2.0]
    """
@overload
def attention_gradient(
    query: Symbol | ArrayInput,
    keys: Symbol | ArrayInput,
    values: Symbol | ArrayInput,
    output: Symbol | ArrayInput,
    logsumexp: Symbol | ArrayInput,
    cotangent: Symbol | ArrayInput,
    logsumexp_cotangent: Symbol | ArrayInput | None = None,
    mask: Symbol | ArrayInput | None = None,
    bias: Symbol | ArrayInput | None = None,
    query_lengths: Symbol | ArrayInput | None = None,
    key_lengths: Symbol | ArrayInput | None = None,
    dropout_seed: Symbol | ArrayInput | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    of_bias: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def attention_gradient(
    query: Value | ArrayInput,
    keys: Value | ArrayInput,
    values: Value | ArrayInput,
    output: Value | ArrayInput,
    logsumexp: Value | ArrayInput,
    cotangent: Value | ArrayInput,
    logsumexp_cotangent: Value | ArrayInput | None = None,
    mask: Value | ArrayInput | None = None,
    bias: Value | ArrayInput | None = None,
    query_lengths: Value | ArrayInput | None = None,
    key_lengths: Value | ArrayInput | None = None,
    dropout_seed: Value | ArrayInput | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    of_bias: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, ...]: ...
@overload
def attention_tangent(
    query: ArrayInput,
    keys: ArrayInput,
    values: ArrayInput,
    output: ArrayInput,
    logsumexp: ArrayInput,
    query_tangent: ArrayInput | None = None,
    keys_tangent: ArrayInput | None = None,
    values_tangent: ArrayInput | None = None,
    bias_tangent: ArrayInput | None = None,
    mask: ArrayInput | None = None,
    bias: ArrayInput | None = None,
    query_lengths: ArrayInput | None = None,
    key_lengths: ArrayInput | None = None,
    dropout_seed: ArrayInput | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
) -> tuple[jax.Array, jax.Array]:
    """Tangents of attention and of its ``logsumexp``, linear in those of its inputs.

    ``output`` and ``logsumexp`` are the results of ``scaled_dot_product_attention`` for the other
    inputs and attributes. With the weights ``P = exp(scores - logsumexp)`` and the tangents ``T``
    of the scores, the tangent of ``logsumexp`` is the sum of ``P * T`` for each query, and that of
    ``output`` is ``(P * T) @ values + P @ values_tangent - output * sum(P * T)``.

    Example:
        >>> import jax.numpy as jnp
        >>> one = jnp.ones((1, 1))
        >>> moved, total = attention_tangent(one, one, 3 * one, one, jnp.ones(1), 2 * one)
        >>> float(moved[0, 0]), float(total[0])
        (4.0, 2.0)
    """
@overload
def attention_tangent(
    query: Symbol | ArrayInput,
    keys: Symbol | ArrayInput,
    values: Symbol | ArrayInput,
    output: Symbol | ArrayInput,
    logsumexp: Symbol | ArrayInput,
    query_tangent: Symbol | ArrayInput | None = None,
    keys_tangent: Symbol | ArrayInput | None = None,
    values_tangent: Symbol | ArrayInput | None = None,
    bias_tangent: Symbol | ArrayInput | None = None,
    mask: Symbol | ArrayInput | None = None,
    bias: Symbol | ArrayInput | None = None,
    query_lengths: Symbol | ArrayInput | None = None,
    key_lengths: Symbol | ArrayInput | None = None,
    dropout_seed: Symbol | ArrayInput | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def attention_tangent(
    query: Value | ArrayInput,
    keys: Value | ArrayInput,
    values: Value | ArrayInput,
    output: Value | ArrayInput,
    logsumexp: Value | ArrayInput,
    query_tangent: Value | ArrayInput | None = None,
    keys_tangent: Value | ArrayInput | None = None,
    values_tangent: Value | ArrayInput | None = None,
    bias_tangent: Value | ArrayInput | None = None,
    mask: Value | ArrayInput | None = None,
    bias: Value | ArrayInput | None = None,
    query_lengths: Value | ArrayInput | None = None,
    key_lengths: Value | ArrayInput | None = None,
    dropout_seed: Value | ArrayInput | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
@overload
def attention_weights(
    query: ArrayInput,
    keys: ArrayInput,
    logsumexp: ArrayInput,
    mask: ArrayInput | None = None,
    bias: ArrayInput | None = None,
    query_lengths: ArrayInput | None = None,
    key_lengths: ArrayInput | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | Sequence[int] | None = None,
) -> jax.Array:
    """Weights of attention, ``exp(scores - logsumexp)``: one for each query and key.

    They are zero where a query does not see a key, and computed in at least float32. The inputs and
    attributes are those of ``scaled_dot_product_attention``.

    Example:
        >>> import jax.numpy as jnp
        >>> attention_weights(jnp.ones((1, 1)), jnp.ones((2, 1)), jnp.ones(1))
        Array([[1., 1.]], dtype=float32)
    """
@overload
def attention_weights(
    query: Value | ArrayInput,
    keys: Value | ArrayInput,
    logsumexp: Value | ArrayInput,
    mask: Value | ArrayInput | None = None,
    bias: Value | ArrayInput | None = None,
    query_lengths: Value | ArrayInput | None = None,
    key_lengths: Value | ArrayInput | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def average_pooling(
    data: ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
) -> jax.Array:
    """Average pooling: the mean of each window over one to three spatial axes.

    ``stride`` defaults to ``kernel``. ``global_pool`` makes the window cover the whole spatial
    axes. Padding counts as zeros, or not at all without ``count_include_pad``. With ``ceil_mode`` a
    last window may extend beyond the padding, where nothing counts, to cover remaining entries; as
    in PyTorch it is omitted if it would cover only padding. (MXNet's ``full`` keeps it.)

    Example:
        >>> import jax.numpy as jnp
        >>> average_pooling(jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]]), kernel=2)
        Array([[[2., 1.]]], dtype=float32)
    """
@overload
def average_pooling(
    data: Value,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def average_pooling_gradient(
    cotangent: ArrayInput,
    shape: Sequence[int],
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
) -> jax.Array:
    """Adjoint of ``average_pooling`` for data of ``shape``: spreads each mean over its window.

    Example:
        >>> import jax.numpy as jnp
        >>> average_pooling_gradient(jnp.asarray([[[2.0, 4.0]]]), shape=(1, 1, 4), kernel=2)
        Array([[[1., 1., 2., 2.]]], dtype=float32)
    """
@overload
def average_pooling_gradient(
    cotangent: Value,
    shape: Sequence[int],
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def band_part(x: ArrayInput, lower: int | None = None, upper: int | None = None) -> jax.Array:
    """Keeps the entries of matrices within a band of diagonals and sets the others to zero.

    The band is where ``i - j <= lower`` and ``j - i <= upper``; None sets no bound. So ``upper=0``
    gives the lower triangle, ``upper=-1`` the lower triangle without the diagonal, and zero for
    both the diagonal.

    Example:
        >>> import jax.numpy as jnp
        >>> band_part(jnp.asarray([[1, 2], [3, 4]]), upper=0)
        Array([[1, 0],
               [3, 4]], dtype=int32)
    """
@overload
def band_part(
    x: Value,
    lower: int | None = None,
    upper: int | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def batch_dot(
    a: ArrayInput,
    b: ArrayInput,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> jax.Array:
    """Batched matrix product: ``out[n] = a[n] @ b[n]``.

    ``transpose_a`` and ``transpose_b`` transpose the matrices first. All axes but the last two are
    batch axes and must be the same in both; ``matmul`` broadcasts them.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.asarray([[[1.0, 2.0]], [[3.0, 4.0]]])
        >>> batch_dot(x, x, transpose_b=True)
        Array([[[ 5.]],
        <BLANKLINE>
               [[25.]]], dtype=float32)
    """
@overload
def batch_dot(
    a: Value | ArrayInput,
    b: Value | ArrayInput,
    transpose_a: bool = False,
    transpose_b: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
bmm = batch_dot
@overload
def batch_norm(
    data: ArrayInput,
    gamma: ArrayInput,
    beta: ArrayInput,
    moving_mean: ArrayInput,
    moving_var: ArrayInput,
    axis: int = 1,
    eps: float = 1e-05,
    momentum: float = 0.9,
    *,
    training: bool = ...,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Batch normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per channel.

    In training, the mean and the biased variance are those of the batch over all axes but ``axis``,
    and ``moving = momentum * moving + (1 - momentum) * batch`` updates the running statistics. In
    prediction the running statistics are used and left unchanged. Statistics are computed in the
    wider of the dtypes of ``data`` and the running statistics; ``out`` has the dtype of ``data``.
    The statistics of an empty batch are NaN.

    Source: Ioffe and Szegedy, Batch normalization: accelerating deep network training by reducing
    internal covariate shift, 2015.

    Example:
        >>> import jax.numpy as jnp
        >>> one, zero = jnp.ones(1), jnp.zeros(1)
        >>> data = jnp.asarray([[1.0], [3.0]])
        >>> out, moving_mean, moving_var = batch_norm(
        ...     data, one, zero, zero, one, training=True, eps=0.0
        ... )
        >>> out
        Array([[-1.],
               [ 1.]], dtype=float32)
        >>> moving_mean
        Array([0.2], dtype=float32)
    """
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
    training: bool = ...,
) -> NDArray: ...
@overload
def batch_norm(
    data: Symbol | ArrayInput,
    gamma: Symbol | ArrayInput = ...,
    beta: Symbol | ArrayInput = ...,
    moving_mean: Symbol | ArrayInput = ...,
    moving_var: Symbol | ArrayInput = ...,
    axis: int = 1,
    eps: float = 1e-05,
    momentum: float = 0.9,
    *,
    training: bool = ...,
    gamma_initial: Any = None,
    beta_initial: Any = None,
    moving_mean_initial: Any = None,
    moving_var_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def batch_norm(
    data: Variable | ArrayInput,
    gamma: Variable | ArrayInput = ...,
    beta: Variable | ArrayInput = ...,
    moving_mean: Variable | ArrayInput = ...,
    moving_var: Variable | ArrayInput = ...,
    axis: int = 1,
    eps: float = 1e-05,
    momentum: float = 0.9,
    *,
    training: bool = ...,
    gamma_initial: Any = None,
    beta_initial: Any = None,
    moving_mean_initial: Any = None,
    moving_var_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def batch_norm(
    data: Value | ArrayInput,
    gamma: Value | ArrayInput,
    beta: Value | ArrayInput,
    moving_mean: Value | ArrayInput,
    moving_var: Value | ArrayInput,
    axis: int = 1,
    eps: float = 1e-05,
    momentum: float = 0.9,
    *,
    training: bool = ...,
    name: str | None = None,
) -> Value: ...
@overload
def bernoulli_log_density(x: ArrayInput, logits: ArrayInput) -> jax.Array:
    """Log density of the Bernoulli distribution: ``x log(p) + (1 - x) log(1 - p)``.

    ``p = sigmoid(logits)``, and ``x`` is 0 or 1. It is computed as
    ``x logits - log(1 + exp(logits))``, such that infinite logits give the logarithms 0 and minus
    infinity. Between 0 and 1 the same formula holds.

    Example:
        >>> import jax.numpy as jnp
        >>> bernoulli_log_density(jnp.asarray([1, 0]), jnp.asarray([1000.0, 1000.0]))
        Array([    0., -1000.], dtype=float32)
    """
@overload
def bernoulli_log_density(
    x: Value | ArrayInput,
    logits: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def bessel_i(x: ArrayInput, n: int) -> jax.Array:
    """Modified Bessel function of the first kind and of integer order ``n``, ``I_n(x)``.

    The order may be up to 48; that of a derivative of order ``k`` is ``n + k``.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_i(jnp.asarray([0.0, 1.0]), n=2)
        Array([0.       , 0.1357...], dtype=float32)
    """
@overload
def bessel_i(x: Value, n: int, *, name: str | None = None) -> Value: ...
@overload
def bessel_i0(x: ArrayInput) -> jax.Array:
    """Modified Bessel function of the first kind of order 0, which grows like ``exp(|x|)``.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_i0(jnp.asarray([0.0, -jnp.inf]))
        Array([ 1., inf], dtype=float32)
    """
@overload
def bessel_i0(x: Value, *, name: str | None = None) -> Value: ...
i0 = bessel_i0
@overload
def bessel_i0e(x: ArrayInput) -> jax.Array:
    """Exponentially scaled modified Bessel function of order 0: ``exp(-|x|) bessel_i0(x)``.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_i0e(jnp.asarray([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
@overload
def bessel_i0e(x: Value, *, name: str | None = None) -> Value: ...
i0e = bessel_i0e
@overload
def bessel_i1(x: ArrayInput) -> jax.Array:
    """Modified Bessel function of the first kind of order 1: the derivative of ``bessel_i0``.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_i1(jnp.asarray([0.0, -jnp.inf]))
        Array([  0., -inf], dtype=float32)
    """
@overload
def bessel_i1(x: Value, *, name: str | None = None) -> Value: ...
i1 = bessel_i1
@overload
def bessel_i1e(x: ArrayInput) -> jax.Array:
    """Exponentially scaled modified Bessel function of order 1: ``exp(-|x|) bessel_i1(x)``.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_i1e(jnp.asarray([0.0, jnp.inf]))
        Array([0., 0.], dtype=float32)
    """
@overload
def bessel_i1e(x: Value, *, name: str | None = None) -> Value: ...
i1e = bessel_i1e
@overload
def bessel_ie(x: ArrayInput, n: int) -> jax.Array:
    """Exponentially scaled modified Bessel function, ``exp(-|x|) I_n(x)``; zero at infinity.

    The order may be up to 48; that of a derivative of order ``k`` is ``n + k``.

    At zero, where ``|x|`` has no derivative, that is taken as zero.

    Example:
        >>> import jax.numpy as jnp
        >>> bessel_ie(jnp.asarray([0.0, jnp.inf]), n=2)
        Array([0., 0.], dtype=float32)
    """
@overload
def bessel_ie(x: Value, n: int, *, name: str | None = None) -> Value: ...
@overload
def beta_log_density(x: ArrayInput, a: ArrayInput, b: ArrayInput) -> jax.Array:
    """Log density of the beta distribution: ``(a - 1) log(x) + (b - 1) log(1 - x) - log B(a, b)``.

    It is defined for ``0 <= x <= 1``, with ``B(a, b) = Gamma(a) Gamma(b) / Gamma(a + b)``.

    Example:
        >>> import jax.numpy as jnp
        >>> beta_log_density(jnp.asarray([0.5, 2.0]), 2.0, 2.0)
        Array([0.405..., -inf], dtype=float32)
    """
@overload
def beta_log_density(
    x: Value | ArrayInput,
    a: Value | ArrayInput,
    b: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def bilinear_sampler(data: ArrayInput, grid: ArrayInput) -> jax.Array:
    """Samples ``data`` at the points of ``grid`` by bilinear interpolation.

    ``data`` has shape ``(batch, channels, height, width)``; ``grid``, of shape
    ``(batch, 2, h, w)``, holds x, then y, from -1 at the center of the first pixel of an axis to 1
    at the center of the last; the result has shape ``(batch, channels, h, w)``. Pixels outside
    count as zero, so the result falls to zero within one pixel around the image. Where a sample
    lies exactly on a pixel, the derivative with respect to its position is the one-sided derivative
    to the right and downwards.

    ``out[n, c, i, j] = sum over rows r and columns s of data[n, c, r, s] * max(0, 1 - |y - r|) *
    max(0, 1 - |x - s|)``

    Source: Jaderberg et al. 2015, "Spatial Transformer Networks", equation 5.

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.asarray([[[[0.0, 1.0], [2.0, 3.0]]]])
        >>> bilinear_sampler(image, jnp.zeros((1, 2, 1, 1)))
        Array([[[[1.5]]]], dtype=float32)
    """
@overload
def bilinear_sampler(
    data: Value | ArrayInput,
    grid: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
BilinearSampler = bilinear_sampler
@overload
def bitwise_and(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Bitwise and of two arrays; for booleans their logical and.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_and(jnp.asarray([6, -1]), 3)
        Array([2, 3], dtype=int32)
    """
@overload
def bitwise_and(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def bitwise_invert(x: ArrayInput) -> jax.Array:
    """Inverts each bit of ``x``: ``-x - 1`` for signed integers, logical not for booleans.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_invert(jnp.asarray([0, 5]))
        Array([-1, -6], dtype=int32)
    """
@overload
def bitwise_invert(x: Value, *, name: str | None = None) -> Value: ...
bitwise_not = bitwise_invert
invert = bitwise_invert
@overload
def bitwise_left_shift(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Shifts bits to the left: ``x 2^y``. Bits shifted out are lost; ``y`` must not be negative.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_left_shift(jnp.asarray([1, -3]), 2)
        Array([  4, -12], dtype=int32)
    """
@overload
def bitwise_left_shift(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
left_shift = bitwise_left_shift
shift_left = bitwise_left_shift
@overload
def bitwise_or(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Bitwise or of two arrays; for booleans their logical or.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_or(jnp.asarray([6, 0]), 3)
        Array([7, 3], dtype=int32)
    """
@overload
def bitwise_or(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def bitwise_right_shift(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Shifts bits to the right: ``floor(x / 2^y)``. The sign is kept; ``y`` must not be negative.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_right_shift(jnp.asarray([9, -9]), 2)
        Array([ 2, -3], dtype=int32)
    """
@overload
def bitwise_right_shift(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
right_shift = bitwise_right_shift
@overload
def bitwise_xor(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Bitwise exclusive or of two arrays; for booleans whether they differ.

    Example:
        >>> import jax.numpy as jnp
        >>> bitwise_xor(jnp.asarray([6, 3]), 3)
        Array([5, 0], dtype=int32)
    """
@overload
def bitwise_xor(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def boolean_mask(
    x: ArrayInput,
    mask: ArrayInput,
    size: int,
    fill_value: float = 0.0,
    axis: int = 0,
) -> jax.Array:
    """The entries of ``x`` along ``axis`` where ``mask`` is true, in order, ``size`` of them.

    If fewer are true, the rest of the result is ``fill_value``; if more are true, the last ones are
    dropped and have gradient zero. ``sum(mask)`` is the number of true entries. ``mask`` has one
    axis; a number counts as true if it is not zero.

    Example:
        >>> import jax.numpy as jnp
        >>> boolean_mask(jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray([True, False, True]), size=4)
        Array([1., 3., 0., 0.], dtype=float32)
    """
@overload
def boolean_mask(
    x: Value | ArrayInput,
    mask: Value | ArrayInput,
    size: int,
    fill_value: float = 0.0,
    axis: int = 0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def broadcast_like(x: ArrayInput, like: ArrayInput) -> jax.Array:
    """Broadcasts ``x`` to the shape of ``like`` by NumPy's rules: axes are aligned at the end.

    Only the shape of ``like`` matters; its gradient is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> broadcast_like(jnp.asarray([1, 2]), jnp.zeros((2, 2)))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
@overload
def broadcast_like(
    x: Value | ArrayInput,
    like: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
expand_as = broadcast_like
@overload
def broadcast_to(x: ArrayInput, shape: int | Sequence[int]) -> jax.Array:
    """Broadcasts ``x`` to ``shape`` by NumPy's rules: axes are aligned at the end.

    Example:
        >>> import jax.numpy as jnp
        >>> broadcast_to(jnp.asarray([1, 2]), shape=(2, 2))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
@overload
def broadcast_to(x: Value, shape: int | Sequence[int], *, name: str | None = None) -> Value: ...
@overload
def call(
    *operands: ArrayLike,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
) -> tuple[jax.Array, ...]:
    """Returns the outputs of ``body``, whose derivative is that of a rule if one is passed.

    Args:
        operands: the inputs of ``body``.
        body: the function.
        jvp: its forward rule: takes the operands and a tangent of each operand that is inexact, and
            returns a tangent of each output that is inexact. It must be linear in the tangents.
        vjp: its reverse rule: takes the operands and a cotangent of each output that is inexact,
            and returns a gradient of each operand that is inexact.
        value: the outputs as the rule computes them. A derivative reads them instead of those of
            ``body``, and the rule is the derivative of the first order alone: derivatives of higher
            orders are those of ``value`` and of the rule, as in JAX. Without it, the rule is the
            derivative at every order.
        differentiated: whether the call stands in a graph of which a derivative is being taken, and
            returns its ``value``.

    This corresponds to ``jax.custom_jvp`` and ``jax.custom_vjp``.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> clipped = so.body(lambda x, d: so.clip(d, low=-1.0, high=1.0), ((), "float32"),
        ...     ((), "float32"))
        >>> square = so.body(lambda x: x * x, ((), "float32"))
        >>> (y,) = so.call(x, body=square, vjp=clipped)
        >>> float(y.eval(x=3.0)), float(so.grad(2.0 * y, x).eval(x=3.0))
        (9.0, 1.0)
    """
@overload
def call(
    operands: Sequence[ArrayLike],
    *,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
) -> tuple[jax.Array, ...]: ...
@overload
def call(
    *operands: TensorArray | SelectedRows | ArrayLike,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
) -> Any: ...
@overload
def call(
    operands: Sequence[TensorArray | SelectedRows | ArrayLike],
    *,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
) -> Any: ...
@overload
def call(
    *operands: NDArray | ArrayLike,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
) -> tuple[NDArray, ...]: ...
@overload
def call(
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
) -> tuple[NDArray, ...]: ...
@overload
def call(
    *operands: Symbol | ArrayLike,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def call(
    operands: Sequence[Symbol | ArrayLike],
    *,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def call(
    *operands: Variable | ArrayLike,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def call(
    operands: Sequence[Variable | ArrayLike],
    *,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def call(
    *operands: Var | ArrayLike,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def call(
    operands: Sequence[Var | ArrayLike],
    *,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def cast(x: ArrayInput, dtype: DTypeLike) -> jax.Array:
    """Converts the entries of ``x`` to ``dtype``.

    Floating to integer rounds towards zero; complex to real keeps the real part. Without JAX's x64
    flag, a 64-bit dtype becomes its 32-bit counterpart.

    Example:
        >>> import jax.numpy as jnp
        >>> cast(jnp.asarray([1.7, -1.7]), dtype="int32")
        Array([ 1, -1], dtype=int32)
    """
@overload
def cast(x: SelectedRows, dtype: DTypeLike) -> Any: ...
@overload
def cast(x: Value, dtype: DTypeLike, *, name: str | None = None) -> Value: ...
Cast = cast
astype = cast
@overload
def cauchy_log_density(x: ArrayInput, loc: ArrayInput, scale: ArrayInput) -> jax.Array:
    """Log density of the Cauchy distribution with median ``loc``.

    ``-log(pi scale (1 + z^2))`` with ``z = (x - loc) / scale``.

    Example:
        >>> import jax.numpy as jnp
        >>> cauchy_log_density(jnp.asarray([0.0]), 0.0, 1.0)
        Array([-1.144...], dtype=float32)
    """
@overload
def cauchy_log_density(
    x: Value | ArrayInput,
    loc: Value | ArrayInput,
    scale: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def cbrt(x: ArrayInput) -> jax.Array:
    """Cube root, element-wise; negative for negative ``x``. The derivative at zero is infinite.

    Example:
        >>> import jax.numpy as jnp
        >>> cbrt(jnp.asarray([0.0, -8.0]))
        Array([ 0., -2.], dtype=float32)
    """
@overload
def cbrt(x: SelectedRows) -> Any: ...
@overload
def cbrt(x: Value, *, name: str | None = None) -> Value: ...
@overload
def ceil(x: ArrayInput) -> jax.Array:
    """Ceiling, element-wise: the least integer that is at least ``x``. Integers are unchanged.

    Example:
        >>> import jax.numpy as jnp
        >>> ceil(jnp.asarray([1.5, -1.5]))
        Array([ 2., -1.], dtype=float32)
    """
@overload
def ceil(x: SelectedRows) -> Any: ...
@overload
def ceil(x: Value, *, name: str | None = None) -> Value: ...
@overload
def celu(x: ArrayInput, alpha: float = 1.0) -> jax.Array:
    """Continuously differentiable exponential linear unit, element-wise.

    ``max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1)``, whose derivative is continuous at zero.

    Source: Barron, "Continuously differentiable exponential linear units" (2017).

    Example:
        >>> import jax.numpy as jnp
        >>> celu(jnp.asarray([-jnp.inf, 1.0]))
        Array([-1.,  1.], dtype=float32)
    """
@overload
def celu(x: SelectedRows, alpha: float = 1.0) -> Any: ...
@overload
def celu(x: Value, alpha: float = 1.0, *, name: str | None = None) -> Value: ...
@overload
def chain_sum(x: ArrayLike, *weights: ArrayLike, reverse: bool = False) -> jax.Array:
    """Sums along chains of states: ``x`` plus weighted results of the step before.

    ``out[t, n, s] = x[t, n, s] + sum over k of weights[k][t, n, s] * out[t - 1, n, s - k]``: the
    k-th weights lead from a state to the k-th state after it. With ``reverse`` the sum runs against
    the arrows: ``out[t, n, s] = x[t, n, s] + sum over k of weights[k][t + 1, n, s + k] * out[t + 1,
    n, s + k]``. Each direction is the adjoint of the other in ``x``. Half precision is computed in
    float32.

    Example:
        >>> import jax.numpy as jnp
        >>> chain_sum(jnp.asarray([[[1.0, 0.0]], [[0.0, 0.0]]]), jnp.ones((2, 1, 2)) / 2)
        Array([[[1. , 0. ]],
        <BLANKLINE>
               [[0.5, 0. ]]], dtype=float32)
    """
@overload
def chain_sum(
    x: ArrayLike,
    weights: Sequence[ArrayLike],
    *,
    reverse: bool = False,
) -> jax.Array: ...
@overload
def chain_sum(
    x: NDArray | ArrayLike,
    *weights: NDArray | ArrayLike,
    reverse: bool = False,
) -> NDArray: ...
@overload
def chain_sum(
    x: NDArray | ArrayLike,
    weights: Sequence[NDArray | ArrayLike],
    *,
    reverse: bool = False,
) -> NDArray: ...
@overload
def chain_sum(
    x: Symbol | ArrayLike,
    *weights: Symbol | ArrayLike,
    reverse: bool = False,
    name: str | None = None,
) -> Symbol: ...
@overload
def chain_sum(
    x: Symbol | ArrayLike,
    weights: Sequence[Symbol | ArrayLike],
    *,
    reverse: bool = False,
    name: str | None = None,
) -> Symbol: ...
@overload
def chain_sum(
    x: Variable | ArrayLike,
    *weights: Variable | ArrayLike,
    reverse: bool = False,
    name: str | None = None,
) -> Variable: ...
@overload
def chain_sum(
    x: Variable | ArrayLike,
    weights: Sequence[Variable | ArrayLike],
    *,
    reverse: bool = False,
    name: str | None = None,
) -> Variable: ...
@overload
def chain_sum(
    x: Var | ArrayLike,
    *weights: Var | ArrayLike,
    reverse: bool = False,
    name: str | None = None,
) -> Var: ...
@overload
def chain_sum(
    x: Var | ArrayLike,
    weights: Sequence[Var | ArrayLike],
    *,
    reverse: bool = False,
    name: str | None = None,
) -> Var: ...
@overload
def cholesky(a: ArrayInput, upper: bool = False) -> jax.Array:
    """Cholesky factor of a positive definite matrix: lower triangular with ``out @ out^H = a``.

    With ``upper`` it is the conjugate transpose: ``out^H @ out = a``. The diagonal is real. The
    Hermitian part ``(a + a^H) / 2`` is factored, so the gradient of a real matrix is symmetric, and
    that of a complex matrix is the conjugate of a Hermitian matrix, as is JAX's convention. Where
    that part is not positive definite the result is NaN. Half precision is computed in single
    precision.

    Source: Murray, Differentiation of the Cholesky decomposition, 2016, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> cholesky(jnp.asarray([[4.0, 2.0], [2.0, 2.0]]))
        Array([[2., 0.],
               [1., 1.]], dtype=float32)
    """
@overload
def cholesky(a: Value, upper: bool = False, *, name: str | None = None) -> Value: ...
linalg_potrf = cholesky
potrf = cholesky
@overload
def choose(
    when_training: ArrayInput,
    otherwise: ArrayInput,
    *,
    training: bool = ...,
) -> jax.Array:
    """Selects one value in training and another in prediction; only the selected one is computed.

    Example:
        >>> import jax.numpy as jnp
        >>> choose(jnp.asarray([1.0]), jnp.asarray([2.0]), training=False)
        Array([2.], dtype=float32)
    """
@overload
def choose(
    when_training: Value | ArrayInput,
    otherwise: Value | ArrayInput,
    *,
    training: bool = ...,
    name: str | None = None,
) -> Value: ...
@overload
def clip(
    x: ArrayInput,
    min: ArrayInput | None = None,
    max: ArrayInput | None = None,
    low: float | None = None,
    high: float | None = None,
    ties: Literal['split', 'first', 'last'] = 'first',
) -> jax.Array:
    """Clips ``x`` to bounds: ``minimum(maximum(x, min), max)``; a bound of None has no effect.

    A bound is either an array, ``min`` or ``max``, which broadcasts and promotes as in a sum, or a
    constant number, ``low`` or ``high``, which leaves the dtype that of ``x``. Where ``min``
    exceeds ``max``, the result is ``max``.

    The gradient flows to a bound where it is active, and to ``x`` elsewhere. Where ``x`` equals a
    bound, ``ties`` determines which of them receives it: ``x`` with ``"first"``, as in PyTorch,
    MXNet and TensorFlow; the bound with ``"last"``, so that ``x`` receives none, as in Paddle; each
    half of it with ``"split"``, as in JAX.

    Example:
        >>> import jax.numpy as jnp
        >>> clip(jnp.asarray([-2.0, 0.5, 2.0]), low=-1.0, high=1.0)
        Array([-1. ,  0.5,  1. ], dtype=float32)
        >>> clip(jnp.asarray([-2.0, 0.5, 2.0]), jnp.asarray([0.0, 1.0, -1.0]))
        Array([0., 1., 2.], dtype=float32)
    """
@overload
def clip(
    x: SelectedRows | ArrayInput,
    min: SelectedRows | ArrayInput | None = None,
    max: SelectedRows | ArrayInput | None = None,
    low: float | None = None,
    high: float | None = None,
    ties: Literal['split', 'first', 'last'] = 'first',
) -> Any: ...
@overload
def clip(
    x: Value | ArrayInput,
    min: Value | ArrayInput | None = None,
    max: Value | ArrayInput | None = None,
    low: float | None = None,
    high: float | None = None,
    ties: Literal['split', 'first', 'last'] = 'first',
    *,
    name: str | None = None,
) -> Value: ...
clip_by_value = clip
@overload
def clip_by_global_norm(*xs: ArrayLike, max_norm: float) -> tuple[jax.Array, ...]:
    """Scales all arrays together if their ``global_norm`` exceeds ``max_norm``.

    Each is multiplied by ``max_norm / norm`` (Pascanu et al., "On the difficulty of training
    recurrent neural networks", 2013). Arrays may be ``SelectedRows``, and remain so; rows that are
    named twice count as their sum.

    Example:
        >>> import jax.numpy as jnp
        >>> clip_by_global_norm(jnp.asarray([3.0]), jnp.asarray(4.0), max_norm=1.0)
        (Array([0.6], dtype=float32), Array(0.8, dtype=float32))
    """
@overload
def clip_by_global_norm(xs: Sequence[ArrayLike], *, max_norm: float) -> tuple[jax.Array, ...]: ...
@overload
def clip_by_global_norm(*xs: SelectedRows | ArrayLike, max_norm: float) -> Any: ...
@overload
def clip_by_global_norm(xs: Sequence[SelectedRows | ArrayLike], *, max_norm: float) -> Any: ...
@overload
def clip_by_global_norm(*xs: NDArray | ArrayLike, max_norm: float) -> tuple[NDArray, ...]: ...
@overload
def clip_by_global_norm(
    xs: Sequence[NDArray | ArrayLike],
    *,
    max_norm: float,
) -> tuple[NDArray, ...]: ...
@overload
def clip_by_global_norm(
    *xs: Symbol | ArrayLike,
    max_norm: float,
    name: str | None = None,
) -> Symbol: ...
@overload
def clip_by_global_norm(
    xs: Sequence[Symbol | ArrayLike],
    *,
    max_norm: float,
    name: str | None = None,
) -> Symbol: ...
@overload
def clip_by_global_norm(
    *xs: Variable | ArrayLike,
    max_norm: float,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def clip_by_global_norm(
    xs: Sequence[Variable | ArrayLike],
    *,
    max_norm: float,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def clip_by_global_norm(
    *xs: Var | ArrayLike,
    max_norm: float,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def clip_by_global_norm(
    xs: Sequence[Var | ArrayLike],
    *,
    max_norm: float,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def clip_by_norm(x: ArrayInput, max_norm: float) -> jax.Array:
    """Scales ``x`` to norm ``max_norm`` if its norm is larger: ``x * max_norm / |x|``.

    ``x`` may be ``SelectedRows``; rows that are named twice count as their sum.

    Example:
        >>> import jax.numpy as jnp
        >>> clip_by_norm(jnp.asarray([3.0, 4.0]), max_norm=1.0)
        Array([0.6, 0.8], dtype=float32)
    """
@overload
def clip_by_norm(x: SelectedRows, max_norm: float) -> Any: ...
@overload
def clip_by_norm(x: Value, max_norm: float, *, name: str | None = None) -> Value: ...
@overload
def cofactor(a: ArrayInput, factors: ArrayInput, permutation: ArrayInput) -> jax.Array:
    """Cofactors of a matrix: ``(-1)^(i + j)`` times the determinant without row i and column j.

    ``factors`` and ``permutation`` are the residuals that ``det`` and ``solve`` keep for ``a``;
    they carry no derivative. Where ``a`` is regular the result is ``det(a) inv(a)^T``. Where a
    pivot is zero it is computed from singular values; its derivative is, too, where a pivot is
    close to zero.

    Example:
        >>> import registry
        >>> import jax.numpy as jnp
        >>> a = jnp.asarray([[2.0, 1.0], [4.0, 2.0]])
        >>> _, factors, permutation = registry.get("det").revealed(a)
        >>> print(cofactor(a, factors, permutation).round(4))
        [[ 2. -4.]
         [-1.  2.]]
    """
@overload
def cofactor(
    a: Value | ArrayInput,
    factors: Value | ArrayInput,
    permutation: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def cofactor_change(
    a: ArrayInput,
    factors: ArrayInput,
    permutation: ArrayInput,
    direction: ArrayInput,
) -> jax.Array:
    """Directional derivative of the cofactors of ``a``.

    With the cofactors ``M`` and the direction ``D`` it is ``(<M, D> M - M D^T M) / det(a)``. Where
    the smallest pivot is negligible relative to the largest, it is computed from singular values
    without a division. ``factors`` and ``permutation`` are as in ``cofactor``.

    Example:
        >>> import registry
        >>> import jax.numpy as jnp
        >>> a = jnp.zeros((2, 2))
        >>> _, factors, permutation = registry.get("det").revealed(a)
        >>> direction = jnp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> print(cofactor_change(a, factors, permutation, direction).round(4))
        [[ 4. -3.]
         [-2.  1.]]
    """
@overload
def cofactor_change(
    a: Value | ArrayInput,
    factors: Value | ArrayInput,
    permutation: Value | ArrayInput,
    direction: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def col2im(
    x: ArrayInput,
    output_size: Sequence[int],
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
) -> jax.Array:
    """Folds columns into images by summing overlapping windows: the adjoint of ``im2col``.

    ``x`` has the shape that ``im2col`` gives for images with spatial lengths ``output_size``; the
    other attributes are those of ``im2col``. Entries that several windows cover are added; entries
    in the padding are dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> col2im(jnp.asarray([[[1, 2, 3], [10, 20, 30]]]), output_size=(4,), kernel=2)
        Array([[[ 1, 12, 23, 30]]], dtype=int32)
    """
@overload
def col2im(
    x: Value,
    output_size: Sequence[int],
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def concat(*xs: ArrayLike, axis: int = 0) -> jax.Array:
    """Concatenates arrays along an existing axis.

    Example:
        >>> import jax.numpy as jnp
        >>> concat(jnp.asarray([1, 2]), jnp.asarray([3]))
        Array([1, 2, 3], dtype=int32)
    """
@overload
def concat(xs: Sequence[ArrayLike], *, axis: int = 0) -> jax.Array: ...
@overload
def concat(*xs: NDArray | ArrayLike, axis: int = 0) -> NDArray: ...
@overload
def concat(xs: Sequence[NDArray | ArrayLike], *, axis: int = 0) -> NDArray: ...
@overload
def concat(*xs: Symbol | ArrayLike, axis: int = 0, name: str | None = None) -> Symbol: ...
@overload
def concat(
    xs: Sequence[Symbol | ArrayLike],
    *,
    axis: int = 0,
    name: str | None = None,
) -> Symbol: ...
@overload
def concat(*xs: Variable | ArrayLike, axis: int = 0, name: str | None = None) -> Variable: ...
@overload
def concat(
    xs: Sequence[Variable | ArrayLike],
    *,
    axis: int = 0,
    name: str | None = None,
) -> Variable: ...
@overload
def concat(*xs: Var | ArrayLike, axis: int = 0, name: str | None = None) -> Var: ...
@overload
def concat(xs: Sequence[Var | ArrayLike], *, axis: int = 0, name: str | None = None) -> Var: ...
concatenate = concat
@overload
def conj(x: ArrayInput) -> jax.Array:
    """Complex conjugate of ``x``; ``x`` itself if it is real.

    Example:
        >>> import jax.numpy as jnp
        >>> conj(jnp.asarray([1 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
@overload
def conj(x: SelectedRows) -> Any: ...
@overload
def conj(x: Value, *, name: str | None = None) -> Value: ...
conjugate = conj
@overload
def constant_schedule(step: ArrayInput, value: float) -> jax.Array:
    """``value`` at every step.

    As in every schedule, ``step`` is the number of previous steps: zero at the first one. It may be
    an array, and the result has its shape.

    Example:
        >>> import jax.numpy as jnp
        >>> constant_schedule(jnp.asarray([0, 9]), value=0.5)
        Array([0.5, 0.5], dtype=float32)
    """
@overload
def constant_schedule(step: Value, value: float, *, name: str | None = None) -> Value: ...
@overload
def convolution(
    data: ArrayInput,
    weight: ArrayInput,
    bias: ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    use_bias: bool = True,
) -> jax.Array:
    """Convolution (cross-correlation) of ``data`` with ``weight`` over spatial axes, plus ``bias``.

    ``out[n, o, y, x] = bias[o] + sum over c, i, j of weight[o, c, i, j]
    * data[n, c, y * stride + i * dilation - padding, x * stride + j * dilation - padding]``

    There are one to three spatial axes. The ``layout`` of data and result defaults to channels
    first. ``weight`` has shape ``(channels, in_channels / groups, *kernel)`` whatever that layout
    is, unless ``weight_layout`` names its axes: ``O`` for the channels of the result, ``I`` for
    those of the data. XLA converts data and weights to ``"NHWC"`` and ``"HWIO"`` on the CPU.
    ``padding`` is a number of zeros on both sides, for all axes or for each axis, or a pair before
    and after each axis, or a rule: ``"same"`` makes the result ``length / stride`` long, rounded
    up, with the odd zero at the end; ``"valid"`` adds none.

    Example:
        >>> import jax.numpy as jnp
        >>> image, filters = jnp.ones((1, 3, 8, 8)), jnp.ones((4, 3, 3, 3))
        >>> convolution(image, filters, jnp.zeros(4), channels=4, kernel=3, padding="same").shape
        (1, 4, 8, 8)
    """
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
    use_bias: bool = True,
) -> NDArray: ...
@overload
def convolution(
    data: Symbol | ArrayInput,
    weight: Symbol | ArrayInput = ...,
    bias: Symbol | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    use_bias: bool = True,
    weight_initial: Any = None,
    bias_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def convolution(
    data: Variable | ArrayInput,
    weight: Variable | ArrayInput = ...,
    bias: Variable | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    use_bias: bool = True,
    weight_initial: Any = None,
    bias_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def convolution(
    data: Value | ArrayInput,
    weight: Value | ArrayInput,
    bias: Value | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    use_bias: bool = True,
    name: str | None = None,
) -> Value: ...
@overload
def convolution_data_gradient(
    cotangent: ArrayInput,
    weight: ArrayInput,
    shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
) -> jax.Array:
    """Adjoint of ``convolution`` with respect to data of ``shape``: a transposed convolution.

    Example:
        >>> import jax.numpy as jnp
        >>> convolution_data_gradient(jnp.ones((1, 1, 2)), jnp.ones((1, 1, 2)), shape=(1, 1, 3))
        Array([[[1., 2., 1.]]], dtype=float32)
    """
@overload
def convolution_data_gradient(
    cotangent: Value | ArrayInput,
    weight: Value | ArrayInput,
    shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def convolution_weight_gradient(
    data: ArrayInput,
    cotangent: ArrayInput,
    shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
) -> jax.Array:
    """Adjoint of ``convolution`` with respect to a weight of ``shape``.

    Example:
        >>> import jax.numpy as jnp
        >>> data, cotangent = jnp.arange(3.0).reshape(1, 1, 3), jnp.ones((1, 1, 2))
        >>> convolution_weight_gradient(data, cotangent, shape=(1, 1, 2))
        Array([[[1., 3.]]], dtype=float32)
    """
@overload
def convolution_weight_gradient(
    data: Value | ArrayInput,
    cotangent: Value | ArrayInput,
    shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def copysign(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Absolute value of ``x`` with the sign of ``y``, element-wise; zeros of ``y`` have a sign too.

    The derivative with respect to ``y`` is zero. That with respect to ``x`` at zero is the sign of
    ``y``, just as the derivative of ``abs`` at zero is one.

    Example:
        >>> import jax.numpy as jnp
        >>> copysign(jnp.asarray([1.0, 2.0]), jnp.asarray([-0.0, 3.0]))
        Array([-1.,  2.], dtype=float32)
    """
@overload
def copysign(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
@overload
def correlation(
    data1: ArrayInput,
    data2: ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
) -> jax.Array:
    """Correlation between patches of one feature map and displaced patches of another.

    Both have shape ``(batch, channels, height, width)`` and are padded with ``pad_size`` zeros on
    each side. A patch has ``kernel_size`` pixels along each axis; patches of ``data1`` are
    ``stride1`` apart. Each is compared with the patches of ``data2`` at displacements that are
    multiples of ``stride2`` up to ``max_displacement``, vertically and horizontally. The result has
    shape ``(batch, displacements, h, w)``, with the displacements in row-major order; ``h`` and
    ``w`` count the patches that all displacements keep within the padded maps.

    ``out[n, (p, q), i, j]`` is the mean over channels and pixels of the patch of ``data1 * data2``,
    displaced, or of ``|data1 - data2|`` without ``is_multiply``. The derivative of ``|x|`` at 0 is
    1, as in ``abs``.

    Source: Fischer et al. 2015, "FlowNet: Learning Optical Flow with Convolutional Networks",
    section 3; divided by the number of products as in MXNet's ``Correlation``.

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.arange(9.0).reshape(1, 1, 3, 3)
        >>> correlation(image, image).reshape(3, 3)
        Array([[ 0.,  4.,  8.],
               [12., 16., 20.],
               [24., 28., 32.]], dtype=float32)
    """
@overload
def correlation(
    data1: Value | ArrayInput,
    data2: Value | ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
    *,
    name: str | None = None,
) -> Value: ...
Correlation = correlation
@overload
def correlation_gradient(
    data1: ArrayInput,
    data2: ArrayInput,
    cotangent: ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
) -> tuple[jax.Array, jax.Array]:
    """Gradient of ``correlation`` with respect to both maps, given the cotangent of its result.

    Example:
        >>> import jax.numpy as jnp
        >>> maps = jnp.asarray([[[[2.0]]]]), jnp.asarray([[[[3.0]]]])
        >>> first, second = correlation_gradient(*maps, jnp.ones((1, 1, 1, 1)), max_displacement=0)
        >>> float(first[0, 0, 0, 0]), float(second[0, 0, 0, 0])
        (3.0, 2.0)
    """
@overload
def correlation_gradient(
    data1: Symbol | ArrayInput,
    data2: Symbol | ArrayInput,
    cotangent: Symbol | ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def correlation_gradient(
    data1: Value | ArrayInput,
    data2: Value | ArrayInput,
    cotangent: Value | ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
@overload
def correlation_tangent(
    data1: ArrayInput,
    data2: ArrayInput,
    tangent1: ArrayInput,
    tangent2: ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
) -> jax.Array:
    """Tangent of ``correlation`` for tangents of its maps: the adjoint of ``correlation_gradient``.

    Example:
        >>> import jax.numpy as jnp
        >>> one, two, three = (jnp.full((1, 1, 1, 1), x) for x in (1.0, 2.0, 3.0))
        >>> correlation_tangent(two, three, one, one, max_displacement=0)
        Array([[[[5.]]]], dtype=float32)
    """
@overload
def correlation_tangent(
    data1: Value | ArrayInput,
    data2: Value | ArrayInput,
    tangent1: Value | ArrayInput,
    tangent2: Value | ArrayInput,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def cos(x: ArrayInput) -> jax.Array:
    """Cosine of an angle in radians, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> cos(jnp.asarray([0.0, jnp.pi]))
        Array([ 1., -1.], dtype=float32)
    """
@overload
def cos(x: Value, *, name: str | None = None) -> Value: ...
@overload
def cosh(x: ArrayInput) -> jax.Array:
    """Hyperbolic cosine, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> cosh(jnp.asarray([0.0, -jnp.inf]))
        Array([ 1., inf], dtype=float32)
    """
@overload
def cosh(x: Value, *, name: str | None = None) -> Value: ...
@overload
def cosine_decay_schedule(
    step: ArrayInput,
    init_value: float,
    decay_steps: float,
    alpha: float = 0.0,
    exponent: float = 1.0,
) -> jax.Array:
    """Half a cosine wave from ``init_value`` down to ``alpha * init_value``.

    ``init_value * ((1 - alpha) * c ** exponent + alpha)`` with ``c = (1 + cos(pi * step /
    decay_steps)) / 2`` up to ``decay_steps`` (Loshchilov and Hutter, "SGDR: stochastic gradient
    descent with warm restarts", 2017).

    Example:
        >>> import jax.numpy as jnp
        >>> cosine_decay_schedule(jnp.asarray([0, 10]), init_value=1.0, decay_steps=10)
        Array([1., 0.], dtype=float32)
    """
@overload
def cosine_decay_schedule(
    step: Value,
    init_value: float,
    decay_steps: float,
    alpha: float = 0.0,
    exponent: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def cosine_similarity(
    x: ArrayInput,
    y: ArrayInput,
    axis: int = -1,
    eps: float = 1e-08,
) -> jax.Array:
    """Cosine similarity: the cosine of the angle between ``x`` and ``y`` along ``axis``.

    ``sum(x * y) / (max(|x|, eps) * max(|y|, eps))``, where ``x`` and ``y`` broadcast together and
    ``axis`` refers to their common shape. A vector shorter than ``eps`` has a finite gradient,
    which ignores its length. Half precision is computed in float32.

    Example:
        >>> import jax.numpy as jnp
        >>> cosine_similarity(jnp.asarray([3.0, 4.0]), jnp.asarray([[1.0, 0.0], [0.0, 0.0]]))
        Array([0.6, 0. ], dtype=float32)
    """
@overload
def cosine_similarity(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    axis: int = -1,
    eps: float = 1e-08,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def count_nonzero(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Number of nonzero entries over ``axis``, in the default integer dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> count_nonzero(jnp.asarray([[1, 0], [2, 3]]), axis=1)
        Array([1, 2], dtype=int32)
    """
@overload
def count_nonzero(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def cross(x: ArrayInput, y: ArrayInput, axis: int = -1) -> jax.Array:
    """Cross product of vectors of length 3 along an axis.

    ``out[0] = x[1] y[2] - x[2] y[1]``, and cyclically for the other components. The other axes
    broadcast, and ``axis`` refers to the broadcast shape.

    Source: Python array API standard 2024.12, ``linalg.cross``.

    Example:
        >>> import jax.numpy as jnp
        >>> cross(jnp.asarray([1, 0, 0]), jnp.asarray([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
@overload
def cross(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    axis: int = -1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def ctc_lattice(
    labels: ArrayInput,
    logit_lengths: ArrayInput | None = None,
    label_lengths: ArrayInput | None = None,
    *,
    frames: int,
    classes: int,
    blank: int = 0,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """The lattice of states through which alignments of ``labels`` to frames run in ``ctc_loss``.

    Each example has a state for each label, and one for the blank before, between and after them.
    ``places`` are the columns of their classes in logits of shape ``(frames, examples * classes)``,
    one past the end for a label that is out of range or blank; ``skips`` is true for states before
    which the blank may be omitted; ``ends`` indicates, by frame, example and state, where an
    alignment may end; and ``live`` indicates which frames count.

    Example:
        >>> import jax.numpy as jnp
        >>> places, skips, ends, live = ctc_lattice(jnp.asarray([[1, 2]]), frames=2, classes=3)
        >>> places, skips.astype(int)
        (Array([[0, 1, 0, 2, 0]], dtype=int32), Array([[0, 0, 0, 1, 0]], dtype=int32))
    """
@overload
def ctc_lattice(
    labels: Symbol | ArrayInput,
    logit_lengths: Symbol | ArrayInput | None = None,
    label_lengths: Symbol | ArrayInput | None = None,
    *,
    frames: int,
    classes: int,
    blank: int = 0,
    name: str | None = None,
) -> Symbol: ...
@overload
def ctc_lattice(
    labels: Value | ArrayInput,
    logit_lengths: Value | ArrayInput | None = None,
    label_lengths: Value | ArrayInput | None = None,
    *,
    frames: int,
    classes: int,
    blank: int = 0,
    name: str | None = None,
) -> tuple[Value, Value, Value, Value]: ...
@overload
def ctc_loss(
    logits: ArrayInput,
    labels: ArrayInput,
    logit_lengths: ArrayInput | None = None,
    label_lengths: ArrayInput | None = None,
    blank: int = 0,
) -> jax.Array:
    """Connectionist temporal classification loss: ``-log`` of the probability of each sequence.

    The probability of a sequence is summed over all of its alignments. ``logits`` have shape
    ``(frames, examples, classes)`` and ``labels`` have shape ``(examples, labels)``; the softmax of
    the logits is taken here. An alignment assigns a class to each frame; repetitions are merged and
    blanks removed. Frames from ``logit_lengths`` on and labels from ``label_lengths`` on are
    ignored, whatever they hold. Without ``label_lengths`` the labels end at the first that is
    negative or ``blank``. A negative ``blank`` counts from the end.

    A sequence without an alignment, because there are too few frames, has loss infinity and
    gradient zero. A label that counts and is blank or out of range gives NaN.

    Source: Graves et al., Connectionist Temporal Classification (2006).

    Example:
        >>> import jax.numpy as jnp
        >>> ctc_loss(jnp.zeros((2, 1, 2)), jnp.asarray([[1]]))
        Array([0.2876821], dtype=float32)
    """
@overload
def ctc_loss(
    logits: Value | ArrayInput,
    labels: Value | ArrayInput,
    logit_lengths: Value | ArrayInput | None = None,
    label_lengths: Value | ArrayInput | None = None,
    blank: int = 0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def cummax(
    x: ArrayInput,
    axis: int | None = None,
    reverse: bool = False,
    ties: Literal['first', 'last'] = 'last',
) -> jax.Array:
    """Cumulative maximum along ``axis``, which may be omitted if there is only one.

    Of equal entries the last receives the gradient, as in PyTorch and Paddle, or with
    ``ties="first"`` the first. A NaN makes itself and all later results NaN. ``reverse`` starts at
    the end.

    Example:
        >>> import jax.numpy as jnp
        >>> cummax(jnp.asarray([1.0, 3.0, 2.0]))
        Array([1., 3., 3.], dtype=float32)
    """
@overload
def cummax(
    x: Value,
    axis: int | None = None,
    reverse: bool = False,
    ties: Literal['first', 'last'] = 'last',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def cummin(
    x: ArrayInput,
    axis: int | None = None,
    reverse: bool = False,
    ties: Literal['first', 'last'] = 'last',
) -> jax.Array:
    """Cumulative minimum along ``axis``, which may be omitted if there is only one.

    Of equal entries the last receives the gradient, as in PyTorch and Paddle, or with
    ``ties="first"`` the first. A NaN makes itself and all later results NaN. ``reverse`` starts at
    the end.

    Example:
        >>> import jax.numpy as jnp
        >>> cummin(jnp.asarray([2.0, 3.0, 1.0]))
        Array([2., 2., 1.], dtype=float32)
    """
@overload
def cummin(
    x: Value,
    axis: int | None = None,
    reverse: bool = False,
    ties: Literal['first', 'last'] = 'last',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def cumprod(
    x: ArrayInput,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> jax.Array:
    """Cumulative product along ``axis``: ``out[i] = x[0] ... x[i]``.

    ``axis`` may be omitted if there is only one. ``exclusive`` omits ``x[i]`` itself; ``reverse``
    multiplies from the end. Small integers and booleans are multiplied in the default integer
    dtype. The gradient does not divide, so it is correct for zeros.

    Example:
        >>> import jax.numpy as jnp
        >>> cumprod(jnp.asarray([2.0, 3.0, 4.0]))
        Array([ 2.,  6., 24.], dtype=float32)
        >>> cumprod(jnp.asarray([2.0, 3.0, 4.0]), reverse=True, exclusive=True)
        Array([12.,  4.,  1.], dtype=float32)
    """
@overload
def cumprod(
    x: Value,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
cumulative_prod = cumprod
@overload
def cumprod_gradient(
    x: ArrayLike,
    *along: ArrayLike,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> jax.Array:
    """Gradient of ``cumprod``, where the first entry of ``along`` is the cotangent of the result.

    It does not divide. Further entries of ``along`` give its mixed derivative along them. All have
    the shape of ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> cumprod_gradient(jnp.asarray([2.0, 0.0, 3.0]), jnp.ones(3))
        Array([1., 8., 0.], dtype=float32)
    """
@overload
def cumprod_gradient(
    x: ArrayLike,
    along: Sequence[ArrayLike],
    *,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> jax.Array: ...
@overload
def cumprod_gradient(
    x: NDArray | ArrayLike,
    *along: NDArray | ArrayLike,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> NDArray: ...
@overload
def cumprod_gradient(
    x: NDArray | ArrayLike,
    along: Sequence[NDArray | ArrayLike],
    *,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> NDArray: ...
@overload
def cumprod_gradient(
    x: Symbol | ArrayLike,
    *along: Symbol | ArrayLike,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Symbol: ...
@overload
def cumprod_gradient(
    x: Symbol | ArrayLike,
    along: Sequence[Symbol | ArrayLike],
    *,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Symbol: ...
@overload
def cumprod_gradient(
    x: Variable | ArrayLike,
    *along: Variable | ArrayLike,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Variable: ...
@overload
def cumprod_gradient(
    x: Variable | ArrayLike,
    along: Sequence[Variable | ArrayLike],
    *,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Variable: ...
@overload
def cumprod_gradient(
    x: Var | ArrayLike,
    *along: Var | ArrayLike,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Var: ...
@overload
def cumprod_gradient(
    x: Var | ArrayLike,
    along: Sequence[Var | ArrayLike],
    *,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Var: ...
@overload
def cumprod_tangent(
    x: ArrayLike,
    *along: ArrayLike,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> jax.Array:
    """Mixed derivative of ``cumprod`` along all arrays in ``along``, which have the shape of ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> cumprod_tangent(jnp.asarray([2.0, 0.0, 3.0]), jnp.asarray([0.0, 1.0, 0.0]))
        Array([0., 2., 6.], dtype=float32)
    """
@overload
def cumprod_tangent(
    x: ArrayLike,
    along: Sequence[ArrayLike],
    *,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> jax.Array: ...
@overload
def cumprod_tangent(
    x: NDArray | ArrayLike,
    *along: NDArray | ArrayLike,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> NDArray: ...
@overload
def cumprod_tangent(
    x: NDArray | ArrayLike,
    along: Sequence[NDArray | ArrayLike],
    *,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> NDArray: ...
@overload
def cumprod_tangent(
    x: Symbol | ArrayLike,
    *along: Symbol | ArrayLike,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Symbol: ...
@overload
def cumprod_tangent(
    x: Symbol | ArrayLike,
    along: Sequence[Symbol | ArrayLike],
    *,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Symbol: ...
@overload
def cumprod_tangent(
    x: Variable | ArrayLike,
    *along: Variable | ArrayLike,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Variable: ...
@overload
def cumprod_tangent(
    x: Variable | ArrayLike,
    along: Sequence[Variable | ArrayLike],
    *,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Variable: ...
@overload
def cumprod_tangent(
    x: Var | ArrayLike,
    *along: Var | ArrayLike,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Var: ...
@overload
def cumprod_tangent(
    x: Var | ArrayLike,
    along: Sequence[Var | ArrayLike],
    *,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    name: str | None = None,
) -> Var: ...
@overload
def cumsum(
    x: ArrayInput,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
) -> jax.Array:
    """Cumulative sum along ``axis``: ``out[i] = x[0] + ... + x[i]``.

    ``axis`` may be omitted if there is only one. ``exclusive`` omits ``x[i]`` itself; ``reverse``
    sums from the end. Small integers and booleans are accumulated in the default integer dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> cumsum(jnp.asarray([1.0, 2.0, 3.0]))
        Array([1., 3., 6.], dtype=float32)
        >>> cumsum(jnp.asarray([1.0, 2.0, 3.0]), reverse=True, exclusive=True)
        Array([5., 3., 0.], dtype=float32)
    """
@overload
def cumsum(
    x: Value,
    axis: int | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
cumulative_sum = cumsum
@overload
def deformable_convolution(
    data: ArrayInput,
    offset: ArrayInput,
    weight: ArrayInput,
    bias: ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    use_bias: bool = True,
) -> jax.Array:
    """Deformable convolution: ``convolution`` plus ``bias`` with taps displaced by ``offset``.

    The tap ``(i, j)`` of the output place ``(y, x)`` reads ``data`` at ``(y * stride + i * dilation
    - padding + dy, x * stride + j * dilation - padding + dx)``, interpolated between the four
    pixels around it; pixels outside count as zero.

    ``data`` has shape ``(batch, in_channels, height, width)``. ``weight``, ``bias`` and the result
    have the same shapes as in ``convolution``. ``offset`` has the height and width of the result,
    and ``2 * deformable_groups`` channels for each tap: for each group of the channels of data and
    each tap in row-major order, dy and dx. Where a tap lies exactly on a pixel, the derivative with
    respect to its position is the one-sided derivative downwards and to the right.

    Source: Dai et al. 2017, "Deformable Convolutional Networks", section 2.1.

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.asarray([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> right = jnp.zeros((1, 2, 2, 2)).at[:, 1].set(0.5)
        >>> weight, bias = jnp.ones((1, 1, 1, 1)), jnp.zeros(1)
        >>> deformable_convolution(image, right, weight, bias, channels=1, kernel=1)
        Array([[[[1.5, 1. ],
                 [3.5, 2. ]]]], dtype=float32)
    """
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
    use_bias: bool = True,
) -> NDArray: ...
@overload
def deformable_convolution(
    data: Symbol | ArrayInput,
    offset: Symbol | ArrayInput,
    weight: Symbol | ArrayInput = ...,
    bias: Symbol | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    use_bias: bool = True,
    weight_initial: Any = None,
    bias_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def deformable_convolution(
    data: Variable | ArrayInput,
    offset: Variable | ArrayInput,
    weight: Variable | ArrayInput = ...,
    bias: Variable | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    use_bias: bool = True,
    weight_initial: Any = None,
    bias_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def deformable_convolution(
    data: Value | ArrayInput,
    offset: Value | ArrayInput,
    weight: Value | ArrayInput,
    bias: Value | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    use_bias: bool = True,
    name: str | None = None,
) -> Value: ...
@overload
def degrees(x: ArrayInput) -> jax.Array:
    """Converts angles from radians to degrees: ``out = 180 x / pi``.

    Example:
        >>> import jax.numpy as jnp
        >>> degrees(jnp.asarray([0.0, jnp.pi]))
        Array([  0., 180.], dtype=float32)
    """
@overload
def degrees(x: SelectedRows) -> Any: ...
@overload
def degrees(x: Value, *, name: str | None = None) -> Value: ...
rad2deg = degrees
@overload
def depth_to_space(
    x: ArrayInput,
    block_size: int,
    layout: Literal['NCHW', 'NHWC'] = 'NCHW',
    mode: Literal['DCR', 'CRD'] = 'DCR',
) -> jax.Array:
    """Rearranges channels of images into blocks of ``block_size * block_size`` pixels.

    ``b^2 C`` channels of height H and width W become C channels of height ``b H`` and width
    ``b W``: ``out[n, c, b h + r, b w + s] = x[n, (b r + s) C + c, h, w]`` with ``DCR``, where the
    channels of a block are strided, and ``x[n, c b^2 + b r + s, h, w]`` with ``CRD``, where they
    are contiguous (a pixel shuffle). This is the inverse of ``space_to_depth``.

    Source: ONNX, operator DepthToSpace.

    Example:
        >>> import jax.numpy as jnp
        >>> depth_to_space(jnp.arange(4).reshape(1, 4, 1, 1), block_size=2)
        Array([[[[0, 1],
                 [2, 3]]]], dtype=int32)
    """
@overload
def depth_to_space(
    x: Value,
    block_size: int,
    layout: Literal['NCHW', 'NHWC'] = 'NCHW',
    mode: Literal['DCR', 'CRD'] = 'DCR',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def det(a: ArrayInput) -> jax.Array:
    """Determinant of a square matrix, or of each matrix of a stack.

    ``d out / d a`` is the matrix of cofactors, also for singular matrices: it has rank one if the
    rank of ``a`` is one less than full, and is zero below that. Second derivatives are correct
    there, too; higher ones are NaN where ``a`` is singular. The determinant of an empty matrix is
    one. Half precision is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> det(jnp.asarray([[2.0, 1.0], [1.0, 3.0]]))
        Array(5., dtype=float32)
    """
@overload
def det(a: Value, *, name: str | None = None) -> Value: ...
linalg_det = det
@overload
def diag(x: ArrayInput, k: int = 0) -> jax.Array:
    """Builds a matrix with diagonal ``x``, or extracts the diagonal of the matrix ``x``.

    ``k`` is the offset of the diagonal: positive above the main diagonal, negative below. For
    batches see ``diag_embed`` and ``diagonal``.

    Example:
        >>> import jax.numpy as jnp
        >>> diag(jnp.asarray([1, 2]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
@overload
def diag(x: Value, k: int = 0, *, name: str | None = None) -> Value: ...
@overload
def diag_embed(
    x: ArrayInput,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    lengths: Sequence[int] | None = None,
) -> jax.Array:
    """Builds matrices with a given diagonal, else zero: ``out[..., i, i + offset] = x[..., i]``.

    ``axis1`` is the axis of rows in the result and ``axis2`` that of columns. ``lengths`` are the
    numbers of rows and columns, by default those of the smallest square matrix that holds the
    diagonal. This is the adjoint of ``diagonal``.

    Example:
        >>> import jax.numpy as jnp
        >>> diag_embed(jnp.asarray([1, 2]), offset=1)
        Array([[0, 1, 0],
               [0, 0, 2],
               [0, 0, 0]], dtype=int32)
    """
@overload
def diag_embed(
    x: Value,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    lengths: Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
linalg_makediag = diag_embed
@overload
def diagonal(x: ArrayInput, offset: int = 0, axis1: int = -2, axis2: int = -1) -> jax.Array:
    """Extracts diagonals of matrices: ``out[..., i] = x[..., i, i + offset]``.

    ``axis1`` is the axis of rows and ``axis2`` that of columns; the diagonal becomes the last axis
    of the result. ``offset`` is positive above the main diagonal and negative below. A diagonal
    outside the matrix is empty.

    Source: Python array API standard 2024.12, ``linalg.diagonal``.

    Example:
        >>> import jax.numpy as jnp
        >>> diagonal(jnp.asarray([[1, 2, 3], [4, 5, 6]]), offset=1)
        Array([2, 6], dtype=int32)
    """
@overload
def diagonal(
    x: Value,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    name: str | None = None,
) -> Value: ...
linalg_extractdiag = diagonal
@overload
def digamma(x: ArrayInput) -> jax.Array:
    """Digamma function: the derivative of ``lgamma``.

    It is infinite at zero, with the sign opposite to the zero's. It is NaN at the poles -1, -2, ...
    and at minus infinity, where it has no limit.

    Example:
        >>> import jax.numpy as jnp
        >>> digamma(jnp.asarray(1.0))
        Array(-0.5772..., dtype=float32, weak_type=True)
    """
@overload
def digamma(x: Value, *, name: str | None = None) -> Value: ...
psi = digamma
@overload
def dirichlet_log_density(x: ArrayInput, a: ArrayInput) -> jax.Array:
    """Log density of the Dirichlet distribution along the last axis.

    ``sum((a - 1) log(x)) + log Gamma(sum(a)) - sum(log Gamma(a))``. ``x`` holds nonnegative numbers
    that sum to one; the sum is not checked.

    Example:
        >>> import jax.numpy as jnp
        >>> dirichlet_log_density(jnp.asarray([0.5, 0.5]), jnp.asarray([2.0, 2.0]))
        Array(0.405..., dtype=float32)
    """
@overload
def dirichlet_log_density(
    x: Value | ArrayInput,
    a: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def divide(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise quotient of two arrays: ``out = x / y``. Integers become floating point.

    Example:
        >>> import jax.numpy as jnp
        >>> divide(jnp.asarray([1, 2]), jnp.asarray(4))
        Array([0.25, 0.5 ], dtype=float32)
    """
@overload
def divide(x: SelectedRows | ArrayInput, y: SelectedRows | ArrayInput) -> Any: ...
@overload
def divide(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
broadcast_div = divide
div = divide
elementwise_div = divide
elemwise_div = divide
true_divide = divide
@overload
def dot(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Dot product over the last axis of ``x`` and the second-to-last (or only) axis of ``y``.

    The shape consists of the other axes of ``x`` followed by those of ``y``; unlike ``matmul``, it
    pairs every row of ``x`` with every column of ``y``. A number on either side multiplies the
    other operand.

    Example:
        >>> import jax.numpy as jnp
        >>> dot(jnp.asarray([1.0, 2.0]), jnp.asarray([3.0, 4.0]))
        Array(11., dtype=float32)
    """
@overload
def dot(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
@overload
def dropout(
    data: ArrayInput,
    rate: float = 0.5,
    *,
    key: jax.Array = ...,
    training: bool = ...,
) -> jax.Array:
    """Dropout: in training each entry is zero with probability ``rate``, else scaled up.

    Entries that are kept are divided by ``1 - rate``, so the expectation is preserved. In
    prediction it is the identity.

    Source: Srivastava et al., Dropout: a simple way to prevent neural networks from overfitting,
    2014; the scaling in training is called inverted dropout.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> dropout(jnp.ones(4), key=jax.random.key(0), training=False)
        Array([1., 1., 1., 1.], dtype=float32)
    """
@overload
def dropout(
    data: Value,
    rate: float = 0.5,
    *,
    key: Value | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> Value: ...
@overload
def dynamic_slice(x: ArrayInput, starts: ArrayInput, sizes: Sequence[int]) -> jax.Array:
    """Extracts a slice of ``x`` with lengths ``sizes`` that begins at ``starts``.

    ``starts`` holds an integer for each axis. A negative one counts from the end; then the slice is
    shifted as far as needed to lie within ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> dynamic_slice(jnp.asarray([1, 2, 3, 4]), jnp.asarray([3]), sizes=(2,))
        Array([3, 4], dtype=int32)
    """
@overload
def dynamic_slice(
    x: Value | ArrayInput,
    starts: Value | ArrayInput,
    sizes: Sequence[int],
    *,
    name: str | None = None,
) -> Value: ...
@overload
def dynamic_update_slice(x: ArrayInput, update: ArrayInput, starts: ArrayInput) -> jax.Array:
    """Replaces the slice of ``x`` that begins at ``starts`` by ``update``.

    ``update`` has the dtype of ``x``. ``starts`` is interpreted as in ``dynamic_slice``.

    Example:
        >>> import jax.numpy as jnp
        >>> dynamic_update_slice(jnp.asarray([1, 2, 3, 4]), jnp.asarray([0, 0]), jnp.asarray([3]))
        Array([1, 2, 0, 0], dtype=int32)
    """
@overload
def dynamic_update_slice(
    x: Value | ArrayInput,
    update: Value | ArrayInput,
    starts: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def eigh(x: ArrayInput) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues and eigenvectors of Hermitian matrices: ``x @ vectors = vectors * values``.

    The eigenvalues are real and ascending; the columns of ``vectors`` are orthonormal, with
    LAPACK's signs or phases. The Hermitian part ``(x + x^H) / 2`` is decomposed, so the gradient of
    a real matrix is symmetric, and that of a complex matrix is the conjugate of a Hermitian matrix,
    as is JAX's convention. The gradient through the vectors requires distinct eigenvalues; the
    gradient through the values alone is finite with repeated ones, too. Half precision is computed
    in single precision.

    The phases of complex vectors are arbitrary. Their derivative is chosen such that no vector
    moves along itself, ``v^H dv = 0``, which is correct for every function that does not depend on
    the phases.

    Source: Giles, Collected matrix derivative results, 2008, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> values, vectors = eigh(jnp.asarray([[3.0, 0.0], [0.0, 1.0]]))
        >>> values
        Array([1., 3.], dtype=float32)
    """
@overload
def eigh(x: Symbol, *, name: str | None = None) -> Symbol: ...
@overload
def eigh(x: Value, *, name: str | None = None) -> tuple[Value, Value]: ...
@overload
def eigvalsh(x: ArrayInput) -> jax.Array:
    """Eigenvalues of a Hermitian matrix, real and in ascending order.

    They are those of the Hermitian part ``(x + x^H) / 2``. The gradient is finite with repeated
    eigenvalues; second and higher derivatives require distinct ones. Half precision is computed in
    single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> eigvalsh(jnp.asarray([[3.0, 0.0], [0.0, 1.0]]))
        Array([1., 3.], dtype=float32)
    """
@overload
def eigvalsh(x: Value, *, name: str | None = None) -> Value: ...
@overload
def einsum(equation: str, *operands: ArrayLike) -> jax.Array:
    """Einstein summation: sum of products over named axes, as in ``einsum("ij,jk->ik", x, y)``.

    Each letter names an axis; axes of the same name have the same length, or length 1, which is
    broadcast. The letters after the arrow are the axes of the result, and all others are summed.
    Without an arrow the result has the axes that occur once, in alphabetical order. A repeated
    letter in one operand selects the diagonal. ``...`` represents any further axes, which
    broadcast; they come first in an implicit result, and are summed if an explicit result omits
    them. Three or more operands are contracted in pairs, in the order that needs the fewest
    operations.

    Example:
        >>> import jax.numpy as jnp
        >>> einsum("ij,j->i", jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([1.0, -1.0]))
        Array([-1., -1.], dtype=float32)
        >>> einsum("ii", jnp.asarray([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
@overload
def einsum(equation: str, operands: Sequence[ArrayLike]) -> jax.Array: ...
@overload
def einsum(*operands: ArrayLike, equation: str) -> jax.Array: ...
@overload
def einsum(equation: str, *operands: NDArray | ArrayLike) -> NDArray: ...
@overload
def einsum(equation: str, operands: Sequence[NDArray | ArrayLike]) -> NDArray: ...
@overload
def einsum(*operands: NDArray | ArrayLike, equation: str) -> NDArray: ...
@overload
def einsum(equation: str, *operands: Symbol | ArrayLike, name: str | None = None) -> Symbol: ...
@overload
def einsum(
    equation: str,
    operands: Sequence[Symbol | ArrayLike],
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def einsum(*operands: Symbol | ArrayLike, equation: str, name: str | None = None) -> Symbol: ...
@overload
def einsum(equation: str, *operands: Variable | ArrayLike, name: str | None = None) -> Variable: ...
@overload
def einsum(
    equation: str,
    operands: Sequence[Variable | ArrayLike],
    *,
    name: str | None = None,
) -> Variable: ...
@overload
def einsum(*operands: Variable | ArrayLike, equation: str, name: str | None = None) -> Variable: ...
@overload
def einsum(equation: str, *operands: Var | ArrayLike, name: str | None = None) -> Var: ...
@overload
def einsum(
    equation: str,
    operands: Sequence[Var | ArrayLike],
    *,
    name: str | None = None,
) -> Var: ...
@overload
def einsum(*operands: Var | ArrayLike, equation: str, name: str | None = None) -> Var: ...
@overload
def elu(x: ArrayInput, alpha: float = 1.0) -> jax.Array:
    """Exponential linear unit: ``x`` where positive, ``alpha (exp(x) - 1)`` elsewhere.

    The derivative at zero is ``alpha``.

    Source: Clevert, Unterthiner and Hochreiter, "Fast and accurate deep network learning by
    exponential linear units" (2015).

    Example:
        >>> import jax.numpy as jnp
        >>> elu(jnp.asarray([-jnp.inf, 1.0]))
        Array([-1.,  1.], dtype=float32)
    """
@overload
def elu(x: SelectedRows, alpha: float = 1.0) -> Any: ...
@overload
def elu(x: Value, alpha: float = 1.0, *, name: str | None = None) -> Value: ...
@overload
def entr(x: ArrayInput) -> jax.Array:
    """Terms of an entropy: ``-x log(x)``, zero at zero, and minus infinity below zero.

    The derivative at zero is infinite, and that below zero is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> entr(jnp.asarray([1.0, -1.0])).tolist()
        [-0.0, -inf]
    """
@overload
def entr(x: Value, *, name: str | None = None) -> Value: ...
@overload
def equal(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise truth value of ``x == y``; NaN equals nothing.

    Example:
        >>> import jax.numpy as jnp
        >>> equal(jnp.asarray([1.0, 2.0]), 2.0)
        Array([False,  True], dtype=bool)
    """
@overload
def equal(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
broadcast_equal = equal
eq = equal
@overload
def erf(x: ArrayInput) -> jax.Array:
    """Error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t^2)`` from 0 to ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> erf(jnp.asarray([0.0, jnp.inf]))
        Array([0., 1.], dtype=float32)
    """
@overload
def erf(x: SelectedRows) -> Any: ...
@overload
def erf(x: Value, *, name: str | None = None) -> Value: ...
@overload
def erfc(x: ArrayInput) -> jax.Array:
    """Complementary error function, element-wise: ``1 - erf(x)``, accurate where that is small.

    Example:
        >>> import jax.numpy as jnp
        >>> erfc(jnp.asarray([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
@overload
def erfc(x: Value, *, name: str | None = None) -> Value: ...
@overload
def erfinv(x: ArrayInput) -> jax.Array:
    """Inverse error function: the number whose ``erf`` is ``x``; infinite at -1 and 1.

    Example:
        >>> import jax.numpy as jnp
        >>> erfinv(jnp.asarray([0.0, 1.0]))
        Array([ 0., inf], dtype=float32)
    """
@overload
def erfinv(x: SelectedRows) -> Any: ...
@overload
def erfinv(x: Value, *, name: str | None = None) -> Value: ...
erf_inv = erfinv
@overload
def exp(x: ArrayInput) -> jax.Array:
    """Exponential of ``x``, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> exp(jnp.asarray([0.0, -jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
@overload
def exp(x: Value, *, name: str | None = None) -> Value: ...
@overload
def exp2(x: ArrayInput) -> jax.Array:
    """Exponential with base 2, element-wise: ``2^x``.

    Example:
        >>> import jax.numpy as jnp
        >>> exp2(jnp.asarray([0.0, 3.0]))
        Array([1., 8.], dtype=float32)
    """
@overload
def exp2(x: Value, *, name: str | None = None) -> Value: ...
@overload
def expand_dims(x: ArrayInput, axis: int | Sequence[int]) -> jax.Array:
    """Inserts axes of length 1 into ``x``; ``axis`` refers to positions in the result.

    Example:
        >>> import jax.numpy as jnp
        >>> expand_dims(jnp.asarray([1, 2]), axis=0)
        Array([[1, 2]], dtype=int32)
    """
@overload
def expand_dims(x: Value, axis: int | Sequence[int], *, name: str | None = None) -> Value: ...
@overload
def expm1(x: ArrayInput) -> jax.Array:
    """Element-wise ``exp(x) - 1``, accurate near zero.

    Example:
        >>> import jax.numpy as jnp
        >>> expm1(jnp.asarray([0.0, 1e-10]))
        Array([0.e+00, 1.e-10], dtype=float32)
    """
@overload
def expm1(x: SelectedRows) -> Any: ...
@overload
def expm1(x: Value, *, name: str | None = None) -> Value: ...
@overload
def exponential_decay(
    step: ArrayInput,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    transition_begin: float = 0.0,
    staircase: bool = False,
    end_value: float | None = None,
) -> jax.Array:
    """``init_value * decay_rate ** (step / transition_steps)``, bounded by ``end_value``.

    Steps are counted from ``transition_begin``. With ``staircase`` the quotient is rounded down.

    Example:
        >>> import jax.numpy as jnp
        >>> exponential_decay(jnp.asarray(20), init_value=1.0, transition_steps=10, decay_rate=0.5)
        Array(0.25, dtype=float32)
    """
@overload
def exponential_decay(
    step: Value,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    transition_begin: float = 0.0,
    staircase: bool = False,
    end_value: float | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def exponential_log_density(x: ArrayInput, scale: ArrayInput) -> jax.Array:
    """Log density of the exponential distribution with mean ``scale``: ``-x / scale - log(scale)``.

    The support is ``x >= 0``.

    Example:
        >>> import jax.numpy as jnp
        >>> exponential_log_density(jnp.asarray([0.0, -1.0]), 1.0)
        Array([ -0., -inf], dtype=float32)
    """
@overload
def exponential_log_density(
    x: Value | ArrayInput,
    scale: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
def eye(
    n_rows: int,
    n_cols: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """A matrix with ones on a diagonal and zeros elsewhere: ``out[i, j] = 1`` where ``j = i + k``.

    ``n_cols`` defaults to ``n_rows``. The result has the default floating dtype by default.

    Source: Python array API standard 2024.12, ``eye``.

    Example:
        >>> eye(2, 3, k=1)
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
@overload
def factored_solve(
    a: ArrayInput,
    b: ArrayInput,
    factors: ArrayInput,
    permutation: ArrayInput,
    transpose: bool = False,
) -> jax.Array:
    """Solution of ``a @ out = b`` or ``a^T @ out = b`` with the LU factors that ``solve`` keeps.

    ``b`` is a matrix or a stack of them.
    ``factors`` holds the bits of the LU decomposition of ``a`` as integers: it carries no
    derivative, since it is determined by ``a``. Complex matrices are factored again.

    Example:
        >>> import registry
        >>> import jax.numpy as jnp
        >>> a = jnp.asarray([[2.0, 0.0], [1.0, 4.0]])
        >>> out, factors, permutation = registry.get("solve").revealed(a, jnp.ones(2))
        >>> b = jnp.asarray([[3.0], [4.0]])
        >>> factored_solve(a, b, factors, permutation, transpose=True)
        Array([[1.],
               [1.]], dtype=float32)
    """
@overload
def factored_solve(
    a: Value | ArrayInput,
    b: Value | ArrayInput,
    factors: Value | ArrayInput,
    permutation: Value | ArrayInput,
    transpose: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def fft(
    x: ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
) -> jax.Array:
    """Discrete Fourier transform along ``axis``: ``out[k] = sum(x[j] * exp(-2 pi i j k / n))``.

    The first ``n`` entries are transformed, by default all; shorter inputs are padded with zeros.
    With ``norm="forward"`` the result is divided by ``n``, with ``"ortho"`` by its square root.
    Half precision is computed in single precision, and the result is complex.

    Source: Python array API standard 2024.12, ``fft.fft``.

    Example:
        >>> import jax.numpy as jnp
        >>> fft(jnp.asarray([1.0, 2.0, 0.0, 2.0]))
        Array([ 5.+0.j,  1.+0.j, -3.+0.j,  1.+0.j], dtype=complex64)
    """
@overload
def fft(
    x: Value,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    name: str | None = None,
) -> Value: ...
def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None) -> jax.Array:
    """Frequencies of the bins of ``fft`` for ``n`` samples with spacing ``d``.

    ``[0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (n d)``, by default in the default floating
    dtype.

    Source: Python array API standard 2024.12, ``fft.fftfreq``.

    Example:
        >>> fftfreq(4, 0.5)
        Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
@overload
def fftn(
    x: ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
) -> jax.Array:
    """Discrete Fourier transform over ``axes``, by default over all axes.

    Over one axis ``out[k] = sum(x[j] * exp(-2 pi i j k / n))``. Along each axis the first ``s``
    entries are transformed; shorter inputs are padded with zeros. ``s`` without ``axes`` applies to
    the last axes. With ``norm="forward"`` the result is divided by the number of transformed
    entries, with ``"ortho"`` by its square root.

    Half precision is computed in single precision, and the result is complex.

    Source: Python array API standard 2024.12, ``fft.fftn``.

    Example:
        >>> import jax.numpy as jnp
        >>> fftn(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]))
        Array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
@overload
def fftn(
    x: Value,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def fftshift(x: ArrayInput, axes: int | Sequence[int] | None = None) -> jax.Array:
    """Shifts the zero-frequency bin of ``x`` to the center, position ``n // 2``.

    The shift is along each of ``axes``, by default along all. Frequencies then ascend.

    Source: Python array API standard 2024.12, ``fft.fftshift``.

    Example:
        >>> import jax.numpy as jnp
        >>> fftshift(jnp.asarray([0, 1, 2, -2, -1]))
        Array([-2, -1,  0,  1,  2], dtype=int32)
    """
@overload
def fftshift(
    x: Value,
    axes: int | Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def fill_diagonal(x: ArrayInput, value: float = 0.0) -> jax.Array:
    """Fills the diagonals of square matrices with one number: ``out[i, i] = value``.

    The other entries and the dtype are those of ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> fill_diagonal(jnp.ones((2, 2)), value=5)
        Array([[5., 1.],
               [1., 5.]], dtype=float32)
    """
@overload
def fill_diagonal(x: Value, value: float = 0.0, *, name: str | None = None) -> Value: ...
@overload
def flatten(x: ArrayInput) -> jax.Array:
    """Flattens all axes of ``x`` but the first into one: the result has one row per batch entry.

    Example:
        >>> import jax.numpy as jnp
        >>> flatten(jnp.ones((2, 3, 4))).shape
        (2, 12)
    """
@overload
def flatten(x: Value, *, name: str | None = None) -> Value: ...
Flatten = flatten
@overload
def flip(x: ArrayInput, axis: int | Sequence[int] | None = None) -> jax.Array:
    """Reverses the order of the entries of ``x`` along ``axis``, by default along all axes.

    Example:
        >>> import jax.numpy as jnp
        >>> flip(jnp.asarray([1, 2, 3]))
        Array([3, 2, 1], dtype=int32)
    """
@overload
def flip(
    x: Value,
    axis: int | Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
reverse = flip
@overload
def float8_matmul(
    x: ArrayInput,
    y: ArrayInput,
    x_dtype: DTypeLike = ...,
    y_dtype: DTypeLike = ...,
    d_dtype: DTypeLike | None = None,
) -> jax.Array:
    """Product of two matrices whose entries are rounded to 8-bit floats; sums are in float32.

    An operand is divided by its scale, its largest magnitude over the largest number of its 8-bit
    dtype, and rounded; the product is multiplied by both scales. Operands must be finite: an
    infinity or a NaN gives NaN everywhere.

    The gradient is that of the product of the rounded operands, passed straight through the
    rounding; it keeps these operands, in 8 bits. With ``d_dtype``, such as ``"float8_e5m2"``,
    cotangents are rounded, too, so that the products of the gradient are in 8 bits. Then the
    gradient is not linear in the cotangent, and forward mode is an error.

    Source: Micikevicius et al., FP8 Formats for Deep Learning, 2022.

    Example:
        >>> import jax.numpy as jnp
        >>> float8_matmul(jnp.asarray([[1.0, 4.0]]), jnp.asarray([[2.0], [0.5]])).round(4)
        Array([[4.]], dtype=float32)
    """
@overload
def float8_matmul(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    x_dtype: DTypeLike = ...,
    y_dtype: DTypeLike = ...,
    d_dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def float8_restore(x: ArrayInput, rounded: ArrayInput, scale: ArrayInput) -> jax.Array:
    """Value of ``x`` after its rounding to 8 bits, ``rounded * scale``, with the gradient of ``x``.

    Only the rounded entries and their scale are read. The gradient passes straight through the
    rounding.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.asarray([0.26, 4.0])
        >>> float8_restore(x, jnp.asarray([0.5, 8.0], "float8_e4m3fn"), jnp.asarray(0.5))
        Array([0.25, 4.  ], dtype=float32)
    """
@overload
def float8_restore(
    x: Value | ArrayInput,
    rounded: Value | ArrayInput,
    scale: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def floor(x: ArrayInput) -> jax.Array:
    """Floor, element-wise: the greatest integer that is at most ``x``. Integers are unchanged.

    Example:
        >>> import jax.numpy as jnp
        >>> floor(jnp.asarray([1.5, -1.5]))
        Array([ 1., -2.], dtype=float32)
    """
@overload
def floor(x: SelectedRows) -> Any: ...
@overload
def floor(x: Value, *, name: str | None = None) -> Value: ...
@overload
def floor_divide(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise quotient rounded down: ``out = x // y``. Integers stay integers.

    Example:
        >>> import jax.numpy as jnp
        >>> floor_divide(jnp.asarray([7, -7]), jnp.asarray(2))
        Array([ 3, -4], dtype=int32)
    """
@overload
def floor_divide(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
broadcast_floor_divide = floor_divide
@overload
def ftrl(
    param: ArrayInput,
    grad: ArrayInput,
    squared: ArrayInput,
    linear: ArrayInput,
    learning_rate: ArrayInput,
    l1: float = 0.0,
    l2: float = 0.0,
    beta: float = 0.0,
    lazy: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A step of FTRL-Proximal, whose L1 penalty makes parameters exactly zero.

    With ``new_squared = squared + grad^2`` and ``sigma = (sqrt(new_squared) - sqrt(squared)) /
    learning_rate``: ``new_linear = linear + grad - sigma * param``, and ``new_param`` is zero where
    ``|new_linear| <= l1``, else ``(sign(new_linear) * l1 - new_linear) / ((beta +
    sqrt(new_squared)) / learning_rate + l2)`` (McMahan et al., "Ad click prediction: a view from
    the trenches", 2013, algorithm 1; ``learning_rate`` is its alpha).

    The parameter is a function of the states, so it should start at zero like them. If ``grad`` is
    ``SelectedRows``, ``lazy`` updates only the rows that it names, which is exact for parameters
    that FTRL computed; by default all rows are recomputed.

    Example:
        >>> import jax.numpy as jnp
        >>> zero = jnp.asarray(0.0)
        >>> ftrl(zero, jnp.asarray(2.0), zero, zero, 0.5, l1=1.0)
        (Array(-0.25, dtype=float32), Array(4., dtype=float32), Array(2., dtype=float32))
    """
@overload
def ftrl(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    squared: SelectedRows | ArrayInput,
    linear: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    l1: float = 0.0,
    l2: float = 0.0,
    beta: float = 0.0,
    lazy: bool = False,
) -> Any: ...
@overload
def ftrl(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    squared: Symbol | ArrayInput,
    linear: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    l1: float = 0.0,
    l2: float = 0.0,
    beta: float = 0.0,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def ftrl(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    squared: Value | ArrayInput,
    linear: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    l1: float = 0.0,
    l2: float = 0.0,
    beta: float = 0.0,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def full(
    shape: int | Sequence[int] = (),
    *,
    fill_value: bool | int | float | complex,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """An array filled with one number: ``out[...] = fill_value``.

    Without ``dtype`` it has the dtype that JAX assigns to such a number, and is as weakly typed as
    the number: it never widens the dtype of an array it is combined with.

    Example:
        >>> full(shape=(2,), fill_value=1, dtype="float32")
        Array([1., 1.], dtype=float32)
    """
@overload
def full(
    shape: int | Sequence[int],
    fill_value: bool | int | float | complex,
    dtype: DTypeLike | None = None,
) -> jax.Array: ...
@overload
def full_like(
    x: ArrayInput,
    fill_value: bool | int | float | complex,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """An array filled with one number, with the shape of ``x`` and, without ``dtype``, its dtype.

    Source: Python array API standard 2024.12, ``full_like``.

    Example:
        >>> full_like(jnp.asarray([1.0, 2.0]), fill_value=7)
        Array([7., 7.], dtype=float32)
    """
@overload
def full_like(
    x: Value,
    fill_value: bool | int | float | complex,
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def fully_connected(
    data: ArrayInput,
    weight: ArrayInput,
    bias: ArrayInput = ...,
    *,
    units: int,
    use_bias: bool = True,
    flatten: bool = True,
) -> jax.Array:
    """Fully connected (dense) layer: ``out = data @ weight.T + bias``.

    ``weight`` has shape ``(units, in_features)``. With ``flatten`` all axes of ``data`` but the
    first are features; otherwise only the last one is.

    Example:
        >>> import jax.numpy as jnp
        >>> data, weight = jnp.asarray([[1.0, 2.0]]), jnp.asarray([[3.0, 4.0]])
        >>> fully_connected(data, weight, jnp.asarray([0.5]), units=1)
        Array([[11.5]], dtype=float32)
    """
@overload
def fully_connected(
    data: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    bias: NDArray | ArrayInput = ...,
    *,
    units: int,
    use_bias: bool = True,
    flatten: bool = True,
) -> NDArray: ...
@overload
def fully_connected(
    data: Symbol | ArrayInput,
    weight: Symbol | ArrayInput = ...,
    bias: Symbol | ArrayInput = ...,
    *,
    units: int,
    use_bias: bool = True,
    flatten: bool = True,
    weight_initial: Any = None,
    bias_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def fully_connected(
    data: Variable | ArrayInput,
    weight: Variable | ArrayInput = ...,
    bias: Variable | ArrayInput = ...,
    *,
    units: int,
    use_bias: bool = True,
    flatten: bool = True,
    weight_initial: Any = None,
    bias_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def fully_connected(
    data: Value | ArrayInput,
    weight: Value | ArrayInput,
    bias: Value | ArrayInput = ...,
    *,
    units: int,
    use_bias: bool = True,
    flatten: bool = True,
    name: str | None = None,
) -> Value: ...
@overload
def gamma(x: ArrayInput) -> jax.Array:
    """Gamma function: ``gamma(n + 1) = n!``, and ``gamma(x + 1) = x gamma(x)`` for every ``x``.

    It is infinite at zero, with the sign of the zero, and NaN at the poles -1, -2, ...

    Example:
        >>> import jax.numpy as jnp
        >>> gamma(jnp.asarray([0.0, -0.5]))
        Array([ inf, -3.5449...], dtype=float32)
    """
@overload
def gamma(x: Value, *, name: str | None = None) -> Value: ...
@overload
def gamma_density(a: ArrayInput, x: ArrayInput, n: int = 0) -> jax.Array:
    """Density of the gamma distribution, ``x^(a - 1) exp(-x) / Gamma(a)``, for ``x >= 0``.

    With ``n``, its ``n``-th derivative with respect to ``a``. Accurate for large ``a``, where the
    powers in the formula would overflow.

    Example:
        >>> import jax.numpy as jnp
        >>> gamma_density(jnp.asarray(1.0), jnp.asarray([0.0, 1.0]))
        Array([1.        , 0.36787945], dtype=float32)
    """
@overload
def gamma_density(
    a: Value | ArrayInput,
    x: Value | ArrayInput,
    n: int = 0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def gamma_draw_slope(a: ArrayInput, z: ArrayInput) -> jax.Array:
    """Derivative of a gamma draw by its parameter: ``dz/da = -P_a(a, z) / f(a, z)``.

    A draw of zero, which has underflowed the dtype, has derivative zero.

    Example:
        >>> import jax.numpy as jnp
        >>> bool(gamma_draw_slope(jnp.asarray(2.0), jnp.asarray(1.5)) > 0)
        True
    """
@overload
def gamma_draw_slope(
    a: Value | ArrayInput,
    z: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def gamma_log_density(x: ArrayInput, a: ArrayInput, scale: ArrayInput) -> jax.Array:
    """Log density of the gamma distribution with shape ``a``, for ``x >= 0``.

    ``(a - 1) log(x / scale) - x / scale - log Gamma(a) - log(scale)``.

    Example:
        >>> import jax.numpy as jnp
        >>> gamma_log_density(jnp.asarray([2.0, -1.0]), 3.0, 1.0)
        Array([-1.306..., -inf], dtype=float32)
    """
@overload
def gamma_log_density(
    x: Value | ArrayInput,
    a: Value | ArrayInput,
    scale: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def gather_nd(
    x: ArrayInput,
    indices: ArrayInput,
    axis: int = -1,
    fill_value: float | None = None,
) -> jax.Array:
    """Gathers entries or slices of ``x`` by their leading coordinates, listed in ``indices``.

    ``out[i..., j...] = x[indices[i..., 0], indices[i..., 1], ..., j...]``. The coordinates are
    listed along ``axis`` of ``indices``: the last one by default, as in Paddle and ONNX; ``axis=0``
    is MXNet's order. Negative coordinates count from the end. An entry out of bounds gives
    ``fill_value``: by default NaN for inexact dtypes, the smallest value for signed integers, and
    the largest for unsigned integers.

    Source: ONNX, operator ``GatherND``.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> gather_nd(x, jnp.asarray([[0, 1], [1, 1]]))
        Array([2., 4.], dtype=float32)
    """
@overload
def gather_nd(
    x: Value | ArrayInput,
    indices: Value | ArrayInput,
    axis: int = -1,
    fill_value: float | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def gaussian(x: ArrayInput) -> jax.Array:
    """Gaussian, element-wise: ``exp(-x^2)``, zero at infinity together with all its derivatives.

    Example:
        >>> import jax.numpy as jnp
        >>> gaussian(jnp.asarray([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
@overload
def gaussian(x: Value, *, name: str | None = None) -> Value: ...
@overload
def gelu(x: ArrayInput, approximate: bool = False) -> jax.Array:
    """Gaussian error linear unit: ``x Phi(x)`` with the normal distribution function ``Phi``.

    With ``approximate`` it is ``x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2``.

    Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016).

    Example:
        >>> import jax.numpy as jnp
        >>> gelu(jnp.asarray([0.0, 100.0]))
        Array([  0., 100.], dtype=float32)
    """
@overload
def gelu(x: SelectedRows, approximate: bool = False) -> Any: ...
@overload
def gelu(x: Value, approximate: bool = False, *, name: str | None = None) -> Value: ...
@overload
def gemm(
    a: ArrayInput,
    b: ArrayInput,
    c: ArrayInput,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> jax.Array:
    """Scaled matrix product plus a scaled matrix: ``alpha * op(a) @ op(b) + beta * c``.

    ``op`` transposes according to ``transpose_a`` and ``transpose_b``. Leading axes are batch axes
    and broadcast; ``c`` broadcasts to the product. With ``beta=0`` the entries of ``c`` have no
    effect, not even infinities and NaNs.

    Source: Dongarra et al., A set of level 3 basic linear algebra subprograms, ACM TOMS 16, 1990.

    Example:
        >>> import jax.numpy as jnp
        >>> a, b = jnp.asarray([[1.0, 2.0]]), jnp.asarray([[3.0], [4.0]])
        >>> gemm(a, b, jnp.asarray([[100.0]]), alpha=2.0)
        Array([[122.]], dtype=float32)
    """
@overload
def gemm(
    a: Value | ArrayInput,
    b: Value | ArrayInput,
    c: Value | ArrayInput,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
linalg_gemm = gemm
@overload
def gemm2(
    a: ArrayInput,
    b: ArrayInput,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
) -> jax.Array:
    """Scaled product of two matrices, either optionally transposed: ``alpha * op(a) @ op(b)``.

    Leading axes are batch axes and broadcast.

    Example:
        >>> import jax.numpy as jnp
        >>> gemm2(jnp.asarray([[1.0, 2.0]]), jnp.asarray([[3.0, 4.0]]), transpose_b=True, alpha=2.0)
        Array([[22.]], dtype=float32)
    """
@overload
def gemm2(
    a: Value | ArrayInput,
    b: Value | ArrayInput,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
linalg_gemm2 = gemm2
@overload
def get_tensor_from_selected_rows(x: ArrayInput) -> jax.Array:
    """The dense array whose rows ``x`` names, with zeros elsewhere; dense arrays are unchanged.

    This is how a program converts rows to a whole array. (Paddle's operator of this name returns
    only the values of the rows, whose number is not part of a type here.)

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> some = SelectedRows(jnp.array([2, 0, 2]), jnp.ones((3, 1)), height=4)
        >>> get_tensor_from_selected_rows(some).ravel()
        Array([1., 0., 2., 0.], dtype=float32)
    """
@overload
def get_tensor_from_selected_rows(x: SelectedRows) -> Any: ...
@overload
def get_tensor_from_selected_rows(x: Value, *, name: str | None = None) -> Value: ...
@overload
def global_norm(*xs: ArrayLike) -> jax.Array:
    """The Euclidean norm of all entries of all arrays: the root of the sum of their squares.

    The result is in single precision at least. Arrays may be ``SelectedRows``: rows that are named
    twice count as their sum. If all entries are zero, the gradient is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> global_norm(jnp.asarray([3.0, 0.0]), jnp.asarray(4.0))
        Array(5., dtype=float32)
    """
@overload
def global_norm(xs: Sequence[ArrayLike]) -> jax.Array: ...
@overload
def global_norm(*xs: SelectedRows | ArrayLike) -> Any: ...
@overload
def global_norm(xs: Sequence[SelectedRows | ArrayLike]) -> Any: ...
@overload
def global_norm(*xs: NDArray | ArrayLike) -> NDArray: ...
@overload
def global_norm(xs: Sequence[NDArray | ArrayLike]) -> NDArray: ...
@overload
def global_norm(*xs: Symbol | ArrayLike, name: str | None = None) -> Symbol: ...
@overload
def global_norm(xs: Sequence[Symbol | ArrayLike], *, name: str | None = None) -> Symbol: ...
@overload
def global_norm(*xs: Variable | ArrayLike, name: str | None = None) -> Variable: ...
@overload
def global_norm(xs: Sequence[Variable | ArrayLike], *, name: str | None = None) -> Variable: ...
@overload
def global_norm(*xs: Var | ArrayLike, name: str | None = None) -> Var: ...
@overload
def global_norm(xs: Sequence[Var | ArrayLike], *, name: str | None = None) -> Var: ...
@overload
def gradient_multiplier(x: ArrayInput, factor: float) -> jax.Array:
    """Returns ``x`` and multiplies its gradient by ``factor``.

    This is not the derivative of the identity. Each differentiation through it scales once, so a
    second derivative that passes it twice is scaled by ``factor^2``.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.grad(lambda x: gradient_multiplier(x, factor=0.5) ** 2)(jnp.asarray(3.0))
        Array(3., dtype=float32, weak_type=True)
    """
@overload
def gradient_multiplier(x: SelectedRows, factor: float) -> Any: ...
@overload
def gradient_multiplier(x: Value, factor: float, *, name: str | None = None) -> Value: ...
@overload
def gradient_reversal(x: ArrayInput, scale: float = 1.0) -> jax.Array:
    """Returns ``x`` and multiplies its gradient by ``-scale``.

    Layers before it learn to increase the loss that layers after it learn to decrease.

    Source: Ganin and Lempitsky, "Unsupervised domain adaptation by backpropagation" (2015).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.grad(gradient_reversal)(jnp.asarray(3.0))
        Array(-1., dtype=float32, weak_type=True)
    """
@overload
def gradient_reversal(x: SelectedRows, scale: float = 1.0) -> Any: ...
@overload
def gradient_reversal(x: Value, scale: float = 1.0, *, name: str | None = None) -> Value: ...
@overload
def greater(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise truth value of ``x > y``.

    Example:
        >>> import jax.numpy as jnp
        >>> greater(jnp.asarray([1.0, 3.0]), 2.0)
        Array([False,  True], dtype=bool)
    """
@overload
def greater(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
broadcast_greater = greater
greater_than = greater
gt = greater
@overload
def greater_equal(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise truth value of ``x >= y``.

    Example:
        >>> import jax.numpy as jnp
        >>> greater_equal(jnp.asarray([1.0, 2.0]), 2.0)
        Array([False,  True], dtype=bool)
    """
@overload
def greater_equal(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
broadcast_greater_equal = greater_equal
ge = greater_equal
@overload
def grid_generator(
    data: ArrayInput,
    transform_type: Literal['affine', 'warp'] = 'affine',
    target_shape: Sequence[int] | None = None,
) -> jax.Array:
    """Generates a sampling grid for ``bilinear_sampler`` from an affine map or a flow.

    The result has shape ``(batch, 2, height, width)`` and holds x, then y. Both run from -1 at the
    center of the first pixel of an axis to 1 at the center of the last.

    ``"affine"``: ``data`` of shape ``(batch, 6)`` holds the rows of a two-row matrix, and the grid
    is that matrix times ``(x, y, 1)``, for x and y of a regular grid of ``target_shape``. An axis
    of length 1 has its point at 0.

    ``"warp"``: ``data`` of shape ``(batch, 2, height, width)`` gives the displacement of each point
    of a regular grid in pixels.

    Source: Jaderberg et al. 2015, "Spatial Transformer Networks", section 3.2.

    Example:
        >>> import jax.numpy as jnp
        >>> unchanged = jnp.asarray([[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]])
        >>> grid_generator(unchanged, target_shape=(1, 3))
        Array([[[[-1.,  0.,  1.]],
        <BLANKLINE>
                [[ 0.,  0.,  0.]]]], dtype=float32)
    """
@overload
def grid_generator(
    data: Value,
    transform_type: Literal['affine', 'warp'] = 'affine',
    target_shape: Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
GridGenerator = grid_generator
@overload
def group_norm(
    data: ArrayInput,
    gamma: ArrayInput = ...,
    beta: ArrayInput = ...,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
) -> jax.Array:
    """Group normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per group.

    The channels along ``axis`` are divided into ``num_groups`` contiguous groups. For each example
    and group, the mean and the biased variance are taken over its channels and all axes but the
    first. ``gamma`` and ``beta`` hold one number per channel. (MXNet's hold one per group: repeat
    them.) Statistics are computed in at least float32; the result has the dtype of ``data``.

    Source: Wu and He, Group normalization, 2018.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([[1.0, 3.0, 5.0, 9.0]])
        >>> group_norm(data, jnp.ones(4), jnp.zeros(4), num_groups=2, eps=0.0)
        Array([[-1.,  1., -1.,  1.]], dtype=float32)
    """
@overload
def group_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    beta: NDArray | ArrayInput = ...,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
) -> NDArray: ...
@overload
def group_norm(
    data: Symbol | ArrayInput,
    gamma: Symbol | ArrayInput = ...,
    beta: Symbol | ArrayInput = ...,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
    gamma_initial: Any = None,
    beta_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def group_norm(
    data: Variable | ArrayInput,
    gamma: Variable | ArrayInput = ...,
    beta: Variable | ArrayInput = ...,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
    gamma_initial: Any = None,
    beta_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def group_norm(
    data: Value | ArrayInput,
    gamma: Value | ArrayInput = ...,
    beta: Value | ArrayInput = ...,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
    name: str | None = None,
) -> Value: ...
@overload
def gru(
    data: ArrayLike,
    hidden: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    *weights: ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """Gated recurrent unit (GRU) layers over whole sequences.

    ``r, z = sigmoid(W x[t] + b + R h[t-1] + c)`` in the first two blocks of rows,

    ``n = tanh(W x[t] + b + r * (R h[t-1] + c))`` in the third,

    ``h[t] = (1 - z) * n + z * h[t-1]``

    Data, states, lengths, layers, directions and results are as in ``rnn``. ``weights`` lists, for
    each layer and each of its directions: ``W`` of shape ``(3 * units, features)``; ``R`` of shape
    ``(3 * units, units)``; and ``b`` and ``c`` of shape ``(3 * units,)``, or neither in all of
    them. The reset gate ``r`` is applied after the product with ``R``, as in cuDNN.

    Source: Cho et al., Learning phrase representations using RNN encoder-decoder for statistical
    machine translation, 2014, with the reset after the product.

    Example:
        >>> import jax.numpy as jnp
        >>> zeros = jnp.zeros((3, 1))
        >>> out, last_hidden = gru(jnp.ones((2, 1, 1)), jnp.ones((1, 1, 1)), None, zeros, zeros)
        >>> out.ravel()
        Array([0.5 , 0.25], dtype=float32)
    """
@overload
def gru(
    data: ArrayLike,
    hidden: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    *,
    weights: Sequence[ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
) -> tuple[jax.Array, jax.Array]: ...
@overload
def gru(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *weights: NDArray | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
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
    bidirectional: bool = False,
) -> tuple[NDArray, NDArray]: ...
@overload
def gru(
    data: Symbol | ArrayLike,
    hidden: Symbol | ArrayLike | None = None,
    lengths: Symbol | ArrayLike | None = None,
    *weights: Symbol | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    weights_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def gru(
    data: Symbol | ArrayLike,
    hidden: Symbol | ArrayLike | None = None,
    lengths: Symbol | ArrayLike | None = None,
    *,
    weights: Sequence[Symbol | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    weights_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def gru(
    data: Variable | ArrayLike,
    hidden: Variable | ArrayLike | None = None,
    lengths: Variable | ArrayLike | None = None,
    *weights: Variable | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    weights_initial: Any = None,
    name: str | None = None,
) -> tuple[Variable, Variable]: ...
@overload
def gru(
    data: Variable | ArrayLike,
    hidden: Variable | ArrayLike | None = None,
    lengths: Variable | ArrayLike | None = None,
    *,
    weights: Sequence[Variable | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    weights_initial: Any = None,
    name: str | None = None,
) -> tuple[Variable, Variable]: ...
@overload
def gru(
    data: Var | ArrayLike,
    hidden: Var | ArrayLike | None = None,
    lengths: Var | ArrayLike | None = None,
    *weights: Var | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    name: str | None = None,
) -> tuple[Var, Var]: ...
@overload
def gru(
    data: Var | ArrayLike,
    hidden: Var | ArrayLike | None = None,
    lengths: Var | ArrayLike | None = None,
    *,
    weights: Sequence[Var | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    name: str | None = None,
) -> tuple[Var, Var]: ...
@overload
def hard_sigmoid(x: ArrayInput) -> jax.Array:
    """Piecewise linear sigmoid, element-wise: ``min(max(x / 6 + 1/2, 0), 1)``.

    The derivative at -3 and 3 is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> hard_sigmoid(jnp.asarray([-9.0, 0.0, 9.0]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
@overload
def hard_sigmoid(x: Value, *, name: str | None = None) -> Value: ...
hardsigmoid = hard_sigmoid
@overload
def hard_swish(x: ArrayInput) -> jax.Array:
    """Piecewise quadratic approximation of ``silu``, element-wise: ``x hard_sigmoid(x)``.

    Source: Howard et al., "Searching for MobileNetV3" (2019).

    Example:
        >>> import jax.numpy as jnp
        >>> hard_swish(jnp.asarray([-9.0, 0.0, 9.0]))
        Array([-0.,  0.,  9.], dtype=float32)
    """
@overload
def hard_swish(x: SelectedRows) -> Any: ...
@overload
def hard_swish(x: Value, *, name: str | None = None) -> Value: ...
hard_silu = hard_swish
hardswish = hard_swish
@overload
def hard_tanh(x: ArrayInput) -> jax.Array:
    """Piecewise linear tanh: ``min(max(x, -1), 1)``. Its derivative at -1 and 1 is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> hard_tanh(jnp.asarray([-9.0, 0.5, 9.0]))
        Array([-1. ,  0.5,  1. ], dtype=float32)
    """
@overload
def hard_tanh(x: SelectedRows) -> Any: ...
@overload
def hard_tanh(x: Value, *, name: str | None = None) -> Value: ...
hardtanh = hard_tanh
@overload
def hfft(
    x: ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
) -> jax.Array:
    """Discrete Fourier transform of Hermitian-symmetric input, ``x[-j] = conj(x[j])``: it is real.

    Only the first ``n // 2 + 1`` of the ``n`` numbers are given, and ``n`` is as in ``irfft``. The
    result is ``irfft(conj(x))`` with the divisor of ``fft``.

    Source: Python array API standard 2024.12, ``fft.hfft``.

    Example:
        >>> import jax.numpy as jnp
        >>> hfft(jnp.asarray([1.0, 2.0, 0.0]))
        Array([ 5.,  1., -3.,  1.], dtype=float32)
    """
@overload
def hfft(
    x: Value,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def hinge(
    predictions: ArrayInput,
    labels: ArrayInput,
    margin: float = 1.0,
    p: int = 1,
) -> jax.Array:
    """Hinge loss for labels -1 and 1, element-wise: ``max(0, margin - labels * predictions)^p``.

    The derivative is zero where the margin is met exactly.

    Source: Cortes and Vapnik, Support-Vector Networks (1995).

    Example:
        >>> import jax.numpy as jnp
        >>> hinge(jnp.asarray([0.5, 3.0, 1.0]), jnp.asarray([1, 1, -1]))
        Array([0.5, 0. , 2. ], dtype=float32)
    """
@overload
def hinge(
    predictions: Value | ArrayInput,
    labels: Value | ArrayInput,
    margin: float = 1.0,
    p: int = 1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def hot_labels(
    label: ArrayInput,
    num_classes: int,
    axis: int = -1,
    *,
    dtype: DTypeLike,
) -> jax.Array:
    """One-hot encoding of labels along the new ``axis``, with labels truncated to integers.

    ``one_hot`` for labels that may be floating, as is usual in MXNet.

    Example:
        >>> import jax.numpy as jnp
        >>> hot_labels(jnp.asarray([1.0, 0.0]), num_classes=3, dtype="float32")
        Array([[0., 1., 0.],
               [1., 0., 0.]], dtype=float32)
    """
@overload
def hot_labels(label: ArrayInput, num_classes: int, axis: int, dtype: DTypeLike) -> jax.Array: ...
@overload
def hot_labels(
    label: Value,
    num_classes: int,
    axis: int = -1,
    *,
    dtype: DTypeLike,
    name: str | None = None,
) -> Value: ...
@overload
def hot_labels(
    label: Value,
    num_classes: int,
    axis: int,
    dtype: DTypeLike,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def huber(predictions: ArrayInput, targets: ArrayInput, delta: float = 1.0) -> jax.Array:
    """Huber loss, element-wise: squared error near zero and absolute error far away.

    ``e^2 / 2`` where ``abs(e) <= delta``, else ``delta * (abs(e) - delta / 2)``, with the errors
    ``e = predictions - targets``. The derivative is ``e``, clipped to ``[-delta, delta]``.

    Source: Huber, Robust Estimation of a Location Parameter (1964).

    Example:
        >>> import jax.numpy as jnp
        >>> huber(jnp.asarray([1.0, 5.0]), jnp.asarray([0.0, 0.0]), delta=2.0)
        Array([0.5, 8. ], dtype=float32)
    """
@overload
def huber(
    predictions: Value | ArrayInput,
    targets: Value | ArrayInput,
    delta: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
huber_loss = huber
@overload
def hypot(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Length of the hypotenuse, element-wise: ``sqrt(x^2 + y^2)``, computed without overflow.

    All derivatives at the origin, where they do not exist, are taken as zero, as in ``norm``.

    Example:
        >>> import jax.numpy as jnp
        >>> hypot(jnp.asarray([3.0, 1e30]), jnp.asarray([4.0, 0.0]))
        Array([5.e+00, 1.e+30], dtype=float32)
    """
@overload
def hypot(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
broadcast_hypot = hypot
@overload
def identity(x: ArrayInput) -> jax.Array:
    """Identity: ``out = x``.

    Example:
        >>> import jax.numpy as jnp
        >>> identity(jnp.asarray([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
@overload
def identity(x: SelectedRows) -> Any: ...
@overload
def identity(x: Value, *, name: str | None = None) -> Value: ...
assign = identity
clone = identity
positive = identity
@overload
def ifft(
    x: ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
) -> jax.Array:
    """Inverse of ``fft`` along ``axis``: ``out[j] = sum(x[k] * exp(2 pi i j k / n)) / n``.

    ``n`` and dtypes are as in ``fft``. The divisor is ``n`` with ``norm="backward"``, its square
    root with ``"ortho"``, and one with ``"forward"``.

    Source: Python array API standard 2024.12, ``fft.ifft``.

    Example:
        >>> import jax.numpy as jnp
        >>> ifft(jnp.asarray([5.0, 1.0, -3.0, 1.0]))
        Array([1.+0.j, 2.+0.j, 0.+0.j, 2.+0.j], dtype=complex64)
    """
@overload
def ifft(
    x: Value,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def ifftn(
    x: ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
) -> jax.Array:
    """Inverse of ``fftn``: over one axis ``out[j] = sum(x[k] * exp(2 pi i j k / n)) / n``.

    ``s``, ``axes`` and dtypes are as in ``fftn``. The divisor is the number of transformed entries
    with ``norm="backward"``, its square root with ``"ortho"``, and one with ``"forward"``.

    Source: Python array API standard 2024.12, ``fft.ifftn``.

    Example:
        >>> import jax.numpy as jnp
        >>> ifftn(jnp.asarray([[10.0, -2.0], [-4.0, 0.0]]))
        Array([[1.+0.j, 2.+0.j],
               [3.+0.j, 4.+0.j]], dtype=complex64)
    """
@overload
def ifftn(
    x: Value,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def ifftshift(x: ArrayInput, axes: int | Sequence[int] | None = None) -> jax.Array:
    """Inverse of ``fftshift``: shifts the center entry to the front.

    Source: Python array API standard 2024.12, ``fft.ifftshift``.

    Example:
        >>> import jax.numpy as jnp
        >>> ifftshift(jnp.asarray([-2, -1, 0, 1, 2]))
        Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
@overload
def ifftshift(
    x: Value,
    axes: int | Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def ihfft(
    x: ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
) -> jax.Array:
    """Inverse of ``hfft``: the first ``n // 2 + 1`` numbers of the inverse transform of ``x``.

    The result is ``conj(rfft(x))`` with the divisor of ``ifft``.

    Source: Python array API standard 2024.12, ``fft.ihfft``.

    Example:
        >>> import jax.numpy as jnp
        >>> ihfft(jnp.asarray([5.0, 1.0, -3.0, 1.0]))
        Array([1.-0.j, 2.-0.j, 0.-0.j], dtype=complex64)
    """
@overload
def ihfft(
    x: Value,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def im2col(
    x: ArrayInput,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
) -> jax.Array:
    """Unfolds images into columns: the entries of a sliding window at each of its positions.

    ``x`` has the axes batch, channels, and one to three spatial ones. The result has shape
    ``(batch, channels * K, L)``, where K is the number of entries of the window and L the number of
    its positions: ``out[n, c K + k, l]`` is the k-th entry of channel c at the l-th position, both
    in row-major order. Padding adds zeros. A convolution is a matrix product with these columns.

    Example:
        >>> import jax.numpy as jnp
        >>> im2col(jnp.asarray([[[1, 2, 3, 4]]]), kernel=2)
        Array([[[1, 2, 3],
                [2, 3, 4]]], dtype=int32)
    """
@overload
def im2col(
    x: Value,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    dilation: int | Sequence[int] = 1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def imag(x: ArrayInput) -> jax.Array:
    """Imaginary part of ``x``; zero if ``x`` is real.

    Example:
        >>> import jax.numpy as jnp
        >>> imag(jnp.asarray([1 + 2j]))
        Array([2.], dtype=float32)
    """
@overload
def imag(x: SelectedRows) -> Any: ...
@overload
def imag(x: Value, *, name: str | None = None) -> Value: ...
@overload
def incomplete_gamma(a: ArrayInput, x: ArrayInput, n: int = 0) -> jax.Array:
    """Regularized lower incomplete gamma function ``P(a, x)``, or its ``n``-th derivative by ``a``.

    ``P(a, x)`` is the integral of ``t^(a - 1) exp(-t) / Gamma(a)`` from 0 to ``x``, for positive
    ``a`` and ``x >= 0``. The integral is computed by the same small set of nodes for all arguments.

    Source: NIST Digital Library of Mathematical Functions, 8.2.4 and 8.7.1.

    Example:
        >>> import jax.numpy as jnp
        >>> incomplete_gamma(jnp.asarray(1.0), jnp.asarray(0.0))
        Array(0., dtype=float32)
    """
@overload
def incomplete_gamma(
    a: Value | ArrayInput,
    x: Value | ArrayInput,
    n: int = 0,
    *,
    name: str | None = None,
) -> Value: ...
gammainc = incomplete_gamma
igamma = incomplete_gamma
@overload
def incomplete_gamma_ratio(a: ArrayInput, log_x: ArrayInput, n: int = 1) -> jax.Array:
    """Ratio ``P_n(a, x) / (x f(a, x))`` of the ``n``-th derivative by ``a`` to that by ``log x``.

    ``P`` is ``incomplete_gamma`` and ``f`` is ``gamma_density``. The ratio is finite for every
    finite ``log_x``, even if ``x`` itself underflows: then ``P`` is ``x^a / Gamma(a + 1)``.

    Example:
        >>> import jax.numpy as jnp
        >>> incomplete_gamma_ratio(jnp.asarray(0.5), jnp.asarray(-1000.0)).round(1)
        Array(-2000.1, dtype=float32)
    """
@overload
def incomplete_gamma_ratio(
    a: Value | ArrayInput,
    log_x: Value | ArrayInput,
    n: int = 1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def index_add(
    x: ArrayInput,
    indices: ArrayInput,
    updates: ArrayInput,
    axis: int = 0,
) -> jax.Array:
    """Adds ``updates`` to the entries ``indices`` of ``x`` along ``axis``.

    For the first axis: ``out[indices[i]] += updates[i]``. ``updates`` have the shape of
    ``take(x, indices, axis=axis)``, whose adjoint gives the array that is added to ``x``. An entry
    that is named twice receives the sum. Negative indices count from the end; updates out of bounds
    are dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> index_add(jnp.zeros(3), jnp.asarray([0, 2, 0]), jnp.asarray([1.0, 2.0, 3.0]))
        Array([4., 0., 2.], dtype=float32)
    """
@overload
def index_add(
    x: Value | ArrayInput,
    indices: Value | ArrayInput,
    updates: Value | ArrayInput,
    axis: int = 0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def index_update(
    x: ArrayInput,
    indices: ArrayInput,
    updates: ArrayInput,
    axis: int = 0,
) -> jax.Array:
    """Replaces the entries ``indices`` of ``x`` along ``axis`` by ``updates``.

    For the first axis: ``out[indices[i]] = updates[i]``. ``updates`` have the shape of
    ``take(x, indices, axis=axis)``. If an entry is named several times, the last update in
    row-major order of ``indices`` is kept, and only that one receives a gradient. Negative indices
    count from the end; updates out of bounds are dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> index_update(jnp.zeros(3), jnp.asarray([0, 2, 0]), jnp.asarray([1.0, 2.0, 3.0]))
        Array([3., 0., 2.], dtype=float32)
    """
@overload
def index_update(
    x: Value | ArrayInput,
    indices: Value | ArrayInput,
    updates: Value | ArrayInput,
    axis: int = 0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def instance_norm(
    data: ArrayInput,
    gamma: ArrayInput = ...,
    beta: ArrayInput = ...,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
) -> jax.Array:
    """Instance normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per channel.

    For each example and channel, the mean and the biased variance are taken over all axes but the
    first and ``axis``, the axis of the channels; ``gamma`` and ``beta`` hold one number per
    channel. Statistics are computed in at least float32; the result has the dtype of ``data``.

    Source: Ulyanov, Vedaldi and Lempitsky, Instance normalization: the missing ingredient for fast
    stylization, 2016.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([[[1.0, 3.0], [5.0, 9.0]]])
        >>> instance_norm(data, jnp.ones(2), jnp.zeros(2), eps=0.0)
        Array([[[-1.,  1.],
                [-1.,  1.]]], dtype=float32)
    """
@overload
def instance_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    beta: NDArray | ArrayInput = ...,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
) -> NDArray: ...
@overload
def instance_norm(
    data: Symbol | ArrayInput,
    gamma: Symbol | ArrayInput = ...,
    beta: Symbol | ArrayInput = ...,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
    *,
    gamma_initial: Any = None,
    beta_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def instance_norm(
    data: Variable | ArrayInput,
    gamma: Variable | ArrayInput = ...,
    beta: Variable | ArrayInput = ...,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
    *,
    gamma_initial: Any = None,
    beta_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def instance_norm(
    data: Value | ArrayInput,
    gamma: Value | ArrayInput = ...,
    beta: Value | ArrayInput = ...,
    axis: int = 1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def integer_power(x: ArrayInput, exponent: int) -> jax.Array:
    """Power with a fixed integer exponent, element-wise, by repeated multiplication.

    It is faster than ``power``, and exact where the products are. ``x ** 0`` is one for every
    ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> integer_power(jnp.asarray([2.0, -3.0]), exponent=3)
        Array([  8., -27.], dtype=float32)
    """
@overload
def integer_power(x: Value, exponent: int, *, name: str | None = None) -> Value: ...
@overload
def inv(a: ArrayInput) -> jax.Array:
    """Inverse of a square matrix, or of each matrix of a stack: ``a @ out`` is the identity.

    Where ``a`` is singular the result is not finite. Half precision is computed in single
    precision. To solve a system, ``solve`` is faster and more accurate.

    Example:
        >>> import jax.numpy as jnp
        >>> inv(jnp.asarray([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
@overload
def inv(a: Value, *, name: str | None = None) -> Value: ...
inverse = inv
linalg_inverse = inv
@overload
def inverse_time_decay(
    step: ArrayInput,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: bool = False,
) -> jax.Array:
    """``init_value / (1 + decay_rate * step / transition_steps)``.

    With ``staircase`` the quotient of steps is rounded down.

    Example:
        >>> import jax.numpy as jnp
        >>> inverse_time_decay(jnp.asarray(20), init_value=1.0, transition_steps=10, decay_rate=0.5)
        Array(0.5, dtype=float32)
    """
@overload
def inverse_time_decay(
    step: Value,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def irfft(
    x: ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
) -> jax.Array:
    """Inverse of ``rfft``: the ``n`` real numbers whose first bins are ``x``.

    For ``m`` bins ``n`` defaults to ``2 (m - 1)``; an odd number must be given. Bins beyond
    ``n // 2 + 1`` are dropped, missing ones are zero, and the imaginary parts of the first bin and,
    for an even ``n``, of the middle bin are taken as zero. ``norm`` is as in ``ifft``.

    Source: Python array API standard 2024.12, ``fft.irfft``.

    Example:
        >>> import jax.numpy as jnp
        >>> irfft(jnp.asarray([5.0, 1.0, -3.0]))
        Array([1., 2., 0., 2.], dtype=float32)
    """
@overload
def irfft(
    x: Value,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def irfftn(
    x: ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
) -> jax.Array:
    """Inverse of ``rfftn``: the real numbers whose first bins are ``x``.

    The last entry of ``s`` is the length of the result along the last of ``axes``, of which ``x``
    holds the first ``s // 2 + 1`` bins; by default it is ``2 (m - 1)`` for ``m`` bins, an even
    number. The other axes are transformed first; then the imaginary parts of the first and the
    middle bin along the last of ``axes`` are taken as zero. ``s``, ``axes`` and ``norm`` are
    otherwise as in ``ifftn``.

    Source: Python array API standard 2024.12, ``fft.irfftn``.

    Example:
        >>> import jax.numpy as jnp
        >>> irfftn(jnp.asarray([[10.0, -2.0], [-4.0, 0.0]]))
        Array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
@overload
def irfftn(
    x: Value,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def isfinite(x: ArrayInput) -> jax.Array:
    """Tests whether each entry is finite: neither infinite nor NaN.

    Example:
        >>> import jax.numpy as jnp
        >>> isfinite(jnp.asarray([1.0, jnp.nan]))
        Array([ True, False], dtype=bool)
    """
@overload
def isfinite(x: Value, *, name: str | None = None) -> Value: ...
is_finite = isfinite
@overload
def isinf(x: ArrayInput) -> jax.Array:
    """Tests each entry for positive or negative infinity.

    Example:
        >>> import jax.numpy as jnp
        >>> isinf(jnp.asarray([1.0, -jnp.inf]))
        Array([False,  True], dtype=bool)
    """
@overload
def isinf(x: Value, *, name: str | None = None) -> Value: ...
@overload
def isnan(x: ArrayInput) -> jax.Array:
    """Tests each entry for NaN.

    Example:
        >>> import jax.numpy as jnp
        >>> isnan(jnp.asarray([1.0, jnp.nan]))
        Array([False,  True], dtype=bool)
    """
@overload
def isnan(x: Value, *, name: str | None = None) -> Value: ...
@overload
def jax_function(*operands: ArrayLike, function: Any, n_out: int = 1) -> tuple[jax.Array, ...]:
    """Applies a function of JAX as a whole; JAX differentiates it.

    ``so.from_jax`` makes such calls for callbacks and foreign calls. A saved graph contains only
    the name of the function, so another process cannot load it.

    Args:
        operands: the arguments.
        function: a name of a function that takes arrays and returns ``n_out`` arrays, made by
            ``registry.ops.lax.functions.named_function``.
        n_out: the number of results.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry.ops.lax.functions import named_function
        >>> reverse = named_function("reverse", lambda x: [x[::-1]])
        >>> jax_function(jnp.asarray([1.0, 2.0]), function=reverse)
        (Array([2., 1.], dtype=float32),)
    """
@overload
def jax_function(
    operands: Sequence[ArrayLike],
    *,
    function: Any,
    n_out: int = 1,
) -> tuple[jax.Array, ...]: ...
@overload
def jax_function(
    *operands: NDArray | ArrayLike,
    function: Any,
    n_out: int = 1,
) -> tuple[NDArray, ...]: ...
@overload
def jax_function(
    operands: Sequence[NDArray | ArrayLike],
    *,
    function: Any,
    n_out: int = 1,
) -> tuple[NDArray, ...]: ...
@overload
def jax_function(
    *operands: Symbol | ArrayLike,
    function: Any,
    n_out: int = 1,
    name: str | None = None,
) -> Symbol: ...
@overload
def jax_function(
    operands: Sequence[Symbol | ArrayLike],
    *,
    function: Any,
    n_out: int = 1,
    name: str | None = None,
) -> Symbol: ...
@overload
def jax_function(
    *operands: Variable | ArrayLike,
    function: Any,
    n_out: int = 1,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def jax_function(
    operands: Sequence[Variable | ArrayLike],
    *,
    function: Any,
    n_out: int = 1,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def jax_function(
    *operands: Var | ArrayLike,
    function: Any,
    n_out: int = 1,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def jax_function(
    operands: Sequence[Var | ArrayLike],
    *,
    function: Any,
    n_out: int = 1,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def join_selected_rows(*xs: ArrayLike) -> jax.Array:
    """Concatenates ``xs`` along the first axis; the result is row-sparse if all of them are.

    This is the inverse of ``split_selected_rows``.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> some = SelectedRows(jnp.array([1, 0]), jnp.ones((2, 1)), height=2)
        >>> join_selected_rows(some, some).rows
        Array([1, 0, 3, 2], dtype=int32)
    """
@overload
def join_selected_rows(xs: Sequence[ArrayLike]) -> jax.Array: ...
@overload
def join_selected_rows(*xs: SelectedRows | ArrayLike) -> Any: ...
@overload
def join_selected_rows(xs: Sequence[SelectedRows | ArrayLike]) -> Any: ...
@overload
def join_selected_rows(*xs: NDArray | ArrayLike) -> NDArray: ...
@overload
def join_selected_rows(xs: Sequence[NDArray | ArrayLike]) -> NDArray: ...
@overload
def join_selected_rows(*xs: Symbol | ArrayLike, name: str | None = None) -> Symbol: ...
@overload
def join_selected_rows(xs: Sequence[Symbol | ArrayLike], *, name: str | None = None) -> Symbol: ...
@overload
def join_selected_rows(*xs: Variable | ArrayLike, name: str | None = None) -> Variable: ...
@overload
def join_selected_rows(
    xs: Sequence[Variable | ArrayLike],
    *,
    name: str | None = None,
) -> Variable: ...
@overload
def join_selected_rows(*xs: Var | ArrayLike, name: str | None = None) -> Var: ...
@overload
def join_selected_rows(xs: Sequence[Var | ArrayLike], *, name: str | None = None) -> Var: ...
@overload
def keep(x: ArrayLike, *others: ArrayLike) -> jax.Array:
    """Returns ``x`` and keeps ``others`` reachable in the graph.

    A gradient that no longer needs one of the random keys of its forward graph keeps it this way,
    so that both graphs number their keys alike. ``others`` may be of any kind and cost nothing.

    Example:
        >>> import jax.numpy as jnp
        >>> keep(jnp.asarray([1.0, 2.0]), jnp.zeros(3))
        Array([1., 2.], dtype=float32)
    """
@overload
def keep(x: ArrayLike, others: Sequence[ArrayLike]) -> jax.Array: ...
@overload
def keep(
    x: TensorArray | SelectedRows | ArrayLike,
    *others: TensorArray | SelectedRows | ArrayLike,
) -> jax.Array: ...
@overload
def keep(
    x: TensorArray | SelectedRows | ArrayLike,
    others: Sequence[TensorArray | SelectedRows | ArrayLike],
) -> jax.Array: ...
@overload
def keep(x: NDArray | ArrayLike, *others: NDArray | ArrayLike) -> NDArray: ...
@overload
def keep(x: NDArray | ArrayLike, others: Sequence[NDArray | ArrayLike]) -> NDArray: ...
@overload
def keep(x: Symbol | ArrayLike, *others: Symbol | ArrayLike, name: str | None = None) -> Symbol: ...
@overload
def keep(
    x: Symbol | ArrayLike,
    others: Sequence[Symbol | ArrayLike],
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def keep(
    x: Variable | ArrayLike,
    *others: Variable | ArrayLike,
    name: str | None = None,
) -> Variable: ...
@overload
def keep(
    x: Variable | ArrayLike,
    others: Sequence[Variable | ArrayLike],
    *,
    name: str | None = None,
) -> Variable: ...
@overload
def keep(x: Var | ArrayLike, *others: Var | ArrayLike, name: str | None = None) -> Var: ...
@overload
def keep(
    x: Var | ArrayLike,
    others: Sequence[Var | ArrayLike],
    *,
    name: str | None = None,
) -> Var: ...
@overload
def khatri_rao(*xs: ArrayLike) -> jax.Array:
    """Column-wise Kronecker product: ``out[:, j] = kron(x0[:, j], x1[:, j], ...)``.

    All inputs have the same number of columns; the number of rows of the result is the product of
    theirs.

    Example:
        >>> import jax.numpy as jnp
        >>> khatri_rao(jnp.asarray([[1, 2], [3, 4]]), jnp.asarray([[1, 10]]))
        Array([[ 1, 20],
               [ 3, 40]], dtype=int32)
    """
@overload
def khatri_rao(xs: Sequence[ArrayLike]) -> jax.Array: ...
@overload
def khatri_rao(*xs: NDArray | ArrayLike) -> NDArray: ...
@overload
def khatri_rao(xs: Sequence[NDArray | ArrayLike]) -> NDArray: ...
@overload
def khatri_rao(*xs: Symbol | ArrayLike, name: str | None = None) -> Symbol: ...
@overload
def khatri_rao(xs: Sequence[Symbol | ArrayLike], *, name: str | None = None) -> Symbol: ...
@overload
def khatri_rao(*xs: Variable | ArrayLike, name: str | None = None) -> Variable: ...
@overload
def khatri_rao(xs: Sequence[Variable | ArrayLike], *, name: str | None = None) -> Variable: ...
@overload
def khatri_rao(*xs: Var | ArrayLike, name: str | None = None) -> Var: ...
@overload
def khatri_rao(xs: Sequence[Var | ArrayLike], *, name: str | None = None) -> Var: ...
@overload
def kl_divergence(
    log_predictions: ArrayInput,
    targets: ArrayInput,
    axis: int = -1,
    log_target: bool = False,
) -> jax.Array:
    """Kullback-Leibler divergence for each example: ``sum(p * (log(p) - log_predictions))``.

    The sum is along ``axis``. ``targets`` are the probabilities ``p``, or their logarithms with
    ``log_target``. A term with ``p`` zero is zero. There the derivative of ``p log(p)``, which is
    infinite, is taken as zero, so the derivative with respect to ``p`` is ``-log_predictions``, or
    zero if that is infinite.

    Source: Kullback and Leibler, On Information and Sufficiency (1951).

    Example:
        >>> import jax.numpy as jnp
        >>> kl_divergence(jnp.log(jnp.asarray([0.25, 0.75])), jnp.asarray([1.0, 0.0]))
        Array(1.3862944, dtype=float32)
    """
@overload
def kl_divergence(
    log_predictions: Value | ArrayInput,
    targets: Value | ArrayInput,
    axis: int = -1,
    log_target: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def kron(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Kronecker product: each entry of ``x`` times all of ``y``, arranged in blocks.

    ``out[i * m + k, j * n + l] = x[i, j] * y[k, l]`` for ``y`` of shape ``(m, n)``, and likewise
    for any number of axes; the shorter shape is padded with leading axes of length 1.

    Example:
        >>> import jax.numpy as jnp
        >>> kron(jnp.asarray([1, 10]), jnp.asarray([1, 2]))
        Array([ 1,  2, 10, 20], dtype=int32)
    """
@overload
def kron(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
@overload
def l1_loss(predictions: ArrayInput, targets: ArrayInput) -> jax.Array:
    """Absolute error, element-wise: ``abs(predictions - targets)``; its derivative at zero is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> l1_loss(jnp.asarray([1.0, -2.0]), jnp.asarray([3.0, -2.0]))
        Array([2., 0.], dtype=float32)
    """
@overload
def l1_loss(
    predictions: Value | ArrayInput,
    targets: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
l1 = l1_loss
@overload
def l2_normalize(
    x: ArrayInput,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-10,
) -> jax.Array:
    """Normalizes vectors along ``axis`` to length one: ``x / sqrt(sum(|x|^2) + eps)``.

    Since ``eps`` is added under the root, as in MXNet, the derivative is smooth, and
    ``1 / sqrt(eps)`` at a zero vector. MXNet's modes correspond to axes: ``channel`` is 1,
    ``spatial`` all from 2 on, and ``instance`` all from 1 on. The sum is computed in at least
    float32.

    Example:
        >>> import jax.numpy as jnp
        >>> l2_normalize(jnp.asarray([[3.0, 4.0], [0.0, 0.0]]))
        Array([[0.6, 0.8],
               [0. , 0. ]], dtype=float32)
    """
@overload
def l2_normalize(
    x: Value,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-10,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def lamb(
    param: ArrayInput,
    grad: ArrayInput,
    moment1: ArrayInput,
    moment2: ArrayInput,
    step: ArrayInput,
    learning_rate: ArrayInput,
    weight_decay: float = 0.0,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-06,
    eps_root: float = 0.0,
    lazy: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A step of LAMB: an AdamW step scaled by the norm of the parameter.

    With the direction ``r`` of ``adam`` and ``q = r + weight_decay * param``: ``new_param = param -
    learning_rate * |param| / |q| * q``, where the ratio is 1 if a norm is zero (You et al., "Large
    batch optimization for deep learning: training BERT in 76 minutes", 2020). ``step`` is the
    number of previous steps.

    If ``grad`` is ``SelectedRows``, ``lazy`` treats the rows that it names as the layer: only they
    are updated, and both norms are theirs. By default the step equals that of the dense gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> zero = jnp.zeros(1)
        >>> lamb(jnp.asarray([2.0]), jnp.asarray([5.0]), zero, zero, 0, 0.25)[0]
        Array([1.5], dtype=float32)
    """
@overload
def lamb(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    moment1: SelectedRows | ArrayInput,
    moment2: SelectedRows | ArrayInput,
    step: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    weight_decay: float = 0.0,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-06,
    eps_root: float = 0.0,
    lazy: bool = False,
) -> Any: ...
@overload
def lamb(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    moment1: Symbol | ArrayInput,
    moment2: Symbol | ArrayInput,
    step: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    weight_decay: float = 0.0,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-06,
    eps_root: float = 0.0,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def lamb(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    moment1: Value | ArrayInput,
    moment2: Value | ArrayInput,
    step: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    weight_decay: float = 0.0,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-06,
    eps_root: float = 0.0,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def laplace_log_density(x: ArrayInput, loc: ArrayInput, scale: ArrayInput) -> jax.Array:
    """Log density of the Laplace distribution: ``-|x - loc| / scale - log(2 scale)``.

    The derivative with respect to ``x`` at ``loc`` is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> laplace_log_density(jnp.asarray([1.0]), 1.0, 0.5)
        Array([-0.], dtype=float32)
    """
@overload
def laplace_log_density(
    x: Value | ArrayInput,
    loc: Value | ArrayInput,
    scale: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def lax_primitive(
    *operands: ArrayLike,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
) -> tuple[jax.Array, ...]:
    """Applies the primitive of JAX called ``primitive``; JAX differentiates it.

    ``so.from_jax`` makes such calls for what no other operator computes.

    Args:
        operands: the operands of the primitive, random keys as their numbers.
        primitive: its name.
        params: its parameters, as ``registry.ops.lax.params.to_text`` writes them.
        n_out: the number of its results.
        keys: for each operand the implementation whose random keys it holds, else an empty string;
            operands beyond are arrays.

    Example:
        >>> import jax.numpy as jnp
        >>> lax_primitive(jnp.asarray([1, 2]), primitive="rev", params='{"dimensions": [0]}')
        (Array([2, 1], dtype=int32),)
    """
@overload
def lax_primitive(
    operands: Sequence[ArrayLike],
    *,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
) -> tuple[jax.Array, ...]: ...
@overload
def lax_primitive(
    *operands: NDArray | ArrayLike,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
) -> tuple[NDArray, ...]: ...
@overload
def lax_primitive(
    operands: Sequence[NDArray | ArrayLike],
    *,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
) -> tuple[NDArray, ...]: ...
@overload
def lax_primitive(
    *operands: Symbol | ArrayLike,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    name: str | None = None,
) -> Symbol: ...
@overload
def lax_primitive(
    operands: Sequence[Symbol | ArrayLike],
    *,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    name: str | None = None,
) -> Symbol: ...
@overload
def lax_primitive(
    *operands: Variable | ArrayLike,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def lax_primitive(
    operands: Sequence[Variable | ArrayLike],
    *,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def lax_primitive(
    *operands: Var | ArrayLike,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def lax_primitive(
    operands: Sequence[Var | ArrayLike],
    *,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def layer_norm(
    data: ArrayInput,
    gamma: ArrayInput = ...,
    beta: ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
) -> jax.Array:
    """Layer normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` over ``axis``.

    The mean and the biased variance are taken over ``axis``. ``gamma`` and ``beta`` have the
    lengths of the axes in ``axis``, in the order of ``data``. Statistics are computed in at least
    float32; the result has the dtype of ``data``.

    Source: Ba, Kiros and Hinton, Layer normalization, 2016.

    Example:
        >>> import jax.numpy as jnp
        >>> layer_norm(jnp.asarray([[1.0, 3.0]]), jnp.ones(2), jnp.asarray([0.0, 1.0]), eps=0.0)
        Array([[-1.,  2.]], dtype=float32)
    """
@overload
def layer_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    beta: NDArray | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
) -> NDArray: ...
@overload
def layer_norm(
    data: Symbol | ArrayInput,
    gamma: Symbol | ArrayInput = ...,
    beta: Symbol | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
    *,
    gamma_initial: Any = None,
    beta_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def layer_norm(
    data: Variable | ArrayInput,
    gamma: Variable | ArrayInput = ...,
    beta: Variable | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
    *,
    gamma_initial: Any = None,
    beta_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def layer_norm(
    data: Value | ArrayInput,
    gamma: Value | ArrayInput = ...,
    beta: Value | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-05,
    use_gamma: bool = True,
    use_beta: bool = True,
    *,
    name: str | None = None,
) -> Value: ...
LayerNorm = layer_norm
@overload
def leaky_relu(x: ArrayInput, slope: float = 0.01) -> jax.Array:
    """Leaky rectified linear unit: ``x`` where positive, ``slope x`` elsewhere.

    The derivative at zero is ``slope``.

    Example:
        >>> import jax.numpy as jnp
        >>> leaky_relu(jnp.asarray([-1.0, 2.0]), slope=0.5)
        Array([-0.5,  2. ], dtype=float32)
    """
@overload
def leaky_relu(x: SelectedRows, slope: float = 0.01) -> Any: ...
@overload
def leaky_relu(x: Value, slope: float = 0.01, *, name: str | None = None) -> Value: ...
@overload
def length_mask(length: ArrayInput, size: int, axis: int = -1) -> jax.Array:
    """A mask of positions before each end: a new ``axis`` of ``size`` entries, one row per length.

    Example:
        >>> import jax.numpy as jnp
        >>> length_mask(jnp.asarray([2, 0]), size=3)
        Array([[ True,  True, False],
               [False, False, False]], dtype=bool)
    """
@overload
def length_mask(length: Value, size: int, axis: int = -1, *, name: str | None = None) -> Value: ...
@overload
def lerp(x: ArrayInput, y: ArrayInput, weight: ArrayInput) -> jax.Array:
    """Linear interpolation from ``x`` to ``y``: ``x + weight (y - x)``.

    For finite numbers the result is exactly ``x`` if the weight is zero and ``y`` if it is one.

    Example:
        >>> import jax.numpy as jnp
        >>> lerp(jnp.asarray([0.0, 10.0]), 20.0, 0.25)
        Array([ 5. , 12.5], dtype=float32)
    """
@overload
def lerp(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    weight: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def less(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise truth value of ``x < y``.

    Example:
        >>> import jax.numpy as jnp
        >>> less(jnp.asarray([1.0, 2.0]), 2.0)
        Array([ True, False], dtype=bool)
    """
@overload
def less(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
broadcast_lesser = less
less_than = less
lt = less
@overload
def less_equal(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise truth value of ``x <= y``.

    Example:
        >>> import jax.numpy as jnp
        >>> less_equal(jnp.asarray([1.0, 3.0]), 2.0)
        Array([ True, False], dtype=bool)
    """
@overload
def less_equal(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
broadcast_lesser_equal = less_equal
le = less_equal
@overload
def let_through(x: ArrayInput, condition: ArrayInput) -> jax.Array:
    """``x`` if ``condition`` holds, else zeros; for rows, an array that names no rows.

    A lazy update by a gradient that names no rows changes nothing. The zeros are independent of the
    entries of ``x``, even of NaN.

    Example:
        >>> import jax.numpy as jnp
        >>> let_through(jnp.asarray([1.0, jnp.nan]), False)
        Array([0., 0.], dtype=float32)
    """
@overload
def let_through(x: SelectedRows | ArrayInput, condition: SelectedRows | ArrayInput) -> Any: ...
@overload
def let_through(
    x: Value | ArrayInput,
    condition: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def lgamma(x: ArrayInput) -> jax.Array:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ...

    Example:
        >>> import jax.numpy as jnp
        >>> lgamma(jnp.asarray([4.0, 0.0]))
        Array([1.7917..., inf], dtype=float32)
    """
@overload
def lgamma(x: Value, *, name: str | None = None) -> Value: ...
gammaln = lgamma
@overload
def linear_cross_entropy(
    hidden: ArrayInput,
    weight: ArrayInput,
    labels: ArrayInput,
    bias: ArrayInput | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
) -> jax.Array:
    """Softmax cross-entropy of the scores ``hidden @ weight^T + bias``, which are not stored.

    ``hidden`` has shape ``(..., width)``, ``weight`` ``(classes, width)``, ``labels`` one integer
    class for each example, and the result one loss for each. Where examples times classes are
    many, the scores are computed chunk by chunk, and again for the gradient; ``registry.tuning``
    has the size from which on. Second derivatives compute all scores.

    ``smoothing`` and ``ignore_label`` are those of ``softmax_cross_entropy``. ``z_loss`` is the
    factor of the square of the scores' logsumexp, which is added. ``soft_cap`` bounds the scores:
    ``soft_cap * tanh(scores / soft_cap)``. A class out of range gives NaN. The scores are computed
    in at least float32.

    Source: Wijmans et al., Cut Your Losses in Large-Vocabulary Language Models, 2024.

    Example:
        >>> import jax.numpy as jnp
        >>> linear_cross_entropy(jnp.ones((1, 2)), jnp.eye(2), jnp.asarray([0]))
        Array([0.6931472], dtype=float32)
    """
@overload
def linear_cross_entropy(
    hidden: Value | ArrayInput,
    weight: Value | ArrayInput,
    labels: Value | ArrayInput,
    bias: Value | ArrayInput | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def linear_cross_entropy_and_gradient(
    hidden: ArrayInput,
    weight: ArrayInput,
    labels: ArrayInput,
    of_softmax: ArrayInput,
    of_label: ArrayInput,
    of_all: ArrayInput | None = None,
    bias: ArrayInput | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    of_bias: bool = False,
) -> tuple[jax.Array, ...]:
    """The results of ``linear_cross_entropy`` and of its gradient, with each score computed once.

    A graph that needs both is lowered to it if the numbers of the gradient do not depend on the
    loss. Apart from that the inputs and attributes are those of the two operators.

    Example:
        >>> import jax.numpy as jnp
        >>> hidden, weight, label = jnp.ones((1, 1)), jnp.zeros((2, 1)), jnp.asarray([1])
        >>> ones = jnp.ones(1)
        >>> results = linear_cross_entropy_and_gradient(hidden, weight, label, ones, ones)
        >>> results[0], results[3]
        (Array([0.6931472], dtype=float32), Array([[ 0.5],
               [-0.5]], dtype=float32))
    """
@overload
def linear_cross_entropy_and_gradient(
    hidden: Symbol | ArrayInput,
    weight: Symbol | ArrayInput,
    labels: Symbol | ArrayInput,
    of_softmax: Symbol | ArrayInput,
    of_label: Symbol | ArrayInput,
    of_all: Symbol | ArrayInput | None = None,
    bias: Symbol | ArrayInput | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    of_bias: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def linear_cross_entropy_and_gradient(
    hidden: Value | ArrayInput,
    weight: Value | ArrayInput,
    labels: Value | ArrayInput,
    of_softmax: Value | ArrayInput,
    of_label: Value | ArrayInput,
    of_all: Value | ArrayInput | None = None,
    bias: Value | ArrayInput | None = None,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
    of_bias: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, ...]: ...
@overload
def linear_cross_entropy_gradient(
    hidden: ArrayInput,
    weight: ArrayInput,
    labels: ArrayInput,
    logsumexp: ArrayInput,
    of_softmax: ArrayInput,
    of_label: ArrayInput,
    of_all: ArrayInput | None = None,
    bias: ArrayInput | None = None,
    soft_cap: float | None = None,
    of_bias: bool = False,
) -> tuple[jax.Array, ...]:
    """Gradients of functions of linear scores ``y`` with respect to hidden, weight and bias.

    The cotangent of an example's scores is
    ``of_softmax * exp(y - logsumexp) - of_label * one_hot(label) - of_all``. The scores are those
    of ``linear_cross_entropy``, and computed chunk by chunk if they are many.

    Example:
        >>> import jax.numpy as jnp
        >>> hidden, weight, label = jnp.ones((1, 1)), jnp.zeros((2, 1)), jnp.asarray([1])
        >>> one = jnp.ones(1)
        >>> linear_cross_entropy_gradient(hidden, weight, label, jnp.log(2 * one), one, one)[1]
        Array([[ 0.5],
               [-0.5]], dtype=float32)
    """
@overload
def linear_cross_entropy_gradient(
    hidden: Symbol | ArrayInput,
    weight: Symbol | ArrayInput,
    labels: Symbol | ArrayInput,
    logsumexp: Symbol | ArrayInput,
    of_softmax: Symbol | ArrayInput,
    of_label: Symbol | ArrayInput,
    of_all: Symbol | ArrayInput | None = None,
    bias: Symbol | ArrayInput | None = None,
    soft_cap: float | None = None,
    of_bias: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def linear_cross_entropy_gradient(
    hidden: Value | ArrayInput,
    weight: Value | ArrayInput,
    labels: Value | ArrayInput,
    logsumexp: Value | ArrayInput,
    of_softmax: Value | ArrayInput,
    of_label: Value | ArrayInput,
    of_all: Value | ArrayInput | None = None,
    bias: Value | ArrayInput | None = None,
    soft_cap: float | None = None,
    of_bias: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, ...]: ...
@overload
def linear_cross_entropy_tangent(
    hidden: ArrayInput,
    weight: ArrayInput,
    labels: ArrayInput,
    logsumexp: ArrayInput,
    hidden_tangent: ArrayInput | None = None,
    weight_tangent: ArrayInput | None = None,
    bias_tangent: ArrayInput | None = None,
    bias: ArrayInput | None = None,
    soft_cap: float | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Sums of the tangents of linear scores: the transpose of the gradient of cross-entropy.

    For each example: the sum weighted by ``exp(scores - logsumexp)``, the tangent of the label's
    score, and the sum over all classes. The scores are those of ``linear_cross_entropy``.

    Example:
        >>> import jax.numpy as jnp
        >>> hidden, weight, label = jnp.ones((1, 1)), jnp.ones((2, 1)), jnp.asarray([1])
        >>> sums = linear_cross_entropy_tangent(hidden, weight, label, jnp.ones(1), hidden)
        >>> [float(one[0]) for one in sums]
        [2.0, 1.0, 2.0]
    """
@overload
def linear_cross_entropy_tangent(
    hidden: Symbol | ArrayInput,
    weight: Symbol | ArrayInput,
    labels: Symbol | ArrayInput,
    logsumexp: Symbol | ArrayInput,
    hidden_tangent: Symbol | ArrayInput | None = None,
    weight_tangent: Symbol | ArrayInput | None = None,
    bias_tangent: Symbol | ArrayInput | None = None,
    bias: Symbol | ArrayInput | None = None,
    soft_cap: float | None = None,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def linear_cross_entropy_tangent(
    hidden: Value | ArrayInput,
    weight: Value | ArrayInput,
    labels: Value | ArrayInput,
    logsumexp: Value | ArrayInput,
    hidden_tangent: Value | ArrayInput | None = None,
    weight_tangent: Value | ArrayInput | None = None,
    bias_tangent: Value | ArrayInput | None = None,
    bias: Value | ArrayInput | None = None,
    soft_cap: float | None = None,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def linear_recurrence(
    weight: ArrayInput,
    slopes: ArrayInput,
    decay: ArrayInput | None = None,
    carry: ArrayInput | None = None,
    projection: ArrayInput | None = None,
    to_gates: ArrayInput | None = None,
    to_cell: ArrayInput | None = None,
    to_out: ArrayInput | None = None,
    reverse: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Linear recurrence over time that is the tangent of a recurrent layer.

    ``gates[t] = to_gates[t] + weight @ projection @ out[t-1]``

    ``cell[t] = to_cell[t] + decay[t] * cell[t-1] + sum over g of slopes[t, g] * gates[t, g]``

    ``out[t] = to_out[t] + carry[t] * cell[t] + slopes[t, last] * gates[t, last]``

    It starts from a state of zeros and runs over axes time, batch and unit; with ``reverse`` from
    the last step to the first. ``gates`` and ``slopes`` are blocks of units, one for each gate.
    With ``carry`` the last gate opens the output and is not in the sum; without it
    ``out[t] = to_out[t] + cell[t]``. Without ``decay`` the cell keeps nothing of the step before,
    without ``projection`` that factor is omitted, and a source that is omitted is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> weight, slopes = jnp.asarray([[2.0]]), jnp.ones((3, 1, 1))
        >>> source = jnp.asarray([1.0, 0.0, 0.0]).reshape(3, 1, 1)
        >>> linear_recurrence(weight, slopes, to_gates=source)[2].ravel()
        Array([1., 2., 4.], dtype=float32)
    """
@overload
def linear_recurrence(
    weight: Symbol | ArrayInput,
    slopes: Symbol | ArrayInput,
    decay: Symbol | ArrayInput | None = None,
    carry: Symbol | ArrayInput | None = None,
    projection: Symbol | ArrayInput | None = None,
    to_gates: Symbol | ArrayInput | None = None,
    to_cell: Symbol | ArrayInput | None = None,
    to_out: Symbol | ArrayInput | None = None,
    reverse: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def linear_recurrence(
    weight: Value | ArrayInput,
    slopes: Value | ArrayInput,
    decay: Value | ArrayInput | None = None,
    carry: Value | ArrayInput | None = None,
    projection: Value | ArrayInput | None = None,
    to_gates: Value | ArrayInput | None = None,
    to_cell: Value | ArrayInput | None = None,
    to_out: Value | ArrayInput | None = None,
    reverse: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def linear_recurrence_adjoint(
    weight: ArrayInput,
    slopes: ArrayInput,
    decay: ArrayInput | None = None,
    carry: ArrayInput | None = None,
    projection: ArrayInput | None = None,
    to_gates: ArrayInput | None = None,
    to_cell: ArrayInput | None = None,
    to_out: ArrayInput | None = None,
    reverse: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Adjoint of ``linear_recurrence``: the transposed steps from the last one to the first.

    ``out[t] = to_out[t] + projection.T @ weight.T @ gates[t+1]``

    ``cell[t] = to_cell[t] + carry[t] * out[t] + decay[t+1] * cell[t+1]``

    ``gates[t, g] = to_gates[t, g] + slopes[t, g] * cell[t]``; with ``carry``, for the last gate
    ``to_gates[t, last] + slopes[t, last] * out[t]``.

    ``reverse`` is that of ``linear_recurrence``, so with it these steps run forward.

    Example:
        >>> import jax.numpy as jnp
        >>> weight, slopes = jnp.asarray([[2.0]]), jnp.ones((3, 1, 1))
        >>> source = jnp.asarray([0.0, 0.0, 1.0]).reshape(3, 1, 1)
        >>> linear_recurrence_adjoint(weight, slopes, to_out=source)[0].ravel()
        Array([4., 2., 1.], dtype=float32)
    """
@overload
def linear_recurrence_adjoint(
    weight: Symbol | ArrayInput,
    slopes: Symbol | ArrayInput,
    decay: Symbol | ArrayInput | None = None,
    carry: Symbol | ArrayInput | None = None,
    projection: Symbol | ArrayInput | None = None,
    to_gates: Symbol | ArrayInput | None = None,
    to_cell: Symbol | ArrayInput | None = None,
    to_out: Symbol | ArrayInput | None = None,
    reverse: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def linear_recurrence_adjoint(
    weight: Value | ArrayInput,
    slopes: Value | ArrayInput,
    decay: Value | ArrayInput | None = None,
    carry: Value | ArrayInput | None = None,
    projection: Value | ArrayInput | None = None,
    to_gates: Value | ArrayInput | None = None,
    to_cell: Value | ArrayInput | None = None,
    to_out: Value | ArrayInput | None = None,
    reverse: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def linear_regression_output(
    data: ArrayInput,
    label: ArrayInput,
    grad_scale: float = 1.0,
) -> jax.Array:
    """Returns ``data``; its gradient is that of a squared error.

    The gradient is ``(data - label) * grad_scale / m``, where ``m`` is the number of outputs of
    each example. The cotangent is ignored, and the gradient for ``label`` is zero. ``label`` may
    have another shape with the same number of entries.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1.0, 1.0])
        >>> jax.grad(lambda x: linear_regression_output(x, label).sum())(jnp.asarray([3.0, 0.0]))
        Array([ 2., -1.], dtype=float32)
    """
@overload
def linear_regression_output(
    data: Value | ArrayInput,
    label: Value | ArrayInput,
    grad_scale: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
LinearRegressionOutput = linear_regression_output
@overload
def linear_scan(
    x: ArrayInput,
    decay: ArrayInput,
    axis: int | None = None,
    reverse: bool = False,
) -> jax.Array:
    """First-order linear recurrence along ``axis``: ``out[i] = decay[i] out[i - 1] + x[i]``.

    It starts from zero. With ``reverse`` it runs from the end:
    ``out[i] = decay[i] out[i + 1] + x[i]``. ``axis`` may be omitted if there is only one. All steps
    are computed in parallel, in a tree.

    Source: Blelloch, "Prefix sums and their applications" (1990).

    Example:
        >>> import jax.numpy as jnp
        >>> linear_scan(jnp.asarray([1.0, 1.0, 1.0]), jnp.asarray([9.0, 0.5, 0.5]))
        Array([1.  , 1.5 , 1.75], dtype=float32)
    """
@overload
def linear_scan(
    x: Value | ArrayInput,
    decay: Value | ArrayInput,
    axis: int | None = None,
    reverse: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def linear_solve(
    *operands: ArrayLike,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
) -> tuple[jax.Array, ...]:
    """Solves ``matvec(c, x) = b`` for ``x`` by ``solve``, whatever its steps are.

    The derivative is that of the solution: another system, which ``transpose_solve`` solves for the
    transposed matrix. The constants of ``solve``, such as factors of the matrix, have none.

    Args:
        operands: the constants of the four functions, then ``b``. Each function takes its constants
            and a vector like ``b``, which may be several arrays, and returns such a vector.
        lengths: the numbers of constants.
        matvec: the product with the matrix, linear in the vector.
        vecmat: the product with the transposed matrix.
        solve: the solution for the matrix.
        transpose_solve: the solution for the transposed matrix.

    This corresponds to ``jax.lax.custom_linear_solve``.

    Example:
        >>> import symop as so
        >>> c, b = so.var("c", shape=()), so.var("b", shape=())
        >>> product = so.body(lambda c, x: c * x, ((), "float32"), ((), "float32"))
        >>> quotient = so.body(lambda c, x: x / c, ((), "float32"), ((), "float32"))
        >>> (x,) = so.linear_solve(c, c, c, c, b, lengths=(1, 1, 1, 1), matvec=product,
        ...     vecmat=product, solve=quotient, transpose_solve=quotient)
        >>> float(so.grad(x, c).eval(c=2.0, b=3.0))
        -0.75
    """
@overload
def linear_solve(
    operands: Sequence[ArrayLike],
    *,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
) -> tuple[jax.Array, ...]: ...
@overload
def linear_solve(
    *operands: TensorArray | SelectedRows | ArrayLike,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
) -> Any: ...
@overload
def linear_solve(
    operands: Sequence[TensorArray | SelectedRows | ArrayLike],
    *,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
) -> Any: ...
@overload
def linear_solve(
    *operands: NDArray | ArrayLike,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
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
    training: bool = ...,
) -> tuple[NDArray, ...]: ...
@overload
def linear_solve(
    *operands: Symbol | ArrayLike,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def linear_solve(
    operands: Sequence[Symbol | ArrayLike],
    *,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def linear_solve(
    *operands: Variable | ArrayLike,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def linear_solve(
    operands: Sequence[Variable | ArrayLike],
    *,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def linear_solve(
    *operands: Var | ArrayLike,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def linear_solve(
    operands: Sequence[Var | ArrayLike],
    *,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def linear_warmup(
    learning_rate: ArrayInput,
    step: ArrayInput,
    warmup_steps: float,
    start_value: float,
    end_value: float,
) -> jax.Array:
    """Linear warmup from ``start_value`` to ``end_value`` before any schedule.

    ``start_value + (end_value - start_value) * step / warmup_steps`` before ``warmup_steps``, and
    ``learning_rate`` from then on.

    Example:
        >>> import jax.numpy as jnp
        >>> rates, line = jnp.asarray([9.0, 9.0]), {"start_value": 0.0, "end_value": 1.0}
        >>> linear_warmup(rates, jnp.asarray([1, 2]), warmup_steps=2, **line)
        Array([0.5, 9. ], dtype=float32)
    """
@overload
def linear_warmup(
    learning_rate: Value | ArrayInput,
    step: Value | ArrayInput,
    warmup_steps: float,
    start_value: float,
    end_value: float,
    *,
    name: str | None = None,
) -> Value: ...
def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """``num`` evenly spaced numbers from ``start`` to ``stop``.

    ``out[i] = start + i * (stop - start) / (num - 1)``; without ``endpoint`` the divisor is ``num``
    and ``stop`` is excluded. The result has the default floating dtype by default.

    Source: Python array API standard 2024.12, ``linspace``.

    Example:
        >>> linspace(0.0, 1.0, 5)
        Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
@overload
def local_response_norm(
    data: ArrayInput,
    nsize: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    knorm: float = 2.0,
    axis: int = 1,
) -> jax.Array:
    """Local response normalization: ``data / (knorm + alpha / nsize * s)^beta``.

    ``s`` is the sum of the squares of the ``nsize`` channels along ``axis`` around each channel,
    with fewer at both ends. It is computed in at least float32.

    Source: Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional
    neural networks, 2012, where ``alpha`` is not divided by ``nsize``.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([[1.0, 2.0, 3.0]])
        >>> local_response_norm(data, nsize=3, alpha=3.0, beta=1.0, knorm=1.0)
        Array([[0.16666..., 0.13333..., 0.21428...]], dtype=float32)
    """
@overload
def local_response_norm(
    data: Value,
    nsize: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    knorm: float = 2.0,
    axis: int = 1,
    *,
    name: str | None = None,
) -> Value: ...
LRN = local_response_norm
@overload
def log(x: ArrayInput) -> jax.Array:
    """Natural logarithm, element-wise; minus infinity at zero, NaN for negative numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> log(jnp.asarray([1.0, 0.0]))
        Array([  0., -inf], dtype=float32)
    """
@overload
def log(x: Value, *, name: str | None = None) -> Value: ...
@overload
def log10(x: ArrayInput) -> jax.Array:
    """Base-10 logarithm, element-wise; minus infinity at zero, NaN for negative numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> log10(jnp.asarray([1.0, 0.0]))
        Array([  0., -inf], dtype=float32)
    """
@overload
def log10(x: Value, *, name: str | None = None) -> Value: ...
@overload
def log1p(x: ArrayInput) -> jax.Array:
    """Element-wise ``log(1 + x)``, accurate near zero.

    Example:
        >>> import jax.numpy as jnp
        >>> log1p(jnp.asarray([0.0, 1e-10]))
        Array([0.e+00, 1.e-10], dtype=float32)
    """
@overload
def log1p(x: SelectedRows) -> Any: ...
@overload
def log1p(x: Value, *, name: str | None = None) -> Value: ...
@overload
def log2(x: ArrayInput) -> jax.Array:
    """Base-2 logarithm, element-wise; minus infinity at zero, NaN for negative numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> log2(jnp.asarray([8.0, 0.0]))
        Array([  3., -inf], dtype=float32)
    """
@overload
def log2(x: Value, *, name: str | None = None) -> Value: ...
@overload
def log_ndtr(x: ArrayInput) -> jax.Array:
    """Logarithm of ``ndtr``, computed without underflow: about ``-x^2 / 2`` far below zero.

    Example:
        >>> import jax.numpy as jnp
        >>> log_ndtr(jnp.asarray([0.0, -1000.0]))
        Array([-6.931...e-01, -5.000...e+05], dtype=float32)
    """
@overload
def log_ndtr(x: Value, *, name: str | None = None) -> Value: ...
@overload
def log_sigmoid(x: ArrayInput) -> jax.Array:
    """Logarithm of the sigmoid, element-wise: ``log(sigmoid(x))``, computed without underflow.

    Example:
        >>> import jax.numpy as jnp
        >>> log_sigmoid(jnp.asarray([-1000.0, jnp.inf]))
        Array([-1000.,    -0.], dtype=float32)
    """
@overload
def log_sigmoid(x: Value, *, name: str | None = None) -> Value: ...
logsigmoid = log_sigmoid
@overload
def log_softmax(
    x: ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
) -> jax.Array:
    """Log-softmax: ``log(softmax(x / temperature))`` along ``axis``, without underflow.

    Example:
        >>> import jax.numpy as jnp
        >>> log_softmax(jnp.asarray([0.0, 1000.0]))
        Array([-1000.,     0.], dtype=float32)
    """
@overload
def log_softmax(
    x: Value,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def log_softmax_with_length(
    x: ArrayInput,
    length: ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
) -> jax.Array:
    """Logarithm of ``softmax_with_length(x, length)``, accurate where that underflows.

    Beyond the end it is minus infinity and constant: no gradient flows back from there.

    Example:
        >>> import jax.numpy as jnp
        >>> log_softmax_with_length(jnp.asarray([0.0, 1000.0, 5.0]), jnp.asarray(2))
        Array([-1000.,     0.,   -inf], dtype=float32)
    """
@overload
def log_softmax_with_length(
    x: Value | ArrayInput,
    length: Value | ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def logaddexp(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Logarithm of the sum of exponentials: ``log(exp(x) + exp(y))``, computed without overflow.

    Example:
        >>> import jax.numpy as jnp
        >>> logaddexp(jnp.asarray([0.0, -jnp.inf]), jnp.asarray([1000.0, -jnp.inf]))
        Array([1000.,  -inf], dtype=float32)
    """
@overload
def logaddexp(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def logaddexp2(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Base-2 logarithm of a sum of powers: ``log2(2^x + 2^y)``, computed without overflow.

    Example:
        >>> import jax.numpy as jnp
        >>> logaddexp2(jnp.asarray([3.0, -jnp.inf]), jnp.asarray([3.0, -jnp.inf]))
        Array([  4., -inf], dtype=float32)
    """
@overload
def logaddexp2(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def logcumsumexp(x: ArrayInput, axis: int | None = None, reverse: bool = False) -> jax.Array:
    """Cumulative log-sum-exp along ``axis``: ``log(exp(x[0]) + ... + exp(x[i]))``. No overflow.

    ``axis`` may be omitted if there is only one; ``reverse`` sums from the end. As long as only
    equal infinities have occurred, the last of them receives the whole gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> logcumsumexp(jnp.asarray([-jnp.inf, 1000.0, 1000.0]))
        Array([     -inf, 1000.    , 1000.69...], dtype=float32)
    """
@overload
def logcumsumexp(
    x: Value,
    axis: int | None = None,
    reverse: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
cumlogsumexp = logcumsumexp
@overload
def logical_and(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise logical and of ``x`` and ``y``; any nonzero number counts as true.

    Example:
        >>> import jax.numpy as jnp
        >>> logical_and(jnp.asarray([True, False]), True)
        Array([ True, False], dtype=bool)
    """
@overload
def logical_and(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
broadcast_logical_and = logical_and
@overload
def logical_not(x: ArrayInput) -> jax.Array:
    """Element-wise logical not of ``x``; any nonzero number counts as true.

    Example:
        >>> import jax.numpy as jnp
        >>> logical_not(jnp.asarray([True, False]))
        Array([False,  True], dtype=bool)
    """
@overload
def logical_not(x: Value, *, name: str | None = None) -> Value: ...
@overload
def logical_or(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise logical or of ``x`` and ``y``; any nonzero number counts as true.

    Example:
        >>> import jax.numpy as jnp
        >>> logical_or(jnp.asarray([True, False]), False)
        Array([ True, False], dtype=bool)
    """
@overload
def logical_or(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
broadcast_logical_or = logical_or
@overload
def logical_xor(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise logical exclusive or of ``x`` and ``y``; any nonzero number counts as true.

    Example:
        >>> import jax.numpy as jnp
        >>> logical_xor(jnp.asarray([True, False]), True)
        Array([False,  True], dtype=bool)
    """
@overload
def logical_xor(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
broadcast_logical_xor = logical_xor
@overload
def logistic_regression_output(
    data: ArrayInput,
    label: ArrayInput,
    grad_scale: float = 1.0,
) -> jax.Array:
    """Sigmoid of ``data`` with the gradient of the cross-entropy.

    The gradient is ``(sigmoid(data) - label) * grad_scale / m``, where ``m`` is the number of
    outputs of each example. The cotangent is ignored, and the gradient for ``label`` is zero.
    ``label`` may have another shape with the same number of entries.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1.0, 0.0])
        >>> jax.grad(lambda x: logistic_regression_output(x, label).sum())(jnp.zeros(2))
        Array([-0.5,  0.5], dtype=float32)
    """
@overload
def logistic_regression_output(
    data: Value | ArrayInput,
    label: Value | ArrayInput,
    grad_scale: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
LogisticRegressionOutput = logistic_regression_output
@overload
def logit(x: ArrayInput) -> jax.Array:
    """Log-odds, the inverse of ``sigmoid``: ``log(x / (1 - x))``, infinite at 0 and 1.

    Example:
        >>> import jax.numpy as jnp
        >>> logit(jnp.asarray([0.0, 0.5, 1.0]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
@overload
def logit(x: Value, *, name: str | None = None) -> Value: ...
@overload
def logsumexp(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Logarithm of the sum of exponentials over ``axis``, by default over all axes.

    ``log(sum(exp(x)))``, computed without overflow; minus infinity for an empty sum. Where the
    result is infinite, the entries equal to it share the gradient equally, as in ``logaddexp``. For
    complex entries it is the principal logarithm, with imaginary part between -pi and pi; the real
    parts determine which entries are infinite, and the imaginary part of an infinite result is
    zero.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> logsumexp(jnp.asarray([1000.0, 1000.0, -jnp.inf]))
        Array(1000.693..., dtype=float32)
        >>> jax.grad(logsumexp)(jnp.asarray([-jnp.inf, -jnp.inf]))
        Array([0.5, 0.5], dtype=float32)
    """
@overload
def logsumexp(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def lookup_table(
    table: ArrayInput,
    ids: ArrayInput,
    padding_idx: int | None = None,
    sparse: bool = False,
    rows: int | None = None,
    width: int | None = None,
) -> jax.Array:
    """Rows ``ids`` of ``table``: the embedding of each id.

    Where an id equals ``padding_idx`` (counted from the end if negative), the row is zero and no
    gradient reaches the table. Ids must be in ``range(table.shape[0])``: a call on eager arrays
    raises an error for others; in a compiled program such an id is dropped: its row is zero, and it
    contributes no gradient.

    A symbolic call may leave the table out: ``lookup_table(ids, rows=..., width=...)`` creates it.

    With ``sparse`` the gradient of the table is a ``SelectedRows``, which names the rows that were
    looked up; its cost does not depend on the height of the table. (``jax.grad`` returns a dense
    gradient anyway: in JAX a gradient has the type of its primal.)

    Raises:
        ArgumentError: an id of an eager call is out of range.

    Example:
        >>> import jax.numpy as jnp
        >>> lookup_table(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([1, 0]), padding_idx=0)
        Array([[3., 4.],
               [0., 0.]], dtype=float32)
    """
@overload
def lookup_table(
    table: NDArray | ArrayInput,
    ids: NDArray | ArrayInput,
    padding_idx: int | None = None,
    sparse: bool = False,
    rows: int | None = None,
    width: int | None = None,
) -> NDArray: ...
@overload
def lookup_table(
    table: Symbol | ArrayInput,
    ids: Symbol | ArrayInput,
    padding_idx: int | None = None,
    sparse: bool = False,
    rows: int | None = None,
    width: int | None = None,
    *,
    table_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def lookup_table(
    ids: Symbol | ArrayInput,
    padding_idx: int | None = None,
    sparse: bool = False,
    rows: int | None = None,
    width: int | None = None,
    *,
    table_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def lookup_table(
    table: Variable | ArrayInput,
    ids: Variable | ArrayInput,
    padding_idx: int | None = None,
    sparse: bool = False,
    rows: int | None = None,
    width: int | None = None,
    *,
    table_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def lookup_table(
    ids: Variable | ArrayInput,
    padding_idx: int | None = None,
    sparse: bool = False,
    rows: int | None = None,
    width: int | None = None,
    *,
    table_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def lookup_table(
    table: Value | ArrayInput,
    ids: Value | ArrayInput,
    padding_idx: int | None = None,
    sparse: bool = False,
    rows: int | None = None,
    width: int | None = None,
    *,
    name: str | None = None,
) -> Value: ...
embedding = lookup_table
@overload
def lp_pooling(
    data: ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    ceil_mode: bool = False,
    p_value: float = 2.0,
) -> jax.Array:
    """Power-average pooling: ``sum(|x|^p)^(1/p)`` of each window, with ``p = p_value``.

    There are one to three spatial axes. The other attributes are those of ``max_pooling``; padding
    adds nothing. Derivatives that do not exist are zero: those for a window of zeros, where the
    norm is not differentiable, and higher ones at a zero if ``p`` is not even. The sum is computed
    in at least float32. The powers are not scaled, which would take a second pass over each window:
    if they leave the range of the dtype, the sum is infinite or zero.

    Example:
        >>> import jax.numpy as jnp
        >>> lp_pooling(jnp.asarray([[[3.0, -4.0, 0.0, 0.0]]]), kernel=2)
        Array([[[5., 0.]]], dtype=float32)
    """
@overload
def lp_pooling(
    data: Value,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    ceil_mode: bool = False,
    p_value: float = 2.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def lq(x: ArrayInput) -> tuple[jax.Array, jax.Array]:
    """LQ decomposition ``x = lower @ q`` with ``q @ q^H`` the identity and ``lower`` triangular.

    The outputs are ``q`` and ``lower``, in this order. For ``x`` of shape ``(..., m, n)`` with
    ``k = min(m, n)``, ``q`` has shape ``(..., k, n)`` and ``lower`` has shape ``(..., m, k)``. The
    result is the QR decomposition of the conjugate transpose, with its signs: the gradient requires
    the first ``k`` rows of ``x`` to be linearly independent. Half precision is computed in single
    precision.

    Example:
        >>> import jax.numpy as jnp
        >>> q, lower = lq(jnp.asarray([[3.0, 4.0]]))
        >>> print((lower @ q).round(4))
        [[3. 4.]]
    """
@overload
def lq(x: Symbol, *, name: str | None = None) -> Symbol: ...
@overload
def lq(x: Value, *, name: str | None = None) -> tuple[Value, Value]: ...
gelqf = lq
linalg_gelqf = lq
@overload
def lstm(
    data: ArrayLike,
    hidden: ArrayLike | None = None,
    cell: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    *weights: ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Long short-term memory (LSTM) layers over whole sequences.

    With ``a = W x[t] + b + R h[t-1] + c``, in four blocks of rows for the gates:

    ``i, f, o = sigmoid(a)`` in the first, second and fourth, ``g = tanh(a)`` in the third,

    ``cell[t] = f * cell[t-1] + i * g``

    ``h[t] = o * tanh(cell[t])``, or with a projection ``P (o * tanh(cell[t]))``

    Data, lengths, layers, directions, ``out`` and created weights are as in ``rnn``. ``weights``
    lists, for each layer and each of its directions: ``W`` of shape ``(4 * units, features)``;
    ``R`` of shape ``(4 * units, width)``; ``b`` and ``c`` of shape ``(4 * units,)``, or neither in
    all of them; and ``P`` of shape ``(width, units)``, or no ``P`` in all of them, in which case
    ``width`` is ``units``. ``hidden``, of shape ``(layers * directions, batch, width)``, and
    ``cell``, of shape ``(layers * directions, batch, units)``, are the initial values of ``h`` and
    ``cell``, by default zero. ``last_hidden`` and ``last_cell`` are their values after the last
    step of each direction. States are carried from step to step in at least float32.

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997, with the forget gate of Gers,
    Schmidhuber and Cummins, 2000, and the projection of Sak, Senior and Beaufays, 2014.

    Example:
        >>> import jax.numpy as jnp
        >>> zeros = jnp.zeros((4, 1))
        >>> data, cell = jnp.ones((3, 1, 1)), jnp.ones((1, 1, 1))
        >>> out, last_hidden, last_cell = lstm(data, None, cell, None, zeros, zeros)
        >>> last_cell.ravel()
        Array([0.125], dtype=float32)
    """
@overload
def lstm(
    data: ArrayLike,
    hidden: ArrayLike | None = None,
    cell: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    *,
    weights: Sequence[ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
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
    bidirectional: bool = False,
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
    bidirectional: bool = False,
) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def lstm(
    data: Symbol | ArrayLike,
    hidden: Symbol | ArrayLike | None = None,
    cell: Symbol | ArrayLike | None = None,
    lengths: Symbol | ArrayLike | None = None,
    *weights: Symbol | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    weights_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def lstm(
    data: Symbol | ArrayLike,
    hidden: Symbol | ArrayLike | None = None,
    cell: Symbol | ArrayLike | None = None,
    lengths: Symbol | ArrayLike | None = None,
    *,
    weights: Sequence[Symbol | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    weights_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def lstm(
    data: Variable | ArrayLike,
    hidden: Variable | ArrayLike | None = None,
    cell: Variable | ArrayLike | None = None,
    lengths: Variable | ArrayLike | None = None,
    *weights: Variable | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    weights_initial: Any = None,
    name: str | None = None,
) -> tuple[Variable, Variable, Variable]: ...
@overload
def lstm(
    data: Variable | ArrayLike,
    hidden: Variable | ArrayLike | None = None,
    cell: Variable | ArrayLike | None = None,
    lengths: Variable | ArrayLike | None = None,
    *,
    weights: Sequence[Variable | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    weights_initial: Any = None,
    name: str | None = None,
) -> tuple[Variable, Variable, Variable]: ...
@overload
def lstm(
    data: Var | ArrayLike,
    hidden: Var | ArrayLike | None = None,
    cell: Var | ArrayLike | None = None,
    lengths: Var | ArrayLike | None = None,
    *weights: Var | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    name: str | None = None,
) -> tuple[Var, Var, Var]: ...
@overload
def lstm(
    data: Var | ArrayLike,
    hidden: Var | ArrayLike | None = None,
    cell: Var | ArrayLike | None = None,
    lengths: Var | ArrayLike | None = None,
    *,
    weights: Sequence[Var | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    name: str | None = None,
) -> tuple[Var, Var, Var]: ...
@overload
def mae_regression_output(
    data: ArrayInput,
    label: ArrayInput,
    grad_scale: float = 1.0,
) -> jax.Array:
    """Returns ``data``; its gradient is that of an absolute error.

    The gradient is ``sign(data - label) * grad_scale / m``, where ``m`` is the number of outputs of
    each example. The cotangent is ignored, and the gradient for ``label`` is zero. ``label`` may
    have another shape with the same number of entries.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1.0, 1.0])
        >>> jax.grad(lambda x: mae_regression_output(x, label).sum())(jnp.asarray([3.0, 1.0]))
        Array([1., 0.], dtype=float32)
    """
@overload
def mae_regression_output(
    data: Value | ArrayInput,
    label: Value | ArrayInput,
    grad_scale: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
MAERegressionOutput = mae_regression_output
@overload
def make_loss(
    data: ArrayInput,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Literal['null', 'batch', 'valid'] = 'null',
) -> jax.Array:
    """Returns ``data`` as a loss: its gradient is ``grad_scale``, whatever the cotangent is.

    With ``normalization="batch"`` the gradient is divided by the number of rows, all axes but the
    last flattened; with ``"valid"`` by the number of entries that exceed ``valid_thresh``, at least
    one.

    Example:
        >>> import jax
        >>> float(jax.grad(lambda x: 100.0 * make_loss(x, grad_scale=2.0))(3.0))
        2.0
    """
@overload
def make_loss(
    data: Value,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Literal['null', 'batch', 'valid'] = 'null',
    *,
    name: str | None = None,
) -> Value: ...
MakeLoss = make_loss
@overload
def masked_log_softmax(
    x: ArrayInput,
    mask: ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
) -> jax.Array:
    """Logarithm of ``masked_softmax(x, mask)``, accurate where that underflows.

    Where ``mask`` is false it is minus infinity and constant: no gradient flows back from there.

    Example:
        >>> import jax.numpy as jnp
        >>> masked_log_softmax(jnp.asarray([0.0, 1000.0, 5.0]), jnp.asarray([True, True, False]))
        Array([-1000.,     0.,   -inf], dtype=float32)
    """
@overload
def masked_log_softmax(
    x: Value | ArrayInput,
    mask: Value | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def masked_softmax(
    x: ArrayInput,
    mask: ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
) -> jax.Array:
    """Softmax of ``x / temperature`` over the entries along ``axis`` where ``mask`` is true.

    The other entries are zero, and so is their gradient. Where no entry is unmasked, all are zero.
    ``mask`` broadcasts to the shape of ``x``. The sum is computed in at least float32.

    Example:
        >>> import jax.numpy as jnp
        >>> mask = jnp.asarray([[True, True, False], [False, False, False]])
        >>> masked_softmax(jnp.zeros((2, 3)), mask)
        Array([[0.5, 0.5, 0. ],
               [0. , 0. , 0. ]], dtype=float32)
    """
@overload
def masked_softmax(
    x: Value | ArrayInput,
    mask: Value | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def masked_softmin(
    x: ArrayInput,
    mask: ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
) -> jax.Array:
    """Softmin over the entries where ``mask`` is true: ``masked_softmax(-x, mask)``.

    Example:
        >>> import jax.numpy as jnp
        >>> masked_softmin(jnp.asarray([0.0, 1000.0, -5.0]), jnp.asarray([True, True, False]))
        Array([1., 0., 0.], dtype=float32)
    """
@overload
def masked_softmin(
    x: Value | ArrayInput,
    mask: Value | ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def matmul(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Matrix product: ``out[..., i, j] = sum over k of x[..., i, k] * y[..., k, j]``.

    Leading axes are batch axes and broadcast. A one-dimensional operand is a row on the left and a
    column on the right, and its axis is not in the result.

    Example:
        >>> import jax.numpy as jnp
        >>> matmul(jnp.asarray([[1.0, 2.0]]), jnp.asarray([[3.0], [4.0]]))
        Array([[11.]], dtype=float32)
    """
@overload
def matmul(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
batch_matmul = matmul
mm = matmul
mv = matmul
@overload
def matrix_power(a: ArrayInput, n: int) -> jax.Array:
    """Integer power of a square matrix: ``out = a @ a @ ... @ a`` with ``n`` factors.

    The power zero is the identity; a negative power is a power of the inverse. The gradient repeats
    the squarings in reverse, so it also needs ``O(log n)`` products. Half precision is computed in
    single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> matrix_power(jnp.asarray([[1.0, 1.0], [0.0, 1.0]]), n=5)
        Array([[1., 5.],
               [0., 1.]], dtype=float32)
    """
@overload
def matrix_power(a: Value, n: int, *, name: str | None = None) -> Value: ...
@overload
def max(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ties: Literal['split', 'all', 'first'] = 'split',
) -> jax.Array:
    """Maximum of the entries over ``axis``, by default over all axes.

    ``ties`` determines the gradient of several equal extremal entries: with ``"split"`` they share
    it equally, as in JAX; with ``"all"`` each receives all of it, as in MXNet and Paddle; with
    ``"first"`` only the first in row-major order receives it, as when an entry is selected by its
    index. If an entry is NaN, so are the result and, with ``"split"``, the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> max(jnp.asarray([[1.0, 2.0], [4.0, 3.0]]), axis=1)
        Array([2., 4.], dtype=float32)
    """
@overload
def max(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ties: Literal['split', 'all', 'first'] = 'split',
    *,
    name: str | None = None,
) -> Value: ...
amax = max
max_axis = max
reduce_max = max
@overload
def max_pooling(
    data: ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    ceil_mode: bool = False,
    drops_infinite: bool = False,
) -> jax.Array:
    """Max pooling: the largest entry of each window over one to three spatial axes.

    ``stride`` defaults to ``kernel``. Padding is never selected. ``global_pool`` makes the window
    cover the whole spatial axes. With ``ceil_mode`` a last window may extend beyond the padding to
    cover remaining entries; as in PyTorch it is omitted if it would cover only padding. (MXNet's
    ``full`` keeps it.) The first of several equal entries receives the gradient, also in a window
    of minus infinities. In JAX it is lost where such a window meets padding, and here, too, with
    ``drops_infinite``.

    Example:
        >>> import jax.numpy as jnp
        >>> max_pooling(jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]]), kernel=2)
        Array([[[3., 2.]]], dtype=float32)
    """
@overload
def max_pooling(
    data: Value,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    ceil_mode: bool = False,
    drops_infinite: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def max_pooling_gradient(
    data: ArrayInput,
    cotangent: ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    ceil_mode: bool = False,
    drops_infinite: bool = False,
) -> jax.Array:
    """Adds ``cotangent`` at the position of the largest entry of each window of ``max_pooling``.

    Example:
        >>> import jax.numpy as jnp
        >>> data, cotangent = jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]]), jnp.asarray([[[5.0, 7.0]]])
        >>> max_pooling_gradient(data, cotangent, kernel=2)
        Array([[[0., 5., 7., 0.]]], dtype=float32)
    """
@overload
def max_pooling_gradient(
    data: Value | ArrayInput,
    cotangent: Value | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    ceil_mode: bool = False,
    drops_infinite: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def max_pooling_select(
    data: ArrayInput,
    tangent: ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    ceil_mode: bool = False,
    drops_infinite: bool = False,
) -> jax.Array:
    """Selects the entry of ``tangent`` where ``max_pooling`` of ``data`` has its maximum.

    This is the adjoint of ``max_pooling_gradient`` with respect to the cotangent.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([[[1.0, 3.0, 2.0, 0.0]]])
        >>> tangent = jnp.asarray([[[5.0, 6.0, 7.0, 8.0]]])
        >>> max_pooling_select(data, tangent, kernel=2)
        Array([[[6., 7.]]], dtype=float32)
    """
@overload
def max_pooling_select(
    data: Value | ArrayInput,
    tangent: Value | ArrayInput,
    kernel: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    global_pool: bool = False,
    ceil_mode: bool = False,
    drops_infinite: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def maximum(
    x: ArrayInput,
    y: ArrayInput,
    ties: Literal['split', 'first', 'last'] = 'split',
) -> jax.Array:
    """Element-wise maximum of two arrays; NaN if either entry is NaN.

    Where both entries are equal, ``ties`` determines which receives the gradient: each half of it
    with ``"split"``, as in JAX and PyTorch; ``x`` alone with ``"first"``, as in MXNet and
    TensorFlow; ``y`` alone with ``"last"``, as in Paddle. Neither receives one if either entry is
    NaN.

    Example:
        >>> import jax.numpy as jnp
        >>> maximum(jnp.asarray([1.0, -2.0]), 0.0)
        Array([1., 0.], dtype=float32)
    """
@overload
def maximum(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    ties: Literal['split', 'first', 'last'] = 'split',
    *,
    name: str | None = None,
) -> Value: ...
broadcast_maximum = maximum
elementwise_max = maximum
@overload
def mean(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Arithmetic mean over ``axis``, by default over all axes; NaN if there are no entries.

    Example:
        >>> import jax.numpy as jnp
        >>> mean(jnp.asarray([[1.0, 2.0], [3.0, 6.0]]), axis=1)
        Array([1.5, 4.5], dtype=float32)
    """
@overload
def mean(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
reduce_mean = mean
@overload
def mean_squared_error(
    predictions: ArrayInput,
    targets: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Mean squared error ``mean((predictions - targets)^2)`` over ``axis``, by default all axes.

    It is NaN over no entries. ``squared_difference`` is the same without the mean.

    Example:
        >>> import jax.numpy as jnp
        >>> mean_squared_error(jnp.asarray([1.0, 4.0]), jnp.asarray([1.0, 2.0]))
        Array(2., dtype=float32)
    """
@overload
def mean_squared_error(
    predictions: Value | ArrayInput,
    targets: Value | ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
mse_loss = mean_squared_error
@overload
def merge_heads(x: ArrayInput) -> jax.Array:
    """Joins the features of attention heads; the inverse of ``split_heads``.

    Example:
        >>> import jax.numpy as jnp
        >>> merge_heads(jnp.asarray([[[1, 2]], [[3, 4]]]))
        Array([[1, 2, 3, 4]], dtype=int32)
    """
@overload
def merge_heads(x: Value, *, name: str | None = None) -> Value: ...
@overload
def merge_selected_rows(x: ArrayInput) -> jax.Array:
    """The same array with each row named once, in ascending order; dense arrays are unchanged.

    The number of rows stays the same, so that shapes are static when a program is compiled: the
    remaining rows have the height as their number, are thus dropped, and hold zeros.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> twice = SelectedRows(jnp.array([2, 0, 2]), jnp.ones((3, 1)), height=4)
        >>> merge_selected_rows(twice).rows
        Array([0, 2, 4], dtype=int32)
    """
@overload
def merge_selected_rows(x: SelectedRows) -> Any: ...
@overload
def merge_selected_rows(x: Value, *, name: str | None = None) -> Value: ...
@overload
def meshgrid(*xs: ArrayLike, indexing: Literal['xy', 'ij'] = 'xy') -> tuple[jax.Array, ...]:
    """Coordinate arrays of a grid, from the coordinates along each axis.

    With ``ij``, entry ``[i, j, ...]`` of the first result is ``xs[0][i]``, of the second
    ``xs[1][j]``, and so on; with ``xy``, the first two axes of all results are exchanged.

    Example:
        >>> import jax.numpy as jnp
        >>> x, y = meshgrid(jnp.asarray([1, 2, 3]), jnp.asarray([4, 5]))
        >>> y
        Array([[4, 4, 4],
               [5, 5, 5]], dtype=int32)
    """
@overload
def meshgrid(
    xs: Sequence[ArrayLike],
    *,
    indexing: Literal['xy', 'ij'] = 'xy',
) -> tuple[jax.Array, ...]: ...
@overload
def meshgrid(
    *xs: NDArray | ArrayLike,
    indexing: Literal['xy', 'ij'] = 'xy',
) -> tuple[NDArray, ...]: ...
@overload
def meshgrid(
    xs: Sequence[NDArray | ArrayLike],
    *,
    indexing: Literal['xy', 'ij'] = 'xy',
) -> tuple[NDArray, ...]: ...
@overload
def meshgrid(
    *xs: Symbol | ArrayLike,
    indexing: Literal['xy', 'ij'] = 'xy',
    name: str | None = None,
) -> Symbol: ...
@overload
def meshgrid(
    xs: Sequence[Symbol | ArrayLike],
    *,
    indexing: Literal['xy', 'ij'] = 'xy',
    name: str | None = None,
) -> Symbol: ...
@overload
def meshgrid(
    *xs: Variable | ArrayLike,
    indexing: Literal['xy', 'ij'] = 'xy',
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def meshgrid(
    xs: Sequence[Variable | ArrayLike],
    *,
    indexing: Literal['xy', 'ij'] = 'xy',
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def meshgrid(
    *xs: Var | ArrayLike,
    indexing: Literal['xy', 'ij'] = 'xy',
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def meshgrid(
    xs: Sequence[Var | ArrayLike],
    *,
    indexing: Literal['xy', 'ij'] = 'xy',
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def min(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ties: Literal['split', 'all', 'first'] = 'split',
) -> jax.Array:
    """Minimum of the entries over ``axis``, by default over all axes.

    ``ties`` determines the gradient of several equal extremal entries: with ``"split"`` they share
    it equally, as in JAX; with ``"all"`` each receives all of it, as in MXNet and Paddle; with
    ``"first"`` only the first in row-major order receives it, as when an entry is selected by its
    index. If an entry is NaN, so are the result and, with ``"split"``, the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> min(jnp.asarray([[1.0, 2.0], [4.0, 3.0]]), axis=1)
        Array([1., 3.], dtype=float32)
    """
@overload
def min(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ties: Literal['split', 'all', 'first'] = 'split',
    *,
    name: str | None = None,
) -> Value: ...
amin = min
min_axis = min
reduce_min = min
@overload
def minimum(
    x: ArrayInput,
    y: ArrayInput,
    ties: Literal['split', 'first', 'last'] = 'split',
) -> jax.Array:
    """Element-wise minimum of two arrays; NaN if either entry is NaN.

    Where both entries are equal, ``ties`` determines which receives the gradient: each half of it
    with ``"split"``, as in JAX and PyTorch; ``x`` alone with ``"first"``, as in MXNet and
    TensorFlow; ``y`` alone with ``"last"``, as in Paddle. Neither receives one if either entry is
    NaN.

    Example:
        >>> import jax.numpy as jnp
        >>> minimum(jnp.asarray([1.0, -2.0]), 0.0)
        Array([ 0., -2.], dtype=float32)
    """
@overload
def minimum(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    ties: Literal['split', 'first', 'last'] = 'split',
    *,
    name: str | None = None,
) -> Value: ...
broadcast_minimum = minimum
elementwise_min = minimum
@overload
def minus(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise difference of two arrays of the same shape: ``out = x - y``.

    Example:
        >>> import jax.numpy as jnp
        >>> minus(jnp.asarray([1.0, 2.0]), jnp.asarray([3.0, 5.0]))
        Array([-2., -3.], dtype=float32)
    """
@overload
def minus(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
@overload
def mish(x: ArrayInput) -> jax.Array:
    """Mish, element-wise: ``x tanh(softplus(x))``.

    Source: Misra, "Mish: a self regularized non-monotonic activation function" (2019).

    Example:
        >>> import jax.numpy as jnp
        >>> mish(jnp.asarray([0.0, 1000.0]))
        Array([   0., 1000.], dtype=float32)
    """
@overload
def mish(x: SelectedRows) -> Any: ...
@overload
def mish(x: Value, *, name: str | None = None) -> Value: ...
@overload
def momentum(
    param: ArrayInput,
    grad: ArrayInput,
    velocity: ArrayInput,
    learning_rate: ArrayInput,
    mu: float = 0.9,
    nesterov: bool = False,
    lazy: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """A step of gradient descent with momentum (Polyak 1964) or Nesterov momentum.

    ``new_velocity = mu * velocity + grad`` and ``new_param = param - learning_rate *
    new_velocity``; with ``nesterov`` the step is ``grad + mu * new_velocity`` instead (Sutskever
    et al., "On the importance of initialization and momentum in deep learning", 2013).

    If ``grad`` is ``SelectedRows``, ``lazy`` updates parameter and velocity only in the rows that
    it names, and leaves the other rows unchanged. By default the step equals that of the dense
    gradient, in which every velocity decays and every row moves: its cost is that of the whole
    table.

    Example:
        >>> import jax.numpy as jnp
        >>> momentum(jnp.asarray(1.0), jnp.asarray(1.0), jnp.asarray(2.0), 0.5, mu=0.5)
        (Array(0., dtype=float32), Array(2., dtype=float32))
    """
@overload
def momentum(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    velocity: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    mu: float = 0.9,
    nesterov: bool = False,
    lazy: bool = False,
) -> Any: ...
@overload
def momentum(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    velocity: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    mu: float = 0.9,
    nesterov: bool = False,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def momentum(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    velocity: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    mu: float = 0.9,
    nesterov: bool = False,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
@overload
def moveaxis(
    x: ArrayInput,
    source: int | Sequence[int],
    destination: int | Sequence[int],
) -> jax.Array:
    """Moves the axes ``source`` of ``x`` to the positions ``destination``; the others keep order.

    Example:
        >>> import jax.numpy as jnp
        >>> moveaxis(jnp.ones((2, 3, 4)), source=0, destination=-1).shape
        (3, 4, 2)
    """
@overload
def moveaxis(
    x: Value,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    *,
    name: str | None = None,
) -> Value: ...
movedim = moveaxis
@overload
def multiply(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise product of two arrays: ``out = x * y``.

    Example:
        >>> import jax.numpy as jnp
        >>> multiply(jnp.asarray([1.0, 2.0]), jnp.asarray(3.0))
        Array([3., 6.], dtype=float32)
    """
@overload
def multiply(x: SelectedRows | ArrayInput, y: SelectedRows | ArrayInput) -> Any: ...
@overload
def multiply(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
broadcast_mul = multiply
elementwise_mul = multiply
elemwise_mul = multiply
@overload
def nanprod(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Product over ``axis`` that ignores NaNs: a NaN counts as one.

    The gradient at a NaN is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> nanprod(jnp.asarray([2.0, jnp.nan, 3.0]))
        Array(6., dtype=float32)
    """
@overload
def nanprod(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def nansum(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Sum over ``axis`` that ignores NaNs: a NaN counts as zero.

    The gradient at a NaN is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> nansum(jnp.asarray([2.0, jnp.nan, 3.0]))
        Array(5., dtype=float32)
    """
@overload
def nansum(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def natural_exp_decay(
    step: ArrayInput,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: bool = False,
) -> jax.Array:
    """``init_value * exp(-decay_rate * step / transition_steps)``.

    With ``staircase`` the quotient of steps is rounded down.

    Example:
        >>> import jax.numpy as jnp
        >>> natural_exp_decay(jnp.asarray(0), init_value=1.0, transition_steps=9, decay_rate=0.5)
        Array(1., dtype=float32)
    """
@overload
def natural_exp_decay(
    step: Value,
    init_value: float,
    transition_steps: float,
    decay_rate: float,
    staircase: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def ndtr(x: ArrayInput) -> jax.Array:
    """Distribution function of the normal distribution, accurate where it is small.

    Example:
        >>> import jax.numpy as jnp
        >>> ndtr(jnp.asarray([-jnp.inf, 0.0, jnp.inf]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
@overload
def ndtr(x: Value, *, name: str | None = None) -> Value: ...
@overload
def ndtri(x: ArrayInput) -> jax.Array:
    """Quantile of the normal distribution: the number whose ``ndtr`` is ``x``.

    It is infinite at 0 and 1, and NaN outside ``[0, 1]``.

    Example:
        >>> import jax.numpy as jnp
        >>> ndtri(jnp.asarray([0.0, 0.5, 1.0]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
@overload
def ndtri(x: Value, *, name: str | None = None) -> Value: ...
@overload
def negative(x: ArrayInput) -> jax.Array:
    """Negation, element-wise: ``out = -x``.

    Example:
        >>> import jax.numpy as jnp
        >>> negative(jnp.asarray([1.0, -2.0]))
        Array([-1.,  2.], dtype=float32)
    """
@overload
def negative(x: SelectedRows) -> Any: ...
@overload
def negative(x: Value, *, name: str | None = None) -> Value: ...
neg = negative
@overload
def nll(
    log_probabilities: ArrayInput,
    labels: ArrayInput,
    class_weights: ArrayInput | None = None,
    axis: int = -1,
    ignore_label: int | None = None,
) -> jax.Array:
    """Negative log likelihood ``-w[c] * log_probabilities[c]`` of each example's class ``c``.

    ``labels`` are integers in the shape of ``log_probabilities`` without ``axis``; a class out of
    range gives NaN. ``class_weights`` are the weights ``w``, one for each class, by default one. An
    example whose class is ``ignore_label`` has loss and gradient zero.

    Example:
        >>> import jax.numpy as jnp
        >>> nll(jnp.log(jnp.asarray([[0.5, 0.25, 0.25]])), jnp.asarray([0]))
        Array([0.6931472], dtype=float32)
    """
@overload
def nll(
    log_probabilities: Value | ArrayInput,
    labels: Value | ArrayInput,
    class_weights: Value | ArrayInput | None = None,
    axis: int = -1,
    ignore_label: int | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def noam_decay(
    step: ArrayInput,
    d_model: float,
    warmup_steps: float,
    learning_rate: float = 1.0,
) -> jax.Array:
    """Linear warmup, then decay with the root of the steps: the schedule of the Transformer.

    ``learning_rate * d_model ** -0.5 * min(t ** -0.5, t * warmup_steps ** -1.5)`` where ``t`` is
    ``step``, but at least 1 (Vaswani et al., "Attention is all you need", 2017).

    Example:
        >>> import jax.numpy as jnp
        >>> noam_decay(jnp.asarray([4, 16]), d_model=4, warmup_steps=4)
        Array([0.25 , 0.125], dtype=float32)
    """
@overload
def noam_decay(
    step: Value,
    d_model: float,
    warmup_steps: float,
    learning_rate: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def nondifferentiable_call(
    *operands: ArrayLike,
    body: Body,
    training: bool = ...,
) -> tuple[jax.Array, ...]:
    """Returns the outputs of ``body``, without a derivative.

    It stands for a ``call`` whose rule refuses to differentiate, and in a file for one whose rule
    only JAX can run, such as a rule that calls its own function without end.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> (y,) = so.nondifferentiable_call(x, body=so.body(lambda x: x * x, ((), "float32")))
        >>> float(y.eval(x=3.0))
        9.0
    """
@overload
def nondifferentiable_call(
    operands: Sequence[ArrayLike],
    *,
    body: Body,
    training: bool = ...,
) -> tuple[jax.Array, ...]: ...
@overload
def nondifferentiable_call(
    *operands: TensorArray | SelectedRows | ArrayLike,
    body: Body,
    training: bool = ...,
) -> Any: ...
@overload
def nondifferentiable_call(
    operands: Sequence[TensorArray | SelectedRows | ArrayLike],
    *,
    body: Body,
    training: bool = ...,
) -> Any: ...
@overload
def nondifferentiable_call(
    *operands: NDArray | ArrayLike,
    body: Body,
    training: bool = ...,
) -> tuple[NDArray, ...]: ...
@overload
def nondifferentiable_call(
    operands: Sequence[NDArray | ArrayLike],
    *,
    body: Body,
    training: bool = ...,
) -> tuple[NDArray, ...]: ...
@overload
def nondifferentiable_call(
    *operands: Symbol | ArrayLike,
    body: Body,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def nondifferentiable_call(
    operands: Sequence[Symbol | ArrayLike],
    *,
    body: Body,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def nondifferentiable_call(
    *operands: Variable | ArrayLike,
    body: Body,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def nondifferentiable_call(
    operands: Sequence[Variable | ArrayLike],
    *,
    body: Body,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def nondifferentiable_call(
    *operands: Var | ArrayLike,
    body: Body,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def nondifferentiable_call(
    operands: Sequence[Var | ArrayLike],
    *,
    body: Body,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def norm(
    x: ArrayInput,
    ord: float = 2.0,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Vector norm ``sum(|x|^ord)^(1 / ord)`` of the entries over ``axis``, by default of all.

    An ``ord`` of ``inf`` gives the largest absolute value, ``-inf`` the smallest, and 0 the number
    of nonzero entries. Over two axes the entries also count as one vector, so that 2 gives the
    Frobenius norm of a matrix. Powers are taken of scaled numbers, so that they do not overflow.

    Where the derivative does not exist, the shortest subgradient is used: zero where the norm is
    zero (as are the higher derivatives, like those of ``hypot``), zero for an entry that is zero
    (for an ``ord`` of at most one), and equal shares for entries that tie for the extremum; for
    complex entries the first receives it.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> norm(jnp.asarray([3.0, -4.0])), norm(jnp.asarray([3.0, -4.0]), ord=1)
        (Array(5., dtype=float32), Array(7., dtype=float32))
        >>> jax.grad(norm)(jnp.zeros(2))
        Array([0., 0.], dtype=float32)
    """
@overload
def norm(
    x: Value,
    ord: float = 2.0,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
vector_norm = norm
@overload
def normal_log_density(x: ArrayInput, loc: ArrayInput, scale: ArrayInput) -> jax.Array:
    """Log density of the normal distribution with mean ``loc`` and standard deviation ``scale``.

    ``-((x - loc) / scale)^2 / 2 - log(scale) - log(2 pi) / 2``.

    Example:
        >>> import jax.numpy as jnp
        >>> normal_log_density(jnp.asarray([0.0]), 0.0, 1.0)
        Array([-0.918...], dtype=float32)
    """
@overload
def normal_log_density(
    x: Value | ArrayInput,
    loc: Value | ArrayInput,
    scale: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def not_equal(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise truth value of ``x != y``.

    Example:
        >>> import jax.numpy as jnp
        >>> not_equal(jnp.asarray([1.0, 2.0]), 2.0)
        Array([ True, False], dtype=bool)
    """
@overload
def not_equal(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
broadcast_not_equal = not_equal
ne = not_equal
@overload
def one_hot(
    ids: ArrayInput,
    num_classes: int,
    axis: int = -1,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """One-hot encoding: one at the position of each id along the new ``axis``, zero elsewhere.

    An id outside ``range(num_classes)`` gives zeros. ``dtype`` defaults to the default floating
    dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> one_hot(jnp.asarray([1, 0]), num_classes=3)
        Array([[0., 1., 0.],
               [1., 0., 0.]], dtype=float32)
    """
@overload
def one_hot(
    ids: Value,
    num_classes: int,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Value: ...
def ones(shape: int | Sequence[int], dtype: DTypeLike | None = None) -> jax.Array:
    """An array of ones, by default in the default floating dtype.

    Source: Python array API standard 2024.12, ``ones``.

    Example:
        >>> ones((2,), "int32")
        Array([1, 1], dtype=int32)
    """
@overload
def ones_like(x: ArrayInput, dtype: DTypeLike | None = None) -> jax.Array:
    """An array of ones with the shape of ``x`` and, without ``dtype``, its dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> ones_like(jnp.asarray([1.0, 2.0]))
        Array([1., 1.], dtype=float32)
    """
@overload
def ones_like(x: Value, dtype: DTypeLike | None = None, *, name: str | None = None) -> Value: ...
@overload
def outer(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Outer product of two vectors: ``out[i, j] = x[i] * y[j]``.

    Source: Python array API standard 2024.12, ``linalg.outer``.

    Example:
        >>> import jax.numpy as jnp
        >>> outer(jnp.asarray([1, 2]), jnp.asarray([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
    """
@overload
def outer(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
ger = outer
@overload
def pad(
    x: ArrayInput,
    pad_width: int | Sequence[Sequence[int]],
    mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap'] = 'constant',
    constant_value: int | float = 0,
) -> jax.Array:
    """Pads ``x`` with ``pad_width[i] = (before, after)`` entries at the ends of axis ``i``.

    A single number applies to both ends of all axes.
    ``constant`` adds ``constant_value``; ``edge`` repeats the first and the last entry; ``reflect``
    mirrors the entries without repeating the edge, ``symmetric`` with it; ``wrap`` continues from
    the other end. ``[1, 2, 3]`` padded by two at each end is ``[1, 1, 1, 2, 3, 3, 3]`` with
    ``edge``, ``[3, 2, 1, 2, 3, 2, 1]`` with ``reflect``, ``[2, 1, 1, 2, 3, 3, 2]`` with
    ``symmetric`` and ``[2, 3, 1, 2, 3, 1, 2]`` with ``wrap``. The padding may be longer than the
    axis: the pattern repeats.

    Example:
        >>> import jax.numpy as jnp
        >>> pad(jnp.asarray([1, 2, 3]), pad_width=((1, 2),), mode="reflect")
        Array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
@overload
def pad(
    x: Value,
    pad_width: int | Sequence[Sequence[int]],
    mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap'] = 'constant',
    constant_value: int | float = 0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def pad_slice(
    x: ArrayInput,
    shape: Sequence[int],
    begin: Sequence[int],
    step: Sequence[int],
) -> jax.Array:
    """Writes ``x`` into zeros of ``shape``, starting at ``begin`` with strides ``step``.

    This is the adjoint of ``slice``.

    Example:
        >>> import jax.numpy as jnp
        >>> pad_slice(jnp.asarray([1, 2]), shape=(5,), begin=(1,), step=(2,))
        Array([0, 1, 0, 2, 0], dtype=int32)
    """
@overload
def pad_slice(
    x: Value,
    shape: Sequence[int],
    begin: Sequence[int],
    step: Sequence[int],
    *,
    name: str | None = None,
) -> Value: ...
@overload
def permute_dims(x: ArrayInput, axes: Sequence[int] | None = None) -> jax.Array:
    """Permutes the axes of ``x``, by default reversing them: axis ``axes[i]`` becomes axis ``i``.

    Example:
        >>> import jax.numpy as jnp
        >>> permute_dims(jnp.asarray([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
@overload
def permute_dims(
    x: Value,
    axes: Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
transpose = permute_dims
@overload
def pick(
    x: ArrayInput,
    indices: ArrayInput,
    axis: int = -1,
    keepdims: bool = False,
    mode: Literal['clip', 'wrap'] = 'clip',
) -> jax.Array:
    """Selects one entry of ``x`` along ``axis`` at each position of the other axes.

    For the last axis: ``out[...] = x[..., indices[...]]``. ``indices`` have the shape of ``x``
    without ``axis``, or with length 1 there; ``keepdims`` keeps that axis in the result. For an
    index out of bounds, ``clip`` takes the nearest entry and ``wrap`` wraps around.

    Example:
        >>> import jax.numpy as jnp
        >>> pick(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([1, 0]))
        Array([2., 3.], dtype=float32)
    """
@overload
def pick(
    x: Value | ArrayInput,
    indices: Value | ArrayInput,
    axis: int = -1,
    keepdims: bool = False,
    mode: Literal['clip', 'wrap'] = 'clip',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def piecewise_decay(
    step: ArrayInput,
    boundaries: Sequence[int],
    values: Sequence[float],
) -> jax.Array:
    """A step function: ``values[i]`` from step ``boundaries[i - 1]`` to before ``boundaries[i]``.

    Example:
        >>> import jax.numpy as jnp
        >>> piecewise_decay(jnp.asarray([0, 9, 10]), boundaries=(10,), values=(1.0, 0.5))
        Array([1. , 1. , 0.5], dtype=float32)
    """
@overload
def piecewise_decay(
    step: Value,
    boundaries: Sequence[int],
    values: Sequence[float],
    *,
    name: str | None = None,
) -> Value: ...
@overload
def pinv(x: ArrayInput, rcond: float | None = None) -> jax.Array:
    """Moore-Penrose pseudoinverse: the matrix of least norm with ``x @ out @ x = x``.

    Singular values up to ``rcond`` times the largest one count as zero; ``rcond`` defaults to
    ``10 max(m, n)`` times the machine epsilon of the dtype. The derivative is that among matrices
    of constant rank, and treats values that count as zero as zero. Half precision is computed in
    single precision.

    Source: Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate, 1973.

    Example:
        >>> import jax.numpy as jnp
        >>> pinv(jnp.asarray([[2.0, 0.0], [0.0, 0.0]]))
        Array([[0.5, 0. ],
               [0. , 0. ]], dtype=float32)
    """
@overload
def pinv(x: Value, rcond: float | None = None, *, name: str | None = None) -> Value: ...
pinverse = pinv
pseudo_inverse = pinv
@overload
def poisson_log_density(x: ArrayInput, rate: ArrayInput) -> jax.Array:
    """Log density of the Poisson distribution: ``x log(rate) - rate - log(x!)``.

    ``x`` is 0, 1, 2, ... Between integers the same formula holds, with ``x! = Gamma(x + 1)``.

    Example:
        >>> import jax.numpy as jnp
        >>> poisson_log_density(jnp.asarray([2, -1]), 1.0)
        Array([-1.693..., -inf], dtype=float32)
    """
@overload
def poisson_log_density(
    x: Value | ArrayInput,
    rate: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def polygamma(x: ArrayInput, n: int) -> jax.Array:
    """Polygamma function: the ``n``-th derivative of ``digamma``, for ``n >= 1``.

    ``out = (-1)^(n + 1) n! zeta(n + 1, x)`` with the Hurwitz zeta function, for positive ``x``. For
    negative ``x`` the reflection formula is used; 0, -1, -2, ... are poles. The function is zero at
    infinity, and NaN at minus infinity.

    Example:
        >>> import jax.numpy as jnp
        >>> polygamma(jnp.asarray(1.0), n=1)
        Array(1.6449..., dtype=float32, weak_type=True)
    """
@overload
def polygamma(x: Value, n: int, *, name: str | None = None) -> Value: ...
@overload
def polynomial_schedule(
    step: ArrayInput,
    init_value: float,
    end_value: float,
    transition_steps: float,
    power: float = 1.0,
    transition_begin: float = 0.0,
) -> jax.Array:
    """From ``init_value`` to ``end_value`` in ``transition_steps``, linearly or by a power law.

    ``end_value + (init_value - end_value) * (1 - step / transition_steps) ** power``, where steps
    are counted from ``transition_begin`` and at most up to ``transition_steps``.

    Example:
        >>> import jax.numpy as jnp
        >>> polynomial_schedule(jnp.asarray(5), init_value=1.0, end_value=0.0, transition_steps=10)
        Array(0.5, dtype=float32)
    """
@overload
def polynomial_schedule(
    step: Value,
    init_value: float,
    end_value: float,
    transition_steps: float,
    power: float = 1.0,
    transition_begin: float = 0.0,
    *,
    name: str | None = None,
) -> Value: ...
linear_schedule = polynomial_schedule
@overload
def position_ids(x: ArrayInput, start: ArrayInput | None = None, axis: int = 1) -> jax.Array:
    """The number of each position of ``x`` along an axis: ``0, 1, ...``, of shape ``(length,)``.

    With ``start``, the number of positions before the first one of each example, it has shape
    ``(batch, length)``. ``so.Generator`` supplies ``start``.

    Example:
        >>> import jax.numpy as jnp
        >>> position_ids(jnp.zeros((2, 3)))
        Array([0, 1, 2], dtype=int32)
    """
@overload
def position_ids(
    x: Value | ArrayInput,
    start: Value | ArrayInput | None = None,
    axis: int = 1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def potri(a: ArrayInput, lower: bool = True) -> jax.Array:
    """Inverse of a matrix from its Cholesky factor ``a``: ``out = (a @ a^H)^-1``.

    Without ``lower`` it is ``(a^H @ a)^-1`` for an upper factor. The other triangle of ``a`` is not
    read. Half precision is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> potri(jnp.asarray([[2.0, 0.0], [0.0, 1.0]]))
        Array([[0.25, 0.  ],
               [0.  , 1.  ]], dtype=float32)
    """
@overload
def potri(a: Value, lower: bool = True, *, name: str | None = None) -> Value: ...
linalg_potri = potri
@overload
def power(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Power, element-wise: ``out = x ** y``; NaN for a negative ``x`` and a non-integer ``y``.

    ``x ** 0`` is one for every ``x``. At ``x = 0`` the derivative with respect to ``x`` is zero
    where ``y = 0``, and that with respect to ``y`` is taken as zero for ``y >= 0`` and is NaN for a
    negative ``y``. At a negative ``x`` the derivative with respect to ``y`` is NaN even where ``y``
    is an integer, because the power is undefined for neighboring exponents.

    Raises:
        DTypeError: an integer is raised to a negative integer, where that is known.

    Example:
        >>> import jax.numpy as jnp
        >>> power(jnp.asarray([2.0, 3.0]), 2)
        Array([4., 9.], dtype=float32)
    """
@overload
def power(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
broadcast_power = power
elementwise_pow = power
integer_pow = power
pow = power
@overload
def prelu(x: ArrayInput, slope: ArrayInput, axis: int = 1) -> jax.Array:
    """Parametric ReLU: ``x`` where positive, else ``slope x``, with one slope or one per channel.

    ``slope`` has one number for each entry along ``axis``, or is a single number. A symbolic call
    that omits it creates one for each channel, initialized to 0.25. At zero the derivative with
    respect to ``x`` is ``slope``, as in ``leaky_relu``.

    Source: He, Zhang, Ren and Sun, "Delving deep into rectifiers" (2015).

    Example:
        >>> import jax.numpy as jnp
        >>> prelu(jnp.asarray([[-1.0, -1.0], [2.0, 2.0]]), jnp.asarray([0.5, 0.25]))
        Array([[-0.5 , -0.25],
               [ 2.  ,  2.  ]], dtype=float32)
    """
@overload
def prelu(x: NDArray | ArrayInput, slope: NDArray | ArrayInput, axis: int = 1) -> NDArray: ...
@overload
def prelu(
    x: Symbol | ArrayInput,
    slope: Symbol | ArrayInput = ...,
    axis: int = 1,
    *,
    slope_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def prelu(
    x: Variable | ArrayInput,
    slope: Variable | ArrayInput = ...,
    axis: int = 1,
    *,
    slope_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def prelu(
    x: Value | ArrayInput,
    slope: Value | ArrayInput,
    axis: int = 1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def prod(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Product over ``axis``, by default over all axes; ``keepdims`` keeps the axes with length 1.

    Small integers and booleans are multiplied in the default integer dtype. The empty product is
    one. The gradient does not divide, so it is correct for zeros.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.value_and_grad(prod)(jnp.asarray([2.0, 0.0, 3.0]))
        (Array(0., dtype=float32), Array([0., 6., 0.], dtype=float32))
    """
@overload
def prod(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
reduce_prod = prod
@overload
def product_of_others(x: ArrayInput, axis: int = -1) -> jax.Array:
    """Product of all other entries along ``axis``: ``out[i] = prod(x[j] for j != i)``.

    This is the gradient of ``prod``. It does not divide, so it is correct for zeros.

    Example:
        >>> import jax.numpy as jnp
        >>> product_of_others(jnp.asarray([2.0, 0.0, 3.0]))
        Array([0., 6., 0.], dtype=float32)
    """
@overload
def product_of_others(x: Value, axis: int = -1, *, name: str | None = None) -> Value: ...
@overload
def product_of_others_tangent(x: ArrayLike, *along: ArrayLike, axis: int = -1) -> jax.Array:
    """Mixed derivative of ``product_of_others`` along all arrays in ``along``.

    The arrays have the shape of ``x``. ``out[i]`` is the derivative of the product of all entries
    with respect to ``x[i]`` and along each of them.

    Example:
        >>> import jax.numpy as jnp
        >>> product_of_others_tangent(jnp.asarray([2.0, 0.0, 3.0]), jnp.asarray([0.0, 1.0, 0.0]))
        Array([3., 0., 2.], dtype=float32)
    """
@overload
def product_of_others_tangent(
    x: ArrayLike,
    along: Sequence[ArrayLike],
    *,
    axis: int = -1,
) -> jax.Array: ...
@overload
def product_of_others_tangent(
    x: NDArray | ArrayLike,
    *along: NDArray | ArrayLike,
    axis: int = -1,
) -> NDArray: ...
@overload
def product_of_others_tangent(
    x: NDArray | ArrayLike,
    along: Sequence[NDArray | ArrayLike],
    *,
    axis: int = -1,
) -> NDArray: ...
@overload
def product_of_others_tangent(
    x: Symbol | ArrayLike,
    *along: Symbol | ArrayLike,
    axis: int = -1,
    name: str | None = None,
) -> Symbol: ...
@overload
def product_of_others_tangent(
    x: Symbol | ArrayLike,
    along: Sequence[Symbol | ArrayLike],
    *,
    axis: int = -1,
    name: str | None = None,
) -> Symbol: ...
@overload
def product_of_others_tangent(
    x: Variable | ArrayLike,
    *along: Variable | ArrayLike,
    axis: int = -1,
    name: str | None = None,
) -> Variable: ...
@overload
def product_of_others_tangent(
    x: Variable | ArrayLike,
    along: Sequence[Variable | ArrayLike],
    *,
    axis: int = -1,
    name: str | None = None,
) -> Variable: ...
@overload
def product_of_others_tangent(
    x: Var | ArrayLike,
    *along: Var | ArrayLike,
    axis: int = -1,
    name: str | None = None,
) -> Var: ...
@overload
def product_of_others_tangent(
    x: Var | ArrayLike,
    along: Sequence[Var | ArrayLike],
    *,
    axis: int = -1,
    name: str | None = None,
) -> Var: ...
@overload
def qr(
    x: ArrayInput,
    mode: Literal['reduced', 'complete'] = 'reduced',
) -> tuple[jax.Array, jax.Array]:
    """QR decomposition ``x = q @ r`` with ``q^H @ q`` the identity and ``r`` upper triangular.

    For ``x`` of shape ``(..., m, n)`` with ``k = min(m, n)``, ``q`` has shape ``(..., m, k)`` and
    ``r`` has shape ``(..., k, n)``; if ``mode`` is ``"complete"``, they have shapes ``(..., m, m)``
    and ``(..., m, n)``. The diagonal of ``r`` is real, and its signs are LAPACK's, mostly negative.
    Half precision is computed in single precision.

    The gradient requires the first ``k`` columns of ``x`` to be linearly independent. The further
    columns of a complete ``q`` are an arbitrary orthonormal basis: their derivative is the smallest
    that keeps them orthogonal to the first columns, which is correct for every function that does
    not depend on the choice of the basis.

    Source: Seeger et al., Auto-differentiating linear algebra, 2017, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> q, r = qr(jnp.asarray([[3.0], [4.0]]))
        >>> print((q @ r).round(4))
        [[3.]
         [4.]]
    """
@overload
def qr(
    x: Symbol,
    mode: Literal['reduced', 'complete'] = 'reduced',
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def qr(
    x: Value,
    mode: Literal['reduced', 'complete'] = 'reduced',
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
@overload
def radians(x: ArrayInput) -> jax.Array:
    """Converts angles from degrees to radians: ``out = pi x / 180``.

    Example:
        >>> import jax.numpy as jnp
        >>> radians(jnp.asarray([0.0, 180.0]))
        Array([0.       , 3.1415927], dtype=float32)
    """
@overload
def radians(x: SelectedRows) -> Any: ...
@overload
def radians(x: Value, *, name: str | None = None) -> Value: ...
deg2rad = radians
@overload
def random_bernoulli(
    p: ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Bernoulli draws: true with probability ``p``, which defaults to 1/2.

    With another ``dtype`` the results are ones and zeros.

    Example:
        >>> import jax
        >>> random_bernoulli(1.0, key=jax.random.key(0), shape=(2,))
        Array([ True,  True], dtype=bool)
    """
@overload
def random_bernoulli(
    p: Value | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
bernoulli = random_bernoulli
@overload
def random_beta(
    a: ArrayInput,
    b: ArrayInput,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Beta draws: numbers between 0 and 1 with density ``x^(a - 1) (1 - x)^(b - 1) / B(a, b)``.

    They are ``z / (z + w)`` for gamma draws ``z`` and ``w``, and are differentiable in ``a`` and
    ``b`` like these.

    Example:
        >>> import jax
        >>> random_beta(2.0, 3.0, key=jax.random.key(0), shape=(3,)).shape
        (3,)
    """
@overload
def random_beta(
    a: Value | ArrayInput,
    b: Value | ArrayInput,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
@overload
def random_categorical(
    logits: ArrayInput,
    axis: int = -1,
    shape: int | Sequence[int] | None = None,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Categorical draws: class indices with probabilities ``softmax(logits)`` along ``axis``.

    The result has the shape of ``logits`` without ``axis``, or the given ``shape``, to which that
    shape broadcasts.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> random_categorical(jnp.asarray([0.0, 99.0]), key=jax.random.key(0), shape=(3,))
        Array([1, 1, 1], dtype=int32)
    """
@overload
def random_categorical(
    logits: Value,
    axis: int = -1,
    shape: int | Sequence[int] | None = None,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
categorical = random_categorical
@overload
def random_exponential(
    scale: ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Exponential draws with mean ``scale``, which defaults to 1: ``-scale log(1 - u)``.

    The draw is differentiable in ``scale``.

    Example:
        >>> import jax
        >>> random_exponential(3.0, key=jax.random.key(0), shape=(4,)).shape
        (4,)
    """
@overload
def random_exponential(
    scale: Value | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
@overload
def random_gamma(
    a: ArrayInput,
    scale: ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Gamma draws: ``scale z``, where ``z`` has the density ``z^(a - 1) exp(-z) / Gamma(a)``.

    ``scale`` defaults to 1. The draw is differentiable in both parameters; in ``a`` along the path
    on which it keeps its quantile.

    Source: Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, 2018.

    Example:
        >>> import jax
        >>> random_gamma(2.0, key=jax.random.key(0), shape=(3,)).shape
        (3,)
    """
@overload
def random_gamma(
    a: Value | ArrayInput,
    scale: Value | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
def random_integers(
    low: int,
    high: int,
    shape: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Uniform integer draws from ``low`` (inclusive) to ``high`` (exclusive).

    Example:
        >>> import jax
        >>> random_integers(key=jax.random.key(0), low=3, high=4, shape=(2,))
        Array([3, 3], dtype=int32)
    """
random_randint = random_integers
@overload
def random_normal(
    loc: ArrayInput | None = None,
    scale: ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Normal draws: ``loc + scale z`` with ``z`` of mean 0 and standard deviation 1.

    ``loc`` defaults to 0 and ``scale`` to 1. The result has the given ``shape``, or that of the
    parameters. It is differentiable in both parameters.

    Example:
        >>> import jax
        >>> random_normal(key=jax.random.key(0), shape=(2, 3)).shape
        (2, 3)
    """
@overload
def random_normal(
    loc: Value | ArrayInput | None = None,
    scale: Value | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
normal = random_normal
@overload
def random_permutation(
    x: ArrayInput,
    axis: int = 0,
    inverse: bool = False,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Permutes the slices of ``x`` along ``axis`` randomly; ``inverse`` undoes it for the same key.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> key = jax.random.key(0)
        >>> random_permutation(random_permutation(jnp.arange(3), key=key), key=key, inverse=True)
        Array([0, 1, 2], dtype=int32)
    """
@overload
def random_permutation(
    x: Value,
    axis: int = 0,
    inverse: bool = False,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
permutation = random_permutation
shuffle = random_permutation
@overload
def random_poisson(
    rate: ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Poisson draws: numbers of events with mean ``rate``, which defaults to 1.

    The result has an integer dtype, or the given ``dtype``.

    Example:
        >>> import jax
        >>> random_poisson(0.0, key=jax.random.key(0), shape=(2,))
        Array([0, 0], dtype=int32)
    """
@overload
def random_poisson(
    rate: Value | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
poisson = random_poisson
@overload
def random_truncated_normal(
    loc: ArrayInput | None = None,
    scale: ArrayInput | None = None,
    low: float = -2.0,
    high: float = 2.0,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Truncated normal draws: ``loc + scale z`` with ``low <= z <= high``.

    The bounds are in standard deviations from ``loc``. The draw is differentiable in ``loc`` and
    ``scale``.

    Example:
        >>> import jax
        >>> bool((abs(random_truncated_normal(key=jax.random.key(0), shape=(99,))) <= 2).all())
        True
    """
@overload
def random_truncated_normal(
    loc: Value | ArrayInput | None = None,
    scale: Value | ArrayInput | None = None,
    low: float = -2.0,
    high: float = 2.0,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
truncated_normal = random_truncated_normal
@overload
def random_uniform(
    low: ArrayInput | None = None,
    high: ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Uniform draws: ``low + (high - low) u`` with ``u`` uniform in [0, 1).

    ``low`` defaults to 0 and ``high`` to 1. The result has the given ``shape``, or that of the
    parameters. It is differentiable in both parameters.

    Example:
        >>> import jax
        >>> random_uniform(0.0, 10.0, key=jax.random.key(0), shape=(2,)).shape
        (2,)
    """
@overload
def random_uniform(
    low: Value | ArrayInput | None = None,
    high: Value | ArrayInput | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
uniform = random_uniform
@overload
def rcbrt(x: ArrayInput) -> jax.Array:
    """Reciprocal cube root, element-wise: ``1 / cbrt(x)``; infinite at zero.

    Example:
        >>> import jax.numpy as jnp
        >>> rcbrt(jnp.asarray([8.0, -8.0]))
        Array([ 0.5, -0.5], dtype=float32)
    """
@overload
def rcbrt(x: Value, *, name: str | None = None) -> Value: ...
@overload
def real(x: ArrayInput) -> jax.Array:
    """Real part of ``x``; ``x`` itself if it is real.

    Example:
        >>> import jax.numpy as jnp
        >>> real(jnp.asarray([1 + 2j]))
        Array([1.], dtype=float32)
    """
@overload
def real(x: SelectedRows) -> Any: ...
@overload
def real(x: Value, *, name: str | None = None) -> Value: ...
@overload
def reciprocal(x: ArrayInput) -> jax.Array:
    """Reciprocal, element-wise: ``out = 1 / x``.

    Example:
        >>> import jax.numpy as jnp
        >>> reciprocal(jnp.asarray([2.0, 4.0]))
        Array([0.5 , 0.25], dtype=float32)
    """
@overload
def reciprocal(x: Value, *, name: str | None = None) -> Value: ...
@overload
def recompute(
    *operands: ArrayLike,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
) -> tuple[jax.Array, ...]:
    """Returns the outputs of ``body``, whose gradient recomputes its residuals.

    A gradient stores only the operands and the outputs at the indices ``saved``, and recomputes the
    rest of the body. Operands at ``lasting`` are stored in any case, as parameters are.

    Operands at ``held`` are not used before those at ``after`` are available. A gradient delays its
    operands until its cotangents are available: otherwise XLA would merge the recomputation with
    the original computation, and store its values. ``so.remat`` creates such calls.

    Source: Chen, Xu, Zhang, Guestrin, Training deep nets with sublinear memory cost, 2016; it
    corresponds to ``jax.checkpoint`` of JAX, and ``recompute`` of Paddle.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> sines = so.body(lambda x: so.sin(so.sin(x)), ((), "float32"))
        >>> (y,) = so.recompute(x, body=sines)
        >>> round(float(so.grad(y, x).eval(x=0.0)), 3)
        1.0
    """
@overload
def recompute(
    operands: Sequence[ArrayLike],
    *,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
) -> tuple[jax.Array, ...]: ...
@overload
def recompute(
    *operands: TensorArray | SelectedRows | ArrayLike,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
) -> Any: ...
@overload
def recompute(
    operands: Sequence[TensorArray | SelectedRows | ArrayLike],
    *,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
) -> Any: ...
@overload
def recompute(
    *operands: NDArray | ArrayLike,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
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
    training: bool = ...,
) -> tuple[NDArray, ...]: ...
@overload
def recompute(
    *operands: Symbol | ArrayLike,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def recompute(
    operands: Sequence[Symbol | ArrayLike],
    *,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def recompute(
    *operands: Variable | ArrayLike,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def recompute(
    operands: Sequence[Variable | ArrayLike],
    *,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def recompute(
    *operands: Var | ArrayLike,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def recompute(
    operands: Sequence[Var | ArrayLike],
    *,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def rel_entr(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Terms of a relative entropy: ``x log(x / y)`` for positive numbers.

    The result is zero where ``x`` is zero and ``y`` is not negative, and infinite elsewhere. The
    gradient is zero wherever one of the two is not positive, as in JAX.

    Example:
        >>> import jax.numpy as jnp
        >>> rel_entr(jnp.asarray([0.0, 1.0]), jnp.asarray([0.0, 0.0]))
        Array([ 0., inf], dtype=float32)
    """
@overload
def rel_entr(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
@overload
def relu(x: ArrayInput) -> jax.Array:
    """Rectified linear unit, element-wise: ``max(x, 0)``. Its derivative at zero is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> relu(jnp.asarray([-1.0, 2.0]))
        Array([0., 2.], dtype=float32)
    """
@overload
def relu(x: SelectedRows) -> Any: ...
@overload
def relu(x: Value, *, name: str | None = None) -> Value: ...
@overload
def relu6(x: ArrayInput) -> jax.Array:
    """Rectified linear unit capped at 6: ``min(max(x, 0), 6)``. Its derivative at 0 and 6 is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> relu6(jnp.asarray([-1.0, 2.0, 9.0]))
        Array([0., 2., 6.], dtype=float32)
    """
@overload
def relu6(x: SelectedRows) -> Any: ...
@overload
def relu6(x: Value, *, name: str | None = None) -> Value: ...
@overload
def remainder(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise remainder of floor division: ``out = x % y``, with the sign of ``y``.

    The derivative with respect to ``x`` is one, and that with respect to ``y`` is the negated
    quotient rounded down. This also holds where the result jumps: at a multiple of ``y`` the
    quotient is exact.

    Example:
        >>> import jax.numpy as jnp
        >>> remainder(jnp.asarray([7, -7]), jnp.asarray(4))
        Array([3, 1], dtype=int32)
    """
@overload
def remainder(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
broadcast_mod = remainder
elementwise_mod = remainder
floor_mod = remainder
mod = remainder
@overload
def repeat(x: ArrayInput, repeats: int | Sequence[int], axis: int | None = None) -> jax.Array:
    """Repeats each entry of ``x`` along ``axis``; the copies of an entry are adjacent.

    ``repeats`` is the number of copies, or one number for each entry of the axis. Without ``axis``,
    ``x`` is flattened in row-major order first.

    Example:
        >>> import jax.numpy as jnp
        >>> repeat(jnp.asarray([1, 2, 3]), repeats=(2, 0, 1))
        Array([1, 1, 3], dtype=int32)
    """
@overload
def repeat(
    x: Value,
    repeats: int | Sequence[int],
    axis: int | None = None,
    *,
    name: str | None = None,
) -> Value: ...
repeat_interleave = repeat
@overload
def reshape(x: ArrayInput, shape: int | Sequence[int]) -> jax.Array:
    """Reshapes ``x`` in row-major order; one length may be -1 and is inferred.

    A single number is the length of a one-dimensional result.

    Example:
        >>> import jax.numpy as jnp
        >>> reshape(jnp.asarray([1, 2, 3, 4]), shape=(2, -1))
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
@overload
def reshape(x: Value, shape: int | Sequence[int], *, name: str | None = None) -> Value: ...
@overload
def reshape_like(x: ArrayInput, like: ArrayInput) -> jax.Array:
    """Reshapes ``x`` in row-major order to the shape of ``like``.

    Only the shape of ``like`` matters; its gradient is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> reshape_like(jnp.asarray([1, 2, 3, 4]), jnp.zeros((2, 2)))
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
@overload
def reshape_like(
    x: Value | ArrayInput,
    like: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
view_as = reshape_like
@overload
def resize(
    data: ArrayInput,
    size: int | Sequence[int],
    method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
    align_corners: bool = False,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
) -> jax.Array:
    """Resizes one to three spatial axes of ``data`` by interpolation.

    Entry ``i`` of ``size`` along an axis is the value of ``data`` at
    ``(i + 1/2) * length / size - 1/2``: pixel centers are at half-integers, and both ends of the
    axes coincide. With ``align_corners`` it is the value at ``i * (length - 1) / (size - 1)``, or
    the first entry if ``size`` is 1: the centers of the outermost pixels coincide. Beyond these the
    outermost entries are repeated.

    ``"linear"``, with the alias ``"bilinear"`` after the case of two axes, interpolates between two
    neighbors along each axis, without antialiasing when the size shrinks. ``"nearest"`` takes the
    nearest entry, the later of two that are equally near; it accepts any dtype.

    Source: ONNX, operator ``Resize``, with ``half_pixel`` or ``align_corners``, and
    ``round_prefer_ceil`` for the nearest; the same as PyTorch's ``interpolate`` with ``linear``,
    ``bilinear``, ``trilinear`` and ``nearest-exact``.

    Example:
        >>> import jax.numpy as jnp
        >>> resize(jnp.asarray([[[0.0, 4.0]]]), size=4)
        Array([[[0., 1., 3., 4.]]], dtype=float32)
    """
@overload
def resize(
    data: Value,
    size: int | Sequence[int],
    method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
    align_corners: bool = False,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def resize_gradient(
    cotangent: ArrayInput,
    shape: Sequence[int],
    method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
    align_corners: bool = False,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
) -> jax.Array:
    """Adjoint of ``resize`` for data of ``shape``: spreads each entry to those it depends on.

    Example:
        >>> import jax.numpy as jnp
        >>> resize_gradient(jnp.ones((1, 1, 4)), shape=(1, 1, 2))
        Array([[[2., 2.]]], dtype=float32)
    """
@overload
def resize_gradient(
    cotangent: Value,
    shape: Sequence[int],
    method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
    align_corners: bool = False,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def rfft(
    x: ArrayInput,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
) -> jax.Array:
    """Discrete Fourier transform of real numbers, without the redundant conjugate bins.

    The result has the first ``n // 2 + 1`` of ``n`` bins; the others follow from
    ``out[-k] = conj(out[k])``. ``n`` and ``norm`` are as in ``fft``.

    Source: Python array API standard 2024.12, ``fft.rfft``.

    Example:
        >>> import jax.numpy as jnp
        >>> rfft(jnp.asarray([1.0, 2.0, 0.0, 2.0]))
        Array([ 5.+0.j,  1.+0.j, -3.+0.j], dtype=complex64)
    """
@overload
def rfft(
    x: Value,
    n: int | None = None,
    axis: int = -1,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    name: str | None = None,
) -> Value: ...
def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None) -> jax.Array:
    """Frequencies of the bins of ``rfft`` for ``n`` samples with spacing ``d``.

    ``[0, 1, ..., n // 2] / (n d)``, by default in the default floating dtype. The Nyquist frequency
    of an even ``n`` is positive here, and negative in ``fftfreq``.

    Source: Python array API standard 2024.12, ``fft.rfftfreq``.

    Example:
        >>> rfftfreq(4, 0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
@overload
def rfftn(
    x: ArrayInput,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
) -> jax.Array:
    """Discrete Fourier transform of real numbers over ``axes``, without redundant conjugate bins.

    Along the last of ``axes`` the result has the first ``n // 2 + 1`` of ``n`` bins; the others
    follow from ``out[-k] = conj(out[k])``. ``s``, ``axes`` and ``norm`` are as in ``fftn``.

    Source: Python array API standard 2024.12, ``fft.rfftn``.

    Example:
        >>> import jax.numpy as jnp
        >>> rfftn(jnp.asarray([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]])).shape
        (2, 2)
    """
@overload
def rfftn(
    x: Value,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Literal['backward', 'ortho', 'forward'] = 'backward',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def rms_norm(
    data: ArrayInput,
    gamma: ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-06,
    use_gamma: bool = True,
) -> jax.Array:
    """Root mean square normalization: ``gamma * data / sqrt(mean(data^2) + eps)`` over ``axis``.

    ``gamma`` has the lengths of the axes in ``axis``, in the order of ``data``. The mean is
    computed in at least float32; the result has the dtype of ``data``.

    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.

    Example:
        >>> import jax.numpy as jnp
        >>> rms_norm(jnp.asarray([[1.0, -7.0]]), jnp.asarray([5.0, 10.0]), eps=0.0)
        Array([[  1., -14.]], dtype=float32)
    """
@overload
def rms_norm(
    data: NDArray | ArrayInput,
    gamma: NDArray | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-06,
    use_gamma: bool = True,
) -> NDArray: ...
@overload
def rms_norm(
    data: Symbol | ArrayInput,
    gamma: Symbol | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-06,
    use_gamma: bool = True,
    *,
    gamma_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def rms_norm(
    data: Variable | ArrayInput,
    gamma: Variable | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-06,
    use_gamma: bool = True,
    *,
    gamma_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def rms_norm(
    data: Value | ArrayInput,
    gamma: Value | ArrayInput = ...,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-06,
    use_gamma: bool = True,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def rmsprop(
    param: ArrayInput,
    grad: ArrayInput,
    mean_square: ArrayInput,
    learning_rate: ArrayInput,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """A step of RMSProp: each entry is scaled by the root of the moving average of its squares.

    ``new_mean_square = decay * mean_square + (1 - decay) * grad^2`` and ``new_param = param -
    learning_rate * grad / sqrt(new_mean_square + eps)``, or, without ``eps_in_sqrt``, with ``eps``
    added to the root (Hinton, "Neural networks for machine learning", lecture 6e, 2012).

    If ``grad`` is ``SelectedRows``, ``lazy`` updates only the rows that it names; by default the
    step equals that of the dense gradient, in which every average decays.

    Example:
        >>> import jax.numpy as jnp
        >>> rmsprop(jnp.asarray(1.0), jnp.asarray(2.0), jnp.asarray(4.0), 0.5, eps=0.0)
        (Array(0.5, dtype=float32), Array(4., dtype=float32))
    """
@overload
def rmsprop(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    mean_square: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
) -> Any: ...
@overload
def rmsprop(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    mean_square: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def rmsprop(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    mean_square: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
@overload
def rmsprop_centered(
    param: ArrayInput,
    grad: ArrayInput,
    mean_square: ArrayInput,
    mean_grad: ArrayInput,
    velocity: ArrayInput,
    learning_rate: ArrayInput,
    mu: float = 0.0,
    nesterov: bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """A step of RMSProp scaled by the standard deviation (Graves 2013), with momentum.

    ``new_mean_grad = decay * mean_grad + (1 - decay) * grad``, and ``new_mean_square -
    new_mean_grad^2`` replaces ``new_mean_square`` in the root. Everything else is as in
    ``rmsprop_momentum``.

    Example:
        >>> import jax.numpy as jnp
        >>> one, four = jnp.asarray(1.0), jnp.asarray(4.0)
        >>> rmsprop_centered(one, 0 * one, 5 * one, one, one, 0.5, decay=0.8, eps=0.0)[:2]
        (Array(1., dtype=float32), Array(4., dtype=float32))
    """
@overload
def rmsprop_centered(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    mean_square: SelectedRows | ArrayInput,
    mean_grad: SelectedRows | ArrayInput,
    velocity: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    mu: float = 0.0,
    nesterov: bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
) -> Any: ...
@overload
def rmsprop_centered(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    mean_square: Symbol | ArrayInput,
    mean_grad: Symbol | ArrayInput,
    velocity: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    mu: float = 0.0,
    nesterov: bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def rmsprop_centered(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    mean_square: Value | ArrayInput,
    mean_grad: Value | ArrayInput,
    velocity: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    mu: float = 0.0,
    nesterov: bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value, Value]: ...
@overload
def rmsprop_momentum(
    param: ArrayInput,
    grad: ArrayInput,
    mean_square: ArrayInput,
    velocity: ArrayInput,
    learning_rate: ArrayInput,
    mu: float = 0.9,
    nesterov: bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A step of RMSProp with momentum: the scaled gradient of ``rmsprop`` drives a velocity.

    ``new_velocity = mu * velocity + learning_rate * scaled`` and ``new_param = param -
    new_velocity``; with ``nesterov`` the step is ``learning_rate * scaled + mu * new_velocity``.
    ``scaled`` is the scaled gradient, and ``lazy`` is as in ``rmsprop``.

    Example:
        >>> import jax.numpy as jnp
        >>> one, four = jnp.asarray(1.0), jnp.asarray(4.0)
        >>> rmsprop_momentum(one, 2 * one, four, one, 0.5, mu=0.5, eps=0.0)[2]
        Array(1., dtype=float32)
    """
@overload
def rmsprop_momentum(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    mean_square: SelectedRows | ArrayInput,
    velocity: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
    mu: float = 0.9,
    nesterov: bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
) -> Any: ...
@overload
def rmsprop_momentum(
    param: Symbol | ArrayInput,
    grad: Symbol | ArrayInput,
    mean_square: Symbol | ArrayInput,
    velocity: Symbol | ArrayInput,
    learning_rate: Symbol | ArrayInput,
    mu: float = 0.9,
    nesterov: bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def rmsprop_momentum(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    mean_square: Value | ArrayInput,
    velocity: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    mu: float = 0.9,
    nesterov: bool = False,
    decay: float = 0.9,
    eps: float = 1e-08,
    eps_in_sqrt: bool = True,
    lazy: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def rnn(
    data: ArrayLike,
    hidden: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    *weights: ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
) -> tuple[jax.Array, jax.Array]:
    """Elman recurrent layers over whole sequences.

    ``h[t] = activation(W x[t] + b + R h[t-1] + c)``

    ``data`` has the axes time, batch and feature. It passes through ``num_layers`` layers, each of
    which takes the result of the layer below. With ``bidirectional`` a layer has two directions, of
    which the second runs from the last step to the first, and its result at a step concatenates
    ``h`` of both. ``weights`` lists, for each layer and each of its directions: ``W`` of shape
    ``(units, features)``; ``R`` of shape ``(units, units)``; and ``b`` and ``c`` of shape
    ``(units,)``, or neither in all of them. ``hidden``, of shape
    ``(layers * directions, batch, units)``, is the initial value of ``h``, by default zero.

    A symbolic call may leave the weights out: ``hidden_size`` is then the number of units, and the
    call creates ``W``, which starts as ``glorot_uniform``, ``R``, which starts as ``orthogonal``,
    and biases at zero.

    ``lengths`` are the numbers of steps of the sequences in a batch, by default all. Entries of
    ``data`` beyond a sequence's end, if finite, have no effect: ``out`` is zero there, the state is
    kept, and the second direction starts at the end of the sequence.

    The results are ``out`` of the last layer, of shape ``(time, batch, directions * units)``, and
    ``last_hidden``, the value of ``h`` after the last step of each direction. The state is carried
    from step to step in at least float32. The derivative of ``"relu"`` is 0 at 0.

    Source: Elman, Finding structure in time, 1990; Schuster and Paliwal, Bidirectional recurrent
    neural networks, 1997.

    Example:
        >>> import jax.numpy as jnp
        >>> data = jnp.asarray([1.0, 0.0, 0.0]).reshape(3, 1, 1)
        >>> out, last_hidden = rnn(
        ...     data, None, None, jnp.ones((1, 1)), jnp.full((1, 1), 2.0), activation="relu"
        ... )
        >>> out.ravel()
        Array([1., 2., 4.], dtype=float32)
    """
@overload
def rnn(
    data: ArrayLike,
    hidden: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    *,
    weights: Sequence[ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
) -> tuple[jax.Array, jax.Array]: ...
@overload
def rnn(
    data: NDArray | ArrayLike,
    hidden: NDArray | ArrayLike | None = None,
    lengths: NDArray | ArrayLike | None = None,
    *weights: NDArray | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
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
    bidirectional: bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
) -> tuple[NDArray, NDArray]: ...
@overload
def rnn(
    data: Symbol | ArrayLike,
    hidden: Symbol | ArrayLike | None = None,
    lengths: Symbol | ArrayLike | None = None,
    *weights: Symbol | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    weights_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def rnn(
    data: Symbol | ArrayLike,
    hidden: Symbol | ArrayLike | None = None,
    lengths: Symbol | ArrayLike | None = None,
    *,
    weights: Sequence[Symbol | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    weights_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def rnn(
    data: Variable | ArrayLike,
    hidden: Variable | ArrayLike | None = None,
    lengths: Variable | ArrayLike | None = None,
    *weights: Variable | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    weights_initial: Any = None,
    name: str | None = None,
) -> tuple[Variable, Variable]: ...
@overload
def rnn(
    data: Variable | ArrayLike,
    hidden: Variable | ArrayLike | None = None,
    lengths: Variable | ArrayLike | None = None,
    *,
    weights: Sequence[Variable | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    weights_initial: Any = None,
    name: str | None = None,
) -> tuple[Variable, Variable]: ...
@overload
def rnn(
    data: Var | ArrayLike,
    hidden: Var | ArrayLike | None = None,
    lengths: Var | ArrayLike | None = None,
    *weights: Var | ArrayLike,
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    name: str | None = None,
) -> tuple[Var, Var]: ...
@overload
def rnn(
    data: Var | ArrayLike,
    hidden: Var | ArrayLike | None = None,
    lengths: Var | ArrayLike | None = None,
    *,
    weights: Sequence[Var | ArrayLike],
    hidden_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    activation: Literal['tanh', 'relu'] = 'tanh',
    name: str | None = None,
) -> tuple[Var, Var]: ...
@overload
def roi_align(
    data: ArrayInput,
    rois: ArrayInput,
    pooled_size: Sequence[int],
    spatial_scale: float = 1.0,
    sample_ratio: int = 2,
    position_sensitive: bool = False,
    aligned: bool = False,
) -> jax.Array:
    """Region of interest alignment: the mean of bilinear samples in each bin of each region.

    ``data`` has shape ``(batch, channels, height, width)``. Each row of ``rois`` holds the index of
    an image and the corners of a region, ``x1, y1, x2, y2``; multiplied by ``spatial_scale`` they
    are coordinates in ``data``. The result has shape ``(rois, channels, *pooled_size)``: a region
    is divided into equal bins, and ``sample_ratio`` times ``sample_ratio`` samples are spaced
    evenly in each.

    Without ``aligned``, integer coordinates are the centers of pixels, and a region is at least 1
    long; ``aligned`` shifts it by half a pixel, so that they are the corners of pixels, and leaves
    its length unchanged. A sample up to one pixel beyond the centers of the outermost pixels takes
    the value at the border; farther out, and in a region whose image index is out of range, it is
    0. With ``position_sensitive``, channel ``c`` of bin ``(i, j)`` is computed from channel
    ``(c * rows + i) * columns + j`` of data.

    The number of samples does not depend on the size of a region, as it does in other systems if
    their attribute is 0 or negative, because the shapes of a program are static. The gradient with
    respect to ``rois``, which other systems omit, is that with respect to the positions of the
    samples.

    Source: He et al. 2017, "Mask R-CNN", section 3; position-sensitive: Dai et al. 2016, "R-FCN".

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.arange(16.0).reshape(1, 1, 4, 4)
        >>> roi_align(image, jnp.asarray([[0.0, 0.0, 0.0, 2.0, 2.0]]), pooled_size=(1, 2))
        Array([[[[4.5, 5.5]]]], dtype=float32)
    """
@overload
def roi_align(
    data: Value | ArrayInput,
    rois: Value | ArrayInput,
    pooled_size: Sequence[int],
    spatial_scale: float = 1.0,
    sample_ratio: int = 2,
    position_sensitive: bool = False,
    aligned: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def roi_pooling(
    data: ArrayInput,
    rois: ArrayInput,
    pooled_size: Sequence[int],
    spatial_scale: float = 1.0,
) -> jax.Array:
    """Region of interest pooling: the largest entry of each bin of each region.

    ``data`` has shape ``(batch, channels, height, width)``. Each row of ``rois`` holds the index of
    an image and the corners of a region, ``x1, y1, x2, y2``; multiplied by ``spatial_scale`` and
    rounded, halves away from zero, they are pixels of ``data``, both inclusive, and the region is
    at least one pixel long. The result has shape ``(rois, channels, *pooled_size)``: along an axis
    of ``count`` bins, the n-th extends from ``floor(n * length / count)`` up to and excluding
    ``ceil((n + 1) * length / count)``, clipped at the border of the image. An empty bin, and a
    region whose image index is out of range, give 0.

    The first of the largest entries of a bin receives the gradient. The gradient with respect to
    ``rois`` is zero, since they are rounded.

    Source: Girshick 2015, "Fast R-CNN", section 2.1; the rounding is that of MXNet's
    ``ROIPooling``.

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.arange(16.0).reshape(1, 1, 4, 4)
        >>> roi_pooling(image, jnp.asarray([[0.0, 0.0, 0.0, 3.0, 2.0]]), pooled_size=(1, 2))
        Array([[[[ 9., 11.]]]], dtype=float32)
    """
@overload
def roi_pooling(
    data: Value | ArrayInput,
    rois: Value | ArrayInput,
    pooled_size: Sequence[int],
    spatial_scale: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
ROIPooling = roi_pooling
@overload
def roll(
    x: ArrayInput,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
) -> jax.Array:
    """Rolls ``x`` by ``shift`` places; entries that leave at one end reappear at the other.

    Each of several axes has its own entry of ``shift``, or all share one number; an axis that is
    named twice is rolled twice. Without ``axis`` the entries move in row-major order over all axes.

    Example:
        >>> import jax.numpy as jnp
        >>> roll(jnp.asarray([1, 2, 3, 4]), shift=1)
        Array([4, 1, 2, 3], dtype=int32)
    """
@overload
def roll(
    x: Value,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def rotary_embedding(
    x: ArrayInput,
    start: ArrayInput | None = None,
    base: float = 10000.0,
    inverse: bool = False,
) -> jax.Array:
    """Rotates pairs of features by angles that grow with the position.

    Feature ``i`` of the first half and feature ``i`` of the second half are a point in the plane,
    which position ``p`` rotates by ``p / base ** (2 i / width)``, or backwards with ``inverse``.
    ``x`` has shape ``(..., positions, width)``; ``start`` is as in ``position_ids``. Products of
    rotated queries and keys then depend on the difference of their positions. The angles are
    computed in at least float32.

    Source: Su et al., "RoFormer: Enhanced transformer with rotary position embedding", 2021.

    Example:
        >>> import jax.numpy as jnp
        >>> rotary_embedding(jnp.array([[1.0, 0.0], [1.0, 0.0]])).round(1)
        Array([[1. , 0. ],
               [0.5, 0.8]], dtype=float32)
    """
@overload
def rotary_embedding(
    x: Value | ArrayInput,
    start: Value | ArrayInput | None = None,
    base: float = 10000.0,
    inverse: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def round(x: ArrayInput, decimals: int = 0) -> jax.Array:
    """Rounds to the given number of ``decimals``, with halves to even.

    The result is ``rint(x * 10^decimals) / 10^decimals``, or ``x`` where that product overflows.
    Negative ``decimals`` round to that many zeros before the decimal point. For complex numbers
    both parts are rounded.

    Example:
        >>> import jax.numpy as jnp
        >>> round(jnp.asarray([1.4, 2.5, -1.5]))
        Array([ 1.,  2., -2.], dtype=float32)
        >>> round(jnp.asarray([16, 35]), decimals=-1)
        Array([20, 40], dtype=int32)
    """
@overload
def round(x: SelectedRows, decimals: int = 0) -> Any: ...
@overload
def round(x: Value, decimals: int = 0, *, name: str | None = None) -> Value: ...
around = round
rint = round
@overload
def round_straight_through(x: ArrayInput) -> jax.Array:
    """Rounds to the nearest integer, halves to even, with the gradient of the identity.

    Source: Bengio, Leonard and Courville, "Estimating or propagating gradients through stochastic
    neurons for conditional computation" (2013).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.value_and_grad(round_straight_through)(jnp.float32(2.5))
        (Array(2., dtype=float32), Array(1., dtype=float32))
    """
@overload
def round_straight_through(x: SelectedRows) -> Any: ...
@overload
def round_straight_through(x: Value, *, name: str | None = None) -> Value: ...
round_ste = round_straight_through
@overload
def rsqrt(x: ArrayInput) -> jax.Array:
    """Reciprocal square root: ``1 / sqrt(x)``; infinite at zero, NaN for negative numbers.

    Example:
        >>> import jax.numpy as jnp
        >>> rsqrt(jnp.asarray([4.0, 0.0]))
        Array([0.5, inf], dtype=float32)
    """
@overload
def rsqrt(x: Value, *, name: str | None = None) -> Value: ...
@overload
def scale(x: ArrayInput, scale: float) -> jax.Array:
    """Product with a constant number: ``out = scale * x``.

    Example:
        >>> import jax.numpy as jnp
        >>> scale(jnp.asarray([1.0, 2.0]), scale=3)
        Array([3., 6.], dtype=float32)
    """
@overload
def scale(x: SelectedRows, scale: float) -> Any: ...
@overload
def scale(x: Value, scale: float, *, name: str | None = None) -> Value: ...
@overload
def scale_paired_bins(x: ArrayInput, n: int, factor: float, axis: int = -1) -> jax.Array:
    """Multiplies by ``factor`` the bins of ``rfft`` that represent two bins of ``fft``.

    Of the ``n // 2 + 1`` bins of ``n`` real numbers, these are all but the first and, if ``n`` is
    even, the last. With ``factor=2`` a sum over the stored bins, of energies for example, equals
    the sum over all bins.

    Example:
        >>> import jax.numpy as jnp
        >>> scale_paired_bins(jnp.ones(3), n=4, factor=2.0)
        Array([1., 2., 1.], dtype=float32)
    """
@overload
def scale_paired_bins(
    x: Value,
    n: int,
    factor: float,
    axis: int = -1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def scaled_dot_product_attention(
    query: ArrayInput,
    keys: ArrayInput,
    values: ArrayInput,
    mask: ArrayInput | None = None,
    bias: ArrayInput | None = None,
    query_lengths: ArrayInput | None = None,
    key_lengths: ArrayInput | None = None,
    dropout_seed: ArrayInput | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
) -> jax.Array:
    """Scaled dot-product attention per head: ``softmax(scale * query @ keys^T + bias) @ values``.

    ``query`` has shape ``(..., heads, queries, width)``; ``keys`` and ``values`` have shape
    ``(..., heads, keys, width)``. The axes before the last two may be omitted. ``keys`` and
    ``values`` may have fewer heads: then neighboring heads of the query share one. ``scale``
    defaults to ``1 / sqrt(width)``.

    ``mask`` and ``bias`` broadcast to ``(..., heads, queries, keys)``. A boolean mask is true where
    a query sees a key; a floating mask is a bias. ``causal`` hides from the i-th query all keys
    after the i-th. ``window`` hides those before ``i - window[0]`` or after ``i + window[1]``; one
    number stands for both. ``query_lengths`` and ``key_lengths`` have the axes before that of
    heads: queries and keys from there on are padding. A query that sees no key, or is padding,
    gives zeros, and its gradient is zero. The softmax is computed in at least float32.

    ``dropout`` drops each weight with that probability, and divides the others by
    ``1 - dropout``. Which ones follows from ``dropout_seed``, two integers, and from the position.

    The weights are not stored: the gradient recomputes them from the ``logsumexp`` of each query.
    A call with many scores is computed block by block, so its memory grows with the length and not
    with its square; blocks that ``causal`` or ``window`` hide are skipped. ``registry.tuning`` has
    the size from which on. Second derivatives compute whole matrices of weights.

    Source: Vaswani et al., Attention is all you need, 2017; heads that share keys: Ainslie et al.,
    GQA, 2023; blocks: Dao et al., FlashAttention, 2022.

    Example:
        >>> import jax.numpy as jnp
        >>> query, keys = jnp.asarray([[0.0], [9.0]]), jnp.asarray([[1.0], [-1.0]])
        >>> scaled_dot_product_attention(query, keys, jnp.asarray([[2.0], [4.0]]))
        Array([[3.],
               [2.]], dtype=float32)
    """
@overload
def scaled_dot_product_attention(
    query: Value | ArrayInput,
    keys: Value | ArrayInput,
    values: Value | ArrayInput,
    mask: Value | ArrayInput | None = None,
    bias: Value | ArrayInput | None = None,
    query_lengths: Value | ArrayInput | None = None,
    key_lengths: Value | ArrayInput | None = None,
    dropout_seed: Value | ArrayInput | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | Sequence[int] | None = None,
    dropout: float = 0.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def scan_prefix(
    steps: ArrayLike,
    *operands: ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: jax.Array = ...,
    training: bool = ...,
) -> tuple[jax.Array, ...]:
    """Applies ``body`` in the first ``steps`` of ``length`` steps; otherwise like ``scan``.

    The number of steps is determined at run time, and is at most ``length``. With ``reverse`` the
    first step is run last. Results of steps that are not taken are zeros. The gradient of a
    ``while_loop`` consists of this operator.

    Example:
        >>> import symop as so
        >>> n, x = so.var("n", shape=(), dtype="int32"), so.var("x", shape=(3,))
        >>> add = so.body(lambda c, x: (c + x, c + x), ((), "float32"), ((), "float32"))
        >>> last, sums = so.scan_prefix(n, 0.0, x, body=add, n_carry=1, n_xs=1, length=3)
        >>> sums.eval(n=2, x=[1.0, 2.0, 3.0]).tolist()
        [1.0, 3.0, 0.0]
    """
@overload
def scan_prefix(
    steps: ArrayLike,
    operands: Sequence[ArrayLike],
    *,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: jax.Array = ...,
    training: bool = ...,
) -> tuple[jax.Array, ...]: ...
@overload
def scan_prefix(
    steps: ArrayLike,
    operands: ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    *,
    key: jax.Array = ...,
    training: bool = ...,
) -> tuple[jax.Array, ...]: ...
@overload
def scan_prefix(
    steps: TensorArray | SelectedRows | ArrayLike,
    *operands: TensorArray | SelectedRows | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: TensorArray | SelectedRows | jax.Array = ...,
    training: bool = ...,
) -> Any: ...
@overload
def scan_prefix(
    steps: TensorArray | SelectedRows | ArrayLike,
    operands: Sequence[TensorArray | SelectedRows | ArrayLike],
    *,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: TensorArray | SelectedRows | jax.Array = ...,
    training: bool = ...,
) -> Any: ...
@overload
def scan_prefix(
    steps: TensorArray | SelectedRows | ArrayLike,
    operands: TensorArray | SelectedRows | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    *,
    key: TensorArray | SelectedRows | jax.Array = ...,
    training: bool = ...,
) -> Any: ...
@overload
def scan_prefix(
    steps: NDArray | ArrayLike,
    *operands: NDArray | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: NDArray | jax.Array = ...,
    training: bool = ...,
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
    reverse: bool = False,
    use_key: bool = False,
    key: NDArray | jax.Array = ...,
    training: bool = ...,
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
    reverse: bool = False,
    use_key: bool = False,
    *,
    key: NDArray | jax.Array = ...,
    training: bool = ...,
) -> tuple[NDArray, ...]: ...
@overload
def scan_prefix(
    steps: Symbol | ArrayLike,
    *operands: Symbol | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: Symbol | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def scan_prefix(
    steps: Symbol | ArrayLike,
    operands: Sequence[Symbol | ArrayLike],
    *,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: Symbol | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def scan_prefix(
    steps: Symbol | ArrayLike,
    operands: Symbol | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    *,
    key: Symbol | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
@overload
def scan_prefix(
    steps: Variable | ArrayLike,
    *operands: Variable | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: Variable | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def scan_prefix(
    steps: Variable | ArrayLike,
    operands: Sequence[Variable | ArrayLike],
    *,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: Variable | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def scan_prefix(
    steps: Variable | ArrayLike,
    operands: Variable | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    *,
    key: Variable | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Variable, ...]: ...
@overload
def scan_prefix(
    steps: Var | ArrayLike,
    *operands: Var | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: Var | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def scan_prefix(
    steps: Var | ArrayLike,
    operands: Sequence[Var | ArrayLike],
    *,
    body: Body,
    n_carry: int,
    n_xs: int = 0,
    n_sums: int = 0,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    key: Var | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def scan_prefix(
    steps: Var | ArrayLike,
    operands: Var | ArrayLike,
    body: Body,
    n_carry: int,
    n_xs: int,
    n_sums: int,
    length: int,
    reverse: bool = False,
    use_key: bool = False,
    *,
    key: Var | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> tuple[Var, ...]: ...
@overload
def scatter_add(
    x: ArrayInput,
    indices: ArrayInput,
    updates: ArrayInput,
    axis: int = -1,
) -> jax.Array:
    """Adds ``updates`` to the entries ``indices`` of ``x`` along ``axis``.

    For the last axis: ``out[..., indices[..., j]] += updates[..., j]``. This is the adjoint of
    ``take_along_axis``: an entry that is named twice receives the sum. ``indices`` have the shape
    of ``updates``, or length 1 along axes other than ``axis``. Negative indices count from the end;
    updates out of bounds are dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> scatter_add(jnp.zeros(3), jnp.asarray([0, 2, 0]), jnp.asarray([1.0, 2.0, 3.0]))
        Array([4., 0., 2.], dtype=float32)
    """
@overload
def scatter_add(
    x: Value | ArrayInput,
    indices: Value | ArrayInput,
    updates: Value | ArrayInput,
    axis: int = -1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def scatter_nd(
    updates: ArrayInput,
    indices: ArrayInput,
    shape: int | Sequence[int],
    axis: int = -1,
) -> jax.Array:
    """Adds ``updates`` to an array of zeros of ``shape`` at the coordinates ``indices``.

    This is the adjoint of ``gather_nd``, with its ``axis``: an entry that is named twice receives
    the sum. Negative coordinates count from the end; updates out of bounds are dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> scatter_nd(jnp.asarray([1.0, 2.0, 4.0]), jnp.asarray([[0], [2], [0]]), shape=(3,))
        Array([5., 0., 2.], dtype=float32)
    """
@overload
def scatter_nd(
    updates: Value | ArrayInput,
    indices: Value | ArrayInput,
    shape: int | Sequence[int],
    axis: int = -1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def searchsorted(
    sorted: ArrayInput,
    values: ArrayInput,
    side: Literal['left', 'right'] = 'left',
) -> jax.Array:
    """Indices at which ``values`` would be inserted into ``sorted`` to keep it in order.

    ``sorted`` is one-dimensional and in ascending order. With ``side="left"`` the result counts the
    entries less than the value, so that ``sorted[i - 1] < value <= sorted[i]``; with
    ``side="right"`` it also counts those equal to it. The result has dtype int32.

    Source: Python array API standard 2024.12, ``searchsorted``.

    Example:
        >>> import jax.numpy as jnp
        >>> searchsorted(jnp.asarray([1.0, 2.0, 2.0, 4.0]), jnp.asarray([2.0, 3.0]), side="right")
        Array([3, 3], dtype=int32)
    """
@overload
def searchsorted(
    sorted: Value | ArrayInput,
    values: Value | ArrayInput,
    side: Literal['left', 'right'] = 'left',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def selu(x: ArrayInput) -> jax.Array:
    """Scaled exponential linear unit, element-wise: ``1.0507 elu(x, alpha=1.67326)``.

    The constants preserve mean 0 and variance 1 from layer to layer.

    Source: Klambauer, Unterthiner, Mayr and Hochreiter, "Self-normalizing neural networks" (2017).

    Example:
        >>> import jax.numpy as jnp
        >>> selu(jnp.asarray([0.0, 1.0]))
        Array([0.      , 1.050701], dtype=float32)
    """
@overload
def selu(x: SelectedRows) -> Any: ...
@overload
def selu(x: Value, *, name: str | None = None) -> Value: ...
@overload
def sequence_argmax(x: ArrayInput, offsets: ArrayInput) -> jax.Array:
    """The step of ``x`` with the first of the largest entries of each sequence.

    Steps are counted from the beginning of ``x``, not of the sequence, and are found separately for
    each entry of a step. For an empty sequence the result is the length of ``x``. A NaN counts as
    largest. The result is int32.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_argmax(jnp.asarray([1.0, 7.0, 5.0, 5.0]), jnp.asarray([0, 2, 4, 4]))
        Array([1, 2, 4], dtype=int32)
    """
@overload
def sequence_argmax(
    x: Value | ArrayInput,
    offsets: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def sequence_concat(xs: Sequence[ArrayLike], offsets: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Concatenates the sequences of several arrays sequence by sequence, and returns their offsets.

    ``offsets`` has a row for each of ``xs``, all with the same number of sequences. Sequence ``s``
    of the result consists of the steps of sequence ``s`` of the first array, then of the second,
    and so on. The length of the result is the total length of ``xs``: their padding becomes zeros
    after the last offset.

    Source: PaddlePaddle, operator ``sequence_concat``.

    Example:
        >>> import jax.numpy as jnp
        >>> x, y = jnp.asarray([1, 2, 3]), jnp.asarray([10, 20])
        >>> out, offsets = sequence_concat([x, y], jnp.asarray([[0, 1, 3], [0, 1, 2]]))
        >>> out, offsets
        (Array([ 1, 10,  2,  3, 20], dtype=int32), Array([0, 2, 5], dtype=int32))
    """
@overload
def sequence_concat(
    xs: Sequence[NDArray | ArrayLike],
    offsets: NDArray | ArrayLike,
) -> tuple[NDArray, NDArray]: ...
@overload
def sequence_concat(
    xs: Sequence[Symbol | ArrayLike],
    offsets: Symbol | ArrayLike,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def sequence_concat(
    xs: Sequence[Variable | ArrayLike],
    offsets: Variable | ArrayLike,
    *,
    name: str | None = None,
) -> tuple[Variable, Variable]: ...
@overload
def sequence_concat(
    xs: Sequence[Var | ArrayLike],
    offsets: Var | ArrayLike,
    *,
    name: str | None = None,
) -> tuple[Var, Var]: ...
@overload
def sequence_context(
    x: ArrayInput,
    offsets: ArrayInput,
    context_length: int,
    context_start: int | None = None,
) -> jax.Array:
    """The context window of each step in its sequence, along a new second axis.

    ``out[i, k] = x[i + context_start + k]`` if that step belongs to the sequence of step ``i``,
    otherwise zero; padding after the last offset is zero as well. By default the window is centered
    on the step: ``context_start = -(context_length // 2)``.

    Source: PaddlePaddle, the context projection of operator ``sequence_conv``.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_context(jnp.asarray([1, 2, 3, 4]), jnp.asarray([0, 3, 4]), context_length=3)
        Array([[0, 1, 2],
               [1, 2, 3],
               [2, 3, 0],
               [0, 4, 0]], dtype=int32)
    """
@overload
def sequence_context(
    x: Value | ArrayInput,
    offsets: Value | ArrayInput,
    context_length: int,
    context_start: int | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def sequence_context_adjoint(
    contexts: ArrayInput,
    offsets: ArrayInput,
    context_start: int,
) -> jax.Array:
    """The adjoint of ``sequence_context``: for each step, the sum of its copies in ``contexts``.

    ``out[j] = sum over k of contexts[j - context_start - k, k]``, over those steps that belong to
    the sequence of step ``j``. The sum is computed in float32 at least.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_context_adjoint(jnp.ones((3, 2)), jnp.asarray([0, 3]), context_start=0)
        Array([1., 2., 2.], dtype=float32)
    """
@overload
def sequence_context_adjoint(
    contexts: Value | ArrayInput,
    offsets: Value | ArrayInput,
    context_start: int,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def sequence_conv(
    x: ArrayInput,
    offsets: ArrayInput,
    weight: ArrayInput,
    channels: int,
    context_length: int = 3,
    context_start: int | None = None,
) -> jax.Array:
    """Convolution over the steps of each sequence: ``out = context @ weight``.

    The context of a step consists of the ``context_length`` steps that start ``context_start``
    steps after it (before it if negative), each with all of its features, and zeros outside the
    sequence. ``x`` has shape ``(steps, features)``, ``weight`` has shape ``(context_length *
    features, channels)``, where the features of the first step of the context come first. By
    default the context is centered on the step: ``context_start = -(context_length // 2)``. Padding
    after the last offset becomes zero.

    Source: PaddlePaddle, operator ``sequence_conv``.

    Example:
        >>> import jax.numpy as jnp
        >>> x, offsets = jnp.asarray([[1.0], [2.0], [3.0], [4.0]]), jnp.asarray([0, 3, 4])
        >>> sequence_conv(x, offsets, jnp.ones((3, 1)), channels=1).ravel()
        Array([3., 6., 5., 4.], dtype=float32)
    """
@overload
def sequence_conv(
    x: NDArray | ArrayInput,
    offsets: NDArray | ArrayInput,
    weight: NDArray | ArrayInput,
    channels: int,
    context_length: int = 3,
    context_start: int | None = None,
) -> NDArray: ...
@overload
def sequence_conv(
    x: Symbol | ArrayInput,
    offsets: Symbol | ArrayInput,
    weight: Symbol | ArrayInput = ...,
    *,
    channels: int,
    context_length: int = 3,
    context_start: int | None = None,
    weight_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def sequence_conv(
    x: Variable | ArrayInput,
    offsets: Variable | ArrayInput,
    weight: Variable | ArrayInput = ...,
    *,
    channels: int,
    context_length: int = 3,
    context_start: int | None = None,
    weight_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def sequence_conv(
    x: Value | ArrayInput,
    offsets: Value | ArrayInput,
    weight: Value | ArrayInput,
    channels: int,
    context_length: int = 3,
    context_start: int | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def sequence_expand(
    x: ArrayInput,
    x_offsets: ArrayInput,
    offsets: ArrayInput,
    total_length: int,
    n_sequences: int,
) -> tuple[jax.Array, jax.Array]:
    """Repeats each sequence of ``x`` as many times as ``offsets`` has steps for it.

    Sequence ``s`` of ``x``, delimited by ``x_offsets``, is repeated ``offsets[s + 1] - offsets[s]``
    times. The result has ``n_sequences`` sequences and ``total_length`` steps: it is padded with
    empty sequences and with zeros after the last offset, or truncated. ``sequence_expand_as``
    repeats rows.

    Source: PaddlePaddle, operator ``sequence_expand``.

    Example:
        >>> import jax.numpy as jnp
        >>> out, offsets = sequence_expand(
        ...     jnp.asarray([1, 2, 3]), jnp.asarray([0, 2, 3]), jnp.asarray([0, 2, 3]),
        ...     total_length=5, n_sequences=3,
        ... )
        >>> out, offsets
        (Array([1, 2, 1, 2, 3], dtype=int32), Array([0, 2, 4, 5], dtype=int32))
    """
@overload
def sequence_expand(
    x: Symbol | ArrayInput,
    x_offsets: Symbol | ArrayInput,
    offsets: Symbol | ArrayInput,
    total_length: int,
    n_sequences: int,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def sequence_expand(
    x: Value | ArrayInput,
    x_offsets: Value | ArrayInput,
    offsets: Value | ArrayInput,
    total_length: int,
    n_sequences: int,
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
@overload
def sequence_expand_as(x: ArrayInput, offsets: ArrayInput, total_length: int) -> jax.Array:
    """Repeats each row of ``x`` for every step of its sequence.

    ``out[i] = x[s]`` for the steps ``i`` from ``offsets[s]`` up to ``offsets[s + 1]``. Padding
    after the last offset is zero; steps from ``total_length`` on are dropped. It is the adjoint of
    ``sequence_pool`` with ``pool="sum"``.

    Source: PaddlePaddle, operator ``sequence_expand_as``.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_expand_as(jnp.asarray([1.0, 2.0]), jnp.asarray([0, 3, 4]), total_length=5)
        Array([1., 1., 1., 2., 0.], dtype=float32)
    """
@overload
def sequence_expand_as(
    x: Value | ArrayInput,
    offsets: Value | ArrayInput,
    total_length: int,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def sequence_ids(offsets: ArrayInput, total_length: int) -> jax.Array:
    """The index of the sequence that each of ``total_length`` steps belongs to.

    Sequence ``s`` has the steps from ``offsets[s]`` up to ``offsets[s + 1]``. Padding after the
    last offset gets the number of sequences, which is not the index of any. The result is int32.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_ids(jnp.asarray([0, 2, 2, 5]), total_length=6)
        Array([0, 0, 2, 2, 2, 3], dtype=int32)
    """
@overload
def sequence_ids(offsets: Value, total_length: int, *, name: str | None = None) -> Value: ...
@overload
def sequence_last(
    data: ArrayInput,
    sequence_length: ArrayInput | None = None,
    axis: int = 0,
) -> jax.Array:
    """The last step of each sequence in ``data``.

    ``axis`` counts the steps, and the other one of the first two axes counts the sequences: for
    ``axis=0``, ``out[n, ...] = data[sequence_length[n] - 1, n, ...]``. Without ``sequence_length``
    every sequence has all steps. The result for an empty sequence is NaN, or the minimum of an
    integer dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_last(jnp.asarray([[1, 2], [3, 4], [5, 6]]), jnp.asarray([3, 1]))
        Array([5, 2], dtype=int32)
    """
@overload
def sequence_last(
    data: Value | ArrayInput,
    sequence_length: Value | ArrayInput | None = None,
    axis: int = 0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def sequence_lengths(offsets: ArrayInput) -> jax.Array:
    """The length of each sequence: ``offsets[s + 1] - offsets[s]``, of dtype int32.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_lengths(jnp.asarray([0, 2, 2, 5]))
        Array([2, 0, 3], dtype=int32)
    """
@overload
def sequence_lengths(offsets: Value, *, name: str | None = None) -> Value: ...
@overload
def sequence_mask(
    data: ArrayInput,
    sequence_length: ArrayInput | None = None,
    value: float = 0.0,
    axis: int = 0,
) -> jax.Array:
    """Replaces the entries of ``data`` after the end of each sequence by ``value``.

    ``axis`` counts the steps, and the other one of the first two axes counts the sequences: for
    ``axis=0``, ``out[t, n, ...] = data[t, n, ...]`` if ``t < sequence_length[n]``, otherwise
    ``value``. Without ``sequence_length`` every sequence has all steps.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_mask(jnp.ones((2, 3)), jnp.asarray([0, 1, 2]))
        Array([[0., 1., 1.],
               [0., 0., 1.]], dtype=float32)
    """
@overload
def sequence_mask(
    data: Value | ArrayInput,
    sequence_length: Value | ArrayInput | None = None,
    value: float = 0.0,
    axis: int = 0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def sequence_offsets(length: ArrayInput) -> jax.Array:
    """The offsets of consecutive sequences of the given lengths.

    ``out[0] = 0`` and ``out[s + 1] = out[s] + length[s]``, of dtype int32; a negative length counts
    as zero. Inverse of ``sequence_lengths``.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_offsets(jnp.asarray([2, 0, 3]))
        Array([0, 2, 2, 5], dtype=int32)
    """
@overload
def sequence_offsets(length: Value, *, name: str | None = None) -> Value: ...
@overload
def sequence_pad(
    x: ArrayInput,
    offsets: ArrayInput,
    padded_length: int,
    pad_value: float = 0.0,
) -> tuple[jax.Array, jax.Array]:
    """Pads each sequence to a row of ``padded_length`` steps, and returns the lengths.

    ``out[s, t] = x[offsets[s] + t]`` for the steps ``t`` of sequence ``s``, followed by
    ``pad_value``. A longer sequence is truncated at its end, and ``length`` counts the remaining
    steps: ``length_mask(length, size=padded_length)`` is the mask of the steps. The lengths have
    dtype int32.

    Source: PaddlePaddle, operator ``sequence_pad``.

    Example:
        >>> import jax.numpy as jnp
        >>> out, length = sequence_pad(
        ...     jnp.asarray([1, 2, 3]), jnp.asarray([0, 1, 3]), padded_length=2
        ... )
        >>> out, length
        (Array([[1, 0],
               [2, 3]], dtype=int32), Array([1, 2], dtype=int32))
    """
@overload
def sequence_pad(
    x: Symbol | ArrayInput,
    offsets: Symbol | ArrayInput,
    padded_length: int,
    pad_value: float = 0.0,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def sequence_pad(
    x: Value | ArrayInput,
    offsets: Value | ArrayInput,
    padded_length: int,
    pad_value: float = 0.0,
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
@overload
def sequence_pool(
    x: ArrayInput,
    offsets: ArrayInput,
    pool: Literal['sum', 'mean', 'sqrt', 'max', 'first', 'last'] = 'sum',
    pad_value: float = 0.0,
) -> jax.Array:
    """Reduces the steps of each sequence to one row by ``pool``; ``pad_value`` for empty sequences.

    Sequence ``s`` has the steps ``x[offsets[s]:offsets[s + 1]]``; ``sum``, ``mean`` and ``max``
    reduce them, ``sqrt`` is the sum divided by the root of their number, ``first`` and ``last``
    select one of them. Padding after the last offset is not read. If several steps are largest, the
    first of them receives the gradient of ``max``; a NaN counts as largest. Sums are computed in
    float32 at least; a sum of integers has their dtype.

    Source: PaddlePaddle, operator ``sequence_pool``, whose ``average`` is ``mean``.

    Example:
        >>> import jax.numpy as jnp
        >>> x, offsets = jnp.asarray([1.0, 2.0, 3.0, 5.0]), jnp.asarray([0, 3, 3, 4])
        >>> sequence_pool(x, offsets, pool="mean")
        Array([2., 0., 5.], dtype=float32)
        >>> sequence_pool(x, offsets, pool="max", pad_value=-1.0)
        Array([ 3., -1.,  5.], dtype=float32)
    """
@overload
def sequence_pool(
    x: Value | ArrayInput,
    offsets: Value | ArrayInput,
    pool: Literal['sum', 'mean', 'sqrt', 'max', 'first', 'last'] = 'sum',
    pad_value: float = 0.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def sequence_reverse(
    data: ArrayInput,
    sequence_length: ArrayInput | None = None,
    offsets: ArrayInput | None = None,
    axis: int = 0,
) -> jax.Array:
    """Reverses the steps of each sequence of ``data``; entries after its end are unchanged.

    ``axis`` counts the steps, and the other one of the first two axes counts the sequences: for
    ``axis=0``, ``out[t, n, ...] = data[sequence_length[n] - 1 - t, n, ...]`` if ``t <
    sequence_length[n]``, otherwise ``data[t, n, ...]``. Without ``sequence_length`` every sequence
    has all steps.

    With ``offsets`` the sequences are ragged: sequence ``s`` consists of the steps
    ``data[offsets[s]:offsets[s + 1]]``, and padding after the last offset is unchanged.

    Source: MXNet, operator ``SequenceReverse``; PaddlePaddle, operator ``sequence_reverse``.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_reverse(jnp.asarray([[1, 2], [3, 4], [5, 6]]), jnp.asarray([3, 2]))
        Array([[5, 4],
               [3, 2],
               [1, 6]], dtype=int32)
        >>> sequence_reverse(jnp.asarray([1, 2, 3, 4]), offsets=jnp.asarray([0, 3, 4]))
        Array([3, 2, 1, 4], dtype=int32)
    """
@overload
def sequence_reverse(
    data: Value | ArrayInput,
    sequence_length: Value | ArrayInput | None = None,
    offsets: Value | ArrayInput | None = None,
    axis: int = 0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def sequence_slice(
    x: ArrayInput,
    offsets: ArrayInput,
    begin: ArrayInput,
    length: ArrayInput,
    total_length: int | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Selects ``length`` steps of each sequence from step ``begin`` on, and returns the offsets.

    ``begin`` and ``length`` hold a number for each sequence, in steps relative to its start: of the
    steps from ``begin[s]`` up to ``begin[s] + length[s]``, the existing ones are selected. ``out``
    has ``total_length`` steps, by default as many as ``x``, with zeros after the last offset. Steps
    beyond ``total_length`` are dropped, and the offsets are clipped to it.

    Source: PaddlePaddle, operator ``sequence_slice``.

    Example:
        >>> import jax.numpy as jnp
        >>> out, offsets = sequence_slice(
        ...     jnp.asarray([1, 2, 3, 4]), jnp.asarray([0, 3, 4]), jnp.asarray([1, 0]),
        ...     jnp.asarray([2, 1]), total_length=3,
        ... )
        >>> out, offsets
        (Array([2, 3, 4], dtype=int32), Array([0, 2, 3], dtype=int32))
    """
@overload
def sequence_slice(
    x: Symbol | ArrayInput,
    offsets: Symbol | ArrayInput,
    begin: Symbol | ArrayInput,
    length: Symbol | ArrayInput,
    total_length: int | None = None,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def sequence_slice(
    x: Value | ArrayInput,
    offsets: Value | ArrayInput,
    begin: Value | ArrayInput,
    length: Value | ArrayInput,
    total_length: int | None = None,
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
@overload
def sequence_softmax(x: ArrayInput, offsets: ArrayInput) -> jax.Array:
    """The softmax over the steps of each sequence, separately for each entry of a step.

    ``out[i] = exp(x[i]) / sum over j of exp(x[j])``, where ``j`` are the steps of the sequence of
    step ``i``. It does not overflow. Padding after the last offset becomes zero, and its gradient
    is zero. The sum is computed in float32 at least.

    Source: PaddlePaddle, operator ``sequence_softmax``.

    Example:
        >>> import jax.numpy as jnp
        >>> sequence_softmax(jnp.asarray([5.0, 5.0, 900.0]), jnp.asarray([0, 2, 3]))
        Array([0.5, 0.5, 1. ], dtype=float32)
    """
@overload
def sequence_softmax(
    x: Value | ArrayInput,
    offsets: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def sequence_unpad(
    x: ArrayInput,
    length: ArrayInput,
    total_length: int | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Concatenates the first ``length`` steps of each row, and returns the offsets of the rows.

    ``out[out_offsets[s] + t] = x[s, t]``; a negative length counts as zero, and one that exceeds
    the row as the row's length. ``out`` has ``total_length`` steps, by default as many as ``x``,
    with zeros after the last offset. Steps beyond ``total_length`` are dropped, and the offsets are
    clipped to it. Inverse of ``sequence_pad``.

    Source: PaddlePaddle, operator ``sequence_unpad``.

    Example:
        >>> import jax.numpy as jnp
        >>> x, length = jnp.asarray([[1, 0], [2, 3]]), jnp.asarray([1, 2])
        >>> out, offsets = sequence_unpad(x, length, total_length=3)
        >>> out, offsets
        (Array([1, 2, 3], dtype=int32), Array([0, 1, 3], dtype=int32))
    """
@overload
def sequence_unpad(
    x: Symbol | ArrayInput,
    length: Symbol | ArrayInput,
    total_length: int | None = None,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def sequence_unpad(
    x: Value | ArrayInput,
    length: Value | ArrayInput,
    total_length: int | None = None,
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
@overload
def sgd(param: ArrayInput, grad: ArrayInput, learning_rate: ArrayInput) -> jax.Array:
    """A step of gradient descent: ``new_param = param - learning_rate * grad``.

    ``grad`` may be ``SelectedRows``; the step is exact, and its cost is that of the rows alone if
    ``param`` is donated. The computation is in single precision at least; the parameter keeps its
    dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> sgd(jnp.asarray([1.0, 2.0]), jnp.asarray([2.0, 0.0]), 0.25)
        Array([0.5, 2. ], dtype=float32)
    """
@overload
def sgd(
    param: SelectedRows | ArrayInput,
    grad: SelectedRows | ArrayInput,
    learning_rate: SelectedRows | ArrayInput,
) -> Any: ...
@overload
def sgd(
    param: Value | ArrayInput,
    grad: Value | ArrayInput,
    learning_rate: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def shard(x: ArrayInput, sharding: Any) -> jax.Array:
    """Returns ``x``, split over the devices of the current mesh.

    Args:
        x: an array.
        sharding: for each axis of ``x``, the mesh axis that it is split over, a tuple of mesh axes
            (the first varies slowest), or None, which means that each device has all of it. Axes
            at the end may be left out, and axes that the mesh lacks split nothing.

    The values are those of ``x``; a row-sparse value stays as it is. The mesh is that of the
    context (``jax.set_mesh``), or else the one that ``x`` is on. Without a mesh, and inside of
    ``jax.shard_map``, nothing is split. On a mesh of automatic axes it is a constraint for XLA
    (``jax.lax.with_sharding_constraint``), on explicit axes it changes the type
    (``jax.sharding.reshard``).

    Raises:
        ArgumentError: an axis of the mesh does not divide the length that it splits.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> mesh = jax.make_mesh((1,), ("data",))
        >>> with jax.set_mesh(mesh):
        ...     print(shard(jnp.zeros((4, 2)), sharding=("data", None)).sharding.spec[0])
        data
    """
@overload
def shard(x: TensorArray | SelectedRows, sharding: Any) -> jax.Array: ...
@overload
def shard(x: Value, sharding: Any, *, name: str | None = None) -> Value: ...
@overload
def sigmoid(x: ArrayInput) -> jax.Array:
    """Logistic sigmoid, element-wise: ``1 / (1 + exp(-x))``, computed without overflow.

    The derivative is ``out (1 - out)``, which rounds to zero where ``out`` rounds to one.

    Example:
        >>> import jax.numpy as jnp
        >>> sigmoid(jnp.asarray([0.0, -1000.0]))
        Array([0.5, 0. ], dtype=float32)
    """
@overload
def sigmoid(x: Value, *, name: str | None = None) -> Value: ...
expit = sigmoid
logistic = sigmoid
@overload
def sigmoid_cross_entropy(logits: ArrayInput, labels: ArrayInput) -> jax.Array:
    """Sigmoid cross-entropy ``-p log(sigmoid(x)) - (1 - p) log(1 - sigmoid(x))``, element-wise.

    ``x`` are logits and ``p`` probabilities. It is computed as
    ``max(x, 0) - x p + log1p(exp(-abs(x)))``, which neither overflows nor cancels. An infinite
    logit has loss zero if ``p`` is the matching certain answer, and infinity otherwise.

    Example:
        >>> import jax.numpy as jnp
        >>> sigmoid_cross_entropy(jnp.asarray([1000.0, -1000.0]), jnp.asarray([1.0, 1.0]))
        Array([   0., 1000.], dtype=float32)
    """
@overload
def sigmoid_cross_entropy(
    logits: Value | ArrayInput,
    labels: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
sigmoid_binary_cross_entropy = sigmoid_cross_entropy
sigmoid_cross_entropy_with_logits = sigmoid_cross_entropy
@overload
def sign(x: ArrayInput) -> jax.Array:
    """Sign of each entry: -1, 0 or 1 for real numbers, ``x / |x|`` or 0 for complex numbers.

    The derivative is zero for real numbers. For complex numbers it is
    ``i Im(dx conj(x)) x / |x|^3``, a rotation, and zero at 0.

    Source: Python array API standard 2024.12, ``sign``.

    Example:
        >>> import jax.numpy as jnp
        >>> sign(jnp.asarray([1.5, -2.0, 0.0]))
        Array([ 1., -1.,  0.], dtype=float32)
        >>> sign(jnp.asarray([2j]))
        Array([0.+1.j], dtype=complex64)
    """
@overload
def sign(x: SelectedRows) -> Any: ...
@overload
def sign(x: Value, *, name: str | None = None) -> Value: ...
sgn = sign
@overload
def sign_straight_through(x: ArrayInput) -> jax.Array:
    """Sign of each entry, -1, 0 or 1, with the gradient of the identity.

    Source: Bengio, Leonard and Courville, "Estimating or propagating gradients through stochastic
    neurons for conditional computation" (2013).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.value_and_grad(sign_straight_through)(jnp.float32(-2.5))
        (Array(-1., dtype=float32), Array(1., dtype=float32))
    """
@overload
def sign_straight_through(x: SelectedRows) -> Any: ...
@overload
def sign_straight_through(x: Value, *, name: str | None = None) -> Value: ...
sign_ste = sign_straight_through
@overload
def silu(x: ArrayInput) -> jax.Array:
    """Sigmoid-weighted linear unit, element-wise: ``x sigmoid(x)``.

    Example:
        >>> import jax.numpy as jnp
        >>> silu(jnp.asarray([0.0, 1000.0]))
        Array([   0., 1000.], dtype=float32)
    """
@overload
def silu(x: SelectedRows) -> Any: ...
@overload
def silu(x: Value, *, name: str | None = None) -> Value: ...
swish = silu
@overload
def sin(x: ArrayInput) -> jax.Array:
    """Sine of an angle in radians, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> sin(jnp.asarray([0.0, jnp.pi / 2]))
        Array([0., 1.], dtype=float32)
    """
@overload
def sin(x: SelectedRows) -> Any: ...
@overload
def sin(x: Value, *, name: str | None = None) -> Value: ...
@overload
def sinc(x: ArrayInput, n: int = 0) -> jax.Array:
    """Normalized sinc function ``sin(pi x) / (pi x)``, one at zero, or its ``n``-th derivative.

    The derivative is ``pi^n`` times the integral of ``t^n cos(pi x t + n pi / 2)`` for ``t`` from 0
    to 1. At infinity the function and all its derivatives are zero.

    Example:
        >>> import jax.numpy as jnp
        >>> sinc(jnp.asarray([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
@overload
def sinc(x: Value, n: int = 0, *, name: str | None = None) -> Value: ...
@overload
def sinh(x: ArrayInput) -> jax.Array:
    """Hyperbolic sine, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> sinh(jnp.asarray([0.0, jnp.inf]))
        Array([ 0., inf], dtype=float32)
    """
@overload
def sinh(x: SelectedRows) -> Any: ...
@overload
def sinh(x: Value, *, name: str | None = None) -> Value: ...
@overload
def slice(
    x: ArrayInput,
    begin: Sequence[int | None],
    end: Sequence[int | None],
    step: Sequence[int | None] | None = None,
) -> jax.Array:
    """Slices ``x`` as ``x[begin[0]:end[0]:step[0], ...]`` by Python's rules, for positive steps.

    Axes without a given range are kept whole.

    Example:
        >>> import jax.numpy as jnp
        >>> slice_(jnp.asarray([1, 2, 3, 4]), begin=(1,), end=(None,), step=(2,))
        Array([2, 4], dtype=int32)
    """
@overload
def slice(
    x: Value,
    begin: Sequence[int | None],
    end: Sequence[int | None],
    step: Sequence[int | None] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def slice_axis(x: ArrayInput, axis: int, begin: int, end: int | None) -> jax.Array:
    """Slices ``x`` along one axis, ``x[..., begin:end, ...]``, by Python's rules; None is the end.

    Example:
        >>> import jax.numpy as jnp
        >>> slice_axis(jnp.asarray([[1, 2, 3], [4, 5, 6]]), axis=1, begin=-2, end=None)
        Array([[2, 3],
               [5, 6]], dtype=int32)
    """
@overload
def slice_axis(
    x: Value,
    axis: int,
    begin: int,
    end: int | None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def slice_like(x: ArrayInput, like: ArrayInput, axes: Sequence[int] = ()) -> jax.Array:
    """Slices ``x`` to the lengths that ``like`` has along ``axes``, by default along all axes.

    Without ``axes`` both must have the same number of axes. Only the shape of ``like`` matters; its
    gradient is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> slice_like(jnp.asarray([[1, 2, 3], [4, 5, 6]]), jnp.zeros((1, 2)))
        Array([[1, 2]], dtype=int32)
    """
@overload
def slice_like(
    x: Value | ArrayInput,
    like: Value | ArrayInput,
    axes: Sequence[int] = (),
    *,
    name: str | None = None,
) -> Value: ...
@overload
def slogdet(a: ArrayInput) -> tuple[jax.Array, jax.Array]:
    """Sign and log-absolute value of the determinant: ``det(a) = sign * exp(logabsdet)``.

    The result neither overflows nor underflows. The logarithm is real; the sign of a complex
    determinant has absolute value one. For a singular matrix the sign is zero, the logarithm minus
    infinity, and the gradient not finite. Half precision is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> slogdet(jnp.asarray([[0.0, 1.0], [1.0, 0.0]]))
        (Array(-1., dtype=float32), Array(0., dtype=float32))
    """
@overload
def slogdet(a: Symbol, *, name: str | None = None) -> Symbol: ...
@overload
def slogdet(a: Value, *, name: str | None = None) -> tuple[Value, Value]: ...
linalg_slogdet = slogdet
@overload
def smooth_l1(data: ArrayInput, scalar: float = 1.0) -> jax.Array:
    """Smooth L1 loss, element-wise: the absolute value with a rounded corner at zero.

    ``(scalar * x)^2 / 2`` where ``abs(x) <= 1 / scalar^2``, else ``abs(x) - 1 / (2 scalar^2)``.

    Source: Girshick, Fast R-CNN (2015), where ``scalar`` is called sigma.

    Example:
        >>> import jax.numpy as jnp
        >>> smooth_l1(jnp.asarray([0.5, -3.0]))
        Array([0.125, 2.5  ], dtype=float32)
    """
@overload
def smooth_l1(data: Value, scalar: float = 1.0, *, name: str | None = None) -> Value: ...
@overload
def softmax(
    x: ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
) -> jax.Array:
    """Softmax along ``axis``: ``exp(x / T) / sum(exp(x / T))``, positive numbers that sum to one.

    ``T`` is the ``temperature``: the higher, the more uniform the result. Nothing overflows.

    Example:
        >>> import jax.numpy as jnp
        >>> softmax(jnp.asarray([1000.0, 1000.0]))
        Array([0.5, 0.5], dtype=float32)
    """
@overload
def softmax(
    x: Value,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def softmax_cross_entropy(
    logits: ArrayInput,
    labels: ArrayInput,
    class_weights: ArrayInput | None = None,
    axis: int = -1,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
) -> jax.Array:
    """Softmax cross-entropy for each example: ``-sum(w * p * log_softmax(logits))`` along ``axis``.

    ``labels`` are either the probabilities ``p``, in the shape of ``logits``, or one integer class
    for each example, whose probability is one. A class out of range gives NaN. The softmax is
    shifted by the largest logit, so nothing overflows; a term with zero weight or probability is
    zero, even where its logit is minus infinity.

    ``class_weights`` are the weights ``w``, one for each class, by default one. ``smoothing``
    distributes that share of the probability evenly among all ``n`` classes:
    ``(1 - smoothing) * p + smoothing / n``. An example whose class is ``ignore_label`` has loss and
    gradient zero, whatever its logits are.

    Source: Szegedy et al., Rethinking the Inception Architecture for Computer Vision (2016), for
    the smoothing.

    Example:
        >>> import jax.numpy as jnp
        >>> softmax_cross_entropy(jnp.asarray([[1000.0, 0.0]]), jnp.asarray([1]))
        Array([1000.], dtype=float32)
    """
@overload
def softmax_cross_entropy(
    logits: Value | ArrayInput,
    labels: Value | ArrayInput,
    class_weights: Value | ArrayInput | None = None,
    axis: int = -1,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
    *,
    name: str | None = None,
) -> Value: ...
softmax_cross_entropy_with_integer_labels = softmax_cross_entropy
@overload
def softmax_output(
    data: ArrayInput,
    label: ArrayInput,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Literal['null', 'batch', 'valid'] = 'null',
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
) -> jax.Array:
    """Softmax along the classes, with the gradient of the cross-entropy: ``softmax(data) - p``.

    The classes are along axis 1 with ``multi_output``, along the last axis with ``preserve_shape``,
    and otherwise along all axes but the first, flattened. ``label`` holds either the probabilities
    ``p`` in the shape of ``data``, or one class for each example, truncated to an integer; for a
    class out of range ``p`` is zero. The gradient for ``label`` is zero.

    The gradient is multiplied by ``grad_scale``, and by the cotangent only with ``out_grad``. The
    following apply to class labels only. ``use_ignore`` sets the gradient to zero where the class
    is ``ignore_label``. ``normalization`` divides it by the number of labels (``"batch"``; with
    ``multi_output`` of examples), or by the number of those that are not ``ignore_label``, at least
    one (``"valid"``). With ``multi_output`` it is, unless ``"valid"``, also divided by the number
    of labels of each example. ``smooth_alpha``, without ``multi_output``, is the share of the
    probability that is distributed evenly among the other classes.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1])
        >>> jax.grad(lambda x: softmax_output(x, label).sum())(jnp.zeros((1, 2)))
        Array([[ 0.5, -0.5]], dtype=float32)
    """
@overload
def softmax_output(
    data: Value | ArrayInput,
    label: Value | ArrayInput,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Literal['null', 'batch', 'valid'] = 'null',
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
    *,
    name: str | None = None,
) -> Value: ...
SoftmaxOutput = softmax_output
@overload
def softmax_with_length(
    x: ArrayInput,
    length: ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
) -> jax.Array:
    """Softmax of ``x / temperature`` over the first ``length`` entries along ``axis``.

    The other entries are zero, and so is their gradient; a length of zero gives only zeros.
    ``length`` has the shape of ``x`` without ``axis``. The sum is computed in at least float32.

    Example:
        >>> import jax.numpy as jnp
        >>> softmax_with_length(jnp.zeros((2, 3)), jnp.asarray([2, 1]))
        Array([[0.5, 0.5, 0. ],
               [1. , 0. , 0. ]], dtype=float32)
    """
@overload
def softmax_with_length(
    x: Value | ArrayInput,
    length: Value | ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def softmin(
    x: ArrayInput,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
) -> jax.Array:
    """``softmax(-x / temperature)`` along ``axis``: the smallest entry has the largest share.

    Example:
        >>> import jax.numpy as jnp
        >>> softmin(jnp.asarray([0.0, 1000.0]))
        Array([1., 0.], dtype=float32)
    """
@overload
def softmin(
    x: Value,
    axis: int | Sequence[int] = -1,
    temperature: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def softmin_with_length(
    x: ArrayInput,
    length: ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
) -> jax.Array:
    """Softmin over the first ``length`` entries: ``softmax_with_length(-x, length)``.

    Example:
        >>> import jax.numpy as jnp
        >>> softmin_with_length(jnp.asarray([0.0, 1000.0, -5.0]), jnp.asarray(2))
        Array([1., 0., 0.], dtype=float32)
    """
@overload
def softmin_with_length(
    x: Value | ArrayInput,
    length: Value | ArrayInput,
    axis: int = -1,
    temperature: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def softplus(x: ArrayInput) -> jax.Array:
    """Softplus, element-wise: ``log(1 + exp(x))``, computed without overflow.

    Example:
        >>> import jax.numpy as jnp
        >>> softplus(jnp.asarray([-jnp.inf, 1000.0]))
        Array([   0., 1000.], dtype=float32)
    """
@overload
def softplus(x: Value, *, name: str | None = None) -> Value: ...
@overload
def softsign(x: ArrayInput) -> jax.Array:
    """Softsign, element-wise: ``x / (1 + |x|)``.

    Example:
        >>> import jax.numpy as jnp
        >>> softsign(jnp.asarray([0.0, -1.0]))
        Array([ 0. , -0.5], dtype=float32)
    """
@overload
def softsign(x: SelectedRows) -> Any: ...
@overload
def softsign(x: Value, *, name: str | None = None) -> Value: ...
soft_sign = softsign
@overload
def solve(a: ArrayInput, b: ArrayInput) -> jax.Array:
    """Solution of a linear system: ``a @ out = b``.

    ``a`` is a square matrix or a stack of them. ``b`` is a vector if it has one axis, otherwise a
    matrix or a stack; batch axes broadcast. Where ``a`` is singular the result is not finite. The
    solution uses LU decomposition with partial pivoting, which the gradient reuses; half precision
    is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> solve(jnp.asarray([[2.0, 0.0], [0.0, 4.0]]), jnp.asarray([2.0, 2.0]))
        Array([1. , 0.5], dtype=float32)
    """
@overload
def solve(a: Value | ArrayInput, b: Value | ArrayInput, *, name: str | None = None) -> Value: ...
@overload
def sort(
    x: ArrayInput,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
) -> jax.Array:
    """Sorts the entries of ``x`` along ``axis`` in ascending or descending order.

    NaN counts as largest. Each entry receives the gradient of its position in the result. Equal
    entries keep their order, unless ``stable`` is false: then their order is unspecified.

    Source: Python array API standard 2024.12, ``sort``.

    Example:
        >>> import jax.numpy as jnp
        >>> sort(jnp.asarray([3.0, 1.0, 2.0]), descending=True)
        Array([3., 2., 1.], dtype=float32)
    """
@overload
def sort(
    x: Value,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def space_to_depth(
    x: ArrayInput,
    block_size: int,
    layout: Literal['NCHW', 'NHWC'] = 'NCHW',
    mode: Literal['DCR', 'CRD'] = 'DCR',
) -> jax.Array:
    """Rearranges blocks of ``block_size * block_size`` pixels of images into channels.

    This is the inverse of ``depth_to_space`` with the same attributes.

    Source: ONNX, operator SpaceToDepth.

    Example:
        >>> import jax.numpy as jnp
        >>> space_to_depth(jnp.arange(4).reshape(1, 1, 2, 2), block_size=2).ravel()
        Array([0, 1, 2, 3], dtype=int32)
    """
@overload
def space_to_depth(
    x: Value,
    block_size: int,
    layout: Literal['NCHW', 'NHWC'] = 'NCHW',
    mode: Literal['DCR', 'CRD'] = 'DCR',
    *,
    name: str | None = None,
) -> Value: ...
@overload
def spatial_transformer(
    data: ArrayInput,
    loc: ArrayInput,
    target_shape: Sequence[int],
) -> jax.Array:
    """Samples ``data`` on a grid of ``target_shape`` transformed by the affine maps ``loc``.

    ``bilinear_sampler(data, grid_generator(loc, target_shape=target_shape))``: ``data`` has shape
    ``(batch, channels, height, width)``, ``loc`` has shape ``(batch, 6)``.

    Source: Jaderberg et al. 2015, "Spatial Transformer Networks".

    Example:
        >>> import jax.numpy as jnp
        >>> image = jnp.asarray([[[[0.0, 1.0], [2.0, 3.0]]]])
        >>> turned = jnp.asarray([[0.0, -1.0, 0.0, 1.0, 0.0, 0.0]])
        >>> spatial_transformer(image, turned, target_shape=(2, 2))
        Array([[[[1., 3.],
                 [0., 2.]]]], dtype=float32)
    """
@overload
def spatial_transformer(
    data: Value | ArrayInput,
    loc: Value | ArrayInput,
    target_shape: Sequence[int],
    *,
    name: str | None = None,
) -> Value: ...
@overload
def split(x: ArrayInput, sections: int | Sequence[int], axis: int = 0) -> tuple[jax.Array, ...]:
    """Splits ``x`` along ``axis`` into ``sections`` equal parts or at the given positions.

    Positions ``(a, b)`` give ``x[:a]``, ``x[a:b]`` and ``x[b:]``.

    Example:
        >>> import jax.numpy as jnp
        >>> split(jnp.asarray([1, 2, 3]), sections=(1,))
        (Array([1], dtype=int32), Array([2, 3], dtype=int32))
    """
@overload
def split(
    x: Symbol,
    sections: int | Sequence[int],
    axis: int = 0,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def split(
    x: Value,
    sections: int | Sequence[int],
    axis: int = 0,
    *,
    name: str | None = None,
) -> tuple[Value, ...]: ...
@overload
def split_heads(x: ArrayInput, heads: int) -> jax.Array:
    """Splits the features of each position into attention heads.

    The result has shape ``(..., heads, positions, features / heads)`` for ``x`` of shape
    ``(..., positions, features)``.

    Example:
        >>> import jax.numpy as jnp
        >>> split_heads(jnp.asarray([[1, 2, 3, 4]]), heads=2)
        Array([[[1, 2]],
        <BLANKLINE>
               [[3, 4]]], dtype=int32)
    """
@overload
def split_heads(x: Value, heads: int, *, name: str | None = None) -> Value: ...
@overload
def split_selected_rows(x: ArrayInput, height_sections: Sequence[int]) -> tuple[jax.Array, ...]:
    """Consecutive parts of ``x`` of the given heights, as for tables stored in several places.

    Row ``i`` of a part is row ``i`` after the heights of the preceding parts. Each part names as
    many rows as ``x``; those that belong to another part have the part's own height as their
    number, and are thus dropped. A dense array is split along its first axis.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import SelectedRows
        >>> some = SelectedRows(jnp.array([3, 0]), jnp.ones((2, 1)), height=4)
        >>> [part.rows.tolist() for part in split_selected_rows(some, height_sections=(2, 2))]
        [[2, 0], [1, 2]]
    """
@overload
def split_selected_rows(x: SelectedRows, height_sections: Sequence[int]) -> Any: ...
@overload
def split_selected_rows(
    x: Symbol,
    height_sections: Sequence[int],
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def split_selected_rows(
    x: Value,
    height_sections: Sequence[int],
    *,
    name: str | None = None,
) -> tuple[Value, ...]: ...
@overload
def sqrt(x: ArrayInput) -> jax.Array:
    """Square root, element-wise; NaN for negative numbers. The derivative at zero is infinite.

    Example:
        >>> import jax.numpy as jnp
        >>> sqrt(jnp.asarray([4.0, 9.0]))
        Array([2., 3.], dtype=float32)
    """
@overload
def sqrt(x: SelectedRows) -> Any: ...
@overload
def sqrt(x: Value, *, name: str | None = None) -> Value: ...
@overload
def square(x: ArrayInput) -> jax.Array:
    """Square, element-wise: ``out = x * x``.

    Example:
        >>> import jax.numpy as jnp
        >>> square(jnp.asarray([2.0, -3.0]))
        Array([4., 9.], dtype=float32)
    """
@overload
def square(x: SelectedRows) -> Any: ...
@overload
def square(x: Value, *, name: str | None = None) -> Value: ...
@overload
def squared_difference(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Squared difference of two arrays, element-wise: ``(x - y)^2``.

    Example:
        >>> import jax.numpy as jnp
        >>> squared_difference(jnp.asarray([1.0, 4.0]), 2.0)
        Array([1., 4.], dtype=float32)
    """
@overload
def squared_difference(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
square_error_cost = squared_difference
@overload
def squeeze(x: ArrayInput, axis: int | Sequence[int] | None = None) -> jax.Array:
    """Removes axes of length 1 from ``x``: those named, or all of them.

    Example:
        >>> import jax.numpy as jnp
        >>> squeeze(jnp.asarray([[1], [2]]))
        Array([1, 2], dtype=int32)
    """
@overload
def squeeze(
    x: Value,
    axis: int | Sequence[int] | None = None,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def stack(*xs: ArrayLike, axis: int = 0) -> jax.Array:
    """Joins arrays of the same shape along a new axis; ``axis`` refers to the result.

    Example:
        >>> import jax.numpy as jnp
        >>> stack(jnp.asarray([1, 2]), jnp.asarray([3, 4]), axis=1)
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
@overload
def stack(xs: Sequence[ArrayLike], *, axis: int = 0) -> jax.Array: ...
@overload
def stack(*xs: NDArray | ArrayLike, axis: int = 0) -> NDArray: ...
@overload
def stack(xs: Sequence[NDArray | ArrayLike], *, axis: int = 0) -> NDArray: ...
@overload
def stack(*xs: Symbol | ArrayLike, axis: int = 0, name: str | None = None) -> Symbol: ...
@overload
def stack(
    xs: Sequence[Symbol | ArrayLike],
    *,
    axis: int = 0,
    name: str | None = None,
) -> Symbol: ...
@overload
def stack(*xs: Variable | ArrayLike, axis: int = 0, name: str | None = None) -> Variable: ...
@overload
def stack(
    xs: Sequence[Variable | ArrayLike],
    *,
    axis: int = 0,
    name: str | None = None,
) -> Variable: ...
@overload
def stack(*xs: Var | ArrayLike, axis: int = 0, name: str | None = None) -> Var: ...
@overload
def stack(xs: Sequence[Var | ArrayLike], *, axis: int = 0, name: str | None = None) -> Var: ...
@overload
def std(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> jax.Array:
    """Standard deviation ``sqrt(sum(|x - mean(x)|^2) / (n - correction))`` over ``axis``.

    By default the reduction is over all axes; ``n`` is the number of entries, and ``correction`` is
    as in ``variance``. The squares do not overflow: they are scaled where they leave the range, as
    in ``norm``. Where all entries are equal the derivative does not exist; it is taken as zero.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> std(jnp.asarray([1.0, 3.0]))
        Array(1., dtype=float32)
        >>> jax.grad(std)(jnp.asarray([2.0, 2.0]))
        Array([0., 0.], dtype=float32)
    """
@overload
def std(
    x: Value,
    axis: int | Sequence[int] | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def stochastic_round(
    x: ArrayInput,
    dtype: DTypeLike = ...,
    *,
    key: jax.Array = ...,
) -> jax.Array:
    """Rounds to one of the two neighbors in ``dtype``, at random, so that the expectation is ``x``.

    A neighbor is chosen with a probability proportional to the distance of the other one. Small
    updates of parameters in a narrow dtype are not lost then, as they are by rounding to nearest.
    Numbers beyond the largest of ``dtype`` are rounded to nearest: to an infinity, if far enough,
    or to NaN if ``dtype`` has none. The gradient is that of the identity.

    Source: Gupta et al., Deep Learning with Limited Numerical Precision, 2015.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> x = jnp.full(1000, 1.001)  # between 1 and 1.0078125
        >>> rounded = stochastic_round(x, key=jax.random.key(0))
        >>> sorted(set(rounded.tolist()))
        [1.0, 1.0078125]
        >>> bool(abs(rounded.astype("float32").mean() - 1.001) < 1e-3)
        True
    """
@overload
def stochastic_round(
    x: Value,
    dtype: DTypeLike = ...,
    *,
    key: Value | jax.Array = ...,
    name: str | None = None,
) -> Value: ...
@overload
def stop_gradient(x: ArrayInput) -> jax.Array:
    """Returns ``x`` and stops its gradient: nothing flows back through it.

    Example:
        >>> import jax.numpy as jnp
        >>> stop_gradient(jnp.asarray([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
@overload
def stop_gradient(x: SelectedRows) -> Any: ...
@overload
def stop_gradient(x: Value, *, name: str | None = None) -> Value: ...
BlockGrad = stop_gradient
block_grad = stop_gradient
detach = stop_gradient
@overload
def student_t_log_density(
    x: ArrayInput,
    df: ArrayInput,
    loc: ArrayInput,
    scale: ArrayInput,
) -> jax.Array:
    """Log density of Student's t distribution with ``df`` degrees of freedom.

    ``log Gamma((df + 1) / 2) - log Gamma(df / 2) - log(df pi) / 2 - log(scale) - (df + 1) / 2 log(1
    + z^2 / df)`` with ``z = (x - loc) / scale``. For an infinite ``df`` it is the log density of
    the normal distribution, and the derivative with respect to ``df`` is zero.

    Example:
        >>> import jax.numpy as jnp
        >>> student_t_log_density(jnp.asarray([0.0]), 1.0, 0.0, 1.0)
        Array([-1.144...], dtype=float32)
    """
@overload
def student_t_log_density(
    x: Value | ArrayInput,
    df: Value | ArrayInput,
    loc: Value | ArrayInput,
    scale: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def subtract(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise difference of two arrays: ``out = x - y``.

    Example:
        >>> import jax.numpy as jnp
        >>> subtract(jnp.asarray([1.0, 2.0]), jnp.asarray(3.0))
        Array([-2., -1.], dtype=float32)
    """
@overload
def subtract(x: SelectedRows | ArrayInput, y: SelectedRows | ArrayInput) -> Any: ...
@overload
def subtract(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
broadcast_minus = subtract
broadcast_sub = subtract
elementwise_sub = subtract
elemwise_sub = subtract
sub = subtract
@overload
def sum(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """Sum over ``axis``, by default over all axes; ``keepdims`` keeps the axes with length 1.

    Small integers and booleans are accumulated in the default integer dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> sum(jnp.ones((2, 3)), axis=0)
        Array([2., 2., 2.], dtype=float32)
    """
@overload
def sum(
    x: Value,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
reduce_sum = sum
sum_along = sum
sum_axis = sum
@overload
def sum_to(x: ArrayInput, shape: int | Sequence[int]) -> jax.Array:
    """Sums ``x`` over the axes that broadcasting from ``shape`` adds or stretches.

    This is the adjoint of ``broadcast_to``. The dtype is kept.

    Example:
        >>> import jax.numpy as jnp
        >>> sum_to(jnp.ones((3, 2)), shape=(2,))
        Array([3., 3.], dtype=float32)
    """
@overload
def sum_to(x: SelectedRows, shape: int | Sequence[int]) -> Any: ...
@overload
def sum_to(x: Value, shape: int | Sequence[int], *, name: str | None = None) -> Value: ...
@overload
def sumlogdiag(a: ArrayInput) -> jax.Array:
    """Sum of the logarithms of the diagonal: half the ``log det`` of a matrix with factor ``a``.

    Off-diagonal entries are not read. For complex entries the principal logarithms are added, so
    the imaginary part of the sum may exceed pi. Half precision is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> sumlogdiag(jnp.asarray([[1.0, 0.0], [5.0, 1.0]]))
        Array(0., dtype=float32)
    """
@overload
def sumlogdiag(a: Value, *, name: str | None = None) -> Value: ...
linalg_sumlogdiag = sumlogdiag
@overload
def svd(x: ArrayInput, full_matrices: bool = False) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Singular value decomposition ``x = (u * s) @ vh``, reduced by default.

    For ``x`` of shape ``(..., m, n)`` with ``k = min(m, n)``, ``u`` has shape ``(..., m, k)`` and
    orthonormal columns, and ``vh`` has shape ``(..., k, n)`` and orthonormal rows; with
    ``full_matrices`` both are square. The singular values ``s`` of shape ``(..., k)`` are real and
    descending; signs and phases are LAPACK's. Half precision is computed in single precision.

    The gradient through ``u`` or ``vh`` requires distinct singular values, and nonzero ones if
    ``x`` is not square or is complex; the gradient through ``s`` alone is finite with repeated and
    zero ones, too. The phases of a complex pair of vectors are arbitrary; in their derivative no
    column of ``v`` moves along itself, as in JAX. The vectors that ``full_matrices`` adds are an
    arbitrary orthonormal basis: their derivative is the smallest that keeps them orthogonal to the
    others. The gradient is correct for every function that depends on neither choice.

    Source: Giles, Collected matrix derivative results, 2008, for the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> u, s, vh = svd(jnp.asarray([[0.0, 2.0], [3.0, 0.0]]))
        >>> s
        Array([3., 2.], dtype=float32)
    """
@overload
def svd(x: Symbol, full_matrices: bool = False, *, name: str | None = None) -> Symbol: ...
@overload
def svd(
    x: Value,
    full_matrices: bool = False,
    *,
    name: str | None = None,
) -> tuple[Value, Value, Value]: ...
@overload
def svdvals(x: ArrayInput) -> jax.Array:
    """Singular values of a matrix, in descending order.

    The gradient is finite with repeated and zero singular values; second and higher derivatives
    require distinct ones. Half precision is computed in single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> svdvals(jnp.asarray([[0.0, 2.0], [3.0, 0.0]]))
        Array([3., 2.], dtype=float32)
    """
@overload
def svdvals(x: Value, *, name: str | None = None) -> Value: ...
@overload
def svm_output(
    data: ArrayInput,
    label: ArrayInput,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: bool = False,
) -> jax.Array:
    """Returns ``data``; its gradient is that of a multi-class hinge loss.

    ``label`` holds the classes along the last axis, truncated to integers. With ``s`` one for the
    class of the example and minus one for the others, the loss is ``max(0, margin - s * data)``,
    squared unless ``use_linear``, times ``regularization_coefficient``. The cotangent is ignored,
    and the gradient for ``label`` is zero.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> label = jnp.asarray([1])
        >>> jax.grad(lambda x: svm_output(x, label).sum())(jnp.asarray([[-2.0, 0.5, 1.0]]))
        Array([[ 0., -1.,  4.]], dtype=float32)
    """
@overload
def svm_output(
    data: Value | ArrayInput,
    label: Value | ArrayInput,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
SVMOutput = svm_output
@overload
def swapaxes(x: ArrayInput, axis1: int, axis2: int) -> jax.Array:
    """Interchanges the axes ``axis1`` and ``axis2`` of ``x``.

    Example:
        >>> import jax.numpy as jnp
        >>> swapaxes(jnp.ones((2, 3, 4)), axis1=0, axis2=-1).shape
        (4, 3, 2)
    """
@overload
def swapaxes(x: Value, axis1: int, axis2: int, *, name: str | None = None) -> Value: ...
@overload
def syrk(a: ArrayInput, transpose: bool = False, alpha: float = 1.0) -> jax.Array:
    """Symmetric rank-k product: ``alpha * a @ a^T``, or ``alpha * a^T @ a`` with ``transpose``.

    Leading axes are batch axes. The result is symmetric; nothing is conjugated.

    Source: Dongarra et al., A set of level 3 basic linear algebra subprograms, ACM TOMS 16, 1990.

    Example:
        >>> import jax.numpy as jnp
        >>> syrk(jnp.asarray([[1.0, 2.0]]), alpha=2.0)
        Array([[10.]], dtype=float32)
    """
@overload
def syrk(
    a: Value,
    transpose: bool = False,
    alpha: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
linalg_syrk = syrk
@overload
def take(
    x: ArrayInput,
    ids: ArrayInput,
    axis: int = 0,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    fill_value: float | None = None,
) -> jax.Array:
    """Selects the entries ``ids`` of ``x`` along ``axis``; the axes of ``ids`` replace that axis.

    ``mode`` determines the result for an index out of bounds: ``fill`` gives ``fill_value``
    (negative indices count from the end), ``clip`` the nearest entry, and ``wrap`` wraps around. By
    default ``fill_value`` is NaN for inexact dtypes, the smallest value for signed integers, the
    largest for unsigned integers, and True for booleans.

    Example:
        >>> import jax.numpy as jnp
        >>> take(jnp.asarray([10.0, 20.0, 30.0]), jnp.asarray([2, 0]))
        Array([30., 10.], dtype=float32)
    """
@overload
def take(
    x: SelectedRows | ArrayInput,
    ids: SelectedRows | ArrayInput,
    axis: int = 0,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    fill_value: float | None = None,
) -> Any: ...
@overload
def take(
    x: Value | ArrayInput,
    ids: Value | ArrayInput,
    axis: int = 0,
    mode: Literal['fill', 'clip', 'wrap'] = 'fill',
    fill_value: float | None = None,
    *,
    name: str | None = None,
) -> Value: ...
gather = take
@overload
def take_along_axis(
    x: ArrayInput,
    indices: ArrayInput,
    axis: int = -1,
    fill_value: float | None = None,
) -> jax.Array:
    """Selects entries of ``x`` along ``axis`` by an array of indices with the same axes.

    For the last axis: ``out[..., j] = x[..., indices[..., j]]``. Both arrays have the same number
    of axes and broadcast along all axes but ``axis``. Negative indices count from the end. An index
    out of bounds gives ``fill_value``: by default NaN for inexact dtypes, the smallest value for
    signed integers, and the largest for unsigned integers.

    Source: Python array API standard 2024.12, ``take_along_axis``.

    Example:
        >>> import jax.numpy as jnp
        >>> take_along_axis(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([[1], [0]]))
        Array([[2.],
               [3.]], dtype=float32)
    """
@overload
def take_along_axis(
    x: Value | ArrayInput,
    indices: Value | ArrayInput,
    axis: int = -1,
    fill_value: float | None = None,
    *,
    name: str | None = None,
) -> Value: ...
index_sample = take_along_axis
@overload
def tan(x: ArrayInput) -> jax.Array:
    """Tangent of an angle in radians, element-wise.

    Example:
        >>> import jax.numpy as jnp
        >>> tan(jnp.asarray([0.0, jnp.pi / 4]))
        Array([0., 1.], dtype=float32)
    """
@overload
def tan(x: SelectedRows) -> Any: ...
@overload
def tan(x: Value, *, name: str | None = None) -> Value: ...
@overload
def tanh(x: ArrayInput) -> jax.Array:
    """Hyperbolic tangent, element-wise.

    The derivative is ``1 - out^2``, which rounds to zero where ``out`` rounds to -1 or 1.

    Example:
        >>> import jax.numpy as jnp
        >>> tanh(jnp.asarray([0.0, jnp.inf]))
        Array([0., 1.], dtype=float32)
    """
@overload
def tanh(x: SelectedRows) -> Any: ...
@overload
def tanh(x: Value, *, name: str | None = None) -> Value: ...
@overload
def tensordot(
    x: ArrayInput,
    y: ArrayInput,
    axes: int | Sequence[int | Sequence[int]] = 2,
) -> jax.Array:
    """Tensor contraction: the sum of products over given axes of both arrays.

    ``axes`` is the number of summed axes, the last of ``x`` and the first of ``y``, or the axes of
    ``x`` and, in the same order, those of ``y``. The result has the remaining axes, those of ``x``
    first. With no summed axes it is the outer product.

    Source: Python array API standard 2024.12, ``tensordot``.

    Example:
        >>> import jax.numpy as jnp
        >>> tensordot(jnp.asarray([[1, 2], [3, 4]]), jnp.asarray([1, 10]), axes=((0,), (0,)))
        Array([31, 42], dtype=int32)
    """
@overload
def tensordot(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    axes: int | Sequence[int | Sequence[int]] = 2,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def tile(x: ArrayInput, repetitions: int | Sequence[int]) -> jax.Array:
    """Tiles ``x``, repeating it ``repetitions[i]`` times along axis ``i``.

    A single number applies to the last axis. The shorter of ``repetitions`` and the shape of ``x``
    is padded with leading ones.

    Example:
        >>> import jax.numpy as jnp
        >>> tile(jnp.asarray([1, 2]), repetitions=(2, 2))
        Array([[1, 2, 1, 2],
               [1, 2, 1, 2]], dtype=int32)
    """
@overload
def tile(x: Value, repetitions: int | Sequence[int], *, name: str | None = None) -> Value: ...
@overload
def topk(
    x: ArrayInput,
    k: int,
    axis: int = -1,
    largest: bool = True,
) -> tuple[jax.Array, jax.Array]:
    """The ``k`` largest entries of ``x`` along ``axis`` in descending order, and their indices.

    With ``largest=False``, the ``k`` smallest entries in ascending order. Of equal entries the
    first comes first, and receives the gradient if only one of them is among the ``k``. NaN counts
    as largest; with ``largest=False`` it counts as infinity. The indices have dtype int32.

    Example:
        >>> import jax.numpy as jnp
        >>> values, indices = topk(jnp.asarray([3.0, 1.0, 2.0]), k=2)
        >>> values, indices
        (Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32))
    """
@overload
def topk(
    x: Symbol,
    k: int,
    axis: int = -1,
    largest: bool = True,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def topk(
    x: Value,
    k: int,
    axis: int = -1,
    largest: bool = True,
    *,
    name: str | None = None,
) -> tuple[Value, Value]: ...
top_k = topk
@overload
def trace(x: ArrayInput, offset: int = 0, axis1: int = -2, axis2: int = -1) -> jax.Array:
    """Sums of the diagonals of matrices: ``out[...] = sum over i of x[..., i, i + offset]``.

    Axes and ``offset`` are as in ``diagonal``. Small integers and booleans are accumulated in the
    default integer dtype.

    Source: Python array API standard 2024.12, ``linalg.trace``.

    Example:
        >>> import jax.numpy as jnp
        >>> trace(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]))
        Array(5., dtype=float32)
    """
@overload
def trace(
    x: Value,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def transposed_convolution(
    data: ArrayInput,
    weight: ArrayInput,
    bias: ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    use_bias: bool = True,
) -> jax.Array:
    """Transposed convolution: the adjoint of ``convolution`` with respect to data, plus ``bias``.

    There are one to three spatial axes. Each entry of ``data`` adds the weight, times itself, to
    the window of the result at ``stride`` times its position: ``out[n, o, y * stride + i * dilation
    - padding, ...] += data[n, c, y, ...] * weight[c, o, i, ...]``. ``weight`` has shape
    ``(in_channels, channels / groups, *kernel)`` whatever the ``layout`` of data and result, which
    defaults to channels first.

    ``padding`` is that of the convolution and removes entries: a length ``n`` becomes ``(n - 1) *
    stride + dilation * (kernel - 1) + 1 - padding before and after + output_padding``.
    ``output_padding`` (MXNet's ``adj``) is less than ``stride``. ``"same"`` makes the result
    ``n * stride`` long.

    Source: Dumoulin and Visin, A guide to convolution arithmetic for deep learning, 2016.

    Example:
        >>> import jax.numpy as jnp
        >>> data, weight = jnp.asarray([[[1.0, 10.0]]]), jnp.asarray([[[1.0, 2.0, 3.0]]])
        >>> transposed_convolution(data, weight, jnp.zeros(1), channels=1, kernel=3, stride=2)
        Array([[[ 1.,  2., 13., 20., 30.]]], dtype=float32)
    """
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
    use_bias: bool = True,
) -> NDArray: ...
@overload
def transposed_convolution(
    data: Symbol | ArrayInput,
    weight: Symbol | ArrayInput = ...,
    bias: Symbol | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    use_bias: bool = True,
    weight_initial: Any = None,
    bias_initial: Any = None,
    name: str | None = None,
) -> Symbol: ...
@overload
def transposed_convolution(
    data: Variable | ArrayInput,
    weight: Variable | ArrayInput = ...,
    bias: Variable | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    use_bias: bool = True,
    weight_initial: Any = None,
    bias_initial: Any = None,
    name: str | None = None,
) -> Variable: ...
@overload
def transposed_convolution(
    data: Value | ArrayInput,
    weight: Value | ArrayInput,
    bias: Value | ArrayInput = ...,
    *,
    channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
    use_bias: bool = True,
    name: str | None = None,
) -> Value: ...
@overload
def triangular_solve(
    a: ArrayInput,
    b: ArrayInput,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    unit_diagonal: bool = False,
) -> jax.Array:
    """Solution of a triangular system: ``op(a) @ out = alpha * b``.

    ``op(a)`` is the lower triangle of ``a``, or the upper one without ``lower``, and is transposed
    with ``transpose``. With ``rightside`` the system is ``out @ op(a) = alpha * b``. With
    ``unit_diagonal`` the diagonal is taken as ones. The other entries of ``a`` are not read and
    have no gradient. Leading axes are batch axes and broadcast. A zero on the diagonal gives
    infinities. Complex matrices are transposed without conjugation. Half precision is computed in
    single precision.

    Example:
        >>> import jax.numpy as jnp
        >>> triangular_solve(jnp.asarray([[2.0, 0.0], [1.0, 1.0]]), jnp.asarray([[2.0], [3.0]]))
        Array([[1.],
               [2.]], dtype=float32)
    """
@overload
def triangular_solve(
    a: Value | ArrayInput,
    b: Value | ArrayInput,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    unit_diagonal: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
linalg_trsm = triangular_solve
@overload
def tril(x: ArrayInput, k: int = 0) -> jax.Array:
    """Lower triangles of matrices: ``out[..., i, j] = x[..., i, j]`` if ``j - i <= k``, else 0.

    Entries above the diagonal ``k`` may have any value, including infinities and NaNs.

    Source: Python array API standard 2024.12, ``tril``.

    Example:
        >>> import jax.numpy as jnp
        >>> tril(jnp.asarray([[1, 2], [3, 4]]))
        Array([[1, 0],
               [3, 4]], dtype=int32)
    """
@overload
def tril(x: Value, k: int = 0, *, name: str | None = None) -> Value: ...
@overload
def triu(x: ArrayInput, k: int = 0) -> jax.Array:
    """Upper triangles of matrices: ``out[..., i, j] = x[..., i, j]`` if ``j - i >= k``, else 0.

    Entries below the diagonal ``k`` may have any value, including infinities and NaNs.

    Source: Python array API standard 2024.12, ``triu``.

    Example:
        >>> import jax.numpy as jnp
        >>> triu(jnp.asarray([[1, 2], [3, 4]]))
        Array([[1, 2],
               [0, 4]], dtype=int32)
    """
@overload
def triu(x: Value, k: int = 0, *, name: str | None = None) -> Value: ...
@overload
def trmm(
    a: ArrayInput,
    b: ArrayInput,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
) -> jax.Array:
    """Triangular matrix product: ``alpha * op(a) @ b``, or ``alpha * b @ op(a)`` on the right.

    Only the lower triangle of ``a`` is used, or the upper one without ``lower``: the other entries
    may have any value, and their gradient is zero. ``op`` transposes the triangle if ``transpose``
    is set. Leading axes are batch axes and broadcast.

    Source: Dongarra et al., A set of level 3 basic linear algebra subprograms, ACM TOMS 16, 1990.

    Example:
        >>> import jax.numpy as jnp
        >>> trmm(jnp.asarray([[1.0, 9.0], [2.0, 3.0]]), jnp.asarray([[1.0], [10.0]]))
        Array([[ 1.],
               [32.]], dtype=float32)
    """
@overload
def trmm(
    a: Value | ArrayInput,
    b: Value | ArrayInput,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
linalg_trmm = trmm
@overload
def trunc(x: ArrayInput) -> jax.Array:
    """Truncates ``x`` towards zero, element-wise. Integers are unchanged.

    Example:
        >>> import jax.numpy as jnp
        >>> trunc(jnp.asarray([1.5, -1.5]))
        Array([ 1., -1.], dtype=float32)
    """
@overload
def trunc(x: SelectedRows) -> Any: ...
@overload
def trunc(x: Value, *, name: str | None = None) -> Value: ...
fix = trunc
@overload
def uniform_log_density(x: ArrayInput, low: ArrayInput, high: ArrayInput) -> jax.Array:
    """Log density of the uniform distribution: ``-log(high - low)`` for ``low <= x <= high``.

    For any other ``x`` it is minus infinity. The derivative with respect to ``x`` is zero
    everywhere. Those with respect to ``low`` and ``high`` are ``1 / (high - low)`` and its negative
    inside and at the bounds, and zero outside.

    Example:
        >>> import jax.numpy as jnp
        >>> uniform_log_density(jnp.asarray([0.5, 2.0]), 0.0, 1.0)
        Array([ -0., -inf], dtype=float32)
    """
@overload
def uniform_log_density(
    x: Value | ArrayInput,
    low: Value | ArrayInput,
    high: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def unstack(x: ArrayInput, axis: int = 0) -> tuple[jax.Array, ...]:
    """Splits ``x`` along ``axis`` into arrays without that axis: the inverse of ``stack``.

    The number of results is the length of the axis, at least one. The shape of ``x`` must therefore
    be known when the call is made.

    Example:
        >>> import jax.numpy as jnp
        >>> unstack(jnp.asarray([[1, 2], [3, 4]]), axis=1)
        (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
@overload
def unstack(x: Symbol, axis: int = 0, *, name: str | None = None) -> Symbol: ...
@overload
def unstack(x: Value, axis: int = 0, *, name: str | None = None) -> tuple[Value, ...]: ...
unbind = unstack
@overload
def variance(
    x: ArrayInput,
    axis: int | Sequence[int] | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> jax.Array:
    """Variance ``sum(|x - mean(x)|^2) / (n - correction)`` of ``n`` entries over ``axis``.

    By default the reduction is over all axes. A correction of one gives the unbiased sample
    estimate. The divisor is never below zero, so too few entries give NaN or infinity.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.asarray([1.0, 3.0])
        >>> variance(x), variance(x, correction=1)
        (Array(1., dtype=float32), Array(2., dtype=float32))
    """
@overload
def variance(
    x: Value,
    axis: int | Sequence[int] | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def vecdot(x: ArrayInput, y: ArrayInput, axis: int = -1) -> jax.Array:
    """Inner product of vectors along an axis: ``out = sum over axis of conj(x) * y``.

    The other axes broadcast, and ``axis`` refers to the broadcast shape. ``x`` is conjugated if it
    is complex. The gradients are those of JAX: ``conj(d * y)`` and ``d * conj(x)``.

    Source: Python array API standard 2024.12, ``vecdot``.

    Example:
        >>> import jax.numpy as jnp
        >>> vecdot(jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), jnp.asarray([1.0, 10.0]))
        Array([21., 43.], dtype=float32)
    """
@overload
def vecdot(
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    axis: int = -1,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def warmup_cosine_decay_schedule(
    step: ArrayInput,
    init_value: float,
    peak_value: float,
    warmup_steps: float,
    decay_steps: float,
    end_value: float = 0.0,
    exponent: float = 1.0,
) -> jax.Array:
    """Linear warmup to ``peak_value``, then ``cosine_decay_schedule`` down to ``end_value``.

    The warmup takes ``warmup_steps``; both phases together take ``decay_steps``.

    Example:
        >>> import jax.numpy as jnp
        >>> steps, shape = jnp.asarray([0, 2, 6]), {"warmup_steps": 2, "decay_steps": 6}
        >>> warmup_cosine_decay_schedule(steps, init_value=0.0, peak_value=1.0, **shape)
        Array([0., 1., 0.], dtype=float32)
    """
@overload
def warmup_cosine_decay_schedule(
    step: Value,
    init_value: float,
    peak_value: float,
    warmup_steps: float,
    decay_steps: float,
    end_value: float = 0.0,
    exponent: float = 1.0,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def where(condition: ArrayInput, x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Selects ``x`` where ``condition`` is true (or a nonzero number) and ``y`` elsewhere.

    The branch that is not selected receives a zero gradient. If that branch computes an infinity or
    a NaN on the way, its own derivative turns this zero into a NaN: apply ``where`` to its input,
    too.

    Example:
        >>> import jax.numpy as jnp
        >>> where(jnp.asarray([True, False]), jnp.asarray([1.0, 2.0]), 0.0)
        Array([1., 0.], dtype=float32)
    """
@overload
def where(
    condition: Value | ArrayInput,
    x: Value | ArrayInput,
    y: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def write_steps(cache: ArrayInput, steps: ArrayInput, start: ArrayInput) -> jax.Array:
    """Writes consecutive steps into a cache, for each example at its own place.

    ``cache`` has shape ``(batch, ..., length, width)`` and ``steps``
    ``(batch, ..., count, width)``: ``out[b, ..., start[b] + i, :] = steps[b, ..., i, :]``. A place
    beyond an end is moved to it, as by ``jax.lax.dynamic_update_slice``.

    Example:
        >>> import jax.numpy as jnp
        >>> cache, steps = jnp.zeros((2, 3, 1)), jnp.ones((2, 1, 1))
        >>> write_steps(cache, steps, jnp.asarray([0, 2]))[..., 0]
        Array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
@overload
def write_steps(
    cache: Value | ArrayInput,
    steps: Value | ArrayInput,
    start: Value | ArrayInput,
    *,
    name: str | None = None,
) -> Value: ...
@overload
def xlog1py(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise ``x log(1 + y)``; zero where ``x`` is zero, even at ``y = -1``.

    Example:
        >>> import jax.numpy as jnp
        >>> xlog1py(jnp.asarray([0.0, 2.0]), jnp.asarray([-1.0, 0.0]))
        Array([0., 0.], dtype=float32)
    """
@overload
def xlog1py(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
@overload
def xlogy(x: ArrayInput, y: ArrayInput) -> jax.Array:
    """Element-wise ``x log(y)``; zero where ``x`` is zero, even at ``y = 0``.

    Example:
        >>> import jax.numpy as jnp
        >>> xlogy(jnp.asarray([0.0, 2.0]), jnp.asarray([0.0, 1.0]))
        Array([0., 0.], dtype=float32)
    """
@overload
def xlogy(x: Value | ArrayInput, y: Value | ArrayInput, *, name: str | None = None) -> Value: ...
def zeros(shape: int | Sequence[int], dtype: DTypeLike | None = None) -> jax.Array:
    """An array of zeros, by default in the default floating dtype.

    Source: Python array API standard 2024.12, ``zeros``.

    Example:
        >>> zeros((2, 3))
        Array([[0., 0., 0.],
               [0., 0., 0.]], dtype=float32)
    """
@overload
def zeros_like(x: ArrayInput, dtype: DTypeLike | None = None) -> jax.Array:
    """An array of zeros with the shape of ``x`` and, without ``dtype``, its dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> zeros_like(jnp.asarray([1.0, 2.0]))
        Array([0., 0.], dtype=float32)
    """
@overload
def zeros_like(x: Value, dtype: DTypeLike | None = None, *, name: str | None = None) -> Value: ...
fill_zeros_like = zeros_like
