"""Flip-flop: instructions that write, ignore or read a bit; which bit was written last?

Shapes: B examples, n instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from taskhint.system.errors import UserError
from taskhint.system.settings import setting
from taskhint.tasks.arrays import ArrayTask
from taskhint.tasks.lengths import EvenLengths, Lengths
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import delimited
from taskhint.tasks.theory import HUANG, OURS, Theory
from taskhint.tasks.vocab import DELIMITER, PAD, Vocab

WRITE, IGNORE, READ = "w", "i", "r"


@dataclass(frozen=True)
class FlipFlop(ArrayTask):
    """The bit written last: flip-flop language modeling, FFL(p) of Liu et al. 2023.

    Each instruction has a bit after it: `w` writes it, `i` is to be ignored, `r` shows the bit
    written last. A share `ignored` of them are `i`, the others `w` or `r` alike; the first is `w`.
    ⊥ stands for the last `r`, and only its bit is asked.
    """

    kind: ClassVar[str] = "flip-flop"
    about: ClassVar[str] = "w b / i b / r b .. ⊥ -> the bit b of the last w"
    length_is: ClassVar[str] = "instructions"
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "uniform": {"ignored": 0.8},
        "sparse": {"ignored": 0.98},
        "dense": {"ignored": 0.1},
    }
    theory: ClassVar[Theory | None] = Theory(
        False, False, "needs the last of several equal symbols", f"{HUANG} on Σ*be*; {OURS}"
    )

    lengths: Lengths = field(default_factory=EvenLengths)
    ignored: float = setting(0.8, at_least=0, at_most=1)

    @cached_property
    def vocab(self) -> Vocab:
        names = (WRITE, IGNORE, READ)
        return Vocab(first_symbol=0, symbols=2, marks=(DELIMITER, PAD, *names), written=names)

    def draw(self, bits: RandomBits, length: int) -> Ints:
        write, ignore, read = (self.vocab.mark(name) for name in (WRITE, IGNORE, READ))
        other = np.where(bits.integers(2, length) == 1, write, read)
        orders = np.where(bits.uniform(length) < self.ignored, ignore, other)
        orders[:, 0] = write
        drawn = bits.integers(2, length)
        last = np.maximum.accumulate(np.where(orders == write, np.arange(length), 0), axis=1)
        shown = np.where(orders == read, np.take_along_axis(drawn, last, axis=1), drawn)
        return delimited(self, np.stack([orders, shown], axis=2).reshape(len(bits), -1))

    def answers(self, prompts: Ints) -> Ints:
        orders, shown = prompts[:, :-1:2], prompts[:, 1::2]
        back = (orders[:, ::-1] == self.vocab.mark(WRITE)).argmax(axis=1)[:, None]
        return np.take_along_axis(shown, shown.shape[1] - 1 - back, axis=1)

    def solve(self, prompt: Sequence[int]) -> list[int]:
        stored = 0
        for order, bit in zip(prompt[:-1:2], prompt[1::2], strict=True):
            if order == self.vocab.mark(WRITE):
                stored = bit
        return [stored]

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        stored: int | None = None
        orders, shown = list(symbols[::2]), list(symbols[1::2])
        write, read = self.vocab.mark(WRITE), self.vocab.mark(READ)
        right = len(orders) == len(shown) > 0 and orders[0] == write
        for order, bit in zip(orders, shown, strict=False):
            right &= order >= write and bit < 2 and (order != read or bit == stored)
            stored = bit if order == write else stored
        if not right:
            raise UserError(
                "flip-flop takes w, i or r with a bit after each, the first a w, and after r "
                "the bit written last, as in w 1 i 0 r 1"
            )
        return super().prompt(symbols)

    def worked_example(self) -> list[int]:
        return self.prompt(self.vocab.parse("w0i1w1i0r1i0"))
