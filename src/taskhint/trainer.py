"""The only training loop."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from taskhint.data.batch import Batch, make_batch
from taskhint.data.dataset import Dataset
from taskhint.errors import UserError
from taskhint.optim import Optimiser, schedule
from taskhint.progress import Progress
from taskhint.recipe import Recipe
from taskhint.recipes import find_recipe
from taskhint.run import Run, create, load_weights, new_decoder, read_tensors, save_checkpoint

Report = Callable[[int, float], None]
"""Called after each update with the number of updates made and the loss."""


def train(
    recipe: Recipe | str,
    out: str | os.PathLike[str],
    progress: bool = False,
    report: Report | None = None,
    **overrides: Any,
) -> Run:
    """Train a recipe (or the pocket recipe of that name) into a directory; go on where the directory left off.

    Fields of the recipe can be given as keywords: `train("sort/standard", out="a", seed=3, batch_size=512)`.
    """
    wanted = find_recipe(recipe) if isinstance(recipe, str) else recipe
    wanted = wanted.with_overrides(**overrides)
    run = create(Path(out), wanted)
    trainer = Trainer(run)
    with Progress(wanted.steps, wanted.name, shown=progress) as bar:
        bar.advance_to(trainer.start)
        trainer.train(report or bar.advance_to)
    return Run(run.path, wanted)


class Trainer:
    def __init__(self, run: Run) -> None:
        recipe = run.recipe
        self.run, self.recipe = run, recipe
        self.decoder = new_decoder(recipe)
        self.optimiser = Optimiser(self.decoder, recipe.optimiser, recipe.learning_rate)
        self.start = self._resume() if run.checkpoints() else 0

    def train(self, report: Report) -> None:
        recipe = self.recipe
        metrics = _Metrics(self.run.path / "metrics.jsonl", self.start)
        self.decoder.train()
        for step, batch in _prefetched(lambda step: batch_for(recipe, step), range(self.start, recipe.steps)):
            loss = self._update(step, batch, metrics)
            if (step + 1) % recipe.checkpoint_every == 0 or step + 1 == recipe.steps:
                self._save(step + 1, metrics)
            report(step + 1, loss)

    def _update(self, step: int, batch: Batch, metrics: _Metrics) -> float:
        recipe = self.recipe
        task = recipe.tasks[recipe.turn(step)[0]]
        loss = functional.cross_entropy(self.decoder(batch, task.kind), batch.targets)
        loss.backward()
        norm = gradient_norm(self.decoder)
        if not (torch.isfinite(loss) and torch.isfinite(norm)):
            raise UserError(f"step {step}: loss {loss.item()}, gradient norm {norm.item()}; stopped before the update")
        factor = schedule(step, recipe.steps, recipe.warmup_steps)
        if step % recipe.log_every < len(recipe.cycle):
            metrics.add(step, task.kind, loss.item(), norm.item(), factor * recipe.learning_rate)
        self.optimiser.step(factor)
        return loss.item()

    def _save(self, step: int, metrics: _Metrics) -> None:
        metrics.flush()
        weights = dict(self.decoder.named_parameters())
        save_checkpoint(self.run, step, {k: v.detach() for k, v in weights.items()}, self.optimiser.state())

    def _resume(self) -> int:
        path = self.run.checkpoint.path
        load_weights(self.decoder, path / "weights.safetensors")
        expected = {name: (value.dtype, tuple(value.shape)) for name, value in self.optimiser.state().items()}
        self.optimiser.load(read_tensors(path / "optimiser.safetensors", expected))
        return self.run.checkpoint.step


def gradient_norm(decoder: torch.nn.Module) -> Tensor:
    return torch.nn.utils.get_total_norm([p.grad for p in decoder.parameters() if p.grad is not None])


def batch_for(recipe: Recipe, step: int) -> Batch:
    """The batch of an update: a function of the recipe and the step alone."""
    place, turn = recipe.turn(step)
    task = recipe.tasks[place]
    dataset = Dataset(task, recipe.seed, recipe.dataset_size // len(recipe.tasks), place)
    indices = dataset.places(turn * recipe.batch_size, recipe.batch_size)
    return make_batch(task, dataset.examples(indices))


def _prefetched(make: Callable[[int], Batch], steps: range) -> Iterator[tuple[int, Batch]]:
    """Each step with its batch; the next batch is made on another thread meanwhile."""
    if not steps:
        return
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(make, steps[0])
        for step in steps:
            batch = coming.result()
            if step + 1 < steps.stop:
                coming = pool.submit(make, step + 1)
            yield step, batch


class _Metrics:
    """metrics.jsonl. Lines wait in memory until the next checkpoint; lines after the resumed step are dropped."""

    def __init__(self, path: Path, start: int) -> None:
        self._path = path
        self._lines: list[str] = []
        if path.exists():
            path.write_text("".join(f"{line}\n" for line in _lines_before(path, start)))

    def add(self, step: int, task: str, loss: float, norm: float, rate: float) -> None:
        values = {"step": step, "task": task, "loss": loss, "gradient_norm": norm, "learning_rate": rate}
        self._lines.append(json.dumps(values))

    def flush(self) -> None:
        with self._path.open("a") as file:
            file.write("".join(f"{line}\n" for line in self._lines))
            file.flush()
            os.fsync(file.fileno())
        self._lines.clear()


def _lines_before(path: Path, start: int) -> Iterator[str]:
    for line in path.read_text(errors="replace").splitlines():
        try:
            if json.loads(line)["step"] < start:
                yield line
        except (ValueError, KeyError, TypeError):
            continue  # a line that was cut off
