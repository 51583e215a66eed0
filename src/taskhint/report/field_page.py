"""The field's table on the report's page, and what the section of each of its tasks adds."""

from __future__ import annotations

from collections.abc import Sequence

from taskhint.experiments.field import GROUP, ROWS
from taskhint.experiments.field.standing import standings
from taskhint.experiments.findings import Finding
from taskhint.report.experiment_page import section
from taskhint.report.field_figures import figure_of, heat_map
from taskhint.report.field_tables import (
    escaped,
    family_reaches,
    published_table,
    reach_table,
    summary,
    theory_table,
)
from taskhint.system.drawing import as_panels
from taskhint.system.tables import html_table

HOW = """A cell is the reach of the median seed as a multiple of the longest training length: the
longest tested length up to which at least 90% of sequences are right at every tested length. A
second line has the shortest and the longest reach of all seeds where they differ. A dash on
hatched ground: the training lengths were not learned. Tested are 0.5, 1, 1.5, 2, 2.5, 3 and 5
times the longest training length; a reach of 5× is a lower bound. "Primed" trainings see a few
inputs of twice the length, and break the rule that the others keep."""
THEORY = """C-RASP and RASP-L say which tasks a decoder can learn so that its answers stay right
on longer inputs. A row carries over here if its median seed reaches twice the training length. A
model that has not learned the training lengths tells nothing of the theory."""


def field_section(findings: Sequence[Finding]) -> str:
    """The heat map, its numbers, and theory beside them; nothing if nothing of it was measured."""
    table = standings(findings)
    if not table:
        return ""
    reach, theory = reach_table(table), theory_table(table)
    return f"""<h2 id="{GROUP}">Task × position scheme</h2>
<p class="lead">{summary(table)}</p>
<div class="wide map">
{as_panels(heat_map(table), "Tasks and position schemes: how far each carries")}
</div>
<p>{HOW}</p>
<details><summary>The same as a table</summary>{html_table(reach[0], escaped(reach[1]))}</details>
<h3>Theory beside the measurements</h3>
<p>{THEORY}</p>
{html_table(theory[0], escaped(theory[1]), kind="notes")}
"""


def task_section(finding: Finding) -> str:
    """One task of the field: a panel for every way to train it; reach and published numbers."""
    return section(finding, figure_of(finding)) + _notes(finding)


def _notes(finding: Finding) -> str:
    """Reach by seed and published numbers."""
    name = finding.experiment.name
    family = next((row.family for row in ROWS if row.experiment == name), None)
    table = standings([finding])
    if family is None or not table:
        return ""
    reach, published = family_reaches(table, family), published_table([finding], family)
    beside = (
        "<h3>Published numbers beside ours</h3>"
        + html_table(published[0], escaped(published[1]), kind="notes")
        if published[1]
        else ""
    )
    return f"<h3>Reach</h3>{html_table(reach[0], escaped(reach[1]))}{beside}"
