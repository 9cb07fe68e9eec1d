"""Update operators under their names in ``mx.nd.contrib`` and ``mx.sym.contrib``."""

from collections.abc import Callable, Sequence
from typing import Any

Function = Callable[..., Any]
Find = Callable[[str], Function]
ScaleOf = Callable[[Any], Any]


def updates(called: Find, scale_of: ScaleOf) -> dict[str, Function]:
    """The functions of AdamW by name.

    Args:
        called: returns an operator by its name.
        scale_of: converts ``rescale_grad`` to a value.
    """
    both = _adamw(called, scale_of), _mp_adamw(called, scale_of)
    return {one.__name__: one for one in both}


def _adamw(called: Find, scale_of: ScaleOf) -> Function:
    def adamw_update(
        weight: Any,
        grad: Any,
        mean: Any,
        var: Any,
        rescale_grad: Any,
        lr: float,
        eta: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        wd: float = 0.0,
        clip_gradient: float = -1.0,
        **others: Any,
    ) -> Any:
        """A step of AdamW; ``rescale_grad`` may be a number."""
        how = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd}
        arrays = [weight, grad, mean, var, scale_of(rescale_grad)]
        return called("_adamw_update")(*arrays, clip_gradient=clip_gradient, **how, **others)

    return adamw_update


def _mp_adamw(called: Find, scale_of: ScaleOf) -> Function:
    def mp_adamw_update(
        weight: Any,
        grad: Any,
        mean: Any,
        var: Any,
        weight32: Any,
        rescale_grad: Any,
        lr: float,
        eta: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        wd: float = 0.0,
        clip_gradient: float = -1.0,
        **others: Any,
    ) -> Any:
        """``adamw_update`` of a half-precision weight with a single-precision copy."""
        how = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd}
        arrays = [weight, grad, mean, var, weight32, scale_of(rescale_grad)]
        return called("_mp_adamw_update")(*arrays, clip_gradient=clip_gradient, **how, **others)

    return mp_adamw_update


def updates_of_several(called: Find, scale_of: ScaleOf) -> dict[str, Function]:
    """The functions that update several weights, by name; see ``updates``.

    They take lists of weights, gradients, and states of each kind.
    """
    every = (*_adamw_of_several(called, scale_of), *_lamb_of_several(called))
    return {one.__name__: one for one in every}


def _adamw_of_several(called: Find, scale_of: ScaleOf) -> list[Function]:
    def multi_adamw_update(
        weights: Sequence[Any],
        grads: Sequence[Any],
        mean: Sequence[Any],
        var: Sequence[Any],
        rescale_grad: Any,
        lrs: Sequence[float],
        wds: Sequence[float],
        etas: Sequence[float],
        size: int = 0,
        **others: Any,
    ) -> Any:
        """A step of AdamW for each weight; ``rescale_grad`` may be a number."""
        inputs = [*_in_turn(weights, grads, mean, var), scale_of(rescale_grad)]
        how: dict[str, Any] = {"lrs": tuple(lrs), "wds": tuple(wds), "etas": tuple(etas)}
        how["num_weights"] = size or len(weights)
        return called("_multi_adamw_update")(*inputs, **how, **others)

    def multi_mp_adamw_update(
        weights: Sequence[Any],
        grads: Sequence[Any],
        mean: Sequence[Any],
        var: Sequence[Any],
        weights32: Sequence[Any],
        rescale_grad: Any,
        lrs: Sequence[float],
        wds: Sequence[float],
        etas: Sequence[float],
        size: int = 0,
        **others: Any,
    ) -> Any:
        """``multi_adamw_update`` of half-precision weights with single-precision copies."""
        inputs = [*_in_turn(weights, grads, mean, var, weights32), scale_of(rescale_grad)]
        how: dict[str, Any] = {"lrs": tuple(lrs), "wds": tuple(wds), "etas": tuple(etas)}
        how["num_weights"] = size or len(weights)
        return called("_multi_mp_adamw_update")(*inputs, **how, **others)

    return [multi_adamw_update, multi_mp_adamw_update]


def _lamb_of_several(called: Find) -> list[Function]:
    def lamb(name: str, lists: Sequence[Sequence[Any]], how: dict[str, Any], count: int) -> Any:
        how["learning_rates"] = how.pop("lrs")
        plain = {k: tuple(x) if k in _LISTS and x is not None else x for k, x in how.items()}
        return called(name)(*_in_turn(*lists), num_tensors=count or len(lists[0]), **plain)

    def multi_lamb_update(
        weights: Sequence[Any],
        grads: Sequence[Any],
        mean: Sequence[Any],
        var: Sequence[Any],
        step_count: Sequence[int],
        lrs: Sequence[float],
        wds: Sequence[float],
        num_tensors: int = 0,
        **others: Any,
    ) -> Any:
        """A step of LAMB for each weight."""
        how = {"step_count": step_count, "lrs": lrs, "wds": wds, **others}
        return lamb("_multi_lamb_update", (weights, grads, mean, var), how, num_tensors)

    def multi_mp_lamb_update(
        weights: Sequence[Any],
        grads: Sequence[Any],
        mean: Sequence[Any],
        var: Sequence[Any],
        weights32: Sequence[Any],
        step_count: Sequence[int],
        lrs: Sequence[float],
        wds: Sequence[float],
        num_tensors: int = 0,
        **others: Any,
    ) -> Any:
        """``multi_lamb_update`` of half-precision weights with single-precision copies."""
        how = {"step_count": step_count, "lrs": lrs, "wds": wds, **others}
        lists = (weights, grads, mean, var, weights32)
        return lamb("_multi_mp_lamb_update", lists, how, num_tensors)

    return [multi_lamb_update, multi_mp_lamb_update]


_LISTS = ("learning_rates", "wds", "step_count")


def _in_turn(*lists: Sequence[Any]) -> list[Any]:
    """Interleaves lists: all items of the first weight, then of the second, and so on."""
    return [one for own in zip(*lists, strict=True) for one in own]
