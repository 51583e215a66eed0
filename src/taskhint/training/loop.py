"""The only training loop."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from taskhint.data.batch import Batch, make_batch
from taskhint.data.dataset import Dataset
from taskhint.recipes import find_recipe
from taskhint.recipes.optimisers import Divisible
from taskhint.recipes.recipe import Recipe
from taskhint.runs import environment
from taskhint.runs.checkpoint import OPTIMISER, WEIGHTS, Checkpoint, described
from taskhint.runs.failure import save_failure
from taskhint.runs.metrics import Metrics, MetricsWritten
from taskhint.runs.origin import origin_checkpoint
from taskhint.runs.run import (
    Run,
    Untouched,
    check_free,
    create,
    new_decoder,
    save_checkpoint,
)
from taskhint.runs.tracker import Tracker, find_tracker
from taskhint.runs.tracking import tracking
from taskhint.system.devices import Compute, compute, processes, speaks, tf32, without_onednn
from taskhint.system.errors import DivergedError, Interrupted, LostTeamError, UserError
from taskhint.system.files import as_path
from taskhint.system.lock import only_process
from taskhint.system.memory import keep_freed_memory, memory_errors
from taskhint.system.progress import Progress
from taskhint.system.signals import Stop, name
from taskhint.tasks.check import check_own_tasks
from taskhint.tasks.random_bits import POSITION_STREAM, Ints, RandomBits
from taskhint.training.distributed import Team, joined, told_once
from taskhint.training.limits import check_training

Report = Callable[[int, float], None]
"""Called after each update with the number of updates made and the loss."""


@memory_errors()
def train(
    recipe: Recipe | str,
    out: str | os.PathLike[str],
    progress: bool = False,
    report: Report | None = None,
    device: str = "auto",
    precision: str = "float32",
    track: Tracker | str | None = None,
    **overrides: Any,
) -> Run:
    """Train a recipe (or the pocket recipe of that name) into a directory; go on where the
    directory left off.

    Fields of the recipe can be given as keywords: `train("sort/standard", out="a", seed=3,
    batch_size=512)`. `device`, `precision` and `track` (a tracker) are no part of the recipe: a
    run can go on with others. Processes that torchrun started train together. SIGINT and SIGTERM
    finish the step, save, and raise Interrupted, which is a KeyboardInterrupt.
    """
    wanted = find_recipe(recipe) if isinstance(recipe, str) else recipe
    if not isinstance(wanted, Recipe):
        raise UserError(f"train takes a recipe or the name of one, got {recipe!r:.60}")
    path = as_path(out, "the run directory")
    wanted = wanted.change(**overrides)
    if wanted.model.dtype != "float32":
        raise UserError(
            f"model.dtype={wanted.model.dtype} is for constructed models; training is in float32"
        )
    at = compute(device, precision)
    tracker = None if track is None else find_tracker(track)
    if speaks():
        check_free(path, wanted)  # before the lock leaves a file in a directory that is not ours
    check_own_tasks(wanted.tasks)
    check_training(wanted, at.torch_device)
    before = Untouched(path)
    alone: AbstractContextManager[Team | None] = nullcontext()
    with (
        joined(wanted, at.torch_device) if processes() > 1 else alone as team,
        Stop(quiet=team is not None) as stop,
        ExitStack() as stack,
    ):
        if team is not None:
            stack.enter_context(told_once(team))
        run = Run(path, wanted)
        if team is None or team.leads:
            stack.enter_context(only_process(path))
            stack.enter_context(before.unless_saved())
            run = create(path, wanted)
        trainer = Trainer(run, before, at, team, tracker)
        with Progress(wanted.steps, wanted.name, shown=progress) as bar:
            bar.advance_to(trainer.start)
            trainer.train(report or bar.advance_to, stop)
    return Run(path, wanted)


class Trainer:
    """One run at work: alone, or as one of a team of which the first alone touches files."""

    def __init__(
        self,
        run: Run,
        before: Untouched | None = None,
        at: Compute | None = None,
        team: Team | None = None,
        tracker: Tracker | None = None,
    ) -> None:
        recipe = run.recipe
        self.run, self.recipe, self._before = run, recipe, before
        self.decoder = new_decoder(recipe).on(at or compute())
        self.device = self.decoder.device
        self.optimiser = recipe.optimiser.at_work(self.decoder, recipe.learning_rate)
        self.team, self._tracker = team, tracker
        self._leads = team is None or team.leads
        self.start, self._metrics_start = self._resume() if self._leads else (0, MetricsWritten())
        if team is not None:
            self._join(team)
        self._done = self.start  # updates made
        self._changing = threading.Lock()  # held while weights change or are saved

    def _join(self, team: Team) -> None:
        """Go on from what the first process read, and share the work of the optimiser."""
        weights = dict(self.decoder.named_parameters())
        self.start = team.share(self.start, weights | self.optimiser.state())
        if isinstance(self.optimiser, Divisible):
            self.optimiser.divide(team.divided)

    def train(self, report: Report, stop: Stop | None = None) -> None:
        if self._leads:
            self.run.tidy(self.start)
        if self.start >= self.recipe.steps:
            return
        if self._leads:
            path = self.run.path / "environment.json"
            environment.record(path, self.start, self.recipe, self._compute())
        keep_freed_memory()
        self.decoder.train()
        with (
            without_onednn(),
            tf32(self.decoder.precision),
            self._metrics() as metrics,
            self._tracking(metrics),
        ):
            try:
                self._train(report, metrics, stop or Stop())
                if self.team is not None:
                    self.team.wait()  # nobody looks for the last checkpoint before it is there
            except LostTeamError as lost:
                raise self._left_alone(lost, metrics) from None

    def _tracking(self, metrics: Metrics | None) -> AbstractContextManager[None]:
        if self._tracker is None:
            return nullcontext()
        return tracking(self._tracker, self.run.path, self.recipe, metrics, self.start)

    def _metrics(self) -> AbstractContextManager[Metrics | None]:
        if not self._leads:
            return nullcontext()
        return Metrics(self.run.path / "metrics.jsonl", self._metrics_start, self.start)

    def _train(self, report: Report, metrics: Metrics | None, stop: Stop) -> None:
        recipe, team = self.recipe, self.team
        stop.overdue = lambda number: self._stop_in_step(number, metrics)
        for step, batch in _prefetched(self._batch, range(self.start, recipe.steps)):
            loss = self._update(step, batch, metrics, stop)
            done = self._done
            stopped = stop.number if team is None else team.stopped
            if done % recipe.checkpoint_every == 0 or done == recipe.steps or stopped is not None:
                with self._changing:
                    self._save(done, metrics)
            report(done, loss)
            if stopped is not None:
                raise Interrupted(self._where(done, stopped), stopped)

    def _batch(self, step: int) -> Batch:
        batch = batch_for(self.recipe, step)
        return batch if self.team is None else self.team.part(batch)

    def _left_alone(self, lost: LostTeamError, metrics: Metrics | None) -> LostTeamError:
        """What to say when another process is gone. The updates that were made are saved."""
        saved = self.run.checkpoints()
        if self._done > self.start and not (saved and saved[-1].step == self._done):
            with self._changing:
                self._save(self._done, metrics)
            saved = self.run.checkpoints()
        at = f"saved at step {saved[-1].step}" if saved else "nothing was saved yet"
        return LostTeamError(f"{lost}; {at} in {self.run.path}; the same command goes on")

    def _stop_in_step(self, number: int, metrics: Metrics | None) -> None:
        """End the process although an update is on its way: from another thread, and for good."""
        with self._changing:  # no update changes weights any more
            if not self._leads:
                os._exit(128 + number)
            if self._done > self.start:
                self._save(self._done, metrics)
            elif not self.run.checkpoints() and self._before is not None:
                self._before.restore()
            text = f"stopped by {name(number)} in the middle of update {self._done + 1}"
            saved = f"; saved at step {self._done}" if self._done else "; nothing was made yet"
            os.write(2, f"taskhint: {text}{saved}\n".encode())
            os._exit(128 + number)

    def _where(self, done: int, number: int) -> str:
        if done == self.recipe.steps:
            return f"{name(number)} in the last step: {self.run.path} is complete and saved"
        at = f"step {done} of {self.recipe.steps}"
        return (
            f"stopped by {name(number)} and saved at {at} in {self.run.path}; the same "
            "command goes on from there"
        )

    def _update(self, step: int, batch: Batch, metrics: Metrics | None, stop: Stop) -> float:
        recipe = self.recipe
        place, update = recipe.update(step)
        task = recipe.tasks[place]
        batch = batch.to(self.device)
        loss = functional.cross_entropy(
            self.decoder(batch, task.kind),
            batch.targets,
            reduction="mean" if self.team is None else "sum",
        )
        (loss * recipe.loss_weight(place, update)).backward()
        if self.team is not None:
            loss = self.team.exchange(self.decoder, loss, len(batch.targets), stop.number)
        norm = gradient_norm(self.decoder)
        if not (torch.isfinite(loss) and torch.isfinite(norm)):
            self._fail(step, task.kind, batch, loss, norm)
        factor = schedule(step, recipe.steps, recipe.warmup_steps)
        rate = factor * recipe.learning_rate
        with self._changing:
            if metrics and step % recipe.log_every < recipe.curriculum.period(recipe):
                metrics.add(step, task.kind, loss.item(), norm.item(), rate)
            self.optimiser.step(factor)
            self._done = step + 1
        return loss.item()

    def _compute(self) -> tuple[str, str, int]:
        """Kind of device, precision and number of processes."""
        processes = 1 if self.team is None else self.team.size
        return self.device.type, self.decoder.precision, processes

    def _fail(self, step: int, task: str, batch: Batch, loss: Tensor, norm: Tensor) -> None:
        place = self.run.path / "failures" / f"step-{step:08d}"
        if self._leads:
            whole = batch if self.team is None else batch_for(self.recipe, step)
            save_failure(place, task, whole, loss, norm, self.decoder)
        raise DivergedError(
            f"step {step}: loss {loss.item()}, gradient norm {norm.item()}; stopped before the "
            "update; "
            f"the batch is in {place}"
        )

    def _save(self, step: int, metrics: Metrics | None) -> None:
        if metrics is None:
            return  # that of the first process writes
        weights = {name: value.detach() for name, value in self.decoder.named_parameters()}
        # An update can overflow although its gradient was finite; such weights must not replace
        # good ones.
        bad = [name for name, value in weights.items() if not value.isfinite().all()]
        if bad:
            raise DivergedError(
                f"step {step}: the weights of {bad[0]} are not finite; no checkpoint is written"
            )
        save_checkpoint(self.run, step, weights, self.optimiser.state(), metrics.sync())

    def _resume(self) -> tuple[int, MetricsWritten]:
        """Where the run begins: at its newest checkpoint, at that of its origin, or at 0."""
        if self.run.checkpoints():
            checkpoint = self.run.checkpoint
            if checkpoint.step == 0:
                raise UserError(
                    f"{self.run.path} was constructed, not trained; choose another --out"
                )
            self._load(checkpoint)
            return checkpoint.step, checkpoint.state().metrics
        if self.recipe.origin is None:
            return 0, MetricsWritten()
        self._load(origin_checkpoint(self.recipe.origin))
        return self.recipe.origin.step, MetricsWritten()

    def _load(self, checkpoint: Checkpoint) -> None:
        self.decoder.load_state_dict(
            checkpoint.tensors(WEIGHTS, described(dict(self.decoder.named_parameters())))
        )
        if checkpoint.step < self.recipe.steps:  # a finished run may have been kept without it
            self.optimiser.load(checkpoint.tensors(OPTIMISER, described(self.optimiser.state())))


def gradient_norm(decoder: torch.nn.Module) -> Tensor:
    return torch.nn.utils.get_total_norm(
        [p.grad for p in decoder.parameters() if p.grad is not None]
    )


def batch_for(recipe: Recipe, step: int) -> Batch:
    """The batch of an update: a function of the recipe and the step alone."""
    place, update = recipe.update(step)
    task = recipe.tasks[place]
    if update.lengths is not None:
        task = replace(task, lengths=update.lengths)
    dataset = Dataset(task, recipe.seed, recipe.dataset_size // len(recipe.tasks), place)
    turn = step if update.batch is None else update.batch
    indices = dataset.places(turn * recipe.batch_size, recipe.batch_size)
    batch = make_batch(task, dataset.examples(indices))

    def drawn_ids(rows: Ints, tokens: Ints) -> Ints | None:
        bits = RandomBits(recipe.seed, POSITION_STREAM, step * recipe.batch_size + rows)
        return recipe.model.positions.training_ids(bits, tokens, task)

    return batch.with_drawn_ids(drawn_ids)


def schedule(step: int, steps: int, warmup: int) -> float:
    """The factor on the learning rate in update `step` (from 0): up in a line to 1, then down half
    a cosine to 0.
    """
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1.0 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


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
