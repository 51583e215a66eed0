"""`taskhint export`: a run without what only training needs."""

from __future__ import annotations

import argparse
from pathlib import Path

from taskhint.cli.arguments import Parser, add_run

EXAMPLE = "taskhint export runs/tempered --out models/tempered"


def add_arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument(
        "--out",
        metavar="DIR",
        required=True,
        help="the directory of the copy, a run like any other",
    )


def run(options: argparse.Namespace) -> None:
    from taskhint.runs.run import export, load

    run = export(load(options.run_dir), Path(options.out))
    print(
        f"{run.path}: {run.recipe.name}, seed {run.recipe.seed}, {run.checkpoint.step} updates, "
        "weights only"
    )
