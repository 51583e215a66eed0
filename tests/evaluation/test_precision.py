"""What was measured with another precision than float32 says so, and stands apart: in files,
tables, figures and reports.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import taskhint
from taskhint.cli import main
from taskhint.cli.reproduce import reproduce
from taskhint.evaluation.results import find_results
from taskhint.evaluation.summary import series_table, summarise
from taskhint.experiments import EXPERIMENTS
from taskhint.experiments.arm import Arm
from taskhint.experiments.experiment import Experiment, Panel
from taskhint.experiments.quantity import MinFinding
from taskhint.probe.mechanisms import keep_mechanisms
from taskhint.report.figures import curves_figure
from taskhint.runs.curve import LengthCurve, Score, load_curves, save_curve
from taskhint.runs.reach import load_reaches
from taskhint.runs.run import Run
from taskhint.runs.shares import load_shares
from taskhint.sweeps.local import LocalPool
from taskhint.sweeps.status import status
from taskhint.system.devices import Compute
from taskhint.system.errors import UserError
from taskhint.training.loop import train
from tests.runs.reliability import tiny
from tools.pack_results import pack

ASKED: dict[str, Any] = {"seeds": 1, "lengths": [2, 3], "device": "cpu"}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return train(tiny(steps=2, warmup_steps=0), tmp_path / "runs" / "a", device="cpu")


def written(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*.json")}


def told(run: Run, precision: str, right: int, step: int = 2) -> LengthCurve:
    """A curve as it might have been measured."""
    about = (str(run.path), run.recipe.name, "sort", "uniform", run.recipe.seed, step)
    return LengthCurve(*about, {2: Score(100, right)}, precision)


def test_a_measurement_says_its_precision_and_leaves_that_of_another_alone(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["evaluate", str(run.path), "--lengths", "2,3", "--examples", "20", "--device", "cpu"]
    assert main(asked) == 0
    plain = written(run.path)
    assert "measured in" not in capsys.readouterr().out
    assert "precision" not in json.loads(plain["evaluations/step-00000002/uniform.json"])
    assert main([*asked, "--precision", "bfloat16", "--lengths", "3,4"]) == 0
    assert "uniform sequences, measured in bfloat16\n" in capsys.readouterr().out
    new = {name: data for name, data in written(run.path).items() if name not in plain}
    assert {name: written(run.path)[name] for name in plain} == plain
    ((name, data),) = new.items()
    assert name == "bfloat16/evaluations/step-00000002/uniform.json"
    assert json.loads(data)["precision"] == "bfloat16"
    assert list(json.loads(data)["lengths"]) == ["3", "4"]
    assert main([*asked, "--precision", "bfloat16", "--json", "--no-save"]) == 0
    assert json.loads(capsys.readouterr().out)["precision"] == "bfloat16"


def test_a_run_shows_the_curves_of_its_own_precision(run: Run) -> None:
    taskhint.evaluate(run.path, [2], examples=10)
    taskhint.evaluate(run.path, [3], examples=10, precision="bfloat16")
    assert list(taskhint.load(run.path).curves["uniform"].scores) == [2]
    other = taskhint.load(run.path, "cpu", "bfloat16").curves["uniform"]
    assert list(other.scores) == [3] and other.precision == "bfloat16"
    assert list(other.to_frame()["precision"]) == ["bfloat16"]


def test_reach_and_mechanisms_stand_apart_too(run: Run) -> None:
    other = run.path / "bfloat16"
    taskhint.reach(run.path, 0.5, 3, 10, device="cpu", precision="bfloat16")
    keep_mechanisms(run.to("cpu", "bfloat16"), [3], 10)
    assert load_reaches(other).at(0.5) is not None and load_shares(other).shares
    assert not load_reaches(run.path).found and not load_shares(run.path).shares


def test_curves_of_two_precisions_are_never_put_together(run: Run) -> None:
    with pytest.raises(UserError, match="measured in float32, not in bfloat16"):
        told(run, "bfloat16", 1).merged(told(run, "float32", 1))
    save_curve(run.path, told(run, "bfloat16", 1))
    (run.path / "bfloat16" / "evaluations").rename(run.path / "evaluations")
    with pytest.raises(UserError, match="was measured in bfloat16; here belongs float32"):
        load_curves(run.path)
    with pytest.raises(UserError, match="precision 'half' is not known"):
        told(run, "half", 1)


def test_tables_figures_and_reports_name_the_precision(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for precision, right in (("float32", 90), ("bfloat16", 40)):
        save_curve(run.path, told(run, precision, right))
    series = summarise(find_results(tmp_path))
    name = run.recipe.name
    assert {one.label: one.points[2].accuracy.mean for one in series} == {
        name: 0.9,
        f"{name}, in bfloat16": 0.4,
    }
    assert f"{name}, in bfloat16  40.0" in series_table(series)
    (axes,) = curves_figure(series).axes
    lines = axes.get_legend_handles_labels()[1]
    assert lines[:2] == [name, f"{name}, in bfloat16"]
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "runs"), "--out", str(page)]) == 0
    assert f"{name}, in bfloat16" in page.read_text()
    capsys.readouterr()
    assert main(["results", str(tmp_path / "runs"), "--to", "-"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(row["precision"], row["right"]) for row in rows] == [
        ("float32", "90"),
        ("bfloat16", "40"),
    ]


def test_of_every_precision_the_newest_evaluated_checkpoint_counts(run: Run) -> None:
    save_curve(run.path, told(run, "float32", 10, step=1))
    save_curve(run.path, told(run, "float32", 20, step=2))
    save_curve(run.path, told(run, "bfloat16", 30, step=1))
    newest = find_results(run.path.parent)
    assert [(one.precision, one.step) for one in newest] == [("float32", 2), ("bfloat16", 1)]
    every = find_results(run.path.parent, all_steps=True)
    assert [(one.precision, one.step) for one in every] == [
        ("float32", 1),
        ("float32", 2),
        ("bfloat16", 1),
    ]


def test_packed_results_keep_their_precision(run: Run, tmp_path: Path) -> None:
    save_curve(run.path, told(run, "float32", 90))
    save_curve(run.path, told(run, "bfloat16", 40))
    for _ in range(2):  # packing again changes nothing
        files = pack(run.path.parent, tmp_path / "packed")
        assert [path.name for path in files] == ["a.runs.json", "a-bfloat16.runs.json"]
        found = {one.precision: one.curves["uniform"] for one in find_results(tmp_path / "packed")}
        assert {precision: curve[2].right for precision, curve in found.items()} == {
            "float32": 90,
            "bfloat16": 40,
        }
        assert {precision: curve.precision for precision, curve in found.items()} == {
            "float32": "float32",
            "bfloat16": "bfloat16",
        }


def test_a_probe_names_the_precision(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["probe", str(run.path), "--lengths", "3", "--examples", "4", "--probe", "mechanisms"]
    for more, says in ([], False), (["--precision", "bfloat16"], True):
        out = tmp_path / "-".join(["out", *more])
        assert main([*asked, "--device", "cpu", "--out", str(out), *more]) == 0
        page, numbers = (out / "index.html").read_text(), next(out.glob("*/probe.json"))
        assert ("measured in bfloat16" in page) == says
        assert json.loads(numbers.read_text()).get("precision") == ("bfloat16" if says else None)
        assert ("measured in bfloat16" in capsys.readouterr().out) == says


def test_a_sweep_measures_again_with_another_precision(tmp_path: Path) -> None:
    recipe = tiny(steps=2, warmup_steps=0)
    for precision, examples in (("float32", 30), ("bfloat16", 20)):
        taskhint.sweep(recipe, tmp_path, examples=examples, precision=precision, **ASKED)
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [(row["recipe"], row["precision"], row["sequences"]) for row in rows] == [
        *[(recipe.name, "float32", "30")] * 2,
        *[(f"{recipe.name}, in bfloat16", "bfloat16", "20")] * 2,
    ]
    found = status(tmp_path)
    assert [run.state for run in found.runs] == ["done", "done"]
    before = written(tmp_path)
    taskhint.sweep(recipe, tmp_path, examples=20, precision="bfloat16", **ASKED)
    assert written(tmp_path) == before, "nothing is measured twice"


def test_an_experiment_has_one_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = Arm("plain", tiny(steps=2, warmup_steps=0))
    one = Experiment("one", "?", (arm,), [3], panels=(Panel(), Panel(MinFinding())), examples=10)
    monkeypatch.setitem(EXPERIMENTS, "one", one)
    reproduce([one], "pocket", 1, tmp_path, LocalPool(at=Compute("cpu", "bfloat16")))
    assert "Measured in bfloat16." in (tmp_path / "one.html").read_text()
    with pytest.raises(UserError, match="holds experiments measured in bfloat16, not in float32"):
        reproduce([one], "pocket", 1, tmp_path, LocalPool(at=Compute("cpu")))
