"""Everything that decides a decoder's shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from taskhint.model.positions import NoPositions, Positions
from taskhint.model.softmax import Constant, Normaliser, Softmax, Temperature
from taskhint.system.errors import UserError
from taskhint.system.settings import ADDED, Settings, setting

Norm = Literal["before", "after", "none"]
Activation = Literal["gelu", "relu"]
NumberFormat = Literal["float64", "float32", "bfloat16", "float16"]

# So that the number of weights can be counted, and refused, before any memory is taken.
WIDEST, DEEPEST = 1 << 18, 1 << 10


@dataclass(frozen=True)
class ModelConfig(Settings):
    """A decoder's shape.

    positions, temperature, normaliser: a position scheme, a factor on attention logits, and what
    turns logits into weights; each can be given by the name of its kind. qk_norm: QK-norm, which
    gives every head's queries and keys the norm √(its width), so that logits are cosines times
    that norm and the temperature. norm: layer normalisation before each part of a block and once
    at the end (`before`), once after each block (`after`, as the paper's theory writes it), or
    nowhere. dtype: the number format of weights and hidden states. Training is in float32; the
    others are for constructed ones.
    """

    label: ClassVar[str] = "model"

    width: int = setting(128, at_least=1, at_most=WIDEST)
    heads: int = setting(4, at_least=1, at_most=WIDEST)
    depth: int = setting(2, at_least=1, at_most=DEEPEST)
    # 0: blocks of attention only
    mlp_width: int = setting(256, at_least=0, at_most=WIDEST)
    # 0: width / heads
    head_width: int = setting(0, at_least=0, at_most=WIDEST)
    activation: Activation = "gelu"
    norm: Norm = "before"
    positions: Positions = NoPositions()
    temperature: Temperature = Constant()
    normaliser: Normaliser = field(default=Softmax(), metadata=ADDED)
    qk_norm: bool = False
    dtype: NumberFormat = "float32"

    def __post_init__(self) -> None:
        if self.head_width == 0 and self.width % self.heads:
            raise UserError(
                f"model.width={self.width} is not a multiple of model.heads={self.heads}; "
                "change one of them"
            )
        self.positions.check(self)
        self.temperature.check(self)

    @cached_property
    def each_head(self) -> int:
        return self.head_width or self.width // self.heads

    @property
    def judged_whole(self) -> bool:
        """Whether a prediction depends on how long the answer will be: it cannot be judged by its
        beginning then.
        """
        return self.positions.reads_sequence or self.temperature.reads_sequence

    @classmethod
    def from_older(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Before version 0.2 these were names, with their numbers beside them."""
        data = dict(data)
        rows, beta = data.pop("max_positions", None), data.pop("initial_beta", None)
        if "unit_keys" in data:
            data["qk_norm"] = data.pop("unit_keys")
        if rows is not None and data.get("positions") == "learned":
            data["positions"] = {"kind": "learned", "max_positions": rows}
        if beta is not None and str(data.get("temperature", "")).startswith("log-"):
            data["temperature"] = {"kind": data["temperature"], "initial_beta": beta}
        return data
