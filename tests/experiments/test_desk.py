"""The hint at desk scale: its arms, and the parts that they need."""

from __future__ import annotations

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
from taskhint.model.temperature import Fixed
from taskhint.recipes import find_recipe, recipe_names
from taskhint.recipes.recipe import Hint, Recipe
from taskhint.report.experiment_page import finding_text
from taskhint.runs.run import new_decoder
from taskhint.system.errors import UserError
from taskhint.tasks import Copy, Restricted, Restriction, Sort, Successor
from taskhint.tasks.check import check_task
from taskhint.tasks.lengths import EvenLengths
from taskhint.tasks.random_bits import RandomBits
from taskhint.training.loop import batch_for, train
from tests.conftest import small
from tests.experiments.test_reproduce import write_run
from tests.reference import padded_logits

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
    assert recipe.beyond == (40 if max(seen.values()) == 40 else None)
    assert max(seen.values()) in (20, 40)
    assert ("≤ 40" in arm.label) == (recipe.beyond == 40)


def test_arms_have_desk_width_and_equal_updates() -> None:
    for arm in ARMS.values():
        recipe = arm.at("desk")
        assert (recipe.model.width, recipe.task.symbols) == (256, 100)  # type: ignore[attr-defined]
        times = {"half": 0.5, "twice": 2.0}.get(arm.label.partition(" the updates")[0].split()[-1])
        assert recipe.steps == 6000 * (times if "the updates" in arm.label and times else 1)
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


def test_every_named_recipe_of_the_paper_has_a_desk_scale() -> None:
    for name in recipe_names():
        if name.partition("/")[0] in ("sort", "increment") and not name.endswith(
            ("grow", "prime")
        ):
            desk, pocket = find_recipe(name, "desk"), find_recipe(name)
            assert (desk.scale, desk.model.width) == ("desk", 256)
            assert desk.change(scale="pocket", model=pocket.model).with_steps(
                pocket.steps
            ) == pocket.change(model=pocket.model)


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
