"""How far a run reaches, against trying every length."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskhint.cli import main
from taskhint.evaluation.exact import evaluate
from taskhint.evaluation.reach import last_that_holds, reach
from taskhint.evaluation.results import find_results
from taskhint.runs.curve import Score, load_curves
from taskhint.runs.reach import KeptReaches, Reach, load_reaches
from taskhint.runs.run import Run
from taskhint.system.errors import UserError
from tests.conftest import small
from tools.pack_results import pack


def counted(holds: Callable[[int], bool]) -> tuple[Callable[[int], bool], set[int]]:
    asked: set[int] = set()

    def ask(length: int) -> bool:
        asked.add(length)
        return holds(length)

    return ask, asked


@given(st.integers(0, 3000), st.integers(1, 40), st.integers(1, 2000))
def test_the_end_is_found_where_accuracy_falls(end: int, start: int, longest: int) -> None:
    ask, asked = counted(lambda n: n <= end)
    found = last_that_holds(ask, shortest=1, start=start, longest=longest)
    true = min(end, longest)
    assert found <= true <= found + max(1, found // 100)
    assert found == true or true > 100
    assert found in asked | {0} and max(asked) <= longest
    doublings = max(0, (longest // min(start, longest)).bit_length())
    assert len(asked) <= max(doublings + 8, start.bit_length() + 1)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_what_holds_more_often_reaches_as_far(answers: list[tuple[bool, bool]]) -> None:
    """Also where accuracy goes up and down: so an interval always holds its reach."""
    size = len(answers)
    strict = last_that_holds(lambda n: all(answers[n - 1]), shortest=1, start=7, longest=size)
    loose = last_that_holds(lambda n: answers[n - 1][0], shortest=1, start=7, longest=size)
    assert strict <= loose


def test_nothing_shorter_than_the_shortest_is_asked_for() -> None:
    ask, asked = counted(lambda n: False)  # noqa: ARG005
    assert last_that_holds(ask, shortest=5, start=20, longest=90) == 0
    assert min(asked) == 5


@pytest.fixture
def copy(sorter: Run, tmp_path: Path) -> Path:
    shutil.copytree(sorter.path, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "evaluations", ignore_errors=True)
    return tmp_path / "run"


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_the_reach_of_a_run_is_that_of_its_curve(copy: Path, share: float) -> None:
    found = reach(copy, share, longest=16, examples=200)
    curve = evaluate(copy, range(1, 17), examples=200, save=False)
    assert 0 < found.low <= found.length <= found.high < 16
    below = {n: score for n, score in curve.scores.items() if n > found.length}
    assert curve[found.length].accuracy >= share > below[found.length + 1].accuracy
    assert curve[found.low].interval.low >= share > curve[found.low + 1].interval.low
    assert curve[found.high].interval.high >= share > curve[found.high + 1].interval.high
    (kept,) = load_curves(copy)
    assert tuple(sorted(kept.scores)) == found.measured
    assert all(kept[n] == curve[n] for n in found.measured)
    assert load_reaches(copy).at(share) == found


def test_a_reach_that_ends_with_the_search_says_so(copy: Path) -> None:
    found = reach(copy, 0.01, longest=3, examples=50)
    assert found.censored and found.length == 3
    assert "at least 3 (" in str(found)


def test_a_model_that_knows_nothing_reaches_nothing(tmp_path: Path) -> None:
    from taskhint.training.loop import train

    run = train(small("sort/standard", steps=1, warmup_steps=0), tmp_path / "run")
    found = reach(run, 0.9, longest=40, examples=20)
    assert (found.length, found.low, found.high) == (0, 0, 0)


def test_the_command_prints_and_keeps_it(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", str(copy), "--reach", "0.8", "--longest", "16", "--examples", "200"]
    assert main([*words, "--no-save"]) == 0
    text = capsys.readouterr().out
    assert not (copy / "reach.json").exists()
    assert main([*words, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    kept = load_reaches(copy).at(0.8)
    assert kept is not None and data["reach"]["length"] == kept.length
    assert f"reach of 80%: {kept.length} (95% interval {kept.low}–{kept.high}" in text
    assert {int(n) for n in data["curve"]["lengths"]} == set(kept.measured)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give --lengths, or --reach"),
        (["--reach", "0.9", "--lengths", "5"], "give --lengths, or --reach"),
        (["--reach", "99"], "not in 0..1"),
        (["--reach", "far"], "not a number"),
        (["--lengths", "5", "--longest", "9"], "--longest goes with --reach"),
        (["--reach", "0.9", "--longest", "0"], "--longest 0 is not in 1"),
        (["--reach", "0.9", "--edit-distance"], "--edit-distance goes with --lengths"),
        (
            ["--reach", "0.001", "--distribution", "distinct", "--longest", "99"],
            "length 32 cannot be measured: there are no 32 distinct inputs",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    sorter: Run, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(sorter.path), "--examples", "400", *words]) == 2
    assert says in capsys.readouterr().err


def test_reaches_are_packed_with_the_results(copy: Path, tmp_path: Path) -> None:
    found = reach(copy, 0.8, longest=16, examples=50)
    reach(copy, 0.5, longest=16, examples=50)
    pack(copy.parent, tmp_path / "packed")
    (result,) = find_results(tmp_path / "packed")
    assert result.reaches.at(0.8) == found and result.reaches.at(0.5) is not None
    assert result.reaches.at(0.9) is None


def test_of_two_steps_the_later_counts() -> None:
    one = Reach(0.9, 5, 4, 6, 10, 100, (4, 5, 6))
    early, late = (KeptReaches(step, {"uniform": {"0.9": one}}) for step in (1, 2))
    assert early.merged(late) == late == late.merged(early) == late.merged(KeptReaches())
    with pytest.raises(UserError, match="not possible"):
        Reach(0.9, 5, 6, 7, 10, 100, (5,))


def test_score_is_asked_once_for_each_length(copy: Path) -> None:
    seen: list[tuple[int, Score]] = []
    found = reach(copy, 0.8, longest=16, examples=20, report=lambda *one: seen.append(one))
    assert sorted(n for n, _ in seen) == list(found.measured)
