"""Recipes for the field's tasks: plain training, hints, scratchpads, and the baselines that grow
lengths or prime with longer inputs.

    taskhint train addition/scratchpad --out runs/scratchpad

They have pocket scale only: the paper has none of these tasks. A position scheme is one setting
away: `--set model.positions=learned`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from taskhint.model.config import ModelConfig
from taskhint.recipes.curriculum import Alternate, Curriculum, Grow, Prime
from taskhint.recipes.entry import Entry, TaskMaker
from taskhint.recipes.optimisers import Muon
from taskhint.recipes.recipe import Hint, Recipe, Scale
from taskhint.system.errors import UserError
from taskhint.tasks import (
    Addition,
    AdditionScratchpad,
    CarryOnly,
    Copy,
    CopyRepeats,
    CountUp,
    Dyck,
    FlipFlop,
    Majority,
    Mode,
    Multiplication,
    MultiplicationScratchpad,
    Next,
    NoCarry,
    Parity,
    ParityScratchpad,
    Recall,
    Reverse,
    Sort,
)
from taskhint.tasks.addition import Arithmetic

UPDATES = 3000
ARITHMETIC_DEPTH = 4  # as for increment
DATASET = 160_000_000

PLAIN: Mapping[str, TaskMaker] = {
    "copy": Copy,
    "copy-repeats": CopyRepeats,
    "reverse": Reverse,
    "addition": Addition,
    "multiplication": Multiplication,
    "parity": Parity,
    "majority": Majority,
    "mode": Mode,
    "count-up": CountUp,
    "recall": Recall,
    "flip-flop": FlipFlop,
    "dyck-1": Dyck,
}
SCRATCHPADS: Mapping[str, TaskMaker] = {
    "addition": AdditionScratchpad,
    "multiplication": MultiplicationScratchpad,
    "parity": ParityScratchpad,
}


def recipe(
    scale: Scale,
    *,
    name: str,
    task: TaskMaker,
    hints: tuple[TaskMaker, ...] = (),
    curriculum: Callable[[], Curriculum] = Alternate,
) -> Recipe:
    if scale != "pocket":
        raise UserError(f"recipe {name!r} has no {scale} scale; it has pocket")
    main = task()
    return Recipe(
        name=name,
        scale=scale,
        task=main,
        hints=tuple(Hint(hint()) for hint in hints),
        model=ModelConfig(depth=ARITHMETIC_DEPTH if isinstance(main, Arithmetic) else 2),
        optimiser=Muon(),
        learning_rate=2e-2,
        batch_size=256,
        steps=UPDATES,
        warmup_steps=UPDATES // 20,
        dataset_size=DATASET,
        curriculum=curriculum(),
    )


def entry(
    name: str,
    about: str,
    task: TaskMaker,
    hints: tuple[TaskMaker, ...] = (),
    curriculum: Callable[[], Curriculum] = Alternate,
) -> Entry:
    build = partial(recipe, name=name, task=task, hints=hints, curriculum=curriculum)
    return Entry(name=name, about=about, build=build)


ENTRIES = (
    *(entry(f"{family}/plain", "plain training", task) for family, task in PLAIN.items()),
    *(
        entry(f"{family}/scratchpad", "the answer contains the steps", task)
        for family, task in SCRATCHPADS.items()
    ),
    entry("copy/next", "with the hint of the next symbol", Copy, (Next,)),
    entry("addition/carry-only", "with the hint of the carries", Addition, (CarryOnly,)),
    entry("addition/no-carry", "with the hint of sums without carries", Addition, (NoCarry,)),
    entry(
        "addition/both-hints",
        "with both hints",
        Addition,
        (NoCarry, CarryOnly),
    ),
    entry("parity/running", "with the running parity as a hint", Parity, (ParityScratchpad,)),
    *(
        entry(f"{family}/grow", "lengths grow over half of training", task, curriculum=Grow)
        for family, task in (("sort", Sort), ("addition", Addition))
    ),
    *(
        entry(
            f"{family}/prime",
            "one input in 1,000 is twice as long as the others may be (sees longer inputs)",
            task,
            curriculum=Prime,
        )
        for family, task in (("sort", Sort), ("addition", Addition))
    ),
)
