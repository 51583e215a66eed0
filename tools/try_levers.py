"""Writes results/search/levers.json: sort/best with one setting changed at a time.

    .venv/bin/python tools/try_levers.py runs/levers

Trains what is missing in that directory, two runs at a time, and goes on where it stopped; about
20 minutes in all on two cores. tools/fill_pages.py makes the table of docs/best.md from the
file.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from taskhint.data.batch import make_batch
from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import score
from taskhint.model.decoder import Decoder
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe
from taskhint.runs.checkpoint import WEIGHTS
from taskhint.runs.run import Run, load, weight_shapes
from taskhint.sweeps.jobs import Job
from taskhint.sweeps.local import LocalPool
from taskhint.system.files import json_bytes, write_atomically
from taskhint.tasks import Mixture, Sort

RESULT = Path(__file__).parent.parent / "results" / "search" / "levers.json"
ABOUT = (
    "sort/best with half its updates and one setting changed at a time; every try is one run, "
    "of one seed. The last "
    "checkpoint is measured, or where it says so the mean of the last ones. Losses are sums "
    "over a sequence's tokens, "
    "mean over so many sequences of the longest training length."
)
SEED = 1
UPDATES = 3000
SEQUENCES = 1000
LENGTHS = {"uniform": (20, 50, 100, 200, 300), "rep:3": (100,), "rep:5": (100,)}
LOSS_SEQUENCES = 2000
SEEN = {
    "uniform": Mixture(repetition=0.0),
    "repeats": Mixture(repetition=1.0, pool="any"),
    "dense": Mixture(repetition=1.0, near=1.0),
}
CHANGES: dict[str, tuple[str, ...]] = {
    "nothing changed": (),
    "depth 1": ("model.depth=1",),
    "depth 3": ("model.depth=3",),
    "width 64": ("model.width=64", "model.mlp_width=128"),
    "attention only": ("model.mlp_width=0",),
    "batches of 512, half the updates": (
        "batch_size=512",
        f"warmup_steps={UPDATES // 40}",
        f"steps={UPDATES // 2}",
    ),
    "learning rate 0.01": ("learning_rate=0.01",),
}
AVERAGED = {
    "mean of the weights of the last 300 updates": 300,
    "mean of the weights of the last 900 updates": 900,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path)
    options = parser.parse_args()
    jobs = [Job(label.replace(" ", "-"), recipe(changes)) for label, changes in CHANGES.items()]
    for outcome in LocalPool().run(jobs, options.runs, "levers"):
        if outcome.error is not None:
            raise outcome.error
        print(outcome.job.out, flush=True)
    runs = {label: load(options.runs / job.out) for label, job in zip(CHANGES, jobs, strict=True)}
    tries = [
        measured(label, list(CHANGES[label]), run.recipe, run.model) for label, run in runs.items()
    ]
    unchanged = runs["nothing changed"]
    for label, updates in AVERAGED.items():
        tries.append(measured(label, [], unchanged.recipe, averaged(unchanged, updates)))
    about = {"about": ABOUT, "sequences": SEQUENCES, "loss_sequences": LOSS_SEQUENCES}
    write_atomically(RESULT, json_bytes({**about, "tries": tries}))


def recipe(changes: tuple[str, ...]) -> Recipe:
    base = find_recipe("sort/best").with_steps(UPDATES).change(seed=SEED)
    return base.with_settings((*changes, "checkpoint_every=100", "keep_checkpoints=10"))


def averaged(run: Run, updates: int) -> Decoder:
    """The model with the mean of the weights that the checkpoints of the last updates hold."""
    last = [one for one in run.checkpoints() if one.step > run.recipe.steps - updates]
    found = [one.tensors(WEIGHTS, weight_shapes(run.recipe)) for one in last]
    model = load(run.path).model
    model.load_state_dict({name: mean([weights[name] for weights in found]) for name in found[0]})
    return model


def mean(tensors: list[Tensor]) -> Tensor:
    return torch.stack(tensors).mean(dim=0)


def measured(label: str, changes: list[str], recipe: Recipe, model: Decoder) -> dict[str, Any]:
    assert isinstance(recipe.task, Sort)
    losses = {
        name: loss(model, replace(recipe.task, inputs=inputs)) for name, inputs in SEEN.items()
    }
    accuracy = {
        name: {
            str(n): score(
                model, recipe.task.for_test(name), recipe.seed, n, SEQUENCES, edit_distance=False
            ).accuracy
            for n in lengths
        }
        for name, lengths in LENGTHS.items()
    }
    return {
        "try": label,
        "changes": changes,
        "updates": recipe.steps,
        "seed": recipe.seed,
        "weights": sum(value.numel() for value in model.parameters()),
        "loss_at_longest_training_length": losses,
        "accuracy": accuracy,
    }


@torch.no_grad()
def loss(model: Decoder, task: Sort) -> float:
    """Of a whole sequence of the longest training length, in nats."""
    batch = make_batch(
        task, [fresh_examples(task, SEED, task.lengths.max_length, 0, LOSS_SEQUENCES)]
    )
    total = functional.cross_entropy(model(batch, task.kind), batch.targets, reduction="sum")
    return round(total.item() / LOSS_SEQUENCES, 6)


if __name__ == "__main__":
    main()
