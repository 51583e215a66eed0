"""Position schemes, temperatures and normalisers against their published formulas, in plain
Python.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from taskhint.data.batch import make_batch
from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import evaluate
from taskhint.model.attention import paths
from taskhint.model.block import Draw, LearnedWeights
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.places import Places
from taskhint.model.positions import (
    Abacus,
    Coupling,
    Learned,
    LearnedOffset,
    Mirror,
    PositionHooks,
    Positions,
    Randomised,
    Rope,
    T5Buckets,
    Windows,
)
from taskhint.model.softmax import Entmax15, Temperature
from taskhint.recipes import find_recipe
from taskhint.system.errors import UserError
from taskhint.tasks import Carry, Increment, Sort, Task
from taskhint.tasks.addition import Addition, AdditionScratchpad
from taskhint.tasks.bits import ParityScratchpad
from taskhint.tasks.copying import Copy, Reverse
from taskhint.tasks.multiplication import Multiplication, MultiplicationScratchpad
from taskhint.tasks.random_bits import RandomBits
from taskhint.training.loop import train
from tests.conftest import small

MODEL = ModelConfig(width=24, heads=3, depth=2, mlp_width=8)
DISTANCES = [*range(40), 63, 64, 100, 127, 128, 129, 500, 5000]


def learned(wanted: Any) -> dict[str, Tensor]:
    weights = LearnedWeights(wanted)
    with torch.no_grad():
        weights.initialise(Draw(5))
    return {name: value.detach().double() for name, value in weights.values().items()}


def bound(kind: str, model: ModelConfig = MODEL) -> tuple[PositionHooks, dict[str, Tensor]]:
    positions = replace(model, positions=kind).positions  # type: ignore[arg-type]
    weights = learned(positions.weights(model) | positions.block_weights(model))
    return positions.bind(model, weights), weights


def bias_of(hooks: PositionHooks, query: int, key: int) -> list[float]:
    """What is added to the logit of one query and one key, for each head."""
    found = hooks.bias(torch.tensor([[[[query]]]]), torch.tensor([[[[key]]]]))
    return found.flatten().tolist()


def places_at(ids: list[int], inputs: int = 0) -> Places:
    index = torch.tensor(ids)
    same = torch.full_like(index, inputs)
    return Places(index, same, torch.full_like(index, 99), index, next_ids=index + 1)


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (4, [1 / 4, 1 / 16, 1 / 64, 1 / 256]),
        (8, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]),
        (6, [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]),
        (1, [1 / 256]),
        (3, [1 / 16, 1 / 256, 1 / 4]),
    ],
)
def test_alibi_has_the_published_slopes(heads: int, slopes: list[float]) -> None:
    hooks, _ = bound("alibi", replace(MODEL, heads=heads))
    for distance in DISTANCES:
        wanted = [-slope * distance for slope in slopes]
        assert bias_of(hooks, 7 + distance, 7) == pytest.approx(wanted)


def test_nape_leaves_half_of_the_heads_without_positions() -> None:
    hooks, _ = bound("nape", replace(MODEL, heads=6))
    assert bias_of(hooks, 12, 6) == pytest.approx([-6.0, -3.0, -2.0, 0.0, 0.0, 0.0])


def published_bucket(distance: int, buckets: int = 32, furthest: int = 128) -> int:
    """T5's, for a decoder."""
    exact = buckets // 2
    if distance < exact:
        return distance
    return min(
        buckets - 1,
        exact + int(math.log(distance / exact) / math.log(furthest / exact) * (buckets - exact)),
    )


@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (8, 20), (7, 50)])
def test_t5_buckets_are_the_published_ones(buckets: int, furthest: int) -> None:
    found = T5Buckets(buckets, furthest).bucket(torch.tensor(DISTANCES)).tolist()
    assert found == [published_bucket(d, buckets, furthest) for d in DISTANCES]


def test_t5_adds_the_number_of_the_bucket_for_each_head() -> None:
    hooks, weights = bound("t5")
    for distance in DISTANCES:
        wanted = weights["bias.weight"][published_bucket(distance)].tolist()
        assert bias_of(hooks, 9 + distance, 9) == pytest.approx(wanted)


def test_kerple_is_a_logarithm_or_a_power_of_the_distance() -> None:
    hooks, weights = bound("kerple-log")
    r1, r2 = ([math.exp(x) for x in weights[name].tolist()] for name in ("log_r1", "log_r2"))
    for d in DISTANCES:
        wanted = [-a * math.log(1 + b * d) for a, b in zip(r1, r2, strict=True)]
        assert bias_of(hooks, 3 + d, 3) == pytest.approx(wanted)
    hooks, weights = bound("kerple-power")
    r1 = [math.exp(x) for x in weights["log_r1"].tolist()]
    r2 = [2 / (1 + math.exp(-x)) for x in weights["logit_r2"].tolist()]
    assert all(0 < b < 2 for b in r2) and len(set(r2)) == MODEL.heads
    for d in DISTANCES:
        wanted = [-a * d**b for a, b in zip(r1, r2, strict=True)]
        assert bias_of(hooks, 3 + d, 3) == pytest.approx(wanted)


@pytest.mark.parametrize(("query", "key"), [(0, 0), (5, 2), (600, 1), (511, 500), (2000, 0)])
def test_fire_is_the_published_formula(query: int, key: int) -> None:
    hooks, weights = bound("fire")
    w: dict[str, Any] = {name: value.tolist() for name, value in weights.items()}

    def psi(x: float) -> float:
        return math.log(abs(w["c"] * x) + 1)

    ratio = psi(query - key) / psi(max(query, 512.0 * w["threshold"]))
    hidden = [max(0.0, a * ratio + b) for a, b in zip(w["up.weight"], w["up.bias"], strict=True)]
    wanted = [
        sum(a * h for a, h in zip(row, hidden, strict=True)) + b
        for row, b in zip(w["down.weight"], w["down.bias"], strict=True)
    ]
    assert bias_of(hooks, query, key) == pytest.approx(wanted)


def test_fire_changes_with_the_length_beyond_its_threshold_only() -> None:
    hooks, _ = bound("fire")
    assert bias_of(hooks, 100, 90) == pytest.approx(bias_of(hooks, 400, 390))
    assert bias_of(hooks, 2000, 1990) != pytest.approx(bias_of(hooks, 4000, 3990))


@pytest.mark.parametrize("kind", ["alibi", "nape", "t5", "kerple-log", "kerple-power"])
def test_relative_biases_know_differences_alone(kind: str) -> None:
    hooks, _ = bound(kind)
    ids = torch.tensor([0, 3, 4, 9])
    near, far = (hooks.bias(i.view(1, 1, -1, 1), i.view(1, 1, 1, -1)) for i in (ids, ids + 1000))
    assert torch.allclose(near, far)


def test_rope_is_a_product_of_complex_numbers() -> None:
    x = torch.randn(4, 3, 8, dtype=torch.float64)
    found = Rope().turn(x, places_at([0, 1, 7, 300]))
    for token, place in enumerate([0, 1, 7, 300]):
        for head in range(3):
            for k in range(4):
                pair = complex(x[token, head, k], x[token, head, k + 4])
                angle = place * 10_000 ** (-2 * k / 8)
                pair *= complex(math.cos(angle), math.sin(angle))
                assert found[token, head, k].item() == pytest.approx(pair.real, abs=1e-9)
                assert found[token, head, k + 4].item() == pytest.approx(pair.imag, abs=1e-9)


def test_products_of_turned_queries_and_keys_know_differences_alone() -> None:
    q, k = torch.randn(2, 1, 3, 8, dtype=torch.float64)
    rope = Rope()

    def product(query: int, key: int) -> Tensor:
        return (rope.turn(q, places_at([query])) * rope.turn(k, places_at([key]))).sum(dim=2)

    assert torch.allclose(product(9, 4), product(1009, 1004))
    assert not torch.allclose(product(9, 4), product(9, 5))


def test_sinusoidal_and_learned_add_a_vector_of_the_place() -> None:
    x = torch.randn(3, 24, dtype=torch.float64)
    hooks, _ = bound("sinusoidal")
    added = (hooks.add(x, places_at([0, 2, 50])) - x).tolist()
    for place, row in zip([0, 2, 50], added, strict=True):
        for k in range(12):
            angle = place * 10_000 ** (-2 * k / 24)
            assert row[k] == pytest.approx(math.sin(angle), abs=1e-9)
            assert row[12 + k] == pytest.approx(math.cos(angle), abs=1e-9)
    hooks, weights = bound("learned")
    added_rows = hooks.add(x, places_at([0, 2, 50])) - x
    assert torch.allclose(added_rows, weights["table.weight"][[0, 2, 50]])


@pytest.mark.parametrize("head", [0, 1, 2])
def test_mirror_logits_are_turned_products_with_a_window(head: int) -> None:
    """A key stands |index - n| steps from ⊥, a query where the next token will stand."""
    n, width = 3, 0.5 * 3.0 ** (head / 2)
    hooks = Mirror().bind(MODEL, {})
    q, k = torch.randn(2, 7, 3, 8, dtype=torch.float64)
    scale = torch.full((7, 1), 0.7, dtype=torch.float64)
    places = places_at(list(range(7)), inputs=n)
    found = hooks.turn_queries(q, places, scale) * scale[:, :, None]
    logits = found[:, head] @ hooks.turn_keys(k, places)[:, head].T

    def wanted(i: int, j: int) -> float:
        of_query, of_key = abs(i + 1 - n), abs(j - n)
        product = 0.0
        for pair in range(3):
            turn = (of_key - of_query) * 100.0 ** (-pair / 2)
            a = complex(q[i, head, pair], -q[i, head, 3 + pair])
            b = complex(k[j, head, pair], k[j, head, 3 + pair])
            product += (a * b * complex(math.cos(turn), math.sin(turn))).real
        return 0.7 * product - ((of_query - of_key) / width) ** 2 / 2

    for i in range(7):
        for j in range(7):  # but for a number that all logits of a query have in common
            difference = (logits[i, j] - logits[i, 0]).item()
            assert difference == pytest.approx(wanted(i, j) - wanted(i, 0), abs=1e-9)


def test_mirror_is_coupling_of_increment_with_windows() -> None:
    task = Increment(nines=0.5)
    tokens = torch.from_numpy(fresh_examples(task, 0, 6, 0, 8).tokens[:, :-1])
    found = []
    for positions in (Mirror(), Coupling(Windows(), span=1)):
        decoder = Decoder(replace(MODEL, positions=positions), task.vocab.size, [task])
        decoder.initialise(3)
        found.append(decoder(tokens, inputs=6))
    assert torch.allclose(found[0], found[1], atol=1e-6)


def test_coupled_digits_are_those_of_equal_weight() -> None:
    task = Increment()
    prompt = task.prompt([4, 0, 9])
    tokens = np.array([[*prompt, *task.solve(prompt), -1]])
    assert task.coupled(tokens).tolist() == [[3, 2, 1, 0, 1, 2, 3, 4]]
    carry = Carry()
    tokens = np.array([[*prompt, *carry.solve(prompt), -1]])
    wanted = [3, 2, 1, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4]
    assert carry.coupled(tokens).tolist() == [wanted]


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        (Copy(symbols=50), "123 0 1234"),
        (Reverse(symbols=50), "321 0 1234"),
        (Addition(), "321 0 321 0 12345"),
        (Addition(operands="reversed"), "123 0 123 0 12345"),
        (AdditionScratchpad(), "321 0 321 0 1111222233334" + "4"),
        (Multiplication(), "321 000 12345"),
        (Multiplication(operands="reversed"), "123 000 12345"),
        (MultiplicationScratchpad(), "321 000 11122233344"),
        (ParityScratchpad(), "123 0 1234"),
    ],
    ids=str,
)
def test_coupled_tokens_of_the_fields_tasks(task: Task, wanted: str) -> None:
    tokens = np.pad(fresh_examples(task, 0, 3, 0, 4).tokens, ((0, 0), (0, 1)), constant_values=-1)
    rows = [[int(digit) for digit in wanted.replace(" ", "")]] * 4
    assert task.coupled(tokens).tolist() == rows


def test_coupling_begins_anywhere_within_its_span_in_training_and_at_0_in_a_test() -> None:
    task, positions = Increment(), Coupling(Learned(20), span=12)
    tokens = fresh_examples(task, 0, 4, 0, 400).tokens[:, :9]
    plain = positions.token_ids(tokens, task)
    assert plain.shape == (400, 10) and plain.min() == 0 and plain.max() == 5
    ids = positions.training_ids(RandomBits(0, 63, np.arange(400)), tokens, task)
    offsets = (ids - plain)[:, :1]
    assert (ids == plain + offsets).all()
    assert set(offsets.ravel().tolist()) == set(range(12 - 5 + 1)) and ids.max() == 12


def test_abacus_counts_digits_within_each_number() -> None:
    task, positions = Increment(), Abacus(largest_offset=6)
    mark = task.vocab.delimiter
    tokens = np.array([[3, 1, mark, 4, 1, 5, mark, mark, 9]])
    wanted = [1, 2, 0, 1, 2, 3, 0, 0, 1]
    assert positions.token_ids(tokens, task)[0, :-1].tolist() == wanted
    many = np.repeat(tokens, 300, axis=0)
    ids = positions.training_ids(RandomBits(0, 63, np.arange(300)), many, task)[:, :-1]
    starts = set()
    for row in ids.tolist():
        starts.add(row[0])
        assert row == [0 if place == 0 else place + row[0] - 1 for place in wanted]
    assert starts == set(range(1, 8))


def test_a_random_offset_reaches_every_place_and_none_beyond() -> None:
    ids = LearnedOffset(16).draw(RandomBits(0, 63, np.arange(500)), 11)
    assert (np.diff(ids, axis=1) == 1).all()
    assert set(ids[:, 0].tolist()) == set(range(7)), "10 tokens are read, of the last one nothing"


def test_randomised_positions_are_a_sorted_choice_of_the_whole_span() -> None:
    positions = Randomised(span=30)
    ids = positions.draw(RandomBits(0, 63, np.arange(3000)), 5)
    assert (np.diff(ids, axis=1) > 0).all() and set(ids.ravel().tolist()) == set(range(30))
    # Spread evenly in a test, each at the mean of the random choice.
    spread = positions.test_ids(torch.arange(5), torch.full((5,), 5))
    assert np.abs(ids.mean(axis=0) - spread.numpy()).max() < 1.0
    whole = positions.test_ids(torch.arange(30), torch.full((30,), 30))
    assert whole.tolist() == list(range(30))
    with pytest.raises(UserError, match="span=30"):
        positions.test_ids(torch.arange(31), torch.full((31,), 31))


@pytest.mark.parametrize("kind", Positions.kinds())
def test_every_scheme_can_be_set_by_its_name(kind: str) -> None:
    recipe = find_recipe("increment/standard").with_settings([f"model.positions={kind}"])
    assert recipe.model.positions.kind == kind
    assert type(recipe).from_json(recipe.to_json()) == recipe


def test_a_task_that_couples_nothing_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="'sort' does not say which tokens belong together"):
        find_recipe("sort/standard").with_settings(["model.positions=coupling"])


@pytest.mark.parametrize(
    "positions",
    [
        Coupling(Randomised()),
        Coupling(Mirror()),
        Randomised(LearnedOffset()),
        Randomised(Abacus()),
        Coupling(Learned(100), span=100),
    ],
)
def test_schemes_that_cannot_work_together_are_refused(positions: Positions) -> None:
    with pytest.raises(UserError, match=r"model\.positions"):
        replace(MODEL, positions=positions)


def test_a_scheme_that_reads_tokens_needs_the_task() -> None:
    decoder = Decoder(replace(MODEL, positions=Abacus()), 14, ["increment"])
    with pytest.raises(UserError, match="its tasks, not with their names"):
        decoder(torch.zeros(1, 4, dtype=torch.long))


def factors(kind: str, n: list[int], stream: Tensor | None = None) -> tuple[Tensor, Any]:
    temperature: Temperature = replace(MODEL, temperature=kind).temperature  # type: ignore[arg-type]
    weights = learned(temperature.weights(MODEL))
    places = places_at([count - 1 for count in n], inputs=11)
    if stream is not None:
        places = places.with_stream(stream)
    found = temperature.bind(MODEL, weights).factor(places)
    assert found is not None
    return found, {name: value.tolist() for name, value in weights.items()}


@pytest.mark.parametrize(
    ("kind", "counted"),
    [("log-visible", [1, 2, 9]), ("log-input", [11] * 3), ("log-sequence", [99] * 3)],
)
def test_tempered_softmax_multiplies_with_beta_ln_n(kind: str, counted: list[int]) -> None:
    found, weights = factors(kind, [1, 2, 9])
    assert found.tolist() == pytest.approx([weights["beta"] * math.log(n) for n in counted])


def test_ssmax_multiplies_with_s_ln_n_for_each_head() -> None:
    found, weights = factors("ssmax", [1, 2, 50])
    assert weights["scale"] == pytest.approx([0.43] * 3)
    for n, row in zip([1, 2, 50], found.tolist(), strict=True):
        assert row == pytest.approx([s * math.log(n) for s in weights["scale"]])


def test_log_n_begins_beyond_the_trained_length() -> None:
    found, _ = factors("log-n", [1, 40, 41, 82, 1681])
    wanted = [1.0, 1.0, 1.0, math.log(82) / math.log(41), 2.0]
    assert found.tolist() == pytest.approx(wanted)


def test_adaptive_is_delta_and_beta_times_a_power_of_the_logarithm() -> None:
    stream = torch.randn(3, MODEL.width, dtype=torch.float64)
    found, weights = factors("adaptive", [1, 5, 80], stream)
    for n, x, row in zip([1, 5, 80], stream.tolist(), found.tolist(), strict=True):
        for head in range(3):
            of_beta, of_gamma = (
                sum(a * b for a, b in zip(weights[name][head], x, strict=True))
                for name in ("beta.weight", "gamma.weight")
            )
            beta, gamma = math.log(1 + math.exp(of_beta)), 2 * math.tanh(of_gamma)
            assert row[head] == pytest.approx(1 + beta * math.log(n + 1) ** gamma)


def entmax_by_halving(logits: list[float]) -> list[float]:
    """The definition: ((z/2 - τ)+)² with the τ for which it adds up to 1."""
    low, high = max(logits) / 2 - 1, max(logits) / 2
    for _ in range(200):
        middle = (low + high) / 2
        above = sum(max(0.0, z / 2 - middle) ** 2 for z in logits) > 1
        low, high = (middle, high) if above else (low, middle)
    return [max(0.0, z / 2 - low) ** 2 for z in logits]


def test_entmax_is_its_definition_with_hidden_keys_too() -> None:
    rows = [[0.3, -1.2, 2.0, 1.9], [5.0, 5.0, 5.0, -math.inf], [1e4, 1e4 - 1, -1e4, -math.inf]]
    rows += torch.randn(20, 4, generator=torch.Generator().manual_seed(0)).mul(2).tolist()
    found = Entmax15().weights(torch.tensor(rows, dtype=torch.float64))
    for row, weights in zip(rows, found.tolist(), strict=True):
        assert weights == pytest.approx(entmax_by_halving(row), abs=1e-9)
    assert (found[1, 3] == 0) and (found == 0).sum() > 10, "sparse"


def test_entmax_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskhint.system.extras.installed", lambda _: False)
    monkeypatch.setitem(sys.modules, "entmax", None)
    config = replace(MODEL, normaliser=Entmax15())  # recipes can be read without it
    with pytest.raises(UserError, match=r"pip install 'taskhint\[entmax\]'"):
        Decoder(config, 5, ["sort"])


@pytest.mark.parametrize("kind", ["fire", "randomised", "learned"])
@pytest.mark.parametrize("normaliser", ["softmax", "entmax15"])
def test_blocks_of_queries_give_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch, kind: str, normaliser: str
) -> None:
    config = replace(MODEL, positions=kind, normaliser=normaliser)  # type: ignore[arg-type]
    decoder = Decoder(config, Sort().vocab.size, [Sort()]).double()
    decoder.initialise(0)
    tokens = torch.from_numpy(fresh_examples(Sort(), 0, 12, 0, 5).tokens)
    with torch.no_grad():
        whole = decoder(tokens, inputs=12)
        monkeypatch.setattr(paths, "PAIRS_AT_ONCE", 60)  # less than one query of each example
        assert torch.allclose(decoder(tokens, inputs=12), whole, atol=1e-12)


def test_a_long_tail_is_attended_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = torch.randn(2, 3, 9, 4), *torch.randn(2, 2, 3, 20, 4)
    whole = paths.causal_attention(q, k, v)
    monkeypatch.setattr(paths, "LARGEST_MASK", 50)
    assert torch.allclose(paths.causal_attention(q, k, v), whole, atol=1e-6)


@pytest.mark.parametrize("kind", ["none", "sinusoidal", "rope", "alibi", "t5", "fire", "mirror"])
def test_plain_tokens_can_be_on_any_device(kind: str) -> None:
    """The device without memory refuses every tensor of another one."""
    config = replace(MODEL, positions=kind, temperature="ssmax")  # type: ignore[arg-type]
    decoder = Decoder(config, 14, ["increment"]).to("meta")
    tokens = torch.zeros(2, 9, dtype=torch.long, device="meta")
    assert decoder(tokens, inputs=4).shape == (2, 9, 14)
    assert decoder.trace(tokens, inputs=4)["logits"].device.type == "meta"


@pytest.mark.parametrize(
    ("kind", "is_fast"),
    [("rope", True), ("randomised", True), ("mirror", True), ("learned", True), ("alibi", False)],
)
def test_what_leaves_logits_alone_trains_on_the_fast_path(
    monkeypatch: pytest.MonkeyPatch, kind: str, is_fast: bool
) -> None:
    slow = []

    def watched(*given: Any) -> Tensor:
        slow.append(given)
        return attend_by_group(*given)

    attend_by_group = paths.attend_by_group
    monkeypatch.setattr(paths, "attend_by_group", watched)
    config = replace(MODEL, positions=kind)  # type: ignore[arg-type]
    task = Increment()
    decoder = Decoder(config, task.vocab.size, [task])
    decoder(make_batch(task, [fresh_examples(task, 0, 5, 0, 4)]))
    assert (not slow) == is_fast


@pytest.mark.parametrize("kind", ["coupling", "abacus", "randomised", "fire"])
def test_a_scheme_trains_and_is_measured(kind: str, tmp_path: Path) -> None:
    recipe = small("increment/tempered").with_settings([f"model.positions={kind}"])
    run = train(recipe.change(steps=3, batch_size=8), tmp_path / "run")
    assert evaluate(run, [4, 12], examples=6, edit_distance=True)[12].examples == 6
    assert len(run.solve([1, 2, 9])) == 3
