"""Sorting, and its hints: successor, count, fill.

Shapes: B examples, n input symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from taskhint.system.errors import UserError
from taskhint.system.settings import setting
from taskhint.tasks.inputs import Inputs, Mixture, Restricted
from taskhint.tasks.lengths import MAX_LENGTH
from taskhint.tasks.random_bits import Ints, RandomBits
from taskhint.tasks.task import Examples, Flags, Step, SymbolTask, delimited
from taskhint.tasks.theory import HUANG, OURS, ZHOU, Theory
from taskhint.tasks.vocab import NONE

PAPER_INPUT = (5, 17, 43, 78, 92)


@dataclass(frozen=True)
class Sort(SymbolTask):
    kind: ClassVar[str] = "sort"
    about: ClassVar[str] = "x1 .. xn ⊥ -> the same symbols in increasing order"
    theory: ClassVar[Theory | None] = Theory(
        True,
        True,
        "the next larger symbol, found by comparing counts",
        f"{HUANG} and {ZHOU} on distinct symbols; repeats {OURS}",
    )
    step_kinds: ClassVar[tuple[str, ...]] = ("minimum", "successor", "repeat", "end")
    error_kinds: ClassVar[tuple[str, ...]] = (
        "wrong minimum",
        "moved on too early",
        "repeated too often",
        "skipped a symbol",
        "went back",
        "not in the input",
    )

    inputs: Inputs = field(default_factory=Mixture)

    def make(self, bits: RandomBits, length: int) -> Examples:
        inputs = self.inputs.draw(bits, self.symbols, length)
        return Examples.equal(delimited(self, inputs), np.sort(inputs, axis=1), length)

    def solve(self, prompt: Sequence[int]) -> list[int]:
        return sorted(prompt[:-1])

    def usual_prompt(self) -> list[int]:
        if self.symbols < max(PAPER_INPUT):
            return self.worked_example()
        return self.prompt(self.vocab.parse(PAPER_INPUT))

    def step_kind(self, step: Step) -> str:
        if step.before is None:
            return "minimum"
        if step.after is None:
            return "end"
        return "repeat" if step.right == step.before else "successor"

    def error_kind(self, step: Step) -> str:
        if step.predicted not in step.inputs:
            return "not in the input"
        if step.before is None:
            return "wrong minimum"
        if step.predicted == step.before:
            return "repeated too often"
        if step.predicted < step.before:
            return "went back"
        moved = min(symbol for symbol in step.inputs if symbol > step.before)
        return "moved on too early" if step.predicted == moved else "skipped a symbol"

    def key_kinds(self, sequences: Ints, inputs: int) -> dict[str, Flags]:
        keys, queries = sequences[:, None, :-1], sequences[:, inputs + 1 : -1, None]
        same, symbols, nothing = keys == queries, keys[:, :, :inputs], self.vocab.size
        next_larger = np.where(symbols > queries, symbols, nothing).min(axis=2, keepdims=True)
        ends = np.broadcast_to(keys == self.vocab.delimiter, same.shape)
        return {"same symbol": same, "successor": keys == next_larger, "⊥": ends}

    def chosen_places(self, sequence: Sequence[int], inputs: int) -> dict[str, int]:
        """The middle symbol in order, and its last copy that the answer goes on from."""
        middle = sorted(sequence[:inputs])[(inputs - 1) // 2]
        copies = [k for k in range(inputs + 1, len(sequence) - 1) if sequence[k] == middle]
        return {
            "input": list(sequence).index(middle),
            **({"answer": copies[-1]} if copies else {}),
        }

    def roles(self, sequence: Sequence[int], inputs: int, place: int) -> dict[str, int]:
        token, following, smallest = sequence[place], sequence[place + 1], min(sequence[:inputs])
        if place == inputs:
            return {"minimum": smallest}
        if place > inputs:
            return {"token": token, "right next" if following == token else "successor": following}
        larger = [symbol for symbol in sequence[:inputs] if symbol > token]
        next_one = {"successor": min(larger)} if larger else {}
        return {"token": token, **next_one, "minimum": smallest}


@dataclass(frozen=True)
class Successor(SymbolTask):
    """Which symbol follows `a` in sorted order.

    `repeated` says what follows a symbol that occurs several times: the one after its first
    occurrence, which is itself (`first`), or the next larger one (`next-distinct`, which ruins the
    main task: the two disagree on every repeat). `unasked` leaves it open: `a` is one of the
    symbols that occur once, and only where there is none as in `first`. `counted` asks at every
    copy, as sorting does: x1 .. xn ⊥ a a shows two of them, and if there is no third the next
    larger symbol follows. Nothing follows the last one: NONE.
    """

    kind: ClassVar[str] = "successor"
    hint_for: ClassVar[str] = "sort"
    about: ClassVar[str] = (
        "x1 .. xn ⊥ a -> the symbol after a in sorted order, or NONE after the last"
    )

    inputs: Inputs = field(default_factory=Mixture)
    repeated: Literal["first", "next-distinct", "unasked", "counted"] = "first"

    def make(self, bits: RandomBits, length: int) -> Examples:
        inputs = self.inputs.draw(bits, self.symbols, length)
        if self.repeated == "unasked":
            once = _occurring_once(inputs)
            chosen = _one_of(bits, inputs, once | ~once.any(axis=1, keepdims=True))
        else:
            chosen = np.take_along_axis(inputs, bits.integers(length, 1), axis=1)
        ordered = np.pad(
            np.sort(inputs, axis=1), ((0, 0), (0, 1)), constant_values=self.vocab.mark(NONE)
        )
        smaller, copies = (
            is_so(inputs, chosen).sum(axis=1, keepdims=True) for is_so in (np.less, np.equal)
        )
        shown = (
            1 + bits.integers(copies, 1) if self.repeated == "counted" else np.ones_like(copies)
        )
        place = smaller + (copies if self.repeated == "next-distinct" else shown)
        answer = np.take_along_axis(ordered, place, axis=1)
        column = np.arange(shown.max(initial=1) + 1)
        written = np.where(
            column < shown, chosen, np.where(column == shown, answer, self.vocab.pad)
        )
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


def _occurring_once(inputs: Ints) -> Flags:
    """(B, n) which symbols occur once in their row."""
    order = np.argsort(inputs, axis=1)
    first = np.diff(np.take_along_axis(inputs, order, axis=1), axis=1, prepend=-1) != 0
    last = np.pad(first[:, 1:], ((0, 0), (0, 1)), constant_values=True)
    once = np.empty_like(first)
    np.put_along_axis(once, order, first & last, axis=1)
    return once


def _one_of(bits: RandomBits, inputs: Ints, allowed: Flags) -> Ints:
    """(B, 1) one of the allowed symbols of each row, each place equally likely."""
    number = bits.integers(allowed.sum(axis=1, keepdims=True), 1)
    place = (np.cumsum(allowed, axis=1) > number).argmax(axis=1, keepdims=True)
    return np.take_along_axis(inputs, place, axis=1)


@dataclass(frozen=True)
class Count(SymbolTask):
    """Which of two symbols occurs less often.

    In half of the examples both occur equally often (an odd length then gives one symbol less),
    and the answer is NONE; else one occurs `gap` times less, gap uniform among those that are
    possible and at most `largest_gap`.
    """

    kind: ClassVar[str] = "count"
    hint_for: ClassVar[str] = "sort"
    about: ClassVar[str] = "a sequence of two symbols ⊥ -> the rarer one, or NONE if they tie"

    largest_gap: int = setting(5, at_least=1, at_most=MAX_LENGTH)

    def make(self, bits: RandomBits, length: int) -> Examples:
        pair = bits.distinct(self.symbols, 2)
        gaps = [
            gap
            for gap in range(1, self.largest_gap + 1)
            if gap < length - 1 and (length - gap) % 2 == 0
        ]
        tied = bits.chance(0.5) | (not gaps)
        gap = np.array([*gaps, 0])[bits.integers(max(1, len(gaps)), 1)[:, 0]]
        gap[tied] = length % 2  # dropped again below: a tie needs an even number of symbols
        rare = (length - gap) // 2
        inputs = np.where(np.arange(length) < rare[:, None], pair[:, :1], pair[:, 1:])
        size = np.where(tied, 2 * rare, length)
        order = bits.words(length)
        order[np.arange(length) >= size[:, None]] = np.iinfo(
            np.uint64
        ).max  # what is dropped stays behind
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
        (_, many), (rare, few) = (
            (x, inputs.count(x)) for x in sorted(set(inputs), key=inputs.count, reverse=True)
        )
        return [rare if few < many else self.vocab.mark(NONE)]

    def worked_example(self) -> list[int]:
        return self.prompt([1, 0, 1, 1, 0])


@dataclass(frozen=True)
class Fill(SymbolTask):
    """Write the copies that are still missing, then NONE: without that mark there would be nothing
    to count.
    """

    kind: ClassVar[str] = "fill"
    hint_for: ClassVar[str] = "sort"
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


@dataclass(frozen=True)
class Restriction(Sort):
    """Sorting parts of long sequences, with a head of its own: the hint of Awasthi et al. 2025."""

    kind: ClassVar[str] = "restriction"
    hint_for: ClassVar[str] = "sort"
    about: ClassVar[str] = "sort, on neighbours out of a longer sequence"

    inputs: Inputs = field(default_factory=Restricted)
