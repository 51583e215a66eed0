"""The decoder against the padded oracle, its trace against its own weights, its cache against no
cache.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch

from taskhint.data.batch import Group, make_batch
from taskhint.data.dataset import Dataset, fresh_examples
from taskhint.model.attention.packed import PackedAttention
from taskhint.model.attention.paths import attend_by_group
from taskhint.model.attention.symbol_counts import attend_by_counts
from taskhint.model.attention.varlen import has_kernel, varlen_attend
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.decoding import greedy
from taskhint.model.positions import Learned, Mirror, Sinusoidal
from taskhint.model.softmax import LogVisible
from taskhint.model.trace import trace_names
from taskhint.system.errors import UserError
from taskhint.tasks import Carry, Count, Fill, Increment, Sort, Successor, Task
from tests.reference import padded_logits, padded_loss, slow_greedy

BASE = ModelConfig(width=24, heads=3, depth=2, mlp_width=40)
TEMPERATURES = ("constant", "log-visible", "log-input", "log-sequence")
VARIANTS = {
    **{f"temperature-{t}": replace(BASE, temperature=t) for t in TEMPERATURES},  # type: ignore[arg-type]
    "relu-no-norm": replace(BASE, activation="relu", norm="none"),
    "norm-after": replace(BASE, norm="after", temperature=LogVisible()),
    "learned": replace(BASE, positions=Learned()),
    "sinusoidal": replace(BASE, positions=Sinusoidal()),
    "unit-keys": replace(BASE, qk_norm=True, temperature=LogVisible()),
    "mirror": replace(BASE, positions=Mirror(), temperature=LogVisible()),
    "attention-only": replace(BASE, mlp_width=0),
    "one-block": replace(BASE, depth=1, temperature=LogVisible()),
    "wide-heads": replace(BASE, head_width=20, depth=3),
}
TASKS: list[Task] = [Sort(), Successor(), Count(), Fill(), Increment(), Carry()]


def decoder_for(config: ModelConfig, task: Task, dtype: torch.dtype = torch.float32) -> Decoder:
    decoder = Decoder(config, task.vocab.size, [task.kind])
    decoder.initialise(1)
    generator = torch.Generator().manual_seed(2)
    with (
        torch.no_grad()
    ):  # biases, norms and β away from where they start, so that each of them matters
        for value in decoder.parameters():
            value.add_(0.1 * torch.randn(value.shape, generator=generator))
    return decoder.to(dtype)


def gradients(decoder: Decoder, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    values = dict(decoder.named_parameters())
    return dict(zip(values, torch.autograd.grad(loss, list(values.values())), strict=True))


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_no_padding_gives_the_loss_and_gradients_of_padding(name: str, dtype: torch.dtype) -> None:
    task = Sort()
    decoder = decoder_for(VARIANTS[name], task, dtype)
    parts = Dataset(task, 0, 10**6).examples(range(120))
    batch = make_batch(task, parts)
    ours = torch.nn.functional.cross_entropy(decoder(batch, "sort"), batch.targets)
    plain = padded_loss(decoder, task, parts)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    assert abs(ours.item() - plain.item()) < tolerance
    wanted = gradients(decoder, plain)
    for key, value in gradients(decoder, ours).items():
        assert (value - wanted[key]).abs().max() < tolerance, key


@pytest.mark.parametrize(
    ("task", "temperature"), list(itertools.product(TASKS, TEMPERATURES)), ids=str
)
def test_every_task_and_temperature_without_padding(task: Task, temperature: str) -> None:
    decoder = decoder_for(replace(BASE, temperature=temperature), task)  # type: ignore[arg-type]
    parts = Dataset(task, 3, 10**6).examples(range(60))
    batch = make_batch(task, parts)
    ours = torch.nn.functional.cross_entropy(decoder(batch, task.kind), batch.targets)
    plain = padded_loss(decoder, task, parts)
    assert abs(ours.item() - plain.item()) < 1e-5
    wanted = gradients(decoder, plain)
    for key, value in gradients(decoder, ours).items():
        assert (value - wanted[key]).abs().max() < 1e-5, key


@pytest.mark.parametrize("name", VARIANTS)
def test_cached_and_uncached_decoding_agree_token_by_token(name: str) -> None:
    task = Sort()
    decoder = decoder_for(VARIANTS[name], task, torch.float64)
    examples = fresh_examples(task, 0, 9, 0, 12)
    prompts = torch.from_numpy(examples.tokens[:, :10])
    cached = greedy(decoder, "sort", prompts, 9, torch.from_numpy(examples.inputs), sequence=19)
    for row, answer in zip(prompts.tolist(), cached.tolist(), strict=True):
        assert answer == slow_greedy(decoder, "sort", row, 9, 9)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_trace_has_every_name_and_the_right_logits(name: str) -> None:
    task = Sort()
    config = VARIANTS[name]
    decoder = decoder_for(config, task)
    tokens = torch.from_numpy(fresh_examples(task, 0, 7, 0, 5).tokens[:, :-1])
    trace = decoder.trace(tokens, "sort", 7)
    assert set(trace) == set(trace_names(config.depth, config.mlp_width > 0))
    plain = padded_logits(decoder, "sort", tokens, torch.full((5,), 7), torch.full((5,), 15))
    assert (trace["logits"] - plain).abs().max() < 1e-4
    weights = trace["blocks.0.attention.weights"]
    assert weights.shape == (5, config.heads, 14, 14)
    assert torch.allclose(weights.sum(dim=3), torch.ones(5, config.heads, 14))
    assert (weights.triu(1) == 0).all()


def test_the_trace_of_a_batch_is_that_of_each_example() -> None:
    task = Sort()
    decoder = decoder_for(VARIANTS["temperature-log-visible"], task)
    tokens = torch.from_numpy(fresh_examples(task, 0, 12, 0, 6).tokens[:, :-1])
    together = decoder.trace(tokens, "sort", 12)
    for i, row in enumerate(tokens):
        alone = decoder.trace(row[None], "sort", 12)
        for name in together:
            difference = (together[name][i] - alone[name][0]).nan_to_num(
                0.0
            )  # -inf minus -inf where keys are hidden
            assert difference.abs().max() < 1e-5, name


def test_the_last_block_leaves_out_nothing_that_counts() -> None:
    """The logits at the scored positions are those of a full pass."""
    task = Fill()
    decoder = decoder_for(BASE, task)
    examples = fresh_examples(task, 0, 8, 0, 20)
    batch = make_batch(task, [examples])
    full = decoder.trace(torch.from_numpy(examples.tokens[:, :-1]), "fill", 8)["logits"]
    scored = torch.from_numpy(task.scored(examples)[:, 1:])
    assert torch.allclose(decoder(batch, "fill"), full[scored], atol=1e-5)


def test_unknown_trace_names_and_heads_name_the_nearest() -> None:
    task = Sort()
    decoder = decoder_for(BASE, task)
    trace = decoder.trace(torch.zeros(1, 3, dtype=torch.long), "sort", 2)
    with pytest.raises(KeyError, match="after_mlp"):
        trace["blocks.0.after_mpl"]
    with pytest.raises(UserError, match="sort"):
        decoder.head("srot")


def test_learned_positions_end_with_a_clear_word() -> None:
    task = Sort()
    decoder = decoder_for(replace(BASE, positions=Learned(16)), task)
    with pytest.raises(UserError, match="16 learned positions"):
        decoder.trace(torch.zeros(1, 17, dtype=torch.long), "sort", 8)


@pytest.mark.parametrize(
    "bad",
    [
        {"width": 100, "heads": 16},
        {"depth": 0},
        {"mlp_width": -1},
        {"width": 25, "heads": 5, "positions": "sinusoidal"},
        {"width": 24, "heads": 8, "positions": "mirror"},
    ],
)
def test_impossible_shapes_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(UserError):
        ModelConfig(**bad)  # type: ignore[arg-type]


def causal_by_hand(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **settings: Any
) -> torch.Tensor:
    """What the GPU's variable-length kernel promises, one example and one head at a time."""
    assert settings["window_size"] == (-1, 0) and settings["scale"] == 1.0
    asked, seen = settings["cu_seq_q"].tolist(), settings["cu_seq_k"].tolist()
    assert settings["max_q"] == max(b - a for a, b in itertools.pairwise(asked))
    assert settings["max_k"] == max(b - a for a, b in itertools.pairwise(seen))
    out = torch.empty_like(query)
    for (a, b), (c, d) in zip(itertools.pairwise(asked), itertools.pairwise(seen), strict=True):
        for head in range(query.shape[1]):
            for i in range(a, b):
                last = d - (b - 1 - i)
                weights = torch.softmax(query[i, head] @ key[c:last, head].T, dim=0)
                out[i, head] = weights @ value[c:last, head]
    return out


@pytest.mark.parametrize("tail", [False, True])
def test_the_variable_length_path_means_the_same(
    monkeypatch: pytest.MonkeyPatch, tail: bool
) -> None:
    """There is no GPU here: the kernel is replaced by what it promises; the layout around it is
    what is tested.
    """
    monkeypatch.setattr("taskhint.model.attention.varlen.varlen_attn", causal_by_hand)
    groups = make_batch(Sort(), Dataset(Sort(), 0, 10**6).examples(range(20))).groups
    tokens = sum(group.count * group.length for group in groups)
    asking = sum(group.count * (group.tail if tail else group.length) for group in groups)
    generator = torch.Generator().manual_seed(0)
    q, kv = (
        torch.randn(asking, 2, 8, generator=generator),
        torch.randn(tokens, 2, 2, 8, generator=generator),
    )
    scale = torch.rand(asking, 1, generator=generator)
    wanted = attend_by_group(q, kv, scale, groups, tail)
    assert (
        varlen_attend(q, kv, scale, groups, tail) - wanted
    ).abs().max() < 0.05  # the kernel works in bfloat16


def test_a_torch_without_that_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_windows(query: torch.Tensor, is_causal: bool) -> None: ...

    for kernel in (None, without_windows):
        monkeypatch.setattr("taskhint.model.attention.varlen.varlen_attn", kernel)
        assert not has_kernel()


@pytest.mark.parametrize("tail", [False, True])
def test_the_fast_attention_is_the_plain_one(tail: bool) -> None:
    groups = make_batch(Fill(), Dataset(Fill(), 0, 10**6).examples(range(50))).groups
    tokens = sum(group.count * group.length for group in groups)
    asking = sum(group.count * (group.tail if tail else group.length) for group in groups)
    values = [
        torch.randn(shape, dtype=torch.float64)
        for shape in ((asking, 3, 8), (tokens, 2, 3, 8), (asking, 1))
    ]
    upstream = torch.randn(asking, 3, 8, dtype=torch.float64)
    results = []
    for attend in (PackedAttention.apply, attend_by_group):
        leaves = [value.clone().requires_grad_() for value in values]
        out = attend(*leaves, groups, tail)  # type: ignore[arg-type,call-arg]
        results.append([out, *torch.autograd.grad(out, leaves, upstream)])
    for fast, plain in zip(*results, strict=True):
        assert torch.allclose(fast, plain, atol=1e-10)


@pytest.mark.parametrize(
    "name", [name for name in VARIANTS if VARIANTS[name].positions.kind == "none"]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_looking_at_symbols_is_looking_at_tokens(
    monkeypatch: pytest.MonkeyPatch, name: str, dtype: torch.dtype
) -> None:
    taken = []

    def watched(*given: Any) -> torch.Tensor | None:
        taken.append(attend_by_counts(*given))
        return taken[-1]

    monkeypatch.setattr("taskhint.model.block.attend_by_counts", watched)
    task = Sort(symbols=5)
    decoder = decoder_for(VARIANTS[name], task, dtype)
    batch = make_batch(task, [fresh_examples(task, 0, length, 0, 7) for length in (12, 30)])
    with torch.no_grad():
        fast = decoder(batch, "sort")
    assert len(taken) == 1 and taken[0] is not None, "the first block, and no other"
    plain = decoder(batch, "sort")
    assert taken[1] is None, "not where gradients are wanted"
    assert (fast - plain).abs().max() < (2e-5 if dtype == torch.float32 else 1e-12)


def test_logits_too_large_for_a_logarithm_beside_them_are_left_to_the_plain_way() -> None:
    tables = torch.ones(4, 1, 8), torch.ones(4, 2, 1, 8)
    tokens, groups = torch.arange(16) % 4, (Group(1, 16, 3),)
    with torch.no_grad():
        assert attend_by_counts(*tables, torch.full((3, 1), 1e2), tokens, groups, True) is not None
        assert attend_by_counts(*tables, torch.full((3, 1), 1e3), tokens, groups, True) is None
        assert (
            attend_by_counts(*tables, torch.full((3, 1), float("nan")), tokens, groups, True)
            is None
        )
