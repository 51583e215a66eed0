"""What a recipe costs, computed from the recipe: floating-point operations, memory, and hours on
named GPUs.

Operations are those of matrix products (a multiplication and an addition count as two), on exactly
the rows that our step computes, with full rectangles in attention; the way back costs twice the
way there. Tokens are the expected number under the task's own length distribution. Sizes that
depend on more than the length (the count hint, a last carry) are means over draws.

Shapes: N tokens of an example, A queries of it in the last block, S scored tokens, D width, F
inner width of the MLP, I = heads * head width, V symbols.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from taskhint.data.batch import make_batch
from taskhint.model.config import ModelConfig
from taskhint.model.positions import NoPositions
from taskhint.recipes import find_recipe
from taskhint.recipes.optimisers import Muon
from taskhint.recipes.recipe import Recipe
from taskhint.tasks.random_bits import TEST_STREAM, RandomBits
from taskhint.tasks.task import Task
from taskhint.training.limits import (
    BACKWARD,
    FLOAT,
    Example,
    forward_flops,
    kept_floats,
    parameters,
)

DRAWS = 2048
TEST_EXAMPLES = 100_000  # sequences that the paper judges at each length
TEST_LENGTHS = {"sort": (5, 10, 20, 30, 50, 70, 100), "increment": (5, 10, *range(11, 21))}
UTILISATION = 0.35  # share of a GPU's peak that a training of this size reaches; an assumption


@dataclass(frozen=True)
class Gpu:
    """Peak rate of matrix products in TF32 without sparsity, as the maker states it,
    and memory.
    """

    teraflops: float
    gib: int


GPUS = {
    "A100 80GB": Gpu(156.0, 80),
    "H100 SXM": Gpu(494.7, 80),
    "L4": Gpu(60.0, 24),
    "RTX 4090": Gpu(82.6, 24),
}


@lru_cache(maxsize=64)
def expected_examples(task: Task) -> tuple[Example, ...]:
    """Every kind of example that a task makes, by length."""
    kinds = []
    for length, share in task.lengths.shares().items():
        batch = make_batch(task, [task.make(RandomBits(0, TEST_STREAM, np.arange(DRAWS)), length)])
        scored, first = batch.scored_per_example, 0
        for group in batch.groups:
            mean = sum(scored[first : first + group.count]) / group.count
            kinds.append(Example(share * group.count / DRAWS, group.length, group.tail, mean))
            first += group.count
    return tuple(kinds)


def padded_examples(task: Task, batch_size: int) -> tuple[Example, ...]:
    """The same when all are padded to the longest of their batch and everything is computed at
    every place.
    """
    lengths = sorted({kind.tokens for kind in expected_examples(task)})
    below = [
        sum(kind.share for kind in expected_examples(task) if kind.tokens <= n) for n in lengths
    ]
    longest = np.diff(
        np.minimum(below, 1.0) ** batch_size, prepend=0.0
    )  # how likely each is the longest of a batch
    return tuple(
        Example(float(p), n, n, n) for n, p in zip(lengths, longest, strict=True) if p > 0
    )


def symbol_flops(config: ModelConfig, vocab_size: int) -> float:
    """Operations of the first block's maps on the way there: once per symbol and update, not once
    per token.

    Where tokens are nothing but symbols (no positions), their queries, keys and values are the
    symbols' own.
    """
    inner = config.heads * config.each_head
    return (
        2 * 3 * config.width * inner * vocab_size
        if isinstance(config.positions, NoPositions)
        else 0.0
    )


def example_flops(recipe: Recipe, padded: bool = False) -> float:
    """Operations of one example in training, in the mean over the recipe's tasks as they take
    their turns.
    """
    each = []
    for task in recipe.tasks:
        kinds = padded_examples(task, recipe.batch_size) if padded else expected_examples(task)
        each.append(
            sum(
                kind.share * forward_flops(recipe.model, task.vocab.size, kind, padded)
                for kind in kinds
            )
        )
    period = recipe.curriculum.period(recipe)
    return (1 + BACKWARD) * sum(each[recipe.update(step)[0]] for step in range(period)) / period


def step_flops(recipe: Recipe, padded: bool = False) -> float:
    once = 0.0 if padded else (1 + BACKWARD) * symbol_flops(recipe.model, recipe.task.vocab.size)
    return recipe.batch_size * example_flops(recipe, padded) + once


def memory_bytes(recipe: Recipe, padded: bool = False) -> dict[str, float]:
    """Float32 throughout. Adam keeps two numbers beside each weight; Muon one beside those of the
    matrices.
    """
    counts = parameters(recipe)
    learned = sum(counts.values())
    kept = 2 * learned - (counts["matrices"] if isinstance(recipe.optimiser, Muon) else 0)
    tasks = [
        padded_examples(task, recipe.batch_size) if padded else expected_examples(task)
        for task in recipe.tasks
    ]
    largest = max(sum(kind.share * kept_floats(recipe, kind) for kind in kinds) for kinds in tasks)
    return {
        "weights": FLOAT * learned,
        "gradients": FLOAT * learned,
        "optimiser": FLOAT * kept,
        "activations": FLOAT * recipe.batch_size * largest,
    }


def hours(
    recipe: Recipe, gpu: Gpu, utilisation: float = UTILISATION, padded: bool = False
) -> float:
    return recipe.steps * step_flops(recipe, padded) / (gpu.teraflops * 1e12 * utilisation) / 3600


def sequence_flops(recipe: Recipe, length: int) -> float:
    """Operations of judging one test sequence: one pass over its right answer, all of it read."""
    task = recipe.task
    batch = make_batch(task, [task.make(RandomBits(0, TEST_STREAM, np.arange(DRAWS)), length)])
    scored = len(batch.targets) / DRAWS
    return sum(
        group.count
        / DRAWS
        * forward_flops(
            recipe.model,
            task.vocab.size,
            Example(1.0, group.length, group.tail, scored),
        )
        for group in batch.groups
    )


def evaluation_flops(recipe: Recipe, examples: int = TEST_EXAMPLES) -> float:
    """Operations of a measurement at the paper's test lengths. The first block's table, made once
    for thousands of sequences, counts nothing.
    """
    return examples * sum(sequence_flops(recipe, n) for n in TEST_LENGTHS[recipe.task.kind])


def paper_experiments() -> dict[str, Recipe]:
    """The paper's trainings: depths of the plain sorter, the hints, the tempered softmax,
    increment.
    """
    plain = find_recipe("sort/standard", "paper")
    depths = {
        f"sort/standard, depth {depth}": replace(plain, model=replace(plain.model, depth=depth))
        for depth in (2, 4, 8, 12)
    }
    hinted = ("sort/successor", "sort/count", "sort/fill", "sort/all-hints")
    others = ("sort/tempered", "increment/standard", "increment/carry", "increment/tempered")
    return depths | {name: find_recipe(name, "paper") for name in hinted + others}


def measure(
    experiments: dict[str, Recipe] | None = None, utilisation: float = UTILISATION
) -> dict[str, Any]:
    """The document under "cost"."""
    experiments = experiments or paper_experiments()
    return {
        "utilisation": utilisation,
        "gpus": {name: {"teraflops": gpu.teraflops, "gib": gpu.gib} for name, gpu in GPUS.items()},
        "experiments": {name: _row(recipe, utilisation) for name, recipe in experiments.items()},
    }


def _row(recipe: Recipe, utilisation: float) -> dict[str, Any]:
    judging = evaluation_flops(recipe)
    rates = {name: gpu.teraflops * 1e12 * utilisation for name, gpu in GPUS.items()}
    return {
        "evaluation_flops": judging,
        "evaluation_seconds": {name: judging / rate for name, rate in rates.items()},
        "longest_flops": sequence_flops(recipe, max(TEST_LENGTHS[recipe.task.kind])),
        "parameters": sum(parameters(recipe).values()),
        "updates": recipe.steps,
        "flops_per_update": step_flops(recipe),
        "flops": recipe.steps * step_flops(recipe),
        "memory_bytes": memory_bytes(recipe),
        "hours": {name: hours(recipe, gpu, utilisation) for name, gpu in GPUS.items()},
        "padded_ratio": step_flops(recipe, padded=True) / step_flops(recipe),
        "padded_memory_bytes": memory_bytes(recipe, padded=True),
        "padded_hours": {
            name: hours(recipe, gpu, utilisation, padded=True) for name, gpu in GPUS.items()
        },
    }
