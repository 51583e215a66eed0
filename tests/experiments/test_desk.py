"""The hint at desk scale: its arms, and the parts that they need."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from taskhint.evaluation.results import find_results
from taskhint.experiments import EXPERIMENTS
from taskhint.experiments.arm import Arm
from taskhint.experiments.experiment import Experiment
from taskhint.experiments.findings import find_all
from taskhint.experiments.ours import desk_best
from taskhint.experiments.ours.desk_best import Setting
from taskhint.model.softmax import Fixed, LogVisible
from taskhint.recipes import find_recipe, recipe_names
from taskhint.recipes.optimisers import Muon
from taskhint.recipes.recipe import Hint, Recipe
from taskhint.report.experiment_page import finding_text
from taskhint.runs.run import new_decoder
from taskhint.sweeps.choice import Candidate, Choice, Signals, load_choice
from taskhint.system.errors import UserError
from taskhint.tasks import Copy, Restricted, Restriction, Sort, Successor
from taskhint.tasks.check import check_task
from taskhint.tasks.lengths import EvenLengths
from taskhint.tasks.random_bits import RandomBits
from taskhint.training.loop import batch_for, train
from tests.conftest import small
from tests.experiments.test_reproduce import write_run
from tests.reference import padded_logits
from tools import choose_desk
from tools.rank_signals import key

DESK = {name: one for name, one in EXPERIMENTS.items() if one.scales == ("desk",)}
ARMS = {arm.name: arm for one in DESK.values() for arm in one.arms}


def longest_seen(recipe: Recipe) -> dict[str, int]:
    """By task, over some large batches."""
    found: dict[str, int] = {}
    for step in range(2 * len(recipe.tasks)):
        kind = recipe.tasks[recipe.update(step)[0]].kind
        longest = int(batch_for(recipe.change(batch_size=600), step).inputs.max())
        found[kind] = max(longest, found.get(kind, 0))
    return found


@pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)
def test_no_arm_sees_longer_inputs_without_saying_so(arm: Arm) -> None:
    recipe = arm.at("desk")
    seen = longest_seen(recipe)
    assert seen["sort"] == 20
    longest = max(seen.values())
    assert recipe.beyond == (longest if longest > 20 else None)
    said = re.search(r"≤ (\d+)", arm.label)
    assert longest == (int(said[1]) if said else 20)


def test_arms_are_wide_for_their_alphabet_and_have_equal_updates() -> None:
    for arm in ARMS.values():
        recipe = arm.at("desk")
        size = (recipe.model.width, recipe.task.vocab.symbols)
        assert size == ((256, 100) if arm.name.endswith("-wide") else (128, 32))
        assert {task.vocab.symbols for task in recipe.tasks} == {size[1]}
        said = re.search(r"(half|twice) the updates|([\d,]+) updates", arm.label)
        times = {"half": 3000, "twice": 12000}
        steps = 6000 if not said else times[said[1]] if said[1] else int(said[2].replace(",", ""))
        assert recipe.steps == steps
    assert {len({arm.name for arm in one.arms}) == len(one.arms) for one in DESK.values()} == {
        True
    }


@pytest.mark.parametrize(
    "name",
    ["desk-standard-times-2", "desk-standard-copy-longer-hint", "desk-standard-restriction-hint"],
)
def test_arms_train(name: str, tmp_path: Path) -> None:
    recipe = ARMS[name].at("desk")
    tiny = recipe.change(width=16, heads=2, mlp_width=16, batch_size=4, steps=2, warmup_steps=1)
    assert train(tiny, tmp_path / "run").checkpoint.step == 2


def test_desk_scale_is_pocket_scale_on_fewer_symbols_for_twice_the_updates() -> None:
    for name in recipe_names():
        family = name.partition("/")[0]
        if family in ("sort", "increment") and not name.endswith(("grow", "prime")):
            desk, pocket = find_recipe(name, "desk"), find_recipe(name)
            assert desk.scale == "desk"
            assert desk.steps == pocket.steps * (1 if "best" in name and family == "sort" else 2)
            assert {task.vocab.symbols for task in desk.tasks} == {32 if family == "sort" else 10}
            assert desk.model == pocket.model
            assert desk.model.width >= 3 * desk.task.vocab.size
            others = ("scale", "steps", "warmup_steps", "symbols")
            assert all(key.endswith(others) for key in desk.differences(pocket))


def test_a_fixed_factor_multiplies_every_logit() -> None:
    """As if the weights of the queries were larger by it."""
    recipe = small("sort/standard")
    plain = new_decoder(recipe)
    sharp = new_decoder(recipe.change(temperature=Fixed(1.7)))
    batch = batch_for(recipe, 0)
    with torch.no_grad():
        usual, other = plain(batch, "sort"), sharp(batch, "sort")
        for name, weight in plain.named_parameters():
            if name.endswith("attention.qkv"):
                weight[: len(weight) // 3].mul_(1.7)
        assert not torch.allclose(usual, other, atol=1e-5)
        assert torch.allclose(plain(batch, "sort"), other, atol=1e-5)
    with pytest.raises(UserError, match="times=0"):
        Fixed(0.0)


def test_a_fixed_factor_is_the_references() -> None:
    recipe = small("sort/standard").change(temperature=Fixed(2.0))
    decoder = new_decoder(recipe)
    batch = batch_for(recipe, 0)
    (tokens, *_), group = batch.rectangles(), batch.groups[0]
    inputs = batch.inputs[: group.count * group.length].view(group.count, -1)[:, 0]
    sizes = torch.full((group.count,), group.length + 1)
    with torch.no_grad():
        slow = padded_logits(decoder, "sort", tokens, inputs, sizes)[:, -group.tail :].flatten(
            0, 1
        )
        fast = decoder(batch, "sort")[: group.count * group.tail]
    assert torch.allclose(slow, fast, atol=1e-5)


def test_restricted_inputs_are_neighbours_of_a_long_sequence() -> None:
    bits = RandomBits(0, 5, np.arange(6000))
    rows = Restricted(of=40).draw(bits, 10, 4)
    assert rows.shape == (6000, 4) and rows.min() == 0 and rows.max() == 9
    # By brute force in plain Python, with another source of chance.
    rng = np.random.default_rng(0)
    slow = []
    for _ in range(6000):
        count = int(rng.integers(4, 41))
        long = sorted(rng.integers(0, 10, count).tolist())
        first = int(rng.integers(0, count - 3))
        slow.append(long[first : first + 4])
    for measure in (lambda row: max(row) - min(row), lambda row: len(set(row)), min, max):
        mine, theirs = Counter(map(measure, rows.tolist())), Counter(map(measure, slow))
        for value in mine | theirs:
            assert abs(mine[value] - theirs[value]) < 6000 * 0.035, (value, mine, theirs)
    order = np.argsort(rows + np.arange(4) / 10, axis=1)[:, 0]
    assert len(set(order.tolist())) == 4, "the smallest stands anywhere"
    none = Restricted(share=0.0).draw(RandomBits(0, 5, np.arange(3000)), 10, 4)
    assert np.bincount(none.ravel(), minlength=10) / none.size == pytest.approx(0.1, abs=0.02)
    whole = Restricted(of=2).draw(RandomBits(0, 5, np.arange(50)), 10, 4)
    assert whole.shape == (50, 4), "an input is never a part of a shorter one"
    with pytest.raises(UserError, match="share=2"):
        Restricted(share=2.0)


def test_restriction_is_a_task() -> None:
    check_task(Restriction())


def test_longer_hints_are_marked_wherever_results_are_shown(tmp_path: Path) -> None:
    recipe = small("sort/standard")
    longer = recipe.change(hints=(Hint(Successor(lengths=EvenLengths(2, 30))),))
    assert recipe.beyond is None and longer.beyond == 30
    assert recipe.change(hints=(Hint(Successor()),)).beyond is None
    assert recipe.change(hints=(Hint(Copy(EvenLengths(2, 25))),)).beyond == 25
    short, far = Arm("short", recipe), Arm("far", longer)
    experiment = Experiment("marked", "?", (short, far), (5,))
    write_run(tmp_path / "run", far, 0, {5: 0.5})
    (finding,) = find_all(find_results(tmp_path), [experiment])
    text = finding_text(finding)
    assert "far saw inputs of up to 30 symbols in training." in text
    assert "short saw" not in text


def test_a_curriculum_still_has_to_say_so_itself() -> None:
    """That a hint is longer does not allow a curriculum to lengthen the main task."""
    recipe = small("sort/standard").change(hints=(Hint(Successor(lengths=EvenLengths(2, 40))),))
    with pytest.raises(UserError, match="must say so"):
        recipe._check_longest(20, 40)
    assert replace(Sort(), lengths=EvenLengths(2, 40)).lengths.max_length == 40


CHOSEN = {
    "no hint": Setting(decay=0.0),
    "successor": Setting(decay=0.03, turns=3),
    "tempered": Setting(rate=0.04),
    "successor, tempered": Setting(),
}


def test_each_arm_at_its_best_has_the_settings_that_were_chosen_for_it() -> None:
    (experiment,) = desk_best.experiments(CHOSEN)
    found = {}
    for arm in experiment.arms:
        recipe = arm.at("desk")
        assert isinstance(recipe.optimiser, Muon)
        hinted = bool(recipe.hints)
        tempered = recipe.model.temperature == LogVisible()
        found[arm.label] = (
            *(recipe.optimiser.weight_decay, recipe.learning_rate, recipe.main_share()),
            *(recipe.steps, hinted, tempered),
        )
    assert found == {
        "no hint": (0.0, 0.02, 1.0, 6000, False, False),
        "successor": (0.03, 0.02, 0.75, 6000, True, False),
        "tempered": (0.1, 0.04, 1.0, 6000, False, True),
        "successor, tempered": (0.1, 0.02, 0.5, 6000, True, True),
        "no hint, 4,500 updates": (0.0, 0.02, 1.0, 4500, False, False),
        "tempered, 3,000 updates": (0.1, 0.04, 1.0, 3000, False, True),
    }
    assert desk_best.experiments({"no hint": Setting()}) == ()


def ranked(inside: dict[str, float]) -> Choice:
    """A choice as `taskhint choose` would make it of these accuracies."""
    recipe = find_recipe("sort/standard", "desk")
    candidates = [
        Candidate(label, recipe, {100: Signals(accuracy, accuracy, 10, 1000)})
        for label, accuracy in inside.items()
    ]
    best_first = sorted(candidates, key=lambda one: -one.inside.mean)
    return Choice(10, tuple(range(11, 21)), "uniform", tuple(best_first))


def test_the_rule_decides_what_the_arms_have() -> None:
    every = dict.fromkeys(choose_desk.with_decays(), 0.5)
    better = "no hint: decay 0.3, rate 0.02"
    first = choose_desk.chosen_by(ranked({**every, better: 0.6}))
    assert set(first) == set(desk_best.ARMS) and first["no hint"] == Setting(decay=0.3)
    around = choose_desk.around(first)
    assert {label for label in around if label.startswith("no hint")} == {
        f"no hint: decay 0.3, rate {rate}" for rate in (0.01, 0.02, 0.04)
    }
    share = "successor: decay 0, rate 0.02, share 1/8"
    assert share in around
    last = choose_desk.chosen_by(ranked({**every, better: 0.6, share: 0.7, "count": 0.9}))
    assert last["successor"] == Setting(decay=0.0, turns=7)
    recipe = desk_best.recipe_of("successor", last["successor"])
    assert (recipe.main_updates, recipe.main_share()) == (7, 7 / 8)


def test_what_is_chosen_is_what_the_committed_ranking_says() -> None:
    ranking = choose_desk.RESULTS / "desk.json"
    assert ranking.exists() == desk_best.BEST.exists()
    if ranking.exists():
        assert desk_best.read_chosen() == choose_desk.chosen_by(load_choice(ranking))


def test_other_arms_are_ranked_once_and_none_twice() -> None:
    known = choose_desk.recipes_of(choose_desk.with_decays())
    others = choose_desk.other_arms(known)
    assert {"count", "fill", "all hints", "logits × 1.25", "RoPE"} <= set(others)
    assert not {"no hint", "successor", "tempered"} & set(others)
    keys = [key(recipe) for recipe in (*known.values(), *others.values())]
    assert len(set(keys)) == len(keys)
