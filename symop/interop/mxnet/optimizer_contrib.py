"""``mx.optimizer.contrib``: an optimizer with row-wise rates."""

from typing import Any

from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.base_optimizer import Formula, Found, How, Index, Numbers, register
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.ops.adaptive_optimizers import group_adagrad_update
from symop.interop.mxnet.sparse_arrays import zeros_stored


@register
class GroupAdaGrad(Formula):
    """Adagrad with one rate for each row of a parameter, which must not have weight decay."""

    settings = ("float_stable_eps",)
    on_rows = "rows"

    def __init__(self, eps: float = 1e-5, **kwargs: Any) -> None:
        """See ``Optimizer``; ``eps`` is added to the mean squares."""
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Creates a number for each row.

        Raises:
            MXNetError: the parameter is not a matrix.
        """
        if weight.ndim != 2:
            raise MXNetError(f"GroupAdaGrad: parameters must have 2 axes, got {weight.shape}")
        return zeros_stored(weight.stype, (weight.shape[0], 1), weight.dtype, weight.context)

    def step(self, weight: Any, grad: Any, state: Any, how: How, more: Numbers) -> Found:
        """``_contrib_group_adagrad_update``.

        Raises:
                MXNetError: the weight decay is not zero.
        """
        decay = how.pop("wd")
        if decay:
            raise MXNetError(f"GroupAdaGrad: wd must be 0, got {decay}")
        moved: Found = group_adagrad_update(
            weight, grad, state, epsilon=self.float_stable_eps, **how
        )
        return moved
