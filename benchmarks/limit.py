"""The machine's limit for a training step or a judging pass: the bare matrix products that it
cannot avoid.

Counted, in float32, with operands that lie ready and outputs that are allocated beforehand:

- each linear map (query, key and value together, attention output, MLP up and down, head) three
  times: forward, gradient of its input, gradient of its weight. Only on the rows that our step
  needs: in the last block, keys and values of all N tokens, but queries, attention output and MLP
  only of the M tail positions; the head only of the S scored ones;
- attention, for each group of equally long examples, as six batched products: logits, weighted
  values, and the four of the way back (weights, values, queries, keys), on full rectangles of A
  queries by T keys.

A pass that judges has the way there alone, and its first block looks at each symbol once where
that is less.

Not counted: everything else. Norms, activations, softmax, residual sums, biases, embedding, loss,
the optimiser and all copying are what a step may not need; of_limit = 1 would mean that they are
free.

Shapes: N tokens, M in the tails, S scored, D width, F inner width of the MLP, V symbols, H heads,
K head width; in a group B examples, T keys, A queries of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from taskhint.data.batch import Batch
from taskhint.model.config import ModelConfig


class Room:
    """Memory by name, shared by the batches: each product has its own, as in a step, but not each
    batch.
    """

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        size = math.prod(shape)
        if name not in self._tensors or len(self._tensors[name]) < size:
            self._tensors[name] = torch.randn(size)
        return self._tensors[name][:size].view(shape)


@dataclass(frozen=True)
class Product:
    """One matrix product, or a stack of them, written into its own output."""

    left: Tensor
    right: Tensor
    out: Tensor

    def run(self) -> None:
        torch.matmul(self.left, self.right, out=self.out)

    @property
    def flops(self) -> int:
        return 2 * self.out.numel() * self.left.shape[-1]


def unavoidable(
    config: ModelConfig, vocab_size: int, batch: Batch, room: Room, learning: bool = True
) -> list[Product]:
    """Every product of one training step on this batch, or of one pass that only judges it."""
    products: list[Product] = []
    for block in range(config.depth):
        last = block == config.depth - 1
        for name, rows, inputs, outputs in _block_maps(config, vocab_size, batch, block):
            products += _linear(room, f"{block}.{name}", rows, inputs, outputs, learning)
        for group in batch.groups:
            asking = group.tail if last else group.length
            by_symbol = not learning and block == 0 and config.positions.kind == "none"
            seen = min(group.length, vocab_size) if by_symbol else group.length
            products += _attention(
                room, f"{block}.{group.length}", config, group.count, asking, seen, learning
            )
    products += _linear(room, "head", len(batch.targets), config.width, vocab_size, learning)
    return products


def _block_maps(
    config: ModelConfig, vocab_size: int, batch: Batch, block: int
) -> Iterator[tuple[str, int, int, int]]:
    """Name, rows, inputs and outputs of each linear map of a block.

    The first block reads nothing but symbols (no positions), so its queries, keys and values are
    those of the symbols.
    """
    inner, tokens, last = (
        config.heads * config.each_head,
        len(batch.tokens),
        block == config.depth - 1,
    )
    asking = sum(group.count * group.tail for group in batch.groups) if last else tokens
    if block == 0 and config.positions.kind == "none":
        yield "key and value", vocab_size, config.width, 2 * inner
        yield "query", vocab_size, config.width, inner
    elif last:
        yield "key and value", tokens, config.width, 2 * inner
        yield "query", asking, config.width, inner
    else:
        yield "query, key and value", tokens, config.width, 3 * inner
    yield "out", asking, inner, config.width
    if config.mlp_width:
        yield "up", asking, config.width, config.mlp_width
        yield "down", asking, config.mlp_width, config.width


def _linear(
    room: Room, name: str, rows: int, inputs: int, outputs: int, learning: bool
) -> list[Product]:
    x, weight = room.take(f"{name}.x", rows, inputs), room.take(f"{name}.weight", outputs, inputs)
    forward = [(x, weight.T)]
    if not learning:
        return _products(room, name, forward)
    gradient = room.take(f"{name}.gradient", rows, outputs)
    return _products(room, name, [*forward, (gradient, weight), (gradient.T, x)])


def _attention(
    room: Room,
    name: str,
    config: ModelConfig,
    examples: int,
    asking: int,
    seen: int,
    learning: bool,
) -> list[Product]:
    stack, width = examples * config.heads, config.each_head
    queries = room.take(f"{name}.queries", stack, asking, width)
    keys, values = (room.take(f"{name}.{part}", stack, seen, width) for part in ("keys", "values"))
    weights = room.take(f"{name}.weights", stack, asking, seen)
    forward = [(queries, keys.mT), (weights, values)]
    if not learning:
        return _products(room, name, forward)
    gradient = room.take(f"{name}.gradient", stack, asking, width)
    logits = room.take(f"{name}.logits", stack, asking, seen)
    backward = [
        (gradient, values.mT),
        (weights.mT, gradient),
        (logits, keys),
        (logits.mT, queries),
    ]
    return _products(room, name, forward + backward)


def _products(room: Room, name: str, pairs: list[tuple[Tensor, Tensor]]) -> list[Product]:
    return [
        Product(left, right, room.take(f"{name}.out.{i}", *left.shape[:-1], right.shape[-1]))
        for i, (left, right) in enumerate(pairs)
    ]


def run_all(products: list[Product]) -> None:
    for product in products:
        product.run()
