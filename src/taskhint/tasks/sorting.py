"""Sorting, and its hints: successor, count, fill.

Shapes: B examples, n input symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from taskhint.system.errors import UserError
from taskhint.tasks.lengths import MAX_LENGTH, Lengths
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import Examples, Task, delimited
from taskhint.tasks.vocab import DELIMITER, NONE, PAD, Vocab

PAPER_LENGTHS = Lengths(shortest=2, short=5, longest=20)
MAX_SYMBOLS = 1 << 20


@dataclass(frozen=True)
class Mixture:
    """Uniform symbols, except that a share `repetition` of the sequences draws from a small pool of distinct symbols.

    The pool has ⌊n/2⌋ symbols (`half`, the paper's), or 1 to ⌊n/2⌋ of them, each size equally likely (`any`).
    A share `near` of those sequences draws from neighbouring symbols instead: 1 to n of them without a gap, each size
    and place equally likely, and in half of the sequences some symbols are rarer than others. Long sequences are
    dense and uneven, short ones of uniform symbols are not: this shows what that is like without a long one.
    """

    kind: ClassVar[str] = "mixture"

    repetition: float = 0.1
    pool: Literal["half", "any"] = "half"
    near: float = 0.0

    def __post_init__(self) -> None:
        for name in ("repetition", "near"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise UserError(f"{name}={getattr(self, name)} is not in 0..1")

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
    """(B, n) symbols, each row out of 1 to n that follow each other without a gap; half of the rows unevenly."""
    size = 1 + bits.integers(min(n, symbols), 1)
    first = bits.integers(symbols - size + 1, 1)
    place = bits.integers(size, n)
    uneven = bits.chance(0.5)
    rare = bits.subset(uneven)
    often = rare.integers(size[uneven], 1)  # the most frequent one; they become rarer above it, and around the end
    place[uneven] = (often + rare.integers(place[uneven] + 1, n)) % size[uneven]
    return first + place


@dataclass(frozen=True)
class Copies:
    """rep(n, r): ⌊n/r⌋ distinct symbols (or all there are, if fewer), r copies of each; the rest uniform; shuffled."""

    kind: ClassVar[str] = "copies"

    each: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.each <= MAX_LENGTH:
            raise UserError(f"rep:{self.each} is not in 1..{MAX_LENGTH}")

    def draw(self, bits: RandomBits, symbols: int, n: int) -> Ints:
        distinct = min(n // self.each, symbols)
        copies = np.repeat(bits.distinct(symbols, distinct), self.each, axis=1)
        rest = bits.integers(symbols, n - distinct * self.each)
        return bits.shuffled(np.concatenate([copies, rest], axis=1))


@dataclass(frozen=True)
class SymbolTask(Task):
    """What sorting and its hints share: the symbols 1..q with ⊥, PAD and NONE."""

    lengths: Lengths = PAPER_LENGTHS
    symbols: int = 100

    def __post_init__(self) -> None:
        if not 2 <= self.symbols <= MAX_SYMBOLS:
            raise UserError(f"symbols={self.symbols} is not in 2..{MAX_SYMBOLS}")

    @property
    def vocab(self) -> Vocab:
        return Vocab(first_symbol=1, symbols=self.symbols, marks=(DELIMITER, PAD, NONE))

    def worked_example(self) -> list[int]:
        return self.prompt(self.vocab.parse([5, 17, 43, 17])) if self.symbols >= 43 else self.prompt([1, 0, 1])


@dataclass(frozen=True)
class Sort(SymbolTask):
    kind: ClassVar[str] = "sort"
    about: ClassVar[str] = "x1 .. xn ⊥ -> the same symbols in increasing order"

    inputs: Mixture | Copies = Mixture()

    def make(self, bits: RandomBits, length: int) -> Examples:
        inputs = self.inputs.draw(bits, self.symbols, length)
        return Examples.equal(delimited(self, inputs), np.sort(inputs, axis=1), length)

    def solve(self, prompt: Sequence[int]) -> list[int]:
        return sorted(prompt[:-1])

    def for_test(self, distribution: str) -> Self:
        if distribution == "uniform":
            return replace(self, inputs=Mixture(repetition=0.0))
        name, _, copies = distribution.partition(":")
        if name == "rep" and copies.isdecimal() and int(copies) >= 1:
            return replace(self, inputs=Copies(int(copies)))
        raise UserError(f"sort has no test distribution {distribution!r}; allowed: uniform, rep:2, rep:3, ...")


@dataclass(frozen=True)
class Successor(SymbolTask):
    """Which symbol follows `a` in sorted order.

    `repeated` says what follows a symbol that occurs several times: the one after its first occurrence, which is itself
    (`first`), or the next larger one (`next-distinct`, which ruins the main task: the two disagree on every repeat).
    `unasked` leaves it open: `a` is one of the symbols that occur once, and only where there is none as in `first`.
    `counted` asks at every copy, as sorting does: x1 .. xn ⊥ a a shows two of them, and if there is no third the next
    larger symbol follows. Nothing follows the last one: NONE.
    """

    kind: ClassVar[str] = "successor"
    about: ClassVar[str] = "x1 .. xn ⊥ a -> the symbol after a in sorted order, or NONE after the last"

    inputs: Mixture | Copies = Mixture()
    repeated: Literal["first", "next-distinct", "unasked", "counted"] = "first"

    def make(self, bits: RandomBits, length: int) -> Examples:
        inputs = self.inputs.draw(bits, self.symbols, length)
        if self.repeated == "unasked":
            once = _occurring_once(inputs)
            chosen = _one_of(bits, inputs, once | ~once.any(axis=1, keepdims=True))
        else:
            chosen = np.take_along_axis(inputs, bits.integers(length, 1), axis=1)
        ordered = np.pad(np.sort(inputs, axis=1), ((0, 0), (0, 1)), constant_values=self.vocab.mark(NONE))
        smaller, copies = (is_so(inputs, chosen).sum(axis=1, keepdims=True) for is_so in (np.less, np.equal))
        shown = 1 + bits.integers(copies, 1) if self.repeated == "counted" else np.ones_like(copies)
        place = smaller + (copies if self.repeated == "next-distinct" else shown)
        answer = np.take_along_axis(ordered, place, axis=1)
        column = np.arange(shown.max(initial=1) + 1)
        written = np.where(column < shown, chosen, np.where(column == shown, answer, self.vocab.pad))
        prompts = length + 1 + shown[:, 0]
        tokens = np.concatenate([delimited(self, inputs), written], axis=1)
        return Examples(tokens, prompts, sizes=prompts + 1, inputs=np.full(len(bits), length))

    def solve(self, prompt: Sequence[int]) -> list[int]:
        end = list(prompt).index(self.vocab.delimiter)
        inputs, shown = prompt[:end], prompt[end + 1 :]
        ordered = [*sorted(inputs), self.vocab.mark(NONE)]
        if self.repeated == "next-distinct":
            return [min((x for x in inputs if x > shown[0]), default=self.vocab.mark(NONE))]
        return [ordered[ordered.index(shown[0]) + len(shown)]]

    def prompt(self, symbols: Sequence[int]) -> list[int]:
        """The last symbol is the one whose successor is asked for."""
        if len(symbols) < 2 or symbols[-1] not in symbols[:-1]:
            raise UserError("successor takes a sequence and then one of its symbols")
        return [*symbols[:-1], self.vocab.delimiter, symbols[-1]]


def _occurring_once(inputs: Ints) -> npt.NDArray[np.bool_]:
    """(B, n) which symbols occur once in their row."""
    order = np.argsort(inputs, axis=1)
    first = np.diff(np.take_along_axis(inputs, order, axis=1), axis=1, prepend=-1) != 0
    last = np.pad(first[:, 1:], ((0, 0), (0, 1)), constant_values=True)
    once = np.empty_like(first)
    np.put_along_axis(once, order, first & last, axis=1)
    return once


def _one_of(bits: RandomBits, inputs: Ints, allowed: npt.NDArray[np.bool_]) -> Ints:
    """(B, 1) one of the allowed symbols of each row, each place equally likely."""
    number = bits.integers(allowed.sum(axis=1, keepdims=True), 1)
    place = (np.cumsum(allowed, axis=1) > number).argmax(axis=1, keepdims=True)
    return np.take_along_axis(inputs, place, axis=1)


@dataclass(frozen=True)
class Count(SymbolTask):
    """Which of two symbols occurs less often.

    In half of the examples both occur equally often (an odd length then gives one symbol less), and the answer is NONE;
    else one occurs `gap` times less, gap uniform among those that are possible and at most `largest_gap`.
    """

    kind: ClassVar[str] = "count"
    about: ClassVar[str] = "a sequence of two symbols ⊥ -> the rarer one, or NONE if they tie"

    largest_gap: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.largest_gap <= MAX_LENGTH:
            raise UserError(f"largest_gap={self.largest_gap} is not in 1..{MAX_LENGTH}")

    def make(self, bits: RandomBits, length: int) -> Examples:
        pair = bits.distinct(self.symbols, 2)
        gaps = [gap for gap in range(1, self.largest_gap + 1) if gap < length - 1 and (length - gap) % 2 == 0]
        tied = bits.chance(0.5) | (not gaps)
        gap = np.array([*gaps, 0])[bits.integers(max(1, len(gaps)), 1)[:, 0]]
        gap[tied] = length % 2  # dropped again below: a tie needs an even number of symbols
        rare = (length - gap) // 2
        inputs = np.where(np.arange(length) < rare[:, None], pair[:, :1], pair[:, 1:])
        size = np.where(tied, 2 * rare, length)
        order = bits.words(length)
        order[np.arange(length) >= size[:, None]] = np.iinfo(np.uint64).max  # what is dropped stays behind
        inputs = np.take_along_axis(inputs, np.argsort(order, axis=1, kind="stable"), axis=1)
        return self._lay_out(inputs, size, np.where(tied, self.vocab.mark(NONE), pair[:, 0]))

    def _lay_out(self, inputs: Ints, size: Ints, answer: Ints) -> Examples:
        count, longest = inputs.shape
        tokens = np.full((count, longest + 2), self.vocab.pad)
        tokens[:, :longest] = inputs
        row = np.arange(count)
        tokens[np.arange(longest + 2) >= size[:, None]] = self.vocab.pad
        tokens[row, size], tokens[row, size + 1] = self.vocab.delimiter, answer
        return Examples(tokens, prompts=size + 1, sizes=size + 2, inputs=size)

    def solve(self, prompt: Sequence[int]) -> list[int]:
        inputs = list(prompt[:-1])
        (_, many), (rare, few) = ((x, inputs.count(x)) for x in sorted(set(inputs), key=inputs.count, reverse=True))
        return [rare if few < many else self.vocab.mark(NONE)]

    def worked_example(self) -> list[int]:
        return self.prompt([1, 0, 1, 1, 0])


@dataclass(frozen=True)
class Fill(SymbolTask):
    """Write the copies that are still missing, then NONE: without that mark there would be nothing to count."""

    kind: ClassVar[str] = "fill"
    about: ClassVar[str] = "a a .. a ⊥ a .. a -> the copies still missing after ⊥, then NONE"

    def make(self, bits: RandomBits, length: int) -> Examples:
        symbol = bits.integers(self.symbols, 1)
        shown = 1 + bits.integers(max(1, length // 2), 1)[:, 0]
        tokens = np.repeat(symbol, 2 * length + 2, axis=1)
        tokens[:, length] = self.vocab.delimiter
        tokens[:, -1] = self.vocab.mark(NONE)
        count = len(bits)
        return Examples(
            tokens,
            prompts=length + 1 + shown,
            sizes=np.full(count, 2 * length + 2),
            inputs=np.full(count, length),
        )

    def solve(self, prompt: Sequence[int]) -> list[int]:
        wanted = list(prompt).index(self.vocab.delimiter)
        missing = wanted - (len(prompt) - wanted - 1)
        return [prompt[0]] * missing + [self.vocab.mark(NONE)]

    def worked_example(self) -> list[int]:
        return [0, 0, 0, 0, self.vocab.delimiter, 0]
