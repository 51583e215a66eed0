"""Trackers: where the metrics of a training are shown besides its own files.

A tracker is a class with three methods. It works in a process of its own (tracking.py), which
reads what the training has written: it can neither change nor stop nor slow a training.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from taskhint.system.errors import UserError, warn
from taskhint.system.extras import installed
from taskhint.system.plugins import FILE, imported_sources
from taskhint.system.settings import Family, conform

PROJECT = "taskhint"


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker is told of a run.

    `id` stays the same when the run goes on; `step` is the first update that will be told;
    `settings` are those of its recipe, by dotted keys.
    """

    path: Path
    id: str
    step: int
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        """The end of the path that says something: `plain-seed-3` of plain/seed-3."""
        name, above = self.path.name, self.path.parent.name
        return f"{above}-{name}" if re.fullmatch(r"seed-\d+", name) and above else name


class Tracker(Family):
    """Derive, decorate with @dataclass, name a `kind`; then `--track KIND` uses it.

    `needs` is the package that it imports, in `start` at the earliest; `patience` the seconds that
    a training waits for it at the end.
    """

    family: ClassVar[str] = "tracker"
    label: ClassVar[str] = "track"
    needs: ClassVar[str] = ""
    patience: ClassVar[float] = 10.0

    @abstractmethod
    def start(self, run: TrackedRun) -> None:
        """Called once, before anything else."""

    @abstractmethod
    def log(self, step: int, values: dict[str, float]) -> None:
        """Called for every line of metrics.jsonl: `loss/TASK`, `gradient_norm/TASK`,
        `learning_rate`.
        """

    @abstractmethod
    def finish(self) -> None:
        """Called when the training has ended, or was stopped."""


@dataclass
class TensorBoard(Tracker):
    """Event files in RUN/tensorboard, for `tensorboard --logdir`."""

    kind: ClassVar[str] = "tensorboard"
    needs: ClassVar[str] = "tensorboard"

    def start(self, run: TrackedRun) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # What an earlier stretch told of later updates is not shown: they are made again.
        again = run.step or None
        self._writer: Any = SummaryWriter(str(run.path / "tensorboard"), purge_step=again)
        lines = (f"    {key}: {value}" for key, value in run.settings.items())
        self._writer.add_text("recipe", "\n".join(lines), run.step)

    def log(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def finish(self) -> None:
        self._writer.close()


class Calls(Tracker):
    """Libraries with the three calls of wandb: what `init` returns has `log` and `finish`."""

    _run: Any

    def log(self, step: int, values: dict[str, float]) -> None:
        self._run.log(values, step=step)

    def finish(self) -> None:
        self._run.finish()


@dataclass
class Wandb(Calls):
    """Weights & Biases. Its own variables count, as WANDB_MODE=offline and WANDB_PROJECT."""

    kind: ClassVar[str] = "wandb"
    needs: ClassVar[str] = "wandb"

    project: str = PROJECT

    def start(self, run: TrackedRun) -> None:
        self._run = import_module("wandb").init(
            project=os.environ.get("WANDB_PROJECT") or self.project,
            id=run.id,
            name=run.name,
            config=run.settings,
            resume="allow",
        )


@dataclass
class Trackio(Calls):
    """trackio, which keeps its numbers on this machine. It knows a run by its name alone."""

    kind: ClassVar[str] = "trackio"
    needs: ClassVar[str] = "trackio"

    project: str = PROJECT

    def start(self, run: TrackedRun) -> None:
        self._run = import_module("trackio").init(
            project=self.project,
            name=f"{run.name}-{run.id[:6]}",
            config=run.settings,
            resume="allow",
        )


OURS = (TensorBoard, Wandb, Trackio)


def find_tracker(given: Tracker | str) -> Tracker:
    """The tracker that is meant; a name that nobody knows is refused."""
    tracker: Tracker = conform(Tracker, given, "track")
    if type(tracker).__module__ == "__main__":
        raise UserError(
            f"tracker {tracker.kind!r} is a class of the script itself; its process must be able "
            "to import it: put it into a file or module of its own"
        )
    return tracker


def sources_for(tracker: Tracker | None) -> list[str]:
    """What another process has to import: what this one imported, and where the tracker stands."""
    home = type(tracker).__module__
    known = tracker is None or home.startswith(("taskhint.", FILE))  # ours, or of such a file
    return [*imported_sources(), *([] if known else [home])]


def can_start(tracker: Tracker) -> bool:
    """Whether the package that it needs is there; if not, that is said."""
    package = tracker.needs
    if not package or installed(package):
        return True
    named = f"taskhint[{tracker.kind}]" if isinstance(tracker, OURS) else package
    warn(
        f"tracker {tracker.kind!r} needs {package}: pip install '{named}'; "
        "the training goes on without it"
    )
    return False
