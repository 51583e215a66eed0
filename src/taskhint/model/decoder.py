"""The one transformer: a decoder over flat tokens with a head per task. Trained and hand-built weights load into it.

Shapes: N tokens of a batch, S scored positions, B examples, T tokens of each, D width, V symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from taskhint.data.batch import Batch
from taskhint.model.attention.block_attention import Attend, Attention, Symbols, grouped_attend
from taskhint.model.config import ModelConfig
from taskhint.model.places import Places, tail_index
from taskhint.model.positions import make_positions
from taskhint.model.trace import Trace
from taskhint.system.errors import UserError, nearest

EMBEDDING_SIZE = 0.2  # standard deviation at the start; 0.02 or 1 need twice the updates at pocket scale

Keep = Callable[[str, Tensor], None]


def _ignore(name: str, value: Tensor) -> None:
    """Nobody asked for a trace."""


class Mlp(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.width, config.mlp_width)
        self.activation = nn.GELU() if config.activation == "gelu" else nn.ReLU()
        self.down = nn.Linear(config.mlp_width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


def _norm(config: ModelConfig, where: str) -> nn.Module:
    return nn.LayerNorm(config.width) if config.norm == where else nn.Identity()


class Block(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.before_attention = _norm(config, "before")
        self.attention = Attention(config)
        self.before_mlp = _norm(config, "before") if config.mlp_width else None
        self.mlp = Mlp(config) if config.mlp_width else None
        self.after = _norm(config, "after")

    def forward(
        self,
        x: Tensor,
        places: Places,
        attend: Attend,
        tail: Tensor | None = None,
        symbols: Symbols | None = None,
        keep: Keep = _ignore,
    ) -> Tensor:
        """(N, D) -> (N, D), or (M, D) of the tail positions only. `symbols`: what x was taken from, if that is so."""
        read = self.before_attention(x if symbols is None else symbols.table)
        gathered = self.attention(read, places, attend, tail, symbols)
        keep("attention.out", gathered)
        x = (x if tail is None else x.index_select(0, tail)) + gathered
        keep("after_attention", x)
        if self.mlp is not None and self.before_mlp is not None:
            x = x + self.mlp(self.before_mlp(x))
        x = self.after(x)
        keep("after_mlp", x)
        return x


class Decoder(nn.Module):
    """`heads` names the tasks; each has an unembedding of its own, the rest is shared."""

    def __init__(self, config: ModelConfig, vocab_size: int, heads: Sequence[str]) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocab_size, config.width)
        self.positions = make_positions(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.final_norm = _norm(config, "before")
        self.heads = nn.ModuleDict({name: nn.Linear(config.width, vocab_size) for name in heads})
        self.to(getattr(torch, config.dtype))

    def initialise(self, seed: int) -> None:
        """Draw every weight from the seed: matrices keep the size of what they map, biases start at zero."""
        generator = torch.Generator().manual_seed(seed)
        residual = 1.0 / math.sqrt(2 * self.config.depth)
        with torch.no_grad():
            for name, value in self.named_parameters():
                if value.dim() == 2:
                    std = (
                        EMBEDDING_SIZE
                        if "embedding" in name or "positions" in name
                        else 1.0 / math.sqrt(value.shape[1])
                    )
                    std *= residual if name.endswith(("out.weight", "down.weight")) else 1.0
                    value.normal_(0.0, std, generator=generator)
                elif name.endswith("bias"):
                    value.zero_()

    def forward(self, batch: Batch, head: str) -> Tensor:
        """(S, V) logits at the scored positions."""
        places, tail = Places.of_batch(batch), tail_index(batch)
        x = self._embed(batch.tokens, places)
        symbols = self._symbols(batch)
        for block in self.blocks[:-1]:
            x = block(x, places, grouped_attend(batch.groups, tail=False), symbols=symbols)
            symbols = None
        x = self.blocks[-1](x, places, grouped_attend(batch.groups, tail=True), tail, symbols)
        x = self.final_norm(x)
        return self.head(head)(x if batch.scored is None else x.index_select(0, batch.scored))

    def trace(self, tokens: Tensor, head: str, inputs: Tensor | int) -> Trace:
        """Every intermediate of (B, T) tokens; `inputs` is the number of symbols before ⊥, of each example or of all.

        The whole sequence counts one token more than is given, as in training: the last one is never an input.
        """
        rows, count = tokens.shape
        trace = Trace(rows)
        each = torch.as_tensor(inputs).expand(rows)
        places = Places.of_rectangle(each, sequence=count + 1, start=0, count=count)
        x = self._embed(tokens.flatten(), places)
        trace.keep("embedding", x)
        for i, block in enumerate(self.blocks):
            x = block(x, places, trace.attend(i), keep=_prefixed(trace, f"blocks.{i}."))
        x = self.final_norm(x)
        trace.keep("final", x)
        trace.keep("logits", self.head(head)(x))
        return trace

    def step(self, tokens: Tensor, head: str, places: Places, attends: Sequence[Attend]) -> Tensor:
        """(B, V) logits after the last of (B, T) new tokens, with one way to attend per block (a cache, see decode)."""
        x = self._embed(tokens.flatten(), places)
        for block, attend in zip(self.blocks, attends, strict=True):
            x = block(x, places, attend)
        return self.head(head)(self.final_norm(x.unflatten(0, (len(tokens), -1))[:, -1]))

    def head(self, name: str) -> nn.Module:
        if name not in self.heads:
            raise UserError(f"the model has no head {name!r}; {nearest(name, self.heads)}")
        return self.heads[name]

    def _symbols(self, batch: Batch) -> Symbols | None:
        """What the first block reads, if it is symbols alone and there are fewer of them than tokens."""
        few = self.embedding.num_embeddings < len(batch.tokens)
        return (
            Symbols(self.embedding.weight, batch.tokens, batch.groups)
            if few and self.config.positions == "none"
            else None
        )

    def _embed(self, tokens: Tensor, places: Places) -> Tensor:
        x: Tensor = self.positions(self.embedding(tokens), places)
        return x


def _prefixed(trace: Trace, prefix: str) -> Keep:
    return lambda name, value: trace.keep(prefix + name, value)
