"""Draws docs/figures/headline.png, demo.png, hints.png and hints-loss.png from results/.

.venv/bin/python tools/draw_figures.py
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from taskhint.evaluation.results import find_results
from taskhint.evaluation.summary import summarise
from taskhint.experiments import find_experiment
from taskhint.experiments.arm import Arm
from taskhint.experiments.experiment import Panel
from taskhint.experiments.findings import Finding, find_all
from taskhint.experiments.ours.best import BEST
from taskhint.experiments.ours.hints import COMPARED_AT, NO_DECAY
from taskhint.experiments.paper.sort import D_STANDARD, D_TEMPERED
from taskhint.report.figures import curves_figure, draw_band
from taskhint.system.drawing import COLOURS, as_png, legend_below, new_figure, tidy
from tools.hint_tables import REGIMES, Comparison, comparisons

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"
REPRODUCED = ROOT / "results" / "reproduce"
LINES = {
    ("sort-best", BEST): "sort/best",
    ("tempered", D_TEMPERED): "tempered attention alone",
    ("weight-decay", NO_DECAY): "plain training, no weight decay",
    ("tempered", D_STANDARD): "plain training, weight decay 0.1",
}
LOSSES = {"hint-muon": "constant attention", "hint-tempered": "tempered attention"}
PAPER = {
    "the paper's best (successor hint): 92.6": 92.6,
    "the paper's plain training: under 1": 1.0,
}


def main() -> None:
    draw_headline()
    draw_hints()
    draw_losses()
    (FIGURES / "demo.png").write_bytes(
        as_png(curves_figure(summarise(find_results(ROOT / "results" / "demo"))))
    )


def draw_headline() -> None:
    names = dict.fromkeys(name for name, _ in LINES)
    found = find_all(find_results(REPRODUCED), [find_experiment(name) for name in names])
    findings = {finding.experiment.name: finding for finding in found}
    figure = new_figure(8.2, 4.2)
    panel: Any = figure.subplots()
    for number, ((name, arm), label) in enumerate(LINES.items()):
        draw(panel, findings[name], arm, label, number)
    for mark, (label, percent) in zip("*X", PAPER.items(), strict=True):
        panel.plot(
            100,
            percent,
            mark,
            ms=12,
            mfc="none",
            mec="#000000",
            mew=1.4,
            ls="none",
            label=label,
            zorder=5,
        )
    tidy(panel, "", "input length", "sequences sorted without an error, %")
    panel.set_ylim(-4, 104)
    panel.set_xscale("log")
    panel.set_xticks([10, 20, 50, 100, 200, 500], ["10", "20", "50", "100", "200", "500"])
    panel.minorticks_off()
    panel.set_xlim(9, 520)
    panel.axvspan(9, 20, color="#000000", alpha=0.05, lw=0)
    panel.text(20.4, -2, "trained up to here", fontsize=8, color="#666666")
    panel.legend(frameon=False, fontsize=8.5, loc="lower left", bbox_to_anchor=(0.01, 0.1))
    (FIGURES / "headline.png").write_bytes(as_png(figure))


def draw(panel: Any, finding: Finding, arm: Arm, label: str, number: int) -> None:
    lengths = (n for n in finding.experiment.lengths if n >= 10)
    cells = {n: finding.cell(arm, Panel(), n) for n in lengths}
    found = {n: cell for n, cell in cells.items() if cell is not None}
    seeds = max(cell.seeds for cell in found.values())
    draw_band(panel, found, f"{label} ({seeds} seeds)", number)


def draw_hints() -> None:
    """What the hint adds in every regime: differences of means with Welch's 95% intervals, a panel
    per length.
    """
    findings = find_all(find_results(REPRODUCED), [find_experiment(name) for name in REGIMES])
    compared = [one for one in comparisons(findings) if one.claim.length in COMPARED_AT]
    rows = list(dict.fromkeys(one.regime for one in compared))
    figure = new_figure(10.4, 1.3 + 0.3 * len(rows))
    panels: Any = figure.subplots(1, len(COMPARED_AT), sharey=True)
    for panel, length in zip(panels, COMPARED_AT, strict=True):
        for one in compared:
            if one.claim.length == length:
                draw_difference(panel, one, len(rows) - rows.index(one.regime))
        panel.axvline(0, color="#000000", lw=0.8)
        tidy(panel, f"length {length}", "points (hint − no hint)")
        panel.set_xlim(-105, 105)
        panel.set_ylim(0.3, len(rows) + 0.7)
        panel.set_yticks(range(len(rows), 0, -1), rows)
    legend_below(figure, panels, 2)
    (FIGURES / "hints.png").write_bytes(as_png(figure))


def draw_difference(panel: Any, one: Comparison, height: int) -> None:
    middle, half = 50 * sum(one.gap), 50 * (one.gap.high - one.gap.low)
    place, colour, fill, label = (
        (0.14, COLOURS[0], COLOURS[0], "at equal total updates")
        if one.equal_totals
        else (-0.14, COLOURS[1], "#ffffff", "at equal main-task updates")
    )
    panel.errorbar(
        middle,
        height + place,
        xerr=half,
        fmt="o",
        ms=5,
        color=colour,
        mfc=fill,
        lw=1.3,
        label=label,
    )


def draw_losses() -> None:
    """How the main task's loss falls with its own updates, without and with the hint: geometric
    means over seeds.
    """
    measured = json.loads((ROOT / "results" / "hints.json").read_text())
    figure = new_figure(9.6, 3.9)
    panels: Any = figure.subplots(1, 2, sharey=True)
    for panel, (name, title) in zip(panels, LOSSES.items(), strict=True):
        for number, (label, seeds) in enumerate(measured[name]["arms"].items()):
            curves = [list(seed["main_losses"].values()) for seed in seeds]
            means = [geometric_mean(losses) for losses in zip(*curves, strict=True)]
            updates = [int(update) for update in seeds[0]["main_losses"]]
            reach = [
                min(2, i, len(means) - 1 - i) for i in range(len(means))
            ]  # points to either side
            smooth = [geometric_mean(means[i - k : i + k + 1]) for i, k in enumerate(reach)]
            panel.plot(updates, smooth, color=COLOURS[number], lw=1.6, label=label)
        tidy(
            panel,
            title,
            "updates of the main task",
            "main-task loss" if name == "hint-muon" else "",
        )
        panel.set_yscale("log")
    legend_below(figure, panels, 3)
    (FIGURES / "hints-loss.png").write_bytes(as_png(figure))


if __name__ == "__main__":
    main()
