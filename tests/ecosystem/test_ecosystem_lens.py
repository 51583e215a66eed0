"""Exported models in TransformerLens: its cache is our Trace, and its hooks are our edits."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformer_lens.factories import architecture_adapter_factory
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.model_bridge.sources import build_bridge_from_module
from transformers import AutoModelForCausalLM

from taskhint.ecosystem.export import export_transformers
from taskhint.lens import LENS_NAMES, TaskhintArchitectureAdapter, lens_name
from taskhint.model.edits import Edit, KnockOutHead, KnockOutMlp, ReplaceStream, ScaleTemperature
from taskhint.runs.run import Run, load
from tests.ecosystem.models import (
    EVERY_KIND,
    TWELVE,
    assert_near,
    one_thread,
    run_named,
    sequences,
)

__all__ = ["one_thread"]

GROUP = "transformer_lens.architectures"


def booted(run: Run, path: Path) -> Any:
    export_transformers(run, path)
    dtype = getattr(torch, run.recipe.model.dtype)
    return TransformerBridge.boot_transformers(str(path), device="cpu", dtype=dtype)


def example(run: Run, length: int = 5) -> tuple[Tensor, int]:
    """Two sequences of that length, and how many tokens stand before ⊥."""
    rows = sequences(run.task, (length,))
    return torch.tensor(rows), rows[0].index(run.task.vocab.delimiter)


@torch.no_grad()
@pytest.mark.parametrize("name", [*TWELVE, *EVERY_KIND, "constructed"])
def test_the_cache_is_our_trace_at_every_name(name: str, tmp_path: Path) -> None:
    run = run_named(name, tmp_path / "run")
    bridge = booted(run, tmp_path / "model")
    tokens, inputs = example(run)
    for task in run.recipe.tasks:
        trace = run.model.trace(tokens, task.kind, inputs)
        logits, cache = bridge.run_with_cache(tokens, head=task.kind)
        assert_near(logits, trace["logits"])
        for ours in trace:
            assert_near(cache[lens_name(ours)], trace[ours])


def test_the_table_has_every_name_of_a_trace(tmp_path: Path) -> None:
    run = run_named("plain", tmp_path / "run")
    tokens, inputs = example(run)
    names = {
        name.replace("blocks.0.", "blocks.{i}.")
        for name in run.model.trace(tokens, "sort", inputs)
    }
    assert {name for name in names if not name.startswith("blocks.1.")} == set(LENS_NAMES)


@torch.no_grad()
@pytest.mark.parametrize("name", ["tempered", "mirror", "t5", "alibi", "abacus"])
def test_patching_a_head_is_our_intervention(name: str, tmp_path: Path) -> None:
    run = run_named(name, tmp_path / "run")
    bridge = booted(run, tmp_path / "model")
    tokens, inputs = example(run)
    for block in range(2):
        for head in range(2):
            edit = KnockOutHead(block=block, head=head)
            check_edit(run, bridge, tokens, inputs, edit, lambda z, head=head: without(z, head))


def without(z: Tensor, head: int) -> Tensor:
    z = z.clone()
    z[:, :, head] = 0.0
    return z


@torch.no_grad()
def test_every_edit_of_ours_as_a_hook(tmp_path: Path) -> None:
    run = run_named("tempered", tmp_path / "run")
    bridge = booted(run, tmp_path / "model")
    tokens, inputs = example(run)
    scale = ScaleTemperature(block=1, factor=3.0)
    check_edit(run, bridge, tokens, inputs, scale, lambda value: 3.0 * value)
    check_edit(run, bridge, tokens, inputs, KnockOutMlp(block=0), lambda value: 0.0 * value)
    other, _ = example(run, 4)
    for stream in ("embedding", "blocks.0.after_attention", "blocks.0.after_mlp"):
        source = bridge.run_with_cache(other[:1])[1][lens_name(stream)][0, 1]
        edit = ReplaceStream(stream, 2, tuple(other[0].tolist()), 4, 1)

        def patched(value: Tensor, source: Tensor = source) -> Tensor:
            value = value.clone()
            value[:, 2] = source
            return value

        check_edit(run, bridge, tokens, inputs, edit, patched)


def check_edit(
    run: Run, bridge: Any, tokens: Tensor, inputs: int, edit: Edit, change: Any
) -> None:
    head = run.task.kind
    wanted = run.model.trace(tokens, head, inputs, edits=[edit])["logits"]
    hooks = [(lens_name(edit.at), lambda value, hook: change(value))]  # noqa: ARG005
    assert_near(bridge.run_with_hooks(tokens, fwd_hooks=hooks), wanted)
    assert not torch.allclose(wanted, run.model.trace(tokens, head, inputs)["logits"], atol=1e-3)


@torch.no_grad()
def test_an_edit_of_the_attention_pattern_has_an_effect(tmp_path: Path) -> None:
    """A pattern that looks at the first token alone gathers that token's values."""
    run = run_named("qk-norm", tmp_path / "run")
    bridge = booted(run, tmp_path / "model")
    tokens, _ = example(run)

    def at_first(pattern: Tensor, hook: Any) -> Tensor:  # noqa: ARG001
        pattern = torch.zeros_like(pattern)
        pattern[..., 0] = 1.0
        return pattern

    bridge.add_hook("blocks.1.attn.hook_pattern", at_first)
    _, cache = bridge.run_with_cache(tokens)
    bridge.reset_hooks()
    values = cache["blocks.1.attn.hook_v"]
    assert_near(cache["blocks.1.attn.hook_z"], values[:, :1].expand_as(values))


@torch.no_grad()
def test_the_head_of_the_reference_model_that_looks_at_the_end_of_the_input(
    tmp_path: Path,
) -> None:
    """docs/ecosystem.md names it; found as a user of TransformerLens would find it."""
    run = load(Path(__file__).parents[2] / "results" / "models" / "sort-best")
    bridge = booted(run, tmp_path / "model")
    _, cache = bridge.run_with_cache(bridge.to_tokens("5 17 43 17 ⊥ 5 17"))
    looks = torch.stack([cache["pattern", block][0, :, 5:, 4].mean(dim=1) for block in range(2)])
    assert divmod(int(looks.argmax()), 4) == (0, 3)
    assert looks[0, 3] > 0.99
    page = (Path(__file__).parents[2] / "docs" / "ecosystem.md").read_text()
    assert "it is head 3 of block 0, with all of its" in page


def test_words_and_weights_in_the_shapes_of_transformer_lens(tmp_path: Path) -> None:
    run = run_named("tempered", tmp_path / "run")
    bridge = booted(run, tmp_path / "model")
    assert bridge.to_tokens("3 1 2 ⊥").tolist() == [[2, 0, 1, run.task.vocab.delimiter]]
    assert bridge.to_str_tokens("3 1 2 ⊥") == ["3", "1", "2", "⊥"]
    answer = bridge.generate("3 1 2 ⊥", max_new_tokens=3, do_sample=False, stop_at_eos=False)
    assert answer.split()[4:] == run.solve("3 1 2")
    queries = run.model.get_parameter("blocks.1.attention.qkv").chunk(3)[0]
    assert torch.equal(bridge.W_Q[1], queries.unflatten(0, (2, 8)).transpose(1, 2))
    assert torch.equal(bridge.W_U.T, run.model.get_parameter("heads.sort.weight"))


def test_the_entry_point_gives_the_adapter(tmp_path: Path, monkeypatch: Any) -> None:
    """As pyproject.toml declares it, for who has not imported taskhint.lens."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    [(name, value)] = project["entry-points"][GROUP].items()
    factory = architecture_adapter_factory.ArchitectureAdapterFactory
    others = {key: kind for key, kind in factory._adapters.items() if key != name}
    monkeypatch.setattr(factory, "_adapters", others)
    monkeypatch.setattr(factory, "_entry_points_discovered", False)
    points = EntryPoints([EntryPoint(name, value, GROUP)])
    monkeypatch.setattr(architecture_adapter_factory, "entry_points", points.select)
    run = run_named("plain", tmp_path / "run")
    export_transformers(run, tmp_path / "model")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    bridge = build_bridge_from_module(model, name, hf_config=model.config)
    assert type(bridge.adapter) is TaskhintArchitectureAdapter
    tokens, inputs = example(run)
    assert_near(bridge(tokens), run.model(tokens, "sort", inputs))
