"""The probes against the construction, against knocked-out weights, and against plain matrix
products.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from taskhint.construct import build, make_plan
from taskhint.construct.coordinates import Coordinates
from taskhint.construct.sorting import CANDIDATES_HEAD, REMAINING_HEAD, SUCCESSOR_HEAD
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.softmax import LogVisible
from taskhint.probe import (
    Subject,
    answer_by_stage,
    attention_by_length,
    attention_maps,
    first_errors,
    measure_bases,
    measure_mechanisms,
    project,
    traces,
)
from taskhint.probe.mechanism import mechanisms_of
from taskhint.probe.shares import independent_positions, share_of
from taskhint.probe.stages import stages
from taskhint.probe.traced import trace_of_prompt
from taskhint.runs.checkpoint import WEIGHTS
from taskhint.runs.run import Run, create, new_decoder, save_checkpoint, weight_shapes
from taskhint.system.errors import UserError
from taskhint.system.stats import wilson
from taskhint.tasks import Increment, Sort
from tests.conftest import small

SYMBOLS = 40
LENGTHS = (1, 2, 3, 10, 30, 100)
KNOCKED_LENGTHS = (5, 20)
TASK = Sort(symbols=SYMBOLS).for_test("uniform")
AT = Coordinates(SYMBOLS, 5 * SYMBOLS + 2, mirrored=False)


def constructed(layer_norm: bool = False, dtype: str = "float32") -> Decoder:
    return build(make_plan(SYMBOLS, 200, layer_norm, dtype))


def scores(decoder: Decoder, lengths: Sequence[int], examples: int = 20) -> dict[str, float]:
    """Of each mechanism its worst share at any length; lengths with nothing to ask
    are left out.
    """
    curves = measure_mechanisms(Subject(decoder, TASK), lengths, examples).shares
    return {
        name: min(s.share for s in by.values() if s.share is not None)
        for name, by in curves.items()
    }


@pytest.mark.parametrize(
    ("layer_norm", "dtype"), [(False, "float32"), (True, "float32"), (False, "bfloat16")]
)
def test_every_mechanism_holds_everywhere_in_the_construction(
    layer_norm: bool, dtype: str
) -> None:
    assert scores(constructed(layer_norm, dtype), LENGTHS) == dict.fromkeys(
        mechanisms_of(TASK), 1.0
    )


def knock_out_minimum(weights: dict[str, torch.Tensor]) -> None:
    """⊥ no longer asks for the smallest symbol."""
    heads(weights, 0)[0, CANDIDATES_HEAD, :, SYMBOLS] = 0.0


def knock_out_half_of_the_successors(weights: dict[str, torch.Tensor]) -> None:
    """The successor head still looks, but writes nothing for the larger half of the symbols."""
    heads(weights, 1)[2, SUCCESSOR_HEAD, SYMBOLS // 2 :] = 0.0


def knock_out_last_mlp(weights: dict[str, torch.Tensor]) -> None:
    weights["blocks.1.mlp.down.weight"].zero_()


def knock_out_copy(weights: dict[str, torch.Tensor]) -> None:
    """No weight makes the copy, the stream itself is it: so the last attention is made to erase it
    at input symbols.
    """
    out = weights["blocks.1.attention.out.weight"].view(AT.width, 2, SYMBOLS + 1)
    out[:SYMBOLS, REMAINING_HEAD, :SYMBOLS] = -torch.eye(SYMBOLS)


def heads(weights: dict[str, torch.Tensor], block: int) -> torch.Tensor:
    """(3, H, K, D) query, key and value maps."""
    return weights[f"blocks.{block}.attention.qkv"].view(3, 2, SYMBOLS + 1, -1)


@pytest.mark.parametrize(
    ("knock_out", "matching"),
    [
        (knock_out_minimum, {"min-finding"}),
        (
            knock_out_half_of_the_successors,
            {"identity+successor", "identity+successor, moving on"},
        ),
        (knock_out_last_mlp, {"denoising"}),
        (knock_out_copy, {"copy to the last block"}),
    ],
)
@torch.no_grad()
def test_a_knocked_out_weight_lowers_its_mechanism_and_no_other(
    knock_out: Callable[[dict[str, torch.Tensor]], None], matching: set[str]
) -> None:
    decoder = constructed()
    knock_out(dict(decoder.named_parameters()))
    measured = scores(decoder, KNOCKED_LENGTHS)
    assert {name for name, share in measured.items() if share < 1.0} == matching
    assert all(measured[name] < 0.75 for name in matching)


@torch.no_grad()
def test_an_attention_that_erases_the_copy_leaves_only_what_does_not_read_it() -> None:
    """Everything after the first attention reads the copy; the minimum is found by that attention
    itself.
    """
    decoder = constructed()
    out = dict(decoder.named_parameters())["blocks.0.attention.out.weight"].view(
        AT.width, 2, SYMBOLS + 1
    )
    out[:SYMBOLS, CANDIDATES_HEAD, :SYMBOLS] = -torch.eye(SYMBOLS)
    curves = measure_mechanisms(Subject(decoder, TASK), KNOCKED_LENGTHS, 30).shares
    assert all(share.high < 0.5 for share in curves["copy"].values())
    assert {share.share for share in curves["min-finding"].values()} == {1.0}


def random_decoder(task: Sort | Increment, **changes: object) -> Decoder:
    config = ModelConfig(width=24, heads=3, depth=3, mlp_width=40, temperature=LogVisible())
    decoder = Decoder(dataclasses.replace(config, **changes), task.vocab.size, [task.kind])  # type: ignore[arg-type]
    decoder.initialise(1)
    return decoder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with weights as they are drawn: nothing works in it, everything can be computed by
    hand.
    """
    recipe = small("sort/tempered", task=Sort(symbols=20))
    run = create(tmp_path_factory.mktemp("probe") / "untrained", recipe)
    save_checkpoint(run, 0, dict(new_decoder(recipe).named_parameters()), optimiser={})
    return Run(run.path, run.recipe)


def test_projections_are_matrix_products_with_the_runs_own_weights(run: Run) -> None:
    weights = run.checkpoint.tensors(WEIGHTS, weight_shapes(run.recipe))
    prompt = run.task.prompt(run.task.vocab.parse([5, 7, 13, 18, 20]))
    found = project(Subject.of(run), prompt)
    assert found.sequence == ("5", "7", "13", "18", "20", "⊥", "5", "7", "13", "18", "20")
    assert [(p.place, p.position, p.token) for p in found.positions] == [
        ("input", 2, "13"),
        ("answer", 8, "13"),
        ("delimiter", 5, "⊥"),
    ]
    assert [p.roles for p in found.positions] == [
        {"token": "13", "successor": "18", "minimum": "5"},
        {"token": "13", "successor": "18"},
        {"minimum": "5"},
    ]
    tokens = torch.tensor([[*prompt, *sorted(prompt[:-1])[:-1]]])
    with torch.no_grad():
        trace = run.model.trace(tokens, "sort", 5)
    for position in found.positions:
        for number, name in enumerate(stages(2).values()):
            stream = trace[name][0, position.position]
            for basis, matrix in enumerate(
                (weights["embedding.weight"], weights["heads.sort.weight"])
            ):
                direct = (matrix @ stream)[[*range(20), run.task.vocab.delimiter]]
                assert np.abs(position.values[number, basis] - direct.numpy()).max() < 1e-5


def test_a_traced_batch_is_each_example_alone(run: Run) -> None:
    subject = Subject.of(run)
    (traced,) = traces(subject, 6, 5)
    for row in range(5):
        alone = trace_of_prompt(subject, traced.tokens[row, :7].tolist())
        assert torch.equal(alone.following[0], traced.following[row])
        for name in traced.trace:
            difference = (traced.trace[name][row] - alone.trace[name][0]).nan_to_num(0.0)
            assert difference.abs().max() < 1e-5, name


def test_chunks_change_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Subject.of(run)
    whole = measure_mechanisms(subject, [9], 20), attention_by_length(subject, [9], 20)
    monkeypatch.setattr("taskhint.probe.traced.VALUES_AT_ONCE", 10_000)
    assert len(list(traces(subject, 9, 20))) > 3
    parts = measure_mechanisms(subject, [9], 20), attention_by_length(subject, [9], 20)
    assert parts[0] == whole[0]
    assert np.allclose(parts[1].shares[9].mean, whole[1].shares[9].mean, atol=1e-6)


def test_mechanisms_by_hand() -> None:
    """Straight from the definitions, one position at a time, on a model that gets most of them
    wrong.
    """
    decoder = random_decoder(TASK)
    subject = Subject(decoder, TASK)
    curves = measure_mechanisms(subject, [6], 40).shares
    encoder, unembedding = subject.encoder_basis[:SYMBOLS], subject.decoder_basis[:SYMBOLS]
    counts = dict.fromkeys(("min-finding", "identity+successor", "copy"), 0)
    for traced in traces(subject, 6, 40):
        for row, tokens in enumerate(traced.tokens.tolist()):
            ordered = sorted(tokens[:6])
            first, last = (
                traced.trace["blocks.0.after_attention"][row],
                traced.trace["blocks.2.after_attention"][row],
            )
            counts["min-finding"] += int((unembedding @ first[6]).argmax()) == ordered[0]
            counts["copy"] += sum(
                int((encoder @ first[i]).argmax()) == tokens[i] for i in range(6)
            )
            for place in range(5):
                pair = {ordered[place], ordered[place + 1]}
                top = (unembedding @ last[7 + place]).topk(len(pair)).indices.tolist()
                counts["identity+successor"] += set(top) == pair
    assert {name: curves[name][6].held for name in counts} == counts
    assert [curves[name][6].asked for name in counts] == [40, 200, 240]
    assert counts["copy"] > 100  # an untrained stream still is mostly its embedding


def test_the_bases_of_the_construction_are_orthogonal() -> None:
    bases = measure_bases(Subject(constructed(), TASK))
    for cosines in bases.cosines.values():
        assert cosines.largest_size == 0.0 and cosines.histogram.sum() == pytest.approx(1.0)
    assert np.allclose(bases.norms["encoder"], 1.0) and np.allclose(
        bases.norms["decoder"], np.sqrt(3)
    )
    assert bases.rms_of_all == bases.least_rms_of_all == 0.0


def test_bases_by_hand() -> None:
    subject = Subject(random_decoder(TASK), TASK)
    bases = measure_bases(subject)
    encoder, decoder = (
        subject.encoder_basis[:SYMBOLS].numpy(),
        subject.decoder_basis[:SYMBOLS].numpy(),
    )

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    within = [cosine(encoder[i], encoder[j]) for i in range(SYMBOLS) for j in range(i)]
    between = [cosine(encoder[i], decoder[i]) for i in range(SYMBOLS)]
    assert bases.cosines["within encoder"].mean_size == pytest.approx(
        np.abs(within).mean(), abs=1e-6
    )
    assert bases.cosines["within encoder"].largest_size == pytest.approx(
        np.abs(within).max(), abs=1e-6
    )
    assert bases.cosines["between"].by_distance[0] == pytest.approx(np.mean(between), abs=1e-6)
    assert bases.rms_of_all >= bases.least_rms_of_all > 0  # 80 vectors in 24 dimensions


def test_attention_of_the_construction_goes_where_it_says() -> None:
    curves = attention_by_length(Subject(constructed(), TASK), [1, 20], 20)
    assert list(curves.shares) == [20]  # one symbol has no answer position that predicts anything
    shares = curves.shares[20].mean
    kinds = curves.kinds
    assert kinds == ("same symbol", "successor", "⊥", "rest")
    assert (
        shares[0, 0, kinds.index("⊥")] > 0.999 and shares[0, 1, kinds.index("same symbol")] > 0.999
    )
    assert shares[1, 0, kinds.index("same symbol")] > 0.999
    assert np.allclose(shares.sum(axis=2), 1.0, atol=1e-5)
    assert (curves.largest[20].mean > 0.95).all()
    assert curves.entropy[20].mean[0, 0] < 1e-3


def test_attention_shares_by_hand(run: Run) -> None:
    subject = Subject.of(run)
    shares, entropy, largest = [], [], []
    for traced in traces(subject, 5, 4):
        for row, tokens in enumerate(traced.tokens.tolist()):
            weights = traced.trace["blocks.1.attention.weights"][row, 1].tolist()
            for at in range(6, 10):
                larger = min((x for x in tokens[:5] if x > tokens[at]), default=None)
                visible = range(at + 1)
                shares.append(
                    [
                        sum(weights[at][k] for k in visible if tokens[k] == x)
                        for x in (tokens[at], larger, 20)
                    ]
                )
                entropy.append(
                    -sum(weights[at][k] * np.log(weights[at][k]) for k in visible) / np.log(at + 1)
                )
                largest.append(
                    max(
                        sum(weights[at][k] for k in visible if tokens[k] == x) for x in set(tokens)
                    )
                )
    curves = attention_by_length(subject, [5], 4)
    assert np.allclose(curves.shares[5].mean[1, 1, :3], np.mean(shares, axis=0), atol=1e-5)
    assert curves.entropy[5].mean[1, 1] == pytest.approx(np.mean(entropy), abs=1e-5)
    assert curves.largest[5].mean[1, 1] == pytest.approx(np.mean(largest), abs=1e-5)


def test_attention_maps_are_the_traces_weights(run: Run) -> None:
    maps = attention_maps(Subject.of(run), run.task.prompt([3, 1, 2]))
    assert maps.tokens == ("4", "2", "3", "⊥", "2", "3") and maps.inputs == 3
    assert maps.weights.shape == (2, 2, 6, 6) and np.allclose(maps.weights.sum(axis=3), 1.0)


@torch.no_grad()
def test_first_errors_count_every_failed_sequence_once() -> None:
    decoder = constructed()
    heads(dict(decoder.named_parameters()), 1)[2, SUCCESSOR_HEAD, : SYMBOLS // 4] = 0.0
    found = first_errors(Subject(decoder, TASK), [4, 14], 100)
    for length, one in found.lengths.items():
        failed = sum(sum(errors.values()) for errors in one.counts.values())
        assert failed == sum(one.places) == 100 - one.right
        assert one.reached["minimum"] == 100 and sum(one.reached.values()) <= 100 * length
    assert 0 < found.lengths[14].right < found.lengths[4].right < 100


@pytest.mark.parametrize(
    ("knock_out", "step", "error"),
    [
        (knock_out_last_mlp, "successor", "repeated too often"),
        (knock_out_minimum, "minimum", "wrong minimum"),
    ],
)
@torch.no_grad()
def test_first_errors_name_what_was_knocked_out(
    knock_out: Callable[[dict[str, torch.Tensor]], None], step: str, error: str
) -> None:
    decoder = constructed()
    knock_out(dict(decoder.named_parameters()))
    one = first_errors(Subject(decoder, TASK), [12], 60).lengths[12]
    assert one.right < 30
    assert one.counts[step][error] > 0.7 * (60 - one.right)


@torch.no_grad()
def test_a_construction_that_cannot_count_moves_on_too_early() -> None:
    decoder = constructed()
    heads(dict(decoder.named_parameters()), 1)[2, REMAINING_HEAD] = 0.0
    one = first_errors(Subject(decoder, TASK), [30], 60).lengths[30]
    assert (
        sum(one.counts["repeat"].values()) + sum(one.counts["end"].values()) == 60 - one.right > 50
    )
    assert one.counts["repeat"]["moved on too early"] > 50
    assert one.risk_of_step("repeat") == 1.0 and one.risk_of_step("successor") == 0.0


def test_stages_find_the_answer_of_the_construction_at_the_end() -> None:
    curves = answer_by_stage(Subject(constructed(), TASK), [12], 30)
    assert {stage: by[12].share for stage, by in curves.start.items()} == dict.fromkeys(
        stages(2), 1.0
    )
    answers = {stage: by[12].share for stage, by in curves.answer.items()}
    assert answers["block 2, after MLP"] == 1.0
    assert (answers["block 2, before MLP"] or 0.0) < 0.5


def test_increment_models_are_probed_where_it_means_something() -> None:
    task = Increment(nines=0.5)
    subject = Subject(random_decoder(task), task)
    assert set(measure_mechanisms(subject, [2], 40).shares) == {"copy", "copy to the last block"}
    curves = attention_by_length(subject, [2], 40)
    assert curves.kinds == ("digit needed next", "digit just used", "⊥", "rest")
    one = first_errors(subject, [2], 40).lengths[2]
    assert one.reached["carry"] + one.reached["add one"] >= 40
    found = project(subject, task.prompt([1, 2, 9]))
    assert [(p.place, p.token, p.roles) for p in found.positions] == [
        ("input", "2", {"token": "2"}),
        ("answer", "3", {"token": "3", "right next": "1"}),
        ("delimiter", "⊥", {"right next": "0"}),
    ]
    assert answer_by_stage(subject, [2], 40).answer["block 1, before MLP"][2].asked >= 40


@pytest.mark.parametrize(
    ("symbols", "places"), [([7], 2), ([7, 7], 3), ([5, 9, 9], 3), ([9, 1], 3)]
)
def test_any_input_can_be_projected(symbols: list[int], places: int) -> None:
    subject = Subject(constructed(), TASK)
    prompt = TASK.prompt(symbols)
    assert len(project(subject, prompt).positions) == places
    assert attention_maps(subject, prompt).weights.shape[2] == 2 * len(symbols)


def test_attention_only_and_one_block_models_are_probed() -> None:
    for changes in ({"mlp_width": 0}, {"depth": 1}):
        subject = Subject(random_decoder(TASK, **changes), TASK)
        curves = measure_mechanisms(subject, [4], 10).shares
        assert set(curves) == set(mechanisms_of(TASK))
    assert curves["copy"] == curves["copy to the last block"]


def test_positions_of_one_sequence_are_not_counted_as_independent() -> None:
    ten = np.full(40, 10.0)
    together = independent_positions(np.array([10.0, 0.0] * 20), ten)  # all of one hold or fail
    apart = independent_positions(np.full(40, 5.0), ten)
    assert together == pytest.approx(40, rel=0.03) and apart == 40
    mixed = np.random.default_rng(0).binomial(10, 0.5, 2000).astype(float)
    assert independent_positions(mixed, np.full(2000, 10.0)) == pytest.approx(20_000, rel=0.1)
    share = share_of([10, 0] * 20, [10] * 40)
    assert (share.low, share.high) == tuple(wilson(0.5, together))
    assert share_of([0, 0], [0, 0]).share is None


def test_lengths_that_cannot_be_traced_are_refused() -> None:
    subject = Subject(constructed(), TASK)
    for length in (0, 1001):
        with pytest.raises(UserError, match=r"is not in 1\.\.1000"):
            measure_mechanisms(subject, [length], 1)
