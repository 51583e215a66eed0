"""Writes anew what the pages of docs/ take from results/, and the list of recipes' measurements.

    .venv/bin/python -m tools.fill_pages

A page's own words stay. What stands between `<!-- WHAT: NAME -->` (or `<!-- WHAT -->`) and
`<!-- end -->` is written anew; PARTS says what there is. For every experiment that a page names,
docs/figures/experiment-NAME.png is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from taskhint.evaluation.results import find_results
from taskhint.experiments import EXPERIMENTS
from taskhint.experiments.experiment import Panel
from taskhint.experiments.field.standing import as_measured, standings
from taskhint.experiments.findings import Finding, find_all
from taskhint.experiments.marker import read_remarks
from taskhint.recipes import MEASURED
from taskhint.recipes.known import REACHES
from taskhint.report.experiment_page import WORDS, basis, held, mean_and_interval, printed_rows
from taskhint.report.field_figures import figure_of
from taskhint.system.drawing import as_png
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.stats import OverSeeds
from taskhint.system.tables import markdown_table
from tools import campaign_tables, field_parts, hint_tables, probing_tables, rank_signals
from tools.bench_summary import summary

ROOT = Path(__file__).parent.parent
DOCS, RESULTS = ROOT / "docs", ROOT / "results"
REPRODUCED = RESULTS / "reproduce"
PLACE = re.compile(
    r"(<!-- (?P<what>[\w ]+)(?:: (?P<name>[\w-]+))? -->\n)(?P<old>.*?)(<!-- end -->)", re.DOTALL
)
LEFT_OUT = (5,)  # for room: everything is perfect there


def main() -> None:
    write_atomically(MEASURED, json_bytes(measured_recipes()))
    write_atomically(REACHES, json_bytes(measured_reaches()))
    for page in pages():
        text = filled(page.read_text())
        write_atomically(page, text.encode())
        for name in re.findall(r"figures/experiment-([\w-]+)\.png", text):
            figure = figure_of(findings()[name])
            (DOCS / "figures" / f"experiment-{name}.png").write_bytes(as_png(figure))
        if field_parts.FIGURE in text:
            (DOCS / field_parts.FIGURE).write_bytes(field_parts.figure(findings()))


def pages() -> list[Path]:
    """Those with a place to fill."""
    return [page for page in sorted(DOCS.glob("*.md")) if PLACE.search(page.read_text())]


def filled(text: str) -> str:
    """The page with every place filled; one of which results/ has nothing stays as it is."""

    def fill(place: re.Match[str]) -> str:
        part = PARTS.get(place["what"])
        content = part(place["name"], text) if part else None
        return place[0] if content is None else f"{place[1]}\n{content}\n{place[5]}"

    return PLACE.sub(fill, text)


def measured_recipes() -> dict[str, Any]:
    """What `taskhint list` says of recipes: times and results."""
    times = read_json(RESULTS / "times.json")["recipes"]
    return {
        name: {"minutes": round(times[name]["minutes"], 1), "result": result}
        for name, result in read_json(RESULTS / "recipes.json").items()
    }


def measured_reaches() -> dict[str, dict[str, float]]:
    """What `taskhint list` says of tasks: how far they carry."""
    return as_measured(standings(findings().values()))


@cache
def findings() -> dict[str, Finding]:
    found = find_all(
        find_results(REPRODUCED), EXPERIMENTS.values(), remarks=read_remarks(REPRODUCED)
    )
    return {finding.experiment.name: finding for finding in found}


def overview(_: str, page: str) -> str:
    """Of the experiments that the page shows."""
    rows = [
        [
            f"[{name}](#{name})",
            finding.experiment.question,
            finding.verdict,
            held(finding),
            basis(finding),
        ]
        for name, finding in findings().items()
        if f"<!-- experiment: {name} -->" in page
    ]
    return markdown_table(["experiment", "question", "verdict", "claims that hold", "basis"], rows)


def first_errors(name: str, _: str) -> str:
    """How the runs of an experiment first fail, from results/hints.json."""
    measured = read_json(RESULTS / "hints.json")[name]
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


def mean_and_range(shares: list[float]) -> str:
    least, most = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    return f"{100 * fmean(shares):.1f}" + (f" ({least}–{most})" if least != most else "")


def tries(name: str, _: str) -> str:
    """What was tried around a recipe, from results/search."""
    noted = read_json(RESULTS / "search" / f"{name}.json")["tries"]
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


def experiment(name: str, _: str) -> str:
    if name not in findings():
        return f"Not measured yet: `taskhint reproduce {name} --out results/reproduce`.\n"
    finding = findings()[name]
    parts = [
        (
            f"{finding.experiment.question} **{finding.verdict.capitalize()}**: {held(finding)} "
            "claims hold.\n"
        ),
        f"{basis(finding).capitalize()}.\n",
        f"![{name}](figures/experiment-{name}.png)\n",
        *(numbers(finding, panel) for panel in finding.experiment.panels),
        f"{finding.remark}\n" if finding.remark else "",
        "".join(f"- {outcome.text}: **{WORDS[outcome.holds]}**\n" for outcome in finding.outcomes),
    ]
    return "\n".join(part for part in parts if part)


def numbers(finding: Finding, panel: Panel) -> str:
    """Means over seeds, with their 95% intervals."""
    lengths = [n for n in finding.experiment.lengths if n not in LEFT_OUT]
    rows = []
    for arm in finding.experiment.arms:
        rows.append([arm.label, *(shown(finding.cell(arm, panel, n), panel) for n in lengths)])
        rows += printed_rows(finding, panel, arm, lengths)
    return markdown_table([panel.title, *(str(n) for n in lengths)], rows)


def shown(cell: OverSeeds | None, panel: Panel) -> str:
    if cell is None:
        return "–"
    mean, interval = mean_and_interval(cell, panel)
    return f"{mean} ({interval})" if interval else mean


def bench(name: str, _: str) -> str:
    """From results/bench.json; the cost model is computed on the spot."""
    from benchmarks.tables import TABLES, machine_line
    from taskhint.training import cost

    path = RESULTS / "bench.json"
    results = {**(read_json(path) if path.exists() else {}), "cost": cost.measure()}
    if name not in results:
        return "Not measured yet: run `make bench`.\n"
    if name == "machine":
        return machine_line(results[name]) + "\n"
    tables = "\n".join(table.as_markdown() for table in TABLES[name](results[name]))
    own = results.get("machines", {}).get(name)
    return tables if own is None else f"{tables}\nMeasured on: {machine_line(own)}\n"


def bench_summary(_: str, __: str) -> str | None:
    path = RESULTS / "bench.json"
    return summary(read_json(path)) if path.exists() else None


def probing(_: str, __: str) -> str | None:
    path = RESULTS / "probing.json"
    return probing_tables.tables(read_json(path)) if path.exists() else None


def campaign(_: str, __: str) -> str | None:
    """From results/campaign.json, which tools/measure_campaign.py writes."""
    path = RESULTS / "campaign.json"
    return campaign_tables.tables(read_json(path)) if path.exists() else None


def regimes(name: str, _: str) -> str:
    return hint_tables.regimes(name, findings())


def ranks(name: str, _: str) -> str:
    """How well early looks predict, from results/first-looks."""
    early = rank_signals.read_candidates(RESULTS / "first-looks" / f"{name}.json")
    return rank_signals.as_markdown(early, find_results(REPRODUCED))


def field(name: str, _: str) -> str | None:
    return field_parts.part(name, findings())


PARTS: dict[str, Callable[[str, str], str | None]] = {
    "overview": overview,
    "experiment": experiment,
    "first errors": first_errors,
    "tries": tries,
    "bench": bench,
    "bench summary": bench_summary,
    "probing": probing,
    "campaign": campaign,
    "field": field,
    "regimes": regimes,
    "ranks": ranks,
}


if __name__ == "__main__":
    main()
