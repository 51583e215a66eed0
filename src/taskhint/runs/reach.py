"""How far a run reaches: the longest length at which its accuracy is at least a share; and the
file that keeps it. Reading needs no torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskhint.system.errors import UserError, warn
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.lock import one_at_a_time
from taskhint.system.settings import Settings, conform, to_json

NAME = "reach.json"


@dataclass(frozen=True)
class Reach(Settings):
    """The longest `length` with at least `share` of `examples` sequences right; 0 if none is.

    `low` and `high` are its 95% interval over sequences: the longest length at which the whole
    Wilson interval of the accuracy is at or above the share, and the longest at which its upper
    end is. Nothing longer than `longest` was looked at: a reach of that many is a lower bound.
    `measured` are the lengths that were looked at.
    """

    share: float
    length: int
    low: int
    high: int
    longest: int
    examples: int
    measured: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise UserError(f"a reach of share {self.share} is not in 0..1, without 0")
        if not 0 <= self.low <= self.length <= self.high <= self.longest or self.examples < 1:
            raise UserError(
                f"a reach of {self.low} <= {self.length} <= {self.high} is not possible"
            )

    @property
    def censored(self) -> bool:
        """Whether it ends where the search did, so that the true one may be longer."""
        return self.length == self.longest

    def __str__(self) -> str:
        least = "at least " if self.censored else ""
        percent = f"{100 * self.share:g}%"
        return (
            f"reach of {percent}: {least}{self.length} (95% interval {self.low}–{self.high}; "
            f"{self.examples} sequences at each of {len(self.measured)} lengths up to "
            f"{max(self.measured)})"
        )


@dataclass(frozen=True)
class KeptReaches(Settings):
    """What was found of the checkpoint of one step: by test distribution, then by share as
    text.
    """

    step: int = 0
    found: dict[str, dict[str, Reach]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Any, where: str) -> KeptReaches:
        try:
            kept: KeptReaches = conform(cls, data, "the document")
        except UserError as error:
            raise UserError(f"{where} is damaged: {error}") from None
        return kept

    def at(self, share: float, distribution: str = "uniform") -> Reach | None:
        return self.found.get(distribution, {}).get(f"{share:g}")

    def merged(self, older: KeptReaches) -> KeptReaches:
        """Both together, or those of the later step; of two reaches this one's."""
        if not self.found or older.step > self.step:
            return older
        if not older.found or older.step < self.step:
            return self
        names = {**older.found, **self.found}
        rows = {name: {**older.found.get(name, {}), **self.found.get(name, {})} for name in names}
        return KeptReaches(self.step, rows)


def save_reach(run: Path, step: int, distribution: str, reach: Reach) -> None:
    """Keep a reach beside those that were found before at this step."""
    with one_at_a_time(run / "evaluations"):
        try:
            older = load_reaches(run)
        except UserError as error:
            warn(f"{error}; only what is found now is kept")
            older = KeptReaches()
        kept = KeptReaches(step, {distribution: {f"{reach.share:g}": reach}})
        kept = kept if older.step != step else kept.merged(older)
        write_atomically(run / NAME, json_bytes(to_json(kept)))


def load_reaches(run: Path) -> KeptReaches:
    """What was kept; nothing if nobody looked."""
    path = run / NAME
    return KeptReaches.from_json(read_json(path), str(path)) if path.exists() else KeptReaches()
