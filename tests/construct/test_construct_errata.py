"""Where the printed construction fails: each erratum of docs/construction.md, on its smallest
failing input.

`Printed` is an independent NumPy version of the paper's formulas; a switch mends one formula at a
time.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from taskhint.construct import build, make_plan
from tests.construct.printed import KINDS, Printed
from tests.construct.test_construct import wrong


def smallest_failures(model: Printed, longest: int) -> list[tuple[int, ...]]:
    """All failing inputs of the shortest length that has any."""
    for n in range(1, longest + 1):
        failing = [
            row
            for row in itertools.product(range(1, model.q + 1), repeat=n)
            if not model.sorts(row)
        ]
        if failing:
            return failing
    return []


@pytest.mark.parametrize("q", [2, 3, 4])
def test_marks_are_read_where_they_no_longer_are(q: int) -> None:
    """Block 1's MLP moves the marks from t to t', and block 2 reads t: nothing is counted, nothing
    is taken away.
    """
    model = Printed(q, marks=False)
    assert smallest_failures(model, 3)[0] == (1, 2)
    assert model.answer((1, 2)) == [1, 1]


@pytest.mark.parametrize("q", [2, 3, 4])
def test_the_softmax_denominator_must_run_to_i(q: int) -> None:
    """Up to j, an entry is divided by the sum before it alone: the first key always gets its full
    weight of 1.
    """
    model = Printed(q, denominator=False, epsilon=1 / 28)
    assert smallest_failures(model, 3)[0] == (1, 2)
    assert model.answer((1, 2)) == [1, 1]


@pytest.mark.parametrize("q", [2, 3, 4])
def test_epsilon_of_one_half_fails_on_1_1_2(q: int) -> None:
    """After one of two copies the average is (2-1)/(2+1), less than the successor's 1/2."""
    assert smallest_failures(Printed(q), 4)[0] == (1, 1, 2)
    assert Printed(q).answer((1, 1, 2)) == [1, 2, 2]
    assert (
        smallest_failures(Printed(q, count=True), 5) == []
    )  # with the printed value, a difference, 1/2 would do
    assert smallest_failures(Printed(q, epsilon=1 / 20), 5) == []


@pytest.mark.parametrize(("n", "least"), [(10, 0.1), (20, 0.6), (50, 0.95)])
def test_epsilon_of_one_half_fails_ever_more_often(n: int, least: float) -> None:
    model = Printed(100)
    inputs = np.random.default_rng(n).integers(1, 101, (100, n)).tolist()
    assert np.mean([not model.sorts(row) for row in inputs]) > least


def test_a_small_epsilon_alone_loses_short_inputs() -> None:
    """ε must be small for the longest input, but leaks are small only beside the length at hand:
    1/n² here.
    """
    assert Printed(3, epsilon=1 / (4 * 1000)).answer((1, 2, 3)) == [1, 2, 1]
    assert smallest_failures(Printed(3, epsilon=1 / (4 * 100)), 4)[0] == (1, 2, 3)
    assert smallest_failures(Printed(3, epsilon=1 / (4 * 1000), own=6), 6) == []


def test_layer_normalisation_changes_sizes_between_tokens() -> None:
    """It keeps sizes within a token; counting adds up marks of different tokens, whose leaks and
    so lengths differ.
    """
    plain, normed = Printed(3, epsilon=1 / 28), Printed(3, epsilon=1 / 28, norm=True)
    assert smallest_failures(plain, 6) == []
    assert smallest_failures(normed, 4)[0] == (2, 2, 1)
    assert normed.answer((2, 2, 1)) == [1, 1, 2]
    assert smallest_failures(Printed(3, epsilon=1 / 4000, norm=True, own=6), 6) == []


def test_an_l1_norm_is_not_a_mean() -> None:
    """Mirrored coordinates have mean zero, and an L1 norm that is not: the printed step would not
    leave them alone.
    """
    x = np.zeros(len(KINDS) * 4)
    x[[0, 4, 12, 20]] = 1.0
    mirrored = np.concatenate([x, -x])
    assert mirrored.mean() == 0.0
    assert np.abs(mirrored).sum() / len(mirrored) == pytest.approx(4 / len(x))


@pytest.mark.parametrize("layer_norm", [False, True])
def test_ours_sorts_every_input_named_above(layer_norm: bool) -> None:
    for longest in (4, 1000):
        decoder = build(make_plan(3, longest, layer_norm, "float32")).eval()
        for row in [(1, 2), (1, 1, 2), (1, 2, 3), (2, 2, 1)]:
            assert wrong(decoder, 3, [row]) == []


def test_ours_fails_too_without_its_mends() -> None:
    """The same two numbers in our construction: a gain of 1 with a successor of 1/2, and a weak
    look for one's own.
    """
    from dataclasses import replace

    plan = make_plan(3, 1000, False, "float32")
    printed = build(replace(plan, remaining=1.0, successor=0.5)).eval()
    assert wrong(printed, 3, [(1, 1, 2)]) == [(1, 1, 2)]
    leaking = build(replace(plan, own=1.0)).eval()
    assert wrong(leaking, 3, list(itertools.product((1, 2, 3), repeat=3))) != []
