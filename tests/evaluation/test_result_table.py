"""The numbers of runs as one table: as the files have them, for any tool, without torch."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import taskhint as th
from taskhint.cli import main
from taskhint.evaluation.table import FIRST, ResultTable
from taskhint.recipes import recipe_names
from taskhint.runs.curve import LengthCurve, Score, save_curve
from taskhint.system.dotted import flat_settings
from taskhint.system.files import json_bytes

pandas: Any = import_module("pandas")  # which has no types of its own
RESULTS = Path(__file__).parents[2] / "results"
BEST = RESULTS / "reproduce" / "sort-best.runs.json"


def write_run(path: Path, name: str = "sort/successor", step: int = 30, **changes: Any) -> Path:
    """A run that was evaluated at two lengths of one distribution."""
    recipe = th.recipe(name).change(**changes)
    path.mkdir(parents=True, exist_ok=True)
    (path / "recipe.json").write_bytes(json_bytes(recipe.to_json()))
    about = (str(path), recipe.name, recipe.task.kind, "uniform", recipe.seed, step)
    save_curve(path, LengthCurve(*about, {20: Score(50, 40), 30: Score(50, step, 0.5)}))
    return path


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_evaluation_of_a_run_is_a_row(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a" / "deep", seed=7, width=64)
    first, second = th.results(tmp_path)
    assert first["run"] == str(run) and first["recipe"] == "sort/successor"
    assert [first[name] for name in ("seed", "step", "length", "right")] == [7, 30, 20, 40]
    assert (first["accuracy"], first["edit_distance"]) == (0.8, None)
    assert (second["length"], second["right"], second["edit_distance"]) == (30, 30, 0.5)
    z, n, share = 1.959964, 50, 0.8  # Wilson's formula, written out
    middle, spread = share + z * z / (2 * n), math.sqrt(share * 0.2 / n + (z / (2 * n)) ** 2)
    for name, sign in (("low", -1), ("high", 1)):
        assert first[name] == pytest.approx((middle + sign * z * spread) / (1 + z * z / n))
    assert first["model.width"] == 64 and first["task"] == "sort"
    assert first["hints"] == "successor" and first["hints.successor.updates"] == 1
    assert first["task.lengths.longest"] == 20 and first["model.qk_norm"] is False


def test_packed_results_are_told_as_their_file_has_them() -> None:
    table = th.results(BEST)
    kept = json.loads(BEST.read_text())
    counts = {
        (f"{BEST}#{seed}", int(seed), name, int(length)): (score["right"], score["examples"])
        for seed, one in kept["seeds"].items()
        for name, scores in one["curves"].items()
        for length, score in scores.items()
    }
    assert len(table) == len(counts) > 100
    for row in table:
        key = row["run"], row["seed"], row["distribution"], row["length"]
        assert counts.pop(key) == (row["right"], row["examples"])  # type: ignore[arg-type]
        assert row["optimiser.weight_decay"] == kept["recipe"]["optimiser"]["weight_decay"]
    assert not counts


@pytest.mark.parametrize("name", recipe_names())
def test_columns_are_named_as_settings_are_set(name: str) -> None:
    recipe = th.recipe(name)
    told = {key: value for key, value in flat_settings(recipe).items() if value is not None}
    told.pop("hints")
    other = recipe.change(seed=9, width=32, dataset_size=99, main_updates=5)
    assert other.with_settings(f"{key}={value}" for key, value in told.items()) == recipe


def test_csv_parquet_and_frames_hold_the_same(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "a")
    write_run(tmp_path / "runs" / "b", "increment/best", seed=1)
    table = th.results(tmp_path / "runs")
    parquet = pandas.read_parquet(table.write(tmp_path / "deep" / "table.parquet"))
    lines = read_csv(table.write(tmp_path / "table.CSV").read_text())
    frame = table.to_frame()
    assert list(frame.columns) == list(parquet.columns) == list(lines[0]) == list(table.columns)
    assert list(table.columns)[: len(FIRST)] == list(FIRST)
    for number, row in enumerate(table):
        assert {name: text or None for name, text in lines[number].items()} == {
            name: None if value in (None, "") else str(value) for name, value in row.items()
        }
        for name, value in row.items():
            for cell in (parquet[name][number], frame[name][number]):
                assert pandas.isna(cell) if value is None else cell == value, name


def test_a_column_has_one_type(tmp_path: Path) -> None:
    """Two classes can have settings of one name and of different types."""
    from taskhint.evaluation.table import _one_type

    assert _one_type([1, None, 2.5]) == [1.0, None, 2.5]
    assert _one_type([1, True, "a", None]) == ["1", "True", "a", None]
    assert _one_type([3, 1 << 70]) == ["3", str(1 << 70)]
    assert _one_type([None, None]) == [None, None]
    odd = ResultTable({"run": ["a", "b"], "odd": _one_type([1, "x"])})
    assert list(pandas.read_parquet(odd.write(tmp_path / "odd.parquet"))["odd"]) == ["1", "x"]


def test_what_cannot_be_read_is_skipped_with_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "good")
    (write_run(tmp_path / "bad") / "recipe.json").write_text("{")
    assert main(["results", str(tmp_path), "--to", "-"]) == 0
    said = capsys.readouterr()
    assert [row["run"] for row in read_csv(said.out)] == [str(tmp_path / "good")] * 2
    (line,) = said.err.splitlines()
    assert "WARNING" in line and "bad/recipe.json is damaged" in line and "skipped" in line


def test_a_run_counts_once_however_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "runs" / "a")
    shutil.copytree(tmp_path / "runs" / "a", tmp_path / "runs" / "copy")
    monkeypatch.chdir(tmp_path)
    table = th.results("runs", "runs/a", tmp_path / "runs")
    assert [row["run"] for row in table] == ["runs/a"] * 2 + ["runs/copy"] * 2


def test_older_checkpoints_are_told_on_request(tmp_path: Path) -> None:
    for step in (10, 30):
        write_run(tmp_path / "run", step=step)
    assert [row["step"] for row in th.results(tmp_path)] == [30, 30]
    told = [(row["step"], row["right"]) for row in th.results(tmp_path, all_steps=True)]
    assert told == [(10, 40), (10, 10), (30, 40), (30, 30)]


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("table.xlsx", "a file that ends in .csv or .parquet"),
        ("table", "a file that ends in .csv or .parquet"),
        ("empty.csv", "holds no run"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], to: str, says: str
) -> None:
    assert main(["results", str(tmp_path), "--to", str(tmp_path / to)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and says in said and not list(tmp_path.iterdir())


def test_runs_without_evaluations_are_no_table(tmp_path: Path) -> None:
    shutil.rmtree(write_run(tmp_path / "a") / "evaluations")
    with pytest.raises(th.UserError, match="taskhint evaluate"):
        th.results(tmp_path)
    with pytest.raises(th.UserError, match="at least one directory"):
        th.results()


def test_parquet_without_its_packages_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run")
    for name in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["results", str(tmp_path), "--to", str(tmp_path / "table.parquet")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "pip install 'taskhint[results]'" in said
    assert main(["results", str(tmp_path), "--to", str(tmp_path / "table.csv")]) == 0


def full(handle: int) -> None:
    raise OSError(28, f"no space left for {handle}")


def test_a_table_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "run")
    table, out = th.results(tmp_path), tmp_path / "table.csv"
    out.write_text("before")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(th.UserError, match="cannot be written"):
        table.write(out)
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "table.csv"]


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_tables_need_no_torch(tmp_path: Path, name: str) -> None:
    code = (
        "import sys; from taskhint.cli import main; code = main(sys.argv[1:]); "
        "sys.exit(code or 'torch' in sys.modules)"
    )
    arguments = ["results", str(RESULTS / "demo"), "--to", str(tmp_path / name)]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True)
    assert done.returncode == 0, done.stderr
