"""Devices and precisions of sweeps: refused at the start where they are missing, used by every
worker where they are not.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import taskhint
from taskhint.cli import main
from taskhint.sweeps import cluster, remote, sweep
from taskhint.sweeps.cluster import RayCluster
from taskhint.sweeps.jobs import Job, Measurement
from taskhint.sweeps.local import slots_here
from taskhint.sweeps.work import do
from taskhint.system.devices import Compute
from tests.runs.reliability import tiny

MEASURED = (Measurement("uniform", (2, 3), 10),)
NO_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is here")


def job(out: str = "a") -> Job:
    return Job(out, tiny(steps=2, warmup_steps=0), MEASURED)


def trained_with(run: Path) -> tuple[str, str]:
    (stretch,) = json.loads((run / "environment.json").read_text())["stretches"]
    return stretch["environment"]["device"], stretch["environment"]["precision"]


@NO_CUDA
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--device", "cuda"], "device cuda is not there: torch finds no CUDA here"),
        (["--device", "cuda:1"], "device cuda:1 is not there"),
        (["--device", "mps"], "device mps is not there"),
        (["--device", "gpu"], "device 'gpu' is not known; allowed: auto, cpu, cuda"),
        (["--precision", "tf32"], "has no tf32"),
        (["--precision", "tf32", "--gpus-per-run", "0"], "has no tf32"),
        (["--precision", "bfloat"], "did you mean 'bfloat16'?"),
        (["--device", "cuda", "--gpus-per-run", "0"], "exclude each other"),
        (["--device", "cpu", "--gpus-per-run", "0.5"], "exclude each other"),
        (["--device", "gpu", "--on", "ray"], "device 'gpu' is not known"),
        (["--device", "cuda:1", "--on", "ray"], "Ray chooses the GPU of a run"),
    ],
)
@pytest.mark.parametrize("command", ["sweep sort/standard --lengths 3", "demo", "reproduce hint"])
def test_what_is_not_there_is_refused_before_anything_is_written(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    words: list[str],
    says: str,
) -> None:
    assert main([*command.split(), "--out", str(tmp_path / "out"), *words]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_every_run_of_a_sweep_has_the_precision(tmp_path: Path) -> None:
    asked = {"seeds": 2, "lengths": [2], "examples": 5}
    recipe = tiny(steps=2, warmup_steps=0)
    taskhint.sweep(recipe, tmp_path, device="cpu", precision="bfloat16", **asked)  # type: ignore[arg-type]
    runs = [path.parent for path in tmp_path.rglob("recipe.json")]
    assert [trained_with(run) for run in runs] == [("cpu", "bfloat16")] * 2


def test_a_worker_trains_and_measures_where_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same weights, measured in another precision: only then can an error be seen."""
    found: list[Any] = []
    from taskhint.evaluation import exact

    plain = exact.score

    def watched(model: Any, *given: Any) -> Any:
        found.append(model.precision)
        return plain(model, *given)

    monkeypatch.setattr(exact, "score", watched)
    answer = do(job(), tmp_path, at=Compute("cpu", "bfloat16"))
    assert answer.state == "done" and trained_with(tmp_path / "a") == ("cpu", "bfloat16")
    assert found == ["bfloat16"] * 2


@NO_CUDA
def test_a_node_without_the_device_says_so_in_one_line(tmp_path: Path) -> None:
    given = remote.order(tmp_path, 1.0, Compute("cuda"))
    answer = json.loads(remote.work(given, json.dumps(job().to_json())))
    assert answer["state"] == "unfit" and answer["exit_code"] == 2
    assert answer["error"].startswith("node ") and "device cuda is not there" in answer["error"]
    assert not (tmp_path / "a").exists()


def test_a_node_computes_as_it_is_told(tmp_path: Path) -> None:
    given = remote.order(tmp_path, 0.0, Compute("cpu", "bfloat16-attention"))
    assert json.loads(remote.work(given, json.dumps(job().to_json())))["state"] == "done"
    assert trained_with(tmp_path / "a") == ("cpu", "bfloat16-attention")


@pytest.mark.parametrize(
    ("device", "asked", "there", "gpus", "warned"),
    [
        ("auto", None, 0, 0.0, False),
        ("auto", None, 4, 1.0, False),
        ("auto", 0.25, 4, 0.25, False),
        ("auto", 0.25, 0, 0.25, True),  # a node with one may join
        ("cuda", None, 4, 1.0, False),
        ("cuda", None, 0, 0.0, False),  # then the first worker says what is missing
        ("cpu", None, 4, 0.0, False),
        ("auto", 0.0, 4, 0.0, False),
    ],
)
def test_what_ray_is_asked_for(
    capsys: pytest.CaptureFixture[str],
    device: str,
    asked: float | None,
    there: int,
    gpus: float,
    warned: bool,
) -> None:
    ray = SimpleNamespace(
        cluster_resources=lambda: {"CPU": 2.0} | ({"GPU": there} if there else {})
    )
    assert RayCluster(None, asked, Compute(device)).gpus(ray) == gpus
    assert ("no GPU now" in capsys.readouterr().err) == warned


def test_a_pool_has_the_gpus_that_the_device_names(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = len(slots_here(0))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert slots_here(None, "cuda") == ["0", "1", "2"]
    assert slots_here(0.5, "cuda:1") == ["1", "1"]
    assert slots_here(None, "cpu") == [""] * cores
    assert slots_here(0.25, "mps") == [None] * 4
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert slots_here(None, "cuda:1") == ["7"]


def test_workers_call_the_one_gpu_that_they_see_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "compute", lambda *_: None)
    executor = sweep.executor_for("local", device="cuda:1", precision="tf32")
    assert executor.of_a_worker() == Compute("cuda", "tf32")  # type: ignore[attr-defined]
    monkeypatch.setattr(cluster, "check_answers", lambda _: None)
    assert sweep.executor_for("ray", device="cuda") == RayCluster(None, None, Compute("cuda"))
