"""`taskhint sweep`: recipes × a grid × seeds, then one table and one figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from taskhint.cli.arguments import Parser, add_lengths, add_scale, known_scale, whole
from taskhint.cli.executors import add_executor, chosen_executor, tell
from taskhint.cli.train import find_target_recipe, with_hint
from taskhint.recipes.recipe import Recipe
from taskhint.system.errors import UserError
from taskhint.system.extras import need
from taskhint.system.plugins import split_target

EXAMPLE = (
    "taskhint sweep sort/standard sort/tempered --grid model.width=64,128 --seeds 3 "
    "--lengths 20-100:20 --out sweeps/width\n"
    "  taskhint sweep sweeps/width --status"
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "recipes",
        metavar="RECIPE",
        nargs="+",
        help="names from `taskhint list`, my_file.py:my_recipe, or recipe.json files; with "
        "--status the sweep's directory",
    )
    parser.add_argument(
        "--out", metavar="DIR", help="where runs, table and figure go; what is done is skipped"
    )
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="KEY=V1,V2,...",
        help="try each of these values of a setting, with all values of the others (repeatable)",
    )
    parser.add_argument("--seeds", type=whole, default=3, metavar="N", help="seeds 0 to N-1 (3)")
    add_scale(parser)
    parser.add_argument("--steps", type=whole, metavar="N", help="updates of every run")
    parser.add_argument(
        "--hint", action="append", default=[], metavar="NAME", help="add a hint to every recipe"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change every recipe (repeatable)",
    )
    add_lengths(parser, "input lengths to measure")
    parser.add_argument(
        "--examples", type=whole, default=1000, metavar="N", help="sequences per length (1000)"
    )
    parser.add_argument(
        "--distribution",
        action="append",
        metavar="NAME",
        help="test distribution (repeatable; uniform)",
    )
    parser.add_argument("--edit-distance", action="store_true", help="also measure how far off")
    add_executor(parser)
    parser.add_argument(
        "--status", action="store_true", help="how far the sweep in a directory is, then end"
    )


def run(options: argparse.Namespace) -> None:
    if options.status:
        from taskhint.sweeps.status import status

        print(status(_directory(options)), end="")
        return
    if options.out is None or options.lengths is None:
        raise UserError("a sweep needs --out DIR and --lengths (see taskhint sweep --help)")
    _run(options, Path(options.out))


def _directory(options: argparse.Namespace) -> Path:
    (directory, *rest) = options.recipes
    if rest or options.out is not None:
        raise UserError("--status takes one directory: taskhint sweep DIR --status")
    return Path(directory)


def _run(options: argparse.Namespace, out: Path) -> None:
    need("matplotlib", "taskhint sweep")
    from taskhint.evaluation.versions import warn_of_versions
    from taskhint.sweeps.grid import read_grid
    from taskhint.sweeps.jobs import undone
    from taskhint.sweeps.sweep import FIGURE, REPORT, TABLE, conduct, jobs_for, summary

    executor = chosen_executor(options)  # first: it may say at once that there is none
    recipes = {_name(target): _recipe(target, options) for target in options.recipes}
    jobs = jobs_for(
        recipes,
        read_grid(options.grid),
        options.seeds,
        options.lengths,
        options.examples,
        options.distribution or ["uniform"],
        options.edit_distance,
    )
    left = undone(jobs, out, executor.at.precision)
    print(f"{len(jobs)} runs, {len(jobs) - len(left)} of them done", flush=True)
    warn_of_versions(out, (job.recipe for job in jobs))
    error = tell(conduct(jobs, out, executor, "sweep"))
    try:
        print(f"\n{summary(out)}", end="")
        print(*(out / name for name in (TABLE, FIGURE, REPORT)), sep="\n")
    finally:
        if error is not None:
            raise error


def _name(target: str) -> str:
    """What the directories of a recipe's runs are called after."""
    split = split_target(target)
    if split is not None:
        return split[1]
    return Path(target).stem if target.endswith(".json") else target


def _recipe(target: str, options: argparse.Namespace) -> Recipe:
    recipe = find_target_recipe(target, known_scale(options.scale))
    if options.steps is not None:
        recipe = recipe.with_steps(options.steps)
    for kind in options.hint:
        recipe = with_hint(recipe, kind)
    return recipe.with_settings(options.set)
