"""Recipes for incrementing a number.

    taskhint train increment/tempered --out runs/tempered

Ten digits fit any width: desk scale is pocket scale with twice the updates.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from taskhint.model.config import ModelConfig
from taskhint.model.positions import Mirror
from taskhint.model.softmax import Constant, LogVisible, Temperature
from taskhint.recipes.entry import DESK_TIMES, Entry, TaskMaker
from taskhint.recipes.optimisers import Adam, Muon
from taskhint.recipes.recipe import Hint, Recipe, Scale
from taskhint.tasks import Carry, Increment

POCKET_UPDATES = 2000
PAPER_DATASET = 1_000_000
PAPER_UPDATES = 100_000
PAPER_WARMUP = 9_766  # ten epochs of 1M examples in batches of 1024


def recipe(
    scale: Scale,
    *,
    name: str,
    hints: tuple[TaskMaker, ...] = (),
    temperature: Temperature = Constant(),
) -> Recipe:
    if scale == "paper":
        return Recipe(
            name=name,
            scale=scale,
            task=Increment(),
            hints=tuple(Hint(make()) for make in hints),
            model=ModelConfig(
                width=1024, heads=16, depth=4, mlp_width=2048, temperature=temperature
            ),
            optimiser=Adam(),
            learning_rate=1e-5,
            batch_size=1024,
            steps=PAPER_UPDATES,
            warmup_steps=PAPER_WARMUP,
            dataset_size=PAPER_DATASET,
        )
    pocket = Recipe(
        name=name,
        scale=scale,
        task=Increment(),
        hints=tuple(Hint(make()) for make in hints),
        model=ModelConfig(depth=4, temperature=temperature),
        optimiser=Muon(),
        learning_rate=2e-2,
        batch_size=256,
        steps=POCKET_UPDATES,
        warmup_steps=POCKET_UPDATES // 20,
        dataset_size=PAPER_DATASET,
    )
    return pocket if scale == "pocket" else pocket.with_steps(DESK_TIMES * POCKET_UPDATES)


def best(scale: Scale, *, name: str) -> Recipe:
    """Places counted from ⊥ in both directions, so that a digit and the one that answers it stand
    face to face.
    """
    base = recipe(scale, name=name)
    return replace(base, model=replace(base.model, positions=Mirror()))


ENTRIES = (
    Entry(
        "increment/standard",
        "plain training",
        recipe,
    ),
    Entry(
        "increment/tempered",
        "attention logits times a learned β·ln n",
        partial(recipe, temperature=LogVisible()),
    ),
    Entry(
        "increment/carry",
        "with the carry hint",
        partial(recipe, hints=(Carry,)),
    ),
    Entry(
        "increment/best",
        "places counted from ⊥ in both directions",
        best,
    ),
)
