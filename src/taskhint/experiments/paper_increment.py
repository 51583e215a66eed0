"""The paper's experiment on adding one to a number."""

from __future__ import annotations

from taskhint.experiments.experiment import Arm, AtLeast, Better, Experiment, Panel, Published

TABLE = {
    "no hint": (98.2, 93.8, 81.5, 60.1, 41, 23.2, 10, 4.1, 1.4, 0.3),
    "carry hint": (99.4, 96.4, 88.4, 69.2, 47.7, 27.1, 13.7, 6, 2.2, 0.5),
    "tempered": (99.8, 97.5, 91.4, 78.3, 62.1, 46.4, 29, 16, 8, 4),
}
FIRST_LENGTH = 11
BEST_ROW = tuple(max(row[place] for row in TABLE.values()) for place in range(10))

EXPERIMENTS = (
    Experiment(
        name="increment",
        question="Do the carry hint and tempered attention help to increment longer numbers?",
        arms=(
            Arm("no hint", "increment/standard"),
            Arm("carry hint", "increment/carry"),
            Arm("tempered", "increment/tempered"),
        ),
        panels=(Panel("accuracy"),),
        lengths=(5, 10, *range(FIRST_LENGTH, 21)),
        claims=(
            Better("carry hint", "no hint", 12),
            Better("carry hint", "no hint", 15),
            Better("tempered", "no hint", 12),
            Better("tempered", "no hint", 15),
            Better("tempered", "carry hint", 15),
        ),
        published=tuple(
            Published(arm, FIRST_LENGTH + place, percent)
            for arm, row in TABLE.items()
            for place, percent in enumerate(row)
        ),
        remark="The carry hint and tempered attention both help, as in the paper; that tempered "
        "attention helps more "
        "does not show at any length. At 20 digits nothing is left of either gain.",
    ),
    Experiment(
        name="increment-best",
        question=(
            "Can a small model increment numbers far longer than the ten digits of its training?"
        ),
        arms=(Arm("increment/best", "increment/best", counterpart="increment/tempered"),),
        panels=(Panel("accuracy"), Panel("accuracy", "nines")),
        lengths=(5, 10, *range(FIRST_LENGTH, 21), 30, 50),
        claims=(
            *(
                AtLeast("increment/best", FIRST_LENGTH + place, best)
                for place, best in enumerate(BEST_ROW)
            ),
            AtLeast("increment/best", 20, 95),
        ),
        published=tuple(
            Published("increment/best", FIRST_LENGTH + place, best)
            for place, best in enumerate(BEST_ROW)
        ),
        examples=10_000,
        beyond=True,
    ),
)
