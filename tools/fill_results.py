"""Writes the tables and figures of docs/reproduction.md, docs/hints.md and docs/best.md anew, from
results/.

    .venv/bin/python tools/fill_results.py

The pages' own words stay; what stands between `<!-- experiment: NAME -->`, `<!-- first errors:
NAME -->`, `<!-- tries: NAME -->` or `<!-- overview -->` and `<!-- end -->` is written anew, and
docs/figures/experiment-NAME.png is drawn for every experiment that they name.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean

from taskhint.experiments import EXPERIMENTS
from taskhint.experiments.experiment import Panel
from taskhint.experiments.findings import Cell, Finding, find_all
from taskhint.report.experiment_figure import experiment_figure
from taskhint.report.experiment_page import WORDS, basis, held, mean_and_interval, printed_rows
from taskhint.system.drawing import as_png
from taskhint.system.tables import markdown_table

DOCS = Path(__file__).parent.parent / "docs"
PAGES = (DOCS / "reproduction.md", DOCS / "hints.md", DOCS / "best.md")
PLACE = re.compile(
    r"(<!-- (?P<what>[\w ]+)(?:: (?P<name>[\w-]+))? -->\n).*?(<!-- end -->)", re.DOTALL
)
LEFT_OUT = (5,)  # for room: everything is perfect there


def main() -> None:
    found = {
        f.experiment.name: f
        for f in find_all(DOCS.parent / "results" / "reproduce", EXPERIMENTS.values())
    }
    for page in PAGES:
        text = filled(page.read_text(), found)
        page.write_text(text)
        for name in re.findall(r"figures/experiment-([\w-]+)\.png", text):
            (DOCS / "figures" / f"experiment-{name}.png").write_bytes(
                as_png(experiment_figure(found[name]))
            )


def filled(text: str, found: dict[str, Finding]) -> str:
    """The page with every place filled; its overview has the experiments that the page shows."""
    found = {
        name: finding for name, finding in found.items() if f"<!-- experiment: {name} -->" in text
    }
    return PLACE.sub(
        lambda place: f"{place[1]}\n{content(place['what'], place['name'], found)}\n{place[4]}",
        text,
    )


def content(what: str, name: str, found: dict[str, Finding]) -> str:
    if what == "overview":
        return overview(found)
    if what == "tries":
        return tries(name)
    return error_kinds(name) if what == "first errors" else experiment(name, found)


def overview(found: dict[str, Finding]) -> str:
    rows = [
        [
            f"[{name}](#{name})",
            finding.experiment.question,
            finding.verdict,
            held(finding),
            basis(finding),
        ]
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
    title = (
        f"% of {measured['sequences']:,} sequences of length {measured['length']}: mean "
        "over seeds (least–most)"
    )
    return markdown_table([title, "right", *kinds, "seeds"], rows)


def tries(name: str) -> str:
    """What was tried around a recipe, from results/search."""
    noted = json.loads((DOCS.parent / "results" / "search" / f"{name}.json").read_text())["tries"]
    measured = [
        (kind, n)
        for kind, accuracies in noted[0]["accuracy"].items()
        for n in accuracies
        if int(n) >= 50
    ]
    rows = [
        [
            one["try"],
            f"{one['weights']:,}",
            " / ".join(f"{loss:.3f}" for loss in one["loss_at_longest_training_length"].values()),
            *(f"{100 * one['accuracy'][kind][n]:.1f}" for kind, n in measured),
        ]
        for one in noted
    ]
    losses = f"loss at 20: {' / '.join(noted[0]['loss_at_longest_training_length'])}"
    return markdown_table(
        ["try", "weights", losses, *(f"{n} {kind}" for kind, n in measured)], rows
    )


def mean_and_range(shares: list[float]) -> str:
    least, most = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    return f"{100 * fmean(shares):.1f}" + (f" ({least}–{most})" if least != most else "")


def experiment(name: str, found: dict[str, Finding]) -> str:
    if name not in found:
        return f"Not measured yet: `taskhint reproduce {name} --out results/reproduce`.\n"
    finding = found[name]
    parts = [
        (
            f"{finding.experiment.question} **{finding.verdict.capitalize()}**: {held(finding)} "
            "claims hold.\n"
        ),
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
    rows = []
    for arm in finding.experiment.arms:
        rows.append(
            [arm.label, *(shown(finding.cell(arm.label, panel, n), panel) for n in lengths)]
        )
        rows += printed_rows(finding, panel, arm.label, lengths)
    return markdown_table([panel.title, *(str(n) for n in lengths)], rows)


def shown(cell: Cell | None, panel: Panel) -> str:
    if cell is None:
        return "–"
    mean, interval = mean_and_interval(cell, panel)
    return f"{mean} ({interval})" if interval else mean


if __name__ == "__main__":
    main()
