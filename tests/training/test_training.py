"""The same recipe gives the same weights, a resumed run goes on exactly, and the optimisers do
what they say.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import taskhint
from taskhint.recipes import find_recipe, increment, sort
from taskhint.recipes.optimisers import Adam, Muon, orthogonalise
from taskhint.recipes.recipe import Recipe
from taskhint.runs.run import Run, export, load, new_decoder
from taskhint.system.errors import UserError
from taskhint.system.settings import to_json
from taskhint.training.loop import Trainer, batch_for, schedule, train
from tests.conftest import small

HINTED = "sort/successor-tempered"


def weights(run: Run) -> dict[str, torch.Tensor]:
    return {name: value.detach() for name, value in run.model.named_parameters()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_the_same_recipe_seed_and_threads_give_identical_weights(tmp_path: Path) -> None:
    runs = [train(small(HINTED), tmp_path / name) for name in ("a", "b")]
    assert same(weights(runs[0]), weights(runs[1]))
    assert (runs[0].path / "metrics.jsonl").read_bytes() == (
        runs[1].path / "metrics.jsonl"
    ).read_bytes()
    other = train(small(HINTED, seed=1), tmp_path / "c")
    assert not same(weights(runs[0]), weights(other))


@pytest.mark.parametrize("optimiser", [Muon(), Adam(weight_decay=0.01)])
def test_an_interrupted_run_goes_on_exactly(tmp_path: Path, optimiser: Adam | Muon) -> None:
    recipe = small(HINTED, optimiser=optimiser)
    whole = train(recipe, tmp_path / "whole")

    class StoppedError(Exception):
        pass

    def stop(step: int, loss: float) -> None:  # noqa: ARG001
        if step == 27:
            raise StoppedError

    with pytest.raises(StoppedError):
        train(recipe, tmp_path / "parts", report=stop)
    parts = train(recipe, tmp_path / "parts")
    assert same(weights(whole), weights(parts))
    assert (whole.path / "metrics.jsonl").read_bytes() == (
        parts.path / "metrics.jsonl"
    ).read_bytes()


def test_a_finished_run_is_left_as_it_is(tmp_path: Path) -> None:
    run = train(small("sort/standard"), tmp_path / "run")
    before = {path: path.read_bytes() for path in run.path.rglob("*.safetensors")}
    train(small("sort/standard"), tmp_path / "run")
    assert before == {path: path.read_bytes() for path in run.path.rglob("*.safetensors")}


def test_an_exported_run_answers_alike_and_counts_as_finished(sorter: Run, tmp_path: Path) -> None:
    copy = export(sorter, tmp_path / "copy")
    again = load(copy.path)
    assert (again.recipe, again.checkpoint.step) == (sorter.recipe, sorter.checkpoint.step)
    assert same(weights(again), weights(sorter))
    assert (copy.path / "environment.json").read_bytes() == (
        sorter.path / "environment.json"
    ).read_bytes()
    whole = sum(
        path.stat().st_size for path in (sorter.path / "checkpoints").rglob("*") if path.is_file()
    )
    assert sum(path.stat().st_size for path in copy.path.rglob("*") if path.is_file()) < whole / 2
    assert train(sorter.recipe, copy.path).checkpoint.step == sorter.recipe.steps
    with pytest.raises(UserError, match="another run"):
        export(sorter, train(small("sort/standard"), tmp_path / "other").path)


def test_another_recipe_does_not_go_into_the_directory(tmp_path: Path) -> None:
    train(small("sort/standard"), tmp_path / "run")
    with pytest.raises(UserError, match=r"holds another run.*batch_size"):
        train(small("sort/standard", batch_size=16), tmp_path / "run")


def test_hints_have_heads_of_their_own_and_their_share_of_updates(tmp_path: Path) -> None:
    run = train(small("sort/all-hints", log_every=1), tmp_path / "run")
    lines = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(40))
    assert [line["task"] for line in lines[:4]] == ["sort", "successor", "count", "fill"]
    assert set(run.model.heads) == {"sort", "successor", "count", "fill"}


def test_the_weight_of_a_hint_scales_its_gradient_and_nothing_else(tmp_path: Path) -> None:
    def first_lines(weight: str) -> list[dict[str, float]]:
        recipe = small("sort/successor", log_every=1, steps=2, warmup_steps=0)
        run = train(recipe.with_settings([f"hints.successor.weight={weight}"]), tmp_path / weight)
        return [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]

    whole, quarter = first_lines("1"), first_lines("0.25")
    assert whole[0] == quarter[0]
    assert whole[1]["loss"] == quarter[1]["loss"]
    assert quarter[1]["gradient_norm"] == pytest.approx(whole[1]["gradient_norm"] / 4, rel=1e-5)


def test_a_field_that_was_added_later_leaves_old_runs_their_fingerprint() -> None:
    recipe = find_recipe("sort/successor")
    written_before = recipe.to_json()
    del written_before["hints"][0]["weight"]
    del written_before["curriculum"]
    del written_before["origin"]
    del written_before["model"]["normaliser"]
    assert to_json(recipe, added=False) == written_before
    assert Recipe.from_json(written_before).fingerprint() == recipe.fingerprint()
    assert (
        recipe.with_settings(["hints.successor.weight=0.5"]).fingerprint() != recipe.fingerprint()
    )


def test_shares_of_updates_are_spread_evenly() -> None:
    recipe = find_recipe("sort/successor").with_settings(["main_updates=3"])
    turns = [(place, update.batch) for place, update in map(recipe.update, range(9))]
    assert turns == [(0, 0), (0, 1), (1, 0), (0, 2), (0, 3), (0, 4), (1, 1), (0, 5), (0, 6)]


def test_training_learns_to_sort(sorter: Run) -> None:
    curve = taskhint.evaluate(sorter, lengths=[2], examples=300)
    assert curve[2].accuracy > 0.99


def test_python_interface(tmp_path: Path) -> None:
    run = taskhint.train(
        "sort/standard", out=tmp_path / "run", steps=2, warmup_steps=0, batch_size=8
    )
    again = taskhint.load(run.path)
    assert again.recipe == run.recipe and again.task.kind == "sort"
    assert len(again.solve([3, 1, 2])) == 3
    assert set(taskhint.__all__) <= set(dir(taskhint))
    for name in taskhint.__all__:
        assert getattr(taskhint, name) is not None
    assert callable(taskhint.train) and callable(taskhint.evaluate)


def test_the_schedule_rises_in_a_line_and_falls_in_a_cosine() -> None:
    factors = [schedule(step, 100, 10) for step in range(100)]
    assert factors[:10] == pytest.approx([0.1 * (i + 1) for i in range(10)])
    assert factors[10] == 1.0
    assert factors[55] == pytest.approx(0.5)
    assert factors[99] == pytest.approx(0.5 * (1 + math.cos(math.pi * 89 / 90)))
    assert schedule(0, 10, 0) == 1.0


@pytest.mark.parametrize("shape", [(2, 8, 8), (3, 8, 20)])
def test_orthogonalise_keeps_directions_and_evens_sizes(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    result = orthogonalise(matrices)
    for before, after in zip(matrices, result, strict=True):
        u, sizes, v = torch.linalg.svd(before, full_matrices=False)
        rotated = u.T @ after @ v.T
        off_diagonal = rotated - torch.diag(torch.diag(rotated))
        assert off_diagonal.abs().max() < 1e-4
        assert (torch.diag(rotated)[sizes > 0.05 * sizes[0]] > 0.5).all()
        assert (torch.diag(rotated) < 1.3).all()


def test_muon_moves_each_map_by_its_own_orthogonal_update() -> None:
    recipe = small("sort/tempered", optimiser=Muon(weight_decay=0.0))
    decoder = new_decoder(recipe)
    batch = batch_for(recipe, 0)
    torch.nn.functional.cross_entropy(decoder(batch, "sort"), batch.targets).backward()
    name, value = next((n, p) for n, p in decoder.named_parameters() if n.endswith("qkv"))
    assert value.grad is not None
    before, gradient = value.detach().clone(), value.grad.clone()
    recipe.optimiser.at_work(decoder, 0.01).step(1.0)
    for old, new, part in zip(
        before.chunk(3), value.detach().chunk(3), gradient.chunk(3), strict=True
    ):
        # The first momentum is 0.05 of the gradient: any positive multiple has the same direction.
        assert torch.allclose(new, old - 0.01 * orthogonalise(part[None])[0], atol=1e-5), name


def test_adam_is_torchs_adam() -> None:
    recipe = small("sort/standard", optimiser=Adam())
    ours, theirs = new_decoder(recipe), new_decoder(recipe)
    optimiser, plain = (
        recipe.optimiser.at_work(ours, 1e-3),
        torch.optim.Adam(theirs.parameters(), lr=1e-3),
    )
    for step in range(3):
        batch = batch_for(recipe, step)
        for decoder in (ours, theirs):
            torch.nn.functional.cross_entropy(decoder(batch, "sort"), batch.targets).backward()
        optimiser.step(1.0)
        plain.step()
        plain.zero_grad()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    train(small("sort/standard"), tmp_path / "run")
    trainer = Trainer(load(tmp_path / "run"))
    with torch.no_grad():
        trainer.decoder.embedding.weight.fill_(float("nan"))
    trainer.start = 0
    with pytest.raises(UserError, match="step 0: loss nan"):
        trainer.train(lambda step, loss: None)  # noqa: ARG005


def test_paper_scale_is_the_papers(tmp_path: Path) -> None:
    for name in (entry.name for entry in (*sort.ENTRIES, *increment.ENTRIES)):
        recipe = find_recipe(name, "paper")
        model = recipe.model
        assert (model.width, model.heads, model.mlp_width, model.activation) == (
            1024,
            16,
            2048,
            "gelu",
        ), name
        assert model.depth == (2 if name.startswith("sort") else 4)
        assert (recipe.batch_size, recipe.steps, recipe.learning_rate) == (1024, 100_000, 1e-5)
        assert isinstance(recipe.optimiser, Adam) and recipe.optimiser.weight_decay == 0.0
        if (
            "/best" not in name
        ):  # those are ours, not the paper's: its sizes, but not all of its choices
            assert (model.positions.kind, model.qk_norm) == ("none", False)
    assert find_recipe("sort/standard", "paper").dataset_size == 160_000_000
    assert find_recipe("increment/standard", "paper").dataset_size == 1_000_000
    few = replace(find_recipe("sort/successor-tempered", "paper").with_steps(2), batch_size=32)
    assert train(few, tmp_path / "run").checkpoint.step == 2
