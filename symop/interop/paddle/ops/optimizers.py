"""Updates of parameters; learning rates have shape (1,)."""

from typing import Any

import symop as so
from symop.interop.paddle.operators import operator


def _rate(learning_rate: Any) -> Any:
    return so.reshape(learning_rate, shape=())


@operator(outputs="ParamOut", ignored="multi_precision")
def sgd(Param: Any, Grad: Any, LearningRate: Any) -> Any:
    return so.sgd(Param, Grad, _rate(LearningRate))
