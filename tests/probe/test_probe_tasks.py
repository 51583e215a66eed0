"""What tasks tell the probes, against plain Python, one position at a time."""

from __future__ import annotations

import numpy as np
import pytest

from taskhint.data.dataset import fresh_examples
from taskhint.tasks import Copies, Count, Fill, Increment, Sort, Successor, Task
from taskhint.tasks.task import Step

TASKS: list[Task] = [
    Sort(symbols=6),
    Sort(symbols=30),
    Sort(symbols=9, inputs=Copies(2)),
    Increment(nines=0.6),
    Successor(symbols=8),
    Count(symbols=5),
    Fill(symbols=4),
]


def sequences(task: Task) -> list[tuple[list[int], int, int]]:
    """Prompt with answer, places of ⊥ and of the answer."""
    found = []
    for length in (1, 2, 5, 9) if task.kind != "count" else (3, 6):
        some = fresh_examples(task, 3, length, 0, 12)
        for row in range(12):
            tokens = some.tokens[row, : some.sizes[row]].tolist()
            found.append((tokens, int(some.inputs[row]), int(some.prompts[row])))
    return found


def kind_of_key(task: Task, tokens: list[int], n: int, query: int, key: int) -> str | None:
    """What a key is to a query, in plain words."""
    here, there = tokens[query], tokens[key]
    if key == n:
        return "⊥"
    if isinstance(task, Increment):
        # The answer's digit k stands at n + 1 + k and comes from the input's digit k from the end.
        digit = query - n - 1
        return {n - 1 - digit: "digit just used", n - 2 - digit: "digit needed next"}.get(key)
    if there == here:
        return "same symbol"
    if isinstance(task, Sort):
        larger = [symbol for symbol in tokens[:n] if symbol > here]
        return "successor" if larger and there == min(larger) else None
    return "symbol needed next" if there == tokens[query + 1] else None


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_kinds_of_keys_by_hand(task: Task) -> None:
    for tokens, n, _ in sequences(task):
        kinds = task.key_kinds(np.array([tokens]), n)
        places = len(tokens) - 1
        for name, flags in kinds.items():
            assert flags.shape == (1, max(0, places - n - 1), places)
            for query in range(n + 1, places):
                marked = [key for key in range(places) if flags[0, query - n - 1, key]]
                by_hand = [
                    key
                    for key in range(places)
                    if kind_of_key(task, tokens, n, query, key) == name
                ]
                assert marked == by_hand, (name, tokens, query)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_every_step_and_every_error_has_a_listed_kind(task: Task) -> None:
    seen = set()
    for tokens, n, prompt in sequences(task):
        answer = tokens[prompt:]
        for number, right in enumerate(answer):
            for predicted in range(task.vocab.size):
                step = Step(tokens[:n], answer, number, predicted)
                seen.add(task.step_kind(step))
                if predicted != right:
                    assert task.error_kind(step) in task.error_kinds
    assert seen <= set(task.step_kinds)
    assert isinstance(task, Successor | Count) or seen == set(task.step_kinds)


@pytest.mark.parametrize(
    ("inputs", "number", "predicted", "step", "error"),
    [
        ([3, 1, 3, 5], 0, 3, "minimum", "wrong minimum"),
        ([3, 1, 3, 5], 0, 2, "minimum", "not in the input"),
        ([3, 1, 3, 5], 1, 1, "successor", "repeated too often"),
        ([3, 1, 3, 5], 1, 5, "successor", "skipped a symbol"),
        ([3, 1, 3, 5], 2, 5, "repeat", "moved on too early"),
        ([3, 1, 3, 5], 2, 1, "repeat", "went back"),
        ([3, 1, 3, 5], 3, 3, "end", "repeated too often"),
        ([3, 1, 3, 5], 3, 9, "end", "not in the input"),
    ],
)
def test_errors_of_sorting(
    inputs: list[int], number: int, predicted: int, step: str, error: str
) -> None:
    one = Step(inputs, sorted(inputs), number, predicted)
    assert (Sort().step_kind(one), Sort().error_kind(one)) == (step, error)


@pytest.mark.parametrize(
    ("digits", "number", "predicted", "step", "error"),
    [
        ("299", 0, 9, "carry", "dropped the carry"),
        ("299", 1, 1, "carry", "other digit"),
        ("299", 2, 9, "add one", "neighbouring digit"),
        ("1234", 1, 4, "copy", "carried too far"),
        ("1234", 2, 3, "copy", "carried too far"),
        ("1234", 3, 2, "copy", "carried too far"),
        ("1284", 1, 4, "copy", "neighbouring digit"),
        ("1284", 1, 2, "copy", "neighbouring digit"),
        ("99", 2, 9, "new digit", "neighbouring digit"),
        ("99", 2, 11, "new digit", "not a digit"),
    ],
)
def test_errors_of_incrementing(
    digits: str, number: int, predicted: int, step: str, error: str
) -> None:
    inputs = [int(digit) for digit in digits]
    answer = [int(digit) for digit in reversed(str(int(digits) + 1))]
    one = Step(inputs, answer, number, predicted)
    assert (Increment().step_kind(one), Increment().error_kind(one)) == (step, error)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_chosen_places_predict_something(task: Task) -> None:
    for tokens, n, _ in sequences(task):
        places = task.chosen_places(tokens, n)
        assert 0 <= places["input"] < n
        assert n < places.get("answer", n + 1) < max(len(tokens) - 1, n + 2)
        for place in (*places.values(), n):
            roles = task.roles(tokens, n, place)
            assert roles.get("token", tokens[place]) == tokens[place]
            assert set(roles.values()) <= set(tokens)
