"""The documentation's code runs as it stands."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from taskhint.recipes.recipe import Recipe
from taskhint.tasks import Task
from tests.test_tasks import rows_of

DOCS = Path(__file__).parent.parent / "docs"


def test_the_example_task_works_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Task, "_members", dict(Task.kinds()))
    file, script = re.findall(
        r"```python\n(.*?)```", (DOCS / "adding-a-task.md").read_text(), re.DOTALL
    )
    (tmp_path / "largest.py").write_text(file)
    monkeypatch.syspath_prepend(tmp_path)
    task = import_module("largest").Largest()
    for prompt, answer in rows_of(task, 0, 7, 50):
        assert answer == task.solve(prompt) == [max(prompt[:-1])]
    for long, short in (
        ("steps=6000, warmup_steps=300", "steps=4, warmup_steps=1, batch_size=16"),
        ("1000", "10"),
    ):
        assert long in script
        script = script.replace(long, short)
    names: dict[str, Any] = {}
    exec(script, names)
    run = names["run"]
    assert Recipe.from_json(run.recipe.to_json()) == run.recipe
    assert len(capsys.readouterr().out.splitlines()) == 3
