"""The field's tasks against plain Python: `answers` and `make` give what `solve` finds, on all
tiny inputs and on many random ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskhint.system.errors import UserError
from taskhint.tasks import (
    Addition,
    AdditionScratchpad,
    ArrayTask,
    CarryOnly,
    Copy,
    CopyRepeats,
    CountUp,
    Dyck,
    EvenLengths,
    FlipFlop,
    Majority,
    Mode,
    Multiplication,
    MultiplicationScratchpad,
    Next,
    NoCarry,
    Parity,
    ParityScratchpad,
    Recall,
    Reverse,
    Skewed,
    Task,
)
from taskhint.tasks.dyck import balanced_words
from taskhint.tasks.random_bits import RandomBits
from taskhint.tasks.table import as_markdown

FIELD: list[ArrayTask] = [
    Addition(),
    AdditionScratchpad(),
    NoCarry(),
    CarryOnly(),
    Multiplication(),
    MultiplicationScratchpad(),
    Parity(),
    ParityScratchpad(),
    Majority(),
    Mode(),
    CountUp(),
    Copy(),
    CopyRepeats(),
    Reverse(),
    Next(),
    Recall(),
    FlipFlop(),
    Dyck(),
]
VARIANTS: list[ArrayTask] = [
    *FIELD,
    Addition(operands="reversed", carries=1.0),
    AdditionScratchpad(operands="reversed"),
    Multiplication(operands="reversed", digits="large"),
    MultiplicationScratchpad(operands="reversed"),
    Recall(symbols=120, queries=4),
    Mode(symbols=3),
    FlipFlop(ignored=0.3),
    Dyck(wrong="dips"),
]
# Small enough for all inputs: symbols of these tasks, and the longest input.
TINY: list[tuple[ArrayTask, int]] = [
    *(
        (task(operands=order), 4)
        for task in (Addition, NoCarry)
        for order in ("plain", "reversed")
    ),
    (AdditionScratchpad(), 4),
    (CarryOnly(), 4),
    (Multiplication(), 4),
    (MultiplicationScratchpad(operands="reversed"), 4),
    *((task(), 11) for task in (Parity, ParityScratchpad, Majority)),
    (Mode(symbols=3), 7),
    (CountUp(symbols=9), 2),
    *((task(symbols=3), 7) for task in (Copy, CopyRepeats, Reverse, Next)),
    (Recall(symbols=4), 7),
    (Recall(symbols=4, queries=2), 6),
    (FlipFlop(), 6),
    (Dyck(), 8),
]


def name(task: Task) -> str:
    return task.kind


def rows_of(task: Task, seed: int, length: int, count: int) -> list[tuple[list[int], list[int]]]:
    examples = task.make(RandomBits(seed, 2, np.arange(count)), length)
    return [
        (row[:prompt].tolist(), row[prompt:size].tolist())
        for row, prompt, size in zip(
            examples.tokens, examples.prompts, examples.sizes, strict=True
        )
    ]


def alphabet(task: Task) -> list[int]:
    """What a person can write."""
    return [*range(task.vocab.symbols), *(task.vocab.mark(mark) for mark in task.vocab.written)]


@pytest.mark.parametrize(("task", "longest"), TINY, ids=lambda value: getattr(value, "kind", ""))
def test_all_tiny_inputs(task: ArrayTask, longest: int) -> None:
    prompts: dict[tuple[int, int], list[list[int]]] = defaultdict(list)
    answers: dict[tuple[int, int], list[list[int]]] = defaultdict(list)
    for length in range(1, longest + 1):
        for symbols in product(alphabet(task), repeat=length):
            try:
                prompt = task.prompt(symbols)
            except UserError:
                continue
            answer = task.solve(prompt)
            prompts[len(prompt), len(answer)].append(prompt)
            answers[len(prompt), len(answer)].append(answer)
    assert sum(map(len, prompts.values())) >= 20
    for size, rows in prompts.items():
        assert task.answers(np.array(rows)).tolist() == answers[size]


@pytest.mark.parametrize("task", VARIANTS, ids=name)
def test_ten_thousand_random_inputs(task: ArrayTask) -> None:
    for distribution in task.distributions:
        tested = task.for_test(distribution.replace(":R", ":2"))
        lengths = (1, 2, 3, 10, 25) if distribution != "distinct" else (1, 2)
        for length in lengths:
            for prompt, answer in rows_of(tested, 0, length, 2000):
                assert answer == tested.solve(prompt)


@pytest.mark.parametrize("task", VARIANTS, ids=name)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(1, 40))
@settings(max_examples=25)
def test_every_answer_is_the_solvers(task: ArrayTask, seed: int, length: int) -> None:
    for prompt, answer in rows_of(task, seed, length, 4):
        assert answer == task.solve(prompt)


@pytest.mark.parametrize("task", VARIANTS, ids=name)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(1, 12))
@settings(max_examples=10)
def test_a_person_can_write_every_prompt_that_is_drawn(
    task: ArrayTask, seed: int, length: int
) -> None:
    for prompt, _ in rows_of(task, seed, length, 3):
        symbols = [token for token in prompt if token != task.vocab.delimiter]
        assert task.prompt(task.vocab.parse(task.vocab.words(symbols))) == prompt


@pytest.mark.parametrize("task", VARIANTS, ids=name)
def test_examples_do_not_depend_on_their_neighbours(task: ArrayTask) -> None:
    all_rows = task.make(RandomBits(3, 2, np.arange(40)), 6).tokens
    some = task.make(RandomBits(3, 2, np.arange(7, 40, 5)), 6).tokens
    assert (all_rows[7::5] == some).all()


@pytest.mark.parametrize("task", FIELD, ids=name)
def test_inputs_end_at_the_delimiter_and_nothing_is_padded(task: ArrayTask) -> None:
    examples = task.make(RandomBits(1, 2, np.arange(50)), 7)
    assert (examples.tokens[np.arange(50), examples.inputs] == task.vocab.delimiter).all()
    assert not (examples.tokens == task.vocab.pad).any()
    assert (examples.sizes == examples.tokens.shape[1]).all()


@pytest.mark.parametrize("task", FIELD, ids=name)
def test_lengths_are_uniform_or_skewed_as_asked(task: ArrayTask) -> None:
    assert isinstance(task.lengths, EvenLengths)
    arithmetic = task.kind.startswith(("add", "mult", "no-", "carry", "dyck"))
    assert task.lengths.max_length == (10 if arithmetic else 20)
    skewed = type(task)(lengths=Skewed(2, 4, 9))
    assert skewed.lengths.max_length == 9


def words(task: Task, text: str) -> str:
    prompt = task.prompt(task.vocab.parse(text.split()))
    return " ".join(task.vocab.words(task.solve(prompt)))


@pytest.mark.parametrize(
    ("task", "asked", "answer"),
    [
        (Addition(), "9 9 + 1", "0 0 1"),
        (Addition(operands="reversed"), "2 1 + 3", "5 1 0"),
        (AdditionScratchpad(), "1 9 + 4", "9 4 3 1 1 0 2 0 0"),
        (NoCarry(), "5 9 + 6 4", "3 1 0"),
        (CarryOnly(), "5 9 + 6 4", "0 1 1"),
        (Multiplication(), "2 5 x 9", "5 2 2"),
        (MultiplicationScratchpad(), "2 5 x 9", "5 5 4 2 2 2 2"),
        (ParityScratchpad(), "1 1 0 1", "1 0 0 1"),
        (Majority(), "0 0 1", "0"),
        (Mode(), "7 2 7", "7"),
        (CountUp(), "12 15", "12 13 14 15 NONE"),
        (Copy(), "8 3 9", "8 3 9"),
        (Reverse(), "8 3 9", "9 3 8"),
        (Next(), "8 3 9 3", "9"),
        (Next(), "8 3 9 9", "NONE"),
        (Recall(queries=2), "1 101 5 150 5 1", "150 101"),
        (FlipFlop(), "w 1 i 0 r 1 w 0 i 1", "0"),
        (Dyck(), "( ) )", "0"),
        (Dyck(), "( ( ) )", "1"),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_answers_known_by_hand(task: Task, asked: str, answer: str) -> None:
    assert words(task, asked) == answer


@pytest.mark.parametrize(
    ("task", "asked", "message"),
    [
        (Addition(), "1 2 3", r"two numbers digit by digit, as in 1 2 9 \+ 0 7 4"),
        (Addition(), "1 + 2 + 3", "two numbers"),
        (Addition(), "+ 2", "two numbers"),
        (Addition(), "2 +", "two numbers"),
        (Addition(), "12 + 3", r"symbol 12 is out of range; allowed: .* 0 to 9 and \+"),
        (Addition(), "1 x 2", r"'x' is not a symbol; allowed: .* 0 to 9 and \+"),
        (Multiplication(), "1 2 x 3 4", "a number and one digit"),
        (Majority(), "0 1", "tie"),
        (Mode(), "4 5", "tie"),
        (CountUp(), "5 4", "the smaller one first"),
        (CountUp(), "5", "two symbols"),
        (Next(), "5 4", "one of its symbols"),
        (Recall(), "1 101 2", "then 1 of the keys"),
        (Recall(), "1 101 1 102 1", "none twice"),
        (Recall(), "101 1 101", "key"),
        (FlipFlop(), "i 1", "the first a w"),
        (FlipFlop(), "w 1 r 0", "the bit written last"),
        (FlipFlop(), "w 1 i", "a bit after each"),
        (Dyck(), "( 1 )", "brackets alone"),
        (Parity(), "1 2", "0 to 1"),
        *((task, "", "empty|takes") for task in FIELD),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_bad_prompts_are_refused_in_one_line(task: Task, asked: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        words(task, asked)
    assert "\n" not in str(refused.value)


def test_too_long_inputs_are_refused() -> None:
    for task, length in ((Copy(), 101), (CountUp(), 201), (Recall(), 101)):
        with pytest.raises(UserError, match="there are no"):
            task.make(RandomBits(0, 2, np.arange(2)), length)


def test_carry_heavy_additions_have_chains_of_every_length() -> None:
    def longest_chain(carries: list[int]) -> int:
        return max(map(len, "".join(map(str, carries)).split("0")))

    def chains(distribution: str) -> Counter[int]:
        rows = rows_of(CarryOnly().for_test(distribution), 0, 10, 3000)
        return Counter(longest_chain(answer) for _, answer in rows)

    heavy, usual = chains("carries"), chains("uniform")
    assert set(heavy) == set(range(1, 11)), "every pair has a carry, and some chains are full"
    assert heavy[10] > 3000 / 10 * 0.7 > 10 * usual[10]


def test_bits_of_majority_and_parity() -> None:
    def ones(task: Task, n: int) -> Counter[int]:
        return Counter(sum(prompt[:-1]) for prompt, _ in rows_of(task, 0, n, 4000))

    assert set(ones(Majority(), 6)) == {0, 1, 2, 4, 5, 6}
    assert set(ones(Majority(ones="close"), 6)) == {2, 4}
    assert set(ones(Majority(ones="close"), 7)) == {3, 4}
    assert 3 not in ones(Majority(ones="fair"), 6)
    drawn = ones(Parity(), 7)
    assert len(drawn) == 8 and all(abs(count / 4000 - 1 / 8) < 0.03 for count in drawn.values())
    assert ones(Parity(ones="fair"), 7)[0] < 4000 * 0.02


@pytest.mark.parametrize("task", [Mode(), Mode(symbols=3), Mode(lead="close")], ids=name)
@pytest.mark.parametrize("n", [1, 2, 5, 8, 20])
def test_the_mode_never_ties(task: Mode, n: int) -> None:
    for prompt, (answer,) in rows_of(task, 0, n, 500):
        counts = Counter(prompt[:-1]).most_common(2)
        assert counts[0][0] == answer and (len(counts) == 1 or counts[0][1] > counts[1][1])
        if task.lead == "close" and n > 2:
            assert counts[0][1] - counts[1][1] == 2 - n % 2


def test_balanced_words_are_all_there_and_equally_likely() -> None:
    found = Counter(map(tuple, balanced_words(RandomBits(0, 2, np.arange(14_000)), 4).tolist()))
    assert len(found) == 14, "the fourth Catalan number"
    assert all(abs(count - 1000) < 5 * 1000**0.5 for count in found.values())
    assert balanced_words(RandomBits(0, 2, np.arange(3)), 0).shape == (3, 0)


@pytest.mark.parametrize("wrong", ["mixed", "dips"])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_half_of_the_brackets_are_balanced(wrong: str, n: int) -> None:
    rows = rows_of(Dyck(wrong=wrong), 0, n, 4000)  # type: ignore[arg-type]
    assert abs(sum(answer[0] for _, answer in rows) / 4000 - 0.5) < 0.04
    if wrong == "dips":
        opening = Dyck().vocab.mark("(")
        for prompt, _ in rows:
            heights = np.cumsum([1 if token == opening else -1 for token in prompt[:-1]])
            assert heights[-1] == 0 and heights.min() >= -1 and (heights == -1).sum() <= 1


def test_flip_flops_have_the_stated_instructions() -> None:
    task = FlipFlop().for_test("dense")
    orders = Counter(token for prompt, _ in rows_of(task, 0, 50, 400) for token in prompt[2:-1:2])
    total = orders.total()
    shares = {mark: orders[task.vocab.mark(mark)] / total for mark in "wir"}
    assert abs(shares["i"] - 0.1) < 0.02 and abs(shares["w"] - 0.45) < 0.02


def test_recall_of_the_first_pair() -> None:
    for prompt, answer in rows_of(Recall().for_test("first"), 0, 9, 100):
        assert prompt[-1] == prompt[0] and answer == [prompt[1]]


def test_copy_has_no_symbol_twice_unless_tested_so() -> None:
    for distribution, twice in (("uniform", False), ("repeats", True)):
        rows = rows_of(Copy().for_test(distribution), 0, 60, 50)
        assert all((len(set(answer)) < 60) == twice for _, answer in rows)


@pytest.mark.parametrize("task", FIELD, ids=name)
def test_hints_share_the_vocabulary_and_tasks_have_a_theory(task: ArrayTask) -> None:
    if task.hint_for:
        assert Task.kinds()[task.hint_for]().vocab == task.vocab
    else:
        assert task.theory is not None and task.theory.source
    assert task.about and task.length_is


def test_the_page_of_tasks_is_what_the_code_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "tasks.md"
    assert page.read_text() == as_markdown(), "python -m taskhint.tasks.table > docs/tasks.md"
    for task in Task.kinds().values():
        if task.__module__.startswith("taskhint."):
            assert f"| `{task.kind}` |" in page.read_text()
