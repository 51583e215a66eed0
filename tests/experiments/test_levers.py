"""The script that tries variations of sort/best: what it averages, and the loss it notes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from taskhint.data.dataset import fresh_examples
from taskhint.recipes import find_recipe
from taskhint.runs.checkpoint import WEIGHTS
from taskhint.runs.run import new_decoder, weight_shapes
from taskhint.tasks import Sort
from taskhint.training.loop import train
from tools import try_levers

TINY = (
    "model.width=16",
    "model.mlp_width=16",
    "batch_size=8",
    "warmup_steps=1",
    "steps=5",
    "checkpoint_every=1",
)


def test_every_change_is_a_recipe_of_its_own() -> None:
    recipes = [try_levers.recipe(changes) for changes in try_levers.CHANGES.values()]
    assert len({recipe.fingerprint() for recipe in recipes}) == len(recipes)
    assert len({recipe.steps * recipe.batch_size for recipe in recipes}) == 1, (
        "all see as many examples"
    )


def test_averaged_weights_are_the_mean_of_the_last_checkpoints(tmp_path: Path) -> None:
    recipe = find_recipe("sort/best").with_settings((*TINY, "keep_checkpoints=5"))
    run = train(recipe, tmp_path / "run")
    model = dict(try_levers.averaged(run, 2).named_parameters())
    before_last, last = (
        one.tensors(WEIGHTS, weight_shapes(recipe)) for one in run.checkpoints()[-2:]
    )
    for name, value in model.items():
        torch.testing.assert_close(value, (before_last[name] + last[name]) / 2)
    name = "embedding.weight"
    assert not torch.equal(model[name], last[name])


def test_the_loss_is_that_of_whole_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(try_levers, "LOSS_SEQUENCES", 3)
    recipe = find_recipe("sort/best").with_settings(TINY)
    model = new_decoder(recipe)
    task = recipe.task
    assert isinstance(task, Sort)
    n = task.lengths.max_length
    total = 0.0
    for tokens in torch.from_numpy(fresh_examples(task, try_levers.SEED, n, 0, 3).tokens):
        logits = model.trace(tokens[None, :-1], task.kind, n)["logits"][0]
        chances = logits.softmax(dim=1)[torch.arange(n, 2 * n), tokens[n + 1 :]]
        total -= chances.log().sum().item()
    assert try_levers.loss(model, task) == pytest.approx(total / 3, rel=1e-4)
