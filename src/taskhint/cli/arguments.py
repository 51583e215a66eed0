"""What the commands' arguments are made of. Every error is one line."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from taskhint.system.errors import UserError, nearest

if TYPE_CHECKING:
    from taskhint.recipes.recipe import Scale

MOST_THREADS = 256
MOST_LENGTHS = 10_000


class WrongWordError(UserError, argparse.ArgumentTypeError):
    """What stands behind an option is none of its values; the parser says of which option."""


class Parser(argparse.ArgumentParser):
    """Errors are one line and exit code 2, like every other bad input."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message.replace(chr(10), ' ')} (see {self.prog} --help)")


def add_run(parser: Parser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help="a run directory")


def add_lengths(parser: Parser, about: str, required: bool = False) -> None:
    parser.add_argument(
        "--lengths",
        type=lengths,
        required=required,
        metavar="N,A-B:STEP,...",
        help=f"{about}: numbers and ranges, as in 5,10,20-100:20 (both ends count)",
    )


def add_scale(parser: Parser) -> None:
    parser.add_argument(
        "--scale",
        default="pocket",
        help="pocket (two cores, default), desk (fewer symbols, hours) or paper (its settings)",
    )


def add_threads(parser: Parser) -> None:
    parser.add_argument(
        "--threads", type=threads, metavar="N", help="processor threads (default: all cores)"
    )


def add_device(parser: Parser) -> None:
    parser.add_argument(
        "--device",
        default="auto",
        metavar="NAME",
        help="auto (default: CUDA if it is there, else cpu), cpu, cuda, cuda:N or mps",
    )
    parser.add_argument(
        "--precision",
        default="float32",
        metavar="NAME",
        help="of matrix products: float32 (default), tf32, bfloat16 or bfloat16-attention",
    )


def add_track(parser: Parser) -> None:
    parser.add_argument(
        "--track",
        metavar="NAME",
        help="show the metrics in trackio, wandb, tensorboard or a tracker of your own; a tracker "
        "that fails changes nothing: the run's files have everything",
    )


def use_threads(options: argparse.Namespace) -> None:
    if options.threads is not None:
        import torch

        torch.set_num_threads(options.threads)


def whole(text: str) -> int:
    if len(text) > 18:
        raise WrongWordError(f"{text:.40} is not a whole number of at most 18 digits")
    try:
        value = int(text)
    except ValueError:
        raise WrongWordError(f"{text!r:.60} is not a whole number") from None
    if value < 0:
        raise WrongWordError(f"{value} is negative; allowed: whole numbers from 0 on")
    return value


def threads(text: str) -> int:
    value = whole(text)
    if not 1 <= value <= MOST_THREADS:
        raise WrongWordError(f"{value} is not in 1..{MOST_THREADS}")
    return value


def lengths(text: str) -> list[int]:
    """Numbers and inclusive ranges: `5,10,20-100:20` is 5, 10, 20, 40, 60, 80, 100."""
    found: list[int] = []
    for part in text.split(","):
        some = _range(part)
        if len(found) + len(some) > MOST_LENGTHS:
            raise WrongWordError(f"{text:.60} are more than {MOST_LENGTHS} lengths")
        found += some
    if 0 in found:
        raise WrongWordError("length 0 is not allowed; allowed: whole numbers of at least 1")
    return found


def _range(part: str) -> range:
    first, dash, rest = part.partition("-")
    if not dash or not first:
        value = whole(part)
        return range(value, value + 1)
    last, colon, step = rest.partition(":")
    start, stop, by = whole(first), whole(last), whole(step) if colon else 1
    if by < 1 or stop < start:
        raise WrongWordError(f"{part!r:.60} is not a range; write FIRST-LAST or FIRST-LAST:STEP")
    return range(start, stop + 1, by)


def known_scale(name: str) -> Scale:
    from taskhint.recipes.recipe import SCALES

    if name not in SCALES:
        raise UserError(f"--scale {name} is not known; {nearest(name, SCALES)}")
    return next(scale for scale in SCALES if scale == name)
