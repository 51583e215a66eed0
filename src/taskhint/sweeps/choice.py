"""What chooses among recipes without a longer input: extrapolation inside the allowed lengths.

Each recipe is trained on the lower half of its lengths (up to 10 of 20), for a fraction of its
updates, and measured on the upper half (11 to 20). What is right there most often is chosen. No
sequence is longer than the recipe itself allows. Cheaper signals are kept beside it: the loss at
the longest trained and the longest allowed length, and the agreement of gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import ClassVar

from taskhint.recipes.recipe import Recipe
from taskhint.system.errors import UserError
from taskhint.system.files import read_json
from taskhint.system.settings import Settings, conform
from taskhint.system.stats import OverSeeds, welch
from taskhint.tasks.lengths import Cut, Lengths
from taskhint.tasks.task import Task

FILE = "choose.json"
FEWEST_STEPS = 2000
SHARE_OF_STEPS = 3  # a third of them
MOST_MEASURED = 10


@dataclass(frozen=True)
class Signals(Settings):
    """What a short run says of its recipe.

    `inside` is the accuracy over the upper half of the lengths, `at_longest` that at the longest;
    the losses are those at the longest trained and the longest allowed length. `agreement` is the
    cosine between the gradients of hint and main task, in the mean over hints.
    """

    label: ClassVar[str] = "signals"

    inside: float
    at_longest: float
    lengths: int  # in the upper half
    sequences: int  # of each of them
    loss_trained: float | None = None
    loss_longest: float | None = None
    agreement: float | None = None


SIGNALS = {  # by name: whether a larger one is better
    "inside": True,
    "at_longest": True,
    "loss_trained": False,
    "loss_longest": False,
    "agreement": True,
}


@dataclass(frozen=True)
class Candidate(Settings):
    """A recipe, shortened, and what each of its seeds says."""

    name: str
    recipe: Recipe
    seeds: dict[int, Signals] = field(default_factory=dict)

    def mean(self, signal: str) -> float | None:
        """Over seeds; None if a seed lacks it."""
        found = [getattr(one, signal) for one in self.seeds.values()]
        return None if None in found or not found else sum(found) / len(found)

    @property
    def inside(self) -> OverSeeds:
        signals = self.seeds.values()
        counts = (one.lengths * one.sequences for one in signals)
        return OverSeeds(tuple(one.inside for one in signals), tuple(counts))

    @property
    def at_longest(self) -> OverSeeds:
        signals = self.seeds.values()
        counts = (one.sequences for one in signals)
        return OverSeeds(tuple(one.at_longest for one in signals), tuple(counts))


@dataclass(frozen=True)
class Choice(Settings):
    """Candidates, the best first."""

    trained_up_to: int
    measured: tuple[int, ...]
    distribution: str
    candidates: tuple[Candidate, ...]

    def clearly_worse(self, candidate: Candidate) -> bool | None:
        """Than the best one, going by the interval of the difference; None if it is the best or
        there is one seed.
        """
        gap = welch(self.candidates[0].inside, candidate.inside)
        return None if candidate == self.candidates[0] or gap is None else gap.low > 0


def load_choice(path: Path) -> Choice:
    choice: Choice = conform(Choice, read_json(path), str(path))
    return choice


def lower_half(task: Task) -> int:
    """Where the lower half of a task's training lengths ends: half of the longest, or the middle
    where there are no short ones.
    """
    shortest, longest = min(task.lengths.shares()), task.lengths.max_length
    half = longest // 2 if shortest <= longest // 4 else (shortest + longest) // 2
    if not shortest <= half < longest:
        raise UserError(
            f"task {task.kind!r} has lengths {shortest} to {longest}; they have no two halves"
        )
    return half


def upper_half(task: Task) -> tuple[int, ...]:
    """The lengths that are measured: at most ten, evenly spread, the longest among them."""
    first, last = lower_half(task) + 1, task.lengths.max_length
    count = min(MOST_MEASURED, last - first + 1)
    gap = (last - first + 1) / count
    return tuple(last - round(gap * k) for k in reversed(range(count)))


def shortened(recipe: Recipe, steps: int | None = None) -> Recipe:
    """The recipe with every task on the lower half of its own lengths, and fewer updates: a third,
    but at least 2,000 if it has so many.
    """
    usual = min(recipe.steps, max(FEWEST_STEPS, recipe.steps // SHARE_OF_STEPS))
    hints = tuple(replace(hint, task=_halved(hint.task)) for hint in recipe.hints)
    cut = recipe.change(task=_halved(recipe.task), hints=hints)
    return cut.with_steps(usual if steps is None else steps)


def _halved(task: Task) -> Task:
    return replace(task, lengths=cut_lengths(task.lengths, lower_half(task)))


def cut_lengths(lengths: Lengths, longest: int) -> Lengths:
    """Up to `longest`: by its own setting of that name, if it has one."""
    names = {one.name for one in fields(lengths)}
    if "longest" not in names or isinstance(lengths, Cut):
        return Cut(lengths, longest)
    changes = {"longest": longest}
    if "short" in names:
        changes["short"] = min(getattr(lengths, "short"), longest)  # noqa: B009
    return replace(lengths, **changes)
