"""Adding one to a number, least significant digit first, and its hint: the carries.

Shapes: B examples, n digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar, Self

import numpy as np

from taskhint.system.settings import setting
from taskhint.tasks.lengths import Lengths, Skewed
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import Examples, Flags, Step, Task, delimited, steps_from_delimiter
from taskhint.tasks.theory import OURS, Theory
from taskhint.tasks.vocab import DELIMITER, NONE, PAD, Vocab

CARRY_MARK = "↑"
paper_lengths = partial(Skewed, shortest=2, short=4, longest=10)


@dataclass(frozen=True)
class DigitTask(Task):
    """What incrementing and its hint share: numbers without a leading zero, a share `nines` of
    them ending in 9s.
    """

    length_is: ClassVar[str] = "digits"

    lengths: Lengths = field(default_factory=paper_lengths)
    nines: float = setting(0.1, at_least=0, at_most=1)

    @cached_property
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
    step_kinds: ClassVar[tuple[str, ...]] = ("carry", "add one", "copy", "new digit")
    error_kinds: ClassVar[tuple[str, ...]] = (
        "dropped the carry",
        "carried too far",
        "neighbouring digit",
        "other digit",
        "not a digit",
    )
    usual_multiples: ClassVar[tuple[float, ...]] = (0.3, 0.5, 0.8, 1, 1.2, 1.5, 2)

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

    def coupled(self, tokens: Ints) -> Ints:
        """A digit of the number and the one that answers it: both are as far from ⊥."""
        return np.abs(steps_from_delimiter(self, tokens))

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

    def step_kind(self, step: Step) -> str:
        """A trailing 9 becomes 0, one is added, a digit is copied, or an overflow adds a digit."""
        if step.number == len(step.inputs):
            return "new digit"
        nines = int(trailing_nines(np.array([step.inputs]))[0])
        return "carry" if step.number < nines else "add one" if step.number == nines else "copy"

    def error_kind(self, step: Step) -> str:
        if step.predicted >= self.vocab.symbols:
            return "not a digit"
        digits = step.inputs[::-1]
        own = digits[step.number] if step.number < len(digits) else None
        if step.predicted == own:
            return "dropped the carry"
        if own is not None and step.predicted == (own + 1) % 10:
            return "carried too far"
        around = digits[max(0, step.number - 1) : step.number + 2]
        return "neighbouring digit" if step.predicted in around else "other digit"

    def key_kinds(self, sequences: Ints, inputs: int) -> dict[str, Flags]:
        """The digit that decides the next one of the answer, the one that decided this one, ⊥."""
        keys = np.arange(sequences.shape[1] - 1)
        used = 2 * inputs - keys[inputs + 1 :, None]
        kinds = {"digit needed next": used - 1, "digit just used": used, "⊥": inputs + 0 * used}
        shape = (len(sequences), len(used), len(keys))
        return {name: np.broadcast_to(keys == at, shape) for name, at in kinds.items()}

    def chosen_places(self, sequence: Sequence[int], inputs: int) -> dict[str, int]:
        """An answer with its last digit first mirrors the input."""
        mirrored = 2 * inputs - inputs // 2
        there = {"answer": mirrored} if inputs < mirrored < len(sequence) - 1 else {}
        return {"input": inputs // 2, **there}


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

    def coupled(self, tokens: Ints) -> Ints:
        """A digit of the number, the one that answers it, and its mark and carry."""
        steps = steps_from_delimiter(self, tokens)
        return np.where(steps > 0, (steps + 2) // 3, -steps)


def _digits_plus_one(digits: Sequence[int]) -> list[int]:
    number = int("".join(str(digit) for digit in digits)) + 1
    return [int(digit) for digit in reversed(str(number).zfill(len(digits)))]
