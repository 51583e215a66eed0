"""What a directory of results says about an experiment. Runs are found by their recipes, wherever
they stand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, variance

from taskhint.evaluation.curve import CONFIDENCE, LengthCurve, load_curves
from taskhint.evaluation.summary import find_runs, t_interval
from taskhint.experiments.experiment import (
    MECHANISMS,
    Arm,
    AtMost,
    Better,
    Claim,
    Experiment,
    NotBetter,
    Panel,
    Quantity,
)
from taskhint.probe.shares_file import KeptShares, load_shares
from taskhint.recipes.recipe import Recipe, Scale

PAPER_WORDS = ("reproduced", "partly reproduced", "not reproduced")
BEYOND_WORDS = ("yes", "in part", "not shown")
FLOOR = 0.01  # accuracies below it are no better than one another


@dataclass(frozen=True)
class Seed:
    """The results of one run."""

    seed: int
    curves: dict[str, LengthCurve]  # by test distribution
    mechanisms: KeptShares

    def value(self, panel: Panel, length: int) -> float | None:
        """A share in 0..1, or an edit distance; None if it was not measured."""
        if panel.quantity in MECHANISMS:
            kept = self.mechanisms.at(panel.quantity, length)
            return None if kept is None else kept.share
        curve = self.curves.get(panel.distribution)
        if curve is None or length not in curve.scores:
            return None
        score = curve[length]
        return score.accuracy if panel.quantity == "accuracy" else score.edit_distance

    def examples(self, panel: Panel, length: int) -> int:
        """How many test sequences are behind a value."""
        kept = self.mechanisms.at(panel.quantity, length)
        return kept.examples if kept else self.curves[panel.distribution][length].examples


@dataclass(frozen=True)
class Cell:
    """A mean over seeds with its 95% interval (Student's t); one seed alone has none."""

    values: tuple[float, ...]
    most: float = 1.0  # no value can be larger

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def interval(self) -> tuple[float, float]:
        return (
            t_interval(self.values, self.most) if len(self.values) > 1 else (self.mean, self.mean)
        )


@dataclass(frozen=True)
class Outcome:
    """Whether a claim of the paper holds here: yes, no, or (None) not to be told from
    these seeds.
    """

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Finding:
    """An experiment and the runs that were found for each of its arms, at one scale."""

    experiment: Experiment
    scale: Scale
    seeds: dict[str, tuple[Seed, ...]]  # by the arm's label

    def cell(self, arm: str, panel: Panel, length: int) -> Cell | None:
        found = (seed.value(panel, length) for seed in self.seeds[arm])
        values = tuple(value for value in found if value is not None)
        return (
            Cell(values, length if panel.quantity == "edit distance" else 1.0) if values else None
        )

    @property
    def fewest_seeds(self) -> int:
        return min(len(seeds) for seeds in self.seeds.values())

    @property
    def examples(self) -> tuple[int, int]:
        """The fewest and the most test sequences behind a number."""
        counts = {
            seed.examples(panel, length)
            for seeds in self.seeds.values()
            for seed in seeds
            for panel in self.experiment.panels
            for length in self.experiment.lengths
            if seed.value(panel, length) is not None
        }
        return min(counts, default=0), max(counts, default=0)

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        return tuple(_outcome(self, claim) for claim in self.experiment.claims)

    @property
    def verdict(self) -> str:
        held = sum(outcome.holds is True for outcome in self.outcomes)
        if not self.fewest_seeds:
            return "not measured in full"
        if self.fewest_seeds == 1 and any(
            isinstance(claim, Better | NotBetter) for claim in self.experiment.claims
        ):
            return "one seed cannot tell"
        all_, some, none = BEYOND_WORDS if self.experiment.beyond else PAPER_WORDS
        return all_ if held == len(self.outcomes) else some if held else none

    @property
    def different_settings(self) -> list[str]:
        """Settings that are not the paper's: a line for those of all arms, then one for every arm
        with more.
        """
        by_arm = {arm.label: self._differences(arm) for arm in self.experiment.arms}
        shared = [
            one
            for one in next(iter(by_arm.values()))
            if all(one in more for more in by_arm.values())
        ]
        own = {
            label: [one for one in settings if one not in shared]
            for label, settings in by_arm.items()
        }
        return [
            "; ".join(shared) or "none in all arms",
            *(f"{label}: {'; '.join(settings)}" for label, settings in own.items() if settings),
        ]

    def _differences(self, arm: Arm) -> list[str]:
        """As `key ours (paper's)`. Keys that only the paper has belong to a kind that is named as
        different.
        """
        ours = arm.at(self.scale)
        papers = (
            arm.paper_recipe
            if self.experiment.beyond
            else arm.paper_recipe.with_settings(arm.paper)
        )
        keys = (
            key for key in ours.differences(papers) if key not in ("name", "scale", "log_every")
        )
        return [
            f"{key} {ours.setting(key)} (paper {papers.setting(key) or 'none'})"
            for key in keys
            if ours.setting(key)
        ]


def find_all(
    directory: Path, experiments: Iterable[Experiment], scale: Scale = "pocket"
) -> list[Finding]:
    """A finding for every experiment of which the directory has at least one run."""
    runs = find_runs(directory)
    by_recipe: dict[str, dict[int, Path]] = {}
    for path, recipe in runs:
        if load_curves(path) or load_shares(path).shares:
            by_recipe.setdefault(_key(recipe), {})[recipe.seed] = path
    loaded: dict[Path, Seed] = {}
    findings = []
    for experiment in experiments:
        seeds = {}
        for arm in experiment.arms:
            paths = by_recipe.get(_key(arm.at(scale)), {})
            seeds[arm.label] = tuple(
                _load(seed, path, loaded) for seed, path in sorted(paths.items())
            )
        if any(seeds.values()):
            findings.append(Finding(experiment, scale, seeds))
    return findings


def _key(recipe: Recipe) -> str:
    return recipe.change(seed=0).fingerprint()


def _load(seed: int, path: Path, loaded: dict[Path, Seed]) -> Seed:
    if path not in loaded:
        loaded[path] = Seed(
            seed, {curve.distribution: curve for curve in load_curves(path)}, load_shares(path)
        )
    return loaded[path]


def _outcome(finding: Finding, claim: Claim) -> Outcome:
    if isinstance(claim, Better | NotBetter):
        return _compare(finding, claim)
    below = isinstance(claim, AtMost)
    quantity: Quantity = "accuracy" if isinstance(claim, AtMost) else claim.quantity
    cell = finding.cell(claim.arm, Panel(quantity, claim.distribution), claim.length)
    wanted = (
        f"{claim.arm} {'below' if below else 'reaches'} "
        f"{claim.percent:g}%{_where(claim)}{_what(quantity)}"
    )
    if cell is None:
        return Outcome(f"{wanted}: not measured", None)
    mean = 100 * cell.mean
    return Outcome(
        f"{wanted}: {mean:.1f}%", mean < claim.percent if below else mean >= claim.percent
    )


def _compare(finding: Finding, claim: Better | NotBetter) -> Outcome:
    if isinstance(claim, Better):
        first, second, quantity = claim.better, claim.worse, claim.quantity
    else:
        first, second, quantity = claim.other, claim.base, "accuracy"
    panel = Panel(quantity, claim.distribution)
    ours, theirs = (
        finding.cell(first, panel, claim.length),
        finding.cell(second, panel, claim.length),
    )
    says = "better than" if isinstance(claim, Better) else "not better than"
    wanted = f"{first} {says} {second}{_where(claim)}{_what(quantity)}"
    if ours is None or theirs is None:
        return Outcome(f"{wanted}: not measured", None)
    sign = -1.0 if quantity == "edit distance" else 1.0
    difference = clear_difference(
        [sign * x for x in ours.values], [sign * x for x in theirs.values]
    )
    if isinstance(claim, Better):
        holds = {1: True, 0: None, -1: False}[difference]
    else:
        holds = None if max(ours.mean, theirs.mean) < FLOOR else difference <= 0
    return Outcome(
        f"{wanted}: {_number(ours, quantity)} against {_number(theirs, quantity)}", holds
    )


def _where(claim: Claim) -> str:
    return f" at {claim.length}" + (
        f" on {claim.distribution}" if claim.distribution != "uniform" else ""
    )


def _what(quantity: Quantity) -> str:
    return "" if quantity == "accuracy" else f" ({quantity})"


def _number(cell: Cell, quantity: Quantity) -> str:
    return f"{cell.mean:.2f}" if quantity == "edit distance" else f"{100 * cell.mean:.1f}%"


def clear_difference(first: Sequence[float], second: Sequence[float]) -> int:
    """1 if the first mean is larger, -1 if smaller, 0 if Welch's 95% interval of the difference
    holds zero.
    """
    if min(len(first), len(second)) < 2:
        return 0
    gap, half = welch(first, second)
    return int(gap > half) - int(gap < -half)


def welch(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """The difference of two means, and half the width of its 95% interval. At least two values
    each.
    """
    from scipy.stats import t

    gap = fmean(first) - fmean(second)
    spreads = [(variance(values) / len(values), len(values) - 1) for values in (first, second)]
    total = sum(spread for spread, _ in spreads)
    if total == 0.0:  # all seeds of each side agree
        return gap, 0.0
    freedom = total**2 / sum(spread**2 / count for spread, count in spreads)
    return gap, float(t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(total)
