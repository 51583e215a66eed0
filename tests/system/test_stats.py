"""Intervals: against textbook formulas and scipy, and by how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm, t, ttest_1samp, ttest_ind

from taskhint.system.stats import (
    Interval,
    OverSeeds,
    normal_factor,
    student_half,
    t_factor,
    welch,
    wilson,
)

MANY = 10**12  # so many sequences that only seeds matter


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_scipys(counts: tuple[int, int]) -> None:
    right, n = counts
    theirs = binomtest(right, n).proportion_ci(0.95, method="wilson")
    assert tuple(wilson(right / n, n)) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@settings(deadline=None)
@given(st.floats(1.0, 2000.0) | st.integers(1, 2000))
def test_students_factor_is_scipys(freedom: float) -> None:
    assert t_factor(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-10)
    assert t_factor(freedom) > normal_factor() == pytest.approx(norm.ppf(0.975), rel=1e-14)


@pytest.mark.parametrize("values", [[0.46, 0.5, 0.52], [0.48, 0.5, 0.51, 0.5, 0.53]])
def test_in_the_middle_seeds_that_differ_have_students_interval(values: list[float]) -> None:
    theirs = ttest_1samp(values, 0).confidence_interval(0.95)
    ours = OverSeeds(tuple(values), (MANY,) * len(values)).interval
    assert ours.high - ours.low == pytest.approx(theirs.high - theirs.low, rel=0.06)
    assert sum(ours) / 2 == pytest.approx(sum(theirs) / 2, abs=0.02)
    rows = np.array(values)
    assert float(student_half(rows)) == pytest.approx((theirs.high - theirs.low) / 2)


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=6),
    st.sampled_from([1.0, 20.0, 500.0]),
)
def test_never_narrower_than_wilson_over_all_sequences(rights: list[int], most: float) -> None:
    k = len(rights)
    low, high = OverSeeds(
        tuple(most * right / 1000 for right in rights), (1000,) * k, most
    ).interval
    pooled = wilson(sum(rights) / (1000 * k), 1000 * k)
    assert 0.0 <= low <= most * pooled.low + 1e-9
    assert most * pooled.high - 1e-9 <= high <= most


def test_seeds_that_all_have_nothing_do_not_collapse() -> None:
    nothing = OverSeeds((0.0, 0.0, 0.0), (1000, 1000, 1000)).interval
    assert nothing == wilson(0.0, 3000, "seeds and sequences")
    assert nothing.low == 0.0 and 0.001 < nothing.high < 0.002
    assert OverSeeds((1.0, 1.0), (1000, 1000)).interval.high == 1.0
    assert OverSeeds((0.9,), (100,)).interval == wilson(0.9, 100)
    assert 3.1 in OverSeeds((3.0, 3.2), (100, 100), most=3.0).interval, "more than there should be"


def draw(
    random: np.random.Generator, p: float, spread: float, seeds: int, count: int
) -> OverSeeds:
    """Seeds of a beta distribution with that mean, whose standard deviation is that part of the
    distance to the nearer end.
    """
    true = np.full(seeds, p)
    if spread:
        size = p * (1 - p) / (spread * min(p, 1 - p)) ** 2 - 1
        true = random.beta(p * size, (1 - p) * size, seeds)
    return OverSeeds(tuple(random.binomial(count, true) / count), (count,) * seeds)


SHARES = (0.0005, 0.01, 0.1, 0.5, 0.9, 0.99, 0.9995)
CASES = [(p, spread) for p in SHARES for spread in (0.0, 0.3, 0.9) if (p, spread) != (0.5, 0.9)]


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize(("p", "spread"), CASES)
def test_an_interval_holds_the_truth_as_often_as_it_says(
    p: float, spread: float, seeds: int
) -> None:
    """0.92 is 0.95 less three standard errors of 1,000 trials, and what skewed seeds take."""
    random = np.random.default_rng(2026)
    trials = [draw(random, p, spread, seeds, 1000).interval for _ in range(1000)]
    assert np.mean([p in interval for interval in trials]) >= 0.92


def test_three_seeds_that_are_all_or_nothing_say_too_little() -> None:
    """A limit: where each seed is near 0 or near 1, all three agree by chance too often."""
    random = np.random.default_rng(2026)
    trials = [draw(random, 0.5, 0.9, 3, 1000).interval for _ in range(1000)]
    assert 0.8 < np.mean([0.5 in interval for interval in trials]) < 0.92


@pytest.mark.parametrize("first", [[0.5, 0.6, 0.7], [0.1, 0.9], [0.3, 0.31, 0.33, 0.30]])
@pytest.mark.parametrize("second", [[0.2, 0.25, 0.3], [0.4, 0.41, 0.46, 0.8], [0.62, 0.6]])
def test_the_difference_is_welchs(first: list[float], second: list[float]) -> None:
    theirs = ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    ours = welch(*(OverSeeds(tuple(x), (MANY,) * len(x)) for x in (first, second)))
    assert ours is not None
    assert tuple(ours) == pytest.approx((theirs.low, theirs.high))


def test_a_difference_of_seeds_that_agree_still_knows_the_sequences() -> None:
    def seeds(*means: float) -> OverSeeds:
        return OverSeeds(means, (1000,) * len(means))

    one_more = welch(seeds(0.001, 0.001, 0.001), seeds(0.0, 0.0, 0.0))
    assert one_more is not None and 0.0 in one_more
    apart = welch(seeds(1.0, 1.0), seeds(0.0, 0.0))
    assert apart is not None and apart.low > 0.9
    assert welch(seeds(1.0), seeds(0.0, 0.0)) is None, "one seed shows nothing"


@pytest.mark.parametrize("p", [0.002, 0.02, 0.5, 0.98])
def test_differences_that_are_none_hold_zero(p: float) -> None:
    random = np.random.default_rng(7)
    pairs = [
        welch(draw(random, p, 0.3, 3, 1000), draw(random, p, 0.3, 3, 1000)) for _ in range(1000)
    ]
    assert np.mean([found is not None and 0.0 in found for found in pairs]) >= 0.93


def test_an_interval_unpacks_scales_and_prints() -> None:
    interval = Interval(0.25, 0.5, "sequences") * 100
    assert interval.text() == "25.0–50.0"
    assert math.isclose(sum(interval), 75.0)
    assert 30.0 in interval and 60.0 not in interval
