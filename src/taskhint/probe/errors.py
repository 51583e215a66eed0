"""Where a model first goes wrong, at which kind of step, and in which way.

Only the first error of a sequence is counted: until there the answer is the right one, so greedy
decoding comes to the same place in the same way. Steps count from 0, the prediction made at ⊥. The
task says which kinds of steps and errors there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import TOKENS_AT_ONCE, judge
from taskhint.probe.probe import About, Comparison, Looked, Probe, Shown
from taskhint.probe.shares import draw_line
from taskhint.probe.traced import Subject
from taskhint.system.drawing import COLOURS, legend_below, new_figure, tidy
from taskhint.system.errors import UserError
from taskhint.system.stats import Interval, wilson
from taskhint.tasks.task import Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TENTHS = 10
RIGHT_COLOUR = "#e6e6e6"


@dataclass(frozen=True)
class ErrorsAtLength:
    """Of `sequences` sequences `right` have no error. The others are counted once, at their first
    error.
    """

    sequences: int
    right: int
    reached: dict[str, int]  # steps of each kind, up to the first error of each sequence
    counts: dict[str, dict[str, int]]  # step kind -> error kind -> sequences
    places: tuple[int, ...]  # first errors by tenth of the answer

    def share_of_error(self, kind: str) -> float:
        """The share of all sequences whose first error is of this kind."""
        return sum(errors[kind] for errors in self.counts.values()) / self.sequences

    @property
    def share_right(self) -> float:
        return self.right / self.sequences

    def risk_of_step(self, kind: str) -> float | None:
        """First errors at such steps per step that was reached; None if none was."""
        return sum(self.counts[kind].values()) / self.reached[kind] if self.reached[kind] else None

    def risk_interval(self, kind: str) -> Interval:
        """Its 95% Wilson interval."""
        risk = self.risk_of_step(kind)
        return Interval(0.0, 1.0) if risk is None else wilson(risk, self.reached[kind])

    @property
    def share_of_places(self) -> list[float]:
        """The shares of all sequences that first fail in each tenth of the answer."""
        return [count / self.sequences for count in self.places]


@dataclass(frozen=True)
class FirstErrors:
    """First errors by input length."""

    steps: tuple[str, ...]
    errors: tuple[str, ...]
    lengths: dict[int, ErrorsAtLength]


@dataclass(frozen=True)
class FirstErrorsProbe(Probe):
    kind: ClassVar[str] = "errors"
    title: ClassVar[str] = "First errors"
    caption: ClassVar[str] = (
        "Each failed sequence counts once, at its first error. Left: in which way. Middle: how "
        "often a step of each kind is the first to fail. Right: in which tenth of the answer."
    )

    def result(self, looked: Looked) -> FirstErrors:
        return first_errors(looked.subject, looked.lengths, looked.examples)

    def draw(self, found: FirstErrors, about: About) -> list[Shown]:  # noqa: ARG002
        return [Shown("first-errors", self.title, self.caption, errors_figure(found))]

    def excerpt(self, found: FirstErrors) -> dict[str, Any]:
        return {"errors": found}

    def draw_compared(self, comparison: Comparison) -> list[Shown]:
        figure = errors_comparison(comparison)
        caption = "In which way each run first fails."
        return [Shown("compared-errors", "First errors compared", caption, figure)]


def first_errors(subject: Subject, lengths: Sequence[int], examples: int) -> FirstErrors:
    found = {length: _at_length(subject, length, examples) for length in sorted(set(lengths))}
    return FirstErrors(subject.task.step_kinds, subject.task.error_kinds, found)


def _at_length(subject: Subject, length: int, examples: int) -> ErrorsAtLength:
    task = subject.task
    reached: Counter[str] = Counter()
    errors: Counter[tuple[str, str]] = Counter()
    places = [0] * TENTHS
    right = 0
    for steps, failed in _walk(subject, length, examples):
        reached.update(task.step_kind(step) for step in steps)
        right += not failed
        if failed:
            last = steps[-1]
            errors[task.step_kind(last), task.error_kind(last)] += 1
            places[TENTHS * last.number // len(last.answer)] += 1
    _check_kinds(task.kind, "step_kind", reached, task.step_kinds)
    _check_kinds(task.kind, "error_kind", (kind for _, kind in errors), task.error_kinds)
    return ErrorsAtLength(
        sequences=examples,
        right=right,
        reached={kind: reached[kind] for kind in task.step_kinds},
        counts={s: {e: errors[s, e] for e in task.error_kinds} for s in task.step_kinds},
        places=tuple(places),
    )


def _check_kinds(task: str, method: str, given: Iterable[str], known: Sequence[str]) -> None:
    for kind in given:
        if kind not in known:
            raise UserError(
                f"task {task!r}: {method} says {kind!r}, which {method}s does not list; "
                f"listed: {', '.join(known)}"
            )


def _walk(subject: Subject, length: int, examples: int) -> Iterator[tuple[list[Step], bool]]:
    """Of each sequence its steps up to the first error, and whether there is one."""
    size = fresh_examples(subject.task, subject.seed, length, 0, 1).tokens.shape[1]
    at_once = max(1, TOKENS_AT_ONCE // size)
    for start in range(0, examples, at_once):
        chunk = fresh_examples(
            subject.task, subject.seed, length, start, min(at_once, examples - start)
        )
        verdicts = judge(subject.decoder, subject.task, chunk)
        for row, first in enumerate(verdicts.first_error.tolist()):
            tokens = chunk.tokens[row, : chunk.sizes[row]].tolist()
            inputs, answer = tokens[: chunk.inputs[row]], tokens[chunk.prompts[row] :]
            predicted = verdicts.predicted[row].tolist()
            last = len(answer) - 1 if first < 0 else first
            yield [Step(inputs, answer, k, predicted[k]) for k in range(last + 1)], first >= 0


def errors_figure(errors: FirstErrors) -> Figure:
    """Way of failing, kind of step, and place in the answer."""
    figure = new_figure(13, 4.6)
    kinds, steps, places = figure.subplots(1, 3)
    _stack(kinds, errors)
    tidy(kinds, "How the first error goes wrong", "input length", "sequences, %")
    _step_rates(steps, errors)
    tidy(
        steps, "How risky each kind of step is", "input length", "first errors per 100 such steps"
    )
    image = _draw_places(places, errors)
    tidy(places, "Where in the answer it is", "input length", "tenth of the answer")
    places.grid(False)
    figure.colorbar(image, ax=places, label="% of all sequences", pad=0.02)
    kinds.legend(
        frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
    )
    steps.legend(
        frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
    )
    return figure


def _stack(panel: Any, errors: FirstErrors) -> None:
    """Bars of all sequences by their first error; what has none is light grey, on top."""
    lengths = [str(length) for length in errors.lengths]
    found = list(errors.lengths.values())
    bottom = [0.0] * len(lengths)
    for number, kind in enumerate(errors.errors):
        heights = [100 * one.share_of_error(kind) for one in found]
        panel.bar(
            lengths, heights, 0.82, bottom, color=COLOURS[(number + 1) % 7], label=kind, lw=0
        )
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    rest = [100 * one.share_right for one in found]
    panel.bar(lengths, rest, 0.82, bottom, color=RIGHT_COLOUR, label="no error", lw=0)
    panel.set_ylim(0, 100)


def _step_rates(panel: Any, errors: FirstErrors) -> None:
    for number, step in enumerate(errors.steps):
        risks = {n: one.risk_of_step(step) for n, one in errors.lengths.items()}
        known = {n: risk for n, risk in risks.items() if risk is not None}
        points = [
            tuple(100 * x for x in (risk, *errors.lengths[n].risk_interval(step)))
            for n, risk in known.items()
        ]
        draw_line(panel, list(known), points, number, step)
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)


def _draw_places(panel: Any, errors: FirstErrors) -> Any:
    columns = [[100 * share for share in one.share_of_places] for one in errors.lengths.values()]
    table = [list(row) for row in zip(*columns, strict=True)]
    image = panel.imshow(table, cmap="Blues", origin="lower", aspect="auto", vmin=0, vmax=100)
    panel.set_xticks(range(len(columns)), [str(length) for length in errors.lengths])
    panel.set_yticks(range(len(table)), [str(number + 1) for number in range(len(table))])
    return image


def errors_comparison(comparison: Comparison) -> Figure:
    """The way of failing, a panel per run."""
    count = len(comparison.runs)
    columns = min(4, count)
    rows = -(-count // columns)
    figure = new_figure(3.4 * columns + 0.6, 3.0 * rows + 0.9)
    panels: Any = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for panel, run in zip(panels.flatten(), comparison.runs, strict=False):
        _stack(panel, run.parts["errors"])
        tidy(panel, run.about.name, "input length")
    for panel in panels.flatten()[count:]:
        panel.set_visible(False)
    for row in panels:
        row[0].set_ylabel("sequences, %")
    legend_below(figure, panels.flatten()[:count], 4)
    return figure
