"""The field's table: its arms, how far they reach, what theory says, and how it is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskhint.cli import main
from taskhint.cli.reproduce import find_experiments, jobs_for, reproduce
from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import judge
from taskhint.evaluation.results import Result, find_results
from taskhint.experiments import EXPERIMENTS, GROUPS
from taskhint.experiments.arm import Arm
from taskhint.experiments.experiment import Experiment
from taskhint.experiments.field import ROWS, SCHEMES, Row
from taskhint.experiments.field.peers import PEERS
from taskhint.experiments.field.row import TIMES
from taskhint.experiments.field.standing import Standing, agreement, predicted, standings
from taskhint.experiments.findings import Finding, find_all
from taskhint.experiments.quantity import REACH
from taskhint.model.decoder import Decoder
from taskhint.recipes import known
from taskhint.report.field_figures import SHADES, caption, figure_of, heat_map, shade
from taskhint.report.field_tables import reach_table, summary, theory_table
from taskhint.report.page import write_report
from taskhint.runs.curve import LengthCurve, Score
from taskhint.runs.shares import KeptShares
from taskhint.sweeps.local import LocalPool
from taskhint.system.drawing import as_svg
from taskhint.tasks import Copy, Majority, Sort, Task
from tests.experiments.field_results import write_results
from tools import field_parts

BY_NAME = {row.name: row for row in ROWS}
COPY, MODE, PARITY = (BY_NAME[f"field-{name}"] for name in ("copy", "mode", "parity"))


def findings_of(place: Path) -> list[Finding]:
    return find_all(find_results(place), GROUPS["field"])


@pytest.mark.parametrize("row", [row for row in ROWS if row.plain], ids=lambda row: row.name)
def test_every_scheme_has_room_for_the_longest_test(row: Row) -> None:
    for arm in row.arms.values():
        recipe = arm.at("pocket").change(width=16, heads=2, depth=1, mlp_width=16)
        longest = max(EXPERIMENTS[row.experiment].lengths)
        decoder = Decoder(recipe.model, recipe.task.vocab.size, recipe.tasks)
        decoder.initialise(0)
        judged = judge(decoder.eval(), recipe.task, fresh_examples(recipe.task, 0, longest, 0, 2))
        assert len(judged.first_error) == 2, arm.name


def test_arms_differ_in_what_their_row_and_column_say_alone() -> None:
    for row in ROWS:
        plain = next(one for one in ROWS if one.family == row.family)
        for scheme, arm in row.arms.items():
            recipe = arm.at("pocket")
            for other in (
                plain.arms["none"].at("pocket"),
                next(iter(row.arms.values())).at("pocket"),
            ):
                sizes = ("width", "depth", "heads", "mlp_width", "head_width", "normaliser")
                assert [getattr(recipe.model, one) for one in sizes] == [
                    getattr(other.model, one) for one in sizes
                ]
                budget = ("batch_size", "steps", "warmup_steps", "learning_rate", "optimiser")
                assert [getattr(recipe, one) for one in budget] == [
                    getattr(other, one) for one in budget
                ]
            assert recipe.model.temperature == SCHEMES[scheme].temperature
            same = (
                next(iter(row.arms.values()))
                .at("pocket")
                .change(model=recipe.model, task=recipe.task, hints=recipe.hints)
            )
            assert same == recipe


def test_only_primed_arms_see_longer_inputs_and_the_experiment_says_so(tmp_path: Path) -> None:
    for row in ROWS:
        primed = "primed" in row.training
        for arm in row.arms.values():
            assert (arm.at("pocket").beyond is not None) == primed
    write_results(tmp_path, lambda *_: 1.0, [BY_NAME["field-addition-primed"]], seeds=[0])
    (finding,) = findings_of(tmp_path)
    said = "primed (sees twice the length), RoPE saw inputs of up to 20 digits in an operand"
    assert said in finding.remark


def test_tests_go_from_half_to_five_times_the_training_lengths() -> None:
    for experiment in GROUPS["field"]:
        trained = experiment.arms[0].at("pocket").task.lengths.max_length
        assert experiment.lengths == tuple(round(times * trained) for times in TIMES)
        assert trained <= 20


def test_the_group_selects_all_of_its_experiments_and_a_name_one() -> None:
    names = [one.name for one in find_experiments(["field"], "pocket")]
    assert names == list(dict.fromkeys(row.experiment for row in ROWS))
    assert [one.name for one in find_experiments(["field-copy"], "pocket")] == ["field-copy"]
    assert find_experiments(["field", "field-copy"], "pocket") == list(GROUPS["field"])


def test_a_small_table_is_trained_measured_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = {"steps": 2, "batch_size": 4, "width": 16, "heads": 2, "depth": 1, "mlp_width": 16}
    arms = {
        scheme: Arm(arm.label, arm.at("pocket").change(**tiny), arm.name)
        for scheme, arm in COPY.arms.items()
        if scheme in ("none", "windows")
    }
    small = Experiment("field-copy", "?", list(arms.values()), (10, 20, 30), examples=10)
    row = Row(COPY.family, COPY.recipe, tuple(arms))
    row.arms.update(arms)
    monkeypatch.setattr("taskhint.experiments.field.standing.ROWS", (row,))
    for place in ("field_figures", "field_page", "field_tables"):
        monkeypatch.setattr(f"taskhint.report.{place}.ROWS", (row,))
    monkeypatch.setitem(EXPERIMENTS, "field-copy", small)
    reproduce([small], "pocket", 1, tmp_path, LocalPool())
    assert "2 runs, 0 of them done" in capsys.readouterr().out
    assert not any(job.measurements for job in jobs_for([small], "pocket", 1, tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert "Task × position scheme" in page and "training lengths not learned" in page


def curve(shares: dict[int, float]) -> LengthCurve:
    scores = {n: Score(100, round(100 * share)) for n, share in shares.items()}
    return LengthCurve(
        run="run", recipe="x", task="copy", seed=0, step=1, distribution="uniform", scores=scores
    )


@given(st.dictionaries(st.integers(1, 50), st.integers(0, 100), max_size=6), st.integers(1, 60))
def test_reach_is_the_end_of_an_unbroken_row_of_good_lengths(
    percents: dict[int, int], length: int
) -> None:
    shares = {n: percent / 100 for n, percent in percents.items()}
    recipe = COPY.arms["none"].at("pocket")
    result = Result(Path("run"), recipe, {"uniform": curve(shares)}, KeptShares())
    looked_at = [n for n in sorted(percents) if n <= length]
    found = REACH.read(result, "uniform", length)
    if not looked_at:
        assert found is None
        return
    expected = 0
    for n in looked_at:
        if percents[n] < 90:
            break
        expected = n
    assert found is not None and found.mean == expected


@given(st.lists(st.sampled_from([0, 10, 20, 30, 40, 60, 100]), min_size=1, max_size=5))
def test_a_standing_is_the_median_seed_and_names_the_others(reaches: list[int]) -> None:
    standing = Standing(tuple(reaches), 20, 100)
    middle = median_low(reaches)
    assert standing.times == (middle / 20 if middle >= 20 else 0.0)
    assert standing.learned == len([reach for reach in reaches if reach >= 20])
    if not standing.learned:
        assert standing.text == "not learned"
    elif len(set(reaches)) == 1:
        assert standing.text == f"{reaches[0] / 20:g}×"
    else:
        assert standing.text.startswith(
            f"{standing.times:g}×" if standing.times else "not learned"
        )


def test_theory_agrees_or_not_and_an_unlearned_task_tells_nothing() -> None:
    carried, failed, unlearned = (Standing((n,), 20, 100) for n in (60, 20, 10))
    assert predicted(MODE, "none") is True and predicted(COPY, "none") is False
    assert predicted(COPY, "offset") is True and predicted(COPY, "rope") is None
    assert predicted(BY_NAME["field-copy-hint-next"], "none") is None
    assert agreement(MODE, "none", carried) == agreement(COPY, "none", failed) == "agrees"
    assert agreement(MODE, "none", failed) == agreement(COPY, "none", carried) == "disagrees"
    assert agreement(MODE, "none", unlearned) == "inconclusive"
    assert agreement(MODE, "rope", carried) is None and agreement(MODE, "none", None) is None


def test_the_table_shows_every_row_that_was_measured(tmp_path: Path) -> None:
    def reaches(row: Row, scheme: str, seed: int) -> float | None:
        if scheme == "fire":
            return None
        return 0.5 if row is PARITY else 3.0 if scheme == "none" and seed else 1.0

    write_results(tmp_path, reaches, [COPY, PARITY, MODE])
    table = standings(findings_of(tmp_path))
    assert list(table) == [COPY, PARITY, MODE]
    assert set(table[COPY]) == set(COPY.schemes) - {"fire"}
    assert table[COPY]["none"].reaches == (20, 60, 60)
    header, rows = reach_table(table)
    copy, parity, _ = (dict(zip(header, row, strict=True)) for row in rows)
    assert copy["no positions"] == "3× (1 to 3)" and copy["RoPE"] == "1×"
    assert set(parity.values()) == {"parity", "not learned", ""}
    verdicts = {(row[0], row[1]): row[-1] for row in theory_table(table)[1]}
    assert verdicts["copy", "no positions"] == "disagrees"
    assert verdicts["mode", "no positions"] == "agrees"
    assert verdicts["parity", "no positions"] == "inconclusive"
    assert verdicts["reverse", "no positions"] == ""
    pairs = sum(len(cells) for cells in table.values())
    assert f"Of {pairs} pairs" in summary(table) and "2 stay above 90%" in summary(table)


def test_the_heat_map_has_a_cell_for_every_arm_and_hatches_what_was_not_learned(
    tmp_path: Path,
) -> None:
    write_results(tmp_path, lambda row, *_: 0.5 if row is PARITY else 5.0, [PARITY, MODE])
    findings = findings_of(tmp_path)
    figure = heat_map(standings(findings))
    patches = figure.axes[0].patches
    hatched = [patch for patch in patches if patch.get_hatch()]
    assert len(hatched) == len(PARITY.schemes)
    assert len(patches) == len(hatched) + len(MODE.schemes)
    assert "mode" in as_svg(figure) and "training lengths not learned" in as_svg(figure)
    assert "best of 3 seeds" in as_svg(figure) and "1,000 sequences" in as_svg(figure)
    shades = [shade(times) for times in TIMES if times >= 1]
    assert tuple(shades) == SHADES and shade(7) == SHADES[-1]


def test_the_accuracies_of_a_task_have_a_row_for_every_arm(tmp_path: Path) -> None:
    write_results(tmp_path, lambda row, *_: 0.5 if row is PARITY else 5.0, [PARITY, MODE])
    for finding in findings_of(tmp_path):
        (axes,) = figure_of(finding).axes
        arms, lengths = finding.experiment.arms, finding.experiment.lengths
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            arm.label for arm in arms
        ]
        shown = [text.get_text() for text in axes.texts if text.get_text() != "trained up to here"]
        (panel,) = finding.panels.values()
        curves = [panel.curves[arm] for arm in arms]
        means = [100 * curve[n].mean for curve in curves for n in lengths if n in curve]
        assert means
        assert list(map(float, shown)) == pytest.approx(means, abs=0.05)


def test_the_report_has_the_table_and_a_section_for_every_task_without_torch(
    tmp_path: Path,
) -> None:
    write_results(tmp_path, lambda *_: 2.5, [COPY, MODE], seeds=[0, 1])
    out = tmp_path / "page.html"
    code = (
        "import sys; from pathlib import Path; from taskhint.report.page import write_report; "
        f"write_report(Path({str(tmp_path)!r}), Path({str(out)!r})); print('torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
    page = out.read_text()
    for text in (
        "Task × position scheme",
        'class="wide map"',
        'id="field-copy"',
        'id="field-mode"',
        "98.7",
        "2.5×",
    ):
        assert text in page
    assert "Huang et al. 2025" in page and "50, 50" in page


def test_the_caption_counts_the_seeds_that_there_are() -> None:
    one, three = Standing((20,), 20, 100), Standing((20, 60, 60), 20, 100)
    assert "Reach of 1 seed, " in caption({COPY: {"none": one}})
    assert "best of 3 seeds, " in caption({COPY: {"none": three}})
    assert "best of 1 to 3 seeds, " in caption({COPY: {"none": one, "rope": three}})


def test_a_report_without_the_field_has_no_table(tmp_path: Path) -> None:
    write_results(tmp_path, lambda *_: None)
    write_results(tmp_path / "b", lambda *_: 1.0, [COPY], seeds=[0])
    page = write_report(tmp_path / "b", tmp_path / "page.html", ["field-mode"]).read_text()
    assert "Task × position scheme" not in page


def test_peers_are_beside_arms_that_exist() -> None:
    for peer in PEERS:
        row = next(row for row in ROWS if row.label == peer.row)
        assert peer.scheme in row.schemes and peer.times in TIMES


def test_what_is_known_comes_from_results_and_else_from_theory() -> None:
    reaches = {"copy": {"none": 0.0, "RoPE": 1.0, "ALiBi": 2.5, "NAPE": 5.0}}
    assert known.known_to_carry(Copy, reaches) == "carries with NAPE 5×; ALiBi 2.5×"
    assert known.known_to_carry(Majority, reaches) == "theory: carries without positions"
    one = known.known_to_carry(Copy, {"copy": {"none": 0.0, "rope": 1.0}})
    assert one == "carries under none of 2 schemes (1 learn the training lengths)"


def test_the_file_of_what_is_known_is_about_tasks_and_schemes_that_exist() -> None:
    for kind, tried in known.measured_reaches().items():
        assert kind in Task.kinds() and set(tried) <= {one.label for one in SCHEMES.values()}


def test_list_groups_tasks_by_family_with_what_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("  copying")
    assert lines[start + 1].startswith("    copy ") and lines[start + 3].startswith("    reverse ")
    assert all(known.known_to_carry(task) in "\n".join(lines) for task in (Copy, Majority, Sort))


def test_the_page_of_the_docs_is_filled_with_or_without_results(tmp_path: Path) -> None:
    assert "Not measured yet" in (field_parts.part("table", {}) or "")
    assert "not measured" in (field_parts.part("published", {}) or "")
    write_results(tmp_path, lambda *_: 3.0, [COPY], seeds=[0, 1])
    findings = {one.experiment.name: one for one in findings_of(tmp_path)}
    table = field_parts.part("table", findings) or ""
    assert field_parts.FIGURE in table and "| copy | 3× |" in table
    assert "95.0 (" in (field_parts.part("published", findings) or "")
    assert "| agrees |" in (field_parts.part("theory", findings) or "")
    assert field_parts.figure(findings).startswith(b"\x89PNG")
    assert field_parts.part("other", findings) is None
