"""Draws the README's figures, docs/figures/headline.png and demo.png, from results/.

.venv/bin/python docs/draw_figures.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taskhint.evaluation.summary import find_runs, summarise
from taskhint.figures.curves import COLOURS, MARKERS, curves_figure
from taskhint.figures.probe_style import as_png, new_figure, tidy
from taskhint.reproduce import find_experiment
from taskhint.reproduce.experiment import Panel
from taskhint.reproduce.findings import Finding, find_all

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"
LINES = {
    ("sort-best", "sort/best"): "sort/best",
    ("tempered", "tempered, no hint"): "tempered attention alone",
    ("tempered", "no hint"): "plain training",
}
PAPER = {"the paper's best (successor hint): 92.6": 92.6, "the paper's plain training: under 1": 1.0}


def main() -> None:
    draw_headline()
    (FIGURES / "demo.png").write_bytes(as_png(curves_figure(summarise(find_runs(ROOT / "results" / "demo")))))


def draw_headline() -> None:
    places = [ROOT / "results" / name for name in ("reproduce", "demo")]  # several seeds where there are, else one
    names = dict.fromkeys(name for name, _ in LINES)
    findings = [one for place in places for one in find_all(place, [find_experiment(name) for name in names])]
    figure = new_figure(8.2, 4.2)
    panel: Any = figure.subplots()
    for number, ((name, arm), label) in enumerate(LINES.items()):
        measured = [one for one in findings if one.experiment.name == name and one.seeds[arm]]
        draw(panel, measured[0], arm, label, number)
    for mark, (label, percent) in zip("*X", PAPER.items(), strict=True):
        panel.plot(100, percent, mark, ms=12, mfc="none", mec="#000000", mew=1.4, ls="none", label=label, zorder=5)
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


def draw(panel: Any, finding: Finding, arm: str, label: str, number: int) -> None:
    cells = {n: finding.cell(arm, Panel("accuracy"), n) for n in finding.experiment.lengths if n >= 10}
    found = {n: cell for n, cell in cells.items() if cell is not None}
    seeds = max(len(cell.values) for cell in found.values())
    means = [100 * cell.mean for cell in found.values()]
    low, high = zip(*(cell.interval for cell in found.values()), strict=True)
    colour = COLOURS[number]
    basis = f"{seeds} seeds" if seeds > 1 else "1 seed"
    panel.plot(list(found), means, color=colour, marker=MARKERS[number], lw=1.8, label=f"{label} ({basis})")
    panel.fill_between(list(found), [100 * x for x in low], [100 * x for x in high], color=colour, alpha=0.15, lw=0)


if __name__ == "__main__":
    main()
