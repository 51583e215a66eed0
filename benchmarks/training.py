"""Training steps: ours, the contestants', and the machine's limit, on the same batches in turn."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.contestants import CONTESTANTS, Contestant, contestants, need_packages
from benchmarks.limit import Room, run_all, unavoidable
from benchmarks.memory import peak_mib
from benchmarks.padded import PaddedBatch, padded_batch
from benchmarks.timing import Work, alternate, medians, say, timed
from taskhint.data.batch import Batch, make_batch
from taskhint.data.dataset import Dataset
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.recipes.optimisers import Muon
from taskhint.system.memory import keep_freed_memory
from taskhint.tasks import Sort, Task

BATCH_SIZE = 1024
BATCHES = 4
ROUNDS = {128: 15, 512: 5}
MODELS = {
    128: ModelConfig(width=128, heads=4, mlp_width=256),
    512: ModelConfig(width=512, heads=8, mlp_width=1024),
}
RATE = 1e-4


@dataclass(frozen=True)
class Prepared:
    """The same examples laid flat and padded; made before any clock runs."""

    flat: Batch
    padded: PaddedBatch


def measure(rounds: int | None = None) -> dict[str, Any]:
    """The document under "train"."""
    need_packages()
    contests = {width: contest(model, rounds or ROUNDS[width]) for width, model in MODELS.items()}
    keep_freed_memory()  # as our training does; the contest was without it, for everybody
    shares = {
        width: share_of_limit(model, rounds or ROUNDS[width]) for width, model in MODELS.items()
    }
    result = {f"width-{width}": contests[width] | shares[width] for width in MODELS}
    result["width-128"]["muon_share"] = muon_share(MODELS[128], rounds or ROUNDS[128])
    result["width-128"]["pocket_peak_memory_mib"] = peak_mib("train")["mib"]
    return result


def contest(
    config: ModelConfig,
    rounds: int,
    batch_size: int = BATCH_SIZE,
    only: Sequence[str] = CONTESTANTS,
) -> dict[str, Any]:
    """Examples per second of our step, and its ratio to each contestant's."""
    task = Sort()
    batches = prepare(task, batch_size)
    decoder = new_model(config, task)
    works = {"ours": our_step(decoder, task.kind, batches)}
    others = contestants(decoder, task.kind, only)
    for name, variants in others.items():
        works |= {f"{name}/{kind}": their_step(model, batches) for kind, model in variants.items()}
    seconds = medians(alternate(works, rounds, f"train, width {config.width}"))
    # All variants ran in every round; a contestant counts with its fastest.
    best = {
        name: min(variants, key=lambda kind: seconds[f"{name}/{kind}"])
        for name, variants in others.items()
    }
    for name, kind in best.items():
        seconds[name] = seconds[f"{name}/{kind}"]
    return {
        "ours": batch_size / seconds["ours"],
        "against": {name: seconds[name] / seconds["ours"] for name in best},
        "milliseconds": {name: 1000 * value for name, value in seconds.items()},
        "attention": best,
        "batch_size": batch_size,
        "rounds": rounds,
        "threads": torch.get_num_threads(),
    }


def share_of_limit(
    config: ModelConfig, rounds: int, batch_size: int = BATCH_SIZE
) -> dict[str, Any]:
    """The time of the products that cannot be avoided, as a share of our step's."""
    task = Sort()
    batches = prepare(task, batch_size)
    works = {
        "ours": our_step(new_model(config, task), task.kind, batches),
        "limit": _limit(config, task.vocab.size, batches),
    }
    seconds = medians(alternate(works, rounds, f"train, the limit at width {config.width}"))
    return {
        "of_limit": seconds["limit"] / seconds["ours"],
        "limit_milliseconds": {name: 1000 * value for name, value in seconds.items()},
    }


def prepare(task: Task, batch_size: int, count: int = BATCHES) -> list[Prepared]:
    dataset = Dataset(task, seed=0, size=count * batch_size)
    parts = [dataset.examples(range(i * batch_size, (i + 1) * batch_size)) for i in range(count)]
    return [Prepared(make_batch(task, part), padded_batch(task, part)) for part in parts]


def new_model(config: ModelConfig, task: Task) -> Decoder:
    decoder = Decoder(config, task.vocab.size, [task.kind])
    decoder.initialise(0)
    return decoder


def our_step(decoder: Decoder, head: str, batches: list[Prepared]) -> Work:
    def loss(number: int) -> Tensor:
        batch = batches[number % len(batches)].flat
        return functional.cross_entropy(decoder(batch, head), batch.targets)

    return _step(decoder, loss)


def their_step(model: Contestant, batches: list[Prepared]) -> Work:
    def loss(number: int) -> Tensor:
        batch = batches[number % len(batches)].padded
        return functional.cross_entropy(model(batch.tokens).flatten(0, 1), batch.targets.flatten())

    return _step(model, loss)


def _step(model: nn.Module, loss: Callable[[int], Tensor]) -> Work:
    """Forward, backward, fused AdamW: the same for everybody."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)

    def step(number: int) -> None:
        loss(number).backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def _limit(config: ModelConfig, vocab_size: int, batches: list[Prepared]) -> Work:
    room = Room()
    products = [unavoidable(config, vocab_size, batch.flat, room) for batch in batches]
    return lambda number: run_all(products[number % len(products)])


def muon_share(config: ModelConfig, rounds: int, batch_size: int = BATCH_SIZE) -> float:
    """The optimiser's share of our step with Muon for the matrices and Adam for the rest (both
    counted).
    """
    task = Sort()
    batch = prepare(task, batch_size, count=1)[0].flat
    decoder = new_model(config, task)
    optimiser = Muon().at_work(decoder, RATE)
    works: dict[str, Work] = {
        "gradients": lambda _: functional.cross_entropy(
            decoder(batch, task.kind), batch.targets
        ).backward(),
        "update": lambda _: optimiser.step(1.0),
    }
    say("train, Muon's share")
    taken = [{name: timed(work) for name, work in works.items()} for _ in range(rounds + 1)][1:]
    return statistics.median(one["update"] / sum(one.values()) for one in taken)
