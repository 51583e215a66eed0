"""`taskhint evaluate`: accuracy by length. The table is printed before anything is saved."""

from __future__ import annotations

import argparse
import json

from taskhint.cli.arguments import (
    Parser,
    add_device,
    add_lengths,
    add_run,
    add_threads,
    use_threads,
    whole,
)

EXAMPLE = (
    "taskhint evaluate runs/tempered --lengths 20-100:20 --examples 10000 --distribution rep:3"
)


def add_arguments(parser: Parser) -> None:
    add_run(parser)
    add_lengths(parser, "input lengths", required=True)
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
    parser.add_argument("--no-save", action="store_true", help="print only, keep nothing")
    add_threads(parser)
    add_device(parser)


def run(options: argparse.Namespace) -> None:
    use_threads(options)
    from taskhint.evaluation.exact import evaluate
    from taskhint.runs.curve import curve_table, save_curve
    from taskhint.runs.run import load

    run = load(options.run_dir, options.device, options.precision)
    curve = evaluate(
        run,
        options.lengths,
        options.examples,
        options.distribution,
        options.edit_distance,
        progress=True,
        save=False,
    )
    text = json.dumps(curve.to_json(), indent=2) + "\n" if options.json else curve_table(curve)
    print(text, end="", flush=True)
    if not options.no_save:
        save_curve(run.path, curve)
