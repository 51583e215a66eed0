"""Sweeps on this machine: what they consist of, how they go on, what they tell."""

from __future__ import annotations

import csv
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import taskhint
from taskhint.cli import main
from taskhint.evaluation.summary import Point, Series
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe, differing_keys
from taskhint.report.figures import best_labels, curves_figure
from taskhint.sweeps import remote
from taskhint.sweeps.grid import jobs_of, points, read_grid
from taskhint.sweeps.jobs import Job, Measurement, done, missing, undone
from taskhint.sweeps.plan import read_plan, write_plan
from taskhint.sweeps.status import duration, status
from taskhint.sweeps.work import FAILED, do
from taskhint.system.plugins import import_source
from taskhint.system.stats import OverSeeds
from tests.runs.reliability import tiny

MODEL = ["model.width=16", "model.mlp_width=16", "model.heads=2"]
TINY = ["steps=3", "warmup_steps=1", "batch_size=4", *MODEL]
WORDS = [word for one in TINY for word in ("--set", one)]
MEASURED = (Measurement("uniform", (2, 3), 10),)


def line(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    assert main(list(words)) == code
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_grid_is_every_combination() -> None:
    grid = read_grid(["model.width=32,64", "task.inputs.repetition=0.0,0.5", "seed=0"])
    found = points({"a": find_recipe("sort/standard"), "b": find_recipe("sort/tempered")}, grid)
    values = [
        (
            point.recipe.name,
            point.recipe.model.width,
            point.recipe.setting("task.inputs.repetition"),
        )
        for point in found
    ]
    assert values == list(product(["sort/standard", "sort/tempered"], [32, 64], ["0.0", "0.5"]))
    assert found[1].name == "a-width-32-repetition-0.5-seed-0"
    jobs = jobs_of(found, 3, MEASURED)
    assert len({job.out for job in jobs}) == 24 == len({job.recipe.fingerprint() for job in jobs})
    assert [job.recipe.seed for job in jobs] == [0] * 8 + [1] * 8 + [2] * 8


def test_the_same_point_twice_is_one() -> None:
    grid: dict[str, Any] = {"model.width": [64, "64", 64], "learning_rate": [0.5, "0.50"]}
    assert len(points({"a": find_recipe("sort/standard")}, grid)) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--grid", "model.widht=3"], "did you mean 'model.width'"),
        (["--grid", "model.width"], "KEY=VALUE,VALUE"),
        (["--grid", "model.width=3,,4"], "KEY=VALUE,VALUE"),
        (["--grid", "model.width=32", "--grid", "model.width=64"], "twice"),
        (["--grid", "model.width=big"], "is not a whole number"),
        (["--seeds", "0"], "not in 1..1000"),
        (["--distribution", "rpe:3"], "rpe:3"),
        (["--on", "rya"], "did you mean 'ray'"),
        (["--address", "a:1"], "--address is for --on ray"),
        (["--gpus-per-run", "2"], "not in 0..1"),
        (["--gpus-per-run", "nan"], "--gpus-per-run"),
        (["--gpus-per-run", "x"], "is not a number"),
        (["--on", "ray", "--address", "nowhere"], "HOST:PORT"),
        (["--status"], "--status takes one directory"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    out = tmp_path / "out"
    base = ["sweep", "sort/standard", "--lengths", "3", "--out", str(out)]
    assert says in line(capsys, *base, *words)
    assert not out.exists()


def test_a_sweep_from_the_command_line_goes_on_and_skips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["sweep", "sort/standard", "sort/tempered", *WORDS, "--out", str(out)]
    words += ["--lengths", "2,3", "--examples", "10", "--distribution", "uniform"]
    assert main([*words, "--grid", "learning_rate=0.01,0.02", "--seeds", "1"]) == 0
    assert "4 runs, 0 of them done" in capsys.readouterr().out
    times = {path: path.stat().st_mtime_ns for path in out.rglob("evaluations/*/*.json")}
    assert main([*words, "--grid", "learning_rate=0.01,0.02", "--seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert "8 runs, 4 of them done" in said
    assert "sort/tempered, learning_rate 0.02" in said and "2 seeds, 10 sequences each" in said
    assert (
        times.items()
        <= {path: path.stat().st_mtime_ns for path in out.rglob("evaluations/*/*.json")}.items()
    )
    with (out / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 2 and {row["seeds"] for row in rows} == {"2"}
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "learning_rate 0.02" in (out / "report.html").read_text()
    kept = json.loads(next(iter(times)).read_text())
    assert kept["run"] == str(next(iter(times)).parents[2].relative_to(out))

    assert main(["sweep", str(out), "--status"]) == 0
    assert "8 runs: 8 done, 0 running, 0 failed, 0 waiting; 100.0%" in capsys.readouterr().out
    words[words.index("batch_size=4")] = "batch_size=5"
    words += ["--grid", "learning_rate=0.01"]
    assert "holds another run; it differs in batch_size" in line_after(capsys, words)


def line_after(capsys: pytest.CaptureFixture[str], words: list[str]) -> str:
    assert main(words) == 2
    return capsys.readouterr().err


def test_the_same_in_python(tmp_path: Path) -> None:
    small = tiny(steps=2, warmup_steps=0)
    swept = taskhint.sweep(
        [small, small.change(batch_size=4)],
        out=tmp_path,
        grid={"learning_rate": [0.01]},
        seeds=1,
        lengths=[3, 2],
        examples=5,
    )
    assert [one.label.rpartition(", ")[2] for one in swept.series] == [
        "batch_size 8",
        "batch_size 4",
    ]
    frame = swept.to_frame()
    assert list(frame["length"]) == [2, 3, 2, 3] and set(frame["sequences"]) == {5}
    assert "95% intervals" in str(swept)
    assert len(swept.plot().axes) == 1


def job(out: str = "a", recipe: Recipe | None = None) -> Job:
    return Job(out, recipe or tiny(steps=2, warmup_steps=0), MEASURED)


def test_only_what_is_missing_is_measured(tmp_path: Path) -> None:
    assert undone([job()], tmp_path) == [job()]
    answer = do(job(), tmp_path)
    assert answer.state == "done" and [sorted(one.scores) for one in answer.curves] == [[2, 3]]
    assert undone([job()], tmp_path) == []
    more = Measurement("uniform", (2, 3, 4), 10), Measurement("rep:2", (3,), 5)
    left = missing(Job("a", job().recipe, more), tmp_path)
    assert left.measurements == (Measurement("uniform", (4,), 10), more[1])
    with_distance = (Measurement("uniform", (2,), 10, True),)
    assert missing(Job("a", job().recipe, with_distance), tmp_path).measurements == with_distance
    assert not done(tmp_path / "a", 3, MEASURED, ()), "of another checkpoint"


def test_a_job_that_fails_is_told_and_does_not_take_others_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", "sort/standard", *WORDS, "--lengths", "2", "--examples", "5"]
    words += ["--grid", "learning_rate=0.01,1e30", "--seeds", "1", "--out", str(tmp_path / "out")]
    assert main(words) == 4
    said = capsys.readouterr()
    assert "WARNING: sort-standard-learning-rate-1e30/seed-0: step" in said.err
    assert said.err.splitlines()[-1].startswith("taskhint: error: step ")
    assert "sort/standard" in said.out and (tmp_path / "out" / "figure.png").exists()
    found = status(tmp_path / "out")
    assert (found.count("done"), found.count("failed")) == (1, 1)
    assert "finite" in str(found) or "gradient norm" in str(found)


def test_a_bug_in_a_file_of_ones_own_is_kept_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("taskhint.training.loop.train", broken)
    answer = do(job(), tmp_path)
    assert answer.state == "failed" and answer.error.startswith("ZeroDivisionError: by nothing")
    assert "in broken" in json.loads((tmp_path / "a" / FAILED).read_text())["trace"]
    monkeypatch.undo()
    assert do(job(), tmp_path).state == "done"
    assert not (tmp_path / "a" / FAILED).exists()


def test_a_run_of_another_driver_is_asked_for_again(tmp_path: Path) -> None:
    from taskhint.system.lease import Lease

    with Lease(tmp_path / "a"):
        answer = do(job(), tmp_path)
    assert answer.state == "busy" and "a is in use by process" in answer.error
    assert do(job(), tmp_path).state == "done"


def test_plans_of_several_sweeps_are_one(tmp_path: Path) -> None:
    other = Measurement("uniform", (9,), 5)
    write_plan(tmp_path, [job("a"), job("b")])
    write_plan(tmp_path, [Job("b", tiny(steps=7), (other,)), job("c")])
    runs = {
        out: (steps, group.measurements)
        for group in read_plan(tmp_path).groups
        for out, steps in group.runs.items()
    }
    assert runs == {"a": (2, MEASURED), "b": (7, (other,)), "c": (2, MEASURED)}
    found = status(tmp_path)
    assert found.count("waiting") == 3 and found.seconds_left is None


@pytest.mark.parametrize(
    "text", ["[]", '{"groups": 3}', "{", '{"groups": [{"runs": {"a": "b"}}]}']
)
def test_a_damaged_plan_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "sweep.json").write_text(text)
    assert "sweep.json is damaged" in line(capsys, "sweep", str(tmp_path), "--status")
    (tmp_path / "sweep.json").unlink()
    assert "holds no sweep" in line(capsys, "sweep", str(tmp_path), "--status")


def test_status_looks_at_each_run_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work counted, not time: files that are opened, whatever the number of finished runs."""
    do(job("a"), tmp_path)
    opened: list[Path] = []
    plain = Path.open

    def counted(path: Path, *given: Any) -> Any:
        opened.append(path)
        return plain(path, *given)

    monkeypatch.setattr(Path, "open", counted)
    counts = []
    for many in (10, 20):
        for number in range(many):
            if not (tmp_path / f"r{number}").exists():
                (tmp_path / f"r{number}").symlink_to(tmp_path / "a")
        write_plan(tmp_path, [job(f"r{number}") for number in range(many)])
        opened.clear()
        assert status(tmp_path).count("done") == many
        counts.append(len(opened))
    assert counts[1] - counts[0] == 10, "one file for each more run: its curve"


def test_recipes_differ_where_not_all_agree() -> None:
    recipes = [find_recipe(name) for name in ("sort/standard", "sort/tempered", "sort/successor")]
    slow = {key for one in recipes for other in recipes for key in one.differences(other)}
    assert differing_keys(recipes) == sorted(slow)


def test_durations_are_told_in_units_of_which_there_are_two() -> None:
    assert [duration(s) for s in (3, 119, 120, 7200, 200_000)] == [
        "3 seconds",
        "119 seconds",
        "2 minutes",
        "2 hours",
        "2 days",
    ]


def ordered(tmp_path: Path, **changes: object) -> str:
    return json.dumps({**json.loads(remote.order(tmp_path, 0.0)), **changes})


def answered(given: str, what: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(remote.work(given, json.dumps(what.to_json())))
    return found


def test_a_worker_with_other_versions_or_another_directory_says_so(tmp_path: Path) -> None:
    other = {**remote.versions(), "torch": "1.0.0"}
    answer = answered(ordered(tmp_path, versions=other), job())
    assert answer["state"] == "unfit" and "instead of 1.0.0; install the same" in answer["error"]
    answer = answered(ordered(tmp_path, token="another"), job())
    assert answer["state"] == "unfit" and "storage that all nodes share" in answer["error"]
    assert not (tmp_path / "a").exists()


def test_a_worker_imports_the_files_that_it_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskhint.system.plugins._imported", {})
    (tmp_path / "own.py").write_text("import helper_of_a_test\nBASE = helper_of_a_test.BASE\n")
    (tmp_path / "helper_of_a_test.py").write_text("BASE = 1\n")
    import_source(str(tmp_path / "own.py"))
    given = ordered(tmp_path)
    assert [name for name, _ in json.loads(given)["files"]] == ["own.py"]
    monkeypatch.setattr("sys.path", [one for one in sys.path if one != str(tmp_path)])
    monkeypatch.delitem(sys.modules, "helper_of_a_test")
    answer = answered(given, job())
    assert (
        answer["state"] == "unfit" and "name what it imports with --import too" in answer["error"]
    )


def test_a_worker_answers_in_json_what_the_pool_answers(tmp_path: Path) -> None:
    answer = answered(ordered(tmp_path), job("x"))
    assert answer["state"] == "done"
    here = do(job("y"), tmp_path)
    assert [one["lengths"] for one in answer["curves"]] == [
        one.to_json()["lengths"] for one in here.curves
    ]


def test_a_figure_of_very_many_recipes_shows_the_best() -> None:
    recipe = find_recipe("sort/standard")
    series = [
        Series(str(n), recipe, "uniform", {5: Point(OverSeeds((n / 100,), (100,)), None)})
        for n in (*range(50, 100), *range(50))
    ]
    assert best_labels(series) == [str(n) for n in range(84, 100)]
    assert best_labels(series[:3]) == ["50", "51", "52"]
    (axes,) = curves_figure(series).axes
    assert "the best 16 of 100 recipes" in axes.get_title()
