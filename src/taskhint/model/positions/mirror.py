"""Windows around the places of tokens that belong together; `mirror`, where these are distances
from ⊥.

Shapes: N tokens, H heads, K head width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taskhint.model.positions.rotary import turned
from taskhint.model.positions.scheme import PositionHooks, Positions
from taskhint.system.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

    from taskhint.model.config import ModelConfig
    from taskhint.model.places import Places

SLOWEST_TURN = 1e-2  # radians for a step away from ⊥; the fastest pair of coordinates turns by 1
SMALLEST_SCALE = 1e-3  # the first token of all has none: ln 1 = 0
NARROWEST, WIDEST = (
    0.5,
    1.5,
)  # widths of the heads' windows, in steps: all that is in sight, short inputs have too


@dataclass(frozen=True)
class Windows(Positions):
    """A query stands where the token that it predicts will stand, and sees what is near there.

    It is meant for `coupling`, where near is what belongs together. Two things depend on places,
    both on the difference of two of them alone, so that they mean the same at every length: all
    pairs of coordinates but the last are turned by an angle that grows with the place; and the
    last pair holds what makes logits fall by (difference / width)² / 2, with a width for each
    head, from narrow to wide: a difference that was never trained is out of sight.
    """

    kind: ClassVar[str] = "windows"

    def check(self, model: ModelConfig) -> None:
        if model.each_head % 2 or model.each_head < 4:
            raise UserError(
                f"a head's width of {model.each_head} is not even and at least 4; {self.kind} "
                "positions need that"
            )

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> PositionHooks:  # noqa: ARG002
        return WindowHooks(model)

    def reads_next(self) -> bool:
        return True


@dataclass(frozen=True)
class Mirror(Windows):
    """Places are distances from ⊥, on either side: the k-th symbol before it and the k-th of the
    answer share one.

    For `increment` it is `coupling` with the scheme `windows` and no random start. It needs no
    word of the task, and is older.
    """

    kind: ClassVar[str] = "mirror"
    takes_ids: ClassVar[bool] = False

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> PositionHooks:  # noqa: ARG002
        return FromDelimiterHooks(model)

    def reads_next(self) -> bool:
        return False


class WindowHooks(PositionHooks):
    def __init__(self, model: ModelConfig) -> None:
        self.pairs = model.each_head // 2 - 1
        ratios = [head / max(1, model.heads - 1) for head in range(model.heads)]
        self.widths = [NARROWEST * (WIDEST / NARROWEST) ** ratio for ratio in ratios]

    def of_queries(self, places: Places) -> Tensor:
        assert places.next_ids is not None
        return places.next_ids

    def of_keys(self, places: Places) -> Tensor:
        return places.ids

    def turn_queries(self, q: Tensor, places: Places, scale: Tensor) -> Tensor:
        """Such that the later factor `scale` leaves the window as it is."""
        import torch

        place = self.of_queries(places).to(q.dtype)
        steepness = q.new_tensor([0.5 / width**2 for width in self.widths])
        window = torch.stack(
            [2.0 * place[:, None] * steepness, -steepness.expand(len(q), -1)], dim=2
        )
        return self._turned(q, place, window / scale.clamp(min=SMALLEST_SCALE)[:, :, None])

    def turn_keys(self, k: Tensor, places: Places) -> Tensor:
        import torch

        place = self.of_keys(places).to(k.dtype)
        window = torch.stack([place, place**2], dim=1)[:, None, :].expand(-1, k.shape[1], -1)
        return self._turned(k, place, window)

    def _turned(self, x: Tensor, place: Tensor, window: Tensor) -> Tensor:
        import torch

        exponents = torch.arange(self.pairs, dtype=x.dtype, device=x.device) / max(
            1, self.pairs - 1
        )
        angles = (place[:, None] * SLOWEST_TURN**exponents)[:, None, :]
        first, second, _ = x.split([self.pairs, self.pairs, 2], dim=2)
        return torch.cat([*turned(first, second, angles), window], dim=2)


class FromDelimiterHooks(WindowHooks):
    def of_queries(self, places: Places) -> Tensor:
        return (places.index + 1 - places.inputs).abs()

    def of_keys(self, places: Places) -> Tensor:
        return (places.index - places.inputs).abs()
