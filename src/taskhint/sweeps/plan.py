"""sweep.json: which runs a directory is meant to hold, so that others can see how far it is.

It holds no recipe: those stand with the runs. A directory can be given several sweeps, one after
the other or at the same time; the file has the runs of all of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from taskhint.recipes.recipe import Recipe
from taskhint.runs.curve import PLAIN
from taskhint.sweeps.jobs import Job, Measurement
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, parse_json, read_bytes, read_json, write_atomically
from taskhint.system.lock import one_at_a_time
from taskhint.system.settings import Settings, conform, to_json

PLAN = "sweep.json"
TOKEN = ".sweep"
LARGEST = 1 << 28  # bytes: some million runs


@dataclass(frozen=True)
class Planned(Settings):
    """Runs of which the same is measured with the same precision: updates by directory."""

    measurements: tuple[Measurement, ...]
    mechanisms: tuple[int, ...]
    runs: dict[str, int] = field(default_factory=dict)
    precision: str = PLAIN


@dataclass(frozen=True)
class Plan(Settings):
    groups: tuple[Planned, ...] = ()

    def merged(self, jobs: Sequence[Job], precision: str) -> Plan:
        """With these jobs; what a run was asked for before with that precision gives way."""
        new: dict[tuple[tuple[Measurement, ...], tuple[int, ...], str], dict[str, int]] = {}
        for job in jobs:
            runs = new.setdefault((job.measurements, job.mechanisms, precision), {})
            runs[job.out] = job.recipe.steps
        outs = {job.out for job in jobs}
        for group in self.groups:
            gone = outs if group.precision == precision else ()
            kept = {out: steps for out, steps in group.runs.items() if out not in gone}
            runs = new.setdefault((group.measurements, group.mechanisms, group.precision), {})
            runs |= kept
        groups = (
            Planned(measurements, mechanisms, runs, measured)
            for (measurements, mechanisms, measured), runs in new.items()
            if runs
        )
        return Plan(tuple(groups))


def write_plan(root: Path, jobs: Sequence[Job], precision: str = PLAIN) -> None:
    with one_at_a_time(root):
        before = read_plan(root) if (root / PLAN).exists() else Plan()
        after = before.merged(jobs, precision)
        if after != before:
            write_atomically(root / PLAN, json_bytes(to_json(after)))


def read_plan(root: Path) -> Plan:
    path = root / PLAN
    if not path.is_file():
        raise UserError(f"{root} holds no sweep: it has no {PLAN}")
    try:
        plan: Plan = conform(Plan, parse_json(path, read_bytes(path, LARGEST)), "it")
    except UserError as error:
        raise UserError(f"{path} is damaged: it does not list runs ({error})") from None
    return plan


def shared_token(root: Path) -> str:
    """A word in the sweep's directory: who reads the same word there sees the same directory."""
    path = root / TOKEN
    with one_at_a_time(root):
        if not path.exists():
            write_atomically(path, f"{secrets.token_hex(16)}\n".encode())
        return read_token(root)


def read_token(root: Path) -> str:
    """Empty if there is none."""
    try:
        return (root / TOKEN).read_text().strip()
    except (OSError, ValueError):
        return ""


def check_places(root: Path, jobs: Sequence[Job]) -> None:
    """Refuse, before anything is trained, a directory that holds other runs under these names."""
    for job in jobs:
        path = root / job.out / "recipe.json"
        if not path.exists():
            continue
        data = read_json(path)
        if data == job.recipe.to_json():  # quick, and nearly always so
            continue
        different = job.recipe.differences(Recipe.from_json(data, str(path)))
        if different:
            raise UserError(
                f"{root / job.out} holds another run; it differs in {', '.join(different[:4])}; "
                "choose another --out"
            )
