"""The report's page: on how many seeds its numbers stand, and what it says of a recipe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from taskhint.cli import main
from taskhint.evaluation.results import find_results
from taskhint.evaluation.summary import summarise
from taskhint.experiments.marker import Marker, write_marker
from taskhint.recipes import find_recipe
from taskhint.report.figures import curves_figure
from taskhint.report.page import describe, write_report
from taskhint.runs.curve import LengthCurve, Score, save_curve
from taskhint.system.files import json_bytes, write_atomically
from taskhint.tasks.task import SymbolTask, Task


def write_run(out: Path, seed: int, lengths: tuple[int, ...]) -> None:
    recipe = find_recipe("sort/standard").change(seed=seed)
    write_atomically(out / "recipe.json", json_bytes(recipe.to_json()))
    if lengths:
        scores = {n: Score(100, 50 + seed) for n in lengths}
        name, step = recipe.name, recipe.steps
        save_curve(out, LengthCurve(str(out), name, "sort", "uniform", seed, step, scores))


def test_lengths_of_fewer_seeds_are_marked_and_have_no_band(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path / f"seed-{seed}", seed, (5, 10) if seed else (5, 10, 20))
    page = write_report(tmp_path, tmp_path / "page.html").read_text()
    cells = re.findall(r"<td>(.*?)</td>", page)
    assert [cell.endswith("<small>1 seed</small>") for cell in cells[:4]].count(True) == 1
    assert "<small>1 seed</small>" in next(cell for cell in cells if cell.startswith("50.0"))
    assert "1–3" in cells
    (axes,) = curves_figure(summarise(find_results(tmp_path))).axes
    (band,) = axes.collections
    assert band.get_paths()[0].get_extents().x1 == 10
    assert np.asarray(axes.lines[0].get_xdata()).tolist() == [5, 10, 20]


def test_seeds_that_are_measured_alike_are_not_marked(tmp_path: Path) -> None:
    for seed in range(2):
        write_run(tmp_path / f"seed-{seed}", seed, (5, 10))
    page = write_report(tmp_path, tmp_path / "page.html").read_text()
    assert "seed</small>" not in page and "seeds</small>" not in page


@pytest.mark.parametrize("marked", [False, True])
def test_a_report_on_nothing_is_one_line(
    tmp_path: Path, marked: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run", 0, ())
    if marked:
        write_marker(tmp_path, Marker("pocket", ("hint",)))
    out = tmp_path / "page.html"
    assert main(["report", str(tmp_path), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert f"nothing is evaluated below {tmp_path} yet; taskhint evaluate RUN" in said
    assert said.count("\n") == 1 and not out.exists()


def test_a_task_without_inputs_is_described_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Task, "_members", dict(Task.kinds()))

    @dataclass(frozen=True)
    class Echo(SymbolTask):
        kind: ClassVar[str] = "echo-of-the-page"

        def solve(self, prompt: Sequence[int]) -> list[int]:
            return list(prompt[:-1])

    plain = find_recipe("sort/standard")
    assert "; inputs " in describe(plain)
    assert "inputs ;" not in describe(plain.change(task=Echo()))
