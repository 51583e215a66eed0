"""Many runs on all cores: one process and one thread each, resumed where they left off, reported
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskhint.recipes.recipe import Recipe
from taskhint.runs.curve import LengthCurve
from taskhint.system.errors import Interrupted, MachineError, UserError, warn
from taskhint.system.memory import memory_errors
from taskhint.system.plugins import import_all, imported_sources
from taskhint.system.progress import Progress
from taskhint.system.signals import Stop, ask_to_stop, name


@dataclass(frozen=True)
class Measurement:
    """What to measure of a finished run."""

    distribution: str
    lengths: tuple[int, ...]
    examples: int
    edit_distance: bool = False


@dataclass(frozen=True)
class Job:
    out: Path
    recipe: Recipe
    measurements: tuple[Measurement, ...]
    mechanisms: tuple[
        int, ...
    ] = ()  # lengths at which the mechanisms inside the model are counted


_counts: Any = None
_stop_all: Any = None


def run_jobs(jobs: Sequence[Job], title: str) -> Iterator[tuple[Job, list[LengthCurve]]]:
    """Train and measure every job; each with its curves as soon as they are known.

    A job that fails does not take the others along; its error is raised in the end. SIGINT and
    SIGTERM make every worker finish its step, save and stop.
    """
    context = multiprocessing.get_context("spawn")
    counts: Any = context.Queue()
    stop_all = context.Event()
    total = sum(job.recipe.steps for job in jobs)
    workers = min(len(jobs), _at_once())
    pool = ProcessPoolExecutor(
        workers,
        mp_context=context,
        initializer=_start_worker,
        initargs=(counts, stop_all, imported_sources()),
    )
    with Stop() as stop, Progress(total, title) as progress, _watching(counts, progress):
        with _blocked(
            signal.SIGINT
        ):  # workers inherit this: Ctrl-C reaches the parent alone, which then asks them
            futures = {pool.submit(_run_job, number, job): job for number, job in enumerate(jobs)}
        try:
            yield from _finished(futures, stop)
        finally:
            if not all(future.done() for future in futures):
                stop_all.set()
            pool.shutdown(wait=True, cancel_futures=True)
    if stop.number is not None:
        raise Interrupted(
            f"stopped by {name(stop.number)}; every run is saved, the same command goes on",
            stop.number,
        )


def _at_once() -> int:
    """A run on every core that this process may use; on a GPU one after the other, because each
    takes all of it.
    """
    import torch

    if torch.cuda.is_available():
        return 1
    return (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )


def _finished(
    futures: dict[Future[list[LengthCurve]], Job], stop: Stop
) -> Iterator[tuple[Job, list[LengthCurve]]]:
    """Jobs and their curves until all are done or somebody asks to stop."""
    pending, failed = set(futures), []
    while pending and stop.number is None:
        done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            try:
                curves = future.result()
            except BrokenProcessPool:
                raise MachineError(
                    "a worker process was killed; the same command goes on"
                ) from None
            except UserError as error:
                warn(f"{futures[future].out}: {error}")
                failed.append(error)
            else:
                yield futures[future], curves
    if failed and stop.number is None:
        raise failed[0]


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


def _start_worker(counts: Any, stop_all: Any, sources: Sequence[str]) -> None:
    """What jobs are made of is imported before the first job arrives."""
    import torch

    import_all(sources)

    global _counts, _stop_all
    _counts, _stop_all = counts, stop_all
    torch.set_num_threads(1)
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


def _run_job(number: int, job: Job) -> list[LengthCurve]:
    with memory_errors():
        return _train_and_measure(number, job)


def _train_and_measure(number: int, job: Job) -> list[LengthCurve]:
    from taskhint.evaluation.exact import evaluate
    from taskhint.training.loop import train

    last = 0.0

    def report(step: int, loss: float) -> None:  # noqa: ARG001
        nonlocal last
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            _counts.put((number, step))

    try:
        run = None if _stop_all.is_set() else train(job.recipe, job.out, report=report)
    except Interrupted:
        run = None
    if run is None or _stop_all.is_set():
        os._exit(0)  # the pool would hand this process another job
    _counts.put((number, job.recipe.steps))
    if job.mechanisms:
        from taskhint.probe.mechanisms import keep_mechanisms

        keep_mechanisms(run, job.mechanisms)
    return [
        evaluate(run, m.lengths, m.examples, m.distribution, m.edit_distance)
        for m in job.measurements
    ]
