"""Many runs on one machine: one process and one thread each, resumed where they left off, reported
as they finish.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taskhint.runs.tracker import Tracker, find_tracker, sources_for
from taskhint.sweeps.collecting import collect, raise_if_stopped
from taskhint.sweeps.jobs import Job, Outcome
from taskhint.sweeps.work import ANYWHERE, Answer, do, single_threaded
from taskhint.system.devices import Compute
from taskhint.system.errors import MachineError
from taskhint.system.plugins import import_all
from taskhint.system.progress import Progress
from taskhint.system.settings import to_json
from taskhint.system.signals import Stop, ask_to_stop

_VISIBLE = "CUDA_VISIBLE_DEVICES"

_counts: Any = None
_stop_all: Any = None
_at = ANYWHERE
_track: Tracker | None = None


@dataclass(frozen=True)
class LocalPool:
    """As many runs at once as this process may use cores; or, on GPUs, as many as share them.

    `gpus_per_run` is 1 if not given, because a run takes all of a GPU that it can get. With 0 all
    runs are on the processor.
    """

    gpus_per_run: float | None = None
    at: Compute = ANYWHERE
    track: Tracker | None = None

    def run(self, jobs: Sequence[Job], root: Path, title: str) -> Iterator[Outcome]:
        context = multiprocessing.get_context("spawn")
        counts: Any = context.Queue()
        stop_all = context.Event()
        places: Any = context.Queue()
        slots = slots_here(self.gpus_per_run, self.at.device)
        for slot in slots:
            places.put(slot)
        pool = ProcessPoolExecutor(
            min(len(jobs), len(slots)),
            mp_context=context,
            initializer=_start_worker,
            initargs=(
                counts,
                stop_all,
                places,
                sources_for(self.track),
                self.of_a_worker(),
                to_json(self.track),
            ),
        )
        total = sum(job.recipe.steps for job in jobs)
        with Stop() as stop, Progress(total, title) as progress, _watching(counts, progress):
            backend = _Pool(pool, root.resolve(), {job: n for n, job in enumerate(jobs)}, [])
            try:
                yield from collect(backend, jobs, stop)
            finally:
                # A killed worker would never answer: then every job counts as done already.
                if not all(ticket.done() for ticket in backend.tickets):
                    stop_all.set()
                pool.shutdown(wait=True, cancel_futures=True)
        raise_if_stopped(stop)

    def of_a_worker(self) -> Compute:
        """What a process is told that sees one GPU alone, as its first."""
        return replace(self.at, device=self.at.device.partition(":")[0])


def slots_here(gpus_per_run: float | None, device: str = "auto") -> list[str | None]:
    """For every run at a time the GPU that it sees: None for whatever there is."""
    import torch

    if device == "mps":
        return [None] * len(shared(["mps"], gpus_per_run or 1.0))
    without = gpus_per_run == 0 or device == "cpu"
    if without or not torch.cuda.is_available():
        return ["" if without else None] * cores_here()
    named = os.environ.get(_VISIBLE)
    gpus = named.split(",") if named else [str(n) for n in range(torch.cuda.device_count())]
    _, colon, number = device.partition(":")
    chosen = [gpus[int(number)]] if colon else gpus
    return list(shared(chosen, gpus_per_run or 1.0))


def cores_here() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shared(gpus: Sequence[str], per_run: float) -> list[str]:
    """Each GPU as often as runs fit on it; all of them once before one of them twice."""
    return list(gpus) * max(1, int(1 / per_run + 1e-9))


@dataclass(frozen=True)
class _Pool:
    pool: ProcessPoolExecutor
    root: Path
    numbers: dict[Job, int]
    tickets: list[Future[Answer]]

    def submit(self, job: Job) -> Future[Answer]:
        # Workers inherit this: Ctrl-C reaches the parent alone, which then asks them.
        with _blocked(signal.SIGINT):
            self.tickets.append(self.pool.submit(_run_job, self.numbers[job], job, self.root))
        return self.tickets[-1]

    def ended(self, tickets: Sequence[Future[Answer]]) -> set[Future[Answer]]:
        return wait(tickets, timeout=0.2, return_when=FIRST_COMPLETED)[0]

    def answer(self, ticket: Future[Answer]) -> Answer:
        try:
            return ticket.result()
        except BrokenProcessPool:
            raise MachineError("a worker process was killed; the same command goes on") from None


@contextmanager
def _blocked(number: signal.Signals) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _watching(counts: Any, progress: Progress) -> Iterator[None]:
    stop = threading.Event()
    watcher = threading.Thread(target=_watch, args=(counts, progress, stop), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def _watch(counts: Any, progress: Progress, stop: threading.Event) -> None:
    done: dict[int, int] = {}
    while not stop.is_set():
        try:
            number, step = counts.get(timeout=0.5)
        except queue.Empty:
            continue
        if number not in done:
            progress.find(step)
        done[number] = step
        progress.advance_to(sum(done.values()))


def _start_worker(
    counts: Any, stop_all: Any, places: Any, sources: Sequence[str], at: Compute, track: Any
) -> None:
    """What jobs are made of is imported before the first job arrives."""
    gpu = places.get()
    if gpu is not None:
        os.environ[_VISIBLE] = gpu  # before anything asks for GPUs
    import_all(sources)

    global _counts, _stop_all, _at, _track
    _counts, _stop_all, _at = counts, stop_all, at
    _track = None if track is None else find_tracker(track)
    single_threaded()
    threading.Thread(target=_mind_parent, daemon=True).start()


def _mind_parent() -> None:
    """Stop when asked to; vanish when the parent has died, so that no orphan holds a run. Nothing
    saved is lost.
    """
    parent = multiprocessing.parent_process()
    while not _stop_all.wait(0.2):
        if parent is None or not parent.is_alive():
            os._exit(1)
    if not ask_to_stop(signal.SIGTERM):
        os._exit(0)  # nothing is being trained; a measurement can be made again


def _run_job(number: int, job: Job, root: Path) -> Answer:
    last = 0.0

    def report(step: int, loss: float) -> None:  # noqa: ARG001
        nonlocal last
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            _counts.put((number, step))

    answer = Answer("stopped") if _stop_all.is_set() else do(job, root, report, _at, _track)
    if answer.state == "stopped" or _stop_all.is_set():
        os._exit(0)  # the pool would hand this process another job
    if answer.state != "busy":
        _counts.put((number, job.recipe.steps))
    return answer
