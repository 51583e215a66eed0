"""What cannot be is refused in one line before anything is made; running out is exit code 3."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from taskhint.cli import main, one_line_errors
from taskhint.recipes import find_recipe
from taskhint.runs.curve import load_curves
from taskhint.runs.run import Run
from taskhint.system import memory
from taskhint.system.errors import MachineError, UserError
from taskhint.training import loop
from taskhint.training.limits import rough_examples, update_need
from taskhint.training.loop import train
from tests.runs.reliability import command, tiny

HERE = Path(__file__).parent.parent.parent


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tiny(), tmp_path_factory.mktemp("limits") / "run")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "batch_size=10000000"], "an update with 10000000 examples"),
        (["--set", "task.lengths.longest=100000"], "at most 100000 symbols takes about"),
        (["--set", "model.width=262144", "--set", "model.heads=1"], "GB"),
        (
            ["--set", "model.positions=learned", "--set", "model.positions.max_positions=10"],
            "the 10 learned positions",
        ),
        (["--threads", "0"], "argument --threads: 0 is not in 1..256"),
        (["--threads", "100000"], "argument --threads: 100000"),
    ],
)
def test_a_training_that_cannot_be_is_refused_and_leaves_nothing(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "run"
    assert main(["train", "sort/standard", "--out", str(out), "--steps", "2", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lengths", "5", "--examples", "1000000000000"], "too many; at most 4194304"),
        (["--lengths", "5", "--threads", "0"], "argument --threads: 0"),
        (["--lengths", "5000000"], "too long"),
        (["--lengths", "1-1000000000"], "more than 10000 lengths"),
    ],
)
def test_an_evaluation_that_cannot_be_is_refused(
    words: list[str], said: str, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(run.path), *words]) == 2
    assert said in capsys.readouterr().err


def test_an_evaluation_says_what_it_would_take(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 100_000_000)
    assert main(["evaluate", str(run.path), "--lengths", "60000"]) == 2
    assert "a sequence of length 60000 takes about" in capsys.readouterr().err


def test_an_answer_that_cannot_be_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", str(run.path), "5 " * 100]) == 0
    monkeypatch.setattr(memory, "available_bytes", lambda: 1_000_000)
    assert main(["solve", str(run.path), "5 " * 1000]) == 2
    assert "the answer to 1001 tokens takes about" in capsys.readouterr().err


def test_the_estimate_grows_with_what_it_estimates() -> None:
    recipe = find_recipe("sort/standard")
    needs = [update_need(recipe.change(batch_size=size)).bytes for size in (256, 512, 1024)]
    assert needs[2] - needs[1] == pytest.approx(2 * (needs[1] - needs[0]))
    wide = update_need(recipe.with_settings(["model.mlp_width=512"]))
    assert wide.bytes > needs[0] and wide.flops > update_need(recipe).flops


def test_rough_examples_are_those_of_the_task() -> None:
    """Sorting n symbols: n and ⊥, then n answers of which the last is never an input."""
    kinds = rough_examples(find_recipe("sort/standard").task)
    assert [kind.tokens for kind in kinds] == [2 * n for n in range(2, 21)]
    assert [kind.queries for kind in kinds] == list(range(2, 21))
    assert sum(kind.share for kind in kinds) == pytest.approx(1.0)


def test_the_limit_of_a_process_counts() -> None:
    """A child, because a limit cannot be taken back."""
    code = (
        "import resource; from taskhint.system.memory import available_bytes\n"
        "resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9)); print(available_bytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 10**9
    assert resource.getrlimit(resource.RLIMIT_AS)[0] != 10**9


@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_of_a_container_counts(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, usage = (
        ("memory.max", "memory.current")
        if version == 2
        else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    )
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (folder / limit).write_text("max\n")
    (folder / usage).write_text("5\n")
    (tmp_path / "a" / limit).write_text("1000\n")
    (tmp_path / "a" / usage).write_text("300\n")
    (tmp_path / "a" / "memory.stat").write_text("active_file 7\ninactive_file 100\n")
    assert list(memory._left(tmp_path, "/a/b", limit, usage)) == [800]
    monkeypatch.setattr(memory, "_of_control_groups", lambda: [800])
    assert memory.available_bytes() == 800


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        torch.OutOfMemoryError("CUDA out of memory."),
    ],
)
def test_out_of_memory_is_one_line(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise error

    assert one_line_errors(work) == 3
    said = capsys.readouterr().err
    assert said.startswith("taskhint: error: out of memory") and said.count("\n") == 1


def test_a_bug_keeps_its_traceback() -> None:
    def work() -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        one_line_errors(work)


@pytest.mark.parametrize("there", [False, True])
def test_a_run_that_fails_before_its_first_checkpoint_leaves_nothing(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "some" / "run"
    if there:
        out.mkdir(parents=True)
    real = loop.batch_for

    def failing(recipe: object, step: int) -> object:
        if step == 2:
            raise MemoryError
        return real(recipe, step)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "batch_for", failing)
    with pytest.raises(MachineError, match="out of memory"):
        train(tiny(), out)
    assert list(tmp_path.rglob("*")) == ([out.parent, out] if there else [])
    monkeypatch.setattr(loop, "batch_for", real)
    train(tiny(seed=5), out)  # the corrected command works


def test_a_run_that_fails_later_keeps_its_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loop.batch_for

    def failing(recipe: object, step: int) -> object:
        if step == 7:
            raise MemoryError
        return real(recipe, step)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "batch_for", failing)
    with pytest.raises(MachineError, match="out of memory"):
        train(tiny(), tmp_path / "run")
    assert Run(tmp_path / "run", tiny()).checkpoint.step == 4


def test_a_long_step_heeds_sigterm_and_what_was_made_is_saved(tmp_path: Path) -> None:
    """The third update waits for a minute; nothing of it is lost, and it ends within seconds."""
    out = tmp_path / "run"
    code = (
        "import ctypes, sys, time\nfrom taskhint.cli import main\n"
        "from taskhint.system import signals\nfrom taskhint.training import loop\n"
        "signals.PATIENCE = 0.2\nreal = loop.gradient_norm\ncalls = []\n"
        "def slow(decoder):\n    calls.append(1)\n"
        "    if len(calls) == 3:\n        print('slow', flush=True)\n"
        "        wait()\n    return real(decoder)\n"
        # SIGTERM would end a plain sleep early; this one goes on, as a long product does
        "def wait():\n    end = time.monotonic() + 60\n"
        "    while time.monotonic() < end:\n        ctypes.CDLL(None).usleep(60_000_000)\n"
        "loop.gradient_norm = slow\nsys.exit(main(sys.argv[1:]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *command(out, tiny()), "--threads", "1"],
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "slow\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "SIGTERM: finishing this step" in errors
    assert "in the middle of update 3; saved at step 2" in errors
    assert Run(out, tiny()).checkpoint.step == 2
    train(tiny(), out)
    train(tiny(), tmp_path / "whole")
    newest = "checkpoints/step-00000012/weights.safetensors"
    assert (out / newest).read_bytes() == (tmp_path / "whole" / newest).read_bytes()
    assert (out / "metrics.jsonl").read_bytes() == (tmp_path / "whole/metrics.jsonl").read_bytes()


def test_a_table_is_printed_before_it_is_saved(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path, curve: object) -> None:  # noqa: ARG001
        raise PermissionError("read-only")

    words = ["evaluate", str(run.path), "--lengths", "2,3", "--examples", "7"]
    with monkeypatch.context() as patch:
        patch.setattr("taskhint.runs.curve.save_curve", refuse)
        assert main(words) == 3
    said = capsys.readouterr()
    assert "accuracy %" in said.out and "read-only" in said.err
    assert main([*words, "--no-save"]) == 0
    assert load_curves(run.path) == []
    assert main(words) == 0
    assert [sorted(curve.scores) for curve in load_curves(run.path)] == [[2, 3]]


def test_an_unreadable_run_is_left_out_of_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("good", "bad", "odd"):
        made = train(tiny(), tmp_path / "runs" / name)
        words = ["--lengths", "2", "--examples", "5"]
        assert main(["evaluate", str(made.path), *words]) == 0
    (tmp_path / "runs/bad/recipe.json").write_text("{")
    curves = next((tmp_path / "runs/odd/evaluations").rglob("*.json"))
    curves.write_text("[]")
    capsys.readouterr()
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "runs"), "--out", str(out)]) == 0
    said = capsys.readouterr().err
    assert "runs/bad/recipe.json is damaged" in said and "runs/odd/evaluations" in said
    assert said.count("; skipped\n") == said.count("\n") == 2 and "<svg" in out.read_text()


@pytest.mark.parametrize(
    ("command", "option"), [("report", "--out"), ("explore", "--save")], ids=["report", "page"]
)
def test_what_is_html_is_called_so(
    command: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(tmp_path), option, str(tmp_path / "x.pdf")]) == 2
    assert ".html" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_memory_that_is_there_is_not_refused() -> None:
    memory.check_fits(10, "nothing", available=10)
    with pytest.raises(UserError, match=r"it takes about 2\.0 GB; 1\.0 GB are free"):
        memory.check_fits(2e9, "it", available=10**9)
