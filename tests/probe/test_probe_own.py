"""A task, a probe and a mechanism that were never heard of, in one file of a user."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from taskhint.cli import main
from taskhint.probe import Mechanism, Probe, Subject, measure_mechanisms, traces
from taskhint.probe.study import OURS, make_plan, study
from taskhint.recipes.recipe import Recipe
from taskhint.report.probe_page import mechanisms_table, write_probe
from taskhint.runs.run import Run, create, load, new_decoder, save_checkpoint
from taskhint.system.errors import UserError
from taskhint.system.plugins import import_source
from taskhint.tasks import Carry, Count, EvenLengths, Fill, Successor, Task
from tests.conftest import small
from tests.report.test_probe_page import FIGURES

OWN = '''
from dataclasses import dataclass
from typing import ClassVar

import torch

import taskhint as th


@dataclass(frozen=True)
class Repeat(th.SymbolTask):
    kind: ClassVar[str] = "own-repeat"
    inputs: th.Inputs = th.Mixture()

    def solve(self, prompt):
        return list(prompt[:-1])


@dataclass(frozen=True)
class Paired(th.SymbolTask):
    """Answers of different sizes, and steps of its own."""

    kind: ClassVar[str] = "own-paired"
    step_kinds: ClassVar[tuple[str, ...]] = ("small", "large")

    def solve(self, prompt):
        return [x for x in prompt[:-1] for _ in range(1 + x % 2)]

    def step_kind(self, step):
        return "small" if step.right < self.symbols // 2 else "large"


@dataclass(frozen=True)
class Small(th.Mechanism):
    """At ⊥ the right first symbol has the largest projection after the last MLP."""

    kind: ClassVar[str] = "own-small"
    name: ClassVar[str] = "small first"
    step: ClassVar[str] = "small"
    where: ClassVar[str] = "⊥, last MLP"

    def verdict(self, traced):
        at = slice(traced.inputs, traced.inputs + 1)
        stream = traced.on_decoder(f"blocks.{traced.subject.depth - 1}.after_mlp", at)
        held = stream.argmax(dim=2) == traced.following[:, at]
        return th.Verdict(torch.ones_like(held), held)


@dataclass(frozen=True)
class StreamSize(th.Probe):
    kind: ClassVar[str] = "own-size"
    title: ClassVar[str] = "Size of the stream <x>"
    caption: ClassVar[str] = "Mean norm over all tokens, after each block."

    def has_meaning(self, subject):
        return subject.task.kind == "own-repeat"

    def rows(self, traced):
        sizes = (traced.trace[f"blocks.{k}.after_mlp"].norm(dim=2).mean(dim=1) for k in (0, 1))
        return {f"block {k + 1}": size.double().numpy() for k, size in enumerate(sizes)}
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file imported; its classes are forgotten after the test."""
    for family in (Task, Probe, Mechanism):
        monkeypatch.setattr(family, "_members", dict(family._members))
    (tmp_path / "own.py").write_text(OWN)
    import_source(str(tmp_path / "own.py"))


def untrained(task: Task, path: Path) -> Run:
    recipe: Recipe = small("sort/standard", task=task)
    run = create(path, recipe)
    save_checkpoint(run, 0, dict(new_decoder(recipe).named_parameters()), optimiser={})
    return load(path)


def made(kind: str) -> Task:
    task: Task = Task.kinds()[kind](symbols=12)
    return task


@pytest.mark.usefixtures("own")
def test_a_probe_of_ones_own_stands_on_the_page_with_its_numbers(tmp_path: Path) -> None:
    run = untrained(made("own-repeat"), tmp_path / "run")
    write_probe([str(run.path)], tmp_path / "out", "3 1 7", [2, 5], 6)
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<h2>Size of the stream &lt;x&gt;</h2><p>Mean norm over all tokens" in page
    assert page.count('class="panels"') == len(FIGURES) + 1
    assert (tmp_path / "out" / "run" / "own-size.png").exists()
    document = json.loads((tmp_path / "out" / "run" / "probe.json").read_text())
    sizes = []
    for traced in traces(Subject.of(run), 5, 6):
        for row in traced.trace["blocks.1.after_mlp"]:
            sizes.append(np.mean([np.sqrt(sum(float(x) ** 2 for x in token)) for token in row]))
    kept = document["own-size"]["block 2"]["5"]
    assert kept["mean"] == pytest.approx(np.mean(sizes), rel=1e-5)
    assert kept["half"] == pytest.approx(2.5706 * np.std(sizes, ddof=1) / 6**0.5, rel=1e-3)


@pytest.mark.usefixtures("own")
def test_a_mechanism_goes_with_the_steps_that_it_serves(tmp_path: Path) -> None:
    copies = {"copy", "copy to the last block"}
    run = untrained(made("own-paired"), tmp_path / "run")
    subject = Subject.of(run)
    shares = measure_mechanisms(subject, [4], 30).shares
    assert set(shares) == {*copies, "small first"}
    held = 0
    for traced in traces(subject, 4, 30):
        basis = subject.decoder_basis[:12]
        for tokens, stream in zip(
            traced.tokens, traced.trace["blocks.1.after_mlp"][:, 4], strict=True
        ):
            held += int((basis @ stream).argmax()) == int(tokens[0])
    assert (shares["small first"][4].held, shares["small first"][4].asked) == (held, 30)
    other = Subject.of(untrained(made("own-repeat"), tmp_path / "other"))
    assert set(measure_mechanisms(other, [4], 3).shares) == copies


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("task", ["own-repeat", "own-paired", "successor", "count", "fill"])
def test_every_probe_that_has_a_meaning_works_on_any_task(task: str, tmp_path: Path) -> None:
    """Also on answers that end in NONE, that differ in size, or whose prompts go on after ⊥."""
    run = untrained(made(task), tmp_path / "run")
    found = study(run, "run", make_plan(run.task, None, [3, 6], 20))
    shown = {one.name for one in found.shown()} - {"own-size"}
    short = {"attention-shares", "sharpness"} if task == "count" else set()  # nothing after ⊥
    assert shown == FIGURES - short - ({"projection-answer"} if task == "count" else set())
    assert json.dumps(found.to_json(), allow_nan=False)
    stages = found.found["stages"].answer["block 2, after MLP"]
    assert stages[6].asked > 0 or task in ("successor", "count")
    errors = found.found["errors"].lengths[6]
    assert sum(map(sum, (kinds.values() for kinds in errors.counts.values()))) == 20 - errors.right


MAIN_TASKS = [kind for kind, task in Task.kinds().items() if not task.hint_for]


@pytest.mark.parametrize("kind", MAIN_TASKS)
def test_every_main_task_is_probed_with_its_usual_input(kind: str, tmp_path: Path) -> None:
    run = untrained(Task.kinds()[kind](), tmp_path / "run")
    plan = make_plan(run.task, None, run.task.usual_lengths[:2], 4)
    found = study(run, kind, plan)
    assert {one.kind for one in OURS} <= set(found.found)
    assert json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.usefixtures("own")
def test_the_command_takes_a_file_and_a_probe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = untrained(made("own-repeat"), tmp_path / "run")
    words = ["probe", str(run.path), "--out", str(tmp_path / "out"), "--lengths", "2,3"]
    words += ["--examples", "3", "--import", str(tmp_path / "own.py"), "--probe", "own-size"]
    assert main(words) == 0
    assert {path.name for path in (tmp_path / "out" / "run").iterdir()} == {
        "own-size.png",
        "own-size.svg",
        "probe.json",
    }
    assert main([*words, "--probe", "own-sise"]) == 2
    assert "did you mean 'own-size'" in capsys.readouterr().err


def test_given_tokens_are_refused_in_one_line(tmp_path: Path) -> None:
    recipe = small("increment/standard", task=Carry())
    run = create(tmp_path / "run", recipe)
    save_checkpoint(run, 0, dict(new_decoder(recipe).named_parameters()), optimiser={})
    with pytest.raises(UserError, match=r"^answers of task 'carry' contain given tokens; such"):
        study(run, "run", make_plan(run.task))


@pytest.mark.usefixtures("own")
def test_probes_can_be_chosen(tmp_path: Path) -> None:
    runs = [str(untrained(made(k), tmp_path / k).path) for k in ("own-repeat", "own-paired")]
    found = write_probe(runs, tmp_path / "out", None, [3], 4, probes=["bases", "stages"])
    assert [list(one.found) for one in found] == [["stages", "bases"]] * 2
    assert {path.stem for path in (tmp_path / "out").rglob("*.png")} == {"stages", "bases"}
    assert mechanisms_table(found).count("\n") == 2
    with pytest.raises(UserError, match="probe=base is not a known probe; did you mean 'bases'"):
        write_probe(runs, tmp_path / "no", None, [3], 4, probes=["base"])
    with pytest.raises(UserError, match="probe 'own-size' has no meaning for task 'own-paired'"):
        write_probe(runs, tmp_path / "no", None, [3], 4, probes=["own-size"])
    assert not (tmp_path / "no").exists()


BAD = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
import taskhint as th

@dataclass(frozen=True)
class Bad(th.Probe):
    kind: ClassVar[str] = "%s"
    def rows(self, traced):
        return {"x": %s}
"""


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("kind", "rows", "said"),
    [
        ("seed", "None", "a probe cannot be called 'seed'"),
        ("own-bad", "np.zeros(1)", "not a NumPy array with one row for each of 4 sequences"),
        ("own-bad", "[1.0] * 4", "not a NumPy array with one row for each of 4 sequences"),
        ("own-bad", "np.zeros((4, 2))", "probe 'own-bad' keeps several numbers of a sequence"),
    ],
)
def test_a_wrong_probe_is_told_what_is_wrong(
    kind: str, rows: str, said: str, tmp_path: Path
) -> None:
    run = untrained(made("own-repeat"), tmp_path / "run")
    (tmp_path / "bad.py").write_text(BAD % (kind, rows))
    with pytest.raises(UserError, match=said):
        import_source(str(tmp_path / "bad.py"))
        write_probe([str(run.path)], tmp_path / "out", None, [3], 4, probes=[kind])


def test_usual_lengths_follow_the_training_lengths() -> None:
    assert Successor().usual_lengths == (5, 10, 20, 30, 50, 70, 100)
    assert Fill(lengths=EvenLengths(3, 4)).usual_lengths == (3, 4, 6, 10, 14, 20)
    assert make_plan(Count()).lengths == Count().usual_lengths
