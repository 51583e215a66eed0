"""`taskhint import`: a run of a model that was exported for transformers."""

from __future__ import annotations

import argparse
from pathlib import Path

from taskhint.cli.arguments import Parser

EXAMPLE = "taskhint import models/tempered --out runs/tempered"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "model_dir", metavar="DIR", help="what `taskhint export --format transformers` wrote"
    )
    parser.add_argument("--out", metavar="RUN", required=True, help="the directory of the run")


def run(options: argparse.Namespace) -> None:
    from taskhint.ecosystem.export import import_transformers

    run = import_transformers(Path(options.model_dir), Path(options.out))
    print(
        f"{run.path}: {run.recipe.name}, seed {run.recipe.seed}, {run.checkpoint.step} updates, "
        "weights only"
    )
