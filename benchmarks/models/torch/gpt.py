"""A GPT with tied embeddings: trains on a chain of tokens, and generates with caches."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # its usual name

VOCABULARY, LENGTH, WIDTH, HEADS, BATCH = 512, 64, 128, 4, 8


class Attention(nn.Module):
    """Causal attention with projections."""

    def __init__(self) -> None:
        """Creates the projections."""
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any, cache: Any = None) -> Any:
        """Attends to earlier positions; a cache has those before ``x``, none or all but one."""
        query, key, value = self.qkv(x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        if cache is not None:
            new = zip(cache, (key, value), strict=True)
            key, value = cache[:] = [torch.cat(pair, 2) for pair in new]
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=x.shape[1] > 1)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and a perceptron, each after a normalization."""

    def __init__(self) -> None:
        """Creates the layers."""
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, h: Any, cache: Any = None) -> Any:
        """Adds what both compute."""
        h = h + self.attention(self.norm1(h), cache)
        return h + self.down(F.gelu(self.up(self.norm2(h)), approximate="tanh"))


class Network(nn.Module):
    """The logits of the next token at each position."""

    def __init__(self, layers: int = 4) -> None:
        """Creates the layers."""
        super().__init__()
        self.table, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(2 * LENGTH, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(WIDTH)

    def forward(self, tokens: Any, caches: Any = None) -> Any:
        """Tokens to logits; with caches, of those after the ones that the caches have."""
        start = caches[0][0].shape[2] if caches else 0
        h = self.table(tokens) + self.places(torch.arange(start, start + tokens.shape[1]))
        for i, block in enumerate(self.blocks):
            h = block(h, caches[i] if caches else None)
        return F.linear(self.norm(h), self.table.weight)


def batches() -> Iterator[dict[str, np.ndarray]]:
    """Chains in which three tokens may follow each token, at random."""
    generator = np.random.default_rng(0)
    while True:
        chain = generator.integers(0, VOCABULARY, (BATCH, LENGTH + 1), np.int32)
        for i in range(LENGTH):
            chain[:, i + 1] = (5 * chain[:, i] + chain[:, i + 1] % 3) % VOCABULARY
        yield {"tokens": chain[:, :-1], "next": chain[:, 1:]}


def loss(network: Any, batch: Any) -> Any:
    """The cross entropy of the next tokens."""
    logits = network(batch["tokens"])
    return F.cross_entropy(logits.flatten(0, 1), batch["next"].flatten().long())


def make_step(network: Network) -> Callable[[Any], Any]:
    """The training step, which returns the loss."""
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=True)
    compiled = torch.compile(loss)

    def step(batch: Any) -> Any:
        optimizer.zero_grad()
        value = compiled(network, batch)
        value.backward()
        optimizer.step()
        return value.detach()

    return step


@torch.inference_mode()
def generate(network: Network, prompts: Any, count: int) -> Any:
    """Continues prompts by the likeliest tokens, with caches."""
    empty = torch.empty(len(prompts), HEADS, 0, WIDTH // HEADS)
    caches = [[empty, empty] for _ in network.blocks]
    found = [network(prompts, caches)[:, -1].argmax(-1)]
    for _ in range(count - 1):
        found.append(network(found[-1][:, None], caches)[:, 0].argmax(-1))
    return torch.stack(found, 1)


def run(steps: int = 100, layers: int = 4) -> tuple[list[float], Any]:
    """Trains; returns the losses, and 16 tokens that follow a prompt."""
    network, losses = Network(layers), list[float]()
    step = make_step(network)
    for _, batch in zip(range(steps), batches(), strict=False):
        value = step({name: torch.from_numpy(one) for name, one in batch.items()})
        losses.append(float(value))
    return losses, generate(network, torch.tensor([[1, 5, 26]]), 16)


if __name__ == "__main__":
    losses, found = run()
    print(f"loss {losses[0]:.3f}, then {losses[-1]:.3f}; generated {found[0].tolist()}")
