"""Recipes for sorting.

    taskhint train sort/tempered --out runs/tempered

Pocket scale: a decoder of 0.3M parameters for two cores. Desk scale: the same on 32 symbols and
for twice the updates. The width is then four times the alphabet, so that the bases of the symbols
and of a hint's head fit at right angles, as in the paper.
Paper scale: exactly the paper's settings, where it gives any. Its warm-up of "10 epochs" is longer
than the whole training for every dataset but that of 1M examples, so paper scale warms up over ten
epochs of that one: 9,766 updates. At every scale a hinted recipe makes as many updates in all as a
plain one, so it makes fewer of the main task.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from taskhint.model.config import ModelConfig
from taskhint.model.softmax import Constant, LogVisible, Temperature
from taskhint.recipes.entry import DESK_TIMES, Entry, TaskMaker
from taskhint.recipes.optimisers import Adam, Muon
from taskhint.recipes.recipe import Hint, Recipe, Scale
from taskhint.tasks import Count, Fill, Mixture, Sort, Successor

POCKET_UPDATES = 3000
DESK_UPDATES = DESK_TIMES * POCKET_UPDATES
SYMBOLS: dict[Scale, int] = {"pocket": 100, "desk": 32, "paper": 100}
BEST_UPDATES = 6_000
PAPER_DATASET = 160_000_000
PAPER_UPDATES = 100_000
PAPER_WARMUP = 9_766

RICH = Mixture(repetition=0.8, pool="any", near=0.5)
SUCCESSOR = (Successor,)
ALL_HINTS = (Successor, Count, Fill)


def recipe(
    scale: Scale,
    *,
    name: str,
    hints: tuple[TaskMaker, ...] = (),
    temperature: Temperature = Constant(),
) -> Recipe:
    sort = Sort(symbols=SYMBOLS[scale])
    auxiliary = tuple(Hint(make(symbols=SYMBOLS[scale])) for make in hints)
    if scale == "paper":
        return Recipe(
            name=name,
            scale=scale,
            task=sort,
            hints=auxiliary,
            model=ModelConfig(
                width=1024, heads=16, depth=2, mlp_width=2048, temperature=temperature
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
        task=sort,
        hints=auxiliary,
        model=ModelConfig(temperature=temperature),
        optimiser=Muon(),
        learning_rate=2e-2,
        batch_size=256,
        steps=POCKET_UPDATES,
        warmup_steps=POCKET_UPDATES // 20,
        dataset_size=PAPER_DATASET,
    )
    return pocket if scale == "pocket" else pocket.with_steps(DESK_UPDATES)


def best(scale: Scale, *, name: str, hints: tuple[TaskMaker, ...] = ()) -> Recipe:
    """What sorts longest: QK-norm, tempered attention, and dense and repeating sequences among
    those of usual length.
    """
    base = recipe(scale, name=name, hints=hints, temperature=LogVisible())
    sort = Sort(symbols=SYMBOLS[scale], inputs=RICH)
    base = replace(base, task=sort, model=replace(base.model, qk_norm=True))
    return base if scale == "paper" else base.with_steps(BEST_UPDATES)


def without_decay(scale: Scale, *, name: str) -> Recipe:
    """Plain training at its best: of the weight decays 0 and 0.1 the one that carries further from
    lengths up to 10 to those up to 20. The paper has none anyway.
    """
    base = recipe(scale, name=name)
    return base if scale == "paper" else replace(base, optimiser=Muon(weight_decay=0.0))


ENTRIES = (
    Entry(
        "sort/standard",
        "plain training",
        recipe,
    ),
    Entry(
        "sort/no-decay",
        "plain training at its best: without weight decay",
        without_decay,
    ),
    Entry(
        "sort/tempered",
        "attention logits times a learned β·ln n",
        partial(recipe, temperature=LogVisible()),
    ),
    Entry(
        "sort/successor",
        "with the successor hint",
        partial(recipe, hints=SUCCESSOR),
    ),
    Entry(
        "sort/successor-tempered",
        "successor hint and tempered softmax",
        partial(recipe, hints=SUCCESSOR, temperature=LogVisible()),
    ),
    Entry(
        "sort/count",
        "with the count hint",
        partial(recipe, hints=(Count,)),
    ),
    Entry(
        "sort/fill",
        "with the fill hint",
        partial(recipe, hints=(Fill,)),
    ),
    Entry(
        "sort/all-hints",
        "successor, count and fill at once",
        partial(recipe, hints=ALL_HINTS),
    ),
    Entry(
        "sort/best",
        "tempered, QK-norm, dense and repeating training data, twice the updates",
        best,
    ),
    Entry(
        "sort/best-successor",
        "sort/best with the successor hint, on data of the same kind",
        partial(best, hints=(partial(Successor, inputs=RICH),)),
    ),
)
