"""`taskhint export`: a run without what only training needs, or as a model of transformers."""

from __future__ import annotations

import argparse
from pathlib import Path

from taskhint.cli.arguments import Parser, add_run

EXAMPLE = "taskhint export runs/tempered --format transformers --out models/tempered"


def add_arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("--out", metavar="DIR", required=True, help="the directory of the copy")
    parser.add_argument(
        "--format",
        choices=["run", "transformers"],
        default="run",
        help="a run like any other (default), or a directory that transformers loads",
    )


def run(options: argparse.Namespace) -> None:
    from taskhint.runs.run import export, load

    run, out = load(options.run_dir), Path(options.out)
    if options.format == "transformers":
        from taskhint.ecosystem.export import export_transformers

        export_transformers(run, out)
    else:
        export(run, out)
    print(
        f"{out}: {run.recipe.name}, seed {run.recipe.seed}, {run.checkpoint.step} updates, "
        + ("for transformers" if options.format == "transformers" else "weights only")
    )
