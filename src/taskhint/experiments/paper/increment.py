"""The paper's experiment on adding one to a number, and the same with a recipe of our own."""

from __future__ import annotations

from functools import partial

from taskhint.experiments.arm import Arm
from taskhint.experiments.claims import AtLeast, Better
from taskhint.experiments.experiment import Experiment, Panel, Published
from taskhint.experiments.quantity import ACCURACY
from taskhint.recipes import find_recipe

FIRST_LENGTH = 11
NO_HINT = Arm("no hint", partial(find_recipe, "increment/standard"), "increment-standard")
CARRY = Arm("carry hint", partial(find_recipe, "increment/carry"), "increment-carry")
TEMPERED = Arm("tempered", partial(find_recipe, "increment/tempered"), "increment-tempered")
BEST = Arm(
    "increment/best",
    partial(find_recipe, "increment/best"),
    "increment-best",
    counterpart=TEMPERED.recipe,
)
TABLE = {
    NO_HINT: (98.2, 93.8, 81.5, 60.1, 41, 23.2, 10, 4.1, 1.4, 0.3),
    CARRY: (99.4, 96.4, 88.4, 69.2, 47.7, 27.1, 13.7, 6, 2.2, 0.5),
    TEMPERED: (99.8, 97.5, 91.4, 78.3, 62.1, 46.4, 29, 16, 8, 4),
}
BEST_ROW = tuple(max(row[place] for row in TABLE.values()) for place in range(10))

EXPERIMENTS = (
    Experiment(
        name="increment",
        question="Do the carry hint and tempered attention help to increment longer numbers?",
        arms=(NO_HINT, CARRY, TEMPERED),
        lengths=(5, 10, *range(FIRST_LENGTH, 21)),
        claims=(
            Better(CARRY, NO_HINT, 12),
            Better(CARRY, NO_HINT, 15),
            Better(TEMPERED, NO_HINT, 12),
            Better(TEMPERED, NO_HINT, 15),
            Better(TEMPERED, CARRY, 15),
        ),
        published=tuple(
            Published(arm, FIRST_LENGTH + place, percent)
            for arm, row in TABLE.items()
            for place, percent in enumerate(row)
        ),
        of_paper=True,
    ),
    Experiment(
        name="increment-best",
        question=(
            "Can a small model increment numbers far longer than the ten digits of its training?"
        ),
        arms=(BEST,),
        panels=(Panel(ACCURACY), Panel(ACCURACY, "nines")),
        lengths=(5, 10, *range(FIRST_LENGTH, 21), 30, 50),
        claims=(
            *(AtLeast(BEST, FIRST_LENGTH + place, best) for place, best in enumerate(BEST_ROW)),
            AtLeast(BEST, 20, 95),
        ),
        published=tuple(
            Published(BEST, FIRST_LENGTH + place, best) for place, best in enumerate(BEST_ROW)
        ),
        examples=10_000,
    ),
)
