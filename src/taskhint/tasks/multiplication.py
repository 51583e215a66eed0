"""A number times one digit, and its scratchpad.

Shapes: B examples, n digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from taskhint.system.errors import UserError
from taskhint.tasks.addition import Arithmetic
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.theory import OURS, Theory


@dataclass(frozen=True)
class Multiplication(Arithmetic):
    """The product in n + 1 digits, least significant first, zeros included. One of the tasks of
    Hou et al. 2024 (Turing programs).

    Digits are uniform (`any`), or all of them are 6 to 9, so that every place has a carry
    (`large`).
    """

    kind: ClassVar[str] = "multiplication"
    about: ClassVar[str] = (
        "the digits of a number x one digit ⊥ -> the digits of the product, least significant "
        "first"
    )
    operator: ClassVar[str] = "x"
    tokens_per_place: ClassVar[int] = 1  # of the answer
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "uniform": {"digits": "any"},
        "large": {"digits": "large"},
    }
    theory: ClassVar[Theory | None] = Theory(
        False, False, "needs the digit of the place that is written", OURS
    )

    digits: Literal["any", "large"] = "any"

    def draw(self, bits: RandomBits, length: int) -> Ints:
        low = 6 if self.digits == "large" else 0
        drawn = low + bits.integers(10 - low, length + 1)
        return self.written_out(drawn[:, 1:], drawn[:, :1])

    def answers(self, prompts: Ints) -> Ints:
        digits, carries = products(*self.read(prompts))
        return np.concatenate([digits, carries[:, -1:]], axis=1)

    def solve(self, prompt: Sequence[int]) -> list[int]:
        number, (factor,) = self.numbers(prompt)
        product = factor * int("".join(map(str, reversed(number))))
        return [int(digit) for digit in reversed(str(product).zfill(len(number) + 1))]

    def coupled(self, tokens: Ints) -> Ints:
        """The digits of one place, 1 for the least significant; all from the operator to ⊥ is
        before it.
        """
        index = np.arange(tokens.shape[1])
        digits = (tokens == self.vocab.mark(self.operator)).argmax(axis=1)[:, None]
        steps = index - digits - 2  # behind ⊥
        of_number = digits - index if self.operands == "plain" else index + 1
        answered = (steps + self.tokens_per_place - 1) // self.tokens_per_place
        return np.where(index < digits, of_number, np.maximum(answered, 0))

    def aligned(self, first: list[int], second: list[int]) -> tuple[list[int], list[int]]:
        if len(second) != 1:
            raise UserError(f"{self.kind} takes a number and one digit, as in {self.as_written()}")
        return first, second

    def as_written(self) -> str:
        return "1 2 9 x 7" if self.operands == "plain" else "9 2 1 x 7"


def products(number: Ints, factor: Ints) -> tuple[Ints, Ints]:
    """(B, n) digits of the product and (B, n) carries out of each place, least significant
    first.
    """
    digits, carries = np.empty_like(number), np.empty_like(number)
    carry = np.zeros(len(number), dtype=np.int64)
    for place in range(number.shape[1]):
        carry, digits[:, place] = np.divmod(number[:, place] * factor[:, 0] + carry, 10)
        carries[:, place] = carry
    return digits, carries


@dataclass(frozen=True)
class MultiplicationScratchpad(Multiplication):
    """Multiplication with its steps: from the least significant place on the digit, that of the
    product and the carry; then the last carry.
    """

    kind: ClassVar[str] = "multiplication-scratchpad"
    tokens_per_place: ClassVar[int] = 3
    about: ClassVar[str] = (
        "the digits of a number x one digit ⊥ -> for each place the digit, the product's and the "
        "carry; then the last carry"
    )
    theory: ClassVar[Theory | None] = Theory(
        False, False, "each step is easy, but finding its digit needs the place", OURS
    )

    def answers(self, prompts: Ints) -> Ints:
        number, factor = self.read(prompts)
        digits, carries = products(number, factor)
        steps = np.stack([number, digits, carries], axis=2).reshape(len(prompts), -1)
        return np.concatenate([steps, carries[:, -1:]], axis=1)

    def solve(self, prompt: Sequence[int]) -> list[int]:
        number, (factor,) = self.numbers(prompt)
        steps, carry = [], 0
        for digit in number:
            carry, written = divmod(digit * factor + carry, 10)
            steps += [digit, written, carry]
        return [*steps, carry]
