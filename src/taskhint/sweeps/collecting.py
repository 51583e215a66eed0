"""The loop that all executors share: jobs go out, answers come back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from taskhint.sweeps.jobs import Job, Outcome
from taskhint.sweeps.work import Answer
from taskhint.system.errors import Interrupted, warn
from taskhint.system.signals import Stop, name

AGAIN = 2.0  # seconds until a run that another driver works on is asked for again

Ticket = TypeVar("Ticket")


class Backend(Protocol, Generic[Ticket]):
    """What runs jobs: a pool of processes, or a cluster."""

    def submit(self, job: Job) -> Ticket: ...

    def ended(self, tickets: Sequence[Ticket]) -> Iterable[Ticket]:
        """Those that have ended, after a fraction of a second at the latest."""
        ...

    def answer(self, ticket: Ticket) -> Answer: ...


def collect(backend: Backend[Ticket], jobs: Sequence[Job], stop: Stop) -> Iterator[Outcome]:
    """Every job as it ends, until somebody asks to stop. A run that another driver works on is
    asked for again when there is nothing else to do.
    """
    pending = {backend.submit(job): job for job in jobs}
    later: list[tuple[float, Job]] = []
    while (pending or later) and stop.number is None:
        for ticket in backend.ended(list(pending)) if pending else ():
            job, answer = pending.pop(ticket), backend.answer(ticket)
            if answer.state == "busy":
                later.append((time.monotonic() + AGAIN, job))
            elif answer.state != "stopped":
                outcome = answer.outcome(job)
                if outcome.error is not None and answer.state == "unfit":
                    raise outcome.error
                yield outcome
        if not pending and later:
            time.sleep(0.1)
        ready = [job for moment, job in later if moment <= time.monotonic()]
        later = [(moment, job) for moment, job in later if job not in ready]
        pending |= {backend.submit(job): job for job in ready}


def raise_if_stopped(stop: Stop) -> None:
    if stop.number is not None:
        text = f"stopped by {name(stop.number)}; every run is saved, the same command goes on"
        raise Interrupted(text, stop.number)


def outcomes_told(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    """The same; a failure is told at once, because the others may take hours."""
    for outcome in outcomes:
        if outcome.error is not None:
            warn(f"{outcome.job.out}: {outcome.error}")
        yield outcome
