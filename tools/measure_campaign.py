"""What a campaign of 10,000 runs costs: measured on made-up runs, computed for 1 to 1,000 nodes.

    .venv/bin/python -m tools.measure_campaign          writes results/campaign.json
    .venv/bin/python -m tools.fill_pages                puts it into docs/clusters.md

One tiny run is trained and measured for real, and its storage operations are counted. Its files,
with other seeds and learning rates, make 10,000 run directories. Each reading of them is timed in
a process of its own, which says how much memory it needed.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.timing import say
from taskhint.runs.curve import DERIVED, LengthCurve, Score
from taskhint.runs.environment import current
from taskhint.sweeps.collecting import collect
from taskhint.sweeps.jobs import Job
from taskhint.sweeps.plan import write_plan
from taskhint.sweeps.work import Answer, do, single_threaded
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.lease import PREFIX, Lease, newest
from taskhint.system.signals import Stop
from tools.campaign_readings import CHECKPOINTS, MEASURED, READINGS, STATUS, campaign, small
from tools.campaign_tables import tables
from tools.storage_operations import KINDS, counted

ROOT = Path(__file__).parent.parent
OUT = ROOT / "results" / "campaign.json"
RUNS = 10_000
AWAY = 32  # runs with a lease of another machine, which --status has to watch
WORKING = 16  # runs that end together in the loop of a driver


def main(arguments: Sequence[str]) -> None:
    runs = int(arguments[0]) if arguments else RUNS
    document = measure(runs)
    if runs == RUNS:
        write_atomically(OUT, json_bytes(document))
    print(tables(document))


def measure(runs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        say("campaign: the life of one run")
        document = {"runs": runs, "machine": _machine(), "one_run": one_run(root / "one")}
        say(f"campaign: {runs} run directories")
        make_runs(root / "one" / "first", root / "many", runs)
        readings = {case: read_apart(case, root / "many") for case in READINGS}
        leave_to_others(root / "many")
        readings[f"{STATUS}, {AWAY} workers elsewhere"] = read_apart(STATUS, root / "many")
        rate = driver_rate(campaign(runs))
    return {**document, "readings": readings, "driver_runs_per_second": rate}


def _machine() -> dict[str, Any]:
    here = current()
    names = ("processor", "system", "python", "torch", "taskhint", "git")
    about = {name: getattr(here, name) for name in names}
    return about | {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}


def one_run(root: Path) -> dict[str, Any]:
    """Operations of a run's life, those of a heartbeat, and bytes of what stays."""
    single_threaded()
    life(Job("warm", small(), MEASURED), root)  # imports are over after it
    few, many = (Job(str(n), small(n), MEASURED) for n in CHECKPOINTS)
    return {
        "operations": life(replace(few, out="first"), root),
        "operations_twice_the_checkpoints": life(many, root),
        "heartbeat": heartbeat(root),
        "bytes": bytes_of(root / "first"),
        "metrics_lines": len((root / "first" / "metrics.jsonl").read_bytes().splitlines()),
    }


def life(job: Job, root: Path) -> dict[str, int]:
    with counted(root) as found:
        answer = do(job, root)
    if answer.state != "done":
        raise UserError(f"the run that is copied failed: {answer.error}")
    return {kind: found[kind] for kind in KINDS}


def heartbeat(root: Path) -> int:
    """Operations of one: what more beats need more."""
    beats, operations = [], []
    for seconds in (0.0, 1.0):
        with counted(root) as found, Lease(root / f"beat-{seconds}", beat=0.02) as held:
            time.sleep(seconds)
            beats.append(int(newest(held.directory).content[:12]))
        operations.append(sum(found.values()))
    return round((operations[1] - operations[0]) / (beats[1] - beats[0]))


def bytes_of(run: Path) -> dict[str, int]:
    """Of each file of a finished run, checkpoints by kind of file."""
    sizes: Counter[str] = Counter()
    for path in run.rglob("*"):
        if path.is_file():
            sizes[path.name] += path.stat().st_size
    return dict(sizes)


def make_runs(first: Path, root: Path, runs: int) -> None:
    """Directories like the first one: other recipes, other results, the same weights."""
    jobs, chance = campaign(runs), random.Random(0)
    for job in jobs:
        copy_run(first, root / job.out, job, chance)
    write_plan(root, jobs)


def copy_run(first: Path, run: Path, job: Job, chance: random.Random) -> None:
    run.mkdir(parents=True)
    for path in sorted(first.rglob("*")):
        new = run / path.relative_to(first)
        if path.is_dir():
            new.mkdir()
        elif path.name == "recipe.json":
            new.write_bytes(json_bytes(job.recipe.to_json()))
        elif "evaluations" in path.parts and path.suffix == ".json":
            new.write_bytes(json_bytes(drawn(read_json(path), job, chance)))
        elif "checkpoints" in path.parts:
            new.hardlink_to(path)
        else:
            new.write_bytes(path.read_bytes())


def drawn(curve: Any, job: Job, chance: random.Random) -> Any:
    """The same curve with other results."""
    curve |= {"run": job.out, "seed": job.recipe.seed}
    for score in curve["lengths"].values():
        score["right"] = chance.randrange(score["examples"] + 1)
        for name in DERIVED:
            score.pop(name, None)
    return curve


def leave_to_others(root: Path) -> None:
    """Some runs without results, held by workers of another machine that have died."""
    for run in sorted(path.parent for path in root.rglob("recipe.json"))[:AWAY]:
        for path in (run / "evaluations").rglob("*.json"):
            path.unlink()
        (lease,) = run.glob(f"{PREFIX}*")
        lease.write_text('000000000007 {"host": "elsewhere", "machine": "x", "pid": 1}\n')


def read_apart(case: str, root: Path) -> dict[str, float]:
    """In a process of its own: seconds from its start to its end, and its peak memory."""
    say(f"campaign: {case}")
    command = [sys.executable, "-m", "tools.campaign_readings", case, str(root)]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise UserError(f"{case} failed: {(done.stderr.strip() or 'killed').splitlines()[-1]}")
    return {"seconds": seconds, **json.loads(done.stdout.splitlines()[-1])}


class Echo:
    """A cluster that needs no time: what is left is the driver's own work, from and to JSON."""

    def __init__(self) -> None:
        scores = {n: Score(1000, 500) for n in MEASURED[0].lengths}
        curve = LengthCurve("a", "sort/tempered", "sort", "uniform", 0, 6, scores)
        self._answer = json.dumps(Answer("done", (curve,)).to_json())
        self._tickets = itertools.count()

    def submit(self, job: Job) -> int:
        json.dumps(job.to_json())
        return next(self._tickets)

    def ended(self, tickets: Sequence[int]) -> Sequence[int]:
        return tickets[:WORKING]

    def answer(self, ticket: int) -> Answer:  # noqa: ARG002
        return Answer.from_json(json.loads(self._answer))


def driver_rate(jobs: Sequence[Job]) -> float:
    """Runs per second of processor that the loop of a driver can hand out and take back."""
    begin = time.process_time()
    with Stop() as stop:
        count = sum(1 for _ in collect(Echo(), jobs, stop))
    return count / (time.process_time() - begin)


if __name__ == "__main__":
    main(sys.argv[1:])
