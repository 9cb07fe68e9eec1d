"""Models of packages for the tests of ``so.from_jax``: flax, equinox, optax and diffrax.

Each entry builds a function of ``(params, x)`` at the smallest size that reads as the model does.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen, nnx

KEY = jax.random.key(3)


class Model(NamedTuple):
    """A function of nested parameters and an array or nested arrays, with sample arguments."""

    function: Callable[..., Any]
    params: Any
    x: Any


def numbers(*shape: int, low: float = -1.2, high: float = 1.3) -> Any:
    """Returns numbers in no order, between ``low`` and ``high``."""
    count = int(np.prod(shape, dtype=int))
    order = np.argsort(np.sin(1.7 * np.arange(count) + 0.3), kind="stable")
    return jnp.asarray(np.linspace(low, high, count, dtype=np.float32)[order].reshape(shape))


# flax.linen ---------------------------------------------------------------------------------------


class Perceptron(linen.Module):
    """Dense layers in a Python loop."""

    depth: int = 2
    width: int = 4

    @linen.compact
    def __call__(self, x: Any) -> Any:
        """Returns one number for each row."""
        for _ in range(self.depth):
            x = linen.gelu(linen.Dense(self.width)(x))
        return linen.Dense(1)(x)


class Convolutional(linen.Module):
    """Convolution, pooling, and a dense layer."""

    @linen.compact
    def __call__(self, x: Any) -> Any:
        """Returns three logits for each image."""
        x = linen.relu(linen.Conv(4, (3, 3))(x))
        x = linen.avg_pool(x, (2, 2), strides=(2, 2))
        x = linen.max_pool(linen.silu(linen.Conv(3, (2, 2), padding="VALID")(x)), (2, 2))
        return linen.Dense(3)(x.reshape(x.shape[0], -1))


class Residual(linen.Module):
    """Residual blocks with batch normalization."""

    train: bool

    @linen.compact
    def __call__(self, x: Any) -> Any:
        """Returns three logits for each image."""
        for width, stride in ((4, 2), (3, 1)):
            y = linen.Conv(width, (3, 3), strides=stride, use_bias=False)(x)
            y = linen.relu(linen.BatchNorm(use_running_average=not self.train)(y))
            y = linen.Conv(width, (3, 3), use_bias=False)(y)
            y = linen.BatchNorm(use_running_average=not self.train)(y)
            x = linen.relu(y + linen.Conv(width, (1, 1), strides=stride)(x))
        return linen.Dense(3)(x.mean((1, 2)))


class Recurrent(linen.Module):
    """A recurrent layer that scans a cell."""

    cell: Any

    @linen.compact
    def __call__(self, x: Any) -> Any:
        """Returns the outputs of all steps."""
        return linen.RNN(self.cell(4))(x)


class Block(linen.Module):
    """A block of a transformer."""

    @linen.compact
    def __call__(self, x: Any) -> Any:
        """Returns an array of the shape of ``x``."""
        mask = linen.make_causal_mask(x[..., 0])
        y = linen.LayerNorm()(x)
        x = x + linen.MultiHeadDotProductAttention(num_heads=2)(y, y, mask=mask)
        y = linen.gelu(linen.Dense(12)(linen.LayerNorm()(x)))
        return x + linen.Dense(x.shape[-1])(y)


class Transformer(linen.Module):
    """An embedding, blocks, and logits."""

    depth: int = 2

    @linen.compact
    def __call__(self, tokens: Any) -> Any:
        """Returns logits of the next token at each place."""
        embedding = linen.Embed(7, 6)
        x = embedding(tokens)
        for _ in range(self.depth):
            x = Block()(x)
        return embedding.attend(linen.RMSNorm()(x))


def of_linen(module: linen.Module, x: Any, **options: Any) -> Model:
    """Returns the model of a module of flax.linen."""
    return Model(
        lambda params, x: module.apply(params, x, **options), jax.jit(module.init)(KEY, x), x
    )


def dropped() -> Model:
    """Returns dense layers with dropout by a fixed key."""
    module = linen.Sequential([linen.Dense(5), linen.Dropout(0.4, deterministic=False)])
    x = numbers(3, 4)
    params = module.init({"params": KEY, "dropout": KEY}, x)
    return Model(lambda params, x: module.apply(params, x, rngs={"dropout": KEY}), params, x)


LINEN: dict[str, Callable[[], Model]] = {
    "perceptron": lambda: of_linen(Perceptron(), numbers(3, 2)),
    "convolutional": lambda: of_linen(Convolutional(), numbers(2, 6, 6, 2)),
    "residual": lambda: of_linen(Residual(False), numbers(2, 6, 6, 2)),
    "residual training": lambda: of_linen(
        Residual(True), numbers(2, 6, 6, 2), mutable=["batch_stats"]
    ),
    "lstm": lambda: of_linen(Recurrent(linen.OptimizedLSTMCell), numbers(2, 3, 2)),
    "gru": lambda: of_linen(Recurrent(linen.GRUCell), numbers(2, 3, 2)),
    "attention": lambda: of_linen(
        linen.MultiHeadDotProductAttention(num_heads=2, qkv_features=4), numbers(2, 3, 4)
    ),
    "transformer block": lambda: of_linen(Block(), numbers(2, 3, 4)),
    "transformer": lambda: of_linen(Transformer(), jnp.asarray([[1, 4, 2, 6], [0, 3, 3, 5]])),
    "normalizations": lambda: of_linen(
        linen.Sequential([linen.GroupNorm(2), linen.InstanceNorm(), linen.RMSNorm()]),
        numbers(2, 3, 3, 4),
    ),
    "dropout": dropped,
    "remat": lambda: of_linen(linen.remat(Block)(), numbers(2, 3, 4)),
}


# flax.nnx -----------------------------------------------------------------------------------------


class NnxPerceptron(nnx.Module):
    """Dense layers."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        """Makes two layers."""
        self.first = nnx.Linear(2, 4, rngs=rngs)
        self.last = nnx.Linear(4, 1, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        """Returns one number for each row."""
        return self.last(jnp.tanh(self.first(x)))


class NnxConvolutional(nnx.Module):
    """Convolution, batch normalization, pooling, and a dense layer."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        """Makes the layers."""
        self.conv = nnx.Conv(2, 4, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.dense = nnx.Linear(36, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        """Returns three logits for each image."""
        x = nnx.avg_pool(nnx.relu(self.norm(self.conv(x))), (2, 2), strides=(2, 2))
        return self.dense(x.reshape(x.shape[0], -1))


class NnxBlock(nnx.Module):
    """A block of a transformer."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        """Makes the layers."""
        self.before = nnx.LayerNorm(4, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 4, decode=False, rngs=rngs)
        self.after = nnx.LayerNorm(4, rngs=rngs)
        self.wide = nnx.Linear(4, 8, rngs=rngs)
        self.narrow = nnx.Linear(8, 4, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        """Returns an array of the shape of ``x``."""
        x = x + self.attention(self.before(x))
        return x + self.narrow(nnx.gelu(self.wide(self.after(x))))


def of_nnx(make: Callable[[nnx.Rngs], Any], x: Any) -> Model:
    """Returns the model of a module of flax.nnx, with its statistics after the call."""
    definition, params = nnx.split(make(nnx.Rngs(3)))

    def function(params: Any, x: Any) -> Any:
        module = nnx.merge(definition, params)
        y = module(x)
        return y, nnx.to_pure_dict(nnx.state(module, nnx.BatchStat))

    return Model(function, params, x)


NNX: dict[str, Callable[[], Model]] = {
    "perceptron": lambda: of_nnx(NnxPerceptron, numbers(3, 2)),
    "convolutional": lambda: of_nnx(NnxConvolutional, numbers(2, 6, 6, 2)),
    "lstm": lambda: of_nnx(
        lambda rngs: nnx.RNN(nnx.OptimizedLSTMCell(2, 3, rngs=rngs)), numbers(2, 3, 2)
    ),
    "attention": lambda: of_nnx(
        lambda rngs: nnx.MultiHeadAttention(2, 4, decode=False, rngs=rngs), numbers(2, 3, 4)
    ),
    "transformer block": lambda: of_nnx(NnxBlock, numbers(2, 3, 4)),
}


# equinox ------------------------------------------------------------------------------------------


class Gated(eqx.Module):
    """A gated recurrent unit over a sequence."""

    cell: eqx.nn.GRUCell

    def __call__(self, series: Any) -> Any:
        """Returns the states of all steps."""

        def step(state: Any, x: Any) -> tuple[Any, Any]:
            state = self.cell(x, state)
            return state, state

        return jax.lax.scan(step, jnp.zeros(self.cell.hidden_size), series)[1]


def of_equinox(module: Any, x: Any, *more: Any) -> Model:
    """Returns the model of a module of equinox."""
    params, static = eqx.partition(module, eqx.is_array)

    def function(params: Any, x: Any) -> Any:
        return eqx.combine(params, static)(x, *([x] * 2 if more else []))

    return Model(function, params, x)


def batched(model: Model) -> Model:
    """Returns the model for several inputs."""
    return model._replace(function=jax.vmap(model.function, (None, 0)))


EQUINOX: dict[str, Callable[[], Model]] = {
    "perceptron": lambda: batched(
        of_equinox(eqx.nn.MLP(2, "scalar", 4, 2, jax.nn.tanh, key=KEY), numbers(3, 2))
    ),
    "convolutional": lambda: batched(
        of_equinox(
            eqx.nn.Sequential(
                [
                    eqx.nn.Conv2d(2, 3, 3, key=KEY),
                    eqx.nn.Lambda(jax.nn.leaky_relu),
                    eqx.nn.MaxPool2d(2, 2),
                    eqx.nn.Lambda(jnp.ravel),
                    eqx.nn.Linear(12, 3, key=KEY),
                ]
            ),
            numbers(2, 2, 6, 6),
        )
    ),
    "gru": lambda: of_equinox(Gated(eqx.nn.GRUCell(2, 4, key=KEY)), numbers(4, 2)),
    "attention": lambda: of_equinox(
        eqx.nn.MultiheadAttention(2, 4, key=KEY), numbers(3, 4), "key", "value"
    ),
    "layer norm": lambda: batched(of_equinox(eqx.nn.LayerNorm(4), numbers(3, 4))),
}


# optax --------------------------------------------------------------------------------------------

LOGITS, TARGETS = numbers(4, 5), jnp.abs(numbers(5, 4)).T
CHANCES = jax.nn.softmax(TARGETS, 1)
LABELS = jnp.asarray([3, 0, 4, 1])
SIGNS = jnp.where(TARGETS > 0.6, 1.0, -1.0)
PADDING = jnp.zeros((4, 5))


def _of_loss(function: Callable[..., Any], *targets: Any, logits: Any = LOGITS) -> Any:
    return lambda: Model(lambda params, x: function(params, *x), logits, targets)


LOSSES: dict[str, Callable[[], Model]] = {
    "squared_error": _of_loss(optax.squared_error, TARGETS),
    "l2_loss": _of_loss(optax.l2_loss, TARGETS),
    "huber_loss": _of_loss(optax.huber_loss, TARGETS),
    "log_cosh": _of_loss(optax.log_cosh, TARGETS),
    "cosine_similarity": _of_loss(optax.cosine_similarity, TARGETS),
    "cosine_distance": _of_loss(optax.cosine_distance, TARGETS),
    "sigmoid_binary_cross_entropy": _of_loss(optax.sigmoid_binary_cross_entropy, CHANCES),
    "sigmoid_focal_loss": _of_loss(optax.sigmoid_focal_loss, CHANCES),
    "hinge_loss": _of_loss(optax.hinge_loss, SIGNS),
    "perceptron_loss": _of_loss(optax.losses.perceptron_loss, SIGNS),
    "sparsemax_loss": _of_loss(optax.losses.sparsemax_loss, (SIGNS + 1) / 2),
    "softmax_cross_entropy": _of_loss(optax.softmax_cross_entropy, CHANCES),
    "softmax_cross_entropy_with_integer_labels": _of_loss(
        optax.softmax_cross_entropy_with_integer_labels, LABELS
    ),
    "multiclass_hinge_loss": _of_loss(jax.vmap(optax.losses.multiclass_hinge_loss), LABELS),
    "multiclass_perceptron_loss": _of_loss(
        jax.vmap(optax.losses.multiclass_perceptron_loss), LABELS
    ),
    "multiclass_sparsemax_loss": _of_loss(optax.losses.multiclass_sparsemax_loss, LABELS),
    "poly_loss_cross_entropy": _of_loss(optax.losses.poly_loss_cross_entropy, CHANCES),
    "kl_divergence": _of_loss(lambda x, y: optax.kl_divergence(jax.nn.log_softmax(x), y), CHANCES),
    "kl_divergence_with_log_targets": _of_loss(
        lambda x, y: optax.losses.kl_divergence_with_log_targets(jax.nn.log_softmax(x), jnp.log(y)),
        CHANCES,
    ),
    "generalized_kl_divergence": _of_loss(
        lambda x, y: optax.losses.generalized_kl_divergence(jax.nn.log_softmax(x), y), CHANCES
    ),
    "dice_loss": _of_loss(optax.losses.dice_loss, CHANCES),
    "binary_dice_loss": _of_loss(optax.losses.binary_dice_loss, CHANCES),
    "multiclass_generalized_dice_loss": _of_loss(
        optax.losses.multiclass_generalized_dice_loss, CHANCES
    ),
    "safe_softmax_cross_entropy": _of_loss(optax.losses.safe_softmax_cross_entropy, CHANCES),
    "ctc_loss": _of_loss(
        lambda x, y: optax.ctc_loss(x, PADDING[:2], y, PADDING[:2, :2]),
        jnp.asarray([[2, 1], [3, 3]]),
        logits=numbers(2, 5, 4),
    ),
    "ntxent": _of_loss(optax.losses.ntxent, jnp.asarray([0, 1, 0, 1])),
    "triplet_margin_loss": _of_loss(optax.losses.triplet_margin_loss, TARGETS, 0.5 * TARGETS[::-1]),
    "ranking_softmax_loss": _of_loss(optax.losses.ranking_softmax_loss, TARGETS),
    "make_fenchel_young_loss": _of_loss(
        optax.losses.make_fenchel_young_loss(jax.nn.logsumexp), CHANCES
    ),
    "smooth_labels": _of_loss(
        lambda x, y: optax.softmax_cross_entropy(x, optax.smooth_labels(y, 0.1)), CHANCES
    ),
    "adamw step": lambda: Model(_adamw, {"w": numbers(3, 2)}, numbers(4, 3)),
}


def _adamw(params: Any, x: Any) -> Any:
    """Returns parameters after two steps."""
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))
    state = optimizer.init(params)
    for _ in range(2):
        slopes = jax.grad(lambda one: optax.l2_loss(jnp.tanh(x @ one["w"])).sum())(params)
        updates, state = optimizer.update(slopes, state, params)
        params = optax.apply_updates(params, updates)
    return params


# diffrax ------------------------------------------------------------------------------------------


def _oscillator(time: Any, y: Any, params: Any) -> Any:
    return jnp.stack([y[1], -params["stiffness"] * y[0] - params["damping"] * y[1] ** 3])


def _solve(adaptive: bool, adjoint: Any) -> Callable[..., Any]:
    controller = diffrax.PIDController(1e-3, 1e-3) if adaptive else diffrax.ConstantStepSize()

    def function(params: Any, x: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(_oscillator), diffrax.Tsit5(), 0.0, 1.0, 0.25, x, params,
            stepsize_controller=controller, adjoint=adjoint, max_steps=16,
            saveat=diffrax.SaveAt(ts=jnp.asarray([0.4, 1.0])),
        ).ys  # fmt: skip

    return function


def _of_solve(adaptive: bool, adjoint: Any) -> Callable[[], Model]:
    params = {"stiffness": jnp.float32(2.0), "damping": jnp.float32(0.3)}
    return lambda: Model(_solve(adaptive, adjoint), params, numbers(2))


def runge_kutta(params: Any, x: Any) -> Any:
    """Returns the states of ten steps of the classical Runge-Kutta method, by a scan."""

    def step(y: Any, time: Any) -> tuple[Any, Any]:
        a = _oscillator(time, y, params)
        b = _oscillator(time, y + 0.05 * a, params)
        c = _oscillator(time, y + 0.05 * b, params)
        d = _oscillator(time, y + 0.1 * c, params)
        y = y + 0.1 / 6 * (a + 2 * b + 2 * c + d)
        return y, y

    return jax.lax.scan(step, x, jnp.arange(10) * 0.1)[1]


ODES: dict[str, Callable[[], Model]] = {
    "checkpointed": _of_solve(True, diffrax.RecursiveCheckpointAdjoint()),
    "constant steps": _of_solve(False, diffrax.RecursiveCheckpointAdjoint()),
    "direct": _of_solve(True, diffrax.DirectAdjoint()),
    "runge-kutta": lambda: _of_solve(False, None)()._replace(function=runge_kutta),
}

MODELS: dict[str, Callable[[], Model]] = {
    f"{package}: {name}": make
    for package, models in (
        ("linen", LINEN), ("nnx", NNX), ("equinox", EQUINOX), ("optax", LOSSES),
        ("diffrax", ODES),
    )
    for name, make in models.items()
}  # fmt: skip
