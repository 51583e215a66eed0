"""Small models of every kind, for the tests of other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

import taskhint.hf as hf
from taskhint.construct import construct
from taskhint.ecosystem.export import export_transformers, model_config, split_weights
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.positions import Positions
from taskhint.model.softmax import Normaliser, Temperature
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Hint, Recipe
from taskhint.runs.run import Run, create, save_checkpoint
from taskhint.system.settings import Family
from taskhint.tasks import Increment, Sort
from taskhint.tasks.random_bits import TEST_STREAM, RandomBits
from taskhint.tasks.task import Task, hints_for

BASE = ModelConfig(width=16, heads=2, depth=2, mlp_width=8)
SORT = Sort(symbols=12)
INCREMENT = Increment(nines=0.5)

# The twelve models that must agree; `task` is increment where the scheme is meant for it.
TWELVE: dict[str, dict[str, Any]] = {
    "plain": {},
    "tempered": {"temperature": "log-visible"},
    "qk-norm": {"temperature": "log-input", "qk_norm": True},
    "mirror": {"positions": "mirror", "temperature": "log-visible", "task": INCREMENT},
    "rope": {"positions": "rope", "temperature": "log-n"},
    "alibi": {"positions": "alibi", "temperature": "ssmax", "norm": "after"},
    "t5": {"positions": "t5", "normaliser": "entmax15", "temperature": "adaptive"},
    "fire": {"positions": "fire", "norm": "none"},
    "randomised": {"positions": "randomised", "temperature": "log-sequence"},
    "coupling": {"positions": "coupling", "task": INCREMENT, "hints": True},
    "abacus": {"positions": "abacus", "task": INCREMENT, "mlp_width": 0},
    "hinted": {"temperature": "log-visible", "hints": True},
}

FAMILIES: dict[str, type[Family]] = {
    "positions": Positions,
    "temperature": Temperature,
    "normaliser": Normaliser,
}


def of_the_package(family: type[Family]) -> list[str]:
    """The kinds that are registered, without those that other tests derive: a kind that comes
    later is among them, and fails until it can be exported.
    """
    known = family.kinds().items()
    return sorted(name for name, kind in known if kind.__module__.startswith("taskhint."))


# A model for every registered scheme, temperature and normaliser.
EVERY_KIND: dict[str, dict[str, Any]] = {
    f"{setting}={kind}": {setting: kind, "task": INCREMENT}
    for setting, family in FAMILIES.items()
    for kind in of_the_package(family)
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Two threads are slower than one for models so small. A module of tests imports it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def recipe_of(task: Task = SORT, hints: bool = False, **model: Any) -> Recipe:
    found = tuple(Hint(kind(**_same(task, kind))) for kind in hints_for(task.kind).values())
    base = find_recipe("sort/tempered")
    return replace(base, task=task, hints=found if hints else (), model=replace(BASE, **model))


def _same(task: Task, kind: type[Task]) -> dict[str, Any]:
    return {"symbols": task.vocab.symbols} if "symbols" in kind.__dataclass_fields__ else {}


def shaken(decoder: Decoder) -> Decoder:
    """Everything away from where it starts, so that each weight matters."""
    decoder.initialise(1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for value in decoder.parameters():
            value.add_(0.2 * torch.randn(value.shape, generator=generator))
    return decoder.eval()


def run_of(path: Path, recipe: Recipe) -> Run:
    decoder = shaken(Decoder(recipe.model, recipe.task.vocab.size, recipe.tasks))
    run = create(path, recipe)
    save_checkpoint(run, 7, dict(decoder.named_parameters()), {})
    return run


def run_named(name: str, path: Path) -> Run:
    if name == "constructed":
        return construct(path, 8, 20)
    return run_of(path, recipe_of(**(TWELVE | EVERY_KIND)[name]))


def sequences(task: Task, lengths: tuple[int, ...], count: int = 2) -> list[list[int]]:
    """Prompts with their answers, of several lengths."""
    rows = []
    for length in lengths:
        made = task.make(RandomBits(3, TEST_STREAM, 100 * length + np.arange(count)), length)
        pairs = zip(made.tokens.tolist(), made.sizes.tolist(), strict=True)
        rows += [row[:size] for row, size in pairs]
    return rows


def padded(rows: list[list[int]], pad: int, side: str) -> tuple[Tensor, Tensor]:
    """(B, T) tokens and mask."""
    width = max(map(len, rows))
    tokens, mask = [], []
    for row in rows:
        fill, real = [pad] * (width - len(row)), [1] * len(row)
        none = [0] * len(fill)
        tokens.append(fill + row if side == "left" else row + fill)
        mask.append(none + real if side == "left" else real + none)
    return torch.tensor(tokens), torch.tensor(mask)


def assert_near(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def loaded(run: Run, path: Path) -> Any:
    export_transformers(run, path)
    return AutoModelForCausalLM.from_pretrained(path)


def in_memory(run: Run) -> Any:
    """The same without files."""
    model = hf.TaskhintForCausalLM(hf.TaskhintConfig(**model_config(run.recipe, 7)))
    model.load_state_dict(dict(split_weights(dict(run.model.named_parameters()))))
    return model.eval()


def logits_of(run: Run, row: list[int], head: str) -> Tensor:
    inputs = row.index(run.task.vocab.delimiter)
    return run.model(torch.tensor([row]), head, inputs)[0]
