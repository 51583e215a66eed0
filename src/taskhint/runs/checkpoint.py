"""A checkpoint: a directory whose manifest holds the size and SHA-256 of every file in it.

weights.safetensors     the model
optimiser.safetensors   moments and momenta
state.json              counters, the recipe's fingerprint, how far metrics.jsonl was written
manifest.json           of the three others

Nothing in a safetensors file is executed, and it is checked before memory is taken.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from taskhint.recipes.recipe import Recipe
from taskhint.runs.metrics import MetricsWritten
from taskhint.system.errors import UserError
from taskhint.system.files import (
    MAX_JSON_BYTES,
    json_bytes,
    make_directory,
    parse_json,
    read_bytes,
    read_json,
    storing,
    sync_directory,
    temporary_name,
    write_synced,
)
from taskhint.system.settings import conform, to_json

PREFIX = "step-"
WEIGHTS, OPTIMISER, STATE, MANIFEST = (
    "weights.safetensors",
    "optimiser.safetensors",
    "state.json",
    "manifest.json",
)

Wanted = Mapping[str, tuple[torch.dtype, tuple[int, ...]]]
"""The type and shape that each tensor must have."""

_MAX_HEADER = 4 * 1024 * 1024
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
}


def tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    return safetensors.torch.save(
        {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    )


def described(tensors: Mapping[str, Tensor]) -> Wanted:
    return {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}


def read_tensors(path: Path, wanted: Wanted, sha256: str | None = None) -> dict[str, Tensor]:
    """The tensors of a file whose names, types and shapes are known.

    The bytes that are checked against the SHA-256 are the bytes that are used: nothing can change
    in between.
    """
    size = sum(dtype.itemsize * math.prod(shape) for dtype, shape in wanted.values())
    data = read_bytes(path, 8 + _MAX_HEADER + size)
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise UserError(f"{path} does not match its SHA-256")
    header = _header(path, data)
    odd = sorted(header.keys() ^ wanted.keys())
    if odd:
        raise UserError(f"{path} does not fit the recipe: {', '.join(odd[:3])!r:.200}")
    for name, (dtype, shape) in wanted.items():
        if header[name] != (_DTYPES.get(dtype), list(shape)):
            raise UserError(
                f"{path} does not fit the recipe: {name} is {header[name]!r:.80}, not {dtype} "
                f"{shape}"
            )
    try:
        return safetensors.torch.load(data)
    except (safetensors.SafetensorError, ValueError, RuntimeError) as error:
        raise UserError(f"{path} is damaged: {str(error)[:100]}") from None


def _header(path: Path, data: bytes) -> dict[str, tuple[Any, Any]]:
    try:
        (size,) = struct.unpack_from("<Q", data)
        if size > min(_MAX_HEADER, len(data) - 8):
            raise ValueError("its header is too large")
        entries = json.loads(data[8 : 8 + size])
        entries.pop("__metadata__", None)
        return {name: (entry["dtype"], entry["shape"]) for name, entry in entries.items()}
    except (
        struct.error,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise UserError(f"{path} is damaged: {str(error)[:100]}") from None


@dataclass(frozen=True)
class FileSum:
    sha256: str
    bytes: int


@dataclass(frozen=True)
class State:
    step: int
    recipe: str  # fingerprint
    metrics: MetricsWritten


@dataclass(frozen=True)
class Checkpoint:
    path: Path

    @property
    def step(self) -> int:
        return int(self.path.name.removeprefix(PREFIX))

    def damage(self, recipe: Recipe) -> str | None:
        """What is wrong with it, or None if every file is as its manifest says and it belongs to
        the recipe.
        """
        try:
            for name, expected in self.manifest().items():
                _check_file(self.path / name, expected)
            state = self.state()
        except UserError as error:
            return str(error)
        if state.step != self.step:
            return f"it holds step {state.step}"
        if state.recipe != recipe.fingerprint():
            return "it was written under another recipe than recipe.json"
        return None

    def manifest(self) -> dict[str, FileSum]:
        path = self.path / MANIFEST
        written = read_bytes(path, MAX_JSON_BYTES)
        data = parse_json(path, written)
        if not isinstance(data, dict) or set(data) != {WEIGHTS, OPTIMISER, STATE}:
            raise UserError(f"{path} is damaged: it does not list the files of a checkpoint")
        manifest = {
            name: conform(FileSum, entry, f"{path}: {name}") for name, entry in data.items()
        }
        if written != json_bytes(data):
            raise UserError(
                f"{path} is damaged: it is not as it was written"
            )  # its own bytes have no other check
        return manifest

    def state(self) -> State:
        path = self.path / STATE
        state: State = conform(State, read_json(path), str(path))
        if state.metrics.bytes < 0:
            raise UserError(f"{path} is damaged: a negative size")
        return state

    def tensors(self, name: str, wanted: Wanted) -> dict[str, Tensor]:
        return read_tensors(self.path / name, wanted, self.manifest()[name].sha256)


def _check_file(path: Path, expected: FileSum) -> None:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != expected.bytes:
                raise UserError(f"{path.name} has {size} bytes instead of {expected.bytes}")
            if hashlib.file_digest(file, "sha256").hexdigest() != expected.sha256:
                raise UserError(f"{path.name} does not match its SHA-256")
    except FileNotFoundError:
        raise UserError(f"{path.name} is missing") from None
    except OSError as error:
        raise UserError(f"{path.name} cannot be read: {error.strerror}") from None


def checkpoints_in(directory: Path) -> list[Checkpoint]:
    """Every checkpoint there is, whole or not, the oldest first."""
    found = [
        path for path in directory.glob(PREFIX + "*") if _is_step(path.name.removeprefix(PREFIX))
    ]
    return sorted((Checkpoint(path) for path in found), key=lambda checkpoint: checkpoint.step)


def _is_step(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def write_checkpoint(directory: Path, state: State, weights: bytes, optimiser: bytes) -> None:
    """Under a temporary name, synced; then renamed, and the directory synced."""
    final = directory / f"{PREFIX}{state.step:08d}"
    with storing(final):
        make_directory(directory)
        temporary = temporary_name(final)
        shutil.rmtree(temporary, ignore_errors=True)  # of a dead process that had the same number
        try:
            temporary.mkdir()
            _write_files(
                temporary,
                {WEIGHTS: weights, OPTIMISER: optimiser, STATE: json_bytes(to_json(state))},
            )
            if final.exists():
                remove_checkpoint(Checkpoint(final))
            temporary.rename(final)
        except BaseException:
            with suppress(OSError):
                shutil.rmtree(temporary)  # a full disk needs the room
            raise
        sync_directory(directory)


def _write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    manifest: dict[str, Any] = {}
    for name, data in files.items():
        write_synced(directory / name, data)
        manifest[name] = to_json(FileSum(hashlib.sha256(data).hexdigest(), len(data)))
    write_synced(directory / MANIFEST, json_bytes(manifest))
    sync_directory(directory)


def remove_checkpoint(checkpoint: Checkpoint) -> None:
    """Renamed before it is emptied, so that a part of it never stands under its name."""
    with storing(checkpoint.path):
        doomed = temporary_name(checkpoint.path.with_name(f"old-{checkpoint.path.name}"))
        shutil.rmtree(doomed, ignore_errors=True)
        checkpoint.path.rename(doomed)
        shutil.rmtree(doomed)


def drop_old_checkpoints(directory: Path, keep: int) -> None:
    """All but the newest few."""
    for old in checkpoints_in(directory)[:-keep]:
        remove_checkpoint(old)


def set_aside(checkpoint: Checkpoint) -> None:
    """A damaged checkpoint keeps its files for whoever wants to look, but no longer
    counts as one.
    """
    with storing(checkpoint.path):
        aside = checkpoint.path.with_name(f"{checkpoint.path.name}.damaged")
        if aside.exists():
            shutil.rmtree(aside)
        checkpoint.path.rename(aside)
        sync_directory(aside.parent)
