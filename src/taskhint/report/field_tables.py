"""What the field's table says, as rows of plain text: for pages, documents and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taskhint.experiments.field import ROWS, SCHEMES, Row
from taskhint.experiments.field.peers import PEERS
from taskhint.experiments.field.standing import (
    ABSOLUTE,
    AGREES,
    DISAGREES,
    INCONCLUSIVE,
    WITHOUT,
    Table,
    accuracy_at,
    agreement,
    predicted,
)
from taskhint.experiments.findings import Finding
from taskhint.recipes.known import CARRIES
from taskhint.report.experiment_page import mean_and_interval

Rows = list[list[str]]
WORDS = {True: "carries over", False: "fails", None: ""}
NOT_MEASURED = "not measured"


def summary(table: Table) -> str:
    """The table in two sentences."""
    cells = [cell for row in table.values() for cell in row.values()]
    learned = [cell for cell in cells if cell.times]
    far = [cell for cell in learned if cell.times >= CARRIES]
    said = [
        word
        for row, cells in table.items()
        for word in _agreements(row, table)
        if word is not None
    ]
    counts = {word: said.count(word) for word in (AGREES, DISAGREES, INCONCLUSIVE)}
    return (
        f"Of {len(cells)} pairs of a task and a scheme {len(learned)} learn the training lengths, "
        f"and {len(far)} stay above 90% up to twice those lengths or further. "
        f"Theory predicts {len(said)} of them: {counts[AGREES]} agree, {counts[DISAGREES]} "
        f"disagree, and of {counts[INCONCLUSIVE]} it cannot be told, because the training lengths "
        "were not learned."
    )


def _agreements(row: Row, table: Table) -> list[str | None]:
    return [agreement(row, scheme, table[row].get(scheme)) for scheme in (WITHOUT, ABSOLUTE)]


def reach_table(table: Table) -> tuple[list[str], Rows]:
    """Header and rows: the reach of the median seed in training lengths, and that of the others
    where they differ.
    """
    schemes = [name for name in SCHEMES if any(name in cells for cells in table.values())]
    rows = [
        [row.label, *(cells[one].text if one in cells else "" for one in schemes)]
        for row, cells in table.items()
    ]
    return ["reach", *(SCHEMES[one].label for one in schemes)], rows


def theory_table(table: Table) -> tuple[list[str], Rows]:
    """What is predicted of every task, what is measured, and whether both agree."""
    header = ["task", "scheme", "theory", "why", "source", "measured reach", "theory and table"]
    rows = []
    for row in (row for row in ROWS if row.plain and row.task.theory is not None):
        for scheme in (one for one in (WITHOUT, ABSOLUTE) if one in row.arms):
            rows.append(_theory_row(row, scheme, table))
    return header, rows


def _theory_row(row: Row, scheme: str, table: Table) -> list[str]:
    theory = row.task.theory
    assert theory is not None
    standing = table.get(row, {}).get(scheme)
    return [
        row.label,
        SCHEMES[scheme].label,
        WORDS[predicted(row, scheme)],
        theory.why,
        theory.source,
        NOT_MEASURED if standing is None else standing.text,
        agreement(row, scheme, standing) or "",
    ]


def published_table(findings: Iterable[Finding], family: str = "") -> tuple[list[str], Rows]:
    """Peers' numbers beside ours at the nearest multiple of the training length."""
    header = ["task", "published by", "scheme", "trained → tested", "%", "ours, %", "differs"]
    found = {finding.experiment.name: finding for finding in findings}
    rows = []
    by_label = {row.label: row for row in ROWS}
    for peer in PEERS:
        row = by_label.get(peer.row)
        if row is not None and family in ("", row.family):
            ours = _ours(row, peer.scheme, peer.times, found.get(row.experiment))
            rows.append(
                [
                    row.label,
                    peer.source,
                    peer.theirs,
                    peer.protocol,
                    peer.percent,
                    f"{ours} at {peer.times:g}× ({SCHEMES[peer.scheme].label})",
                    peer.differs,
                ]
            )
    return header, rows


def _ours(row: Row, scheme: str, times: float, finding: Finding | None) -> str:
    if finding is None:
        return NOT_MEASURED
    cell = accuracy_at(finding, row, scheme, round(times * finding.trained_up_to))
    if cell is None:
        return NOT_MEASURED
    mean, interval = mean_and_interval(cell, finding.experiment.panels[0])
    return f"{mean} ({interval})" if interval else mean


def family_reaches(table: Table, family: str) -> tuple[list[str], Rows]:
    """Of one task every arm: the reach of each seed in input length, and how many have learned the
    training lengths.
    """
    rows = []
    for row, cells in table.items():
        for scheme, standing in cells.items() if row.family == family else ():
            label = row.arms[scheme].label
            marked = f"{label}: sees up to {standing.beyond}" if standing.beyond else label
            rows.append(
                [
                    marked,
                    ", ".join(map(str, standing.reaches)),
                    standing.text,
                    f"{standing.learned} of {len(standing.reaches)}",
                ]
            )
    return ["arm", "reach of each seed", "median, in training lengths", "seeds that learned"], rows


def escaped(rows: Iterable[Sequence[str]]) -> Rows:
    from html import escape

    return [[escape(cell) for cell in row] for row in rows]
