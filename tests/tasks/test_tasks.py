"""Tasks against plain Python: every answer that `make` gives is the one that `solve` finds for its
prompt.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskhint.system.errors import UserError
from taskhint.tasks import (
    Carry,
    Copies,
    Count,
    Distinct,
    Fill,
    Increment,
    Mixture,
    Sort,
    Successor,
    Task,
)
from taskhint.tasks.increment import CARRY_MARK
from taskhint.tasks.inputs import UNIFORM
from taskhint.tasks.lengths import Skewed
from taskhint.tasks.random_bits import RandomBits
from taskhint.tasks.task import hints_for
from taskhint.tasks.vocab import NONE

VARIANTS: list[Task] = [
    *(task() for task in (Sort, Successor, Count, Fill, Increment, Carry)),
    Sort(inputs=Mixture(0.7, "any"), symbols=7),
    Sort(inputs=Mixture(0.9, "any", 0.6), symbols=9),
    Sort(inputs=Copies(3), symbols=7),
    Successor(repeated="next-distinct", inputs=Mixture(0.5)),
    Successor(repeated="unasked", inputs=Mixture(0.5)),
    Successor(repeated="counted", inputs=Mixture(0.5)),
    Increment(nines=1.0),
    Carry(nines=1.0),
]


def rows_of(task: Task, seed: int, length: int, count: int) -> list[tuple[list[int], list[int]]]:
    examples = task.make(RandomBits(seed, 2, np.arange(count)), length)
    return [
        (row[:prompt].tolist(), row[prompt:size].tolist())
        for row, prompt, size in zip(
            examples.tokens, examples.prompts, examples.sizes, strict=True
        )
    ]


@pytest.mark.parametrize("task", VARIANTS, ids=repr)
@given(seed=st.integers(0, 1000), length=st.integers(2, 30))
def test_every_answer_is_the_solvers(task: Task, seed: int, length: int) -> None:
    for prompt, answer in rows_of(task, seed, length, 8):
        assert answer == task.solve(prompt)


@pytest.mark.parametrize("task", VARIANTS, ids=repr)
def test_inputs_are_counted_and_padding_stays_outside(task: Task) -> None:
    for length in range(2, 21):
        examples = task.make(RandomBits(1, 2, np.arange(50)), length)
        for row, size, inputs in zip(
            examples.tokens, examples.sizes, examples.inputs, strict=True
        ):
            assert row[inputs] == task.vocab.delimiter
            assert task.vocab.pad not in row[:size]
            assert (row[size:] == task.vocab.pad).all()
            assert inputs <= length


def test_vocabularies_have_the_papers_sizes() -> None:
    assert Sort().vocab.size == 103
    assert Increment().vocab.size == 14
    assert list(hints_for("sort"))[:3] == ["successor", "count", "fill"] and list(
        hints_for("increment")
    ) == ["carry"]
    for main in (Sort(), Increment()):
        for hint in hints_for(main.kind).values():
            assert hint().vocab == main.vocab  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("task", "short", "longest"), [(Sort(), range(2, 6), 20), (Increment(), range(2, 5), 10)]
)
def test_lengths_follow_the_papers_distribution(task: Task, short: range, longest: int) -> None:
    count = 400_000
    drawn = Counter(task.lengths.draw(RandomBits(0, 2, np.arange(count))).tolist())
    assert set(drawn) == set(range(2, longest + 1))
    for length, seen in drawn.items():
        share = 0.8 / len(short) if length in short else 0.2 / (longest - short[-1])
        assert abs(seen / count - share) < 5 * (share / count) ** 0.5


def test_all_lengths_may_be_short() -> None:
    lengths = Skewed(3, 6, 6).draw(RandomBits(0, 2, np.arange(1000)))
    assert set(lengths.tolist()) == {3, 4, 5, 6}


def test_the_mixture_repeats_in_the_stated_share() -> None:
    inputs = Mixture(0.1).draw(RandomBits(0, 2, np.arange(50_000)), 100, 20)
    few = np.array([len(set(row)) <= 10 for row in inputs.tolist()])
    assert (
        abs(few.mean() - 0.1) < 0.006
    )  # 20 uniform symbols of 100 are 10 or fewer different ones very rarely
    assert {len(set(row)) for row in inputs[few].tolist()} <= set(range(1, 11))


def test_pools_of_any_size_reach_down_to_one_symbol() -> None:
    inputs = Mixture(1.0, "any").draw(RandomBits(0, 2, np.arange(5000)), 100, 20)
    sizes = Counter(len(set(row)) for row in inputs.tolist())
    assert abs(sizes[1] / 5000 - 0.1) < 0.02


@pytest.mark.parametrize(
    ("length", "copies"), [(100, 2), (100, 3), (7, 3), (2, 5), (1, 2), (1000, 2)]
)
def test_rep_has_the_stated_copies(length: int, copies: int) -> None:
    for row in Copies(copies).draw(RandomBits(0, 0, np.arange(50)), 100, length).tolist():
        counts = Counter(row)
        assert len(row) == length
        assert sum(1 for count in counts.values() if count >= copies) >= min(length // copies, 100)


def test_successor_of_repeated_and_largest_symbols() -> None:
    first, distinct = Successor(), Successor(repeated="next-distinct")
    for task, expected in ((first, 5), (distinct, 9)):
        assert task.solve([5, 9, 5, task.vocab.delimiter, 5]) == [expected]
        assert task.solve([5, 9, 5, task.vocab.delimiter, 9]) == [task.vocab.mark(NONE)]


def test_a_counted_successor_asks_what_sorting_asks_at_the_same_place() -> None:
    shown_copies: Counter[int] = Counter()
    for prompt, (answer,) in rows_of(Successor(repeated="counted", symbols=6), 0, 9, 3000):
        end = prompt.index(Successor(symbols=6).vocab.delimiter)
        inputs, shown = prompt[:end], prompt[end + 1 :]
        ordered = sorted(inputs)
        assert len(set(shown)) == 1 and 1 <= len(shown) <= inputs.count(shown[0])
        rest = ordered[ordered.index(shown[0]) + len(shown) :]
        assert answer == (rest[0] if rest else Successor(symbols=6).vocab.mark(NONE))
        if inputs.count(shown[0]) == 3:
            shown_copies[len(shown)] += 1
    assert all(abs(shown_copies[n] / shown_copies.total() - 1 / 3) < 0.06 for n in (1, 2, 3))


def test_a_successor_that_is_unasked_for_repeated_symbols_asks_for_all_others_alike() -> None:
    asked: Counter[int] = Counter()
    for prompt, _ in rows_of(Successor(repeated="unasked", symbols=10), 0, 8, 4000):
        *inputs, _, chosen = prompt
        once = [place for place, symbol in enumerate(inputs) if inputs.count(symbol) == 1]
        assert not once or inputs.count(chosen) == 1
        if len(once) == 4:
            asked[once.index(inputs.index(chosen))] += 1
    assert asked.total() > 200
    assert (
        all(abs(count / asked.total() - 0.25) < 0.1 for count in asked.values())
        and len(asked) == 4
    )


def test_count_ties_in_half_of_the_examples_and_gaps_stay_within_five() -> None:
    rows = rows_of(Count(), 0, 20, 4000)
    ties = sum(answer == [Count().vocab.mark(NONE)] for _, answer in rows)
    assert abs(ties / 4000 - 0.5) < 0.04
    for prompt, _ in rows:
        few, many = sorted(Counter(prompt[:-1]).values())
        assert few >= 1 and many - few <= 5
    assert {
        sorted(Counter(prompt[:-1]).values())[1] - sorted(Counter(prompt[:-1]).values())[0]
        for prompt, _ in rows
    } == {
        0,
        2,
        4,
    }


def test_fill_shows_at_most_half() -> None:
    shown = {len(prompt) - 21 for prompt, _ in rows_of(Fill(), 0, 20, 500)}
    assert shown == set(range(1, 11))


def test_increment_overflows_by_one_digit() -> None:
    assert Increment().solve([9, 9, 9, 10]) == [0, 0, 0, 1]
    up = Carry().vocab.mark(CARRY_MARK)
    assert Carry().solve([1, 2, 3, 10]) == [4, up, 0, 2, up, 0, 1, up, 0]
    assert Carry().solve([9, 9, 10]) == [0, up, 1, 0, up, 1, 1, up, 0]


@given(st.integers(1, 10**12))
def test_increment_adds_one(number: int) -> None:
    digits = [int(digit) for digit in str(number)]
    answer = Increment().solve([*digits, 10])
    assert int("".join(str(digit) for digit in reversed(answer))) == number + 1


def test_numbers_have_no_leading_zero_and_a_tenth_end_in_nines() -> None:
    digits = Increment().numbers(RandomBits(0, 2, np.arange(50_000)), 6)
    assert (digits[:, 0] > 0).all()
    ends_in_three = (digits[:, -3:] == 9).all(axis=1).mean()
    assert abs(ends_in_three - (0.9 * 0.001 + 0.1 * (4 / 6 + 0.01 / 6 + 0.001 / 6 * 10))) < 0.01


def test_carry_asks_for_digits_and_carries_only() -> None:
    task = Carry()
    examples = task.make(RandomBits(0, 2, np.arange(20)), 5)
    scored = task.scored(examples)
    assert not scored[examples.tokens == task.vocab.mark(CARRY_MARK)].any()
    assert (scored.sum(axis=1) == (examples.sizes - examples.prompts) // 3 * 2).all()


def test_test_distributions() -> None:
    assert isinstance(Sort().for_test("rep:4").inputs, Copies)
    assert Increment().for_test("uniform").nines == 0.0
    for bad in ("rep:0", "rep:x", "rep", "nines"):
        with pytest.raises(UserError, match="no test distribution"):
            Sort().for_test(bad)
    assert Sort().for_test("distinct").inputs == Distinct()
    assert Successor().for_test("uniform").inputs == UNIFORM


@pytest.mark.parametrize("task", VARIANTS[:6], ids=lambda task: task.kind)
def test_worked_examples_are_solved(task: Task) -> None:
    assert task.solve(task.worked_example())


def test_neighbours_stand_without_a_gap_and_half_of_them_unevenly() -> None:
    inputs = Mixture(1.0, "any", 1.0).draw(RandomBits(0, 2, np.arange(20_000)), 100, 12)
    assert inputs.min() == 0
    assert inputs.max() == 99
    spans = inputs.max(axis=1) - inputs.min(axis=1) + 1
    assert spans.max() == 12
    assert 0.08 < (spans == 1).mean() < 0.15, (
        "every size from 1 to n is equally likely, and few draws can miss an end"
    )
    # Twelve draws out of two neighbours: a lopsided row (one of them at most twice) is far
    # likelier if uneven.
    pairs = np.sort(inputs[spans == 2], axis=1)
    fewer = np.minimum((pairs == pairs[:, :1]).sum(axis=1), (pairs == pairs[:, -1:]).sum(axis=1))
    fair = 2 * (12 + 66) / 4094
    assert (fewer <= 2).mean() > 3 * fair
