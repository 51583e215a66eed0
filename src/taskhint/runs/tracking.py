"""Telling a tracker of a training, from a process of its own that reads metrics.jsonl.

So nothing that a tracker does reaches the training: it may raise, hang or crash, set seeds or
signals. Its standard input is the only tie: the first line says what to do, and its end is the end
of the training, however that came.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from taskhint.recipes.recipe import Recipe
from taskhint.runs.metrics import METRICS, Metrics
from taskhint.runs.tracker import TrackedRun, Tracker, can_start, sources_for
from taskhint.system.dotted import flat_settings
from taskhint.system.errors import warn
from taskhint.system.plugins import import_all
from taskhint.system.settings import conform, to_json

LONGEST = 60  # seconds that a tracker lives on when its training was killed
_POLL = 0.5
_TOLD = 1  # exit code of a tracker's process that has said itself what went wrong


@contextmanager
def tracking(
    tracker: Tracker, path: Path, recipe: Recipe, metrics: Metrics | None, step: int
) -> Iterator[None]:
    """Tell the tracker of what is added to the metrics meanwhile. Never fails."""
    if metrics is None or not can_start(tracker):
        yield
        return
    about = TrackedRun(path.resolve(), _id(path, recipe), step, flat_settings(recipe))
    process = _started(tracker, about, metrics.bytes)
    try:
        yield
    finally:
        if process is not None:
            _end(process, tracker)


def _id(path: Path, recipe: Recipe) -> str:
    """The same whenever this run goes on in this place."""
    return hashlib.sha256(f"{path.resolve()} {recipe.fingerprint()}".encode()).hexdigest()[:16]


def _started(tracker: Tracker, run: TrackedRun, offset: int) -> subprocess.Popen[bytes] | None:
    order = {
        "tracker": to_json(tracker),
        "run": {**asdict(run), "path": str(run.path)},
        "offset": offset,
        "imports": sources_for(tracker),
    }
    where = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "taskhint.runs.tracking"],
            stdin=subprocess.PIPE,
            stdout=2,  # standard output belongs to the command
            env={**os.environ, "PYTHONPATH": where},
            start_new_session=True,  # Ctrl-C is for the training
        )
    except OSError as error:
        warn(f"tracker {tracker.kind!r} cannot be started: {error}; the training goes on")
        return None
    with suppress(OSError):  # if it is gone already, its exit code tells
        assert process.stdin is not None
        process.stdin.write(f"{json.dumps(order)}\n".encode())
        process.stdin.flush()
    return process


def _end(process: subprocess.Popen[bytes], tracker: Tracker) -> None:
    with suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()
    try:
        code = process.wait(tracker.patience)
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        warn(
            f"tracker {tracker.kind!r} was not done {tracker.patience:g} s after the training and "
            f"was stopped; {METRICS} has everything"
        )
        return
    if code not in (0, _TOLD):
        warn(f"tracker {tracker.kind!r} ended with exit code {code}; {METRICS} has everything")


def _main() -> int:
    """The tracker's process."""
    os.nice(10)  # the training goes first
    order = json.loads(sys.stdin.readline())
    ended = threading.Event()
    threading.Thread(target=_mind_training, args=(ended,), daemon=True).start()
    kind = order["tracker"]["kind"]
    try:
        import_all(order["imports"])
        tracker = conform(Tracker, order["tracker"], "track")
        run = TrackedRun(**{**order["run"], "path": Path(order["run"]["path"])})
        _follow(tracker, run, order["offset"], ended)
    except BaseException as error:
        what = f"{type(error).__name__}: {error}"
        warn(f"tracker {kind!r} failed ({what}); {METRICS} has everything")
        return _TOLD
    return 0


def _mind_training(ended: threading.Event) -> None:
    """Notice the end of the training; a tracker that hangs then does not live forever."""
    sys.stdin.read()
    ended.set()
    signal.alarm(LONGEST)


def _follow(tracker: Tracker, run: TrackedRun, offset: int, ended: threading.Event) -> None:
    tracker.start(run)
    for line in _lines(run.path / METRICS, offset, ended):
        tracker.log(*_values(line))
    tracker.finish()


def _lines(path: Path, offset: int, ended: threading.Event) -> Iterator[bytes]:
    """Every whole line from a place on, as it is written, up to the end of the training."""
    with path.open("rb") as file:
        file.seek(offset)
        while True:
            last = ended.is_set()  # asked before reading: nothing is written after it
            while (line := file.readline()).endswith(b"\n"):
                yield line
            if last:
                return
            file.seek(-len(line), os.SEEK_CUR)
            ended.wait(_POLL)


def _values(line: bytes) -> tuple[int, dict[str, Any]]:
    metric = json.loads(line)
    task = metric["task"]
    by_task = {f"{name}/{task}": metric[name] for name in ("loss", "gradient_norm")}
    return metric["step"], {**by_task, "learning_rate": metric["learning_rate"]}


if __name__ == "__main__":
    if _main() == _TOLD:
        os._exit(_TOLD)  # no hook of a package that failed holds it up
