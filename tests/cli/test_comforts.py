"""Ranges of lengths, hints by name, runs that branch off, settings that go together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskhint.cli import main
from taskhint.cli.arguments import lengths
from taskhint.cli.train import with_hint
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe
from taskhint.runs.run import load
from taskhint.system.errors import UserError
from taskhint.training.loop import train
from tests.runs.reliability import tiny

WEIGHTS = "weights.safetensors"


def test_ranges_of_lengths() -> None:
    assert lengths("20-100:20") == [20, 40, 60, 80, 100]
    assert lengths("5,10,20-100:20") == [5, 10, 20, 40, 60, 80, 100]
    assert lengths("3-5") == [3, 4, 5] and lengths("7") == [7] and lengths("7-7:3") == [7]


@given(st.integers(1, 50), st.integers(0, 50), st.integers(1, 9))
def test_a_range_holds_every_step_from_its_first_number(first: int, more: int, step: int) -> None:
    expected = [n for n in range(1, 200) if first <= n <= first + more and not (n - first) % step]
    assert lengths(f"{first}-{first + more}:{step}") == expected


@pytest.mark.parametrize("text", ["5-3", "3-9:0", "3-", "-3", "3-x", "3:2", "3-5:", "0-4", ""])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        lengths(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "-1"], "argument --steps: -1 is negative"),
        (["--seed", "x"], "argument --seed: 'x' is not a whole number"),
        (["--out", ""], "--out is empty"),
        (["--set", "name="], "name is empty"),
    ],
)
def test_a_wrong_word_is_refused_with_its_option(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["train", "sort/standard", "--out", str(out), *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("command", ["evaluate", "train", "probe", "reproduce", "export"])
def test_help_has_no_doubled_percent_signs(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = capsys.readouterr().out
    assert "%%" not in text and "--import FILE_OR_MODULE" in text


@pytest.mark.parametrize(
    ("plain", "hint", "named"),
    [
        ("sort/standard", "successor", "sort/successor"),
        ("sort/tempered", "successor", "sort/successor-tempered"),
        ("sort/best", "successor", "sort/best-successor"),
        ("increment/standard", "carry", "increment/carry"),
    ],
)
def test_a_hint_by_name_makes_the_named_recipe(plain: str, hint: str, named: str) -> None:
    recipe = with_hint(find_recipe(plain), hint)
    assert recipe.differences(find_recipe(named)) == ["name"]


def test_a_hint_takes_over_what_the_main_task_was_told() -> None:
    recipe = find_recipe("sort/standard").with_settings(
        ["task.symbols=32", "task.lengths.longest=9", "task.inputs.near=0.25"]
    )
    task = with_hint(recipe, "successor").hints[0].task
    assert task.vocab == recipe.task.vocab and task.lengths == recipe.task.lengths
    assert getattr(task, "inputs", None) == getattr(recipe.task, "inputs", 0)


@pytest.mark.parametrize(
    ("recipe", "hint", "said"),
    [
        ("sort/standard", "sucessor", "did you mean 'successor'"),
        ("increment/standard", "zzz", "allowed: carry"),
        ("sort/successor", "successor", "must be different"),
    ],
)
def test_a_hint_that_is_none_is_refused(
    recipe: str, hint: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", recipe, "--hint", hint, "--out", str(tmp_path / "x")]) == 2
    assert said in capsys.readouterr().err


def test_settings_that_need_each_other_are_set_together(tmp_path: Path) -> None:
    settings = ["task.symbols=32", "hints.successor.task.symbols=32", "batch_size=4"]
    words = [word for setting in settings for word in ("--set", setting)]
    out = tmp_path / "run"
    assert main(["train", "sort/successor", "--out", str(out), "--steps", "2", *words]) == 0
    assert {task.vocab.symbols for task in load(out).recipe.tasks} == {32}
    assert main(["train", "sort/successor", "--out", str(out), *words[:2]]) == 2


def saved(recipe: Recipe, path: Path) -> str:
    """A recipe as the argument of `taskhint train`."""
    from taskhint.system.files import json_bytes

    path.write_bytes(json_bytes(recipe.to_json()))
    return str(path)


def test_a_branch_goes_on_with_weights_optimiser_and_data(tmp_path: Path) -> None:
    """With a rate that does not depend on `steps`, a branch ends where one long run ends."""
    constant = {"warmup_steps": 0, "learning_rate": 1e-12}  # a cosine that moves nothing much
    short = tiny(steps=6, **constant)
    train(short, tmp_path / "short")
    long = replace(short, steps=12)
    target = saved(long, tmp_path / "long.json")
    words = ["train", target, "--from", str(tmp_path / "short"), "--out", str(tmp_path / "branch")]
    assert main(words) == 0
    branch = load(tmp_path / "branch")
    origin = branch.recipe.origin
    newest = load(tmp_path / "short").checkpoint
    assert origin is not None and origin.step == 6
    assert origin.recipe == short.fingerprint()
    assert origin.weights == newest.manifest()[WEIGHTS].sha256
    assert branch.recipe.fingerprint() != long.fingerprint()
    steps = (tmp_path / "branch/metrics.jsonl").read_text().splitlines()
    assert '"step": 6' in steps[0] and '"step": 11' in steps[-1] and len(steps) == 6


def test_a_stopped_branch_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    train(tiny(steps=6), tmp_path / "short")
    target = saved(tiny(steps=12), tmp_path / "long.json")
    words = ["train", target, "--from", str(tmp_path / "short")]
    assert main([*words, "--out", str(tmp_path / "a")]) == 0
    assert main([*words, "--out", str(tmp_path / "b")]) == 0
    last = tmp_path / "b/checkpoints/step-00000012"
    expected = (last / WEIGHTS).read_bytes()
    last.rename(last.with_name("aside"))
    assert load(tmp_path / "b").checkpoint.step == 8
    # The origin has gone on meanwhile: the branch keeps the one it had.
    (tmp_path / "short").rename(tmp_path / "moved")
    train(tiny(steps=6), tmp_path / "short")
    assert main([*words, "--out", str(tmp_path / "b")]) == 0
    assert (last / WEIGHTS).read_bytes() == expected
    assert (tmp_path / "a/checkpoints/step-00000012" / WEIGHTS).read_bytes() == expected


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tiny(steps=6), tmp_path_factory.mktemp("branches") / "short").path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"batch_size": 16}, "differs in batch_size"),
        ({"seed": 3}, "differs in seed"),
        ({"steps": 6}, "needs more than"),
    ],
)
def test_a_branch_that_makes_no_sense_is_refused(
    changes: dict[str, int],
    said: str,
    short: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = saved(tiny(**{"steps": 12, **changes}), tmp_path / "long.json")
    words = ["train", target, "--from", str(short), "--out", str(tmp_path / "x")]
    assert main(words) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "x").exists()


def test_an_origin_with_other_weights_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(tiny(steps=6), tmp_path / "short")
    target = saved(tiny(steps=12), tmp_path / "long.json")
    words = ["--from", str(tmp_path / "short"), "--out", str(tmp_path / "branch")]
    assert main(["train", target, *words]) == 0
    (tmp_path / "short").rename(tmp_path / "moved")
    train(tiny(steps=6, seed=1), tmp_path / "short")
    again = str(tmp_path / "branch/recipe.json")
    assert main(["train", again, "--out", str(tmp_path / "again")]) == 2
    assert "no longer the checkpoint of step 6" in capsys.readouterr().err
    assert not (tmp_path / "again").exists()
