"""`taskhint probe` as a user meets it: the files, the page, the refusals."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from taskhint.cli import main
from taskhint.construct import construct
from taskhint.probe.study import make_plan, study
from taskhint.recipes.recipe import Recipe
from taskhint.report.probe_page import named, section_of, write_probe
from taskhint.runs.run import Run, create, load, new_decoder, save_checkpoint
from taskhint.system.errors import UserError
from taskhint.tasks import EvenLengths, Sort
from tests.cli.test_cli import fails
from tests.conftest import small


def untrained(recipe: Recipe, path: Path) -> Run:
    run = create(path, recipe)
    save_checkpoint(run, 0, dict(new_decoder(recipe).named_parameters()), optimiser={})
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probed")
    construct(folder / "constructed", symbols=20, max_length=30)
    untrained(small("sort/tempered", task=Sort(symbols=20)), folder / "plain")
    untrained(small("increment/standard"), folder / "increment")
    return folder


FIGURES = {
    "mechanisms",
    "stages",
    "projection-input",
    "projection-answer",
    "projection-delimiter",
    "attention-maps",
    "attention-shares",
    "sharpness",
    "first-errors",
    "bases",
}


@pytest.fixture(scope="module")
def inside(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes about two runs of one task."""
    out = tmp_path_factory.mktemp("inside") / "new"
    words = [str(runs / "constructed"), str(runs / "plain"), "--out", str(out)]
    assert (
        main(["probe", *words, "--lengths", "3,6", "--examples", "5", "--input", "3 1 9 4"]) == 0
    )
    return out


def test_every_figure_is_written_and_shown(inside: Path) -> None:
    assert {path.name for path in inside.iterdir()} == {
        "index.html",
        "constructed",
        "plain",
        "comparison-sort",
    }
    for name in ("constructed", "plain"):
        for kind in ("png", "svg"):
            assert {path.stem for path in (inside / name).glob(f"*.{kind}")} == FIGURES
    assert len(list((inside / "comparison-sort").glob("*.png"))) == 3
    page = (inside / "index.html").read_text()
    assert page.count('class="panels"') == page.count("<h2>") == 2 * len(FIGURES) + 3


def test_the_page_needs_nothing_else(inside: Path) -> None:
    page = (inside / "index.html").read_text()
    assert not re.search(r'(src|href)="(?!#|data:)', page) and "url(http" not in page


def test_the_numbers_stand_in_the_document(inside: Path) -> None:
    document = json.loads((inside / "constructed" / "probe.json").read_text())
    score = document["mechanisms"]["shares"]["identity+successor"]["6"]
    assert (
        score["share"] == 1.0 and score["held"] == score["asked"] == 25 and score["sequences"] == 5
    )
    assert document["errors"]["lengths"]["3"]["right"] == 5
    assert document["projections"]["sequence"] == ["3", "1", "9", "4", "⊥", "1", "3", "4", "9"]
    assert len(document["attention"]["shares"]["3"]["mean"]) == 2
    assert document["bases"]["cosines"]["between"]["largest_size"] == 0.0
    compared = json.loads((inside / "comparison-sort" / "probe.json").read_text())
    assert [run["name"] for run in compared["runs"]] == ["constructed", "plain"]
    assert compared["runs"][0]["heads"]["successor"]["head"] == 1


def test_an_increment_run_has_its_figures_too(runs: Path) -> None:
    run = load(runs / "increment")
    section = section_of(study(run, "increment", make_plan(run.task, None, [1, 3], 5)))
    assert {one.name for one in section.shown} == FIGURES


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--input", "5 21"], "symbol 21 is out of range; allowed: whole numbers from 1 to 20"),
        (["--input", "0"], "out of range"),
        (["--input", ""], "the input is empty"),
        (["--input", "  "], "the input is empty"),
        (["--input", "5 x 7"], "'x' is not a symbol"),
        (["--input", "5 1.5"], "'1.5' is not a symbol"),
        (["--input", "1 " * 101], "101 symbols; at most 100"),
        (["--lengths", "5,0"], "length 0"),
        (["--lengths", "2000"], "is not in 1..1000"),
        (["--examples", "0"], "too few"),
    ],
)
def test_bad_input_is_one_clear_line(
    words: list[str], said: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "inside"
    assert said in fails(capsys, "probe", str(runs / "plain"), "--out", str(out), *words)
    assert not out.exists()


def test_what_is_no_run_or_no_place_is_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = str(runs / "plain")
    assert "is not a directory" in fails(
        capsys, "probe", plain, str(tmp_path / "x"), "--out", str(tmp_path / "y")
    )
    assert "is a run" in fails(capsys, "probe", plain, "--out", plain)
    (tmp_path / "file").write_text("")
    assert "is a file" in fails(capsys, "probe", plain, "--out", str(tmp_path / "file"))
    with pytest.raises(UserError, match="too long to probe"):
        make_plan(Sort(lengths=EvenLengths(5000, 5000)))


def test_runs_of_the_same_name_are_told_apart(runs: Path) -> None:
    plain, other = load(runs / "plain"), load(runs / "increment")
    assert list(named([plain, other, plain, plain])) == [
        "plain",
        "increment",
        "plain-2",
        "plain-3",
    ]


def test_runs_in_directories_of_the_same_name_are_named_by_their_paths(runs: Path) -> None:
    recipe = load(runs / "plain").recipe
    places = ("x/plain/seed-0", "x/hinted/seed-0", "y/hinted/seed-0", "x/alone")
    assert list(named([Run(runs / place, recipe) for place in places])) == [
        "plain/seed-0",
        "x/hinted/seed-0",
        "y/hinted/seed-0",
        "alone",
    ]


def test_two_runs_called_seed_0_have_folders_of_their_own(runs: Path, tmp_path: Path) -> None:
    for name in ("plain", "hinted"):
        shutil.copytree(runs / "plain", tmp_path / name / "seed-0")
    paths = [str(tmp_path / name / "seed-0") for name in ("plain", "hinted")]
    write_probe(paths, tmp_path / "out", None, [3], 2, probes=["stages"])
    found = {str(p.parent.relative_to(tmp_path / "out")) for p in tmp_path.glob("out/**/*.json")}
    assert {"plain/seed-0", "hinted/seed-0"} <= found
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<h1>hinted/seed-0</h1>" in page
    assert "block 0, before MLP" in page and "block 2" not in page


def test_heads_count_from_0_in_every_figure(inside: Path) -> None:
    page = (inside / "index.html").read_text()
    assert "block 0, head 0" in page and "block 1, after MLP" in page
    assert not re.search(r"block 2|head 2|attention 1\b", page)


def test_the_papers_input_is_the_usual_one() -> None:
    assert Sort().vocab.words(make_plan(Sort(), None, None, 5).prompt) == [
        "5",
        "17",
        "43",
        "78",
        "92",
        "⊥",
    ]
    assert make_plan(Sort(symbols=20), None, None, 5).prompt == Sort(symbols=20).worked_example()
