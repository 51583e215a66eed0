"""What a worker on another machine does: see whether it fits, import the user's files, do the job.

Arguments and answers are JSON. Nothing comes from the driver but jobs and the files that the user
imports; runs stand in the sweep's directory, which every machine sees.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import shutil
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import taskhint
from taskhint.runs.tracker import Tracker, find_tracker, sources_for
from taskhint.sweeps.jobs import Job
from taskhint.sweeps.plan import read_token, shared_token
from taskhint.sweeps.work import ANYWHERE, Answer, do, single_threaded
from taskhint.system.devices import Compute, compute
from taskhint.system.errors import UserError
from taskhint.system.files import write_atomically
from taskhint.system.plugins import import_source
from taskhint.system.settings import to_json


def order(root: Path, gpus: float, at: Compute = ANYWHERE, track: Tracker | None = None) -> str:
    """What all workers of a sweep are told."""
    sources = sources_for(track)
    files = [[Path(one).name, Path(one).read_text()] for one in sources if one.endswith(".py")]
    return json.dumps(
        {
            "root": str(root),
            "token": shared_token(root),
            "versions": versions(),
            "files": files,
            "modules": [one for one in sources if not one.endswith(".py")],
            "gpus": gpus,
            "device": at.device,
            "precision": at.precision,
            "track": to_json(track),
        }
    )


def versions() -> dict[str, str]:
    """What decides whether a worker computes what the driver's machine would."""
    return {
        "Python": platform.python_version(),
        "torch": version("torch").partition("+")[0],
        "taskhint": taskhint.__version__,
    }


def work(given: str, job: str) -> str:
    """The task: from JSON to JSON."""
    try:
        told = json.loads(given)
        root = Path(told["root"])
        _prepare(given)
        _check_root(root, told["token"])
    except UserError as error:
        return json.dumps(Answer("unfit", error=str(error), exit_code=error.exit_code).to_json())
    try:
        at = Compute(told["device"], told["precision"])
        track = None if told["track"] is None else find_tracker(told["track"])
        answer = do(Job.from_json(json.loads(job)), root, at=at, track=track)
    except UserError as error:
        answer = Answer("failed", error=str(error), exit_code=error.exit_code)
    return json.dumps(answer.to_json())


@cache
def _prepare(given: str) -> None:
    """Once in a worker."""
    told = json.loads(given)
    if not told["gpus"]:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before anything asks for GPUs
    check_versions(told["versions"])
    single_threaded()
    check_device(told["device"], told["precision"])
    _import(told)


def check_versions(wanted: dict[str, str]) -> None:
    here = versions()
    different = [
        f"{name} {here[name]} instead of {wanted[name]}"
        for name in wanted
        if here.get(name) != wanted[name]
    ]
    if different:
        raise UserError(f"node {platform.node()} has {', '.join(different)}; install the same")


def check_device(device: str, precision: str) -> None:
    try:
        compute(device, precision)
    except UserError as error:
        raise UserError(f"node {platform.node()}: {error}") from None


def _check_root(root: Path, token: str) -> None:
    if read_token(root) != token:
        raise UserError(
            f"node {platform.node()} does not see {root}; a sweep on a cluster needs storage that "
            "all nodes share, at the same path"
        )


def _import(told: dict[str, Any]) -> None:
    """The user's modules, and the user's files from where they are unpacked here."""
    for name in told["modules"]:
        import_source(name)
    home = Path(tempfile.mkdtemp(prefix="taskhint-"))  # which nobody else can write into
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    try:
        for number, (name, text) in enumerate(told["files"]):
            path = home / str(number) / name
            write_atomically(path, text.encode())
            import_source(str(path))
    except UserError as error:
        if "No module named" not in str(error):
            raise
        raise UserError(f"{error}; on a cluster, name what it imports with --import too") from None
