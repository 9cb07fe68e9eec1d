"""The types of the methods of values: ``method_types.pyi`` lists every operator.

``make golden`` writes that file from the registry. At run time ``Var`` finds the methods by name.
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

class OperatorMethods:
    """Every operator of the catalogue, as a method of its first input."""

    def abs(self, *, name: str | None = None) -> Self:
        """Absolute value, element-wise."""
    absolute = abs
    def accumulate_rows(
        self,
        x: Var | ArrayInput,
        places: int,
        *,
        name: str | None = None,
    ) -> Self:
        """``total + x``, where rows are concatenated in a buffer of ``places`` times the rows of ``x``."""
    def acos(self, *, name: str | None = None) -> Self:
        """Inverse cosine, element-wise: the angle in ``[0, pi]`` whose cosine is ``x``."""
    arccos = acos
    def acosh(self, *, name: str | None = None) -> Self:
        """Inverse hyperbolic cosine: the nonnegative number whose hyperbolic cosine is ``x``."""
    arccosh = acosh
    def adadelta(
        self,
        grad: Var | ArrayInput,
        mean_square: Var | ArrayInput,
        mean_square_step: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        rho: float = 0.9,
        eps: float = 1e-06,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """A step of Adadelta, whose length is the root of the mean square of previous steps."""
    def adagrad(
        self,
        grad: Var | ArrayInput,
        moment: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        eps: float = 1e-07,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """A step of Adagrad: each entry is scaled by the root of the sum of its past squares."""
    def adam(
        self,
        grad: Var | ArrayInput,
        moment1: Var | ArrayInput,
        moment2: Var | ArrayInput,
        step: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        eps_root: float = 0.0,
        nesterov: bool = False,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """A step of Adam; ``step`` is the number of previous steps, zero at the first one."""
    def adamax(
        self,
        grad: Var | ArrayInput,
        moment: Var | ArrayInput,
        norm: Var | ArrayInput,
        step: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """A step of Adamax; ``step`` is the number of previous steps."""
    def adamw(
        self,
        grad: Var | ArrayInput,
        moment1: Var | ArrayInput,
        moment2: Var | ArrayInput,
        step: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        weight_decay: float = 0.0001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        eps_root: float = 0.0,
        nesterov: bool = False,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """A step of Adam with decoupled decay of the parameter by ``learning_rate * weight_decay``."""
    def adaptive_average_pooling(
        self,
        output_size: int | Sequence[int],
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Average pooling to ``output_size`` windows over one to three spatial axes."""
    AdaptiveAvgPooling2D = adaptive_average_pooling
    def adaptive_average_pooling_gradient(
        self,
        shape: Sequence[int],
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Adjoint of ``adaptive_average_pooling``: spreads each mean over its window in ``shape``."""
    def adaptive_max_pooling(
        self,
        output_size: int | Sequence[int],
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Max pooling to ``output_size`` windows over one to three spatial axes."""
    def adaptive_max_pooling_places(
        self,
        output_size: int | Sequence[int],
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Flat positions in ``data`` of the results of ``adaptive_max_pooling``."""
    def add(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise sum of two arrays: ``out = x + y``."""
    add_any = add
    broadcast_add = add
    broadcast_plus = add
    elementwise_add = add
    elemwise_add = add
    def add_decayed_weights(
        self,
        param: Var | ArrayInput,
        weight_decay: float,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """``grad + weight_decay * param``: the gradient with that of an L2 penalty added."""
    def add_n(self, *xs: Var | ArrayLike, name: str | None = None) -> Self:
        """Sum of arrays of the same shape, added from left to right."""
    ElementWiseSum = add_n
    accumulate = add_n
    def add_rows(
        self,
        ids: Var | ArrayInput,
        height: int,
        mode: Literal['fill', 'clip', 'wrap'] = 'fill',
        sparse: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Adds ``values`` to the rows ``ids`` of an array of zeros with ``height`` rows."""
    def alias(self, number: int = 0, *, name: str | None = None) -> Self:
        """Returns ``x`` as a separate value: equal calls are one node unless ``number`` differs."""
    def all(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Whether all entries over ``axis`` are true (nonzero); true if there are none."""
    reduce_all = all
    def any(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Whether any entry over ``axis`` is true (nonzero); false if there are none."""
    reduce_any = any
    def argmax(
        self,
        axis: int | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Index of the largest entry along ``axis``, the first in case of ties; NaN counts as largest."""
    def argmax_mask(
        self,
        axis: int | Sequence[int] | None = None,
        smallest: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """A mask that is true at one entry for each result of ``max``: the first of the largest."""
    def argmin(
        self,
        axis: int | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Index of the smallest entry along ``axis``, the first in case of ties; NaN counts as least."""
    def argsort(
        self,
        axis: int = -1,
        descending: bool = False,
        stable: bool = True,
        *,
        name: str | None = None,
    ) -> Self:
        """Indices that sort the entries of ``x`` along ``axis`` in ascending or descending order."""
    def array_create(
        self,
        *,
        capacity: int,
        shape: Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> Self:
        """Creates an empty tensor array with capacity for ``capacity`` elements, all zeros."""
    create_array = array_create
    def array_length(self, *, name: str | None = None) -> Self:
        """The number of elements of ``array``: one more than the highest index that was written."""
    lod_array_length = array_length
    def array_read(self, index: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Reads the element of ``array`` at ``index``; zeros if out of range or never written."""
    read_from_array = array_read
    def array_stack(self, *, name: str | None = None) -> Self:
        """Stacks all elements of ``array``, up to its capacity; zeros where unwritten."""
    def array_unstack(self, *, name: str | None = None) -> Self:
        """Creates a full tensor array whose elements are the slices of ``x`` along the first axis."""
    def array_write(
        self,
        x: Var | ArrayInput,
        index: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Writes ``x`` to ``array`` at ``index``; the length becomes at least ``index + 1``."""
    write_to_array = array_write
    def asin(self, *, name: str | None = None) -> Self:
        """Inverse sine, element-wise: the angle in ``[-pi/2, pi/2]`` whose sine is ``x``."""
    arcsin = asin
    def asinh(self, *, name: str | None = None) -> Self:
        """Inverse hyperbolic sine, element-wise: the number whose hyperbolic sine is ``x``."""
    arcsinh = asinh
    def atan(self, *, name: str | None = None) -> Self:
        """Inverse tangent, element-wise: the angle in ``[-pi/2, pi/2]`` whose tangent is ``x``."""
    arctan = atan
    def atan2(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Angle in ``[-pi, pi]`` of the point with first coordinate ``y`` and second coordinate ``x``."""
    arctan2 = atan2
    def atanh(self, *, name: str | None = None) -> Self:
        """Inverse hyperbolic tangent, element-wise: the number whose hyperbolic tangent is ``x``."""
    arctanh = atanh
    def attention_factors(
        self,
        shape: Sequence[int],
        dropout: float,
        dtype: DTypeLike = ...,
        *,
        name: str | None = None,
    ) -> Self:
        """Factors of the weights of attention under dropout: zero, or ``1 / (1 - dropout)``."""
    def attention_gradient(
        self,
        keys: Var | ArrayInput,
        values: Var | ArrayInput,
        output: Var | ArrayInput,
        logsumexp: Var | ArrayInput,
        cotangent: Var | ArrayInput,
        logsumexp_cotangent: Var | ArrayInput | None = None,
        mask: Var | ArrayInput | None = None,
        bias: Var | ArrayInput | None = None,
        query_lengths: Var | ArrayInput | None = None,
        key_lengths: Var | ArrayInput | None = None,
        dropout_seed: Var | ArrayInput | None = None,
        scale: float | None = None,
        causal: bool = False,
        window: int | Sequence[int] | None = None,
        dropout: float = 0.0,
        of_bias: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Gradients of attention with respect to query, keys, values and, if ``of_bias``, the bias."""
    def attention_tangent(
        self,
        keys: Var | ArrayInput,
        values: Var | ArrayInput,
        output: Var | ArrayInput,
        logsumexp: Var | ArrayInput,
        query_tangent: Var | ArrayInput | None = None,
        keys_tangent: Var | ArrayInput | None = None,
        values_tangent: Var | ArrayInput | None = None,
        bias_tangent: Var | ArrayInput | None = None,
        mask: Var | ArrayInput | None = None,
        bias: Var | ArrayInput | None = None,
        query_lengths: Var | ArrayInput | None = None,
        key_lengths: Var | ArrayInput | None = None,
        dropout_seed: Var | ArrayInput | None = None,
        scale: float | None = None,
        causal: bool = False,
        window: int | Sequence[int] | None = None,
        dropout: float = 0.0,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """Tangents of attention and of its ``logsumexp``, linear in those of its inputs."""
    def attention_weights(
        self,
        keys: Var | ArrayInput,
        logsumexp: Var | ArrayInput,
        mask: Var | ArrayInput | None = None,
        bias: Var | ArrayInput | None = None,
        query_lengths: Var | ArrayInput | None = None,
        key_lengths: Var | ArrayInput | None = None,
        scale: float | None = None,
        causal: bool = False,
        window: int | Sequence[int] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Weights of attention, ``exp(scores - logsumexp)``: one for each query and key."""
    def average_pooling(
        self,
        kernel: int | Sequence[int] | None = None,
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        global_pool: bool = False,
        count_include_pad: bool = True,
        ceil_mode: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Average pooling: the mean of each window over one to three spatial axes."""
    def average_pooling_gradient(
        self,
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
    ) -> Self:
        """Adjoint of ``average_pooling`` for data of ``shape``: spreads each mean over its window."""
    def band_part(
        self,
        lower: int | None = None,
        upper: int | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Keeps the entries of matrices within a band of diagonals and sets the others to zero."""
    def batch_dot(
        self,
        b: Var | ArrayInput,
        transpose_a: bool = False,
        transpose_b: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Batched matrix product: ``out[n] = a[n] @ b[n]``."""
    bmm = batch_dot
    def batch_norm(
        self,
        gamma: Var | ArrayInput = ...,
        beta: Var | ArrayInput = ...,
        moving_mean: Var | ArrayInput = ...,
        moving_var: Var | ArrayInput = ...,
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
    ) -> Self:
        """Batch normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per channel."""
    def bernoulli_log_density(
        self,
        logits: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Log density of the Bernoulli distribution: ``x log(p) + (1 - x) log(1 - p)``."""
    def bessel_i(self, n: int, *, name: str | None = None) -> Self:
        """Modified Bessel function of the first kind and of integer order ``n``, ``I_n(x)``."""
    def bessel_i0(self, *, name: str | None = None) -> Self:
        """Modified Bessel function of the first kind of order 0, which grows like ``exp(|x|)``."""
    i0 = bessel_i0
    def bessel_i0e(self, *, name: str | None = None) -> Self:
        """Exponentially scaled modified Bessel function of order 0: ``exp(-|x|) bessel_i0(x)``."""
    i0e = bessel_i0e
    def bessel_i1(self, *, name: str | None = None) -> Self:
        """Modified Bessel function of the first kind of order 1: the derivative of ``bessel_i0``."""
    i1 = bessel_i1
    def bessel_i1e(self, *, name: str | None = None) -> Self:
        """Exponentially scaled modified Bessel function of order 1: ``exp(-|x|) bessel_i1(x)``."""
    i1e = bessel_i1e
    def bessel_ie(self, n: int, *, name: str | None = None) -> Self:
        """Exponentially scaled modified Bessel function, ``exp(-|x|) I_n(x)``; zero at infinity."""
    def beta_log_density(
        self,
        a: Var | ArrayInput,
        b: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Log density of the beta distribution: ``(a - 1) log(x) + (b - 1) log(1 - x) - log B(a, b)``."""
    def bilinear_sampler(self, grid: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Samples ``data`` at the points of ``grid`` by bilinear interpolation."""
    BilinearSampler = bilinear_sampler
    def bitwise_and(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Bitwise and of two arrays; for booleans their logical and."""
    def bitwise_invert(self, *, name: str | None = None) -> Self:
        """Inverts each bit of ``x``: ``-x - 1`` for signed integers, logical not for booleans."""
    bitwise_not = bitwise_invert
    invert = bitwise_invert
    def bitwise_left_shift(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Shifts bits to the left: ``x 2^y``. Bits shifted out are lost; ``y`` must not be negative."""
    left_shift = bitwise_left_shift
    shift_left = bitwise_left_shift
    def bitwise_or(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Bitwise or of two arrays; for booleans their logical or."""
    def bitwise_right_shift(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Shifts bits to the right: ``floor(x / 2^y)``. The sign is kept; ``y`` must not be negative."""
    right_shift = bitwise_right_shift
    def bitwise_xor(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Bitwise exclusive or of two arrays; for booleans whether they differ."""
    def boolean_mask(
        self,
        mask: Var | ArrayInput,
        size: int,
        fill_value: float = 0.0,
        axis: int = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """The entries of ``x`` along ``axis`` where ``mask`` is true, in order, ``size`` of them."""
    def broadcast_like(self, like: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Broadcasts ``x`` to the shape of ``like`` by NumPy's rules: axes are aligned at the end."""
    expand_as = broadcast_like
    def broadcast_to(self, shape: int | Sequence[int], *, name: str | None = None) -> Self:
        """Broadcasts ``x`` to ``shape`` by NumPy's rules: axes are aligned at the end."""
    def call(
        self,
        *operands: Var | ArrayLike,
        body: Body,
        jvp: Body | None = None,
        vjp: Body | None = None,
        value: Body | None = None,
        differentiated: bool = False,
        training: bool = ...,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Returns the outputs of ``body``, whose derivative is that of a rule if one is passed."""
    def cast(self, dtype: DTypeLike, *, name: str | None = None) -> Self:
        """Converts the entries of ``x`` to ``dtype``."""
    Cast = cast
    astype = cast
    def cauchy_log_density(
        self,
        loc: Var | ArrayInput,
        scale: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Log density of the Cauchy distribution with median ``loc``."""
    def cbrt(self, *, name: str | None = None) -> Self:
        """Cube root, element-wise; negative for negative ``x``. The derivative at zero is infinite."""
    def ceil(self, *, name: str | None = None) -> Self:
        """Ceiling, element-wise: the least integer that is at least ``x``. Integers are unchanged."""
    def celu(self, alpha: float = 1.0, *, name: str | None = None) -> Self:
        """Continuously differentiable exponential linear unit, element-wise."""
    def chain_sum(
        self,
        *weights: Var | ArrayLike,
        reverse: bool = False,
        name: str | None = None,
    ) -> Self:
        """Sums along chains of states: ``x`` plus weighted results of the step before."""
    def cholesky(self, upper: bool = False, *, name: str | None = None) -> Self:
        """Cholesky factor of a positive definite matrix: lower triangular with ``out @ out^H = a``."""
    linalg_potrf = cholesky
    potrf = cholesky
    def choose(
        self,
        otherwise: Var | ArrayInput,
        *,
        training: bool = ...,
        name: str | None = None,
    ) -> Self:
        """Selects one value in training and another in prediction; only the selected one is computed."""
    def clip(
        self,
        min: Var | ArrayInput | None = None,
        max: Var | ArrayInput | None = None,
        low: float | None = None,
        high: float | None = None,
        ties: Literal['split', 'first', 'last'] = 'first',
        *,
        name: str | None = None,
    ) -> Self:
        """Clips ``x`` to bounds: ``minimum(maximum(x, min), max)``; a bound of None has no effect."""
    clip_by_value = clip
    def clip_by_global_norm(
        self,
        *xs: Var | ArrayLike,
        max_norm: float,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Scales all arrays together if their ``global_norm`` exceeds ``max_norm``."""
    def clip_by_norm(self, max_norm: float, *, name: str | None = None) -> Self:
        """Scales ``x`` to norm ``max_norm`` if its norm is larger: ``x * max_norm / |x|``."""
    def cofactor(
        self,
        factors: Var | ArrayInput,
        permutation: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Cofactors of a matrix: ``(-1)^(i + j)`` times the determinant without row i and column j."""
    def cofactor_change(
        self,
        factors: Var | ArrayInput,
        permutation: Var | ArrayInput,
        direction: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Directional derivative of the cofactors of ``a``."""
    def col2im(
        self,
        output_size: Sequence[int],
        kernel: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
        dilation: int | Sequence[int] = 1,
        *,
        name: str | None = None,
    ) -> Self:
        """Folds columns into images by summing overlapping windows: the adjoint of ``im2col``."""
    def concat(self, *xs: Var | ArrayLike, axis: int = 0, name: str | None = None) -> Self:
        """Concatenates arrays along an existing axis."""
    concatenate = concat
    def cond(
        self,
        *operands: Var | ArrayLike,
        true_body: Body,
        false_body: Body,
        use_key: bool = False,
        key: Var | jax.Array = ...,
        training: bool = ...,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Returns the outputs of ``true_body`` if ``pred`` is true or nonzero, else of ``false_body``."""
    def conj(self, *, name: str | None = None) -> Self:
        """Complex conjugate of ``x``; ``x`` itself if it is real."""
    conjugate = conj
    def constant_schedule(self, value: float, *, name: str | None = None) -> Self:
        """``value`` at every step."""
    def convolution(
        self,
        weight: Var | ArrayInput = ...,
        bias: Var | ArrayInput = ...,
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
    ) -> Self:
        """Convolution (cross-correlation) of ``data`` with ``weight`` over spatial axes, plus ``bias``."""
    def convolution_data_gradient(
        self,
        weight: Var | ArrayInput,
        shape: Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Adjoint of ``convolution`` with respect to data of ``shape``: a transposed convolution."""
    def convolution_weight_gradient(
        self,
        cotangent: Var | ArrayInput,
        shape: Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        weight_layout: Literal['OIW', 'OWI', 'WIO', 'OIHW', 'OHWI', 'HWIO', 'OIDHW', 'ODHWI', 'DHWIO'] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Adjoint of ``convolution`` with respect to a weight of ``shape``."""
    def copysign(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Absolute value of ``x`` with the sign of ``y``, element-wise; zeros of ``y`` have a sign too."""
    def correlation(
        self,
        data2: Var | ArrayInput,
        kernel_size: int = 1,
        max_displacement: int = 1,
        stride1: int = 1,
        stride2: int = 1,
        pad_size: int = 0,
        is_multiply: bool = True,
        *,
        name: str | None = None,
    ) -> Self:
        """Correlation between patches of one feature map and displaced patches of another."""
    Correlation = correlation
    def correlation_gradient(
        self,
        data2: Var | ArrayInput,
        cotangent: Var | ArrayInput,
        kernel_size: int = 1,
        max_displacement: int = 1,
        stride1: int = 1,
        stride2: int = 1,
        pad_size: int = 0,
        is_multiply: bool = True,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """Gradient of ``correlation`` with respect to both maps, given the cotangent of its result."""
    def correlation_tangent(
        self,
        data2: Var | ArrayInput,
        tangent1: Var | ArrayInput,
        tangent2: Var | ArrayInput,
        kernel_size: int = 1,
        max_displacement: int = 1,
        stride1: int = 1,
        stride2: int = 1,
        pad_size: int = 0,
        is_multiply: bool = True,
        *,
        name: str | None = None,
    ) -> Self:
        """Tangent of ``correlation`` for tangents of its maps: the adjoint of ``correlation_gradient``."""
    def cos(self, *, name: str | None = None) -> Self:
        """Cosine of an angle in radians, element-wise."""
    def cosh(self, *, name: str | None = None) -> Self:
        """Hyperbolic cosine, element-wise."""
    def cosine_decay_schedule(
        self,
        init_value: float,
        decay_steps: float,
        alpha: float = 0.0,
        exponent: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Half a cosine wave from ``init_value`` down to ``alpha * init_value``."""
    def cosine_similarity(
        self,
        y: Var | ArrayInput,
        axis: int = -1,
        eps: float = 1e-08,
        *,
        name: str | None = None,
    ) -> Self:
        """Cosine similarity: the cosine of the angle between ``x`` and ``y`` along ``axis``."""
    def count_nonzero(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Number of nonzero entries over ``axis``, in the default integer dtype."""
    def cross(self, y: Var | ArrayInput, axis: int = -1, *, name: str | None = None) -> Self:
        """Cross product of vectors of length 3 along an axis."""
    def ctc_lattice(
        self,
        logit_lengths: Var | ArrayInput | None = None,
        label_lengths: Var | ArrayInput | None = None,
        *,
        frames: int,
        classes: int,
        blank: int = 0,
        name: str | None = None,
    ) -> tuple[Self, Self, Self, Self]:
        """The lattice of states through which alignments of ``labels`` to frames run in ``ctc_loss``."""
    def ctc_loss(
        self,
        labels: Var | ArrayInput,
        logit_lengths: Var | ArrayInput | None = None,
        label_lengths: Var | ArrayInput | None = None,
        blank: int = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """Connectionist temporal classification loss: ``-log`` of the probability of each sequence."""
    def cummax(
        self,
        axis: int | None = None,
        reverse: bool = False,
        ties: Literal['first', 'last'] = 'last',
        *,
        name: str | None = None,
    ) -> Self:
        """Cumulative maximum along ``axis``, which may be omitted if there is only one."""
    def cummin(
        self,
        axis: int | None = None,
        reverse: bool = False,
        ties: Literal['first', 'last'] = 'last',
        *,
        name: str | None = None,
    ) -> Self:
        """Cumulative minimum along ``axis``, which may be omitted if there is only one."""
    def cumprod(
        self,
        axis: int | None = None,
        reverse: bool = False,
        exclusive: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Cumulative product along ``axis``: ``out[i] = x[0] ... x[i]``."""
    cumulative_prod = cumprod
    def cumprod_gradient(
        self,
        *along: Var | ArrayLike,
        axis: int | None = None,
        reverse: bool = False,
        exclusive: bool = False,
        name: str | None = None,
    ) -> Self:
        """Gradient of ``cumprod``, where the first entry of ``along`` is the cotangent of the result."""
    def cumprod_tangent(
        self,
        *along: Var | ArrayLike,
        axis: int | None = None,
        reverse: bool = False,
        exclusive: bool = False,
        name: str | None = None,
    ) -> Self:
        """Mixed derivative of ``cumprod`` along all arrays in ``along``, which have the shape of ``x``."""
    def cumsum(
        self,
        axis: int | None = None,
        reverse: bool = False,
        exclusive: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Cumulative sum along ``axis``: ``out[i] = x[0] + ... + x[i]``."""
    cumulative_sum = cumsum
    def deformable_convolution(
        self,
        offset: Var | ArrayInput,
        weight: Var | ArrayInput = ...,
        bias: Var | ArrayInput = ...,
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
    ) -> Self:
        """Deformable convolution: ``convolution`` plus ``bias`` with taps displaced by ``offset``."""
    def degrees(self, *, name: str | None = None) -> Self:
        """Converts angles from radians to degrees: ``out = 180 x / pi``."""
    rad2deg = degrees
    def depth_to_space(
        self,
        block_size: int,
        layout: Literal['NCHW', 'NHWC'] = 'NCHW',
        mode: Literal['DCR', 'CRD'] = 'DCR',
        *,
        name: str | None = None,
    ) -> Self:
        """Rearranges channels of images into blocks of ``block_size * block_size`` pixels."""
    def det(self, *, name: str | None = None) -> Self:
        """Determinant of a square matrix, or of each matrix of a stack."""
    linalg_det = det
    def diag(self, k: int = 0, *, name: str | None = None) -> Self:
        """Builds a matrix with diagonal ``x``, or extracts the diagonal of the matrix ``x``."""
    def diag_embed(
        self,
        offset: int = 0,
        axis1: int = -2,
        axis2: int = -1,
        lengths: Sequence[int] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Builds matrices with a given diagonal, else zero: ``out[..., i, i + offset] = x[..., i]``."""
    linalg_makediag = diag_embed
    def diagonal(
        self,
        offset: int = 0,
        axis1: int = -2,
        axis2: int = -1,
        *,
        name: str | None = None,
    ) -> Self:
        """Extracts diagonals of matrices: ``out[..., i] = x[..., i, i + offset]``."""
    linalg_extractdiag = diagonal
    def digamma(self, *, name: str | None = None) -> Self:
        """Digamma function: the derivative of ``lgamma``."""
    psi = digamma
    def dirichlet_log_density(self, a: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Log density of the Dirichlet distribution along the last axis."""
    def divide(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise quotient of two arrays: ``out = x / y``. Integers become floating point."""
    broadcast_div = divide
    div = divide
    elementwise_div = divide
    elemwise_div = divide
    true_divide = divide
    def dot(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Dot product over the last axis of ``x`` and the second-to-last (or only) axis of ``y``."""
    def dropout(
        self,
        rate: float = 0.5,
        *,
        key: Var | jax.Array = ...,
        training: bool = ...,
        name: str | None = None,
    ) -> Self:
        """Dropout: in training each entry is zero with probability ``rate``, else scaled up."""
    def dynamic_slice(
        self,
        starts: Var | ArrayInput,
        sizes: Sequence[int],
        *,
        name: str | None = None,
    ) -> Self:
        """Extracts a slice of ``x`` with lengths ``sizes`` that begins at ``starts``."""
    def dynamic_update_slice(
        self,
        update: Var | ArrayInput,
        starts: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Replaces the slice of ``x`` that begins at ``starts`` by ``update``."""
    def eigh(self, *, name: str | None = None) -> tuple[Self, Self]:
        """Eigenvalues and eigenvectors of Hermitian matrices: ``x @ vectors = vectors * values``."""
    def eigvalsh(self, *, name: str | None = None) -> Self:
        """Eigenvalues of a Hermitian matrix, real and in ascending order."""
    def elu(self, alpha: float = 1.0, *, name: str | None = None) -> Self:
        """Exponential linear unit: ``x`` where positive, ``alpha (exp(x) - 1)`` elsewhere."""
    def entr(self, *, name: str | None = None) -> Self:
        """Terms of an entropy: ``-x log(x)``, zero at zero, and minus infinity below zero."""
    def equal(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise truth value of ``x == y``; NaN equals nothing."""
    broadcast_equal = equal
    eq = equal
    def erf(self, *, name: str | None = None) -> Self:
        """Error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t^2)`` from 0 to ``x``."""
    def erfc(self, *, name: str | None = None) -> Self:
        """Complementary error function, element-wise: ``1 - erf(x)``, accurate where that is small."""
    def erfinv(self, *, name: str | None = None) -> Self:
        """Inverse error function: the number whose ``erf`` is ``x``; infinite at -1 and 1."""
    erf_inv = erfinv
    def exp(self, *, name: str | None = None) -> Self:
        """Exponential of ``x``, element-wise."""
    def exp2(self, *, name: str | None = None) -> Self:
        """Exponential with base 2, element-wise: ``2^x``."""
    def expand_dims(self, axis: int | Sequence[int], *, name: str | None = None) -> Self:
        """Inserts axes of length 1 into ``x``; ``axis`` refers to positions in the result."""
    def expm1(self, *, name: str | None = None) -> Self:
        """Element-wise ``exp(x) - 1``, accurate near zero."""
    def exponential_decay(
        self,
        init_value: float,
        transition_steps: float,
        decay_rate: float,
        transition_begin: float = 0.0,
        staircase: bool = False,
        end_value: float | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """``init_value * decay_rate ** (step / transition_steps)``, bounded by ``end_value``."""
    def exponential_log_density(
        self,
        scale: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Log density of the exponential distribution with mean ``scale``: ``-x / scale - log(scale)``."""
    def factored_solve(
        self,
        b: Var | ArrayInput,
        factors: Var | ArrayInput,
        permutation: Var | ArrayInput,
        transpose: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Solution of ``a @ out = b`` or ``a^T @ out = b`` with the LU factors that ``solve`` keeps."""
    def fft(
        self,
        n: int | None = None,
        axis: int = -1,
        norm: Literal['backward', 'ortho', 'forward'] = 'backward',
        *,
        name: str | None = None,
    ) -> Self:
        """Discrete Fourier transform along ``axis``: ``out[k] = sum(x[j] * exp(-2 pi i j k / n))``."""
    def fftn(
        self,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Literal['backward', 'ortho', 'forward'] = 'backward',
        *,
        name: str | None = None,
    ) -> Self:
        """Discrete Fourier transform over ``axes``, by default over all axes."""
    def fftshift(
        self,
        axes: int | Sequence[int] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Shifts the zero-frequency bin of ``x`` to the center, position ``n // 2``."""
    def fill_diagonal(self, value: float = 0.0, *, name: str | None = None) -> Self:
        """Fills the diagonals of square matrices with one number: ``out[i, i] = value``."""
    def flatten(self, *, name: str | None = None) -> Self:
        """Flattens all axes of ``x`` but the first into one: the result has one row per batch entry."""
    Flatten = flatten
    def flip(self, axis: int | Sequence[int] | None = None, *, name: str | None = None) -> Self:
        """Reverses the order of the entries of ``x`` along ``axis``, by default along all axes."""
    reverse = flip
    def float8_matmul(
        self,
        y: Var | ArrayInput,
        x_dtype: DTypeLike = ...,
        y_dtype: DTypeLike = ...,
        d_dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Product of two matrices whose entries are rounded to 8-bit floats; sums are in float32."""
    def float8_restore(
        self,
        rounded: Var | ArrayInput,
        scale: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Value of ``x`` after its rounding to 8 bits, ``rounded * scale``, with the gradient of ``x``."""
    def floor(self, *, name: str | None = None) -> Self:
        """Floor, element-wise: the greatest integer that is at most ``x``. Integers are unchanged."""
    def floor_divide(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise quotient rounded down: ``out = x // y``. Integers stay integers."""
    broadcast_floor_divide = floor_divide
    def ftrl(
        self,
        grad: Var | ArrayInput,
        squared: Var | ArrayInput,
        linear: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        l1: float = 0.0,
        l2: float = 0.0,
        beta: float = 0.0,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """A step of FTRL-Proximal, whose L1 penalty makes parameters exactly zero."""
    def full_like(
        self,
        fill_value: bool | int | float | complex,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """An array filled with one number, with the shape of ``x`` and, without ``dtype``, its dtype."""
    def fully_connected(
        self,
        weight: Var | ArrayInput = ...,
        bias: Var | ArrayInput = ...,
        *,
        units: int,
        use_bias: bool = True,
        flatten: bool = True,
        weight_initial: Any = None,
        bias_initial: Any = None,
        name: str | None = None,
    ) -> Self:
        """Fully connected (dense) layer: ``out = data @ weight.T + bias``."""
    def gamma(self, *, name: str | None = None) -> Self:
        """Gamma function: ``gamma(n + 1) = n!``, and ``gamma(x + 1) = x gamma(x)`` for every ``x``."""
    def gamma_density(
        self,
        x: Var | ArrayInput,
        n: int = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """Density of the gamma distribution, ``x^(a - 1) exp(-x) / Gamma(a)``, for ``x >= 0``."""
    def gamma_draw_slope(self, z: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Derivative of a gamma draw by its parameter: ``dz/da = -P_a(a, z) / f(a, z)``."""
    def gamma_log_density(
        self,
        a: Var | ArrayInput,
        scale: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Log density of the gamma distribution with shape ``a``, for ``x >= 0``."""
    def gather_nd(
        self,
        indices: Var | ArrayInput,
        axis: int = -1,
        fill_value: float | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Gathers entries or slices of ``x`` by their leading coordinates, listed in ``indices``."""
    def gaussian(self, *, name: str | None = None) -> Self:
        """Gaussian, element-wise: ``exp(-x^2)``, zero at infinity together with all its derivatives."""
    def gelu(self, approximate: bool = False, *, name: str | None = None) -> Self:
        """Gaussian error linear unit: ``x Phi(x)`` with the normal distribution function ``Phi``."""
    def gemm(
        self,
        b: Var | ArrayInput,
        c: Var | ArrayInput,
        transpose_a: bool = False,
        transpose_b: bool = False,
        alpha: float = 1.0,
        beta: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Scaled matrix product plus a scaled matrix: ``alpha * op(a) @ op(b) + beta * c``."""
    linalg_gemm = gemm
    def gemm2(
        self,
        b: Var | ArrayInput,
        transpose_a: bool = False,
        transpose_b: bool = False,
        alpha: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Scaled product of two matrices, either optionally transposed: ``alpha * op(a) @ op(b)``."""
    linalg_gemm2 = gemm2
    def get_tensor_from_selected_rows(self, *, name: str | None = None) -> Self:
        """The dense array whose rows ``x`` names, with zeros elsewhere; dense arrays are unchanged."""
    def global_norm(self, *xs: Var | ArrayLike, name: str | None = None) -> Self:
        """The Euclidean norm of all entries of all arrays: the root of the sum of their squares."""
    def gradient_multiplier(self, factor: float, *, name: str | None = None) -> Self:
        """Returns ``x`` and multiplies its gradient by ``factor``."""
    def gradient_reversal(self, scale: float = 1.0, *, name: str | None = None) -> Self:
        """Returns ``x`` and multiplies its gradient by ``-scale``."""
    def greater(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise truth value of ``x > y``."""
    broadcast_greater = greater
    greater_than = greater
    gt = greater
    def greater_equal(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise truth value of ``x >= y``."""
    broadcast_greater_equal = greater_equal
    ge = greater_equal
    def grid_generator(
        self,
        transform_type: Literal['affine', 'warp'] = 'affine',
        target_shape: Sequence[int] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Generates a sampling grid for ``bilinear_sampler`` from an affine map or a flow."""
    GridGenerator = grid_generator
    def group_norm(
        self,
        gamma: Var | ArrayInput = ...,
        beta: Var | ArrayInput = ...,
        *,
        num_groups: int,
        axis: int = 1,
        eps: float = 1e-05,
        use_gamma: bool = True,
        use_beta: bool = True,
        gamma_initial: Any = None,
        beta_initial: Any = None,
        name: str | None = None,
    ) -> Self:
        """Group normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per group."""
    def gru(
        self,
        hidden: Var | ArrayLike | None = None,
        lengths: Var | ArrayLike | None = None,
        *weights: Var | ArrayLike,
        hidden_size: int | None = None,
        num_layers: int = 1,
        bidirectional: bool = False,
        weights_initial: Any = None,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """Gated recurrent unit (GRU) layers over whole sequences."""
    def hard_sigmoid(self, *, name: str | None = None) -> Self:
        """Piecewise linear sigmoid, element-wise: ``min(max(x / 6 + 1/2, 0), 1)``."""
    hardsigmoid = hard_sigmoid
    def hard_swish(self, *, name: str | None = None) -> Self:
        """Piecewise quadratic approximation of ``silu``, element-wise: ``x hard_sigmoid(x)``."""
    hard_silu = hard_swish
    hardswish = hard_swish
    def hard_tanh(self, *, name: str | None = None) -> Self:
        """Piecewise linear tanh: ``min(max(x, -1), 1)``. Its derivative at -1 and 1 is zero."""
    hardtanh = hard_tanh
    def hfft(
        self,
        n: int | None = None,
        axis: int = -1,
        norm: Literal['backward', 'ortho', 'forward'] = 'backward',
        *,
        name: str | None = None,
    ) -> Self:
        """Discrete Fourier transform of Hermitian-symmetric input, ``x[-j] = conj(x[j])``: it is real."""
    def hinge(
        self,
        labels: Var | ArrayInput,
        margin: float = 1.0,
        p: int = 1,
        *,
        name: str | None = None,
    ) -> Self:
        """Hinge loss for labels -1 and 1, element-wise: ``max(0, margin - labels * predictions)^p``."""
    def hot_labels(
        self,
        num_classes: int,
        axis: int = -1,
        *,
        dtype: DTypeLike,
        name: str | None = None,
    ) -> Self:
        """One-hot encoding of labels along the new ``axis``, with labels truncated to integers."""
    def huber(
        self,
        targets: Var | ArrayInput,
        delta: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Huber loss, element-wise: squared error near zero and absolute error far away."""
    huber_loss = huber
    def hypot(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Length of the hypotenuse, element-wise: ``sqrt(x^2 + y^2)``, computed without overflow."""
    broadcast_hypot = hypot
    def identity(self, *, name: str | None = None) -> Self:
        """Identity: ``out = x``."""
    assign = identity
    clone = identity
    positive = identity
    def ifft(
        self,
        n: int | None = None,
        axis: int = -1,
        norm: Literal['backward', 'ortho', 'forward'] = 'backward',
        *,
        name: str | None = None,
    ) -> Self:
        """Inverse of ``fft`` along ``axis``: ``out[j] = sum(x[k] * exp(2 pi i j k / n)) / n``."""
    def ifftn(
        self,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Literal['backward', 'ortho', 'forward'] = 'backward',
        *,
        name: str | None = None,
    ) -> Self:
        """Inverse of ``fftn``: over one axis ``out[j] = sum(x[k] * exp(2 pi i j k / n)) / n``."""
    def ifftshift(
        self,
        axes: int | Sequence[int] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Inverse of ``fftshift``: shifts the center entry to the front."""
    def ihfft(
        self,
        n: int | None = None,
        axis: int = -1,
        norm: Literal['backward', 'ortho', 'forward'] = 'backward',
        *,
        name: str | None = None,
    ) -> Self:
        """Inverse of ``hfft``: the first ``n // 2 + 1`` numbers of the inverse transform of ``x``."""
    def im2col(
        self,
        kernel: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
        dilation: int | Sequence[int] = 1,
        *,
        name: str | None = None,
    ) -> Self:
        """Unfolds images into columns: the entries of a sliding window at each of its positions."""
    def imag(self, *, name: str | None = None) -> Self:
        """Imaginary part of ``x``; zero if ``x`` is real."""
    def incomplete_gamma(
        self,
        x: Var | ArrayInput,
        n: int = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """Regularized lower incomplete gamma function ``P(a, x)``, or its ``n``-th derivative by ``a``."""
    gammainc = incomplete_gamma
    igamma = incomplete_gamma
    def incomplete_gamma_ratio(
        self,
        log_x: Var | ArrayInput,
        n: int = 1,
        *,
        name: str | None = None,
    ) -> Self:
        """Ratio ``P_n(a, x) / (x f(a, x))`` of the ``n``-th derivative by ``a`` to that by ``log x``."""
    def index_add(
        self,
        indices: Var | ArrayInput,
        updates: Var | ArrayInput,
        axis: int = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """Adds ``updates`` to the entries ``indices`` of ``x`` along ``axis``."""
    def index_update(
        self,
        indices: Var | ArrayInput,
        updates: Var | ArrayInput,
        axis: int = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """Replaces the entries ``indices`` of ``x`` along ``axis`` by ``updates``."""
    def instance_norm(
        self,
        gamma: Var | ArrayInput = ...,
        beta: Var | ArrayInput = ...,
        axis: int = 1,
        eps: float = 1e-05,
        use_gamma: bool = True,
        use_beta: bool = True,
        *,
        gamma_initial: Any = None,
        beta_initial: Any = None,
        name: str | None = None,
    ) -> Self:
        """Instance normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` per channel."""
    def integer_power(self, exponent: int, *, name: str | None = None) -> Self:
        """Power with a fixed integer exponent, element-wise, by repeated multiplication."""
    def inv(self, *, name: str | None = None) -> Self:
        """Inverse of a square matrix, or of each matrix of a stack: ``a @ out`` is the identity."""
    inverse = inv
    linalg_inverse = inv
    def inverse_time_decay(
        self,
        init_value: float,
        transition_steps: float,
        decay_rate: float,
        staircase: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """``init_value / (1 + decay_rate * step / transition_steps)``."""
    def irfft(
        self,
        n: int | None = None,
        axis: int = -1,
        norm: Literal['backward', 'ortho', 'forward'] = 'backward',
        *,
        name: str | None = None,
    ) -> Self:
        """Inverse of ``rfft``: the ``n`` real numbers whose first bins are ``x``."""
    def irfftn(
        self,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Literal['backward', 'ortho', 'forward'] = 'backward',
        *,
        name: str | None = None,
    ) -> Self:
        """Inverse of ``rfftn``: the real numbers whose first bins are ``x``."""
    def isfinite(self, *, name: str | None = None) -> Self:
        """Tests whether each entry is finite: neither infinite nor NaN."""
    is_finite = isfinite
    def isinf(self, *, name: str | None = None) -> Self:
        """Tests each entry for positive or negative infinity."""
    def isnan(self, *, name: str | None = None) -> Self:
        """Tests each entry for NaN."""
    def jax_function(
        self,
        *operands: Var | ArrayLike,
        function: Any,
        n_out: int = 1,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Applies a function of JAX as a whole; JAX differentiates it."""
    def join_selected_rows(self, *xs: Var | ArrayLike, name: str | None = None) -> Self:
        """Concatenates ``xs`` along the first axis; the result is row-sparse if all of them are."""
    def keep(self, *others: Var | ArrayLike, name: str | None = None) -> Self:
        """Returns ``x`` and keeps ``others`` reachable in the graph."""
    def khatri_rao(self, *xs: Var | ArrayLike, name: str | None = None) -> Self:
        """Column-wise Kronecker product: ``out[:, j] = kron(x0[:, j], x1[:, j], ...)``."""
    def kl_divergence(
        self,
        targets: Var | ArrayInput,
        axis: int = -1,
        log_target: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Kullback-Leibler divergence for each example: ``sum(p * (log(p) - log_predictions))``."""
    def kron(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Kronecker product: each entry of ``x`` times all of ``y``, arranged in blocks."""
    def l1_loss(self, targets: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Absolute error, element-wise: ``abs(predictions - targets)``; its derivative at zero is zero."""
    l1 = l1_loss
    def l2_normalize(
        self,
        axis: int | Sequence[int] = -1,
        eps: float = 1e-10,
        *,
        name: str | None = None,
    ) -> Self:
        """Normalizes vectors along ``axis`` to length one: ``x / sqrt(sum(|x|^2) + eps)``."""
    def lamb(
        self,
        grad: Var | ArrayInput,
        moment1: Var | ArrayInput,
        moment2: Var | ArrayInput,
        step: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        weight_decay: float = 0.0,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-06,
        eps_root: float = 0.0,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """A step of LAMB: an AdamW step scaled by the norm of the parameter."""
    def laplace_log_density(
        self,
        loc: Var | ArrayInput,
        scale: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Log density of the Laplace distribution: ``-|x - loc| / scale - log(2 scale)``."""
    def lax_primitive(
        self,
        *operands: Var | ArrayLike,
        primitive: str,
        params: str,
        n_out: int = 1,
        keys: Sequence[str] = (),
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Applies the primitive of JAX called ``primitive``; JAX differentiates it."""
    def layer_norm(
        self,
        gamma: Var | ArrayInput = ...,
        beta: Var | ArrayInput = ...,
        axis: int | Sequence[int] = -1,
        eps: float = 1e-05,
        use_gamma: bool = True,
        use_beta: bool = True,
        *,
        gamma_initial: Any = None,
        beta_initial: Any = None,
        name: str | None = None,
    ) -> Self:
        """Layer normalization: ``gamma * (data - mean) / sqrt(variance + eps) + beta`` over ``axis``."""
    LayerNorm = layer_norm
    def leaky_relu(self, slope: float = 0.01, *, name: str | None = None) -> Self:
        """Leaky rectified linear unit: ``x`` where positive, ``slope x`` elsewhere."""
    def length_mask(self, size: int, axis: int = -1, *, name: str | None = None) -> Self:
        """A mask of positions before each end: a new ``axis`` of ``size`` entries, one row per length."""
    def lerp(
        self,
        y: Var | ArrayInput,
        weight: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Linear interpolation from ``x`` to ``y``: ``x + weight (y - x)``."""
    def less(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise truth value of ``x < y``."""
    broadcast_lesser = less
    less_than = less
    lt = less
    def less_equal(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise truth value of ``x <= y``."""
    broadcast_lesser_equal = less_equal
    le = less_equal
    def let_through(self, condition: Var | ArrayInput, *, name: str | None = None) -> Self:
        """``x`` if ``condition`` holds, else zeros; for rows, an array that names no rows."""
    def lgamma(self, *, name: str | None = None) -> Self:
        """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ..."""
    gammaln = lgamma
    def linear_cross_entropy(
        self,
        weight: Var | ArrayInput,
        labels: Var | ArrayInput,
        bias: Var | ArrayInput | None = None,
        smoothing: float = 0.0,
        ignore_label: int | None = None,
        z_loss: float = 0.0,
        soft_cap: float | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Softmax cross-entropy of the scores ``hidden @ weight^T + bias``, which are not stored."""
    def linear_cross_entropy_and_gradient(
        self,
        weight: Var | ArrayInput,
        labels: Var | ArrayInput,
        of_softmax: Var | ArrayInput,
        of_label: Var | ArrayInput,
        of_all: Var | ArrayInput | None = None,
        bias: Var | ArrayInput | None = None,
        smoothing: float = 0.0,
        ignore_label: int | None = None,
        z_loss: float = 0.0,
        soft_cap: float | None = None,
        of_bias: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """The results of ``linear_cross_entropy`` and of its gradient, with each score computed once."""
    def linear_cross_entropy_gradient(
        self,
        weight: Var | ArrayInput,
        labels: Var | ArrayInput,
        logsumexp: Var | ArrayInput,
        of_softmax: Var | ArrayInput,
        of_label: Var | ArrayInput,
        of_all: Var | ArrayInput | None = None,
        bias: Var | ArrayInput | None = None,
        soft_cap: float | None = None,
        of_bias: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Gradients of functions of linear scores ``y`` with respect to hidden, weight and bias."""
    def linear_cross_entropy_tangent(
        self,
        weight: Var | ArrayInput,
        labels: Var | ArrayInput,
        logsumexp: Var | ArrayInput,
        hidden_tangent: Var | ArrayInput | None = None,
        weight_tangent: Var | ArrayInput | None = None,
        bias_tangent: Var | ArrayInput | None = None,
        bias: Var | ArrayInput | None = None,
        soft_cap: float | None = None,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """Sums of the tangents of linear scores: the transpose of the gradient of cross-entropy."""
    def linear_recurrence(
        self,
        slopes: Var | ArrayInput,
        decay: Var | ArrayInput | None = None,
        carry: Var | ArrayInput | None = None,
        projection: Var | ArrayInput | None = None,
        to_gates: Var | ArrayInput | None = None,
        to_cell: Var | ArrayInput | None = None,
        to_out: Var | ArrayInput | None = None,
        reverse: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """Linear recurrence over time that is the tangent of a recurrent layer."""
    def linear_recurrence_adjoint(
        self,
        slopes: Var | ArrayInput,
        decay: Var | ArrayInput | None = None,
        carry: Var | ArrayInput | None = None,
        projection: Var | ArrayInput | None = None,
        to_gates: Var | ArrayInput | None = None,
        to_cell: Var | ArrayInput | None = None,
        to_out: Var | ArrayInput | None = None,
        reverse: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """Adjoint of ``linear_recurrence``: the transposed steps from the last one to the first."""
    def linear_regression_output(
        self,
        label: Var | ArrayInput,
        grad_scale: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Returns ``data``; its gradient is that of a squared error."""
    LinearRegressionOutput = linear_regression_output
    def linear_scan(
        self,
        decay: Var | ArrayInput,
        axis: int | None = None,
        reverse: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """First-order linear recurrence along ``axis``: ``out[i] = decay[i] out[i - 1] + x[i]``."""
    def linear_solve(
        self,
        *operands: Var | ArrayLike,
        lengths: Sequence[int],
        matvec: Body,
        vecmat: Body,
        solve: Body,
        transpose_solve: Body,
        training: bool = ...,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Solves ``matvec(c, x) = b`` for ``x`` by ``solve``, whatever its steps are."""
    def linear_warmup(
        self,
        step: Var | ArrayInput,
        warmup_steps: float,
        start_value: float,
        end_value: float,
        *,
        name: str | None = None,
    ) -> Self:
        """Linear warmup from ``start_value`` to ``end_value`` before any schedule."""
    def local_response_norm(
        self,
        nsize: int,
        alpha: float = 0.0001,
        beta: float = 0.75,
        knorm: float = 2.0,
        axis: int = 1,
        *,
        name: str | None = None,
    ) -> Self:
        """Local response normalization: ``data / (knorm + alpha / nsize * s)^beta``."""
    LRN = local_response_norm
    def log(self, *, name: str | None = None) -> Self:
        """Natural logarithm, element-wise; minus infinity at zero, NaN for negative numbers."""
    def log10(self, *, name: str | None = None) -> Self:
        """Base-10 logarithm, element-wise; minus infinity at zero, NaN for negative numbers."""
    def log1p(self, *, name: str | None = None) -> Self:
        """Element-wise ``log(1 + x)``, accurate near zero."""
    def log2(self, *, name: str | None = None) -> Self:
        """Base-2 logarithm, element-wise; minus infinity at zero, NaN for negative numbers."""
    def log_ndtr(self, *, name: str | None = None) -> Self:
        """Logarithm of ``ndtr``, computed without underflow: about ``-x^2 / 2`` far below zero."""
    def log_sigmoid(self, *, name: str | None = None) -> Self:
        """Logarithm of the sigmoid, element-wise: ``log(sigmoid(x))``, computed without underflow."""
    logsigmoid = log_sigmoid
    def log_softmax(
        self,
        axis: int | Sequence[int] = -1,
        temperature: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Log-softmax: ``log(softmax(x / temperature))`` along ``axis``, without underflow."""
    def log_softmax_with_length(
        self,
        length: Var | ArrayInput,
        axis: int = -1,
        temperature: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Logarithm of ``softmax_with_length(x, length)``, accurate where that underflows."""
    def logaddexp(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Logarithm of the sum of exponentials: ``log(exp(x) + exp(y))``, computed without overflow."""
    def logaddexp2(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Base-2 logarithm of a sum of powers: ``log2(2^x + 2^y)``, computed without overflow."""
    def logcumsumexp(
        self,
        axis: int | None = None,
        reverse: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Cumulative log-sum-exp along ``axis``: ``log(exp(x[0]) + ... + exp(x[i]))``. No overflow."""
    cumlogsumexp = logcumsumexp
    def logical_and(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise logical and of ``x`` and ``y``; any nonzero number counts as true."""
    broadcast_logical_and = logical_and
    def logical_not(self, *, name: str | None = None) -> Self:
        """Element-wise logical not of ``x``; any nonzero number counts as true."""
    def logical_or(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise logical or of ``x`` and ``y``; any nonzero number counts as true."""
    broadcast_logical_or = logical_or
    def logical_xor(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise logical exclusive or of ``x`` and ``y``; any nonzero number counts as true."""
    broadcast_logical_xor = logical_xor
    def logistic_regression_output(
        self,
        label: Var | ArrayInput,
        grad_scale: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Sigmoid of ``data`` with the gradient of the cross-entropy."""
    LogisticRegressionOutput = logistic_regression_output
    def logit(self, *, name: str | None = None) -> Self:
        """Log-odds, the inverse of ``sigmoid``: ``log(x / (1 - x))``, infinite at 0 and 1."""
    def logsumexp(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Logarithm of the sum of exponentials over ``axis``, by default over all axes."""
    def lookup_table(
        self,
        ids: Var | ArrayInput,
        padding_idx: int | None = None,
        sparse: bool = False,
        rows: int | None = None,
        width: int | None = None,
        *,
        table_initial: Any = None,
        name: str | None = None,
    ) -> Self:
        """Rows ``ids`` of ``table``: the embedding of each id."""
    embedding = lookup_table
    def lp_pooling(
        self,
        kernel: int | Sequence[int] | None = None,
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        global_pool: bool = False,
        ceil_mode: bool = False,
        p_value: float = 2.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Power-average pooling: ``sum(|x|^p)^(1/p)`` of each window, with ``p = p_value``."""
    def lq(self, *, name: str | None = None) -> tuple[Self, Self]:
        """LQ decomposition ``x = lower @ q`` with ``q @ q^H`` the identity and ``lower`` triangular."""
    gelqf = lq
    linalg_gelqf = lq
    def lstm(
        self,
        hidden: Var | ArrayLike | None = None,
        cell: Var | ArrayLike | None = None,
        lengths: Var | ArrayLike | None = None,
        *weights: Var | ArrayLike,
        hidden_size: int | None = None,
        num_layers: int = 1,
        bidirectional: bool = False,
        weights_initial: Any = None,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """Long short-term memory (LSTM) layers over whole sequences."""
    def mae_regression_output(
        self,
        label: Var | ArrayInput,
        grad_scale: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Returns ``data``; its gradient is that of an absolute error."""
    MAERegressionOutput = mae_regression_output
    def make_loss(
        self,
        grad_scale: float = 1.0,
        valid_thresh: float = 0.0,
        normalization: Literal['null', 'batch', 'valid'] = 'null',
        *,
        name: str | None = None,
    ) -> Self:
        """Returns ``data`` as a loss: its gradient is ``grad_scale``, whatever the cotangent is."""
    MakeLoss = make_loss
    def masked_log_softmax(
        self,
        mask: Var | ArrayInput,
        axis: int | Sequence[int] = -1,
        temperature: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Logarithm of ``masked_softmax(x, mask)``, accurate where that underflows."""
    def masked_softmax(
        self,
        mask: Var | ArrayInput,
        axis: int | Sequence[int] = -1,
        temperature: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Softmax of ``x / temperature`` over the entries along ``axis`` where ``mask`` is true."""
    def masked_softmin(
        self,
        mask: Var | ArrayInput,
        axis: int | Sequence[int] = -1,
        temperature: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Softmin over the entries where ``mask`` is true: ``masked_softmax(-x, mask)``."""
    def matmul(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Matrix product: ``out[..., i, j] = sum over k of x[..., i, k] * y[..., k, j]``."""
    batch_matmul = matmul
    mm = matmul
    mv = matmul
    def matrix_power(self, n: int, *, name: str | None = None) -> Self:
        """Integer power of a square matrix: ``out = a @ a @ ... @ a`` with ``n`` factors."""
    def max(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        ties: Literal['split', 'all', 'first'] = 'split',
        *,
        name: str | None = None,
    ) -> Self:
        """Maximum of the entries over ``axis``, by default over all axes."""
    amax = max
    max_axis = max
    reduce_max = max
    def max_pooling(
        self,
        kernel: int | Sequence[int] | None = None,
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        global_pool: bool = False,
        ceil_mode: bool = False,
        drops_infinite: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Max pooling: the largest entry of each window over one to three spatial axes."""
    def max_pooling_gradient(
        self,
        cotangent: Var | ArrayInput,
        kernel: int | Sequence[int] | None = None,
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        global_pool: bool = False,
        ceil_mode: bool = False,
        drops_infinite: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Adds ``cotangent`` at the position of the largest entry of each window of ``max_pooling``."""
    def max_pooling_select(
        self,
        tangent: Var | ArrayInput,
        kernel: int | Sequence[int] | None = None,
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int | Sequence[int]] | Literal['same', 'valid'] = 0,
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        global_pool: bool = False,
        ceil_mode: bool = False,
        drops_infinite: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Selects the entry of ``tangent`` where ``max_pooling`` of ``data`` has its maximum."""
    def maximum(
        self,
        y: Var | ArrayInput,
        ties: Literal['split', 'first', 'last'] = 'split',
        *,
        name: str | None = None,
    ) -> Self:
        """Element-wise maximum of two arrays; NaN if either entry is NaN."""
    broadcast_maximum = maximum
    elementwise_max = maximum
    def mean(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Arithmetic mean over ``axis``, by default over all axes; NaN if there are no entries."""
    reduce_mean = mean
    def mean_squared_error(
        self,
        targets: Var | ArrayInput,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Mean squared error ``mean((predictions - targets)^2)`` over ``axis``, by default all axes."""
    mse_loss = mean_squared_error
    def merge_heads(self, *, name: str | None = None) -> Self:
        """Joins the features of attention heads; the inverse of ``split_heads``."""
    def merge_selected_rows(self, *, name: str | None = None) -> Self:
        """The same array with each row named once, in ascending order; dense arrays are unchanged."""
    def meshgrid(
        self,
        *xs: Var | ArrayLike,
        indexing: Literal['xy', 'ij'] = 'xy',
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Coordinate arrays of a grid, from the coordinates along each axis."""
    def min(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        ties: Literal['split', 'all', 'first'] = 'split',
        *,
        name: str | None = None,
    ) -> Self:
        """Minimum of the entries over ``axis``, by default over all axes."""
    amin = min
    min_axis = min
    reduce_min = min
    def minimum(
        self,
        y: Var | ArrayInput,
        ties: Literal['split', 'first', 'last'] = 'split',
        *,
        name: str | None = None,
    ) -> Self:
        """Element-wise minimum of two arrays; NaN if either entry is NaN."""
    broadcast_minimum = minimum
    elementwise_min = minimum
    def minus(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise difference of two arrays of the same shape: ``out = x - y``."""
    def mish(self, *, name: str | None = None) -> Self:
        """Mish, element-wise: ``x tanh(softplus(x))``."""
    def momentum(
        self,
        grad: Var | ArrayInput,
        velocity: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        mu: float = 0.9,
        nesterov: bool = False,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """A step of gradient descent with momentum (Polyak 1964) or Nesterov momentum."""
    def moveaxis(
        self,
        source: int | Sequence[int],
        destination: int | Sequence[int],
        *,
        name: str | None = None,
    ) -> Self:
        """Moves the axes ``source`` of ``x`` to the positions ``destination``; the others keep order."""
    movedim = moveaxis
    def multiply(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise product of two arrays: ``out = x * y``."""
    broadcast_mul = multiply
    elementwise_mul = multiply
    elemwise_mul = multiply
    def nanprod(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Product over ``axis`` that ignores NaNs: a NaN counts as one."""
    def nansum(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Sum over ``axis`` that ignores NaNs: a NaN counts as zero."""
    def natural_exp_decay(
        self,
        init_value: float,
        transition_steps: float,
        decay_rate: float,
        staircase: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """``init_value * exp(-decay_rate * step / transition_steps)``."""
    def ndtr(self, *, name: str | None = None) -> Self:
        """Distribution function of the normal distribution, accurate where it is small."""
    def ndtri(self, *, name: str | None = None) -> Self:
        """Quantile of the normal distribution: the number whose ``ndtr`` is ``x``."""
    def negative(self, *, name: str | None = None) -> Self:
        """Negation, element-wise: ``out = -x``."""
    neg = negative
    def nll(
        self,
        labels: Var | ArrayInput,
        class_weights: Var | ArrayInput | None = None,
        axis: int = -1,
        ignore_label: int | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Negative log likelihood ``-w[c] * log_probabilities[c]`` of each example's class ``c``."""
    def noam_decay(
        self,
        d_model: float,
        warmup_steps: float,
        learning_rate: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Linear warmup, then decay with the root of the steps: the schedule of the Transformer."""
    def nondifferentiable_call(
        self,
        *operands: Var | ArrayLike,
        body: Body,
        training: bool = ...,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Returns the outputs of ``body``, without a derivative."""
    def norm(
        self,
        ord: float = 2.0,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Vector norm ``sum(|x|^ord)^(1 / ord)`` of the entries over ``axis``, by default of all."""
    vector_norm = norm
    def normal_log_density(
        self,
        loc: Var | ArrayInput,
        scale: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Log density of the normal distribution with mean ``loc`` and standard deviation ``scale``."""
    def not_equal(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise truth value of ``x != y``."""
    broadcast_not_equal = not_equal
    ne = not_equal
    def one_hot(
        self,
        num_classes: int,
        axis: int = -1,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """One-hot encoding: one at the position of each id along the new ``axis``, zero elsewhere."""
    def ones_like(self, dtype: DTypeLike | None = None, *, name: str | None = None) -> Self:
        """An array of ones with the shape of ``x`` and, without ``dtype``, its dtype."""
    def outer(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Outer product of two vectors: ``out[i, j] = x[i] * y[j]``."""
    ger = outer
    def pad(
        self,
        pad_width: int | Sequence[Sequence[int]],
        mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap'] = 'constant',
        constant_value: int | float = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """Pads ``x`` with ``pad_width[i] = (before, after)`` entries at the ends of axis ``i``."""
    def pad_slice(
        self,
        shape: Sequence[int],
        begin: Sequence[int],
        step: Sequence[int],
        *,
        name: str | None = None,
    ) -> Self:
        """Writes ``x`` into zeros of ``shape``, starting at ``begin`` with strides ``step``."""
    def permute_dims(
        self,
        axes: Sequence[int] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Permutes the axes of ``x``, by default reversing them: axis ``axes[i]`` becomes axis ``i``."""
    def pick(
        self,
        indices: Var | ArrayInput,
        axis: int = -1,
        keepdims: bool = False,
        mode: Literal['clip', 'wrap'] = 'clip',
        *,
        name: str | None = None,
    ) -> Self:
        """Selects one entry of ``x`` along ``axis`` at each position of the other axes."""
    def piecewise_decay(
        self,
        boundaries: Sequence[int],
        values: Sequence[float],
        *,
        name: str | None = None,
    ) -> Self:
        """A step function: ``values[i]`` from step ``boundaries[i - 1]`` to before ``boundaries[i]``."""
    def pinv(self, rcond: float | None = None, *, name: str | None = None) -> Self:
        """Moore-Penrose pseudoinverse: the matrix of least norm with ``x @ out @ x = x``."""
    pinverse = pinv
    pseudo_inverse = pinv
    def poisson_log_density(self, rate: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Log density of the Poisson distribution: ``x log(rate) - rate - log(x!)``."""
    def polygamma(self, n: int, *, name: str | None = None) -> Self:
        """Polygamma function: the ``n``-th derivative of ``digamma``, for ``n >= 1``."""
    def polynomial_schedule(
        self,
        init_value: float,
        end_value: float,
        transition_steps: float,
        power: float = 1.0,
        transition_begin: float = 0.0,
        *,
        name: str | None = None,
    ) -> Self:
        """From ``init_value`` to ``end_value`` in ``transition_steps``, linearly or by a power law."""
    linear_schedule = polynomial_schedule
    def position_ids(
        self,
        start: Var | ArrayInput | None = None,
        axis: int = 1,
        *,
        name: str | None = None,
    ) -> Self:
        """The number of each position of ``x`` along an axis: ``0, 1, ...``, of shape ``(length,)``."""
    def potri(self, lower: bool = True, *, name: str | None = None) -> Self:
        """Inverse of a matrix from its Cholesky factor ``a``: ``out = (a @ a^H)^-1``."""
    linalg_potri = potri
    def power(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Power, element-wise: ``out = x ** y``; NaN for a negative ``x`` and a non-integer ``y``."""
    broadcast_power = power
    elementwise_pow = power
    integer_pow = power
    pow = power
    def prelu(
        self,
        slope: Var | ArrayInput = ...,
        axis: int = 1,
        *,
        slope_initial: Any = None,
        name: str | None = None,
    ) -> Self:
        """Parametric ReLU: ``x`` where positive, else ``slope x``, with one slope or one per channel."""
    def prod(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Product over ``axis``, by default over all axes; ``keepdims`` keeps the axes with length 1."""
    reduce_prod = prod
    def product_of_others(self, axis: int = -1, *, name: str | None = None) -> Self:
        """Product of all other entries along ``axis``: ``out[i] = prod(x[j] for j != i)``."""
    def product_of_others_tangent(
        self,
        *along: Var | ArrayLike,
        axis: int = -1,
        name: str | None = None,
    ) -> Self:
        """Mixed derivative of ``product_of_others`` along all arrays in ``along``."""
    def qr(
        self,
        mode: Literal['reduced', 'complete'] = 'reduced',
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """QR decomposition ``x = q @ r`` with ``q^H @ q`` the identity and ``r`` upper triangular."""
    def radians(self, *, name: str | None = None) -> Self:
        """Converts angles from degrees to radians: ``out = pi x / 180``."""
    deg2rad = radians
    def random_bernoulli(
        self,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Bernoulli draws: true with probability ``p``, which defaults to 1/2."""
    bernoulli = random_bernoulli
    def random_beta(
        self,
        b: Var | ArrayInput,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Beta draws: numbers between 0 and 1 with density ``x^(a - 1) (1 - x)^(b - 1) / B(a, b)``."""
    def random_categorical(
        self,
        axis: int = -1,
        shape: int | Sequence[int] | None = None,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Categorical draws: class indices with probabilities ``softmax(logits)`` along ``axis``."""
    categorical = random_categorical
    def random_exponential(
        self,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Exponential draws with mean ``scale``, which defaults to 1: ``-scale log(1 - u)``."""
    def random_gamma(
        self,
        scale: Var | ArrayInput | None = None,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Gamma draws: ``scale z``, where ``z`` has the density ``z^(a - 1) exp(-z) / Gamma(a)``."""
    def random_normal(
        self,
        scale: Var | ArrayInput | None = None,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Normal draws: ``loc + scale z`` with ``z`` of mean 0 and standard deviation 1."""
    normal = random_normal
    def random_permutation(
        self,
        axis: int = 0,
        inverse: bool = False,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Permutes the slices of ``x`` along ``axis`` randomly; ``inverse`` undoes it for the same key."""
    permutation = random_permutation
    shuffle = random_permutation
    def random_poisson(
        self,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Poisson draws: numbers of events with mean ``rate``, which defaults to 1."""
    poisson = random_poisson
    def random_truncated_normal(
        self,
        scale: Var | ArrayInput | None = None,
        low: float = -2.0,
        high: float = 2.0,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Truncated normal draws: ``loc + scale z`` with ``low <= z <= high``."""
    truncated_normal = random_truncated_normal
    def random_uniform(
        self,
        high: Var | ArrayInput | None = None,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Uniform draws: ``low + (high - low) u`` with ``u`` uniform in [0, 1)."""
    uniform = random_uniform
    def rcbrt(self, *, name: str | None = None) -> Self:
        """Reciprocal cube root, element-wise: ``1 / cbrt(x)``; infinite at zero."""
    def real(self, *, name: str | None = None) -> Self:
        """Real part of ``x``; ``x`` itself if it is real."""
    def reciprocal(self, *, name: str | None = None) -> Self:
        """Reciprocal, element-wise: ``out = 1 / x``."""
    def recompute(
        self,
        *operands: Var | ArrayLike,
        body: Body,
        saved: Sequence[int] = (),
        lasting: Sequence[int] = (),
        held: Sequence[int] = (),
        after: Sequence[int] = (),
        training: bool = ...,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Returns the outputs of ``body``, whose gradient recomputes its residuals."""
    def rel_entr(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Terms of a relative entropy: ``x log(x / y)`` for positive numbers."""
    def relu(self, *, name: str | None = None) -> Self:
        """Rectified linear unit, element-wise: ``max(x, 0)``. Its derivative at zero is zero."""
    def relu6(self, *, name: str | None = None) -> Self:
        """Rectified linear unit capped at 6: ``min(max(x, 0), 6)``. Its derivative at 0 and 6 is zero."""
    def remainder(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise remainder of floor division: ``out = x % y``, with the sign of ``y``."""
    broadcast_mod = remainder
    elementwise_mod = remainder
    floor_mod = remainder
    mod = remainder
    def repeat(
        self,
        repeats: int | Sequence[int],
        axis: int | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Repeats each entry of ``x`` along ``axis``; the copies of an entry are adjacent."""
    repeat_interleave = repeat
    def reshape_like(self, like: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Reshapes ``x`` in row-major order to the shape of ``like``."""
    view_as = reshape_like
    def resize(
        self,
        size: int | Sequence[int],
        method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
        align_corners: bool = False,
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Resizes one to three spatial axes of ``data`` by interpolation."""
    def resize_gradient(
        self,
        shape: Sequence[int],
        method: Literal['nearest', 'linear', 'bilinear'] = 'linear',
        align_corners: bool = False,
        layout: Literal['NCW', 'NWC', 'NCHW', 'NHWC', 'NCDHW', 'NDHWC'] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Adjoint of ``resize`` for data of ``shape``: spreads each entry to those it depends on."""
    def rfft(
        self,
        n: int | None = None,
        axis: int = -1,
        norm: Literal['backward', 'ortho', 'forward'] = 'backward',
        *,
        name: str | None = None,
    ) -> Self:
        """Discrete Fourier transform of real numbers, without the redundant conjugate bins."""
    def rfftn(
        self,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Literal['backward', 'ortho', 'forward'] = 'backward',
        *,
        name: str | None = None,
    ) -> Self:
        """Discrete Fourier transform of real numbers over ``axes``, without redundant conjugate bins."""
    def rms_norm(
        self,
        gamma: Var | ArrayInput = ...,
        axis: int | Sequence[int] = -1,
        eps: float = 1e-06,
        use_gamma: bool = True,
        *,
        gamma_initial: Any = None,
        name: str | None = None,
    ) -> Self:
        """Root mean square normalization: ``gamma * data / sqrt(mean(data^2) + eps)`` over ``axis``."""
    def rmsprop(
        self,
        grad: Var | ArrayInput,
        mean_square: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        decay: float = 0.9,
        eps: float = 1e-08,
        eps_in_sqrt: bool = True,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """A step of RMSProp: each entry is scaled by the root of the moving average of its squares."""
    def rmsprop_centered(
        self,
        grad: Var | ArrayInput,
        mean_square: Var | ArrayInput,
        mean_grad: Var | ArrayInput,
        velocity: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        mu: float = 0.0,
        nesterov: bool = False,
        decay: float = 0.9,
        eps: float = 1e-08,
        eps_in_sqrt: bool = True,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self, Self]:
        """A step of RMSProp scaled by the standard deviation (Graves 2013), with momentum."""
    def rmsprop_momentum(
        self,
        grad: Var | ArrayInput,
        mean_square: Var | ArrayInput,
        velocity: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        mu: float = 0.9,
        nesterov: bool = False,
        decay: float = 0.9,
        eps: float = 1e-08,
        eps_in_sqrt: bool = True,
        lazy: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """A step of RMSProp with momentum: the scaled gradient of ``rmsprop`` drives a velocity."""
    def rnn(
        self,
        hidden: Var | ArrayLike | None = None,
        lengths: Var | ArrayLike | None = None,
        *weights: Var | ArrayLike,
        hidden_size: int | None = None,
        num_layers: int = 1,
        bidirectional: bool = False,
        activation: Literal['tanh', 'relu'] = 'tanh',
        weights_initial: Any = None,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """Elman recurrent layers over whole sequences."""
    def roi_align(
        self,
        rois: Var | ArrayInput,
        pooled_size: Sequence[int],
        spatial_scale: float = 1.0,
        sample_ratio: int = 2,
        position_sensitive: bool = False,
        aligned: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Region of interest alignment: the mean of bilinear samples in each bin of each region."""
    def roi_pooling(
        self,
        rois: Var | ArrayInput,
        pooled_size: Sequence[int],
        spatial_scale: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Region of interest pooling: the largest entry of each bin of each region."""
    ROIPooling = roi_pooling
    def roll(
        self,
        shift: int | Sequence[int],
        axis: int | Sequence[int] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Rolls ``x`` by ``shift`` places; entries that leave at one end reappear at the other."""
    def rotary_embedding(
        self,
        start: Var | ArrayInput | None = None,
        base: float = 10000.0,
        inverse: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Rotates pairs of features by angles that grow with the position."""
    def round(self, decimals: int = 0, *, name: str | None = None) -> Self:
        """Rounds to the given number of ``decimals``, with halves to even."""
    around = round
    rint = round
    def round_straight_through(self, *, name: str | None = None) -> Self:
        """Rounds to the nearest integer, halves to even, with the gradient of the identity."""
    round_ste = round_straight_through
    def rsqrt(self, *, name: str | None = None) -> Self:
        """Reciprocal square root: ``1 / sqrt(x)``; infinite at zero, NaN for negative numbers."""
    def scale(self, scale: float, *, name: str | None = None) -> Self:
        """Product with a constant number: ``out = scale * x``."""
    def scale_paired_bins(
        self,
        n: int,
        factor: float,
        axis: int = -1,
        *,
        name: str | None = None,
    ) -> Self:
        """Multiplies by ``factor`` the bins of ``rfft`` that represent two bins of ``fft``."""
    def scaled_dot_product_attention(
        self,
        keys: Var | ArrayInput,
        values: Var | ArrayInput,
        mask: Var | ArrayInput | None = None,
        bias: Var | ArrayInput | None = None,
        query_lengths: Var | ArrayInput | None = None,
        key_lengths: Var | ArrayInput | None = None,
        dropout_seed: Var | ArrayInput | None = None,
        scale: float | None = None,
        causal: bool = False,
        window: int | Sequence[int] | None = None,
        dropout: float = 0.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Scaled dot-product attention per head: ``softmax(scale * query @ keys^T + bias) @ values``."""
    def scan(
        self,
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
    ) -> tuple[Self, ...]:
        """Applies ``body`` step by step, ``length`` times."""
    def scan_prefix(
        self,
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
    ) -> tuple[Self, ...]:
        """Applies ``body`` in the first ``steps`` of ``length`` steps; otherwise like ``scan``."""
    def scatter_add(
        self,
        indices: Var | ArrayInput,
        updates: Var | ArrayInput,
        axis: int = -1,
        *,
        name: str | None = None,
    ) -> Self:
        """Adds ``updates`` to the entries ``indices`` of ``x`` along ``axis``."""
    def scatter_nd(
        self,
        indices: Var | ArrayInput,
        shape: int | Sequence[int],
        axis: int = -1,
        *,
        name: str | None = None,
    ) -> Self:
        """Adds ``updates`` to an array of zeros of ``shape`` at the coordinates ``indices``."""
    def searchsorted(
        self,
        values: Var | ArrayInput,
        side: Literal['left', 'right'] = 'left',
        *,
        name: str | None = None,
    ) -> Self:
        """Indices at which ``values`` would be inserted into ``sorted`` to keep it in order."""
    def selu(self, *, name: str | None = None) -> Self:
        """Scaled exponential linear unit, element-wise: ``1.0507 elu(x, alpha=1.67326)``."""
    def sequence_argmax(self, offsets: Var | ArrayInput, *, name: str | None = None) -> Self:
        """The step of ``x`` with the first of the largest entries of each sequence."""
    def sequence_context(
        self,
        offsets: Var | ArrayInput,
        context_length: int,
        context_start: int | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """The context window of each step in its sequence, along a new second axis."""
    def sequence_context_adjoint(
        self,
        offsets: Var | ArrayInput,
        context_start: int,
        *,
        name: str | None = None,
    ) -> Self:
        """The adjoint of ``sequence_context``: for each step, the sum of its copies in ``contexts``."""
    def sequence_conv(
        self,
        offsets: Var | ArrayInput,
        weight: Var | ArrayInput = ...,
        *,
        channels: int,
        context_length: int = 3,
        context_start: int | None = None,
        weight_initial: Any = None,
        name: str | None = None,
    ) -> Self:
        """Convolution over the steps of each sequence: ``out = context @ weight``."""
    def sequence_expand(
        self,
        x_offsets: Var | ArrayInput,
        offsets: Var | ArrayInput,
        total_length: int,
        n_sequences: int,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """Repeats each sequence of ``x`` as many times as ``offsets`` has steps for it."""
    def sequence_expand_as(
        self,
        offsets: Var | ArrayInput,
        total_length: int,
        *,
        name: str | None = None,
    ) -> Self:
        """Repeats each row of ``x`` for every step of its sequence."""
    def sequence_ids(self, total_length: int, *, name: str | None = None) -> Self:
        """The index of the sequence that each of ``total_length`` steps belongs to."""
    def sequence_last(
        self,
        sequence_length: Var | ArrayInput | None = None,
        axis: int = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """The last step of each sequence in ``data``."""
    def sequence_lengths(self, *, name: str | None = None) -> Self:
        """The length of each sequence: ``offsets[s + 1] - offsets[s]``, of dtype int32."""
    def sequence_mask(
        self,
        sequence_length: Var | ArrayInput | None = None,
        value: float = 0.0,
        axis: int = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """Replaces the entries of ``data`` after the end of each sequence by ``value``."""
    def sequence_offsets(self, *, name: str | None = None) -> Self:
        """The offsets of consecutive sequences of the given lengths."""
    def sequence_pad(
        self,
        offsets: Var | ArrayInput,
        padded_length: int,
        pad_value: float = 0.0,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """Pads each sequence to a row of ``padded_length`` steps, and returns the lengths."""
    def sequence_pool(
        self,
        offsets: Var | ArrayInput,
        pool: Literal['sum', 'mean', 'sqrt', 'max', 'first', 'last'] = 'sum',
        pad_value: float = 0.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Reduces the steps of each sequence to one row by ``pool``; ``pad_value`` for empty sequences."""
    def sequence_reverse(
        self,
        sequence_length: Var | ArrayInput | None = None,
        offsets: Var | ArrayInput | None = None,
        axis: int = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """Reverses the steps of each sequence of ``data``; entries after its end are unchanged."""
    def sequence_slice(
        self,
        offsets: Var | ArrayInput,
        begin: Var | ArrayInput,
        length: Var | ArrayInput,
        total_length: int | None = None,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """Selects ``length`` steps of each sequence from step ``begin`` on, and returns the offsets."""
    def sequence_softmax(self, offsets: Var | ArrayInput, *, name: str | None = None) -> Self:
        """The softmax over the steps of each sequence, separately for each entry of a step."""
    def sequence_unpad(
        self,
        length: Var | ArrayInput,
        total_length: int | None = None,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """Concatenates the first ``length`` steps of each row, and returns the offsets of the rows."""
    def sgd(
        self,
        grad: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """A step of gradient descent: ``new_param = param - learning_rate * grad``."""
    def shard(self, sharding: Any, *, name: str | None = None) -> Self:
        """Returns ``x``, split over the devices of the current mesh."""
    def sigmoid(self, *, name: str | None = None) -> Self:
        """Logistic sigmoid, element-wise: ``1 / (1 + exp(-x))``, computed without overflow."""
    expit = sigmoid
    logistic = sigmoid
    def sigmoid_cross_entropy(
        self,
        labels: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Sigmoid cross-entropy ``-p log(sigmoid(x)) - (1 - p) log(1 - sigmoid(x))``, element-wise."""
    sigmoid_binary_cross_entropy = sigmoid_cross_entropy
    sigmoid_cross_entropy_with_logits = sigmoid_cross_entropy
    def sign(self, *, name: str | None = None) -> Self:
        """Sign of each entry: -1, 0 or 1 for real numbers, ``x / |x|`` or 0 for complex numbers."""
    sgn = sign
    def sign_straight_through(self, *, name: str | None = None) -> Self:
        """Sign of each entry, -1, 0 or 1, with the gradient of the identity."""
    sign_ste = sign_straight_through
    def silu(self, *, name: str | None = None) -> Self:
        """Sigmoid-weighted linear unit, element-wise: ``x sigmoid(x)``."""
    swish = silu
    def sin(self, *, name: str | None = None) -> Self:
        """Sine of an angle in radians, element-wise."""
    def sinc(self, n: int = 0, *, name: str | None = None) -> Self:
        """Normalized sinc function ``sin(pi x) / (pi x)``, one at zero, or its ``n``-th derivative."""
    def sinh(self, *, name: str | None = None) -> Self:
        """Hyperbolic sine, element-wise."""
    def slice(
        self,
        begin: Sequence[int | None],
        end: Sequence[int | None],
        step: Sequence[int | None] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Slices ``x`` as ``x[begin[0]:end[0]:step[0], ...]`` by Python's rules, for positive steps."""
    def slice_axis(
        self,
        axis: int,
        begin: int,
        end: int | None,
        *,
        name: str | None = None,
    ) -> Self:
        """Slices ``x`` along one axis, ``x[..., begin:end, ...]``, by Python's rules; None is the end."""
    def slice_like(
        self,
        like: Var | ArrayInput,
        axes: Sequence[int] = (),
        *,
        name: str | None = None,
    ) -> Self:
        """Slices ``x`` to the lengths that ``like`` has along ``axes``, by default along all axes."""
    def slogdet(self, *, name: str | None = None) -> tuple[Self, Self]:
        """Sign and log-absolute value of the determinant: ``det(a) = sign * exp(logabsdet)``."""
    linalg_slogdet = slogdet
    def smooth_l1(self, scalar: float = 1.0, *, name: str | None = None) -> Self:
        """Smooth L1 loss, element-wise: the absolute value with a rounded corner at zero."""
    def softmax(
        self,
        axis: int | Sequence[int] = -1,
        temperature: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Softmax along ``axis``: ``exp(x / T) / sum(exp(x / T))``, positive numbers that sum to one."""
    def softmax_cross_entropy(
        self,
        labels: Var | ArrayInput,
        class_weights: Var | ArrayInput | None = None,
        axis: int = -1,
        smoothing: float = 0.0,
        ignore_label: int | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Softmax cross-entropy for each example: ``-sum(w * p * log_softmax(logits))`` along ``axis``."""
    softmax_cross_entropy_with_integer_labels = softmax_cross_entropy
    def softmax_output(
        self,
        label: Var | ArrayInput,
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
    ) -> Self:
        """Softmax along the classes, with the gradient of the cross-entropy: ``softmax(data) - p``."""
    SoftmaxOutput = softmax_output
    def softmax_with_length(
        self,
        length: Var | ArrayInput,
        axis: int = -1,
        temperature: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Softmax of ``x / temperature`` over the first ``length`` entries along ``axis``."""
    def softmin(
        self,
        axis: int | Sequence[int] = -1,
        temperature: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """``softmax(-x / temperature)`` along ``axis``: the smallest entry has the largest share."""
    def softmin_with_length(
        self,
        length: Var | ArrayInput,
        axis: int = -1,
        temperature: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Softmin over the first ``length`` entries: ``softmax_with_length(-x, length)``."""
    def softplus(self, *, name: str | None = None) -> Self:
        """Softplus, element-wise: ``log(1 + exp(x))``, computed without overflow."""
    def softsign(self, *, name: str | None = None) -> Self:
        """Softsign, element-wise: ``x / (1 + |x|)``."""
    soft_sign = softsign
    def solve(self, b: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Solution of a linear system: ``a @ out = b``."""
    def sort(
        self,
        axis: int = -1,
        descending: bool = False,
        stable: bool = True,
        *,
        name: str | None = None,
    ) -> Self:
        """Sorts the entries of ``x`` along ``axis`` in ascending or descending order."""
    def space_to_depth(
        self,
        block_size: int,
        layout: Literal['NCHW', 'NHWC'] = 'NCHW',
        mode: Literal['DCR', 'CRD'] = 'DCR',
        *,
        name: str | None = None,
    ) -> Self:
        """Rearranges blocks of ``block_size * block_size`` pixels of images into channels."""
    def spatial_transformer(
        self,
        loc: Var | ArrayInput,
        target_shape: Sequence[int],
        *,
        name: str | None = None,
    ) -> Self:
        """Samples ``data`` on a grid of ``target_shape`` transformed by the affine maps ``loc``."""
    def split(
        self,
        sections: int | Sequence[int],
        axis: int = 0,
        *,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Splits ``x`` along ``axis`` into ``sections`` equal parts or at the given positions."""
    def split_heads(self, heads: int, *, name: str | None = None) -> Self:
        """Splits the features of each position into attention heads."""
    def split_selected_rows(
        self,
        height_sections: Sequence[int],
        *,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Consecutive parts of ``x`` of the given heights, as for tables stored in several places."""
    def sqrt(self, *, name: str | None = None) -> Self:
        """Square root, element-wise; NaN for negative numbers. The derivative at zero is infinite."""
    def square(self, *, name: str | None = None) -> Self:
        """Square, element-wise: ``out = x * x``."""
    def squared_difference(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Squared difference of two arrays, element-wise: ``(x - y)^2``."""
    square_error_cost = squared_difference
    def squeeze(
        self,
        axis: int | Sequence[int] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Removes axes of length 1 from ``x``: those named, or all of them."""
    def stack(self, *xs: Var | ArrayLike, axis: int = 0, name: str | None = None) -> Self:
        """Joins arrays of the same shape along a new axis; ``axis`` refers to the result."""
    def std(
        self,
        axis: int | Sequence[int] | None = None,
        correction: float = 0.0,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Standard deviation ``sqrt(sum(|x - mean(x)|^2) / (n - correction))`` over ``axis``."""
    def stochastic_round(
        self,
        dtype: DTypeLike = ...,
        *,
        key: Var | jax.Array = ...,
        name: str | None = None,
    ) -> Self:
        """Rounds to one of the two neighbors in ``dtype``, at random, so that the expectation is ``x``."""
    def BlockGrad(self, *, name: str | None = None) -> Self:
        """Returns ``x`` and stops its gradient: nothing flows back through it."""
    block_grad = BlockGrad
    detach = BlockGrad
    def student_t_log_density(
        self,
        df: Var | ArrayInput,
        loc: Var | ArrayInput,
        scale: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Log density of Student's t distribution with ``df`` degrees of freedom."""
    def subtract(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise difference of two arrays: ``out = x - y``."""
    broadcast_minus = subtract
    broadcast_sub = subtract
    elementwise_sub = subtract
    elemwise_sub = subtract
    sub = subtract
    def sum(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Sum over ``axis``, by default over all axes; ``keepdims`` keeps the axes with length 1."""
    reduce_sum = sum
    sum_along = sum
    sum_axis = sum
    def sum_to(self, shape: int | Sequence[int], *, name: str | None = None) -> Self:
        """Sums ``x`` over the axes that broadcasting from ``shape`` adds or stretches."""
    def sumlogdiag(self, *, name: str | None = None) -> Self:
        """Sum of the logarithms of the diagonal: half the ``log det`` of a matrix with factor ``a``."""
    linalg_sumlogdiag = sumlogdiag
    def svd(
        self,
        full_matrices: bool = False,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self, Self]:
        """Singular value decomposition ``x = (u * s) @ vh``, reduced by default."""
    def svdvals(self, *, name: str | None = None) -> Self:
        """Singular values of a matrix, in descending order."""
    def svm_output(
        self,
        label: Var | ArrayInput,
        margin: float = 1.0,
        regularization_coefficient: float = 1.0,
        use_linear: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Returns ``data``; its gradient is that of a multi-class hinge loss."""
    SVMOutput = svm_output
    def swapaxes(self, axis1: int, axis2: int, *, name: str | None = None) -> Self:
        """Interchanges the axes ``axis1`` and ``axis2`` of ``x``."""
    def syrk(
        self,
        transpose: bool = False,
        alpha: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Symmetric rank-k product: ``alpha * a @ a^T``, or ``alpha * a^T @ a`` with ``transpose``."""
    linalg_syrk = syrk
    def take(
        self,
        ids: Var | ArrayInput,
        axis: int = 0,
        mode: Literal['fill', 'clip', 'wrap'] = 'fill',
        fill_value: float | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Selects the entries ``ids`` of ``x`` along ``axis``; the axes of ``ids`` replace that axis."""
    gather = take
    def take_along_axis(
        self,
        indices: Var | ArrayInput,
        axis: int = -1,
        fill_value: float | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Selects entries of ``x`` along ``axis`` by an array of indices with the same axes."""
    index_sample = take_along_axis
    def tan(self, *, name: str | None = None) -> Self:
        """Tangent of an angle in radians, element-wise."""
    def tanh(self, *, name: str | None = None) -> Self:
        """Hyperbolic tangent, element-wise."""
    def tensordot(
        self,
        y: Var | ArrayInput,
        axes: int | Sequence[int | Sequence[int]] = 2,
        *,
        name: str | None = None,
    ) -> Self:
        """Tensor contraction: the sum of products over given axes of both arrays."""
    def tile(self, repetitions: int | Sequence[int], *, name: str | None = None) -> Self:
        """Tiles ``x``, repeating it ``repetitions[i]`` times along axis ``i``."""
    def topk(
        self,
        k: int,
        axis: int = -1,
        largest: bool = True,
        *,
        name: str | None = None,
    ) -> tuple[Self, Self]:
        """The ``k`` largest entries of ``x`` along ``axis`` in descending order, and their indices."""
    top_k = topk
    def trace(
        self,
        offset: int = 0,
        axis1: int = -2,
        axis2: int = -1,
        *,
        name: str | None = None,
    ) -> Self:
        """Sums of the diagonals of matrices: ``out[...] = sum over i of x[..., i, i + offset]``."""
    def transposed_convolution(
        self,
        weight: Var | ArrayInput = ...,
        bias: Var | ArrayInput = ...,
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
    ) -> Self:
        """Transposed convolution: the adjoint of ``convolution`` with respect to data, plus ``bias``."""
    def triangular_solve(
        self,
        b: Var | ArrayInput,
        transpose: bool = False,
        rightside: bool = False,
        lower: bool = True,
        alpha: float = 1.0,
        unit_diagonal: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Solution of a triangular system: ``op(a) @ out = alpha * b``."""
    linalg_trsm = triangular_solve
    def tril(self, k: int = 0, *, name: str | None = None) -> Self:
        """Lower triangles of matrices: ``out[..., i, j] = x[..., i, j]`` if ``j - i <= k``, else 0."""
    def triu(self, k: int = 0, *, name: str | None = None) -> Self:
        """Upper triangles of matrices: ``out[..., i, j] = x[..., i, j]`` if ``j - i >= k``, else 0."""
    def trmm(
        self,
        b: Var | ArrayInput,
        transpose: bool = False,
        rightside: bool = False,
        lower: bool = True,
        alpha: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Triangular matrix product: ``alpha * op(a) @ b``, or ``alpha * b @ op(a)`` on the right."""
    linalg_trmm = trmm
    def trunc(self, *, name: str | None = None) -> Self:
        """Truncates ``x`` towards zero, element-wise. Integers are unchanged."""
    fix = trunc
    def uniform_log_density(
        self,
        low: Var | ArrayInput,
        high: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Log density of the uniform distribution: ``-log(high - low)`` for ``low <= x <= high``."""
    def unstack(self, axis: int = 0, *, name: str | None = None) -> tuple[Self, ...]:
        """Splits ``x`` along ``axis`` into arrays without that axis: the inverse of ``stack``."""
    unbind = unstack
    def variance(
        self,
        axis: int | Sequence[int] | None = None,
        correction: float = 0.0,
        keepdims: bool = False,
        *,
        name: str | None = None,
    ) -> Self:
        """Variance ``sum(|x - mean(x)|^2) / (n - correction)`` of ``n`` entries over ``axis``."""
    def vecdot(self, y: Var | ArrayInput, axis: int = -1, *, name: str | None = None) -> Self:
        """Inner product of vectors along an axis: ``out = sum over axis of conj(x) * y``."""
    def vmap(
        self,
        *operands: Var | ArrayLike,
        body: Body,
        n_mapped: int,
        use_key: bool = False,
        key: Var | jax.Array = ...,
        training: bool = ...,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Applies ``body`` to each slice of the first ``n_mapped`` operands along their first axis."""
    def warmup_cosine_decay_schedule(
        self,
        init_value: float,
        peak_value: float,
        warmup_steps: float,
        decay_steps: float,
        end_value: float = 0.0,
        exponent: float = 1.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Linear warmup to ``peak_value``, then ``cosine_decay_schedule`` down to ``end_value``."""
    def where(
        self,
        x: Var | ArrayInput,
        y: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Selects ``x`` where ``condition`` is true (or a nonzero number) and ``y`` elsewhere."""
    def while_loop(
        self,
        *operands: Var | ArrayLike,
        condition: Body,
        body: Body,
        n_carry: int,
        max_steps: int | None = None,
        use_key: bool = False,
        key: Var | jax.Array = ...,
        training: bool = ...,
        name: str | None = None,
    ) -> tuple[Self, ...]:
        """Applies ``body`` to the carries while ``condition`` holds, at most ``max_steps`` times."""
    def write_steps(
        self,
        steps: Var | ArrayInput,
        start: Var | ArrayInput,
        *,
        name: str | None = None,
    ) -> Self:
        """Writes consecutive steps into a cache, for each example at its own place."""
    def xlog1py(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise ``x log(1 + y)``; zero where ``x`` is zero, even at ``y = -1``."""
    def xlogy(self, y: Var | ArrayInput, *, name: str | None = None) -> Self:
        """Element-wise ``x log(y)``; zero where ``x`` is zero, even at ``y = 0``."""
    def zeros_like(self, dtype: DTypeLike | None = None, *, name: str | None = None) -> Self:
        """An array of zeros with the shape of ``x`` and, without ``dtype``, its dtype."""
    fill_zeros_like = zeros_like
