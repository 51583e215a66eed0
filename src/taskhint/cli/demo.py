"""`taskhint demo`: plain, tempered and hinted models in a quarter of an hour on two cores."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from taskhint.cli.arguments import Parser
from taskhint.cli.executors import add_executor, chosen_executor
from taskhint.evaluation.results import find_results
from taskhint.evaluation.summary import series_table, summarise
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe
from taskhint.report.page import write_report
from taskhint.runs.curve import curve_table, load_curves
from taskhint.sweeps.jobs import Job, Measurement
from taskhint.sweeps.sweep import conduct
from taskhint.system.extras import need
from taskhint.system.tables import text_table

EXAMPLE = "taskhint demo --out demo"
UPDATES = 3000
LENGTHS = (5, 10, 20, 30, 50, 70, 100)
EXAMPLES = 1000
MEASUREMENTS = tuple(Measurement(name, LENGTHS, EXAMPLES) for name in ("uniform", "rep:3"))
# A hinted run divides its updates equally between two tasks. So a model without the hint stands
# beside it twice: once with as many updates in all, and once with as many updates of the main
# task, which is half of them.
RUNS = {
    "plain": ("sort/standard", UPDATES),
    "tempered": ("sort/tempered", UPDATES),
    "successor": ("sort/successor", UPDATES),
    "successor-tempered": ("sort/successor-tempered", UPDATES),
    "plain-half": ("sort/standard", UPDATES // 2),
    "tempered-half": ("sort/tempered", UPDATES // 2),
}


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="where runs and report.html go"
    )
    add_executor(parser)


def run(options: argparse.Namespace) -> None:
    """Train and measure all models, print each curve when it is known, write the report."""
    need("matplotlib", "taskhint demo")
    out = Path(options.out)
    executor = chosen_executor(options)
    jobs = [Job(name, _recipe(*what), MEASUREMENTS) for name, what in RUNS.items()]
    jobs.sort(key=lambda job: -job.recipe.steps)
    print(
        (
            f"Training {len(jobs)} models on inputs of at most 20 symbols, then sorting up to "
            f"{LENGTHS[-1]}."
        ),
        flush=True,
    )
    for outcome in conduct(jobs, out, executor, "demo"):
        if outcome.error is not None:
            raise outcome.error
        for curve in outcome.curves:
            print(f"\n{outcome.job.out}: {curve_table(curve)}", end="", flush=True)
    print("\n" + series_table(summarise(find_results(out))))
    print(hint_effect(out))
    report = write_report(out, out / "report.html")
    print(f"Report: {report}\nTry it: taskhint solve {out / 'tempered'} 5 17 43 17")


def hint_effect(out: Path) -> str:
    """What the hint changes, at equal updates in all and at equal updates of the main task."""
    header = [
        "accuracy % with the successor hint, minus without it",
        *(str(length) for length in LENGTHS),
    ]
    rows = []
    for kind, hinted in (("plain", "successor"), ("tempered", "successor-tempered")):
        for equal, other in (("updates in all", kind), ("main-task updates", f"{kind}-half")):
            gains = (
                _accuracy(out / hinted, length) - _accuracy(out / other, length)
                for length in LENGTHS
            )
            rows.append([f"{kind}, equal {equal}", *(f"{100 * gain:+.1f}" for gain in gains)])
    return f"uniform sequences, one seed each\n{text_table(header, rows)}"


def _accuracy(run: Path, length: int) -> float:
    curves = {curve.distribution: curve for curve in load_curves(run)}
    return curves["uniform"][length].accuracy


def _recipe(name: str, steps: int) -> Recipe:
    return replace(find_recipe(name).with_steps(steps), checkpoint_every=500)
