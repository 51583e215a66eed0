"""What can go wrong without being a bug: each is a single line for the user, with a documented
exit code.
"""

from __future__ import annotations

import difflib
import signal
import sys
from collections.abc import Iterable


class UserError(Exception):
    """Bad input or a damaged file. The command line prints the message as one line and exits with
    this code.
    """

    exit_code = 2
    told = False  # whether a process of a team has said it already


class MachineError(UserError):
    """The machine gave out: a full disk, a directory that is read-only, a process
    that was killed.
    """

    exit_code = 3


class LostTeamError(MachineError):
    """Another process of a team is gone."""


class DivergedError(UserError):
    """A loss, gradient or weight that is not finite."""

    exit_code = 4


class Interrupted(KeyboardInterrupt):
    """A signal asked to stop, and everything is saved. A KeyboardInterrupt, so that a loop over
    runs stops too.
    """

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message, number)
        self.exit_code = 128 + number

    def __str__(self) -> str:
        return str(self.args[0])


def tell(message: str) -> None:
    """One line on standard error."""
    print(f"taskhint: {' '.join(message.splitlines())}", file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """A line on standard error that should not be overlooked."""
    tell(f"WARNING: {message}")


def nearest(word: str, allowed: Iterable[str]) -> str:
    """A tail for an error message: the near match if there is one, and else everything that is
    allowed.
    """
    options = list(allowed)
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return "allowed: " + ", ".join(options)
