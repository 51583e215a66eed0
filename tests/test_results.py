"""What results/ promises: the experiments that it names are there in full, and the texts say what
it says.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from statistics import fmean

import pytest

from taskhint.evaluation.curve import load_curves
from taskhint.evaluation.exact import score
from taskhint.experiments import EXPERIMENTS
from taskhint.experiments.experiment import Arm, Experiment, Panel
from taskhint.experiments.findings import find_all
from taskhint.experiments.marker import read_marker
from taskhint.recipes import ENTRIES
from taskhint.report.page import write_report
from taskhint.runs.run import load
from tools import fill_results

ROOT = Path(__file__).parent.parent
REPRODUCED = ROOT / "results" / "reproduce"
NAMED = read_marker(REPRODUCED)[1]
README = (ROOT / "README.md").read_text()
TIMES = json.loads((ROOT / "results" / "times.json").read_text())["recipes"]


@pytest.mark.parametrize("name", NAMED)
def test_every_number_of_an_experiment_has_its_seeds(name: str) -> None:
    experiment = EXPERIMENTS[name]
    (finding,) = find_all(REPRODUCED, [experiment])
    wanted = 5 if name.endswith("-best") else 3
    for arm in experiment.arms:
        for panel in experiment.panels:
            for length in experiment.lengths:
                cell = finding.cell(arm.label, panel, length)
                assert cell is not None and len(cell.values) >= wanted, (arm.label, panel, length)


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
    (finding,) = find_all(REPRODUCED, [EXPERIMENTS[name]])
    (measured,) = (
        one for one in next(iter(finding.seeds.values())) if one.seed == run.recipe.seed
    )
    assert found.interval[0] <= measured.curves["uniform"][length].accuracy <= found.interval[1]
    assert found.accuracy > 0.99


def table_rows(text: str) -> list[list[str]]:
    lines = (line for line in text.splitlines() if line.startswith("| ") and "---" not in line)
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def test_the_headline_table_is_what_was_measured() -> None:
    (finding,) = find_all(REPRODUCED, [EXPERIMENTS["sort-best"]])
    part = README.split("## The result")[1].split("## ")[0]
    header, *rows = table_rows(part)
    assert len(rows) == 5
    for distribution, *texts in rows:
        panel = Panel("accuracy", re.sub(r"rep\(i, (\d)\)", r"rep:\1", distribution))
        for length, text in zip(header[1:], texts, strict=True):
            cell = finding.cell("sort/best", panel, int(length))
            assert cell is not None
            digits = len(text.split()[0].split(".")[1])
            assert text == f"{100 * cell.mean:.{digits}f} ({100 * min(cell.values):.{digits}f})", (
                distribution,
                length,
            )


def test_the_table_of_the_demo_is_what_was_measured() -> None:
    part = README.split("## What the demo shows")[1].split("## ")[0]
    header, *rows = table_rows(part)
    folders = (
        "plain",
        "plain-half",
        "successor",
        "tempered",
        "tempered-half",
        "successor-tempered",
    )
    for folder, row in zip(folders, rows, strict=True):
        curves = {
            curve.distribution: curve for curve in load_curves(ROOT / "results" / "demo" / folder)
        }
        shown = [f"{100 * curves['uniform'][int(length)].accuracy:.1f}" for length in header[3:]]
        assert row[3:] == shown, folder


@pytest.mark.parametrize("name", [name for name in ENTRIES if ENTRIES[name].result])
def test_the_results_of_recipes_are_what_was_measured(name: str) -> None:
    one = Experiment("one", "", (Arm("it", name),), (Panel("accuracy"),), (20,), ())
    findings = find_all(REPRODUCED, [one])
    said = re.findall(r"([\d.]+)% at (?:length )?(\d+)", ENTRIES[name].result)
    assert said
    for percent, length in said:
        cell = findings[0].cell("it", Panel("accuracy"), int(length))
        assert cell is not None
        digits = len(percent.split(".")[1]) if "." in percent else 0
        assert percent == f"{100 * fmean(cell.values):.{digits}f}", (name, length)


@pytest.mark.parametrize("name", [name for name in ENTRIES if ENTRIES[name].result])
def test_the_minutes_of_recipes_are_what_was_measured(name: str) -> None:
    assert ENTRIES[name].minutes == round(TIMES[name]["minutes"], 1)


def test_the_minutes_of_the_headline_are_what_was_measured() -> None:
    assert (
        f"about {['eight', 'nine', 'ten'][round(TIMES['sort/best']['minutes']) - 8]} minutes on "
        "one core" in README
    )


@pytest.mark.parametrize("page", fill_results.PAGES, ids=lambda page: page.name)
def test_the_pages_on_experiments_are_what_was_measured(page: Path) -> None:
    found = {
        finding.experiment.name: finding for finding in find_all(REPRODUCED, EXPERIMENTS.values())
    }
    text = page.read_text()
    assert fill_results.filled(text, found) == text
