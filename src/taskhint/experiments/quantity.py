"""What is measured of runs, by length. A user's own quantity derives from `Quantity`."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar, Literal

from taskhint.evaluation.results import Result
from taskhint.runs.shares import SHARPEST
from taskhint.system.settings import Family
from taskhint.tasks.task import Task

Needs = Literal["accuracy", "edit distance", "mechanisms"]


@dataclass(frozen=True)
class Measured:
    """A mean over so many sequences."""

    mean: float
    sequences: int


@dataclass(frozen=True)
class Quantity(Family):
    """A mean over sequences, in 0..most. Derive from it, name a `kind`, and say how it is read
    from what is kept of a run.
    """

    family: ClassVar[str] = "quantity"
    label: ClassVar[str] = "quantity"
    needs: ClassVar[Needs] = "accuracy"  # what must be measured of a run, so that it can be read
    larger_is_better: ClassVar[bool] = True
    in_percent: ClassVar[bool] = True

    name: str

    @abstractmethod
    def read(self, result: Result, distribution: str, length: int) -> Measured | None:
        """Of one run; None if it was not measured."""

    def most(self, length: int) -> float:  # noqa: ARG002
        """No value can be larger."""
        return 1.0

    def text(self, value: float) -> str:
        return f"{100 * value:.1f}%" if self.in_percent else f"{value:.2f}"

    def without_skill(self, task: Task, length: int) -> tuple[str, float] | None:  # noqa: ARG002
        """What a model has that found out nothing, and how to call that one; None if that is not
        known.
        """
        return None


@dataclass(frozen=True)
class Accuracy(Quantity):
    """Sequences without an error."""

    kind: ClassVar[str] = "accuracy"

    name: str = "accuracy"

    def read(self, result: Result, distribution: str, length: int) -> Measured | None:
        curve = result.curves.get(distribution)
        if curve is None or length not in curve.scores:
            return None
        return Measured(curve[length].accuracy, curve[length].examples)


@dataclass(frozen=True)
class BandAccuracy(Accuracy):
    """Sequences without an error in a band of lengths: of those that end at a multiple of `width`,
    the mean over the lengths that were measured.
    """

    kind: ClassVar[str] = "band-accuracy"

    name: str = "accuracy over the band of lengths"
    width: int = 50

    def read(self, result: Result, distribution: str, length: int) -> Measured | None:
        if length % self.width:
            return None
        found = [
            one
            for n in range(length - self.width + 1, length + 1)
            if (one := ACCURACY.read(result, distribution, n)) is not None
        ]
        if not found:
            return None
        mean = sum(one.mean for one in found) / len(found)
        return Measured(mean, sum(one.sequences for one in found))


@dataclass(frozen=True)
class ReachWithin(Quantity):
    """The longest tested length up to which every tested one has at least a `share` right; 0 if
    the shortest has not.

    At a length it looks at no longer ones. Between tested lengths nothing is assumed, so it is a
    lower bound.
    """

    kind: ClassVar[str] = "reach"
    in_percent: ClassVar[bool] = False

    name: str = "reach"
    share: float = 0.9

    def read(self, result: Result, distribution: str, length: int) -> Measured | None:
        curve = result.curves.get(distribution)
        tested = sorted(n for n in (curve.scores if curve else ()) if n <= length)
        if curve is None or not tested:
            return None
        held = takewhile(lambda n: curve[n].accuracy >= self.share, tested)
        examples = min(curve[n].examples for n in tested)
        return Measured(float(max(held, default=0)), examples)

    def most(self, length: int) -> float:
        return float(length)

    def text(self, value: float) -> str:
        return f"{value:.0f}"


@dataclass(frozen=True)
class EditDistance(Quantity):
    """Between the right answer and the model's, in tokens."""

    kind: ClassVar[str] = "edit-distance"
    needs: ClassVar[Needs] = "edit distance"
    larger_is_better: ClassVar[bool] = False
    in_percent: ClassVar[bool] = False

    name: str = "edit distance"

    def read(self, result: Result, distribution: str, length: int) -> Measured | None:
        curve = result.curves.get(distribution)
        score = None if curve is None else curve.scores.get(length)
        if score is None or score.edit_distance is None:
            return None
        return Measured(score.edit_distance, score.examples)

    def most(self, length: int) -> float:
        return float(length)


@dataclass(frozen=True)
class MechanismShare(Quantity):
    """The share of positions at which a probe sees the mechanism of that name inside the model."""

    kind: ClassVar[str] = "mechanism"
    needs: ClassVar[Needs] = "mechanisms"

    def read(self, result: Result, distribution: str, length: int) -> Measured | None:  # noqa: ARG002
        kept = result.mechanisms.at(self.name, length)
        return None if kept is None else Measured(kept.share, kept.examples)


@dataclass(frozen=True)
class MinFinding(MechanismShare):
    """⊥ shows the smallest symbol of the input."""

    kind: ClassVar[str] = "min-finding"

    name: str = "min-finding"

    def without_skill(self, task: Task, length: int) -> tuple[str, float] | None:
        """Long inputs mostly contain the smallest symbol of all, so that always showing it is
        often right.
        """
        if "minimum" not in task.step_kinds:
            return None
        share = 1 - (1 - 1 / task.vocab.symbols) ** length
        return "always the smallest symbol of all", share


@dataclass(frozen=True)
class Sharpness(MechanismShare):
    """Of the last block's heads the largest share of attention that one symbol gets, all of its
    copies together; a mean over the answer.
    """

    kind: ClassVar[str] = "sharpness"

    name: str = SHARPEST


ACCURACY = Accuracy()
EDIT_DISTANCE = EditDistance()
REACH = ReachWithin()
SHARPNESS = Sharpness()
MECHANISMS = (MinFinding(), MechanismShare("identity+successor"))
