"""The field's recipes from end to end, and the curricula that change lengths."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import evaluate, judge
from taskhint.model.decoding import greedy
from taskhint.recipes import find_recipe
from taskhint.recipes.curriculum import Alternate, Curriculum, Grow, Prime, Update
from taskhint.recipes.field import ENTRIES
from taskhint.recipes.recipe import Hint, Recipe
from taskhint.runs.run import Run
from taskhint.system.errors import UserError
from taskhint.tasks import Cut, EvenLengths, Lengths, Primed, Skewed, Successor
from taskhint.training.loop import batch_for, train

NAMES = [entry.name for entry in ENTRIES]


def tiny(name: str, steps: int = 2) -> Recipe:
    return find_recipe(name).change(
        steps=steps, warmup_steps=1, batch_size=16, width=16, heads=2, depth=2, mlp_width=16
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_trains_is_measured_and_answers(tmp_path: Path, name: str) -> None:
    recipe = tiny(name)
    assert Recipe.from_json(recipe.to_json()) == recipe
    run = train(recipe, tmp_path / "run")
    for distribution in run.task.distributions:
        length = 2 if distribution == "distinct" else 7
        curve = evaluate(
            run, [length], 20, distribution.replace(":R", ":2"), edit_distance=not run.task.given
        )
        score = curve.scores[length]
        assert score.examples == 20 and (score.edit_distance or 0) >= 1 - score.accuracy - 1e-9
    prompt = run.task.worked_example()
    written = [token for token in prompt if token != run.task.vocab.delimiter]
    answer = run.solve(run.task.vocab.words(written))
    assert len(answer) == len(run.task.solve(prompt))


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.endswith(("plain", "scratchpad"))]
)
def test_one_pass_agrees_with_greedy_decoding(tmp_path: Path, name: str) -> None:
    run = train(tiny(name, steps=4), tmp_path / "run")
    examples = fresh_examples(run.task, 0, 3, 0, 30)
    first_error = judge(run.model, run.task, examples).first_error
    prompt, size = int(examples.prompts[0]), int(examples.sizes[0])
    decoded = greedy(
        run.model,
        run.task.kind,
        torch.from_numpy(examples.tokens[:, :prompt]),
        size - prompt,
        torch.from_numpy(examples.inputs),
        size,
    )
    right = (decoded.numpy() == examples.tokens[:, prompt:]).all(axis=1)
    assert ((first_error < 0) == right).all()


def test_there_is_no_paper_scale() -> None:
    with pytest.raises(UserError, match="'copy/plain' has no paper scale; it has pocket"):
        find_recipe("copy/plain", "paper")


def longest(recipe: Recipe, step: int) -> int:
    place, update = recipe.update(step)
    return (update.lengths or recipe.tasks[place].lengths).max_length


def test_lengths_grow_in_even_steps_and_then_are_the_tasks_own() -> None:
    recipe = find_recipe("sort/grow").change(steps=190, curriculum=Grow(start=2, share=1.0))
    assert [longest(recipe, 10 * i) for i in range(19)] == list(range(2, 21))
    half = recipe.change(curriculum=Grow(start=2, share=0.5))
    assert longest(half, 89) < 20 and longest(half, 95) == 20
    assert half.update(95)[1] == Alternate().update(half, 95), "then nothing is replaced"
    assert half.beyond is None
    assert longest(recipe.change(curriculum=Grow(start=50)), 0) == 20


def test_growing_lengths_reach_hints_and_batches() -> None:
    recipe = find_recipe("sort/grow").change(hints=(Hint(Successor()),), steps=100, batch_size=64)
    for step in range(6):
        place, update = recipe.update(step)
        assert (place, update.batch) == (step % 2, step // 2)
        batch = batch_for(recipe, step)
        assert batch.inputs.max() <= longest(recipe, step) < 20


@pytest.mark.parametrize("of", [Skewed(2, 5, 20), EvenLengths(3, 12)])
@pytest.mark.parametrize("cut", [1, 4, 7, 30])
def test_cut_lengths_keep_their_shares_among_each_other(of: Lengths, cut: int) -> None:
    whole, shares = of.shares(), Cut(of, cut).shares()
    assert abs(sum(shares.values()) - 1.0) < 1e-12
    allowed = [n for n in whole if n <= cut] or [min(whole)]
    assert list(shares) == allowed and Cut(of, cut).max_length == allowed[-1]
    first = allowed[0]
    assert all(abs(shares[n] * whole[first] - shares[first] * whole[n]) < 1e-12 for n in allowed)


def test_primed_lengths_are_rare_and_longer() -> None:
    recipe = find_recipe("addition/prime")
    assert recipe.beyond == 20
    recipe = recipe.change(curriculum=Prime(times=3.0, share=0.05), batch_size=4096)
    assert recipe.beyond == 30
    groups = batch_for(recipe, 0).groups
    size = 2 * 30 + 2 + 31 - 1
    primed = sum(group.count for group in groups if group.length == size)
    assert abs(primed / 4096 - 0.05) < 0.02
    assert {g.length for g in groups} == {3 * n + 2 for n in (*range(1, 11), 30)}


def test_priming_leaves_hints_alone() -> None:
    recipe = find_recipe("sort/prime").change(hints=(Hint(Successor()),))
    assert [longest(recipe, step) for step in range(4)] == [40, 20, 40, 20]


def test_a_curriculum_that_hides_longer_inputs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Curriculum, "_members", dict(Curriculum.kinds()))

    @dataclass(frozen=True)
    class Hidden(Curriculum):
        kind: ClassVar[str] = "hidden"

        def update(self, recipe: Recipe, step: int) -> Update:  # noqa: ARG002
            return Update(recipe.task.kind, lengths=EvenLengths(2, 30))

    recipe = find_recipe("sort/standard").change(curriculum=Hidden())
    with pytest.raises(UserError, match="'hidden' trains on inputs of length 30, beyond the 20"):
        recipe.update(0)


@pytest.mark.parametrize(
    ("curriculum", "message"),
    [
        (lambda: Grow(start=0), "start=0 is not at least 1"),
        (lambda: Grow(share=0.0), "share=0.0 is not above 0 and at most 1"),
        (lambda: Prime(times=1.0), "times=1.0 is not above 1"),
        (lambda: Prime(share=2.0), "share=2.0 is not above 0 and at most 1"),
        (lambda: Primed(EvenLengths(), 0), "lengths need"),
    ],
)
def test_bad_curricula_are_refused(curriculum: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        curriculum()  # type: ignore[operator]


def test_curricula_can_be_set_and_read_back() -> None:
    recipe = find_recipe("sort/standard").with_settings(
        ["curriculum=grow", "curriculum.start=5", "task.lengths=uniform"]
    )
    assert recipe.curriculum == Grow(start=5)
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert "primed" not in Lengths.kinds(), "only a curriculum makes it"


class _KillError(Exception):
    pass


@pytest.mark.parametrize("name", ["sort/grow", "addition/prime"])
def test_a_run_with_a_curriculum_resumes_to_the_same_weights(tmp_path: Path, name: str) -> None:
    recipe = tiny(name, steps=12).change(checkpoint_every=5)

    def kill(done: int, loss: float) -> None:  # noqa: ARG001
        if done == 7:
            raise _KillError

    whole = train(recipe, tmp_path / "whole")
    with pytest.raises(_KillError):
        train(recipe, tmp_path / "killed", report=kill)
    killed = train(recipe, tmp_path / "killed")
    assert weights(whole) == weights(killed)


def weights(run: Run) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in run.model.state_dict().items()}
