"""Every combination of positions, temperature, normaliser, norm and QK-norm: training without
padding, one-pass evaluation, cached decoding and tracing give what the plain reference gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from taskhint.data.batch import Batch, make_batch
from taskhint.evaluation.exact import judge
from taskhint.model import reference
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.decoding import greedy
from taskhint.model.positions import Positions
from taskhint.model.reference import Padded, padded
from taskhint.model.softmax import Normaliser, Temperature
from taskhint.tasks import Examples, Increment
from taskhint.tasks.random_bits import TEST_STREAM, Ints, RandomBits

TASK = Increment(nines=0.5)
BASE = ModelConfig(width=16, heads=2, depth=2, mlp_width=8)
NORMS = ("before", "after", "none")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Thousands of tiny models: threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def ours(family: Any) -> list[str]:
    """The kinds that the package itself has."""
    return [kind for kind, cls in family.kinds().items() if cls.__module__.startswith("taskhint.")]


OTHERS = list(itertools.product(NORMS, (False, True)))


def variants(positions: str, normaliser: str) -> list[ModelConfig]:
    base = replace(BASE, positions=positions, normaliser=normaliser)  # type: ignore[arg-type]
    return [
        replace(base, temperature=temperature, norm=norm, qk_norm=qk_norm)  # type: ignore[arg-type]
        for (norm, qk_norm), temperature in itertools.product(OTHERS, ours(Temperature))
    ]


def examples(length: int, count: int) -> Examples:
    return TASK.make(RandomBits(7, TEST_STREAM, 100 * length + np.arange(count)), length)


def decoder_for(config: ModelConfig, dtype: torch.dtype) -> Decoder:
    """Biases, norms and all else away from where they start, so that each of them matters."""
    decoder = Decoder(config, TASK.vocab.size, [TASK])
    decoder.initialise(1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for value in decoder.parameters():
            value.add_(0.1 * torch.randn(value.shape, generator=generator))
    return decoder.to(dtype)


def drawn(batch: Batch, config: ModelConfig) -> Batch:
    """With the position ids of a training step."""

    def draw(rows: Ints, tokens: Ints) -> Ints | None:
        return config.positions.training_ids(RandomBits(3, 63, rows), tokens, TASK)

    return batch.with_drawn_ids(draw)


def with_ids_of(batch: Batch, plain: Padded) -> Padded:
    """The same drawn ids in padded rows."""
    if batch.ids is None or batch.next_ids is None:
        return plain
    ids = torch.zeros(len(plain.tokens), plain.tokens.shape[1] + 1, dtype=torch.long)
    sizes = [group.count * group.length for group in batch.groups]
    rows = iter(batch.rows.tolist())
    for group, own, following in zip(
        batch.groups, batch.ids.split(sizes), batch.next_ids.split(sizes), strict=True
    ):
        for first, then in zip(
            own.view(group.count, -1), following.view(group.count, -1), strict=True
        ):
            ids[next(rows), : group.length + 1] = torch.cat([first, then[-1:]])
    return replace(plain, ids=ids)


PAIRS = list(itertools.product(ours(Positions), ours(Normaliser)))


@pytest.mark.parametrize(("positions", "normaliser"), PAIRS)
def test_training_without_padding_is_the_reference(positions: str, normaliser: str) -> None:
    parts = [examples(2, 5), examples(5, 4), examples(3, 3)]
    plain, following, scored = padded(TASK, parts)
    for config in variants(positions, normaliser):
        decoder = decoder_for(config, torch.float32)
        batch = drawn(make_batch(TASK, parts), config)
        loss = functional.cross_entropy(decoder(batch, TASK.kind), batch.targets)
        weights = dict(decoder.named_parameters())
        found = reference.logits(config, weights, with_ids_of(batch, plain), TASK.kind, TASK)
        wanted = functional.cross_entropy(found[scored], following[scored])
        assert abs(loss.item() - wanted.item()) < 1e-5, config
        values = list(weights.values())
        for name, one, other in zip(
            weights,
            torch.autograd.grad(loss, values),
            torch.autograd.grad(wanted, values),
            strict=True,
        ):
            assert (one - other).abs().max() < 1e-5, (config, name)


@pytest.mark.parametrize(("positions", "normaliser"), PAIRS)
@torch.no_grad()
def test_evaluation_decoding_and_tracing_are_the_reference(
    positions: str, normaliser: str
) -> None:
    some = examples(4, 6)
    sizes = torch.from_numpy(some.sizes)
    plain, _, scored = padded(TASK, [some])
    size = 9  # of the answers that grow no longer; decoding needs one size
    rows = torch.from_numpy(some.sizes == size)
    prompts, inputs = plain.tokens[rows, :5], plain.inputs[rows]
    for number, config in enumerate(variants(positions, normaliser)):
        decoder = decoder_for(config, torch.float64)
        weights = dict(decoder.named_parameters())
        wanted = reference.logits(config, weights, plain, TASK.kind, TASK)
        for row, predicted in enumerate(judge(decoder, TASK, some).predicted):
            assert (wanted[row][scored[row]].argmax(dim=1).numpy() == predicted).all(), config
        traced = decoder.trace(plain.tokens[rows, :8], TASK.kind, 4)["logits"]
        assert (traced - wanted[rows, :8]).abs().max() < 1e-10, config
        if number % len(OTHERS):  # decode with each temperature, and with one norm or another
            continue
        whole = decoder(plain.tokens[rows, :8], TASK.kind, 4)
        assert (whole - wanted[rows, :8]).abs().max() < 1e-10, config
        cached = greedy(decoder, TASK.kind, prompts, size - 5, inputs, size)
        prompt = Padded(prompts, inputs, sizes[rows])
        slow = reference.greedy(config, weights, prompt, TASK.kind, TASK)
        assert torch.equal(cached, slow), config
