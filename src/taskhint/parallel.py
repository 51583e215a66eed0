"""Many runs on all cores: one process and one thread each, resumed where they left off, reported as they finish."""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskhint.evaluation.curve import LengthCurve
from taskhint.progress import Progress
from taskhint.recipe import Recipe


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


_counts: Any = None


def run_jobs(jobs: Sequence[Job], title: str, workers: int | None = None) -> Iterator[tuple[Job, list[LengthCurve]]]:
    """Train and measure every job; each with its curves as soon as they are known."""
    context = multiprocessing.get_context("spawn")
    counts: Any = context.Queue()
    total = sum(job.recipe.steps for job in jobs)
    workers = workers or min(len(jobs), os.cpu_count() or 1)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(counts,))
    with Progress(total, title) as progress, pool:
        stop = threading.Event()
        watcher = threading.Thread(target=_watch, args=(counts, progress, stop), daemon=True)
        watcher.start()
        futures = {pool.submit(_run_job, number, job): job for number, job in enumerate(jobs)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            stop.set()
            watcher.join()


def _watch(counts: Any, progress: Progress, stop: threading.Event) -> None:
    done: dict[int, int] = {}
    while not stop.is_set():
        try:
            number, step = counts.get(timeout=0.5)
        except queue.Empty:
            continue
        done[number] = step
        progress.advance_to(sum(done.values()))


def _start_worker(counts: Any) -> None:
    import torch

    global _counts
    _counts = counts
    torch.set_num_threads(1)


def _run_job(number: int, job: Job) -> list[LengthCurve]:
    from taskhint.evaluation.exact import evaluate
    from taskhint.trainer import train

    last = 0.0

    def report(step: int, loss: float) -> None:  # noqa: ARG001
        nonlocal last
        if time.monotonic() - last > 0.5 or step == job.recipe.steps:
            last = time.monotonic()
            _counts.put((number, step))

    run = train(job.recipe, job.out, report=report)
    return [evaluate(run, m.lengths, m.examples, m.distribution, m.edit_distance) for m in job.measurements]
