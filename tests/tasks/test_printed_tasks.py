"""Every registered task against a second solution that sees printed words alone and shares no code
with the package; what a person may write, and what is refused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, product, takewhile
from typing import Any, ClassVar

import numpy as np
import pytest

from taskhint.system.errors import UserError
from taskhint.tasks import Addition, Copy, Dyck, EvenLengths, Parity, Sort, SymbolTask, Task
from taskhint.tasks.random_bits import RandomBits
from taskhint.tasks.vocab import Vocab

Words = list[str]
LENGTHS = (1, 2, 3, 7, 20, 45)
ROWS = 300
TINY = 20_000  # inputs of one length at most


def number(digits: Words) -> int:
    """Most significant digit first."""
    return int("".join(digits))


def operands(prompt: Words, sign: str) -> tuple[Words, Words]:
    place = prompt.index(sign)
    return prompt[:place], prompt[place + 1 : -1]


def backwards(value: int, digits: int) -> Words:
    return list(str(value).zfill(digits))[::-1]


def total(prompt: Words) -> Words:
    a, b = operands(prompt, "+")
    return backwards(number(a) + number(b), len(a) + 1)


def carries(a: Words, value: Callable[[int], int]) -> Words:
    """`value(n)`: the result for the last n digits of the operands."""
    return [str(value(n) // 10**n) for n in range(1, len(a) + 1)]


def sums(prompt: Words) -> Callable[[int], int]:
    a, b = operands(prompt, "+")
    return lambda n: number(a[-n:]) + number(b[-n:])


def total_with_steps(prompt: Words) -> Words:
    a, b = operands(prompt, "+")
    steps = zip(a[::-1], b[::-1], total(prompt), carries(a, sums(prompt)), strict=False)
    answer = [word for step in steps for word in step]
    return [*answer, answer[-1]]


def without_carries(prompt: Words) -> Words:
    a, b = operands(prompt, "+")
    return [str(int(x) + int(y))[-1] for x, y in zip(a[::-1], b[::-1], strict=True)] + ["0"]


def times(prompt: Words) -> Words:
    a, (digit,) = operands(prompt, "x")
    return backwards(number(a) * int(digit), len(a) + 1)


def times_with_steps(prompt: Words) -> Words:
    a, (digit,) = operands(prompt, "x")
    over = carries(a, lambda n: number(a[-n:]) * int(digit))
    steps = zip(a[::-1], times(prompt), over, strict=False)
    answer = [word for step in steps for word in step]
    return [*answer, answer[-1]]


def plus_one(prompt: Words) -> Words:
    return backwards(number(prompt[:-1]) + 1, len(prompt) - 1)


def plus_one_with_carries(prompt: Words) -> Words:
    n, answer = len(prompt) - 1, []
    for place, digit in enumerate(plus_one(prompt)):
        nines = place < n and set(prompt[n - 1 - place : n]) == {"9"}
        answer += [digit, "↑", str(int(nines))]
    return answer


def most(words: Words) -> str:
    (first, often), *others = Counter(words).most_common(2)
    assert all(often > less for _, less in others), "a tie"
    return first


def follower(prompt: Words) -> Words:
    *inputs, _, asked = prompt
    return [[*inputs, "NONE"][inputs.index(asked) + 1]]


def values(prompt: Words) -> Words:
    end = prompt.index("⊥")
    assert len(set(prompt[:end:2])) == end // 2, "a key twice"
    return [prompt[prompt.index(key) + 1] for key in prompt[end + 1 :]]


def written_last(prompt: Words) -> Words:
    text = "".join(prompt[:-1])
    for end in range(0, len(text), 2):
        if text[end] == "r":
            assert text[end + 1] == text[text.rindex("w", 0, end) + 1]
    return [text[text.rindex("w") + 1]]


def balanced(prompt: Words) -> Words:
    text = "".join(prompt[:-1])
    while "()" in text:
        text = text.replace("()", "")
    return [str(int(not text))]


def ordered(prompt: Words) -> Words:
    return sorted(prompt[:-1], key=int)


def larger(prompt: Words) -> Words:
    """The first of several equal ones is followed by itself, as the paper has it."""
    *inputs, _, asked = prompt
    above = [word for word in inputs if int(word) > int(asked)]
    after = [asked] if inputs.count(asked) > 1 else sorted(above, key=int)[:1]
    return after or ["NONE"]


def missing(prompt: Words) -> Words:
    """Copies before ⊥ that are not yet behind it."""
    end = prompt.index("⊥")
    return [prompt[0]] * (2 * end + 1 - len(prompt)) + ["NONE"]


def rarer(prompt: Words) -> Words:
    (_, many), (rare, few) = Counter(prompt[:-1]).most_common()
    return [rare if few < many else "NONE"]


ORACLES: dict[str, Callable[[Words], Words]] = {
    "addition": total,
    "addition-scratchpad": total_with_steps,
    "no-carry": without_carries,
    "carry-only": lambda p: ["0", *carries(operands(p, "+")[0], sums(p))],
    "multiplication": times,
    "multiplication-scratchpad": times_with_steps,
    "increment": plus_one,
    "carry": plus_one_with_carries,
    "parity": lambda p: [str(p.count("1") % 2)],
    "parity-scratchpad": lambda p: [str(p[:n].count("1") % 2) for n in range(1, len(p))],
    "majority": lambda p: [most(p[:-1])],
    "mode": lambda p: [most(p[:-1])],
    "count-up": lambda p: [*map(str, range(int(p[0]), int(p[1]) + 1)), "NONE"],
    "copy": lambda p: p[:-1],
    "copy-repeats": lambda p: p[:-1],
    "reverse": lambda p: p[-2::-1],
    "next": follower,
    "recall": values,
    "flip-flop": written_last,
    "dyck-1": balanced,
    "sort": ordered,
    "restriction": ordered,
    "successor": larger,
    "count": rarer,
    "fill": missing,
}
OURS = [cls() for cls in Task.kinds().values() if cls.__module__.startswith("taskhint.")]


def name(value: Any) -> str:
    return value.kind if isinstance(value, Task) else str(value)


def printed(task: Task, seed: int, length: int) -> Iterator[tuple[Words, Words]]:
    made = task.make(RandomBits(seed, 2, np.arange(ROWS)), length)
    for row, prompt, size in zip(made.tokens, made.prompts, made.sizes, strict=True):
        assert (row[size:] == task.vocab.pad).all()
        yield task.vocab.words(row[:prompt]), task.vocab.words(row[prompt:size])


def test_every_task_has_an_oracle() -> None:
    assert {task.kind for task in OURS} == set(ORACLES)


@pytest.mark.parametrize("task", OURS, ids=name)
def test_every_distribution_is_answered_as_the_oracle_says(task: Task) -> None:
    variants = {"": task} | {
        one: task.for_test(one.replace(":R", ":2")) for one in task.distributions
    }
    for distribution, variant in variants.items():
        tried = 0
        for length in LENGTHS[task.kind == "count" :]:  # which has two symbols
            try:
                rows = list(printed(variant, length, length))
            except UserError as error:
                assert "there are no" in str(error) or length == 1, (distribution, length)
                continue
            for prompt, answer in rows:
                assert answer == ORACLES[task.kind](prompt), (distribution, prompt)
            tried += len(rows)
        assert tried >= 2 * ROWS, distribution


MAIN = [task for task in OURS if not task.hint_for]  # people write to main tasks


@pytest.mark.parametrize("task", MAIN, ids=name)
def test_tiny_inputs_are_answered_as_the_oracle_says(task: Task) -> None:
    """All that a person can write; what `prompt` refuses has no answer."""
    task = replace(task, symbols=4) if isinstance(task, SymbolTask) else task
    vocab, tried, right = task.vocab, 0, 0
    words = [*vocab.words(range(vocab.symbols)), *vocab.written]
    for length in takewhile(lambda n: len(words) ** n < TINY, count(1)):
        for given in product(words, repeat=length):
            tried += 1
            try:
                prompt = task.prompt(vocab.parse(given))
            except UserError:
                continue
            shown = vocab.words(prompt)
            assert vocab.words(task.solve(prompt)) == ORACLES[task.kind](shown), shown
            right += 1
    assert tried > TINY / 10 and right >= 10


BAD_WORDS = ("1.0", "1e3", "0x1", "1_0", "+1", "²", "٣", "⊥", "PAD", "-", "1,2", "9" * 5000)
BAD_INPUTS: tuple[Any, ...] = (
    None,
    5,
    b"12",
    {"1"},
    {1: 2},
    [1.0],
    [None],
    [b"1"],
    [10**5000],
    [-(10**5000)],
    [[1, 2]],
    np.zeros((40, 40), int),
)


@pytest.mark.parametrize("vocab", [task.vocab for task in (Sort(), Addition(), Parity(), Dyck())])
def test_what_is_no_symbol_is_refused_in_one_short_line(vocab: Vocab) -> None:
    for bad in (*([word] for word in BAD_WORDS), *BAD_INPUTS):
        with pytest.raises(UserError) as refused:
            vocab.parse(bad)
        assert "\n" not in str(refused.value) and len(str(refused.value)) < 160


@dataclass(frozen=True)
class Shifted(Sort):
    """Symbols that begin elsewhere: the usual worked example may not be among them."""

    kind: ClassVar[str] = "shifted"
    begin: int = 0

    @property
    def vocab(self) -> Vocab:
        return replace(super().vocab, first_symbol=self.begin)


@pytest.mark.parametrize(("begin", "symbols"), [(0, 43), (0, 44), (6, 100), (1, 43), (-3, 5)])
def test_a_worked_example_has_symbols_of_the_task(begin: int, symbols: int) -> None:
    task = Shifted(begin=begin, symbols=symbols)
    assert set(task.worked_example()) <= set(range(symbols)) | {task.vocab.delimiter}


def test_whole_numbers_of_any_type_are_symbols() -> None:
    vocab = Copy().vocab
    rows: list[Any] = [["7", "100"], [7, 100], np.array([7, 100]), (np.int8(7), "100")]
    for given in (*rows, iter([7, 100])):
        assert vocab.parse(given) == [6, 99]


@pytest.mark.parametrize("task", OURS, ids=name)
def test_lengths_are_drawn_as_often_as_they_should_be(task: Task) -> None:
    """All lengths of `shares`, and none beside them; each as often as it says."""
    for lengths in (task.lengths, EvenLengths(1, 6)):
        drawn = Counter(lengths.draw(RandomBits(5, 2, np.arange(20_000))).tolist())
        shares = lengths.shares()
        assert set(drawn) == set(shares) and math.isclose(sum(shares.values()), 1.0)
        assert all(abs(drawn[n] / 20_000 - share) < 0.02 for n, share in shares.items())
