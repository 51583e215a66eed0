"""A run is a directory that can reproduce itself.

recipe.json             what was asked for
environment.json        where it ran
metrics.jsonl           one line per logged update
checkpoints/step-XXXXXXXX/   see checkpoint.py
evaluations/            results, one file per checkpoint and test distribution
failures/               the batch of a step whose loss or gradient was not finite
"""

from __future__ import annotations

import copy
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, overload

import torch
from torch import Tensor

from taskhint.model.decoder import Decoder
from taskhint.model.decoding import greedy
from taskhint.recipes.recipe import Recipe
from taskhint.runs import environment
from taskhint.runs.checkpoint import (
    WEIGHTS,
    Checkpoint,
    State,
    Wanted,
    checkpoints_in,
    described,
    drop_old_checkpoints,
    set_aside,
    tensor_bytes,
    write_checkpoint,
)
from taskhint.runs.checkpoint import read_tensors as read_tensors
from taskhint.runs.curve import LengthCurve, load_curves
from taskhint.runs.metrics import METRICS, Metric, MetricsWritten, read_metrics
from taskhint.system.devices import Compute, compute
from taskhint.system.errors import DivergedError, UserError, warn
from taskhint.system.files import (
    as_path,
    json_bytes,
    read_json,
    remove_leftovers,
    storing,
    write_atomically,
)
from taskhint.system.lock import LOCK_FILE
from taskhint.system.memory import check_fits
from taskhint.system.settings import UnknownKindError
from taskhint.tasks.task import Task

ENVIRONMENT = "environment.json"


class Run:
    """A run directory that exists. Loading reads the newest whole checkpoint."""

    def __init__(self, path: Path, recipe: Recipe, at: Compute | None = None) -> None:
        """`at`: device and precision of the model; the CPU and float32 unless chosen."""
        self.path = path
        self.recipe = recipe
        self.at = at

    def to(self, device: str = "auto", precision: str = "float32") -> Run:
        """The same run with its model on a device: auto, cpu, cuda, cuda:N or mps."""
        at = compute(device, precision)
        if at == (self.at or Compute()):
            return self
        moved = Run(self.path, self.recipe, at)
        if "model" in self.__dict__:  # as it is now, not as it was saved
            moved.checkpoint = self.checkpoint
            moved.model = copy.deepcopy(self.model).on(at)
        return moved

    def chosen(self, device: str | None = None, precision: str | None = None) -> Run:
        """On the device that is named; else on its own; else on the best one there is."""
        if device is None and precision is None and self.at is not None:
            return self
        own = self.at or Compute("auto")
        return self.to(device or own.device, precision or own.precision)

    @property
    def precision(self) -> str:
        """With which its model computes."""
        return (self.at or Compute()).precision

    @property
    def task(self) -> Task:
        return self.recipe.task

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The newest whole checkpoint."""
        problems: list[str] = []
        for checkpoint in reversed(self.checkpoints()):
            problem = checkpoint.damage(self.recipe)
            if problem is None:
                for damaged in problems:
                    warn(f"{damaged}; falling back to {checkpoint.path.name}")
                return checkpoint
            problems.append(f"{checkpoint.path} is damaged and not used: {problem}")
        if problems:
            raise UserError(f"{self.path} has no whole checkpoint left; {problems[0]}")
        raise UserError(f"{self.path} has no checkpoint yet; train it first")

    @cached_property
    def model(self) -> Decoder:
        """The trained model, in evaluation mode."""
        tensors = self.checkpoint.tensors(WEIGHTS, weight_shapes(self.recipe))
        decoder = _decoder(self.recipe)
        decoder.load_state_dict(tensors)
        return decoder.on(self.at or Compute()).eval()

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint there is, whole or not, the oldest first."""
        return checkpoints_in(self.path / "checkpoints")

    def tidy(self, step: int) -> None:
        """Clear what interruptions left, before the run goes on from a step. Only for who alone
        may write here.
        """
        with storing(self.path):
            remove_leftovers(self.path)
            remove_leftovers(self.path / "checkpoints")
        for checkpoint in self.checkpoints():
            if checkpoint.step > step:
                set_aside(checkpoint)
        drop_old_checkpoints(self.path / "checkpoints", self.recipe.keep_checkpoints)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What training logged, one entry per logged update."""
        return read_metrics(self.path / METRICS)

    @property
    def curves(self) -> dict[str, LengthCurve]:
        """What was evaluated of the newest evaluated checkpoint, by test distribution: in the
        precision of this run's model.
        """
        curves = load_curves(self.path, precision=self.precision)
        return {curve.distribution: curve for curve in curves}

    @overload
    def solve(self, symbols: str | Sequence[str]) -> list[str]: ...

    @overload
    def solve(self, symbols: Sequence[int]) -> list[int | str]: ...

    def solve(self, symbols: str | Sequence[str] | Sequence[int]) -> list[Any]:
        """The model's answer to an input that is written as its symbols, decoded greedily.

        Texts are answered with texts, numbers with numbers: `solve("5 17")`, `solve(["5", "17"])`,
        `solve([5, 17])`. What is no number, such as NONE, is a text in either case.
        """
        given: Sequence[str | int] = symbols.split() if isinstance(symbols, str) else symbols
        if isinstance(given, Iterator):
            given = list(given)  # it is read twice
        task, vocab = self.task, self.task.vocab
        prompt = task.prompt(vocab.parse(given))
        count = len(task.solve(prompt))
        device = self.model.device
        inputs = torch.tensor([prompt.index(vocab.delimiter)], device=device)
        tokens = torch.tensor([prompt], device=device)
        answer = greedy(self.model, task.kind, tokens, count, inputs, len(prompt) + count)
        ids = answer[0].tolist()
        if all(isinstance(symbol, str) for symbol in given):
            return vocab.words(ids)
        return vocab.values(ids)

    def __repr__(self) -> str:
        newest = self.checkpoints()
        done = f"{newest[-1].step} of {self.recipe.steps} updates" if newest else "not trained"
        return f"Run({str(self.path)!r}: {self.recipe.name}, seed {self.recipe.seed}, {done})"


def load(
    path: str | os.PathLike[str], device: str | None = None, precision: str | None = None
) -> Run:
    """The run in a directory. Its model is on the CPU unless a device is named."""
    directory = as_path(path, "a run")
    if not directory.is_dir():
        raise UserError(f"{directory} is not a directory; give a run that `taskhint train` wrote")
    if not (directory / "recipe.json").is_file():
        raise UserError(f"{directory} is not a run: it has no recipe.json{_runs_below(directory)}")
    run = Run(directory, read_recipe(directory))
    return run if device is None and precision is None else run.chosen(device, precision)


def _runs_below(directory: Path) -> str:
    """The first few, not deeper than a sweep has them."""
    found = (path for depth in (1, 2, 3) for path in directory.glob("*/" * depth + "recipe.json"))
    names = sorted(str(path.parent.relative_to(directory)) for path in islice(found, 100))
    more = ", …" if len(names) > 3 else ""
    return f"; runs below it: {', '.join(names[:3])}{more}" if names else ""


def read_recipe(directory: Path) -> Recipe:
    """The recipe of a run; an unknown kind is told with the names of the files that had it."""
    try:
        return Recipe.from_json(read_json(directory / "recipe.json"), f"{directory}/recipe.json")
    except UnknownKindError as error:
        names = environment.own_names(directory / ENVIRONMENT)
        made = f"; the run was made with {', '.join(names)}" if names else ""
        raise UnknownKindError(f"{error.advice}{made}", error.known) from None


def check_free(path: Path, recipe: Recipe) -> None:
    """Whether a directory can take the recipe's run: it is new or empty, or holds that run
    already.
    """
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is a file; --out takes a directory")
    if (path / "recipe.json").exists():
        there = load(path).recipe
        different = recipe.differences(there)
        if different:
            raise UserError(
                f"{path} holds another run ({there.name}); it differs in "
                f"{', '.join(different[:4])}; "
                "choose another --out"
            )
    elif path.is_dir() and any(not entry.name.startswith(".") for entry in path.iterdir()):
        raise UserError(f"{path} is not empty and holds no run; choose another --out")


def create(path: Path, recipe: Recipe) -> Run:
    """A new run directory, or the one there if it holds a run of the same recipe."""
    check_free(path, recipe)
    if not (path / "recipe.json").exists() or load(path).recipe != recipe:
        write_atomically(path / "recipe.json", json_bytes(recipe.to_json()))
    if not (path / ENVIRONMENT).exists():
        environment.record(path / ENVIRONMENT, 0, recipe)
    return Run(path, recipe)


class Untouched:
    """A directory as it was, to go back to when a run ends without having saved anything."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
        above = [path, *path.parents]
        self._made = [place for place in above if not place.exists()]  # the deepest first

    @contextmanager
    def unless_saved(self) -> Iterator[None]:
        """Only for who alone may write there. What diverged is kept, to be looked at."""
        try:
            yield
        except DivergedError:
            raise
        except BaseException:
            if not checkpoints_in(self.path / "checkpoints"):
                self.restore()
            raise

    def restore(self) -> None:
        """Remove what a run writes before its first checkpoint, and directories made for it."""
        with suppress(OSError):
            for name in ("recipe.json", ENVIRONMENT, "metrics.jsonl", LOCK_FILE):
                if name not in self._kept:
                    (self.path / name).unlink(missing_ok=True)
            remove_leftovers(self.path)
            for name in {"checkpoints", "tensorboard"} - self._kept:
                shutil.rmtree(self.path / name, ignore_errors=True)
            for place in self._made:
                place.rmdir()  # which fails where anything else has come


def _decoder(recipe: Recipe) -> Decoder:
    return Decoder(recipe.model, recipe.task.vocab.size, recipe.tasks)


def weight_shapes(recipe: Recipe) -> Wanted:
    """Type and shape of every weight, without taking memory for them."""
    with torch.device("meta"):
        return described(dict(_decoder(recipe).named_parameters()))


def new_decoder(recipe: Recipe) -> Decoder:
    """The recipe's model with freshly drawn weights."""
    check_memory(recipe)
    decoder = _decoder(recipe)
    decoder.initialise(recipe.seed)
    return decoder


def check_memory(recipe: Recipe, copies: int = 1) -> None:
    """Refuse a model whose weights, held this many times over, are more than the machine has room
    for.
    """
    weights = weight_shapes(recipe).values()
    needed = copies * sum(dtype.itemsize * math.prod(shape) for dtype, shape in weights)
    check_fits(needed, "a model with so many weights")


def save_checkpoint(
    run: Run,
    step: int,
    weights: Mapping[str, Tensor],
    optimiser: Mapping[str, Tensor],
    metrics: MetricsWritten | None = None,
) -> None:
    """Write a checkpoint; then drop the oldest beyond the number kept. A run that never trains has
    no optimiser.
    """
    state = State(step, run.recipe.fingerprint(), metrics or MetricsWritten())
    place = run.path / "checkpoints"
    write_checkpoint(place, state, tensor_bytes(weights), tensor_bytes(optimiser))
    drop_old_checkpoints(place, run.recipe.keep_checkpoints)


def export(run: Run, out: Path) -> Run:
    """The run's newest weights without the optimiser's state: as small as can be, to keep or to
    give away.
    """
    check_free(out, run.recipe)
    copy = create(out, run.recipe)
    if (run.path / ENVIRONMENT).exists():
        write_atomically(
            out / ENVIRONMENT, (run.path / ENVIRONMENT).read_bytes()
        )  # where it was trained, not copied
    save_checkpoint(copy, run.checkpoint.step, dict(run.model.named_parameters()), {})
    return copy
