"""A task of one's own that is wrong is refused in one line: by `check_task`, and by training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import taskhint as th
from tests.conftest import small

SAYS = {
    "disagree": "`make` answers",
    "range": "token 1000 is not in 0..102",
    "empty": "answer is empty",
    "rows": "`make` must give an example per row",
    "answers": "need 16 answers, got 15|need 20 answers, got 19",
    "none": r"token ids \(ints\) in a list, got None",
    "text": r"token ids \(ints\) in a list, got str",
    "number": r"token ids \(ints\) in a list, got int",
    "nothing": "`make` must give Examples, got None",
    "delimiter": "contains ⊥",
    "pad": "contains PAD",
}


@dataclass(frozen=True)
class Doubtful(th.SymbolTask):
    """The first symbol again; wrong in one way at a time."""

    kind: ClassVar[str] = "doubtful"
    wrong: str = ""

    def make(self, bits: th.RandomBits, length: int) -> th.Examples:
        if self.wrong not in ("disagree", "rows", "answers", "nothing"):
            return super().make(bits, length)
        inputs = th.Distinct().draw(bits, self.symbols, length)
        prompts = th.delimited(self, inputs)
        if self.wrong == "disagree":
            return th.Examples.equal(prompts, (inputs[:, :1] + 1) % self.symbols, length)
        if self.wrong == "rows":
            return th.Examples.equal(prompts[:-1], inputs[:-1, :1], length)
        if self.wrong == "answers":
            return th.Examples.equal(prompts, inputs[:-1, :1], length)
        return None  # type: ignore[return-value]

    def solve(self, prompt: Sequence[int]) -> Any:
        vocab = self.vocab
        answers = {"range": [1000], "empty": [], "none": None, "text": ["17"], "number": 3}
        marks = {"delimiter": [vocab.delimiter], "pad": [prompt[0], vocab.pad]}
        return (answers | marks).get(self.wrong, [prompt[0]])


@pytest.mark.parametrize("wrong", SAYS)
def test_a_wrong_task_is_found(wrong: str) -> None:
    with pytest.raises(th.UserError, match=SAYS[wrong]) as refused:
        th.check_task(Doubtful(wrong=wrong), examples=20)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("wrong", SAYS)
def test_a_wrong_task_is_not_trained(wrong: str, tmp_path: Path) -> None:
    recipe = small("sort/standard").change(task=Doubtful(wrong=wrong))
    with pytest.raises(th.UserError, match=SAYS[wrong]):
        th.train(recipe, tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_wrong_hint_is_not_trained(tmp_path: Path) -> None:
    recipe = small("sort/standard").change(hints=(th.Hint(Doubtful(wrong="disagree")),))
    with pytest.raises(th.UserError, match="doubtful, training, length"):
        th.train(recipe, tmp_path / "run")


def test_a_right_task_is_trained(tmp_path: Path) -> None:
    recipe = small("sort/standard").change(task=Doubtful(), steps=2)
    assert th.train(recipe, tmp_path / "run").checkpoint.step == 2


@dataclass(frozen=True)
class Always(th.SymbolTask):
    """The same answer to everything, without a `make`."""

    kind: ClassVar[str] = "always"
    symbols: int = 9

    def solve(self, prompt: Sequence[int]) -> list[int]:  # noqa: ARG002
        return [self.vocab.mark("NONE")]


def test_what_was_checked_can_be_read() -> None:
    checked = th.check_task(Doubtful(), lengths=[2, 3], examples=5)
    assert checked == 2 * 5 * 2  # lengths, examples, as trained and as tested
    count, *examples = str(checked).splitlines()
    assert count == "doubtful: 20 examples are right, such as"
    for text, length in zip(examples, (2, 3), strict=True):
        words = text.split()
        assert words[length] == "⊥" and words[-1] == words[0] and len(words) == length + 2


def test_what_was_not_compared_is_remarked() -> None:
    remarks = th.check_task(Always(), examples=5).remarks
    assert ["no `make`" in remarks[0], "is the same" in remarks[1], len(remarks)] == [
        True,
        True,
        2,
    ]
    assert "no `make` of its own" in str(th.check_task(Always(), examples=5))


def test_a_task_that_refuses_every_length_is_not_called_right() -> None:
    @dataclass(frozen=True)
    class Refusing(Always):
        kind: ClassVar[str] = "refusing"

        def make(self, bits: th.RandomBits, length: int) -> th.Examples:  # noqa: ARG002
            raise th.UserError(f"{length} is too long")

    with pytest.raises(th.UserError, match="is too long"):
        th.check_task(Refusing(), examples=5)


@pytest.mark.parametrize(
    "kind", sorted(k for k, t in th.Task.kinds().items() if t.__module__.startswith("taskhint."))
)
def test_own_tasks_are_right_and_vary(kind: str) -> None:
    task = th.Task.kinds()[kind]()
    checked = th.check_task(task, lengths=[min(task.lengths.shares()), 9], examples=20)
    assert checked >= 40 and not checked.remarks, str(checked)


def test_a_task_without_a_kind_says_what_to_add() -> None:
    @dataclass(frozen=True)
    class Nameless(th.SymbolTask):
        def solve(self, prompt: Sequence[int]) -> list[int]:
            return [prompt[0]]

    with pytest.raises(
        th.UserError, match="Nameless names no kind; add to it: kind: ClassVar"
    ) as e:
        Nameless()
    assert "\n" not in str(e.value)
