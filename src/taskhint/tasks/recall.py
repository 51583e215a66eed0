"""Associative recall: pairs of a key and a value, then keys whose values are asked for.

Shapes: B examples, n pairs, m queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from taskhint.system.errors import UserError
from taskhint.system.settings import setting
from taskhint.tasks.arrays import ArrayTask
from taskhint.tasks.lengths import EvenLengths, Lengths
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import SymbolTask, delimited
from taskhint.tasks.theory import OURS, Theory

MAX_QUERIES = 1000


@dataclass(frozen=True)
class Recall(ArrayTask, SymbolTask):
    """The values of the asked keys, in the order of the questions: Arora et al. 2024 (MQAR), with
    all questions after the pairs as in ASEntmax.

    The first half of the symbols are keys, the others values. No key occurs twice. A key may be
    asked twice. Any key is asked (`any`), or that of the first pair alone (`first`).
    """

    kind: ClassVar[str] = "recall"
    about: ClassVar[str] = "k1 v1 .. kn vn ⊥ k -> the value of k"
    length_is: ClassVar[str] = "pairs"
    tests: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "uniform": {"asked": "any"},
        "first": {"asked": "first"},
    }
    theory: ClassVar[Theory | None] = Theory(False, True, "needs the symbol after the key", OURS)

    lengths: Lengths = field(default_factory=EvenLengths)
    symbols: int = 200
    queries: int = setting(1, at_least=1, at_most=MAX_QUERIES)
    asked: Literal["any", "first"] = "any"

    @property
    def keys(self) -> int:
        """Symbols that are keys: the first so many."""
        return self.symbols // 2

    def draw(self, bits: RandomBits, length: int) -> Ints:
        if length > self.keys:
            raise UserError(
                f"there are no {length} distinct keys among {self.keys}; shorten the input"
            )
        keys = bits.distinct(self.keys, length)
        values = self.keys + bits.integers(self.symbols - self.keys, length)
        pairs = np.stack([keys, values], axis=2).reshape(len(bits), -1)
        choices = length if self.asked == "any" else 1
        asked = np.take_along_axis(keys, bits.integers(choices, self.queries), axis=1)
        return np.concatenate([delimited(self, pairs), asked], axis=1)

    def answers(self, prompts: Ints) -> Ints:
        pairs, asked = prompts[:, : -self.queries - 1], prompts[:, -self.queries :]
        place = (pairs[:, None, ::2] == asked[:, :, None]).argmax(axis=2)
        return np.take_along_axis(pairs[:, 1::2], place, axis=1)

    def solve(self, prompt: Sequence[int]) -> list[int]:
        end = list(prompt).index(self.vocab.delimiter)
        values = dict(zip(prompt[:end:2], prompt[1:end:2], strict=True))
        return [values[key] for key in prompt[end + 1 :]]

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        """Pairs of key and value, then the keys that are asked for."""
        pairs, asked = list(symbols[: -self.queries]), list(symbols[-self.queries :])
        keys, values = pairs[::2], pairs[1::2]
        if (
            len(symbols) <= self.queries
            or len(pairs) % 2
            or len(set(keys)) != len(keys)
            or not set(asked) <= set(keys)
            or any(key >= self.keys for key in keys)
            or any(value < self.keys for value in values)
        ):
            raise UserError(
                f"recall takes pairs of a key (1 to {self.keys}, none twice) and a value "
                f"({self.keys + 1} to {self.symbols}), then {self.queries} of the keys"
            )
        return [*pairs, self.vocab.delimiter, *asked]

    def worked_example(self) -> list[int]:
        keys = list(range(min(2, self.keys)))
        pairs = [symbol for key in keys for symbol in (key, self.symbols - 1 - key)]
        return self.prompt([*pairs, *([keys[-1]] * self.queries)])
