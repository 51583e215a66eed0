"""The only place where token ids are made."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from taskhint.system.errors import UserError

DELIMITER = "⊥"
PAD = "PAD"
NONE = "NONE"
NUMBER = re.compile(r"-?[0-9]{1,3000}")
NO_ROWS = (bytes, bytearray, Mapping, Set)  # iterable, but no row of symbols


@dataclass(frozen=True)
class Vocab:
    """Symbols are numbers in a row and take the ids 0, 1, ...; the marks (⊥, PAD, ...) take the
    ids after them.

    `written` are the marks that a person may write in an input, such as the + of an addition.
    """

    first_symbol: int
    symbols: int
    marks: tuple[str, ...]
    written: tuple[str, ...] = ()

    @cached_property
    def size(self) -> int:
        return self.symbols + len(self.marks)

    @property
    def last_symbol(self) -> int:
        return self.first_symbol + self.symbols - 1

    @cached_property
    def delimiter(self) -> int:
        return self.mark(DELIMITER)

    @cached_property
    def pad(self) -> int:
        return self.mark(PAD)

    def mark(self, name: str) -> int:
        """The id of a mark."""
        if name not in self.marks:
            known = ", ".join(self.marks) or "none"
            raise UserError(f"the vocabulary has no mark {name!s:.60}; its marks: {known}")
        return self.symbols + self.marks.index(name)

    def parse(self, words: Iterable[str | int]) -> list[int]:
        """Ids of what a person wrote: symbols as numbers, and the marks that may be written."""
        if not isinstance(words, Iterable) or isinstance(words, NO_ROWS):
            raise UserError(f"an input is a list of symbols, got {_shown(words)}")
        return [self._parse_one(word) for word in words]

    def _parse_one(self, word: str | int) -> int:
        if isinstance(word, str) and word in self.written:
            return self.mark(word)
        allowed = f"allowed: whole numbers from {self.first_symbol} to {self.last_symbol}"
        if self.written:
            allowed += f" and {' '.join(self.written)}"
        value = _number(word)
        if value is None:
            raise UserError(f"{_shown(word)} is not a symbol; {allowed}")
        if not self.first_symbol <= value <= self.last_symbol:
            shown = f"symbol {word!s:.60}" if value.bit_length() < 10_000 else "a symbol"
            raise UserError(f"{shown} is out of range; {allowed}")
        return value - self.first_symbol

    def words(self, ids: Sequence[int]) -> list[str]:
        """What a person reads for each id."""
        return [self._word(int(i)) for i in ids]

    def values(self, ids: Sequence[int]) -> list[int | str]:
        """The same with symbols as numbers."""
        return [i + self.first_symbol if i < self.symbols else self._word(i) for i in ids]

    def _word(self, token: int) -> str:
        if token < self.symbols:
            return str(token + self.first_symbol)
        return self.marks[token - self.symbols]


def _number(word: str | int) -> int | None:
    """The whole number that somebody wrote; None if it is none. `int` alone would also read
    "1_0", "٣" and " 5".
    """
    if isinstance(word, str):
        return int(word) if NUMBER.fullmatch(word) else None
    try:
        return operator.index(word)
    except TypeError:
        return None


def _shown(value: object) -> str:
    """Short and on one line."""
    return " ".join(f"{value!r:.60}".split())
