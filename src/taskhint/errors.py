"""The one error that a user causes and can mend: a single line that says what was wrong and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Bad input. The command line prints the message as one line and exits with code 2."""


def nearest(word: str, allowed: Iterable[str]) -> str:
    """A tail for an error message: the near match if there is one, and else everything that is allowed."""
    options = list(allowed)
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return "allowed: " + ", ".join(options)
