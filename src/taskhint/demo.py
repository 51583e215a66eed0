"""The main job in a quarter of an hour on two cores: plain, tempered and hinted models, measured far out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from taskhint.evaluation.summary import summarise
from taskhint.parallel import Job, Measurement, run_jobs
from taskhint.recipe import Recipe
from taskhint.recipes import find_recipe
from taskhint.report.page import write_report
from taskhint.report.table import curve_table, series_table

MAIN_UPDATES = 2000
LENGTHS = (5, 10, 20, 30, 50, 70, 100)
EXAMPLES = 1000
MEASUREMENTS = tuple(Measurement(name, LENGTHS, EXAMPLES) for name in ("uniform", "rep:3"))
# A hinted run divides its updates between two tasks, so it stands beside a plain one twice: with as many updates of
# the main task, and with as many updates in all.
RUNS = {
    "plain": ("sort/standard", MAIN_UPDATES),
    "tempered": ("sort/tempered", MAIN_UPDATES),
    "successor-equal-main": ("sort/successor", 2 * MAIN_UPDATES),
    "successor-tempered-equal-main": ("sort/successor-tempered", 2 * MAIN_UPDATES),
    "successor-equal-total": ("sort/successor", MAIN_UPDATES),
    "successor-tempered-equal-total": ("sort/successor-tempered", MAIN_UPDATES),
}


def demo(out: Path) -> None:
    """Train and measure all models, print each curve when it is known, then all of them, and write the report."""
    jobs = [Job(out / name, _recipe(*what), MEASUREMENTS) for name, what in RUNS.items()]
    print(
        f"Training {len(jobs)} models on inputs of at most 20 symbols, then sorting up to {LENGTHS[-1]}.",
        flush=True,
    )
    for job, curves in run_jobs(sorted(jobs, key=lambda job: -job.recipe.steps), "demo"):
        for curve in curves:
            print(f"\n{job.out.name}: {curve_table(curve)}", end="", flush=True)
    print("\n" + series_table(summarise(out)))
    report = write_report(out, out / "report.html")
    print(f"Report: {report}\nTry it: taskhint solve {out / 'tempered'} 5 17 43 17")


def _recipe(name: str, steps: int) -> Recipe:
    return replace(find_recipe(name).with_steps(steps), checkpoint_every=500)
