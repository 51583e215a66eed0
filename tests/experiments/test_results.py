"""What results/ promises: the experiments that it names are there in full, and the texts say what
it says.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from taskhint.evaluation.exact import score
from taskhint.evaluation.results import find_results
from taskhint.experiments import EXPERIMENTS
from taskhint.experiments.arm import Arm
from taskhint.experiments.experiment import Experiment, Panel
from taskhint.experiments.findings import find_all
from taskhint.experiments.marker import read_marker, read_remarks
from taskhint.recipes import ENTRIES, MEASURED, find_recipe, measured
from taskhint.recipes.recipe import Recipe
from taskhint.report.page import write_report
from taskhint.runs.run import load
from tools import fill_pages, pack_results

ROOT = Path(__file__).parents[2]
REPRODUCED = ROOT / "results" / "reproduce"
NAMED = read_marker(REPRODUCED).experiments
RESULTS = find_results(REPRODUCED)
README = (ROOT / "README.md").read_text()
BEST = (ROOT / "docs" / "best.md").read_text()
DEMO = (ROOT / "docs" / "demo.md").read_text()
TIMES = json.loads((ROOT / "results" / "times.json").read_text())["recipes"]


@pytest.mark.parametrize("name", NAMED)
def test_every_number_of_an_experiment_has_its_seeds(name: str) -> None:
    experiment = EXPERIMENTS[name]
    (finding,) = find_all(RESULTS, [experiment])
    wanted = 5 if name.endswith("-best") else 3
    for arm in experiment.arms:
        for panel in experiment.panels:
            for length in experiment.lengths:
                cell = finding.cell(arm, panel, length)
                assert cell is not None and cell.seeds >= wanted, (arm.label, panel, length)


def test_the_report_has_every_experiment(tmp_path: Path) -> None:
    page = write_report(ROOT / "results", tmp_path / "report.html").read_text()
    for name in NAMED:
        assert escape(EXPERIMENTS[name].question) in page


@pytest.mark.parametrize(("name", "length"), [("sort-best", 100), ("increment-best", 50)])
def test_the_reference_models_do_what_is_said_of_them(name: str, length: int) -> None:
    run = load(ROOT / "results" / "models" / name)
    found = score(
        run.model, run.task.for_test("uniform"), run.recipe.seed, length, 500, edit_distance=False
    )
    (finding,) = find_all(RESULTS, [EXPERIMENTS[name]])
    (same,) = (
        one for (runs,) in [finding.runs.values()] for one in runs if one.recipe == run.recipe
    )
    assert same.curves["uniform"][length].accuracy in found.interval
    assert found.accuracy > 0.99


def table_rows(text: str) -> list[list[str]]:
    lines = (line for line in text.splitlines() if line.startswith("| ") and "---" not in line)
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def test_the_headline_table_is_what_was_measured() -> None:
    (finding,) = find_all(RESULTS, [EXPERIMENTS["sort-best"]])
    part = BEST.split("## The result")[1].split("| setting")[0]
    header, *rows = table_rows(part)
    assert len(rows) == 5
    for distribution, *texts in rows:
        panel = Panel(distribution=re.sub(r"rep\(i, (\d)\)", r"rep:\1", distribution))
        for length, text in zip(header[1:], texts, strict=True):
            cell = finding.cell(finding.experiment.arms[0], panel, int(length))
            assert cell is not None
            digits = len(text.split()[0].split(".")[1])
            assert text == f"{100 * cell.mean:.{digits}f} ({100 * min(cell.means):.{digits}f})", (
                distribution,
                length,
            )


def test_the_table_of_the_readme_is_what_was_measured() -> None:
    _, *rows = table_rows(README.split("## Results")[1].split("## ")[0])
    assert len(rows) == 5
    for recipe, _, length, here, _ in rows:
        arm = Arm("it", find_recipe(recipe.split("`")[1]))
        (finding,) = find_all(RESULTS, [Experiment("one", "", (arm,), [int(length)])])
        cell = finding.cell(arm, Panel(), int(length))
        assert cell is not None and cell.seeds == (5 if "best" in recipe else 3)
        assert here == f"{100 * cell.mean:.2f}", recipe


def test_the_table_of_the_rule_is_what_was_measured() -> None:
    """Trained up to 10, measured at 20: docs/best.md against the runs in results/first-looks."""
    arms = (
        "best",
        "best-d3",
        "best-d3-wd02",
        "best-d3-near1",
        "best-d4",
        "best-d4-near1",
        "best-d4-wd02-near1",
        "best-d6",
    )
    kept = json.loads((ROOT / "results" / "first-looks" / "train-up-to-10.json").read_text())
    part = BEST.split("## Towards length 500")[1].split("## ")[0]
    for arm, (_, seeds, *texts) in zip(arms, table_rows(part)[1:], strict=True):
        runs = [one for one in kept["runs"] if one["path"].startswith(f"{arm}/")]
        assert seeds == str(len(runs))
        for name, text in zip(("uniform", "rep:3", "rep:5", "rep:10"), texts, strict=True):
            scores = [
                curve["lengths"]["20"]
                for run in runs
                for curve in run["evaluations"]
                if curve["distribution"] == name
            ]
            assert len(scores) == len(runs)
            assert text == f"{100 * fmean(s['right'] / s['examples'] for s in scores):.1f}", arm


def test_the_table_of_the_demo_is_what_was_measured() -> None:
    header, *rows = table_rows(DEMO.split("| setting")[0])
    folders = ("plain", "hint", "plain-at-its-best", "tempered", "best")
    for folder, row in zip(folders, rows, strict=True):
        (kept,) = find_results(ROOT / "results" / "demo" / f"{folder}.runs.json")
        shown = [
            f"{100 * kept.curves['uniform'][int(length)].accuracy:.1f}" for length in header[4:]
        ]
        assert row[4:] == shown, folder


@pytest.mark.parametrize("name", [name for name in ENTRIES if measured(name)])
def test_the_results_of_recipes_are_what_was_measured(name: str) -> None:
    known = measured(name)
    assert known is not None
    said = re.findall(r"([\d.]+)% at (?:length )?(\d+)", known.result)
    assert said
    arm = Arm("it", find_recipe(name))
    one = Experiment("one", "", (arm,), [int(length) for _, length in said])
    (finding,) = find_all(RESULTS, [one])
    for percent, length in said:
        cell = finding.cell(arm, Panel(), int(length))
        assert cell is not None
        digits = len(percent.split(".")[1]) if "." in percent else 0
        assert percent == f"{100 * fmean(cell.means):.{digits}f}", (name, length)


def test_the_package_lists_recipes_as_results_have_them() -> None:
    """Times and results are kept in results/; the package has a copy."""
    assert json.loads(MEASURED.read_text()) == fill_pages.measured_recipes()
    assert set(fill_pages.measured_recipes()) <= set(ENTRIES)


def test_remarks_are_on_experiments_that_exist() -> None:
    assert set(read_remarks(REPRODUCED)) <= set(NAMED)


def test_results_are_packed_already(tmp_path: Path) -> None:
    """Packing what is packed changes nothing, and every number is the same."""
    pack_results.pack(REPRODUCED, tmp_path / "again")
    known = {f"{arm.name}.runs.json" for one in EXPERIMENTS.values() for arm in one.arms}
    for path in REPRODUCED.glob("*.runs.json"):
        assert path.name in known
        assert _packed(tmp_path / "again" / path.name) == _packed(path)


def _packed(path: Path) -> dict[str, Any]:
    """What a file of results says, its recipe in today's form."""
    content: dict[str, Any] = json.loads(path.read_text())
    return {**content, "recipe": Recipe.from_json(content["recipe"])}


def test_the_minutes_of_the_headline_are_what_was_measured() -> None:
    assert (
        f"about {['eight', 'nine', 'ten'][round(TIMES['sort/best']['minutes']) - 8]} minutes on "
        "one core" in README
    )


@pytest.mark.parametrize("page", fill_pages.pages(), ids=lambda page: page.name)
def test_the_generated_parts_of_pages_are_what_was_measured(page: Path) -> None:
    text = page.read_text()
    assert fill_pages.filled(text) == text
