"""docs/extending.md, as a stranger would follow it: files in an empty directory, commands."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
SMALL = ["batch_size=8", "model.width=16", "model.heads=2", "checkpoint_every=20"]
WHOLE_FILE = re.compile(r"<!-- file: (\S+) -->\n```python\n(.*?)```", re.DOTALL)

TINY = """
from dataclasses import replace
import taskhint as th
from sharpness import SHARPNESS

def small(arm):
    recipe = arm.recipe.change(batch_size=8, steps=3, warmup_steps=1, width=16, heads=2)
    return replace(arm, recipe=recipe)

PLAIN, ROOTED = map(small, SHARPNESS.arms)
EXPERIMENT = replace(SHARPNESS, arms=(PLAIN, ROOTED), examples=20, lengths=(5, 50),
                     claims=(th.Better(ROOTED, PLAIN, 50),))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with every file of the page, and nothing else."""
    directory = tmp_path_factory.mktemp("stranger")
    for name, text in WHOLE_FILE.findall(PAGE.read_text()):
        (directory / name).write_text(text)
    return directory


def settings(*pairs: str) -> list[str]:
    return [word for pair in (*SMALL, *pairs) for word in ("--set", pair)]


def imports(*names: str) -> list[str]:
    return [word for name in names for word in ("--import", f"{name}.py")]


def started(place: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "taskhint", *words],
        cwd=place,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(place: Path, *words: str, code: int = 0) -> str:
    process = started(place, *words)
    out, err = process.communicate()
    assert process.returncode == code, err
    return out if code == 0 else err


def script_said(place: Path, part: str) -> str:
    """What the page's script that contains a text prints; it looks at the run that tests made."""
    scripts = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (script,) = (text.replace("runs/copy", "copy") for text in scripts if part in text)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=place, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def weights(run: Path) -> str:
    newest = sorted((run / "checkpoints").iterdir())[-1] / "weights.safetensors"
    return hashlib.sha256(newest.read_bytes()).hexdigest()


def test_the_page_has_an_example_of_everything(place: Path) -> None:
    names = {path.stem for path in place.iterdir()}
    kinds = {
        "copying",
        "summing",
        "among",
        "slopes",
        "scattered",
        "rooted",
        "growing",
        "hide_stream",
        "stream_size",
    }
    assert names == kinds | {"sharpness"}


def test_tasks_are_checked_as_the_page_says(place: Path) -> None:
    copied, following = script_said(place, "th.check_task").split("my-next")
    assert "no `make` of its own" in copied and "remark" not in following


@pytest.fixture(scope="module")
def copying(place: Path) -> str:
    said(place, "train", "copying.py:copy_with_hint", "--steps", "6", "--out", "copy", *settings())
    return "copy"


def test_a_task_works_with_every_command(place: Path, copying: str) -> None:
    own = imports("copying", "stream_size")
    table = said(place, "evaluate", copying, *own, "--lengths", "10-30:10", "--examples", "20")
    assert [line.split()[0] for line in table.splitlines()[2:]] == ["10", "20", "30"]
    assert len(said(place, "solve", copying, *own, "5 17 43").split()) == 3
    said(place, "probe", copying, *own, "--lengths", "5", "--examples", "4", "--out", "inside")
    assert "Size of the residual stream" in (place / "inside" / "index.html").read_text()
    said(place, "report", ".", *own, "--out", "report.html")
    assert "copy/next" in (place / "report.html").read_text()


def test_a_scratchpad_couples_places_and_is_a_hint(place: Path) -> None:
    for name in ("modular_scratchpad", "modular_hint"):
        train = ["train", f"summing.py:{name}", "--steps", "4", "--out", name]
        said(place, *train, *settings())
    own = imports("summing")
    answers = {
        name: said(place, "solve", name, *own, "3 0 6").split()
        for name in ("modular_scratchpad", "modular_hint")
    }
    assert [len(answer) for answer in answers.values()] == [3, 1]
    check = (
        "import numpy as np, summing as s; task = s.RunningSum(); prompt = [3, 0, 6, 7]; "
        "print(task.solve(prompt), s.ModularSum().solve(prompt), "
        "task.coupled(np.array([[*prompt, 3, 3, 2]])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], cwd=place, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[3, 3, 2] [2] [[1 2 3 0 1 2 3]]\n"


def test_two_inputs_a_test_distribution_and_a_hint_that_asks(place: Path) -> None:
    names = ("Among", "AmongSteps", "OneOf")
    check = f"import taskhint as th\nfrom among import {', '.join(names)}\n" + "".join(
        f"print(th.check_task({name}(), [1, 3, 30], 50) + 0)\n" for name in names
    )
    done = subprocess.run(
        [sys.executable, "-c", check], cwd=place, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["600"] * 3, "as trained and in three tests"
    train = ["train", "among.py:among_hint", "--steps", "2", "--out", "among"]
    said(place, *train, *settings())
    own = imports("among")
    assert len(said(place, "solve", "among", *own, "1 2 | 2 3").split()) == 2
    assert "two sets of one size" in said(place, "solve", "among", *own, "1 2 |", code=2)
    test = ["--lengths", "10,20", "--distribution", "apart", "--examples", "5"]
    assert "apart" in said(place, "evaluate", "among", *own, *test)
    listed = said(place, "list", *own).splitlines()
    assert listed[listed.index("  among") + 1].split()[0] == "among", "a family of its own"


def test_an_edit_changes_one_position(place: Path, copying: str) -> None:
    assert (place / copying).is_dir()
    sizes = re.findall(r"\d+\.\d*", script_said(place, "edits=["))
    assert [float(size) == 0.0 for size in sizes] == [False, True, False, False]


def test_a_sweep_compares_with_and_without_the_hint(place: Path) -> None:
    both = ["copying.py:copy_alone", "copying.py:copy_with_hint"]
    sizes = ["--seeds", "1", "--steps", "2", "--lengths", "5", "--examples", "4"]
    table = said(place, "sweep", *both, *sizes, *settings(), "--out", "compared")
    assert "copy/alone" in table and "copy/next" in table


def test_without_its_file_a_run_says_what_to_add(place: Path, copying: str) -> None:
    for words in (["evaluate", copying, "--lengths", "5"], ["solve", copying, "5"]):
        line = said(place, *words, code=2)
        assert line.count("\n") == 1
        assert "--import" in line and "copying.py" in line


def test_a_recipe_file_is_a_recipe(place: Path, copying: str) -> None:
    recipe = f"{copying}/recipe.json"
    said(place, "train", recipe, *imports("copying"), "--seed", "1", "--out", "copy-1")
    assert weights(place / "copy-1") != weights(place / copying)


def test_a_scheme_with_a_bias(place: Path) -> None:
    own = imports("slopes")
    slope = settings("model.positions=slopes", "model.positions.slope=0.25")
    said(place, "train", "sort/standard", *own, "--steps", "3", *slope, "--out", "slopes")
    said(place, "evaluate", "slopes", *own, "--lengths", "5,30", "--examples", "20")
    assert len(said(place, "solve", "slopes", *own, "5", "17", "43").split()) == 3


def test_a_killed_run_of_all_kinds_goes_on_to_the_same_bytes(place: Path) -> None:
    own = imports("scattered", "rooted", "growing", "copying")
    kinds = ("model.positions=scattered", "model.temperature=rooted", "curriculum=growing")
    train = ["train", "copying.py:copy_with_hint", *own, "--steps", "1500", *settings(*kinds)]
    killed = started(place, *train, "--out", "killed")
    while not list((place / "killed").glob("checkpoints/step-*/manifest.json")):
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    said(place, *train, "--out", "killed")
    said(place, *train, "--out", "whole")
    assert weights(place / "killed") == weights(place / "whole")
    assert len(said(place, "solve", "whole", *own, "5 17 43").split()) == 3


def test_an_experiment_runs_in_parallel_and_is_reported(place: Path) -> None:
    (place / "tiny.py").write_text(TINY)
    reproduce = ["reproduce", "tiny.py:EXPERIMENT", "--seeds", "2", "--out", "tiny"]
    assert "4 runs, 0 of them done" in said(place, *reproduce)
    assert "4 runs, 4 of them done" in said(place, *reproduce)
    said(place, "report", "tiny", *imports("tiny", "rooted"), "--out", "sharpness.html")
    assert "Does attention that sharpens" in (place / "sharpness.html").read_text()
    assert "rooted better than plain at 50" in (place / "sharpness.html").read_text()
    (place / "tiny.py").unlink()
