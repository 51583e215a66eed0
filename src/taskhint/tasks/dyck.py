"""Dyck-1: whether brackets are balanced.

Shapes: B examples, n pairs of brackets. Steps are +1 for ( and -1 for ).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np

from taskhint.system.errors import UserError
from taskhint.tasks.arrays import ArrayTask
from taskhint.tasks.lengths import EvenLengths, Lengths
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import Flags, delimited
from taskhint.tasks.theory import OURS, YANG, Theory
from taskhint.tasks.vocab import DELIMITER, PAD, Vocab

OPEN, CLOSE = "(", ")"


@dataclass(frozen=True)
class Dyck(ArrayTask):
    """Whether every bracket is closed, and none before it is opened: membership in Dyck-1 (Yang
    and Chiang 2024; Bhattamishra et al. 2020 ask for the next bracket instead).

    Its length counts pairs: the input has twice as many brackets. Half of the inputs are balanced,
    each such word equally likely. Of the others half are balanced words with one bracket turned
    round, half have as many ( as ) in any order (`mixed`); or all are balanced but for one )( at
    a place where nothing is open (`dips`).
    """

    kind: ClassVar[str] = "dyck-1"
    about: ClassVar[str] = "brackets ⊥ -> 1 if they are balanced, else 0"
    length_is: ClassVar[str] = "pairs of brackets"
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "uniform": {"wrong": "mixed"},
        "dips": {"wrong": "dips"},
    }
    theory: ClassVar[Theory | None] = Theory(
        True,
        True,
        "counting at every place, and counting where it fails",
        f"{YANG} have the program; that it carries over {OURS}",
    )

    lengths: Lengths = field(default_factory=partial(EvenLengths, shortest=1, longest=10))
    wrong: Literal["mixed", "dips"] = "mixed"

    @cached_property
    def vocab(self) -> Vocab:
        names = (OPEN, CLOSE)
        return Vocab(first_symbol=0, symbols=2, marks=(DELIMITER, PAD, *names), written=names)

    def draw(self, bits: RandomBits, length: int) -> Ints:
        steps = balanced_words(bits, length)
        wrong = ~bits.chance(0.5)
        others = bits.subset(wrong)
        if self.wrong == "dips":
            steps[wrong] = with_a_dip(others, balanced_words(others, length - 1))
        else:
            steps[wrong] = _turned_or_mixed(others, steps[wrong])
        marks = np.where(steps > 0, self.vocab.mark(OPEN), self.vocab.mark(CLOSE))
        return delimited(self, marks)

    def answers(self, prompts: Ints) -> Ints:
        steps = np.where(prompts[:, :-1] == self.vocab.mark(OPEN), 1, -1)
        return is_balanced(steps).astype(np.int64)[:, None]

    def solve(self, prompt: Sequence[int]) -> list[int]:
        still_open = 0
        for bracket in prompt[:-1]:
            still_open += 1 if bracket == self.vocab.mark(OPEN) else -1
            if still_open < 0:
                return [0]
        return [1 if still_open == 0 else 0]

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        if any(symbol < self.vocab.mark(OPEN) for symbol in symbols):
            raise UserError('dyck-1 takes brackets alone, as in "( ( ) )"')
        return super().prompt(symbols)

    def worked_example(self) -> list[int]:
        return self.prompt(self.vocab.parse("(()())"))


def is_balanced(steps: Ints) -> Flags:
    """(B,) whether each row of steps ends at 0 and never falls below."""
    heights = steps.cumsum(axis=1)
    return (heights >= 0).all(axis=1) & (steps.sum(axis=1) == 0)


def balanced_words(bits: RandomBits, n: int) -> Ints:
    """(B, 2n) balanced words, each equally likely.

    The cycle lemma: of all rotations of n ups and n + 1 downs exactly one is a balanced word and a
    down after it. It begins after the first of the lowest places.
    """
    size = 2 * n + 1
    steps = np.repeat(np.where(np.arange(size) < n, 1, -1)[None], len(bits), axis=0)
    steps = bits.shuffled(steps)
    start = 1 + steps.cumsum(axis=1).argmin(axis=1)
    return np.take_along_axis(steps, (start[:, None] + np.arange(2 * n)) % size, axis=1)


def _turned_or_mixed(bits: RandomBits, words: Ints) -> Ints:
    """(B, 2n) unbalanced words: half of them with one bracket turned round, half with as many of
    either.
    """
    row = np.arange(len(words))
    mixed = bits.chance(0.5)
    turned = words.copy()
    turned[row, bits.integers(words.shape[1], 1)[:, 0]] *= -1
    shuffled = bits.shuffled(words)
    shuffled[is_balanced(shuffled)] *= -1  # then it begins with )
    return np.where(mixed[:, None], shuffled, turned)


def with_a_dip(bits: RandomBits, words: Ints) -> Ints:
    """(B, 2n + 2) balanced words with )( put in at a place where nothing is open."""
    heights = np.pad(words.cumsum(axis=1), ((0, 0), (1, 0)))
    chance = np.where(heights == 0, 1.0 + bits.uniform(heights.shape[1]), 0.0)
    place = chance.argmax(axis=1)[:, None]
    column = np.arange(words.shape[1] + 2)
    dip = np.where(column == place, -1, 1)
    longer = np.pad(words, ((0, 0), (0, 2)))
    source = np.where(column < place, column, np.maximum(column - 2, 0))
    kept = np.take_along_axis(longer, source, axis=1)
    return np.where((column == place) | (column == place + 1), dip, kept)
