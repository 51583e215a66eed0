"""Damaged checkpoints, half-written metrics, a full disk, a read-only directory, losses that are
not finite.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from taskhint.cli import main
from taskhint.evaluation.exact import evaluate
from taskhint.runs.checkpoint import MANIFEST, OPTIMISER, STATE, WEIGHTS, Checkpoint
from taskhint.runs.curve import load_curves
from taskhint.runs.run import Run, create, load, new_decoder, save_checkpoint
from taskhint.system.errors import DivergedError, MachineError, UserError
from taskhint.training.loop import batch_for, train
from tests.runs.reliability import command, contents, tiny

HERE = Path(__file__).parents[2]
FILES = (WEIGHTS, OPTIMISER, STATE, MANIFEST)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tiny(), tmp_path_factory.mktemp("runs") / "finished")


@pytest.fixture
def copy(finished: Run, tmp_path: Path) -> Path:
    """A copy of a run of 12 steps with the checkpoints of steps 8 and 12."""
    shutil.copytree(finished.path, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", [truncated, emptied, flipped, Path.unlink])
def test_a_damaged_file_makes_the_run_fall_back(
    finished: Run,
    copy: Path,
    name: str,
    harm: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    harm(copy / "checkpoints" / "step-00000012" / name)
    assert load(copy).checkpoint.step == 8
    assert "WARNING" in capsys.readouterr().err
    train(tiny(), copy)
    warning = capsys.readouterr().err
    assert (
        "WARNING" in warning
        and "step-00000012 is damaged" in warning
        and "falling back to step-00000008" in warning
    )
    after = {name: sha for name, sha in contents(copy).items() if ".damaged" not in name}
    assert after == contents(finished.path)
    assert (
        len(list((copy / "checkpoints").glob("step-00000012.damaged/*"))) >= 3
    )  # kept for whoever wants to look


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", [truncated, emptied, flipped, Path.unlink])
def test_with_no_whole_checkpoint_left_it_says_so_in_one_line(
    copy: Path, name: str, harm: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    for checkpoint in load(copy).checkpoints():
        harm(checkpoint.path / name)
    before = contents(copy)
    assert main(command(copy, tiny())) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no whole checkpoint left" in line and "step-00000012 is damaged" in line
    assert main(["evaluate", str(copy), "--lengths", "4", "--examples", "1"]) == 2
    assert contents(copy) == before


def test_every_byte_of_the_small_files_counts(finished: Run, tmp_path: Path) -> None:
    shutil.copytree(finished.path / "checkpoints" / "step-00000012", tmp_path / "step-00000012")
    checkpoint = Checkpoint(tmp_path / "step-00000012")
    for name in (STATE, MANIFEST):
        whole = (checkpoint.path / name).read_bytes()
        for place in range(len(whole)):
            data = bytearray(whole)
            data[place] ^= 1 << place % 8
            (checkpoint.path / name).write_bytes(bytes(data))
            assert checkpoint.damage(finished.recipe) is not None, (name, place)
        (checkpoint.path / name).write_bytes(whole)
    assert checkpoint.damage(finished.recipe) is None


def test_a_checkpoint_under_another_name_or_recipe_is_not_used(copy: Path) -> None:
    newest = load(copy).checkpoints()[-1].path
    newest.rename(newest.with_name("step-00000016"))
    assert load(copy).checkpoint.step == 8
    shutil.rmtree(newest.with_name("step-00000016"))
    data = json.loads((copy / "recipe.json").read_text())
    (copy / "recipe.json").write_text(json.dumps({**data, "learning_rate": 1.0}))
    with pytest.raises(UserError, match="another recipe"):
        _ = load(copy).checkpoint


def test_the_number_of_checkpoints_is_a_setting_and_can_change(tmp_path: Path) -> None:
    def steps(**changes: int) -> list[int]:
        return [
            checkpoint.step
            for checkpoint in train(tiny(**changes), tmp_path / "run").checkpoints()
        ]

    class StoppedError(Exception):
        pass

    def stop(step: int, loss: float) -> None:  # noqa: ARG001
        if step == 6:
            raise StoppedError

    with pytest.raises(StoppedError):
        train(tiny(checkpoint_every=1, keep_checkpoints=3), tmp_path / "run", report=stop)
    assert [checkpoint.step for checkpoint in load(tmp_path / "run").checkpoints()] == [4, 5, 6]
    assert steps(checkpoint_every=5, keep_checkpoints=1) == [12]


def test_a_damaged_newer_checkpoint_never_crowds_out_a_whole_one(copy: Path) -> None:
    emptied(copy / "checkpoints" / "step-00000012" / WEIGHTS)
    run = train(tiny(keep_checkpoints=1, checkpoint_every=3), copy)
    assert [checkpoint.step for checkpoint in run.checkpoints()] == [
        12
    ] and run.checkpoint.step == 12


@pytest.mark.parametrize("tail", [b'{"step": 13, "ta', b"\x00\xff\n", b'{"step": 99}\n' * 3])
def test_what_was_written_after_the_checkpoint_is_cut_off(
    finished: Run, copy: Path, tail: bytes
) -> None:
    shutil.rmtree(copy / "checkpoints" / "step-00000012")
    with (copy / "metrics.jsonl").open("ab") as file:
        file.write(tail)
    train(tiny(), copy)
    assert contents(copy) == contents(finished.path)


def test_lines_lost_from_the_metrics_are_told_and_the_whole_ones_kept(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(copy / "checkpoints" / "step-00000012")
    lines = (copy / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:20])
    train(tiny(), copy)
    assert "metrics.jsonl is damaged before step 8" in capsys.readouterr().err
    assert (copy / "metrics.jsonl").read_bytes() == b"".join(lines[:3] + lines[8:])


def test_a_resume_in_another_environment_warns_and_is_recorded(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(copy / "checkpoints" / "step-00000012")
    path = copy / "environment.json"
    history = json.loads(path.read_text())
    assert {
        "taskhint",
        "source",
        "git",
        "python",
        "torch",
        "numpy",
        "threads",
        "processor",
    } <= set(history["stretches"][0]["environment"])
    history["stretches"][0]["environment"] |= {"threads": 77, "torch": "1.0"}
    path.write_text(json.dumps(history))
    train(tiny(), copy)
    warning = capsys.readouterr().err
    assert (
        "torch 1.0 -> " in warning and "threads 77 -> " in warning and "no longer sure" in warning
    )
    assert [stretch["from_step"] for stretch in json.loads(path.read_text())["stretches"]] == [
        0,
        8,
    ]


def test_a_damaged_environment_is_told_and_written_anew(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(copy / "checkpoints" / "step-00000012")
    (copy / "environment.json").write_text("{")
    train(tiny(), copy)
    assert "environment.json is damaged" in capsys.readouterr().err
    assert json.loads((copy / "environment.json").read_text())["stretches"][0]["from_step"] == 8


def test_a_loss_that_is_not_finite_stops_before_the_weights_and_keeps_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny()
    plain = torch.nn.functional.cross_entropy
    calls = iter(range(100))

    def poisoned(*arguments: Any, **named: Any) -> torch.Tensor:
        return plain(*arguments, **named) * (float("inf") if next(calls) == 6 else 1.0)

    monkeypatch.setattr(torch.nn.functional, "cross_entropy", poisoned)
    with pytest.raises(
        DivergedError, match=r"step 6: loss inf.*stopped before the update.*failures/step-00000006"
    ):
        train(recipe, tmp_path / "run")
    kept = tmp_path / "run" / "failures" / "step-00000006"
    saved = safetensors.torch.load_file(kept / "batch.safetensors")
    assert torch.equal(saved["tokens"], batch_for(recipe, 6).tokens)
    about = json.loads((kept / "failure.json").read_text())
    assert (
        about["loss"] == "inf"
        and about["weights_not_finite"] == []
        and about["gradients_not_finite"] != []
    )
    assert load(tmp_path / "run").checkpoint.step == 4
    assert main(command(tmp_path / "run", recipe)) == 0  # it was not the weights: the run goes on


def test_diverging_training_exits_with_4_and_writes_no_bad_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hot = [*command(tmp_path / "run", tiny(checkpoint_every=1)), "--set", "learning_rate=1e30"]
    hot += ["--set", "optimiser.rest_rate=1e38"]
    assert main(hot) == 4
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "error" in line)
    assert "not finite" in line or "stopped before the update" in line
    for checkpoint in load(tmp_path / "run").checkpoints():
        for value in safetensors.torch.load_file(checkpoint.path / WEIGHTS).values():
            assert value.isfinite().all()


def test_a_run_without_optimiser_can_be_evaluated_but_not_trained_on(tmp_path: Path) -> None:
    run = create(tmp_path / "run", tiny())
    save_checkpoint(run, 0, dict(new_decoder(tiny()).named_parameters()), {})
    evaluate(tmp_path / "run", [4], 3)
    with pytest.raises(UserError, match="constructed, not trained"):
        train(tiny(), tmp_path / "run")


def test_two_evaluations_of_one_run_both_stay(copy: Path) -> None:
    evaluate(copy, [3], 2)
    evaluate(copy, [4], 2)
    (curve,) = load_curves(copy)
    assert set(curve.scores) == {3, 4}
    assert not list(copy.rglob("*.tmp"))


def driver(*arguments: object) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "tests.runs.reliability", *map(str, arguments)]
    return subprocess.run(
        run, cwd=HERE, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def assert_refused(code: int, errors: str, reason: str, run: Path) -> None:
    """One clear line, and the checkpoint of step 8 as it was, with nothing beside it."""
    assert code == MachineError.exit_code, errors
    ignored = ("sort/", "taskhint: WARNING: ")  # progress; the code may be edited while tests run
    (line,) = (line for line in errors.splitlines() if not line.startswith(ignored))
    assert line.startswith("taskhint: error: ") and "cannot be written" in line and reason in line
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-00000008"]
    assert load(run).checkpoint.step == 8


@pytest.fixture
def unfinished(copy: Path) -> Path:
    """A copy that lacks its last checkpoint."""
    shutil.rmtree(copy / "checkpoints" / "step-00000012")
    return copy


def test_where_a_file_cannot_grow_the_older_checkpoint_stays(
    finished: Run, unfinished: Path
) -> None:
    limit = (unfinished / "checkpoints" / "step-00000008" / WEIGHTS).stat().st_size - 1
    done = driver("limited", unfinished, limit)
    assert_refused(
        done.returncode, done.stderr, "step-00000012 cannot be written: File too large", unfinished
    )
    train(tiny(), unfinished)
    assert contents(unfinished) == contents(finished.path)


def test_in_a_directory_without_permission_the_older_checkpoint_stays(
    finished: Run, unfinished: Path
) -> None:
    """A real process that may not write: the driver gives up its privileges first if
    it has any.
    """
    done = driver("read-only", unfinished)
    assert_refused(done.returncode, done.stderr, "Permission denied", unfinished)
    train(tiny(), unfinished)
    assert contents(unfinished) == contents(finished.path)


@pytest.fixture
def small_disk(unfinished: Path) -> Iterator[Path]:
    """An unfinished run on a file system of its own, without room for another checkpoint."""
    room = sum(path.stat().st_size for path in unfinished.rglob("*")) + 30_000
    disk = unfinished.with_name("disk")
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting needs privileges")
    try:
        shutil.copytree(unfinished, disk / "run")
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_on_a_full_disk_the_older_checkpoint_stays(
    small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(command(small_disk / "run", tiny()))
    assert_refused(code, capsys.readouterr().err, "No space left on device", small_disk / "run")


def test_on_a_read_only_disk_the_older_checkpoint_stays(
    small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    code = main(command(small_disk / "run", tiny()))
    assert_refused(code, capsys.readouterr().err, "Read-only file system", small_disk / "run")
    assert (
        main(["evaluate", str(small_disk / "run"), "--lengths", "3", "--examples", "1"])
        == MachineError.exit_code
    )


def test_a_path_below_a_file_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(command(tmp_path / "file" / "run", tiny())) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
