"""Levenshtein's distance, a whole column of its table at a time (Myers 1999, Hyyrö 2003).

Neighbours in the table differ by -1, 0 or 1. A Python integer of any length holds where a column
goes up and another where it goes down, so that a column takes a dozen operations on integers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def levenshtein(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """How many symbols have to be inserted, deleted or replaced."""
    if not first:
        return len(second)
    places: dict[Hashable, int] = {}  # of each symbol of the first, a bit per place
    for place, symbol in enumerate(first):
        places[symbol] = places.get(symbol, 0) | 1 << place
    everything, last = (1 << len(first)) - 1, 1 << len(first) - 1
    up, down, distance = everything, 0, len(first)
    for symbol in second:
        equal = places.get(symbol, 0)
        diagonal = (((equal & up) + up) ^ up) | equal | down
        right_up = down | ~(diagonal | up)
        right_down = up & diagonal
        distance += bool(right_up & last) - bool(right_down & last)
        right_up = right_up << 1 | 1  # the row above the table goes up by one each time
        up = (right_down << 1 | ~(diagonal | right_up)) & everything
        down = right_up & diagonal & everything
    return distance
