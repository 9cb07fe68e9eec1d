"""The types of the methods of symbols that differ from those of other values.

``make golden`` writes ``method_types.pyi`` from the registry.
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

class SymbolMethods(Var):
    """Operators with several outputs, which are one symbol."""

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
    ) -> Self:
        """A step of Adadelta, whose length is the root of the mean square of previous steps."""
    def adagrad(
        self,
        grad: Var | ArrayInput,
        moment: Var | ArrayInput,
        learning_rate: Var | ArrayInput,
        eps: float = 1e-07,
        *,
        name: str | None = None,
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
        """A step of Adam with decoupled decay of the parameter by ``learning_rate * weight_decay``."""
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
    ) -> Self:
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
    ) -> Self:
        """Tangents of attention and of its ``logsumexp``, linear in those of its inputs."""
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
    ) -> Self:
        """Returns the outputs of ``body``, whose derivative is that of a rule if one is passed."""
    def clip_by_global_norm(
        self,
        *xs: Var | ArrayLike,
        max_norm: float,
        name: str | None = None,
    ) -> Self:
        """Scales all arrays together if their ``global_norm`` exceeds ``max_norm``."""
    def cond(
        self,
        *operands: Var | ArrayLike,
        true_body: Body,
        false_body: Body,
        use_key: bool = False,
        key: Var | jax.Array = ...,
        training: bool = ...,
        name: str | None = None,
    ) -> Self:
        """Returns the outputs of ``true_body`` if ``pred`` is true or nonzero, else of ``false_body``."""
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
    ) -> Self:
        """Gradient of ``correlation`` with respect to both maps, given the cotangent of its result."""
    def ctc_lattice(
        self,
        logit_lengths: Var | ArrayInput | None = None,
        label_lengths: Var | ArrayInput | None = None,
        *,
        frames: int,
        classes: int,
        blank: int = 0,
        name: str | None = None,
    ) -> Self:
        """The lattice of states through which alignments of ``labels`` to frames run in ``ctc_loss``."""
    def eigh(self, *, name: str | None = None) -> Self:
        """Eigenvalues and eigenvectors of Hermitian matrices: ``x @ vectors = vectors * values``."""
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
    ) -> Self:
        """A step of FTRL-Proximal, whose L1 penalty makes parameters exactly zero."""
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
    ) -> Self:
        """Gated recurrent unit (GRU) layers over whole sequences."""
    def jax_function(
        self,
        *operands: Var | ArrayLike,
        function: Any,
        n_out: int = 1,
        name: str | None = None,
    ) -> Self:
        """Applies a function of JAX as a whole; JAX differentiates it."""
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
    ) -> Self:
        """A step of LAMB: an AdamW step scaled by the norm of the parameter."""
    def lax_primitive(
        self,
        *operands: Var | ArrayLike,
        primitive: str,
        params: str,
        n_out: int = 1,
        keys: Sequence[str] = (),
        name: str | None = None,
    ) -> Self:
        """Applies the primitive of JAX called ``primitive``; JAX differentiates it."""
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
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
        """Adjoint of ``linear_recurrence``: the transposed steps from the last one to the first."""
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
    ) -> Self:
        """Solves ``matvec(c, x) = b`` for ``x`` by ``solve``, whatever its steps are."""
    def lq(self, *, name: str | None = None) -> Self:
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
    ) -> Self:
        """Long short-term memory (LSTM) layers over whole sequences."""
    def meshgrid(
        self,
        *xs: Var | ArrayLike,
        indexing: Literal['xy', 'ij'] = 'xy',
        name: str | None = None,
    ) -> Self:
        """Coordinate arrays of a grid, from the coordinates along each axis."""
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
    ) -> Self:
        """A step of gradient descent with momentum (Polyak 1964) or Nesterov momentum."""
    def nondifferentiable_call(
        self,
        *operands: Var | ArrayLike,
        body: Body,
        training: bool = ...,
        name: str | None = None,
    ) -> Self:
        """Returns the outputs of ``body``, without a derivative."""
    def qr(
        self,
        mode: Literal['reduced', 'complete'] = 'reduced',
        *,
        name: str | None = None,
    ) -> Self:
        """QR decomposition ``x = q @ r`` with ``q^H @ q`` the identity and ``r`` upper triangular."""
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
    ) -> Self:
        """Returns the outputs of ``body``, whose gradient recomputes its residuals."""
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
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
        """Elman recurrent layers over whole sequences."""
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
    ) -> Self:
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
    ) -> Self:
        """Applies ``body`` in the first ``steps`` of ``length`` steps; otherwise like ``scan``."""
    def sequence_expand(
        self,
        x_offsets: Var | ArrayInput,
        offsets: Var | ArrayInput,
        total_length: int,
        n_sequences: int,
        *,
        name: str | None = None,
    ) -> Self:
        """Repeats each sequence of ``x`` as many times as ``offsets`` has steps for it."""
    def sequence_pad(
        self,
        offsets: Var | ArrayInput,
        padded_length: int,
        pad_value: float = 0.0,
        *,
        name: str | None = None,
    ) -> Self:
        """Pads each sequence to a row of ``padded_length`` steps, and returns the lengths."""
    def sequence_slice(
        self,
        offsets: Var | ArrayInput,
        begin: Var | ArrayInput,
        length: Var | ArrayInput,
        total_length: int | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Selects ``length`` steps of each sequence from step ``begin`` on, and returns the offsets."""
    def sequence_unpad(
        self,
        length: Var | ArrayInput,
        total_length: int | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Concatenates the first ``length`` steps of each row, and returns the offsets of the rows."""
    def slogdet(self, *, name: str | None = None) -> Self:
        """Sign and log-absolute value of the determinant: ``det(a) = sign * exp(logabsdet)``."""
    linalg_slogdet = slogdet
    def split(
        self,
        sections: int | Sequence[int],
        axis: int = 0,
        *,
        name: str | None = None,
    ) -> Self:
        """Splits ``x`` along ``axis`` into ``sections`` equal parts or at the given positions."""
    def split_selected_rows(
        self,
        height_sections: Sequence[int],
        *,
        name: str | None = None,
    ) -> Self:
        """Consecutive parts of ``x`` of the given heights, as for tables stored in several places."""
    def stop_gradient(self, *, name: str | None = None) -> Self:
        """Returns ``x`` and stops its gradient: nothing flows back through it."""
    def svd(self, full_matrices: bool = False, *, name: str | None = None) -> Self:
        """Singular value decomposition ``x = (u * s) @ vh``, reduced by default."""
    def topk(
        self,
        k: int,
        axis: int = -1,
        largest: bool = True,
        *,
        name: str | None = None,
    ) -> Self:
        """The ``k`` largest entries of ``x`` along ``axis`` in descending order, and their indices."""
    top_k = topk
    def unstack(self, axis: int = 0, *, name: str | None = None) -> Self:
        """Splits ``x`` along ``axis`` into arrays without that axis: the inverse of ``stack``."""
    unbind = unstack
    def vmap(
        self,
        *operands: Var | ArrayLike,
        body: Body,
        n_mapped: int,
        use_key: bool = False,
        key: Var | jax.Array = ...,
        training: bool = ...,
        name: str | None = None,
    ) -> Self:
        """Applies ``body`` to each slice of the first ``n_mapped`` operands along their first axis."""
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
    ) -> Self:
        """Applies ``body`` to the carries while ``condition`` holds, at most ``max_steps`` times."""
