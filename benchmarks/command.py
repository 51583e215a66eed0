"""Which parts there are, and the document or tables that they print."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from benchmarks import data, evaluation, explore, field, growth, profiling, training
from benchmarks.contestants import need_packages
from benchmarks.tables import TABLES, machine_line
from taskhint.runs.environment import current
from taskhint.system.errors import UserError, nearest
from taskhint.training import cost

PARTS: dict[str, Callable[[int | None], dict[str, Any]]] = {
    "train": training.measure,
    "evaluate": evaluation.measure,
    "data": data.measure,
    "field": field.measure,
    "explore": explore.measure,
    "profile": profiling.measure,
    "growth": growth.measure,
    "cost": lambda _: cost.measure(),
}


def run_bench(part: str, rounds: int | None = None) -> dict[str, Any]:
    """The results of a part, or of all of them, by part. `rounds` is how often each thing is
    timed.
    """
    if part != "all" and part not in PARTS:
        raise UserError(f"no benchmark {part!r}; {nearest(part, [*PARTS, 'all'])}")
    if rounds == 0:
        raise UserError("--rounds 0 is too few; at least 1")
    if part == "all":
        need_packages()
    chosen = PARTS if part == "all" else {part: PARTS[part]}
    return {"machine": _machine()} | {name: measure(rounds) for name, measure in chosen.items()}


def merged(before: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Earlier results with the parts of a document in place of their own. Where those are from
    another machine or version, each new part says which was its own.
    """
    parts = {name: part for name, part in document.items() if name != "machine"}
    kept = {n: m for n, m in before.get("machines", {}).items() if n not in parts}
    own = (
        {}
        if before["machine"] == document["machine"]
        else dict.fromkeys(parts, document["machine"])
    )
    machines = kept | own
    whole = {name: part for name, part in (before | parts).items() if name != "machines"}
    return whole | ({"machines": machines} if machines else {})


def _machine() -> dict[str, Any]:
    here = current()
    names = ("processor", "system", "threads", "python", "torch", "numpy", "taskhint", "git")
    return {name: getattr(here, name) for name in names} | {"cores": os.cpu_count()}


def as_text(document: dict[str, Any]) -> str:
    text = machine_line(document["machine"]) + "\n"
    for part, result in document.items():
        for table in TABLES[part](result) if part in TABLES else ():
            text += "\n" + table.as_text()
    return text
