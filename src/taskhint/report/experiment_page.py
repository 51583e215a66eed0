"""The paper's experiments as they came out here: figure, table, the paper's numbers, and a verdict
in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from taskhint.experiments.experiment import Panel
from taskhint.experiments.findings import Cell, Finding, Outcome
from taskhint.report.experiment_figure import experiment_figure
from taskhint.system.drawing import as_svg
from taskhint.system.tables import text_table

NEARLY_ALL = 0.999  # accuracies from here on get another digit
IN_THE_PAPER = "… in the paper"
REMARK = "Of the runs in the project's repository, at pocket scale:"
WORDS = {True: "holds", False: "does not hold", None: "cannot be told"}


def overview(findings: Sequence[Finding]) -> str:
    """A row per experiment: question, verdict, what it rests on."""
    rows = "".join(
        "<tr><td><a "
        f'href="#{f.experiment.name}">{f.experiment.name}</a></td><td>{escape(f.experiment.question)}</td>'
        f"<td><b>{f.verdict}</b></td><td>{held(f)}</td><td>{basis(f)}</td></tr>"
        for f in findings
    )
    header = (
        "<tr><th>experiment</th><th>question</th><th>verdict</th><th>claims that "
        "hold</th><th>basis</th></tr>"
    )
    return (
        '<div class="wide"><table '
        f'class="notes"><thead>{header}</thead><tbody>{rows}</tbody></table></div>'
    )


def section(finding: Finding) -> str:
    """All there is to say of one experiment."""
    experiment = finding.experiment
    tables = "".join(
        f"<h3>{escape(panel.title)}</h3>{_table(finding, panel)}" for panel in experiment.panels
    )
    claims = "".join(
        f"<li>{escape(o.text)}: <b>{WORDS[o.holds]}</b></li>" for o in finding.outcomes
    )
    settings = "".join(f"<li>{escape(line)}</li>" for line in finding.different_settings)
    return f"""<h2 id="{experiment.name}">{escape(experiment.name)}</h2>
<p class="lead">{escape(experiment.question)}</p>
<p><b>Verdict: {finding.verdict}.</b> {held(finding)} claims hold. {basis(finding)}.</p>
{as_svg(experiment_figure(finding))}
{f"<p>{REMARK} {escape(experiment.remark)}</p>" if experiment.remark else ""}
<p>What is {"asked" if experiment.beyond else "claimed"}, and what is found here:</p><ul>{claims}</ul>
<details><summary>All numbers</summary>{tables}</details>
<details><summary>Settings that differ from the paper's</summary>
<ul>{settings}</ul></details>
"""


def held(finding: Finding) -> str:
    return f"{sum(o.holds is True for o in finding.outcomes)} of {len(finding.outcomes)}"


def basis(finding: Finding) -> str:
    counts = {len(seeds) for seeds in finding.seeds.values()}
    seeds = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    fewest, most = finding.examples
    examples = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return (
        f"{seeds} seed{'s' if seeds != '1' else ''}, {examples} test sequences per length and seed"
    )


def _table(finding: Finding, panel: Panel) -> str:
    lengths = finding.experiment.lengths
    head = "".join(f"<th>{n}</th>" for n in lengths)
    rows = ""
    for arm in finding.experiment.arms:
        cells = "".join(_cell(finding.cell(arm.label, panel, n), panel) for n in lengths)
        rows += (
            f"<tr><td>{escape(arm.label)}</td>{cells}<td>{len(finding.seeds[arm.label])}</td></tr>"
        )
        rows += _published_row(finding, panel, arm.label)
    header = f"<tr><th>length</th>{head}<th>seeds</th></tr>"
    return f'<div class="wide"><table><thead>{header}</thead><tbody>{rows}</tbody></table></div>'


def mean_and_interval(cell: Cell, panel: Panel) -> tuple[str, str]:
    """In percent, or an edit distance; of one seed alone there is no interval."""
    close = panel.quantity == "edit distance" or NEARLY_ALL <= cell.mean < 1.0
    scale, digits = 1.0 if panel.quantity == "edit distance" else 100.0, 2 if close else 1
    low, high = cell.interval
    interval = (
        f"{scale * low:.{digits}f}–{scale * high:.{digits}f}" if len(cell.values) > 1 else ""
    )
    return f"{scale * cell.mean:.{digits}f}", interval


def _cell(cell: Cell | None, panel: Panel) -> str:
    if cell is None:
        return "<td></td>"
    mean, interval = mean_and_interval(cell, panel)
    return f"<td>{mean}<small>{interval or 'one seed'}</small></td>"


def _published_row(finding: Finding, panel: Panel, arm: str) -> str:
    rows = printed_rows(finding, panel, arm, finding.experiment.lengths)
    return "".join(
        f'<tr class="paper">{"".join(f"<td>{text}</td>" for text in (*row, ""))}</tr>'
        for row in rows
    )


def printed_rows(
    finding: Finding, panel: Panel, arm: str, lengths: Sequence[int]
) -> list[list[str]]:
    """A row of the paper's numbers, where it prints any."""
    numbers = finding.experiment.printed(arm, panel)
    return (
        [[IN_THE_PAPER, *(numbers[n].text if n in numbers else "" for n in lengths)]]
        if numbers
        else []
    )


def finding_text(finding: Finding) -> str:
    """The same for a terminal."""
    text = f"{finding.experiment.name}: {finding.verdict} ({basis(finding)})\n"
    for panel in finding.experiment.panels:
        lengths = finding.experiment.lengths
        rows = []
        for arm in finding.experiment.arms:
            cells = (finding.cell(arm.label, panel, n) for n in lengths)
            rows.append(
                [
                    arm.label,
                    *("" if cell is None else mean_and_interval(cell, panel)[0] for cell in cells),
                ]
            )
            rows += printed_rows(finding, panel, arm.label, lengths)
        text += f"{panel.title}\n{text_table(['', *(str(n) for n in lengths)], rows)}"
    remark = f"{REMARK} {finding.experiment.remark}\n" if finding.experiment.remark else ""
    return text + remark + "".join(_claim_line(outcome) for outcome in finding.outcomes)


def _claim_line(outcome: Outcome) -> str:
    return f"  {outcome.text}: {WORDS[outcome.holds]}\n"
