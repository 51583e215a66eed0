"""The file of kept shares: nothing that was counted is erased, older files are read, no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskhint.probe.mechanisms import keep_mechanisms
from taskhint.probe.traced import Subject, traces
from taskhint.runs.run import Run
from taskhint.runs.shares import (
    NAME,
    SHARPEST,
    KeptShare,
    KeptShares,
    load_shares,
    save_shares,
)
from taskhint.system.errors import UserError
from taskhint.system.settings import conform, to_json


def test_two_experiments_keep_each_others_lengths(tmp_path: Path) -> None:
    save_shares(tmp_path, 7, 200, {"copy": {5: 0.5, 10: 0.25}})
    save_shares(tmp_path, 7, 100, {"copy": {20: 1.0}, "denoising": {5: 0.0}})
    assert load_shares(tmp_path).shares == {
        "copy": {5: KeptShare(0.5, 200), 10: KeptShare(0.25, 200), 20: KeptShare(1.0, 100)},
        "denoising": {5: KeptShare(0.0, 100)},
    }


def test_more_sequences_win_and_of_equally_many_the_newer(tmp_path: Path) -> None:
    for examples, share in ((200, 0.5), (100, 0.1)):
        save_shares(tmp_path, 7, examples, {"copy": {5: share}})
        assert load_shares(tmp_path).at("copy", 5) == KeptShare(0.5, 200)
    for examples, share in ((200, 0.6), (300, 0.7)):
        save_shares(tmp_path, 7, examples, {"copy": {5: share}})
        assert load_shares(tmp_path).at("copy", 5) == KeptShare(share, examples)


def test_shares_of_another_checkpoint_are_replaced(tmp_path: Path) -> None:
    save_shares(tmp_path, 7, 900, {"copy": {5: 0.5}})
    save_shares(tmp_path, 8, 100, {"copy": {10: 0.25}})
    assert load_shares(tmp_path) == KeptShares(8, {"copy": {10: KeptShare(0.25, 100)}})


def test_older_files_are_read_and_added_to(tmp_path: Path) -> None:
    older = {"step": 7, "examples": 200, "shares": {"copy": {"5": 0.5, "10": 1}}}
    (tmp_path / NAME).write_text(json.dumps(older))
    save_shares(tmp_path, 7, 50, {"copy": {10: 0.0, 20: 0.75}})
    assert load_shares(tmp_path) == KeptShares(
        7, {"copy": {5: KeptShare(0.5, 200), 10: KeptShare(1.0, 200), 20: KeptShare(0.75, 50)}}
    )


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"step": 1, "examples": 5, "shares": {"copy": {"5": 1.5}}}',
        '{"step": 1, "examples": 0, "shares": {"copy": {"5": 0.5}}}',
        '{"step": 1, "examples": 5, "shares": {"copy": 3}}',
        '{"step": 1, "examples": 5, "shares": []}',
        '{"step": 1, "shares": {"copy": {"x": {"share": 0.5, "examples": 5}}}}',
        '{"step": 1, "shares": {"copy": {"5": {"share": NaN, "examples": 5}}}}',
    ],
)
def test_a_damaged_file_is_one_line_and_does_not_stop_a_new_count(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(UserError, match="is damaged") as caught:
        load_shares(tmp_path)
    assert "\n" not in str(caught.value)
    save_shares(tmp_path, 1, 5, {"copy": {5: 0.5}})
    assert "only what is counted now is kept" in capsys.readouterr().err
    assert load_shares(tmp_path).at("copy", 5) == KeptShare(0.5, 5)


rows = st.dictionaries(
    st.integers(1, 9), st.builds(KeptShare, st.floats(0, 1), st.integers(1, 5)), max_size=4
)
kept = st.builds(KeptShares, st.just(3), st.dictionaries(st.sampled_from("abc"), rows, max_size=3))


@given(kept, kept)
def test_merging_loses_nothing(new: KeptShares, old: KeptShares) -> None:
    both = new.merged(old)
    for name in "abc":
        for length in range(1, 10):
            found = [share for one in (new, old) if (share := one.at(name, length))]
            best = max((share.examples for share in found), default=0)
            wanted = next((share for share in found if share.examples == best), None)
            assert both.at(name, length) == wanted
    assert conform(KeptShares, json.loads(json.dumps(to_json(both))), "x") == both


def test_counting_twice_adds_lengths(sorter: Run) -> None:
    keep_mechanisms(sorter, [2], 10)
    keep_mechanisms(sorter, [3, 4], 5)
    found = load_shares(sorter.path)
    assert {n: one.examples for n, one in found.shares["copy"].items()} == {2: 10, 3: 5, 4: 5}


def test_the_sharpest_head_is_kept_as_it_is_counted_by_hand(sorter: Run) -> None:
    keep_mechanisms(sorter, [5], 8)
    (traced,) = traces(Subject.of(sorter), 5, 8)
    weights = traced.trace[f"blocks.{sorter.recipe.model.depth - 1}.attention.weights"]
    heads = []
    for head in range(weights.shape[1]):
        largest = [
            max(
                float(weights[row, head, place][traced.tokens[row] == symbol].sum())
                for symbol in traced.tokens[row].unique()
            )
            for row in range(8)
            for place in range(traced.answer.start, traced.answer.stop)
        ]
        heads.append(sum(largest) / len(largest))
    kept = load_shares(sorter.path).at(SHARPEST, 5)
    assert kept is not None
    assert kept.share == pytest.approx(max(heads), abs=1e-6)


def test_reading_needs_no_torch() -> None:
    code = (
        "import sys, taskhint.runs.shares\nassert not {'torch', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
