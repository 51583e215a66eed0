"""Exported models in transformers: the same numbers as ours, with padding and cache, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

import taskhint.hf as hf
from taskhint.ecosystem.export import (
    export_transformers,
    model_config,
    split_weights,
)
from taskhint.model.decoding import greedy
from taskhint.model.positions import Positions
from taskhint.model.temperature import Temperature
from taskhint.runs.run import Run
from taskhint.tasks.task import Task
from tests.ecosystem import (
    INCREMENT,
    TWELVE,
    one_thread,
    padded,
    recipe_of,
    run_named,
    run_of,
    sequences,
)

__all__ = ["one_thread"]


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


def ours(run: Run, row: list[int], head: str) -> Tensor:
    inputs = row.index(run.task.vocab.delimiter)
    return run.model(torch.tensor([row]), head, inputs)[0]


@torch.no_grad()
def check_padded(run: Run, model: Any, task: Task) -> None:
    rows = sequences(task, (2, 5, 3))
    pad = task.vocab.pad
    for side in ("left", "right"):
        tokens, mask = padded(rows, pad, side)
        found = model(tokens, attention_mask=mask, head=task.kind).logits
        for row, real, logits in zip(rows, mask.bool(), found, strict=True):
            assert_near(logits[real], ours(run, row, task.kind))


@torch.no_grad()
def check_cached(run: Run, model: Any, task: Task) -> None:
    """The prompts at once, then some tokens together, then one after another."""
    rows = sequences(task, (3, 5))
    tokens, mask = padded(rows, task.vocab.pad, "left")
    prompt = int((tokens == task.vocab.delimiter).long().argmax(dim=1).max()) + 1
    sizes = mask.sum(dim=1) + 1
    cache, parts = None, []
    for part in (slice(0, prompt), slice(prompt, prompt + 2), *map(one, range(prompt + 2, 99))):
        if part.start >= tokens.shape[1]:
            break
        out = model(
            tokens[:, part],
            attention_mask=mask[:, : part.stop],
            past_key_values=cache,
            use_cache=True,
            head=task.kind,
            sequence_lengths=sizes,
        )
        cache = out.past_key_values
        parts.append(out.logits)
    for row, real, logits in zip(rows, mask.bool(), torch.cat(parts, dim=1), strict=True):
        assert_near(logits[real], ours(run, row, task.kind))


def one(place: int) -> slice:
    return slice(place, place + 1)


def check_answers(run: Run, model: Any, count: int) -> None:
    """`generate` of a padded batch with prompts of several lengths, and our decoding of each."""
    task = run.task
    for length in (2, 3, 6):
        rows = sequences(task, (length, length + 1), count)
        prompts = [row[: row.index(task.vocab.delimiter) + 1] for row in rows]
        counts = [len(task.solve(prompt)) for prompt in prompts]
        sizes = torch.tensor([len(p) + n for p, n in zip(prompts, counts, strict=True)])
        for side in ("left", "right"):
            tokens, mask = padded(prompts, task.vocab.pad, side)
            found = model.generate(
                tokens,
                attention_mask=mask,
                max_new_tokens=max(counts),
                sequence_lengths=sizes,
                do_sample=False,
            )
            answers = found[:, tokens.shape[1] :].tolist()
            for prompt, size, number, answer in zip(prompts, sizes, counts, answers, strict=True):
                wanted = greedy(
                    run.model,
                    task.kind,
                    torch.tensor([prompt]),
                    number,
                    torch.tensor([len(prompt) - 1]),
                    int(size),
                )
                assert answer[:number] == wanted[0].tolist()


@pytest.mark.parametrize("temperature", Temperature.kinds())
@pytest.mark.parametrize("positions", Positions.kinds())
def test_every_scheme_and_temperature_on_padded_batches(
    positions: str, temperature: str, tmp_path: Path
) -> None:
    if not Positions.kinds()[positions].__module__.startswith("taskhint."):
        return
    recipe = recipe_of(INCREMENT, positions=positions, temperature=temperature)
    run = run_of(tmp_path / "run", recipe)
    model = in_memory(run)
    check_padded(run, model, INCREMENT)
    check_cached(run, model, INCREMENT)


@pytest.mark.parametrize("name", [*TWELVE, "constructed"])
def test_logits_and_answers_of_an_exported_model(name: str, tmp_path: Path) -> None:
    run = run_named(name, tmp_path / "run")
    model = loaded(run, tmp_path / "model")
    assert type(model) is hf.TaskhintForCausalLM
    for task in run.recipe.tasks:
        check_padded(run, model, task)
        check_cached(run, model, task)
    check_answers(run, model, 5)
