"""Parity (with and without the running parity as a scratchpad) and majority of a string of bits.

Shapes: B examples, n bits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from taskhint.system.errors import UserError
from taskhint.tasks.arrays import ArrayTask
from taskhint.tasks.lengths import EvenLengths, Lengths
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import delimited, steps_from_delimiter
from taskhint.tasks.theory import HUANG, OURS, ZHOU, Theory
from taskhint.tasks.vocab import DELIMITER, PAD, Vocab


@dataclass(frozen=True)
class BitTask(ArrayTask):
    """A task on a string of bits."""

    length_is: ClassVar[str] = "bits"

    lengths: Lengths = field(default_factory=EvenLengths)

    @cached_property
    def vocab(self) -> Vocab:
        return Vocab(first_symbol=0, symbols=2, marks=(DELIMITER, PAD))

    @abstractmethod
    def strings(self, bits: RandomBits, n: int) -> Ints:
        """(B, n) strings of bits."""

    def draw(self, bits: RandomBits, length: int) -> Ints:
        return delimited(self, self.strings(bits, length))

    def worked_example(self) -> list[int]:
        return self.prompt([1, 0, 1, 1])


def with_ones(bits: RandomBits, n: int, ones: Ints) -> Ints:
    """(B, n) bits with the wanted number (B,) of ones, every order equally likely."""
    return bits.shuffled((np.arange(n) < ones[:, None]).astype(np.int64))


@dataclass(frozen=True)
class Parity(BitTask):
    """Whether the number of ones is odd.

    Every number of ones is equally likely (`any`, as in Huang et al. 2025), or each bit is a coin
    (`fair`).
    """

    kind: ClassVar[str] = "parity"
    about: ClassVar[str] = "bits ⊥ -> 1 if the number of ones is odd, else 0"
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "uniform": {"ones": "any"},
        "fair": {"ones": "fair"},
    }
    theory: ClassVar[Theory | None] = Theory(
        False, False, "depends on every bit, and attention averages over them", f"{HUANG}; {ZHOU}"
    )

    ones: Literal["any", "fair"] = "any"

    def strings(self, bits: RandomBits, n: int) -> Ints:
        if self.ones == "fair":
            return bits.integers(2, n)
        return with_ones(bits, n, bits.integers(n + 1, 1)[:, 0])

    def answers(self, prompts: Ints) -> Ints:
        return prompts[:, :-1].sum(axis=1, keepdims=True) % 2

    def solve(self, prompt: Sequence[int]) -> list[int]:
        return [list(prompt).count(1) % 2]


@dataclass(frozen=True)
class ParityScratchpad(Parity):
    """The parity of every beginning of the input, as in Anil et al. 2022; the last one is the
    parity.
    """

    kind: ClassVar[str] = "parity-scratchpad"
    about: ClassVar[str] = "bits ⊥ -> the parity up to each bit; the last is the parity of all"
    theory: ClassVar[Theory | None] = Theory(
        False, False, "each step is easy, but finding its bit needs the place", OURS
    )

    def answers(self, prompts: Ints) -> Ints:
        return prompts[:, :-1].cumsum(axis=1) % 2

    def solve(self, prompt: Sequence[int]) -> list[int]:
        steps, odd = [], 0
        for bit in prompt[:-1]:
            odd = 1 - odd if bit else odd
            steps.append(odd)
        return steps

    def coupled(self, tokens: Ints) -> Ints:
        """A bit and the parity up to it."""
        steps = steps_from_delimiter(self, tokens)
        return np.where(steps < 0, np.arange(tokens.shape[1]) + 1, steps)


@dataclass(frozen=True)
class Majority(BitTask):
    """Which bit is more frequent; there are no ties. "Binary majority" of Huang et al. 2025.

    Every number of ones is equally likely (`any`), or each bit is a coin (`fair`), or one bit
    leads by 1, or by 2 where the number of bits is even (`close`).
    """

    kind: ClassVar[str] = "majority"
    about: ClassVar[str] = "bits ⊥ -> the more frequent one; no ties"
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "uniform": {"ones": "any"},
        "fair": {"ones": "fair"},
        "close": {"ones": "close"},
    }
    theory: ClassVar[Theory | None] = Theory(True, True, "counting and comparing", HUANG)

    ones: Literal["any", "fair", "close"] = "any"

    def strings(self, bits: RandomBits, n: int) -> Ints:
        if self.ones == "fair":
            drawn = bits.integers(2, n)
            drawn[2 * drawn.sum(axis=1) == n, -1] ^= 1
            return drawn
        even = 1 - n % 2  # half of the bits are left out where they would tie
        if self.ones == "close":
            ones = (n - 1) // 2 + (1 + even) * bits.integers(2, 1)[:, 0]
        else:
            ones = bits.integers(n + 1 - even, 1)[:, 0]
            ones += even * (2 * ones >= n)
        return with_ones(bits, n, ones)

    def answers(self, prompts: Ints) -> Ints:
        ones = prompts[:, :-1].sum(axis=1, keepdims=True)
        return (2 * ones > prompts.shape[1] - 1).astype(np.int64)

    def solve(self, prompt: Sequence[int]) -> list[int]:
        bits = list(prompt[:-1])
        return [1 if bits.count(1) > bits.count(0) else 0]

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        if symbols and 2 * sum(symbols) == len(symbols):
            raise UserError("majority takes bits of which one is more frequent; these are a tie")
        return super().prompt(symbols)
