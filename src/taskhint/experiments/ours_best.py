"""Beyond the paper: the recipe that sorts longest, and what each of its parts gives."""

from __future__ import annotations

from taskhint.experiments.experiment import (
    Arm,
    AtLeast,
    Better,
    Experiment,
    NotBetter,
    Panel,
    Published,
)

BEST_HALF = Arm(
    "sort/best, half the updates", "sort/best", updates=0.5, counterpart="sort/tempered"
)
LEFT_OUT = {
    "attention not tempered": ("model.temperature=constant",),
    "queries and keys of any size": ("model.qk_norm=false",),
    "no dense sequences": ("task.inputs.near=0.0", "task.inputs.repetition=0.4"),
    "the paper's 10% repeats": (
        "task.inputs.near=0.0",
        "task.inputs.repetition=0.1",
        "task.inputs.pool=half",
    ),
}
OTHER_N = "n = symbols before ⊥"

EXPERIMENTS = (
    Experiment(
        name="sort-best",
        question="Can a small model sort 100 symbols reliably after training on at most 20?",
        arms=(Arm("sort/best", "sort/best", counterpart="sort/tempered"),),
        panels=(
            Panel("accuracy"),
            *(Panel("accuracy", f"rep:{copies}") for copies in (2, 3, 4, 5)),
        ),
        lengths=(10, 20, 50, 100, 150, 200, 300, 500),
        claims=(
            AtLeast("sort/best", 100, 92.6),
            AtLeast("sort/best", 100, 99),
            *(AtLeast("sort/best", 100, 99, f"rep:{copies}") for copies in (2, 3, 4, 5)),
        ),
        published=(Published("sort/best", 100, 92.6),),
        examples=10_000,
        beyond=True,
    ),
    Experiment(
        name="sort-best-parts",
        question="What does each part of sort/best give?",
        arms=(
            BEST_HALF,
            *(
                Arm(label, "sort/best", changed, changed, 0.5, "sort/tempered")
                for label, changed in LEFT_OUT.items()
            ),
            Arm(
                OTHER_N,
                "sort/best",
                *2 * (("model.temperature=log-input",),),
                0.5,
                "sort/tempered",
            ),
        ),
        panels=(Panel("accuracy"), Panel("accuracy", "rep:3"), Panel("accuracy", "rep:5")),
        lengths=(10, 20, 50, 100, 200, 300),
        claims=(
            *(
                Better(BEST_HALF.label, label, 100, distribution)
                for label in LEFT_OUT
                for distribution in ("uniform", "rep:5")
            ),
            *(
                NotBetter(OTHER_N, BEST_HALF.label, 100, distribution)
                for distribution in ("uniform", "rep:5")
            ),
        ),
        beyond=True,
        remark="Every part counts, the more the longer the input: at length 200 it is 91% of "
        "uniform sequences with "
        "all parts, and 0%, 6%, 30% and 0% with one left out, in the order of the table. At 100 "
        "leaving out dense "
        "sequences, or on uniform symbols queries and keys of one size, is within what three "
        "seeds can tell. Whether n "
        "counts visible keys or the symbols before ⊥ makes no difference that they could.",
    ),
)
