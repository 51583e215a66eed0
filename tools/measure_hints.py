"""Writes results/hints.json: losses and gradients of runs with and without the hint, and how they
first fail.

    .venv/bin/python tools/measure_hints.py reproduced

Needs the runs themselves, with weights and metrics, as `taskhint reproduce hint-muon hint-long
hint-tempered hint-long-tempered hint-share hint-definition --out reproduced` leaves them.
tools/fill_pages.py and tools/draw_figures.py take it from there.
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from taskhint.evaluation.results import find_results
from taskhint.experiments import find_experiment
from taskhint.experiments.findings import find_all
from taskhint.probe import Subject, first_errors
from taskhint.recipes.recipe import Recipe
from taskhint.runs.run import load
from taskhint.system.files import json_bytes, write_atomically

RESULT = Path(__file__).parent.parent / "results" / "hints.json"
LENGTHS = {
    "hint-muon": 30,
    "hint-long": 50,
    "hint-tempered": 100,
    "hint-long-tempered": 100,
    "hint-share": 100,
    "hint-definition": 100,
}
SEQUENCES = 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reproduced", type=Path)
    options = parser.parse_args()
    measured: dict[str, Any] = {}
    results = find_results(options.reproduced)
    for name, length in LENGTHS.items():
        (finding,) = find_all(results, [find_experiment(name)])
        seeds = {
            arm.label: [run.path for run in runs if run.path.is_dir()]
            for arm, runs in finding.runs.items()
        }
        measured[name] = {
            "length": length,
            "sequences": SEQUENCES,
            "arms": {
                label: [measure(path, length) for path in paths]
                for label, paths in seeds.items()
                if paths
            },
        }
    write_atomically(RESULT, json_bytes(measured))


@cache
def measure(path: Path, length: int) -> dict[str, Any]:
    run = load(path)
    found = first_errors(Subject.of(run), [length], SEQUENCES)
    errors = {kind: round(found.lengths[length].share_of_error(kind), 5) for kind in found.errors}
    right = found.lengths[length].share_right
    return {
        "seed": run.recipe.seed,
        "right": right,
        "first_errors": errors,
        **training(path, run.recipe),
    }


def training(path: Path, recipe: Recipe) -> dict[str, Any]:
    """The main task's losses by its updates until then, and each task's mean gradient norm in the
    first half.
    """
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    losses = {
        str(recipe.update(line["step"])[1].batch): round(line["loss"], 6)
        for line in lines
        if line["task"] == recipe.task.kind
    }
    early = [line for line in lines if line["step"] < recipe.steps // 2]
    norms = {
        task.kind: round(
            fmean(line["gradient_norm"] for line in early if line["task"] == task.kind), 4
        )
        for task in recipe.tasks
    }
    return {"main_losses": losses, "gradient_norms": norms}


if __name__ == "__main__":
    main()
