"""`taskhint results`: the numbers of every evaluated run as one table, for other tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from taskhint.cli.arguments import Parser

EXAMPLE = "taskhint results runs sweeps --to table.csv"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "dirs", metavar="DIR", nargs="+", help="runs, directories with runs, or packed results"
    )
    parser.add_argument(
        "--to",
        metavar="FILE",
        required=True,
        help="the file to write: NAME.csv or NAME.parquet; - for csv on standard output",
    )
    parser.add_argument(
        "--all-steps",
        action="store_true",
        help="every evaluated checkpoint of a run (default: the newest evaluated one)",
    )


def run(options: argparse.Namespace) -> None:
    from taskhint.evaluation.table import STDOUT, check_name, results

    if options.to != STDOUT:
        check_name(Path(options.to))  # before minutes of reading
    table = results(*options.dirs, all_steps=options.all_steps)
    if options.to == STDOUT:
        sys.stdout.write(table.to_csv())
    else:
        out = table.write(options.to)
        print(f"{out}: {len(table)} rows, {len(table.columns)} columns")
