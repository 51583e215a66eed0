"""Independent oracles: a plain padded decoder and slow greedy decoding without a cache.

They share nothing with the package but the weights. Shapes: B examples, T tokens, D width, H
heads, V symbols.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from taskhint.model.decoder import Decoder
from taskhint.tasks import Examples, Task


def padded_logits(
    decoder: Decoder, head: str, tokens: Tensor, inputs: Tensor, sizes: Tensor
) -> Tensor:
    """(B, T, V) of (B, T) tokens padded at the right; `inputs` and `sizes` (B,) are what
    temperatures may count.
    """
    config, weights = decoder.config, dict(decoder.named_parameters())
    rows, count = tokens.shape
    x = weights["embedding.weight"][tokens]
    if config.positions.kind == "learned":
        x = x + weights["positions.table.weight"][:count]
    if config.positions.kind == "sinusoidal":
        place = torch.arange(count, dtype=x.dtype)[:, None]
        rates = 10_000.0 ** (-torch.arange(0, config.width, 2, dtype=x.dtype) / config.width)
        x = x + torch.cat([torch.sin(place * rates), torch.cos(place * rates)], dim=1)

    def norm(value: Tensor, name: str) -> Tensor:
        if f"{name}.weight" not in weights:
            return value
        return functional.layer_norm(
            value, (config.width,), weights[f"{name}.weight"], weights[f"{name}.bias"]
        )

    for i in range(config.depth):
        at = f"blocks.{i}."
        queries, keys, values = (
            norm(x, at + "before_attention") @ w.T for w in weights[at + "attention.qkv"].chunk(3)
        )
        heads = []
        for h in range(config.heads):
            part = slice(h * config.each_head, (h + 1) * config.each_head)
            asking, asked = queries[..., part], keys[..., part]
            if config.qk_norm:
                asking, asked = (
                    math.sqrt(config.each_head) * x / x.norm(dim=-1, keepdim=True)
                    for x in (asking, asked)
                )
            window: Tensor | float = 0.0
            if config.positions.kind == "mirror":
                of_key = (torch.arange(count) - inputs[:, None]).abs()
                of_query = (torch.arange(count) + 1 - inputs[:, None]).abs()
                width = 0.5 * 3.0 ** (h / (config.heads - 1))
                difference = (of_query[:, :, None] - of_key[:, None, :]).to(x.dtype)
                window = -((difference / width) ** 2) / 2
                asking, asked = turned(asking, of_query), turned(asked, of_key)
            logits = asking @ asked.transpose(1, 2) / math.sqrt(config.each_head)
            if config.temperature.kind != "constant":
                n = {
                    "log-visible": torch.arange(1, count + 1).expand(rows, count),
                    "log-input": inputs[:, None].expand(rows, count),
                    "log-sequence": sizes[:, None].expand(rows, count),
                }[config.temperature.kind]
                logits = (
                    logits
                    * (weights[at + "attention.temperature.beta"] * n.to(x.dtype).log())[
                        :, :, None
                    ]
                )
            logits = logits + window + torch.full((count, count), -math.inf, dtype=x.dtype).triu(1)
            heads.append(torch.softmax(logits, dim=-1) @ values[..., part])
        x = x + torch.cat(heads, dim=-1) @ weights[at + "attention.out.weight"].T
        if config.mlp_width:
            hidden = (
                norm(x, at + "before_mlp") @ weights[at + "mlp.up.weight"].T
                + weights[at + "mlp.up.bias"]
            )
            hidden = (
                functional.gelu(hidden) if config.activation == "gelu" else hidden.clamp(min=0)
            )
            x = x + hidden @ weights[at + "mlp.down.weight"].T + weights[at + "mlp.down.bias"]
        x = norm(x, at + "after")
    x = norm(x, "final_norm")
    return x @ weights[f"heads.{head}.weight"].T + weights[f"heads.{head}.bias"]


def turned(value: Tensor, place: Tensor) -> Tensor:
    """(B, T, K) without its last pair, as complex numbers, times e^(i angle)."""
    half = value.shape[2] // 2 - 1
    rates = torch.tensor([100.0 ** (-k / (half - 1)) for k in range(half)], dtype=value.dtype)
    angle = place[:, :, None] * rates
    numbers = torch.complex(value[..., :half], value[..., half : 2 * half])
    numbers = numbers * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([numbers.real, numbers.imag], dim=2)


def padded_loss(decoder: Decoder, task: Task, parts: list[Examples]) -> Tensor:
    """The mean loss over the scored tokens of examples that are padded to the longest."""
    width = max(part.tokens.shape[1] for part in parts)
    tokens = np.concatenate(
        [
            np.pad(
                part.tokens,
                ((0, 0), (0, width - part.tokens.shape[1])),
                constant_values=task.vocab.pad,
            )
            for part in parts
        ]
    )
    scored = np.concatenate(
        [np.pad(task.scored(part), ((0, 0), (0, width - part.tokens.shape[1]))) for part in parts]
    )
    inputs = torch.from_numpy(np.concatenate([part.inputs for part in parts]))
    sizes = torch.from_numpy(np.concatenate([part.sizes for part in parts]))
    given, wanted, mask = (
        torch.from_numpy(tokens),
        torch.from_numpy(tokens[:, 1:]),
        torch.from_numpy(scored[:, 1:]),
    )
    logits = padded_logits(decoder, task.kind, given[:, :-1], inputs, sizes)
    return functional.cross_entropy(logits[mask], wanted[mask])


@torch.no_grad()
def slow_greedy(
    decoder: Decoder, head: str, prompt: list[int], count: int, inputs: int
) -> list[int]:
    """Token after token, the whole sequence anew each time."""
    tokens = list(prompt)
    for _ in range(count):
        logits = padded_logits(
            decoder,
            head,
            torch.tensor([tokens]),
            torch.tensor([inputs]),
            torch.tensor([len(prompt) + count]),
        )
        tokens.append(int(logits[0, -1].argmax()))
    return tokens[len(prompt) :]
