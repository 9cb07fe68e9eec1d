"""Names of operators in other systems that differ from the names here.

Where the call is the same, the other name is an alias of the operator. This table lists names whose
arguments differ too, so that an alias would be misleading; names that mean different things in
different systems; and internal names (``_plus``, ``isnan_v2``) that occur in saved programs. Every
error for an unknown name reads this table, and so does the page docs/names.md.
"""

from collections.abc import Container, Mapping
from typing import NamedTuple


class Foreign(NamedTuple):
    """The operator that corresponds to a name of another system.

    Attributes:
        system: the other system.
        operator: the operator's name here.
        differs: how the arguments differ; empty if only the name differs.
    """

    system: str
    operator: str
    differs: str


_Names = Mapping[str, tuple[str, str]]

_WINDOWS = "num_filter is channels, dilate is dilation, pad is padding, num_group is groups"
_POOLED = "kernel_size is kernel"
_TAKES_NUMBERS = "either input may be a number"
_AS_MANY = "shape is that of the whole result"
_EACH = "the result is not reduced: take its mean"
_CHANNELS = "channels and kernel must be given, use_bias=False without a bias"
_LAYERS = "the weights of every layer are inputs of their own"
_ONE_AXIS = "one operator for one to three spatial axes"

_MXNET: _Names = {
    "Activation": ("relu", "act_type is the operator: relu, sigmoid, tanh, softplus or softsign"),
    "BatchNorm": (
        "batch_norm",
        "eps is 1e-5 unless given, not 1e-3, and there is no fix_gamma: gamma is learned",
    ),
    "BilinearResize2D": ("resize", "size is (height, width), align_corners=True must be given"),
    "CTCLoss": ("ctc_loss", "blank is the number of its class"),
    "Concat": ("concat", "dim is axis, by default 0, not 1"),
    "Convolution": ("convolution", _WINDOWS),
    "Convolution_v1": ("convolution", _WINDOWS),
    "Crop": ("slice_like", "it has no offset: use slice for one"),
    "Deconvolution": ("transposed_convolution", f"{_WINDOWS}, adj is output_padding"),
    "DeformableConvolution": (
        "deformable_convolution",
        "attributes are those of convolution here, num_deformable_group is deformable_groups",
    ),
    "Dropout": ("dropout", "p is rate"),
    "Embedding": ("lookup_table", "the table comes first, and its lengths are read off it"),
    "FullyConnected": ("fully_connected", "num_hidden is units, no_bias=True is use_bias=False"),
    "GroupNorm": (
        "group_norm",
        "num_groups must be given, gamma and beta have one number for each channel, not each group",
    ),
    "InstanceNorm": ("instance_norm", "eps is 1e-5 unless given, not 1e-3"),
    "L2Normalization": ("l2_normalize", "mode is axis: 'instance' all but the first, 'channel' 1"),
    "LeakyReLU": (
        "leaky_relu",
        "act_type is the operator: leaky_relu with slope 0.25, prelu, elu, selu or gelu",
    ),
    "Pad": ("pad", "pad_width is a pair for each axis, mode must be given unless 'constant'"),
    "Pooling": (
        "max_pooling",
        "pool_type is the operator: max_pooling, average_pooling or lp_pooling; stride is the "
        "kernel unless given",
    ),
    "Pooling_v1": ("max_pooling", "pool_type is the operator, pad is padding"),
    "RNN": ("rnn", f"mode is the operator: rnn, lstm or gru; {_LAYERS}"),
    "ROIAlign": ("roi_align", "sample_ratio is 2 unless given, and must be positive"),
    "Reshape": ("reshape", "of the special lengths only -1 is taken"),
    "SequenceLast": ("sequence_last", "use_sequence_length is whether lengths are given"),
    "SequenceMask": ("sequence_mask", "use_sequence_length is whether lengths are given"),
    "SequenceReverse": ("sequence_reverse", "use_sequence_length is whether lengths are given"),
    "SliceChannel": (
        "split",
        "num_outputs is sections, axis is 0 unless given, not 1; squeeze_axis=True is unstack",
    ),
    "Softmax": ("softmax_output", "the layer whose gradient is that of a loss; softmax is not"),
    "SoftmaxActivation": ("softmax", "mode is axis: 'channel' is 1, 'instance' the last one"),
    "SpatialTransformer": (
        "spatial_transformer",
        "transform_type and sampler_type are not given: affine and bilinear",
    ),
    "SwapAxis": ("swapaxes", "dim1 and dim2 are axis1 and axis2"),
    "SyncBatchNorm": ("batch_norm", "eps is 1e-5 unless given, there is no fix_gamma"),
    "UpSampling": ("resize", "size is the new lengths, not a factor; sample_type is method"),
    "_arange": ("arange", ""),
    "_copy": ("identity", ""),
    "_div": ("divide", ""),
    "_div_scalar": ("divide", _TAKES_NUMBERS),
    "_equal": ("equal", ""),
    "_equal_scalar": ("equal", _TAKES_NUMBERS),
    "_eye": ("eye", "N and M are n_rows and n_cols"),
    "_full": ("full", "value is fill_value"),
    "_grad_add": ("add", ""),
    "_greater": ("greater", ""),
    "_greater_equal": ("greater_equal", ""),
    "_greater_equal_scalar": ("greater_equal", _TAKES_NUMBERS),
    "_greater_scalar": ("greater", _TAKES_NUMBERS),
    "_hypot": ("hypot", ""),
    "_hypot_scalar": ("hypot", _TAKES_NUMBERS),
    "_lesser": ("less", ""),
    "_lesser_equal": ("less_equal", ""),
    "_lesser_equal_scalar": ("less_equal", _TAKES_NUMBERS),
    "_lesser_scalar": ("less", _TAKES_NUMBERS),
    "_linspace": ("linspace", ""),
    "_logical_and": ("logical_and", ""),
    "_logical_or": ("logical_or", ""),
    "_logical_xor": ("logical_xor", ""),
    "_maximum": ("maximum", ""),
    "_maximum_scalar": ("maximum", _TAKES_NUMBERS),
    "_minimum": ("minimum", ""),
    "_minimum_scalar": ("minimum", _TAKES_NUMBERS),
    "_minus": ("subtract", ""),
    "_minus_scalar": ("subtract", _TAKES_NUMBERS),
    "_mod": ("remainder", ""),
    "_mod_scalar": ("remainder", _TAKES_NUMBERS),
    "_mul": ("multiply", ""),
    "_mul_scalar": ("multiply", _TAKES_NUMBERS),
    "_not_equal": ("not_equal", ""),
    "_not_equal_scalar": ("not_equal", _TAKES_NUMBERS),
    "_ones": ("ones", ""),
    "_plus": ("add", ""),
    "_plus_scalar": ("add", _TAKES_NUMBERS),
    "_power": ("power", ""),
    "_power_scalar": ("power", _TAKES_NUMBERS),
    "_random_normal": ("random_normal", ""),
    "_random_uniform": ("random_uniform", ""),
    "_rdiv_scalar": ("divide", "the number comes first"),
    "_rminus_scalar": ("subtract", "the number comes first"),
    "_rmod_scalar": ("remainder", "the number comes first"),
    "_rpower_scalar": ("power", "the number comes first"),
    "_shuffle": ("random_permutation", ""),
    "_sub": ("subtract", ""),
    "_zeros": ("zeros", ""),
    "all_finite": ("isfinite", "it is entry-wise: apply all"),
    "arange_like": ("arange", "stop is the length of the other array"),
    "argmax_channel": ("argmax", "axis=1 must be given"),
    "batch_take": ("pick", "axis=1 is that of the indices"),
    "broadcast_axes": ("broadcast_to", "shape is the whole result's, not axis and size"),
    "broadcast_axis": ("broadcast_to", "shape is the whole result's, not axis and size"),
    "choose_element_0index": ("pick", "axis=1 is that of the indices"),
    "crop": ("slice", ""),
    "div_sqrt_dim": ("scale", "scale is one over the root of the last length"),
    "exponential": ("random_exponential", "lam is one over scale"),
    "gradientmultiplier": ("gradient_multiplier", "scalar is factor"),
    "index_copy": ("index_update", ""),
    "linalg_extracttrian": ("tril", "the result is a matrix with zeros, not a vector"),
    "linalg_syevd": ("eigh", "values come first, and the vectors are columns"),
    "moments": ("mean", "the second result is that of variance; axes is axis"),
    "multinomial": ("random_categorical", "it takes logits, not probabilities"),
    "sample_exponential": ("random_exponential", f"scale is one over lam; {_AS_MANY}"),
    "sample_gamma": ("random_gamma", f"alpha and beta are a and scale; {_AS_MANY}"),
    "sample_multinomial": ("random_categorical", f"it takes logits; {_AS_MANY}"),
    "sample_normal": ("random_normal", f"mu and sigma are loc and scale; {_AS_MANY}"),
    "sample_poisson": ("random_poisson", f"lam is rate; {_AS_MANY}"),
    "sample_uniform": ("random_uniform", _AS_MANY),
    "split_v2": ("split", "indices_or_sections is sections, squeeze_axis=True is unstack"),
}

_PADDLE: _Names = {
    "addmm": ("gemm", "the summand comes last, Alpha and Beta are alpha and beta"),
    "affine_grid": ("grid_generator", "theta is (batch, 6), target_shape is (height, width)"),
    "arg_max": ("argmax", "axis is None unless given, not -1"),
    "arg_min": ("argmin", "axis is None unless given, not -1"),
    "bilinear_interp": ("resize", "out_h and out_w are size"),
    "bilinear_interp_v2": ("resize", "out_h and out_w are size"),
    "brelu": ("clip", "t_min and t_max are low and high, and must be given"),
    "conv2d": ("convolution", f"{_CHANNELS}; strides, paddings and dilations lose their s"),
    "conv2d_transpose": ("transposed_convolution", _CHANNELS),
    "conv3d": ("convolution", f"{_CHANNELS}; strides, paddings and dilations lose their s"),
    "cos_sim": ("cosine_similarity", "the result has no axis of length 1"),
    "crop": ("slice", "begin and end are offsets and offsets + shape"),
    "cross_entropy": ("nll", "it takes log(probabilities)"),
    "cross_entropy2": ("nll", "it takes log(probabilities)"),
    "deformable_conv": ("deformable_convolution", f"it has no mask; {_CHANNELS}"),
    "depthwise_conv2d": ("convolution", f"groups is the number of channels; {_CHANNELS}"),
    "diag_v2": ("diag", "offset is k"),
    "dynamic_gru": ("gru", f"lengths are an input; {_LAYERS}"),
    "dynamic_lstm": ("lstm", f"lengths are an input; {_LAYERS}"),
    "elementwise_floordiv": ("floor_divide", "the quotient is rounded down, not toward zero"),
    "expand_as_v2": ("broadcast_like", ""),
    "expand_v2": ("broadcast_to", "no length is -1"),
    "fc": ("fully_connected", "size is units; the weight is (units, inputs)"),
    "fill_any_like": ("full_like", "value is fill_value"),
    "fill_constant": ("full", "value is fill_value"),
    "flatten2": ("flatten", "it joins all axes but the first"),
    "flatten_contiguous_range": ("reshape", "shape is the result's"),
    "frobenius_norm": ("norm", "dim and keep_dim are axis and keepdims"),
    "gaussian_random": ("random_normal", "mean and std are loc and scale"),
    "grid_sampler": ("bilinear_sampler", "the grid is (batch, 2, height, width), x before y"),
    "hinge_loss": ("hinge", "labels are -1 and 1, not 0 and 1"),
    "index_select": ("take", "index and dim are ids and axis"),
    "isfinite_v2": ("isfinite", ""),
    "isinf_v2": ("isinf", ""),
    "isnan_v2": ("isnan", ""),
    "kldiv_loss": ("kl_divergence", "it sums along axis: reduce the rest as you wish"),
    "linear_interp": ("resize", "out_w is size"),
    "linear_interp_v2": ("resize", "out_w is size"),
    "lookup_table_v2": ("lookup_table", "without a padding row padding_idx is None, not -1"),
    "lrn": ("local_response_norm", "n is nsize, k is knorm, alpha is multiplied by n"),
    "masked_select": ("boolean_mask", "size, the number of entries, must be given"),
    "matmul_v2": ("matmul", "trans_x and trans_y are not taken: swap the last axes"),
    "max_pool2d_with_index": ("max_pooling", "ksize is kernel; it gives no places"),
    "mul": ("matmul", "the inputs are matrices: reshape others"),
    "nearest_interp": ("resize", "out_h and out_w are size, method='nearest'"),
    "nearest_interp_v2": ("resize", "out_h and out_w are size, method='nearest'"),
    "one_hot_v2": ("one_hot", "depth is num_classes"),
    "p_norm": ("norm", "porder is ord, keepdim is keepdims"),
    "pad2d": ("pad", "pad_width is a pair for each axis"),
    "pad3d": ("pad", "pad_width is a pair for each axis"),
    "pool2d": (
        "max_pooling",
        "pooling_type is the operator: max_pooling or average_pooling; ksize is kernel",
    ),
    "pool3d": (
        "max_pooling",
        "pooling_type is the operator: max_pooling or average_pooling; ksize is kernel",
    ),
    "range": ("arange", "start, stop and step are numbers, not inputs"),
    "reshape2": ("reshape", "no length is 0"),
    "scatter": ("index_update", "overwrite=False is index_add"),
    "scatter_nd_add": ("scatter_nd", "it starts from zeros: add x"),
    "sequence_enumerate": (
        "sequence_context",
        "win_size is context_length, context_start=0 must be given, padding is zero",
    ),
    "sequence_first_step": ("sequence_pool", "pool='first', and the offsets are an input"),
    "sequence_last_step": ("sequence_pool", "pool='last', and the offsets are an input"),
    "soft_relu": ("softplus", "it has no threshold"),
    "softmax_with_cross_entropy": (
        "softmax_cross_entropy",
        "labels have no axis of length 1, ignore_index is ignore_label",
    ),
    "squared_l2_norm": ("square", "take its sum"),
    "squeeze2": ("squeeze", "axes is axis"),
    "strided_slice": ("slice", "starts, ends and strides are begin, end and step of all axes"),
    "sync_batch_norm": ("batch_norm", "epsilon is eps"),
    "top_k_v2": ("topk", ""),
    "transpose2": ("permute_dims", "axis is axes"),
    "tril_triu": ("tril", "lower=False is triu, diagonal is k"),
    "truncated_gaussian_random": ("random_truncated_normal", "mean and std are loc and scale"),
    "uniform_random": ("random_uniform", "min and max are low and high"),
    "unsqueeze2": ("expand_dims", "axes is axis"),
    "warpctc": ("ctc_loss", "labels are rows with lengths, norm_by_times is not taken"),
}

_PYTORCH: _Names = {
    "adaptive_avg_pool1d": ("adaptive_average_pooling", _ONE_AXIS),
    "adaptive_avg_pool2d": ("adaptive_average_pooling", _ONE_AXIS),
    "adaptive_avg_pool3d": ("adaptive_average_pooling", _ONE_AXIS),
    "adaptive_max_pool1d": ("adaptive_max_pooling", _ONE_AXIS),
    "adaptive_max_pool2d": ("adaptive_max_pooling", _ONE_AXIS),
    "adaptive_max_pool3d": ("adaptive_max_pooling", _ONE_AXIS),
    "addmm": ("gemm", "the summand comes last"),
    "affine_grid": ("grid_generator", "theta is (batch, 6), target_shape is (height, width)"),
    "avg_pool1d": ("average_pooling", _POOLED),
    "avg_pool2d": ("average_pooling", _POOLED),
    "avg_pool3d": ("average_pooling", _POOLED),
    "baddbmm": ("gemm", "the summand comes last"),
    "binary_cross_entropy": ("sigmoid_cross_entropy", f"it takes logits; {_EACH}"),
    "binary_cross_entropy_with_logits": ("sigmoid_cross_entropy", _EACH),
    "bucketize": ("searchsorted", "the sorted numbers come first, right=True is side='right'"),
    "cat": ("concat", "dim is axis, and the arrays are not in a list"),
    "chunk": ("split", "chunks is sections, dim is axis, and the parts have one length"),
    "clamp": ("clip", "min and max are low and high"),
    "clamp_max": ("minimum", "a tie halves the gradient"),
    "clamp_min": ("maximum", "a tie halves the gradient"),
    "conv1d": ("convolution", _CHANNELS),
    "conv2d": ("convolution", _CHANNELS),
    "conv3d": ("convolution", _CHANNELS),
    "conv_transpose1d": ("transposed_convolution", _CHANNELS),
    "conv_transpose2d": ("transposed_convolution", _CHANNELS),
    "conv_transpose3d": ("transposed_convolution", _CHANNELS),
    "cross_entropy": (
        "softmax_cross_entropy",
        "classes lie along the last axis, ignore_index is ignore_label; take the mean",
    ),
    "deform_conv2d": ("deformable_convolution", f"it has no mask; {_CHANNELS}"),
    "empty_like": ("zeros_like", "the entries are zeros"),
    "expand": ("broadcast_to", "shape is a tuple without -1"),
    "float_power": ("power", "integers stay integers"),
    "fmod": ("remainder", "the result has the sign of the divisor"),
    "fold": ("col2im", "kernel_size is kernel"),
    "grid_sample": (
        "bilinear_sampler",
        "the grid is (batch, 2, height, width), the corners are those of align_corners=True",
    ),
    "index_copy": ("index_update", "dim is axis, and comes behind the arrays"),
    "index_select": ("take", "the indices come before axis, which is dim"),
    "interpolate": ("resize", "mode is method, scale_factor is not taken"),
    "kl_div": ("kl_divergence", "it sums along axis: reduce the rest as you wish"),
    "linear": ("fully_connected", "units and flatten=False must be given"),
    "logdet": ("slogdet", "it is the second result"),
    "lp_pool1d": ("lp_pooling", f"norm_type is p_value, {_POOLED}"),
    "lp_pool2d": ("lp_pooling", f"norm_type is p_value, {_POOLED}"),
    "masked_fill": ("where", "where(mask, value, x)"),
    "masked_select": ("boolean_mask", "size, the number of entries, must be given"),
    "max_pool1d": ("max_pooling", _POOLED),
    "max_pool2d": ("max_pooling", _POOLED),
    "max_pool3d": ("max_pooling", _POOLED),
    "msort": ("sort", "axis=0 must be given"),
    "mul": ("multiply", ""),
    "multinomial": ("random_categorical", "it takes logits, not probabilities"),
    "narrow": ("slice_axis", "begin and end are start and start + length"),
    "nll_loss": ("nll", f"classes lie along the last axis, ignore_index is ignore_label; {_EACH}"),
    "normalize": ("l2_normalize", "dim is axis, eps is added to the sum of squares"),
    "permute": ("permute_dims", "dims is axes, a tuple"),
    "pixel_shuffle": ("depth_to_space", "upscale_factor is block_size, mode='CRD'"),
    "pixel_unshuffle": ("space_to_depth", "downscale_factor is block_size, mode='CRD'"),
    "rand": ("random_uniform", "shape is a tuple"),
    "randn": ("random_normal", "shape is a tuple"),
    "randperm": ("random_permutation", "it permutes an array: give it arange"),
    "scatter": ("index_update", "of whole slices; single entries are added by scatter_add"),
    "select": ("take", "the index comes before axis, which is dim"),
    "smooth_l1_loss": ("huber", f"beta is delta, by which the result is divided; {_EACH}"),
    "solve_triangular": (
        "triangular_solve",
        "upper=True is lower=False, left=False is rightside=True",
    ),
    "swapdims": ("swapaxes", "dim0 and dim1 are axis1 and axis2"),
    "t": ("permute_dims", "of matrices"),
    "take_along_dim": ("take_along_axis", "dim is axis"),
    "tensor_split": ("split", "dim is axis"),
    "unfold": ("im2col", "kernel_size is kernel"),
    "unsqueeze": ("expand_dims", "dim is axis"),
    "upsample": ("resize", "mode is method, scale_factor is not taken"),
    "var": ("variance", "so.var makes a symbol"),
    "view": ("reshape", "shape is a tuple"),
}

_NUMPY: _Names = {
    "array_split": ("split", "indices_or_sections is sections, and the parts have one length"),
    "average": ("mean", "it takes no weights"),
    "column_stack": ("concat", "axis=1, of matrices"),
    "compress": ("boolean_mask", "the mask comes second; size must be given"),
    "convolve": ("convolution", "it does not flip the weight"),
    "dstack": ("concat", "axis=2"),
    "extract": ("boolean_mask", "the mask comes second; size must be given"),
    "fabs": ("abs", "integers stay integers"),
    "fliplr": ("flip", "axis=1"),
    "flipud": ("flip", "axis=0"),
    "float_power": ("power", "integers stay integers"),
    "fmax": ("maximum", "a NaN wins"),
    "fmin": ("minimum", "a NaN wins"),
    "fmod": ("remainder", "the result has the sign of the divisor"),
    "hstack": ("concat", "axis=1, or 0 for vectors"),
    "inner": ("tensordot", "axes=((-1,), (-1,))"),
    "matrix_transpose": ("swapaxes", "axis1=-2, axis2=-1"),
    "nan_to_num": ("where", "where(isnan(x), 0.0, x)"),
    "ravel": ("reshape", "shape=(-1,)"),
    "randint": ("random_integers", "size is shape"),
    "rollaxis": ("moveaxis", "axis and start are source and destination"),
    "vdot": ("vecdot", "of vectors: reshape others"),
    "vstack": ("concat", "axis=0, of matrices"),
    "var": ("variance", "so.var makes a symbol; ddof is correction"),
}

_JAX: _Names = {
    "approx_max_k": ("topk", "operand and k as here; it is exact"),
    "approx_min_k": ("topk", "largest=False; it is exact"),
    "beta": ("random_beta", "shape is that of one draw for each a and b"),
    "broadcast": ("broadcast_to", "shape is the whole result's"),
    "broadcast_in_dim": ("broadcast_to", "axes are aligned at the end: reshape before"),
    "clamp": ("clip", "the array comes first, then low and high"),
    "conv": ("convolution", _CHANNELS),
    "conv_general_dilated": (
        "convolution",
        f"{_CHANNELS}; rhs_dilation is dilation, feature_group_count is groups",
    ),
    "conv_transpose": ("transposed_convolution", _CHANNELS),
    "convert_element_type": ("cast", "new_dtype is dtype"),
    "dot_general": ("einsum", "the axes are letters"),
    "dot_product_attention": (
        "scaled_dot_product_attention",
        "the axis of heads comes before that of time, is_causal is causal, local_window_size is "
        "window",
    ),
    "dynamic_slice_in_dim": ("dynamic_slice", "starts and sizes are of all axes"),
    "iota": ("arange", "stop is the length"),
    "mul": ("multiply", ""),
    "reduce_and": ("all", "axes is axis"),
    "reduce_or": ("any", "axes is axis"),
    "reduce_window": ("max_pooling", "or average_pooling, lp_pooling"),
    "rem": ("remainder", "the result has the sign of the divisor"),
    "rev": ("flip", "dimensions is axis"),
    "select": ("where", ""),
    "select_n": ("where", "the case for true comes first"),
    "shift_right_arithmetic": ("bitwise_right_shift", "of signed integers"),
    "shift_right_logical": ("bitwise_right_shift", "of unsigned integers"),
    "slice_in_dim": ("slice_axis", "start_index and limit_index are begin and end"),
    "standardize": ("layer_norm", "epsilon is eps, without gamma and beta"),
}

FOREIGN: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "MXNet": _MXNET,
    "Paddle": _PADDLE,
    "PyTorch": _PYTORCH,
    "NumPy": _NUMPY,
    "JAX": _JAX,
}
"""For each system: its name, the operator here, and the difference."""


def foreign(name: str) -> list[Foreign]:
    """Returns the meanings of ``name`` in other systems, possibly none or several."""
    return [Foreign(system, *table[name]) for system, table in FOREIGN.items() if name in table]


_MEMBERS = {
    "backward": "backward() of an eager array, and so.grad(loss, x) of symbols",
    "cpu": "to_device('cpu')",
    "cuda": "to_device('gpu')",
    "data_ptr": "asjax().unsafe_buffer_pointer()",
    "eval": "program.run(feed, fetch=[x]) for a variable of a program",
    "grad": "x.grad of an eager array, and so.grad(loss, x) of symbols",
    "numpy": "asnumpy() of an eager array, and eval(x=...) of a symbol",
    "clone": "copy() of an eager array",
    "requires_grad": "attach_grad() of an eager array",
    "requires_grad_": "attach_grad() of an eager array",
    "to": "to_device(device) or astype(dtype)",
}
"""Members of the arrays of other systems that are not operators, and what stands for them."""
KEYWORDS = {
    "activation": "act_type", "axes": "axis", "beta1": "b1", "beta2": "b2", "dilations": "dilate",
    "dim": "axis", "dims": "axis", "epsilon": "eps", "features": "units", "filters": "channels",
    "input": "x", "keep_dims": "keepdims", "keepdim": "keepdims", "kernel_size": "kernel",
    "lr": "learning_rate", "num_embeddings": "rows", "num_filter": "channels",
    "num_hidden": "units", "out_channels": "channels", "out_features": "units", "p": "rate",
    "padding": "pad", "size": "shape", "strides": "stride",
}  # fmt: skip
"""Keywords of other systems, and what the attribute or slot is called here."""


def member_elsewhere(name: str) -> str:
    """Returns a hint if arrays of other systems have the member ``name``, or ``""``."""
    return f"; it is {_MEMBERS[name]} here" if name in _MEMBERS else ""


def keyword_elsewhere(keyword: str, known: Container[str]) -> str:
    """Returns a hint if one of ``known`` stands for another system's ``keyword``, or ``""``."""
    return f"; did you mean {KEYWORDS[keyword]!r}?" if KEYWORDS.get(keyword) in known else ""


def known_elsewhere(name: str) -> str:
    """Returns ``"; MXNet's Dropout is dropout here (p is rate)"``, or ``""`` for other names."""
    owners: dict[tuple[str, str], list[str]] = {}
    for system, operator, differs in foreign(name):
        owners.setdefault((operator, differs), []).append(f"{system}'s")
    return "".join(
        f"; {' and '.join(systems)} {name} is {operator} here"
        + (f" ({differs})" if differs else "")
        for (operator, differs), systems in owners.items()
    )
