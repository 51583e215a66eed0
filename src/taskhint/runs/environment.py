"""environment.json: what results can depend on besides the recipe, for every stretch of a run."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import torch

import taskhint
from taskhint.system.errors import UserError, warn
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.plugins import own_sources_of
from taskhint.system.settings import conform, to_json

_PACKAGE = Path(__file__).parent.parent
_CODE = {"taskhint", "source"}
_NOTED_ONLY = {"git", "git_changes"}  # `source` says whether the code itself differs
# What decides weights: these rooms, without the files that name recipes or compute costs.
_DECIDING = ("tasks", "data", "model", "recipes", "training")
_NOT_DECIDING = {"recipes/__init__.py", "recipes/entry.py", "recipes/sort.py"}
_NOT_DECIDING |= {"recipes/increment.py", "training/cost.py", "training/limits.py"}


@dataclass(frozen=True)
class Own:
    """A file or module of the user's that a class of the recipe comes from, and its SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Environment:
    taskhint: str
    source: str  # SHA-256 of the package's code that decides weights
    git: str  # commit, or nothing if the package is no checkout
    git_changes: bool
    python: str
    torch: str
    numpy: str
    threads: int
    processor: str
    instructions: str  # which vector instructions torch uses
    system: str
    own: tuple[Own, ...] = ()
    device: str = "cpu"
    precision: str = "float32"
    processes: int = 1

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


Compute = tuple[str, str, int]
"""Kind of device, precision and number of processes."""


def current(recipe: Any = None, compute: Compute = ("cpu", "float32", 1)) -> Environment:
    """Of this process; with what the recipe takes from the user's own files."""
    device, precision, processes = compute
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
        own=own_sources(recipe),
        device=device,
        precision=precision,
        processes=processes,
    )


def own_sources(value: Any) -> tuple[Own, ...]:
    """The files that define what a recipe is made of, beside taskhint's own."""
    classes = {base for item in _parts(value) for base in type(item).__mro__}
    return tuple(Own(*found) for found in sorted(own_sources_of(classes)))


def _parts(value: Any) -> Iterator[Any]:
    """Every settings object inside a settings object, itself among them."""
    if is_dataclass(value):
        yield value
        for field in fields(value):
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _parts(item)


def own_names(path: Path) -> list[str]:
    """Names of the user's files that environment.json notes; none if it cannot be read."""
    try:
        return sorted(
            {own.name for s in read_history(path).stretches for own in s.environment.own}
        )
    except UserError:
        return []


def read_history(path: Path) -> History:
    history: History = conform(History, read_json(path), str(path))
    return history


def record(
    path: Path, step: int, recipe: Any = None, compute: Compute = ("cpu", "float32", 1)
) -> None:
    """Note where the run goes on from a step; warn if it was elsewhere before."""
    now = current(recipe, compute)
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
    if {*_CODE, "own"} & set(different):
        lost += ", nor to come from one version of the code"
    warn(f"{run} goes on in another environment ({changes}): {lost}")


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(f"{own.name} {_short(own.sha256)}" for own in value) or "none"
    text = str(value)
    return text[:8] if len(text) == 64 else text


@cache
def _source() -> str:
    total = hashlib.sha256()
    for room in _DECIDING:
        for path in sorted((_PACKAGE / room).rglob("*.py")):
            name = path.relative_to(_PACKAGE).as_posix()
            if name not in _NOT_DECIDING:
                total.update(f"{name}\n{code_text(path.read_text())}\n".encode())
    return total.hexdigest()


def code_text(source: str) -> str:
    """What Python code does, without its prose: comments, docstrings, texts of errors, `about`."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [part for part in body if not _is_prose(part)]
        if isinstance(node, ast.Raise):
            node.exc = node.cause = None
    return ast.dump(tree)


def _is_prose(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.AnnAssign):
        return isinstance(statement.target, ast.Name) and statement.target.id == "about"
    return False


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
