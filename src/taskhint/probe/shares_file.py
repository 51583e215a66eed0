"""How often the mechanisms held in a run, kept beside its evaluations; reading it
needs no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, read_json, write_atomically

NAME = "mechanisms.json"


@dataclass(frozen=True)
class KeptShares:
    """Shares by mechanism and length, and how many sequences of each length they come from."""

    examples: int
    shares: dict[str, dict[int, float]]


def save_shares(run: Path, step: int, examples: int, shares: dict[str, dict[int, float]]) -> None:
    """Shares by mechanism and length."""
    by_name = {
        name: {str(n): share for n, share in sorted(row.items())} for name, row in shares.items()
    }
    write_atomically(
        run / NAME, json_bytes({"step": step, "examples": examples, "shares": by_name})
    )


def load_shares(run: Path) -> KeptShares:
    """What was kept; nothing if nobody looked."""
    path = run / NAME
    return _read(read_json(path), path) if path.exists() else KeptShares(0, {})


def _read(data: Any, path: Path) -> KeptShares:
    try:
        examples = int(data["examples"])
        shares = {
            name: {int(n): float(x) for n, x in row.items()}
            for name, row in data["shares"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UserError(f"{path} is damaged: it does not hold shares of mechanisms") from None
    if not all(0.0 <= share <= 1.0 for row in shares.values() for share in row.values()):
        raise UserError(f"{path} is damaged: a share is not in 0..1")
    return KeptShares(examples, shares)
