"""metrics.jsonl: one line per logged update. A run that goes on cuts the file back to where its
checkpoint stood.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from taskhint.system.errors import warn
from taskhint.system.files import storing, sync_directory, write_all, write_atomically
from taskhint.system.settings import conform

METRICS = "metrics.jsonl"
_CHUNK = 1 << 20
_MAX_LINE = 1 << 12


@dataclass(frozen=True)
class MetricsWritten:
    """How far the file was written, and the SHA-256 of it so far."""

    bytes: int = 0
    sha256: str = hashlib.sha256().hexdigest()


@dataclass(frozen=True)
class Metric:
    """One logged update."""

    step: int
    task: str
    loss: float
    gradient_norm: float
    learning_rate: float


def read_metrics(path: Path) -> tuple[Metric, ...]:
    """Every whole line of the file; nothing if there is none."""
    lines = _whole_lines(path, before=1 << 62)
    return tuple(conform(Metric, json.loads(line), str(path)) for line in lines)


class Metrics:
    """The file, open for writing at a position: `bytes` are written so far."""

    def __init__(self, path: Path, start: MetricsWritten, step: int) -> None:
        self._path = path
        with storing(path):
            self._repair(start, step)
            self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            sync_directory(path.parent)

    def add(self, step: int, task: str, loss: float, norm: float, rate: float) -> None:
        """A line is written at once, for whoever watches the file; `sync` makes it last."""
        values = {
            "step": step,
            "task": task,
            "loss": loss,
            "gradient_norm": norm,
            "learning_rate": rate,
        }
        line = f"{json.dumps(values)}\n".encode()
        with storing(self._path):
            write_all(self._handle, line)
        self._sum.update(line)
        self.bytes += len(line)

    def sync(self) -> MetricsWritten:
        with storing(self._path):
            os.fsync(self._handle)
        return MetricsWritten(self.bytes, self._sum.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._handle)

    def _repair(self, start: MetricsWritten, step: int) -> None:
        """Drop what was written after the checkpoint, a half-written line among it."""
        self.bytes, self._sum = _read_up_to(self._path, start.bytes)
        if (self.bytes, self._sum.hexdigest()) != (start.bytes, start.sha256):
            warn(f"{self._path} is damaged before step {step}; only its whole lines are kept")
            lines = b"".join(_whole_lines(self._path, step))
            write_atomically(self._path, lines)
            self.bytes, self._sum = len(lines), hashlib.sha256(lines)
        elif self._path.exists():
            os.truncate(self._path, start.bytes)


def _read_up_to(path: Path, count: int) -> tuple[int, Any]:
    """The number of bytes that are there, at most `count`, and their running SHA-256."""
    total, found = 0, hashlib.sha256()
    if path.exists():
        with path.open("rb") as file:
            while chunk := file.read(min(_CHUNK, count - total)):
                found.update(chunk)
                total += len(chunk)
    return total, found


def _whole_lines(path: Path, before: int) -> Iterator[bytes]:
    """Lines that can be read, of steps that rise and lie before one."""
    last = -1
    if not path.exists():
        return
    with path.open("rb") as file:
        while line := file.readline(_MAX_LINE):
            step = _step(line)
            if step is not None and last < step < before:
                last = step
                yield line


def _step(line: bytes) -> int | None:
    """The step of a whole line."""
    try:
        values = json.loads(line)
        step = values["step"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return step if line.endswith(b"\n") and type(step) is int else None
