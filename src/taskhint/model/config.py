"""Everything that decides a decoder's shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from taskhint.system.errors import UserError

TemperatureKind = Literal["constant", "log-visible", "log-input", "log-sequence"]
PositionKind = Literal["none", "learned", "sinusoidal", "mirror"]
NormKind = Literal["before", "after", "none"]
Activation = Literal["gelu", "relu"]
NumberFormat = Literal["float64", "float32", "bfloat16", "float16"]

# So that the number of weights can be counted, and refused, before any memory is taken.
LARGEST = {
    "width": 1 << 18,
    "heads": 1 << 18,
    "depth": 1 << 10,
    "mlp_width": 1 << 18,
    "head_width": 1 << 18,
    "max_positions": 1 << 24,
}


@dataclass(frozen=True)
class ModelConfig:
    """A decoder's shape.

    temperature: attention logits times 1 (`constant`) or times β·ln n with one learned β per layer, where n counts the
    keys that a query sees (`log-visible`), the symbols before ⊥ (`log-input`) or prompt and answer (`log-sequence`).
    unit_keys: every head's queries and keys are brought to one size, √(its width), so that logits are cosines times
    that size and the temperature.
    positions: what a token knows of its place: nothing, a vector added to its own (`learned`, `sinusoidal`), or how far
    it is from ⊥ on either side (`mirror`), of which attention sees only differences, and only small ones.
    norm: layer normalisation before each part of a block and once at the end (`before`), once after each block
    (`after`, as the paper's theory writes it), or nowhere.
    dtype: the number format of weights and hidden states. Training is in float32; the others are for constructed ones.
    """

    width: int = 128
    heads: int = 4
    depth: int = 2
    mlp_width: int = 256  # 0: blocks of attention only
    head_width: int = 0  # 0: width / heads
    activation: Activation = "gelu"
    norm: NormKind = "before"
    positions: PositionKind = "none"
    max_positions: int = 512  # rows of the learned table; the other kinds have no limit
    temperature: TemperatureKind = "constant"
    initial_beta: float = 0.4
    unit_keys: bool = False
    dtype: NumberFormat = "float32"

    def __post_init__(self) -> None:
        for name in ("width", "heads", "depth", "max_positions"):
            if getattr(self, name) < 1:
                raise UserError(f"model.{name}={getattr(self, name)} is too small; at least 1")
        for name in ("mlp_width", "head_width"):
            if getattr(self, name) < 0:
                raise UserError(f"model.{name}={getattr(self, name)} is negative")
        for name, largest in LARGEST.items():
            if getattr(self, name) > largest:
                raise UserError(f"model.{name}={getattr(self, name)} is too large; at most {largest}")
        if self.head_width == 0 and self.width % self.heads:
            raise UserError(
                f"model.width={self.width} is not a multiple of model.heads={self.heads}; change one of them"
            )
        if self.positions == "sinusoidal" and self.width % 2:
            raise UserError(f"model.width={self.width} is odd; sinusoidal positions need an even width")
        if self.positions == "mirror" and (self.each_head % 2 or self.each_head < 4):
            raise UserError(
                f"a head's width of {self.each_head} is not even and at least 4; mirror positions need that"
            )

    @property
    def each_head(self) -> int:
        return self.head_width or self.width // self.heads
