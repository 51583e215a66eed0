"""How often the mechanisms of a task's algorithm are seen inside a model, by length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from taskhint.probe.attention import attention_rows, sharpest_head
from taskhint.probe.mechanism import Mechanism, mechanisms_of
from taskhint.probe.probe import About, Comparison, Looked, Probe, Shown, Table
from taskhint.probe.shares import Share, draw_shares, share_of
from taskhint.probe.traced import Rows, RowsByLength, Subject, Traced, collect
from taskhint.runs.curve import measured_in
from taskhint.runs.run import Run
from taskhint.runs.shares import SHARPEST, save_shares
from taskhint.system.drawing import legend_below, mark_training, new_figure, percent_axis, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class MechanismCurves:
    """For each mechanism how often it held, by input length."""

    shares: dict[str, dict[int, Share]]


@dataclass(frozen=True)
class Mechanisms(Probe):
    kind: ClassVar[str] = "mechanisms"
    title: ClassVar[str] = "Mechanisms by length"
    caption: ClassVar[str] = (
        "How often each step of the algorithm is seen inside the model, by input length, with 95% "
        "intervals. A line that stays at 100% is a mechanism that carries over to longer inputs; "
        "where one falls, look there first."
    )

    def has_meaning(self, subject: Subject) -> bool:
        return bool(mechanisms_of(subject.task))

    def rows(self, traced: Traced) -> Rows:
        return mechanism_rows(traced)

    def result(self, looked: Looked) -> MechanismCurves:
        return mechanism_curves(looked.rows)

    def draw(self, found: MechanismCurves, about: About) -> list[Shown]:
        figure = mechanisms_figure(found, about.trained_up_to)
        return [Shown("mechanisms", self.title, self.caption, figure, shares_table(found))]

    def excerpt(self, found: MechanismCurves) -> dict[str, Any]:
        return {"mechanisms": found}

    def draw_compared(self, comparison: Comparison) -> list[Shown]:
        caption = (
            "The same mechanisms in every run: which of them separates runs that carry over to "
            "longer inputs from those that do not."
        )
        figure = mechanisms_comparison(comparison)
        return [Shown("compared-mechanisms", "Mechanisms compared", caption, figure)]


def measure_mechanisms(subject: Subject, lengths: Sequence[int], examples: int) -> MechanismCurves:
    """Every mechanism that has a meaning for the subject's task."""
    (rows,) = collect(subject, lengths, examples, [mechanism_rows])
    return mechanism_curves(rows)


def keep_mechanisms(run: Run, lengths: Sequence[int], examples: int = 200) -> None:
    """Count the mechanisms of a run, see how sharp its attention is, and keep both with it."""
    subject = Subject.of(run)
    counted, attention = collect(subject, lengths, examples, [mechanism_rows, attention_rows])
    shares = {
        name: {n: s.share for n, s in row.items() if s.share is not None}
        for name, row in mechanism_curves(counted).shares.items()
    }
    sharp = {n: sharpest_head(rows) for n, rows in attention.items() if rows}
    place = measured_in(run.path, run.precision)
    save_shares(
        place, run.checkpoint.step, examples, shares | ({SHARPEST: sharp} if sharp else {})
    )


def mechanism_rows(traced: Traced) -> Rows:
    """(B, 2) how often each mechanism held and was asked for in each sequence."""
    rows: Rows = {}
    for name, mechanism in mechanisms_of(traced.subject.task).items():
        verdict = mechanism.verdict(traced)
        counts = torch.stack([verdict.asked & verdict.held, verdict.asked], dim=2).sum(dim=1)
        rows[name] = counts.numpy()
    return rows


def mechanism_curves(by_length: RowsByLength) -> MechanismCurves:
    names = dict.fromkeys(name for rows in by_length.values() for name in rows)
    return MechanismCurves(
        {name: {n: share_of(*rows[name].T) for n, rows in by_length.items()} for name in names}
    )


def _panels(names: Sequence[str]) -> tuple[list[Mechanism], list[Mechanism]]:
    """Of the named mechanisms those with a panel of their own, and those that are parts."""
    every = [member() for member in Mechanism.kinds().values()]
    chosen = [one for one in every if one.name in names]
    return [one for one in chosen if not one.part_of], [one for one in chosen if one.part_of]


def _title(mechanism: Mechanism) -> str:
    words = mechanism.name.split("+")
    return "+".join(word[:1].upper() + word[1:] for word in words) + f"\n{mechanism.where}"


def mechanisms_figure(curves: MechanismCurves, trained_up_to: int | None) -> Figure:
    """A panel per mechanism; its parts are drawn thinner."""
    shown, parts = _panels(list(curves.shares))
    figure = new_figure(3.5 * len(shown) + 0.6, 3.9)
    panels: Any = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for panel, one in zip(panels, shown, strict=True):
        draw_shares(panel, curves.shares[one.name], 0, one.whole)
        own = [part for part in parts if part.part_of == one.name]
        for number, part in enumerate(own):
            look: dict[str, Any] = {"lw": 1.1, "ls": "--", "ms": 3.5}
            draw_shares(panel, curves.shares[part.name], number + 1, part.part, **look)
        if own:
            panel.legend(frameon=False, fontsize=8, loc="best")
        _finish(panel, one, trained_up_to)
    panels[0].set_ylabel("held, % of positions")
    return figure


def mechanisms_comparison(comparison: Comparison) -> Figure:
    """A panel per mechanism, a line per run."""
    every = [run.parts["mechanisms"].shares for run in comparison.runs]
    shown, _ = _panels([name for name in every[0] if all(name in one for one in every)])
    figure = new_figure(3.5 * len(shown) + 0.6, 4.3)
    panels: Any = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for panel, one in zip(panels, shown, strict=True):
        for number, (run, shares) in enumerate(zip(comparison.runs, every, strict=True)):
            draw_shares(panel, shares[one.name], number, run.about.name)
        _finish(panel, one, comparison.trained_up_to)
    panels[0].set_ylabel("held, % of positions")
    legend_below(figure, panels, 4)
    return figure


def _finish(panel: Any, mechanism: Mechanism, trained_up_to: int | None) -> None:
    tidy(panel, _title(mechanism), "input length")
    mark_training(panel, trained_up_to)
    percent_axis(panel)


def shares_table(curves: MechanismCurves) -> Table:
    lengths = sorted({n for shares in curves.shares.values() for n in shares})
    rows = [
        [(name,), *(_cell(shares[n]) for n in lengths)] for name, shares in curves.shares.items()
    ]
    return Table(["% of positions, by length", *map(str, lengths)], rows)


def _cell(share: Share) -> tuple[str, ...]:
    if share.share is None:
        return "–", f"n {share.asked}"
    interval = f"{100 * share.low:.1f}–{100 * share.high:.1f}"
    return f"{100 * share.share:.1f}", interval, f"n {share.asked}"
