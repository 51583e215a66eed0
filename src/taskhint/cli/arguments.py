"""What the commands' arguments are made of. Every error is one line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from taskhint.system.errors import UserError, nearest

if TYPE_CHECKING:
    from taskhint.recipes.recipe import Scale


class Parser(argparse.ArgumentParser):
    """Errors are one line and exit code 2, like every other bad input."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message.replace(chr(10), ' ')} (see {self.prog} --help)")


def command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], about: str, example: str
) -> Parser:
    parser: Parser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"example:\n  {example}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_run(parser: Parser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help="a run directory")


def add_threads(parser: Parser) -> None:
    parser.add_argument(
        "--threads", type=whole, metavar="N", help="processor threads (default: all cores)"
    )


def use_threads(options: argparse.Namespace) -> None:
    if options.threads is not None:
        import torch

        torch.set_num_threads(options.threads)


def whole(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise UserError(f"{text!r} is not a whole number") from None
    if value < 0:
        raise UserError(f"{value} is negative; allowed: whole numbers")
    return value


def lengths(text: str) -> list[int]:
    found = [whole(part) for part in text.split(",")]
    if 0 in found:
        raise UserError("length 0 is not allowed; allowed: whole numbers of at least 1")
    return found


def known_scale(name: str) -> Scale:
    from taskhint.recipes.recipe import SCALES

    if name not in SCALES:
        raise UserError(f"--scale {name} is not known; {nearest(name, SCALES)}")
    return "paper" if name == "paper" else "pocket"
