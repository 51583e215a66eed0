"""Exported models in transformers: the same numbers as ours, with padding and with a cache."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

import taskhint.hf as hf
from taskhint.construct import construct
from taskhint.model.positions import Coupling, Positions, Randomised
from taskhint.recipes.recipe import Recipe
from taskhint.runs.run import Run
from taskhint.system.errors import UserError
from taskhint.tasks import Addition, AdditionScratchpad, Copy, Reverse
from taskhint.tasks.increment import Carry
from taskhint.tasks.task import Task
from tests.ecosystem.models import (
    EVERY_KIND,
    FAMILIES,
    INCREMENT,
    SORT,
    TWELVE,
    assert_near,
    in_memory,
    loaded,
    logits_of,
    of_the_package,
    one_thread,
    padded,
    recipe_of,
    run_named,
    run_of,
    sequences,
)

__all__ = ["one_thread"]


@torch.no_grad()
def check_padded(run: Run, model: Any, task: Task) -> None:
    rows = sequences(task, (2, 5, 3))
    pad = task.vocab.pad
    for side in ("left", "right"):
        tokens, mask = padded(rows, pad, side)
        found = model(tokens, attention_mask=mask, head=task.kind).logits
        for row, real, logits in zip(rows, mask.bool(), found, strict=True):
            assert_near(logits[real], logits_of(run, row, task.kind))


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
        assert_near(logits[real], logits_of(run, row, task.kind))


def one(place: int) -> slice:
    return slice(place, place + 1)


def check_answers(run: Run, model: Any) -> None:
    """`generate` of padded batches with prompts of several lengths is `solve` of each: 200."""
    task, vocab = run.task, run.task.vocab
    for side, first in (("left", 2), ("right", 5)):
        rows = sequences(task, (first, first + 1), 50)
        prompts = [row[: row.index(vocab.delimiter) + 1] for row in rows]
        counts = [len(task.solve(prompt)) for prompt in prompts]
        tokens, mask = padded(prompts, vocab.pad, side)
        found = model.generate(
            tokens,
            attention_mask=mask,
            max_new_tokens=max(counts),
            sequence_lengths=mask.sum(dim=1) + torch.tensor(counts),
            do_sample=False,
        )
        for prompt, count, row in zip(prompts, counts, found.tolist(), strict=True):
            answer = vocab.words(row[tokens.shape[1] :][:count])
            assert answer == run.solve(vocab.words(prompt[:-1]))


GRID = [of_the_package(family) for family in FAMILIES.values()]


@pytest.mark.parametrize(
    ("positions", "temperature", "normaliser"), list(itertools.product(*GRID))
)
def test_every_scheme_temperature_and_normaliser_on_padded_batches(
    positions: str, temperature: str, normaliser: str, tmp_path: Path
) -> None:
    """In float64: in float32 the squared places of windows take the last digits."""
    chosen: dict[str, Any] = {"positions": positions, "temperature": temperature}
    recipe = recipe_of(INCREMENT, normaliser=normaliser, **chosen)
    run = run_of(tmp_path / "run", recipe)
    model = in_memory(run).double()
    run.model.double()
    check_padded(run, model, INCREMENT)
    check_cached(run, model, INCREMENT)


@pytest.mark.parametrize("name", EVERY_KIND)
def test_every_kind_through_files(name: str, tmp_path: Path) -> None:
    run = run_named(name, tmp_path / "run")
    model = loaded(run, tmp_path / "model")
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
    check_answers(run, model)


# These give position ids to an inner scheme; some schemes take none, having places of their own.
OUTER = {"coupling": Coupling, "randomised": Randomised}
OWN_PLACES = {"abacus", "coupling", "learned-offset", "mirror", "randomised"}


def refused_inside(outer: str, scheme: str) -> bool:
    try:
        _inside(outer, scheme)
    except UserError as error:
        assert "has places of its own" in str(error)
        return True
    return False


def _inside(outer: str, scheme: str) -> Recipe:
    inner = Positions.kinds()[scheme]()
    positions = OUTER[outer](scheme=inner, span=255)
    return recipe_of(INCREMENT, positions=positions)


@pytest.mark.parametrize("scheme", of_the_package(Positions))
@pytest.mark.parametrize("outer", OUTER)
def test_schemes_inside_of_others(outer: str, scheme: str, tmp_path: Path) -> None:
    """Each agrees, or no recipe can have it there."""
    if refused_inside(outer, scheme):
        return
    run = run_of(tmp_path / "run", _inside(outer, scheme))
    model = in_memory(run)
    check_padded(run, model, INCREMENT)
    check_cached(run, model, INCREMENT)


def test_which_schemes_cannot_stand_inside_of_others() -> None:
    for outer in OUTER:
        refused = {one for one in of_the_package(Positions) if refused_inside(outer, one)}
        assert refused == OWN_PLACES


@pytest.mark.parametrize(
    "task",
    [
        Copy(),
        Reverse(),
        Addition(),
        Addition(operands="reversed"),
        AdditionScratchpad(),
        Carry(),
    ],
    ids=lambda task: task.kind,
)
def test_what_every_task_couples(task: Task, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", recipe_of(task, positions="coupling"))
    model = in_memory(run)
    check_padded(run, model, task)
    check_cached(run, model, task)


@torch.no_grad()
@pytest.mark.parametrize("layer_norm", [False, True])
def test_number_formats_of_constructed_models(layer_norm: bool, tmp_path: Path) -> None:
    run = construct(tmp_path / "run", 8, 20, layer_norm=layer_norm, dtype="float64")
    model = loaded(run, tmp_path / "model")
    tokens = torch.tensor(sequences(run.task, (6,)))
    found, wanted = model(tokens).logits, run.model(tokens, "sort", 6)
    torch.testing.assert_close(found, wanted, atol=1e-12, rtol=1e-12)


@torch.no_grad()
def test_beams_and_no_cache_give_what_greedy_decoding_with_a_cache_does(tmp_path: Path) -> None:
    """The tokens so far are a layer of the cache: beams reorder them as they do keys."""
    run = run_of(tmp_path / "run", recipe_of(INCREMENT, positions="abacus"))
    model = in_memory(run)
    rows = sequences(INCREMENT, (3, 6), 4)
    prompts = [row[: row.index(INCREMENT.vocab.delimiter) + 1] for row in rows]
    tokens, mask = padded(prompts, INCREMENT.vocab.pad, "left")
    for beams in (1, 3):
        options = {"num_beams": beams, "max_new_tokens": 5, "do_sample": False}
        cached, plain = (
            model.generate(tokens, attention_mask=mask, use_cache=use, **options)
            for use in (True, False)
        )
        assert cached.tolist() == plain.tolist()


@torch.no_grad()
def test_loss_attentions_and_hidden_states(tmp_path: Path) -> None:
    run = run_named("tempered", tmp_path / "run")
    model = in_memory(run)
    tokens = torch.tensor(sequences(SORT, (4,)))
    labels = tokens.clone()
    labels[:, :5] = -100
    out = model(tokens, labels=labels, output_attentions=True, output_hidden_states=True)
    trace = run.model.trace(tokens, "sort", 4)
    chances = trace["logits"].log_softmax(dim=2)[:, 4:-1]
    wanted = -chances.gather(2, tokens[:, 5:, None]).mean()
    assert_near(out.loss, wanted)
    assert_near(out.attentions[1], trace["blocks.1.attention.weights"])
    assert_near(out.hidden_states[0], trace["embedding"])
    assert_near(out.hidden_states[2], trace["blocks.1.after_mlp"])


def test_refusals_of_the_model(tmp_path: Path) -> None:
    model = in_memory(run_named("randomised", tmp_path / "run"))
    tokens = torch.tensor(sequences(SORT, (3,)))
    with pytest.raises(ValueError, match="no head 'successor'; it has: sort"):
        model(tokens, head="successor")
    with pytest.raises(ValueError, match="attention_mask is"):
        model(tokens, attention_mask=torch.ones(2, 3))
    with pytest.raises(ValueError, match="max_new_tokens"):
        model.generate(tokens)
