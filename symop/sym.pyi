"""``so.sym``: the operators of ``so.*`` in the namespace that MXNet users know."""

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
from symop.symbol.building import Group as Group
from symop.symbol.building import var as var
from symop.symbol.symbol import Symbol as Symbol
from symop import abs as abs
from symop import absolute as absolute
from symop import accumulate_rows as accumulate_rows
from symop import acos as acos
from symop import arccos as arccos
from symop import acosh as acosh
from symop import arccosh as arccosh
from symop import adadelta as adadelta
from symop import adagrad as adagrad
from symop import adam as adam
from symop import adamax as adamax
from symop import adamw as adamw
from symop import adaptive_average_pooling as adaptive_average_pooling
from symop import AdaptiveAvgPooling2D as AdaptiveAvgPooling2D
from symop import adaptive_average_pooling_gradient as adaptive_average_pooling_gradient
from symop import adaptive_max_pooling as adaptive_max_pooling
from symop import adaptive_max_pooling_places as adaptive_max_pooling_places
from symop import add as add
from symop import add_any as add_any
from symop import broadcast_add as broadcast_add
from symop import broadcast_plus as broadcast_plus
from symop import elementwise_add as elementwise_add
from symop import elemwise_add as elemwise_add
from symop import add_decayed_weights as add_decayed_weights
from symop import add_n as add_n
from symop import ElementWiseSum as ElementWiseSum
from symop import accumulate as accumulate
from symop import add_rows as add_rows
from symop import alias as alias
from symop import all as all
from symop import reduce_all as reduce_all
from symop import any as any
from symop import reduce_any as reduce_any
from symop import argmax as argmax
from symop import argmax_mask as argmax_mask
from symop import argmin as argmin
from symop import argsort as argsort
from symop import array_length as array_length
from symop import lod_array_length as lod_array_length
from symop import array_read as array_read
from symop import read_from_array as read_from_array
from symop import array_stack as array_stack
from symop import array_unstack as array_unstack
from symop import array_write as array_write
from symop import write_to_array as write_to_array
from symop import asin as asin
from symop import arcsin as arcsin
from symop import asinh as asinh
from symop import arcsinh as arcsinh
from symop import atan as atan
from symop import arctan as arctan
from symop import atan2 as atan2
from symop import arctan2 as arctan2
from symop import atanh as atanh
from symop import arctanh as arctanh
from symop import attention_factors as attention_factors
from symop import attention_gradient as attention_gradient
from symop import attention_tangent as attention_tangent
from symop import attention_weights as attention_weights
from symop import average_pooling as average_pooling
from symop import average_pooling_gradient as average_pooling_gradient
from symop import band_part as band_part
from symop import batch_dot as batch_dot
from symop import bmm as bmm
from symop import batch_norm as batch_norm
from symop import bernoulli_log_density as bernoulli_log_density
from symop import bessel_i as bessel_i
from symop import bessel_i0 as bessel_i0
from symop import i0 as i0
from symop import bessel_i0e as bessel_i0e
from symop import i0e as i0e
from symop import bessel_i1 as bessel_i1
from symop import i1 as i1
from symop import bessel_i1e as bessel_i1e
from symop import i1e as i1e
from symop import bessel_ie as bessel_ie
from symop import beta_log_density as beta_log_density
from symop import bilinear_sampler as bilinear_sampler
from symop import BilinearSampler as BilinearSampler
from symop import bitwise_and as bitwise_and
from symop import bitwise_invert as bitwise_invert
from symop import bitwise_not as bitwise_not
from symop import invert as invert
from symop import bitwise_left_shift as bitwise_left_shift
from symop import left_shift as left_shift
from symop import shift_left as shift_left
from symop import bitwise_or as bitwise_or
from symop import bitwise_right_shift as bitwise_right_shift
from symop import right_shift as right_shift
from symop import bitwise_xor as bitwise_xor
from symop import boolean_mask as boolean_mask
from symop import broadcast_like as broadcast_like
from symop import expand_as as expand_as
from symop import broadcast_to as broadcast_to
from symop import cast as cast
from symop import Cast as Cast
from symop import astype as astype
from symop import cauchy_log_density as cauchy_log_density
from symop import cbrt as cbrt
from symop import ceil as ceil
from symop import celu as celu
from symop import chain_sum as chain_sum
from symop import cholesky as cholesky
from symop import linalg_potrf as linalg_potrf
from symop import potrf as potrf
from symop import choose as choose
from symop import clip as clip
from symop import clip_by_value as clip_by_value
from symop import clip_by_global_norm as clip_by_global_norm
from symop import clip_by_norm as clip_by_norm
from symop import cofactor as cofactor
from symop import cofactor_change as cofactor_change
from symop import col2im as col2im
from symop import concat as concat
from symop import concatenate as concatenate
from symop import conj as conj
from symop import conjugate as conjugate
from symop import constant_schedule as constant_schedule
from symop import convolution as convolution
from symop import convolution_data_gradient as convolution_data_gradient
from symop import convolution_weight_gradient as convolution_weight_gradient
from symop import copysign as copysign
from symop import correlation as correlation
from symop import Correlation as Correlation
from symop import correlation_gradient as correlation_gradient
from symop import correlation_tangent as correlation_tangent
from symop import cos as cos
from symop import cosh as cosh
from symop import cosine_decay_schedule as cosine_decay_schedule
from symop import cosine_similarity as cosine_similarity
from symop import count_nonzero as count_nonzero
from symop import cross as cross
from symop import ctc_lattice as ctc_lattice
from symop import ctc_loss as ctc_loss
from symop import cummax as cummax
from symop import cummin as cummin
from symop import cumprod as cumprod
from symop import cumulative_prod as cumulative_prod
from symop import cumprod_gradient as cumprod_gradient
from symop import cumprod_tangent as cumprod_tangent
from symop import cumsum as cumsum
from symop import cumulative_sum as cumulative_sum
from symop import deformable_convolution as deformable_convolution
from symop import degrees as degrees
from symop import rad2deg as rad2deg
from symop import depth_to_space as depth_to_space
from symop import det as det
from symop import linalg_det as linalg_det
from symop import diag as diag
from symop import diag_embed as diag_embed
from symop import linalg_makediag as linalg_makediag
from symop import diagonal as diagonal
from symop import linalg_extractdiag as linalg_extractdiag
from symop import digamma as digamma
from symop import psi as psi
from symop import dirichlet_log_density as dirichlet_log_density
from symop import divide as divide
from symop import broadcast_div as broadcast_div
from symop import div as div
from symop import elementwise_div as elementwise_div
from symop import elemwise_div as elemwise_div
from symop import true_divide as true_divide
from symop import dot as dot
from symop import dropout as dropout
from symop import dynamic_slice as dynamic_slice
from symop import dynamic_update_slice as dynamic_update_slice
from symop import eigh as eigh
from symop import eigvalsh as eigvalsh
from symop import einsum as einsum
from symop import elu as elu
from symop import entr as entr
from symop import equal as equal
from symop import broadcast_equal as broadcast_equal
from symop import eq as eq
from symop import erf as erf
from symop import erfc as erfc
from symop import erfinv as erfinv
from symop import erf_inv as erf_inv
from symop import exp as exp
from symop import exp2 as exp2
from symop import expand_dims as expand_dims
from symop import expm1 as expm1
from symop import exponential_decay as exponential_decay
from symop import exponential_log_density as exponential_log_density
from symop import factored_solve as factored_solve
from symop import fft as fft
from symop import fftn as fftn
from symop import fftshift as fftshift
from symop import fill_diagonal as fill_diagonal
from symop import flatten as flatten
from symop import Flatten as Flatten
from symop import flip as flip
from symop import reverse as reverse
from symop import float8_matmul as float8_matmul
from symop import float8_restore as float8_restore
from symop import floor as floor
from symop import floor_divide as floor_divide
from symop import broadcast_floor_divide as broadcast_floor_divide
from symop import ftrl as ftrl
from symop import full_like as full_like
from symop import fully_connected as fully_connected
from symop import gamma as gamma
from symop import gamma_density as gamma_density
from symop import gamma_draw_slope as gamma_draw_slope
from symop import gamma_log_density as gamma_log_density
from symop import gather_nd as gather_nd
from symop import gaussian as gaussian
from symop import gelu as gelu
from symop import gemm as gemm
from symop import linalg_gemm as linalg_gemm
from symop import gemm2 as gemm2
from symop import linalg_gemm2 as linalg_gemm2
from symop import get_tensor_from_selected_rows as get_tensor_from_selected_rows
from symop import global_norm as global_norm
from symop import gradient_multiplier as gradient_multiplier
from symop import gradient_reversal as gradient_reversal
from symop import greater as greater
from symop import broadcast_greater as broadcast_greater
from symop import greater_than as greater_than
from symop import gt as gt
from symop import greater_equal as greater_equal
from symop import broadcast_greater_equal as broadcast_greater_equal
from symop import ge as ge
from symop import grid_generator as grid_generator
from symop import GridGenerator as GridGenerator
from symop import group_norm as group_norm
from symop import gru as gru
from symop import hard_sigmoid as hard_sigmoid
from symop import hardsigmoid as hardsigmoid
from symop import hard_swish as hard_swish
from symop import hard_silu as hard_silu
from symop import hardswish as hardswish
from symop import hard_tanh as hard_tanh
from symop import hardtanh as hardtanh
from symop import hfft as hfft
from symop import hinge as hinge
from symop import hot_labels as hot_labels
from symop import huber as huber
from symop import huber_loss as huber_loss
from symop import hypot as hypot
from symop import broadcast_hypot as broadcast_hypot
from symop import identity as identity
from symop import assign as assign
from symop import clone as clone
from symop import positive as positive
from symop import ifft as ifft
from symop import ifftn as ifftn
from symop import ifftshift as ifftshift
from symop import ihfft as ihfft
from symop import im2col as im2col
from symop import imag as imag
from symop import incomplete_gamma as incomplete_gamma
from symop import gammainc as gammainc
from symop import igamma as igamma
from symop import incomplete_gamma_ratio as incomplete_gamma_ratio
from symop import index_add as index_add
from symop import index_update as index_update
from symop import instance_norm as instance_norm
from symop import integer_power as integer_power
from symop import inv as inv
from symop import inverse as inverse
from symop import linalg_inverse as linalg_inverse
from symop import inverse_time_decay as inverse_time_decay
from symop import irfft as irfft
from symop import irfftn as irfftn
from symop import isfinite as isfinite
from symop import is_finite as is_finite
from symop import isinf as isinf
from symop import isnan as isnan
from symop import join_selected_rows as join_selected_rows
from symop import keep as keep
from symop import khatri_rao as khatri_rao
from symop import kl_divergence as kl_divergence
from symop import kron as kron
from symop import l1_loss as l1_loss
from symop import l1 as l1
from symop import l2_normalize as l2_normalize
from symop import lamb as lamb
from symop import laplace_log_density as laplace_log_density
from symop import layer_norm as layer_norm
from symop import LayerNorm as LayerNorm
from symop import leaky_relu as leaky_relu
from symop import length_mask as length_mask
from symop import lerp as lerp
from symop import less as less
from symop import broadcast_lesser as broadcast_lesser
from symop import less_than as less_than
from symop import lt as lt
from symop import less_equal as less_equal
from symop import broadcast_lesser_equal as broadcast_lesser_equal
from symop import le as le
from symop import let_through as let_through
from symop import lgamma as lgamma
from symop import gammaln as gammaln
from symop import linear_cross_entropy as linear_cross_entropy
from symop import linear_cross_entropy_and_gradient as linear_cross_entropy_and_gradient
from symop import linear_cross_entropy_gradient as linear_cross_entropy_gradient
from symop import linear_cross_entropy_tangent as linear_cross_entropy_tangent
from symop import linear_recurrence as linear_recurrence
from symop import linear_recurrence_adjoint as linear_recurrence_adjoint
from symop import linear_regression_output as linear_regression_output
from symop import LinearRegressionOutput as LinearRegressionOutput
from symop import linear_scan as linear_scan
from symop import linear_warmup as linear_warmup
from symop import local_response_norm as local_response_norm
from symop import LRN as LRN
from symop import log as log
from symop import log10 as log10
from symop import log1p as log1p
from symop import log2 as log2
from symop import log_ndtr as log_ndtr
from symop import log_sigmoid as log_sigmoid
from symop import logsigmoid as logsigmoid
from symop import log_softmax as log_softmax
from symop import log_softmax_with_length as log_softmax_with_length
from symop import logaddexp as logaddexp
from symop import logaddexp2 as logaddexp2
from symop import logcumsumexp as logcumsumexp
from symop import cumlogsumexp as cumlogsumexp
from symop import logical_and as logical_and
from symop import broadcast_logical_and as broadcast_logical_and
from symop import logical_not as logical_not
from symop import logical_or as logical_or
from symop import broadcast_logical_or as broadcast_logical_or
from symop import logical_xor as logical_xor
from symop import broadcast_logical_xor as broadcast_logical_xor
from symop import logistic_regression_output as logistic_regression_output
from symop import LogisticRegressionOutput as LogisticRegressionOutput
from symop import logit as logit
from symop import logsumexp as logsumexp
from symop import lookup_table as lookup_table
from symop import embedding as embedding
from symop import lp_pooling as lp_pooling
from symop import lq as lq
from symop import gelqf as gelqf
from symop import linalg_gelqf as linalg_gelqf
from symop import lstm as lstm
from symop import mae_regression_output as mae_regression_output
from symop import MAERegressionOutput as MAERegressionOutput
from symop import make_loss as make_loss
from symop import MakeLoss as MakeLoss
from symop import masked_log_softmax as masked_log_softmax
from symop import masked_softmax as masked_softmax
from symop import masked_softmin as masked_softmin
from symop import matmul as matmul
from symop import batch_matmul as batch_matmul
from symop import mm as mm
from symop import mv as mv
from symop import matrix_power as matrix_power
from symop import max as max
from symop import amax as amax
from symop import max_axis as max_axis
from symop import reduce_max as reduce_max
from symop import max_pooling as max_pooling
from symop import max_pooling_gradient as max_pooling_gradient
from symop import max_pooling_select as max_pooling_select
from symop import maximum as maximum
from symop import broadcast_maximum as broadcast_maximum
from symop import elementwise_max as elementwise_max
from symop import mean as mean
from symop import reduce_mean as reduce_mean
from symop import mean_squared_error as mean_squared_error
from symop import mse_loss as mse_loss
from symop import merge_heads as merge_heads
from symop import merge_selected_rows as merge_selected_rows
from symop import meshgrid as meshgrid
from symop import min as min
from symop import amin as amin
from symop import min_axis as min_axis
from symop import reduce_min as reduce_min
from symop import minimum as minimum
from symop import broadcast_minimum as broadcast_minimum
from symop import elementwise_min as elementwise_min
from symop import minus as minus
from symop import mish as mish
from symop import momentum as momentum
from symop import moveaxis as moveaxis
from symop import movedim as movedim
from symop import multiply as multiply
from symop import broadcast_mul as broadcast_mul
from symop import elementwise_mul as elementwise_mul
from symop import elemwise_mul as elemwise_mul
from symop import nanprod as nanprod
from symop import nansum as nansum
from symop import natural_exp_decay as natural_exp_decay
from symop import ndtr as ndtr
from symop import ndtri as ndtri
from symop import negative as negative
from symop import neg as neg
from symop import nll as nll
from symop import noam_decay as noam_decay
from symop import norm as norm
from symop import vector_norm as vector_norm
from symop import normal_log_density as normal_log_density
from symop import not_equal as not_equal
from symop import broadcast_not_equal as broadcast_not_equal
from symop import ne as ne
from symop import one_hot as one_hot
from symop import ones_like as ones_like
from symop import outer as outer
from symop import ger as ger
from symop import pad as pad
from symop import pad_slice as pad_slice
from symop import permute_dims as permute_dims
from symop import transpose as transpose
from symop import pick as pick
from symop import piecewise_decay as piecewise_decay
from symop import pinv as pinv
from symop import pinverse as pinverse
from symop import pseudo_inverse as pseudo_inverse
from symop import poisson_log_density as poisson_log_density
from symop import polygamma as polygamma
from symop import polynomial_schedule as polynomial_schedule
from symop import linear_schedule as linear_schedule
from symop import position_ids as position_ids
from symop import potri as potri
from symop import linalg_potri as linalg_potri
from symop import power as power
from symop import broadcast_power as broadcast_power
from symop import elementwise_pow as elementwise_pow
from symop import integer_pow as integer_pow
from symop import pow as pow
from symop import prelu as prelu
from symop import prod as prod
from symop import reduce_prod as reduce_prod
from symop import product_of_others as product_of_others
from symop import product_of_others_tangent as product_of_others_tangent
from symop import qr as qr
from symop import radians as radians
from symop import deg2rad as deg2rad
from symop import random_beta as random_beta
from symop import random_categorical as random_categorical
from symop import categorical as categorical
from symop import random_gamma as random_gamma
from symop import random_permutation as random_permutation
from symop import permutation as permutation
from symop import shuffle as shuffle
from symop import rcbrt as rcbrt
from symop import real as real
from symop import reciprocal as reciprocal
from symop import rel_entr as rel_entr
from symop import relu as relu
from symop import relu6 as relu6
from symop import remainder as remainder
from symop import broadcast_mod as broadcast_mod
from symop import elementwise_mod as elementwise_mod
from symop import floor_mod as floor_mod
from symop import mod as mod
from symop import repeat as repeat
from symop import repeat_interleave as repeat_interleave
from symop import reshape as reshape
from symop import reshape_like as reshape_like
from symop import view_as as view_as
from symop import resize as resize
from symop import resize_gradient as resize_gradient
from symop import rfft as rfft
from symop import rfftn as rfftn
from symop import rms_norm as rms_norm
from symop import rmsprop as rmsprop
from symop import rmsprop_centered as rmsprop_centered
from symop import rmsprop_momentum as rmsprop_momentum
from symop import rnn as rnn
from symop import roi_align as roi_align
from symop import roi_pooling as roi_pooling
from symop import ROIPooling as ROIPooling
from symop import roll as roll
from symop import rotary_embedding as rotary_embedding
from symop import round as round
from symop import around as around
from symop import rint as rint
from symop import round_straight_through as round_straight_through
from symop import round_ste as round_ste
from symop import rsqrt as rsqrt
from symop import scale as scale
from symop import scale_paired_bins as scale_paired_bins
from symop import scaled_dot_product_attention as scaled_dot_product_attention
from symop import scan_prefix as scan_prefix
from symop import scatter_add as scatter_add
from symop import scatter_nd as scatter_nd
from symop import searchsorted as searchsorted
from symop import selu as selu
from symop import sequence_argmax as sequence_argmax
from symop import sequence_concat as sequence_concat
from symop import sequence_context as sequence_context
from symop import sequence_context_adjoint as sequence_context_adjoint
from symop import sequence_conv as sequence_conv
from symop import sequence_expand as sequence_expand
from symop import sequence_expand_as as sequence_expand_as
from symop import sequence_ids as sequence_ids
from symop import sequence_last as sequence_last
from symop import sequence_lengths as sequence_lengths
from symop import sequence_mask as sequence_mask
from symop import sequence_offsets as sequence_offsets
from symop import sequence_pad as sequence_pad
from symop import sequence_pool as sequence_pool
from symop import sequence_reverse as sequence_reverse
from symop import sequence_slice as sequence_slice
from symop import sequence_softmax as sequence_softmax
from symop import sequence_unpad as sequence_unpad
from symop import sgd as sgd
from symop import shard as shard
from symop import sigmoid as sigmoid
from symop import expit as expit
from symop import logistic as logistic
from symop import sigmoid_cross_entropy as sigmoid_cross_entropy
from symop import sigmoid_binary_cross_entropy as sigmoid_binary_cross_entropy
from symop import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from symop import sign as sign
from symop import sgn as sgn
from symop import sign_straight_through as sign_straight_through
from symop import sign_ste as sign_ste
from symop import silu as silu
from symop import swish as swish
from symop import sin as sin
from symop import sinc as sinc
from symop import sinh as sinh
from symop import slice as slice
from symop import slice_axis as slice_axis
from symop import slice_like as slice_like
from symop import slogdet as slogdet
from symop import linalg_slogdet as linalg_slogdet
from symop import smooth_l1 as smooth_l1
from symop import softmax as softmax
from symop import softmax_cross_entropy as softmax_cross_entropy
from symop import softmax_cross_entropy_with_integer_labels as softmax_cross_entropy_with_integer_labels
from symop import softmax_output as softmax_output
from symop import SoftmaxOutput as SoftmaxOutput
from symop import softmax_with_length as softmax_with_length
from symop import softmin as softmin
from symop import softmin_with_length as softmin_with_length
from symop import softplus as softplus
from symop import softsign as softsign
from symop import soft_sign as soft_sign
from symop import solve as solve
from symop import sort as sort
from symop import space_to_depth as space_to_depth
from symop import spatial_transformer as spatial_transformer
from symop import split as split
from symop import split_heads as split_heads
from symop import split_selected_rows as split_selected_rows
from symop import sqrt as sqrt
from symop import square as square
from symop import squared_difference as squared_difference
from symop import square_error_cost as square_error_cost
from symop import squeeze as squeeze
from symop import stack as stack
from symop import std as std
from symop import stochastic_round as stochastic_round
from symop import stop_gradient as stop_gradient
from symop import BlockGrad as BlockGrad
from symop import block_grad as block_grad
from symop import detach as detach
from symop import student_t_log_density as student_t_log_density
from symop import subtract as subtract
from symop import broadcast_minus as broadcast_minus
from symop import broadcast_sub as broadcast_sub
from symop import elementwise_sub as elementwise_sub
from symop import elemwise_sub as elemwise_sub
from symop import sub as sub
from symop import sum as sum
from symop import reduce_sum as reduce_sum
from symop import sum_along as sum_along
from symop import sum_axis as sum_axis
from symop import sum_to as sum_to
from symop import sumlogdiag as sumlogdiag
from symop import linalg_sumlogdiag as linalg_sumlogdiag
from symop import svd as svd
from symop import svdvals as svdvals
from symop import svm_output as svm_output
from symop import SVMOutput as SVMOutput
from symop import swapaxes as swapaxes
from symop import syrk as syrk
from symop import linalg_syrk as linalg_syrk
from symop import take as take
from symop import gather as gather
from symop import take_along_axis as take_along_axis
from symop import index_sample as index_sample
from symop import tan as tan
from symop import tanh as tanh
from symop import tensordot as tensordot
from symop import tile as tile
from symop import topk as topk
from symop import top_k as top_k
from symop import trace as trace
from symop import transposed_convolution as transposed_convolution
from symop import triangular_solve as triangular_solve
from symop import linalg_trsm as linalg_trsm
from symop import tril as tril
from symop import triu as triu
from symop import trmm as trmm
from symop import linalg_trmm as linalg_trmm
from symop import trunc as trunc
from symop import fix as fix
from symop import uniform_log_density as uniform_log_density
from symop import unstack as unstack
from symop import unbind as unbind
from symop import variance as variance
from symop import vecdot as vecdot
from symop import warmup_cosine_decay_schedule as warmup_cosine_decay_schedule
from symop import where as where
from symop import write_steps as write_steps
from symop import xlog1py as xlog1py
from symop import xlogy as xlogy
from symop import zeros_like as zeros_like
from symop import fill_zeros_like as fill_zeros_like

Variable = var
_Function = Callable[..., Any]
def cond(pred: Any, true_fn: _Function, false_fn: _Function, *operands: Any) -> Any:
    """Builds ``so.cond`` on symbols, even if only the functions capture symbols."""
def while_loop(cond_fn: _Function, body_fn: _Function, init: Any, max_steps: int | None=None) -> Any:
    """Builds ``so.while_loop`` on symbols, even if only the functions capture symbols."""
def scan(f: _Function, init: Any, xs: Any=None, length: int | None=None, reverse: bool=False) -> Any:
    """Builds ``so.scan`` on symbols, even if only the function captures symbols."""
def foreach(body: _Function, data: Any, init_states: Any) -> tuple[Any, Any]:
    """Builds ``so.foreach`` on symbols, even if only the body captures symbols."""
def arange(
    start: int | float,
    stop: int | float | None = None,
    step: int | float = 1,
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Symbol:
    """Evenly spaced numbers ``start + step * i`` for ``i = 0, 1, ...``, excluding ``stop``."""
def array_create(
    like: Symbol | complex | None = None,
    *,
    capacity: int,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Symbol:
    """Creates an empty tensor array with capacity for ``capacity`` elements, all zeros."""
create_array = array_create
@overload
def call(
    *operands: Symbol | complex,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
    name: str | None = None,
) -> Symbol:
    """Returns the outputs of ``body``, whose derivative is that of a rule if one is passed."""
@overload
def call(
    operands: Sequence[Symbol | complex],
    *,
    body: Body,
    jvp: Body | None = None,
    vjp: Body | None = None,
    value: Body | None = None,
    differentiated: bool = False,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
def eye(
    n_rows: int,
    n_cols: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Symbol:
    """A matrix with ones on a diagonal and zeros elsewhere: ``out[i, j] = 1`` where ``j = i + k``."""
def fftfreq(
    n: int,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Symbol:
    """Frequencies of the bins of ``fft`` for ``n`` samples with spacing ``d``."""
@overload
def full(
    shape: int | Sequence[int] = (),
    *,
    fill_value: bool | int | float | complex,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Symbol:
    """An array filled with one number: ``out[...] = fill_value``."""
@overload
def full(
    shape: int | Sequence[int],
    fill_value: bool | int | float | complex,
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Symbol: ...
@overload
def jax_function(
    *operands: Symbol | complex,
    function: Any,
    n_out: int = 1,
    name: str | None = None,
) -> Symbol:
    """Applies a function of JAX as a whole; JAX differentiates it."""
@overload
def jax_function(
    operands: Sequence[Symbol | complex],
    *,
    function: Any,
    n_out: int = 1,
    name: str | None = None,
) -> Symbol: ...
@overload
def lax_primitive(
    *operands: Symbol | complex,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    name: str | None = None,
) -> Symbol:
    """Applies the primitive of JAX called ``primitive``; JAX differentiates it."""
@overload
def lax_primitive(
    operands: Sequence[Symbol | complex],
    *,
    primitive: str,
    params: str,
    n_out: int = 1,
    keys: Sequence[str] = (),
    name: str | None = None,
) -> Symbol: ...
@overload
def linear_solve(
    *operands: Symbol | complex,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
    name: str | None = None,
) -> Symbol:
    """Solves ``matvec(c, x) = b`` for ``x`` by ``solve``, whatever its steps are."""
@overload
def linear_solve(
    operands: Sequence[Symbol | complex],
    *,
    lengths: Sequence[int],
    matvec: Body,
    vecmat: Body,
    solve: Body,
    transpose_solve: Body,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Symbol:
    """``num`` evenly spaced numbers from ``start`` to ``stop``."""
@overload
def nondifferentiable_call(
    *operands: Symbol | complex,
    body: Body,
    training: bool = ...,
    name: str | None = None,
) -> Symbol:
    """Returns the outputs of ``body``, without a derivative."""
@overload
def nondifferentiable_call(
    operands: Sequence[Symbol | complex],
    *,
    body: Body,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
def ones(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Symbol:
    """An array of ones, by default in the default floating dtype."""
def random_bernoulli(
    p: Symbol | complex | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Symbol | jax.Array = ...,
    name: str | None = None,
) -> Symbol:
    """Bernoulli draws: true with probability ``p``, which defaults to 1/2."""
bernoulli = random_bernoulli
def random_exponential(
    scale: Symbol | complex | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Symbol | jax.Array = ...,
    name: str | None = None,
) -> Symbol:
    """Exponential draws with mean ``scale``, which defaults to 1: ``-scale log(1 - u)``."""
def random_integers(
    low: int,
    high: int,
    shape: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    key: Symbol | jax.Array = ...,
    name: str | None = None,
) -> Symbol:
    """Uniform integer draws from ``low`` (inclusive) to ``high`` (exclusive)."""
random_randint = random_integers
def random_normal(
    loc: Symbol | complex | None = None,
    scale: Symbol | complex | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Symbol | jax.Array = ...,
    name: str | None = None,
) -> Symbol:
    """Normal draws: ``loc + scale z`` with ``z`` of mean 0 and standard deviation 1."""
normal = random_normal
def random_poisson(
    rate: Symbol | complex | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Symbol | jax.Array = ...,
    name: str | None = None,
) -> Symbol:
    """Poisson draws: numbers of events with mean ``rate``, which defaults to 1."""
poisson = random_poisson
def random_truncated_normal(
    loc: Symbol | complex | None = None,
    scale: Symbol | complex | None = None,
    low: float = -2.0,
    high: float = 2.0,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Symbol | jax.Array = ...,
    name: str | None = None,
) -> Symbol:
    """Truncated normal draws: ``loc + scale z`` with ``low <= z <= high``."""
truncated_normal = random_truncated_normal
def random_uniform(
    low: Symbol | complex | None = None,
    high: Symbol | complex | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    key: Symbol | jax.Array = ...,
    name: str | None = None,
) -> Symbol:
    """Uniform draws: ``low + (high - low) u`` with ``u`` uniform in [0, 1)."""
uniform = random_uniform
@overload
def recompute(
    *operands: Symbol | complex,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
    name: str | None = None,
) -> Symbol:
    """Returns the outputs of ``body``, whose gradient recomputes its residuals."""
@overload
def recompute(
    operands: Sequence[Symbol | complex],
    *,
    body: Body,
    saved: Sequence[int] = (),
    lasting: Sequence[int] = (),
    held: Sequence[int] = (),
    after: Sequence[int] = (),
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
def rfftfreq(
    n: int,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Symbol:
    """Frequencies of the bins of ``rfft`` for ``n`` samples with spacing ``d``."""
@overload
def vmap(
    *operands: Symbol | complex,
    body: Body,
    n_mapped: int,
    use_key: bool = False,
    key: Symbol | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> Symbol:
    """Applies ``body`` to each slice of the first ``n_mapped`` operands along their first axis."""
@overload
def vmap(
    operands: Sequence[Symbol | complex],
    *,
    body: Body,
    n_mapped: int,
    use_key: bool = False,
    key: Symbol | jax.Array = ...,
    training: bool = ...,
    name: str | None = None,
) -> Symbol: ...
def zeros(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Symbol:
    """An array of zeros, by default in the default floating dtype."""
