"""Signals, locks and sweeps, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from taskhint.cli import main
from taskhint.runs.run import load
from tests.runs.reliability import command, contents, tiny

HERE = Path(__file__).parents[2]
LONG = tiny(steps=100_000, checkpoint_every=50_000, log_every=1)
JOBS = """
from pathlib import Path
from taskhint.cli import main
from taskhint.cli import demo
from tests.runs.reliability import tiny
import sys

if __name__ == "__main__":
    out, steps = Path(sys.argv[1]), int(sys.argv[2])
    demo.recipes = lambda: {
        name: tiny(steps=steps, checkpoint_every=50_000, seed=seed)
        for seed, name in enumerate("abc")
    }
    demo.MEASUREMENTS = ()
    demo._curve = lambda run: None
    demo.what_is_seen = lambda curves: ""
    demo.summarise = lambda out: []
    demo.write_report = lambda directory, out: out
    sys.exit(main(["demo", "--out", str(out)]))
"""


def started(*arguments: str, group: bool = False) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    program = [sys.executable, *arguments]
    return subprocess.Popen(
        program,
        cwd=HERE,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=group,
    )


def training(out: Path) -> subprocess.Popen[str]:
    process = started("-m", "taskhint", *command(out, LONG))
    until(lambda: holder(out) == process.pid and lines(out) > 5, process)
    return process


def holder(run: Path) -> int:
    """The process that the lock file names."""
    path = run / ".lock"
    return int((path.read_text() if path.exists() else "") or 0)


def lines(run: Path) -> int:
    """How many updates are logged."""
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def until(holds: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    for _ in range(1200):
        if holds():
            return
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.1)
    raise AssertionError("it never happened")


def alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_step_saves_and_says_how_to_go_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = training(tmp_path / "run")
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode in (-number, 128 + number)  # whichever thread was first
    step = load(tmp_path / "run").checkpoint.step
    assert lines(tmp_path / "run") == step
    assert (
        f"stopped by {number.name} and saved at step {step} of 100000" in errors
        and "same command" in errors
    )
    assert "Traceback" not in errors


def test_a_run_stopped_by_a_signal_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    recipe = tiny(steps=150, checkpoint_every=150)
    arguments = [*command(tmp_path / "run", recipe), "--set", "keep_checkpoints=1"]
    process = started("-m", "taskhint", *arguments)
    until(lambda: lines(tmp_path / "run") > 5, process)
    process.terminate()
    process.communicate()
    assert process.returncode == 143
    assert main([*arguments, "--threads", "1"]) == 0
    whole = [*command(tmp_path / "whole", recipe), "--set", "keep_checkpoints=1", "--threads", "1"]
    assert main(whole) == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


SLOW_SAVE = """
import sys, time, taskhint.training.loop
from taskhint.cli import main
taskhint.training.loop.save_checkpoint = lambda *rest: time.sleep(600)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_stops_at_once_without_harm(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = started("-c", SLOW_SAVE, *command(tmp_path / "run", LONG))
    assert process.stderr is not None
    until(lambda: lines(tmp_path / "run") > 5, process)
    process.send_signal(number)
    assert any("a second one stops at once" in line for line in process.stderr)
    process.send_signal(number)
    process.communicate()
    assert process.returncode in (-number, 128 + number)  # whichever thread was first
    again = training(tmp_path / "run")  # nobody holds the lock, and the run begins again
    again.kill()
    again.communicate()


def test_a_second_process_is_refused_and_a_dead_one_holds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = training(tmp_path / "run")
    assert main(command(tmp_path / "run", LONG)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"is in use by process {first.pid}" in line
    assert first.poll() is None
    first.kill()
    first.communicate()
    second = training(tmp_path / "run")
    second.terminate()
    second.communicate()
    assert second.returncode == 143


def jobs(tmp_path: Path, steps: int) -> tuple[subprocess.Popen[str], list[int]]:
    """A sweep of three runs on two workers, and the numbers of the two that are training."""
    (tmp_path / "jobs.py").write_text(JOBS)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE / 'src'}:{HERE}"}
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "jobs.py"), str(tmp_path / "out"), str(steps)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(lambda: min(lines(tmp_path / "out" / name) for name in "ab") > 5, process)
    return process, [holder(tmp_path / "out" / name) for name in "ab"]


@pytest.mark.parametrize("to_all", [True, False])
def test_a_sweep_stops_cleanly(tmp_path: Path, to_all: bool) -> None:
    """Ctrl-C reaches every process of the terminal; SIGTERM only the one it is sent to."""
    process, workers = jobs(tmp_path, 100_000)
    number = signal.SIGINT if to_all else signal.SIGTERM
    if to_all:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == 128 + number, errors
    assert errors.splitlines()[-1].startswith(
        f"taskhint: stopped by {number.name}; every run is saved"
    )
    assert "Traceback" not in errors
    assert not any(alive(worker) for worker in workers)
    for name in "ab":
        run = load(tmp_path / "out" / name)
        assert run.checkpoint.step == lines(run.path) > 5
    assert not (tmp_path / "out" / "c").exists()


def test_when_a_sweep_is_killed_its_workers_end_too(tmp_path: Path) -> None:
    process, workers = jobs(tmp_path, 100_000)
    process.kill()
    process.communicate()
    until(lambda: not any(alive(worker) for worker in workers))


def test_a_killed_worker_ends_the_sweep_with_one_line_and_the_others_save(tmp_path: Path) -> None:
    process, workers = jobs(tmp_path, 100_000)
    os.kill(workers[0], signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == 3, errors
    assert (
        errors.splitlines()[-1]
        == "taskhint: error: a worker process was killed; the same command goes on"
    )
    assert load(tmp_path / "out" / "b").checkpoint.step > 5
