"""Addition of two numbers, its scratchpad, and its hints: sums without carries, and carries alone.

Shapes: B examples, n digits in each operand.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np

from taskhint.system.errors import UserError
from taskhint.system.settings import setting
from taskhint.tasks.arrays import ArrayTask
from taskhint.tasks.lengths import EvenLengths, Lengths
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.theory import HUANG, OURS, ZHOU, Theory
from taskhint.tasks.vocab import DELIMITER, PAD, Vocab


@dataclass(frozen=True)
class Arithmetic(ArrayTask):
    """Two numbers with an operator between them. Digits have the ids 0 to 9.

    Operands begin with their most significant digit (`plain`) or their least significant one
    (`reversed`). Answers always begin with the least significant one, in which order they can be
    computed.
    """

    operator: ClassVar[str]
    length_is: ClassVar[str] = "digits in an operand"

    lengths: Lengths = field(default_factory=partial(EvenLengths, shortest=1, longest=10))
    operands: Literal["plain", "reversed"] = "plain"

    @cached_property
    def vocab(self) -> Vocab:
        marks = (DELIMITER, PAD, self.operator)
        return Vocab(first_symbol=0, symbols=10, marks=marks, written=(self.operator,))

    def ordered(self, digits: Ints) -> Ints:
        """From least significant first to the order of the prompt, and back."""
        return digits[:, ::-1] if self.operands == "plain" else digits

    def written_out(self, first: Ints, second: Ints) -> Ints:
        """(B, P) prompts, of numbers whose least significant digit comes first."""
        mark, end = (
            np.full((len(first), 1), self.vocab.mark(name)) for name in (self.operator, DELIMITER)
        )
        return np.concatenate([self.ordered(first), mark, self.ordered(second), end], axis=1)

    def read(self, prompts: Ints) -> tuple[Ints, Ints]:
        """Both numbers of (B, P) prompts, least significant digit first."""
        end = int((prompts[:1] == self.vocab.mark(self.operator)).argmax())
        return self.ordered(prompts[:, :end]), self.ordered(prompts[:, end + 1 : -1])

    def numbers(self, prompt: Sequence[int]) -> tuple[list[int], list[int]]:
        """Both numbers of one prompt, least significant digit first, in plain Python."""
        mark = list(prompt).index(self.vocab.mark(self.operator))
        first, second = list(prompt[:mark]), list(prompt[mark + 1 : -1])
        return (first[::-1], second[::-1]) if self.operands == "plain" else (first, second)

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        mark = self.vocab.mark(self.operator)
        place = list(symbols).index(mark) if list(symbols).count(mark) == 1 else 0
        first, second = list(symbols[:place]), list(symbols[place + 1 :])
        if not (first and second and max(*first, *second) < 10):
            raise UserError(
                f"{self.kind} takes two numbers digit by digit, as in {self.as_written()}"
            )
        first, second = self.aligned(first, second)
        return super().prompt([*first, mark, *second])

    def aligned(self, first: list[int], second: list[int]) -> tuple[list[int], list[int]]:
        """The operands of a person as the task has them."""
        return first, second

    @abstractmethod
    def as_written(self) -> str:
        """An input as a person writes it."""

    def worked_example(self) -> list[int]:
        return self.prompt(self.vocab.parse(self.as_written().split()))


@dataclass(frozen=True)
class AdditionTask(Arithmetic):
    """What addition and its hints share: operands with n digits each, leading zeros included.

    A share `carries` of the pairs has a chain of carries over 1 to n places, every length and
    place equally likely.
    """

    operator: ClassVar[str] = "+"
    tokens_per_place: ClassVar[int] = 1  # of the answer
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "uniform": {"carries": 0.0},
        "carries": {"carries": 1.0},
    }

    carries: float = setting(0.1, at_least=0, at_most=1)

    def draw(self, bits: RandomBits, length: int) -> Ints:
        first, second = bits.integers(10, length), bits.integers(10, length)
        chained = bits.chance(self.carries)[:, None]
        size = 1 + bits.integers(length, 1)
        start = bits.integers(length - size + 1, 1)
        place = np.arange(length)
        begins, goes_on = place == start, (place > start) & (place < start + size)
        first = np.where(chained & begins & (first == 0), 9, first)
        # A carry begins where the digits make 10 or more, and goes on where they make 9.
        over = 10 - first + bits.integers(np.maximum(first, 1), length)
        second = np.where(chained & goes_on, 9 - first, np.where(chained & begins, over, second))
        return self.written_out(first, second)

    def aligned(self, first: list[int], second: list[int]) -> tuple[list[int], list[int]]:
        n = max(len(first), len(second))
        zeros = ([0] * (n - len(number)) for number in (first, second))
        if self.operands == "plain":
            return next(zeros) + first, next(zeros) + second
        return first + next(zeros), second + next(zeros)

    def coupled(self, tokens: Ints) -> Ints:
        """The digits of one place, 1 for the least significant; the operator and ⊥ are before
        it.
        """
        index = np.arange(tokens.shape[1])
        digits = (tokens == self.vocab.mark(self.operator)).argmax(axis=1)[:, None]
        steps = index - 2 * digits - 1  # behind ⊥
        place = np.where(index <= digits, index, index - digits - 1)  # within an operand
        of_operand = digits - place if self.operands == "plain" else (place + 1) % (digits + 1)
        answered = (steps + self.tokens_per_place - 1) // self.tokens_per_place
        return np.where(steps < 0, of_operand, answered)

    def as_written(self) -> str:
        return "1 2 9 + 0 7 4" if self.operands == "plain" else "9 2 1 + 4 7 0"


def carries_of(first: Ints, second: Ints) -> Ints:
    """(B, n + 1) the carry into each place, least significant first, and the one out of the
    last.
    """
    carries = np.zeros((len(first), first.shape[1] + 1), dtype=np.int64)
    for place in range(first.shape[1]):
        carries[:, place + 1] = first[:, place] + second[:, place] + carries[:, place] > 9
    return carries


def digit_sums(first: Ints, second: Ints) -> Ints:
    """(B, n + 1) sums of the digits at each place; 0 after the last."""
    return np.pad(first + second, ((0, 0), (0, 1)))


@dataclass(frozen=True)
class Addition(AdditionTask):
    """The sum in n + 1 digits, least significant first, zeros included: as in Cho et al. 2024
    (position coupling).

    With `operands=reversed` all numbers begin with their least significant digit, as in McLeish et
    al. 2024 (Abacus).
    """

    kind: ClassVar[str] = "addition"
    about: ClassVar[str] = (
        "the digits of a + the digits of b ⊥ -> the digits of the sum, least significant first"
    )
    theory: ClassVar[Theory | None] = Theory(
        False, False, "needs the digits of one place in both numbers", f"{HUANG}; {ZHOU}"
    )

    def answers(self, prompts: Ints) -> Ints:
        first, second = self.read(prompts)
        return (digit_sums(first, second) + carries_of(first, second)) % 10

    def solve(self, prompt: Sequence[int]) -> list[int]:
        first, second = (
            int("".join(map(str, reversed(number)))) for number in self.numbers(prompt)
        )
        digits = len(self.numbers(prompt)[0]) + 1
        return [int(digit) for digit in reversed(str(first + second).zfill(digits))]


@dataclass(frozen=True)
class AdditionScratchpad(AdditionTask):
    """Addition with its steps: from the least significant place on both digits, the digit of the
    sum and the carry; then the last carry as the first digit of the sum.

    A short form of the scratchpads of Nye et al. 2021 and Lee et al. 2024.
    """

    kind: ClassVar[str] = "addition-scratchpad"
    tokens_per_place: ClassVar[int] = 4
    about: ClassVar[str] = (
        "the digits of a + the digits of b ⊥ -> for each place both digits, the sum's and the "
        "carry; then the last carry"
    )
    theory: ClassVar[Theory | None] = Theory(
        False, False, "each step is easy, but finding its digits needs the place", OURS
    )

    def answers(self, prompts: Ints) -> Ints:
        first, second = self.read(prompts)
        carries = carries_of(first, second)
        sums = (first + second + carries[:, :-1]) % 10
        steps = np.stack([first, second, sums, carries[:, 1:]], axis=2)
        return np.concatenate([steps.reshape(len(prompts), -1), carries[:, -1:]], axis=1)

    def solve(self, prompt: Sequence[int]) -> list[int]:
        steps, carry = [], 0
        for a, b in zip(*self.numbers(prompt), strict=True):
            carry, digit = divmod(a + b + carry, 10)
            steps += [a, b, digit, carry]
        return [*steps, carry]


@dataclass(frozen=True)
class NoCarry(AdditionTask):
    """Addition at each place alone, carries forgotten: an auxiliary task of Cai et al. 2025."""

    kind: ClassVar[str] = "no-carry"
    hint_for: ClassVar[str] = "addition"
    about: ClassVar[str] = "a + b ⊥ -> the sum at each place without carries, then 0"

    def answers(self, prompts: Ints) -> Ints:
        return digit_sums(*self.read(prompts)) % 10

    def solve(self, prompt: Sequence[int]) -> list[int]:
        return [*((a + b) % 10 for a, b in zip(*self.numbers(prompt), strict=True)), 0]


@dataclass(frozen=True)
class CarryOnly(AdditionTask):
    """The carry into each place: an auxiliary task of Cai et al. 2025."""

    kind: ClassVar[str] = "carry-only"
    hint_for: ClassVar[str] = "addition"
    about: ClassVar[str] = "a + b ⊥ -> the carry into each place, least significant first"

    def answers(self, prompts: Ints) -> Ints:
        return carries_of(*self.read(prompts))

    def solve(self, prompt: Sequence[int]) -> list[int]:
        carries = [0]
        for a, b in zip(*self.numbers(prompt), strict=True):
            carries.append((a + b + carries[-1]) // 10)
        return carries
