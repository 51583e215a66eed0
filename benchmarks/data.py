"""What data costs: beside a training step, and alone on one core."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from torch.nn import functional

from benchmarks.timing import alternate, medians, say, timed
from benchmarks.training import BATCH_SIZE, MODELS, new_model, our_step, prepare
from taskhint.data.batch import Batch
from taskhint.data.dataset import Dataset
from taskhint.model.config import ModelConfig
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe
from taskhint.training.loop import batch_for

AT_ONCE = 1 << 17
ROUNDS = 15
STEPS = 20


def measure(
    rounds: int | None = None,
    at_once: int = AT_ONCE,
    batch_size: int = BATCH_SIZE,
    model: ModelConfig = MODELS[128],
) -> dict[str, Any]:
    """The document under "data". NumPy makes examples on one core, whatever the
    number of threads.
    """
    recipe = replace(find_recipe("sort/standard"), model=model, batch_size=batch_size)
    task, counted = recipe.task, rounds or ROUNDS
    dataset = Dataset(task, seed=0, size=1 << 30)
    step = our_step(new_model(model, task), task.kind, prepare(task, batch_size))
    works = {
        "step": step,
        "batch": lambda number: batch_for(recipe, number),
        "examples": lambda number: dataset.examples(
            range(number * at_once, (number + 1) * at_once)
        ),
    }
    seconds = medians(alternate(works, counted, "data"))
    return {
        "sort": {
            "ours": at_once / seconds["examples"],
            "examples_at_once": at_once,
            "batch_size": batch_size,
            "milliseconds_per_batch": 1000 * seconds["batch"],
            "milliseconds_per_step": 1000 * seconds["step"],
            "of_training_step": seconds["batch"] / seconds["step"],
            "waiting_of_training_step": waiting(recipe, STEPS if rounds is None else rounds),
            "rounds": counted,
        }
    }


def waiting(recipe: Recipe, steps: int) -> float:
    """The share of a training's time in which it waits for a batch, made on another thread as the
    trainer does.
    """
    decoder = new_model(recipe.model, recipe.task)
    say("data: waiting for batches")

    def learn(batch: Batch) -> None:
        functional.cross_entropy(decoder(batch, recipe.task.kind), batch.targets).backward()
        decoder.zero_grad()

    waited = worked = 0.0
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(batch_for, recipe, 0)
        for number in range(1, steps + 1):
            waited += timed(lambda _, coming=coming: coming.result())  # type: ignore[misc]
            batch = coming.result()
            coming = pool.submit(batch_for, recipe, number)
            worked += timed(lambda _, batch=batch: learn(batch))  # type: ignore[misc]
    return waited / (waited + worked)
