"""One pass against slow greedy decoding, on the same examples, verdict by verdict and token by
token.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import (
    beginnings,
    best_bite,
    can_be_cut,
    decode_failed,
    evaluate,
    judge,
    score,
)
from taskhint.evaluation.results import find_results
from taskhint.evaluation.summary import summarise
from taskhint.runs.curve import LengthCurve, Score, load_curves, save_curve
from taskhint.runs.run import Run, new_decoder
from taskhint.runs.shares import KeptShare, load_shares, save_shares
from taskhint.system.errors import UserError
from taskhint.system.stats import OverSeeds
from taskhint.tasks import Increment, Sort, Task
from taskhint.training.loop import train
from tests.conftest import small
from tests.reference import slow_greedy
from tools.pack_results import pack

LENGTHS = (1, 2, 3, 5, 8, 12, 16, 20)


def levenshtein(a: list[int], b: list[int]) -> int:
    """The textbook table."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def compare(run: Run, task: Task, lengths: tuple[int, ...], count: int) -> tuple[int, int]:
    """How many answers were right and wrong; fails where the pass and slow decoding differ."""
    right = wrong = 0
    for length in lengths:
        examples = fresh_examples(task, run.recipe.seed, length, 0, count)
        verdicts = judge(run.model, task, examples)
        failed = decode_failed(run.model, task, examples, verdicts)
        distance = 0
        for row in range(count):
            prompt, size = int(examples.prompts[row]), int(examples.sizes[row])
            tokens = examples.tokens[row].tolist()
            slow = slow_greedy(
                run.model, task.kind, tokens[:prompt], size - prompt, int(examples.inputs[row])
            )
            is_right = slow == tokens[prompt:size]
            assert is_right == (verdicts.first_error[row] < 0)
            assert is_right or failed[row] == slow
            right, wrong = right + is_right, wrong + (not is_right)
            distance += levenshtein(slow, tokens[prompt:size])
        curve = evaluate(run, [length], examples=count, edit_distance=True)
        assert curve[length].right == int((verdicts.first_error < 0).sum())
        assert curve[length].edit_distance == pytest.approx(distance / count)
    return right, wrong


def test_one_pass_equals_slow_greedy_decoding_on_2000_examples(sorter: Run) -> None:
    right, wrong = compare(sorter, sorter.task.for_test("uniform"), LENGTHS, 250)
    assert right + wrong == 2000
    assert right > 300 and wrong > 300  # both kinds were compared


def test_answers_of_different_lengths_are_judged_too(tmp_path: Path) -> None:
    """Numbers of nines have one digit more in their answer."""
    run = train(small("increment/tempered"), tmp_path / "run")
    task = Increment(nines=1.0)
    examples = fresh_examples(task, 0, 3, 0, 60)
    assert len(set(examples.sizes.tolist())) == 2
    verdicts = judge(run.model, task, examples)
    failed = decode_failed(run.model, task, examples, verdicts)
    for row, answer in failed.items():
        prompt, size = int(examples.prompts[row]), int(examples.sizes[row])
        slow = slow_greedy(
            run.model, "increment", examples.tokens[row, :prompt].tolist(), size - prompt, 3
        )
        assert answer == slow
    assert set(failed) == set(np.flatnonzero(verdicts.first_error >= 0).tolist())


def test_chunks_do_not_change_the_result(sorter: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate(sorter, [10], examples=100)[10]
    monkeypatch.setattr("taskhint.evaluation.exact.TOKENS_AT_ONCE", 70)
    assert evaluate(sorter, [10], examples=100)[10] == whole


@pytest.mark.parametrize("length", [8, 16, 24])
def test_not_reading_on_behind_an_error_changes_no_verdict(
    sorter: Run, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the part of the answer that is judged first, and also where it is chosen by
    itself.
    """
    task = sorter.task.for_test("uniform")
    right = int(
        (judge(sorter.model, task, fresh_examples(task, 0, length, 0, 300)).first_error < 0).sum()
    )
    monkeypatch.setattr("taskhint.evaluation.exact.TOKENS_AT_ONCE", 40 * length)
    assert score(sorter.model, task, 0, length, 300, edit_distance=False).right == right
    for bite in (1, 2, length // 2, length):
        monkeypatch.setattr("taskhint.evaluation.exact.best_bite", lambda *_, bite=bite: bite)
        assert score(sorter.model, task, 0, length, 300, edit_distance=False).right == right


def test_the_part_that_is_judged_first_goes_by_the_first_errors() -> None:
    examples = fresh_examples(Sort(), 0, 64, 0, 10)
    assert best_bite(examples, np.full(10, -1)) is None, "all right: all at once"
    assert best_bite(examples, np.full(10, 60)) is None, "all wrong, but late"
    assert best_bite(examples, np.full(10, 3)) == 4
    assert best_bite(examples, np.full(10, 4)) == 8
    assert best_bite(examples, np.array([3] * 9 + [-1])) == 4
    single = fresh_examples(Sort(), 0, 1, 0, 10)
    assert best_bite(single, np.zeros(10, dtype=np.int64)) is None, "one token has no beginning"


def test_a_beginning_is_the_example_cut_short() -> None:
    task = Increment(nines=1.0)
    examples = fresh_examples(task, 0, 3, 0, 60)
    cut = beginnings(examples, 3)
    assert set((cut.sizes - cut.prompts).tolist()) == {3}
    np.testing.assert_array_equal(cut.tokens, examples.tokens[:, : cut.tokens.shape[1]])
    assert (beginnings(examples, 9).sizes == examples.sizes).all()
    assert not can_be_cut(
        new_decoder(small("sort/standard").with_settings(["model.temperature=log-sequence"])), task
    )


def test_of_two_scores_the_one_that_says_more_is_kept(tmp_path: Path) -> None:
    def keep(**scores: Score) -> dict[int, Score]:
        curve = LengthCurve(
            "run",
            "sort/standard",
            "sort",
            "uniform",
            0,
            1,
            {int(n[1:]): s for n, s in scores.items()},
        )
        save_curve(tmp_path, curve)
        return load_curves(tmp_path)[0].scores

    keep(n5=Score(100, 90, 0.5), n6=Score(100, 80), n7=Score(100, 70))
    found = keep(n5=Score(100, 90), n6=Score(1000, 810), n7=Score(10, 7, 0.1), n8=Score(10, 5))
    assert found == {
        5: Score(100, 90, 0.5),
        6: Score(1000, 810),
        7: Score(100, 70),
        8: Score(10, 5),
    }
    assert keep(n6=Score(1000, 805))[6] == Score(1000, 805), "measured anew"


def test_intervals_are_wilsons() -> None:
    low, high = Score(100, 90).interval
    z, p, n = 1.959964, 0.9, 100
    centre, half = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    assert low == pytest.approx((centre - half) / (1 + z * z / n), abs=1e-6)
    assert high == pytest.approx((centre + half) / (1 + z * z / n), abs=1e-6)
    assert Score(1000, 0).interval.low == 0.0
    assert Score(1000, 1000).interval.high == 1.0


def test_results_are_kept_with_the_run_by_length(tmp_path: Path) -> None:
    run = train(small("sort/standard"), tmp_path / "run")
    evaluate(run, [2, 3], examples=20)
    evaluate(run, [3, 4], examples=30, distribution="rep:2")
    evaluate(run, [4], examples=30)
    uniform = {curve.distribution: curve for curve in load_curves(run.path)}["uniform"]
    assert {length: score.examples for length, score in uniform.scores.items()} == {
        2: 20,
        3: 20,
        4: 30,
    }
    path = run.path / "evaluations" / "step-00000040" / "uniform.json"
    assert LengthCurve.from_json(json.loads(path.read_text()), "x") == uniform


def test_seeds_are_averaged_and_other_recipes_stand_apart(tmp_path: Path) -> None:
    accuracies = []
    for seed in (0, 1, 2):
        run = train(
            small("sort/standard", steps=3, warmup_steps=0, seed=seed), tmp_path / f"seed-{seed}"
        )
        accuracies.append(evaluate(run, [1], examples=50)[1].accuracy)
    evaluate(train(small("sort/standard"), tmp_path / "longer"), [1], examples=50)
    series = {one.label: one for one in summarise(find_results(tmp_path))}
    assert set(series) == {"sort/standard, 3 updates", "sort/standard, 40 updates"}
    accuracy = series["sort/standard, 3 updates"].points[1].accuracy
    assert accuracy == OverSeeds(tuple(accuracies), (50, 50, 50))


def test_a_run_that_stands_twice_counts_once(tmp_path: Path) -> None:
    run = train(small("sort/standard"), tmp_path / "run")
    evaluate(run, [1, 2], examples=50)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    evaluate(run, [2], examples=60)
    (series,) = summarise(find_results(tmp_path))
    assert {n: p.accuracy.sequences for n, p in series.points.items()} == {1: (50,), 2: (60,)}


def test_results_are_packed_and_read_again(tmp_path: Path) -> None:
    for seed in (0, 1):
        run = train(small("sort/standard", seed=seed), tmp_path / "a" / "tiny" / f"seed-{seed}")
        evaluate(run, [1, 2], examples=20, edit_distance=True)
        save_shares(run.path, 40, 10, {"copy": {2: 0.25}})
    (path,) = pack(tmp_path / "a", tmp_path / "b")
    assert path.name == "tiny.runs.json"
    assert "environment" in json.loads(path.read_text())["seeds"]["1"]
    once = path.read_bytes()
    pack(tmp_path / "a", tmp_path / "b")
    assert path.read_bytes() == once, "packing again changes nothing"
    before, after = find_results(tmp_path / "a"), find_results(tmp_path / "b")
    for one, other in zip(before, after, strict=True):
        assert one.recipe == other.recipe
        assert one.mechanisms == other.mechanisms
        assert {n: c.scores for n, c in one.curves.items()} == {
            n: c.scores for n, c in other.curves.items()
        }
    assert find_results(path) == after, "one file alone, too"


def test_what_cannot_be_read_is_skipped_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(small("sort/standard", steps=1, warmup_steps=0), tmp_path / "good")
    evaluate(run, [1], examples=5)
    for name in ("bad", "odd", "worse"):
        shutil.copytree(tmp_path / "good", tmp_path / name)
    (tmp_path / "bad" / "recipe.json").write_text("{")
    odd = (tmp_path / "odd" / "recipe.json").read_text()
    (tmp_path / "odd" / "recipe.json").write_text(odd.replace('"sort",', '"mine",', 1))
    next((tmp_path / "worse" / "evaluations").rglob("*.json")).write_text("[]")
    (tmp_path / "x.runs.json").write_text('{"seeds": {"a": 1}, "recipe": {}}')
    assert [one.path.name for one in find_results(tmp_path)] == ["good"]
    said = capsys.readouterr().err
    for text in ("bad/recipe.json is damaged", "--import", "not an evaluation", "x.runs.json"):
        assert text in said
    shutil.rmtree(tmp_path / "good")
    with pytest.raises(UserError, match="damaged"):
        find_results(tmp_path)


def test_shares_of_several_probings_stand_beside_each_other(tmp_path: Path) -> None:
    save_shares(tmp_path, 5, 100, {"copy": {10: 0.5, 20: 0.25}})
    save_shares(tmp_path, 5, 50, {"copy": {20: 0.5, 30: 0.75}, "minimum": {10: 1.0}})
    assert load_shares(tmp_path).shares == {
        "copy": {
            10: KeptShare(0.5, 100),
            20: KeptShare(0.25, 100),
            30: KeptShare(0.75, 50),
        },
        "minimum": {10: KeptShare(1.0, 50)},
    }
    save_shares(tmp_path, 6, 10, {"copy": {10: 0.0}})
    assert load_shares(tmp_path).shares == {"copy": {10: KeptShare(0.0, 10)}}, "another checkpoint"


def test_shares_of_version_0_1_are_read(tmp_path: Path) -> None:
    old = {"step": 3, "examples": 200, "shares": {"copy": {"10": 0.5}}}
    (tmp_path / "mechanisms.json").write_text(json.dumps(old))
    assert load_shares(tmp_path).shares == {"copy": {10: KeptShare(0.5, 200)}}
    for damaged in ("[]", '{"shares": 3}', '{"examples": 9, "shares": {"copy": {"10": 2.0}}}'):
        (tmp_path / "mechanisms.json").write_text(damaged)
        with pytest.raises(UserError, match="damaged"):
            load_shares(tmp_path)


def test_reports_and_lists_need_no_torch(tmp_path: Path) -> None:
    run = train(small("sort/standard", steps=1, warmup_steps=0), tmp_path / "run")
    evaluate(run, [1], examples=5)
    write = ["report", str(tmp_path), "--out", str(tmp_path / "report.html")]
    for arguments in (["list"], ["list", "--markdown"], write):
        code = (
            "import sys; from taskhint.cli import main; code = main(sys.argv[1:]); "
            "sys.exit(code or 'torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True)
        assert done.returncode == 0, (arguments, done.stderr)


def test_memory_of_long_sequences_is_bounded(sorter: Run) -> None:
    """A thousand symbols at once work; the chunk is one sequence then."""
    assert evaluate(sorter, [1000], examples=2)[1000].examples == 2


@pytest.mark.parametrize("lengths", [[], [0], [5, -1]])
def test_impossible_lengths_are_refused(sorter: Run, lengths: list[int]) -> None:
    with pytest.raises(UserError, match="lengths"):
        evaluate(sorter, lengths)


@pytest.mark.parametrize("text", ["[]", "{}", '{"lengths": 3}', '{"run": 1, "lengths": {}}'])
def test_a_damaged_evaluation_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="damaged"):
        LengthCurve.from_json(json.loads(text), "file")


def test_solve_decodes_greedily(sorter: Run) -> None:
    assert sorter.solve([5, 17, 3, 17]) == [3, 5, 17, 17]
    assert torch.is_grad_enabled()
