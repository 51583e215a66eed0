"""What a sweep is made of: runs to train, what to measure of each, and what came out.

Paths are relative to the sweep's directory, which may be mounted elsewhere on other machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from taskhint.recipes.recipe import Recipe
from taskhint.runs.curve import PLAIN, LengthCurve, curve_path, measured_in
from taskhint.runs.shares import SHARPEST, KeptShares, load_shares
from taskhint.system.devices import Compute
from taskhint.system.errors import UserError
from taskhint.system.files import read_json
from taskhint.system.settings import Settings, conform, to_json


@dataclass(frozen=True)
class Measurement(Settings):
    """What to measure of a finished run."""

    distribution: str
    lengths: tuple[int, ...]
    examples: int
    edit_distance: bool = False


@dataclass(frozen=True)
class Job(Settings):
    """A run to train, and what to measure of it. `mechanisms` are the lengths at which the
    mechanisms inside the model are counted.
    """

    out: str
    recipe: Recipe
    measurements: tuple[Measurement, ...] = ()
    mechanisms: tuple[int, ...] = ()

    def to_json(self) -> Any:
        return to_json(self)

    @classmethod
    def from_json(cls, data: Any) -> Job:
        job: Job = conform(cls, data, "job")
        return job


@dataclass(frozen=True)
class Outcome:
    """A job that ended: its curves, or what went wrong."""

    job: Job
    curves: tuple[LengthCurve, ...] = ()
    error: UserError | None = None


class Kept(Protocol):
    """What has to be known of a score to see whether it is enough."""

    @property
    def examples(self) -> int: ...

    @property
    def edit_distance(self) -> float | None: ...


Reader = Callable[[Path, int, str], Mapping[int, Kept]]
"""The scores of a checkpoint on a test distribution, from where its run keeps measurements."""


class Executor(Protocol):
    """Where jobs run, and with which device and precision."""

    @property
    def at(self) -> Compute: ...

    def run(self, jobs: Sequence[Job], root: Path, title: str) -> Iterator[Outcome]:
        """Train and measure every job below a directory; each as soon as it ends.

        A job that fails does not take the others along. SIGINT and SIGTERM make every worker
        finish its step, save and stop; then Interrupted is raised.
        """
        ...


def missing(job: Job, root: Path, precision: str = PLAIN) -> Job:
    """The same job with what is not measured yet of the last checkpoint with that precision."""
    place = measured_in(root / job.out, precision)
    left = left_of(place, job.recipe.steps, job.measurements, job.mechanisms)
    return replace(job, measurements=left[0], mechanisms=left[1])


def left_of(
    place: Path,
    step: int,
    measurements: Sequence[Measurement],
    mechanisms: Sequence[int],
    read: Reader | None = None,
) -> tuple[tuple[Measurement, ...], tuple[int, ...]]:
    """Of what is wanted of a checkpoint, what no file has where a run keeps its measurements."""
    read = read or _scores
    parts = (lacking(one, read(place, step, one.distribution)) for one in measurements)
    return tuple(one for one in parts if one.lengths), _uncounted(place, step, mechanisms)


def done(
    run: Path,
    step: int,
    measurements: Sequence[Measurement],
    mechanisms: Sequence[int],
    read: Reader | None = None,
    precision: str = PLAIN,
) -> bool:
    """Whether nothing is left to do. Results are enough: the weights may be gone."""
    if not measurements and not mechanisms:
        return (run / "checkpoints" / f"step-{step:08d}").is_dir()
    place = measured_in(run, precision)
    return left_of(place, step, measurements, mechanisms, read) == ((), ())


def undone(jobs: Sequence[Job], root: Path, precision: str = PLAIN) -> list[Job]:
    """Those that are not trained, or not measured with that precision."""

    def is_done(job: Job) -> bool:
        asked = (job.recipe.steps, job.measurements, job.mechanisms)
        return done(root / job.out, *asked, precision=precision)

    return [job for job in jobs if not is_done(job)]


def kept_curve(place: Path, step: int, distribution: str) -> LengthCurve | None:
    """What was measured of a checkpoint; None if nothing was, or the file is damaged."""
    path = curve_path(place, step, distribution)
    if not path.exists():
        return None
    try:
        return LengthCurve.from_json(read_json(path), str(path))
    except UserError:
        return None


def _scores(place: Path, step: int, distribution: str) -> Mapping[int, Kept]:
    curve = kept_curve(place, step, distribution)
    return {} if curve is None else curve.scores


def lacking(wanted: Measurement, scores: Mapping[int, Kept]) -> Measurement:
    """The part of a measurement that is not there yet."""
    left = (n for n in wanted.lengths if not enough(scores.get(n), wanted))
    return replace(wanted, lengths=tuple(left))


def enough(score: Kept | None, wanted: Measurement) -> bool:
    return (
        score is not None
        and score.examples >= wanted.examples
        and (score.edit_distance is not None or not wanted.edit_distance)
    )


def _uncounted(place: Path, step: int, lengths: Sequence[int]) -> tuple[int, ...]:
    try:
        kept = load_shares(place) if lengths else KeptShares()
    except UserError:
        kept = KeptShares()
    whole = kept.step == step and SHARPEST in kept.shares  # files of older versions have less
    counted = kept.shares.values() if whole else ()
    return tuple(n for n in lengths if not any(n in row for row in counted))
