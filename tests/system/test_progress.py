"""Progress outside a terminal: a line at tenths of long work, nothing for short work."""

from __future__ import annotations

import queue
import threading

import pytest

from taskhint.sweeps.local import _watch
from taskhint.system.progress import QUIET_SECONDS, Progress


def printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pace: float
) -> list[str]:
    """What work of 100 steps prints that takes so many seconds per step."""
    clock = [0.0]
    monkeypatch.setattr("taskhint.system.progress.time.monotonic", lambda: clock[0])
    with Progress(100, "work") as bar:
        for done in range(1, 101):
            bar.advance_to(done)
            clock[0] += pace
    return capsys.readouterr().err.splitlines()


def test_short_work_is_quiet(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed(capsys, monkeypatch, pace=QUIET_SECONDS / 100) == []


def test_long_work_prints_a_line_per_tenth(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(capsys, monkeypatch, pace=2.0)
    assert [line.split()[1] for line in lines] == [f"{tenth}0/100" for tenth in range(1, 11)]
    assert all("0.5 step/s" in line for line in lines)
    assert lines[4].endswith("100 s left")  # 50 steps are left at 0.5 a second


def test_lines_keep_their_distance(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        len(printed(capsys, monkeypatch, pace=0.3)) == 2
    )  # half a minute, and the last line would come too soon


def test_steps_done_before_do_not_count_as_fast(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("taskhint.system.progress.time.monotonic", lambda: clock[0])
    reports = iter([(0, 21), (1, 41), (0, 30)])  # the runs go on from 20 and 40 of 50 steps

    class Reports:
        def get(self, timeout: float) -> tuple[int, int]:  # noqa: ARG002
            clock[0] += 10.0
            report = next(reports, None)
            if report is None:
                over.set()
                raise queue.Empty
            return report

    over = threading.Event()
    with Progress(100, "work") as bar:
        _watch(Reports(), bar, over)
    last = " ".join(capsys.readouterr().err.splitlines()[-1].split())
    assert last == "work: 71/100 0.5 step/s 64 s left"  # 9 steps in 20 seconds
