"""Accuracy (with interval) and edit distance, keyed by length and test distribution; and the files
that keep them.

What was measured with another precision than float32 stands in a directory of its own, so that
numbers of two precisions are never mixed: RUN/bfloat16/evaluations/…
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from taskhint.system.devices import PRECISIONS
from taskhint.system.drawing import new_figure
from taskhint.system.errors import UserError, warn
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.lock import one_at_a_time
from taskhint.system.settings import Settings, conform, to_json
from taskhint.system.stats import Interval, wilson
from taskhint.system.tables import html_table, text_table

PLAIN = "float32"
LARGEST = 1 << 40  # of any count in a file: beyond it, it is damaged
DERIVED = ("accuracy", "low", "high")  # written for readers; computed here


@dataclass(frozen=True)
class Score(Settings):
    """How one model did on `examples` sequences of one length."""

    examples: int
    right: int
    edit_distance: float | None = None  # mean over all examples, 0 for those that are right

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.examples <= LARGEST or not self.examples:
            raise UserError(f"{self.right} right of {self.examples} sequences is not possible")
        if self.edit_distance is not None and not 0 <= self.edit_distance <= LARGEST:
            raise UserError(f"an edit distance of {self.edit_distance} is not possible")

    @classmethod
    def from_older(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in data.items() if name not in DERIVED}

    @property
    def accuracy(self) -> float:
        return self.right / self.examples

    @property
    def interval(self) -> Interval:
        """The 95% Wilson interval of the accuracy."""
        return wilson(self.accuracy, self.examples)

    def says_more(self, other: Score) -> bool:
        """Whether it stands on more sequences of the same stream, or on as many and alone has the
        edit distance.
        """
        if self.examples != other.examples:
            return self.examples > other.examples
        return self.edit_distance is not None and other.edit_distance is None

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval
        counts = {name: value for name, value in to_json(self).items() if value is not None}
        return {"accuracy": self.accuracy, "low": low, "high": high, **counts}


@dataclass(frozen=True)
class LengthCurve(Settings):
    """The scores of one checkpoint of one run on one test distribution."""

    run: str
    recipe: str
    task: str
    distribution: str
    seed: int
    step: int
    scores: dict[int, Score] = field(default_factory=dict)
    precision: str = PLAIN

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UserError(f"precision {self.precision!r:.40} is not known")
        for name, least, numbers in (
            ("seed", 0, [self.seed]),
            ("step", 0, [self.step]),
            ("length", 1, list(self.scores)),
        ):
            if not all(least <= number <= LARGEST for number in numbers):
                raise UserError(f"a {name} is not in {least}..{LARGEST}")

    def __getitem__(self, length: int) -> Score:
        return self.scores[length]

    def __str__(self) -> str:
        return curve_table(self)

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        header, rows = _cells(self)
        return f"<p>{escape(_title(self))}</p>{html_table(header, rows)}"

    def plot(self, axes: Any = None) -> Any:
        """Draw accuracy by length with its 95% interval, on given matplotlib axes or new ones."""
        axes = axes if axes is not None else new_figure(6, 4).subplots()
        lengths = sorted(self.scores)
        accuracy = [100 * self[n].accuracy for n in lengths]
        intervals = [self[n].interval for n in lengths]
        low, high = ([100 * bound for bound in bounds] for bounds in zip(*intervals, strict=True))
        (line,) = axes.plot(lengths, accuracy, marker="o", markersize=3, label=self.recipe)
        axes.fill_between(lengths, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.set(xlabel="input length", ylabel="accuracy %", ylim=(-2, 102), title=_title(self))
        return axes

    def to_frame(self) -> Any:
        """A pandas data frame (polars where there is no pandas), a row per length."""
        frames = data_frames()
        names = ("recipe", "distribution", "precision", "seed", "step")
        about = {name: getattr(self, name) for name in names}
        rows = [
            {**about, "length": n, **dict.fromkeys(["edit_distance"]), **self[n].to_json()}
            for n in sorted(self.scores)
        ]
        return frames.DataFrame(rows)

    def to_json(self) -> dict[str, Any]:
        data = to_json(replace(self, scores={}))
        del data["scores"]
        if self.precision == PLAIN:
            del data["precision"]
        examples = {score.examples for score in self.scores.values()}
        data["examples"] = examples.pop() if len(examples) == 1 else None
        data["lengths"] = {str(n): score.to_json() for n, score in sorted(self.scores.items())}
        return data

    @classmethod
    def from_older(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Files say `lengths`, and the number of examples once more."""
        named = {"scores" if name == "lengths" else name: value for name, value in data.items()}
        named.pop("examples", None)
        return named

    @classmethod
    def from_json(cls, data: Any, where: str) -> LengthCurve:
        try:
            curve: LengthCurve = conform(cls, data, "it")
        except UserError as error:
            raise UserError(f"{where} is damaged: it is not an evaluation ({error})") from None
        return curve

    def merged(self, older: LengthCurve) -> LengthCurve:
        """With what an older curve of the same checkpoint has beside it; of two scores the one
        that says more.
        """
        if self.precision != older.precision:
            raise UserError(f"it was measured in {older.precision}, not in {self.precision}")
        kept = {
            n: score
            for n, score in older.scores.items()
            if n not in self.scores or score.says_more(self[n])
        }
        return replace(self, scores={**self.scores, **kept})


def measured_in(run: Path, precision: str) -> Path:
    """Where a run keeps what was measured with a precision."""
    return run if precision == PLAIN else run / precision


def curve_path(place: Path, step: int, distribution: str) -> Path:
    return place / "evaluations" / f"step-{step:08d}" / f"{distribution.replace(':', '-')}.json"


def save_curve(run: Path, curve: LengthCurve) -> Path:
    """Keep a curve with the run, beside the lengths that were measured before; of two scores the
    one that says more.
    """
    place = measured_in(run, curve.precision)
    path = curve_path(place, curve.step, curve.distribution)
    with one_at_a_time(place / "evaluations"):
        if path.exists():
            try:
                curve = curve.merged(LengthCurve.from_json(read_json(path), str(path)))
            except UserError as error:
                warn(f"{error}; only what is measured now is kept")
        write_atomically(path, json_bytes(curve.to_json()))
    return path


def load_curves(run: Path, all_steps: bool = False, precision: str = PLAIN) -> list[LengthCurve]:
    """The curves of a run's newest evaluated checkpoint, or of all of them, by distribution."""
    folders = sorted((measured_in(run, precision) / "evaluations").glob("step-*"))
    return [
        _read_curve(path, precision)
        for folder in (folders if all_steps else folders[-1:])
        for path in sorted(folder.glob("*.json"))
    ]


def _read_curve(path: Path, precision: str) -> LengthCurve:
    curve = LengthCurve.from_json(read_json(path), str(path))
    if curve.precision != precision:
        raise UserError(f"{path} was measured in {curve.precision}; here belongs {precision}")
    return curve


def curve_table(curve: LengthCurve) -> str:
    """One curve, a row per length."""
    return f"{_title(curve)}\n{text_table(*_cells(curve))}"


def _title(curve: LengthCurve) -> str:
    about = f"{curve.recipe}, seed {curve.seed}, {curve.step} updates"
    return f"{about}, {curve.distribution} sequences{in_precision(curve.precision)}"


def in_precision(precision: str, before: str = ", ") -> str:
    """What a title says of it: nothing if it is the usual one."""
    return "" if precision == PLAIN else f"{before}measured in {precision}"


def _cells(curve: LengthCurve) -> tuple[list[str], list[list[str]]]:
    header = ["length", "accuracy %", "95% interval", "sequences"]
    edits = any(score.edit_distance is not None for score in curve.scores.values())
    rows = []
    for length, score in sorted(curve.scores.items()):
        interval = (score.interval * 100).text(2)
        row = [str(length), f"{100 * score.accuracy:.2f}", interval, str(score.examples)]
        distance = "-" if score.edit_distance is None else f"{score.edit_distance:.3f}"
        rows.append([*row, distance] if edits else row)
    return [*header, "edit distance"] if edits else header, rows


def data_frames() -> Any:
    for name in ("pandas", "polars"):
        with suppress(ImportError):
            return import_module(name)
    raise UserError("to_frame needs pandas or polars; install one of them: pip install pandas")
