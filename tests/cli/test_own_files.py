"""A user's own file: recipes, experiments, `--import`, and what a run notes of it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskhint.cli import main
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe
from taskhint.runs.environment import code_text, own_sources
from taskhint.sweeps.jobs import Job, Measurement
from taskhint.sweeps.local import LocalPool
from taskhint.system import plugins
from taskhint.tasks import Task

HERE = Path(__file__).parent.parent.parent
FILE = """
from dataclasses import dataclass
from typing import ClassVar
from taskhint.recipes import find_recipe
from taskhint.tasks.task import SymbolTask

@dataclass(frozen=True)
class Echo(SymbolTask):
    kind: ClassVar[str] = "echo-of-a-test"
    def solve(self, prompt):
        return list(prompt[:-1])

def small():
    settings = ["model.width=16", "model.heads=2", "model.mlp_width=16", "batch_size=8"]
    recipe = find_recipe("sort/tempered").change(task=Echo(), name="echo", steps=4)
    return recipe.with_settings([*settings, "checkpoint_every=2"])

RECIPE = small()
NUMBER = 3

def broken():
    return 1 / 0
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with the file; what it registers is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Task, "_members", dict(Task.kinds()))
    monkeypatch.setattr(plugins, "_imported", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text(FILE)
    yield tmp_path


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process, which has imported nothing."""
    kept = {kind: task for kind, task in Task.kinds().items() if kind != "echo-of-a-test"}
    monkeypatch.setattr(Task, "_members", kept)
    monkeypatch.setattr(plugins, "_imported", {})
    monkeypatch.delitem(sys.modules, "mine", raising=False)


def line(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


def test_a_function_an_object_and_a_json_file_train_the_same(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "mine.py:small", "--out", "a"]) == 0
    assert main(["train", "mine.py:RECIPE", "--out", "b"]) == 0
    assert main(["train", "a/recipe.json", "--out", "c", "--import", "mine.py"]) == 0
    weights = [
        (own / name / "checkpoints/step-00000004/weights.safetensors").read_bytes()
        for name in "abc"
    ]
    assert weights[0] == weights[1] == weights[2]
    capsys.readouterr()
    assert main(["solve", "a", "5 17 43"]) == 0
    assert len(capsys.readouterr().out.split()) == 3


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mine.py:smal", "did you mean 'small'"),
        ("mine.py:broken", "line 22: ZeroDivisionError"),
        ("mine.py:NUMBER", "is no Recipe"),
        ("mine.py", "mine.py:NAME"),
        ("other.py:small", "other.py does not exist"),
        ("nowhere.json", "nowhere.json does not exist"),
    ],
)
def test_a_target_that_is_none_is_one_line(
    own: Path, target: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in line(capsys, "train", target, "--out", "x")
    assert not (own / "x").exists()


@pytest.mark.usefixtures("own")
def test_without_import_a_run_says_what_to_add_and_imports_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "mine.py:small", "--out", "a"]) == 0
    capsys.readouterr()
    forget(monkeypatch)
    for words in (["evaluate", "a", "--lengths", "2"], ["solve", "a", "1"]):
        said = line(capsys, *words)
        assert "--import FILE_OR_MODULE" in said and "made with mine.py" in said
    assert plugins.imported_sources() == ()
    words = ["--lengths", "2", "--examples", "4", "--import", "mine.py"]
    assert main(["evaluate", "a", *words]) == 0


def test_a_run_notes_its_own_files_and_warns_when_they_change(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "mine.py:small", "--out", "a"]) == 0
    noted = json.loads((own / "a/environment.json").read_text())["stretches"][0]["environment"]
    digest = hashlib.sha256(FILE.encode()).hexdigest()
    assert noted["own"] == [{"name": "mine.py", "sha256": digest}]
    # As if it had been stopped after two updates.
    newest = own / "a/checkpoints/step-00000004"
    newest.rename(newest.with_name("aside"))
    (own / "mine.py").write_text(FILE + "# changed\n")
    forget(monkeypatch)
    capsys.readouterr()
    assert main(["train", "mine.py:small", "--out", "a"]) == 0
    assert f"own mine.py {digest[:8]} -> mine.py " in capsys.readouterr().err


def test_a_recipe_of_taskhint_alone_has_no_own_files() -> None:
    assert own_sources(find_recipe("sort/all-hints")) == ()


def test_worker_processes_repeat_the_imports(own: Path) -> None:
    recipe = plugins.imported_value("mine.py", "small", Recipe)
    jobs = [
        Job(f"run-{seed}", recipe.change(seed=seed), (Measurement("uniform", (2,), 4),))
        for seed in range(2)
    ]
    found = {one.job.out: one.curves[0] for one in LocalPool().run(jobs, own, "test")}
    assert {name: curve.task for name, curve in found.items()} == {
        "run-0": "echo-of-a-test",
        "run-1": "echo-of-a-test",
    }


def test_a_module_by_name_in_a_process_of_its_own(own: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{own}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "taskhint", "list", "--import", "mine"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert "echo-of-a-test" in done.stdout


def test_an_experiment_of_ones_own_is_found(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from taskhint import experiments
    from taskhint.cli.reproduce import find_experiments

    known = dict(experiments.EXPERIMENTS)
    for place in ("taskhint.cli.reproduce", "taskhint.experiments"):
        monkeypatch.setattr(f"{place}.EXPERIMENTS", known)
    name = next(iter(experiments.EXPERIMENTS))
    (own / "asked.py").write_text(
        "from dataclasses import replace\nfrom taskhint.experiments import EXPERIMENTS\n"
        f"MINE = replace(EXPERIMENTS[{name!r}], name='mine')\n"
        f"OTHER = replace(EXPERIMENTS[{name!r}], question='?')\n"
    )
    assert "as another experiment is" in line(capsys, "reproduce", "asked.py:OTHER", "--out", "x")
    (own / "asked.py").write_text((own / "asked.py").read_text().partition("OTHER")[0])
    monkeypatch.setattr(plugins, "_imported", {})
    assert [one.name for one in find_experiments(["asked.py:MINE"], "pocket")] == ["mine"]
    assert [one.name for one in find_experiments(["mine"], "pocket")] == ["mine"]


def test_prose_is_no_part_of_the_code_that_decides() -> None:
    plain = (
        "def f(x):\n    if x < 0:\n        raise ValueError('bad')\n    return x + 1\n"
        "class A:\n    about: str = 'a'\n    size: int = 3\n"
    )
    prose = (
        '"""A module."""\ndef f(x):\n    """Adds."""\n    # why\n    if x < 0:\n'
        "        raise ValueError('is negative')\n\n    return (x\n        + 1)\n"
        "class A:\n    'Says.'\n    about: str = 'another'\n    size: int = 3\n"
    )
    assert code_text(plain) == code_text(prose)
    for before, after in (("x + 1", "x + 2"), ("size: int = 3", "size: int = 4"), ("< 0", "<= 0")):
        assert code_text(plain) != code_text(plain.replace(before, after))


@pytest.mark.usefixtures("own")
def test_a_report_and_a_recipe_file_name_the_users_file_before_all_that_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "mine.py:small", "--out", "a"]) == 0
    capsys.readouterr()
    forget(monkeypatch)
    for words in (["report", "a", "--out", "a.html"], ["train", "a/recipe.json", "--out", "b"]):
        said = line(capsys, *words)
        assert "--import FILE_OR_MODULE; the run was made with mine.py" in said
        assert "allowed" not in said.partition("mine.py")[0]


def test_recipes_of_an_imported_file_are_named(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = FILE.replace("def small():", "def small() -> 'th.Recipe':")
    (own / "mine.py").write_text(typed)
    said = line(capsys, "train", "echo/plain", "--out", "x", "--import", "mine.py")
    assert "named FILE:NAME: mine.py:small, mine.py:RECIPE" in said
    said = line(capsys, "choose", "echo-of-a-test", "--out", "x", "--import", "mine.py")
    assert "as in mine.py:small, mine.py:RECIPE" in said
    said = line(capsys, "train", "sort/standrd", "--out", "x", "--import", "mine.py")
    assert "mine.py:RECIPE" in said


def test_a_directory_of_runs_says_which_it_holds(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("s/seed-0", "s/seed-1"):
        (own / name).mkdir(parents=True)
        (own / name / "recipe.json").write_text("{}")
    said = line(capsys, "evaluate", "s", "--lengths", "2")
    assert "it has no recipe.json; runs below it: seed-0, seed-1" in said
