"""Devices and precisions. Without a GPU the model, the judge and an update run on the `meta`
device, whose tensors have no values, under a mode that fails where two devices meet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import taskhint
from taskhint import cli
from taskhint.cli import main
from taskhint.construct import construct
from taskhint.data.batch import Batch, make_batch
from taskhint.data.dataset import fresh_examples
from taskhint.evaluation import exact
from taskhint.model import places
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.decoding import greedy
from taskhint.model.positions import Positions
from taskhint.model.softmax import Normaliser, Temperature
from taskhint.recipes.optimisers import Adam, Muon
from taskhint.runs.run import Run, load
from taskhint.system import devices
from taskhint.system.devices import Compute, compute
from taskhint.system.errors import UserError
from taskhint.tasks import Increment
from taskhint.tasks.task import Task
from taskhint.training.loop import train
from tests.conftest import small

MODEL = ModelConfig(width=16, heads=2, mlp_width=24, depth=2)
TASK = Increment()
DEVICE = torch.device("meta")
VARIANTS = [
    *({"positions": kind} for kind in Positions.kinds()),
    *({"temperature": kind} for kind in Temperature.kinds()),
    *({"normaliser": kind} for kind in Normaliser.kinds()),
    {"positions": "alibi", "normaliser": "entmax15", "temperature": "adaptive"},
    {"qk_norm": True, "norm": "after", "activation": "relu"},
    {"mlp_width": 0},
]


class OneDevice(TorchDispatchMode):
    """Fails where an operator meets tensors of two devices; single numbers may come along.

    Stricter than CUDA, which takes indices from the CPU. Copies are the way from one to another.
    """

    COPIES = ("aten._to_copy", "aten.copy_")

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        found = {x.device.type for x in given if x.dim()}
        if len(found) > 1 and not str(func).startswith(self.COPIES):
            raise RuntimeError(f"{func} meets tensors of {found}")
        return func(*args, **(kwargs or {}))


@pytest.fixture
def strict() -> Iterator[None]:
    with OneDevice():  # type: ignore[no-untyped-call]
        yield


def model(variant: dict[str, object], device: torch.device | str = DEVICE) -> Decoder:
    config = replace(MODEL, **variant)  # type: ignore[arg-type]
    return Decoder(config, TASK.vocab.size, [TASK]).to(device)


def batch(decoder: Decoder, length: int = 5) -> Batch:
    made = make_batch(TASK, [fresh_examples(TASK, 0, n, 0, 3) for n in (length, length + 2)])
    moved = made.to(decoder.device)
    if decoder.config.positions.reads_tokens:  # in training they come with the batch
        return replace(moved, ids=moved.tokens, next_ids=moved.tokens)
    return moved


def first_ids(
    positions: Positions,  # noqa: ARG001
    task: Task | None,  # noqa: ARG001
    tokens: torch.Tensor,
    start: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    zeros = torch.zeros_like(tokens)[:, start:].flatten()
    return zeros, zeros


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_an_update_stays_on_the_device(variant: dict[str, object]) -> None:
    decoder = model(variant)
    given = batch(decoder)
    logits = decoder(given, TASK.kind)
    assert logits.device == DEVICE
    assert logits.shape == (len(given.targets), TASK.vocab.size)
    functional.cross_entropy(logits, given.targets).backward()
    for value in decoder.parameters():
        assert value.grad is None or value.grad.device == DEVICE


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_judge_stays_on_the_device(variant: dict[str, object]) -> None:
    right = exact.right_answers(model(variant).eval(), TASK, fresh_examples(TASK, 0, 9, 0, 4))
    assert (right.device, right.shape) == (DEVICE, ())


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_decoding_and_tracing_stay_on_the_device(
    variant: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_token_ids", first_ids)  # reading tokens needs their values
    decoder = model(variant).eval()
    prompts = torch.zeros(2, 6, dtype=torch.long, device=DEVICE)
    inputs = torch.full((2,), 5, device=DEVICE)
    assert greedy(decoder, TASK.kind, prompts, 3, inputs, 11).device == DEVICE
    trace = decoder.trace(prompts, TASK.kind, 5)
    assert {value.device for value in trace.values()} == {DEVICE}


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("optimiser", [Adam(weight_decay=0.1), Muon()], ids=lambda o: o.kind)
def test_the_state_of_an_optimiser_is_on_the_device(optimiser: Adam | Muon) -> None:
    state = optimiser.at_work(model({}), 0.01).state()
    assert {value.device for value in state.values()} == {DEVICE}


@pytest.mark.usefixtures("strict")
def test_the_double_fails_on_a_mix() -> None:
    decoder = model({})
    with pytest.raises(RuntimeError, match="meets tensors of"):
        decoder(batch(model({}, "cpu")), TASK.kind)


@pytest.mark.parametrize("low", [False, True], ids=["bfloat16", "bfloat16-attention"])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_variant_runs_in_bfloat16(variant: dict[str, object], low: bool) -> None:
    decoder = model(variant, "cpu")
    decoder.initialise(3)
    given = batch(decoder)
    exactly = decoder(given, TASK.kind)
    decoder.precision = "bfloat16-attention" if low else "bfloat16"
    roughly = decoder(given, TASK.kind)
    assert roughly.dtype == torch.float32
    assert 0 < (roughly - exactly).abs().max() < 0.1 * exactly.abs().max()
    functional.cross_entropy(roughly, given.targets).backward()
    grown = [value for value in decoder.parameters() if value.grad is not None]
    assert grown
    assert all(v.grad is not None and v.grad.isfinite().all() for v in grown)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "bfloat16-attention"])
def test_attention_is_in_float32_unless_asked_for(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = model({}, "cpu")
    decoder.precision = precision
    seen: dict[str, set[torch.dtype]] = {"attention": set(), "maps": set()}

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            made = func(*args, **(kwargs or {}))
            kind = {"mm": "maps", "addmm": "maps", "bmm": "attention", "baddbmm": "attention"}
            name = kind.get(func.overloadpacket.__name__)
            if name is not None:
                seen[name].add(made.dtype)
            return made

    # Packed attention is written with plain products, which show; torch's own does not.
    given = batch(decoder)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    with Seeing():  # type: ignore[no-untyped-call]
        decoder(given, TASK.kind)
    low, exactly = torch.bfloat16, torch.float32
    assert seen["maps"] == ({exactly} if precision == "float32" else {low, exactly})  # logits
    assert seen["attention"] == {low if precision == "bfloat16-attention" else exactly}


def test_a_checkpoint_is_float32_whatever_trained_it(tmp_path: Path) -> None:
    recipe = small("increment/standard").with_steps(5)
    exactly = train(recipe, tmp_path / "a", device="cpu")
    roughly = train(recipe, tmp_path / "b", precision="bfloat16")
    assert {v.dtype for v in roughly.model.state_dict().values()} == {torch.float32}
    assert exactly.recipe.fingerprint() == roughly.recipe.fingerprint()
    pairs = zip(exactly.model.parameters(), roughly.model.parameters(), strict=True)
    far = [(a - b).norm() / a.norm() for a, b in pairs if a.dim() == 2]
    assert 0 < max(far) < 0.1
    noted = json.loads((tmp_path / "b/environment.json").read_text())["stretches"][0]
    assert noted["environment"]["precision"] == "bfloat16"
    assert noted["environment"]["processes"] == 1


def test_large_chunks_on_a_device_count_what_the_judge_of_the_cpu_counts(
    sorter: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "sequences_that_fit", lambda *_: 30)
    for length, distance in ((3, False), (9, False), (9, True)):
        asked = (sorter.model, sorter.task, 5, length, 100, distance)
        wanted, found = exact.score(*asked), exact._score_on_device(*asked)
        assert found == wanted
        assert wanted.right == 100 if length == 3 else 0 < wanted.right < 100


def test_a_run_moves_with_what_was_done_to_its_model(sorter: Run) -> None:
    run = load(sorter.path)
    assert run.chosen() is run.to("cpu") is run
    with torch.no_grad():
        run.model.embedding.weight.zero_()
    moved = run.to("cpu", "bfloat16")
    assert moved.at == Compute("cpu", "bfloat16")
    assert moved.model.precision == "bfloat16"
    assert run.model.precision == "float32"
    assert not moved.model.embedding.weight.any()
    assert moved.chosen().at == moved.at
    assert load(sorter.path, precision="bfloat16").model.precision == "bfloat16"


def test_evaluation_and_answers_in_bfloat16(sorter: Run) -> None:
    curve = taskhint.evaluate(sorter, [4], 200, save=False, precision="bfloat16")
    exactly = taskhint.evaluate(sorter, [4], 200, save=False)
    assert abs(curve[4].accuracy - exactly[4].accuracy) < 0.1
    assert sorter.to("cpu", "bfloat16").solve([3, 1, 2]) == sorter.solve([3, 1, 2])


BAD = {
    "--device gpu": "device 'gpu' is not known; allowed: auto, cpu, cuda, cuda:N, mps",
    "--device cudda": "device 'cudda' is not known; allowed: auto,",
    "--device cuda": "torch finds no CUDA here; use cpu or auto",
    "--device cuda:1": "torch finds no CUDA here; use cpu or auto",
    "--device mps": "device mps is not there",
    "--precision tf32": "device cpu has no tf32",
    "--precision float64": "precision 'float64' is not known",
}
COMMANDS = {
    "train": "sort/standard --out {out}",
    "evaluate": "{run} --lengths 3 --no-save",
    "probe": "{run} --out {out}",
    "solve": "{run} 3 1 2",
    "explore": "{run} --no-open",
}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a GPU, whatever this one has."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_there_is_refused_in_one_line(
    command: str, bad: str, sorter: Run, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = COMMANDS[command].format(run=sorter.path, out=out).split()
    assert main([command, *words, *bad.split()]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert BAD[bad] in told[0]
    assert not out.exists()


def test_every_command_that_computes_has_the_same_options() -> None:
    """Those that docs/clusters.md names, with the same words about them."""
    page = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text()
    (sentence,) = re.findall(r"^(.*) take `--device` and `--precision`\.$", page, re.MULTILINE)
    about = {}
    for name in cli.COMMANDS:
        parser = cli._command_parser(name)
        actions = {word: one for one in parser._actions for word in one.option_strings}
        if "--device" in actions:
            about[name] = [
                (one.help, one.default, one.metavar)
                for one in (actions["--device"], actions["--precision"])
            ]
    assert sorted(about) == sorted(re.findall(r"`(\w+)`", sentence))
    assert all(words == about["train"] for words in about.values())


def test_a_constructed_model_keeps_its_own_precision(tmp_path: Path) -> None:
    run = construct(tmp_path / "built", 10, 5, dtype="float64")
    with pytest.raises(UserError, match="for models in float32; this one is in float64"):
        _ = run.to("cpu", "bfloat16").model


class Gpus:
    """A machine with GPUs, as far as the questions about them go."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, count: int, capability: tuple[int, int]
    ) -> None:
        answers = {
            "is_available": True,
            "device_count": count,
            "get_device_capability": capability,
            "is_bf16_supported": capability >= (8, 0),
        }
        for name, answer in answers.items():
            monkeypatch.setattr(torch.cuda, name, lambda *_, answer=answer: answer)


def test_devices_of_a_machine_with_two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    Gpus(monkeypatch, 2, (8, 0))
    assert compute() == compute("cuda") == Compute("cuda:0")
    assert compute("cuda:1", "tf32") == Compute("cuda:1", "tf32")
    assert compute("cpu", "bfloat16") == Compute("cpu", "bfloat16")
    with pytest.raises(UserError, match="cuda:2 is not there: torch finds 2"):
        compute("cuda:2")


@pytest.mark.parametrize("precision", ["tf32", "bfloat16", "bfloat16-attention"])
def test_an_old_gpu_lacks_precisions(monkeypatch: pytest.MonkeyPatch, precision: str) -> None:
    Gpus(monkeypatch, 1, (7, 5))
    with pytest.raises(UserError, match=r"device cuda:0 has no (tf32|bfloat16)"):
        compute("cuda", precision)


def test_each_process_of_torchrun_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    Gpus(monkeypatch, 2, (9, 0))
    started = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "4", "RANK": "3"}
    for name, value in {**started, "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert compute() == Compute("cuda:1")
    assert not devices.speaks()
    with pytest.raises(UserError, match="use cuda"):
        compute("cuda:0")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    monkeypatch.setenv("LOCAL_RANK", "0")  # the one that speaks must know it too
    with pytest.raises(UserError, match="2 CUDA devices for 3 processes"):
        compute()


def test_tf32_is_switched_on_and_off() -> None:
    before = torch.get_float32_matmul_precision()
    with devices.products("tf32", torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before
