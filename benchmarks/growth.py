"""How the cost of a step grows with width, batch and length, and that of evaluation with length:
measured points.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.timing import Work, say, timed
from benchmarks.training import BATCH_SIZE, Prepared, new_model, our_step, prepare
from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import score
from taskhint.model.config import ModelConfig
from taskhint.tasks import Sort
from taskhint.tasks.lengths import Skewed
from taskhint.training.cost import symbol_flops
from taskhint.training.limits import Example, forward_flops

ROUNDS = 5
WIDTHS = (64, 128, 256, 512, 1024)
BATCH_SIZES = (64, 256, 1024, 4096)
LONGEST = (10, 20, 40, 80)
TEST_LENGTHS = (50, 100, 200, 400, 800)
TEST_TOKENS = 100_000  # as many in every measured evaluation


def measure(rounds: int | None = None) -> dict[str, Any]:
    """The document under "growth"."""
    rounds = rounds or ROUNDS
    return {
        "width": {str(n): training_point(width=n, rounds=rounds) for n in WIDTHS},
        "batch": {str(n): training_point(batch_size=n, rounds=rounds) for n in BATCH_SIZES},
        "length": {str(n): training_point(longest=n, rounds=rounds) for n in LONGEST},
        "test_length": {str(n): evaluation_point(n, rounds) for n in TEST_LENGTHS},
    }


def training_point(
    width: int = 128, batch_size: int = BATCH_SIZE, longest: int = 20, rounds: int = ROUNDS
) -> dict[str, float]:
    """One training step: heads of 32, an MLP twice as wide, lengths up to `longest` in the paper's
    proportions.
    """
    task = Sort(lengths=Skewed(2, max(2, longest // 4), longest))
    config = ModelConfig(width=width, heads=width // 32, mlp_width=2 * width)
    batches = prepare(task, batch_size)
    say(f"growth: width {width}, batch {batch_size}, lengths up to {longest}")
    seconds = _median(our_step(new_model(config, task), task.kind, batches), rounds)
    flops = statistics.mean(_step_flops(config, task, batch) for batch in batches)
    return {
        "milliseconds": 1000 * seconds,
        "examples_per_second": batch_size / seconds,
        "tokens": statistics.mean(len(batch.flat.tokens) for batch in batches),
        "gigaflops_per_second": flops / seconds / 1e9,
    }


def _step_flops(config: ModelConfig, task: Sort, batch: Prepared) -> float:
    kinds = [
        Example(group.count, group.length, group.tail, group.tail) for group in batch.flat.groups
    ]
    each = sum(kind.share * forward_flops(config, task.vocab.size, kind) for kind in kinds)
    return 3 * (each + symbol_flops(config, task.vocab.size))


def evaluation_point(length: int, rounds: int, tokens: int = TEST_TOKENS) -> dict[str, float]:
    """Judging sequences of one length with the pocket model."""
    task = Sort().for_test("uniform")
    decoder = new_model(ModelConfig(), task)
    count = max(8, tokens // (2 * length))
    say(f"growth: evaluation at length {length}")
    seconds = _median(
        lambda _: score(decoder, task, 0, length, count, edit_distance=False), min(rounds, 3)
    )
    each = fresh_examples(task, 0, length, 0, 1).tokens.shape[1]
    return {
        "sequences_per_second": count / seconds,
        "microseconds_per_token": 1e6 * seconds / count / each,
    }


def _median(work: Work, rounds: int) -> float:
    return statistics.median([timed(work, number) for number in range(rounds + 1)][1:])
