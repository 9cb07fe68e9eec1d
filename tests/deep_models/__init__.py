"""Deep models as users write them, each with what it must equal: plain JAX, unrolled and as scans.

Where ``models`` of a depth are small, so that tests are fast, the makers take any size.
"""

from deep_models import foreign, images, layers, recurrent
from deep_models.base import Arrays, Model, in_python, listed, members, named, stacked
from deep_models.layers import Attending
from deep_models.recurrent import Size

__all__ = [
    "Arrays", "Attending", "Model", "Size", "foreign", "images", "in_python", "layers", "listed",
    "members", "models", "named", "recurrent", "stacked",
]  # fmt: skip


def models(depth: int) -> list[Model]:
    """Every model, with about ``depth`` repeats of something small."""
    return [*_recurrent(depth), *_layers(depth), *_foreign(depth)]


def _recurrent(depth: int) -> list[Model]:
    size = Size(depth)
    one = recurrent.recurrent
    reads = [one("rnn", size, reads=how, starts="given") for how in ("batch", "split", "apart")]
    collects = [one("rnn", size, collects=how) for how in ("stack", "concat", "loss")]
    return [
        *(one(kind, size) for kind in ("rnn", "lstm", "gru")),
        one("lstm", size, reads="split", collects="loss", starts="given"),
        *reads,
        *collects,
        recurrent.layered("rnn", size, 3, time_first=True),
        recurrent.layered("gru", size, 3, time_first=False),
        recurrent.bidirectional("lstm", size),
        recurrent.shared(depth),
        recurrent.dropping("gru", size),
    ]


def _layers(depth: int) -> list[Model]:
    return [
        layers.perceptron(depth),
        layers.residual(depth),
        layers.residual(depth, norm=False, drops=True),
        layers.transformer(Attending(depth)),
        layers.transformer(Attending(depth), drops=True),
        images.resnet(images.Stages(2, depth)),
        layers.stages(depth, 3),
        layers.chain(3 * depth),
        layers.periodic(3 * depth + 2),
    ]


def _foreign(depth: int) -> list[Model]:
    size = Size(depth)
    return [
        foreign.cells("rnn", size),
        foreign.cells("lstm", size),
        foreign.cells("gru", size, 2),
        foreign.bidirectional(size),
        foreign.perceptron(depth),
    ]
