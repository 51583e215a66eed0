"""What docs/field.md takes from results/: the table, theory beside it, and published numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from taskhint.experiments.field import ROWS
from taskhint.experiments.field.row import Budget
from taskhint.experiments.field.standing import Table, standings
from taskhint.experiments.findings import Finding
from taskhint.report.field_figures import heat_map
from taskhint.report.field_tables import published_table, reach_table, summary, theory_table
from taskhint.system.drawing import as_png
from taskhint.system.tables import markdown_table

FIGURE = "figures/field.png"
NOT_YET = "Not measured yet: `taskhint reproduce field --out DIR`.\n"
Findings = Mapping[str, Finding]


def part(name: str, findings: Findings) -> str | None:
    table = standings(findings.values())
    return PARTS[name](table, findings) if name in PARTS else None


def figure(findings: Findings) -> bytes:
    return as_png(heat_map(standings(findings.values())))


def _budgets(_: Table, __: Findings) -> str:
    """What the arms of each task get, tasks with the same together."""
    tasks: dict[Budget, list[str]] = {}
    for row in ROWS:
        if row.family not in tasks.setdefault(row.budget, []):
            tasks[row.budget].append(row.family)
    rows = [
        [", ".join(names), str(one.width), str(2 * one.width), f"{one.updates:,}", str(one.batch)]
        for one, names in tasks.items()
    ]
    return markdown_table(["tasks", "width", "MLP", "updates", "sequences in an update"], rows)


def _table(table: Table, _: Findings) -> str:
    if not table:
        return NOT_YET
    return f"{summary(table)}\n\n![reach by task and scheme]({FIGURE})\n\n" + markdown_table(
        *reach_table(table)
    )


def _theory(table: Table, _: Findings) -> str:
    return markdown_table(*theory_table(table))


def _published(_: Table, findings: Findings) -> str:
    return markdown_table(*published_table(findings.values()))


PARTS: dict[str, Callable[[Table, Findings], str]] = {
    "budgets": _budgets,
    "table": _table,
    "theory": _theory,
    "published": _published,
}
