"""Steps of several weights at once, and the rates of LARS, which depend on norms of all of them.

The inputs of each weight are adjacent: the weight, its gradient, its states. The new weights are
followed by the new states, in the order of the inputs.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import symop as so
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.operators import StateName, operator
from symop.interop.mxnet.ops.adaptive_optimizers import adamw_step
from symop.interop.mxnet.ops.lamb import lamb_update
from symop.interop.mxnet.ops.optimizers import of_copy, sgd_mom_update, sgd_update
from symop.interop.mxnet.ops.precision import single
from symop.interop.mxnet.partial_dtypes import same_inputs
from symop.interop.mxnet.partial_shapes import Shapes, enter, same

_STATES = ("mom", "mean", "var", "weight32")


def _kinds(*kept: str, is_mixed: bool) -> tuple[str, ...]:
    """The kinds of inputs of one weight."""
    return ("weight", "grad", *kept, *(("weight32",) if is_mixed else ()))


def _names(kinds: Sequence[str], count: int, tail: Sequence[str]) -> tuple[str, ...]:
    """Names of the inputs."""
    kind_of = {kind: StateName if kind in _STATES else str for kind in kinds}
    return (*[kind_of[kind](f"{kind}_{i}") for i in range(count) for kind in kinds], *tail)


def _outputs(num_weights: int) -> tuple[str, ...]:
    return tuple(f"output{i}" for i in range(num_weights)) if num_weights > 1 else ("output",)


def _outputs_of_tensors(num_tensors: int) -> tuple[str, ...]:
    return _outputs(num_tensors)


def _fill(given: Shapes, found: Shapes, width: int, count: int) -> None:
    """All inputs of one weight have the same shape."""
    for i in range(count):
        own, out = given[width * i : width * (i + 1)], found[i : i + 1]
        same(own, out)
        given[width * i : width * (i + 1)], found[i : i + 1] = own, out


def _rules(kinds: Sequence[str], *tail: str) -> dict[str, Any]:
    """Rules of an operator with ``num_weights`` weights."""

    def shapes(given: Shapes, found: Shapes, num_weights: int) -> None:
        _fill(given, found, len(kinds), num_weights)

    return {
        "present": lambda num_weights: _names(kinds, num_weights, tail),
        "outputs": _outputs,
        "shapes": shapes,
        "dtypes": "free",
    }


def _stepped(
    name: str,
    data: Sequence[Any],
    count: int,
    each: Callable[[Sequence[Any], int], Sequence[Any]],
    **numbers: Any,
) -> tuple[Any, ...]:
    """New weights and new states, computed by ``each`` from the inputs of a weight.

    Raises:
        MXNetError: some ``numbers`` do not match the number of weights.
    """
    for what, one in numbers.items():
        length = len(one) if isinstance(one, tuple) else math.prod(one.shape)
        if length != count:
            raise MXNetError(f"{name}: {what} must be {count}, one for each weight, got {length}")
    width = len(data) // count
    found = [each(data[width * i : width * (i + 1)], i) for i in range(count)]
    return (*[one[0] for one in found], *[new for one in found for new in one[1:]])


def _at(numbers: Any, i: int, like: Any) -> Any:
    """One of some numbers; one from an array is reshaped to multiply arrays like ``like``."""
    if isinstance(numbers, tuple):
        return numbers[i]
    one = so.slice_axis(so.reshape(numbers, shape=(-1,)), axis=0, begin=i, end=i + 1)
    return so.reshape(so.cast(one, dtype=like.dtype), shape=(1,) * len(like.shape))


# Gradient descent ------------------------------------------------------------------------------


def _descent(is_moving: bool, is_mixed: bool, data: Sequence[Any], how: dict[str, Any]) -> Any:
    """A step of each weight; ``how`` contains rates, decays and their number."""
    update: Callable[..., Any] = sgd_mom_update if is_moving else sgd_update
    lrs, wds, count = (how.pop(name) for name in ("lrs", "wds", "num_weights"))

    def each(inputs: Sequence[Any], i: int) -> Sequence[Any]:
        rates = {"lr": _at(lrs, i, inputs[-1]), "wd": _at(wds, i, inputs[-1])}
        return of_copy(update, inputs, is_mixed, **rates, **how)

    return _stepped("multi_sgd", data, count, each, lrs=lrs, wds=wds)


def _declare_descent(name: str, is_mixed: bool) -> None:
    """Declares descent with rates given as attributes."""

    @operator(f"{name}_update", **_rules(_kinds(is_mixed=is_mixed)))
    def plain(
        *data: Any,
        lrs: tuple[float, ...],
        wds: tuple[float, ...],
        rescale_grad: float = 1.0,
        clip_gradient: float = -1.0,
        num_weights: int = 1,
    ) -> Any:
        """A step of each weight."""
        how = {"rescale_grad": rescale_grad, "clip_gradient": clip_gradient}
        lists = {"lrs": lrs, "wds": wds, "num_weights": num_weights}
        return _descent(False, is_mixed, data, {**how, **lists})

    @operator(f"{name}_mom_update", **_rules(_kinds("mom", is_mixed=is_mixed)))
    def moving(
        *data: Any,
        lrs: tuple[float, ...],
        wds: tuple[float, ...],
        momentum: float = 0.0,
        rescale_grad: float = 1.0,
        clip_gradient: float = -1.0,
        num_weights: int = 1,
    ) -> Any:
        """A step of each weight with momentum."""
        how = {"rescale_grad": rescale_grad, "clip_gradient": clip_gradient, "momentum": momentum}
        lists = {"lrs": lrs, "wds": wds, "num_weights": num_weights}
        return _descent(True, is_mixed, data, {**how, **lists})


def _declare_preloaded(name: str, is_mixed: bool) -> None:
    """Declares descent whose last two inputs are rates and decays."""
    still, kept = (_kinds(*mom, is_mixed=is_mixed) for mom in ((), ("mom",)))

    @operator(f"preloaded_{name}_update", **_rules(still, "lrs", "wds"))
    def plain(
        *data: Any, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1
    ) -> Any:
        """A step of each weight; the last two inputs are rates and decays."""
        how = {"rescale_grad": rescale_grad, "clip_gradient": clip_gradient}
        lists = {"lrs": data[-2], "wds": data[-1], "num_weights": num_weights}
        return _descent(False, is_mixed, data[:-2], {**how, **lists})

    @operator(f"preloaded_{name}_mom_update", **_rules(kept, "lrs", "wds"))
    def moving(
        *data: Any,
        momentum: float = 0.0,
        rescale_grad: float = 1.0,
        clip_gradient: float = -1.0,
        num_weights: int = 1,
    ) -> Any:
        """A step of each weight with momentum; the last two inputs are rates and decays."""
        how = {"rescale_grad": rescale_grad, "clip_gradient": clip_gradient, "momentum": momentum}
        lists = {"lrs": data[-2], "wds": data[-1], "num_weights": num_weights}
        return _descent(True, is_mixed, data[:-2], {**how, **lists})


# Adam and LAMB ---------------------------------------------------------------------------------


def _declare_adamw(is_mixed: bool) -> None:
    """Declares AdamW."""
    name = "_multi_mp_adamw_update" if is_mixed else "_multi_adamw_update"

    @operator(name, **_rules(_kinds("mean", "var", is_mixed=is_mixed), "rescale_grad"))
    def adamw(
        *data: Any,
        lrs: tuple[float, ...],
        wds: tuple[float, ...],
        etas: tuple[float, ...],
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        clip_gradient: float = -1.0,
        num_weights: int = 1,
    ) -> Any:
        """A step of AdamW for each weight; none if the last input, a scale, is invalid."""
        how = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "clip_gradient": clip_gradient}

        def each(inputs: Sequence[Any], i: int) -> Sequence[Any]:
            own = {"lr": lrs[i], "wd": wds[i], "eta": etas[i], "rescale_grad": data[-1]}
            return of_copy(adamw_step, inputs, is_mixed, **own, **how)

        lists = {"lrs": lrs, "wds": wds, "etas": etas}
        return _stepped(name, data[:-1], num_weights, each, **lists)


def _declare_lamb(is_mixed: bool) -> None:
    """Declares LAMB."""
    name = "_multi_mp_lamb_update" if is_mixed else "_multi_lamb_update"
    kinds = _kinds("mean", "var", is_mixed=is_mixed)

    def shapes(given: Shapes, found: Shapes, num_tensors: int) -> None:
        _fill(given, found, len(kinds), num_tensors)

    @operator(
        name,
        present=lambda num_tensors: _names(kinds, num_tensors, ()),
        outputs=_outputs_of_tensors,
        shapes=shapes,
        dtypes="free",
    )
    def lamb(
        *data: Any,
        learning_rates: tuple[float, ...],
        wds: tuple[float, ...],
        step_count: tuple[int, ...],
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        rescale_grad: float = 1.0,
        lower_bound: float = -1.0,
        upper_bound: float = -1.0,
        clip_gradient: float = -1.0,
        bias_correction: bool = True,
        num_tensors: int = 1,
    ) -> Any:
        """A step of LAMB for each weight, scaled to the weight's norm."""
        how = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "rescale_grad": rescale_grad}
        how |= {"lower_bound": lower_bound, "upper_bound": upper_bound}
        how |= {"clip_gradient": clip_gradient, "bias_correction": bias_correction}

        def each(inputs: Sequence[Any], i: int) -> Sequence[Any]:
            own = {"lr": learning_rates[i], "wd": wds[i], "t": step_count[i]}
            return of_copy(lamb_update, inputs, is_mixed, measured=inputs[0], **own, **how)

        lists = {"learning_rates": learning_rates, "wds": wds, "step_count": step_count}
        return _stepped(name, data, num_tensors, each, **lists)


for _is_mixed, _name in ((False, "multi_sgd"), (True, "multi_mp_sgd")):
    _declare_descent(_name, _is_mixed)
    _declare_preloaded(_name, _is_mixed)
    _declare_adamw(_is_mixed)
    _declare_lamb(_is_mixed)


# Rates of LARS ---------------------------------------------------------------------------------


def _sums(given: Shapes, found: Shapes, num_arrays: int) -> None:
    del given
    enter(found, 0, (num_arrays,))


@operator(
    "multi_sum_sq",
    present=lambda num_arrays: [f"array_{i}" for i in range(num_arrays)],
    shapes=_sums,
    dtypes=same_inputs,
)
def multi_sum_sq(*data: Any, num_arrays: int) -> Any:
    """The sum of the squares of each array, in float32."""
    del num_arrays
    sums = [so.sum(so.square(so.cast(one, dtype="float32"))) for one in data]
    return so.stack(*sums, axis=0)


@operator("multi_lars", shapes=same)
def multi_lars(
    lrs: Any,
    weights_sum_sq: Any,
    grads_sum_sq: Any,
    wds: Any,
    *,
    eta: float,
    eps: float,
    rescale_grad: float = 1.0,
) -> Any:
    """Rates scaled by the norms of weights and gradients, where these are nonzero."""
    length, slope = so.sqrt(weights_sum_sq), so.sqrt(grads_sum_sq)
    known = so.logical_and(so.greater(length, 0.0), so.greater(slope, 0.0))
    decay = slope * single(rescale_grad, lrs) + wds * length + single(eps, lrs)
    moved = lrs * single(eta, lrs) * length / so.where(known, decay, so.ones_like(decay))
    return so.where(known, moved, lrs)


@operator(
    "reset_arrays",
    present=lambda num_arrays: [StateName(f"array_{i}") for i in range(num_arrays)],
    outputs=lambda: (),
    dtypes="free",
)
def reset_arrays(*data: Any, num_arrays: int) -> Any:
    """Zeros for all arrays, which are written in place; there are no outputs."""
    del num_arrays
    return tuple(so.zeros_like(one) for one in data)
