"""What each number format can serve, and where it ends."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from taskhint.construct import FORMATS, build, largest_length, make_plan, most_symbols
from taskhint.construct.counting import counts_right
from taskhint.construct.plan import as_dtype, exact_length
from taskhint.construct.precision import Strict, hard_inputs, sorts, strict
from taskhint.construct.precision_figure import precision_figure
from taskhint.model.places import Places

ALL = list(itertools.product(FORMATS, (False, True)))
RESULTS = Path(__file__).parents[2] / "results" / "construction" / "precision.json"


@pytest.mark.parametrize(("dtype", "layer_norm"), ALL)
def test_hard_inputs_of_a_few_hundred_symbols(dtype: str, layer_norm: bool) -> None:
    decoder = build(make_plan(4, largest_length(dtype, layer_norm), layer_norm, dtype)).eval()
    assert sorts(decoder, 4, hard_inputs(4, 300))


@pytest.mark.parametrize(("dtype", "layer_norm"), ALL)
def test_counting_is_right_up_to_the_length_that_is_refused(dtype: str, layer_norm: bool) -> None:
    """Block 2 itself, on as many tokens as the limit says. Longer ones are never built."""
    longest = min(largest_length(dtype, layer_norm), 2**18)
    plan = make_plan(2, longest, layer_norm, dtype)
    assert counts_right(build(plan).eval(), plan.coordinates, longest - 1)


def test_sums_of_ones_end_where_the_limit_says() -> None:
    """Sums of 2N ones are exact in the format in which torch makes them; one more would not be."""
    for dtype, ones in (
        ("float32", 2 * exact_length("float32", False)),
        ("float64", 2 * exact_length("float64", False)),
    ):
        last = torch.tensor(float(ones), dtype=as_dtype(dtype))
        assert last - 1 != last
        assert last + 1 == last


def test_float16_ends_where_the_number_of_keys_is_no_longer_a_number() -> None:
    longest = largest_length("float16", False)
    decoder = build(make_plan(2, longest, False, "float16"))
    weights = {"beta": dict(decoder.named_parameters())["blocks.0.attention.temperature.beta"]}
    temperature = decoder.config.temperature.bind(decoder.config, weights)
    keys = torch.tensor([2 * longest, 2 * (longest + 8)])
    factors = temperature.factor(Places(keys - 1, keys, keys, keys - 1))
    assert factors is not None
    at_limit, beyond = factors.tolist()
    assert np.isfinite(at_limit)
    assert np.isinf(beyond)


@pytest.mark.parametrize("dtype", FORMATS)
def test_neighbouring_symbols_stay_apart_at_every_number_of_keys(dtype: str) -> None:
    """The logits of the successor search, rounded as the model rounds them: a gap of over ln m
    between any two.
    """
    q = min(most_symbols(dtype), 2000)
    plan = make_plan(q, 100, False, dtype)
    ranks = ((q - 1) / 2 - torch.arange(q + 1)).to(as_dtype(dtype))
    assert (
        ranks.double() == (q - 1) / 2 - torch.arange(q + 1, dtype=torch.float64)
    ).all()  # exact as weights
    root = torch.tensor(q + 1).sqrt()
    beta = (plan.beta * root).to(as_dtype(dtype))
    for m in [*range(2, 100), *range(100, 30_000, 331)]:
        scale = beta * torch.tensor(m).to(as_dtype(dtype)).log() / float(root)
        gaps = -(ranks * scale).double().diff()
        assert gaps.min() > 2 * np.log(m)


@pytest.mark.parametrize("bits", [3, 4, 5, 6])
def test_in_strict_arithmetic_the_limit_is_two_to_the_bits(bits: int) -> None:
    """2^b copies and one more symbol: then a count of 2^b + 1 is no longer a number of b bits."""
    assert strict(bits)["longest_tried_and_sorted"] == 2**bits + 1
    assert strict(bits)["first_failure"] == 2**bits + 2


def test_strict_arithmetic_with_many_bits_is_the_model() -> None:
    inputs = hard_inputs(3, 30)
    arithmetic = Strict(make_plan(3, 30, False, "float64"), 50)
    assert all(arithmetic.sorts(row) for row in inputs)


def test_the_committed_results_are_those_of_this_code() -> None:
    results = json.loads(RESULTS.read_text())
    for row in results["strict"]:
        assert row["longest_tried_and_sorted"] == 2 ** row["significand_bits"] + 1
    assert [(row["format"], row["layer_norm"]) for row in results["real"]] == [
        (f, n) for n in (False, True) for f in FORMATS
    ]
    for row in results["real"]:
        assert row["refused_beyond"] == largest_length(row["format"], row["layer_norm"])
        assert row["first_failure"] is None
    labels = precision_figure(results).axes[0].get_legend_handles_labels()[1]
    assert "2^b" in labels
