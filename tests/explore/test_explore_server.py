"""The server: what it answers and what it refuses, asked by real requests to a real process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taskhint.cli import main
from taskhint.data.dataset import fresh_examples
from taskhint.explore.documents import pack
from taskhint.explore.saved import bundled, parse_edit, saved_page
from taskhint.explore.server import front_end
from taskhint.explore.subject import Subject, subjects
from taskhint.model.edits import KnockOutHead, ScaleTemperature
from taskhint.recipes import find_recipe
from taskhint.runs.run import Run
from taskhint.system.errors import UserError
from taskhint.tasks import Task
from tests.explore.page import Models, Server, ask, unpack, wanted


def test_packing_keeps_every_array() -> None:
    arrays: dict[str, Any] = {
        "a": np.arange(5, dtype=np.float32),
        "b": np.array([[1, 2], [3, 4]], dtype=np.uint8),
        "c": np.zeros((0, 3), dtype=np.int32),
    }
    document, found = unpack(pack({"word": "⊥"}, arrays))
    assert document["word"] == "⊥"
    for name, array in arrays.items():
        assert np.array_equal(found[name], array)


def test_a_position_is_what_the_trace_says(server: Server, models: Models) -> None:
    symbols = ["5", "17", "3", "17"]
    for model in (0, 1):
        right = wanted(models.runs[model], symbols, 6)
        document, found = ask(server, "position", model=model, symbols=symbols, position=6)
        assert np.allclose(found["weights"], right.weights, atol=1e-5)
        assert np.allclose(found["attention_logits"], right.attention_logits, atol=1e-5)
        assert np.allclose(found["encoder"], right.encoder, rtol=1e-5, atol=1e-5)
        assert np.allclose(found["decoder"], right.decoder, rtol=1e-5, atol=1e-5)
        assert np.allclose(found["logits"], right.logits, atol=1e-5)
        marks = {name: document[name] for name in ("token", "right", "minimum", "successor")}
        assert marks == {"token": 4, "right": 16, "minimum": 2, "successor": 16}


def test_a_heat_map_is_the_trace_in_256_levels(server: Server, models: Models) -> None:
    symbols = [str(1 + i * 7 % 20) for i in range(300)]
    document, found = ask(
        server, "map", model=0, symbols=symbols, show="attention", block=1, head=1
    )
    assert document["shape"] == [600, 600]
    assert document["steps"] == [2, 2]
    assert found["cells"].shape == (300, 300)
    row = wanted(models.runs[0], symbols, 599).weights[1, 1]
    before = np.append(wanted(models.runs[0], symbols, 598).weights[1, 1], 0.0)
    pooled = np.maximum(row, before).reshape(300, 2).max(axis=1)
    roots = found["cells"][299] / 255
    assert (document["low"], document["power"]) == (0.0, 0.5)
    assert np.abs(roots - np.sqrt(pooled / document["high"])).max() <= 0.51 / 255


def test_random_inputs_are_fresh_test_inputs(server: Server, models: Models) -> None:
    for model, distribution in ((0, "rep:3"), (1, "uniform"), (2, "nines"), (3, "uniform")):
        document, _ = ask(
            server, "random", model=model, length=8, distribution=distribution, number=4
        )
        run = models.runs[model]
        task = run.task.for_test(distribution)
        right = fresh_examples(task, run.recipe.seed, 8, 4, 1).tokens[0, :8]
        assert document["input"] == run.task.vocab.words(right.tolist())
    dense, _ = ask(server, "random", model=1, length=100, distribution="dense", number=1)
    values = sorted({int(word) for word in dense["input"]})
    assert values[-1] - values[0] < 100
    assert len(dense["input"]) == 100


def test_the_saved_page_needs_inputs_and_stays_small(models: Models) -> None:
    found = subjects(models.paths[:1])
    with pytest.raises(UserError, match="too many"):
        saved_page(found, [["1"] * 501])
    with pytest.raises(UserError, match="larger than"):
        saved_page(found, [[str(1 + i % 20) for i in range(n)] for n in (500, 499, 498)])
    assert main(["explore", models.paths[0], "--save", "x.html"]) == 2


def test_edits_can_be_written_by_hand() -> None:
    assert parse_edit("knock-out-head block=1 head=0 by=mean") == KnockOutHead(1, 0, "mean")
    assert parse_edit("scale-temperature block=0 factor=2") == ScaleTemperature(0, 2.0)
    for text in ("", "knock-out-head", "knock-out-head block", "knock-out block=1"):
        with pytest.raises(UserError):
            parse_edit(text)


def test_the_bundle_holds_every_module_once_and_imports_none() -> None:
    modules = {n: t.decode() for n, t in front_end().items() if n.endswith(".js")}
    text = bundled(modules)
    lines = text.splitlines()
    assert not [line for line in lines if line.startswith(("import ", "export "))]
    names = [line.split("(")[0].split()[-1] for line in lines if line.startswith("function ")]
    assert len(set(names)) == len(names)
    for module in modules:
        assert f'from "./{module}"' not in text


def test_without_the_extra_the_command_says_what_to_install(models: Models) -> None:
    script = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from taskhint.cli import main\n"
        f"raise SystemExit(main(['explore', {models.paths[0]!r}, '--no-open']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 2
    assert "taskhint[explore]" in done.stderr


@pytest.mark.parametrize("kind", sorted(Task.kinds()))
def test_inputs_of_every_task_can_be_drawn_and_written(kind: str, models: Models) -> None:
    """Any model does here: what is read for an input depends on the task alone."""
    recipe = find_recipe("sort/tempered")
    run = Run(Path(), replace(recipe, task=Task.kinds()[kind]()))
    run.__dict__["model"] = models.runs[0].model
    subject = Subject(kind, run)
    if kind == "fill":
        with pytest.raises(UserError, match="more than what a person writes"):
            subject.random(4, "uniform", 0)
        return
    words = subject.random(4, subject.distributions[0], 0)
    reading = subject.sequence(words)
    assert any(reading.asked)
    assert subject.written(reading.tokens[: reading.asked.index(True) + 1]) == words


def test_models_of_one_name_are_told_apart(models: Models) -> None:
    names = [subject.name for subject in subjects([models.paths[0], models.paths[0]])]
    assert names == ["built", "built (2)"]


def test_too_many_tokens_for_a_wide_model_are_refused(models: Models) -> None:
    subject = Subject("one", models.runs[1])
    with pytest.raises(UserError, match="too many"):
        subject.check_tokens([0] * 4001)
