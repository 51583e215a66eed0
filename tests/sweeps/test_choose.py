"""Choosing by extrapolation inside the allowed lengths, and how well that predicts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr
from torch.nn import functional

from taskhint.cli import main
from taskhint.cli.choose import candidates
from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.signals import gradient_agreement, loss_at, next_batches
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe
from taskhint.runs.curve import LengthCurve, Score, save_curve
from taskhint.runs.run import Run, load
from taskhint.sweeps.choice import Candidate, Choice, Signals, load_choice, shortened, upper_half
from taskhint.sweeps.choose import choose
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, write_atomically
from taskhint.system.ranks import _kendall, _signs, _spearman, rank_correlation
from taskhint.tasks.lengths import EvenLengths, Lengths, Skewed
from taskhint.training.loop import batch_for, train
from tests.conftest import small
from tests.reference import padded_loss
from tools.rank_signals import correlations, paired, read_candidates


def tiny(name: str) -> Recipe:
    return small(name, batch_size=8).with_steps(4)


def seen_lengths(recipe: Recipe) -> set[int]:
    """Of every task, by drawing batches."""
    return {
        int(n)
        for step in range(6)
        for n in batch_for(recipe.change(batch_size=400), step).inputs.unique()
    }


@pytest.mark.parametrize("name", ["sort/standard", "sort/all-hints", "sort/best-successor"])
def test_short_runs_see_the_lower_half_alone(name: str) -> None:
    recipe = find_recipe(name)
    short = shortened(recipe)
    assert short.steps == 2000 and short.warmup_steps == 100
    assert max(seen_lengths(short)) == 10 and max(seen_lengths(recipe)) == 20
    assert upper_half(recipe.task) == tuple(range(11, 21))
    same = recipe.change(task=short.task, hints=short.hints).with_steps(2000)
    assert same == short, "nothing else changes"


def test_a_third_of_the_updates_where_that_is_more() -> None:
    recipe = find_recipe("sort/standard")
    assert shortened(recipe.with_steps(30_000)).steps == 10_000
    assert shortened(recipe.with_steps(900)).steps == 900
    assert shortened(recipe, 7).steps == 7


@dataclass(frozen=True)
class Odd(Lengths):
    kind: ClassVar[str] = "odd-for-choose"

    def shares(self) -> dict[int, float]:
        return {3: 0.5, 7: 0.25, 11: 0.25}


@pytest.mark.parametrize(
    ("lengths", "trained", "measured"),
    [
        (EvenLengths(2, 20), {*range(2, 11)}, tuple(range(11, 21))),
        (EvenLengths(32, 64), {*range(32, 49)}, (50, 51, 53, 54, 56, 58, 59, 61, 62, 64)),
        (Skewed(2, 15, 20), {*range(2, 11)}, tuple(range(11, 21))),
        (Odd(), {3, 7}, (8, 9, 10, 11)),
    ],
)
def test_any_lengths_have_two_halves(
    lengths: Lengths, trained: set[int], measured: tuple[int, ...]
) -> None:
    recipe = find_recipe("sort/standard")
    recipe = recipe.change(task=replace(recipe.task, lengths=lengths))
    short = shortened(recipe)
    assert {n for n, share in short.task.lengths.shares().items() if share} == trained
    assert upper_half(recipe.task) == measured
    assert Recipe.from_json(json.loads(json.dumps(short.to_json()))) == short


def test_lengths_without_two_halves_are_refused() -> None:
    recipe = find_recipe("sort/standard")
    with pytest.raises(UserError, match="no two halves"):
        shortened(recipe.change(task=replace(recipe.task, lengths=EvenLengths(5, 5))))


@pytest.fixture(scope="module")
def hinted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tiny("sort/all-hints"), tmp_path_factory.mktemp("hinted") / "run")


def test_the_loss_is_that_of_the_padded_reference(hinted: Run) -> None:
    task = hinted.task.for_test("uniform")
    examples = fresh_examples(task, 0, 9, 0, 30)
    with torch.no_grad():
        slow = float(padded_loss(hinted.model, task, [examples]))
    assert loss_at(hinted, 9, examples=30) == pytest.approx(slow, rel=1e-5)


def test_gradients_agree_as_flat_vectors_do(hinted: Run) -> None:
    batches = next_batches(hinted, 2)
    assert {kind: len(some) for kind, some in batches.items()} == dict.fromkeys(batches, 2)
    flat = {}
    for kind, some in batches.items():
        hinted.model.zero_grad()
        for batch in some:
            functional.cross_entropy(hinted.model(batch, kind), batch.targets).backward()
        grads = {
            name: weight.grad.clone()
            for name, weight in hinted.model.named_parameters()
            if weight.grad is not None and "head" not in name
        }
        flat[kind] = torch.cat([grad.flatten() for grad in grads.values()])
    hinted.model.zero_grad()
    found = gradient_agreement(hinted, batches=2)
    assert set(found) == {"successor", "count", "fill"}
    for kind, cosine in found.items():
        wanted = functional.cosine_similarity(flat["sort"], flat[kind], dim=0)
        assert cosine == pytest.approx(float(wanted), abs=1e-4)


def test_without_a_hint_there_is_nothing_to_agree_with(tmp_path: Path) -> None:
    assert gradient_agreement(train(tiny("sort/standard"), tmp_path / "run")) == {}


def test_candidates_are_told_in_one_line(tmp_path: Path) -> None:
    found = candidates(["sort"], "successor,count+fill", ["batch_size=16"], "pocket")
    assert list(found) == ["no hint", "successor", "count+fill"]
    assert [[hint.kind for hint in one.hints] for one in found.values()] == [
        [],
        ["successor"],
        ["count", "fill"],
    ]
    assert {one.batch_size for one in found.values()} == {16}
    file = tmp_path / "own.py"
    file.write_text(
        "from taskhint import recipe\n"
        "def mine():\n    return recipe('sort/tempered').change(depth=3)\n"
    )
    deep = "sort/best --set model.depth=4 --set optimiser.weight_decay=0.2"
    found = candidates(["sort/best", deep, f"{file}:mine"], None, [], "pocket")
    assert [one.model.depth for one in found.values()] == [2, 4, 3]
    assert found[deep] == find_recipe("sort/best").with_settings(
        ["model.depth=4", "optimiser.weight_decay=0.2"]
    )
    for targets, hints, says in (
        (["sort/successor"], "count", "has a hint already"),
        (["sort", "sort"], None, "given twice"),
        (["sort/best --set"], None, "expected one argument"),
        (["sort"], "carry", "has no hint 'carry'"),
        (["sort/bset"], None, "sort/best"),
    ):
        with pytest.raises(UserError, match=says):
            candidates(targets, hints, [], "pocket")


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ranking of two tiny recipes over two seeds, on the pool."""
    out = tmp_path_factory.mktemp("chosen")
    recipes = {"plain": tiny("sort/standard"), "hint": tiny("sort/successor")}
    choose(recipes, out, seeds=2, steps=2, examples=5)
    return out


def test_short_runs_are_ranked(chosen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    choice = load_choice(chosen / "choose.json")
    assert {one.name for one in choice.candidates} == {"plain", "hint"}
    for one in choice.candidates:
        assert set(one.seeds) == {100, 101}
        for seed, signals in one.seeds.items():
            run = load(chosen / one.name / f"seed-{seed}")
            assert run.recipe == one.recipe.change(seed=seed) and run.recipe.steps == 2
            curve = run.curves["uniform"]
            assert sorted(curve.scores) == list(range(11, 21)) == list(choice.measured)
            right = sum(score.right for score in curve.scores.values())
            assert signals.inside == pytest.approx(right / 50)
            assert signals.at_longest == curve[20].accuracy
            assert signals.loss_longest == pytest.approx(loss_at(run, 20))
            assert signals.loss_trained == pytest.approx(loss_at(run, 10))
            assert (signals.agreement is None) == (one.name == "plain")
    losses = [one.mean("loss_longest") for one in choice.candidates]
    insides = [one.mean("inside") for one in choice.candidates]
    assert insides[0] > insides[1] or (insides[0] == insides[1] and losses[0] <= losses[1])  # type: ignore[operator]
    before = (chosen / "choose.json").read_bytes()
    recipes = {"plain": tiny("sort/standard"), "hint": tiny("sort/successor")}
    choose(recipes, chosen, seeds=2, steps=2, examples=5)
    said = capsys.readouterr().out
    assert "4 runs, 4 of them done" in said and "took" not in said
    assert (chosen / "choose.json").read_bytes() == before


def test_the_command_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["choose", "sort", "--hints", "fill", "--out", str(tmp_path / "out"), "--seeds", "1"]
    words += ["--set", "model.width=16", "--set", "model.mlp_width=16", "--set", "batch_size=8"]
    assert main([*words, "--steps", "2", "--examples", "3"]) == 0
    text = capsys.readouterr().out
    assert "trained up to length 10, 1 seeds" in text
    assert "no hint" in text and "fill" in text and "one seed" in text
    assert main(["choose", "sort", "--out", str(tmp_path / "other")]) == 2
    assert "nothing to choose from" in capsys.readouterr().err


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    other = tiny("sort/standard")
    other = other.change(task=replace(other.task, lengths=EvenLengths(2, 30)))
    with pytest.raises(UserError, match="up to length 30"):
        choose({"a": tiny("sort/standard"), "b": other}, tmp_path)
    with pytest.raises(UserError, match="different names"):
        choose({"a b": tiny("sort/standard"), "a-b": tiny("sort/fill")}, tmp_path)


def test_the_best_and_what_is_clearly_worse() -> None:
    def one(name: str, *means: float) -> Candidate:
        seeds = {s: Signals(mean, mean, 10, 1000) for s, mean in enumerate(means)}
        return Candidate(name, tiny("sort/standard"), seeds)

    best, near, far = one("a", 0.8, 0.9), one("b", 0.7, 0.95), one("c", 0.1, 0.11)
    choice = Choice(10, (11, 20), "uniform", (best, near, far))
    assert [choice.clearly_worse(c) for c in choice.candidates] == [None, False, True]


values = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=12)


@given(values, st.integers(0, 1000))
def test_rank_correlations_are_scipys(pairs: list[tuple[int, int]], seed: int) -> None:
    x, y = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    if len(set(x)) == 1 or len(set(y)) == 1:
        with pytest.raises(UserError, match="values that differ"):
            rank_correlation(x, y)
        return
    found = rank_correlation(x, y, resamples=200)
    assert found.spearman == pytest.approx(spearmanr(x, y).statistic)
    assert found.kendall == pytest.approx(kendalltau(x, y).statistic)
    # A bootstrap sample, written out.
    drawn = np.random.default_rng(seed).integers(0, len(x), len(x))
    weights = np.bincount(drawn, minlength=len(x)).astype(float)[None]
    if len(set(x[drawn])) > 1 and len(set(y[drawn])) > 1:
        rho = _spearman(_signs(x), _signs(y), weights)[0]
        tau = _kendall(_signs(x), _signs(y), weights)[0]
        assert rho == pytest.approx(spearmanr(x[drawn], y[drawn]).statistic)
        assert tau == pytest.approx(kendalltau(x[drawn], y[drawn]).statistic)


def test_the_interval_narrows_with_more_arms() -> None:
    rng = np.random.default_rng(0)
    widths = []
    for count in (10, 100):
        x = rng.normal(size=count)
        y = x + rng.normal(size=count)
        low, high = rank_correlation(x.tolist(), y.tolist()).spearman_interval
        assert -1 <= low < high <= 1
        widths.append(high - low)
    assert widths[1] < widths[0] / 2
    with pytest.raises(UserError, match="at least 3 pairs"):
        rank_correlation([1, 2], [1, 2])


def test_signals_are_paired_with_long_results(tmp_path: Path) -> None:
    """By recipe, whatever its name and seeds; of several numbers of updates the nearest."""
    looks, accuracy = [], {"sort/standard": 0.1, "sort/tempered": 0.9, "sort/fill": 0.2}
    for place, (name, share) in enumerate(accuracy.items()):
        short = shortened(find_recipe(name)).change(seed=100)
        lengths = {str(n): {"examples": 10, "right": place} for n in (10, 12, 20)}
        curve = {"distribution": "uniform", "lengths": lengths}
        looks.append({"path": f"{name}/x", "recipe": short.to_json(), "evaluations": [curve]})
        for steps, value in ((3000, share), (9000, 1.0)):
            recipe = find_recipe(name).with_steps(steps).change(name="other", seed=1)
            run = tmp_path / "results" / name / str(steps)
            write_atomically(run / "recipe.json", json_bytes(recipe.to_json()))
            scores = {50: Score(100, round(100 * value))}
            save_curve(run, LengthCurve("", "", "sort", "uniform", 1, steps, scores))
    looks[0]["path"], looks[1]["path"], looks[2]["path"] = "a/x", "b/x", "c/x"
    write_atomically(tmp_path / "looks.json", json_bytes({"runs": looks}))
    from taskhint.evaluation.results import find_results

    arms = paired(read_candidates(tmp_path / "looks.json"), find_results(tmp_path), 4000)
    assert {arm.candidate.name: (arm.updates, arm.accuracy[50]) for arm in arms} == {
        "a": (3000, 0.1),
        "b": (3000, 0.9),
        "c": (3000, 0.2),
    }
    found = correlations(arms, [50, 100])
    assert found[100]["inside"] is None and found[50]["agreement"] is None
    inside = found[50]["inside"]
    assert inside is not None and inside.items == 3
    assert inside.spearman == pytest.approx(spearmanr([0, 1, 2], [0.1, 0.9, 0.2]).statistic)
