"""Trackers: told of what the files have, and unable to touch the training."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import taskhint as th
from taskhint.cli import main
from taskhint.runs import tracking
from taskhint.runs.tracker import find_tracker
from taskhint.system.errors import Interrupted
from taskhint.system.plugins import import_source
from taskhint.system.signals import ask_to_stop
from tests.conftest import small

OWN = '''
import json, os, signal, sys, time
from dataclasses import dataclass
from typing import ClassVar
import taskhint as th


@dataclass
class Notes(th.Tracker):
    kind: ClassVar[str] = "test-notes"

    def note(self, **values):
        with (self.run.path / "told.jsonl").open("a") as file:
            file.write(json.dumps(values) + "\\n")

    def start(self, run):
        self.run = run
        print("this is chatter")
        torch = "torch" in sys.modules
        self.note(start=run.step, id=run.id, name=run.name, settings=run.settings, torch=torch)

    def log(self, step, values):
        self.note(step=step, **values)

    def finish(self):
        self.note(finish=True)


@dataclass
class Fails(Notes):
    """Does something bad in one of its methods, and says there that it is about to."""

    kind: ClassVar[str] = "test-fails"
    how: str = "raise"
    at: str = "log"

    def fail(self, method):
        if method != self.at:
            return
        (self.run.path / "failing").write_text(str(os.getpid()))
        if self.how == "raise":
            raise ValueError("two\\nlines")
        elif self.how == "hang":
            time.sleep(3600)
        elif self.how == "exit":
            sys.exit(0)
        elif self.how == "crash":
            os.kill(os.getpid(), signal.SIGKILL)

    def start(self, run):
        super().start(run)
        self.fail("start")

    def log(self, step, values):
        self.fail("log")

    def finish(self):
        self.fail("finish")


@dataclass
class Missing(Notes):
    kind: ClassVar[str] = "test-missing"
    needs: ClassVar[str] = "no_such_package_of_a_test"
'''
RECIPE = small("sort/successor", log_every=4)


@pytest.fixture(scope="session")  # once a process: a kind is registered once
def own_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("own") / "trackers_of_a_test.py"
    file.write_text(OWN)
    return file


@pytest.fixture
def own(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, type[Any]]:
    """The classes of the file by their kind."""
    monkeypatch.setattr(th.Tracker, "patience", 300.0)  # however busy the machine
    import_source(str(own_file))
    return th.Tracker.kinds()


@pytest.fixture(scope="module")
def untracked(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Path:  # noqa: ARG001
    return th.train(RECIPE, tmp_path_factory.mktemp("runs") / "untracked").path


def essential(run: Path) -> dict[str, bytes]:
    """What a training is there for."""
    files = [run / "recipe.json", run / "metrics.jsonl", *run.glob("checkpoints/*/*")]
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


def told(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "told.jsonl").read_text().splitlines()]


def wait_for(path: Path) -> None:
    for _ in range(3000):
        if path.exists() and path.read_text():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} did not appear")


def expected(metrics: Path) -> list[dict[str, Any]]:
    """What a tracker should be told, from the file alone."""
    found = []
    for line in metrics.read_text().splitlines():
        of = json.loads(line)
        values = {f"{name}/{of['task']}": of[name] for name in ("loss", "gradient_norm")}
        found.append({"step": of["step"], **values, "learning_rate": of["learning_rate"]})
    return found


@pytest.mark.usefixtures("own")
def test_a_tracker_is_told_what_the_file_has(
    out: Path, untracked: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    th.train(RECIPE, out, track="test-notes")
    first, *lines, last = told(out)
    assert lines == expected(out / "metrics.jsonl") and len(lines) > 10
    assert (first["start"], first["name"], last) == (0, "run", {"finish": True})
    assert first["settings"]["model.width"] == 32 and first["settings"]["hints"] == "successor"
    assert not first["torch"], "its process is small"
    assert essential(out) == essential(untracked)
    said = capfd.readouterr()
    assert said.out == "" and said.err == "this is chatter\n"


@pytest.mark.parametrize("at", ["start", "log", "finish"])
@pytest.mark.parametrize("how", ["raise", "hang", "exit", "crash"])
def test_a_tracker_that_fails_changes_nothing(
    own: dict[str, Any],
    out: Path,
    untracked: Path,
    how: str,
    at: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def report(done: int, loss: float) -> None:  # noqa: ARG001
        if done == 10:  # the training goes on although it has failed
            wait_for(out / ("told.jsonl" if at == "finish" else "failing"))
            if how == "hang":
                monkeypatch.setattr(th.Tracker, "patience", 5.0 if at == "finish" else 0.5)

    th.train(RECIPE, out, report=report, track=own["test-fails"](how=how, at=at))
    assert essential(out) == essential(untracked)
    says = {"raise": "ValueError: two lines", "exit": "SystemExit: 0", "crash": "exit code -9"}
    _, warning = capfd.readouterr().err.splitlines()
    assert warning.startswith("taskhint: WARNING: tracker 'test-fails' ")
    assert says.get(how, "was stopped") in warning and "metrics.jsonl" in warning
    with pytest.raises(ProcessLookupError):
        os.kill(int((out / "failing").read_text()), 0)


@pytest.mark.usefixtures("own")
def test_a_tracker_without_its_package_is_told_of(
    out: Path, untracked: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    th.train(RECIPE, out, track="test-missing")
    assert essential(out) == essential(untracked)
    (warning,) = capfd.readouterr().err.splitlines()
    assert "pip install 'no_such_package_of_a_test'" in warning and "goes on" in warning


@pytest.mark.parametrize("name", ["wandb", "trackio", "tensorboard"])
def test_a_missing_package_of_ours_names_its_extra(
    name: str, out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    words = ["train", "sort/standard", "--out", str(out), "--steps", "1", "--track", name]
    sizes = ["model.width=16", "model.heads=1", "model.mlp_width=16", "batch_size=2"]
    assert main([*words, *(word for size in sizes for word in ("--set", size))]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "WARNING" in line]
    assert len(warnings) == 1 and f"pip install 'taskhint[{name}]'" in warnings[0]
    assert th.load(out).checkpoint.step == 1


def test_a_tracker_that_nobody_knows_is_refused(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "sort/standard", "--out", str(out), "--track"]
    assert main([*words, "wandbb"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "did you mean 'wandb'?" in said and not out.exists()
    with pytest.raises(th.UserError, match="must be a tracker"):
        find_tracker(3)  # type: ignore[arg-type]


def test_a_tracker_of_the_script_itself_is_refused(
    own: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own["test-notes"], "__module__", "__main__")
    with pytest.raises(th.UserError, match="a file or module of its own"):
        find_tracker("test-notes")


@pytest.mark.usefixtures("own")
def test_a_run_that_goes_on_goes_on_in_its_tracker(out: Path, untracked: Path) -> None:
    def stop(done: int, loss: float) -> None:  # noqa: ARG001
        if done == 17:
            ask_to_stop(signal.SIGINT)

    with pytest.raises(Interrupted):
        th.train(RECIPE, out, report=stop, track="test-notes")
    th.train(RECIPE, out, track="test-notes")
    first, second = (one for one in told(out) if "start" in one)
    assert (first["start"], second["start"]) == (0, 18) and first["id"] == second["id"]
    assert [one for one in told(out) if "step" in one] == expected(out / "metrics.jsonl")
    assert [one for one in told(out) if "finish" in one] == [{"finish": True}] * 2
    assert (out / "metrics.jsonl").read_bytes() == (untracked / "metrics.jsonl").read_bytes()
    before = (out / "told.jsonl").read_bytes()
    th.train(RECIPE, out, track="test-notes")  # which is done already
    assert (out / "told.jsonl").read_bytes() == before


def test_runs_have_ids_of_their_own(tmp_path: Path) -> None:
    other = RECIPE.change(seed=1)
    places = [(tmp_path / "a", RECIPE), (tmp_path / "b", RECIPE), (tmp_path / "a", other)]
    assert len({tracking._id(*place) for place in places}) == 3
    storage = RECIPE.change(keep_checkpoints=7)
    assert tracking._id(tmp_path / "a", storage) == tracking._id(*places[0])


def test_only_who_writes_metrics_is_tracked(
    own: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the processes that torchrun starts, the first alone has a file of metrics."""
    monkeypatch.setattr(subprocess, "Popen", None)
    with tracking.tracking(own["test-notes"](), tmp_path, RECIPE, None, 0):
        pass


KILLED = """
import os, signal, sys, time
from pathlib import Path
import taskhint as th
from taskhint.system.plugins import import_source
from tests.runs.test_tracking import RECIPE, wait_for

def report(done, loss):
    if done == 12:
        wait_for(Path(sys.argv[2]) / "told.jsonl")
        os.kill(os.getpid(), signal.SIGKILL)

import_source(sys.argv[1])
th.train(RECIPE, sys.argv[2], report=report, track="test-notes")
"""


def test_a_tracker_outlives_a_killed_training_by_a_moment(own_file: Path, out: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(own_file), str(out)]
    done = subprocess.run(command, stderr=subprocess.PIPE)  # ends when all have closed it
    assert done.returncode == -signal.SIGKILL
    _, *lines, last = told(out)
    assert last == {"finish": True}
    assert lines == expected(out / "metrics.jsonl") and lines[-1]["step"] == 9


WANDB = """
import json, os

def note(*call):
    with open(os.environ["CALLS"], "a") as file:
        file.write(json.dumps(call) + "\\n")

class Run:
    def log(self, data, step=None, commit=None):
        note("log", data, step)
    def finish(self, exit_code=None, quiet=None):
        note("finish")

def init(entity=None, project=None, dir=None, id=None, name=None, notes=None, tags=None,
         config=None, group=None, job_type=None, mode=None, reinit=None, resume=None,
         settings=None):
    assert resume in ("allow", "never", "must", "auto", None)
    note("init", {"project": project, "id": id, "name": name, "config": config})
    return Run()
"""
TRACKIO = """
from wandb import note

class Run:
    def log(self, metrics, step=None):
        note("log", metrics, step)
    def finish(self):
        note("finish")

def init(project, name=None, group=None, space_id=None, config=None, resume="never",
         settings=None, private=None, embed=True):
    assert resume in ("must", "allow", "never")
    note("init", {"project": project, "name": name, "config": config})
    return Run()
"""


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_libraries_with_the_calls_of_wandb(
    own: dict[str, Any], out: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules with the signatures that their documentation gives, in the tracker's process."""
    for module, text in (("wandb", WANDB), ("trackio", TRACKIO)):
        (tmp_path / "fake" / f"{module}.py").parent.mkdir(exist_ok=True)
        (tmp_path / "fake" / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "fake")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    th.train(RECIPE, out, track=own[name](project="mine"))
    (_, about), *logged, last = map(json.loads, (tmp_path / "calls").read_text().splitlines())
    assert about["project"] == "mine" and about["name"].startswith("run")
    assert about["config"]["optimiser.weight_decay"] == RECIPE.optimiser.weight_decay  # type: ignore[attr-defined]
    assert [{"step": step, **values} for _, values, step in logged] == expected(
        out / "metrics.jsonl"
    )
    assert last == ["finish"]


@pytest.mark.usefixtures("own")
def test_tensorboard_shows_what_the_file_has(
    out: Path, untracked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskhint.system.signals.PATIENCE", 600.0)  # its start can take long
    reading: Any = import_module("tensorboard.backend.event_processing.event_accumulator")

    def stop(done: int, loss: float) -> None:  # noqa: ARG001
        if done == 17:
            ask_to_stop(signal.SIGINT)

    with pytest.raises(Interrupted):
        th.train(RECIPE, out, report=stop, track="tensorboard")
    th.train(RECIPE, out, track="tensorboard")
    events = reading.EventAccumulator(str(out / "tensorboard"))
    events.Reload()
    for metric in ("loss/sort", "loss/successor", "gradient_norm/sort", "learning_rate"):
        shown = {event.step: event.value for event in events.Scalars(metric)}
        wanted = {one["step"]: one[metric] for one in expected(out / "metrics.jsonl")
                  if metric in one}  # fmt: skip
        assert shown == pytest.approx(wanted) and len(wanted) >= 9
    assert essential(out)["metrics.jsonl"] == essential(untracked)["metrics.jsonl"]
