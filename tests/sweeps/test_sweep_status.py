"""`--status` beside workers of other machines: how long it waits, and for whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskhint.sweeps import jobs
from taskhint.sweeps import status as module
from taskhint.sweeps.jobs import Job, Measurement
from taskhint.sweeps.plan import write_plan
from taskhint.sweeps.status import WATCHED_FOR, status
from taskhint.system.lease import BEAT
from tests.runs.reliability import tiny

MEASURED = (Measurement("uniform", (2,), 5),)


class Clock:
    """Time that passes only while somebody sleeps; some workers' hearts beat with it."""

    def __init__(self, beating: dict[Path, float]) -> None:
        self.now, self.sleeps = 100.0, 0
        self._next = {path: 100.0 + first for path, first in beating.items()}

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.now += seconds
        for path, moment in self._next.items():
            if moment <= self.now:
                leased(path, int(self.now))
                self._next[path] = moment + BEAT


def leased(run: Path, count: int = 0) -> None:
    """As a process of another machine writes it."""
    run.mkdir(parents=True, exist_ok=True)
    about = '{"host": "far", "machine": "x", "pid": 1, "started": "1"}'
    (run / ".lease-00000001").write_text(f"{count:012d} {about}\n")


def swept(root: Path, many: int) -> list[Path]:
    runs = [root / f"r{number}" for number in range(many)]
    write_plan(root, [Job(run.name, tiny(), MEASURED) for run in runs])
    for run in runs:
        leased(run)
    return runs


@pytest.mark.parametrize("many", [1, 40])
def test_all_leases_are_watched_in_one_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    runs = swept(tmp_path, many)
    clock = Clock({run: BEAT * (n + 1) / many for n, run in enumerate(runs) if n % 2})
    monkeypatch.setattr(module, "time", clock)
    found = status(tmp_path)
    assert [run.state for run in found.runs] == [
        "running" if n % 2 else "waiting" for n in range(many)
    ]
    assert clock.now - 100 <= WATCHED_FOR + BEAT / 10 and clock.sleeps == 12


def test_where_all_hearts_beat_it_ends_with_the_last_first_beat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = swept(tmp_path, 4)
    clock = Clock({run: n + 1.0 for n, run in enumerate(runs)})
    monkeypatch.setattr(module, "time", clock)
    assert status(tmp_path).count("running") == 4
    assert clock.now - 100 == 4.0


def test_reading_results_is_part_of_the_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases are looked at before results are read, so that no time is spent twice."""
    runs = swept(tmp_path, 3)
    clock = Clock({runs[2]: 1.0})
    monkeypatch.setattr(module, "time", clock)
    plain = jobs.done

    def slow(*given: object) -> bool:
        clock.sleep(2.0)
        return plain(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "done", slow)
    assert [run.state for run in status(tmp_path).runs] == ["waiting", "waiting", "running"]
    assert clock.now - 100 <= WATCHED_FOR + BEAT / 10


def test_nobody_waits_for_leases_that_this_machine_can_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = swept(tmp_path, 1)
    (run / ".lease-00000001").write_text("free\n")
    clock = Clock({})
    monkeypatch.setattr(module, "time", clock)
    assert status(tmp_path).count("waiting") == 1 and clock.sleeps == 0
