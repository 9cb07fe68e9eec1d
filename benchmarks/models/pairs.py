"""The models: scripts of ``examples/models``, and the same in ``models/flax``, ``models/torch``."""

import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from newcomer import lines_of, loaded

import symop as so
from models.copying import to_flax
from symop import train

if TYPE_CHECKING:
    from models.torch_side import TorchRunning

ROOT = Path(__file__).parents[2]
STEPS = 100
Runs = tuple[Callable[[], Any], Callable[[], Any]]
"""A function of symop, and one of the other side that does the same."""
HAS_TORCH = importlib.util.find_spec("torch") is not None


@dataclass(frozen=True)
class Pair:
    """A model in symop, in flax and in PyTorch.

    Attributes:
        name: in tables.
        script: the name of the scripts.
        options: the arguments of their functions.
        is_deep: whether it has more than eight equal layers.
        generates: whether it generates tokens.
    """

    name: str
    script: str
    options: dict[str, Any] = field(default_factory=dict)
    is_deep: bool = False
    generates: bool = False

    @property
    def paths(self) -> tuple[Path, Path]:
        """The files of both scripts."""
        name = f"{self.script}.py"
        return ROOT / "examples/models" / name, Path(__file__).parent / "flax" / name

    @property
    def modules(self) -> tuple[Any, Any]:
        """Both scripts as modules."""
        ours, theirs = map(loaded, self.paths)
        return ours, theirs

    @property
    def scan(self) -> Path:
        """The file of flax's script whose layers run in a loop, if there is one."""
        return Path(__file__).parent / "flax" / f"{self.script}_scan.py"

    @property
    def torch(self) -> Path:
        """The file of the script in PyTorch."""
        return Path(__file__).parent / "torch" / f"{self.script}.py"

    @property
    def torch_compiles(self) -> bool:
        """Whether the script in PyTorch compiles its step; if not, it says why."""
        return "torch.compile(" in self.torch.read_text(encoding="utf-8")

    @property
    def lines(self) -> tuple[int, int, int]:
        """The lines of code of the scripts: symop's, flax's and PyTorch's."""
        ours, theirs, other = map(lines_of, (*self.paths, self.torch))
        return ours, theirs, other


PAIRS = (
    Pair("GPT, 4 layers", "gpt", {"layers": 4}, generates=True),
    Pair("GPT, 12 layers", "gpt", {"layers": 12}, is_deep=True),
    Pair("ResNet-18", "resnet"),
    Pair("LSTM language model", "lstm"),
    Pair("DLRM", "dlrm"),
    Pair("diffusion, U-Net", "diffusion"),
    Pair("graph network", "graph"),
    Pair("PINN", "pinn"),
)


class Sides:
    """The training steps of both sides, from the same parameters.

    Attributes:
        batches: the first batches of the script, on the device.
    """

    def __init__(self, pair: Pair, count: int = STEPS) -> None:
        """Creates the parameters by symop, and copies them to flax."""
        self.options, self._scan, self._torch = pair.options, pair.scan, pair.torch
        self.ours, self.theirs = pair.modules
        self.batches = [jax.tree.map(jax.numpy.asarray, one) for one in self._first(count)]
        trainer = self.trainer()
        self._state = trainer.init(0)
        start = jax.jit(partial(self.theirs.initial, **self.options))
        variables, self._opt_state = start(self.batches[0])
        self._params = trainer.unstack(self._state.params)
        self._states = trainer.unstack(self._state.states)
        self._variables = to_flax({**self._params, **self._states}, variables)

    def _first(self, count: int) -> Iterable[Any]:
        """Returns the first batches, and checks that both scripts have the same."""
        ours, theirs = (list(islice(one.batches(), count)) for one in (self.ours, self.theirs))
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)
        return ours

    def trainer(self) -> train.Trainer:
        """Returns symop's trainer, of a new graph."""
        with so.name_scope():  # parameters have the same names in each graph
            trainer: train.Trainer = self.ours.trainer(**self.options)
        return trainer

    def make_step(self) -> Callable[..., Any]:
        """Returns flax's step, as a new function."""
        step: Callable[..., Any] = self.theirs.make_step(**self.options)
        return step

    def scanned(self) -> tuple[Callable[[], Any], Any]:
        """Returns a function that makes flax's step with its layers in a loop, and a state."""
        script = loaded(self._scan)
        state = jax.jit(partial(script.initial, **self.options))(self.batches[0])
        return partial(script.make_step, **self.options), state

    def states(self) -> tuple[Any, Any]:
        """Returns the state before the first step of both sides, as new arrays."""
        theirs = self._variables, self._opt_state
        ours, other = (jax.tree.map(lambda one: one.copy(), x) for x in (self._state, theirs))
        return ours, other

    def runs(self) -> "tuple[Running, Running]":
        """Returns functions that take the next step and return its loss, waited for."""
        ours, theirs = self.states()
        return (
            Running(self.trainer().step, ours, self.batches, lambda values: values["loss"]),
            Running(self.make_step(), theirs, self.batches, lambda value: value),
        )

    def in_torch(self, *, rounded: bool = False) -> "TorchRunning":
        """Returns a function that takes the next step in PyTorch and returns its loss."""
        from models.torch_side import TorchRunning  # noqa: PLC0415  # optional

        params = _rounded(self._params) if rounded else self._params
        arrays = {**params, **self._states}
        return TorchRunning(loaded(self._torch), arrays, self.batches, self.options)

    def generators(self, count: int) -> Runs:
        """Returns functions that generate ``count`` tokens after each of eight prompts."""
        length, layers = self.ours.LENGTH, self.options["layers"]
        ours = so.Generator(self.ours.logits_of(layers), length=length)
        theirs = self.theirs.make_generate(count, layers)
        params = self._variables["params"]
        return (
            lambda: np.array(ours(self._params, self._prompts.tolist(), count)),
            lambda: np.array(theirs(params, self._prompts)),
        )

    def torch_generator(self, count: int) -> Callable[[], Any]:
        """Returns a function that generates the same tokens in PyTorch."""
        from models.torch_side import tensor  # noqa: PLC0415  # optional

        generate, network = loaded(self._torch).generate, self.in_torch().network
        prompts = tensor(self._prompts)
        return lambda: generate(network, prompts, count).numpy()

    @property
    def _prompts(self) -> np.ndarray:
        return np.array(self.batches[0]["tokens"])[:, :8]

    def near(self, running: "Running") -> "Running":
        """Returns flax's steps ``running`` from parameters that are rounded differently."""
        variables, opt_state = self.states()[1]
        start = {**variables, "params": _rounded(variables["params"])}, opt_state
        return running.restarted(start)


def check(
    ours: Callable[[], Any], theirs: Callable[[], Any], near: Callable[[], Any], steps: int = STEPS
) -> None:
    """Takes steps on both sides; raises an error unless their losses are equal.

    Training magnifies rounding, in a network with batch normalization without bound. So the other
    side trains a second time, ``near``, from parameters that are rounded differently. The losses
    may differ as far as those of this run do, ten times over, and by 1e-4 of the first loss.
    """
    losses = [[float(one()) for one in (ours, theirs, near)] for _ in range(steps)]
    found, wanted, other = np.array(losses).T
    allowed = 10 * np.maximum.accumulate(np.abs(wanted - other)) + 1e-4 * np.abs(found[0])
    np.testing.assert_array_less(np.abs(found - wanted), allowed)


def _rounded(params: Any) -> Any:
    """Returns parameters, each changed by at most its rounding."""
    draw = np.random.default_rng(0)

    def moved(value: Any) -> Any:
        signs = draw.choice([-1, 0, 1], value.shape).astype(value.dtype)
        return value * (1 + signs * jax.numpy.finfo(value.dtype).eps)

    return jax.tree.map(moved, params)


class Running:
    """A step that goes on from its last state; each call runs it once and waits for it."""

    def __init__(
        self, step: Callable[..., Any], state: Any, batches: list[Any], loss: Callable[[Any], Any]
    ) -> None:
        """Starts from ``state``, which the step donates."""
        self._step, self._state, self._batches, self._loss = step, state, batches, loss
        self._count = 0

    def restarted(self, state: Any) -> "Running":
        """Returns the same compiled step from ``state`` and the first batch on."""
        return Running(self._step, state, self._batches, self._loss)

    def __call__(self) -> Any:
        """One step."""
        batch = self._batches[self._count % len(self._batches)]
        self._count += 1
        self._state, values = self._step(self._state, batch)
        # The loss is a result of the same compiled program as the state.
        return jax.block_until_ready(self._loss(values))
