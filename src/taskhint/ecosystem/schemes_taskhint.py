"""What position schemes, temperatures and normalisers of taskhint do, from their settings alone.

`taskhint export --format transformers` writes it beside the weights, in one file: it needs torch
alone. Settings are dictionaries with a `kind`, as in a recipe.

Shapes: B examples, A new tokens (queries), T tokens so far (keys), D width, H heads, K head width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Shapes = dict[str, tuple[int, ...]]
Config = Any  # TaskhintConfig

POSITIONS = frozenset(
    (
        "none",
        "learned",
        "learned-offset",
        "sinusoidal",
        "rope",
        "alibi",
        "nape",
        "t5",
        "kerple-log",
        "kerple-power",
        "fire",
        "windows",
        "mirror",
        "randomised",
        "abacus",
        "coupling",
    )
)
TEMPERATURES = frozenset(
    ["constant", "fixed", "log-visible", "log-input", "log-sequence", "ssmax", "log-n", "adaptive"]
)
NORMALISERS = frozenset(["softmax", "entmax15"])
COUPLINGS = ("distance", "index", "operand", "operand-reversed")
TABLES = ("learned", "learned-offset", "abacus")
FIRE_HIDDEN = 32
SLOWEST_TURN, SMALLEST_SCALE, NARROWEST, WIDEST = 1e-2, 1e-3, 0.5, 1.5
LOWEST_BELOW = 4.0


@dataclass(frozen=True)
class Places:
    """Where tokens stand. `ids` is what the position scheme goes by."""

    index: Tensor  # (B, A) 0 for the first real token of an example
    inputs: Tensor  # (B, 1) symbols before ⊥
    sequence: Tensor  # (B, 1) tokens of the whole example, prompt and answer
    key_ids: Tensor  # (B, T)
    ids: Tensor  # (B, A)
    next_ids: Tensor  # (B, A) of the token after each one
    visible: Tensor  # (B, 1, A, T)


class Weights(nn.Module):
    """Parameters by name; a dot in a name is a level."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self.names = tuple(shapes)
        for name, shape in shapes.items():
            *levels, last = name.split(".")
            module: nn.Module = self
            for level in levels:
                if level not in module._modules:
                    module.add_module(level, nn.Module())
                module = module.get_submodule(level)
            module.register_parameter(last, nn.Parameter(torch.zeros(shape)))

    def values(self) -> dict[str, Tensor]:
        return {name: self.get_parameter(name) for name in self.names}


def used(positions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scheme that uses position ids: another one's inner scheme, or itself."""
    return positions["scheme"] if positions["kind"] in ("coupling", "randomised") else positions


def shared_shapes(config: Config) -> Shapes:
    """The position scheme's weights that all blocks have in common."""
    scheme = used(config.positions)
    if scheme["kind"] in TABLES:
        return {"table.weight": (scheme["max_positions"], config.hidden_size)}
    if scheme["kind"] == "t5":
        return {"bias.weight": (scheme["buckets"], config.num_attention_heads)}
    return {}


def block_shapes(config: Config) -> Shapes:
    heads = config.num_attention_heads
    return {
        "kerple-log": {"log_r1": (heads,), "log_r2": (heads,)},
        "kerple-power": {"log_r1": (heads,), "logit_r2": (heads,)},
        "fire": {
            "c": (),
            "threshold": (),
            "up.weight": (FIRE_HIDDEN,),
            "up.bias": (FIRE_HIDDEN,),
            "down.weight": (heads, FIRE_HIDDEN),
            "down.bias": (heads,),
        },
    }.get(used(config.positions)["kind"], {})


def temperature_shapes(config: Config) -> Shapes:
    heads, width = config.num_attention_heads, config.hidden_size
    shapes: dict[str, Shapes] = {
        "log-visible": {"beta": ()},
        "log-input": {"beta": ()},
        "log-sequence": {"beta": ()},
        "ssmax": {"scale": (heads,)},
        "adaptive": {"beta.weight": (heads, width), "gamma.weight": (heads, width)},
    }
    return shapes.get(config.attention_temperature["kind"], {})


def reads_sequence(config: Config) -> bool:
    """Whether the model must know how long prompt and answer are together."""
    return (
        config.positions["kind"] == "randomised"
        or config.attention_temperature["kind"] == "log-sequence"
    )


def position_ids(
    config: Config, head: str, marks: Tensor, index: Tensor, inputs: Tensor, sequence: Tensor
) -> tuple[Tensor, Tensor]:
    """(B, T) the ids of tokens, and of the token after each one. `marks`: which are no symbols."""
    settings = config.positions
    if settings["kind"] == "randomised":
        if int(sequence.max()) > settings["span"]:
            raise ValueError(f"an example is longer than positions.span={settings['span']}")
        own, following = (
            (i + 1) * (settings["span"] + 1) // (sequence + 1) - 1 for i in (index, index + 1)
        )
        return own, following
    if settings["kind"] == "coupling":
        rule = config.coupled[head]
        return coupled_ids(rule, index, inputs), coupled_ids(rule, index + 1, inputs)
    if settings["kind"] == "abacus":
        last = index.where(marks, index.new_tensor(-1)).cummax(dim=1).values
        return index - last, torch.zeros_like(index)
    return index, index + 1


def coupled_ids(rule: Mapping[str, Any], index: Tensor, inputs: Tensor) -> Tensor:
    """(B, T) which tokens belong together, for examples of (B, 1) symbols before ⊥.

    After ⊥ each run of `each` tokens has a number. A token before it has one by what `before`
    counts: the distance to ⊥, its own index, or the place in an operand, where two equally long
    ones stand on either side of an operator. ⊥ and the operator have 0.
    """
    steps = index - inputs
    half = (inputs - 1) // 2
    place = torch.where(index <= half, index, index - half - 1)
    before = {
        "distance": -steps,
        "index": index + 1,
        "operand": half - place,
        "operand-reversed": (place + 1) % (half + 1).clamp(min=1),
    }[rule["before"]]
    return torch.where(steps < 0, before, (steps + rule["each"] - 1) // rule["each"])


def add_positions(config: Config, shared: Mapping[str, Tensor], x: Tensor, at: Places) -> Tensor:
    """(B, A, D) token vectors -> what the first block reads."""
    kind = used(config.positions)["kind"]
    if kind in TABLES:
        table = shared["table.weight"]
        if int(at.ids.max()) >= len(table):
            raise ValueError(f"a sequence is longer than the {len(table)} learned positions")
        return x + table[at.ids]
    if kind == "sinusoidal":
        width = x.shape[2]
        rates = torch.arange(0, width, 2, dtype=x.dtype, device=x.device)
        angles = at.ids[..., None] * torch.exp(rates * (-math.log(10_000.0) / width))
        return x + torch.cat([angles.sin(), angles.cos()], dim=2)
    return x


def turn_queries(config: Config, q: Tensor, scale: Tensor, at: Places) -> Tensor:
    """(B, A, H, K) queries, whose logits are multiplied with (B, A, 1 or H) `scale` afterwards."""
    kind = used(config.positions)["kind"]
    if kind == "rope":
        return _rotated(used(config.positions)["base"], q, at.ids)
    if kind not in ("windows", "mirror"):
        return q
    place = (at.index + 1 - at.inputs).abs() if kind == "mirror" else at.next_ids
    place = place.to(q.dtype)
    heads = config.num_attention_heads
    ratios = [head / max(1, heads - 1) for head in range(heads)]
    widths = [NARROWEST * (WIDEST / NARROWEST) ** ratio for ratio in ratios]
    steepness = q.new_tensor([0.5 / width**2 for width in widths])
    window = torch.stack(
        [2.0 * place[..., None] * steepness, -steepness.expand(*place.shape, -1)], dim=3
    )
    return _windowed(q, place, window / scale.clamp(min=SMALLEST_SCALE)[..., None])


def turn_keys(config: Config, k: Tensor, at: Places) -> Tensor:
    """(B, A, H, K) keys of the new tokens."""
    kind = used(config.positions)["kind"]
    if kind == "rope":
        return _rotated(used(config.positions)["base"], k, at.ids)
    if kind not in ("windows", "mirror"):
        return k
    place = ((at.index - at.inputs).abs() if kind == "mirror" else at.ids).to(k.dtype)
    window = torch.stack([place, place**2], dim=2)[:, :, None].expand(-1, -1, k.shape[2], -1)
    return _windowed(k, place, window)


def _rotated(base: float, x: Tensor, ids: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=3)
    pairs = first.shape[3]
    exponents = torch.arange(pairs, dtype=x.dtype, device=x.device) / pairs
    return torch.cat(_turned(first, second, ids[..., None] * base**-exponents), dim=3)


def _windowed(x: Tensor, place: Tensor, window: Tensor) -> Tensor:
    pairs = x.shape[3] // 2 - 1
    exponents = torch.arange(pairs, dtype=x.dtype, device=x.device) / max(1, pairs - 1)
    first, second, _ = x.split([pairs, pairs, 2], dim=3)
    angles = place[..., None] * SLOWEST_TURN**exponents
    return torch.cat([*_turned(first, second, angles), window], dim=3)


def _turned(first: Tensor, second: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
    sine, cosine = angles.sin()[:, :, None], angles.cos()[:, :, None]
    return first * cosine - second * sine, first * sine + second * cosine


def position_bias(config: Config, weights: Mapping[str, Tensor], at: Places) -> Tensor | None:
    """What is added to (B, H, A, T) scaled logits; `weights` are the model's and the block's."""
    settings = used(config.positions)
    query, key = at.ids[:, None, :, None], at.key_ids[:, None, None, :]
    distance = (query - key).abs()
    match settings["kind"]:
        case "alibi" | "nape":
            slopes = torch.tensor(_slopes(settings["kind"], config.num_attention_heads))
            return -slopes.to(query.device).view(1, -1, 1, 1) * distance
        case "t5":
            bucket = _bucket(settings, (query - key).clamp(min=0))[:, 0]
            return weights["bias.weight"][bucket].movedim(3, 1)
        case "kerple-log":
            r1, r2 = (weights[name].exp().view(1, -1, 1, 1) for name in ("log_r1", "log_r2"))
            return -r1 * (r2 * distance).log1p()
        case "kerple-power":
            r1 = weights["log_r1"].exp().view(1, -1, 1, 1)
            return -r1 * distance ** (2.0 * weights["logit_r2"].sigmoid()).view(1, -1, 1, 1)
        case "fire":
            return _fire(settings["threshold"], weights, query[:, 0], key[:, 0])
    return None


def _slopes(kind: str, heads: int) -> list[float]:
    if kind == "nape":
        return [1.0 / (h + 1) if h < heads // 2 else 0.0 for h in range(heads)]
    power = 1 << int(math.log2(heads))
    slopes = [2.0 ** (-8.0 * h / power) for h in range(1, power + 1)]
    return slopes + [2.0 ** (-4.0 * h / power) for h in range(1, 2 * (heads - power), 2)]


def _bucket(settings: Mapping[str, Any], distance: Tensor) -> Tensor:
    buckets, single = settings["buckets"], settings["buckets"] // 2
    ratio = (distance.clamp(min=single).double() / single).log() / math.log(
        settings["max_distance"] / single
    )
    wide = (single + (ratio * (buckets - single)).long()).clamp(max=buckets - 1)
    return distance.where(distance < single, wide)


def _fire(start: float, w: Mapping[str, Tensor], query: Tensor, key: Tensor) -> Tensor:
    slope, threshold = w["c"].abs(), (start * w["threshold"]).abs()
    whole = query.to(slope.dtype).maximum(threshold)
    ratio = (slope * (query - key).clamp(min=0)).log1p() / (slope * whole).log1p()
    hidden = functional.relu(ratio[..., None] * w["up.weight"] + w["up.bias"])
    return functional.linear(hidden, w["down.weight"], w["down.bias"]).movedim(3, 1)


def factor(config: Config, weights: Mapping[str, Tensor], x: Tensor, at: Places) -> Tensor:
    """(B, A, 1) or (B, A, H) what logits are multiplied with, beside 1/√K. `x` is what queries
    are made of.
    """
    settings = config.attention_temperature
    keys = (at.index + 1)[..., None]
    match settings["kind"]:
        case "fixed":
            return x.new_full(keys.shape, settings["times"])
        case "log-visible":
            return weights["beta"] * keys.to(x.dtype).log()
        case "log-input":
            return weights["beta"] * at.inputs[..., None].expand_as(keys).to(x.dtype).log()
        case "log-sequence":
            return weights["beta"] * at.sequence[..., None].expand_as(keys).to(x.dtype).log()
        case "ssmax":
            return keys.to(x.dtype).log() * weights["scale"]
        case "log-n":
            return (keys.log() / math.log(settings["train_length"])).clamp(min=1.0)
        case "adaptive":
            beta = functional.softplus(functional.linear(x, weights["beta.weight"]))
            gamma = settings["gamma_range"] * functional.linear(x, weights["gamma.weight"]).tanh()
            return settings["delta"] + beta * (keys + 1).to(x.dtype).log() ** gamma
    return x.new_ones(keys.shape)


def normalised(config: Config, logits: Tensor) -> Tensor:
    """(..., T) logits -> weights that add up to 1; -inf gets weight 0."""
    return _entmax15(logits) if config.normaliser["kind"] == "entmax15" else logits.softmax(dim=-1)


def _entmax15(logits: Tensor) -> Tensor:
    """(z/2 - τ)² where that is positive (Peters et al. 2019); τ is found among sorted logits."""
    largest = logits.amax(dim=-1, keepdim=True)
    z = (logits.maximum(largest - LOWEST_BELOW) - largest) / 2.0
    ordered = z.sort(dim=-1, descending=True).values
    count = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
    mean, square = ordered.cumsum(dim=-1) / count, ordered.square().cumsum(dim=-1) / count
    left = (1.0 - count * (square - mean.square())) / count
    thresholds = mean - left.clamp(min=0.0).sqrt()
    support = (thresholds <= ordered).sum(dim=-1, keepdim=True)
    return (z - thresholds.gather(-1, support - 1)).clamp(min=0.0).square()
