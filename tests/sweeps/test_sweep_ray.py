"""A sweep on a real Ray cluster: two nodes on loopback, one of which dies, as a driver does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from taskhint.sweeps.status import status
from tests.runs.reliability import contents

HERE = Path(__file__).parents[2]
# Takes its time, and notes who makes the last update of a run.
SLOW = """
import os, time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
import taskhint as th

@dataclass(frozen=True)
class Slow(th.Alternate):
    kind: ClassVar[str] = "slow-in-a-test"

    def update(self, recipe, step):
        time.sleep(0.02)
        if step == recipe.steps - 1:
            with open({log!r}, "a") as file:
                file.write(f"{{recipe.learning_rate}} {{recipe.seed}}\\n")
        return super().update(recipe, step)

def slow():
    recipe = th.recipe("sort/standard").with_steps(45)
    small = recipe.change(width=16, mlp_width=16, heads=2, depth=1, batch_size=4, log_every=7)
    return small.change(curriculum=Slow(), checkpoint_every=5)
"""


def started(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE / 'src'}:{HERE}"}
    environment.pop("RAY_ADDRESS", None)
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Nodes:
    """A head and a second node, in a process of their own."""

    def __init__(self) -> None:
        self.process = started("tests.sweeps.ray_cluster")
        self.address = self._line()

    def kill_second(self) -> None:
        assert self.process.stdin is not None
        print("kill", file=self.process.stdin, flush=True)
        assert self._line() == "killed"

    def end(self) -> None:
        self.process.communicate(timeout=60)

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line, self.process.communicate()
        return line


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """A test that fails leaves no process behind."""
    yield
    while PROCESSES:
        process = PROCESSES.pop()
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    found = Nodes()
    yield found
    found.end()


PROCESSES: list[subprocess.Popen[str]] = []


def sweeping(mine: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    grid = ("--grid", "learning_rate=0.01,0.02,0.03,0.04", "--seeds", "2")
    words = ("--lengths", "2,3", "--examples", "20", "--out", str(out), *more)
    PROCESSES.append(started("taskhint", "sweep", f"{mine}:slow", *grid, *words))
    return PROCESSES[-1]


def until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    for _ in range(1200):
        if holds():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("it never happened")


def ended(process: subprocess.Popen[str]) -> str:
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "WARNING" not in errors and "Traceback" not in errors
    return said


def in_the_middle(out: Path) -> int:
    """How many runs are on their way: begun, and not so near the end that a death could come
    between the last update and its checkpoint.
    """
    if not (out / "sweep.json").exists():
        return 0
    return sum(run.state == "running" and 5 <= run.step <= 30 for run in status(out).runs)


def files(out: Path) -> dict[str, str]:
    """All that must be the same; of hidden files only this machine's locks and leases."""
    found = {**contents(out)}
    return {name: digest for name, digest in found.items() if "/." not in f"/{name}"}


ASKED = """
import taskhint as th

tiny = dict(batch_size=4, steps=3, warmup_steps=1, width=16, mlp_width=16, heads=2, depth=1)
PLAIN = th.Arm("plain", th.recipe("sort/standard").change(**tiny))
PANELS = (th.Panel(), th.Panel("min-finding"))
MINE = th.Experiment("mine", "?", (PLAIN,), (2, 3), PANELS, examples=5)
"""


def test_reproduce_runs_on_a_cluster(tmp_path: Path, nodes: Nodes) -> None:
    (tmp_path / "asked.py").write_text(ASKED)
    words = ("--seeds", "2", "--out", str(tmp_path / "out"), "--on", "ray")
    target = f"{tmp_path / 'asked.py'}:MINE"
    process = started("taskhint", "reproduce", target, *words, "--address", nodes.address)
    PROCESSES.append(process)
    said = ended(process)
    assert "2 runs, 0 of them done" in said and "(2 seeds, 5 to 200 test sequences" in said
    assert status(tmp_path / "out").count("done") == 2


def test_a_device_that_no_worker_has_ends_the_sweep_in_one_line(
    tmp_path: Path, nodes: Nodes
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(SLOW.format(log=str(tmp_path / "log")))
    more = ("--on", "ray", "--address", nodes.address, "--device", "mps")
    driver = sweeping(mine, tmp_path / "out", *more)
    _, errors = driver.communicate(timeout=120)
    assert driver.returncode == 2, errors
    assert "taskhint: error: node " in errors and "device mps is not there" in errors
    assert "Traceback" not in errors and not (tmp_path / "log").exists()


def test_a_signal_makes_workers_save_and_stop(tmp_path: Path, nodes: Nodes) -> None:
    mine, out = tmp_path / "mine.py", tmp_path / "out"
    mine.write_text(SLOW.format(log=str(tmp_path / "log")))
    driver = sweeping(mine, out, "--on", "ray", "--address", nodes.address)
    until(lambda: in_the_middle(out) == 3, driver)
    driver.send_signal(signal.SIGTERM)
    _, errors = driver.communicate(timeout=60)
    assert driver.returncode == 143, errors
    assert "taskhint: stopped by SIGTERM; every run is saved" in errors.splitlines()[-1]
    found = status(out)
    assert (found.count("running"), found.count("failed"), found.count("waiting")) == (0, 0, 8)
    saved = [(run.step, out / run.out / "metrics.jsonl") for run in found.runs if run.step]
    assert len(saved) == 3
    for step, metrics in saved:
        last = json.loads(metrics.read_text().splitlines()[-1])["step"]
        assert last == (step - 1) // 7 * 7, "no logged update was lost"


def test_deaths_of_a_node_and_a_driver_and_a_second_driver_change_no_byte(
    tmp_path: Path, nodes: Nodes
) -> None:
    log, mine = tmp_path / "log", tmp_path / "mine.py"
    mine.write_text(SLOW.format(log=str(log)))
    expected_table = ended(sweeping(mine, tmp_path / "local")).split("\n\n")[1]
    trained = Counter(log.read_text().splitlines())
    assert len(trained) == 8 and set(trained.values()) == {min(trained.values())}
    log.unlink()

    out = tmp_path / "ray"
    more = ("--on", "ray", "--address", nodes.address)
    first = sweeping(mine, out, *more)
    until(lambda: in_the_middle(out) == 3, first)
    nodes.kill_second()
    until(lambda: status(out).count("done") >= 3 and in_the_middle(out) == 1, first)
    assert status(out).count("done") < 8
    first.send_signal(signal.SIGKILL)
    first.communicate()
    drivers = [sweeping(mine, out, *more) for _ in range(2)]
    for driver in drivers:
        assert expected_table in ended(driver)
    assert files(out) == files(tmp_path / "local")
    assert Counter(log.read_text().splitlines()) == trained
