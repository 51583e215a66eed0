"""The command line as a user meets it: real processes for the start-up, `main` in this process for
the rest.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from taskhint.cli import main
from taskhint.recipes import ENTRIES, find_recipe, measured
from taskhint.runs.run import Run
from taskhint.system.errors import UserError
from taskhint.tasks import Mixture
from taskhint.training.loop import train
from tests.conftest import small


def fails(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that a command prints when it refuses; the exit code is 2 and nothing else is
    said.
    """
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("taskhint: error: ") and said.err.count("\n") == 1
    return said.err


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(small("sort/tempered"), tmp_path_factory.mktemp("cli") / "run")


def test_help_needs_no_torch_and_shows_examples() -> None:
    code = (
        "import sys; from taskhint.cli import main\ntry: main(['--help'])\nfinally: "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "taskhint train sort/tempered --out" in done.stdout
    assert done.stdout.rstrip().endswith("False")


@pytest.mark.parametrize("command", ["list", "train", "evaluate", "solve", "report", "demo"])
def test_every_command_has_help_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"taskhint {command}" in capsys.readouterr().out.split("example:")[1]


def test_the_program_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "taskhint", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("taskhint ")


def test_list_tells_time_and_result_of_each_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for entry in ENTRIES.values():
        known = measured(entry.name)
        assert entry.name in text
        assert known is None or (known.minutes > 0 and known.result in text)
    assert "successor" in text and "of sort" in text


def test_the_recipes_page_is_what_the_program_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "recipes.md"
    # In a process of its own: tests define tasks too.
    command = [sys.executable, "-m", "taskhint", "list", "--markdown"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert page.read_text() == said, "run `make docs`"


def test_train_evaluate_solve_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "runs" / "a")
    small_model = [
        "model.width=16",
        "model.heads=2",
        "model.mlp_width=16",
        "batch_size=16",
        "checkpoint_every=4",
    ]
    settings = [word for setting in small_model for word in ("--set", setting)]
    assert (
        main(
            [
                "train",
                "sort/successor-tempered",
                "--out",
                out,
                "--seed",
                "3",
                "--steps",
                "8",
                *settings,
            ]
        )
        == 0
    )
    assert "8 updates" in capsys.readouterr().out
    assert (
        main(
            ["evaluate", out, "--lengths", "3,2", "--examples", "20", "--edit-distance", "--json"]
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert {"run", "task", "distribution", "examples", "lengths"} <= document.keys()
    assert list(document["lengths"]) == ["2", "3"]
    assert {"accuracy", "low", "high", "edit_distance"} <= document["lengths"]["2"].keys()
    assert document["examples"] == 20 and document["seed"] == 3
    assert (
        main(["evaluate", out, "--lengths", "3", "--examples", "20", "--distribution", "rep:2"])
        == 0
    )
    assert "rep:2" in capsys.readouterr().out
    assert main(["solve", out, "5", "17"]) == 0
    assert len(capsys.readouterr().out.split()) == 2
    page = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "runs"), "--out", str(page)]) == 0
    html = page.read_text()
    assert "<svg" in html and "sort/successor-tempered" in html and "rep:2" in html
    assert "http://" not in html.replace("http://www.w3.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "")


def test_progress_goes_to_standard_error_only(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(run.path), "--lengths", "2", "--examples", "10", "--json"]) == 0
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "sort/temperd", "--out", "x"], "did you mean 'sort/tempered'"),
        (["trian"], "did you mean 'train'"),
        (["train", "sort/standard"], "--out"),
        (["train", "sort/standard", "--out", "x", "--scale", "poket"], "did you mean 'pocket'"),
        (
            ["train", "sort/standard", "--out", "x", "--set", "model.widht=3"],
            "did you mean 'model.width'",
        ),
        (
            ["train", "sort/standard", "--out", "x", "--set", "model.width=wide"],
            "not a whole number",
        ),
        (["train", "sort/standard", "--out", "x", "--set", "model.width"], "KEY=VALUE"),
        (
            ["train", "sort/standard", "--out", "x", "--set", "model.heads=3"],
            "not a multiple of model.heads=3",
        ),
        (
            ["train", "sort/standard", "--out", "x", "--set", "model.temperature=log-visble"],
            "'log-visible'",
        ),
        (["train", "sort/standard", "--out", "x", "--set", "optimiser=adm"], "'adam'"),
        (["train", "sort/standard", "--out", "x", "--set", "learning_rate=nan"], "learning_rate"),
        (["train", "sort/standard", "--out", "x", "--set", "model=3"], "has parts"),
        (
            ["train", "sort/standard", "--out", "x", "--set", "task.inputs.repetition=1.5"],
            "not in 0..1",
        ),
        (["train", "sort/standard", "--out", "x", "--steps", "0"], "steps=0"),
        (["train", "sort/standard", "--out", "x", "--seed", "-1"], "negative"),
        (["evaluate", "nowhere", "--lengths", "5"], "is not a directory"),
        (["evaluate", "RUN", "--lengths", "0"], "at least 1"),
        (["evaluate", "RUN", "--lengths", "-5"], "negative"),
        (["evaluate", "RUN", "--lengths=-5"], "negative"),
        (["evaluate", "RUN", "--lengths", "5,x"], "not a whole number"),
        (["evaluate", "RUN", "--lengths", ""], "not a whole number"),
        (["evaluate", "RUN", "--lengths", "5", "--examples", "0"], "too few"),
        (["evaluate", "RUN", "--lengths", "5", "--distribution", "repp:3"], "rep:R"),
        (["solve", "RUN", "5", "101"], "from 1 to 100"),
        (["solve", "RUN", "5", "x"], "'x' is not a symbol"),
        (["solve", "RUN"], "empty"),
        (["report", "nowhere", "--out", "x.html"], "is not a directory"),
    ],
)
def test_bad_input_is_one_clear_line(
    words: list[str],
    said: str,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in fails(capsys, *(str(run.path) if word == "RUN" else word for word in words))
    assert list(tmp_path.iterdir()) == []


def test_directories_that_are_no_runs_are_refused(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no recipe.json" in fails(capsys, "evaluate", str(tmp_path), "--lengths", "5")
    (tmp_path / "file").write_text("x")
    assert "is not a run" not in fails(
        capsys, "train", "sort/standard", "--out", str(tmp_path / "file")
    )
    assert "not empty" in fails(capsys, "train", "sort/standard", "--out", str(tmp_path))
    said = fails(capsys, "train", "sort/standard", "--out", str(run.path))
    assert "holds another run (sort/tempered)" in said


def test_settings_reach_every_part_of_a_recipe() -> None:
    recipe = find_recipe("sort/successor").with_settings(
        [
            "model.width=256",
            "model.temperature=log-input",
            "optimiser=adam",
            "optimiser.beta2=0.95",
            "task.inputs.pool=any",
            "hints.successor.updates=2",
            "hints.successor.task.repeated=next-distinct",
            "hints.successor.task.lengths.longest=30",
            "dataset_size=1000",
        ]
    )
    assert recipe.model.width == 256 and recipe.model.temperature.kind == "log-input"
    assert recipe.optimiser.kind == "adam" and getattr(recipe.task, "inputs", None) == Mixture(
        pool="any"
    )
    hint = recipe.hints[0]
    assert hint.updates == 2 and getattr(hint.task, "repeated", None) == "next-distinct"
    assert hint.task.lengths.max_length == 30
    assert type(recipe).from_json(recipe.to_json()) == recipe
    with pytest.raises(UserError, match=r"hints\.successor"):
        find_recipe("sort/successor").with_settings(["hints.sucessor.updates=2"])
