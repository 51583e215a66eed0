"""nnsight on `Run.model` and on an exported model: the values of our Trace, and our edits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from nnsight import NNsight
from torch import Tensor

from taskhint.model.edits import KnockOutHead, KnockOutMlp, ScaleTemperature
from taskhint.runs.run import Run
from tests.ecosystem.models import assert_near, loaded, one_thread, run_named, sequences

__all__ = ["one_thread"]

NAMES = ["tempered", "mirror", "t5", "hinted"]


def example(run: Run) -> tuple[Tensor, int]:
    """Two sequences, and how many tokens stand before ⊥."""
    rows = sequences(run.task, (5,))
    return torch.tensor(rows), rows[0].index(run.task.vocab.delimiter)


@pytest.mark.parametrize("name", NAMES)
def test_values_of_a_run_s_own_model_are_those_of_the_trace(name: str, tmp_path: Path) -> None:
    """Tokens are flat there, (B * T, ...): `view_as` puts them in rows."""
    run = run_named(name, tmp_path / "run")
    tokens, inputs = example(run)
    head = run.task.kind
    model = NNsight(run.model)
    with model.trace(tokens, head, inputs):
        embedded = model.blocks[0].input.save()
        heads = model.blocks[0].attention.out.input.save()
        out = model.blocks[0].attention.output.save()
        middle = model.blocks[0].before_mlp.input.save()
        mlp = model.blocks[0].mlp.output.save()
        after = model.blocks[0].output.save()
        final = model.final_norm.output.save()
        logits = model.output.save()
    trace = run.model.trace(tokens, head, inputs)
    found = {
        "embedding": embedded,
        "blocks.0.attention.heads": heads,
        "blocks.0.attention.out": out,
        "blocks.0.after_attention": middle,
        "blocks.0.mlp.out": mlp,
        "blocks.0.after_mlp": after,
        "final": final,
        "logits": logits,
    }
    for ours, value in found.items():
        assert_near(value.view_as(trace[ours]), trace[ours])


@pytest.mark.parametrize("name", NAMES)
def test_values_of_an_exported_model_are_those_of_the_trace(name: str, tmp_path: Path) -> None:
    run = run_named(name, tmp_path / "run")
    tokens, inputs = example(run)
    model = NNsight(loaded(run, tmp_path / "model"))
    with model.trace(tokens):
        embedded = model.blocks[0].input.save()
        scale = model.blocks[1].attention.scale.output.save()
        scores = model.blocks[1].attention.scores.output.save()
        pattern = model.blocks[1].attention.pattern.output.save()
        heads = model.blocks[1].attention.out.input.save()
        out = model.blocks[1].attention.output.save()
        middle = model.blocks[1].after_attention.output.save()
        mlp = model.blocks[1].mlp.output.save()
        after = model.blocks[1].output.save()
        final = model.final_norm.output.save()
        logits = model.heads.output.save()
    trace = run.model.trace(tokens, run.task.kind, inputs)
    found = {
        "embedding": embedded,
        "blocks.1.attention.scale": scale,
        "blocks.1.attention.logits": scores,
        "blocks.1.attention.weights": pattern,
        "blocks.1.attention.heads": heads,
        "blocks.1.attention.out": out,
        "blocks.1.after_attention": middle,
        "blocks.1.mlp.out": mlp,
        "blocks.1.after_mlp": after,
        "final": final,
        "logits": logits,
    }
    for ours, value in found.items():
        assert_near(value.view_as(trace[ours]), trace[ours])


@pytest.mark.parametrize("name", NAMES)
def test_edits_of_a_run_s_own_model_are_our_edits(name: str, tmp_path: Path) -> None:
    run = run_named(name, tmp_path / "run")
    tokens, inputs = example(run)
    head, width = run.task.kind, run.recipe.model.each_head
    model = NNsight(run.model)
    with model.trace(tokens, head, inputs):
        heads = model.blocks[1].attention.out.input.clone()
        heads[:, :width] = 0.0
        model.blocks[1].attention.out.input = heads
        found = model.output.save()
    edit = KnockOutHead(block=1, head=0)
    assert_near(found, run.model.trace(tokens, head, inputs, edits=[edit])["logits"])
    with model.trace(tokens, head, inputs):
        model.blocks[0].mlp.output = torch.zeros_like(model.blocks[0].mlp.output)
        found = model.output.save()
    wanted = run.model.trace(tokens, head, inputs, edits=[KnockOutMlp(block=0)])["logits"]
    assert_near(found, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_edits_of_an_exported_model_are_our_edits(name: str, tmp_path: Path) -> None:
    """Also where attention looks."""
    run = run_named(name, tmp_path / "run")
    tokens, inputs = example(run)
    model = NNsight(loaded(run, tmp_path / "model"))
    with model.trace(tokens):
        pattern = model.blocks[1].attention.pattern.output.clone()
        pattern[:, 0] = 0.0
        model.blocks[1].attention.pattern.output = pattern
        blind = model.output.logits.save()
    with model.trace(tokens):
        scale = model.blocks[0].attention.scale
        scale.output = 3.0 * scale.output
        sharp = model.output.logits.save()
    edits = {KnockOutHead(block=1, head=0): blind, ScaleTemperature(block=0, factor=3.0): sharp}
    for edit, found in edits.items():
        wanted = run.model.trace(tokens, run.task.kind, inputs, edits=[edit])["logits"]
        assert_near(found, wanted)
