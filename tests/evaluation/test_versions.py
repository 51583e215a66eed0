"""Runs of different versions of a user's file are told of where they would be pooled."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskhint.cli import main
from tests.cli.test_own_files import FILE, forget
from tests.cli.test_own_files import own as own

SWEEP = ["sweep", "mine.py:small", "--lengths", "2", "--examples", "4", "--out", "swept"]


def warnings(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(list(words)) == 0
    lines = capsys.readouterr().err.splitlines()
    return [line for line in lines if "another version of" in line]


def test_a_sweep_and_an_evaluation_tell_of_another_version(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = "swept/small/seed-0"
    evaluate = ["evaluate", run, "--lengths", "3", "--examples", "4", "--import", "mine.py"]
    assert warnings(capsys, *SWEEP, "--seeds", "2") == []
    assert warnings(capsys, *SWEEP, "--seeds", "2") == []
    assert warnings(capsys, *evaluate) == []
    (own / "mine.py").write_text(FILE.replace("prompt[:-1]", "prompt[-2::-1]"))
    forget(monkeypatch)
    (said,) = warnings(capsys, *SWEEP, "--seeds", "3")
    assert "swept: 2 runs below it were made with another version of mine.py" in said
    assert "another --out, or removing the old ones, starts anew" in said
    (said,) = warnings(capsys, *evaluate)
    assert f"{run} was made with another version of mine.py" in said
    evaluate[1] = "swept/small/seed-2"
    assert warnings(capsys, *evaluate) == []


EXPERIMENT = """
from taskhint.experiments.arm import Arm
from taskhint.experiments.experiment import Experiment
MINE = Experiment("versions-of-a-test", "?", (Arm("plain", RECIPE),), (2,), examples=4)
"""


def test_an_experiment_tells_of_another_version(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "mine.py:MINE", "--seeds", "1", "--out", "out"]
    (own / "mine.py").write_text(FILE + EXPERIMENT)
    assert warnings(capsys, *words) == []
    (own / "mine.py").write_text(FILE + EXPERIMENT + "# changed\n")
    forget(monkeypatch)
    (said,) = warnings(capsys, *words)
    assert "out: 1 run below it was made with another version of mine.py" in said
