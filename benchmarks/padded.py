"""What the other libraries need: examples padded at the right to the longest one, and a plain
decoder over them.

Attention is causal, so no token ever sees the padding behind it, and no mask is needed.

Shapes: B examples, T input tokens of the longest, D width, H heads, K head width, V symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from taskhint.model.config import ModelConfig
from taskhint.tasks.task import Examples, Task

IGNORED = -100  # cross_entropy's own mark for "no target here"


@dataclass(frozen=True)
class PaddedBatch:
    tokens: Tensor  # (B, T) inputs; the last token of an example is never one, as in our batches
    targets: Tensor  # (B, T) the next token where it is scored, IGNORED elsewhere


def padded_batch(task: Task, parts: Sequence[Examples]) -> PaddedBatch:
    width = max(part.tokens.shape[1] for part in parts)
    tokens = np.concatenate([_widened(part.tokens, width, task.vocab.pad) for part in parts])
    scored = np.concatenate([_widened(task.scored(part), width, False) for part in parts])
    targets = np.where(scored, tokens, IGNORED)
    return PaddedBatch(
        torch.from_numpy(tokens[:, :-1].copy()), torch.from_numpy(targets[:, 1:].copy())
    )


def _widened(rows: npt.NDArray[Any], width: int, fill: int) -> npt.NDArray[Any]:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=fill)


class PaddedBlock(nn.Module):
    """One block as most people write it, after nanoGPT."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        inner = config.heads * config.each_head
        self.norm_1, self.norm_2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * inner, bias=False)
        self.out = nn.Linear(inner, config.width, bias=False)
        self.up, self.down = (
            nn.Linear(config.width, config.mlp_width),
            nn.Linear(config.mlp_width, config.width),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        parts = self.qkv(self.norm_1(x)).chunk(3, dim=2)
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class PaddedDecoder(nn.Module):
    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, config.width)
        self.blocks = nn.ModuleList(PaddedBlock(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, vocab_size)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) -> (B, T, V)."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
