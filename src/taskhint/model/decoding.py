"""Greedy decoding with a key-value cache.

Shapes: B examples, P prompt tokens, T tokens so far, H heads, K head width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from taskhint.model.attention.paths import (
    Attend,
    Variant,
    attend_rectangle,
    rectangle_of_ids,
)
from taskhint.model.decoder import Decoder
from taskhint.model.places import Places


class Cache:
    """The keys and values of one block, and their position ids, for all tokens so far; room is
    taken once.
    """

    def __init__(self, decoder: Decoder, rows: int, room: int) -> None:
        config = decoder.config
        shape = (rows, config.heads, room, config.each_head)
        like = decoder.embedding.weight
        self._keys, self._values = like.new_empty(shape), like.new_empty(shape)
        self._ids = torch.empty(rows, room, dtype=torch.long, device=like.device)
        self._used = 0

    def attend(self, q: Tensor, kv: Tensor, scale: Tensor, variant: Variant) -> Tensor:
        rows = len(self._keys)
        parts = (q * scale[:, :, None], *kv.unbind(1))
        q, k, v = (x.unflatten(0, (rows, -1)).transpose(1, 2) for x in parts)
        end = self._used + k.shape[2]
        self._keys[:, :, self._used : end] = k
        self._values[:, :, self._used : end] = v
        self._ids[:, self._used : end] = variant.seen.ids.view(rows, -1)
        self._used = end
        ids = rectangle_of_ids(
            variant.asking.ids, self._ids[:, :end], rows, variant.seen.equal_ids
        )
        found = attend_rectangle(q, self._keys[:, :, :end], self._values[:, :, :end], variant, ids)
        return found.transpose(1, 2).flatten(0, 1)


@torch.no_grad()
def greedy(
    decoder: Decoder, head: str, prompts: Tensor, count: int, inputs: Tensor, sequence: int
) -> Tensor:
    """(B, count) the most likely next tokens, one after another, after (B, P) prompts.

    `inputs` (B,) is the number of symbols before ⊥ and `sequence` the number of tokens of the
    whole example: what the temperatures count. They are the same here as in a single pass over
    prompt and answer.
    """
    rows, start = prompts.shape
    caches = [Cache(decoder, rows, start + count) for _ in range(decoder.config.depth)]
    attends: list[Attend] = [cache.attend for cache in caches]
    tokens = torch.empty(rows, start + count, dtype=torch.long, device=prompts.device)
    tokens[:, :start] = prompts
    done = 0
    for end in range(start, start + count):
        new = tokens[:, done:end]
        places = Places.of_rectangle(
            inputs,
            sequence,
            done,
            end - done,
            decoder.config.positions,
            decoder.task(head),
            tokens[:, :end],
        )
        tokens[:, end] = decoder.step(new, head, places, attends).argmax(dim=1)
        done = end
    return tokens[:, start:]
