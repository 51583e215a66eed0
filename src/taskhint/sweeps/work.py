"""What a worker does with a job, wherever it runs: train, measure, say how it went."""

from __future__ import annotations

import os
import traceback
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from taskhint.runs.curve import LengthCurve, measured_in, save_curve
from taskhint.sweeps.jobs import Job, Outcome, kept_curve, missing
from taskhint.system.devices import Compute
from taskhint.system.errors import DivergedError, Interrupted, MachineError, UserError
from taskhint.system.files import json_bytes, write_atomically
from taskhint.system.lease import Busy, Lease
from taskhint.system.memory import memory_errors

if TYPE_CHECKING:
    from taskhint.runs.tracker import Tracker
    from taskhint.training.loop import Report

FAILED = ".failed.json"
ANYWHERE = Compute("auto")
_KINDS = {error.exit_code: error for error in (UserError, MachineError, DivergedError)}


@dataclass(frozen=True)
class Answer:
    """How a job went. `busy`: another worker has the run, come back later. `unfit`: this machine
    cannot run any job of the sweep.
    """

    state: Literal["done", "failed", "busy", "stopped", "unfit"]
    curves: tuple[LengthCurve, ...] = ()
    error: str = ""
    exit_code: int = 0
    trace: str = ""  # stays with the run

    def outcome(self, job: Job) -> Outcome:
        error = None
        if self.state in ("failed", "unfit"):
            error = _KINDS.get(self.exit_code, UserError)(self.error)
        return Outcome(job, self.curves, error)

    def to_json(self) -> Any:
        about = {"state": self.state, "error": self.error, "exit_code": self.exit_code}
        return {**about, "curves": [curve.to_json() for curve in self.curves]}

    @classmethod
    def from_json(cls, data: Any) -> Answer:
        curves = (LengthCurve.from_json(one, "an answer") for one in data["curves"])
        return cls(data["state"], tuple(curves), data["error"], data["exit_code"])


def do(
    job: Job,
    root: Path,
    report: Report | None = None,
    at: Compute = ANYWHERE,
    track: Tracker | None = None,
) -> Answer:
    """Train and measure, unless another worker does; what fails is noted in the run directory."""
    try:
        with Lease(root / job.out):
            answer = _tried(job, root, report, at, track)
            _note(root / job.out / FAILED, answer)
            return answer
    except Busy as holder:
        return Answer("busy", error=f"{job.out} is in use by {holder}")
    except UserError as error:
        return _failure(error)


def _tried(
    job: Job, root: Path, report: Report | None, at: Compute, track: Tracker | None
) -> Answer:
    try:
        with memory_errors():
            return Answer("done", _train_and_measure(job, root, report, at, track))
    except Interrupted:
        return Answer("stopped")
    except UserError as error:
        return _failure(error)
    except Exception as error:
        what = " ".join(str(error).split())
        text = f"{type(error).__name__}: {what}; see {FAILED} in its directory"
        return Answer("failed", error=text, exit_code=2, trace=traceback.format_exc())


def _failure(error: UserError) -> Answer:
    return Answer("failed", error=str(error), exit_code=error.exit_code)


def _note(path: Path, answer: Answer) -> None:
    """For `--status`. The next try that ends well removes it."""
    with suppress(OSError, UserError):
        if answer.state == "failed":
            about = {"error": answer.error, "exit_code": answer.exit_code, "trace": answer.trace}
            write_atomically(path, json_bytes(about))
        else:
            path.unlink(missing_ok=True)


def _train_and_measure(
    job: Job, root: Path, report: Report | None, at: Compute, track: Tracker | None
) -> tuple[LengthCurve, ...]:
    """Only what is missing: a job is given again when a worker has died or another had it."""
    from taskhint.evaluation.exact import evaluate
    from taskhint.training.loop import train

    left = missing(job, root, at.precision)
    if left.measurements or left.mechanisms or not (job.measurements or job.mechanisms):
        path, where = root / job.out, (at.device, at.precision)
        device, precision = where
        run = train(job.recipe, path, False, report, device, precision, track)
        if left.mechanisms:
            from taskhint.probe.mechanisms import keep_mechanisms

            keep_mechanisms(run.to(*where), left.mechanisms)
        for one in left.measurements:
            asked = (one.lengths, one.examples, one.distribution, one.edit_distance)
            curve = evaluate(run, *asked, False, False, *where)
            # Files are the same wherever the sweep's directory is mounted.
            save_curve(run.path, replace(curve, run=job.out))
    names = dict.fromkeys(one.distribution for one in job.measurements)
    place = measured_in(root / job.out, at.precision)
    found = (kept_curve(place, job.recipe.steps, name) for name in names)
    return tuple(curve for curve in found if curve is not None)


def single_threaded() -> None:
    """One run, one core: the same bits whatever the machine, and as many runs as cores."""
    import torch

    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
