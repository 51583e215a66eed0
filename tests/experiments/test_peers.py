"""The peers' protocols: their inputs, their arms, and their numbers beside ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taskhint.data.dataset import Dataset
from taskhint.evaluation.exact import evaluate
from taskhint.evaluation.results import find_results
from taskhint.experiments import find_experiment
from taskhint.experiments.arm import Arm
from taskhint.experiments.experiment import Experiment, Panel, Published
from taskhint.experiments.findings import find_all
from taskhint.experiments.quantity import BandAccuracy
from taskhint.recipes.recipe import Recipe
from taskhint.report.experiment_page import finding_text
from taskhint.runs.curve import LengthCurve, Score, save_curve
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, write_atomically
from taskhint.tasks import DistinctNear
from taskhint.tasks.random_bits import RandomBits
from taskhint.training.loop import train
from tests.conftest import small

PROTOCOLS = [find_experiment(name) for name in ("peer-asentmax", "peer-lacoco-sort")]
ARMS = {f"{one.name} {arm.label}": (one, arm) for one in PROTOCOLS for arm in one.arms}


def shrunk(recipe: Recipe) -> Recipe:
    small_model = replace(recipe.model, width=16, heads=2, mlp_width=16)
    return recipe.change(model=small_model, batch_size=4, steps=2, warmup_steps=1)


@pytest.mark.parametrize(("experiment", "arm"), ARMS.values(), ids=ARMS)
def test_every_arm_trains_and_is_measured(
    experiment: Experiment, arm: Arm, tmp_path: Path
) -> None:
    run = train(shrunk(arm.at("pocket")), tmp_path / "run")
    (distribution,) = experiment.distributions
    assert set(evaluate(run, [150], 1, distribution).scores) == {150}


@pytest.mark.parametrize("experiment", PROTOCOLS, ids=lambda one: one.name)
def test_every_arm_has_the_protocols_lengths_and_symbols(experiment: Experiment) -> None:
    """As the peers state them; drawn, not read from the settings."""
    low, high, symbols = {"peer-asentmax": (32, 64, 32), "peer-lacoco-sort": (1, 50, 150)}[
        experiment.name
    ]
    for arm in experiment.arms:
        recipe = arm.at("pocket")
        parts = Dataset(recipe.task, 0, 10**6).examples(np.arange(3000))
        lengths = {int(n) for part in parts for n in part.inputs}
        assert lengths == set(range(low, high + 1)) and recipe.beyond is None
        drawn = {int(x) for part in parts for x in part.tokens[:, : part.inputs[0]].ravel()}
        assert drawn == set(range(symbols))
        if experiment.name == "peer-lacoco-sort":
            rows = [row[: part.inputs[0]] for part in parts for row in part.tokens]
            assert all(len(set(row.tolist())) == len(row) for row in rows)


def test_arms_of_one_depth_cost_the_same() -> None:
    for experiment in PROTOCOLS:
        for arm in experiment.arms:
            recipe = arm.at("pocket")
            equal = recipe.steps * recipe.batch_size * recipe.model.depth == 3000 * 64 * 2
            assert equal or "equal updates" in arm.label
            assert (recipe.model.width, recipe.model.heads, recipe.hints) == (128, 4, ())


def test_neighbouring_distinct_symbols() -> None:
    bits = RandomBits(0, 5, np.arange(4000))
    rows = DistinctNear(near=1.0).draw(bits, 12, 4)
    assert all(len(set(row)) == 4 for row in rows.tolist())
    spans = rows.max(axis=1) - rows.min(axis=1)
    # By hand: of windows of 4 to 12 symbols, a ninth has 4 and then always spans 3.
    likely = {4: 1.0, 5: 2 / 5, 6: 3 / 15, 7: 4 / 35, 8: 5 / 70, 9: 6 / 126, 10: 7 / 210}
    likely |= {11: 8 / 330, 12: 9 / 495}
    assert (spans == 3).mean() == pytest.approx(sum(likely.values()) / 9, abs=0.02)
    assert set(rows.ravel().tolist()) == set(range(12))
    usual = DistinctNear(near=0.0).draw(RandomBits(0, 5, np.arange(4000)), 12, 4)
    assert np.bincount(usual[:, 0], minlength=12) / 4000 == pytest.approx(1 / 12, abs=0.02)
    whole = DistinctNear().draw(RandomBits(0, 5, np.arange(3)), 6, 6)
    assert (np.sort(whole, axis=1) == np.arange(6)).all()
    with pytest.raises(UserError, match="no 7 distinct inputs among 6"):
        DistinctNear().draw(bits, 6, 7)
    with pytest.raises(UserError, match=r"near=1\.5"):
        DistinctNear(near=1.5)


def test_published_numbers_stand_beside_the_band(tmp_path: Path) -> None:
    arm = Arm("ours", small("sort/standard"))
    experiment = Experiment(
        "band",
        "?",
        (arm,),
        (5, 10, 20),
        (Panel(), Panel(BandAccuracy(width=10))),
        published=(Published(arm, 10, 12.5, quantity=BandAccuracy(width=10)),),
        peer="them",
        note="They train longer.",
    )
    recipe = arm.at("pocket")
    write_atomically(tmp_path / "run" / "recipe.json", json_bytes(recipe.to_json()))
    scores = {5: Score(100, 90), 10: Score(300, 30), 20: Score(100, 20)}
    curve = LengthCurve("", recipe.name, "sort", "uniform", 0, recipe.steps, scores)
    save_curve(tmp_path / "run", curve)
    (finding,) = find_all(find_results(tmp_path), [experiment])
    band = finding.panels[experiment.panels[1]].curves[arm]
    assert {n: cell.mean for n, cell in band.items()} == {10: pytest.approx(0.5), 20: 0.2}
    assert band[10].sequences == (400,)
    text = finding_text(finding)
    assert text.count("published by them") == 1 and "They train longer." in text
    assert finding.remark == "They train longer."
