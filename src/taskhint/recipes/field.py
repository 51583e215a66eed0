"""Recipes for the field's tasks: plain training, hints, scratchpads, and the baselines that grow
lengths or prime with longer inputs.

    taskhint train addition/scratchpad --out runs/scratchpad

They have pocket scale only: the paper has none of these tasks. A position scheme is one setting
away: `--set model.positions=learned`.
"""

from __future__ import annotations

from collections.abc import Callable
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

PLAIN = "plain training"
STEPS = "the answer contains the steps"
GROWN = "lengths grow over half of training"
PRIMED = "one input in 1,000 is twice as long as the others may be (sees longer inputs)"


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


ENTRIES = (
    Entry("copy/plain", PLAIN, partial(recipe, task=Copy)),
    Entry("copy-repeats/plain", PLAIN, partial(recipe, task=CopyRepeats)),
    Entry("reverse/plain", PLAIN, partial(recipe, task=Reverse)),
    Entry("addition/plain", PLAIN, partial(recipe, task=Addition)),
    Entry("multiplication/plain", PLAIN, partial(recipe, task=Multiplication)),
    Entry("parity/plain", PLAIN, partial(recipe, task=Parity)),
    Entry("majority/plain", PLAIN, partial(recipe, task=Majority)),
    Entry("mode/plain", PLAIN, partial(recipe, task=Mode)),
    Entry("count-up/plain", PLAIN, partial(recipe, task=CountUp)),
    Entry("recall/plain", PLAIN, partial(recipe, task=Recall)),
    Entry("flip-flop/plain", PLAIN, partial(recipe, task=FlipFlop)),
    Entry("dyck-1/plain", PLAIN, partial(recipe, task=Dyck)),
    Entry("addition/scratchpad", STEPS, partial(recipe, task=AdditionScratchpad)),
    Entry("multiplication/scratchpad", STEPS, partial(recipe, task=MultiplicationScratchpad)),
    Entry("parity/scratchpad", STEPS, partial(recipe, task=ParityScratchpad)),
    Entry(
        "copy/next",
        "with the hint of the next symbol",
        partial(recipe, task=Copy, hints=(Next,)),
    ),
    Entry(
        "addition/carry-only",
        "with the hint of the carries",
        partial(recipe, task=Addition, hints=(CarryOnly,)),
    ),
    Entry(
        "addition/no-carry",
        "with the hint of sums without carries",
        partial(recipe, task=Addition, hints=(NoCarry,)),
    ),
    Entry(
        "addition/both-hints",
        "with both hints",
        partial(recipe, task=Addition, hints=(NoCarry, CarryOnly)),
    ),
    Entry(
        "parity/running",
        "with the running parity as a hint",
        partial(recipe, task=Parity, hints=(ParityScratchpad,)),
    ),
    Entry("sort/grow", GROWN, partial(recipe, task=Sort, curriculum=Grow)),
    Entry("addition/grow", GROWN, partial(recipe, task=Addition, curriculum=Grow)),
    Entry("sort/prime", PRIMED, partial(recipe, task=Sort, curriculum=Prime)),
    Entry("addition/prime", PRIMED, partial(recipe, task=Addition, curriculum=Prime)),
)
