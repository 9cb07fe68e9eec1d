"""The models in PyTorch, as functions of symop's parameters."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812  # its usual name

Arrays = dict[str, Any]
Loss = Callable[["Layers", Arrays], Any]


class Layers:
    """The layers of a network, which take the next parameters of their kind.

    Attributes:
        arrays: parameters by symop's names.
        module: the script of the model, for its sizes.
    """

    def __init__(self, arrays: Arrays, module: Any) -> None:
        self.arrays, self.module = arrays, module
        self._counts: Counter[str] = Counter()

    def _next(self, stem: str) -> str:
        self._counts[stem] += 1
        return f"{stem}{self._counts[stem] - 1}"

    def linear(self, x: Any) -> Any:
        """A fully connected layer."""
        name = self._next("fully_connected")
        return F.linear(x, self.arrays[f"{name}_weight"], self.arrays[f"{name}_bias"])

    def layer_norm(self, x: Any) -> Any:
        """Layer normalization."""
        name = self._next("layer_norm")
        gamma, beta = self.arrays[f"{name}_gamma"], self.arrays[f"{name}_beta"]
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-5)

    def group_norm(self, x: Any, groups: int) -> Any:
        """Group normalization."""
        name = self._next("group_norm")
        return F.group_norm(x, groups, self.arrays[f"{name}_gamma"], self.arrays[f"{name}_beta"])

    def batch_norm(self, x: Any) -> Any:
        """Batch normalization; the moving variance is the biased one, as in JAX."""
        name = self._next("batch_norm")
        mean, var = self.arrays[f"{name}_moving_mean"], self.arrays[f"{name}_moving_var"]
        gamma, beta = self.arrays[f"{name}_gamma"], self.arrays[f"{name}_beta"]
        return F.batch_norm(x, mean, var, gamma, beta, training=True, momentum=0.1, eps=1e-5)

    def convolution(self, x: Any, stride: int = 1) -> Any:
        """A convolution that keeps the size, except for its stride."""
        name = self._next("convolution")
        weight = self.arrays[f"{name}_weight"]
        bias = self.arrays.get(f"{name}_bias")
        return F.conv2d(x, weight, bias, stride, weight.shape[-1] // 2)

    def embedding(self, ids: Any) -> Any:
        """Rows of a table."""
        return F.embedding(ids, self.arrays[f"{self._next('lookup_table')}_table"])

    def attention(self, x: Any, heads: int) -> Any:
        """Causal attention with projections."""
        name = self._next("attention")
        batch, length, width = x.shape

        def projected(x: Any, part: str) -> Any:
            weight, bias = (self.arrays[f"{name}_{part}_{end}"] for end in ("weight", "bias"))
            return F.linear(x, weight, bias)

        query, key, value = (
            projected(x, part).view(batch, length, heads, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return projected(mixed.transpose(1, 2).reshape(batch, length, width), "out")


# Losses ----------------------------------------------------------------------------------------


def _gpt(net: Layers, batch: Arrays) -> Any:
    sizes, table = net.module, net.arrays["table"]
    place = torch.arange(batch["tokens"].shape[1])
    h = F.embedding(batch["tokens"], table) + net.embedding(place)
    for _ in range(sum(name.endswith("query_weight") for name in net.arrays)):
        h = h + net.attention(net.layer_norm(h), sizes.HEADS)
        h = h + net.linear(F.gelu(net.linear(net.layer_norm(h)), approximate="tanh"))
    logits = F.linear(net.layer_norm(h), table)
    return F.cross_entropy(logits.flatten(0, 1), batch["next"].flatten().long())


def _resnet(net: Layers, batch: Arrays) -> Any:
    widths = net.module.WIDTHS
    h = net.batch_norm(net.convolution(batch["image"].permute(0, 3, 1, 2))).relu()
    for i in range(len(widths)):
        for j in range(2):
            stride = 2 if i and not j else 1
            x = net.batch_norm(net.convolution(h, stride)).relu()
            x = net.batch_norm(net.convolution(x))
            h = (x + (net.batch_norm(net.convolution(h, stride)) if stride > 1 else h)).relu()
    return F.cross_entropy(net.linear(h.mean((2, 3))), batch["label"].long())


def _lstm(net: Layers, batch: Arrays) -> Any:
    h = net.embedding(batch["tokens"])
    for i in range(net.module.LAYERS):
        weight, recurrent, bias = (net.arrays[f"{n}{i}"] for n in ("input", "recurrent", "bias"))
        zeros = torch.zeros(1, len(h), recurrent.shape[1])
        own = [weight, recurrent, bias, torch.zeros_like(bias)]
        h = torch.lstm(h, (zeros, zeros), own, True, 1, 0.0, True, False, True)[0]
    return F.cross_entropy(net.linear(h).flatten(0, 1), batch["next"].flatten().long())


def _dlrm(net: Layers, batch: Arrays) -> Any:
    dense = net.linear(net.linear(batch["numbers"]).relu()).relu()
    ids = batch["ids"] + net.module.ROWS * torch.arange(batch["ids"].shape[1])
    rows = F.embedding(ids, net.arrays["table"], sparse=True)
    features = torch.cat([dense[:, None], rows], dim=1)
    products = torch.bmm(features, features.transpose(1, 2)).flatten(1)
    pairs = torch.as_tensor(net.module.PAIRS)
    top = torch.cat([dense, products[:, pairs]], dim=1)
    logits = net.linear(net.linear(net.linear(top).relu()).relu())[:, 0]
    return F.binary_cross_entropy_with_logits(logits, batch["clicked"])


def _diffusion(net: Layers, batch: Arrays) -> Any:
    sizes = net.module
    half, groups = sizes.WIDTH // 2, sizes.GROUPS
    rates = torch.exp(-math.log(10_000) * torch.arange(half) / half)
    angles = batch["time"][:, None] * rates
    time = torch.cat([angles.sin(), angles.cos()], dim=1)
    time = net.linear(F.silu(net.linear(time)))

    def block(x: Any, channels: int) -> Any:
        h = net.convolution(F.silu(net.group_norm(x, groups)))
        h = h + net.linear(F.silu(time))[:, :, None, None]
        h = net.convolution(F.silu(net.group_norm(h, groups)))
        return h + (x if x.shape[1] == channels else net.convolution(x))

    h, kept = net.convolution(batch["noisy"].permute(0, 3, 1, 2)), []
    for channels in (sizes.WIDTH, 2 * sizes.WIDTH):
        h = block(h, channels)
        kept.append(h)
        h = F.avg_pool2d(h, 2)
    h = block(h, 2 * sizes.WIDTH)
    for before in reversed(kept):
        h = h.repeat_interleave(2, 2).repeat_interleave(2, 3)
        h = block(torch.cat([h, before], dim=1), before.shape[1])
    found = net.convolution(F.silu(net.group_norm(h, groups)))
    return F.mse_loss(found, batch["noise"].permute(0, 3, 1, 2))


def _graph(net: Layers, batch: Arrays) -> Any:
    def mlp(x: Any) -> Any:
        return net.linear(net.linear(x).relu())

    sender, receiver = batch["sender"].long(), batch["receiver"].long()
    h = mlp(batch["number"])
    for _ in range(net.module.LAYERS):
        messages = mlp(torch.cat([h[sender], h[receiver]], dim=1))
        received = torch.zeros_like(h).index_add(0, receiver, messages)
        h = net.layer_norm(h + mlp(torch.cat([h, received], dim=1)))
    return F.mse_loss(mlp(h), batch["target"])


def _pinn(net: Layers, batch: Arrays) -> Any:
    x, t = (batch[name].clone().requires_grad_() for name in ("x", "t"))
    h = torch.cat([x, t], dim=1)
    for _ in range(net.module.LAYERS):
        h = net.linear(h).tanh()
    u = t * (1 - x * x) * net.linear(h) - torch.sin(math.pi * x)
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return (u_t + u * u_x - net.module.VISCOSITY * u_xx).square().mean()


LOSSES: dict[str, Loss] = {
    "gpt": _gpt,
    "resnet": _resnet,
    "lstm": _lstm,
    "dlrm": _dlrm,
    "diffusion": _diffusion,
    "graph": _graph,
    "pinn": _pinn,
}


# Steps -----------------------------------------------------------------------------------------

_COMPILED = frozenset({"gpt", "resnet", "graph"})
"""The scripts that ``torch.compile`` compiles.

It has no second derivatives (pinn) and no sparse gradients (dlrm), compiles the unrolled steps of
lstm for minutes, and the steps of diffusion run more slowly, 65 instead of 58 ms.
"""


class TorchRunning:
    """Training steps in PyTorch, compiled or not; each call runs one and returns its loss."""

    def __init__(
        self, module: Any, params: Arrays, states: Arrays, batches: Iterable[Arrays]
    ) -> None:
        """Copies the parameters and batches of a script."""
        script = Path(module.__file__).stem
        function = partial(_loss_of, LOSSES[script], module)
        self._loss: Any = torch.compile(function) if script in _COMPILED else function
        self._arrays = {name: _parameter(one) for name, one in {**params, **states}.items()}
        trained = [self._arrays[name].requires_grad_() for name in params]
        self._optimizer = _OPTIMIZERS.get(script, _adam)(trained)
        self._batches = [{k: _tensor(one) for k, one in batch.items()} for batch in batches]
        self._count = 0

    def __call__(self) -> float:
        """One step."""
        batch = self._batches[self._count % len(self._batches)]
        self._count += 1
        self._optimizer.zero_grad()
        loss = self._loss(self._arrays, batch)
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())


def _loss_of(loss: Loss, module: Any, arrays: Arrays, batch: Arrays) -> Any:
    return loss(Layers(arrays, module), batch)


def _parameter(array: Any) -> Any:
    """Returns a parameter; the channels of a kernel come first in PyTorch."""
    value = np.asarray(array)
    return _tensor(value.transpose(3, 2, 0, 1) if value.ndim == 4 else value)


def _tensor(array: Any) -> Any:
    return torch.from_numpy(np.array(array))


def _adam(trained: list[Any], rate: float = 1e-3) -> Any:
    return torch.optim.Adam(trained, rate, fused=True)


def _sgd(trained: list[Any]) -> Any:
    return torch.optim.SGD(trained, 0.002, momentum=0.9, fused=True)


def _adagrad(trained: list[Any]) -> Any:
    return torch.optim.Adagrad(trained, 0.05, initial_accumulator_value=0.1, eps=1e-7)


_OPTIMIZERS: dict[str, Callable[[list[Any]], Any]] = {
    "resnet": _sgd,
    "dlrm": _adagrad,
    "graph": partial(_adam, rate=3e-4),
}
