"""Writes the tables and figures of docs/reproduction.md and docs/hints.md anew, from results/reproduce.

    .venv/bin/python docs/fill_results.py

The pages' own words stay; what stands between `<!-- experiment: NAME -->`, `<!-- first errors: NAME -->` or
`<!-- overview -->` and `<!-- end -->` is written anew, and docs/figures/experiment-NAME.png is drawn for every
experiment that they name.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean

from taskhint.figures.experiment import experiment_figure
from taskhint.figures.probe_style import as_png
from taskhint.report.experiment_page import WORDS, basis, held
from taskhint.report.table import markdown_table
from taskhint.reproduce import EXPERIMENTS
from taskhint.reproduce.experiment import Panel
from taskhint.reproduce.findings import Cell, Finding, find_all

DOCS = Path(__file__).parent
PAGES = (DOCS / "reproduction.md", DOCS / "hints.md")
PLACE = re.compile(r"(<!-- (?P<what>[\w ]+)(?:: (?P<name>[\w-]+))? -->\n).*?(<!-- end -->)", re.DOTALL)
LEFT_OUT = (5, 11, 13, 14, 16, 18, 19)  # for room


def main() -> None:
    found = {f.experiment.name: f for f in find_all(DOCS.parent / "results" / "reproduce", EXPERIMENTS.values())}
    for page in PAGES:
        text = filled(page.read_text(), found)
        page.write_text(text)
        for name in re.findall(r"figures/experiment-([\w-]+)\.png", text):
            (DOCS / "figures" / f"experiment-{name}.png").write_bytes(as_png(experiment_figure(found[name])))


def filled(text: str, found: dict[str, Finding]) -> str:
    """The page with every place filled; its overview has the experiments that the page shows."""
    found = {name: finding for name, finding in found.items() if f"<!-- experiment: {name} -->" in text}
    return PLACE.sub(lambda place: f"{place[1]}\n{content(place['what'], place['name'], found)}\n{place[4]}", text)


def content(what: str, name: str, found: dict[str, Finding]) -> str:
    if what == "overview":
        return overview(found)
    return error_kinds(name) if what == "first errors" else experiment(name, found)


def overview(found: dict[str, Finding]) -> str:
    rows = [
        [f"[{name}](#{name})", finding.experiment.question, finding.verdict, held(finding), basis(finding)]
        for name, finding in found.items()
    ]
    return markdown_table(["experiment", "question", "verdict", "claims that hold", "basis"], rows)


def error_kinds(name: str) -> str:
    """How the runs of an experiment first fail, from results/hints.json."""
    measured = json.loads((DOCS.parent / "results" / "hints.json").read_text())[name]
    kinds: list[str] = []
    rows = []
    for label, seeds in measured["arms"].items():
        kinds = list(seeds[0]["first_errors"])
        shares = [
            [seed["right"] for seed in seeds],
            *([seed["first_errors"][kind] for seed in seeds] for kind in kinds),
        ]
        rows.append([label, *map(mean_and_range, shares), str(len(seeds))])
    title = f"% of {measured['sequences']:,} sequences of length {measured['length']}: mean over seeds (least–most)"
    return markdown_table([title, "right", *kinds, "seeds"], rows)


def mean_and_range(shares: list[float]) -> str:
    least, most = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    return f"{100 * fmean(shares):.1f}" + (f" ({least}–{most})" if least != most else "")


def experiment(name: str, found: dict[str, Finding]) -> str:
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
