"""The plan of a campaign: operations are counted, made-up runs are real files, sums are right."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskhint.evaluation.results import find_results
from taskhint.sweeps.jobs import Job, undone
from taskhint.sweeps.status import status
from taskhint.sweeps.work import do
from tools.campaign_readings import MEASURED, campaign, small
from tools.campaign_tables import RUNS_PER_NODE, STORAGE_RATE, Costs, Plan
from tools.measure_campaign import heartbeat, leave_to_others, life, make_runs
from tools.storage_operations import counted


def test_operations_below_a_directory_are_counted(tmp_path: Path) -> None:
    root = tmp_path / "in"
    (tmp_path / "out").mkdir()
    root.mkdir()
    with counted(root) as found:
        (root / "a").mkdir()
        (root / "a" / "b").write_text("x")
        (tmp_path / "out" / "b").write_text("x")
        assert (root / "a" / "b").exists() and not (root / "inside").exists()
        assert (tmp_path / "out" / "b").exists()
        (root / "a" / "b").replace(root / "a" / "c")
        assert list((root / "a").iterdir()) == [root / "a" / "c"]
        with (root / "a" / "c").open("rb") as file:
            os.fsync(file.fileno())
        (root / "a" / "c").unlink()
        (root / "a").rmdir()
    expected = {"mkdir": 1, "open": 2, "stat": 2, "rename": 1, "list": 1, "fsync": 1, "remove": 2}
    assert dict(found) == expected
    (root / "later").mkdir()
    assert dict(found) == expected and os.stat.__module__ == "posix"


def test_a_longer_life_has_more_operations_and_a_heartbeat_three(tmp_path: Path) -> None:
    few = life(Job("few", small(1), MEASURED), tmp_path)
    many = life(Job("many", small(3), MEASURED), tmp_path)
    assert all(many[kind] >= few[kind] for kind in few) and many["fsync"] > few["fsync"] > 0
    assert heartbeat(tmp_path) == 3, "list, read, write"


def test_made_up_runs_are_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskhint.sweeps.status.WATCHED_FOR", 0.0)
    do(Job("first", small(), MEASURED), tmp_path)
    make_runs(tmp_path / "first", tmp_path / "many", 33)
    assert status(tmp_path / "many").count("done") == 33
    assert undone(campaign(33), tmp_path / "many") == []
    found = find_results(tmp_path / "many")
    assert len({one.recipe.fingerprint() for one in found}) == 33
    assert len({one.curves["uniform"][20].right for one in found}) > 20
    leave_to_others(tmp_path / "many")
    left = status(tmp_path / "many")
    assert (left.count("done"), left.count("waiting")) == (1, 32), "nobody is alive"


def test_the_plan_adds_up() -> None:
    costs = Costs(10_000, 0.1, operations=100, heartbeat=3, driver_rate=500, end_seconds=36)
    plan = Plan(costs, nodes=10)
    assert plan.at_once == 10 * RUNS_PER_NODE == 80
    assert plan.operations == 10_000 * 100 + 10_000 * 360 / 5 * 3
    assert plan.parts == pytest.approx(
        {
            "training": 125 * 0.1,
            "shared file system": 3_160_000 / STORAGE_RATE / 3600,
            "driver": 20 / 3600,
            "report": 0.01,
        }
    )
    assert plan.bottleneck == "training" and plan.hours == pytest.approx(12.51)
    wide = Plan(costs, nodes=5000)
    assert wide.at_once == 10_000 and wide.bottleneck == "shared file system"
    assert wide.hours == pytest.approx(3_160_000 / STORAGE_RATE / 3600 + 0.01)
