"""The whole transformer in its plainest form: padded (B, T) tokens in, logits out.

Read this to see the model. `Decoder` computes the same numbers without padding and faster, and
the tests hold it to this file. What positions, temperatures and normalisers do is asked of their
hooks; everything else is written out.

Shapes: B examples, T tokens, D width, H heads, K head width, V symbols. Weights go by the names
that `Decoder.state_dict()` has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from taskhint.model.config import ModelConfig
from taskhint.model.places import Places
from taskhint.model.positions import PositionHooks
from taskhint.tasks.task import Examples, Task

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Padded:
    """Sequences without their last token, filled up at the right to the longest."""

    tokens: Tensor  # (B, T)
    inputs: Tensor  # (B,) symbols before ⊥
    sizes: Tensor  # (B,) tokens of prompt and answer together, the last one too
    ids: Tensor | None = None  # (B, T + 1) position ids, where they were drawn for training


def logits(
    config: ModelConfig, weights: Weights, batch: Padded, head: str, task: Task | None = None
) -> Tensor:
    """(B, T, V) what follows each token; without meaning where there is padding.

    Causal attention looks back only, so that padding at the right changes nothing. The task is
    needed by position schemes that read tokens.
    """
    places = _places(config, batch, task)
    x = weights["embedding.weight"][batch.tokens]
    x = _hooks(config, weights, 0).add(x.flatten(0, 1), places).view_as(x)
    for i in range(config.depth):
        x = _block(config, weights, i, x, places)
    x = _norm(weights, "final_norm", x)
    return x @ weights[f"heads.{head}.weight"].T + weights[f"heads.{head}.bias"]


def _block(config: ModelConfig, weights: Weights, i: int, x: Tensor, places: Places) -> Tensor:
    at = f"blocks.{i}."
    x = x + _attention(config, weights, i, _norm(weights, at + "before_attention", x), places)
    if config.mlp_width:
        hidden = _linear(weights, at + "mlp.up", _norm(weights, at + "before_mlp", x))
        hidden = functional.gelu(hidden) if config.activation == "gelu" else hidden.relu()
        x = x + _linear(weights, at + "mlp.down", hidden)
    return _norm(weights, at + "after", x)


def _attention(config: ModelConfig, weights: Weights, i: int, x: Tensor, places: Places) -> Tensor:
    """(B, T, D) -> (B, T, D) what each token gathers from itself and those before it."""
    rows, count, _ = x.shape
    at, hooks = f"blocks.{i}.attention.", _hooks(config, weights, i)
    q, k, v = (
        (x @ w.T).unflatten(2, (config.heads, config.each_head))
        for w in weights[at + "qkv"].chunk(3)
    )
    if config.qk_norm:
        q, k = (math.sqrt(config.each_head) * y / y.norm(dim=3, keepdim=True) for y in (q, k))
    scale = _scale(config, weights, at, x, places)
    q = hooks.turn_queries(q.flatten(0, 1), places, scale.flatten(0, 1)).view_as(q)
    k = hooks.turn_keys(k.flatten(0, 1), places).view_as(k)
    scores = torch.einsum("bqhk,bthk->bhqt", q, k) * scale.transpose(1, 2)[..., None]
    if hooks.overrides("bias"):
        ids = places.ids.view(rows, 1, count)
        scores = scores + hooks.bias(ids[..., None], ids[:, :, None, :])
    later = torch.ones(count, count, dtype=torch.bool, device=x.device).triu(1)
    shares = config.normaliser.weights(scores.masked_fill(later, -math.inf))
    found = torch.einsum("bhqt,bthk->bqhk", shares, v).flatten(2)
    return found @ weights[at + "out.weight"].T


def _scale(config: ModelConfig, weights: Weights, at: str, x: Tensor, places: Places) -> Tensor:
    """(B, T, 1) or (B, T, H) what each query's logits are multiplied with."""
    temperature = config.temperature.bind(config, _under(weights, at + "temperature."))
    factor = temperature.factor(replace(places, stream=x.flatten(0, 1)))
    if factor is None:
        factor = x.new_ones(places.index.shape)
    return factor.view(*x.shape[:2], -1) / math.sqrt(config.each_head)


def _hooks(config: ModelConfig, weights: Weights, i: int) -> PositionHooks:
    """What the position scheme does in block i, with the weights that it has there."""
    own = _under(weights, f"blocks.{i}.attention.positions.")
    return config.positions.bind(config, {**_under(weights, "positions."), **own})


def _under(weights: Weights, prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in weights.items()
        if name.startswith(prefix)
    }


def _linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _norm(weights: Weights, name: str, x: Tensor) -> Tensor:
    """Layer normalisation, where the model has one of that name."""
    if f"{name}.weight" not in weights:
        return x
    centred = x - x.mean(dim=-1, keepdim=True)
    scaled = centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _places(config: ModelConfig, batch: Padded, task: Task | None) -> Places:
    """Where each of the B * T tokens stands; padding stands at 0."""
    rows, count = batch.tokens.shape
    index = torch.arange(count + 1, device=batch.tokens.device).expand(rows, -1)
    sequence = batch.sizes[:, None].expand(rows, count + 1)
    ids = batch.ids
    if ids is None and config.positions.reads_tokens:
        assert task is not None
        found = config.positions.token_ids(batch.tokens.cpu().numpy(), task)
        ids = torch.from_numpy(found).to(index.device)
    elif ids is None:
        ids = config.positions.test_ids(index, sequence)
    own, following = (
        part.masked_fill(index[:, :-1] >= sequence[:, :-1] - 1, 0).flatten()
        for part in (ids[:, :-1], ids[:, 1:])
    )
    each = batch.inputs[:, None].expand(rows, count).flatten()
    return Places(index[:, :-1].flatten(), each, sequence[:, :-1].flatten(), own, False, following)


def padded(task: Task, parts: Iterable[Examples]) -> tuple[Padded, Tensor, Tensor]:
    """Examples as a padded batch; with (B, T) the token that follows each one, and whether it is
    asked for.
    """
    given = list(parts)
    width = max(part.tokens.shape[1] for part in given)
    tokens, scored = (
        torch.from_numpy(
            np.concatenate(
                [np.pad(x, ((0, 0), (0, width - x.shape[1])), constant_values=0) for x in values]
            )
        )
        for values in ([part.tokens for part in given], [task.scored(part) for part in given])
    )
    inputs, sizes = (
        torch.from_numpy(np.concatenate(values))
        for values in ([part.inputs for part in given], [part.sizes for part in given])
    )
    return Padded(tokens[:, :-1], inputs, sizes), tokens[:, 1:], scored[:, 1:]


@torch.no_grad()
def greedy(
    config: ModelConfig, weights: Weights, prompt: Padded, head: str, task: Task | None = None
) -> Tensor:
    """(B, A) the most likely tokens one after another, the whole sequence anew each time: prompts
    are equally long, and `sizes` says how long they become.
    """
    tokens = prompt.tokens
    while tokens.shape[1] < int(prompt.sizes[0]):
        found = logits(config, weights, replace(prompt, tokens=tokens), head, task)
        tokens = torch.cat([tokens, found[:, -1:].argmax(dim=2)], dim=1)
    return tokens[:, prompt.tokens.shape[1] :]
