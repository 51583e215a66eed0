"""What training costs on the field's tasks and under its position schemes, beside sorting, at
equal tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from benchmarks.timing import Work, alternate, medians
from benchmarks.training import MODELS
from taskhint.data.dataset import Dataset
from taskhint.experiments.field import SCHEMES
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.positions import KerpleLog, KerplePower
from taskhint.model.softmax import Entmax15, Softmax
from taskhint.recipes import find_recipe
from taskhint.recipes.field import ENTRIES
from taskhint.recipes.recipe import Recipe
from taskhint.tasks import Addition, Sort, Task
from taskhint.training.loop import batch_for

TOKENS = 11_000  # of a batch: those of 1,024 inputs to sort
ROUNDS = 9
SAMPLE = 2048
SORT = "sort"
LONGEST = 5  # times the training length, as in the table


def measure(
    rounds: int | None = None, tokens: int = TOKENS, model: ModelConfig = MODELS[128]
) -> dict[str, Any]:
    """The document under "field". An update is timed with the making of its batch, as one core
    does it; what it takes is divided by the tokens of the batch.
    """
    tasks = {name: _sized(recipe, tokens) for name, recipe in _tasks(model).items()}
    schemes = {name: _sized(recipe, tokens) for name, recipe in _schemes(model).items()}
    recipes = tasks | schemes
    works = {name: _update(recipe) for name, recipe in recipes.items()}
    seconds = medians(alternate(works, rounds or ROUNDS, "field"))
    per_token = {
        name: seconds[name] / (recipe.batch_size * _tokens_each(recipe))
        for name, recipe in recipes.items()
    }
    against = {name: spent / per_token[SORT] for name, spent in per_token.items()}
    return {
        "sort_microseconds_per_token": 1e6 * per_token[SORT],
        "tasks": {name: against[name] for name in tasks if name != SORT},
        "schemes": {
            name: {"against_sort": against[name], "fast": _is_fast(recipe)}
            for name, recipe in schemes.items()
        },
        "tokens": tokens,
        "rounds": rounds or ROUNDS,
    }


def _tasks(model: ModelConfig) -> dict[str, Recipe]:
    plain = find_recipe("sort/standard").change(model=model)
    tasks: dict[str, Task] = {SORT: Sort()}
    for ending, words in (("/plain", ""), ("/scratchpad", ", scratchpad")):
        for name in (entry.name for entry in ENTRIES if entry.name.endswith(ending)):
            tasks[name.removesuffix(ending) + words] = find_recipe(name).task
    return {name: plain.change(task=task) for name, task in tasks.items()}


def _schemes(model: ModelConfig) -> dict[str, Recipe]:
    """On addition, which all of them serve."""
    task = Addition()
    plain = find_recipe("sort/standard").change(model=model, task=task)
    longest = LONGEST * task.lengths.max_length
    recipes = {
        scheme.label: plain.change(
            positions=scheme.build(task, longest), temperature=scheme.temperature
        )
        for scheme in SCHEMES.values()
        if scheme.name not in ("none", "offset-ssmax")
    }
    others = {"KERPLE, logarithmic": KerpleLog(), "KERPLE, power": KerplePower()}
    recipes |= {name: plain.change(positions=positions) for name, positions in others.items()}
    return recipes | {"entmax-1.5": plain.change(normaliser=Entmax15())}


def _sized(recipe: Recipe, tokens: int) -> Recipe:
    """With so many examples in a batch that it has about so many tokens."""
    return recipe.change(batch_size=max(1, round(tokens / _tokens_each(recipe))))


def _tokens_each(recipe: Recipe) -> float:
    """Tokens that the model reads of an example, in the mean."""
    parts = Dataset(recipe.task, seed=1, size=SAMPLE).examples(range(SAMPLE))
    return sum(int((part.sizes - 1).sum()) for part in parts) / SAMPLE


def _update(recipe: Recipe) -> Work:
    decoder = Decoder(recipe.model, recipe.task.vocab.size, recipe.tasks)
    decoder.initialise(0)
    optimiser = recipe.optimiser.at_work(decoder, recipe.learning_rate)

    def update(number: int) -> None:
        batch = batch_for(recipe, number)
        logits = decoder(batch, recipe.task.kind)
        functional.cross_entropy(logits, batch.targets).backward()
        optimiser.step(0.01)

    return update


def _is_fast(recipe: Recipe) -> bool:
    """Whether attention takes a fast way: see taskhint/model/attention/paths.py."""
    model = recipe.model
    declared = model.positions.weights(model) | model.positions.block_weights(model)
    weights = {name: torch.empty(weight.shape) for name, weight in declared.items()}
    biased = model.positions.bind(model, weights).overrides("bias")
    return not biased and isinstance(model.normaliser, Softmax)
