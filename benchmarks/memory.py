"""Peak memory of whole processes: each case runs in a process of its own, which says what it
needed at most.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing import say
from taskhint.system.errors import UserError

TRAINED_RECIPE = "sort/all-hints"  # every task of the family takes its turn
UPDATES = 40
LONG, SEQUENCES = 1000, 1000


def peak_mib(case: str, *sizes: int) -> dict[str, float]:
    """Peak memory of a case in MiB, and the seconds that its work took."""
    say(f"peak memory: {case}")
    command = [
        sys.executable,
        "-m",
        "benchmarks.memory",
        case,
        str(torch.get_num_threads()),
        *map(str, sizes),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(
            f"measuring the memory of {case!r} failed: "
            f"{(done.stderr.strip() or 'it was killed').splitlines()[-1]}"
        )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def own_peak_mib() -> float:
    """What this process has needed at most so far.

    Linux hands the parent's peak on to a child in getrusage, so its own count in /proc is taken
    where there is one.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def train_pocket(updates: int = UPDATES) -> None:
    from taskhint.recipes import find_recipe
    from taskhint.training.loop import train

    with tempfile.TemporaryDirectory() as directory:
        train(find_recipe(TRAINED_RECIPE).with_steps(updates), Path(directory) / "run")


def evaluate_long(length: int = LONG, sequences: int = SEQUENCES) -> None:
    from taskhint.evaluation.exact import score
    from taskhint.recipes import find_recipe
    from taskhint.runs.run import new_decoder

    recipe = find_recipe("sort/standard")
    score(
        new_decoder(recipe),
        recipe.task.for_test("uniform"),
        0,
        length,
        sequences,
        edit_distance=False,
    )


CASES: dict[str, Callable[..., None]] = {"train": train_pocket, "evaluate": evaluate_long}


def main(arguments: list[str]) -> None:
    case, threads, *sizes = arguments
    torch.set_num_threads(int(threads))
    begin = time.perf_counter()
    CASES[case](*map(int, sizes))
    seconds = time.perf_counter() - begin
    result: dict[str, Any] = {"mib": own_peak_mib(), "seconds": seconds}
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
