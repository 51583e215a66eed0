"""Result tables as plain text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from taskhint.evaluation.curve import LengthCurve
from taskhint.evaluation.summary import Series


def curve_table(curve: LengthCurve) -> str:
    """One curve, a row per length."""
    title = f"{curve.recipe}, seed {curve.seed}, {curve.step} updates, {curve.distribution} sequences"
    header = ["length", "accuracy %", "95% interval", "sequences"]
    rows = []
    for length, score in sorted(curve.scores.items()):
        low, high = score.interval
        row = [
            str(length),
            f"{100 * score.accuracy:.2f}",
            f"{100 * low:.2f}–{100 * high:.2f}",
            str(score.examples),
        ]
        rows.append(row if score.edit_distance is None else [*row, f"{score.edit_distance:.3f}"])
    if any(score.edit_distance is not None for score in curve.scores.values()):
        header.append("edit distance")
    return f"{title}\n{text_table(header, rows)}"


def series_table(series: Sequence[Series]) -> str:
    """All curves, a table per test distribution, a row per recipe: accuracy in percent by length."""
    text = ""
    for distribution in sorted({one.distribution for one in series}, key=lambda name: (name != "uniform", name)):
        chosen = [one for one in series if one.distribution == distribution]
        lengths = sorted({length for one in chosen for length in one.points})
        rows = [[one.label, *(_percent(one, length) for length in lengths)] for one in chosen]
        text += f"{distribution} sequences, accuracy % by length\n"
        text += text_table(["", *(str(length) for length in lengths)], rows) + "\n"
    return text


def _percent(series: Series, length: int) -> str:
    return f"{100 * series.points[length].mean:.1f}" if length in series.points else ""


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be; the first to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(header))]
    text = ""
    for line in lines:
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=False))
        ]
        text += "  ".join(cells).rstrip() + "\n"
    return text


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: bool = False) -> str:
    """With `numbers`, all columns but the first to the right."""
    rules = ["---", *(["---:" if numbers else "---"] * (len(header) - 1))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rules, *rows))
