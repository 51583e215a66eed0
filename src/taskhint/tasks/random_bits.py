"""Random bits as a function of (seed, stream, index, word): nothing to store, nothing to advance,
any order.

A word is a keyed bijection of a 64-bit counter. The counter holds the stream, the example's index
and the word's number in separate bit fields, so under one seed no two of them give the same word:
a test example can never be drawn from the bits of a training example.

    counter:  | stream 6 bits | index 38 bits | word 20 bits |
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from taskhint.system.errors import UserError

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

WORD_BITS = 20
INDEX_BITS = 38
MAX_INDEX = 1 << INDEX_BITS
MAX_WORDS = 1 << WORD_BITS

TEST_STREAM = 0
ORDER_STREAM = 1
FIRST_TASK_STREAM = 2
POSITION_STREAM = 63
STREAMS = 64


_ODD = np.uint64(0x9E3779B97F4A7C15)


def _mix(x: Words) -> Words:
    """A bijection of 64-bit words that scatters every input bit (the finaliser of SplitMix64)."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def keyed_words(seed: int, counters: Words) -> Words:
    """One random word per counter; for a given seed, different counters give different words."""
    # Two rounds with two different keys: one round alone shows the seed as a plain offset of the
    # counter.
    first, second = _keys(seed)
    words = counters * _ODD
    words ^= first
    _mix(words)
    words ^= second
    return _mix(words)


@lru_cache(maxsize=64)
def _keys(seed: int) -> Words:
    return _mix(np.array([2 * seed + 1, 2 * seed + 2], dtype=np.uint64) * _ODD)


class RandomBits:
    """The bits of some examples of one stream, read from the front; each example has its own,
    whoever is beside it.
    """

    def __init__(self, seed: int, stream: int, indices: npt.ArrayLike) -> None:
        rows: npt.NDArray[Any] = np.asarray(indices)
        if not 0 <= stream < STREAMS:
            raise ValueError(f"stream {stream} is not in 0..{STREAMS - 1}")
        if rows.size and (int(rows.min()) < 0 or int(rows.max()) >= MAX_INDEX):
            raise ValueError(f"an index is not in 0..{MAX_INDEX - 1}")
        self._seed = seed
        self._base = (rows.astype(np.uint64) | np.uint64(stream << INDEX_BITS)) << np.uint64(
            WORD_BITS
        )
        self._cursor = [0]  # words read so far; one list for an object and its subsets

    def __len__(self) -> int:
        return len(self._base)

    def subset(self, chosen: npt.NDArray[Any]) -> RandomBits:
        """The bits of the chosen examples only. What either one reads, the other will not read
        again.
        """
        part = RandomBits.__new__(RandomBits)
        part._seed, part._base, part._cursor = self._seed, self._base[chosen], self._cursor
        return part

    def fork(self, chosen: npt.NDArray[Any]) -> RandomBits:
        """The bits of the chosen examples only, from here on, with a cursor of their own."""
        part = self.subset(chosen)
        part._cursor = list(self._cursor)
        return part

    def words(self, count: int) -> Words:
        """(B, count) fresh words."""
        start = self._cursor[0]
        if start + count > MAX_WORDS:
            raise UserError(f"an input is too long: it takes more than {MAX_WORDS} random numbers")
        self._cursor[0] = start + count
        numbers = np.arange(start, start + count, dtype=np.uint64)
        return keyed_words(self._seed, self._base[:, None] | numbers)

    def integers(self, below: int | Ints, count: int) -> Ints:
        """(B, count) integers, uniform in [0, below) but for a bias of below / 2**32; `below` is
        broadcast.
        """
        limit = np.asarray(below, dtype=np.uint64)
        return (((self.words(count) >> np.uint64(32)) * limit) >> np.uint64(32)).astype(np.int64)

    def uniform(self, count: int) -> npt.NDArray[np.float64]:
        """(B, count) numbers, uniform in [0, 1)."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def chance(self, probability: float) -> npt.NDArray[np.bool_]:
        """(B,) true with the given probability."""
        return self.uniform(1)[:, 0] < probability

    def distinct(self, below: int, count: int) -> Ints:
        """(B, count) different integers of [0, below), each choice and order equally likely."""
        return np.argsort(self.words(below), axis=1)[:, :count]

    def shuffled(self, rows: Ints) -> Ints:
        """(B, n) each row in a random order."""
        return np.take_along_axis(rows, np.argsort(self.words(rows.shape[1]), axis=1), axis=1)
