"""The package's plain reference, asked with a Decoder's own weights."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from taskhint.model import reference
from taskhint.model.decoder import Decoder
from taskhint.model.reference import Padded, padded
from taskhint.tasks import Examples, Task


def padded_logits(
    decoder: Decoder, head: str, tokens: Tensor, inputs: Tensor, sizes: Tensor
) -> Tensor:
    """(B, T, V) of (B, T) tokens padded at the right."""
    batch, weights = Padded(tokens, inputs, sizes), dict(decoder.named_parameters())
    return reference.logits(decoder.config, weights, batch, head, decoder.task(head))


def padded_loss(decoder: Decoder, task: Task, parts: list[Examples]) -> Tensor:
    """The mean loss over the scored tokens of examples that are padded to the longest."""
    batch, following, scored = padded(task, parts)
    found = padded_logits(decoder, task.kind, batch.tokens, batch.inputs, batch.sizes)
    return functional.cross_entropy(found[scored], following[scored])


def slow_greedy(
    decoder: Decoder, head: str, prompt: list[int], count: int, inputs: int
) -> list[int]:
    """Token after token, the whole sequence anew each time."""
    size = torch.tensor([len(prompt) + count])
    batch = Padded(torch.tensor([prompt]), torch.tensor([inputs]), size)
    weights = dict(decoder.named_parameters())
    found = reference.greedy(decoder.config, weights, batch, head, decoder.task(head))
    return found[0].tolist()
