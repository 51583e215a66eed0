"""Writes results/times.json: how long each recipe trains at pocket scale on one core.

    .venv/bin/python tools/time_recipes.py

Times some updates of each and extrapolates; four minutes in all, on an otherwise idle machine. The
minutes in the list of recipes and in the README are held to this file by a test.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from taskhint.recipes import ENTRIES, find_recipe
from taskhint.runs.environment import current
from taskhint.system.files import json_bytes, write_atomically
from taskhint.training.loop import train

RESULT = Path(__file__).parent.parent / "results" / "times.json"
NOT_TIMED = 20
TIMED = 200


def main() -> None:
    torch.set_num_threads(1)
    machine = current()
    recipes = {name: timed(name) for name in ENTRIES}
    about = (
        f"one core; {TIMED} updates timed after {NOT_TIMED} others, and extrapolated to the "
        "recipe's own number"
    )
    times = {
        "about": about,
        "processor": machine.processor,
        "torch": machine.torch,
        "recipes": recipes,
    }
    write_atomically(RESULT, json_bytes(times))


def timed(name: str) -> dict[str, Any]:
    moments: dict[int, float] = {}

    def report(step: int, loss: float) -> None:  # noqa: ARG001
        moments[step] = time.perf_counter()

    recipe = find_recipe(name)
    with tempfile.TemporaryDirectory() as place:
        train(recipe.with_steps(NOT_TIMED + TIMED), Path(place) / "run", report=report)
    each = (moments[NOT_TIMED + TIMED] - moments[NOT_TIMED]) / TIMED
    minutes = round(each * recipe.steps / 60, 2)
    print(f"{name}: {1000 * each:.1f} ms per update, {minutes} minutes", flush=True)
    return {
        "updates": recipe.steps,
        "milliseconds_per_update": round(1000 * each, 2),
        "minutes": minutes,
    }


if __name__ == "__main__":
    main()
