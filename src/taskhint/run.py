"""A run is a directory that can reproduce itself.

recipe.json             what was asked for
environment.json        where it ran
metrics.jsonl           one line per logged update
checkpoints/step-XXXXXXXX/   weights.safetensors, optimiser.safetensors, state.json; manifest.json with their SHA-256
evaluations/            results, one file per checkpoint and test distribution
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

import taskhint
from taskhint.errors import UserError
from taskhint.files import json_bytes, read_json, sync_directory, write_atomically, write_synced
from taskhint.model.decode import greedy
from taskhint.model.decoder import Decoder
from taskhint.recipe import Recipe
from taskhint.tasks.task import Task

KEPT_CHECKPOINTS = 2
_PREFIX = "step-"


@dataclass(frozen=True)
class Checkpoint:
    path: Path

    @property
    def step(self) -> int:
        return int(self.path.name.removeprefix(_PREFIX))


class Run:
    """A run directory that exists. Loading reads the newest whole checkpoint."""

    def __init__(self, path: Path, recipe: Recipe) -> None:
        self.path = path
        self.recipe = recipe

    @property
    def task(self) -> Task:
        return self.recipe.task

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The newest whole checkpoint."""
        for checkpoint in reversed(self.checkpoints()):
            problem = damage(checkpoint)
            if problem is None:
                return checkpoint
            print(f"taskhint: warning: {checkpoint.path} is not used: {problem}", file=sys.stderr)
        raise UserError(f"{self.path} has no whole checkpoint; train it first")

    @cached_property
    def model(self) -> Decoder:
        """The trained model, in evaluation mode."""
        decoder = new_decoder(self.recipe)
        load_weights(decoder, self.checkpoint.path / "weights.safetensors")
        return decoder.eval()

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint there is, the oldest first."""
        found = (self.path / "checkpoints").glob(_PREFIX + "[0-9]*")
        return sorted((Checkpoint(path) for path in found if path.name[5:].isdecimal()), key=lambda c: c.step)

    def solve(self, symbols: Sequence[int | str]) -> list[str]:
        """The model's answer to an input that is written as its symbols, decoded greedily."""
        prompt = self.task.prompt(self.task.vocab.parse(symbols))
        count = len(self.task.solve(prompt))
        inputs = torch.tensor([prompt.index(self.task.vocab.delimiter)])
        tokens = torch.tensor([prompt])
        answer = greedy(self.model, self.task.kind, tokens, count, inputs, sequence=len(prompt) + count)
        return self.task.vocab.words(answer[0].tolist())


def load(path: str | os.PathLike[str]) -> Run:
    """The run in a directory."""
    directory = Path(path)
    if not directory.is_dir():
        raise UserError(f"{directory} is not a directory; give a run that `taskhint train` wrote")
    if not (directory / "recipe.json").is_file():
        raise UserError(f"{directory} is not a run: it has no recipe.json")
    return Run(directory, Recipe.from_json(read_json(directory / "recipe.json"), f"{directory}/recipe.json"))


def create(path: Path, recipe: Recipe) -> Run:
    """A new run directory, or the one there if it holds a run of the same recipe (more steps are allowed)."""
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is a file; --out takes a directory")
    if (path / "recipe.json").exists():
        there = load(path).recipe
        different = [key for key in recipe.differences(there) if key != "checkpoint_every"]
        if different:
            raise UserError(
                f"{path} holds another run ({there.name}); it differs in {', '.join(different[:4])}; "
                "choose another --out"
            )
    elif path.is_dir() and any(path.iterdir()):
        raise UserError(f"{path} is not empty and holds no run; choose another --out")
    try:
        write_atomically(path / "recipe.json", json_bytes(recipe.to_json()))
        write_atomically(path / "environment.json", json_bytes(environment()))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    return Run(path, recipe)


def new_decoder(recipe: Recipe) -> Decoder:
    """The recipe's model with freshly drawn weights."""
    decoder = Decoder(recipe.model, recipe.task.vocab.size, [task.kind for task in recipe.tasks])
    decoder.initialise(recipe.seed)
    return decoder


def environment() -> dict[str, Any]:
    """What results can depend on besides the recipe."""
    return {
        "taskhint": taskhint.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "processor": _processor(),
        "system": platform.system(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def save_checkpoint(run: Run, step: int, weights: dict[str, Tensor], optimiser: dict[str, Tensor]) -> None:
    """Write a checkpoint under a temporary name, sync it, rename it; then drop the oldest beyond the number kept."""
    final = run.path / "checkpoints" / f"{_PREFIX}{step:08d}"
    temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    files = {
        "weights.safetensors": safetensors.torch.save(_contiguous(weights)),
        "optimiser.safetensors": safetensors.torch.save(_contiguous(optimiser)),
        "state.json": json_bytes({"step": step}),
    }
    for name, data in files.items():
        write_synced(temporary / name, data)
    sums = {name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in files.items()}
    write_synced(temporary / "manifest.json", json_bytes(sums))
    sync_directory(temporary)
    if final.exists():
        shutil.rmtree(final)
    temporary.rename(final)
    sync_directory(final.parent)
    for old in run.checkpoints()[:-KEPT_CHECKPOINTS]:
        shutil.rmtree(old.path)


def _contiguous(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().contiguous() for name, tensor in tensors.items()}


def damage(checkpoint: Checkpoint) -> str | None:
    """What is wrong with a checkpoint, or None if every file is as its manifest says."""
    try:
        manifest = read_json(checkpoint.path / "manifest.json")
    except UserError as error:
        return str(error)
    expected = {"weights.safetensors", "optimiser.safetensors", "state.json"}
    if not isinstance(manifest, dict) or set(manifest) != expected:
        return "its manifest does not list the files of a checkpoint"
    for name, entry in manifest.items():
        if not isinstance(entry, dict) or not {"sha256", "bytes"} <= entry.keys():
            return f"its manifest says nothing of {name}"
        path = checkpoint.path / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != entry["bytes"]:
            return f"{name} has {path.stat().st_size} bytes instead of {entry['bytes']}"
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != entry["sha256"]:
                return f"{name} does not match its SHA-256"
    return None


def load_weights(decoder: Decoder, path: Path) -> None:
    """Weights from a safetensors file, after its header has been checked against the model."""
    wanted = {name: value.detach() for name, value in decoder.named_parameters()}
    tensors = read_tensors(path, {name: (value.dtype, tuple(value.shape)) for name, value in wanted.items()})
    decoder.load_state_dict(tensors)


def read_tensors(path: Path, wanted: dict[str, tuple[torch.dtype, tuple[int, ...]]]) -> dict[str, Tensor]:
    """The tensors of a file whose names, types and shapes are known; they are checked before any memory is taken."""
    header = _header(path)
    if set(header) != set(wanted):
        odd = sorted(set(header) ^ set(wanted))
        raise UserError(f"{path} does not fit the recipe: {', '.join(odd[:3])}")
    for name, (dtype, shape) in wanted.items():
        if header[name] != (_DTYPES.get(dtype), shape):
            raise UserError(f"{path} does not fit the recipe: {name} is {header[name]}, not {shape}")
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged: {str(error)[:100]}") from None


_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
}
_MAX_HEADER = 4 * 1024 * 1024


def _header(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            if size > _MAX_HEADER:
                raise ValueError("its header is too large")
            data = json.loads(file.read(size))
        data.pop("__metadata__", None)
        return {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in data.items()}
    except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {str(error)[:100]}") from None
