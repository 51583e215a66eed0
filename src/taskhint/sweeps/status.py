"""How far a sweep is, from the files of its runs alone: it can be asked on any machine that sees
them, while the sweep runs and after.

Times come from the file system, so that clocks of different machines are never compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from taskhint.runs.curve import curve_path, measured_in
from taskhint.sweeps.jobs import done
from taskhint.sweeps.plan import Planned, read_plan
from taskhint.sweeps.work import FAILED
from taskhint.system.errors import UserError
from taskhint.system.files import read_json
from taskhint.system.lease import BEAT, Seen, newest
from taskhint.system.tables import text_table

State = Literal["done", "running", "failed", "waiting"]
STATES: tuple[State, ...] = ("done", "running", "failed", "waiting")
MOST_LISTED = 20
WATCHED_FOR = 1.2 * BEAT  # seconds; a heart that stands still for longer is taken for dead


@dataclass(frozen=True)
class RunStatus:
    """`seconds` is what an update took so far, if that can be told."""

    out: str
    state: State
    step: int
    steps: int
    seconds: float | None = None
    error: str = ""


@dataclass(frozen=True)
class SweepStatus:
    root: Path
    runs: tuple[RunStatus, ...]

    def count(self, state: State) -> int:
        return sum(run.state == state for run in self.runs)

    @property
    def share(self) -> float:
        """Of all updates those that are made and saved."""
        return sum(run.step for run in self.runs) / max(1, sum(run.steps for run in self.runs))

    @property
    def seconds_left(self) -> float | None:
        """By what updates took so far and how many runs are on their way; None if none is."""
        known = [run.seconds for run in self.runs if run.seconds is not None]
        running = self.count("running")
        if not known or not running:
            return None
        left = sum(run.steps - run.step for run in self.runs if run.state != "failed")
        return left * median(known) / running

    def __str__(self) -> str:
        counts = ", ".join(f"{self.count(state)} {state}" for state in STATES)
        left = self.seconds_left
        time_left = "" if left is None else f"; about {duration(left)} left"
        first = f"{self.root}: {len(self.runs)} runs: {counts}; "
        first += f"{100 * self.share:.1f}% of the updates{time_left}\n"
        return first + self._listed("running") + self._listed("failed")

    def _listed(self, state: State) -> str:
        runs = [run for run in self.runs if run.state == state]
        if not runs:
            return ""
        rows = [[run.out, f"{run.step}/{run.steps}", run.error] for run in runs[:MOST_LISTED]]
        more = len(runs) - MOST_LISTED
        return text_table([state, "updates", ""], rows) + (
            f"and {more} more\n" if more > 0 else ""
        )


def status(directory: str | Path) -> SweepStatus:
    """Every run that a sweep's directory is meant to hold, and how far it is."""
    root = Path(directory)
    groups = read_plan(root).groups
    # First, so that the hearts of these beat while the results of the others are read.
    leases = {out: _watched(root / out) for group in groups for out in _unmeasured(root, group)}
    looks = [look for group in groups for look in _look_at(root, group, leases)]
    doubtful = {run.out: lease for run, lease in looks if not lease.seen.certain}
    beating = _beating(root, doubtful)
    runs = [
        run if run.out not in doubtful or run.out in beating else _halted(root, run)
        for run, _ in looks
    ]
    return SweepStatus(root, tuple(runs))


class Watched(NamedTuple):
    """A lease, and since when it is watched."""

    seen: Seen
    since: float


NOBODYS = Watched(Seen(0, b""), 0.0)


def _watched(run: Path) -> Watched:
    return Watched(newest(run), time.monotonic())


def _unmeasured(root: Path, group: Planned) -> Iterator[str]:
    """Runs without a result: one look at the file system for each."""
    for one in group.measurements[:1]:
        for out, steps in group.runs.items():
            place = measured_in(root / out, group.precision)
            if not curve_path(place, steps, one.distribution).exists():
                yield out


def _look_at(
    root: Path, group: Planned, leases: Mapping[str, Watched]
) -> Iterator[tuple[RunStatus, Watched]]:
    for out, steps in group.runs.items():
        path = root / out
        if done(path, steps, group.measurements, group.mechanisms, glance, group.precision):
            yield RunStatus(out, "done", steps, steps, _seconds(path, steps)), NOBODYS
            continue
        lease, step = leases.get(out) or _watched(path), _newest_step(path)
        running = RunStatus(out, "running", step, steps, _seconds(path, step))
        yield _halted(root, running) if lease.seen.free else running, lease


class Counted(NamedTuple):
    """As much of a score as is needed here."""

    examples: int
    edit_distance: float | None


def glance(place: Path, step: int, distribution: str) -> dict[int, Counted]:
    """The scores in a file, unchecked: ten thousand are read in seconds."""
    try:
        lengths = read_json(curve_path(place, step, distribution))["lengths"]
        return {
            int(n): Counted(one["examples"], one.get("edit_distance"))
            for n, one in lengths.items()
        }
    except (UserError, KeyError, TypeError, ValueError, AttributeError):
        return {}


def _halted(root: Path, run: RunStatus) -> RunStatus:
    """A run that nobody works on."""
    note = root / run.out / FAILED
    if not note.exists():
        return RunStatus(run.out, "waiting", run.step, run.steps, run.seconds)
    try:
        error = str(read_json(note).get("error", ""))
    except (UserError, AttributeError):
        error = "?"
    return RunStatus(run.out, "failed", run.step, run.steps, run.seconds, error)


def _beating(root: Path, leases: Mapping[str, Watched]) -> set[str]:
    """Those runs whose workers on other machines live: their heartbeat moves on. All are watched
    at the same time.
    """
    left = dict(leases)
    found: set[str] = set()
    while left:
        now = time.monotonic()
        found |= {out for out, lease in left.items() if newest(root / out) != lease.seen}
        left = {
            out: lease
            for out, lease in left.items()
            if out not in found and now < lease.since + WATCHED_FOR
        }
        if left:
            time.sleep(BEAT / 10)
    return found


def _newest_step(run: Path) -> int:
    names = (path.name.removeprefix("step-") for path in run.glob("checkpoints/step-*"))
    return max((int(name) for name in names if name.isdecimal()), default=0)


def _seconds(run: Path, step: int) -> float | None:
    """From the beginning of the run to this checkpoint, by update."""
    try:
        begin = (run / "recipe.json").stat().st_mtime
        end = (run / "checkpoints" / f"step-{step:08d}").stat().st_mtime
    except OSError:
        return None
    return (end - begin) / step if end > begin and step else None


def duration(seconds: float) -> str:
    """In the largest unit of which there are two."""
    units: Sequence[tuple[float, str]] = ((86400, "days"), (3600, "hours"), (60, "minutes"))
    for size, name in units:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
