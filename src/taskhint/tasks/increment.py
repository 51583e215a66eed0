"""Adding one to a number, least significant digit first, and its hint: the carries.

Shapes: B examples, n digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from taskhint.system.errors import UserError
from taskhint.tasks.lengths import Lengths, Skewed
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import Examples, Task, delimited
from taskhint.tasks.theory import OURS, Theory
from taskhint.tasks.vocab import DELIMITER, NONE, PAD, Vocab

CARRY_MARK = "↑"
PAPER_LENGTHS = Skewed(shortest=2, short=4, longest=10)


@dataclass(frozen=True)
class DigitTask(Task):
    """What incrementing and its hint share: numbers without a leading zero, a share `nines` of
    them ending in 9s.
    """

    length_is: ClassVar[str] = "digits"

    lengths: Lengths = PAPER_LENGTHS
    nines: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 <= self.nines <= 1.0:
            raise UserError(f"nines={self.nines} is not in 0..1")

    @property
    def vocab(self) -> Vocab:
        return Vocab(first_symbol=0, symbols=10, marks=(DELIMITER, PAD, NONE, CARRY_MARK))

    def numbers(self, bits: RandomBits, n: int) -> Ints:
        """(B, n) digits, most significant first; a run of 1 to n nines ends a share of them."""
        digits = np.concatenate([1 + bits.integers(9, 1), bits.integers(10, n - 1)], axis=1)
        with_run = bits.chance(self.nines)
        run = np.where(with_run, 1 + bits.integers(n, 1)[:, 0], 0)
        digits[np.arange(n) >= n - run[:, None]] = 9
        return digits

    def worked_example(self) -> list[int]:
        return self.prompt([1, 2, 9])


def trailing_nines(digits: Ints) -> Ints:
    """(B,) how many 9s end each number."""
    return np.cumprod(digits[:, ::-1] == 9, axis=1).sum(axis=1)


def incremented(digits: Ints) -> Ints:
    """(B, n + 1) the digits of number + 1, least significant first; the last column is 0 unless
    all were 9.
    """
    run = trailing_nines(digits)
    place = np.arange(digits.shape[1] + 1)
    result = np.pad(digits[:, ::-1], ((0, 0), (0, 1)))
    result[place < run[:, None]] = 0
    result[np.arange(len(digits)), run] += 1
    return result


@dataclass(frozen=True)
class Increment(DigitTask):
    kind: ClassVar[str] = "increment"
    about: ClassVar[str] = (
        "the digits of a number ⊥ -> the digits of that number plus 1, least significant first"
    )
    theory: ClassVar[Theory | None] = Theory(
        False, False, "needs the digit of the place that is written", OURS
    )

    def make(self, bits: RandomBits, length: int) -> Examples:
        digits = self.numbers(bits, length)
        answer = incremented(digits)
        longer = trailing_nines(digits) == length
        answer[~longer, -1] = self.vocab.pad
        prompt = delimited(self, digits)
        size = np.full(len(bits), 2 * length + 1) + longer
        return Examples(
            np.concatenate([prompt, answer], axis=1),
            prompts=np.full(len(bits), length + 1),
            sizes=size,
            inputs=np.full(len(bits), length),
        )

    def solve(self, prompt: Sequence[int]) -> list[int]:
        return _digits_plus_one(prompt[:-1])

    @property
    def distributions(self) -> tuple[str, ...]:
        return ("uniform", "nines")

    def for_test(self, distribution: str) -> Self:
        shares = {"uniform": 0.0, "nines": 1.0}
        return (
            replace(self, nines=shares[distribution])
            if distribution in shares
            else super().for_test(distribution)
        )


@dataclass(frozen=True)
class Carry(DigitTask):
    kind: ClassVar[str] = "carry"
    hint_for: ClassVar[str] = "increment"
    about: ClassVar[str] = (
        "the digits of a number ⊥ -> each digit of that number plus 1, then ↑ (given), then its "
        "carry"
    )
    given: ClassVar[tuple[str, ...]] = (CARRY_MARK,)

    def make(self, bits: RandomBits, length: int) -> Examples:
        digits = self.numbers(bits, length)
        run = trailing_nines(digits)
        carries = (np.arange(length + 1) < run[:, None]).astype(np.int64)
        marks = np.full_like(carries, self.vocab.mark(CARRY_MARK))
        answer = np.stack([incremented(digits), marks, carries], axis=2).reshape(len(bits), -1)
        longer = run == length
        answer[~longer, -3:] = self.vocab.pad
        return Examples(
            np.concatenate([delimited(self, digits), answer], axis=1),
            prompts=np.full(len(bits), length + 1),
            sizes=np.full(len(bits), 4 * length + 1) + 3 * longer,
            inputs=np.full(len(bits), length),
        )

    def solve(self, prompt: Sequence[int]) -> list[int]:
        answer, carry = [], 1
        for digit in reversed(prompt[:-1]):
            carry, digit = divmod(digit + carry, 10)
            answer += [digit, self.vocab.mark(CARRY_MARK), carry]
        return [*answer, 1, self.vocab.mark(CARRY_MARK), 0] if carry else answer


def _digits_plus_one(digits: Sequence[int]) -> list[int]:
    number = int("".join(str(digit) for digit in digits)) + 1
    return [int(digit) for digit in reversed(str(number).zfill(len(digits)))]
