"""Experiments as they came out: figure, table, the paper's numbers, and a verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from taskhint.experiments.arm import Arm
from taskhint.experiments.experiment import Panel
from taskhint.experiments.findings import Finding
from taskhint.report.figures import experiment_figure
from taskhint.system.drawing import as_panels
from taskhint.system.stats import OverSeeds
from taskhint.system.tables import html_table, text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEARLY_ALL = 0.999  # accuracies from here on get another digit
IN_THE_PAPER = "… in the paper"
WORDS = {True: "holds", False: "does not hold", None: "inconclusive"}


def overview(findings: Sequence[Finding]) -> str:
    """A row per experiment: question, verdict, what it rests on."""
    header = ["experiment", "question", "verdict", "claims that hold", "basis"]
    rows = []
    for finding in findings:
        name = finding.experiment.name
        link = f'<a href="#{name}">{name}</a>'
        question, verdict = escape(finding.experiment.question), f"<b>{finding.verdict}</b>"
        rows.append([link, question, verdict, held(finding), basis(finding)])
    return html_table(header, rows, kind="notes")


def section(finding: Finding, figure: Figure | None = None) -> str:
    """All there is to say of one experiment; a figure of its own stands in place of the usual."""
    experiment = finding.experiment
    tables = "".join(
        f"<h3>{escape(panel.title)}</h3>{_table(finding, panel)}" for panel in experiment.panels
    )
    claims = "".join(
        f"<li>{escape(o.text)}: <b>{WORDS[o.holds]}</b></li>" for o in finding.outcomes
    )
    settings = "".join(f"<li>{escape(line)}</li>" for line in finding.differences.lines)
    return f"""<h2 id="{experiment.name}">{escape(experiment.name)}</h2>
<p class="lead">{escape(experiment.question)}</p>
<p><b>Verdict: {finding.verdict}.</b> {held(finding)} claims hold. {basis(finding)}.</p>
{as_panels(figure or experiment_figure(finding), experiment.question)}
{f"<p>{escape(finding.remark)}</p>" if finding.remark else ""}
<p>What is {"claimed" if experiment.of_paper else "asked"}, and what is found here:</p>
<ul>{claims}</ul>
<details><summary>All numbers</summary>{tables}</details>
<details><summary>Settings that differ from those of {finding.differences.whose}</summary>
<ul>{settings}</ul></details>
"""


def held(finding: Finding) -> str:
    return f"{sum(o.holds is True for o in finding.outcomes)} of {len(finding.outcomes)}"


def basis(finding: Finding) -> str:
    counts = {len(runs) for runs in finding.runs.values()}
    seeds = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    rows = (row for shown in finding.panels.values() for row in shown.curves.values())
    sequences = {count for row in rows for cell in row.values() for count in cell.sequences}
    fewest, most = min(sequences), max(sequences)
    examples = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return (
        f"{seeds} seed{'s' if seeds != '1' else ''}, {examples} test sequences per length and seed"
    )


def _table(finding: Finding, panel: Panel) -> str:
    lengths = finding.experiment.lengths
    rows, of_paper = [], []
    for arm in finding.experiment.arms:
        found = finding.panels[panel].curves[arm]
        cells = (_cell(found.get(n), panel) for n in lengths)
        rows.append([escape(arm.label), *cells, str(len(finding.runs[arm]))])
        for row in printed_rows(finding, panel, arm, lengths):
            of_paper.append(len(rows))
            rows.append([*row, ""])
    return html_table(["length", *map(str, lengths), "seeds"], rows, faint=of_paper)


def mean_and_interval(cell: OverSeeds, panel: Panel) -> tuple[str, str]:
    """In percent, or as it is; of one seed alone there is no interval that speaks of others."""
    factor = 100 if panel.quantity.in_percent else 1
    digits = 2 if factor == 1 or NEARLY_ALL <= cell.mean < 1.0 else 1
    numbers = (cell.mean, cell.interval.low, cell.interval.high)
    mean, low, high = (f"{factor * number:.{digits}f}" for number in numbers)
    return mean, f"{low}–{high}" if cell.seeds > 1 else ""


def _cell(cell: OverSeeds | None, panel: Panel) -> str:
    if cell is None:
        return ""
    mean, interval = mean_and_interval(cell, panel)
    return f"{mean}<small>{interval or 'one seed'}</small>"


def printed_rows(
    finding: Finding, panel: Panel, arm: Arm, lengths: Sequence[int]
) -> list[list[str]]:
    """A row of the paper's numbers, where it prints any."""
    numbers = {
        n: f"{'under ' if published.bound else ''}{published.percent:g}"
        for n, published in finding.panels[panel].published[arm].items()
    }
    peer = finding.experiment.peer
    label = f"… published by {peer}" if peer else IN_THE_PAPER
    return [[label, *(numbers.get(n, "") for n in lengths)]] if numbers else []


def finding_text(finding: Finding) -> str:
    """The same for a terminal."""
    text = f"{finding.experiment.name}: {finding.verdict} ({basis(finding)})\n"
    lengths = finding.experiment.lengths
    for panel in finding.experiment.panels:
        rows = []
        for arm in finding.experiment.arms:
            found = finding.panels[panel].curves[arm]
            cells = (found.get(n) for n in lengths)
            means = ("" if cell is None else mean_and_interval(cell, panel)[0] for cell in cells)
            rows.append([arm.label, *means])
            rows += printed_rows(finding, panel, arm, lengths)
        text += f"{panel.title}\n{text_table(['', *(str(n) for n in lengths)], rows)}"
    text += "".join(f"  {o.text}: {WORDS[o.holds]}\n" for o in finding.outcomes)
    return text + (f"{finding.remark}\n" if finding.remark else "")
