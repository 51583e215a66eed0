"""Adam, and Muon in float32 for matrices with Adam for the rest; linear warm-up and one cosine cycle."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from taskhint.model.decoder import Decoder
from taskhint.recipes.recipe import Adam, Muon


def schedule(step: int, steps: int, warmup: int) -> float:
    """The factor on the learning rate in update `step` (from 0): up in a line to 1, then down half a cosine to 0."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1.0 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def orthogonalise(matrices: Tensor) -> Tensor:
    """(n, rows, columns), rows <= columns: nearly the closest matrices with orthonormal rows.

    Five Newton-Schulz turns. The coefficients push every singular value fast into about 0.7..1.2, not exactly
    to 1. Float32 throughout: bfloat16 is several times slower on processors that lack it.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


class Optimiser:
    """Updates a decoder's weights. Its whole state is a dictionary of named tensors."""

    def __init__(self, decoder: Decoder, settings: Adam | Muon, learning_rate: float) -> None:
        named = dict(decoder.named_parameters())
        matrices = _matrices(decoder) if isinstance(settings, Muon) else {}
        self._muon = _MuonPart(matrices, settings) if isinstance(settings, Muon) else None
        self._rate = learning_rate
        self._rest = {name: value for name, value in named.items() if name not in matrices}
        self._rest_rate = settings.rest_rate if isinstance(settings, Muon) else learning_rate
        self._adam = _adam(self._rest, settings)
        for value in self._rest.values():  # torch would make these at the first step; a head may wait for its turn
            zeros = {"exp_avg": torch.zeros_like(value), "exp_avg_sq": torch.zeros_like(value)}
            self._adam.state[value] = {"step": torch.zeros((), device=value.device), **zeros}

    def step(self, factor: float) -> None:
        """Apply the gradients with `factor` times the learning rate, and clear them. Weights without one stay put."""
        for group in self._adam.param_groups:
            group["lr"] = factor * self._rest_rate
        self._adam.step()
        if self._muon is not None:
            self._muon.step(factor * self._rate)
        self._adam.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        state = {}
        for name, value in self._rest.items():
            for part, tensor in self._adam.state[value].items():
                state[f"adam.{part}.{name}"] = tensor
        return state | (self._muon.state() if self._muon is not None else {})

    def load(self, state: dict[str, Tensor]) -> None:
        for name, value in self._rest.items():
            parts = ("step", "exp_avg", "exp_avg_sq")
            self._adam.state[value] = {part: state[f"adam.{part}.{name}"].to(value.device).clone() for part in parts}
        if self._muon is not None:
            self._muon.load(state)


def _matrices(decoder: Decoder) -> dict[str, Tensor]:
    return {
        name: value for name, value in decoder.named_parameters() if name.startswith("blocks.") and value.dim() == 2
    }


def _adam(named: dict[str, Any], settings: Adam | Muon) -> torch.optim.AdamW:
    if isinstance(settings, Muon):
        return torch.optim.AdamW(named.values(), weight_decay=0.0, fused=True)
    decayed = [value for value in named.values() if value.dim() == 2]
    others = [value for value in named.values() if value.dim() != 2]
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(settings.beta1, settings.beta2), fused=True)


class _MuonPart:
    """Momentum for the matrices. Those of one shape are orthogonalised together; query, key and value maps apart."""

    def __init__(self, matrices: dict[str, Tensor], settings: Muon) -> None:
        self._settings = settings
        self._matrices = matrices
        self._momentum = {name: torch.zeros_like(value) for name, value in matrices.items()}

    @torch.no_grad()
    def step(self, rate: float) -> None:
        by_shape: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for name, value in self._matrices.items():
            assert value.grad is not None
            momentum = self._momentum[name]
            momentum.lerp_(value.grad, 1.0 - self._settings.momentum)
            direction = value.grad.lerp(momentum, self._settings.momentum)
            for weight, part in zip(_maps(name, value), _maps(name, direction), strict=True):
                by_shape[tuple(part.shape)].append((weight, part))
            value.mul_(1.0 - rate * self._settings.weight_decay)
            value.grad = None
        for (rows, columns), pairs in by_shape.items():
            stack = torch.stack([part if rows <= columns else part.mT for _, part in pairs])
            size = rate * math.sqrt(max(1.0, rows / columns))
            for (weight, _), update in zip(pairs, orthogonalise(stack), strict=True):
                weight.sub_(update if rows <= columns else update.mT, alpha=size)

    def state(self) -> dict[str, Tensor]:
        return {f"muon.momentum.{name}": value for name, value in self._momentum.items()}

    def load(self, state: dict[str, Tensor]) -> None:
        for name, value in self._momentum.items():
            value.copy_(state[f"muon.momentum.{name}"])


def _maps(name: str, value: Tensor) -> Iterator[Tensor]:
    """The matrices that are stacked in one weight."""
    return iter(value.chunk(3)) if name.endswith("attention.qkv") else iter((value,))
