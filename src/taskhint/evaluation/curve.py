"""Accuracy (with interval) and edit distance, keyed by length and test distribution; and the files
that keep them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from taskhint.system.errors import UserError, warn
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.lock import one_at_a_time
from taskhint.system.tables import text_table

CONFIDENCE = 0.95
LARGEST = 1 << 40  # of any count in a file: beyond it, it is damaged


@dataclass(frozen=True)
class Score:
    """How one model did on `examples` sequences of one length."""

    examples: int
    right: int
    edit_distance: float | None = None  # mean over all examples, 0 for those that are right

    @property
    def accuracy(self) -> float:
        return self.right / self.examples

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% Wilson interval of the accuracy."""
        from scipy.stats import binomtest

        low, high = binomtest(self.right, self.examples).proportion_ci(CONFIDENCE, method="wilson")
        return float(low), float(high)

    def says_more(self, other: Score) -> bool:
        """Whether it stands on more sequences of the same stream, or on as many and alone has the
        edit distance.
        """
        if self.examples != other.examples:
            return self.examples > other.examples
        return self.edit_distance is not None and other.edit_distance is None

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval
        data = {
            "accuracy": self.accuracy,
            "low": low,
            "high": high,
            "examples": self.examples,
            "right": self.right,
        }
        return data if self.edit_distance is None else data | {"edit_distance": self.edit_distance}


@dataclass(frozen=True)
class LengthCurve:
    """The scores of one checkpoint of one run on one test distribution."""

    run: str
    recipe: str
    task: str
    distribution: str
    seed: int
    step: int
    scores: dict[int, Score] = field(default_factory=dict)

    def __getitem__(self, length: int) -> Score:
        return self.scores[length]

    def to_json(self) -> dict[str, Any]:
        examples = {score.examples for score in self.scores.values()}
        return {
            "run": self.run,
            "recipe": self.recipe,
            "task": self.task,
            "distribution": self.distribution,
            "seed": self.seed,
            "step": self.step,
            "examples": examples.pop() if len(examples) == 1 else None,
            "lengths": {
                str(length): self.scores[length].to_json() for length in sorted(self.scores)
            },
        }

    @classmethod
    def from_json(cls, data: Any, where: str) -> LengthCurve:
        try:
            texts = {name: data[name] for name in ("run", "recipe", "task", "distribution")}
            counts = {name: data[name] for name in ("seed", "step")}
            scores = {int(length): _score(entry) for length, entry in data["lengths"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"{where} is damaged: it is not an evaluation ({str(error)[:80]})"
            ) from None
        if (
            not all(isinstance(text, str) and text.isprintable() for text in texts.values())
            or not all(type(n) is int and 0 <= n <= LARGEST for n in counts.values())
            or not all(1 <= length <= LARGEST for length in scores)
        ):
            raise UserError(f"{where} is damaged: it is not an evaluation")
        return cls(**texts, **counts, scores=scores)


def _score(entry: Any) -> Score:
    distance = entry.get("edit_distance")
    examples, right = entry["examples"], entry["right"]
    if (
        type(examples) is not int
        or type(right) is not int
        or not 0 <= right <= examples <= LARGEST
        or examples < 1
    ):
        raise ValueError("counts")
    if distance is not None and (
        type(distance) not in (int, float) or not 0 <= distance <= LARGEST
    ):
        raise ValueError("edit distance")
    return Score(examples, right, None if distance is None else float(distance))


def curve_path(run: Path, step: int, distribution: str) -> Path:
    return run / "evaluations" / f"step-{step:08d}" / f"{distribution.replace(':', '-')}.json"


def save_curve(run: Path, curve: LengthCurve) -> Path:
    """Keep a curve with the run, beside the lengths that were measured before; of two scores the
    one that says more.
    """
    path = curve_path(run, curve.step, curve.distribution)
    with one_at_a_time(run / "evaluations"):
        if path.exists():
            try:
                older = LengthCurve.from_json(read_json(path), str(path)).scores
            except UserError as error:
                warn(f"{error}; only what is measured now is kept")
                older = {}
            kept = {
                n: score
                for n, score in older.items()
                if n not in curve.scores or score.says_more(curve[n])
            }
            curve = replace(curve, scores={**curve.scores, **kept})
        write_atomically(path, json_bytes(curve.to_json()))
    return path


def load_curves(run: Path) -> list[LengthCurve]:
    """The curves of a run's newest evaluated checkpoint, by distribution."""
    folders = sorted((run / "evaluations").glob("step-*"))
    if not folders:
        return []
    return [
        LengthCurve.from_json(read_json(path), str(path))
        for path in sorted(folders[-1].glob("*.json"))
    ]


def curve_table(curve: LengthCurve) -> str:
    """One curve, a row per length."""
    title = (
        f"{curve.recipe}, seed {curve.seed}, {curve.step} updates, {curve.distribution} sequences"
    )
    header = ["length", "accuracy %", "95% interval", "sequences"]
    rows = []
    for length, score in sorted(curve.scores.items()):
        low, high = score.interval
        row = [
            str(length),
            f"{100 * score.accuracy:.2f}",
            f"{100 * low:.2f}–{100 * high:.2f}",
            str(score.examples),
        ]
        rows.append(row if score.edit_distance is None else [*row, f"{score.edit_distance:.3f}"])
    if any(score.edit_distance is not None for score in curve.scores.values()):
        header.append("edit distance")
    return f"{title}\n{text_table(header, rows)}"
