"""Datasets are stateless, epochs are permutations, and batches hold exactly the real tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskhint.data.batch import make_batch
from taskhint.data.dataset import Dataset, fresh_examples
from taskhint.recipes import find_recipe
from taskhint.system.errors import UserError
from taskhint.tasks import Carry, Count, Fill, Increment, Sort, Successor, Task
from taskhint.training.loop import batch_for


@settings(deadline=None)
@given(st.integers(1, 3000), st.integers(0, 100), st.integers(0, 5))
def test_an_epoch_visits_every_example_once(size: int, seed: int, epoch: int) -> None:
    places = Dataset(Sort(), seed, size).places(epoch * size, size)
    assert sorted(places.tolist()) == list(range(size))


def test_epochs_and_tasks_have_orders_of_their_own() -> None:
    size = 1000
    orders = [
        Dataset(Sort(), 0, size, turn).places(epoch * size, size)
        for turn in (0, 1)
        for epoch in (0, 1)
    ]
    for i, one in enumerate(orders):
        assert not (one == np.arange(size)).all()
        for other in orders[:i]:
            assert (one == other).mean() < 0.02


def test_any_stretch_of_the_order_is_the_same_asked_in_parts() -> None:
    dataset = Dataset(Sort(), 3, 700)
    whole = dataset.places(0, 2000)
    parts = np.concatenate([dataset.places(start, 250) for start in range(0, 2000, 250)])
    assert (whole == parts).all()


def test_160_million_examples_answer_at_once() -> None:
    dataset = Dataset(Sort(), 0, 160_000_000)
    (examples,) = dataset.examples([159_999_999])
    assert len(examples) == 1
    assert examples.tokens[0, examples.prompts[0] :].tolist() == sorted(
        examples.tokens[0, : examples.inputs[0]].tolist()
    )
    with pytest.raises(IndexError):
        dataset.examples([160_000_000])


def test_an_example_is_the_same_in_any_company() -> None:
    dataset = Dataset(Sort(), 0, 10**9)
    together = {
        tuple(row) for part in dataset.examples(range(300)) for row in part.tokens.tolist()
    }
    alone = {tuple(dataset.examples([i])[0].tokens[0].tolist()) for i in range(300)}
    assert together == alone


def test_test_examples_do_not_depend_on_the_chunk() -> None:
    whole = fresh_examples(Sort(), 0, 30, 0, 100).tokens
    parts = np.concatenate(
        [fresh_examples(Sort(), 0, 30, start, 25).tokens for start in range(0, 100, 25)]
    )
    assert (whole == parts).all()


def test_test_examples_are_not_training_examples() -> None:
    """Of length 20 there are 100**20 inputs: any one seen twice would be the same stream seen
    twice.
    """
    training = {
        tuple(row[:20])
        for part in Dataset(Sort(), 0, 10**6).examples(range(20_000))
        if part.inputs[0] == 20
        for row in part.tokens
    }
    assert len(training) > 100
    assert not training & {
        tuple(row[:20]) for row in fresh_examples(Sort(), 0, 20, 0, 5000).tokens
    }


@pytest.mark.parametrize(("length", "count"), [(0, 1), (10**6, 1), (5, 10**7)])
def test_impossible_test_sets_are_refused(length: int, count: int) -> None:
    with pytest.raises(UserError):
        fresh_examples(Sort(), 0, length, 0, count)


@pytest.mark.parametrize(
    "task",
    [Sort(), Successor(), Count(), Fill(), Increment(), Carry()],
    ids=lambda task: task.kind,
)
def test_a_batch_holds_the_real_tokens_and_no_others(task: Task) -> None:
    parts = Dataset(task, 0, 10**6).examples(range(200))
    batch = make_batch(task, parts)
    assert task.vocab.pad not in batch.tokens
    assert len(batch.tokens) == sum(int(part.sizes.sum()) - len(part) for part in parts)
    assert len(batch.targets) == sum(int(task.scored(part).sum()) for part in parts)
    assert sorted(batch.rows.tolist()) == list(range(200))
    assert sum(group.count * group.length for group in batch.groups) == len(batch.tokens)
    assert sum(batch.scored_per_example) == len(batch.targets)


@pytest.mark.parametrize(
    "task", [Sort(), Count(), Carry(), Increment(nines=1.0)], ids=lambda task: task.kind
)
def test_targets_are_the_tokens_after_the_scored_positions(task: Task) -> None:
    parts = Dataset(task, 0, 10**6).examples(range(100))
    batch = make_batch(task, parts)
    rows = [
        (part.tokens[i, : part.sizes[i]], task.scored(part)[i])
        for part in parts
        for i in range(len(part))
    ]
    wanted = np.concatenate(
        [rows[row][0][rows[row][1][: len(rows[row][0])]] for row in batch.rows]
    )
    assert batch.targets.tolist() == wanted.tolist()


def test_the_dataset_is_split_equally_and_turns_alternate() -> None:
    recipe = find_recipe("sort/all-hints")
    assert [recipe.update(step)[1].task for step in range(5)] == [
        "sort",
        "successor",
        "count",
        "fill",
        "sort",
    ]
    assert (recipe.update(9)[0], recipe.update(9)[1].batch) == (1, 2)
    again = batch_for(recipe, 9)
    assert (again.tokens == batch_for(recipe, 9).tokens).all()
