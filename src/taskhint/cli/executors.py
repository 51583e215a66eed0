"""What `sweep`, `reproduce` and `demo` share: where runs are trained, and how they are told of."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from taskhint.cli.arguments import Parser, add_device, add_track
from taskhint.system.errors import UserError

if TYPE_CHECKING:
    from taskhint.runs.curve import LengthCurve
    from taskhint.sweeps.jobs import Executor, Outcome


def add_executor(parser: Parser) -> None:
    parser.add_argument(
        "--on",
        default="local",
        metavar="local|ray",
        help="train on this machine's cores or GPUs (default), or on a Ray cluster",
    )
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="of the cluster (default: RAY_ADDRESS, or the one of this machine)",
    )
    parser.add_argument(
        "--gpus-per-run",
        type=share,
        metavar="X",
        help="as in 0.25 for four runs on each GPU; 0 for none (default: 1 where there are GPUs)",
    )
    add_track(parser)
    add_device(parser)


def share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{text!r:.40} is not a number") from None


def chosen_executor(options: argparse.Namespace) -> Executor:
    from taskhint.sweeps.sweep import executor_for

    gpus, device, precision = options.gpus_per_run, options.device, options.precision
    return executor_for(options.on, options.address, gpus, device, precision, options.track)


def tell(outcomes: Iterable[Outcome]) -> UserError | None:
    """Print a line for every job as it ends; the first error, to be raised when all is done."""
    errors = []
    for outcome in outcomes:
        if outcome.error is not None:
            errors.append(outcome.error)
            continue
        texts = (f"{curve.distribution} {_percents(curve)}" for curve in outcome.curves)
        print(f"{outcome.job.out}: {'; '.join(texts) or 'done'}", flush=True)
    return errors[0] if errors else None


def _percents(curve: LengthCurve) -> str:
    scores = sorted(curve.scores.items())
    return " ".join(f"{n}:{100 * score.accuracy:.1f}" for n, score in scores)
