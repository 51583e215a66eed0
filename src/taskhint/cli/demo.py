"""`taskhint demo`: the paper's ideas at work, in some ten minutes on two cores."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from taskhint.cli.arguments import Parser
from taskhint.cli.executors import add_executor, chosen_executor
from taskhint.evaluation.results import find_results
from taskhint.evaluation.summary import series_table, summarise
from taskhint.experiments.ours.hints import FEW, few_symbols
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe
from taskhint.report.page import write_report
from taskhint.runs.curve import LengthCurve, curve_table, load_curves
from taskhint.sweeps.jobs import Job, Measurement
from taskhint.sweeps.sweep import conduct
from taskhint.system.extras import need

EXAMPLE = "taskhint demo --out demo"
LENGTHS = (5, 10, 20, 30, 50, 70, 100)
MEASUREMENTS = (Measurement("uniform", LENGTHS, 1000),)
# The hint helps most where plain training is blunt: with weight decay, after many updates. It
# stands beside plain training with its settings there, and beside plain training at its best.
ON_FEW_SYMBOLS = {
    "plain": ("sort/standard", 6000),
    "hint": ("sort/successor", 6000),
    "plain-at-its-best": ("sort/no-decay", 2000),
    "tempered": ("sort/tempered", 2000),
}
BEST_UPDATES = 3000


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="where runs and report.html go"
    )
    add_executor(parser)


def recipes() -> dict[str, Recipe]:
    """By the directories of their runs; the longest training first."""
    few = {
        name: few_symbols(recipe, name).at("pocket").with_steps(updates)
        for name, (recipe, updates) in ON_FEW_SYMBOLS.items()
    }
    every = {**few, "best": find_recipe("sort/best").with_steps(BEST_UPDATES)}
    longest_first = sorted(every.items(), key=lambda item: -item[1].steps)
    return {name: replace(recipe, checkpoint_every=500) for name, recipe in longest_first}


def run(options: argparse.Namespace) -> None:
    """Train and measure all models, print each curve when it is known, write the report."""
    need("matplotlib", "taskhint demo")
    out = Path(options.out)
    executor = chosen_executor(options)
    jobs = [Job(name, recipe, MEASUREMENTS) for name, recipe in recipes().items()]
    print(
        f"Training {len(jobs)} models on inputs of at most 20 symbols, then sorting up to "
        f"{LENGTHS[-1]}.",
        flush=True,
    )
    for outcome in conduct(jobs, out, executor, "demo"):
        if outcome.error is not None:
            raise outcome.error
        for curve in outcome.curves:
            print(f"\n{outcome.job.out}: {curve_table(curve)}", end="", flush=True)
    print("\n" + series_table(summarise(find_results(out))))
    precision = executor.at.precision
    print(what_is_seen({job.out: _curve(out / job.out, precision) for job in jobs}))
    report = write_report(out, out / "report.html")
    print(f"Report: {report}\nTry it: taskhint solve {out / 'best'} 5 17 43 17")


def what_is_seen(curves: Mapping[str, LengthCurve]) -> str:
    """Three sentences on the models of the demo, by their directories."""

    def at(name: str, length: int) -> str:
        return f"{100 * curves[name][length].accuracy:.1f}%"

    def against(other: str) -> str:
        ours, theirs = (curves[name][50].interval for name in ("hint", other))
        if ours.low > theirs.high:
            return "wins against"
        return "loses against" if ours.high < theirs.low else "cannot be told from"

    return (
        f"On {FEW} symbols plain training at its best, without weight decay, sorts "
        f"{at('plain-at-its-best', 50)} of sequences of 50 and {at('plain-at-its-best', 100)} of "
        f"100; with tempered attention it is {at('tempered', 50)} and {at('tempered', 100)}.\n"
        f"The successor hint ({at('hint', 50)} at 50) {against('plain')} plain training with the "
        f"same settings ({at('plain', 50)}), and {against('plain-at-its-best')} plain training at "
        "its best, which had a third of the updates.\n"
        f"sort/best sorts {at('best', 100)} of sequences of 100 out of 100 symbols, five times "
        "its longest training input.\n"
        "One seed each: other seeds differ by ten points and more at 50."
    )


def _curve(run: Path, precision: str) -> LengthCurve:
    curves = load_curves(run, precision=precision)
    (curve,) = (one for one in curves if one.distribution == "uniform")
    return curve
