"""The constructed model sorts, for the reasons that the theorem gives. Python's `sorted` is the
judge.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taskhint.cli import main
from taskhint.construct import FORMATS, build, construct, coordinates_of, make_plan
from taskhint.construct.precision import hard_inputs
from taskhint.data.batch import make_batch
from taskhint.evaluation.exact import evaluate
from taskhint.model.decoder import Decoder
from taskhint.model.decoding import greedy
from taskhint.model.trace import Trace
from taskhint.runs.run import Run, load
from taskhint.system.errors import UserError
from taskhint.tasks import Sort
from taskhint.tasks.task import Examples
from taskhint.training.loop import train

Q, N = 20, 64


@pytest.fixture(scope="module", params=["plain", "layer-norm"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return construct(
        tmp_path_factory.mktemp("constructed") / "run", Q, N, request.param == "layer-norm"
    )


def decoder_for(q: int, longest: int, layer_norm: bool = False, dtype: str = "float32") -> Decoder:
    return build(make_plan(q, longest, layer_norm, dtype)).eval()


@torch.no_grad()
def wrong(decoder: Decoder, q: int, inputs: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The inputs (symbols 1..q, all of one length) whose answer has an error somewhere."""
    answers = np.array([sorted(row) for row in inputs])
    prompts = np.array([[*(x - 1 for x in row), q] for row in inputs])
    batch = make_batch(Sort(symbols=q), [Examples.equal(prompts, answers - 1, len(inputs[0]))])
    predicted = decoder(batch, "sort").argmax(dim=1).view(len(inputs), -1).numpy() + 1
    return [
        row
        for row, right in zip(inputs, (predicted == answers).all(axis=1), strict=True)
        if not right
    ]


@pytest.mark.parametrize(
    ("dtype", "layer_norm", "longest"),
    [
        *itertools.product(FORMATS, (False, True), (30_000,)),
        ("float32", False, 6),
        ("float32", True, 6),
    ],
)
def test_every_input_over_four_symbols_up_to_length_six(
    dtype: str, layer_norm: bool, longest: int
) -> None:
    """A model built for long inputs must not lose the short ones: its successor is weak beside
    what leaks there.
    """
    decoder = decoder_for(4, longest, layer_norm, dtype)
    for n in range(1, 7):
        assert wrong(decoder, 4, list(itertools.product(range(1, 5), repeat=n))) == []


@pytest.mark.parametrize("layer_norm", [False, True])
def test_the_shapes_that_inputs_can_have(layer_norm: bool) -> None:
    decoder = decoder_for(100, 1000, layer_norm)
    row = list(range(1, 101))
    shapes = [
        row,
        row[::-1],
        [7] * 100,
        [1] * 100,
        [100] * 100,
        [x if x != 50 else 51 for x in row],
    ]
    assert wrong(decoder, 100, shapes) == []
    two = [[3] * k + [8] * (60 - k) for k in range(61)] + [
        [100] * k + [1] * (60 - k) for k in range(61)
    ]
    mixed = [np.random.default_rng(k).permutation(two[k]).tolist() for k in range(0, 61, 4)]
    assert wrong(decoder, 100, two + mixed) == []


@pytest.mark.parametrize(
    ("q", "layer_norm"),
    [*itertools.product((2, 3, 5, 26), (False, True)), (257, False), (100, True)],
)
def test_alphabets_of_many_sizes(q: int, layer_norm: bool) -> None:
    decoder = decoder_for(q, 1000, layer_norm)
    for n in (1, 2, 3, 10, 40):
        random = np.random.default_rng(n).integers(1, q + 1, (8, n))
        close = 1 + random % min(q, 3)
        assert (
            wrong(decoder, q, [*random.tolist(), *close.tolist(), *(q + 1 - close).tolist()]) == []
        )


def test_a_thousand_symbols() -> None:
    decoder = decoder_for(1000, 5000)
    neighbours = [[1000, 999, 1, 2] * 50, [500, 501, 499, 500] * 50]
    assert wrong(decoder, 1000, [*neighbours, range(1000, 800, -1), range(1, 1000, 5)]) == []


def test_length_five_thousand() -> None:
    decoder = decoder_for(100, 5000)
    random = np.random.default_rng(5).integers(1, 101, 5000).tolist()
    assert wrong(decoder, 100, [random]) == []


@settings(max_examples=30, deadline=None)
@given(inputs=st.lists(st.integers(1, Q), min_size=1, max_size=N), layer_norm=st.booleans())
def test_any_input_is_sorted_by_greedy_decoding(inputs: list[int], layer_norm: bool) -> None:
    decoder = _cached_decoder(layer_norm)
    prompt = torch.tensor([[*(x - 1 for x in inputs), Q]])
    n = len(inputs)
    answer = greedy(decoder, "sort", prompt, n, torch.tensor([n]), sequence=2 * n + 1)
    assert (answer[0] + 1).tolist() == sorted(inputs)
    assert wrong(decoder, Q, [inputs]) == []


_DECODERS: dict[bool, Decoder] = {}


def _cached_decoder(layer_norm: bool) -> Decoder:
    if layer_norm not in _DECODERS:
        _DECODERS[layer_norm] = decoder_for(Q, N, layer_norm)
    return _DECODERS[layer_norm]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("layer_norm", [False, True])
def test_decoding_with_the_cache_gives_what_the_single_pass_gives(
    dtype: str, layer_norm: bool
) -> None:
    decoder = decoder_for(6, 25, layer_norm, dtype)
    inputs = np.random.default_rng(0).integers(0, 6, (30, 25))
    prompts = torch.from_numpy(np.pad(inputs, ((0, 0), (0, 1)), constant_values=6))
    decoded = greedy(decoder, "sort", prompts, 25, torch.full((30,), 25), sequence=51)
    batch = make_batch(Sort(symbols=6), [Examples.equal(prompts.numpy(), decoded.numpy(), 25)])
    with torch.no_grad():
        single = decoder(batch, "sort").argmax(dim=1).view(30, 25)
    assert torch.equal(single, decoded)


def traced(run: Run, inputs: Sequence[int]) -> Trace:
    tokens = [*(x - 1 for x in inputs), Q, *(x - 1 for x in sorted(inputs)[:-1])]
    with torch.no_grad():
        return run.model.trace(torch.tensor([tokens]), "sort", len(inputs))


SEQUENCES = [list(row + 1) for row in hard_inputs(Q, 40)] + [
    [7],
    [7, 7],
    [7, 3],
    [3, 7],
    [5, 5, 2],
    [1, 2, 3],
    [9] * 60,
]


@pytest.mark.parametrize("inputs", SEQUENCES, ids=lambda row: f"{len(row)}-{row[0]}-{row[-1]}")
def test_the_three_properties_of_the_theorem(run: Run, inputs: list[int]) -> None:
    n, right = len(inputs), sorted(inputs)
    trace = traced(run, inputs)
    encoder = run.model.embedding.weight.detach()[:Q]
    decoder = run.model.state_dict()["heads.sort.weight"][:Q]

    first = trace["blocks.0.after_attention"][0]
    copied = first[:n] @ encoder.T
    assert (copied.argmax(dim=1) + 1).tolist() == inputs
    assert (
        copied.amax(dim=1) / copied.abs().sum(dim=1) > 0.99
    ).all()  # all the rest together is less than 1%
    assert int((decoder @ first[n]).argmax()) + 1 == right[0]

    second = trace["blocks.1.after_attention"][0, n + 1 :] @ decoder.T
    final = trace["logits"][0, n:, :Q]
    for i, here in enumerate(right[:-1]):
        larger = [x for x in right if x > here]
        if larger:
            assert set((second[i].topk(2).indices + 1).tolist()) == {here, larger[0]}
        assert (
            int(second[i].argmax()) + 1 == here
        )  # identity first; the last MLP takes it away where it must
    assert (final.argmax(dim=1) + 1).tolist() == right


def test_every_coordinate_has_a_name_and_does_what_it_says(run: Run) -> None:
    at = coordinates_of(run)
    model = run.model
    assert len(set(at.names)) == len(at.names) == at.width == model.config.width
    row = dict(zip(at.names, model.embedding.weight[16].tolist(), strict=True))
    assert {name.removeprefix("-") for name, value in row.items() if value} == {"token 17"}
    assert at.names[at.index("candidate 3")] == "candidate 3"
    with pytest.raises(KeyError, match="candidate 3"):
        at.index("candidat 3")

    stream = traced(run, [3, 3, 8])["blocks.0.after_mlp"][0]  # 3 3 8 ⊥ 3 3
    unit = float(stream[0, at.index("token 3")])
    values = {name: (stream[:, at.index(name)] / unit).tolist() for name in at.names}
    near = 1e-5 if at.mirrored else 0.0  # the norm's mean is a rounding away from zero
    assert values["mark 3"] == pytest.approx([1, 1, 0, 0, -1, -1], abs=near)
    assert values["mark 8"] == pytest.approx([0, 0, 1, 0, 0, 0], abs=near)
    assert values["candidate 3"][4:] == pytest.approx([1, 1], abs=near)
    assert values["after ⊥"] == pytest.approx([0] * 6, abs=near)
    for name in at.names[at.half :]:
        assert values[name] == pytest.approx([-value for value in values[name[1:]]], abs=2 * near)


def test_what_no_name_is_given_to_has_no_weight(run: Run) -> None:
    at = coordinates_of(run)
    spare = [at.index(name) for name in at.names if "spare" in name]
    state = run.model.state_dict()
    for name, value in state.items():
        if name.endswith(("embedding.weight", "qkv", "up.weight", "heads.sort.weight")):
            assert not value[:, spare].any(), name
        elif name.endswith(("out.weight", "down.weight")):
            assert not value[spare].any(), name


def test_it_is_a_run_like_any_other(run: Run) -> None:
    files = {
        path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()
    }
    step = "checkpoints/step-00000000/"
    wanted = {
        f"{step}{name}"
        for name in ("manifest.json", "state.json", "weights.safetensors", "optimiser.safetensors")
    }
    assert {"recipe.json", "environment.json"} | wanted <= files
    again = load(run.path)
    assert again.recipe == run.recipe
    assert again.solve([5, 17, 3, 17]) == [3, 5, 17, 17]
    for distribution in ("uniform", "rep:2", "rep:3", "rep:4", "rep:5"):
        curve = evaluate(again, [1, 2, 3, 5, 10, 50], 10, distribution)
        assert {score.accuracy for score in curve.scores.values()} == {1.0}
    construct(
        run.path, Q, N, run.recipe.model.norm == "after"
    )  # writing the same again is no harm
    with pytest.raises(UserError, match="another run"):
        construct(run.path, Q, N + 1, run.recipe.model.norm == "after")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_training_a_constructed_run_is_refused(dtype: str, tmp_path: Path) -> None:
    run = construct(tmp_path / "run", 5, 10, dtype=dtype)
    with pytest.raises(UserError, match="construct"):
        train(run.recipe, run.path)
    with pytest.raises(UserError, match="another run"):
        train("sort/standard", run.path)
    assert run.solve([2, 1]) == [1, 2]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    small = ["--symbols", "7", "--max-length", "30", "--layer-norm", "--dtype", "float64"]
    assert main(["construct", "--out", out, *small]) == 0
    assert main(["solve", out, "7", "2", "2", "5"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 2 5 7"
    assert main(["evaluate", out, "--lengths", "1,30", "--examples", "20", "--json"]) == 0
    lengths = json.loads(capsys.readouterr().out)["lengths"]
    assert {score["accuracy"] for score in lengths.values()} == {1.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dtype", "float33"], "float32"),
        (["--symbols", "1"], "at least 2"),
        (["--symbols", "30000"], "GB"),
        (["--symbols", "1000000"], "model."),
        (["--max-length", "0"], "at least 1"),
        (["--max-length", "-3"], "negative"),
        (["--symbols", "129", "--dtype", "bfloat16"], "128"),
        (["--max-length", "32753", "--dtype", "float16"], "32752"),
        (["--max-length", "262145", "--layer-norm"], "262144"),
        (["--max-length", "1048577"], "1048576"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["construct", "--out", str(tmp_path / "run"), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()
