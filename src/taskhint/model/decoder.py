"""The one transformer: a decoder over flat tokens with a head per task. Trained and hand-built
weights load into it.

`reference.py` has the same model in its plainest form. Shapes: N tokens of a batch, S scored
positions, B examples, T tokens of each, D width, V symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from taskhint.data.batch import Batch, Group
from taskhint.model.attention.paths import Attend, attend_flat
from taskhint.model.block import Block, Draw, LearnedWeights, Symbols, norm_at
from taskhint.model.config import ModelConfig
from taskhint.model.edits import Edit
from taskhint.model.places import Places
from taskhint.model.trace import Trace, check_edits, trace_names
from taskhint.system.devices import Compute, products
from taskhint.system.errors import UserError, nearest
from taskhint.tasks.task import Task

EMBEDDING_SIZE = (
    0.2  # standard deviation at the start; 0.02 or 1 need twice the updates at pocket scale
)


class Decoder(nn.Module):
    """`heads` are the tasks, or their names; each has an unembedding of its own, the rest is
    shared.

    Names are enough unless the position scheme reads tokens.
    """

    def __init__(self, config: ModelConfig, vocab_size: int, heads: Sequence[str | Task]) -> None:
        super().__init__()
        self.config = config
        self.precision = "float32"  # of products; see system/devices.py
        self.tasks = {task.kind: task for task in heads if isinstance(task, Task)}
        names = [head if isinstance(head, str) else head.kind for head in heads]
        self.embedding = nn.Embedding(vocab_size, config.width)
        self.positions = LearnedWeights(config.positions.weights(config))
        self.blocks = nn.ModuleList(Block(config, self.positions) for _ in range(config.depth))
        self.final_norm = norm_at(config, "before")
        self.heads = nn.ModuleDict({name: nn.Linear(config.width, vocab_size) for name in names})
        self.to(getattr(torch, config.dtype))

    def on(self, compute: Compute) -> Decoder:
        """This decoder on a device, with products in a precision; its weights stay float32."""
        if compute.precision != "float32" and self.config.dtype != "float32":
            raise UserError(
                f"precision {compute.precision} is for models in float32; this one is in "
                f"{self.config.dtype}"
            )
        self.precision = compute.precision
        return self.to(compute.torch_device)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    @torch.no_grad()
    def initialise(self, seed: int) -> None:
        """Draw every weight from the seed: matrices keep the size of what they map, biases start
        at zero.
        """
        draw = Draw(seed)
        draw.normal(self.embedding.weight, EMBEDDING_SIZE)
        self.positions.initialise(draw)
        for block in self._blocks():
            block.initialise(draw, residual=1.0 / math.sqrt(2 * self.config.depth))
        for head in self.heads.values():
            assert isinstance(head, nn.Linear)
            draw.linear(head)

    def matrices(self) -> dict[str, int]:
        """The maps inside the blocks by name, and how many of them are stacked in one tensor."""
        names = {"attention.qkv": 3, "attention.out.weight": 1}
        if self.config.mlp_width:
            names |= {"mlp.up.weight": 1, "mlp.down.weight": 1}
        return {
            f"blocks.{i}.{name}": count
            for i in range(self.config.depth)
            for name, count in names.items()
        }

    def forward(
        self, batch: Batch | Tensor, head: str | None = None, inputs: Tensor | int | None = None
    ) -> Tensor:
        """(S, V) logits at the scored positions of a batch; or (B, T, V) at every one of plain (B,
        T) tokens.

        The first head is that of the main task. `inputs`, for plain tokens, is the number of
        symbols before ⊥: only what counts them needs it.
        """
        if isinstance(batch, Tensor):
            return self._logits_of_tokens(batch, head, inputs)
        places = Places.of_batch(batch, self.config.positions, self.task(head))
        tail = batch.tail_index()
        x = self._embed(batch.tokens, places)
        symbols = self._symbols(batch)
        with products(self.precision, self.device):
            for block in self.blocks[:-1]:
                x = block(x, places, self._attend(batch.groups), symbols=symbols)
                symbols = None
            x = self.blocks[-1](x, places, self._attend(batch.groups, tail=True), tail, symbols)
        x = self.final_norm(x)
        return self.head(head)(x if batch.scored is None else x.index_select(0, batch.scored))

    def _logits_of_tokens(
        self, tokens: Tensor, head: str | None, inputs: Tensor | int | None
    ) -> Tensor:
        rows, count = tokens.shape
        places = self._places(tokens, head, inputs)
        attend = self._attend((Group(rows, count, count),))
        x = self._embed(tokens.flatten(), places)
        with products(self.precision, self.device):
            for block in self.blocks:
                x = block(x, places, attend)
        return self.head(head)(self.final_norm(x)).unflatten(0, (rows, -1))

    def trace(
        self,
        tokens: Tensor,
        head: str | None = None,
        inputs: Tensor | int | None = None,
        edits: Sequence[Edit] = (),
    ) -> Trace:
        """Every intermediate of (B, T) tokens; `inputs` is the number of symbols before ⊥, of each
        example or of all. `edits` change values on the way.

        The whole sequence counts one token more than is given, as in training: the last one is
        never an input.
        """
        check_edits(edits, trace_names(self.config.depth, self.config.mlp_width > 0))
        trace = Trace(
            len(tokens), edits, lambda other, n: self.trace(tokens.new_tensor([other]), head, n)
        )
        places = self._places(tokens, head, inputs)
        x = trace.keep("embedding", self._embed(tokens.flatten(), places))
        with products(self.precision, self.device):
            for i, block in enumerate(self.blocks):
                x = block(x, places, trace.attend(i), keep=trace.keep_in(i))
        x = trace.keep("final", self.final_norm(x))
        trace.keep("logits", self.head(head)(x))
        return trace

    def step(self, tokens: Tensor, head: str, places: Places, attends: Sequence[Attend]) -> Tensor:
        """(B, V) logits after the last of (B, T) new tokens; one way to attend per block, such as
        a cache.
        """
        x = self._embed(tokens.flatten(), places)
        with products(self.precision, self.device):
            for block, attend in zip(self.blocks, attends, strict=True):
                x = block(x, places, attend)
        return self.head(head)(self.final_norm(x.unflatten(0, (len(tokens), -1))[:, -1]))

    def head(self, name: str | None) -> nn.Module:
        if name is None:
            return next(iter(self.heads.values()))
        if name not in self.heads:
            raise UserError(f"the model has no head {name!r}; {nearest(name, self.heads)}")
        return self.heads[name]

    def _attend(self, groups: tuple[Group, ...], *, tail: bool = False) -> Attend:
        low = self.precision == "bfloat16-attention"
        return attend_flat(groups, tail=tail, low=low)

    def _blocks(self) -> list[Block]:
        return [block for block in self.blocks if isinstance(block, Block)]

    def task(self, head: str | None) -> Task | None:
        """The task of a head, if the decoder was given it."""
        return self.tasks.get(next(iter(self.heads)) if head is None else head)

    def _places(self, tokens: Tensor, head: str | None, inputs: Tensor | int | None) -> Places:
        rows, count = tokens.shape
        each = torch.as_tensor(0 if inputs is None else inputs, device=tokens.device).expand(rows)
        return Places.of_rectangle(
            each, count + 1, 0, count, self.config.positions, self.task(head), tokens
        )

    def _symbols(self, batch: Batch) -> Symbols | None:
        """What the first block reads, if it is symbols alone and there are fewer of them than
        tokens.
        """
        config = self.config
        hooks = self._blocks()[0].attention.hooks()
        placed = (
            hooks.overrides("add", "turn", "turn_queries", "turn_keys")
            or config.temperature.reads_stream
        )
        if placed or self.embedding.num_embeddings >= len(batch.tokens):
            return None
        return Symbols(self.embedding.weight, batch.tokens, batch.groups)

    def _embed(self, tokens: Tensor, places: Places) -> Tensor:
        return self._blocks()[0].attention.hooks().add(self.embedding(tokens), places)
