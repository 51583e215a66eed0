"""Where the successor hint helps and where it hurts: the paper's central claim in other regimes.

A hinted run shares its updates between two tasks. So it is compared twice: with a run without the hint of as many
updates in all, and with one of as many updates of the main task.
"""

from __future__ import annotations

from taskhint.reproduce.experiment import Arm, Better, Claim, Experiment, Panel
from taskhint.reproduce.sort import ACCURACY, LENGTHS

ADAM = ("optimiser=adam", "learning_rate=0.001")
LONG = 3.0


def _regime(plain: str, hinted: str, settings: tuple[str, ...] = (), updates: float = 1.0) -> tuple[Arm, ...]:
    """Without and with the hint, at equal updates in all and at equal updates of the main task."""
    return (
        Arm("no hint", plain, settings, settings, updates),
        Arm("no hint, half the updates", plain, settings, settings, updates / 2),
        Arm("hint, half of the updates its own", hinted, settings, settings, updates),
        Arm("hint, twice the updates", hinted, settings, settings, 2 * updates),
    )


EQUAL_TOTAL = tuple(Better("hint, half of the updates its own", "no hint", n) for n in (50, 100))
EQUAL_MAIN: tuple[Claim, ...] = (
    *(Better("hint, half of the updates its own", "no hint, half the updates", n) for n in (50, 100)),
    *(Better("hint, twice the updates", "no hint", n) for n in (50, 100)),
)

EXPERIMENTS = (
    Experiment(
        name="hint-muon",
        question="Does the successor hint help with Muon, at equal totals and at equal main-task updates?",
        arms=_regime("sort/standard", "sort/successor"),
        panels=ACCURACY,
        lengths=LENGTHS,
        claims=(*EQUAL_TOTAL, *EQUAL_MAIN),
        beyond=True,
    ),
    Experiment(
        name="hint-tempered",
        question="Does it help with Muon and tempered attention?",
        arms=_regime("sort/tempered", "sort/successor-tempered"),
        panels=(*ACCURACY, Panel("accuracy", "rep:3")),
        lengths=LENGTHS,
        claims=(*EQUAL_TOTAL, *EQUAL_MAIN),
        beyond=True,
    ),
    Experiment(
        name="hint-long",
        question="Does it help long after the training lengths are perfect?",
        arms=_regime("sort/standard", "sort/successor", (), LONG)[::2],
        panels=ACCURACY,
        lengths=LENGTHS,
        claims=EQUAL_TOTAL,
        beyond=True,
    ),
    Experiment(
        name="hint-adam",
        question="Does it help with Adam, the paper's optimiser?",
        arms=_regime("sort/standard", "sort/successor", ADAM, 2.0)[::2],
        panels=ACCURACY,
        lengths=LENGTHS,
        claims=EQUAL_TOTAL,
        beyond=True,
    ),
    Experiment(
        name="hint-variants",
        question="Does another share, another length distribution or another definition make the hint help?",
        arms=(
            Arm("no hint", "sort/tempered"),
            Arm("hint, every second update", "sort/successor-tempered"),
            Arm("hint, every fourth update", "sort/successor-tempered", ("main_updates=3",), ("main_updates=3",)),
            Arm(
                "hint on long inputs",
                "sort/successor-tempered",
                ("hints.successor.task.lengths.short_share=0.2",),
                ("hints.successor.task.lengths.short_share=0.2",),
            ),
            Arm(
                "hint: next distinct symbol",
                "sort/successor-tempered",
                ("hints.successor.task.repeated=next-distinct",),
                ("hints.successor.task.repeated=next-distinct",),
            ),
        ),
        panels=ACCURACY,
        lengths=LENGTHS,
        claims=tuple(
            Better(arm, "no hint", 100)
            for arm in (
                "hint, every second update",
                "hint, every fourth update",
                "hint on long inputs",
                "hint: next distinct symbol",
            )
        ),
        beyond=True,
    ),
)
