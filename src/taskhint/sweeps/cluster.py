"""Many runs on a Ray cluster: each is a Ray task that trains and measures in shared storage.

Ray places tasks, restarts them when a worker or a node dies, and gives them their GPUs. A
restarted task goes on from the run's newest checkpoint. What a task does is in `remote.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskhint.runs.tracker import Tracker
from taskhint.sweeps.collecting import collect, raise_if_stopped
from taskhint.sweeps.greeting import answers
from taskhint.sweeps.jobs import Job, Outcome
from taskhint.sweeps.remote import order, work
from taskhint.sweeps.work import ANYWHERE, Answer
from taskhint.system.devices import Compute
from taskhint.system.errors import MachineError, UserError, warn
from taskhint.system.extras import need
from taskhint.system.progress import Progress
from taskhint.system.signals import PATIENCE, Stop

RETRIES = 20  # of a task whose worker or node died; each goes on where the last one was
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


@dataclass(frozen=True)
class RayCluster:
    """At an address; without one at RAY_ADDRESS, at this machine's cluster, or at a new one here.

    `gpus_per_run` is 1 if not given and the cluster has GPUs. Workers see whether they have the
    device and the precision.
    """

    address: str | None = None
    gpus_per_run: float | None = None
    at: Compute = ANYWHERE
    track: Tracker | None = None

    def run(self, jobs: Sequence[Job], root: Path, title: str) -> Iterator[Outcome]:
        ray = connected(self.address)
        try:
            gpus = self.gpus(ray)
            told = order(root.resolve(), gpus, self.at, self.track)
            task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(work)
            with Stop() as stop, Progress(len(jobs), title, unit="run") as progress:
                backend = _Tasks(ray, task, ray.put(told), set())
                try:
                    for number, outcome in enumerate(collect(backend, jobs, stop), start=1):
                        progress.advance_to(number)
                        yield outcome
                finally:
                    backend.stop()
            raise_if_stopped(stop)
        finally:
            ray.shutdown()

    def gpus(self, ray: Any) -> float:
        """What a run asks Ray for."""
        some = ray.cluster_resources().get("GPU", 0) > 0
        if self.gpus_per_run is None:
            return 1.0 if some and self.at.device in ("auto", "cuda") else 0.0
        if self.gpus_per_run and not some:
            warn("the cluster has no GPU now; runs wait until a node with one joins it")
        return self.gpus_per_run


@dataclass(frozen=True)
class _Tasks:
    ray: Any
    task: Any
    order: Any
    pending: set[Any]

    def submit(self, job: Job) -> Any:
        ticket = self.task.remote(self.order, json.dumps(job.to_json()))
        self.pending.add(ticket)
        return ticket

    def ended(self, tickets: Sequence[Any]) -> list[Any]:
        found: list[Any] = self.ray.wait(tickets, num_returns=len(tickets), timeout=0.2)[0]
        return found

    def answer(self, ticket: Any) -> Answer:
        self.pending.discard(ticket)
        errors = self.ray.exceptions
        try:
            return Answer.from_json(json.loads(self.ray.get(ticket)))
        except errors.TaskCancelledError:
            return Answer("stopped")
        except errors.RayTaskError as error:
            return _broken(error)
        except errors.RayError as error:
            text = f"its worker or node died more than {RETRIES} times ({_first_line(error)})"
            return Answer("failed", error=text, exit_code=MachineError.exit_code)

    def stop(self) -> None:
        """Those that train finish their step and save; they get as long as on one machine."""
        for ticket in self.pending:
            self.ray.cancel(ticket, force=False)
        if self.pending:
            waiting = list(self.pending)
            self.ray.wait(waiting, num_returns=len(waiting), timeout=2 * PATIENCE)


def _broken(error: Exception) -> Answer:
    """A task that did not even begin, or an error in taskhint itself."""
    last = str(error).strip().splitlines()[-1]
    if "No module named" in str(error) or "failed to import" in str(error):
        text = f"a worker cannot import taskhint ({last}); install it on every node"
    else:
        text = f"a worker failed: {last}"
    return Answer("unfit", error=text, exit_code=2)


def connected(address: str | None) -> Any:
    """The ray module, connected."""
    check_answers(address)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    need("ray", "--on ray")
    import ray

    try:
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except (RuntimeError, ValueError, ConnectionError, OSError) as error:
        with suppress(Exception):
            ray.shutdown()
        where = address or os.environ.get("RAY_ADDRESS") or "this machine"
        raise UserError(f"no Ray cluster at {where}: {_plain(error)}") from None
    return ray


def check_answers(address: str | None) -> None:
    """Refuse within seconds an address at which Ray itself would wait for minutes."""
    address = address or os.environ.get("RAY_ADDRESS")
    if address in (None, "auto", "local"):
        return
    assert address is not None
    clients, bare = address.startswith("ray://"), address.removeprefix("ray://")
    host, _, port = bare.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise UserError(f"--address {address} is not of the form HOST:PORT")
    if os.environ.get("RAY_USE_TLS") == "1":
        return  # it is asked in plain text
    found = answers(host.strip("[]"), int(port), clients)
    if isinstance(found, str):
        raise MachineError(f"the Ray address {address} does not answer: {found}")
    if not found:
        raise MachineError(
            f"what answers at {address} is no Ray head; its port is 6379 by default"
        )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _plain(error: Exception) -> str:
    """Ray tells versions in several lines."""
    return " ".join(str(error).split())[:400]
