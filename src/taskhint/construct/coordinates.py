"""The named coordinates of the constructed model's hidden state.

| name | how many | what it holds |
|---|---|---|
| token s | q + 1 | 1 if the token here is s (a symbol or ⊥): the embedding |
| after ⊥ | 1 | after attention 1: about 1 from ⊥ on, exactly 0 before; block 1's MLP uses it up |
| mark b | q | after block 1: 1 at an input symbol b, -1 at an answer symbol b |
| candidate b | q | after attention 1: the smallest input symbol at ⊥, else the symbol itself |
| remaining b | q | after attention 2: how far copies of b in the input outnumber those after it |
| successor b | q | after attention 2: the smallest symbol larger than the one here |
| spare | few | nothing; with layer normalisation they round the width, see `Plan` |

With layer normalisation every coordinate has a mirror "-name" that holds its negative, so that the
mean is zero. All are written here in units of 1; the model scales them (`Plan.unit_before`,
`Plan.unit_after`).
"""

from __future__ import annotations

from dataclasses import dataclass

from taskhint.system.errors import nearest
from taskhint.tasks.vocab import DELIMITER


@dataclass(frozen=True)
class Coordinates:
    """Where each named coordinate stands. Symbols count from 0, as token ids do; ⊥ is number
    `symbols`.
    """

    symbols: int
    half: int  # coordinates without their mirrors
    mirrored: bool

    @property
    def width(self) -> int:
        return self.half * 2 if self.mirrored else self.half

    @property
    def token(self) -> slice:
        return slice(0, self.symbols + 1)

    @property
    def after(self) -> int:
        return self.symbols + 1

    @property
    def mark(self) -> slice:
        return self._set(0)

    @property
    def candidate(self) -> slice:
        return self._set(1)

    @property
    def remaining(self) -> slice:
        return self._set(2)

    @property
    def successor(self) -> slice:
        return self._set(3)

    def _set(self, number: int) -> slice:
        start = self.symbols + 2 + number * self.symbols
        return slice(start, start + self.symbols)

    @property
    def names(self) -> list[str]:
        """One name per coordinate, in order: "token 1", .., "token ⊥", "after ⊥", "mark 1", ..,
        "-token 1", ..
        """
        symbols = [str(number) for number in range(1, self.symbols + 1)]
        names = [*(f"token {s}" for s in [*symbols, DELIMITER]), f"after {DELIMITER}"]
        names += [
            f"{kind} {s}"
            for kind in ("mark", "candidate", "remaining", "successor")
            for s in symbols
        ]
        names += [f"spare {number}" for number in range(1, self.half - len(names) + 1)]
        return names + [f"-{name}" for name in names] if self.mirrored else names

    def index(self, name: str) -> int:
        names = self.names
        if name not in names:
            raise KeyError(f"no coordinate {name!r}; {nearest(name, names)}")
        return names.index(name)


def needed(symbols: int) -> int:
    """Coordinates that carry something."""
    return 5 * symbols + 2
