"""Exchanges between devices when an optimizer updates parameters that are split over them.

An optimizer that works entry by entry exchanges nothing. Norms of gradients or parameters are
reduced over devices, and what multiplies whole matrices gathers them.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves_with_path

from registry.shardings import Sharding
from symop.planning.propagation import Collective, Sizes, bytes_on_device, exchange, followed
from symop.training.placing import parameter_in
from symop.training.protocol import calling_optimizer, extra_arguments

Arrays = dict[str, Any]
Evaluate = Callable[[Arrays], tuple[Any, Arrays]]
"""Returns the loss and its gradients, of values of all variables."""


class Update(NamedTuple):
    """An optimizer, and the variables of the graph whose parameters it updates.

    Attributes:
        optimizer: an optax gradient transformation.
        parameters: the parameters by name, without values.
        others: the other variables.
        shardings: the shardings of all variables.
        sizes: the sizes of the mesh axes.
    """

    optimizer: Any
    parameters: Arrays
    others: Arrays
    shardings: Mapping[str, Sharding]
    sizes: Sizes

    def state(self) -> Any:
        """Returns the optimizer's state, without values."""
        return jax.eval_shape(self.optimizer.init, self.parameters)

    def sharding(self, path: Any, leaf: Any) -> Sharding:
        """Returns the sharding of a leaf of a state: that of the variable in its path."""
        shapes = {name: one.shape for name, one in {**self.parameters, **self.others}.items()}
        owner = parameter_in(path, leaf, shapes)
        return () if owner is None else self.shardings[owner]

    def bytes(self) -> int:
        """Returns the bytes of the state on each device."""
        return sum(
            bytes_on_device(leaf, self.sharding(path, leaf), self.sizes)
            for path, leaf in tree_leaves_with_path(self.state())
        )

    def exchanges(self, evaluate: Evaluate) -> list[Collective]:
        """Returns what devices exchange in an update.

        Args:
            evaluate: the loss and its gradients, for optimizers that ask for them at other
                parameters. In a loop, as of a line search, one evaluation is counted.

        Raises:
            ArgumentError: the optimizer cannot be called with dicts of parameters and gradients.
        """
        arguments = self.parameters, self.state(), self.parameters, self.others
        traced = jax.make_jaxpr(partial(_updates, self.optimizer, evaluate), return_shape=True)
        with calling_optimizer("plan", "dicts of gradients and parameters"):
            jaxpr, results = traced(*arguments)
        collectives: list[Collective] = []
        inputs = [self.sharding(*one) for one in tree_leaves_with_path(arguments)]
        walk = followed(
            jaxpr.jaxpr,
            inputs,
            self.sizes,
            lambda _, one: collectives.append(one),
            [False] * len(inputs),
        )
        leaves = tree_leaves_with_path(results)
        for (path, leaf), value in zip(leaves, jaxpr.jaxpr.outvars, strict=True):
            before = walk.of(value)
            exchange(leaf, before, self.sharding(path, leaf), self.sizes, collectives.append)
        return collectives


def _updates(
    optimizer: Any,
    evaluate: Evaluate,
    gradients: Arrays,
    state: Any,
    params: Arrays,
    others: Arrays,
) -> Any:
    """Returns the updates and the new state."""

    # optax's line searches pass the extra arguments that they do not name on to value_fn.
    def value_of(params: Arrays, *, obj_fn: Any = None, grad_fn: Any = None) -> Any:
        return evaluate({**params, **others})[0]

    def gradients_of(params: Arrays, *_: Any) -> Arrays:
        return evaluate({**params, **others})[1]

    more = {
        **{"value": jnp.float32(0), "grad": gradients},
        **{"value_fn": value_of, "obj_fn": value_of, "grad_fn": gradients_of},
    }
    extra = {name: more[name] for name in extra_arguments(optimizer)}
    return optimizer.update(gradients, state, params, **extra)
