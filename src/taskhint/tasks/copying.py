"""Copying and reversing a sequence, and a hint for copying: the next symbol.

Shapes: B examples, n input symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from taskhint.system.errors import UserError
from taskhint.tasks.arrays import ArrayTask
from taskhint.tasks.inputs import UNIFORM, Distinct, Inputs
from taskhint.tasks.lengths import EvenLengths, Lengths
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import SymbolTask, delimited, steps_from_delimiter
from taskhint.tasks.theory import HUANG, OURS, ZHOU, Theory
from taskhint.tasks.vocab import NONE


@dataclass(frozen=True)
class Copy(ArrayTask, SymbolTask):
    """The input again. No symbol occurs twice, as in Zhou et al. 2024 and Huang et al. 2025.

    A model can then find its place by the symbol that it wrote last. The test distribution
    `repeats` draws every symbol anew.
    """

    kind: ClassVar[str] = "copy"
    about: ClassVar[str] = "x1 .. xn ⊥ -> the same symbols again; no symbol twice"
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "uniform": {"inputs": Distinct()},
        "repeats": {"inputs": UNIFORM},
    }
    theory: ClassVar[Theory | None] = Theory(
        False, True, "needs the symbol after the one written last", f"{HUANG}; {ZHOU}"
    )

    lengths: Lengths = field(default_factory=EvenLengths)
    inputs: Inputs = field(default_factory=Distinct)

    def draw(self, bits: RandomBits, length: int) -> Ints:
        return delimited(self, self.inputs.draw(bits, self.symbols, length))

    def answers(self, prompts: Ints) -> Ints:
        return prompts[:, :-1]

    def solve(self, prompt: Sequence[int]) -> list[int]:
        return list(prompt[:-1])

    def coupled(self, tokens: Ints) -> Ints:
        """A symbol and its copy."""
        steps = steps_from_delimiter(self, tokens)
        return np.where(steps < 0, np.arange(tokens.shape[1]) + 1, steps)

    def worked_example(self) -> list[int]:
        return self.prompt([3, 0, 2, 1][-min(4, self.symbols) :])


@dataclass(frozen=True)
class CopyRepeats(Copy):
    """The input again, out of two symbols, as in Huang et al. 2025: what was written last does not
    tell the place.
    """

    kind: ClassVar[str] = "copy-repeats"
    about: ClassVar[str] = "x1 .. xn ⊥ -> the same symbols again, out of two"
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {"uniform": {"inputs": UNIFORM}}
    theory: ClassVar[Theory | None] = Theory(
        False, False, "needs the place, which grows with the input", f"{HUANG}; {ZHOU}"
    )

    symbols: int = 2
    inputs: Inputs = UNIFORM

    def worked_example(self) -> list[int]:
        return self.prompt([0, 1, 1, 0])


@dataclass(frozen=True)
class Reverse(Copy):
    """The input from back to front, out of 32 symbols with repeats, as in the experiments of
    ASEntmax.
    """

    kind: ClassVar[str] = "reverse"
    about: ClassVar[str] = "x1 .. xn ⊥ -> the same symbols from back to front"
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {"uniform": {"inputs": UNIFORM}}
    theory: ClassVar[Theory | None] = Theory(
        False, False, "with repeats needs the place, as copying does", OURS
    )

    symbols: int = 32
    inputs: Inputs = UNIFORM

    def answers(self, prompts: Ints) -> Ints:
        return prompts[:, -2::-1]

    def solve(self, prompt: Sequence[int]) -> list[int]:
        return list(reversed(prompt[:-1]))

    def coupled(self, tokens: Ints) -> Ints:
        return np.abs(steps_from_delimiter(self, tokens))

    def worked_example(self) -> list[int]:
        return self.prompt([0, 1, 1])


@dataclass(frozen=True)
class Next(ArrayTask, SymbolTask):
    """One step of copying, asked at any place: recall as a helper of copying."""

    kind: ClassVar[str] = "next"
    hint_for: ClassVar[str] = "copy"
    about: ClassVar[str] = "x1 .. xn ⊥ a -> the symbol after a, or NONE after the last"
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {"uniform": {"inputs": Distinct()}}

    lengths: Lengths = field(default_factory=EvenLengths)
    inputs: Inputs = field(default_factory=Distinct)

    def draw(self, bits: RandomBits, length: int) -> Ints:
        inputs = self.inputs.draw(bits, self.symbols, length)
        asked = np.take_along_axis(inputs, bits.integers(length, 1), axis=1)
        return np.concatenate([delimited(self, inputs), asked], axis=1)

    def answers(self, prompts: Ints) -> Ints:
        inputs, asked = prompts[:, :-2], prompts[:, -1:]
        after = np.pad(inputs[:, 1:], ((0, 0), (0, 1)), constant_values=self.vocab.mark(NONE))
        place = (inputs == asked).argmax(axis=1, keepdims=True)
        return np.take_along_axis(after, place, axis=1)

    def solve(self, prompt: Sequence[int]) -> list[int]:
        *inputs, _, asked = prompt
        return [[*inputs, self.vocab.mark(NONE)][inputs.index(asked) + 1]]

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        """The last symbol is the one whose follower is asked for."""
        if len(symbols) < 2 or symbols[-1] not in symbols[:-1]:
            raise UserError("next takes a sequence and then one of its symbols")
        return [*symbols[:-1], self.vocab.delimiter, symbols[-1]]

    def worked_example(self) -> list[int]:
        return self.prompt([1, 0, 1])
