"""How often the mechanisms held in a run, kept beside its evaluations; reading needs no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskhint.system.errors import UserError, warn
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.lock import one_at_a_time
from taskhint.system.settings import Settings, conform, to_json

NAME = "mechanisms.json"
SHARPEST = "sharpest head"  # kept among the shares: attention on its favourite symbol


@dataclass(frozen=True)
class KeptShare(Settings):
    """How often a mechanism held in so many sequences of one length."""

    share: float
    examples: int

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise UserError("a share is not in 0..1")
        if self.examples < 1:
            raise UserError("a share of no sequences")


@dataclass(frozen=True)
class KeptShares(Settings):
    """What was counted in the checkpoint of one step: shares by mechanism and length."""

    step: int = 0
    shares: dict[str, dict[int, KeptShare]] = field(default_factory=dict)

    @classmethod
    def from_older(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Older files name the sequences once for all."""
        if "examples" not in data or not isinstance(data.get("shares"), dict):
            return data
        shares = {
            name: {n: {"share": share, "examples": data["examples"]} for n, share in row.items()}
            if isinstance(row, dict)
            else row
            for name, row in data["shares"].items()
        }
        return {"step": data.get("step", 0), "shares": shares}

    @classmethod
    def from_json(cls, data: Any, where: str) -> KeptShares:
        try:
            found: KeptShares = conform(cls, data, "the document")
        except UserError as error:
            raise UserError(f"{where} is damaged: {error}") from None
        return found

    def at(self, mechanism: str, length: int) -> KeptShare | None:
        return self.shares.get(mechanism, {}).get(length)

    def merged(self, older: KeptShares) -> KeptShares:
        """Both together; of two shares the one of more sequences, of equally many this one."""
        if older.step != self.step:
            return self
        shares = {}
        for name in {**older.shares, **self.shares}:
            row = {**older.shares.get(name, {}), **self.shares.get(name, {})}
            shares[name] = {n: self._better(older, name, n) for n in sorted(row)}
        return KeptShares(self.step, shares)

    def _better(self, older: KeptShares, mechanism: str, length: int) -> KeptShare:
        found = (self.at(mechanism, length), older.at(mechanism, length))
        return max((share for share in found if share is not None), key=lambda one: one.examples)


def save_shares(run: Path, step: int, examples: int, shares: dict[str, dict[int, float]]) -> None:
    """Keep shares by mechanism and length, beside those that were counted before at this step."""
    counted = {
        name: {n: KeptShare(share, examples) for n, share in row.items()}
        for name, row in shares.items()
    }
    with one_at_a_time(run / "evaluations"):
        try:
            older = load_shares(run)
        except UserError as error:
            warn(f"{error}; only what is counted now is kept")
            older = KeptShares()
        kept = KeptShares(step, counted).merged(older)
        write_atomically(run / NAME, json_bytes(to_json(kept)))


def load_shares(run: Path) -> KeptShares:
    """What was kept; nothing if nobody looked."""
    path = run / NAME
    return KeptShares.from_json(read_json(path), str(path)) if path.exists() else KeptShares()
