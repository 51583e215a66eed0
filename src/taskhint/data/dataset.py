"""A dataset is a function from (seed, index) to an example: any size, no disk, any order.

A training set of N examples is visited in epochs, each in its own order. That order is a function
too: a keyed permutation of 0..N-1 that can be asked for any place in it, so that a run can go on
from any step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taskhint.system.errors import UserError
from taskhint.tasks.random_bits import (
    FIRST_TASK_STREAM,
    MAX_INDEX,
    ORDER_STREAM,
    TEST_STREAM,
    Ints,
    RandomBits,
    Words,
    keyed_words,
)
from taskhint.tasks.task import Examples, Task

TEST_EXAMPLE_BITS = 22
MAX_TEST_EXAMPLES = 1 << TEST_EXAMPLE_BITS
MAX_TEST_LENGTH = MAX_INDEX // MAX_TEST_EXAMPLES - 1
_ROUNDS = 4


@dataclass(frozen=True)
class Dataset:
    """`size` training examples of one task. `turn` is the task's place in its recipe: 0 for the
    main one.
    """

    task: Task
    seed: int
    size: int
    turn: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MAX_INDEX:
            raise UserError(f"a dataset of {self.size} examples is not in 1..{MAX_INDEX}")

    def examples(self, indices: npt.ArrayLike) -> list[Examples]:
        """The examples with these numbers, put together by the length of their inputs."""
        rows = np.asarray(indices, dtype=np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= self.size):
            raise IndexError(f"an index is not in 0..{self.size - 1}")
        bits = RandomBits(self.seed, FIRST_TASK_STREAM + self.turn, rows)
        lengths = self.task.lengths.draw(bits)
        # Every example reads on from the same word, so the parts share one cursor only within
        # their own length.
        return [self.task.make(bits.fork(lengths == n), int(n)) for n in np.unique(lengths)]

    def places(self, start: int, count: int) -> Ints:
        """The numbers of `count` examples from place `start` on, in a training that goes on over
        the epochs.
        """
        place = np.arange(start, start + count)
        epoch = place // self.size
        within = place % self.size
        return np.concatenate(
            [self._shuffled(int(e), within[epoch == e]) for e in np.unique(epoch)]
        )

    def _shuffled(self, epoch: int, places: Ints) -> Ints:
        """The numbers at these places of an epoch: a Feistel permutation, walked until it lands
        inside the set.
        """
        half = max(1, (self.size - 1).bit_length() + 1) // 2
        inside = self._permuted(epoch, places.astype(np.uint64), half)
        while (outside := inside >= self.size).any():
            inside[outside] = self._permuted(epoch, inside[outside], half)
        return inside.astype(np.int64)

    def _permuted(self, epoch: int, x: Words, half: int) -> Words:
        mask = np.uint64((1 << half) - 1)
        left, right = x >> np.uint64(half), x & mask
        for turn in range(_ROUNDS):
            # One key per (task, epoch, round), one counter per value of the half.
            seed = ((self.seed * 64 + self.turn) * (1 << 20) + epoch) * _ROUNDS + turn
            counter = right | np.uint64(ORDER_STREAM << (64 - 6))
            left, right = right, left ^ (keyed_words(seed % (1 << 62), counter) & mask)
        return left << np.uint64(half) | right


def fresh_examples(task: Task, seed: int, length: int, start: int, count: int) -> Examples:
    """Fresh examples of one length, from a stream that no training example shares under the same
    seed.
    """
    if not 1 <= length <= MAX_TEST_LENGTH:
        raise UserError(f"length {length} is not in 1..{MAX_TEST_LENGTH}")
    if start + count > MAX_TEST_EXAMPLES:
        raise UserError(
            f"{start + count} test examples of one length are too many; at most "
            f"{MAX_TEST_EXAMPLES}"
        )
    indices = (length << TEST_EXAMPLE_BITS) + np.arange(start, start + count)
    return task.make(RandomBits(seed, TEST_STREAM, indices), length)
