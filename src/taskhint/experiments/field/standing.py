"""How far every arm of the field's table reaches, and whether that is what theory predicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median_low

from taskhint.experiments.experiment import Panel
from taskhint.experiments.field.row import Row
from taskhint.experiments.field.schemes import SCHEMES
from taskhint.experiments.field.table import ROWS
from taskhint.experiments.findings import Finding
from taskhint.experiments.quantity import REACH
from taskhint.recipes.known import CARRIES, Reaches
from taskhint.system.stats import OverSeeds

WITHOUT, ABSOLUTE = "none", "offset"  # the schemes that theory speaks of
AGREES, DISAGREES, INCONCLUSIVE = "agrees", "disagrees", "inconclusive"


@dataclass(frozen=True)
class Standing:
    """Of every seed of an arm how far it reaches: the longest tested length up to which at least
    90% of sequences are right at every tested length.

    A seed that does not reach the longest training length has not learned the task.
    """

    reaches: tuple[int, ...]
    trained: int
    longest: int  # that was tested
    beyond: int | None = None  # longest in training, where the rule is broken

    @property
    def times(self) -> float:
        """The median seed's reach (of two in the middle the shorter), in training lengths; 0 if it
        has not learned them.
        """
        times = median_low(self.reaches) / self.trained
        return times if times >= 1.0 else 0.0

    @property
    def learned(self) -> int:
        """Seeds that have learned the training lengths."""
        return sum(reach >= self.trained for reach in self.reaches)

    @property
    def text(self) -> str:
        """The median seed's reach, and the range of all seeds where they differ."""
        if not self.learned:
            return "not learned"
        shown = f"{self.times:g}×" if self.times else "not learned"
        low, high = (
            f"{reach / self.trained:g}" if reach >= self.trained else "–"
            for reach in (min(self.reaches), max(self.reaches))
        )
        return shown if low == high else f"{shown} ({low} to {high})"


Table = dict[Row, dict[str, Standing]]


def standings(findings: Iterable[Finding]) -> Table:
    """What was measured of the field's table, by row and name of the scheme; rows of which nothing
    was measured are left out.
    """
    found = {finding.experiment.name: finding for finding in findings}
    table: Table = {}
    for row in ROWS:
        finding = found.get(row.experiment)
        cells = {} if finding is None else _standings(row, finding)
        if cells:
            table[row] = cells
    return table


def _standings(row: Row, finding: Finding) -> dict[str, Standing]:
    distribution = finding.experiment.panels[0].distribution
    longest = max(finding.experiment.lengths)
    cells = {}
    for scheme, arm in row.arms.items():
        reads = (REACH.read(run, distribution, longest) for run in finding.runs.get(arm, ()))
        reaches = tuple(round(one.mean) for one in reads if one is not None)
        if reaches:
            recipe = arm.at(finding.scale)
            trained = recipe.task.lengths.max_length
            cells[scheme] = Standing(reaches, trained, longest, recipe.beyond)
    return cells


def as_measured(table: Table) -> Reaches:
    """What `taskhint list` is told of a table: its rows of plain training, schemes by label."""
    return {
        row.task.kind: {SCHEMES[one].label: standing.times for one, standing in cells.items()}
        for row, cells in table.items()
        if row.plain
    }


def predicted(row: Row, scheme: str) -> bool | None:
    """Whether theory says that a row carries over under a scheme; None where it says nothing."""
    theory = row.task.theory
    if theory is None or not row.plain:
        return None
    return {WITHOUT: theory.without_positions, ABSOLUTE: theory.with_positions}.get(scheme)


def agreement(row: Row, scheme: str, standing: Standing | None) -> str | None:
    """Whether a measurement is as predicted; None where nothing is predicted or measured.

    Theory speaks of models that have learned the training lengths. One that has not tells nothing.
    """
    carries = predicted(row, scheme)
    if carries is None or standing is None:
        return None
    if not standing.times:
        return INCONCLUSIVE
    return AGREES if (standing.times >= CARRIES) == carries else DISAGREES


def accuracy_at(finding: Finding, row: Row, scheme: str, length: int) -> OverSeeds | None:
    """In the first panel of a task's experiment."""
    panel: Panel = finding.experiment.panels[0]
    arm = row.arms.get(scheme)
    return None if arm is None or arm not in finding.runs else finding.cell(arm, panel, length)
