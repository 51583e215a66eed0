"""Writes the tables and figures of docs/reproduction.md anew, from results/reproduce.

    .venv/bin/python docs/fill_results.py

The page's own words stay; what stands between `<!-- experiment: NAME -->` or `<!-- overview -->` and `<!-- end -->` is
written anew, and docs/figures/experiment-NAME.png is drawn for every experiment that the page names.
"""

from __future__ import annotations

import re
from pathlib import Path

from taskhint.figures.experiment import experiment_figure
from taskhint.figures.probe_style import as_png
from taskhint.report.experiment_page import WORDS, basis, held
from taskhint.report.table import markdown_table
from taskhint.reproduce import EXPERIMENTS
from taskhint.reproduce.experiment import Panel
from taskhint.reproduce.findings import Cell, Finding, find_all

DOCS = Path(__file__).parent
PAGE = DOCS / "reproduction.md"
PLACE = re.compile(r"(<!-- (?:experiment: (?P<name>[\w-]+)|overview) -->\n).*?(<!-- end -->)", re.DOTALL)
LEFT_OUT = (5, 11, 13, 14, 16, 18, 19)  # for room


def main() -> None:
    found = {f.experiment.name: f for f in find_all(DOCS.parent / "results" / "reproduce", EXPERIMENTS.values())}
    text = filled(PAGE.read_text(), found)
    PAGE.write_text(text)
    for name in re.findall(r"figures/experiment-([\w-]+)\.png", text):
        (DOCS / "figures" / f"experiment-{name}.png").write_bytes(as_png(experiment_figure(found[name])))


def filled(text: str, found: dict[str, Finding]) -> str:
    """The page with every place filled; its overview has the experiments that the page shows."""
    found = {name: finding for name, finding in found.items() if f"<!-- experiment: {name} -->" in text}
    return PLACE.sub(lambda place: f"{place[1]}\n{content(place['name'], found)}\n{place[3]}", text)


def content(name: str | None, found: dict[str, Finding]) -> str:
    if name is None:
        rows = [
            [f"[{name}](#{name})", finding.experiment.question, finding.verdict, held(finding), basis(finding)]
            for name, finding in found.items()
        ]
        return markdown_table(["experiment", "question", "verdict", "claims that hold", "basis"], rows)
    if name not in found:
        return f"Not measured yet: `taskhint reproduce {name} --out results/reproduce`.\n"
    finding = found[name]
    parts = [
        f"{finding.experiment.question} **{finding.verdict.capitalize()}**: {held(finding)} claims hold.\n",
        f"{basis(finding).capitalize()}.\n",
        f"![{name}](figures/experiment-{name}.png)\n",
        *(numbers(finding, panel) for panel in finding.experiment.panels),
        f"{finding.experiment.remark}\n" if finding.experiment.remark else "",
        "".join(f"- {outcome.text}: **{WORDS[outcome.holds]}**\n" for outcome in finding.outcomes),
    ]
    return "\n".join(part for part in parts if part)


def numbers(finding: Finding, panel: Panel) -> str:
    """Means over seeds, with their 95% intervals."""
    lengths = [n for n in finding.experiment.lengths if n not in LEFT_OUT]
    rows = [
        [arm.label, *(shown(finding.cell(arm.label, panel, n), panel) for n in lengths)]
        for arm in finding.experiment.arms
    ]
    return markdown_table([panel.title, *(str(n) for n in lengths)], rows)


def shown(cell: Cell | None, panel: Panel) -> str:
    if cell is None:
        return "–"
    scale = 1.0 if panel.quantity == "edit distance" else 100.0
    low, high = cell.interval
    interval = f" ({scale * low:.1f}–{scale * high:.1f})" if len(cell.values) > 1 else ""
    return f"{scale * cell.mean:.1f}{interval}"


if __name__ == "__main__":
    main()
