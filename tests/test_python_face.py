"""What a user's script sees: real types, checked settings, answers in the type of the question."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import taskhint as th
from taskhint.model.softmax import LogSequence
from taskhint.runs.curve import Score
from taskhint.tasks import Carry, Count, Fill, Increment, Sort, Successor

SCRIPT = """
import taskhint as th
recipe = th.recipe("sort/tempered").change(seed=3, steps=100)
run = th.train(recipe, out="runs/a")
curve = th.evaluate(run, lengths=[20, 50], examples=100)
reveal_type(recipe)
reveal_type(run)
reveal_type(curve[20].accuracy)
reveal_type(run.solve([5, 17]))
reveal_type(run.solve("5 17"))
reveal_type(run.metrics[0].loss)
reveal_type(th.Hint)
th.trian
"""


def test_a_type_checker_sees_real_types(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    said = subprocess.run([*command, str(script)], capture_output=True, text=True).stdout
    revealed = [line.split('"')[1] for line in said.splitlines() if "Revealed type" in line]
    assert revealed[:6] == [
        "taskhint.recipes.recipe.Recipe",
        "taskhint.runs.run.Run",
        "float",
        "list[int | str]",
        "list[str]",
        "float",
    ], said
    assert "def (task: taskhint.tasks.task.Task" in revealed[6]
    errors = [line for line in said.splitlines() if "error:" in line]
    assert len(errors) == 1 and 'has no attribute "trian"' in errors[0]


def test_names_for_type_checkers_are_those_that_exist() -> None:
    tree = ast.parse(Path(th.__file__).read_text())
    typed = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in typed.body if isinstance(node, ast.ImportFrom)
            for alias in node.names}  # fmt: skip
    assert (seen - {"find_recipe"}) | {"recipe", "__version__"} == set(th.__all__)
    for name in th.__all__:
        assert getattr(th, name) is not None
    with pytest.raises(AttributeError, match="trian"):
        th.trian  # type: ignore[attr-defined]  # noqa: B018


MODEL: dict[str, tuple[Any, str]] = {
    "temperature": ("log_visible", "did you mean 'log-visible'"),
    "norm": ("pre", "is not known"),
    "positions": ("ropes", "is not a known position scheme"),
    "width": ("128", "is not a whole number"),
    "depth": (2.5, "is not a whole number"),
    "widht": (128, "did you mean 'width'"),
}


@pytest.mark.parametrize("name", MODEL)
def test_a_wrong_model_refuses_to_exist(name: str) -> None:
    value, says = MODEL[name]
    recipe = th.recipe("sort/standard")
    changed: dict[str, Any] = {name: value}
    for attempt in (
        lambda: replace(recipe.model, **changed),
        lambda: recipe.change(**changed),
        lambda: th.Recipe.from_json(
            {**recipe.to_json(), "model": {**recipe.to_json()["model"], **changed}}
        ),
    ):
        with pytest.raises(th.UserError, match=says) as refused:
            attempt()
        assert "\n" not in str(refused.value)


def test_a_kind_may_be_given_by_its_name() -> None:
    by_name = th.recipe("sort/standard").change(temperature="log-sequence")
    assert by_name.model.temperature == LogSequence()
    assert th.Recipe.from_json(by_name.to_json()) == by_name


@pytest.mark.parametrize(
    "call",
    [
        lambda: th.recipe("sort/temperd"),
        lambda: th.recipe(3),  # type: ignore[arg-type]
        lambda: th.recipe("sort/standard", "peper"),  # type: ignore[arg-type]
        lambda: th.recipe("sort/standard").change(steps="3"),
        lambda: th.Vocab(first_symbol=1, symbols=9, marks=("PAD",)).delimiter,
        lambda: th.load(3),  # type: ignore[arg-type]
        lambda: th.train(3, out="x"),  # type: ignore[arg-type]
        lambda: th.train("sort/standard", out=3),  # type: ignore[arg-type]
        lambda: th.train("sort/standard", out="x", stepz=3),
        lambda: th.Recipe("a"),  # type: ignore[call-arg]
        lambda: th.Hint(3),  # type: ignore[arg-type]
        lambda: th.evaluate(3, [5]),  # type: ignore[arg-type]
        lambda: th.check_task("sort"),  # type: ignore[arg-type]
        lambda: Sort(symbols="a"),  # type: ignore[arg-type]
        lambda: Sort(lengths=20),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_refused_in_one_line(call: Any) -> None:
    with pytest.raises(th.UserError) as refused:
        call()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("word", "ours"), [("lr", "learning_rate"), ("d_model", "width")])
def test_other_peoples_words_are_understood(word: str, ours: str) -> None:
    with pytest.raises(th.UserError, match=f"did you mean '{ours}'"):
        th.recipe("sort/standard").change(**{word: 1})


def test_a_wrong_distribution_is_refused(sorter: th.Run) -> None:
    with pytest.raises(th.UserError, match="distribution=3 is not a text"):
        th.evaluate(sorter, [5], distribution=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("lengths", [20, "20", [0], [2.5], []])
def test_wrong_lengths_are_refused(sorter: th.Run, lengths: Any) -> None:
    with pytest.raises(th.UserError, match="length"):
        th.evaluate(sorter, lengths)


@pytest.mark.parametrize("examples", ["20", 0, 2.5, [3]])
def test_wrong_numbers_of_examples_are_refused(sorter: th.Run, examples: Any) -> None:
    with pytest.raises(th.UserError, match="examples"):
        th.evaluate(sorter, [5], examples=examples)


def test_solve_answers_in_the_type_of_the_question(sorter: th.Run) -> None:
    assert sorter.solve([2, 1]) == [1, 2]
    assert sorter.solve(np.array([2, 1])) == [1, 2]  # type: ignore[call-overload]
    assert sorter.solve(iter([2, 1])) == [1, 2]  # type: ignore[call-overload]
    assert sorter.solve("2 1") == sorter.solve(["2", "1"]) == ["1", "2"]
    for bad in ([1.7], [None], ["1.7"], 5):
        with pytest.raises(th.UserError):
            sorter.solve(bad)  # type: ignore[arg-type]


def test_a_run_tells_what_it_is(sorter: th.Run) -> None:
    assert (
        "sort" in repr(sorter) and "updates" in repr(sorter) and str(sorter.path) in repr(sorter)
    )
    assert [metric.step for metric in sorter.metrics] == sorted(m.step for m in sorter.metrics)
    assert sorter.metrics[-1].loss < sorter.metrics[0].loss


@pytest.mark.parametrize("task", [Sort(), Successor(), Count(), Fill(), Increment(), Carry()])
def test_own_tasks_keep_their_promises(task: th.Task) -> None:
    assert th.check_task(task, examples=20) > 100


@dataclass(frozen=True)
class Forgetful(Sort):
    """Wrong in one place at a time."""

    kind: ClassVar[str] = "forgetful"
    wrong: str = ""

    def make(self, bits: th.RandomBits, length: int) -> th.Examples:
        made = super().make(bits, length)
        if self.wrong == "answer" and length == 7:
            made.tokens[3, -1] = made.tokens[3, 0]
            made.tokens[3, -2] = self.vocab.pad
        if self.wrong == "order":
            made.tokens[:, : length - 1] += 0
            made = super().make(th.RandomBits(len(made), 0, np.arange(len(made))), length)
        if self.wrong == "shape":
            made = replace(made, sizes=made.sizes[:-1])
        if self.wrong == "test" and self.inputs != Sort().inputs:
            made.tokens[0, -1] = 0
            made.tokens[0, 0] = 1
        return made


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("answer", "length 7: for the prompt"),
        ("order", "beside other examples"),
        ("shape", "sizes must be"),
        ("test", "test distribution"),
    ],
)
def test_a_broken_task_is_found(wrong: str, says: str) -> None:
    with pytest.raises(th.UserError, match=says):
        th.check_task(Forgetful(wrong=wrong), examples=30)


@pytest.fixture
def curve() -> th.LengthCurve:
    scores = {20: Score(examples=10, right=9, edit_distance=0.5), 10: Score(10, 10)}
    return th.LengthCurve("runs/a", "a<b", "sort", "uniform", 3, 100, scores)


def test_a_curve_is_a_table_on_paper_and_in_a_notebook(curve: th.LengthCurve) -> None:
    table = str(curve).splitlines()
    assert "a<b, seed 3, 100 updates, uniform sequences" in table[0]
    assert [line.split()[0] for line in table[-2:]] == ["10", "20"]
    assert "90.00" in table[-1] and "0.500" in table[-1]
    html = curve._repr_html_()
    assert "a&lt;b" in html and "90.00" in html and html.count("<tr>") == 3


def test_a_curve_is_a_frame(curve: th.LengthCurve) -> None:
    frame = curve.to_frame()
    assert list(frame["length"]) == [10, 20] and list(frame["accuracy"]) == [1.0, 0.9]
    assert list(frame["recipe"]) == ["a<b", "a<b"] and frame["edit_distance"][1] == 0.5


def test_a_curve_without_a_library_of_frames_names_one(
    curve: th.LengthCurve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(th.UserError, match="pip install pandas"):
        curve.to_frame()


def test_a_curve_draws_itself(curve: th.LengthCurve) -> None:
    axes = curve.plot()
    (line,) = axes.get_lines()
    assert list(line.get_xdata()) == [10, 20] and list(line.get_ydata()) == [100.0, 90.0]


def test_a_run_has_the_curves_of_its_newest_checkpoint(sorter: th.Run) -> None:
    curve = th.evaluate(sorter, lengths=[7], examples=5)
    assert sorter.curves["uniform"][7] == curve[7]
