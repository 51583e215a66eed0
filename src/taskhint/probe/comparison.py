"""Several runs side by side: what of each goes into one figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taskhint.probe.attention import AttentionByLength, strongest_head
from taskhint.probe.first_errors import FirstErrors
from taskhint.probe.mechanisms import MechanismCurves
from taskhint.probe.study import Study


@dataclass(frozen=True)
class Interval:
    mean: float
    half: float


@dataclass(frozen=True)
class HeadCurves:
    """One head by length. It was chosen at the shortest length, as the one of the last block that
    looks most at `kind`.

    `share` is its attention on that kind, `largest` the largest share on any one symbol, `entropy`
    over ln(keys in sight).
    """

    kind: str
    block: int
    head: int
    share: dict[int, Interval]
    largest: dict[int, Interval]
    entropy: dict[int, Interval]


@dataclass(frozen=True)
class Compared:
    """What the comparison shows of one run."""

    name: str
    recipe: str
    trained_up_to: int | None
    mechanisms: MechanismCurves
    heads: dict[str, HeadCurves]  # by kind of key
    errors: FirstErrors


@dataclass(frozen=True)
class Comparison:
    """Runs of one task, in the order in which they were given."""

    task: str
    examples: int
    runs: tuple[Compared, ...]

    @property
    def trained_up_to(self) -> int | None:
        """The longest length that any of the runs was trained on."""
        return max(
            (run.trained_up_to for run in self.runs if run.trained_up_to is not None), default=None
        )


def compare(studies: Sequence[Study]) -> list[Comparison]:
    """A comparison for every task that at least two of the studies share."""
    by_task: dict[str, list[Study]] = {}
    for one in studies:
        by_task.setdefault(one.task, []).append(one)
    return [
        Comparison(task, min(one.examples for one in same), tuple(_compared(one) for one in same))
        for task, same in by_task.items()
        if len(same) > 1
    ]


def _compared(study: Study) -> Compared:
    kinds = (
        [kind for kind in study.attention.kinds if kind not in ("⊥", "rest")]
        if study.attention.shares
        else []
    )
    heads = {kind: _follow(study.attention, kind) for kind in kinds}
    return Compared(
        study.name, study.recipe, study.trained_up_to, study.mechanisms, heads, study.errors
    )


def _follow(curves: AttentionByLength, kind: str) -> HeadCurves:
    block, head = strongest_head(curves, kind)
    at, column = (block, head), curves.kinds.index(kind)
    return HeadCurves(
        kind=kind,
        block=block,
        head=head,
        share={
            n: Interval(m.mean[*at, column], m.half[*at, column]) for n, m in curves.shares.items()
        },
        largest={n: Interval(m.mean[at], m.half[at]) for n, m in curves.largest.items()},
        entropy={n: Interval(m.mean[at], m.half[at]) for n, m in curves.entropy.items()},
    )
