"""``mx.test_utils``: utilities for tests of MXNet's operators."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from symop.interop.mxnet import ndarray as nd
from symop.interop.mxnet.batches import DataBatch, DataIter
from symop.interop.mxnet.comparisons import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    collapse_sum_like,
    compare_ndarray_tuple,
    default_atols,
    default_numeric_eps,
    default_rtols,
    get_atol,
    get_etol,
    get_rtol,
    get_tols,
    np_reduce,
    retry,
    same,
    same_array,
)
from symop.interop.mxnet.context import num_gpus
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.generator_checks import (
    chi_square_check,
    gen_buckets_probs_with_ppf,
    mean_check,
    var_check,
    verify_generator,
)
from symop.interop.mxnet.random_arrays import (
    assign_each,
    assign_each2,
    create_2d_tensor,
    create_sparse_array,
    create_sparse_array_zd,
    create_vector,
    default_context,
    default_dtype,
    rand_coord_2d,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    rand_sparse_ndarray,
    random_arrays,
    random_sample,
    random_uniform_arrays,
    set_default_context,
)
from symop.interop.mxnet.symbol_checks import (
    check_consistency,
    check_numeric_gradient,
    check_speed,
    check_symbolic_backward,
    check_symbolic_forward,
    numeric_grad,
    simple_forward,
)

__all__ = [
    "DummyIter",
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err",
    "assert_exception",
    "assign_each",
    "assign_each2",
    "check_consistency",
    "check_numeric_gradient",
    "check_speed",
    "check_symbolic_backward",
    "check_symbolic_forward",
    "chi_square_check",
    "collapse_sum_like",
    "compare_ndarray_tuple",
    "compare_optimizer",
    "create_2d_tensor",
    "create_sparse_array",
    "create_sparse_array_zd",
    "create_vector",
    "default_atols",
    "default_context",
    "default_dtype",
    "default_numeric_eps",
    "default_rtols",
    "discard_stderr",
    "download",
    "download_model",
    "environment",
    "gen_buckets_probs_with_ppf",
    "get_atol",
    "get_bz2_data",
    "get_cifar10",
    "get_etol",
    "get_mnist",
    "get_mnist_iterator",
    "get_mnist_pkl",
    "get_mnist_ubyte",
    "get_rtol",
    "get_tols",
    "get_zip_data",
    "list_gpus",
    "mean_check",
    "np_reduce",
    "numeric_grad",
    "rand_coord_2d",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "rand_sparse_ndarray",
    "random_arrays",
    "random_sample",
    "random_uniform_arrays",
    "retry",
    "same",
    "same_array",
    "same_symbol_structure",
    "set_default_context",
    "simple_forward",
    "var_check",
    "verify_generator",
]


def list_gpus() -> range:
    """The indices of the GPUs."""
    return range(num_gpus())


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Sets environment variables, by name and value or as a dict; None unsets a variable."""
    wanted: Mapping[str, str | None] = args[0] if len(args) == 1 else {args[0]: args[1]}
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(wanted: Mapping[str, str | None]) -> None:
    for name, value in wanted.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """Discards output to the standard error stream."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        yield


class DummyIter(DataIter):
    """Repeats the first batch of an iterator endlessly."""

    def __init__(self, real_iter: DataIter) -> None:
        """See the class."""
        super().__init__(real_iter.batch_size)
        self.real_iter = real_iter
        self.provide_data, self.provide_label = real_iter.provide_data, real_iter.provide_label
        self.the_batch: DataBatch = next(real_iter)

    def next(self) -> DataBatch:
        """The batch."""
        return self.the_batch


def same_symbol_structure(sym1: Any, sym2: Any) -> bool:
    """Whether two symbols have the same operators in the same order."""
    both = [[node["op"] for node in json.loads(one.tojson())["nodes"]] for one in (sym1, sym2)]
    return both[0] == both[1]


def compare_optimizer(
    opt1: Any,
    opt2: Any,
    shape: Any,
    dtype: Any,
    w_stype: str = "default",
    g_stype: str = "default",
    rtol: float = 1e-4,
    atol: float = 1e-5,
    compare_states: bool = True,
    ntensors: int = 1,
) -> None:
    """Asserts that two optimizers update random parameters equally.

    Args:
        opt1: updates parameters one by one.
        opt2: updates all at once, if ``shape`` is a list of shapes.
        shape: the shape of the parameter, or a list of shapes.
        dtype: the dtype of the parameters.
        w_stype: the storage type of the parameters of ``opt2``.
        g_stype: the storage type of their gradients.
        rtol: see ``assert_almost_equal``.
        atol: see ``assert_almost_equal``.
        compare_states: whether to compare the states, too.
        ntensors: the number of parameters.
    """
    shapes = shape if isinstance(shape, list) else [shape]
    draws = [[np.random.rand(*one).astype(dtype) for one in shapes] for _ in "wg"]
    first, second = [[[_array(x) for x in one] for one in draws] for _ in "12"]
    second = [
        [one.tostype(stype) for one in part]
        for part, stype in zip(second, (w_stype, g_stype), strict=True)
    ]
    states = [opt2.create_state_multi_precision(i, one) for i, one in enumerate(second[0])]
    if isinstance(shape, list):
        opt2.update_multi_precision(list(range(ntensors)), *second, states)
    else:
        opt2.update_multi_precision(0, second[0][0], second[1][0], states[0])
    for i, (weight, grad) in enumerate(zip(*first, strict=True)):
        state = opt1.create_state_multi_precision(i, weight)
        opt1.update_multi_precision(i, weight, grad, state)
        if compare_states:
            compare_ndarray_tuple(state, states[i], rtol, atol)
        assert_almost_equal(weight, second[0][i], rtol, atol)


def _array(value: np.ndarray) -> Any:
    return nd.array(value, dtype=value.dtype)


# Downloads -------------------------------------------------------------------------------------


def download(url: str, *args: Any, **kwargs: Any) -> NoReturn:
    """MXNet's function to download a file, which is not supported.

    Raises:
        MXNetError: always; the message names the alternative.
    """
    raise MXNetError(f"download: nothing is fetched from the network here; get {url} yourself")


def _not_fetched(what: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise MXNetError(
            f"{what}: nothing is fetched from the network here; read the arrays from files of "
            "yours and give them to mx.io.NDArrayIter"
        )

    refuse.__name__ = refuse.__qualname__ = what
    refuse.__doc__ = "What MXNet fetches from the network: an ``MXNetError`` that says so."
    return refuse


download_model, get_mnist = _not_fetched("download_model"), _not_fetched("get_mnist")
get_mnist_pkl, get_mnist_ubyte = _not_fetched("get_mnist_pkl"), _not_fetched("get_mnist_ubyte")
get_mnist_iterator, get_cifar10 = _not_fetched("get_mnist_iterator"), _not_fetched("get_cifar10")
get_zip_data, get_bz2_data = _not_fetched("get_zip_data"), _not_fetched("get_bz2_data")
