"""One run on many processes, with gloo on this machine: the same curve for every number of them,
also across interruptions.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import distributed as dist
from torch._C._distributed_c10d import HashStore
from torch.nn import functional

from taskhint.data.batch import Batch
from taskhint.model.config import ModelConfig
from taskhint.recipes import find_recipe
from taskhint.recipes.optimisers import Muon, orthogonalise
from taskhint.recipes.recipe import Recipe
from taskhint.runs.run import new_decoder
from taskhint.system.errors import LostTeamError, UserError
from taskhint.training import distributed
from taskhint.training.distributed import Team, part_of
from taskhint.training.loop import batch_for, train
from tests.conftest import small

HERE = Path(__file__).parents[2]
CPU = torch.device("cpu")
STEPS = 200
# Muon learns at so small a rate that rounding, which differs with N, does not grow.
RECIPE = replace(
    find_recipe("sort/successor-tempered").with_steps(STEPS),
    model=ModelConfig(width=16, heads=2, mlp_width=32, depth=2),
    optimiser=Muon(),
    batch_size=32,
    checkpoint_every=50,
    log_every=1,
)
# Kills its own process, the one of rank RANK, somewhere behind the first checkpoint; only once.
KILLER = """
import os, pathlib, random, signal, threading, time

def wait():
    first = pathlib.Path({out!r}) / "checkpoints" / "step-00000050"
    while not first.exists():
        time.sleep(0.002)
    time.sleep(random.random() * {within})
    pathlib.Path({mark!r}).touch()
    os.kill(os.getpid(), signal.{signal})

if os.environ["RANK"] == "{rank}" and not pathlib.Path({mark!r}).exists():
    threading.Thread(target=wait, daemon=True).start()
"""


def torchrun(count: int, *words: str, restarts: int = 0) -> subprocess.CompletedProcess[str]:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--max-restarts={restarts}"]
    return subprocess.run(
        [sys.executable, *launcher, f"--nproc-per-node={count}", "-m", "taskhint", *words],
        cwd=HERE,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE / 'src'}:{HERE}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def train_on(
    count: int, out: Path, *words: str, restarts: int = 0, recipe: Recipe = RECIPE
) -> subprocess.CompletedProcess[str]:
    file = out.with_suffix(".json")
    file.write_text(json.dumps(recipe.to_json()))
    named = ["train", str(file), "--out", str(out), "--device", "cpu", *words]
    return torchrun(count, *named, restarts=restarts)


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    lines = done.stderr.splitlines()
    return [line for line in lines if line.startswith("taskhint:") and "WARNING" not in line]


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def weights(run: Path) -> bytes:
    return (run / f"checkpoints/step-{STEPS:08d}/weights.safetensors").read_bytes()


def assert_on_the_curve(run: Path, single: Path) -> None:
    found, wanted = losses(run), losses(single)
    assert len(found) == len(wanted) == STEPS
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert json.loads((run / "recipe.json").read_text()) == json.loads(
        (single / "recipe.json").read_text()
    )


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained by one process, without torchrun."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as torchrun's processes have
    try:
        return train(RECIPE, tmp_path_factory.mktemp("single") / "run", device="cpu").path
    finally:
        torch.set_num_threads(before)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Two processes, of which the second was killed on the way; and what was told."""
    out = tmp_path_factory.mktemp("killed") / "run"
    done = train_on(2, out, "--import", str(killer(out, rank=1)))
    assert done.returncode != 0
    return out, told(done)


def killer(out: Path, rank: int, how: str = "SIGKILL", within: float = 0.3) -> Path:
    file, mark = out.with_suffix(".py"), str(out.with_suffix(".killed"))
    file.write_text(KILLER.format(out=str(out), mark=mark, rank=rank, signal=how, within=within))
    return file


def examples_of(batch: Batch) -> list[tuple[Any, ...]]:
    """Row, tokens, inputs, scored targets and drawn ids of every example, by slow counting."""
    found, token, tail, asked, row = [], 0, 0, 0, 0
    scored = range(10**6) if batch.scored is None else batch.scored.tolist()
    for group in batch.groups:
        for _ in range(group.count):
            span = slice(token, token + group.length)
            targets = []
            while asked < len(batch.targets) and scored[asked] < tail + group.tail:
                targets.append((scored[asked] - tail, int(batch.targets[asked])))
                asked += 1
            ids = None if batch.ids is None else tuple(batch.ids[span].tolist())
            tokens, inputs = (x[span].tolist() for x in (batch.tokens, batch.inputs))
            found.append((int(batch.rows[row]), tuple(tokens), tuple(inputs), tuple(targets), ids))
            token, tail, row = token + group.length, tail + group.tail, row + 1
    assert (token, asked, row) == (len(batch.tokens), len(batch.targets), len(batch.rows))
    return found


NAMES = ["sort/standard", "sort/count", "increment/carry", "sort/fill"]


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    positions=st.sampled_from(["none", "randomised"]),
    step=st.integers(0, 9),
    size=st.integers(1, 7),
)
def test_the_parts_of_a_batch_are_the_batch(
    name: str, positions: str, step: int, size: int
) -> None:
    recipe = small(name).change(positions=positions)
    whole = examples_of(batch_for(recipe, step))
    parts = [examples_of(part_of(batch_for(recipe, step), rank, size)) for rank in range(size)]
    assert sorted(itertools.chain(*parts)) == sorted(whole)
    counts = [len(part) for part in parts]
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("size", [2, 3])
def test_gradients_are_those_of_the_whole_batch(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum over processes is played by adding up what each of them would send."""
    recipe = small("sort/standard")
    decoder, batch, task = new_decoder(recipe), batch_for(recipe, 0), recipe.task.kind
    wanted = functional.cross_entropy(decoder(batch, task), batch.targets)
    wanted.backward()
    expected = {n: p.grad.clone() for n, p in decoder.named_parameters() if p.grad is not None}
    sent: list[torch.Tensor] = []
    monkeypatch.setattr(dist, "all_reduce", lambda flat: sent.append(flat.clone()))
    scored, team = [], Team(0, size, CPU, HashStore())
    for rank in range(size):
        decoder.zero_grad()
        part = part_of(batch, rank, size)
        loss = functional.cross_entropy(decoder(part, task), part.targets, reduction="sum")
        loss.backward()
        if rank == size - 1:
            monkeypatch.setattr(dist, "all_reduce", lambda flat: flat.add_(sum(sent)))
        stop = signal.SIGTERM if rank == 0 else None
        mean = team.exchange(decoder, loss, len(part.targets), stop)
        scored.append(len(part.targets))
    assert len(set(scored)) > 1  # or dividing by the number of one process would do as well
    torch.testing.assert_close(mean, wanted)
    for name, value in decoder.named_parameters():
        assert (value.grad is None) == (name not in expected)
        if value.grad is not None:
            torch.testing.assert_close(value.grad, expected[name], rtol=1e-4, atol=1e-6)
    assert team.stopped == signal.SIGTERM  # which another process got


@pytest.mark.parametrize(("count", "size"), [(7, 3), (2, 4), (4, 2)])
def test_matrices_are_divided_among_processes(
    count: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack, done, worked = torch.randn(count, 4, 6), [], []

    def work(mine: torch.Tensor) -> torch.Tensor:
        worked.append(len(mine))
        return orthogonalise(mine)

    monkeypatch.setattr(dist, "all_gather", lambda parts, mine: done.append(mine))  # noqa: ARG005
    teams = [Team(rank, size, CPU, HashStore()) for rank in range(size)]
    for team in teams:
        team.divided(work)(stack)
    assert sum(worked) == count
    assert max(worked) <= -(-count // size)

    def gather(parts: list[torch.Tensor], mine: torch.Tensor) -> None:  # noqa: ARG001
        for part, of in zip(parts, done, strict=True):
            part.copy_(of)

    monkeypatch.setattr(dist, "all_gather", gather)
    torch.testing.assert_close(teams[-1].divided(orthogonalise)(stack), orthogonalise(stack))


def test_who_is_left_alone_finishes_the_update(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("Connection closed by peer")

    monkeypatch.setattr(dist, "all_gather", broken)
    monkeypatch.setattr(dist, "all_reduce", broken)
    team, stack = Team(1, 2, CPU, HashStore()), torch.randn(3, 4, 6)
    assert torch.equal(team.divided(orthogonalise)(stack), orthogonalise(stack))
    with pytest.raises(LostTeamError, match="another process of this training ended"):
        team.wait()


def test_one_process_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "FIRST_TURN", 0.0)
    store = HashStore()
    first, second = (Team(rank, 2, CPU, store) for rank in (0, 1))
    assert second.tells_first(LostTeamError("x"))
    assert not first.tells_first(UserError("y"))


def test_one_process_of_torchrun_makes_the_same_bits(single: Path, out: Path) -> None:
    assert train_on(1, out).returncode == 0
    assert weights(out) == weights(single)


def test_two_processes_make_the_same_curve_and_the_same_bits_again(
    single: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        done = train_on(2, tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("200 updates") == 1
        assert_on_the_curve(tmp_path / name, single)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    names = [sorted(p.name for p in run.rglob("*")) for run in (tmp_path / "a", single)]
    assert names[0] == names[1]


def test_four_processes_make_the_same_curve(single: Path, out: Path) -> None:
    done = train_on(4, out)
    assert done.returncode == 0, done.stderr
    assert_on_the_curve(out, single)


def test_a_dead_process_ends_the_job_in_one_line(killed: tuple[Path, list[str]]) -> None:
    out, lines = killed
    saved = sorted((out / "checkpoints").iterdir())[-1].name
    step = int(saved.removeprefix("step-"))
    assert len(lines) == 1
    assert f"another process of this training ended; saved at step {step} in" in lines[0]
    assert step >= 50
    # Not an update is lost: what was logged is what was saved, whenever the kill came.
    assert len(losses(out)) == step


@pytest.mark.parametrize("count", [1, 4])
def test_a_killed_run_goes_on_with_another_number_of_processes(
    count: int, killed: tuple[Path, list[str]], single: Path, tmp_path: Path
) -> None:
    shutil.copytree(killed[0], tmp_path / "run")
    assert train_on(count, tmp_path / "run").returncode == 0
    assert_on_the_curve(tmp_path / "run", single)


def test_torchrun_restarts_what_lost_its_first_process(single: Path, out: Path) -> None:
    done = train_on(2, out, "--import", str(killer(out, rank=0)), restarts=1)
    assert done.returncode == 0, done.stderr
    lines = told(done)
    assert len(lines) == 1
    assert "another process of this training ended; saved at step" in lines[0]
    assert_on_the_curve(out, single)


def test_a_signal_to_one_process_stops_all_and_saves(single: Path, out: Path) -> None:
    done = train_on(2, out, "--import", str(killer(out, rank=1, how="SIGTERM", within=0.1)))
    assert done.returncode != 0
    saved = sorted((out / "checkpoints").iterdir())[-1].name
    assert len(losses(out)) == int(saved.removeprefix("step-"))
    assert train_on(2, out).returncode == 0
    assert_on_the_curve(out, single)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "batch_size=1"], "batch_size=1 is less than 2 processes; use fewer of them"),
        (["--device", "gpu"], "device 'gpu' is not known"),
    ],
)
def test_bad_input_is_refused_in_one_line(words: list[str], message: str, out: Path) -> None:
    done = train_on(2, out, *words)
    assert done.returncode != 0
    lines = told(done)
    assert len(lines) == 1
    assert message in lines[0]
    assert not out.exists()
