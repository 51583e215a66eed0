"""The only place where token ids are made."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from taskhint.system.errors import UserError

DELIMITER = "⊥"
PAD = "PAD"
NONE = "NONE"
_NUMBER = re.compile(r"-?[0-9]+")


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
        return self.symbols + self.marks.index(name)

    def parse(self, words: Iterable[str | int]) -> list[int]:
        """Ids of what a person wrote: symbols as numbers, and the marks that may be written."""
        if not isinstance(words, Iterable):
            raise UserError(f"an input is a list of symbols, got {words!r:.60}")
        return [self._parse_one(word) for word in words]

    def _parse_one(self, word: str | int) -> int:
        if isinstance(word, str) and word in self.written:
            return self.mark(word)
        allowed = f"allowed: whole numbers from {self.first_symbol} to {self.last_symbol}"
        if self.written:
            allowed += f" and {' '.join(self.written)}"
        try:
            value = _number(word) if isinstance(word, str) else operator.index(word)
        except (ValueError, TypeError):
            raise UserError(f"{word!r:.60} is not a symbol; {allowed}") from None
        if not self.first_symbol <= value <= self.last_symbol:
            raise UserError(f"symbol {word!s:.60} is out of range; {allowed}")
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


def _number(word: str) -> int:
    """`int` alone would also read "1_0", "٣" and " 5"."""
    if not _NUMBER.fullmatch(word):
        raise ValueError(word)
    return int(word)
