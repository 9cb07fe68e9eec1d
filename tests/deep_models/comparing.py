"""What a deep model gives, on each way that symop runs it, and by hand; all by the same names."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import symop as so
import symop.interop.mxnet as mx
from deep_models.base import Arrays, Model, named, stacked
from symop import train

SEED = 3


class Derived(NamedTuple):
    """The loss, its gradients by name, and the new values of states by name."""

    loss: Any
    gradients: Arrays
    states: Arrays


def is_trained(model: Model) -> bool:
    """Whether the model behaves otherwise in training."""
    return model.draws or bool(model.states)


def closely(found: Any, expected: Any, what: str, rtol: float) -> None:
    """Equal up to rounding, which is relative to the largest entry."""
    scale = float(jnp.max(jnp.abs(expected), initial=0.0))
    assert np.shape(found) == np.shape(expected), what
    # A bias before a normalization has the gradient zero, of which rounding leaves something.
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * max(scale, 0.1), err_msg=what)


def same(found: Derived, expected: Derived, rtol: float = 1e-11) -> None:
    """Both are equal up to rounding; names and all."""
    closely(found.loss, expected.loss, "loss", rtol)
    for kind in ("gradients", "states"):
        some, others = getattr(found, kind), getattr(expected, kind)
        assert some.keys() == others.keys(), kind
        for name, other in others.items():
            closely(some[name], other, name, rtol)


# By hand ---------------------------------------------------------------------------------------


def by_hand(model: Model, key: Any) -> Derived:
    """By the scans written by hand."""
    params, states = model.arrays()
    given = stacked(model.stacks, params), stacked(model.states, states), key
    (loss, new), found = jax.jit(jax.value_and_grad(model.scanned, has_aux=True))(*given)
    return Derived(loss, named(model.stacks, found), named(model.states, new))


def product_by_hand(model: Model, key: Any) -> Arrays:
    """The Hessian times the parameters, forward over reverse."""
    params, states = model.arrays()
    given = stacked(model.stacks, params)
    held = stacked(model.states, states)

    def slopes(given: Arrays) -> Arrays:
        return jax.grad(lambda one: model.scanned(one, held, key)[0])(given)

    product = jax.jit(lambda one: jax.jvp(slopes, (one,), (one,))[1])
    return named(model.stacks, product(given))


# By symop --------------------------------------------------------------------------------------


def by_graph(model: Model, key: Any) -> Derived:
    """By the gradient as a graph, lowered."""
    params, states = model.arrays()
    function = so.value_and_grad(model.loss(), is_train=is_trained(model))
    result = jax.jit(function)(key=key, **params, **states)
    return Derived(*result) if states else Derived(*result, {})


def by_rules(model: Model, key: Any) -> Derived:
    """By ``jax.grad`` of the lowered function."""
    params, states = model.arrays()
    lowered = model.loss().to_jax(is_train=is_trained(model))

    def function(params: Arrays) -> Any:
        result = lowered(key=key, **params, **states)
        return result if states else (result, {})

    (loss, new), found = jax.jit(jax.value_and_grad(function, has_aux=True))(params)
    return Derived(loss, found, new)


def bound(model: Model) -> so.Executor:
    """An executor over the model's arrays."""
    params, states = model.arrays()
    return model.loss().bind(params, aux_states=states)


def by_executor(model: Model) -> Derived:
    """By an executor: forwards in training, then backwards; keys are those of the seed."""
    executor = bound(model)
    so.random.seed(SEED)
    (loss,) = executor.forward(is_train=True)
    executor.backward()
    return Derived(loss, executor.grad_dict, executor.aux_dict)


def by_foreign_executor(model: Model) -> Derived:
    """The same in MXNet's spelling."""
    params, states = model.arrays()
    given = ({n: _foreign(a) for n, a in arrays.items()} for arrays in (params, params, states))
    args, gradients, aux = given
    executor = model.foreign().bind(mx.cpu(), args, gradients, "write", aux)
    so.random.seed(SEED)
    loss = executor.forward(is_train=True)[0]
    executor.backward(mx.nd.ones_like(loss))  # MXNet takes none for a head that is no loss
    found = ({n: one.value for n, one in each.items()} for each in (gradients, aux))
    return Derived(loss.value[0], *found)


def _foreign(array: Any) -> mx.nd.NDArray:
    return mx.nd.array(np.asarray(array), dtype=array.dtype)


def by_trainer(model: Model) -> Derived:
    """By a trainer's step at rate one, which leaves parameters less their gradients."""
    params, states = model.arrays()
    trainer = train.Trainer(model.loss(), optax.sgd(1.0), inputs=[])
    copies = ({name: jnp.copy(one) for name, one in each.items()} for each in (params, states))
    start = train.TrainState(
        *copies, trainer.optimizer.init(params), jax.random.key(SEED), jnp.int32(0)
    )
    state, values = trainer.step(start, {})
    moved = {name: one - state.params[name] for name, one in params.items()}
    return Derived(values["loss"], moved, state.states)


def by_program(model: Model) -> Derived:
    """By a program that appends its backward pass; it keeps all arguments as parameters."""
    params, states = model.arrays()
    program = model.loss().to_program(list(params))
    (loss,) = program.outputs
    pairs = so.append_backward(loss)
    program.scope.update({name: jnp.copy(one) for name, one in {**params, **states}.items()})
    so.random.seed(SEED)
    value, *found = program.run(fetch=[loss, *(slope for _, slope in pairs)], training=True)
    names = [variable.name for variable, _ in pairs]
    new = {name: program.scope[name] for name in states}
    return Derived(value, dict(zip(names, found, strict=True)), new)


def product_by_graph(model: Model, key: Any) -> Arrays:
    """The Hessian times the parameters, as a graph."""
    params, states = model.arrays()
    loss, names = model.loss(), list(params)
    variables = [so.var(f"along_{name}", one.shape) for name, one in params.items()]
    slopes = so.grad(loss, names)
    inside = loss.get_internals()
    products = so.jvp(slopes, [inside[name] for name in names], variables)
    function = jax.jit(so.Group(products).to_jax(is_train=is_trained(model)))
    along = {f"along_{name}": one for name, one in params.items()}
    result = function(key=key, **params, **along, **states)
    found = result[0] if states else result
    return dict(zip(names, found if isinstance(found, list) else [found], strict=True))
