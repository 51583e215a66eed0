"""Which hints a recipe takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

import taskhint as th
from taskhint.tasks import Copy, Sort, Successor


@pytest.fixture(autouse=True)
def own_kinds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tasks of these tests are known to them alone."""
    monkeypatch.setattr(th.Task, "_members", dict(th.Task.kinds()))
    yield


def test_a_hint_of_another_task_is_refused_with_the_near_match() -> None:
    @dataclass(frozen=True)
    class Misnamed(Successor):
        kind: ClassVar[str] = "misnamed"
        hint_for: ClassVar[str] = "sortt"

    recipe = th.recipe("sort/standard")
    with pytest.raises(th.UserError, match="did you mean 'sort'") as refused:
        recipe.change(hints=(th.Hint(Misnamed()),))
    assert "'sortt'" in str(refused.value) and "\n" not in str(refused.value)
    with pytest.raises(th.UserError, match=r"is of task 'sort'.*allowed: copy"):
        recipe.change(task=Copy(), hints=(th.Hint(Successor()),))


def test_hints_of_a_task_are_hints_of_what_derives_from_it() -> None:
    @dataclass(frozen=True)
    class MySort(Sort):
        kind: ClassVar[str] = "my-own-sort"

    recipe = th.recipe("sort/standard").change(task=MySort(), hints=(th.Hint(Successor()),))
    assert [task.kind for task in recipe.tasks] == ["my-own-sort", "successor"]


def test_any_main_task_may_stand_in_for_a_hint() -> None:
    recipe = th.recipe("sort/standard").change(hints=(th.Hint(Copy()),))
    assert recipe.hints[0].kind == "copy"


def test_another_vocabulary_says_how_to_change_it() -> None:
    recipe = th.recipe("sort/successor")
    advice = "--set hints.successor.task.symbols=50 changes the hint's"
    with pytest.raises(th.UserError, match=advice):
        recipe.with_settings(["task.symbols=50"])
    changed = recipe.with_settings(["task.symbols=50", "hints.successor.task.symbols=50"])
    assert changed.hints[0].task.vocab == changed.task.vocab
