"""The benchmarks compare equals, count what they say, and print what was promised. Nothing here
looks at a clock.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import contestants as contest
from benchmarks import data, evaluation, explore, field, growth, memory, profiling, training
from benchmarks.__main__ import main as bench
from benchmarks.command import PARTS, as_text, merged, run_bench
from benchmarks.contestants import PACKAGES, contestants, padded
from benchmarks.limit import Room, unavoidable
from benchmarks.padded import PaddedBatch
from benchmarks.tables import TABLES
from taskhint.data.batch import make_batch
from taskhint.data.dataset import Dataset, fresh_examples
from taskhint.evaluation import exact
from taskhint.experiments.field import ROWS, SCHEMES
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.recipes import find_recipe
from taskhint.recipes.optimisers import Adam, Muon
from taskhint.recipes.recipe import Recipe
from taskhint.system.errors import UserError
from taskhint.tasks import Count, Increment, Sort
from taskhint.tasks.lengths import Skewed
from taskhint.training import cost, limits
from taskhint.training.loop import batch_for

ROOT = Path(__file__).parent.parent
SMALL = ModelConfig(width=32, heads=2, mlp_width=64, depth=2)

needs_bench = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in PACKAGES.values()),
    reason="needs taskhint[bench]",
)


def perturbed(config: ModelConfig, seed: int = 1) -> Decoder:
    """A model whose norms and biases are not at their start, so that leaving one out
    would show.
    """
    decoder = training.new_model(config, Sort())
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in decoder.named_parameters():
            if value.dim() == 1 and not (
                name.endswith("bias") and ("norm" in name or "before" in name)
            ):
                value.add_(0.3 * torch.randn(value.shape, generator=generator))
    return decoder


def names_of_contestants() -> list[tuple[str, str]]:
    both = {"transformers": ("sdpa", "eager"), "x-transformers": ("flash", "plain")}
    return [(name, kind) for name, kinds in both.items() for kind in kinds]


def our_logits(
    decoder: Decoder, task: Sort, batch_size: int
) -> tuple[torch.Tensor, training.Prepared]:
    prepared = training.prepare(task, batch_size, count=1)[0]
    with torch.no_grad():
        return decoder(prepared.flat, task.kind), prepared


def scored_logits(model: torch.nn.Module, batch: PaddedBatch) -> torch.Tensor:
    with torch.no_grad():
        logits: torch.Tensor = model(batch.tokens)[batch.targets != -100]
    return logits


@needs_bench
@pytest.mark.parametrize(("name", "kind"), names_of_contestants())
def test_every_contestant_computes_our_function(name: str, kind: str) -> None:
    decoder = perturbed(SMALL)
    ours, prepared = our_logits(decoder, Sort(), 64)
    theirs = scored_logits(contestants(decoder, "sort")[name][kind], prepared.padded)
    torch.testing.assert_close(theirs, ours, atol=1e-4, rtol=0)


def test_the_padded_loop_computes_our_function_and_loss() -> None:
    decoder = perturbed(SMALL)
    ours, prepared = our_logits(decoder, Sort(), 64)
    model = padded(decoder, "sort")
    torch.testing.assert_close(scored_logits(model, prepared.padded), ours, atol=1e-4, rtol=0)
    targets = prepared.padded.targets.flatten()
    loss = functional.cross_entropy(model(prepared.padded.tokens).flatten(0, 1), targets)
    torch.testing.assert_close(
        loss, functional.cross_entropy(ours, prepared.flat.targets), atol=1e-5, rtol=0
    )


def test_a_weight_without_a_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="wing"):
        contest._copy({"wing": torch.zeros(1)}, torch.nn.Linear(1, 1))


def test_missing_packages_are_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    for part in ("train", "evaluate", "all"):
        assert bench([part, "--json"]) == 2
        said = capsys.readouterr()
        assert (
            said.out == ""
            and said.err.count("\n") == 1
            and "pip install 'taskhint[bench]'" in said.err
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [(["trian"], "'train'"), (["cost", "--rounds", "0"], "at least 1"), ([], "PART")],
)
def test_bad_input_is_one_clear_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench([*words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def expected_flops(decoder: Decoder, batch_size: int) -> int:
    prepared = training.prepare(Sort(), batch_size, count=1)[0]
    with FlopCounterMode(display=False) as counter:
        functional.cross_entropy(decoder(prepared.flat, "sort"), prepared.flat.targets).backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("depth", [1, 3])
def test_the_limit_and_the_cost_model_count_what_torch_counts(depth: int) -> None:
    config = replace(SMALL, depth=depth, mlp_width=48)
    batch = training.prepare(Sort(), 32, count=1)[0].flat
    counted = expected_flops(training.new_model(config, Sort()), 32)
    products = unavoidable(config, Sort().vocab.size, batch, Room())
    assert sum(product.flops for product in products) == counted
    kinds = [
        limits.Example(group.count, group.length, group.tail, group.tail) for group in batch.groups
    ]
    each = sum(
        kind.share * limits.forward_flops(config, Sort().vocab.size, kind) for kind in kinds
    )
    assert 3 * (each + cost.symbol_flops(config, Sort().vocab.size)) == counted


def test_the_products_of_a_judging_pass_are_those_that_torch_counts() -> None:
    task = Sort(symbols=5)
    decoder = training.new_model(SMALL, task)
    for length in (2, 20):  # fewer tokens than symbols, and more
        batch = make_batch(task, [fresh_examples(task, 0, length, 0, 3)])
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            decoder(batch, "sort")
        products = unavoidable(SMALL, task.vocab.size, batch, Room(), learning=False)
        flops = sum(product.flops for product in products)
        stack, tokens, width = 3 * SMALL.heads, 2 * length, SMALL.each_head
        last_attention = (
            4 * stack * length * tokens * width
        )  # torch's counter leaves out its own attention
        first_attention = 4 * stack * tokens * tokens * width
        if (
            length == 20
            # here one that it counts, but with logits of pairs of symbols, not of queries and
            # symbols
        ):
            pairs, asked = SMALL.heads * task.vocab.size, stack * tokens
            first_attention = 2 * width * task.vocab.size * (asked - pairs)
        assert flops - counter.get_total_flops() == first_attention + last_attention


@pytest.mark.parametrize(("count", "parts"), [(1, 1), (4, 1), (12, 3)])
def test_the_limit_of_an_evaluation_reads_every_sequence(
    count: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Sort()
    examples = fresh_examples(task, 0, 10, 0, count)
    monkeypatch.setattr(exact, "TOKENS_AT_ONCE", 4 * examples.tokens.shape[1])
    done: list[int] = []
    monkeypatch.setattr(
        evaluation, "run_all", lambda products: done.append(sum(one.flops for one in products))
    )
    evaluation.whole_passes(training.new_model(SMALL, task), task, examples)(0)
    part = make_batch(task, [fresh_examples(task, 0, 10, 0, min(4, count))])
    flops = sum(
        one.flops for one in unavoidable(SMALL, task.vocab.size, part, Room(), learning=False)
    )
    assert done == [flops] * parts


def test_products_of_the_limit_share_memory_between_batches_only() -> None:
    room = Room()
    first, second = (training.prepare(Sort(), 16, count=2)[i].flat for i in range(2))
    sizes = [len(unavoidable(SMALL, 103, batch, room)) for batch in (first, second, first)]
    assert sizes[0] == sizes[2]
    outs = {product.out.data_ptr() for product in unavoidable(SMALL, 103, first, room)}
    assert len(outs) == sizes[0]


def test_length_shares_are_those_that_are_drawn() -> None:
    for lengths in (Skewed(2, 5, 20), Skewed(3, 3, 3), Skewed(1, 4, 8, 0.5)):
        shares = lengths.shares()
        assert sum(shares.values()) == pytest.approx(1.0)
        dataset = Dataset(Sort(lengths=lengths), seed=0, size=20_000)
        drawn = np.concatenate([part.inputs for part in dataset.examples(range(20_000))])
        for length, share in shares.items():
            assert (drawn == length).mean() == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("name", ["sort/standard", "sort/count", "increment/carry"])
def test_expected_operations_are_the_mean_of_batches(name: str) -> None:
    recipe = replace(find_recipe(name), batch_size=4096)
    seen = 0.0
    for place, task in enumerate(recipe.tasks):
        batch = make_batch(task, Dataset(task, 0, 10**6, place).examples(range(recipe.batch_size)))
        scored = len(batch.targets) / len(batch.rows)
        maps = [limits.Example(g.count, g.length, g.tail, 0.0) for g in batch.groups]
        head = 2 * recipe.model.width * task.vocab.size * scored * len(batch.rows)
        seen += head + sum(
            one.share * limits.forward_flops(recipe.model, task.vocab.size, one) for one in maps
        )
        seen += cost.symbol_flops(recipe.model, task.vocab.size)
    assert 3 * seen / len(recipe.tasks) == pytest.approx(cost.step_flops(recipe), rel=0.03)


def test_padding_costs_what_the_longest_of_a_batch_costs() -> None:
    (only,) = (kind for kind in cost.padded_examples(Sort(), 1024) if kind.share > 0.99)
    assert only.tokens == only.queries == only.scored == 40
    alone = cost.padded_examples(Sort(), 1)
    tokens = sum(kind.share * kind.tokens for kind in cost.expected_examples(Sort()))
    assert sum(kind.share * kind.tokens for kind in alone) == pytest.approx(tokens)
    assert sum(kind.share for kind in cost.padded_examples(Increment(), 64)) == pytest.approx(1.0)
    assert sum(kind.share for kind in cost.expected_examples(Count())) == pytest.approx(1.0)


def test_parameters_and_optimiser_state_are_counted_exactly() -> None:
    recipe = replace(find_recipe("sort/successor-tempered"), model=SMALL)
    decoder = Decoder(SMALL, recipe.task.vocab.size, [task.kind for task in recipe.tasks])
    learned = sum(value.numel() for value in decoder.parameters())
    assert sum(limits.parameters(recipe).values()) == learned
    assert cost.memory_bytes(replace(recipe, optimiser=Adam()))["optimiser"] == 8 * learned
    matrices = limits.parameters(recipe)["matrices"]
    assert isinstance(recipe.optimiser, Muon)
    assert cost.memory_bytes(recipe)["optimiser"] == 8 * learned - 4 * matrices


def kept_bytes(recipe: Recipe) -> int:
    """What autograd keeps of one step of the plain padded model, besides the weights."""
    decoder = training.new_model(recipe.model, recipe.task)
    model, kept = padded(decoder, "sort"), dict[int, int]()
    weights = {value.untyped_storage().data_ptr() for value in model.parameters()}
    batch = training.prepare(recipe.task, recipe.batch_size, count=1)[0].padded

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype == torch.float32 and tensor.untyped_storage().data_ptr() not in weights:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = functional.cross_entropy(model(batch.tokens).flatten(0, 1), batch.targets.flatten())
    assert loss.requires_grad
    return sum(kept.values())


def test_activations_are_about_what_autograd_keeps() -> None:
    recipe = replace(find_recipe("sort/standard"), model=replace(SMALL, width=64), batch_size=128)
    assert cost.memory_bytes(recipe, padded=True)["activations"] == pytest.approx(
        kept_bytes(recipe), rel=0.3
    )


def test_hours_follow_from_operations() -> None:
    recipe = find_recipe("sort/standard", "paper")
    gpu = cost.Gpu(teraflops=1.0, gib=1)
    assert cost.hours(recipe, gpu, utilisation=0.5) == pytest.approx(
        recipe.steps * cost.step_flops(recipe) / 0.5e12 / 3600
    )
    assert cost.hours(recipe, gpu, padded=True) > cost.hours(recipe, gpu)


def plain_sorter() -> Decoder:
    return training.new_model(SMALL, Sort())


def test_first_errors_and_agreement() -> None:
    right = np.array([[1, 2, 3], [1, 2, 3], [1, 2, 3]])
    assert evaluation.first_errors(
        np.array([[1, 2, 3], [1, 0, 0], [0, 2, 3]]), right
    ).tolist() == [-1, 1, 0]
    model, task = plain_sorter(), Sort().for_test("uniform")
    examples = fresh_examples(task, 0, 2, 0, 20)
    ours = evaluation.our_errors(model, task, examples, at_once=7)
    same = evaluation.agreement(model, task, examples, ours, ours)
    assert (
        same["same_first_error"] == same["same_verdict"] == same["compared"] == 20
        and same["exceptions"] == []
    )
    theirs = ours.copy()
    theirs[3] = 1 if ours[3] < 0 else -1
    changed = evaluation.agreement(model, task, examples, ours, theirs)
    assert changed["same_first_error"] == changed["same_verdict"] == 19
    assert changed["exceptions"][0]["row"] == 3 and changed["exceptions"][0]["logit_gap"] >= 0


@needs_bench
def test_generate_finds_the_same_first_errors() -> None:
    task = Sort().for_test("uniform")
    result = evaluation.measure_length(plain_sorter(), task, 6, 24, rounds=1, batch_sizes=(8, 24))
    assert result["same_first_error"] == result["compared"] == 24
    assert result["best_batch_size"] in (8, 24) and set(result["batch_sizes"]) == {"8", "24"}
    assert {"ours", "against"} <= result.keys() and "transformers" in result["against"]


def small_results() -> dict[str, Any]:
    """A document of small measurements; those that need other libraries are made up."""
    result = training.contest(SMALL, rounds=1, batch_size=16, only=("padded",))
    assert set(result["against"]) == {"padded"} and "ours" in result
    result |= training.share_of_limit(SMALL, rounds=1, batch_size=16)
    assert "of_limit" in result
    point = growth.training_point(width=32, batch_size=16, longest=8, rounds=1)
    test_point = growth.evaluation_point(10, rounds=1, tokens=200)
    judged = {
        "ours": 1.0,
        "against": {"transformers": 2.0},
        "batch_sizes": {"8": 1.0},
        "exceptions": [],
    }
    judged |= {"compared": 1, "right": 1, "same_verdict": 1, "same_first_error": 1}
    return {
        "machine": {"processor": "some"},
        "train": {"width-128": result | {"muon_share": training.muon_share(SMALL, 1, 16)}},
        "evaluate": {"length-100": judged},
        "data": data.measure(1, at_once=64, batch_size=16, model=SMALL),
        "field": field.measure(1, tokens=60, model=SMALL),
        "explore": explore.measure(1, {4: 150.0}),
        "profile": {"width-128": profiling.profile_model(SMALL, 1, 16)},
        "growth": {
            "width": {"32": point},
            "batch": {},
            "length": {},
            "test_length": {"10": test_point},
        },
        "cost": cost.measure({"sort/standard": find_recipe("sort/standard")}),
    }


def test_every_part_is_measured_and_shown() -> None:
    results = small_results()
    text = as_text(json.loads(json.dumps(results)))
    assert set(TABLES) == set(PARTS) == results.keys() - {"machine"}
    for words in (
        "of the limit",
        "examples/s",
        "same first error",
        "linear maps",
        "GFLOP/s",
        "hours on A100",
        "ms of a trace",
        "Muon",
    ):
        assert words in text
    shares: Mapping[str, float] = results["profile"]["width-128"]["shares"]
    assert sum(shares.values()) == pytest.approx(1.0) and shares["linear maps"] > 0


def test_the_fields_part_has_every_task_and_scheme_of_the_table() -> None:
    result = field.measure(1, tokens=60, model=SMALL)
    plain = {row.family for row in ROWS}
    assert plain <= result["tasks"].keys() and "sort" not in result["tasks"]
    labels = {scheme.label for scheme in SCHEMES.values() if scheme.name != "offset-ssmax"}
    assert labels - {"no positions"} <= result["schemes"].keys()
    slow = {name for name, one in result["schemes"].items() if not one["fast"]}
    kerple = {"KERPLE, logarithmic", "KERPLE, power"}
    assert slow == {"ALiBi", "NAPE", "T5 buckets", "FIRE", "entmax-1.5"} | kerple


def test_each_request_of_the_explore_part_is_a_fresh_input_and_the_pass_reads_the_same(
    tmp_path: Path,
) -> None:
    run = explore._made(tmp_path / "run")
    read = [explore._tokens(run, 5, number) for number in range(8)]
    bottom = run.task.vocab.delimiter
    assert [tokens[5:] for tokens in read] == [[bottom, *sorted(t[:5])][:-1] for t in read]
    assert len({tuple(tokens) for tokens in read}) == 8


def test_batches_of_the_fields_part_have_equal_tokens() -> None:
    for name, recipe in (field._tasks(SMALL) | field._schemes(SMALL)).items():
        sized = field._sized(recipe, 2000)
        tokens = [len(batch_for(sized, step).tokens) for step in range(20)]
        assert sum(tokens) / 20 == pytest.approx(2000, rel=0.1), name


def test_one_part_is_merged_into_earlier_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps({"machine": {"git": "old"}, "train": {}, "cost": {"gpus": 1}}))
    assert bench(["cost", "--json", "--into", str(path)]) == 0
    document, whole = json.loads(capsys.readouterr().out), json.loads(path.read_text())
    assert whole["cost"] == document["cost"] and whole["train"] == {}
    assert whole["machine"] == {"git": "old"} and whole["machines"]["cost"] == document["machine"]
    again = merged(whole, {"machine": {"git": "old"}, "cost": {}})
    assert again == {"machine": {"git": "old"}, "train": {}, "cost": {}}
    path.unlink()
    assert bench(["cost", "--into", str(path)]) == 2


def test_peak_memory_is_that_of_the_child_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ballast = torch.ones(300 * 2**18)  # 300 MiB that the child does not have
    measured = memory.peak_mib("train", 2)
    assert 50 < measured["mib"] < 1024 and measured["seconds"] > 0
    assert memory.own_peak_mib() > 300 and len(ballast)
    killed = subprocess.CompletedProcess[str]([], 1, "", "some lines\nout of memory\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: killed)
    with pytest.raises(UserError, match="out of memory"):
        memory.peak_mib("train", 2)


def test_cost_prints_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["cost", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["cost"]["experiments"]["sort/standard, depth 12"]["parameters"] > 90_000_000
    assert run_bench("cost").keys() == {"machine", "cost"}


def test_the_performance_page_has_every_part() -> None:
    text = (ROOT / "docs" / "performance.md").read_text()
    assert set(re.findall(r"<!-- bench: (\w+) -->", text)) == {"machine", *PARTS}
