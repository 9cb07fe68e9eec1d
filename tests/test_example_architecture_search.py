"""The architecture has the gradients that it should, and a cell is found by them and trained."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import symop as so


@pytest.fixture
def small(example, monkeypatch):
    """The example with two nodes, three channels and a batch of six, and arrays for one step.

    XLA takes long to compile convolutions of double precision, so there are few of them.
    """
    edges = dict.fromkeys([(0, 1), (0, 2), (1, 2)], tuple(example.OPERATIONS))
    settings = {"CHANNELS": 3, "BATCH": 6, "NODES": (1, 2), "EDGES": list(edges)}
    for name, value in settings.items():
        monkeypatch.setattr(example, name, value)
    monkeypatch.setattr(example, "MIXED", example.shapes(edges))
    fed, _ = example.digits(training=20, held=20)
    generator = np.random.default_rng(4)
    arrays = example.drawn(example.MIXED, 0) | example.batch_of(fed, generator)
    monkeypatch.setattr(example, "ARRAYS", arrays, raising=False)
    arrays["architecture"] = generator.normal(size=(3, 5))
    return example


def value_of(example, symbol):
    return jax.jit(symbol.to_jax())(**example.fed_to(symbol, example.ARRAYS))


def pooled_by_hand(x, start, combine):
    window = (1, 1, 3, 3)
    return lax.reduce_window(x, start, combine, window, (1, 1, 1, 1), "SAME")


def convolved_by_hand(x, weight):
    return lax.conv_general_dilated(x, weight, (1, 1), "SAME")


def mixed_by_hand(shares, x, small, large):
    ways = [
        x,
        pooled_by_hand(x, 0.0, lax.add) / 9,
        pooled_by_hand(x, -jnp.inf, lax.max),
        convolved_by_hand(jax.nn.silu(x), small),
        convolved_by_hand(jax.nn.silu(x), large),
    ]
    return sum(share * way for share, way in zip(shares, ways, strict=True))


def loss_by_hand(weights, architecture, images, labels):
    """The loss of the network whose edges mix all operations, in JAX alone."""
    shares = iter(jax.nn.softmax(architecture, axis=1))
    nodes = [convolved_by_hand(images, weights["stem"])]
    for end in (1, 2):
        names = [f"edge{start}{end}" for start in range(end)]
        found = sum(
            mixed_by_hand(next(shares), x, weights[f"{name}_1x1"], weights[f"{name}_3x3"])
            for name, x in zip(names, nodes, strict=True)
        )
        apart = found - found.mean((1, 2, 3), keepdims=True)
        nodes.append(apart / jnp.sqrt((apart**2).mean((1, 2, 3), keepdims=True) + 1e-3))
    joined = jax.nn.silu(jnp.concatenate(nodes[1:], axis=1))
    quarters = joined.reshape(len(labels), -1, 2, 4, 2, 4).mean((3, 5)).reshape(len(labels), -1)
    logs = jax.nn.log_softmax(quarters @ weights["weight"].T + weights["bias"])
    return -jnp.take_along_axis(logs, labels[:, None], 1).mean()


def later_loss_by_hand(architecture, weights, arrays, rate):
    slopes = jax.jit(jax.grad(loss_by_hand))(
        weights, architecture, arrays["images"], arrays["labels"]
    )
    after = {name: weight - rate * slopes[name] for name, weight in weights.items()}
    return loss_by_hand(after, architecture, arrays["held_images"], arrays["held_labels"])


@pytest.mark.usefixtures("x64")
class TestGradientsOfTheArchitecture:
    def test_second_order_is_that_of_differences(self, small):
        weights, architecture, training, held = small.inputs(6)
        after = small.unrolled(weights, architecture, training, small.RATE)
        later = small.mixed_loss(after, architecture, *held)
        function = jax.jit(later.to_jax())
        fed, at = small.fed_to(later, small.ARRAYS), small.ARRAYS["architecture"]

        def moved(i, width):
            there = at + width * np.eye(at.size)[i].reshape(at.shape)
            return float(function(**fed | {"architecture": there}))

        # Narrow, since the largest entry of a window of pooling changes nearby.
        expected = [(moved(i, 1e-6) - moved(i, -1e-6)) / 2e-6 for i in range(at.size)]
        found = value_of(small, so.grad(later, architecture))
        np.testing.assert_allclose(found.ravel(), expected, rtol=1e-6, atol=3e-9)
        assert np.abs(found).max() > 1e-3

    @pytest.mark.thorough
    def test_both_orders_are_those_of_jax(self, small):
        loss, first, second, *slopes = value_of(small, small.searching(6))
        arrays, at = small.ARRAYS, small.ARRAYS["architecture"]
        weights = {name: arrays[name] for name in small.MIXED}
        by_jax = jax.jit(jax.value_and_grad(later_loss_by_hand))
        expected, still = by_jax(at, weights, arrays, 0.0)
        np.testing.assert_allclose(loss, expected, rtol=1e-12)
        np.testing.assert_allclose(first, still, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(
            second, by_jax(at, weights, arrays, small.RATE)[1], rtol=1e-9, atol=1e-13
        )
        assert len(slopes) == len(weights)
        assert np.linalg.norm(second - first) > 0.1 * np.linalg.norm(second)

    def test_the_product_is_exact_and_the_difference_is_near(self, small):
        ways = [small.of_second_order(way, 6) for way in ("product", "difference")]
        exact, product, difference = value_of(small, so.Group([small.searching(6)[2], *ways]))
        np.testing.assert_allclose(product, exact, rtol=1e-10, atol=1e-14)
        apart = np.linalg.norm(difference - exact) / np.linalg.norm(exact)
        assert 1e-9 < apart < 0.05


@pytest.mark.thorough
def test_a_search_learns_and_its_shares_leave_where_they_began(small, monkeypatch):
    monkeypatch.setattr(small, "BATCH", 32)
    fed, _ = small.digits(training=300, held=300)
    shares, history = small.search(fed, "second", 60)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-5)
    assert shares.max() > 0.25
    assert history[-10:, 0].mean() < 0.8 * history[:10, 0].mean()
    assert history[:, 1].min() < 0.999


def test_the_strongest_operations_of_the_strongest_edges_are_found(example):
    shares = np.full((6, 5), 0.1)
    shares[[0, 1, 2, 3, 4, 5], [4, 3, 2, 1, 0, 4]] = [0.6, 0.6, 0.6, 0.5, 0.7, 0.6]
    assert example.discrete(shares) == {
        (0, 1): "convolution 3x3",
        (0, 2): "convolution 1x1",
        (1, 2): "maximum 3x3",
        (1, 3): "identity",
        (2, 3): "convolution 3x3",
    }


def test_the_network_of_a_cell_is_the_mixed_one_with_all_shares_there(small):
    cell = dict.fromkeys(small.EDGES, "convolution 3x3")
    decided = np.full((3, 5), -1e9, np.float32)
    decided[:, 4] = 0.0
    weights = {name: small.ARRAYS[name] for name in small.MIXED}
    ways = [partial(small.chosen, cell), partial(small.mixed, jnp.asarray(decided))]
    found, expected = [
        small.scores(way, small.EDGES, weights, small.ARRAYS["images"]) for way in ways
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.thorough
def test_a_cell_is_trained_from_scratch(example):
    fed, test = example.digits(training=700, held=700)
    cell = dict.fromkeys(example.EDGES, "convolution 3x3")
    assert example.train(cell, example.all_examples(fed), test, 100) > 0.8


@pytest.mark.slow  # compiles two searches and three networks; their parts are tested above
def test_everything_is_run_and_drawn(small, tmp_path):
    figures, cells = small.run(3, 2, 1, folder=tmp_path / "pictures", progress=False)
    assert set(cells) == {"first order", "second order", "random cell 0"}
    distances = [figures[f"{way}: {small.APART}"] for way in ("the product", "first order")]
    assert distances[0] < 1e-4 < distances[1]
    assert (tmp_path / "pictures" / "found.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (tmp_path / "pictures" / "gradient.svg").read_text()
