"""The bits are a function of (seed, stream, index, word), uniform, and never shared between
streams.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from taskhint.tasks.random_bits import MAX_INDEX, TEST_STREAM, RandomBits, keyed_words


@given(
    st.integers(0, 2**31 - 1),
    st.integers(0, 63),
    st.lists(st.integers(0, MAX_INDEX - 1), min_size=1, max_size=5),
)
def test_an_example_does_not_depend_on_its_neighbours(
    seed: int, stream: int, indices: list[int]
) -> None:
    together = RandomBits(seed, stream, indices).words(7)
    for row, index in zip(together, indices, strict=True):
        assert (RandomBits(seed, stream, [index]).words(7)[0] == row).all()


def test_words_are_a_bijection_of_the_counter() -> None:
    """The mixing can be undone, so two counters never give one word: here for 2**20 of them in one
    stream.
    """
    counters = np.arange(1 << 20, dtype=np.uint64) << np.uint64(20)
    assert len(np.unique(keyed_words(5, counters))) == 1 << 20


def test_streams_share_no_word() -> None:
    seen = [
        RandomBits(3, stream, np.arange(2000)).words(40).ravel() for stream in (TEST_STREAM, 2, 3)
    ]
    joined = np.concatenate(seen)
    assert len(np.unique(joined)) == len(joined)


def test_seeds_give_other_words() -> None:
    words = [RandomBits(seed, 2, np.arange(100)).words(10) for seed in range(50)]
    assert len(np.unique(np.concatenate(words))) == 50 * 1000


def test_integers_are_uniform_across_words_and_across_indices() -> None:
    along = RandomBits(0, 2, [7]).integers(10, 100_000)[0]
    across = RandomBits(0, 2, np.arange(100_000)).integers(10, 1)[:, 0]
    for sample in (along, across):
        assert stats.chisquare(np.bincount(sample, minlength=10)).pvalue > 1e-4


def test_neighbouring_counters_are_independent() -> None:
    """Pairs (word, next word) and (index, next index) fill a 10 x 10 table evenly."""
    values = RandomBits(1, 2, np.arange(50_000)).integers(10, 2)
    pairs = values[:, 0] * 10 + values[:, 1]
    neighbours = values[:-1, 0] * 10 + values[1:, 0]
    for sample in (pairs, neighbours):
        assert stats.chisquare(np.bincount(sample, minlength=100)).pvalue > 1e-4


@given(st.integers(1, 30), st.data())
def test_distinct_is_distinct(below: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, below))
    drawn = RandomBits(1, 2, np.arange(20)).distinct(below, count)
    assert drawn.shape == (20, count)
    for row in drawn:
        assert len(set(row.tolist())) == count
        assert set(row.tolist()) <= set(range(below))


def test_distinct_takes_every_ordered_choice_equally_often() -> None:
    drawn = RandomBits(2, 2, np.arange(60_000)).distinct(5, 2)
    table = np.bincount(drawn[:, 0] * 5 + drawn[:, 1], minlength=25).reshape(5, 5)
    assert (np.diag(table) == 0).all()
    assert stats.chisquare(table[~np.eye(5, dtype=bool)]).pvalue > 1e-4


def test_shuffled_keeps_the_symbols_and_takes_every_order() -> None:
    rows = np.tile(np.arange(4), (48_000, 1))
    shuffled = RandomBits(2, 2, np.arange(48_000)).shuffled(rows)
    assert (np.sort(shuffled, axis=1) == rows).all()
    _, counts = np.unique(shuffled, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-4


def test_a_subset_moves_the_common_cursor() -> None:
    bits = RandomBits(0, 2, np.arange(4))
    first = bits.subset(np.array([True, False, True, False])).words(3)
    assert not np.isin(bits.words(3), first).any()


def test_chance_keeps_its_probability() -> None:
    share = RandomBits(0, 2, np.arange(200_000)).chance(0.1).mean()
    assert abs(share - 0.1) < 0.003


@pytest.mark.parametrize("index", [-1, MAX_INDEX])
def test_an_index_outside_the_field_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="index"):
        RandomBits(0, 2, [index])
