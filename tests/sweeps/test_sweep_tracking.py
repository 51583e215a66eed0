"""Trackers of sweeps: every worker has one, here and elsewhere, and none stops anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import taskhint
from taskhint.cli import main
from taskhint.runs.tracker import TensorBoard
from taskhint.sweeps import remote
from taskhint.sweeps.jobs import Job, Measurement
from taskhint.system.plugins import import_source
from tests.runs.reliability import contents, tiny
from tests.runs.test_tracking import expected

OWN = """
import json, os, signal
from dataclasses import dataclass
from typing import ClassVar
import taskhint as th


@dataclass
class Notes(th.Tracker):
    kind: ClassVar[str] = "test-sweep-notes"
    patience: ClassVar[float] = 300.0  # however busy the machine
    crash: bool = False

    def note(self, **values):
        with (self.run.path / ".told.jsonl").open("a") as file:
            file.write(json.dumps(values) + "\\n")

    def start(self, run):
        self.run = run
        self.note(name=run.name, width=run.settings["model.width"])
        if self.crash:
            os.kill(os.getpid(), signal.SIGKILL)

    def log(self, step, values):
        self.note(step=step, **values)

    def finish(self):
        pass


@dataclass
class Missing(Notes):
    kind: ClassVar[str] = "test-sweep-missing"
    needs: ClassVar[str] = "no_such_package_of_a_test"
"""
RECIPE = tiny(steps=4, warmup_steps=0)
ASKED: dict[str, Any] = {"seeds": 2, "lengths": [2], "examples": 5, "device": "cpu"}


@pytest.fixture(scope="session")  # once a process: a kind is registered once
def own_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("own") / "trackers_of_a_sweep.py"
    file.write_text(OWN)
    return file


@pytest.fixture(scope="module")
def untracked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("untracked")
    taskhint.sweep(RECIPE, out, **ASKED)
    return essential(out)


def essential(out: Path) -> dict[str, str]:
    """What a sweep is there for: runs, results and the table, without the files of trackers."""
    return {name: data for name, data in contents(out).items() if "told" not in name}


def told(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / ".told.jsonl").read_text().splitlines()]


def test_every_run_of_a_sweep_is_tracked(
    tmp_path: Path, own_file: Path, untracked: dict[str, str]
) -> None:
    import_source(str(own_file))
    taskhint.sweep(RECIPE, tmp_path, track="test-sweep-notes", **ASKED)
    assert essential(tmp_path) == untracked
    runs = sorted(path.parent for path in tmp_path.rglob("recipe.json"))
    for seed, run in enumerate(runs):
        first, *lines = told(run)
        assert first == {"name": f"{run.parent.name}-seed-{seed}", "width": RECIPE.model.width}
        assert lines == expected(run / "metrics.jsonl") and len(lines) == RECIPE.steps


def test_a_tracker_that_crashes_stops_no_sweep(
    tmp_path: Path,
    own_file: Path,
    untracked: dict[str, str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    kind: Any = import_source(str(own_file)).Notes
    swept = taskhint.sweep(RECIPE, tmp_path, track=kind(crash=True), **ASKED)
    assert len(swept.rows()) == 1 and essential(tmp_path) == untracked
    assert capfd.readouterr().err.count("ended with exit code -9") == ASKED["seeds"]


def test_a_missing_package_is_told_once(
    tmp_path: Path,
    own_file: Path,
    untracked: dict[str, str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    import_source(str(own_file))
    taskhint.sweep(RECIPE, tmp_path, track="test-sweep-missing", **ASKED)
    assert capfd.readouterr().err.count("needs no_such_package_of_a_test") == 1
    assert essential(tmp_path) == untracked


@pytest.mark.parametrize("command", ["sweep sort/standard --lengths 3", "demo", "reproduce hint"])
@pytest.mark.parametrize("where", ["local", "ray"])
def test_an_unknown_tracker_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, where: str
) -> None:
    words = ["--out", str(tmp_path / "out"), "--on", where, "--track", "tensorbord"]
    assert main([*command.split(), *words]) == 2
    said = capsys.readouterr().err
    assert "did you mean 'tensorboard'?" in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_worker_elsewhere_has_the_tracker_of_the_users_file(
    tmp_path: Path, own_file: Path
) -> None:
    """In a process of its own, which knows nothing but what it is told."""
    kind: Any = import_source(str(own_file)).Notes
    given = remote.order(tmp_path, 0.0, track=kind())
    job = Job("plain/seed-3", RECIPE, (Measurement("uniform", (2,), 5),))
    ask = "import sys; from taskhint.sweeps.remote import work; print(work(*sys.argv[1:]))"
    words = [sys.executable, "-c", ask, given, json.dumps(job.to_json())]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(done.stdout.splitlines()[-1])["state"] == "done", done.stdout
    first, *lines = told(tmp_path / job.out)
    assert first["name"] == "plain-seed-3"
    assert lines == expected(tmp_path / job.out / "metrics.jsonl")


def test_settings_of_a_tracker_reach_the_workers(tmp_path: Path) -> None:
    assert json.loads(remote.order(tmp_path, 0.0))["track"] is None
    assert json.loads(remote.order(tmp_path, 0.0, track=TensorBoard()))["track"] == {
        "kind": "tensorboard"
    }
