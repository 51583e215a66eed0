"""Small runs that several tests look at."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from taskhint.model.config import ModelConfig
from taskhint.model.softmax import LogVisible
from taskhint.recipes import find_recipe
from taskhint.recipes.optimisers import Muon
from taskhint.recipes.recipe import Recipe
from taskhint.runs.run import Run
from taskhint.system import plugins
from taskhint.tasks import Sort
from taskhint.tasks.lengths import Skewed
from taskhint.training.loop import train

if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes as cores, so a thread each
    os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else 2)
# A shell's background jobs ignore Ctrl-C, and so would every process that a test starts and stops.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["HF_HUB_OFFLINE"] = "1"  # no test looks for a model anywhere but on the disk


def small(name: str, **changes: object) -> Recipe:
    """A recipe of that name that trains in a second or two."""
    recipe = find_recipe(name).with_steps(40)
    recipe = replace(
        recipe,
        model=replace(recipe.model, width=32, mlp_width=64, heads=2, depth=2),
        batch_size=32,
        checkpoint_every=10,
    )
    return replace(recipe, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def sorter(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A model that sorts short sequences well and long ones badly: right and wrong answers to look
    at.
    """
    recipe = replace(
        find_recipe("sort/tempered").with_steps(350),
        task=Sort(lengths=Skewed(1, 4, 8, 0.5), symbols=20),
        model=ModelConfig(width=64, heads=2, mlp_width=128, temperature=LogVisible()),
        optimiser=Muon(weight_decay=0.5),  # so few updates learn more with it
        batch_size=64,
    )
    return train(recipe, tmp_path_factory.mktemp("runs") / "sorter")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """As in processes that a test starts: the number decides the last bits of a small model."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def nothing_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes repeat the imports of their parent: those of a test are its own."""
    monkeypatch.setattr(plugins, "_imported", {})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"
