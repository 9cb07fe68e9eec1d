"""Checks of symbols in tests: outputs, gradients, and gradients against finite differences."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from registry.types import is_floating
from symop.interop.mxnet import symbol as symbols
from symop.interop.mxnet.arrays import NDArray, array_of
from symop.interop.mxnet.comparisons import Tolerance, assert_almost_equal, get_tols, plain
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.symbols import Symbol

Location = Mapping[str, Any] | Sequence[Any]
_WAY = "__random_proj"
"""The variable that holds the random direction of the check, named as in MXNet."""
_EPS = {"float16": 2.0**-6, "float32": 2.0**-9, "float64": 2.0**-14}


def _located(names: Sequence[str], given: Location | None, dtype: Any) -> dict[str, NDArray]:
    """Arrays by name.

    Raises:
        ValueError: names are missing or unexpected.
    """
    found = (
        dict(given) if isinstance(given, Mapping) else dict(zip(names, given or (), strict=False))
    )
    if set(found) != set(names):
        raise ValueError(f"location: arrays must be given for {list(names)}, got {list(found)}")
    return {name: _array(found[name], dtype) for name in names}


def _array(value: Any, dtype: Any) -> NDArray:
    if isinstance(value, NDArray):
        return value
    plain = np.asarray(value)
    return array_of(plain, plain.dtype if dtype == "asnumpy" else dtype)


def _gradient(before: Any, dtype: Any, stypes: Any, name: str) -> NDArray:
    """An array for a gradient, with the given contents, in the storage type given by name."""
    stype = (stypes or {}).get(name) or "default"
    made: NDArray = array_of(before, dtype).tostype(stype)
    return made


def _dtype(given: Any) -> Any:
    """The dtype of a check; float64 requires JAX's 64-bit mode.

    Raises:
        MXNetError: the mode is disabled.
    """
    chosen = np.float32 if given is None else given
    if chosen is np.float64 and jax.dtypes.canonicalize_dtype(chosen) != np.float64:
        raise MXNetError("test_utils: float64 needs jax.config.update('jax_enable_x64', True)")
    return chosen


def simple_forward(sym: Symbol, ctx: Any = None, is_train: bool = False, **inputs: Any) -> Any:
    """The outputs as NumPy arrays, one or a list."""
    arrays = {name: array_of(np.asarray(one), np.float32) for name, one in inputs.items()}
    found = [one.asnumpy() for one in sym.bind(ctx, arrays).forward(is_train)]
    return found[0] if len(found) == 1 else found


def numeric_grad(
    executor: Executor,
    location: Mapping[str, np.ndarray],
    aux_states: Mapping[str, Any] | None = None,
    eps: float = 1e-4,
    use_forward_train: bool = True,
    dtype: Any = None,
) -> dict[str, np.ndarray]:
    """Gradients of the sum of the first output by central differences.

    Args:
        executor: the executor.
        location: arguments by name; gradients by integers are zero. Others keep their arrays.
        aux_states: auxiliary states before each pass.
        eps: the step.
        use_forward_train: whether operators behave as in training.
        dtype: has no effect.
    """
    del dtype
    held = {name: np.array(one) for name, one in location.items()}

    def total(changed: Mapping[str, np.ndarray]) -> float:
        for name, one in (aux_states or {}).items():
            executor.aux_dict[name].hold(_array(one, executor.aux_dict[name].dtype).value)
        found = executor.forward(use_forward_train, **changed)[0].asnumpy()
        return float(found.astype(np.float64).sum())

    gradients = {}
    total(held)
    for name, array in held.items():
        gradient = gradients[name] = np.zeros(array.shape, np.float64)
        for place in np.ndindex(array.shape) if is_floating(array.dtype) else ():
            old = array[place]
            sums = []
            for step in (0.5, -0.5):
                array[place] = old + step * eps
                sums.append(total({name: array}))
            array[place] = old
            gradient[place] = (sums[0] - sums[1]) / eps
        total({name: array})  # restores it
    return gradients


def check_numeric_gradient(
    sym: Symbol,
    location: Location,
    aux_states: Location | None = None,
    numeric_eps: Tolerance = None,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    grad_nodes: Any = None,
    use_forward_train: bool = True,
    ctx: Any = None,
    grad_stype_dict: Any = None,
    dtype: Any = None,
) -> None:
    """Asserts that gradients agree with differences, along a random direction of the output.

    Args:
        sym: a symbol with one output.
        location: arrays of its arguments.
        aux_states: arrays of its auxiliary states.
        numeric_eps: the step; the default depends on the dtype.
        rtol: see ``assert_almost_equal``.
        atol: see ``assert_almost_equal``.
        grad_nodes: names of the checked arguments, or a request for each; defaults to all.
        use_forward_train: whether differences are computed in training mode.
        ctx: has no effect.
        grad_stype_dict: storage types of gradients by name.
        dtype: the dtype of the arrays; defaults to float32.

    Raises:
        AssertionError: they differ.
    """
    dtype = _dtype(dtype)
    arrays = _located(sym.list_arguments(), location, dtype)
    states = _located(sym.list_auxiliary_states(), aux_states, dtype)
    names = list(arrays) if grad_nodes is None else list(grad_nodes)
    requests = _by_argument(names, grad_nodes if isinstance(grad_nodes, Mapping) else "write")
    _, shapes, _ = sym.infer_shape(**{name: one.shape for name, one in arrays.items()})
    assert shapes is not None
    arrays[_WAY] = array_of(np.random.rand(*shapes[0]) + 0.1, dtype)
    before = {name: np.random.normal(0, 0.01, arrays[name].shape) for name in [*names, _WAY]}
    executor = symbols.make_loss(symbols.elemwise_mul(sym, symbols.var(_WAY))).bind(
        ctx,
        arrays,
        {name: _gradient(one, dtype, grad_stype_dict, name) for name, one in before.items()},
        requests | {_WAY: "write"},
        {name: one.copy() for name, one in states.items()},
    )
    executor.forward(is_train=True)
    executor.backward()
    at, held = [{n: one.asnumpy() for n, one in part.items()} for part in (arrays, states)]
    eps = _difference(numeric_eps, np.dtype(dtype))
    wanted_at = {name: at[name] for name in names}  # the executor holds the other arrays
    expected = numeric_grad(executor, wanted_at, held, eps, use_forward_train)
    for name in names:
        labels = (f"NUMERICAL_{name}", f"BACKWARD_{name}")
        wanted = _requested(requests[name], expected[name].astype(dtype), before[name])
        assert_almost_equal(wanted, executor.grad_dict[name], rtol, atol, labels)


def _difference(told: Tolerance, dtype: np.dtype) -> float:
    """The given step for a dtype, or its default."""
    eps = told.get(dtype) if isinstance(told, Mapping) else told
    return _EPS[dtype.name] if eps is None else eps


def _by_argument(names: Sequence[str], given: Any) -> dict[str, Any]:
    """Values by argument, given for all, in order or by name."""
    if isinstance(given, str):
        return dict.fromkeys(names, given)
    return dict(given) if isinstance(given, Mapping) else dict(zip(names, given, strict=False))


def _requested(request: str, gradient: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The expected content of a gradient array after a backward pass."""
    held: np.ndarray = {"write": gradient, "add": gradient + before, "null": before}[request]
    return held


def check_symbolic_forward(
    sym: Symbol,
    location: Location,
    expected: Location,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    aux_states: Location | None = None,
    ctx: Any = None,
    equal_nan: bool = False,
    dtype: Any = None,
) -> list[NDArray]:
    """Asserts that the outputs are as expected.

    Args:
        sym: the symbol.
        location: arrays of its arguments, in order or by name.
        expected: the expected outputs, in order or by name.
        rtol: see ``assert_almost_equal``.
        atol: see ``assert_almost_equal``.
        aux_states: arrays of its auxiliary states.
        ctx: has no effect.
        equal_nan: see ``assert_almost_equal``.
        dtype: the dtype of the arrays; defaults to float32. ``"asnumpy"`` keeps their dtypes.

    Returns:
        The outputs.
    """
    dtype = _dtype(dtype)
    arrays = _located(sym.list_arguments(), location, dtype)
    states = _located(sym.list_auxiliary_states(), aux_states, dtype)
    result = sym.bind(ctx, arrays, aux_states=states).forward()
    names = sym.list_outputs()
    listed = [expected[n] for n in names] if isinstance(expected, Mapping) else expected
    for name, wanted, one in zip(names, listed, result, strict=False):
        labels = (f"EXPECTED_{name}", f"FORWARD_{name}")
        assert_almost_equal(wanted, one, rtol, atol, labels, equal_nan)
    return result


def check_symbolic_backward(
    sym: Symbol,
    location: Location,
    out_grads: Any,
    expected: Location,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    aux_states: Location | None = None,
    grad_req: Any = "write",
    ctx: Any = None,
    grad_stypes: Any = None,
    equal_nan: bool = False,
    dtype: Any = None,
) -> dict[str, NDArray]:
    """Asserts that the gradients are as expected.

    Args:
        sym: the symbol.
        location: arrays of its arguments, in order or by name.
        out_grads: gradients of its outputs, in order or by name; None means ones.
        expected: the expected gradients, in order or by name.
        rtol: see ``assert_almost_equal``.
        atol: see ``assert_almost_equal``.
        aux_states: arrays of its auxiliary states.
        grad_req: gradient requests, for all, in order or by name.
        ctx: has no effect.
        grad_stypes: storage types of gradients by name.
        equal_nan: see ``assert_almost_equal``.
        dtype: the dtype of the arrays; defaults to float32. ``"asnumpy"`` keeps their dtypes.

    Returns:
        The gradients.
    """
    dtype, names = _dtype(dtype), sym.list_arguments()
    arrays = _located(names, location, dtype)
    states = _located(sym.list_auxiliary_states(), aux_states, dtype)
    wanted, requests = _by_argument(names, expected), _by_argument(names, grad_req)
    before = {name: np.random.normal(size=np.shape(one)) for name, one in wanted.items()}
    held = {
        name: _gradient(one, arrays[name].dtype, grad_stypes, name) for name, one in before.items()
    }
    executor = sym.bind(ctx, arrays, held, requests, states)
    executor.forward(is_train=True)
    if isinstance(out_grads, Mapping):
        out_grads = [out_grads[name] for name in sym.list_outputs()]
    if out_grads is not None:
        out_grads = [_array(one, dtype) for one in out_grads]
    executor.backward(out_grads)
    for name, one in wanted.items():
        labels = (f"EXPECTED_{name}", f"BACKWARD_{name}")
        found = _requested(requests[name], plain(one), before[name])
        assert_almost_equal(found, held[name], rtol, atol, labels, equal_nan)
    return held


def check_consistency(
    sym: Symbol | Sequence[Symbol],
    ctx_list: Sequence[Mapping[str, Any]],
    scale: float = 1.0,
    grad_req: str = "write",
    arg_params: Mapping[str, Any] | None = None,
    aux_params: Mapping[str, Any] | None = None,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    raise_on_err: bool = True,
    ground_truth: Mapping[str, Any] | None = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
    rand_type: Any = np.float64,
) -> dict[str, Any]:
    """Asserts that a symbol gives equal results in several dtypes, or that several symbols do.

    Args:
        sym: the symbol, or one for each of ``ctx_list``.
        ctx_list: keyword arguments of ``simple_bind``: a context, shapes and a ``type_dict``.
        scale: the scale of random arguments.
        grad_req: ``"write"``, ``"add"`` or ``"null"``.
        arg_params: arguments by name; random by default.
        aux_params: auxiliary states by name; zeros by default.
        rtol: see ``assert_almost_equal``.
        atol: see ``assert_almost_equal``.
        raise_on_err: has no effect: differences always raise.
        ground_truth: the reference results; defaults to those of the highest precision.
        equal_nan: see ``assert_almost_equal``.
        use_uniform: whether random arguments are uniform instead of normal.
        rand_type: the dtype in which random arguments are drawn.

    Returns:
        The reference outputs and gradients by name.
    """
    del raise_on_err
    symbols = [sym] * len(ctx_list) if isinstance(sym, Symbol) else list(sym)
    pairs = zip(symbols, ctx_list, strict=True)
    executors = [one.simple_bind(grad_req=grad_req, **own) for one, own in pairs]
    given, states = dict(arg_params or {}), dict(aux_params or {})
    drawn = np.random.uniform if use_uniform else np.random.normal
    bounds = (-0.92 * scale, 0.92 * scale) if use_uniform else (0.0, scale)
    for name, array in sorted(executors[0].arg_dict.items()):
        given.setdefault(name, drawn(*bounds, size=array.shape).astype(rand_type))
    results = [_ran(one, given, states, grad_req) for one in executors]
    widest = int(np.argmax([np.dtype(one.outputs[0].dtype).itemsize for one in executors]))
    truth = dict(ground_truth or results[widest])
    for i, found in enumerate(results):
        for name, one in found.items():
            if i != widest and one is not None and truth.get(name) is not None:
                tolerances = get_tols(one, truth[name], rtol, atol)
                assert_almost_equal(one, truth[name], *tolerances, (name, "truth"), equal_nan)
    return truth


def _ran(
    executor: Executor, given: Mapping[str, Any], states: Mapping[str, Any], grad_req: str
) -> dict[str, Any]:
    """Outputs and gradients of one executor."""
    for name, array in executor.arg_dict.items():
        array.hold(array_of(np.asarray(given[name]), array.dtype).value)
    for name, array in executor.aux_dict.items():
        full = np.broadcast_to(np.asarray(states.get(name, 0)), array.shape)
        array.hold(array_of(full, array.dtype).value)
    result: dict[str, Any] = {}
    executor.forward(is_train=grad_req != "null")
    result.update(executor.output_dict)
    if grad_req != "null":
        executor.backward([array_of(one.value) for one in executor.outputs])
        result.update({name: one for name, one in executor.grad_dict.items() if one is not None})
    return result


def check_speed(
    sym: Symbol,
    location: Mapping[str, np.ndarray] | None = None,
    ctx: Any = None,
    N: int = 20,  # MXNet's name
    grad_req: str = "write",
    typ: str = "whole",
    **kwargs: Any,
) -> float:
    """The seconds of a forward pass, plus a backward pass unless ``typ`` is ``"forward"``."""
    shapes = {name: one.shape for name, one in (location or {}).items()} or kwargs
    executor = sym.simple_bind(ctx, grad_req, **shapes)
    for name, array in executor.arg_dict.items():
        value = np.random.normal(size=array.shape) if location is None else location[name]
        array.hold(array_of(value, array.dtype).value)

    def once() -> None:
        executor.forward(is_train=typ == "whole")
        if typ == "whole":
            executor.backward([array_of(one.value) for one in executor.outputs])
        for one in executor.outputs:
            one.wait_to_read()

    once()
    start = time.perf_counter()
    for _ in range(N):
        once()
    return (time.perf_counter() - start) / N
