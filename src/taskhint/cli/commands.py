"""The commands: what each takes, and what it does. torch is imported only by those
that need it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from taskhint.cli.arguments import (
    add_run,
    add_threads,
    command,
    known_scale,
    lengths,
    use_threads,
    whole,
)
from taskhint.system.errors import UserError


def add_commands(commands: Any) -> None:
    first = (_add_list, _add_train, _add_evaluate, _add_solve)
    for add in (
        *first,
        _add_export,
        _add_construct,
        _add_probe,
        _add_reproduce,
        _add_report,
        _add_demo,
    ):
        add(commands)


def _add_list(commands: Any) -> None:
    parser = command(
        commands, "list", _list, "recipes, tasks and hints, one line each", "taskhint list"
    )
    parser.add_argument(
        "--markdown", action="store_true", help="as the documentation page docs/recipes.md"
    )


def _list(options: argparse.Namespace) -> None:
    from taskhint.cli.listing import as_markdown, as_text

    print(as_markdown() if options.markdown else as_text(), end="")


def _add_train(commands: Any) -> None:
    parser = command(
        commands,
        "train",
        _train,
        "train a recipe; goes on where DIR left off, if it holds that recipe's run",
        "taskhint train sort/tempered --out runs/tempered --seed 1 --set model.width=256",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="a name from `taskhint list`")
    parser.add_argument("--out", metavar="DIR", required=True, help="the run directory")
    parser.add_argument(
        "--scale",
        default="pocket",
        help="pocket (two cores, default) or paper (the paper's settings)",
    )
    parser.add_argument("--seed", type=whole, metavar="N", help="random seed (default 0)")
    parser.add_argument(
        "--steps",
        type=whole,
        metavar="N",
        help="updates of all tasks together; warm-up scales along",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change any part of the recipe",
    )
    add_threads(parser)


def _train(options: argparse.Namespace) -> None:
    from taskhint.recipes import find_recipe

    recipe = find_recipe(options.recipe, known_scale(options.scale))
    if options.steps is not None:
        recipe = recipe.with_steps(options.steps)
    if options.seed is not None:
        recipe = recipe.change(seed=options.seed)
    recipe = recipe.with_settings(options.set)
    use_threads(options)
    from taskhint.training.loop import train

    run = train(recipe, options.out, progress=True)
    print(f"{run.path}: {recipe.name}, seed {recipe.seed}, {recipe.steps} updates")


def _add_evaluate(commands: Any) -> None:
    parser = command(
        commands,
        "evaluate",
        _evaluate,
        "full-sequence accuracy of a run by length, with 95%% intervals",
        (
            "taskhint evaluate runs/tempered --lengths 20,50,100 --examples 10000 --distribution "
            "rep:3"
        ),
    )
    add_run(parser)
    parser.add_argument(
        "--lengths", type=lengths, required=True, metavar="N,N,...", help="input lengths"
    )
    parser.add_argument(
        "--examples",
        type=whole,
        default=1000,
        metavar="N",
        help="test sequences per length (1000)",
    )
    parser.add_argument(
        "--distribution",
        default="uniform",
        help="uniform (default), rep:R for sort, nines for increment",
    )
    parser.add_argument(
        "--edit-distance",
        action="store_true",
        help="decode the failed ones and measure how far off",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    add_threads(parser)


def _evaluate(options: argparse.Namespace) -> None:
    use_threads(options)
    from taskhint.evaluation.exact import evaluate

    curve = evaluate(
        options.run_dir,
        options.lengths,
        options.examples,
        options.distribution,
        options.edit_distance,
        progress=True,
    )
    if options.json:
        print(json.dumps(curve.to_json(), indent=2))
        return
    from taskhint.evaluation.curve import curve_table

    print(curve_table(curve), end="")


def _add_solve(commands: Any) -> None:
    parser = command(
        commands,
        "solve",
        _solve,
        "the model's answer to an input",
        "taskhint solve runs/tempered 5 17 43 17",
    )
    add_run(parser)
    parser.add_argument(
        "symbols", nargs="*", metavar="SYMBOL", help="the input, one symbol after another"
    )


def _solve(options: argparse.Namespace) -> None:
    from taskhint.runs.run import load

    print(" ".join(load(options.run_dir).solve(options.symbols)))


def _add_export(commands: Any) -> None:
    parser = command(
        commands,
        "export",
        _export,
        "copy a run's weights and recipe without the optimiser's state",
        "taskhint export runs/tempered --out models/tempered",
    )
    add_run(parser)
    parser.add_argument(
        "--out",
        metavar="DIR",
        required=True,
        help="the directory of the copy, a run like any other",
    )


def _export(options: argparse.Namespace) -> None:
    from taskhint.runs.run import export, load

    run = export(load(options.run_dir), Path(options.out))
    print(
        f"{run.path}: {run.recipe.name}, seed {run.recipe.seed}, {run.checkpoint.step} updates, "
        "weights only"
    )


def _add_construct(commands: Any) -> None:
    parser = command(
        commands,
        "construct",
        _construct,
        "write a model that sorts by construction, as a run like any other",
        "taskhint construct --out runs/constructed --symbols 100 --max-length 1000 --layer-norm",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="the run directory")
    parser.add_argument(
        "--symbols", type=whole, default=100, metavar="Q", help="sorts the symbols 1..Q (100)"
    )
    parser.add_argument(
        "--max-length", type=whole, default=1000, metavar="N", help="longest input to serve (1000)"
    )
    parser.add_argument("--layer-norm", action="store_true", help="normalise after each block")
    parser.add_argument(
        "--dtype", default="float32", help="float64, float32 (default), bfloat16 or float16"
    )


def _construct(options: argparse.Namespace) -> None:
    from taskhint.construct import construct

    run = construct(
        options.out, options.symbols, options.max_length, options.layer_norm, options.dtype
    )
    print(
        f"{run.path}: sorts up to {options.max_length} of the symbols 1..{options.symbols}, in "
        f"{options.dtype}"
    )


def _add_probe(commands: Any) -> None:
    parser = command(
        commands,
        "probe",
        _probe,
        (
            "look inside runs: bases, projections, mechanisms, attention, first errors; as "
            "figures, "
            "numbers and a page"
        ),
        'taskhint probe runs/standard runs/tempered --out inside --input "5 17 43 78 92"',
    )
    parser.add_argument(
        "run_dirs", metavar="RUN", nargs="+", help="run directories; several are also compared"
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="where index.html, figures and numbers go"
    )
    parser.add_argument(
        "--input",
        metavar="SYMBOLS",
        help='the input to look at token by token, as "5 17 43 78 92"',
    )
    parser.add_argument(
        "--lengths",
        type=lengths,
        metavar="N,N,...",
        help="input lengths (default: 5 to 100 for sort)",
    )
    parser.add_argument(
        "--examples", type=whole, default=200, metavar="N", help="test sequences per length (200)"
    )
    add_threads(parser)


def _probe(options: argparse.Namespace) -> None:
    use_threads(options)
    from taskhint.report.probe_page import mechanisms_table, write_probe

    out = Path(options.out)
    found = write_probe(
        options.run_dirs, out, options.input, options.lengths, options.examples, progress=True
    )
    print(f"{mechanisms_table(found)}\nPage: {out / 'index.html'}")


def _add_reproduce(commands: Any) -> None:
    parser = command(
        commands,
        "reproduce",
        _reproduce,
        (
            "run the paper's experiments on all cores and report on them; without a name, list "
            "them "
            "with their cost"
        ),
        "taskhint reproduce hint tempered --seeds 3 --out reproduced",
    )
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="experiments; `all` for every one"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="where runs and reports go; what is done there is skipped"
    )
    parser.add_argument(
        "--scale",
        default="pocket",
        help="pocket (two cores, default) or paper (the paper's settings)",
    )
    parser.add_argument("--seeds", type=whole, default=3, metavar="N", help="seeds 0 to N-1 (3)")


def _reproduce(options: argparse.Namespace) -> None:
    from taskhint.experiments import EXPERIMENTS, find_experiment

    scale = known_scale(options.scale)
    if options.seeds < 1:
        raise UserError(f"--seeds {options.seeds} is too few; at least 1")
    every = [experiment.name for experiment in EXPERIMENTS.values() if scale in experiment.scales]
    names = every if "all" in options.names else options.names
    for name in {*names, *options.names} - {"all"}:
        find_experiment(name)
    from taskhint.cli.campaign import listing, reproduce

    if not names:
        print(listing(scale, options.seeds), end="")
        return
    if options.out is None:
        raise UserError("--out is needed: where runs and reports go")
    reproduce(names, scale, options.seeds, Path(options.out))


def _add_report(commands: Any) -> None:
    parser = command(
        commands,
        "report",
        _report,
        "one HTML file with the curves and tables of every evaluated run below DIR",
        "taskhint report runs --out report.html",
    )
    parser.add_argument("dir", metavar="DIR", help="a run, or a directory with runs in it")
    parser.add_argument("--out", metavar="FILE.html", required=True, help="the file to write")


def _report(options: argparse.Namespace) -> None:
    from taskhint.report.page import write_report

    print(write_report(Path(options.dir), Path(options.out)))


def _add_demo(commands: Any) -> None:
    parser = command(
        commands,
        "demo",
        _demo,
        "train plain, tempered and hinted models, compare them by length, write a report",
        "taskhint demo --out demo",
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="where runs and report.html go"
    )


def _demo(options: argparse.Namespace) -> None:
    from taskhint.cli.demo import demo

    demo(Path(options.out))
