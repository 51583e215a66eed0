"""Where the symbols of an input come from: in training, and in the test distributions.

Shapes: B examples, n input symbols.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from taskhint.system.errors import UserError
from taskhint.system.settings import Family, setting
from taskhint.tasks.lengths import MAX_LENGTH
from taskhint.tasks.random_bits import Ints, RandomBits


@dataclass(frozen=True)
class Inputs(Family):
    """A distribution of input symbols."""

    family: ClassVar[str] = "input distribution"
    label: ClassVar[str] = "inputs"

    @abstractmethod
    def draw(self, bits: RandomBits, symbols: int, n: int) -> Ints:
        """(B, n) ids below `symbols`. The same bits always give the same inputs."""


@dataclass(frozen=True)
class Mixture(Inputs):
    """Uniform symbols, except that a share `repetition` of the sequences draws from a small pool
    of distinct symbols.

    The pool has ⌊n/2⌋ symbols (`half`, the paper's), or 1 to ⌊n/2⌋ of them, each size equally
    likely (`any`). A share `near` of those sequences draws from neighbouring symbols instead: 1 to
    n of them without a gap, each size and place equally likely, and in half of the sequences some
    symbols are rarer than others. Long sequences are dense and uneven, short ones of uniform
    symbols are not: this shows what that is like without a long one.
    """

    kind: ClassVar[str] = "mixture"

    repetition: float = setting(0.1, at_least=0, at_most=1)
    pool: Literal["half", "any"] = "half"
    near: float = setting(0.0, at_least=0, at_most=1)

    def draw(self, bits: RandomBits, symbols: int, n: int) -> Ints:
        repeated = bits.chance(self.repetition)
        inputs = bits.integers(symbols, n)
        chosen = bits.subset(repeated)
        largest = min(max(1, n // 2), symbols)
        size = largest if self.pool == "half" else 1 + chosen.integers(largest, 1)
        pool = chosen.distinct(symbols, largest)
        drawn = np.take_along_axis(pool, chosen.integers(size, n), axis=1)
        if self.near:
            close = chosen.chance(self.near)
            drawn[close] = _neighbours(chosen.subset(close), symbols, n)
        inputs[repeated] = drawn
        return inputs


def _neighbours(bits: RandomBits, symbols: int, n: int) -> Ints:
    """(B, n) symbols, each row out of 1 to n that follow each other without a gap; half of the
    rows unevenly.
    """
    size = 1 + bits.integers(min(n, symbols), 1)
    first = bits.integers(symbols - size + 1, 1)
    place = bits.integers(size, n)
    uneven = bits.chance(0.5)
    rare = bits.subset(uneven)
    often = rare.integers(
        size[uneven], 1
    )  # the most frequent one; they become rarer above it, and around the end
    place[uneven] = (often + rare.integers(place[uneven] + 1, n)) % size[uneven]
    return first + place


@dataclass(frozen=True)
class Copies(Inputs):
    """rep(n, r): ⌊n/r⌋ distinct symbols (or all there are, if fewer), r copies of each; the rest
    uniform; shuffled.
    """

    kind: ClassVar[str] = "copies"

    each: int = setting(3, at_least=1, at_most=MAX_LENGTH)

    def draw(self, bits: RandomBits, symbols: int, n: int) -> Ints:
        distinct = min(n // self.each, symbols)
        copies = np.repeat(bits.distinct(symbols, distinct), self.each, axis=1)
        rest = bits.integers(symbols, n - distinct * self.each)
        return bits.shuffled(np.concatenate([copies, rest], axis=1))


@dataclass(frozen=True)
class Distinct(Inputs):
    """No symbol twice, each choice and order equally likely."""

    kind: ClassVar[str] = "distinct"

    def draw(self, bits: RandomBits, symbols: int, n: int) -> Ints:
        if n > symbols:
            raise self.too_many(symbols, n)
        return bits.distinct(symbols, n)

    @staticmethod
    def too_many(symbols: int, n: int) -> UserError:
        return UserError(
            f"there are no {n} distinct inputs among {symbols} symbols; shorten the input"
        )


@dataclass(frozen=True)
class DistinctNear(Inputs):
    """No symbol twice; a share `near` of the sequences draws from neighbouring symbols.

    Those are n to all symbols without a gap, each number and place equally likely. Long sequences
    of distinct symbols are dense, short ones are not: as `near` of `mixture`, this shows what that
    is like without a long one.
    """

    kind: ClassVar[str] = "distinct-near"

    near: float = setting(0.5, at_least=0, at_most=1)

    def draw(self, bits: RandomBits, symbols: int, n: int) -> Ints:
        if n > symbols:
            raise Distinct.too_many(symbols, n)
        close = bits.chance(self.near)
        size = np.where(close, n + bits.integers(symbols - n + 1, 1)[:, 0], symbols)[:, None]
        first = bits.integers(symbols - size + 1, 1)
        place = np.arange(symbols)
        order = bits.words(symbols)
        order[(place < first) | (place >= first + size)] = np.iinfo(np.uint64).max
        return np.argsort(order, axis=1, kind="stable")[:, :n]


@dataclass(frozen=True)
class Restricted(Inputs):
    """Parts of long sequences, after Awasthi et al. 2025: a share of the inputs is n neighbours in
    the order of `of` uniform symbols, or of any number from n to that; the others are uniform.

    No input is longer than n. But how dense and how uneven they are is that of long ones.
    """

    kind: ClassVar[str] = "restricted"

    of: int = setting(100, at_least=1, at_most=MAX_LENGTH)
    share: float = setting(1.0, at_least=0, at_most=1)

    def draw(self, bits: RandomBits, symbols: int, n: int) -> Ints:
        restricted = bits.chance(self.share)
        inputs = bits.integers(symbols, n)
        chosen = bits.subset(restricted)
        most = max(n, self.of)
        count = n + chosen.integers(most - n + 1, 1)
        long = chosen.integers(symbols, most)
        long[np.arange(most) >= count] = symbols  # not drawn: behind all that are
        first = chosen.integers(count - n + 1, 1)
        part = np.take_along_axis(np.sort(long, axis=1), first + np.arange(n), axis=1)
        inputs[restricted] = chosen.shuffled(part)
        return inputs


UNIFORM = Mixture(repetition=0.0)


def inputs_for_test(distribution: str) -> Inputs | None:
    """uniform, distinct, or rep:R; None for any other name."""
    name, _, copies = distribution.partition(":")
    if name == "rep" and copies.isdecimal() and int(copies) >= 1:
        return Copies(int(copies))
    return {"uniform": UNIFORM, "distinct": Distinct()}.get(distribution)
