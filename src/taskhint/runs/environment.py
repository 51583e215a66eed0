"""environment.json: what results can depend on besides the recipe, for every stretch of a run that
had its own.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from dataclasses import dataclass, fields
from pathlib import Path

import numpy
import torch

import taskhint
from taskhint.system.errors import UserError, warn
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.settings import conform, to_json

_PACKAGE = Path(__file__).parent.parent
_CODE = {"taskhint", "source"}
_NOTED_ONLY = {"git", "git_changes"}  # `source` says whether the code itself differs


@dataclass(frozen=True)
class Environment:
    taskhint: str
    source: str  # SHA-256 of the package's files
    git: str  # commit, or nothing if the package is no checkout
    git_changes: bool
    python: str
    torch: str
    numpy: str
    threads: int
    processor: str
    instructions: str  # which vector instructions torch uses
    system: str

    def differences(self, other: Environment) -> list[str]:
        """Names of what differs and can change results."""
        names = [field.name for field in fields(self) if field.name not in _NOTED_ONLY]
        return [name for name in names if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True)
class Stretch:
    """From this step on, the run had this environment."""

    from_step: int
    environment: Environment


@dataclass(frozen=True)
class History:
    stretches: tuple[Stretch, ...]


def current() -> Environment:
    commit, changes = _git()
    return Environment(
        taskhint=taskhint.__version__,
        source=_source(),
        git=commit,
        git_changes=changes,
        python=platform.python_version(),
        torch=torch.__version__,
        numpy=numpy.__version__,
        threads=torch.get_num_threads(),
        processor=_processor(),
        instructions=torch.backends.cpu.get_cpu_capability(),
        system=platform.system(),
    )


def read_history(path: Path) -> History:
    history: History = conform(History, read_json(path), str(path))
    return history


def record(path: Path, step: int) -> None:
    """Note where the run goes on from a step; warn if it was elsewhere before."""
    now = current()
    before: tuple[Stretch, ...] = ()
    if path.exists():
        try:
            before = read_history(path).stretches
        except UserError as error:
            warn(f"{error}; whether the run goes on as it began is not known")
    earlier = [stretch for stretch in before if stretch.from_step < step]
    if earlier and earlier[-1].environment == now:
        return
    if earlier:
        _warn_of_change(path.parent, earlier[-1].environment, now)
    history = History((*earlier, Stretch(step, now)))
    if history.stretches != before:
        write_atomically(path, json_bytes(to_json(history)))


def _warn_of_change(run: Path, before: Environment, now: Environment) -> None:
    different = before.differences(now)
    if not different:
        return
    changes = ", ".join(
        f"{name} {_short(getattr(before, name))} -> {_short(getattr(now, name))}"
        for name in different
    )
    lost = (
        "weights and metrics are no longer sure to be those of an uninterrupted run, bit for bit"
    )
    if _CODE & set(different):
        lost += ", nor to come from one version of the code"
    warn(f"{run} goes on in another environment ({changes}): {lost}")


def _short(value: object) -> str:
    text = str(value)
    return text[:8] if len(text) == 64 else text


def _source() -> str:
    total = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        total.update(f"{path.relative_to(_PACKAGE)}\n".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _git() -> tuple[str, bool]:
    """The commit that the package stands in, and whether its files differ from it."""
    if _run_git("ls-files", "--", "__init__.py") in (None, ""):
        return "", False
    return _run_git("rev-parse", "HEAD") or "", bool(_run_git("status", "--porcelain", "--", "."))


def _run_git(*arguments: str) -> str | None:
    command = ["git", "-C", str(_PACKAGE), *arguments]
    quiet = {"GIT_OPTIONAL_LOCKS": "0"}  # looking must not touch the repository
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, env={**os.environ, **quiet}
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
