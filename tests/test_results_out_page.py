"""docs/results-out.md: its commands and its Python, in an empty directory."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import taskhint as th
from taskhint.cli import main
from taskhint.runs.tracker import OURS

PAGE = (Path(__file__).parents[1] / "docs" / "results-out.md").read_text()
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```", PAGE, re.DOTALL)
SMALL = "--set model.width=16 --set model.heads=1 --set model.mlp_width=16 --set batch_size=4"


def test_the_page_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(th.Tracker, "patience", 300.0)  # however busy the machine
    for language, text in BLOCKS:
        if "class Notes" in text:
            Path("my_tracker.py").write_text(text)
        elif language == "python":
            Path("program.py").write_text(text)
            runpy.run_path("program.py")
            assert "model.width  length" in capfd.readouterr().out
        for line in text.splitlines() if language == "bash" else ():
            name, *words = line.split()
            small = SMALL.split() if words[0] in ("train", "sweep") else []
            assert name == "taskhint" and main([*words, *small]) == 0, line
            if words[0] == "sweep":
                capfd.readouterr()  # its workers do not have the patience of this test
    assert "WARNING" not in capfd.readouterr().err
    assert Path("table.parquet").read_bytes().startswith(b"PAR1")
    assert list(Path("runs/tracked/tensorboard").iterdir())
    first, second, *_ = Path("runs/noted/notes.txt").read_text().splitlines()
    assert first == "sort/tempered from step 0" and second.startswith("0 {'loss/sort': ")


def test_the_page_has_every_tracker() -> None:
    named = re.findall(r"^\| `(\w+)` \| `pip install 'taskhint\[(\w+)\]'`", PAGE, re.MULTILINE)
    assert sorted(named) == sorted((one.kind, one.needs) for one in OURS)
