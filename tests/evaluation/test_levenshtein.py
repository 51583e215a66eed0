"""The edit distance, against its definition."""

from __future__ import annotations

import random
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from taskhint.evaluation.levenshtein import levenshtein


def by_definition(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if min(i, j) == 0:
            return max(i, j)
        replaced = distance(i - 1, j - 1) + (first[i - 1] != second[j - 1])
        return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, replaced)

    return distance(len(first), len(second))


symbols = st.lists(st.integers(0, 3), max_size=12).map(tuple)


@settings(deadline=None)
@given(symbols, symbols)
def test_short_sequences(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    assert levenshtein(first, second) == by_definition(first, second)


def test_sequences_longer_than_a_machine_word() -> None:
    draw = random.Random(0)
    for symbols in (2, 10, 100):
        first, second = (tuple(draw.choices(range(symbols), k=n)) for n in (130, 97))
        assert levenshtein(first, second) == by_definition(first, second)
        assert levenshtein(first, first) == 0 and levenshtein(first, ()) == len(first)
