"""The most frequent symbol, and counting from one symbol up to another.

Shapes: B examples, n input symbols, q symbols.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from taskhint.system.errors import UserError
from taskhint.tasks.arrays import ArrayTask
from taskhint.tasks.lengths import EvenLengths, Lengths
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import SymbolTask, delimited
from taskhint.tasks.theory import HUANG, OURS, ZHOU, Theory
from taskhint.tasks.vocab import NONE


@dataclass(frozen=True)
class Mode(ArrayTask, SymbolTask):
    """The most frequent symbol; there are no ties. Zhou et al. 2024; "majority" of Huang et al.
    2025, whose 26 symbols it has.

    Symbols are uniform, and a tie is broken by giving one symbol one place of another (`any`); or
    there are two symbols, and one leads by 1, or by 2 where the length is even (`close`).
    """

    kind: ClassVar[str] = "mode"
    about: ClassVar[str] = "x1 .. xn ⊥ -> the most frequent symbol; no ties"
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "uniform": {"lead": "any"},
        "close": {"lead": "close"},
    }
    theory: ClassVar[Theory | None] = Theory(
        True, True, "counting and comparing", f"{HUANG}; {ZHOU}"
    )

    lengths: Lengths = field(default_factory=EvenLengths)
    symbols: int = 26
    lead: Literal["any", "close"] = "any"

    def draw(self, bits: RandomBits, length: int) -> Ints:
        if self.lead == "close":
            pair = bits.distinct(self.symbols, 2)
            return delimited(
                self, bits.shuffled(pair[:, (np.arange(length) > length // 2).astype(int)])
            )
        inputs = bits.integers(self.symbols, length)
        counts = _counts(inputs, self.symbols)
        # Adding less than 1 to every count picks one of the tied symbols by chance.
        winner = (counts + bits.uniform(self.symbols)).argmax(axis=1)[:, None]
        most = counts.max(axis=1, keepdims=True)
        rival = (np.take_along_axis(counts, inputs, axis=1) == most) & (inputs != winner)
        tied = rival.any(axis=1)
        inputs[tied, rival[tied].argmax(axis=1)] = winner[tied, 0]
        return delimited(self, inputs)

    def answers(self, prompts: Ints) -> Ints:
        return _counts(prompts[:, :-1], self.symbols).argmax(axis=1)[:, None]

    def solve(self, prompt: Sequence[int]) -> list[int]:
        return [Counter(prompt[:-1]).most_common(1)[0][0]]

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        counts = sorted(Counter(symbols).values())
        if len(counts) > 1 and counts[-1] == counts[-2]:
            raise UserError("mode takes symbols of which one is most frequent; these are a tie")
        return super().prompt(symbols)

    def worked_example(self) -> list[int]:
        return self.prompt([1, 0, 1])


def _counts(inputs: Ints, symbols: int) -> Ints:
    """(B, q) how often each symbol occurs in each row."""
    cells = inputs + symbols * np.arange(len(inputs))[:, None]
    return np.bincount(cells.ravel(), minlength=symbols * len(inputs)).reshape(-1, symbols)


@dataclass(frozen=True)
class CountUp(ArrayTask, SymbolTask):
    """All symbols from the first to the second, then NONE: "count" of Zhou et al. 2024.

    Its length is the number of symbols from the first to the second. Where counting starts is
    uniform, so training shows every symbol. Without the NONE nothing would ask when to stop.
    """

    kind: ClassVar[str] = "count-up"
    about: ClassVar[str] = "a b ⊥ -> a, a + 1, .. b, then NONE"
    length_is: ClassVar[str] = "symbols counted"
    theory: ClassVar[Theory | None] = Theory(
        True,
        True,
        "one more than the last; ends where nothing larger was seen",
        f"{ZHOU}; without positions {OURS}",
    )

    lengths: Lengths = field(default_factory=EvenLengths)
    symbols: int = 200

    def draw(self, bits: RandomBits, length: int) -> Ints:
        if length > self.symbols:
            raise UserError(f"there are no {length} symbols to count among {self.symbols}")
        first = bits.integers(self.symbols - length + 1, 1)
        return delimited(self, np.concatenate([first, first + length - 1], axis=1))

    def answers(self, prompts: Ints) -> Ints:
        first, last = prompts[:, :1], prompts[:, 1:2]
        counted = first + np.arange((last - first).max(initial=0) + 1)
        return np.pad(counted, ((0, 0), (0, 1)), constant_values=self.vocab.mark(NONE))

    def solve(self, prompt: Sequence[int]) -> list[int]:
        return [*range(prompt[0], prompt[1] + 1), self.vocab.mark(NONE)]

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        if len(symbols) != 2 or symbols[0] > symbols[1]:
            raise UserError("count-up takes two symbols, the smaller one first, as in 3 7")
        return super().prompt(symbols)

    def worked_example(self) -> list[int]:
        return self.prompt([0, min(4, self.symbols - 1)])
