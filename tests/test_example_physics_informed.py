"""Networks solve differential equations, by derivatives that are right and cheap to build."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core

import symop as so

pytestmark = pytest.mark.usefixtures("x64")


def differences(function, x, width=1e-5):
    """Central differences of a function of columns, at each point."""
    return (function(x + width) - function(x - width)) / (2 * width)


def equations(jaxpr):
    """How many equations there are, inside of others too."""
    inner = [one for e in jaxpr.eqns for one in e.params.values()]
    opened = [one.jaxpr if isinstance(one, core.ClosedJaxpr) else one for one in inner]
    return len(jaxpr.eqns) + sum(equations(one) for one in opened if isinstance(one, core.Jaxpr))


class TestDerivatives:
    @pytest.mark.parametrize("order", [1, 2, 3, 4])
    def test_of_a_network_are_differences_of_the_order_before(self, example, order):
        x = so.var("x", shape=(9, 1))
        u = example.network(x)
        parameters = example.initial(so.sum(u), ["x"])
        before = (example.partial(u, *[x] * (order - 1)) if order > 1 else u).to_jax()
        found = example.partial(u, *[x] * order).to_jax()
        points = np.linspace(0, 1, 9)[:, None]
        expected = differences(lambda at: before(x=at, **parameters), points)
        np.testing.assert_allclose(found(x=points, **parameters), expected, rtol=1e-6, atol=1e-6)

    def test_of_a_flow_are_differences(self, example):
        x, t = so.var("x", shape=(7, 1)), so.var("t", shape=(7, 1))
        u = example.flow(x, t)
        names = ["u", "u_x", "u_t", "u_xx", "u_xt"]
        along = [(), (x,), (t,), (x, x), (x, t)]
        graphs = [example.partial(u, *one) if one else u for one in along]
        functions = dict(zip(names, [graph.to_jax() for graph in graphs], strict=True))
        arrays = example.initial(so.sum(u), ["x", "t"])
        points = {"x": np.linspace(-0.9, 0.9, 7)[:, None], "t": np.linspace(0.1, 1, 7)[:, None]}
        for before, by, name in [
            ("u", "x", "u_x"),
            ("u", "t", "u_t"),
            ("u_x", "x", "u_xx"),
            ("u_x", "t", "u_xt"),
        ]:
            expected = differences(
                lambda at, f=functions[before], by=by: f(**arrays, **{**points, by: at}),
                points[by],
            )
            np.testing.assert_allclose(
                functions[name](**arrays, **points), expected, rtol=1e-7, atol=1e-7
            )

    def test_of_all_ways_agree(self, example):
        parameters = example.initial(example.swinging(1, 1), ["x"])
        points = {"x": jnp.linspace(0, 1, 5)[:, None]}
        losses, slopes = zip(
            *[jax.jit(way(4, 5))(parameters, points) for way in example.WAYS.values()], strict=True
        )
        np.testing.assert_allclose(losses, losses[0], rtol=1e-11)
        for other in slopes[1:]:
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8), slopes[0], other)

    def test_take_fewer_equations_than_nested_ones(self, example):
        parameters = example.initial(example.swinging(1, 1), ["x"])
        points = {"x": jnp.linspace(0, 1, 5)[:, None]}
        counts = {
            way: equations(jax.jit(make(5, 5)).trace(parameters, points).jaxpr.jaxpr)
            for way, make in example.WAYS.items()
        }
        assert counts["symop"] < counts["jet"]
        assert 4 * counts["symop"] < min(counts["nested jvp"], counts["nested grad"])


class TestLosses:
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("name", ["burgers", "beam"])
    def test_have_the_gradients_of_differences_and_of_jax(self, example, name):
        loss = getattr(example, name)(6)
        generator = np.random.default_rng(0)
        points = {n: generator.random((6, 1)) for n in ("x", "t") if n in loss.list_arguments()}
        parameters = example.initial(loss, list(points))
        value, slopes = jax.jit(example.evaluation(loss, list(points)))(parameters, points)
        function = jax.jit(loss.to_jax())
        by_jax = jax.jit(jax.grad(lambda p: function(**p, **points)))(parameters)
        way = {n: generator.normal(size=one.shape) for n, one in parameters.items()}

        def moved(by):
            return function(**{n: one + by * way[n] for n, one in parameters.items()}, **points)

        along = sum(np.vdot(slopes[n], way[n]) for n in way)
        np.testing.assert_allclose(value, moved(0.0), rtol=1e-12)
        np.testing.assert_allclose(along, differences(moved, 0.0, 1e-6), rtol=1e-6)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9), slopes, by_jax
        )


class TestExactSolutions:
    def test_of_burgers_equation(self, example):
        x, t = np.meshgrid(np.linspace(-0.95, 0.95, 21), [0.1, 0.4, 0.9])
        u = example.exact_flow
        width = 1e-4
        u_xx = (u(x + width, t) - 2 * u(x, t) + u(x - width, t)) / width**2
        u_x = differences(lambda at: u(at, t), x, width)
        u_t = differences(lambda at: u(x, at), t, width)
        assert np.abs(u_t + u(x, t) * u_x - example.VISCOSITY * u_xx).max() < 1e-3
        assert np.abs(u_x).max() > 5
        np.testing.assert_allclose(u(x, 0 * t), -np.sin(np.pi * x), atol=1e-12)
        np.testing.assert_allclose(u(np.array([-1.0, 1.0]), t[:2, 0]), 0.0, atol=1e-12)

    def test_of_a_beam(self, example):
        x = so.var("x", shape=())
        u = example.LOAD * x**2 * (x**2 - 4 * x + 6) / 24
        found = example.solved_beam((0, 0), count=8, progress=False).exact
        np.testing.assert_allclose(u.to_jax()(x=0.5), found[100], rtol=1e-14)
        slope, moment, shear, load = [so.derivative(u, x, n).to_jax() for n in (1, 2, 3, 4)]
        ends = [found[0], slope(x=0.0), moment(x=1.0), shear(x=1.0)]
        np.testing.assert_allclose(ends, 0.0, atol=1e-14)
        np.testing.assert_allclose([found[-1], load(x=0.3)], [1.0, example.LOAD], rtol=1e-14)


@pytest.mark.thorough
def test_a_flow_is_found(example):
    found = example.solved_burgers((1500, 100), count=1000, progress=False)
    assert found.error < 0.1


@pytest.mark.thorough
def test_the_beam_bends(example):
    found = example.solved_beam((200, 1500), count=32, progress=False)
    assert found.error < 0.02


@pytest.mark.thorough
def test_everything_is_run_and_drawn(example, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "WAYS", {way: example.WAYS[way] for way in ("symop", "jet")})
    few = {"steps": (2, 0), "count": 20}
    errors, rows = example.run(few, (2, 0), (2,), folder=tmp_path / "pictures", progress=False)
    assert all(0 < error < 2 for error in errors.values())
    assert [(row.order, row.way) for row in rows] == [(2, "symop"), (2, "jet")]
    assert all((row.seconds > 0).all() for row in rows)
    assert len(example.table(rows).splitlines()) == 3
    assert (tmp_path / "pictures" / "solutions.png").read_bytes().startswith(b"\x89PNG")
    for name in ("beam", "burgers"):
        assert "</svg>" in (tmp_path / "pictures" / f"{name}.svg").read_text()
