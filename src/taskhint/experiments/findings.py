"""What results say about an experiment. Runs are found by their recipes, wherever they stand.

A Finding is plain data: all that pages and figures show is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from taskhint.evaluation.results import Result, family_of, one_per_run
from taskhint.experiments.arm import Arm
from taskhint.experiments.claims import Claim, Outcome
from taskhint.experiments.experiment import Experiment, Panel, Published
from taskhint.recipes.recipe import Recipe, Scale
from taskhint.runs.curve import PLAIN
from taskhint.system.stats import OverSeeds

PAPER_WORDS = ("reproduced", "partly reproduced", "not reproduced")
OTHER_WORDS = ("yes", "in part", "not shown")
NOT_SHOWN = ("name", "scale", "log_every")

Runs = dict[Arm, tuple[Result, ...]]


@dataclass(frozen=True)
class Shown:
    """What is shown in a panel, by arm and length; `baseline` is what a model has that found out
    nothing, under its name, where that is known.
    """

    curves: dict[Arm, dict[int, OverSeeds]]
    published: dict[Arm, dict[int, Published]]
    baseline: tuple[str, dict[int, float]] | None


@dataclass(frozen=True)
class Differences:
    """Settings that are not those of the paper (or, where it has none, of the first arm): a line
    for those of all arms, then one for every arm with more.
    """

    whose: str
    lines: list[str]


@dataclass(frozen=True)
class Finding:
    """An experiment, the runs that were found for each of its arms at one scale, and what they
    say.
    """

    experiment: Experiment
    scale: Scale
    runs: Runs  # a run of every seed
    panels: dict[Panel, Shown]
    outcomes: tuple[Outcome, ...]
    verdict: str
    differences: Differences
    trained_up_to: int
    remark: str = ""  # what a reader of the numbers has to know

    def cell(self, arm: Arm, panel: Panel, length: int) -> OverSeeds | None:
        """What the arm's seeds have; None if none was measured."""
        return self.panels[panel].curves[arm].get(length)


def find_all(
    results: Iterable[Result],
    experiments: Iterable[Experiment],
    scale: Scale = "pocket",
    remarks: Mapping[str, str] | None = None,
    precision: str = PLAIN,
) -> list[Finding]:
    """A finding for every experiment at that scale of which there is at least one run that was
    measured with that precision.
    """
    families: dict[str, list[Result]] = {}
    for result in one_per_run(results):
        if not result.empty:
            families.setdefault(result.family, []).append(result)
    for same in families.values():
        same.sort(key=lambda result: result.recipe.seed)
    findings = []
    for experiment in (one for one in experiments if scale in one.scales):
        keys = {arm: family_of(arm.at(scale), precision) for arm in experiment.arms}
        runs = {arm: tuple(families.get(key, ())) for arm, key in keys.items()}
        if any(runs.values()):
            said = (remarks or {}).get(experiment.name, "")
            measured = "" if precision == PLAIN else f"Measured in {precision}."
            beyond = _beyond(experiment, scale)
            remark = " ".join(filter(None, (measured, experiment.note, *beyond, said)))
            findings.append(_finding(experiment, scale, runs, remark))
    return findings


def _beyond(experiment: Experiment, scale: Scale) -> list[str]:
    """Which arms break the rule that training sees nothing longer than the main task's own."""
    found = {arm: arm.at(scale) for arm in experiment.arms}
    return [
        f"{arm.label} saw inputs of up to {recipe.beyond} "
        f"{recipe.task.length_is.removeprefix('input ')} in training."
        for arm, recipe in found.items()
        if recipe.beyond is not None
    ]


def _finding(experiment: Experiment, scale: Scale, runs: Runs, remark: str) -> Finding:
    outcomes = tuple(_outcome(claim, runs) for claim in experiment.claims)
    return Finding(
        experiment=experiment,
        scale=scale,
        runs=runs,
        panels={panel: _shown(experiment, scale, runs, panel) for panel in experiment.panels},
        outcomes=outcomes,
        verdict=_verdict(experiment, runs, outcomes),
        differences=differences(experiment, scale),
        trained_up_to=experiment.arms[0].at(scale).task.lengths.max_length,
        remark=remark,
    )


def _outcome(claim: Claim, runs: Runs) -> Outcome:
    panel = Panel(claim.quantity, claim.distribution)
    return claim.outcome(lambda arm: _over_seeds(runs[arm], panel, claim.length))


def _shown(experiment: Experiment, scale: Scale, runs: Runs, panel: Panel) -> Shown:
    task = experiment.arms[0].at(scale).task
    cells = {
        arm: {n: _over_seeds(runs[arm], panel, n) for n in experiment.lengths}
        for arm in experiment.arms
    }
    known = {n: panel.quantity.without_skill(task, n) for n in experiment.lengths}
    shares = {n: one[1] for n, one in known.items() if one is not None}
    names = [one[0] for one in known.values() if one is not None]
    return Shown(
        {arm: {n: c for n, c in row.items() if c is not None} for arm, row in cells.items()},
        {arm: experiment.printed(arm, panel) for arm in experiment.arms},
        (names[0], shares) if names else None,
    )


def _over_seeds(runs: Sequence[Result], panel: Panel, length: int) -> OverSeeds | None:
    quantity = panel.quantity
    found = (quantity.read(run, panel.distribution, length) for run in runs)
    seeds = [one for one in found if one is not None]
    if not seeds:
        return None
    means, counts = [seed.mean for seed in seeds], [seed.sequences for seed in seeds]
    return OverSeeds(tuple(means), tuple(counts), quantity.most(length))


def _verdict(experiment: Experiment, runs: Runs, outcomes: Sequence[Outcome]) -> str:
    fewest = min(len(seeds) for seeds in runs.values())
    if not fewest:
        return "not measured in full"
    if not outcomes:
        return "nothing claimed"
    if fewest == 1 and any(len(claim.arms) > 1 for claim in experiment.claims):
        return "one seed cannot tell"
    held = sum(outcome.holds is True for outcome in outcomes)
    all_, some, none = PAPER_WORDS if experiment.of_paper else OTHER_WORDS
    return all_ if held == len(outcomes) else some if held else none


def differences(experiment: Experiment, scale: Scale) -> Differences:
    """Of the arms' settings, at a scale."""
    first = experiment.arms[0].at(scale)
    papers = {arm: arm.paper_recipe for arm in experiment.arms}
    lines = {
        arm: _differences(arm.at(scale), papers[arm] or first, "paper " if papers[arm] else "")
        for arm in experiment.arms
    }
    some, *others = lines.values()
    shared = [one for one in some if all(one in more for more in others)]
    own = {arm: [one for one in more if one not in shared] for arm, more in lines.items()}
    return Differences(
        "the paper" if any(papers.values()) else "the first arm",
        [
            "; ".join(shared) or "none in all arms",
            *(f"{arm.label}: {'; '.join(more)}" for arm, more in own.items() if more),
        ],
    )


def _differences(ours: Recipe, theirs: Recipe, whose: str) -> list[str]:
    """As `key ours (paper theirs)`. Keys that only the others have belong to a kind that is named
    as different.
    """
    return [
        f"{key} {ours.setting(key)} ({whose}{theirs.setting(key) or 'none'})"
        for key in ours.differences(theirs)
        if key not in NOT_SHOWN and ours.setting(key)
    ]
