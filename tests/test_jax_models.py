"""Models of flax, equinox, optax and diffrax as graphs: JAX's values and derivatives, and more."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen

import symop as so
from symop import cli
from tests import jax_models
from tests.jax_models import MODELS, Model, numbers

SAVED = ("linen: transformer block", "nnx: convolutional", "equinox: gru", "optax: ctc_loss",
         "diffrax: runge-kutta")  # fmt: skip


def require_close(got: Any, wanted: Any, rtol: float = 2e-5, atol: float = 5e-6) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol, atol)


def gradients(function: Callable[..., Any], model: Model) -> Any:
    """The gradients of a sum that weighs all inexact results, by the inexact arguments."""
    leaves, tree = jax.tree.flatten((model.params, model.x))
    moving = [i for i, one in enumerate(leaves) if jnp.issubdtype(one.dtype, jnp.inexact)]

    def total(*moved: Any) -> Any:
        all_of_them = list(leaves)
        for i, one in zip(moving, moved, strict=True):
            all_of_them[i] = one
        results = jax.tree.leaves(function(*jax.tree.unflatten(tree, all_of_them)))
        return sum(
            jnp.sum(jnp.cos(y + 0.3)) for y in results if jnp.issubdtype(y.dtype, jnp.inexact)
        )

    return jax.jit(jax.grad(total, tuple(range(len(moving)))))(*[leaves[i] for i in moving])


# equinox, on which diffrax is built, has primitives and callbacks of its own.
@pytest.mark.filterwarnings("ignore:transform:registry.errors.OpaqueWarning")
@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", MODELS)
def test_values_and_gradients(name: str) -> None:
    model = MODELS[name]()
    graph = so.transform(model.function)
    wanted = jax.jit(model.function)(model.params, model.x)
    require_close(jax.jit(graph)(model.params, model.x), wanted)
    require_close(gradients(graph, model), gradients(model.function, model), 2e-4, 2e-5)


def symbol_of(model: Model) -> tuple[so.Symbol, dict[str, Any]]:
    """The graph of a model, and its arguments by name."""
    symbol = so.from_jax(model.function, model.params, model.x, names=["params", "x"])
    leaves = jax.tree.leaves((model.params, model.x))
    return symbol, dict(zip(symbol.list_arguments(), leaves, strict=True))


@pytest.mark.parametrize("name", SAVED)
def test_saved_and_loaded(name: str) -> None:
    model = MODELS[name]()
    symbol, arrays = symbol_of(model)
    loaded = so.load_json(symbol.tojson())
    assert loaded.same_as(symbol)
    got = jax.tree.leaves(jax.jit(loaded.to_jax())(**arrays))
    require_close(got, jax.tree.leaves(jax.jit(model.function)(model.params, model.x)))


def test_laplacian_of_a_linen_model() -> None:
    model = MODELS["linen: perceptron"]()
    symbol, arrays = symbol_of(model._replace(x=model.x[0]))
    got = so.laplacian(symbol, "x").eval(**arrays)
    hessian = jax.jit(jax.hessian(lambda x: model.function(model.params, x)))(model.x[0])
    np.testing.assert_allclose(got, np.trace(hessian, axis1=1, axis2=2), 1e-4, 1e-5)


def test_hessian_of_an_nnx_model() -> None:
    model = MODELS["nnx: perceptron"]()
    symbol, arrays = symbol_of(model)
    wanted = jax.jit(jax.hessian(lambda x: model.function(model.params, x)[0].sum()))(model.x)
    found = so.hessian(so.sum(symbol), "x").eval(**arrays)
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


def test_laplacian_of_an_equinox_model_is_trained() -> None:
    """A loss of a physics-informed network has the gradients of nested JAX."""
    model = MODELS["equinox: perceptron"]()

    def loss(params: Any, laplacian: Callable[..., Any]) -> Any:
        def u(x: Any) -> Any:
            return model.function(params, x[None])[0]

        return jnp.sum(jax.vmap(lambda x: (laplacian(u, x) - 1.0) ** 2)(model.x))

    def traced(u: Any, x: Any) -> Any:
        return jnp.trace(jax.hessian(u)(x))

    got, wanted = (jax.jit(jax.grad(loss), static_argnums=1)(model.params, one)
                   for one in (so.laplacian, traced))  # fmt: skip
    require_close(got, wanted, 1e-3, 1e-5)


def test_hessian_of_an_optax_loss() -> None:
    model = MODELS["optax: softmax_cross_entropy"]()
    symbol, arrays = symbol_of(model)
    found = so.hessian(so.sum(symbol), "params").eval(**arrays)
    wanted = jax.jit(jax.hessian(lambda x: model.function(x, model.x).sum()))(model.params)
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-6)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivative_of_an_ode_by_a_parameter(order: int) -> None:
    model = MODELS["diffrax: runge-kutta"]()
    symbol, arrays = symbol_of(model)

    def states(damping: Any) -> Any:
        return model.function({**model.params, "damping": damping}, model.x)

    wanted = states
    for _ in range(order):
        wanted = jax.jacfwd(wanted)
    got = so.derivative(symbol, "params/damping", order, direction=jnp.ones(())).eval(**arrays)
    np.testing.assert_allclose(got, jax.jit(wanted)(model.params["damping"]), 1e-3, 1e-4)


@pytest.mark.parametrize(
    ("module", "x", "steps"),
    [
        (jax_models.Perceptron(depth=8), numbers(3, 4), 8),
        # A step begins between an attention and the dense layers, so that halves of the first and
        # of the last block are left.
        (linen.Sequential([jax_models.Block() for _ in range(8)]), numbers(2, 3, 4), 7),
    ],
    ids=["perceptron", "transformer"],
)
def test_blocks_in_a_python_loop_become_a_loop(module: Any, x: Any, steps: int) -> None:
    model = jax_models.of_linen(module, x)
    symbol, arrays = symbol_of(model)
    report = so.loops(symbol)
    (made,) = report.made
    assert made.run.times == steps
    require_close(jax.jit(symbol.to_jax())(**arrays), jax.jit(model.function)(model.params, x))


@pytest.mark.parametrize("name", SAVED)
def test_the_command_line_reads_a_saved_model(
    name: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    symbol, _ = symbol_of(MODELS[name]())
    path, picture = tmp_path / "model.json", tmp_path / "model.svg"
    symbol.save(path)
    assert cli.main(["show", str(path)]) == 0
    assert capsys.readouterr().out == f"{so.load(path)}\n"
    assert cli.main(["draw", str(path), "-o", str(picture)]) == 0
    assert picture.read_text().startswith("<svg")
