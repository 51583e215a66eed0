"""Not reading on behind a first error: the beginning of each answer first, the whole of it only
where that is right.

A model that fails at some length mostly fails early in the answer, and then prompt and beginning
give the verdict at half the price. It never changes a verdict: tokens do not see those that follow
them.

Shapes: B examples.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from taskhint.model.decoder import Decoder
from taskhint.tasks.random_bits import Ints
from taskhint.tasks.task import Examples, Task

ANSWER_WEIGHT = (
    2.0  # what a token of the answer costs, a prompt's being 1: the last block computes it in full
)
SHARES = (16, 8, 4, 2)
WORTHWHILE = 0.9


def can_be_cut(decoder: Decoder, task: Task) -> bool:
    """Not where attention counts the whole sequence, nor where a part of the answer is given."""
    return not decoder.config.judged_whole and not task.given


def best_bite(examples: Examples, first_errors: Ints) -> int | None:
    """How many tokens of each answer to judge first, going by these first errors; None if all at
    once is cheaper.
    """
    prompt, answer = (
        float(examples.prompts.mean()),
        float((examples.sizes - examples.prompts).mean()),
    )
    whole = prompt + ANSWER_WEIGHT * answer
    costs = {}
    for share in SHARES:
        bite = int(answer) // share
        if bite:
            left = ((first_errors < 0) | (first_errors >= bite)).mean()
            costs[bite] = prompt + ANSWER_WEIGHT * bite + left * whole
    best = min(costs, key=lambda bite: costs[bite], default=None)
    return best if best is not None and costs[best] < WORTHWHILE * whole else None


def beginnings(examples: Examples, bite: int) -> Examples:
    """The same examples with answers of at most `bite` tokens."""
    sizes = np.minimum(examples.sizes, examples.prompts + bite)
    return Examples(examples.tokens[:, : sizes.max()], examples.prompts, sizes, examples.inputs)


def chosen_rows(examples: Examples, chosen: npt.NDArray[np.bool_] | slice) -> Examples:
    return Examples(
        examples.tokens[chosen],
        examples.prompts[chosen],
        examples.sizes[chosen],
        examples.inputs[chosen],
    )
