"""The made-up campaign of tools/measure_campaign.py, and what reads its directories.

    python -m tools.campaign_readings CASE DIR      prints peak memory and storage operations

Nothing here imports torch, as the commands that are measured do not.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

from taskhint.cli import main as taskhint
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe
from taskhint.sweeps.grid import jobs_of, points
from taskhint.sweeps.jobs import Job, Measurement, undone
from taskhint.sweeps.plan import check_places, write_plan
from tools.storage_operations import counted

STATUS, END = "`taskhint sweep DIR --status`", "end of a sweep: table, figure, report"
SEEDS = 10
MEASURED = (Measurement("uniform", (20, 40, 60, 80, 100), 1000),)
CHECKPOINTS = (3, 6)  # of a pocket recipe's run, and twice as many


def small(checkpoints: int = CHECKPOINTS[0]) -> Recipe:
    """A run with the files of a pocket recipe's, of a small model."""
    recipe = find_recipe("sort/tempered").with_steps(2 * checkpoints)
    tiny = recipe.change(width=16, mlp_width=16, heads=2, depth=1, batch_size=4)
    return tiny.change(checkpoint_every=2, log_every=1, warmup_steps=0)


def campaign(runs: int) -> list[Job]:
    """Learning rates × seeds."""
    rates = [f"{0.001 + n * 1e-6:.6f}" for n in range(-(-runs // SEEDS))]
    found = points({"sort-tempered": small()}, {"learning_rate": rates})
    return jobs_of(found, SEEDS, MEASURED)[:runs]


def again(root: Path) -> None:
    """What the same command does before it starts a run."""
    jobs = campaign(len(list(root.rglob("recipe.json"))))
    check_places(root, jobs)
    write_plan(root, jobs)
    undone(jobs, root)


def end(root: Path) -> None:
    """What a sweep does after its last run."""
    from taskhint.sweeps.sweep import summary

    summary(root)


READINGS: dict[str, Callable[[Path], object]] = {
    STATUS: lambda root: taskhint(["sweep", str(root), "--status"]),
    "the same sweep again: what is left to do": again,
    "`taskhint report DIR`": lambda root: taskhint(
        ["report", str(root), "--out", str(root / "report.html")]
    ),
    END: end,
}


def peak_mib() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main(case: str, directory: str) -> None:
    root = Path(directory)
    with counted(root) as found, redirect_stdout(sys.stderr):
        READINGS[case](root)
    about = {"cpu_seconds": time.process_time(), "mib": peak_mib()}
    print(json.dumps({**about, "operations": sum(found.values())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
