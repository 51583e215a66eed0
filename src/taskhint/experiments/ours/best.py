"""The recipe that sorts longest, and what each of its parts gives."""

from __future__ import annotations

from typing import Any

from taskhint.experiments.arm import Arm
from taskhint.experiments.claims import AtLeast, Better, NotBetter
from taskhint.experiments.experiment import Experiment, Panel, Published
from taskhint.experiments.paper.sort import TEMPERED
from taskhint.experiments.quantity import ACCURACY
from taskhint.model.softmax import Constant, LogInput
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe, Scale
from taskhint.recipes.sort import RICH
from taskhint.tasks import Mixture, Sort


def half(label: str, what: str, **changes: Any) -> Arm:
    """sort/best with half its updates and something else changed."""

    def recipe(scale: Scale) -> Recipe:
        best = find_recipe("sort/best", scale)
        return best.change(steps=best.steps // 2, **changes)

    return Arm(label, recipe, f"sort-best-half{what}", counterpart=TEMPERED.recipe)


def inputs(repetition: float, **changes: Any) -> Sort:
    return Sort(inputs=Mixture(**{**vars(RICH), "near": 0.0, "repetition": repetition, **changes}))


BEST = Arm(
    "sort/best",
    lambda scale: find_recipe("sort/best", scale),
    "sort-best",
    counterpart=TEMPERED.recipe,
)
BEST_HALF = half("sort/best, half the updates", "")
LEFT_OUT = (
    half("attention not tempered", "-not-tempered", temperature=Constant()),
    half("no QK-norm", "-no-qk-norm", qk_norm=False),
    half("no dense sequences", "-no-dense", task=inputs(0.4)),
    half("the paper's 10% repeats", "-paper-repeats", task=inputs(0.1, pool="half")),
)
OTHER_N = half("n = symbols before ⊥", "-log-input", temperature=LogInput())

EXPERIMENTS = (
    Experiment(
        name="sort-best",
        question="Can a small model sort 100 symbols reliably after training on at most 20?",
        arms=(BEST,),
        panels=(
            Panel(ACCURACY),
            *(Panel(ACCURACY, f"rep:{copies}") for copies in (2, 3, 4, 5)),
        ),
        lengths=(10, 20, 50, 100, 150, 200, 300, 500),
        claims=(
            AtLeast(BEST, 100, 92.6),
            AtLeast(BEST, 100, 99),
            *(AtLeast(BEST, 100, 99, f"rep:{copies}") for copies in (2, 3, 4, 5)),
        ),
        published=(Published(BEST, 100, 92.6),),
        examples=10_000,
    ),
    Experiment(
        name="sort-best-parts",
        question="What does each part of sort/best give?",
        arms=(BEST_HALF, *LEFT_OUT, OTHER_N),
        panels=(Panel(ACCURACY), Panel(ACCURACY, "rep:3"), Panel(ACCURACY, "rep:5")),
        lengths=(10, 20, 50, 100, 200, 300),
        claims=(
            *(
                Better(BEST_HALF, arm, 100, distribution)
                for arm in LEFT_OUT
                for distribution in ("uniform", "rep:5")
            ),
            *(
                NotBetter(OTHER_N, BEST_HALF, 100, distribution)
                for distribution in ("uniform", "rep:5")
            ),
        ),
    ),
)
