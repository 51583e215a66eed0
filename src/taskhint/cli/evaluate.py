"""`taskhint evaluate`: accuracy by length, or how far a run reaches. Results are printed before
anything is saved.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from taskhint.cli.arguments import (
    Parser,
    WrongWordError,
    add_device,
    add_lengths,
    add_run,
    add_threads,
    use_threads,
    whole,
)
from taskhint.system.errors import UserError
from taskhint.system.settings import to_json

if TYPE_CHECKING:
    from taskhint.runs.curve import Score
    from taskhint.runs.run import Run

EXAMPLE = (
    "taskhint evaluate runs/tempered --lengths 20-100:20 --examples 10000 --distribution rep:3"
)


def add_arguments(parser: Parser) -> None:
    add_run(parser)
    add_lengths(parser, "input lengths")
    parser.add_argument(
        "--reach",
        type=share,
        metavar="SHARE",
        help="instead of --lengths: the longest length with this share right, as in 0.99, found "
        "by doubling and halving",
    )
    parser.add_argument(
        "--longest",
        type=whole,
        metavar="N",
        help="with --reach: look no further (default: 50 times the longest of training)",
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
    parser.add_argument("--no-save", action="store_true", help="print only, keep nothing")
    add_threads(parser)
    add_device(parser)


def share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise WrongWordError(f"{text:.40} is not a number in 0..1, as 0.99") from None


def run(options: argparse.Namespace) -> None:
    if (options.lengths is None) == (options.reach is None):
        raise UserError("give --lengths, or --reach with a share such as 0.99")
    if options.longest is not None and options.reach is None:
        raise UserError("--longest goes with --reach")
    if options.edit_distance and options.reach is not None:
        raise UserError("--edit-distance goes with --lengths, not with --reach")
    use_threads(options)
    from taskhint.evaluation.versions import warn_of_version
    from taskhint.runs.run import load

    run = load(options.run_dir, options.device, options.precision)
    warn_of_version(run.path, run.recipe)
    if options.reach is None:
        show_curve(run, options)
    else:
        show_reach(run, options)


def show_curve(run: Run, options: argparse.Namespace) -> None:
    from taskhint.evaluation.exact import evaluate
    from taskhint.runs.curve import curve_table, save_curve

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


def show_reach(run: Run, options: argparse.Namespace) -> None:
    from taskhint.evaluation.exact import curve_of
    from taskhint.evaluation.reach import reach
    from taskhint.runs.curve import curve_table, measured_in, save_curve
    from taskhint.runs.reach import save_reach

    scores: dict[int, Score] = {}

    def report(length: int, score: Score) -> None:
        scores[length] = score
        print(f"length {length}: {100 * score.accuracy:.2f}%", file=sys.stderr, flush=True)

    found = reach(
        run,
        options.reach,
        options.longest,
        options.examples,
        options.distribution,
        save=False,
        report=report,
    )
    curve = curve_of(run, options.distribution, scores)
    if options.json:
        print(json.dumps({"reach": to_json(found), "curve": curve.to_json()}, indent=2))
    else:
        print(f"{curve_table(curve)}{found}")
    sys.stdout.flush()
    if not options.no_save:
        save_curve(run.path, curve)
        place = measured_in(run.path, curve.precision)
        save_reach(place, curve.step, curve.distribution, found)
